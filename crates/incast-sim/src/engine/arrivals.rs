//! The arrivals of a domain in one window, in their order.

/// Arrivals that are taken and compared at a time: what a vector of the processor holds. Mailboxes have so many lines
/// to a chunk, so that a chunk is taken in one step, however few of them are in use.
pub(super) const LANES: usize = 8;
const TWICE: usize = 2 * LANES;
/// The most arrivals in a part of the window that are still sorted by counting.
const WIDEST: usize = 4 * LANES;
/// Bits of relative times.
const TIME_BITS: u32 = 20;
/// The most parts that a window is divided into, as bits.
const PART_BITS: u32 = 6;
/// Bits of a place.
const PLACE_BITS: u32 = i32::BITS - 1 - TIME_BITS;
/// The longest list that is sorted by counting.
const MOST: usize = (1 << PLACE_BITS) - 1;

/// Arrivals of the window being executed: relative time in the upper half, line in the lower.
#[derive(Default)]
pub(super) struct Keys {
    count: usize,
    /// As they came, and at least [`TWICE`] places more.
    list: Vec<u64>,
    /// By parts of the window.
    parted: Vec<u64>,
    /// Relative times and places of those, then at least [`WIDEST`] that are later.
    times: Vec<i32>,
    sorted: Vec<u64>,
}

/// Keys that are later than any arrival, each at a time of its own, in order.
const LATER: [u64; LANES] = {
    let mut keys = [0; LANES];
    let mut place = 0;
    while place < LANES {
        keys[place] = (1 << 63) | (place as u64) << 32;
        place += 1;
    }
    keys
};

/// What is compared for a key at a place: relative time, then place.
#[inline(always)]
fn time_and_place(key: u64, place: usize) -> i32 {
    ((key >> 32) << PLACE_BITS) as i32 | place as i32
}

/// Two keys have the same time.
#[inline(always)]
fn is_tie(one: u64, other: u64) -> bool {
    (one ^ other) >> 32 == 0
}

