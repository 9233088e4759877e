//! DCTCP with a rate in place of a window, as HPCC's evaluation has it for RDMA.
//!
//! Sources: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010: alpha and the cut. Y. Li et al., "HPCC: High
//! Precision Congestion Control", SIGCOMM 2019, compares with it; the released simulator (alibaba-edu, `rdma-hw.cc`)
//! was read for what it does.
//!
//! ```text
//!                 mark: R (1 - alpha / 2), at most once per round trip
//!   Increase ──────────────────────────────────────────────────────▶ Reduced
//!      ▲  each batch: R + R_AI                                         │
//!      └───────────────────────────────────────────────────────────────┘
//!                 what was sent before the cut is acknowledged
//! ```
//!
//! A batch is what one round trip acknowledges; at its end alpha takes in the share of marked packets. Readings and
//! deviations are in `docs/dctcp.md`. Losses and timeouts change nothing: the fabric is lossless.

use super::rate_based::{self, InFlight, Limit, WindowRule};
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
    /// Where the constants come from.
    pub enum Profile {
        /// Formulas of rate and base RTT.
        Scaled = "scaled",
        /// HPCC's simulator, to the letter.
        HpccLineage = "hpcc-lineage",
    }
}

rate_parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: one scenario fits every rate"
    },
    gain: f64 {
        doc: "g: weight of the newest batch in the moving average alpha.",
        default: "1/16",
        value: |_| 1.0 / 16.0,
        allowed: "in (0, 1]",
        check: |g| *g > 0.0 && *g <= 1.0,
        source: "SIGCOMM 2010; HPCC's simulator"
    },
    additive_increase: Rate {
        doc: "R_AI: what each batch without a cut adds to the rate.",
        default: "a packet per base RTT; hpcc-lineage: 615Mbps",
        value: |path| Rate::from_bps((path.wire_mss as f64 * 8e12 / path.base_rtt.ps().max(1) as f64) as u64),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "SIGCOMM 2010: one packet per round trip; HPCC's scripts: 615Mbps, 1,000B per 13us"
    },
    initial_rate: Rate {
        doc: "Rate of a new flow.",
        default: "the NIC's rate",
        value: |path| path.rate,
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "HPCC's simulator"
    },
    min_rate: Rate {
        doc: "Least rate.",
        default: "rate / 1000; hpcc-lineage: rate / 100",
        value: |path| Rate::from_bps((path.rate.bps() / 1000).max(1)),
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "ours, as TIMELY's; HPCC's scripts: 1Gbps at 100Gbps"
    },
} limit("\"rate-bdp\"", InFlight::RateBdp, "HPCC's scripts"));

/// What all flows of a fabric share. Rates in bit/s.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    line: f64,
    min_rate: f64,
    step: f64,
    mss: u64,
    limit: Limit,
    grants: granted_window::Rule,
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct DctcpRate {
    /// In bit/s.
    rate: f64,
    alpha: f64,
    /// The batch ends when this position is passed; zero before the first one.
    batch_end: u64,
    /// Packets of the batch, and how many acknowledgements of marked ones came in it.
    packets: u64,
    marked: u64,
    /// A cut was made, and what was sent before it lies below this position.
    reduced_until: Option<u64>,
    grant: Grant,
    constants: Arc<Constants>,
}

/// `alpha = (1 - g) alpha + g F`, F being the share of marked packets (SIGCOMM 2010, equation 1).
fn average(alpha: f64, gain: f64, marked: u64, packets: u64) -> f64 {
    let share = (marked as f64 / packets as f64).min(1.0);
    (1.0 - gain) * alpha + gain * share
}

/// `R (1 - alpha / 2)` (SIGCOMM 2010, equation 2, of a rate).
fn cut(rate: f64, alpha: f64) -> f64 {
    rate * (1.0 - alpha / 2.0)
}

