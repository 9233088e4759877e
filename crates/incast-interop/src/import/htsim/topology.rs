//! The topology file (`.topo`): a fat-tree or leaf-spine fabric, tier by tier. Keys in any case, each with a whole
//! number: `Nodes`, `Tiers`, `Podsize`, then for each tier from the hosts up `Tier N` with what its switches have. `#`
//! starts a comment line.
//!
//! Without a file there are three tiers of equal switches, 100 Gbps and 1 us.

use crate::import::{
    page::Page,
    text::{ImportError, Line, Text, shown, whole},
};
use incast_lab::scenario::tree::nearest::nearest;
use incast_sim::topology::{self, Clos3, FatTree, LeafSpine, TopologyError};
use incast_units::{Rate, Time};
use std::{collections::BTreeMap, ops::RangeInclusive};

use super::matrix::{MOST_NODES, Matrix};

/// The peer's link without a file.
const USUAL_LINK: Link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1) };
const MOST_PORTS: u64 = 65_535;
/// Our longest delay is 10 s.
const MOST_NS: u64 = 5_000_000_000;

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Rate in each direction.
    pub rate: Rate,
    /// Propagation delay, with what switches add.
    pub delay: Time,
}

impl Link {
    fn ours(self) -> topology::Link {
        topology::Link { rate: self.rate, delay: self.delay, loss: 0.0 }
    }

    /// As scenarios write it.
    fn written(self) -> String {
        format!("{{ rate = \"{}\", delay = \"{}\" }}", self.rate, self.delay)
    }
}

/// What becomes of the peer's fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// Equal switches with so many ports.
    FatTree(u32),
    /// As in the file.
    Tiers(Tiers),
}

/// The counts and links of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// Pods; 1 of two tiers.
    pub pods: u64,
    /// Lowest switches of each.
    pub tors_per_pod: u64,
    /// Hosts of each of those.
    pub hosts_per_tor: u64,
    /// Switches above them, of each pod.
    pub aggs_per_pod: u64,
    /// Switches at the top of three tiers.
    pub cores: Option<u64>,
    /// Between hosts and lowest switches, and so on up.
    pub links: Vec<Link>,
    /// Parallel links between two switches, of each tier above the lowest.
    pub bundles: Vec<u64>,
    /// Switches take time, which the links' delays contain.
    pub latency: bool,
    /// Bytes of each queue, if the file has them.
    pub queue: Option<u64>,
}

/// A key of the file.
struct Key {
    name: &'static str,
    allowed: RangeInclusive<u64>,
    /// Of each tier, not of the whole.
    in_tier: bool,
    /// Its value where the file has none.
    default: Option<u64>,
}

const fn key(name: &'static str, allowed: RangeInclusive<u64>, in_tier: bool, default: Option<u64>) -> Key {
    Key { name, allowed, in_tier, default }
}

const KEYS: [Key; 12] = [
    key("Nodes", 2..=MOST_NODES, false, None),
    key("Tiers", 2..=3, false, None),
    key("Podsize", 1..=MOST_NODES, false, None),
    key("Downlink_speed_Gbps", 1..=100_000, true, None),
    key("Downlink_Latency_ns", 1..=MOST_NS, true, None),
    key("Switch_Latency_ns", 0..=MOST_NS, true, Some(0)),
    key("Radix_Down", 1..=MOST_PORTS, true, None),
    key("Radix_Up", 1..=MOST_PORTS, true, None),
    key("Oversubscribed", 1..=MOST_PORTS, true, Some(1)),
    key("Bundle", 1..=MOST_PORTS, true, Some(1)),
    key("Queue_Up", 1..=1_000_000_000, true, Some(0)),
    key("Queue_Down", 1..=1_000_000_000, true, Some(0)),
];

/// A value and the line that has it.
type Value = (u64, usize);

/// The values of a file, by tier; those of the whole under `None`.
struct Values<'a> {
    text: &'a Text,
    values: BTreeMap<(Option<u64>, &'static str), Value>,
    /// Lines of the tiers.
    tiers: BTreeMap<u64, usize>,
}

