//! `leaf-spine`: every leaf switch is joined to every spine switch.

use super::{Cable, Divider, Link, Rule, Topology, TopologyError, check, check::link_keys, is_one, numbered, one};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts `h0`… leaf by leaf, switches `leaf0`…, `spine0`….
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Switches with hosts.
    pub leaves: u32,
    /// Switches above them.
    pub spines: u32,
    /// Hosts of each leaf.
    pub hosts_per_leaf: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between leaves and spines.
    pub fabric_link: Link,
    /// So many of them in parallel between each leaf and each spine. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub fabric_links: u32,
}

impl LeafSpine {
    /// Builds it.
    ///
    /// # Errors
    /// A count of zero or too large, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let Self { leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links } = *self;
        let counts = [("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts_per_leaf)];
        check::at_least(1, &counts)?;
        check::at_least(1, &[("fabric_links", fabric_links)])?;
        check::link(link_keys!("host_link"), &host_link)?;
        check::link(link_keys!("fabric_link"), &fabric_link)?;
        let [l, s, each, parallel] = [leaves, spines, hosts_per_leaf, fabric_links].map(u128::from);
        let up = s * parallel;
        check::Size { ports: parallel, ..Default::default() }.check("fabric_links", fabric_links)?;
        check::Size { ports: up, ..Default::default() }.check("spines", spines)?;
        check::Size { ports: each + up, ..Default::default() }.check("hosts_per_leaf", hosts_per_leaf)?;
        let size = check::Size { nodes: l * (each + 1) + s, cables: l * (each + up), ports: l * parallel };
        size.check("leaves", leaves)?;

        let hosts = leaves * hosts_per_leaf;
        let mut cables: Vec<_> =
            (0..hosts).map(|a| Cable { a, b: hosts + a / hosts_per_leaf, link: host_link }).collect();
        let first_spine = hosts + leaves;
        for leaf in hosts..first_spine {
            let above = (0..spines * fabric_links).map(|port| first_spine + port / fabric_links);
            cables.extend(above.map(|b| Cable { a: leaf, b, link: fabric_link }));
        }
        let leaf_rules = (0..leaves).map(|leaf| Rule::Tree {
            lo: leaf * hosts_per_leaf,
            hi: (leaf + 1) * hosts_per_leaf,
            per_group: Divider::new(1),
            down_base: 0,
            down_width: 1,
            up_base: hosts_per_leaf as u16,
            up_width: (spines * fabric_links) as u16,
        });
        let spine_rule = Rule::Tree {
            lo: 0,
            hi: hosts,
            per_group: Divider::new(hosts_per_leaf),
            down_base: 0,
            down_width: fabric_links as u16,
            up_base: 0,
            up_width: 0,
        };
        Ok(Topology {
            kind: "leaf-spine",
            hosts,
            names: numbered("h", hosts).chain(numbered("leaf", leaves)).chain(numbered("spine", spines)).collect(),
            cables,
            rules: leaf_rules.chain(std::iter::repeat_n(spine_rule, spines as usize)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{
        Tier,
        tests::{key_of, link, verify},
    };

    #[test]
    fn every_host_reaches_every_host() {
        for (leaves, spines, hosts_per_leaf) in [(1, 1, 1), (2, 1, 3), (4, 3, 5), (9, 4, 4)] {
            for fabric_links in [1, 2, 3] {
                let (host_link, fabric_link) = (link(), link());
                let fabric = LeafSpine { leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links };
                let topology = fabric.build().unwrap();
                assert_eq!(topology.cables.len() as u32, leaves * (hosts_per_leaf + spines * fabric_links));
                verify(&topology);
            }
        }
    }

    #[test]
    fn names_and_tiers() {
        let fabric = LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 4,
            host_link: link(),
            fabric_link: link(),
            fabric_links: 1,
        };
        let topology = fabric.build().unwrap();
        let leaf1 = topology.find_node("leaf1").unwrap();
        let spine0 = topology.find_node("spine0").unwrap();
        assert_eq!((leaf1, spine0), (13, 15));
        assert_eq!((topology.tier(leaf1), topology.tier(spine0)), (Tier::Edge, Tier::Fabric));
        assert_eq!(topology.edge_of(4), Some(leaf1));
        assert_eq!(topology.edge_of(12), None);
        assert_eq!(topology.port_name(leaf1, 0).as_deref(), Some("leaf1->h4"));
        assert_eq!(topology.port_name(leaf1, 5).as_deref(), Some("leaf1->spine1"));
        assert_eq!(topology.port_name(leaf1, 6), None);
        assert_eq!(topology.find_port("spine1->leaf2"), Some((spine0 + 1, 2)));
        assert_eq!(topology.find_cable("spine1-leaf0"), Some(13));
        assert_eq!(topology.cable_name(13).as_deref(), Some("leaf0-spine1"));
        let pairs = LeafSpine { fabric_links: 2, ..fabric }.build().unwrap();
        assert_eq!(pairs.port_name(leaf1, 7).as_deref(), Some("leaf1->spine1#1"));
        assert_eq!(pairs.find_port("spine0->leaf2#1"), Some((spine0, 5)));
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        let good = LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 4,
            host_link: link(),
            fabric_link: link(),
            fabric_links: 1,
        };
        assert_eq!(key_of(LeafSpine { leaves: 0, ..good }.build()), "leaves");
        assert_eq!(key_of(LeafSpine { spines: 0, ..good }.build()), "spines");
        assert_eq!(key_of(LeafSpine { hosts_per_leaf: 0, ..good }.build()), "hosts_per_leaf");
        assert_eq!(key_of(LeafSpine { fabric_links: 0, ..good }.build()), "fabric_links");
        assert_eq!(key_of(LeafSpine { fabric_links: u32::MAX, ..good }.build()), "fabric_links");
        assert_eq!(key_of(LeafSpine { spines: u32::MAX, fabric_links: 60_000, ..good }.build()), "spines");
        assert_eq!(key_of(LeafSpine { leaves: 40_000, fabric_links: 2, ..good }.build()), "leaves");
        assert_eq!(key_of(LeafSpine { leaves: u32::MAX, ..good }.build()), "leaves");
        assert_eq!(key_of(LeafSpine { leaves: 65_000, spines: 65_000, ..good }.build()), "leaves");
        assert_eq!(key_of(LeafSpine { spines: 70_000, ..good }.build()), "spines");
        assert_eq!(key_of(LeafSpine { hosts_per_leaf: 65_534, ..good }.build()), "hosts_per_leaf");
        let host_link = Link { loss: f64::NAN, ..link() };
        assert_eq!(key_of(LeafSpine { host_link, ..good }.build()), "host_link.loss");
    }
}
