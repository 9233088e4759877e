//! ProbeBW, and the bounds that losses and marks set: for the long term by what a probe met, for the short term by what
//! comes between probes.

use super::{AckPhase, Flow, State, draw};
use crate::{
    Loss,
    window::delivery_rate::{RateSample, Sent},
};
use incast_units::Time;

/// Rounds of Up after which the bound grows no faster.
const MOST_UP_ROUNDS: u32 = 30;

/// BBRInflightAtLoss (section 5.5.10.2): how much was in flight when losses passed the threshold, in a flight of
/// `inflight` bytes of which `lost` were lost, the last of them a packet of `size`.
pub(super) fn inflight_at_loss(inflight: f64, lost: f64, size: f64, threshold: f64) -> f64 {
    let inflight_before = (inflight - size).max(0.0);
    let lost_before = lost - size;
    let prefix = ((threshold * inflight_before - lost_before) / (1.0 - threshold)).max(0.0);
    inflight_before + prefix
}

impl Flow {
    /// BBRUpdateLatestDeliverySignals (section 5.5.10.3).
    pub(super) fn update_latest_signals(&mut self, sample: Option<&RateSample>) {
        let signals = &mut self.signals;
        signals.round_start = false;
        let Some(sample) = sample else { return };
        signals.bandwidth_latest = signals.bandwidth_latest.max(sample.rate.unwrap_or(0.0));
        signals.inflight_latest = signals.inflight_latest.max(sample.delivered);
        if sample.packet.delivered >= signals.round_delivered {
            signals.round_delivered = self.delivery.delivered();
            signals.round_start = true;
        }
    }