impl Values<'_> {
    /// A value that is in the file or has a default; a missing one is reported at the tier's line.
    fn get(&self, tier: Option<u64>, name: &'static str) -> Result<Value, ImportError> {
        if let Some(value) = self.values.get(&(tier, name)) {
            return Ok(*value);
        }
        let line = tier.and_then(|tier| self.tiers.get(&tier)).copied().unwrap_or(0);
        let default = KEYS.iter().find(|key| key.name == name).and_then(|key| key.default);
        default.map(|value| (value, line)).ok_or_else(|| {
            let of = tier.map_or_else(String::new, |tier| format!(" of tier {tier}"));
            self.text.error(line, format!("{name}{of} is missing"))
        })
    }

    /// What has to be true of the numbers around a line.
    fn hold(&self, holds: bool, line: usize, message: impl FnOnce() -> String) -> Result<(), ImportError> {
        if holds { Ok(()) } else { Err(self.text.error(line, message())) }
    }
}

/// Reads the words of the file.
fn read(text: &Text) -> Result<Values<'_>, ImportError> {
    let mut read = Values { text, values: BTreeMap::new(), tiers: BTreeMap::new() };
    let mut tier = None;
    for line in text.lines().filter(|line| !line.words[0].starts_with('#')) {
        let at = |message: String| text.error(line.number, message);
        let [name, word] = line.words[..] else {
            return Err(at(wrong_count(&line)));
        };
        if name.eq_ignore_ascii_case("Tier") {
            let tiers = read.get(None, "Tiers");
            let (tiers, _) = tiers.map_err(|_| at("Tiers is missing, which has to come before this".into()))?;
            let number = whole("Tier", word, 0..=tiers - 1).map_err(at)?;
            if let Some(other) = read.tiers.insert(number, line.number) {
                return Err(at(format!("tier {number} is in line {other} already")));
            }
            tier = Some(number);
            continue;
        }
        let Some(key) = KEYS.iter().find(|key| name.eq_ignore_ascii_case(key.name)) else {
            let mean = nearest(name, KEYS.iter().map(|key| key.name));
            let mean = mean.map(|name| format!(", did you mean {name}?")).unwrap_or_default();
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            return Err(at(format!("found {}, allowed is Tier and {}{mean}", shown(name), names.join(", "))));
        };
        match (key.in_tier, tier) {
            (true, None) => return Err(at(format!("{} is before the first `Tier`", key.name))),
            (false, Some(tier)) => {
                return Err(at(format!("{} is of the whole, allowed is before tier {tier}", key.name)));
            }
            _ => {}
        }
        let value = whole(key.name, word, key.allowed.clone()).map_err(at)?;
        if let Some((_, other)) = read.values.insert((tier, key.name), (value, line.number)) {
            return Err(at(format!("{} is in line {other} already", key.name)));
        }
    }
    Ok(read)
}

fn wrong_count(line: &Line<'_>) -> String {
    format!("found {} words, wanted is a key and its number", line.words.len())
}

impl Fabric {
    /// The peer's for so many hosts: three tiers of equal switches.
    ///
    /// # Errors
    /// Too many hosts.
    pub fn usual(matrix: &Matrix, text: &Text, warnings: &mut Vec<String>) -> Result<Self, ImportError> {
        let hosts = |k: u64| k * k * k / 4;
        // 2 ports are 2 hosts; the loop ends as a matrix has a limit.
        let k = (1..).map(|half: u64| 2 * half).find(|k| hosts(*k) >= matrix.nodes).unwrap_or(2);
        if hosts(k) != matrix.nodes {
            warnings.push(text.warning(
                matrix.nodes_line,
                format!(
                    "Nodes: no fat-tree has {} hosts, which the peer refuses; here it has {} with k = {k}, of which the \
                     last ones are idle",
                    matrix.nodes,
                    hosts(k)
                ),
            ));
        }
        let fabric = Self::FatTree(k as u32);
        fabric.build().map_err(|error| text.error(matrix.nodes_line, error.to_string()))?;
        Ok(fabric)
    }

    /// Reads a file for the hosts of a matrix.
    ///
    /// # Errors
    /// The first line that is not what it should be, or numbers that do not fit together.
    pub fn parse(text: &Text, matrix: &Matrix) -> Result<Self, ImportError> {
        let values = read(text)?;
        let (nodes, line) = values.get(None, "Nodes")?;
        values.hold(nodes == matrix.nodes, line, || {
            format!("Nodes: found {nodes}, but the matrix has {}", matrix.nodes)
        })?;
        let tiers = Tiers::of(&values)?;
        let fabric = Self::Tiers(tiers);
        fabric.build().map_err(|error| text.error(line, error.to_string()))?;
        Ok(fabric)
    }

    /// As our fabrics are made, to see that it can be.
    fn build(&self) -> Result<(), TopologyError> {
        let built = match self {
            Self::FatTree(k) => FatTree { k: *k, link: USUAL_LINK.ours() }.build(),
            Self::Tiers(tiers) => tiers.build(),
        };
        built.map(|_| ())
    }

