//! The rules by which a claim gets its status.
//!
//! In this order:
//! 1. *not reproduced*: what we measured lies on the other side: of 1 for a ratio that says more or less, otherwise of
//!    the bound.
//! 2. *inconclusive*: our confidence interval contains the published number, and also the opposite of the claim, or its
//!    half-width exceeds the published effect (the distance of a ratio from 1; otherwise the number itself).
//! 3. *reproduced*: within 15% of the number, or the number lies in an interval whose half-width is at most 15% of it.
//!    A bound holds, without tolerance. A range is one claim: inside, or within 15% of its nearer end.
//! 4. *same direction*: the rest on the right side. For numbers that are no ratios: the schemes that were published
//!    with this metric stand in the published order, or a curve rises and falls where the published one does.
//! 5. *not reproduced*: what is left.

use super::{
    claim_target::{Relation, Target, is_ratio, measured},
    row::Row,
};
use crate::{metrics::statistics::Interval, text::number};
use serde::Serialize;
use std::fmt;

/// How far off still counts as the published value, and how wide an interval may be that speaks for it.
const TOLERANCE: f64 = 0.15;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// Our number is the published one.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The ordering or sign of the effect holds.
    #[serde(rename = "same direction")]
    SameDirection,
    /// Our seeds do not tell.
    #[serde(rename = "inconclusive")]
    Inconclusive,
    /// Neither.
    #[serde(rename = "not reproduced")]
    NotReproduced,
}

impl Status {
    /// All, from the best one on.
    pub const ALL: [Self; 4] =
        [Self::Reproduced, Self::SameDirection, Self::Inconclusive, Self::NotReproduced];
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::Inconclusive => "inconclusive",
            Self::NotReproduced => "not reproduced",
        })
    }
}

