//! Learns Marimo's f, the map from a share of marked packets to a load, from calibration traces.
//!
//! [`sweep`] makes traces in the simulator; [`fit`] takes them, or anybody else's, and fits a line that does not fall.

pub mod isotonic;
pub mod sweep;

use incast_cc::window::marimo::core::{KNOTS, LOAD_MAX, LoadTable, ONE, TableError};
use incast_sim::ConfigError;
use isotonic::isotonic;
use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
use sweep::{Sample, Sweep};
use thiserror::Error;

/// Why there is no table.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// A value of the sweep is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A line of a file of samples cannot be read.
    #[error("line {line}: {message}")]
    Sample {
        /// The line, from 1.
        line: u64,
        /// What was found and what is allowed.
        message: String,
    },
    /// There is nothing to fit.
    #[error("found no samples, at least two with different shares are needed")]
    Empty,
    /// The fit is no usable f.
    #[error("the fit is rejected: {}", .0.message)]
    Rejected(TableError),
}

/// A table and how well it describes the samples. Shares are in 64ths, as the table's knots.
#[derive(Clone, Debug)]
pub struct Fit {
    /// f.
    pub table: LoadTable,
    /// Samples.
    pub samples: usize,
    /// Root of the weighted mean square of load - f(share).
    pub rms_error: f64,
    /// The same for the best constant: what knowing the share is worth.
    pub rms_spread: f64,
    /// Samples nearest to each knot.
    pub counts: [usize; KNOTS],
    /// Knots without a sample of their own, filled in from their neighbours.
    pub empty: Vec<RangeInclusive<usize>>,
    /// Stretches over which f is flat, so that the share has no meaning.
    pub flat: Vec<RangeInclusive<usize>>,
}

/// Fits f: samples are gathered at the nearest of 65 shares, weighted by their bytes; f is the isotonic regression of
/// the means, with straight lines over shares that never occurred.
///
/// # Errors
/// No samples, or a fit that does not cross the thresholds.
pub fn fit(name: &str, samples: &[Sample]) -> Result<Fit, CalibrationError> {
    let (mut weights, mut sums, mut counts) = ([0.0; KNOTS], [0.0; KNOTS], [0; KNOTS]);
    let nearest = |share: f64| ((share * 64.0).round() as usize).min(KNOTS - 1);
    for sample in samples {
        let knot = nearest(sample.share);
        weights[knot] += sample.bytes;
        sums[knot] += sample.bytes * sample.load;
        counts[knot] += 1;
    }
    let seen: Vec<usize> = (0..KNOTS).filter(|knot| weights[*knot] > 0.0).collect();
    let (Some(first), Some(last), true) = (seen.first(), seen.last(), seen.len() > 1) else {
        return Err(CalibrationError::Empty);
    };
    let means: Vec<f64> = seen.iter().map(|knot| sums[*knot] / weights[*knot]).collect();
    let fitted = isotonic(&means, &seen.iter().map(|knot| weights[*knot]).collect::<Vec<_>>());
    let mut knots = [0; KNOTS];
    for (knot, value) in knots.iter_mut().enumerate() {
        let load = match seen.binary_search(&knot) {
            Ok(index) => fitted[index],
            Err(_) if knot < *first => fitted[0],
            Err(_) if knot > *last => fitted[fitted.len() - 1],
            Err(above) => {
                let (from, to) = (seen[above - 1], seen[above]);
                let part = (knot - from) as f64 / (to - from) as f64;
                fitted[above - 1] + (fitted[above] - fitted[above - 1]) * part
            }
        };
        // Rounding keeps the order.
        *value = (load.max(0.0) * f64::from(ONE)).round().min(f64::from(LOAD_MAX)) as u32;
    }
    let table = LoadTable::new(name, knots).map_err(CalibrationError::Rejected)?;

    let total: f64 = weights.iter().sum();
    let mean = sums.iter().sum::<f64>() / total;
    let rms = |of: &dyn Fn(&Sample) -> f64| {
        (samples.iter().map(|sample| sample.bytes * of(sample) * of(sample)).sum::<f64>() / total).sqrt()
    };
    Ok(Fit {
        samples: samples.len(),
        rms_error: rms(&|sample| sample.load - table.load(sample.share)),
        rms_spread: rms(&|sample| sample.load - mean),
        counts,
        empty: stretches(|knot| counts[knot] == 0, 1),
        // Half a percent of load over an eighth of the range.
        flat: stretches(|knot| knot > 0 && knots[knot] - knots[knot - 1] <= ONE / 1600, 8),
        table,
    })
}

/// Runs of at least `least` knots of which `holds` is true.
fn stretches(holds: impl Fn(usize) -> bool, least: usize) -> Vec<RangeInclusive<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for knot in 0..=KNOTS {
        match (knot < KNOTS && holds(knot), start) {
            (true, None) => start = Some(knot),
            (false, Some(from)) => {
                if knot - from >= least {
                    found.push(from..=knot - 1);
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Simulates a sweep on `jobs` threads. The samples are in the order of its points, whatever the number of threads.
///
/// # Errors
/// Values that no network can have.
pub fn simulate(sweep: &Sweep, jobs: usize) -> Result<Vec<Sample>, ConfigError> {
    let points = sweep.points();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(index) else { return Ok(done) };
            done.push((index, sweep.run(point)?));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            // A panic of a simulation is one here too.
            let part = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all = all.and_then(|mut all: Vec<_>| {
                part.map(|part| {
                    all.extend(part);
                    all
                })
            });
        }
        all
    })?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().flat_map(|(_, samples)| samples).collect())
}

