//! Delivery rate: how fast data arrives, measured at the sender with each acknowledgement.
//!
//! Source: Y. Cheng et al., "Delivery Rate Estimation", draft-cheng-iccrg-delivery-rate-estimation (now section 4.1 of
//! draft-ietf-ccwg-bbr).
//!
//! ```text
//!   sent      first_sent ────────────▶ P sent                   send_elapsed
//!   delivered            delivered_time ────────────▶ now       ack_elapsed
//!   rate = what was delivered since P was sent / the longer of the two
//! ```
//!
//! A law sees no packets. It notes when it sent what, and an acknowledgement is that of the last packet sent at or
//! before `now - rtt`. Where an underlay stamps packets later than they were handed to it, this may be a packet that
//! was sent later than the one acknowledged: its sample is one of another, shorter stretch, and dropped if it is
//! shorter than the least RTT. What was sent before a packet that has been acknowledged is forgotten, so that packets
//! which were overtaken give no sample when they arrive; what they delivered is counted.

use super::windowed::WindowedMax;
use crate::{Feedback, Loss};
use incast_units::Time;
use std::collections::VecDeque;

/// What was noted when a packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub time: Time,
    /// Bytes delivered until then (P.delivered).
    pub delivered: u64,
    /// When the last of those was acknowledged (P.delivered_time).
    delivered_time: Time,
    /// When the packet was sent whose acknowledgement that was (P.first_sent_time).
    first_sent_time: Time,
    /// Bytes in flight, this packet included (P.tx_in_flight).
    pub in_flight: u64,
    /// Bytes lost until then (P.lost).
    pub lost: u64,
    /// Of those delivered, how many were marked.
    pub marked: u64,
    /// The flow had nothing to send at some time (P.is_app_limited).
    pub app_limited: bool,
}

/// What an acknowledgement shows of the path (RS, a rate sample).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// The packet that was acknowledged, as noted when it was sent.
    pub packet: Sent,
    /// Payload bytes per second; `None` if the interval was too short.
    pub rate: Option<f64>,
    /// Bytes delivered in the stretch.
    pub delivered: u64,
}

/// The estimator of a flow.
#[derive(Clone, Debug)]
pub struct DeliveryRate {
    /// Bytes delivered (C.delivered), and when that last rose (C.delivered_time).
    delivered: u64,
    delivered_time: Time,
    /// When the packet was sent that was acknowledged last, or the first one after an idle time (C.first_sent_time).
    first_sent_time: Time,
    /// Samples of packets sent until this much is delivered are application-limited; 0 for none (C.app_limited).
    app_limited: u64,
    /// Bytes lost (C.lost).
    lost: u64,
    /// Bytes delivered with a mark; of an acknowledgement for several packets, in proportion.
    marked: u64,
    in_flight: u64,
    /// Nothing is in flight because of a timeout.
    timed_out: bool,
    sent: VecDeque<Sent>,
}

fn seconds(time: Time) -> f64 {
    time.ps() as f64 * 1e-12
}

/// `delivery_rate = delivered / max(send_elapsed, ack_elapsed)` in bytes per second; `None` if that is less than the
/// least RTT.
fn delivery_rate(delivered: u64, send_elapsed: Time, ack_elapsed: Time, least_rtt: Time) -> Option<f64> {
    let interval = send_elapsed.max(ack_elapsed);
    (interval >= least_rtt && interval > Time::ZERO).then(|| delivered as f64 * 1e12 / interval.ps() as f64)
}

