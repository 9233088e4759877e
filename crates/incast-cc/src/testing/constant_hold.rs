//! Holds every packet for a constant time: for tests of the stage itself.

use crate::underlay::{Arrangement, Head, Reports, Scope, UnderlayInfo, UnderlayStage};
use crate::{
    Path,
    parameters::{ParameterError, Raw},
};
use incast_units::Time;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct ConstantHold {
    /// How long each packet waits.
    pub hold: Time,
    /// What is arranged around it.
    pub arrangement: Arrangement,
}

impl ConstantHold {
    /// Each flow by itself, with reports of its own, unseen by the flow's law.
    pub fn of(hold: Time) -> Self {
        let arrangement =
            Arrangement { scope: Scope::Flow, reports: Reports::Own, rtt_with_hold: false, backlog: u32::MAX };
        Self { hold, arrangement }
    }
}

impl UnderlayStage for ConstantHold {
    type Parameters = Self;
    const INFO: UnderlayInfo =
        UnderlayInfo { name: "constant-hold", title: "Constant hold", source: "none: for tests", parameters: &[] };

    fn resolve(_: &Path, _: &[(String, Raw)]) -> Result<Self, ParameterError> {
        Ok(Self::of(Time::ZERO))
    }
    fn values(_: &Self) -> Vec<(&'static str, Raw)> {
        Vec::new()
    }
    fn arrangement(parameters: &Self) -> Arrangement {
        parameters.arrangement
    }
    fn start(parameters: &Self, _: &Path, _: Time, _: Time) -> Self {
        *parameters
    }
    fn release(&mut self, _now: Time, head: &Head) -> Time {
        head.queued + self.hold
    }
    fn on_report(&mut self, _now: Time, _sent: Time, _one_way_delay: i64) {}
}
