//! Figures of `fct.txt`: slowdowns as the peer's analysis has them.
//!
//! A slowdown is the completion time at the sender over the time alone, at least 1. The p-th percentile of n sorted
//! values is the one at index int(n p).

use crate::import::text::{ImportError, Text, whole};
use serde::Serialize;
use std::{collections::BTreeMap, path::Path};

/// Lower edges of the bins of sizes, in bytes.
pub const EDGES: [u64; 6] = [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// What identifies a flow: addresses and source port.
pub type Key = (String, String, u64);

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Payload bytes.
    pub bytes: u64,
    /// Start on the peer's clock, in nanoseconds.
    pub start: u64,
    /// Completion time, in nanoseconds.
    pub fct: u64,
    /// The same alone, by the peer's formula.
    pub standalone: u64,
}

impl Flow {
    /// At least 1.
    pub fn slowdown(&self) -> f64 {
        (self.fct as f64 / self.standalone.max(1) as f64).max(1.0)
    }
}

/// A fault of a file as a whole.
pub fn unusable(path: &Path, message: &str) -> ImportError {
    ImportError { file: path.to_owned(), line: 0, message: message.to_owned() }
}

/// Reads the file.
///
/// # Errors
/// A line that has not eight words, or a number that is none.
pub fn read(text: &Text) -> Result<BTreeMap<Key, Flow>, ImportError> {
    let mut flows = BTreeMap::new();
    for line in text.lines() {
        let [source, destination, port, _, bytes, start, fct, standalone] = line.words[..] else {
            let found = line.words.len();
            return Err(text.error(
                line.number,
                format!("found {found} words, wanted is `sip dip sport dport size start fct standalone`"),
            ));
        };
        let number = |what: &str, word: &str| {
            whole(what, word, 0..=u64::MAX).map_err(|message| text.error(line.number, message))
        };
        let key = (source.to_owned(), destination.to_owned(), number("sport", port)?);
        let flow = Flow {
            bytes: number("size", bytes)?,
            start: number("start", start)?,
            fct: number("fct", fct)?,
            standalone: number("standalone", standalone)?,
        };
        if flows.insert(key, flow).is_some() {
            return Err(text.error(line.number, "this flow is there twice"));
        }
    }
    if flows.is_empty() {
        return Err(text.error(0, "found no flows"));
    }
    Ok(flows)
}

/// Figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Mean slowdown.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest completion time, in nanoseconds.
    pub last_ns: u64,
    /// The longest sampled queue of the bottleneck, in bytes.
    pub largest_queue: Option<u64>,
    /// Pauses.
    pub pauses: Option<u64>,
}

