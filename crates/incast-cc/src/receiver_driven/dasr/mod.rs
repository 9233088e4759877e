//! DASR of Blitz: a receiver advertises the number of its senders, and each takes its share of the link at once.
//!
//! Sources: J. Xue et al., "Fast Congestion Control in RDMA-based Datacenter Networks", poster at SIGCOMM 2018 (Blitz:
//! *direct apportioning of sending rates*), and its follow-up Dart (arXiv 1805.11158), of which only the abstract was
//! at hand; patent US 11,190,454 for weighted shares and the look-ahead. The poster is one page: what it leaves open is
//! a parameter here, with the literal reading among its values.
//!
//! ```text
//!   sender    DATA at line rate ────────────────────────────────────────────────────────▶
//!           ◀──── ACK(n) for each packet; on a change of n also to those that get no ACK  
//!             DATA at C/n, at once; once a CNP has come at min(C/n, R_C of DCQCN) ──────▶   receiver: n senders
//! ```
//!
//! This file is the sender's half, with the parameters; `share` is what is advertised, `receiver` the receiver's.
//! Equations, readings and deviations are in `docs/blitz.md`.

mod demand;
mod receiver;
pub mod sender_tag;
pub mod share;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;

use crate::{
    Cnp, Feedback, Loss, Path,
    law::{Framing, LawCapabilities, LawInfo, Opening, ReceiverDriven, Recovery, SenderLaw, Transport},
    message::{self, Body, DataTag, Instruction},
    parameters::{Condition, ParameterError, ParameterInfo, Period, Raw},
    rate::dcqcn::{self, Dcqcn},
};
use demand::Demand;
use incast_units::{Rate, Time};
use sender_tag::SenderTag;
use share::Share;
use std::sync::Arc;

crate::choice! {
    /// What n counts.
    pub enum Counts {
        /// Hosts: the flows of one share what it has.
        Hosts = "hosts",
        /// Flows.
        Flows = "flows",
    }
}

crate::choice! {
    /// How a receiver finds the share of a sender.
    pub enum Allocation {
        /// The link by n: what DASR is.
        Direct = "direct",
        /// One rate for all senders, which each period changes by a part of what the link has left: EyeQ's.
        Iterative = "iterative",
    }
}

crate::choice! {
    /// When a sender counts.
    pub enum Active {
        /// From the first packet of a message to its last one.
        Open = "open",
        /// The same, while it has sent lately.
        Recent = "recent",
    }
}

crate::choice! {
    /// How n is advertised to senders.
    pub enum Advertise {
        /// By acknowledgements alone.
        Acks = "acks",
        /// A change is also sent at once to those senders to which no acknowledgement has carried it.
        Changes = "changes",
    }
}

crate::choice! {
    /// Of whose link a sender takes its share.
    pub enum ShareOf {
        /// The receiver's, whose rate is known since the connection was set up.
        Receiver = "receiver",
        /// Its own.
        Sender = "sender",
    }
}

crate::choice! {
    /// Which marks make DCQCN cut.
    pub enum Fallback {
        /// Those of the fabric. Ports that lead to hosts mark, too, with another codepoint.
        Fabric = "fabric",
        /// All of them.
        All = "all",
        /// None: receivers send no notifications, and those of switches are passed over.
        Off = "off",
    }
}

crate::choice! {
    /// What DCQCN cuts.
    pub enum CutOf {
        /// The rate at which the flow sends: no more than its share.
        Sent = "sent",
        /// DCQCN's own rate, however far above the share that is.
        Own = "own",
    }
}

