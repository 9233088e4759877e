//! What becomes of a packet that finds its queue full in a switch that trims: it or another packet loses its payload,
//! its header returns to its sender, or it is dropped.

use super::{All, Switch, UNKNOWN};
use crate::{
    fabric::{node::NodeContext, queue::Ingress, trim::HEADERS},
    packet::{Kind, Packet, Telemetry},
    probe::EventKind,
};

impl Switch<'_> {
    /// A packet has no room in its queue.
    #[inline(never)]
    pub(super) fn handle_overflow(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        if packet.is_trimmed() && self.trimming.as_ref().is_some_and(|trimming| trimming.returns()) {
            self.bounce(port, packet, context);
        } else if packet.priority == HEADERS || !self.may_be_trimmed(packet) {
            self.drop_packet(port, packet, ingress, context);
        } else {
            self.trim(port, packet, telemetry, ingress, context);
        }
    }

    fn may_be_trimmed(&self, packet: &Packet) -> bool {
        packet.kind == Kind::Data && self.settings.classes[usize::from(packet.class)].trimmable
    }

    /// A data packet finds its queue full: it is trimmed, or the last one in the queue is and it takes that one's
    /// place.
    fn trim(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let (now, priority) = (context.now(), packet.priority);
        let mut possible = self.may_replace_tail(port, packet);
        if !possible && self.egress.is_lazy() && self.buffer.is_shared() {
            // Departures of other ports that are due may leave room.
            self.catch_up(context);
            possible = self.may_replace_tail(port, packet);
        }
        if !self.trimming.as_mut().is_some_and(|trimming| trimming.takes_tail(possible)) {
            return self.send_trimmed(port, packet, telemetry, ingress, context);
        }
        let Some(tail) = self.egress.tail(port, priority).copied() else { return };
        let before = self.egress.queue_bytes(port, priority) - u64::from(tail.wire);
        self.buffer.leave(u64::from(tail.wire), before);
        self.buffer.enter(u64::from(packet.wire), before);
        let mark = self.mark_entering(port, packet, before, now);
        let Some((old, old_telemetry, length)) = self.egress.replace_tail(port, packet, mark, telemetry, now) else {
            return;
        };
        self.counters.update_max_queue(length);
        self.send_trimmed(port, &old, old_telemetry.as_ref(), ingress, context);
    }

    /// The last packet of a queue may be trimmed, and the arriving one would have room in its place.
    fn may_replace_tail(&self, port: usize, packet: &Packet) -> bool {
        let priority = packet.priority;
        let tail = self.egress.tail(port, priority).filter(|tail| self.may_be_trimmed(tail));
        let (Some(tail), Some(trimming)) = (tail, &self.trimming) else { return false };
        let (freed, wire) = (u64::from(tail.wire), u64::from(packet.wire));
        let before = self.egress.queue_bytes(port, priority) - freed;
        let mut buffer = self.buffer;
        buffer.leave(freed, before);
        let waiting = self.egress.port(port).waiting_bytes - freed;
        let packets = self.egress.queue_packets(port, priority) - 1;
        trimming.limit(priority).admits(wire, packets, before)
            && buffer.admits(wire, before, waiting, || self.egress.packets_at(port) - 1)
    }

    /// Cuts off the payload of a packet that is not queued. Its header goes on; a short packet goes on whole.
    fn send_trimmed(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let Some(trimming) = &self.trimming else { return };
        let least = self.settings.classes[usize::from(packet.class)].format.data(0) as u16;
        let Some(wire) = trimming.remainder(packet.wire, least) else {
            let mut whole = *packet;
            whole.priority = HEADERS;
            return self.enqueue_apart(port, &whole, telemetry, ingress, context);
        };
        let header = packet.trimmed(wire);
        self.egress.record(port, packet.priority).trims += 1;
        self.counters.trimmed.0 += 1;
        self.counters.trimmed.1 += u64::from(packet.wire - header.wire);
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Trim, packet);
        self.enqueue_apart(port, &header, telemetry, ingress, context);
    }

    /// Returns a header to its sender. That happens once for each: on its way back it is like any packet.
    #[cold]
    fn bounce(&mut self, port: usize, header: &Packet, context: &mut impl NodeContext) {
        self.counters.bounces += 1;
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Bounce, header);
        let packet = header.bounced();
        self.forward::<All>(&packet, None, Ingress::local(packet.priority), UNKNOWN, context);
    }
}
