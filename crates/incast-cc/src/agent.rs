//! The contract of an in-switch algorithm (agent).
//!
//! An agent sees each packet enter and leave an egress queue, each pause and resume, and its own timer. It may mark the
//! packet, send a control packet to a source, or deflect the packet. Agents that reroute flows in order implement
//! [`rerouting`] as well. One agent object serves one switch and indexes its state by egress port.

pub mod rerouting;

use crate::{
    Path,
    feedback::{Cnp, CnpContent},
    marking::Marking,
    parameters::{Condition, ParameterError, ParameterInfo, Raw},
};
use incast_units::{Rate, Time};
use rerouting::{Diversion, Marker, NoRerouting, Rerouting, ReroutingView};

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

/// What an agent reads and does, with its parameters. A scheme in which that has no effect gets a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// It uses the thresholds at which the port would mark.
    pub reads_thresholds: bool,
    /// It reacts to pauses.
    pub reads_pauses: bool,
    /// It marks packets. With [`AgentInfo::marks`] and without this, no packet is marked.
    pub marks: bool,
    /// It marks packets with UE.
    pub undetermined: bool,
    /// The content of its notifications.
    pub notifies: CnpContent,
    /// It writes rates of its own into telemetry, in place of those of ports.
    pub advertises: bool,
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
    /// A uniform random number, drawn for this event.
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

/// The address of notifications for a flow. An agent may store it.
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
    pub ecmp_hash: u32,
    /// Class of the flow.
    pub class: u8,
}

/// A packet as an agent sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Its flow, as its data has it; of packets other than data only `sequence`, `slot`, `class` and `ecmp_hash` mean
    /// anything, and `source` and `destination` are those of the packet.
    pub flow: FlowAddress,
    /// Its ingress port; `None` for a packet that this switch made.
    pub ingress: Option<u16>,
    /// Bytes on the wire, without preamble and gap.
    pub bytes: u32,
    /// It may be marked.
    pub ecn_capable: bool,
    /// The mark that earlier switches set.
    pub codepoint: Codepoint,
    /// It carries payload (acknowledgements and control packets do not).
    pub is_data: bool,
    /// How often it was deflected before.
    pub deflections: u8,
    /// It is a marker of an agent that reroutes.
    pub marker: Option<Marker>,
}

/// The congestion mark of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    /// No mark.
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
    /// Where it goes (only when it enters a queue).
    pub forward: Forward,
    /// The rate in Mbit/s that the port writes into data packets from now on, in place of its own (only when it leaves).
    pub advertise: Option<u32>,
}

/// Where a packet goes that is about to enter a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// Into the queue of the port that routing chose.
    #[default]
    Routed,
    /// Into a queue of this port. The agent is not called again for it.
    Port(u16),
    /// Elsewhere, as an agent that [reroutes](SwitchAgent::REROUTES) may decide.
    Rerouting(Diversion),
}

impl Verdict {
    /// The packet is forwarded as routed, unchanged.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.mark == Codepoint::None
            && self.notify.is_none()
            && self.forward == Forward::Routed
            && self.advertise.is_none()
    }
}

/// A congestion notification that an agent sends apart from a packet's verdict.
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
    /// The packets in an egress queue, the oldest first.
    fn waiting(&self, port: u16, priority: u8) -> impl Iterator<Item = PacketView>;
    /// Rate of a port.
    fn rate(&self, port: u16) -> Rate;
    /// The port may send this priority: it is not paused, and its link is up.
    fn may_send(&self, port: u16, priority: u8) -> bool;
    /// The equal-cost ports to a host, ascending.
    fn alternatives(&self, destination: u32) -> impl Iterator<Item = u16>;
    /// What agents that reroute flows in order read in addition: see [`SwitchAgent::REROUTES`].
    fn rerouting(&self) -> impl ReroutingView {
        NoRerouting
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
    /// It reroutes flows in order, with markers and held packets: see [`rerouting`].
    const REROUTES: bool = false;

    /// Resolves parameters: the defaults on `path`, replaced by those `given`.
    ///
    /// # Errors
    /// See [`crate::parameters!`].
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Self::Parameters, ParameterError>;
    /// The effective values of parameters, as a scenario would write them.
    fn values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)>;
    /// What it reads and does.
    fn effects(_parameters: &Self::Parameters) -> Effects {
        Effects::default()
    }
    /// The agent of one switch, before the first packet.
    fn install(parameters: &Self::Parameters, site: &Site<'_>) -> Self;

    /// A packet is about to enter an egress queue.
    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict);
    /// A packet leaves an egress queue for the wire.
    fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict);
    /// Of an agent that acts by port: until its next event at this port, packets that enter a queue of at most so many
    /// bytes, and packets that leave, need not be reported. `None`: every packet is reported.
    fn skips_up_to(&self, _port: u16) -> Option<u64> {
        None
    }
    /// A packet for which [`Self::on_enqueue`] was called was dropped: the buffer was full, or its link went down.
    /// `port` is its egress port after a deflection.
    fn on_drop(&mut self, _port: &PortView, _packet: &PacketView) {}
    /// The neighbour paused this queue.
    fn on_pause(&mut self, port: &PortView);
    /// The neighbour resumed it.
    fn on_resume(&mut self, port: &PortView);
    /// The time that [`Self::next_timer`] named has come; notifications go to `send`.
    fn on_timer(&mut self, _now: Time, _switch: &impl SwitchView, _send: &mut dyn FnMut(Notification)) {}
    /// When [`Self::on_timer`] is to be called; [`Time::MAX`] for never. Read after each event.
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    /// Its half that reroutes flows in order; `None` unless it [does so](Self::REROUTES).
    #[inline]
    fn rerouting(&mut self) -> Option<&mut impl Rerouting> {
        None::<&mut NoRerouting>
    }
}
