//! Flow control at a host: what it does after a frame, how it sends where there are credits, and what happens when its
//! link goes down or comes up.

use super::Host;
use crate::{
    engine::Event,
    fabric::node::{NodeContext, class},
    flow_control::Effect,
    packet::Packet,
    probe::EventKind,
    switch::{LINK_UP, NEW_EPOCH},
};

impl Host<'_> {
    /// The switch has sent a frame of flow control.
    #[cold]
    #[inline(never)]
    pub(super) fn on_link_frame(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let effect = self.nic.on_frame(packet, context.now());
        self.carry_out(effect, context);
    }

    /// An event of flow control has come.
    #[cold]
    pub(super) fn on_pause_event(&mut self, payload: u32, context: &mut impl NodeContext) {
        let effect = self.nic.on_event(payload, context.now());
        self.carry_out(effect, context);
    }

    /// Does what flow control has decided.
    fn carry_out(&mut self, effect: Effect, context: &mut impl NodeContext) {
        let now = context.now();
        if let Some((at, payload)) = effect.event {
            context.schedule(at, Event { class: class::PAUSE, entity: self.base, payload });
        }
        if effect.pause != 0 {
            let paused = self.nic.pause(effect.pause, now);
            self.recorder.edges(now, self.node, 0, paused, EventKind::Pause);
        }
        if effect.resume != 0 {
            let resumed = self.nic.resume(effect.resume, now);
            self.recorder.edges(now, self.node, 0, resumed, EventKind::Resume);
        }
        if effect.resume != 0 || effect.has_frame {
            self.pump(context);
        }
    }

    // ---- Credits ---------------------------------------------------------------------------------------------
    //
    // A packet goes if the switch has advertised buffer for it. What arrives leaves the NIC's own buffer at once. A
    // data packet is made as its transmission starts, so its credits are checked then. While there are none its lane is
    // blocked; control packets of the lane, which go before data, still go.

    /// As `pump_if`, with credits.
    #[inline(never)]
    pub(super) fn pump_credited(&mut self, idle: bool, context: &mut impl NodeContext) {
        if idle {
            self.send_credited(context);
        }
        let has_frame = self.nic.has_frame(context.now());
        if has_frame || self.nic.has_ready_flow() || self.nic.next_credited().is_some() {
            self.plan_departure(context);
        }
    }

    /// The link is idle: sends a credit update, a control packet or data.
    fn send_credited(&mut self, context: &mut impl NodeContext) {
        if let Some(update) = self.nic.take_frame(self.node, context.now()) {
            return self.send_update(&update, context);
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
            let wire = sender.next_frame(self.settings, &mut self.stages) as u16;
            if self.nic.block(place.priority, wire, context.now()) {
                self.nic.put_back(slot, &place);
                self.carry_out(Effect { pause: 1 << place.priority, ..Effect::default() }, context);
            } else if let Some((lane, wire)) = self.send_from(slot, context) {
                self.spend_credits(lane, wire, context);
                return true;
            }
        }
        false
    }

    fn spend_credits(&mut self, lane: u8, wire: u16, context: &mut impl NodeContext) {
        let effect = self.nic.spend_credits(lane, wire, context.now());
        self.carry_out(effect, context);
    }

    fn send_update(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        self.created_bytes += u64::from(packet.wire);
        self.injected += 1;
        if !self.nic.transmit(now, packet, None, context) {
            self.recorder.packet(now, self.node, 0, EventKind::Lost, packet);
        }
    }

    // ---- The link --------------------------------------------------------------------------------------------

    /// The link went down or came up: pauses end. With credits, nothing may be sent until the switch has advertised
    /// buffer.
    #[cold]
    pub(super) fn on_link(&mut self, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        let effect = self.nic.set_link(now, up);
        self.carry_out(effect, context);
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
