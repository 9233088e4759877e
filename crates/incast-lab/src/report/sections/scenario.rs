//! What was simulated: what schemes differ in, what the workloads come to, every effective value.

use crate::results::read::{FinishedRun, Results};
use maud::{Markup, html};
use serde_json::Value;

/// The scenario.
pub fn section(results: &Results) -> Markup {
    let mut workloads: Vec<&String> = Vec::new();
    for line in results.runs.iter().flat_map(|run| &run.record.workloads) {
        if !workloads.contains(&line) {
            workloads.push(line);
        }
    }
    let of_scheme = |scheme: &String| results.runs.iter().find(|run| run.record.scheme == *scheme);
    html! {
        section.scenario {
            h2 { "What was simulated" }
            h3 { "What schemes differ in" }
            dl {
                @for run in results.schemes.iter().filter_map(of_scheme) {
                    dt { (run.record.scheme) }
                    @for change in &run.record.changes { dd { (change) } }
                    @if run.record.changes.is_empty() { dd.soft { "changes nothing but the law" } }
                }
            }
            p.note { "Everything else is the same for all: fabric, buffers, hosts, and every flow's time, size and ends." }
            @if !workloads.is_empty() {
                h3 { "Traffic" }
                ul { @for line in &workloads { li { (line) } } }
            }
            @if results.points.len() > 1 {
                h3 { "Grid" }
                ul { @for (axis, values) in axes(results) { li { code { (axis) } ": " (values.join(", ")) } } }
            }
            details {
                summary { "Every effective value" @if results.points.len() > 1 { ", at the first grid point" } }
                pre tabindex="0" { (effective(results)) }
            }
        }
    }
}

/// The values of each axis, in their order.
fn axes(results: &Results) -> Vec<(String, Vec<String>)> {
    let mut axes: Vec<(String, Vec<String>)> = Vec::new();
    for (axis, value) in results.points.iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match axes.iter_mut().find(|(known, _)| known == axis) {
            Some((_, values)) if values.contains(&text) => {}
            Some((_, values)) => values.push(text),
            None => axes.push((axis.clone(), vec![text])),
        }
    }
    axes
}

/// The scenario of the first grid point with all its schemes and seeds, as TOML.
fn effective(results: &Results) -> String {
    let first = results.first();
    let mut scenario = first.record.scenario.clone();
    let here = |run: &&FinishedRun| run.record.grid == first.record.grid;
    let mut schemes: Vec<Value> = Vec::new();
    let mut seeds: Vec<Value> = Vec::new();
    for run in results.runs.iter().filter(here) {
        for scheme in run.record.scenario.get("scheme").and_then(Value::as_array).into_iter().flatten() {
            if !schemes.contains(scheme) {
                schemes.push(scheme.clone());
            }
        }
        let seed = Value::from(run.record.seed);
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }
    if let Some(table) = scenario.as_object_mut() {
        table.insert("scheme".into(), schemes.into());
        table.insert("seeds".into(), seeds.into());
    }
    // What came from TOML goes back to it.
    toml::to_string(&scenario).unwrap_or_else(|_| format!("{scenario:#}"))
}
