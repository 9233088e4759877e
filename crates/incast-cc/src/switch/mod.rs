//! What a switch does to the packets of its egress ports: one file per algorithm.
//!
//! [`red`] decides marks and is part of every port. Agents see each packet enter and leave a queue, each pause edge and
//! their own timer; they may mark, send a control packet to a source, or deflect. One agent object serves one switch
//! and indexes its state by egress port.
//!
//! What the algorithms need of it:
//!
//! | algorithm | of this interface |
//! |---|---|
//! | Mercury | pause edges with the queue at that moment, every enqueue and dequeue, [`Verdict::notify`] with a window |
//! | PACC | [`SwitchAgent::on_timer`] with all queues, [`Notification`] to flows that were seen before |
//! | TCD | pause edges, the queue at dequeue, [`PortView::random`] for its own marking; a second codepoint is still to come |
//! | IOFD | [`SwitchView::alternatives`] and their queues, [`Verdict::deflect_to`], dequeues and drops to count what is on the way |

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
    /// A random number of this event's own.
    pub random: u32,
}

/// Where notifications for a flow go: an agent may keep it for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowAddress {
    /// Sending host; `u32::MAX` for acknowledgements, which do not say.
    pub source: u32,
    /// Receiving host.
    pub destination: u32,
    /// The flow's number at its source.
    pub sequence: u32,
    /// Where the source keeps the flow.
    pub slot: u32,
    /// Hash of the flow for the choice among equal-cost ports.
    pub entropy: u32,
    /// Class of the flow.
    pub class: u8,
}

/// A packet as an agent sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Its flow, as its data has it; of packets other than data only `sequence`, `slot`, `class` and `entropy` mean
    /// anything, and `source` and `destination` are those of the packet.
    pub flow: FlowAddress,
    /// The port that it came in by; `None` for one that was made here.
    pub ingress: Option<u16>,
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
    /// Send it out of this port instead (only when it enters a queue). The agent of the switch is not asked again.
    pub deflect_to: Option<u16>,
}

/// A congestion notification that an agent sends on its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The flow whose source gets it.
    pub flow: FlowAddress,
    /// The window that it grants, in bytes.
    pub window: Option<u64>,
}

/// The switch as its agent sees it, at the moment of an event.
pub trait SwitchView {
    /// Number of ports.
    fn ports(&self) -> u16;
    /// Number of priorities.
    fn priorities(&self) -> u8;
    /// Bytes waiting in an egress queue.
    fn queue_bytes(&self, port: u16, priority: u8) -> u64;
    /// Rate of a port.
    fn rate(&self, port: u16) -> Rate;
    /// The port may send this priority: its neighbour has not forbidden it, and its link is up.
    fn may_send(&self, port: u16, priority: u8) -> bool;
    /// The equal-cost ports to a host, ascending.
    fn alternatives(&self, destination: u32) -> impl Iterator<Item = u16>;
}

/// An in-switch algorithm.
pub trait SwitchAgent {
    /// A packet is about to enter an egress queue.
    fn on_enqueue(
        &mut self,
        port: &PortView,
        packet: &PacketView,
        switch: &impl SwitchView,
        verdict: &mut Verdict,
    );
    /// A packet leaves an egress queue for the wire.
    fn on_dequeue(
        &mut self,
        port: &PortView,
        packet: &PacketView,
        switch: &impl SwitchView,
        verdict: &mut Verdict,
    );
    /// A packet that entered will not leave: there was no room for it, or its link went down. The port is the one it
    /// was to leave by, deflected or not.
    fn on_drop(&mut self, _port: &PortView, _packet: &PacketView) {}
    /// The neighbour forbade this queue to send.
    fn on_pause(&mut self, port: &PortView);
    /// The neighbour allowed it again.
    fn on_resume(&mut self, port: &PortView);
    /// The time that [`Self::next_timer`] named has come; notifications go to `send`.
    fn on_timer(&mut self, _now: Time, _switch: &impl SwitchView, _send: &mut dyn FnMut(Notification)) {}
    /// When [`Self::on_timer`] is wanted; [`Time::MAX`] for never. Asked after each event.
    fn next_timer(&self) -> Time {
        Time::MAX
    }
}

/// Declares the agents and passes each call on to the one there is. Dispatch is an enum: the state lies in the switch
/// and calls are direct.
macro_rules! agents {
    ($($(#[$doc:meta])* $name:ident($agent:ty),)*) => {
        /// The agents by name.
        #[derive(Clone, Debug, Default)]
        pub enum Agent {
            /// A plain switch.
            #[default]
            None,
            $($(#[$doc])* $name($agent),)*
        }

        impl SwitchAgent for Agent {
            fn on_enqueue(
                &mut self,
                port: &PortView,
                packet: &PacketView,
                switch: &impl SwitchView,
                verdict: &mut Verdict,
            ) {
                match self {
                    Self::None => {}
                    $(Self::$name(agent) => agent.on_enqueue(port, packet, switch, verdict),)*
                }
            }
            fn on_dequeue(
                &mut self,
                port: &PortView,
                packet: &PacketView,
                switch: &impl SwitchView,
                verdict: &mut Verdict,
            ) {
                match self {
                    Self::None => {}
                    $(Self::$name(agent) => agent.on_dequeue(port, packet, switch, verdict),)*
                }
            }
            fn on_drop(&mut self, port: &PortView, packet: &PacketView) {
                match self { Self::None => {} $(Self::$name(agent) => agent.on_drop(port, packet),)* }
            }
            fn on_pause(&mut self, port: &PortView) {
                match self { Self::None => {} $(Self::$name(agent) => agent.on_pause(port),)* }
            }
            fn on_resume(&mut self, port: &PortView) {
                match self { Self::None => {} $(Self::$name(agent) => agent.on_resume(port),)* }
            }
            fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
                match self { Self::None => {} $(Self::$name(agent) => agent.on_timer(now, switch, send),)* }
            }
            fn next_timer(&self) -> Time {
                match self { Self::None => Time::MAX, $(Self::$name(agent) => agent.next_timer(),)* }
            }
        }
    };
}

agents! {
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
