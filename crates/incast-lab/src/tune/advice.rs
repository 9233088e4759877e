//! What a search says: the settings, how sure it is of them, and what else they change.

use super::{
    Within,
    axis::Axis,
    conditions::Condition,
    search::{Found, Length, MOST_SEEDS, Problem, Settings, Standing, Trials},
    trials::{Runs, as_part},
};
use crate::{
    atomic,
    metrics::{
        Better, Metric,
        statistics::{Interval, confidence},
    },
    plain::paragraph,
    results::{
        tuning::{self, FILE, Tuning},
        verdict::{Apart, LEAST_SEEDS, Pairs, subject_heading},
    },
    run::RunError,
    scenario::{Column, safe},
    text,
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

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
    pub others: Vec<Other>,
    /// Numbers that may not get worse by more than is allowed, on the same seeds.
    pub limits: Vec<Limit>,
    /// Seeds of that.
    pub unseen: usize,
    /// Of how many of them the number is known, at the start and of what was found.
    pub known: [usize; 2],
    /// Of each key: the values that cannot be told from the best or lie within what does not count, and what it costs to
    /// leave the key as it is.
    pub keys: Vec<KeyAdvice>,
    /// Under other conditions.
    pub conditions: Vec<Condition>,
    /// Every setting that was tried.
    pub tried: Vec<Standing>,
    /// Run-equivalents, those of unseen seeds included.
    pub spent: f64,
    /// What was found is worse on average on those of these seeds on which both are known.
    is_worse_in_common: bool,
    /// It was interrupted.
    pub is_stopped: bool,
    /// The search and the test were not.
    pub is_tested: bool,
    /// Everything was tried, at least by short runs; else what the search came upon.
    pub is_exhaustive: bool,
    /// Runs that failed, and why the first did.
    pub failed: Option<(usize, String)>,
    /// Settings that cannot be simulated, of how many, and why the first cannot.
    pub refused: Option<(usize, usize, String)>,
    /// All settings that were tried lie within what does not count, as far as their runs on the seeds of the search say.
    is_flat: bool,
    /// Queues still rose at the end of a run of the start or of the best.
    pub is_too_short: bool,
    /// Of whose, by how much, and which duration would do; nothing of a search that was interrupted.
    pub lengths: Vec<String>,
    /// The user's scenario with what is advised, every value spelled out.
    pub scenario: Option<toml::Table>,
    /// A difference below this part does not count.
    indifferent: f64,
    /// More is better.
    is_high: bool,
    /// What differences are parts of where the number has no logarithm; `None` where it is 0.
    base: Option<f64>,
}

/// A number that may not get worse by more than is allowed.
#[derive(Clone, Debug)]
pub struct Limit {
    /// `background slowdown p99 at most +10%`.
    pub what: String,
    /// What was found against the start; `None` where that is unknown.
    pub apart: Option<Apart>,
    /// It is within the limit, on the mean of the seeds.
    pub is_kept: bool,
}

/// A number beside the objective.
#[derive(Clone, Debug)]
pub struct Other {
    /// `web slowdown p50`.
    pub what: String,
    /// What was found against the start; `None` where that is unknown.
    pub apart: Option<Apart>,
    /// It gets clearly worse, by more than what counts.
    pub is_worse: bool,
}

impl Other {
    fn new(what: String, apart: Option<Apart>, better: Better, indifferent: f64) -> Self {
        let is_worse = apart.as_ref().is_some_and(|it| {
            let Interval(low, high) = it.interval;
            let is_told = match better {
                Better::Low => low > 0.0,
                Better::High => high < 0.0,
                Better::Neither => false,
            };
            is_told && !it.does_not_count(indifferent)
        });
        Self { what, apart, is_worse }
    }

    /// It is the same on every seed.
    fn is_same(&self) -> bool {
        self.apart.as_ref().is_some_and(|it| it.difference == 0.0 && it.interval == Interval(0.0, 0.0))
    }

    fn text(&self) -> String {
        let mark = if self.is_worse { "worse: " } else { "" };
        format!("{mark}{} {}", self.what, in_words(self.apart.as_ref()))
    }
}

