//! The comparison as Markdown, as `docs/validation.md` has it.

use super::{Compared, MOST_MOVED, figures::Figures};
use std::fmt::Write;

/// How far ours is from theirs, as a share of theirs; of a range, how far its nearer end is.
fn distance((least, most): (f64, f64), theirs: f64) -> String {
    let ours = theirs.clamp(least, most);
    match (ours == theirs, least < most) {
        (true, true) => "inside".to_owned(),
        (true, false) => "0".to_owned(),
        (false, _) => format!("{:+.2}%", (ours / theirs - 1.0) * 100.0),
    }
}

/// One row per case, ours against theirs, with the distance of mean, 99th percentile and queue.
pub fn render(all: &[Compared]) -> String {
    let mut text = String::from(
        "| case | flows | mean | | p50 | p95 | p99 | | last FCT us | largest queue KB | | pauses | worst flow | aim | met |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for one in all {
        let pair = |of: &dyn Fn(&Figures) -> String| match &one.range {
            Some((least, most)) => format!("{}–{} / {}", of(least), of(most), of(&one.theirs)),
            None => format!("{} / {}", of(&one.ours), of(&one.theirs)),
        };
        let number = |of: fn(&Figures) -> f64| pair(&|figures: &Figures| format!("{:.4}", of(figures)));
        let apart = |of: fn(&Figures) -> Option<f64>| {
            let (least, most) = one.range.as_ref().map_or((&one.ours, &one.ours), |(a, b)| (a, b));
            match (of(least), of(most), of(&one.theirs)) {
                (Some(least), Some(most), Some(theirs)) => distance((least, most), theirs),
                _ => String::new(),
            }
        };
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let worst = match (one.worst_flow_ns, one.worst_flow.is_finite()) {
            (0, _) => "0".to_owned(),
            (_, false) => "missing".to_owned(),
            (ns, true) => format!("{:.3}% ({ns} ns)", one.worst_flow * 100.0),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {worst} | {} | {} |",
            one.case,
            one.flows,
            number(|figures| figures.mean),
            apart(|figures| Some(figures.mean)),
            number(|figures| figures.p50),
            number(|figures| figures.p95),
            number(|figures| figures.p99),
            apart(|figures| Some(figures.p99)),
            pair(&|figures| format!("{:.3}", figures.last_ns as f64 / 1000.0)),
            pair(&|figures| or_dash(figures.largest_queue.map(|bytes| format!("{:.1}", bytes as f64 / 1000.0)))),
            apart(|figures| figures.largest_queue.map(|bytes| bytes as f64)),
            pair(&|figures| or_dash(figures.pauses.map(|pauses| pauses.to_string()))),
            one.aim,
            if one.met { "yes" } else { "**no**" }
        );
    }
    text
}

/// Cases that miss their aim although nothing in them is random: the figures when all starts move a little.
pub fn render_moved(all: &[Compared]) -> String {
    let mut text = String::new();
    for (one, moved) in all.iter().filter_map(|one| one.moved.as_ref().map(|moved| (one, moved))) {
        let (least, most) = &moved.range;
        let _ = writeln!(
            text,
            "\n`{}` with every start moved by up to {MOST_MOVED}, {} seeds: mean {:.4}–{:.4} / {:.4}, p99 {:.4}–{:.4} / {:.4}, \
             last FCT {:.3}–{:.3} / {:.3} us; {} of {} flows inside their own range",
            one.case,
            moved.runs,
            least.mean,
            most.mean,
            one.theirs.mean,
            least.p99,
            most.p99,
            one.theirs.p99,
            least.last_ns as f64 / 1000.0,
            most.last_ns as f64 / 1000.0,
            one.theirs.last_ns as f64 / 1000.0,
            moved.flows_inside,
            one.flows,
        );
        if one.bins.len() > 1 {
            let _ = writeln!(text, "\n| from | mean | p99 |\n|---|---|---|");
            for ((theirs, _), (least, most)) in one.bins.iter().zip(&moved.bins) {
                let _ = writeln!(
                    text,
                    "| {} B | {:.4}–{:.4} / {:.4} | {:.4}–{:.4} / {:.4} |",
                    theirs.from, least.mean, most.mean, theirs.mean, least.p99, most.p99, theirs.p99
                );
            }
        }
    }
    text
}

/// One row per bin of sizes of the cases that are judged by them.
pub fn render_bins(all: &[Compared]) -> String {
    let mut text = String::new();
    for one in all.iter().filter(|one| one.bins.len() > 1 && one.flows > 100) {
        let _ = writeln!(text, "\n| `{}`, from | flows | mean | | p99 | |\n|---|---|---|---|---|---|", one.case);
        for (theirs, ours) in &one.bins {
            let share = |ours: f64, theirs: f64| format!("{:+.2}%", (ours / theirs - 1.0) * 100.0);
            let _ = writeln!(
                text,
                "| {} B | {} | {:.4} / {:.4} | {} | {:.4} / {:.4} | {} |",
                theirs.from,
                theirs.flows,
                ours.mean,
                theirs.mean,
                share(ours.mean, theirs.mean),
                ours.p99,
                theirs.p99,
                share(ours.p99, theirs.p99)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_are_to_the_nearer_end() {
        assert_eq!(distance((2.0, 2.0), 2.0), "0");
        assert_eq!(distance((1.0, 3.0), 2.0), "inside");
        assert_eq!(distance((1.0, 1.9), 2.0), "-5.00%");
        assert_eq!(distance((2.1, 3.0), 2.0), "+5.00%");
    }
}
