//! The receiver's half: which packets of a flow have arrived.

use super::Blocks;

/// The result of a data packet's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// New, and taken.
    New,
    /// It had arrived before.
    Duplicate,
    /// Out of order at a go-back-N receiver: discarded.
    Refused,
    /// Only its header came, and the packet is still missing.
    Trimmed,
}

/// Arrivals of one flow.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// All packets below have arrived.
    expected: u32,
    /// One past the highest packet that has arrived.
    highest: u32,
    /// Bits of packets `expected..highest`, in a ring; empty while all came in order.
    arrived: Vec<u64>,
}

impl Reassembly {
    /// A data packet arrived. `in_order_only` is the go-back-N receiver.
    #[inline]
    pub fn on_packet(&mut self, packet: u32, in_order_only: bool) -> Received {
        if packet == self.expected && self.highest <= packet {
            self.expected += 1;
            self.highest = self.expected;
            return Received::New;
        }
        if packet < self.expected {
            return Received::Duplicate;
        }
        if in_order_only {
            return Received::Refused;
        }
        self.out_of_order(packet)
    }

    /// A packet has arrived.
    pub fn has(&self, packet: u32) -> bool {
        let (word, bit) = if packet < self.highest && packet >= self.expected {
            self.place(packet)
        } else {
            return packet < self.expected;
        };
        self.arrived[word] & bit != 0
    }

    fn out_of_order(&mut self, packet: u32) -> Received {
        let span = packet as usize / 64 - self.expected as usize / 64 + 1;
        if span > self.arrived.len() {
            self.grow(span);
        }
        let (word, bit) = self.place(packet);
        if self.arrived[word] & bit != 0 {
            return Received::Duplicate;
        }
        self.arrived[word] |= bit;
        self.highest = self.highest.max(packet + 1);
        while self.expected < self.highest {
            let (word, bit) = self.place(self.expected);
            if self.arrived[word] & bit == 0 {
                break;
            }
            self.arrived[word] &= !bit;
            self.expected += 1;
        }
        Received::New
    }

    /// The SACK blocks of the acknowledgement of a packet that has arrived beyond a gap.
    pub fn blocks(&self, packet: u32) -> Blocks {
        let before = self.run_below(packet, false);
        let after = self.run_above(packet);
        let first = packet - before;
        let gap = self.run_below(first, true);
        // Beyond the gap there may be nothing but what is acknowledged anyway, or it may be too wide.
        let has_second = gap < Blocks::MOST && first - gap > self.expected;
        let length = if has_second { self.run_below(first - gap, false) } else { 0 };
        let byte = |count: u32| count.min(Blocks::MOST) as u8;
        Blocks { before: byte(before), after: byte(after), gap: byte(gap), length: byte(length) }
    }

    /// How many packets just below one have arrived, or are `missing`; at most [`Blocks::MOST`].
    fn run_below(&self, packet: u32, missing: bool) -> u32 {
        let most = (packet - self.expected).min(Blocks::MOST);
        let mut count = 0;
        while count < most {
            let (word, bit) = self.place(packet - count - 1);
            let same = if missing { !self.arrived[word] } else { self.arrived[word] };
            // The packet's bit becomes the highest.
            let (below, run) = (bit.trailing_zeros() + 1, (same << bit.leading_zeros()).leading_ones());
            count += run.min(below);
            if run < below {
                break;
            }
        }
        count.min(most)
    }

    /// How many packets just above one have arrived; at most [`Blocks::MOST`].
    fn run_above(&self, packet: u32) -> u32 {
        let most = (self.highest - packet - 1).min(Blocks::MOST);
        let mut count = 0;
        while count < most {
            let (word, bit) = self.place(packet + count + 1);
            let (above, run) = (bit.leading_zeros() + 1, (self.arrived[word] >> bit.trailing_zeros()).trailing_ones());
            count += run.min(above);
            if run < above {
                break;
            }
        }
        count.min(most)
    }

    fn place(&self, packet: u32) -> (usize, u64) {
        ((packet as usize / 64) & (self.arrived.len() - 1), 1 << (packet % 64))
    }

    fn grow(&mut self, span: usize) {
        let words = span.next_power_of_two().max(2);
        let mut larger = vec![0; words];
        if !self.arrived.is_empty() {
            for packet in self.expected..self.highest {
                let (word, bit) = self.place(packet);
                if self.arrived[word] & bit != 0 {
                    larger[(packet as usize / 64) & (words - 1)] |= bit;
                }
            }
        }
        self.arrived = larger;
    }

    /// All packets below this one have arrived.
    #[inline]
    pub fn expected(&self) -> u32 {
        self.expected
    }

