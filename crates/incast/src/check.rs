//! `incast check`: what a scenario comes to, without running it.

use crate::{End, arguments, output, plan};
use incast_lab::{
    results::host::{available_memory, cores},
    run::Plan,
    text::bytes,
};
use std::fmt::Write;

/// Cost that a packet-hop is expected to have on one core, in nanoseconds, in fabrics of up to `SMALL` hosts and from
/// `LARGE` hosts on, which do not fit into caches; in between it grows evenly. See `incast bench`.
const NS_SMALL: f64 = 60.0;
const NS_LARGE: f64 = 120.0;
const SMALL: f64 = 1_024.0;
const LARGE: f64 = 8_192.0;

/// Expected cost of a packet-hop of a run in nanoseconds.
fn ns_per_packet_hop(run: &incast_lab::scenario::Run) -> f64 {
    let part = ((f64::from(run.hosts()) - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    NS_SMALL + (NS_LARGE - NS_SMALL) * part
}

/// Prints effective values, runs, warnings and the expected cost.
pub fn check(arguments: &arguments::Check) -> End {
    match plan::plans(&arguments.selection) {
        Ok(plans) => {
            for (_, plan) in &plans {
                output::data(&describe(plan));
            }
            End::Done
        }
        Err(error) => {
            output::error(&error);
            End::BadInput
        }
    }
}

fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# effective values\n{}", plan.scenario.effective_toml().trim_end());
    let seeds = (plan.scenario.seeds.len(), plan.scenario.seed_budget);
    let more = if seeds.1 > seeds.0 {
        format!("; up to {} seeds where claims are inconclusive with {}", seeds.1, seeds.0)
    } else {
        String::new()
    };
    let _ = writeln!(text, "\n# {} runs{more}", plan.runs.len());
    for run in &plan.runs {
        let hops = run.estimated_packet_hops();
        let _ = writeln!(
            text,
            "#   {}: at most about {} packet-hops, {} of memory",
            run.folder,
            count(hops),
            bytes(run.estimated_memory())
        );
    }
    let mut workloads: Vec<String> = Vec::new();
    for line in plan.runs.iter().flat_map(|run| run.describe_workloads()) {
        if !workloads.contains(&line) {
            workloads.push(line);
        }
    }
    if !workloads.is_empty() {
        let _ = writeln!(text, "\n# workloads");
        for line in workloads {
            let _ = writeln!(text, "#   {line}");
        }
    }
    let mut schemes: Vec<&str> = Vec::new();
    for run in &plan.runs {
        let notes = run.footnotes();
        if !schemes.contains(&run.scheme.as_str()) && !notes.is_empty() {
            if schemes.is_empty() {
                let _ = writeln!(text, "\n# what schemes change");
            }
            let _ = writeln!(text, "#   {}: {}", run.scheme, notes.join("; "));
            schemes.push(&run.scheme);
        }
    }
    let mut lossless: Vec<String> = Vec::new();
    for run in &plan.runs {
        for line in run.describe_pfc() {
            let line = format!("{}: {line}", run.scheme);
            if !lossless.contains(&line) {
                lossless.push(line);
            }
        }
    }
    if !lossless.is_empty() {
        let _ = writeln!(text, "\n# flow control");
        for line in lossless {
            let _ = writeln!(text, "#   {line}");
        }
    }
    let hops: f64 = plan.runs.iter().map(incast_lab::scenario::Run::expected_packet_hops).sum();
    let cpu_s: f64 =
        plan.runs.iter().map(|run| run.expected_packet_hops() * ns_per_packet_hop(run) * 1e-9).sum();
    let memory = plan.runs.iter().map(incast_lab::scenario::Run::estimated_memory).max().unwrap_or(0);
    let _ = writeln!(text, "\n# expected cost");
    let _ = writeln!(
        text,
        "#   {} packet-hops; at {:.0} ns each, {cpu_s:.1} s of CPU, {:.1} s on {} cores",
        count(hops),
        cpu_s * 1e9 / hops.max(1.0),
        cpu_s / cores().min(plan.runs.len().max(1)) as f64,
        cores()
    );
    let available = available_memory().map(|available| format!("; {} are available", bytes(available)));
    let _ = writeln!(
        text,
        "#   {} of memory for the largest run{}\n",
        bytes(memory),
        available.unwrap_or_default()
    );
    text
}

fn count(hops: f64) -> String {
    match hops {
        _ if hops >= 1e9 => format!("{:.1} G", hops / 1e9),
        _ if hops >= 1e6 => format!("{:.1} M", hops / 1e6),
        _ if hops >= 1e3 => format!("{:.0} k", hops / 1e3),
        _ => format!("{hops:.0}"),
    }
}
