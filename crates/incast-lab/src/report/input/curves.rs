//! Curves with no more points than a screen can show, and how exact they still are.

/// A complementary cumulative distribution, in which a tail is as wide as all the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ccdf {
    /// Values, known or not.
    pub count: usize,
    /// Those that are known: the curve ends above the share of those that are not.
    pub known: usize,
    /// Value, and the share of all values that are at least that. Every point is exact; points are left out, not
    /// averaged.
    pub points: Vec<(f64, f64)>,
}

impl Ccdf {
    /// Of values, `unknown` more of which are above all of them, in at most `most` points: half of them at equally
    /// spaced ranks, half at equal ratios of ranks from above. The smallest and the largest value are always among them.
    pub fn new(mut values: Vec<f64>, unknown: usize, most: usize) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let (known, count) = (values.len(), values.len() + unknown);
        let most = most.max(4);
        // Places from above, the largest value at 1.
        let mut places: Vec<usize> = if known <= most {
            (1..=known).collect()
        } else {
            let steps = most / 2 - 1;
            let ratio = libm::log(known as f64) / steps as f64;
            let even = (0..=steps).map(|step| 1 + (known - 1) * step / steps);
            let tail = (0..=steps).map(|step| libm::exp(ratio * step as f64).round() as usize);
            even.chain(tail).map(|place| place.clamp(1, known)).collect()
        };
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.dedup();
        let share = |place: usize| (values[known - place], (unknown + place) as f64 / count as f64);
        Self { count, known, points: places.into_iter().map(share).collect() }
    }

    /// The smallest value that is drawn and that at least this part of all do not exceed; `None` if they are not known.
    pub fn percentile(&self, part: f64) -> Option<f64> {
        let above = 1.0 - part + 1.0 / self.count.max(1) as f64;
        self.points.iter().find(|(_, share)| *share <= above + 1e-12).map(|(value, _)| *value)
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
        let ccdf = Ccdf::new(vec![3.0, 1.0, 2.0], 1, 400);
        assert_eq!((ccdf.count, ccdf.known), (4, 3));
        assert_eq!(ccdf.points, [(1.0, 1.0), (2.0, 0.75), (3.0, 0.5)]);
        assert_eq!([0.5, 0.75, 0.9].map(|part| ccdf.percentile(part)), [Some(2.0), Some(3.0), None]);
        assert_eq!(Ccdf::new(Vec::new(), 5, 400).points, []);
    }

    #[test]
    fn a_thinned_distribution_is_exact_at_its_points_and_dense_in_the_tail() {
        let values: Vec<f64> = (1..=100_000).rev().map(f64::from).collect();
        let ccdf = Ccdf::new(values, 0, 400);
        assert!((300..=400).contains(&ccdf.points.len()), "{}", ccdf.points.len());
        assert_eq!((ccdf.points[0], ccdf.points.last()), ((1.0, 1.0), Some(&(100_000.0, 1e-5))));
        for (value, share) in &ccdf.points {
            assert!(((100_001.0 - value) / 100_000.0 - share).abs() < 1e-12, "{value} {share}");
        }
        let steps = || ccdf.points.windows(2);
        assert!(steps().all(|pair| pair[0].1 - pair[1].1 < 1.0 / 190.0 && pair[0].1 / pair[1].1 <= 2.0));
        let tail = ccdf.points.iter().filter(|(_, share)| *share <= 0.01).count();
        assert!(tail > 80, "{tail} of the largest 1%");
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
