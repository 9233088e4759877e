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
//! The sender's half of a protocol, with its parameters, is a [`crate::sender::SenderLaw`] in the same file: what is sent
//! blindly, which [`Signal`]s the sender gives, with which priority data goes. It makes the scheduler
//! ([`crate::sender::SenderLaw::receiver`]).

mod arrived;
pub mod dasr;
pub mod homa;
pub mod ndp;
pub mod paced_tokens;
pub mod phost;
pub mod polo;
mod reminder;
mod share;
mod slots;
pub mod window_credit;
mod word;

pub use share::Share;
pub use word::Word;

use incast_units::Time;

crate::choice! {
    /// Where the defaults of a protocol's constants come from.
    pub enum Profile {
        /// Of the path, so that one scenario fits every rate.
        Scaled = "scaled",
        /// What the evaluation of Polo (C. Ruan et al., ICPP 2020) has for all of them: 12 packets are sent blindly.
        Paper = "paper",
    }
}

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

/// A receiver-driven protocol.
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

/// Declares the schedulers and passes each call on to the one there is.
macro_rules! schedulers {
    ($($(#[$doc:meta])* $name:ident($scheduler:ty),)*) => {
        /// The schedulers by name.
        #[derive(Clone, Debug, Default)]
        pub enum Scheduler {
            /// Sender-driven: the receiver only acknowledges.
            #[default]
            None,
            $($(#[$doc])* $name($scheduler),)*
        }

        impl Scheduler {
            /// [`ReceiverScheduler::on_data`]; returns when the timer is wanted then.
            #[inline]
            pub fn take_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $(Self::$name(scheduler) => {
                        scheduler.on_data(arrival, send);
                        scheduler.next_timer()
                    })*
                }
            }
            /// [`ReceiverScheduler::on_timer`], unless the timer is wanted later than `now`; returns when it is wanted
            /// then.
            #[inline]
            pub fn wake(&mut self, now: Time, send: &mut dyn FnMut(Control)) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $(Self::$name(scheduler) => {
                        if scheduler.next_timer() <= now {
                            scheduler.on_timer(now, send);
                        }
                        scheduler.next_timer()
                    })*
                }
            }
        }

        impl ReceiverScheduler for Scheduler {
            fn on_blind(&mut self, least: u64, most: u64) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_blind(least, most),)* }
            }
            fn on_flow(&mut self, flow: &NewFlow, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_flow(flow, send),)* }
            }
            fn on_signal(&mut self, now: Time, flow: u32, signal: Signal, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_signal(now, flow, signal, send),)* }
            }
            fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_data(arrival, send),)* }
            }
            fn on_token_used(&mut self, flow: u32, name: TokenName) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_token_used(flow, name),)* }
            }
            fn on_word(&mut self, now: Time, flow: u32, word: Word) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_word(now, flow, word),)* }
            }
            fn on_end(&mut self, now: Time, flow: u32, end: End, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_end(now, flow, end, send),)* }
            }
            fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $(Self::$name(scheduler) => scheduler.on_timer(now, send),)* }
            }
            fn next_timer(&self) -> Time {
                match self { Self::None => Time::MAX, $(Self::$name(scheduler) => scheduler.next_timer(),)* }
            }
            fn share(&mut self, flow: u32) -> Option<Share> {
                match self { Self::None => None, $(Self::$name(scheduler) => scheduler.share(flow),)* }
            }
            fn tells_shares(&self) -> bool {
                match self { Self::None => false, $(Self::$name(scheduler) => scheduler.tells_shares(),)* }
            }
            fn uses_tokens(&self) -> bool {
                match self { Self::None => false, $(Self::$name(scheduler) => scheduler.uses_tokens(),)* }
            }
            fn priorities(&self) -> u8 {
                match self { Self::None => 0, $(Self::$name(scheduler) => scheduler.priorities(),)* }
            }
        }
    };
}

schedulers! {
    /// See [`dasr`].
    Dasr(dasr::Receiver),
    /// See [`ndp`].
    Ndp(ndp::Receiver),
    /// See [`polo`].
    Polo(polo::Receiver),
    /// See [`window_credit`].
    WindowCredit(window_credit::WindowCredit),
    /// See [`paced_tokens`].
    PacedTokens(paced_tokens::PacedTokens),
    /// See [`homa`].
    Homa(homa::Receiver),
    /// See [`phost`].
    Phost(phost::Receiver),
}

impl Scheduler {
    /// There is nobody to ask.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}
