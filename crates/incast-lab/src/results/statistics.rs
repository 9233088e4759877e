//! Statistics that never leave out what did not finish.

use serde::{Deserialize, Serialize};

/// Mean, percentiles and maximum of a set of measurements, some of which may only be known to be at least something.
///
/// Percentiles are exact, by nearest rank. What did not finish ranks above everything that did; a statistic that
/// depends on it is `null`, and a lower bound stands beside it under `<name>_at_least`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Lower bound of an unknown mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_at_least: Option<f64>,
    /// Lower bound of an unknown median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_at_least: Option<f64>,
    /// Lower bound of an unknown 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_at_least: Option<f64>,
    /// Lower bound of an unknown 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_at_least: Option<f64>,
    /// Lower bound of an unknown 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_at_least: Option<f64>,
    /// Lower bound of an unknown maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_at_least: Option<f64>,
}

/// Measurements of a set of flows or requests.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    known: Vec<f64>,
    at_least: Vec<f64>,
}

impl Sample {
    /// A measured value.
    pub fn add(&mut self, value: f64) {
        self.known.push(value);
    }

    /// A value that is only known not to be smaller than this.
    pub fn add_at_least(&mut self, bound: f64) {
        self.at_least.push(bound);
    }

    /// Number of values, known or not.
    pub fn len(&self) -> usize {
        self.known.len() + self.at_least.len()
    }

    /// There are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The statistics.
    pub fn distribution(mut self) -> Distribution {
        if self.is_empty() {
            return Distribution::default();
        }
        self.known.sort_unstable_by(f64::total_cmp);
        let mut bounds = [self.known.as_slice(), self.at_least.as_slice()].concat();
        bounds.sort_unstable_by(f64::total_cmp);
        let count = bounds.len();
        let pick = |per_mille: usize| {
            let rank = nearest_rank(count, per_mille);
            match self.known.get(rank - 1) {
                Some(value) => (Some(*value), None),
                None => (None, Some(bounds[rank - 1])),
            }
        };
        let mean = bounds.iter().sum::<f64>() / count as f64;
        let (mean, mean_at_least) =
            if self.at_least.is_empty() { (Some(mean), None) } else { (None, Some(mean)) };
        let (p50, p50_at_least) = pick(500);
        let (p95, p95_at_least) = pick(950);
        let (p99, p99_at_least) = pick(990);
        let (p999, p999_at_least) = pick(999);
        let (max, max_at_least) = pick(1000);
        Distribution {
            mean,
            p50,
            p95,
            p99,
            p999,
            max,
            mean_at_least,
            p50_at_least,
            p95_at_least,
            p99_at_least,
            p999_at_least,
            max_at_least,
        }
    }
}

/// Rank, from 1, of a percentile among `count` values: the smallest with at least that share at or below it.
fn nearest_rank(count: usize, per_mille: usize) -> usize {
    (count * per_mille).div_ceil(1000).max(1)
}

impl Distribution {
    /// Values by name, in the order of the fields.
    pub fn values(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("mean", self.mean),
            ("p50", self.p50),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p999", self.p999),
            ("max", self.max),
        ]
    }

    /// Lower bounds by name; set where the value is unknown.
    pub fn bounds(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("mean", self.mean_at_least),
            ("p50", self.p50_at_least),
            ("p95", self.p95_at_least),
            ("p99", self.p99_at_least),
            ("p999", self.p999_at_least),
            ("max", self.max_at_least),
        ]
    }
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval(pub f64, pub f64);

impl Interval {
    /// The value lies inside.
    pub fn contains(&self, value: f64) -> bool {
        self.0 <= value && value <= self.1
    }
}

/// 95% confidence interval of the mean of independent values (one per seed) by Student's t. `None` with fewer than two
/// values or when any is unknown.
pub fn confidence(values: &[Option<f64>]) -> Option<Interval> {
    let known: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    if known.len() < 2 {
        return None;
    }
    let count = known.len() as f64;
    let mean = known.iter().sum::<f64>() / count;
    let variance = known.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    let half = student_t(known.len() - 1) * (variance / count).sqrt();
    Some(Interval(mean - half, mean + half))
}

/// 97.5% quantile of Student's t: tabulated to 30 degrees of freedom, then the expansion of Cornish and Fisher
/// (Abramowitz and Stegun, 26.7.5), which is good to five digits from there on.
fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
        2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922,
        2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831,
        2.048_407, 2.045_230, 2.042_272,
    ];
    if let Some(value) = TABLE.get(degrees.wrapping_sub(1)) {
        return *value;
    }
    let (x, n) = (1.959_963_985_f64, degrees as f64);
    let (x3, x5, x7) = (x * x * x, x * x * x * x * x, x * x * x * x * x * x * x);
    x + (x3 + x) / (4.0 * n)
        + (5.0 * x5 + 16.0 * x3 + 3.0 * x) / (96.0 * n * n)
        + (3.0 * x7 + 19.0 * x5 + 17.0 * x3 - 15.0 * x) / (384.0 * n * n * n)
}

