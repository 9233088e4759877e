//! Pacer: the window and the gaps between packets that the law allows.

use crate::settings::host::PaceCredit;
use incast_cc::Path;
use incast_units::{Rate, Rounding, Time};

/// Whether a flow may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendDecision {
    /// Now.
    Ready,
    /// Not before this time.
    At(Time),
    /// Not before an event of the flow.
    Blocked,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Payload bytes that may be in flight.
    window: u64,
    /// Picoseconds per byte on the wire; zero without pacing.
    pace: f64,
    /// There are gaps between packets: they are paced, or the window is below one of them.
    gaps: bool,
    /// The gaps allow the next packet from here on.
    next_send: Time,
    /// When the last packet was sent.
    last_start: Time,
    /// How long it had waited in the NIC.
    waited: Time,
    /// Picoseconds per byte on the NIC's link.
    link_pace: f64,
    /// Bytes of the last packet on the link; zero before there was one.
    last_wire: u32,
    /// Something other than the gap keeps the next packet back.
    blocked: bool,
    /// When nothing other than the gap kept the next packet back any more.
    unblocked: Time,
    /// Packets that were sent when the window was last the limit: acknowledgements up to here may make the window grow
    /// (RFC 9438, section 4.2).
    limited_until: u32,
}

impl Pacer {
    /// Of a flow that starts at a host of this rate.
    pub fn new(link: Rate) -> Self {
        Self { link_pace: 8e12 / link.as_f64().max(1.0), blocked: true, ..Self::default() }
    }

    /// Sets window and rate. True if the gap after the last packet may have changed: there is one, or the last one has
    /// just ended.
    #[inline]
    pub fn set(&mut self, window: u64, rate: Option<Rate>, mtu: u32) -> bool {
        let pace = match rate {
            None => 0.0,
            Some(rate) => 8e12 / rate.as_f64().max(1.0),
        };
        let mtu = u64::from(mtu);
        let (gaps, ended) = (pace > 0.0 || window < mtu, self.window < mtu);
        (self.window, self.pace, self.gaps) = (window, pace, gaps);
        gaps || ended
    }

    /// Closes the window, before a connection is open.
    pub fn close(&mut self) {
        (self.window, self.pace, self.next_send, self.blocked) = (0, 0.0, Time::ZERO, true);
        // As with any window below a packet.
        self.gaps = true;
    }

    /// Payload bytes that may be in flight.
    #[inline]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// There are gaps between packets.
    #[inline]
    pub fn has_gaps(&self) -> bool {
        self.gaps
    }

    /// A packet was sent: plans the gap after it.
    #[inline]
    pub fn plan(&mut self, mtu: u32, rtt: Time, rounding: Rounding, credit: PaceCredit) {
        let gap = self.gap(mtu, rtt, rounding);
        self.next_send = match credit {
            _ if gap == Time::ZERO => Time::ZERO,
            PaceCredit::None => self.last_start + gap,
            _ => {
                // A pace above the NIC's is the NIC's: what a flow's own packets keep it waiting is no credit.
                let own = Time::from_ps((f64::from(self.last_wire) * self.link_pace) as u64);
                (self.last_start + gap.max(own)).saturating_sub(credit.of(gap, self.waited))
            }
        };
    }

    /// Window or pace have changed: plans the gap anew. A packet that the new pace would have sent before is due now.
    #[inline]
    pub fn replan(&mut self, now: Time, mtu: u32, rtt: Time, rounding: Rounding, credit: PaceCredit) {
        let before = self.next_send.min(now);
        self.plan(mtu, rtt, rounding, credit);
        if self.next_send > Time::ZERO {
            self.next_send = self.next_send.max(before);
        }
    }

    /// The gap after the last packet, by the newest window and pace.
    #[inline]
    fn gap(&self, mtu: u32, rtt: Time, rounding: Rounding) -> Time {
        if self.last_wire == 0 {
            Time::ZERO
        } else if self.pace > 0.0 {
            rounding.of(Time::from_ps((f64::from(self.last_wire) * self.pace) as u64))
        } else if self.window < u64::from(mtu) {
            // A window below one packet: one packet each RTT × MSS / window.
            rtt.mul_f64(f64::from(mtu) / self.window.max(1) as f64)
        } else {
            Time::ZERO
        }
    }

    /// Something other than window and gap keeps the next packet back: there is none, or no credit of the receiver.
    #[inline]
    pub fn block(&mut self) {
        self.blocked = true;
    }

    /// Whether window and gaps allow the packet after `in_flight` others at `now`. `unsent` is the first packet that
    /// was never sent.
    #[inline(always)]
    pub fn decide(&mut self, now: Time, in_flight: u32, unsent: impl FnOnce() -> u32, mtu: u32) -> SendDecision {
        if (u64::from(in_flight) + 1) * u64::from(mtu) > self.window && (in_flight > 0 || self.window == 0) {
            self.limited_until = unsent();
            self.blocked = true;
            return SendDecision::Blocked;
        }
        if std::mem::replace(&mut self.blocked, false) {
            self.unblocked = now;
        }
        if self.next_send > now {
            return SendDecision::At(self.next_send);
        }
        SendDecision::Ready
    }

