//! Homa: short messages first, by priorities that the receiver assigns.
//!
//! Source: B. Montazeri et al., "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities",
//! SIGCOMM 2018; the Linux implementation (J. Ousterhout, "A Linux Kernel Implementation of the Homa Transport
//! Protocol", ATC 2021, and its `protocol.md`) and the authors' simulator were read for values.
//!
//! ```text
//!   sender    DATA, unscheduled: the first RTTbytes, at a priority by the message's size ─────▶
//!             DATA, scheduled: below the position of the last GRANT, at its priority ─────────▶   receiver
//!           ◀───── GRANT(position, priority): received + RTTbytes, to the K shortest messages, one of a sender
//!           ◀───── RESEND(range): nothing came for a timeout, though something was to come
//!             BUSY: other messages go first ──────────────────────────────────────────────────▶
//! ```
//!
//! This file is the sender's half, with the parameters; `scheduler` is the receiver's, `levels` splits the priorities.
//! Readings and deviations are in `docs/homa.md`. A message is one flow, one way. Each data packet carries the number of
//! the message's unscheduled packets.

mod levels;
mod scheduler;
#[cfg(test)]
mod tests;

pub use levels::Cutoffs;
pub use scheduler::Receiver;

use crate::{
    Path,
    law::{
        Acknowledges, Framing, LawCapabilities, LawInfo, Opening, ReceiverDriven, Recovery, SendOrder, SenderLaw,
        SizeClass, Transport,
    },
    message::{self, DataTag, Instruction},
    parameters::{Condition, ParameterError, Period, Raw, Setting, chosen},
    receiver_driven::{Profile, reminder::Reminder},
};
use incast_units::{Bytes, Time};
use std::sync::Arc;

crate::choice! {
    /// Which scheduled priorities are used if there are fewer messages than priorities.
    pub enum Fill {
        /// The lowest ones (SIGCOMM 2018): a shorter message that comes finds a free one above.
        Low = "low",
        /// The highest ones (`protocol.md` of the Linux implementation).
        High = "high",
    }
}

crate::choice! {
    /// What decides the priority of unscheduled data.
    pub enum By {
        /// The message's size.
        Size = "size",
        /// What is left of it at each packet; also of scheduled data within RTTbytes of the end.
        Remaining = "remaining",
    }
}

crate::choice! {
    /// Where control packets go.
    pub enum ControlAt {
        /// At the highest priority, which the shortest messages' unscheduled data has too.
        Shared = "shared",
        /// At the highest priority, alone: data has the others.
        Own = "separate",
    }
}

crate::choice! {
    /// What a RESEND requests.
    pub enum Resends {
        /// The first range that is missing.
        FirstRange = "first-range",
        /// Each range that is missing.
        AllRanges = "all-ranges",
    }
}

crate::choice! {
    /// Which priority data has that is sent again.
    pub enum ResendPriority {
        /// That of its place, which is an unscheduled one for unscheduled data.
        Original = "original",
        /// The highest one that data has (Linux).
        Highest = "highest",
        /// That which the receiver last named: of the message's last GRANT, before that the lowest.
        Resend = "resend",
    }
}

crate::choice! {
    /// By which bytes the shortest message is found.
    pub enum Srpt {
        /// Those that have not arrived.
        Arrived = "arrived",
        /// Those that have not been granted.
        Granted = "granted",
    }
}