/// Jain's fairness index: 1 when all are equal, 1/n when one has everything. `None` for fewer than two values or when
/// all are zero.
pub fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    (values.len() >= 2 && squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Upper edge of the bin of a flow size: 1, 2 or 5 times a power of ten.
pub fn size_bin(bytes: u64) -> u64 {
    let mut decade = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            match decade.checked_mul(factor) {
                Some(edge) if bytes <= edge => return edge,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        match decade.checked_mul(10) {
            Some(next) => decade = next,
            None => return u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(known: &[f64], at_least: &[f64]) -> Distribution {
        Sample { known: known.to_vec(), at_least: at_least.to_vec() }.distribution()
    }

    #[test]
    fn nearest_rank_takes_values_that_occur() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let all = sample(&values, &[]);
        assert_eq!((all.p50, all.p95, all.p99), (Some(50.0), Some(95.0), Some(99.0)));
        assert_eq!((all.p999, all.max, all.mean), (Some(100.0), Some(100.0), Some(50.5)));
        assert_eq!(all.max_at_least, None);
        assert_eq!(sample(&[7.0], &[]).p50, Some(7.0));
        assert_eq!(sample(&[], &[]), Distribution::default());
    }

    #[test]
    fn what_did_not_finish_is_not_left_out() {
        let known: Vec<f64> = (1..=98).map(f64::from).collect();
        let all = sample(&known, &[500.0, 600.0]);
        assert_eq!((all.p50, all.p95), (Some(50.0), Some(95.0)));
        assert_eq!((all.p99, all.p99_at_least), (None, Some(500.0)));
        assert_eq!((all.max, all.max_at_least), (None, Some(600.0)));
        assert_eq!((all.mean, all.mean_at_least), (None, Some((4851.0 + 1100.0) / 100.0)));
        let none = sample(&[], &[3.0]);
        assert_eq!((none.p50, none.p50_at_least), (None, Some(3.0)));
    }

    #[test]
    fn intervals_use_student_t() {
        assert_eq!(confidence(&[Some(1.0)]), None);
        assert_eq!(confidence(&[Some(1.0), None]), None);
        let Interval(low, high) = confidence(&[Some(1.0), Some(2.0), Some(3.0)]).expect("three seeds");
        assert!((low - (2.0 - 4.302_653 / 3.0_f64.sqrt())).abs() < 1e-9, "{low}");
        assert!((high + low - 4.0).abs() < 1e-9);
        assert!((student_t(31) - 2.039_513).abs() < 1e-5, "{}", student_t(31));
        assert!((student_t(120) - 1.979_930).abs() < 1e-5);
    }

    #[test]
    fn jain_of_known_cases() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn bins_have_inclusive_upper_edges() {
        assert_eq!(
            [1, 2, 3, 10, 11, 4096, 1_000_000, 1_000_001].map(size_bin),
            [1, 2, 5, 10, 20, 5000, 1_000_000, 2_000_000]
        );
        assert_eq!(size_bin(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_the_definition(
            known in prop::collection::vec(0.0..1e9_f64, 0..300),
            unknown in prop::collection::vec(0.0..1e9_f64, 0..20),
        ) {
            let all = sample(&known, &unknown);
            let count = known.len() + unknown.len();
            for ((name, value), per_mille) in all.values().into_iter().skip(1).zip([500, 950, 990, 999, 1000]) {
                // The definition: the smallest value with at least this share of all values at or below it, where
                // what is unknown is above everything.
                let naive = known.iter().copied().filter(|candidate| {
                    known.iter().filter(|v| *v <= candidate).count() * 1000 >= per_mille * count
                }).min_by(f64::total_cmp);
                prop_assert_eq!(value, naive, "{}", name);
            }
            for ((_, value), (_, bound)) in all.values().into_iter().zip(all.bounds()) {
                prop_assert_eq!(value.is_none() && count > 0, bound.is_some());
            }
        }

        #[test]
        fn bounds_hold_whatever_the_unknown_values_are(
            known in prop::collection::vec(0.0..100.0_f64, 0..50),
            unknown in prop::collection::vec((0.0..100.0_f64, 0.0..100.0_f64), 1..20),
        ) {
            let bounds: Vec<f64> = unknown.iter().map(|(bound, _)| *bound).collect();
            let truth: Vec<f64> = known.iter().copied().chain(unknown.iter().map(|(bound, more)| bound + more)).collect();
            let (measured, truth) = (sample(&known, &bounds), sample(&truth, &[]));
            for ((_, bound), (_, value)) in measured.bounds().into_iter().zip(truth.values()) {
                if let (Some(bound), Some(value)) = (bound, value) {
                    prop_assert!(bound <= value * (1.0 + 1e-12), "{bound} > {value}");
                }
            }
        }

        #[test]
        fn bins_contain_their_sizes(bytes in any::<u64>()) {
            prop_assert!(bytes <= size_bin(bytes));
        }
    }
}
