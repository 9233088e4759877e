//! The interface between the engine and a domain.

use super::{
    mailbox::{Mailboxes, Row},
    message::{Attachment, Envelope, Message},
    queue::{Event, EventQueue, Key, TieBreak},
};
use incast_units::Time;
use std::slice;

/// A set of nodes that share one event loop.
///
/// All methods are called with non-decreasing time. A domain acts on others only by [`Context::send`].
pub trait Domain: Send {
    /// What travels between domains.
    type Message: Message;
    /// What does not fit into a message.
    type Attachment: Attachment;
    /// The class of arriving messages among the classes of [`Event`]s.
    const ARRIVAL: u8;

    /// A message arrived at an entity of this domain.
    fn on_message(
        &mut self,
        entity: u32,
        message: &Self::Message,
        attachment: Option<&Self::Attachment>,
        context: &mut Context<'_, Self>,
    ) where
        Self: Sized;

    /// Consecutive messages, with no other event between them: equal to as many calls of [`Self::on_message`], but the
    /// domain can decide once how it handles them. It may return before it has taken all. The others come again, singly
    /// by [`Self::on_message`] or together by this.
    #[inline]
    fn on_messages(&mut self, messages: &mut Messages<'_, '_, Self>)
    where
        Self: Sized,
    {
        while let Some((entity, message, attachment)) = messages.next() {
            self.on_message(entity, message, attachment, messages.context());
        }
    }

    /// An event that this domain scheduled is due.
    fn on_event(&mut self, event: Event, context: &mut Context<'_, Self>)
    where
        Self: Sized;

    /// When the next sample is due; [`Time::MAX`] for never.
    fn next_sample(&self) -> Time {
        Time::MAX
    }

    /// Takes the sample of [`Self::next_sample`]. Every event before that time has happened, none at or after it.
    fn sample(&mut self, _context: &mut Context<'_, Self>)
    where
        Self: Sized,
    {
    }

    /// All events before `limit` have been handled. A domain that defers work without visible effect catches up here.
    /// Returns when it must run again even if nothing is scheduled.
    fn finish_window(&mut self, _limit: Time, _context: &mut Context<'_, Self>) -> Time
    where
        Self: Sized,
    {
        Time::MAX
    }

    /// This domain will run soon: prefetches the memory that it needs, in two steps: first (`near` false) what its
    /// struct points to, then what that points to.
    fn prefetch(&self, _near: bool) {}

    /// This message will be handled soon: prefetches the memory that it needs.
    fn prefetch_message(&self, _entity: u32, _message: &Self::Message) {}

    /// The domain of this executor to which this message will probably be forwarded.
    fn next_domain(&self, _entity: u32, _message: &Self::Message) -> Option<u32> {
        None
    }

    /// An event in words, for messages.
    fn describe(&self, event: Event) -> String {
        format!("{event:?}")
    }

    /// Conservation: nothing was lost or created. Asserted after each window in debug builds.
    fn is_consistent(&self) -> bool {
        true
    }
}

/// Names of a domain's entities across the simulation, for breaking ties.
#[derive(Clone, Debug)]
pub enum Names {
    /// The name of entity e is base + e.
    Base(u64),
    /// The name of entity e is the e-th.
    Table(Vec<u64>),
}

impl Names {
    #[inline]
    pub(super) fn of(&self, entity: u32) -> u64 {
        match self {
            Self::Base(base) => base + u64::from(entity),
            Self::Table(names) => names[entity as usize],
        }
    }
}

/// The window that is being executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub index: u64,
    pub start: Time,
    /// End of the window: the earliest time at which a message sent in it may arrive elsewhere.
    pub end: Time,
    pub length: Time,
    /// Starts of the windows after the next one.
    later: [Time; NEAR - 1],
}

/// Windows that [`Window::near`] tells apart, this one included.
pub(super) const NEAR: usize = 4;

impl Window {
    /// The window of this number, where all are of this length.
    pub fn new(index: u64, length: Time) -> Self {
        let start = length * index;
        let later = std::array::from_fn(|ahead| start.saturating_add(length * (ahead as u64 + 2)));
        Self { index, start, end: start.saturating_add(length), length, later }
    }

    /// The time of an arrival in it, given its key.
    #[inline]
    pub fn time_of(&self, key: u64) -> Time {
        self.start + Time::from_ps(key >> 32)
    }

    /// How many windows after this one `time` lies, if that is less than [`NEAR`], and [`NEAR`] otherwise.
    #[inline]
    fn near(&self, time: Time) -> u64 {
        if time < self.end { 0 } else { self.near_after(time) }
    }

    /// The same for a time that is not in this window.
    #[inline]
    fn near_after(&self, time: Time) -> u64 {
        debug_assert!(time >= self.end, "{time} is not after this window");
        // Whether a message falls into the next window or the one after is unpredictable: branch-free.
        1 + self.later.iter().map(|start| u64::from(time >= *start)).sum::<u64>()
    }

    /// How many windows after this one `time` lies.
    #[inline]
    pub fn ahead(&self, time: Time) -> u64 {
        match self.near(time) {
            near if near < NEAR as u64 => near,
            _ => time.ps() / self.length.ps() - self.index,
        }
    }
}

/// Messages of a domain to itself, and messages that it holds until they are near enough to be posted.
#[derive(Debug)]
pub(super) struct Deferred<M, A> {
    pub slots: Vec<(u32, Envelope<M>, Option<A>)>,
    free: Vec<u32>,
}

impl<M: Copy, A: Copy> Deferred<M, A> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
    fn put(&mut self, to: u32, envelope: Envelope<M>, attachment: Option<A>) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = (to, envelope, attachment);
            index
        } else {
            assert!(
                self.slots.len() < Key::PAYLOADS as usize,
                "more than 2^24 messages deferred by one domain"
            );
            self.slots.push((to, envelope, attachment));
            self.slots.len() as u32 - 1
        }
    }
    pub fn take(&mut self, index: u32) -> (u32, Envelope<M>, Option<A>) {
        self.free.push(index);
        self.slots[index as usize]
    }
}

