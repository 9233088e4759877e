//! The message arena: memory of mailboxes, in lines that are found by their number, without a table.
//!
//! A line holds one value, an envelope or an attachment. Address space for as many lines as there may ever be is
//! reserved at once. It becomes usable segment by segment ([`Arena::grow`]), and the system provides the pages that are
//! touched.
//!
//! The arena hands out addresses and does not read or write what they point to. Its users access lines under rules R7
//! to R9 of docs/unsafe.md. Of these, the arena itself guarantees that a line of a grown segment is zero until it is
//! first written, and that no line moves before the arena is dropped.
//!
//! Several threads may call all of it. The mailboxes call [`Arena::grow`] under their lock, before another thread can
//! have the number of one of the new lines.

use super::mapping::{self, LARGE_PAGE, Mapping};
use std::{
    alloc::{self, Layout},
    iter,
    marker::PhantomData,
    ptr::NonNull,
};

/// Lines of a segment, which becomes usable as a whole: 2 MiB of 64-byte envelopes, and whole pages of any type.
pub(super) const SEGMENT: u32 = 1 << 15;
/// Where address space is limited, the arena takes this fraction (1/8) of it.
const SHARE: usize = 8;

/// Lines that hold values of one type.
pub(super) struct Arena<T> {
    first: NonNull<T>,
    /// Segments that there is room for.
    segments: usize,
    mapping: Mapping,
}

/// Consecutive lines of one segment. They keep the address of the first one, so that a constant offset is part of an
/// instruction and nothing is loaded again after a store.
pub(super) struct Lines<'a, T> {
    first: *const T,
    arena: PhantomData<&'a Arena<T>>,
}

impl<T> Clone for Lines<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lines<'_, T> {}

impl<T> Lines<'_, T> {
    /// Calls `access` with a pointer for reading the line `offset` after the first.
    #[inline(always)] // An access compiles to its address.
    pub fn with<R>(self, offset: usize, access: impl FnOnce(*const T) -> R) -> R {
        access(self.first.wrapping_add(offset))
    }
}

impl<T: Copy> Arena<T> {
    /// Room for `most` segments. Where the address space of the process is limited (RLIMIT_AS), room for an eighth of
    /// it, as a power of two: other simulations of the process and the heap need some too.
    pub fn new(most: usize) -> Self {
        // R8: the first line is aligned to a large page.
        const { assert!(align_of::<T>() <= LARGE_PAGE, "messages and attachments are aligned to at most 2 MiB") };
        Self::fitting(most, Self::map)
    }

    /// The same with `map` in place of the system call.
    fn fitting(most: usize, map: impl Fn(usize) -> Option<Mapping>) -> Self {
        let halves = iter::successors(Some(most), |segments| (*segments > 1).then_some(segments / 2));
        let mapped = halves.into_iter().find_map(|segments| Some((segments, map(segments)?)));
        let granted = mapped.and_then(|(segments, mapping)| {
            if segments == most {
                return mapped;
            }
            // SAFETY: R10: it was made above, and nothing refers to it.
            unsafe { mapping::release(mapping) };
            let share = (segments / SHARE).max(1);
            Some((share, map(share)?))
        });
        let Some((segments, mapping)) = granted else { no_memory::<T>() };
        let start = mapping.0.cast::<u8>();
        // SAFETY: R10: the offset is less than a large page, by which the mapping is longer than its lines.
        let first = unsafe { start.add(start.align_offset(LARGE_PAGE)) };
        Self { first: first.cast(), segments, mapping }
    }

    /// Reserves address space for so many segments, aligned to a large page.
    fn map(segments: usize) -> Option<Mapping> {
        mapping::reserve(segments.checked_mul(SEGMENT as usize * size_of::<T>())?.checked_add(LARGE_PAGE)?)
    }

    /// Makes a segment usable.
    ///
    /// # Panics
    /// If there is no room for it: there are too many of `what`.
    pub fn grow(&self, segment: usize, what: &str) {
        let lines = SEGMENT as usize;
        assert!(segment < self.segments, "more than {} {what}", self.segments as u64 * lines as u64);
        let size = lines * size_of::<T>();
        let Some(start) = NonNull::new(self.first.as_ptr().wrapping_add(segment * lines)) else { no_memory::<T>() };
        // SAFETY: R10: the range is part of the mapping, and R8: nothing refers to it yet.
        if !unsafe { mapping::open(start.cast(), size) } {
            no_memory::<T>();
        }
    }

    /// Calls `access` with a pointer for reading a line.
    #[inline(always)] // An access compiles to its address.
    pub fn with<R>(&self, line: u32, access: impl FnOnce(*const T) -> R) -> R {
        access(self.address(line))
    }

    /// The lines from `first` on, in the same segment.
    #[inline(always)] // As above.
    pub fn from(&self, first: u32) -> Lines<'_, T> {
        Lines { first: self.address(first), arena: PhantomData }
    }

    /// Calls `access` with a pointer for reading and writing a line.
    #[inline(always)] // As above.
    pub fn with_mut<R>(&self, line: u32, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.first.as_ptr().wrapping_add(line as usize))
    }

    /// Address of a line, for prefetching.
    #[inline]
    pub fn address(&self, line: u32) -> *const T {
        self.first.as_ptr().wrapping_add(line as usize).cast_const()
    }
}

/// The system has no memory for a segment.
fn no_memory<T>() -> ! {
    alloc::handle_alloc_error(Layout::new::<[T; SEGMENT as usize]>())
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        // T is Copy: no value needs a drop.
        // SAFETY: R10: the mapping is the arena's own, and lines are borrowed from the arena.
        unsafe { mapping::release(self.mapping) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_zero_until_it_is_written() {
        let lines = Arena::<u64>::new(16);
        assert_eq!(lines.segments, 16);
        lines.grow(15, "lines");
        // SAFETY: R8: its segment has been grown; R9: every bit pattern is a u64. No other thread has access.
        lines.with_mut(16 * SEGMENT - 1, |last| unsafe {
            assert_eq!(*last, 0);
            *last = 7;
            assert_eq!(*last, 7);
        });
    }

    #[test]
    fn takes_an_eighth_of_a_limited_address_space() {
        let room = |most, granted| {
            Arena::<u64>::fitting(most, |segments| (segments <= granted).then(|| Arena::<u64>::map(segments))?)
        };
        assert_eq!(
            [(64, 64), (64, 63), (1 << 40, 100), (64, 3)].map(|(most, granted)| room(most, granted).segments),
            [64, 4, 8, 1]
        );
        let lines = room(64, 63);
        lines.grow(3, "lines");
        // SAFETY: R8: its segment has been grown; R9: every bit pattern is a u64. No other thread has access.
        assert_eq!(lines.with(4 * SEGMENT - 1, |line| unsafe { *line }), 0);
    }

    #[test]
    #[should_panic(expected = "more than 65536 letters")]
    fn too_many_are_named() {
        Arena::<u64>::new(2).grow(2, "letters");
    }
}
