//! Which queue of a port sends next. One file for each algorithm; to add one, write its file and add a line to
//! `schedulers!`.

mod channels;
pub(crate) mod config;
mod dwrr;
mod headers;

use self::{channels::ChannelRotation, config::Scheduling, dwrr::DeficitRoundRobin, headers::HeaderWeight};
use crate::fabric::queue::{Pool, Queue};

/// The queues of one port.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a> {
    /// By priority, then port.
    pub queues: &'a [Queue],
    pub pool: &'a Pool,
    pub port: usize,
    pub ports: usize,
}

impl Heads<'_> {
    /// Frame bytes of the head of a queue, and whether it is the only packet there.
    fn head(&self, priority: u8) -> (u64, bool) {
        let queue = &self.queues[usize::from(priority) * self.ports + self.port];
        let bytes = self.pool.front(queue).map_or(0, |packet| u64::from(packet.wire));
        (bytes, bytes == queue.bytes())
    }
}

/// A scheduling algorithm, with the state of all ports of one switch.
trait Discipline {
    /// The next of the priorities `allowed`, one bit each; at least one is, and all of them have a packet. That packet
    /// leaves.
    fn next(&mut self, allowed: u8, heads: Heads<'_>) -> u8;
    /// The queues of a port have been emptied.
    fn clear(&mut self, _port: usize) {}
}

macro_rules! schedulers {
    ($($name:ident($type:ty),)*) => {
        /// The scheduler of one switch.
        #[derive(Debug)]
        pub(super) enum Scheduler {
            /// The lowest number first.
            Strict,
            $($name(Box<$type>),)*
        }

        impl Scheduler {
            /// See [`Discipline::next`].
            #[inline(always)]
            pub fn next(&mut self, allowed: u8, heads: Heads<'_>) -> u8 {
                match self {
                    Self::Strict => allowed.trailing_zeros() as u8,
                    $(Self::$name(discipline) => discipline.next(allowed, heads),)*
                }
            }

            /// The queues of a port have been emptied.
            pub fn clear(&mut self, port: usize) {
                match self {
                    Self::Strict => {}
                    $(Self::$name(discipline) => discipline.clear(port),)*
                }
            }
        }
    };
}

schedulers! {
    HeaderWeight(HeaderWeight),
    Channels(ChannelRotation),
    Dwrr(DeficitRoundRobin),
}

impl Scheduler {
    /// That of a switch with so many ports. `header_weight` is that of a switch that trims.
    pub fn new(
        scheduling: &Scheduling,
        header_weight: Option<u32>,
        virtual_channels: u8,
        full_frame: u64,
        ports: usize,
    ) -> Self {
        match (scheduling.dwrr(), header_weight) {
            (Some(dwrr), _) => Self::Dwrr(Box::new(DeficitRoundRobin::new(dwrr, full_frame, ports))),
            (None, Some(weight)) => Self::HeaderWeight(Box::new(HeaderWeight::new(weight, ports))),
            (None, None) if virtual_channels > 1 => {
                Self::Channels(Box::new(ChannelRotation::new(virtual_channels, ports)))
            }
            (None, None) => Self::Strict,
        }
    }
}