impl SenderLaw for DctcpRate {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "dctcp-rate",
        title: "DCTCP (rate)",
        source: "Alizadeh et al., SIGCOMM 2010, with a rate as in HPCC's simulator (Li et al., SIGCOMM 2019)",
        framing: Framing::RoceV2,
        recovery: Recovery::GoBackN,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities { cnp: CnpContent::Windows, ..LawCapabilities::TIMED };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("window", "in_flight", &["bdp", "rate-bdp"]),
        Condition::new("window_rule", "in_flight", &["bdp", "rate-bdp"]),
        Condition::new("grant_timeout", "grant_until", &["timeout"]),
    ];

    fn requirements(constants: &Self::Parameters) -> Requirements {
        let is_lineage = constants.parameters.profile == Profile::HpccLineage;
        let published_with = is_lineage.then_some("hpcc-dctcp");
        Requirements { published_with, ..Requirements::of(&Self::INFO, &Self::transport(constants)) }
    }
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::HpccLineage {
            defaults = Parameters {
                window: rate_based::lineage_window(path),
                additive_increase: Rate::from_bps(615_000_000),
                min_rate: Rate::from_bps((path.rate.bps() / 100).max(1)),
                update_gap: false,
                ..defaults
            };
        }
        let parameters = defaults.with(given)?;
        let line = path.rate.as_f64();
        Ok(Arc::new(Constants {
            line,
            min_rate: parameters.min_rate.as_f64().min(line),
            step: parameters.additive_increase.as_f64(),
            mss: u64::from(path.mss).max(1),
            limit: Limit::new(parameters.in_flight, parameters.window, parameters.window_rule, path),
            grants: granted_window::Rule::new(parameters.grant_until, parameters.grant_timeout.time(), path),
            parameters,
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        Transport { updates_gap: constants.parameters.update_gap, ..Transport::of(&Self::INFO) }
    }
    fn start(constants: &Arc<Constants>, _path: &Path, _now: Time, _random: u32) -> Self {
        Self {
            rate: constants.parameters.initial_rate.as_f64().clamp(constants.min_rate, constants.line),
            alpha: 1.0,
            batch_end: 0,
            packets: 1,
            marked: 0,
            reduced_until: None,
            grant: Grant::NONE,
            constants: Arc::clone(constants),
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        let constants = &*self.constants;
        self.grant.on_ack(&constants.grants, feedback.now, feedback.rtt);
        self.marked += u64::from(feedback.marked);
        let ends_batch = feedback.acked > self.batch_end;
        if ends_batch {
            // The first batch is that of the first acknowledgement: there is nothing to average yet.
            let begins = if self.batch_end == 0 {
                0
            } else {
                self.alpha = average(self.alpha, constants.parameters.gain, self.marked, self.packets);
                self.marked = 0;
                feedback.acked
            };
            self.packets = feedback.next.saturating_sub(begins) / constants.mss + 1;
            self.batch_end = feedback.next;
        }
        if self.reduced_until.is_some_and(|end| feedback.acked > end) {
            self.reduced_until = None;
        }
        if feedback.marked > 0 && self.reduced_until.is_none() {
            self.rate = cut(self.rate, self.alpha).max(constants.min_rate);
            self.reduced_until = Some(feedback.next);
        }
        if ends_batch && self.reduced_until.is_none() {
            self.rate = (self.rate + constants.step).min(constants.line);
            self.grant.on_increase(&constants.grants);
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
    fn estimate(&self) -> Option<f32> {
        Some(self.alpha as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: f64 = 1e9;

    fn path() -> Path {
        Path::new(Rate::from_gbps(100), Time::from_us(13), 1000, 1000)
    }

    fn given(given: &[(&str, &str)]) -> Vec<(String, Raw)> {
        given.iter().map(|(key, value)| ((*key).to_owned(), Raw::Text((*value).to_owned()))).collect()
    }

    fn flow(values: &[(&str, &str)]) -> DctcpRate {
        // Without the slack of a packet.
        let values = [&[("window_rule", "fits")], values].concat();
        let constants = DctcpRate::resolve(&path(), &given(&values)).expect("allowed");
        DctcpRate::start(&constants, &path(), Time::ZERO, 0)
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
    }

    fn ack(law: &mut DctcpRate, acked: u64, next: u64, marked: u32) {
        law.on_ack(&Feedback { acked, next, marked, packets: 1, acked_bytes: 1000, ..Feedback::default() });
    }

    #[test]
    fn profiles_have_the_values_of_their_sources() {
        let scaled = DctcpRate::resolve(&path(), &[]).expect("defaults");
        // One packet of 1,000 B per 13 us: what HPCC's scripts round to 615 Mbit/s.
        assert_eq!(scaled.parameters.additive_increase, Rate::from_bps(615_384_615));
        assert_eq!(scaled.parameters.window, Bytes::new(162_500));
        let lineage = DctcpRate::resolve(&path(), &given(&[("profile", "hpcc-lineage")])).expect("allowed");
        assert_eq!(lineage.parameters.additive_increase, Rate::from_bps(615_000_000));
        assert_eq!(lineage.parameters.min_rate, Rate::from_gbps(1));
        assert!(DctcpRate::transport(&scaled).updates_gap && !DctcpRate::transport(&lineage).updates_gap);
        let refused = DctcpRate::resolve(&path(), &given(&[("profile", "paper")])).expect_err("no such profile");
        assert!(refused.to_string().contains("\"scaled\" \"hpcc-lineage\""));
    }

    #[test]
    fn the_first_mark_halves_and_one_round_trip_has_one_cut() {
        let mut law = flow(&[]);
        ack(&mut law, 1000, 10_000, 1);
        close(law.rate, 50.0 * GBPS);
        for acked in 2..=10 {
            ack(&mut law, acked * 1000, 20_000, 1);
        }
        close(law.rate, 50.0 * GBPS);
        assert_eq!(law.window(), 81_250);
        // The next round trip: 10 of 11 were marked in a batch of 11, and alpha is what its gain leaves.
        ack(&mut law, 11_000, 21_000, 0);
        let alpha = 15.0 / 16.0 + 10.0 / 11.0 / 16.0;
        close(law.alpha, alpha);
        close(law.rate, 50.0 * GBPS + 615_384_615.0);
        ack(&mut law, 12_000, 22_000, 1);
        close(law.rate, (50.0 * GBPS + 615_384_615.0) * (1.0 - alpha / 2.0));
    }

    #[test]
    fn rates_rise_by_a_step_per_batch_and_alpha_decays() {
        let mut law = DctcpRate { rate: 10.0 * GBPS, ..flow(&[]) };
        for round in 1..=20 {
            // Two acknowledgements per round trip of two packets.
            ack(&mut law, round * 2000 - 1000, round * 2000, 0);
            ack(&mut law, round * 2000, round * 2000 + 1000, 0);
        }
        close(law.rate, 10.0 * GBPS + 20.0 * 615_384_615.0);
        close(law.alpha, libm::pow(15.0 / 16.0, 19.0));
        assert_eq!(law.estimate(), Some(law.alpha as f32));
    }

    #[test]
    fn rates_stay_within_their_bounds() {
        let mut law = flow(&[]);
        for round in 1..1000 {
            ack(&mut law, round * 1000, round * 1000 + 500, 1);
        }
        assert_eq!(law.pacing_rate(), Some(Rate::from_bps(100_000_000)));
        assert_eq!(law.alpha, 1.0, "the share of marked packets is at most 1");
        for round in 1000..2000 {
            ack(&mut law, round * 1000, round * 1000 + 500, 0);
        }
        assert_eq!(law.pacing_rate(), Some(Rate::from_gbps(100)));
        law.on_timeout(Time::ZERO, 0);
        law.on_loss(&Loss { lost_bytes: 1, next: 1, ..Loss::default() });
        assert_eq!(law.pacing_rate(), Some(Rate::from_gbps(100)));
    }

    #[test]
    fn a_granted_window_lasts_until_a_batch_ends_without_a_cut() {
        let mut law = flow(&[("in_flight", "bdp")]);
        ack(&mut law, 1000, 10_000, 1);
        law.on_cnp(Time::from_us(1), &Cnp::granting(3_000));
        assert_eq!((law.window(), law.rate), (3_000, 50.0 * GBPS), "notifications do not change the rate");
        ack(&mut law, 10_000, 13_000, 0);
        assert_eq!(law.window(), 3_000);
        ack(&mut law, 11_000, 14_000, 0);
        assert_eq!(law.window(), 162_500);
        let mut law = flow(&[("grant_until", "timeout"), ("grant_timeout", "20us")]);
        law.on_cnp(Time::from_us(1), &Cnp::granting(3_000));
        ack(&mut law, 1000, 10_000, 0);
        assert_eq!((law.window(), law.next_timer()), (3_000, Time::from_us(21)));
        law.on_timer(Time::from_us(21));
        assert_eq!((law.window(), law.next_timer()), (162_500, Time::MAX));
    }
}
