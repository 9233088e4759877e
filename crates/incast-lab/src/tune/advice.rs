//! What a search says: the settings, how sure it is of them, and what else they change.

use super::{
    axis::Axis,
    conditions::Condition,
    search::{Found, Length, MOST_SEEDS, Problem, Settings, Standing, Trials},
    trials::Runs,
};
use crate::{
    atomic,
    metrics::{
        Better, Metric,
        statistics::{Interval, confidence},
    },
    results::{
        plain::paragraph,
        tuning::{self, FILE, Tuning},
        verdict::{Apart, LEAST_SEEDS, Pairs, subject_heading},
    },
    run::RunError,
    scenario::{Column, safe},
    text,
};
use std::{fmt::Write as _, io::Write as _, path::PathBuf};

/// What was found for all schemes.
#[derive(Debug)]
pub struct Advice {
    /// Name of the scenario of the search.
    pub scenario: String,
    /// The number that is to be good.
    pub objective: Column,
    /// The same.
    pub metric: &'static Metric,
    /// The keys.
    pub axes: Vec<Axis>,
    /// What was found for each scheme.
    pub schemes: Vec<SchemeAdvice>,
    /// Where the results are.
    pub folder: PathBuf,
}

/// What was found for a scheme.
#[derive(Clone, Debug)]
pub struct SchemeAdvice {
    /// The scheme.
    pub scheme: String,
    /// Where the search started.
    pub start: Settings,
    /// What it found; the start if nothing is better.
    pub best: Settings,
    /// What it found against the start, on seeds that it did not see; `None` where that is unknown.
    pub apart: Option<Apart>,
    /// The same of numbers beside it.
    pub others: Vec<(String, Option<Apart>)>,
    /// Seeds of that.
    pub unseen: usize,
    /// Of each key: the values that cannot be told from the best or lie within what does not count, and what it costs to
    /// leave the key as it is.
    pub keys: Vec<KeyAdvice>,
    /// Under other conditions.
    pub conditions: Vec<Condition>,
    /// Every setting that was tried.
    pub tried: Vec<Standing>,
    /// Run-equivalents, those of unseen seeds included.
    pub spent: f64,
    /// It was interrupted.
    pub is_stopped: bool,
    /// Queues still rose at the end of a run of the start or of the best.
    pub is_too_short: bool,
    /// The user's scenario with what is advised, every value spelled out.
    pub scenario: Option<toml::Table>,
    /// A difference below this part does not count.
    indifferent: f64,
    /// More is better.
    is_high: bool,
}

/// What is said of a key.
#[derive(Clone, Debug)]
pub struct KeyAdvice {
    /// Places on its axis, the first and the last that are as good.
    pub as_good: (usize, usize),
    /// By which part the best with this key as at the start is worse than the best; `None` where that is not known.
    pub left_alone: Option<f64>,
    /// Runs that differ only in this key are the same to the packet.
    pub does_nothing: bool,
}

impl SchemeAdvice {
    /// What was found is told from the start, and better, on the seeds that the search did not see.
    pub fn helps(&self) -> bool {
        let is_better = |apart: &Apart| {
            let Interval(low, high) = apart.interval;
            if self.is_high { low > 0.0 } else { high < 0.0 }
        };
        self.best != self.start && self.apart.as_ref().is_some_and(is_better)
    }

    /// It helps, by less than what counts.
    fn helps_little(&self) -> bool {
        self.helps() && self.apart.as_ref().is_some_and(|apart| apart.does_not_count(self.indifferent))
    }
}

/// The settings in one line.
pub fn settings(axes: &[Axis], settings: &Settings) -> String {
    let all =
        axes.iter().zip(settings).map(|(axis, place)| format!("{} = {}", axis.key, text::toml(&axis.levels[*place])));
    all.collect::<Vec<_>>().join(", ")
}

