//! Egress: straight to an idle link, or into a queue. Admission to the memory, marks.

use super::{FULL, Switch};
use crate::{
    config::MarkAt,
    fabric::{
        node::NodeContext,
        packet::{Kind, Packet, Telemetry},
    },
    probe::EventKind,
};
use incast_cc::agent::{Codepoint, Verdict};
use incast_units::Time;

impl Switch<'_> {
    /// Egress where there is an agent that looks at all ports and may choose another one.
    #[inline(never)]
    pub(super) fn enqueue_consulted(
        &mut self,
        port: usize,
        mut packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let origin = self.origin;
        let verdict = self.consult_enqueue(port, &packet, context);
        let port = self.redirect(port, &mut packet, &verdict, context);
        self.origin = origin;
        if verdict.answer {
            self.answer(&packet, context);
        } else if let Some(hold) = verdict.hold {
            self.hold(hold, &packet, telemetry, context);
        } else {
            self.choose_channel(port, &mut packet);
            if packet.kind == Kind::Marker {
                self.enqueue_marker(port, &packet, context);
            } else {
                self.enqueue(port, &packet, telemetry, context);
            }
        }
        self.carry_out(context);
    }

    /// Egress: straight to an idle link, or into a queue.
    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let limit = self.settings.ended_before(now);
        let out = &self.ports[port];
        if self.lazy && out.waiting != 0 && out.link.free_at() < limit {
            self.drain::<FULL>(port, limit, context);
        }
        let out = &self.ports[port];
        let bit = 1u8 << packet.priority;
        if out.link.free_at() < limit
            && out.permission.allowed(out.waiting | bit) == bit
            && out.link.is_up()
            && self.may_spend(port, packet)
        {
            self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(u64::from(packet.wire));
            if self.by_port && !self.is_indifferent(port, 0) {
                self.pass_consulted(port, *packet, telemetry, context);
            } else if self.by_port {
                self.spend(port, packet, context);
                self.put_on_link(port, now, packet, telemetry, context);
            } else {
                self.transmit(port, now, self.origin.port, packet, telemetry, context);
            }
            return;
        }
        if self.by_port {
            let queued = self.queues[self.index(port, packet.priority)].bytes();
            if !self.is_indifferent(port, queued) {
                let verdict = self.consult_enqueue(port, packet, context);
                if !verdict.is_nothing() {
                    return self.wait_judged(port, *packet, &verdict, telemetry, context);
                }
            }
        }
        self.wait(port, packet, telemetry, context);
    }

    /// A packet finds its port idle, and the agent wants to hear of it.
    #[inline(never)]
    fn pass_consulted(
        &mut self,
        port: usize,
        mut packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let (now, origin) = (context.now(), self.origin);
        let verdict = self.consult_enqueue(port, &packet, context);
        debug_assert!(verdict.deflect_to.is_none(), "an agent that acts by port deflects");
        self.obey(port, &mut packet, now, &verdict, context);
        if self.ports[port].link.free_at() < self.settings.ended_before(now) && self.may_spend(port, &packet)
        {
            self.transmit(port, now, origin.port, &packet, telemetry, context);
        } else {
            // A notification took the same way, as it may after routes have changed.
            self.origin = origin;
            self.wait(port, &packet, telemetry, context);
        }
    }

    /// A packet of which an agent wants something has to wait.
    #[inline(never)]
    fn wait_judged(
        &mut self,
        port: usize,
        mut packet: Packet,
        verdict: &Verdict,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        debug_assert!(verdict.deflect_to.is_none(), "an agent that acts by port deflects");
        let origin = self.origin;
        self.obey(port, &mut packet, context.now(), verdict, context);
        self.origin = origin;
        self.wait(port, &packet, telemetry, context);
    }

    /// A packet has to wait.
    #[inline(always)]
    pub(super) fn wait(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let index = self.index(port, packet.priority);
        if !self.ports[port].link.is_up() {
            self.lose(port, packet, context);
            return;
        }
        if self.limited {
            return self.wait_counted(port, packet, telemetry, context);
        }
        if self.admit(port, index, packet, context) {
            self.append(port, packet, telemetry, context);
        } else {
            self.drop_packet(port, packet, context);
        }
    }

    /// A packet has no room.
    #[inline]
    pub(super) fn drop_packet(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        let index = self.index(port, packet.priority);
        self.records[index].drops += 1;
        self.counters.dropped.0 += 1;
        self.counters.dropped.1 += u64::from(packet.wire);
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Drop, packet);
        self.report_drop(port, packet, context);
    }

    /// How a packet is marked as it enters a queue of so many bytes; counts that.
    #[inline(always)]
    pub(super) fn marks_entering(
        &mut self,
        port: usize,
        packet: &Packet,
        queued: u64,
        now: Time,
    ) -> Codepoint {
        if self.settings.switch.mark_at == MarkAt::Enqueue && packet.ecn_capable() {
            let out = &self.ports[port];
            let occupancy = queued + out.link.in_service(now, packet.priority);
            if self.markings[usize::from(out.marking)].mark(occupancy, || self.red[port].uniform()) {
                return self.count_mark(port, packet, now);
            }
        }
        Codepoint::None
    }

    /// Appends a packet to its queue; it has been admitted to the memory.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let index = self.index(port, packet.priority);
        let queued = if self.channels.is_some() {
            self.bytes_of_group(port, packet.priority)
        } else {
            self.queues[index].bytes()
        };
        let mark = self.marks_entering(port, packet, queued, now);
        self.pool.push(&mut self.queues[index], packet, mark, telemetry);
        if self.by_ingress || !self.plain {
            self.pool.set_origin(&self.queues[index], self.origin);
        }
        let Self { ports, busy, counters, .. } = self;
        let length = ports[port].note_waiting(port, packet, now, self.lazy.then_some(busy), counters);
        if !self.lazy {
            self.recorder.queued(now, port as u16, length - u64::from(packet.wire), packet, mark);
            self.block_head(port, packet.priority, context);
            self.plan_departure(port, context);
        }
    }

    /// A packet that has to wait enters the memory; false if there is no room for it.
    #[inline(always)]
    fn admit(&mut self, port: usize, queue: usize, packet: &Packet, context: &mut impl NodeContext) -> bool {
        if self.by_ingress {
            return self.admit_counted(port, queue, packet, context);
        }
        self.admit_by_queue(port, queue, u64::from(packet.wire), context)
    }

    /// Admission by what the queue and the port hold.
    #[inline(always)]
    pub(super) fn admit_by_queue(
        &mut self,
        port: usize,
        queue: usize,
        wire: u64,
        context: &mut impl NodeContext,
    ) -> bool {
        let queued = self.queues[queue].bytes();
        let room = self.memory.admits(wire, queued, self.ports[port].waiting_bytes)
            || self.admits_after_all(port, queue, wire, context);
        if room {
            self.memory.enter(wire, queued);
        }
        room
    }

    /// Whether a packet has room once all departures that are due have happened.
    #[cold]
    fn admits_after_all(
        &mut self,
        port: usize,
        queue: usize,
        wire: u64,
        context: &mut impl NodeContext,
    ) -> bool {
        if !self.lazy {
            return false;
        }
        self.catch_up(context);
        self.memory.admits(wire, self.queues[queue].bytes(), self.ports[port].waiting_bytes)
    }

    /// A packet is about to be marked: counts it, unless it is already, and says with which codepoint.
    #[inline]
    pub(super) fn count_mark(&mut self, port: usize, packet: &Packet, now: Time) -> Codepoint {
        let leads_to_host = self.leads_to_host[port];
        let mark = if leads_to_host && self.settings.classes[usize::from(packet.class)].tells_edge_marks {
            Codepoint::UndeterminedExperienced
        } else {
            Codepoint::CongestionExperienced
        };
        if !packet.marked() && packet.codepoint() != mark {
            let index = self.index(port, packet.priority);
            self.records[index].marks += 1;
            self.counters.marks += 1;
            self.counters.marks_edge += u64::from(leads_to_host);
            self.recorder.packet(now, self.node, port as u16, EventKind::Mark, packet);
        }
        mark
    }

    /// The link of a packet's port is down.
    #[cold]
    pub(super) fn lose(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        self.counters.lost.0 += 1;
        self.counters.lost.1 += u64::from(packet.wire);
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Lost, packet);
        self.report_drop(port, packet, context);
    }
}
