//! pHost: a receiver hands out one token for each packet that its link can take; a sender picks among its tokens.
//!
//! Source: P. X. Gao et al., "pHost: Distributed Near-Optimal Datacenter Transport Over Commodity Network Fabric",
//! CoNEXT 2015; the authors' simulator (`capabilityflow.cpp`, `capabilityhost.cpp`) was read for values. t_p is the
//! time of a full packet on the host's link.
//!
//! ```text
//!   sender    RTS ─────────────────────────────────────────────────────────────────────────────▶
//!             DATA on free tokens: as many bytes as fill the path ─────────────────────────────▶   receiver
//!           ◀───── token(packet, 1.5 t_p), one every t_p, to the flow that is next
//!             DATA, one for each token that has not expired, of the flow that is next ─────────▶
//!           ◀───── ACK, when all has arrived
//! ```
//!
//! This file is the sender's half, with the parameters; `scheduler` is the receiver's. Readings and deviations are in
//! `docs/phost.md`.

mod scheduler;
#[cfg(test)]
mod tests;

pub use scheduler::Receiver;

use crate::{
    Path,
    law::{
        Acknowledges, Framing, LawCapabilities, LawInfo, Opening, ReceiverDriven, Recovery, SendOrder, SenderLaw,
        Transport,
    },
    message::{self, Instruction},
    parameters::{ParameterError, Period, Raw, chosen},
    receiver_driven::{Profile, reminder::Reminder},
};
use incast_units::{Bytes, Time};
use std::sync::Arc;

crate::choice! {
    /// Which flows have free tokens.
    pub enum FreeTokensFor {
        /// All (the paper).
        All = "all",
        /// Those that need no others (the authors' simulator).
        Short = "short",
    }
}

crate::choice! {
    /// Which flow is next, at receivers and senders.
    pub enum Scheduling {
        /// The one with the fewest packets left.
        Srpt = "srpt",
        /// They take turns.
        RoundRobin = "round-robin",
    }
}

crate::choice! {
    /// What the waiting times are.
    pub enum Timeouts {
        /// No less than the paper's are in RTTs, and t_p for each packet that the receiver waits for, of all flows: on
        /// longer paths, and in a queue at the receiver's port, what is on its way is not taken as lost. A token does
        /// not expire while its own flow sends, and a slower sender has its own t_p. A token for a packet that its sender
        /// sent less than an RTT and `resend_timeout` ago permits the next one.
        Rtt = "rtt",
        /// As many t_p as printed, on any path.
        Literal = "literal",
    }
}

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from; \"paper\" is Polo's evaluation, with 12 free \
            tokens and flows in turn.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: one scenario fits every rate"
    },
    free_tokens: Bytes {
        doc: "Payload that a flow may send without a token, in whole packets.",
        default: "BDP; paper: 12 packets",
        value: |path| path.bdp(),
        source: "CoNEXT 2015, section 3.2: a BDP, 8 packets"
    },
    free_tokens_for: FreeTokensFor {
        doc: "Which flows have free tokens: all, or those of at most so many bytes.",
        default: "\"all\"",
        value: |_| FreeTokensFor::All,
        source: "CoNEXT 2015, section 3.2; \"short\" is the authors' simulator"
    },
    scheduling: Scheduling {
        doc: "Which flow is next, at receivers and senders.",
        default: "\"srpt\"; paper: \"round-robin\"",
        value: |_| Scheduling::Srpt,
        source: "CoNEXT 2015, section 3.3"
    },
    token_expiry: f64 {
        doc: "How long a sender may keep a token, in t_p. While free tokens are still in use it is as much \
            longer as they take.",
        default: "1.5",
        value: |_| 1.5,
        allowed: "above 0",
        check: |n| *n > 0.0,
        source: "CoNEXT 2015, section 4.1"
    },
    window: u64 {
        doc: "How far tokens may run ahead of the last one that was used; a flow beyond that is left alone \
            for a while.",
        default: "8, or the BDP if it is more packets",
        value: |path| 8.max(path.bdp().get().div_ceil(u64::from(path.mss.max(1)))),
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "CoNEXT 2015, section 4.1: 8, a BDP"
    },
    window_timeout: f64 {
        doc: "How long it is left alone, in t_p since its last token.",
        default: "25",
        value: |_| 25.0,
        allowed: "above 0",
        check: |n| *n > 0.0,
        source: "the authors' simulator"
    },
    resend_timeout: f64 {
        doc: "What has not come so many t_p after all of a flow's tokens is given tokens again.",
        default: "9",
        value: |_| 9.0,
        allowed: "above 0",
        check: |n| *n > 0.0,
        source: "the authors' simulator"
    },
    timeouts: Timeouts {
        doc: "What the two waiting times, and the lifetime of tokens, are on paths that are longer than the paper's.",
        default: "\"rtt\"",
        value: |_| Timeouts::Rtt,
        source: "ours; \"literal\" is the authors' simulator"
    },
    short: Bytes {
        doc: "Largest flows whose data has the second of three priorities; control packets have the first.",
        default: "free_tokens",
        value: |path| path.bdp(),
        source: "the authors' simulator"
    },
});

/// What all flows of a fabric share.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    /// t_p: a full packet with preamble and gap.
    packet: Time,
    /// Free tokens.
    free: u64,
    lifetime: Time,
    window_timeout: Time,
    resend_timeout: Time,
    /// A packet that was sent more recently than this ago is not lost.
    not_lost_before: Time,
}

