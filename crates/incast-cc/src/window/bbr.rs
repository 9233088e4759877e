//! BBR, version 1: a model of the path (bandwidth and propagation time) in place of a window that answers to loss.
//!
//! Sources: N. Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016; the state machine is
//! that of draft-cardwell-iccrg-bbr-congestion-control-00, whose sections are named below. The delivery rate is that of
//! `delivery_rate.rs`.
//!
//! ```text
//!   Startup ── three rounds with less than 25% growth ──▶ Drain ── in flight <= BDP ──▶ ProbeBW ◀─┐ 1.25 .75 1 1 1 1 1 1
//!      ▲                                                                                 │  ▲ └───┘ each RTprop
//!      │   RTprop not seen again for 10 s, from any state:                               ▼  │
//!      └───────── the pipe was never full ◀───────────────────────── ProbeRTT: 4 packets, 200 ms and a round
//!
//!   pace = pacing_gain BtlBw;   window = cwnd_gain BtlBw RTprop + 3 quanta
//! ```
//!
//! Readings and deviations (all in `docs/bbr.md`):
//! - A flow starts with a window of one BDP like all schemes here, and with the pace at which that takes a base RTT;
//!   the draft has 1 ms in place of an RTT that is not known yet. `initial_rtt` has that.
//! - Hosts send single packets, so that a quantum is one packet; `send_quantum` = 64KB has the draft's.
//! - The 1% by which Linux and later drafts pace below the model is `pacing_margin`, the compensation of Linux for
//!   aggregated acknowledgements `ack_aggregation`: neither is in the sources, and both are off.
//! - Linux's long-term bandwidth of policed paths is left out: no draft has it.
//! - Losses that an acknowledgement shows are reported after it: a phase that ends with a loss ends one
//!   acknowledgement later.

use super::{
    delivery_rate::{AckAggregation, DeliveryRate, RateSample},
    slow_start::ten_segments,
    windowed::WindowedMax,
};
use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw},
};
use incast_units::{Bytes, Rate, Time};
use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// 2/ln 2, the least gain with which the rate doubles in a round (section 4.3.2.1).
pub const HIGH_GAIN: f64 = 2.0 * std::f64::consts::LOG2_E;

