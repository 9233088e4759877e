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
        self.apply(effect, context);
    }

    /// An event of flow control has come.
    #[cold]
    pub(super) fn on_pause_event(&mut self, payload: u32, context: &mut impl NodeContext) {
        let effect = self.nic.on_event(payload, context.now());
        self.apply(effect, context);
    }

    /// Does what flow control has decided.
    fn apply(&mut self, effect: Effect, context: &mut impl NodeContext) {
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

    /// The packet of a flow that was taken from its queue has to wait for credits: the flow goes back, and its lane is
    /// blocked.
    #[inline(never)]
    pub(super) fn lacks_credits(&mut self, slot: u32, context: &mut impl NodeContext) -> bool {
        let Some(sender) = self.senders.get_mut(slot) else { return true };
        let place = sender.place;
        let wire = sender.next_frame(self.settings, &mut self.stages) as u16;
        let lacks = self.nic.block(place.priority, wire, context.now());
        if lacks {
            self.nic.put_back(slot, &place);
            self.apply(Effect { pause: 1 << place.priority, ..Effect::default() }, context);
        }
        lacks
    }

    #[inline(never)]
    pub(super) fn spend_credits(&mut self, lane: u8, wire: u16, context: &mut impl NodeContext) {
        let effect = self.nic.spend_credits(lane, wire, context.now());
        self.apply(effect, context);
    }

    #[inline(never)]
    pub(super) fn send_update(&mut self, packet: &Packet, context: &mut impl NodeContext) {
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
        if up {
            // What arrives at this instant comes later.
            self.plan_choice(context);
        }
        self.apply(effect, context);
        if up {
            return;
        }
        for packet in self.nic.drain_control() {
            self.lost.0 += 1;
            self.lost.1 += u64::from(packet.wire);
            self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
        }
    }
}
