//! Horizontal bars: one for each scheme, with its confidence interval and the published number.

use super::{Axis, Spacing, Unit, WIDTH, figure, px, shorten};
use crate::{metrics::statistics::Interval, text::spread};
use maud::{Markup, html};

const ROW: f64 = 46.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 24.0;
const BAR: f64 = 13.0;
const LEFT: f64 = 4.0;
const RIGHT: f64 = 14.0;

/// One scheme.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its place among the schemes.
    pub series: usize,
    /// Its name.
    pub name: String,
    /// What was measured.
    pub value: Option<f64>,
    /// A lower bound, where the value is not known.
    pub at_least: Option<f64>,
    /// 95% confidence interval over seeds.
    pub interval: Option<Interval>,
    /// Published numbers: `""`, `"at most"` or `"at least"`, and the number.
    pub published: Vec<(&'static str, f64)>,
}

impl Bar {
    /// The bar in words.
    fn text(&self, unit: Unit) -> String {
        let measured = match (self.value, self.at_least, self.interval) {
            (Some(value), _, Some(Interval(low, high))) => {
                format!("{} {}", unit.text(value), spread(value, (low, high), |number| unit.text(number)))
            }
            (Some(value), _, None) => unit.text(value),
            (None, Some(bound), _) => format!("≥ {}", unit.text(bound)),
            (None, None, _) => "not measured".to_owned(),
        };
        let published =
            self.published.iter().map(|(relation, value)| format!(", published {relation} {}", unit.text(*value)));
        let all: String = [measured].into_iter().chain(published).collect();
        all.replace("  ", " ")
    }
}

/// A chart of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What is shown.
    pub title: String,
    /// Its unit.
    pub unit: Unit,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// Draws them.
pub fn bars(chart: &Bars) -> Markup {
    let unit = chart.unit;
    let values = chart.bars.iter().flat_map(|bar| {
        let interval = bar.interval.map(|interval| interval.1);
        let published = bar.published.iter().map(|(_, value)| *value);
        [bar.value, bar.at_least, interval].into_iter().flatten().chain(published).collect::<Vec<_>>()
    });
    let axis = Axis::over("", unit, Spacing::Linear, values);
    let x = |value: f64| LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT);
    let bottom = TOP + ROW * chart.bars.len() as f64;
    let describe: Vec<String> = chart.bars.iter().map(|bar| format!("{}: {}", bar.name, bar.text(unit))).collect();
    let content = html! {
        g.grid {
            @for tick in axis.ticks(4) {
                line x1=(px(x(tick))) x2=(px(x(tick))) y1=(px(TOP)) y2=(px(bottom)) {}
                text.tick.{ (side(axis.at(tick))) } x=(px(x(tick))) y=(px(bottom + 16.0)) {
                    (unit.text(tick))
                }
            }
        }
        @for (index, bar) in chart.bars.iter().enumerate() {
            @let top = TOP + ROW * index as f64;
            g class=(super::series_class(bar.series)) data-series=(bar.series) {
                title { (bar.name) ": " (bar.text(unit)) }
                text.label x=(px(LEFT)) y=(px(top + 15.0)) { (shorten(&bar.name, 28)) }
                text.value x=(px(WIDTH - RIGHT)) y=(px(top + 15.0)) { (bar.text(unit)) }
                @if let Some(value) = bar.value.or(bar.at_least) {
                    rect.bar.bound[bar.value.is_none()] x=(px(LEFT)) y=(px(top + 21.0))
                        width=(px((x(value) - LEFT).max(1.0))) height=(px(BAR)) rx="2" {}
                }
                @if let (Some(Interval(low, high)), Some(_)) = (bar.interval, bar.value) {
                    @let middle = top + 21.0 + BAR / 2.0;
                    path.whisker d=(format!("M{} {}H{}m0 -4v8M{} {}m0 -4v8",
                        px(x(low)), px(middle), px(x(high)), px(x(low)), px(middle))) {}
                }
                @for (relation, value) in &bar.published {
                    path.published d=(flag(relation, x(*value), top + 21.0)) {}
                }
            }
        }
    };
    figure(&chart.title, &describe.join("; "), bottom + BOTTOM, &content)
}

/// The direction of a tick's text, so that it stays inside at both ends.
fn side(at: f64) -> &'static str {
    match at {
        0.0..0.04 => "start",
        0.92.. => "value",
        _ => "below",
    }
}

/// A published number: a stroke across the bar, with an arrow to where a bound allows values.
fn flag(relation: &str, x: f64, top: f64) -> String {
    let arrow = match relation {
        "at most" => format!("M{} {}h-9m4 -4l-4 4l4 4", px(x), px(top + BAR + 5.0)),
        "at least" => format!("M{} {}h9m-4 -4l4 4l-4 4", px(x), px(top + BAR + 5.0)),
        _ => String::new(),
    };
    format!("M{} {}v{}{arrow}", px(x), px(top - 4.0), px(BAR + 8.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, value: Option<f64>) -> Bar {
        Bar { series: 0, name: name.into(), value, at_least: None, interval: None, published: Vec::new() }
    }

    #[test]
    fn bars_say_what_is_known() {
        let text = |bar: &Bar| bar.text(Unit::Time);
        assert_eq!(text(&bar("a", Some(5.0))), "5 µs");
        let all = Bar { interval: Some(Interval(4.0, 6.0)), published: vec![("at most", 7.0)], ..bar("a", Some(5.0)) };
        assert_eq!(text(&all), "5 µs ±1 µs, published at most 7 µs");
        assert_eq!(text(&Bar { at_least: Some(2000.0), ..bar("a", None) }), "≥ 2 ms");
        assert_eq!(text(&bar("a", None)), "not measured");
    }

    #[test]
    fn bounds_are_not_drawn_as_values() {
        let draw = |bar: Bar| bars(&Bars { title: "p99".into(), unit: Unit::Time, bars: vec![bar] }).into_string();
        assert!(draw(Bar { at_least: Some(9.0), ..bar("a", None) }).contains("class=\"bar bound\""));
        let known = draw(Bar { published: vec![("", 10.0)], ..bar("a", Some(5.0)) });
        assert!(!known.contains("bound") && known.contains("class=\"published\""), "{known}");
        // Half of the width for half of the largest number.
        assert!(known.contains("width=\"231\""), "{known}");
    }
}
