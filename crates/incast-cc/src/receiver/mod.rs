//! Receiver-driven protocols: what the receiver of many flows decides about them. One file per protocol.
//!
//! One object serves one host. It learns of flows from their first packets, and answers with control packets
//! that the host sends on its behalf.

pub mod window_credit;

use incast_units::Time;

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
    /// Bytes of the flow still missing, this packet counted as received.
    pub remaining: u64,
    /// It carried a congestion mark.
    pub marked: bool,
    /// The receiver had it already.
    pub duplicate: bool,
}

/// A control packet that the scheduler wants sent to a flow's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Data below `position` may be sent.
    Credit {
        /// The flow, by the receiver's handle.
        flow: u32,
        /// The first byte that is not allowed.
        position: u64,
    },
}

/// A receiver-driven protocol.
pub trait ReceiverScheduler {
    /// A data packet arrived; control packets go to `send`.
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control));
    /// The time that [`Self::next_timer`] named has come.
    fn on_timer(&mut self, _now: Time, _send: &mut dyn FnMut(Control)) {}
    /// When [`Self::on_timer`] is wanted; [`Time::MAX`] for never.
    fn next_timer(&self) -> Time {
        Time::MAX
    }
}

/// The schedulers by name.
#[derive(Clone, Debug, Default)]
pub enum Scheduler {
    /// Sender-driven: the receiver only acknowledges.
    #[default]
    None,
    /// See [`window_credit`].
    WindowCredit(window_credit::WindowCredit),
}

impl Scheduler {
    /// There is nobody to ask.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl ReceiverScheduler for Scheduler {
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) {
        match self {
            Self::None => {}
            Self::WindowCredit(scheduler) => scheduler.on_data(arrival, send),
        }
    }
    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(Control)) {
        match self {
            Self::None => {}
            Self::WindowCredit(scheduler) => scheduler.on_timer(now, send),
        }
    }
    fn next_timer(&self) -> Time {
        match self {
            Self::None => Time::MAX,
            Self::WindowCredit(scheduler) => scheduler.next_timer(),
        }
    }
}
