//! On-Ramp: packets wait at the edge while one-way delays are above a threshold.
//!
//! Source: Liu, Ghalayini, Alizadeh, Prabhakar, Rosenblum, Sivaraman, "Breaking the Transience-Equilibrium Nexus: A New
//! Approach to Datacenter Packet Transport", NSDI 2021. What of it is public, and what is ours, is in `docs/onramp.md`.
//!
//! ```text
//!   report: O <= T ──▶ nothing
//!           O >  T ──▶ strawman:   t_pause = max(t_pause, t + O - T)
//!                      paper:      t_pause = max(t_pause, t + O - beta P - T)     P: paused in (sent, t]
//!                      committed:  t_pause = max(t_pause, t) + (O - beta P - T)   P: paused in (sent, t_pause]
//!
//!   packet: waits until t_pause ──▶ burst | paced | quantised | clocked ──▶ NIC
//! ```
//!
//! The rule itself is the C of `deploy/core/onramp.h`, the same that hosts and NICs get. This file converts units:
//! picoseconds to nanoseconds, parameters to integers.

mod decision;
mod ffi;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod vectors;

use super::{Arrangement, Head, Reports, Scope, UnderlayInfo, UnderlayStage};
use crate::{
    Path,
    parameters::{Condition, ParameterError, Raw, Setting, chosen, with_defaults},
};
use decision::{Config, Decision, ONE, SPAN_MAX};
use incast_units::{Bytes, Time};
use std::sync::Arc;

crate::choice! {
    /// Where the threshold comes from.
    pub enum Profile {
        /// It follows the fabric.
        Scaled = "scaled",
        /// The value of the paper's simulations.
        Paper = "paper",
    }
}

crate::choice! {
    /// How long a delay above the threshold pauses a flow.
    pub enum Variant {
        /// By the excess, from when it was heard of.
        Strawman = "strawman",
        /// By the excess less a share of the pauses since the packet was sent.
        Paper = "paper",
        /// As the paper's, with what of a pause is still to come, to the end of which the new one is added.
        Committed = "committed",
    }
}

crate::choice! {
    /// How what has piled up during a pause leaves.
    pub enum Release {
        /// At once.
        Burst = "burst",
        /// Evenly, somewhat faster than packets arrived before.
        Paced = "paced",
        /// At once, but a packet leaves in each quantum of the pause.
        Quantised = "quantised",
        /// A packet for each report, and more while delays are below the threshold.
        Clocked = "clocked",
    }
}

crate::choice! {
    /// How paced flows go on while delays are far below the threshold.
    pub enum Ramp {
        /// As ever: by what `pace` and `step` add.
        Steady = "steady",
        /// Twice as fast after each round trip that ends with a delay of less than half the threshold.
        Doubling = "doubling",
    }
}

crate::choice! {
    /// Which round-trip times the flow's law sees.
    pub enum Rtt {
        /// From the NIC on, as a NIC's timestamps have it.
        Network = "network",
        /// With the time that packets were held, as a host's stack has it.
        Stack = "stack",
    }
}

/// T that follows the fabric: the way without a queue, and a queue of two base RTTs, but at least 16 packets.
fn scaled_threshold(path: &Path) -> Time {
    let packets = path.rate.time_of(Bytes::new(16 * u64::from(path.wire_mss)));
    Time::from_ps(path.base_rtt.ps() / 2).saturating_add(path.base_rtt.saturating_mul(2).max(packets))
}

/// Half of a timeout, so that a packet that was held for as long has the other half for its way.
fn longest_hold(path: &Path) -> Time {
    Time::from_ps(path.rto_min.ps() / 2).max(Time::from_us(1))
}

/// As much as the core's spans can be.
fn spans(time: &Time) -> bool {
    time.ps() / 1000 <= u64::from(SPAN_MAX)
}

/// A span that is not zero.
fn lasts(time: &Time) -> bool {
    time.ps() >= 1000 && spans(time)
}

