//! Distributions of flow sizes: sampling by inverting the CDF, and exact means.

use incast_cc::law::SizeClass;
use incast_sim::engine::random::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a table of a distribution is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// Straight lines between the points.
    #[default]
    Linear,
    /// Only the sizes of the points occur.
    Step,
}

/// What is wrong with a table, and in which line (from 1; 0 for the table as a whole).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The line.
    pub line: usize,
    /// What was found and what is allowed.
    pub message: String,
}

/// Points of a cumulative distribution: sizes in bytes, both columns ascending, the last probability 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    points: Vec<(f64, f64)>,
    /// The file requests step sampling.
    pub step: bool,
}

/// What stands between a size and its probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// A comma or a semicolon; a header is there.
    Sign(char),
    /// Blanks.
    Blanks,
}

/// What headers call the two columns, the first also anything that begins with "size": in small letters, with underscores
/// for blanks and hyphens and without brackets.
const SIZES: [&str; 6] = ["bytes", "flow_size", "flow_size_bytes", "flow_size_b", "flowsize", "message_size"];
const PROBABILITIES: [&str; 11] = [
    "cdf",
    "p",
    "prob",
    "probability",
    "percent",
    "percentage",
    "percentile",
    "cumulative",
    "cum_prob",
    "cumulative_probability",
    "fraction",
];

impl Columns {
    /// By the first line, and whether that is a header; or what the line should be.
    fn of(line: &str) -> Result<(Self, bool), String> {
        let columns = match line.chars().find(|c| matches!(c, ',' | ';')) {
            Some(sign) => Self::Sign(sign),
            None => Self::Blanks,
        };
        let shown: String = line.chars().take(40).collect();
        let unknown = || {
            format!(
                "found {shown:?}, allowed is a header such as size_bytes,cdf or `size percent`, or lines `size percent` or \
                 `size cdf`"
            )
        };
        let (first, second) = columns.split(line).ok_or_else(unknown)?;
        if first.trim().parse::<f64>().is_ok() {
            // Without it, a table of probabilities and sizes, or of sizes in packets, would be taken for one of ours.
            return if columns == Self::Blanks { Ok((columns, false)) } else { Err(unknown()) };
        }
        let plain = |cell: &str| {
            cell.trim().trim_matches('"').to_ascii_lowercase().replace([' ', '-'], "_").replace(['(', ')'], "")
        };
        let (first, second) = (plain(first), plain(second));
        if first.contains("packet") || first.contains("pkt") {
            return Err(format!("found {shown:?}: sizes in packets; allowed are bytes, so many for each packet"));
        }
        let is_size = |name: &str| name.starts_with("size") || SIZES.contains(&name);
        if is_size(&first) && PROBABILITIES.contains(&second.as_str()) {
            return Ok((columns, true));
        }
        if PROBABILITIES.contains(&first.as_str()) && is_size(&second) {
            return Err(format!("found {shown:?}, allowed is the size first: size_bytes,cdf"));
        }
        Err(unknown())
    }

    /// Its two cells.
    fn split(self, line: &str) -> Option<(&str, &str)> {
        match self {
            Self::Sign(sign) => line.split_once(sign),
            Self::Blanks => {
                let mut words = line.split_whitespace();
                let pair = (words.next()?, words.next()?);
                words.next().is_none().then_some(pair)
            }
        }
    }

    fn allowed(self) -> String {
        match self {
            Self::Sign(sign) => format!("size{sign}cdf"),
            Self::Blanks => "`size percent` or `size cdf`".into(),
        }
    }
}

/// Sizes of at most this many bytes are exact in floating point.
const LARGEST: f64 = (1u64 << 53) as f64;

