//! Which queue of a port sends next. One file for each algorithm; to add one, write its file and add a line to
//! `schedulers!`.

mod channels;
pub(crate) mod config;
mod dwrr;
mod headers;

use self::{channels::ChannelRotation, config::Scheduling, dwrr::DeficitRoundRobin, headers::HeaderWeight};

/// The head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its frame bytes.
    pub bytes: u64,
    /// It is the only packet of the queue.
    pub is_alone: bool,
}

/// A scheduling algorithm, with the state of all ports of one switch.
trait Discipline {
    /// The next of the priorities `allowed` of a port, one bit each; at least one is, and all of them have a packet.
    /// That packet leaves. `head`: the head of the queue of a priority.
    fn next(&mut self, port: usize, allowed: u8, head: impl Fn(u8) -> Head) -> u8;
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
            pub fn next(&mut self, port: usize, allowed: u8, head: impl Fn(u8) -> Head) -> u8 {
                match self {
                    Self::Strict => allowed.trailing_zeros() as u8,
                    $(Self::$name(discipline) => discipline.next(port, allowed, head),)*
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
