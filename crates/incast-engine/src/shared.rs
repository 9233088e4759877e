//! What the threads of a run share.

use super::{
    cell::{Cells, Rules},
    domain::{Domain, Windows},
    halt::{Halt, Halted},
    inspector::Reached,
    mailbox::Mailboxes,
    sync::{Barrier, CachePadded, Poisoned},
    worker::Worker,
};
use incast_units::Time;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Threads of a run at most.
pub const MOST_THREADS: usize = 32;

pub(super) struct Shared<'a, D: Domain> {
    pub cells: &'a Cells<D>,
    pub rules: Rules,
    pub mailboxes: Mailboxes<D::Message, D::Attachment>,
    pub workers: Box<[CachePadded<Worker>]>,
    pub barrier: Barrier,
    /// For odd and even windows, the next window of each thread, or [`STOP`](super::run::STOP) from the leader.
    pub next: [Box<[AtomicU64]>; 2],
    /// For odd and even windows, whether the leader requests a new division of the work.
    pub divide: [AtomicBool; 2],
    /// Messages handled by each thread, for the observer.
    pub messages: Box<[AtomicU64]>,
    /// Time between inspections of all domains.
    pub inspect_every: Option<Time>,
    pub windows: Windows,
    /// An inspection has ended the run.
    pub inspection_ended: AtomicBool,
    /// Asked now and then by every thread: whether to end the run at once.
    pub halt: &'a Halt<'a>,
    /// The run is to end at once, and why: the first reason that was found.
    pub is_halted: AtomicBool,
    pub halted: Mutex<Option<Halted>>,
    pub end: Time,
}

// SAFETY: R2: only its own thread accesses a worker, or the leader while all others wait between two barriers.
unsafe impl<D: Domain> Sync for Shared<'_, D> {}

impl<D: Domain> Shared<'_, D> {
    /// A thread's worker.
    ///
    /// # Safety
    /// R2: the caller is this thread, or the leader while all others wait between two barriers.
    #[allow(clippy::mut_from_ref, reason = "R2 makes it exclusive")]
    pub unsafe fn worker(&self, thread: usize) -> &mut Worker {
        // SAFETY: promised by the caller (R2).
        unsafe { &mut *self.workers[thread].with_mut(|worker| worker) }
    }

    /// Has the leader do something while all other threads wait.
    pub fn alone(&self, thread: usize, act: impl FnOnce()) -> Result<(), Poisoned> {
        self.barrier.wait()?;
        if thread == 0 {
            act();
        }
        self.barrier.wait()
    }

    pub fn reached(&self, time: Time) -> Reached {
        Reached { time: time.min(self.end), messages: self.handled() }
    }

    /// Messages handled so far; approximate, as other threads go on.
    pub fn handled(&self) -> u64 {
        self.messages.iter().map(|count| count.load(Ordering::Relaxed)).filter(|count| *count != u64::MAX).sum()
    }

    /// The run ends at once, for this reason or an earlier one.
    #[cold]
    pub fn end_at_once(&self, reason: Halted) {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.is_halted.store(true, Ordering::Relaxed);
    }
}
