//! Which nodes share a domain, and how long a window is.

use crate::{
    engine::executor::LONGEST_LOOKAHEAD,
    topology::{Cable, Topology},
};
use incast_units::Time;

/// Nodes by domain.
#[derive(Debug)]
pub struct Partition {
    /// The domain of each node.
    pub domain_of: Vec<u32>,
    /// The nodes of each domain, ascending; domains of a colour that are near each other in the fabric have near numbers,
    /// so that threads, which take ranges of domains, exchange little.
    pub nodes: Vec<Vec<u32>>,
    /// The least delay between domains, at most the longest lookahead.
    pub lookahead: Time,
    /// The number of domains, the first ones, of one colour: every cable between domains is between those and the others.
    /// None where there is no such division.
    pub colours: Option<usize>,
}

/// Links shorter than this are not worth a window each: their ends share a domain. If domains then become too large to
/// run in parallel, the shorter limits are tried.
const LEAST_LOOKAHEADS: [Time; 4] = [Time::from_ns(250), Time::from_ns(100), Time::from_ns(50), Time::from_ns(20)];

/// A domain of at most this size is small in any fabric.
const SMALL: usize = 64;

impl Partition {
    /// Divides a topology into domains. Speed depends on it, results do not.
    pub fn of(topology: &Topology) -> Self {
        let nodes = topology.nodes() as usize;
        let fits = |partition: &Self| partition.nodes.iter().all(|domain| domain.len() <= SMALL.max(nodes / 4));
        let mut candidates = LEAST_LOOKAHEADS.iter().map(|least| Self::with(topology, *least));
        let found = candidates.find(fits).unwrap_or_else(|| Self::with(topology, LEAST_LOOKAHEADS[0]));
        found.by_colour(topology)
    }

    fn with(topology: &Topology, least: Time) -> Self {
        let nodes = topology.nodes();
        let mut parent: Vec<u32> = (0..nodes).collect();
        fn root(parent: &mut [u32], mut node: u32) -> u32 {
            while parent[node as usize] != node {
                parent[node as usize] = parent[parent[node as usize] as usize];
                node = parent[node as usize];
            }
            node
        }
        for cable in topology.cables.iter().filter(|cable| cable.link.delay < least) {
            let (a, b) = (root(&mut parent, cable.a), root(&mut parent, cable.b));
            // The smaller number stays the root, so that domains are ordered by their first node.
            parent[a.max(b) as usize] = a.min(b);
        }
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
        for node in 0..nodes {
            members[root(&mut parent, node) as usize].push(node);
        }
        members.retain(|domain| !domain.is_empty());
        let places = places(topology);
        members.sort_by(|a, b| places[a[0] as usize].total_cmp(&places[b[0] as usize]).then(a[0].cmp(&b[0])));
        let mut domain_of = vec![0; nodes as usize];
        for (index, domain) in members.iter().enumerate() {
            domain.iter().for_each(|node| domain_of[*node as usize] = index as u32);
        }
        let between = topology.cables.iter().filter(|cable| domain_of[cable.a as usize] != domain_of[cable.b as usize]);
        let lookahead = between.map(|cable| cable.link.delay).min().unwrap_or(LONGEST_LOOKAHEAD).min(LONGEST_LOOKAHEAD);
        Self { domain_of, nodes: members, lookahead, colours: None }
    }

    /// Numbers the domains anew, colour by colour, if they can be divided so.
    fn by_colour(mut self, topology: &Topology) -> Self {
        let Some(colours) = colours(topology, &self.domain_of, self.nodes.len()) else { return self };
        let (one, other): (Vec<_>, Vec<_>) = self.nodes.into_iter().zip(colours).partition(|(_, colour)| *colour == 0);
        self.colours = Some(one.len());
        self.nodes = one.into_iter().chain(other).map(|(domain, _)| domain).collect();
        for (index, domain) in self.nodes.iter().enumerate() {
            domain.iter().for_each(|node| self.domain_of[*node as usize] = index as u32);
        }
        self
    }
}

