//! `file`: any graph, from a text file.
//!
//! ```text
//! # Two racks. Everything after a `#` is a comment; words are separated by blanks.
//! host   a                     # hosts are numbered in the order of their lines
//! host   b
//! switch left
//! switch right
//! link   a left  100Gbps 1us   # link A B RATE DELAY [LOSS]: full duplex, the same in both directions
//! link   b right 100Gbps 1us
//! link   left right 400Gbps 2us 0.001
//! link   left right 400Gbps 2us
//! route  left b right          # route SWITCH HOST NEXT[,NEXT...]
//! ```
//!
//! Lines may come in any order. Names consist of letters, digits, `_`, `.` and `-` and are unique. A host has exactly
//! one link, to a switch. Two switches may have several links. Routes are the shortest paths in hops, all of them with
//! equal shares; a `route` line replaces what one switch does with packets to one host, by all links to the nodes
//! named. Routes that could send a packet in a loop are refused; parts that are not connected are not (see
//! [`Topology::unreachable_pairs`]). The ports of a switch are numbered with its hosts first, in the order of the
//! hosts, then its links to switches in the order of their lines.

use super::check::{LinkFault, MAX_CABLES, MAX_NODES, MAX_PORTS};
use super::{Cable, Link, Node, Ports, Rule, Topology, TopologyError, tables};
use incast_units::UnitError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, str::FromStr};

/// Lines `host NAME`, `switch NAME`, `link A B RATE DELAY [LOSS]`, `route SWITCH HOST NEXT[,NEXT…]`, `#` comments.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path, relative to the scenario.
    pub path: String,
}

/// Most hosts of a file.
const MAX_HOSTS: usize = 65_535;
/// Most routes, hosts times switches: half a gigabyte of tables.
const MAX_ROUTES: usize = 1 << 28;

/// A line that is not empty, with its number from 1.
struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn error(&self, message: impl Into<String>) -> TopologyError {
        TopologyError::File { line: self.number, message: message.into() }
    }
}

/// A node of the file.
#[derive(Clone, Copy)]
struct Known {
    node: Node,
    line: usize,
}

/// The names of the nodes.
struct Names<'a> {
    by_name: BTreeMap<&'a str, Known>,
    hosts: u32,
}

/// Reads a topology; see the [module](self) for the format.
///
/// [`TopologyError::File`] with the line and what is allowed, if anything in the text is not understood, names are used
/// twice or are unknown, a host has no link or several, a value is impossible, routes form a loop, or the whole is too
/// large for its tables.
pub fn parse(text: &str) -> Result<Topology, TopologyError> {
    let lines = lines(text)?;
    let of_kind = |kind: &'static str| lines.iter().filter(move |line| line.words[0] == kind);
    let (names, texts) = Names::declare(of_kind("host"), of_kind("switch"))?;
    let switches = texts.len() - names.hosts as usize;
    if names.hosts as usize * switches > MAX_ROUTES {
        let message = format!("{} hosts and {switches} switches: their product is at most {MAX_ROUTES}", names.hosts);
        return Err(TopologyError::File { line: 0, message });
    }
    let cables = names.connect(of_kind("link"))?;
    let mut topology = Topology { kind: "file", hosts: names.hosts, names: texts, cables, rules: Vec::new() };
    let tables =
        tables(&topology, &|_| false).map_err(|error| TopologyError::File { line: 0, message: error.to_string() })?;
    topology.rules = tables.into_iter().map(Rule::Table).collect();
    names.route(&mut topology, of_kind("route"))?;
    Ok(topology)
}

