//! `single-switch`: all hosts at one switch.

use super::{Cable, Divider, Link, Rule, Topology, TopologyError, check, check::link_keys, numbered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts `h0`…, switch `s0`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleSwitch {
    /// Number of hosts.
    pub hosts: u32,
    /// Each host's link.
    pub link: Link,
}

impl SingleSwitch {
    /// Builds it.
    ///
    /// # Errors
    /// No hosts, more than 65,535, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let hosts = self.hosts;
        check::at_least(1, &[("hosts", hosts)])?;
        check::link(link_keys!("link"), &self.link)?;
        let count = u128::from(hosts);
        check::Size { nodes: count + 1, cables: count, ports: count }.check("hosts", hosts)?;
        let rule = Rule::Tree {
            lo: 0,
            hi: hosts,
            per_group: Divider::new(1),
            down_base: 0,
            down_width: 1,
            up_base: 0,
            up_width: 0,
        };
        Ok(Topology {
            kind: "single-switch",
            hosts,
            names: numbered("h", hosts).chain(numbered("s", 1)).collect(),
            cables: (0..hosts).map(|host| Cable { a: host, b: hosts, link: self.link }).collect(),
            rules: vec![rule],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{key_of, link, verify};
    use incast_units::{Rate, Time};

    #[test]
    fn every_host_reaches_every_host() {
        for hosts in [1, 2, 33] {
            let topology = SingleSwitch { hosts, link: link() }.build().unwrap();
            assert_eq!(topology.names.last().map(String::as_str), Some("s0"));
            verify(&topology);
        }
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        let good = SingleSwitch { hosts: 4, link: link() };
        let with = |link| SingleSwitch { link, ..good }.build();
        assert_eq!(key_of(SingleSwitch { hosts: 0, ..good }.build()), "hosts");
        assert_eq!(key_of(SingleSwitch { hosts: 65_536, ..good }.build()), "hosts");
        assert_eq!(key_of(SingleSwitch { hosts: u32::MAX, ..good }.build()), "hosts");
        assert_eq!(key_of(with(Link { rate: Rate::from_bps(0), ..link() })), "link.rate");
        assert_eq!(key_of(with(Link { delay: Time::MAX, ..link() })), "link.delay");
        for loss in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(key_of(with(Link { loss, ..link() })), "link.loss");
        }
        let error = SingleSwitch { hosts: 0, ..good }.build().unwrap_err();
        assert_eq!(error.to_string(), "`hosts` is 0, allowed is at least 1");
        let error = with(Link { rate: Rate::from_bps(0), ..link() }).unwrap_err();
        assert_eq!(error.to_string(), "`link.rate` is 0bps, allowed is a rate of 1Kbps to 100Tbps");
    }
}
