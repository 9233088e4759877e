//! Runs that end before their end: asked to, or since time does not move.

use incast_units::Time;
use std::fmt;

/// Whether to end a run at once.
pub type Halt<'h> = dyn Fn() -> bool + Sync + 'h;

/// A domain that handles so many events, messages apart, at one time, besides those that [`Executor::expect`](super::Executor::expect) names, is
/// in a livelock. An incast of a million hosts that are all in one domain causes some per host.
pub const MOST_EVENTS_AT_ONE_TIME: u64 = 1 << 24;

/// Why a run has ended before its end, without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halted {
    /// It was asked to.
    Asked,
    /// Time does not move.
    Livelock(Livelock),
}

/// A domain that handles event after event at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Livelock {
    /// That time.
    pub time: Time,
    /// How many it has handled at least.
    pub events: u64,
    /// The event that was next, in the words of the domain.
    pub event: String,
}

impl fmt::Display for Livelock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, events, event } = self;
        write!(f, "livelock: more than {events} events at {time} without progress; the next is {event}")
    }
}

/// When the time of a domain was last seen to move, and how many events it had taken in the window by then.
pub struct Moved {
    time: Time,
    taken: u64,
}

impl Default for Moved {
    fn default() -> Self {
        Self { time: Time::MAX, taken: 0 }
    }
}

impl Moved {
    /// Events at the time `now`, of a domain that has `taken` so many in this window.
    pub fn count(&mut self, now: Time, taken: u64) -> u64 {
        if now != self.time {
            *self = Self { time: now, taken };
        }
        taken - self.taken
    }
}
