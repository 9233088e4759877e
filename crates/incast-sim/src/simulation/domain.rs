//! A domain of the simulation: one node, or several that are joined by short links.

use crate::{
    engine::{self, Context, Event, Messages},
    fabric::node::{Arrivals, NodeContext, Peer, class},
    host::Host,
    packet::{Packet, Telemetry},
    probe::PacketTrace,
    switch::Switch,
};
use incast_units::Time;

/// A switch or a host.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Node<'a> {
    /// See [`Switch`].
    Switch(Switch<'a>),
    /// See [`Host`].
    Host(Host<'a>),
}

impl Node<'_> {
    fn next_sample(&self) -> Time {
        match self {
            Self::Switch(switch) => switch.next_sample(),
            Self::Host(host) => host.next_sample(),
        }
    }
    fn sample(&mut self, context: &mut impl NodeContext) {
        match self {
            Self::Switch(switch) => switch.sample(context),
            Self::Host(host) => host.sample(),
        }
    }
    fn conserves(&self) -> bool {
        match self {
            Self::Switch(switch) => switch.conserves(),
            Self::Host(host) => host.conserves(),
        }
    }

    /// What was recorded of packets: on its links, then of its events.
    pub fn traces(&mut self) -> Vec<&mut PacketTrace> {
        match self {
            Self::Switch(switch) => switch.traces(),
            Self::Host(host) => host.traces(),
        }
    }
}

/// See the module. Ports of all its nodes are numbered through: the domain's entities.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Domain<'a> {
    /// One node; entity and port are the same.
    Single(Node<'a>),
    /// Several nodes.
    Cluster {
        /// The nodes.
        nodes: Vec<Node<'a>>,
        /// Node index and port of each entity.
        places: Vec<(u32, u32)>,
    },
}

/// The engine's context, as nodes use it.
impl<'a> NodeContext for Context<'_, Domain<'a>> {
    #[inline]
    fn now(&self) -> Time {
        Context::now(self)
    }
    #[inline(always)]
    fn send(&mut self, peer: Peer, arrival: Time, packet: &Packet, telemetry: Option<&Telemetry>) {
        Context::send(self, peer.domain, peer.entity, arrival, packet, telemetry);
    }
    #[inline(always)]
    fn send_with_hash(&mut self, peer: Peer, arrival: Time, packet: &Packet, hash: u32) {
        let Peer { domain, entity } = peer;
        Context::send_changed(self, domain, entity, arrival, packet, None, |packet| packet.ecmp_hash = hash);
    }
    #[inline(always)]
    fn prefetch(&self, peer: Peer) {
        Context::prefetch(self, peer.domain);
    }
    #[inline]
    fn more_now(&self) -> bool {
        Context::more_now(self)
    }
    #[inline]
    fn schedule(&mut self, time: Time, event: Event) {
        Context::schedule(self, time, event);
    }
}

/// Messages to the only node of a domain, where entity and port are the same.
struct ToSingle<'n, 'm, 'c, 'a>(&'n mut Messages<'m, 'c, Domain<'a>>);

impl<'c, 'a> Arrivals<'c> for ToSingle<'_, '_, 'c, 'a> {
    type Context = Context<'c, Domain<'a>>;
    #[inline(always)]
    fn next(&mut self) -> Option<(usize, &'c Packet, Option<&'c Telemetry>)> {
        let (entity, packet, telemetry) = self.0.next()?;
        Some((entity as usize, packet, telemetry))
    }
    #[inline(always)]
    fn peek(&self, ahead: usize) -> Option<(usize, &'c Packet)> {
        self.0.peek(ahead).map(|(entity, packet)| (entity as usize, packet))
    }
    #[inline(always)]
    fn context(&mut self) -> &mut Self::Context {
        self.0.context()
    }
}

impl<'a> engine::Domain for Domain<'a> {
    type Message = Packet;
    type Attachment = Telemetry;
    const ARRIVAL: u8 = class::ARRIVAL;

    #[inline]
    fn on_message(
        &mut self,
        entity: u32,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut Context<'_, Self>,
    ) {
        let (node, port) = match self {
            Self::Single(node) => (node, entity),
            Self::Cluster { nodes, places } => {
                let (node, port) = places[entity as usize];
                (&mut nodes[node as usize], port)
            }
        };
        match node {
            Node::Switch(switch) => switch.on_packet(port as usize, packet, telemetry, context),
            Node::Host(host) => host.on_packet(packet, telemetry, context),
        }
    }

