//! The sending end of a link: it serialises one packet at a time and delivers it a propagation delay later.

use super::{
    node::NodeContext,
    packet::{GAP, Packet, Telemetry},
    topology,
};
use crate::engine::random::Stream;
use incast_units::{Rate, Serializer, Time};

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Domain of the neighbour.
    pub domain: u32,
    /// The neighbour's port in that domain.
    pub entity: u32,
}

/// The transmitter of one direction of a link.
#[derive(Clone, Debug)]
pub struct Transmitter {
    /// The link is busy until here.
    pub free_at: Time,
    serializer: Serializer,
    delay: Time,
    peer: Peer,
    /// Frame bytes of the packet in service.
    in_service: u32,
    /// Its priority.
    service_priority: u8,
    /// The link is up.
    pub up: bool,
    /// Frame bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Its rate.
    pub rate: Rate,
    /// Random loss, where the link has any.
    loss: Option<Box<(f64, Stream)>>,
    /// Packets and bytes lost on the wire.
    pub lost: (u64, u64),
}

/// Purpose of the random stream of losses.
const LOSS_STREAM: u32 = 0x4c4f_5353;

impl Transmitter {
    /// One direction of `link`; `name` is unique among transmitters.
    pub fn new(link: &topology::Link, peer: Peer, seed: u64, name: u64) -> Self {
        Self {
            free_at: Time::ZERO,
            serializer: Serializer::new(link.rate),
            delay: link.delay,
            peer,
            in_service: 0,
            service_priority: 0,
            up: true,
            sent_bytes: 0,
            sent_packets: 0,
            rate: link.rate,
            loss: (link.loss > 0.0).then(|| Box::new((link.loss, Stream::new(seed, LOSS_STREAM, name)))),
            lost: (0, 0),
        }
    }

    /// Nothing is in service at `now`.
    #[inline]
    pub fn idle(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// Bytes in service at `now`, if they are of `priority`.
    #[inline]
    pub fn in_service(&self, now: Time, priority: u8) -> u64 {
        if self.free_at > now && self.service_priority == priority { u64::from(self.in_service) } else { 0 }
    }

    /// Bytes in service at `now`.
    #[inline]
    pub fn in_service_any(&self, now: Time) -> u64 {
        if self.free_at > now { u64::from(self.in_service) } else { 0 }
    }

    /// Starts to send. The link must be idle. Returns whether the packet will arrive: it may be lost on the wire.
    #[inline]
    pub fn send(&mut self, packet: Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) -> bool {
        let now = context.now();
        debug_assert!(self.idle(now), "one packet at a time");
        let wire = u32::from(packet.wire);
        self.free_at = self.serializer.end(now, wire + GAP, self.free_at == now);
        self.in_service = wire;
        self.service_priority = packet.priority;
        self.sent_bytes += u64::from(wire);
        self.sent_packets += 1;
        if let Some(loss) = &mut self.loss
            && loss.1.uniform() < loss.0
        {
            self.lost.0 += 1;
            self.lost.1 += u64::from(wire);
            return false;
        }
        context.send(self.peer, self.free_at + self.delay, packet, telemetry);
        true
    }
}

/// The receiving end of a link: knows whether what arrives survived.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// Frame bytes that arrived.
    pub bytes: u64,
    /// Time from the start of the transmission of a byte to its arrival is at least this.
    delay: Time,
    rate: Rate,
    /// When the link last went down; [`Time::MAX`] for never.
    down_at: Time,
    up: bool,
    /// Packets and bytes that were on the link when it went down, or came while it was.
    pub lost: (u64, u64),
}

impl Receiver {
    /// The other end of a direction of `link`.
    pub fn new(link: &topology::Link) -> Self {
        Self { bytes: 0, delay: link.delay, rate: link.rate, down_at: Time::MAX, up: true, lost: (0, 0) }
    }

    /// Takes an arrived packet; false if the link failed while it was on the way.
    #[inline]
    pub fn accept(&mut self, now: Time, packet: &Packet) -> bool {
        if self.down_at != Time::MAX && !self.survived(now, packet) {
            self.lost.0 += 1;
            self.lost.1 += u64::from(packet.wire);
            return false;
        }
        self.bytes += u64::from(packet.wire);
        true
    }

    #[cold]
    fn survived(&self, now: Time, packet: &Packet) -> bool {
        let on_the_way = self.delay + self.rate.time_of(incast_units::Bytes::new(u64::from(u32::from(packet.wire) + GAP)));
        self.up && self.down_at <= now.saturating_sub(on_the_way)
    }

    /// The link goes down or comes up.
    pub fn switch(&mut self, now: Time, up: bool) {
        self.up = up;
        if !up {
            self.down_at = now;
        }
    }
}
