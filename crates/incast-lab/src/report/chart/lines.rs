//! Curves: distributions, time series, a metric along a grid's axis.

use super::{WIDTH, figure, px, scale::Axis};
use crate::metrics::statistics::Interval;
use maud::{Markup, html};
use std::fmt::Write;

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;

/// A point that is drawn as a mark.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its place.
    pub at: (f64, f64),
    /// 95% confidence interval of the value.
    pub interval: Option<Interval>,
    /// The value is only known not to be smaller.
    pub at_least: bool,
    /// Tooltip.
    pub note: String,
}

/// A line through points, through marks, or marks alone.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Which colour, dash and shape it has: the place of its scheme.
    pub series: usize,
    /// Tooltip of the line.
    pub note: String,
    /// The line.
    pub points: Vec<(f64, f64)>,
    /// Marks on it.
    pub marks: Vec<Mark>,
    /// These are published numbers.
    pub published: bool,
    /// Drawn thinner, behind the others.
    pub faint: bool,
    /// Moved to the right by this much, so that marks of one place stand beside each other.
    pub shift: f64,
}

/// A plot of curves.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What is shown.
    pub title: String,
    /// The same for those who do not see it.
    pub describe: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, later ones above earlier ones.
    pub curves: Vec<Curve>,
}

/// Draws it.
pub fn plot(plot: &Plot) -> Markup {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let x = |value: f64| LEFT + plot.x.at(value) * (right - LEFT);
    let y = |value: f64| bottom - plot.y.at(value) * (bottom - TOP);
    let content = html! {
        g.grid {
            @for tick in plot.y.ticks(5) {
                line x1=(px(LEFT)) x2=(px(right)) y1=(px(y(tick))) y2=(px(y(tick))) {}
                text.tick.left x=(px(LEFT - 6.0)) y=(px(y(tick) + 4.0)) { (plot.y.unit.text(tick)) }
            }
            @for tick in plot.x.ticks(6) {
                line x1=(px(x(tick))) x2=(px(x(tick))) y1=(px(TOP)) y2=(px(bottom)) {}
                text.tick.below x=(px(x(tick))) y=(px(bottom + 17.0)) { (plot.x.unit.text(tick)) }
            }
        }
        path.frame d=(format!("M{} {}V{}H{}", px(LEFT), px(TOP), px(bottom), px(right))) {}
        text.name.below x=(px((LEFT + right) / 2.0)) y=(px(HEIGHT - 8.0)) { (plot.x.label) }
        @for curve in &plot.curves { (drawn(curve, &|value| x(value) + curve.shift, &y)) }
    };
    figure(&plot.title, &plot.describe, HEIGHT, &content)
}

fn drawn(curve: &Curve, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> Markup {
    let mut class = super::series_class(curve.series);
    class.push_str(if curve.published { " published" } else { " measured" });
    if curve.faint {
        class.push_str(" faint");
    }
    html! {
        g class=(class) data-series=(curve.series) {
            @if !curve.points.is_empty() {
                path.line d=(path(&curve.points, x, y)) { title { (curve.note) } }
            }
            @for mark in &curve.marks {
                @let (at_x, at_y) = (x(mark.at.0), y(mark.at.1));
                g.mark {
                    title { (mark.note) }
                    @if let Some(Interval(low, high)) = mark.interval {
                        path.whisker d=(format!("M{} {}V{}", px(at_x), px(y(low)), px(y(high)))) {}
                    }
                    path d=(shape(curve, mark.at_least, at_x, at_y)) {}
                }
            }
        }
    }
}

/// The marks of different schemes differ in shape too; a lower bound is an arrow, a published number a ring.
fn shape(curve: &Curve, at_least: bool, x: f64, y: f64) -> String {
    let at = format!("M{} {}", px(x), px(y));
    match curve.series % 4 {
        _ if at_least => format!("{at}m0 3v-14m-4 5l4 -5l4 5"),
        _ if curve.published => format!("{at}m-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0"),
        0 => format!("{at}m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z"),
        1 => format!("{at}m-3.3 -3.3h6.6v6.6h-6.6z"),
        2 => format!("{at}m0 -4.4l4.2 7.4h-8.4z"),
        _ => format!("{at}m0 -4.8l4.8 4.8l-4.8 4.8l-4.8 -4.8z"),
    }
}

fn path(points: &[(f64, f64)], x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut text = String::new();
    for (index, (at_x, at_y)) in points.iter().enumerate() {
        // Writing to a string cannot fail. After `M`, pairs are lines.
        let _ = write!(text, "{}{} {}", if index == 0 { "M" } else { " " }, px(x(*at_x)), px(y(*at_y)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Spacing, Unit};
    use super::*;

    #[test]
    fn curves_marks_and_tooltips_are_drawn() {
        let axis = |label: &str| Axis::over(label, Unit::Time, Spacing::Linear, [0.0, 10.0].into_iter());
        let mark =
            Mark { at: (5.0, 5.0), interval: Some(Interval(4.0, 6.0)), at_least: false, note: "5 µs & more".into() };
        let curve = Curve { series: 1, points: vec![(0.0, 0.0), (10.0, 10.0)], marks: vec![mark], ..Curve::default() };
        let text = plot(&Plot {
            title: "FCT".into(),
            describe: "of two schemes".into(),
            x: axis("time"),
            y: axis("delay"),
            curves: vec![curve],
        })
        .into_string();
        assert!(text.contains("M68 254 454 12"), "{text}");
        for part in
            ["<title>FCT</title>", "<desc>of two schemes</desc>", "5 µs &amp; more", "M261 157.2V108.8", ">10 µs<"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.contains("data-series=\"1\""));
    }
}
