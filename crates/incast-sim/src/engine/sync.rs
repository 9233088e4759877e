//! The barrier between windows, and places that threads do not share.

use std::{
    cell::UnsafeCell,
    hint,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

/// What one thread at a time changes, apart from what others do: in one cache line the two would take it from each
/// other's core at every change. Processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Apart<T>(UnsafeCell<T>);

impl<T> Apart<T> {
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    /// As [`UnsafeCell::get`].
    #[inline]
    pub fn get(&self) -> *mut T {
        self.0.get()
    }
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// A barrier that spins before it yields: windows last microseconds, too short to sleep.
///
/// A thread that panics must call [`Barrier::poison`], or the others would wait for ever.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    poisoned: AtomicBool,
}

/// Looks before a waiting thread offers its core to others: some microseconds.
const SPINS: u32 = 500;

/// Another thread has panicked.
#[derive(Debug)]
pub(super) struct Poisoned;

impl Barrier {
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            poisoned: AtomicBool::new(false),
        }
    }

    /// Waits for all threads.
    #[inline]
    pub fn wait(&self) -> Result<(), Poisoned> {
        if self.threads == 1 {
            return Ok(());
        }
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
        } else {
            let mut spins = 0u32;
            while self.generation.load(Ordering::Acquire) == generation {
                if self.poisoned.load(Ordering::Relaxed) {
                    return Err(Poisoned);
                }
                spins += 1;
                if spins < SPINS {
                    hint::spin_loop();
                } else {
                    thread::yield_now();
                }
            }
        }
        if self.poisoned.load(Ordering::Relaxed) { Err(Poisoned) } else { Ok(()) }
    }

    /// Releases everybody: the caller is about to panic.
    pub fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }
}
