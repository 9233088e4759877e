//! The rows of `summary.json`.

use super::{
    convergence::{HELD_ROUND_TRIPS, convergence},
    parquet::slowdown,
    rates::{Extent, Sampling, extents},
    requests::{self, Request},
    statistics::{Distribution, Interval, Sample, confidence, jain, size_bin},
};
use crate::scenario::SizeRange;
use incast_sim::{
    Outcome,
    outcome::{FlowRecord, Totals},
};
use incast_units::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Name of the class that stands for all of them.
pub const ALL: &str = "all";

/// Which seeds a row covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Seed {
    /// One run.
    One(u64),
    /// All of them, pooled: the string `"all"`.
    Pooled(String),
}

/// Packets marked, by where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// At ports that lead to hosts.
    pub edge: u64,
    /// At the others.
    pub fabric: u64,
}

/// Base round trips until Jain's index stays at 0.90, 0.95 and 0.99.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// At 0.90.
    pub j90: Option<f64>,
    /// At 0.95.
    pub j95: Option<f64>,
    /// At 0.99.
    pub j99: Option<f64>,
}

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

/// One row: a grid point, a scheme, a class, and a seed or all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the class, or `all`.
    pub class: String,
    /// The seed, or `"all"`.
    pub seed: Seed,
    /// The grid point.
    pub grid: Map<String, Value>,
    /// Runs pooled; 1 for a row of one seed.
    pub runs: u64,
    /// Counted flows: those that start from `warmup` on and before `duration`.
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
    /// Payload of counted flows delivered, over the time from `warmup` to the last of these deliveries.
    pub goodput_gbps: Option<f64>,
    /// Mean payload rate of a flow of the `long` workloads over its life.
    pub long_flow_gbps: Option<f64>,
    /// Packets dropped for lack of buffer, in the whole run. This and the other sums over the fabric are `null` in rows of a class.
    pub drops: Option<u64>,
    /// Packets lost on wires, on links that went down, or without a route.
    pub lost: Option<u64>,
    /// Packets trimmed.
    pub trims: Option<u64>,
    /// Packets marked.
    pub marks: Option<Marks>,
    /// Payload that counted flows sent again, in bytes.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts of counted flows.
    pub timeouts: u64,
    /// Data packets of counted flows that arrived with CE: of those, what senders hear of.
    #[serde(default)]
    pub marked_packets: u64,
    /// Data packets of counted flows that arrived after one with a later position.
    #[serde(default)]
    pub reordered_packets: u64,
    /// Deflections of data packets of counted flows that arrived.
    #[serde(default)]
    pub deflections: u64,
    /// Pause edges.
    pub pfc_pauses: Option<u64>,
    /// Time ports were paused, added up, in microseconds.
    pub pfc_paused_us: Option<f64>,
    /// Circles of paused queues that wait for each other.
    #[serde(default)]
    pub pfc_cycles: Option<u64>,
    /// Pauses that lasted without a reason.
    #[serde(default)]
    pub pfc_stranded: Option<u64>,
    /// Packets of lossless priorities dropped for lack of headroom: some of `drops`.
    #[serde(default)]
    pub lossless_drops: Option<u64>,
    /// Longest egress queue.
    pub max_queue_bytes: Option<u64>,
    /// Rates that laws assign to the sampled flows of the class, added up over these; `null` where none were sampled.
    #[serde(default)]
    pub assigned_gbps: Extent,
    /// Payload of the same flows that was acknowledged.
    #[serde(default)]
    pub measured_gbps: Extent,
    /// Jain's index of flow rates: of the long flows, or of flows of one size; `null` otherwise.
    pub jain: Option<f64>,
    /// Time until rates were shared fairly (Jain's index 0.95); `null` where rates were not sampled or never settled.
    pub convergence_us: Option<f64>,
    /// The same in base round trips, for several indices.
    #[serde(default)]
    pub convergence_rtts: Convergence,
    /// Link traversals.
    pub packet_hops: Option<u64>,
    /// CPU seconds.
    pub cpu_s: Option<f64>,
    /// CPU nanoseconds per link traversal.
    pub ns_per_packet_hop: Option<f64>,
    /// In pooled rows: 95% confidence intervals over the seeds, by metric; `null` with one seed or where a seed's value is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<BTreeMap<String, Option<Interval>>>,
}

