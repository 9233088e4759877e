//! Ingress and egress of a switch that only forwards, by hashes: nobody has to be asked about anything, so that a packet's way
//! through it is one piece.

use super::{BARE, Switch};
use crate::{
    engine::prefetch::prefetch,
    fabric::{
        node::{Arrivals, NodeContext},
        packet::Packet,
        routing,
    },
    probe::EventKind,
};
use incast_units::Time;

impl Switch<'_> {
    /// Packets arrived, each at its port.
    #[inline(never)]
    pub(super) fn arrive_bare_all<'p>(&mut self, arrivals: &mut impl Arrivals<'p>) {
        // While a packet is dealt with, the port of the next one comes into the cache.
        let mut port = arrivals.peek().and_then(|next| self.port_by_hash(next));
        while let Some((ingress, packet, _)) = arrivals.next() {
            let own = port;
            port = arrivals.peek().and_then(|next| self.port_by_hash(next));
            prefetch(self.ports.as_ptr().wrapping_add(usize::from(port.unwrap_or(0))), 1);
            self.arrive_bare(ingress, packet, own, arrivals.context());
        }
    }

    /// The port that a packet takes.
    #[inline(always)]
    fn port_by_hash(&self, packet: &Packet) -> Option<u16> {
        self.rule.pick(packet.destination, routing::entropy(packet.entropy, self.salt))
    }

    /// A packet arrived at `ingress`.
    #[inline(never)]
    pub(super) fn arrive_bare_one(
        &mut self,
        ingress: usize,
        packet: &Packet,
        context: &mut impl NodeContext,
    ) {
        self.arrive_bare(ingress, packet, self.port_by_hash(packet), context);
    }

    #[inline(always)]
    fn arrive_bare(
        &mut self,
        ingress: usize,
        packet: &Packet,
        port: Option<u16>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        self.counters.arrived += 1;
        if !self.inputs[ingress].accept(now, packet, || &self.ports[ingress].link) {
            self.recorder.packet(now, self.node, ingress as u16, EventKind::Lost, packet);
            return;
        }
        let Some(port) = port else { return self.lose_unrouted(packet, now) };
        let port = usize::from(port);
        let mut out = &mut self.ports[port];
        if out.link.idle(now) {
            if out.waiting != 0 {
                self.drain::<BARE>(port, now + Time::from_ps(1), context);
                out = &mut self.ports[port];
            }
            // Nothing holds anything back here: what waited has gone, or the link is busy with it.
            if out.link.idle(now) && out.link.is_up() {
                self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(u64::from(packet.wire));
                if !out.link.send(now, packet, None, context) {
                    self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
                }
                return;
            }
        }
        let index = self.index(port, packet.priority);
        let wire = u64::from(packet.wire);
        let (out, queued) = (&self.ports[port], self.queues[index].bytes());
        if !out.link.is_up() || !self.memory.admits(wire, queued, out.waiting_bytes) {
            return self.wait(port, packet, None, context);
        }
        self.memory.enter(wire, queued);
        let mark = self.marks_entering(port, packet, queued, now);
        let out = &mut self.ports[port];
        self.pool.push(&mut self.queues[index], packet, mark, None);
        if !out.departure {
            out.departure = true;
            self.busy.push(port as u16);
        }
        out.waiting |= 1 << packet.priority;
        out.waiting_bytes += wire;
        let length = out.waiting_bytes + out.link.in_service_any(now);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(length);
    }
}
