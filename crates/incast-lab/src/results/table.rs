//! The comparison on the terminal.

use super::{
    claims::Judgement,
    compact::{self, Layout},
    comparison::{self, Counters, Line, Shows},
    row::{ALL, Row},
    verdict,
};
use crate::{
    metrics::{Basis, Metric, Unit, metric, ns_per_packet_hop, statistics::Interval},
    scenario::Column,
    text::{bytes, grid_point, number},
};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Map, Value};
use std::fmt::Write;

/// What stands below the table.
#[derive(Clone, Debug, Default)]
pub struct Footer {
    /// For each scheme, what it changes against the scenario.
    pub schemes: Vec<(String, Vec<String>)>,
    /// What the workloads come to.
    pub workloads: Vec<String>,
    /// Some run has flow control by priority: its pauses and queues are what it is about.
    pub has_pfc: bool,
    /// Published numbers and what became of them.
    pub claims: Vec<Judgement>,
    /// Classes of the workloads.
    pub classes: Vec<String>,
    /// Columns that the scenario lists, with a line for each scheme; the usual table if there are none.
    pub columns: Vec<Column>,
}

/// The whole text: one table per grid point, then the footer.
pub fn render(title: &str, rows: &[Row], footer: &Footer) -> String {
    let pooled: Vec<&Row> = rows.iter().filter(|row| row.is_pooled()).collect();
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for row in &pooled {
        if !points.contains(&&row.grid) {
            points.push(&row.grid);
        }
    }
    let mut text = format!("{title}\n");
    text.push_str(&verdict::text(&verdict::verdicts(rows, &footer.columns, &footer.classes)));
    if !footer.columns.is_empty() {
        text.push_str(&compact::text(&compact::tables(rows, &footer.columns, Layout::ByPoint)));
        text.push_str("Sums are of a run.\n");
        points.clear();
    }
    let mut has_mixed = false;
    for point in points {
        if !point.is_empty() {
            let _ = writeln!(text, "\n{}", grid_point(point));
        }
        let here: Vec<&Row> = pooled.iter().copied().filter(|row| row.grid == *point).collect();
        let lines = comparison::lines(&here, &footer.classes);
        has_mixed |= lines.iter().any(|line| line.shows == Shows::Mixed);
        let _ = writeln!(text, "{}", table_of(&lines, footer));
    }
    if has_mixed {
        text.push_str(
            "mixed: sizes of the classes differ too much for a common percentile; see their rows.\n",
        );
    }
    if pooled.iter().any(|row| row.completed() < row.flows()) {
        text.push_str("≥ marks lower bounds: not every flow finished.\n");
    }
    if pooled.iter().any(|row| row.runs > 1) {
        text.push_str("± is half of the 95% confidence interval over seeds.\n");
    }
    footer_text(&mut text, footer);
    cost(&mut text, &pooled);
    text
}

/// Columns of numbers that matter in some scenarios only.
const EXTRAS: [&Metric; 4] = [
    metric("assigned_gbps.min"),
    metric("measured_gbps.min"),
    metric("max_queue_bytes"),
    metric("pfc_pauses"),
];

/// The columns that these rows need: rates where they were sampled; queues and pauses with flow control, or where a
/// claim is about them.
fn extras(rows: &[&Row], footer: &Footer) -> Vec<&'static Metric> {
    let claimed = |metric: &Metric| footer.claims.iter().any(|claim| claim.metric == metric.name);
    let wanted = |metric: &&Metric| match metric.basis {
        Basis::Run => footer.has_pfc || claimed(metric),
        _ => rows.iter().any(|row| row.number(metric.name).is_some()),
    };
    EXTRAS.into_iter().filter(wanted).collect()
}

