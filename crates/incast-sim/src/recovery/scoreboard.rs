//! Scoreboard: which packets of a flow have arrived, are in flight or lost (the name is that of RFC 6675).

use super::{
    acked::Acked,
    go_back_n::GoBackN,
    rack::ReorderingWindow,
    selective_repeat::{Ack, SelectiveRepeat},
};
use incast_cc::law::Recovery;
use incast_units::Time;

/// See the module.
#[derive(Clone, Debug)]
pub enum Scoreboard {
    /// Only what was lost is sent again.
    Selective(SelectiveRepeat),
    /// Everything from the first loss on is sent again.
    GoBackN(GoBackN),
}

impl Scoreboard {
    /// A flow of `packets` packets. With selective repeat a packet is lost when one sent `reordering` packets later
    /// has arrived; for RACK-TLP this is DupThresh, and `wait` its window.
    pub fn new(recovery: Recovery, packets: u32, reordering: u32, wait: ReorderingWindow) -> Self {
        match recovery {
            Recovery::RackTlp => Self::Selective(SelectiveRepeat::new(packets, reordering, Some(wait))),
            Recovery::SelectiveRepeat => Self::Selective(SelectiveRepeat::new(packets, reordering, None)),
            Recovery::GoBackN => Self::GoBackN(GoBackN::new(packets)),
        }
    }

    /// The next packet to send and whether it was sent before; `None` if all that may be sent is on its way.
    #[inline]
    pub fn next(&self) -> Option<(u32, bool)> {
        match self {
            Self::Selective(send) => send.next(),
            Self::GoBackN(send) => send.next(),
        }
    }

    /// The packet of [`Self::next`] was sent at `stamp`.
    #[inline]
    pub fn sent(&mut self, stamp: u64) {
        match self {
            Self::Selective(send) => send.sent(stamp),
            Self::GoBackN(send) => send.sent(),
        }
    }

    /// The packet of [`Self::next`] was handed over to an underlay, which holds it: it is in flight for the window, but
    /// not sent.
    pub fn hold(&mut self) {
        match self {
            Self::Selective(send) => send.hold(),
            Self::GoBackN(send) => send.hold(),
        }
    }

    /// A packet has left the underlay, and is sent at `stamp`. True if it is known never to have been sent before.
    pub fn leave(&mut self, packet: u32, stamp: u64) -> bool {
        match self {
            Self::Selective(send) => send.leave(packet, stamp),
            Self::GoBackN(send) => {
                send.leave();
                false
            }
        }
    }

    /// An acknowledgement.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Ack) -> Acked {
        match self {
            Self::Selective(send) => send.on_ack(ack),
            Self::GoBackN(send) => send.on_ack(ack.cumulative),
        }
    }

    /// A negative acknowledgement: the receiver misses the packet after the cumulative ones.
    #[inline(never)]
    pub fn on_nack(&mut self, nack: &Ack) -> Acked {
        match self {
            Self::Selective(send) => send.on_ack(nack),
            Self::GoBackN(send) => send.on_nack(nack.cumulative),
        }
    }

    /// When a packet that may only be late is taken as lost.
    #[inline]
    pub fn late_until(&self) -> Option<Time> {
        match self {
            Self::Selective(send) => send.late_until(),
            Self::GoBackN(_) => None,
        }
    }

    /// That time has come: takes packets that are still missing as lost.
    #[cold]
    pub fn on_late(&mut self, now: Time, smoothed_rtt: Time) -> Acked {
        match self {
            Self::Selective(send) => send.on_late(now.ps(), smoothed_rtt.ps()),
            Self::GoBackN(_) => Acked::default(),
        }
    }

    /// When the packet on its way that was sent the longest ago was sent: selective repeat.
    pub fn oldest(&mut self) -> Option<Time> {
        match self {
            Self::Selective(send) => send.oldest().map(Time::from_ps),
            Self::GoBackN(_) => None,
        }
    }

    /// Takes what was sent at `until` or before, and has not arrived, as lost.
    pub fn on_overdue(&mut self, until: Time) -> Acked {
        match self {
            Self::Selective(send) => send.on_overdue(until.ps()),
            Self::GoBackN(_) => Acked::default(),
        }
    }

    /// The retransmission timer expired: what is in flight is presumed lost.
    pub fn on_timeout(&mut self, now: Time, smoothed_rtt: Time) {
        match self {
            Self::Selective(send) => send.on_timeout(now.ps(), smoothed_rtt.ps()),
            Self::GoBackN(send) => send.on_timeout(),
        }
    }

    /// The receiver requests `count` packets from `first` on: those of them in flight are lost and go before
    /// everything else. Returns how many, and the first.
    #[cold]
    pub fn on_resend(&mut self, first: u32, count: u32) -> Acked {
        match self {
            Self::Selective(send) => send.on_resend(first, count),
            // What was lost is sent again with everything after it.
            Self::GoBackN(send) if count > 0 && first == send.acked() => send.on_nack(first),
            Self::GoBackN(_) => Acked::default(),
        }
    }

    /// When a packet that is in flight was last sent: selective repeat.
    pub fn sent_at(&self, packet: u32) -> Option<Time> {
        match self {
            Self::Selective(send) => send.sent_at(packet).map(Time::from_ps),
            Self::GoBackN(_) => None,
        }
    }

    /// It can send a tail loss probe now: selective repeat.
    #[inline]
    pub fn may_probe(&self) -> bool {
        match self {
            Self::Selective(send) => send.may_probe(),
            Self::GoBackN(_) => false,
        }
    }

    /// Losses are found by RACK-TLP.
    #[inline]
    pub fn is_by_time(&self) -> bool {
        matches!(self, Self::Selective(send) if send.is_by_time())
    }

    /// Sends a tail loss probe. False if nothing is in flight.
    pub fn probe(&mut self) -> bool {
        match self {
            Self::Selective(send) => send.probe(),
            Self::GoBackN(_) => false,
        }
    }

    /// Packets in flight, those included that an underlay holds.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        match self {
            Self::Selective(send) => send.in_flight(),
            Self::GoBackN(send) => send.in_flight(),
        }
    }

    /// Of the packets in flight, those that an underlay holds.
    #[inline]
    pub fn held(&self) -> u32 {
        match self {
            Self::Selective(send) => send.held(),
            Self::GoBackN(send) => send.held(),
        }
    }

    /// Packets in the network, as far as is known: in flight, and not held.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.in_flight() - self.held()
    }

    /// All packets below this one have arrived.
    #[inline]
    pub fn acked(&self) -> u32 {
        match self {
            Self::Selective(send) => send.acked(),
            Self::GoBackN(send) => send.acked(),
        }
    }

    /// The first packet that was never sent.
    #[inline]
    pub fn unsent(&self) -> u32 {
        match self {
            Self::Selective(send) => send.unsent(),
            Self::GoBackN(send) => send.unsent(),
        }
    }

    /// Packets that are still to be sent, or sent again.
    pub fn waiting(&self) -> u32 {
        match self {
            Self::Selective(send) => send.waiting(),
            Self::GoBackN(send) => send.waiting(),
        }
    }

    /// All packets have arrived.
    #[inline]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Selective(send) => send.is_done(),
            Self::GoBackN(send) => send.is_done(),
        }
    }
}
