//! BBR, version 3: the model of version 1, bounded by what losses (and, on request, marks) indicate of how much may be
//! in flight.
//!
//! Sources: N. Cardwell, I. Swett, J. Beshay, "BBR Congestion Control", draft-ietf-ccwg-bbr-05, whose names are kept:
//! earlier drafts say `inflight_hi` for the long-term and `inflight_lo`, `bw_lo` for the short-term bounds. The answer
//! to ECN is that of Google's Linux branch `v3` (`tcp_bbr.c`), read for its behaviour; the draft has none. The delivery
//! rate is that of `delivery_rate.rs`.
//!
//! ```text
//!   Startup ── no growth for 3 rounds, or 6 losses and 2% in a round ──▶ Drain ── in flight <= BDP ──▶ ProbeBW ◀─┐
//!                                                                                                          │     │
//!   ProbeBW:  Down .9 ── headroom ──▶ Cruise 1 ── 2 to 3 s, or 63 rounds ──▶ Refill 1 ── a round ──▶ Up 1.25     │
//!               ▲                                                     no growth for 3 rounds, or 2% lost │       │
//!               └────────────────────────────────────────────────────────────────────────────────────────┘       │
//!   each 5 s: ProbeRTT, half a BDP for 200 ms and a round ────────────────────────────────────────────────────────┘
//!
//!   pace = 0.99 pacing_gain min(max_bw, bw_shortterm)
//!   window = min(cwnd_gain BDP + extra_acked, inflight_longterm (less 15% in Cruise), inflight_shortterm)
//! ```
//!
//! Readings and deviations (all in `docs/bbr.md`):
//! - Losses that an acknowledgement shows are reported after it, without saying which packets they are: they are
//!   judged by what was in flight when the packet was sent that showed them. The model takes them in with the next
//!   acknowledgement.
//! - `inflight_longterm` grows by real numbers of bytes, not by whole packets.
//! - `packet_conservation` is on: the first round of recovery sends as much as arrives, as in the draft's predecessor,
//!   draft-cardwell-iccrg-bbr-congestion-control-02. Draft-05 has `false`.
//! - Initial window, initial pace and quanta are those of [`super::bbr`].

mod probing;

