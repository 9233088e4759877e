//! The global list of what will happen, in the documented order.

use super::{Packet, Ps};
use incast_sim::{config::Ties, engine::random::mix};
use std::collections::BTreeMap;

/// What happens to a node. The order is that of `fabric::node::class`; timers of one kind at one host come in the
/// order of their slots.
#[derive(Debug)]
pub enum What {
    /// A cable goes down or up.
    Link { up: bool },
    /// A transmission has ended.
    Completion,
    /// A packet arrived.
    Arrival(Packet),
    /// A flow's retransmission timer, unless it was set anew since.
    Retransmission { slot: u32, sequence: u32, generation: u64 },
    /// A flow may go on.
    Release { slot: u32, sequence: u32, generation: u64 },
    /// A law's timer.
    Law { slot: u32, sequence: u32, generation: u64 },
    /// A delayed acknowledgement is due.
    DelayedAck { flow: u32 },
    /// A flow starts.
    FlowStart,
    /// A pause or its end takes effect, unless the cable has failed since.
    Pause { about: u8, paused: u8, failures: u32 },
    /// A host's NIC chooses what it sends, after all else.
    Choice,
}

impl What {
    /// Class and payload.
    fn rank(&self) -> (u8, u32) {
        match self {
            Self::Link { up } => (0, u32::from(*up)),
            Self::Completion => (1, 0),
            Self::Arrival(_) => (2, 0),
            Self::Retransmission { slot, .. } => (3, *slot),
            Self::Release { slot, .. } => (4, *slot),
            Self::Law { slot, .. } => (5, *slot),
            Self::DelayedAck { flow } => (6, *flow),
            Self::FlowStart => (8, 0),
            Self::Pause { .. } => (11, 0),
            Self::Choice => (14, 0),
        }
    }
}

/// Order of events. Those of different nodes at one instant could be in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Ps,
    class: u8,
    tie: u16,
    node: u32,
    port: u32,
    payload: u32,
    /// Makes keys unique; among equal events it does not matter.
    count: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Agenda {
    seed: u64,
    ties: Ties,
    pending: BTreeMap<Key, What>,
    count: u64,
    now: Ps,
}

impl Agenda {
    /// Nothing is to happen yet.
    pub fn new(seed: u64, ties: Ties) -> Self {
        Self { seed, ties, pending: BTreeMap::new(), count: 0, now: 0 }
    }

    /// Something will happen at a port of a node. [`Ps::MAX`] is never.
    pub fn add(&mut self, time: Ps, node: u32, port: u32, what: What) {
        assert!(time >= self.now, "{what:?} at {time} before {}", self.now);
        if time == Ps::MAX {
            return;
        }
        let name = u64::from(node) << 20 | u64::from(port);
        let tie = match self.ties {
            Ties::Seeded => (mix(self.seed ^ name.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ time) >> 48) as u16,
            Ties::PortOrder | Ties::ArrivalsFirst => 0,
        };
        let (class, payload) = match (what.rank(), self.ties) {
            // After everything else.
            ((1, payload), Ties::ArrivalsFirst) => (12, payload),
            (rank, _) => rank,
        };
        self.count += 1;
        self.pending.insert(Key { time, class, tie, node, port, payload, count: self.count }, what);
    }

    /// Takes what happens next, before `end`: when, at which node and port, and what.
    pub fn next_before(&mut self, end: Ps) -> Option<(Ps, u32, u32, What)> {
        let entry = self.pending.first_entry().filter(|entry| entry.key().time < end)?;
        let (key, what) = entry.remove_entry();
        self.now = key.time;
        Some((key.time, key.node, key.port, what))
    }

    /// Frame bytes of packets that have not arrived.
    pub fn bytes_on_the_way(&self) -> u64 {
        let bytes = |what: &What| if let What::Arrival(packet) = what { u64::from(packet.wire) } else { 0 };
        self.pending.values().map(bytes).sum()
    }
}