crate::parameters!(Parameters {
    initial_window: Bytes {
        doc: "Window of a new flow. One BDP for all schemes alike; RFC 6928's ten segments are `10 * MSS`.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "ours: every scheme starts with one BDP"
    },
    initial_rtt: Time {
        doc: "RTT from which, with the initial window, the first pace follows.",
        default: "base RTT",
        value: |path| path.base_rtt.max(Time::from_ps(1)),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "ours: the path is known; the draft has 1ms (section 4.2.1)"
    },
    high_gain: f64 {
        doc: "BBRHighGain: gain of pace and window in Startup; Drain has its inverse for the pace.",
        default: "2/ln 2",
        value: |_| HIGH_GAIN,
        allowed: "in (1, 100]",
        check: |g| *g > 1.0 && *g <= 100.0,
        source: "draft-00, section 4.3.2.1"
    },
    full_pipe_growth: f64 {
        doc: "The pipe is full when BtlBw has not grown by this factor in `full_pipe_rounds` rounds.",
        default: "1.25",
        value: |_| 1.25,
        allowed: "in (1, 100]",
        check: |g| *g > 1.0 && *g <= 100.0,
        source: "draft-00, section 4.3.2.2"
    },
    full_pipe_rounds: u64 {
        doc: "Rounds without that growth after which the pipe is full.",
        default: "3",
        value: |_| 3,
        allowed: "in [1, 1000]",
        check: |n| (1..=1000).contains(n),
        source: "draft-00, section 4.3.2.2"
    },
    cwnd_gain: f64 {
        doc: "Gain of the window in ProbeBW.",
        default: "2",
        value: |_| 2.0,
        allowed: "in [1, 100]",
        check: |g| *g >= 1.0 && *g <= 100.0,
        source: "draft-00, section 4.2.3.2"
    },
    probe_gain: f64 {
        doc: "Gain of the pace in the phase of ProbeBW that looks for more bandwidth.",
        default: "1.25",
        value: |_| 1.25,
        allowed: "in (1, 100]",
        check: |g| *g > 1.0 && *g <= 100.0,
        source: "draft-00, section 4.3.4.1"
    },
    drain_gain: f64 {
        doc: "Gain of the pace in the phase after it, which drains what it queued.",
        default: "0.75",
        value: |_| 0.75,
        allowed: "in (0, 1)",
        check: |g| *g > 0.0 && *g < 1.0,
        source: "draft-00, section 4.3.4.1"
    },
    btlbw_window: u64 {
        doc: "BtlBwFilterLen: rounds in which the largest delivery rate counts.",
        default: "10",
        value: |_| 10,
        allowed: "in [1, 1000]",
        check: |n| (1..=1000).contains(n),
        source: "draft-00, section 4.1.1.3"
    },
    rtprop_window: Time {
        doc: "RTpropFilterLen: time for which the least RTT counts; ProbeRTT comes when it was not seen \
            again in it.",
        default: "10s",
        value: |_| Time::from_ms(10_000),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "draft-00, section 4.1.2.3"
    },
    probe_rtt_duration: Time {
        doc: "ProbeRTTDuration: least time for which ProbeRTT holds the window down, at least a round in any \
            case.",
        default: "200ms",
        value: |_| Time::from_ms(200),
        source: "draft-00, section 4.3.5"
    },
    min_window: Bytes {
        doc: "BBRMinPipeCwnd: least window in bytes, and that of ProbeRTT.",
        default: "4 MSS",
        value: |path| Bytes::new(4 * u64::from(path.mss)),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "draft-00, section 4.2.3.1"
    },
    send_quantum: Bytes {
        doc: "Largest quantum of sending, of which the window has three for the hosts' sake; otherwise that \
            of the draft by pace.",
        default: "MSS",
        value: |path| Bytes::new(path.mss.into()),
        allowed: "at least 1B",
        check: |q| q.get() > 0,
        source: "ours: hosts send single packets; draft-00, section 4.2.2: 64KB"
    },
    pacing_margin: f64 {
        doc: "Part by which the pace stays below gain times bandwidth.",
        default: "0",
        value: |_| 0.0,
        allowed: "in [0, 1)",
        check: |m| *m >= 0.0 && *m < 1.0,
        source: "draft-00, section 4.2.1; Linux and later drafts have 0.01"
    },
    ack_aggregation: bool {
        doc: "Add to the window what is acknowledged in bursts beyond the bandwidth (ACK aggregation).",
        default: "false",
        value: |_| false,
        source: "draft-00 has none; Linux since 5.1 and later drafts have it"
    },
});

/// Phases of ProbeBW.
const CYCLE_LENGTH: u32 = 8;
/// The phase that drains: the one that ProbeBW does not begin with.
const DRAINING: u32 = 1;
/// Rounds in which the largest burst of acknowledgements counts.
const EXTRA_ACKED_ROUNDS: u64 = 10;

/// What all flows of a fabric share.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    initial_window: u64,
    min_window: u64,
    mss: u64,
    /// Bytes on the wire per byte of payload.
    overhead: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    /// Which phase, and since when.
    ProbeBw {
        phase: u32,
        since: Time,
    },
    /// The end at the earliest, once what is in flight has fallen; and a round has passed since then.
    ProbeRtt {
        done: Option<Time>,
        round_done: bool,
    },
}

/// State of a flow under this law. It lies apart from the flow, as it is larger than that of the other laws.
#[derive(Clone, Debug)]
pub struct Bbr(Box<Flow>);

impl Deref for Bbr {
    type Target = Flow;
    fn deref(&self) -> &Flow {
        &self.0
    }
}

impl DerefMut for Bbr {
    fn deref_mut(&mut self) -> &mut Flow {
        &mut self.0
    }
}

/// State of a flow. Windows are in bytes, bandwidths in bytes of payload per second.
#[derive(Clone, Debug)]
pub struct Flow {
    state: State,
    delivery: DeliveryRate,
    /// BtlBw, over rounds.
    bandwidth: WindowedMax,
    /// RTprop; [`Time::MAX`] before the first sample. When it was last seen.
    rtprop: Time,
    rtprop_stamp: Time,
    /// packet-timed round trips: how many, and what must be delivered for the next to begin.
    round: u64,
    next_round: u64,
    round_start: bool,
    /// The pipe was full once; the bandwidth to compare with, and rounds without growth.
    filled_pipe: bool,
    full_bandwidth: f64,
    full_rounds: u64,
    window: u64,
    /// Window before recovery or ProbeRTT.
    prior_window: u64,
    /// Bytes per second of payload.
    pace: f64,
    /// Recovery lasts until this is acknowledged.
    recovery_end: Option<u64>,
    /// The first round of recovery: a packet is sent for each that is delivered.
    packet_conservation: bool,
    /// Losses since the last acknowledgement.
    losses: bool,
    /// The flow goes on after it was idle.
    idle_restart: bool,
    last_acked: u64,
    aggregation: AckAggregation,
    /// State of the flow's own random numbers.
    random: u32,
    constants: Arc<Constants>,
}

