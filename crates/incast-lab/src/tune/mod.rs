//! Which values of a few keys are best: a search over seeds and durations, then a test on seeds that it did not see.
//!
//! All runs are those of one scenario, the user's with a grid over the keys and two durations, of which only what the
//! search asks for is run. So results resume, open and are compared as any others.
//!
//! - [`axis`]: keys and their values.
//! - [`search`](mod@search): what is tried next.
//! - `trials`: the runs.
//! - `conditions`: load, buffer and round trip that are a little different.
//! - [`shards`]: several machines.
//! - [`advice`]: what is said of it.

pub mod advice;
pub mod axis;
mod conditions;
pub mod search;
pub mod shards;
mod trials;

pub use advice::{Advice, SchemeAdvice};
pub use axis::Over;

use crate::{
    metrics::{self, Better, Metric, Scope},
    results::{
        row::ALL,
        verdict::{self, Terms},
    },
    run::{
        Observer, Options, Plan, RunError,
        list::{self, Flows},
        missing,
        only::Only,
    },
    scenario::{Column, Run, Scenario, tree},
    text,
};
use axis::{Axis, MOST_KEYS};
use incast_sim::FlowSpec;
use search::{Found, Problem, search};
use std::{
    collections::BTreeSet,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
};
use toml::{Table, Value};
use trials::{Runs, ShortRuns, Space};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The scenario; the search starts from its values.
    pub scenario: Scenario,
    /// Which point of its grid.
    pub only: Only,
    /// The number that is to be good.
    pub objective: Column,
    /// Numbers that may not get worse by more than they say.
    pub within: Vec<Within>,
    /// The keys.
    pub over: Vec<Over>,
    /// The schemes; if there are none, those that the keys are about.
    pub schemes: Vec<String>,
    /// Full runs that each scheme may cost, those of unseen seeds included.
    pub budget: u32,
    /// By which part load, buffer and round trip are varied at the end; 0 for not at all.
    pub vary: f64,
}

/// `CLASS:METRIC=+10%`: a number that may get worse by so much against the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Within {
    /// The number.
    pub column: Column,
    /// The part.
    pub worse: f64,
}

impl FromStr for Within {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected CLASS:METRIC=+PERCENT, such as background:slowdown.p99=+10%";
        let (column, part) = text.rsplit_once('=').ok_or(expected)?;
        let percent = part.trim().trim_start_matches('+').strip_suffix('%').and_then(|part| part.parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..=1000.0).contains(percent)).ok_or(expected)?;
        Ok(Self { column: crate::results::compact::parse_column(column.trim())?, worse: percent / 100.0 })
    }
}

/// Part of the budget for seeds that the search has not seen, for the start and for what was found.
const HELD_OUT: f64 = 0.2;
/// Seeds of that kind, at least and at most: fewer than three tell nothing apart.
const LEAST_HELD_OUT: usize = 3;
const MOST_HELD_OUT: usize = 8;
/// A smaller budget searches nothing.
pub const LEAST_BUDGET: u32 = 12;

/// Part of the measured time that short runs have.
const SHORT: f64 = 0.25;
/// Short runs that cost more of a full one are not worth it.
const MOST_SHORT: f64 = 0.7;

/// The least part by which conditions are varied: a smaller one says nothing of them.
const LEAST_VARIED: f64 = 0.01;

/// Numbers of each class that are shown beside what was asked for.
const BESIDE: [&str; 4] = ["slowdown.p50", "slowdown.p99", "rct_us.p99", "long_flow_gbps"];

/// With what runs are done.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// As for any runs.
    pub options: &'a Options,
    /// It is told how far they are.
    pub observer: &'a dyn Observer,
    /// They are given up when it becomes true.
    pub stop: &'a AtomicBool,
    /// Other machines.
    pub elsewhere: Option<&'a dyn Elsewhere>,
}

/// Machines that do runs beside this one.
pub trait Elsewhere: Sync {
    /// Does runs of a plan that are not there yet, by their folders, and leaves them in the folder of its results. What it does
    /// not do is done here. Values that were set beyond those of the question's scenario are the last ones of the `sets` of
    /// the plan's.
    ///
    /// # Errors
    /// The search cannot go on.
    fn run(&self, plan: &Plan, missing: Vec<String>) -> Result<(), RunError>;
}

