//! Slowdown by flow size.

use super::of_class;
use crate::results::read::{Point, Results};
use crate::{
    metrics::SizeBin,
    report::chart::{Axis, Curve, Mark, Plot, Spacing, Unit, plot},
    results::row::Row,
    text::grouped,
};
use maud::{Markup, html};

/// Value and lower bound of a bin.
type Of = fn(&SizeBin) -> (Option<f64>, Option<f64>);

const METRICS: [(&str, Of); 2] =
    [("median", |bin| (bin.p50, bin.p50_at_least)), ("99th percentile", |bin| (bin.p99, bin.p99_at_least))];

/// The slowdowns of a grid point; nothing where all flows are of one size.
pub fn section(results: &Results, point: &Point) -> Markup {
    let mut charts = Vec::new();
    for class in &results.classes {
        let rows: Vec<(usize, &Row)> = results
            .schemes
            .iter()
            .enumerate()
            .filter_map(|(series, scheme)| Some((series, results.pooled(point, scheme, class)?)))
            .collect();
        if rows.iter().all(|(_, row)| row.by_size.len() < 2) {
            continue;
        }
        for (words, of) in METRICS {
            charts.push(chart(&rows, class, words, of));
        }
    }
    html! {
        @if !charts.is_empty() {
            section.sizes {
                h2 { "Slowdown by flow size" }
                p.note { "Time to delivery over that of the same flow alone. A mark stands at the largest size of its bin; an arrow is a lower bound." }
                div.charts { @for chart in &charts { (chart) } }
            }
        }
    }
}

fn chart(rows: &[(usize, &Row)], class: &str, words: &str, of: Of) -> Markup {
    let curves: Vec<Curve> = rows
        .iter()
        .map(|(series, row)| {
            let marks: Vec<Mark> = row.by_size.iter().filter_map(|bin| mark(&row.scheme, bin, of)).collect();
            let points = marks.iter().map(|mark| mark.at).collect();
            Curve { series: *series, note: row.scheme.clone(), points, marks, ..Curve::default() }
        })
        .collect();
    let all = || curves.iter().flat_map(|curve| curve.points.iter());
    let describe: Vec<String> = rows
        .iter()
        .zip(&curves)
        .filter_map(|((_, row), curve)| {
            let worst = curve.points.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(format!("{}: at most {}, at {}", row.scheme, Unit::Ratio.text(worst.1), Unit::Bytes.text(worst.0)))
        })
        .collect();
    plot(&Plot {
        title: format!("{words} of the slowdown, {}", of_class(class)),
        describe: describe.join("; "),
        x: Axis::over("flow size", Unit::Bytes, Spacing::Log, all().map(|point| point.0)),
        y: Axis::over("slowdown", Unit::Ratio, Spacing::Log, all().map(|point| point.1).chain([1.0])),
        curves,
    })
}

fn mark(scheme: &str, bin: &SizeBin, of: Of) -> Option<Mark> {
    let (value, bound) = of(bin);
    let y = value.or(bound)?;
    let at_least = value.is_none();
    let note = format!(
        "{scheme}, to {}: {}{}, {} flows",
        Unit::Bytes.text(bin.upto_bytes as f64),
        if at_least { "≥ " } else { "" },
        Unit::Ratio.text(y),
        grouped(bin.flows)
    );
    Some(Mark { at: (bin.upto_bytes as f64, y), interval: None, at_least, note })
}
