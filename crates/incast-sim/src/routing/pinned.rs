//! Paths that the sender chooses, so that a run can follow the paths of another simulator or of a real network.

use crate::{
    packet::Packet,
    topology::{Node, Ports, Rule, Topology},
};
use thiserror::Error;

/// A flow's paths there and back: the choices among equal-cost ports, one number for each direction.
///
/// The number is in mixed radix, the first choice being its least digit: a switch with n equal-cost ports takes the
/// remainder by n as the index of its port, and passes on the quotient. Sixteen bits make as many paths as any fabric
/// in use has between two hosts (a fat-tree with k = 64 has 1,024).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// From sender to receiver.
    pub there: u16,
    /// From receiver to sender.
    pub back: u16,
}

impl Pinned {
    /// What the flow's packets carry in place of a hash.
    pub const fn hash(self) -> u32 {
        self.there as u32 | (self.back as u32) << 16
    }
}

impl Rule {
    /// The port that the sender chose for a packet, and the hash with which the packet goes on: its next choice is
    /// for the next switch.
    #[inline(always)]
    pub fn pick_pinned(&self, packet: &Packet) -> Option<(u16, u32)> {
        if let Some((base, paths)) = self.of_tree(packet.destination) {
            let (choice, hash) = step(packet, paths)?;
            return Some((base + choice, hash));
        }
        let candidates = self.candidates(packet.destination);
        let (choice, hash) = step(packet, candidates.count())?;
        Some((candidates.nth(choice)?, hash))
    }

    /// The same, without taking the step.
    #[inline]
    pub fn peek_pinned(&self, packet: &Packet) -> Option<u16> {
        Some(self.pick_pinned(packet)?.0)
    }
}

/// The choice of a packet's sender among so many next hops, and the hash for the choices after it; `None` where there
/// are none.
#[inline(always)]
fn step(packet: &Packet, paths: u16) -> Option<(u16, u32)> {
    let path = packet.pinned_path();
    // Most switches have a power of two: a shift instead of a division. A single choice, down a tree, changes nothing
    // and takes the same branch: whether a packet goes up or down is unpredictable.
    let (ahead, choice) = if paths.is_power_of_two() {
        (path >> paths.trailing_zeros(), path & (paths - 1))
    } else {
        (path.checked_div(paths)?, path.checked_rem(paths)?)
    };
    Some((choice, packet.hash_of_path(ahead)))
}

/// Why nodes are not a path of equal-cost hops.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PinError {
    /// A path has a host at either end and switches between.
    #[error("a path leads from a host over switches to a host")]
    Ends,
    /// Two nodes that are not neighbours, or not on a shortest path.
    #[error("no shortest path to {2} leads from {0} to {1}")]
    Step(String, String, String),
    /// More paths than a number can name.
    #[error("there are more than 65,536 equal-cost paths from {0} to {1}")]
    TooMany(String, String),
}