crate::parameters!(Parameters {
    count: Counts {
        doc: "What n counts: the hosts that send, whose flows to one receiver share what the host has; or \
            the flows.",
        default: "\"hosts\"",
        value: |_| Counts::Hosts,
        source: "Blitz, SIGCOMM 2018: \"a receiver of n senders\""
    },
    active: Active {
        doc: "When a sender counts: while a message of its is open, or if a packet of its arrived in the last \
            `idle_after`.",
        default: "\"recent\"",
        value: |_| Active::Recent,
        source: "ours; \"open\" is Blitz, SIGCOMM 2018: \"when a sender completes\""
    },
    allocation: Allocation {
        doc: "How shares are found: the link by n; or one rate for all senders, changed each `iteration_period` by \
            `iteration_gain` times the part of the link that is left, for comparison.",
        default: "\"direct\"",
        value: |_| Allocation::Direct,
        source: "Blitz, SIGCOMM 2018; \"iterative\" is EyeQ (NSDI 2013), to which it compares itself"
    },
    iteration_period: Period {
        doc: "From one change of the iterative rate to the next, at an arrival.",
        default: "base RTT",
        value: |path| Period::of(path.base_rtt),
        source: "RCP, IWQoS 2005: T = min(d, 10ms); EyeQ's module: 200us"
    },
    iteration_gain: f64 {
        doc: "Part of what is left of the link by which the iterative rate changes.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in (0, 1]",
        check: |gain| *gain > 0.0 && *gain <= 1.0,
        source: "EyeQ's module (jvimal/eyeq): 1/2; RCP's router: 0.4"
    },
    idle_after: Period {
        doc: "A sender of which nothing arrived for so long does not count; nor less than the time of two of \
            its packets, nor while the receiver's link is busy with others, whose queue its packets may stand in.",
        default: "4 base RTT",
        value: |path| Period::of(path.base_rtt.saturating_mul(4)),
        source: "ours"
    },
    advertise: Advertise {
        doc: "How senders learn of n.",
        default: "\"changes\"",
        value: |_| Advertise::Changes,
        source: "ours; \"acks\" is Blitz, SIGCOMM 2018: \"piggybacks the count\""
    },
    advertise_interval: Period {
        doc: "Changes are told, and limits of senders taken in, no more often than this; nor so often that \
            it takes more than a tenth of the receiver's link.",
        default: "base RTT / 2",
        value: |path| Period::of(path.base_rtt / 2),
        source: "ours: half an RTT to wait and half to travel"
    },
    epoch_bits: u64 {
        doc: "Bits of a share, of 16, that number the epoch in which the receiver found it: a sender passes over a \
            share of an older epoch that comes after a newer one. An epoch lasts for `advertise_interval` at least.",
        default: "0",
        value: |_| 0,
        unset: "0",
        allowed: "0, or 2 to 4",
        check: |bits| matches!(bits, 0 | 2..=4),
        source: "ours; Blitz, SIGCOMM 2018, has none: the last share that arrives counts"
    },
    look_ahead: bool {
        doc: "Senders tell the incast degree of their request with their first packets, and its receiver \
            counts those that have not come.",
        default: "false",
        value: |_| false,
        source: "patent US 11,190,454; Blitz, SIGCOMM 2018, does not have it"
    },
    look_ahead_for: Time {
        doc: "For how long, after the first of them.",
        default: "4 base RTT",
        value: |path| path.base_rtt.saturating_mul(4),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "ours"
    },
    weight: u64 {
        doc: "A sender's share is so many times that of others. That of a host with several flows is the \
            largest of theirs.",
        default: "1",
        value: |_| 1,
        allowed: "1 to 16",
        check: |w| (1..=16).contains(w),
        source: "patent US 11,190,454 (shares by priority); Blitz, SIGCOMM 2018: equal"
    },
    count_acks: bool {
        doc: "Acknowledgements of what a receiver itself sends arrive on the link that it shares out, and take their \
            part of it.",
        default: "true",
        value: |_| true,
        source: "ours; false is Blitz, SIGCOMM 2018: all of the link is shared by senders"
    },
    water_filling: bool {
        doc: "Senders tell when they cannot use their share, and others get the rest of it.",
        default: "false",
        value: |_| false,
        source: "Blitz, SIGCOMM 2018, does not have it; ours"
    },
    share_of: ShareOf {
        doc: "Of whose link a sender takes its share, where links differ.",
        default: "\"receiver\"",
        value: |_| ShareOf::Receiver,
        source: "ours; \"sender\" is Blitz, SIGCOMM 2018: \"cut its rate by a factor of n\""
    },
    initial: f64 {
        doc: "Part of the link that a flow takes before it knows its share.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |share| *share > 0.0 && *share <= 1.0,
        source: "Blitz, SIGCOMM 2018, names none: line rate, as RDMA starts"
    },
    utilization: f64 {
        doc: "Part of the link that is shared. Below 1 a queue that the first RTT left drains.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |share| *share > 0.0 && *share <= 1.0,
        source: "Blitz, SIGCOMM 2018: all of it"
    },
    fallback: Fallback {
        doc: "Which marks make DCQCN cut: those set in the fabric, all, or none.",
        default: "\"fabric\"",
        value: |_| Fallback::Fabric,
        source: "Blitz, SIGCOMM 2018: for what is left once receiver congestion is filtered out"
    },
    cut_rate: CutOf {
        doc: "What DCQCN cuts: the rate at which the flow sends, or DCQCN's own.",
        default: "\"sent\"",
        value: |_| CutOf::Sent,
        source: "ours; \"own\" is DCQCN beside DASR, which does nothing until it is below the share"
    },
});