    /// One past the highest packet that has arrived.
    #[inline]
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// Frees memory that a finished flow no longer needs.
    pub fn finish(&mut self) {
        self.arrived = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{Ack, ReorderingWindow, Scoreboard};
    use incast_cc::law::Recovery;
    use incast_units::Time;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The smoothed RTT that the sender assumes.
    const RTT: Time = Time::from_ps(10);

    /// What the network does to a packet or its acknowledgement.
    #[derive(Clone, Copy, Debug)]
    enum Fate {
        Deliver,
        Lose,
        LoseAck,
        Duplicate,
        Delay(usize),
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![
            5 => Just(Fate::Deliver),
            2 => Just(Fate::Lose),
            1 => Just(Fate::LoseAck),
            1 => Just(Fate::Duplicate),
            2 => (1usize..30).prop_map(Fate::Delay),
        ]
    }

    /// Sends a flow through a network that does what `fates` say, and then behaves. Returns what arrived.
    fn transfer(recovery: Recovery, packets: u32, window: u32, fates: &[Fate]) -> Vec<u32> {
        let mut send = Scoreboard::new(recovery, packets, 3, ReorderingWindow::Adaptive);
        let mut receive = Reassembly::default();
        let in_order_only = recovery == Recovery::GoBackN;
        let mut taken = Vec::new();
        let mut flight: Vec<(usize, u32, u64, Fate)> = Vec::new();
        let mut fates = fates.iter();
        let mut clock = 0usize;
        while !send.is_done() {
            clock += 1;
            assert!(clock < 100_000, "no end: {send:?} {receive:?}");
            if send.in_flight() < window
                && let Some((packet, _)) = send.next()
            {
                send.sent(clock as u64);
                let fate = fates.next().copied().unwrap_or(Fate::Deliver);
                let delay = if let Fate::Delay(by) = fate { by } else { 0 };
                flight.push((clock + 5 + delay, packet, clock as u64, fate));
                if let Fate::Duplicate = fate {
                    flight.push((clock + 9, packet, clock as u64, Fate::Deliver));
                }
            }
            if send.late_until().is_some_and(|time| time.ps() <= clock as u64) {
                send.on_late(Time::from_ps(clock as u64), RTT);
            }
            if flight.is_empty() {
                send.on_timeout(Time::from_ps(clock as u64), RTT);
            }
            let (due, later): (Vec<_>, Vec<_>) = flight.into_iter().partition(|packet| packet.0 <= clock);
            flight = later;
            for (_, packet, stamp, fate) in due {
                if let Fate::Lose = fate {
                    continue;
                }
                let received = receive.on_packet(packet, in_order_only);
                if received == Received::New {
                    taken.push(packet);
                }
                if let Fate::LoseAck = fate {
                    continue;
                }
                let before = send.acked();
                let ack = Ack {
                    position: packet,
                    cumulative: receive.expected(),
                    blocks: (received == Received::New && packet > receive.expected()).then(|| receive.blocks(packet)),
                    stamp,
                    is_duplicate: received == Received::Duplicate,
                    now: clock as u64,
                    smoothed_rtt: RTT.ps(),
                };
                let result = if received == Received::Refused { send.on_nack(&ack) } else { send.on_ack(&ack) };
                assert!(send.acked() >= before && send.in_flight() <= send.unsent() - send.acked(), "{result:?}");
            }
        }
        taken
    }

    proptest! {
        /// Against a set, with a block at a time from the packet outwards.
        #[test]
        fn blocks_are_the_runs_around_a_packet(arrivals in proptest::collection::vec(1u32..700, 1..600)) {
            let (mut receive, mut set) = (Reassembly::default(), BTreeSet::new());
            for packet in arrivals {
                receive.on_packet(packet, false);
                set.insert(packet);
                let most = Blocks::MOST as usize;
                let below = |from: u32, wanted: bool| {
                    (0..from).rev().take_while(|packet| set.contains(packet) == wanted).take(most).count() as u32
                };
                let before = below(packet, true);
                let after = (packet + 1..).take_while(|packet| set.contains(packet)).take(most).count() as u32;
                let blocks = receive.blocks(packet);
                prop_assert_eq!((u32::from(blocks.before), u32::from(blocks.after)), (before, after));
                let gap = below(packet - before, false);
                let length = if gap < Blocks::MOST { below(packet - before - gap, true) } else { 0 };
                prop_assert_eq!(u32::from(blocks.length), length);
                if length > 0 {
                    prop_assert_eq!(u32::from(blocks.gap), gap);
                    let end = packet - before - gap;
                    prop_assert_eq!(blocks.second(packet), end - length..end);
                }
                prop_assert_eq!(blocks.first(packet), packet - before..packet + after + 1);
            }
        }

        #[test]
        fn every_packet_is_taken_exactly_once(
            packets in 1u32..200,
            window in 1u32..40,
            fates in proptest::collection::vec(fate(), 0..400),
            recovery in prop_oneof![Just(Recovery::RackTlp), Just(Recovery::SelectiveRepeat), Just(Recovery::GoBackN)],
        ) {
            let taken = transfer(recovery, packets, window, &fates);
            prop_assert_eq!(taken.len() as u32, packets);
            prop_assert_eq!(taken.iter().copied().collect::<BTreeSet<_>>().len() as u32, packets);
            if recovery == Recovery::GoBackN {
                prop_assert!(taken.is_sorted());
            }
        }
    }

    #[test]
    fn one_loss_costs_one_retransmission() {
        let mut fates = vec![Fate::Deliver; 10];
        fates[4] = Fate::Lose;
        for recovery in [Recovery::RackTlp, Recovery::SelectiveRepeat] {
            assert_eq!(transfer(recovery, 20, 10, &fates).len(), 20);
        }
    }
}
