//! Packet trimming: who loses the payload, and when headers go before data. Pure rules; `switch/trim.rs` applies them.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017 (NDP), section 3.1. See `docs/fabric.md` (Trimming) for what other simulators do differently.

use crate::{
    config::{Limit, Trim, Victim},
    engine::random::Stream,
};

/// The queue of trimmed headers and control packets.
pub const HEADERS: u8 = 0;

/// Purpose of the random stream of victims.
const VICTIM_STREAM: u32 = 0x5452_494d;

/// A [`Limit`], of either kind without a branch: packets for the header queue and for others come in no order.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    packets: u32,
    bytes: u64,
}

impl From<Limit> for Room {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Packets(packets) => Self { packets, bytes: u64::MAX },
            Limit::Bytes(bytes) => Self { packets: u32::MAX, bytes },
        }
    }
}

impl Room {
    /// A packet of so many bytes may be added to `packets` packets of `bytes` bytes that wait.
    #[inline]
    pub fn admits(self, wire: u64, packets: u32, bytes: u64) -> bool {
        // No overflow: a queue holds less than 2^40 bytes.
        packets < self.packets && bytes + wire <= self.bytes
    }
}

/// The rules as one switch applies them.
#[derive(Clone, Debug)]
pub struct Trimming {
    rules: Trim,
    /// Of the header queue, and of others.
    limits: [Room; 2],
    /// Decides between two victims.
    lots: Stream,
    /// By port: packets of the header queue that went since the last data packet, while data waited.
    headers_in_a_row: Vec<u32>,
}

impl Trimming {
    /// The rules of switch `node`.
    pub fn new(rules: &Trim, seed: u64, node: u32, ports: usize) -> Self {
        Self {
            rules: rules.clone(),
            limits: [rules.headers.into(), rules.queue.into()],
            lots: Stream::new(seed, VICTIM_STREAM, u64::from(node)),
            headers_in_a_row: vec![0; ports],
        }
    }

    /// What may wait in the queue of a priority.
    #[inline]
    pub fn limit(&self, priority: u8) -> Room {
        self.limits[usize::from(priority != HEADERS)]
    }

    /// The queue is full: whether its last packet is trimmed rather than the one that arrives. Where that is not possible the
    /// arriving one is, without a draw.
    #[inline]
    pub fn takes_tail(&mut self, possible: bool) -> bool {
        possible
            && match self.rules.victim {
                Victim::Arriving => false,
                Victim::Tail => true,
                Victim::Either => self.lots.next_u32() & 1 == 1,
            }
    }

    /// Headers that find their queue full go back to their sender.
    #[inline]
    pub fn returns(&self) -> bool {
        self.rules.return_to_sender
    }

    /// Which of the priorities that may send, one bit each, is next at a port: weighted round robin of the header queue and the
    /// others, which are strict among themselves. Only turns for which both compete count.
    #[inline]
    pub fn next(&mut self, port: usize, allowed: u8) -> u8 {
        let (Some(weight), data) = (self.rules.header_weight, allowed & !(1 << HEADERS)) else {
            return allowed.trailing_zeros() as u8;
        };
        if data == allowed || data == 0 {
            return allowed.trailing_zeros() as u8;
        }
        let headers = &mut self.headers_in_a_row[port];
        if *headers >= weight {
            *headers = 0;
            return data.trailing_zeros() as u8;
        }
        *headers += 1;
        HEADERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::queue::MOST_COUNTED;

    fn trimming(victim: Victim, header_weight: Option<u32>) -> Trimming {
        let (queue, headers) = (Limit::Packets(8), Limit::Bytes(18_000));
        Trimming::new(&Trim { queue, headers, victim, header_weight, return_to_sender: true }, 1, 2, 3)
    }

    #[test]
    fn limits_count_what_waits() {
        let (packets, bytes) = (Room::from(Limit::Packets(8)), Room::from(Limit::Bytes(1_000)));
        assert!(packets.admits(9_000, 7, u64::MAX / 2) && !packets.admits(64, 8, 0));
        assert!(bytes.admits(64, MOST_COUNTED - 1, 936) && !bytes.admits(64, 0, 937));
    }

    #[test]
    fn either_victim_is_chosen_half_of_the_time() {
        let tails = |victim: Victim| {
            let mut trimming = trimming(victim, None);
            (0..10_000).filter(|_| trimming.takes_tail(true)).count()
        };
        assert_eq!((tails(Victim::Arriving), tails(Victim::Tail)), (0, 10_000));
        assert!(tails(Victim::Either).abs_diff(5_000) < 250);
        // A turn that leaves no choice draws nothing: the others are the same as without it.
        let (mut one, mut other) = (trimming(Victim::Either, None), trimming(Victim::Either, None));
        for turn in 0..100 {
            assert!(turn % 3 == 0 || !other.takes_tail(false));
            assert_eq!(one.takes_tail(true), other.takes_tail(true));
        }
    }

    #[test]
    fn ten_headers_go_for_each_data_packet() {
        let mut trimming = trimming(Victim::Either, Some(10));
        let turns: Vec<u8> = (0..33).map(|_| trimming.next(1, 0b1111)).collect();
        let expected: Vec<u8> = (1..34).map(|turn| u8::from(turn % 11 == 0)).collect();
        assert_eq!(turns, expected);
        // Alone, either goes, and that is no turn; the other ports have turns of their own.
        assert_eq!([trimming.next(1, 0b1), trimming.next(1, 0b1000), trimming.next(0, 0b1001)], [0, 3, 0]);
        let data = (0..10).find(|_| trimming.next(0, 0b1001) == 3);
        assert_eq!(data, Some(9), "the eleventh turn of port 0");
    }

    #[test]
    fn without_a_weight_headers_always_go_first() {
        let mut trimming = trimming(Victim::Either, None);
        assert!((0..100).all(|_| trimming.next(0, 0b101) == 0));
        assert_eq!(trimming.next(0, 0b100), 2);
    }
}
