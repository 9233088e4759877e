//! The contract of a congestion-control algorithm (law) at the sender of one flow.

use crate::{
    Cnp, Feedback, Loss, Path,
    feedback::CnpContent,
    message::{DataTag, Instruction},
    parameters::{Condition, ParameterError, ParameterInfo, Raw},
    scheduler::ReceiverScheduler,
};
use incast_units::{Rate, Time};

/// Which packet formats a law's transport has on the wire (sizes in `incast-sim`, `docs/formats.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Ethernet, IPv4, TCP with timestamps.
    Tcp,
    /// Ethernet, IPv4, UDP, InfiniBand transport (RoCEv2).
    RoceV2,
    /// The same with the in-band telemetry (INT) header of HPCC in data packets and their acknowledgements.
    RoceV2Int,
    /// InfiniBand's own: local route header, transport, both CRCs.
    InfiniBand,
}

/// How a law's transport recovers from loss unless the scenario says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Recovery {
    /// TCP's RACK-TLP (RFC 8985): only what was lost is sent again, and a packet is lost when one that was sent later
    /// has arrived and it is overdue.
    RackTlp,
    /// Only what was lost is sent again, and a packet is lost when one that was sent a number of packets later has
    /// arrived.
    SelectiveRepeat,
    /// Everything from the first loss on is sent again.
    GoBackN,
}

/// What the hosts of a law do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Data packets are ECN-capable.
    pub ecn_capable: bool,
    /// So are control packets, and a switch that drops what it cannot mark keeps them. Their own marks tell nobody
    /// anything, and are not simulated.
    pub control_ecn_capable: bool,
    /// Receivers answer marked packets with congestion notifications ([`SenderLaw::on_cnp`]), at most one for each flow
    /// in this time. `None` for laws that take marks from acknowledgements.
    pub notification_interval: Option<Time>,
    /// Ports to hosts mark packets with a codepoint of their own, [`crate::agent::Codepoint::UndeterminedExperienced`],
    /// which receivers ignore: they notify of marks in the fabric alone.
    pub marks_at_edge: bool,
    /// A new pace changes the current gap, too; otherwise it begins with the gap after the next packet.
    pub updates_gap: bool,
    /// What receivers acknowledge.
    pub acknowledges: Acknowledges,
    /// Which of a host's flows sends next.
    pub order: SendOrder,
    /// Switches that can trim cut off a packet's payload rather than drop it.
    pub trimmable: bool,
    /// No packet is taken as lost because later ones have arrived: receivers request what is missing, or a timeout
    /// does.
    pub in_any_order: bool,
    /// The lifetime of a flow's tokens begins anew with each packet that it sends: it bounds for how long a sender may
    /// prefer other flows, not how many tokens are ahead of it.
    pub token_restarts: bool,
    /// A token for a packet that was sent more recently than this ago is no loss of it.
    pub not_lost_before: Time,
    /// Receivers remind senders that wait for them: a sender with nothing in flight runs no timer.
    pub reminded: bool,
    /// Senders need the incast degree of a flow ([`Opening::degree`]).
    pub incast_degree: bool,
    /// Priority of data unless a scenario gives another one.
    pub priority: u8,
    /// Priority of control packets of hosts unless a scenario gives another one; `None` for that of the data.
    pub control_priority: Option<u8>,
}

impl Transport {
    /// That of a sender-driven law.
    pub const fn of(info: &LawInfo) -> Self {
        Self {
            ecn_capable: info.ecn_capable,
            control_ecn_capable: false,
            notification_interval: None,
            marks_at_edge: false,
            updates_gap: true,
            acknowledges: Acknowledges::Packets,
            order: SendOrder::RoundRobin,
            trimmable: false,
            in_any_order: false,
            token_restarts: false,
            not_lost_before: Time::ZERO,
            reminded: false,
            incast_degree: false,
            priority: 0,
            control_priority: None,
        }
    }
}

/// What a law needs of a fabric to do what its authors describe. Without it a run goes on, and is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// Switches mark packets, by their thresholds or by an agent.
    pub marks: bool,
    /// Switches trim packets.
    pub trimming: bool,
    /// Switches record their queues in packets.
    pub telemetry: bool,
    /// Switches have this agent.
    pub agent: Option<&'static str>,
    /// Packets of a flow arrive in their order, for this reason; hosts that go back N need it, too.
    pub order: Option<&'static str>,
    /// A buffer that is full pushes back, for this reason, or hosts are set as it says.
    pub backpressure: Option<&'static str>,
    /// The thresholds of marks that its constants were published with, by the name of a `switch.profile`.
    pub published_with: Option<&'static str>,
}

