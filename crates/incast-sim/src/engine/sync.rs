//! The barrier between windows.

use std::{
    hint,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

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
