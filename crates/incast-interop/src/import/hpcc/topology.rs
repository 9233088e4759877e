//! `topology.txt`: `nodes switches links`, the ids of the switches, then `a b rate delay loss` for each link.
//!
//! Descendants have more words in the first line, and some leave out the loss.

use super::units;
use crate::import::{
    Said,
    text::{ImportError, Line, Text, number, shown, whole},
};
use incast_sim::topology::{self, TopologyError};
use incast_units::{Rate, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// As many nodes as our topologies can have.
const MOST_NODES: u64 = topology::MAX_NODES as u64;

/// The file, checked.
#[derive(Debug)]
pub struct Topology {
    /// The number of nodes; hosts are those that are no switches.
    nodes: u64,
    /// Ids of the switches.
    switches: BTreeSet<u64>,
    /// Links in the order of the file.
    pub links: Vec<Link>,
    /// NVSwitches that are left out, by the hosts that they join.
    left_out: BTreeMap<u64, u64>,
    /// These NVSwitches.
    nvswitches: BTreeSet<u64>,
}

/// The first line's numbers, in whichever form it has them.
struct Header<'a> {
    nodes: &'a str,
    switches: &'a str,
    /// Of SimAI: switches inside a server, whose ids come first.
    nvswitches: Option<&'a str>,
    links: &'a str,
    /// Names of what is there and not used.
    unused: &'static str,
}

impl<'a> Header<'a> {
    /// HPCC's three words; four of PowerTCP's programs, and six of Reverie's, which end in two speeds (both
    /// inet-tub/ns3-datacenter); six or seven of SimAI's (aliyun/SimAI, common.h), which have a GPU's name in sixth place.
    fn of(words: &[&'a str]) -> Option<Self> {
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        let plain = |nodes, switches, links, unused| Some(Self { nodes, switches, nvswitches: None, links, unused });
        match *words {
            [nodes, switches, links] => plain(nodes, switches, links, ""),
            [nodes, switches, _, links] => plain(nodes, switches, links, "tors"),
            [nodes, switches, _, links, _, speed] if is_number(speed) => {
                plain(nodes, switches, links, "tors, the speeds of leaves and spines")
            }
            [nodes, _, nvswitches, switches, links, _] => {
                Some(Self { nodes, switches, nvswitches: Some(nvswitches), links, unused: "gpus_per_server, gpu_type" })
            }
            [nodes, _, nvswitches, switches, links, _, _] => Some(Self {
                nodes,
                switches,
                nvswitches: Some(nvswitches),
                links,
                unused: "gpus_per_server, gpu_type, gpus_per_node",
            }),
            _ => None,
        }
    }
}

/// What the first line may be.
const HEADERS: &str = "`nodes switches links`, `nodes switches tors links` or \
                       `nodes gpus_per_server nvswitches switches links gpu_type`";

/// A line of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Its number in the file.
    pub line: usize,
    /// The ends, in their order.
    pub ends: [u64; 2],
    /// Rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Probability of loss in each direction; zero stands for the configuration's.
    pub loss: f64,
}

impl Topology {
    /// Reads the file.
    ///
    /// # Errors
    /// The first line that is not what it should be.
    pub fn parse(text: &Text, said: &mut Said) -> Result<Self, ImportError> {
        let mut lines = text.lines();
        let mut last = 1;
        let mut next = |wanted: &str| match lines.next() {
            Some(line) => {
                last = line.number;
                Ok(line)
            }
            None => Err(text.error(last, format!("the file ends here, wanted is {wanted}"))),
        };
        let first = next("`nodes switches links`")?;
        let Some(header) = Header::of(&first.words) else {
            return Err(words(text, &first, HEADERS));
        };
        if !header.unused.is_empty() {
            said.notes.push(text.warning(first.number, format!("read and not used: {}", header.unused)));
        }
        if header.unused.starts_with("tors") {
            // inet-tub/ns3-datacenter, simulator/ns-3.39/examples/PowerTCP/powertcp-evaluation-workload.cc
            let message = "a topology of ns3-datacenter, whose programs take the law from their command line \
                           (--algorithm, --wien for PowerTCP, --windowCheck): here CC_MODE and HAS_WIN count";
            said.warnings.push(text.warning(first.number, message));
        }
        let at = |line: &Line<'_>| {
            let line = line.number;
            move |message: String| text.error(line, message)
        };
        let nodes = whole("nodes", header.nodes, 2..=MOST_NODES).map_err(at(&first))?;
        let least = u64::from(header.nvswitches.is_none());
        let fabric = whole("switches", header.switches, least..=nodes - 1).map_err(at(&first))?;
        let nvswitches = header.nvswitches.map_or(Ok(0), |word| whole("nvswitches", word, 0..=nodes - 1));
        let nvswitches = nvswitches.map_err(at(&first))?;
        let switches = fabric + nvswitches;
        if !(1..nodes).contains(&switches) {
            let message = format!("found {switches} switches of {nodes} nodes, allowed is 1 to {}", nodes - 1);
            return Err(text.error(first.number, message));
        }
        let links = whole("links", header.links, 1..=u64::from(u32::MAX)).map_err(at(&first))?;

