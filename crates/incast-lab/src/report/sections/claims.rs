//! Published numbers and what became of them.

use super::scrolling;
use crate::results::read::Results;
use crate::{
    metrics::statistics::Interval,
    report::{
        chart::status_class,
        chart::{Deviation, Unit, deviations},
    },
    results::claims::{Judgement, Status},
    text::{grid_point, json},
};
use maud::{Markup, html};

/// Claims of one chart: beyond that it becomes a wall.
const PER_CHART: usize = 12;

/// The claims of the scenario, if it has any.
pub fn section(results: &Results) -> Markup {
    let claims = &results.claims;
    if claims.is_empty() {
        return html! {};
    }
    let drawn: Vec<Deviation> = claims.iter().filter_map(deviation).collect();
    let table = html! {
        table {
            thead { tr {
                th scope="col" { "claim" }
                @if results.points.len() > 1 { th scope="col" { "at" } }
                th.number scope="col" { "published" }
                th.number scope="col" { "measured" }
                th.number scope="col" { "95% CI" }
                th scope="col" { "status" }
                th scope="col" { "why" }
            } }
            tbody { @for claim in claims { (row(claim, results.points.len() > 1)) } }
        }
    };
    let count = |status| claims.iter().filter(|claim| claim.status == status).count();
    html! {
        section.claims {
            h2 { "Claims" }
            p {
                span class="status reproduced" { "reproduced" } " " (count(Status::Reproduced)) ", "
                span class="status direction" { "same direction" } " " (count(Status::SameDirection)) ", "
                span class="status open" { "inconclusive" } " " (count(Status::Inconclusive)) ", "
                span class="status missed" { "not reproduced" } " " (count(Status::NotReproduced)) "."
            }
            p.note {
                "In this order. Not reproduced: measured on the other side of 1 (ratios) or beyond the bound. Inconclusive: our confidence interval contains the published number, and also the opposite of the claim or more than the effect to either side. Reproduced: within 15% of the published number (the band); bounds have no tolerance. Same direction: the sign or the order of the effect holds."
            }
            div.charts {
                @for (index, some) in drawn.chunks(PER_CHART).enumerate() {
                    (deviations(&if drawn.len() > PER_CHART { format!("measured over published ({})", index + 1) } else { "measured over published".to_owned() }, some))
                }
            }
            (scrolling("Claims", &table))
        }
    }
}

fn unit(claim: &Judgement) -> Unit {
    if claim.is_ratio { Unit::Ratio } else { Unit::of(&claim.metric) }
}

fn row(claim: &Judgement, several_points: bool) -> Markup {
    let unit = unit(claim);
    html! {
        tr {
            th scope="row" {
                (claim.claim)
                @if let Some(note) = &claim.note { " " span.soft { "(" (note) ")" } }
            }
            @if several_points { td { (grid_point(&claim.grid)) } }
            td.number { (claim.published_text(|value| unit.text(value))) }
            td.number { (claim.measured.map_or_else(|| "–".to_owned(), |value| unit.text(value))) }
            td.number {
                @match claim.interval {
                    Some(Interval(low, high)) => { (unit.text(low)) " to " (unit.text(high)) }
                    None => "–",
                }
            }
            td { span class=(format!("status {}", status_class(claim.status))) { (claim.outcome()) } }
            td { (claim.why) }
        }
    }
}

/// The claim as a ratio; none where there is nothing to divide.
fn deviation(claim: &Judgement) -> Option<Deviation> {
    let measured = claim.measured?;
    let published = claim.published_to.map_or(claim.published, |end| measured.clamp(claim.published, end));
    let ratio = measured / published;
    if !ratio.is_finite() || ratio <= 0.0 {
        return None;
    }
    let at = if claim.grid.is_empty() { String::new() } else { format!(" at {}", short_point(claim)) };
    let interval = claim.interval.map(|Interval(low, high)| Interval(low / published, high / published));
    let unit = unit(claim);
    Some(Deviation {
        claim: format!("{}{at}", claim.claim),
        relation: claim.relation,
        ratio,
        interval,
        status: claim.status,
        note: format!(
            "{}{at}: measured {}, published {}: {}, {}",
            claim.claim,
            unit.text(measured),
            claim.published_text(|value| unit.text(value)),
            claim.outcome(),
            claim.why
        ),
    })
}

/// A grid point by the last parts of its paths.
fn short_point(claim: &Judgement) -> String {
    let part = |(path, value): (&String, &serde_json::Value)| {
        format!("{} {}", path.rsplit('.').next().unwrap_or(path), json(value))
    };
    claim.grid.iter().map(part).collect::<Vec<_>>().join(", ")
}
