//! Departure: the link is free, the head of the highest priority that may send goes. Marks, telemetry, the link.

use super::{BARE, FULL, Switch, TRIMS, Way};
use crate::{
    config::MarkAt,
    engine::Event,
    fabric::{
        node::NodeContext,
        packet::{Kind, Packet, Telemetry},
        queue::Origin,
    },
    probe::EventKind,
};
use incast_cc::feedback::HopTelemetry;
use incast_units::Time;

impl Switch<'_> {
    /// Lets all ports catch up. Returns when the next packet leaves.
    pub fn finish_window(&mut self, limit: Time, context: &mut impl NodeContext) -> Time {
        let (mut next, mut from) = (Time::MAX, 0);
        while let Some(port) = self.busy.first_from(from) {
            from = port + 1;
            if self.way == Way::Bare {
                self.drain::<BARE>(port, limit, context);
            } else {
                self.drain_otherwise(port, limit, context);
            }
            let out = &self.ports[port];
            if out.permission.allowed(out.waiting) != 0 {
                next = next.min(out.link.free_at());
            }
            if out.waiting == 0 {
                self.busy.remove(port);
            }
        }
        next
    }

    #[inline(never)]
    fn drain_otherwise(&mut self, port: usize, limit: Time, context: &mut impl NodeContext) {
        if self.way == Way::Trims {
            self.drain::<TRIMS>(port, limit, context);
        } else {
            self.drain::<FULL>(port, limit, context);
        }
    }

    /// Lets everything leave a port that leaves before `limit`.
    ///
    /// An event for each departure would double the events of a loaded fabric. Where a switch has its domain to
    /// itself and nobody watches departures, only three things can see whether one has happened: the next packet for
    /// the same port, a packet that finds no room in the shared memory, and the end of the window, after which what
    /// left must be on its way. Each of these catches up first, so the results are those of one event for each.
    #[inline]
    pub(super) fn drain<const WAY: u8>(&mut self, port: usize, limit: Time, context: &mut impl NodeContext) {
        loop {
            let out = &self.ports[port];
            let at = out.link.free_at();
            if at >= limit || out.permission.allowed(out.waiting) == 0 {
                return;
            }
            if WAY == FULL {
                self.depart(port, at, context);
            } else {
                self.pass_on::<WAY>(port, at, context);
            }
        }
    }

    /// Dequeue where nobody has to be asked: the packet goes straight from its place in the queue to the link.
    #[inline(always)]
    fn pass_on<const WAY: u8>(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        let ports = self.ports.len();
        let out = &mut self.ports[port];
        let allowed = out.permission.allowed(out.waiting);
        let priority = match &mut self.trimming {
            Some(trimming) if WAY == TRIMS && !allowed.is_power_of_two() => trimming.next(port, allowed),
            _ => allowed.trailing_zeros() as u8,
        };
        let queue = &mut self.queues[usize::from(priority) * ports + port];
        let Some(mut packet) = self.pool.pop_in_place(queue) else { return };
        let left = queue.bytes();
        out.waiting_bytes -= u64::from(packet.wire);
        if queue.is_empty() {
            out.waiting &= !(1 << priority);
        }
        self.memory.leave(u64::from(packet.wire), left);
        if self.settings.switch.mark_at == MarkAt::Dequeue
            && packet.ecn_capable()
            && self.markings[usize::from(out.marking)].mark(left, || self.red[port].uniform())
        {
            let unmarked = *packet;
            let mark = self.count_mark(port, &unmarked, now);
            let Some(marked) = self.pool.mark_removed(mark) else { return };
            packet = marked;
        }
        if !self.ports[port].link.send(now, packet, None, context) {
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
        }
    }

    /// Sees to it that a port with something to send is looked at when its link is free.
    #[inline]
    pub(super) fn plan_departure(&mut self, port: usize, context: &mut impl NodeContext) {
        let out = &mut self.ports[port];
        if !out.departure && (out.notice || out.answers || out.permission.allowed(out.waiting) != 0) {
            out.departure = true;
            let at = out.link.free_at().max(context.now());
            let (entity, payload) = (self.base + port as u32, self.epoch());
            context.schedule(at, Event { class: self.settings.departure(), entity, payload });
        }
    }

    /// A departure event.
    pub(super) fn on_departure(&mut self, port: usize, epoch: u32, context: &mut impl NodeContext) {
        if self.lazy || epoch != self.epoch() {
            // Planned before departures were lazy for a while.
            return;
        }
        let now = context.now();
        self.ports[port].departure = false;
        let out = &self.ports[port];
        if out.link.idle(now) {
            if out.notice {
                self.send_waiting_notice(port, context);
            } else if out.answers {
                self.send_waiting_answer(port, context);
            } else if out.permission.allowed(out.waiting) != 0 {
                self.depart(port, now, context);
            }
        }
        self.plan_departure(port, context);
        self.relax();
    }

    /// Dequeue: the link is free at `now`, the highest waiting priority that may send goes.
    #[inline]
    pub(super) fn depart(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        let out = &mut self.ports[port];
        let allowed = out.permission.allowed(out.waiting);
        let priority = match &mut self.trimming {
            Some(trimming) => trimming.next(port, allowed),
            None => match &mut self.channels {
                Some(channels) => channels.next(port, allowed),
                None => allowed.trailing_zeros() as u8,
            },
        };
        let index = usize::from(priority) * self.ports.len() + port;
        let queue = &mut self.queues[index];
        let Some(mut packet) = self.pool.pop(queue) else { return };
        let left = queue.bytes();
        let origin = if !self.by_ingress && self.plain { Origin::HERE } else { self.pool.origin() };
        if !self.by_ingress {
            self.memory.leave(u64::from(packet.wire), left);
        } else {
            self.release(origin, &packet, left);
        }
        let out = &mut self.ports[port];
        out.waiting_bytes -= u64::from(packet.wire);
        if self.queues[index].is_empty() {
            out.waiting &= !(1 << priority);
        }
        if self.settings.switch.mark_at == MarkAt::Dequeue && packet.ecn_capable() {
            let marking = usize::from(out.marking);
            let left = if self.channels.is_some() { self.bytes_of_group(port, priority) } else { left };
            if self.markings[marking].mark(left, || self.red[port].uniform()) {
                let mark = self.count_mark(port, &packet, now);
                packet.mark_as(mark);
            }
        }
        let telemetry = self.pool.telemetry(&packet);
        self.transmit(port, now, origin.port, &packet, telemetry.as_ref(), context);
        if self.by_ingress && !self.lazy {
            self.reconsider(origin, context);
        }
    }

    /// The packet leaves: agents first, then the link.
    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        port: usize,
        now: Time,
        ingress: u16,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.spend(port, packet, context);
        if self.plain || self.is_indifferent(port, 0) {
            return self.put_on_link(port, now, packet, telemetry, context);
        }
        let verdict = self.consult_dequeue(port, now, ingress, packet, context);
        if verdict.is_nothing() {
            self.put_on_link(port, now, packet, telemetry, context);
        } else {
            let mut packet = *packet;
            self.obey(port, &mut packet, now, &verdict, context);
            self.put_on_link(port, now, &packet, telemetry, context);
        }
    }

    /// Telemetry, then the link.
    #[inline(always)]
    pub(super) fn put_on_link(
        &mut self,
        port: usize,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if !self.sent_by_priority.is_empty() {
            let index = self.index(port, packet.priority);
            self.sent_by_priority[index] += u64::from(packet.wire);
        }
        let out = &mut self.ports[port];
        if self.settings.switch.telemetry && packet.kind == Kind::Data {
            let mut telemetry = telemetry.map_or_else(Telemetry::default, Telemetry::duplicate);
            telemetry.push(HopTelemetry {
                time: now,
                sent_bytes: out.link.sent_bytes(),
                queue_bytes: u32::try_from(out.waiting_bytes).unwrap_or(u32::MAX),
                rate_mbps: u32::try_from(out.link.rate().bps() / 1_000_000).unwrap_or(u32::MAX),
            });
            if !out.link.send(now, packet, Some(&telemetry), context) {
                self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
            }
        } else if !out.link.send(now, packet, telemetry, context) {
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
        }
    }
}