/// Priorities: control packets, data of short flows, other data.
const SHORT: u8 = 1;
const LONG: u8 = 2;

/// RTT of the paper's network in t_p.
const PAPER_RTT: f64 = 8.0;

impl Constants {
    /// Packets of a flow that go without tokens where `free` may.
    fn free_packets(&self, bytes: u64, mss: u64, free: u64) -> u64 {
        let packets = bytes.div_ceil(mss);
        match self.parameters.free_tokens_for {
            FreeTokensFor::Short if packets > free => 0,
            _ => packets.min(free),
        }
    }
}

/// State of a flow at its sender.
#[derive(Clone, Debug)]
pub struct Phost {
    priority: u8,
    mss: u64,
    /// The first position that needs a token.
    free: u64,
    bytes: u64,
    rts: Option<Rts>,
    reminder: Reminder,
    constants: Arc<Constants>,
}

impl SenderLaw for Phost {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "phost",
        title: "pHost",
        source: "P. X. Gao et al., CoNEXT 2015",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities { signals: true, priorities: true, ..LawCapabilities::NONE };

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let mss = u64::from(path.mss.max(1));
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::Paper {
            defaults = Parameters {
                free_tokens: Bytes::new(12 * mss),
                window: 12,
                scheduling: Scheduling::RoundRobin,
                ..defaults
            };
        }
        defaults.short = chosen("free_tokens", defaults.free_tokens, given)?;
        let parameters = defaults.with(given)?;
        let packet = path.rate.time_of(Bytes::new(path.wire_mss.into()));
        let wait = |packets: f64| {
            let literal = packet.mul_f64(packets);
            let time = match parameters.timeouts {
                Timeouts::Literal => literal,
                Timeouts::Rtt => literal.max(path.base_rtt.mul_f64(packets / PAPER_RTT)),
            };
            Period::of(time).time()
        };
        let resend_timeout = wait(parameters.resend_timeout);
        Ok(Arc::new(Constants {
            packet: packet.max(Time::from_ps(1)),
            free: parameters.free_tokens.get().div_ceil(mss),
            lifetime: Period::of(packet.mul_f64(parameters.token_expiry)).time(),
            window_timeout: wait(parameters.window_timeout),
            resend_timeout,
            not_lost_before: match parameters.timeouts {
                Timeouts::Rtt => path.base_rtt.saturating_add(resend_timeout),
                Timeouts::Literal => Time::ZERO,
            },
            parameters,
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        Transport {
            acknowledges: Acknowledges::Flows,
            order: match constants.parameters.scheduling {
                Scheduling::Srpt => SendOrder::ShortestRemaining,
                Scheduling::RoundRobin => SendOrder::RoundRobin,
            },
            trimmable: false,
            in_any_order: true,
            token_restarts: constants.parameters.timeouts == Timeouts::Rtt,
            not_lost_before: constants.not_lost_before,
            reminded: false,
            priority: LONG,
            control_priority: Some(0),
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(constants: &Arc<Constants>, path: &Path, _now: Time, _random: u32) -> Self {
        let mss = u64::from(path.mss.max(1));
        let reminder = Reminder::new(path.timeout());
        let (free, constants) = (constants.free * mss, constants.clone());
        Self { priority: LONG, mss, free, bytes: 0, rts: None, reminder, constants }
    }

    /// The RTS or the ACK may have been lost.
    fn on_timeout(&mut self, now: Time, next: u64) {
        if self.reminder.on_timeout(now, next >= self.bytes) {
            self.rts = Some(Rts);
        }
    }
}

/// There is a flow, or its sender has received nothing for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rts;

impl message::Signal for Rts {
    fn code(self) -> u8 {
        0
    }
    fn from_code(code: u8) -> Option<Self> {
        (code == 0).then_some(Self)
    }
}

impl ReceiverDriven for Phost {
    type Receiver = Receiver;

    fn receiver(constants: &Arc<Constants>, _path: &Path) -> Receiver {
        Receiver::new(constants.clone())
    }

    fn on_open(&mut self, opening: &Opening) {
        let (bytes, constants) = (opening.bytes, &self.constants);
        self.free = constants.free_packets(bytes, self.mss, constants.free) * self.mss;
        self.priority = if bytes <= constants.parameters.short.get() { SHORT } else { LONG };
        self.bytes = bytes;
        self.rts = Some(Rts);
    }
    #[inline]
    fn unscheduled(&self) -> u64 {
        self.free
    }
    /// A token.
    fn on_message(&mut self, _now: Time, token: Instruction) -> Option<Instruction> {
        self.reminder.on_heard();
        match token {
            Instruction::Token { wanted, lifetime, priority }
                if self.constants.parameters.timeouts == Timeouts::Rtt =>
            {
                Some(Instruction::Token { wanted, lifetime: lifetime.max(self.constants.lifetime), priority })
            }
            other => Some(other),
        }
    }
    fn take_signal(&mut self) -> Option<Rts> {
        self.rts.take()
    }
    fn has_signal(&self) -> bool {
        self.rts.is_some()
    }
    fn priority(&self, _position: u64, _again: bool) -> Option<u8> {
        Some(self.priority)
    }
}