/// At index int(n p); 0 of nothing.
pub(super) fn percentile(sorted: &[f64], p: f64) -> f64 {
    let index = (sorted.len() as f64 * p) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

fn sorted_slowdowns(flows: &[Flow]) -> Vec<f64> {
    let mut slowdowns: Vec<f64> = flows.iter().map(Flow::slowdown).collect();
    slowdowns.sort_by(f64::total_cmp);
    slowdowns
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Figures {
    /// Of flows, without queue and pauses.
    pub fn of(flows: &[Flow]) -> Self {
        let sorted = sorted_slowdowns(flows);
        Self {
            mean: mean(&sorted),
            p50: percentile(&sorted, 0.5),
            p95: percentile(&sorted, 0.95),
            p99: percentile(&sorted, 0.99),
            last_ns: flows.iter().map(|flow| flow.fct).max().unwrap_or(0),
            largest_queue: None,
            pauses: None,
        }
    }

    /// The least and the largest of each.
    pub fn range(all: &[Self]) -> (Self, Self) {
        let first = all.first().cloned().unwrap_or_default();
        let fold = |pick: fn(f64, f64) -> f64, whole: fn(u64, u64) -> u64| {
            all.iter().fold(first.clone(), |sum, one| Self {
                mean: pick(sum.mean, one.mean),
                p50: pick(sum.p50, one.p50),
                p95: pick(sum.p95, one.p95),
                p99: pick(sum.p99, one.p99),
                last_ns: whole(sum.last_ns, one.last_ns),
                largest_queue: sum.largest_queue.zip(one.largest_queue).map(|(a, b)| whole(a, b)),
                pauses: sum.pauses.zip(one.pauses).map(|(a, b)| whole(a, b)),
            })
        };
        (fold(f64::min, u64::min), fold(f64::max, u64::max))
    }

    /// Whether all slowdowns, the last completion and the queue are between those of a range.
    pub fn is_within(&self, (least, most): &(Self, Self)) -> bool {
        let between = |of: fn(&Self) -> f64| (of(least)..=of(most)).contains(&of(self));
        let queue = |figures: &Self| figures.largest_queue.unwrap_or(0) as f64;
        between(|figures| figures.mean)
            && between(|figures| figures.p50)
            && between(|figures| figures.p95)
            && between(|figures| figures.p99)
            && between(|figures| figures.last_ns as f64)
            && (queue(least)..=queue(most)).contains(&queue(self))
    }
}

/// Slowdowns of the flows of a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Bytes of the smallest flow.
    pub from: u64,
    /// Flows.
    pub flows: usize,
    /// Mean slowdown.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Bin {
    /// Whether mean and 99th percentile are so near to those of another bin.
    pub fn is_near(&self, other: &Self, share: f64) -> bool {
        let near = |ours: f64, theirs: f64| (ours - theirs).abs() <= share * theirs;
        self.flows == other.flows && near(self.mean, other.mean) && near(self.p99, other.p99)
    }
}

/// The least and the largest of each bin over several runs with the same sizes.
pub fn ranges(runs: &[Vec<Bin>]) -> Vec<(Bin, Bin)> {
    let first = runs.first().map_or(&[][..], Vec::as_slice);
    let of = |index: usize, bin: &Bin| {
        let same = runs.iter().filter_map(|run| run.get(index));
        same.fold((bin.clone(), bin.clone()), |(least, most), one| {
            let fold = |sum: Bin, pick: fn(f64, f64) -> f64| Bin {
                mean: pick(sum.mean, one.mean),
                p99: pick(sum.p99, one.p99),
                ..sum
            };
            (fold(least, f64::min), fold(most, f64::max))
        })
    };
    first.iter().enumerate().map(|(index, bin)| of(index, bin)).collect()
}

/// The bins that have flows.
pub fn bins(flows: &[Flow]) -> Vec<Bin> {
    let bin = |index: usize| {
        let below = EDGES.get(index + 1).copied().unwrap_or(u64::MAX);
        let own: Vec<Flow> = flows.iter().copied().filter(|flow| (EDGES[index]..below).contains(&flow.bytes)).collect();
        let sorted = sorted_slowdowns(&own);
        Bin { from: EDGES[index], flows: own.len(), mean: mean(&sorted), p99: percentile(&sorted, 0.99) }
    };
    (0..EDGES.len()).map(bin).filter(|bin| bin.flows > 0).collect()
}

/// The largest distance of a completion time, as a share of theirs and in nanoseconds. A flow that one of them lacks,
/// or that starts at another time, is infinitely far.
pub fn worst(theirs: &BTreeMap<Key, Flow>, ours: &BTreeMap<Key, Flow>) -> (f64, u64) {
    let distance = |key: &Key, theirs: &Flow| match ours.get(key) {
        Some(ours) if (ours.bytes, ours.start) == (theirs.bytes, theirs.start) => {
            let apart = ours.fct.abs_diff(theirs.fct);
            (apart as f64 / theirs.fct.max(1) as f64, apart)
        }
        _ => (f64::INFINITY, u64::MAX),
    };
    let all = theirs.iter().map(|(key, theirs)| distance(key, theirs));
    all.fold((0.0, 0), |sum, one| (f64::max(sum.0, one.0), sum.1.max(one.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        Text::new(Path::new("fct.txt"), content.as_bytes().to_vec()).expect("text")
    }

    const TWO: &str = "0b000301 0b000101 10000 100 500000 2000000000 89516 46080\n\
                       0b000201 0b000101 10000 100 5000 2000000000 100285 46080\n";

    #[test]
    fn figures_are_those_of_the_peer() {
        let flows = read(&text(TWO)).expect("two flows");
        let list: Vec<Flow> = flows.values().copied().collect();
        let figures = Figures::of(&list);
        assert!((figures.mean - 2.0595).abs() < 1e-4 && (figures.p50 - 2.1763).abs() < 1e-4, "{figures:?}");
        assert_eq!(figures.last_ns, 100_285);
        let bins = bins(&list);
        assert_eq!(bins.iter().map(|bin| (bin.from, bin.flows)).collect::<Vec<_>>(), [(1_000, 1), (100_000, 1)]);
        assert!(bins[0].is_near(&Bin { mean: bins[0].mean * 1.04, ..bins[0].clone() }, 0.05));
        assert!(!bins[0].is_near(&Bin { p99: bins[0].p99 * 1.06, ..bins[0].clone() }, 0.05));
    }

    #[test]
    fn distances_know_what_is_missing() {
        let theirs = read(&text(TWO)).expect("two flows");
        assert_eq!(worst(&theirs, &theirs), (0.0, 0));
        let near = read(&text(&TWO.replace("100285", "100385"))).expect("two flows");
        assert_eq!(worst(&theirs, &near).1, 100);
        let late = read(&text(&TWO.replacen("2000000000", "2000000001", 1))).expect("two flows");
        assert_eq!(worst(&theirs, &late), (f64::INFINITY, u64::MAX));
        let half = read(&text(TWO.lines().next().unwrap_or(""))).expect("a flow");
        assert_eq!(worst(&theirs, &half).1, u64::MAX);
    }

    #[test]
    fn ranges_hold_what_they_are_made_of() {
        let figures = |mean: f64, queue: u64| Figures { mean, largest_queue: Some(queue), ..Figures::default() };
        let range = Figures::range(&[figures(1.0, 5), figures(3.0, 2), figures(2.0, 3)]);
        assert_eq!((range.0.mean, range.1.mean), (1.0, 3.0));
        assert_eq!((range.0.largest_queue, range.1.largest_queue), (Some(2), Some(5)));
        assert!(figures(1.5, 4).is_within(&range));
        assert!(!figures(0.5, 4).is_within(&range) && !figures(1.5, 6).is_within(&range));
        assert!(!Figures { p95: 0.1, ..figures(1.5, 4) }.is_within(&range));
        assert!(!Figures { p99: 0.1, ..figures(1.5, 4) }.is_within(&range));
        let one = Figures::range(&[figures(1.0, 5)]);
        assert!(figures(1.0, 5).is_within(&one) && !figures(1.1, 5).is_within(&one));
    }

    #[test]
    fn bins_of_several_runs_have_ranges() {
        let bin = |mean: f64, p99: f64| vec![Bin { from: 0, flows: 1, mean, p99 }];
        let [(least, most)] = &ranges(&[bin(1.0, 9.0), bin(2.0, 7.0), bin(1.5, 8.0)])[..] else { panic!("one bin") };
        assert_eq!((least.mean, most.mean, least.p99, most.p99), (1.0, 2.0, 7.0, 9.0));
    }

    #[test]
    fn bad_files_have_a_line() {
        for (content, line) in [("", 0), ("a b\n", 1), ("\na b x 1 1 1 1 1\n", 2), ("a b 1 1 1 1 -1 1\n", 1)] {
            assert_eq!(read(&text(content)).expect_err(content).line, line, "{content}");
        }
        assert_eq!(read(&text(&format!("{TWO}{TWO}"))).expect_err("twice").line, 3);
    }
}
