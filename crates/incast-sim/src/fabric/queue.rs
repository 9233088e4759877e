//! Egress queues of a switch: lists through one pool of packets, so that a shallow queue stays in cache.

use crate::engine::{
    Message,
    prefetch::{prefetch, prefetch_for_writing},
};
use crate::packet::{Packet, Telemetry};
use incast_cc::agent::Codepoint;
use std::hint::select_unpredictable;

/// Sentinel: entry 0 is a dummy in no queue, which makes linking branch-free. Queue lengths are unpredictable, so a
/// branch on "empty" would often be mispredicted.
const NONE: u32 = 0;
/// Entries to prefetch: about as many as a switch of a busy fabric queues in a window.
const PREFETCHED_ENTRIES: usize = 16;

/// Entries that are added to a pool without free ones.
const GROWTH: usize = 8;

/// One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Entry {
    packet: Packet,
    /// Kept only where flow control or an agent needs it.
    ingress: Ingress,
}

/// Where a packet came into a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// The ingress port, or [`Ingress::NO_PORT`].
    pub port: u16,
    /// The priority on arrival; with virtual channels the packet may leave with another one.
    pub priority: u8,
}

impl Ingress {
    /// The ingress port of packets that the switch itself made.
    pub const NO_PORT: u16 = u16::MAX;
    /// A packet that the switch itself made.
    pub const LOCAL: Self = Self::local(0);

    /// A packet of this priority that the switch itself made.
    #[inline]
    pub const fn local(priority: u8) -> Self {
        Self { port: Self::NO_PORT, priority }
    }

    /// The switch itself made the packet.
    #[inline]
    pub const fn is_local(self) -> bool {
        self.port == Self::NO_PORT
    }
}

/// The packets queued in one switch.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    entries: Vec<Entry>,
    /// The next entry of the same queue. Apart from `entries`: the cache line of a queued packet is cold by then.
    next: Vec<u32>,
    /// Parallel to `entries` where packets carry INT, else empty.
    telemetry: Vec<Telemetry>,
    /// The first `free_count` are those of free entries; the last of these is used next. As long as `entries`, so that
    /// freeing an entry calls nothing.
    free: Vec<u32>,
    free_count: usize,
}

/// The entry of a packet that was just removed from its queue. It keeps its content until the next packet is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    index: u32,
    /// Frame bytes of the packet.
    pub wire: u16,
}

/// One first-in first-out queue.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: u32,
    tail: u32,
    load: Load,
}

/// What waits in a queue: frame bytes in the low 40 bits, packets modulo 2^24 above them. One addition updates both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load(u64);

/// One packet more in a [`Load`].
const PACKET: u64 = 1 << 40;

/// A queue that is limited in packets holds fewer than this: packets are counted modulo this number.
pub const MOST_COUNTED: u32 = 1 << 24;

impl Default for Queue {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, load: Load(0) }
    }
}

impl Load {
    /// Frame bytes, less than 2^40.
    #[inline]
    pub fn bytes(self) -> u64 {
        self.0 & (PACKET - 1)
    }

    /// Packets, modulo [`MOST_COUNTED`].
    #[inline]
    pub fn packets(self) -> u32 {
        (self.0 / PACKET) as u32
    }
}

impl Queue {
    /// What waits in it.
    #[inline]
    pub fn load(&self) -> Load {
        self.load
    }

    /// Queued frame bytes, less than 2^40.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.load.bytes()
    }

    /// Queued packets, modulo [`MOST_COUNTED`].
    #[inline]
    pub fn packets(&self) -> u32 {
        self.load.packets()
    }

    #[inline]
    fn enter(&mut self, wire: u16) {
        self.load.0 = self.load.0.wrapping_add(PACKET + u64::from(wire));
    }

    #[inline]
    fn leave(&mut self, wire: u16) {
        self.load.0 = self.load.0.wrapping_sub(PACKET + u64::from(wire));
    }

    /// The queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl Entry {
    /// Stores a packet with the codepoint `mark` and its attachment.
    #[inline(always)]
    fn store(&mut self, packet: &Packet, mark: Codepoint, attachment: Option<u32>) {
        // Changes are made in place: copying a changed packet would load in one piece what was just stored in parts,
        // which stalls store forwarding.
        self.packet = *packet;
        self.packet.set_attachment(attachment.unwrap_or(Packet::NO_ATTACHMENT));
        if mark != Codepoint::None {
            self.packet.mark_as(mark);
        }
    }
}

