//! The contract of an in-switch algorithm (agent).
//!
//! An agent sees each packet enter and leave an egress queue, each pause and resume, and its own timer. It may mark the
//! packet, send a control packet to a source, or deflect the packet; some agents hold packets and send markers behind
//! earlier ones. One agent object serves one switch and indexes its state by egress port.

use crate::{
    Path,
    feedback::{Cnp, CnpContent},
    marking::Marking,
    parameters::{Condition, ParameterError, ParameterInfo, Raw},
};
use incast_units::{Rate, Time};

/// What a listing has about an in-switch algorithm.
#[derive(Clone, Copy, Debug)]
pub struct AgentInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// How tables print it.
    pub title: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [ParameterInfo],
    /// It marks packets itself, by the thresholds of their port or not at all: the port does not.
    pub marks: bool,
    /// What it changes at senders: defaults of the parameters of laws, for those that have such a parameter.
    pub sender: &'static [(&'static str, &'static str)],
    /// It treats each port by itself: while packets enter and leave one it does not look at others, deflects nothing,
    /// sends no notification and sets no timer when a packet leaves. Departures may be reported to it later than they
    /// happen, but in order: before the next packet for that port, before its pause edges, and before the timer.
    pub by_port: bool,
}

/// What an agent depends on and what it brings about, with its parameters. A scheme in which that leads to nothing is
/// warned of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// It goes by the thresholds at which the port would mark.
    pub reads_thresholds: bool,
    /// It does something about pauses.
    pub reads_pauses: bool,
    /// It marks packets. With [`AgentInfo::marks`] and without this, no packet is marked.
    pub marks: bool,
    /// It marks packets with UE.
    pub undetermined: bool,
    /// The content of its notifications.
    pub notifies: CnpContent,
}

/// An egress port as it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortSetup {
    /// Its rate.
    pub rate: Rate,
    /// When the switch would mark.
    pub marking: Marking,
}

/// The switch that an agent serves.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Its ports.
    pub ports: &'a [PortSetup],
    /// Number of priorities.
    pub priorities: u8,
}

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
    /// State of the port's random stream at this event.
    pub stream: u64,
}

impl PortView {
    /// A uniform random number of this event's own.
    #[inline]
    pub fn random(&self) -> u32 {
        // SplitMix64 (G. Steele et al., OOPSLA 2014): each event advances its stream by one addition.
        let word = (self.stream ^ self.stream >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) >> 32) as u32
    }

    /// The same, in [0, 1).
    #[inline]
    pub fn uniform(&self) -> f64 {
        f64::from(self.random()) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Where notifications for a flow go: an agent may keep it for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowAddress {
    /// Sending host; `u32::MAX` for acknowledgements, which do not carry it.
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
    /// What switches before have marked it with.
    pub codepoint: Codepoint,
    /// It carries payload (acknowledgements and control packets do not).
    pub is_data: bool,
    /// How often it was deflected before.
    pub deflections: u8,
    /// It is a marker: see [`Order::Mark`].
    pub marker: Option<Marker>,
}

/// The content of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// What the agent that sent it calls it.
    pub name: u64,
    /// That was the agent of this switch.
    pub is_own: bool,
}

/// The congestion mark of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    /// Nothing.
    #[default]
    None,
    /// UE, undetermined experienced (TCD): a queue was long, perhaps only because its port had been paused.
    UndeterminedExperienced,
    /// CE, congestion experienced.
    CongestionExperienced,
}

/// What is to be done with the packet of the event. Starts as "nothing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Mark it, if it is ECN-capable. UE does not take CE away.
    pub mark: Codepoint,
    /// Send a congestion notification to its source.
    pub notify: Option<Cnp>,
    /// Send it out of this port instead (only when it enters a queue). The agent is not called again for it.
    pub deflect_to: Option<u16>,
    /// Keep it here for now, behind those that are held in this place already (only when it enters a queue, and of
    /// agents that [hold](SwitchAgent::HOLDS)). It takes memory like any packet that waits.
    pub hold: Option<Hold>,
    /// It is a marker that is consumed here: an answer goes to the switch that sent it (only when it enters a queue).
    pub answer: bool,
}

/// Where a packet is held, and for which port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The place, from 0.
    pub place: u16,
    /// The port that it probably takes then.
    pub port: u16,
}

/// An action of an agent that [holds](SwitchAgent::HOLDS), beside its verdict on the packet of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Send a marker of a flow out of a port: it waits in the queue of the flow's data and takes the path of the flow's
    /// data from there on, until an agent answers it. Then [`SwitchAgent::on_answer`] is called with its name.
    Mark {
        /// The port.
        port: u16,
        /// Its length in bytes.
        bytes: u16,
        /// The packets that it goes with came in by this port,
        ingress: u16,
        /// with this priority,
        priority: u8,
        /// of this flow.
        flow: FlowAddress,
        /// Deflections of those packets, that by this switch included.
        deflections: u8,
        /// What is held in this place waits for it.
        place: u16,
        /// What the agent calls it.
        name: u64,
    },
    /// What is held in a place goes on, in its order.
    Release {
        /// The place.
        place: u16,
        /// Out of this port, and whether that is a deflection; `None` for the port that routing gives each packet.
        to: Option<(u16, bool)>,
    },
}

