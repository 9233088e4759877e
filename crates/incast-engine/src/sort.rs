//! A sorting network in vectors of eight numbers, where the processor has them: no branch depends on what is sorted.

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::SortingNetwork;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::SortingNetwork;

/// The longest list that is sorted.
pub(super) const MOST: usize = 128;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::MOST;
    use std::arch::x86_64::*;

    /// Columns.
    const LANES: usize = 8;
    /// Bits of relative times.
    const TIME_BITS: u32 = 21;
    /// Bits of a place.
    const PLACE_BITS: i32 = MOST.ilog2() as i32;

    /// Keys in the eight lanes of a vector, each a relative time and then a place in the list. A few rows of them are
    /// a list that is written row by row, and read column by column when it is sorted.
    type Row = __m256i;

    /// Only where there is AVX2.
    #[derive(Clone, Copy, Debug)]
    pub struct SortingNetwork(());

    impl SortingNetwork {
        /// The network, if the processor has AVX2.
        pub fn detect() -> Option<Self> {
            is_x86_feature_detected!("avx2").then_some(Self(()))
        }

        /// Sorts the first `count` of a list, from two to [`MOST`], by what is in their upper halves, relative times
        /// below 2^21, and then by place. Returns whether some have the same time. Both lists have room for the next
        /// power of two, and for 16; what lies behind the end may be anything.
        #[inline]
        pub fn sort(self, list: &[u64], count: usize, sorted: &mut [u64]) -> bool {
            debug_assert!((2..=MOST).contains(&count), "{count} keys");
            // SAFETY: R12: `detect` has found AVX2.
            unsafe {
                match count {
                    ..=16 => sort::<2, 16>(list, count, sorted),
                    17..=32 => sort::<4, 32>(list, count, sorted),
                    33..=64 => sort::<8, 64>(list, count, sorted),
                    _ => sort::<16, MOST>(list, count, sorted),
                }
            }
        }
    }

    /// Merges sorted runs in pairs, first within the columns and then across them (K. Batcher, Sorting networks and
    /// their applications, 1968). One run of a pair is reversed, so that both together are bitonic. The smaller and the
    /// larger half of a bitonic run are bitonic again.
    #[target_feature(enable = "avx2")]
    fn sort<const ROWS: usize, const PLACES: usize>(list: &[u64], count: usize, sorted: &mut [u64]) -> bool {
        let list = list.first_chunk::<PLACES>().expect("there is room for all rows");
        let sorted = sorted.first_chunk_mut::<PLACES>().expect("there is room for all rows");
        let mut rows = [_mm256_setzero_si256(); ROWS];
        let mut place = lanes(|lane| lane);
        for (row, keys) in rows.iter_mut().zip(list.as_chunks::<LANES>().0) {
            let time = lanes(|lane| (keys[lane as usize] >> 32) as u32);
            // Padding: later than all keys, at distinct times.
            let later = _mm256_or_si256(place, _mm256_set1_epi32(1 << TIME_BITS));
            let is_key = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), place);
            let time = _mm256_blendv_epi8(later, time, is_key);
            *row = _mm256_or_si256(_mm256_slli_epi32::<PLACE_BITS>(time), place);
            place = _mm256_add_epi32(place, _mm256_set1_epi32(LANES as i32));
        }

        merge_runs::<ROWS, 1>(&mut rows);
        merge_runs::<ROWS, 2>(&mut rows);
        merge_runs::<ROWS, 4>(&mut rows);
        merge_runs::<ROWS, 8>(&mut rows);
        merge_columns::<ROWS, 1>(&mut rows);
        sort_runs::<ROWS, ROWS>(&mut rows);
        merge_columns::<ROWS, 2>(&mut rows);
        exchange_columns::<ROWS, 1>(&mut rows);
        sort_runs::<ROWS, ROWS>(&mut rows);
        merge_columns::<ROWS, 4>(&mut rows);
        exchange_columns::<ROWS, 2>(&mut rows);
        exchange_columns::<ROWS, 1>(&mut rows);
        sort_runs::<ROWS, ROWS>(&mut rows);

        let place_of = |row| _mm256_and_si256(row, _mm256_set1_epi32(PLACES as i32 - 1));
        // SAFETY: R13: both types are eight integers of 32 bits.
        let places = rows.map(|row| unsafe { std::mem::transmute::<Row, [u32; LANES]>(place_of(row)) });
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

    /// The keys of other columns: those whose numbers differ in bits `BITS`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn from_others<const BITS: u32>(row: Row) -> Row {
        _mm256_permutevar8x32_epi32(row, lanes(|lane| lane ^ BITS))
    }

    /// In columns with bit `BIT` in their number the keys of `with`, in others those of `without`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn choose<const BIT: u32>(without: Row, with: Row) -> Row {
        _mm256_blendv_epi8(without, with, lanes(|lane| if lane & BIT == 0 { 0 } else { u32::MAX }))
    }

    /// In each column, merges pairs of sorted runs of `LENGTH` keys, if there are any.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn merge_runs<const ROWS: usize, const LENGTH: usize>(rows: &mut [Row; ROWS]) {
        if LENGTH < ROWS {
            for low in 0..ROWS {
                if low & LENGTH == 0 {
                    let high = low ^ (2 * LENGTH - 1);
                    (rows[low], rows[high]) = in_order(rows[low], rows[high]);
                }
            }
            sort_runs::<ROWS, LENGTH>(rows);
        }
    }

    /// In each column, sorts bitonic runs of `LENGTH` keys.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sort_runs<const ROWS: usize, const LENGTH: usize>(rows: &mut [Row; ROWS]) {
        if LENGTH > 8 {
            exchange_rows::<ROWS, 8>(rows);
        }
        if LENGTH > 4 {
            exchange_rows::<ROWS, 4>(rows);
        }
        if LENGTH > 2 {
            exchange_rows::<ROWS, 2>(rows);
        }
        if LENGTH > 1 {
            exchange_rows::<ROWS, 1>(rows);
        }
    }

    /// Puts the smaller keys into rows without bit `BIT` in their number, and the larger into those with it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn exchange_rows<const ROWS: usize, const BIT: usize>(rows: &mut [Row; ROWS]) {
        for low in 0..ROWS {
            if low & BIT == 0 {
                (rows[low], rows[low | BIT]) = in_order(rows[low], rows[low | BIT]);
            }
        }
    }

    /// Takes the first step of merging pairs of `COUNT` columns, in which the keys are sorted.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn merge_columns<const ROWS: usize, const COUNT: u32>(rows: &mut [Row; ROWS]) {
        // Turned around, all bits of a column's number differ, and of a row's.
        let turned = match COUNT {
            1 => from_others::<1>,
            2 => from_others::<3>,
            _ => from_others::<7>,
        };
        for low in 0..ROWS / 2 {
            let high = ROWS - 1 - low;
            let (smaller, larger) = in_order(rows[low], turned(rows[high]));
            rows[low] = choose::<COUNT>(smaller, larger);
            rows[high] = turned(choose::<COUNT>(larger, smaller));
        }
    }

    /// Puts the smaller keys into columns without bit `BIT` in their number, and the larger into those with it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn exchange_columns<const ROWS: usize, const BIT: u32>(rows: &mut [Row; ROWS]) {
        for row in rows {
            let (smaller, larger) = in_order(*row, from_others::<BIT>(*row));
            *row = choose::<BIT>(smaller, larger);
        }
    }

    /// Whether two neighbours have the same time. The last and the first count as neighbours too, as it does no harm.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn has_tie<const ROWS: usize>(rows: &[Row; ROWS]) -> bool {
        let next = _mm256_permutevar8x32_epi32(rows[0], lanes(|lane| (lane + 1) % LANES as u32));
        let mut least = _mm256_xor_si256(rows[ROWS - 1], next);
        for row in 1..ROWS {
            least = _mm256_min_epu32(least, _mm256_xor_si256(rows[row - 1], rows[row]));
        }
        let same = _mm256_cmpeq_epi32(_mm256_srli_epi32::<PLACE_BITS>(least), _mm256_setzero_si256());
        _mm256_movemask_epi8(same) != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    /// This processor has no network: the type has no value.
    #[derive(Clone, Copy, Debug)]
    pub enum SortingNetwork {}

    impl SortingNetwork {
        pub fn detect() -> Option<Self> {
            None
        }

        pub fn sort(self, _: &[u64], _: usize, _: &mut [u64]) -> bool {
            match self {}
        }
    }
}
