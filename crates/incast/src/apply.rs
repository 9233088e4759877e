//! What a run's last lines say: by which commands its settings get onto hosts and switches.

use crate::output::quoted;
use incast_interop::device::{Wanted, linux, mlnx};
use incast_lab::{
    run::{Choice, Plan},
    scenario::{Form, Run},
};
use std::collections::BTreeSet;

const MOST: usize = 4;

/// The commands that put the schemes that ran onto hosts, as devices take them, and which schemes none takes. A line is a
/// command, however long. Nothing for a scenario that is no file, or of which the short form ran.
pub fn hint(given: &str, plan: &Plan, choices: &[Choice]) -> String {
    let is_pipe = given == "-" || ["/dev/", "/proc/"].iter().any(|folder| given.starts_with(folder));
    if is_pipe || plan.scenario.form == Form::Short {
        return String::new();
    }
    // What is best comes first, each scheme once.
    let chosen = choices.iter().filter_map(|choice| plan.runs.iter().find(|run| is_of(run, choice)));
    let mut seen = BTreeSet::new();
    let firsts = chosen.chain(&plan.runs).filter(|run| seen.insert(&run.scheme));
    let sets = plan.scenario.sets.iter().map(|(key, value)| format!(" --set {}", quoted(&format!("{key}={value}"))));
    let start = format!("incast config {}{}", quoted(given), sets.collect::<String>());
    let (mut commands, mut without) = (Vec::new(), Vec::new());
    for run in firsts {
        let targets = targets(Wanted::of(run));
        if targets.is_empty() {
            without.push(quoted(&run.scheme));
        }
        let which = format!("--scheme {}{}", quoted(&run.scheme), point(run));
        commands.extend(targets.into_iter().map(|target| format!("{start} --for {target} {which}")));
    }
    let mut lines = Vec::new();
    let points = plan.runs.chunk_by(|one, other| one.grid == other.grid).count();
    if points > 1 && !commands.is_empty() {
        lines.push(match choices.first() {
            Some(choice) if choice.is_set => format!(
                "apply: each scheme's best values for {}, or for what it is best in; --only chooses others of {points} grid points",
                choice.subject
            ),
            _ => format!("apply: --only must choose one of {points} grid points; these commands have the first"),
        });
    }
    lines.extend(commands.iter().take(MOST).map(|command| format!("apply: {command}")));
    if commands.len() > MOST {
        lines.push(format!("apply: and {} more", commands.len() - MOST));
    }
    if !commands.is_empty() {
        lines.push(format!("switches: {start} --for sonic|eos|nxos --scheme NAME --switch NAME --ports …"));
    }
    if !without.is_empty() {
        let names = without[..without.len().min(MOST)].join(", ");
        let more = without.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("apply: no host that incast config knows takes {names}{more}"));
    }
    lines.join("\n") + "\n\n"
}

fn is_of(run: &Run, choice: &Choice) -> bool {
    run.scheme == choice.scheme
        && run.grid.len() == choice.grid.len()
        && run.grid.iter().all(|(key, value)| choice.grid.get(key) == Some(&serde_json::json!(value)))
}

/// Whom a scheme can be written for, with the options for that: all hosts alike, or those of one class after the other.
fn targets(mut wanted: Wanted) -> Vec<String> {
    let target = |wanted: &Wanted| {
        if linux::write(wanted).is_ok() {
            return Some("linux".to_owned());
        }
        let queues = mlnx::usual_queues(wanted);
        let options: String = queues.iter().map(|queue| format!(" {queue}")).collect();
        mlnx::write(wanted, &queues).is_ok().then(|| format!("mlnx{}", options.replacen(' ', " --queues ", 1)))
    };
    // What hosts run may need a switch that there is not.
    if wanted.config.switch.agent.info().is_some() {
        return Vec::new();
    }
    if let Some(all) = target(&wanted) {
        return vec![all];
    }
    let names: Vec<String> = wanted.config.classes.iter().map(|class| class.name.clone()).collect();
    let of_class = |name: String| {
        wanted.for_class(&name).ok()?;
        Some(format!("{} --class {}", target(&wanted)?, quoted(&name)))
    };
    names.into_iter().filter_map(of_class).collect()
}