/// What is said of a key.
#[derive(Clone, Debug)]
pub struct KeyAdvice {
    /// Places on its axis, the first and the last that full runs on three seeds of the search or more do not tell from the best,
    /// or only by what does not count; of values without an order those that are so, the best among them.
    pub as_good: Vec<usize>,
    /// By which part the best with this key as at the start differs from the best; `None` where that is not known.
    pub left_alone: Option<f64>,
    /// That is by short runs, or by fewer than three seeds.
    pub is_rough: bool,
    /// Runs that differ only in this key are the same to the packet.
    pub does_nothing: bool,
    /// Some other value has full runs on three seeds that the best has, too.
    pub is_compared: bool,
}

impl SchemeAdvice {
    /// What was found is better than the start, by what counts.
    pub fn helps(&self) -> bool {
        self.is_better() && !self.is_indifferent()
    }

    /// What was found is told from the start, and better, on the seeds that the search did not see, or its flows finish on all
    /// of them and those of the start do not; and no limit is broken.
    fn is_better(&self) -> bool {
        let is_better = |apart: &Apart| {
            let Interval(low, high) = apart.interval;
            if self.is_high { low > 0.0 } else { high < 0.0 }
        };
        let is_better = self.apart.as_ref().is_some_and(is_better) || self.finishes_more();
        self.is_tested && self.best != self.start && is_better && self.limits.iter().all(|limit| limit.is_kept)
    }

    /// It is better, by less than what counts: a change is not worth it.
    fn is_indifferent(&self) -> bool {
        self.is_better() && self.apart.as_ref().is_some_and(|apart| apart.does_not_count(self.indifferent))
    }

    /// The number is known on all seeds, as all flows end, and with the start it is not.
    fn finishes_more(&self) -> bool {
        self.unseen > 0 && self.known[1] == self.unseen && self.known[0] < self.unseen && !self.is_worse_in_common
    }
}

/// The settings in one line.
pub fn settings(axes: &[Axis], settings: &Settings) -> String {
    let all =
        axes.iter().zip(settings).map(|(axis, place)| format!("{} = {}", axis.key, text::toml(&axis.levels[*place])));
    all.collect::<Vec<_>>().join(", ")
}