impl DeliveryRate {
    /// A flow that starts at `now`.
    pub fn new(now: Time) -> Self {
        Self {
            delivered: 0,
            delivered_time: now,
            first_sent_time: now,
            app_limited: 0,
            lost: 0,
            marked: 0,
            in_flight: 0,
            timed_out: false,
            sent: VecDeque::new(),
        }
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes found lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes delivered with a mark so far.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// Bytes in flight, as far as is known.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// What is sent now will give application-limited samples.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Samples of what is in flight, and of what is sent before it is delivered, count as application-limited.
    pub fn mark_app_limited(&mut self) {
        self.app_limited = self.delivered.saturating_add(self.in_flight).max(1);
    }

    /// A packet of a flow that sends `pace` bytes per second is sent after an idle time: nothing was in flight, as the flow had
    /// nothing to send, or as for longer than `least_rtt` and the packet's gap something else kept it from sending (flows of a
    /// higher priority, a pause), which then counts as application-limited, too.
    #[inline]
    pub fn restarts(&mut self, now: Time, bytes: u32, pace: f64, least_rtt: Time) -> bool {
        if self.in_flight > 0 {
            return false;
        }
        let gap = Time::from_ps((f64::from(bytes) * 1e12 / pace.max(1.0)) as u64);
        let idle_from = self.delivered_time.saturating_add(least_rtt).saturating_add(gap);
        if self.delivered > 0 && now > idle_from && !self.timed_out && !self.is_app_limited() {
            self.mark_app_limited();
        }
        self.is_app_limited()
    }

    /// `bytes` were sent.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        if self.in_flight == 0 {
            (self.first_sent_time, self.delivered_time) = (now, now);
        }
        self.timed_out = false;
        self.in_flight = self.in_flight.saturating_add(bytes.into());
        self.sent.push_back(Sent {
            time: now,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            in_flight: self.in_flight,
            lost: self.lost,
            marked: self.marked,
            app_limited: self.app_limited > 0,
        });
    }

    /// An acknowledgement, of a flow with this `window` and this least RTT. `None` if it delivers nothing, or is that
    /// of a packet which a later one has overtaken.
    pub fn on_ack(&mut self, feedback: &Feedback<'_>, window: u64, least_rtt: Time) -> Option<RateSample> {
        if feedback.nothing_to_send && self.in_flight < window {
            self.mark_app_limited();
        }
        self.in_flight = feedback.in_flight;
        if feedback.acked_bytes == 0 {
            return None;
        }
        self.delivered = self.delivered.saturating_add(feedback.acked_bytes);
        self.delivered_time = feedback.now;
        if feedback.marked > 0 {
            let part = f64::from(feedback.marked) / f64::from(feedback.packets.max(1));
            self.marked = self.marked.saturating_add((feedback.acked_bytes as f64 * part) as u64);
        }
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let packet = self.find(feedback.now.saturating_sub(feedback.rtt))?;
        self.first_sent_time = packet.time;
        let delivered = self.delivered.saturating_sub(packet.delivered);
        let send_elapsed = packet.time.saturating_sub(packet.first_sent_time);
        let ack_elapsed = feedback.now.saturating_sub(packet.delivered_time);
        let rate = delivery_rate(delivered, send_elapsed, ack_elapsed, least_rtt);
        Some(RateSample { packet, rate, delivered })
    }

    /// The last packet that was sent at `stamp` or before; it and those before it are forgotten.
    fn find(&mut self, stamp: Time) -> Option<Sent> {
        let mut found = None;
        while self.sent.front().is_some_and(|packet| packet.time <= stamp) {
            found = self.sent.pop_front();
        }
        found
    }

    /// Packets were found lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.in_flight = loss.in_flight;
        self.lost = self.lost.saturating_add(loss.lost_bytes);
    }

    /// Everything in flight is presumed lost. Records of sent packets are kept: they may only be late.
    pub fn on_timeout(&mut self) {
        self.lost = self.lost.saturating_add(self.in_flight);
        (self.in_flight, self.timed_out) = (0, true);
    }
}

/// How much more is acknowledged in a burst than the estimated bandwidth would have delivered.
///
/// Source: draft-ietf-ccwg-bbr, section 5.5.9 (BBRUpdateACKAggregation).
#[derive(Clone, Debug)]
pub struct AckAggregation {
    start: Time,
    acked: u64,
    extra: WindowedMax,
}

impl AckAggregation {
    /// A flow that starts at `now`.
    pub fn new(now: Time) -> Self {
        Self { start: now, acked: 0, extra: WindowedMax::default() }
    }

    /// The flow was idle until `now`.
    pub fn restart(&mut self, now: Time) {
        (self.start, self.acked) = (now, 0);
    }

    /// `acked` bytes were acknowledged in `round`, at a bandwidth of so many bytes per second and with this `window`;
    /// the maximum is that of the last `rounds` round trips.
    pub fn update(&mut self, now: Time, acked: u64, bandwidth: f64, window: u64, round: u64, rounds: u64) {
        let expected = |start: Time| bandwidth * seconds(now.saturating_sub(start));
        if self.acked as f64 <= expected(self.start) {
            self.restart(now);
        }
        self.acked = self.acked.saturating_add(acked);
        let extra = self.acked as f64 - expected(self.start);
        self.extra.update(round, extra.min(window as f64).max(0.0), rounds);
    }

    /// Bytes that a window needs beyond the others to go on while acknowledgements are held back.
    pub fn extra(&self) -> f64 {
        self.extra.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const RTT: Time = Time::from_us(10);

    fn at(us: u64) -> Time {
        Time::from_us(us)
    }

    fn ack(now: Time, rtt: Time, in_flight: u64) -> Feedback<'static> {
        Feedback { now, rtt, acked_bytes: MSS, packets: 1, in_flight, ..Feedback::default() }
    }

