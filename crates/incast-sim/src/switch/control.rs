//! Pause frames, credits and link changes of a switch.

use super::{All, LINK_UP, NEW_EPOCH, Switch};
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class, pause},
        queue::Ingress,
    },
    flow_control::{Due, Effect},
    packet::{Kind, Packet},
    probe::{EventKind, PauseCause},
};
use incast_units::Time;

impl Switch<'_> {
    // ---- What flow control advertises -------------------------------------------------------------------------

    /// A packet of this ingress has left, or with credits has arrived: its neighbour may have to be sent a resume
    /// or credits.
    #[inline]
    pub(super) fn update_neighbour(&mut self, ingress: Ingress, context: &mut impl NodeContext) {
        if self.flow_control.counts(ingress) {
            let port = usize::from(ingress.port);
            let is_up = self.egress.port(port).link.is_up();
            if self.flow_control.must_resume(ingress, self.buffer.level(), is_up) {
                self.announce(port, context);
            }
        }
    }

    /// Sends the frame of flow control that is due at a port now, or when the link is free.
    pub(super) fn announce(&mut self, port: usize, context: &mut impl NodeContext) {
        let due = self.flow_control.due(port, context.now());
        let out = self.egress.port_mut(port);
        match due {
            _ if !out.link.is_up() => out.frame_waits = false,
            Due::No => out.frame_waits = false,
            Due::IfWaiting => {}
            Due::Now => self.send_frame_when_idle(port, context),
        }
    }

    /// Sends a frame of flow control now, or when the link of the port is idle.
    pub(super) fn send_frame_when_idle(&mut self, port: usize, context: &mut impl NodeContext) {
        if self.is_idle(port, context.now()) {
            self.send_frame(port, context);
        } else {
            self.egress.port_mut(port).frame_waits = true;
            self.plan_departure(port, context);
        }
    }

    /// Puts a frame of flow control on the idle link of a port, if there is something to advertise.
    pub(super) fn send_frame(&mut self, port: usize, context: &mut impl NodeContext) {
        let now = context.now();
        let frame = self.flow_control.take_frame(port, self.node, now);
        self.egress.port_mut(port).frame_waits = frame.is_some_and(|frame| frame.more);
        let Some(frame) = frame else { return };
        if let Some(at) = frame.refresh {
            self.schedule_pause(port, at, pause::REFRESH, context);
        }
        self.send_control(port, &frame.packet, context);
        if frame.more {
            self.plan_departure(port, context);
        }
    }

    /// Sends a control packet that was made here on an idle link.
    pub(super) fn send_control(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        self.counters.created_bytes += u64::from(packet.wire);
        if !self.egress.port_mut(port).link.send(now, packet, None, context) {
            self.record_lost::<All>(port, packet.into(), now);
        }
    }

    fn schedule_pause(&self, port: usize, at: Time, payload: u32, context: &mut impl NodeContext) {
        context.schedule(at, Event { class: class::PAUSE, entity: self.base + port as u32, payload });
    }

    /// Records why the ingress of a packet that is about to be queued at `port` is paused.
    #[cold]
    pub(super) fn record_pause_cause(&mut self, port: usize, packet: &Packet, ingress: Ingress, time: Time) {
        let held = |egress: usize| {
            let queues = self.channel_group(ingress.priority);
            let packets = queues.flat_map(|queue| self.egress.packets(egress, queue));
            let own = packets.filter(|(_, from)| *from == ingress).map(|(packet, _)| u64::from(packet.wire));
            own.sum::<u64>() + if egress == port { u64::from(packet.wire) } else { 0 }
        };
        // The lowest port of those that hold most.
        let egress = (0..self.egress.ports().len()).rev().max_by_key(|egress| held(*egress)).unwrap_or(port);
        let egress_paused = self.egress.port(egress).permission.allowed(1 << ingress.priority) == 0;
        let (node, egress) = (self.node, egress as u16);
        self.recorder.causes.push(PauseCause {
            time,
            node,
            ingress: ingress.port,
            priority: ingress.priority,
            egress,
            egress_paused,
            root: (node, egress),
        });
    }

    /// The queues that are virtual channels of one priority with this one.
    fn channel_group(&self, queue: u8) -> std::ops::Range<u8> {
        self.channels.as_ref().map_or(queue..queue + 1, |channels| channels.group(queue))
    }

    // ---- What flow control receives ---------------------------------------------------------------------------

    /// A frame that concerns a link, and is not routed, arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn on_link_frame(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        self.counters.consumed_bytes += u64::from(packet.wire);
        match packet.kind {
            Kind::MarkerAck => self.on_answer(packet, context),
            Kind::Isolation => self.on_isolation(port, packet, context),
            _ => {
                let effect = self.flow_control.on_frame(port, packet, context.now());
                self.carry_out(port, effect, context);
            }
        }
    }

    /// An event of flow control has come.
    #[cold]
    pub(super) fn on_pause_event(&mut self, port: usize, payload: u32, context: &mut impl NodeContext) {
        let is_up = self.egress.port(port).link.is_up();
        let effect = self.flow_control.on_event(port, payload, is_up, context.now());
        self.carry_out(port, effect, context);
    }

    /// Does at a port what flow control has decided.
    fn carry_out(&mut self, port: usize, effect: Effect, context: &mut impl NodeContext) {
        if let Some((at, payload)) = effect.event {
            self.schedule_pause(port, at, payload, context);
        }
        if effect.pause != 0 {
            self.pause(port, effect.pause, context);
        }
        if effect.resume != 0 {
            self.resume(port, effect.resume, context);
        }
        if effect.has_frame && self.egress.port(port).link.is_up() {
            self.send_frame_when_idle(port, context);
        }
    }

    /// Forbids a port to send the priorities of `mask`.
    fn pause(&mut self, port: usize, mask: u8, context: &mut impl NodeContext) {
        self.depart_until_now(port, context);
        let paused = self.egress.pause(port, mask, context.now());
        self.report_edges(port, paused, EventKind::Pause, context);
    }

    /// Allows a port to send the priorities of `mask` again.
    fn resume(&mut self, port: usize, mask: u8, context: &mut impl NodeContext) {
        let now = context.now();
        self.depart_until_now(port, context);
        let resumed = self.egress.resume(port, mask, now);
        self.report_edges(port, resumed, EventKind::Resume, context);
        let allowed = self.egress.port(port).allowed();
        if allowed != 0 && self.is_idle(port, now) {
            self.depart::<All>(port, allowed, now, context);
        }
        if !self.egress.is_lazy() {
            self.plan_departure(port, context);
            self.relax();
        }
    }

    /// Lazy departures of a port happen until now, as it was permitted to send until now.
    fn depart_until_now(&mut self, port: usize, context: &mut impl NodeContext) {
        if self.egress.is_lazy() {
            self.drain::<All>(port, self.settings.ended_before(context.now()), context);
        }
    }

    fn report_edges(&mut self, port: usize, priorities: u8, kind: EventKind, context: &mut impl NodeContext) {
        if !self.agent.is_none() {
            self.agent_on_edges(port, priorities, kind == EventKind::Pause, context);
        }
        self.recorder.edges(context.now(), self.node, port as u16, priorities, kind);
    }

    // ---- Credits ----------------------------------------------------------------------------------------------

    /// The other end of a port's link has room for a packet.
    #[inline(always)]
    pub(super) fn has_credits<F: super::Features>(&self, port: usize, packet: &Packet) -> bool {
        !F::FLOW_CONTROL || self.flow_control.may_send(port, packet.priority, packet.wire)
    }

    /// A packet leaves by a port.
    #[inline(always)]
    pub(super) fn spend_credits(&mut self, port: usize, lane: u8, wire: u16, context: &mut impl NodeContext) {
        if self.flow_control.uses_credits() {
            self.after_spending(port, lane, wire, context);
        }
    }

    #[inline(never)]
    fn after_spending(&mut self, port: usize, lane: u8, wire: u16, context: &mut impl NodeContext) {
        let effect = self.flow_control.on_departure(port, lane, wire, context.now());
        self.carry_out(port, effect, context);
        self.block_head(port, lane, context);
    }

    /// Blocks a queue whose head lacks credits, until they arrive.
    #[inline]
    pub(super) fn block_head(&mut self, port: usize, lane: u8, context: &mut impl NodeContext) {
        if self.flow_control.uses_credits()
            && let Some(head) = self.egress.front(port, lane)
            && self.flow_control.block(port, lane, head.wire, context.now())
        {
            self.pause(port, 1 << lane, context);
        }
    }

    // ---- Links ------------------------------------------------------------------------------------------------

    /// A cable went down or came up somewhere: `payload` is `NEW_EPOCH` for a new table, else the port's new state.
    #[cold]
    pub(super) fn on_link(&mut self, port: usize, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            if self.router.next_epoch() {
                self.on_new_routes(context);
            }
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.drain::<All>(port, now, context);
        self.egress.port_mut(port).link.switch(up);
        self.inputs[port].switch(now, up);
        if !up {
            // Queued packets are lost here; what is on the link is lost at its far end.
            while let Some(departure) = self.egress.flush(port) {
                let (packet, ingress) = (*self.egress.taken(&departure), self.egress.ingress(&departure));
                self.release::<All>(ingress, u64::from(packet.wire), departure.left);
                self.lose(port, &packet, ingress, context);
                self.update_neighbour(ingress, context);
            }
            self.egress.port_mut(port).messages_wait = false;
            if let Some(hold) = &mut self.hold {
                hold.forget_messages(port);
            }
        }
        self.egress.port_mut(port).frame_waits = false;
        let effect = self.flow_control.reset(port, up, now);
        self.carry_out(port, effect, context);
    }
}
