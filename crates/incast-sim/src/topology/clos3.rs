//! `clos3`: a folded Clos network of three tiers, such as the 320-host fabric of HPCC (SIGCOMM 2019).

use super::{Cable, Divider, Link, Rule, Topology, TopologyError, check, check::link_keys, is_one, numbered, one};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pods of ToR and aggregation switches below a row of core switches: hosts `h0`… ToR by ToR, switches `tor0`…,
/// `agg0`…, `core0`….
///
/// In a pod every ToR is joined to every aggregation switch. If `cores` is a multiple m of `aggs_per_pod`, aggregation
/// switch j of each pod is joined to cores j·m to (j + 1)·m - 1, and each core has one link to each pod; otherwise
/// every aggregation switch is joined to every core.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clos3 {
    /// Number of pods.
    pub pods: u32,
    /// Top-of-rack switches of a pod.
    pub tors_per_pod: u32,
    /// Aggregation switches of a pod; each is linked to every ToR of the pod.
    pub aggs_per_pod: u32,
    /// Core switches.
    pub cores: u32,
    /// Hosts of a ToR.
    pub hosts_per_tor: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between ToRs and aggregation switches.
    pub tor_agg_link: Link,
    /// Links between aggregation and core switches.
    pub agg_core_link: Link,
    /// So many links in parallel between each ToR and each aggregation switch of its pod. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub tor_agg_links: u32,
    /// So many links in parallel between an aggregation switch and each of its cores. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub agg_core_links: u32,
}

impl Clos3 {
    /// Builds it.
    ///
    /// # Errors
    /// A count of zero or too large, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let Self { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, tor_agg_links, agg_core_links, .. } = *self;
        check::at_least(
            1,
            &[
                ("pods", pods),
                ("tors_per_pod", tors_per_pod),
                ("aggs_per_pod", aggs_per_pod),
                ("cores", cores),
                ("hosts_per_tor", hosts_per_tor),
                ("tor_agg_links", tor_agg_links),
                ("agg_core_links", agg_core_links),
            ],
        )?;
        check::link(link_keys!("host_link"), &self.host_link)?;
        check::link(link_keys!("tor_agg_link"), &self.tor_agg_link)?;
        check::link(link_keys!("agg_core_link"), &self.agg_core_link)?;
        let shape = Shape { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, tor_agg_links, agg_core_links };
        shape.check()?;
        let names = Names { kind: "clos3", edge: "tor" };
        let links = Links { host: self.host_link, edge_agg: self.tor_agg_link, agg_core: self.agg_core_link };
        Ok(shape.build(names, links))
    }
}

/// The counts of three tiers.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub pods: u32,
    pub tors_per_pod: u32,
    pub aggs_per_pod: u32,
    pub cores: u32,
    pub hosts_per_tor: u32,
    pub tor_agg_links: u32,
    pub agg_core_links: u32,
}

/// How the topology and its lowest switches are called.
pub(super) struct Names {
    pub kind: &'static str,
    pub edge: &'static str,
}

/// The links of the three tiers.
pub(super) struct Links {
    pub host: Link,
    pub edge_agg: Link,
    pub agg_core: Link,
}

impl Shape {
    /// Whether each core is joined to one aggregation switch of each pod, instead of all.
    const fn striped(&self) -> bool {
        self.cores.is_multiple_of(self.aggs_per_pod)
    }

    /// Cores of an aggregation switch.
    const fn cores_of_agg(&self) -> u32 {
        if self.striped() { self.cores / self.aggs_per_pod } else { self.cores }
    }

