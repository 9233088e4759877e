//! What is measured of a run: one table, [`METRICS`], with a line for each number of `summary.json`.
//!
//! The summary, its CSV, the printed tables, claims, the scenario schema, the book and the report read this table. A
//! new metric is one entry in it.
//!
//! - `table`: the entries.
//! - [`class_run`]: what an entry is computed from: the flows of a class in one run, or in all runs of a grid point.
//! - [`values`]: the numbers of a row, measured from one run or pooled over seeds.
//! - [`statistics`]: percentiles, means and confidence intervals that never leave out an unfinished flow.
//! - [`backlog`], [`convergence`], [`rates`], [`requests`]: computations that entries share.
//! - [`page`]: the table as a page of the book.

pub mod backlog;
pub mod class_run;
pub mod convergence;
pub mod page;
pub mod rates;
pub mod requests;
pub mod statistics;
mod table;
pub mod values;

pub use class_run::{ClassRun, FlowStatistics, SizeBin};
pub use table::METRICS;
pub use values::{Number, Value, Values};

use backlog::Trend;
use statistics::Statistic;

/// What a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The flows of a class.
    Class,
    /// The whole fabric during the whole run. It has no value in rows of a class, as a queue holds packets of all
    /// classes.
    Fabric,
    /// The process that simulates. It differs from machine to machine, so that no claim can be about it.
    Process,
}

impl Scope {
    /// The word for it in the book.
    pub fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Fabric => "fabric",
            Self::Process => "process",
        }
    }
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Number,
    /// A count of packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Gbit/s.
    Gbps,
    /// A multiple of the same quantity in an idle network.
    Ratio,
    /// Round trips of the idle network.
    RoundTrips,
}

impl Unit {
    /// Its symbol in the book; empty for plain numbers.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Number | Self::Ratio => "",
            Self::Packets => "packets",
            Self::Bytes => "B",
            Self::Microseconds => "µs",
            Self::Nanoseconds => "ns",
            Self::Seconds => "s",
            Self::Gbps => "Gbit/s",
            Self::RoundTrips => "base RTTs",
        }
    }

    /// What follows a heading whose column has bare numbers. Bytes are printed with their unit.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Number | Self::Ratio | Self::Packets | Self::Bytes => "",
            Self::Microseconds => " us",
            Self::Nanoseconds => " ns",
            Self::Seconds => " s",
            Self::Gbps => " Gbps",
            Self::RoundTrips => " RTTs",
        }
    }
}

/// What a metric is computed from. It explains why a value may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Flows and counters, which every run has.
    Run,
    /// Samples of rates: `[measure] rates`.
    Rates,
    /// Samples of rates that become equal.
    EqualRates,
}

impl Basis {
    /// Why there is no value.
    pub fn missing(self) -> &'static str {
        match self {
            Self::Run => "not measured, as flows did not finish",
            Self::Rates => "rates were not sampled, or no sampled flow lasted for a period",
            Self::EqualRates => "rates did not become fair in some run, or were not sampled",
        }
    }
}