fn table_of(lines: &[Line<'_>], footer: &Footer) -> Table {
    let has_classes = lines.iter().any(|line| line.class != ALL);
    let rows: Vec<&Row> = lines.iter().map(|line| line.row).collect();
    let statistics = comparison::statistics(rows.iter().copied());
    let counters = Counters::of(rows.iter().copied());
    let extras = extras(&rows, footer);
    let mut header = vec!["scheme".to_owned()];
    if has_classes {
        header.push("class".to_owned());
    }
    header.push("flows".to_owned());
    header.extend(statistics.iter().map(|(metric, _)| metric.heading_with_unit()));
    header.extend(counters.headings().into_iter().map(str::to_owned));
    header.extend(extras.iter().map(|metric| metric.heading_with_unit()));
    if !extras.is_empty() || header.len() > 10 {
        // With more columns than usual, headings take two lines.
        header.iter_mut().for_each(|heading| *heading = heading.replacen(' ', "\n", 1));
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for line in lines {
        let row = line.row;
        let mut cells = vec![Cell::new(&row.scheme)];
        if has_classes {
            cells.push(Cell::new(&line.class));
        }
        cells.push(right(line.count(|count| count.to_string())));
        cells.extend(statistics.iter().map(|(metric, interval)| right(measured(line, metric, *interval))));
        cells.extend(counters.cells(line, |count| count.to_string()).into_iter().map(right));
        let extra = |metric| if line.shows == Shows::Requests { String::new() } else { extra(row, metric) };
        cells.extend(extras.iter().map(|metric| right(extra(metric))));
        table.add_row(cells);
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A value, or its lower bound, perhaps with half its confidence interval.
fn measured(line: &Line<'_>, column: &'static Metric, with_interval: bool) -> String {
    let Some(metric) = line.metric(column) else { return line.without_metric().to_owned() };
    let row = line.row;
    let interval = row.interval(metric.name).filter(|_| with_interval);
    match (row.number(metric.name), row.bound(metric.name), interval) {
        (Some(value), _, Some(Interval(low, high))) => {
            format!("{} ±{}", number(value), number((high - low) / 2.0))
        }
        (Some(value), _, None) => number(value),
        (None, Some(bound), _) => format!("≥{}", number(bound)),
        // A rate has no bound: the class has no such flows.
        (None, None, _) if metric.unit == Unit::Gbps => String::new(),
        (None, None, _) if row.is_above_capacity() => "above capacity".to_owned(),
        (None, None, _) => "–".to_owned(),
    }
}

fn extra(row: &Row, metric: &Metric) -> String {
    match row.count(metric.name) {
        Some(value) if metric.unit == Unit::Bytes => bytes(value),
        Some(value) => value.to_string(),
        None => row.number(metric.name).map_or_else(String::new, number),
    }
}

fn footer_text(text: &mut String, footer: &Footer) {
    if !footer.claims.is_empty() {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header([
            "published",
            "at",
            "value",
            "measured",
            "95% CI",
            "status",
            "why",
        ]);
        for claim in &footer.claims {
            let interval = claim.interval.map(|i| format!("{} to {}", number(i.0), number(i.1)));
            table.add_row(vec![
                Cell::new(&claim.claim),
                Cell::new(grid_point(&claim.grid)),
                right(claim.described(number)),
                right(claim.measured.map_or_else(|| "–".to_owned(), number)),
                right(interval.unwrap_or_else(|| "–".to_owned())),
                Cell::new(claim.outcome()),
                Cell::new(&claim.why),
            ]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    if !footer.workloads.is_empty() {
        text.push_str("\nworkloads\n");
        for line in &footer.workloads {
            let _ = writeln!(text, "  {line}");
        }
    }
    let changed: Vec<_> = footer.schemes.iter().filter(|(_, notes)| !notes.is_empty()).collect();
    if !changed.is_empty() {
        text.push_str("\nwhat schemes change\n");
        for (scheme, notes) in changed {
            let _ = writeln!(text, "  {scheme}: {}", notes.join("; "));
        }
    }
}

fn cost(text: &mut String, pooled: &[&Row]) {
    let hops: u64 = pooled.iter().filter_map(|row| row.count("packet_hops")).sum();
    let cpu_s: f64 = pooled.iter().filter_map(|row| row.number("cpu_s")).sum();
    if let Some(cost) = ns_per_packet_hop(cpu_s, hops) {
        let runs: u64 = pooled.iter().filter(|row| row.class == ALL).map(|row| row.runs).sum();
        let _ = writeln!(
            text,
            "\n{runs} runs, {hops} packet-hops, {cpu_s:.2} s of CPU, {cost:.1} ns per packet-hop"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::claims::{judge, tests::row};

    fn heading(rows: &[Row], footer: &Footer) -> String {
        let text = render("title", rows, footer);
        text.lines().skip(2).take_while(|line| !line.contains('═')).collect::<Vec<_>>().join("\n")
    }

    fn about(metric: &str, rows: &[Row]) -> Footer {
        let claim = serde_json::json!({ "metric": metric, "scheme": "a", "at_most": 1.0 });
        let claim = serde_json::from_value(claim).expect("a claim");
        Footer { claims: judge(&[claim], rows), ..Footer::default() }
    }

    #[test]
    fn rates_have_columns_where_they_were_sampled() {
        let mut rows = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 100.0)];
        assert!(!heading(&rows, &Footer::default()).contains("Gbps"));
        rows[1].values.set("assigned_gbps.min", Some(2.5).into());
        rows[1].values.set("measured_gbps.min", Some(1.25).into());
        let text = render("title", &rows, &Footer::default());
        assert_eq!((text.matches("assigned").count(), text.matches("measured").count()), (1, 1), "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("b ")).expect("a row of b");
        assert!(line.trim_end().ends_with("2.50       1.25"), "{text}");
    }

    #[test]
    fn queues_and_pauses_have_columns_where_they_matter() {
        let mut rows = [row("a", 0.2, None, 100.0)];
        rows[0].values.set("max_queue_bytes", Some(1_234_000).into());
        rows[0].values.set("pfc_pauses", Some(17).into());
        let has = |footer: &Footer| {
            let heading = heading(&rows, footer);
            (heading.contains("longest"), heading.contains("pauses"))
        };
        assert_eq!(has(&Footer::default()), (false, false));
        assert_eq!(has(&Footer { has_pfc: true, ..Footer::default() }), (true, true));
        assert_eq!(has(&about("max_queue_bytes", &rows)), (true, false));
        assert_eq!(has(&about("pfc_pauses", &rows)), (false, true));
        let text = render("title", &rows, &Footer { has_pfc: true, ..Footer::default() });
        let line = text.lines().find(|line| line.trim_start().starts_with("a ")).expect("a row of a");
        assert!(line.contains("1.2 MB") && line.trim_end().ends_with(" 17"), "{text}");
        // Without class, requests and long flows, and with numbers of a usual length.
        assert!(text.lines().all(|line| line.chars().count() <= 132), "{text}");
    }
}