impl Means<'_> {
    /// Does runs of which the folder is there elsewhere, if there are other machines.
    fn run_elsewhere(&self, plan: &Plan) -> Result<(), RunError> {
        let Some(elsewhere) = self.elsewhere else { return Ok(()) };
        let missing = missing(plan, &self.options.out, &[], false)?;
        if missing.is_empty() {
            return Ok(());
        }
        let done = elsewhere.run(plan, missing);
        // Whoever was interrupted says what has been found so far.
        if self.stop.load(Ordering::Relaxed) { Ok(()) } else { done }
    }
}

/// A search that is about to begin.
#[derive(Debug)]
pub struct Tuning {
    question: Question,
    space: Space,
    /// The number that is to be good.
    metric: &'static Metric,
}

impl Tuning {
    /// Checks the question and makes the scenario of the search.
    ///
    /// # Errors
    /// The question has a mistake, or its scenario at all settings.
    pub fn new(question: Question) -> Result<Self, RunError> {
        let refuse = |found: String, message: String| Err(RunError::Plan { found, message });
        let metric = checked(&question)?;
        let plan = Plan::new(question.scenario.clone(), Some(1), &question.only)?;
        let point = plan.runs.first().map(|run| run.grid.clone()).unwrap_or_default();
        if plan.runs.iter().any(|run| run.grid != point) {
            let axes: Vec<&str> = point.iter().map(|(key, _)| key.as_str()).collect();
            let message = format!("has a grid over {}; --only names the point that is tuned", axes.join(", "));
            return refuse(question.scenario.name.clone(), message);
        }
        let schemes = schemes(&question, &question.scenario.schemes())?;
        let of = |scheme: &String| plan.runs.iter().find(|run| run.scheme == *scheme).cloned();
        let starts: Vec<Run> = schemes.iter().filter_map(of).collect();
        if starts.len() < schemes.len() {
            return refuse("--only".into(), "leaves out a scheme that is to be tuned".into());
        }
        let long = question.scenario.long_classes();
        for column in question.within.iter().map(|within| &within.column).chain([&question.objective]) {
            can_be_measured(&starts[0], &long, column)?;
        }
        let (axes, places) = axes(&question, &starts)?;
        let point = point.iter().map(|(key, value)| (key.clone(), value.to_string()));
        let space = Space::new(&question, point.collect(), &starts, axes, places)?;
        Ok(Self { question, space, metric })
    }

    /// Name of the folder of its results.
    pub fn name(&self) -> &str {
        self.space.name()
    }

    /// Lines that say what is about to be done, and what it costs at most.
    pub fn describe(&self) -> Vec<String> {
        let axes = self.space.axes.iter().map(|axis| {
            let levels: Vec<String> = axis.levels.iter().map(text::toml).collect();
            format!("{}: {}", axis.key, levels.join(", "))
        });
        let schemes = self.space.schemes.len() as f64;
        let searched = f64::from(self.question.budget) * schemes;
        let cpu = |runs: f64| text::significant(runs * self.space.cpu_s);
        let mut lines: Vec<String> = axes.collect();
        let count: usize = self.space.axes.iter().map(|axis| axis.levels.len()).product();
        let refused = match (self.space.refused(), self.space.refusal()) {
            (0, _) => String::new(),
            (refused, why) => {
                let why = why.map_or_else(String::new, |why| format!("; the first: {why}"));
                format!(", of which {refused} cannot be simulated{why}")
            }
        };
        lines.push(format!("{count} settings{refused}"));
        lines.push(format!("at most {searched} full runs, about {} s of CPU", cpu(searched)));
        lines.extend(self.space.too_short());
        if self.question.vary > 0.0 {
            let runs = schemes * conditions::most_runs() as f64;
            lines.push(format!("then up to {runs} with other loads, buffers and round trips, {} s", cpu(runs)));
        }
        lines
    }

