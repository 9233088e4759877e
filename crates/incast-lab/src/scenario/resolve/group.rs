//! Some of the switches of a fabric.

use incast_sim::topology::{Ports, Topology};
use incast_units::Rate;

/// The switches that a table is for.
#[derive(Debug)]
pub struct Group<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// Its ports.
    pub ports: &'a Ports,
    /// The switches.
    pub nodes: Vec<u32>,
}

impl Group<'_> {
    /// Ports of the switch with the most of them.
    pub fn most_ports(&self) -> u64 {
        self.nodes.iter().map(|node| self.ports.of(*node).len() as u64).max().unwrap_or(0)
    }

    /// The switch whose ports have the highest sum of rates, and that sum.
    pub fn fastest(&self) -> Option<(u32, Rate)> {
        let rate = |node: u32| self.ports.of(node).iter().map(|end| self.topology.cables[end.cable as usize].link.rate);
        let sum = |node: u32| rate(node).fold(0u64, |sum, rate| sum.saturating_add(rate.bps()));
        let fastest =
            self.nodes.iter().map(|node| (*node, sum(*node))).max_by_key(|(node, sum)| (*sum, u32::MAX - node));
        fastest.map(|(node, sum)| (node, Rate::from_bps(sum)))
    }

    /// The rates of all their ports, each as often as there are such ports.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        let ports = self.nodes.iter().flat_map(|node| self.ports.of(*node));
        ports.map(|end| self.topology.cables[end.cable as usize].link.rate)
    }
}