const OWN: usize = Parameters::TABLE.len();
const ALL: usize = OWN + dcqcn::Parameters::TABLE.len();

/// The parameters, and those of DCQCN after them.
const TABLE: [ParameterInfo; ALL] = {
    let mut table = [Parameters::TABLE[0]; ALL];
    let mut row = 0;
    while row < ALL {
        table[row] = if row < OWN { Parameters::TABLE[row] } else { dcqcn::Parameters::TABLE[row - OWN] };
        row += 1;
    }
    table
};

const OWN_CONDITIONS: [Condition; 8] = [
    Condition::new("idle_after", "active", &["recent"]),
    Condition::new("iteration_period", "allocation", &["iterative"]),
    Condition::new("iteration_gain", "allocation", &["iterative"]),
    Condition::new("look_ahead", "allocation", &["direct"]),
    Condition::new("water_filling", "allocation", &["direct"]),
    Condition::new("look_ahead_for", "look_ahead", &["true"]),
    Condition::new("cut_rate", "fallback", &["fabric", "all"]),
    Condition::new("cnp_interval", "fallback", &["fabric", "all"]),
];

const CONDITIONS: [Condition; OWN_CONDITIONS.len() + Dcqcn::CONDITIONS.len()] = {
    let mut conditions = [OWN_CONDITIONS[0]; OWN_CONDITIONS.len() + Dcqcn::CONDITIONS.len()];
    let mut row = 0;
    while row < conditions.len() {
        conditions[row] = if row < OWN_CONDITIONS.len() {
            OWN_CONDITIONS[row]
        } else {
            Dcqcn::CONDITIONS[row - OWN_CONDITIONS.len()]
        };
        row += 1;
    }
    conditions
};

/// What all flows of a fabric share.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    fallback: <Dcqcn as SenderLaw>::Parameters,
    path: Path,
}

/// State of a flow at its sender.
#[derive(Clone, Debug)]
pub struct Dasr {
    /// Rates in bit/s: of the receiver's link, and of the advertised share of it.
    receiver: f64,
    share: f64,
    /// The denominator of that share; 0 before the receiver's first answer.
    parts: f32,
    /// The epoch of that share, and when it came.
    epoch: (u8, Time),
    degree: u16,
    demand: Demand,
    /// DCQCN, since the first notification.
    fallback: Option<Box<Dcqcn>>,
    constants: Arc<Constants>,
}

impl Dasr {
    /// A share of an older epoch than that of the last one, in the order of RFC 1982. After half of all numbers that order
    /// says nothing.
    fn is_outdated(&self, now: Time, epoch: u8) -> bool {
        let parameters = &self.constants.parameters;
        // Of all numbers; none without epochs.
        let half = 1u8 << parameters.epoch_bits >> 1;
        let (last, since) = self.epoch;
        let known = parameters.advertise_interval.time().saturating_mul(half.into());
        let ahead = epoch.wrapping_sub(last) & (2 * half).wrapping_sub(1);
        self.parts > 0.0 && half > 0 && ahead > half && now < since.saturating_add(known)
    }

