//! What was found, and the start, where load, buffer and round trip are a little different.

use super::{
    Advice, Means, Question, axis,
    search::Settings,
    trials::{self, Space},
    value,
};
use crate::{
    metrics,
    results::{
        checksums::hex,
        row::Row,
        verdict::{Apart, Pairs},
    },
    run::{Options, Plan, RunError, execute, execute_part, folder::Existing, only::Only},
    scenario::{safe, tree},
    text,
};
use incast_units::{Bytes, Time};
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use toml::{Table, Value};

/// Seeds of each.
const SEEDS: usize = 3;
/// Kinds of conditions.
const KINDS: [&str; 3] = ["load", "buffer", "round trip"];

/// Runs of a scheme at most.
pub const fn most_runs() -> usize {
    2 * KINDS.len() * 2 * SEEDS
}

/// What one condition does.
#[derive(Clone, Debug)]
pub struct Condition {
    /// `load −20%`.
    pub name: String,
    /// What was found against the start there; `None` where flows did not finish, or nothing was run.
    pub apart: Option<Apart>,
    /// Why nothing was run.
    pub not_run: Option<String>,
}

impl Condition {
    /// In words.
    pub fn text(&self) -> String {
        let said = match (&self.not_run, &self.apart) {
            (Some(why), _) => format!("not run, as {why}"),
            (None, Some(apart)) => apart.text(),
            (None, None) => "not known on every seed".to_owned(),
        };
        format!("{} {said}", self.name)
    }
}

/// Runs them and puts them into the advice: each scheme of which something was found.
///
/// # Errors
/// They cannot be run.
pub fn run(question: &Question, space: &Space, advice: &mut Advice, means: Means<'_>) -> Result<(), RunError> {
    for scheme in 0..advice.schemes.len() {
        let own = &advice.schemes[scheme];
        if !own.helps() {
            continue;
        }
        let (start, best) = (own.start.clone(), own.best.clone());
        let found = of_scheme((question, space), scheme, [&start, &best], means)?;
        let own = &mut advice.schemes[scheme];
        own.conditions = found;
        own.is_stopped |= means.stop.load(Ordering::Relaxed);
    }
    Ok(())
}

fn of_scheme(
    (question, space): (&Question, &Space),
    scheme: usize,
    settings: [&Settings; 2],
    means: Means<'_>,
) -> Result<Vec<Condition>, RunError> {
    let Some(run) = space.run_of(scheme, settings[0]) else { return Ok(Vec::new()) };
    let effective = run.effective();
    let name = &space.schemes[scheme];
    let is_tuned = |key: &str| space.axes.iter().any(|axis| axis::overlap(&axis.key, key));
    // Settings change together: a grid would have all combinations.
    let values = |index: usize| settings.iter().map(move |places| space.axes[index].levels[places[index]].clone());
    let both: Table = (0..space.axes.len())
        .map(|index| (space.axes[index].key.clone(), Value::Array(values(index).collect())))
        .collect();
    let mut all = Vec::new();
    for kind in KINDS {
        let (tuned, keys): (Vec<_>, Vec<_>) =
            keys(&effective, name, kind).into_iter().partition(|(key, _)| is_tuned(key));
        let of_which = if kind == "load" { scaled_part(&effective, &keys) } else { String::new() };
        for factor in [1.0 - question.vary, 1.0 + question.vary] {
            let change = (factor - 1.0) * 100.0;
            let in_bdp =
                if kind == "round trip" && depends_on_delay(space) { ", thresholds in bdp with it," } else { "" };
            let condition =
                Condition { name: format!("{kind}{of_which} {}%{in_bdp}", signed(change)), apart: None, not_run: None };
            let not_run = |why: &str| Condition { not_run: Some(why.to_owned()), ..condition.clone() };
            let changed =
                keys.iter().map(|(key, now)| Some((key.clone(), Value::Array(vec![scaled(key, now, factor)?]))));
            let Some(grid) = changed.collect::<Option<Table>>().filter(|grid| !grid.is_empty()) else {
                let why = if tuned.is_empty() { "the scenario does not say it by one number" } else { "it is tuned" };
                all.push(not_run(why));
                continue;
            };
            let (scenario, refused) = match trials::regrid(question, &space.sets, &grid, std::slice::from_ref(&both)) {
                // A load above what is possible, a buffer below what is reserved.
                Err(error) if error.is_bad_input() => {
                    all.push(not_run("it is not possible"));
                    continue;
                }
                made => made?,
            };
            if !refused.is_empty() {
                all.push(not_run("it is not possible"));
                continue;
            }
            let percent = text::significant(factor * 100.0);
            let kind_safe = kind.replace(' ', "-");
            // What another search left of this condition is of other settings.
            let of = &hex(&Sha256::digest(Value::Table(both.clone()).to_string()))[..8];
            let mut scenario = scenario.renamed(&format!("{}-{}-{kind_safe}-{percent}-{of}", space.name(), safe(name)));
            scenario.seeds = space.unseen()[..SEEDS].to_vec();
            scenario.seed_budget = SEEDS;
            let plan = Plan::new(scenario, None, &Only::default().with("scheme", name))?;
            let Means { options, observer, stop, .. } = means;
            // What failed is not tried again: elsewhere it has failed, too.
            let run = |existing| execute_part(&plan, &Options { existing, ..options.clone() }, observer, stop);
            let part = match means.run_elsewhere(&plan).and_then(|()| run(Existing::Resume)) {
                Err(RunError::Occupied { .. }) if options.existing == Existing::Overwrite => run(Existing::Overwrite)?,
                Err(RunError::Occupied { .. }) => {
                    all.push(not_run("its folder holds other results"));
                    continue;
                }
                part => part?,
            };
            if stop.load(Ordering::Relaxed) {
                return Ok(all);
            }
            if let Some((_, why)) = part.failures.first() {
                all.push(not_run(&format!("a run failed: {why}")));
                continue;
            }
            let finished = execute(&plan, &Options { existing: Existing::Resume, ..options.clone() }, observer, stop)?;
            let [start, best] = settings.map(|places| objective(&finished.rows, question, space, (name, places)));
            let apart = start.zip(best).and_then(|(start, best)| {
                let metric = metrics::find(&question.objective.metric)?;
                Pairs::new(metric, [&start[..], &best[..]].into_iter()).apart(name, &best, &start)
            });
            all.push(Condition { apart, ..condition });
        }
    }
    Ok(all)
}

