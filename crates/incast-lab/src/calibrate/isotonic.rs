//! Isotonic regression by pooling adjacent violators.
//!
//! Source: M. Ayer et al., "An Empirical Distribution Function for Sampling with Incomplete Information", Annals of
//! Mathematical Statistics 26 (1955); R. Barlow et al., "Statistical Inference under Order Restrictions", 1972.

/// Values that do not fall and are, weighted, as close to `values` as possible in the sense of least squares. All
/// weights must be above zero.
///
/// Neighbours that fall are replaced by their weighted mean until none are left; each value is pooled at most once, so
/// the cost is linear.
pub fn isotonic(values: &[f64], weights: &[f64]) -> Vec<f64> {
    // Blocks of equal value: mean, weight, length.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(values.len());
    for (value, weight) in values.iter().zip(weights) {
        let mut block = (*value, *weight, 1);
        while let Some(before) = blocks.pop_if(|before| before.0 >= block.0) {
            let weight = before.1 + block.1;
            block = ((before.0 * before.1 + block.0 * block.1) / weight, weight, before.2 + block.2);
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|(mean, _, length)| std::iter::repeat_n(*mean, *length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::{
        io::Write,
        path::Path,
        process::{Command, Stdio},
    };

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
    }

    fn close(ours: &[f64], theirs: &[f64]) {
        assert_eq!(ours.len(), theirs.len());
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{ours:?}\n{theirs:?}");
        }
    }

    /// Cases and their solutions by `scipy.optimize.isotonic_regression`; `scripts/isotonic.py` made them.
    #[test]
    fn it_agrees_with_the_committed_results_of_scipy() {
        let golden: Value = serde_json::from_str(include_str!("isotonic.json")).expect("JSON");
        let cases = golden.as_array().expect("a list");
        assert!(cases.len() >= 20);
        for case in cases {
            close(&isotonic(&numbers(&case["y"]), &numbers(&case["w"])), &numbers(&case["fit"]));
        }
    }

    /// The same against the SciPy that `make test` prepares, on fresh data.
    #[test]
    fn it_agrees_with_scipy_now() {
        let root = Path::new("../..");
        let python = root.join(".venv/bin/python");
        let script = root.join("scripts/isotonic.py");
        let has_scipy = || {
            Command::new(&python)
                .args(["-c", "from scipy.optimize import isotonic_regression"])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        if !has_scipy() {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs SciPy in .venv: scripts/venv.sh");
            writeln!(std::io::stderr(), "skipped: no SciPy in .venv (scripts/venv.sh installs it)").expect("written");
            return;
        }
        let output = Command::new(&python).arg(script).arg("4711").output().expect("Python runs");
        let cases: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(!cases.as_array().expect("a list").is_empty());
        for case in cases.as_array().expect("a list") {
            close(&isotonic(&numbers(&case["y"]), &numbers(&case["w"])), &numbers(&case["fit"]));
        }
    }

    proptest! {
        /// It does not fall, keeps the weighted mean, and is its own regression.
        #[test]
        fn it_is_a_projection(data in prop::collection::vec((-10.0f64..10.0, 0.01f64..10.0), 0..60)) {
            let (values, weights): (Vec<f64>, Vec<f64>) = data.into_iter().unzip();
            let fit = isotonic(&values, &weights);
            prop_assert!(fit.windows(2).all(|pair| pair[0] <= pair[1]));
            let mean = |values: &[f64]| values.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>();
            prop_assert!((mean(&fit) - mean(&values)).abs() < 1e-6);
            let again = isotonic(&fit, &weights);
            prop_assert!(fit.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }
}
