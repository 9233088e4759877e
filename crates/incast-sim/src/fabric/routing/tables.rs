//! Shortest-path tables of any graph: for files, and for fabrics with links that are down.

use super::Table;
use crate::fabric::topology::Topology;
use std::collections::BTreeMap;

const FAR: u32 = u32::MAX;

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
    table: Table,
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
pub fn tables(topology: &Topology, down: &dyn Fn(usize) -> bool) -> Vec<Table> {
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
        let table = Table::of_single_ports(hosts as usize, ends.len());
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
            drafts[edge].table.set_of[host as usize] = Table::single(port);
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
            let nearer =
                graph.of(switch as usize).iter().filter(|(peer, _)| distance[*peer as usize] + 1 == here);
            set.clear();
            set.extend(nearer.map(|(_, port)| *port));
            let index = drafts[switch as usize].index_of(&set);
            for &host in members {
                drafts[switch as usize].table.set_of[host as usize] = index;
            }
        }
    }
    drafts.into_iter().map(|draft| draft.table).collect()
}

impl Draft {
    /// The index of a set that is not empty. Where all 65,536 indices are taken, which needs tens of thousands of
    /// different sets in one switch, the first port stands for the set.
    fn index_of(&mut self, set: &[u16]) -> u16 {
        if let &[port] = set {
            return Table::single(port);
        }
        if let Some(&index) = self.known.get(set) {
            return index;
        }
        match self.table.add(set) {
            Some(index) => {
                self.known.insert(set.to_vec(), index);
                index
            }
            None => Table::single(set[0]),
        }
    }
}
