//! Memory of mailboxes: lines that are found by their number, without a table.
//!
//! Address space for as many lines as there may ever be is set aside at once. It can be used segment by segment, from
//! [`Lines::grow`] on, and the system provides what is touched.
//!
//! The rule: a line of a segment that has been grown is zero until it is first written, and stays where it is. Who may
//! read and write a line is for the owner to say (see [`super::mailbox`]): this hands out addresses, and nothing here
//! reads or writes what they point to. So [`Lines::at`] is safe, and only to follow the pointer is not:
//! 1. The line's segment has been grown. Any other line faults.
//! 2. Nobody else writes it meanwhile, nor reads it where it is written.
//! 3. What is read has been written before, or is of a type of which zero is a value. After a line has been used for
//!    something else, what is read must be of a type of which every bit pattern is a value.
//!
//! Several threads may call all of it: `at` reads what never changes, and the caller sees to it that one segment is
//! grown by one thread before others hear of its lines.

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use std::{
    alloc::{self, Layout},
    ffi::c_void,
    iter,
    num::NonZeroUsize,
    ptr::NonNull,
};

/// Lines of a segment, which becomes usable in one go: 2 MiB of one-line envelopes, and whole pages of whatever.
pub(super) const SEGMENT: u32 = 1 << 15;
/// Size and alignment of a large page.
const LARGE_PAGE: usize = 2 << 20;
/// Where there is not as much address space as wanted, one part in so many of what there is is taken.
const SHARE: usize = 8;

/// Lines of one kind.
pub(super) struct Lines<T> {
    first: NonNull<T>,
    /// Segments that there is room for.
    segments: usize,
    mapping: Mapping,
}

/// What was asked of the system: where it starts, and its size.
type Mapping = (NonNull<c_void>, usize);

impl<T: Copy> Lines<T> {
    /// Room for `most` segments. Where the process may not have as much address space (RLIMIT_AS), room for an eighth
    /// of as much as there is, in powers of two: other simulations of the process and the heap need some too.
    pub fn new(most: usize) -> Self {
        Self::fitting(most, Self::map)
    }

    /// The same where `map` is what the system grants.
    fn fitting(most: usize, map: impl Fn(usize) -> Option<Mapping>) -> Self {
        let halves = iter::successors(Some(most), |segments| (*segments > 1).then_some(segments / 2));
        let mapped = halves.into_iter().find_map(|segments| Some((segments, map(segments)?)));
        let granted = mapped.and_then(|(segments, mapping)| {
            if segments == most {
                return mapped;
            }
            unmap(mapping);
            let share = (segments / SHARE).max(1);
            Some((share, map(share)?))
        });
        let Some((segments, mapping)) = granted else { no_memory::<T>() };
        let start = mapping.0.cast::<u8>();
        // SAFETY: less than a large page, by which the mapping is longer than its lines.
        let first = unsafe { start.add(start.align_offset(LARGE_PAGE)) };
        Self { first: first.cast(), segments, mapping }
    }

    /// Address space for so many segments that start at a large page. It costs nothing until it is grown: what cannot
    /// be written is not counted as memory even where the system promises no more than it has.
    fn map(segments: usize) -> Option<Mapping> {
        let size = segments.checked_mul(SEGMENT as usize * size_of::<T>())?.checked_add(LARGE_PAGE)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: new memory, which nobody else knows.
        let start = unsafe { mmap_anonymous(None, NonZeroUsize::new(size)?, ProtFlags::PROT_NONE, flags) };
        Some((start.ok()?, size))
    }

    /// Makes a segment usable.
    ///
    /// # Panics
    /// If there is no room for it: there are too many of `what`.
    pub fn grow(&self, segment: usize, what: &str) {
        let lines = SEGMENT as usize;
        assert!(segment < self.segments, "more than {} {what}", self.segments as u64 * lines as u64);
        let size = lines * size_of::<T>();
        let Some(start) = NonNull::new(self.first.as_ptr().wrapping_add(segment * lines)) else {
            no_memory::<T>()
        };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the range is part of the mapping, and nobody refers to anything in it yet.
        if unsafe { mprotect(start.cast(), size, access) }.is_err() {
            no_memory::<T>();
        }
        if size >= LARGE_PAGE {
            // SAFETY: as above. The advice is only a hint: a refusal is no error.
            let _ = unsafe { madvise(start.cast(), size, MmapAdvise::MADV_HUGEPAGE) };
        }
    }

    /// Where a line is, if its segment has been grown; see the module for who may follow this.
    #[inline]
    pub fn at(&self, line: u32) -> *mut T {
        self.first.as_ptr().wrapping_add(line as usize)
    }
}

/// The system has no memory for a segment.
fn no_memory<T>() -> ! {
    alloc::handle_alloc_error(Layout::new::<[T; SEGMENT as usize]>())
}

/// Gives back what [`Lines::map`] got, to which nothing refers any more.
fn unmap((start, length): Mapping) {
    // SAFETY: the caller has this from `map` and uses it no more. Nobody could do anything about a failure.
    let _ = unsafe { munmap(start, length) };
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        // T is Copy wherever this is used: nothing is to be dropped before.
        unmap(self.mapping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_zero_until_it_is_written() {
        let lines = Lines::<u64>::new(16);
        assert_eq!(lines.segments, 16);
        lines.grow(15, "lines");
        let last = lines.at(16 * SEGMENT - 1);
        // SAFETY: its segment has been grown, and nobody else knows it.
        unsafe {
            assert_eq!(*last, 0);
            *last = 7;
            assert_eq!(*last, 7);
        }
    }

    /// Where there is less address space than wanted, others get some of it too.
    #[test]
    fn a_part_of_the_room_that_there_is_will_do() {
        let room = |most, granted| {
            Lines::<u64>::fitting(most, |segments| {
                (segments <= granted).then(|| Lines::<u64>::map(segments))?
            })
        };
        assert_eq!(
            [(64, 64), (64, 63), (1 << 40, 100), (64, 3)].map(|(most, granted)| room(most, granted).segments),
            [64, 4, 8, 1]
        );
        let lines = room(64, 63);
        lines.grow(3, "lines");
        // SAFETY: its segment has been grown, and nobody else knows it.
        assert_eq!(unsafe { *lines.at(4 * SEGMENT - 1) }, 0);
    }

    #[test]
    #[should_panic(expected = "more than 65536 letters")]
    fn too_many_are_named() {
        Lines::<u64>::new(2).grow(2, "letters");
    }
}