/// Metrics that a pooled row adds up. The others are pooled over flows, averaged, or the largest.
const SUMS: [&str; 17] = [
    "drops",
    "lost",
    "trims",
    "marks.edge",
    "marks.fabric",
    "retransmitted_bytes",
    "timeouts",
    "marked_packets",
    "reordered_packets",
    "deflections",
    "pfc_pauses",
    "pfc_paused_us",
    "pfc_cycles",
    "pfc_stranded",
    "lossless_drops",
    "packet_hops",
    "cpu_s",
];

/// A metric of pooled rows is the sum over their runs.
pub fn is_sum(metric: &str) -> bool {
    SUMS.contains(&metric)
}

impl Row {
    /// Every number of the row by the name that claims use, in the order of the file.
    pub fn numbers(&self) -> Vec<(String, Option<f64>)> {
        let count = |value: Option<u64>| value.map(|value| value as f64);
        let mut all = vec![
            ("flows".to_owned(), count(Some(self.flows))),
            ("completed".to_owned(), count(Some(self.completed))),
        ];
        for (group, distribution) in
            [("fct_us", &self.fct_us), ("slowdown", &self.slowdown), ("rct_us", &self.rct_us)]
        {
            all.extend(distribution.values().map(|(name, value)| (format!("{group}.{name}"), value)));
        }
        all.extend(
            [
                ("goodput_gbps", self.goodput_gbps),
                ("long_flow_gbps", self.long_flow_gbps),
                ("drops", count(self.drops)),
                ("lost", count(self.lost)),
                ("trims", count(self.trims)),
                ("marks.edge", count(self.marks.map(|marks| marks.edge))),
                ("marks.fabric", count(self.marks.map(|marks| marks.fabric))),
                ("retransmitted_bytes", count(Some(self.retransmitted_bytes))),
                ("timeouts", count(Some(self.timeouts))),
                ("marked_packets", count(Some(self.marked_packets))),
                ("reordered_packets", count(Some(self.reordered_packets))),
                ("deflections", count(Some(self.deflections))),
                ("pfc_pauses", count(self.pfc_pauses)),
                ("pfc_paused_us", self.pfc_paused_us),
                ("pfc_cycles", count(self.pfc_cycles)),
                ("pfc_stranded", count(self.pfc_stranded)),
                ("lossless_drops", count(self.lossless_drops)),
                ("max_queue_bytes", count(self.max_queue_bytes)),
                ("assigned_gbps.min", self.assigned_gbps.min),
                ("assigned_gbps.mean", self.assigned_gbps.mean),
                ("measured_gbps.min", self.measured_gbps.min),
                ("measured_gbps.mean", self.measured_gbps.mean),
                ("jain", self.jain),
                ("convergence_us", self.convergence_us),
                ("convergence_rtts.j90", self.convergence_rtts.j90),
                ("convergence_rtts.j95", self.convergence_rtts.j95),
                ("convergence_rtts.j99", self.convergence_rtts.j99),
                ("packet_hops", count(self.packet_hops)),
                ("cpu_s", self.cpu_s),
                ("ns_per_packet_hop", self.ns_per_packet_hop),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        all
    }

    /// One of [`Row::numbers`].
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.numbers().into_iter().find(|(name, _)| name == metric)?.1
    }

    /// The lower bound of a metric that is unknown as flows did not finish.
    pub fn bound(&self, metric: &str) -> Option<f64> {
        let (group, statistic) = metric.split_once('.')?;
        let distribution = match group {
            "fct_us" => &self.fct_us,
            "slowdown" => &self.slowdown,
            "rct_us" => &self.rct_us,
            _ => return None,
        };
        distribution.bounds().into_iter().find(|(known, _)| *known == statistic)?.1
    }

    /// The confidence interval of a metric in a pooled row.
    pub fn interval(&self, metric: &str) -> Option<Interval> {
        *self.ci95.as_ref()?.get(metric)?
    }

    /// The row pools all seeds.
    pub fn is_pooled(&self) -> bool {
        matches!(self.seed, Seed::Pooled(_))
    }
}

/// What identifies a run's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name of the scheme.
    pub scheme: String,
    /// The grid point.
    pub grid: Map<String, Value>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Which of them are workloads of long flows.
    pub long: Vec<bool>,
    /// Sizes of flows that have rows of their own.
    pub sizes: Vec<SizeRange>,
    /// Flows that start earlier do not count.
    pub counted_from: Time,
    /// Flows that start then or later do not count.
    pub counted_until: Time,
    /// Period of the samples of rates, where there are some.
    pub sampled_every: Option<Time>,
}

