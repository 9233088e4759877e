//! Which scheme is best in what, before anything else.

use crate::results::read::{Point, Results};
use crate::{report::input::figures::Figures, results::verdict::LEAST_SEEDS, text::grid_point};
use maud::{Markup, html};

/// The verdicts of the grid points that are shown in detail.
pub fn section(results: &Results, figures: &Figures) -> Markup {
    let is_shown = |grid: &Point| figures.points.iter().any(|curves| results.points[curves.point] == *grid);
    let shown: Vec<_> = results.verdicts.iter().filter(|point| is_shown(&point.grid)).collect();
    if shown.is_empty() {
        return html! {};
    }
    html! {
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
        }
    }
}
