//! DCQCN: a rate that is cut by congestion notifications and recovers in stages, by a timer and a byte counter.
//!
//! Source: Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015: the reaction point (RP).
//! The notification point is the receiving host's ([`crate::law::Transport::notification_interval`]), the congestion
//! point the switch's RED. Y. Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT
//! 2016, has the fixed point. HPCC's simulator (alibaba-edu, `rdma-hw.cc`) was read for the variant of NICs.
//!
//! ```text
//!             CNP: R_T = R_C, R_C (1 - alpha / 2), alpha up, T = BC = 0
//!         ┌──────────────────────────────────────────────────────────────┐
//!         ▼                                                              │
//!   fast recovery ──────────▶ additive increase ─────────▶ hyper increase│  each timer expiry: T + 1,
//!   R_C = (R_T + R_C) / 2     R_T + R_AI, then the same    R_T + i R_HAI ┘  each B bytes sent: BC + 1
//!   max(T, BC) <= F           one of them > F              both > F
//! ```
//!
//! Readings and deviations (all in `docs/dcqcn.md`):
//! - Fast recovery is five steps to a fixed target, as the paper's text has it; its algorithm, which compares after
//!   counting, has four. [`FastRecovery`] has both.
//! - [`Notification::EcnEcho`] is HPCC's simulator's: no notification packets, marks come back with acknowledgements.
//! - A notification with UE and without CE holds the rate (Y. Zhang et al., "Congestion Detection in Lossless
//!   Networks", SIGCOMM 2021, and its simulator); acknowledgements do not carry UE. See `docs/tcd.md`.
//! - [`Variant::Mellanox`] is the NIC's as HPCC's simulator has it: cuts at the ticks of a timer, alpha updated by a
//!   timer alone, constant steps, and a byte counter only with the profiles of vendors. [`ClampTarget`]: when a cut lowers
//!   the target.
//! - Timers are caught up when something happens to the flow. Only where packets are further apart than the timer is it
//!   fired, so that the rate rises during the gap.
//! - Losses and timeouts do not change the rate: the paper has a lossless fabric.

use super::rate_based::{self, InFlight, Limit, WindowRule};
use crate::{
    Cnp, Feedback, Loss, Path, Periodic,
    feedback::CnpContent,
    parameters::{ParameterError, Period, Raw, Setting, chosen},
};
use crate::{
    granted_window::{self, Grant, GrantUntil},
    law::{Framing, LawCapabilities, LawInfo, Recovery, Requirements, SenderLaw, Transport},
    parameters::Condition,
};
use incast_units::{Bytes, Rate, Time};
use std::sync::Arc;

crate::choice! {
    /// Whose reaction point.
    pub enum Variant {
        /// SIGCOMM 2015: a CNP cuts at once.
        Paper = "paper",
        /// The NIC's, as HPCC's simulator has it: a CNP is remembered until the next tick.
        Mellanox = "mellanox",
    }
}

crate::choice! {
    /// Where the defaults of the constants come from.
    pub enum Profile {
        /// Formulas of rate and base RTT that give the paper's constants on the paper's network.
        Scaled = "scaled",
        /// The paper's constants, on every network.
        Paper = "paper",
        /// What the released simulator of HPCC does, to the letter, with the constants of its scripts.
        HpccLineage = "hpcc-lineage",
        /// What NVIDIA's NICs are shipped with, at every rate; the interval of notifications is that of ConnectX-4 Lx and BlueField-3.
        Nvidia = "nvidia",
        /// What AMD's driver for Linux gives its NICs.
        Amd = "amd-2026",
    }
}

crate::choice! {
    /// How long fast recovery lasts.
    pub enum FastRecovery {
        /// While max(T, BC) is at most F: F steps.
        AtMost = "at-most",
        /// While it is below F: F - 1 steps, the algorithm to the letter.
        Below = "below",
    }
}

crate::choice! {
    /// Which cuts lower the target rate to the rate before the cut.
    pub enum ClampTarget {
        /// All (SIGCOMM 2015).
        Always = "always",
        /// Those after an increase: several cuts in a row keep the target of the first (HPCC's simulator).
        AfterIncrease = "after-increase",
    }
}

