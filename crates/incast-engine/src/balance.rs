//! Divides the work of a run among its threads.

use super::{active_set::ActiveSet, domain::Domain, shared::Shared};
use incast_units::Time;
use std::{cmp::Reverse, ops::Range};

impl<D: Domain> Shared<'_, D> {
    /// Divides the domains into contiguous ranges of equal cost, those of each phase by themselves, and registers their
    /// wake-ups as of `window`, the one to be executed next.
    ///
    /// # Safety
    /// No other thread accesses workers or cells meanwhile (R2).
    pub unsafe fn balance(&self, window: Option<u64>) {
        for thread in 0..self.workers.len() {
            // SAFETY: R2: promised by the caller.
            let worker = unsafe { self.worker(thread) };
            worker.far.clear();
            worker.near.iter_mut().for_each(ActiveSet::clear);
        }
        if self.windows.phases == 1 {
            // SAFETY: R2: promised by the caller.
            unsafe { self.balance_phase(0, 0..self.cells.len(), window) };
        } else {
            for phase in 0..2 {
                // SAFETY: R2: promised by the caller.
                unsafe { self.balance_phase(phase, self.rules.colour(phase, self.cells.len()), window) };
            }
        }
    }

    /// The same for the domains of one phase.
    ///
    /// # Safety
    /// As [`Self::balance`].
    unsafe fn balance_phase(&self, phase: u64, domains: Range<usize>, window: Option<u64>) {
        // SAFETY: R2: promised by the caller, here and below.
        let cost = |index: usize| unsafe { (*self.cells.get(index)).cost } + 1;
        let total: u64 = domains.clone().map(cost).sum();
        let (mut from, mut sum) = (domains.start, 0);
        let threads = self.workers.len() as u64;
        for thread in 0..self.workers.len() {
            let goal = total * (thread as u64 + 1) / threads;
            let mut to = from;
            while to < domains.end && (sum + cost(to) / 2 < goal || thread + 1 == self.workers.len()) {
                sum += cost(to);
                to += 1;
            }
            // SAFETY: promised by the caller (R2).
            let worker = unsafe { self.worker(thread) };
            worker.ranges[phase as usize] = from as u32..to as u32;
            for index in from..to {
                // SAFETY: promised by the caller (R2).
                let cell = unsafe { &mut *self.cells.get(index) };
                cell.wake = u64::MAX;
                let next = cell.next.min(cell.queue.next_time());
                if next < Time::MAX {
                    cell.wake = self.windows.at(next, phase);
                    worker.far.push(Reverse((cell.wake, index as u32)));
                }
                // The cost of a domain changes: old cost decays.
                cell.cost /= 2;
            }
            worker.gather(window.unwrap_or(0));
            from = to;
        }
    }
}
