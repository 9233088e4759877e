//! Sender: which flow's packet goes next, when its law, its pace, the underlay and the NIC let it.

use super::{
    Host,
    sending::{SendFlow, Turn},
    timeout::plan_timer,
    underlay::clock_error,
};
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
    },
    probe::EventKind,
};
use incast_cc::sender::SendOrder;
use incast_units::Time;

impl Host<'_> {
    /// Lets a flow stand in the NIC's line, or wait for its time.
    #[inline]
    pub(super) fn offer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        let timer = flow.law.next_timer();
        if timer < flow.law_event {
            // A timer that has passed comes at once.
            flow.law_event = timer.max(context.now());
            let event = Event { class: class::LAW, entity: self.base, payload: slot };
            context.schedule(flow.law_event, event);
        }
        if flow.queued {
            plan_timer(flow, slot, self.base, context);
            return;
        }
        // Asking may hand packets to the underlay, which starts the timer.
        let turn = flow.turn(context.now(), self.node, slot, settings, &mut self.stages);
        plan_timer(flow, slot, self.base, context);
        match turn {
            Turn::Ready => {
                flow.queued = true;
                if self.schedules {
                    self.stand_in_line(slot);
                } else {
                    self.nic.push_flow(slot, flow.priority);
                }
            }
            Turn::At(time) if time < flow.release_event => {
                flow.release_event = time;
                context.schedule(time, Event { class: class::RELEASE, entity: self.base, payload: slot });
            }
            Turn::At(_) | Turn::Blocked => {}
        }
    }

    /// A flow stands in the NIC's line of the priority that its next packet has, since that is what may be paused; or in the
    /// one in which the shortest goes first.
    #[inline(never)]
    fn stand_in_line(&mut self, slot: u32) {
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        flow.line = flow.next_priority(slot, settings.host.mtu, &mut self.stages);
        match settings.classes[usize::from(flow.class)].transport.order {
            SendOrder::Turns => self.nic.push_flow(slot, flow.line),
            SendOrder::ShortestRemaining => {
                flow.rank = u64::from(flow.send.waiting());
                self.nic.push_shortest(slot, flow.rank, flow.line);
            }
        }
    }

    /// Another packet may be the next one of a flow, or have another priority: then it stands in another line.
    #[inline(never)]
    pub(super) fn change_line(&mut self, slot: u32) {
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if !flow.queued || flow.next_priority(slot, settings.host.mtu, &mut self.stages) == flow.line {
            return;
        }
        match settings.classes[usize::from(flow.class)].transport.order {
            SendOrder::Turns => self.nic.remove_flow(slot, flow.line),
            SendOrder::ShortestRemaining => self.nic.remove_shortest(slot, flow.rank, flow.line),
        }
        self.stand_in_line(slot);
    }

    /// A flow leaves the NIC's line.
    #[cold]
    pub(super) fn leave_line(&mut self, slot: u32, flow: &SendFlow) {
        let class = &self.settings.classes[usize::from(flow.class)];
        match class.transport.order {
            SendOrder::Turns => self.nic.remove_flow(slot, flow.line),
            SendOrder::ShortestRemaining => self.nic.remove_shortest(slot, flow.rank, flow.line),
        }
    }

    /// NIC: sends the next packet if the link is free, and sees to it that it is looked at again.
    #[inline]
    pub(super) fn pump(&mut self, context: &mut impl NodeContext) {
        // Otherwise the event of the departure that is pending sees to it.
        if !self.nic.departure {
            let idle = self.nic.link.free_at() < self.settings.ended_before(context.now());
            self.pump_if(idle, context);
        }
    }

    /// The same where it is known whether the link is free.
    #[inline]
    pub(super) fn pump_if(&mut self, idle: bool, context: &mut impl NodeContext) {
        let now = context.now();
        if self.nic.departure || !self.nic.link.is_up() {
            return;
        }
        if self.nic.credits.is_some() {
            return self.pump_credited(idle, context);
        }
        if idle {
            if !self.settings.host.answers_first && self.nic.answered && self.send_next(context) {
                self.nic.answered = false;
            } else if let Some(packet) = self.nic.pop_control() {
                let telemetry = self.nic.telemetry(&packet);
                self.put_control_on_link(packet, telemetry.as_ref(), now, context);
            } else {
                self.send_next(context);
            }
        }
        if self.nic.has_work() {
            self.nic.departure = true;
            context.schedule(self.nic.link.free_at().max(now), self.event(self.settings.departure(), 0));
        }
    }

    /// Sends a control packet, whose transmission starts at `start`.
    #[inline(always)]
    pub(super) fn put_control_on_link(
        &mut self,
        mut packet: Packet,
        telemetry: Option<&Telemetry>,
        start: Time,
        context: &mut impl NodeContext,
    ) {
        self.nic.answered = true;
        self.injected += 1;
        if matches!(packet.kind, Kind::Ack | Kind::Nack) {
            packet.set_endpoint_delay(packet.since_arrival(start, clock_error(self.clock.as_deref(), start)));
        }
        if !self.nic.link.send(start, &packet, telemetry, context) {
            self.recorder.packet(start, self.node, 0, EventKind::Lost, &packet);
        }
    }

    /// Sends a packet of the next flow that may; false if there is none.
    #[inline]
    fn send_next(&mut self, context: &mut impl NodeContext) -> bool {
        while let Some(slot) = self.nic.pop_flow() {
            if self.send_from(slot, context).is_some() {
                return true;
            }
        }
        false
    }

    /// Sends a packet of a flow whose turn it is, and says which priority and size it had; `None` if it may no longer send.
    #[inline]
    pub(super) fn send_from(&mut self, slot: u32, context: &mut impl NodeContext) -> Option<(u8, u16)> {
        let now = context.now();
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return None };
        flow.queued = false;
        let mut sent = None;
        if flow.turn(now, self.node, slot, settings, &mut self.stages) == Turn::Ready
            && let Some(packet) = flow.take(now, self.node, slot, settings, &mut self.stages)
        {
            debug_assert!(
                self.nic.permission.allowed(1 << packet.priority) != 0,
                "a packet of a paused priority is sent: {packet:?}"
            );
            self.created_bytes += u64::from(packet.wire);
            self.injected += 1;
            if !self.nic.link.send(now, &packet, None, context) {
                self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
            }
            sent = Some((packet.priority, packet.wire));
        }
        let shared = flow.waiting.as_ref().map(|waiting| waiting.stage);
        if self.schedules {
            self.say(slot, context);
        }
        self.offer(slot, context);
        if let Some(stage) = shared {
            self.offer_first(stage, context);
        }
        sent
    }

    pub(super) fn on_release(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.release_event != context.now() {
            return;
        }
        flow.release_event = Time::MAX;
        self.offer(slot, context);
        self.pump(context);
    }

    pub(super) fn on_law_timer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.law_event != now {
            return;
        }
        flow.law_event = Time::MAX;
        if flow.law.next_timer() <= now {
            flow.law.on_timer(now);
            flow.refresh(self.settings);
        }
        if self.schedules {
            self.change_line(slot);
            self.say(slot, context);
        }
        self.offer(slot, context);
        self.pump(context);
    }
}