use super::{
    bbr::draw,
    delivery_rate::{AckAggregation, DeliveryRate, RateSample, Sent},
    slow_start::ten_segments,
    windowed::WindowedMax,
};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw},
};
use crate::{
    law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw, Transport},
    parameters::Condition,
};
use incast_units::{Bytes, Rate, Time};
use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

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
        source: "ours: the path is known; the draft has 1ms"
    },
    startup_gain: f64 {
        doc: "BBR.StartupPacingGain.",
        default: "4 ln 2",
        value: |_| 4.0 * std::f64::consts::LN_2,
        allowed: "in (1, 100]",
        check: |g| *g > 1.0 && *g <= 100.0,
        source: "draft-05, section 2.4: 2.77"
    },
    drain_gain: f64 {
        doc: "BBR.DrainPacingGain.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in (0, 1)",
        check: |g| *g > 0.0 && *g < 1.0,
        source: "draft-05, section 2.4"
    },
    cwnd_gain: f64 {
        doc: "BBR.DefaultCwndGain: of the window in all states but Up and ProbeRTT.",
        default: "2",
        value: |_| 2.0,
        allowed: "in [1, 100]",
        check: |g| *g >= 1.0 && *g <= 100.0,
        source: "draft-05, section 2.4"
    },
    up_gain: f64 {
        doc: "Gain of the pace in Up.",
        default: "1.25",
        value: |_| 1.25,
        allowed: "in (1, 100]",
        check: |g| *g > 1.0 && *g <= 100.0,
        source: "draft-05, section 5.6.1"
    },
    up_cwnd_gain: f64 {
        doc: "Gain of the window in Up.",
        default: "2.25",
        value: |_| 2.25,
        allowed: "in [1, 100]",
        check: |g| *g >= 1.0 && *g <= 100.0,
        source: "draft-05, section 5.6.1"
    },
    down_gain: f64 {
        doc: "Gain of the pace in Down.",
        default: "0.9",
        value: |_| 0.9,
        allowed: "in (0, 1)",
        check: |g| *g > 0.0 && *g < 1.0,
        source: "draft-05, section 5.6.1"
    },
    full_pipe_growth: f64 {
        doc: "The pipe is full when the delivery rate has not grown by this factor in `full_pipe_rounds` \
            rounds.",
        default: "1.25",
        value: |_| 1.25,
        allowed: "in (1, 100]",
        check: |g| *g > 1.0 && *g <= 100.0,
        source: "draft-05, section 5.3.1.2"
    },
    full_pipe_rounds: u64 {
        doc: "Rounds without that growth after which the pipe is full.",
        default: "3",
        value: |_| 3,
        allowed: "in [1, 1000]",
        check: |n| (1..=1000).contains(n),
        source: "draft-05, section 5.3.1.2"
    },
    startup_losses: u64 {
        doc: "BBR.StartupFullLossCnt: losses in a round of Startup that end it, if they are more than \
            `loss_threshold`.",
        default: "6",
        value: |_| 6,
        allowed: "in [1, 1000]",
        check: |n| (1..=1000).contains(n),
        source: "draft-05, section 5.3.1.3"
    },
    loss_threshold: f64 {
        doc: "BBR.LossThresh: part of what is in flight that may be lost.",
        default: "0.02",
        value: |_| 0.02,
        allowed: "in (0, 1)",
        check: |t| *t > 0.0 && *t < 1.0,
        source: "draft-05, section 2.6"
    },
    beta: f64 {
        doc: "BBR.Beta: what a round with losses leaves of the short-term bounds, and the least that too \
            many leave of the target.",
        default: "0.7",
        value: |_| 0.7,
        allowed: "in (0, 1)",
        check: |b| *b > 0.0 && *b < 1.0,
        source: "draft-05, section 2.6"
    },
    headroom: f64 {
        doc: "BBR.Headroom: part of `inflight_longterm` that is left to others.",
        default: "0.15",
        value: |_| 0.15,
        allowed: "in [0, 1)",
        check: |h| *h >= 0.0 && *h < 1.0,
        source: "draft-05, section 2.6"
    },
    min_rtt_window: Time {
        doc: "BBR.MinRTTFilterLen: time for which the least RTT counts.",
        default: "10s",
        value: |_| Time::from_ms(10_000),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "draft-05, section 2.8"
    },
    probe_rtt_interval: Time {
        doc: "BBR.ProbeRTTInterval: longest time without a new least RTT before ProbeRTT.",
        default: "5s",
        value: |_| Time::from_ms(5_000),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "draft-05, section 2.8"
    },
    probe_rtt_duration: Time {
        doc: "BBR.ProbeRTTDuration: least time for which ProbeRTT holds the window down, at least a round in \
            any case.",
        default: "200ms",
        value: |_| Time::from_ms(200),
        source: "draft-05, section 2.8"
    },
    probe_rtt_gain: f64 {
        doc: "BBR.ProbeRTTCwndGain: window of ProbeRTT in BDPs.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in (0, 1]",
        check: |g| *g > 0.0 && *g <= 1.0,
        source: "draft-05, section 2.8"
    },
    probe_wait: Time {
        doc: "Least time between probes for bandwidth.",
        default: "2s",
        value: |_| Time::from_ms(2_000),
        source: "draft-05, section 5.3.3.5.3"
    },
    probe_wait_random: Time {
        doc: "Range of the random time that is added to it.",
        default: "1s",
        value: |_| Time::from_ms(1_000),
        source: "draft-05, section 5.3.3.5.3"
    },
    probe_rounds: u64 {
        doc: "Most rounds between probes; fewer if the window has fewer packets, as Reno would have.",
        default: "63",
        value: |_| 63,
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "draft-05, section 5.3.3.5.2"
    },
    min_window: Bytes {
        doc: "BBR.MinPipeCwnd: least window in bytes.",
        default: "4 MSS",
        value: |path| Bytes::new(4 * u64::from(path.mss)),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "draft-05, section 2.5"
    },
    send_quantum: Bytes {
        doc: "Largest quantum of sending, of which the window has three at least: 1 ms of pace, two packets \
            at least.",
        default: "MSS",
        value: |path| Bytes::new(path.mss.into()),
        allowed: "at least 1B",
        check: |q| q.get() > 0,
        source: "ours: hosts send single packets; draft-05, section 5.6.3: 64KB"
    },
    pacing_margin: f64 {
        doc: "BBR.PacingMarginPercent: part by which the pace stays below gain times bandwidth.",
        default: "0.01",
        value: |_| 0.01,
        allowed: "in [0, 1)",
        check: |m| *m >= 0.0 && *m < 1.0,
        source: "draft-05, section 2.4"
    },
    ack_aggregation: bool {
        doc: "Add to the window what is acknowledged in bursts beyond the bandwidth (extra_acked).",
        default: "true",
        value: |_| true,
        source: "draft-05, section 5.5.9"
    },
    packet_conservation: bool {
        doc: "In the first round of recovery, send as much as arrives.",
        default: "true",
        value: |_| true,
        source: "draft-cardwell-iccrg-bbr-congestion-control-02, section 4.6.4.4; draft-05 has false"
    },
    ecn: bool {
        doc: "Data is ECN-capable, and marks count. For marks at a low threshold (DCTCP's, L4S), not for \
            those of RFC 3168.",
        default: "false",
        value: |_| false,
        source: "ours: the draft has no ECN"
    },
    ecn_gain: f64 {
        doc: "Weight of a round in the part of marked packets, alpha.",
        default: "1/16",
        value: |_| 1.0 / 16.0,
        allowed: "in (0, 1]",
        check: |g| *g > 0.0 && *g <= 1.0,
        source: "Linux v3 (bbr_ecn_alpha_gain)"
    },
    ecn_factor: f64 {
        doc: "A round with marks takes this times alpha off `inflight_shortterm`.",
        default: "1/3",
        value: |_| 1.0 / 3.0,
        allowed: "in [0, 1]",
        check: |f| *f >= 0.0 && *f <= 1.0,
        source: "Linux v3 (bbr_ecn_factor)"
    },
    ecn_threshold: f64 {
        doc: "Part of marked packets above which too much is in flight.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in (0, 1]",
        check: |t| *t > 0.0 && *t <= 1.0,
        source: "Linux v3 (bbr_ecn_thresh)"
    },
    startup_ecn_rounds: u64 {
        doc: "Rounds in a row with more marks than that which end Startup.",
        default: "2",
        value: |_| 2,
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "Linux v3 (bbr_full_ecn_cnt)"
    },
});