impl Table {
    /// Reads a header such as `size_bytes,cdf` and lines with these two; or lines of a size and a percentage or a fraction with
    /// blanks between them, as HPCC's generator has them, with a header such as `size percent` or without. There the last
    /// value says which: 100 or 1. `#` starts a comment line, and a comment that mentions step sampling requests it.
    ///
    /// # Errors
    /// Anything else, sizes below 0, a column that falls, probabilities outside [0, 1] or not ending at 1.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let fail = |line: usize, message: String| Err(TableError { line, message });
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut step = false;
        let mut columns = None;
        let mut last_line = 0;
        for (index, line) in text.lines().enumerate() {
            let (number, line) = (index + 1, line.trim().trim_start_matches('\u{feff}'));
            if let Some(comment) = line.strip_prefix('#') {
                let comment = comment.to_ascii_lowercase();
                step |= comment.contains("step sampling") || comment.replace(' ', "").contains("interpolation:step");
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let shown: String = line.chars().take(40).collect();
            let columns = match columns {
                Some(columns) => columns,
                None => {
                    let (found, is_header) = match Columns::of(line) {
                        Ok(found) => found,
                        Err(message) => return fail(number, message),
                    };
                    columns = Some(found);
                    if is_header {
                        continue;
                    }
                    found
                }
            };
            last_line = number;
            let Some((size, probability)) = columns.split(line) else {
                return fail(number, format!("found {shown:?}, allowed is {}", columns.allowed()));
            };
            let (Ok(size), Ok(probability)) = (size.trim().parse::<f64>(), probability.trim().parse::<f64>()) else {
                return fail(number, format!("found {shown:?}, allowed are two numbers: {}", columns.allowed()));
            };
            if !(0.0..=LARGEST).contains(&size) {
                return fail(number, format!("found size {size}, allowed is 0 to 2^53 bytes"));
            }
            if !(0.0..=100.0 + 1e-9).contains(&probability) {
                return fail(number, format!("found probability {probability}, allowed is 0 to 100"));
            }
            let probability = probability.min(100.0);
            if let Some((size_before, probability_before)) = points.last() {
                if size < *size_before {
                    return fail(
                        number,
                        format!("found size {size} after {size_before}, allowed are sizes that do not fall"),
                    );
                }
                if probability < *probability_before {
                    return fail(
                        number,
                        format!(
                            "found probability {probability} after {probability_before}, allowed are probabilities that do not fall"
                        ),
                    );
                }
            }
            points.push((size, probability));
        }
        // In percent, if the last one says so.
        if let Some((_, last)) = points.last()
            && *last > 1.0 + 1e-6
        {
            if (*last - 100.0).abs() > 1e-4 {
                let message = format!("found {last} as the last value, allowed is 100 of percent or 1 of a fraction");
                return fail(last_line, message);
            }
            for (_, probability) in &mut points {
                *probability /= 100.0;
            }
        }
        match points.last_mut() {
            None => fail(0, "found no points, allowed are lines size_bytes,cdf".into()),
            Some((_, last)) if (*last - 1.0).abs() > 1e-6 => {
                fail(last_line, format!("found {last} as the last probability, allowed is 1"))
            }
            Some((size, _)) if *size < 1.0 => {
                fail(last_line, format!("found {size} as the largest size, allowed is at least 1"))
            }
            Some((_, last)) => {
                *last = 1.0;
                Ok(Self { points, step })
            }
        }
    }

    /// The size at probability `u` in [0, 1), on straight lines; below the first point, its size.
    fn invert_lines(&self, u: f64) -> f64 {
        let above = self.points.partition_point(|(_, probability)| *probability <= u).min(self.points.len() - 1);
        let (size, probability) = self.points[above];
        if above == 0 {
            return size;
        }
        let (size_before, probability_before) = self.points[above - 1];
        if probability <= probability_before {
            return size;
        }
        size_before
            + (size - size_before) * ((u - probability_before) / (probability - probability_before)).clamp(0.0, 1.0)
    }

    /// The size of the first point whose probability is above `u`.
    fn invert_step(&self, u: f64) -> f64 {
        let above = self.points.partition_point(|(_, probability)| *probability <= u).min(self.points.len() - 1);
        self.points[above].0
    }

    /// Mean of min(size, max) on straight lines.
    pub fn mean_of_lines(&self, max: u64) -> f64 {
        let max = max as f64;
        let (first, mass) = self.points[0];
        let lines = self.points.windows(2).map(|pair| {
            let ((a, from), (b, to)) = (pair[0], pair[1]);
            let average = if max >= b {
                (a + b) / 2.0
            } else if max <= a {
                max
            } else {
                ((max - a) * (a + max) / 2.0 + (b - max) * max) / (b - a)
            };
            average * (to - from)
        });
        first.min(max) * mass + lines.sum::<f64>()
    }

    /// Mean of min(size, max) with only the sizes of the points.
    pub fn mean_of_step(&self, max: u64) -> f64 {
        let mut before = 0.0;
        let mut mean = 0.0;
        for (size, probability) in &self.points {
            mean += size.min(max as f64) * (probability - before);
            before = *probability;
        }
        mean
    }
}

/// A distribution of flow sizes. Samples are whole and at least 1 byte.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(u64),
    /// Log-normal, cut at `max`.
    Lognormal {
        /// Mean of the natural logarithm of the size.
        mu: f64,
        /// Its standard deviation.
        sigma: f64,
        /// Larger flows have this size.
        max: u64,
    },
    /// From a table, cut at `max`.
    Table {
        /// The points.
        table: Table,
        /// How it is read.
        interpolation: Interpolation,
        /// Larger flows have this size.
        max: u64,
    },
}

