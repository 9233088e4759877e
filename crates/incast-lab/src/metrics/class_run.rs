//! What the entries of the table are computed from.

use super::{
    Number,
    backlog::{self, Load, Trend},
    convergence::{HELD_ROUND_TRIPS, convergence},
    rates::{Extent, Sampling, extents},
    requests::Request,
    statistics::{Distribution, Sample, Statistic, jain, size_bin},
};
use incast_sim::{
    Outcome,
    outcome::{FlowRecord, Totals},
};
use incast_units::Time;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::Range};

/// Slowdown of the flows of a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeBin {
    /// Largest size of the bin, in bytes.
    pub upto_bytes: u64,
    /// Flows in it.
    pub flows: u64,
    /// Mean slowdown.
    pub mean: Option<f64>,
    /// Median slowdown.
    pub p50: Option<f64>,
    /// 95th percentile of the slowdown.
    pub p95: Option<f64>,
    /// 99th percentile of the slowdown.
    pub p99: Option<f64>,
    /// Lower bound of an unknown mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_at_least: Option<f64>,
    /// Lower bound of an unknown median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_at_least: Option<f64>,
    /// Lower bound of an unknown 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_at_least: Option<f64>,
    /// Lower bound of an unknown 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_at_least: Option<f64>,
}

impl SizeBin {
    fn new(upto_bytes: u64, slowdown: &Distribution) -> Self {
        let Statistic { value: mean, at_least: mean_at_least } = slowdown.mean();
        let [p50, p95, p99] = [500, 950, 990].map(|per_mille| slowdown.percentile(per_mille));
        Self {
            upto_bytes,
            flows: slowdown.len() as u64,
            mean,
            p50: p50.value,
            p95: p95.value,
            p99: p99.value,
            mean_at_least,
            p50_at_least: p50.at_least,
            p95_at_least: p95.at_least,
            p99_at_least: p99.at_least,
        }
    }
}

/// The counted flows and requests of a class, of one run or of several together.
#[derive(Clone, Debug)]
pub struct FlowStatistics {
    /// Counted flows.
    pub flows: u64,
    /// Those of them that were delivered.
    pub completed: u64,
    /// Time to delivery, in microseconds.
    pub fct_us: Distribution,
    /// Time to delivery over that of the same flow alone.
    pub slowdown: Distribution,
    /// Slowdown by flow size.
    pub by_size: Vec<SizeBin>,
    /// Time until the last flow of a request was delivered, in microseconds.
    pub rct_us: Distribution,
    /// Trend of what waits, without long flows.
    pub trend: Option<Trend>,
}

impl FlowStatistics {
    /// Of counted flows and requests, each with the time at which its run ended: what was not delivered took at least
    /// until then.
    pub fn new<'a>(
        flows: impl Iterator<Item = (&'a FlowRecord, Time)>,
        requests: impl Iterator<Item = (&'a Request, Time)>,
        trend: Option<Trend>,
    ) -> Self {
        let (mut fct, mut slow, mut rct) = (Sample::default(), Sample::default(), Sample::default());
        let mut bins: BTreeMap<u64, Sample> = BTreeMap::new();
        let mut completed = 0;
        for (flow, ended_at) in flows {
            completed += u64::from(flow.delivered.is_some());
            time(&mut fct, flow.start, flow.delivered, ended_at);
            let bin = bins.entry(size_bin(flow.bytes)).or_default();
            match slowdown(flow) {
                Some(value) => {
                    slow.add(value);
                    bin.add(value);
                }
                None => {
                    // Nothing is faster than alone, even where no route gives that time.
                    let so_far = ended_at.saturating_sub(flow.start).ps() as f64;
                    let bound = flow.ideal.map_or(1.0, |ideal| so_far / ideal.ps().max(1) as f64);
                    slow.add_at_least(bound.max(1.0));
                    bin.add_at_least(bound.max(1.0));
                }
            }
        }
        for (request, ended_at) in requests {
            time(&mut rct, request.start, request.completion, ended_at);
        }
        let fct_us = fct.distribution();
        Self {
            flows: fct_us.len() as u64,
            completed,
            fct_us,
            slowdown: slow.distribution(),
            by_size: bins.into_iter().map(|(upto, sample)| SizeBin::new(upto, &sample.distribution())).collect(),
            rct_us: rct.distribution(),
            trend,
        }
    }
}

/// Adds the time from `start` to `end`; without an end, at least that to the end of the run.
fn time(sample: &mut Sample, start: Time, end: Option<Time>, ended_at: Time) {
    let until = |end: Time| end.saturating_sub(start).as_us_f64();
    match end {
        Some(end) => sample.add(until(end)),
        None => sample.add_at_least(until(ended_at)),
    }
}

/// Time to delivery over the time that the same flow takes alone.
pub fn slowdown(flow: &FlowRecord) -> Option<f64> {
    let (delivered, ideal) = (flow.delivered?, flow.ideal?);
    (ideal > Time::ZERO).then(|| delivered.saturating_sub(flow.start).ps() as f64 / ideal.ps() as f64)
}

/// The flows of a class in one run.
#[derive(Clone, Debug)]
pub struct ClassRun<'a> {
    /// The run's counters.
    pub totals: &'a Totals,
    /// CPU seconds of the run.
    pub cpu_s: f64,
    /// Counted flows and requests.
    pub statistics: FlowStatistics,
    /// What the workloads put on links.
    pub load: Option<Load>,
    /// Sum of the rates that are assigned to the sampled flows.
    pub assigned_gbps: Extent,
    /// Sum of the rates that were measured of the same flows.
    pub measured_gbps: Extent,
    outcome: &'a Outcome,
    period: Range<Time>,
    counted: Vec<&'a FlowRecord>,
    long: Vec<&'a FlowRecord>,
}

