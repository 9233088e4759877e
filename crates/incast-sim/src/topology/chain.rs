//! `chain`: switches in a row, each with its hosts.

use super::{Cable, Link, Rule, Topology, TopologyError, check, check::link_keys, numbered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts `h0`… switch by switch, switches `s0`… in a row.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Number of switches.
    pub switches: u32,
    /// Hosts of each.
    pub hosts_per_switch: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between neighbouring switches.
    pub fabric_link: Link,
}

impl Chain {
    /// Builds it.
    ///
    /// # Errors
    /// No switches or hosts, too many, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let Self { switches, hosts_per_switch, host_link, fabric_link } = *self;
        check::at_least(1, &[("switches", switches), ("hosts_per_switch", hosts_per_switch)])?;
        check::link(link_keys!("host_link"), &host_link)?;
        check::link(link_keys!("fabric_link"), &fabric_link)?;
        let (count, each) = (u128::from(switches), u128::from(hosts_per_switch));
        check::Size { ports: each + 2, ..Default::default() }.check("hosts_per_switch", hosts_per_switch)?;
        check::Size { nodes: count * (each + 1), cables: count * (each + 1), ports: 0 }.check("switches", switches)?;
        Ok(row("chain", &vec![hosts_per_switch; switches as usize], host_link, fabric_link))
    }
}

/// A row of switches with the given numbers of hosts, all of them checked.
pub(super) fn row(kind: &'static str, host_counts: &[u32], host_link: Link, fabric_link: Link) -> Topology {
    let hosts: u32 = host_counts.iter().sum();
    let switches = host_counts.len() as u32;
    let (mut cables, mut rules) = (Vec::new(), Vec::new());
    let mut lo = 0;
    for (switch, &count) in (0..).zip(host_counts) {
        let hi = lo + count;
        cables.extend((lo..hi).map(|host| Cable { a: host, b: hosts + switch, link: host_link }));
        let first = count as u16;
        let left = (switch > 0).then_some(first);
        let right = (switch + 1 < switches).then_some(if left.is_some() { first + 1 } else { first });
        rules.push(Rule::Line { lo, hi, host_base: 0, left, right });
        lo = hi;
    }
    cables.extend((hosts + 1..hosts + switches).map(|switch| Cable { a: switch - 1, b: switch, link: fabric_link }));
    Topology { kind, hosts, names: numbered("h", hosts).chain(numbered("s", switches)).collect(), cables, rules }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{key_of, link, verify};

    #[test]
    fn every_host_reaches_every_host() {
        for (switches, hosts_per_switch) in [(1, 1), (1, 5), (2, 2), (7, 1), (5, 3)] {
            let chain = Chain { switches, hosts_per_switch, host_link: link(), fabric_link: link() };
            let topology = chain.build().unwrap();
            assert_eq!(topology.switches(), switches);
            assert_eq!(topology.hosts, switches * hosts_per_switch);
            verify(&topology);
        }
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        let good = Chain { switches: 3, hosts_per_switch: 2, host_link: link(), fabric_link: link() };
        assert_eq!(key_of(Chain { switches: 0, ..good }.build()), "switches");
        assert_eq!(key_of(Chain { hosts_per_switch: 0, ..good }.build()), "hosts_per_switch");
        assert_eq!(key_of(Chain { hosts_per_switch: 65_534, ..good }.build()), "hosts_per_switch");
        assert_eq!(key_of(Chain { switches: u32::MAX, ..good }.build()), "switches");
        let fabric_link = Link { loss: 1.0, ..link() };
        assert_eq!(key_of(Chain { fabric_link, ..good }.build()), "fabric_link.loss");
    }
}
