//! Periodic timers that are caught up instead of fired.

use incast_units::Time;

/// A timer with a fixed period whose expiries are counted when they are read.
///
/// A law with a 1 us timer per flow (DCQCN's alpha, InfiniBand's CCTI) would cost more events than packets.
/// Its effect between two events of the flow depends only on how often it expired, so it is applied lazily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    period: Time,
    next: Time,
}

impl Periodic {
    /// A timer that expires first at `now + period`. A zero period counts as one picosecond.
    pub fn start(now: Time, period: Time) -> Self {
        let period = period.max(Time::from_ps(1));
        Self { period, next: now.saturating_add(period) }
    }

    /// Expiries up to and including `now` since the last call.
    pub fn expired(&mut self, now: Time) -> u64 {
        if now < self.next {
            return 0;
        }
        let count = (now - self.next).ps() / self.period.ps() + 1;
        self.next = self.next.saturating_add(self.period.saturating_mul(count));
        count
    }

    /// Restarts the period at `now`.
    pub fn restart(&mut self, now: Time) {
        self.next = now.saturating_add(self.period);
    }

    /// The next expiry.
    pub fn next(&self) -> Time {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_like_a_timer_that_fires(period in 1u64..50, looks in proptest::collection::vec(0u64..200, 1..20)) {
            let mut lazy = Periodic::start(Time::ZERO, Time::from_ps(period));
            let (mut now, mut fired) = (0, 0);
            for step in looks {
                now += step;
                fired += lazy.expired(Time::from_ps(now));
                prop_assert_eq!(fired, now / period);
            }
        }
    }
}
