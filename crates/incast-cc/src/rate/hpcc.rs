//! HPCC: a window that follows the INT records of every link of the path.
//!
//! Source: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1. The simulator that its
//! authors released (alibaba-edu, `rdma-hw.cc`, `int-header.h`) was read for the form in rates and for values.
//!
//! ```text
//!   acknowledgement ─▶ per hop:  u_j = txRate_j / B_j + min(q_j, q_j') / (B_j T)      txRate_j = bytes sent / tau_j
//!                      U = (1 - tau / T) U + tau / T max u_j                          tau = min(that hop's, T)
//!            U >= eta or stage >= maxStage:  W = Wc eta / U + W_AI,  stage = 0        multiplicative, both ways
//!            else:                           W = Wc + W_AI,          stage + 1        additive
//!            once per round trip:            Wc = W                                   the others only react
//!   R = W / T
//! ```
//!
//! Readings and deviations (all in `docs/hpcc.md`):
//! - [`Form::Rate`] is the released simulator's: the same law with a rate as its state, clamped between a least rate
//!   and the NIC's, and a window in proportion to it. [`Form::Window`] is the paper's.
//! - [`Telemetry::Hpcc`] reads telemetry as the 64-bit records of the paper have it: times of 24 bits, bytes and queues
//!   in units of 128 B and 80 B.
//! - A path with another number of hops, or with other rates, starts telemetry anew, in place of the paper's path ID.
//! - Losses and timeouts change nothing: the paper has a lossless fabric.

use super::rate_based::{self, Profile, WindowRule};
use crate::{
    Cnp, Feedback, HopTelemetry, Loss, Path,
    feedback::CnpContent,
    parameters::{ParameterError, Period, Raw, chosen},
};
use crate::{
    granted_window::{self, Grant, GrantUntil},
    law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw},
    parameters::Condition,
};
use incast_units::{Bytes, Rate, Time};
use std::sync::Arc;

crate::choice! {
    /// What the law computes.
    pub enum Form {
        /// A window W, from which the rate W / T follows (SIGCOMM 2019).
        Window = "window",
        /// A rate R, from which the window W_init R / C follows (the released simulator).
        Rate = "rate",
    }
}

crate::choice! {
    /// How exact telemetry is.
    pub enum Telemetry {
        /// As the switches measure it.
        Exact = "exact",
        /// As the paper's records of 64 bits per hop hold it.
        Hpcc = "hpcc",
    }
}

rate_parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        allowed: "\"scaled\", \"paper\" or \"hpcc-lineage\"",
        source: "ours: one scenario fits every rate"
    },
    form: Form {
        doc: "Whether the law computes a window or a rate.",
        default: "\"window\"; hpcc-lineage: \"rate\"",
        value: |_| Form::Window,
        source: "SIGCOMM 2019; \"rate\" is its released simulator"
    },
    target: f64 {
        doc: "eta: utilisation that is aimed at.",
        default: "0.95",
        value: |_| 0.95,
        allowed: "in (0, 1]",
        check: |eta| *eta > 0.0 && *eta <= 1.0,
        source: "SIGCOMM 2019"
    },
    max_stage: u64 {
        doc: "maxStage: additive increases in a row; 0 for multiplicative ones only.",
        default: "5; hpcc-lineage: 0",
        value: |_| 5,
        allowed: "0 to 1000",
        check: |stage| *stage <= 1000,
        source: "SIGCOMM 2019; the released scripts (MI_THRESH)"
    },
    base_rtt: Time {
        doc: "T: base round-trip time, the same for all flows.",
        default: "base RTT",
        value: |path| path.base_rtt,
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "SIGCOMM 2019: a little more than the largest of the fabric"
    },
    window: Bytes {
        doc: "W_init: window of a new flow, and the largest one.",
        default: "rate x base_rtt in payload bytes; hpcc-lineage: headers counted",
        value: |path| path.bdp(),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "SIGCOMM 2019: NIC rate x T"
    },
    additive_increase: Rate {
        doc: "W_AI / T: what is added to the rate each time, for fairness.",
        default: "rate / 2000; paper: 80B per base_rtt; hpcc-lineage: 50Mbps",
        value: |path| Rate::from_bps((path.rate.bps() / 2000).max(1)),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "SIGCOMM 2019: (1 - eta) / N of W_init, N = 100; 80B at 100Gbps and 13us; README of the \
            released simulator"
    },
    min_rate: Rate {
        doc: "Least rate.",
        default: "additive_increase; hpcc-lineage: 1Gbps",
        value: |path| Rate::from_bps((path.rate.bps() / 2000).max(1)),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "SIGCOMM 2019: no window is smaller than W_AI; the released scripts"
    },
    fast_react: bool {
        doc: "Acknowledgements between the updates of the reference window change the window, too.",
        default: "true",
        value: |_| true,
        source: "SIGCOMM 2019"
    },
    int: Telemetry {
        doc: "How exact telemetry is.",
        default: "\"exact\"; hpcc-lineage: \"hpcc\"",
        value: |_| Telemetry::Exact,
        source: "ours; \"hpcc\" is the header of SIGCOMM 2019"
    },
    int_multiplier: u64 {
        doc: "Multiple of 128 B and of 80 B that bytes and queues are counted in, with int = \"hpcc\".",
        default: "rate / 25Gbps, at least 1",
        value: |path| (path.rate.bps() / 25_000_000_000).max(1),
        allowed: "1 to 1000",
        check: |m| (1..=1000).contains(m),
        source: "the released scripts (INT_MULTI)"
    },
});