impl<'a> ClassRun<'a> {
    /// Of the class's flows and counted requests. Flows that start in `counted` count; `is_long` knows the workloads of
    /// long flows by their class; rates were sampled every so often, if they were.
    pub fn new(
        outcome: &'a Outcome,
        flows: &[&'a FlowRecord],
        requests: impl Iterator<Item = &'a Request>,
        counted: &Range<Time>,
        is_long: impl Fn(u16) -> bool,
        sampled_every: Option<Time>,
        load: Option<Load>,
    ) -> Self {
        let only = |of: &dyn Fn(&FlowRecord) -> bool| -> Vec<&'a FlowRecord> {
            flows.iter().copied().filter(|flow| of(flow)).collect()
        };
        let counting = only(&|flow| counted.contains(&flow.start));
        let ended_at = outcome.ended_at;
        let with_end = |flow: &&'a FlowRecord| (*flow, ended_at);
        let (assigned_gbps, measured_gbps) = sampled_every.map_or_else(Default::default, |every| {
            extents(flows, &outcome.rates, &Sampling { every, from: counted.start, until: counted.end })
        });
        let passing = flows.iter().copied().filter(|flow| !is_long(flow.class));
        let backlog = backlog::series(passing, counted, ended_at);
        Self {
            totals: &outcome.totals,
            cpu_s: outcome.cost.cpu_s,
            statistics: FlowStatistics::new(
                counting.iter().map(with_end),
                requests.map(|request| (request, ended_at)),
                backlog.and_then(|series| backlog::trend(&[series])),
            ),
            load,
            assigned_gbps,
            measured_gbps,
            outcome,
            period: counted.clone(),
            counted: counting,
            long: only(&|flow| is_long(flow.class)),
        }
    }

    /// The sum over the counted flows.
    pub fn sum(&self, of: impl Fn(&FlowRecord) -> u64) -> Number {
        Number::Count(self.counted.iter().map(|flow| of(flow)).sum())
    }

    /// Payload of counted flows that arrived, over the time to the last of their deliveries.
    pub fn goodput_gbps(&self) -> Option<f64> {
        let ended_at = self.outcome.ended_at;
        let last = self.counted.iter().map(|flow| flow.delivered.unwrap_or(ended_at)).max()?;
        let span = last.saturating_sub(self.period.start);
        let bytes: u64 = self.counted.iter().map(|flow| delivered_bytes(flow)).sum();
        (span > Time::ZERO).then(|| bytes as f64 * 8000.0 / span.ps() as f64)
    }

    /// The largest part of its rate that any link carried.
    pub fn busiest_link(&self) -> f64 {
        self.outcome.busiest_link
    }

    /// Mean payload rate of the long flows from start to end.
    pub fn long_flow_gbps(&self) -> Option<f64> {
        mean(&self.rates_gbps(&self.long))
    }

    /// Jain's index over the rates of long flows, or of counted flows that all have one size: rates of flows of
    /// different sizes differ even under perfect sharing.
    pub fn jain(&self) -> Option<f64> {
        let same_size = self.counted.windows(2).all(|pair| pair[0].bytes == pair[1].bytes);
        match (self.long.len() >= 2, same_size) {
            (true, _) => jain(&self.rates_gbps(&self.long)),
            (false, true) => jain(&self.rates_gbps(&self.counted)),
            (false, false) => None,
        }
    }

    /// Time until Jain's index of the assigned rates stays at `fair`.
    pub fn convergence(&self, fair: f64) -> Option<Time> {
        let sampled = if self.long.is_empty() { &self.counted } else { &self.long };
        let held = self.outcome.base_rtt.saturating_mul(HELD_ROUND_TRIPS);
        convergence(sampled, &self.outcome.rates, fair, held)
    }

    /// The same in base round trips.
    pub fn convergence_rtts(&self, fair: f64) -> Option<f64> {
        let (time, base_rtt) = (self.convergence(fair)?, self.outcome.base_rtt);
        (base_rtt > Time::ZERO).then(|| time.ps() as f64 / base_rtt.ps() as f64)
    }

    /// Payload rates of flows from start to end.
    fn rates_gbps(&self, flows: &[&FlowRecord]) -> Vec<f64> {
        let rate = |flow: &&FlowRecord| {
            let life = flow.delivered.unwrap_or(self.outcome.ended_at).saturating_sub(flow.start);
            if life == Time::ZERO { 0.0 } else { delivered_bytes(flow) as f64 * 8000.0 / life.ps() as f64 }
        };
        flows.iter().map(rate).collect()
    }
}

fn delivered_bytes(flow: &FlowRecord) -> u64 {
    if flow.delivered.is_some() { flow.bytes } else { flow.delivered_bytes }
}

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