/// What follows from a search.
pub fn of(problem: &Problem<'_>, found: &Found, runs: &Runs<'_>, unseen: usize, is_stopped: bool) -> SchemeAdvice {
    let (start, best) = (&problem.start, &found.best);
    let values = |settings: &Settings, place: usize| -> Option<Vec<f64>> {
        let of = |seed| runs.measured(settings, Length::Full, MOST_SEEDS + seed)?.values[place];
        (0..unseen).map(of).collect()
    };
    let apart = |place: usize, metric: &Metric| {
        let (start, best) = values(start, place).zip(values(best, place))?;
        Pairs::new(metric, [&start[..], &best[..]].into_iter()).apart("", &best, &start)
    };
    let columns = runs.columns();
    let others = columns.iter().enumerate().skip(1).filter(|(place, (_, metric))| {
        metric.has_bound() && place <= &problem.allowed.len()
            || runs.measured(start, Length::Full, 0).is_some_and(|it| it.values[*place].is_some())
    });
    let others = others.map(|(place, (column, metric))| (subject_heading(&column.class, metric), apart(place, metric)));
    let tested = if best == start { 0.0 } else { 2.0 * unseen as f64 };
    SchemeAdvice {
        scheme: runs.scheme().to_owned(),
        start: start.clone(),
        best: best.clone(),
        apart: apart(0, columns[0].1),
        others: if best == start { Vec::new() } else { others.collect() },
        unseen,
        keys: (0..problem.axes.len()).map(|key| of_key(problem, found, runs, key)).collect(),
        conditions: Vec::new(),
        tried: found.tried.clone(),
        spent: found.spent + tested,
        is_stopped,
        is_too_short: [start, best].into_iter().any(|it| runs.is_too_short(it)),
        scenario: runs.effective(best),
        indifferent: runs.indifferent(),
        is_high: columns[0].1.better == Better::High,
    }
}

/// The objective of settings minus that of others, in the seeds of the search that both have.
fn differences(runs: &Runs<'_>, a: &Settings, b: &Settings, length: Length) -> Vec<f64> {
    let of = |settings: &Settings, seed| runs.outcome(&(settings.clone(), length, seed)).objective;
    (0..MOST_SEEDS).filter_map(|seed| Some(of(a, seed)? - of(b, seed)?)).collect()
}

/// The same as a mean, of full runs where both have them, and of how many seeds.
fn difference(runs: &Runs<'_>, a: &Settings, b: &Settings) -> Option<(f64, Vec<f64>)> {
    let all = [Length::Full, Length::Short].map(|length| differences(runs, a, b, length));
    let own = all.into_iter().find(|own| !own.is_empty())?;
    Some((own.iter().sum::<f64>() / own.len() as f64, own))
}

