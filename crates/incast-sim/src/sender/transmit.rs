//! Transmission: whether the next packet of a flow may go, and the packet.

use super::{Sender, pacer::SendDecision, underlay::Stages};
use crate::{
    packet::{Kind, Packet},
    settings::Settings,
};
use incast_units::Time;

/// The packet that may go next.
#[derive(Clone, Copy, Debug)]
pub struct NextPacket {
    packet: u32,
    /// It was sent before.
    again: bool,
    /// It needs a token.
    on_token: bool,
}

impl Sender {
    /// The next packet, if it may go at `now`; otherwise what it waits for, which is not [`SendDecision::Ready`].
    #[inline(always)]
    pub fn next_packet(&mut self, now: Time, mtu: u32) -> Result<NextPacket, SendDecision> {
        let scoreboard = &self.recovery.scoreboard;
        let Some((packet, again)) = scoreboard.next() else {
            self.pacer.block();
            return Err(SendDecision::Blocked);
        };
        let on_token = !self.is_free(packet, again, mtu);
        if on_token && !self.grants.has_token(now) {
            self.pacer.block();
            return Err(SendDecision::Blocked);
        }
        let scoreboard = &self.recovery.scoreboard;
        let in_flight = if self.recovery.ignores_window { 0 } else { scoreboard.in_flight() };
        match self.pacer.decide(now, in_flight, || scoreboard.unsent(), mtu) {
            SendDecision::Ready => Ok(NextPacket { packet, again, on_token }),
            wait => Err(wait),
        }
    }

    /// Whether a packet of this flow may go to the NIC at `now`.
    #[inline(always)]
    pub fn decide(&mut self, now: Time, settings: &Settings, stages: &mut Stages) -> SendDecision {
        if self.held.is_none() {
            return self.next_packet(now, settings.host.mtu).map_or_else(|wait| wait, |_| SendDecision::Ready);
        }
        self.decide_with_stage(now, settings, stages)
    }

    /// The same where an underlay may hold packets. While it holds none, a packet is made when the NIC takes it, as
    /// without a stage. Otherwise what the law allows goes into the stage, which releases its packets in order.
    #[inline(never)]
    fn decide_with_stage(&mut self, now: Time, settings: &Settings, stages: &mut Stages) -> SendDecision {
        let Some(place) = self.held.as_ref().map(|held| held.stage) else { return SendDecision::Blocked };
        let stage = stages.at(place);
        if stage.is_empty() {
            if let Err(wait) = self.next_packet(now, settings.host.mtu) {
                return wait;
            }
            if stage.passes(now, self.next_wire(settings)) {
                return SendDecision::Ready;
            }
        }
        let arrangement = settings.classes[usize::from(self.flow.class)].arrangement;
        let backlog = arrangement.map_or(0, |arrangement| arrangement.backlog);
        let mut paced = Time::MAX;
        while self.held.as_ref().is_some_and(|held| held.packets < backlog) {
            match self.next_packet(now, settings.host.mtu) {
                Ok(next) => {
                    let packet = self.emit_apart(next, now, settings, true);
                    stage.push(now, packet);
                    self.held.iter_mut().for_each(|held| held.packets += 1);
                }
                Err(SendDecision::At(time)) => {
                    paced = time;
                    break;
                }
                Err(SendDecision::Blocked | SendDecision::Ready) => break,
            }
        }
        let is_first = stage.first().is_some_and(|packet| packet.slot == self.slot);
        let release = if is_first { stage.release(now, settings.wire.gap) } else { Time::MAX };
        if let Some(held) = &mut self.held {
            held.note(now, release > now && held.packets > 0);
        }
        match release.min(paced) {
            _ if release <= now => SendDecision::Ready,
            Time::MAX => SendDecision::Blocked,
            time => SendDecision::At(time),
        }
    }

    /// The next packet for the NIC, of a flow with a stage; `None` if none may go.
    #[inline(never)]
    pub fn take_with_stage(&mut self, now: Time, settings: &Settings, stages: &mut Stages) -> Option<Packet> {
        if self.decide(now, settings, stages) != SendDecision::Ready {
            return None;
        }
        let stage = stages.at(self.held.as_ref()?.stage);
        if stage.is_empty() {
            let next = self.next_packet(now, settings.host.mtu).ok()?;
            let packet = self.emit_apart(next, now, settings, false);
            stage.pass(now, u32::from(packet.wire) + settings.wire.gap);
            return Some(packet);
        }
        let packet = stage.pop(now, self.recovery.scoreboard.in_flight(), settings.wire.gap)?;
        let held = self.held.as_mut()?;
        held.packets -= 1;
        self.on_left(now, packet.data().position(), settings);
        Some(packet)
    }

    /// A packet has left the underlay: from here on the network may lose it.
    fn on_left(&mut self, now: Time, position: u32, settings: &Settings) {
        let was_idle = self.recovery.scoreboard.outstanding() == 0;
        let is_new = self.recovery.scoreboard.leave(position, now.ps());
        if was_idle && self.recovery.scoreboard.outstanding() > 0 {
            // RFC 6298, section 5.1.
            self.start_timer(now, settings);
        } else {
            let may_probe = self.may_probe();
            self.recovery.on_left(now, is_new, may_probe);
        }
    }

    /// Bytes of the next packet on the link.
    fn next_wire(&self, settings: &Settings) -> u32 {
        let (packet, _) = self.recovery.scoreboard.next().unwrap_or((0, true));
        let class = &settings.classes[usize::from(self.flow.class)];
        class.format.data(self.flow.payload(packet, settings.host.mtu)) + settings.wire.gap
    }