/// How many of the first `WIDTH` are smaller than `own`. There is no branch to guess, and all lanes are compared at
/// once: times are not negative, so that the sign of the difference says which is smaller.
#[inline(always)]
fn smaller<const WIDTH: usize>(times: &[i32], own: i32) -> usize {
    let times = times.first_chunk::<WIDTH>().map_or(&[i32::MAX; WIDTH], |times| times);
    times.iter().map(|other| (other.wrapping_sub(own) as u32) >> 31).sum::<u32>() as usize
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

    /// Adds `arrivals[..count]`: relative times, below 2^20, and lines. The others, which may be anything, are
    /// written too, as no processor guesses how many there are: they lie behind the end, and are overwritten later or
    /// ignored.
    #[inline(always)]
    pub fn extend(&mut self, count: usize, arrivals: [(u64, u32); LANES]) {
        debug_assert!(count <= LANES, "{count} of {LANES}");
        let end = self.count + count;
        if end + TWICE > self.list.len() {
            self.grow(end);
        }
        let places = self.list[self.count..].first_chunk_mut::<LANES>();
        *places.expect("there are as many places behind the end") =
            arrivals.map(|(time, line)| time << 32 | u64::from(line));
        self.count = end;
    }

    /// The lines, in any order.
    pub fn lines(&self) -> impl Iterator<Item = u32> {
        self.list[..self.count].iter().map(|key| *key as u32)
    }

    /// The keys by time, and whether some have the same.
    #[inline]
    pub fn sorted(&mut self) -> (&mut [u64], bool) {
        let count = self.count;
        match count {
            0..2 => return (&mut self.list[..count], false),
            2..=LANES => {
                let tie = self.sort_few();
                return (&mut self.list[..count], tie);
            }
            count if count <= TWICE => self.sort_some(),
            count if count <= MOST => self.sort_many(),
            _ => self.sort_crowded(),
        }
        let sorted = &mut self.sorted[..count];
        let tie = sorted.windows(2).fold(false, |tie, pair| tie | is_tie(pair[0], pair[1]));
        (sorted, tie)
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let room = count.next_power_of_two().max(TWICE);
        self.list.resize(room + TWICE, 0);
        self.parted.resize(room, 0);
        self.sorted.resize(room, 0);
        self.times.resize(room + WIDEST, i32::MAX);
    }

    /// Most lists are short and in no order that a processor could guess: these are compared and exchanged in an order
    /// that does not depend on what they are. Returns whether some have the same time.
    #[inline(always)]
    fn sort_few(&mut self) -> bool {
        // What fills up is later than all, each at a time of its own.
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

    /// Puts each key where the number of smaller ones says.
    #[inline(always)]
    fn sort_some(&mut self) {
        let keys = &self.list[..self.count];
        let mut times = [i32::MAX; TWICE];
        for (place, (time, key)) in times.iter_mut().zip(keys).enumerate() {
            *time = time_and_place(*key, place);
        }
        let sorted = &mut self.sorted[..TWICE];
        for (own, key) in times.iter().zip(keys) {
            sorted[smaller::<TWICE>(&times, *own) % TWICE] = *key;
        }
    }

    /// Divides a longer list by parts of the window, of few keys each, and goes on as with few. What comes after a part
    /// is later than all of it, so that it does no harm to compare with more than there is.
    #[inline(never)]
    fn sort_many(&mut self) {
        let count = self.count;
        let bits = count.ilog2().min(PART_BITS);
        let part_of = |key: u64| (key >> (32 + TIME_BITS - bits)) as usize % (1 << PART_BITS);
        let mut places = [0u16; 1 << PART_BITS];
        for key in &self.list[..count] {
            places[part_of(*key)] += 1;
        }
        let (mut starts, mut sum, mut most) = ([0u16; 1 << PART_BITS], 0, 0);
        for (place, start) in places.iter_mut().zip(&mut starts).take(1 << bits) {
            most = most.max(*place);
            *start = sum;
            sum += std::mem::replace(place, sum);
        }
        if most as usize > WIDEST {
            return self.sort_crowded();
        }
        for key in &self.list[..count] {
            let place = &mut places[part_of(*key)];
            self.parted[*place as usize] = *key;
            self.times[*place as usize] = time_and_place(*key, *place as usize);
            *place += 1;
        }
        self.times[count..count + WIDEST].fill(i32::MAX);
        let starts = |key: u64| starts[part_of(key)] as usize;
        match most as usize {
            0..=LANES => self.rank::<LANES>(starts),
            most if most <= TWICE => self.rank::<TWICE>(starts),
            _ => self.rank::<WIDEST>(starts),
        }
    }

    /// Sorts what is too much, or comes too close together, for counting.
    #[cold]
    fn sort_crowded(&mut self) {
        let sorted = &mut self.sorted[..self.count];
        sorted.copy_from_slice(&self.list[..self.count]);
        sorted.sort_unstable();
    }

    /// Puts each key where the start of its part and the number of smaller ones in it say.
    #[inline(always)]
    fn rank<const WIDTH: usize>(&mut self, start_of: impl Fn(u64) -> usize) {
        let Self { count, parted, times, sorted, .. } = self;
        for (own, key) in times.iter().zip(&parted[..*count]) {
            let start = start_of(*key);
            sorted[start + smaller::<WIDTH>(&times[start..], *own)] = *key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_by_time(times in proptest::collection::vec(0u64..1 << 20, 0..300), spread in 1u64..1 << 20) {
            let list = times.iter().enumerate().map(|(line, time)| (time % spread) << 32 | line as u64);
            let mut expected: Vec<u64> = list.collect();
            let mut keys = Keys::default();
            keys.extend(5, std::array::from_fn(|line| (line as u64 * 77 % 90, line as u32)));
            keys.sorted();
            // What was there before does not matter, nor what lies behind.
            keys.clear();
            for chunk in expected.chunks(LANES) {
                let of = |place: usize| chunk.get(place).map_or((u64::MAX / 3, 7), |key| (key >> 32, *key as u32));
                keys.extend(chunk.len(), std::array::from_fn(of));
            }
            expected.sort_unstable();
            let tie = expected.windows(2).any(|pair| pair[0] >> 32 == pair[1] >> 32);
            let (sorted, found) = keys.sorted();
            prop_assert_eq!((&*sorted, found), (&expected[..], tie));
        }
    }
}
