//! The window executor.

use super::{
    active_set::{ActiveSet, collect},
    arrivals::Keys,
    domain::{Context, DEFERRED, Deferred, Domain, Messages, NEAR, Names, Window, Windows},
    halt::{Halt, Halted, Livelock, MOST_EVENTS_AT_ONE_TIME, Moved},
    mailbox::{Mailboxes, Row},
    prefetch::prefetch,
    queue::{Event, EventQueue, Key, TieBreak},
    sync::{Barrier, CachePadded},
    worker::{Statistics, Worker, thread_cpu_time},
};
use incast_units::Time;
use std::{
    cell::UnsafeCell,
    cmp::Reverse,
    collections::BinaryHeap,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// The longest lookahead. Windows, which are one or two of them, would only make the sorted keys wider.
pub const LONGEST_LOOKAHEAD: Time = Time::from_ps(1 << 20);

/// Number of windows ahead to which messages can be posted. Messages over longer links are deferred.
const MOST_SLOTS: usize = 64;

/// Windows for which messages can be posted directly, given the least and the longest time of a message on its way.
pub fn slots(lookahead: Time, longest: Time) -> usize {
    let reach = (longest.ps() / lookahead.min(LONGEST_LOOKAHEAD).ps()).saturating_add(4);
    usize::try_from(reach).unwrap_or(MOST_SLOTS).clamp(8, MOST_SLOTS).next_power_of_two()
}

/// Threads of a run at most.
pub const MOST_THREADS: usize = 32;

/// Windows between two calls of the observer.
const OBSERVE_EVERY: u64 = 256;

/// From this many domains on, their state no longer fits a core's cache, and prefetching it pays. In fabrics of less
/// than twice as many it pays only while they are busy: a few domains that run again and again stay in the cache.
const LARGE: usize = 512;

/// From this many domains on, prefetching what the state points to pays as well. It costs about 20 ns per message, more
/// than it saves in smaller fabrics.
const HUGE: usize = 4096;

/// Least number of windows between two divisions of the work. A division reads every domain, so it also waits until as
/// many messages have been handled.
const BALANCE_EVERY: u64 = 64;

/// Events of one domain, messages apart, between two looks at whether its time moves and whether the run is halted.
const CHECK_EVERY: u64 = 1 << 16;

/// Domains that run in a window between two looks at whether the run is halted.
const HALT_EVERY: usize = 1 << 12;

/// What a thread publishes instead of a window to end the run.
const STOP: u64 = u64::MAX - 1;

/// A domain and the engine's data about it, in the order of use.
#[repr(C)]
struct Cell<D: Domain> {
    queue: EventQueue,
    /// When the domain must run again, as of its last window.
    next: Time,
    /// The window for which a wake-up is registered; earlier than the window being executed means none.
    wake: u64,
    /// Events handled, the measure by which work is balanced.
    cost: u64,
    domain: D,
    names: Names,
    deferred: Deferred<D::Message, D::Attachment>,
    /// Messages of the last window that arrive at the end of the run or later.
    leftover: Vec<(u32, D::Message)>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// Simulated time.
    pub time: Time,
    /// Messages handled.
    pub messages: u64,
}

/// The result of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing to watch: no further inspection until something happens.
    Calm,
    /// No further inspection before this time, as long as nothing happens.
    Busy(Time),
    /// The run must end.
    Stop,
}

/// Inspects all domains at fixed simulated times.
pub struct Inspector<'l, D> {
    /// Time between inspections, above zero.
    pub every: Time,
    /// Reads the domains in the state of that time, at most one window later. The result depends on simulated time
    /// alone, not on threads or windows.
    pub inspect: &'l mut Inspect<'l, D>,
}

/// See [`Inspector::inspect`].
pub type Inspect<'l, D> = dyn FnMut(Time, &[&D]) -> Finding + 'l;

