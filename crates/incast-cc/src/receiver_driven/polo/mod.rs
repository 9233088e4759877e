//! Polo: arriving packets let the receiver request others; ECN marks adapt how many may be outstanding (D).
//!
//! Source: C. Ruan, J. Wang, W. Jiang, T. Zhang, "Polo: Receiver-Driven Congestion Control for Low Latency over
//! Commodity Network Fabric", ICPP 2020: its public slides and abstract. The full text was not at hand; what they leave
//! open is an option each (A1 to A12), with the literal reading among its values. `docs/polo.md` has the protocol as it
//! is here.
//!
//! ```text
//!  sender                                        receiver
//!    │ first window, unscheduled, at line rate──────▶ │ data: D + 1 if unmarked, in the first epoch
//!    │ adjoint ────────────────────────────────────▶ │ an epoch ends: D + 1 if no packet of it was marked,
//!    │ ◀──────────────────────────────── acknowledge │                D - M/2 if M were
//!    │ adjoint ────────────────────────────────────▶ │ … always one of the two on its way
//!    │ ◀───────────────────────────── driving packet │ while fewer than D are awaited: to active flows in turn
//!    │ next packet ────────────────────────────────▶ │
//!    │ ◀──────────────────────────────── loss packet │ a gap; or two epochs without data; or silence for the RTO
//!    │ that packet again ──────────────────────────▶ │
//! ```
//!
//! Control packets travel at the higher of two strict priorities. An adjoint packet is an [`Adjoint`]; what the
//! receiver sends is a [`Message`]. This file is the sender half, [`Receiver`] the other.

mod receiver;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;

use super::Profile;
use crate::scheduler::{Arrival, End, NewFlow, ReceiverScheduler};
use crate::{
    Path,
    law::{
        Acknowledges, Framing, LawCapabilities, LawInfo, Opening, ReceiverDriven, Recovery, Requirements, SendOrder,
        SenderLaw, Transport,
    },
    message::{self, Body, Instruction},
    parameters::{Condition, ParameterError, Period, Raw, chosen},
};
use incast_units::{Bytes, Time};

crate::choice! {
    /// A1: what has a number D of its own.
    pub enum Scope {
        /// The receiver, for all its flows together.
        Receiver = "receiver",
        /// Each flow.
        Flow = "flow",
    }
}

crate::choice! {
    /// A2: what D counts.
    pub enum Driving {
        /// Requested packets that have not arrived.
        Window = "window",
        /// Driving packets in an epoch, each for a packet that arrives: what is not used in its epoch is gone.
        PerData = "per-data",
    }
}

crate::choice! {
    /// A3: whose adjoint packets end the epochs of a receiver-wide D.
    pub enum EpochOf {
        /// Those of the flow that has been active for longest.
        Owner = "owner",
        /// Those of each active flow.
        Each = "each",
    }
}

crate::choice! {
    /// A10: which flow gets the driving packet for a packet that arrives.
    pub enum Driven {
        /// The next in turn of which no more is awaited than its part of D.
        Share = "share",
        /// That of the packet, if it has something to send; else the next in turn.
        Data = "data",
        /// The next in turn.
        Turn = "turn",
    }
}

crate::choice! {
    /// A11: when a loss packet is sent for a gap.
    pub enum LossPackets {
        /// When the gap is seen, whatever D is.
        AtOnce = "at-once",
        /// When D has room for it and the flow's turn has come.
        InTurn = "in-turn",
    }
}

crate::choice! {
    /// Whose adjoint packets are acknowledged, so that others follow.
    pub enum AdjointScope {
        /// Those of all flows.
        All = "all",
        /// Those of active flows; others wait until they are.
        Active = "active",
        /// Those of the flow that has been active for longest.
        Owner = "owner",
    }
}

crate::choice! {
    /// Which flows are inactive.
    pub enum Pause {
        /// Those that come after the first mark, until an active one ends.
        UntilMarked = "until-marked",
        /// Those that come while many are active, until one of these ends.
        ActiveLimit = "active-limit",
        /// None.
        Off = "off",
    }
}

crate::choice! {
    /// A7: what has not arrived of an inactive flow's first window when it becomes active.
    pub enum PausedWindow {
        /// It is lost, and requested first, if nothing of the flow has come for `recovery2_timeout`; else it may be on its
        /// way, and is awaited.
        Overdue = "overdue",
        /// It is lost.
        Lost = "lost",
        /// It is awaited, as that of any flow.
        Awaited = "awaited",
    }
}

