//! The comparison on the terminal.

use super::{
    claims::Judgement,
    compact::{self, Layout},
    statistics::Interval,
    summary::{ALL, Row},
};
use crate::scenario::Column;
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
    /// Columns that the scenario wants, with a line for each scheme; the usual table if there are none.
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
    if !footer.columns.is_empty() {
        text.push_str(&compact::text(&compact::tables(rows, &footer.columns, Layout::ByPoint)));
        text.push_str("Sums are of a run.\n");
        points.clear();
    }
    for point in points {
        if !point.is_empty() {
            let _ = writeln!(text, "\n{}", describe_point(point));
        }
        let here: Vec<&Row> = pooled.iter().copied().filter(|row| row.grid == *point).collect();
        let _ = writeln!(text, "{}", comparison(&here, footer));
    }
    if pooled.iter().any(|row| row.completed < row.flows) {
        text.push_str("≥ marks lower bounds: not every flow finished.\n");
    }
    if pooled.iter().any(|row| row.runs > 1) {
        text.push_str("± is half of the 95% confidence interval over seeds.\n");
    }
    footer_text(&mut text, footer);
    cost(&mut text, &pooled);
    text
}

/// A grid point in one line.
pub fn describe_point(point: &Map<String, Value>) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    point.iter().map(|(path, at)| format!("{path} = {}", value(at))).collect::<Vec<_>>().join(", ")
}

/// A column for a number that matters in some scenarios only.
struct Extra {
    /// In two lines, as there may be several.
    heading: &'static str,
    metric: &'static str,
    text: fn(f64) -> String,
}

const EXTRAS: [Extra; 4] = [
    Extra { heading: "assigned\nmin Gbps", metric: "assigned_gbps.min", text: number },
    Extra { heading: "measured\nmin Gbps", metric: "measured_gbps.min", text: number },
    Extra { heading: "longest\nqueue", metric: "max_queue_bytes", text: |count| bytes(count as u64) },
    Extra { heading: "PFC\npauses", metric: "pfc_pauses", text: |count| format!("{count:.0}") },
];

/// The columns that these rows need: rates where they were sampled; queues and pauses with flow control, or where a
/// claim is about them.
fn extras(rows: &[&Row], footer: &Footer) -> Vec<&'static Extra> {
    let claimed = |metric: &str| footer.claims.iter().any(|claim| claim.metric == metric);
    let wanted = |extra: &&Extra| match extra.metric {
        "max_queue_bytes" | "pfc_pauses" => footer.has_pfc || claimed(extra.metric),
        metric => rows.iter().any(|row| row.number(metric).is_some()),
    };
    EXTRAS.iter().filter(wanted).collect()
}

fn comparison(rows: &[&Row], footer: &Footer) -> Table {
    let classes = rows.iter().filter(|row| row.class != ALL).map(|row| row.class.as_str());
    let several = classes.collect::<std::collections::BTreeSet<_>>().len() > 1;
    let requests = rows.iter().any(|row| row.rct_us.max.or(row.rct_us.max_at_least).is_some());
    let long = rows.iter().any(|row| row.long_flow_gbps.is_some());
    let extras = extras(rows, footer);
    let mut header = vec!["scheme"];
    if several {
        header.push("class");
    }
    header.extend(["flows", "FCT p50 us", "FCT p99 us", "mean slowdown", "p99 slowdown"]);
    if requests {
        header.push("RCT p99 us");
    }
    if long {
        header.push("long Gbps");
    }
    header.extend(["drops", "retransmitted", "timeouts", "marks"]);
    let mut header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    if !extras.is_empty() {
        // With more columns than usual, the headings of the others take two lines too.
        header.iter_mut().for_each(|heading| *heading = heading.replacen(' ', "\n", 1));
        header.extend(extras.iter().map(|extra| extra.heading.to_owned()));
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for row in rows.iter().filter(|row| several || row.class == ALL) {
        let mut cells = vec![Cell::new(&row.scheme)];
        if several {
            cells.push(Cell::new(&row.class));
        }
        let with_interval = |metric: &str, value, bound| measured(value, bound, row.interval(metric));
        cells.push(right(format!("{}/{}", row.completed, row.flows)));
        cells.push(right(measured(row.fct_us.p50, row.fct_us.p50_at_least, None)));
        cells.push(right(with_interval("fct_us.p99", row.fct_us.p99, row.fct_us.p99_at_least)));
        cells.push(right(measured(row.slowdown.mean, row.slowdown.mean_at_least, None)));
        cells.push(right(with_interval("slowdown.p99", row.slowdown.p99, row.slowdown.p99_at_least)));
        if requests {
            cells.push(right(with_interval("rct_us.p99", row.rct_us.p99, row.rct_us.p99_at_least)));
        }
        if long {
            cells.push(right(row.long_flow_gbps.map_or_else(String::new, number)));
        }
        cells.push(right(match row.lost {
            Some(lost) if lost > 0 => format!("{} + {lost} lost", count(row.drops)),
            _ => count(row.drops),
        }));
        cells.push(right(bytes(row.retransmitted_bytes)));
        cells.push(right(row.timeouts.to_string()));
        cells.push(right(count(row.marks.map(|marks| marks.edge + marks.fabric))));
        for extra in &extras {
            cells.push(right(row.number(extra.metric).map_or_else(String::new, extra.text)));
        }
        table.add_row(cells);
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A value, or its lower bound, with half its confidence interval.
fn measured(value: Option<f64>, bound: Option<f64>, interval: Option<Interval>) -> String {
    match (value, bound, interval) {
        (Some(value), _, Some(Interval(low, high))) => {
            format!("{} ±{}", number(value), number((high - low) / 2.0))
        }
        (Some(value), _, None) => number(value),
        (None, Some(bound), _) => format!("≥{}", number(bound)),
        (None, None, _) => "–".to_owned(),
    }
}

/// About four significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ if size == 0.0 => "0".to_owned(),
        _ => format!("{value:.4}"),
    }
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Bytes for people: powers of ten, as everywhere in incast.
pub fn bytes(count: u64) -> String {
    let value = count as f64;
    match count {
        0 => "0".to_owned(),
        1..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
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
                Cell::new(describe_point(&claim.grid)),
                right(claim.described(&number(claim.published))),
                right(claim.measured.map_or_else(|| "–".to_owned(), number)),
                right(interval.unwrap_or_else(|| "–".to_owned())),
                Cell::new(claim.status.to_string()),
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
    let hops: u64 = pooled.iter().filter_map(|row| row.packet_hops).sum();
    let cpu_s: f64 = pooled.iter().filter_map(|row| row.cpu_s).sum();
    if let Some(cost) = super::summary::ns_per_packet_hop(cpu_s, hops) {
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
    use crate::results::{
        claims::{judge, tests::row},
        rates::Extent,
    };

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
        rows[1].assigned_gbps = Extent { min: Some(2.5), mean: Some(4.0) };
        rows[1].measured_gbps = Extent { min: Some(1.25), mean: Some(3.0) };
        let text = render("title", &rows, &Footer::default());
        assert_eq!(text.matches("min Gbps").count(), 2, "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with("b ")).expect("a row of b");
        assert!(line.trim_end().ends_with("2.50       1.25"), "{text}");
    }

    #[test]
    fn queues_and_pauses_have_columns_where_they_matter() {
        let mut rows = [row("a", 0.2, None, 100.0)];
        rows[0].max_queue_bytes = Some(1_234_000);
        rows[0].pfc_pauses = Some(17);
        let has = |footer: &Footer| {
            let heading = heading(&rows, footer);
            (heading.contains("longest"), heading.contains("PFC"))
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