/// Hops that are kept of a path: as many as packets of the simulator record.
const HOPS: usize = 8;

/// What all flows of a fabric share. The unit of the form is bytes of the window, or bit/s of the rate.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    /// Bounds and step, in the unit of the form.
    most: f64,
    least: f64,
    step: f64,
    /// A window is `value x window.0 / window.1`, a rate `value x rate`, at most `line`.
    window: (f64, f64),
    rate: f64,
    line: f64,
    /// A queue of q bytes at B bit/s counts `q x queue / B`.
    queue: f64,
    /// T in picoseconds.
    base_rtt: f64,
    slack: u64,
    grants: granted_window::Rule,
}

/// The telemetry of the last acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Hops {
    hops: [HopTelemetry; HOPS],
    count: usize,
}

/// State of a flow. Windows are in the unit of the form.
#[derive(Clone, Debug)]
pub struct Hpcc {
    /// W, or R.
    current: f64,
    /// Wc: what the reactions of a round trip start from.
    reference: f64,
    /// U: the path's utilisation, queues counted.
    utilisation: f64,
    /// Additive increases since the last multiplicative change.
    stage: u64,
    /// The reference is updated when this position is passed.
    update_after: u64,
    grant: Grant,
    /// Apart, so that flows of other laws do not pay for it.
    last: Box<Hops>,
    constants: Arc<Constants>,
}

/// `u = txRate / B + min(q, q') / (B T)` of one hop, and `tau` in picoseconds (SIGCOMM 2019, algorithm 1). `None` if
/// both records are of one time.
fn utilisation(constants: &Constants, now: &HopTelemetry, before: &HopTelemetry) -> Option<(f64, f64)> {
    let (tau, bytes, queue) = match constants.parameters.int {
        Telemetry::Exact => (
            now.time.saturating_sub(before.time).ps(),
            now.sent_bytes.saturating_sub(before.sent_bytes),
            now.queue_bytes.min(before.queue_bytes).into(),
        ),
        Telemetry::Hpcc => {
            let multiple = constants.parameters.int_multiplier;
            let (now, before) = (Record::of(now, multiple), Record::of(before, multiple));
            (
                now.nanoseconds.wrapping_sub(before.nanoseconds) % Record::TIMES * 1000,
                now.bytes.wrapping_sub(before.bytes) % Record::BYTES * Record::BYTE_UNIT * multiple,
                now.queue.min(before.queue) * Record::QUEUE_UNIT * multiple,
            )
        }
    };
    if tau == 0 {
        return None;
    }
    let rate = f64::from(now.rate_mbps.max(1)) * 1e6;
    let tau = tau as f64;
    Some((bytes as f64 * 8e12 / tau / rate + queue as f64 * constants.queue / rate, tau))
}

