//! The runs of a search: those of one scenario, with a grid over the keys and the duration.

use super::{
    MOST_SHORT, Question, SHORT, Within,
    axis::Axis,
    search::{self, Length, MOST_SEEDS, Outcome, Settings},
};
use crate::{
    metrics::{self, Better, Metric},
    results::{
        record::Status,
        row::{Row, Seed},
    },
    run::{Observer, Options, Plan, RunError, execute, execute_part, folder::Existing, only::Only},
    scenario::{Column, Run, Scenario, ScenarioError},
};
use incast_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use toml::{Table, Value};

/// The grid's axis of durations.
const DURATION: &str = "duration";

/// Flows of a class that a short run has at least: of a percentile, more.
const LEAST_FLOWS: f64 = 30.0;
/// Flows above a percentile.
const LEAST_ABOVE: f64 = 2.0;

/// Why a search does not go on.
#[derive(Debug)]
pub enum Error {
    /// It cannot.
    Run(RunError),
    /// It was interrupted.
    Stopped,
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

/// All settings, and where their runs are.
#[derive(Debug)]
pub struct Space {
    /// The keys.
    pub axes: Vec<Axis>,
    /// The schemes that are tuned.
    pub schemes: Vec<String>,
    /// Where the search of each starts.
    pub starts: Vec<Settings>,
    /// CPU seconds of a full run from the start, as estimated.
    pub cpu_s: f64,
    /// Values of the point of the user's grid.
    pub sets: Vec<(String, String)>,
    /// Seeds: those of the search, then those that it does not see.
    pub seeds: Vec<u64>,
    plan: Plan,
    /// Durations, with the full one last; one if a part is not worth it.
    durations: Vec<String>,
    /// Places in the plan's list of all runs.
    runs: BTreeMap<(usize, Length, Settings, u64), usize>,
    refused: Vec<ScenarioError>,
    is_open: bool,
}

/// A scenario with another grid and no claims of its own.
pub fn regrid(
    question: &Question,
    sets: &[(String, String)],
    grid: &Table,
    zip: &[Table],
) -> Result<(Scenario, Vec<ScenarioError>), RunError> {
    let text = |value: Value| value.to_string();
    let zip = Value::Array(zip.iter().cloned().map(Value::Table).collect());
    let own = [("grid", text(Value::Table(grid.clone()))), ("zip", text(zip)), ("paper", "{}".to_owned())];
    let mut all = sets.to_vec();
    all.extend(own.map(|(key, value)| (key.to_owned(), value)));
    Ok(question.scenario.possible(&all)?)
}

impl Space {
    /// Makes the scenario of the search.
    ///
    /// # Errors
    /// Not one of its settings can be simulated, or not the start.
    pub fn new(
        question: &Question,
        sets: Vec<(String, String)>,
        starts: &[Run],
        axes: Vec<Axis>,
        places: Vec<Settings>,
    ) -> Result<Self, RunError> {
        let effective = starts[0].effective();
        let time = |key: &str| effective.get(key).and_then(Value::as_str).and_then(|text| text.parse::<Time>().ok());
        let (duration, warmup) = (time(DURATION).unwrap_or(Time::ZERO), time("warmup").unwrap_or(Time::ZERO));
        let short = warmup + (duration.saturating_sub(warmup)).mul_f64(SHORT);
        // Whole nanoseconds, so that it can be read.
        let short = Time::from_ps(short.ps() / 1000 * 1000);
        let mut durations = vec![short.to_string(), duration.to_string()];
        if short.ps() == 0 || short >= duration || axes.iter().any(|axis| axis.key == DURATION) {
            durations.remove(0);
        }
        let mut grid = Table::new();
        if durations.len() > 1 {
            let values = durations.iter().map(|text| Value::String(text.clone())).collect();
            grid.insert(DURATION.into(), Value::Array(values));
        }
        for axis in &axes {
            grid.insert(axis.key.clone(), Value::Array(axis.levels.clone()));
        }
        let (scenario, refused) = regrid(question, &sets, &grid, &[])?;
        let scenario = scenario.renamed(&format!("{}-tune", question.scenario.name));
        let plan = Plan::new(scenario, Some(MOST_SEEDS + super::MOST_HELD_OUT), &Only::default())?;
        let seeds = plan.scenario.seeds.clone();
        let schemes: Vec<String> = starts.iter().map(|run| run.scheme.clone()).collect();
        let mut runs = BTreeMap::new();
        for (index, run) in plan.all().iter().enumerate() {
            let Some(scheme) = schemes.iter().position(|scheme| *scheme == run.scheme) else { continue };
            let at = |key: &str| run.grid.iter().find(|(path, _)| path == key).map(|(_, value)| value);
            let is_short = durations.len() > 1 && at(DURATION).is_some_and(|it| it.as_str() == Some(&durations[0]));
            let length = if is_short { Length::Short } else { Length::Full };
            let settings: Option<Settings> = axes.iter().map(|axis| axis.place(at(&axis.key)?)).collect();
            let Some(settings) = settings else { continue };
            runs.insert((scheme, length, settings, run.seed), index);
        }
        let mut space = Self {
            axes,
            schemes,
            starts: places,
            cpu_s: 0.0,
            sets,
            seeds,
            plan,
            durations,
            runs,
            refused,
            is_open: false,
        };
        for (scheme, start) in space.starts.iter().enumerate() {
            let Some(run) = space.find(scheme, Length::Full, start, space.seeds[0]) else {
                let message = "the settings from which the search starts cannot be simulated".into();
                return Err(RunError::Plan { found: space.schemes[scheme].clone(), message });
            };
            space.cpu_s = f64::max(space.cpu_s, run.expected_cpu_s());
        }
        Ok(space)
    }

