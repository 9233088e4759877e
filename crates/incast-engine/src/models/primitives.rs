//! Loom's types, with the names in the engine's own `primitives.rs`.

pub use loom::{
    cell::UnsafeCell,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering, fence},
    },
};

/// Sleeps at the second look: the models have both.
pub const SPINS: (usize, usize) = (1, 1);

pub fn spin() {
    loom::thread::yield_now();
}