/// What a domain may do while it handles an event.
pub struct Context<'a, D: Domain> {
    pub(super) now: Time,
    pub(super) window: Window,
    pub(super) domain: u32,
    pub(super) thread: usize,
    /// Mailbox rows of the windows that [`Window::near`] distinguishes.
    pub(super) rows: &'a [Row; NEAR],
    pub(super) mailboxes: &'a Mailboxes<D::Message, D::Attachment>,
    pub(super) queue: &'a mut EventQueue,
    pub(super) deferred: &'a mut Deferred<D::Message, D::Attachment>,
    pub(super) names: &'a Names,
    pub(super) ties: TieBreak,
}

/// Consecutive messages of a domain, up to the next other event.
pub struct Messages<'m, 'c, D: Domain> {
    /// Keys in order: time since the start of the window, and line.
    pub(super) keys: &'m mut slice::Iter<'c, u64>,
    /// Time of the next other event.
    pub(super) until: Time,
    pub(super) context: &'m mut Context<'c, D>,
}

impl<'c, D: Domain> Messages<'_, 'c, D> {
    /// The next message, with its entity and its attachment; it arrives now. `None` if there is no other before the
    /// next event, which the domain may have scheduled meanwhile.
    #[inline(always)] // on the path of every packet
    #[allow(clippy::should_implement_trait, clippy::type_complexity)]
    pub fn next(&mut self) -> Option<(u32, &'c D::Message, Option<&'c D::Attachment>)> {
        let key = *self.keys.as_slice().first()?;
        let arrival = self.context.window.time_of(key);
        if arrival >= self.until || arrival >= self.context.queue.next_time() {
            return None;
        }
        self.keys.next();
        self.context.now = arrival;
        // SAFETY: R5: the executor has visited these messages; by R4 the domain pushes only to lists of later windows.
        let (envelope, attachment) = unsafe { self.context.mailboxes.read(key as u32) };
        Some((envelope.entity, &envelope.message, attachment))
    }

    /// The context for handling the message that was taken last.
    #[inline(always)] // on the path of every packet
    pub fn context(&mut self) -> &mut Context<'c, D> {
        self.context
    }

    /// The message after the one taken last; another event may come before it. Only for prefetching and for work that
    /// depends on the message alone: no result may depend on it, because whether there is one depends on the length of
    /// windows.
    #[inline(always)] // on the path of every packet
    pub fn peek(&self) -> Option<&'c D::Message> {
        let key = *self.keys.as_slice().first()?;
        // SAFETY: R5: as in `next`.
        Some(unsafe { &self.context.mailboxes.read(key as u32).0.message })
    }
}

