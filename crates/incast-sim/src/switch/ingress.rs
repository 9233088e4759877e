//! Ingress: a packet arrived. Routing chooses the egress port.

use super::{Switch, Way};
use crate::{
    config::LoadBalancing,
    fabric::{
        node::{Arrivals, NodeContext},
        packet::{Kind, Packet, Telemetry},
        queue::Origin,
    },
    flow_control::pause::NO_QUEUE,
    probe::EventKind,
    routing,
};
use incast_units::Time;

impl Switch<'_> {
    /// A packet arrived at `port`, and something else happens at the same instant, but later. The full way does for
    /// every switch what the short ones do for theirs, whose events, of links, come before arrivals: no need of
    /// another copy of the short ones.
    #[inline]
    pub fn on_packet(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.arrive(port, packet, telemetry, context);
    }

    /// Packets arrived, each at its port.
    #[inline]
    pub fn on_packets<'p>(&mut self, arrivals: &mut impl Arrivals<'p>) {
        match self.way {
            Way::Bare => self.arrive_bare_all(arrivals),
            Way::Trims => self.arrive_trimming_all(arrivals),
            Way::Full => {
                while let Some((port, packet, telemetry)) = arrivals.next() {
                    self.arrive(port, packet, telemetry, arrivals.context());
                }
            }
        }
    }

    /// Ingress. Each [`Way`] has a function of its own, so that none saves registers for another.
    #[inline(never)]
    fn arrive(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.counters.arrived += 1;
        if self.inputs[port].accept(context.now(), packet, || &self.ports[port].link) {
            if packet.priority == NO_QUEUE {
                self.on_link_control(port, packet, context);
                return;
            }
            let has_credits = self.credits.is_some();
            if has_credits {
                self.receive_credits(port, packet);
            }
            self.forward(port as u16, packet, telemetry, context);
            if has_credits {
                self.tell_credits(port as u16, packet.priority, context);
            }
        } else {
            self.recorder.packet(context.now(), self.node, port as u16, EventKind::Lost, packet);
        }
    }

    /// Routing: which of the equal-cost ports.
    #[inline(always)]
    pub(super) fn forward(
        &mut self,
        ingress: u16,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.origin = Origin { port: ingress, priority: packet.priority };
        match self.way_of(packet) {
            Some((port, entropy)) if entropy != packet.entropy => {
                self.forward_changed(port, packet.with_entropy(entropy), telemetry, context);
            }
            way => self.forward_by(way.map(|(port, _)| port), packet, telemetry, context),
        }
    }

    #[inline(never)]
    fn forward_changed(
        &mut self,
        port: u16,
        packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.forward_by(Some(port), &packet, telemetry, context);
    }

    /// The port that a packet takes, and the entropy with which it goes on.
    #[inline(always)]
    pub(super) fn way_of(&mut self, packet: &Packet) -> Option<(u16, u32)> {
        let entropy = match self.settings.switch.load_balancing {
            LoadBalancing::Pinned | LoadBalancing::Permuted => return self.rule.pick_pinned(packet),
            LoadBalancing::Ecmp => return Some((self.port_by_hash(packet)?, packet.entropy)),
            LoadBalancing::Spray => self.spray.next_u32(),
        };
        Some((self.rule.pick(packet.destination, entropy)?, packet.entropy))
    }

    /// The port that a packet takes by its hash.
    #[inline(always)]
    pub(super) fn port_by_hash(&self, packet: &Packet) -> Option<u16> {
        self.rule.pick(packet.destination, routing::entropy(packet.entropy, self.salt))
    }

    #[inline(always)]
    fn forward_by(
        &mut self,
        port: Option<u16>,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        match port {
            Some(port) if self.channels.is_some() => {
                self.enqueue_on_channel(usize::from(port), *packet, telemetry, context);
            }
            Some(port) if self.plain || self.by_port => {
                self.enqueue(usize::from(port), packet, telemetry, context);
            }
            Some(port) => self.enqueue_consulted(usize::from(port), *packet, telemetry, context),
            None => self.lose_unrouted(packet, context.now()),
        }
    }

    /// What concerns a link and stands in no queue arrived.
    #[cold]
    #[inline(never)]
    fn on_link_control(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        match packet.kind {
            Kind::MarkerAck => self.on_answer(packet, context),
            Kind::FlowControl => self.on_update(port, packet, context),
            _ => self.on_notice(port, packet, context),
        }
    }

    /// A packet has nowhere to go. The agent has not heard of it.
    #[cold]
    pub(super) fn lose_unrouted(&mut self, packet: &Packet, now: Time) {
        self.counters.lost.0 += 1;
        self.counters.lost.1 += u64::from(packet.wire);
        self.recorder.packet(now, self.node, 0, EventKind::Lost, packet);
    }
}
