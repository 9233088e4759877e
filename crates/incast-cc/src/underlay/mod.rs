//! What stands between a flow and its NIC and may hold packets, whatever law runs above.

pub mod constant_hold;

use incast_units::Time;

/// One flow's stage. It never reorders a flow: a packet leaves no earlier than the one before it.
pub trait UnderlayStage {
    /// When the packet at the head of the stage, which was handed over at `queued`, may go to the NIC: `now` or
    /// earlier for at once. Asked again when that time has come.
    fn release(&mut self, now: Time, queued: Time) -> Time;
    /// An acknowledgement brought the one-way delay, in picoseconds as the two hosts' clocks show it, of the
    /// packet sent at `sent`.
    fn on_feedback(&mut self, now: Time, sent: Time, one_way_delay: i64);
}

/// The stages by name.
#[derive(Clone, Debug, Default)]
pub enum Underlay {
    /// Packets pass untouched.
    #[default]
    None,
    /// See [`constant_hold`].
    ConstantHold(constant_hold::ConstantHold),
}

impl Underlay {
    /// Nothing is held.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl UnderlayStage for Underlay {
    fn release(&mut self, now: Time, queued: Time) -> Time {
        match self {
            Self::None => now,
            Self::ConstantHold(stage) => stage.release(now, queued),
        }
    }
    fn on_feedback(&mut self, now: Time, sent: Time, one_way_delay: i64) {
        match self {
            Self::None => {}
            Self::ConstantHold(stage) => stage.on_feedback(now, sent, one_way_delay),
        }
    }
}
