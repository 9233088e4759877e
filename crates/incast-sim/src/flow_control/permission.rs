//! Permission of a port to send, by priority.
//!
//! PFC and credits forbid priorities. Packets of a forbidden priority wait in their queue; other priorities may
//! send.

use incast_units::Time;

/// Which priorities of a port may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// One bit for each forbidden priority.
    forbidden: u8,
}

impl Permission {
    /// Nothing is forbidden.
    #[inline]
    pub fn is_clear(self) -> bool {
        self.forbidden == 0
    }

    /// The priorities of `waiting` that may send.
    #[inline]
    pub fn allowed(self, waiting: u8) -> u8 {
        waiting & !self.forbidden
    }

    /// Forbids the priorities of `mask`; returns those that were allowed before.
    pub fn pause(&mut self, now: Time, mask: u8, record: &mut PauseRecord) -> u8 {
        let new = mask & !self.forbidden;
        if self.forbidden == 0 && new != 0 {
            record.since = Some(now);
        }
        self.forbidden |= new;
        record.edges += u64::from(new.count_ones());
        new
    }

    /// Allows the priorities of `mask`; returns those that were forbidden before.
    pub fn resume(&mut self, now: Time, mask: u8, record: &mut PauseRecord) -> u8 {
        let freed = mask & self.forbidden;
        self.forbidden &= !freed;
        if self.forbidden == 0
            && let Some(since) = record.since.take()
        {
            record.paused += now - since;
        }
        freed
    }
}

/// For how long sending was forbidden.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseRecord {
    since: Option<Time>,
    paused: Time,
    edges: u64,
}

impl PauseRecord {
    /// How long at least one priority was forbidden, until `now`.
    pub fn paused(&self, now: Time) -> Time {
        self.paused + self.since.map_or(Time::ZERO, |since| now.saturating_sub(since))
    }

    /// How often a priority was forbidden.
    pub fn edges(&self) -> u64 {
        self.edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_once_for_all_priorities() {
        let at = Time::from_us;
        let (mut permission, mut record) = (Permission::default(), PauseRecord::default());
        assert_eq!(permission.pause(at(1), 0b01, &mut record), 0b01);
        assert_eq!(permission.pause(at(2), 0b11, &mut record), 0b10);
        assert_eq!(permission.allowed(0b111), 0b100);
        assert_eq!(permission.resume(at(4), 0b01, &mut record), 0b01);
        assert_eq!(record.paused(at(5)), at(4));
        assert_eq!(permission.resume(at(6), 0b10, &mut record), 0b10);
        assert_eq!((record.paused(at(9)), record.edges()), (at(5), 2));
    }
}
