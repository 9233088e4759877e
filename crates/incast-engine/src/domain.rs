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

    /// In [`Self::on_messages`] this domain prefetches by itself, so that it needs no [`Self::prefetch_message`] before.
    fn looks_ahead(&self) -> bool {
        false
    }

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

/// How windows follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// The lookahead.
    pub length: Time,
    /// 1: in each window, one lookahead long, every domain may run. 2: domains have two colours, none sends to another of
    /// its own, and the colours take turns. A domain then runs in every second window, which is two lookaheads long and
    /// overlaps its neighbours' windows by one on either side.
    pub phases: u64,
    /// Domains below this are of one colour, the others of the other, in two phases.
    pub first: u32,
}

impl Windows {
    /// The number of the window in which domains of a colour (0 or 1) run at a time. Colours matter in two phases only.
    pub fn at(&self, time: Time, colour: u64) -> u64 {
        let lookaheads = time.ps() / self.length.ps();
        lookaheads.saturating_add((lookaheads ^ colour) & (self.phases - 1))
    }

    /// The window of this number.
    pub fn window(self, index: u64) -> Window {
        let at = |lookaheads: u64| self.length.saturating_mul(lookaheads);
        Window {
            index,
            start: at(index.saturating_sub(self.phases - 1)),
            end: at(index + 1),
            earliest: at(index + 2 - self.phases),
            later: std::array::from_fn(|near| at(index + 2 + self.phases * near as u64)),
            windows: self,
        }
    }
}

/// The window that is being executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub index: u64,
    pub start: Time,
    pub end: Time,
    /// The earliest time at which a message sent in it may arrive at another domain.
    earliest: Time,
    /// Starts of the windows of other domains after the next one.
    later: [Time; NEAR - 1],
    windows: Windows,
}

/// Windows that [`Window::near`] tells apart: this one, and the next ones of other domains.
pub(super) const NEAR: usize = 4;

impl Window {
    /// The same up to `end` only.
    pub fn until(self, end: Time) -> Self {
        Self { end, ..self }
    }

    /// The time of an arrival in it, given its key.
    #[inline]
    pub fn time_of(&self, key: u64) -> Time {
        self.start + Time::from_ps(key >> 32)
    }

    /// In which of the next windows of other domains `time` lies, from 1 on; [`NEAR`] if in none of them.
    #[inline]
    fn near(&self, time: Time) -> u64 {
        debug_assert!(time >= self.earliest, "{time} is not after this window");
        // Whether a message falls into the next window or the one after is unpredictable: branch-free.
        1 + self.later.iter().map(|start| u64::from(time >= *start)).sum::<u64>()
    }

    /// The number of a window that [`Self::near`] returns.
    pub fn number(&self, near: u64) -> u64 {
        self.index + (self.windows.phases * near).saturating_sub(self.windows.phases - 1)
    }

    /// The number of the window in which other domains run at `time`.
    fn of_others(&self, time: Time) -> u64 {
        self.windows.at(time, self.index + 1)
    }

    /// The number of the window after this one in which the domains of this one run at `time`.
    #[inline]
    pub fn again(&self, time: Time) -> u64 {
        self.windows.at(time, self.index).max(self.index + self.windows.phases)
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
            assert!(self.slots.len() < Key::PAYLOADS as usize, "more than 2^24 messages deferred by one domain");
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
    #[inline(always)]
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
    #[inline(always)]
    pub fn context(&mut self) -> &mut Context<'c, D> {
        self.context
    }