/// Rounds in which the largest burst of acknowledgements counts (BBR.ExtraAckedFilterLen).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Probing cycles in which the largest delivery rate counts (BBR.MaxBwFilterLen).
const MAX_BANDWIDTH_CYCLES: u64 = 2;
/// Drain ends after so many rounds at the latest (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;

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
    /// In which round it began.
    Drain(u64),
    Down,
    Cruise,
    Refill,
    Up,
    /// The end at the earliest, once what is in flight has fallen; and a round has passed since then.
    ProbeRtt {
        done: Option<Time>,
        round_done: bool,
    },
}

impl State {
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Which phase of a probe the present acknowledgements belong to (BBR.ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    None,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Detection of a full pipe, in Startup and in Up.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    /// It was full once (BBR.full_bw_reached), and it is full in this probe (BBR.full_bw_now).
    reached: bool,
    now: bool,
    /// The bandwidth to compare with, and rounds without growth.
    bandwidth: f64,
    rounds: u64,
}

/// What losses and marks do to the bounds.
#[derive(Clone, Copy, Debug)]
struct Signals {
    /// Most of this loss round.
    bandwidth_latest: f64,
    inflight_latest: u64,
    /// A loss round ends when this is delivered.
    round_delivered: u64,
    round_start: bool,
    /// Losses in this round: whether, how many apart from each other, and where the last one ended.
    losses: bool,
    loss_ranges: u64,
    loss_end: u64,
    /// Marks in this round.
    marks: bool,
    /// Part of marked packets, averaged over rounds; bytes delivered and marked before this round.
    alpha: f64,
    round_before: (u64, u64),
    /// Rounds of Startup in a row with too many marks.
    marked_rounds: u64,
}

/// The probe for bandwidth.
#[derive(Clone, Copy, Debug)]
struct Probe {
    ack_phase: AckPhase,
    /// Acknowledgements are those of packets sent in a probe (BBR.bw_probe_samples).
    samples: bool,
    /// When Down began, how long to wait since then, and in rounds.
    since: Time,
    wait: Time,
    rounds: u64,
    /// Rounds of Up, and bytes acknowledged for each byte that `inflight_longterm` grows by.
    up_rounds: u32,
    up_count: f64,
    /// Probing cycles so far.
    cycle: u64,
}

/// State of a flow under this law. It lies apart from the flow, as it is larger than that of the other laws.
#[derive(Clone, Debug)]
pub struct Bbr3(Box<Flow>);

impl Deref for Bbr3 {
    type Target = Flow;
    fn deref(&self) -> &Flow {
        &self.0
    }
}

impl DerefMut for Bbr3 {
    fn deref_mut(&mut self) -> &mut Flow {
        &mut self.0
    }
}

/// State of a flow. Windows are in bytes, bandwidths in bytes of payload per second.
#[derive(Clone, Debug)]
pub struct Flow {
    state: State,
    delivery: DeliveryRate,
    /// max_bw, over probing cycles.
    max_bandwidth: WindowedMax,
    /// bw_shortterm, and the lesser of the two (bw).
    bandwidth_shortterm: f64,
    bandwidth: f64,
    /// Bounds in bytes, as real numbers; infinite where unknown.
    inflight_longterm: f64,
    inflight_shortterm: f64,
    /// min_rtt and when it was seen; [`Time::MAX`] before the first sample.
    min_rtt: Time,
    min_rtt_stamp: Time,
    /// The same since the last ProbeRTT.
    probe_rtt_min_delay: Time,
    probe_rtt_min_stamp: Time,
    round: u64,
    next_round: u64,
    round_start: bool,
    full_pipe: FullPipe,
    signals: Signals,
    probe: Probe,
    window: u64,
    prior_window: u64,
    pace: f64,
    recovery_end: Option<u64>,
    /// The first round of recovery: a packet is sent for each that is delivered.
    packet_conservation: bool,
    last_acked: u64,
    /// The window was what limited the flow until so much was delivered.
    limited_until: u64,
    idle_restart: bool,
    /// The packet acknowledged last.
    last_packet: Option<Sent>,
    aggregation: AckAggregation,
    random: u32,
    constants: Arc<Constants>,
}

impl Flow {
    /// max_bw.
    fn max_bandwidth(&self) -> f64 {
        self.max_bandwidth.max()
    }