impl Distribution {
    /// Draws a size.
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        let (size, max) = match self {
            Self::Fixed(size) => return *size,
            Self::Lognormal { mu, sigma, max } => (libm::exp(mu + sigma * normal(stream)), *max),
            Self::Table { table, interpolation: Interpolation::Linear, max } => {
                (table.invert_lines(stream.uniform()), *max)
            }
            Self::Table { table, interpolation: Interpolation::Step, max } => {
                (table.invert_step(stream.uniform()), *max)
            }
        };
        (size.round() as u64).clamp(1, max.max(1))
    }

    /// Sizes that stand for `flows` flows: those in the middle of equal parts of the curve, the largest as large as the
    /// mean asks for. A few flows of data mining's tail have most of the bytes.
    pub fn spread(&self, flows: f64) -> Vec<SizeClass> {
        const PARTS: u32 = 10_000;
        if let Self::Fixed(bytes) = self {
            return vec![SizeClass { bytes: *bytes, flows }];
        }
        // Only log-normal sizes are drawn.
        let mut stream = Stream::new(0, 0, 0);
        let size = |part: u32| match self {
            Self::Fixed(size) => *size as f64,
            Self::Lognormal { .. } => self.sample(&mut stream) as f64,
            Self::Table { table, interpolation, max } => {
                let middle = (f64::from(part) + 0.5) / f64::from(PARTS);
                let size = match interpolation {
                    Interpolation::Linear => table.invert_lines(middle),
                    Interpolation::Step => table.invert_step(middle),
                };
                size.round().clamp(1.0, *max as f64)
            }
        };
        let mut sizes: Vec<f64> = (0..PARTS).map(size).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        if let Some(largest) = sizes.pop() {
            let others: f64 = sizes.iter().sum();
            sizes.push((self.mean() * f64::from(PARTS) - others).max(largest));
        }
        let flows = flows / f64::from(PARTS);
        sizes.into_iter().map(|size| SizeClass { bytes: size as u64, flows }).collect()
    }

    /// The smallest and the largest size that can be drawn.
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Fixed(size) => (*size, *size),
            Self::Lognormal { max, .. } => (1, *max),
            Self::Table { table, max, .. } => {
                let size =
                    |point: Option<&(f64, f64)>| point.map_or(1, |(size, _)| (size.round() as u64).clamp(1, *max));
                (size(table.points.first()), size(table.points.last()))
            }
        }
    }

    /// Mean in bytes: that of the curve, before sizes are rounded to whole bytes of at least 1.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => *size as f64,
            Self::Lognormal { mu, sigma, max } => lognormal_mean(*mu, *sigma, *max),
            Self::Table { table, interpolation: Interpolation::Linear, max } => table.mean_of_lines(*max),
            Self::Table { table, interpolation: Interpolation::Step, max } => table.mean_of_step(*max),
        }
    }
}

/// A standard normal draw (Box and Muller 1958): always two uniform ones, so that streams stay in step.
fn normal(stream: &mut Stream) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - stream.uniform())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * stream.uniform())
}

