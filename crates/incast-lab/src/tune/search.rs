//! Which settings are tried next: a pattern search with short runs, then a race over seeds with full ones.
//!
//! Values are compared seed by seed, as all settings of a seed have the same arrivals: with those of the start, or where
//! flows do not finish at the start, with those of settings that finish them on most seeds. What is tried depends on values
//! alone, so that an interrupted search goes on as if it had not been.

use super::axis::Axis;
use crate::metrics::statistics::{Interval, confidence};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// A place on each axis.
pub type Settings = Vec<usize>;

/// How long a run is: the scenario's duration, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// A part.
    Short,
    /// All.
    Full,
}

/// A run: settings, how long, and the place of the seed in its list.
pub type Trial = (Settings, Length, usize);

/// What a run says.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The number that is to be small: the logarithm of a time or a ratio, the negative of what is to be large. `None`
    /// if it is not known, as flows did not finish or the run failed.
    pub objective: Option<f64>,
    /// The same of each number that may not get worse.
    pub within: Vec<Option<f64>>,
}

/// Runs what the search asks for.
pub trait Trials {
    /// What goes wrong.
    type Error;
    /// Does runs, unless they are done already. All runs of one call can be done at once.
    ///
    /// # Errors
    /// The search cannot go on.
    fn run(&mut self, trials: &[Trial]) -> Result<(), Self::Error>;
    /// What a run that was asked for said.
    fn outcome(&self, trial: &Trial) -> Outcome;
    /// The settings can be simulated.
    fn is_possible(&self, settings: &Settings) -> bool;
}

/// What is searched.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// The keys.
    pub axes: &'a [Axis],
    /// Where the search starts.
    pub start: Settings,
    /// Full runs that the search may cost.
    pub budget: f64,
    /// Those of them that were spent before it.
    pub spent: f64,
    /// Part of a full run that a short one costs; `None` if there are no short ones.
    pub short: Option<f64>,
    /// By how much each number of [`Outcome::within`] may be worse than at the start, on the scale of outcomes.
    pub allowed: Vec<f64>,
    /// Differences up to this do not count, on the scale of the objective.
    pub indifferent: f64,
}

/// How settings compare with the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The settings.
    pub settings: Settings,
    /// Seeds of its runs.
    pub seeds: usize,
    /// What settings are ordered by: the mean difference of the objective from those that are compared with, in the seeds
    /// that these know; `None` where it is unknown in a seed of these settings.
    pub score: Option<f64>,
    /// Mean difference of the objective from the start; `None` where either is unknown in a seed.
    pub difference: Option<f64>,
    /// By how much numbers that may not get worse did so beyond what is allowed.
    pub excess: f64,
    /// How long its runs are.
    pub length: Length,
}

impl Standing {
    /// The better one is less: what is known before what is not, then what is allowed, then the objective.
    fn order(&self, other: &Self) -> Ordering {
        let key = |it: &Self| (it.score.is_none(), it.excess, it.score.unwrap_or(0.0));
        let (a, b) = (key(self), key(other));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)).then(self.settings.cmp(&other.settings))
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best settings.
    pub best: Settings,
    /// All settings that were tried, the longest runs of each, best first; those of full runs before the others.
    pub tried: Vec<Standing>,
    /// Run-equivalents spent.
    pub spent: f64,
    /// Settings that cannot be simulated, as far as the search came upon them.
    pub refused: usize,
    /// All combinations were tried.
    pub is_exhaustive: bool,
}

impl Found {
    /// The start, of which nothing is known.
    pub fn nothing(start: &Settings) -> Self {
        Self { best: start.clone(), tried: Vec::new(), spent: 0.0, refused: 0, is_exhaustive: false }
    }
}

/// Seeds that the race may use.
pub const MOST_SEEDS: usize = 12;

/// Part of the budget for the first look, by short runs where there are any.
const EXPLORE: f64 = 0.5;
/// Part of the budget that points spread over everything may cost.
const SPREAD: f64 = 0.25;
/// Settings that race at the beginning, at most.
const MOST_RACING: usize = 12;
/// Fewer seeds tell nothing apart.
const LEAST_SEEDS: usize = 3;

struct Search<'a, T> {
    problem: &'a Problem<'a>,
    trials: &'a mut T,
    asked: BTreeMap<Settings, BTreeMap<Length, usize>>,
    refused: BTreeSet<Settings>,
    spent: f64,
}

