//! A workload's description from a log of flows: the distribution of sizes, the load of hosts, and how bursty starts are.

use super::flow_log::FlowLog;
use incast_units::Rate;
use serde::Serialize;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap},
    fmt::Write,
};

/// Segments that the table of sizes begins with, and the most points that it gets.
const FIRST_SEGMENTS: usize = 100;
const MOST_POINTS: usize = 400;
/// The table's mean differs from that of the flows by at most this part, if so many points are enough.
const MEAN_ERROR: f64 = 5e-4;

/// What a log comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Flows.
    pub flows: usize,
    /// All their bytes.
    pub bytes: u64,
    /// Bytes of a flow.
    pub sizes: Sizes,
    /// Time between the first and the last start in seconds, where there are times.
    pub span_s: Option<f64>,
    /// Hosts, where there are senders and receivers.
    pub hosts: Option<Hosts>,
    /// Starts, where there are times.
    pub bursts: Option<Bursts>,
    /// How the log was read, and what it does not say.
    pub notes: Vec<String>,
}

/// Sizes of flows, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half of the flows are not larger.
    pub p50: u64,
    /// 90% are not.
    pub p90: u64,
    /// 99% are not.
    pub p99: u64,
    /// The largest.
    pub max: u64,
    /// Part of all bytes that the largest 1% of the flows have.
    pub share_of_largest_percent: f64,
    /// Mean of the table.
    pub table_mean: f64,
    /// The cumulative distribution, to be read with straight lines between the points: bytes and probability.
    pub table: Vec<(u64, f64)>,
}

/// Who sends and who receives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hosts {
    /// Hosts that send or receive.
    pub count: usize,
    /// Those that send.
    pub senders: usize,
    /// Those that receive.
    pub receivers: usize,
    /// Mean rate of a sender's flows in bit/s, where there are times.
    pub mean_bps: Option<f64>,
    /// The host that sends most, and its part of all bytes.
    pub busiest_sender: (String, f64),
    /// The host that receives most.
    pub busiest_receiver: (String, f64),
    /// The mean rate as a part of that of a link, where that is given.
    pub load: Option<f64>,
}

/// How starts of flows come.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// Nanoseconds that the log's times are multiples of, up to a second.
    pub resolution_ns: u64,
    /// Standard deviation over mean of the gaps between starts; 1 of a Poisson process. `None` where the log's times are
    /// too coarse.
    pub gap_variation: Option<f64>,
    /// By the length of a window.
    pub windows: Vec<Window>,
}

/// Starts in windows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Its length.
    pub ns: u64,
    /// Index of dispersion: variance over mean of the flows that start in a window; 1 of a Poisson process.
    pub dispersion: f64,
    /// Most bytes that start in a window over their mean.
    pub peak_to_mean: f64,
}

impl Fit {
    /// That of a log; `rate` is that of hosts' links.
    pub fn of(log: &FlowLog, rate: Option<Rate>) -> Self {
        let bytes = log.flows.iter().map(|flow| flow.bytes).fold(0, u64::saturating_add);
        let mut starts: Vec<(i64, u64)> =
            log.flows.iter().filter_map(|flow| Some((flow.start_ns?, flow.bytes))).collect();
        starts.sort_unstable();
        let span = starts.first().zip(starts.last()).map(|((first, _), (last, _))| last.abs_diff(*first));
        let span_s = span.map(|ns| ns as f64 / 1e9).filter(|span| *span > 0.0);
        Self {
            flows: log.flows.len(),
            bytes,
            sizes: Sizes::of(log.flows.iter().map(|flow| flow.bytes).collect()),
            span_s,
            hosts: Hosts::of(log, span_s, rate),
            bursts: span_s.map(|_| Bursts::of(&starts)),
            notes: notes(log, span),
        }
    }

    /// The table of sizes as a file that `sizes` reads.
    pub fn csv(&self, from: &str) -> String {
        let from = from.replace(char::is_control, " ");
        let Sizes { mean, table_mean, table, .. } = &self.sizes;
        let mut text = format!(
            "# {} flows of {from}: their mean is {mean:.1} B, that of this table {table_mean:.1} B\nsize_bytes,cdf\n",
            self.flows
        );
        for (size, probability) in table {
            let _ = writeln!(text, "{size},{probability}");
        }
        text
    }
}

