//! Sorting networks for the processors of whose vectors one holds eight numbers: no branch depends on what is sorted.

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Network;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::Network;

/// The longest list that is sorted.
pub(super) const MOST: usize = 128;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::MOST;
    use std::arch::x86_64::*;

    const LANES: usize = 8;
    /// Bits of relative times.
    const TIME_BITS: u32 = 20;
    /// Bits of a place.
    const PLACE_BITS: u32 = MOST.ilog2();

    /// Keys at eight places, each its relative time and then its place. A list is written into a few rows, one after
    /// the other, but read by columns: it is sorted as soon as each column is, and none has a key that is smaller than
    /// one of the column before.
    type Row = __m256i;

    /// This processor has AVX2.
    #[derive(Clone, Copy, Debug)]
    pub struct Network(());

    impl Network {
        /// If this processor can.
        pub fn detect() -> Option<Self> {
            is_x86_feature_detected!("avx2").then_some(Self(()))
        }

        /// Sorts the first `count` of a list of relative times, below 2^20, in the upper halves, and anything in the
        /// lower, by time and then by place. Returns whether some have the same time. There must be room for the next
        /// power of two, and for eight; what lies behind the end may be anything.
        #[inline]
        pub fn sort(self, list: &[u64], count: usize, sorted: &mut [u64]) -> bool {
            // SAFETY: `detect` has found AVX2.
            unsafe {
                match count {
                    ..=8 => sort::<1, 8>(list, count, sorted),
                    ..=16 => sort::<2, 16>(list, count, sorted),
                    ..=32 => sort::<4, 32>(list, count, sorted),
                    ..=64 => sort::<8, 64>(list, count, sorted),
                    _ => sort::<16, MOST>(list, count, sorted),
                }
            }
        }
    }

    /// A bitonic network (K. Batcher, Sorting networks and their applications, 1968): what is sorted already is merged
    /// in pairs, first within the columns, then across them.
    #[target_feature(enable = "avx2")]
    fn sort<const ROWS: usize, const PLACES: usize>(list: &[u64], count: usize, sorted: &mut [u64]) -> bool {
        let list = list.first_chunk::<PLACES>().expect("there is room for all rows");
        let sorted = sorted.first_chunk_mut::<PLACES>().expect("there is room for all rows");
        let mut rows = [_mm256_setzero_si256(); ROWS];
        let mut place = lanes(|lane| lane);
        for (row, keys) in rows.iter_mut().zip(list.as_chunks::<LANES>().0) {
            let time = lanes(|lane| (keys[lane as usize] >> 32) as u32);
            // What fills up is later than all, each at a time of its own.
            let later = _mm256_or_si256(place, _mm256_set1_epi32(1 << TIME_BITS));
            let is_key = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), place);
            let time = _mm256_blendv_epi8(later, time, is_key);
            *row = _mm256_or_si256(_mm256_slli_epi32::<{ PLACE_BITS as i32 }>(time), place);
            place = _mm256_add_epi32(place, _mm256_set1_epi32(LANES as i32));
        }
        let mut run = 2;
        while run <= ROWS {
            for low in (0..ROWS).filter(|row| row & (run / 2) == 0) {
                exchange(&mut rows, low, low ^ (run - 1));
            }
            finish_columns(&mut rows, run / 2);
            run *= 2;
        }
        merge_columns::<ROWS, 1, 1>(&mut rows);
        finish_columns(&mut rows, ROWS);
        merge_columns::<ROWS, 2, 3>(&mut rows);
        exchange_lanes::<ROWS, 1, 1>(&mut rows);
        finish_columns(&mut rows, ROWS);
        merge_columns::<ROWS, 4, 7>(&mut rows);
        exchange_lanes::<ROWS, 2, 2>(&mut rows);
        exchange_lanes::<ROWS, 1, 1>(&mut rows);
        finish_columns(&mut rows, ROWS);

        let in_place = _mm256_set1_epi32(PLACES as i32 - 1);
        // SAFETY: a row is eight numbers, of which any bits are one.
        let places = rows
            .map(|row| unsafe { std::mem::transmute::<Row, [u32; LANES]>(_mm256_and_si256(row, in_place)) });
        for lane in 0..count.div_ceil(ROWS).min(LANES) {
            for (row, places) in places.iter().enumerate() {
                sorted[lane * ROWS + row] = list[places[lane] as usize % PLACES];
            }
        }
        has_tie(&rows)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn lanes(of: impl Fn(u32) -> u32) -> Row {
        let of = |lane| of(lane) as i32;
        _mm256_setr_epi32(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7))
    }

    /// The smaller of two keys in each lane, and the larger.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn in_order(one: Row, other: Row) -> (Row, Row) {
        (_mm256_min_epu32(one, other), _mm256_max_epu32(one, other))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn exchange<const ROWS: usize>(rows: &mut [Row; ROWS], low: usize, high: usize) {
        (rows[low], rows[high]) = in_order(rows[low], rows[high]);
    }

    /// Sorts runs of `run` keys of the columns: none in the first half of one is larger than one in the second half, and
    /// each half is bitonic. Goes on with halves of it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish_columns<const ROWS: usize>(rows: &mut [Row; ROWS], run: usize) {
        let mut distance = run / 2;
        while distance > 0 {
            for low in (0..ROWS).filter(|row| row & distance == 0) {
                exchange(rows, low, low + distance);
            }
            distance /= 2;
        }
    }

    /// Keys of the lanes whose number is that of the own one with bits `WITH` turned around.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn turned<const WITH: u32>(keys: Row) -> Row {
        _mm256_permutevar8x32_epi32(keys, lanes(|lane| lane ^ WITH))
    }

    /// Of lanes whose number has bit `BIT` the keys of `upper`, of the others those of `lower`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn either<const BIT: u32>(lower: Row, upper: Row) -> Row {
        _mm256_blendv_epi8(lower, upper, lanes(|lane| if lane & BIT == 0 { 0 } else { u32::MAX }))
    }

    /// Exchanges each key of `BIT` columns with that at the mirrored place of the next `BIT`, whose lanes are found with
    /// `WITH`: the larger ones go there.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn merge_columns<const ROWS: usize, const BIT: u32, const WITH: u32>(rows: &mut [Row; ROWS]) {
        if ROWS == 1 {
            return exchange_lanes::<ROWS, BIT, WITH>(rows);
        }
        for low in 0..ROWS / 2 {
            let high = ROWS - 1 - low;
            let (smaller, larger) = in_order(rows[low], turned::<WITH>(rows[high]));
            rows[low] = either::<BIT>(smaller, larger);
            rows[high] = turned::<WITH>(either::<BIT>(larger, smaller));
        }
    }

    /// Exchanges each key of lanes without bit `BIT` with that of the same row in the lane found with `WITH`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn exchange_lanes<const ROWS: usize, const BIT: u32, const WITH: u32>(rows: &mut [Row; ROWS]) {
        for row in rows {
            let (smaller, larger) = in_order(*row, turned::<WITH>(*row));
            *row = either::<BIT>(smaller, larger);
        }
    }

    /// Whether two neighbours have the same time. The last and the first count as neighbours, which makes no difference
    /// with two keys or more.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn has_tie<const ROWS: usize>(rows: &[Row; ROWS]) -> bool {
        let next_column = _mm256_permutevar8x32_epi32(rows[0], lanes(|lane| (lane + 1) % LANES as u32));
        let mut least = _mm256_xor_si256(rows[ROWS - 1], next_column);
        for row in 1..ROWS {
            least = _mm256_min_epu32(least, _mm256_xor_si256(rows[row - 1], rows[row]));
        }
        let same_time =
            _mm256_cmpeq_epi32(_mm256_srli_epi32::<{ PLACE_BITS as i32 }>(least), _mm256_setzero_si256());
        _mm256_movemask_epi8(same_time) != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    /// No network for this processor.
    #[derive(Clone, Copy, Debug)]
    pub enum Network {}

    impl Network {
        pub fn detect() -> Option<Self> {
            None
        }

        pub fn sort(self, _: &[u64], _: usize, _: &mut [u64]) -> bool {
            match self {}
        }
    }
}
