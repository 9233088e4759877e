//! The contract of agents that move flows to other ports without reordering them.
//!
//! Such an agent sends a marker behind a flow's packets in their queue and holds the flow's later packets. The marker
//! takes the path of the flow's data until an agent answers it. When the answer arrives, the agent releases what it
//! held, out of the new port.

use super::{FlowAddress, SwitchView};
use incast_units::Time;

/// A marker, as the agents on its path see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The number that its sender gave it.
    pub name: u64,
    /// The agent of this switch sent it.
    pub is_own: bool,
}

/// What becomes of a packet that does not enter a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diversion {
    /// It is held, behind those that are held in this place already. It takes buffer like a queued packet.
    Hold {
        /// The place, from 0.
        place: u16,
        /// The port that it probably takes when it is released.
        port: u16,
    },
    /// It is a marker: it is consumed, and an answer is sent to the switch that sent it.
    Answer,
}

/// An action of the switch, apart from the packet of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a marker of a flow out of a port. When it is answered, [`Rerouting::on_answer`] is called with its name.
    Mark {
        /// The port.
        port: u16,
        /// Its length in bytes.
        bytes: u16,
        /// Ingress port of the flow's packets.
        ingress: u16,
        /// Their priority.
        priority: u8,
        /// The flow.
        flow: FlowAddress,
        /// Deflections of its packets, that by this switch included.
        deflections: u8,
        /// The place whose packets are released after the answer.
        place: u16,
        /// The number of the marker.
        name: u64,
    },
    /// Send the switch before this one, at an ingress port, a Congestion Isolation Message (IEEE 802.1Qcz): its agent's
    /// [`Rerouting::on_isolation`] is called.
    Isolate {
        /// The ingress port.
        ingress: u16,
        /// Sending host of the flow.
        source: u32,
        /// Its number there.
        sequence: u32,
    },
    /// Forward the packets that are held in a place, in order.
    Release {
        /// The place.
        place: u16,
        /// Out of this port, and whether that is a deflection; `None` for the port that routing gives each packet.
        to: Option<(u16, bool)>,
    },
}

/// What an agent that reroutes reads of the switch, in addition to [`SwitchView`].
pub trait ReroutingView {
    /// Ports of non-minimal paths to a host that do not return to this switch: loop-free alternates (RFC 5286).
    fn non_minimal_ports(&self, destination: u32) -> impl Iterator<Item = u16>;
    /// The port's neighbour is a host.
    fn leads_to_host(&self, port: u16) -> bool;
    /// Virtual channels of each priority that classes have: priorities `n * k` to `n * k + n - 1` are one of them.
    fn channels(&self) -> u8;
    /// A packet from `ingress` may leave by `port`, with channels left for the usual path to its destination.
    fn has_channels(&self, ingress: u16, port: u16, priority: u8, destination: u32) -> bool;
    /// A marker of so many bytes could enter a queue of a port now.
    fn has_room(&self, port: u16, bytes: u32) -> bool;
    /// The priority, virtual channel included, with which a packet from `ingress` leaves by `port`.
    fn leaving_priority(&self, ingress: u16, port: u16, priority: u8) -> u8;
    /// The port that routing gives packets of a flow now; `None` if there is no route.
    fn routed_port(&self, flow: &FlowAddress) -> Option<u16>;
    /// The link of a port is up.
    fn is_up(&self, port: u16) -> bool;
    /// Bytes that are held for a port.
    fn held_bytes(&self, port: u16) -> u64;
}

/// The half of an agent that reroutes.
pub trait Rerouting {
    /// A marker of this agent was answered.
    fn on_answer(&mut self, now: Time, name: u64);
    /// The next switch at a port says that a flow which leaves by it stands in a long queue there.
    fn on_isolation(&mut self, _now: Time, _port: u16, _source: u32, _sequence: u32) {}
    /// Routes have changed, with links that went down or came up.
    fn on_routes(&mut self, switch: &impl SwitchView);
    /// The next action. Called until there is none, after each packet that enters, answer, timer and change of routes.
    fn next_action(&mut self) -> Option<Action>;
}

/// Stands for both halves where nothing is rerouted.
#[derive(Clone, Copy, Debug)]
pub struct NoRerouting;

impl ReroutingView for NoRerouting {
    fn non_minimal_ports(&self, _destination: u32) -> impl Iterator<Item = u16> {
        std::iter::empty()
    }
    fn leads_to_host(&self, _port: u16) -> bool {
        false
    }
    fn channels(&self) -> u8 {
        1
    }
    fn has_channels(&self, _ingress: u16, _port: u16, _priority: u8, _destination: u32) -> bool {
        true
    }
    fn has_room(&self, _port: u16, _bytes: u32) -> bool {
        true
    }
    fn leaving_priority(&self, _ingress: u16, _port: u16, priority: u8) -> u8 {
        priority
    }
    fn routed_port(&self, _flow: &FlowAddress) -> Option<u16> {
        None
    }
    fn is_up(&self, _port: u16) -> bool {
        true
    }
    fn held_bytes(&self, _port: u16) -> u64 {
        0
    }
}

impl Rerouting for NoRerouting {
    fn on_answer(&mut self, _now: Time, _name: u64) {}
    fn on_routes(&mut self, _switch: &impl SwitchView) {}
    fn next_action(&mut self) -> Option<Action> {
        None
    }
}
