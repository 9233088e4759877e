//! Loom models of the engine's barrier and mailboxes: runs each in every order of its threads' accesses (with a bounded
//! number of preemptions) that the C11 memory model allows, and panics at a data race or a broken assertion.
//!
//! With `--cfg loom` the engine's mailboxes and barrier are compiled with loom's types and a small arena in place of
//! `primitives.rs` and `arena.rs`; the rest of the engine is left out. `scripts/models.sh` runs the models.

pub(super) mod arena;
pub(super) mod primitives;

pub(super) mod arrivals {
    /// Lines of a chunk: as few as make lists of several chunks.
    pub const LANES: usize = 2;
}

use super::{
    mailbox::Mailboxes,
    message::Message,
    sync::{Barrier, CachePadded},
};
use incast_units::Time;
use loom::{model::Builder, sync::Arc, thread};
use std::sync::atomic::{AtomicU64, Ordering};

/// A model with more executions than this is not explored completely.
const MOST: usize = 2_000;

/// Runs a model in every order with at most so many preemptions.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.checkpoint_interval = 100;
    builder.max_permutations = Some(MOST);
    let executions = std::sync::Arc::new(AtomicU64::new(0));
    let count = executions.clone();
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}

#[test]
fn barrier_of_two_threads_and_three_waits() {
    explore(4, || barrier(2, 3));
}

#[test]
fn barrier_of_three_threads_and_one_wait() {
    explore(1, || barrier(3, 1));
}

#[test]
fn barrier_whose_thread_panics() {
    explore(4, poisoned_barrier);
}

#[test]
fn mailboxes_when_both_threads_send() {
    explore(4, || mailboxes([2, 1], true));
}

#[test]
fn mailboxes_when_one_thread_collects_the_chunks_of_the_other() {
    explore(4, || mailboxes([7, 0], false));
}

#[test]
fn mailboxes_in_two_phases() {
    explore(4, two_phases);
}

/// What each thread wrote before a wait, every thread reads after it (R3), with the barrier alone as synchronisation.
fn barrier(threads: usize, waits: usize) {
    struct Shared {
        barrier: Barrier,
        cells: Vec<CachePadded<usize>>,
    }
    // SAFETY: R3, which is what the model checks.
    unsafe impl Sync for Shared {}

    let run = move |shared: &Shared, thread: usize| {
        for wait in (1..=waits).step_by(2) {
            // SAFETY: R3: other threads read this between two later waits.
            shared.cells[thread].with_mut(|cell| unsafe { *cell = wait });
            shared.barrier.wait().expect("no thread panics");
            for cell in &shared.cells {
                // SAFETY: R3: written before the last wait, and again after the next one.
                assert_eq!(cell.with(|cell| unsafe { *cell }), wait);
            }
            if wait < waits {
                shared.barrier.wait().expect("no thread panics");
            }
        }
    };
    let cells = (0..threads).map(|_| CachePadded::new(0)).collect();
    let shared = Arc::new(Shared { barrier: Barrier::new(threads), cells });
    let others: Vec<_> = (1..threads)
        .map(|thread| {
            let shared = shared.clone();
            thread::spawn(move || run(&shared, thread))
        })
        .collect();
    run(&shared, 0);
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
}

/// A thread that panics releases one that waits.
fn poisoned_barrier() {
    let barrier = Arc::new(Barrier::new(2));
    let other = barrier.clone();
    let panics = thread::spawn(move || other.poison());
    assert!(barrier.wait().is_err());
    panics.join().expect("the thread ends");
}

/// A message with a number, and with the index of its attachment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number(u64, u32);

// SAFETY: R16: nothing but the engine writes the index.
unsafe impl Message for Number {
    fn attachment(&self) -> u32 {
        self.1
    }
    fn set_attachment(&mut self, index: u32) {
        self.1 = index;
    }
}

