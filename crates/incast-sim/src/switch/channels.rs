//! Virtual channels: which queue of a port a packet takes, and which queue goes next.
//!
//! Each priority that classes have is so many queues, which flow control pauses apart from each other. A packet
//! begins on the first channel and takes the next one where it goes up after it has come down: see
//! [`routing::detours`](crate::routing::detours) for the order of switches, and why that has no circles. To
//! its host it goes on the first one, as does all that goes there: hosts take everything.

use super::Switch;
use crate::{
    fabric::{
        node::NodeContext,
        packet::{Packet, Telemetry},
        queue::{MADE_HERE, Origin},
    },
    routing::{Around, Direction},
};

/// Those of one switch.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    count: u8,
    /// Where the link of each port leads.
    directions: Vec<Direction>,
    /// By port: the queue that went last.
    last: Vec<u8>,
}

impl Channels {
    pub fn new(count: u8, around: &Around) -> Self {
        let directions = around.directions().to_vec();
        Self { count, last: vec![0; directions.len()], directions }
    }

    /// Channels of each priority.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// The priority with which a packet leaves that came in like this. There is always a channel for the usual way: see
    /// [`crate::check_channels`].
    pub(super) fn of(&self, origin: Origin, port: usize) -> u8 {
        let (channel, out) = (origin.priority % self.count, self.directions[port]);
        let first = origin.priority - channel;
        let from = self.directions.get(usize::from(origin.port)).filter(|_| origin.port != MADE_HERE);
        match (from, out) {
            (_, Direction::Host) => first,
            (Some(Direction::Up), Direction::Up) => first + (channel + 1).min(self.count - 1),
            _ => origin.priority,
        }
    }

    /// Which of the queues that may send, one bit each, is next at a port: those of the highest priority take turns.
    pub fn next(&mut self, port: usize, allowed: u8) -> u8 {
        let highest = allowed.trailing_zeros() as u8;
        let (first, last) = (highest - highest % self.count, &mut self.last[port]);
        let group = allowed & ((1u16 << (first + self.count)) - 1) as u8;
        let after = group & !((2u16 << *last) - 1) as u8;
        *last = if after == 0 { highest } else { after.trailing_zeros() as u8 };
        *last
    }
}

impl Switch<'_> {
    /// Egress where there are virtual channels.
    #[inline(never)]
    pub(super) fn enqueue_on_channel(
        &mut self,
        port: usize,
        mut packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if self.agent.is_none() || self.by_port {
            self.choose_channel(port, &mut packet);
            self.enqueue(port, &packet, telemetry, context);
        } else {
            self.enqueue_consulted(port, packet, telemetry, context);
        }
    }

    /// The packet at hand leaves by this port.
    #[inline]
    pub(super) fn choose_channel(&self, port: usize, packet: &mut Packet) {
        if let Some(channels) = &self.channels {
            packet.priority = channels.of(self.origin, port);
        }
    }

    /// The priority with which packets leave that came in like this.
    pub(super) fn channel(&self, origin: Origin, port: usize) -> u8 {
        self.channels.as_ref().map_or(origin.priority, |channels| channels.of(origin, port))
    }

    /// Bytes that wait on all channels of a priority: marking does not tell them apart.
    #[inline(never)]
    pub(super) fn bytes_of_group(&self, port: usize, priority: u8) -> u64 {
        self.group_of(priority).map(|priority| self.queues[self.index(port, priority)].bytes()).sum()
    }

    /// The priorities that are channels of one with this one.
    pub(super) fn group_of(&self, priority: u8) -> std::ops::Range<u8> {
        let count = self.channels.as_ref().map_or(1, |channels| channels.count);
        priority - priority % count..priority - priority % count + count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels() -> Channels {
        let directions = vec![Direction::Host, Direction::Up, Direction::Down, Direction::Up];
        Channels { count: 2, directions, last: vec![0; 4] }
    }

    #[test]
    fn up_after_down_takes_the_next_channel() {
        let channels = channels();
        let leaves = |from: u16, priority, to| channels.of(Origin { port: from, priority }, to);
        // What comes in by a port that leads up has come down.
        assert_eq!([leaves(0, 2, 1), leaves(1, 2, 2), leaves(2, 2, 1), leaves(2, 2, 2)], [2; 4]);
        assert_eq!([leaves(1, 2, 1), leaves(1, 2, 3), leaves(3, 2, 1)], [3; 3]);
        assert_eq!([leaves(2, 3, 1), leaves(1, 3, 2)], [3; 2]);
        // To a host on the first.
        assert_eq!([leaves(2, 3, 0), leaves(1, 2, 0), leaves(1, 1, 0)], [2, 2, 0]);
        assert_eq!(leaves(MADE_HERE, 4, 1), 4);
    }

    #[test]
    fn channels_take_turns_and_priorities_do_not() {
        let mut channels = channels();
        let turns: Vec<u8> = (0..4).map(|_| channels.next(1, 0b1111_1100)).collect();
        assert_eq!(turns, [2, 3, 2, 3]);
        assert_eq!((channels.next(1, 0b1000), channels.next(1, 0b1000)), (3, 3));
        assert_eq!((channels.next(1, 0b1110), channels.next(1, 0b1111)), (1, 0));
        assert_eq!((channels.next(1, 0b1100_0000), channels.next(1, 0b1100_0000)), (6, 7));
    }
}