    /// What is measured: the objective, what may not get worse, then what else may change.
    fn columns(&self) -> Vec<Column> {
        let column = |class: &str, metric: &str| Column { class: class.to_owned(), metric: metric.to_owned() };
        let within = self.question.within.iter().map(|within| within.column.clone());
        let of_class = |class: &String| BESIDE.map(|metric| column(class, metric));
        let all = [self.question.objective.clone()].into_iter().chain(within);
        let all = all.chain(self.space.classes().iter().flat_map(of_class));
        let mut columns: Vec<Column> = Vec::new();
        for column in all.chain([column(ALL, "drops"), column(ALL, "retransmitted_bytes")]) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }

    /// Searches, tests what it found on other seeds and under other conditions, and writes summary and report of all runs.
    /// `say` is told what is going on.
    ///
    /// # Errors
    /// The folder cannot be used, the machine is too small, or results cannot be written.
    pub fn run(mut self, means: Means<'_>, say: &dyn Fn(&str)) -> Result<Advice, RunError> {
        let held_out = held_out(self.question.budget);
        let budget = f64::from(self.question.budget) - 2.0 * held_out as f64;
        let columns = self.columns();
        let mut all = Vec::new();
        for scheme in 0..self.space.schemes.len() {
            let within = self.question.within.len();
            let mut runs = Runs::new(&mut self.space, scheme, (&columns, within), means);
            let one = search_scheme(&self.question, &mut runs, budget, held_out, say)?;
            let is_stopped = one.is_stopped;
            all.push(one);
            if is_stopped {
                break;
            }
        }
        let mut advice = Advice {
            scenario: self.space.name().to_owned(),
            objective: self.question.objective.clone(),
            metric: self.metric,
            axes: self.space.axes.clone(),
            schemes: all,
            folder: means.options.out.join(self.space.name()),
        };
        if self.question.vary > 0.0 && !advice.is_stopped() {
            // What follows may be interrupted, or fail.
            advice.write()?;
            say("varying load, buffer and round trip");
            conditions::run(&self.question, &self.space, &mut advice, means)?;
        }
        advice.write()?;
        // Whoever has interrupted does not wait for a summary of all runs.
        if !advice.is_stopped() {
            self.space.conclude(means.options)?;
            // Lengths are judged by all seeds together, as those of any results, and the report says it, too.
            if self.space.judge_lengths(&mut advice)? {
                advice.write()?;
                self.space.conclude(means.options)?;
            }
        }
        Ok(advice)
    }
}

/// Searches for a scheme, and tests what it found.
fn search_scheme(
    question: &Question,
    runs: &mut Runs<'_>,
    budget: f64,
    held_out: usize,
    say: &dyn Fn(&str),
) -> Result<SchemeAdvice, RunError> {
    let (name, axes) = (runs.scheme().to_owned(), runs.axes().to_vec());
    let start = runs.start().clone();
    // What the start says decides what may be asked.
    let mut end = runs.try_start();
    let look = match &end {
        Ok(()) => {
            runs.must_exist()?;
            runs.short_cost()
        }
        Err(_) => Ok(ShortRuns::default()),
    };
    let short = look.unwrap_or_else(|error| {
        end = Err(error);
        ShortRuns::default()
    });
    let problem = Problem {
        axes: &axes,
        start: start.clone(),
        budget,
        spent: short.wasted,
        short: short.cost,
        allowed: question.within.iter().map(|within| runs.allowed(within)).collect(),
        indifferent: runs.indifferent_on_scale(),
    };
    let mut found = Found::nothing(&start);
    if end.is_ok() {
        say(&format!("{name}: searching, {}", if short.cost.is_some() { "short runs first" } else { "by full runs" }));
        let stopped;
        (found, stopped) = search(&problem, runs);
        end = stopped.map_or(Ok(()), Err);
    }
    runs.join_idle(&mut found);
    if end.is_ok() && found.best != start {
        say(&format!("{name}: testing {} on {held_out} other seeds", advice::settings(&axes, &found.best)));
        end = runs.unseen(&[start, found.best.clone()], held_out);
    }
    match end {
        Err(trials::Error::Run(error)) => Err(error),
        end => Ok(advice::of(&problem, &found, runs, (&question.within, held_out), end.is_err())),
    }
}

