//! A thread's domains in one window.

use super::{
    active_set::{ActiveSet, collect},
    arrivals::Keys,
    cell::Cell,
    domain::{Context, DEFERRED, Domain, Messages, NEAR, Names, Window},
    halt::{Halted, Livelock, Moved},
    mailbox::Row,
    prefetch::prefetch,
    queue::{Event, Key},
    shared::{MOST_THREADS, Shared},
    worker::Worker,
};
use incast_units::Time;
use std::sync::atomic::Ordering;

/// From this many domains on, their state no longer fits a core's cache, and prefetching it pays. In fabrics of less
/// than twice as many it pays only while they are busy: a few domains that run again and again stay in the cache.
const LARGE: usize = 512;

/// From this many domains on, prefetching what the state points to pays as well. It costs about 20 ns per message, more
/// than it saves in smaller fabrics.
const HUGE: usize = 4096;

/// Events of one domain, messages apart, between two looks at whether its time moves and whether the run is halted.
const CHECK_EVERY: u64 = 1 << 16;

/// Domains that run in a window between two looks at whether the run is halted.
const HALT_EVERY: usize = 1 << 12;

/// A window, as one thread runs its domains in it.
#[derive(Clone, Copy)]
struct Visit<'r> {
    thread: usize,
    window: Window,
    rows: &'r [Row; NEAR],
}

