//! A constant window: the simplest law there is, for tests and for measuring a fabric without control.

use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw},
};
use incast_units::{Bytes, Time};

crate::parameters!(Parameters {
    window: Bytes {
        doc: "Payload bytes in flight.",
        default: "BDP, rounded up to whole packets",
        value: |path| path.bdp_packets(),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "one bandwidth-delay product fills the path"
    },
});

/// State of a flow.
#[derive(Clone, Debug)]
pub struct ConstantWindow {
    window: u64,
}

impl SenderLaw for ConstantWindow {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "constant-window",
        title: "constant window",
        source: "none: for tests and measurements",
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
        Self { window: parameters.window.get() }
    }

    #[inline]
    fn on_ack(&mut self, _feedback: &Feedback<'_>) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, _now: Time, _next: u64) {}
    #[inline]
    fn window(&self) -> u64 {
        self.window
    }
}
