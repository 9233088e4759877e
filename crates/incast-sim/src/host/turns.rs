//! Sender: which flow's packet goes next, when its law, its pace, the underlay and the NIC let it.

use super::{
    Host,
    nic::Nic,
    sending::{SendFlow, Turn},
    timeout::plan_timer,
    underlay::{Stages, clock_error},
};
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
    },
    probe::EventKind,
    settings::Settings,
};
use incast_units::Time;

impl Host<'_> {
    /// Lets a flow stand in the NIC's line, or wait for its time.
    #[inline(never)]
    pub(super) fn offer(&mut self, slot: u32, context: &mut impl NodeContext) {
        self.offer_in_line(slot, context);
    }

    /// The same, for callers that do so for every packet.
    #[inline(always)]
    pub(super) fn offer_in_line(&mut self, slot: u32, context: &mut impl NodeContext) {
        let (flow, desk) = self.desk(slot);
        if let Some(flow) = flow {
            desk.offer(flow, slot, context);
        }
    }

    /// A flow, and what it needs to stand in line.
    #[inline(always)]
    fn desk(&mut self, slot: u32) -> (Option<&mut SendFlow>, Desk<'_>) {
        let flow = self.flows.get_mut(slot as usize).and_then(Option::as_mut);
        let (node, base, settings) = (self.node, self.base, self.settings);
        (flow, Desk { settings, stages: &mut self.stages, nic: &mut self.nic, node, base })
    }

    /// Another packet may be the next one of a flow, or have another priority: then it stands in another line.
    #[inline(never)]
    pub(super) fn change_line(&mut self, slot: u32) {
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.queued && flow.next_priority(slot, settings.host.mtu, &mut self.stages) != flow.line {
            leave_line(flow, slot, &mut self.nic);
            let (flow, desk) = self.desk(slot);
            if let Some(flow) = flow {
                desk.stand_in_line(flow, slot);
            }
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
            // What a flow has said instead is on the link by now.
            if !self.nic.link.idle(context.now()) {
                break;
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
        if flow.waiting.is_some() {
            return self.send_held(slot, context);
        }
        let mut sent = None;
        if let Ok(next) = flow.permission(now, settings.host.mtu) {
            let packet = flow.emit(next, now, self.node, slot, settings);
            sent = Some(self.put_on_link(&packet, context));
        }
        let (flow, desk) = self.desk(slot);
        match flow {
            Some(flow) if !flow.speaks => desk.offer(flow, slot, context),
            _ => {
                self.say(slot, context);
                self.offer(slot, context);
            }
        }
        sent
    }

    /// The same of a flow whose packets an underlay may hold.
    #[inline(never)]
    fn send_held(&mut self, slot: u32, context: &mut impl NodeContext) -> Option<(u8, u16)> {
        let now = context.now();
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return None };
        let shared = flow.waiting.as_ref().map(|waiting| waiting.stage);
        let packet = match flow.turn(now, self.node, slot, settings, &mut self.stages) {
            Turn::Ready => flow.take_of_held(now, self.node, slot, settings, &mut self.stages),
            Turn::At(_) | Turn::Blocked => None,
        };
        let sent = packet.map(|packet| self.put_on_link(&packet, context));
        self.say(slot, context);
        self.offer(slot, context);
        if let Some(stage) = shared {
            self.offer_first(stage, context);
        }
        sent
    }

    /// Sends a packet of data, and says which priority and size it had.
    #[inline(always)]
    fn put_on_link(&mut self, packet: &Packet, context: &mut impl NodeContext) -> (u8, u16) {
        debug_assert!(
            self.nic.permission.allowed(1 << packet.priority) != 0,
            "a packet of a paused priority is sent: {packet:?}"
        );
        self.created_bytes += u64::from(packet.wire);
        self.injected += 1;
        let now = context.now();
        if !self.nic.link.send(now, packet, None, context) {
            self.recorder.packet(now, self.node, 0, EventKind::Lost, packet);
        }
        (packet.priority, packet.wire)
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

/// What of a host a flow needs to stand in line.
struct Desk<'h> {
    settings: &'h Settings,
    stages: &'h mut Stages,
    nic: &'h mut Nic,
    node: u32,
    base: u32,
}

impl Desk<'_> {
    /// Lets a flow stand in the NIC's line, or wait for its time.
    #[inline(always)]
    fn offer(self, flow: &mut SendFlow, slot: u32, context: &mut impl NodeContext) {
        let base = self.base;
        if flow.has_timer {
            plan_law_timer(flow, slot, base, context);
        }
        if !flow.queued {
            match flow.turn(context.now(), self.node, slot, self.settings, self.stages) {
                Turn::Ready => {
                    flow.queued = true;
                    self.stand_in_line(flow, slot);
                }
                Turn::At(time) if time < flow.release_event => plan_release(flow, slot, time, base, context),
                Turn::At(_) | Turn::Blocked => {}
            }
        }
        // Asking may have handed packets to the underlay, which starts the timer.
        plan_timer(flow, slot, base, context);
    }

    /// A flow stands in the NIC's line of the priority that its next packet has, since that is what may be paused; or
    /// in the one in which the shortest goes first.
    #[inline(always)]
    fn stand_in_line(self, flow: &mut SendFlow, slot: u32) {
        flow.line = flow.next_priority(slot, self.settings.host.mtu, self.stages);
        if flow.by_rank {
            stand_by_rank(flow, slot, self.nic);
        } else {
            self.nic.push_flow(slot, flow.line);
        }
    }
}

#[inline(never)]
fn stand_by_rank(flow: &mut SendFlow, slot: u32, nic: &mut Nic) {
    flow.rank = u64::from(flow.send.waiting());
    nic.push_shortest(slot, flow.rank, flow.line);
}

/// A flow leaves the NIC's line.
#[cold]
pub(super) fn leave_line(flow: &SendFlow, slot: u32, nic: &mut Nic) {
    if flow.by_rank {
        nic.remove_shortest(slot, flow.rank, flow.line);
    } else {
        nic.remove_flow(slot, flow.line);
    }
}

/// Sees to it that a flow is looked at when its pace lets the next packet go.
#[inline(never)]
fn plan_release(flow: &mut SendFlow, slot: u32, time: Time, base: u32, context: &mut impl NodeContext) {
    flow.release_event = time;
    context.schedule(time, Event { class: class::RELEASE, entity: base, payload: slot });
}

/// Sees to it that the time at which a law wants to be woken is not missed.
#[inline(never)]
fn plan_law_timer(flow: &mut SendFlow, slot: u32, base: u32, context: &mut impl NodeContext) {
    let timer = flow.law.next_timer();
    if timer < flow.law_event {
        // A timer that has passed comes at once.
        flow.law_event = timer.max(context.now());
        context.schedule(flow.law_event, Event { class: class::LAW, entity: base, payload: slot });
    }
}
