//! Queues and rates over time, where they were sampled.

use crate::report::{
    chart::{Axis, Curve, Plot, Spacing, Unit, plot},
    curves::Series,
    figures::{FlowRate, PointCurves, SchemeCurves},
    load::Results,
};
use maud::{Markup, html};

/// Picoseconds of a microsecond, bit/s of a Gbit/s.
const PS_PER_US: f64 = 1e6;
const BPS_PER_GBPS: f64 = 1e9;

/// What was sampled at a grid point.
pub fn section(results: &Results, curves: &PointCurves) -> Markup {
    let sampled: Vec<(usize, &SchemeCurves)> =
        curves.schemes.iter().enumerate().filter(|(_, scheme)| scheme.sampled_seed.is_some()).collect();
    let seed = sampled.first().and_then(|(_, scheme)| scheme.sampled_seed);
    let rates: Vec<_> = sampled.iter().filter(|(_, scheme)| !scheme.rates.is_empty()).collect();
    html! {
        @if !curves.ports.is_empty() {
            section.queues {
                h2 { "Queues over time" }
                p.note {
                    "Egress queues of the run with seed " (seed.unwrap_or_default()) ", the packet in service included; the longest sample of each interval."
                    @if curves.ports_left_out > 0 {
                        " Of " (curves.ports.len() + curves.ports_left_out) " sampled ports, those with the longest queues."
                    }
                }
                div.charts { @for port in &curves.ports { (queue(results, &sampled, port)) } }
            }
        }
        @if !rates.is_empty() {
            section.rates {
                h2 { "Rates over time" }
                p.note {
                    "Payload acknowledged of the run with seed " (seed.unwrap_or_default())
                    ", averaged over intervals, one line per flow; thin lines are what the law assigned."
                }
                div.charts { @for (series, scheme) in rates { (rate(&results.schemes[*series], *series, scheme)) } }
            }
        }
    }
}

fn queue(results: &Results, sampled: &[(usize, &SchemeCurves)], port: &str) -> Markup {
    let mut describe = Vec::new();
    let mut curves = Vec::new();
    for (series, scheme) in sampled {
        let Some(queue) = scheme.queues.get(port) else { continue };
        let points: Vec<(f64, f64)> =
            queue.peaks().into_iter().map(|(time, bytes)| (time as f64 / PS_PER_US, bytes)).collect();
        let peak = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let note = format!("{}: at most {}", results.schemes[*series], Unit::Bytes.text(peak));
        describe.push(note.clone());
        curves.push(Curve { series: *series, note, points, ..Curve::default() });
    }
    over_time(&format!("queue of {port}"), "queue", Unit::Bytes, &describe.join("; "), curves)
}

fn rate(name: &str, series: usize, scheme: &SchemeCurves) -> Markup {
    let line = |flow: &FlowRate, samples: &Series, faint: bool| {
        let points: Vec<(f64, f64)> = samples
            .means()
            .into_iter()
            .map(|(time, bps)| (time as f64 / PS_PER_US, bps / BPS_PER_GBPS))
            .collect();
        let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len().max(1) as f64;
        let what = if faint { "assigned" } else { "measured" };
        let note = format!(
            "flow {} of host {}, {what}: {} on average",
            flow.flow.1,
            flow.flow.0,
            Unit::Rate.text(mean)
        );
        Curve { series, note, points, faint, ..Curve::default() }
    };
    let measured: Vec<Curve> = scheme.rates.iter().map(|flow| line(flow, &flow.measured, false)).collect();
    // What is assigned may be far above the link's rate; it must not squeeze what was measured.
    let limit =
        1.5 * measured.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
    let assigned = scheme.rates.iter().map(|flow| {
        let mut curve = line(flow, &flow.assigned, true);
        for point in &mut curve.points {
            point.1 = point.1.min(limit);
        }
        curve
    });
    let describe: Vec<&str> = measured.iter().map(|curve| curve.note.as_str()).collect();
    let mut title = format!("{name}: rates of flows");
    if scheme.flows_left_out > 0 {
        title.push_str(&format!(
            " ({} of {})",
            scheme.rates.len(),
            scheme.rates.len() + scheme.flows_left_out
        ));
    }
    let describe = describe.join("; ");
    over_time(&title, "rate", Unit::Rate, &describe, assigned.chain(measured.clone()).collect())
}

/// A chart over time in microseconds.
pub fn over_time(title: &str, label: &str, unit: Unit, describe: &str, curves: Vec<Curve>) -> Markup {
    let all = || curves.iter().flat_map(|curve| curve.points.iter());
    let x = Axis::over("time", Unit::Time, Spacing::Linear, all().map(|point| point.0));
    let y = Axis::over(label, unit, Spacing::Linear, all().map(|point| point.1));
    plot(&Plot { title: title.to_owned(), describe: describe.to_owned(), x, y, curves })
}
