//! The two ends of a link: it serialises one packet at a time and delivers it a propagation delay later.

use super::node::{NodeContext, Peer};
use crate::packet::{GAP, Packet, Telemetry};
use crate::topology;
use crate::{
    engine::random::Stream,
    fabric::config::Wire,
    probe::{PacketTrace, Step},
};
use incast_units::{Bytes, Rate, Rounding, Serializer, Time};

/// The sending end of one direction of a link. What every packet needs lies together, in 48 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct Transmitter {
    /// The link is busy until here.
    free_at: Time,
    delay: Time,
    sent_bytes: u64,
    /// [`None`] exactly if the link is simple: see [`Self::is_simple`].
    rare: Option<Box<Rare>>,
    peer: Peer,
    /// Picoseconds per byte, or zero where it is not so simple: not a whole number, another gap than Ethernet's,
    /// packets may be lost, or are recorded. A million-host fabric has six million of these, nearly all simple.
    ps_per_byte: u32,
    /// Frame bytes of the packet in service.
    in_service: u16,
    /// Its priority.
    service_priority: u8,
    up: bool,
}

/// What a link has that is not simple.
#[derive(Debug)]
struct Rare {
    rate: Rate,
    gap: u32,
    serializer: Serializer,
    loss: Option<(f64, Stream)>,
    lost: (u64, u64),
    /// The next packet arrives here at the earliest. One that takes no time, as 64 bytes at 800 Gbps in whole
    /// nanoseconds, would else arrive together with the one before it, in no order.
    next_arrival: Time,
    /// Recorded packets, and the number of this port.
    trace: Option<(Box<PacketTrace>, u16)>,
}

/// Purpose of the random stream of losses.
const LOSS_STREAM: u32 = 0x4c4f_5353;

impl Transmitter {
    /// One direction of `link`; `name` is unique among transmitters.
    pub fn new(link: &topology::Link, wire: Wire, peer: Peer, seed: u64, name: u64) -> Self {
        let mut link_end = Self {
            free_at: Time::ZERO,
            delay: link.delay,
            sent_bytes: 0,
            peer,
            ps_per_byte: 0,
            in_service: 0,
            service_priority: 0,
            up: true,
            rare: None,
        };
        let serializer = Serializer::new(link.rate, wire.rounding);
        if link.loss <= 0.0 && wire.gap == GAP {
            link_end.ps_per_byte = serializer.ps_per_byte();
        }
        if !link_end.is_simple() {
            let loss = (link.loss > 0.0).then(|| (link.loss, Stream::new(seed, LOSS_STREAM, name)));
            link_end.rare = Some(Box::new(Rare::new(link.rate, wire.gap, serializer, loss)));
        }
        link_end
    }

    /// Records what is sent from now on. Costs nothing elsewhere: recorded packets take the path of those that may be
    /// lost.
    pub fn watch(&mut self, trace: Box<PacketTrace>, port: u16) {
        let rate = self.rate();
        let plain = || Box::new(Rare::new(rate, GAP, Serializer::new(rate, Rounding::Exact), None));
        self.rare.get_or_insert_with(plain).trace = Some((trace, port));
        self.ps_per_byte = 0;
    }

    /// What was recorded.
    pub fn trace(&mut self) -> Option<&mut PacketTrace> {
        self.rare.as_mut()?.trace.as_mut().map(|(trace, _)| &mut **trace)
    }

    /// Its rate.
    #[inline]
    pub fn rate(&self) -> Rate {
        match &self.rare {
            Some(rare) => rare.rate,
            None => Rate::from_bps(8_000_000_000_000 / u64::from(self.ps_per_byte)),
        }
    }

    /// Where it ends.
    #[inline]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Its propagation delay.
    #[inline]
    pub fn delay(&self) -> Time {
        self.delay
    }

    /// How long it takes to send a packet, rounded up where the time depends on those before.
    fn time_of(&self, packet: &Packet) -> Time {
        let Some(rare) = &self.rare else { return self.end_by_bytes(Time::ZERO, packet) };
        let bytes = u64::from(packet.wire) + u64::from(rare.gap);
        rare.serializer.rounding().of(rare.rate.time_of(Bytes::new(bytes)))
    }