/// How a metric is computed of one run, and how the values of several seeds become one.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// A count of flows; of several seeds, the count over all their flows.
    Count(fn(&FlowStatistics) -> u64),
    /// A statistic of flows or requests; of several seeds, the statistic over all their flows.
    Statistic(fn(&FlowStatistics) -> Statistic),
    /// Of the backlog over time; of several seeds, that of all of them together.
    Trend(fn(&Trend) -> f64),
    /// A count or an amount; of several seeds, the sum.
    Sum(fn(&ClassRun<'_>) -> Number),
    /// A rate, a time or an index; of several seeds, their mean, which is unknown if one of them is.
    Mean(fn(&ClassRun<'_>) -> Option<f64>),
    /// A peak; of several seeds, the largest.
    Largest(fn(&ClassRun<'_>) -> u64),
    /// Computed from entries that stand before it in the table, in every row alike.
    Derived(fn(&Values) -> Option<f64>),
}

impl Measure {
    /// How seeds are pooled, in the words of the book.
    pub fn pooling(&self) -> &'static str {
        match self {
            Self::Count(_) | Self::Statistic(_) => "all flows",
            Self::Trend(_) => "all runs",
            Self::Sum(_) => "sum",
            Self::Mean(_) => "mean",
            Self::Largest(_) => "largest",
            Self::Derived(_) => "of the pooled values",
        }
    }
}

/// One number of a row of the summary.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in claims and columns. `group.member` is `member` of the object `group` in `summary.json`.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it is about.
    pub scope: Scope,
    /// What it is computed from.
    pub basis: Basis,
    /// Heading of a column of a table, without the unit.
    pub heading: &'static str,
    /// Title of a chart, and the first words in the book.
    pub title: &'static str,
    /// The exact definition, where the title is not enough.
    pub detail: &'static str,
    /// Which of two values is better.
    pub better: Better,
    /// How it is computed and pooled.
    pub measure: Measure,
}

/// Which of two values of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The higher.
    High,
    /// The lower.
    Low,
    /// None: it is neither good nor bad, or a counter.
    Neither,
}

impl Metric {
    /// Heading of a column of bare numbers.
    pub fn heading_with_unit(&self) -> String {
        format!("{}{}", self.heading, self.unit.heading())
    }

    /// What it is, in one sentence.
    pub fn describe(&self) -> String {
        if self.detail.is_empty() { self.title.to_owned() } else { format!("{}: {}", self.title, self.detail) }
    }

    /// The object of `summary.json` that holds it, if it is not a number of the row itself, and its key there.
    pub fn group(&self) -> (Option<&'static str>, &'static str) {
        self.name.split_once('.').map_or((None, self.name), |(group, member)| (Some(group), member))
    }

    /// Pooled rows have the sum over their runs.
    pub fn is_sum(&self) -> bool {
        matches!(self.measure, Measure::Sum(_))
    }

    /// It is a time or a ratio, whose confidence intervals are in logarithms.
    pub fn is_logarithmic(&self) -> bool {
        use Unit::{Microseconds, Nanoseconds, Ratio, RoundTrips, Seconds};
        matches!(self.unit, Microseconds | Nanoseconds | Seconds | Ratio | RoundTrips)
    }

    /// A value can be unknown but for a lower bound, as it depends on flows that did not finish.
    pub fn has_bound(&self) -> bool {
        matches!(self.measure, Measure::Statistic(_))
    }

    /// Pooled rows have the largest value of their runs, which grows with their number.
    pub fn is_largest(&self) -> bool {
        matches!(self.measure, Measure::Largest(_))
    }

    /// Pooled rows have its confidence interval over the seeds.
    pub fn has_interval(&self) -> bool {
        !matches!(self.measure, Measure::Count(_) | Measure::Trend(_) | Measure::Largest(_))
    }

    /// Claims can be about it, and columns show it.
    pub fn is_claimable(&self) -> bool {
        self.scope != Scope::Process
    }
}

/// The metric of this name.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The metric of a name that is written in the program: in a constant, a wrong name does not compile.
///
/// # Panics
/// There is no such metric.
pub const fn metric(name: &str) -> &'static Metric {
    let mut index = 0;
    while index < METRICS.len() {
        if equal(METRICS[index].name.as_bytes(), name.as_bytes()) {
            return &METRICS[index];
        }
        index += 1;
    }
    panic!("no such metric")
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// Names of the metrics that claims and columns can be about.
pub fn claimable() -> impl Iterator<Item = &'static str> {
    METRICS.iter().filter(|metric| metric.is_claimable()).map(|metric| metric.name)
}

/// CPU nanoseconds per link traversal; nothing where nothing was simulated.
pub fn ns_per_packet_hop(cpu_s: f64, packet_hops: u64) -> Option<f64> {
    (packet_hops > 0 && cpu_s > 0.0).then(|| cpu_s * 1e9 / packet_hops as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_headings_are_unique_and_groups_stand_together() {
        let distinct = |of: fn(&Metric) -> &str| METRICS.iter().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(|metric| metric.name), METRICS.len());
        assert_eq!(distinct(|metric| metric.heading), METRICS.len());
        assert_eq!(distinct(|metric| metric.title), METRICS.len());
        let groups: Vec<_> = METRICS.chunk_by(|a, b| a.group().0 == b.group().0 && a.group().0.is_some()).collect();
        let names: BTreeSet<_> = groups.iter().map(|group| group[0].group().0.unwrap_or(group[0].name)).collect();
        assert_eq!(names.len(), groups.len());
    }

    #[test]
    fn metrics_are_found_by_name() {
        assert_eq!(const { metric("fct_us.p99") }.heading_with_unit(), "FCT p99 us");
        assert!(find("fct_us.p9").is_none() && find("fct_us.p999").is_some_and(Metric::has_bound));
        assert!(claimable().any(|name| name == "drops") && !claimable().any(|name| name == "cpu_s"));
    }
}