fn of_key(problem: &Problem<'_>, found: &Found, runs: &Runs<'_>, key: usize) -> KeyAdvice {
    let best = &found.best;
    let mut as_good = (best[key], best[key]);
    let mut left_alone: Option<f64> = None;
    for it in found.tried.iter().filter(|it| it.excess == 0.0 && it.score.is_some()) {
        let Some((mean, own)) = difference(runs, &it.settings, best) else { continue };
        let all: Vec<Option<f64>> = own.iter().copied().map(Some).collect();
        let is_open = own.len() >= LEAST_SEEDS && confidence(&all).is_some_and(|it| it.contains(0.0));
        if mean <= problem.indifferent || is_open {
            as_good = (as_good.0.min(it.settings[key]), as_good.1.max(it.settings[key]));
        }
        if it.settings[key] == problem.start[key] {
            left_alone = Some(left_alone.map_or(mean, |least| least.min(mean)));
        }
    }
    let left_alone = left_alone.map(|least| part(runs.columns()[0].1, least));
    KeyAdvice { as_good, left_alone, does_nothing: does_nothing(found, runs, key) }
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
            for length in [Length::Full, Length::Short] {
                let digest = |it: &Standing| Some(&runs.measured(&it.settings, length, 0)?.digest);
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

impl Advice {
    /// The search was interrupted.
    pub fn is_stopped(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.is_stopped)
    }

    /// The lines for a terminal of so many columns.
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        let subject = subject_heading(&self.objective.class, self.metric);
        for scheme in &self.schemes {
            let _ = writeln!(text, "{}: {subject}", scheme.scheme);
            self.sentences(scheme, &subject).iter().for_each(|line| paragraph(&mut text, 2, line, width));
        }
        text
    }

    /// What is said of a scheme.
    fn sentences(&self, scheme: &SchemeAdvice, subject: &str) -> Vec<String> {
        let mut said = vec![format!("from: {}", settings(&self.axes, &scheme.start))];
        let spent = text::significant(scheme.spent);
        if scheme.is_stopped {
            said.push(format!("so far: {}", settings(&self.axes, &scheme.best)));
            said.push(format!("interrupted after {spent} run-equivalents; the same command with --resume goes on"));
            return said;
        }
        if !scheme.helps() {
            said.push("nothing found that helps".into());
        }
        if scheme.best != scheme.start {
            let what = if scheme.helps() { "set" } else { "best in the search" };
            said.push(format!("{what}: {}", settings(&self.axes, &scheme.best)));
            let difference = in_words(scheme.apart.as_ref());
            let little = if scheme.helps_little() { ", which is less than what counts" } else { "" };
            said.push(format!(
                "{subject} on {} seeds that the search did not see: {difference}{little}",
                scheme.unseen
            ));
        }
        let is_other = |(_, apart): &&(String, Option<Apart>)| {
            apart.as_ref().is_none_or(|it| it.difference != 0.0 || it.interval != Interval(0.0, 0.0))
        };
        if scheme.others.iter().any(|it| is_other(&it)) {
            let others = scheme
                .others
                .iter()
                .filter(is_other)
                .map(|(name, apart)| format!("{name} {}", in_words(apart.as_ref())));
            said.push(format!("beside it: {}", others.collect::<Vec<_>>().join("; ")));
        }
        let keys = self.axes.iter().zip(&scheme.keys);
        said.extend(keys.map(|(axis, key)| format!("{}: {}", axis.key, key.describe(axis, self.metric))));
        if !scheme.conditions.is_empty() {
            let conditions = scheme.conditions.iter().map(|it| format!("{} {}", it.name, in_words(it.apart.as_ref())));
            said.push(format!("against the start elsewhere: {}", conditions.collect::<Vec<_>>().join("; ")));
        }
        if scheme.is_too_short {
            said.push("queues still rise at the end of the runs: longer ones may say otherwise".into());
        }
        said.push(format!("{} settings tried, {spent} run-equivalents", scheme.tried.len()));
        said
    }

    /// The same for programs.
    pub fn file(&self) -> Tuning {
        let subject = subject_heading(&self.objective.class, self.metric);
        Tuning {
            scenario: self.scenario.clone(),
            objective: format!("{}:{}", self.objective.class, self.objective.metric),
            subject: subject.clone(),
            axes: self.axes.iter().map(of_axis).collect(),
            schemes: self.schemes.iter().map(|scheme| self.found(scheme, &subject)).collect(),
        }
    }

    fn found(&self, scheme: &SchemeAdvice, subject: &str) -> tuning::Found {
        let values = |settings: &Settings| -> tuning::Settings {
            self.axes.iter().zip(settings).map(|(axis, place)| (axis.key.clone(), json(&axis.levels[*place]))).collect()
        };
        let named = |(what, apart): (&String, &Option<Apart>)| tuning::Named {
            what: what.clone(),
            difference: apart.as_ref().map(Into::into),
        };
        let key = |(axis, key): (&Axis, &KeyAdvice)| tuning::Key {
            key: axis.key.clone(),
            as_good: (json(&axis.levels[key.as_good.0]), json(&axis.levels[key.as_good.1])),
            left_alone: key.left_alone,
            does_nothing: key.does_nothing,
        };
        let tried = |it: &Standing| tuning::Tried {
            settings: values(&it.settings),
            seeds: it.seeds,
            full: it.length == Length::Full,
            difference: it.score.map(|score| part(self.metric, score)),
            is_excluded: it.excess > 0.0,
        };
        tuning::Found {
            scheme: scheme.scheme.clone(),
            helps: scheme.helps(),
            start: values(&scheme.start),
            best: values(&scheme.best),
            advised: values(if scheme.helps() { &scheme.best } else { &scheme.start }),
            unseen_seeds: scheme.unseen,
            difference: scheme.apart.as_ref().map(Into::into),
            others: scheme.others.iter().map(|(what, apart)| named((what, apart))).collect(),
            keys: self.axes.iter().zip(&scheme.keys).map(key).collect(),
            conditions: scheme.conditions.iter().map(|it| named((&it.name, &it.apart))).collect(),
            tried: scheme.tried.iter().map(tried).collect(),
            run_equivalents: scheme.spent,
            too_short: scheme.is_too_short,
            interrupted: scheme.is_stopped,
            said: self.sentences(scheme, subject),
        }
    }

    /// Every setting that was tried, best first, with its mean difference from the start.
    pub fn tried(&self) -> String {
        let mut text = String::new();
        for scheme in &self.schemes {
            let _ = writeln!(text, "{}: settings, full runs or short ones, difference from the start", scheme.scheme);
            for it in &scheme.tried {
                let kind = if it.length == Length::Full { "full" } else { "short" };
                let difference = match it.score {
                    None => "unknown".to_owned(),
                    Some(score) if self.metric.is_logarithmic() => format!("{:+.1}%", part(self.metric, score) * 100.0),
                    Some(score) => format!("{score:+}"),
                };
                let over = if it.excess > 0.0 { ", not within" } else { "" };
                let seeds = it.seeds;
                let _ = writeln!(text, "  {}: {seeds} {kind}, {difference}{over}", settings(&self.axes, &it.settings));
            }
        }
        text
    }

    /// Writes the scenario of each scheme of which something was found, with the values that were: `tuned.toml`, or of
    /// several schemes `tuned-SCHEME.toml`. Where they are.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_scenarios(&self) -> Result<Vec<PathBuf>, RunError> {
        let mut paths = Vec::new();
        for scheme in self.schemes.iter().filter(|scheme| scheme.helps()) {
            let Some(table) = &scheme.scenario else { continue };
            let of = if self.schemes.len() == 1 { String::new() } else { format!("-{}", safe(&scheme.scheme)) };
            let path = self.folder.join(format!("tuned{of}.toml"));
            // A table of texts and finite numbers is always TOML.
            let text = toml::to_string(table).unwrap_or_default();
            atomic::write(&path, |file| file.write_all(text.as_bytes())).map_err(RunError::files(&path))?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Writes `tune.json`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self) -> Result<(), RunError> {
        let path = self.folder.join(FILE);
        let text = self.file().to_json().map_err(|error| RunError::files(&path)(error.into()))?;
        let written = atomic::write(&path, |file| file.write_all(text.as_bytes()));
        written.map_err(RunError::files(&path))
    }
}