/// The number of each seed; `None` where one is unknown.
fn objective(
    rows: &[Row],
    question: &Question,
    space: &Space,
    (scheme, places): (&str, &Settings),
) -> Option<Vec<f64>> {
    let column = &question.objective;
    let is_it = |row: &&Row| {
        let values = space.axes.iter().zip(places).map(|(axis, place)| (&axis.key, &axis.levels[*place]));
        let mut values = values.map(|(key, value)| row.grid.get(key) == serde_json::to_value(value).ok().as_ref());
        !row.is_pooled() && row.scheme == scheme && row.class == column.class && values.all(|is_same| is_same)
    };
    let values: Vec<f64> = rows.iter().filter(is_it).map(|row| row.number(&column.metric)).collect::<Option<_>>()?;
    (values.len() == SEEDS).then_some(values)
}

/// Which classes' loads are scaled, if that is not all.
fn scaled_part(effective: &Table, keys: &[(String, Value)]) -> String {
    let workloads = effective.get("workload").and_then(Value::as_array).map_or(0, Vec::len);
    let class = |(key, _): &(String, Value)| tree::path::split(key).ok()?.into_iter().nth(1);
    let classes: Vec<String> = keys.iter().filter_map(class).collect();
    if classes.is_empty() || classes.len() == workloads { String::new() } else { format!(" of {}", classes.join(", ")) }
}

/// A per cent with its sign.
fn signed(percent: f64) -> String {
    format!("{}{}", if percent < 0.0 { "-" } else { "+" }, text::significant(percent.abs()))
}

/// Values of a key are parts of the product of bandwidth and delay.
fn depends_on_delay(space: &Space) -> bool {
    let is_in_bdp = |level: &Value| level.to_string().contains("bdp");
    space.axes.iter().any(|axis| axis.levels.iter().any(is_in_bdp))
}

/// Keys of a kind of condition that the scenario has, with their values.
fn keys(effective: &Table, scheme: &str, kind: &str) -> Vec<(String, Value)> {
    let quoted = |name: &str| format!("\"{name}\"");
    let mut paths = Vec::new();
    match kind {
        "load" => {
            for workload in effective.get("workload").and_then(Value::as_array).into_iter().flatten() {
                let Some(class) = workload.get("class").and_then(Value::as_str) else { continue };
                paths.extend(["load", "every"].map(|key| format!("workload.{}.{key}", quoted(class))));
            }
        }
        "buffer" => {
            let own = format!("scheme.{}.switch.buffer.total", quoted(scheme));
            paths.push(if value(effective, &own).is_some() { own } else { "switch.buffer.total".to_owned() });
        }
        _ => {
            let links = effective.get("topology").and_then(Value::as_table).into_iter().flatten();
            paths.extend(links.filter(|(_, link)| link.is_table()).map(|(key, _)| format!("topology.{key}.delay")));
        }
    }
    paths.into_iter().filter_map(|path| Some((value(effective, &path)?, path))).map(|(now, path)| (path, now)).collect()
}

/// A value times a factor; a time between arrivals divided by it.
fn scaled(key: &str, now: &Value, factor: f64) -> Option<Value> {
    let text = |text: String| Some(Value::String(text));
    match now {
        Value::Float(number) => Some(Value::Float(number * factor)),
        Value::Integer(number) => Some(Value::Float(*number as f64 * factor)),
        Value::String(time) if key.ends_with(".every") => {
            text(Time::from_ps((time.parse::<Time>().ok()?.ps() as f64 / factor) as u64 / 1000 * 1000).to_string())
        }
        Value::String(time) if key.ends_with(".delay") => text(time.parse::<Time>().ok()?.mul_f64(factor).to_string()),
        Value::String(size) => text(Bytes::new((size.parse::<Bytes>().ok()?.get() as f64 * factor) as u64).to_string()),
        _ => None,
    }
}
