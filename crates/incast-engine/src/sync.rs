//! The barrier between windows, and padding against false sharing.

use super::primitives::{AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, SPINS, UnsafeCell, fence, spin};
use std::sync::PoisonError;

/// A value that one thread at a time accesses, in cache lines of its own, so that two threads that write neighbours do
/// not share a line (false sharing). 128 bytes, because processors prefetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct CachePadded<T>(UnsafeCell<T>);

impl<T> CachePadded<T> {
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    /// As [`UnsafeCell::with`].
    #[inline]
    pub fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        self.0.with(access)
    }
    /// As [`UnsafeCell::with_mut`].
    #[inline]
    pub fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(access)
    }
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// A barrier that spins before it sleeps: windows last microseconds, too short to sleep, unless a thread that others wait
/// for has no core. Then a thread that went on spinning, or yielded, would keep a core from it for whole time slices. So
/// where threads had to sleep they spin less from then on, and more again where spinning is enough.
///
/// Rule R3: what a thread did before [`Barrier::wait`] happens before what any thread does after that wait. The last
/// thread acquires what the others released in `arrived`, and releases all of it in `generation`.
///
/// A thread that panics must call [`Barrier::poison`], or the others would wait for ever.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    poisoned: AtomicBool,
    /// Threads that sleep or are about to. They change it before they look at `generation` for the last time, and who
    /// changes `generation` looks at it after that; a fence between the two on either side lets one of them see the other.
    sleepers: AtomicUsize,
    /// Spins before a thread sleeps.
    spins: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

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
            sleepers: AtomicUsize::new(0),
            spins: AtomicUsize::new(SPINS.1),
            lock: Mutex::new(()),
            wake: Condvar::new(),
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
            // Before `generation`: a thread that leaves may arrive at the next wait at once.
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake_sleepers();
        } else {
            let (mut rounds, spins) = (0, self.spins.load(Ordering::Relaxed));
            while self.generation.load(Ordering::Acquire) == generation {
                if self.poisoned.load(Ordering::Relaxed) {
                    return Err(Poisoned);
                }
                spin();
                if rounds == spins {
                    self.spins.store((spins / 2).max(SPINS.0), Ordering::Relaxed);
                    self.sleep(generation);
                }
                rounds += 1;
            }
            if rounds < spins && spins < SPINS.1 {
                self.spins.store(spins + spins / 64 + 1, Ordering::Relaxed);
            }
        }
        if self.poisoned.load(Ordering::Relaxed) { Err(Poisoned) } else { Ok(()) }
    }

    /// Sleeps until the last thread has come, or one has panicked.
    #[cold]
    fn sleep(&self, generation: usize) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while self.generation.load(Ordering::Acquire) == generation && !self.poisoned.load(Ordering::Relaxed) {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    fn wake_sleepers(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // With the lock no thread is between its last look and its sleep.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.wake.notify_all();
        }
    }

    /// Ends all waits with an error: the calling thread panics.
    pub fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
        self.wake_sleepers();
    }
}