        let ids = next("the ids of the switches")?;
        if ids.words.len() as u64 != switches {
            let found = ids.words.len();
            return Err(text.error(
                ids.number,
                format!("found {found} ids of switches, line {} has {switches} switches", first.number),
            ));
        }
        let mut known = BTreeSet::new();
        for word in &ids.words {
            let id = whole("a switch's id", word, 0..=nodes - 1).map_err(at(&ids))?;
            if !known.insert(id) {
                return Err(text.error(ids.number, format!("the switch {id} is there twice")));
            }
        }
        let inside: BTreeSet<u64> =
            ids.words.iter().take(nvswitches as usize).filter_map(|word| word.parse().ok()).collect();
        let mut topology =
            Self { nodes, switches: known, links: Vec::new(), left_out: BTreeMap::new(), nvswitches: BTreeSet::new() };
        for index in 0..links {
            let line = next(&format!("link {} of {links}: `a b rate delay [loss]`", index + 1))?;
            topology.links.push(topology.link(&line).map_err(at(&line))?);
        }
        topology.leave_out(text, &inside, said);
        let mut of_host = BTreeMap::new();
        let mut joined = BTreeMap::new();
        for link in &topology.links {
            for end in link.ends.into_iter().filter(|end| topology.is_host(*end)) {
                if let Some(other) = of_host.insert(end, link.line) {
                    let message = format!(
                        "the host {end} has the link of line {other} already: hosts have one, and several NICs of a \
                         host are not there; instead write a host of its own for each NIC and share its flows among \
                         them, or one link with the sum of their rates"
                    );
                    return Err(text.error(link.line, message));
                }
            }
            let pair = (link.ends[0].min(link.ends[1]), link.ends[0].max(link.ends[1]));
            if let Some(other) = joined.insert(pair, link.line) {
                said.warnings.push(text.warning(
                    link.line,
                    format!("joins the same switches as line {other}: the peer uses the last of them, incast all"),
                ));
            }
        }
        if let Some(line) = lines.next() {
            let message = format!("ignored from here on: line 1 has {links} links");
            said.warnings.push(text.warning(line.number, message));
        }
        if let Some(lonely) = topology.hosts().find(|host| !of_host.contains_key(host)) {
            return Err(text.error(first.number, format!("the host {lonely} has no link: hosts have one")));
        }
        Ok(topology)
    }

    fn link(&self, line: &Line<'_>) -> Result<Link, String> {
        let (a, b, rate, delay, loss) = match line.words[..] {
            [a, b, rate, delay] => (a, b, rate, delay, "0"),
            [a, b, rate, delay, loss] => (a, b, rate, delay, loss),
            _ => {
                return Err(format!(
                    "found {} words, wanted is `a b rate delay [loss]`; an MTU or other properties of a link are not there",
                    line.words.len()
                ));
            }
        };
        let ends = [a, b].map(|word| whole("a node", word, 0..=self.nodes - 1));
        let ends = [ends[0].clone()?, ends[1].clone()?];
        if ends[0] == ends[1] {
            return Err(format!("a link from {} to itself", ends[0]));
        }
        if self.is_host(ends[0]) && self.is_host(ends[1]) {
            return Err(format!(
                "{} and {} are hosts: a link has a switch at one end, links between hosts are not there",
                ends[0], ends[1]
            ));
        }
        let rate = units::rate("rate", rate)?;
        if !(1_000..=100_000_000_000_000).contains(&rate.bps()) {
            return Err(format!("rate: found {rate}, allowed is 1Kbps to 100Tbps"));
        }
        Ok(Link {
            line: line.number,
            ends,
            rate,
            delay: units::time("delay", delay)?,
            loss: number("loss", loss, 0.0..=0.999_999_999)?,
        })
    }

    /// Leaves out the NVSwitches all of whose hosts have a NIC too: these go on with one link. Others stay switches.
    fn leave_out(&mut self, text: &Text, inside: &BTreeSet<u64>, said: &mut Said) {
        let mut nics: BTreeSet<u64> = BTreeSet::new();
        let mut neighbours: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for [a, b] in self.links.iter().flat_map(|link| [link.ends, [link.ends[1], link.ends[0]]]) {
            if inside.contains(&a) {
                neighbours.entry(a).or_default().insert(b);
            } else if !inside.contains(&b) {
                nics.insert(a);
            }
        }
        neighbours.retain(|_, hosts| hosts.iter().all(|host| self.is_host(*host) && nics.contains(host)));
        for (switch, hosts) in &neighbours {
            self.left_out.extend(hosts.iter().map(|host| (*host, *switch)));
            self.switches.remove(switch);
        }
        let before = self.links.len();
        self.links.retain(|link| link.ends.iter().all(|end| !neighbours.contains_key(end)));
        if !neighbours.is_empty() {
            let message = format!(
                "{} NVSwitches with {} links are left out, as hosts have one NIC; flows between hosts of one of them are \
                 refused",
                neighbours.len(),
                before - self.links.len()
            );
            said.warnings.push(text.warning(1, message));
        }
        self.nvswitches = neighbours.into_keys().collect();
    }

    /// The NVSwitch by which a host is joined to others and which is left out.
    pub fn left_out(&self, host: u64) -> Option<u64> {
        self.left_out.get(&host).copied()
    }

    /// Whether a node is a host of this fabric.
    pub fn is_host(&self, id: u64) -> bool {
        id < self.nodes && !self.switches.contains(&id) && !self.nvswitches.contains(&id)
    }

    /// Ids of the hosts, ascending.
    pub fn hosts(&self) -> impl Iterator<Item = u64> {
        (0..self.nodes).filter(|id| self.is_host(*id))
    }

    /// Ids of all nodes in the order of ours: hosts, then switches, each ascending.
    pub fn nodes(&self) -> impl Iterator<Item = u64> {
        self.hosts().chain(self.switches.iter().copied())
    }

    /// Name of a node in our files.
    pub fn name(&self, id: u64) -> String {
        format!("{}{id}", if self.is_host(id) { 'h' } else { 's' })
    }

    /// In our format, hosts by ascending id; and built from that. Links without a loss of their own have `loss`.
    ///
    /// # Errors
    /// What our topologies cannot be, in the peer's line.
    pub fn convert(&self, text: &Text, loss: f64) -> Result<(String, topology::Topology), ImportError> {
        let mut ours = format!("# Imported from {}. hN and sN are its nodes N.\n", text.name());
        // Our lines and the peer's that they come from.
        let mut from = vec![0];
        let mut add = |line: usize, content: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(ours, "{content}");
            from.push(line);
        };
        for host in self.hosts() {
            add(1, format_args!("host h{host}"));
        }
        for switch in &self.switches {
            add(2, format_args!("switch s{switch}"));
        }
        for link in &self.links {
            let [a, b] = link.ends.map(|end| self.name(end));
            let loss = if link.loss > 0.0 { link.loss } else { loss };
            let loss = if loss > 0.0 { format!(" {loss}") } else { String::new() };
            add(link.line, format_args!("link {a} {b} {} {}{loss}", link.rate, link.delay));
        }
        match topology::file::parse(&ours) {
            Ok(built) => Ok((ours, built)),
            Err(TopologyError::File { line, message }) => {
                let line = line.checked_sub(1).and_then(|index| from.get(index)).copied().unwrap_or(0);
                Err(text.error(line, message))
            }
            Err(error) => Err(text.error(0, error.to_string())),
        }
    }
}

fn words(text: &Text, line: &Line<'_>, wanted: &str) -> ImportError {
    let found = line.words.first().map(|word| shown(word)).unwrap_or_default();
    text.error(line.number, format!("found {} words from {found} on, wanted is {wanted}", line.words.len()))
}
