//! Packet trimming: limits of queues, and which packet loses its payload. Pure rules; `switch/overflow.rs` applies
//! them.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017 (NDP), section 3.1. See `docs/fabric.md` (Trimming) for what other simulators do differently.

pub(crate) mod config;

use self::config::{Limit, Trim, Victim};
use crate::engine::random::Stream;

/// The queue of trimmed headers and control packets.
pub const HEADERS: u8 = 0;

/// Purpose of the random stream of victims.
const VICTIM_STREAM: u32 = 0x5452_494d;

/// A [`Limit`] of either kind, compared without a branch: header and data packets alternate unpredictably.
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

/// The rules of one switch.
#[derive(Clone, Debug)]
pub struct Trimming {
    rules: Trim,
    /// Of the header queue, and of others.
    limits: [Room; 2],
    /// Random choice between two victims.
    random: Stream,
}

impl Trimming {
    /// The rules of switch `node`; full packets have so many bytes.
    pub fn new(rules: &Trim, full_frame: u64, seed: u64, node: u32) -> Self {
        Self {
            rules: rules.clone(),
            limits: [rules.header_limit(full_frame).into(), rules.queue.into()],
            random: Stream::new(seed, VICTIM_STREAM, u64::from(node)),
        }
    }

    /// What may wait in the queue of a priority.
    #[inline]
    pub fn limit(&self, priority: u8) -> Room {
        self.limits[usize::from(priority != HEADERS)]
    }

    /// The queue is full: whether its last packet is trimmed and not the arriving one. If that is not `possible` the
    /// arriving one is trimmed, and no random number is drawn.
    #[inline]
    pub fn takes_tail(&mut self, possible: bool) -> bool {
        possible
            && match self.rules.victim {
                Victim::Arriving => false,
                Victim::Tail => true,
                Victim::Either => self.random.next_u32() & 1 == 1,
            }
    }

    /// What is left of a packet whose frame has `wire` bytes, `least` of them headers; nothing where there is no more than
    /// is left, and it goes on as it is.
    pub fn remainder(&self, wire: u16, least: u16) -> Option<u16> {
        let Some(size) = self.rules.size else { return Some(least) };
        let size = least.max(u16::try_from(size.get()).unwrap_or(u16::MAX));
        (wire > size).then_some(size)
    }

    /// Headers that find their queue full return to their sender.
    #[inline]
    pub fn returns(&self) -> bool {
        self.rules.return_to_sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::queue::MOST_COUNTED;

    fn trimming(victim: Victim) -> Trimming {
        Trimming::new(&Trim { victim, ..Trim::default() }, 1_500, 1, 2)
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
            let mut trimming = trimming(victim);
            (0..10_000).filter(|_| trimming.takes_tail(true)).count()
        };
        assert_eq!((tails(Victim::Arriving), tails(Victim::Tail)), (0, 10_000));
        assert!(tails(Victim::Either).abs_diff(5_000) < 250);
        // A turn that leaves no choice draws nothing: the others are the same as without it.
        let (mut one, mut other) = (trimming(Victim::Either), trimming(Victim::Either));
        for turn in 0..100 {
            assert!(turn % 3 == 0 || !other.takes_tail(false));
            assert_eq!(one.takes_tail(true), other.takes_tail(true));
        }
    }
}
