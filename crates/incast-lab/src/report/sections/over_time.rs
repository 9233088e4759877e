//! Queues and rates over time, where they were sampled.

use crate::report::chart::{Axis, Curve, Plot, Spacing, Unit, plot};
use crate::report::input::{
    curves::Series,
    figures::{FlowRate, PointCurves, SchemeCurves},
};
use crate::results::read::Results;
use maud::{Markup, html};
use std::ops::Range;

/// Picoseconds of a microsecond, bit/s of a Gbit/s.
const PS_PER_US: f64 = 1e6;
const BPS_PER_GBPS: f64 = 1e9;

/// Flows that are few enough for figures of their own, in which schemes are compared.
const MOST_COMPARED: usize = 3;

/// What was sampled at a grid point.
pub fn section(results: &Results, curves: &PointCurves) -> Markup {
    let sampled: Vec<(usize, &SchemeCurves)> =
        curves.schemes.iter().enumerate().filter(|(_, scheme)| scheme.sampled_seed.is_some()).collect();
    let seed = sampled.first().and_then(|(_, scheme)| scheme.sampled_seed);
    let rates: Vec<_> = sampled.iter().filter(|(_, scheme)| !scheme.rates.is_empty()).collect();
    let compared = compared(&rates);
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
                @if !compared.is_empty() {
                    p.note {
                        "Single flows of the run with seed " (seed.unwrap_or_default())
                        ", averaged over intervals, one line per scheme: payload acknowledged, and what laws assign: the pace, and no more than the window lets through in a base RTT, or window over RTT where there is no pace."
                    }
                    div.charts {
                        @for flow in compared {
                            (one_flow(results, &rates, flow, false))
                            (one_flow(results, &rates, flow, true))
                        }
                    }
                }
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

/// Places of the flows of which there are figures that compare schemes: where all schemes have the same few.
fn compared(rates: &[&(usize, &SchemeCurves)]) -> Range<usize> {
    let flows = |scheme: &SchemeCurves| scheme.rates.iter().map(|rate| rate.flow).collect::<Vec<_>>();
    match rates {
        [(_, first), others @ ..]
            if !others.is_empty()
                && first.rates.len() <= MOST_COMPARED
                && rates.iter().all(|(_, scheme)| scheme.flows_left_out == 0)
                && others.iter().all(|(_, scheme)| flows(scheme) == flows(first)) =>
        {
            0..first.rates.len()
        }
        _ => 0..0,
    }
}

/// How a flow is called: by its class, and by its source where its class has others.
fn flow_name(scheme: &SchemeCurves, flow: &FlowRate) -> String {
    let (host, number) = flow.flow;
    let alone =
        scheme.rates.iter().filter(|other| other.class == flow.class).count() == 1 && scheme.flows_left_out == 0;
    if alone { flow.class.clone() } else { format!("{}, flow {number} of host {host}", flow.class) }
}

/// A flow under all schemes.
fn one_flow(results: &Results, rates: &[&(usize, &SchemeCurves)], flow: usize, assigned: bool) -> Markup {
    let points = |samples: &Series| -> Vec<(f64, f64)> {
        let means = samples.means().into_iter();
        means.map(|(time, bps)| (time as f64 / PS_PER_US, bps / BPS_PER_GBPS)).collect()
    };
    let largest = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    // What is assigned may be far above the link's rate; it must not squeeze what matters.
    let limit =
        1.5 * rates.iter().map(|(_, scheme)| largest(&points(&scheme.rates[flow].measured))).fold(0.0, f64::max);
    let curves: Vec<Curve> = rates
        .iter()
        .map(|(series, scheme)| {
            let rate = &scheme.rates[flow];
            let mut points = points(if assigned { &rate.assigned } else { &rate.measured });
            points.iter_mut().for_each(|point| point.1 = point.1.min(limit));
            let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
            let note = format!("{}: at least {}", results.schemes[*series], Unit::Rate.text(least));
            Curve { series: *series, note, points, ..Curve::default() }
        })
        .collect();
    let describe: Vec<&str> = curves.iter().map(|curve| curve.note.as_str()).collect();
    let (_, scheme) = rates[0];
    let what = if assigned { "assigned" } else { "measured" };
    let title = format!("{}: {what} rate", flow_name(scheme, &scheme.rates[flow]));
    over_time(&title, "rate", Unit::Rate, &describe.join("; "), curves.clone())
}

fn rate(name: &str, series: usize, scheme: &SchemeCurves) -> Markup {
    let line = |flow: &FlowRate, samples: &Series, faint: bool| {
        let points: Vec<(f64, f64)> =
            samples.means().into_iter().map(|(time, bps)| (time as f64 / PS_PER_US, bps / BPS_PER_GBPS)).collect();
        let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len().max(1) as f64;
        let what = if faint { "assigned" } else { "measured" };
        let note = format!("{}, {what}: {} on average", flow_name(scheme, flow), Unit::Rate.text(mean));
        Curve { series, note, points, faint, ..Curve::default() }
    };
    let measured: Vec<Curve> = scheme.rates.iter().map(|flow| line(flow, &flow.measured, false)).collect();
    // What is assigned may be far above the link's rate; it must not squeeze what was measured.
    let limit = 1.5 * measured.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
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
        title.push_str(&format!(" ({} of {})", scheme.rates.len(), scheme.rates.len() + scheme.flows_left_out));
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
