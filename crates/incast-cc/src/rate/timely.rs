//! TIMELY: a rate that follows the gradient of the RTT; its patched form, which has one fixed point; and the update
//! routine that its authors published after the paper.
//!
//! Sources: R. Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1;
//! Y. Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, algorithm 2 (patched).
//! The authors' routine: R. Mittal, `timely-code-snippet.cc` on her page at Berkeley (later Illinois); eRPC
//! (`src/cc/timely.h`) keeps it. HPCC's simulator (alibaba-edu, `rdma-hw.cc`) was read for values.
//!
//! ```text
//!   rtt:   ──────────── T_low ─────────────────────────────── T_high ────────────▶
//!            R + delta          gradient <= 0: R + N delta            R (1 - beta (1 - T_high / rtt))
//!                               gradient >  0: R (1 - beta gradient)
//!                     patched:  delta (1 - w) + R (1 - beta w (rtt - T_ref) / T_ref)
//! ```
//!
//! The routine ([`Variant::Routine`]) has the same regions. It updates at each acknowledgement, and its steps are shares of
//! those above, by the time since the last update.
//!
//! Readings and deviations (all in `docs/timely.md`):
//! - The paper's algorithm updates once per segment (CoNEXT 2016: and at most once per `min_rtt`), which at low rates means
//!   rarely: a rate grows by a factor of e in segment / delta, whatever it is. [`Update`] has that, for the profile `paper`,
//!   and once per RTT, by time or, as HPCC's simulator, by positions. The patched form, whose decreases are small,
//!   always has segments. Packets are paced one by one, not in bursts of a segment.
//! - The RTT is that of the packet which causes the update; there is no segment's serialisation to be subtracted.
//! - Which increases count towards hyperactive increase is [`Streak`].
//! - Losses and timeouts do not change the rate: the papers have a lossless fabric.

use super::rate_based::{self, InFlight, Limit, Profile, WindowRule};
use crate::{
    Cnp, Feedback, Loss, Path,
    feedback::CnpContent,
    parameters::{ParameterError, Period, Raw, chosen},
};
use crate::{
    granted_window::{self, Grant, GrantUntil},
    law::{Framing, LawCapabilities, LawInfo, Recovery, Requirements, SenderLaw, Transport},
    parameters::Condition,
};
use incast_units::{Bytes, Rate, Time};
use std::sync::Arc;

crate::choice! {
    /// What happens between the two thresholds.
    pub enum Variant {
        /// SIGCOMM 2015: by the sign of the gradient.
        Original = "original",
        /// CoNEXT 2016: the distance from a reference RTT, weighted by the gradient.
        Patched = "patched",
        /// The authors' published routine: by the sign of the gradient, at each acknowledgement, in steps that are shares
        /// of a whole one by elapsed time / `min_rtt`; no update gives less than half of the rate.
        Routine = "routine",
    }
}

crate::choice! {
    /// When the rate is updated.
    pub enum Update {
        /// Once per segment, at most once per `min_rtt`.
        Segment = "segment",
        /// Once per round trip: when a packet that was sent after the last update is acknowledged.
        RoundTrip = "round-trip",
        /// The same by positions: when everything that was sent before the last update is acknowledged, and something
        /// after it (HPCC's simulator). Where packets are lost, that is later.
        Sequence = "sequence",
        /// At each acknowledgement (the authors' routine).
        Acknowledgement = "ack",
    }
}

