//! The runs of a search: those of one scenario, with a grid over the keys and the duration.

use super::{
    Advice, MOST_SHORT, Means, Question, SHORT, Within,
    axis::{self, Axis},
    search::{self, Found, Length, MOST_SEEDS, Outcome, Settings},
};
use crate::{
    metrics::{self, Basis, Better, Metric},
    results::{
        read,
        record::Status,
        row::{Row, Seed},
        steady,
    },
    run::{Observer, Options, Plan, RunError, execute, execute_part, folder::Existing, only::Only},
    scenario::{Column, Run, Scenario, ScenarioError},
};
use incast_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
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
    /// Seeds of the user's scenario.
    pub own_seeds: Vec<u64>,
    /// Seeds: those of the search, then those that it does not see.
    pub seeds: Vec<u64>,
    plan: Plan,
    /// Places in the plan's list of all runs.
    runs: BTreeMap<(usize, Length, Settings, u64), usize>,
    refused: usize,
    /// Why the first of these cannot be simulated.
    refusal: Option<String>,
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
        if short.ps() == 0 || short >= duration || axes.iter().any(|axis| axis::is_same_key(&axis.key, DURATION)) {
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
        let (scenario, why) = regrid(question, &sets, &grid, &[])?;
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
        let all: usize = axes.iter().map(|axis| axis.levels.len()).product();
        let possible: BTreeSet<&Settings> = runs.keys().map(|(_, _, settings, _)| settings).collect();
        let refused = all - possible.len();
        let refusal = why.first().map(ScenarioError::in_short);
        if refused > 0 && possible.iter().all(|settings| places.contains(settings)) {
            let why = refusal.unwrap_or_else(|| "no run is left of them".into());
            let message =
                format!("none of its values but the start can be simulated, {refused} are refused; the first: {why}");
            return Err(RunError::Plan { found: "--over".into(), message });
        }
        let mut space = Self {
            axes,
            schemes,
            starts: places,
            cpu_s: 0.0,
            sets,
            own_seeds: question.scenario.seeds.clone(),
            seeds,
            plan,
            runs,
            refused,
            refusal,
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
        self.refused
    }

    /// Why the first of them cannot.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Seeds that the search does not see.
    pub fn unseen(&self) -> &[u64] {
        &self.seeds[MOST_SEEDS..]
    }

    fn find(&self, scheme: usize, length: Length, settings: &Settings, seed: u64) -> Option<&Run> {
        self.runs.get(&(scheme, length, settings.clone(), seed)).map(|index| &self.plan.all()[*index])
    }

    /// Of each scheme whose start ends before it can be in a steady state, as `incast check` estimates it.
    pub fn too_short(&self) -> Vec<String> {
        let starts = self.starts.iter().enumerate().filter_map(|(scheme, start)| self.run_of(scheme, start));
        let short = starts.filter(|run| run.is_too_short());
        short
            .filter_map(|run| Some(format!("{}: {}", run.scheme, run.nominal()?.settling(run.counted_until))))
            .collect()
    }

    /// Says of starts and of what was found whether their full runs were too short, by all their seeds. Whether that says anything
    /// else than before.
    ///
    /// # Errors
    /// The summary cannot be read.
    pub fn judge_lengths(&self, advice: &mut Advice) -> Result<bool, RunError> {
        let summary = read::summary(&advice.folder).map_err(|error| RunError::Plan {
            found: advice.folder.display().to_string(),
            message: error.to_string(),
        })?;
        let mut is_other = false;
        for (scheme, own) in advice.schemes.iter_mut().enumerate() {
            let points = [&own.start, &own.best].map(|settings| self.run_of(scheme, settings).map(Run::point));
            let is_own = |row: &&Row| {
                row.is_pooled() && row.scheme == own.scheme && points.iter().flatten().any(|point| *point == row.grid)
            };
            let notes = steady::notes(&summary.rows.iter().filter(is_own).collect::<Vec<_>>());
            is_other |= own.is_too_short || !notes.is_empty();
            own.is_too_short = !notes.is_empty();
            own.lengths = notes.into_iter().map(|(whose, why)| format!("{whose}: {why}")).collect();
        }
        Ok(is_other)
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
    means: Means<'a>,
    measured: BTreeMap<(Settings, Length, usize), Measured>,
    /// Keys that do nothing: settings that differ only in them are one.
    idle: Vec<bool>,
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
    /// What each column counts, flows or requests.
    samples: Vec<u64>,
    /// All counted flows of each column ended.
    is_finished: Vec<bool>,
    failure: Option<String>,
}

/// What short runs are worth.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShortRuns {
    /// Part of a full run that a short one costs; `None` where there are none.
    pub cost: Option<f64>,
    /// What it cost to find out that there are none.
    pub wasted: f64,
}

