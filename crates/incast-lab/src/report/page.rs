//! The page: its frame, style and script, and the sections in their order.

use super::{
    chart::{further_colours, series_class},
    input::figures::{Figures, PointCurves},
    sections,
};
use crate::results::read::{FinishedRun, Results, UNVERIFIED};
use crate::{
    results::{row::ALL, tuning::Tuning},
    text::{grid_point, grouped},
};
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Nothing may be loaded from anywhere, whatever a name in a scenario contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The results of one folder among several.
pub struct Part<'a> {
    /// The folder, as it was given.
    pub folder: &'a Path,
    /// Its results.
    pub results: Results,
    /// Their figures.
    pub figures: Figures,
    /// What a search found.
    pub tuning: Option<Tuning>,
}

/// The file of several folders: a list with the verdict of each, then the sections of each.
pub fn render_several(parts: &[Part<'_>]) -> Markup {
    let schemes = parts.iter().map(|part| part.results.schemes.len()).max().unwrap_or(0);
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(env!("CARGO_PKG_VERSION"), &format!("{} results", parts.len()), schemes))
            body {
                header {
                    h1 { (parts.len()) " results" }
                    p.note { "Each folder by itself: numbers of different folders are not compared here. For that: incast diff." }
                }
                main {
                    @for (number, part) in (1..).zip(parts) {
                        h2 { a href=(format!("#folder-{number}")) { code { (part.folder.display()) } } ": " (part.results.first().text("name")) }
                        (sections::verdict::section(&part.results, &part.figures, part.tuning.is_some()))
                    }
                }
                @for (number, part) in (1..).zip(parts) {
                    article id=(format!("folder-{number}")) {
                        header { p.where { code { (part.folder.display()) } } }
                        (content(&part.results, &part.figures, part.tuning.as_ref(), false))
                    }
                }
                script { (PreEscaped(include_str!("script.js"))) }
            }
        }
    }
}

fn head(version: &str, title: &str, schemes: usize) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="generator" content=(format!("incast {version}"));
            title { (title) " · incast" }
            link rel="icon" href="data:,";
            style { (PreEscaped(include_str!("style.css"))) (PreEscaped(further_colours(schemes))) }
        }
    }
}

/// Everything about the results of one folder.
fn content(results: &Results, figures: &Figures, tuning: Option<&Tuning>, has_verdict: bool) -> Markup {
    let first = results.first();
    html! {
        (header(results, first))
        (controls(results, figures))
        main {
            (sections::tuning::section(tuning))
            @if has_verdict { (sections::verdict::section(results, figures, tuning.is_some())) }
            (sections::sweep::section(results))
            @for curves in &figures.points { (point(results, curves, figures)) }
            (sections::claims::section(results))
            (sections::scenario::section(results))
            (sections::cost::section(results))
        }
        footer {
            p { "Written by incast " (first.record.version) (if results.unverified { UNVERIFIED } else { "" }) ". Statistics, columns and rules: docs/results.md." }
        }
    }
}

/// The whole file.
pub fn render(results: &Results, figures: &Figures, tuning: Option<&Tuning>) -> Markup {
    let first = results.first();
    let name = first.text("name");
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&first.record.version, name, results.schemes.len()))
            body {
                (content(results, figures, tuning, true))
                script { (PreEscaped(include_str!("script.js"))) }
            }
        }
    }
}

fn header(results: &Results, first: &FinishedRun) -> Markup {
    let mut seeds: Vec<u64> = results.runs.iter().map(|run| run.record.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let pooled = || results.rows.iter().filter(|row| row.is_pooled() && row.class == ALL);
    let (flows, completed) = pooled().fold((0, 0), |sum, row| (sum.0 + row.flows(), sum.1 + row.completed()));
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    html! {
        header {
            h1 { (first.text("name")) @if first.record.short { " " span.badge { "short form" } } }
            @if !first.text("describe").is_empty() { p.describe { (first.text("describe")) } }
            p.facts {
                @if !first.text("source").is_empty() { span { "Source: " (first.text("source")) } }
                span { (count(results.schemes.len(), "scheme")) }
                @if results.points.len() > 1 { span { (count(results.points.len(), "grid point")) } }
                span { (count(seeds.len(), "seed")) }
                span { (count(results.runs.len(), "run")) }
                span { (grouped(flows)) " counted flows" }
            }
            @if completed < flows {
                p.notice {
                    strong { (grouped(flows - completed)) " of " (grouped(flows)) " counted flows did not finish." }
                    " They rank above all that did: a number that depends on one is a lower bound, marked ≥, and a distribution ends below 100%."
                }
            }
            @if !results.failed.is_empty() {
                div.notice {
                    strong { (count(results.failed.len(), "run")) " failed and " (if results.failed.len() == 1 { "is" } else { "are" }) " missing here." }
                    ul { @for (run, why) in &results.failed { li { code { (run) } ": " (why) } } }
                }
            }
        }
    }
}

/// Which schemes are drawn, and which grid point is shown.
fn controls(results: &Results, figures: &Figures) -> Markup {
    html! {
        nav.controls aria-label="What is shown" {
            div.legend role="group" aria-label="Schemes" {
                @for (series, scheme) in results.schemes.iter().enumerate() {
                    button type="button" class=(series_class(series)) data-toggle=(series) aria-pressed="true"
                        title="Show or hide this scheme" {
                        svg viewBox="0 0 28 12" width="28" height="12" aria-hidden="true" { path.line d="M1 6H27" {} }
                        (scheme)
                    }
                }
            }
            @if figures.points.len() > 1 {
                label {
                    "At "
                    select data-choice="" {
                        @for curves in &figures.points {
                            option value=(curves.point) { (grid_point(&results.points[curves.point])) }
                        }
                        option value="all" { "all grid points" }
                    }
                }
            }
        }
    }
}

/// Everything about one grid point.
fn point(results: &Results, curves: &PointCurves, figures: &Figures) -> Markup {
    let point = &results.points[curves.point];
    html! {
        div.point data-point=(curves.point) {
            @if !point.is_empty() { p.where { (grid_point(point)) } }
            @if figures.points.len() < results.points.len() {
                p.note {
                    (figures.points.len()) " of " (results.points.len())
                    " grid points are shown in detail; summary.csv has all of them."
                }
            }
            (sections::comparison::section(results, point))
            (sections::published::section(results, point))
            (sections::distributions::section(results, curves))
            (sections::sizes::section(results, point))
            (sections::over_time::section(results, curves))
            (sections::estimates::section(results, curves))
        }
    }
}