/// The number of the path over `nodes`, of which the first and the last are hosts. Of several cables between two
/// switches it takes the one with the lowest port.
///
/// # Errors
/// See [`PinError`].
pub fn pin(topology: &Topology, ports: &Ports, nodes: &[Node]) -> Result<u16, PinError> {
    let (Some(source), Some(destination)) = (nodes.first(), nodes.last()) else { return Err(PinError::Ends) };
    let switches = nodes.get(1..nodes.len() - 1).unwrap_or(&[]);
    if (*source).max(*destination) >= topology.hosts
        || source == destination
        || switches.is_empty()
        || switches.iter().any(|node| *node < topology.hosts || *node >= topology.nodes())
    {
        return Err(PinError::Ends);
    }
    let name = |node: Node| topology.node_name(node);
    let step = |from: Node, to: Node| PinError::Step(name(from), name(to), name(*destination));
    if ports.end(*source, 0).is_none_or(|end| end.peer != switches[0]) {
        return Err(step(*source, switches[0]));
    }
    let (mut path, mut radix) = (0u64, 1u64);
    for pair in nodes[1..].windows(2) {
        let rule = &topology.rules[(pair[0] - topology.hosts) as usize];
        let leads_on = |port: u16| ports.end(pair[0], port).is_some_and(|end| end.peer == pair[1]);
        let choice = rule.alternatives(*destination).position(leads_on).ok_or_else(|| step(pair[0], pair[1]))?;
        path += radix * choice as u64;
        radix = radix.saturating_mul(rule.alternatives(*destination).count() as u64);
        if radix > 1 << 16 {
            return Err(PinError::TooMany(name(*source), name(*destination)));
        }
    }
    Ok(path as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        packet::Kind,
        topology::{FatTree, Link, SingleSwitch},
    };
    use incast_units::{Rate, Time};
    use proptest::prelude::*;

    const LINK: Link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.0 };

    /// The nodes that a pinned packet passes, from the first switch on.
    fn walk(topology: &Topology, ports: &Ports, mut packet: Packet, from: Node) -> Vec<Node> {
        let mut nodes = vec![from];
        let mut node = ports.end(from, 0).expect("a host has a link").peer;
        while node >= topology.hosts {
            nodes.push(node);
            let rule = &topology.rules[(node - topology.hosts) as usize];
            let (port, hash) = rule.pick_pinned(&packet).expect("a route");
            packet.ecmp_hash = hash;
            node = ports.end(node, port).expect("a port").peer;
        }
        nodes.push(node);
        nodes
    }

    #[test]
    fn every_path_of_a_fat_tree_is_followed_there_and_back() {
        let topology = FatTree { k: 4, link: LINK }.build().expect("a good topology");
        let ports = topology.ports();
        let mut paths = std::collections::BTreeSet::new();
        for there in 0..4 {
            for back in 0..4 {
                let mut data = Packet::new(Kind::Data, 0, 15, 0, 0);
                data.ecmp_hash = Pinned { there, back }.hash();
                let nodes = walk(&topology, &ports, data, 0);
                assert_eq!(nodes.len(), 7);
                assert_eq!(pin(&topology, &ports, &nodes), Ok(there));
                let mut answer = Packet::new(Kind::Ack, 15, 0, 0, 0);
                answer.ecmp_hash = data.reverse_hash();
                let back_nodes = walk(&topology, &ports, answer, 15);
                assert_eq!(pin(&topology, &ports, &back_nodes), Ok(back));
                paths.insert((nodes, back_nodes));
            }
        }
        assert_eq!(paths.len(), 16);
    }

    #[test]
    fn says_what_is_no_path() {
        let topology = SingleSwitch { hosts: 3, link: LINK }.build().expect("a good topology");
        let ports = topology.ports();
        assert_eq!(pin(&topology, &ports, &[0, 3, 2]), Ok(0));
        for nodes in [&[][..], &[0], &[0, 2], &[0, 1, 2], &[0, 3, 0], &[3, 3, 0], &[0, 9, 2], &[0, 3, 3]] {
            assert_eq!(pin(&topology, &ports, nodes), Err(PinError::Ends), "{nodes:?}");
        }
        let tree = FatTree { k: 4, link: LINK }.build().expect("a good topology");
        let wrong = pin(&tree, &tree.ports(), &[0, 16, 17, 15]);
        assert!(matches!(wrong, Err(PinError::Step(..))), "{wrong:?}");
    }

    proptest! {
        /// The path is a number in mixed radix, whatever the number of ports, and the half for answers stays as it is.
        /// A single next hop is no choice.
        #[test]
        fn a_step_takes_the_least_digit(hash in any::<u32>(), paths in 1u16..100, is_answer in any::<bool>()) {
            let kind = if is_answer { Kind::Ack } else { Kind::Data };
            let packet = Packet::new(kind, 0, 2, 0, 0).with_hash(hash);
            let (choice, ahead) = step(&packet, paths).expect("there are paths");
            prop_assert_eq!(choice, packet.pinned_path() % paths);
            prop_assert_eq!(packet.with_hash(ahead).pinned_path(), packet.pinned_path() / paths);
            prop_assert_eq!(ahead >> 16, hash >> 16);
            prop_assert_eq!(step(&packet, 1), Some((0, hash)));
            prop_assert_eq!(step(&packet, 0), None);
        }

        /// With a table, and down a tree.
        #[test]
        fn a_switch_with_one_next_hop_leaves_the_hash_as_it_is(hash in any::<u32>()) {
            let star = SingleSwitch { hosts: 3, link: LINK }.build().expect("a good topology");
            let tree = FatTree { k: 4, link: LINK }.build().expect("a good topology");
            for (rule, destination) in [(&star.rules[0], 2), (&tree.rules[0], 1)] {
                for kind in [Kind::Data, Kind::Ack] {
                    let packet = Packet::new(kind, 0, destination, 0, 0).with_hash(hash);
                    prop_assert_eq!(rule.alternatives(destination).count(), 1);
                    let port = rule.alternatives(destination).next().expect("one");
                    prop_assert_eq!(rule.pick_pinned(&packet), Some((port, hash)));
                }
            }
        }
    }
}
