//! Loom's types, with the names in the engine's own `primitives.rs`.

pub use loom::{
    cell::UnsafeCell,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

pub fn wait_a_little(_rounds: u32) {
    loom::thread::yield_now();
}
