//! The comparison as a table, as on the terminal.

use super::{scrolling, value_or_bound};
use crate::{
    metrics::statistics::Interval,
    report::{
        chart::Unit,
        chart::series_class,
        input::load::{Point, Results},
    },
    results::{comparison, row::Row},
    text::grouped,
};
use maud::{Markup, html};

/// The table of a grid point.
pub fn section(results: &Results, point: &Point) -> Markup {
    let rows: Vec<(usize, &str, &Row)> = results
        .schemes
        .iter()
        .enumerate()
        .flat_map(|(series, scheme)| {
            results.classes.iter().filter_map(move |class| {
                Some((series, class.as_str(), results.pooled(point, scheme, class)?))
            })
        })
        .collect();
    let statistics = comparison::statistics(rows.iter().map(|(_, _, row)| *row));
    let several = results.classes.len() > 1;
    let table = html! {
        table {
            thead { tr {
                th scope="col" { "scheme" }
                @if several { th scope="col" { "class" } }
                th.number scope="col" { "finished / flows" }
                @for (metric, _) in &statistics { th.number scope="col" { (metric.heading) } }
                @for heading in comparison::COUNTS { th.number scope="col" { (heading) } }
            } }
            tbody {
                @for (series, class, row) in &rows {
                    tr data-series=(series) class=[(*class == results.classes[0]).then_some("first")] {
                        th scope="row" { span.dot.{ (series_class(*series)) } {} (row.scheme) }
                        @if several { td { (class) } }
                        td.number.warn[row.completed() < row.flows()] {
                            (grouped(row.completed())) " / " (grouped(row.flows()))
                        }
                        @for (metric, interval) in &statistics { td.number { (cell(row, metric.name, *interval)) } }
                        @for count in comparison::counts(row, grouped) { td.number { (count) } }
                    }
                }
            }
        }
    };
    html! {
        section.comparison {
            h2 { "Comparison" }
            (scrolling("Comparison of schemes", &table))
            p.note {
                "All seeds pooled"
                @if rows.iter().any(|(_, _, row)| row.runs > 1) { "; ± is half of the 95% confidence interval over seeds" }
                ". Slowdown is the time of a flow over that of the same flow alone."
            }
        }
    }
}

fn cell(row: &Row, metric: &str, with_interval: bool) -> Markup {
    let unit = Unit::of(metric);
    let (value, bound) = value_or_bound(row, metric);
    let interval = row.interval(metric).filter(|_| with_interval);
    html! {
        @match (value, bound, interval) {
            (Some(value), _, Some(Interval(low, high))) => {
                (unit.text(value)) " " span.soft { "±" (unit.text((high - low) / 2.0)) }
            }
            (Some(value), _, None) => (unit.text(value)),
            (None, Some(bound), _) => span.warn title="a lower bound: not every flow finished" { "≥ " (unit.text(bound)) },
            (None, None, _) if row.is_above_capacity() => {
                span.warn title="the backlog grows: times depend on the length of the run" { "above capacity" }
            },
            (None, None, _) => "–",
        }
    }
}