crate::choice! {
    /// What recovery 2 takes for lost.
    pub enum Recovery2Scope {
        /// All that is awaited of all active flows.
        All = "all",
        /// All that is awaited of one of them.
        One = "one",
    }
}

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: one scenario fits every rate; \"paper\" is the evaluation of Polo, ICPP 2020"
    },
    unscheduled: Bytes {
        doc: "Unscheduled payload bytes, in whole packets (A6).",
        default: "BDP; paper: 12 packets",
        value: |path| path.bdp(),
        source: "ICPP 2020 has 12 packets for its peers, and does not say its own"
    },
    d_scope: Scope {
        doc: "What has a number D of its own (A1).",
        default: "\"receiver\"",
        value: |_| Scope::Receiver,
        source: "ICPP 2020, slides: \"the Polo receiver maintains a variable D\""
    },
    driving: Driving {
        doc: "What D counts: packets awaited, or driving packets in an epoch (A2).",
        default: "\"window\"",
        value: |_| Driving::Window,
        source: "ours: with \"per-data\", the literal reading, what drives dies out when D falls"
    },
    driven: Driven {
        doc: "Which flow gets the driving packet for a packet that arrives (A10).",
        default: "\"share\"",
        value: |_| Driven::Share,
        source: "ours, as with \"data\", the slides' \"driving packet back for the received data packet\", flows that come later \
            wait for those before them"
    },
    loss_packets: LossPackets {
        doc: "When a loss packet is sent for a gap (A11).",
        default: "\"at-once\"",
        value: |_| LossPackets::AtOnce,
        source: "ICPP 2020, slides: \"If there is a gap, Polo returns a loss packet\"; \"in-turn\" is ours"
    },
    first_epoch_marks: bool {
        doc: "D falls by M/2 at the end of the first epoch, too, if M packets of it were marked (A12).",
        default: "false",
        value: |_| false,
        source: "ours: in the first epoch a marked packet does not count up; \"In an epoch: D - M/2\" may mean it, too"
    },
    epoch: EpochOf {
        doc: "Whose adjoint packets end epochs (A3).",
        default: "\"owner\"",
        value: |_| EpochOf::Owner,
        source: "ours: the slides show one flow"
    },
    d_min: f64 {
        doc: "Least D after the first epoch, in packets (A4). Below 1 only recovery goes on.",
        default: "1",
        value: |_| 1.0,
        allowed: "0 to 1e6",
        check: |d| (0.0..=1e6).contains(d),
        source: "ours: the slides have no least D"
    },
    d_max: f64 {
        doc: "Most D, in BDP of full packets: senders' own links do not mark, so that D would rise for as \
            long as one of them is what limits.",
        default: "8",
        value: |_| 8.0,
        allowed: "at least 1",
        check: |d| *d >= 1.0,
        source: "ours: the slides have no most D"
    },
    count_retransmissions: bool {
        doc: "Marks of packets that were asked for again count (A5).",
        default: "true",
        value: |_| true,
        source: "ICPP 2020, slides: \"M packets carry ECN marks\""
    },
    pause: Pause {
        doc: "Which flows are paused.",
        default: "\"until-marked\"",
        value: |_| Pause::UntilMarked,
        source: "ICPP 2020, slides: optimization for highly concurrent flows; \"active-limit\" is ours"
    },
    max_active: u64 {
        doc: "Active flows from which on others are paused, with the pause `active-limit`.",
        default: "4 BDP, in packets",
        value: |path| (4 * path.bdp().get()).div_ceil(u64::from(path.mss.max(1))).max(1),
        allowed: "at least 1",
        check: |flows| *flows >= 1,
        source: "ours: as many as get a packet in a few round trips"
    },
    paused_window: PausedWindow {
        doc: "What is made of an inactive flow's first window when it becomes active (A7).",
        default: "\"overdue\"",
        value: |_| PausedWindow::Overdue,
        source: "ours: the slides do not say"
    },
    adjoint_scope: AdjointScope {
        doc: "Whose adjoint packets are acknowledged.",
        default: "\"owner\"; d_scope = \"flow\": \"active\"",
        value: |_| AdjointScope::Owner,
        allowed: "\"all\", \"active\" or \"owner\"; the last not with d_scope = \"flow\"",
        source: "ours, as it works with a thousand flows: \"all\" is the slides' reading"
    },
    recovery1: bool {
        doc: "Recovery 1: a gap among the packets of a flow is a loss.",
        default: "true",
        value: |_| true,
        source: "ICPP 2020, slides; without: Polo^c"
    },
    recovery2: bool {
        doc: "Recovery 2: two epochs without any data mean that what is awaited is lost.",
        default: "true",
        value: |_| true,
        source: "ICPP 2020, slides; without: Polo^b"
    },
    recovery2_timeout: Time {
        doc: "Recovery 2 waits at least so long for data after the last that came or was asked for.",
        default: "4 base RTT",
        value: |path| path.base_rtt.saturating_mul(4),
        source: "ours: control packets go round faster than data; 0ns is the slides' reading"
    },
    recovery2_scope: Recovery2Scope {
        doc: "What recovery 2 takes for lost.",
        default: "\"all\"",
        value: |_| Recovery2Scope::All,
        source: "ours; \"one\" is the slides' reading: \"a random active flow\", here the next in turn"
    },
    recovery3: bool {
        doc: "Recovery 3: a sender that waits for an acknowledgement for `rto` repeats its adjoint packet, \
            and what is awaited of a flow that has been silent for so long is lost.",
        default: "true",
        value: |_| true,
        source: "ICPP 2020, slides"
    },
    rto: Period {
        doc: "The timeout of recovery 3; it doubles while nothing arrives.",
        default: "max(host.rto_min, 3 base RTT)",
        value: |path| Period::of(path.timeout()),
        source: "ICPP 2020, slides: \"e.g., 1ms\"; all protocols of a scenario share it"
    },
    wasted_packet_optimization: bool {
        doc: "Driving packets go to flows that have something to send.",
        default: "true",
        value: |_| true,
        source: "ICPP 2020, slides: optimization mechanism for the wasted driven packets; without: Polo^a"
    },
});

