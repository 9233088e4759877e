//! Frames of flow control, and their effect.

use crate::fabric::packet::Packet;
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

/// The effect of a received pause frame on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its pauses expire at this time.
    pub expiry: Option<Time>,
    /// Priorities that pause, one bit each.
    pub pause: u8,
    /// Priorities that resume.
    pub resume: u8,
}
