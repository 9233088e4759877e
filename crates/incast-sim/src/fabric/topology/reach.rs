//! Which hosts can reach each other.

use super::{Node, Topology};

impl Topology {
    /// Number of ordered pairs of hosts without a path between them. Nothing forbids them, but their flows are lost,
    /// so whoever builds a topology warns.
    pub fn unreachable_pairs(&self) -> u64 {
        let mut members = vec![0u64; self.names.len()];
        let roots = self.islands();
        for host in 0..self.hosts as usize {
            members[roots[host] as usize] += 1;
        }
        let hosts = u64::from(self.hosts);
        members.iter().map(|size| size * (hosts - size)).sum()
    }

    /// Two hosts without a path between them, if there are any: host 0 and the first that it cannot reach.
    pub fn unreachable_example(&self) -> Option<(Node, Node)> {
        let roots = self.islands();
        (1..self.hosts).find(|host| roots[*host as usize] != roots[0]).map(|host| (0, host))
    }

    /// Whether every host reaches every other host.
    pub fn is_connected(&self) -> bool {
        self.unreachable_example().is_none()
    }

    /// For each node, one node that stands for all those it is connected to.
    fn islands(&self) -> Vec<Node> {
        let mut parent: Vec<Node> = (0..self.nodes()).collect();
        for cable in &self.cables {
            let (a, b) = (root(&mut parent, cable.a), root(&mut parent, cable.b));
            parent[a.max(b) as usize] = a.min(b);
        }
        (0..self.nodes()).map(|node| root(&mut parent, node)).collect()
    }
}

/// Finds the root of a node and halves the way to it.
fn root(parent: &mut [Node], mut node: Node) -> Node {
    while parent[node as usize] != node {
        let above = parent[parent[node as usize] as usize];
        parent[node as usize] = above;
        node = above;
    }
    node
}