/// Doublings of the timeout of an adjoint packet, at most.
const MOST_BACKOFF: u8 = 10;

/// The sender of a flow.
#[derive(Clone, Debug)]
pub struct Polo {
    /// Unscheduled payload bytes that are left to send.
    unscheduled: u64,
    /// Those of them that have not been sent.
    unscheduled_left: u64,
    mss: u64,
    /// An adjoint packet is to be sent.
    adjoint: bool,
    /// [`Time::MAX`] without recovery 3.
    rto: Time,
    /// Doublings of the timeout.
    backoff: u8,
    /// When the adjoint packet is repeated.
    deadline: Time,
    base_rtt: Time,
    /// When the last unrequested adjoint packet was sent.
    unasked: Time,
    /// Two acknowledgements that cross with such a one would make two of the one packet that is always on its way:
    /// until an RTT after it they count as one, which is answered then.
    settled: Time,
    /// One has come before that.
    answered: bool,
}

impl Polo {
    /// Sends an unrequested adjoint packet: the first one, or a retransmission.
    fn begin(&mut self, now: Time) {
        self.unasked = now;
        self.settled = now.saturating_add(self.base_rtt);
        self.send(now);
        self.backoff = (self.backoff + 1).min(MOST_BACKOFF);
    }

    /// An adjoint packet is acknowledged: the next one follows.
    fn on_acknowledged(&mut self, now: Time) {
        self.backoff = 0;
        if now < self.settled {
            self.answered = true;
            self.deadline = Time::MAX;
        } else {
            self.send(now);
        }
    }

    fn send(&mut self, now: Time) {
        self.adjoint = true;
        self.deadline = match self.rto {
            Time::MAX => Time::MAX,
            rto => now.saturating_add(rto.saturating_mul(1 << self.backoff)),
        };
    }
}