/// Those of the log, and what could not be made of it.
fn notes(log: &FlowLog, span_ns: Option<u64>) -> Vec<String> {
    let mut notes = log.notes.clone();
    if span_ns == Some(0) {
        notes.push("all flows start within one nanosecond: neither load nor bursts are known".into());
    }
    let without = log.flows.iter().filter(|flow| flow.source.is_none() || flow.destination.is_none()).count();
    if without > 0 && without < log.flows.len() {
        notes.push(format!("{without} flows have no sender or no receiver, and do not count for hosts"));
    }
    notes
}

impl Sizes {
    /// Of at least one size.
    fn of(mut sizes: Vec<u64>) -> Self {
        sizes.sort_unstable();
        let at = |part: f64| sizes[((part * sizes.len() as f64).ceil() as usize).clamp(1, sizes.len()) - 1];
        let sum = |sizes: &[u64]| sizes.iter().map(|size| *size as f64).sum::<f64>();
        let (all, largest) = (sum(&sizes), sum(&sizes[sizes.len() - sizes.len().div_ceil(100)..]));
        let table = table(&sizes);
        let first = table[0].0 as f64 * table[0].1;
        let lines = table.windows(2).map(|pair| (pair[0].0 as f64 + pair[1].0 as f64) / 2.0 * (pair[1].1 - pair[0].1));
        Self {
            mean: all / sizes.len() as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
            share_of_largest_percent: largest / all,
            table_mean: first + lines.sum::<f64>(),
            table,
        }
    }
}

/// Flows `after + 1` to `last` of the sorted ones, as a line from the size of `after` to that of `last`.
struct Segment {
    after: usize,
    last: usize,
    /// Bytes that the line is off by, all flows together.
    error: f64,
}

impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Segment {}

impl PartialOrd for Segment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Segment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.error.total_cmp(&other.error).then(self.after.cmp(&other.after))
    }
}

