//! PACC (reconstructed): the switch itself sends congestion notifications, as many as a PI controller on its queue asks for.
//!
//! Source: X. Zhong et al., "PACC: Proactive and Accurate Congestion Feedback for RDMA Congestion Control", INFOCOM 2022, and
//! "PACC: A Proactive CNP Generation Scheme for Datacenter Networks", ToN 32(3), 2024. **Their bodies were not available.** Known
//! are its three parts (a PI controller on the queue, discrimination of flows by a threshold, allocation by weight), that
//! the reaction point is DCQCN's, unchanged, and that the flow table is updated and notifications are sent every 80 us by
//! default (X. He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters", J. Cloud Computing
//! 2024). All else is ours, and each choice is a parameter; `docs/pacc.md` has the equations and how the gains were found.
//!
//! ```text
//!   packet enters: count of its flow + 1
//!   each T, each queue:  e = (q - q_ref) / q_ref
//!                        p  by a e + b (e - e_before)           PI controller
//!                        flows with at least theta packets      discrimination
//!                        min(1, p n w_i) CNPs on average each   allocation; w_i: flow i's part of their packets
//!                        the table is cleared
//! ```

use super::{
    AgentInfo, FlowAddress, Notification, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict,
};
use crate::{
    Cnp, Path,
    parameters::{ParameterError, Raw},
    sender::Condition,
};
use incast_units::{Bytes, Time};
use std::sync::Arc;

crate::choice! {
    /// What the controller's output is added to.
    pub enum Gains {
        /// The logarithm of p: its gains grow with p, as do the packets between two notifications of a flow shrink.
        Relative = "relative",
        /// p itself.
        Constant = "constant",
    }
}

crate::choice! {
    /// Which flows get notifications.
    pub enum Discrimination {
        /// Those with at least the mean number of packets of the period.
        Mean = "mean",
        /// Those with a fixed number of packets.
        Packets = "packets",
    }
}

crate::parameters! {
    /// Parameters of PACC.
    pub struct Parameters {
        /// T: the flow table is cleared and notifications are sent so often, from the first packet on.
        period: Time = "8 base RTT", |path| path.base_rtt.saturating_mul(8), "above 0", |t| *t > Time::ZERO, "J. Cloud Computing 2024 (80us), at a base RTT of 10us (ours)";
        /// q_ref: the queue that is aimed at, at the hosts' rate; of a port of another rate in proportion.
        reference: Bytes = "0.8 rate x base RTT", |path| Bytes::new(path.rate.bytes_in(path.base_rtt).get() * 4 / 5), "at least 1B", |q| q.get() > 0, "ours (reconstruction): between DCQCN's Kmin and 100KB at 100Gbps";
        /// How gains are applied.
        gains: Gains = "\"relative\"", |_| Gains::Relative, "\"relative\" or \"constant\"", |_| true, "ours (reconstruction)";
        /// a: gain of the error, in parts of q_ref.
        integral: f64 = "0.001", |_| 0.001, "at least 0", |a| *a >= 0.0, "ours (reconstruction), see docs/pacc.md";
        /// b: gain of the error's change, in parts of q_ref.
        proportional: f64 = "0.03", |_| 0.03, "at least 0", |b| *b >= 0.0, "ours (reconstruction), see docs/pacc.md";
        /// The controller starts from this p, and with relative gains it is the least one.
        least: f64 = "1e-4", |_| 1e-4, "in (0, 1]", |p| *p > 0.0 && *p <= 1.0, "ours (reconstruction): below what two flows need";
        /// Which flows get notifications.
        discrimination: Discrimination = "\"mean\"", |_| Discrimination::Mean, "\"mean\" or \"packets\"", |_| true, "ours (reconstruction)";
        /// theta with \"packets\": packets of a period.
        packets: u64 = "2", |_| 2, "any number", |_| true, "ours (reconstruction)";
        /// Notifications are sent only where the queue is longer than q_ref.
        only_above: bool = "false", |_| false, "true or false", |_| true, "ours (reconstruction)";
    }
}

