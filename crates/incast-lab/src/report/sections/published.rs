//! Measured beside published: the median and the 99th percentile of each class, as bars.

use super::{add_claimed, has_common_times, is_measured, of_class};
use crate::results::read::{Point, Results};
use crate::{
    metrics::{Metric, Scope, metric},
    report::chart::{Bar, Bars, Unit, bars},
    results::{claims::Judgement, row::ALL},
};
use maud::{Markup, html};

const METRICS: [&Metric; 2] = [metric("fct_us.p50"), metric("fct_us.p99")];
/// Of the fabric.
const OF_ALL: [&Metric; 2] = [metric("max_queue_bytes"), metric("busiest_link")];

/// Bars of a grid point, and of whatever else was published of it as plain numbers.
pub fn section(results: &Results, point: &Point) -> Markup {
    let mut charts: Vec<(&str, &Metric)> = Vec::new();
    for class in results.classes.iter().filter(|class| has_common_times(results, point, class)) {
        charts.extend(METRICS.iter().map(|metric| (class.as_str(), *metric)));
    }
    charts.extend(OF_ALL.iter().map(|metric| (ALL, *metric)));
    for claim in plain(results, point) {
        add_claimed(&mut charts, claim);
    }
    charts.retain(|(class, metric)| is_measured(results, class, metric.name));
    let published = plain(results, point).next().is_some();
    html! {
        section.bars {
            h2 { @if published { "Measured and published" } @else { "Flow completion times, queues and links" } }
            @if published {
                p.note {
                    "Bars are measured, strokes published; an arrow points to where a published bound allows values. Whiskers are 95% confidence intervals over seeds."
                }
            }
            div.charts {
                @for (class, metric) in &charts { (bars(&chart(results, point, class, metric))) }
            }
        }
    }
}

/// Claims about a grid point that are numbers and not ratios.
fn plain<'a>(results: &'a Results, point: &'a Point) -> impl Iterator<Item = &'a Judgement> {
    results.claims.iter().filter(move |claim| claim.grid == *point && !claim.is_ratio)
}

fn chart(results: &Results, point: &Point, class: &str, metric: &Metric) -> Bars {
    let bars = results.schemes.iter().enumerate().filter_map(|(series, scheme)| {
        let row = results.pooled(point, scheme, class)?;
        // Of a run, as claims are judged.
        let (value, at_least) = (row.per_run(metric), row.bound(metric.name));
        let interval = row.interval_per_run(metric);
        let claims = plain(results, point);
        let published = claims
            .filter(|claim| claim.scheme == *scheme && claim.class == class && claim.metric == metric.name)
            .filter(|claim| !claim.ours)
            .map(|claim| (claim.relation, claim.published))
            .collect();
        Some(Bar { series, name: scheme.clone(), value, at_least, interval, published })
    });
    let title = match metric.scope {
        Scope::Class => format!("{}, {}", metric.title, of_class(class)),
        _ => metric.title.to_owned(),
    };
    Bars { title, unit: Unit::of(metric.name), bars: bars.collect() }
}