/// `estimated_bdp = BtlBw RTprop` times a gain, in bytes (section 4.2.3.2).
fn bdp(gain: f64, bandwidth: f64, rtprop: Time) -> f64 {
    gain * bandwidth * rtprop.ps() as f64 / 1e12
}

/// BBR.send_quantum of a pace in bytes per second (section 4.2.2), no more than `largest`.
fn send_quantum(pace: f64, mss: u64, largest: u64) -> u64 {
    let quantum = if pace < 1.2e6 / 8.0 {
        mss
    } else if pace < 24e6 / 8.0 {
        2 * mss
    } else {
        (pace * 1e-3) as u64
    };
    quantum.min(largest)
}

/// A draw in [0, below), and the next state of a linear congruential generator (D. Knuth's multiplier, PCG's
/// permutation).
pub(super) fn draw(state: &mut u32, below: u32) -> u32 {
    *state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((*state >> ((*state >> 28) + 4)) ^ *state).wrapping_mul(277_803_737);
    let mixed = (word >> 22) ^ word;
    ((u64::from(mixed) * u64::from(below)) >> 32) as u32
}

impl Flow {
    /// BtlBw.
    fn bandwidth(&self) -> f64 {
        self.bandwidth.max()
    }

    fn pacing_gain(&self) -> f64 {
        let parameters = &self.constants.parameters;
        match self.state {
            State::Startup => parameters.high_gain,
            State::Drain => 1.0 / parameters.high_gain,
            State::ProbeBw { phase: 0, .. } => parameters.probe_gain,
            State::ProbeBw { phase: DRAINING, .. } => parameters.drain_gain,
            State::ProbeBw { .. } | State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.constants.parameters.high_gain,
            State::ProbeBw { .. } => self.constants.parameters.cwnd_gain,
            State::ProbeRtt { .. } => 1.0,
        }
    }

    /// BBRInflight (section 4.2.3.2).
    fn inflight(&self, gain: f64) -> u64 {
        let constants = &*self.constants;
        if self.rtprop == Time::MAX {
            return constants.initial_window;
        }
        let largest = constants.parameters.send_quantum.get();
        let quanta = 3 * send_quantum(self.pace, constants.mss, largest);
        (bdp(gain, self.bandwidth(), self.rtprop) as u64).saturating_add(quanta)
    }

    /// BBRUpdateRound (section 4.1.1.2).
    fn update_round(&mut self, sample: Option<&RateSample>) {
        self.round_start = sample.is_some_and(|sample| sample.packet.delivered >= self.next_round);
        if self.round_start {
            self.next_round = self.delivery.delivered();
            self.round += 1;
            self.packet_conservation = false;
        }
    }

    /// BBRUpdateBtlBw (section 4.1.1.3): what the application limited counts only if it is more.
    fn update_bandwidth(&mut self, sample: Option<&RateSample>) {
        if let Some(RateSample { rate: Some(rate), packet, .. }) = sample
            && (!packet.app_limited || *rate >= self.bandwidth())
        {
            self.bandwidth.update(self.round, *rate, self.constants.parameters.btlbw_window);
        }
    }

    /// BBRCheckCyclePhase (section 4.3.4.3).
    fn check_cycle_phase(&mut self, now: Time, prior_in_flight: u64) {
        let State::ProbeBw { phase, since } = self.state else { return };
        let is_full_length = now.saturating_sub(since) > self.rtprop;
        let gain = self.pacing_gain();
        let is_over = match phase {
            0 => is_full_length && (self.losses || prior_in_flight >= self.inflight(gain)),
            DRAINING => is_full_length || prior_in_flight <= self.inflight(1.0),
            _ => is_full_length,
        };
        if is_over {
            self.state = State::ProbeBw { phase: (phase + 1) % CYCLE_LENGTH, since: now };
        }
    }