/// Splits the text into words and refuses lines of unknown kind.
fn lines(text: &str) -> Result<Vec<Line<'_>>, TopologyError> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines()) {
        let content = line.split('#').next().unwrap_or("");
        let line = Line { number, words: content.split_whitespace().collect() };
        if let Some(strange) = content.chars().find(|c| c.is_control() && !c.is_whitespace() || *c == '\u{fffd}') {
            return Err(line.error(format!("the character {} does not belong here", strange.escape_unicode())));
        }
        let Some(&kind) = line.words.first() else { continue };
        let usage = match kind {
            "host" | "switch" => (2..=2, format!("{kind} NAME")),
            "link" if line.words.len() > 6 => {
                return Err(line.error(format!(
                    "this line has {} words: write `link A B RATE DELAY [LOSS]`; an MTU or other properties of one link \
                     are not there",
                    line.words.len()
                )));
            }
            "link" => (5..=6, "link A B RATE DELAY [LOSS]".to_owned()),
            "route" => (4..=4, "route SWITCH HOST NEXT[,NEXT...]".to_owned()),
            _ => {
                let found = shown(kind);
                return Err(line.error(format!("{found} is unknown: a line starts with host, switch, link or route")));
            }
        };
        if !usage.0.contains(&line.words.len()) {
            return Err(line.error(format!("this line has {} words: write `{}`", line.words.len(), usage.1)));
        }
        lines.push(line);
    }
    Ok(lines)
}

