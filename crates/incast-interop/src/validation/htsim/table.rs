//! The comparison as Markdown, as `docs/validation.md` has it.

use super::{Compared, Figures};
use std::fmt::Write;

/// One row per case: ours / theirs, the range over our seeds in brackets behind what the aims are about.
pub fn render(all: &[Compared]) -> String {
    let mut text = String::from(
        "| case | flows | min us | mean us | | p50 us | p99 us | | max us | trims | drops | aim | met |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for one in all {
        let (least, most) = &one.range;
        let pair = |of: fn(&Figures) -> f64| format!("{:.1} / {:.1}", of(&one.ours), of(&one.theirs));
        let judged = |of: fn(&Figures) -> f64| {
            let distance = (of(&one.ours) / of(&one.theirs) - 1.0) * 100.0;
            format!(
                "{:.1} ({:.1}–{:.1}) / {:.1} | {distance:+.2}%",
                of(&one.ours),
                of(least),
                of(most),
                of(&one.theirs)
            )
        };
        let count = |of: fn(&Figures) -> Option<f64>| {
            let shown = |figures: &Figures| of(figures).map_or_else(|| "–".to_owned(), |count| format!("{count:.0}"));
            let range = of(&one.ours).map(|_| format!(" ({}–{})", shown(least), shown(most))).unwrap_or_default();
            format!("{}{range} / {}", shown(&one.ours), shown(&one.theirs))
        };
        let flows = match one.flows * one.seeds {
            all if all == one.completed => one.flows.to_string(),
            all => format!("{}, **{} of {all} ended**", one.flows, one.completed),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| `{}` | {flows} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.case,
            pair(|figures| figures.min),
            judged(|figures| figures.mean),
            pair(|figures| figures.p50),
            judged(|figures| figures.p99),
            pair(|figures| figures.max),
            count(|figures| figures.trims),
            count(|figures| figures.drops),
            one.aim,
            match one.met {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "–",
            }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_is_near_and_what_is_missing() {
        let figures = |mean: f64, trims| Figures { mean, p99: 2.0 * mean, trims, ..Figures::default() };
        let mut compared = Compared {
            case: "c",
            aim: "near",
            met: Some(true),
            flows: 3,
            completed: 6,
            seeds: 2,
            theirs: figures(100.0, Some(7.0)),
            ours: figures(101.0, Some(8.0)),
            range: (figures(99.0, Some(6.0)), figures(103.0, Some(10.0))),
        };
        let row = render(std::slice::from_ref(&compared));
        let row = row.lines().last().unwrap_or_default();
        assert_eq!(
            row,
            "| `c` | 3 | 0.0 / 0.0 | 101.0 (99.0–103.0) / 100.0 | +1.00% | 0.0 / 0.0 | 202.0 (198.0–206.0) / 200.0 | +1.00% | \
             0.0 / 0.0 | 8 (6–10) / 7 | – / – | near | yes |"
        );
        compared.completed = 5;
        assert!(render(&[compared]).contains("| 3, **5 of 6 ended** |"));
    }
}
