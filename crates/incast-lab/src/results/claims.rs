//! Published numbers beside ours, with a status by fixed rules.
//!
//! - *reproduced*: within 15% of the published value, or the value lies inside our confidence interval. A bound
//!   (`at_most`, `at_least`) is reproduced when it holds, or is missed by no more than 15%. A ratio on the other side
//!   of 1 than the published one is not within its 15%, and a ratio's bound of 1 holds or does not.
//!   A bound of ours (`ours`), where the paper prints no number, holds or does not; that of a ratio holds only if it does
//!   all over our confidence interval.
//! - *same direction*: the effect has the published sign (a ratio is on the same side of 1), or the schemes that were
//!   published with this metric stand in the published order, or a curve rises and falls where the published one does.
//! - *not reproduced*: the rest, and whatever could not be measured because flows did not finish.

use super::{
    statistics::{Interval, confidence},
    summary::{Row, is_sum},
    table::number,
};
use crate::scenario::Claim;
use serde::Serialize;
use serde_json::{Map, Value};
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

/// One claim at one grid point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// What is claimed.
    pub claim: String,
    /// Which of the numbers of a row the claim is about.
    pub metric: String,
    /// Of which class.
    pub class: String,
    /// Of which scheme.
    pub scheme: String,
    /// The number is a ratio to another scheme or grid point.
    pub is_ratio: bool,
    /// The grid point.
    pub grid: Map<String, Value>,
    /// The published value or bound.
    pub published: f64,
    /// `""`, `"at most"`, `"at least"` or `"up to"`.
    pub relation: &'static str,
    /// The paper prints no number: the bound is ours.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    /// What we measured.
    pub measured: Option<f64>,
    /// Our confidence interval over seeds.
    pub interval: Option<Interval>,
    /// By the rules.
    pub status: Status,
    /// One line why.
    pub why: String,
    /// Where it is printed, or how it was read off a figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Judgement {
    /// The published number, given as text, with what it is: `at least 0.85 (ours)`.
    pub fn described(&self, number: &str) -> String {
        let ours = if self.ours { " (ours)" } else { "" };
        format!("{} {number}{ours}", self.relation).trim().to_owned()
    }
}

/// A published number at one grid point.
#[derive(Clone, Copy)]
struct Target<'a> {
    claim: &'a Claim,
    grid: &'a Map<String, Value>,
    /// The scheme that the number is a ratio to.
    base: Option<&'a str>,
    relation: Relation,
    value: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Relation {
    Equal,
    AtMost,
    AtLeast,
}

/// Judges every claim at every grid point that it is about.
pub fn judge(claims: &[Claim], rows: &[Row]) -> Vec<Judgement> {
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for row in rows {
        if !points.contains(&&row.grid) {
            points.push(&row.grid);
        }
    }
    let targets: Vec<Target<'_>> =
        claims.iter().flat_map(|claim| points.iter().flat_map(move |grid| targets(claim, grid))).collect();
    let targets = furthest(targets, rows);
    targets.iter().map(|target| judge_one(target, &targets, rows)).collect()
}

/// Of the targets of one claim that are alternatives, only the one that reaches most stays: of claims of "up to" the
/// grid points are, and of ratios to one of several schemes these schemes.
fn furthest<'a>(targets: Vec<Target<'a>>, rows: &[Row]) -> Vec<Target<'a>> {
    let mut kept: Vec<(Target<'a>, Option<f64>)> = Vec::new();
    for target in targets {
        let claim = target.claim;
        let several = claim.ratio_to.as_ref().is_some_and(|bases| bases.names().len() > 1);
        let reached = (claim.up_to || several).then(|| measured(&target, rows).0).flatten();
        let alternative = |last: &Target<'_>| {
            std::ptr::eq(last.claim, claim) && (claim.up_to || several && last.grid == target.grid)
        };
        match kept.last_mut().filter(|(last, _)| alternative(last)) {
            Some(best) if reached > best.1 => *best = (target, reached),
            Some(_) => {}
            None => kept.push((target, reached)),
        }
    }
    kept.into_iter().map(|(target, _)| target).collect()
}