/// Which flows a row is about.
#[derive(Clone, Copy, Debug)]
enum Of<'k> {
    Class(u16),
    Sizes(&'k SizeRange),
    All,
}

impl Of<'_> {
    fn has(self, flow: &FlowRecord) -> bool {
        match self {
            Self::Class(class) => class == flow.class,
            Self::Sizes(sizes) => sizes.contains(flow.bytes),
            Self::All => true,
        }
    }

    /// Requests are not of one size.
    fn has_requests_of(self, class: u16) -> bool {
        match self {
            Self::Class(own) => own == class,
            Self::Sizes(_) => false,
            Self::All => true,
        }
    }
}

impl Key {
    fn counts(&self, start: Time) -> bool {
        self.counted_from <= start && start < self.counted_until
    }

    /// The classes of rows, in their order: each class, each of the sizes, and all.
    fn row_classes(&self) -> impl Iterator<Item = (Of<'_>, &str)> {
        let each = self.classes.iter().enumerate();
        let sizes = self.sizes.iter().map(|sizes| (Of::Sizes(sizes), sizes.name.as_str()));
        each.map(|(index, name)| (Of::Class(index as u16), name.as_str()))
            .chain(sizes)
            .chain([(Of::All, ALL)])
    }

    fn is_long(&self, class: u16) -> bool {
        self.long.get(usize::from(class)).copied().unwrap_or(false)
    }
}

/// Flows of one run, and when it ended.
#[derive(Clone, Copy, Debug)]
pub struct RunFlows<'a> {
    /// All flows.
    pub flows: &'a [FlowRecord],
    /// Their groups.
    pub requests: &'a [Request],
    /// What was not delivered took at least until then.
    pub ended_at: Time,
}

/// What is computed from the flows of one or several runs alone.
struct FlowStatistics {
    flows: u64,
    completed: u64,
    fct_us: Distribution,
    slowdown: Distribution,
    by_size: Vec<SizeBin>,
    rct_us: Distribution,
}

fn flow_statistics(key: &Key, of: Of<'_>, runs: &[RunFlows<'_>]) -> FlowStatistics {
    let (mut fct, mut slow, mut rct) = (Sample::default(), Sample::default(), Sample::default());
    let mut bins: BTreeMap<u64, Sample> = BTreeMap::new();
    let mut completed = 0;
    for run in runs {
        for flow in run.flows.iter().filter(|flow| of.has(flow) && key.counts(flow.start)) {
            let bin = bins.entry(size_bin(flow.bytes)).or_default();
            match flow.delivered {
                Some(delivered) => {
                    completed += 1;
                    fct.add(delivered.saturating_sub(flow.start).as_us_f64());
                }
                None => fct.add_at_least(run.ended_at.saturating_sub(flow.start).as_us_f64()),
            }
            match slowdown(flow) {
                Some(value) => {
                    slow.add(value);
                    bin.add(value);
                }
                None => {
                    // Nothing is faster than alone, even where no route says how fast that is.
                    let so_far = run.ended_at.saturating_sub(flow.start).ps() as f64;
                    let bound = flow.ideal.map_or(1.0, |ideal| so_far / ideal.ps().max(1) as f64);
                    slow.add_at_least(bound.max(1.0));
                    bin.add_at_least(bound.max(1.0));
                }
            }
        }
        let counts = |request: &&Request| of.has_requests_of(request.class) && key.counts(request.start);
        for request in run.requests.iter().filter(counts) {
            match request.completion {
                Some(completion) => rct.add(completion.saturating_sub(request.start).as_us_f64()),
                None => rct.add_at_least(run.ended_at.saturating_sub(request.start).as_us_f64()),
            }
        }
    }
    let by_size = bins.into_iter().map(|(upto_bytes, sample)| size_row(upto_bytes, sample)).collect();
    FlowStatistics {
        flows: fct.len() as u64,
        completed,
        fct_us: fct.distribution(),
        slowdown: slow.distribution(),
        by_size,
        rct_us: rct.distribution(),
    }
}