    /// `C / n`, C being the rate of the link that is shared (docs/blitz.md, 1).
    fn on_share(&mut self, now: Time, share: Share) {
        let (share, epoch) = share.of_epoch(self.constants.parameters.epoch_bits as u32);
        if self.is_outdated(now, epoch) {
            return;
        }
        self.epoch = (epoch, now);
        let Constants { parameters, path, .. } = &*self.constants;
        let link = match parameters.share_of {
            ShareOf::Receiver => self.receiver,
            ShareOf::Sender => path.rate.as_f64(),
        };
        self.parts = share.parts() as f32;
        self.share = link * parameters.utilization / share.parts();
    }

    /// The share, no more than the sender's own link, and no more than what DCQCN leaves (docs/blitz.md, 2).
    fn rate(&self) -> f64 {
        let most = self.share.min(self.constants.path.rate.as_f64());
        let fallback = self.fallback.as_ref().and_then(|fallback| fallback.pacing_rate());
        fallback.map_or(most, |fallback| most.min(fallback.as_f64()))
    }

    /// The tag of the next packet. Until the receiver has answered: weight and incast degree; then what the sender can
    /// use, if that was ever less than its share.
    fn tag(&self) -> Option<SenderTag> {
        let weight = self.constants.parameters.weight as u8;
        if self.parts > 0.0 {
            let parts = |rate: f64| if rate.is_finite() { self.receiver / rate } else { 1.0 };
            return self.demand.limit().map(|rate| SenderTag::Limit(Share::one_in(parts(rate))));
        }
        (weight > 1 || self.degree > 1).then_some(SenderTag::Opening { weight, degree: self.degree })
    }

    /// DCQCN has a notification to take, at `now`: one that cuts, if there is congestion.
    fn fall_back(&mut self, now: Time, congested: bool) -> &mut Dcqcn {
        let rate = self.rate();
        let Constants { parameters, fallback, path } = &*self.constants;
        let start = || Box::new(Dcqcn::start(fallback, path, now, 0));
        let inner = self.fallback.get_or_insert_with(start);
        if congested && parameters.cut_rate == CutOf::Sent {
            inner.confine(now, rate);
        }
        inner
    }
}

/// The share of a flow, for a sender that cannot wait for an acknowledgement.
impl message::Message for Share {
    fn encode(self) -> Body {
        Body { values: [self.tag().get().into(), 0], ..Body::default() }
    }
    fn decode(body: &Body) -> Option<Self> {
        Self::from_bits(body.values[0] as u16)
    }
}

