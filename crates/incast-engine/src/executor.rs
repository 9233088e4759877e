//! The window executor.

pub use super::{
    inspector::{Finding, Inspect, Inspector, Reached},
    shared::MOST_THREADS,
};

use super::{
    cell::{Cells, Rules},
    domain::{DEFERRED, Domain, Names, Windows},
    halt::{Halt, Halted, MOST_EVENTS_AT_ONE_TIME},
    mailbox::Mailboxes,
    queue::{Event, Key, TieBreak},
    shared::Shared,
    sync::{Barrier, CachePadded},
    worker::{Statistics, Worker},
};
use incast_units::Time;
use std::{
    panic::resume_unwind,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64},
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

/// Runs domains to an end.
pub struct Executor<D: Domain> {
    cells: Cells<D>,
    rules: Rules,
}

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
        let most_at_one_time = MOST_EVENTS_AT_ONE_TIME;
        let rules = Rules { lookahead, colours: None, slots, ties, attachments, most_at_one_time };
        Self { cells: Cells::new(domains), rules }
    }

    /// Lets domains run in two phases: none of those below `first` sends to another of them, and none of the others to
    /// another of those. Speed depends on it, results do not. They run in one phase all the same where somebody inspects
    /// all domains at one time.
    ///
    /// In debug builds a run panics where a domain sends to another one of its colour; in others such a message is lost.
    pub fn in_two_phases(&mut self, first: usize) {
        self.rules.colours = Some(first);
    }

    /// So many events of a domain may come at one time: those of flows that start together.
    pub fn expect(&mut self, events: u64) {
        self.rules.most_at_one_time = self.rules.most_at_one_time.saturating_add(events);
    }

    /// Schedules an event of a domain before the run.
    pub fn schedule(&mut self, domain: usize, time: Time, event: Event) {
        let ties = self.rules.ties;
        let cell = self.cells.get_mut(domain);
        cell.queue.push(time, Key::new(event, ties.of(cell.names.of(event.entity), time)));
    }

    /// The domains, after a run.
    pub fn into_domains(self) -> Vec<D> {
        self.cells.into_domains()
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
        let threads = threads.clamp(1, MOST_THREADS).min(self.cells.len().max(1));
        let shared = self.shared(end, threads, inspector.as_ref().map(|inspector| inspector.every), halt);
        // SAFETY: R2: no other thread runs yet.
        unsafe { shared.balance(None) };
        let windows =
            if threads == 1 { shared.work(0, observe, inspector) } else { on_threads(&shared, observe, inspector) };
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

    /// What threads share in a run that begins.
    fn shared<'a>(
        &'a self,
        end: Time,
        threads: usize,
        inspect_every: Option<Time>,
        halt: &'a Halt<'a>,
    ) -> Shared<'a, D> {
        let Rules { lookahead, colours, slots, attachments, .. } = self.rules;
        let domains = self.cells.len();
        let next = || (0..threads).map(|_| AtomicU64::new(u64::MAX)).collect();
        Shared {
            cells: &self.cells,
            rules: self.rules,
            mailboxes: Mailboxes::new(domains, threads, slots, attachments),
            workers: (0..threads).map(|_| CachePadded::new(Worker::new(domains, slots))).collect(),
            barrier: Barrier::new(threads),
            next: [next(), next()],
            divide: [AtomicBool::new(false), AtomicBool::new(false)],
            messages: next(),
            inspect_every,
            windows: Windows {
                length: lookahead,
                first: colours.unwrap_or(0) as u32,
                phases: self.rules.phases(inspect_every.is_some()),
            },
            inspection_ended: AtomicBool::new(false),
            halt,
            is_halted: AtomicBool::new(false),
            halted: Mutex::new(None),
            end,
        }
    }

    /// Collects the messages that were in flight when the run ended.
    fn leftover(&mut self, mailboxes: Mailboxes<D::Message, D::Attachment>) {
        mailboxes.leftover(|domain, envelope| {
            self.cells.get_mut(domain as usize).leftover.push((envelope.entity, envelope.message));
        });
    }

    /// Messages that were in flight when the run ended, with the domain and entity where they would have arrived.
    pub fn pending(&mut self) -> Vec<(u32, u32, D::Message)> {
        let mut pending = Vec::new();
        for (index, cell) in self.cells.iter_mut().enumerate() {
            pending.extend(cell.leftover.iter().map(|(entity, message)| (index as u32, *entity, *message)));
            for event in cell.queue.events().filter(|event| event.class == D::ARRIVAL || event.class == DEFERRED) {
                let (domain, envelope, _) = cell.deferred.slots[event.payload as usize];
                pending.push((domain, envelope.entity, envelope.message));
            }
        }
        pending
    }
}

/// Runs on several threads, of which the caller's is the leader. Returns the number of windows.
fn on_threads<D: Domain>(
    shared: &Shared<'_, D>,
    observe: &mut dyn FnMut(Reached) -> bool,
    inspector: Option<Inspector<'_, D>>,
) -> u64 {
    thread::scope(|scope| {
        let others: Vec<_> = (1..shared.workers.len())
            .map(|thread| scope.spawn(move || shared.guarded(thread, &mut |_| true, None)))
            .collect();
        let (windows, mut first_panic) = match shared.guarded(0, observe, inspector) {
            Ok(windows) => (windows, None),
            Err(panic) => (0, Some(panic)),
        };
        for other in others {
            match other.join() {
                Ok(Ok(_)) => {}
                // The original panic is the one that is not a poisoned barrier.
                Ok(Err(panic)) | Err(panic) => first_panic = first_panic.or(Some(panic)),
            }
        }
        first_panic.map_or(windows, |panic| resume_unwind(panic))
    })
}