/// Two threads, each of which runs the domain of its number in four windows, of two slots, and sends `counts[thread]`
/// messages to the other's for the next window, in the order of `Executor`. Each message arrives with its content and
/// its attachment.
fn mailboxes(counts: [u64; 2], attachments: bool) {
    struct Shared {
        barrier: Barrier,
        mailboxes: Mailboxes<Number, [u64; 1]>,
    }
    const WINDOWS: u64 = 4;
    let number = |thread: usize, window: u64, message: u64| thread as u64 * 1000 + window * 100 + message;
    let run = move |shared: &Shared, thread: usize| {
        let mailboxes = &shared.mailboxes;
        for window in 0..WINDOWS {
            let own = thread as u32;
            if window > 0 {
                shared.barrier.wait().expect("no thread panics");
                // SAFETY: R6: every thread has left that window, and the two have different slots.
                unsafe { mailboxes.forget(thread, window - 1) };
            }
            for from in 0..2 {
                // SAFETY: R4: the window is being executed.
                let is_active = !unsafe { mailboxes.active(from, window) }.is_empty();
                assert_eq!(is_active, window > 0 && counts[from] > 0);
            }
            let row = mailboxes.row(thread, window + 1);
            for message in 0..counts[thread] * u64::from(window + 1 < WINDOWS) {
                let content = number(thread, window, message);
                let attachment = (attachments && message % 2 == 0).then_some([content]);
                let message = &Number(content, 0);
                mailboxes.push(thread, row, 1 - own, Time::ZERO, 0, message, attachment.as_ref(), |_| {});
            }
            for from in 0..2 {
                let mut arrived = 0;
                // SAFETY: R5: this thread runs its own domain, and drops all references before `clear`.
                unsafe {
                    mailboxes.visit(from, window, own, |line, _| {
                        let (envelope, attachment) = mailboxes.read(line);
                        let content = number(from, window.wrapping_sub(1), arrived);
                        assert_eq!(envelope.message.0, content);
                        let expected = (attachments && arrived % 2 == 0).then_some([content]);
                        assert_eq!(attachment.copied(), expected);
                        arrived += 1;
                    });
                    mailboxes.clear(thread, from, window, own);
                }
                let expected = if from != thread && window > 0 { counts[from] } else { 0 };
                assert_eq!(arrived, expected);
            }
        }
    };
    let shared = Arc::new(Shared { barrier: Barrier::new(2), mailboxes: Mailboxes::new(2, 2, 2, attachments) });
    let shared_by_other = shared.clone();
    let other = thread::spawn(move || run(&shared_by_other, 1));
    run(&shared, 0);
    other.join().expect("the thread ends");
}

/// Two threads in two phases: in each window one of them runs its domain and sends two messages to the other's, one for
/// its next window and one for that after it, while the other has nothing to run. Eight windows in four slots.
fn two_phases() {
    struct Shared {
        barrier: Barrier,
        mailboxes: Mailboxes<Number, [u64; 1]>,
    }
    const WINDOWS: u64 = 8;
    let run = move |shared: &Shared, thread: usize| {
        let mailboxes = &shared.mailboxes;
        for window in 0..WINDOWS {
            if window > 0 {
                shared.barrier.wait().expect("no thread panics");
                // SAFETY: R6: every thread has left that window, and the two have different slots.
                unsafe { mailboxes.forget(thread, window - 1) };
            }
            let other = 1 - thread;
            if window % 2 != thread as u64 {
                continue;
            }
            // SAFETY: R4: the window is being executed.
            assert_eq!(unsafe { mailboxes.active(other, window) }.is_empty(), window == 0);
            for ahead in [1, 3] {
                let row = mailboxes.row(thread, window + ahead);
                let message = &Number(10 * window + ahead, 0);
                mailboxes.push(thread, row, other as u32, Time::ZERO, 0, message, None, |_| {});
            }
            let mut arrived = Vec::new();
            // SAFETY: R5: this thread runs its own domain, and keeps no reference.
            unsafe {
                mailboxes.visit(other, window, thread as u32, |_, envelope| arrived.push(envelope.message.0));
                mailboxes.clear(thread, other, window, thread as u32);
            }
            let sent = [3, 1].map(|ahead| window.checked_sub(ahead).map(|sent| 10 * sent + ahead));
            assert_eq!(arrived, sent.into_iter().flatten().collect::<Vec<_>>());
        }
    };
    let shared = Arc::new(Shared { barrier: Barrier::new(2), mailboxes: Mailboxes::new(2, 2, 4, false) });
    let shared_by_other = shared.clone();
    let other = thread::spawn(move || run(&shared_by_other, 1));
    run(&shared, 0);
    other.join().expect("the thread ends");
}
