//! What the engine takes from `std` to share memory between threads. The loom models compile the same engine code with
//! another version of this file (models/), whose types check each access.

pub(super) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};

use std::hint;

/// [`std::cell::UnsafeCell`] with the interface of loom's, which sees where an access begins and ends.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }
    /// Calls `access` with a pointer for reading.
    #[inline(always)] // An access compiles to its address.
    pub fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get().cast_const())
    }
    /// Calls `access` with a pointer for reading and writing.
    #[inline(always)] // As above.
    pub fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Spins before a waiting thread sleeps, at least and at most: from what it costs to wake one, to a large window.
pub(super) const SPINS: (usize, usize) = (1_000, 10_000);

/// One round of waiting for another thread.
#[inline]
pub(super) fn spin() {
    hint::spin_loop();
}