/// A few points of the distribution of sorted sizes. The segments whose line has another mean than their flows are halved
/// until the table's mean is that of all flows; a segment of one flow becomes a step.
fn table(sizes: &[u64]) -> Vec<(u64, f64)> {
    let n = sizes.len();
    let mut before = Vec::with_capacity(n + 1);
    before.push(0.0);
    for size in sizes {
        before.push(before[before.len() - 1] + *size as f64);
    }
    let segment = |after: usize, last: usize| {
        let lines = (last - after) as f64 * (sizes[after] as f64 + sizes[last] as f64) / 2.0;
        let error = (before[last + 1] - before[after + 1] - lines).abs();
        Segment { after, last, error: if last == after + 1 { 0.0 } else { error } }
    };
    let mut cuts: Vec<usize> = (0..=FIRST_SEGMENTS).map(|i| i * (n - 1) / FIRST_SEGMENTS).collect();
    cuts.dedup();
    let mut segments: BinaryHeap<Segment> = cuts.windows(2).map(|pair| segment(pair[0], pair[1])).collect();
    let mut error: f64 = segments.iter().map(|segment| segment.error).sum();
    while error > MEAN_ERROR * before[n] && segments.len() < MOST_POINTS {
        let Some(worst) = segments.pop().filter(|worst| worst.error > 0.0) else { break };
        let middle = (worst.after + worst.last) / 2;
        let halves = [segment(worst.after, middle), segment(middle, worst.last)];
        error += halves.iter().map(|half| half.error).sum::<f64>() - worst.error;
        segments.extend(halves);
    }
    let mut segments = segments.into_vec();
    segments.sort_unstable_by_key(|segment| segment.after);
    let probability = |flows: usize| flows as f64 / n as f64;
    let mut points: Vec<(u64, f64)> = vec![(sizes[0], probability(1))];
    for Segment { after, last, .. } in segments {
        if last == after + 1 && sizes[last] != sizes[after] {
            points.push((sizes[last], probability(last)));
        }
        points.push((sizes[last], probability(last + 1)));
    }
    // Of points with one size the first and the last count.
    let mut kept: Vec<(u64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        if let [.., (a, _), (b, _)] = kept[..]
            && a == b
            && b == point.0
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

impl Hosts {
    fn of(log: &FlowLog, span_s: Option<f64>, rate: Option<Rate>) -> Option<Self> {
        let mut sums = [BTreeMap::<u32, f64>::new(), BTreeMap::new()];
        let mut all = 0.0;
        for flow in &log.flows {
            let Some((source, destination)) = flow.source.zip(flow.destination) else { continue };
            for (sum, host) in sums.iter_mut().zip([source, destination]) {
                *sum.entry(host).or_default() += flow.bytes as f64;
            }
            all += flow.bytes as f64;
        }
        let busiest = |sum: &BTreeMap<u32, f64>| {
            let (host, bytes) = sum.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
            Some((log.hosts.get(*host as usize)?.clone(), bytes / all))
        };
        let count = log.hosts.len();
        let mean_bps = span_s.map(|span| all * 8.0 / span / sums[0].len() as f64);
        Some(Self {
            count,
            senders: sums[0].len(),
            receivers: sums[1].len(),
            mean_bps,
            busiest_sender: busiest(&sums[0])?,
            busiest_receiver: busiest(&sums[1])?,
            load: mean_bps.zip(rate).map(|(bps, rate)| bps / rate.as_f64()),
        })
    }
}

impl Bursts {
    /// Of starts in order, which are not all one.
    fn of(starts: &[(i64, u64)]) -> Self {
        const UNITS: [u64; 4] = [1_000_000_000, 1_000_000, 1_000, 1];
        const WINDOWS: [u64; 8] =
            [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000];
        let first = starts[0].0;
        let since = |start: i64| start.abs_diff(first);
        let span = since(starts[starts.len() - 1].0);
        let is_multiple = |unit: &u64| starts.iter().all(|(start, _)| start.unsigned_abs().is_multiple_of(*unit));
        let resolution_ns = UNITS.into_iter().find(is_multiple).unwrap_or(1);
        let gaps = || starts.windows(2).map(|pair| pair[1].0.abs_diff(pair[0].0) as f64);
        let mean = span as f64 / (starts.len() - 1) as f64;
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / (starts.len() - 1) as f64;
        // Coarse times put gaps of a whole unit, or none, where there were others.
        let is_fine = mean >= 10.0 * resolution_ns as f64;
        let window = |ns: u64| {
            // Whole windows: the last one, in which the log ends, has fewer flows.
            let whole = span / ns;
            let covered = &starts[..starts.partition_point(|(start, _)| since(*start) / ns < whole)];
            let (mut squares, mut peak) = (0.0, 0.0);
            for of_window in covered.chunk_by(|a, b| since(a.0) / ns == since(b.0) / ns) {
                squares += (of_window.len() as f64) * (of_window.len() as f64);
                peak = of_window.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>().max(peak);
            }
            let windows = whole as f64;
            let mean = covered.len() as f64 / windows;
            let bytes = covered.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>() / windows;
            Window { ns, dispersion: (squares / windows - mean * mean) / mean, peak_to_mean: peak / bytes }
        };
        // Windows of a few units, and few windows, say nothing.
        let tells = |ns: &u64| *ns >= 10 * resolution_ns && span / ns >= 20;
        Self {
            resolution_ns,
            gap_variation: is_fine.then(|| variance.sqrt() / mean),
            windows: WINDOWS.into_iter().filter(tells).map(window).collect(),
        }
    }

    /// The window with the largest index of dispersion.
    pub fn burstiest(&self) -> Option<&Window> {
        self.windows.iter().max_by(|a, b| a.dispersion.total_cmp(&b.dispersion))
    }

    /// The window with the least.
    pub fn smoothest(&self) -> Option<&Window> {
        self.windows.iter().min_by(|a, b| a.dispersion.total_cmp(&b.dispersion))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{
        distribution::Table,
        flow_log::{self, LoggedFlow},
    };
    use incast_sim::engine::random::Stream;
    use proptest::prelude::*;

    fn fit(text: &str) -> Fit {
        Fit::of(&flow_log::read(text.as_bytes()).expect("a log"), Some(Rate::from_gbps(10)))
    }

    #[test]
    fn a_few_sizes_are_steps() {
        let found = fit("100\n100\n100\n2000\n");
        assert_eq!(found.sizes.table, [(100, 0.25), (100, 0.75), (2000, 0.75), (2000, 1.0)]);
        assert_eq!((found.sizes.mean, found.sizes.table_mean), (575.0, 575.0));
        assert_eq!((found.sizes.p50, found.sizes.p99, found.sizes.max), (100, 2000, 2000));
        assert_eq!((found.hosts, found.bursts), (None, None));
        assert_eq!(fit("7\n").sizes.table, [(7, 1.0)]);
    }

    proptest! {
        /// Sizes over nine decades, some of them many times: what is drawn from the table has the mean and the quantiles of
        /// the flows.
        #[test]
        fn the_table_is_the_distribution(sizes in proptest::collection::vec((0u32..30, 1u64..1000, 1usize..40), 1..400)) {
            let sizes = sizes.iter().flat_map(|(shift, size, times)| std::iter::repeat_n(size << shift, *times));
            let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
            let found = fit(&sizes.join("\n"));
            let read = Table::parse(&found.csv("test")).expect("a table that is read back");
            let mean = read.mean_of_lines(u64::MAX);
            prop_assert!((mean / found.sizes.table_mean - 1.0).abs() < 1e-9);
            prop_assert!((mean / found.sizes.mean - 1.0).abs() < 0.01, "{mean} {}", found.sizes.mean);
            prop_assert!(found.sizes.table.len() <= 2 * MOST_POINTS + 2);
            let mut all: Vec<u64> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
            all.sort_unstable();
            // At each size, the part of flows that are not larger.
            for (size, probability) in found.sizes.table.windows(2).filter(|pair| pair[0].0 < pair[1].0).map(|pair| pair[0]) {
                let part = all.partition_point(|it| *it <= size) as f64 / all.len() as f64;
                prop_assert!((part - probability).abs() < 0.02, "{size}: {part} {probability}");
            }
        }
    }

    /// Flows that start as a Poisson process, and in batches of ten.
    #[test]
    fn batches_are_bursts() {
        let log = |batch: usize| {
            let mut stream = Stream::new(1, 2, 3);
            let mut now = 0.0;
            let flows = (0..20_000).map(|index| {
                if index % batch == 0 {
                    now -= 1e5 * batch as f64 * libm::log(1.0 - stream.uniform());
                }
                let source = Some((index % 7) as u32);
                LoggedFlow {
                    bytes: 1_000,
                    start_ns: Some(now as i64),
                    source,
                    destination: Some(7 + (index % 3) as u32),
                    line: index + 2,
                }
            });
            FlowLog {
                flows: flows.collect(),
                hosts: (0..10).map(|host| format!("h{host}")).collect(),
                notes: Vec::new(),
            }
        };
        let (even, batches) = (Fit::of(&log(1), None), Fit::of(&log(10), Some(Rate::from_gbps(1))));
        let of = |fit: &Fit| fit.bursts.clone().expect("times");
        assert!((of(&even).gap_variation.expect("fine") - 1.0).abs() < 0.03);
        // The variance of a variance is 2 / windows.
        for window in &of(&even).windows {
            let windows = 2e9 / window.ns as f64;
            assert!((window.dispersion - 1.0).abs() < 0.1 + 3.0 * libm::sqrt(2.0 / windows), "{window:?}");
        }
        let burstiest = of(&batches).burstiest().copied().expect("windows");
        assert!((8.0..20.0).contains(&burstiest.dispersion), "{burstiest:?}");
        assert!(of(&batches).gap_variation.expect("fine") > 3.0);
        // 20,000 flows of 1,000 B in about 2 s, by seven hosts with links of 1 Gbit/s.
        let hosts = batches.hosts.expect("hosts");
        assert_eq!((hosts.count, hosts.senders, hosts.receivers), (10, 7, 3));
        assert!((hosts.load.expect("a rate") - 0.0114).abs() < 0.0011, "{hosts:?}");
        assert!((hosts.busiest_receiver.1 - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn coarse_times_say_little() {
        let found = fit("ts,src,dst,bytes\n1714564800,a,b,5\n1714564801,b,a,5\n1714564900,a,c,5\n");
        let bursts = found.bursts.expect("times");
        assert_eq!((bursts.resolution_ns, found.span_s), (1_000_000_000, Some(100.0)));
        assert!(bursts.windows.iter().all(|window| window.ns >= 10_000_000_000), "{bursts:?}");
    }
}
