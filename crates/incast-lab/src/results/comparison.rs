//! The lines and columns of a comparison of schemes, on the terminal and in reports.

use super::row::{ALL, Row};
use crate::{
    metrics::{Metric, metric},
    text::bytes,
};

/// A statistic of flows, and whether it is shown with its confidence interval.
pub type Statistic = (&'static Metric, bool);

const FCT_P50: &Metric = metric("fct_us.p50");
const FCT_P99: &Metric = metric("fct_us.p99");
const RCT_P50: &Metric = metric("rct_us.p50");
const RCT_P99: &Metric = metric("rct_us.p99");
const STATISTICS: [Statistic; 6] = [
    (FCT_P50, false),
    (FCT_P99, true),
    (metric("slowdown.mean"), false),
    (metric("slowdown.p99"), true),
    (metric("goodput_gbps"), false),
    (metric("long_flow_gbps"), true),
];
/// How many of these are always shown; the others where some row has them.
const ALWAYS: usize = 4;

/// Typical sizes of classes that differ more than this have no common percentile of times.
const MOST_ALIKE: u64 = 10;

/// What a line shows of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Its flows.
    Flows,
    /// Its flows without percentiles of their times, as they are of classes of very different sizes.
    Mixed,
    /// Its requests: times in the columns of flows.
    Requests,
}

/// A line of a comparison.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Whose numbers they are.
    pub row: &'a Row,
    /// Name of the class, or of its requests.
    pub class: String,
    /// What is shown of it.
    pub shows: Shows,
}

impl Line<'_> {
    /// The metric in the column of a statistic; `None` where this line has none.
    pub fn metric(&self, column: &'static Metric) -> Option<&'static Metric> {
        match self.shows {
            Shows::Flows => Some(column),
            Shows::Mixed => (column.group().0 != FCT_P50.group().0).then_some(column),
            Shows::Requests if column.name == FCT_P50.name => Some(RCT_P50),
            Shows::Requests if column.name == FCT_P99.name => Some(RCT_P99),
            Shows::Requests => None,
        }
    }

    /// How many flows, finished and all, or requests there are.
    pub fn count(&self, number: impl Fn(u64) -> String) -> String {
        match self.shows {
            Shows::Requests => self.row.count("requests").map(number).unwrap_or_default(),
            _ => format!("{}/{}", number(self.row.completed()), number(self.row.flows())),
        }
    }

    /// What stands where there is no metric.
    pub fn without_metric(&self) -> &'static str {
        if self.shows == Shows::Mixed { "mixed" } else { "" }
    }
}

/// The lines of the pooled rows of a grid point. Classes have lines if there are several; requests have lines of their
/// own. `workloads` are the classes of the workloads, as rows may also be about sizes.
pub fn lines<'a>(rows: &[&'a Row], workloads: &[String]) -> Vec<Line<'a>> {
    let of_classes = || rows.iter().filter(|row| row.class != ALL);
    let several = of_classes().any(|row| of_classes().any(|other| other.class != row.class));
    let mut lines = Vec::new();
    for row in rows.iter().copied().filter(|row| several || row.class == ALL) {
        let is_mixed = several && row.class == ALL && is_mixed(rows, row, workloads);
        let shows = if is_mixed { Shows::Mixed } else { Shows::Flows };
        lines.push(Line { row, class: row.class.clone(), shows });
        let has_requests = row.number(RCT_P50.name).or(row.bound(RCT_P50.name)).is_some();
        if has_requests && !(several && row.class == ALL) {
            lines.push(Line { row, class: requests_of(&row.class, workloads), shows: Shows::Requests });
        }
    }
    lines
}

/// The typical sizes of the classes of a scheme differ much: those of their median flows, by the bins of sizes.
fn is_mixed(rows: &[&Row], all: &Row, workloads: &[String]) -> bool {
    let of_scheme = rows.iter().filter(|row| row.scheme == all.scheme && workloads.contains(&row.class));
    let medians: Vec<u64> = of_scheme.filter_map(|row| median_bin(row)).collect();
    match (medians.iter().min(), medians.iter().max()) {
        (Some(least), Some(most)) => *most > least.saturating_mul(MOST_ALIKE),
        _ => false,
    }
}

fn median_bin(row: &Row) -> Option<u64> {
    let flows: u64 = row.by_size.iter().map(|bin| bin.flows).sum();
    let mut below = 0;
    let bin = row.by_size.iter().find(|bin| {
        below += bin.flows;
        2 * below >= flows
    });
    bin.map(|bin| bin.upto_bytes)
}

/// Of calls, the class of the requests that open them has the times: they are named after the class of the calls.
pub fn requests_of(class: &str, workloads: &[String]) -> String {
    let calls = class.strip_suffix("-request").filter(|calls| workloads.iter().any(|other| other == calls));
    match class {
        ALL => "requests".into(),
        _ => format!("{}: requests", calls.unwrap_or(class)),
    }
}

/// The statistics that a table of these rows shows.
pub fn statistics<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Vec<Statistic> {
    let has = |metric: &Metric| {
        rows.clone().any(|row| row.number(metric.name).or(row.bound(metric.name)).is_some_and(|of| of > 0.0))
    };
    let shown = STATISTICS.into_iter().enumerate();
    shown.filter(|(index, (metric, _))| *index < ALWAYS || has(metric)).map(|(_, statistic)| statistic).collect()
}