impl SenderLaw for Polo {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "polo",
        title: "Polo",
        source: "Ruan et al., ICPP 2020 (slides)",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities { signals: true, ..LawCapabilities::TIMED };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("epoch", "d_scope", &["receiver"]),
        Condition::new("driven", "d_scope", &["receiver"]),
        Condition::new("driven", "driving", &["window"]),
        Condition::new("loss_packets", "driving", &["window"]),
        Condition::new("loss_packets", "recovery1", &["true"]),
        Condition::new("recovery2_scope", "d_scope", &["receiver"]),
        Condition::new("recovery2_scope", "recovery2", &["true"]),
        Condition::new("rto", "recovery3", &["true"]),
        Condition::new("paused_window", "pause", &["until-marked", "active-limit"]),
        Condition::new("max_active", "pause", &["active-limit"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::Paper {
            defaults.unscheduled = Bytes::new(12 * u64::from(path.mss));
        }
        let by_flow = chosen("d_scope", Scope::Receiver, given)? == Scope::Flow;
        if by_flow {
            defaults.adjoint_scope = AdjointScope::Active;
        }
        let parameters = defaults.with(given)?;
        if by_flow && parameters.adjoint_scope == AdjointScope::Owner {
            return Err(ParameterError::Value {
                name: "adjoint_scope",
                message: "found \"owner\", allowed is \"all\" or \"active\" with d_scope = \"flow\": the epochs of other flows would never end".to_owned(),
            });
        }
        Ok(parameters)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn requirements(parameters: &Parameters) -> Requirements {
        let order = parameters.recovery1.then_some("recovery 1 of polo takes a gap for a loss");
        Requirements { order, ..Requirements::of(&Self::INFO, &Self::transport(parameters)) }
    }
    fn transport(_parameters: &Parameters) -> Transport {
        Transport {
            acknowledges: Acknowledges::Flows,
            order: SendOrder::RoundRobin,
            trimmable: false,
            in_any_order: true,
            reminded: false,
            priority: 1,
            control_priority: Some(0),
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(parameters: &Parameters, path: &Path, now: Time, _random: u32) -> Self {
        Self {
            unscheduled: parameters.unscheduled.get(),
            unscheduled_left: 0,
            mss: u64::from(path.mss.max(1)),
            adjoint: false,
            rto: if parameters.recovery3 { parameters.rto.time() } else { Time::MAX },
            backoff: 0,
            deadline: Time::MAX,
            base_rtt: path.base_rtt,
            unasked: now,
            settled: Time::ZERO,
            answered: false,
        }
    }

    fn on_sent(&mut self, now: Time, bytes: u32) {
        if self.unscheduled_left > 0 {
            self.unscheduled_left = self.unscheduled_left.saturating_sub(bytes.into());
            if self.unscheduled_left == 0 {
                self.begin(now);
            }
        }
    }
    fn on_timer(&mut self, now: Time) {
        if self.answered && self.settled <= now {
            self.answered = false;
            self.send(now);
        } else if self.deadline <= now {
            self.begin(now);
        }
    }
    fn next_timer(&self) -> Time {
        if self.answered { self.settled } else { self.deadline }
    }
    /// Nothing has arrived from the receiver.
    fn on_timeout(&mut self, now: Time, _next: u64) {
        if self.rto != Time::MAX && !self.answered && self.unscheduled_left == 0 && self.unasked < now {
            self.begin(now);
        }
    }
}

/// The adjoint packet: follows the first window, and each acknowledgement of an adjoint packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjoint;

impl message::Signal for Adjoint {
    fn code(self) -> u8 {
        0
    }
    fn from_code(code: u8) -> Option<Self> {
        (code == 0).then_some(Self)
    }
}

/// What a receiver sends to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Acknowledges an adjoint packet.
    Acknowledge,
    /// A driving packet: the next packet may be sent.
    Drive,
    /// A loss packet: the packet at this position is lost.
    Lost {
        /// Its first byte.
        position: u64,
    },
}

const ACKNOWLEDGE: u8 = 0;
const DRIVE: u8 = 1;
const LOST: u8 = 2;

impl message::Message for Message {
    fn encode(self) -> Body {
        match self {
            Self::Acknowledge => Body { code: ACKNOWLEDGE, ..Body::default() },
            Self::Drive => Body { code: DRIVE, ..Body::default() },
            Self::Lost { position } => Body { code: LOST, option: 0, values: [position, 0] },
        }
    }
    fn decode(body: &Body) -> Option<Self> {
        match body.code {
            ACKNOWLEDGE => Some(Self::Acknowledge),
            DRIVE => Some(Self::Drive),
            LOST => Some(Self::Lost { position: body.values[0] }),
            _ => None,
        }
    }
}

impl ReceiverDriven for Polo {
    type Receiver = Receiver;

    fn receiver(parameters: &Parameters, path: &Path) -> Receiver {
        Receiver::new(parameters, path)
    }

    fn on_open(&mut self, opening: &Opening) {
        let window = self.unscheduled.div_ceil(self.mss).saturating_mul(self.mss);
        self.unscheduled_left = window.min(opening.bytes);
        if self.unscheduled_left == 0 {
            self.begin(self.unasked);
        }
    }
    #[inline]
    fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    fn on_message(&mut self, now: Time, message: Message) -> Option<Instruction> {
        let wanted = match message {
            Message::Acknowledge => {
                self.on_acknowledged(now);
                return None;
            }
            Message::Drive => None,
            Message::Lost { position } => Some(position),
        };
        Some(Instruction::Token { wanted, lifetime: Time::MAX, priority: None })
    }
    fn take_signal(&mut self) -> Option<Adjoint> {
        std::mem::take(&mut self.adjoint).then_some(Adjoint)
    }
    fn has_signal(&self) -> bool {
        self.adjoint
    }
}
