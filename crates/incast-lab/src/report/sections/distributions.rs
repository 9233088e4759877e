//! Distributions of flow completion times and of request completion times.

use super::of_class;
use crate::report::chart::{Axis, Curve, Plot, Spacing, Unit, plot};
use crate::report::input::{
    curves::Ccdf,
    figures::{ClassCurves, PointCurves},
};
use crate::results::read::Results;
use maud::{Markup, html};

/// The distributions of a grid point.
pub fn section(results: &Results, curves: &PointCurves) -> Markup {
    let fct = charts(results, curves, "time to delivery", |class| &class.fct);
    let rct = charts(results, curves, "request completion", |class| &class.rct);
    html! {
        @if !fct.is_empty() {
            section.distributions {
                h2 { "Distribution of flow completion times" }
                p.note { "The share of counted flows that took at least a time, all seeds together (complementary cumulative distribution): where a curve crosses 1% it has its p99. A curve that ends high has flows that did not finish." }
                div.charts { @for chart in &fct { (chart) } }
            }
        }
        @if !rct.is_empty() {
            section.requests {
                h2 { "Request completion" }
                p.note { "A request is a group of flows, such as one incast; it is complete when the last of them is delivered." }
                div.charts { @for chart in &rct { (chart) } }
            }
        }
    }
}

fn charts(results: &Results, curves: &PointCurves, label: &str, of: fn(&ClassCurves) -> &Ccdf) -> Vec<Markup> {
    let mut charts = Vec::new();
    for (index, class) in results.classes.iter().enumerate() {
        let cdfs: Vec<(usize, &Ccdf)> = curves
            .schemes
            .iter()
            .enumerate()
            .filter_map(|(series, scheme)| Some((series, of(scheme.classes.get(index)?))))
            .filter(|(_, cdf)| cdf.count > 0)
            .collect();
        if cdfs.is_empty() {
            continue;
        }
        let shares = cdfs.iter().flat_map(|(_, cdf)| cdf.points.iter().map(|(_, share)| *share));
        let values = cdfs.iter().flat_map(|(_, cdf)| cdf.points.iter().map(|(value, _)| *value));
        let describe: Vec<String> = cdfs.iter().map(|(series, cdf)| note(&results.schemes[*series], cdf)).collect();
        let lines = cdfs.iter().zip(&describe).map(|((series, cdf), note)| Curve {
            series: *series,
            note: note.clone(),
            points: cdf.points.clone(),
            ..Curve::default()
        });
        charts.push(plot(&Plot {
            title: format!("{label}, {}", of_class(class)),
            describe: describe.join("; "),
            x: Axis::over(label, Unit::Time, Spacing::Log, values),
            y: Axis::over("share that takes at least as long", Unit::Share, Spacing::Log, shares.chain([1.0])),
            curves: lines.collect(),
        }));
    }
    charts
}

/// The curve in words.
fn note(scheme: &str, cdf: &Ccdf) -> String {
    let text = |part: f64| cdf.percentile(part).map_or_else(|| "unfinished".to_owned(), |value| Unit::Time.text(value));
    let unfinished = match cdf.count - cdf.known {
        0 => String::new(),
        some => format!(", {some} of {} did not finish", cdf.count),
    };
    format!("{scheme}: half within {}, 99% within {}{unfinished}", text(0.5), text(0.99))
}