    /// BBREnterProbeBW: any phase but the draining one.
    fn enter_probe_bw(&mut self, now: Time) {
        let phase = (DRAINING + 1 + draw(&mut self.random, CYCLE_LENGTH - 1)) % CYCLE_LENGTH;
        self.state = State::ProbeBw { phase, since: now };
    }

    /// BBRCheckFullPipe (section 4.3.2.2).
    fn check_full_pipe(&mut self, sample: Option<&RateSample>) {
        let app_limited = sample.is_none_or(|sample| sample.packet.app_limited);
        if self.filled_pipe || !self.round_start || app_limited {
            return;
        }
        let parameters = &self.constants.parameters;
        if self.bandwidth() >= self.full_bandwidth * parameters.full_pipe_growth {
            (self.full_bandwidth, self.full_rounds) = (self.bandwidth(), 0);
        } else {
            self.full_rounds += 1;
            self.filled_pipe = self.full_rounds >= parameters.full_pipe_rounds;
        }
    }

    /// BBRCheckDrain (section 4.3.3).
    fn check_drain(&mut self, now: Time) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
        }
        if self.state == State::Drain && self.delivery.in_flight() <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// BBRUpdateRTprop (section 4.1.2.3) and BBRCheckProbeRTT (section 4.3.5).
    fn probe_rtt(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        let window = self.constants.parameters.rtprop_window;
        let expired = now > self.rtprop_stamp.saturating_add(window);
        if feedback.rtt <= self.rtprop || expired {
            (self.rtprop, self.rtprop_stamp) = (feedback.rtt, now);
        }
        if expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_window();
            self.state = State::ProbeRtt { done: None, round_done: false };
        }
        if let State::ProbeRtt { done, round_done } = self.state {
            self.handle_probe_rtt(now, done, round_done);
        }
        self.idle_restart = false;
    }

    fn handle_probe_rtt(&mut self, now: Time, done: Option<Time>, round_done: bool) {
        // Rates are low on purpose.
        self.delivery.mark_app_limited();
        match done {
            None if self.delivery.in_flight() <= self.constants.min_window => {
                let done = now.saturating_add(self.constants.parameters.probe_rtt_duration);
                self.state = State::ProbeRtt { done: Some(done), round_done: false };
                self.next_round = self.delivery.delivered();
            }
            None => {}
            Some(end) => {
                let round_done = round_done || self.round_start;
                self.state = State::ProbeRtt { done, round_done };
                if round_done && now > end {
                    self.rtprop_stamp = now;
                    self.restore_window();
                    if self.filled_pipe {
                        self.enter_probe_bw(now);
                    } else {
                        self.state = State::Startup;
                    }
                }
            }
        }
    }

    /// BBRSaveCwnd (section 4.2.3.4).
    fn save_window(&mut self) {
        let is_held = self.recovery_end.is_some() || matches!(self.state, State::ProbeRtt { .. });
        self.prior_window = if is_held { self.prior_window.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// BBRSetPacingRateWithGain (section 4.2.1): Startup's pace does not fall.
    fn set_pace(&mut self, gain: f64) {
        let pace = gain * self.bandwidth() * (1.0 - self.constants.parameters.pacing_margin);
        if pace > 0.0 && (self.filled_pipe || pace > self.pace) {
            self.pace = pace;
        }
    }

    /// BBRSetCwnd (section 4.2.3.6).
    fn set_window(&mut self, acked: u64) {
        if self.packet_conservation {
            self.conserve_packets(acked);
        } else {
            let extra = if self.constants.parameters.ack_aggregation { self.aggregation.extra() as u64 } else { 0 };
            let target = self.inflight(self.cwnd_gain()).saturating_add(extra);
            let grown = self.window.saturating_add(acked);
            if self.filled_pipe {
                self.window = grown.min(target);
            } else if self.window < target || self.delivery.delivered() < self.constants.initial_window {
                self.window = grown;
            }
            self.window = self.window.max(self.constants.min_window);
        }
        self.limit_in_probe_rtt();
    }

    /// As many packets go as arrive (section 4.2.3.4).
    fn conserve_packets(&mut self, acked: u64) {
        self.window = self.window.max(self.delivery.in_flight().saturating_add(acked));
    }

    /// BBRModulateCwndForProbeRTT (section 4.2.3.5).
    fn limit_in_probe_rtt(&mut self) {
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.window = self.window.min(self.constants.min_window);
        }
    }
}

