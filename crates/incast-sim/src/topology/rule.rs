//! The routes of a topology: the ports of a switch that lead to a host.

use super::{Divider, Node};
use std::hint::select_unpredictable;

/// How one switch finds the ports that lead to a host.
///
/// Regular fabrics compute them; others have a table. All alternatives are of equal cost.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// A switch of a tree: hosts `lo..hi` are below it, `per_group` of them behind each group of `down_width` ports
    /// from `down_base` on; everything else is behind the `up_width` ports from `up_base` on.
    Tree {
        /// First host below.
        lo: u32,
        /// One past the last host below.
        hi: u32,
        /// Hosts behind one group of ports.
        per_group: Divider,
        /// First port downwards.
        down_base: u16,
        /// Parallel ports to each group.
        down_width: u16,
        /// First port upwards.
        up_base: u16,
        /// Ports upwards; zero at the top.
        up_width: u16,
    },
    /// A switch in a row: hosts `lo..hi` have one port each, lower ones are to the left and higher ones to the right.
    Line {
        /// First host of this switch.
        lo: u32,
        /// One past its last host.
        hi: u32,
        /// Port of host `lo`.
        host_base: u16,
        /// Port to the switch on the left; none at the left end.
        left: Option<u16>,
        /// Port to the switch on the right; none at the right end.
        right: Option<u16>,
    },
    /// A switch of a ring: the shorter direction, or both where they are equally long.
    ///
    /// With `d = (destination - lo) mod hosts`, the path to the right is a shortest one if `d < right_end`, and the
    /// path to the left if `d ≥ left_start`.
    Ring {
        /// First host of this switch.
        lo: u32,
        /// One past its last host.
        hi: u32,
        /// Hosts of the ring.
        hosts: u32,
        /// Port of host `lo`.
        host_base: u16,
        /// Port to the switch on the left.
        left: u16,
        /// Port to the switch on the right; next to `left`, on either side of it.
        right: u16,
        /// End of what the right reaches in the fewest hops.
        right_end: u32,
        /// Start of what the left reaches in the fewest hops; at most `right_end`.
        left_start: u32,
    },
    /// Any fabric: a table.
    Table(RoutingTable),
}

/// A dense table of one switch.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RoutingTable {
    /// For each host, the index of its set of ports.
    pub set_of: Vec<u16>,
    /// For each set, where it starts and ends in `ports`; an empty set has no route.
    pub sets: Vec<(u32, u32)>,
    /// Ports, set after set, ascending within a set.
    pub ports: Vec<u16>,
}

/// Hosts of a topology, as a destination.
pub type Destination = Node;

/// The equal-cost ports to a host: consecutive ones, or a list.
#[derive(Clone, Copy)]
pub(crate) enum Candidates<'a> {
    Range { base: u16, width: u16 },
    List(&'a [u16]),
}

impl Candidates<'_> {
    const NONE: Self = Self::Range { base: 0, width: 0 };

    #[inline]
    const fn one(port: u16) -> Self {
        Self::Range { base: port, width: 1 }
    }

    #[inline]
    pub(crate) const fn count(&self) -> u16 {
        match self {
            Self::Range { width, .. } => *width,
            Self::List(ports) => ports.len() as u16,
        }
    }

    #[inline]
    pub(crate) fn nth(&self, index: u16) -> Option<u16> {
        match *self {
            Self::Range { base, width } => (index < width).then(|| base + index),
            Self::List(ports) => ports.get(usize::from(index)).copied(),
        }
    }
}

impl Rule {
    /// The first port and the number of ports of a switch of a tree: what most switches are.
    #[inline(always)]
    pub(crate) fn of_tree(&self, destination: Destination) -> Option<(u16, u16)> {
        let Self::Tree { lo, hi, per_group, down_base, down_width, up_base, up_width } = *self else {
            return None;
        };
        // Whether a packet goes up or down is unpredictable: both are computed, and one is selected without a branch.
        let below = destination.wrapping_sub(lo);
        let is_below = below < hi - lo;
        let down = down_base.wrapping_add((per_group.divide(below) as u16).wrapping_mul(down_width));
        let base = select_unpredictable(is_below, down, up_base);
        Some((base, select_unpredictable(is_below, down_width, up_width)))
    }

