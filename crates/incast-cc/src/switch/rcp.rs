//! RCP's links: each advertises one rate for all flows that pass it.
//!
//! Source: N. Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005, and its authors' ns-2 router
//! (`rcp.cc`), whose constants are the defaults. The flows' half is `rate/rcp.rs`.
//!
//! ```text
//!   each T:  R = R (1 + T/d (alpha (gamma C - y) - beta q/d) / (gamma C))     y: what arrived in T, q: the queue
//! ```
//!
//! Readings and deviations (`docs/blitz.md`, "Convergence"):
//! - d is the base RTT, not an average of what packets say of theirs.
//! - A port's first period begins with its first packet, and a period ends with the first packet that leaves after T:
//!   there is no timer. T in the rule is what has passed.
//! - y counts every packet, acknowledgements too, with preamble and gap. Rates are whole Mbit/s, one at least.

use crate::{
    Path,
    agent::{AgentInfo, Effects, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict},
    parameters::{ParameterError, Period, Raw},
};
use incast_units::{Rate, Time};
use std::sync::Arc;

/// Preamble and gap of a frame (IEEE 802.3), in bytes.
const GAP: u64 = 20;

crate::parameters!(Parameters {
    alpha: f64 {
        doc: "Weight of the rate that is left.",
        default: "0.4",
        value: |_| 0.4,
        allowed: "in (0, 10]",
        check: |alpha| *alpha > 0.0 && *alpha <= 10.0,
        source: "the authors' ns-2 router"
    },
    beta: f64 {
        doc: "Weight of the queue.",
        default: "0.4",
        value: |_| 0.4,
        allowed: "0 to 10",
        check: |beta| (0.0..=10.0).contains(beta),
        source: "the authors' ns-2 router; their router for NetFPGA: 0.5"
    },
    gamma: f64 {
        doc: "Part of the link that is shared.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |gamma| *gamma > 0.0 && *gamma <= 1.0,
        source: "the authors' ns-2 router; their router for NetFPGA: 0.95"
    },
    period: Period {
        doc: "T: from one change of the rate to the next.",
        default: "base RTT",
        value: |path| Period::of(path.base_rtt),
        source: "the authors' ns-2 router: min(d, 10ms)"
    },
    rtt: Time {
        doc: "d: round-trip time of the flows.",
        default: "base RTT",
        value: |path| path.base_rtt,
        allowed: "above 0",
        check: |rtt| *rtt > Time::ZERO,
        source: "ours; the authors' router averages what packets say of theirs"
    },
    initial: f64 {
        doc: "The first rate, in parts of the link.",
        default: "0.05",
        value: |_| 0.05,
        allowed: "in (0, 1]",
        check: |initial| *initial > 0.0 && *initial <= 1.0,
        source: "the authors' ns-2 router"
    },
    min_rate: Rate {
        doc: "The least rate.",
        default: "0.01 packets per base RTT, at least 1Mbps",
        value: |path| {
            let bits = f64::from(path.wire_mss) * 8.0;
            Rate::from_bps(((0.01 * bits / path.base_rtt.as_secs_f64().max(1e-12)) as u64).max(1_000_000))
        },
        allowed: "at least 1Mbps",
        check: |rate| rate.bps() >= 1_000_000,
        source: "the authors' ns-2 router"
    },
});

/// State of a port.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// R and C in bit/s.
    rate: f64,
    capacity: f64,
    /// Bytes that have arrived since the last change of the rate, and when that was; the first period begins with the first
    /// packet.
    arrived: u64,
    since: Option<Time>,
}

impl Port {
    /// The rule, after `elapsed`, with so many bytes in the queue.
    fn update(&mut self, parameters: &Parameters, elapsed: Time, queue: u64) {
        let Parameters { alpha, beta, gamma, rtt, min_rate, .. } = parameters;
        let (elapsed, rtt) = (elapsed.as_secs_f64(), rtt.as_secs_f64());
        let spare = gamma - self.arrived as f64 * 8.0 / elapsed / self.capacity;
        let waiting = queue as f64 * 8.0 / rtt / self.capacity;
        let change = 1.0 + elapsed / rtt * (alpha * spare - beta * waiting) / gamma;
        let most = gamma * self.capacity;
        self.rate = (self.rate * change).clamp(min_rate.as_f64().min(most), most);
    }
}

