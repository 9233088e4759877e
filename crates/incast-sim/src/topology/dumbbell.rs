//! `dumbbell`: two switches with a bottleneck between them.

use super::{Link, Topology, TopologyError, chain::row, check, check::link_keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts `h0`… on the left switch `s0`, then those on the right switch `s1`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on the left.
    pub left: u32,
    /// Hosts on the right.
    pub right: u32,
    /// Each host's link.
    pub host_link: Link,
    /// The link between the switches.
    pub bottleneck: Link,
}

impl Dumbbell {
    /// Builds it.
    ///
    /// # Errors
    /// No hosts on one side, too many, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let Self { left, right, host_link, bottleneck } = *self;
        check::at_least(1, &[("left", left), ("right", right)])?;
        check::link(link_keys!("host_link"), &host_link)?;
        check::link(link_keys!("bottleneck"), &bottleneck)?;
        for (key, count) in [("left", left), ("right", right)] {
            check::Size { ports: u128::from(count) + 1, ..Default::default() }.check(key, count)?;
        }
        Ok(row("dumbbell", &[left, right], host_link, bottleneck))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{key_of, link, verify};
    use incast_units::Rate;

    #[test]
    fn every_host_reaches_every_host() {
        for (left, right) in [(1, 1), (3, 1), (2, 9)] {
            let topology = Dumbbell { left, right, host_link: link(), bottleneck: link() }.build().unwrap();
            assert_eq!((topology.hosts, topology.switches()), (left + right, 2));
            verify(&topology);
        }
    }

    #[test]
    fn the_bottleneck_is_between_the_switches() {
        let bottleneck = Link { rate: Rate::from_gbps(1), ..link() };
        let topology = Dumbbell { left: 2, right: 2, host_link: link(), bottleneck }.build().unwrap();
        let cable = topology.find_cable("s1-s0").unwrap();
        assert_eq!(topology.cables[cable].link, bottleneck);
        assert_eq!(topology.cables.iter().filter(|cable| cable.link == bottleneck).count(), 1);
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        let good = Dumbbell { left: 3, right: 2, host_link: link(), bottleneck: link() };
        assert_eq!(key_of(Dumbbell { left: 0, ..good }.build()), "left");
        assert_eq!(key_of(Dumbbell { right: 0, ..good }.build()), "right");
        assert_eq!(key_of(Dumbbell { right: 65_535, ..good }.build()), "right");
        let bottleneck = Link { rate: Rate::from_bps(999), ..link() };
        assert_eq!(key_of(Dumbbell { bottleneck, ..good }.build()), "bottleneck.rate");
    }
}