    fn rate(sample: Option<RateSample>) -> f64 {
        sample.and_then(|sample| sample.rate).expect("a rate")
    }

    /// One packet each microsecond, each acknowledged after ten.
    #[test]
    fn a_steady_stream_has_its_own_rate() {
        let mut estimator = DeliveryRate::new(Time::ZERO);
        for us in 0..100 {
            if us >= 10 {
                let sample = estimator.on_ack(&ack(at(us), RTT, 9 * MSS), u64::MAX, RTT);
                if us >= 20 {
                    assert!((rate(sample) - 1e9).abs() < 1.0, "{sample:?}");
                    assert_eq!(sample.expect("a sample").packet.in_flight, 10 * MSS);
                }
            }
            estimator.on_sent(at(us), MSS as u32);
        }
        assert_eq!((estimator.delivered(), estimator.sent.len()), (90 * MSS, 10));
    }

    /// Ten packets are sent at 1 GB/s and acknowledged twice as fast (compressed): what was sent in the time counts.
    #[test]
    fn compressed_acknowledgements_do_not_raise_it() {
        let mut estimator = DeliveryRate::new(Time::ZERO);
        (0..20).for_each(|us| estimator.on_sent(at(us), MSS as u32));
        let mut most: f64 = 0.0;
        for packet in 0..20 {
            let now = Time::from_ns(30_000 + 500 * packet);
            let sample = estimator.on_ack(&ack(now, now - at(packet), 0), u64::MAX, RTT);
            most = most.max(rate(sample));
        }
        // The packets were all sent before anything was delivered, so ack_elapsed is from the first on.
        assert!(most <= 20e3 / 39.5e-6 + 1.0, "{most}");
        // Sending was slower than acknowledging: the rate is that of sending.
        let mut estimator = DeliveryRate::new(Time::ZERO);
        estimator.on_sent(at(0), MSS as u32);
        estimator.on_ack(&ack(at(10), RTT, MSS), u64::MAX, RTT);
        estimator.in_flight = MSS;
        for us in [30, 50] {
            estimator.on_sent(at(us), MSS as u32);
        }
        let sample = estimator.on_ack(&ack(at(70), at(40), MSS), u64::MAX, RTT).expect("a sample");
        assert_eq!(sample.rate, Some(1000.0 / 60e-6), "sent 30 us after, acknowledged 60 us after");
    }

    #[test]
    fn a_stretch_below_the_least_rtt_says_nothing() {
        assert_eq!(delivery_rate(1000, at(3), at(9), at(10)), None);
        assert_eq!(delivery_rate(1000, at(3), at(10), at(10)), Some(1e8));
        assert_eq!(delivery_rate(1000, at(20), at(10), at(10)), Some(5e7));
        assert_eq!(delivery_rate(1000, Time::ZERO, Time::ZERO, Time::ZERO), None);
    }

    #[test]
    fn a_packet_is_found_by_the_time_at_which_it_was_sent() {
        let mut estimator = DeliveryRate::new(Time::ZERO);
        [0, 1, 2, 5].iter().for_each(|us| estimator.on_sent(at(*us), MSS as u32));
        // Stamped a little later than it was sent.
        let sample = estimator.on_ack(&ack(Time::from_ns(11_300), RTT, 0), u64::MAX, RTT).expect("a sample");
        assert_eq!(sample.packet.time, at(1));
        // It has overtaken the first.
        assert!(estimator.on_ack(&ack(at(12), at(12), 0), u64::MAX, RTT).is_none());
        assert_eq!(estimator.delivered(), 2 * MSS);
        let sample = estimator.on_ack(&ack(at(15), RTT, 0), u64::MAX, RTT).expect("a sample");
        assert_eq!(sample.packet.time, at(5));
        assert!(estimator.sent.is_empty());
        // A duplicate delivers nothing.
        let nothing = Feedback { acked_bytes: 0, ..ack(at(16), RTT, 0) };
        assert!(estimator.on_ack(&nothing, u64::MAX, RTT).is_none());
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut estimator = DeliveryRate::new(Time::ZERO);
        estimator.on_sent(at(0), MSS as u32);
        estimator.on_ack(&ack(at(10), RTT, 0), u64::MAX, RTT);
        estimator.on_sent(at(1000), MSS as u32);
        let sample = estimator.on_ack(&ack(at(1010), RTT, 0), u64::MAX, RTT);
        assert_eq!(rate(sample), 1e8);
    }

