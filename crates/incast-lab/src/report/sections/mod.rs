//! One file for each section of the page.

pub mod claims;
pub mod comparison;
pub mod cost;
pub mod distributions;
pub mod estimates;
pub mod over_time;
pub mod published;
pub mod scenario;
pub mod sizes;
pub mod sweep;
pub mod tuning;
pub mod verdict;

use crate::results::read::{Point, Results};
use crate::{
    metrics::{self, Metric},
    results::{
        claims::Judgement,
        comparison::{Shows, lines},
        row::{ALL, Row},
    },
};
use maud::{Markup, html};

/// A table that scrolls by itself where it is wider than the screen.
pub fn scrolling(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// The part of a title that names the flows.
pub fn of_class(class: &str) -> String {
    if class == ALL { "all flows".to_owned() } else { class.to_owned() }
}

/// A number of a row, or else its lower bound.
pub fn value_or_bound(row: &Row, metric: &str) -> (Option<f64>, Option<f64>) {
    (row.number(metric), row.bound(metric))
}

/// Times of a class's flows have common percentiles at a grid point: its flows are not of classes of very different sizes.
pub fn has_common_times(results: &Results, point: &Point, class: &str) -> bool {
    let is_mixed = |scheme: &String| {
        let rows: Vec<&Row> = results.classes.iter().filter_map(|class| results.pooled(point, scheme, class)).collect();
        lines(&rows, &results.classes).iter().any(|line| line.shows == Shows::Mixed)
    };
    class != ALL || !results.schemes.iter().any(is_mixed)
}

/// Some pooled row of this class has the number, or a bound of it.
pub fn is_measured(results: &Results, class: &str, metric: &str) -> bool {
    results.rows.iter().filter(|row| row.is_pooled() && row.class == class).any(|row| {
        let (value, bound) = value_or_bound(row, metric);
        value.or(bound).is_some()
    })
}

/// Adds the metric of a claim to what is drawn, unless it is there.
pub fn add_claimed<'a>(drawn: &mut Vec<(&'a str, &'static Metric)>, claim: &'a Judgement) {
    if let Some(metric) = metrics::find(&claim.metric)
        && !drawn.iter().any(|(class, known)| *class == claim.class && known.name == metric.name)
    {
        drawn.push((&claim.class, metric));
    }
}
