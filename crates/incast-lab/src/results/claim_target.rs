//! Which numbers a claim is about, and what we measured of them.

use super::row::Row;
use crate::{
    metrics::{
        self, Metric,
        statistics::{Interval, confidence_around},
    },
    scenario::Claim,
};
use serde_json::{Map, Value};

/// A published number at one grid point.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The grid point.
    pub grid: &'a Map<String, Value>,
    /// The scheme that the number is a ratio to.
    pub base: Option<&'a str>,
    /// How the number is to be compared.
    pub relation: Relation,
    /// The number; of a range its lower end.
    pub value: f64,
    /// The number; of a range its upper end.
    pub end: f64,
}

impl Target<'_> {
    /// A number is the published one, keeps the bound, or lies in the range.
    pub fn holds(&self, number: f64) -> bool {
        match self.relation {
            Relation::Equal => number == self.value,
            Relation::AtMost => number <= self.value,
            Relation::AtLeast => number >= self.value,
            Relation::Within => self.value <= number && number <= self.end,
        }
    }

    /// What is compared is a ratio or a time: its intervals are in logarithms.
    pub fn is_logarithmic(&self) -> bool {
        is_ratio(self.claim) || metrics::find(&self.claim.metric).is_some_and(Metric::is_logarithmic)
    }

    /// The published number that is nearest to one of ours.
    pub fn nearest(&self, number: f64) -> f64 {
        if self.relation == Relation::Within { number.clamp(self.value, self.end) } else { self.value }
    }
}

/// How a published number is to be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// The measured number should equal it.
    Equal,
    /// It is an upper bound.
    AtMost,
    /// It is a lower bound.
    AtLeast,
    /// There are two, the ends of a range.
    Within,
}

/// Of the targets of one claim that are alternatives, only the one that reaches most stays: of claims of "up to" the
/// grid points are, and of ratios to one of several schemes these schemes.
pub fn furthest<'a>(targets: Vec<Target<'a>>, rows: &[Row]) -> Vec<Target<'a>> {
    let mut kept: Vec<(Target<'a>, Option<f64>)> = Vec::new();
    for target in targets {
        let claim = target.claim;
        let several = claim.ratio_to.as_ref().is_some_and(|bases| bases.names().len() > 1);
        let reached = (claim.up_to || several).then(|| measured(&target, rows).0).flatten();
        let alternative =
            |last: &Target<'_>| std::ptr::eq(last.claim, claim) && (claim.up_to || several && last.grid == target.grid);
        match kept.last_mut().filter(|(last, _)| alternative(last)) {
            Some(best) if reached > best.1 => *best = (target, reached),
            Some(_) => {}
            None => kept.push((target, reached)),
        }
    }
    kept.into_iter().map(|(target, _)| target).collect()
}

/// The numbers that a claim names for a grid point.
pub fn targets<'a>(claim: &'a Claim, grid: &'a Map<String, Value>) -> Vec<Target<'a>> {
    if !is_at(&claim.grid, grid) {
        return Vec::new();
    }
    let target = |relation, value| Target { claim, grid, base: None, relation, value, end: value };
    let mut all = Vec::new();
    all.extend(claim.value.map(|value| target(Relation::Equal, value)));
    all.extend(claim.at_most.map(|value| target(Relation::AtMost, value)));
    all.extend(claim.at_least.map(|value| target(Relation::AtLeast, value)));
    all.extend(claim.range.map(|(value, end)| Target { end, ..target(Relation::Within, value) }));
    if let Some(x) = axis(claim, grid) {
        let points = claim.points.iter().flatten();
        all.extend(
            points
                .filter(|(at, _)| (at - x).abs() <= 1e-9 * x.abs().max(1.0))
                .map(|(_, value)| target(Relation::Equal, *value)),
        );
    }
    match &claim.ratio_to {
        None => all,
        Some(bases) => {
            let to_each =
                |target: Target<'a>| bases.names().iter().map(move |base| Target { base: Some(base), ..target });
            all.into_iter().flat_map(to_each).collect()
        }
    }
}

/// The grid point has the values that a claim names.
fn is_at(named: &toml::Table, grid: &Map<String, Value>) -> bool {
    named.iter().all(|(path, wanted)| {
        let wanted = serde_json::to_value(wanted).unwrap_or_default();
        grid.get(path).is_some_and(|found| same(found, &wanted))
    })
}