    #[inline]
    fn on_messages(&mut self, messages: &mut Messages<'_, '_, Self>) {
        match self {
            Self::Single(Node::Switch(switch)) => switch.on_packets(ToSingle(messages)),
            Self::Single(Node::Host(host)) => {
                while let Some((_, packet, telemetry)) = messages.next() {
                    host.on_packet(packet, telemetry, messages.context());
                }
            }
            Self::Cluster { .. } => {
                while let Some((entity, packet, telemetry)) = messages.next() {
                    self.on_message(entity, packet, telemetry, messages.context());
                }
            }
        }
    }

    #[inline]
    fn on_event(&mut self, event: Event, context: &mut Context<'_, Self>) {
        let node = match self {
            Self::Single(node) => node,
            Self::Cluster { nodes, places } => &mut nodes[places[event.entity as usize].0 as usize],
        };
        match node {
            Node::Switch(switch) => switch.on_event(event, context),
            Node::Host(host) => host.on_event(event, context),
        }
    }

    #[inline]
    fn next_sample(&self) -> Time {
        match self {
            Self::Single(node) => node.next_sample(),
            Self::Cluster { nodes, .. } => nodes.iter().map(Node::next_sample).min().unwrap_or(Time::MAX),
        }
    }

    fn sample(&mut self, context: &mut Context<'_, Self>) {
        let due = self.next_sample();
        match self {
            Self::Single(node) => node.sample(context),
            Self::Cluster { nodes, .. } => {
                nodes.iter_mut().filter(|node| node.next_sample() == due).for_each(|node| node.sample(context));
            }
        }
    }

    #[inline]
    fn finish_window(&mut self, limit: Time, context: &mut Context<'_, Self>) -> Time {
        match self {
            Self::Single(Node::Switch(switch)) => switch.finish_window(limit, context),
            // The switches of a cluster have an event for each departure.
            Self::Single(Node::Host(_)) | Self::Cluster { .. } => Time::MAX,
        }
    }

    #[inline]
    fn prefetch(&self, near: bool) {
        match self {
            Self::Single(Node::Switch(switch)) => switch.prefetch(near),
            Self::Single(Node::Host(host)) => host.prefetch(near),
            Self::Cluster { .. } => {}
        }
    }

    #[inline]
    fn looks_ahead(&self) -> bool {
        matches!(self, Self::Single(Node::Switch(switch)) if switch.looks_ahead())
    }

    #[inline]
    fn prefetch_message(&self, entity: u32, packet: &Packet) {
        if let Self::Single(node) = self {
            match node {
                Node::Switch(switch) => switch.prefetch_packet(entity as usize, packet),
                Node::Host(host) => host.prefetch_packet(packet),
            }
        }
    }

    #[inline]
    fn next_domain(&self, _entity: u32, packet: &Packet) -> Option<u32> {
        match self {
            Self::Single(Node::Switch(switch)) => switch.next_domain(packet),
            _ => None,
        }
    }

    fn describe(&self, event: Event) -> String {
        let node = match self {
            Self::Single(node) => node,
            Self::Cluster { nodes, places } => &nodes[places[event.entity as usize].0 as usize],
        };
        let kind = class::name(event.class);
        match node {
            Node::Switch(switch) => format!("{kind} of node {} (a switch)", switch.node()),
            Node::Host(host) => {
                let flow = host.flow_of(event).map(|(flow, to)| format!(", of its flow {flow} to host {to}"));
                format!("{kind} of node {} (a host){}", host.node(), flow.unwrap_or_default())
            }
        }
    }

    fn is_consistent(&self) -> bool {
        match self {
            Self::Single(node) => node.conserves(),
            Self::Cluster { nodes, .. } => nodes.iter().all(Node::conserves),
        }
    }
}

impl<'a> Domain<'a> {
    /// Its nodes.
    pub fn nodes(&self) -> &[Node<'a>] {
        match self {
            Self::Single(node) => std::slice::from_ref(node),
            Self::Cluster { nodes, .. } => nodes,
        }
    }

    /// Its nodes.
    pub fn nodes_mut(&mut self) -> &mut [Node<'a>] {
        match self {
            Self::Single(node) => std::slice::from_mut(node),
            Self::Cluster { nodes, .. } => nodes,
        }
    }
}