    /// BBRAdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_signals(&mut self, sample: Option<&RateSample>) {
        if let (true, Some(sample)) = (self.signals.round_start, sample) {
            self.signals.bandwidth_latest = sample.rate.unwrap_or(0.0);
            self.signals.inflight_latest = sample.delivered;
        }
    }

    /// alpha <- (1 - g) alpha + g F once per round, F being the part of its bytes that were marked (Linux v3).
    pub(super) fn update_marks(&mut self, marked: bool) {
        let parameters = &self.constants.parameters;
        if !parameters.ecn {
            return;
        }
        self.signals.marks |= marked;
        if !self.round_start {
            return;
        }
        let (delivered, marks) = (self.delivery.delivered(), self.delivery.marked());
        let (delivered_before, marks_before) = self.signals.round_before;
        let all = delivered.saturating_sub(delivered_before);
        if all > 0 {
            let fraction = marks.saturating_sub(marks_before) as f64 / all as f64;
            self.signals.alpha += parameters.ecn_gain * (fraction - self.signals.alpha);
            let is_marked = fraction >= parameters.ecn_threshold;
            self.signals.marked_rounds = if is_marked { self.signals.marked_rounds + 1 } else { 0 };
        }
        self.signals.round_before = (delivered, marks);
    }

    /// BBRAdaptLowerBoundsFromCongestion (section 5.5.10.3), once per loss round, and not while the flow looks for
    /// more.
    pub(super) fn adapt_shortterm(&mut self) {
        if !self.signals.round_start {
            return;
        }
        let is_probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        let parameters = &self.constants.parameters;
        if !is_probing && (self.signals.losses || self.signals.marks) {
            let inflight =
                if self.inflight_shortterm.is_finite() { self.inflight_shortterm } else { self.window as f64 };
            self.inflight_shortterm = inflight;
            if self.signals.marks {
                let cut = 1.0 - self.signals.alpha * parameters.ecn_factor;
                self.inflight_shortterm = inflight * cut;
            }
            if self.signals.losses {
                let bandwidth = self.bandwidth_shortterm.min(self.max_bandwidth.max());
                self.bandwidth_shortterm = self.signals.bandwidth_latest.max(parameters.beta * bandwidth);
                let by_loss = (self.signals.inflight_latest as f64).max(parameters.beta * inflight);
                self.inflight_shortterm = self.inflight_shortterm.min(by_loss);
            }
        }
        (self.signals.losses, self.signals.marks) = (false, false);
    }

    /// BBRResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bandwidth_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// BBRNoteLoss (section 5.5.10.2), and how many losses there are in a round: those next to each other are one.
    pub(super) fn note_loss(&mut self, loss: &Loss) {
        if !self.signals.losses {
            self.signals.round_delivered = self.delivery.delivered();
        }
        self.signals.losses = true;
        if self.signals.loss_ranges == 0 || loss.position != self.signals.loss_end {
            self.signals.loss_ranges += 1;
        }
        self.signals.loss_end = loss.position.saturating_add(loss.lost_bytes);
    }

    /// BBRIsInflightTooHigh (section 5.5.10.2) by losses, for a packet and what was lost since it was sent.
    pub(super) fn loses_too_much(&self, packet: &Sent) -> bool {
        let lost = self.delivery.lost().saturating_sub(packet.lost) as f64;
        lost > self.constants.parameters.loss_threshold * packet.in_flight as f64
    }

    /// The same by marks, for what was delivered since it was sent (Linux v3).
    fn marks_too_much(&self, sample: &RateSample) -> bool {
        let parameters = &self.constants.parameters;
        let marked = self.delivery.marked().saturating_sub(sample.packet.marked) as f64;
        parameters.ecn && marked > 0.0 && marked >= parameters.ecn_threshold * sample.delivered as f64
    }

    /// BBRHandleLostPacket (section 5.5.10.2): packet for packet, until one is too many.
    pub(super) fn judge_loss(&mut self, loss: &Loss, lost_before: u64) {
        let (true, Some(packet)) = (self.probe.samples, self.last_packet) else { return };
        let size = self.constants.mss as f64;
        let threshold = self.constants.parameters.loss_threshold;
        let inflight = packet.in_flight as f64;
        // The first of these packets with which losses are more than the threshold.
        let earlier = lost_before.saturating_sub(packet.lost) as f64;
        let packets = ((threshold * inflight - earlier) / size).max(0.0).floor() + 1.0;
        let lost = earlier + packets * size;
        if lost <= earlier + loss.lost_bytes as f64 {
            let inflight = inflight_at_loss(inflight, lost, size, threshold);
            self.handle_inflight_too_high(loss.now, inflight, packet.app_limited);
        }
    }

    /// BBRHandleInflightTooHigh (section 5.5.10.2): once per probe.
    fn handle_inflight_too_high(&mut self, now: Time, inflight: f64, app_limited: bool) {
        self.probe.samples = false;
        if !app_limited {
            self.inflight_longterm = inflight.max(self.target_inflight() as f64 * self.constants.parameters.beta);
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    /// BBRTargetInflight: the BDP, unless congestion cut the window.
    fn target_inflight(&self) -> u64 {
        self.bdp(self.bandwidth, 1.0).min(self.window)
    }

    /// BBRInflightWithHeadroom (section 5.3.3.6).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let headroom = (self.constants.parameters.headroom * self.inflight_longterm).max(self.constants.mss as f64);
        // Without a bound there is none with headroom either.
        if self.inflight_longterm.is_finite() {
            (self.inflight_longterm - headroom).max(self.constants.min_window as f64)
        } else {
            f64::INFINITY
        }
    }

    /// BBRUpdateProbeBWCyclePhase (section 5.3.3.6).
    pub(super) fn update_probe(&mut self, now: Time, acked: u64, sample: Option<&RateSample>) {
        if !self.full_pipe.reached {
            return;
        }
        self.adapt_longterm(now, acked, sample);
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Refill if self.round_start => {
                self.probe.samples = true;
                self.start_up(sample);
            }
            State::Up if self.is_time_to_go_down(sample) => self.start_down(now),
            _ => {}
        }
    }

    /// BBRAdaptLongTermModel (section 5.3.3.6).
    fn adapt_longterm(&mut self, now: Time, acked: u64, sample: Option<&RateSample>) {
        let Some(sample) = sample else { return };
        match self.probe.ack_phase {
            AckPhase::ProbeStarting if self.round_start => self.probe.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping if self.round_start => {
                (self.probe.samples, self.probe.ack_phase) = (false, AckPhase::None);
                if self.state.is_probe_bw() && !sample.packet.app_limited {
                    self.probe.cycle += 1;
                }
            }
            _ => {}
        }
        if self.marks_too_much(sample) {
            if self.probe.samples {
                self.handle_inflight_too_high(now, sample.packet.in_flight as f64, sample.packet.app_limited);
            }
            return;
        }
        if !self.loses_too_much(&sample.packet) && self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(sample.packet.in_flight as f64);
            if self.state == State::Up {
                self.raise_longterm(acked);
            }
        }
    }

    /// BBRProbeInflightLongtermUpward: a packet in the first round, two in the second, four in the third.
    fn raise_longterm(&mut self, acked: u64) {
        if !self.is_window_limited() || (self.window as f64) < self.inflight_longterm.floor() {
            return;
        }
        self.inflight_longterm += acked as f64 / self.probe.up_count;
        if self.round_start {
            self.raise_slope();
        }
    }

    /// BBRRaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = self.constants.mss as f64 * f64::from(1u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(MOST_UP_ROUNDS);
        self.probe.up_count = (self.window as f64 / growth).max(1.0);
    }

    /// The window is what has limited the flow in the last round.
    fn is_window_limited(&self) -> bool {
        self.delivery.delivered() <= self.limited_until
    }

    /// BBRStartProbeBW_DOWN (section 5.3.3.6).
    pub(super) fn start_down(&mut self, now: Time) {
        (self.signals.losses, self.signals.marks) = (false, false);
        (self.signals.bandwidth_latest, self.signals.inflight_latest) = (0.0, 0);
        self.probe.up_count = f64::INFINITY;
        self.probe.rounds = u64::from(draw(&mut self.random, 2));
        let parameters = &self.constants.parameters;
        let part = f64::from(draw(&mut self.random, u32::MAX)) / f64::from(u32::MAX);
        let extra = Time::from_ps((parameters.probe_wait_random.ps() as f64 * part) as u64);
        self.probe.wait = parameters.probe_wait.saturating_add(extra);
        self.probe.since = now;
        self.probe.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// BBRStartProbeBW_REFILL.
    fn start_refill(&mut self) {
        self.reset_shortterm();
        self.probe.up_rounds = 0;
        self.probe.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// BBRStartProbeBW_UP.
    fn start_up(&mut self, sample: Option<&RateSample>) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_pipe(sample.and_then(|sample| sample.rate).unwrap_or(0.0));
        self.state = State::Up;
        self.raise_slope();
    }

    /// BBRIsTimeToProbeBW (section 5.3.3.5.3): by the clock, or as soon as Reno would have found as much.
    pub(super) fn is_time_to_probe(&self, now: Time) -> bool {
        let parameters = &self.constants.parameters;
        let rounds = (self.target_inflight() / self.constants.mss).min(parameters.probe_rounds);
        now > self.probe.since.saturating_add(self.probe.wait) || self.probe.rounds >= rounds
    }

    /// BBRIsTimeToCruise.
    pub(super) fn is_time_to_cruise(&self) -> bool {
        let in_flight = self.delivery.in_flight();
        in_flight as f64 <= self.inflight_with_headroom() && in_flight <= self.inflight(1.0)
    }

    /// BBRIsTimeToGoDown: the pipe is full, and it is not the bound that says so.
    fn is_time_to_go_down(&mut self, sample: Option<&RateSample>) -> bool {
        if self.is_window_limited() && self.window as f64 >= self.inflight_longterm.floor() {
            self.reset_full_pipe(sample.and_then(|sample| sample.rate).unwrap_or(0.0));
            return false;
        }
        self.full_pipe.now
    }
}
