//! The arrivals of a domain in one window, in order.

use super::sort::{MOST, SortingNetwork};
use incast_units::Time;

/// Arrivals that are read and compared together: the lanes of a vector register. A mailbox chunk has as many lines, so
/// that a chunk is read in one step, however few of its lines are in use.
pub(super) const LANES: usize = 8;
const TWICE: usize = 2 * LANES;
/// Bits of a place in a list that is sorted by counting.
const PLACE_BITS: u32 = TWICE.ilog2();

/// Memory in which keys of one time are ordered: of each the order, and the key.
pub(super) type Ties = Vec<(u64, u64)>;

/// Arrivals of the window being executed: relative time in the upper half, line in the lower.
pub(super) struct Keys {
    count: usize,
    /// In the order of collection, with at least [`TWICE`] spare places at the end.
    list: Vec<u64>,
    sorted: Vec<u64>,
    /// Times and places of a long list.
    long: Vec<u64>,
    /// Memory for breaking ties.
    ties: Ties,
    network: Option<SortingNetwork>,
}

impl Default for Keys {
    fn default() -> Self {
        Self { count: 0, list: vec![], sorted: vec![], long: vec![], ties: vec![], network: SortingNetwork::detect() }
    }
}

/// Padding: keys later than any arrival, at distinct times, in order.
const LATER: [u64; LANES] = {
    let mut keys = [0; LANES];
    let mut place = 0;
    while place < LANES {
        keys[place] = (1 << 63) | (place as u64) << 32;
        place += 1;
    }
    keys
};

/// Two keys have the same time.
#[inline(always)]
fn is_tie(one: u64, other: u64) -> bool {
    (one ^ other) >> 32 == 0
}

/// Exchanges keys that are not in order, at one pair of places after the other.
macro_rules! exchange {
    ($keys:ident: $(($low:literal, $high:literal))*) => {
        $(
            let (low, high) = ($keys[$low], $keys[$high]);
            $keys[$low] = low.min(high);
            $keys[$high] = low.max(high);
        )*
    };
}

impl Keys {
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds `count` arrivals, in the lines from `first` on, each less than 2^21 ps after `start`. It always writes
    /// [`LANES`] keys, because a loop over `count` would be an unpredictable branch. The surplus keys lie beyond the
    /// end and are overwritten later or ignored.
    #[inline(always)]
    pub fn extend(&mut self, count: usize, first: u32, time_of: impl Fn(usize) -> Time, start: Time) {
        debug_assert!(count <= LANES, "{count} of {LANES}");
        let end = self.count + count;
        if end + TWICE > self.list.len() {
            self.grow(end);
        }
        let places = self.list[self.count..].first_chunk_mut::<LANES>();
        // One addition subtracts the start and adds the line.
        let first = u64::from(first).wrapping_sub(start.ps() << 32);
        *places.expect("there are as many places behind the end") =
            std::array::from_fn(|place| (time_of(place).ps() << 32).wrapping_add(first.wrapping_add(place as u64)));
        self.count = end;
    }

    /// The lines, in any order.
    pub fn lines(&self) -> impl Iterator<Item = u32> {
        self.list[..self.count].iter().map(|key| *key as u32)
    }

    /// The keys by time. If some have the same, also memory in which they can be ordered.
    #[inline]
    pub fn sorted(&mut self) -> (&mut [u64], Option<&mut Ties>) {
        let (in_place, tie) = self.sort();
        let Self { count, list, sorted, ties, .. } = self;
        let keys = if in_place { list } else { sorted };
        (&mut keys[..*count], tie.then_some(ties))
    }

    /// Sorts the keys by time, in their list or into the other one. Returns whether in their list, and whether some have
    /// the same time.
    #[inline]
    fn sort(&mut self) -> (bool, bool) {
        let count = self.count;
        if count < 2 {
            return (true, false);
        }
        if count <= LANES {
            return (true, self.sort_few());
        }
        if let Some(network) = self.network
            && count <= MOST
        {
            return (false, network.sort(&self.list, count, &mut self.sorted));
        }
        if count <= TWICE {
            self.sort_some();
        } else {
            self.sort_many();
        }
        let pairs = self.sorted[..count].array_windows();
        (false, pairs.fold(false, |tie, [one, other]| tie | is_tie(*one, *other)))
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let room = count.next_power_of_two().max(TWICE);
        self.list.resize(room + TWICE, 0);
        self.sorted.resize(room, 0);
    }

