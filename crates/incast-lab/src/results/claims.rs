//! Published numbers beside ours, with a status by [fixed rules](Status).

pub use super::claim_status::Status;

use super::{
    claim_status::{is_trivial, status},
    claim_target::{Relation, Target, furthest, is_ratio, measured, targets, too_short, was_run},
    row::{ALL, Row},
};
use crate::{
    metrics::{Basis, find, statistics::Interval},
    scenario::Claim,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write;

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
    /// The published value or bound, or the lower end of a range.
    pub published: f64,
    /// The upper end of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_to: Option<f64>,
    /// `""`, `"at most"`, `"at least"` or `"up to"`.
    pub relation: &'static str,
    /// The paper prints no number: the bound or the range is ours.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    /// Every scheme meets the bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trivial: bool,
    /// The runs of one of its schemes were too short for a steady state.
    pub too_short: bool,
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
    /// The published number, with what it is: `at least 0.85 (ours)`. `text` formats numbers.
    pub fn published_text(&self, text: impl Fn(f64) -> String) -> String {
        let ours = if self.ours { " (ours)" } else { "" };
        let to = self.published_to.map_or(String::new(), |end| format!(" to {}", text(end)));
        format!("{} {}{to}{ours}", self.relation, text(self.published)).trim().to_owned()
    }

    /// The status, and whether the bound is trivial.
    pub fn outcome(&self) -> String {
        format!("{}{}", self.status, if self.trivial { ", trivial" } else { "" })
    }
}

/// Judges every claim at every grid point that it is about, where all schemes that it compares were run.
pub fn judge(claims: &[Claim], rows: &[Row]) -> Vec<Judgement> {
    let points = points(rows);
    let targets: Vec<Target<'_>> = all_targets(claims, &points).filter(|target| was_run(target, rows)).collect();
    let targets = furthest(targets, rows);
    targets.iter().map(|target| judge_one(target, &targets, rows)).collect()
}

/// Published numbers that are not judged, as a scheme that they compare was not run.
pub fn not_run(claims: &[Claim], rows: &[Row]) -> usize {
    let points = points(rows);
    let targets: Vec<Target<'_>> = all_targets(claims, &points).filter(|target| !was_run(target, rows)).collect();
    furthest(targets, rows).len()
}

fn points(rows: &[Row]) -> Vec<&Map<String, Value>> {
    let mut points: Vec<&Map<String, Value>> = Vec::new();
    for row in rows {
        if !points.contains(&&row.grid) {
            points.push(&row.grid);
        }
    }
    points
}

fn all_targets<'a>(claims: &'a [Claim], points: &'a [&'a Map<String, Value>]) -> impl Iterator<Item = Target<'a>> {
    claims.iter().flat_map(move |claim| points.iter().flat_map(move |grid| targets(claim, grid)))
}

fn judge_one(target: &Target<'_>, all: &[Target<'_>], rows: &[Row]) -> Judgement {
    let (value, interval) = measured(target, rows);
    let trivial = value.is_some() && is_trivial(target, rows);
    let (status, mut why) = match value {
        None => {
            let basis = find(&target.claim.metric).map_or(Basis::Run, |metric| metric.basis);
            (Status::NotReproduced, basis.missing().to_owned())
        }
        Some(value) => status(target, value, interval, all, rows),
    };
    if trivial {
        why.push_str("; every scheme meets it");
    }
    let short = too_short(target, rows);
    if let Some(scheme) = short {
        let _ = write!(why, "; too short a run for a steady state under {scheme}");
    }
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
        published_to: (target.relation == Relation::Within).then_some(target.end),
        relation: match target.relation {
            Relation::Equal if claim.up_to => "up to",
            Relation::Equal | Relation::Within => "",
            Relation::AtMost => "at most",
            Relation::AtLeast => "at least",
        },
        ours: claim.ours,
        trivial,
        too_short: short.is_some(),
        measured: value,
        interval,
        status,
        why,
        note: claim.note.clone(),
    }
}

#[cfg(test)]
pub(super) mod tests;
