//! Claims: what was measured over what was published, with the band that counts as reproduced.

use super::{Axis, Spacing, Unit, WIDTH, figure, px, shorten};
use crate::{metrics::statistics::Interval, results::claims::Status};
use maud::{Markup, html};

const ROW: f64 = 40.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 42.0;
const LEFT: f64 = 14.0;
const RIGHT: f64 = 14.0;
/// A deviation of this much still counts as reproduced.
const BAND: (f64, f64) = (0.85, 1.15);

/// One claim.
#[derive(Clone, Debug)]
pub struct Deviation {
    /// What is claimed.
    pub claim: String,
    /// `""`, `"at most"` or `"at least"`.
    pub relation: &'static str,
    /// Measured over published.
    pub ratio: f64,
    /// The same of the confidence interval.
    pub interval: Option<Interval>,
    /// What became of it.
    pub status: Status,
    /// Tooltip.
    pub note: String,
}

/// Draws claims, one per row.
pub fn deviations(title: &str, claims: &[Deviation]) -> Markup {
    let ends = claims.iter().flat_map(|claim| {
        let (low, high) = claim.interval.map_or((claim.ratio, claim.ratio), |i| (i.0, i.1));
        // An interval may reach below 0; the scale need not show all of a very wide one.
        [claim.ratio, low.max(claim.ratio / 4.0), high.min(claim.ratio * 4.0)]
    });
    let axis = Axis::over("measured / published", Unit::Ratio, Spacing::Log, ends.chain([0.6, 1.7]));
    let right = WIDTH - RIGHT;
    let x = |value: f64| LEFT + axis.at(value) * (right - LEFT);
    let bottom = TOP + ROW * claims.len() as f64;
    let describe: Vec<&str> = claims.iter().map(|claim| claim.note.as_str()).collect();
    let content = html! {
        g.grid {
            @for tick in axis.ticks(7) {
                line x1=(px(x(tick))) x2=(px(x(tick))) y1=(px(TOP)) y2=(px(bottom)) {}
                text.tick.below x=(px(x(tick))) y=(px(bottom + 16.0)) { (axis.unit.text(tick)) }
            }
        }
        @for (index, claim) in claims.iter().enumerate() {
            @let top = TOP + ROW * index as f64;
            @let (from, to) = band(claim, &axis);
            @let middle = top + 28.0;
            g class=(format!("claim {}", super::status_class(claim.status))) {
                title { (claim.note) }
                text.label x=(px(LEFT)) y=(px(top + 14.0)) { (shorten(&claim.claim, 66)) }
                rect.band x=(px(x(from))) y=(px(middle - 7.0)) width=(px(x(to) - x(from))) height="14" {}
                path.one d=(format!("M{} {}v18", px(x(1.0)), px(middle - 9.0))) {}
                @if let Some(Interval(low, high)) = claim.interval {
                    path.whisker d=(format!("M{} {}H{}", px(x(low)), px(middle), px(x(high)))) {}
                }
                circle cx=(px(x(claim.ratio))) cy=(px(middle)) r="5" {}
            }
        }
        text.name.below x=(px(WIDTH / 2.0)) y=(px(bottom + 34.0)) { (axis.label) }
    };
    figure(title, &describe.join("; "), bottom + BOTTOM, &content)
}

/// What counts as reproduced: a bound has no tolerance, and holds however far it is kept.
fn band(claim: &Deviation, axis: &Axis) -> (f64, f64) {
    match claim.relation {
        "at most" => (0.0, 1.0),
        "at least" => (1.0, f64::MAX),
        _ => {
            debug_assert!(axis.at(BAND.0) < axis.at(BAND.1));
            BAND
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_in_the_band_and_bounds_are_open() {
        let claim = |relation, ratio| Deviation {
            claim: "fct_us.p99: marimo".into(),
            relation,
            ratio,
            interval: Some(Interval(-1.0, 9.0)),
            status: Status::Reproduced,
            note: "measured 1".into(),
        };
        let text = deviations("claims", &[claim("", 1.0), claim("at least", 3.0)]).into_string();
        assert_eq!(text.matches("class=\"band\"").count(), 2);
        assert!(text.contains("claim reproduced") && text.contains("measured / published"));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