/// The numbers that a claim names for a grid point.
fn targets<'a>(claim: &'a Claim, grid: &'a Map<String, Value>) -> Vec<Target<'a>> {
    if !is_at(&claim.grid, grid) {
        return Vec::new();
    }
    let target = |relation, value| Target { claim, grid, base: None, relation, value };
    let mut all = Vec::new();
    all.extend(claim.value.map(|value| target(Relation::Equal, value)));
    all.extend(claim.at_most.map(|value| target(Relation::AtMost, value)));
    all.extend(claim.at_least.map(|value| target(Relation::AtLeast, value)));
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
            let to_each = |target: Target<'a>| {
                bases.names().iter().map(move |base| Target { base: Some(base), ..target })
            };
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

/// The grid's value along the axis of a curve: the one number that the claim does not fix.
fn axis(claim: &Claim, grid: &Map<String, Value>) -> Option<f64> {
    grid.iter()
        .filter(|(path, _)| !claim.grid.contains_key(path.as_str()))
        .find_map(|(_, value)| value.as_f64())
}

fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}

/// What we measured for a target: the pooled value, and its interval over seeds.
fn measured(target: &Target<'_>, rows: &[Row]) -> (Option<f64>, Option<Interval>) {
    let claim = target.claim;
    let find = |scheme: &str| -> Vec<&Row> {
        rows.iter()
            .filter(|row| row.scheme == scheme && row.class == claim.class && row.grid == *target.grid)
            .collect()
    };
    let value_of = |row: &Row, metric: &str| {
        let value = row.number(metric)?;
        Some(if is_sum(metric) { value / row.runs.max(1) as f64 } else { value })
    };
    let value = |row: &Row| value_of(row, &claim.metric);
    let ours = find(&claim.scheme);
    let base = target.base.map(find);
    let from: Option<Vec<&Row>> = (!claim.ratio_at.is_empty()).then(|| {
        rows.iter()
            .filter(|row| {
                row.scheme == claim.scheme && row.class == claim.class && growth_from(target, &row.grid)
            })
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
    let pooled = ours.iter().find(|row| row.is_pooled()).and_then(|row| of(row));
    let by_seed: Vec<Option<f64>> = ours.iter().filter(|row| !row.is_pooled()).map(|row| of(row)).collect();
    (pooled, confidence(&by_seed))
}

fn judge_one(target: &Target<'_>, all: &[Target<'_>], rows: &[Row]) -> Judgement {
    let (value, interval) = measured(target, rows);
    let (status, why) = match value {
        None if target.claim.metric.ends_with("_gbps.min") || target.claim.metric.ends_with("_gbps.mean") => {
            (
                Status::NotReproduced,
                "rates were not sampled, or no sampled flow lasted for a period".to_owned(),
            )
        }
        None if target.claim.metric.starts_with("convergence") => {
            (Status::NotReproduced, "rates did not become fair in some run, or were not sampled".to_owned())
        }
        None => (Status::NotReproduced, "not measured: no such row, or flows did not finish".to_owned()),
        Some(value) => status(target, value, interval, all, rows),
    };
    let claim = target.claim;
    let ratio = match (target.base, claim.ratio_to.as_ref().map_or(0, |bases| bases.names().len())) {
        (None, _) => String::new(),
        (Some(base), 0 | 1) => format!("{base} / "),
        (Some(base), several) => format!("{base} (most of {several}) / "),
    };
    let over = claim.ratio_to_metric.as_ref().map_or(String::new(), |other| format!(" / {other}"));
    let growth: String =
        claim.ratio_at.iter().map(|(path, value)| format!(", over that at {path} = {value}")).collect();
    let class =
        if claim.class == super::summary::ALL { String::new() } else { format!(" of {}", claim.class) };
    Judgement {
        claim: format!("{}{over}{class}: {ratio}{}{growth}", claim.metric, claim.scheme),
        metric: claim.metric.clone(),
        class: claim.class.clone(),
        scheme: claim.scheme.clone(),
        is_ratio: is_ratio(claim),
        grid: target.grid.clone(),
        published: target.value,
        relation: match target.relation {
            Relation::Equal if claim.up_to => "up to",
            Relation::Equal => "",
            Relation::AtMost => "at most",
            Relation::AtLeast => "at least",
        },
        ours: claim.ours,
        measured: value,
        interval,
        status,
        why,
        note: claim.note.clone(),
    }
}

/// The number compares two measurements.
fn is_ratio(claim: &Claim) -> bool {
    claim.ratio_to.is_some() || claim.ratio_to_metric.is_some() || !claim.ratio_at.is_empty()
}

/// The status, and why; what our confidence interval leaves open is said, but changes no status.
fn status(
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

/// What became of a bound that is ours. No tolerance: we chose it, and might have chosen it wider. A ratio is compared with
/// it all over our interval, and is in the same direction where it is on the side of 1 that the bound names, if it names one.
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
    // A wide interval around a value far beyond a bound says nothing for the bound.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{results::summary::Seed, scenario::Bases};

    pub fn row(scheme: &str, load: f64, seed: Option<u64>, p99: f64) -> Row {
        let text = serde_json::json!({
            "scheme": scheme, "class": "all", "seed": seed.map_or(Value::from("all"), Value::from),
            "grid": {"load": load}, "runs": 1, "flows": 1, "completed": 1, "by_size": [],
            "fct_us": {"mean": p99, "p50": p99, "p95": p99, "p99": p99, "p999": p99, "max": p99},
            "slowdown": {"mean": null, "p50": null, "p95": null, "p99": null, "p999": null, "max": null},
            "rct_us": {"mean": null, "p50": null, "p95": null, "p99": null, "p999": null, "max": null},
            "goodput_gbps": null, "long_flow_gbps": null, "drops": 4, "trims": null, "marks": null,
            "retransmitted_bytes": 0, "timeouts": 0, "pfc_pauses": null, "pfc_paused_us": null,
            "max_queue_bytes": null, "jain": null, "convergence_us": null, "packet_hops": null, "cpu_s": null,
            "ns_per_packet_hop": null,
        });
        serde_json::from_value(text).expect("a row")
    }

    /// Pooled rows of two schemes at two loads.
    fn rows() -> Vec<Row> {
        [("a", 0.2, 100.0), ("a", 0.4, 200.0), ("b", 0.2, 150.0), ("b", 0.4, 420.0)]
            .map(|(scheme, load, p99)| row(scheme, load, None, p99))
            .to_vec()
    }

    fn claim(scheme: &str, at: Option<f64>) -> Claim {
        let mut claim: Claim = serde_json::from_value(serde_json::json!({
            "metric": "fct_us.p99", "scheme": scheme, "value": 1.0,
        }))
        .expect("a claim");
        claim.value = None;
        claim.grid = at.map(|load| ("load".to_owned(), toml::Value::Float(load))).into_iter().collect();
        claim
    }

    fn to(scheme: &str) -> Bases {
        Bases::One(scheme.into())
    }

    fn statuses(claims: &[Claim]) -> Vec<Status> {
        judge(claims, &rows()).iter().map(|judgement| judgement.status).collect()
    }

    #[test]
    fn values_are_reproduced_within_fifteen_percent() {
        let at = |value| Claim { value: Some(value), ..claim("a", Some(0.2)) };
        assert_eq!(statuses(&[at(87.0)]), [Status::Reproduced]);
        assert_eq!(statuses(&[at(80.0)]), [Status::NotReproduced]);
        // Without a grid point, at all of them.
        assert_eq!(
            statuses(&[Claim { value: Some(100.0), ..claim("a", None) }]),
            [Status::Reproduced, Status::NotReproduced]
        );
    }

    #[test]
    fn values_inside_our_interval_are_reproduced() {
        let mut all = vec![row("a", 0.2, None, 100.0)];
        all.extend([(1, 60.0), (2, 100.0), (3, 140.0)].map(|(seed, p99)| row("a", 0.2, Some(seed), p99)));
        assert_eq!(all[1].seed, Seed::One(1));
        let judged = judge(&[Claim { value: Some(150.0), ..claim("a", None) }], &all);
        assert_eq!(judged[0].status, Status::Reproduced);
        assert!(judged[0].interval.expect("three seeds").contains(150.0));
    }

    #[test]
    fn ratios_compare_with_one() {
        let ratio = |value| Claim { ratio_to: Some(to("b")), value: Some(value), ..claim("a", Some(0.4)) };
        // Measured: 420 / 200.
        assert_eq!(statuses(&[ratio(2.0)]), [Status::Reproduced]);
        assert_eq!(statuses(&[ratio(5.0)]), [Status::SameDirection]);
        assert_eq!(statuses(&[ratio(0.5)]), [Status::NotReproduced]);
    }

    /// Two schemes at one load with three seeds: `b` over `a` is each of `ratios`, and their mean when pooled.
    fn seeded(ratios: [f64; 3]) -> Vec<Row> {
        let mean = ratios.iter().sum::<f64>() / 3.0;
        let mut all = vec![row("a", 0.2, None, 100.0), row("b", 0.2, None, 100.0 * mean)];
        for (seed, ratio) in (1..).zip(ratios) {
            all.extend([row("a", 0.2, Some(seed), 100.0), row("b", 0.2, Some(seed), 100.0 * ratio)]);
        }
        all
    }

    fn one(claim: Claim, rows: &[Row]) -> (Status, String) {
        let judged = judge(&[claim], rows);
        assert_eq!(judged.len(), 1);
        (judged[0].status, judged[0].why.clone())
    }

    #[test]
    fn the_side_of_one_comes_before_the_band() {
        // Two identical schemes: 1.00 is within 15% of 1.126 and of its inverse, and neither was reproduced.
        let same = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 100.0)];
        let more = Claim { at_least: Some(1.126), ..ratio() };
        let less = Claim { at_most: Some(1.0 / 1.126), ..ratio() };
        let turned = |claim: &Claim| Claim { scheme: "b".into(), ratio_to: Some(to("a")), ..claim.clone() };
        for claim in [more.clone(), turned(&more), less.clone(), turned(&less)] {
            let (status, why) = one(claim, &same);
            assert_eq!(status, Status::NotReproduced, "{why}");
            assert!(why.ends_with("; the ratio is 1"), "{why}");
        }
        let at = |percent: f64| [row("a", 0.2, None, 100.0), row("b", 0.2, None, percent)];
        assert_eq!(one(more.clone(), &at(97.0)).0, Status::NotReproduced);
        assert_eq!(one(more, &at(105.0)).0, Status::Reproduced);
        assert_eq!(one(less.clone(), &at(103.0)).0, Status::NotReproduced);
        assert_eq!(one(less, &at(95.0)).0, Status::Reproduced);
        let value = Claim { value: Some(1.1), ..ratio() };
        assert_eq!(one(value.clone(), &at(98.0)).0, Status::NotReproduced);
        assert_eq!(one(value, &at(101.0)).0, Status::Reproduced);
    }

    #[test]
    fn a_published_ratio_inside_our_interval_is_reproduced_on_either_side() {
        // 0.98 on average, 0.66 to 1.3 with three seeds: we do not know the side.
        let unsure = seeded([0.84, 1.0, 1.1]);
        assert_eq!(one(Claim { value: Some(1.2), ..ratio() }, &unsure).0, Status::Reproduced);
        assert_eq!(one(Claim { at_least: Some(1.2), ..ratio() }, &unsure).0, Status::NotReproduced);
    }

    #[test]
    fn a_ratio_s_bound_of_one_holds_or_does_not() {
        let at = |percent: f64| [row("a", 0.2, None, 100.0), row("b", 0.2, None, percent)];
        let least = Claim { at_least: Some(1.0), ..ratio() };
        assert_eq!(one(least.clone(), &at(100.0)).0, Status::Reproduced);
        assert_eq!(one(least, &at(99.0)).0, Status::NotReproduced);
        let most = Claim { at_most: Some(1.0), ..ratio() };
        assert_eq!(one(most, &at(101.0)).0, Status::NotReproduced);
        // Equality is within 15% on either side.
        assert_eq!(one(Claim { value: Some(1.0), ..ratio() }, &at(99.0)).0, Status::Reproduced);
    }

    #[test]
    fn a_bound_of_ours_has_no_tolerance() {
        let least = |bound| Claim { ours: true, at_least: Some(bound), ..claim("a", Some(0.2)) };
        assert_eq!(statuses(&[least(100.0)]), [Status::Reproduced]);
        assert_eq!(statuses(&[least(101.0)]), [Status::NotReproduced]);
        let most = |bound| Claim { ours: true, at_most: Some(bound), ..claim("a", Some(0.2)) };
        assert_eq!(statuses(&[most(100.0)]), [Status::Reproduced]);
        assert_eq!(statuses(&[most(99.0)]), [Status::NotReproduced]);
        let judged = judge(&[least(101.0), Claim { ours: false, ..least(101.0) }], &rows());
        assert_eq!(judged[0].described("101"), "at least 101 (ours)");
        assert_eq!(judged[1].described("101"), "at least 101");
        assert_eq!((judged[0].why.as_str(), judged[1].status), ("-1.0%", Status::Reproduced));
    }

    #[test]
    fn a_ratio_s_bound_of_ours_holds_all_over_our_interval() {
        let least = |bound| Claim { ours: true, at_least: Some(bound), ..ratio() };
        let most = |bound| Claim { ours: true, at_most: Some(bound), ..ratio() };
        // 0.95 to 1.45 around 1.2, and 1.175 to 1.225.
        let (wide, narrow) = (seeded([1.1, 1.2, 1.3]), seeded([1.19, 1.2, 1.21]));
        assert_eq!(one(least(1.02), &narrow).0, Status::Reproduced);
        assert_eq!(one(least(1.02), &wide).0, Status::SameDirection);
        assert_eq!(one(least(1.25), &narrow).0, Status::SameDirection);
        assert_eq!(one(most(0.9), &narrow).0, Status::NotReproduced);
        assert_eq!(one(most(1.0), &wide).0, Status::NotReproduced);
        // A bound on the other side of 1 names no side.
        assert_eq!(one(most(1.3), &narrow).0, Status::Reproduced);
        assert_eq!(one(most(1.3), &wide).0, Status::NotReproduced);
        // Below 1, and between 1 and the bound.
        assert_eq!(one(least(1.02), &seeded([0.99; 3])).0, Status::NotReproduced);
        assert_eq!(one(least(1.02), &seeded([1.01; 3])).0, Status::SameDirection);
        // One seed has no interval.
        let single = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 103.0)];
        assert_eq!(one(least(1.02), &single), (Status::Reproduced, "the bound holds".into()));
    }

    #[test]
    fn why_says_what_the_interval_leaves_open() {
        // 0.9 to 1.5 or so around 1.2.
        let wide = seeded([1.1, 1.2, 1.3]);
        let why = |claim, rows: &[Row]| one(claim, rows).1;
        let least = |bound| Claim { at_least: Some(bound), ..ratio() };
        let interval = "our interval, 0.9516 to 1.45, includes";
        assert_eq!(why(least(1.1), &wide), format!("the bound holds; {interval} the bound"));
        assert_eq!(why(least(1.3), &wide), format!("-8%, within 15%; {interval} the bound"));
        let same_side = "the ratio is on the same side of 1";
        assert_eq!(why(least(1.44), &wide), format!("-17%; {same_side}; {interval} the bound and 1"));
        assert_eq!(why(least(2.0), &wide), format!("-40%; {same_side}; {interval} 1"));
        assert_eq!(
            why(Claim { value: Some(2.0), ..ratio() }, &wide),
            format!("-40%; {same_side}; {interval} 1")
        );
        assert_eq!(why(least(1.0), &seeded([1.0; 3])), "the bound holds");
        let narrow = seeded([1.19, 1.2, 1.21]);
        assert_eq!(why(least(1.1), &narrow), "the bound holds");
        assert_eq!(why(least(2.0), &narrow), format!("-40%; {same_side}"));
    }

    /// What `b` measures over what `a` does, at the lower load.
    fn ratio() -> Claim {
        Claim { ratio_to: Some(to("b")), ..claim("a", Some(0.2)) }
    }

    #[test]
    fn growth_is_over_another_grid_point() {
        let from: toml::Table = [("load".to_owned(), toml::Value::Float(0.2))].into_iter().collect();
        let growth =
            |scheme, value| Claim { ratio_at: from.clone(), value: Some(value), ..claim(scheme, Some(0.4)) };
        // Measured: 420 / 150 and 200 / 100.
        let judged =
            judge(&[growth("b", 2.8), growth("a", 2.0), growth("a", 9.0), growth("a", 0.5)], &rows());
        let found: Vec<_> = judged.iter().map(|judgement| (judgement.measured, judgement.status)).collect();
        assert_eq!(
            found,
            [
                (Some(2.8), Status::Reproduced),
                (Some(2.0), Status::Reproduced),
                (Some(2.0), Status::SameDirection),
                (Some(2.0), Status::NotReproduced)
            ]
        );
        assert!(judged[0].claim.ends_with("over that at load = 0.2"), "{}", judged[0].claim);
    }

    #[test]
    fn one_number_may_be_measured_by_another() {
        // Four drops in each row.
        let over = |value| Claim {
            ratio_to_metric: Some("drops".into()),
            value: Some(value),
            ..claim("a", Some(0.4))
        };
        let judged = judge(&[over(50.0), over(2.0), over(0.5)], &rows());
        let found: Vec<_> = judged.iter().map(|judgement| (judgement.measured, judgement.status)).collect();
        let statuses = [Status::Reproduced, Status::SameDirection, Status::NotReproduced];
        assert_eq!(found, statuses.map(|status| (Some(50.0), status)));
        assert!(judged[0].claim.starts_with("fct_us.p99 / drops"), "{}", judged[0].claim);
        let none = Claim { ratio_to_metric: Some("timeouts".into()), ..over(1.0) };
        assert_eq!(judge(&[none], &rows())[0].measured, None);
    }

    #[test]
    fn bounds_hold_or_are_narrowly_missed() {
        let most = |value| Claim { at_most: Some(value), ..claim("a", Some(0.2)) };
        assert_eq!(statuses(&[most(120.0), most(90.0), most(50.0)])[..2], [Status::Reproduced; 2]);
        let least = |value| Claim { at_least: Some(value), ..claim("a", Some(0.2)) };
        assert_eq!(statuses(&[least(90.0)]), [Status::Reproduced]);
        assert_eq!(statuses(&[least(190.0)]), [Status::NotReproduced]);
    }

    #[test]
    fn published_orders_of_schemes_and_curves_are_directions() {
        let value = |scheme, value| Claim { value: Some(value), ..claim(scheme, Some(0.2)) };
        assert_eq!(statuses(&[value("a", 10.0), value("b", 20.0)]), [Status::SameDirection; 2]);
        assert_eq!(statuses(&[value("a", 20.0), value("b", 10.0)]), [Status::NotReproduced; 2]);
        let curve = Claim { points: Some(vec![(0.2, 100.0), (0.4, 500.0)]), ..claim("a", None) };
        assert_eq!(statuses(&[curve]), [Status::Reproduced, Status::SameDirection]);
    }

    #[test]
    fn up_to_is_the_most_that_any_grid_point_reaches() {
        let up_to =
            |value| Claim { up_to: true, ratio_to: Some(to("b")), value: Some(value), ..claim("a", None) };
        // 150 / 100 at the lower load, 420 / 200 at the higher.
        let judged = judge(&[up_to(2.0), up_to(1.5), claim_at(1.5)], &rows());
        let found: Vec<_> = judged.iter().map(|one| (one.relation, one.measured, one.status)).collect();
        assert_eq!(
            found,
            [
                ("up to", Some(2.1), Status::Reproduced),
                ("up to", Some(2.1), Status::SameDirection),
                ("", Some(1.5), Status::Reproduced)
            ]
        );
        assert_eq!(judged[0].grid["load"], 0.4);
    }

    /// Pooled rows of three schemes at two loads: `b` over `a` is 1.5 and 2.1, `c` over `a` 1.8 and 1.2.
    fn three_schemes() -> Vec<Row> {
        let mut all = rows();
        all.extend([row("c", 0.2, None, 180.0), row("c", 0.4, None, 240.0)]);
        all
    }

    #[test]
    fn a_ratio_to_one_of_several_is_the_largest() {
        let several = Bases::Several(vec!["b".into(), "c".into(), "unmeasured".into()]);
        let ratio = Claim { ratio_to: Some(several.clone()), at_least: Some(1.6), ..claim("a", None) };
        let judged = judge(&[ratio], &three_schemes());
        let found: Vec<_> = judged.iter().map(|one| (one.claim.as_str(), one.measured)).collect();
        assert_eq!(
            found,
            [("fct_us.p99: c (most of 3) / a", Some(1.8)), ("fct_us.p99: b (most of 3) / a", Some(2.1)),]
        );
        assert!(judged.iter().all(|one| one.why == "the bound holds" && one.is_ratio));
        let nothing = Claim { ratio_to: Some(several), value: Some(2.0), ..claim("unmeasured", Some(0.2)) };
        let judged = judge(&[nothing], &three_schemes());
        assert_eq!(judged.len(), 1);
        assert_eq!((judged[0].status, judged[0].measured), (Status::NotReproduced, None));
    }

    #[test]
    fn up_to_is_the_most_of_points_and_schemes() {
        let up_to = |names: &[&str]| Claim {
            up_to: true,
            ratio_to: Some(Bases::Several(names.iter().map(|&name| name.into()).collect())),
            value: Some(2.0),
            ..claim("a", None)
        };
        for names in [["b", "c"], ["c", "b"]] {
            let judged = judge(&[up_to(&names), up_to(&["c"])], &three_schemes());
            let found: Vec<_> =
                judged.iter().map(|one| (one.claim.as_str(), one.measured, &one.grid["load"])).collect();
            assert_eq!(
                found,
                [
                    ("fct_us.p99: b (most of 2) / a", Some(2.1), &Value::from(0.4)),
                    ("fct_us.p99: c / a", Some(1.8), &Value::from(0.2)),
                ]
            );
        }
    }

    #[test]
    fn curves_of_ratios_to_one_of_several_keep_their_points() {
        let curve = Claim {
            points: Some(vec![(0.2, 1.8), (0.4, 2.1)]),
            ratio_to: Some(Bases::Several(vec!["c".into(), "b".into()])),
            ..claim("a", None)
        };
        let judged = judge(&[curve], &three_schemes());
        let found: Vec<_> = judged.iter().map(|one| (one.published, one.measured)).collect();
        assert_eq!(found, [(1.8, Some(1.8)), (2.1, Some(2.1))]);
    }

    fn claim_at(value: f64) -> Claim {
        Claim { ratio_to: Some(to("b")), value: Some(value), ..claim("a", Some(0.2)) }
    }

    #[test]
    fn what_was_not_measured_is_not_reproduced() {
        let judged = judge(&[Claim { value: Some(1.0), ..claim("c", Some(0.2)) }], &rows());
        assert_eq!((judged[0].status, judged[0].measured), (Status::NotReproduced, None));
    }
}