/// Runs domains to an end.
pub struct Executor<D: Domain> {
    cells: Box<[UnsafeCell<Cell<D>>]>,
    lookahead: Time,
    /// Domains below this are of one colour, the others of the other: no two of a colour send to each other.
    colours: Option<usize>,
    slots: usize,
    pub(super) ties: TieBreak,
    attachments: bool,
    /// More events than these at one time are a livelock.
    most_at_one_time: u64,
}

// SAFETY: R1: only the thread whose range holds a domain accesses its cell.
unsafe impl<D: Domain> Sync for Executor<D> {}

pub(super) struct Shared<'a, D: Domain> {
    pub(super) executor: &'a Executor<D>,
    pub(super) mailboxes: Mailboxes<D::Message, D::Attachment>,
    workers: Box<[CachePadded<Worker>]>,
    barrier: Barrier,
    /// For odd and even windows, the next window of each thread, or [`STOP`] from the leader.
    next: [Box<[AtomicU64]>; 2],
    /// For odd and even windows, whether the leader requests a new division of the work.
    divide: [AtomicBool; 2],
    /// Messages handled by each thread, for the observer.
    messages: Box<[AtomicU64]>,
    /// Time between inspections of all domains.
    inspect_every: Option<Time>,
    windows: Windows,
    /// An inspection has ended the run.
    inspection_ended: AtomicBool,
    /// Asked now and then by every thread: whether to end the run at once.
    halt: &'a Halt<'a>,
    /// The run is to end at once, and why: the first reason that was found.
    is_halted: AtomicBool,
    halted: Mutex<Option<Halted>>,
    end: Time,
}

// SAFETY: R2: only its own thread accesses a worker, or the leader while all others wait between two barriers.
unsafe impl<D: Domain> Sync for Shared<'_, D> {}

impl<D: Domain> Executor<D> {
    /// Domains with the names of their entities. `lookahead` is the least time between sending a message to another
    /// domain and its arrival; `longest` the greatest. `attachments` says whether messages will have any.
    ///
    /// # Panics
    /// If `lookahead` is zero.
    pub fn new(
        domains: impl IntoIterator<Item = (D, Names)>,
        lookahead: Time,
        longest: Time,
        ties: TieBreak,
        attachments: bool,
    ) -> Self {
        let lookahead = lookahead.min(LONGEST_LOOKAHEAD);
        assert!(lookahead > Time::ZERO, "domains need a lookahead");
        let slots = slots(lookahead, longest);
        let cell = |(domain, names)| {
            UnsafeCell::new(Cell {
                domain,
                queue: EventQueue::default(),
                next: Time::MAX,
                deferred: Deferred::new(),
                names,
                wake: u64::MAX,
                cost: 0,
                leftover: Vec::new(),
            })
        };
        let cells = domains.into_iter().map(cell).collect();
        Self {
            cells,
            lookahead,
            colours: None,
            slots,
            ties,
            attachments,
            most_at_one_time: MOST_EVENTS_AT_ONE_TIME,
        }
    }

    /// Lets domains run in two phases: none of those below `first` sends to another of them, and none of the others to
    /// another of those. Speed depends on it, results do not. They run in one phase all the same where somebody inspects
    /// all domains at one time.
    ///
    /// In debug builds a run panics where a domain sends to another one of its colour; in others such a message is lost.
    pub fn in_two_phases(&mut self, first: usize) {
        self.colours = Some(first);
    }

    fn phases(&self, inspected: bool) -> u64 {
        if self.colours.is_none() || inspected { 1 } else { 2 }
    }

    /// The domains that may run in a window, if there is more than one phase.
    fn colour(&self, number: u64) -> Range<usize> {
        let (first, all) = (self.colours.unwrap_or(0), self.cells.len());
        if number.is_multiple_of(2) { 0..first } else { first..all }
    }

    /// So many events of a domain may come at one time: those of flows that start together.
    pub fn expect(&mut self, events: u64) {
        self.most_at_one_time = self.most_at_one_time.saturating_add(events);
    }

