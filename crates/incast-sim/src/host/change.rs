//! What changes around a NIC: permission to send, and its link going down and up.

use super::Host;
use crate::{
    fabric::{
        node::{NodeContext, class},
        switch::{LINK_UP, NEW_EPOCH},
    },
    probe::EventKind,
};
use incast_units::Time;

impl Host<'_> {
    /// Forbids the NIC to send the priorities of `mask`.
    fn pause(&mut self, mask: u8, now: Time) {
        let mask = mask & u8::MAX >> (8 - self.settings.switch.priorities);
        let paused = self.nic.permission.pause(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, paused, EventKind::Pause);
    }

    /// Allows it again.
    fn resume(&mut self, mask: u8, context: &mut impl NodeContext) {
        let now = context.now();
        let resumed = self.nic.permission.resume(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, resumed, EventKind::Resume);
        self.pump(context);
    }

    /// The NIC's gate opens or closes.
    #[cold]
    pub(super) fn on_gate(&mut self, context: &mut impl NodeContext) {
        let Some(gate) = self.settings.host.gate else { return };
        let (open, next) = gate.at(context.now());
        if open {
            self.resume(gate.priorities, context);
        } else {
            self.pause(gate.priorities, context.now());
        }
        context.schedule(next, self.event(class::GATE, 0));
    }

    #[cold]
    pub(super) fn on_link(&mut self, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.nic.link.switch(up);
        self.nic.input.switch(now, up);
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