crate::choice! {
    /// Which messages count as part of an incast.
    pub enum IncastControl {
        /// Those of requests with more messages to one host than `incast_threshold`: the client counts what it waits
        /// for, and marks its requests.
        Counted = "counted",
        /// None does.
        Off = "off",
        /// All do, as if the client of each request had marked it.
        Marked = "marked",
    }
}

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from; \"paper\" is Polo's evaluation, with 12 packets \
            of RTTbytes and 2 active messages.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: one scenario fits every rate"
    },
    unscheduled: Bytes {
        doc: "RTTbytes: payload that is sent without a grant, and that grants keep ahead of what has \
            arrived, in whole packets.",
        default: "BDP; paper: 12 packets",
        value: |path| path.bdp(),
        allowed: "at least 1B",
        check: |b| b.get() > 0,
        source: "SIGCOMM 2018, section 3.2: 9.7KB at 10Gbps"
    },
    priorities: u64 {
        doc: "Priorities in all, of which control packets and the shortest messages share the highest.",
        default: "8",
        value: |_| 8,
        allowed: "1 to 8",
        check: |n| (1..=8).contains(n),
        source: "SIGCOMM 2018, section 3.4"
    },
    control: ControlAt {
        doc: "Where control packets go.",
        default: "\"shared\"",
        value: |_| ControlAt::Shared,
        allowed: "\"shared\" or \"separate\" (with 3 priorities or more)",
        source: "SIGCOMM 2018, section 3.4: all but data at the highest priority"
    },
    unscheduled_priorities: u64 {
        doc: "Priorities of unscheduled data, above those of scheduled data.",
        default: "by the traffic's unscheduled bytes; without traffic half of them",
        value: |_| 4,
        allowed: "1 to the data priorities - 1",
        check: |n| (1..=8).contains(n),
        source: "SIGCOMM 2018, section 3.4"
    },
    cutoffs: Cutoffs {
        doc: "Largest sizes of the messages of each unscheduled priority but the last, as \"2KB,8KB\".",
        default: "by the traffic: as many unscheduled bytes for each; without it by halves",
        value: |_| Cutoffs::default(),
        allowed: "sizes that do not fall, one fewer than unscheduled_priorities",
        source: "SIGCOMM 2018, section 3.4, figure 4"
    },
    unscheduled_by: By {
        doc: "What decides the priority of unscheduled data.",
        default: "\"size\"",
        value: |_| By::Size,
        source: "SIGCOMM 2018, section 3.4; \"remaining\" is the authors' simulator"
    },
    overcommitment: u64 {
        doc: "K: messages that are granted at the same time, each of another sender.",
        default: "the scheduled priorities; paper: 2",
        value: |_| 4,
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "SIGCOMM 2018, section 3.5"
    },
    srpt: Srpt {
        doc: "Which bytes of a message count as left where the shortest ones are granted: those that have not arrived, \
            or those that have not been granted.",
        default: "\"arrived\"",
        value: |_| Srpt::Arrived,
        source: "SIGCOMM 2018, section 3.4: the fewest remaining bytes; \"granted\" is the authors' simulator and Linux \
            today (homa_grant_outranks)"
    },
    sched_prio_fill: Fill {
        doc: "Which scheduled priorities are used if there are fewer messages than priorities.",
        default: "\"low\"",
        value: |_| Fill::Low,
        source: "SIGCOMM 2018, section 3.4; \"high\" is Linux"
    },
    resend_timeout: Period {
        doc: "Time without data of a message that is to come, after which it is asked for again. What of other \
            messages is to come first adds the time that it takes.",
        default: "max(host.rto_min, 3 base RTT)",
        value: |path| Period::of(path.timeout()),
        source: "SIGCOMM 2018, section 3.7: a few ms; Linux: 5 ticks of 1ms"
    },
    resend_interval: Period {
        doc: "From one RESEND of a message to the next.",
        default: "resend_timeout",
        value: |path| Period::of(path.timeout()),
        source: "Linux: 5 ticks of 1ms, as its timeout"
    },
    resends: Resends {
        doc: "What a RESEND asks for.",
        default: "\"all-ranges\"; paper: \"first-range\"",
        value: |_| Resends::AllRanges,
        source: "Linux (homa_gap_retry); \"first-range\" is SIGCOMM 2018, section 3.7"
    },
    resend_priority: ResendPriority {
        doc: "Which priority data has that is sent again: that of its place in the message, the highest, or \
            that which the receiver last named.",
        default: "\"highest\"",
        value: |_| ResendPriority::Highest,
        source: "Linux; SIGCOMM 2018 does not say"
    },
    incast_control: IncastControl {
        doc: "Which messages count as part of an incast, of which only `incast_unscheduled` is sent \
            without a grant.",
        default: "\"counted\"; paper: \"off\"",
        value: |_| IncastControl::Counted,
        source: "SIGCOMM 2018, section 3.6: who waits for many responses marks its requests"
    },
    incast_threshold: u64 {
        doc: "Messages of one request to one host above which all of them count as part of an incast.",
        default: "overcommitment, at least 4",
        value: |_| LEAST_THRESHOLD,
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "ours: so many messages' RTTbytes are what overcommitment lets a receiver's port queue; SIGCOMM \
            2018 prints none"
    },
    incast_unscheduled: Bytes {
        doc: "Payload of marked messages that is sent without a grant, in whole packets.",
        default: "1 packet",
        value: |path| Bytes::new(u64::from(path.mss)),
        allowed: "at least 1B",
        check: |b| b.get() > 0,
        source: "SIGCOMM 2018, section 3.6: a few hundred bytes"
    },
});

/// So many messages are no incast, however few priorities there are: each that is unscheduled as a whole takes a round
/// trip less.
const LEAST_THRESHOLD: u64 = 4;

/// What all messages of a fabric share.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    mss: u64,
    /// Unscheduled bytes of a message that is not part of an incast, in whole packets.
    unscheduled_bytes: u64,
    /// Those of one that is.
    incast_bytes: u64,
    /// RTTbytes, in whole packets.
    ahead: u64,
    /// A full packet on the host's link.
    packet: Time,
}

