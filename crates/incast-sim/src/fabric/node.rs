//! What every node has: a place in the simulation, and a few things it may do.

use crate::engine::Event;
use crate::packet::{Packet, Telemetry};
use incast_units::Time;

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Domain of the neighbour.
    pub domain: u32,
    /// The neighbour's port in that domain.
    pub entity: u32,
}

/// All that a node may do to the world outside itself: put packets on its own links, and set its own alarm.
pub trait NodeContext {
    /// Simulated time.
    fn now(&self) -> Time;
    /// A packet will arrive at the far end of a link of this node.
    fn send(&mut self, peer: Peer, arrival: Time, packet: &Packet, telemetry: Option<&Telemetry>);
    /// The same with another hash, for which the packet need not be copied once more. Nothing travels with it.
    #[inline]
    fn send_with_hash(&mut self, peer: Peer, arrival: Time, packet: &Packet, hash: u32) {
        self.send(peer, arrival, &packet.with_hash(hash), None);
    }
    /// A packet will probably be sent to this neighbour soon: prefetches where it will be written.
    #[inline]
    fn prefetch(&self, _peer: Peer) {}
    /// Another event may follow at this instant, of this node or of one that shares its domain. No result may depend on
    /// which of the two it is.
    fn more_now(&self) -> bool;
    /// Wakes this node.
    fn schedule(&mut self, time: Time, event: Event);
}

/// Packets that arrive at a node one after the other, with nothing else in between.
pub trait Arrivals<'p> {
    /// See [`Self::context`].
    type Context: NodeContext;
    /// The next packet, its port and its INT records. The context's time becomes its arrival time.
    fn next(&mut self) -> Option<(usize, &'p Packet, Option<&'p Telemetry>)>;
    /// The packet that will probably come after `ahead` others, and its port. Only for prefetching and for values that
    /// follow from the packet alone. No result may depend on it.
    fn peek(&self, ahead: usize) -> Option<(usize, &'p Packet)>;
    /// What the node may do about it.
    fn context(&mut self) -> &mut Self::Context;
}

/// Kinds of event in a node, in their order at one instant.
pub mod class {
    /// Links go down or up and routing tables change, before anything else happens at that time.
    pub const LINK: u8 = 0;
    /// A switch's transmission has ended and more is waiting: the link is taken before newcomers see it.
    pub const DEPARTURE: u8 = 1;
    /// A packet arrived.
    pub const ARRIVAL: u8 = 2;
    /// A flow's retransmission timer.
    pub const RETRANSMISSION: u8 = 3;
    /// A flow may go on: its pace or its underlay allows the next packet.
    pub const RELEASE: u8 = 4;
    /// A law's own timer.
    pub const LAW: u8 = 5;
    /// A delayed acknowledgement is due.
    pub const DELAYED_ACK: u8 = 6;
    /// The receiver-driven scheduler's own timer.
    pub const SCHEDULER: u8 = 7;
    /// A flow starts.
    pub const FLOW_START: u8 = 8;
    /// An in-switch agent's own timer.
    pub const AGENT: u8 = 10;
    /// A pause takes effect, expires, or must be refreshed; see [`crate::flow_control::pause`].
    pub const PAUSE: u8 = 11;
    /// [`DEPARTURE`] where arrivals come first.
    pub const LATE_DEPARTURE: u8 = 12;
    /// A receiver's NIC has a delayed response ready.
    pub const RESPONSE: u8 = 13;
    /// A host's NIC is free: it chooses among all that has become ready by then.
    pub const NIC: u8 = 14;

    /// A class in words, for messages.
    pub const fn name(class: u8) -> &'static str {
        match class {
            LINK => "a change of a link",
            DEPARTURE | LATE_DEPARTURE | NIC => "the end of a transmission",
            ARRIVAL => "an arrival",
            RETRANSMISSION => "the retransmission timer",
            RELEASE => "the release of a packet",
            LAW => "the law's timer",
            DELAYED_ACK => "a delayed acknowledgement",
            SCHEDULER => "the timer of the receiver's scheduler",
            FLOW_START => "the start of a flow",
            AGENT => "the timer of the switch's agent",
            PAUSE => "a pause",
            RESPONSE => "a delayed response",
            _ => "an event",
        }
    }
}

/// Payloads of pause events.
pub mod pause {
    /// A received pause frame takes effect.
    pub const EFFECT: u32 = 0;
    /// A pause expires, unless it was refreshed.
    pub const EXPIRY: u32 = 1;
    /// The pause of a neighbour is refreshed.
    pub const REFRESH: u32 = 2;
}