/// What follows from a search.
pub fn of(
    problem: &Problem<'_>,
    found: &Found,
    runs: &Runs<'_>,
    (within, unseen): (&[Within], usize),
    is_stopped: bool,
) -> SchemeAdvice {
    let (start, best) = (&problem.start, &found.best);
    let known = |settings: &Settings, place: usize| -> Vec<f64> {
        let of = |seed| runs.measured(settings, Length::Full, MOST_SEEDS + seed)?.values[place];
        (0..unseen).filter_map(of).collect()
    };
    let values = |settings: &Settings, place: usize| Some(known(settings, place)).filter(|all| all.len() == unseen);
    let apart = |place: usize, metric: &Metric| {
        let (start, best) = values(start, place).zip(values(best, place))?;
        Pairs::new(metric, [&start[..], &best[..]].into_iter()).apart("", &best, &start)
    };
    let columns = runs.columns();
    // Of a limit the seeds count that the start knows: what the start does not finish is not held against others.
    let of_start = |place: usize| -> (Vec<f64>, Option<Vec<f64>>) {
        let value = |settings, seed| runs.measured(settings, Length::Full, MOST_SEEDS + seed)?.values[place];
        let seeds: Vec<usize> = (0..unseen).filter(|seed| value(start, *seed).is_some()).collect();
        let own = seeds.iter().map(|seed| value(best, *seed)).collect();
        (seeds.iter().filter_map(|seed| value(start, *seed)).collect(), own)
    };
    let limit = |(index, within): (usize, &Within)| {
        let ((column, metric), place) = (&columns[1 + index], 1 + index);
        let is_high = metric.better == Better::High;
        let (of_start, own) = of_start(place);
        let mean = own.as_ref().map(|own| {
            let pairs = Pairs::new(metric, [&of_start[..], &own[..]].into_iter());
            pairs.mean_of(own) / pairs.mean_of(&of_start) - 1.0
        });
        let apart = own.as_ref().and_then(|own| {
            let pairs = Pairs::new(metric, [&of_start[..], &own[..]].into_iter());
            pairs.apart("", own, &of_start)
        });
        let is_kept = match mean {
            _ if of_start.is_empty() => true,
            None => false,
            // Of nothing, which has no parts.
            Some(part) if part.is_nan() => true,
            Some(part) if is_high => part >= -within.worse,
            Some(part) => part <= within.worse,
        };
        let bound =
            format!("{}{}%", if is_high { "at least -" } else { "at most +" }, text::significant(within.worse * 100.0));
        Limit { what: format!("{} {bound}", subject_heading(&column.class, metric)), apart, is_kept }
    };
    let others = columns
        .iter()
        .enumerate()
        .skip(1 + within.len())
        .filter(|(place, _)| runs.measured(start, Length::Full, 0).is_some_and(|it| it.values[*place].is_some()));
    let others = others.map(|(place, (column, metric))| {
        let what = subject_heading(&column.class, metric);
        Other::new(what, apart(place, metric), metric.better, runs.indifferent())
    });
    let is_tested = !is_stopped && best != start;
    let of_unseen =
        |settings: &Settings, seed| runs.outcome(&(settings.clone(), Length::Full, MOST_SEEDS + seed)).objective;
    let in_common = (0..unseen).filter_map(|seed| Some(of_unseen(best, seed)? - of_unseen(start, seed)?));
    let tested = if is_tested { 2.0 * unseen as f64 } else { 0.0 };
    SchemeAdvice {
        scheme: runs.scheme().to_owned(),
        start: start.clone(),
        best: best.clone(),
        apart: apart(0, columns[0].1),
        others: if is_tested { others.collect() } else { Vec::new() },
        limits: if is_tested { within.iter().enumerate().map(limit).collect() } else { Vec::new() },
        unseen: if is_tested { unseen } else { 0 },
        known: [start, best].map(|it| known(it, 0).len()),
        keys: (0..problem.axes.len()).map(|key| of_key(problem, found, runs, key)).collect(),
        conditions: Vec::new(),
        tried: found.tried.clone(),
        spent: found.spent + tested,
        is_worse_in_common: in_common.sum::<f64>() > 0.0,
        is_stopped,
        is_tested: !is_stopped,
        is_exhaustive: found.is_exhaustive && !is_stopped,
        failed: runs.failed(),
        refused: runs.refused(),
        is_flat: is_flat(found, problem.indifferent),
        is_too_short: [start, best].into_iter().any(|it| runs.is_too_short(it)),
        lengths: Vec::new(),
        scenario: runs.effective(best),
        indifferent: runs.indifferent(),
        is_high: columns[0].1.better == Better::High,
        base: runs.base(0),
    }
}

/// All settings that were tried lie within what does not count.
fn is_flat(found: &Found, indifferent: f64) -> bool {
    let all: Option<Vec<f64>> = found.tried.iter().map(|it| it.difference).collect();
    let all = all.unwrap_or_default();
    let (low, high) = all.iter().fold((0.0, 0.0), |(low, high), it| (f64::min(low, *it), f64::max(high, *it)));
    all.len() > 1 && high - low <= indifferent
}

/// The objective of settings minus that of others, in runs of the seeds of the search that both have.
fn differences(runs: &Runs<'_>, a: &Settings, b: &Settings, length: Length) -> Vec<f64> {
    let of = |settings: &Settings, seed| runs.outcome(&(settings.clone(), length, seed)).objective;
    (0..MOST_SEEDS).filter_map(|seed| Some(of(a, seed)? - of(b, seed)?)).collect()
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}

