//! `ring`: switches in a ring, each with its hosts.

use super::{Cable, Link, Rule, Topology, TopologyError, check, check::link_keys, numbered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts `h0`… switch by switch, switches `s0`… in a ring: the last is joined to the first.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    /// Number of switches, at least 3.
    pub switches: u32,
    /// Hosts of each.
    pub hosts_per_switch: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between neighbouring switches.
    pub fabric_link: Link,
}

impl Ring {
    /// Builds it.
    ///
    /// # Errors
    /// Fewer than 3 switches, no hosts, too many of either, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let Self { switches, hosts_per_switch, host_link, fabric_link } = *self;
        check::at_least(3, &[("switches", switches)])?;
        check::at_least(1, &[("hosts_per_switch", hosts_per_switch)])?;
        check::link(link_keys!("host_link"), &host_link)?;
        check::link(link_keys!("fabric_link"), &fabric_link)?;
        let (count, each) = (u128::from(switches), u128::from(hosts_per_switch));
        check::Size { ports: each + 2, ..Default::default() }.check("hosts_per_switch", hosts_per_switch)?;
        check::Size { nodes: count * (each + 1), cables: count * (each + 1), ports: 0 }.check("switches", switches)?;

        let hosts = switches * hosts_per_switch;
        let host_cables = (0..hosts).map(|a| Cable { a, b: hosts + a / hosts_per_switch, link: host_link });
        let around = (0..switches).map(|switch| Cable {
            a: hosts + switch,
            b: hosts + (switch + 1) % switches,
            link: fabric_link,
        });
        let first = hosts_per_switch as u16;
        let rules = (0..switches).map(|switch| {
            // Cable i leads from switch i to the right, and cable i - 1 to the left. Switch 0 meets its right one
            // first.
            let (left, right) = if switch == 0 { (first + 1, first) } else { (first, first + 1) };
            Rule::Ring {
                lo: switch * hosts_per_switch,
                hi: (switch + 1) * hosts_per_switch,
                hosts,
                host_base: 0,
                left,
                right,
                right_end: (switches / 2 + 1) * hosts_per_switch,
                left_start: switches.div_ceil(2) * hosts_per_switch,
            }
        });
        Ok(Topology {
            kind: "ring",
            hosts,
            names: numbered("h", hosts).chain(numbered("s", switches)).collect(),
            cables: host_cables.chain(around).collect(),
            rules: rules.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{key_of, link, verify};

    #[test]
    fn every_host_reaches_every_host() {
        for (switches, hosts_per_switch) in [(3, 1), (4, 1), (4, 3), (5, 2), (8, 2), (9, 1)] {
            let ring = Ring { switches, hosts_per_switch, host_link: link(), fabric_link: link() };
            verify(&ring.build().unwrap());
        }
    }

    #[test]
    fn both_ways_round_are_used_where_they_are_equal() {
        let ring = Ring { switches: 4, hosts_per_switch: 1, host_link: link(), fabric_link: link() }.build().unwrap();
        assert_eq!(ring.rules[1].alternatives(3).collect::<Vec<_>>(), [1, 2]);
        assert_ne!(ring.rules[1].pick(3, 0), ring.rules[1].pick(3, u32::MAX));
        assert_eq!(ring.rules[1].alternatives(2).count(), 1);
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        let good = Ring { switches: 3, hosts_per_switch: 2, host_link: link(), fabric_link: link() };
        assert_eq!(key_of(Ring { switches: 2, ..good }.build()), "switches");
        assert_eq!(key_of(Ring { hosts_per_switch: 0, ..good }.build()), "hosts_per_switch");
        assert_eq!(key_of(Ring { switches: 1 << 20, ..good }.build()), "switches");
        let host_link = Link { loss: -0.5, ..link() };
        assert_eq!(key_of(Ring { host_link, ..good }.build()), "host_link.loss");
    }
}
