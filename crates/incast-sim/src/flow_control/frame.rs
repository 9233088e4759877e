//! Frames of flow control, and what a port does after one.

use crate::{fabric::node::pause, packet::Packet};
use incast_units::Time;

/// Whether a port has a frame of flow control to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// No. One that waits for the link is out of date.
    No,
    /// Only if one already waits for the link: its refresh is due.
    IfWaiting,
    /// Yes.
    Now,
}

/// A frame of flow control that is about to leave.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The frame.
    pub packet: Packet,
    /// It must be repeated at this time.
    pub refresh: Option<Time>,
    /// Another one has to follow.
    pub more: bool,
}

/// What a port does after a frame, an event or a departure, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// An event to schedule: its time and its payload.
    pub event: Option<(Time, u32)>,
    /// Priorities that pause, one bit each.
    pub pause: u8,
    /// Priorities that resume.
    pub resume: u8,
    /// The port has a frame to send.
    pub has_frame: bool,
}

impl Effect {
    /// A port without credits requests them `after` this time, as an update may have been lost.
    #[inline]
    pub(super) fn reminder(after: Option<Time>, now: Time) -> Self {
        Self { event: after.map(|after| (now.saturating_add(after), pause::REFRESH)), ..Self::default() }
    }
}