crate::choice! {
    /// What counts towards hyperactive increase.
    pub enum Streak {
        /// Updates in a row with a gradient that is not positive (SIGCOMM 2015).
        Gradient = "gradient",
        /// All increases in a row, those below the low threshold included, which then are hyperactive too (HPCC's
        /// simulator).
        Increases = "increases",
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
    variant: Variant {
        doc: "The form of the paper, the patched one, or the routine that TIMELY's authors published later.",
        default: "\"original\"",
        value: |_| Variant::Original,
        source: "SIGCOMM 2015; \"patched\" is CoNEXT 2016; \"routine\" is the authors' timely-code-snippet.cc"
    },
    gain: f64 {
        doc: "alpha: weight of the newest difference in the moving average of RTT differences.",
        default: "0.875; routine: 0.02",
        value: |_| 0.875,
        allowed: "in (0, 1]",
        check: |a| *a > 0.0 && *a <= 1.0,
        source: "HPCC's simulator; the authors' routine"
    },
    decrease: f64 {
        doc: "beta: strength of decreases.",
        default: "0.8; patched: 0.008",
        value: |_| 0.8,
        allowed: "in (0, 1]",
        check: |b| *b > 0.0 && *b <= 1.0,
        source: "SIGCOMM 2015; CoNEXT 2016"
    },
    low_threshold: Time {
        doc: "T_low: below it the rate always rises.",
        default: "2.5 base RTT; paper, hpcc-lineage: 50us; routine: 0",
        value: |path| path.base_rtt.mul_f64(2.5),
        allowed: "at most high_threshold",
        source: "SIGCOMM 2015 (50us), at its min_rtt of 20us; the authors' routine, with packets paced one by one"
    },
    high_threshold: Time {
        doc: "T_high: above it the rate always falls.",
        default: "25 base RTT; paper, hpcc-lineage: 500us; routine: twice that",
        value: |path| path.base_rtt.saturating_mul(25),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "SIGCOMM 2015 (500us), at its min_rtt of 20us; the authors' routine (1ms)"
    },
    reference: Time {
        doc: "Reference RTT of the patched form.",
        default: "2.5 base RTT; paper, hpcc-lineage: 50us",
        value: |path| path.base_rtt.mul_f64(2.5),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "CoNEXT 2016: T_low"
    },
    min_rtt: Time {
        doc: "D_minRTT: the gradient is a share of it, and updates by segment are no closer. The routine makes a whole \
            step in it.",
        default: "base RTT; paper, hpcc-lineage: 20us",
        value: |path| path.base_rtt,
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "SIGCOMM 2015 (20us)"
    },
    additive_increase: Rate {
        doc: "delta: step of an increase.",
        default: "rate / 1000; paper: 10Mbps; hpcc-lineage: rate / 1000",
        value: |path| Rate::from_bps((path.rate.bps() / 1000).max(1)),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "SIGCOMM 2015: 10Mbps at 10Gbps"
    },
    hyper_after: u64 {
        doc: "Updates in a row after which increases are hyperactive.",
        default: "5; hpcc-lineage: 6",
        value: |_| 5,
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "SIGCOMM 2015"
    },
    hyper_steps: f64 {
        doc: "N: how many steps a hyperactive increase is.",
        default: "5",
        value: |_| 5.0,
        allowed: "at least 1",
        check: |n| *n >= 1.0,
        source: "SIGCOMM 2015"
    },
    hyper_counts: Streak {
        doc: "What counts towards hyperactive increase.",
        default: "\"gradient\"; hpcc-lineage: \"increases\"",
        value: |_| Streak::Gradient,
        source: "SIGCOMM 2015; \"increases\" is HPCC's simulator"
    },
    update: Update {
        doc: "When the rate is updated.",
        default: "\"round-trip\"; others by variant and profile (docs/timely.md)",
        value: |_| Update::RoundTrip,
        source: "HPCC's simulator has \"sequence\"; \"segment\" is SIGCOMM 2015; \"ack\" is the authors' routine"
    },
    segment: Bytes {
        doc: "Payload bytes of a segment, with updates by segment.",
        default: "0.64 BDP; paper: 16KB",
        value: |path| Bytes::new((path.bdp().get() as f64 * 0.64) as u64),
        source: "CoNEXT 2016: 16KB (SIGCOMM 2015 has 16KB to 64KB), at 10Gbps and 20us"
    },
    initial_rate: Rate {
        doc: "Rate of a new flow.",
        default: "the NIC's rate",
        value: |path| path.rate,
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "ours: every scheme starts with one BDP in the first RTT; SIGCOMM 2015 has 1/(n+1) of it \
            with n flows at the host"
    },
    min_rate: Rate {
        doc: "Least rate.",
        default: "rate / 100; paper: 10Mbps; hpcc-lineage: rate / 100",
        value: |path| Rate::from_bps((path.rate.bps() / 100).max(1)),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "the scripts of HPCC's simulator (MIN_RATE), SIGCOMM 2019; SIGCOMM 2015 prints none"
    },
} limit("\"unlimited\"", InFlight::Unlimited, "the papers; the others are TIMELY+w of HPCC, SIGCOMM 2019"));

/// The constants as printed.
fn paper(defaults: Parameters) -> Parameters {
    Parameters {
        update: Update::Segment,
        low_threshold: Time::from_us(50),
        high_threshold: Time::from_us(500),
        reference: Time::from_us(50),
        min_rtt: Time::from_us(20),
        additive_increase: Rate::from_bps(10_000_000),
        segment: Bytes::new(16_000),
        min_rate: Rate::from_bps(10_000_000),
        ..defaults
    }
}

/// What the profile hpcc-lineage has in place of the paper's: its scripts scale rates with the NIC's.
fn lineage(defaults: Parameters, path: &Path) -> Parameters {
    let share = |of: u64| Rate::from_bps((path.rate.bps() / of).max(1));
    Parameters {
        window: rate_based::lineage_window(path),
        update: Update::Sequence,
        additive_increase: share(1000),
        min_rate: share(100),
        hyper_after: 6,
        hyper_counts: Streak::Increases,
        update_gap: false,
        ..defaults
    }
}