impl<'a> Names<'a> {
    /// Numbers hosts, then switches. Also gives all names by number.
    fn declare<'l>(
        hosts: impl Iterator<Item = &'l Line<'a>>,
        switches: impl Iterator<Item = &'l Line<'a>>,
    ) -> Result<(Self, Vec<String>), TopologyError>
    where
        'a: 'l,
    {
        let mut names = Self { by_name: BTreeMap::new(), hosts: 0 };
        let mut texts = Vec::new();
        for line in hosts {
            names.add(line, &mut texts)?;
            if texts.len() > MAX_HOSTS {
                return Err(line.error(format!("more than {MAX_HOSTS} hosts")));
            }
        }
        names.hosts = texts.len() as u32;
        if names.hosts == 0 {
            let message = "there is no host: at least one line `host NAME` is needed".to_owned();
            return Err(TopologyError::File { line: 0, message });
        }
        for line in switches {
            names.add(line, &mut texts)?;
        }
        Ok((names, texts))
    }

    fn add(&mut self, line: &Line<'a>, texts: &mut Vec<String>) -> Result<(), TopologyError> {
        let name = line.words[1];
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
            return Err(line
                .error(format!("{} is not a name: names consist of letters, digits, `_`, `.` and `-`", shown(name))));
        }
        if texts.len() == MAX_NODES as usize {
            return Err(line.error(format!("more than {MAX_NODES} nodes")));
        }
        let known = Known { node: texts.len() as Node, line: line.number };
        if let Some(other) = self.by_name.insert(name, known) {
            // Switches are read after hosts: the other line may be further down.
            let (earlier, line) = (other.line.min(line.number), other.line.max(line.number));
            let message = format!("{} is the name of line {earlier} already", shown(name));
            return Err(TopologyError::File { line, message });
        }
        texts.push(name.to_owned());
        Ok(())
    }

    fn find(&self, line: &Line<'_>, name: &str) -> Result<Node, TopologyError> {
        let known = self.by_name.get(name).ok_or_else(|| {
            line.error(format!("{} is unknown: declare it with `host NAME` or `switch NAME`", shown(name)))
        })?;
        Ok(known.node)
    }

    /// Reads the links: those of the hosts first, in the order of the hosts.
    fn connect<'l>(&self, lines: impl Iterator<Item = &'l Line<'a>>) -> Result<Vec<Cable>, TopologyError>
    where
        'a: 'l,
    {
        let mut of_host: Vec<Option<(Cable, usize)>> = vec![None; self.hosts as usize];
        let mut fabric = Vec::new();
        let mut ports = vec![0u32; self.by_name.len()];
        for line in lines {
            let (a, b) = (self.find(line, line.words[1])?, self.find(line, line.words[2])?);
            if a == b {
                return Err(line.error("a link joins two different nodes"));
            }
            let link = link(line)?;
            // A host comes first.
            let (a, b) = if b < self.hosts { (b, a) } else { (a, b) };
            if b < self.hosts {
                return Err(
                    line.error("a link joins a host and a switch or two switches; links between hosts are not there")
                );
            }
            let cable = Cable { a, b, link };
            match of_host.get_mut(a as usize) {
                Some(Some((_, earlier))) => {
                    return Err(line.error(format!(
                        "a host has one link, and line {earlier} is one already; several NICs of a host are not there; \
                         instead write a host of its own for each NIC and share its flows among them, or one link with \
                         the sum of their rates"
                    )));
                }
                Some(place) => *place = Some((cable, line.number)),
                None => fabric.push(cable),
            }
            for node in [a, b] {
                ports[node as usize] += 1;
                if ports[node as usize] > MAX_PORTS {
                    return Err(line.error(format!("a switch has at most {MAX_PORTS} links")));
                }
            }
            if fabric.len() + of_host.len() > MAX_CABLES as usize {
                return Err(line.error(format!("at most {MAX_CABLES} links are possible")));
            }
        }
        let mut cables = Vec::with_capacity(of_host.len() + fabric.len());
        for (host, place) in (0..).zip(of_host) {
            match place {
                Some((cable, _)) => cables.push(cable),
                None => return Err(self.lonely(host)),
            }
        }
        cables.append(&mut fabric);
        Ok(cables)
    }

    fn lonely(&self, host: Node) -> TopologyError {
        let line = self.by_name.values().find(|known| known.node == host).map_or(0, |known| known.line);
        TopologyError::File { line, message: "this host has no link: it needs exactly one".to_owned() }
    }

    /// Applies the `route` lines.
    fn route<'l>(&self, topology: &mut Topology, lines: impl Iterator<Item = &'l Line<'a>>) -> Result<(), TopologyError>
    where
        'a: 'l,
    {
        let ports = topology.ports();
        let mut given = BTreeMap::new();
        for line in lines {
            let (switch, host) = (self.find(line, line.words[1])?, self.find(line, line.words[2])?);
            if switch < self.hosts {
                return Err(line.error(format!("{} is a host: routes are those of switches", shown(line.words[1]))));
            }
            if host >= self.hosts {
                return Err(line.error(format!("{} is a switch: routes lead to hosts", shown(line.words[2]))));
            }
            if let Some(earlier) = given.insert((host, switch), line.number) {
                return Err(line.error(format!("line {earlier} has this route already: name all next nodes in one")));
            }
            let mut set = Vec::new();
            for next in line.words[3].split(',') {
                let node = self.find(line, next)?;
                if node < self.hosts && node != host {
                    return Err(line.error(format!("{} is a host: hosts do not pass packets on", shown(next))));
                }
                let before = set.len();
                set.extend((0..).zip(ports.of(switch)).filter(|(_, end)| end.peer == node).map(|(port, _)| port));
                if set.len() == before {
                    let message = format!("there is no link between {} and {}", shown(line.words[1]), shown(next));
                    return Err(line.error(message));
                }
            }
            set.sort_unstable();
            set.dedup();
            let rule = &mut topology.rules[(switch - self.hosts) as usize];
            if let Rule::Table(table) = rule
                && !table.assign(host, &set)
            {
                return Err(line.error("this switch has too many different sets of routes"));
            }
        }
        let mut checked = None;
        for (&(host, _), &line) in &given {
            if checked.replace(host) == Some(host) {
                continue;
            }
            if let Some(switch) = find_loop(topology, &ports, host) {
                let [host, switch] = [host, switch].map(|node| shown(&topology.names[node as usize]));
                let message = format!("with the `route` lines packets to {host} can loop through {switch}");
                return Err(TopologyError::File { line, message });
            }
        }
        Ok(())
    }
}

