//! `incast check`: what a scenario comes to, without running it.

use crate::{End, arguments, output, plan};
use incast_lab::{
    results::host::{available_memory, cores},
    run::Plan,
    scenario::Run,
    text::bytes,
};
use incast_units::Time;
use serde_json::{Value, json};
use std::fmt::Write;

/// Prints the expected cost, loads, what differs, runs and effective values.
pub fn check(arguments: &arguments::Check) -> End {
    let plans = match plan::plans(&arguments.selection) {
        Ok(plans) => plans,
        Err(error) => {
            output::error(&error);
            return End::BadInput;
        }
    };
    if arguments.json {
        let all: Vec<Value> = plans.iter().map(|(_, plan)| as_json(plan)).collect();
        output::data(&format!("{:#}\n", Value::Array(all)));
    } else {
        for (_, plan) in &plans {
            let comments = describe(plan, arguments.brief);
            output::data(&output::comments(&comments, output::known_width().unwrap_or(usize::MAX)));
            if !arguments.brief {
                let effective = plan.scenario.effective_toml();
                output::data(&format!("\n# effective values\n{}\n\n", effective.trim_end()));
            }
        }
    }
    let is_fine = |plan: &Plan| plan.scenario.warnings.is_empty() && !plan.runs.iter().any(Run::is_too_short);
    if arguments.strict && !plans.iter().all(|(_, plan)| is_fine(plan)) { End::BadInput } else { End::Done }
}

/// Bytes of the largest run.
fn memory(plan: &Plan) -> u64 {
    plan.runs.iter().map(Run::estimated_memory).max().unwrap_or(0)
}

fn as_json(plan: &Plan) -> Value {
    let mut all = plan.expected();
    if let Some(all) = all.as_object_mut() {
        all.insert("scenario".into(), json!(plan.scenario.name));
        all.insert("warnings".into(), json!(plan.scenario.warnings));
        all.insert("effective".into(), json!(plan.scenario.effective));
    }
    all
}

/// What there is to say, the conclusion first, in comments of TOML.
fn describe(plan: &Plan, is_brief: bool) -> String {
    let mut text = String::new();
    let (hops, cpu_s) = plan.expected_cost();
    let _ = writeln!(text, "# expected cost of {}, {} runs", plan.scenario.name, plan.runs.len());
    let simulations = plan.simulations().len();
    if simulations < plan.runs.len() {
        let _ = writeln!(
            text,
            "#   {simulations} simulations: the other runs differ in nothing that their packets depend on"
        );
    }
    let _ = writeln!(
        text,
        "#   {} packet-hops and {} flows; {cpu_s:.1} s of CPU, {:.1} s on {} cores",
        count(hops),
        count(plan.simulations().iter().map(|same| plan.runs[same[0]].expected_flows()).sum()),
        cpu_s / cores().min(plan.runs.len().max(1)) as f64,
        cores()
    );
    let available = available_memory().map(|available| format!("; {} are available", bytes(available)));
    let _ =
        writeln!(text, "#   {} of memory for the largest run{}", bytes(memory(plan)), available.unwrap_or_default());
    loads(&mut text, plan);
    let first: Vec<&Run> = plan.runs.iter().take_while(|run| run.grid == plan.runs[0].grid).collect();
    let at = if first.len() < plan.runs.len() && !plan.scenario.axes().is_empty() {
        ", at the first grid point"
    } else {
        ""
    };
    by_scheme(&mut text, first, &format!("network{at}"), Run::describe_network);
    by_scheme(&mut text, &plan.runs, "hosts that are not Linux's (host.profile = \"linux\" would be)", hosts);
    by_scheme(&mut text, &plan.runs, "laws made for a lossless fabric, on a lossy one", Run::without_lossless_fabric);
    if is_brief {
        text += "\n";
        return text;
    }
    let changed: Vec<_> = plan.footnotes().into_iter().filter(|(_, notes)| !notes.is_empty()).collect();
    if !changed.is_empty() {
        let _ = writeln!(text, "\n# what schemes change");
    }
    for (scheme, notes) in changed {
        let _ = writeln!(text, "#   {scheme}: {}", notes.join("; "));
    }
    by_scheme(&mut text, &plan.runs, "switches that differ, and in what", Run::describe_switches);
    by_scheme(&mut text, &plan.runs, "flow control", Run::describe_pfc);
    by_scheme(
        &mut text,
        &plan.runs,
        "constants published with other thresholds than switch.ecn has",
        Run::unlike_published,
    );
    workloads(&mut text, plan);
    let seeds = (plan.scenario.seeds.len(), plan.scenario.seed_budget);
    let more = if seeds.1 > seeds.0 {
        format!("; up to {} seeds where claims are inconclusive with {}", seeds.1, seeds.0)
    } else {
        String::new()
    };
    let _ = writeln!(text, "\n# {} runs{more}", plan.runs.len());
    for runs in plan.runs.chunk_by(|a, b| a.grid == b.grid && cost(a) == cost(b)) {
        let (first, last) = (&runs[0], &runs[runs.len() - 1]);
        let _ = match runs.len() {
            1 => writeln!(text, "#   {}: {}", first.folder, cost(first)),
            count => writeln!(text, "#   {} to {} ({count} runs): each {}", first.folder, last.folder, cost(first)),
        };
    }
    text
}

