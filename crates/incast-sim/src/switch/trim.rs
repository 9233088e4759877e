//! Egress where queues are limited in packets: trimming, and memories of so many packets.

use super::{Switch, TRIMS};
use crate::{
    config::Buffer,
    engine::Message,
    fabric::{
        node::{Arrivals, NodeContext},
        packet::{Kind, Packet, Telemetry},
        queue::MADE_HERE,
        trim::HEADERS,
    },
    probe::EventKind,
};
use incast_cc::agent::Codepoint;

impl Switch<'_> {
    /// Packets arrived, each at its port.
    #[inline(never)]
    pub(super) fn arrive_trimming_all<'p>(&mut self, arrivals: &mut impl Arrivals<'p>) {
        while let Some((ingress, packet, _)) = arrivals.next() {
            self.arrive_trimming(ingress, packet, arrivals.context());
        }
    }

    /// Ingress and egress of a switch that trims and does little else, in one piece: what changes of a packet on its
    /// way is written only where it comes to lie.
    #[inline(always)]
    fn arrive_trimming(&mut self, ingress: usize, packet: &Packet, context: &mut impl NodeContext) {
        debug_assert_eq!(
            packet.attachment(),
            Packet::NO_ATTACHMENT,
            "only switches with telemetry attach any"
        );
        let now = context.now();
        self.counters.arrived += 1;
        if !self.inputs[ingress].accept(now, packet, || &self.ports[ingress].link) {
            self.recorder.packet(now, self.node, ingress as u16, EventKind::Lost, packet);
            return;
        }
        let Some((port, entropy)) = self.way_of(packet) else { return self.lose_unrouted(packet, now) };
        let port = usize::from(port);
        if self.go_at_once::<TRIMS>(port, packet, entropy, context) {
            return;
        }
        let (index, wire) = (self.index(port, packet.priority), u64::from(packet.wire));
        let Self { ports, queues, pool, memory, busy, counters, .. } = self;
        let (out, queue) = (&mut ports[port], &mut queues[index]);
        let limit = self.trimming.as_ref().map(|trimming| trimming.limit(packet.priority));
        let has_room = limit.is_none_or(|limit| limit.admits(wire, queue.packets(), queue.bytes()))
            && memory.admits(wire, queue.bytes(), out.waiting_bytes);
        if !has_room || packet.ecn_capable() || self.most.is_some() || !out.link.is_up() {
            return self.wait_or_make_do(port, packet, entropy, context);
        }
        // As in `append`, with less to ask.
        memory.enter(wire, queue.bytes());
        pool.push(queue, packet, Codepoint::None, None);
        pool.set_entropy(queue, entropy);
        out.note_waiting(port, packet, now, Some(busy), counters);
    }

    /// A packet has to wait, and there is more to ask than whether there is room in its queue, or there is none.
    #[inline(never)]
    fn wait_or_make_do(
        &mut self,
        port: usize,
        packet: &Packet,
        entropy: u32,
        context: &mut impl NodeContext,
    ) {
        let (index, wire) = (self.index(port, packet.priority), u64::from(packet.wire));
        if self.ports[port].link.is_up()
            && self.has_place(port, index, packet)
            && self.admit_by_queue(port, index, wire, context)
        {
            self.append(port, packet, None, context);
            self.pool.set_entropy(&self.queues[index], entropy);
        } else {
            let packet = packet.with_entropy(entropy);
            self.make_do(port, &packet, None, context);
        }
    }

    /// A packet has to wait: where it has no room, it or another one is trimmed, sent back, or dropped.
    #[inline(never)]
    pub(super) fn wait_counted(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let index = self.index(port, packet.priority);
        let wire = u64::from(packet.wire);
        if self.has_place(port, index, packet) && self.admit_by_queue(port, index, wire, context) {
            self.append(port, packet, telemetry, context);
        } else {
            self.make_do(port, packet, telemetry, context);
        }
    }

    /// A packet has no room as it is.
    #[inline(never)]
    fn make_do(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if !self.ports[port].link.is_up() {
            self.lose(port, packet, context);
        } else if packet.is_trimmed() && self.trimming.as_ref().is_some_and(|trimming| trimming.returns()) {
            self.bounce(port, packet, context);
        } else if packet.priority == HEADERS || !self.may_be_trimmed(packet) {
            self.drop_packet(port, packet, context);
        } else {
            self.trim_one(port, packet, telemetry, context);
        }
    }

    /// The limits of queue and port let a packet in, apart from the memory.
    #[inline(always)]
    fn has_place(&self, port: usize, queue: usize, packet: &Packet) -> bool {
        let limit = self.trimming.as_ref().map(|trimming| trimming.limit(packet.priority));
        let (wire, waiting) = (u64::from(packet.wire), &self.queues[queue]);
        limit.is_none_or(|limit| limit.admits(wire, waiting.packets(), waiting.bytes()))
            && self.most.is_none_or(|most| self.packets_at(port) < most)
    }

    /// Packets that wait at a port.
    fn packets_at(&self, port: usize) -> u32 {
        (0..self.priorities).map(|priority| self.queues[self.index(port, priority as u8)].packets()).sum()
    }

    fn may_be_trimmed(&self, packet: &Packet) -> bool {
        let class = &self.settings.classes[usize::from(packet.class)];
        self.trimming.is_some() && packet.kind == Kind::Data && class.trimmable
    }

    /// A data packet has no room: it is trimmed, or the last one in its queue is and it takes that one's place.
    fn trim_one(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let index = self.index(port, packet.priority);
        let mut possible = self.may_replace_tail(port, index, packet);
        if !possible && self.lazy && matches!(self.settings.switch.buffer, Buffer::Shared { .. }) {
            // Departures that are put off at other ports may have left room.
            self.catch_up(context);
            possible = self.may_replace_tail(port, index, packet);
        }
        let takes_tail = self.trimming.as_mut().is_some_and(|trimming| trimming.takes_tail(possible));
        if !takes_tail {
            return self.send_trimmed(port, packet, telemetry, context);
        }
        let (old, new) = (self.pool.tail(&self.queues[index]).copied(), u64::from(packet.wire));
        let Some(old) = old else { return };
        let old_telemetry = self.pool.telemetry(&old);
        let before = self.queues[index].bytes() - u64::from(old.wire);
        self.memory.leave(u64::from(old.wire), before);
        self.memory.enter(new, before);
        self.ports[port].waiting_bytes = self.ports[port].waiting_bytes - u64::from(old.wire) + new;
        let mark = self.marks_entering(port, packet, before, context.now());
        self.pool.replace_tail(&mut self.queues[index], packet, mark, telemetry);
        let out = &self.ports[port];
        let length = out.waiting_bytes + out.link.in_service_any(context.now());
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(length);
        self.send_trimmed(port, &old, old_telemetry.as_ref(), context);
    }

    /// The last packet of a queue may be trimmed, and what arrives would have room in its place.
    fn may_replace_tail(&self, port: usize, queue: usize, packet: &Packet) -> bool {
        let Some(tail) = self.pool.tail(&self.queues[queue]).filter(|tail| self.may_be_trimmed(tail)) else {
            return false;
        };
        let Some(trimming) = &self.trimming else { return false };
        let (freed, wire) = (u64::from(tail.wire), u64::from(packet.wire));
        let before = self.queues[queue].bytes() - freed;
        let mut memory = self.memory;
        memory.leave(freed, before);
        trimming.limit(packet.priority).admits(wire, self.queues[queue].packets() - 1, before)
            && memory.admits(wire, before, self.ports[port].waiting_bytes - freed)
    }

    /// Cuts off the payload of a packet that does not wait here any more, or never did. Its header goes on.
    fn send_trimmed(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let format = &self.settings.classes[usize::from(packet.class)].format;
        let header = packet.trimmed(format.data(0) as u16);
        let index = self.index(port, packet.priority);
        self.records[index].trims += 1;
        self.counters.trimmed.0 += 1;
        self.counters.trimmed.1 += u64::from(packet.wire - header.wire);
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Trim, packet);
        self.enqueue(port, &header, telemetry, context);
    }

    /// Sends a header back to its sender. That is once for each: the way back has no other rules than that of any
    /// packet.
    #[cold]
    fn bounce(&mut self, port: usize, header: &Packet, context: &mut impl NodeContext) {
        self.counters.bounces += 1;
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Bounce, header);
        self.forward(MADE_HERE, &header.bounced(), None, context);
    }
}