impl Requirements {
    /// Those that follow from what a law's packets are.
    pub const fn of(info: &LawInfo, transport: &Transport) -> Self {
        let (marks, trimming) = (transport.ecn_capable, transport.trimmable);
        let telemetry = info.telemetry();
        Self { marks, trimming, telemetry, agent: None, order: None, backpressure: None, published_with: None }
    }
}

/// What a law uses. Hosts leave out calls for each packet that would do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LawCapabilities {
    /// It uses acknowledgements, losses that they show, or what was sent: [`SenderLaw::on_ack`],
    /// [`SenderLaw::on_loss`], [`SenderLaw::on_sent`]. Otherwise its window and pace change only after timeouts, its
    /// own timer, notifications, messages of the receiver, and requests to send packets again.
    pub acknowledgements: bool,
    /// It has a timer: [`SenderLaw::next_timer`].
    pub timer: bool,
    /// It sends to its receiver half: [`ReceiverDriven::take_signal`], [`ReceiverDriven::tag`].
    pub signals: bool,
    /// It, or its receiver half, assigns a priority to each data packet: that of the flow's class has no effect.
    pub priorities: bool,
    /// What it uses of a congestion notification ([`SenderLaw::on_cnp`]).
    pub cnp: CnpContent,
}

impl LawCapabilities {
    /// Nothing: what it allows follows from its parameters and its receiver's grants.
    pub const NONE: Self =
        Self { acknowledgements: false, timer: false, signals: false, priorities: false, cnp: CnpContent::Nothing };
    /// Acknowledgements only.
    pub const ACKNOWLEDGEMENTS: Self = Self { acknowledgements: true, ..Self::NONE };
    /// Acknowledgements and a timer.
    pub const TIMED: Self = Self { timer: true, ..Self::ACKNOWLEDGEMENTS };
}

/// What receivers acknowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledges {
    /// Packets, as the hosts' settings have it.
    #[default]
    Packets,
    /// A flow as a whole, once it is complete. Until then its sender takes nothing as lost of its own accord.
    Flows,
}

/// Which of a host's flows sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendOrder {
    /// Round robin.
    #[default]
    RoundRobin,
    /// The one with the fewest bytes left to send (SRPT).
    ShortestRemaining,
}

/// What a listing has about a law.
#[derive(Clone, Copy, Debug)]
pub struct LawInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// How tables print it.
    pub title: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Its transport's packet formats.
    pub framing: Framing,
    /// Its transport's loss recovery.
    pub recovery: Recovery,
    /// Data packets are ECN-capable, unless a parameter decides it ([`Transport::ecn_capable`]).
    pub ecn_capable: bool,
    /// Its parameters.
    pub parameters: &'static [ParameterInfo],
}

impl LawInfo {
    /// It needs in-band telemetry: its format has the place, and switches write.
    pub const fn telemetry(&self) -> bool {
        matches!(self.framing, Framing::RoceV2Int)
    }
}

/// Flows of one size, of those that a scenario has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClass {
    /// Payload bytes of each.
    pub bytes: u64,
    /// How many are to be expected.
    pub flows: f64,
}

/// A law at the sender of one flow. All methods are pure in the sense of the crate: no clock, no I/O.
pub trait SenderLaw: Sized {
    /// Parameters, resolved once for a fabric.
    type Parameters: Clone;
    /// Name, title, source, transport.
    const INFO: LawInfo;
    /// Parameters that have an effect only with some values of another one.
    const CONDITIONS: &'static [Condition] = &[];
    /// Which of its methods do something.
    const CAPABILITIES: LawCapabilities = LawCapabilities::TIMED;
    /// Bytes that HPCC's ns-3 simulator puts into each of its packets, whose frames `profile = "hpcc-lineage"` has.
    const HPCC_IN_BAND: u32 = 0;

