//! Topologies: which nodes exist, which cables join them, and how each switch routes.
//!
//! Hosts are nodes `0..hosts`, switches follow. Every host has one cable, and cable `h` is that of host `h`; the hosts
//! of a switch of a regular topology have consecutive numbers. A node's ports are numbered in the order of
//! [`Topology::cables`]. One file per kind; [`ports`] holds the ports, [`names`](Topology::find_node) the names of
//! nodes, ports and cables, [`reach`](Topology::unreachable_pairs) what is connected.

mod chain;
mod check;
mod clos3;
mod divider;
mod dumbbell;
mod fat_tree;
pub mod file;
pub mod ideal;
mod leaf_spine;
pub mod multipath;
mod names;
pub mod ports;
mod reach;
mod ring;
mod rule;
mod single_switch;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use incast_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use chain::Chain;
pub use check::{MAX_CABLES, MAX_DELAY, MAX_NODES, MAX_PORTS, MIN_RATE};
pub use clos3::Clos3;
pub use divider::Divider;
pub use dumbbell::Dumbbell;
pub use fat_tree::FatTree;
pub use file::File;
pub use leaf_spine::LeafSpine;
pub use ports::{PortEnd, Ports};
pub use ring::Ring;
pub use rule::{Destination, RoutingTable, Rule, salted_hash};
pub use single_switch::SingleSwitch;
pub use tables::{TooManySets, tables};

/// A node: hosts first, then switches.
pub type Node = u32;

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Rate in each direction.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Probability that a packet is lost on the link, in [0, 1).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss: f64,
}

fn is_zero(loss: &f64) -> bool {
    *loss == 0.0
}

const fn one() -> u32 {
    1
}

const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// A fabric, by kind.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Topology", tag = "kind")]
pub enum TopologyConfig {
    /// All hosts on one switch.
    SingleSwitch(SingleSwitch),
    /// Two switches with hosts, joined by one link.
    Dumbbell(Dumbbell),
    /// Two tiers: every leaf is linked to every spine.
    LeafSpine(LeafSpine),
    /// Three tiers of equal switches with `k` ports: k³/4 hosts.
    FatTree(FatTree),
    /// Three tiers with free numbers.
    Clos3(Clos3),
    /// Switches in a row, each with hosts.
    Chain(Chain),
    /// Switches in a ring, each with hosts.
    Ring(Ring),
    /// Nodes and links from a file.
    File(File),
}

impl TopologyConfig {
    /// Builds the fabric. `text` is the content of the file that [`Self::File`] names; the other kinds ignore it.
    ///
    /// # Errors
    /// The first value that is out of range, or the first bad line of the file.
    pub fn build(&self, text: &str) -> Result<Topology, TopologyError> {
        match self {
            Self::SingleSwitch(kind) => kind.build(),
            Self::Dumbbell(kind) => kind.build(),
            Self::LeafSpine(kind) => kind.build(),
            Self::FatTree(kind) => kind.build(),
            Self::Clos3(kind) => kind.build(),
            Self::Chain(kind) => kind.build(),
            Self::Ring(kind) => kind.build(),
            Self::File(_) => file::parse(text),
        }
    }
}

/// A link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cable {
    /// The end nearer to the hosts, or the one named first.
    pub a: Node,
    /// The other end.
    pub b: Node,
    /// Its properties.
    pub link: Link,
}

/// The tier of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// It has hosts.
    Edge,
    /// It has none.
    Fabric,
}

/// Nodes, cables and routes.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The kind as in a scenario: `leaf-spine`.
    pub kind: &'static str,
    /// Number of hosts.
    pub hosts: u32,
    /// Names of all nodes, unique, hosts first: `h0`, `leaf3`.
    pub names: Vec<String>,
    /// All cables. The first `hosts` are those of the hosts, in order, with the host as end `a`.
    pub cables: Vec<Cable>,
    /// The routing rule of each switch, by switch index (node - hosts).
    pub rules: Vec<Rule>,
}

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// A parameter has an impossible value.
    #[error("`{key}` is {found}, allowed is {allowed}")]
    Value {
        /// The key as in a scenario.
        key: &'static str,
        /// What was given.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// A topology file cannot be used.
    #[error("{}{message}", place(*line))]
    File {
        /// Line, from 1; 0 for the whole file.
        line: usize,
        /// What is wrong and what is allowed.
        message: String,
    },
}

fn place(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

impl Topology {
    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.nodes() - self.hosts
    }

    /// Number of nodes: hosts and switches.
    pub fn nodes(&self) -> u32 {
        self.names.len() as u32
    }

    /// The ports of all nodes. Takes time and memory in proportion to the cables: call it once and keep the answer.
    pub fn ports(&self) -> Ports {
        Ports::new(self.nodes(), &self.cables)
    }

    /// The switch of a host; `None` if `host` is not a host.
    pub fn edge_of(&self, host: Node) -> Option<Node> {
        let cable = self.cables.get(host as usize).filter(|cable| host < self.hosts && cable.a == host)?;
        Some(cable.b)
    }

    /// The tier of a switch (a node number, not an index). See [`Topology::tiers`] for all at once.
    pub fn tier(&self, switch: Node) -> Tier {
        let has_hosts = (0..self.hosts).any(|host| self.edge_of(host) == Some(switch));
        if has_hosts { Tier::Edge } else { Tier::Fabric }
    }

    /// The tier of each switch, by switch index (node - hosts).
    pub fn tiers(&self) -> Vec<Tier> {
        let mut tiers = vec![Tier::Fabric; self.switches() as usize];
        for edge in (0..self.hosts).filter_map(|host| self.edge_of(host)) {
            tiers[(edge - self.hosts) as usize] = Tier::Edge;
        }
        tiers
    }
}

/// Names `prefix0`, `prefix1`, …
fn numbered(prefix: &'static str, count: u32) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{prefix}{number}"))
}