    fn check(&self) -> Result<(), TopologyError> {
        let [pods, tors, aggs, cores, each] =
            [self.pods, self.tors_per_pod, self.aggs_per_pod, self.cores, self.hosts_per_tor].map(u128::from);
        let [cores_of_agg, lower, upper] =
            [self.cores_of_agg(), self.tor_agg_links, self.agg_core_links].map(u128::from);
        let core_ports = if self.striped() { pods * upper } else { pods * aggs * upper };
        let ports = |ports, key, found| check::Size { ports, ..Default::default() }.check(key, found);
        ports(lower, "tor_agg_links", self.tor_agg_links)?;
        ports(upper, "agg_core_links", self.agg_core_links)?;
        ports(aggs * lower, "aggs_per_pod", self.aggs_per_pod)?;
        ports(each + aggs * lower, "hosts_per_tor", self.hosts_per_tor)?;
        ports(tors * lower, "tors_per_pod", self.tors_per_pod)?;
        let up = cores_of_agg * upper;
        ports(tors * lower + up, "cores", self.cores)?;
        let nodes = pods * (tors * (each + 1) + aggs) + cores;
        let cables = pods * (tors * (each + aggs * lower) + aggs * up);
        check::Size { nodes, cables, ports: core_ports }.check("pods", self.pods)
    }