/// `(q - q_ref) / q_ref`.
fn error(queue: u64, reference: f64) -> f64 {
    queue as f64 / reference - 1.0
}

/// Some periods with the same error: `ln p` or `p`, plus `a e` for each and `b (e - e_before)`; at most 1.
fn controlled(parameters: &Parameters, p: f64, error: f64, before: f64, periods: u64) -> f64 {
    let change = parameters.integral * error * periods as f64 + parameters.proportional * (error - before);
    match parameters.gains {
        // What is beyond e^30 is beyond 1 in any case.
        Gains::Relative => (p * libm::exp(change.clamp(-30.0, 30.0))).clamp(parameters.least, 1.0),
        Gains::Constant => (p + change).clamp(0.0, 1.0),
    }
}

/// A flow in a period.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: FlowAddress,
    packets: u32,
}

/// Packets by flow, in the order of their first ones. Memory is kept from period to period.
#[derive(Clone, Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    /// Open addressing: index into `entries` plus 1, or 0. As long as a power of two, and more than half empty.
    places: Vec<u32>,
}

impl Table {
    fn place(&self, flow: &FlowAddress) -> usize {
        let mask = self.places.len() - 1;
        // Fibonacci hashing of what names a flow.
        let key = u64::from(flow.source) << 32 | u64::from(flow.sequence);
        let mut place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        loop {
            match self.places[place] {
                0 => return place,
                index => {
                    let known = &self.entries[index as usize - 1].flow;
                    if (known.source, known.sequence) == (flow.source, flow.sequence) {
                        return place;
                    }
                }
            }
            place = (place + 1) & mask;
        }
    }

