//! The comparison as a table, as on the terminal.

use super::{scrolling, value_or_bound};
use crate::results::read::{Point, Results};
use crate::{
    metrics::{Metric, statistics::Interval},
    report::{chart::Unit, chart::series_class},
    results::{
        compact::{self, Layout},
        comparison::{self, Counters, Line, Shows},
        row::{ALL, Row},
        steady,
    },
    text::{SPREAD, grid_point, grouped, spread},
};
use maud::{Markup, html};

/// The table of a grid point.
pub fn section(results: &Results, point: &Point) -> Markup {
    let (table, has_several_seeds) =
        if results.columns.is_empty() { usual(results, point) } else { listed(results, point) };
    html! {
        section.comparison {
            h2 { "Comparison" }
            (scrolling("Comparison of schemes", &table))
            p.note {
                "All seeds pooled"
                @if has_several_seeds { "; " (SPREAD) }
                ". Slowdown is the time of a flow over that of the same flow alone."
                @if !results.columns.is_empty() { " Sums are of a run." }
            }
        }
    }
}

/// The columns that the scenario lists, a line for each scheme.
fn listed(results: &Results, point: &Point) -> (Markup, bool) {
    let title = grid_point(point);
    let tables = compact::tables(&results.rows, &results.columns, Layout::ByPoint);
    let Some(table) = tables.into_iter().find(|table| table.title == title) else { return (html! {}, false) };
    let series = |scheme: &str| results.schemes.iter().position(|known| known == scheme).unwrap_or(0);
    let markup = html! {
        table {
            thead { tr {
                @for (index, heading) in table.header.iter().enumerate() {
                    th.number[index > 0] scope="col" { (heading.replace('\n', " ")) }
                }
            } }
            tbody {
                @for line in &table.lines {
                    @let scheme = line.first().map(String::as_str).unwrap_or_default();
                    tr data-series=(series(scheme)) {
                        th scope="row" { span.dot.{ (series_class(series(scheme))) } {} (scheme) }
                        @for cell in line.iter().skip(1) { td.number { (cell) } }
                    }
                }
            }
        }
    };
    (markup, results.rows.iter().any(|row| row.runs > 1))
}

/// The usual columns, a line for each scheme and class.
fn usual(results: &Results, point: &Point) -> (Markup, bool) {
    let of_scheme = |scheme: &String| {
        let classes = results.classes.iter();
        let rows: Vec<&Row> = classes.filter_map(|class| results.pooled(point, scheme, class)).collect();
        comparison::lines(&rows, &results.classes)
    };
    let lines: Vec<(usize, Line<'_>)> = results
        .schemes
        .iter()
        .enumerate()
        .flat_map(|(series, scheme)| of_scheme(scheme).into_iter().map(move |line| (series, line)))
        .collect();
    let rows = || lines.iter().map(|(_, line)| line.row);
    let statistics = comparison::statistics(rows());
    let counters = Counters::of(rows());
    let has_classes = lines.iter().any(|(_, line)| line.class != ALL);
    let markup = html! {
        table {
            thead { tr {
                th scope="col" { "scheme" }
                @if has_classes { th scope="col" { "class" } }
                th.number scope="col" { "finished / flows" }
                @for (metric, _) in &statistics { th.number scope="col" { (metric.heading) } }
                @for heading in counters.headings() { th.number scope="col" { (heading) } }
            } }
            tbody {
                @for (index, (series, line)) in lines.iter().enumerate() {
                    @let is_first = index == 0 || lines[index - 1].0 != *series;
                    tr data-series=(series) class=[is_first.then_some("first")] {
                        th scope="row" { span.dot.{ (series_class(*series)) } {} (line.row.scheme) }
                        @if has_classes { td { (line.class) } }
                        td.number.warn[line.row.completed() < line.row.flows() && line.shows != Shows::Requests] {
                            (line.count(grouped))
                        }
                        @for (metric, interval) in &statistics { td.number { (cell(line, metric, *interval)) } }
                        @for count in counters.cells(line, grouped) { td.number { (count) } }
                    }
                }
            }
        }
    };
    let has_several_seeds = rows().any(|row| row.runs > 1);
    (markup, has_several_seeds)
}

fn cell(line: &Line<'_>, column: &'static Metric, with_interval: bool) -> Markup {
    let Some(metric) = line.metric(column) else {
        return html! {
            @if line.shows == Shows::Mixed {
                span.soft title="sizes of the classes differ too much for a common percentile" { "mixed" }
            }
        };
    };
    let unit = Unit::of(metric.name);
    let (value, bound) = value_or_bound(line.row, metric.name);
    let interval = line.row.interval(metric.name).filter(|_| with_interval);
    html! {
        @match (value, bound, interval) {
            (Some(value), _, Some(Interval(low, high))) => {
                (unit.text(value)) " " span.soft { (spread(value, (low, high), |number| unit.text(number))) }
            }
            (Some(value), _, None) => (unit.text(value)),
            (None, Some(bound), _) => span.warn title="a lower bound: not every flow finished" { "≥ " (unit.text(bound)) },
            (None, None, _) => "–",
        }
        @if value.is_some() && metric.has_bound() && line.row.is_too_short() {
            span.warn title=(steady::reason(line.row)) { " !" }
        }
    }
}
