//! Refuses what does not fit into the machine's memory before it starts.

use super::RunError;
use crate::{results::table::bytes, scenario::Run};

/// How many runs may be simulated at once.
///
/// `jobs` is what was asked for, or what there are cores for when `asked` is false: then fewer are run at once rather
/// than none.
///
/// # Errors
/// The runs do not fit, with the estimate and the largest that fits.
pub fn admit(runs: &[Run], jobs: usize, asked: bool, available: Option<u64>) -> Result<usize, RunError> {
    let mut needs: Vec<(u64, &Run)> = runs.iter().map(|run| (run.estimated_memory(), run)).collect();
    needs.sort_by_key(|(need, _)| std::cmp::Reverse(*need));
    let sizes: Vec<u64> = needs.iter().map(|(need, _)| *need).collect();
    let (Some((largest, run)), Some(available)) = (needs.first(), available) else {
        return Ok(jobs);
    };
    let fits = fitting(&sizes, available);
    if fits == 0 {
        let smaller = needs.iter().find(|(need, _)| *need <= available);
        let largest_that_fits = match smaller {
            Some((need, run)) => {
                format!("the largest run of this scenario that fits is {} ({})", run.folder, bytes(*need))
            }
            None => format!(
                "the largest that fits has about {:.0}% of its hosts and flows",
                available as f64 / *largest as f64 * 100.0
            ),
        };
        return Err(RunError::Memory(format!(
            "{} needs about {} of memory and {} are available; {largest_that_fits}",
            run.folder,
            bytes(*largest),
            bytes(available)
        )));
    }
    if fits < jobs && asked {
        return Err(RunError::Memory(format!(
            "{jobs} runs at once need about {} of memory and {} are available; the largest that fits is --jobs {fits}",
            bytes(sizes.iter().take(jobs).sum()),
            bytes(available)
        )));
    }
    Ok(jobs.min(fits))
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
    fn refusals_name_the_estimate_and_the_largest_that_fits() {
        let runs = super::super::testing::runs();
        let need = runs.iter().map(Run::estimated_memory).max().expect("runs");
        assert_eq!(admit(&runs, 4, true, Some(need * 100)).expect("fits"), 4);
        assert_eq!(admit(&runs, 4, true, None).expect("unknown memory is no reason"), 4);
        // Two fit: fewer at once unless four were asked for.
        assert_eq!(admit(&runs, 4, false, Some(need * 5 / 2)).expect("fits"), 2);
        let message = admit(&runs, 4, true, Some(need * 5 / 2)).expect_err("refused").to_string();
        assert!(message.ends_with("the largest that fits is --jobs 2"), "{message}");
        let message = admit(&runs, 1, false, Some(need / 2)).expect_err("refused").to_string();
        assert!(
            message.contains("needs about") && message.contains("50% of its hosts and flows"),
            "{message}"
        );
    }
}