/// What of a hop's telemetry fits into 64 bits (SIGCOMM 2019, figure 7, with the units of the released simulator).
struct Record {
    nanoseconds: u64,
    bytes: u64,
    queue: u64,
}

impl Record {
    /// 24, 20 and 17 bits.
    const TIMES: u64 = 1 << 24;
    const BYTES: u64 = 1 << 20;
    const QUEUES: u64 = 1 << 17;
    const BYTE_UNIT: u64 = 128;
    const QUEUE_UNIT: u64 = 80;

    fn of(hop: &HopTelemetry, multiple: u64) -> Self {
        Self {
            nanoseconds: hop.time.ps() / 1000 % Self::TIMES,
            bytes: hop.sent_bytes / (Self::BYTE_UNIT * multiple) % Self::BYTES,
            queue: u64::from(hop.queue_bytes) / (Self::QUEUE_UNIT * multiple) % Self::QUEUES,
        }
    }
}

/// `U = (1 - tau / T) U + tau / T u` with tau at most T (SIGCOMM 2019, algorithm 1).
fn average(average: f64, newest: f64, tau: f64, base_rtt: f64) -> f64 {
    let tau = tau.min(base_rtt);
    (average * (base_rtt - tau) + newest * tau) / base_rtt
}

impl Hpcc {
    /// W in bytes, one at the least: the window that equation 4 of the paper sets, before hosts let a packet exceed it.
    #[inline]
    fn own_window(&self) -> u64 {
        let (numerator, denominator) = self.constants.window;
        ((self.current * numerator / denominator) as u64).max(1)
    }

    /// What was kept is of the same path.
    fn is_on(&self, hops: &[HopTelemetry]) -> bool {
        let last = &*self.last;
        last.count == hops.len() && last.hops.iter().zip(hops).all(|(before, now)| before.rate_mbps == now.rate_mbps)
    }

    /// Keeps telemetry for the next acknowledgement.
    fn keep(&mut self, hops: &[HopTelemetry]) {
        self.last.hops[..hops.len()].copy_from_slice(hops);
        self.last.count = hops.len();
    }

    /// Takes the busiest hop into account. False if no hop has new data.
    fn measure(&mut self, hops: &[HopTelemetry]) -> bool {
        let constants = &*self.constants;
        let mut busiest: Option<(f64, f64)> = None;
        for (now, before) in hops.iter().zip(&self.last.hops) {
            if let Some(hop) = utilisation(constants, now, before)
                && busiest.is_none_or(|(most, _)| hop.0 > most)
            {
                busiest = Some(hop);
            }
        }
        let Some((newest, tau)) = busiest else { return false };
        self.utilisation = average(self.utilisation, newest, tau, constants.base_rtt);
        true
    }

    /// The window, or rate, that utilisation and reference make, and the stage after it.
    fn decide(&self) -> (f64, u64) {
        let constants = &*self.constants;
        let excess = self.utilisation / constants.parameters.target;
        let (base, stage) = if excess >= 1.0 || self.stage >= constants.parameters.max_stage {
            (self.reference / excess, 0)
        } else {
            (self.reference, self.stage + 1)
        };
        ((base + constants.step).clamp(constants.least, constants.most), stage)
    }
}