    /// Builds a shape that was checked.
    pub fn build(&self, names: Names, links: Links) -> Topology {
        let Self { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, tor_agg_links, agg_core_links } = *self;
        let (tors, aggs) = (pods * tors_per_pod, pods * aggs_per_pod);
        let hosts = tors * hosts_per_tor;
        let (first_agg, first_core) = (hosts + tors, hosts + tors + aggs);
        let cores_of_agg = self.cores_of_agg();
        let up = cores_of_agg * agg_core_links;

        let mut cables: Vec<_> =
            (0..hosts).map(|a| Cable { a, b: hosts + a / hosts_per_tor, link: links.host }).collect();
        for tor in 0..tors {
            let pod_agg = first_agg + tor / tors_per_pod * aggs_per_pod;
            let above = (0..aggs_per_pod * tor_agg_links).map(|port| pod_agg + port / tor_agg_links);
            cables.extend(above.map(|b| Cable { a: hosts + tor, b, link: links.edge_agg }));
        }
        for agg in 0..aggs {
            let core = if self.striped() { agg % aggs_per_pod * cores_of_agg } else { 0 };
            let above = (0..up).map(|port| first_core + core + port / agg_core_links);
            cables.extend(above.map(|b| Cable { a: first_agg + agg, b, link: links.agg_core }));
        }

        let tor_rules = (0..tors).map(|tor| Rule::Tree {
            lo: tor * hosts_per_tor,
            hi: (tor + 1) * hosts_per_tor,
            per_group: Divider::new(1),
            down_base: 0,
            down_width: 1,
            up_base: hosts_per_tor as u16,
            up_width: (aggs_per_pod * tor_agg_links) as u16,
        });
        let hosts_per_pod = hosts_per_tor * tors_per_pod;
        let agg_rules = (0..aggs).map(|agg| Rule::Tree {
            lo: agg / aggs_per_pod * hosts_per_pod,
            hi: (agg / aggs_per_pod + 1) * hosts_per_pod,
            per_group: Divider::new(hosts_per_tor),
            down_base: 0,
            down_width: tor_agg_links as u16,
            up_base: (tors_per_pod * tor_agg_links) as u16,
            up_width: up as u16,
        });
        let core_rule = Rule::Tree {
            lo: 0,
            hi: hosts,
            per_group: Divider::new(hosts_per_pod),
            down_base: 0,
            down_width: if self.striped() { agg_core_links } else { aggs_per_pod * agg_core_links } as u16,
            up_base: 0,
            up_width: 0,
        };
        let switches = numbered(names.edge, tors).chain(numbered("agg", aggs)).chain(numbered("core", cores));
        Topology {
            kind: names.kind,
            hosts,
            names: numbered("h", hosts).chain(switches).collect(),
            cables,
            rules: tor_rules.chain(agg_rules).chain(std::iter::repeat_n(core_rule, cores as usize)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{key_of, link, verify};
    use proptest::prelude::*;

    fn clos(pods: u32, tors_per_pod: u32, aggs_per_pod: u32, cores: u32, hosts_per_tor: u32) -> Clos3 {
        let (host_link, tor_agg_link, agg_core_link) = (link(), link(), link());
        let (tor_agg_links, agg_core_links) = (1, 1);
        Clos3 {
            pods,
            tors_per_pod,
            aggs_per_pod,
            cores,
            hosts_per_tor,
            host_link,
            tor_agg_link,
            agg_core_link,
            tor_agg_links,
            agg_core_links,
        }
    }

    #[test]
    fn the_fabric_of_hpcc_has_320_hosts() {
        let topology = clos(5, 4, 4, 16, 16).build().unwrap();
        assert_eq!((topology.hosts, topology.switches(), topology.cables.len()), (320, 56, 480));
        let ports = topology.ports();
        let count = |name| ports.of(topology.find_node(name).unwrap()).len();
        assert_eq!([count("h0"), count("tor0"), count("agg19"), count("core15")], [1, 20, 8, 5]);
        assert!(topology.find_cable("agg5-core4").is_some());
        assert!(topology.find_cable("agg5-core0").is_none());
        verify(&topology);
    }

    #[test]
    fn where_cores_do_not_divide_every_agg_has_every_core() {
        let topology = clos(3, 2, 3, 4, 2).build().unwrap();
        let ports = topology.ports();
        assert_eq!(ports.of(topology.find_node("core0").unwrap()).len(), 9);
        assert_eq!(topology.rules.last().unwrap().alternatives(4).collect::<Vec<_>>(), [3, 4, 5]);
        verify(&topology);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_host_reaches_every_host(
            pods in 1u32..4,
            tors in 1u32..4,
            aggs in 1u32..4,
            cores in 1u32..7,
            each in 1u32..4,
            tor_agg_links in 1u32..4,
            agg_core_links in 1u32..4,
        ) {
            let fabric = Clos3 { tor_agg_links, agg_core_links, ..clos(pods, tors, aggs, cores, each) };
            let topology = fabric.build().unwrap();
            let hosts = pods * tors * each;
            let above = if cores.is_multiple_of(aggs) { cores / aggs } else { cores };
            let cables = hosts + pods * aggs * (tors * tor_agg_links + above * agg_core_links);
            prop_assert_eq!(topology.cables.len() as u32, cables);
            verify(&topology);
        }
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        assert_eq!(key_of(clos(0, 1, 1, 1, 1).build()), "pods");
        assert_eq!(key_of(clos(1, 0, 1, 1, 1).build()), "tors_per_pod");
        assert_eq!(key_of(clos(1, 1, 0, 1, 1).build()), "aggs_per_pod");
        assert_eq!(key_of(clos(1, 1, 1, 0, 1).build()), "cores");
        assert_eq!(key_of(clos(1, 1, 1, 1, 0).build()), "hosts_per_tor");
        assert_eq!(key_of(Clos3 { tor_agg_links: 0, ..clos(1, 1, 1, 1, 1) }.build()), "tor_agg_links");
        assert_eq!(key_of(Clos3 { agg_core_links: u32::MAX, ..clos(1, 1, 1, 1, 1) }.build()), "agg_core_links");
        assert_eq!(key_of(Clos3 { tor_agg_links: 60_000, ..clos(1, 2, 1, 1, 1) }.build()), "tors_per_pod");
        assert_eq!(key_of(clos(u32::MAX, u32::MAX, 1, 1, 1).build()), "tors_per_pod");
        assert_eq!(key_of(clos(u32::MAX, 9, 1, 1, 1).build()), "pods");
        assert_eq!(key_of(clos(30_000, 1, 3, 4, 1).build()), "pods");
        assert_eq!(key_of(clos(1, 1, 1, u32::MAX, 1).build()), "cores");
        assert_eq!(key_of(clos(1, 1, 1, 1, u32::MAX).build()), "hosts_per_tor");
        let agg_core_link = Link { loss: 1.5, ..link() };
        assert_eq!(key_of(Clos3 { agg_core_link, ..clos(1, 1, 1, 1, 1) }.build()), "agg_core_link.loss");
    }
}