impl<'a> Runs<'a> {
    /// Of one scheme.
    pub fn new(space: &'a mut Space, scheme: usize, (columns, within): (&[Column], usize), means: Means<'a>) -> Self {
        let of = |column: &Column| Some((column.clone(), metrics::find(&column.metric)?));
        let columns = columns.iter().filter_map(of).collect();
        let idle = vec![false; space.axes.len()];
        Self { space, scheme, columns, within, means, measured: BTreeMap::new(), idle }
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
        let scenario = &self.space.plan.scenario;
        let name = scenario.name.strip_suffix("-tune").unwrap_or(&scenario.name);
        let run = self.space.run_of(self.scheme, settings)?;
        let table = run.on_its_own(format!("{name}-tuned"), &self.space.own_seeds);
        Some(scenario.for_another_folder(table))
    }

    /// What was measured, if it was, with these settings or with some that differ only in keys that do nothing.
    pub fn measured(&self, settings: &Settings, length: Length, seed: usize) -> Option<&Measured> {
        let own = self.measured.get(&(settings.clone(), length, seed));
        let is_one = |other: &Settings| {
            let places = settings.iter().zip(other).zip(&self.idle);
            places.into_iter().all(|((a, b), is_idle)| a == b || *is_idle)
        };
        let same = || {
            let mut all = self.measured.iter();
            all.find(|((other, its, of), _)| (*its, *of) == (length, seed) && is_one(other)).map(|(_, it)| it)
        };
        own.or_else(|| if self.idle.contains(&true) { same() } else { None })
    }

    /// Finds the keys that do nothing, and puts them back at their start in what was found.
    pub fn join_idle(&mut self, found: &mut Found) {
        let start = self.start().clone();
        let idle: Vec<bool> = (0..start.len()).map(|key| does_nothing(found, self, key)).collect();
        for (key, _) in idle.iter().enumerate().filter(|(_, is_idle)| **is_idle) {
            let mut back = found.best.clone();
            back[key] = start[key];
            if self.space.run_of(self.scheme, &back).is_some() {
                found.best = back;
            }
        }
        self.idle = idle;
    }

    /// Settings with another value of this key alone are the same to the packet, wherever two were run.
    pub fn is_idle(&self, key: usize) -> bool {
        self.idle[key]
    }

    /// Settings that cannot be simulated, of how many, and why the first cannot.
    pub fn refused(&self) -> Option<(usize, usize, String)> {
        let all = self.space.axes.iter().map(|axis| axis.levels.len()).product();
        let why = self.space.refusal.clone().unwrap_or_else(|| "no run is left of it".into());
        (self.space.refused > 0).then_some((self.space.refused, all, why))
    }

    /// Runs that failed, and why the first did.
    pub fn failed(&self) -> Option<(usize, String)> {
        let mut all = self.measured.values().filter_map(|it| it.failure.as_ref());
        let first = all.next()?.clone();
        Some((1 + all.count(), first))
    }

    /// Queues still rise at the end of the first full run, for the objective's flows: what can be said of a search that was
    /// interrupted.
    pub fn is_too_short(&self, settings: &Settings) -> bool {
        self.measured(settings, Length::Full, 0).is_some_and(|it| it.is_too_short)
    }

