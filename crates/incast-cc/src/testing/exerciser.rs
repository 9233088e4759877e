//! An agent without a purpose of its own: it uses each thing that an agent may do, so that tests can.

use crate::agent::{
    AgentInfo, Codepoint, FlowAddress, Forward, Notification, PacketView, PortView, Site, SwitchAgent, SwitchView,
    Verdict,
};
use crate::{
    Cnp, Path,
    parameters::{ParameterError, Raw},
};
use incast_units::Time;

/// Acts on each n-th data packet that it sees; zero switches an action off.
#[derive(Clone, Debug, Default)]
pub struct Exerciser {
    /// Mark each n-th packet when it leaves.
    pub mark_every: u64,
    /// Mark each n-th packet with UE when it leaves.
    pub undetermined_every: u64,
    /// Notify the source of each n-th packet when it enters, with a window of 64 KiB.
    pub notify_every: u64,
    /// Deflect each n-th packet when it enters: to the next equal-cost port.
    pub deflect_every: u64,
    /// Look at the queues at this period, as from the first packet, and notify the source of the last data packet that
    /// waits or waited at each port which holds at least `report_from` bytes; the window granted is those bytes.
    pub report_every: Time,
    /// See `report_every`.
    pub report_from: u64,
    /// Mark only what came in by this port.
    pub ingress: Option<u16>,
    /// Packets that entered, packets that left, pauses and resumes seen.
    pub seen: [u64; 4],
    /// Bytes of data that entered and neither left nor were dropped, and the flow of the last such packet, by port.
    pub waiting: Vec<(u64, Option<FlowAddress>)>,
    /// When the queues are looked at; zero before the first packet.
    pub report_at: Time,
}

const GRANTED: u64 = 64 << 10;

fn due(count: u64, every: u64) -> bool {
    every != 0 && count.is_multiple_of(every)
}

impl Exerciser {
    fn waiting(&mut self, port: u16) -> &mut (u64, Option<FlowAddress>) {
        let port = usize::from(port);
        if self.waiting.len() <= port {
            self.waiting.resize(port + 1, (0, None));
        }
        &mut self.waiting[port]
    }

    fn gone(&mut self, port: &PortView, packet: &PacketView) {
        let waiting = self.waiting(port.port);
        waiting.0 -= u64::from(packet.bytes);
    }
}

impl SwitchAgent for Exerciser {
    /// A prototype.
    type Parameters = Self;
    const INFO: AgentInfo = AgentInfo {
        name: "exerciser",
        title: "exerciser",
        source: "ours, for tests",
        parameters: &[],
        marks: false,
        sender: &[],
        by_port: false,
    };
    fn resolve(_path: &Path, _given: &[(String, Raw)]) -> Result<Self, ParameterError> {
        Ok(Self::default())
    }
    fn values(_parameters: &Self) -> Vec<(&'static str, Raw)> {
        Vec::new()
    }
    fn install(parameters: &Self, _site: &Site<'_>) -> Self {
        parameters.clone()
    }

    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
        if !packet.is_data {
            return;
        }
        self.seen[0] += 1;
        if due(self.seen[0], self.notify_every) {
            verdict.notify = Some(Cnp::granting(GRANTED));
        }
        if packet.deflections == 0 && due(self.seen[0], self.deflect_every) {
            let others = || switch.alternatives(packet.flow.destination);
            let other = others().find(|other| *other > port.port).or(others().next());
            verdict.forward = other.map_or(Forward::Routed, Forward::Port);
        }
        if self.report_every > Time::ZERO {
            let egress = match verdict.forward {
                Forward::Port(other) => other,
                _ => port.port,
            };
            let waiting = self.waiting(egress);
            *waiting = (waiting.0 + u64::from(packet.bytes), Some(packet.flow));
            if self.report_at == Time::ZERO {
                self.report_at = port.now + self.report_every;
            }
        }
    }

    fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, _switch: &impl SwitchView, verdict: &mut Verdict) {
        if packet.is_data {
            self.seen[1] += 1;
            if due(self.seen[1], self.undetermined_every) {
                verdict.mark = Codepoint::UndeterminedExperienced;
            }
            let chosen = self.ingress.is_none() || self.ingress == packet.ingress;
            if chosen && due(self.seen[1], self.mark_every) {
                verdict.mark = Codepoint::CongestionExperienced;
            }
            if self.report_every > Time::ZERO {
                self.gone(port, packet);
            }
        }
    }

    fn on_drop(&mut self, port: &PortView, packet: &PacketView) {
        if packet.is_data && self.report_every > Time::ZERO {
            self.gone(port, packet);
        }
    }

    fn on_pause(&mut self, _port: &PortView) {
        self.seen[2] += 1;
    }
    fn on_resume(&mut self, _port: &PortView) {
        self.seen[3] += 1;
    }

    fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
        for port in 0..switch.ports() {
            let queued: u64 = (0..switch.priorities()).map(|priority| switch.queue_bytes(port, priority)).sum();
            let (waiting, flow) = *self.waiting(port);
            // The queue also has packets that are not data.
            assert!(waiting <= queued, "port {port} holds {queued} bytes, and {waiting} should wait there");
            if let (true, Some(flow)) = (queued >= self.report_from, flow) {
                send(Notification { flow, cnp: Cnp::granting(queued) });
            }
        }
        self.report_at =
            if self.waiting.iter().any(|(bytes, _)| *bytes > 0) { now + self.report_every } else { Time::ZERO };
    }

    #[inline]
    fn next_timer(&self) -> Time {
        if self.report_at == Time::ZERO { Time::MAX } else { self.report_at }
    }
}