/// The status, and why.
pub fn status(
    target: &Target<'_>,
    value: f64,
    interval: Option<Interval>,
    all: &[Target<'_>],
    rows: &[Row],
) -> (Status, String) {
    let percent = format!("{:+.0}%", deviation(target, value) * 100.0);
    if let Some(side) = other_side(target, value) {
        return (Status::NotReproduced, format!("{percent}; {side}"));
    }
    if let Some(why) = interval.and_then(|interval| leaves_open(target, interval)) {
        return (Status::Inconclusive, why);
    }
    let is_bound = matches!(target.relation, Relation::AtMost | Relation::AtLeast);
    if target.holds(value) {
        let why = match target.relation {
            Relation::Equal => "equal",
            Relation::Within => "inside the range",
            Relation::AtMost | Relation::AtLeast => "the bound holds",
        };
        return (Status::Reproduced, why.into());
    }
    if !is_bound && deviation(target, value).abs() <= TOLERANCE {
        return (Status::Reproduced, format!("{percent}, within 15%"));
    }
    let narrow = |interval: Interval| {
        interval.contains(target.value) && half_width(interval) <= TOLERANCE * target.value.abs()
    };
    if target.relation == Relation::Equal && interval.is_some_and(narrow) {
        return (Status::Reproduced, format!("{percent}, inside our confidence interval"));
    }
    if names_a_side(target) {
        return (Status::SameDirection, format!("{percent}; the ratio is on the same side of 1"));
    }
    match ordering(target, value, all, rows) {
        Some((true, with)) => (Status::SameDirection, format!("{percent}; {with} as published")),
        Some((false, with)) => (Status::NotReproduced, format!("{percent}; {with} not as published")),
        None => (Status::NotReproduced, percent),
    }
}

/// How far a value is from the published one, or from the nearer end of a range, as a part of that.
fn deviation(target: &Target<'_>, value: f64) -> f64 {
    let nearest = target.nearest(value);
    if value == nearest {
        0.0
    } else if nearest == 0.0 {
        f64::INFINITY.copysign(value)
    } else {
        (value - nearest) / nearest.abs()
    }
}

fn half_width(interval: Interval) -> f64 {
    (interval.1 - interval.0) / 2.0
}

/// The claim is a ratio that says more, or less.
fn names_a_side(target: &Target<'_>) -> bool {
    is_ratio(target.claim)
        && match target.relation {
            Relation::Equal => target.value != 1.0,
            Relation::AtMost => target.value < 1.0,
            Relation::AtLeast => target.value > 1.0,
            Relation::Within => (target.value - 1.0) * (target.end - 1.0) > 0.0,
        }
}

/// What is wrong with a value on the other side of what the claim says; `None` on the right side.
fn other_side(target: &Target<'_>, value: f64) -> Option<&'static str> {
    if names_a_side(target) {
        let is_right = (value - 1.0) * (target.value - 1.0) > 0.0;
        let side = if value == 1.0 { "the ratio is 1" } else { "the ratio is on the other side of 1" };
        return (!is_right).then_some(side);
    }
    match target.relation {
        Relation::Equal => None,
        Relation::Within if is_ratio(target.claim) => {
            (!target.holds(value)).then_some("the ratio is outside the range")
        }
        Relation::Within => None,
        Relation::AtMost | Relation::AtLeast => (!target.holds(value)).then_some("beyond the bound"),
    }
}

/// What our interval leaves open, if that is whether the claim holds at all.
fn leaves_open(target: &Target<'_>, interval: Interval) -> Option<String> {
    let Interval(low, high) = interval;
    let describe = |what: &str| format!("our interval, {} to {}, {what}", number(low), number(high));
    let contains = match target.relation {
        Relation::Equal => interval.contains(target.value),
        Relation::AtMost => low <= target.value,
        Relation::AtLeast => high >= target.value,
        Relation::Within => low <= target.end && high >= target.value,
    };
    // A number that is no ratio has the sign of what was published as its only side.
    let opposes = |value: f64| {
        other_side(target, value).is_some() || !is_ratio(target.claim) && target.value > 0.0 && value <= 0.0
    };
    if !contains {
        return None;
    }
    if opposes(low) || opposes(high) {
        return Some(describe("contains the published number and the opposite of the claim"));
    }
    let effect = if names_a_side(target) {
        (target.value - 1.0).abs().min((target.end - 1.0).abs())
    } else if is_ratio(target.claim) || target.relation != Relation::Equal {
        return None;
    } else {
        target.value.abs()
    };
    (half_width(interval) > effect)
        .then(|| describe("contains the published number and is wider than its effect"))
}

/// Every scheme that was measured meets the bound: it says nothing about this one.
pub fn is_trivial(target: &Target<'_>, rows: &[Row]) -> bool {
    if !matches!(target.relation, Relation::AtMost | Relation::AtLeast) {
        return false;
    }
    let bases = target.claim.ratio_to.as_ref().map_or(&[][..], |bases| bases.names());
    let mut schemes: Vec<&String> = Vec::new();
    for row in rows.iter().filter(|row| row.grid == *target.grid) {
        if !schemes.contains(&&row.scheme) && !bases.contains(&row.scheme) {
            schemes.push(&row.scheme);
        }
    }
    let values: Vec<f64> = schemes
        .iter()
        .filter_map(|scheme| {
            let claim = crate::scenario::Claim { scheme: (*scheme).clone(), ..target.claim.clone() };
            measured(&Target { claim: &claim, ..*target }, rows).0
        })
        .collect();
    values.len() > 1 && values.iter().all(|value| target.holds(*value))
}

/// Whether the value stands to the other published values of the same metric as it does in print: to other schemes at
/// the same grid point, or along the curve to other grid points. `None` if there is nothing to compare with.
fn ordering(
    target: &Target<'_>,
    value: f64,
    all: &[Target<'_>],
    rows: &[Row],
) -> Option<(bool, &'static str)> {
    let comparable = |other: &&Target<'_>| {
        let (a, b) = (target.claim, other.claim);
        let same_point = other.grid == target.grid;
        let same_scheme = a.scheme == b.scheme;
        a.metric == b.metric
            && a.class == b.class
            && a.ratio_to == b.ratio_to
            && a.ratio_at == b.ratio_at
            && a.ratio_to_metric == b.ratio_to_metric
            && other.relation == target.relation
            && same_point != same_scheme
            && other.value != target.value
    };
    let mut order = None;
    for other in all.iter().filter(comparable) {
        let along = if other.claim.scheme == target.claim.scheme {
            "the curve runs"
        } else {
            "the schemes are ordered"
        };
        let holds = measured(other, rows)
            .0
            .is_some_and(|theirs| (value - theirs) * (target.value - other.value) > 0.0);
        if !holds {
            return Some((false, along));
        }
        order = Some((true, along));
    }
    order
}
