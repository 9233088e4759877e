//! Receiver-driven protocols: what the receiver of many flows decides about them. One file per protocol.
//!
//! One object serves one host. It hears of a flow with its first packet, of each data packet, and of the flow's end,
//! and answers with control packets that the host sends on its behalf. Flows have handles, which the host gives out
//! and never uses twice.
//!
//! What the protocols need of it:
//!
//! | protocol | of this interface |
//! |---|---|
//! | Homa | [`Control::Credit`] with the priority of scheduled data; [`Control::Resend`] from a timer, answered by [`Signal::Busy`] |
//! | NDP | [`Control::Pull`], paced by a timer; [`Control::Resend`] for the NACK of a header without its payload |
//! | pHost | [`Signal::Request`] for an RTS; [`Control::Token`] with the packet that is wanted and a lifetime, [`ReceiverScheduler::on_token_used`] |
//! | Polo | [`Signal::Adjoint`] and [`Control::Answer`] for the ping-pong; [`Control::Token`] for a driving packet, with the packet that is wanted for a loss packet |
//! | Blitz (DASR) | [`ReceiverScheduler::share`] with each acknowledgement, [`Control::Share`] when it changes, [`Word`]s of the senders |
//!
//! Credit is a position up to which the sender may go, and is never taken back. A token is for one packet, and may
//! expire. A scheduler that hands out tokens says so ([`ReceiverScheduler::uses_tokens`]): then packets that are sent
//! again need one as well.
//!
//! The sender's half of a protocol, with its parameters, is a [`crate::law::SenderLaw`] in the same file: what is sent
//! blindly, which [`Signal`]s the sender gives, with which priority data goes. It makes the scheduler
//! ([`crate::law::ReceiverDriven`]).

use crate::{share::Share, word::Word};
use incast_units::Time;

/// A flow as its first packet tells of it.
#[derive(Clone, Copy, Debug)]
pub struct NewFlow {
    /// When that packet arrived.
    pub now: Time,
    /// The receiver's own handle of the flow.
    pub flow: u32,
    /// Sending host.
    pub source: u32,
    /// Payload bytes, rounded up to whole packets: only its last packet says how short that is.
    pub bytes: u64,
    /// Payload bytes of a full packet.
    pub mss: u32,
}

/// A data packet as the receiver's scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrived.
    pub now: Time,
    /// The receiver's own handle of the flow.
    pub flow: u32,
    /// First payload byte.
    pub position: u64,
    /// Payload bytes; zero for a header that lost its payload.
    pub bytes: u32,
    /// All bytes below this position have arrived, this packet counted as received.
    pub expected: u64,
    /// Bytes of the flow still missing, this packet counted as received.
    pub remaining: u64,
    /// It carried a congestion mark.
    pub marked: bool,
    /// The receiver had it already.
    pub duplicate: bool,
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it has arrived.
    Complete,
    /// Its sender has given it up.
    Abandoned,
}

/// A control packet that the scheduler wants sent to a flow's sender.
///
/// `flow` is the receiver's handle; bytes count payload from the start of the flow. A `priority` is that of the data
/// which the sender sends for the flow from then on; `None` changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Data below `position` may be sent.
    Credit {
        /// The flow.
        flow: u32,
        /// The first byte that is not allowed.
        position: u64,
        /// See above.
        priority: Option<u8>,
    },
    /// One packet may be sent: the one that is wanted, if it is named, else the next one. Packets found lost go before
    /// those never sent.
    Token {
        /// The flow.
        flow: u32,
        /// First byte of the packet that is wanted. If it was never sent, the next one takes its place.
        wanted: Option<u64>,
        /// How long the sender may keep the token, counted from when it gets it; [`Time::MAX`] for ever.
        lifetime: Time,
        /// See above.
        priority: Option<u8>,
    },
    /// What was sent of these bytes and has not arrived is lost: it is sent again, before new data. With tokens it
    /// waits for one.
    Resend {
        /// The flow.
        flow: u32,
        /// First byte.
        position: u64,
        /// How many.
        bytes: u64,
        /// See above.
        priority: Option<u8>,
    },
    /// So many packets may have been sent on tokens, from the start of the flow: a token for each that no earlier one
    /// gave. A later one makes up for one that was lost.
    Pull {
        /// The flow.
        flow: u32,
        /// How many.
        number: u64,
    },
    /// Answers a signal of the sender.
    Answer {
        /// The flow.
        flow: u32,
    },
    /// The flow's share of the receiver, for a sender that cannot wait for an acknowledgement.
    Share {
        /// The flow.
        flow: u32,
        /// See [`Share`].
        share: Share,
    },
}

