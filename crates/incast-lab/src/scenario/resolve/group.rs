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

    /// The rates of all their ports, each as often as there are such ports.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        let ports = self.nodes.iter().flat_map(|node| self.ports.of(*node));
        ports.map(|end| self.topology.cables[end.cable as usize].link.rate)
    }
}
