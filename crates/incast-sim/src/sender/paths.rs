//! Paths: which path each packet of a flow takes, with
//! [`LoadBalancing::SprayPermutation`](crate::config::LoadBalancing::SprayPermutation).

use super::flow::Flow;
use crate::{engine::random::mix, routing::Pinned, settings::Settings};
use incast_cc::spray::{Fate, Spray};

/// Purposes of the random streams.
const PATH_STREAM: u64 = 0x5041_5448;
const SCATTER_STREAM: u64 = 0x5343_4154;

/// Packets whose paths are remembered at a time; more than a bandwidth-delay product of any fabric in use.
const MOST_REMEMBERED: u32 = 1024;

/// Entry without a packet whose fate is still open.
const UNKNOWN: u32 = u32::MAX;

/// The paths of one flow.
#[derive(Debug)]
pub struct Paths {
    spray: Spray,
    /// The flow's own random stream.
    random: RandomNumbers,
    /// By position, in a ring: a packet and its path.
    taken: Vec<(u32, u16)>,
}

/// Random numbers: a counter, hashed.
#[derive(Clone, Copy, Debug)]
pub struct RandomNumbers(u64);

impl RandomNumbers {
    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// The numbers of a host's control packets.
    pub fn of_host(seed: u64, host: u32) -> Self {
        Self(mix(mix(seed ^ SCATTER_STREAM) ^ u64::from(host)))
    }
}

impl Paths {
    /// The paths of a flow.
    pub fn new(settings: &Settings, flow: &Flow) -> Self {
        let (source, destination) = (flow.spec.source, flow.spec.destination);
        let paths = settings.path_count.as_ref().map_or(1, |count| count.between(source, destination));
        let key = u64::from(source) << 32 | u64::from(flow.sequence);
        let places = flow.packets.min(MOST_REMEMBERED).next_power_of_two();
        Self {
            spray: Spray::new(paths, settings.host.path_penalty),
            random: RandomNumbers(mix(mix(settings.seed ^ PATH_STREAM) ^ key)),
            taken: vec![(UNKNOWN, 0); places as usize],
        }
    }

    fn place(&mut self, position: u32) -> &mut (u32, u16) {
        let mask = self.taken.len() - 1;
        &mut self.taken[position as usize & mask]
    }

    /// What the next packet carries: its path, and a random one for its acknowledgement. A packet that is sent `again`
    /// before its fate was known has been lost.
    #[inline(never)]
    pub fn ecmp_hash(&mut self, position: u32, again: bool) -> u32 {
        if again {
            self.on_fate(position, Fate::Lost);
        }
        let random = &mut self.random;
        let there = self.spray.next(|| (random.draw() >> 32) as u32);
        let back = random.draw() as u16;
        *self.place(position) = (position, there);
        Pinned { there, back }.hash()
    }

    /// The fate of a packet is known.
    #[inline]
    pub fn on_fate(&mut self, position: u32, fate: Fate) {
        let place = self.place(position);
        if place.0 == position {
            let path = place.1;
            place.0 = UNKNOWN;
            self.spray.on_fate(path, fate);
        }
    }

    /// See [`Spray::is_bad_path`].
    pub fn is_bad_path(&self) -> bool {
        self.spray.is_bad_path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(count: u16, places: usize) -> Paths {
        Paths { spray: Spray::new(count, true), random: RandomNumbers(7), taken: vec![(UNKNOWN, 0); places] }
    }

    #[test]
    fn a_round_takes_every_path_and_acknowledgements_take_any() {
        let mut paths = paths(8, 64);
        let sent: Vec<u32> = (0..64).map(|position| paths.ecmp_hash(position, false)).collect();
        for round in sent.chunks(8) {
            let mut there: Vec<u32> = round.iter().map(|hash| hash & 0xffff).collect();
            there.sort_unstable();
            assert_eq!(there, (0..8).collect::<Vec<_>>());
        }
        let back: std::collections::BTreeSet<u32> = sent.iter().map(|hash| hash >> 16).collect();
        assert!(back.len() > 60, "{back:?}");
    }

    #[test]
    fn what_is_sent_again_without_a_known_fate_was_lost() {
        // Packets on path 3 are lost; every other one is acknowledged at once.
        let mut paths = paths(8, 16);
        let (mut position, mut on_bad) = (0, 0);
        for packet in 0..2_000 {
            let mut path = paths.ecmp_hash(position, false) & 0xffff;
            while path == 3 {
                on_bad += usize::from(packet >= 1_000);
                path = paths.ecmp_hash(position, true) & 0xffff;
            }
            paths.on_fate(position, Fate::Arrived);
            position += 1;
        }
        assert!((1..60).contains(&on_bad), "{on_bad} of 1,000 rather than 125");
    }

    #[test]
    fn what_was_overwritten_is_not_taken_for_another() {
        let mut paths = paths(1, 4);
        for position in 0..9 {
            paths.ecmp_hash(position, false);
        }
        let known = |paths: &mut Paths, position| paths.place(position).0 == position;
        assert_eq!([0, 4, 5, 8].map(|position| known(&mut paths, position)), [false, false, true, true]);
        paths.on_fate(4, Fate::Arrived);
        assert!(known(&mut paths, 8));
        paths.on_fate(8, Fate::Arrived);
        assert!(!known(&mut paths, 8));
    }
}