    /// Most lists are short and in random order: a sorting network sorts them branch-free. Returns whether some have
    /// the same time.
    #[inline(always)]
    fn sort_few(&mut self) -> bool {
        // Padding: later than all keys, at distinct times.
        let behind = self.list[self.count..].first_chunk_mut::<LANES>();
        *behind.expect("there are as many places behind the end") = LATER;
        let keys = self.list.first_chunk_mut::<LANES>().expect("there are as many places");
        // Sorting networks with the fewest exchanges for four and eight (D. Knuth, The Art of Computer Programming,
        // volume 3, section 5.3.4).
        let mut exchanged = *keys;
        if self.count <= 4 {
            exchange!(exchanged: (0, 1) (2, 3) (0, 2) (1, 3) (1, 2));
        } else {
            exchange!(exchanged: (0, 2) (1, 3) (4, 6) (5, 7) (0, 4) (1, 5) (2, 6) (3, 7) (0, 1) (2, 3));
            exchange!(exchanged: (4, 5) (6, 7) (2, 4) (3, 5) (1, 4) (3, 6) (1, 2) (3, 4) (5, 6));
        }
        *keys = exchanged;
        (1..LANES).fold(false, |tie, place| tie | is_tie(exchanged[place - 1], exchanged[place]))
    }

    /// Sorts by counting: the place of each key is the number of smaller keys, by time and then by place. It is
    /// branch-free, and all keys are compared at once: times are not negative, so the sign of a difference shows which
    /// one is smaller.
    #[inline(always)]
    fn sort_some(&mut self) {
        let keys = &self.list[..self.count];
        let mut times = [i32::MAX; TWICE];
        for (place, (time, key)) in times.iter_mut().zip(keys).enumerate() {
            *time = ((key >> 32) << PLACE_BITS) as i32 | place as i32;
        }
        let sorted = &mut self.sorted[..TWICE];
        for (own, key) in times.iter().zip(keys) {
            let smaller = times.iter().map(|other| (other.wrapping_sub(*own) as u32) >> 31).sum::<u32>();
            sorted[smaller as usize % TWICE] = *key;
        }
    }

    /// Sorts lists that are too long for the other methods, by time and then by place as well.
    #[inline(never)]
    fn sort_many(&mut self) {
        let Self { count, list, sorted, long, .. } = self;
        long.clear();
        long.extend(list[..*count].iter().enumerate().map(|(place, key)| key >> 32 << 32 | place as u64));
        long.sort_unstable();
        for (key, time_and_place) in sorted.iter_mut().zip(long) {
            *key = list[*time_and_place as u32 as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_by_time(
            times in proptest::collection::vec(0u64..1 << 21, 0..300),
            spread in 1u64..1 << 21,
            start in 0u64..1 << 50,
        ) {
            let list = times.iter().enumerate().map(|(line, time)| (time % spread) << 32 | line as u64);
            let list: Vec<u64> = list.collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            let tie = expected.windows(2).any(|pair| pair[0] >> 32 == pair[1] >> 32);
            for network in [SortingNetwork::detect(), None] {
                let mut keys = Keys { network, ..Keys::default() };
                let start = Time::from_ps(start);
                keys.extend(5, 7, |place| start + Time::from_ps(place as u64 * 77 % 90), start);
                keys.sorted();
                // What was there before does not matter, nor what lies behind.
                keys.clear();
                for (place, chunk) in list.chunks(LANES).enumerate() {
                    let of = |place: usize| {
                        chunk.get(place).map_or(Time::from_ps(u64::MAX / 3), |key| start + Time::from_ps(key >> 32))
                    };
                    keys.extend(chunk.len(), (place * LANES) as u32, of, start);
                }
                let (sorted, found) = keys.sorted();
                prop_assert_eq!((&*sorted, found.is_some()), (&expected[..], tie));
            }
        }
    }
}