    /// Schedules an event of a domain before the run.
    pub fn schedule(&mut self, domain: usize, time: Time, event: Event) {
        let ties = self.ties;
        let cell = self.cells[domain].get_mut();
        cell.queue.push(time, Key::new(event, ties.of(cell.names.of(event.entity), time)));
    }

    /// The domains, after a run.
    pub fn into_domains(self) -> Vec<D> {
        self.cells.into_vec().into_iter().map(|cell| cell.into_inner().domain).collect()
    }

    /// Runs all events before `end` on `threads` threads. `observe` is called now and then between windows with the
    /// time reached; if it returns false the run stops there. `inspector` may stop it too. `halt` is asked more often,
    /// also inside windows, by every thread; once it returns true, the run ends without a result.
    ///
    /// # Errors
    /// The run was halted, or a domain is in a livelock.
    ///
    /// # Panics
    /// If a domain panics.
    pub fn run(
        &mut self,
        end: Time,
        threads: usize,
        observe: &mut dyn FnMut(Reached) -> bool,
        inspector: Option<Inspector<'_, D>>,
        halt: &Halt<'_>,
    ) -> Result<Statistics, Halted> {
        let domains = self.cells.len();
        let threads = threads.clamp(1, MOST_THREADS).min(domains.max(1));
        let worker = |_| {
            CachePadded::new(Worker {
                ranges: [0..0, 0..0],
                near: vec![ActiveSet::new(domains); self.slots],
                far: BinaryHeap::new(),
                keys: Keys::default(),
                active: Vec::new(),
                statistics: Statistics::default(),
            })
        };
        let next = || (0..threads).map(|_| AtomicU64::new(u64::MAX)).collect();
        let shared: Shared<'_, D> = Shared {
            mailboxes: Mailboxes::new(domains, threads, self.slots, self.attachments),
            workers: (0..threads).map(worker).collect(),
            barrier: Barrier::new(threads),
            next: [next(), next()],
            divide: [AtomicBool::new(false), AtomicBool::new(false)],
            messages: next(),
            inspect_every: inspector.as_ref().map(|inspector| inspector.every),
            windows: Windows {
                length: self.lookahead,
                first: self.colours.unwrap_or(0) as u32,
                phases: self.phases(inspector.is_some()),
            },
            inspection_ended: AtomicBool::new(false),
            halt,
            is_halted: AtomicBool::new(false),
            halted: Mutex::new(None),
            end,
            executor: &*self,
        };
        // SAFETY: R2: no other thread runs yet.
        unsafe { shared.balance(None) };
        let mut windows = 0;
        if threads == 1 {
            windows = shared.work(0, observe, inspector);
        } else {
            thread::scope(|scope| {
                let shared = &shared;
                let others: Vec<_> = (1..threads)
                    .map(|thread| scope.spawn(move || shared.guarded(thread, &mut |_| true, None)))
                    .collect();
                let mut first_panic = None;
                match shared.guarded(0, observe, inspector) {
                    Ok(count) => windows = count,
                    Err(panic) => first_panic = Some(panic),
                }
                for other in others {
                    match other.join() {
                        Ok(Ok(_)) => {}
                        // The original panic is the one that is not a poisoned barrier.
                        Ok(Err(panic)) | Err(panic) => first_panic = first_panic.or(Some(panic)),
                    }
                }
                if let Some(panic) = first_panic {
                    resume_unwind(panic);
                }
            });
        }
        if let Some(reason) = shared.halted.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(reason);
        }
        let mut sum = Statistics { windows, segments: shared.mailboxes.segments(), ..Statistics::default() };
        for worker in shared.workers {
            let part = worker.into_inner().statistics;
            sum.messages += part.messages;
            sum.events += part.events;
            sum.cpu += part.cpu;
            sum.stopped_at = sum.stopped_at.or(part.stopped_at);
        }
        self.leftover(shared.mailboxes);
        Ok(sum)
    }

    /// Collects the messages that were in flight when the run ended.
    fn leftover(&mut self, mailboxes: Mailboxes<D::Message, D::Attachment>) {
        mailboxes.leftover(|domain, envelope| {
            self.cells[domain as usize].get_mut().leftover.push((envelope.entity, envelope.message));
        });
    }

    /// Messages that were in flight when the run ended, with the domain and entity where they would have arrived.
    pub fn pending(&mut self) -> Vec<(u32, u32, D::Message)> {
        let mut pending = Vec::new();
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let cell = cell.get_mut();
            pending.extend(cell.leftover.iter().map(|(entity, message)| (index as u32, *entity, *message)));
            for event in
                cell.queue.events().filter(|event| event.class == D::ARRIVAL || event.class == DEFERRED)
            {
                let (domain, envelope, _) = cell.deferred.slots[event.payload as usize];
                pending.push((domain, envelope.entity, envelope.message));
            }
        }
        pending
    }
}

