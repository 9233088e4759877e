//! A constant rate, whatever happens: an open loop, for tests and for background load.

use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw},
};
use incast_units::{Rate, Time};

crate::parameters!(Parameters {
    rate: Rate {
        doc: "Pace of the flow on the wire, headers included.",
        default: "the NIC's rate",
        value: |path| path.rate,
        allowed: "at least 1bps",
        check: |r| r.bps() > 0,
        source: "an open loop at line rate"
    },
});

/// State of a flow.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    rate: Rate,
}

impl SenderLaw for ConstantRate {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "constant-rate",
        title: "constant rate",
        source: "none: for tests and background load",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::NONE;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn start(parameters: &Parameters, _path: &Path, _now: Time, _random: u32) -> Self {
        Self { rate: parameters.rate }
    }

    #[inline]
    fn on_ack(&mut self, _feedback: &Feedback<'_>) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, _now: Time, _next: u64) {}
    #[inline]
    fn window(&self) -> u64 {
        u64::MAX
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}