    /// When the link is free again.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// No packet is lost or recorded, and each takes whole picoseconds per byte: one that is put on the link before its
    /// time differs in nothing from one that is put there in time.
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.ps_per_byte != 0
    }

    /// Nothing is in service at `now`.
    #[inline]
    pub fn idle(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// Bytes in service at `now`, if they are of `priority`.
    #[inline]
    pub fn in_service(&self, now: Time, priority: u8) -> u64 {
        if self.service_priority == priority { self.in_service_any(now) } else { 0 }
    }

    /// Bytes in service at `now`.
    #[inline]
    pub fn in_service_any(&self, now: Time) -> u64 {
        if self.free_at > now { u64::from(self.in_service) } else { 0 }
    }

    /// Frame bytes sent.
    #[inline]
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Packets and bytes lost on the wire.
    pub fn lost(&self) -> (u64, u64) {
        self.rare.as_ref().map_or((0, 0), |rare| rare.lost)
    }

    /// Packets may be lost on the wire.
    pub fn is_lossy(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.loss.is_some())
    }

    /// The link is up.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The link goes down or comes up.
    pub fn switch(&mut self, up: bool) {
        self.up = up;
    }

    /// Starts to send at `now`; the link must be idle then. False if the packet will be lost on the wire.
    #[inline(always)]
    pub fn send(
        &mut self,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) -> bool {
        debug_assert!(self.idle(now), "one packet at a time");
        if self.ps_per_byte == 0 {
            return self.send_rare(now, packet, telemetry, context);
        }
        self.free_at = self.end_by_bytes(now, packet);
        self.occupy(packet);
        context.send(self.peer, self.free_at + self.delay, packet, telemetry);
        true
    }

    /// The same for a packet without INT records whose ECMP hash is replaced.
    #[inline(always)]
    pub fn send_with_hash(&mut self, now: Time, packet: &Packet, hash: u32, context: &mut impl NodeContext) -> bool {
        debug_assert!(self.idle(now), "one packet at a time");
        if self.ps_per_byte == 0 {
            return self.send_rare(now, &packet.with_hash(hash), None, context);
        }
        self.free_at = self.end_by_bytes(now, packet);
        self.occupy(packet);
        context.send_with_hash(self.peer, self.free_at + self.delay, packet, hash);
        true
    }

    /// Not cold: all packets pass here on links that lose packets or round times.
    #[inline(never)]
    fn send_rare(
        &mut self,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) -> bool {
        let Some(rare) = self.rare.as_deref_mut() else { unreachable!("a link that is not simple") };
        let lost = rare.loses(packet);
        let bytes = u32::from(packet.wire) + rare.gap;
        let end = rare.serializer.end(now, bytes, self.free_at == now);
        let arrival = (!lost).then(|| (end + self.delay).max(rare.next_arrival));
        if let Some((trace, port)) = &mut rare.trace {
            trace.record(now, *port, Step::Sent { end, arrival }, packet);
        }
        if let Some(arrival) = arrival {
            rare.next_arrival = arrival + Time::from_ps(1);
            context.send(self.peer, arrival, packet, telemetry);
        }
        self.free_at = end;
        self.occupy(packet);
        !lost
    }

    /// When the transmission of a packet that starts at `now` ends, on a link of whole picoseconds per byte.
    #[inline(always)]
    fn end_by_bytes(&self, now: Time, packet: &Packet) -> Time {
        now + Time::from_ps(u64::from(u32::from(packet.wire) + GAP) * u64::from(self.ps_per_byte))
    }

    #[inline(always)]
    fn occupy(&mut self, packet: &Packet) {
        self.in_service = packet.wire;
        self.service_priority = packet.priority;
        self.sent_bytes += u64::from(packet.wire);
    }
}

impl Rare {
    fn new(rate: Rate, gap: u32, serializer: Serializer, loss: Option<(f64, Stream)>) -> Self {
        Self { rate, gap, serializer, loss, lost: (0, 0), next_arrival: Time::ZERO, trace: None }
    }

    fn loses(&mut self, packet: &Packet) -> bool {
        let Some((probability, stream)) = &mut self.loss else { return false };
        let lost = stream.uniform() < *probability;
        if lost {
            self.lost.0 += 1;
            self.lost.1 += u64::from(packet.wire);
        }
        lost
    }
}