/// Reads samples, CSV with the columns share, load and bytes.
///
/// # Errors
/// Another head, or a line that is not three numbers within bounds.
pub fn read_samples(text: &str) -> Result<Vec<Sample>, CalibrationError> {
    let fail = |line: u64, message: String| CalibrationError::Sample { line, message };
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| fail(1, error.to_string()))?;
    if head.iter().collect::<Vec<_>>() != ["share", "load", "bytes"] {
        let found: String = head.iter().collect::<Vec<_>>().join(",").chars().take(40).collect();
        return Err(fail(1, format!("found {found:?}, allowed is \"share,load,bytes\"")));
    }
    let mut samples = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            fail(
                error.position().map_or(1, csv::Position::line),
                "found another number of columns, allowed are 3".into(),
            )
        })?;
        let line = record.position().map_or(1, csv::Position::line);
        let number = |column: usize, allowed: RangeInclusive<f64>| {
            let found = record.get(column).unwrap_or_default().trim();
            match found.parse::<f64>() {
                Ok(number) if allowed.contains(&number) => Ok(number),
                _ => Err(fail(
                    line,
                    format!("found {found:?}, allowed is a number from {} to {}", allowed.start(), allowed.end()),
                )),
            }
        };
        samples.push(Sample {
            share: number(0, 0.0..=1.0)?,
            load: number(1, 0.0..=8.0)?,
            bytes: number(2, f64::MIN_POSITIVE..=1e15)?,
        });
    }
    Ok(samples)
}

/// Writes what [`read_samples`] reads.
pub fn write_samples(samples: &[Sample]) -> String {
    let lines = samples.iter().map(|sample| format!("{:.6},{:.6},{}\n", sample.share, sample.load, sample.bytes));
    std::iter::once("share,load,bytes\n".to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(share: f64, load: f64) -> Sample {
        Sample { share, load, bytes: 1000.0 }
    }

    #[test]
    fn the_fit_does_not_fall_and_passes_through_clean_data() {
        let samples: Vec<_> =
            (0..=64).map(|knot| f64::from(knot) / 64.0).map(|share| sample(share, 0.5 + 0.7 * share)).collect();
        let fit = fit("clean", &samples).expect("usable");
        assert!(fit.rms_error < 1e-4 && fit.rms_spread > 0.1);
        assert!(fit.empty.is_empty() && fit.flat.is_empty());
        assert!((fit.table.load(0.25) - 0.675).abs() < 1e-4);
    }

    #[test]
    fn gaps_and_flat_stretches_are_reported() {
        let mut samples = vec![sample(0.0, 0.5), sample(1.0, 1.3)];
        samples.extend((16..=40).map(|knot| sample(f64::from(knot) / 64.0, 0.95)));
        let fit = fit("gaps", &samples).expect("usable");
        assert_eq!(fit.empty, [1..=15, 41..=63]);
        assert_eq!(fit.flat, [17..=40]);
        assert!((fit.table.load(0.125) - 0.725).abs() < 1e-3, "a straight line over the gap");
    }

    #[test]
    fn a_fit_that_does_not_cross_the_thresholds_is_rejected() {
        let rejected = |samples: &[Sample]| fit("bad", samples).expect_err("rejected").to_string();
        assert!(rejected(&[sample(0.0, 0.95), sample(1.0, 1.3)]).contains("never grow"));
        assert!(rejected(&[sample(0.0, 0.5), sample(1.0, 0.99)]).contains("never shrink"));
        assert!(rejected(&[sample(0.5, 0.5)]).contains("at least two"));
        assert!(rejected(&[]).contains("no samples"));
    }

    #[test]
    fn samples_survive_their_file_and_faults_have_a_line() {
        let samples = vec![sample(0.25, 0.5), sample(1.0, 1.25)];
        assert_eq!(read_samples(&write_samples(&samples)).expect("read"), samples);
        let fault = |text: &str| read_samples(text).expect_err("refused").to_string();
        assert!(fault("a,b\n").starts_with("line 1: found \"a,b\""));
        assert!(fault("share,load,bytes\n0.1,0.5,100\n1.5,1,100\n").starts_with("line 3: found \"1.5\""));
        assert!(fault("share,load,bytes\n0.1,NaN,100\n").starts_with("line 2: found \"NaN\""));
        assert!(fault("share,load,bytes\n0.1,0.5\n").starts_with("line 2: found another number"));
    }

    #[test]
    fn a_small_sweep_gives_a_table_for_any_number_of_threads() {
        let sweep = Sweep {
            rtts: 60,
            loads: vec![0.4, 0.8, 1.0, 1.2, 1.5],
            senders: vec![2, 8],
            thresholds: vec![0.2],
            ..Sweep::default()
        };
        let one = simulate(&sweep, 1).expect("simulated");
        assert_eq!(one, simulate(&sweep, 3).expect("simulated"));
        let fit = fit("small", &one).expect("usable");
        assert!(fit.rms_error < fit.rms_spread, "{} {}", fit.rms_error, fit.rms_spread);
    }
}