fn size_row(upto_bytes: u64, sample: Sample) -> SizeBin {
    let flows = sample.len() as u64;
    let d = sample.distribution();
    SizeBin {
        upto_bytes,
        flows,
        mean: d.mean,
        p50: d.p50,
        p95: d.p95,
        p99: d.p99,
        mean_at_least: d.mean_at_least,
        p50_at_least: d.p50_at_least,
        p95_at_least: d.p95_at_least,
        p99_at_least: d.p99_at_least,
    }
}

/// Rows of one run: one per class, then `all`.
pub fn rows_of_run(key: &Key, seed: u64, outcome: &Outcome, requests: &[Request]) -> Vec<Row> {
    let run = RunFlows { flows: &outcome.flows, requests, ended_at: outcome.ended_at };
    key.row_classes()
        .map(|(of, name)| {
            let of_class: Vec<&FlowRecord> = outcome.flows.iter().filter(|flow| of.has(flow)).collect();
            let counted: Vec<&FlowRecord> =
                of_class.iter().copied().filter(|flow| key.counts(flow.start)).collect();
            let long: Vec<&FlowRecord> =
                of_class.iter().copied().filter(|flow| key.is_long(flow.class)).collect();
            let statistics = flow_statistics(key, of, &[run]);
            let fabric = matches!(of, Of::All).then_some(&outcome.totals);
            let cost = fabric.map(|_| outcome.cost.cpu_s);
            let sampled = if long.is_empty() { &counted } else { &long };
            let held = outcome.base_rtt.saturating_mul(HELD_ROUND_TRIPS);
            let convergence = |fair| convergence(sampled, &outcome.rates, fair, held);
            let in_rtts = |fair| {
                let time: Time = convergence(fair)?;
                (outcome.base_rtt > Time::ZERO).then(|| time.ps() as f64 / outcome.base_rtt.ps() as f64)
            };
            let mut row = row(key, name, Seed::One(seed), 1, statistics, fabric, cost);
            row.goodput_gbps = goodput_gbps(key, &counted, outcome.ended_at);
            row.long_flow_gbps =
                mean(&long.iter().map(|flow| rate_gbps(flow, outcome.ended_at)).collect::<Vec<_>>());
            row.retransmitted_bytes = counted.iter().map(|flow| flow.retransmitted_bytes).sum();
            row.timeouts = counted.iter().map(|flow| u64::from(flow.timeouts)).sum();
            row.marked_packets = counted.iter().map(|flow| u64::from(flow.marked_packets)).sum();
            row.reordered_packets = counted.iter().map(|flow| u64::from(flow.reordered_packets)).sum();
            row.deflections = counted.iter().map(|flow| u64::from(flow.deflections)).sum();
            if let Some(every) = key.sampled_every {
                let (from, until) = (key.counted_from, key.counted_until);
                let sampling = Sampling { every, from, until };
                (row.assigned_gbps, row.measured_gbps) = extents(&of_class, &outcome.rates, &sampling);
            }
            row.jain = fairness(&long, &counted, outcome.ended_at);
            row.convergence_us = convergence(0.95).map(Time::as_us_f64);
            row.convergence_rtts = Convergence { j90: in_rtts(0.9), j95: in_rtts(0.95), j99: in_rtts(0.99) };
            row
        })
        .collect()
}

