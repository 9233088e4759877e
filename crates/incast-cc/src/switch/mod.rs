//! What a switch does to the packets of its egress ports: one file per algorithm.
//!
//! [`red`] decides marks and is part of every port. Agents see each packet enter and leave a queue and each
//! pause edge; they may mark, send a control packet to the packet's source, or deflect. One agent object serves
//! one switch and indexes its state by egress port.

pub mod exerciser;
pub mod red;

use incast_units::{Rate, Time};

/// An egress queue at the moment of an event.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// Simulated time.
    pub now: Time,
    /// Index of the egress port in its switch.
    pub port: u16,
    /// Priority of the queue; 0 is the highest.
    pub priority: u8,
    /// Bytes waiting in this queue, the packet of the event excluded.
    pub queue_bytes: u64,
    /// The port's rate.
    pub rate: Rate,
}

/// A packet as an agent sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Sending host; `u32::MAX` for acknowledgements, which do not say.
    pub source: u32,
    /// Receiving host.
    pub destination: u32,
    /// The flow's number at its source.
    pub sequence: u32,
    /// Bytes on the wire, without preamble and gap.
    pub bytes: u32,
    /// It may be marked.
    pub ecn_capable: bool,
    /// It carries payload (acknowledgements and control packets do not).
    pub is_data: bool,
    /// How often it was deflected before.
    pub deflections: u8,
}

/// What an agent wants done with the packet of the event. Starts as "nothing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Mark it (CE), if it is ECN-capable.
    pub mark: bool,
    /// Send a congestion notification to its source; the number is the window it grants, in bytes.
    pub notify: Option<Option<u64>>,
    /// Send it out of another of the equal-cost ports (only when it enters a queue).
    pub deflect: bool,
}

/// An in-switch algorithm.
pub trait SwitchAgent {
    /// A packet is about to enter an egress queue.
    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, verdict: &mut Verdict);
    /// A packet leaves an egress queue for the wire; `deflect` has no effect here.
    fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, verdict: &mut Verdict);
    /// The neighbour forbade this queue to send.
    fn on_pause(&mut self, port: &PortView);
    /// The neighbour allowed it again.
    fn on_resume(&mut self, port: &PortView);
}

/// The agents by name. Dispatch is an enum: the state lies in the switch and calls are direct.
#[derive(Clone, Debug, Default)]
pub enum Agent {
    /// A plain switch.
    #[default]
    None,
    /// See [`exerciser`].
    Exerciser(exerciser::Exerciser),
}

impl Agent {
    /// There is nobody to ask.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl SwitchAgent for Agent {
    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, verdict: &mut Verdict) {
        match self {
            Self::None => {}
            Self::Exerciser(agent) => agent.on_enqueue(port, packet, verdict),
        }
    }
    fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, verdict: &mut Verdict) {
        match self {
            Self::None => {}
            Self::Exerciser(agent) => agent.on_dequeue(port, packet, verdict),
        }
    }
    fn on_pause(&mut self, port: &PortView) {
        match self {
            Self::None => {}
            Self::Exerciser(agent) => agent.on_pause(port),
        }
    }
    fn on_resume(&mut self, port: &PortView) {
        match self {
            Self::None => {}
            Self::Exerciser(agent) => agent.on_resume(port),
        }
    }
}
