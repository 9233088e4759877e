//! Metrics along the grid's axis: how schemes do as the load, a threshold or a delay grows.

use super::{add_claimed, has_common_times, is_measured, of_class, value_or_bound};
use crate::results::read::{Point, Results};
use crate::{
    metrics::{Metric, metric, statistics::Interval},
    report::chart::{Axis, Curve, Mark, Plot, Spacing, Unit, plot},
    results::row::ALL,
    text::grid_point,
};
use incast_units::{Bytes, Rate, Time};
use maud::{Markup, html};
use serde_json::Value;

/// What is drawn of all flows, where it was measured.
const METRICS: [&Metric; 8] = [
    metric("fct_us.p50"),
    metric("fct_us.p99"),
    metric("slowdown.p99"),
    metric("rct_us.p99"),
    metric("goodput_gbps"),
    metric("long_flow_gbps"),
    metric("jain"),
    metric("convergence_us"),
];
/// What is drawn of each class.
const OF_A_CLASS: &Metric = metric("fct_us.p99");
/// Whiskers that end higher than this many times the highest value are cut off.
const MOST_ABOVE: f64 = 30.0;
/// Between the marks of two schemes, in units of the chart.
const SHIFT: f64 = 4.0;
/// Combinations of the other axes that are drawn.
const MOST_COMBINATIONS: usize = 6;

/// Line charts over the axis with the most numbers; one group of charts for each combination of the others.
pub fn section(results: &Results) -> Markup {
    let Some((axis, unit)) = numeric_axis(&results.points) else { return html! {} };
    let mut others: Vec<Point> = Vec::new();
    for point in &results.points {
        let mut rest = point.clone();
        rest.remove(&axis);
        if !others.contains(&rest) {
            others.push(rest);
        }
    }
    let left_out = others.len().saturating_sub(MOST_COMBINATIONS);
    others.truncate(MOST_COMBINATIONS);
    let are_alike = results.points.iter().all(|point| has_common_times(results, point, ALL));
    let of_all = METRICS.iter().filter(|metric| are_alike || !metric.name.starts_with("fct_us."));
    let mut drawn: Vec<(&str, &Metric)> = of_all.map(|metric| (ALL, *metric)).collect();
    drawn.extend(results.classes.iter().filter(|class| *class != ALL).map(|class| (class.as_str(), OF_A_CLASS)));
    for claim in results.claims.iter().filter(|claim| !claim.is_ratio) {
        add_claimed(&mut drawn, claim);
    }
    drawn.retain(|(class, metric)| is_measured(results, class, metric.name));
    html! {
        section.sweep {
            h2 { "Along " code { (axis) } }
            p.note {
                "Whiskers are 95% confidence intervals over seeds, the highest cut off at thirty times the highest value; arrows lower bounds, rings published numbers."
                @if left_out > 0 { " " (left_out) " combinations of the other axes are not drawn; summary.csv has them." }
            }
            @for rest in &others {
                @if !rest.is_empty() { h3 { (grid_point(rest)) } }
                div.charts {
                    @for (class, metric) in &drawn { (chart(results, (&axis, unit), rest, class, metric)) }
                }
            }
        }
    }
}

/// A value of an axis as a number, and its unit: `"0.1bdp"`, `"100us"`, `"4MB"` and `"25Gbps"` are numbers, too.
fn quantity(value: &Value) -> Option<(f64, &'static str)> {
    let Some(text) = value.as_str() else { return value.as_f64().map(|number| (number, "")) };
    if let Some(number) = text.strip_suffix("bdp") {
        return Some((number.trim().parse().ok()?, "BDP"));
    }
    let time = text.parse::<Time>().ok().map(|time| (time.as_secs_f64() * 1e6, "us"));
    let bytes = || text.parse::<Bytes>().ok().map(|bytes| (bytes.get() as f64 / 1e3, "KB"));
    let rate = || text.parse::<Rate>().ok().map(|rate| (rate.as_f64() / 1e9, "Gbps"));
    time.or_else(bytes).or_else(rate)
}