    /// Resolves parameters: the defaults on `path`, replaced by those `given`.
    ///
    /// # Errors
    /// See [`crate::parameters!`].
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Self::Parameters, ParameterError>;
    /// The effective values of parameters, as a scenario would write them.
    fn values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)>;
    /// What the law's implementation in Linux has where our defaults differ; nothing where Linux has none.
    fn linux(_path: &Path) -> Vec<(&'static str, Raw)> {
        Vec::new()
    }
    /// What its hosts do.
    fn transport(_parameters: &Self::Parameters) -> Transport {
        Transport::of(&Self::INFO)
    }
    /// What it needs of a fabric.
    fn requirements(parameters: &Self::Parameters) -> Requirements {
        Requirements::of(&Self::INFO, &Self::transport(parameters))
    }
    /// State of a flow that starts at `now`. `random` is a uniform draw of the flow's own stream.
    fn start(parameters: &Self::Parameters, path: &Path, now: Time, random: u32) -> Self;

    /// An acknowledgement arrived. If it also shows that packets were lost, [`Self::on_loss`] follows.
    fn on_ack(&mut self, _feedback: &Feedback<'_>) {}
    /// Later acknowledgements show that packets were lost.
    fn on_loss(&mut self, _loss: &Loss) {}
    /// The retransmission timer expired: everything in flight is presumed lost. `next` is the first position never
    /// sent.
    fn on_timeout(&mut self, _now: Time, _next: u64) {}
    /// A congestion notification packet arrived, from the receiver or a switch.
    fn on_cnp(&mut self, _now: Time, _cnp: &Cnp) {}
    /// The time of [`Self::next_timer`] has come.
    fn on_timer(&mut self, _now: Time) {}
    /// `bytes` of payload were handed to the NIC.
    #[inline]
    fn on_sent(&mut self, _now: Time, _bytes: u32) {}

    /// Payload bytes that may be in flight. Below one MSS the sender paces single packets: one each
    /// RTT × MSS / window.
    #[inline]
    fn window(&self) -> u64 {
        u64::MAX
    }
    /// The law's own window in bytes, for measurements: [`Self::window`] without what is added to it so that hosts, which
    /// send whole packets, let go the packet that exceeds it (HPCC's simulator).
    fn assigned_window(&self) -> u64 {
        self.window()
    }
    /// Pace of the flow on the wire; `None` leaves it to acknowledgements.
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// When [`Self::on_timer`] is due; [`Time::MAX`] for never.
    #[inline]
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    /// The law's own estimate of the congestion of its path (a fraction of marked packets, a load), for measurements;
    /// `None` if it keeps none.
    fn estimate(&self) -> Option<f32> {
        None
    }
}

/// A flow, as its sender half gets it at the start.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Payload bytes.
    pub bytes: u64,
    /// Rate of the receiver's link.
    pub receiver: Rate,
    /// How many flows of the flow's request go to that receiver, itself included; 0 if it is not known, or not needed
    /// ([`Transport::incast_degree`]).
    pub degree: u32,
}

/// Messages of a protocol's receiver half.
pub type MessageOf<L> = <<L as ReceiverDriven>::Receiver as ReceiverScheduler>::Message;
/// Signals of a protocol's sender half.
pub type SignalOf<L> = <<L as ReceiverDriven>::Receiver as ReceiverScheduler>::Signal;

/// A law that is the sender half of a receiver-driven protocol.
pub trait ReceiverDriven: SenderLaw {
    /// The receiver half, with the types of the messages in both directions.
    type Receiver: ReceiverScheduler;

    /// The receiver half for one host; `path` has the rate of its link.
    fn receiver(parameters: &Self::Parameters, path: &Path) -> Self::Receiver;
    /// Those of the [`SenderLaw::values`] that the receiver half uses. Classes in which they are the same share their
    /// receivers.
    fn receiver_values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)> {
        Self::values(parameters)
    }
    /// Parameters that follow from the traffic rather than from the path. None of those that are `given`.
    fn by_traffic(
        _parameters: &Self::Parameters,
        _given: &[(String, Raw)],
        _sizes: &dyn Fn() -> Vec<SizeClass>,
    ) -> Vec<(&'static str, Raw)> {
        Vec::new()
    }

    /// The flow, before anything else.
    fn on_open(&mut self, _opening: &Opening) {}
    /// Data below this position may be sent before the receiver has answered. Called once, after [`Self::on_open`].
    #[inline]
    fn unscheduled(&self) -> u64 {
        u64::MAX
    }
    /// A message of the receiver half arrived. Returns what the transport does; `None` if only the law's own state
    /// changed.
    fn on_message(&mut self, now: Time, message: MessageOf<Self>) -> Option<Instruction>;
    /// The receiver requested packets again, and other flows of this host go first.
    fn on_deferred_resend(&mut self, _now: Time) {}
    /// The next signal to send; called after each event until there is none.
    #[inline]
    fn take_signal(&mut self) -> Option<SignalOf<Self>> {
        None
    }
    /// [`Self::take_signal`] has one.
    #[inline]
    fn has_signal(&self) -> bool {
        false
    }
    /// The tag of the next data packet, unless it is sent on a token for a certain packet.
    #[inline]
    fn tag(&self) -> Option<DataTag> {
        None
    }
    /// Priority of data at `position`, which was sent before if `again`. `None` leaves it to the receiver's last
    /// message that had one, or to the flow's class.
    #[inline]
    fn priority(&self, _position: u64, _again: bool) -> Option<u8> {
        None
    }
}