/// The grid point from which a claim measures growth: that of the target but for the axes that `ratio_at` names.
fn growth_from(target: &Target<'_>, grid: &Map<String, Value>) -> bool {
    let at = &target.claim.ratio_at;
    is_at(at, grid)
        && target
            .grid
            .iter()
            .filter(|(path, _)| !at.contains_key(path.as_str()))
            .all(|(path, value)| grid.get(path).is_some_and(|found| same(found, value)))
}

/// All schemes that a target compares were run there. Where some were not, by `--only` or because their runs failed, there
/// is nothing to be said about the claim.
pub fn was_run(target: &Target<'_>, rows: &[Row]) -> bool {
    let claim = target.claim;
    let bases = claim.ratio_to.as_ref().map_or(&[][..], |bases| bases.names());
    let is_there = |scheme: &str| {
        let mut own = rows.iter().filter(|row| row.is_pooled() && row.scheme == scheme);
        own.clone().any(|row| row.grid == *target.grid)
            && (claim.ratio_at.is_empty() || own.any(|row| growth_from(target, &row.grid)))
    };
    is_there(&claim.scheme) && bases.iter().all(|base| is_there(base))
}

/// The grid's value along the axis of a curve: the one number that the claim does not fix.
fn axis(claim: &Claim, grid: &Map<String, Value>) -> Option<f64> {
    grid.iter().filter(|(path, _)| !claim.grid.contains_key(path.as_str())).find_map(|(_, value)| value.as_f64())
}

fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}

/// What we measured for a target, and its interval over seeds: the pooled value, or the mean of the runs' where the pooled
/// one would be the largest of them.
pub fn measured(target: &Target<'_>, rows: &[Row]) -> (Option<f64>, Option<Interval>) {
    let claim = target.claim;
    let find = |scheme: &str| -> Vec<&Row> {
        rows.iter().filter(|row| row.scheme == scheme && row.class == claim.class && row.grid == *target.grid).collect()
    };
    let value_of = |row: &Row, metric: &str| row.per_run(metrics::find(metric)?);
    let value = |row: &Row| value_of(row, &claim.metric);
    let ours = find(&claim.scheme);
    let base = target.base.map(find);
    let from: Option<Vec<&Row>> = (!claim.ratio_at.is_empty()).then(|| {
        rows.iter()
            .filter(|row| row.scheme == claim.scheme && row.class == claim.class && growth_from(target, &row.grid))
            .collect()
    });
    // Pair rows of the two schemes, or grid points, by seed, the pooled one with the pooled one.
    let paired = |others: &[&Row], row: &Row| value(others.iter().find(|other| other.seed == row.seed)?);
    let of = |row: &Row| match (&base, &from) {
        (Some(base), _) => {
            let (own, other) = (value(row)?, paired(base, row)?);
            (own != 0.0).then_some(other / own)
        }
        (None, Some(from)) => {
            let (own, other) = (value(row)?, paired(from, row)?);
            (other != 0.0).then_some(own / other)
        }
        (None, None) => match &claim.ratio_to_metric {
            Some(other) => {
                let other = value_of(row, other)?;
                if other == 0.0 { None } else { Some(value(row)? / other) }
            }
            None => value(row),
        },
    };
    let by_seed: Vec<Option<f64>> = ours.iter().filter(|row| !row.is_pooled()).map(|row| of(row)).collect();
    let whole = if metrics::find(&claim.metric).is_some_and(Metric::is_largest) {
        let all: Option<Vec<f64>> = by_seed.iter().copied().collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / all.len() as f64)
    } else {
        ours.iter().find(|row| row.is_pooled()).and_then(|row| of(row))
    };
    let interval = whole.and_then(|whole| confidence_around(whole, &by_seed, target.is_logarithmic()));
    (whole, interval)
}

/// A scheme of the claim whose runs were too short for a steady state.
pub fn too_short<'a>(target: &Target<'_>, rows: &'a [Row]) -> Option<&'a str> {
    let claim = target.claim;
    let concerns = |row: &&Row| {
        row.is_pooled()
            && row.class == claim.class
            && (row.scheme == claim.scheme || target.base == Some(row.scheme.as_str()))
            && (row.grid == *target.grid || !claim.ratio_at.is_empty() && growth_from(target, &row.grid))
    };
    rows.iter().filter(concerns).find(|row| row.is_too_short()).map(|row| row.scheme.as_str())
}

/// The number compares two measurements.
pub fn is_ratio(claim: &Claim) -> bool {
    claim.ratio_to.is_some() || claim.ratio_to_metric.is_some() || !claim.ratio_at.is_empty()
}
