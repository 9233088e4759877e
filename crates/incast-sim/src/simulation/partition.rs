//! Which nodes share a domain, and how long a window is.

use crate::{engine::executor::LONGEST_WINDOW, fabric::topology::Topology};
use incast_units::Time;

/// Nodes by domain.
#[derive(Debug)]
pub struct Partition {
    /// The domain of each node.
    pub domain_of: Vec<u32>,
    /// The nodes of each domain, ascending; domains are ordered by their first node.
    pub nodes: Vec<Vec<u32>>,
    /// The least delay between domains, at most the longest window.
    pub lookahead: Time,
}

/// Links shorter than this are not worth a window each: their ends share a domain. If that would lump too much
/// together to run in parallel, the shorter limits are tried.
const LEAST_LOOKAHEADS: [Time; 4] = [Time::from_ns(250), Time::from_ns(100), Time::from_ns(50), Time::from_ns(20)];

/// A domain of this size is small, whatever the fabric.
const SMALL: usize = 64;

impl Partition {
    /// Divides a topology. Results do not depend on it, speed does.
    pub fn of(topology: &Topology) -> Self {
        let nodes = topology.nodes() as usize;
        let fits = |partition: &Self| partition.nodes.iter().all(|domain| domain.len() <= SMALL.max(nodes / 4));
        let mut candidates = LEAST_LOOKAHEADS.iter().map(|least| Self::with(topology, *least));
        candidates.find(fits).unwrap_or_else(|| Self::with(topology, LEAST_LOOKAHEADS[0]))
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
        let mut index = vec![u32::MAX; nodes as usize];
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut domain_of = Vec::with_capacity(nodes as usize);
        for node in 0..nodes {
            let root = root(&mut parent, node) as usize;
            if index[root] == u32::MAX {
                index[root] = members.len() as u32;
                members.push(Vec::new());
            }
            domain_of.push(index[root]);
            members[index[root] as usize].push(node);
        }
        let between = topology.cables.iter().filter(|cable| domain_of[cable.a as usize] != domain_of[cable.b as usize]);
        let lookahead = between.map(|cable| cable.link.delay).min().unwrap_or(LONGEST_WINDOW).min(LONGEST_WINDOW);
        Self { domain_of, nodes: members, lookahead }
    }
}