/// State of a switch.
#[derive(Clone, Debug)]
pub struct Rcp {
    parameters: Arc<Parameters>,
    ports: Vec<Port>,
}

impl SwitchAgent for Rcp {
    type Parameters = Arc<Parameters>;
    const INFO: AgentInfo = AgentInfo {
        name: "rcp",
        title: "RCP",
        source: "Dukkipati et al., IWQoS 2005; its authors' ns-2 router",
        parameters: Parameters::TABLE,
        marks: false,
        sender: &[],
        by_port: true,
    };

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Parameters>, ParameterError> {
        Parameters::resolve(path, given).map(Arc::new)
    }
    fn values(parameters: &Arc<Parameters>) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn effects(_parameters: &Arc<Parameters>) -> Effects {
        Effects { advertises: true, ..Effects::default() }
    }
    fn install(parameters: &Arc<Parameters>, site: &Site<'_>) -> Self {
        let port = |capacity: f64| Port { rate: parameters.initial * capacity, capacity, arrived: 0, since: None };
        Self {
            ports: site.ports.iter().map(|setup| port(setup.rate.as_f64())).collect(),
            parameters: parameters.clone(),
        }
    }

    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, _switch: &impl SwitchView, _verdict: &mut Verdict) {
        let own = &mut self.ports[usize::from(port.port)];
        own.arrived += u64::from(packet.bytes) + GAP;
        own.since.get_or_insert(port.now);
    }

    fn on_dequeue(&mut self, port: &PortView, _packet: &PacketView, _switch: &impl SwitchView, verdict: &mut Verdict) {
        let own = &mut self.ports[usize::from(port.port)];
        let elapsed = port.now.saturating_sub(own.since.unwrap_or(port.now));
        if elapsed >= self.parameters.period.time() {
            own.update(&self.parameters, elapsed, port.queue_bytes);
            (own.arrived, own.since) = (0, Some(port.now));
        }
        verdict.advertise = Some((own.rate / 1e6).max(1.0) as u32);
    }

    fn on_pause(&mut self, _port: &PortView) {}
    fn on_resume(&mut self, _port: &PortView) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Gbit/s and 100 us: a BDP is 125,000 bytes.
    fn parameters(given: &[(&str, f64)]) -> Arc<Parameters> {
        let path = Path::new(Rate::from_gbps(10), Time::from_us(100), 1000, 1104);
        let given: Vec<_> = given.iter().map(|(key, value)| ((*key).to_owned(), Raw::Float(*value))).collect();
        Rcp::resolve(&path, &given).expect("allowed")
    }

    #[test]
    fn one_change_of_the_rate() {
        let after = |arrived, queue| {
            let mut port = Port { rate: 1e9, capacity: 1e10, arrived, since: None };
            port.update(&parameters(&[]), Time::from_us(100), queue);
            port.rate
        };
        // A fifth too much: 1 - 0.4 · 0.2. Half a BDP waits as well: 1 - 0.4 · 0.2 - 0.4 · 0.5.
        assert!((after(150_000, 0) - 0.92e9).abs() < 1.0);
        assert!((after(150_000, 62_500) - 0.72e9).abs() < 1.0);
        assert!((after(0, 0) - 1.4e9).abs() < 1.0, "nothing comes");
        assert_eq!(after(10_000_000, 0), 1e6, "the least rate");
    }

    /// N flows with feedback one period old: R finds C/N, and 0.95 C/N.
    #[test]
    fn the_rate_converges_to_equal_parts() {
        for (flows, gamma) in [(2.0, 1.0), (10.0, 1.0), (10.0, 0.95)] {
            let parameters = parameters(&[("gamma", gamma)]);
            let mut port = Port { rate: 0.05e10, capacity: 1e10, arrived: 0, since: None };
            let (mut queue, mut sent) = (0.0f64, [port.rate; 2]);
            for _ in 0..200 {
                port.arrived = (sent[0] * flows * 100e-6 / 8.0) as u64;
                queue = (queue + port.arrived as f64 - 125_000.0).max(0.0);
                port.update(&parameters, Time::from_us(100), queue as u64);
                sent = [sent[1], port.rate];
            }
            let fair = gamma * 1e10 / flows;
            assert!((port.rate / fair - 1.0).abs() < 0.01, "{flows}: {}", port.rate / fair);
        }
    }
}