crate::choice! {
    /// How marks reach a sender.
    pub enum Notification {
        /// By congestion notification packets of the receiver (SIGCOMM 2015).
        Cnp = "cnp",
        /// Each acknowledgement of a marked packet counts as one (HPCC's simulator).
        EcnEcho = "ecn-echo",
    }
}

rate_parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        allowed: "\"scaled\", \"paper\", \"hpcc-lineage\", \"nvidia\" or \"amd-2026\"",
        source: "ours: one scenario fits every rate"
    },
    variant: Variant {
        doc: "The paper's reaction point or the NIC's.",
        default: "\"paper\"; hpcc-lineage, nvidia, amd-2026: \"mellanox\"",
        value: |_| Variant::Paper,
        source: "SIGCOMM 2015; \"mellanox\" is HPCC's simulator"
    },
    gain: f64 {
        doc: "g: weight of the newest period in the moving average alpha.",
        default: "1/256; nvidia: 5/1024, amd-2026: 1/2",
        value: |_| 1.0 / 256.0,
        allowed: "in (0, 1]",
        check: |g| *g > 0.0 && *g <= 1.0,
        source: "SIGCOMM 2015"
    },
    initial_alpha: f64 {
        doc: "Alpha before the first CNP.",
        default: "1; nvidia: 1023/1024, amd-2026: 1/16",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |alpha| *alpha > 0.0 && *alpha <= 1.0,
        source: "SIGCOMM 2015"
    },
    alpha_timer: Period {
        doc: "K: alpha decays after each such time without a CNP; with the variant mellanox it is updated \
            each such time.",
        default: "5.5 base RTT; paper: 55us; others: docs/dcqcn.md",
        value: |path| Period::of(path.base_rtt.mul_f64(5.5)),
        source: "SIGCOMM 2015 (55us), at a base RTT of 10us (ours); HPCC's simulator (1us), at 13us"
    },
    increase_timer: Period {
        doc: "T: time after which the rate rises by a step.",
        default: "5.5 base RTT; paper: 55us; others: docs/dcqcn.md",
        value: |path| Period::of(path.base_rtt.mul_f64(5.5)),
        source: "SIGCOMM 2015 (55us), at a base RTT of 10us (ours); HPCC's simulator (300us), at 13us"
    },
    decrease_timer: Period {
        doc: "Variant mellanox: cuts happen at the ticks of a timer with this period.",
        default: "4/13 base RTT; paper, nvidia: 4us; amd-2026: 1us",
        value: |path| Period::of(path.base_rtt.mul_f64(4.0 / 13.0)),
        source: "HPCC's simulator (4us), at 13us"
    },
    byte_counter: Bytes {
        doc: "B: payload bytes after which the rate rises by a step; 0 for never.",
        default: "200 rate x base RTT; paper: 10MB; others: docs/dcqcn.md",
        value: |path| Bytes::new(200 * path.rate.bytes_in(path.base_rtt).get()),
        source: "SIGCOMM 2015 (10MB), at 40Gbps and 10us (ours); HPCC's simulator has none"
    },
    cnp_interval: Time {
        doc: "N: the receiver sends at most one CNP for a flow in this time; 0 answers every mark.",
        default: "5 base RTT; paper: 50us; others: docs/dcqcn.md",
        value: |path| path.base_rtt.saturating_mul(5),
        source: "SIGCOMM 2015 (50us), at a base RTT of 10us (ours); mellanox: no more often than cuts"
    },
    fast_recovery: u64 {
        doc: "F: steps of fast recovery.",
        default: "5; mellanox: 1",
        value: |_| 5,
        allowed: "1 to 1000",
        check: |f| (1..=1000).contains(f),
        source: "SIGCOMM 2015; HPCC's simulator"
    },
    fast_recovery_while: FastRecovery {
        doc: "How long fast recovery lasts.",
        default: "\"at-most\"",
        value: |_| FastRecovery::AtMost,
        source: "SIGCOMM 2015: \"at-most\" is its text, \"below\" its algorithm"
    },
    additive_increase: Rate {
        doc: "R_AI: what an additive increase adds to the target rate.",
        default: "rate / 1000; paper: 40Mbps; others: docs/dcqcn.md",
        value: |path| share(path, 1000),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "SIGCOMM 2015: 40Mbps at 40Gbps; HPCC's simulator: 5Mbps at 25Gbps"
    },
    hyper_increase: Rate {
        doc: "R_HAI: what a hyper increase adds to the target rate, times the number of such steps.",
        default: "rate / 200; paper: 200Mbps; others: docs/dcqcn.md",
        value: |path| share(path, 200),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "ns3-rdma: 200Mbps at 40Gbps; HPCC's simulator: 50Mbps at 25Gbps, not multiplied"
    },
    min_rate: Rate {
        doc: "Least rate.",
        default: "rate / 400; paper: 100Mbps; others: docs/dcqcn.md",
        value: |path| share(path, 400),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "HPCC's simulator: 100Mbps, and 1Gbps at 100Gbps"
    },
    clamp_target: ClampTarget {
        doc: "Which cuts lower the target rate.",
        default: "\"always\"; mellanox: \"after-increase\"",
        value: |_| ClampTarget::Always,
        source: "SIGCOMM 2015; HPCC's simulator"
    },
    notification: Notification {
        doc: "Whether receivers send notifications, or acknowledgements that echo a mark are taken for them.",
        default: "\"cnp\"; hpcc-lineage: \"ecn-echo\"",
        value: |_| Notification::Cnp,
        source: "SIGCOMM 2015; \"ecn-echo\" is HPCC's simulator"
    },
    decrease_delay: Time {
        doc: "Variant mellanox: the ticks of cuts come so much after the notification's multiples of \
            `decrease_timer`.",
        default: "0ns; hpcc-lineage: 1ns",
        value: |_| Time::ZERO,
        source: "HPCC's simulator, so that alpha's tick comes first"
    },
    rate_on_first_cnp: f64 {
        doc: "Variant mellanox: share of the rate that the first notification leaves.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |share| *share > 0.0 && *share <= 1.0,
        source: "HPCC's simulator (RateOnFirstCnp)"
    },
    decrease_guard: Guard {
        doc: "A notification that comes less than this after the last cut does not cut again; alpha rises \
            all the same, and a window that it grants counts. \"cnp-interval\" is the time in which a \
            receiver would send one.",
        default: "0ns",
        value: |_| Guard::Time(Time::ZERO),
        allowed: "any time, or \"cnp-interval\"",
        source: "SIGCOMM 2015: receivers keep notifications apart; switches that notify may not"
    },
} limit("\"unlimited\"", InFlight::Unlimited, "SIGCOMM 2015; the others are DCQCN+w of HPCC, SIGCOMM 2019"));