impl SenderLaw for Dasr {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "dasr",
        title: "Blitz",
        source: "J. Xue et al., poster at SIGCOMM 2018; DCQCN as in SIGCOMM 2015",
        framing: Framing::RoceV2,
        recovery: Recovery::GoBackN,
        ecn_capable: true,
        parameters: &TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities { signals: true, ..Dcqcn::CAPABILITIES };
    const CONDITIONS: &'static [Condition] = &CONDITIONS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let is_own = |(key, _): &(String, Raw)| Parameters::TABLE.iter().any(|row| row.name == key);
        let (own, fallback): (Vec<_>, Vec<_>) = given.iter().cloned().partition(is_own);
        let known = |error| match error {
            ParameterError::Unknown { name, .. } => {
                ParameterError::Unknown { name, allowed: TABLE.iter().map(|row| row.name).collect() }
            }
            error @ ParameterError::Value { .. } => error,
        };
        let parameters = Parameters::resolve(path, &own)?;
        let fallback = Dcqcn::resolve(path, &fallback).map_err(known)?;
        Ok(Arc::new(Constants { parameters, fallback, path: *path }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        [constants.parameters.values(), Dcqcn::values(&constants.fallback)].concat()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        let Constants { parameters, fallback, .. } = &**constants;
        let of_dcqcn = Dcqcn::transport(fallback);
        Transport {
            notification_interval: match parameters.fallback {
                Fallback::Off => None,
                _ => of_dcqcn.notification_interval,
            },
            marks_at_edge: parameters.fallback == Fallback::Fabric,
            updates_gap: of_dcqcn.updates_gap,
            incast_degree: parameters.look_ahead,
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(constants: &Arc<Constants>, path: &Path, _now: Time, _random: u32) -> Self {
        let line = path.rate.as_f64();
        Self {
            receiver: line,
            share: line * constants.parameters.initial,
            parts: 0.0,
            epoch: (0, Time::ZERO),
            degree: 0,
            demand: Demand::new(),
            fallback: None,
            constants: Arc::clone(constants),
        }
    }

    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        if let Some(tag) = feedback.tag {
            self.on_share(feedback.now, Share::from_tag(tag));
        }
        if feedback.marked > 0 && self.constants.parameters.fallback != Fallback::Off {
            let by_echo = Dcqcn::transport(&self.constants.fallback).notification_interval.is_none();
            if by_echo {
                self.fall_back(feedback.now, true);
            }
        }
        if let Some(fallback) = &mut self.fallback {
            fallback.on_ack(feedback);
        }
    }
    fn on_loss(&mut self, loss: &Loss) {
        if let Some(fallback) = &mut self.fallback {
            fallback.on_loss(loss);
        }
    }
    fn on_timeout(&mut self, now: Time, next: u64) {
        if let Some(fallback) = &mut self.fallback {
            fallback.on_timeout(now, next);
        }
    }
    fn on_cnp(&mut self, now: Time, cnp: &Cnp) {
        // Switches may notify where receivers do not.
        if self.constants.parameters.fallback != Fallback::Off {
            self.fall_back(now, cnp.congested).on_cnp(now, cnp);
        }
    }
    fn on_timer(&mut self, now: Time) {
        if let Some(fallback) = &mut self.fallback {
            fallback.on_timer(now);
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u32) {
        if let Some(fallback) = &mut self.fallback {
            fallback.on_sent(now, bytes);
        }
        if self.parts > 0.0 && self.constants.parameters.water_filling {
            let path = &self.constants.path;
            let wire = bytes + path.wire_mss.saturating_sub(path.mss);
            self.demand.on_sent(now, wire, self.share, path.base_rtt);
        }
    }

    fn window(&self) -> u64 {
        self.fallback.as_ref().map_or(u64::MAX, |fallback| fallback.window())
    }
    fn assigned_window(&self) -> u64 {
        self.fallback.as_ref().map_or(u64::MAX, |fallback| fallback.assigned_window())
    }
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps((self.rate() as u64).max(1)))
    }
    fn next_timer(&self) -> Time {
        self.fallback.as_ref().map_or(Time::MAX, |fallback| fallback.next_timer())
    }
    /// n, as the receiver advertised it.
    fn estimate(&self) -> Option<f32> {
        (self.parts > 0.0).then_some(self.parts)
    }
}

impl ReceiverDriven for Dasr {
    type Receiver = Receiver;

    fn receiver(constants: &Arc<Constants>, path: &Path) -> Receiver {
        Receiver::new(constants.clone(), path)
    }
    fn receiver_values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        const KEYS: [&str; 11] = [
            "count",
            "active",
            "idle_after",
            "allocation",
            "iteration_period",
            "iteration_gain",
            "advertise",
            "advertise_interval",
            "epoch_bits",
            "look_ahead_for",
            "utilization",
        ];
        // Only the iterative allocation looks at how much of the link is shared.
        let keys = match constants.parameters.allocation {
            Allocation::Iterative => &KEYS[..],
            Allocation::Direct => &KEYS[..KEYS.len() - 1],
        };
        let values = constants.parameters.values();
        values.into_iter().filter(|(key, _)| keys.contains(key)).collect()
    }

    fn on_open(&mut self, opening: &Opening) {
        let Constants { parameters, path, .. } = &*self.constants;
        self.receiver = opening.receiver.as_f64();
        if parameters.share_of == ShareOf::Receiver {
            self.share = self.receiver.min(path.rate.as_f64()) * parameters.initial;
        }
        self.degree = u16::try_from(opening.degree).unwrap_or(u16::MAX);
    }
    fn on_message(&mut self, now: Time, share: Share) -> Option<Instruction> {
        self.on_share(now, share);
        None
    }
    #[inline]
    fn tag(&self) -> Option<DataTag> {
        self.tag().map(SenderTag::tag)
    }
}
