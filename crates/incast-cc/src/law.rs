//! The contract of a congestion-control algorithm (law) at the sender of one flow.

use crate::{
    Cnp, Feedback, Loss, Path,
    feedback::CnpContent,
    parameters::{Condition, ParameterError, ParameterInfo, Raw},
    scheduler::{ReceiverScheduler, Signal},
    share::Share,
    word::Word,
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
    /// Only what was lost is sent again.
    SelectiveRepeat,
    /// Everything from the first loss on is sent again.
    GoBackN,
}

/// What the hosts of a receiver-driven protocol do apart from the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// What receivers acknowledge.
    pub acknowledges: Acknowledges,
    /// Which of a host's flows sends next.
    pub order: SendOrder,
    /// Switches that can do so cut off a packet's payload rather than drop it.
    pub trimmable: bool,
    /// Nothing is taken as lost because later packets have arrived: receivers say what is missing, or a timeout does.
    pub in_any_order: bool,
    /// Receivers remind senders that wait for them: no timer runs at a sender with nothing in flight.
    pub reminded: bool,
    /// Priority of data unless a scenario gives another one.
    pub priority: u8,
    /// Priority of control packets of hosts unless a scenario gives another one; `None` for that of the data.
    pub control_priority: Option<u8>,
}

/// Which methods of a law do something, of those that hosts would call with each packet: they leave the others out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// It goes by acknowledgements, by losses that they show, or by what was sent: [`SenderLaw::on_ack`],
    /// [`SenderLaw::on_loss`], [`SenderLaw::on_sent`]. Otherwise its window, credit and pace are asked only after
    /// timeouts, its own timer, notifications, credit, shares, and packets that the receiver wants again.
    pub listens: bool,
    /// It wants to be woken: [`SenderLaw::next_timer`].
    pub has_timer: bool,
    /// It has something to say to its receiver, or hears that there is one: [`SenderLaw::take_signal`],
    /// [`SenderLaw::word`], [`SenderLaw::on_heard`].
    pub speaks: bool,
}

impl Habits {
    /// All of it, for laws that say nothing else.
    pub const ALL: Self = Self { listens: true, has_timer: true, speaks: true };
    /// It listens, and that is all.
    pub const LISTENS: Self = Self { listens: true, has_timer: false, speaks: false };
    /// It speaks, and that is all.
    pub const SPEAKS: Self = Self { listens: false, has_timer: false, speaks: true };
    /// Nothing: what it allows follows from its parameters, and from what its receiver grants.
    pub const NONE: Self = Self { listens: false, has_timer: false, speaks: false };
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
    /// They take turns.
    #[default]
    Turns,
    /// The one with the fewest bytes left to send (SRPT).
    ShortestRemaining,
}

