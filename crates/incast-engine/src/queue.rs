//! The few pending events of one domain, and the order of events.

use super::{prefetch::prefetch, random::mix};
use incast_units::Time;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Something that happens inside a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of event: lower classes come first at one instant. Below [`Key::CLASSES`].
    pub class: u8,
    /// Where in the domain (a port). Below [`Key::ENTITIES`].
    pub entity: u32,
    /// Data of the domain. Below [`Key::PAYLOADS`].
    pub payload: u32,
}

/// Order of events at one instant, packed: class, tie-break, entity, payload.
///
/// The complete order is (time, class, tie-break, entity, payload). The tie-break is a hash of (seed, the entity's
/// global name, time), because a fixed order of ports would favour the same ports in every synchronised incast.
/// Two events that are equal in all of this are the same event, so the order is total. It depends on simulated
/// state alone: not on threads, not on how nodes are grouped into domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    /// Number of classes.
    pub const CLASSES: u8 = 1 << 4;
    /// Number of entities in a domain.
    pub const ENTITIES: u32 = 1 << 20;
    /// Number of payload values.
    pub const PAYLOADS: u32 = 1 << 24;

    /// Later than any event.
    pub const LAST: Self = Self(u64::MAX);

    /// Packs an event; `tie` is the hash.
    #[inline]
    pub fn new(event: Event, tie: u16) -> Self {
        debug_assert!(event.class < Self::CLASSES && event.entity < Self::ENTITIES && event.payload < Self::PAYLOADS);
        Self(
            u64::from(event.class) << 60
                | u64::from(tie) << 44
                | u64::from(event.entity) << 24
                | u64::from(event.payload),
        )
    }

    /// The event.
    #[inline]
    pub fn event(self) -> Event {
        Event {
            class: (self.0 >> 60) as u8,
            entity: (self.0 >> 24) as u32 & (Self::ENTITIES - 1),
            payload: self.0 as u32 & (Self::PAYLOADS - 1),
        }
    }
}

/// How simultaneous events of different entities are ordered.
#[derive(Clone, Copy, Debug)]
pub enum TieBreak {
    /// By hash under this seed.
    Seeded(u64),
    /// By entity.
    Fixed,
}

impl TieBreak {
    /// The tie-break of the entity with the global name `name` at `time`.
    #[inline]
    pub fn of(self, name: u64, time: Time) -> u16 {
        match self {
            Self::Seeded(seed) => (mix(seed ^ name.wrapping_mul(SPREAD) ^ time.ps()) >> 48) as u16,
            Self::Fixed => 0,
        }
    }
}

/// Spreads names over 64 bits before they are combined with the time (the golden ratio).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Number of events in the sorted array.
const NEAR: usize = 4;

/// An event with its time.
type Entry = (Time, Key);

/// Pending events of a domain.
///
/// Most domains have few, and most of these are short-lived: the end of a transmission, the next packet of a pacer. The
/// next events are in a sorted array in the domain's own memory. The others, such as distant timers, are in a heap.
#[derive(Debug)]
pub struct EventQueue {
    /// Time of the next event, [`Time::MAX`] without one.
    next: Time,
    /// The first `count` are in use, latest first. None of them is later than any in the heap, which is empty if there
    /// are none.
    near: [Entry; NEAR],
    count: usize,
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { next: Time::MAX, near: [(Time::MAX, Key::LAST); NEAR], count: 0, heap: BinaryHeap::new() }
    }
}

impl EventQueue {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time: Time, key: Key) {
        let new = (time, key);
        if self.count > 0 && new > self.near[0] {
            let is_far = self.count == NEAR || self.heap.peek().is_some_and(|first| first.0 < new);
            if is_far {
                self.heap.push(Reverse(new));
                return;
            }
        } else if self.count == NEAR {
            self.heap.push(Reverse(self.near[0]));
            self.near.copy_within(1.., 0);
            self.count -= 1;
        }
        let mut place = self.count.min(NEAR - 1);
        while place > 0 && self.near[place - 1] < new {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = new;
        self.count += 1;
        self.next = self.next.min(time);
    }

    /// The next event.
    #[inline]
    pub fn peek(&self) -> Option<Entry> {
        self.near[..self.count.min(NEAR)].last().copied()
    }

    /// Removes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let next = self.peek()?;
        self.count -= 1;
        if self.count == 0
            && let Some(first) = self.heap.pop()
        {
            self.near[0] = first.0;
            self.count = 1;
        }
        self.next = self.peek().map_or(Time::MAX, |next| next.0);
        Some(next)
    }

    /// Prefetches the next few events.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self.heap.as_slice().as_ptr(), 2);
    }

    /// All pending events, in no order.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let near = self.near[..self.count].iter();
        near.chain(self.heap.iter().map(|entry| &entry.0)).map(|entry| entry.1.event())
    }

    /// Time of the next event, [`Time::MAX`] without one.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_keep_events_and_order(class in 0u8..16, tie: u16, entity in 0u32..1 << 20, payload in 0u32..1 << 24) {
            let event = Event { class, entity, payload };
            prop_assert_eq!(Key::new(event, tie).event(), event);
            if class > 0 {
                let earlier = Event { class: class - 1, entity: (1 << 20) - 1, payload: (1 << 24) - 1 };
                prop_assert!(Key::new(earlier, u16::MAX) < Key::new(event, tie));
            }
        }

        #[test]
        fn pops_in_order(times in proptest::collection::vec(0u64..20, 0..60)) {
            let mut queue = EventQueue::default();
            for (payload, time) in times.iter().enumerate() {
                let event = Event { class: 1, entity: 0, payload: payload as u32 };
                queue.push(Time::from_ps(*time), Key::new(event, TieBreak::Seeded(3).of(1, Time::from_ps(*time))));
            }
            let mut popped = Vec::new();
            while let Some(next) = queue.pop() {
                popped.push(next);
            }
            prop_assert!(popped.is_sorted());
            prop_assert_eq!(popped.len(), times.len());
        }

        /// Against a heap alone, with events that come and go.
        #[test]
        fn is_a_heap(steps in proptest::collection::vec(proptest::option::weighted(0.6, 0u64..30), 0..200)) {
            let (mut queue, mut model) = (EventQueue::default(), BinaryHeap::new());
            for (payload, step) in (0..).zip(steps) {
                if let Some(time) = step {
                    let (time, key) = (Time::from_ps(time), Key::new(Event { class: 1, entity: 0, payload }, 0));
                    queue.push(time, key);
                    model.push(Reverse((time, key)));
                } else {
                    prop_assert_eq!(queue.pop(), model.pop().map(|next| next.0));
                }
                prop_assert_eq!(queue.peek(), model.peek().map(|next| next.0));
                prop_assert_eq!(queue.next_time(), model.peek().map_or(Time::MAX, |next| next.0.0));
                prop_assert_eq!(queue.events().count(), model.len());
            }
        }
    }
}
