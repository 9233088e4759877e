//! The arrivals of a domain in one window, in their order.

/// Lists up to this length are sorted by counting.
const SHORT: usize = 32;
/// Parts of a window, by which longer lists are divided before their parts are sorted by counting.
const PARTS: usize = 16;
/// Bits of relative times, and those of them that tell the part.
const TIME_BITS: u32 = 20;
const PART_BITS: u32 = PARTS.trailing_zeros();

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
    /// The same, by parts of the window.
    parted: Vec<u64>,
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
                rank(&self.short[..count], &mut self.times, &mut self.ranked);
                &mut self.ranked[..count]
            }
            _ => {
                self.sort_long();
                &mut self.long[..]
            }
        };
        let mut ties = false;
        for pair in keys.windows(2) {
            ties |= pair[0] >> 32 == pair[1] >> 32;
        }
        (keys, ties)
    }

    /// Divides a long list by parts of the window, and sorts each of them.
    #[inline(never)]
    fn sort_long(&mut self) {
        let Self { times, long, parted, .. } = self;
        let part_of = |key: u64| (key >> (32 + TIME_BITS - PART_BITS)) as usize % PARTS;
        let mut ends = [0; PARTS];
        for key in &*long {
            ends[part_of(*key)] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        // What is the start of each part becomes its end as it is filled.
        parted.resize(long.len(), 0);
        for key in &*long {
            let end = &mut ends[part_of(*key)];
            parted[*end] = *key;
            *end += 1;
        }
        let mut start = 0;
        for end in ends {
            let (part, sorted) = (&parted[start..end], &mut long[start..end]);
            if part.len() <= SHORT {
                for (place, (time, key)) in times.iter_mut().zip(part).enumerate() {
                    *time = ((key >> 32) as i32) << 5 | place as i32;
                }
                rank(part, times, sorted);
            } else {
                sorted.copy_from_slice(part);
                sorted.sort_unstable();
            }
            start = end;
        }
    }
}

/// Puts each key where the number of smaller ones says. Most lists are short and in no order that a processor
/// could guess; this has no branch to guess wrong, and the counting is done four at a time. `times` begins with the
/// relative times and places of the keys, of which there are no more than [`SHORT`].
#[inline(always)]
fn rank(keys: &[u64], times: &mut [i32; SHORT], ranked: &mut [u64]) {
    let count = keys.len().min(SHORT);
    let padded = count.next_multiple_of(4).min(SHORT);
    times[count..padded].fill(i32::MAX);
    for (own, key) in times[..count].iter().zip(keys) {
        let smaller: i32 = times[..padded].iter().map(|other| i32::from(*other < *own)).sum();
        ranked[smaller as usize] = *key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_by_time_and_sees_ties(times in proptest::collection::vec(0u64..1 << 20, 0..300), spread in 1u64..1 << 20) {
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
