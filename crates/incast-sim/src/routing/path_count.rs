//! How many equal-cost paths there are between two hosts.

use crate::topology::{Node, Ports, Rule, Topology};

/// The most paths that a packet can name.
const MOST: u32 = 1 << 16;

/// Counts paths in the fabric as it is before any link goes down.
#[derive(Clone, Debug)]
pub struct PathCount {
    hosts: u32,
    rules: Vec<Rule>,
    ports: Ports,
}

impl PathCount {
    /// Of a topology.
    pub fn new(topology: &Topology) -> Self {
        Self { hosts: topology.hosts, rules: topology.rules.clone(), ports: topology.ports() }
    }

    /// The number of paths from one host to another, as [`super::Pinned`] numbers them: the product of the numbers of
    /// choices along a path. Where these depend on earlier choices, it is that of the path with the most; then some
    /// paths have several numbers.
    pub fn between(&self, source: Node, destination: Node) -> u16 {
        let first = self.ports.end(source, 0).map_or(destination, |end| end.peer);
        // The count has 16 bits: of 65,536 paths the last one is not used.
        self.from(first, destination, &mut Vec::new()).min(MOST - 1) as u16
    }

    fn from(&self, node: Node, destination: Node, known: &mut Vec<(Node, u32)>) -> u32 {
        let Some(rule) = node.checked_sub(self.hosts).and_then(|switch| self.rules.get(switch as usize)) else {
            return 1;
        };
        if let Some((_, paths)) = known.iter().find(|(other, _)| *other == node) {
            return *paths;
        }
        let choices = rule.alternatives(destination).count();
        // In regular fabrics all choices are alike.
        let looked_at = if matches!(rule, Rule::Table(_)) { choices } else { 1 };
        let next = |port: u16| self.ports.end(node, port).map(|end| end.peer);
        let ahead = rule.alternatives(destination).take(looked_at).filter_map(next);
        let most = ahead.map(|peer| self.from(peer, destination, known)).max().unwrap_or(1);
        let paths = (choices as u32).max(1).saturating_mul(most).min(MOST);
        known.push((node, paths));
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Chain, FatTree, LeafSpine, Ring, SingleSwitch, TopologyError, file::parse, tests::link};

    fn paths(topology: Result<Topology, TopologyError>, source: u32, destination: u32) -> u16 {
        PathCount::new(&topology.expect("a good topology")).between(source, destination)
    }

    #[test]
    fn paths_are_products_of_choices() {
        let tree = || FatTree { k: 8, link: link() }.build();
        assert_eq!([(0, 127), (0, 5), (0, 1)].map(|(a, b)| paths(tree(), a, b)), [16, 4, 1]);
        assert_eq!(paths(FatTree { k: 64, link: link() }.build(), 0, 60_000), 1_024);
        let leaves = LeafSpine {
            leaves: 3,
            spines: 5,
            hosts_per_leaf: 2,
            host_link: link(),
            fabric_link: link(),
            fabric_links: 1,
        };
        assert_eq!(paths(leaves.build(), 0, 5), 5);
        assert_eq!(paths(SingleSwitch { hosts: 3, link: link() }.build(), 0, 1), 1);
        let chain = Chain { switches: 4, hosts_per_switch: 1, host_link: link(), fabric_link: link() };
        assert_eq!(paths(chain.build(), 0, 3), 1);
        let ring = Ring { switches: 4, hosts_per_switch: 1, host_link: link(), fabric_link: link() };
        assert_eq!([1, 2].map(|to| paths(ring.clone().build(), 0, to)), [1, 2]);
    }

    #[test]
    fn where_choices_depend_on_others_the_most_count() {
        // a has b and c; b has two cables to d, c has one.
        let text = "host x\nhost y\nswitch a\nswitch b\nswitch c\nswitch d\nlink x a 1Gbps 1us\nlink y d 1Gbps 1us\n\
            link a b 1Gbps 1us\nlink a c 1Gbps 1us\nlink b d 1Gbps 1us\nlink b d 1Gbps 1us\nlink c d 1Gbps 1us\n";
        let topology = parse(text).expect("a good topology");
        let paths = PathCount::new(&topology);
        assert_eq!((paths.between(0, 1), paths.between(1, 0)), (4, 3));
    }
}