    /// The message that comes when `ahead` others have been taken, and its entity; other events may come before it. Only
    /// for prefetching and for work that depends on the message alone: no result may depend on it, because whether there
    /// is one depends on the length of windows.
    #[inline(always)]
    pub fn peek(&self, ahead: usize) -> Option<(u32, &'c D::Message)> {
        let key = *self.keys.as_slice().get(ahead)?;
        // SAFETY: R5: as in `next`.
        let envelope = unsafe { self.context.mailboxes.read(key as u32) }.0;
        Some((envelope.entity, &envelope.message))
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

    /// Another event of this domain is pending for this instant.
    #[inline]
    pub fn more_now(&self) -> bool {
        self.queue.next_time() <= self.now
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

    /// A message will probably be sent to this domain soon, to arrive in its next window: prefetches where it will be
    /// written.
    ///
    /// # Panics
    /// If there is no such domain.
    #[inline(always)]
    pub fn prefetch(&self, domain: u32) {
        // SAFETY: R4: this is the sending thread.
        unsafe { self.mailboxes.prefetch_next_line(self.rows[1], domain) };
    }

    /// Sends a message that arrives at `time` at an entity of a domain, this one or another.
    ///
    /// # Panics
    /// If another domain has run at `time`, or may have: that is so at any time before the end of this window, and in two
    /// phases at any time before its middle. No model may send to another domain within the lookahead. If there is no such
    /// domain; if there is an attachment, and the executor was made without.
    #[inline(always)]
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
    #[inline(always)]
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
            let Windows { phases, first, .. } = self.window.windows;
            debug_assert!(phases == 1 || (domain < first) != (self.domain < first), "they have one colour");
            assert!(time >= self.window.earliest, "message to another domain within the lookahead");
            let near = self.window.near(time);
            if let Some(row) = self.rows.get(near as usize) {
                self.mailboxes.push(self.thread, *row, domain, time, entity, message, attachment, change);
                return;
            }
        }
        let mut changed = *message;
        change(&mut changed);
        self.send_far(domain, entity, time, &changed, attachment);
    }

    /// Sends a message that stays in this domain, or that is some windows ahead.
    #[inline(never)]
    fn send_far(
        &mut self,
        domain: u32,
        entity: u32,
        time: Time,
        message: &D::Message,
        attachment: Option<&D::Attachment>,
    ) {
        let window = self.window.of_others(time);
        // The last window of time has no next one: what is sent in it to another domain has nowhere to go (R4).
        assert!(domain == self.domain || window > self.window.index, "message to another domain within this window");
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
            let near = self.window.windows.length * (self.window.of_others(time) + 2 - self.mailboxes.horizon());
            self.queue.push(near, Key::new(Event { class: DEFERRED, entity: 0, payload }, 0));
        }
    }

    /// Posts a message that was deferred because it was too far ahead.
    pub(super) fn post_deferred(&mut self, index: u32) {
        let (domain, envelope, attachment) = self.deferred.take(index);
        let window = self.window.of_others(envelope.time);
        // A domain may have scheduled an event of the engine's class itself (R4).
        let ahead = window.saturating_sub(self.window.index);
        assert!(ahead > 0, "a message that was deferred until it was late");
        assert!(ahead < self.mailboxes.horizon(), "a message that was deferred not long enough");
        let row = self.mailboxes.row(self.thread, window);
        let Envelope { time, entity, message } = envelope;
        self.mailboxes.push(self.thread, row, domain, time, entity, &message, attachment.as_ref(), |_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Executor;
    use proptest::prelude::*;

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

    proptest! {
        /// A window in which domains of a colour run at a time has that time, and what comes from another is never late.
        #[test]
        fn every_time_has_a_window(phases in 1u64..3, length in 1u64..2_000, time: u32, index: u32, ahead in 0u64..20_000) {
            let windows = Windows { length: Time::from_ps(length), phases, first: 1 };
            let (time, index) = (Time::from_ps(u64::from(time)), u64::from(index));
            for colour in 0..2 {
                let window = windows.window(windows.at(time, colour));
                prop_assert!(window.start <= time && time < window.end, "{window:?}");
                prop_assert!(phases == 1 || window.index % 2 == colour);
            }
            let window = windows.window(index);
            let arrival = window.earliest + Time::from_ps(ahead);
            let at = window.of_others(arrival);
            prop_assert!(at > index);
            let near = window.near(arrival);
            if near < NEAR as u64 {
                prop_assert_eq!(window.number(near), at);
            } else {
                prop_assert!(at >= window.number(near));
            }
            let again = window.again(window.end + Time::from_ps(ahead));
            prop_assert!(again > index && (phases == 1 || again % 2 == index % 2));
        }
    }

    #[test]
    fn a_changed_message_arrives_the_same_near_and_far() {
        for phases in [1, 2] {
            changed_messages(phases);
        }
    }

    fn changed_messages(phases: u64) {
        let domains = (0..2).map(|domain| (Correspondent::default(), Names::Base(domain)));
        let mut executor = Executor::new(domains, LOOKAHEAD, FAR, TieBreak::Fixed, true);
        if phases == 2 {
            executor.in_two_phases(1);
        }
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