/// The counters that a table of these rows shows.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    trims: bool,
}

impl Counters {
    /// Trimmed packets have a column where there are some: they are what a scheme has in place of drops.
    pub fn of<'a>(mut rows: impl Iterator<Item = &'a Row>) -> Self {
        Self { trims: rows.any(|row| row.count("trims").is_some_and(|trims| trims > 0)) }
    }

    fn shown<T>(self, [drops, trims, retransmitted, timeouts, marks]: [T; 5]) -> Vec<T> {
        let trims = self.trims.then_some(trims);
        [drops].into_iter().chain(trims).chain([retransmitted, timeouts, marks]).collect()
    }

    /// Headings.
    pub fn headings(self) -> Vec<&'static str> {
        let heading = |name| crate::metrics::find(name).map_or(name, |metric| metric.heading);
        self.shown([heading("drops"), heading("trims"), heading("retransmitted_bytes"), heading("timeouts"), "marks"])
    }

    /// The sums of a line; empty where it has none.
    pub fn cells(self, line: &Line<'_>, number: impl Fn(u64) -> String) -> Vec<String> {
        let row = line.row;
        if line.shows == Shows::Requests {
            return self.shown([const { String::new() }; 5]);
        }
        let text = |count: Option<u64>| count.map(&number).unwrap_or_default();
        let mut drops = text(row.count("drops"));
        if let Some(lost) = row.count("lost").filter(|lost| *lost > 0) {
            drops = format!("{drops} + {} lost", number(lost));
        }
        let retransmitted = row.count("retransmitted_bytes").map(bytes).unwrap_or_default();
        self.shown([drops, text(row.count("trims")), retransmitted, text(row.count("timeouts")), text(row.marks())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::claims::tests::row;

    fn of_class(class: &str, bytes: u64, requests: bool) -> Row {
        let mut row = row("a", 0.2, None, 100.0);
        row.class = class.into();
        let bin =
            serde_json::json!({ "upto_bytes": bytes, "flows": 9, "mean": 1.0, "p50": 1.0, "p95": 1.0, "p99": 1.0 });
        row.by_size = vec![serde_json::from_value(bin).expect("a bin")];
        if requests {
            row.values.set(RCT_P50.name, Some(50.0).into());
            row.values.set(RCT_P99.name, Some(70.0).into());
        }
        row
    }

    fn shown(rows: &[Row], workloads: &[&str]) -> Vec<(String, Shows)> {
        let rows: Vec<&Row> = rows.iter().collect();
        let workloads: Vec<String> = workloads.iter().map(|name| (*name).to_owned()).collect();
        lines(&rows, &workloads).into_iter().map(|line| (line.class, line.shows)).collect()
    }

    #[test]
    fn requests_have_lines_and_mixtures_no_percentiles() {
        let kv = [of_class("kv", 500_000, false), of_class("kv-request", 500, true), of_class(ALL, 500, true)];
        assert_eq!(
            shown(&kv, &["kv", "kv-request"]),
            [
                ("kv".into(), Shows::Flows),
                ("kv-request".into(), Shows::Flows),
                ("kv: requests".into(), Shows::Requests),
                (ALL.into(), Shows::Mixed)
            ]
        );
        let alike = [of_class("a", 50_000, false), of_class("b", 500_000, false), of_class(ALL, 1, false)];
        assert_eq!(shown(&alike, &["a", "b"])[2], (ALL.into(), Shows::Flows));
        // Rows of sizes differ by definition.
        let sizes = [of_class("web", 50_000, false), of_class("short", 100, false), of_class(ALL, 1, false)];
        assert_eq!(shown(&sizes, &["web"])[2], (ALL.into(), Shows::Flows));
        let incast = [of_class("incast", 50_000, true), of_class(ALL, 50_000, true)];
        assert_eq!(shown(&incast, &["incast"]), [(ALL.into(), Shows::Flows), ("requests".into(), Shows::Requests)]);
    }

    #[test]
    fn a_line_of_requests_has_their_times_alone() {
        let row = of_class("incast", 50_000, true);
        let line = Line { row: &row, class: String::new(), shows: Shows::Requests };
        let names = STATISTICS.map(|(metric, _)| line.metric(metric).map(|metric| metric.name));
        assert_eq!(names, [Some("rct_us.p50"), Some("rct_us.p99"), None, None, None, None]);
        let mixed = Line { shows: Shows::Mixed, ..line.clone() };
        assert!(mixed.metric(FCT_P99).is_none() && mixed.metric(metric("slowdown.p99")).is_some());
        assert!(Counters { trims: false }.cells(&line, |count| count.to_string()).iter().all(String::is_empty));
    }

    #[test]
    fn trims_stand_beside_drops_where_there_are_some() {
        let mut row = row("ndp", 0.2, None, 100.0);
        assert_eq!(Counters::of([&row].into_iter()).headings(), ["drops", "retransmitted", "timeouts", "marks"]);
        row.values.set("trims", Some(7).into());
        let counters = Counters::of([&row].into_iter());
        let line = Line { row: &row, class: ALL.into(), shows: Shows::Flows };
        let cells = counters.cells(&line, |count| count.to_string());
        assert_eq!(counters.headings()[..2], ["drops", "trims"]);
        assert_eq!(cells[..3], ["4", "7", "0"]);
    }
}