impl Pool {
    #[inline]
    fn packet(&self, index: u32) -> Option<&Packet> {
        if index == NONE { None } else { self.entries.get(index as usize).map(|entry| &entry.packet) }
    }

    /// The packet at the head of a queue.
    #[inline]
    pub fn front(&self, queue: &Queue) -> Option<&Packet> {
        self.packet(queue.head)
    }

    /// Prefetches the head of a queue.
    #[inline]
    pub fn prefetch_head(&self, queue: &Queue) {
        prefetch(self.entries.as_ptr().wrapping_add(queue.head as usize), 1);
    }

    /// Prefetches the list of free entries.
    #[inline]
    pub fn prefetch_free(&self) {
        prefetch(self.free.as_ptr().wrapping_add(self.free_count.saturating_sub(PREFETCHED_ENTRIES)), 1);
    }

    /// Prefetches the next free entries for writing.
    #[inline]
    pub fn prefetch_entries(&self) {
        for index in self.free[..self.free_count].iter().rev().take(PREFETCHED_ENTRIES) {
            prefetch_for_writing(self.entries.as_ptr().wrapping_add(*index as usize));
            prefetch_for_writing(self.next.as_ptr().wrapping_add(*index as usize));
        }
    }

    /// Appends a packet to a queue, with the codepoint `mark`.
    #[inline(always)]
    pub fn push(&mut self, queue: &mut Queue, packet: &Packet, mark: Codepoint, telemetry: Option<&Telemetry>) {
        // The copy is in this branch alone. After it the compiler would copy in parts what it has already loaded.
        let index = if let Some(left) = self.free_count.checked_sub(1) {
            self.free_count = left;
            let index = self.free[left];
            self.entries[index as usize].store(packet, mark, telemetry.map(|_| index));
            index
        } else {
            self.grow(packet, mark, telemetry.is_some())
        };
        if let Some(telemetry) = telemetry {
            self.attach(index, telemetry);
        }
        let next = self.next.as_mut_slice();
        next[queue.tail as usize] = index;
        next[index as usize] = NONE;
        queue.head = select_unpredictable(queue.tail == NONE, index, queue.head);
        queue.tail = index;
        queue.enter(packet.wire);
    }

    /// Stores the INT records of an entry's packet. The vector grows on demand: packets from hosts carry none.
    fn attach(&mut self, index: u32, telemetry: &Telemetry) {
        if self.telemetry.len() <= index as usize {
            self.telemetry.resize(index as usize + 1, Telemetry::default());
        }
        self.telemetry[index as usize].assign(telemetry);
    }

    /// Adds entries, of which the last gets a packet.
    #[cold]
    fn grow(&mut self, packet: &Packet, mark: Codepoint, has_telemetry: bool) -> u32 {
        let entry = Entry { packet: *packet, ingress: Ingress::LOCAL };
        // No packet is in the first entry of all: its index is `NONE`.
        let first = self.entries.len().max(1);
        let (index, len) = (first + GROWTH - 1, first + GROWTH);
        self.entries.resize(len, entry);
        self.next.resize(len, NONE);
        self.free.resize(len, NONE);
        (first..index).for_each(|free| self.set_free(free as u32));
        self.entries[index].store(packet, mark, has_telemetry.then_some(index as u32));
        index as u32
    }

    #[inline(always)]
    fn set_free(&mut self, index: u32) {
        self.free[self.free_count] = index;
        self.free_count += 1;
    }

    /// Removes the head of a queue and returns a copy of it.
    #[inline(always)]
    pub fn pop(&mut self, queue: &mut Queue) -> Option<Packet> {
        self.remove(queue).map(|removed| *self.removed(removed))
    }