impl SenderLaw for Hpcc {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "hpcc",
        title: "HPCC",
        source: "Li et al., SIGCOMM 2019; its released simulator",
        framing: Framing::RoceV2Int,
        recovery: Recovery::GoBackN,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    /// Five hops of 8 bytes and their number.
    const HPCC_IN_BAND: u32 = 42;
    const CAPABILITIES: LawCapabilities = LawCapabilities { cnp: CnpContent::Windows, ..LawCapabilities::TIMED };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("int_multiplier", "int", &["hpcc"]),
        Condition::new("grant_timeout", "grant_until", &["timeout"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let profile = chosen("profile", Profile::Scaled, given)?;
        // Other defaults follow from T, which may not be the path's.
        let base_rtt = chosen("base_rtt", path.base_rtt, given)?.max(Time::from_ps(1));
        let network = Path { base_rtt, ..*path };
        let mut defaults = Parameters::on(&network);
        match profile {
            Profile::Scaled => {}
            Profile::Paper => {
                defaults.additive_increase = Rate::from_bps((80 * 8 * 1_000_000_000_000 / base_rtt.ps()).max(1));
            }
            Profile::HpccLineage => {
                defaults = Parameters {
                    window: rate_based::lineage_window(&network),
                    form: Form::Rate,
                    max_stage: 0,
                    additive_increase: Rate::from_bps(50_000_000),
                    int: Telemetry::Hpcc,
                    ..defaults
                }
            }
        }
        defaults.min_rate = match profile {
            Profile::HpccLineage => Rate::from_gbps(1),
            _ => chosen("additive_increase", defaults.additive_increase, given)?,
        };
        let parameters = defaults.with(given)?;

        let grants = granted_window::Rule::new(parameters.grant_until, parameters.grant_timeout.time(), path);
        let line = path.rate.as_f64();
        let (step, least) = (parameters.additive_increase.as_f64(), parameters.min_rate.as_f64().min(line));
        let initial = parameters.window.get() as f64;
        let base_rtt = base_rtt.ps() as f64;
        // Bit/s on the wire of a window of one payload byte per T.
        let per_byte = 8e12 / base_rtt * f64::from(path.wire_mss) / f64::from(path.mss.max(1));
        Ok(Arc::new(match parameters.form {
            Form::Window => Constants {
                most: initial,
                least: (least / per_byte).min(initial),
                step: step / per_byte,
                window: (1.0, 1.0),
                rate: per_byte,
                line,
                queue: 8e12 / base_rtt,
                base_rtt,
                slack: rate_based::slack(parameters.window_rule, path),
                grants,
                parameters,
            },
            Form::Rate => Constants {
                most: line,
                least,
                step,
                window: (initial, line),
                rate: 1.0,
                line,
                queue: line / initial,
                base_rtt,
                slack: rate_based::slack(parameters.window_rule, path),
                grants,
                parameters,
            },
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn start(constants: &Arc<Constants>, _path: &Path, _now: Time, _random: u32) -> Self {
        Self {
            current: constants.most,
            reference: constants.most,
            utilisation: 1.0,
            stage: 0,
            update_after: 0,
            grant: Grant::NONE,
            last: Box::default(),
            constants: Arc::clone(constants),
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        self.grant.on_ack(&self.constants.grants, feedback.now, feedback.rtt);
        let hops = &feedback.telemetry[..feedback.telemetry.len().min(HOPS)];
        if hops.is_empty() {
            return;
        }
        if !self.is_on(hops) {
            // The first acknowledgement, or the first of another path: nothing to be compared with.
            self.keep(hops);
            self.utilisation = 1.0;
            self.update_after = feedback.next;
            return;
        }
        // What was sent after the last update of the reference is acknowledged.
        let commits = feedback.acked > self.update_after;
        if !commits && !self.constants.parameters.fast_react {
            return;
        }
        if self.measure(hops) {
            let (value, stage) = self.decide();
            self.current = value;
            if commits {
                if value >= self.reference {
                    self.grant.on_increase(&self.constants.grants);
                }
                (self.reference, self.stage) = (value, stage);
            }
        }
        self.keep(hops);
        if commits {
            self.update_after = self.update_after.max(feedback.next);
        }
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, _now: Time, _next: u64) {}
    fn on_cnp(&mut self, now: Time, cnp: &Cnp) {
        self.grant.on_cnp(&self.constants.grants, now, cnp);
    }
    fn on_timer(&mut self, now: Time) {
        self.grant.expire(&self.constants.grants, now);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.grant.limit(self.own_window().saturating_add(self.constants.slack))
    }
    fn assigned_window(&self) -> u64 {
        self.grant.limit(self.own_window())
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = (self.current * self.constants.rate).min(self.constants.line);
        Some(Rate::from_bps((rate as u64).max(1)))
    }
    #[inline]
    fn next_timer(&self) -> Time {
        self.grant.ends(&self.constants.grants)
    }
    fn estimate(&self) -> Option<f32> {
        Some(self.utilisation as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: f64 = 1e9;

    /// The paper's network: 100 Gbit/s and T = 13 us, which is 162,500 B.
    fn path() -> Path {
        Path::new(Rate::from_gbps(100), Time::from_us(13), 1000, 1000)
    }

    fn given(given: &[(&str, &str)]) -> Vec<(String, Raw)> {
        let raw = |value: &str| match value {
            "true" | "false" => Raw::Flag(value == "true"),
            _ => value.parse().map_or_else(|_| Raw::Text(value.to_owned()), Raw::Integer),
        };
        given.iter().map(|(key, value)| ((*key).to_owned(), raw(value))).collect()
    }

    fn flow(values: &[(&str, &str)]) -> Hpcc {
        // Without the slack of a packet.
        let values = [&[("window_rule", "fits")], values].concat();
        let constants = Hpcc::resolve(&path(), &given(&values)).expect("allowed");
        Hpcc::start(&constants, &path(), Time::ZERO, 0)
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
    }

    /// One switch port that sends at a share of its rate and holds a queue, as INT records show it.
    struct Port {
        hop: HopTelemetry,
        acked: u64,
    }

    impl Port {
        fn new() -> Self {
            let hop = HopTelemetry { rate_mbps: 100_000, ..HopTelemetry::default() };
            Self { hop, acked: 0 }
        }

        /// An acknowledgement of 1,000 B, `span` after the last one, while the port is used to `share` and holds
        /// `queue` bytes; `next` is what has been sent.
        fn ack(&mut self, law: &mut Hpcc, span: Time, share: f64, queue: u32, next: u64) {
            self.hop.time += span;
            self.hop.sent_bytes += (span.as_secs_f64() * 100.0 * GBPS * share / 8.0).round() as u64;
            self.hop.queue_bytes = queue;
            self.acked += 1000;
            law.on_ack(&Feedback {
                now: self.hop.time,
                acked: self.acked,
                next,
                telemetry: &[self.hop],
                ..Feedback::default()
            });
        }
    }

    #[test]
    fn profiles_have_the_values_of_their_sources() {
        let scaled = Hpcc::resolve(&path(), &[]).expect("defaults").parameters.clone();
        let paper = Hpcc::resolve(&path(), &given(&[("profile", "paper")])).expect("allowed");
        let values = paper.parameters.clone();
        assert_eq!((values.target, values.max_stage, values.window), (0.95, 5, Bytes::new(162_500)));
        assert!((paper.step - 80.0).abs() < 1e-6, "{}", paper.step);
        assert!((scaled.additive_increase.as_f64() / values.additive_increase.as_f64() - 1.0).abs() < 0.02);
        assert_eq!(values.min_rate, values.additive_increase);
        let lineage = given(&[("profile", "hpcc-lineage"), ("base_rtt", "12240ns")]);
        let lineage = Hpcc::resolve(&path(), &lineage).expect("allowed").parameters.clone();
        assert_eq!((lineage.form, lineage.max_stage, lineage.int_multiplier), (Form::Rate, 0, 4));
        assert_eq!((lineage.window, lineage.min_rate), (Bytes::new(153_000), Rate::from_gbps(1)));
        assert_eq!(lineage.additive_increase, Rate::from_bps(50_000_000));
        // Keys win over profiles, and what follows from them follows.
        let own = given(&[("additive_increase", "1Gbps"), ("profile", "paper")]);
        assert_eq!(Hpcc::resolve(&path(), &own).expect("allowed").parameters.min_rate, Rate::from_gbps(1));
    }

    #[test]
    fn the_first_acknowledgement_only_stores() {
        let mut law = flow(&[]);
        Port::new().ack(&mut law, Time::from_us(1), 1.0, 1_000_000, 100_000);
        assert_eq!((law.window(), law.update_after), (162_500, 100_000));
        assert_eq!(law.pacing_rate(), Some(Rate::from_gbps(100)));
    }

    /// SIGCOMM 2019, section 3.2: with U = k eta over a round trip, W is Wc / k one round trip later.
    #[test]
    fn a_step_of_overload_is_answered_in_one_round_trip() {
        // u = 1 + q / (B T): k = 2 needs a queue of 0.9 BDP.
        let mut law = flow(&[]);
        let mut port = Port::new();
        port.ack(&mut law, Time::ZERO, 1.0, 0, 1000);
        port.ack(&mut law, Time::from_us(13), 1.0, 146_250, 2000);
        // min(q, q') of the two records is still 0: the queue was not there for the whole time.
        close(law.utilisation, 1.0);
        port.ack(&mut law, Time::from_us(13), 1.0, 146_250, 3000);
        close(law.utilisation, 1.9);
        close(law.current, law.constants.step + (162_500.0 * 0.95 + law.constants.step) / 2.0);
    }

    #[test]
    fn reactions_within_a_round_trip_do_not_compound() {
        let mut law = flow(&[]);
        let mut port = Port::new();
        port.ack(&mut law, Time::ZERO, 1.0, 146_250, 100_000);
        // Everything up to 100,000 B was sent before: all of this is one round trip.
        for _ in 0..99 {
            port.ack(&mut law, Time::from_us(13), 1.0, 146_250, 200_000);
        }
        assert_eq!(law.reference, 162_500.0);
        close(law.current, 162_500.0 / 2.0 + law.constants.step);
        port.ack(&mut law, Time::from_us(13), 1.0, 146_250, 200_000);
        close(law.reference, 162_500.0 / 2.0 + law.constants.step);
        assert_eq!(law.update_after, 200_000);
        // Without the fast reaction only the last one counts, with the difference to the first.
        let mut law = flow(&[("fast_react", "false")]);
        let mut port = Port::new();
        port.ack(&mut law, Time::ZERO, 1.0, 146_250, 100_000);
        for _ in 0..99 {
            port.ack(&mut law, Time::from_us(13), 1.0, 146_250, 200_000);
            assert_eq!(law.window(), 162_500);
        }
        port.ack(&mut law, Time::from_us(13), 1.0, 146_250, 200_000);
        close(law.current, 162_500.0 / 2.0 + law.constants.step);
    }

    #[test]
    fn additive_stages_come_before_a_multiplicative_increase() {
        // Each acknowledgement is a round trip of a link used to about one half.
        let run = |law: &mut Hpcc, rounds: u64| {
            let mut port = Port::new();
            law.reference = 40_000.0;
            for round in 0..=rounds {
                port.ack(law, Time::from_us(13), 0.48, 0, 1000 * (round + 1));
            }
        };
        let mut law = flow(&[]);
        run(&mut law, 5);
        close(law.reference, 40_000.0 + 5.0 * law.constants.step);
        assert_eq!(law.stage, 5);
        let mut law = flow(&[]);
        run(&mut law, 6);
        close(law.reference, (40_000.0 + 5.0 * law.constants.step) * 0.95 / 0.48 + law.constants.step);
        assert_eq!(law.stage, 0);
        let mut law = flow(&[("max_stage", "0")]);
        run(&mut law, 1);
        close(law.reference, 40_000.0 * 0.95 / 0.48 + law.constants.step);
    }

    #[test]
    fn the_busiest_hop_rules_and_short_spans_weigh_less() {
        let mut law = flow(&[]);
        let hop = |us: u64, sent_bytes: u64, queue_bytes: u32, rate_mbps: u32| HopTelemetry {
            time: Time::from_us(us),
            sent_bytes,
            queue_bytes,
            rate_mbps,
        };
        let ack = |law: &mut Hpcc, acked, telemetry: &[HopTelemetry]| {
            law.on_ack(&Feedback { acked, next: 1_000_000, telemetry, ..Feedback::default() });
        };
        ack(&mut law, 1000, &[hop(0, 0, 0, 400_000), hop(0, 0, 20_000, 100_000)]);
        // 2.6 us are a fifth of T. 400 Gbit/s: 26,000 B are 0.2. 100 Gbit/s: 16,250 B are 0.5, and 13,000 B in the
        // queue 0.08.
        let second = [hop(5, 26_000, 0, 400_000), hop(3, 18_750, 13_000, 100_000)];
        ack(&mut law, 2000, &second);
        let newest = 18_750.0 * 8.0 / 3e-6 / 100e9 + 13_000.0 / 162_500.0;
        close(law.utilisation, 1.0 - 3.0 / 13.0 + newest * 3.0 / 13.0);
        // The same records again have no information; one more hop, or another rate, is another path.
        let before = law.clone();
        ack(&mut law, 3000, &second);
        assert_eq!((law.utilisation, law.current), (before.utilisation, before.current));
        ack(&mut law, 4000, &second[..1]);
        assert_eq!((law.utilisation, law.last.count, law.current), (1.0, 1, before.current));
        ack(&mut law, 5000, &[hop(6, 30_000, 0, 200_000)]);
        assert_eq!((law.utilisation, law.last.hops[0].sent_bytes), (1.0, 30_000));
        ack(&mut law, 6000, &[]);
        assert_eq!(law.current, before.current);
    }

    #[test]
    fn records_of_64_bits_wrap_around_and_round_down() {
        let exact = flow(&[]).constants;
        let hpcc = flow(&[("int", "hpcc")]).constants;
        assert_eq!(hpcc.parameters.int_multiplier, 4);
        let hop = |ns: u64, sent_bytes: u64, queue_bytes: u32| HopTelemetry {
            time: Time::from_ns(ns),
            sent_bytes,
            queue_bytes,
            rate_mbps: 100_000,
        };
        // Whole units, over the end of the times (2^24 ns) and of the bytes (2^20 x 512 B).
        let (times, bytes) = (1 << 24, 512 << 20);
        let before = hop(times - 5_000, bytes - 5_120, 3_200);
        let now = hop(times + 8_000, bytes + 102_400, 6_400);
        let expected = (107_520.0 * 8.0 / 13e-6 / 100e9 + 3_200.0 / 162_500.0, 13e6);
        for constants in [&exact, &hpcc] {
            let (u, tau) = utilisation(constants, &now, &before).expect("a difference");
            close(u, expected.0);
            close(tau, expected.1);
        }
        // Parts of units are cut off: 1,090 B are two units of 512, and 319 B in a queue are none of 320.
        let (now, before) = (hop(100, 1_090, 319), hop(13, 0, 319));
        let (u, tau) = utilisation(&hpcc, &now, &before).expect("a difference");
        close(u, 1_024.0 * 8.0 / 87e-9 / 100e9);
        close(tau, 87e3);
        assert_eq!(utilisation(&hpcc, &now, &now), None);
        assert_eq!(utilisation(&exact, &before, &now), None, "an older record says nothing");
    }

    /// Window and rate are one law where nothing is clamped; the released simulator's form has its bounds in rates.
    #[test]
    fn both_forms_agree() {
        let (mut window, mut rate) = (flow(&[]), flow(&[("form", "rate")]));
        for law in [&mut window, &mut rate] {
            let mut port = Port::new();
            for round in 0..40 {
                let queue = 2_000 * (round % 7) as u32;
                port.ack(law, Time::from_us(3), 1.0, queue, 4_000 * (round / 4) + 5_000);
            }
        }
        assert_eq!(window.window(), rate.window());
        let bps = |law: &Hpcc| law.pacing_rate().expect("paced").as_f64();
        close(bps(&window), bps(&rate));
        assert!(bps(&rate) < 99.0 * GBPS);
        // 20 times the BDP in the queue: less than 1 Gbit/s would be right.
        let mut lineage = flow(&[("profile", "hpcc-lineage"), ("window_rule", "below")]);
        let mut port = Port::new();
        for round in 0..200 {
            port.ack(&mut lineage, Time::from_us(13), 1.0, 3_250_000, 1000 * round + 1000);
        }
        assert_eq!(lineage.pacing_rate(), Some(Rate::from_gbps(1)));
        // 1% of 162,500 B: a second packet may start while one of 1,000 B is in flight.
        assert_eq!((lineage.window(), lineage.assigned_window()), (1_625 + 999, 1_625));
    }

    /// Many windows of W_AI fill the link above eta, and the queue then holds what is too much: SIGCOMM 2019, section
    /// 3.3.
    #[test]
    fn the_fixed_point_is_above_the_target_by_the_additive_increase() {
        // In a steady state W = W eta / U + W_AI, so U = eta W / (W - W_AI).
        let mut law = flow(&[("max_stage", "0"), ("additive_increase", "1Gbps")]);
        let mut port = Port::new();
        for round in 0..500 {
            // One flow alone: the link carries what the window is.
            let share = (law.current / 162_500.0).min(1.0);
            port.ack(&mut law, Time::from_us(13), share, 0, 1000 * round + 1000);
        }
        let step = law.constants.step;
        assert!((law.utilisation / (0.95 * law.current / (law.current - step)) - 1.0).abs() < 1e-3);
        assert!((law.current - (0.95 * 162_500.0 + step)).abs() < 0.01 * law.current);
    }

    #[test]
    fn losses_change_nothing_and_mistakes_are_refused() {
        let mut law = flow(&[]);
        law.on_timeout(Time::ZERO, 0);
        law.on_loss(&Loss { lost_bytes: 1, next: 1, ..Loss::default() });
        assert_eq!(law.window(), 162_500);
        let refused =
            |values: &[(&str, &str)]| Hpcc::resolve(&path(), &given(values)).expect_err("refused").to_string();
        assert!(refused(&[("target", "2")]).contains("in (0, 1]"));
        assert!(refused(&[("base_rtt", "0ns")]).contains("above 0"));
        assert!(refused(&[("form", "rates")]).contains("\"window\" \"rate\""));
        assert!(refused(&[("eta", "1")]).contains("unknown parameter"));
    }

    #[test]
    fn a_granted_window_lasts_until_an_update_does_not_lower_the_reference() {
        let mut law = flow(&[]);
        let mut port = Port::new();
        let us = Time::from_us(1);
        port.ack(&mut law, us, 1.0, 0, 1_000);
        law.on_cnp(us, &Cnp::granting(3_000));
        assert_eq!(law.window(), 3_000);
        // A long queue lowers the reference; acknowledgements in between may raise the window and end nothing.
        port.ack(&mut law, Time::from_us(13), 1.0, 200_000, 10_000);
        port.ack(&mut law, Time::from_us(13), 1.0, 200_000, 10_000);
        assert!(law.reference < 162_500.0);
        port.ack(&mut law, Time::from_us(13), 0.1, 0, 10_000);
        assert!(law.current > law.reference, "{} {}", law.current, law.reference);
        assert_eq!(law.window(), 3_000);
        (0..8).for_each(|_| port.ack(&mut law, us, 0.1, 0, 10_000));
        assert!(law.window() > 3_000, "{law:?}");
        let mut law = flow(&[("grant_until", "timeout"), ("grant_timeout", "20us")]);
        law.on_cnp(us, &Cnp::granting(3_000));
        assert_eq!((law.window(), law.next_timer()), (3_000, Time::from_us(21)));
        law.on_timer(Time::from_us(21));
        assert_eq!((law.window(), law.next_timer()), (162_500, Time::MAX));
    }

    #[test]
    fn state_is_small() {
        assert!(size_of::<Hpcc>() <= 72, "{}", size_of::<Hpcc>());
    }
}
