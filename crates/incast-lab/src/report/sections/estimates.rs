//! The laws' estimates of their paths over time, beside the arrivals at the longest queue.

use super::over_time::over_time;
use crate::report::chart::{Curve, Unit};
use crate::report::input::{
    curves::Series,
    figures::{PointCurves, SchemeCurves},
};
use crate::results::read::Results;
use maud::{Markup, html};

/// Schemes whose laws keep an estimate, if flows were sampled.
pub fn section(results: &Results, curves: &PointCurves) -> Markup {
    let estimating: Vec<(usize, &SchemeCurves)> = (0..)
        .zip(&curves.schemes)
        .filter(|(_, scheme)| scheme.rates.iter().any(|flow| flow.estimate.is_some()))
        .collect();
    html! {
        @if !estimating.is_empty() {
            section.estimates {
                h2 { "Estimates over time" }
                p.note {
                    "Thin: the estimate of each flow's law, in that law's unit. Thick, if the port was sampled: arrivals at the sampled port with the "
                    "longest queue over the rate of its link (bytes sent plus growth of the queue, without drops)."
                }
                div.charts {
                    @for (series, scheme) in estimating {
                        (estimates(&results.schemes[series], series, scheme, curves.ports.first()))
                    }
                }
            }
        }
    }
}

fn estimates(name: &str, series: usize, scheme: &SchemeCurves, port: Option<&String>) -> Markup {
    let points = |samples: &Series, unit: f64| -> Vec<(f64, f64)> {
        samples.means().into_iter().map(|(time, value)| (time as f64 / 1e6, value / unit)).collect()
    };
    let mut curves: Vec<Curve> = Vec::new();
    for flow in &scheme.rates {
        let Some(estimate) = &flow.estimate else { continue };
        let note = format!("estimate of flow {} of host {}", flow.flow.1, flow.flow.0);
        curves.push(Curve { series, note, points: points(estimate, 1.0), faint: true, ..Curve::default() });
    }
    let load = port.and_then(|port| Some((port, scheme.arrivals.get(port)?, scheme.link_bps?)));
    if let Some((port, arrivals, bps)) = load {
        let note = format!("load of {port}");
        curves.push(Curve { series, note, points: points(arrivals, bps), ..Curve::default() });
    }
    let describe = format!("{} flows{}", scheme.rates.len(), if load.is_some() { " and the port's load" } else { "" });
    over_time(&format!("{name}: estimates"), "estimate", Unit::Number, &describe, curves)
}