/// What a run costs at most.
fn cost(run: &Run) -> String {
    let hops = count(run.estimated_packet_hops());
    format!("at most about {hops} packet-hops, {} of memory", bytes(run.estimated_memory()))
}

/// Each workload once.
fn workloads(text: &mut String, plan: &Plan) {
    let mut workloads: Vec<String> = Vec::new();
    for line in plan.runs.iter().flat_map(Run::describe_workloads) {
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
}

/// In what the hosts of a scheme under a law that Linux has are not Linux's.
fn hosts(run: &Run) -> Vec<String> {
    let unlike = run.unlike_linux().into_iter();
    let line = |(rto_min, keys): (Time, Vec<&str>)| {
        format!("rto_min is {rto_min}; Linux has other values of {}", keys.join(", "))
    };
    unlike.map(line).collect()
}

/// What there is to say of the runs of each scheme, each line once for all schemes that it is said of.
fn by_scheme<'a>(
    text: &mut String,
    runs: impl IntoIterator<Item = &'a Run>,
    title: &str,
    describe: impl Fn(&Run) -> Vec<String>,
) {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs {
        for line in describe(run) {
            match lines.iter_mut().find(|(other, _)| *other == line) {
                Some((_, schemes)) if schemes.contains(&run.scheme.as_str()) => {}
                Some((_, schemes)) => schemes.push(&run.scheme),
                None => lines.push((line, vec![&run.scheme])),
            }
        }
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "\n# {title}");
        for (line, schemes) in lines {
            let _ = writeln!(text, "#   {}: {line}", schemes.join(", "));
        }
    }
}

/// The nominal load at each grid point, the highest of the schemes, and whether flows arrive for long enough.
fn loads(text: &mut String, plan: &Plan) {
    let _ = writeln!(text, "\n# nominal load of the most loaded link, headers included");
    let mut lines: Vec<(String, String)> = Vec::new();
    for runs in plan.runs.chunk_by(|a, b| a.grid == b.grid) {
        let point = runs[0].grid.iter().map(|(path, value)| format!("{path} = {value}"));
        lines.push((point.collect::<Vec<_>>().join(", "), load(runs)));
    }
    let several = lines.iter().any(|(_, line)| *line != lines[0].1);
    for (point, line) in lines.iter().take(if several { usize::MAX } else { 1 }) {
        let point = if several { format!("{point}: ") } else { String::new() };
        let _ = writeln!(text, "#   {point}{line}");
    }
}

/// Of the runs of a grid point.
fn load(runs: &[Run]) -> String {
    let all = runs.iter().filter_map(|run| run.nominal());
    let Some(most) = all.clone().max_by(|a, b| a.load.total_cmp(&b.load)) else {
        return "none: batches, lists of flows and closed loops have no mean rate".into();
    };
    let least = all.map(|nominal| nominal.load).fold(most.load, f64::min);
    let range = if most.load - least >= 5e-4 { format!("{least:.3} to ") } else { String::new() };
    let without = if most.without.is_empty() {
        String::new()
    } else {
        format!(", without {}, which have none", most.without.join(", "))
    };
    let settles = match most.settles {
        Some(settles) if settles <= runs[0].counted_from => "the warm-up is long enough for a steady state".into(),
        _ => most.settling(runs[0].counted_until),
    };
    format!("{range}{:.3} on {}{without}; {settles}", most.load, most.link)
}

fn count(hops: f64) -> String {
    match hops {
        _ if hops >= 1e9 => format!("{:.1} G", hops / 1e9),
        _ if hops >= 1e6 => format!("{:.1} M", hops / 1e6),
        _ if hops >= 1e3 => format!("{:.0} k", hops / 1e3),
        _ => format!("{hops:.0}"),
    }
}
