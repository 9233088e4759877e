//! The window that a switch grants: a cap on what a flow has in flight, beside what its law allows.
//!
//! Source: X. He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters" (Mercury), J. Cloud Computing
//! 2024, algorithm 2: `cwnd = min(cwnd, Win)` for each notification that carries a window; the rate recovery of the law takes
//! it back. The window before any notification is the law's own (`in_flight = "bdp"` where it has one).

use crate::Cnp;
use incast_units::Time;

crate::choice! {
    /// What ends a granted window.
    pub enum GrantUntil {
        /// The first increase of the law's own rate or window after the notification: the algorithm to the letter.
        FirstIncrease = "first-increase",
        /// A time without notifications.
        Quiet = "quiet",
    }
}

/// How the laws that take windows call the parameters of a [`Rule`]: without windows these have no effect.
pub const PARAMETERS: &[&str] = &["grant_until", "grant_quiet"];

/// When grants end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    until: GrantUntil,
    /// With [`GrantUntil::Quiet`].
    quiet: Time,
}

impl Rule {
    /// A quiet time of zero would end a grant as it comes: it counts as one picosecond.
    pub fn new(until: GrantUntil, quiet: Time) -> Self {
        Self { until, quiet: quiet.max(Time::from_ps(1)) }
    }
}

/// The cap on one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// Bytes; `u64::MAX` without.
    cap: u64,
    /// When it ends by itself.
    ends: Time,
}

impl Grant {
    /// No cap.
    pub const NONE: Self = Self { cap: u64::MAX, ends: Time::MAX };

    /// There is a cap, which an increase ends.
    #[inline]
    pub fn awaits_increase(&self) -> bool {
        self.cap != u64::MAX && self.ends == Time::MAX
    }

    /// A notification has come. Several windows of one epoch are those of several switches: the smallest counts. None closes the flow.
    pub fn on_cnp(&mut self, rule: &Rule, now: Time, cnp: &Cnp) {
        if let Some(window) = cnp.window {
            self.cap = self.cap.min(window.max(1));
        }
        if self.cap != u64::MAX && rule.until == GrantUntil::Quiet {
            self.ends = now.saturating_add(rule.quiet);
        }
    }

    /// The law increases its rate or window on its own account.
    #[inline]
    pub fn on_increase(&mut self, rule: &Rule) {
        if rule.until == GrantUntil::FirstIncrease {
            *self = Self::NONE;
        }
    }

    /// Time passes.
    #[inline]
    pub fn expire(&mut self, now: Time) {
        if self.ends <= now {
            *self = Self::NONE;
        }
    }

    /// When it ends by itself: the law's timer is wanted then. [`Time::MAX`] for never.
    #[inline]
    pub fn ends(&self) -> Time {
        self.ends
    }

    /// What may be in flight of what the law allows.
    #[inline]
    pub fn limit(&self, window: u64) -> u64 {
        self.cap.min(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn the_smallest_of_an_epoch_counts_and_an_increase_ends_it() {
        let rule = Rule::new(GrantUntil::FirstIncrease, US(5));
        let mut grant = Grant::NONE;
        grant.on_cnp(&rule, US(1), &Cnp::CONGESTED);
        assert_eq!((grant, grant.limit(77)), (Grant::NONE, 77));
        grant.on_cnp(&rule, US(1), &Cnp::granting(5000));
        grant.on_cnp(&rule, US(2), &Cnp::granting(9000));
        grant.on_cnp(&rule, US(3), &Cnp::CONGESTED);
        assert_eq!((grant.limit(u64::MAX), grant.limit(77)), (5000, 77));
        grant.expire(Time::from_ms(1));
        assert_eq!((grant.limit(u64::MAX), grant.ends()), (5000, Time::MAX), "time does not end it");
        grant.on_increase(&rule);
        assert_eq!(grant, Grant::NONE);
        grant.on_cnp(&rule, US(4), &Cnp::granting(0));
        assert_eq!(grant.limit(u64::MAX), 1, "never closed");
    }

    #[test]
    fn quiet_counts_from_the_last_notification() {
        let rule = Rule::new(GrantUntil::Quiet, US(5));
        let mut grant = Grant::NONE;
        grant.on_cnp(&rule, US(1), &Cnp::granting(5000));
        assert_eq!(grant.ends(), US(6));
        grant.on_cnp(&rule, US(4), &Cnp::CONGESTED);
        grant.on_increase(&rule);
        grant.expire(Time::from_ns(8_999));
        assert_eq!((grant.limit(u64::MAX), grant.ends()), (5000, US(9)));
        grant.expire(US(9));
        assert_eq!(grant, Grant::NONE);
        // There is nothing to be ended.
        grant.on_cnp(&rule, US(10), &Cnp::CONGESTED);
        assert_eq!(grant, Grant::NONE);
        let never = Rule::new(GrantUntil::Quiet, Time::ZERO);
        grant.on_cnp(&never, US(10), &Cnp::granting(1));
        assert!(grant.ends() > US(10));
    }
}
