//! Charts as SVG. Each has a title and a description for those who do not see it, tooltips for those who do, and
//! colours that come from the page's style, so that they fit light and dark screens.
//!
//! Written by hand: the page needs a dozen shapes, and drawing libraries (`plotters` is the well-kept one) put colours
//! and fonts into every shape, which a style cannot change, and know neither tooltips nor descriptions.

mod bars;
mod deviations;
mod lines;
mod scale;

pub use bars::{Bar, Bars, bars};
pub use deviations::{Deviation, deviations};
pub use lines::{Curve, Mark, Plot, plot};
pub use scale::{Axis, Spacing, Unit};

use crate::results::claims::Status;
use maud::{Markup, html};

/// Width of every chart, in its own units; the page scales it.
pub const WIDTH: f64 = 480.0;

/// Colours in the page's style; for more see [`further_colours`].
const COLOURS: usize = 8;

/// Classes of what belongs to a scheme: its colour and its dash.
pub fn series_class(series: usize) -> String {
    format!("s{series} d{}", series % 5)
}

/// The colours of schemes beyond those of the style sheet: hues a golden angle apart, so that none comes twice, in
/// three lightnesses.
pub fn further_colours(schemes: usize) -> String {
    let colour = |series: usize, lightnesses: [u32; 3]| {
        let hue = (series as f64 * 137.508) % 360.0;
        format!(".s{series} {{ --c: hsl({hue:.0} 65% {}%); }} ", lightnesses[series % 3])
    };
    let all = |lightnesses| (COLOURS..schemes).map(|series| colour(series, lightnesses)).collect::<String>();
    if schemes <= COLOURS {
        return String::new();
    }
    format!("{}@media (prefers-color-scheme: dark) {{ {}}}", all([30, 38, 46]), all([60, 70, 80]))
}

/// Class of what became of a claim.
pub fn status_class(status: Status) -> &'static str {
    match status {
        Status::Reproduced => "reproduced",
        Status::SameDirection => "direction",
        Status::Inconclusive => "open",
        Status::NotReproduced => "missed",
    }
}

/// A chart in its frame: `content` is drawn on `WIDTH` by `height`.
fn figure(title: &str, describe: &str, height: f64, content: &Markup) -> Markup {
    html! {
        figure.chart {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(format!("{title}. {describe}")) {
                title { (title) }
                desc { (describe) }
                (content)
            }
        }
    }
}

/// A coordinate: a tenth of a unit is less than a pixel, and digits are most of a page's size.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// At most `most` characters.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_wherever_they_appear() {
        let nasty = "<script>alert('x')</script>\" & co";
        let text = figure(nasty, nasty, 10.0, &html! { text { (nasty) } }).into_string();
        assert!(!text.contains("<script>") && !text.contains("\" & co"), "{text}");
        assert!(text.contains("&lt;script&gt;") && text.contains("&quot; &amp; co"), "{text}");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([px(1.0), px(1.25), px(-0.04)], ["1", "1.2", "-0"].map(str::to_owned));
        assert_eq!((shorten("schemes", 7), shorten("schemes", 4)), ("schemes".into(), "sch…".into()));
    }
}