/// A switch on a loop of the routes to a host.
fn find_loop(topology: &Topology, ports: &Ports, host: Node) -> Option<Node> {
    let hosts = topology.hosts;
    let next = |switch: u32| {
        let peers = topology.rules[switch as usize].alternatives(host);
        peers.filter_map(move |port| ports.end(hosts + switch, port)).filter(move |end| end.peer >= hosts)
    };
    // Remove, again and again, switches that lead only to removed ones: loops and what leads to them remain.
    let switches = topology.switches();
    let mut open: Vec<usize> = (0..switches).map(|switch| next(switch).count()).collect();
    let mut into = vec![Vec::new(); switches as usize];
    for switch in 0..switches {
        next(switch).for_each(|end| into[(end.peer - hosts) as usize].push(switch));
    }
    let mut done: Vec<u32> = (0..switches).filter(|&switch| open[switch as usize] == 0).collect();
    while let Some(switch) = done.pop() {
        for &before in &into[switch as usize] {
            open[before as usize] -= 1;
            if open[before as usize] == 0 {
                done.push(before);
            }
        }
    }
    // From any switch that remains, a walk among the remaining ones ends in a loop.
    let mut at = (0..switches).find(|&switch| open[switch as usize] > 0)?;
    for _ in 0..switches {
        at = next(at).map(|end| end.peer - hosts).find(|&peer| open[peer as usize] > 0)?;
    }
    Some(hosts + at)
}

/// RATE DELAY [LOSS] of a link line.
fn link(line: &Line<'_>) -> Result<Link, TopologyError> {
    let rate = quantity(line, line.words[3])?;
    let delay = quantity(line, line.words[4])?;
    let loss = match line.words.get(5) {
        None => 0.0,
        Some(word) => word.parse().map_err(|_| {
            let found = shown(word);
            line.error(format!("{found} is not a loss: write a probability of at least 0 and below 1, such as 0.001"))
        })?,
    };
    let link = Link { rate, delay, loss };
    match LinkFault::of(&link) {
        None => Ok(link),
        Some(fault) => Err(line.error(format!("found {}, allowed is {}", fault.found(), fault.allowed()))),
    }
}

fn quantity<T: FromStr<Err = UnitError>>(line: &Line<'_>, word: &str) -> Result<T, TopologyError> {
    if word.len() > 64 {
        return Err(line.error(format!("{} is too long for a number with a unit", shown(word))));
    }
    word.parse().map_err(|error: UnitError| line.error(error.to_string()))
}

