//! How long a flow takes alone, by the formula of the last column of `fct.txt` of HPCC's ns-3 simulator.
//!
//! It counts one full packet's serialisation on each link besides that of the whole flow on the slowest one, and none
//! for acknowledgements, so that measured times can be shorter. `flows.parquet` has the exact times (`ideal_ps`).

use incast_sim::topology::Topology;
use incast_units::{Bytes, Rate, Time};
use std::collections::{BTreeSet, VecDeque};

/// Header bytes of each packet in the formula, whatever the law adds.
const HEADER: u64 = 48;

/// The shortest paths between hosts.
#[derive(Debug)]
pub struct Standalone {
    hosts: u32,
    payload: u64,
    /// For each node its links: the other end, rate, delay in nanoseconds.
    links: Vec<Vec<(u32, Rate, u64)>>,
}

/// A path: round trip in nanoseconds and the slowest link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Propagation in both directions, and serialisation of a full payload on each link of the path, each rounded down.
    pub rtt_ns: u64,
    /// Rate of the slowest link.
    pub rate: Rate,
}

impl Path {
    /// Nanoseconds that `bytes` of payload take alone in packets of `payload`.
    pub fn standalone_ns(&self, bytes: u64, payload: u64) -> u64 {
        let total = u128::from(bytes) + u128::from(bytes.div_ceil(payload.max(1))) * u128::from(HEADER);
        let transfer = total * 8_000_000_000 / u128::from(self.rate.bps().max(1));
        self.rtt_ns.saturating_add(u64::try_from(transfer).unwrap_or(u64::MAX))
    }
}

impl Standalone {
    /// For a fabric and the payload bytes of a full packet.
    pub fn new(topology: &Topology, payload: u64) -> Self {
        let mut links = vec![Vec::new(); topology.names.len()];
        for cable in &topology.cables {
            for (node, peer) in [(cable.a, cable.b), (cable.b, cable.a)] {
                links[node as usize].push((peer, cable.link.rate, cable.link.delay.ps() / 1000));
            }
        }
        Self { hosts: topology.hosts, payload, links }
    }

    /// The paths from a host to all nodes by breadth-first search, as in the simulator: of paths with the same number
    /// of hops the first one found. `None` where there is no path.
    pub fn from(&self, host: u32) -> Vec<Option<Path>> {
        // Delay, serialisation and rate so far.
        let mut known: Vec<Option<(u64, u64, Rate)>> = vec![None; self.links.len()];
        let mut queue = VecDeque::from([host]);
        known[host as usize] = Some((0, 0, Rate::from_bps(u64::MAX)));
        while let Some(node) = queue.pop_front() {
            let Some((delay, serialisation, rate)) = known[node as usize] else { continue };
            for &(peer, link, link_delay) in &self.links[node as usize] {
                if known[peer as usize].is_some() {
                    continue;
                }
                let packet = self.payload.saturating_mul(8_000_000_000) / link.bps().max(1);
                known[peer as usize] =
                    Some((delay.saturating_add(link_delay), serialisation.saturating_add(packet), rate.min(link)));
                // Hosts do not forward packets.
                if peer >= self.hosts {
                    queue.push_back(peer);
                }
            }
        }
        let path = |(delay, serialisation, rate): (u64, u64, Rate)| Path {
            rtt_ns: delay.saturating_mul(2).saturating_add(serialisation),
            rate,
        };
        known.into_iter().map(|known| known.map(path)).collect()
    }

    /// The longest round trip between two hosts, and the largest product of a round trip and its path's rate.
    pub fn largest(&self) -> (Time, Bytes) {
        let (mut rtt, mut product) = (0, 0);
        // Hosts with equal links to one switch are equally far from all others.
        let mut seen = BTreeSet::new();
        for host in 0..self.hosts {
            if !seen.insert(&self.links[host as usize]) {
                continue;
            }
            for (other, path) in (0..self.hosts).zip(self.from(host)) {
                if let Some(path) = path.filter(|_| other != host) {
                    rtt = rtt.max(path.rtt_ns);
                    product = product.max(u128::from(path.rtt_ns) * u128::from(path.rate.bps()));
                }
            }
        }
        let bytes = u64::try_from(product / 8_000_000_000).unwrap_or(u64::MAX);
        (Time::from_ps(rtt.saturating_mul(1000)), Bytes::new(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::topology::{Clos3, Link, SingleSwitch};

    fn link(gbps: u64) -> Link {
        Link { rate: Rate::from_gbps(gbps), delay: Time::from_us(1), loss: 0.0 }
    }

    #[test]
    fn the_star_of_the_reference_cases() {
        let star = SingleSwitch { hosts: 3, link: link(100) }.build().expect("a star");
        let standalone = Standalone::new(&star, 1000);
        assert_eq!(standalone.largest(), (Time::from_ns(4160), Bytes::new(52_000)));
        let path = standalone.from(1)[0].expect("a path");
        assert_eq!(path.standalone_ns(500_000, 1000), 46_080);
        assert_eq!(path.standalone_ns(20_000_000, 1000), 1_680_960);
    }

    #[test]
    fn the_fabric_of_the_reference_cases() {
        let fabric = Clos3 {
            pods: 5,
            tors_per_pod: 4,
            aggs_per_pod: 4,
            cores: 16,
            hosts_per_tor: 16,
            host_link: link(100),
            tor_agg_link: link(400),
            agg_core_link: link(400),
            tor_agg_links: 1,
            agg_core_links: 1,
        };
        let standalone = Standalone::new(&fabric.build().expect("a fabric"), 1000);
        assert_eq!(standalone.largest(), (Time::from_ns(12_240), Bytes::new(153_000)));
        // 1,434 bytes to another pod, from fct.txt of fat320.
        assert_eq!(standalone.from(0)[319].map(|path| path.standalone_ns(1434, 1000)), Some(12_362));
    }
}
