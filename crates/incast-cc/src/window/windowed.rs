//! The largest of recent samples, for the filters of BBR.

use std::collections::VecDeque;

/// Windowed maximum: the largest sample of the last so many steps of a count that never falls (round trips, probing
/// cycles).
///
/// It is exact, where the drafts allow an estimate of three samples (K. Nichols' filter). Of samples that a later one
/// is not below, none is kept, and one for each step at most: a sample costs O(1) on average, and there are never more
/// of them than steps in the window.
#[derive(Clone, Debug, Default)]
pub struct WindowedMax {
    /// When, and how much: falling from front to back.
    samples: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Takes a sample at `step`; those of `window` steps ago and before it no longer count.
    pub fn update(&mut self, step: u64, value: f64, window: u64) {
        while self.samples.back().is_some_and(|(_, sample)| *sample <= value) {
            self.samples.pop_back();
        }
        if self.samples.back().is_none_or(|(last, _)| *last != step) {
            self.samples.push_back((step, value));
        }
        self.expire(step, window);
    }

    /// Forgets what was sampled `window` steps before `step`, or earlier. The last sample stays: something is better
    /// than nothing.
    fn expire(&mut self, step: u64, window: u64) {
        while self.samples.len() > 1
            && self.samples.front().is_some_and(|(sampled, _)| sampled.saturating_add(window) <= step)
        {
            self.samples.pop_front();
        }
    }

    /// The largest sample; 0 before the first.
    pub fn max(&self) -> f64 {
        self.samples.front().map_or(0.0, |(_, sample)| *sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_counts_until_its_window_is_over() {
        let mut filter = WindowedMax::default();
        assert_eq!(filter.max(), 0.0);
        filter.update(0, 5.0, 10);
        filter.update(3, 2.0, 10);
        filter.update(4, 3.0, 10);
        filter.update(9, 1.0, 10);
        assert_eq!(filter.max(), 5.0);
        filter.update(10, 1.0, 10);
        assert_eq!(filter.max(), 3.0, "the 5 is ten steps old; the 2 was not above the 3");
        filter.update(14, 0.5, 10);
        assert_eq!(filter.max(), 1.0);
        filter.update(100, 0.1, 10);
        assert_eq!(filter.max(), 0.1);
    }

    #[test]
    fn a_larger_one_counts_at_once() {
        let mut filter = WindowedMax::default();
        for (step, value) in [(0, 1.0), (0, 4.0), (0, 2.0), (1, 7.0)] {
            filter.update(step, value, 2);
        }
        assert_eq!(filter.max(), 7.0);
    }

    proptest! {
        #[test]
        fn it_is_the_maximum_of_its_window(
            window in 1u64..12,
            samples in prop::collection::vec((0u64..3, 0u32..1000), 1..200),
        ) {
            let mut filter = WindowedMax::default();
            let (mut step, mut all) = (0, Vec::new());
            for (pause, value) in samples {
                step += pause;
                all.push((step, f64::from(value)));
                filter.update(step, f64::from(value), window);
                let recent = all.iter().filter(|(sampled, _)| sampled + window > step);
                prop_assert_eq!(filter.max(), recent.fold(0.0, |most: f64, (_, value)| most.max(*value)));
                prop_assert!(filter.samples.len() as u64 <= window);
            }
        }
    }
}
