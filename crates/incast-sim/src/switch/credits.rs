//! Credit-based flow control: what a switch may send, and when it says what it has room for.
//!
//! Each departure is an event here, so that credits leave in time. What a packet takes of the memory is counted by the port and
//! lane by which it came in, as with priority flow control; one that goes straight to an idle link takes none.

use super::Switch;
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class, pause},
        packet::Packet,
        queue::{MADE_HERE, Origin},
    },
    flow_control::credits::{End, Rules, Update, blocks},
    probe::EventKind,
};
use incast_units::{Rate, Time};

/// Flow control of one switch.
#[derive(Debug)]
pub(super) struct Control {
    /// By port.
    ends: Vec<End>,
    /// Lanes in use, one bit each.
    lanes: u8,
    frame: u16,
}

impl Control {
    /// Of a switch with these ports: rate, delay, and whether the link loses packets.
    pub fn new(rules: &Rules, ports: impl Iterator<Item = (Rate, Time, bool)>) -> Self {
        let end = |(rate, delay, is_lossy)| End::new(rules.limits(rate, delay), rules.lanes, is_lossy);
        Self { ends: ports.map(end).collect(), lanes: rules.lanes, frame: rules.credits.frame }
    }

    /// Bytes of all memories.
    pub fn own(&self) -> u64 {
        let bytes = |end: &End| end.limits().bytes().saturating_mul(u64::from(self.lanes.count_ones()));
        self.ends.iter().map(bytes).fold(0, u64::saturating_add)
    }
}

