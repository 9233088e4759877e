//! A thread's way through the windows of a run.

use super::{
    domain::Domain,
    halt::Halted,
    inspector::{Inspector, Reached},
    shared::Shared,
    sync::Poisoned,
    worker::thread_cpu_time,
};
use incast_units::Time;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
    thread,
};

/// Windows between two calls of the observer.
const OBSERVE_EVERY: u64 = 256;

/// Least number of windows between two divisions of the work. A division reads every domain, so it also waits until as
/// many messages have been handled.
const BALANCE_EVERY: u64 = 64;

/// What a thread publishes instead of a window to end the run.
const STOP: u64 = u64::MAX - 1;

/// Told the time reached; whether the run goes on.
type Observe<'o> = dyn FnMut(Reached) -> bool + 'o;

/// How far a thread has come.
struct Course {
    /// Windows that were executed, and the number of the last one.
    windows: u64,
    index: Option<u64>,
    /// Windows and messages when the work was last divided.
    divided: (u64, u64),
    next_inspection: Time,
    /// The observer, or an inspection, has ended the run.
    stop: bool,
    stopped_at: Option<Time>,
}

impl<D: Domain> Shared<'_, D> {
    /// [`Self::work`], whose panic frees the threads that wait for this one.
    pub fn guarded(
        &self,
        thread: usize,
        observe: &mut Observe<'_>,
        inspector: Option<Inspector<'_, D>>,
    ) -> thread::Result<u64> {
        let result = catch_unwind(AssertUnwindSafe(|| self.work(thread, observe, inspector)));
        if result.is_err() {
            self.barrier.poison();
        }
        result
    }

    /// One thread's part of the whole run. Returns the number of windows.
    pub fn work(&self, thread: usize, observe: &mut Observe<'_>, mut inspector: Option<Inspector<'_, D>>) -> u64 {
        let started = thread_cpu_time();
        let next_inspection = self.inspect_every.unwrap_or(Time::MAX);
        let mut course =
            Course { windows: 0, index: None, divided: (0, 0), next_inspection, stop: false, stopped_at: None };
        let intact = self.walk(thread, &mut course, observe, &mut inspector).is_ok();
        if let Some(inspector) = &mut inspector
            && course.stopped_at.is_none()
            && !course.stop
            && intact
        {
            // SAFETY: R2: every thread has run its last window.
            course.stopped_at = unsafe { self.inspect(inspector, course.next_inspection, self.end) };
        }
        // SAFETY: R2: this is the worker's own thread.
        let statistics = unsafe { &mut self.worker(thread).statistics };
        statistics.cpu = thread_cpu_time().saturating_sub(started);
        statistics.stopped_at = course.stopped_at;
        if thread == 0 {
            let lookaheads = course.index.map_or(0, |index| index + 1);
            observe(self.reached(Time::from_ps(lookaheads.saturating_mul(self.windows.length.ps()))));
        }
        course.windows
    }

    /// Window by window to the end of the run.
    ///
    /// # Errors
    /// Another thread has panicked.
    fn walk(
        &self,
        thread: usize,
        course: &mut Course,
        observe: &mut Observe<'_>,
        inspector: &mut Option<Inspector<'_, D>>,
    ) -> Result<(), Poisoned> {
        // In two phases a window begins one lookahead before its number.
        let last = self.end.ps().div_ceil(self.windows.length.ps()).saturating_add(self.windows.phases - 1);
        loop {
            let parity = (course.windows & 1) as usize;
            let (earliest, stopped) = self.agree(thread, course, parity)?;
            if stopped {
                self.level(thread, course.index);
            }
            if stopped || earliest == u64::MAX || earliest >= last {
                return Ok(());
            }
            // The active sets of the previous window are cleared before anything is posted to their slot again, which
            // the next window may do. If the next window has the same slot, nothing was posted to it, and other threads
            // may still read the sets: they are cleared after that window. Until then some domains run without anything
            // to do.
            if let Some(over) = course.index
                && !self.mailboxes.same_slot(over, earliest)
            {
                // SAFETY: R6: this is the sending thread, all threads have left that window, and the slots differ.
                unsafe { self.mailboxes.forget(thread, over) };
            }
            course.index = Some(earliest);
            if self.divide[parity].load(Ordering::Relaxed) {
                // SAFETY: R2: all other threads wait meanwhile.
                self.alone(thread, || unsafe { self.balance(course.index) })?;
            }
            let window = self.windows.window(earliest);
            if course.next_inspection <= window.start && self.look(thread, course, window.start, inspector)? {
                return Ok(());
            }
            // SAFETY: R2: this is the worker's own thread.
            self.execute(thread, unsafe { self.worker(thread) }, window);
            course.windows += 1;
            if thread == 0 && course.windows.is_multiple_of(OBSERVE_EVERY) {
                let reached = self.reached(window.end);
                course.stop = !observe(reached);
                course.stopped_at = course.stop.then_some(reached.time);
            }
        }
    }

    /// The earliest window for which some thread has something to do, and whether the run stops before it. The leader
    /// says whether the work is divided anew.
    fn agree(&self, thread: usize, course: &mut Course, parity: usize) -> Result<(u64, bool), Poisoned> {
        if thread == 0 && (self.halt)() {
            self.end_at_once(Halted::Asked);
        }
        // The domains of a window that was ended in its middle must not go on.
        course.stop |= self.is_halted.load(Ordering::Relaxed);
        let known = if course.stop {
            STOP
        } else {
            // SAFETY: R2: this is the worker's own thread.
            unsafe { self.worker(thread) }.next_window(thread, course.index, &self.mailboxes)
        };
        let next = &self.next[parity];
        next[thread].store(known, Ordering::Relaxed);
        if thread == 0 && self.workers.len() > 1 {
            let (windows, handled) = course.divided;
            let now = self.handled();
            let due = course.windows - windows >= BALANCE_EVERY && now - handled >= self.cells.len() as u64;
            if due {
                course.divided = (course.windows, now);
            }
            self.divide[parity].store(due, Ordering::Relaxed);
        }
        self.barrier.wait()?;
        let (mut earliest, mut stopped) = (u64::MAX, false);
        for next in next {
            let next = next.load(Ordering::Relaxed);
            earliest = earliest.min(next);
            stopped |= next == STOP;
        }
        Ok((earliest, stopped))
    }

    /// In two phases the other colour comes to where this one has stopped. What it posts nobody reads any more, so that
    /// the active sets need not be cleared.
    fn level(&self, thread: usize, index: Option<u64>) {
        if let Some(over) = index
            && self.windows.phases == 2
            && !self.is_halted.load(Ordering::Relaxed)
        {
            let window = self.windows.window(over + 1).until(self.windows.window(over).end);
            // SAFETY: R2: this is the worker's own thread.
            self.execute(thread, unsafe { self.worker(thread) }, window);
        }
    }

    /// Inspects all domains up to `until`; whether that ends the run.
    fn look(
        &self,
        thread: usize,
        course: &mut Course,
        until: Time,
        inspector: &mut Option<Inspector<'_, D>>,
    ) -> Result<bool, Poisoned> {
        self.alone(thread, || {
            if let Some(inspector) = inspector {
                // SAFETY: R2: all other threads wait meanwhile.
                course.stopped_at = unsafe { self.inspect(inspector, course.next_inspection, until) };
                self.inspection_ended.store(course.stopped_at.is_some(), Ordering::Relaxed);
            }
        })?;
        let every = self.inspect_every.unwrap_or(Time::MAX).ps();
        let next = (until.ps() / every).saturating_add(1).saturating_mul(every);
        course.next_inspection = Time::from_ps(next);
        Ok(self.inspection_ended.load(Ordering::Relaxed))
    }

    /// See `Inspector::inspect_until`.
    ///
    /// # Safety
    /// No other thread accesses cells meanwhile (R2).
    #[cold]
    unsafe fn inspect(&self, inspector: &mut Inspector<'_, D>, next: Time, until: Time) -> Option<Time> {
        // SAFETY: promised by the caller (R2).
        let domain = |index| unsafe { &(*self.cells.get(index)).domain };
        let domains: Vec<&D> = (0..self.cells.len()).map(domain).collect();
        inspector.inspect_until(next, until, &domains)
    }
}
