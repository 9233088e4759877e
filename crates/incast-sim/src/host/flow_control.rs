//! Flow control at a host: what its NIC may send, and its link going down and up.

use super::Host;
use crate::{
    fabric::{
        node::{NodeContext, class, pause},
        packet::Packet,
    },
    flow_control::{
        credits::{Update, blocks},
        pause::PauseFrame,
    },
    probe::EventKind,
    switch::{LINK_UP, NEW_EPOCH},
};
use incast_units::Time;

impl Host<'_> {
    /// Forbids the NIC to send the priorities of `mask`.
    fn pause(&mut self, mask: u8, now: Time) {
        let mask = mask & u8::MAX >> (8 - self.settings.priorities);
        let paused = self.nic.permission.pause(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, paused, EventKind::Pause);
    }

    /// Allows it again.
    fn allow(&mut self, mask: u8, now: Time) {
        let resumed = self.nic.permission.resume(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, resumed, EventKind::Resume);
    }

    /// Allows it again, and sends.
    fn resume(&mut self, mask: u8, context: &mut impl NodeContext) {
        self.allow(mask, context.now());
        self.pump(context);
    }

    // ---- PFC -------------------------------------------------------------------------------------------------

    /// The switch has sent a pause frame.
    #[cold]
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn on_pause_frame(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let Some(rules) = &self.settings.pfc else { return };
        let frame = PauseFrame::read(packet);
        if rules.pfc.response_delay > Time::ZERO {
            let at = context.now() + rules.pfc.response_delay;
            self.nic.received.defer(at, frame);
            context.schedule(at, self.event(class::PAUSE, pause::EFFECT));
        } else {
            self.apply_pause_frame(frame, context);
        }
    }

    /// A pause frame takes effect.
    fn apply_pause_frame(&mut self, frame: PauseFrame, context: &mut impl NodeContext) {
        let now = context.now();
        if let Some(expiry) = self.nic.received.apply(now, frame) {
            context.schedule(expiry, self.event(class::PAUSE, pause::EXPIRY));
        }
        self.pause(frame.paused, now);
        if frame.resumed() != 0 {
            self.resume(frame.resumed(), context);
        }
    }

    /// An event of flow control has come.
    #[cold]
    pub(super) fn on_pause_event(&mut self, payload: u32, context: &mut impl NodeContext) {
        if self.nic.credits.is_some() {
            return self.on_reminder(context);
        }
        let now = context.now();
        if payload == pause::EFFECT {
            while let Some(frame) = self.nic.received.due(now) {
                self.apply_pause_frame(frame, context);
            }
        } else {
            let expired = self.nic.received.expire(now);
            if expired != 0 {
                self.resume(expired, context);
            }
        }
    }

    // ---- Credits ---------------------------------------------------------------------------------------------
    //
    // A packet goes if the switch has advertised buffer for it. What arrives leaves the NIC's own buffer at once. A
    // data packet is made as its transmission starts, so its credits are checked then. While there are none its lane is
    // blocked; control packets of the lane, which go before data, still go.

    /// As `pump_if`, with credits.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn pump_credited(&mut self, idle: bool, context: &mut impl NodeContext) {
        if idle {
            self.send_credited(context);
        }
        let has_update = self.nic.credits.as_ref().is_some_and(|end| end.has_update());
        if has_update || self.nic.has_ready_flow() || self.nic.next_credited().is_some() {
            self.plan_departure(context);
        }
    }

    /// The link is idle: sends a credit update, a control packet or data.
    fn send_credited(&mut self, context: &mut impl NodeContext) {
        if let Some(update) = self.nic.credits.as_mut().and_then(|end| end.take_update()) {
            return self.send_update(update, context);
        }
        if !self.settings.host.control_first && self.nic.answered && self.send_data_credited(context) {
            self.nic.answered = false;
            return;
        }
        let lane = self.nic.next_credited().map(|packet| packet.priority);
        match lane.and_then(|lane| self.nic.pop_control_of(lane)) {
            Some(mut packet) => {
                self.spend_credits(packet.priority, packet.wire, context);
                let telemetry = self.nic.telemetry(&packet);
                self.put_control_on_link(&mut packet, telemetry.as_ref(), context.now(), context);
            }
            None => {
                self.send_data_credited(context);
            }
        }
    }

    /// Sends a packet of the next flow that may and has credits; false if there is none.
    fn send_data_credited(&mut self, context: &mut impl NodeContext) -> bool {
        while let Some(slot) = self.nic.pop_flow() {
            let Some(sender) = self.senders.get_mut(slot) else { continue };
            let place = sender.place;
            let needs = blocks(sender.next_frame(self.settings, &mut self.stages) as u16);
            let Some(end) = &mut self.nic.credits else { return false };
            if !end.may_send(place.priority, needs) {
                end.block(place.priority, context.now(), needs);
                self.nic.put_back(slot, &place);
                self.pause(1 << place.priority, context.now());
            } else if let Some((lane, wire)) = self.send_from(slot, context) {
                self.spend_credits(lane, wire, context);
                return true;
            }
        }
        false
    }

    fn spend_credits(&mut self, lane: u8, wire: u16, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        end.spend(lane, blocks(wire));
        if !end.reminder && end.lacks_credits() {
            self.plan_reminder(context);
        }
    }

    fn send_update(&mut self, update: Update, context: &mut impl NodeContext) {
        let Some(rules) = &self.settings.credits else { return };
        let (now, packet) = (context.now(), update.packet(self.node, rules.credits.frame));
        self.created_bytes += u64::from(packet.wire);
        self.injected += 1;
        if !self.nic.link.send(now, &packet, None, context) {
            self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
        }
    }

    /// The switch has sent a credit update.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn on_credit_update(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        let update = Update::read(packet);
        end.on_update(update);
        if end.unblock(update.lane) {
            self.resume(1 << update.lane, context);
        }
    }

    /// On a link that loses packets a NIC without credits requests them from time to time.
    fn plan_reminder(&mut self, context: &mut impl NodeContext) {
        let event = self.event(class::PAUSE, pause::REFRESH);
        let Some(end) = &mut self.nic.credits else { return };
        end.reminder = true;
        context.schedule(context.now().saturating_add(end.limits().refresh), event);
    }

    /// It is time to request credits.
    fn on_reminder(&mut self, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        end.reminder = false;
        if self.nic.link.is_up() && end.lacks_credits() {
            end.request();
            self.plan_reminder(context);
            self.pump(context);
        }
    }

    // ---- The link --------------------------------------------------------------------------------------------

    /// The link went down or came up. Pauses end. With credits, nothing may be sent until the switch has advertised
    /// buffer.
    #[cold]
    pub(super) fn on_link(&mut self, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.nic.link.switch(up);
        self.nic.input.switch(now, up);
        if self.settings.pfc.is_some() {
            self.nic.received.clear();
            self.allow(u8::MAX, now);
        }
        if let Some(end) = &mut self.nic.credits {
            end.reset(up);
            let reminds = up && !end.reminder && end.lacks_credits();
            self.allow(u8::MAX, now);
            if reminds {
                self.plan_reminder(context);
            }
        }
        if up {
            self.pump(context);
            return;
        }
        for packet in self.nic.drain_control() {
            self.lost.0 += 1;
            self.lost.1 += u64::from(packet.wire);
            self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
        }
    }
}
