//! Refuses what does not fit into the machine's memory before it starts.

use super::RunError;
use crate::{
    scenario::Run,
    text::{bytes, grouped},
};

/// How many runs may be simulated at once, each on `threads` threads.
///
/// `jobs` is the requested number, or the number of cores if `is_requested` is false: then fewer are run at once rather
/// than none.
///
/// # Errors
/// The runs do not fit, with the estimate and the largest that fits.
pub fn admit(
    runs: &[Run],
    jobs: usize,
    is_requested: bool,
    threads: usize,
    available: Option<u64>,
) -> Result<usize, RunError> {
    let mut needs: Vec<(u64, &Run)> = runs.iter().map(|run| (run.memory(threads).total(), run)).collect();
    needs.sort_by_key(|(need, _)| std::cmp::Reverse(*need));
    let sizes: Vec<u64> = needs.iter().map(|(need, _)| *need).collect();
    let (Some((largest, run)), Some(available)) = (needs.first(), available) else {
        return Ok(jobs);
    };
    let fits = fitting(&sizes, available);
    if fits == 0 {
        let smaller = needs.iter().find(|(need, _)| *need <= available);
        let what_fits = match smaller {
            Some((need, run)) => {
                format!("the largest run of this scenario that fits is {} ({})", run.folder, bytes(*need))
            }
            None => largest_that_fits(run, threads, available),
        };
        return Err(RunError::Memory(format!(
            "{} needs about {} of memory and {} are available; {what_fits}",
            run.folder,
            bytes(*largest),
            bytes(available)
        )));
    }
    if fits < jobs && is_requested {
        return Err(RunError::Memory(format!(
            "{jobs} runs at once need about {} of memory and {} are available; the largest that fits is --jobs {fits}",
            bytes(sizes.iter().take(jobs).sum()),
            bytes(available)
        )));
    }
    Ok(jobs.min(fits))
}

/// What of a run would fit, in the terms of whoever has to make it smaller: hosts, samples or flows.
fn largest_that_fits(run: &Run, threads: usize, available: u64) -> String {
    let need = run.memory(threads);
    let available = available as f64;
    if need.fabric > available {
        let part = f64::from(run.hosts()) * available / need.fabric;
        return if part < 2.0 {
            "no fabric fits into that".to_owned()
        } else {
            format!("the largest that fits is a fabric of about {} hosts like its {}", two_digits(part), run.hosts())
        };
    }
    let left = available - need.fabric;
    if need.samples > left {
        let times = two_digits((need.samples / (left - need.flows).max(left / 2.0)).ceil().max(2.0));
        return format!(
            "its samples alone take {}: sample {times} times fewer ports or flows, or less often",
            bytes(need.samples as u64)
        );
    }
    let flows = run.expected_flows();
    let part = flows * (left - need.samples).max(0.0) / need.flows.max(1.0);
    format!(
        "the largest that fits has about {} of its {} flows: shorten `duration`, or lower the load",
        two_digits(part),
        two_digits(flows)
    )
}

/// A count in words, rounded down to two digits.
fn two_digits(count: f64) -> String {
    let mut scale = 1.0;
    while count / scale >= 100.0 {
        scale *= 10.0;
    }
    let rounded = (count / scale).floor() * scale;
    match rounded {
        _ if rounded >= 1e15 => format!("{rounded:.1e}"),
        _ => grouped(rounded as u64),
    }
}

/// How many of the largest runs fit side by side.
fn fitting(sizes: &[u64], available: u64) -> usize {
    let mut left = available;
    let fit = sizes.iter().map_while(|need| {
        left = left.checked_sub(*need)?;
        Some(())
    });
    match fit.count() {
        all if all == sizes.len() => usize::MAX,
        some => some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_runs_must_fit_side_by_side() {
        assert_eq!(fitting(&[50, 40, 10], 100), usize::MAX);
        assert_eq!(fitting(&[50, 40, 11], 100), 2);
        assert_eq!(fitting(&[101, 1], 100), 0);
        assert_eq!(fitting(&[u64::MAX, u64::MAX], u64::MAX), 1);
    }

    #[test]
    fn counts_have_two_digits() {
        for (count, text) in [(0.4, "0"), (7.0, "7"), (99.9, "99"), (128.0, "120"), (1_249.0, "1,200")] {
            assert_eq!(two_digits(count), text);
        }
        assert_eq!(two_digits(123_456_789.0), "120,000,000");
        assert_eq!(two_digits(1.5e20), "1.5e20");
    }

    #[test]
    fn refusals_name_the_estimate_and_the_largest_that_fits() {
        let runs = super::super::testing::runs();
        let need = runs.iter().map(|run| run.memory(1).total()).max().expect("runs");
        assert_eq!(admit(&runs, 4, true, 1, Some(need * 100)).expect("fits"), 4);
        assert_eq!(admit(&runs, 4, true, 1, None).expect("unknown memory is no reason"), 4);
        // Two fit: fewer at once unless four were requested.
        assert_eq!(admit(&runs, 4, false, 1, Some(need * 5 / 2)).expect("fits"), 2);
        let message = admit(&runs, 4, true, 1, Some(need * 5 / 2)).expect_err("refused").to_string();
        assert!(message.ends_with("the largest that fits is --jobs 2"), "{message}");
        // Its four hosts are hardly more than the program.
        let message = admit(&runs, 1, false, 1, Some(need / 2)).expect_err("refused").to_string();
        assert!(message.contains("needs about"), "{message}");
        assert!(message.ends_with("the largest that fits is a fabric of about 2 hosts like its 4"), "{message}");
        let message = admit(&runs, 1, false, 1, Some(1_000)).expect_err("refused").to_string();
        assert!(message.ends_with("no fabric fits into that"), "{message}");
    }

    #[test]
    fn refusals_blame_what_takes_the_memory() {
        let refused = |sets: &[(&str, &str)]| {
            let scenario = super::super::testing::scenario_with(sets);
            admit(&scenario.runs()[..1], 1, true, 1, Some(1 << 30)).expect_err("refused").to_string()
        };
        let message = refused(&[("duration", "1000s")]);
        assert!(message.contains(" of its 50,000,000 flows: shorten `duration`"), "{message}");
        let message =
            refused(&[("duration", "1s"), ("measure.ports.every", "1ns"), ("measure.ports.which", "[\"s0->*\"]")]);
        assert!(message.contains("its samples alone take") && message.contains("times fewer"), "{message}");
    }
}