impl<D: Domain> Shared<'_, D> {
    fn guarded(
        &self,
        thread: usize,
        observe: &mut dyn FnMut(Reached) -> bool,
        inspector: Option<Inspector<'_, D>>,
    ) -> thread::Result<u64> {
        let result = catch_unwind(AssertUnwindSafe(|| self.work(thread, observe, inspector)));
        if result.is_err() {
            self.barrier.poison();
        }
        result
    }

    /// Divides the domains into contiguous ranges of equal cost, those of each phase by themselves, and registers their
    /// wake-ups as of `window`, the one to be executed next.
    ///
    /// # Safety
    /// No other thread accesses workers or cells meanwhile (R2).
    unsafe fn balance(&self, window: Option<u64>) {
        for worker in &self.workers {
            // SAFETY: R2: promised by the caller.
            let worker = unsafe { &mut *worker.with_mut(|worker| worker) };
            worker.far.clear();
            worker.near.iter_mut().for_each(ActiveSet::clear);
        }
        if self.windows.phases == 1 {
            // SAFETY: R2: promised by the caller.
            unsafe { self.balance_phase(0, 0..self.executor.cells.len(), window) };
        } else {
            for phase in 0..2 {
                // SAFETY: R2: promised by the caller.
                unsafe { self.balance_phase(phase, self.executor.colour(phase), window) };
            }
        }
    }

    /// The same for the domains of one phase.
    ///
    /// # Safety
    /// As [`Self::balance`].
    unsafe fn balance_phase(&self, phase: u64, domains: Range<usize>, window: Option<u64>) {
        let cells = &self.executor.cells;
        // SAFETY: R2: promised by the caller, here and below.
        let cost = |index: usize| unsafe { (*cells[index].get()).cost } + 1;
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
            let worker = unsafe { &mut *self.workers[thread].with_mut(|worker| worker) };
            worker.ranges[phase as usize] = from as u32..to as u32;
            for index in from..to {
                // SAFETY: promised by the caller (R2).
                let cell = unsafe { &mut *cells[index].get() };
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

    /// One thread's part of the whole run. Returns the number of windows.
    fn work(
        &self,
        thread: usize,
        observe: &mut dyn FnMut(Reached) -> bool,
        mut inspector: Option<Inspector<'_, D>>,
    ) -> u64 {
        // SAFETY: R2: this is the worker's own thread; the leader accesses it only while this thread waits in a
        // barrier.
        let worker = || unsafe { &mut *self.workers[thread].with_mut(|worker| worker) };
        let length = self.windows.length;
        // In two phases a window begins one lookahead before its number.
        let last = self.end.ps().div_ceil(length.ps()).saturating_add(self.windows.phases - 1);
        let started = thread_cpu_time();
        let mut windows = 0u64;
        let mut index = None;
        let mut stop = false;
        let mut stopped_at = None;
        let (mut divided_at, mut divided) = (0, 0);
        let mut intact = true;
        let mut next_inspection = self.inspect_every.unwrap_or(Time::MAX);
        loop {
            if thread == 0 && (self.halt)() {
                self.end_at_once(Halted::Asked);
            }
            // The domains of a window that was ended in its middle must not go on.
            stop |= self.is_halted.load(Ordering::Relaxed);
            let known = if stop { STOP } else { worker().next_window(thread, index, &self.mailboxes) };
            let parity = (windows & 1) as usize;
            let next = &self.next[parity];
            next[thread].store(known, Ordering::Relaxed);
            if thread == 0 && self.workers.len() > 1 {
                let handled = self.handled();
                let due = windows - divided_at >= BALANCE_EVERY
                    && handled - divided >= self.executor.cells.len() as u64;
                if due {
                    (divided_at, divided) = (windows, handled);
                }
                self.divide[parity].store(due, Ordering::Relaxed);
            }
            if self.barrier.wait().is_err() {
                intact = false;
                break;
            }
            let (mut earliest, mut stopped) = (u64::MAX, false);
            for next in next {
                let next = next.load(Ordering::Relaxed);
                earliest = earliest.min(next);
                stopped |= next == STOP;
            }
            if let Some(over) = index
                && stopped
                && self.windows.phases == 2
                && !self.is_halted.load(Ordering::Relaxed)
            {
                // The other colour comes to where this one has stopped. What it posts nobody reads any more, so that the
                // active sets need not be cleared.
                let end = self.windows.window(over).end;
                self.execute(thread, worker(), self.windows.window(over + 1).until(end));
            }
            if stopped || earliest == u64::MAX || earliest >= last {
                break;
            }
            // The active sets of the previous window are cleared before anything is posted to their slot again, which
            // the next window may do. If the next window has the same slot, nothing was posted to it, and other threads
            // may still read the sets: they are cleared after that window. Until then some domains run without anything
            // to do.
            if let Some(over) = index
                && !self.mailboxes.same_slot(over, earliest)
            {
                // SAFETY: R6: this is the sending thread, all threads have left that window, and the slots differ.
                unsafe { self.mailboxes.forget(thread, over) };
            }
            index = Some(earliest);
            if self.divide[parity].load(Ordering::Relaxed) {
                if self.barrier.wait().is_err() {
                    intact = false;
                    break;
                }
                if thread == 0 {
                    // SAFETY: R2: all other threads wait in the barriers around this.
                    unsafe { self.balance(index) };
                }
                if self.barrier.wait().is_err() {
                    intact = false;
                    break;
                }
            }
            let window = self.windows.window(earliest);
            if next_inspection <= window.start {
                if self.barrier.wait().is_err() {
                    intact = false;
                    break;
                }
                if let Some(inspector) = &mut inspector {
                    // SAFETY: R2: all other threads wait in the barriers around this.
                    stopped_at = unsafe { self.inspect(inspector, next_inspection, window.start) };
                    self.inspection_ended.store(stopped_at.is_some(), Ordering::Relaxed);
                }
                if self.barrier.wait().is_err() {
                    intact = false;
                    break;
                }
                if self.inspection_ended.load(Ordering::Relaxed) {
                    break;
                }
                let every = self.inspect_every.unwrap_or(Time::MAX).ps();
                next_inspection =
                    Time::from_ps((window.start.ps() / every).saturating_add(1).saturating_mul(every));
            }
            self.execute(thread, worker(), window);
            windows += 1;
            if thread == 0 && windows.is_multiple_of(OBSERVE_EVERY) {
                let reached = self.reached(window.end);
                stop = !observe(reached);
                stopped_at = stop.then_some(reached.time);
            }
        }
        if let Some(inspector) = &mut inspector
            && stopped_at.is_none()
            && !stop
            && intact
        {
            // SAFETY: R2: every thread has run its last window.
            stopped_at = unsafe { self.inspect(inspector, next_inspection, self.end) };
        }
        worker().statistics.cpu = thread_cpu_time().saturating_sub(started);
        worker().statistics.stopped_at = stopped_at;
        if thread == 0 {
            observe(
                self.reached(Time::from_ps(index.map_or(0, |index| index + 1).saturating_mul(length.ps()))),
            );
        }
        windows
    }

    /// Inspects all domains at all times from `next` to `until`, between which nothing happens. Returns the time of the
    /// inspection that ends the run.
    ///
    /// # Safety
    /// No other thread accesses cells meanwhile (R2).
    #[cold]
    unsafe fn inspect(&self, inspector: &mut Inspector<'_, D>, next: Time, until: Time) -> Option<Time> {
        // SAFETY: promised by the caller (R2).
        let domains: Vec<&D> =
            self.executor.cells.iter().map(|cell| unsafe { &(*cell.get()).domain }).collect();
        let mut time = next;
        while time <= until {
            match (inspector.inspect)(time, &domains) {
                Finding::Stop => return Some(time),
                Finding::Calm => return None,
                Finding::Busy(later) => {
                    let every = inspector.every.ps();
                    let at = Time::from_ps(later.ps().div_ceil(every).checked_mul(every)?);
                    time = at.max(time.checked_add(inspector.every)?);
                }
            }
        }
        None
    }

    fn reached(&self, time: Time) -> Reached {
        Reached { time: time.min(self.end), messages: self.handled() }
    }

    /// Messages handled so far; approximate, as other threads go on.
    fn handled(&self) -> u64 {
        self.messages
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .filter(|count| *count != u64::MAX)
            .sum()
    }

    /// Runs this thread's domains that have something to do in a window.
    fn execute(&self, thread: usize, worker: &mut Worker, window: Window) {
        worker.gather(window.index);
        let slot = (window.index & (self.executor.slots as u64 - 1)) as usize;
        let mut active = std::mem::take(&mut worker.active);
        {
            // One of each thread, and our own.
            let mut sets: [&ActiveSet; MOST_THREADS + 1] = [&worker.near[slot]; MOST_THREADS + 1];
            for (from, set) in sets.iter_mut().enumerate().take(self.workers.len()) {
                // SAFETY: R4: the window is being executed, so that no thread writes its active sets.
                *set = unsafe { self.mailboxes.active(from, window.index) };
            }
            sets[self.workers.len()] = &worker.near[slot];
            let range = &worker.ranges[(window.index % self.windows.phases) as usize];
            collect(&sets[..=self.workers.len()], range.start, range.end, &mut active);
        }
        worker.near[slot].clear();
        let domains = self.executor.cells.len();
        let large = domains >= 2 * LARGE || domains >= LARGE && active.len() >= LARGE / 2;
        let huge = domains >= HUGE;
        let rows = std::array::from_fn(|near| self.mailboxes.row(thread, window.number(near as u64)));
        for (turn, domain) in active.iter().enumerate() {
            if large {
                self.prefetch_next(&active[turn..], window);
                if huge {
                    self.prefetch_next_state(&active[turn..], window, rows[1]);
                }
            }
            // SAFETY: R1: the domain is in this worker's range.
            let cell = unsafe { &mut *self.executor.cells[*domain as usize].get() };
            let (handled, messages, next) =
                self.run_domain(thread, &mut worker.keys, *domain, cell, window, &rows);
            if self.is_halted.load(Ordering::Relaxed) {
                break;
            }
            if turn % HALT_EVERY == HALT_EVERY - 1 && (self.halt)() {
                self.end_at_once(Halted::Asked);
                break;
            }
            cell.cost += handled;
            worker.statistics.events += handled;
            worker.statistics.messages += messages;
            cell.next = next;
            if next < self.end {
                let due = window.again(next);
                if due < cell.wake || cell.wake <= window.index {
                    cell.wake = due;
                    worker.wake(window.index, due, *domain);
                }
            }
        }
        worker.active = active;
        self.messages[thread].store(worker.statistics.messages, Ordering::Relaxed);
    }

    /// Prefetches the memory of the domains that run next, in steps: the addresses of each step are in the memory that
    /// the step before has fetched.
    #[inline]
    fn prefetch_next(&self, active: &[u32], window: Window) {
        let threads = self.workers.len();
        if let Some(domain) = active.get(5) {
            let cell = self.executor.cells[*domain as usize].get().cast_const();
            prefetch(cell, size_of::<Cell<D>>().div_ceil(64).min(16));
            (0..threads).for_each(|from| self.mailboxes.prefetch_list(from, window.index, *domain));
        }
        if let Some(domain) = active.get(4) {
            // SAFETY: R1: the domain is in this worker's range.
            unsafe { &*self.executor.cells[*domain as usize].get() }.queue.prefetch();
            // SAFETY: R5: this thread runs the domain in this window, whose messages are complete.
            (0..threads)
                .for_each(|from| unsafe { self.mailboxes.prefetch_messages(from, window.index, *domain) });
        }
    }

    /// The steps after those of [`Self::prefetch_next`].
    fn prefetch_next_state(&self, active: &[u32], window: Window, row: Row) {
        // SAFETY: R1: the domains are in this worker's range.
        let domain = |index: u32| unsafe { &(*self.executor.cells[index as usize].get()).domain };
        if let Some(index) = active.get(2) {
            let domain = domain(*index);
            domain.prefetch(false);
            if !domain.looks_ahead() {
                for from in 0..self.workers.len() {
                    // SAFETY: R5: this thread runs the domain in this window, whose messages are complete.
                    unsafe {
                        self.mailboxes.visit(from, window.index, *index, |_, envelope| {
                            domain.prefetch_message(envelope.entity, &envelope.message);
                        });
                    }
                }
            }
        }
        if let Some(index) = active.get(1) {
            let domain = domain(*index);
            domain.prefetch(true);
            if !domain.looks_ahead() {
                for from in 0..self.workers.len() {
                    // SAFETY: R5: as above; R4: the row is this thread's, of a later window.
                    unsafe {
                        self.mailboxes.visit(from, window.index, *index, |_, envelope| {
                            if let Some(next) = domain.next_domain(envelope.entity, &envelope.message) {
                                self.mailboxes.prefetch_next_line(row, next);
                            }
                        });
                    }
                }
            }
        }
    }

    /// Runs one domain's events of a window. Returns the number of events, how many of them were messages, and when
    /// the domain must run again.
    #[inline(always)] // on the path of every packet
    fn run_domain(
        &self,
        thread: usize,
        keys: &mut Keys,
        index: u32,
        cell: &mut Cell<D>,
        window: Window,
        rows: &[Row; NEAR],
    ) -> (u64, u64, Time) {
        let limit = window.end.min(self.end);
        keys.clear();
        for from in 0..self.workers.len() {
            // SAFETY: R5: this thread runs the domain in this window.
            unsafe {
                self.mailboxes.visit_chunks(from, window.index, index, |first, count, times| {
                    keys.extend(count as usize, first, |line| times.of(line), window.start);
                });
            }
        }
        if self.mailboxes.has_attachments() {
            keys.lines().for_each(|line| self.mailboxes.prefetch_attachment(line));
        }
        let (keys, tie) = keys.sorted();
        if let Some(scratch) = tie {
            self.break_ties(keys, scratch, &cell.names, window);
        }
        let (mut others, mut messages) = (0, keys.len() as u64);
        let (mut taken, mut moved) = (0u64, Moved::default());
        let mut sample = cell.domain.next_sample();
        let mut context = Context {
            now: window.start,
            window,
            domain: index,
            thread,
            rows,
            mailboxes: &self.mailboxes,
            queue: &mut cell.queue,
            deferred: &mut cell.deferred,
            names: &cell.names,
            ties: self.executor.ties,
        };
        let mut arrivals = keys.iter();
        loop {
            // Consecutive messages, up to the next other event.
            let until = sample.min(limit);
            let mut messages_before = Messages { keys: &mut arrivals, until, context: &mut context };
            cell.domain.on_messages(&mut messages_before);
            let arrival = arrivals.as_slice().first().map_or(Time::MAX, |key| window.time_of(*key));
            let (event_time, event_key) = context.queue.peek().unwrap_or((Time::MAX, Key::LAST));
            let message_first = arrival < event_time
                || arrival == event_time
                    && arrival < limit
                    && self.arrives_first(arrivals.as_slice(), event_key, &context);
            let now = if message_first { arrival } else { event_time };
            if now >= limit {
                break;
            }
            while sample <= now {
                cell.domain.sample(&mut context);
                sample = cell.domain.next_sample();
            }
            context.now = now;
            if message_first {
                let Some(key) = arrivals.next() else { break };
                // SAFETY: R5: visited above; by R4 the domain pushes only to lists of later windows.
                let (envelope, attachment) = unsafe { self.mailboxes.read(*key as u32) };
                cell.domain.on_message(envelope.entity, &envelope.message, attachment, &mut context);
            } else {
                context.queue.pop();
                others += 1;
                taken += 1;
                let event = event_key.event();
                if taken.is_multiple_of(CHECK_EVERY)
                    && self.check(taken, &mut moved, now, &cell.domain, event)
                {
                    break;
                }
                if event.class == D::ARRIVAL {
                    let (_, envelope, attachment) = context.deferred.take(event.payload);
                    (messages, others) = (messages + 1, others - 1);
                    cell.domain.on_message(
                        event.entity,
                        &envelope.message,
                        attachment.as_ref(),
                        &mut context,
                    );
                } else if event.class == DEFERRED {
                    context.post_deferred(event.payload);
                } else {
                    cell.domain.on_event(event, &mut context);
                }
            }
        }
        messages -= arrivals.len() as u64;
        for key in arrivals {
            // SAFETY: R5: visited above.
            let envelope = unsafe { self.mailboxes.read(*key as u32) }.0;
            cell.leftover.push((envelope.entity, envelope.message));
        }
        // The domain may catch up beyond these samples now.
        while sample < limit {
            cell.domain.sample(&mut context);
            sample = cell.domain.next_sample();
        }
        let wake = cell.domain.finish_window(limit, &mut context);
        debug_assert!(cell.domain.is_consistent(), "conservation broken in domain {index} before {limit}");
        for from in 0..self.workers.len() {
            // SAFETY: R5, R7: the domain has run, and nothing refers to its messages any more.
            unsafe { self.mailboxes.clear(thread, from, window.index, index) };
        }
        (messages + others, messages, wake.min(cell.queue.next_time()))
    }

    /// The run ends at once, for this reason or an earlier one.
    #[cold]
    fn end_at_once(&self, reason: Halted) {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.is_halted.store(true, Ordering::Relaxed);
    }

    /// Whether the run ends inside a window, before a domain's `event`: it is halted, or time does not move. The domain
    /// has `taken` so many events in this window.
    #[cold]
    fn check(&self, taken: u64, moved: &mut Moved, now: Time, domain: &D, event: Event) -> bool {
        let at_this_time = moved.count(now, taken);
        let events = self.executor.most_at_one_time;
        if (self.halt)() {
            self.end_at_once(Halted::Asked);
        } else if at_this_time >= events {
            let event = domain.describe(event);
            self.end_at_once(Halted::Livelock(Livelock { time: now, events, event }));
        }
        self.is_halted.load(Ordering::Relaxed)
    }
}