    /// Name of the scenario of the search, and of its folder.
    pub fn name(&self) -> &str {
        &self.plan.scenario.name
    }

    /// Classes of the flows.
    pub fn classes(&self) -> &[String] {
        self.plan.all().first().map_or(&[], |run| &run.classes)
    }

    /// Settings that cannot be simulated.
    pub fn refused(&self) -> usize {
        self.refused.len() / self.durations.len()
    }

    /// Seeds that the search does not see.
    pub fn unseen(&self) -> &[u64] {
        &self.seeds[MOST_SEEDS..]
    }

    fn find(&self, scheme: usize, length: Length, settings: &Settings, seed: u64) -> Option<&Run> {
        self.runs.get(&(scheme, length, settings.clone(), seed)).map(|index| &self.plan.all()[*index])
    }

    /// The full run of settings with the first seed.
    pub fn run_of(&self, scheme: usize, settings: &Settings) -> Option<&Run> {
        self.find(scheme, Length::Full, settings, self.seeds[0])
    }

    /// Writes summary and report of everything that was run.
    pub fn conclude(&mut self, options: &Options) -> Result<(), RunError> {
        let done: BTreeSet<String> = self
            .plan
            .all()
            .iter()
            .filter(|run| options.out.join(self.name()).join(&run.folder).is_dir())
            .map(|run| run.folder.clone())
            .collect();
        self.plan.select(&done);
        let options = Options { existing: Existing::Resume, ..options.clone() };
        let finished = execute(&self.plan, &options, &Silent, &AtomicBool::new(true))?;
        if let Some(Err(error)) = finished.report {
            return Err(RunError::Plan { found: finished.folder.display().to_string(), message: error.to_string() });
        }
        Ok(())
    }
}

struct Silent;
impl Observer for Silent {}

/// What was measured of a scheme.
pub struct Runs<'a> {
    space: &'a mut Space,
    scheme: usize,
    columns: Vec<(Column, &'static Metric)>,
    /// So many behind the first may not get worse.
    within: usize,
    options: &'a Options,
    observer: &'a dyn Observer,
    stop: &'a AtomicBool,
    measured: BTreeMap<(Settings, Length, usize), Measured>,
}

/// What a run says.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The numbers of the columns.
    pub values: Vec<Option<f64>>,
    /// Hash of the results.
    pub digest: String,
    /// Queues still rise at the end, for the objective's flows.
    is_too_short: bool,
    /// Flows of the objective that are counted.
    flows: u64,
    failure: Option<String>,
}

impl<'a> Runs<'a> {
    /// Of one scheme.
    pub fn new(
        space: &'a mut Space,
        scheme: usize,
        (columns, within): (&[Column], usize),
        options: &'a Options,
        observer: &'a dyn Observer,
        stop: &'a AtomicBool,
    ) -> Self {
        let of = |column: &Column| Some((column.clone(), metrics::find(&column.metric)?));
        let columns = columns.iter().filter_map(of).collect();
        Self { space, scheme, columns, within, options, observer, stop, measured: BTreeMap::new() }
    }