/// What the authors' routine has in place of the profile's constants. Its `additive_increase` of 10 Mbit/s at 10 Gbit/s, its
/// `decrease` and its five updates before hyperactive increase are the paper's.
fn routine(defaults: Parameters) -> Parameters {
    Parameters {
        gain: 0.02,
        low_threshold: Time::ZERO,
        high_threshold: defaults.high_threshold.saturating_mul(2),
        hyper_after: 5,
        update: Update::Acknowledgement,
        ..defaults
    }
}

/// What all flows of a fabric share. Rates in bit/s, times in picoseconds.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    line: f64,
    min_rate: f64,
    step: f64,
    low: f64,
    high: f64,
    reference: f64,
    min_rtt: f64,
    limit: Limit,
    grants: granted_window::Rule,
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Timely {
    /// In bit/s.
    rate: f64,
    /// RTT at the last update; `None` before the first.
    previous_rtt: Option<Time>,
    /// Moving average of the differences of RTTs, in picoseconds.
    difference: f64,
    /// Payload bytes acknowledged since the last update.
    completed: u64,
    last_update: Time,
    /// What was sent before the last update lies below this position.
    update_after: u64,
    /// Increases in a row that count; in the routine, RTTs in a row that are below the one before.
    streak: u32,
    grant: Grant,
    constants: Arc<Constants>,
}

/// `rtt_diff = (1 - alpha) rtt_diff + alpha new_rtt_diff` (SIGCOMM 2015, algorithm 1).
fn average(difference: f64, newest: f64, gain: f64) -> f64 {
    (1.0 - gain) * difference + gain * newest
}

/// `R (1 - beta (1 - T_high / rtt))` (SIGCOMM 2015, algorithm 1).
fn above_high(rate: f64, beta: f64, high: f64, rtt: f64) -> f64 {
    rate * (1.0 - beta * (1.0 - high / rtt))
}

/// `R (1 - beta gradient)`, not below zero (SIGCOMM 2015, algorithm 1).
fn by_gradient(rate: f64, beta: f64, gradient: f64) -> f64 {
    rate * (1.0 - beta * gradient).max(0.0)
}

/// `w(g)`: 0 up to -1/4, 1 from 1/4, `2 g + 1/2` in between (CoNEXT 2016, equation 30).
fn weight(gradient: f64) -> f64 {
    (2.0 * gradient + 0.5).clamp(0.0, 1.0)
}

/// `delta (1 - w) + R (1 - beta w error)`, not below zero (CoNEXT 2016, algorithm 2).
fn patched(rate: f64, step: f64, beta: f64, weight: f64, error: f64) -> f64 {
    step * (1.0 - weight) + rate * (1.0 - beta * weight * error).max(0.0)
}

impl Timely {
    fn update(&mut self, rtt: f64, difference: f64) {
        let constants = &*self.constants;
        let parameters = &constants.parameters;
        let beta = parameters.decrease;
        self.difference = average(self.difference, difference, parameters.gain);
        let gradient = self.difference / constants.min_rtt;
        let before = self.rate;
        let mut counts = false;
        let rate = if rtt < constants.low {
            counts = parameters.hyper_counts == Streak::Increases;
            before + constants.step * if counts { self.steps() } else { 1.0 }
        } else if rtt > constants.high {
            above_high(before, beta, constants.high, rtt)
        } else if parameters.variant == Variant::Patched {
            let error = (rtt - constants.reference) / constants.reference;
            patched(before, constants.step, beta, weight(gradient), error)
        } else if gradient <= 0.0 {
            counts = true;
            before + constants.step * self.steps()
        } else {
            by_gradient(before, beta, gradient)
        };
        self.set(rate);
        self.streak = if counts { self.streak.saturating_add(1) } else { 0 };
    }

    /// An update of the authors' routine, `elapsed` picoseconds after the last one.
    fn follow_routine(&mut self, rtt: f64, difference: f64, elapsed: f64) {
        let constants = &*self.constants;
        let Parameters { gain, decrease, hyper_after, hyper_steps, .. } = constants.parameters;
        // By the newest difference, in all regions: the average turns later.
        self.streak = if difference < 0.0 { self.streak.saturating_add(1) } else { 0 };
        self.difference = average(self.difference, difference, gain);
        let gradient = self.difference / constants.min_rtt;
        let share = (elapsed / constants.min_rtt).min(1.0);
        let step = constants.step * share;
        let rate = if rtt < constants.low {
            self.rate + step
        } else if rtt > constants.high {
            above_high(self.rate, decrease * share, constants.high, rtt)
        } else if gradient <= 0.0 {
            let is_hyper = u64::from(self.streak) >= hyper_after;
            self.rate + step * if is_hyper { hyper_steps } else { 1.0 }
        } else {
            // No share: differences add up to the same whatever the number of acknowledgements.
            by_gradient(self.rate, decrease, gradient)
        };
        self.set(rate.max(0.5 * self.rate));
    }

