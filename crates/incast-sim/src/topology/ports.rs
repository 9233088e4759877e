//! The ports of the nodes: what is at the other end of each.

use super::{Cable, Node};

/// The far side of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortEnd {
    /// Index of the cable, into [`Topology::cables`](super::Topology::cables).
    pub cable: u32,
    /// The node at the other end.
    pub peer: Node,
    /// The port of that node.
    pub peer_port: u16,
}

/// The ports of all nodes, by node and port number.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Where the ports of each node start in `ends`; one more at the end.
    start: Vec<u32>,
    ends: Vec<PortEnd>,
}

impl Ports {
    /// Numbers the ports of each node in the order of `cables`. Ends must be below `nodes`.
    pub(super) fn new(nodes: u32, cables: &[Cable]) -> Self {
        let mut start = vec![0u32; nodes as usize + 1];
        for cable in cables {
            start[cable.a as usize + 1] += 1;
            start[cable.b as usize + 1] += 1;
        }
        for node in 0..nodes as usize {
            start[node + 1] += start[node];
        }
        let mut next = start.clone();
        let mut ends = vec![PortEnd { cable: 0, peer: 0, peer_port: 0 }; 2 * cables.len()];
        for (index, cable) in cables.iter().enumerate() {
            let [a, b] = [cable.a, cable.b].map(|node| node as usize);
            let [at_a, at_b] = [next[a], next[b]];
            next[a] += 1;
            next[b] += 1;
            let end = |peer: Node, place: u32| PortEnd {
                cable: index as u32,
                peer,
                peer_port: (place - start[peer as usize]) as u16,
            };
            ends[at_a as usize] = end(cable.b, at_b);
            ends[at_b as usize] = end(cable.a, at_a);
        }
        Self { start, ends }
    }

    /// The ports of a node, by port number; none if there is no such node.
    pub fn of(&self, node: Node) -> &[PortEnd] {
        let node = node as usize;
        match (self.start.get(node), self.start.get(node + 1)) {
            (Some(&start), Some(&end)) => &self.ends[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The far side of a port; `None` if there is no such port.
    pub fn end(&self, node: Node, port: u16) -> Option<PortEnd> {
        self.of(node).get(usize::from(port)).copied()
    }

    /// Number of ports of all nodes together: twice the cables.
    pub fn total(&self) -> usize {
        self.ends.len()
    }

    /// The port of `node` at a cable; `None` if the cable is not at that node.
    pub fn at(&self, node: Node, cable: usize) -> Option<u16> {
        self.of(node).iter().position(|end| end.cable as usize == cable).map(|port| port as u16)
    }
}