/// What a listing says about a law.
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
    /// Data packets are sent as ECN-capable, unless a parameter decides it ([`SenderLaw::ecn_capable`]).
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
    /// It says of each packet of data which priority it has, or its receivers do: that of the flow's class has no effect.
    /// Others are not asked: [`Self::priority`] and [`Self::resend_priority`] are `None`.
    const ASSIGNS_PRIORITIES: bool = false;
    /// Which of its methods do something.
    const HABITS: Habits = Habits::ALL;
    /// What of a congestion notification it goes by ([`Self::on_cnp`]).
    const HEEDS: CnpContent = CnpContent::Nothing;

    /// Resolves parameters: the defaults on `path`, replaced by those `given`.
    ///
    /// # Errors
    /// See [`crate::parameters!`].
    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Self::Parameters, ParameterError>;
    /// The effective values of parameters, as a scenario would write them.
    fn values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)>;
    /// Parameters that follow from the traffic, in place of those that follow from the path. None of those that are `given`.
    fn by_traffic(
        _parameters: &Self::Parameters,
        _given: &[(String, Raw)],
        _sizes: &dyn Fn() -> Vec<SizeClass>,
    ) -> Vec<(&'static str, Raw)> {
        Vec::new()
    }
    /// Receivers answer marked packets with congestion notifications ([`Self::on_cnp`]), at most one for each flow in
    /// this time. `None` for laws that learn of marks from acknowledgements.
    fn notification_interval(_parameters: &Self::Parameters) -> Option<Time> {
        None
    }
    /// Data packets are sent as ECN-capable: for laws of which a parameter decides it.
    fn ecn_capable(_parameters: &Self::Parameters) -> bool {
        Self::INFO.ecn_capable
    }
    /// A new pace changes the gap that is under way, too; else it begins with the gap after the next packet.
    fn repaces(_parameters: &Self::Parameters) -> bool {
        true
    }
    /// What the hosts do apart from the rest.
    fn transport(_parameters: &Self::Parameters) -> Transport {
        Transport::default()
    }
    /// Those of the [`Self::values`] that the receivers' half goes by. Classes in which they are the same share their receivers.
    fn receiver_values(parameters: &Self::Parameters) -> Vec<(&'static str, Raw)> {
        Self::values(parameters)
    }
    /// Ports that lead to hosts mark its packets with a codepoint of their own, [`crate::agent::Codepoint::UndeterminedExperienced`],
    /// which its receivers pass over: they notify of marks in the fabric alone.
    fn tells_edge_marks(_parameters: &Self::Parameters) -> bool {
        false
    }
    /// Its senders want to know the incast degree of a flow ([`Self::on_peer`]).
    fn wants_degree(_parameters: &Self::Parameters) -> bool {
        false
    }
    /// State of a flow that starts at `now`. `random` is a uniform draw of the flow's own stream.
    fn start(parameters: &Self::Parameters, path: &Path, now: Time, random: u32) -> Self;

    /// An acknowledgement arrived. If it also shows that packets were lost, [`Self::on_loss`] follows.
    fn on_ack(&mut self, feedback: &Feedback<'_>);
    /// Later acknowledgements show that packets were lost.
    fn on_loss(&mut self, loss: &Loss);
    /// The retransmission timer expired: everything in flight is presumed lost. `next` is the first position never sent.
    fn on_timeout(&mut self, now: Time, next: u64);
    /// A congestion notification packet arrived, from the receiver or a switch.
    fn on_cnp(&mut self, _now: Time, _cnp: &Cnp) {}
    /// The flow's size in bytes, before anything else (receiver-driven protocols, as the next ones).
    fn on_open(&mut self, _bytes: u64) {}
    /// Rate of the receiver's link, and how many flows of the flow's request go to that receiver, itself included: 0 if it is not known,
    /// or nobody wants to ([`Self::wants_degree`]).
    fn on_peer(&mut self, _receiver: Rate, _degree: u32) {}
    /// The receiver says what the flow's share is, apart from acknowledgements.
    fn on_share(&mut self, _now: Time, _share: Share) {}
    /// The receiver allows data up to `position`.
    fn on_credit(&mut self, _now: Time, _position: u64) {}
    /// The receiver's scheduler has said something, of which other methods may tell more: it knows of the flow.
    fn on_heard(&mut self) {}
    /// The receiver has answered a signal.
    fn on_answer(&mut self, _now: Time) {}
    /// The receiver wants packets again, and other flows of this host come first.
    fn on_delayed_resend(&mut self, _now: Time) {}
    /// The time that [`Self::next_timer`] named has come.
    fn on_timer(&mut self, _now: Time) {}
    /// `bytes` of payload were handed to the NIC.
    #[inline]
    fn on_sent(&mut self, _now: Time, _bytes: u32) {}

    /// Payload bytes that may be in flight. Below one MSS the sender paces single packets: one each
    /// RTT × MSS / window.
    fn window(&self) -> u64;
    /// Pace of the flow on the wire; `None` leaves it to acknowledgements.
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Data below this position may be sent (credit); without credit, all of it.
    #[inline]
    fn credit(&self) -> u64 {
        u64::MAX
    }
    /// What is to be said to the receiver now; asked after each event until there is nothing more (receiver-driven
    /// protocols, as the next one).
    fn take_signal(&mut self) -> Option<Signal> {
        None
    }
    /// What the next packet of data tells the receiver.
    fn word(&self) -> Option<Word> {
        None
    }
    /// Priority of data at `position`; `None` leaves it to what the receiver last said, or to the flow's class.
    fn priority(&self, _position: u64) -> Option<u8> {
        None
    }
    /// The same of data that is sent again.
    fn resend_priority(&self, position: u64) -> Option<u8> {
        self.priority(position)
    }
    /// When [`Self::on_timer`] is wanted; [`Time::MAX`] for never.
    #[inline]
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    /// What the law believes about the congestion of its path, in its own terms (a fraction of marked packets, a load),
    /// for measurements; `None` if it keeps no such number.
    fn estimate(&self) -> Option<f32> {
        None
    }
}

/// A law that is the sender's half of a receiver-driven protocol.
pub trait ReceiverDriven: SenderLaw {
    /// The receiver's half.
    type Receiver: ReceiverScheduler;

    /// The receiver's half for one host; `path` has the rate of its link.
    fn receiver(parameters: &Self::Parameters, path: &Path) -> Self::Receiver;
}
