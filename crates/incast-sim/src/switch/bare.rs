//! Ingress and egress of a switch that only forwards, by hashes: nobody has to be asked about anything, so that a
//! packet's way through it is one piece.

use super::{BARE, Switch};
use crate::{
    engine::prefetch::prefetch,
    fabric::{
        node::{Arrivals, NodeContext},
        packet::Packet,
    },
    probe::EventKind,
};
use incast_units::Time;

impl Switch<'_> {
    /// Packets arrived, each at its port.
    #[inline(never)]
    pub(super) fn arrive_bare_all<'p>(&mut self, arrivals: &mut impl Arrivals<'p>) {
        // While a packet is dealt with, the port of the next one comes into the cache.
        let mut ahead = arrivals.peek().and_then(|next| self.port_by_hash(next));
        while let Some((ingress, packet, _)) = arrivals.next() {
            let port = ahead;
            debug_assert_eq!(port, self.port_by_hash(packet), "routes do not change between arrivals");
            ahead = arrivals.peek().and_then(|next| self.port_by_hash(next));
            if let Some(port) = ahead {
                prefetch(self.ports.as_ptr().wrapping_add(usize::from(port)), 1);
            }
            self.arrive_bare(ingress, packet, port, arrivals.context());
        }
    }

    /// A packet arrived at `ingress`.
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
        if self.go_at_once::<BARE>(port, packet, packet.entropy, context) {
            return;
        }
        let index = self.index(port, packet.priority);
        let wire = u64::from(packet.wire);
        let (out, queued) = (&self.ports[port], self.queues[index].bytes());
        if !out.link.is_up() || !self.memory.admits(wire, queued, out.waiting_bytes) {
            return self.wait(port, packet, None, context);
        }
        self.memory.enter(wire, queued);
        let mark = self.marks_entering(port, packet, queued, now);
        self.pool.push(&mut self.queues[index], packet, mark, None);
        let Self { ports, busy, counters, .. } = self;
        ports[port].note_waiting(port, packet, now, Some(busy), counters);
    }

    /// Egress of a packet that finds nothing before it and its link free: it goes, or is lost on the wire. False
    /// where it has to wait.
    #[inline(always)]
    pub(super) fn go_at_once<const WAY: u8>(
        &mut self,
        port: usize,
        packet: &Packet,
        entropy: u32,
        context: &mut impl NodeContext,
    ) -> bool {
        let now = context.now();
        let mut out = &mut self.ports[port];
        debug_assert!(
            out.permission.is_clear(),
            "nobody may pause a switch that does not ask for permission"
        );
        if !out.link.idle(now) {
            return false;
        }
        if out.waiting != 0 {
            self.drain::<WAY>(port, now + Time::from_ps(1), context);
            out = &mut self.ports[port];
        }
        // As no priority is paused, what waited has gone, or the link is busy with it.
        if !out.link.idle(now) || !out.link.is_up() {
            return false;
        }
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(u64::from(packet.wire));
        if WAY == BARE {
            if !out.link.send(now, packet, None, context) {
                self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
            }
        } else if !out.link.send_with_entropy(now, packet, entropy, context) {
            let packet = packet.with_entropy(entropy);
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, &packet);
        }
        true
    }
}
