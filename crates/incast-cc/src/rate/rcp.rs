//! RCP's source: it sends at the least rate that the links of its path advertise.
//!
//! Source: N. Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005, and its authors' ns-2 host
//! (`rcp-host.cc`). The links' half is `switch/rcp.rs`.
//!
//! ```text
//!   the first packet ──▶ each link: rate = min(rate, R) ──▶ acknowledgement with the rate ──▶ pace = rate, at once
//! ```
//!
//! Readings and deviations (`docs/blitz.md`, "Convergence"):
//! - The first packet of a flow does what the authors' SYN does: nothing else is sent before it is acknowledged.
//! - There are no REF packets: a flow that sends less than a packet a round trip learns of new rates as rarely.
//! - Rates travel in the place that HPCC's format has for telemetry, 42 B; RCP needs 8.

use crate::{
    Feedback, Path,
    law::{Framing, LawCapabilities, LawInfo, Recovery, Requirements, SenderLaw},
    parameters::{ParameterError, Raw},
};
use incast_units::{Bytes, Rate, Time};

crate::parameters!(Parameters {
    opening: Bytes {
        doc: "Payload bytes that may be in flight before the path's rate is known.",
        default: "1 MSS",
        value: |path| Bytes::new(path.mss.into()),
        allowed: "at least 1B",
        check: |opening| opening.get() > 0,
        source: "ours, in place of the SYN of IWQoS 2005"
    },
});

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Rcp {
    rate: Rate,
    line: Rate,
    /// [`u64::MAX`] once the rate is known.
    window: u64,
}

impl SenderLaw for Rcp {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "rcp",
        title: "RCP",
        source: "Dukkipati et al., IWQoS 2005; its authors' ns-2 host",
        framing: Framing::RoceV2Int,
        recovery: Recovery::GoBackN,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn requirements(parameters: &Parameters) -> Requirements {
        Requirements { agent: Some("rcp"), ..Requirements::of(&Self::INFO, &Self::transport(parameters)) }
    }
    fn start(parameters: &Parameters, path: &Path, _now: Time, _random: u32) -> Self {
        Self { rate: path.rate, line: path.rate, window: parameters.opening.get() }
    }

    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        if let Some(mbps) = feedback.telemetry.iter().map(|hop| hop.rate_mbps).min() {
            self.rate = Rate::from_bps(u64::from(mbps.max(1)) * 1_000_000).min(self.line);
            self.window = u64::MAX;
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HopTelemetry;

    #[test]
    fn the_least_rate_of_the_path_counts_at_once() {
        let path = Path::new(Rate::from_gbps(10), Time::from_us(10), 1000, 1104);
        let parameters = Rcp::resolve(&path, &[]).expect("defaults");
        let mut flow = Rcp::start(&parameters, &path, Time::ZERO, 0);
        assert_eq!((flow.window(), flow.pacing_rate()), (1000, Some(Rate::from_gbps(10))));
        let hop = |rate_mbps| HopTelemetry { rate_mbps, ..HopTelemetry::default() };
        for (rates, gbps) in [([4_000, 2_000], 2), ([3_000, 40_000], 3), ([40_000, 40_000], 10)] {
            flow.on_ack(&Feedback { telemetry: &rates.map(hop), ..Feedback::default() });
            assert_eq!((flow.window(), flow.pacing_rate()), (u64::MAX, Some(Rate::from_gbps(gbps))));
        }
        flow.on_ack(&Feedback::default());
        assert_eq!(flow.pacing_rate(), Some(Rate::from_gbps(10)), "an acknowledgement without a rate changes nothing");
    }
}
