//! The rules by which a claim gets its status.

use super::{
    claim_target::{Relation, Target, is_ratio, measured},
    row::Row,
};
use crate::{metrics::statistics::Interval, text::number};
use serde::Serialize;
use std::fmt::{self, Write};

/// How far off still counts as the published value.
const TOLERANCE: f64 = 0.15;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// Within 15% of the value, or inside our confidence interval.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The ordering or sign of the effect holds.
    #[serde(rename = "same direction")]
    SameDirection,
    /// Neither.
    #[serde(rename = "not reproduced")]
    NotReproduced,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::NotReproduced => "not reproduced",
        })
    }
}

/// The status, and why; what our confidence interval leaves open is said, but changes no status.
pub fn status(
    target: &Target<'_>,
    value: f64,
    interval: Option<Interval>,
    all: &[Target<'_>],
    rows: &[Row],
) -> (Status, String) {
    let (status, mut why) = if target.claim.ours {
        by_our_bound(target, value, interval)
    } else {
        by_the_rules(target, value, interval, all, rows)
    };
    if let Some(interval) = interval {
        // Of seeds that all measure the same, the interval is a point, and nothing is open.
        let includes = |limit: f64| interval.0 < limit && limit < interval.1;
        let is_bound = target.relation != Relation::Equal;
        let of_the_bound = (is_bound && includes(target.value)).then_some("the bound");
        let directed = status == Status::SameDirection && is_ratio(target.claim);
        let of_one = (directed && includes(1.0)).then_some("1");
        let open: Vec<&str> = of_the_bound.into_iter().chain(of_one).collect();
        if !open.is_empty() {
            let (low, high) = (number(interval.0), number(interval.1));
            let _ = write!(why, "; our interval, {low} to {high}, includes {}", open.join(" and "));
        }
    }
    (status, why)
}

/// What became of a bound that is ours. No tolerance: we chose it, and might have chosen it wider. A ratio is compared
/// with it all over our interval, and is in the same direction where it is on the side of 1 that the bound names, if it
/// names one.
fn by_our_bound(target: &Target<'_>, value: f64, interval: Option<Interval>) -> (Status, String) {
    let bound = target.value;
    let most = target.relation == Relation::AtMost;
    let keeps = |value: f64| if most { value <= bound } else { value >= bound };
    let is_ratio = is_ratio(target.claim);
    let surely = !is_ratio || interval.is_none_or(|interval| keeps(interval.0) && keeps(interval.1));
    let percent = format!("{:+.1}%", (value - bound) / bound.abs() * 100.0);
    let so_far = match (keeps(value), surely) {
        (true, true) => return (Status::Reproduced, "the bound holds".into()),
        (true, false) => "the bound holds, but not all over our interval".to_owned(),
        (false, _) => percent,
    };
    let names_a_side = is_ratio && if most { bound <= 1.0 } else { bound >= 1.0 };
    if !names_a_side {
        return (Status::NotReproduced, so_far);
    }
    if if most { value < 1.0 } else { value > 1.0 } {
        return (Status::SameDirection, format!("{so_far}; the ratio is on the same side of 1"));
    }
    let side = if value == 1.0 { "the ratio is 1" } else { "the ratio is on the other side of 1" };
    (Status::NotReproduced, format!("{so_far}; {side}"))
}

fn by_the_rules(
    target: &Target<'_>,
    value: f64,
    interval: Option<Interval>,
    all: &[Target<'_>],
    rows: &[Row],
) -> (Status, String) {
    let published = target.value;
    let deviation = if published == 0.0 { f64::INFINITY } else { (value - published) / published.abs() };
    let percent = format!("{:+.0}%", deviation * 100.0);
    let holds = match target.relation {
        Relation::Equal => value == published,
        Relation::AtMost => value <= published,
        Relation::AtLeast => value >= published,
    };
    let is_bound = target.relation != Relation::Equal;
    if holds {
        return (Status::Reproduced, if is_bound { "the bound holds" } else { "equal" }.into());
    }
    // A wide interval around a value far beyond a bound is no evidence for the bound.
    if !is_bound && interval.is_some_and(|interval| interval.contains(published)) {
        return (Status::Reproduced, format!("{percent}, inside our confidence interval"));
    }
    // A ratio has a sign of its own, which comes before the band: "at least 1.126 times" is not reproduced by 0.97.
    // Where other ratios lie does not mend a wrong one. A bound of 1 is nothing but the sign.
    let has_sign = is_ratio(target.claim) && (is_bound || published != 1.0);
    if has_sign && (value - 1.0) * (published - 1.0) <= 0.0 {
        let side = if value == 1.0 { "the ratio is 1" } else { "the ratio is on the other side of 1" };
        return (Status::NotReproduced, format!("{percent}; {side}"));
    }
    if deviation.abs() <= TOLERANCE {
        return (Status::Reproduced, format!("{percent}, within 15%"));
    }
    if has_sign {
        return (Status::SameDirection, format!("{percent}; the ratio is on the same side of 1"));
    }
    match ordering(target, value, all, rows) {
        Some((true, with)) => (Status::SameDirection, format!("{percent}; {with} as published")),
        Some((false, with)) => (Status::NotReproduced, format!("{percent}; {with} not as published")),
        None => (Status::NotReproduced, percent),
    }
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
