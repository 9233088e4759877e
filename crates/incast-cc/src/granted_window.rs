//! The window that a switch grants: a cap on the bytes in flight of a flow, in addition to its law's window.
//!
//! Source: X. He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters" (Mercury), J. Cloud
//! Computing 2024, algorithm 2: `cwnd = min(cwnd, Win)` for each notification that carries a window; it ends with the
//! rate recovery of the law. The window before any notification is the law's own (`in_flight = "bdp"` where it has
//! one).
//!
//! Switches grant bytes on the link, a rate times a time; what is in flight is counted in payload. A window is therefore
//! converted to what full packets of so many bytes on the link carry, as the law's own window is.

use crate::{Cnp, Path};
use incast_units::Time;

crate::choice! {
    /// What ends a granted window.
    pub enum GrantUntil {
        /// The first increase of the law's own rate or window after the notification: the algorithm as printed.
        FirstIncrease = "first-increase",
        /// A time without notifications.
        Timeout = "timeout",
        /// A packet that left after the last notification is acknowledged without another one: the queue that it met
        /// was below the threshold.
        RoundTrip = "round-trip",
    }
}

/// Names of the parameters of a [`Rule`] in laws that use granted windows. They have no effect without such
/// windows.
pub const PARAMETERS: &[&str] = &["grant_until", "grant_timeout"];

/// When grants end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    until: GrantUntil,
    /// With [`GrantUntil::Timeout`].
    quiet: Time,
    /// Bytes of a full packet: payload, and on the link.
    full: (u32, u32),
}

impl Rule {
    /// A quiet time of zero would end a grant at once: it counts as one picosecond.
    pub fn new(until: GrantUntil, quiet: Time, path: &Path) -> Self {
        Self { until, quiet: quiet.max(Time::from_ps(1)), full: (path.mss, path.wire_mss.max(1)) }
    }

    /// The payload of full packets of so many bytes on the link.
    fn payload(&self, wire: u64) -> u64 {
        let (payload, on_link) = self.full;
        (u128::from(wire) * u128::from(payload) / u128::from(on_link)) as u64
    }
}

/// The cap on one flow, in payload as what is in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// Bytes; `u64::MAX` without.
    cap: u64,
    /// With [`GrantUntil::Timeout`] when it expires, with [`GrantUntil::RoundTrip`] when the last notification arrived;
    /// otherwise [`Time::MAX`].
    time: Time,
}

impl Grant {
    /// No cap.
    pub const NONE: Self = Self { cap: u64::MAX, time: Time::MAX };

    /// Whether there is a cap that an increase ends.
    #[inline]
    pub fn awaits_increase(&self, rule: &Rule) -> bool {
        self.cap != u64::MAX && rule.until == GrantUntil::FirstIncrease
    }

    /// A notification has arrived. Several windows of one epoch come from several switches: the smallest is used.
    /// They are in bytes on the link. No window stops the flow.
    pub fn on_cnp(&mut self, rule: &Rule, now: Time, cnp: &Cnp) {
        if let Some(window) = cnp.window {
            self.cap = self.cap.min(rule.payload(window).max(1));
        }
        if self.cap != u64::MAX {
            self.time = match rule.until {
                GrantUntil::FirstIncrease => Time::MAX,
                GrantUntil::Timeout => now.saturating_add(rule.quiet),
                GrantUntil::RoundTrip => now,
            };
        }
    }

    /// The law increases its own rate or window.
    #[inline]
    pub fn on_increase(&mut self, rule: &Rule) {
        if rule.until == GrantUntil::FirstIncrease {
            *self = Self::NONE;
        }
    }

    /// A packet is acknowledged that left a round trip ago.
    #[inline]
    pub fn on_ack(&mut self, rule: &Rule, now: Time, rtt: Time) {
        if rule.until == GrantUntil::RoundTrip && now.saturating_sub(rtt) >= self.time {
            *self = Self::NONE;
        }
        self.expire(rule, now);
    }

    /// Ends the cap if it has expired.
    #[inline]
    pub fn expire(&mut self, rule: &Rule, now: Time) {
        if self.ends(rule) <= now {
            *self = Self::NONE;
        }
    }