/// What is known of a key by the settings that were tried.
fn of_key(problem: &Problem<'_>, found: &Found, runs: &Runs<'_>, key: usize) -> KeyAdvice {
    let best = &found.best;
    let known: Vec<&Standing> = found.tried.iter().filter(|it| it.excess == 0.0 && it.score.is_some()).collect();
    let mut as_good: BTreeMap<usize, bool> = BTreeMap::from([(best[key], true)]);
    for it in &known {
        let own = differences(runs, &it.settings, best, Length::Full);
        if own.len() >= LEAST_SEEDS {
            let all: Vec<Option<f64>> = own.iter().copied().map(Some).collect();
            let is_open = confidence(&all).is_some_and(|it| it.contains(0.0));
            *as_good.entry(it.settings[key]).or_default() |= mean(&own) <= problem.indifferent || is_open;
        }
    }
    let is_compared = as_good.len() > 1;
    let good = if problem.axes[key].is_ordered {
        // As far as nothing in between is told apart.
        let up = as_good.range(best[key]..).take_while(|(_, is)| **is).last();
        let down = as_good.range(..=best[key]).rev().take_while(|(_, is)| **is).last();
        down.into_iter().chain(up).map(|(place, _)| *place).collect()
    } else {
        as_good.iter().filter(|(_, is)| **is).map(|(place, _)| *place).collect()
    };
    let (left_alone, is_rough) = left_alone(problem, best, &known, runs, key);
    let left_alone = left_alone.map(|least| as_part(runs.columns()[0].1, runs.base(0), least));
    KeyAdvice { as_good: good, left_alone, is_rough, does_nothing: runs.is_idle(key), is_compared }
}

