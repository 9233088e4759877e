//! Loom's types, with the names in the engine's own `primitives.rs`.

pub use loom::{
    cell::UnsafeCell,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering, fence},
    },
};

/// Sleeps at the second look: the models have both.
pub fn spin(rounds: u32) -> bool {
    loom::thread::yield_now();
    rounds < 1
}
