//! Which hosts can reach each other.

use super::{Node, Topology};
use incast_units::Rate;
use std::collections::VecDeque;

impl Topology {
    /// Number of ordered pairs of hosts without a path between them. They are allowed, but their flows are lost, so
    /// that callers should warn.
    pub fn unreachable_pairs(&self) -> u64 {
        let mut members = vec![0u64; self.names.len()];
        let roots = self.components();
        for host in 0..self.hosts as usize {
            members[roots[host] as usize] += 1;
        }
        let hosts = u64::from(self.hosts);
        members.iter().map(|size| size * (hosts - size)).sum()
    }

    /// Two hosts without a path between them, if there are any: host 0 and the first that it cannot reach.
    pub fn unreachable_example(&self) -> Option<(Node, Node)> {
        let roots = self.components();
        (1..self.hosts).find(|host| roots[*host as usize] != roots[0]).map(|host| (0, host))
    }

    /// Whether every host reaches every other host.
    pub fn is_connected(&self) -> bool {
        self.unreachable_example().is_none()
    }

    /// The different rates of hosts, the fastest first.
    pub fn host_rates(&self) -> Vec<Rate> {
        let mut rates: Vec<Rate> = self.cables.iter().take(self.hosts as usize).map(|cable| cable.link.rate).collect();
        rates.sort_unstable_by(|a, b| b.cmp(a));
        rates.dedup();
        rates
    }

    /// Switches on the longest of all shortest paths between two hosts. Takes time in proportion to edge switches times
    /// cables.
    pub fn most_switches(&self) -> u32 {
        let ports = self.ports();
        let mut edges: Vec<Node> = (0..self.hosts).filter_map(|host| self.edge_of(host)).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut most = 0;
        for edge in &edges {
            let mut distance = vec![u32::MAX; self.nodes() as usize];
            distance[*edge as usize] = 1;
            let mut line = VecDeque::from([*edge]);
            while let Some(node) = line.pop_front() {
                for end in ports.of(node).iter().filter(|end| end.peer >= self.hosts) {
                    if distance[end.peer as usize] == u32::MAX {
                        distance[end.peer as usize] = distance[node as usize] + 1;
                        line.push_back(end.peer);
                    }
                }
            }
            let reached = edges.iter().map(|other| distance[*other as usize]).filter(|hops| *hops < u32::MAX);
            most = reached.fold(most, u32::max);
        }
        most
    }

    /// For each node, one node that represents its connected component.
    fn components(&self) -> Vec<Node> {
        let mut parent: Vec<Node> = (0..self.nodes()).collect();
        for cable in &self.cables {
            let (a, b) = (root(&mut parent, cable.a), root(&mut parent, cable.b));
            parent[a.max(b) as usize] = a.min(b);
        }
        (0..self.nodes()).map(|node| root(&mut parent, node)).collect()
    }
}

/// Finds the root of a node, and halves the path to it.
fn root(parent: &mut [Node], mut node: Node) -> Node {
    while parent[node as usize] != node {
        let above = parent[parent[node as usize] as usize];
        parent[node as usize] = above;
        node = above;
    }
    node
}
