//! Shortest-path tables of any graph: for files, and for fabrics with links that are down.

use super::{RoutingTable, Topology};
use std::collections::BTreeMap;
use thiserror::Error;

const FAR: u32 = u32::MAX;

/// Number of different sets of ports in a table: the one without a port, each port alone, and those of several
/// ports.
const MOST_SETS: usize = 1 << 16;

/// A switch has more different sets of equal-cost ports than its table can hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("switch {switch} needs more than {most} different sets of equal-cost ports")]
pub struct TooManySets {
    /// Name of the switch.
    pub switch: String,
    /// How many there may be.
    pub most: usize,
}

/// The links among the switches that are up, as adjacency lists.
struct Graph {
    /// Where the list of each switch starts in `edges`; one more at the end.
    start: Vec<usize>,
    /// Neighbour (a switch index) and the port that leads to it.
    edges: Vec<(u32, u16)>,
}

impl Graph {
    fn of(&self, switch: usize) -> &[(u32, u16)] {
        &self.edges[self.start[switch]..self.start[switch + 1]]
    }
}

/// The table under construction of one switch.
struct Draft {
    table: RoutingTable,
    /// Sets of several ports that exist.
    known: BTreeMap<Vec<u16>, u16>,
}

/// Equal-cost shortest-path (fewest hops) tables of all switches, by switch index, without the cables for which `down`
/// (by index into [`Topology::cables`]) is true.
///
/// Hosts carry no transit traffic. A host that cannot be reached has an empty set. Port numbers are those of the
/// whole topology: a cable that is down keeps its ports.
///
/// Time is (edge switches) × (switches + cables), memory is two bytes per switch and host.
///
/// # Errors
/// A switch needs too many different sets of ports.
pub fn tables(topology: &Topology, down: &dyn Fn(usize) -> bool) -> Result<Vec<RoutingTable>, TooManySets> {
    tables_within(topology, down, MOST_SETS)
}

fn tables_within(
    topology: &Topology,
    down: &dyn Fn(usize) -> bool,
    most: usize,
) -> Result<Vec<RoutingTable>, TooManySets> {
    let (hosts, switches) = (topology.hosts, topology.switches() as usize);
    let ports = topology.ports();
    let mut graph = Graph { start: vec![0], edges: Vec::new() };
    let mut drafts = Vec::with_capacity(switches);
    for switch in 0..switches {
        let ends = ports.of(hosts + switch as u32);
        for (port, end) in ends.iter().enumerate() {
            if end.peer >= hosts && !down(end.cable as usize) {
                graph.edges.push((end.peer - hosts, port as u16));
            }
        }
        graph.start.push(graph.edges.len());
        let table = RoutingTable::of_single_ports(hosts as usize, ends.len());
        drafts.push(Draft { table, known: BTreeMap::new() });
    }

    let mut behind = vec![Vec::new(); switches];
    for host in 0..hosts {
        if let (Some(edge), false) = (topology.edge_of(host), down(host as usize)) {
            behind[(edge - hosts) as usize].push(host);
        }
    }

    let mut distance = vec![FAR; switches];
    let mut order = Vec::with_capacity(switches);
    let mut set = Vec::new();
    for (edge, members) in behind.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
        for &host in members {
            let port = ports.of(host)[0].peer_port;
            drafts[edge].table.set_of[host as usize] = RoutingTable::single(port);
        }
        distance.fill(FAR);
        distance[edge] = 0;
        order.clear();
        order.push(edge as u32);
        let mut next = 0;
        while let Some(&switch) = order.get(next) {
            next += 1;
            let here = distance[switch as usize];
            for &(peer, _) in graph.of(switch as usize) {
                if distance[peer as usize] == FAR {
                    distance[peer as usize] = here + 1;
                    order.push(peer);
                }
            }
        }
        for &switch in &order[1..] {
            let here = distance[switch as usize];
            let nearer = graph.of(switch as usize).iter().filter(|(peer, _)| distance[*peer as usize] + 1 == here);
            set.clear();
            set.extend(nearer.map(|(_, port)| *port));
            let index = drafts[switch as usize]
                .index_of(&set, most)
                .ok_or_else(|| TooManySets { switch: topology.names[(hosts + switch) as usize].clone(), most })?;
            for &host in members {
                drafts[switch as usize].table.set_of[host as usize] = index;
            }
        }
    }
    Ok(drafts.into_iter().map(|draft| draft.table).collect())
}

impl Draft {
    /// The index of a set that is not empty; `None` where it would be one too many.
    fn index_of(&mut self, set: &[u16], most: usize) -> Option<u16> {
        if let &[port] = set {
            return Some(RoutingTable::single(port));
        }
        if let Some(&index) = self.known.get(set) {
            return Some(index);
        }
        let index = if self.table.sets.len() < most { self.table.add(set)? } else { return None };
        self.known.insert(set.to_vec(), index);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LeafSpine, tests::link};

    /// Sets of at least two of 17 ports: there are more of them than indices.
    #[test]
    fn a_table_is_full_at_its_last_index_and_says_so() {
        let mut draft = Draft { table: RoutingTable::of_single_ports(1, 17), known: BTreeMap::new() };
        let sets = (1u32..1 << 17).filter(|bits| bits.count_ones() > 1);
        let of = |bits: u32| -> Vec<u16> { (0..17).filter(|port| bits & 1 << port != 0).collect() };
        let mut last = 17;
        for bits in sets.clone() {
            match draft.index_of(&of(bits), MOST_SETS) {
                Some(index) => last = index,
                None => break,
            }
        }
        assert_eq!((last, draft.table.sets.len()), (u16::MAX, MOST_SETS));
        // What is there is still found.
        let first = sets.min().expect("there are some");
        assert_eq!(draft.index_of(&of(first), MOST_SETS), Some(18));
    }

    #[test]
    fn a_fabric_that_does_not_fit_names_the_switch() {
        let fabric = LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 1,
            host_link: link(),
            fabric_link: link(),
            fabric_links: 1,
        };
        let topology = fabric.build().expect("a good topology");
        // A leaf has three ports and one set of two: five sets with the empty one.
        assert!(tables_within(&topology, &|_| false, 5).is_ok());
        let error = tables_within(&topology, &|_| false, 4).expect_err("one too many");
        assert_eq!(error, TooManySets { switch: "leaf1".to_owned(), most: 4 });
    }
}