/// A time after a cut during which there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// So long.
    Time(Time),
    /// As long as `cnp_interval`.
    CnpInterval,
}

impl Guard {
    const CNP_INTERVAL: &'static str = "cnp-interval";
}

impl Setting for Guard {
    const KIND: &'static str = "a time such as \"50us\", or \"cnp-interval\"";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) if text == Self::CNP_INTERVAL => Ok(Self::CnpInterval),
            _ => Time::read(raw).map(Self::Time).map_err(|_| format!("found {raw}, expected {}", Self::KIND)),
        }
    }
    fn write(&self) -> Raw {
        match self {
            Self::Time(time) => time.write(),
            Self::CnpInterval => Raw::Text(Self::CNP_INTERVAL.to_owned()),
        }
    }
}

fn share(path: &Path, of: u64) -> Rate {
    Rate::from_bps((path.rate.bps() / of).max(1))
}

/// The defaults of a profile and a variant.
fn defaults(profile: Profile, variant: Variant, path: &Path) -> Parameters {
    let time = |part: f64| path.base_rtt.mul_f64(part).max(Time::from_ps(1));
    let mut defaults = Parameters { variant, ..Parameters::on(path) };
    if profile != Profile::Scaled {
        defaults = Parameters {
            alpha_timer: Period::of(Time::from_us(55)),
            increase_timer: Period::of(Time::from_us(55)),
            decrease_timer: Period::of(Time::from_us(4)),
            byte_counter: Bytes::new(10_000_000),
            cnp_interval: Time::from_us(50),
            additive_increase: Rate::from_bps(40_000_000),
            hyper_increase: Rate::from_bps(200_000_000),
            min_rate: Rate::from_bps(100_000_000),
            ..defaults
        };
    }
    if variant == Variant::Mellanox {
        let (alpha_timer, increase_timer, cnp_interval) = match profile {
            Profile::Amd => (Time::from_us(1), Time::from_us(1), Time::ZERO),
            Profile::Paper | Profile::HpccLineage | Profile::Nvidia => {
                (Time::from_us(1), Time::from_us(300), Time::from_us(4))
            }
            Profile::Scaled => (time(1.0 / 13.0), time(300.0 / 13.0), time(4.0 / 13.0)),
        };
        defaults = Parameters {
            fast_recovery: 1,
            byte_counter: Bytes::ZERO,
            clamp_target: ClampTarget::AfterIncrease,
            // HPCC's simulator scales rates with the link itself.
            additive_increase: share(path, 5000),
            hyper_increase: share(path, 500),
            min_rate: share(path, 100),
            alpha_timer: Period::of(alpha_timer),
            increase_timer: Period::of(increase_timer),
            cnp_interval,
            ..defaults
        };
    }
    let mbps = |mbps: u64| Rate::from_bps(mbps * 1_000_000);
    // Neither scales with the rate of the link.
    if profile == Profile::Nvidia {
        defaults = Parameters {
            gain: 5.0 / 1024.0,
            initial_alpha: 1023.0 / 1024.0,
            // 32,767 units of 64 bytes.
            byte_counter: Bytes::new(32_767 * 64),
            additive_increase: mbps(5),
            hyper_increase: mbps(50),
            min_rate: mbps(1),
            ..defaults
        };
    }
    if profile == Profile::Amd {
        defaults = Parameters {
            gain: 0.5,
            initial_alpha: 64.0 / 1024.0,
            decrease_timer: Period::of(Time::from_us(1)),
            byte_counter: Bytes::new(431_068),
            additive_increase: mbps(160),
            hyper_increase: mbps(300),
            min_rate: mbps(1),
            ..defaults
        };
    }
    if profile == Profile::HpccLineage {
        defaults = Parameters {
            notification: Notification::EcnEcho,
            decrease_delay: Time::from_ns(1),
            update_gap: false,
            window: rate_based::lineage_window(path),
            ..defaults
        };
    }
    defaults
}