    pub(crate) fn candidates(&self, destination: Destination) -> Candidates<'_> {
        match *self {
            Self::Tree { .. } => {
                self.of_tree(destination).map_or(Candidates::NONE, |(base, width)| Candidates::Range { base, width })
            }
            Self::Line { lo, hi, host_base, left, right } => {
                if (lo..hi).contains(&destination) {
                    return Candidates::one(host_base + (destination - lo) as u16);
                }
                let port = if destination < lo { left } else { right };
                port.map_or(Candidates::NONE, Candidates::one)
            }
            Self::Ring { lo, hi, hosts, host_base, left, right, right_end, left_start } => {
                if (lo..hi).contains(&destination) {
                    return Candidates::one(host_base + (destination - lo) as u16);
                }
                if destination >= hosts {
                    return Candidates::NONE;
                }
                let round = if destination < lo { hosts } else { 0 };
                let ahead = destination + round - lo;
                match (ahead < right_end, ahead >= left_start) {
                    (true, true) => Candidates::Range { base: left.min(right), width: 2 },
                    (true, false) => Candidates::one(right),
                    (false, _) => Candidates::one(left),
                }
            }
            Self::Table(ref table) => Candidates::List(table.of(destination)),
        }
    }

    /// The port that a packet to host `destination` takes, or `None` where no port leads there.
    ///
    /// `hash` chooses among equal-cost ports, by its upper bits: equal values choose the same port, and evenly
    /// distributed values load all ports alike. See [`salted_hash`].
    #[inline(always)]
    pub fn pick(&self, destination: Destination, hash: u32) -> Option<u16> {
        if let Some((base, width)) = self.of_tree(destination) {
            return (width != 0).then(|| base + reduce(hash, u32::from(width)) as u16);
        }
        let candidates = self.candidates(destination);
        candidates.nth(reduce(hash, u32::from(candidates.count())) as u16)
    }

    /// All equal-cost ports to host `destination`, ascending; nothing where no port leads there.
    #[inline]
    pub fn alternatives(&self, destination: Destination) -> impl Iterator<Item = u16> + '_ {
        let (base, width, list): (u16, u16, &[u16]) = match self.candidates(destination) {
            Candidates::Range { base, width } => (base, width, &[]),
            Candidates::List(ports) => (0, 0, ports),
        };
        (0..width).map(move |offset| base + offset).chain(list.iter().copied())
    }
}

/// Maps a number that is evenly distributed over u32 to `0..n`, evenly, without a division.
#[inline]
const fn reduce(hash: u32, n: u32) -> u32 {
    ((hash as u64 * n as u64) >> 32) as u32
}