/// Divides domains in two so that every cable between domains is between the two sides: in a tree hosts and every second
/// layer of switches are on one side. 0 or 1 for each; none where a cycle of domains has an odd length.
fn colours(topology: &Topology, domain_of: &[u32], domains: usize) -> Option<Vec<u8>> {
    let ends = |cable: &Cable| (domain_of[cable.a as usize], domain_of[cable.b as usize]);
    let mut neighbours = vec![Vec::new(); domains];
    for (one, other) in topology.cables.iter().map(ends).filter(|(one, other)| one != other) {
        neighbours[one as usize].push(other);
        neighbours[other as usize].push(one);
    }
    const NONE: u8 = 2;
    let mut colours = vec![NONE; domains];
    let mut reached = Vec::new();
    for first in 0..domains {
        if colours[first] != NONE {
            continue;
        }
        colours[first] = 0;
        reached.push(first);
        while let Some(domain) = reached.pop() {
            for neighbour in neighbours[domain].iter().map(|neighbour| *neighbour as usize) {
                if colours[neighbour] == NONE {
                    colours[neighbour] = 1 - colours[domain];
                    reached.push(neighbour);
                } else if colours[neighbour] == colours[domain] {
                    return None;
                }
            }
        }
    }
    Some(colours)
}

/// Positions of nodes on a line: hosts in their order, each switch in the middle of the nodes below it.
fn places(topology: &Topology) -> Vec<f64> {
    let (hosts, nodes) = (topology.hosts as usize, topology.nodes() as usize);
    let ports = topology.ports();
    let mut places: Vec<f64> = (0..nodes).map(|node| if node < hosts { node as f64 } else { f64::NAN }).collect();
    let mut level: Vec<usize> = (0..hosts).collect();
    while !level.is_empty() {
        let mut above: Vec<usize> = level
            .iter()
            .flat_map(|node| ports.of(*node as u32).iter().map(|end| end.peer as usize))
            .filter(|peer| places[*peer].is_nan())
            .collect();
        above.sort_unstable();
        above.dedup();
        let middle = |switch: &usize| {
            let below =
                ports.of(*switch as u32).iter().map(|end| places[end.peer as usize]).filter(|place| !place.is_nan());
            let (sum, count) = below.fold((0.0, 0.0), |(sum, count), place| (sum + place, count + 1.0));
            sum / count
        };
        let middles: Vec<f64> = above.iter().map(middle).collect();
        above.iter().zip(middles).for_each(|(switch, place)| places[*switch] = place);
        level = above;
    }
    // Switches without any path to a host are at the end.
    places.iter_mut().filter(|place| place.is_nan()).for_each(|place| *place = hosts as f64);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{FatTree, Link, Ring, SingleSwitch};
    use incast_units::Rate;

    #[test]
    fn domains_are_divided_where_they_can_be() {
        let link = |ns| Link { rate: Rate::from_gbps(100), delay: Time::from_ns(ns), loss: 0.0 };
        let tree = |ns| FatTree { k: 4, link: link(ns) }.build().expect("a tree");
        let ring = |switches, ns| {
            Ring { switches, hosts_per_switch: 1, host_link: link(1_000), fabric_link: link(ns) }
                .build()
                .expect("a ring")
        };
        let single = SingleSwitch { hosts: 3, link: link(1_000) }.build().expect("a switch");
        // 16 hosts and 8 aggregation switches; hosts; hosts and every second switch, or the switches alone.
        for (topology, expected) in [
            (tree(1_000), Some(24)),
            (single, Some(3)),
            (ring(4, 1_000), Some(4)),
            (ring(5, 1_000), None),
            (ring(5, 10), Some(5)),
        ] {
            let partition = Partition::of(&topology);
            assert_eq!(partition.colours, expected, "{}", topology.kind);
            let Some(first) = partition.colours else { continue };
            for cable in &topology.cables {
                let (a, b) =
                    (partition.domain_of[cable.a as usize] as usize, partition.domain_of[cable.b as usize] as usize);
                assert!(a == b || (a < first) != (b < first));
            }
            for (index, nodes) in partition.nodes.iter().enumerate() {
                assert!(nodes.iter().all(|node| partition.domain_of[*node as usize] as usize == index));
            }
        }
    }
}
