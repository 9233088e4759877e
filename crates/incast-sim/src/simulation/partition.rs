//! Which nodes share a domain, and how long a window is.

use crate::{engine::executor::LONGEST_WINDOW, topology::Topology};
use incast_units::Time;

/// Nodes by domain.
#[derive(Debug)]
pub struct Partition {
    /// The domain of each node.
    pub domain_of: Vec<u32>,
    /// The nodes of each domain, ascending; domains that are near each other in the fabric have near numbers, so that
    /// threads, which take ranges of domains, exchange little.
    pub nodes: Vec<Vec<u32>>,
    /// The least delay between domains, at most the longest window.
    pub lookahead: Time,
}

/// Links shorter than this are not worth a window each: their ends share a domain. If domains then become too large to
/// run in parallel, the shorter limits are tried.
const LEAST_LOOKAHEADS: [Time; 4] =
    [Time::from_ns(250), Time::from_ns(100), Time::from_ns(50), Time::from_ns(20)];

/// A domain of at most this size is small in any fabric.
const SMALL: usize = 64;

impl Partition {
    /// Divides a topology into domains. Speed depends on it, results do not.
    pub fn of(topology: &Topology) -> Self {
        let nodes = topology.nodes() as usize;
        let fits =
            |partition: &Self| partition.nodes.iter().all(|domain| domain.len() <= SMALL.max(nodes / 4));
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
        let between =
            topology.cables.iter().filter(|cable| domain_of[cable.a as usize] != domain_of[cable.b as usize]);
        let lookahead =
            between.map(|cable| cable.link.delay).min().unwrap_or(LONGEST_WINDOW).min(LONGEST_WINDOW);
        Self { domain_of, nodes: members, lookahead }
    }
}

/// Positions of nodes on a line: hosts in their order, each switch in the middle of the nodes below it.
fn places(topology: &Topology) -> Vec<f64> {
    let (hosts, nodes) = (topology.hosts as usize, topology.nodes() as usize);
    let ports = topology.ports();
    let mut places: Vec<f64> =
        (0..nodes).map(|node| if node < hosts { node as f64 } else { f64::NAN }).collect();
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
            let below = ports
                .of(*switch as u32)
                .iter()
                .map(|end| places[end.peer as usize])
                .filter(|place| !place.is_nan());
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
