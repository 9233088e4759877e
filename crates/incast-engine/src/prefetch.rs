//! Hints to the processor: memory that will be needed soon.
//!
//! In a large fabric each domain's state has left the cache when its turn comes. Fetching it while other domains run
//! hides most of the wait. A hint changes no result.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the first `lines` cache lines from `address` on; any address is allowed.
#[inline(always)]
pub fn prefetch<T>(address: *const T, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: R11: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>().wrapping_add(line * LINE)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, lines, LINE);
}

/// Prefetches the cache line at `address`, for writing; any address is allowed.
#[inline(always)]
pub fn prefetch_for_writing<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: R11: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