/// Seeds for the test.
fn held_out(budget: u32) -> usize {
    ((f64::from(budget) * HELD_OUT / 2.0).round() as usize).clamp(LEAST_HELD_OUT, MOST_HELD_OUT)
}

/// What is wrong with a question in itself; else its metric.
fn checked(question: &Question) -> Result<&'static Metric, RunError> {
    let refuse = |found: String, message: String| Err(RunError::Plan { found, message });
    let metric = judged(&question.objective, "--for")?;
    for (index, within) in question.within.iter().enumerate() {
        judged(&within.column, "--within")?;
        let found = || format!("--within {}:{}", within.column.class, within.column.metric);
        if within.column == question.objective {
            return refuse(found(), "is the number of --for, which is compared with the start anyway".into());
        }
        if question.within[..index].iter().any(|other| other.column == within.column) {
            return refuse(found(), "is given twice".into());
        }
    }
    if question.over.is_empty() || question.over.len() > MOST_KEYS {
        return refuse("--over".into(), format!("{} keys; allowed are 1 to {MOST_KEYS}", question.over.len()));
    }
    for (index, over) in question.over.iter().enumerate() {
        if question.over[..index].iter().any(|other| axis::is_same_key(&other.key, &over.key)) {
            return refuse(format!("--over {}", over.key), "is given twice".into());
        }
    }
    if question.budget < LEAST_BUDGET {
        let message = format!("fewer than {LEAST_BUDGET} runs search nothing: the start alone has several");
        return refuse(format!("--budget {}", question.budget), message);
    }
    if question.vary != 0.0 && !(LEAST_VARIED..1.0).contains(&question.vary) {
        let least = LEAST_VARIED * 100.0;
        let message = format!("allowed is 0%, or from {least}% to below 100%");
        return refuse(format!("--vary {}%", text::significant(question.vary * 100.0)), message);
    }
    Ok(metric)
}

/// A number of which one value is better than another.
fn judged(column: &Column, argument: &str) -> Result<&'static Metric, RunError> {
    let found = metrics::find(&column.metric).filter(|metric| metric.better != Better::Neither);
    found.ok_or_else(|| RunError::Plan {
        found: format!("{argument} {}:{}", column.class, column.metric),
        message: "neither more nor less of it is better".into(),
    })
}

/// The class can have the number, as far as this is known without running.
fn can_be_measured(run: &Run, long: &[String], column: &Column) -> Result<(), RunError> {
    let (sizes, is_all) = (run.sizes(), column.class == ALL);
    let refuse =
        |message: String| Err(RunError::Plan { found: format!("{}:{}", column.class, column.metric), message });
    let Some(metric) = metrics::find(&column.metric) else { return Ok(()) };
    let of_sizes = sizes.iter().find(|row| row.name == column.class);
    let class = run.classes.iter().position(|class| *class == column.class).or(of_sizes.map(|row| row.class.into()));
    let terms = Terms { classes: run.classes.clone(), ..Terms::default() };
    if is_all && !verdict::is_judged(&terms, ALL, metric) {
        return refuse(format!(
            "flows of several workloads together, which depends on how many there are of each; name one: {}",
            run.classes.join(", ")
        ));
    }
    if class.is_none() && !is_all {
        let mut known: Vec<&str> = run.classes.iter().map(String::as_str).collect();
        known.extend(sizes.iter().map(|row| row.name.as_str()));
        known.push(ALL);
        return refuse(format!("no such class; there is {}", known.join(", ")));
    }
    if metric.scope == Scope::Fabric {
        let message = || format!("a number of the whole fabric, not of flows; write {}", column.metric);
        return if is_all { Ok(()) } else { refuse(message()) };
    }
    // Flows that hosts open during the run are not known before.
    let Ok(flows) = Flows::of(run) else { return Ok(()) };
    let is_of_class = |row: &&list::Listed| {
        let is_of_size = of_sizes.is_none_or(|sizes| sizes.range.contains(row.flow.bytes));
        is_all || class == Some(row.flow.class.into()) && is_of_size
    };
    let own: Vec<&list::Listed> = flows.rows.iter().filter(is_of_class).collect();
    let is_long = |row: &list::Listed| run.classes.get(usize::from(row.flow.class)).is_some_and(|it| long.contains(it));
    let is_of_long = column.metric == "long_flow_gbps";
    if is_of_long && !own.iter().any(|row| is_long(row)) {
        return refuse("no flow of the class is one of a workload of kind long".into());
    }
    if !is_of_long && !own.iter().any(|row| row.counted) {
        return refuse("no flow of the class starts in the time that is counted".into());
    }
    let has_request = |row: &&list::Listed| row.counted && row.flow.request != FlowSpec::NO_REQUEST;
    if column.metric.starts_with("rct_us") && !own.iter().any(has_request) {
        return refuse("its flows belong to no requests, which incasts and RPCs have".into());
    }
    Ok(())
}

