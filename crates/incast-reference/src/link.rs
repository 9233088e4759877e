//! One port: the link that leaves it, and what is known of the one that ends at it.

use super::{
    Packet, Ps,
    agenda::{Agenda, What},
};
use incast_sim::{engine::random::Stream, topology::Topology};

/// Preamble and gap.
pub const GAP: u32 = 20;

/// The ports of all cables in the order of the cables: (node, port) at either end of one.
pub fn ends(topology: &Topology, cable: usize) -> [(u32, u32); 2] {
    let port = |node: u32| {
        let before = &topology.cables[..cable];
        (node, before.iter().filter(|other| other.a == node || other.b == node).count() as u32)
    };
    let cable = &topology.cables[cable];
    [port(cable.a), port(cable.b)]
}

/// See the module.
#[derive(Debug)]
pub struct Link {
    node: u32,
    port: u32,
    peer: (u32, u32),
    /// Bits per second.
    pub rate: u64,
    pub delay: Ps,
    loss: f64,
    losses: Stream,
    /// The busy period: when it began, bytes sent since, and when it ends as things stand.
    began: Ps,
    bytes: u128,
    free_at: Ps,
    /// Where arrivals come first, a transmission lasts until its completion, not only until its time.
    arrivals_first: bool,
    completed: bool,
    /// The last packet's bytes and priority.
    serving: (u32, u8),
    /// The cable is up.
    pub up: bool,
    went_down: Option<Ps>,
    /// Frame bytes sent and received.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Packets and bytes lost on this link, at either end.
    pub lost: (u64, u64),
}

impl Link {
    /// The links of a node by port.
    pub fn all_of(topology: &Topology, node: u32, seed: u64, arrivals_first: bool) -> Vec<Self> {
        let mut links = Vec::new();
        for (index, cable) in topology.cables.iter().enumerate() {
            for (end, peer) in [(0, 1), (1, 0)] {
                let ends = ends(topology, index);
                if ends[end].0 != node {
                    continue;
                }
                let port = ends[end].1;
                links.push(Self {
                    node,
                    port,
                    peer: ends[peer],
                    rate: cable.link.rate.bps(),
                    delay: cable.link.delay.ps(),
                    loss: cable.link.loss,
                    losses: Stream::new(seed, 0x4c4f_5353, u64::from(node) << 20 | u64::from(port)),
                    began: 0,
                    bytes: 0,
                    free_at: 0,
                    arrivals_first,
                    completed: true,
                    serving: (0, 0),
                    up: true,
                    went_down: None,
                    sent_bytes: 0,
                    received_bytes: 0,
                    lost: (0, 0),
                });
            }
        }
        links
    }

    /// Something is in service.
    pub fn busy(&self, now: Ps) -> bool {
        self.free_at > now || self.arrivals_first && !self.completed
    }

    /// The transmission has ended.
    pub fn complete(&mut self) {
        self.completed = true;
    }

    /// Bytes in service, of one priority or of any.
    pub fn in_service(&self, now: Ps, priority: Option<u8>) -> u64 {
        let counts = self.free_at > now && priority.is_none_or(|priority| priority == self.serving.1);
        if counts { u64::from(self.serving.0) } else { 0 }
    }

    /// Sends a packet: its end is the exact one of the busy period, rounded up. The packet may be lost on the way,
    /// and comes back here for the record.
    #[must_use]
    pub fn send(&mut self, now: Ps, mut packet: Packet, agenda: &mut Agenda) -> Option<Packet> {
        assert!(!self.busy(now) && self.up);
        if self.free_at < now {
            (self.began, self.bytes) = (now, 0);
        }
        self.bytes += u128::from(packet.wire + GAP);
        self.free_at = self.began + (self.bytes * 8_000_000_000_000).div_ceil(u128::from(self.rate)) as u64;
        self.completed = false;
        self.serving = (packet.wire, packet.priority);
        self.sent_bytes += u64::from(packet.wire);
        packet.started = now;
        packet.links += 1;
        agenda.add(self.free_at, self.node, self.port, What::Completion);
        if self.loss > 0.0 && self.losses.uniform() < self.loss {
            self.lose(&packet);
            return Some(packet);
        }
        agenda.add(self.free_at + self.delay, self.peer.0, self.peer.1, What::Arrival(packet));
        None
    }

    /// Takes a packet from the other end; false if the cable failed under it.
    pub fn receive(&mut self, packet: &Packet) -> bool {
        if !self.up || self.went_down.is_some_and(|down| down > packet.started) {
            self.lose(packet);
            return false;
        }
        self.received_bytes += u64::from(packet.wire);
        true
    }

    /// The cable goes down or comes up.
    pub fn switch(&mut self, now: Ps, up: bool) {
        self.up = up;
        if !up {
            self.went_down = Some(now);
        }
    }

    fn lose(&mut self, packet: &Packet) {
        self.lost.0 += 1;
        self.lost.1 += u64::from(packet.wire);
    }
}