/// By how much the best settings with a key as at the start are worse than the best; and whether few or short runs say so.
fn left_alone(
    problem: &Problem<'_>,
    best: &Settings,
    known: &[&Standing],
    runs: &Runs<'_>,
    key: usize,
) -> (Option<f64>, bool) {
    let start = &problem.start;
    // The start says something of this key only if no other changes.
    let only_this = best.iter().zip(start).enumerate().all(|(index, (best, start))| index == key || best == start);
    let least = |length, seeds: usize| {
        let own = known.iter().filter(|it| it.settings[key] == start[key] && (only_this || it.settings != *start));
        let own = own.map(|it| differences(runs, &it.settings, best, length)).filter(|own| own.len() >= seeds);
        own.map(|own| mean(&own)).min_by(f64::total_cmp)
    };
    if best[key] == start[key] {
        return (Some(0.0), false);
    }
    match least(Length::Full, LEAST_SEEDS) {
        None => (least(Length::Short, 1).or_else(|| least(Length::Full, 1)), true),
        least => (least, false),
    }
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
        let goes_on = "the same command with --resume goes on";
        if !scheme.is_tested {
            said.push(format!("so far: {}", settings(&self.axes, &scheme.best)));
            said.push(format!("interrupted after {spent} run-equivalents; {goes_on}"));
            return said;
        }
        if scheme.is_indifferent() {
            said.push("nothing is worth changing: the best other values count as good as today's".into());
        } else if !scheme.helps() {
            said.push("nothing found that helps".into());
        }
        if scheme.best != scheme.start {
            let what = if scheme.helps() { "set" } else { "best in the search" };
            said.push(format!("{what}: {}", settings(&self.axes, &scheme.best)));
            let difference = match (&scheme.apart, scheme.known) {
                (None, [start, best]) => {
                    let unseen = scheme.unseen;
                    format!("known on {best} of {unseen}, with the start on {start}")
                }
                (apart, _) => in_words(apart.as_ref()),
            };
            let little = if scheme.is_indifferent() { ", which is less than what counts" } else { "" };
            said.push(format!(
                "{subject} on {} seeds that the search did not see: {difference}{little}",
                scheme.unseen
            ));
            let limits = scheme.limits.iter().map(|it| {
                let kept = if it.is_kept { "kept" } else { "broken" };
                format!("--within, {}: {kept}, {}", it.what, in_words(it.apart.as_ref()))
            });
            said.extend(limits);
        }
        let others: Vec<String> = scheme.others.iter().filter(|it| !it.is_same()).map(Other::text).collect();
        if !others.is_empty() {
            said.push(format!("beside it: {}", others.join("; ")));
        }
        let (keys, part) = (self.axes.iter().zip(&scheme.keys), scheme.indifferent);
        let flat = scheme.is_flat && !scheme.helps() && scheme.apart.as_ref().is_none_or(|it| it.does_not_count(part));
        let flat = flat.then(|| {
            let part = text::significant(part * 100.0);
            format!("makes no difference to this number: all that was run is within the {part}% that does not count")
        });
        said.extend(keys.map(|(axis, key)| {
            let alone = flat.clone().filter(|_| !key.does_nothing);
            let own = alone.unwrap_or_else(|| key.describe(axis, self.is_relative(scheme)));
            format!("{}: {own}", axis.key)
        }));
        if !scheme.conditions.is_empty() {
            let conditions = scheme.conditions.iter().map(Condition::text);
            said.push(format!("against the start elsewhere: {}", conditions.collect::<Vec<_>>().join("; ")));
        }
        if scheme.is_stopped {
            said.push(format!("interrupted there; {goes_on}"));
        }
        said.extend(scheme.lengths.iter().map(|why| format!("! runs too short for a steady state: {why}")));
        if scheme.is_too_short && scheme.lengths.is_empty() {
            said.push("queues still rise at the end of the runs: longer ones may say otherwise".into());
        }
        if let Some((count, why)) = &scheme.failed {
            said.push(format!("{count} runs failed, and their numbers are unknown; the first: {why}"));
        }
        if let Some((count, all, why)) = &scheme.refused {
            said.push(format!("{count} of {all} settings cannot be simulated and were left out; the first: {why}"));
        }
        let how = if scheme.is_exhaustive { "all" } else { "of a pattern search" };
        said.push(format!("{} settings tried, {how}, {spent} run-equivalents", scheme.tried.len()));
        said
    }

    /// The same for programs.
    pub fn file(&self) -> Tuning {
        let subject = subject_heading(&self.objective.class, self.metric);
        Tuning {
            scenario: self.scenario.clone(),
            objective: format!("{}:{}", self.objective.class, self.objective.metric),
            subject: subject.clone(),
            higher_is_better: self.metric.better == Better::High,
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
            not_run: None,
        };
        let condition = |it: &Condition| tuning::Named { not_run: it.not_run.clone(), ..named((&it.name, &it.apart)) };
        let limit = |it: &Limit| tuning::Limit {
            what: it.what.clone(),
            difference: it.apart.as_ref().map(Into::into),
            is_kept: it.is_kept,
        };
        let key = |(axis, key): (&Axis, &KeyAdvice)| tuning::Key {
            key: axis.key.clone(),
            as_good: key.as_good.iter().map(|place| json(&axis.levels[*place])).collect(),
            left_alone: key.left_alone,
            is_rough: key.is_rough,
            does_nothing: key.does_nothing,
        };
        let tried = |it: &Standing| tuning::Tried {
            settings: values(&it.settings),
            seeds: it.seeds,
            full: it.length == Length::Full,
            difference: self.difference(scheme, it),
            is_excluded: it.excess > 0.0,
        };
        tuning::Found {
            scheme: scheme.scheme.clone(),
            helps: scheme.helps(),
            start: values(&scheme.start),
            best: values(&scheme.best),
            advised: values(if scheme.helps() { &scheme.best } else { &scheme.start }),
            unseen_seeds: scheme.unseen,
            known_seeds: scheme.known,
            difference: scheme.apart.as_ref().map(Into::into),
            is_relative: self.is_relative(scheme),
            limits: scheme.limits.iter().map(limit).collect(),
            others: scheme.others.iter().map(|it| named((&it.what, &it.apart))).collect(),
            keys: self.axes.iter().zip(&scheme.keys).map(key).collect(),
            conditions: scheme.conditions.iter().map(condition).collect(),
            tried: scheme.tried.iter().map(tried).collect(),
            tried_all: scheme.is_exhaustive,
            run_equivalents: scheme.spent,
            too_short: scheme.is_too_short,
            interrupted: scheme.is_stopped,
            said: self.sentences(scheme, subject),
        }
    }

    /// Differences of settings that were tried are parts of the start's number.
    fn is_relative(&self, scheme: &SchemeAdvice) -> bool {
        self.metric.is_logarithmic() || scheme.base.is_some()
    }

    fn difference(&self, scheme: &SchemeAdvice, it: &Standing) -> Option<f64> {
        it.difference.map(|difference| as_part(self.metric, scheme.base, difference))
    }

    /// Every setting that was tried, best first, with its mean difference from the start.
    pub fn tried(&self) -> String {
        let mut text = String::new();
        for scheme in &self.schemes {
            let _ = writeln!(text, "{}: settings, full runs or short ones, difference from the start", scheme.scheme);
            for it in &scheme.tried {
                let kind = if it.length == Length::Full { "full" } else { "short" };
                let difference = self.difference(scheme, it);
                let difference = difference.map_or("unknown".to_owned(), |it| signed(it, self.is_relative(scheme)));
                let over = if it.excess > 0.0 { ", not within" } else { "" };
                let seeds = it.seeds;
                let _ = writeln!(text, "  {}: {seeds} {kind}, {difference}{over}", settings(&self.axes, &it.settings));
            }
        }
        text
    }

    /// Writes the scenario of each scheme of which something was found, with the values that were: `tuned.toml`, or of
    /// several schemes `tuned-SCHEME.toml`. What an earlier search wrote is removed. Where they are.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_scenarios(&self) -> Result<Vec<PathBuf>, RunError> {
        let named = |index: usize| -> String {
            let own = safe(&self.schemes[index].scheme);
            // What differs only in characters that a file's name may not have.
            let is_taken = self.schemes[..index].iter().any(|other| safe(&other.scheme) == own);
            if is_taken { format!("tuned-{own}-{index}.toml") } else { format!("tuned-{own}.toml") }
        };
        for entry in fs::read_dir(&self.folder).map_err(RunError::files(&self.folder))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "tuned.toml" || name.starts_with("tuned-") && name.ends_with(".toml") {
                fs::remove_file(entry.path()).map_err(RunError::files(&entry.path()))?;
            }
        }
        let (mut paths, mut kept) = (Vec::new(), BTreeMap::new());
        for (index, scheme) in self.schemes.iter().enumerate().filter(|(_, scheme)| scheme.helps()) {
            let Some(mut table) = scheme.scenario.clone() else { continue };
            table.iter_mut().try_for_each(|(_, value)| self.keep_files(value, &mut kept))?;
            let name = if self.schemes.len() == 1 { "tuned.toml".to_owned() } else { named(index) };
            let path = self.folder.join(name);
            // A table of texts and finite numbers is always TOML.
            let text = toml::to_string(&table).unwrap_or_default();
            atomic::write(&path, |file| file.write_all(text.as_bytes())).map_err(RunError::files(&path))?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Copies temporary files, as those of bundled scenarios, which are gone when the program ends, beside the scenario that names
    /// them. `kept` are their names there.
    fn keep_files(&self, value: &mut toml::Value, kept: &mut BTreeMap<PathBuf, String>) -> Result<(), RunError> {
        match value {
            toml::Value::String(text) => {
                let path = Path::new(text.as_str());
                let is_gone = path.starts_with(std::env::temp_dir()) && path.is_file();
                let Some(name) = path.file_name().filter(|_| is_gone) else { return Ok(()) };
                let name = match kept.get(path) {
                    Some(name) => name.clone(),
                    None => {
                        // Files of two folders may have one name.
                        let name = format!("file{}-{}", kept.len(), name.to_string_lossy());
                        fs::copy(path, self.folder.join(&name)).map_err(RunError::files(path))?;
                        kept.insert(path.to_owned(), name.clone());
                        name
                    }
                };
                *text = name;
                Ok(())
            }
            toml::Value::Array(values) => values.iter_mut().try_for_each(|value| self.keep_files(value, kept)),
            toml::Value::Table(table) => table.iter_mut().try_for_each(|(_, value)| self.keep_files(value, kept)),
            _ => Ok(()),
        }
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
    fn describe(&self, axis: &Axis, is_relative: bool) -> String {
        if self.does_nothing {
            return "changes nothing: all runs that differ in it alone are the same to the packet".into();
        }
        let value = |place: usize| text::toml(&axis.levels[place]);
        let range = match &self.as_good[..] {
            _ if !self.is_compared => "no other value was run long enough to be compared".to_owned(),
            [] | [_] => "no other value that was run long enough is as good".to_owned(),
            [first, last] if axis.is_ordered && first == last => {
                "no other value that was run long enough is as good".to_owned()
            }
            [first, last] if axis.is_ordered => format!("{} to {} are as good", value(*first), value(*last)),
            all => format!("{} are as good", all.iter().map(|it| value(*it)).collect::<Vec<_>>().join(", ")),
        };
        let alone = match self.left_alone {
            None => "left as it is: not known".to_owned(),
            Some(by) if self.is_rough => format!("left as it is: {} by few or short runs", signed(by, is_relative)),
            Some(by) => format!("left as it is: {}", signed(by, is_relative)),
        };
        format!("{range}; {alone}")
    }
}

/// A difference with its sign.
fn signed(difference: f64, is_relative: bool) -> String {
    // No zero is negative.
    let difference = if difference.abs() < 5e-4 && is_relative { 0.0 } else { difference };
    if is_relative { format!("{:+.1}%", difference * 100.0) } else { format!("{difference:+}") }
}

fn in_words(apart: Option<&Apart>) -> String {
    apart.map_or_else(|| "not known on every seed".to_owned(), Apart::text)
}

fn json(value: &toml::Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn of_axis(axis: &Axis) -> tuning::Axis {
    tuning::Axis { key: axis.key.clone(), values: axis.levels.iter().map(json).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice() -> SchemeAdvice {
        SchemeAdvice {
            scheme: "dctcp".into(),
            start: vec![0],
            best: vec![1],
            apart: Some(apart(-0.2, -0.3, -0.1)),
            others: Vec::new(),
            limits: Vec::new(),
            unseen: 3,
            known: [3, 3],
            keys: Vec::new(),
            conditions: Vec::new(),
            tried: Vec::new(),
            spent: 20.0,
            is_worse_in_common: false,
            is_stopped: false,
            is_tested: true,
            is_exhaustive: true,
            failed: None,
            refused: None,
            is_flat: false,
            is_too_short: false,
            lengths: Vec::new(),
            scenario: None,
            indifferent: 0.02,
            is_high: false,
            base: Some(1.0),
        }
    }

    fn all_of(scheme: SchemeAdvice) -> Vec<String> {
        let column = Column { class: "web".into(), metric: "slowdown.p99".into() };
        let values = ["a", "b"].map(|text| toml::Value::String(text.into()));
        let advice = Advice {
            scenario: "s-tune".into(),
            metric: crate::metrics::find(&column.metric).expect("a metric"),
            objective: column,
            axes: vec![Axis { key: "switch.ecn.at".into(), levels: values.to_vec(), is_ordered: false }],
            schemes: Vec::new(),
            folder: PathBuf::new(),
        };
        advice.sentences(&scheme, "web slowdown p99")
    }

    fn apart(difference: f64, low: f64, high: f64) -> Apart {
        Apart { scheme: String::new(), difference, interval: Interval(low, high), is_relative: true }
    }

    #[test]
    fn what_is_told_apart_on_unseen_seeds_helps_where_no_limit_is_broken() {
        assert!(advice().helps());
        assert!(!SchemeAdvice { apart: Some(apart(-0.2, -0.5, 0.1)), ..advice() }.helps(), "it may be none");
        assert!(!SchemeAdvice { is_high: true, ..advice() }.helps(), "more is better");
        let limit = |is_kept| vec![Limit { what: String::new(), apart: Some(apart(0.2, 0.1, 0.3)), is_kept }];
        assert!(SchemeAdvice { limits: limit(true), ..advice() }.helps());
        assert!(!SchemeAdvice { limits: limit(false), ..advice() }.helps());
    }

    #[test]
    fn what_does_not_count_is_not_advised_and_says_so() {
        let scheme = SchemeAdvice { apart: Some(apart(-0.016, -0.02, -0.012)), ..advice() };
        assert!(!scheme.helps(), "1.6% is less than 2%");
        let said = all_of(scheme).join("\n");
        assert!(said.contains("nothing is worth changing: the best other values count as good as today's"), "{said}");
        assert!(said.contains("best in the search: switch.ecn.at = b") && !said.contains("set: "), "{said}");
        assert!(said.contains("-1.6% [-2.0%, -1.2%], which is less than what counts"), "{said}");
    }

    #[test]
    fn keys_that_make_no_difference_say_so_and_those_not_compared_do_not_say_that_none_is_as_good() {
        let key =
            KeyAdvice { as_good: vec![1], left_alone: None, is_rough: true, does_nothing: false, is_compared: false };
        let same = SchemeAdvice { apart: Some(apart(0.0, 0.0, 0.0)), keys: vec![key.clone()], ..advice() };
        let said = all_of(SchemeAdvice { is_flat: true, ..same.clone() }).join("\n");
        let flat =
            "switch.ecn.at: makes no difference to this number: all that was run is within the 2% that does not count";
        assert!(said.contains(flat) && !said.contains("as good") && !said.contains("not known"), "{said}");
        let said = all_of(same.clone()).join("\n");
        assert!(said.contains("switch.ecn.at: no other value was run long enough to be compared"), "{said}");
        let compared = KeyAdvice { is_compared: true, ..key };
        let said = all_of(SchemeAdvice { keys: vec![compared], ..same.clone() }).join("\n");
        assert!(said.contains("switch.ecn.at: no other value that was run long enough is as good"), "{said}");
        let worse = SchemeAdvice { is_flat: true, apart: Some(apart(0.05, 0.03, 0.07)), ..same };
        assert!(!all_of(worse).join("\n").contains("makes no difference"), "other seeds say otherwise");
    }

    #[test]
    fn settings_are_alike_where_all_that_were_tried_are_within_what_does_not_count() {
        let found = |differences: &[Option<f64>]| {
            let one = |(place, difference): (usize, &Option<f64>)| Standing {
                settings: vec![place],
                seeds: 1,
                score: *difference,
                difference: *difference,
                excess: 0.0,
                length: Length::Short,
            };
            Found { tried: differences.iter().enumerate().map(one).collect(), ..Found::nothing(&vec![0]) }
        };
        assert!(is_flat(&found(&[Some(0.0), Some(0.01), Some(-0.005)]), 0.02));
        assert!(!is_flat(&found(&[Some(0.0), Some(0.015), Some(-0.015)]), 0.02), "two differ by more");
        assert!(!is_flat(&found(&[Some(0.0), None]), 0.02), "one is not known");
        assert!(!is_flat(&found(&[Some(0.0)]), 0.02), "nothing else was tried");
    }

    #[test]
    fn what_gets_worse_beside_it_is_marked() {
        let other = |apart, better| Other::new("p50".into(), Some(apart), better, 0.02).text();
        assert_eq!(other(apart(0.071, 0.068, 0.074), Better::Low), "worse: p50 +7.1% [6.8%, 7.4%]");
        assert_eq!(other(apart(-0.071, -0.074, -0.068), Better::Low), "p50 -7.1% [-7.4%, -6.8%]", "it is better");
        assert_eq!(other(apart(-0.071, -0.074, -0.068), Better::High), "worse: p50 -7.1% [-7.4%, -6.8%]");
        assert_eq!(other(apart(0.071, -0.01, 0.15), Better::Low), "p50 +7.1% [-1.0%, 15%]", "it may be none");
        assert_eq!(other(apart(0.012, 0.01, 0.014), Better::Low), "p50 +1.2% [1.0%, 1.4%]", "it does not count");
        assert_eq!(other(apart(0.071, 0.068, 0.074), Better::Neither), "p50 +7.1% [6.8%, 7.4%]");
    }

    #[test]
    fn flows_that_finish_are_a_help_where_those_of_the_start_do_not() {
        assert!(!SchemeAdvice { is_tested: false, ..advice() }.helps(), "its limits are not known");
        let unfinished = SchemeAdvice { apart: None, known: [1, 3], ..advice() };
        assert!(unfinished.helps());
        assert!(!SchemeAdvice { known: [1, 2], ..unfinished.clone() }.helps(), "nor do its own");
        assert!(!SchemeAdvice { is_worse_in_common: true, ..unfinished }.helps());
    }

    #[test]
    fn differences_have_the_sign_of_the_number() {
        let [goodput, slowdown] = ["goodput_gbps", "slowdown.p99"].map(|name| crate::metrics::find(name).expect(name));
        // On the scale of outcomes less is better.
        assert_eq!(as_part(goodput, Some(20.0), -5.0), 0.25);
        assert_eq!(as_part(goodput, None, -5.0), 5.0);
        assert!((as_part(slowdown, None, libm::log(1.5)) - 0.5).abs() < 1e-12);
        assert_eq!((signed(-1e-5, true).as_str(), signed(0.25, true).as_str()), ("+0.0%", "+25.0%"));
    }
}