impl Constants {
    /// The highest priority of data.
    fn first_level(&self) -> u8 {
        u8::from(self.parameters.control == ControlAt::Own)
    }

    /// Priorities of scheduled data; with one priority in all that one serves for all.
    fn scheduled_levels(&self) -> u64 {
        let data = self.parameters.priorities - u64::from(self.first_level());
        data.saturating_sub(self.parameters.unscheduled_priorities).max(1)
    }

    /// Priority of unscheduled data of a message of this size, or with so much left.
    fn unscheduled_level(&self, bytes: u64) -> u8 {
        self.first_level() + self.parameters.cutoffs.level(bytes)
    }

    /// Unscheduled bytes of a message of a request that has `degree` messages to the same host.
    fn unscheduled_of(&self, degree: u32) -> u64 {
        let is_counted = self.parameters.incast_control == IncastControl::Counted;
        if is_counted && u64::from(degree) > self.parameters.incast_threshold {
            self.incast_bytes
        } else {
            self.unscheduled_bytes
        }
    }

    fn lowest(&self) -> u8 {
        (self.parameters.priorities - 1) as u8
    }
}

/// State of a message at its sender.
#[derive(Clone, Debug)]
pub struct Homa {
    bytes: u64,
    /// What is sent without a grant, in whole packets.
    unscheduled: u64,
    signal: Option<Signal>,
    reminder: Reminder,
    constants: Arc<Constants>,
}

fn wrong(name: &'static str, message: String) -> ParameterError {
    ParameterError::Value { name, message }
}

/// The parameters that others decide about unless they are given: see the table.
fn derive(mut parameters: Parameters, is_given: &dyn Fn(&str) -> bool) -> Result<Parameters, ParameterError> {
    let own = u64::from(parameters.control == ControlAt::Own);
    let data = parameters.priorities.saturating_sub(own);
    if own == 1 && data < 2 {
        let message = format!("found \"separate\" with {} priorities, allowed is \"shared\"", parameters.priorities);
        return Err(wrong("control", message));
    }
    let most = (data - 1).max(1);
    match (is_given("unscheduled_priorities"), is_given("cutoffs")) {
        (false, true) => parameters.unscheduled_priorities = parameters.cutoffs.count() as u64 + 1,
        (false, false) => parameters.unscheduled_priorities = (data / 2).max(1),
        _ => {}
    }
    let count = parameters.unscheduled_priorities;
    if count > most {
        let name = if is_given("unscheduled_priorities") { "unscheduled_priorities" } else { "cutoffs" };
        let message = format!("found {count} unscheduled priorities, allowed is 1 to {most} of {data}");
        return Err(wrong(name, message));
    }
    if !is_given("cutoffs") {
        parameters.cutoffs = Cutoffs::halving(parameters.unscheduled.get(), count);
    } else if parameters.cutoffs.count() as u64 + 1 != count {
        let cutoffs = &parameters.cutoffs;
        let message = format!("found {}, allowed are {} sizes", cutoffs.write(), count - 1);
        return Err(wrong("cutoffs", message));
    }
    if !is_given("overcommitment") {
        parameters.overcommitment = match parameters.profile {
            Profile::Scaled => data.saturating_sub(count).max(1),
            Profile::Paper => 2,
        };
    }
    if !is_given("incast_threshold") {
        parameters.incast_threshold = parameters.overcommitment.max(LEAST_THRESHOLD);
    }
    Ok(parameters)
}

