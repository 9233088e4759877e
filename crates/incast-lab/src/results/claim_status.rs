//! The rules by which a claim gets its status.
//!
//! The *effect* is how far the published value is from where nothing was found: from 1 for a ratio, in logarithms. Our
//! intervals are 95%, over seeds, paired where two schemes are compared, and in logarithms for times and ratios. In this
//! order:
//! 1. *not reproduced*: the interval lies wholly on the other side of 1; or it contains 1, and its half-width is at most
//!    15% of the effect, so that an effect of the published size would have been found.
//! 2. *inconclusive*: the interval contains 1 otherwise, or its half-width exceeds the effect, or there is none.
//! 3. *reproduced*: our effect is within 15% of the published one, and the half-width at most 15% of it.
//! 4. *same direction*: the rest.
//!
//! A ratio within 5% of 1 claims equality: reproduced if the whole interval is within 15% of 1, inconclusive if a part
//! is, else not reproduced. A bound is reproduced if the whole interval keeps it, inconclusive if a part does; a range
//! around 1 likewise. Another range is one claim, about its nearest number. A number that is neither ratio nor bound has
//! no such point: it is reproduced within 15% if the half-width is at most 15%, inconclusive if the interval contains it
//! otherwise or is wider than the number, and the same direction if the schemes that were published with this metric stand
//! in the published order, or a curve rises and falls where the published one does.

use super::{
    claim_target::{Relation, Target, is_ratio, measured},
    row::Row,
};
use crate::metrics::statistics::Interval;
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
    pub const ALL: [Self; 4] = [Self::Reproduced, Self::SameDirection, Self::Inconclusive, Self::NotReproduced];
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
    let Some(interval) = interval else {
        return (Status::Inconclusive, "a single seed has no interval".into());
    };
    let is_bound = matches!(target.relation, Relation::AtMost | Relation::AtLeast);
    let nearest = target.nearest(value);
    let is_around_one = target.relation == Relation::Within && (target.value - 1.0) * (target.end - 1.0) <= 0.0;
    let (status, why) = if is_bound || is_ratio(target.claim) && is_around_one {
        let what = if is_bound { "the bound" } else { "the range" };
        let wrong = if is_bound { "beyond the bound" } else { "outside the range" };
        by_part(
            interval,
            &|number| target.holds(number),
            [&format!("{what} holds"), &format!("it is on both sides of {what}"), wrong],
        )
    } else if !is_ratio(target.claim) || nearest <= 0.0 {
        number_alone(target, value, interval, all, rows)
    } else if libm::log(nearest).abs() <= libm::log(EQUAL) {
        let is_close = |number: f64| (1.0 / CLOSE..=CLOSE).contains(&number);
        by_part(
            interval,
            &is_close,
            ["equal within 15%", "only a part of it is within 15% of 1", "not within 15% of 1"],
        )
    } else {
        effect(nearest, value, interval)
    };
    (status, format!("{:+.0}%: {why}", deviation(target, value) * 100.0))
}

/// Ratios this close to 1 claim equality.
const EQUAL: f64 = 1.05;
/// Ratios this close to 1 are equal to it.
const CLOSE: f64 = 1.0 + TOLERANCE;

/// The status of a claim that all of the interval keeps, a part of it, or none.
fn by_part(interval: Interval, keeps: &dyn Fn(f64) -> bool, why: [&str; 3]) -> (Status, String) {
    let ends = [interval.0, interval.1].map(keeps);
    // A range may lie inside the interval.
    let middle = keeps(interval.0.max(0.0).midpoint(interval.1)) || interval.contains(1.0) && keeps(1.0);
    let (status, why) = match ends {
        [true, true] => (Status::Reproduced, why[0]),
        [false, false] if !middle => (Status::NotReproduced, why[2]),
        _ => (Status::Inconclusive, why[1]),
    };
    (status, why.into())
}

/// The status of a ratio that says more, or less.
fn effect(published: f64, value: f64, interval: Interval) -> (Status, String) {
    let towards = libm::log(published).signum();
    let on_scale = |ratio: f64| towards * libm::log(ratio.max(f64::MIN_POSITIVE));
    let effect = on_scale(published);
    let (a, b) = (on_scale(interval.0), on_scale(interval.1));
    let (low, high) = (a.min(b), a.max(b));
    let half = (high - low) / 2.0;
    let has_none = low <= 0.0 && high >= 0.0;
    let said = |status, why: &str| (status, why.to_owned());
    if high < 0.0 {
        said(Status::NotReproduced, "the other side of 1")
    } else if has_none && half <= TOLERANCE * effect {
        said(Status::NotReproduced, "no difference, and one as published would have been seen")
    } else if has_none {
        said(Status::Inconclusive, "too few seeds to say that there is a difference")
    } else if half > effect {
        said(Status::Inconclusive, "too few seeds: the interval is wider than what was published")
    } else if (on_scale(value) - effect).abs() <= TOLERANCE * effect && half <= TOLERANCE * effect {
        said(Status::Reproduced, "within 15% of the published effect")
    } else {
        said(Status::SameDirection, "the same side of 1")
    }
}

/// The status of a number that is compared with nothing.
fn number_alone(
    target: &Target<'_>,
    value: f64,
    interval: Interval,
    all: &[Target<'_>],
    rows: &[Row],
) -> (Status, String) {
    let part = if target.is_logarithmic() && interval.0 > 0.0 {
        libm::log(interval.1 / interval.0) / 2.0
    } else {
        half_width(interval) / target.nearest(value).abs()
    };
    let is_met = interval.0 <= target.end && target.value <= interval.1;
    if deviation(target, value).abs() <= TOLERANCE && (part <= TOLERANCE || part.is_nan()) {
        return (Status::Reproduced, "within 15%".into());
    }
    if is_met || part > 1.0 {
        return (Status::Inconclusive, "too few seeds to tell".into());
    }
    match ordering(target, value, all, rows) {
        Some((true, with)) => (Status::SameDirection, format!("{with} as published")),
        Some((false, with)) => (Status::NotReproduced, format!("{with} not as published")),
        None => (Status::NotReproduced, "another number".into()),
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
fn ordering(target: &Target<'_>, value: f64, all: &[Target<'_>], rows: &[Row]) -> Option<(bool, &'static str)> {
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
        let along =
            if other.claim.scheme == target.claim.scheme { "the curve runs" } else { "the schemes are ordered" };
        // What was not measured has no place in an order.
        let Some(theirs) = measured(other, rows).0 else { continue };
        if (value - theirs) * (target.value - other.value) <= 0.0 {
            return Some((false, along));
        }
        order = Some((true, along));
    }
    order
}