fn row(
    key: &Key,
    class: &str,
    seed: Seed,
    runs: u64,
    flows: FlowStatistics,
    fabric: Option<&Totals>,
    cpu_s: Option<f64>,
) -> Row {
    let hops = fabric.map(|totals| totals.packet_hops);
    Row {
        scheme: key.scheme.clone(),
        class: class.to_owned(),
        seed,
        grid: key.grid.clone(),
        runs,
        flows: flows.flows,
        completed: flows.completed,
        fct_us: flows.fct_us,
        slowdown: flows.slowdown,
        by_size: flows.by_size,
        rct_us: flows.rct_us,
        goodput_gbps: None,
        long_flow_gbps: None,
        drops: fabric.map(|totals| totals.drops),
        lost: fabric.map(|totals| totals.lost),
        trims: fabric.map(|totals| totals.trims),
        marks: fabric.map(|totals| Marks { edge: totals.marks_edge, fabric: totals.marks_fabric }),
        retransmitted_bytes: 0,
        timeouts: 0,
        marked_packets: 0,
        reordered_packets: 0,
        deflections: 0,
        pfc_pauses: fabric.map(|totals| totals.pauses),
        pfc_paused_us: fabric.map(|totals| totals.paused.as_us_f64()),
        pfc_cycles: fabric.map(|totals| totals.pfc_cycles),
        pfc_stranded: fabric.map(|totals| totals.pfc_stranded),
        lossless_drops: fabric.map(|totals| totals.lossless_drops),
        max_queue_bytes: fabric.map(|totals| totals.max_queue_bytes),
        assigned_gbps: Extent::default(),
        measured_gbps: Extent::default(),
        jain: None,
        convergence_us: None,
        convergence_rtts: Convergence::default(),
        packet_hops: hops,
        cpu_s,
        ns_per_packet_hop: cpu_s.zip(hops).and_then(|(cpu_s, hops)| ns_per_packet_hop(cpu_s, hops)),
        ci95: None,
    }
}