    /// The keys.
    pub fn axes(&self) -> &[Axis] {
        &self.space.axes
    }

    /// The scheme.
    pub fn scheme(&self) -> &str {
        &self.space.schemes[self.scheme]
    }

    /// What is measured; the objective comes first.
    pub fn columns(&self) -> &[(Column, &'static Metric)] {
        &self.columns
    }

    /// The user's scenario with these settings.
    pub fn effective(&self, settings: &Settings) -> Option<Table> {
        let mut table = self.space.run_of(self.scheme, settings)?.effective();
        let scenario = &self.space.plan.scenario;
        let name = scenario.name.strip_suffix("-tune").unwrap_or(&scenario.name);
        table.insert("name".into(), Value::String(format!("{name}-tuned")));
        // It stands in another folder than the files that it names.
        let files: BTreeMap<String, PathBuf> = scenario.files().into_iter().collect();
        table.iter_mut().for_each(|(_, value)| absolute(value, &files));
        Some(table)
    }

    /// What was measured, if it was.
    pub fn measured(&self, settings: &Settings, length: Length, seed: usize) -> Option<&Measured> {
        self.measured.get(&(settings.clone(), length, seed))
    }

    /// Queues still rise at the end of a full run, for the objective's flows.
    pub fn is_too_short(&self, settings: &Settings) -> bool {
        self.measured(settings, Length::Full, 0).is_some_and(|it| it.is_too_short)
    }

    /// Part of a full run that a short one costs; `None` where short runs are not worth it, or too short for a steady state or
    /// for the number that is asked for.
    ///
    /// # Errors
    /// The start cannot be run.
    pub fn short_cost(&mut self, start: &Settings) -> Result<Option<f64>, RunError> {
        let seed = self.space.seeds[0];
        let cost = |length| self.space.find(self.scheme, length, start, seed).map(Run::expected_packet_hops);
        let Some((short, full)) = cost(Length::Short).zip(cost(Length::Full)) else { return Ok(None) };
        let part = short / full;
        if part.is_nan() || part >= MOST_SHORT {
            return Ok(None);
        }
        match self.seen(&[(start.clone(), Length::Short, 0)]) {
            Err(Error::Run(error)) => return Err(error),
            Err(Error::Stopped) => return Ok(None),
            Ok(()) => {}
        }
        let quantile = self.columns[0].0.metric.rsplit_once(".p").and_then(|(_, digits)| digits.parse::<f64>().ok());
        let above = quantile.map_or(1.0, |percent| (100.0 - percent.min(99.9)) / 100.0);
        let least = f64::max(LEAST_FLOWS, LEAST_ABOVE / above);
        let measured = self.measured(start, Length::Short, 0);
        let is_steady = measured.is_some_and(|it| {
            !it.is_too_short && it.flows as f64 >= least && it.values[0].is_some() && it.failure.is_none()
        });
        Ok(is_steady.then_some(part))
    }

    /// The start ended, and has the number that is asked for.
    ///
    /// # Errors
    /// It does not, and why.
    pub fn must_exist(&self, start: &Settings) -> Result<(), RunError> {
        let Some(measured) = self.measured(start, Length::Full, 0) else { return Ok(()) };
        let found = self.space.schemes[self.scheme].clone();
        if let Some(failure) = &measured.failure {
            return Err(RunError::Plan { found, message: format!("the run from which the search starts: {failure}") });
        }
        for ((column, metric), value) in self.columns.iter().zip(&measured.values).take(1 + self.within) {
            // What depends on flows that did not finish is unknown, but for a bound.
            if value.is_none() && !metric.has_bound() {
                let message = format!("its runs have no {} of {}", column.metric, column.class);
                return Err(RunError::Plan { found, message });
            }
        }
        Ok(())
    }

    /// Differences below this part do not count.
    pub fn indifferent(&self) -> f64 {
        self.space.plan.scenario.indifferent.part()
    }

    /// The same on the scale of outcomes.
    pub fn indifferent_on_scale(&self) -> f64 {
        if self.columns[0].1.is_logarithmic() { libm::log1p(self.indifferent()) } else { 0.0 }
    }

    /// By how much a number may be worse, on the scale of outcomes: a part of the start's where it has no logarithm.
    pub fn allowed(&self, within: &Within) -> f64 {
        let metric = metrics::find(&within.column.metric);
        let is_logarithmic = metric.is_some_and(Metric::is_logarithmic);
        if is_logarithmic {
            return libm::log1p(within.worse);
        }
        let place = self.columns.iter().position(|(column, _)| *column == within.column);
        let start = self.measured(&self.space.starts[self.scheme], Length::Full, 0);
        let value = start.zip(place).and_then(|(start, place)| start.values[place]);
        within.worse * value.map_or(0.0, f64::abs)
    }

    /// Does full runs of these settings on `count` seeds that the search has not seen.
    ///
    /// # Errors
    /// They cannot be run.
    pub fn unseen(&mut self, settings: &[Settings], count: usize) -> Result<(), Error> {
        let seeds = MOST_SEEDS..MOST_SEEDS + count;
        let trials = settings.iter().flat_map(|it| seeds.clone().map(move |seed| (it.clone(), Length::Full, seed)));
        self.seen(&trials.collect::<Vec<_>>())
    }

    fn seen(&mut self, trials: &[search::Trial]) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let name = |(settings, length, seed): &search::Trial| {
            let run = self.space.find(self.scheme, *length, settings, self.space.seeds[*seed]);
            run.map(|run| run.folder.clone())
        };
        let trials: Vec<(&search::Trial, String)> = trials
            .iter()
            .filter(|it| !self.measured.contains_key(*it))
            .filter_map(|it| Some((it, name(it)?)))
            .collect();
        if trials.is_empty() {
            return Ok(());
        }
        self.space.plan.select(&trials.iter().map(|(_, folder)| folder.clone()).collect());
        // What was found before the first runs is refused or removed, not what they left.
        let existing = if self.space.is_open { Existing::Resume } else { self.options.existing };
        let options = Options { existing, ..self.options.clone() };
        let part = execute_part(&self.space.plan, &options, self.observer, self.stop)?;
        self.space.is_open = true;
        let by_folder: BTreeMap<&str, _> = part.records.iter().map(|record| (record.folder.as_str(), record)).collect();
        for (trial, folder) in trials {
            let Some(record) = by_folder.get(folder.as_str()) else { continue };
            let (class, is_done) = (&self.columns[0].0.class, record.status == Status::Done);
            let row = |class: &str| -> Option<&Row> {
                record.rows.iter().find(|row| row.class == class && matches!(row.seed, Seed::One(_)))
            };
            let value = |(column, _): &(Column, &'static Metric)| {
                row(&column.class).filter(|_| is_done).and_then(|row| row.number(&column.metric))
            };
            let measured = Measured {
                values: self.columns.iter().map(value).collect(),
                digest: record.digest.clone(),
                is_too_short: row(class).is_some_and(Row::is_too_short),
                flows: row(class).map_or(0, Row::flows),
                failure: record.error.clone(),
            };
            self.measured.insert(trial.clone(), measured);
        }
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Names of files with their folders.
fn absolute(value: &mut Value, files: &BTreeMap<String, PathBuf>) {
    match value {
        Value::String(text) => {
            let path = files.get(text).and_then(|path| std::path::absolute(path).ok());
            path.into_iter().for_each(|path| *text = path.to_string_lossy().into_owned());
        }
        Value::Array(values) => values.iter_mut().for_each(|value| absolute(value, files)),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| absolute(value, files)),
        _ => {}
    }
}

/// A number on the scale of outcomes.
pub fn on_scale(metric: &Metric, value: f64) -> f64 {
    let scaled = if metric.is_logarithmic() { libm::log(value.max(f64::MIN_POSITIVE)) } else { value };
    if metric.better == Better::High { -scaled } else { scaled }
}

impl search::Trials for Runs<'_> {
    type Error = Error;

    fn run(&mut self, trials: &[search::Trial]) -> Result<(), Error> {
        self.seen(trials)
    }

    fn outcome(&self, trial: &search::Trial) -> Outcome {
        let Some(measured) = self.measured.get(trial) else {
            return Outcome { objective: None, within: vec![None; self.within] };
        };
        let scaled = |((_, metric), value): (&(Column, &'static Metric), &Option<f64>)| {
            value.map(|value| on_scale(metric, value))
        };
        let mut all = self.columns.iter().zip(&measured.values).take(1 + self.within).map(scaled);
        Outcome { objective: all.next().flatten(), within: all.collect() }
    }

    fn is_possible(&self, settings: &Settings) -> bool {
        self.space.run_of(self.scheme, settings).is_some()
    }
}