    fn pacing_gain(&self) -> f64 {
        let parameters = &self.constants.parameters;
        match self.state {
            State::Startup => parameters.startup_gain,
            State::Drain(_) => parameters.drain_gain,
            State::Down => parameters.down_gain,
            State::Up => parameters.up_gain,
            State::Cruise | State::Refill | State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        let parameters = &self.constants.parameters;
        match self.state {
            State::Up => parameters.up_cwnd_gain,
            State::ProbeRtt { .. } => parameters.probe_rtt_gain,
            _ => parameters.cwnd_gain,
        }
    }

    /// BBRBDPMultiple (section 5.6.4.2).
    fn bdp(&self, bandwidth: f64, gain: f64) -> u64 {
        if self.min_rtt == Time::MAX {
            return self.constants.initial_window;
        }
        (gain * bandwidth * self.min_rtt.ps() as f64 / 1e12) as u64
    }

    /// BBRQuantizationBudget (section 5.6.4.2).
    fn quantize(&self, inflight: u64) -> u64 {
        let Constants { parameters, min_window, mss, .. } = &*self.constants;
        let quantum = ((self.pace * 1e-3) as u64).max(2 * mss).min(parameters.send_quantum.get());
        let inflight = inflight.max(3 * quantum).max(*min_window);
        if self.state == State::Up { inflight.saturating_add(2 * mss) } else { inflight }
    }

    /// BBRInflight (section 5.6.4.2), of max_bw.
    fn inflight(&self, gain: f64) -> u64 {
        self.quantize(self.bdp(self.max_bandwidth(), gain))
    }

    fn start_round(&mut self) {
        self.next_round = self.delivery.delivered();
    }

    /// BBRUpdateRound (section 5.5.1).
    fn update_round(&mut self, sample: Option<&RateSample>) {
        self.round_start = sample.is_some_and(|sample| sample.packet.delivered >= self.next_round);
        if self.round_start {
            self.start_round();
            self.round += 1;
            self.probe.rounds += 1;
            self.packet_conservation = false;
        }
    }

    /// BBRUpdateMaxBw (section 5.5.5): what the application limited counts only if it is more.
    fn update_max_bandwidth(&mut self, sample: Option<&RateSample>) {
        if let Some(RateSample { rate: Some(rate), packet, .. }) = sample
            && (!packet.app_limited || *rate >= self.max_bandwidth())
        {
            self.max_bandwidth.update(self.probe.cycle, *rate, MAX_BANDWIDTH_CYCLES);
        }
    }

    /// BBRResetFullBW, with a new bandwidth to compare with (section 5.3.1.2).
    fn reset_full_pipe(&mut self, rate: f64) {
        self.full_pipe = FullPipe { reached: self.full_pipe.reached, now: false, bandwidth: rate, rounds: 0 };
    }

    /// BBRCheckFullBWReached (section 5.3.1.2).
    fn check_full_pipe(&mut self, sample: Option<&RateSample>) {
        let Some(sample) = sample else { return };
        if self.full_pipe.now || !self.round_start || sample.packet.app_limited {
            return;
        }
        let parameters = &self.constants.parameters;
        let rate = sample.rate.unwrap_or(0.0);
        if rate >= self.full_pipe.bandwidth * parameters.full_pipe_growth {
            self.reset_full_pipe(rate);
            return;
        }
        self.full_pipe.rounds += 1;
        self.full_pipe.now = self.full_pipe.rounds >= parameters.full_pipe_rounds;
        self.full_pipe.reached |= self.full_pipe.now;
    }

    /// Startup has filled the pipe beyond what it holds.
    fn end_startup(&mut self) {
        (self.full_pipe.reached, self.full_pipe.now) = (true, true);
        let bdp = self.bdp(self.max_bandwidth(), 1.0);
        self.inflight_longterm = bdp.max(self.signals.inflight_latest) as f64;
    }

    /// BBRCheckStartupDone with BBRCheckStartupHighLoss (section 5.3.1.3), and the same for marks.
    fn check_startup(&mut self, sample: Option<&RateSample>) {
        let parameters = &self.constants.parameters;
        if self.signals.round_start {
            let ranges = std::mem::take(&mut self.signals.loss_ranges);
            let is_lossy = sample.is_some_and(|sample| self.loses_too_much(&sample.packet));
            if !self.full_pipe.reached && ranges >= parameters.startup_losses && is_lossy {
                self.end_startup();
            }
        }
        if !self.full_pipe.reached
            && self.constants.parameters.ecn
            && self.signals.marked_rounds >= self.constants.parameters.startup_ecn_rounds
        {
            self.end_startup();
        }
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain(self.round);
        }
    }