    /// When a packet that reached the NIC at `sent` was handed over: to the NIC, or to the stage before it.
    #[inline]
    pub fn handed_over(&self, sent: Time, stages: &mut Stages) -> Time {
        self.held.as_ref().map_or(sent, |held| stages.at(held.stage).handed_over(sent))
    }

    /// The underlay holds packets of the flow.
    #[inline]
    pub fn has_held(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.packets > 0)
    }

    /// The first packet of the flow that the underlay holds.
    fn first_held<'s>(&self, stages: &'s mut Stages) -> Option<&'s Packet> {
        let held = self.held.as_ref().filter(|held| held.packets > 0)?;
        stages.at(held.stage).first_of(self.slot)
    }

    /// Frame bytes of the next packet for the NIC.
    pub fn next_frame(&self, settings: &Settings, stages: &mut Stages) -> u32 {
        match self.first_held(stages) {
            Some(packet) => u32::from(packet.wire),
            None => self.next_wire(settings) - settings.wire.gap,
        }
    }

    /// Priority of the next packet for the NIC.
    #[inline]
    pub fn next_priority(&self, mtu: u32, stages: &mut Stages) -> u8 {
        if self.capabilities.priorities || self.held.is_some() {
            self.own_priority(mtu, stages)
        } else {
            self.grants.priority
        }
    }

    /// The same where packets have priorities of their own.
    #[inline(never)]
    fn own_priority(&self, mtu: u32, stages: &mut Stages) -> u8 {
        if let Some(packet) = self.first_held(stages) {
            return packet.priority;
        }
        let next = self.recovery.scoreboard.next().filter(|_| self.capabilities.priorities);
        let own = next.and_then(|(packet, again)| self.assigned_priority(packet, again, mtu));
        own.unwrap_or(self.grants.priority)
    }

    /// The priority that the law assigns to a packet.
    fn assigned_priority(&self, packet: u32, again: bool, mtu: u32) -> Option<u8> {
        self.law.priority(self.flow.position(packet, mtu), again)
    }

    /// Makes the next packet. Inlined, as it is made for every packet of data.
    #[inline(always)]
    pub fn emit(&mut self, next: NextPacket, now: Time, settings: &Settings) -> Packet {
        self.make(next, now, settings, false)
    }

    /// The same for a packet that the underlay `holds`, or for one that is sent at once.
    #[inline(always)]
    fn make(&mut self, next: NextPacket, now: Time, settings: &Settings, holds: bool) -> Packet {
        let class = &settings.classes[usize::from(self.flow.class)];
        let mtu = settings.host.mtu;
        let NextPacket { packet: position, again, on_token } = next;
        let flow = &self.flow;
        let payload = flow.payload(position, mtu);
        let mut packet = Packet::new(Kind::Data, flow.spec.source, flow.spec.destination, flow.sequence, self.slot);
        packet.ecmp_hash = match &mut self.paths {
            Some(paths) => paths.ecmp_hash(position, again),
            None => flow.ecmp_hash,
        };
        packet.wire = class.format.data(payload) as u16;
        packet.class = flow.class;
        packet.priority = self.grants.priority;
        packet.set_ecn_capable(class.ecn_capable);
        let mut data = packet.data_mut();
        data.set_position(position, flow.packets);
        data.set_payload(payload);
        data.set_sent(now);
        if self.capabilities.priorities || self.capabilities.signals {
            self.apply_law(&mut packet, again, mtu);
        }
        if let Some(tokens) = &mut self.grants.tokens {
            tokens.on_sent(now);
            if on_token && let Some(tag) = tokens.take() {
                packet.data_mut().set_tag(tag);
            }
        }
        if again {
            self.recovery.retransmitted_bytes += u64::from(payload);
        }
        let is_first = self.recovery.scoreboard.in_flight() == 0;
        if holds {
            self.recovery.scoreboard.hold();
        } else {
            self.recovery.scoreboard.sent(now.ps());
        }
        self.recovery.ignores_window = false;
        if let Some(reduction) = &mut self.reduction {
            reduction.0.on_sent(payload.into());
        }
        if holds {
            // Its timer starts when it leaves.
        } else if is_first {
            // RFC 6298, section 5.1.
            self.start_timer(now, settings);
            // What it was allowed to send it has not sent for a round trip.
            let rtt = self.recovery.rtt.smoothed();
            self.underused |= rtt > Time::ZERO && self.pacer.allowed_for(now) > rtt;
        } else if !again {
            self.recovery.on_sent(now);
        }
        self.pacer.on_sent(now, u32::from(packet.wire) + settings.wire.gap);
        let leaves_gap = if self.capabilities.acknowledgements {
            self.law.on_sent(now, payload);
            self.apply(mtu)
        } else {
            self.pacer.has_gaps()
        };
        if leaves_gap {
            self.plan_gap(settings);
        }
        packet
    }

    /// The same, out of line: for packets of flows with a stage.
    #[inline(never)]
    fn emit_apart(&mut self, next: NextPacket, now: Time, settings: &Settings, holds: bool) -> Packet {
        self.make(next, now, settings, holds)
    }

    /// What the law sets in a packet: its priority, and its tag.
    #[inline(never)]
    fn apply_law(&self, packet: &mut Packet, again: bool, mtu: u32) {
        if self.capabilities.priorities
            && let Some(priority) = self.assigned_priority(packet.data().position(), again, mtu)
        {
            packet.priority = priority;
        }
        if self.capabilities.signals
            && let Some(tag) = self.law.tag()
        {
            packet.data_mut().set_tag(tag);
        }
    }
}
