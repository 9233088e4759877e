//! Sender: which way each packet takes, where load balancing is [`LoadBalancing::Permuted`].

use super::Host;
use crate::{
    config::LoadBalancing, engine::random::mix, fabric::packet::Packet, routing::Pinned, settings::Settings,
};
use incast_cc::spray::{Fate, Spray};

/// Purposes of the random streams.
const PATH_STREAM: u64 = 0x5041_5448;
const SCATTER_STREAM: u64 = 0x5343_4154;

/// Packets whose ways are remembered at a time; more than a bandwidth-delay product of any fabric in use.
const MOST_REMEMBERED: u32 = 1024;

/// Nothing is to be learned of a packet's way, or not any more.
const UNKNOWN: u32 = u32::MAX;

/// The ways of one flow.
#[derive(Debug)]
pub struct Paths {
    spray: Spray,
    /// State of the flow's own random stream.
    lots: Lots,
    /// By position, in a ring: which packet it was, and which way it took.
    taken: Vec<(u32, u16)>,
}

/// Random numbers by counting.
#[derive(Clone, Copy, Debug)]
pub struct Lots(u64);

impl Lots {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// Those of a host's control packets.
    pub fn of_host(seed: u64, host: u32) -> Self {
        Self(mix(mix(seed ^ SCATTER_STREAM) ^ u64::from(host)))
    }
}

impl Paths {
    /// The ways of a flow of so many packets.
    pub fn new(settings: &Settings, source: u32, destination: u32, sequence: u32, packets: u32) -> Self {
        let ways = settings.ways.as_ref().map_or(1, |ways| ways.between(source, destination));
        let flow = u64::from(source) << 32 | u64::from(sequence);
        let places = packets.min(MOST_REMEMBERED).next_power_of_two();
        Self {
            spray: Spray::new(ways, settings.host.path_penalty),
            lots: Lots(mix(mix(settings.seed ^ PATH_STREAM) ^ flow)),
            taken: vec![(UNKNOWN, 0); places as usize],
        }
    }

    fn place(&mut self, position: u32) -> &mut (u32, u16) {
        let mask = self.taken.len() - 1;
        &mut self.taken[position as usize & mask]
    }

    /// What the next packet carries: its way, and any for its answer. A packet that is sent `again` without that
    /// anything was heard of the first one has been lost on its way.
    #[inline(never)]
    pub fn entropy(&mut self, position: u32, again: bool) -> u32 {
        if again {
            self.on_fate(position, Fate::Lost);
        }
        let lots = &mut self.lots;
        let there = self.spray.next(|| (lots.next() >> 32) as u32);
        let back = lots.next() as u16;
        *self.place(position) = (position, there);
        Pinned { there, back }.entropy()
    }

    /// Something was heard of a packet.
    #[inline]
    pub fn on_fate(&mut self, position: u32, fate: Fate) {
        let place = self.place(position);
        if place.0 == position {
            let way = place.1;
            place.0 = UNKNOWN;
            self.spray.on_fate(way, fate);
        }
    }

    /// See [`Spray::is_bad_way`].
    pub fn is_bad_way(&self) -> bool {
        self.spray.is_bad_way()
    }
}

impl Host<'_> {
    /// Lets a control packet take any way.
    pub(super) fn scatter(&mut self, packet: &mut Packet) {
        if self.settings.switch.load_balancing == LoadBalancing::Permuted {
            packet.set_pinned_way(self.lots.next() as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(ways: u16, places: usize) -> Paths {
        Paths { spray: Spray::new(ways, true), lots: Lots(7), taken: vec![(UNKNOWN, 0); places] }
    }

    #[test]
    fn a_round_takes_every_way_and_answers_take_any() {
        let mut paths = paths(8, 64);
        let sent: Vec<u32> = (0..64).map(|position| paths.entropy(position, false)).collect();
        for round in sent.chunks(8) {
            let mut there: Vec<u32> = round.iter().map(|entropy| entropy & 0xffff).collect();
            there.sort_unstable();
            assert_eq!(there, (0..8).collect::<Vec<_>>());
        }
        let back: std::collections::BTreeSet<u32> = sent.iter().map(|entropy| entropy >> 16).collect();
        assert!(back.len() > 60, "{back:?}");
    }

    #[test]
    fn what_is_sent_again_in_silence_was_lost() {
        // Packets on way 3 are lost; every other one is acknowledged at once.
        let mut paths = paths(8, 16);
        let (mut position, mut on_bad) = (0, 0);
        for packet in 0..2_000 {
            let mut way = paths.entropy(position, false) & 0xffff;
            while way == 3 {
                on_bad += usize::from(packet >= 1_000);
                way = paths.entropy(position, true) & 0xffff;
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
            paths.entropy(position, false);
        }
        let known = |paths: &mut Paths, position| paths.place(position).0 == position;
        assert_eq!([0, 4, 5, 8].map(|position| known(&mut paths, position)), [false, false, true, true]);
        paths.on_fate(4, Fate::Arrived);
        assert!(known(&mut paths, 8));
        paths.on_fate(8, Fate::Arrived);
        assert!(!known(&mut paths, 8));
    }
}