    /// Where the search starts.
    pub fn start(&self) -> &Settings {
        &self.space.starts[self.scheme]
    }

    /// Does the first full run of the start.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn try_start(&mut self) -> Result<(), Error> {
        let start = self.start().clone();
        self.seen(&[(start, Length::Full, 0)])
    }

    /// The first full run of the start ended, and has the numbers that are asked for.
    ///
    /// # Errors
    /// It does not, and why.
    pub fn must_exist(&self) -> Result<(), RunError> {
        let Some(measured) = self.measured(self.start(), Length::Full, 0) else { return Ok(()) };
        let found = self.space.schemes[self.scheme].clone();
        if let Some(failure) = &measured.failure {
            return Err(RunError::Plan { found, message: format!("the run from which the search starts: {failure}") });
        }
        for (place, (column, metric)) in self.columns.iter().take(1 + self.within).enumerate() {
            // A statistic is unknown where flows did not finish, a time to convergence where rates did not become equal. Nothing
            // else comes with other settings.
            let may_come = metric.has_bound() && !measured.is_finished[place] || metric.basis == Basis::EqualRates;
            if measured.values[place].is_none() && !may_come {
                let message = format!("its runs have no {} of {}", column.metric, column.class);
                return Err(RunError::Plan { found, message });
            }
        }
        Ok(())
    }

    /// What short runs cost: there are none where they are not worth it, too short for a steady state, or too few flows for
    /// the numbers that are asked for.
    ///
    /// # Errors
    /// The start cannot be run.
    pub fn short_cost(&mut self) -> Result<ShortRuns, Error> {
        let start = self.start().clone();
        let seed = self.space.seeds[0];
        let cost = |length| self.space.find(self.scheme, length, &start, seed).map(Run::expected_packet_hops);
        let Some((short, full)) = cost(Length::Short).zip(cost(Length::Full)) else { return Ok(ShortRuns::default()) };
        let part = short / full;
        if part.is_nan() || part >= MOST_SHORT {
            return Ok(ShortRuns::default());
        }
        self.seen(&[(start.clone(), Length::Short, 0)])?;
        let is_enough = |measured: &Measured, place: usize| {
            let metric = &self.columns[place].0.metric;
            let quantile = metric.rsplit_once(".p").and_then(|(_, digits)| format!("0.{digits}").parse::<f64>().ok());
            let least = quantile.map_or(LEAST_FLOWS, |part| f64::max(LEAST_FLOWS, LEAST_ABOVE / (1.0 - part)));
            measured.values[place].is_some() && measured.samples[place] as f64 >= least
        };
        let is_fit = self.measured(&start, Length::Short, 0).is_some_and(|it| {
            !it.is_too_short && it.failure.is_none() && (0..=self.within).all(|place| is_enough(it, place))
        });
        Ok(if is_fit { ShortRuns { cost: Some(part), wasted: 0.0 } } else { ShortRuns { cost: None, wasted: part } })
    }

    /// Differences below this part do not count.
    pub fn indifferent(&self) -> f64 {
        self.space.plan.scenario.indifferent.part()
    }

    /// The same on the scale of outcomes.
    pub fn indifferent_on_scale(&self) -> f64 {
        self.part_on_scale(0, self.indifferent())
    }

    /// By how much a number may be worse, on the scale of outcomes.
    pub fn allowed(&self, within: &Within) -> f64 {
        let place = self.columns.iter().position(|(column, _)| *column == within.column);
        place.map_or(0.0, |place| self.part_on_scale(place, within.worse))
    }

    /// What differences of a number are parts of where it has no logarithm: its size in the first full run of the start.
    pub fn base(&self, place: usize) -> Option<f64> {
        let value = self.measured(self.start(), Length::Full, 0)?.values[place]?;
        (value != 0.0).then_some(value.abs())
    }

    fn part_on_scale(&self, place: usize, part: f64) -> f64 {
        match self.columns[place].1.is_logarithmic() {
            true => libm::log1p(part),
            false => part * self.base(place).unwrap_or(0.0),
        }
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
        if self.means.stop.load(Ordering::Relaxed) {
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
        let existing = if self.space.is_open { Existing::Resume } else { self.means.options.existing };
        let options = Options { existing, ..self.means.options.clone() };
        if self.space.is_open {
            self.means.run_elsewhere(&self.space.plan)?;
        }
        let part = execute_part(&self.space.plan, &options, self.means.observer, self.means.stop)?;
        self.space.is_open = true;
        for ((settings, length, seed), folder) in &trials {
            let Some((_, why)) = part.failures.iter().find(|(failed, _)| failed == folder) else { continue };
            let nothing = Measured {
                values: vec![None; self.columns.len()],
                digest: String::new(),
                is_too_short: false,
                samples: vec![0; self.columns.len()],
                is_finished: vec![false; self.columns.len()],
                failure: Some(why.clone()),
            };
            self.measured.insert((settings.clone(), *length, *seed), nothing);
        }
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
            let first = row(class);
            let measured = Measured {
                values: self.columns.iter().map(value).collect(),
                digest: record.digest.clone(),
                is_too_short: first.is_some_and(Row::is_too_short),
                samples: self.columns.iter().map(|(column, _)| samples(row(&column.class), column)).collect(),
                is_finished: self
                    .columns
                    .iter()
                    .map(|(column, _)| row(&column.class).is_none_or(|row| row.completed() == row.flows()))
                    .collect(),
                failure: record.error.clone(),
            };
            self.measured.insert(trial.clone(), measured);
        }
        if self.means.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// What a number counts in a run: flows of its class, or requests.
fn samples(row: Option<&Row>, column: &Column) -> u64 {
    let counted = if column.metric.starts_with("rct_us") { "requests" } else { "flows" };
    row.and_then(|row| row.count(counted)).unwrap_or(0)
}

/// A number on the scale of outcomes.
pub fn on_scale(metric: &Metric, value: f64) -> f64 {
    let scaled = if metric.is_logarithmic() { libm::log(value.max(f64::MIN_POSITIVE)) } else { value };
    if metric.better == Better::High { -scaled } else { scaled }
}

/// A difference on the scale of outcomes as it is said: what is more is positive; a part of the start's number `base`, but for
/// numbers without a logarithm that are 0 there.
pub fn as_part(metric: &Metric, base: Option<f64>, difference: f64) -> f64 {
    let difference = if metric.better == Better::High { -difference } else { difference };
    if metric.is_logarithmic() { libm::expm1(difference) } else { difference / base.unwrap_or(1.0) }
}

impl search::Trials for Runs<'_> {
    type Error = Error;

    fn run(&mut self, trials: &[search::Trial]) -> Result<(), Error> {
        self.seen(trials)
    }

    fn outcome(&self, trial: &search::Trial) -> Outcome {
        let Some(measured) = self.measured(&trial.0, trial.1, trial.2) else {
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

/// All runs that differ in this key alone are the same to the packet.
fn does_nothing(found: &Found, runs: &Runs<'_>, key: usize) -> bool {
    let mut pairs = 0;
    for (index, one) in found.tried.iter().enumerate() {
        for other in &found.tried[..index] {
            let mut places = one.settings.iter().zip(&other.settings).enumerate();
            if !places.all(|(index, (a, b))| (a != b) == (index == key)) {
                continue;
            }
            let seeds = 0..MOST_SEEDS + super::MOST_HELD_OUT;
            for (length, seed) in
                [Length::Full, Length::Short].into_iter().flat_map(|it| seeds.clone().map(move |seed| (it, seed)))
            {
                let digest = |it: &search::Standing| {
                    let digest = &runs.measured(&it.settings, length, seed)?.digest;
                    (!digest.is_empty()).then_some(digest)
                };
                let Some((a, b)) = digest(one).zip(digest(other)) else { continue };
                if a != b {
                    return false;
                }
                pairs += 1;
            }
        }
    }
    pairs > 0
}
