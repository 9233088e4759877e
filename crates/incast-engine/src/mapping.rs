//! Address space of the system for an arena: reserved at once, usable part by part, zero until it is written.

use std::{ffi::c_void, ptr::NonNull};

/// Size and alignment of a large page.
pub(super) const LARGE_PAGE: usize = 2 << 20;

/// Reserved address space: start and size.
pub(super) type Mapping = (NonNull<c_void>, usize);

#[cfg(not(miri))]
mod system {
    use super::{LARGE_PAGE, Mapping};
    use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
    use std::{ffi::c_void, num::NonZeroUsize, ptr::NonNull};

    /// Reserves address space. Pages without access (`PROT_NONE`) do not count as committed memory, even without
    /// overcommit. `None` if the system refuses.
    pub fn reserve(size: usize) -> Option<Mapping> {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: R10: a new mapping, at an address that the system chooses.
        let start = unsafe { mmap_anonymous(None, NonZeroUsize::new(size)?, ProtFlags::PROT_NONE, flags) };
        Some((start.ok()?, size))
    }

    /// Makes a part of a mapping usable. Returns whether the system has.
    ///
    /// # Safety
    /// The part is of a mapping that has not been released, and nothing refers to it yet (R8, R10).
    pub unsafe fn open(start: NonNull<c_void>, size: usize) -> bool {
        // SAFETY: promised by the caller (R10).
        if unsafe { mprotect(start, size, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE) }.is_err() {
            return false;
        }
        if size >= LARGE_PAGE {
            // SAFETY: R10: as above. The advice is a hint: a refusal is no error.
            let _ = unsafe { madvise(start, size, MmapAdvise::MADV_HUGEPAGE) };
        }
        true
    }

    /// Gives a mapping back.
    ///
    /// # Safety
    /// It is a result of [`reserve`] to which nothing refers any more (R10).
    pub unsafe fn release((start, size): Mapping) {
        // SAFETY: promised by the caller (R10). A failure leaks address space, nothing else.
        let _ = unsafe { munmap(start, size) };
    }
}

/// Miri has no memory protection: memory of the allocator, and little of it.
#[cfg(miri)]
mod system {
    use super::{LARGE_PAGE, Mapping};
    use std::{
        alloc::{Layout, alloc_zeroed, dealloc},
        ffi::c_void,
        ptr::NonNull,
    };

    const MOST: usize = 4 * LARGE_PAGE;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, LARGE_PAGE).expect("a small size and a power of two")
    }

    pub fn reserve(size: usize) -> Option<Mapping> {
        if size == 0 || size > MOST {
            return None;
        }
        // SAFETY: R10: the size is not zero.
        Some((NonNull::new(unsafe { alloc_zeroed(layout(size)) })?.cast(), size))
    }

    pub unsafe fn open(_: NonNull<c_void>, _: usize) -> bool {
        true
    }

    pub unsafe fn release((start, size): Mapping) {
        // SAFETY: promised by the caller (R10).
        unsafe { dealloc(start.as_ptr().cast(), layout(size)) }
    }
}

pub(super) use system::{open, release, reserve};
