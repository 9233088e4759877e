//! Holds every packet for a constant time: for tests of the stage itself.

use super::UnderlayStage;
use incast_units::Time;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ConstantHold {
    /// How long each packet waits.
    pub hold: Time,
    /// One-way delays reported so far.
    pub reports: u64,
}

impl UnderlayStage for ConstantHold {
    fn release(&mut self, _now: Time, queued: Time) -> Time {
        queued + self.hold
    }
    fn on_feedback(&mut self, _now: Time, _sent: Time, _one_way_delay: i64) {
        self.reports += 1;
    }
}