    #[test]
    fn a_flow_restarts_after_an_application_or_others_kept_it_from_sending() {
        // A gap of 5 us.
        let (bytes, pace) = (MSS as u32, MSS as f64 * 2e5);
        let after = |us, limited: bool| {
            let mut estimator = DeliveryRate::new(Time::ZERO);
            estimator.on_sent(at(0), bytes);
            assert!(!estimator.restarts(at(9), bytes, pace, RTT), "something is in flight");
            estimator.on_ack(&Feedback { nothing_to_send: limited, ..ack(at(10), RTT, 0) }, u64::MAX, RTT);
            (estimator.restarts(at(us), bytes, pace, RTT), estimator.is_app_limited())
        };
        assert_eq!(after(11, true), (true, true), "the application");
        assert_eq!((after(25, false), after(26, false)), ((false, false), (true, true)), "longer than gap and RTT");
        let mut timed_out = DeliveryRate::new(Time::ZERO);
        (0..2).for_each(|_| timed_out.on_sent(at(0), bytes));
        timed_out.on_ack(&ack(at(10), RTT, MSS), u64::MAX, RTT);
        timed_out.on_timeout();
        assert!(!timed_out.restarts(at(1000), bytes, pace, RTT), "a timeout");
        let mut first = DeliveryRate::new(Time::ZERO);
        assert!(!first.restarts(at(1000), bytes, pace, RTT), "the first packet of a flow");
    }

    #[test]
    fn samples_after_an_empty_buffer_are_application_limited() {
        let mut estimator = DeliveryRate::new(Time::ZERO);
        (0..3).for_each(|us| estimator.on_sent(at(us), MSS as u32));
        let limited = |estimator: &mut DeliveryRate, us: u64, nothing_to_send, in_flight| {
            let feedback = Feedback { nothing_to_send, ..ack(at(us), RTT, in_flight) };
            estimator.on_ack(&feedback, 10 * MSS, RTT).expect("a sample").packet.app_limited
        };
        // Nothing to send with 3 packets out: what was sent so far is not limited, what is sent from now on is.
        assert!(!limited(&mut estimator, 10, true, 2 * MSS));
        assert!(estimator.is_app_limited());
        estimator.on_sent(at(10), MSS as u32);
        assert!(!limited(&mut estimator, 11, false, 2 * MSS));
        assert!(!limited(&mut estimator, 12, false, MSS));
        assert!(estimator.is_app_limited(), "until more than those 3 packets are delivered");
        assert!(limited(&mut estimator, 20, false, 0));
        assert!(!estimator.is_app_limited());
        estimator.on_sent(at(21), MSS as u32);
        assert!(!limited(&mut estimator, 31, false, 0));
        // A full window is what limits it then, not the application.
        estimator.on_sent(at(40), MSS as u32);
        let feedback = Feedback { nothing_to_send: true, ..ack(at(50), RTT, 0) };
        estimator.on_ack(&feedback, MSS, RTT);
        assert!(!estimator.is_app_limited());
    }

    #[test]
    fn losses_are_counted() {
        let mut estimator = DeliveryRate::new(Time::ZERO);
        (0..5).for_each(|us| estimator.on_sent(at(us), MSS as u32));
        estimator.on_loss(&Loss { now: at(11), lost_bytes: 2 * MSS, in_flight: 3 * MSS, ..Loss::default() });
        estimator.on_sent(at(11), MSS as u32);
        assert_eq!(estimator.sent.back().map(|sent| (sent.lost, sent.in_flight)), Some((2 * MSS, 4 * MSS)));
        estimator.on_timeout();
        assert_eq!((estimator.lost(), estimator.in_flight()), (6 * MSS, 0));
    }

    #[test]
    fn bursts_of_acknowledgements_are_measured() {
        let mut aggregation = AckAggregation::new(Time::ZERO);
        let mut update = |us: u64, acked: u64, round| {
            aggregation.update(at(us), acked, 1e9, 50_000, round, 10);
            aggregation.extra()
        };
        // 20 KB at once, of which the bandwidth explains nothing; then what it does explain.
        assert_eq!(update(10, 20_000, 0), 20_000.0);
        assert_eq!(update(12, 8_000, 0), 26_000.0);
        // Slower than the bandwidth: counted from here on; the maximum stays for ten rounds.
        assert_eq!(update(100, 1_000, 1), 26_000.0);
        assert_eq!(update(200, 1_000, 10), 1_000.0);
        assert_eq!(update(300, 80_000, 11), 50_000.0, "no more than a window");
    }
}