/// The axis with the most distinct numbers of one unit, at least two, and nothing else; and the unit.
fn numeric_axis(points: &[Point]) -> Option<(String, &'static str)> {
    let mut best: Option<(usize, String, &'static str)> = None;
    for axis in points.first()?.keys() {
        let numbers: Option<Vec<_>> = points.iter().map(|point| point.get(axis).and_then(quantity)).collect();
        let Some(numbers) = numbers else { continue };
        let unit = numbers.first()?.1;
        let is_one = numbers.iter().all(|(_, other)| *other == unit);
        let mut numbers: Vec<f64> = numbers.into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        if is_one && numbers.len() >= 2 && best.as_ref().is_none_or(|(most, ..)| numbers.len() > *most) {
            best = Some((numbers.len(), axis.clone(), unit));
        }
    }
    best.map(|(_, axis, unit)| (axis, unit))
}

fn chart(results: &Results, (axis, of): (&str, &str), rest: &Point, class: &str, metric: &Metric) -> Markup {
    let unit = Unit::of(metric.name);
    let space = if of.is_empty() { "" } else { " " };
    let mut curves = Vec::new();
    for (series, scheme) in results.schemes.iter().enumerate() {
        let shift = (series as f64 - (results.schemes.len() - 1) as f64 / 2.0) * SHIFT;
        let mut marks: Vec<Mark> = results
            .rows
            .iter()
            .filter(|row| row.is_pooled() && row.scheme == *scheme && row.class == class)
            .filter(|row| rest.iter().all(|(path, value)| row.grid.get(path) == Some(value)))
            .filter_map(|row| {
                let (x, _) = quantity(row.grid.get(axis)?)?;
                let (value, bound) = value_or_bound(row, metric.name);
                let interval = value.and(row.interval(metric.name));
                let ends = interval.map(|Interval(low, high)| format!(" ({} to {})", unit.text(low), unit.text(high)));
                let y = value.or(bound)?;
                let sign = if value.is_none() { "≥ " } else { "" };
                let note = format!("{scheme} at {x}{space}{of}: {sign}{}{}", unit.text(y), ends.unwrap_or_default());
                Some(Mark { at: (x, y), interval, at_least: value.is_none(), note })
            })
            .collect();
        marks.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
        let points = marks.iter().map(|mark| mark.at).collect();
        curves.push(Curve { series, note: scheme.clone(), points, marks, shift, ..Curve::default() });
        let published = results.claims.iter().filter(|claim| {
            let plain = !claim.is_ratio && !claim.ours;
            plain && claim.scheme == *scheme && claim.class == class && claim.metric == metric.name
        });
        let rings: Vec<Mark> = published
            .filter(|claim| rest.iter().all(|(path, value)| claim.grid.get(path) == Some(value)))
            .filter_map(|claim| {
                let (x, _) = quantity(claim.grid.get(axis)?)?;
                let note =
                    format!("{scheme} at {x}{space}{of}: published {} {}", claim.relation, unit.text(claim.published));
                Some(Mark { at: (x, claim.published), interval: None, at_least: false, note })
            })
            .collect();
        if !rings.is_empty() {
            curves.push(Curve { series, marks: rings, published: true, shift, ..Curve::default() });
        }
    }
    let all = || curves.iter().flat_map(|curve| curve.marks.iter());
    let smallest = all().map(|mark| mark.at.1).fold(f64::INFINITY, f64::min);
    let highest = all().map(|mark| mark.at.1).fold(0.0, f64::max);
    let whole = |mark: &Mark| mark.interval.map(|interval| interval.1.min(highest * MOST_ABOVE));
    let low = |mark: &Mark| mark.interval.map(|interval| interval.0).filter(|low| *low * MOST_ABOVE > smallest);
    let ends = || all().flat_map(|mark| [Some(mark.at.1), whole(mark), low(mark)].into_iter().flatten());
    // Delays explode: where they span more than a decade, small ones must stay readable.
    let largest = ends().fold(0.0, f64::max);
    let spacing = if smallest > 0.0 && largest > 10.0 * smallest { Spacing::Log } else { Spacing::Linear };
    let describe: Vec<&str> = all().map(|mark| mark.note.as_str()).collect();
    plot(&Plot {
        title: format!("{}, {}", metric.title, of_class(class)),
        describe: describe.join("; "),
        x: Axis::between(
            &if of.is_empty() { axis.to_owned() } else { format!("{axis} ({of})") },
            Unit::Number,
            all().map(|mark| mark.at.0),
        ),
        y: Axis::over(metric.title, unit, spacing, ends()),
        curves,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_axis_with_the_most_numbers_is_across() {
        let point = |value: Value| value.as_object().cloned().expect("an object");
        let points = [
            point(json!({"a": 1, "load": 0.2, "sizes": "web"})),
            point(json!({"a": 1, "load": 0.4, "sizes": "rpc"})),
            point(json!({"a": 2, "load": 0.6, "sizes": "kv"})),
        ];
        assert_eq!(numeric_axis(&points), Some(("load".to_owned(), "")));
        assert_eq!(numeric_axis(&[point(json!({"delay": "1us"}))]), None);
        let pair = |a: &str, b: &str| numeric_axis(&[point(json!({"at": a})), point(json!({"at": b}))]);
        for (a, b, unit) in
            [("0.1bdp", "1bdp", "BDP"), ("900ns", "2us", "us"), ("4MB", "65KB", "KB"), ("25Gbps", "1Tbps", "Gbps")]
        {
            assert_eq!(pair(a, b), Some(("at".to_owned(), unit)), "{a} {b}");
        }
        assert_eq!((pair("0.1bdp", "4MB"), pair("1us", "1000ns"), pair("off", "1us")), (None, None, None));
        assert_eq!(quantity(&json!("4MB")), Some((4_000.0, "KB")));
        assert_eq!(numeric_axis(&[Point::new()]), None);
    }
}