    /// Writes the keys of `[topology]`.
    pub fn write(&self, page: &mut Page) {
        let tiers = match self {
            Self::FatTree(k) => {
                page.text("kind", "fat-tree", "");
                page.key("k", k, "the smallest that has so many hosts");
                page.key("link", USUAL_LINK.written(), "what the peer has without a file");
                return;
            }
            Self::Tiers(tiers) => tiers,
        };
        if tiers.latency {
            page.line(
                "# The switches' latency is in the delays: half of it on each side, so that every path has all of it.",
            );
        }
        let links: Vec<String> = tiers.links.iter().map(|link| link.written()).collect();
        const LINK: &str = "Downlink_speed_Gbps, Downlink_Latency_ns";
        let parallel = |page: &mut Page, key: &str, index: usize| {
            if tiers.bundle(index) > 1 {
                page.key(key, tiers.bundle(index), "Bundle");
            }
        };
        match (tiers.cores, &links[..]) {
            (Some(cores), [host, agg, core]) => {
                page.text("kind", "clos3", "Tiers");
                page.key("pods", tiers.pods, "Nodes / Podsize");
                page.key("tors_per_pod", tiers.tors_per_pod, "Podsize / Radix_Down");
                page.key("aggs_per_pod", tiers.aggs_per_pod, "Radix_Up");
                page.key("cores", cores, "Radix_Up");
                page.key("hosts_per_tor", tiers.hosts_per_tor, "Radix_Down");
                page.key("host_link", host, LINK);
                page.key("tor_agg_link", agg, LINK);
                page.key("agg_core_link", core, LINK);
                parallel(page, "tor_agg_links", 0);
                parallel(page, "agg_core_links", 1);
            }
            _ => {
                page.text("kind", "leaf-spine", "Tiers");
                page.key("leaves", tiers.tors_per_pod, "Podsize / Radix_Down");
                page.key("spines", tiers.aggs_per_pod, "Radix_Up");
                page.key("hosts_per_leaf", tiers.hosts_per_tor, "Radix_Down");
                page.key("host_link", links.first().map_or("", String::as_str), LINK);
                page.key("fabric_link", links.get(1).map_or("", String::as_str), LINK);
                parallel(page, "fabric_links", 0);
            }
        }
    }

    /// Bytes of each queue, if a file has them.
    pub fn queue(&self) -> Option<u64> {
        match self {
            Self::FatTree(_) => None,
            Self::Tiers(tiers) => tiers.queue,
        }
    }
}