/// CPU nanoseconds per link traversal.
pub fn ns_per_packet_hop(cpu_s: f64, packet_hops: u64) -> Option<f64> {
    (packet_hops > 0).then(|| cpu_s * 1e9 / packet_hops as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn delivered_bytes(flow: &FlowRecord) -> u64 {
    if flow.delivered.is_some() { flow.bytes } else { flow.delivered_bytes }
}

/// Payload rate of a flow over its life, in Gbit/s.
fn rate_gbps(flow: &FlowRecord, ended_at: Time) -> f64 {
    let life = flow.delivered.unwrap_or(ended_at).saturating_sub(flow.start);
    if life == Time::ZERO { 0.0 } else { delivered_bytes(flow) as f64 * 8000.0 / life.ps() as f64 }
}

fn goodput_gbps(key: &Key, counted: &[&FlowRecord], ended_at: Time) -> Option<f64> {
    let last = counted.iter().map(|flow| flow.delivered.unwrap_or(ended_at)).max()?;
    let span = last.saturating_sub(key.counted_from);
    let bytes: u64 = counted.iter().map(|flow| delivered_bytes(flow)).sum();
    (span > Time::ZERO).then(|| bytes as f64 * 8000.0 / span.ps() as f64)
}

/// Jain's index over the rates of long flows, or of counted flows that all have one size: rates of flows of different
/// sizes differ even under perfect sharing.
fn fairness(long: &[&FlowRecord], counted: &[&FlowRecord], ended_at: Time) -> Option<f64> {
    let same_size = counted.windows(2).all(|pair| pair[0].bytes == pair[1].bytes);
    let flows = match (long.len() >= 2, same_size) {
        (true, _) => long,
        (false, true) => counted,
        (false, false) => return None,
    };
    jain(&flows.iter().map(|flow| rate_gbps(flow, ended_at)).collect::<Vec<_>>())
}

/// Rows that pool the runs of one grid point and scheme: `rows` are those of the single runs, `flows` their flows.
pub fn pooled_rows(key: &Key, rows: &[Vec<Row>], flows: &[RunFlows<'_>]) -> Vec<Row> {
    key.row_classes()
        .map(|(of, name)| {
            let single: Vec<&Row> =
                rows.iter().filter_map(|run| run.iter().find(|row| row.class == name)).collect();
            pooled_row(key, of, name, &single, flows)
        })
        .collect()
}

fn pooled_row(key: &Key, of: Of<'_>, name: &str, single: &[&Row], flows: &[RunFlows<'_>]) -> Row {
    let statistics = flow_statistics(key, of, flows);
    let seed = Seed::Pooled(ALL.to_owned());
    let mut pooled = row(key, name, seed, single.len() as u64, statistics, None, None);
    let averaged = |of: fn(&Row) -> Option<f64>| -> Option<f64> {
        mean(&single.iter().map(|row| of(row)).collect::<Option<Vec<_>>>()?)
    };
    let summed = |of: fn(&Row) -> Option<u64>| -> Option<u64> {
        (!single.is_empty()).then(|| single.iter().map(|row| of(row)).sum::<Option<u64>>()).flatten()
    };
    let summed_real = |of: fn(&Row) -> Option<f64>| -> Option<f64> {
        (!single.is_empty()).then(|| single.iter().map(|row| of(row)).sum::<Option<f64>>()).flatten()
    };
    pooled.goodput_gbps = averaged(|row| row.goodput_gbps);
    pooled.long_flow_gbps = averaged(|row| row.long_flow_gbps);
    pooled.drops = summed(|row| row.drops);
    pooled.lost = summed(|row| row.lost);
    pooled.trims = summed(|row| row.trims);
    let edge = summed(|row| row.marks.map(|marks| marks.edge));
    let fabric = summed(|row| row.marks.map(|marks| marks.fabric));
    pooled.marks = edge.zip(fabric).map(|(edge, fabric)| Marks { edge, fabric });
    pooled.retransmitted_bytes = single.iter().map(|row| row.retransmitted_bytes).sum();
    pooled.timeouts = single.iter().map(|row| row.timeouts).sum();
    pooled.marked_packets = single.iter().map(|row| row.marked_packets).sum();
    pooled.reordered_packets = single.iter().map(|row| row.reordered_packets).sum();
    pooled.deflections = single.iter().map(|row| row.deflections).sum();
    pooled.pfc_pauses = summed(|row| row.pfc_pauses);
    pooled.pfc_paused_us = summed_real(|row| row.pfc_paused_us);
    pooled.pfc_cycles = summed(|row| row.pfc_cycles);
    pooled.pfc_stranded = summed(|row| row.pfc_stranded);
    pooled.lossless_drops = summed(|row| row.lossless_drops);
    pooled.max_queue_bytes = single.iter().filter_map(|row| row.max_queue_bytes).max();
    pooled.assigned_gbps =
        Extent { min: averaged(|row| row.assigned_gbps.min), mean: averaged(|row| row.assigned_gbps.mean) };
    pooled.measured_gbps =
        Extent { min: averaged(|row| row.measured_gbps.min), mean: averaged(|row| row.measured_gbps.mean) };
    pooled.jain = averaged(|row| row.jain);
    pooled.convergence_us = averaged(|row| row.convergence_us);
    pooled.convergence_rtts = Convergence {
        j90: averaged(|row| row.convergence_rtts.j90),
        j95: averaged(|row| row.convergence_rtts.j95),
        j99: averaged(|row| row.convergence_rtts.j99),
    };
    pooled.packet_hops = summed(|row| row.packet_hops);
    pooled.cpu_s = summed_real(|row| row.cpu_s);
    pooled.ns_per_packet_hop =
        pooled.cpu_s.zip(pooled.packet_hops).and_then(|(cpu_s, hops)| ns_per_packet_hop(cpu_s, hops));
    pooled.ci95 = Some(intervals(single));
    pooled
}

/// Confidence intervals of every metric over the runs; those of sums are of the sum.
fn intervals(single: &[&Row]) -> BTreeMap<String, Option<Interval>> {
    let numbers: Vec<_> = single.iter().map(|row| row.numbers()).collect();
    let names = numbers.first().map_or(&[][..], Vec::as_slice).iter().map(|(name, _)| name.clone());
    names
        .enumerate()
        .filter(|(_, name)| name != "flows" && name != "completed")
        .map(|(index, name)| {
            let values: Vec<Option<f64>> = numbers.iter().map(|row| row[index].1).collect();
            let scale = if is_sum(&name) { values.len() as f64 } else { 1.0 };
            (name, confidence(&values).map(|Interval(low, high)| Interval(low * scale, high * scale)))
        })
        .collect()
}

/// Groups flows into requests and computes the rows of a run.
pub fn measure(key: &Key, seed: u64, outcome: &Outcome) -> (Vec<Request>, Vec<Row>) {
    let requests = requests::group(&outcome.flows);
    let rows = rows_of_run(key, seed, outcome, &requests);
    (requests, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::quantity::Size;
    use incast_sim::outcome::RateSample;
    use incast_units::Bytes;

    fn key() -> Key {
        Key {
            scheme: "dctcp".into(),
            grid: Map::new(),
            classes: vec!["a".into(), "b".into()],
            long: vec![false, false],
            sizes: Vec::new(),
            counted_from: Time::from_us(10),
            counted_until: Time::from_us(100),
            sampled_every: None,
        }
    }

    fn flow(class: u16, start: u64, fct: Option<u64>) -> FlowRecord {
        FlowRecord {
            class,
            bytes: 1000,
            delivered_bytes: if fct.is_some() { 1000 } else { 500 },
            start: Time::from_us(start),
            delivered: fct.map(|fct| Time::from_us(start + fct)),
            ideal: Some(Time::from_us(2)),
            request: incast_sim::FlowSpec::NO_REQUEST,
            ..FlowRecord::default()
        }
    }

    fn outcome(flows: Vec<FlowRecord>) -> Outcome {
        let totals = Totals { packet_hops: 100, drops: 3, ..Totals::default() };
        Outcome { flows, totals, ended_at: Time::from_us(1000), ..Outcome::default() }
    }

    #[test]
    fn only_flows_between_warmup_and_duration_count() {
        let all = outcome(vec![
            flow(0, 9, Some(4)),
            flow(0, 10, Some(4)),
            flow(1, 99, None),
            flow(1, 50, Some(6)),
            flow(0, 100, Some(4)),
        ]);
        let (_, rows) = measure(&key(), 1, &all);
        assert_eq!(
            rows.iter().map(|row| (row.class.as_str(), row.flows, row.completed)).collect::<Vec<_>>(),
            [("a", 1, 1), ("b", 2, 1), ("all", 3, 2)]
        );
        assert_eq!((rows[0].fct_us.mean, rows[0].slowdown.p99), (Some(4.0), Some(2.0)));
        assert_eq!((rows[1].fct_us.max, rows[1].fct_us.max_at_least), (None, Some(901.0)));
        assert_eq!(
            (rows[1].slowdown.mean, rows[1].slowdown.mean_at_least),
            (None, Some((3.0 + 450.5) / 2.0))
        );
        assert_eq!((rows[0].drops, rows[2].drops), (None, Some(3)));
        // 2,500 bytes in 990 us.
        assert!((rows[2].goodput_gbps.expect("measured") - 2500.0 * 8.0 / 990e3).abs() < 1e-12);
    }

    #[test]
    fn sizes_have_rows_of_their_own() {
        let sizes = |name: &str, over: Option<u64>, upto: Option<u64>| SizeRange {
            name: name.into(),
            over: over.map(|bytes| Size(Bytes::new(bytes))),
            upto: upto.map(|bytes| Size(Bytes::new(bytes))),
        };
        let key =
            Key { sizes: vec![sizes("short", None, Some(1000)), sizes("long", Some(1000), None)], ..key() };
        let mut large = flow(1, 20, Some(50));
        large.bytes = 1001;
        let (_, rows) = measure(&key, 1, &outcome(vec![flow(0, 20, Some(4)), flow(1, 20, Some(6)), large]));
        let found: Vec<_> = rows.iter().map(|row| (row.class.as_str(), row.flows, row.fct_us.mean)).collect();
        let expected =
            [("a", 1, 4.0), ("b", 2, 28.0), ("short", 2, 5.0), ("long", 1, 50.0), ("all", 3, 20.0)];
        assert_eq!(found, expected.map(|(class, flows, mean)| (class, flows, Some(mean))));
        assert!(rows[..4].iter().all(|row| row.drops.is_none()));
    }

    #[test]
    fn pooling_takes_all_flows_and_adds_up() {
        let runs: Vec<Outcome> =
            [[4, 6], [8, 10]].map(|fct| outcome(fct.map(|fct| flow(0, 20, Some(fct))).to_vec())).to_vec();
        let rows: Vec<Vec<Row>> =
            runs.iter().enumerate().map(|(seed, run)| measure(&key(), seed as u64, run).1).collect();
        let flows: Vec<RunFlows<'_>> = runs
            .iter()
            .map(|run| RunFlows { flows: &run.flows, requests: &[], ended_at: run.ended_at })
            .collect();
        let pooled = pooled_rows(&key(), &rows, &flows);
        let all = pooled.last().expect("a row for all classes");
        assert!(all.is_pooled());
        assert_eq!(
            (all.flows, all.fct_us.mean, all.fct_us.p50, all.drops),
            (4, Some(7.0), Some(6.0), Some(6))
        );
        let Interval(low, high) = all.interval("fct_us.mean").expect("two seeds");
        assert!(low < 7.0 && high > 7.0 && (low + high - 14.0).abs() < 1e-9);
        assert_eq!(all.interval("drops"), Some(Interval(6.0, 6.0)));
        assert_eq!(pooled[1].flows, 0);
    }

    #[test]
    fn rates_are_those_of_a_class_and_average_over_seeds() {
        let key = Key { sampled_every: Some(Time::from_us(10)), ..key() };
        let run = |gbps: [u64; 2]| {
            let flows = vec![flow(0, 0, None), flow(1, 0, None)]
                .into_iter()
                .zip(0..)
                .map(|(flow, source)| FlowRecord { source, ..flow });
            let rates = [(20, 0), (30, 0), (20, 1)].map(|(us, source)| RateSample {
                time: Time::from_us(us),
                source,
                assigned_bps: gbps[source as usize] * us * 1_000_000_000,
                measured_bps: gbps[source as usize] * 1_000_000_000,
                window_bytes: u64::MAX,
                estimate: None,
                sequence: 0,
            });
            Outcome { rates: rates.to_vec(), ..outcome(flows.collect()) }
        };
        let runs = [run([1, 2]), run([3, 2])];
        let rows: Vec<Vec<Row>> =
            runs.iter().enumerate().map(|(seed, run)| measure(&key, seed as u64, run).1).collect();
        let of = |rows: &[Row], metric: &str| -> Vec<Option<f64>> {
            rows.iter().map(|row| row.number(metric)).collect()
        };
        assert_eq!(of(&rows[0], "assigned_gbps.min"), [Some(20.0), Some(40.0), Some(30.0)]);
        assert_eq!(of(&rows[0], "assigned_gbps.mean"), [Some(25.0), Some(40.0), Some(45.0)]);
        assert_eq!(of(&rows[0], "measured_gbps.min"), [Some(1.0), Some(2.0), Some(1.0)]);
        assert_eq!(of(&rows[0], "measured_gbps.mean"), [Some(1.0), Some(2.0), Some(2.0)]);
        let flows =
            runs.each_ref().map(|run| RunFlows { flows: &run.flows, requests: &[], ended_at: run.ended_at });
        let pooled = pooled_rows(&key, &rows, &flows);
        assert_eq!(of(&pooled, "assigned_gbps.min"), [Some(40.0), Some(40.0), Some(60.0)]);
        let interval = pooled[0].interval("measured_gbps.min").expect("two seeds");
        assert!(interval.contains(2.0) && interval.0 < 1.0, "{interval:?}");
        let unsampled = measure(&Key { sampled_every: None, ..key }, 1, &runs[0]).1;
        assert_eq!(of(&unsampled, "assigned_gbps.min"), [None; 3]);
    }

    #[test]
    fn rows_survive_the_way_to_the_file_and_back() {
        let (_, rows) = measure(&key(), 3, &outcome(vec![flow(0, 20, Some(5)), flow(1, 30, None)]));
        let text = serde_json::to_string(&rows).expect("written");
        assert_eq!(serde_json::from_str::<Vec<Row>>(&text).expect("read"), rows);
        assert!(text.contains("\"seed\":3"));
    }
}