/// Mean of min(X, max): E[X] Φ((ln max − μ − σ²)/σ) + max (1 − Φ((ln max − μ)/σ)).
fn lognormal_mean(mu: f64, sigma: f64, max: u64) -> f64 {
    let (mean, max) = (libm::exp(mu + sigma * sigma / 2.0), max as f64);
    if sigma == 0.0 {
        return mean.min(max);
    }
    let below = |z: f64| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    let z = (libm::log(max) - mu) / sigma;
    mean * below(z - sigma) + max * below(-z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn table(text: &str) -> Result<Table, TableError> {
        Table::parse(text)
    }

    #[test]
    fn bad_tables_are_refused_with_their_line() {
        for (text, line) in [
            ("size_bytes,cdf\n10,0.5\n5,1.0\n", 3),
            ("size_bytes,cdf\n10,0.5\n20,0.4\n30,1\n", 3),
            ("# x\nsize_bytes,cdf\n10,0.5\n20,0.9\n", 4),
            ("size_bytes,cdf\n-10,0.5\n20,1\n", 2),
            ("size_bytes,cdf\n10,NaN\n20,1\n", 2),
            ("size_bytes,cdf\ninf,0.5\n", 2),
            ("size_bytes,cdf\n10,1.5\n", 2),
            ("size_bytes,cdf\n10;1\n", 2),
            ("\u{0}\u{1}\u{2}PNG\n", 1),
            ("size_bytes,cdf\n0,1\n", 2),
            // Without a header, and with another one.
            ("10,0.5\n20,1\n", 1),
            ("cdf,size_bytes\n0.5,10\n1,20\n", 1),
            ("", 0),
        ] {
            assert_eq!(table(text).expect_err(text).line, line, "{text}");
        }
    }

    /// The files that are passed around among simulators: sizes with a percentage or a fraction.
    #[test]
    fn percentages_and_fractions_are_told_apart_by_the_last() {
        // Of the shape of the usual ones: a point at 0, steps, many points, points at one size, ends of lines of Windows.
        let shapes: [&[(u64, f64)]; 4] = [
            &[(0, 0.0), (10_000, 15.0), (20_000, 20.0), (30_000, 30.0), (1_000_000, 80.0), (30_000_000, 100.0)],
            &[(0, 0.0), (36, 10.8913), (77, 22.0705), (15_158_197, 100.0)],
            &[(1, 0.0), (300, 40.0), (300, 60.0), (4_096, 60.0), (8_192, 100.0)],
            &[(64, 50.0), (2_048, 100.0)],
        ];
        for points in shapes {
            let lines = |unit: f64, end: &str| {
                points.iter().map(|(size, percent)| format!("{size} {}{end}", percent / unit)).collect::<String>()
            };
            let csv: String = points.iter().map(|(size, percent)| format!("{size},{}\n", percent / 100.0)).collect();
            let expected = table(&format!("size_bytes,cdf\n{csv}")).expect("valid");
            for text in [
                lines(1.0, "\n"),
                lines(1.0, "\r\n"),
                lines(100.0, "\n"),
                format!("size percent\n{}", lines(1.0, "\n")),
                format!("# from a paper\n\nSize_Bytes  CDF\n{}", lines(100.0, "\n")),
                lines(1.0, "\n").replace(' ', "\t"),
                format!("bytes,cdf\n{csv}"),
                format!("Size (B),cum_prob\n{csv}"),
                format!("\"Flow Size\";Cumulative probability\n{}", csv.replace(',', ";")),
                format!("size,percent\n{}", lines(1.0, "\n").replace(' ', ", ")),
            ] {
                let found = table(&text).expect(&text);
                assert_eq!(found.points.len(), expected.points.len(), "{text}");
                for (found, expected) in found.points.iter().zip(&expected.points) {
                    assert_eq!(found.0, expected.0, "{text}");
                    assert!((found.1 - expected.1).abs() < 1e-15, "{text}: {found:?}");
                }
            }
        }
        // Five hundred points, as fine tables have.
        let fine: String = (0..=500).map(|point| format!("{} {}\n", point * 100, f64::from(point) / 5.0)).collect();
        assert!((table(&fine).expect("valid").mean_of_lines(u64::MAX) - 25_000.0).abs() < 1e-6);
        for (text, line, expected) in [
            ("0 0\n10 50\n20 80\n", 3, "found 80 as the last value, allowed is 100 of percent or 1"),
            ("0 0\n10 0.5\n20 0.8\n", 3, "found 0.8 as the last probability, allowed is 1"),
            ("0 0\n10 x\n20 100\n", 2, "allowed are two numbers: `size percent` or `size cdf`"),
            ("0 0\n10 1 0.5\n20 2 1\n", 2, "found \"10 1 0.5\", allowed is `size percent`"),
            ("0 0\n10 50\n20 101\n", 3, "found probability 101, allowed is 0 to 100"),
            ("0 0\n10 50\n5 100\n", 3, "found size 5 after 10"),
            ("0 0\n10 50\n20 40\n30 100\n", 3, "found probability 40 after 50"),
            ("0 0\n10,50\n20 100\n", 2, "allowed is `size percent`"),
            ("percent size\n50 10\n100 20\n", 1, "allowed is the size first"),
            ("packets,cdf\n1,0.5\n2,1\n", 1, "sizes in packets; allowed are bytes"),
            ("size,color\n1,0.5\n2,1\n", 1, "allowed is a header such as size_bytes,cdf"),
            ("flow_size;cdf\n1;0.5\n2,1\n", 3, "allowed is size;cdf"),
            ("0 100\n", 1, "found 0 as the largest size"),
        ] {
            let error = table(text).expect_err(text);
            assert_eq!(error.line, line, "{text}: {error:?}");
            assert!(error.message.contains(expected), "{text}: {error:?}");
        }
    }

    #[test]
    fn samples_follow_the_curve() {
        // Kolmogorov and Smirnov: 20,000 draws stay within 1.63/sqrt(n) with 99% probability.
        for name in ["websearch", "fb_hadoop_fine", "homa_w3"] {
            let table = table(builtin::text(name).expect("bundled")).expect("valid");
            let curve = table.clone();
            let distribution = Distribution::Table { table, interpolation: Interpolation::Linear, max: u64::MAX };
            let mut stream = Stream::new(7, 1, 1);
            let mut draws: Vec<u64> = (0..20_000).map(|_| distribution.sample(&mut stream)).collect();
            draws.sort_unstable();
            for quantile in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
                let expected = curve.invert_lines(quantile);
                let below = draws.partition_point(|size| (*size as f64) < expected) as f64 / 20_000.0;
                let up_to = draws.partition_point(|size| (*size as f64) <= expected + 1.0) as f64 / 20_000.0;
                assert!(below - 0.012 <= quantile && quantile <= up_to + 0.012, "{name} {quantile}: {below} {up_to}");
            }
        }
    }

    #[test]
    fn step_draws_only_the_points() {
        let table = table(builtin::text("homa_w1").expect("bundled")).expect("valid");
        assert!(table.step);
        let sizes: Vec<u64> = table.points.iter().map(|(size, _)| *size as u64).collect();
        let distribution = Distribution::Table { table, interpolation: Interpolation::Step, max: u64::MAX };
        let mut stream = Stream::new(7, 1, 1);
        let draws: Vec<u64> = (0..50_000).map(|_| distribution.sample(&mut stream)).collect();
        assert!(draws.iter().all(|draw| sizes.contains(draw)));
        let small = draws.iter().filter(|draw| **draw == 8).count() as f64 / 50_000.0;
        assert!((small - 0.31094).abs() < 0.01, "{small}");
    }

    #[test]
    fn means_are_those_of_the_samples() {
        let websearch = table(builtin::text("websearch").expect("bundled")).expect("valid");
        let distributions = [
            Distribution::Table { table: websearch.clone(), interpolation: Interpolation::Linear, max: u64::MAX },
            Distribution::Table { table: websearch.clone(), interpolation: Interpolation::Linear, max: 1_500_000 },
            Distribution::Table { table: websearch, interpolation: Interpolation::Step, max: 1_500_000 },
            Distribution::Lognormal { mu: 9.0, sigma: 1.0, max: u64::MAX },
            Distribution::Lognormal { mu: 9.0, sigma: 1.0, max: 20_000 },
            Distribution::Fixed(77),
        ];
        for distribution in distributions {
            let mut stream = Stream::new(3, 1, 9);
            let mean = (0..200_000).map(|_| distribution.sample(&mut stream) as f64).sum::<f64>() / 200_000.0;
            assert!(
                (mean / distribution.mean() - 1.0).abs() < 0.02,
                "{distribution:?}: {mean} {}",
                distribution.mean()
            );
        }
    }

    #[test]
    fn a_spread_has_the_curve_s_mean_and_quantiles() {
        for name in ["homa_w1", "homa_w3", "homa_w5", "datamining_pfabric", "websearch"] {
            let table = table(builtin::text(name).expect("bundled")).expect("valid");
            let interpolation = if table.step { Interpolation::Step } else { Interpolation::Linear };
            let median = if table.step { table.invert_step(0.5) } else { table.invert_lines(0.5) };
            let distribution = Distribution::Table { table, interpolation, max: u64::MAX };
            let spread = distribution.spread(500.0);
            let flows: f64 = spread.iter().map(|class| class.flows).sum();
            let bytes: f64 = spread.iter().map(|class| class.flows * class.bytes as f64).sum();
            assert!((flows - 500.0).abs() < 1e-6, "{name}: {flows}");
            let mean = distribution.mean();
            // Sizes are whole bytes, which is much for the smallest ones.
            assert!((bytes / flows - mean).abs() < 0.51 + mean * 1e-3, "{name}: {} {mean}", bytes / flows);
            let half = spread[spread.len() / 2].bytes as f64;
            assert!((half / median - 1.0).abs() < 0.02, "{name}: {half} {median}");
        }
        let fixed = Distribution::Fixed(77).spread(3.0);
        assert_eq!(fixed, [SizeClass { bytes: 77, flows: 3.0 }]);
        let lognormal = Distribution::Lognormal { mu: 9.0, sigma: 1.0, max: u64::MAX };
        let bytes: f64 = lognormal.spread(1.0).iter().map(|class| class.flows * class.bytes as f64).sum();
        assert!((bytes / lognormal.mean() - 1.0).abs() < 0.02, "{bytes}");
    }
}
