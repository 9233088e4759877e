//! Names of nodes, cables and ports, as scenarios and results use them.
//!
//! A cable is named after its ends in either order, `leaf0-spine1`, and a port after its node and its peer, `s0->h0`.
//! Of several cables between the same two nodes the first has the plain name and the others `s0-s1#1`, `s0-s1#2`;
//! likewise ports, `s0->s1#1`.

use super::{Node, Ports, Topology};

impl Topology {
    /// The node of that name.
    pub fn find_node(&self, name: &str) -> Option<Node> {
        self.names.iter().position(|known| known == name).map(|node| node as Node)
    }

    /// The name of a node; its number if there is no such node.
    pub fn node_name(&self, node: Node) -> String {
        self.names.get(node as usize).cloned().unwrap_or_else(|| node.to_string())
    }

    /// The index of the cable of that name, `leaf0-spine1` or `spine1-leaf0`.
    pub fn find_cable(&self, name: &str) -> Option<usize> {
        let (ends, copy) = split_copy(name)?;
        // Names of files may have hyphens of their own.
        ends.match_indices('-').find_map(|(at, _)| {
            let (a, b) = (self.find_node(&ends[..at])?, self.find_node(&ends[at + 1..])?);
            let joins =
                |&(_, cable): &(usize, &super::Cable)| (cable.a, cable.b) == (a, b) || (cable.a, cable.b) == (b, a);
            self.cables.iter().enumerate().filter(joins).nth(copy).map(|(index, _)| index)
        })
    }

    /// The name of a cable, `leaf0-spine1`; `None` if there is no such cable.
    pub fn cable_name(&self, cable: usize) -> Option<String> {
        let this = self.cables.get(cable)?;
        let same =
            |other: &&super::Cable| (other.a, other.b) == (this.a, this.b) || (other.a, other.b) == (this.b, this.a);
        let copy = self.cables[..cable].iter().filter(same).count();
        Some(with_copy(format!("{}-{}", self.names[this.a as usize], self.names[this.b as usize]), copy))
    }

    /// The node and port of that name, `s0->h0`.
    pub fn find_port(&self, name: &str) -> Option<(Node, u16)> {
        let (ends, copy) = split_copy(name)?;
        let (node, peer) = ends.split_once("->")?;
        let (node, peer) = (self.find_node(node)?, self.find_node(peer)?);
        let ports = self.ports();
        let leads = |(port, end): (usize, &super::PortEnd)| (end.peer == peer).then_some(port as u16);
        let port = ports.of(node).iter().enumerate().filter_map(leads).nth(copy)?;
        Some((node, port))
    }

    /// The name of a port, `s0->h0`; `None` if there is no such port. Collects all ports first: where many names are
    /// wanted, use [`Ports::name`].
    pub fn port_name(&self, node: Node, port: u16) -> Option<String> {
        self.ports().name(self, node, port)
    }
}

impl Ports {
    /// The name of a port of `topology`, whose ports these are: `s0->h0`; `None` if there is no such port.
    pub fn name(&self, topology: &Topology, node: Node, port: u16) -> Option<String> {
        let ends = self.of(node);
        let peer = ends.get(usize::from(port))?.peer;
        let copy = ends[..usize::from(port)].iter().filter(|end| end.peer == peer).count();
        let name = |node: Node| topology.names.get(node as usize);
        Some(with_copy(format!("{}->{}", name(node)?, name(peer)?), copy))
    }
}

/// Splits `s0-s1#2` into `s0-s1` and 2.
fn split_copy(name: &str) -> Option<(&str, usize)> {
    match name.split_once('#') {
        None => Some((name, 0)),
        Some((ends, copy)) => Some((ends, copy.parse().ok()?)),
    }
}

fn with_copy(name: String, copy: usize) -> String {
    if copy == 0 { name } else { format!("{name}#{copy}") }
}
