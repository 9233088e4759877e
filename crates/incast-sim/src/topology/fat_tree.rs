//! `fat-tree`: the k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008).

use super::{
    Link, Topology, TopologyError, check,
    check::link_keys,
    clos3::{Links, Names, Shape},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// k pods of k/2 edge and k/2 aggregation switches, k²/4 core switches and k³/4 hosts: hosts `h0`… edge by edge,
/// switches `edge0`…, `agg0`…, `core0`….
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch, an even number.
    pub k: u32,
    /// Every link.
    pub link: Link,
}

impl FatTree {
    /// Builds it.
    ///
    /// # Errors
    /// `k` zero, odd or too large, or an impossible link.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let Self { k, link } = *self;
        if k == 0 || !k.is_multiple_of(2) {
            return Err(TopologyError::Value {
                key: "k",
                found: k.to_string(),
                allowed: "an even number of at least 2".to_owned(),
            });
        }
        check::link(link_keys!("link"), &link)?;
        let half = k / 2;
        let wide = u128::from(half);
        let size = check::Size { nodes: wide * wide * (2 * wide + 5), cables: 6 * wide * wide * wide, ports: 2 * wide };
        size.check("k", k)?;
        let (tors_per_pod, aggs_per_pod, hosts_per_tor) = (half, half, half);
        let (pods, cores, tor_agg_links, agg_core_links) = (k, half * half, 1, 1);
        let shape = Shape { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, tor_agg_links, agg_core_links };
        let names = Names { kind: "fat-tree", edge: "edge" };
        Ok(shape.build(names, Links { host: link, edge_agg: link, agg_core: link }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{key_of, link, verify};

    #[test]
    fn every_host_reaches_every_host() {
        for k in [2, 4, 6, 8] {
            let topology = FatTree { k, link: link() }.build().unwrap();
            assert_eq!(topology.hosts, k * k * k / 4);
            assert_eq!(topology.switches(), 5 * k * k / 4);
            assert_eq!(topology.cables.len() as u32, 3 * k * k * k / 4);
            let ports = topology.ports();
            for switch in topology.hosts..topology.nodes() {
                assert_eq!(ports.of(switch).len() as u32, k);
            }
            verify(&topology);
        }
    }

    #[test]
    fn refuses_nonsense_and_says_which() {
        for k in [0, 1, 3, 7, 204, 65_534, u32::MAX, u32::MAX - 1] {
            assert_eq!(key_of(FatTree { k, link: link() }.build()), "k", "{k}");
        }
        assert_eq!(key_of(FatTree { k: 4, link: Link { loss: 2.0, ..link() } }.build()), "link.loss");
        let error = FatTree { k: 3, link: link() }.build().unwrap_err();
        assert_eq!(error.to_string(), "`k` is 3, allowed is an even number of at least 2");
    }
}
