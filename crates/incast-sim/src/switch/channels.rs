//! Virtual channels: which queue of a port a packet takes.
//!
//! Each priority of classes has so many queues, which flow control pauses apart. A packet starts on the first channel
//! and takes the next one where it goes up after it has come down: [`routing::detours`](crate::routing::detours) has
//! the order of switches, and why that has no cycles. On the last link, to its host, every packet takes the first
//! channel: hosts accept all packets, so that they are part of no cycle.

use crate::{
    fabric::queue::Ingress,
    routing::{Direction, RouteView},
};
use std::ops::Range;

/// The virtual channels of one switch.
#[derive(Clone, Debug)]
pub(super) struct VirtualChannels {
    count: u8,
    /// Where the link of each port leads.
    directions: Vec<Direction>,
}

impl VirtualChannels {
    /// `count` channels of each priority, of a switch with these routes.
    pub fn new(count: u8, view: &RouteView) -> Self {
        Self { count, directions: view.directions().to_vec() }
    }

    /// Channels of each priority.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// The queue at a port of packets with this ingress. There is always a channel for the usual route: see
    /// [`crate::check_channels`].
    pub fn queue(&self, ingress: Ingress, port: usize) -> u8 {
        let (channel, out) = (ingress.priority % self.count, self.directions[port]);
        let first = ingress.priority - channel;
        let from = self.directions.get(usize::from(ingress.port)).filter(|_| !ingress.is_local());
        match (from, out) {
            (_, Direction::Host) => first,
            (Some(Direction::Up), Direction::Up) => first + (channel + 1).min(self.count - 1),
            _ => ingress.priority,
        }
    }

    /// The queues that are channels of one priority with this one.
    pub fn group(&self, queue: u8) -> Range<u8> {
        let first = queue - queue % self.count;
        first..first + self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_after_down_takes_the_next_channel() {
        let directions = vec![Direction::Host, Direction::Up, Direction::Down, Direction::Up];
        let channels = VirtualChannels { count: 2, directions };
        let queue = |from: u16, priority, to| channels.queue(Ingress { port: from, priority }, to);
        // A packet that comes in by a port that leads up has come down.
        assert_eq!([queue(0, 2, 1), queue(1, 2, 2), queue(2, 2, 1), queue(2, 2, 2)], [2; 4]);
        assert_eq!([queue(1, 2, 1), queue(1, 2, 3), queue(3, 2, 1)], [3; 3]);
        assert_eq!([queue(2, 3, 1), queue(1, 3, 2)], [3; 2]);
        // The first to a host.
        assert_eq!([queue(2, 3, 0), queue(1, 2, 0), queue(1, 1, 0)], [2, 2, 0]);
        assert_eq!(queue(Ingress::NO_PORT, 4, 1), 4);
        assert_eq!((channels.group(2), channels.group(5)), (2..4, 4..6));
    }
}