/// Class of the engine's own events: a deferred message can be posted now.
pub(super) const DEFERRED: u8 = Key::CLASSES - 1;

impl<D: Domain> Context<'_, D> {
    /// Simulated time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event of this domain.
    ///
    /// # Panics
    /// If `time` is in the past.
    #[inline]
    pub fn schedule(&mut self, time: Time, event: Event) {
        assert!(time >= self.now, "event scheduled into the past: {time} before {}", self.now);
        let tie = self.ties.of(self.names.of(event.entity), time);
        self.queue.push(time, Key::new(event, tie));
    }

    /// Sends a message that arrives at `time` at an entity of a domain, this one or another.
    ///
    /// # Panics
    /// If `time` is in the past, or nearer than the lookahead for another domain; if there is no such domain; if there is
    /// an attachment, and the executor was made without.
    #[inline(always)] // on the path of every packet
    pub fn send(
        &mut self,
        domain: u32,
        entity: u32,
        time: Time,
        message: &D::Message,
        attachment: Option<&D::Attachment>,
    ) {
        self.send_changed(domain, entity, time, message, attachment, |_| {});
    }

    /// The same for a message that `change` modifies as it is copied, which saves a copy.
    ///
    /// The copy is changed first. Then [`Message::sent`] updates it, and last the engine sets the index of the
    /// attachment. `change` must not touch the fields that these two set.
    ///
    /// # Panics
    /// As [`Self::send`].
    #[inline(always)] // on the path of every packet
    pub fn send_changed(
        &mut self,
        domain: u32,
        entity: u32,
        time: Time,
        message: &D::Message,
        attachment: Option<&D::Attachment>,
        change: impl FnOnce(&mut D::Message),
    ) {
        if domain != self.domain {
            assert!(time >= self.window.end, "message to another domain within the lookahead");
            let ahead = self.window.near_after(time);
            if let Some(row) = self.rows.get(ahead as usize) {
                self.mailboxes.push(self.thread, *row, domain, time, entity, message, attachment, change);
                return;
            }
        }
        let mut changed = *message;
        change(&mut changed);
        self.send_far(domain, entity, time, &changed, attachment);
    }

    /// Sends a message that stays in this domain, or that is some windows ahead.
    #[inline(never)] // rare: kept out of the path of packets
    fn send_far(
        &mut self,
        domain: u32,
        entity: u32,
        time: Time,
        message: &D::Message,
        attachment: Option<&D::Attachment>,
    ) {
        let window = self.window.index + self.window.ahead(time);
        // The last window of time has no next one: what is sent in it to another domain has nowhere to go (R4).
        assert!(
            domain == self.domain || window > self.window.index,
            "message to another domain within this window"
        );
        if domain != self.domain && window < self.window.index + self.mailboxes.horizon() {
            let row = self.mailboxes.row(self.thread, window);
            self.mailboxes.push(self.thread, row, domain, time, entity, message, attachment, |_| {});
        } else {
            self.defer(domain, entity, time, message, attachment);
        }
    }

    /// Keeps a message that stays in this domain, or that is too far ahead to be posted.
    fn defer(
        &mut self,
        domain: u32,
        entity: u32,
        time: Time,
        message: &D::Message,
        attachment: Option<&D::Attachment>,
    ) {
        let (original, mut message) = (*message, *message);
        if domain == self.domain {
            // What is posted later counts as sent then.
            message.sent(&original);
        }
        message.set_attachment(D::Message::NO_ATTACHMENT);
        let payload = self.deferred.put(domain, Envelope { time, entity, message }, attachment.copied());
        if domain == self.domain {
            self.schedule(time, Event { class: D::ARRIVAL, entity, payload });
        } else {
            let ahead = self.window.ahead(time);
            let near = Time::from_ps(
                (self.window.index + ahead + 2 - self.mailboxes.horizon()) * self.window.length.ps(),
            );
            self.queue.push(near, Key::new(Event { class: DEFERRED, entity: 0, payload }, 0));
        }
    }

    /// Posts a message that was deferred because it was too far ahead.
    pub(super) fn post_deferred(&mut self, index: u32) {
        let (domain, envelope, attachment) = self.deferred.take(index);
        let window = self.window.index + self.window.ahead(envelope.time);
        // A domain may have scheduled an event of the engine's class itself (R4).
        assert!(window > self.window.index, "a message that was deferred until it was late");
        let row = self.mailboxes.row(self.thread, window);
        let Envelope { time, entity, message } = envelope;
        self.mailboxes.push(self.thread, row, domain, time, entity, &message, attachment.as_ref(), |_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Executor;

    const LOOKAHEAD: Time = Time::from_ps(1_000);
    /// Far enough to be deferred until it is near.
    const FAR: Time = Time::from_ps(1_000_000);
    const SENDER: u32 = 0;
    const RECEIVER: u32 = 1;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Letter {
        text: u32,
        stamps: u32,
        enclosure: u32,
    }

    // SAFETY: R16: the index is written by the engine last, after `change` and `sent`.
    unsafe impl Message for Letter {
        fn attachment(&self) -> u32 {
            self.enclosure
        }
        fn set_attachment(&mut self, index: u32) {
            self.enclosure = index;
        }
        fn sent(&mut self, original: &Self) {
            self.stamps = original.stamps + 1;
        }
    }

    #[derive(Default)]
    struct Correspondent {
        received: Vec<(Time, u32, u32, Option<[u32; 3]>)>,
    }

    impl Domain for Correspondent {
        type Message = Letter;
        type Attachment = [u32; 3];
        const ARRIVAL: u8 = 2;

        fn on_message(
            &mut self,
            _: u32,
            letter: &Letter,
            enclosure: Option<&[u32; 3]>,
            context: &mut Context<'_, Self>,
        ) {
            self.received.push((context.now(), letter.text, letter.stamps, enclosure.copied()));
        }

        /// Writes to both, with an attachment and without one, and overwrites its index.
        fn on_event(&mut self, _: Event, context: &mut Context<'_, Self>) {
            let letter = Letter { text: 1, stamps: 4, enclosure: 99 };
            for (to, after) in receivers() {
                for (later, enclosure) in [(0, None), (1, Some([after as u32; 3]))] {
                    let arrival = context.now() + Time::from_ps(after + later);
                    context.send_changed(to, 0, arrival, &letter, enclosure.as_ref(), |letter| {
                        letter.text += 1;
                        letter.enclosure = 98 - letter.enclosure % 2;
                    });
                }
            }
        }
    }

    /// Receivers, and how far ahead a message to them arrives, in picoseconds: every number of windows from the next
    /// one on, past those with a row and those with a slot, and in the sender's own domain.
    fn receivers() -> impl Iterator<Item = (u32, u64)> {
        let windows = (1..70).chain([500, FAR.ps() / LOOKAHEAD.ps() - 1]);
        let to_receiver = windows.map(|windows| (RECEIVER, windows * LOOKAHEAD.ps() + 10));
        to_receiver.chain([0, 1, 2, 90].map(|windows| (SENDER, windows * LOOKAHEAD.ps() + 10)))
    }

    #[test]
    fn a_changed_message_arrives_the_same_near_and_far() {
        let domains = (0..2).map(|domain| (Correspondent::default(), Names::Base(domain))).collect();
        let mut executor = Executor::new(domains, LOOKAHEAD, FAR, TieBreak::Fixed, true);
        executor.schedule(0, Time::ZERO, Event { class: 1, entity: 0, payload: 0 });
        executor.run(FAR + FAR, 1, &mut |_| true, None, &|| false).expect("nothing halts it");
        for (to, domain) in executor.into_domains().into_iter().enumerate() {
            let expected: Vec<_> = receivers()
                .filter(|(receiver, _)| *receiver == to as u32)
                .flat_map(|(_, after)| {
                    let at = |later| Time::from_ps(after + later);
                    [(at(0), 2, 5, None), (at(1), 2, 5, Some([after as u32; 3]))]
                })
                .collect();
            assert_eq!(domain.received, expected, "domain {to}");
        }
    }
}