    fn count(&mut self, flow: &FlowAddress) {
        if self.places.len() <= 2 * self.entries.len() {
            self.grow();
        }
        let place = self.place(flow);
        match self.places[place] {
            0 => {
                self.entries.push(Entry { flow: *flow, packets: 1 });
                self.places[place] = self.entries.len() as u32;
            }
            index => self.entries[index as usize - 1].packets += 1,
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.places = vec![0; (2 * self.places.len()).max(16)];
        for index in 0..self.entries.len() {
            let place = self.place(&self.entries[index].flow);
            self.places[place] = index as u32 + 1;
        }
    }

    fn clear(&mut self) {
        self.places.fill(0);
        self.entries.clear();
    }
}

/// A queue.
#[derive(Clone, Debug)]
struct Queue {
    /// Notifications for each packet.
    p: f64,
    /// The error of the period before.
    before: f64,
    table: Table,
    /// In [0, 1), drawn with the first packet of a period: where the allocation starts.
    lot: f64,
}

impl Queue {
    /// A period ends. Notifications go to `send`.
    fn allot(&mut self, parameters: &Parameters, queue: u64, send: &mut dyn FnMut(Notification)) {
        let entries = &self.table.entries;
        let all: u64 = entries.iter().map(|entry| u64::from(entry.packets)).sum();
        let congested = |entry: &&Entry| match parameters.discrimination {
            Discrimination::Mean => u64::from(entry.packets) * entries.len() as u64 >= all,
            Discrimination::Packets => u64::from(entry.packets) >= parameters.packets,
        };
        let theirs: u64 = entries.iter().filter(congested).map(|entry| u64::from(entry.packets)).sum();
        if theirs > 0 && (!parameters.only_above || self.before > 0.0) && queue > 0 {
            let each = self.p * all as f64 / theirs as f64;
            // One lot for all keeps the sum to within one of `p n`, and gives each flow its share on average.
            let mut due = self.lot;
            for entry in entries.iter().filter(congested) {
                due += (each * f64::from(entry.packets)).min(1.0);
                if due >= 1.0 {
                    due -= 1.0;
                    send(Notification { flow: entry.flow, cnp: Cnp::CONGESTED });
                }
            }
        }
        self.table.clear();
    }
}

/// State of a switch.
#[derive(Clone, Debug)]
pub struct Pacc {
    parameters: Arc<Parameters>,
    /// By port, then priority.
    queues: Vec<Queue>,
    /// q_ref in bytes, by port.
    references: Vec<f64>,
    priorities: usize,
    /// End of the period; [`Time::MAX`] while nothing happens.
    end: Time,
    /// When it was last not so.
    stopped: Time,
}

impl Pacc {
    /// The first packet after a while without any: as many periods with empty queues have passed.
    #[cold]
    fn wake(&mut self, now: Time) {
        let periods = (now - self.stopped).ps() / self.parameters.period.ps();
        for queue in &mut self.queues {
            if periods > 0 {
                queue.p = controlled(&self.parameters, queue.p, -1.0, queue.before, periods);
                queue.before = -1.0;
            }
        }
        self.end = now + self.parameters.period;
    }
}

/// What parameters mean for a fabric.
#[derive(Clone, Debug)]
pub struct Constants {
    parameters: Arc<Parameters>,
    /// q_ref in bytes for each bit/s of a port.
    scale: f64,
}

impl SwitchAgent for Pacc {
    type Parameters = Constants;
    const INFO: AgentInfo = AgentInfo {
        name: "pacc",
        title: "PACC (reconstructed)",
        source: "Zhong et al., INFOCOM 2022, whose body was not available: reconstructed from abstracts and Mercury's description",
        parameters: Parameters::TABLE,
        marks: true,
        sender: &[],
        by_port: true,
    };
    const CONDITIONS: &'static [Condition] = &[Condition::new("packets", "discrimination", &["packets"])];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Constants, ParameterError> {
        let parameters = Arc::new(Parameters::resolve(path, given)?);
        let scale = parameters.reference.get() as f64 / path.rate.as_f64();
        Ok(Constants { parameters, scale })
    }
    fn values(constants: &Constants) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn install(constants: &Constants, site: &Site<'_>) -> Self {
        let priorities = usize::from(site.priorities);
        let queue = Queue { p: constants.parameters.least, before: -1.0, table: Table::default(), lot: 0.0 };
        Self {
            parameters: Arc::clone(&constants.parameters),
            queues: vec![queue; site.ports.len() * priorities],
            references: site.ports.iter().map(|port| port.rate.as_f64() * constants.scale).collect(),
            priorities,
            end: Time::MAX,
            stopped: Time::ZERO,
        }
    }

    #[inline]
    fn on_enqueue(
        &mut self,
        port: &PortView,
        packet: &PacketView,
        _switch: &impl SwitchView,
        _verdict: &mut Verdict,
    ) {
        if !packet.is_data {
            return;
        }
        if self.end == Time::MAX {
            self.wake(port.now);
        }
        let queue = &mut self.queues[usize::from(port.port) * self.priorities + usize::from(port.priority)];
        if queue.table.entries.is_empty() {
            queue.lot = port.uniform();
        }
        queue.table.count(&packet.flow);
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        _port: &PortView,
        _packet: &PacketView,
        _switch: &impl SwitchView,
        _verdict: &mut Verdict,
    ) {
    }

    fn on_pause(&mut self, _port: &PortView) {}
    fn on_resume(&mut self, _port: &PortView) {}

    fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
        let mut busy = false;
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let (port, priority) = (index / self.priorities, index % self.priorities);
            let bytes = switch.queue_bytes(port as u16, priority as u8);
            busy |= bytes > 0 || !queue.table.entries.is_empty();
            let error = error(bytes, self.references[port]);
            queue.p = controlled(&self.parameters, queue.p, error, queue.before, 1);
            queue.before = error;
            queue.allot(&self.parameters, bytes, send);
        }
        self.stopped = now;
        self.end = if busy { now + self.parameters.period } else { Time::MAX };
    }

    fn next_timer(&self) -> Time {
        self.end
    }
}
