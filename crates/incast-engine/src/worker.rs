//! A thread of a run: when its domains run next, and the time that it takes.

use super::{
    active_set::ActiveSet,
    arrivals::Keys,
    mailbox::Mailboxes,
    message::{Attachment, Message},
};
use incast_units::Time;
use std::{cmp::Reverse, collections::BinaryHeap, ops::Range, time::Duration};

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Windows in which something happened.
    pub windows: u64,
    /// Messages handled.
    pub messages: u64,
    /// Events and messages handled.
    pub events: u64,
    /// CPU time of all threads, user and system.
    pub cpu: Duration,
    /// Most segments of memory that messages in flight took, 2 MiB each with messages of a cache line.
    pub segments: usize,
    /// The observer ended the run, at this time.
    pub stopped_at: Option<Time>,
}

/// The data of one thread about its domains.
pub struct Worker {
    /// Its domains, in each phase.
    pub ranges: [Range<u32>; 2],
    /// Domains with own events in the windows of the ring.
    pub near: Vec<ActiveSet>,
    /// Domains with own events further ahead, by window.
    pub far: BinaryHeap<Reverse<(u64, u32)>>,
    pub keys: Keys,
    pub active: Vec<u32>,
    pub statistics: Statistics,
}

impl Worker {
    pub fn new(domains: usize, slots: usize) -> Self {
        Self {
            ranges: [0..0, 0..0],
            near: vec![ActiveSet::new(domains); slots],
            far: BinaryHeap::new(),
            keys: Keys::default(),
            active: Vec::new(),
            statistics: Statistics::default(),
        }
    }

    /// Registers that `domain` has an event in window `due`.
    pub fn wake(&mut self, window: u64, due: u64, domain: u32) {
        let slots = self.near.len() as u64;
        if due < window + slots {
            self.near[(due & (slots - 1)) as usize].insert(domain);
        } else {
            self.far.push(Reverse((due, domain)));
        }
    }

    /// Moves wake-ups of near windows into the ring.
    pub fn gather(&mut self, window: u64) {
        let slots = self.near.len() as u64;
        while let Some(&Reverse((due, domain))) = self.far.peek()
            && due < window + slots
        {
            self.far.pop();
            self.near[(due & (slots - 1)) as usize].insert(domain);
        }
    }

    /// The next window after `window` for which this thread has an event or has posted a message.
    pub fn next_window<M: Message, A: Attachment>(
        &self,
        thread: usize,
        window: Option<u64>,
        mailboxes: &Mailboxes<M, A>,
    ) -> u64 {
        let slots = self.near.len() as u64;
        let far = self.far.peek().map_or(u64::MAX, |next| next.0.0);
        let first = window.map_or(0, |window| window + 1);
        let near = (first..first + slots - window.map_or(0, |_| 1))
            .find(|later| !self.near[(later & (slots - 1)) as usize].is_empty());
        // SAFETY: R4: this is the sending thread, and `window` is the one that was executed last.
        let posted = window.and_then(|window| unsafe { mailboxes.next_posted(thread, window) });
        far.min(near.unwrap_or(u64::MAX)).min(posted.unwrap_or(u64::MAX))
    }
}

/// CPU time of this thread, user and system; zero where the system does not provide it.
pub fn thread_cpu_time() -> Duration {
    // Miri has no such clock.
    if cfg!(miri) {
        return Duration::ZERO;
    }
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