/// What a switch chooses an equal-cost port by: a hash of the flow's hash and of the switch's `salt`.
///
/// With different salts the choices of one flow in different switches are independent. Were they not, all flows
/// that reach one switch would have been chosen by the same bits and would choose the same port again (polarisation).
/// For one salt the mapping is one to one.
#[inline]
pub const fn salted_hash(flow_hash: u32, salt: u32) -> u32 {
    // Two rounds of multiply and shift, with the constants of C. Wellons' `lowbias32` (2018).
    let mut x = flow_hash ^ salt.wrapping_mul(0x9e37_79b9);
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

impl RoutingTable {
    /// The ports to host `destination`, ascending.
    #[inline]
    pub fn of(&self, destination: Destination) -> &[u16] {
        let set = self.set_of.get(destination as usize).and_then(|&set| self.sets.get(usize::from(set)));
        set.and_then(|&(start, end)| self.ports.get(start as usize..end as usize)).unwrap_or(&[])
    }

    /// No routes yet; set 0 is empty and set `1 + p` is port p alone.
    pub(crate) fn of_single_ports(hosts: usize, ports: usize) -> Self {
        let singles = (0..ports as u32).map(|port| (port, port + 1));
        Self {
            set_of: vec![0; hosts],
            sets: std::iter::once((0, 0)).chain(singles).collect(),
            ports: (0..ports).map(|port| port as u16).collect(),
        }
    }

    /// The set that is one port alone, in a table of [`RoutingTable::of_single_ports`].
    pub(crate) const fn single(port: u16) -> u16 {
        port + 1
    }

    /// Appends a set; `None` where all indices are taken.
    pub(crate) fn add(&mut self, set: &[u16]) -> Option<u16> {
        let index = u16::try_from(self.sets.len()).ok()?;
        let start = self.ports.len() as u32;
        self.ports.extend_from_slice(set);
        self.sets.push((start, self.ports.len() as u32));
        Some(index)
    }

    /// Replaces the route to a host by `set` (ascending). False where no further set fits, which needs more than
    /// 65,535.
    pub(super) fn assign(&mut self, destination: Destination, set: &[u16]) -> bool {
        let known = self.sets.iter().position(|&(start, end)| &self.ports[start as usize..end as usize] == set);
        let index = match known {
            Some(index) => Some(index as u16),
            None => self.add(set),
        };
        match (index, self.set_of.get_mut(destination as usize)) {
            (Some(index), Some(place)) => {
                *place = index;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{FatTree, LeafSpine, ideal, tables, tests::link};
    use proptest::prelude::*;

    /// Hashes of flows 0, 1, 2 …, as poor as can be: the numbers themselves, times a constant.
    fn flow_hashes(count: u32) -> impl Iterator<Item = u32> {
        (0..count).map(|flow| flow.wrapping_mul(0x0101_0101))
    }

    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let squares = counts.iter().map(|&count| (f64::from(count) - expected) * (f64::from(count) - expected));
        squares.sum::<f64>() / expected
    }

    #[test]
    fn flows_spread_evenly_over_the_cores_of_a_fat_tree() {
        let topology = FatTree { k: 8, link: link() }.build().unwrap();
        let ports = topology.ports();
        let first_core = topology.find_node("core0").unwrap();
        let mut counts = vec![0; 16];
        for hash in flow_hashes(10_000) {
            let path = ideal::path(&topology, &ports, &topology.rules, &|node| node, 0, 127, hash).unwrap();
            let core = path.iter().find(|hop| hop.node >= first_core).unwrap();
            counts[(core.node - first_core) as usize] += 1;
        }
        // 15 degrees of freedom: 37.7 is exceeded with probability 0.001.
        assert!(chi_square(&counts) < 37.7, "{counts:?}");
    }

    #[test]
    fn one_salt_for_all_switches_would_polarise() {
        let topology = FatTree { k: 8, link: link() }.build().unwrap();
        let ports = topology.ports();
        let first_core = topology.find_node("core0").unwrap();
        let mut used = [false; 16];
        for hash in flow_hashes(10_000) {
            let path = ideal::path(&topology, &ports, &topology.rules, &|_| 7, 0, 127, hash).unwrap();
            let core = path.iter().find(|hop| hop.node >= first_core).unwrap();
            used[(core.node - first_core) as usize] = true;
        }
        assert_eq!(used.iter().filter(|used| **used).count(), 4);
    }

    #[test]
    fn different_salts_choose_independently() {
        for (one, other) in [(0, 1), (1, 2), (100, 101), (5, 1 << 20), (0, u32::MAX)] {
            for width in [2u32, 3, 4, 16] {
                let mut counts = vec![0; (width * width) as usize];
                for hash in flow_hashes(20_000) {
                    let first = reduce(salted_hash(hash, one), width);
                    counts[(first * width + reduce(salted_hash(hash, other), width)) as usize] += 1;
                }
                let freedom = f64::from(width * width - 1);
                // Mean plus about five standard deviations of the chi-square distribution.
                assert!(chi_square(&counts) < freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0, "{one} {other} {counts:?}");
            }
        }
    }

    #[test]
    fn a_rule_is_small() {
        assert!(size_of::<Rule>() <= 80, "{}", size_of::<Rule>());
    }

    #[test]
    fn tables_leave_out_what_is_down() {
        let topology = LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 2,
            host_link: link(),
            fabric_link: link(),
            fabric_links: 1,
        }
        .build()
        .unwrap();
        let cable = topology.find_cable("leaf0-spine1").unwrap();
        let all = tables(&topology, &|_| false).unwrap();
        let some = tables(&topology, &|index| index == cable).unwrap();
        let leaf0 = &some[0];
        assert_eq!(all[0].of(2), [2, 3]);
        assert_eq!(leaf0.of(2), [2]);
        assert_eq!(leaf0.of(1), [1], "its own hosts are not concerned");
        assert_eq!(some[1].of(0), [2], "leaf1 must avoid spine1 for leaf0");
        assert_eq!(some[1].of(4), [2, 3]);
        // spine1 itself goes round through the other leaves.
        assert_eq!(some[4].of(0), [1, 2], "its ports are leaf0, leaf1, leaf2; leaf0's is down");
    }

    #[test]
    fn a_host_whose_cable_is_down_has_no_route() {
        let topology = FatTree { k: 4, link: link() }.build().unwrap();
        for table in tables(&topology, &|index| index == 5).unwrap() {
            assert!(table.of(5).is_empty());
            assert!(!table.of(4).is_empty());
            assert!(table.of(16).is_empty(), "there is no such host");
        }
    }

    proptest! {
        #[test]
        fn a_hash_reduces_into_range(hash in any::<u32>(), n in 1u32..65_536) {
            prop_assert!(reduce(hash, n) < n);
        }

        #[test]
        fn assigned_routes_are_found(routes in proptest::collection::vec((0u32..8, proptest::collection::btree_set(0u16..6, 0..6)), 0..40)) {
            let mut table = RoutingTable::of_single_ports(8, 6);
            for (host, set) in &routes {
                let set: Vec<u16> = set.iter().copied().collect();
                prop_assert!(table.assign(*host, &set));
                prop_assert_eq!(table.of(*host), &set[..]);
                let rule = Rule::Table(table.clone());
                prop_assert_eq!(rule.alternatives(*host).collect::<Vec<_>>(), set.clone());
                prop_assert_eq!(rule.pick(*host, u32::MAX), set.last().copied());
            }
            prop_assert!(!table.assign(8, &[0]));
        }
    }
}