/// What all flows of a fabric share. Rates in bit/s.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    line: f64,
    min_rate: f64,
    additive: f64,
    hyper: f64,
    byte_counter: u64,
    /// Stages up to here are fast recovery.
    recovery_stages: u64,
    /// Below this rate packets are further apart than the timer.
    slow: f64,
    limit: Limit,
    decrease_guard: Time,
    grants: granted_window::Rule,
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    /// R_C and R_T in bit/s.
    current: f64,
    target: f64,
    alpha: f64,
    alpha_timer: Periodic,
    increase_timer: Periodic,
    /// Variant mellanox: the ticks at which cuts happen.
    decrease_timer: Periodic,
    /// Payload bytes since the last step of the byte counter.
    counted: u64,
    /// T and BC.
    timer_stage: u32,
    byte_stage: u32,
    /// A CNP has come before.
    was_notified: bool,
    /// Variant mellanox: a CNP has come since the last tick of alpha's timer, and of that of cuts.
    alpha_pending: bool,
    cut_pending: bool,
    /// Before this there is no other cut.
    guarded_until: Time,
    grant: Grant,
    constants: Arc<Constants>,
}

/// `alpha = (1 - g) alpha + g`, for a CNP (SIGCOMM 2015, equation 1).
fn raised(alpha: f64, gain: f64) -> f64 {
    (1.0 - gain) * alpha + gain
}

