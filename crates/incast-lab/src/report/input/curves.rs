//! Curves with no more points than a screen can show, and how exact they still are.

/// A cumulative distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cdf {
    /// Values, known or not.
    pub count: usize,
    /// Those that are known: the curve ends at this share of `count`.
    pub known: usize,
    /// Value, and the share of all values that are at most that. Every point is exact; points are left out, not
    /// averaged.
    pub points: Vec<(f64, f64)>,
}

impl Cdf {
    /// Of values, `unknown` more of which are above all of them, in about `most` points of equally spaced ranks. The
    /// smallest and the largest value are always among them.
    pub fn new(mut values: Vec<f64>, unknown: usize, most: usize) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let (known, count) = (values.len(), values.len() + unknown);
        let share = |rank: usize| (values[rank - 1], rank as f64 / count as f64);
        let points = if known <= most.max(2) {
            (1..=known).map(share).collect()
        } else {
            let steps = most.max(2) - 1;
            (0..=steps).map(|step| share(1 + (known - 1) * step / steps)).collect()
        };
        Self { count, known, points }
    }
}

/// A value sampled over time, kept in a bounded number of intervals however many samples come.
#[derive(Clone, Debug)]
pub struct Series {
    width: u64,
    most: usize,
    intervals: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    largest: f64,
    sum: f64,
    samples: u64,
}

impl Series {
    /// Of samples that are `period` apart, in at most `most` intervals.
    pub fn new(period: u64, most: usize) -> Self {
        Self { width: period.max(1), most: most.max(2), intervals: Vec::new() }
    }

    /// Adds a sample. Times may come in any order.
    pub fn add(&mut self, time: u64, value: f64) {
        while time / self.width >= self.most as u64 {
            self.width *= 2;
            let pairs = self.intervals.chunks(2).map(|pair| {
                pair.iter().fold(Interval::default(), |a, b| Interval {
                    largest: a.largest.max(b.largest),
                    sum: a.sum + b.sum,
                    samples: a.samples + b.samples,
                })
            });
            self.intervals = pairs.collect();
        }
        let index = (time / self.width) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, Interval::default());
        }
        let interval = &mut self.intervals[index];
        interval.largest = interval.largest.max(value);
        interval.sum += value;
        interval.samples += 1;
    }

    /// The largest sample of each interval that has any, at its start. What follows the last that is not 0 is left out.
    pub fn peaks(&self) -> Vec<(u64, f64)> {
        let last = self.intervals.iter().rposition(|interval| interval.largest > 0.0);
        let shown = last.map_or(0, |last| (last + 2).min(self.intervals.len()));
        self.points(shown, |interval| interval.largest)
    }

    /// The mean of each interval that has any samples, at its start.
    pub fn means(&self) -> Vec<(u64, f64)> {
        self.points(self.intervals.len(), |interval| interval.sum / interval.samples as f64)
    }

    fn points(&self, shown: usize, of: impl Fn(&Interval) -> f64) -> Vec<(u64, f64)> {
        let intervals = self.intervals.iter().take(shown).enumerate();
        intervals
            .filter(|(_, interval)| interval.samples > 0)
            .map(|(index, interval)| (index as u64 * self.width, of(interval)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_distribution_is_kept_whole() {
        let cdf = Cdf::new(vec![3.0, 1.0, 2.0], 1, 400);
        assert_eq!((cdf.count, cdf.known), (4, 3));
        assert_eq!(cdf.points, [(1.0, 0.25), (2.0, 0.5), (3.0, 0.75)]);
        assert_eq!(Cdf::new(Vec::new(), 5, 400).points, []);
    }

    #[test]
    fn a_thinned_distribution_is_exact_at_its_points() {
        let values: Vec<f64> = (1..=100_000).rev().map(f64::from).collect();
        let cdf = Cdf::new(values, 0, 400);
        assert_eq!(cdf.points.len(), 400);
        assert_eq!((cdf.points[0].0, cdf.points[399]), (1.0, (100_000.0, 1.0)));
        for (value, share) in &cdf.points {
            assert!((value / 100_000.0 - share).abs() < 1e-12, "{value} {share}");
        }
        let widest = cdf.points.windows(2).map(|pair| pair[1].1 - pair[0].1).fold(0.0, f64::max);
        assert!(widest < 1.0 / 390.0, "{widest}");
    }

    #[test]
    fn series_keep_peaks_and_means() {
        let mut series = Series::new(10, 8);
        for step in 0..32_u32 {
            series.add(u64::from(step) * 10, if step == 13 { 500.0 } else { f64::from(step % 2) });
        }
        assert_eq!(series.width, 40);
        let peaks = series.peaks();
        assert_eq!(peaks.len(), 8);
        assert_eq!(peaks[3], (120, 500.0));
        assert_eq!(series.means()[0], (0, 0.5));
    }

    #[test]
    fn a_tail_of_zeros_is_left_out() {
        let mut series = Series::new(1, 400);
        for time in 0..100 {
            series.add(time, if time == 3 { 1.0 } else { 0.0 });
        }
        assert_eq!(series.peaks().len(), 5);
        assert_eq!(Series::new(1, 4).peaks(), []);
        // Gaps are gaps.
        let mut series = Series::new(1, 400);
        series.add(5, 2.0);
        series.add(9, 4.0);
        assert_eq!(series.means(), [(5, 2.0), (9, 4.0)]);
    }
}
