//! The arrivals of a domain in one window, in their order.

/// Lists up to this length are sorted by counting.
const SHORT: usize = 32;

/// Arrivals of the window being executed: relative time in the upper half, line in the lower.
#[derive(Default)]
pub(super) struct Keys {
    count: usize,
    /// The first ones as they came.
    short: [u64; SHORT],
    /// Their relative times and places.
    times: [i32; SHORT],
    /// All of them sorted, where there are no more than [`SHORT`].
    ranked: [u64; SHORT],
    /// All of them, where there are more.
    long: Vec<u64>,
}

impl Keys {
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds an arrival.
    #[inline]
    pub fn push(&mut self, time: u64, line: u32) {
        let key = time << 32 | u64::from(line);
        if self.count < SHORT {
            self.short[self.count] = key;
            // Relative times have 20 bits, so time and place fit an i32.
            self.times[self.count] = (time as i32) << 5 | self.count as i32;
        } else {
            self.push_long(key);
        }
        self.count += 1;
    }

    #[inline(never)]
    fn push_long(&mut self, key: u64) {
        if self.count == SHORT {
            self.long.clear();
            self.long.extend(self.short);
        }
        self.long.push(key);
    }

    /// The lines, in any order.
    pub fn lines(&self) -> impl Iterator<Item = u32> {
        let keys = if self.count <= SHORT { &self.short[..self.count] } else { &self.long };
        keys.iter().map(|key| *key as u32)
    }

    /// The keys by time, and whether two of them have the same.
    #[inline]
    pub fn sorted(&mut self) -> (&mut [u64], bool) {
        let keys = match self.count {
            count @ 0..2 => return (&mut self.short[..count], false),
            count @ 2..=SHORT => {
                self.rank(count);
                &mut self.ranked[..count]
            }
            _ => {
                self.long.sort_unstable();
                &mut self.long[..]
            }
        };
        let mut ties = false;
        for pair in keys.windows(2) {
            ties |= pair[0] >> 32 == pair[1] >> 32;
        }
        (keys, ties)
    }

    /// Puts each key where the number of smaller ones says. Most lists are short and in no order that a processor
    /// could guess; this has no branch to guess wrong, and the counting is done four at a time.
    #[inline]
    fn rank(&mut self, count: usize) {
        let Self { short, times, ranked, .. } = self;
        let padded = count.next_multiple_of(4).min(SHORT);
        times[count..padded].fill(i32::MAX);
        for (own, key) in times[..count].iter().zip(&short[..count]) {
            let smaller: i32 = times[..padded].iter().map(|other| i32::from(*other < *own)).sum();
            // There are fewer than SHORT smaller ones.
            ranked[smaller as usize % SHORT] = *key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_by_time_and_sees_ties(times in proptest::collection::vec(0u64..1 << 20, 0..80), spread in 1u64..1 << 20) {
            let list = times.iter().enumerate().map(|(line, time)| (time % spread) << 32 | line as u64);
            let mut expected: Vec<u64> = list.collect();
            let mut keys = Keys::default();
            expected.iter().for_each(|key| keys.push(key >> 32, *key as u32));
            expected.sort_unstable();
            let ties = expected.windows(2).any(|pair| pair[0] >> 32 == pair[1] >> 32);
            let (sorted, tied) = keys.sorted();
            prop_assert_eq!((&*sorted, tied), (&expected[..], ties));
        }
    }
}