/// The receiving end of a link: knows whether what arrives survived.
#[derive(Debug, Default)]
pub struct Receiver {
    bytes: u64,
    failure: Option<Box<Failure>>,
}

/// What is known of a link that has failed at least once.
#[derive(Debug, Default)]
struct Failure {
    /// When it last went down.
    down_at: Time,
    up: bool,
    lost: (u64, u64),
}

impl Receiver {
    /// Frame bytes that arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes that were on the link when it went down, or came while it was.
    pub fn lost(&self) -> (u64, u64) {
        self.failure.as_ref().map_or((0, 0), |failure| failure.lost)
    }

    /// Takes an arrived packet; false if the link failed while it was on the way. `reverse` is the other direction
    /// of the same link, which has the same rate and delay.
    #[inline]
    pub fn accept<'t>(&mut self, now: Time, packet: &Packet, reverse: impl FnOnce() -> &'t Transmitter) -> bool {
        if let Some(failure) = &mut self.failure
            && !failure.spares(now, packet, reverse())
        {
            return false;
        }
        self.bytes += u64::from(packet.wire);
        true
    }

    /// The link has never gone down.
    #[inline]
    pub fn is_sound(&self) -> bool {
        self.failure.is_none()
    }

    /// The link goes down or comes up.
    pub fn switch(&mut self, now: Time, up: bool) {
        let failure = self.failure.get_or_insert_default();
        failure.up = up;
        if !up {
            failure.down_at = now;
        }
    }
}

impl Failure {
    #[cold]
    fn spares(&mut self, now: Time, packet: &Packet, reverse: &Transmitter) -> bool {
        let serialisation = reverse.time_of(packet);
        let started = now.saturating_sub(reverse.delay() + serialisation);
        let survived = self.up && self.down_at <= started;
        if !survived {
            self.lost.0 += 1;
            self.lost.1 += u64::from(packet.wire);
        }
        survived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_packet_needs_lies_together() {
        assert_eq!((size_of::<Transmitter>(), size_of::<Receiver>()), (48, 16));
    }

    fn transmitter(rate: Rate, loss: f64, wire: Wire) -> Transmitter {
        let link = topology::Link { rate, delay: Time::from_ns(500), loss };
        Transmitter::new(&link, wire, Peer { domain: 0, entity: 0 }, 1, 2)
    }

    #[test]
    fn a_simple_link_knows_its_rate() {
        // Bits of a byte times picoseconds of a second: 2^15 5^12. All rates of whole picoseconds per byte divide it.
        let divisors = (0..16).flat_map(|twos| (0..13).map(move |fives| 2u64.pow(twos) * 5u64.pow(fives)));
        let mut simple = 0;
        for ps_per_byte in divisors {
            let rate = Rate::from_bps(8_000_000_000_000 / ps_per_byte);
            let link = transmitter(rate, 0.0, Wire::default());
            assert_eq!(link.rate(), rate);
            // Below 2 kbps a byte takes more picoseconds than fit.
            assert_eq!(link.is_simple(), ps_per_byte <= u64::from(u32::MAX), "{rate}");
            simple += u32::from(link.is_simple());
        }
        assert!(simple > 150, "{simple}");
        for gbps in [1, 10, 25, 40, 50, 100, 200, 400, 800] {
            assert!(transmitter(Rate::from_gbps(gbps), 0.0, Wire::default()).is_simple(), "{gbps} Gbps");
        }
    }

    #[test]
    fn a_link_that_is_not_simple_knows_its_rate() {
        let (plain, whole) = (Wire::default(), Rate::from_gbps(100));
        let not_simple = [1, 1_000_000_007, 56_000_000_000, 99_999_999_999, 8_000_000_000_001, u64::MAX];
        let gap = Wire { gap: GAP + 1, ..plain };
        let rounded = Wire { rounding: Rounding::WholeNanoseconds, ..plain };
        let others = [(whole, 0.0, gap), (whole, 0.0, rounded), (whole, 0.1, plain)];
        for (rate, loss, wire) in not_simple.map(|bps| (Rate::from_bps(bps), 0.0, plain)).into_iter().chain(others) {
            let link = transmitter(rate, loss, wire);
            assert_eq!((link.is_simple(), link.rate()), (false, rate), "{wire:?}, loss {loss}");
        }
    }
}