/// A word of the file in a message: quoted and not too long.
fn shown(word: &str) -> String {
    let mut start: String = word.chars().take(40).flat_map(char::escape_debug).collect();
    if word.chars().nth(40).is_some() {
        start.push('…');
    }
    format!("`{start}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{
        Clos3, FatTree,
        tests::{link as good_link, verify},
    };
    use incast_units::{Rate, Time};
    use proptest::prelude::*;

    const BASE: &str = "host h0\nhost h1\nswitch s\nswitch t\nlink h0 s 1Gbps 1us\nlink h1 t 1Gbps 1us\n";

    fn error_of(text: &str) -> (usize, String) {
        match parse(text) {
            Err(TopologyError::File { line, message }) => (line, message),
            other => panic!("expected an error of {text:?}, found {other:?}"),
        }
    }

    /// Writes a topology as a file.
    fn write(topology: &Topology) -> String {
        let mut text = String::new();
        for (node, name) in (0..).zip(&topology.names) {
            text += &format!("{} {name}\n", if node < topology.hosts { "host" } else { "switch" });
        }
        for cable in &topology.cables {
            let [a, b] = [cable.a, cable.b].map(|node| &topology.names[node as usize]);
            text += &format!("link {a} {b} {} {} {}\n", cable.link.rate, cable.link.delay, cable.link.loss);
        }
        text
    }

    #[test]
    fn reads_the_example_of_the_documentation() {
        let text = include_str!("file.rs");
        let example: String = text
            .lines()
            .skip_while(|line| *line != "//! ```text")
            .skip(1)
            .take_while(|line| *line != "//! ```")
            .map(|line| format!("{}\n", line.trim_start_matches("//!")))
            .collect();
        let topology = parse(&example).unwrap();
        assert_eq!((topology.hosts, topology.switches(), topology.cables.len()), (2, 2, 4));
        assert_eq!(topology.cables[2].link.loss, 0.001);
        assert_eq!(topology.rules[0].alternatives(1).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(topology.port_name(2, 2).as_deref(), Some("left->right#1"));
        assert_eq!(topology.find_port("left->right#1"), Some((2, 2)));
        assert_eq!(topology.find_cable("right-left#1"), Some(3));
        assert_eq!(topology.cable_name(3).as_deref(), Some("left-right#1"));
        assert_eq!(topology.find_cable("right-left#2"), None);
    }

    #[test]
    fn a_written_topology_is_read_back() {
        let link = Link { loss: 0.25, rate: Rate::from_bps(2_500_000_001), delay: Time::from_ps(1_234_567) };
        let clos = Clos3 {
            pods: 2,
            tors_per_pod: 2,
            aggs_per_pod: 2,
            cores: 3,
            hosts_per_tor: 2,
            host_link: link,
            tor_agg_link: good_link(),
            agg_core_link: good_link(),
            tor_agg_links: 1,
            agg_core_links: 1,
        };
        for original in [clos.build().unwrap(), FatTree { k: 4, link: good_link() }.build().unwrap()] {
            let read = parse(&write(&original)).unwrap();
            assert_eq!(read.names, original.names);
            assert_eq!(read.cables, original.cables);
            verify(&read);
        }
    }

    #[test]
    fn lines_may_come_in_any_order_and_form() {
        let turned: Vec<&str> = BASE.lines().rev().collect();
        let topology = parse(&format!("\u{feff}  # turned\r\n\r\n{}", turned.join("  # a comment\r\n"))).unwrap();
        assert_eq!(topology.names, ["h1", "h0", "t", "s"]);
        assert_eq!(topology.cables[0].b, 2);
    }

    #[test]
    fn names_may_have_hyphens() {
        let text = "host a-b\nhost c\nswitch a\nswitch b-c\nlink a-b a 1Gbps 1us\nlink b-c c 1Gbps 1us\nlink b-c a 1Gbps 1us\n";
        let topology = parse(text).unwrap();
        assert_eq!(topology.find_cable("a-b-c"), Some(2));
        assert_eq!(topology.find_cable("a-b-a"), Some(0));
        assert_eq!(topology.find_port("a->b-c"), Some((2, 1)));
    }

    #[test]
    fn routes_replace_what_is_computed() {
        let square = format!("{BASE}switch u\nlink s t 1Gbps 1us\nlink s u 1Gbps 1us\nlink u t 1Gbps 1us\n");
        let topology = parse(&square).unwrap();
        assert_eq!(topology.rules[0].alternatives(1).collect::<Vec<_>>(), [1]);
        let topology = parse(&format!("{square}route s h1 u\n")).unwrap();
        assert_eq!(topology.rules[0].alternatives(1).collect::<Vec<_>>(), [2]);
        let topology = parse(&format!("{square}route s h1 u,t,u\n")).unwrap();
        assert_eq!(topology.rules[0].alternatives(1).collect::<Vec<_>>(), [1, 2]);
        let (line, message) = error_of(&format!("{square}route s h1 u\nroute u h1 s\n"));
        assert_eq!(line, 11);
        assert!(message.contains("loop"), "{message}");
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        let after = [
            ("hots x", "a line starts with host, switch, link or route"),
            ("host", "`host NAME`"),
            ("host a b", "`host NAME`"),
            ("host s", "the name of line 3 already"),
            ("switch a>b", "names consist of"),
            ("host h2", "has no link"),
            ("link s t 1Gbps", "`link A B RATE DELAY [LOSS]`"),
            ("link s x 1Gbps 1us", "`x` is unknown"),
            ("link s s 1Gbps 1us", "two different nodes"),
            ("link h0 t 1Gbps 1us", "line 5 is one already; several NICs"),
            ("link h0 h1 1Gbps 1us", "links between hosts are not there"),
            ("link s t 1Gbps 1us 0 9000", "an MTU or other properties of one link are not there"),
            ("link s t 0Gbps 1us", "1Kbps to 100Tbps"),
            ("link s t -1Gbps 1us", "is not a rate"),
            ("link s t NaN 1us", "is not a rate"),
            ("link s t 1Gbps 1", "is not a time"),
            ("link s t 1Gbps -1us", "is not a time"),
            ("link s t 1Gbps 11s", "at most 10s"),
            ("link s t 1Gbps 1us 1", "below 1"),
            ("link s t 1Gbps 1us -0.1", "below 1"),
            ("link s t 1Gbps 1us NaN", "below 1"),
            ("link s t 1Gbps 1us inf", "below 1"),
            ("link s t 1Gbps 1us much", "not a loss"),
            ("link s t 1Gbps 1us\0", "does not belong"),
            ("route s h1", "`route SWITCH HOST NEXT[,NEXT...]`"),
            ("route h0 h1 s", "routes are those of switches"),
            ("route s t t", "routes lead to hosts"),
            ("route s h1 t", "no link between"),
            ("route s h1 h0", "do not pass packets on"),
            ("route s h0 h0,", "`` is unknown"),
            ("\u{1}\u{2}\u{fffd}", "does not belong"),
        ];
        for (line, expected) in after {
            let (number, message) = error_of(&format!("{BASE}{line}\n"));
            assert!(message.contains(expected), "{line:?} gives {message:?}");
            assert_eq!(number, 7, "{line:?} gives {message:?}");
        }
        let twice = format!("{BASE}route s h0 h0\nroute s h0 h0\n");
        assert!(error_of(&twice).1.contains("line 7 has this route"));
        assert_eq!(error_of("").0, 0);
        assert_eq!(error_of("switch s").0, 0);
        let (line, message) = error_of("what is this");
        let shown = TopologyError::File { line, message }.to_string();
        assert_eq!(shown, "line 1: `what` is unknown: a line starts with host, switch, link or route");
    }

    proptest! {
        #[test]
        fn never_panics_on_text(text in ".{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn never_panics_on_nearly_good_text(lines in proptest::collection::vec(
            "(host|switch|link|route)( (h0|h1|s|t|u|1Gbps|1us|0.5|-1|s,t|h0,s)){0,6}", 0..12)) {
            let _ = parse(&lines.join("\n"));
            let _ = parse(&format!("{BASE}{}", lines.join("\n")));
        }

        /// Graphs with random links, with several between some pairs; not all are connected.
        #[test]
        fn random_graphs_route_along_shortest_paths(
            switches in 1u32..9,
            edges in proptest::collection::vec(0u32..9, 1..9),
            links in proptest::collection::vec((0u32..9, 0u32..9), 0..24),
        ) {
            let mut text: String = (0..switches).map(|switch| format!("switch s{switch}\n")).collect();
            for (host, edge) in edges.iter().enumerate() {
                text += &format!("host h{host}\nlink s{} h{host} 10Gbps 1us\n", edge % switches);
            }
            for (a, b) in links {
                if a % switches != b % switches {
                    text += &format!("link s{} s{} 10Gbps 1us\n", a % switches, b % switches);
                }
            }
            let topology = parse(&text).unwrap();
            if topology.is_connected() && edges.windows(2).all(|pair| pair[0] % switches <= pair[1] % switches) {
                verify(&topology);
            }
            let ports = topology.ports();
            for source in 0..topology.hosts {
                for host in 0..topology.hosts {
                    let mut at = ports.of(source)[0].peer;
                    let mut hops = 0;
                    while at != host {
                        match topology.rules[(at - topology.hosts) as usize].pick(host, 0x1234_5678) {
                            Some(port) => at = ports.end(at, port).unwrap().peer,
                            None => break,
                        }
                        hops += 1;
                        prop_assert!(hops <= switches);
                    }
                    prop_assert!(at == host || !topology.is_connected());
                }
            }
        }
    }
}