/// Searches; also what ended the search before its time.
pub fn search<T: Trials>(problem: &Problem<'_>, trials: &mut T) -> (Found, Option<T::Error>) {
    let mut search = Search { problem, trials, asked: BTreeMap::new(), refused: BTreeSet::new(), spent: problem.spent };
    let end = search.all();
    (search.found(), end.err())
}

impl<T: Trials> Search<'_, T> {
    fn all(&mut self) -> Result<(), T::Error> {
        self.ask(&[], Length::Full, 1)?;
        self.explore()?;
        self.race()
    }

    fn cost(&self, length: Length) -> f64 {
        match length {
            Length::Full => 1.0,
            Length::Short => self.problem.short.unwrap_or(1.0),
        }
    }

    fn seeds(&self, settings: &Settings, length: Length) -> usize {
        self.asked.get(settings).and_then(|of| of.get(&length)).copied().unwrap_or(0)
    }

    /// Has as many seeds of each, as far as the budget goes: `false` where it did not. The start has as many as any.
    fn ask(&mut self, all: &[Settings], length: Length, seeds: usize) -> Result<bool, T::Error> {
        let mut wanted = Vec::new();
        let mut before = Vec::new();
        let mut is_whole = true;
        let start = [self.problem.start.clone()];
        let mut seen = BTreeSet::new();
        for settings in start.iter().chain(all).filter(|settings| seen.insert((*settings).clone())) {
            if !self.trials.is_possible(settings) {
                self.refused.insert(settings.clone());
                continue;
            }
            let has = self.seeds(settings, length);
            let cost = self.cost(length) * seeds.saturating_sub(has) as f64;
            if has >= seeds {
                continue;
            }
            if self.spent + cost > self.problem.budget + 1e-9 {
                is_whole = false;
                continue;
            }
            self.spent += cost;
            before.push((settings.clone(), has, cost));
            wanted.extend((has..seeds).map(|seed| (settings.clone(), length, seed)));
            self.asked.entry(settings.clone()).or_default().insert(length, seeds);
        }
        if !wanted.is_empty()
            && let Err(error) = self.trials.run(&wanted)
        {
            // Nothing is known of what did not end.
            for (settings, has, cost) in before {
                self.spent -= cost;
                let of = self.asked.entry(settings).or_default();
                if has == 0 {
                    of.remove(&length)
                } else {
                    of.insert(length, has)
                };
            }
            return Err(error);
        }
        Ok(is_whole)
    }

    /// Differences from other settings in the seeds that both have: of the objective, or of a number beside it.
    fn differences(&self, a: &Settings, b: &Settings, length: Length, of: Of) -> Vec<Option<f64>> {
        let seeds = self.seeds(a, length).min(self.seeds(b, length));
        (0..seeds).map(|seed| Some(self.value(a, length, seed, of)? - self.value(b, length, seed, of)?)).collect()
    }

    fn value(&self, settings: &Settings, length: Length, seed: usize, of: Of) -> Option<f64> {
        let outcome = self.trials.outcome(&(settings.clone(), length, seed));
        match of {
            Of::Objective => outcome.objective,
            Of::Within(index) => outcome.within.get(index).copied().flatten(),
        }
    }

    /// The settings that all are compared with: those of which the objective is known in most seeds, the start before others.
    fn reference(&self, length: Length) -> Settings {
        let start = &self.problem.start;
        let known = |settings: &Settings| {
            let seeds = 0..self.seeds(settings, length);
            seeds.filter(|seed| self.value(settings, length, *seed, Of::Objective).is_some()).count()
        };
        let all = self.asked.keys().map(|settings| (known(settings), settings == start, settings));
        // The first of equal ones, so that one of which no run has ended is not preferred.
        all.rev().max_by_key(|(known, is_start, _)| (*known, *is_start)).map_or(start, |(_, _, it)| it).clone()
    }

    fn standing(&self, settings: &Settings, length: Length, reference: &Settings) -> Standing {
        let start = &self.problem.start;
        let seeds = self.seeds(settings, length);
        let is_known = (0..seeds).all(|seed| self.value(settings, length, seed, Of::Objective).is_some());
        let differences = self.differences(settings, reference, length, Of::Objective);
        let in_common: Vec<Option<f64>> = differences.into_iter().filter(Option::is_some).collect();
        let score = mean(&in_common).filter(|_| is_known);
        let difference = mean(&self.differences(settings, start, length, Of::Objective)).filter(|_| is_known);
        // What the start does not finish is not held against others.
        let worse = |(index, allowed): (usize, &f64)| {
            let of = Of::Within(index);
            let both = (0..seeds.min(self.seeds(start, length))).filter_map(|seed| {
                Some((self.value(start, length, seed, of)?, self.value(settings, length, seed, of)))
            });
            let differences: Vec<Option<f64>> = both.map(|(start, own)| Some(own? - start)).collect();
            match mean(&differences) {
                None if differences.iter().any(Option::is_none) => f64::INFINITY,
                mean => mean.map_or(0.0, |mean| (mean - allowed).max(0.0)),
            }
        };
        let excess = self.problem.allowed.iter().enumerate().map(worse).sum();
        Standing { settings: settings.clone(), seeds, score, difference, excess, length }
    }

    /// All that were tried so long, best first.
    fn order(&self, length: Length) -> Vec<Standing> {
        let tried = self.asked.iter().filter(|(_, of)| of.contains_key(&length));
        let reference = self.reference(length);
        let mut all: Vec<Standing> = tried.map(|(settings, _)| self.standing(settings, length, &reference)).collect();
        all.sort_by(Standing::order);
        all
    }

    /// How long the runs of the first look are.
    fn first_length(&self) -> Length {
        if self.problem.short.is_some() { Length::Short } else { Length::Full }
    }

    fn is_exhaustive(&self) -> bool {
        let count: usize = self.problem.axes.iter().map(|axis| axis.levels.len()).product();
        count as f64 * self.cost(self.first_length()) <= EXPLORE * self.problem.budget
    }

    /// Looks at everything, where that is cheap enough; else at points spread over it, and from the best of them downhill.
    fn explore(&mut self) -> Result<(), T::Error> {
        let length = self.first_length();
        let (cost, budget) = (self.cost(length), self.problem.budget);
        let sizes: Vec<usize> = self.problem.axes.iter().map(|axis| axis.levels.len()).collect();
        let count: usize = sizes.iter().product();
        if self.is_exhaustive() {
            let all: Vec<Settings> = (0..count).map(|index| nth(index, &sizes)).collect();
            self.ask(&all, length, 1)?;
            // A second look at the better half.
            let half: Vec<Settings> =
                self.order(length).into_iter().take(count.div_ceil(2)).map(|it| it.settings).collect();
            if length == Length::Short && self.spent + half.len() as f64 * cost <= EXPLORE * budget {
                self.ask(&half, length, 2)?;
            }
            return Ok(());
        }
        let spread = ((SPREAD * budget / cost) as usize).clamp(2, count);
        let points: Vec<Settings> = (1..=spread as u64).map(|index| halton(index, &sizes)).collect();
        self.ask(&points, length, 1)?;
        let mut steps: Vec<usize> = sizes.iter().map(|size| (size / 4).max(1)).collect();
        while self.spent < EXPLORE * budget {
            let Some(centre) = self.order(length).into_iter().next() else { return Ok(()) };
            let around = self.around(&centre.settings, &steps);
            let new: Vec<Settings> = around.into_iter().filter(|it| self.seeds(it, length) == 0).collect();
            if !new.is_empty() {
                let is_whole = self.ask(&new, length, 1)?;
                if self.order(length).first().map(|it| &it.settings) != Some(&centre.settings) && is_whole {
                    continue;
                }
            }
            if steps.iter().all(|step| *step == 1) {
                return Ok(());
            }
            steps.iter_mut().for_each(|step| *step = (*step / 2).max(1));
        }
        Ok(())
    }

    /// Settings that differ in one key: by its step, or in any way where its values have no order.
    fn around(&self, centre: &Settings, steps: &[usize]) -> Vec<Settings> {
        let mut all = Vec::new();
        for (index, axis) in self.problem.axes.iter().enumerate() {
            let (at, most) = (centre[index], axis.levels.len() - 1);
            let places: Vec<usize> = if axis.is_ordered {
                vec![at.saturating_sub(steps[index]), (at + steps[index]).min(most)]
            } else {
                (0..=most).collect()
            };
            for place in places.into_iter().filter(|place| *place != at) {
                let mut settings = centre.clone();
                settings[index] = place;
                all.push(settings);
            }
        }
        all.retain(|settings| self.trials.is_possible(settings));
        all
    }

    /// Races among the best, with what lies beside the leader, as long as the budget lasts and somebody is left who may win.
    fn race(&mut self) -> Result<(), T::Error> {
        let first = self.first_length();
        let mut lost: BTreeSet<Settings> = BTreeSet::new();
        let mut is_first = true;
        loop {
            let left = self.problem.budget - self.spent;
            let size = ((left / 4.0) as usize).clamp(2, MOST_RACING);
            let leader = self.leader();
            // Full runs say more, where there are any.
            let by = if is_first { first } else { Length::Full };
            let open = self.order(by).into_iter().filter(|it| is_first || it.seeds < LEAST_SEEDS);
            let mut racing: Vec<Settings> = leader.clone().into_iter().collect();
            if !is_first && let Some(leader) = &leader {
                let ones = vec![1; self.problem.axes.len()];
                let around = self.around(leader, &ones);
                racing.extend(around.into_iter().filter(|it| self.seeds(it, Length::Full) == 0));
            }
            for it in open.map(|it| it.settings) {
                if racing.len() < size && !racing.contains(&it) && !lost.contains(&it) {
                    racing.push(it);
                }
            }
            racing.truncate(MOST_RACING.min(left as usize));
            let spent = self.spent;
            if racing.len() < 2 || !self.heat(racing, &mut lost)? || self.spent == spent {
                return Ok(());
            }
            is_first = false;
        }
    }

    /// The best so far of full runs with enough seeds to be believed.
    fn leader(&self) -> Option<Settings> {
        self.order(Length::Full)
            .into_iter()
            .find(|it| it.seeds >= LEAST_SEEDS && it.score.is_some())
            .map(|it| it.settings)
    }

    /// Full runs, seed after seed; the better half goes on after each of the first two, then all that are not told from the
    /// leader. Whether the budget lasted.
    fn heat(&mut self, mut racing: Vec<Settings>, lost: &mut BTreeSet<Settings>) -> Result<bool, T::Error> {
        for seeds in 1..=MOST_SEEDS {
            if !self.ask(&racing, Length::Full, seeds)? {
                return Ok(false);
            }
            racing = self.ranked(&racing);
            if seeds < LEAST_SEEDS {
                racing.truncate(racing.len().div_ceil(2).max(3));
                continue;
            }
            let leader = racing[0].clone();
            let (kept, gone) = racing.into_iter().partition(|it| *it == leader || !self.is_worse(it, &leader));
            racing = kept;
            lost.extend::<Vec<Settings>>(gone);
            if racing.len() == 1 {
                break;
            }
        }
        Ok(true)
    }

    fn ranked(&self, racing: &[Settings]) -> Vec<Settings> {
        let reference = self.reference(Length::Full);
        let mut all: Vec<Standing> = racing.iter().map(|it| self.standing(it, Length::Full, &reference)).collect();
        all.sort_by(Standing::order);
        all.into_iter().map(|it| it.settings).collect()
    }

    /// Told apart from the leader, or certainly no better by anything that counts; or certainly beyond what is allowed, and
    /// ordered behind the leader.
    fn is_worse(&self, settings: &Settings, leader: &Settings) -> bool {
        let is_beyond = |(index, allowed): (usize, &f64)| {
            let differences = self.differences(settings, &self.problem.start, Length::Full, Of::Within(index));
            confidence(&differences).is_some_and(|Interval(low, _)| low > *allowed)
        };
        if self.problem.allowed.iter().enumerate().any(is_beyond) {
            return true;
        }
        let differences = self.differences(settings, leader, Length::Full, Of::Objective);
        match confidence(&differences) {
            Some(Interval(low, _)) => low > 0.0 || low > -self.problem.indifferent / 2.0,
            None => differences.iter().any(Option::is_none),
        }
    }

    /// The best: of those that have at least as many seeds as half of the most that any but the start has.
    fn found(self) -> Found {
        let is_exhaustive = self.is_exhaustive();
        let full = self.order(Length::Full);
        let start = &self.problem.start;
        let most = full.iter().filter(|it| it.settings != *start).map(|it| it.seeds).max().unwrap_or(0);
        let is_known = |it: &&Standing| 2 * it.seeds >= most && it.score.is_some();
        let candidates: Vec<&Standing> = full.iter().filter(is_known).collect();
        // Means over different seeds put one first that may be told to be worse than another on those that both have.
        let mut left = candidates.iter();
        let mut best = left.next().map_or(start, |it| &it.settings);
        for one in left {
            let is_allowed = candidates.first().is_none_or(|first| one.excess <= first.excess);
            let differences = self.differences(best, &one.settings, Length::Full, Of::Objective);
            if is_allowed && confidence(&differences).is_some_and(|Interval(low, _)| low > 0.0) {
                best = &one.settings;
            }
        }
        let best = best.clone();
        let others = self.order(Length::Short);
        let only_short = others.into_iter().filter(|it| full.iter().all(|other| other.settings != it.settings));
        let tried = full.iter().cloned().chain(only_short).collect();
        Found { best, tried, spent: self.spent, refused: self.refused.len(), is_exhaustive }
    }
}

