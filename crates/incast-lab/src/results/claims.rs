//! Published numbers beside ours, with a status by fixed rules.
//!
//! - *reproduced*: within 15% of the published value, or the value lies inside our confidence interval. A bound
//!   (`at_most`, `at_least`) is reproduced when it holds, or is missed by no more than 15%. A ratio on the other side
//!   of 1 than the published one is not within its 15%, and a ratio's bound of 1 holds or does not.
//!   A bound of ours (`ours`), where the paper prints no number, holds or does not; that of a ratio holds only if it
//!   does all over our confidence interval.
//! - *same direction*: the effect has the published sign (a ratio is on the same side of 1), or the schemes that were
//!   published with this metric stand in the published order, or a curve rises and falls where the published one does.
//! - *not reproduced*: the rest, and whatever could not be measured because flows did not finish.

pub use super::claim_status::Status;

use super::{
    claim_status::status,
    claim_target::{Relation, Target, furthest, is_ratio, measured, targets},
    row::{ALL, Row},
};
use crate::{
    metrics::{Basis, find, statistics::Interval},
    scenario::Claim,
};
use serde::Serialize;
use serde_json::{Map, Value};

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

fn judge_one(target: &Target<'_>, all: &[Target<'_>], rows: &[Row]) -> Judgement {
    let (value, interval) = measured(target, rows);
    let (status, why) = match value {
        None => {
            let basis = find(&target.claim.metric).map_or(Basis::Run, |metric| metric.basis);
            (Status::NotReproduced, basis.missing().to_owned())
        }
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
    let class = if claim.class == ALL { String::new() } else { format!(" of {}", claim.class) };
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

#[cfg(test)]
pub(super) mod tests;