impl Switch<'_> {
    /// The other end of a port's link has room for a packet.
    #[inline]
    pub(super) fn may_spend(&self, port: usize, packet: &Packet) -> bool {
        let room = |control: &Control| control.ends[port].may_send(packet.priority, blocks(packet.wire));
        self.credits.as_deref().is_none_or(room)
    }

    /// A packet leaves by a port.
    #[inline]
    pub(super) fn spend(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        if self.credits.is_some() {
            self.spend_credits(port, packet, context);
        }
    }

    #[inline(never)]
    fn spend_credits(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        let Some(control) = &mut self.credits else { return };
        let end = &mut control.ends[port];
        end.spend(packet.priority, blocks(packet.wire));
        let reminds = !end.reminder && end.misses_credits();
        if reminds {
            self.plan_reminder(port, context);
        }
        self.block_head(port, packet.priority, context);
    }

    /// The head of a queue waits if it has no credits. It goes on once they come: see [`Self::on_update`].
    pub(super) fn block_head(&mut self, port: usize, lane: u8, context: &mut impl NodeContext) {
        let index = self.index(port, lane);
        let Some(control) = &mut self.credits else { return };
        let Some(head) = self.pool.front(&self.queues[index]) else { return };
        let needs = blocks(head.wire);
        if !control.ends[port].may_send(lane, needs) {
            control.ends[port].block(lane, context.now(), needs);
            self.pause(port, 1 << lane, context);
        }
    }

    /// A packet has arrived at a port, before anything becomes of it.
    pub(super) fn receive_credits(&mut self, port: usize, packet: &Packet) {
        if let Some(control) = &mut self.credits {
            control.ends[port].receive(packet.priority, blocks(packet.wire));
        }
    }

    /// A packet that has to wait takes the room that its port said it had.
    pub(super) fn admit_by_credits(
        &mut self,
        port: usize,
        queue: usize,
        packet: &Packet,
        context: &mut impl NodeContext,
    ) -> bool {
        let (Origin { port: ingress, priority }, wire) = (self.origin, u64::from(packet.wire));
        if ingress == MADE_HERE {
            return self.admit_by_queue(port, queue, wire, context);
        }
        let Some(control) = &mut self.credits else { return true };
        let room = control.ends[usize::from(ingress)].hold(priority, blocks(packet.wire));
        if room {
            self.memory.hold(wire, 0);
        } else {
            self.counters.lossless_drops += 1;
        }
        room
    }

    /// A packet leaves the memory; its queue now holds `left` bytes.
    pub(super) fn release_credits(&mut self, origin: Origin, packet: &Packet, left: u64) {
        let wire = u64::from(packet.wire);
        match &mut self.credits {
            Some(control) if origin.port != MADE_HERE => {
                control.ends[usize::from(origin.port)].free(origin.priority, blocks(packet.wire));
                self.memory.release(wire, 0);
            }
            _ => self.memory.leave(wire, left),
        }
    }

    /// Sees to it that the other end of a port's link knows of what has become free, if that is worth a word.
    pub(super) fn tell_credits(&mut self, ingress: u16, lane: u8, context: &mut impl NodeContext) {
        let (port, now) = (usize::from(ingress), context.now());
        let Some(control) = self.credits.as_mut().filter(|_| ingress != MADE_HERE) else { return };
        let (end, link) = (&mut control.ends[port], &self.ports[port].link);
        if link.is_up() && end.is_due(lane) {
            end.plan(lane);
            self.say_credits(port, now, context);
        }
    }

    /// What is to be said is said now, or once the packet in service has left, ahead of what waits.
    fn say_credits(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        if self.ports[port].link.idle(now) {
            self.send_update(port, now, context);
        } else {
            self.ports[port].notice = true;
            self.plan_departure(port, context);
        }
    }

    /// Puts a flow control packet on an idle link.
    pub(super) fn send_update(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        let Some(control) = &mut self.credits else { return };
        let Some(update) = control.ends[port].take_update() else { return };
        let packet = update.packet(self.node, control.frame);
        let more = control.ends[port].has_news();
        self.counters.created_bytes += u64::from(packet.wire);
        if !self.ports[port].link.send(now, &packet, None, context) {
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, &packet);
        }
        if more {
            self.ports[port].notice = true;
            self.plan_departure(port, context);
        }
    }

    /// A flow control packet arrived.
    #[inline(never)]
    pub(super) fn on_update(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        self.counters.consumed_bytes += u64::from(packet.wire);
        let Some(control) = &mut self.credits else { return };
        let (update, end) = (Update::read(packet), &mut control.ends[port]);
        end.hear(update);
        let speaks = end.has_news();
        if end.unblock(update.lane) {
            self.resume(port, 1 << update.lane, context);
        }
        if speaks {
            self.say_credits(port, context.now(), context);
        }
    }

    /// On a link that loses packets: who misses credits asks for them now and then.
    fn plan_reminder(&mut self, port: usize, context: &mut impl NodeContext) {
        let Some(control) = &mut self.credits else { return };
        let end = &mut control.ends[port];
        end.reminder = true;
        let at = context.now().saturating_add(end.limits().refresh);
        let entity = self.base + port as u32;
        context.schedule(at, Event { class: class::PAUSE, entity, payload: pause::REFRESH });
    }

    /// The time to ask has come.
    pub(super) fn on_reminder(&mut self, port: usize, context: &mut impl NodeContext) {
        let Some(control) = &mut self.credits else { return };
        let end = &mut control.ends[port];
        end.reminder = false;
        if self.ports[port].link.is_up() && end.misses_credits() {
            end.ask();
            self.plan_reminder(port, context);
            self.say_credits(port, context.now(), context);
        }
    }

    /// The cable at a port went down or came up. What was said over it is forgotten; what came by it and is still here keeps its
    /// room.
    pub(super) fn reset_credits(&mut self, port: usize, up: bool, context: &mut impl NodeContext) {
        let Some(control) = &mut self.credits else { return };
        let end = &mut control.ends[port];
        end.reset(up);
        let reminds = up && !end.reminder && end.misses_credits();
        self.ports[port].notice = false;
        self.resume(port, u8::MAX, context);
        if reminds {
            self.plan_reminder(port, context);
        }
        if up {
            self.say_credits(port, context.now(), context);
        }
    }

    /// Lanes of ports in which a packet waits for credits: port, lane, and since when.
    pub(super) fn blocked(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        let ports = self.credits.iter().flat_map(|control| control.ends.iter().enumerate());
        ports.flat_map(|(port, end)| end.blocked().map(move |(lane, since)| (port as u16, lane, since)))
    }

    /// Packets that came in by a port and lane are here.
    pub(super) fn holds_credits(&self, port: u16, lane: u8) -> bool {
        self.credits.as_deref().is_some_and(|control| control.ends[usize::from(port)].held(lane) > 0)
    }

    /// What lanes hold is what waits.
    pub(super) fn credits_add_up(&self) -> bool {
        let Some(control) = self.credits.as_deref() else { return true };
        let mut waiting = vec![0u32; self.ports.len() * 8];
        for (index, queue) in self.queues.iter().enumerate() {
            for (packet, origin) in self.pool.packets(queue).filter(|(_, origin)| origin.port != MADE_HERE) {
                waiting[usize::from(origin.port) * 8 + index / self.ports.len()] += blocks(packet.wire);
            }
        }
        let held = |port: usize, lane: usize| control.ends[port].held(lane as u8);
        waiting.iter().enumerate().all(|(index, blocks)| held(index / 8, index % 8) == *blocks)
    }
}