/// Which number of an outcome.
#[derive(Clone, Copy)]
enum Of {
    Objective,
    Within(usize),
}

/// The mean, if there are values and all are known.
fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The settings of a number, the last key changing fastest.
pub fn nth(mut index: usize, sizes: &[usize]) -> Settings {
    let mut settings = vec![0; sizes.len()];
    for (place, size) in settings.iter_mut().zip(sizes).rev() {
        *place = index % size;
        index /= size;
    }
    settings
}

/// Points that fill the space evenly, however many there are: Halton's sequence.
fn halton(index: u64, sizes: &[usize]) -> Settings {
    const BASES: [u64; super::axis::MOST_KEYS] = [2, 3, 5, 7, 11];
    let part = |base: u64| {
        let (mut rest, mut unit, mut sum) = (index, 1.0, 0.0);
        while rest > 0 {
            unit /= base as f64;
            sum += unit * (rest % base) as f64;
            rest /= base;
        }
        sum
    };
    sizes.iter().zip(BASES).map(|(size, base)| ((part(base) * *size as f64) as usize).min(size - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::axis::Over;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// A valley with noise that settings share in part, as arrivals are the same.
    struct Valley<'a> {
        sizes: &'a [usize],
        lowest: Settings,
        noise: f64,
        runs: Vec<Trial>,
        refuses: fn(&Settings) -> bool,
        fails: fn(&Settings) -> bool,
    }

    impl Valley<'_> {
        /// The truth.
        fn depth(&self, settings: &Settings) -> f64 {
            let axes = settings.iter().zip(&self.lowest).zip(self.sizes);
            axes.map(|((at, lowest), size)| {
                let distance = (*at as f64 - *lowest as f64) / *size as f64;
                distance * distance
            })
            .sum()
        }
    }

    fn noise(of: &(impl std::hash::Hash + ?Sized)) -> f64 {
        use std::hash::{DefaultHasher, Hasher};
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        (hasher.finish() % 2_000) as f64 / 1_000.0 - 1.0
    }

    impl Trials for Valley<'_> {
        type Error = Infallible;
        fn run(&mut self, trials: &[Trial]) -> Result<(), Infallible> {
            for trial in trials {
                assert!(!self.runs.contains(trial), "{trial:?} is run twice");
                assert!(self.is_possible(&trial.0) && trial.2 < MOST_SEEDS, "{trial:?}");
                self.runs.push(trial.clone());
            }
            Ok(())
        }
        fn outcome(&self, trial: &Trial) -> Outcome {
            let (settings, length, seed) = trial;
            let own = noise(&(settings, *length == Length::Short, seed)) * self.noise;
            let value = self.depth(settings) + 3.0 * noise(seed) * self.noise + own;
            let is_known = self.runs.contains(trial) && !(self.fails)(settings);
            // The number beside it is better where the objective is worse.
            Outcome { objective: is_known.then_some(value), within: vec![is_known.then_some(-value)] }
        }
        fn is_possible(&self, settings: &Settings) -> bool {
            !(self.refuses)(settings)
        }
    }

    fn axes(sizes: &[usize]) -> Vec<Axis> {
        let axis = |size: &usize| {
            let over: Over = format!("key=0..{}", size - 1).parse().expect("a range");
            let values: Vec<String> = (0..*size).map(|value| value.to_string()).collect();
            let list: Over = format!("key={}", values.join(",")).parse().unwrap_or(over);
            list.axis(sizes.len(), &0.into())
        };
        sizes.iter().map(axis).collect()
    }

    fn valley<'a>(sizes: &'a [usize], lowest: Settings, noise: f64) -> Valley<'a> {
        Valley { sizes, lowest, noise, runs: Vec::new(), refuses: |_| false, fails: |_| false }
    }

    fn problem<'a>(axes: &'a [Axis], short: Option<f64>, allowed: f64) -> Problem<'a> {
        let start = vec![0; axes.len()];
        Problem { axes, start, budget: 48.0, spent: 0.0, short, allowed: vec![allowed], indifferent: 0.02 }
    }

    fn found(problem: &Problem<'_>, valley: &mut Valley<'_>) -> Found {
        let (found, end) = search(problem, valley);
        assert!(end.is_none());
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn what_is_found_is_nearly_the_best(
            sizes in prop_oneof![
                prop::collection::vec(2..16_usize, 1..=2),
                prop::collection::vec(2..8_usize, 3..=5),
            ],
            places in prop::collection::vec(0.0..1.0_f64, 5),
            short in prop::option::of(0.2..0.5_f64),
            noise in 0.0..0.01_f64,
        ) {
            let lowest: Settings = sizes.iter().zip(&places).map(|(size, part)| (part * *size as f64) as usize).collect();
            let axes = axes(&sizes);
            let problem = problem(&axes, short, f64::MAX);
            let mut valley = valley(&sizes, lowest, noise);
            let found = found(&problem, &mut valley);
            prop_assert!(found.spent <= problem.budget + 1e-6);
            let cost = |trial: &Trial| if trial.1 == Length::Short { short.unwrap_or(1.0) } else { 1.0 };
            let spent: f64 = valley.runs.iter().map(cost).sum();
            prop_assert!((spent - found.spent).abs() < 1e-6, "{spent} {}", found.spent);
            let (start, best) = (valley.depth(&problem.start), valley.depth(&found.best));
            // With five keys, or without short runs, a budget of 48 does not find every lowest place.
            let most = if sizes.len() <= 2 { 0.03 } else { 0.3 * start + 0.05 };
            prop_assert!(best <= most + 2.0 * noise, "{:?} is {best}, the start {start}", found.best);
        }
    }

    #[test]
    fn settings_that_cannot_be_simulated_are_counted_and_those_without_a_number_come_last() {
        let sizes = [6, 6];
        let axes = axes(&sizes);
        let mut valley = valley(&sizes, vec![4, 4], 0.0);
        valley.refuses = |settings| settings[0] + settings[1] > 8;
        valley.fails = |settings| settings[0] == 4;
        let found = found(&problem(&axes, Some(0.25), f64::MAX), &mut valley);
        assert_eq!(found.refused, 3);
        assert_eq!(valley.depth(&found.best), valley.depth(&vec![3, 4]), "{:?}", found.best);
        assert!(found.tried.iter().filter(|it| it.settings[0] == 4).all(|it| it.score.is_none()));
    }

    #[test]
    fn a_start_that_does_not_finish_is_left() {
        let sizes = [6];
        let axes = axes(&sizes);
        let mut valley = valley(&sizes, vec![3], 0.0);
        valley.fails = |settings| settings[0] == 0;
        assert_eq!(found(&problem(&axes, None, f64::MAX), &mut valley).best, [3]);
    }

    #[test]
    fn a_start_that_finishes_on_some_seeds_only_hides_no_difference_between_others() {
        struct OnSome<'a>(Valley<'a>);
        impl Trials for OnSome<'_> {
            type Error = Infallible;
            fn run(&mut self, trials: &[Trial]) -> Result<(), Infallible> {
                self.0.run(trials)
            }
            fn outcome(&self, trial: &Trial) -> Outcome {
                let all = self.0.outcome(trial);
                let is_known = trial.0[0] > 0 || trial.2.is_multiple_of(3);
                // Seeds differ by far more than settings do.
                let objective = all.objective.filter(|_| is_known).map(|it| it + 10.0 * trial.2 as f64);
                Outcome { objective, ..all }
            }
            fn is_possible(&self, _: &Settings) -> bool {
                true
            }
        }
        let sizes = [9];
        let axes = axes(&sizes);
        for lowest in 1..9 {
            let mut trials = OnSome(valley(&sizes, vec![lowest], 0.001));
            let found = search(&problem(&axes, None, f64::MAX), &mut trials).0;
            assert_eq!(found.best, [lowest]);
            let of_best = found.tried.iter().find(|it| it.settings == [lowest]).expect("it was tried");
            assert!(of_best.seeds > 1 && of_best.difference.is_none(), "{of_best:?}");
        }
    }

    #[test]
    fn what_does_not_finish_a_number_that_may_not_get_worse_is_excluded() {
        struct Unfinished<'a>(Valley<'a>);
        impl Trials for Unfinished<'_> {
            type Error = Infallible;
            fn run(&mut self, trials: &[Trial]) -> Result<(), Infallible> {
                self.0.run(trials)
            }
            fn outcome(&self, trial: &Trial) -> Outcome {
                let all = self.0.outcome(trial);
                if trial.0[0] > 4 { Outcome { within: vec![None], ..all } } else { all }
            }
            fn is_possible(&self, _: &Settings) -> bool {
                true
            }
        }
        let sizes = [11];
        let axes = axes(&sizes);
        let mut trials = Unfinished(valley(&sizes, vec![10], 0.0));
        assert_eq!(search(&problem(&axes, None, f64::MAX), &mut trials).0.best, [4]);
    }

    #[test]
    fn numbers_that_may_not_get_worse_bound_the_search() {
        let sizes = [11];
        let axes = axes(&sizes);
        let mut valley = valley(&sizes, vec![10], 0.0);
        // The number beside it is worse by what the objective is better.
        let best = |valley: &mut Valley<'_>, allowed| found(&problem(&axes, None, allowed), valley).best;
        assert_eq!(best(&mut valley, f64::MAX), [10]);
        valley.runs.clear();
        let allowed = valley.depth(&vec![0]) - valley.depth(&vec![3]) + 1e-9;
        assert_eq!(best(&mut valley, allowed), [3]);
        valley.runs.clear();
        assert_eq!(best(&mut valley, 0.0), [0], "nothing is allowed");
    }

    #[test]
    fn an_interrupted_search_says_what_it_has() {
        struct Ends<'a>(Valley<'a>, usize);
        impl Trials for Ends<'_> {
            type Error = ();
            fn run(&mut self, trials: &[Trial]) -> Result<(), ()> {
                self.1 = self.1.checked_sub(1).ok_or(())?;
                self.0.run(trials).map_err(drop)
            }
            fn outcome(&self, trial: &Trial) -> Outcome {
                self.0.outcome(trial)
            }
            fn is_possible(&self, settings: &Settings) -> bool {
                self.0.is_possible(settings)
            }
        }
        let sizes = [8, 8];
        let axes = axes(&sizes);
        for batches in 0..8 {
            let mut ends = Ends(valley(&sizes, vec![5, 5], 0.001), batches);
            let (found, end) = search(&problem(&axes, Some(0.25), f64::MAX), &mut ends);
            let is_whole = end.is_none();
            assert!(is_whole || ends.1 == 0);
            let cost = |trial: &Trial| if trial.1 == Length::Short { 0.25 } else { 1.0 };
            assert_eq!(found.spent, ends.0.runs.iter().map(cost).sum::<f64>(), "what did not run costs nothing");
            assert!(found.tried.iter().all(|it| it.score.is_some()), "{:?}", found.tried);
            assert!(found.best == [0, 0] || ends.0.depth(&found.best) < ends.0.depth(&vec![0, 0]), "{batches}");
        }
    }

    #[test]
    fn points_that_fill_a_space_are_in_it() {
        let sizes = [3, 16, 5, 2, 7];
        let points: BTreeSet<Settings> = (1..200).map(|index| halton(index, &sizes)).collect();
        assert!(points.len() > 150);
        assert!(points.iter().all(|point| point.iter().zip(sizes).all(|(place, size)| *place < size)));
        let all: BTreeSet<Settings> = (0..30).map(|index| nth(index, &[5, 6])).collect();
        assert_eq!(all.len(), 30);
    }
}