impl SenderLaw for Homa {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "homa",
        title: "Homa",
        source: "B. Montazeri et al., SIGCOMM 2018",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities { signals: true, priorities: true, ..LawCapabilities::NONE };
    const CONDITIONS: &'static [Condition] = &[
        Condition::new("incast_threshold", "incast_control", &["counted"]),
        Condition::new("incast_unscheduled", "incast_control", &["counted", "marked"]),
    ];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let mss = u64::from(path.mss.max(1));
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::Paper {
            defaults.unscheduled = Bytes::new(12 * mss);
            defaults.resends = Resends::FirstRange;
            defaults.incast_control = IncastControl::Off;
        }
        defaults.resend_interval = chosen("resend_timeout", defaults.resend_timeout, given)?;
        let parameters = derive(defaults.with(given)?, &|name| given.iter().any(|(key, _)| key == name))?;
        let whole = |bytes: Bytes| bytes.get().div_ceil(mss).max(1).saturating_mul(mss);
        let ahead = whole(parameters.unscheduled);
        let incast_bytes = whole(parameters.incast_unscheduled).min(ahead);
        let unscheduled_bytes = match parameters.incast_control {
            IncastControl::Counted | IncastControl::Off => ahead,
            IncastControl::Marked => incast_bytes,
        };
        let packet = path.rate.time_of(Bytes::new(path.wire_mss.into()));
        Ok(Arc::new(Constants { parameters, mss, unscheduled_bytes, incast_bytes, ahead, packet }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        Transport {
            acknowledges: Acknowledges::Flows,
            order: SendOrder::ShortestRemaining,
            trimmable: false,
            in_any_order: true,
            reminded: false,
            priority: constants.lowest(),
            control_priority: Some(0),
            incast_degree: constants.parameters.incast_control == IncastControl::Counted,
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(constants: &Arc<Constants>, path: &Path, _now: Time, _random: u32) -> Self {
        let reminder = Reminder::new(path.timeout());
        let unscheduled = constants.unscheduled_bytes;
        Self { bytes: 0, unscheduled, signal: None, reminder, constants: constants.clone() }
    }

    /// The message's first packets, or the receiver's answer, may be lost.
    fn on_timeout(&mut self, now: Time, next: u64) {
        if self.reminder.on_timeout(now, next >= self.bytes) {
            self.signal = Some(Signal::Request);
        }
    }
}

/// What a sender sends to the receiver apart from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// There is a message, or its sender has received nothing for long.
    Request,
    /// Packets that the receiver requested again wait behind other messages (BUSY).
    Busy,
}

impl message::Signal for Signal {
    fn code(self) -> u8 {
        self as u8
    }
    fn from_code(code: u8) -> Option<Self> {
        [Self::Request, Self::Busy].into_iter().find(|signal| *signal as u8 == code)
    }
}

impl ReceiverDriven for Homa {
    type Receiver = Receiver;

    fn receiver(constants: &Arc<Constants>, _path: &Path) -> Receiver {
        Receiver::new(constants.clone())
    }
    /// A receiver learns from each message what of it is unscheduled, and grants messages of all classes together.
    fn receiver_values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        const SENDERS: [&str; 7] = [
            "profile",
            "cutoffs",
            "unscheduled_by",
            "resend_priority",
            "incast_control",
            "incast_threshold",
            "incast_unscheduled",
        ];
        let values = constants.parameters.values();
        values.into_iter().filter(|(key, _)| !SENDERS.contains(key)).collect()
    }
    fn by_traffic(
        constants: &Arc<Constants>,
        given: &[(String, Raw)],
        sizes: &dyn Fn() -> Vec<SizeClass>,
    ) -> Vec<(&'static str, Raw)> {
        let is_given = |name: &str| given.iter().any(|(key, _)| key == name);
        if is_given("cutoffs") {
            return Vec::new();
        }
        let sizes = sizes();
        if sizes.is_empty() {
            return Vec::new();
        }
        let data = constants.parameters.priorities - u64::from(constants.first_level());
        let count = is_given("unscheduled_priorities").then_some(constants.parameters.unscheduled_priorities);
        let (count, cutoffs) = levels::split(data, count, constants.ahead, &sizes);
        vec![("unscheduled_priorities", count.write()), ("cutoffs", cutoffs.write())]
    }

    fn on_open(&mut self, opening: &Opening) {
        self.bytes = opening.bytes;
        self.unscheduled = self.constants.unscheduled_of(opening.degree);
    }
    #[inline]
    fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    /// How many of the message's packets are unscheduled: each data packet says so, as in the Linux implementation.
    #[inline]
    fn tag(&self) -> Option<DataTag> {
        u16::try_from(self.unscheduled / self.constants.mss).ok().filter(|packets| *packets < 1 << 15).map(DataTag::new)
    }
    /// A GRANT or a RESEND.
    fn on_message(&mut self, _now: Time, message: Instruction) -> Option<Instruction> {
        self.reminder.on_heard();
        Some(message)
    }
    fn on_deferred_resend(&mut self, _now: Time) {
        self.signal = Some(Signal::Busy);
    }
    fn take_signal(&mut self) -> Option<Signal> {
        self.signal.take()
    }
    fn has_signal(&self) -> bool {
        self.signal.is_some()
    }
    fn priority(&self, position: u64, again: bool) -> Option<u8> {
        match self.constants.parameters.resend_priority {
            ResendPriority::Highest if again => Some(self.constants.first_level()),
            ResendPriority::Resend if again => None,
            _ => self.priority_of_place(position),
        }
    }
}

impl Homa {
    /// Priority of data at `position` when it is sent first.
    fn priority_of_place(&self, position: u64) -> Option<u8> {
        let constants = &*self.constants;
        let left = self.bytes.saturating_sub(position);
        match constants.parameters.unscheduled_by {
            By::Size => (position < self.unscheduled).then(|| constants.unscheduled_level(self.bytes)),
            By::Remaining => {
                let is_short = position < self.unscheduled || left <= constants.ahead;
                is_short.then(|| constants.unscheduled_level(left))
            }
        }
    }
}
