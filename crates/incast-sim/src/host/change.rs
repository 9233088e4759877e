//! What changes around a NIC: permission to send, and its link going down and up.

use super::Host;
use crate::{
    fabric::{
        node::{NodeContext, class, pause},
        packet::Packet,
    },
    flow_control::pause::Notice,
    probe::EventKind,
    switch::{LINK_UP, NEW_EPOCH},
};
use incast_units::Time;

impl Host<'_> {
    /// Forbids the NIC to send the priorities of `mask`.
    pub(super) fn pause(&mut self, mask: u8, now: Time) {
        let mask = mask & u8::MAX >> (8 - self.settings.switch.priorities);
        let paused = self.nic.permission.pause(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, paused, EventKind::Pause);
    }

    /// Allows it again.
    pub(super) fn resume(&mut self, mask: u8, context: &mut impl NodeContext) {
        let now = context.now();
        let resumed = self.nic.permission.resume(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, resumed, EventKind::Resume);
        self.pump(context);
    }

    /// The switch has sent a pause frame.
    #[cold]
    #[inline(never)]
    pub(super) fn on_notice(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let Some(rules) = &self.settings.pfc else { return };
        let notice = Notice::read(packet);
        if rules.pfc.response_delay > Time::ZERO {
            let at = context.now() + rules.pfc.response_delay;
            self.nic.heard.put_off(at, notice);
            context.schedule(at, self.event(class::PAUSE, pause::EFFECT));
        } else {
            self.apply(notice, context);
        }
    }

    /// What the switch asked for takes effect.
    fn apply(&mut self, notice: Notice, context: &mut impl NodeContext) {
        let now = context.now();
        if let Some(expiry) = self.nic.heard.apply(now, notice) {
            context.schedule(expiry, self.event(class::PAUSE, pause::EXPIRY));
        }
        self.pause(notice.paused, now);
        if notice.resumed() != 0 {
            self.resume(notice.resumed(), context);
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
            while let Some(notice) = self.nic.heard.due(now) {
                self.apply(notice, context);
            }
        } else {
            let expired = self.nic.heard.expire(now);
            if expired != 0 {
                self.resume(expired, context);
            }
        }
    }

    #[cold]
    pub(super) fn on_link(&mut self, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.nic.link.switch(up);
        self.nic.input.switch(now, up);
        if self.settings.pfc.is_some() {
            // What was said over the cable is forgotten.
            self.nic.heard.forget();
            let resumed = self.nic.permission.resume(now, u8::MAX, &mut self.nic.pauses);
            self.recorder.edges(now, self.node, 0, resumed, EventKind::Resume);
        }
        self.reset_credits(up, context);
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