    /// BBRCheckDrainDone (section 5.3.2).
    fn check_drain(&mut self, now: Time) {
        if let State::Drain(round) = self.state
            && (self.delivery.in_flight() <= self.inflight(1.0) || self.round > round + DRAIN_ROUNDS)
        {
            self.start_down(now);
        }
    }

    /// BBRUpdateMinRTT and BBRCheckProbeRTT (section 5.3.4.3).
    fn probe_rtt(&mut self, feedback: &Feedback<'_>, delivers: bool) {
        let (now, parameters) = (feedback.now, &self.constants.parameters);
        let expired = now > self.probe_rtt_min_stamp.saturating_add(parameters.probe_rtt_interval);
        if feedback.rtt < self.probe_rtt_min_delay || expired {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (feedback.rtt, now);
        }
        let is_old = now > self.min_rtt_stamp.saturating_add(parameters.min_rtt_window);
        if self.probe_rtt_min_delay < self.min_rtt || is_old {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
        if expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_window();
            self.state = State::ProbeRtt { done: None, round_done: false };
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if let State::ProbeRtt { done, round_done } = self.state {
            self.handle_probe_rtt(now, done, round_done);
        }
        self.idle_restart &= !delivers;
    }

    fn handle_probe_rtt(&mut self, now: Time, done: Option<Time>, round_done: bool) {
        // Rates are low on purpose.
        self.delivery.mark_app_limited();
        match done {
            None if self.delivery.in_flight() <= self.probe_rtt_window() => {
                let done = now.saturating_add(self.constants.parameters.probe_rtt_duration);
                self.state = State::ProbeRtt { done: Some(done), round_done: false };
                self.start_round();
            }
            None => {}
            Some(_) => {
                let round_done = round_done || self.round_start;
                self.state = State::ProbeRtt { done, round_done };
                if round_done {
                    self.check_probe_rtt_done(now);
                }
            }
        }
    }

    /// BBRCheckProbeRTTDone and BBRExitProbeRTT (section 5.3.4.4).
    fn check_probe_rtt_done(&mut self, now: Time) {
        if let State::ProbeRtt { done: Some(done), .. } = self.state
            && now > done
        {
            self.probe_rtt_min_stamp = now;
            self.window = self.window.max(self.prior_window);
            self.reset_shortterm();
            if self.full_pipe.reached {
                self.start_down(now);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
    }

    /// BBRProbeRTTCwnd (section 5.6.4.5).
    fn probe_rtt_window(&self) -> u64 {
        let bdp = self.bdp(self.bandwidth, self.constants.parameters.probe_rtt_gain);
        bdp.max(self.constants.min_window)
    }

    /// BBRSaveCwnd (section 5.6.4.4).
    fn save_window(&mut self) {
        let is_held = self.recovery_end.is_some() || matches!(self.state, State::ProbeRtt { .. });
        self.prior_window = if is_held { self.prior_window.max(self.window) } else { self.window };
    }

    /// BBRSetPacingRateWithGain (section 5.6.2): Startup's pace does not fall.
    fn set_pace(&mut self, gain: f64) {
        let pace = gain * self.bandwidth * (1.0 - self.constants.parameters.pacing_margin);
        if pace > 0.0 && (self.full_pipe.reached || pace > self.pace) {
            self.pace = pace;
        }
    }

    /// BBRSetCwnd (section 5.6.4.6).
    fn set_window(&mut self, acked: u64) {
        if self.packet_conservation {
            self.conserve_packets(acked);
            self.bound_window();
            return;
        }
        let mut target = self.bdp(self.bandwidth, self.cwnd_gain());
        if self.constants.parameters.ack_aggregation {
            target = target.saturating_add(self.aggregation.extra() as u64);
        }
        let target = self.quantize(target);
        let grown = self.window.saturating_add(acked);
        if self.full_pipe.reached {
            self.window = grown.min(target);
        } else if self.window < target || self.delivery.delivered() < self.constants.initial_window {
            self.window = grown;
        }
        self.window = self.window.max(self.constants.min_window);
        self.bound_window();
    }

    /// BBRModulateCwndForRecovery: as many packets go as arrive.
    fn conserve_packets(&mut self, acked: u64) {
        self.window = self.window.max(self.delivery.in_flight().saturating_add(acked));
    }

    /// BBRBoundCwndForProbeRTT and BBRBoundCwndForModel (sections 5.6.4.5 and 5.6.4.7).
    fn bound_window(&mut self) {
        let longterm = match self.state {
            State::ProbeRtt { .. } | State::Cruise => self.inflight_with_headroom(),
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Startup | State::Drain(_) => f64::INFINITY,
        };
        // Infinity becomes the largest number.
        let bound = longterm.min(self.inflight_shortterm) as u64;
        self.window = self.window.min(bound.max(self.constants.min_window));
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.window = self.window.min(self.probe_rtt_window());
        }
    }
}

impl SenderLaw for Bbr3 {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "bbr3",
        title: "BBRv3",
        source: "Cardwell et al., draft-ietf-ccwg-bbr-05",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    const CONDITIONS: &'static [Condition] = &[
        Condition::new("ecn_gain", "ecn", &["true"]),
        Condition::new("ecn_factor", "ecn", &["true"]),
        Condition::new("ecn_threshold", "ecn", &["true"]),
        Condition::new("startup_ecn_rounds", "ecn", &["true"]),
    ];

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
    /// Google's `tcp_bbr.c`, version 3, which Linux itself does not have.
    fn linux(path: &Path) -> Vec<(&'static str, Raw)> {
        vec![
            ("initial_window", ten_segments(path)),
            ("drain_gain", Raw::Float(1000.0 / 2885.0)),
            ("down_gain", Raw::Float(0.91)),
        ]
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        Transport { ecn_capable: constants.parameters.ecn, ..Transport::of(&Self::INFO) }
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, random: u32) -> Self {
        let parameters = &constants.parameters;
        let nominal = constants.initial_window as f64 / parameters.initial_rtt.as_secs_f64();
        Self(Box::new(Flow {
            state: State::Startup,
            delivery: DeliveryRate::new(now),
            max_bandwidth: WindowedMax::default(),
            bandwidth_shortterm: f64::INFINITY,
            bandwidth: 0.0,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            min_rtt: Time::MAX,
            min_rtt_stamp: now,
            probe_rtt_min_delay: Time::MAX,
            probe_rtt_min_stamp: now,
            round: 0,
            next_round: 0,
            round_start: false,
            full_pipe: FullPipe::default(),
            signals: Signals {
                bandwidth_latest: 0.0,
                inflight_latest: 0,
                round_delivered: 0,
                round_start: false,
                losses: false,
                loss_ranges: 0,
                loss_end: 0,
                marks: false,
                alpha: 1.0,
                round_before: (0, 0),
                marked_rounds: 0,
            },
            probe: Probe {
                ack_phase: AckPhase::None,
                samples: false,
                since: now,
                wait: Time::ZERO,
                rounds: 0,
                up_rounds: 0,
                up_count: f64::INFINITY,
                cycle: 0,
            },
            window: constants.initial_window,
            prior_window: 0,
            pace: parameters.startup_gain * nominal,
            recovery_end: None,
            packet_conservation: false,
            last_acked: 0,
            limited_until: 0,
            idle_restart: false,
            last_packet: None,
            aggregation: AckAggregation::new(now),
            random,
            constants: Arc::clone(constants),
        }))
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        let law = &mut *self.0;
        let least_rtt = law.min_rtt.min(feedback.rtt);
        let sample = law.delivery.on_ack(feedback, law.window, least_rtt);
        let sample = sample.as_ref();
        law.last_acked = feedback.acked_bytes;
        law.last_packet = sample.map_or(law.last_packet, |sample| Some(sample.packet));
        law.update_latest_signals(sample);
        law.update_round(sample);
        law.update_max_bandwidth(sample);
        law.update_marks(feedback.marked > 0);
        law.adapt_shortterm();
        if law.constants.parameters.ack_aggregation {
            let rounds = if law.full_pipe.reached { EXTRA_ACKED_ROUNDS } else { 1 };
            let (bandwidth, window) = (law.bandwidth, law.window);
            law.aggregation.update(feedback.now, feedback.acked_bytes, bandwidth, window, law.round, rounds);
        }
        law.check_full_pipe(sample);
        law.check_startup(sample);
        law.check_drain(feedback.now);
        law.update_probe(feedback.now, feedback.acked_bytes, sample);
        law.probe_rtt(feedback, sample.is_some());
        law.advance_latest_signals(sample);
        law.bandwidth = law.max_bandwidth().min(law.bandwidth_shortterm);
        if law.recovery_end.is_some_and(|end| feedback.acked >= end) {
            (law.recovery_end, law.packet_conservation) = (None, false);
            law.window = law.window.max(law.prior_window);
        }
        law.set_pace(law.pacing_gain());
        law.set_window(feedback.acked_bytes);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let law = &mut *self.0;
        let lost_before = law.delivery.lost();
        law.delivery.on_loss(loss);
        if law.recovery_end.is_none() {
            law.save_window();
            law.recovery_end = Some(loss.next);
            if law.constants.parameters.packet_conservation {
                law.packet_conservation = true;
                law.start_round();
                law.window = loss.in_flight.saturating_add(law.last_acked.max(law.constants.mss));
            }
        } else if law.constants.parameters.packet_conservation {
            law.window = law.window.saturating_sub(loss.lost_bytes).max(law.constants.mss);
            if law.packet_conservation {
                law.conserve_packets(law.last_acked);
            }
        }
        law.note_loss(loss);
        law.judge_loss(loss, lost_before);
        law.bound_window();
    }

    /// One packet, until an acknowledgement arrives (section 5.6.4.4).
    fn on_timeout(&mut self, _now: Time, next: u64) {
        let law = &mut *self.0;
        law.delivery.on_timeout();
        law.save_window();
        (law.recovery_end, law.packet_conservation) = (Some(next), false);
        law.window = law.window.min(law.constants.mss);
    }

    /// BBRHandleRestartFromIdle (section 5.4.1).
    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u32) {
        let law = &mut *self.0;
        if law.delivery.restarts(now, bytes, law.pace, law.min_rtt) {
            law.idle_restart = true;
            law.aggregation.restart(now);
            match law.state {
                State::ProbeRtt { .. } => law.check_probe_rtt_done(now),
                state if state.is_probe_bw() => law.set_pace(1.0),
                _ => {}
            }
        }
        law.delivery.on_sent(now, bytes);
        if law.delivery.in_flight().saturating_add(law.constants.mss) > law.window {
            law.limited_until = law.delivery.delivered().saturating_add(law.delivery.in_flight());
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64((self.pace * 8.0 * self.constants.overhead).max(1.0)))
    }

    fn estimate(&self) -> Option<f32> {
        self.constants.parameters.ecn.then_some(self.signals.alpha as f32)
    }
}

#[cfg(test)]
mod tests;