    /// Removes the head of a queue.
    #[inline(always)]
    pub fn remove(&mut self, queue: &mut Queue) -> Option<Removed> {
        let index = queue.head;
        if index == NONE {
            return None;
        }
        self.set_free(index);
        let next = self.next[index as usize];
        // In a deep queue the next packet has left the cache: prefetch it while this one is sent.
        prefetch(self.entries.as_ptr().wrapping_add(next as usize), 1);
        queue.head = next;
        queue.tail = select_unpredictable(next == NONE, NONE, queue.tail);
        let wire = self.entries[index as usize].packet.wire;
        queue.leave(wire);
        Some(Removed { index, wire })
    }

    /// A packet that was just removed.
    #[inline(always)]
    pub fn removed(&self, removed: Removed) -> &Packet {
        &self.entries[removed.index as usize].packet
    }

    /// The ingress of a packet that was just removed.
    #[inline]
    pub fn ingress(&self, removed: Removed) -> Ingress {
        self.entries[removed.index as usize].ingress
    }

    /// Marks a packet that was just removed.
    pub fn mark_removed(&mut self, removed: Removed, mark: Codepoint) {
        self.entries[removed.index as usize].packet.mark_as(mark);
    }

    /// Replaces the ECMP hash of the packet that was just appended to a queue.
    #[inline(always)]
    pub fn set_ecmp_hash(&mut self, queue: &Queue, hash: u32) {
        self.entries[queue.tail as usize].packet.ecmp_hash = hash;
    }

    /// The packet at the end of a queue.
    #[inline]
    pub fn tail(&self, queue: &Queue) -> Option<&Packet> {
        self.packet(queue.tail)
    }

    /// Puts a packet in the place of the last one of a queue, as [`Self::push`] would after that one had left.
    pub fn replace_tail(&mut self, queue: &mut Queue, packet: &Packet, mark: Codepoint, telemetry: Option<&Telemetry>) {
        let index = queue.tail;
        if index == NONE {
            return;
        }
        let entry = &mut self.entries[index as usize];
        queue.leave(entry.packet.wire);
        queue.enter(packet.wire);
        entry.packet = *packet;
        entry.packet.set_attachment(if telemetry.is_some() { index } else { Packet::NO_ATTACHMENT });
        entry.packet.mark_as(mark);
        if let Some(telemetry) = telemetry {
            self.attach(index, telemetry);
        }
    }

    /// Stores the ingress of the packet that was just appended to a queue. A switch does this for all packets or for
    /// none.
    #[inline]
    pub fn set_ingress(&mut self, queue: &Queue, ingress: Ingress) {
        self.entries[queue.tail as usize].ingress = ingress;
    }

    /// The packets of a queue in order, each with its ingress.
    pub fn packets(&self, queue: &Queue) -> impl Iterator<Item = (&Packet, Ingress)> {
        let existing = |index: u32| (index != NONE).then_some(index);
        let indices = std::iter::successors(existing(queue.head), move |index| existing(self.next[*index as usize]));
        indices.map(|index| &self.entries[index as usize]).map(|entry| (&entry.packet, entry.ingress))
    }

    /// Removes the first packet of a queue that is `wanted`; the others keep their order.
    #[cold]
    pub fn pop_first(&mut self, queue: &mut Queue, wanted: impl Fn(&Packet) -> bool) -> Option<Packet> {
        let (mut before, mut index) = (NONE, queue.head);
        while index != NONE && !wanted(&self.entries[index as usize].packet) {
            (before, index) = (index, self.next[index as usize]);
        }
        if index == NONE || before == NONE {
            return if index == NONE { None } else { self.pop(queue) };
        }
        let packet = self.entries[index as usize].packet;
        self.next[before as usize] = self.next[index as usize];
        if queue.tail == index {
            queue.tail = before;
        }
        queue.leave(packet.wire);
        self.set_free(index);
        Some(packet)
    }

    /// The telemetry of a packet that was just removed.
    #[inline]
    pub fn telemetry(&self, packet: &Packet) -> Option<Telemetry> {
        self.telemetry.get(packet.attachment() as usize).map(Telemetry::duplicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;
    use incast_cc::HopTelemetry;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u16),
        ReplaceTail(u16),
        Pop,
        /// The first whose bytes are a multiple of this.
        PopFirst(u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (64u16..9000).prop_map(Step::Push),
            1 => (64u16..9000).prop_map(Step::ReplaceTail),
            2 => Just(Step::Pop),
            2 => (2u16..4).prop_map(Step::PopFirst),
        ]
    }