/// `alpha = (1 - g) alpha`, for each period without one (SIGCOMM 2015, equation 2).
fn decayed(alpha: f64, gain: f64, periods: u64) -> f64 {
    match periods {
        0 => alpha,
        1 => alpha * (1.0 - gain),
        _ => alpha * libm::pow(1.0 - gain, periods as f64),
    }
}

/// `R_C (1 - alpha / 2)` (SIGCOMM 2015, equation 1).
fn cut(rate: f64, alpha: f64) -> f64 {
    rate * (1.0 - alpha / 2.0)
}

/// What an increase adds to the target: nothing in fast recovery, `R_AI` once one of the two stages is past it, `i
/// R_HAI` once both are, i counting from 1 (SIGCOMM 2015, section 3.1).
fn target_step(constants: &Constants, timer: u64, bytes: u64) -> f64 {
    let last = constants.recovery_stages;
    let (least, most) = (timer.min(bytes), timer.max(bytes));
    if most <= last {
        0.0
    } else if least > last {
        constants.hyper * (least - last) as f64
    } else {
        constants.additive
    }
}

/// The same of NICs, whose hyper steps are constant. With one counter: one additive step, then hyper steps (HPCC's simulator).
fn target_step_mellanox(constants: &Constants, timer: u64, bytes: u64) -> f64 {
    let last = constants.recovery_stages;
    let is_hyper = if constants.byte_counter == 0 { timer > last + 1 } else { timer.min(bytes) > last };
    match timer.max(bytes) {
        most if most <= last => 0.0,
        _ if is_hyper => constants.hyper,
        _ => constants.additive,
    }
}

/// A rate this close to the line's, in bit/s, has arrived.
const NEAR: f64 = 1000.0;

impl Dcqcn {
    /// The rate is below that of the line, or a step of recovery is awaited to end a grant: timer and byte counter
    /// matter.
    #[inline]
    fn is_limited(&self) -> bool {
        self.current < self.constants.line || self.grant.awaits_increase(&self.constants.grants)
    }