    /// How long window and gap have allowed the next packet, which has not been sent.
    pub fn allowed_for(&self, now: Time) -> Time {
        now.saturating_sub(self.next_send.max(self.unblocked).max(self.last_start))
    }

    /// A packet with so many bytes on the link is sent.
    #[inline]
    pub fn on_sent(&mut self, now: Time, wire: u32) {
        // Without gaps a packet waits for the flow's own ones, too, which gives no credit.
        self.waited = if self.gaps { now.saturating_sub(self.next_send.max(self.unblocked)) } else { Time::ZERO };
        (self.last_start, self.last_wire) = (now, wire);
    }

    /// The window was not the limit when the packets beyond `acked_before` were sent.
    #[inline]
    pub fn is_app_limited(&self, acked_before: u32) -> bool {
        acked_before > self.limited_until
    }

    /// The window in force in bytes, and the rate assigned in bit/s: the pacing rate, at most what the window permits in a base RTT;
    /// without pacing, the window over the smoothed RTT.
    pub fn assigned(&self, rtt: Time, path: &Path) -> (u64, u64) {
        let rate = if self.pace > 0.0 {
            (8e12 / self.pace).min(window_rate(self.window, path))
        } else {
            self.window as f64 * 8.0 / rtt.as_secs_f64()
        };
        (self.window, rate as u64)
    }
}

/// The rate on the wire that a window permits in a base RTT, in bit/s: no less than a packet, as a sender always
/// has one in flight. A window counts payload, a pace what is on the wire.
fn window_rate(window: u64, path: &Path) -> f64 {
    if window == u64::MAX || path.base_rtt == Time::ZERO {
        return f64::INFINITY;
    }
    let mss = path.mss.max(1);
    let packets = window.max(mss.into()) as f64 / f64::from(mss);
    packets * f64::from(path.wire_mss) * 8.0 / path.base_rtt.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lets_through_what_it_holds_in_a_base_rtt() {
        let path = Path::new(Rate::from_gbps(10), Time::from_us(8), 1000, 1250);
        let gbps = |window| (window_rate(window, &path) / 1e6).round() / 1e3;
        // 8,000 bytes of payload are 10,000 on the wire, and these take 8 us at 10 Gbit/s.
        assert_eq!([8_000, 4_000, 80_000].map(gbps), [10.0, 5.0, 100.0]);
        assert_eq!([1_000, 1, 0].map(gbps), [1.25; 3], "a packet at a time");
        assert_eq!(gbps(u64::MAX), f64::INFINITY);
        assert_eq!(window_rate(8_000, &Path { base_rtt: Time::ZERO, ..path }), f64::INFINITY);
    }

    #[test]
    fn a_pace_leaves_gaps_and_a_window_blocks() {
        let (mut pacer, now) = (Pacer::new(Rate::from_gbps(100)), Time::from_us(5));
        let rtt = Time::from_us(10);
        // 10 Gbit/s are 800 ps for a byte.
        assert!(pacer.set(2_000, Some(Rate::from_gbps(10)), 1000));
        assert_eq!(pacer.decide(now, 0, || 0, 1000), SendDecision::Ready);
        pacer.on_sent(now, 1250);
        pacer.plan(1000, rtt, Rounding::default(), PaceCredit::None);
        assert_eq!(pacer.decide(now, 1, || 1, 1000), SendDecision::At(now + Time::from_us(1)));
        assert!(pacer.is_app_limited(1));
        assert_eq!(pacer.decide(now + Time::from_us(1), 2, || 2, 1000), SendDecision::Blocked);
        assert!(!pacer.is_app_limited(1));
        // An acknowledgement opens the window; the next packet waits for others in the NIC.
        let opened = now + Time::from_us(20);
        assert_eq!(pacer.decide(opened, 1, || 2, 1000), SendDecision::Ready);
        assert_eq!(pacer.decide(opened + Time::from_ms(4), 0, || 2, 1000), SendDecision::Ready);
        assert_eq!(pacer.allowed_for(opened + Time::from_ms(4)), Time::from_ms(4));
        // A window of half a packet: one packet in two RTTs.
        pacer.set(500, None, 1000);
        pacer.plan(1000, rtt, Rounding::default(), PaceCredit::None);
        assert_eq!(pacer.decide(now, 0, || 2, 1000), SendDecision::At(now + rtt * 2));
        pacer.close();
        assert_eq!(pacer.decide(now + rtt * 2, 0, || 2, 1000), SendDecision::Blocked);
    }
}