impl Control {
    /// The flow that it is for.
    pub fn flow(&self) -> u32 {
        match *self {
            Self::Credit { flow, .. }
            | Self::Token { flow, .. }
            | Self::Resend { flow, .. }
            | Self::Pull { flow, .. }
            | Self::Answer { flow }
            | Self::Share { flow, .. } => flow,
        }
    }
}

/// Which token a data packet went on: the one that wanted a certain packet, which may be another one. Of its number 15 bits
/// travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenName(u16);

impl TokenName {
    const GIVEN: u16 = 1 << 15;

    /// Of a token for this packet.
    pub fn of(packet: u64) -> Self {
        Self(packet as u16 | Self::GIVEN)
    }

    /// As a packet carries it; never zero.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// What a packet carries, if it is a name.
    pub fn from_bits(bits: u16) -> Option<Self> {
        (bits & Self::GIVEN != 0).then_some(Self(bits))
    }
}

/// What a flow's sender says in a packet without payload. The receiver of a flow that is complete answers it with the
/// acknowledgement of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// There is a flow (RTS of pHost), or its sender has not heard of it for long.
    Request,
    /// Follows the first window, and each answer (adjoint packet of Polo).
    Adjoint,
    /// What the receiver asks for again waits behind other flows (BUSY of Homa).
    Busy,
}

/// The receiver's half of a receiver-driven protocol: one object for each host.
pub trait ReceiverScheduler {
    /// What senders may send blindly before anything else is known: payload of the host that may send least, and of the one that
    /// may send most, where hosts have links of several rates.
    fn on_blind(&mut self, _least: u64, _most: u64) {}
    /// The first packet of a flow arrived; [`Self::on_data`] follows for the packet itself.
    fn on_flow(&mut self, _flow: &NewFlow, _send: &mut dyn FnMut(Control)) {}
    /// The sender of a flow says something. The flow is known: if this is the first that is heard of it, [`Self::on_flow`]
    /// has just been called.
    fn on_signal(&mut self, _now: Time, _flow: u32, _signal: Signal, _send: &mut dyn FnMut(Control)) {}
    /// The data packet of which [`Self::on_data`] is about to tell went on a token that may expire.
    fn on_token_used(&mut self, _flow: u32, _name: TokenName) {}
    /// A data packet arrived; control packets go to `send`.
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control));
    /// The sender of a flow tells something with the packet of data of which [`Self::on_flow`] has just told, or [`Self::on_data`] is
    /// about to tell.
    fn on_word(&mut self, _now: Time, _flow: u32, _word: Word) {}
    /// A flow has ended. If it is complete, [`Self::on_data`] has just been called for its last missing packet.
    /// Duplicates may still come.
    fn on_end(&mut self, _now: Time, _flow: u32, _end: End, _send: &mut dyn FnMut(Control)) {}
    /// The time that [`Self::next_timer`] named has come.
    fn on_timer(&mut self, _now: Time, _send: &mut dyn FnMut(Control)) {}
    /// When [`Self::on_timer`] is wanted; [`Time::MAX`] for never.
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    /// What the acknowledgement of a flow that goes now says of its share. Asked after [`Self::on_flow`], before [`Self::on_data`].
    fn share(&mut self, _flow: u32) -> Option<Share> {
        None
    }
    /// [`Self::share`] has something to say.
    fn tells_shares(&self) -> bool {
        false
    }
    /// Senders need a token for each packet beyond their credit, sent again or not.
    fn uses_tokens(&self) -> bool {
        false
    }
    /// Every priority that it assigns is below this; 0 if it assigns none.
    fn priorities(&self) -> u8 {
        0
    }
}