    /// Brings the state to `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        self.grant.expire(&self.constants.grants, now);
        if self.cut_pending && self.decrease_timer.next() <= now {
            let tick = self.decrease_timer.next();
            self.expire(tick);
            self.cut(tick);
            self.cut_pending = false;
        }
        if self.is_limited() {
            self.expire(now);
        }
    }

    /// Timers up to `now`.
    fn expire(&mut self, now: Time) {
        self.expire_alpha(now);
        if !self.is_limited() {
            return;
        }
        for _ in 0..self.increase_timer.expired(now) {
            self.timer_stage = self.timer_stage.saturating_add(1);
            self.increase();
            if !self.is_limited() {
                break;
            }
        }
    }

    fn expire_alpha(&mut self, now: Time) {
        let mut periods = self.alpha_timer.expired(now);
        if periods > 0 && self.alpha_pending {
            self.alpha = raised(self.alpha, self.constants.parameters.gain);
            self.alpha_pending = false;
            periods -= 1;
        }
        self.alpha = decayed(self.alpha, self.constants.parameters.gain, periods);
    }

    /// One step of recovery: `R_C = (R_T + R_C) / 2`.
    fn increase(&mut self) {
        let constants = &*self.constants;
        let (timer, bytes) = (u64::from(self.timer_stage), u64::from(self.byte_stage));
        let step = match constants.parameters.variant {
            Variant::Paper => target_step(constants, timer, bytes),
            Variant::Mellanox => target_step_mellanox(constants, timer, bytes),
        };
        self.target = (self.target + step).min(constants.line);
        self.current = (self.target + self.current) / 2.0;
        if constants.line - self.current < NEAR {
            self.current = constants.line;
        }
        self.grant.on_increase(&constants.grants);
    }

    /// Starts recovery anew at `now`, towards the rate that there is.
    fn start_over(&mut self, now: Time) {
        let clamps = match self.constants.parameters.clamp_target {
            ClampTarget::Always => true,
            ClampTarget::AfterIncrease => self.timer_stage > 0 || self.byte_stage > 0,
        };
        if clamps {
            self.target = self.current;
        }
        (self.timer_stage, self.byte_stage, self.counted) = (0, 0, 0);
        self.increase_timer.restart(now);
    }

    /// Cuts the rate at `now` and starts recovery anew. Alpha is the caller's.
    fn cut(&mut self, now: Time) {
        self.start_over(now);
        self.current = cut(self.current, self.alpha).max(self.constants.min_rate);
        self.guarded_until = now.saturating_add(self.constants.decrease_guard);
    }

    /// A notification of UE without CE has come (TCD's hold rule): nothing is cut, and recovery starts anew. Alpha
    /// stays, and where its timer starts with each notification it does so with this one.
    fn hold(&mut self, now: Time) {
        self.catch_up(now);
        if self.constants.parameters.variant == Variant::Paper {
            self.expire_alpha(now);
            self.alpha_timer.restart(now);
        }
        self.start_over(now);
    }

    /// A notification has come.
    fn notified(&mut self, now: Time) {
        self.catch_up(now);
        let mellanox = self.constants.parameters.variant == Variant::Mellanox;
        let may_cut = now >= self.guarded_until;
        if !std::mem::replace(&mut self.was_notified, true) {
            // Nothing ran before the first one: alpha is still what it was at first.
            self.alpha_timer.restart(now);
            self.decrease_timer.restart(now.saturating_add(self.constants.parameters.decrease_delay));
            self.cut_pending = mellanox;
            if mellanox {
                self.current *= self.constants.parameters.rate_on_first_cnp;
                self.target = self.current;
            }
        } else if mellanox {
            if !self.cut_pending {
                // Ticks that found nothing to do.
                self.decrease_timer.expired(now);
            }
            self.expire_alpha(now);
            (self.alpha_pending, self.cut_pending) = (true, self.cut_pending || may_cut);
        }
        if !mellanox {
            self.expire_alpha(now);
            if may_cut {
                self.cut(now);
            }
            self.alpha = raised(self.alpha, self.constants.parameters.gain);
            self.alpha_timer.restart(now);
        }
    }
}

impl Dcqcn {
    /// The flow does not send faster than this, in bit/s, whatever it is allowed: the next cut is one of that.
    pub(crate) fn confine(&mut self, now: Time, rate: f64) {
        self.catch_up(now);
        let rate = rate.max(self.constants.min_rate);
        if rate < self.current {
            self.current = rate;
            self.increase_timer.restart(now);
        }
    }

    /// What a notification grants counts whether it cut or not.
    fn granted(&mut self, now: Time, cnp: &Cnp) {
        let was_limited = self.is_limited();
        self.grant.on_cnp(&self.constants.grants, now, cnp);
        if !was_limited {
            // Nothing has run: recovery, which ends the grant, begins now.
            self.increase_timer.restart(now);
        }
    }
}