    /// Bytes, number, mark, ingress, and the queue length in its INT record.
    type Waiting = (u16, u32, bool, Ingress, Option<u32>);

    fn seen(pool: &Pool, packet: &Packet, ingress: Ingress) -> Waiting {
        let told = pool.telemetry(packet).map(|telemetry| telemetry.hops()[0].queue_bytes);
        (packet.wire, packet.sequence, packet.marked(), ingress, told)
    }

    proptest! {
        #[test]
        fn behaves_like_independent_queues(
            steps in proptest::collection::vec((0usize..3, any::<bool>(), step()), 0..200),
        ) {
            let mut pool = Pool::default();
            let mut queues = [Queue::default(); 3];
            let mut model: [VecDeque<Waiting>; 3] = Default::default();
            for (number, (which, with_telemetry, step)) in (0u32..).zip(steps) {
                let (queue, expected) = (&mut queues[which], &mut model[which]);
                match step {
                    Step::Push(wire) | Step::ReplaceTail(wire) => {
                        let mut packet = Packet::new(Kind::Data, 0, 0, number, 0);
                        packet.wire = wire;
                        packet.set_ecn_capable(true);
                        let is_marked = wire.is_multiple_of(2);
                        let mark = if is_marked { Codepoint::CongestionExperienced } else { Codepoint::None };
                        let mut telemetry = Telemetry::default();
                        telemetry.push(HopTelemetry { queue_bytes: number, ..HopTelemetry::default() });
                        let telemetry = with_telemetry.then_some(&telemetry);
                        let replaces = matches!(step, Step::ReplaceTail(_));
                        if replaces {
                            pool.replace_tail(queue, &packet, mark, telemetry);
                        } else {
                            pool.push(queue, &packet, mark, telemetry);
                        }
                        // In an empty queue there is nothing to replace.
                        if !replaces || expected.pop_back().is_some() {
                            let ingress = Ingress { port: wire ^ 1, priority: (wire % 8) as u8 };
                            pool.set_ingress(queue, ingress);
                            expected.push_back((wire, number, is_marked, ingress, telemetry.map(|_| number)));
                        }
                    }
                    Step::PopFirst(every) => {
                        // Not always the head.
                        let wanted = |packet: &Packet| packet.wire.is_multiple_of(every);
                        let place = expected.iter().position(|waiting| waiting.0.is_multiple_of(every));
                        let popped = pool.pop_first(queue, wanted);
                        let last = Removed { index: pool.free[..pool.free_count].last().copied().unwrap_or(NONE), wire: 0 };
                        let popped = popped.map(|packet| seen(&pool, &packet, pool.ingress(last)));
                        prop_assert_eq!(popped, place.and_then(|place| expected.remove(place)));
                    }
                    Step::Pop => {
                        let popped = pool.remove(queue);
                        let popped =
                            popped.map(|place| seen(&pool, pool.removed(place), pool.ingress(place)));
                        prop_assert_eq!(popped, expected.pop_front());
                    }
                }
                for (queue, expected) in queues.iter().zip(&model) {
                    let waiting = pool.packets(queue).map(|(packet, ingress)| seen(&pool, packet, ingress));
                    prop_assert_eq!(&waiting.collect::<VecDeque<_>>(), expected);
                    let number = |packet: Option<&Packet>| packet.map(|packet| packet.sequence);
                    prop_assert_eq!(number(pool.front(queue)), expected.front().map(|first| first.1));
                    prop_assert_eq!(number(pool.tail(queue)), expected.back().map(|last| last.1));
                    prop_assert_eq!(queue.packets() as usize, expected.len());
                    let bytes = expected.iter().map(|waiting| u64::from(waiting.0));
                    prop_assert_eq!(queue.bytes(), bytes.sum::<u64>());
                    prop_assert_eq!(queue.is_empty(), expected.is_empty());
                }
            }
        }
    }
}