impl<D: Domain> Shared<'_, D> {
    /// Runs this thread's domains that have something to do in a window.
    pub fn execute(&self, thread: usize, worker: &mut Worker, window: Window) {
        worker.gather(window.index);
        let slot = (window.index & (self.rules.slots as u64 - 1)) as usize;
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
        let domains = self.cells.len();
        let large = domains >= 2 * LARGE || domains >= LARGE && active.len() >= LARGE / 2;
        let huge = domains >= HUGE;
        let rows: [Row; NEAR] = std::array::from_fn(|near| self.mailboxes.row(thread, window.number(near as u64)));
        let visit = Visit { thread, window, rows: &rows };
        for (turn, domain) in active.iter().enumerate() {
            if large {
                self.prefetch_next(&active[turn..], window);
                if huge {
                    self.prefetch_next_state(&active[turn..], window, rows[1]);
                }
            }
            // SAFETY: R1: the domain is in this worker's range.
            let cell = unsafe { &mut *self.cells.get(*domain as usize) };
            let (handled, messages, next) = self.run_domain(&visit, &mut worker.keys, *domain, cell);
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
            let cell = self.cells.get(*domain as usize).cast_const();
            prefetch(cell, size_of::<Cell<D>>().div_ceil(64).min(16));
            (0..threads).for_each(|from| self.mailboxes.prefetch_list(from, window.index, *domain));
        }
        if let Some(domain) = active.get(4) {
            // SAFETY: R1: the domain is in this worker's range.
            unsafe { &*self.cells.get(*domain as usize) }.queue.prefetch();
            // SAFETY: R5: this thread runs the domain in this window, whose messages are complete.
            (0..threads).for_each(|from| unsafe { self.mailboxes.prefetch_messages(from, window.index, *domain) });
        }
    }

    /// The steps after those of [`Self::prefetch_next`].
    fn prefetch_next_state(&self, active: &[u32], window: Window, row: Row) {
        // SAFETY: R1: the domains are in this worker's range.
        let domain = |index: u32| unsafe { &(*self.cells.get(index as usize)).domain };
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
    #[inline(always)]
    fn run_domain(&self, visit: &Visit, keys: &mut Keys, index: u32, cell: &mut Cell<D>) -> (u64, u64, Time) {
        let Visit { thread, window, rows } = *visit;
        let limit = window.end.min(self.end);
        let keys = self.arrivals(keys, index, &cell.names, window);
        let (all, mut deferred) = (keys.len() as u64, 0);
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
            ties: self.rules.ties,
        };
        let mut arrivals = keys.iter();
        loop {
            // Consecutive messages, up to the next other event.
            let until = sample.min(limit);
            let mut messages_before = Messages { keys: &mut arrivals, until, context: &mut context };
            cell.domain.on_messages(&mut messages_before);
            let arrival = arrivals.as_slice().first().map_or(Time::MAX, |key| window.time_of(*key));
            let (event_time, event_key) = context.queue.peek().unwrap_or((Time::MAX, Key::LAST));
            let together = arrival == event_time && arrival < limit;
            let message_first =
                arrival < event_time || together && self.arrives_first(arrivals.as_slice(), event_key, &context);
            let now = if message_first { arrival } else { event_time };
            if now >= limit {
                break;
            }
            sample = take_samples(&mut cell.domain, sample, now + Time::from_ps(1), &mut context);
            context.now = now;
            if message_first {
                let Some(key) = arrivals.next() else { break };
                // SAFETY: R5: visited above; by R4 the domain pushes only to lists of later windows.
                let (envelope, attachment) = unsafe { self.mailboxes.read(*key as u32) };
                cell.domain.on_message(envelope.entity, &envelope.message, attachment, &mut context);
            } else {
                context.queue.pop();
                taken += 1;
                let event = event_key.event();
                let is_checked = taken.is_multiple_of(CHECK_EVERY);
                if is_checked && self.check(taken, &mut moved, now, &cell.domain, event) {
                    break;
                }
                deferred += u64::from(handle(&mut cell.domain, event, &mut context));
            }
        }
        let arrived = all - arrivals.len() as u64;
        cell.leftover.extend(arrivals.map(|key| {
            // SAFETY: R5: visited above.
            let envelope = unsafe { self.mailboxes.read(*key as u32) }.0;
            (envelope.entity, envelope.message)
        }));
        // The domain may catch up beyond these samples now.
        take_samples(&mut cell.domain, sample, limit, &mut context);
        let wake = cell.domain.finish_window(limit, &mut context);
        debug_assert!(cell.domain.is_consistent(), "conservation broken in domain {index} before {limit}");
        for from in 0..self.workers.len() {
            // SAFETY: R5, R7: the domain has run, and nothing refers to its messages any more.
            unsafe { self.mailboxes.clear(thread, from, window.index, index) };
        }
        (arrived + taken, arrived + deferred, wake.min(cell.queue.next_time()))
    }

    /// The domain's messages of a window, in order.
    #[inline(always)]
    fn arrivals<'k>(&self, keys: &'k mut Keys, index: u32, names: &Names, window: Window) -> &'k [u64] {
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
            self.break_ties(keys, scratch, names, window);
        }
        keys
    }

    /// Whether the run ends inside a window, before a domain's `event`: it is halted, or time does not move. The domain
    /// has `taken` so many events in this window.
    #[cold]
    fn check(&self, taken: u64, moved: &mut Moved, now: Time, domain: &D, event: Event) -> bool {
        let at_this_time = moved.count(now, taken);
        let events = self.rules.most_at_one_time;
        if (self.halt)() {
            self.end_at_once(Halted::Asked);
        } else if at_this_time >= events {
            let event = domain.describe(event);
            self.end_at_once(Halted::Livelock(Livelock { time: now, events, event }));
        }
        self.is_halted.load(Ordering::Relaxed)
    }
}

/// Has a domain handle an event; whether it was a message that the domain had deferred.
#[inline(always)]
fn handle<D: Domain>(domain: &mut D, event: Event, context: &mut Context<'_, D>) -> bool {
    if event.class == D::ARRIVAL {
        let (_, envelope, attachment) = context.deferred.take(event.payload);
        domain.on_message(event.entity, &envelope.message, attachment.as_ref(), context);
        return true;
    }
    if event.class == DEFERRED {
        context.post_deferred(event.payload);
    } else {
        domain.on_event(event, context);
    }
    false
}

/// A domain's samples that are due before a time. Returns when the next one is.
#[inline(always)]
fn take_samples<D: Domain>(domain: &mut D, mut sample: Time, before: Time, context: &mut Context<'_, D>) -> Time {
    while sample < before {
        domain.sample(context);
        sample = domain.next_sample();
    }
    sample
}
