//! Names of nodes and ports in results.

use incast_sim::topology::{Tier, Topology};
use std::ops::Range;

/// Names that outlive the topology, which the simulation consumes.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    hosts: u32,
    names: Vec<String>,
    /// For each node, the node at the other end of each port.
    peers: Vec<Vec<u32>>,
}

impl Labels {
    /// Of a topology: ports are numbered in the order of its cables.
    pub fn new(topology: &Topology) -> Self {
        let mut peers = vec![Vec::new(); topology.names.len()];
        for cable in &topology.cables {
            for (node, peer) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if let Some(ports) = peers.get_mut(node as usize) {
                    ports.push(peer);
                }
            }
        }
        Self { hosts: topology.hosts, names: topology.names.clone(), peers }
    }

    /// The hosts, which are the first nodes.
    pub fn hosts(&self) -> Range<u32> {
        0..self.hosts
    }

    /// Name of a node.
    pub fn node(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("?", String::as_str)
    }

    /// Name of an egress port, `s0->h0`; of parallel cables to one peer the second is `s0->s1#1`.
    pub fn port(&self, node: u32, port: u16) -> String {
        let ports = self.peers.get(node as usize).map_or(&[][..], Vec::as_slice);
        let Some(peer) = ports.get(usize::from(port)) else { return format!("{}->?", self.node(node)) };
        let before = ports.iter().take(usize::from(port)).filter(|other| *other == peer).count();
        let name = format!("{}->{}", self.node(node), self.node(*peer));
        if before == 0 { name } else { format!("{name}#{before}") }
    }

    /// The node at the other end of a port.
    pub fn peer(&self, node: u32, port: u16) -> Option<u32> {
        self.peers.get(node as usize)?.get(usize::from(port)).copied()
    }

    /// Where a switch stands; `None` for a host.
    pub fn tier(&self, node: u32) -> Option<Tier> {
        if node < self.hosts {
            return None;
        }
        let edge = self.peers.get(node as usize).is_some_and(|ports| ports.iter().any(|peer| *peer < self.hosts));
        Some(if edge { Tier::Edge } else { Tier::Fabric })
    }
}
