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
mod recorded;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod vectors;

use super::{Arrangement, Head, Reports, Scope, UnderlayInfo, UnderlayStage};
use crate::{
    Path,
    parameters::{Condition, ParameterError, Raw, chosen},
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
    /// What of a delay is taken to be the path.
    pub enum BaseDelay {
        /// Each path's own delay: a path that is longer than the shortest one has a threshold that is higher by as much.
        Path = "path",
        /// One for the whole fabric, as there is one threshold.
        Fabric = "fabric",
    }
}

crate::choice! {
    /// How long a delay above the threshold pauses a flow.
    pub enum Variant {
        /// By the excess, from the arrival of its acknowledgement.
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
        /// Evenly, with a threshold that falls with the rate.
        Paced = "paced",
        /// At once, but a packet leaves in each quantum of the pause.
        Quantised = "quantised",
        /// A packet for each report, and more while delays are below the threshold.
        Clocked = "clocked",
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

/// T that follows the fabric: the path without a queue, and a queue of two base RTTs, but at least 16 packets.
fn scaled_threshold(path: &Path) -> Time {
    let packets = path.rate.time_of(Bytes::new(16 * u64::from(path.wire_mss)));
    Time::from_ps(path.base_rtt.ps() / 2).saturating_add(path.base_rtt.saturating_mul(2).max(packets))
}

/// A fifth of what the threshold leaves for the queue: rates that differ by a factor of 32 are all within that.
fn fair_spread(path: &Path, threshold: Time) -> Time {
    Time::from_ps(threshold.saturating_sub(path.least_delay).ps() / 5)
}

/// Half of a timeout, so that a packet that was held for as long has the other half for its path.
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

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the threshold comes from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: the paper's threshold is for its fabric"
    },
    threshold: Time {
        doc: "T: the bound of one-way delays above which a flow pauses, wire and queue together.",
        default: "base RTT / 2 + max(2 base RTT, 16 packets); 30us with profile = \"paper\"",
        value: scaled_threshold,
        allowed: "at most 1s",
        check: spans,
        source: "On-Ramp, figure 1: 30us, of which about 24us are for a queue; ours: the same in base RTTs"
    },
    base_delay: BaseDelay {
        doc: "Which delay without a queue the threshold includes.",
        default: "\"path\"",
        value: |_| BaseDelay::Path,
        source: "ours: with one threshold flows on long paths starve, see docs/onramp.md"
    },
    variant: Variant {
        doc: "How long a delay above the threshold pauses a flow.",
        default: "\"paper\"",
        value: |_| Variant::Paper,
        source: "measured, see docs/onramp.md"
    },
    beta: f64 {
        doc: "Share of the time paused by which the queue is taken to have fallen since.",
        default: "0.75",
        value: |_| 0.75,
        allowed: "in [0, 1]",
        check: |beta| (0.0..=1.0).contains(beta),
        source: "measured, see docs/onramp.md; the paper's value is not public here"
    },
    release: Release {
        doc: "How what has piled up during a pause leaves.",
        default: "\"paced\"",
        value: |_| Release::Paced,
        source: "measured, see docs/onramp.md"
    },
    spread: Time {
        doc: "Of \"paced\": how much lower a flow's threshold is than that of a flow with half its rate.",
        default: "(threshold - least one-way delay) / 5",
        value: |path| fair_spread(path, scaled_threshold(path)),
        allowed: "at most 1s",
        check: spans,
        source: "ours: measured, see docs/onramp.md"
    },
    reference: Time {
        doc: "Of \"paced\": time between the packets of a flow whose threshold is just the threshold.",
        default: "that of full packets at an eighth of the NIC's rate",
        value: |path| path.rate.time_of(Bytes::new(8 * u64::from(path.wire_mss))),
        allowed: "1ns to 1s",
        check: lasts,
        source: "ours: the thresholds of 2 to 32 flows are on both sides of the threshold"
    },
    step: f64 {
        doc: "Of \"clocked\": packets added per round trip, so that flows come to have equal shares.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in [0, 1]",
        check: |step| (0.0..=1.0).contains(step),
        source: "ours: see docs/onramp.md"
    },
    gain: f64 {
        doc: "Of \"clocked\": share of what delays lack to the threshold that is filled per round trip.",
        default: "0.25",
        value: |_| 0.25,
        allowed: "in [0.001, 1]",
        check: |gain| *gain >= 0.001 && *gain <= 1.0,
        source: "ours: see docs/onramp.md"
    },
    quantum: Time {
        doc: "Of \"quantised\": time between packets while the pause has more than the threshold to go.",
        default: "threshold",
        value: scaled_threshold,
        allowed: "1ns to 1s",
        check: lasts,
        source: "ours: after the abstract of US patent 12,368,675, which has two quanta"
    },
    small_quantum: Time {
        doc: "Of \"quantised\": time between packets after that.",
        default: "quantum / 8",
        value: |path| Time::from_ps(scaled_threshold(path).ps() / 8),
        allowed: "1ns to quantum",
        check: lasts,
        source: "ours: as above"
    },
    max_hold: Time {
        doc: "Longest time that a packet is held once it is the first; after twice as long without a report \
            none is.",
        default: "max(rto_min / 2, 1us)",
        value: longest_hold,
        allowed: "1ns to 1s",
        check: lasts,
        source: "ours: no timeout for a hold alone"
    },
    backlog: u64 {
        doc: "Packets of a flow that may wait. What its law allows beyond that is not handed over yet.",
        default: "1000",
        value: |_| 1000,
        allowed: "1 to 4294967295",
        check: |backlog| (1..=u64::from(u32::MAX)).contains(backlog),
        source: "ours: as many as Linux lets wait at a device"
    },
    scope: Scope {
        doc: "For what one decision is made.",
        default: "\"flow\"",
        value: |_| Scope::Flow,
        allowed: "\"flow\" or \"destination\"",
        source: "On-Ramp, figure 7: a queue per flow"
    },
    reports: Reports {
        doc: "How one-way delays come back.",
        default: "\"own\"",
        value: |_| Reports::Own,
        source: "On-Ramp, figure 3: OR-ACKs"
    },
    rtt: Rtt {
        doc: "Which round-trip times the flow's law and its timers see.",
        default: "\"stack\"",
        value: |_| Rtt::Stack,
        source: "On-Ramp, figure 7: below the transport"
    },
});

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
    /// What is taken off its delays, so that they compare with those of the shortest path.
    longer: Time,
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
        spread: span(parameters.spread, 0),
        reference: span(parameters.reference, 1),
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
        reserved: [0; 2],
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
        Condition::new("spread", "release", &["paced"]),
        Condition::new("reference", "release", &["paced"]),
        Condition::new("step", "release", &["clocked"]),
        Condition::new("gain", "release", &["clocked"]),
        Condition::new("quantum", "release", &["quantised"]),
        Condition::new("small_quantum", "release", &["quantised"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::Paper {
            defaults.threshold = Time::from_us(30);
        }
        // A threshold that is refused is so by its own name.
        let threshold = chosen("threshold", defaults.threshold, given)?;
        defaults.spread = fair_spread(path, threshold);
        defaults.quantum = threshold.clamp(Time::from_ns(1), Time::from_ms(1000));
        let quantum = chosen("quantum", defaults.quantum, given)?;
        defaults.small_quantum = Time::from_ps(quantum.ps() / 8).max(Time::from_ns(1));
        let parameters = defaults.with(given)?;
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
    fn start(constants: &Arc<Constants>, _path: &Path, longer: Time, _now: Time) -> Self {
        let longer = match constants.parameters.base_delay {
            BaseDelay::Path => longer,
            BaseDelay::Fabric => Time::ZERO,
        };
        Self { decision: constants.start, longer }
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
        let delay = one_way_delay.saturating_sub(self.longer.ps() as i64);
        self.decision.on_report(nanoseconds(now), nanoseconds(sent), delay.div_euclid(1000));
    }
}
