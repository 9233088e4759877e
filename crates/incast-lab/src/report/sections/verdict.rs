//! Which scheme is best in what, before anything else.

use crate::results::read::{Point, Results};
use crate::{
    report::input::figures::Figures,
    results::{
        row::Row,
        settings::Settings,
        steady,
        verdict::{LEAST_SEEDS, subject_heading},
    },
    text::grid_point,
};
use maud::{Markup, html};

/// Which values of settings are best, across grid points.
fn settings(all: &[Settings]) -> Markup {
    html! {
        section.verdict {
            h2 { "Settings" }
            @for of in all {
                @if !of.conditions.is_empty() { p.where { (grid_point(&of.conditions)) } }
                ul {
                    @for subject in &of.subjects {
                        li {
                            "for " (subject_heading(&subject.class, subject.metric))
                            @if let Some(best) = &subject.best {
                                ", each scheme at its best: " strong { (subject.name_of(&best.best)) }
                                @for line in best.others(usize::MAX) { "; " (line) }
                            }
                            ul {
                                @for scheme in subject.schemes.iter().filter(|scheme| !scheme.is_indifferent()) {
                                    li { (scheme.text()) }
                                }
                            }
                        }
                    }
                }
            }
            p.note {
                "For each value of a setting the others are at their best. Values are compared with the best one by differences \
                 seed by seed, with 95% confidence intervals; what is said to be so is at a level of 5% for all values of a \
                 setting together (Holm's procedure)."
            }
        }
    }
}

/// Of runs that were too short, which length would do.
fn lengths(results: &Results, is_shown: &dyn Fn(&Point) -> bool) -> Markup {
    let pooled: Vec<&Row> = results.rows.iter().filter(|row| row.is_pooled() && is_shown(&row.grid)).collect();
    let notes = steady::notes(&pooled);
    html! {
        @if !notes.is_empty() {
            ul.note { @for (whose, why) in notes { li { (whose) ": " (why) } } }
        }
    }
}

/// The verdicts of the grid points that are shown in detail. Of a search the best settings are left out: they count the seeds by which it
/// chose, which favours what it found.
pub fn section(results: &Results, figures: &Figures, is_search: bool) -> Markup {
    let is_shown = |grid: &Point| figures.points.iter().any(|curves| results.points[curves.point] == *grid);
    let shown: Vec<_> = results.verdicts.iter().filter(|point| is_shown(&point.grid)).collect();
    let of_settings = if is_search || results.settings.is_empty() {
        html! {}
    } else {
        settings(&results.settings)
    };
    if shown.is_empty() {
        return of_settings;
    }
    html! {
        (of_settings)
        section.verdict {
            h2 { "Verdict" }
            @for point in &shown {
                @if !point.grid.is_empty() { p.where { (grid_point(&point.grid)) } }
                @if point.seeds < LEAST_SEEDS {
                    p { "Too few seeds: " (point.seeds) ", at least " (LEAST_SEEDS) " are needed." }
                } @else {
                    ul {
                        @for verdict in &point.verdicts {
                            li {
                                "for " (verdict.subject()) ": " strong { (verdict.best) }
                                @for (index, line) in verdict.others(usize::MAX).iter().enumerate() {
                                    @if index > 0 || !verdict.best.is_empty() { "; " }
                                    (line)
                                }
                            }
                        }
                    }
                }
            }
            p.note {
                "By differences seed by seed, with 95% confidence intervals."
                @if shown.iter().any(|point| point.verdicts.iter().any(|verdict| verdict.too_short)) {
                    " Where a number has an exclamation mark, some run was too short for a steady state."
                }
            }
            (lengths(results, &is_shown))
        }
    }
}