impl Verdict {
    /// Nothing is to be done.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.mark == Codepoint::None
            && self.notify.is_none()
            && self.deflect_to.is_none()
            && self.hold.is_none()
            && !self.answer
    }
}

/// A congestion notification that an agent sends on its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The flow whose source gets it.
    pub flow: FlowAddress,
    /// Its content.
    pub cnp: Cnp,
}

/// The switch as its agent sees it, at the moment of an event.
pub trait SwitchView {
    /// Number of ports.
    fn ports(&self) -> u16;
    /// Number of priorities.
    fn priorities(&self) -> u8;
    /// Bytes waiting in an egress queue.
    fn queue_bytes(&self, port: u16, priority: u8) -> u64;
    /// What waits in an egress queue, first in first.
    fn waiting(&self, port: u16, priority: u8) -> impl Iterator<Item = PacketView>;
    /// Rate of a port.
    fn rate(&self, port: u16) -> Rate;
    /// The port may send this priority: its neighbour has not forbidden it, and its link is up.
    fn may_send(&self, port: u16, priority: u8) -> bool;
    /// The equal-cost ports to a host, ascending.
    fn alternatives(&self, destination: u32) -> impl Iterator<Item = u16>;
    // What follows is for agents that deflect. A switch without such agents keeps the defaults.
    /// Other ports that lead to a host, on non-minimal paths that do not return to this switch.
    fn non_minimal_ports(&self, _destination: u32) -> impl Iterator<Item = u16> {
        std::iter::empty()
    }
    /// There is a host at the other end of a port.
    fn leads_to_host(&self, _port: u16) -> bool {
        false
    }
    /// Virtual channels of each priority that classes have: priorities `n * k` to `n * k + n - 1` are one of them.
    fn channels(&self) -> u8 {
        1
    }
    /// A packet that came in so may leave so, and then has channels enough for the minimal path to its destination.
    fn has_channels(&self, _ingress: u16, _port: u16, _priority: u8, _destination: u32) -> bool {
        true
    }
    /// A marker of so many bytes could enter a queue of a port now.
    fn has_room(&self, _port: u16, _bytes: u32) -> bool {
        true
    }
    /// The priority, virtual channel included, with which a packet leaves by a port that came in so.
    fn leaving_priority(&self, _ingress: u16, _port: u16, priority: u8) -> u8 {
        priority
    }
    /// The port that routing gives packets of a flow now; `None` if none leads there.
    fn routed_port(&self, _flow: &FlowAddress) -> Option<u16> {
        None
    }
    /// The link of a port is up.
    fn is_up(&self, _port: u16) -> bool {
        true
    }
    /// Bytes that are held for a port.
    fn held_bytes(&self, _port: u16) -> u64 {
        0
    }
}

/// An in-switch algorithm.
pub trait SwitchAgent: Sized {
    /// Parameters, resolved once for a fabric.
    type Parameters: Clone;
    /// Name, title, source, and what the simulator depends on.
    const INFO: AgentInfo;
    /// Parameters that have an effect only with some values of another one.
    const CONDITIONS: &'static [Condition] = &[];
    /// It holds packets, orders actions and receives answers to markers.
    const HOLDS: bool = false;

    /// Resolves parameters: the defaults on `path`, replaced by those `given`.
    ///
    /// # Errors
    /// See [`crate::parameters!`].
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Self::Parameters, ParameterError>;
    /// The effective values of parameters, as a scenario would write them.
    fn values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)>;
    /// What it depends on and what it brings about.
    fn effects(_parameters: &Self::Parameters) -> Effects {
        Effects::default()
    }
    /// The agent of one switch, before the first packet.
    fn install(parameters: &Self::Parameters, site: &Site<'_>) -> Self;

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
    /// Of an agent that acts by port: until its next event at this port, packets that enter a queue of at most so many
    /// bytes, and packets that leave, need not be reported. `None`: every packet is reported.
    fn skips_up_to(&self, _port: u16) -> Option<u64> {
        None
    }
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
    /// A marker has come to its end.
    fn on_answer(&mut self, _now: Time, _name: u64) {}
    /// Routes have changed, with links that went down or came up.
    fn on_routes(&mut self, _switch: &impl SwitchView) {}
    /// The next thing to do, in order. Asked until there is none, after each packet that enters, answer, timer and
    /// change of routes.
    fn take_order(&mut self) -> Option<Order> {
        None
    }
}