impl KeyAdvice {
    fn describe(&self, axis: &Axis, metric: &Metric) -> String {
        if self.does_nothing {
            return "changes nothing: all runs that differ in it alone are the same to the packet".into();
        }
        let value = |place: usize| text::toml(&axis.levels[place]);
        let (first, last) = self.as_good;
        let range = match (axis.is_ordered, first == last) {
            (true, false) => format!("{} to {} are as good", value(first), value(last)),
            (false, false) => "other values are as good".to_owned(),
            (_, true) => "no other value that was tried is as good".to_owned(),
        };
        let alone = match self.left_alone {
            None => "left as it is: not tried".to_owned(),
            Some(part) if metric.is_logarithmic() => format!("left as it is: {:+.1}%", part * 100.0),
            Some(by) => format!("left as it is: {by:+}"),
        };
        format!("{range}; {alone}")
    }
}

fn in_words(apart: Option<&Apart>) -> String {
    apart.map_or_else(|| "unknown, as flows did not finish".to_owned(), Apart::text)
}

/// A difference on the scale of outcomes as a part, where that is a logarithm.
fn part(metric: &Metric, difference: f64) -> f64 {
    if metric.is_logarithmic() { libm::expm1(difference) } else { difference }
}

fn json(value: &toml::Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn of_axis(axis: &Axis) -> tuning::Axis {
    tuning::Axis { key: axis.key.clone(), values: axis.levels.iter().map(json).collect() }
}