crate::parameters! {
    /// Parameters of On-Ramp.
    pub struct Parameters {
        /// Where the threshold comes from.
        profile: Profile = "\"scaled\"", |_| Profile::Scaled, "\"scaled\" or \"paper\"", |_| true, "ours: the paper's threshold is for its fabric";
        /// T: the bound of one-way delays above which a flow pauses, wire and queue together.
        threshold: Time = "base RTT / 2 + max(2 base RTT, 16 packets); 30us with profile = \"paper\"", scaled_threshold, "at most 1s", spans, "On-Ramp, figure 1: 30us, of which about 24us are for a queue; ours: the same in base RTTs";
        /// How long a delay above the threshold pauses a flow.
        variant: Variant = "\"paper\"", |_| Variant::Paper, "\"strawman\", \"paper\" or \"committed\"", |_| true, "measured, see docs/onramp.md";
        /// Share of the time paused by which the queue is taken to have fallen since.
        beta: f64 = "0.75", |_| 0.75, "in [0, 1]", |beta| (0.0..=1.0).contains(beta), "measured, see docs/onramp.md; the paper's value is not public here";
        /// How what has piled up during a pause leaves.
        release: Release = "\"paced\"", |_| Release::Paced, "\"burst\", \"paced\", \"quantised\" or \"clocked\"", |_| true, "measured, see docs/onramp.md";
        /// Of "paced": time between packets as a share of the time between their arrivals.
        pace: f64 = "0.9", |_| 0.9, "in [0.001, 1]", |pace| *pace >= 0.001 && *pace <= 1.0, "ours: see docs/onramp.md";
        /// Of "paced" and "clocked": packets added per round trip, so that flows come to have equal shares.
        step: f64 = "0.5", |_| 0.5, "in [0, 1]", |step| (0.0..=1.0).contains(step), "ours: see docs/onramp.md";
        /// Of "paced": how flows go on while delays are below half the threshold.
        ramp: Ramp = "\"doubling\"", |_| Ramp::Doubling, "\"steady\" or \"doubling\"", |_| true, "measured, see docs/onramp.md";
        /// Of "clocked": share of what delays lack to the threshold that is filled per round trip.
        gain: f64 = "0.25", |_| 0.25, "in [0.001, 1]", |gain| *gain >= 0.001 && *gain <= 1.0, "ours: see docs/onramp.md";
        /// Of "quantised": time between packets while the pause has more than the threshold to go.
        quantum: Time = "threshold", scaled_threshold, "1ns to 1s", lasts, "ours: after the abstract of US patent 12,368,675, which has two quanta";
        /// Of "quantised": time between packets after that.
        small_quantum: Time = "quantum / 8", |path| Time::from_ps(scaled_threshold(path).ps() / 8), "1ns to quantum", lasts, "ours: as above";
        /// Longest time that a packet is held once it is the first; after twice as long without a report none is.
        max_hold: Time = "max(rto_min / 2, 1us)", longest_hold, "1ns to 1s", lasts, "ours: no timeout for a hold alone";
        /// Packets of a flow that may wait. What its law allows beyond that is not handed over yet.
        backlog: u64 = "1000", |_| 1000, "1 to 4294967295", |backlog| (1..=u64::from(u32::MAX)).contains(backlog), "ours: as many as Linux lets wait at a device";
        /// For what one decision is made.
        scope: Scope = "\"flow\"", |_| Scope::Flow, "\"flow\" or \"destination\"", |_| true, "On-Ramp, figure 7: a queue per flow";
        /// How one-way delays come back.
        reports: Reports = "\"own\"", |_| Reports::Own, "\"own\" or \"acks\"", |_| true, "On-Ramp, figure 3: OR-ACKs";
        /// Which round-trip times the flow's law and its timers see.
        rtt: Rtt = "\"stack\"", |_| Rtt::Stack, "\"network\" or \"stack\"", |_| true, "On-Ramp, figure 7: below the transport";
    }
}

/// What all flows of a fabric share.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    start: Decision,
}

/// State of a flow, or of all to one destination.
#[derive(Clone, Copy, Debug)]
pub struct OnRamp {
    decision: Decision,
}

/// A part of one as the core counts it.
fn q16(number: f64) -> u32 {
    (number * f64::from(ONE)).round() as u32
}

/// A span in nanoseconds, within what the core can hold.
fn span(time: Time, least: u32) -> u32 {
    (time.ps() / 1000).clamp(least.into(), SPAN_MAX.into()) as u32
}