impl Tiers {
    /// What the values come to.
    fn of(values: &Values<'_>) -> Result<Self, ImportError> {
        let (nodes, nodes_line) = values.get(None, "Nodes")?;
        let (tiers, tiers_line) = values.get(None, "Tiers")?;
        let (pod, pod_line) = values.get(None, "Podsize")?;
        for tier in 0..tiers {
            values.hold(values.tiers.contains_key(&tier), tiers_line, || {
                format!("Tiers: found {tiers}, but there is no `Tier {tier}`")
            })?;
        }
        for name in ["Radix_Up", "Queue_Up"] {
            if let Some((_, line)) = values.values.get(&(Some(tiers - 1), name)) {
                return Err(values.text.error(*line, format!("{name}: the top tier has no links up")));
            }
        }
        let of = |tier: u64, name| values.get(Some(tier), name);

        values.hold(nodes.is_multiple_of(pod), pod_line, || {
            format!("Podsize: found {pod}, allowed is what divides the {nodes} of line {nodes_line}")
        })?;
        values.hold(tiers == 3 || pod == nodes, pod_line, || {
            format!("Podsize: found {pod}, allowed is {nodes} as two tiers are one pod")
        })?;
        let pods = nodes / pod;
        let (bundle, line) = of(0, "Bundle")?;
        values.hold(bundle == 1, line, || format!("Bundle: found {bundle}, allowed is 1 as hosts have one link"))?;
        let (hosts_per_tor, line) = of(0, "Radix_Down")?;
        values.hold(pod.is_multiple_of(hosts_per_tor), line, || {
            format!("Radix_Down: found {hosts_per_tor}, allowed is what divides the {pod} hosts of a pod")
        })?;
        let tors_per_pod = pod / hosts_per_tor;

        // The switches below that each switch of a tier is linked to, and above each tier so many.
        let (mut below, mut above, mut bundles) = (tors_per_pod, Vec::new(), Vec::new());
        for tier in 1..tiers {
            let (bundle, bundle_line) = of(tier, "Bundle")?;
            let (up, up_line) = of(tier - 1, "Radix_Up")?;
            let (down, down_line) = of(tier, "Radix_Down")?;
            values.hold(up.is_multiple_of(bundle), bundle_line, || {
                format!("Bundle: found {bundle}, allowed is what divides the Radix_Up of line {up_line}, {up}")
            })?;
            values.hold(down == below * bundle, down_line, || {
                format!(
                    "Radix_Down: found {down}, but {below} switches below with {bundle} links each make {}",
                    below * bundle
                )
            })?;
            let speed = |tier| of(tier, "Downlink_speed_Gbps").map(|(gbps, _)| gbps);
            let ((over, over_line), (own, _)) = (of(tier - 1, "Oversubscribed")?, of(tier - 1, "Radix_Down")?);
            let (own_speed, up_speed) = (speed(tier - 1)?, speed(tier)?);
            values.hold(own * own_speed == up * up_speed * over, over_line, || {
                format!(
                    "Oversubscribed: found {over}, but tier {} has {own} links of {own_speed} Gbps down and {up} of \
                     {up_speed} Gbps up",
                    tier - 1
                )
            })?;
            above.push(up / bundle);
            bundles.push(bundle);
            below = pods;
        }
        let mut links = Vec::new();
        let (mut lower, mut latency) = (0, false);
        for tier in 0..tiers {
            let (gbps, _) = of(tier, "Downlink_speed_Gbps")?;
            let ((cable, _), (switch, _)) = (of(tier, "Downlink_Latency_ns")?, of(tier, "Switch_Latency_ns")?);
            let ps = cable * 1000 + (lower + switch) * 500;
            links.push(Link { rate: Rate::from_gbps(gbps), delay: Time::from_ps(ps) });
            latency |= switch > 0;
            lower = switch;
        }
        let aggs_per_pod = above.first().copied().unwrap_or(1);
        Ok(Self {
            pods,
            tors_per_pod,
            hosts_per_tor,
            aggs_per_pod,
            cores: above.get(1).map(|up| up * aggs_per_pod),
            links,
            bundles,
            latency,
            queue: queue(values, tiers)?,
        })
    }

    fn build(&self) -> Result<topology::Topology, TopologyError> {
        // All of them are products of what is in the file, each within the limit of nodes.
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let link = |index: usize| self.links.get(index).copied().unwrap_or(USUAL_LINK).ours();
        match self.cores {
            Some(cores) => Clos3 {
                pods: count(self.pods),
                tors_per_pod: count(self.tors_per_pod),
                aggs_per_pod: count(self.aggs_per_pod),
                cores: count(cores),
                hosts_per_tor: count(self.hosts_per_tor),
                host_link: link(0),
                tor_agg_link: link(1),
                agg_core_link: link(2),
                tor_agg_links: count(self.bundle(0)),
                agg_core_links: count(self.bundle(1)),
            }
            .build(),
            None => LeafSpine {
                leaves: count(self.tors_per_pod),
                spines: count(self.aggs_per_pod),
                hosts_per_leaf: count(self.hosts_per_tor),
                host_link: link(0),
                fabric_link: link(1),
                fabric_links: count(self.bundle(0)),
            }
            .build(),
        }
    }

    /// Parallel links between two switches of a tier above the lowest.
    fn bundle(&self, index: usize) -> u64 {
        self.bundles.get(index).copied().unwrap_or(1)
    }
}

/// Bytes of the queues, which have to be the same everywhere.
fn queue(values: &Values<'_>, tiers: u64) -> Result<Option<u64>, ImportError> {
    let mut first = None;
    for tier in 0..tiers {
        let names: &[&'static str] = if tier + 1 < tiers { &["Queue_Down", "Queue_Up"] } else { &["Queue_Down"] };
        for name in names {
            let (bytes, line) = values.get(Some(tier), name)?;
            let (same, other) = *first.get_or_insert((bytes, line));
            values.hold(bytes == same, line, || {
                let said = |bytes: u64| if bytes == 0 { "none".to_owned() } else { bytes.to_string() };
                format!(
                    "{name}: found {}, but {} at line {other}; queues of several sizes are not supported, allowed is one \
                     for all tiers and directions",
                    said(bytes),
                    said(same)
                )
            })?;
        }
    }
    Ok(first.map(|(bytes, _)| bytes).filter(|bytes| *bytes > 0))
}