/// The schemes that are tuned: those that are named, or those of the keys, or all.
fn schemes(question: &Question, all: &[String]) -> Result<Vec<String>, RunError> {
    let mut named = question.schemes.clone();
    let mut of_keys: Vec<String> = Vec::new();
    for over in &question.over {
        if let Ok(steps) = tree::path::split(&over.key)
            && let [first, scheme, ..] = &steps[..]
            && first == "scheme"
            && !of_keys.contains(scheme)
        {
            of_keys.push(scheme.clone());
        }
    }
    let mut seen = BTreeSet::new();
    named.retain(|name| seen.insert(name.clone()));
    if named.is_empty() {
        named = if of_keys.is_empty() { all.to_vec() } else { of_keys.clone() };
    }
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        let message = format!("no such scheme; there is {}", all.join(", "));
        return Err(RunError::Plan { found: unknown.clone(), message });
    }
    if let Some(other) = of_keys.iter().find(|scheme| named.iter().any(|name| name != *scheme)) {
        let message = format!("a key of {other} does nothing for {}; tune them one after the other", named.join(", "));
        return Err(RunError::Plan { found: "--over".into(), message });
    }
    Ok(named)
}

/// The values of each key, those of the starts among them, and where each start is.
fn axes(question: &Question, starts: &[Run]) -> Result<(Vec<Axis>, Vec<search::Settings>), RunError> {
    let over = &question.over;
    let effective: Vec<Table> = starts.iter().map(Run::effective).collect();
    let mut axes: Vec<Axis> = Vec::new();
    for one in over {
        let values = effective.iter().map(|table| {
            value(table, &one.key).ok_or_else(|| RunError::Plan {
                found: format!("--over {}", one.key),
                message: format!(
                    "the scenario has no such value to start from; {}, incast check prints all",
                    no_start(&question.scenario, one)
                ),
            })
        });
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        let mut axis = one.axis(over.len(), &values[0]);
        for value in &values[1..] {
            axis = axis.with(value);
        }
        axes.push(axis);
    }
    let places = effective.iter().map(|table| {
        axes.iter().map(|axis| value(table, &axis.key).and_then(|value| axis.place(&value)).unwrap_or(0)).collect()
    });
    let places = places.collect();
    Ok((axes, places))
}

/// What to do about a key without a value: a scenario that has it says whether there can be one.
fn no_start(scenario: &Scenario, over: &Over) -> String {
    let sets = [(over.key.clone(), over.first().to_string())];
    match scenario.possible(&sets) {
        Ok(_) => format!("--set {}=VALUE gives one", over.key),
        Err(error) => error.in_short(),
    }
}

/// The value at a path; tables of a list are found by their names.
pub(crate) fn value(table: &Table, path: &str) -> Option<Value> {
    let steps = tree::path::split(path).ok()?;
    let mut at = Value::Table(table.clone());
    for step in &steps {
        at = match at {
            Value::Table(mut table) => table.remove(step)?,
            Value::Array(items) => items.into_iter().find(|item| {
                let is_it = |key: &str| item.get(key).and_then(Value::as_str) == Some(step);
                is_it("name") || is_it("class")
            })?,
            _ => return None,
        };
    }
    (!at.is_table() || !at.as_table().is_some_and(Table::is_empty)).then_some(at)
}
