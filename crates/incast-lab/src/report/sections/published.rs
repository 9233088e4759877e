//! Measured beside published: the median and the 99th percentile of each class, as bars.

use super::{is_measured, of_class, value_or_bound};
use crate::{
    report::{
        chart::{Bar, Bars, Unit, bars},
        load::{Point, Results},
    },
    results::claims::Judgement,
};
use maud::{Markup, html};

const METRICS: [(&str, &str); 2] = [("fct_us.p50", "median FCT"), ("fct_us.p99", "99th percentile of FCT")];

/// Bars of a grid point, and of whatever else was published of it as plain numbers.
pub fn section(results: &Results, point: &Point) -> Markup {
    let mut charts: Vec<(&str, &str, String)> = Vec::new();
    for class in &results.classes {
        for (metric, words) in METRICS {
            charts.push((class, metric, format!("{words}, {}", of_class(class))));
        }
    }
    for claim in plain(results, point) {
        if !charts.iter().any(|(class, metric, _)| *class == claim.class && *metric == claim.metric) {
            charts.push((
                &claim.class,
                &claim.metric,
                format!("{}, {}", claim.metric, of_class(&claim.class)),
            ));
        }
    }
    charts.retain(|(class, metric, _)| is_measured(results, class, metric));
    let published = plain(results, point).next().is_some();
    html! {
        section.bars {
            h2 { @if published { "Measured and published" } @else { "Flow completion times" } }
            @if published {
                p.note {
                    "Bars are measured, strokes published; an arrow points to where a published bound allows values. Whiskers are 95% confidence intervals over seeds."
                }
            }
            div.charts {
                @for (class, metric, title) in &charts { (bars(&chart(results, point, class, metric, title))) }
            }
        }
    }
}

/// Claims about a grid point that are numbers and not ratios.
fn plain<'a>(results: &'a Results, point: &'a Point) -> impl Iterator<Item = &'a Judgement> {
    results.claims.iter().filter(move |claim| claim.grid == *point && !claim.is_ratio)
}

fn chart(results: &Results, point: &Point, class: &str, metric: &str, title: &str) -> Bars {
    let bars = results.schemes.iter().enumerate().filter_map(|(series, scheme)| {
        let row = results.pooled(point, scheme, class)?;
        let (mut value, at_least) = value_or_bound(row, metric);
        let mut interval = row.interval(metric);
        if crate::results::summary::is_sum(metric) {
            // As claims are judged: per run.
            let runs = row.runs.max(1) as f64;
            value = value.map(|sum| sum / runs);
            interval = interval.map(|sum| crate::results::statistics::Interval(sum.0 / runs, sum.1 / runs));
        }
        let claims = plain(results, point);
        let published = claims
            .filter(|claim| claim.scheme == *scheme && claim.class == class && claim.metric == metric)
            .filter(|claim| !claim.ours)
            .map(|claim| (claim.relation, claim.published))
            .collect();
        Some(Bar { series, name: scheme.clone(), value, at_least, interval, published })
    });
    Bars { title: title.to_owned(), unit: Unit::of(metric), bars: bars.collect() }
}
