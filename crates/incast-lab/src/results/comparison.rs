//! The columns of a comparison of schemes, on the terminal and in reports.

use super::row::Row;
use crate::{
    metrics::{Metric, metric},
    text::bytes,
};

/// A statistic of flows, and whether it is shown with its confidence interval.
pub type Statistic = (&'static Metric, bool);

const STATISTICS: [Statistic; 6] = [
    (metric("fct_us.p50"), false),
    (metric("fct_us.p99"), true),
    (metric("slowdown.mean"), false),
    (metric("slowdown.p99"), true),
    (metric("rct_us.p99"), true),
    (metric("long_flow_gbps"), true),
];
/// How many of these are always shown; the others where some row has them.
const ALWAYS: usize = 4;

/// Headings of [`counts`].
pub const COUNTS: [&str; 4] =
    [metric("drops").heading, metric("retransmitted_bytes").heading, metric("timeouts").heading, "marks"];

/// The statistics that a table of these rows shows.
pub fn statistics<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Vec<Statistic> {
    let has = |metric: &Metric| {
        rows.clone().any(|row| row.number(metric.name).or(row.bound(metric.name)).is_some())
    };
    let shown = STATISTICS.into_iter().enumerate();
    shown
        .filter(|(index, (metric, _))| *index < ALWAYS || has(metric))
        .map(|(_, statistic)| statistic)
        .collect()
}

/// The sums of a row; empty where it has none.
pub fn counts(row: &Row, number: impl Fn(u64) -> String) -> [String; 4] {
    let text = |count: Option<u64>| count.map(&number).unwrap_or_default();
    let mut drops = text(row.count("drops"));
    if let Some(lost) = row.count("lost").filter(|lost| *lost > 0) {
        drops = format!("{drops} + {} lost", number(lost));
    }
    let retransmitted = row.count("retransmitted_bytes").map(bytes).unwrap_or_default();
    [drops, retransmitted, text(row.count("timeouts")), text(row.marks())]
}
