//! Handing messages from window to window, without locks.
//!
//! Each (window slot, sending thread, receiving domain) has an inbox of its own. The rules that make unsynchronised
//! access sound, all kept by [`super::executor`]:
//! 1. Thread t alone pushes into inboxes and activity sets of sending thread t, and only for windows after the one
//!    being executed.
//! 2. A domain's inboxes of the window being executed are read and emptied by the one thread that runs the domain.
//! 3. A barrier separates windows. A slot is reused only by a later window.

use super::{domain::Message, schedule::ActiveSet};
use incast_units::Time;
use std::cell::UnsafeCell;

/// A message with its time and place of arrival.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Envelope<M> {
    pub time: Time,
    pub entity: u32,
    pub message: M,
}

/// Messages of one sending thread to one domain for one window.
#[derive(Debug)]
pub(super) struct Inbox<M, A> {
    pub messages: Vec<Envelope<M>>,
    pub attachments: Vec<A>,
}

/// All inboxes.
pub(super) struct PostOffice<M, A> {
    inboxes: Box<[UnsafeCell<Inbox<M, A>>]>,
    active: Box<[UnsafeCell<ActiveSet>]>,
    domains: usize,
    threads: usize,
    slots: u64,
}

// SAFETY: access follows the rules in the module's documentation; messages and attachments are Send.
unsafe impl<M: Send, A: Send> Sync for PostOffice<M, A> {}

impl<M: Message, A: Copy> PostOffice<M, A> {
    /// `slots` must be a power of two.
    pub fn new(domains: usize, threads: usize, slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "slots are masked");
        let inbox = || UnsafeCell::new(Inbox { messages: Vec::new(), attachments: Vec::new() });
        Self {
            inboxes: (0..domains * threads * slots).map(|_| inbox()).collect(),
            active: (0..threads * slots).map(|_| UnsafeCell::new(ActiveSet::new(domains))).collect(),
            domains,
            threads,
            slots: slots as u64,
        }
    }

    /// Messages may be posted to windows less than this far ahead.
    #[inline]
    pub fn horizon(&self) -> u64 {
        self.slots
    }

    #[inline]
    fn slot(&self, window: u64) -> usize {
        (window & (self.slots - 1)) as usize
    }

    /// Posts a message from `thread` to `domain` for `window`, a later one than the one being executed.
    #[inline]
    pub fn push(&self, thread: usize, window: u64, domain: u32, mut envelope: Envelope<M>, attachment: Option<&A>) {
        let row = self.slot(window) * self.threads + thread;
        // SAFETY: rule 1: nobody else touches an inbox of this sending thread for a later window.
        let inbox = unsafe { &mut *self.inboxes[row * self.domains + domain as usize].get() };
        if inbox.messages.is_empty() {
            // SAFETY: rule 1, as above.
            unsafe { (*self.active[row].get()).insert(domain) };
        }
        if let Some(attachment) = attachment {
            envelope.message.set_attachment(inbox.attachments.len() as u32);
            inbox.attachments.push(*attachment);
        }
        inbox.messages.push(envelope);
    }

    /// The inbox of `domain` for `window` from `thread`.
    ///
    /// # Safety
    /// The caller runs `domain` in `window` and holds no other reference to this inbox.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn inbox(&self, thread: usize, window: u64, domain: u32) -> &mut Inbox<M, A> {
        let row = self.slot(window) * self.threads + thread;
        // SAFETY: rule 2, promised by the caller.
        unsafe { &mut *self.inboxes[row * self.domains + domain as usize].get() }
    }

    /// The domains to which `thread` has posted messages for `window`.
    ///
    /// # Safety
    /// `window` is the one being executed, so that nobody writes the set.
    #[inline]
    pub unsafe fn active(&self, thread: usize, window: u64) -> &ActiveSet {
        // SAFETY: promised by the caller.
        unsafe { &*self.active[self.slot(window) * self.threads + thread].get() }
    }

    /// Forgets what `thread` posted for `window`, which is over.
    ///
    /// # Safety
    /// The caller is `thread`, and every thread has left `window`.
    pub unsafe fn forget(&self, thread: usize, window: u64) {
        // SAFETY: promised by the caller.
        unsafe { (*self.active[self.slot(window) * self.threads + thread].get()).clear() }
    }

    /// The first of the windows after `window` for which `thread` has posted something.
    ///
    /// # Safety
    /// The caller is `thread`.
    pub unsafe fn next_posted(&self, thread: usize, window: u64) -> Option<u64> {
        (window + 1..window + self.slots).find(|later| {
            // SAFETY: rule 1: only this thread writes these sets.
            !unsafe { &*self.active[self.slot(*later) * self.threads + thread].get() }.is_empty()
        })
    }

    /// All messages that were not taken, with their domains.
    pub fn into_messages(self) -> impl Iterator<Item = (usize, Envelope<M>)> {
        let domains = self.domains;
        self.inboxes.into_iter().enumerate().flat_map(move |(index, inbox)| {
            inbox.into_inner().messages.into_iter().map(move |envelope| (index % domains, envelope))
        })
    }
}
