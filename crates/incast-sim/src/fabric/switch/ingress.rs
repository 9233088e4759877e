//! Ingress: a packet arrived. Routing chooses the egress port.

use super::Switch;
use crate::{
    config::LoadBalancing,
    fabric::{
        node::NodeContext,
        packet::{Kind, Packet, Telemetry},
        routing,
    },
    probe::EventKind,
};
use incast_units::Time;

impl Switch<'_> {
    /// A packet arrived at `port`.
    #[inline]
    pub fn on_packet(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if self.bare {
            self.arrive::<true>(port, packet, None, context);
        } else {
            self.arrive::<false>(port, packet, telemetry, context);
        }
    }

    /// Ingress. For `BARE`, here and on the rest of the way, see [`Switch::bare`].
    #[inline]
    fn arrive<const BARE: bool>(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.counters.arrived += 1;
        if self.inputs[port].accept(context.now(), packet, &self.ports[port].link) {
            if !BARE && packet.kind == Kind::Pause {
                self.on_notice(port, packet, context);
                return;
            }
            self.forward::<BARE>(port as u16, packet, telemetry, context);
        } else {
            self.recorder.packet(context.now(), self.node, port as u16, EventKind::Lost, packet);
        }
    }

    /// Routing: which of the equal-cost ports.
    #[inline(always)]
    pub(super) fn forward<const BARE: bool>(
        &mut self,
        ingress: u16,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if BARE {
            let port = self.rule.pick(packet.destination, routing::entropy(packet.entropy, self.salt));
            self.forward_by::<BARE>(port, packet, telemetry, context);
            return;
        }
        self.ingress = ingress;
        let entropy = match self.settings.switch.load_balancing {
            LoadBalancing::Ecmp => routing::entropy(packet.entropy, self.salt),
            LoadBalancing::Spray => self.spray.next_u32(),
            LoadBalancing::Pinned | LoadBalancing::Permuted => {
                return self.forward_pinned(*packet, telemetry, context);
            }
        };
        let port = self.rule.pick(packet.destination, entropy);
        self.forward_by::<BARE>(port, packet, telemetry, context);
    }

    #[inline(never)]
    fn forward_pinned(
        &mut self,
        mut packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let port = self.rule.pick_pinned(&mut packet);
        self.forward_by::<false>(port, &packet, telemetry, context);
    }

    #[inline(always)]
    fn forward_by<const BARE: bool>(
        &mut self,
        port: Option<u16>,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        match port {
            Some(port) if BARE || self.plain || self.by_port => {
                self.enqueue::<BARE>(usize::from(port), packet, telemetry, context);
            }
            Some(port) => self.enqueue_consulted(usize::from(port), *packet, telemetry, context),
            None => self.lose_unrouted(packet, context.now()),
        }
    }

    /// A packet has nowhere to go. The agent has not heard of it.
    #[cold]
    fn lose_unrouted(&mut self, packet: &Packet, now: Time) {
        self.counters.lost.0 += 1;
        self.counters.lost.1 += u64::from(packet.wire);
        self.recorder.packet(now, self.node, 0, EventKind::Lost, packet);
    }
}