    /// When the cap expires, for the law's timer. [`Time::MAX`] for never.
    #[inline]
    pub fn ends(&self, rule: &Rule) -> Time {
        if rule.until == GrantUntil::Timeout { self.time } else { Time::MAX }
    }

    /// The law's window, limited by the cap.
    #[inline]
    pub fn limit(&self, window: u64) -> u64 {
        self.cap.min(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_units::Rate;

    const US: fn(u64) -> Time = Time::from_us;

    fn rule_of(until: GrantUntil, quiet: Time, mss: u32, wire_mss: u32) -> Rule {
        Rule::new(until, quiet, &Path::new(Rate::from_gbps(100), US(4), mss, wire_mss))
    }

    #[test]
    fn a_window_of_the_link_is_as_much_payload_as_fits() {
        for (mss, wire, payload) in [(64, 150, 21_333), (256, 342, 37_426), (1000, 1086, 46_040), (9000, 9086, 49_526)]
        {
            let mut grant = Grant::NONE;
            grant.on_cnp(&rule_of(GrantUntil::Timeout, US(5), mss, wire), US(1), &Cnp::granting(50_000));
            assert_eq!(grant.limit(u64::MAX), payload, "{mss}");
        }
    }

    #[test]
    fn the_smallest_of_an_epoch_counts_and_an_increase_ends_it() {
        let rule = rule_of(GrantUntil::FirstIncrease, US(5), 1000, 1000);
        let mut grant = Grant::NONE;
        grant.on_cnp(&rule, US(1), &Cnp::CONGESTED);
        assert_eq!(grant.limit(77), 77);
        grant.on_cnp(&rule, US(1), &Cnp::granting(5000));
        grant.on_cnp(&rule, US(2), &Cnp::granting(9000));
        grant.on_cnp(&rule, US(3), &Cnp::CONGESTED);
        assert_eq!((grant.limit(u64::MAX), grant.limit(77)), (5000, 77));
        grant.expire(&rule, Time::from_ms(1));
        assert_eq!((grant.limit(u64::MAX), grant.ends(&rule)), (5000, Time::MAX), "time does not end it");
        grant.on_increase(&rule);
        assert_eq!(grant, Grant::NONE);
        grant.on_cnp(&rule, US(4), &Cnp::granting(0));
        assert_eq!(grant.limit(u64::MAX), 1, "never closed");
    }

    #[test]
    fn a_packet_that_left_after_the_last_notification_ends_it() {
        let rule = rule_of(GrantUntil::RoundTrip, US(5), 1000, 1000);
        let mut grant = Grant::NONE;
        grant.on_cnp(&rule, US(10), &Cnp::granting(5000));
        grant.on_increase(&rule);
        grant.on_ack(&rule, US(1000), US(991));
        assert_eq!((grant.limit(u64::MAX), grant.ends(&rule)), (5000, Time::MAX), "it left before");
        grant.on_cnp(&rule, US(1005), &Cnp::granting(6000));
        grant.on_ack(&rule, US(1010), US(900));
        assert_eq!(grant.limit(u64::MAX), 5000, "another notification came");
        grant.on_ack(&rule, US(1100), US(95));
        assert_eq!(grant, Grant::NONE);
    }

    #[test]
    fn quiet_counts_from_the_last_notification() {
        let rule = rule_of(GrantUntil::Timeout, US(5), 1000, 1000);
        let mut grant = Grant::NONE;
        grant.on_cnp(&rule, US(1), &Cnp::granting(5000));
        assert_eq!(grant.ends(&rule), US(6));
        grant.on_cnp(&rule, US(4), &Cnp::CONGESTED);
        grant.on_increase(&rule);
        grant.expire(&rule, Time::from_ns(8_999));
        assert_eq!((grant.limit(u64::MAX), grant.ends(&rule)), (5000, US(9)));
        grant.expire(&rule, US(9));
        assert_eq!(grant, Grant::NONE);
        // There is no cap to end.
        grant.on_cnp(&rule, US(10), &Cnp::CONGESTED);
        assert_eq!((grant.limit(77), grant.ends(&rule)), (77, Time::MAX));
        let never = rule_of(GrantUntil::Timeout, Time::ZERO, 1000, 1000);
        grant.on_cnp(&never, US(10), &Cnp::granting(1));
        assert!(grant.ends(&never) > US(10));
    }
}
