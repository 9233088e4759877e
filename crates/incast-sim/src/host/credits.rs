//! Credit-based flow control at a NIC: a packet goes if the switch has said that it has room for it. What arrives is out of the NIC's
//! memory at once.
//!
//! A data packet is made as its transmission starts, so whether the next one has credits is asked then. While it has none its
//! lane waits; control packets of the lane, which go before data, still do.

use super::Host;
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class, pause},
        packet::{Kind, Packet},
    },
    flow_control::credits::{Update, blocks},
    probe::EventKind,
};

impl Host<'_> {
    /// As `pump_if`, where there are credits.
    #[inline(never)]
    pub(super) fn pump_credited(&mut self, idle: bool, context: &mut impl NodeContext) {
        if idle {
            self.send_credited(context);
        }
        let lanes = self.lanes();
        let has_news = self.nic.credits.as_ref().is_some_and(|end| end.has_news());
        if has_news || self.nic.has_ready_flow() || self.nic.next_credited(lanes).is_some() {
            self.nic.departure = true;
            let at = self.nic.link.free_at().max(context.now());
            context.schedule(at, self.event(self.settings.departure(), 0));
        }
    }

    /// Lanes in use.
    fn lanes(&self) -> u8 {
        self.settings.credits.as_ref().map_or(u8::MAX, |rules| rules.lanes)
    }

    /// The link is idle: what flow control has to say, then control packets and data, as ever.
    fn send_credited(&mut self, context: &mut impl NodeContext) {
        if let Some(update) = self.nic.credits.as_mut().and_then(|end| end.take_update()) {
            return self.send_update(update, context);
        }
        if !self.settings.host.answers_first && self.nic.answered && self.send_data_credited(context) {
            self.nic.answered = false;
            return;
        }
        let lane = self.nic.next_credited(self.lanes()).map(|packet| packet.priority);
        match lane.and_then(|lane| self.nic.pop_control_of(lane)) {
            Some(packet) => {
                self.spend_credits(packet.priority, packet.wire, context);
                let telemetry = self.nic.telemetry(&packet);
                self.put_control_on_link(packet, telemetry.as_ref(), context.now(), context);
            }
            None => {
                self.send_data_credited(context);
            }
        }
    }

    /// Sends a packet of the next flow that may and has credits; false if there is none.
    fn send_data_credited(&mut self, context: &mut impl NodeContext) -> bool {
        while let Some(slot) = self.nic.pop_flow() {
            let settings = self.settings;
            let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { continue };
            let lane = flow.line;
            let needs = blocks(flow.next_frame(slot, settings, &mut self.stages) as u16);
            let Some(end) = &mut self.nic.credits else { return false };
            if !end.may_send(lane, needs) {
                end.block(lane, context.now(), needs);
                self.put_back(slot, lane);
                self.pause(1 << lane, context.now());
            } else if let Some((lane, wire)) = self.send_from(slot, context) {
                self.spend_credits(lane, wire, context);
                return true;
            }
        }
        false
    }

    /// A flow that was taken from its line stays the first there.
    fn put_back(&mut self, slot: u32, lane: u8) {
        let Some(Some(flow)) = self.flows.get(slot as usize) else { return };
        if flow.by_rank {
            self.nic.push_shortest(slot, flow.rank, lane);
        } else {
            self.nic.put_back(slot, lane);
        }
    }

    fn spend_credits(&mut self, lane: u8, wire: u16, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        end.spend(lane, blocks(wire));
        if !end.reminder && end.misses_credits() {
            self.plan_reminder(context);
        }
    }

    /// A packet arrived.
    pub(super) fn receive_credits(&mut self, packet: &Packet) {
        if let Some(end) = self.nic.credits.as_mut().filter(|_| packet.kind != Kind::FlowControl) {
            end.receive(packet.priority, blocks(packet.wire));
            if end.is_due(packet.priority) {
                end.plan(packet.priority);
            }
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

    /// A flow control packet arrived.
    #[inline(never)]
    pub(super) fn on_update(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        let update = Update::read(packet);
        end.hear(update);
        if end.unblock(update.lane) {
            self.resume(1 << update.lane, context);
        }
    }

    /// On a link that loses packets: who misses credits asks for them now and then.
    fn plan_reminder(&mut self, context: &mut impl NodeContext) {
        let event = self.event(class::PAUSE, pause::REFRESH);
        let Some(end) = &mut self.nic.credits else { return };
        end.reminder = true;
        context.schedule(context.now().saturating_add(end.limits().refresh), Event { ..event });
    }

    /// The time to ask has come.
    pub(super) fn on_reminder(&mut self, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        end.reminder = false;
        if self.nic.link.is_up() && end.misses_credits() {
            end.ask();
            self.plan_reminder(context);
            self.pump(context);
        }
    }

    /// The NIC's link went down or came up: nothing may be sent until the switch has said what it has room for.
    pub(super) fn reset_credits(&mut self, up: bool, context: &mut impl NodeContext) {
        let Some(end) = &mut self.nic.credits else { return };
        end.reset(up);
        let reminds = up && !end.reminder && end.misses_credits();
        let resumed = self.nic.permission.resume(context.now(), u8::MAX, &mut self.nic.pauses);
        self.recorder.edges(context.now(), self.node, 0, resumed, EventKind::Resume);
        if reminds {
            self.plan_reminder(context);
        }
    }
}