impl SenderLaw for Bbr {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "bbr",
        title: "BBR",
        source: "Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let parameters = Parameters::resolve(path, given)?;
        let mss = u64::from(path.mss.max(1));
        Ok(Arc::new(Constants {
            initial_window: parameters.initial_window.get(),
            min_window: parameters.min_window.get(),
            mss,
            overhead: f64::from(path.wire_mss) / mss as f64,
            parameters,
        }))
    }
    /// `net/ipv4/tcp_bbr.c`.
    fn linux(path: &Path) -> Vec<(&'static str, Raw)> {
        vec![
            ("initial_window", ten_segments(path)),
            ("send_quantum", Raw::Text("64KB".into())),
            ("pacing_margin", Raw::Float(0.01)),
            ("ack_aggregation", Raw::Flag(true)),
        ]
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, random: u32) -> Self {
        let parameters = &constants.parameters;
        let nominal = constants.initial_window as f64 / parameters.initial_rtt.as_secs_f64();
        Self(Box::new(Flow {
            state: State::Startup,
            delivery: DeliveryRate::new(now),
            bandwidth: WindowedMax::default(),
            rtprop: Time::MAX,
            rtprop_stamp: now,
            round: 0,
            next_round: 0,
            round_start: false,
            filled_pipe: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            window: constants.initial_window,
            prior_window: 0,
            pace: parameters.high_gain * nominal,
            recovery_end: None,
            packet_conservation: false,
            losses: false,
            idle_restart: false,
            last_acked: 0,
            aggregation: AckAggregation::new(now),
            random,
            constants: Arc::clone(constants),
        }))
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        let law = &mut *self.0;
        let prior_in_flight = law.delivery.in_flight();
        let least_rtt = law.rtprop.min(feedback.rtt);
        let sample = law.delivery.on_ack(feedback, law.window, least_rtt);
        let sample = sample.as_ref();
        law.last_acked = feedback.acked_bytes;
        law.update_round(sample);
        law.update_bandwidth(sample);
        if law.constants.parameters.ack_aggregation {
            let (bandwidth, window) = (law.bandwidth(), law.window);
            let rounds = EXTRA_ACKED_ROUNDS;
            law.aggregation.update(feedback.now, feedback.acked_bytes, bandwidth, window, law.round, rounds);
        }
        law.check_cycle_phase(feedback.now, prior_in_flight);
        law.check_full_pipe(sample);
        law.check_drain(feedback.now);
        law.probe_rtt(feedback);
        law.losses = false;
        if law.recovery_end.is_some_and(|end| feedback.acked >= end) {
            (law.recovery_end, law.packet_conservation) = (None, false);
            law.restore_window();
        }
        law.set_pace(law.pacing_gain());
        law.set_window(feedback.acked_bytes);
    }

    /// Recovery (section 4.2.3.4): what was lost leaves the window, and in the first round no more is sent than
    /// arrives.
    fn on_loss(&mut self, loss: &Loss) {
        let law = &mut *self.0;
        law.delivery.on_loss(loss);
        law.losses = true;
        if law.recovery_end.is_none() {
            law.save_window();
            law.recovery_end = Some(loss.next);
            law.packet_conservation = true;
            law.next_round = law.delivery.delivered();
            law.window = loss.in_flight.saturating_add(law.last_acked.max(law.constants.mss));
        } else {
            law.window = law.window.saturating_sub(loss.lost_bytes).max(law.constants.mss);
            if law.packet_conservation {
                law.conserve_packets(law.last_acked);
            }
        }
        law.limit_in_probe_rtt();
    }

    /// One packet, until an acknowledgement arrives (section 4.2.3.4).
    fn on_timeout(&mut self, _now: Time, next: u64) {
        let law = &mut *self.0;
        law.delivery.on_timeout();
        law.save_window();
        (law.recovery_end, law.packet_conservation) = (Some(next), false);
        law.window = law.window.min(law.constants.mss);
    }

    /// BBRHandleRestartFromIdle (section 4.3.4.4).
    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u32) {
        let law = &mut *self.0;
        if law.delivery.restarts(now, bytes, law.pace, law.rtprop) {
            law.idle_restart = true;
            law.aggregation.restart(now);
            if matches!(law.state, State::ProbeBw { .. }) {
                law.set_pace(1.0);
            }
        }
        law.delivery.on_sent(now, bytes);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64((self.pace * 8.0 * self.constants.overhead).max(1.0)))
    }
}

#[cfg(test)]
mod tests;