    /// Takes the rate of an update, in bit/s, within its bounds.
    fn set(&mut self, rate: f64) {
        if rate > self.rate {
            self.grant.on_increase(&self.constants.grants);
        }
        self.rate = rate.clamp(self.constants.min_rate, self.constants.line);
    }

    /// Steps of the next increase: the `hyper_after`-th in a row is the first hyperactive one.
    fn steps(&self) -> f64 {
        let parameters = &self.constants.parameters;
        if u64::from(self.streak) + 1 >= parameters.hyper_after { parameters.hyper_steps } else { 1.0 }
    }
}

impl SenderLaw for Timely {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "timely",
        title: "TIMELY",
        source: "Mittal et al., SIGCOMM 2015; patched: Zhu et al., CoNEXT 2016; routine: Mittal, timely-code-snippet.cc",
        framing: Framing::RoceV2,
        recovery: Recovery::GoBackN,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    /// A time stamp.
    const HPCC_IN_BAND: u32 = 8;
    const CAPABILITIES: LawCapabilities = LawCapabilities { cnp: CnpContent::Windows, ..LawCapabilities::TIMED };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("reference", "variant", &["patched"]),
        Condition::new("hyper_counts", "variant", &["original", "patched"]),
        Condition::new("segment", "update", &["segment"]),
        Condition::new("window", "in_flight", &["bdp", "rate-bdp"]),
        Condition::new("window_rule", "in_flight", &["bdp", "rate-bdp"]),
        Condition::new("grant_timeout", "grant_until", &["timeout"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let mut defaults = Parameters::on(path);
        let profile = chosen("profile", Profile::Scaled, given)?;
        if profile != Profile::Scaled {
            defaults = paper(defaults);
        }
        if profile == Profile::HpccLineage {
            defaults = lineage(defaults, path);
        }
        match chosen("variant", Variant::Original, given)? {
            Variant::Original => (),
            Variant::Patched => {
                defaults.decrease = 0.008;
                // Small steps once per RTT would be ever rarer as the queue grows: it would never be drained.
                defaults.update = Update::Segment;
            }
            Variant::Routine => defaults = routine(defaults),
        }
        let parameters = defaults.with(given)?;
        let Parameters { low_threshold, high_threshold, .. } = parameters;
        if low_threshold > high_threshold {
            let message =
                format!("found {low_threshold}, allowed is at most high_threshold, which is {high_threshold}");
            return Err(ParameterError::Value { name: "low_threshold", message });
        }
        let ps = |time: Time| time.ps() as f64;
        let line = path.rate.as_f64();
        Ok(Arc::new(Constants {
            line,
            min_rate: parameters.min_rate.as_f64().min(line),
            step: parameters.additive_increase.as_f64(),
            low: ps(low_threshold),
            high: ps(high_threshold),
            reference: ps(parameters.reference),
            min_rtt: ps(parameters.min_rtt),
            limit: Limit::new(parameters.in_flight, parameters.window, parameters.window_rule, path),
            grants: granted_window::Rule::new(parameters.grant_until, parameters.grant_timeout.time(), path),
            parameters,
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn requirements(constants: &Arc<Constants>) -> Requirements {
        // Only acknowledged segments lower rates, above T_high by `decrease` at the most; of what overfills a buffer,
        // go-back-N has none acknowledged, and no window ends that.
        let Parameters { variant, in_flight, .. } = constants.parameters;
        let starves = variant == Variant::Patched && in_flight == InFlight::Unlimited;
        let why = "timely with variant = \"patched\" lowers rates in small steps, as segments are acknowledged, and not for losses: flows that overfill a buffer may go back N again and again, and nothing gets through; set switch.pfc, in_flight = \"bdp\" or host.recovery = \"selective-repeat\"";
        let backpressure = starves.then_some(why);
        Requirements { backpressure, ..Requirements::of(&Self::INFO, &Self::transport(constants)) }
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        Transport { updates_gap: constants.parameters.update_gap, ..Transport::of(&Self::INFO) }
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, _random: u32) -> Self {
        Self {
            rate: constants.parameters.initial_rate.as_f64().clamp(constants.min_rate, constants.line),
            previous_rtt: None,
            difference: 0.0,
            completed: 0,
            last_update: now,
            update_after: 0,
            streak: 0,
            grant: Grant::NONE,
            constants: Arc::clone(constants),
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        self.grant.on_ack(&self.constants.grants, feedback.now, feedback.rtt);
        let parameters = &self.constants.parameters;
        self.completed += feedback.acked_bytes;
        let due = match parameters.update {
            Update::RoundTrip => feedback.now.saturating_sub(feedback.rtt) >= self.last_update,
            Update::Sequence => feedback.acked > self.update_after,
            Update::Acknowledgement => true,
            Update::Segment => {
                self.completed >= parameters.segment.get()
                    && feedback.now.saturating_sub(self.last_update) >= parameters.min_rtt
            }
        };
        if !due {
            return;
        }
        let variant = parameters.variant;
        self.completed = 0;
        let elapsed = feedback.now.saturating_sub(self.last_update);
        self.last_update = feedback.now;
        self.update_after = feedback.next;
        // The first completion has nothing to be compared with.
        // The paper's RTT is that of the network: no hold is part of it.
        let rtt = feedback.network_rtt();
        let previous = self.previous_rtt.replace(rtt);
        let sample = rtt.ps() as f64;
        let difference = |previous: Time| sample - previous.ps() as f64;
        match (variant, previous) {
            // The routine compares the first one with itself.
            (Variant::Routine, _) => {
                self.follow_routine(sample, previous.map_or(0.0, difference), elapsed.ps() as f64);
            }
            (_, Some(previous)) => self.update(sample, difference(previous)),
            (_, None) => (),
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
        self.grant.limit(self.constants.limit.at(self.rate))
    }
    fn assigned_window(&self) -> u64 {
        self.grant.limit(self.constants.limit.window(self.rate))
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps((self.rate as u64).max(1)))
    }
    #[inline]
    fn next_timer(&self) -> Time {
        self.grant.ends(&self.constants.grants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GBPS: f64 = 1e9;

    /// The paper's own network.
    fn path() -> Path {
        Path::new(Rate::from_gbps(10), Time::from_us(20), 1000, 1000)
    }

    fn given(given: &[(&str, &str)]) -> Vec<(String, Raw)> {
        given.iter().map(|(key, value)| ((*key).to_owned(), Raw::Text((*value).to_owned()))).collect()
    }

    fn flow(values: &[(&str, &str)]) -> Timely {
        // Without the slack of a packet.
        let values = [&[("window_rule", "fits")], values].concat();
        let constants = Timely::resolve(&path(), &given(&values)).expect("allowed");
        Timely { rate: 5.0 * GBPS, ..Timely::start(&constants, &path(), Time::ZERO, 0) }
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
    }

    /// Updates with these RTTs in microseconds; the first one gives the RTT before.
    fn updates(law: &mut Timely, rtts: &[f64]) {
        for pair in rtts.windows(2) {
            law.update(pair[1] * 1e6, (pair[1] - pair[0]) * 1e6);
        }
    }

    #[test]
    fn the_scaled_profile_is_the_papers_on_the_papers_network() {
        let scaled = Timely::resolve(&path(), &[]).expect("defaults");
        let paper = Timely::resolve(&path(), &given(&[("profile", "paper")])).expect("allowed");
        let without = |constants: &Constants| Parameters {
            profile: Profile::Paper,
            update: Update::Segment,
            min_rate: Rate::from_bps(10_000_000),
            ..constants.parameters.clone()
        };
        assert_eq!(without(&scaled), without(&paper));
        // Elsewhere one of them scales, and explicit keys win over both.
        let elsewhere = Path { rate: Rate::from_gbps(400), base_rtt: Time::from_us(10), ..path() };
        let resolve =
            |values: &[(&str, &str)]| Timely::resolve(&elsewhere, &given(values)).expect("allowed").parameters.clone();
        let scaled = resolve(&[]);
        assert_eq!((scaled.low_threshold, scaled.high_threshold), (Time::from_us(25), Time::from_us(250)));
        assert_eq!(scaled.additive_increase, Rate::from_bps(400_000_000));
        assert_eq!(scaled.segment, Bytes::new(320_000));
        let paper = resolve(&[("min_rtt", "7us"), ("profile", "paper")]);
        assert_eq!((paper.low_threshold, paper.min_rtt), (Time::from_us(50), Time::from_us(7)));
        assert_eq!(resolve(&[("variant", "patched")]).decrease, 0.008);
    }

    #[test]
    fn thresholds_rule_whatever_the_gradient() {
        let mut law = flow(&[]);
        updates(&mut law, &[30.0, 49.0]);
        close(law.rate, 5.01 * GBPS);
        let mut law = flow(&[]);
        updates(&mut law, &[1100.0, 1000.0]);
        close(law.rate, 5.0 * GBPS * (1.0 - 0.8 * 0.5));
    }

    #[test]
    fn between_the_thresholds_the_gradient_rules() {
        let mut law = flow(&[]);
        updates(&mut law, &[100.0, 104.0]);
        close(law.difference, 3.5e6);
        close(law.rate, 5.0 * GBPS * (1.0 - 0.8 * 3.5 / 20.0));
        let mut law = flow(&[]);
        updates(&mut law, &[100.0, 100.0]);
        close(law.rate, 5.01 * GBPS);
        // A gradient above 1 / beta would make the rate negative.
        let mut law = flow(&[]);
        updates(&mut law, &[100.0, 400.0]);
        close(law.rate, 100e6);
    }

    #[test]
    fn the_fifth_increase_in_a_row_is_hyperactive() {
        let mut law = flow(&[]);
        updates(&mut law, &[100.0; 5]);
        close(law.rate, 5.04 * GBPS);
        updates(&mut law, &[100.0; 2]);
        close(law.rate, 5.09 * GBPS);
        // An increase below the low threshold is no sign of a gradient, and ends the row.
        updates(&mut law, &[100.0, 40.0]);
        close(law.rate, 5.10 * GBPS);
        updates(&mut law, &[40.0, 40.0, 40.0, 40.0, 40.0, 40.0]);
        close(law.rate, 5.15 * GBPS);
        let mut law = flow(&[("hyper_counts", "increases")]);
        updates(&mut law, &[40.0; 6]);
        close(law.rate, 5.09 * GBPS);
    }

    #[test]
    fn the_patched_form_weighs_the_distance_from_its_reference() {
        assert_eq!([-1.0, -0.25, -0.125, 0.0, 0.25, 3.0].map(weight), [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
        let mut law = flow(&[("variant", "patched")]);
        updates(&mut law, &[100.0, 100.0]);
        // w = 1/2, error = 1: 5 Mbit/s more and 20 less.
        close(law.rate, 5.0 * GBPS + 5e6 - 5.0 * GBPS * 0.008 * 0.5);
        // The fixed point of N equal flows: rtt = T_low (1 + N delta / (beta C)), whatever the rates were.
        let fixed = 50.0 * (1.0 + 2.0 * 10e6 / (0.008 * 10.0 * GBPS));
        let mut law = flow(&[("variant", "patched")]);
        updates(&mut law, &[fixed; 2000]);
        close(law.rate, 5.0 * GBPS);
        let mut law = Timely { rate: 8.0 * GBPS, ..flow(&[("variant", "patched")]) };
        updates(&mut law, &[fixed; 40_000]);
        close(law.rate, 5.0 * GBPS);
        // Where the original has one for every rate: it does not know by how much it is off.
        let gain = |rate: f64| {
            let mut law = Timely { rate, ..flow(&[]) };
            updates(&mut law, &[100.0, 100.0]);
            law.rate - rate
        };
        close(gain(8.0 * GBPS), gain(2.0 * GBPS));
    }

    fn ack(law: &mut Timely, now: Time, rtt: Time) {
        law.on_ack(&Feedback { now, rtt, acked_bytes: 1000, packets: 1, ..Feedback::default() });
    }

    #[test]
    fn updates_come_once_per_segment_and_not_faster_than_the_minimum_rtt() {
        let mut law = flow(&[("update", "segment"), ("segment", "16KB")]);
        let rtt = Time::from_us(30);
        (1..=16).for_each(|packet| ack(&mut law, Time::from_us(30 + packet), rtt));
        assert_eq!((law.previous_rtt, law.rate), (Some(rtt), 5.0 * GBPS), "nothing to compare with");
        (1..=15).for_each(|packet| ack(&mut law, Time::from_us(60 + packet), rtt));
        assert_eq!(law.rate, 5.0 * GBPS);
        ack(&mut law, Time::from_us(76), rtt);
        close(law.rate, 5.01 * GBPS);
        (1..=19).for_each(|packet| ack(&mut law, Time::from_us(76 + packet), rtt));
        close(law.rate, 5.01 * GBPS);
        ack(&mut law, Time::from_us(96), rtt);
        close(law.rate, 5.02 * GBPS);
    }

    #[test]
    fn or_once_per_round_trip() {
        let mut law = flow(&[]);
        let rtt = Time::from_us(30);
        ack(&mut law, Time::from_us(30), rtt);
        ack(&mut law, Time::from_us(59), rtt);
        assert_eq!(law.rate, 5.0 * GBPS);
        ack(&mut law, Time::from_us(60), rtt);
        close(law.rate, 5.01 * GBPS);
    }

    #[test]
    fn or_by_positions() {
        let mut law = flow(&[("update", "sequence")]);
        let mut ack = |acked, next| {
            let (now, rtt) = (Time::from_us(30), Time::from_us(30));
            law.on_ack(&Feedback { now, rtt, acked, next, ..Feedback::default() });
            law.rate
        };
        ack(1000, 5000);
        assert_eq!(ack(5000, 9000), 5.0 * GBPS, "what was in flight at the first acknowledgement");
        close(ack(6000, 9000), 5.01 * GBPS);
        close(ack(9000, 12_000), 5.01 * GBPS);
        close(ack(10_000, 14_000), 5.02 * GBPS);
    }

    /// The authors' routine, after its description, in microseconds and Mbit/s: which case an RTT is, then what that case
    /// does to the rate. Shares no code with the law.
    struct Model {
        line: f64,
        least: f64,
        min_rtt: f64,
        high: f64,
        rate: f64,
        rtts: Vec<f64>,
        trend: f64,
        updated_at: f64,
    }

    impl Model {
        fn acknowledge(&mut self, now: f64, rtt: f64) {
            let change = self.rtts.last().map_or(0.0, |last| rtt - last);
            self.rtts.push(rtt);
            self.trend += 0.02 * (change - self.trend);
            let whole = ((now - self.updated_at) / self.min_rtt).min(1.0);
            self.updated_at = now;
            let step = self.line / 1000.0;
            let falls = self.rtts.windows(2).rev().take_while(|pair| pair[1] < pair[0]).count();
            let change = match (rtt > self.high, self.trend > 0.0) {
                (true, _) => -whole * 0.8 * (rtt - self.high) / rtt * self.rate,
                (false, true) => -0.8 * self.trend / self.min_rtt * self.rate,
                (false, false) if falls >= 5 => whole * 5.0 * step,
                (false, false) => whole * step,
            };
            let rate = self.rate + change.max(-self.rate / 2.0);
            self.rate = rate.min(self.line).max(self.least);
        }
    }

    proptest! {
        /// RTTs that wander, in runs of rises and falls, cross T_high and reach both bounds.
        #[test]
        fn the_routine_is_its_model(
            start in 0.01f64..1.0,
            acks in prop::collection::vec((0u64..40_000_000, -60_000_000i64..60_000_000, 1usize..12), 1..150),
        ) {
            let constants = Timely::resolve(&path(), &given(&[("variant", "routine")])).expect("allowed");
            let mut law = Timely::start(&constants, &path(), Time::ZERO, 0);
            law.rate = start * 10.0 * GBPS;
            let mut model = Model {
                line: 10_000.0, least: 100.0, min_rtt: 20.0, high: 1000.0,
                rate: start * 10_000.0, rtts: Vec::new(), trend: 0.0, updated_at: 0.0,
            };
            let (mut now, mut rtt) = (20_000_000u64, 700_000_000i64);
            for (gap, slope, times) in acks {
                for _ in 0..times {
                    now += gap;
                    rtt = (rtt + slope).clamp(20_000_000, 3_000_000_000);
                    let (at, sample) = (Time::from_ps(now), Time::from_ps(rtt as u64));
                    ack(&mut law, at, sample);
                    model.acknowledge(now as f64 / 1e6, rtt as f64 / 1e6);
                    // The sign of a rounding error decides nothing here.
                    prop_assume!(model.trend == 0.0 || model.trend.abs() > 1e-9);
                    let (found, wanted) = (law.rate / 1e6, model.rate);
                    prop_assert!((found / wanted - 1.0).abs() < 1e-6, "{found} in place of {wanted}");
                }
            }
        }
    }

    #[test]
    fn the_routine_has_its_own_constants() {
        let resolve = |path: &Path, values: &[(&str, &str)]| {
            Timely::resolve(path, &given(&[&[("variant", "routine")], values].concat()))
                .expect("allowed")
                .parameters
                .clone()
        };
        let scaled = resolve(&path(), &[]);
        assert_eq!((scaled.gain, scaled.decrease, scaled.update), (0.02, 0.8, Update::Acknowledgement));
        assert_eq!((scaled.low_threshold, scaled.high_threshold), (Time::ZERO, Time::from_ms(1)));
        assert_eq!((scaled.additive_increase, scaled.hyper_after), (Rate::from_bps(10_000_000), 5));
        let elsewhere = Path { rate: Rate::from_gbps(100), base_rtt: Time::from_us(5), ..path() };
        let paper = resolve(&elsewhere, &[("profile", "paper")]);
        assert_eq!((paper.low_threshold, paper.high_threshold), (Time::ZERO, Time::from_ms(1)));
        let scaled = resolve(&elsewhere, &[]);
        assert_eq!(
            (scaled.high_threshold, scaled.additive_increase),
            (Time::from_us(250), Rate::from_bps(100_000_000))
        );
        let own = resolve(&path(), &[("low_threshold", "50us"), ("update", "segment")]);
        assert_eq!((own.low_threshold, own.update), (Time::from_us(50), Update::Segment));
    }

    #[test]
    fn the_routine_takes_shares_of_steps_and_never_more_than_half() {
        let at = |law: &mut Timely, now, rtt| {
            ack(law, Time::from_us(now), Time::from_us(rtt));
            law.rate
        };
        let mut law = flow(&[("variant", "routine")]);
        close(at(&mut law, 100, 100), 5.01 * GBPS);
        // A quarter of the least RTT later.
        close(at(&mut law, 105, 100), 5.0125 * GBPS);
        // The same instant: no step.
        close(at(&mut law, 105, 100), 5.0125 * GBPS);
        // The fifth fall in a row, not the fourth.
        for rtt in (96..=99).rev() {
            at(&mut law, 300 - rtt, rtt);
        }
        let before = law.rate;
        close(at(&mut law, 300, 95), before + 0.05 * GBPS);
        // 20 ms is 20 T_high: 0.8 * 0.95 would go.
        let before = law.rate;
        close(at(&mut law, 400, 20_000), 0.5 * before);
        // So it is with the gradient.
        let mut law = flow(&[("variant", "routine")]);
        at(&mut law, 100, 100);
        let before = law.rate;
        close(at(&mut law, 101, 990), 0.5 * before);
        // Below a low threshold the gradient does not count.
        let mut law = flow(&[("variant", "routine"), ("low_threshold", "50us")]);
        at(&mut law, 100, 20);
        let before = law.rate;
        close(at(&mut law, 200, 49), before + 0.01 * GBPS);
    }

    /// The profile of HPCC's simulator at 100 Gbit/s has the values of its scripts.
    #[test]
    fn the_lineage_has_the_values_of_its_scripts() {
        let path = Path { rate: Rate::from_gbps(100), base_rtt: Time::from_ns(12_240), ..path() };
        let lineage = Timely::resolve(&path, &given(&[("profile", "hpcc-lineage")])).expect("allowed");
        let values = lineage.parameters.clone();
        assert_eq!((values.additive_increase, values.min_rate), (share(1000), share(100)));
        assert_eq!((values.low_threshold, values.high_threshold), (Time::from_us(50), Time::from_us(500)));
        assert_eq!((values.min_rtt, values.window), (Time::from_us(20), Bytes::new(153_000)));
        assert!(!Timely::transport(&lineage).updates_gap);
        // The sixth increase in a row is the first of 500 Mbit/s, below the low threshold too.
        let mut law = Timely { rate: 50.0 * GBPS, ..Timely::start(&lineage, &path, Time::ZERO, 0) };
        updates(&mut law, &[20.0; 6]);
        close(law.rate, 50.5 * GBPS);
        updates(&mut law, &[20.0; 2]);
        close(law.rate, 51.0 * GBPS);
        fn share(of: u64) -> Rate {
            Rate::from_bps(100_000_000_000 / of)
        }
    }

    #[test]
    fn rates_stay_within_their_bounds_and_losses_do_not_count() {
        let mut law = flow(&[]);
        updates(&mut law, &[30.0; 1000]);
        close(law.rate, 10.0 * GBPS);
        updates(&mut law, &[5000.0; 100]);
        close(law.rate, 100e6);
        law.on_timeout(Time::ZERO, 0);
        law.on_loss(&Loss { lost_bytes: 1, next: 1, ..Loss::default() });
        assert_eq!((law.pacing_rate(), law.window()), (Some(Rate::from_bps(100_000_000)), u64::MAX));
        let limited = flow(&[("in_flight", "rate-bdp")]);
        assert_eq!(limited.window(), 12_500);
    }

    #[test]
    fn a_granted_window_lasts_until_an_update_raises_the_rate() {
        let mut law = flow(&[("in_flight", "bdp")]);
        law.on_cnp(Time::from_us(1), &Cnp::granting(3_000));
        assert_eq!((law.window(), law.rate), (3_000, 5.0 * GBPS), "notifications do not change the rate");
        updates(&mut law, &[100.0, 110.0, 600.0]);
        assert_eq!(law.window(), 3_000);
        updates(&mut law, &[30.0, 30.0]);
        assert_eq!(law.window(), 25_000);
        // At the line's rate, too.
        law.rate = 10.0 * GBPS;
        law.on_cnp(Time::from_us(1), &Cnp::granting(3_000));
        updates(&mut law, &[30.0, 30.0]);
        assert_eq!((law.window(), law.rate), (25_000, 10.0 * GBPS));
        let mut law = flow(&[("grant_until", "timeout")]);
        law.on_cnp(Time::from_us(1), &Cnp::granting(3_000));
        updates(&mut law, &[30.0, 30.0]);
        assert_eq!((law.window(), law.next_timer()), (3_000, Time::from_us(101)));
        law.on_timer(Time::from_us(101));
        assert_eq!((law.window(), law.next_timer()), (u64::MAX, Time::MAX));
    }

    #[test]
    fn contradictions_are_refused() {
        let refused =
            |values: &[(&str, &str)]| Timely::resolve(&path(), &given(values)).expect_err("refused").to_string();
        assert!(refused(&[("low_threshold", "1ms")]).contains("at most high_threshold, which is 500us"));
        assert!(refused(&[("profile", "mine")]).contains("\"scaled\" \"paper\""));
        assert!(refused(&[("variant", "patch")]).contains("\"original\" \"patched\" \"routine\""));
        assert!(refused(&[("threshold", "1us")]).contains("unknown parameter"));
    }
}
