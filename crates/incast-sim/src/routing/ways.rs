//! How many equal-cost ways there are between two hosts.

use super::Rule;
use crate::topology::{Node, Ports, Topology};

/// The most ways that a packet can name.
const MOST: u32 = 1 << 16;

/// The fabric as it is before any link goes down.
#[derive(Clone, Debug)]
pub struct Ways {
    hosts: u32,
    rules: Vec<Rule>,
    ports: Ports,
}

impl Ways {
    /// Those of a topology.
    pub fn new(topology: &Topology) -> Self {
        Self { hosts: topology.hosts, rules: topology.rules.clone(), ports: topology.ports() }
    }

    /// The number of ways from one host to another, as [`super::Pinned`] counts them: the product of the numbers of choices
    /// on a way. Where these depend on the choices before, that of the most ways; then some ways have several numbers.
    pub fn between(&self, source: Node, destination: Node) -> u16 {
        let first = self.ports.end(source, 0).map_or(destination, |end| end.peer);
        // A number of 16 bits names one of 65,536; as many as that is one too many to say.
        self.from(first, destination, &mut Vec::new()).min(MOST - 1) as u16
    }

    fn from(&self, node: Node, destination: Node, known: &mut Vec<(Node, u32)>) -> u32 {
        let Some(rule) = node.checked_sub(self.hosts).and_then(|switch| self.rules.get(switch as usize))
        else {
            return 1;
        };
        if let Some((_, ways)) = known.iter().find(|(other, _)| *other == node) {
            return *ways;
        }
        let choices = rule.alternatives(destination).count();
        // In regular fabrics all choices are alike.
        let looked_at = if matches!(rule, Rule::Table(_)) { choices } else { 1 };
        let next = |port: u16| self.ports.end(node, port).map(|end| end.peer);
        let ahead = rule.alternatives(destination).take(looked_at).filter_map(next);
        let most = ahead.map(|peer| self.from(peer, destination, known)).max().unwrap_or(1);
        let ways = (choices as u32).max(1).saturating_mul(most).min(MOST);
        known.push((node, ways));
        ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{
        Chain, FatTree, LeafSpine, Ring, SingleSwitch, TopologyError, file::parse, tests::link,
    };

    fn ways(topology: Result<Topology, TopologyError>, source: u32, destination: u32) -> u16 {
        Ways::new(&topology.expect("a good topology")).between(source, destination)
    }

    #[test]
    fn ways_are_products_of_choices() {
        let tree = || FatTree { k: 8, link: link() }.build();
        assert_eq!([(0, 127), (0, 5), (0, 1)].map(|(a, b)| ways(tree(), a, b)), [16, 4, 1]);
        assert_eq!(ways(FatTree { k: 64, link: link() }.build(), 0, 60_000), 1_024);
        let leaves =
            LeafSpine { leaves: 3, spines: 5, hosts_per_leaf: 2, host_link: link(), fabric_link: link() };
        assert_eq!(ways(leaves.build(), 0, 5), 5);
        assert_eq!(ways(SingleSwitch { hosts: 3, link: link() }.build(), 0, 1), 1);
        let chain = Chain { switches: 4, hosts_per_switch: 1, host_link: link(), fabric_link: link() };
        assert_eq!(ways(chain.build(), 0, 3), 1);
        let ring = Ring { switches: 4, hosts_per_switch: 1, host_link: link(), fabric_link: link() };
        assert_eq!([1, 2].map(|to| ways(ring.clone().build(), 0, to)), [1, 2]);
    }

    #[test]
    fn where_choices_depend_on_others_the_most_count() {
        // a has b and c; b has two cables to d, c has one.
        let text = "host x\nhost y\nswitch a\nswitch b\nswitch c\nswitch d\nlink x a 1Gbps 1us\nlink y d 1Gbps 1us\n\
            link a b 1Gbps 1us\nlink a c 1Gbps 1us\nlink b d 1Gbps 1us\nlink b d 1Gbps 1us\nlink c d 1Gbps 1us\n";
        let topology = parse(text).expect("a good topology");
        let ways = Ways::new(&topology);
        assert_eq!((ways.between(0, 1), ways.between(1, 0)), (4, 3));
    }
}