/// The grid point of a run, as far as `--only` can name it.
fn point(run: &Run) -> String {
    let conditions = run.grid.iter().filter_map(|(path, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_plain = !text.trim().is_empty() && !text.contains('"') && !path.contains([',', '"', '=']);
        is_plain.then(|| if text.contains(',') { format!("{path}=\"{text}\"") } else { format!("{path}={text}") })
    });
    let conditions = conditions.collect::<Vec<String>>();
    if conditions.is_empty() { String::new() } else { format!(" --only {}", quoted(&conditions.join(","))) }
}

#[cfg(test)]
mod tests {
    use super::hint;
    use incast_lab::{
        run::{Choice, Plan, only::Only},
        scenario::Scenario,
    };
    use serde_json::json;

    fn said(scenario: &str, sets: &[(&str, &str)], only: &str) -> String {
        chosen(scenario, sets, only, &[])
    }

    fn chosen(scenario: &str, sets: &[(&str, &str)], only: &str, choices: &[Choice]) -> String {
        let sets: Vec<(String, String)> = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let path = format!("../../scenarios/{scenario}.toml");
        let only: Vec<String> = Some(only.to_owned()).into_iter().filter(|only| !only.is_empty()).collect();
        let scenario = Scenario::load(path.as_ref(), &sets).expect("a scenario");
        let plan = Plan::new(scenario, None, &Only::parse(&only).expect("conditions")).expect("runs");
        hint("my fabric.toml", &plan, choices)
    }

    #[test]
    fn what_no_host_gets_is_told_apart() {
        let all = said("five-papers", &[], "");
        let start = "apply: incast config 'my fabric.toml' --for linux --scheme dctcp";
        assert!(all.lines().any(|line| line.starts_with(start)), "{all}");
        // Its hosts run DCQCN, its switches what no switch has.
        let mercury = said("five-papers", &[], "scheme=\"mercury bdp\"");
        assert!(mercury.starts_with("apply: no host that incast config knows takes 'mercury bdp'\n"), "{mercury}");
        let one = said("five-papers", &[("seeds", "[7]")], "scheme=dctcp,seed=7");
        assert!(
            one.starts_with("apply: incast config 'my fabric.toml' --set 'seeds=[7]' --for linux --scheme dctcp"),
            "{one}"
        );
        assert!(one.lines().nth(1).expect("a line").starts_with("switches: "), "{one}");
    }

    #[test]
    fn what_is_best_comes_first_at_its_grid_point() {
        let grid = [("grid", "{ \"switch.ecn.at\" = [\"0.1bdp\", \"0.5bdp\"] }")];
        let choice = |scheme: &str, at: &str| Choice {
            scheme: scheme.into(),
            grid: json!({"switch.ecn.at": at}).as_object().expect("a map").clone(),
            subject: "small slowdown p99".into(),
            is_set: true,
        };
        let all = [
            choice("marimo", "0.5bdp"),
            choice("swift", "0.1bdp"),
            choice("marimo", "0.1bdp"),
            choice("dctcp", "0.1bdp"),
        ];
        let said = chosen("tutorial", &grid, "", &all);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("apply: each scheme's best values for small slowdown p99,"), "{said}");
        assert!(lines[1].ends_with("--scheme marimo --only switch.ecn.at=0.5bdp"), "{said}");
        assert!(lines[2].ends_with("--scheme dctcp --only switch.ecn.at=0.1bdp"), "{said}");
    }

    #[test]
    fn classes_with_laws_of_their_own_are_hosts_of_their_own() {
        let mixed = said("hosts/mixed", &[], "");
        for command in
            ["--for linux --class first --scheme 'dctcp beside cubic'", "--for linux --class second --scheme"]
        {
            assert!(mixed.contains(command), "{mixed}");
        }
        assert!(mixed.contains("apply: and 1 more\n"), "{mixed}");
    }
}