/// A time in nanoseconds, as late as it can be without being later.
fn nanoseconds(time: Time) -> u64 {
    time.ps() / 1000
}

/// The core's configuration.
fn config(parameters: &Parameters) -> Config {
    Config {
        threshold: span(parameters.threshold, 0),
        max_hold: span(parameters.max_hold, 1),
        quantum: span(parameters.quantum, 1),
        small_quantum: span(parameters.small_quantum, 1),
        beta: q16(parameters.beta),
        pace: q16(parameters.pace),
        gain: q16(parameters.gain),
        step: q16(parameters.step),
        variant: match parameters.variant {
            Variant::Strawman => 0,
            Variant::Paper => 1,
            Variant::Committed => 2,
        },
        release: match parameters.release {
            Release::Burst => 0,
            Release::Paced => 1,
            Release::Quantised => 2,
            Release::Clocked => 3,
        },
        ramp: match parameters.ramp {
            Ramp::Steady => 0,
            Ramp::Doubling => 1,
        },
        reserved: 0,
    }
}

impl UnderlayStage for OnRamp {
    type Parameters = Arc<Constants>;
    const INFO: UnderlayInfo = UnderlayInfo {
        name: "onramp",
        title: "On-Ramp",
        source: "Breaking the Transience-Equilibrium Nexus (NSDI 2021)",
        parameters: Parameters::TABLE,
    };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("beta", "variant", &["paper", "committed"]),
        Condition::new("pace", "release", &["paced"]),
        Condition::new("ramp", "release", &["paced"]),
        Condition::new("step", "release", &["paced", "clocked"]),
        Condition::new("gain", "release", &["clocked"]),
        Condition::new("quantum", "release", &["quantised"]),
        Condition::new("small_quantum", "release", &["quantised"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let threshold = match chosen("profile", Profile::Scaled, given)? {
            Profile::Scaled => scaled_threshold(path),
            Profile::Paper => Time::from_us(30),
        };
        // A threshold that is refused is so by its own name.
        let whole = chosen("threshold", threshold, given)?.clamp(Time::from_ns(1), Time::from_ms(1000));
        let quantum = chosen("quantum", whole, given)?;
        let small = Time::from_ps(quantum.ps() / 8).max(Time::from_ns(1));
        let defaults = [
            ("threshold", threshold.write()),
            ("quantum", quantum.write()),
            ("small_quantum", small.write()),
        ];
        let parameters = Parameters::resolve(path, &with_defaults(&defaults, given))?;
        if parameters.small_quantum > parameters.quantum {
            let (small, large) = (parameters.small_quantum, parameters.quantum);
            let message = format!("found {small}, allowed is at most quantum, {large}");
            return Err(ParameterError::Value { name: "small_quantum", message });
        }
        let start = Decision::new(config(&parameters)).ok_or_else(|| ParameterError::Value {
            name: "threshold",
            message: format!("the core refuses {parameters:?}"),
        })?;
        Ok(Arc::new(Constants { parameters, start }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn arrangement(constants: &Arc<Constants>) -> Arrangement {
        let Parameters { scope, reports, rtt, backlog, .. } = constants.parameters;
        let backlog = u32::try_from(backlog).unwrap_or(u32::MAX);
        Arrangement { scope, reports, rtt_with_hold: rtt == Rtt::Stack, backlog }
    }
    fn start(constants: &Arc<Constants>, _path: &Path, _now: Time) -> Self {
        Self { decision: constants.start }
    }

    #[inline]
    fn release(&mut self, now: Time, head: &Head) -> Time {
        let time = self.decision.release(nanoseconds(now), nanoseconds(head.queued));
        Time::from_ps(time.saturating_mul(1000))
    }
    #[inline]
    fn on_release(&mut self, now: Time, head: &Head) {
        self.decision.on_release(nanoseconds(now), nanoseconds(head.queued));
    }
    #[inline]
    fn on_report(&mut self, now: Time, sent: Time, one_way_delay: i64) {
        self.decision.on_report(nanoseconds(now), nanoseconds(sent), one_way_delay.div_euclid(1000));
    }
}