impl SenderLaw for Dcqcn {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "dcqcn",
        title: "DCQCN",
        source: "Zhu et al., SIGCOMM 2015; values from ns3-rdma and HPCC's simulator where the paper prints none",
        framing: Framing::RoceV2,
        recovery: Recovery::GoBackN,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities { cnp: CnpContent::Congestion, ..LawCapabilities::TIMED };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("decrease_timer", "variant", &["mellanox"]),
        Condition::new("decrease_delay", "variant", &["mellanox"]),
        Condition::new("rate_on_first_cnp", "variant", &["mellanox"]),
        Condition::new("cnp_interval", "notification", &["cnp"]),
        Condition::new("window", "in_flight", &["bdp", "rate-bdp"]),
        Condition::new("window_rule", "in_flight", &["bdp", "rate-bdp"]),
        Condition::new("grant_timeout", "grant_until", &["timeout"]),
    ];

    fn requirements(constants: &Arc<Constants>) -> Requirements {
        let published_with = match constants.parameters.profile {
            Profile::Paper => Some("dcqcn-paper"),
            Profile::HpccLineage => Some("hpcc-dcqcn"),
            Profile::Scaled | Profile::Nvidia | Profile::Amd => None,
        };
        Requirements { published_with, ..Requirements::of(&Self::INFO, &Self::transport(constants)) }
    }
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let profile = chosen("profile", Profile::Scaled, given)?;
        let usual = match profile {
            Profile::Scaled | Profile::Paper => Variant::Paper,
            Profile::HpccLineage | Profile::Nvidia | Profile::Amd => Variant::Mellanox,
        };
        let variant = chosen("variant", usual, given)?;
        let parameters = defaults(profile, variant, path).with(given)?;
        let line = path.rate.as_f64();
        Ok(Arc::new(Constants {
            line,
            min_rate: parameters.min_rate.as_f64().min(line),
            additive: parameters.additive_increase.as_f64(),
            hyper: parameters.hyper_increase.as_f64(),
            byte_counter: parameters.byte_counter.get(),
            recovery_stages: match parameters.fast_recovery_while {
                FastRecovery::AtMost => parameters.fast_recovery,
                FastRecovery::Below => parameters.fast_recovery - 1,
            },
            slow: f64::from(path.wire_mss) * 8e12 / parameters.increase_timer.time().ps() as f64,
            limit: Limit::new(parameters.in_flight, parameters.window, parameters.window_rule, path),
            decrease_guard: match parameters.decrease_guard {
                Guard::Time(time) => time,
                Guard::CnpInterval => parameters.cnp_interval,
            },
            grants: granted_window::Rule::new(parameters.grant_until, parameters.grant_timeout.time(), path),
            parameters,
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        let parameters = &constants.parameters;
        let notifies = parameters.notification == Notification::Cnp;
        Transport {
            notification_interval: notifies.then_some(parameters.cnp_interval),
            updates_gap: parameters.update_gap,
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, _random: u32) -> Self {
        let Parameters { alpha_timer, increase_timer, decrease_timer, .. } = constants.parameters;
        Self {
            current: constants.line,
            target: constants.line,
            alpha: constants.parameters.initial_alpha,
            alpha_timer: Periodic::start(now, alpha_timer.time()),
            increase_timer: Periodic::start(now, increase_timer.time()),
            decrease_timer: Periodic::start(now, decrease_timer.time()),
            counted: 0,
            timer_stage: 0,
            byte_stage: 0,
            was_notified: false,
            alpha_pending: false,
            cut_pending: false,
            guarded_until: now,
            grant: Grant::NONE,
            constants: Arc::clone(constants),
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        self.grant.on_ack(&self.constants.grants, feedback.now, feedback.rtt);
        if feedback.marked > 0 && self.constants.parameters.notification == Notification::EcnEcho {
            self.notified(feedback.now);
        } else {
            self.catch_up(feedback.now);
        }
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, now: Time, _next: u64) {
        self.catch_up(now);
    }

    fn on_cnp(&mut self, now: Time, cnp: &Cnp) {
        if cnp.congested {
            self.notified(now);
        } else if cnp.undetermined {
            self.hold(now);
        }
        self.granted(now, cnp);
    }

    fn on_timer(&mut self, now: Time) {
        self.catch_up(now);
    }

    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u32) {
        if !self.is_limited() && !self.cut_pending {
            return;
        }
        self.catch_up(now);
        if self.constants.byte_counter == 0 {
            return;
        }
        self.counted += u64::from(bytes);
        while self.counted >= self.constants.byte_counter && self.is_limited() {
            self.counted -= self.constants.byte_counter;
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.increase();
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.grant.limit(self.constants.limit.at(self.current))
    }
    fn assigned_window(&self) -> u64 {
        self.grant.limit(self.constants.limit.window(self.current))
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps((self.current as u64).max(1)))
    }
    #[inline]
    fn next_timer(&self) -> Time {
        let own = if self.cut_pending {
            self.decrease_timer.next()
        } else if self.current < self.constants.slow && self.is_limited()
            || self.grant.awaits_increase(&self.constants.grants)
        {
            self.increase_timer.next()
        } else {
            Time::MAX
        };
        own.min(self.grant.ends(&self.constants.grants))
    }
}

#[cfg(test)]
mod tests;
