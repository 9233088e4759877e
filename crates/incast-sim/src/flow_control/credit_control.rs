//! Credit-based flow control of a node: what its ports may send, and what they advertise.
//!
//! Queued packets are counted by the port and lane of arrival; one that goes straight to an idle link takes no buffer.

use super::{
    credits::{End, Rules, Update, blocks},
    frame::{Due, Effect, Frame},
};
use crate::{
    fabric::{buffer::Charge, queue::Ingress},
    packet::Packet,
};
use incast_units::{Rate, Time};

/// Credits of one node.
#[derive(Debug)]
pub struct CreditControl {
    /// By port.
    ends: Vec<End>,
    /// Lanes in use, one bit each.
    lanes: u8,
    frame: u16,
}

impl CreditControl {
    /// Credits of a node with these ports: rate, delay, and whether the link loses packets.
    pub fn new(rules: &Rules, ports: impl Iterator<Item = (Rate, Time, bool)>) -> Self {
        let end = |(rate, delay, is_lossy)| End::new(rules.limits(rate, delay), rules.lanes, is_lossy);
        Self { ends: ports.map(end).collect(), lanes: rules.lanes, frame: rules.credits.frame }
    }

    /// Bytes of buffer that all ports and lanes advertise.
    pub fn own(&self) -> u64 {
        let bytes = |end: &End| end.limits().bytes().saturating_mul(u64::from(self.lanes.count_ones()));
        self.ends.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// The other end of a port's link has room for a packet of `wire` bytes.
    #[inline]
    pub fn may_send(&self, port: usize, lane: u8, wire: u16) -> bool {
        self.ends[port].may_send(lane, blocks(wire))
    }

    /// A packet leaves by a port. Returns the time after which the port requests credits that may have been lost,
    /// if no such event is pending.
    pub fn spend(&mut self, port: usize, lane: u8, wire: u16) -> Option<Time> {
        self.ends[port].spend(lane, blocks(wire));
        self.plan_reminder(port)
    }

    fn plan_reminder(&mut self, port: usize) -> Option<Time> {
        let end = &mut self.ends[port];
        let is_needed = !end.reminder && end.lacks_credits();
        end.reminder |= is_needed;
        is_needed.then(|| end.limits().refresh)
    }

    /// The head of a lane's queue is a packet of `wire` bytes. Returns whether it has to wait for credits.
    pub fn block(&mut self, port: usize, lane: u8, wire: u16, now: Time) -> bool {
        let (end, needs) = (&mut self.ends[port], blocks(wire));
        let waits = !end.may_send(lane, needs);
        if waits {
            end.block(lane, now, needs);
        }
        waits
    }

    /// A packet arrived at a port, dropped or not.
    pub fn receive(&mut self, port: usize, packet: &Packet) {
        self.ends[port].receive(packet.priority, blocks(packet.wire));
    }

    pub(super) fn enter(&mut self, ingress: Ingress, bytes: u64) -> Option<Charge> {
        let room = self.ends[usize::from(ingress.port)].hold(ingress.priority, blocks(bytes as u16));
        room.then_some(Charge { bytes, from_pool: 0 })
    }

    pub(super) fn leave(&mut self, ingress: Ingress, bytes: u64) -> Charge {
        self.ends[usize::from(ingress.port)].free(ingress.priority, blocks(bytes as u16));
        Charge { bytes, from_pool: 0 }
    }

    /// Whether an update about a lane is worth sending; it is sent with the next frame then.
    pub(super) fn must_update(&mut self, ingress: Ingress) -> bool {
        let end = &mut self.ends[usize::from(ingress.port)];
        let is_due = end.is_due(ingress.priority);
        if is_due {
            end.plan(ingress.priority);
        }
        is_due
    }

    pub(super) fn due(&self, port: usize) -> Due {
        if self.ends[port].has_update() { Due::Now } else { Due::No }
    }

    pub(super) fn take_frame(&mut self, port: usize, node: u32) -> Option<Frame> {
        let end = &mut self.ends[port];
        let packet = end.take_update()?.packet(node, self.frame);
        Some(Frame { packet, refresh: None, more: end.has_update() })
    }

    /// An update arrived at a port.
    pub(super) fn on_update(&mut self, port: usize, packet: &Packet) -> Effect {
        let (update, end) = (Update::read(packet), &mut self.ends[port]);
        end.on_update(update);
        let has_frame = end.has_update();
        let resume = if end.unblock(update.lane) { 1 << update.lane } else { 0 };
        Effect { resume, has_frame, ..Effect::default() }
    }

    /// The event for lost credits: the port requests its credits, and again until they have come.
    pub(super) fn remind(&mut self, port: usize, link_is_up: bool, now: Time) -> Effect {
        let end = &mut self.ends[port];
        end.reminder = false;
        if !link_is_up || !end.lacks_credits() {
            return Effect::default();
        }
        end.request();
        Effect { has_frame: true, ..Effect::reminder(self.plan_reminder(port), now) }
    }

    /// The link of a port went down or came up. Nothing may be sent until the other end has advertised buffer.
    pub(super) fn reset(&mut self, port: usize, up: bool, now: Time) -> Effect {
        self.ends[port].reset(up);
        let reminder = if up { self.plan_reminder(port) } else { None };
        Effect { resume: u8::MAX, has_frame: self.ends[port].has_update(), ..Effect::reminder(reminder, now) }
    }

    /// Lanes of ports in which a packet waits for credits: port, lane, and since when.
    pub(super) fn blocked(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        let ports = self.ends.iter().enumerate();
        ports.flat_map(|(port, end)| end.blocked().map(move |(lane, since)| (port as u16, lane, since)))
    }

    /// The end of the link at a port.
    pub(super) fn end(&self, port: u16) -> &End {
        &self.ends[usize::from(port)]
    }

    /// `None` if packets of an ingress leave no room for what waits at the other end of its link. Else how many blocks
    /// that end has sent.
    pub(super) fn without_reason(&self, ingress: Ingress, other: &End) -> Option<u32> {
        let (end, lane) = (self.end(ingress.port), ingress.priority);
        let has_reason = end.held(lane) > 0 && !end.has_room(lane, other);
        (!has_reason).then(|| other.sent(lane))
    }
}
