//! The receiver half of receiver-driven protocols: what the receiver of many flows decides about them.
//!
//! One object serves one host. It gets the start of each flow, each data packet, signals of senders, and the flow's
//! end. It answers with messages, at once or from its timer. The host sends each in a control packet to the sender of
//! its flow. Flows have handles, which the host assigns and never uses twice.
//!
//! What the protocols use:
//!
//! | protocol | messages to senders | from senders |
//! |---|---|---|
//! | Homa | credit with the priority of scheduled data; requests to send again, from a timer | signals: a request, BUSY |
//! | NDP | its PULLs, paced by a timer; its NACK of a trimmed packet | |
//! | pHost | tokens for a certain packet, with a lifetime | a signal: RTS; the token of each data packet ([`ReceiverScheduler::on_tag`]) |
//! | Polo | its driving packets, loss packets and acknowledgements of adjoint packets | a signal: the adjoint packet |
//! | Blitz (DASR) | its shares: with each acknowledgement ([`ReceiverScheduler::ack_tag`]), and by message when they change | tags of data packets |
//!
//! A scheduler that issues tokens has [`ReceiverScheduler::uses_tokens`]: then retransmitted packets need one as well.
//!
//! The sender half of a protocol, with its parameters, is a [`crate::law::ReceiverDriven`] law in the same file: what
//! is sent unscheduled, which signals it sends, with which priority data goes. It makes the receiver half.

use crate::message::{AckTag, DataTag, Message, Signal};
use incast_units::Time;

/// A flow, as known from its first packet.
#[derive(Clone, Copy, Debug)]
pub struct NewFlow {
    /// When that packet arrived.
    pub now: Time,
    /// The receiver's handle of the flow.
    pub flow: u32,
    /// Sending host.
    pub source: u32,
    /// Payload bytes, rounded up to whole packets: only the last packet shows how short it is.
    pub bytes: u64,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Payload that its sender may send unscheduled. It depends on the rate of the sender's link, which both ends know
    /// since the connection was set up.
    pub unscheduled: u64,
}

/// A data packet as the receiver's scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrived.
    pub now: Time,
    /// The receiver's handle of the flow.
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
    /// Its sender has abandoned it.
    Abandoned,
}

/// The receiver half of a receiver-driven protocol: one object for each host.
///
/// `send` takes a flow and a message to its sender.
pub trait ReceiverScheduler {
    /// What it sends to senders.
    type Message: Message;
    /// What senders send to it apart from data; [`std::convert::Infallible`] for nothing.
    type Signal: Signal;

    /// The first packet of a flow arrived; [`Self::on_data`] or [`Self::on_signal`] follows for the packet itself.
    fn on_flow(&mut self, _flow: &NewFlow, _send: &mut dyn FnMut(u32, Self::Message)) {}
    /// A signal of a flow's sender arrived. If it is the first packet of the flow, [`Self::on_flow`] has just been
    /// called.
    fn on_signal(&mut self, _now: Time, _flow: u32, _signal: Self::Signal, _send: &mut dyn FnMut(u32, Self::Message)) {}
    /// The tag of the data packet for which [`Self::on_flow`] has just been called, or [`Self::on_data`] follows.
    fn on_tag(&mut self, _now: Time, _flow: u32, _tag: DataTag) {}
    /// A data packet arrived.
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Self::Message));
    /// An acknowledgement of what this host itself sends arrived, of so many bytes on the link. Where
    /// [`Self::tags_acks`].
    fn on_ack(&mut self, _now: Time, _wire: u64) {}
    /// A flow has ended. If it is complete, [`Self::on_data`] has just been called for its last missing packet.
    /// Duplicates may still come.
    fn on_end(&mut self, _now: Time, _flow: u32, _end: End, _send: &mut dyn FnMut(u32, Self::Message)) {}
    /// The time of [`Self::next_timer`] has come.
    fn on_timer(&mut self, _now: Time, _send: &mut dyn FnMut(u32, Self::Message)) {}
    /// When [`Self::on_timer`] is due; [`Time::MAX`] for never.
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    /// The tag of an acknowledgement of a flow. Called after [`Self::on_flow`], before [`Self::on_data`].
    fn ack_tag(&mut self, _flow: u32) -> Option<AckTag> {
        None
    }
    /// Acknowledgements have tags.
    fn tags_acks(&self) -> bool {
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
