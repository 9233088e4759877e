//! PACC (reconstructed): the switch sends congestion notifications, at the rate that a PI controller on its queue
//! sets.
//!
//! Source: X. Zhong et al., "PACC: Proactive and Accurate Congestion Feedback for RDMA Congestion Control", INFOCOM
//! 2022, and "PACC: A Proactive CNP Generation Scheme for Datacenter Networks", ToN 32(3), 2024. **Their bodies were
//! not available.** Its three parts are known (a PI controller on the queue, discrimination of flows by a threshold,
//! allocation by weight), that the reaction point is DCQCN's, unchanged, and that the flow table is updated and
//! notifications are sent every 80 us by default (X. He et al., "Accurate and fast congestion feedback in MEC-enabled
//! RDMA datacenters", J. Cloud Computing 2024). All else is ours, and each choice is a parameter; `docs/pacc.md` has
//! the equations and how the gains were found.
//!
//! ```text
//!   packet enters: count of its flow + 1
//!   each T, each queue:  e = (q - q_ref) / q_ref
//!                        p  by a e + b (e - e_before)           PI controller
//!                        flows with at least theta packets      discrimination
//!                        min(1, p n w_i) CNPs on average each   allocation; w_i: flow i's part of their packets
//!                        the table is cleared
//! ```

use crate::agent::{
    AgentInfo, Effects, FlowAddress, Notification, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict,
};
use crate::{
    Cnp, Path,
    feedback::CnpContent,
    parameters::{Condition, ParameterError, Period, Raw},
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

crate::parameters!(Parameters {
    period: Period {
        doc: "T: the flow table is cleared and notifications are sent so often, from the first packet on.",
        default: "8 base RTT",
        value: |path| Period::of(path.base_rtt.saturating_mul(8)),
        source: "J. Cloud Computing 2024 (80us), at a base RTT of 10us (ours)"
    },
    reference: Bytes {
        doc: "q_ref: the queue that is aimed at, at the hosts' rate; of a port of another rate in \
            proportion.",
        default: "0.8 rate x base RTT",
        value: |path| Bytes::new(path.rate.bytes_in(path.base_rtt).get() * 4 / 5),
        allowed: "at least 1B",
        check: |q| q.get() > 0,
        source: "ours (reconstruction): between DCQCN's Kmin and 100KB at 100Gbps"
    },
    gains: Gains {
        doc: "How gains are applied.",
        default: "\"relative\"",
        value: |_| Gains::Relative,
        source: "ours (reconstruction)"
    },
    integral: f64 {
        doc: "a: gain of the error, in parts of q_ref.",
        default: "0.001",
        value: |_| 0.001,
        allowed: "at least 0",
        check: |a| *a >= 0.0,
        source: "ours (reconstruction), see docs/pacc.md"
    },
    proportional: f64 {
        doc: "b: gain of the error's change, in parts of q_ref.",
        default: "0.2",
        value: |_| 0.2,
        allowed: "at least 0",
        check: |b| *b >= 0.0,
        source: "ours (reconstruction), see docs/pacc.md"
    },
    min_probability: f64 {
        doc: "The controller starts from this p, and with relative gains it is the least one.",
        default: "0.0003",
        value: |_| 3e-4,
        allowed: "in (0, 1]",
        check: |p| *p > 0.0 && *p <= 1.0,
        source: "ours (reconstruction): below what two flows need"
    },
    discrimination: Discrimination {
        doc: "Which flows get notifications.",
        default: "\"packets\"",
        value: |_| Discrimination::Packets,
        source: "ours (reconstruction): with \"mean\" too few of many equal flows are left"
    },
    packets: u64 {
        doc: "theta with \"packets\", in packets of a period.",
        default: "2",
        value: |_| 2,
        allowed: "any number",
        source: "ours (reconstruction)"
    },
    only_above_reference: bool {
        doc: "Notifications are sent only where the queue is longer than q_ref.",
        default: "true",
        value: |_| true,
        source: "ours (reconstruction): the queue swings less"
    },
});

/// `(q - q_ref) / q_ref`.
fn error(queue: u64, reference: f64) -> f64 {
    queue as f64 / reference - 1.0
}

/// A number of periods with the same error: `ln p` or `p`, plus `a e` for each and `b (e - e_before)`; at most 1.
fn controlled(parameters: &Parameters, p: f64, error: f64, before: f64, periods: u64) -> f64 {
    let change = parameters.integral * error * periods as f64 + parameters.proportional * (error - before);
    match parameters.gains {
        // Above e^30 the result is limited to 1 in any case.
        Gains::Relative => (p * libm::exp(change.clamp(-30.0, 30.0))).clamp(parameters.min_probability, 1.0),
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
struct QueuedBytes {
    entries: Vec<Entry>,
    /// Open addressing: index into `entries` plus 1, or 0. As long as a power of two, and more than half empty.
    places: Vec<u32>,
}

impl QueuedBytes {
    fn place(&self, flow: &FlowAddress) -> usize {
        let mask = self.places.len() - 1;
        // Fibonacci hashing of the flow's id.
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
    table: QueuedBytes,
    /// Start of the allocation, in [0, 1): drawn with the first packet of a period.
    offset: f64,
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
        if theirs > 0 && (!parameters.only_above_reference || self.before > 0.0) && queue > 0 {
            let each = self.p * all as f64 / theirs as f64;
            // One draw for all flows keeps the sum within one of `p n` and gives each flow its share on average.
            let mut due = self.offset;
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
    /// End of the period; [`Time::MAX`] while idle.
    end: Time,
    /// The last end of a period before the idle time.
    stopped: Time,
}

impl Pacc {
    /// The first packet after an idle time: applies the periods with empty queues that have passed.
    #[cold]
    fn wake(&mut self, now: Time) {
        let periods = (now - self.stopped).ps() / self.parameters.period.time().ps();
        for queue in &mut self.queues {
            if periods > 0 {
                queue.p = controlled(&self.parameters, queue.p, -1.0, queue.before, periods);
                queue.before = -1.0;
            }
        }
        self.end = now + self.parameters.period.time();
    }
}

/// Parameters, resolved for a fabric.
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
    fn effects(_constants: &Constants) -> Effects {
        Effects { notifies: CnpContent::Congestion, ..Effects::default() }
    }
    fn install(constants: &Constants, site: &Site<'_>) -> Self {
        let priorities = usize::from(site.priorities);
        let queue =
            Queue { p: constants.parameters.min_probability, before: -1.0, table: QueuedBytes::default(), offset: 0.0 };
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
    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, _switch: &impl SwitchView, _verdict: &mut Verdict) {
        if !packet.is_data {
            return;
        }
        if self.end == Time::MAX {
            self.wake(port.now);
        }
        let queue = &mut self.queues[usize::from(port.port) * self.priorities + usize::from(port.priority)];
        if queue.table.entries.is_empty() {
            queue.offset = port.uniform();
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
        self.end = if busy { now + self.parameters.period.time() } else { Time::MAX };
    }

    #[inline]
    fn next_timer(&self) -> Time {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        marking::Marking,
        switch::testing::{Given, Setting, flow},
    };
    use incast_units::Rate;

    const US: fn(u64) -> Time = Time::from_us;

    fn path() -> Path {
        Path::new(Rate::from_gbps(40), US(10), 1000, 1082)
    }

    fn constants(given: &[(&str, Raw)]) -> Constants {
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Pacc::resolve(&path(), &given).expect("allowed")
    }

    fn text(text: &str) -> Raw {
        Raw::Text(text.to_owned())
    }

    fn given(values: &[(&str, Raw)]) -> Given<Pacc> {
        let setting = Setting { ports: 2, priorities: 2, marking: Marking::Off };
        Given::new(&setting, &constants(values))
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} in place of {expected}");
    }

    #[test]
    fn defaults_are_the_published_ones_on_our_network() {
        let constants = constants(&[]);
        assert_eq!((constants.parameters.period.time(), constants.parameters.reference), (US(80), Bytes::new(40_000)));
        let setting = Setting { ports: 1, priorities: 1, marking: Marking::Off };
        let agent = Given::<Pacc>::new(&setting, &constants).agent;
        close(agent.references[0], 40_000.0);
    }

    #[test]
    fn the_controller_steps_as_written() {
        let relative = constants(&[("integral", Raw::Float(0.5)), ("proportional", Raw::Float(0.25))]);
        let relative = &relative.parameters;
        close(error(60_000, 40_000.0), 0.5);
        close(error(0, 40_000.0), -1.0);
        // ln p + 0.5 x 0.5 + 0.25 x (0.5 + 1).
        close(controlled(relative, 0.01, 0.5, -1.0, 1), 0.01 * libm::exp(0.625));
        assert_eq!(controlled(relative, 0.01, 1e9, 0.0, 1), 1.0);
        assert_eq!(controlled(relative, 0.01, -1.0, 1e9, 1), 3e-4, "the least");
        let constant = Parameters { gains: Gains::Constant, ..relative.as_ref().clone() };
        close(controlled(&constant, 0.01, 0.5, -1.0, 1), 0.635);
        assert_eq!(controlled(&constant, 0.01, -1.0, 0.0, 1), 0.0);
        assert_eq!(controlled(&constant, 0.01, 4.0, 0.0, 1), 1.0);
        // Several periods at once are the same as one after the other.
        let once = controlled(relative, 0.9, -0.5, 0.5, 3);
        let first = controlled(relative, 0.9, -0.5, 0.5, 1);
        let third = controlled(relative, controlled(relative, first, -0.5, -0.5, 1), -0.5, -0.5, 1);
        close(once, third);
    }

    /// Packets of flows enter port 1, priority 0, whose queue is then so long.
    fn enter(given: &mut Given<Pacc>, now: Time, flows: &[(u32, u32)], queue: u64) {
        for (source, packets) in flows {
            (0..*packets).for_each(|_| given.enter(*source, now, 1, 0, queue));
        }
    }

    /// p stays what it starts with.
    fn fixed(p: f64) -> Vec<(&'static str, Raw)> {
        vec![("integral", Raw::Float(0.0)), ("proportional", Raw::Float(0.0)), ("min_probability", Raw::Float(p))]
    }

    #[test]
    fn notifications_are_shared_out_by_weight() {
        let mut given = given(&fixed(0.01));
        let mut counts = [0u32; 4];
        let periods = 4_000;
        for period in 0..periods {
            let now = US(80 * period) + US(1);
            enter(&mut given, now, &[(0, 40), (1, 20), (2, 2), (3, 1)], 50_000);
            let sent = given.pass(US(80 * (period + 1)) + US(1) - Time::from_ps(1));
            for (_, notification) in &sent {
                assert_eq!(notification.cnp, Cnp::CONGESTED);
                counts[notification.flow.source as usize] += 1;
            }
            assert!(sent.len() <= 1, "0.63 are due in each period");
        }
        // Of 0.01 x 63 notifications in each period flow 3, with one packet, gets none; the others share by 40, 20, 2.
        for (count, packets) in counts.iter().zip([40.0, 20.0, 2.0, 0.0]) {
            let expected = 0.63 * packets / 62.0 * periods as f64;
            assert!((f64::from(*count) - expected).abs() <= 4.0 * expected.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn a_flow_gets_one_at_most_and_thresholds_choose() {
        let sources = |values: &[(&'static str, Raw)]| {
            let mut given = given(&[fixed(1.0).as_slice(), values].concat());
            enter(&mut given, US(5), &[(7, 30), (8, 10), (9, 1)], 50_000);
            let sent = given.pass(US(85));
            assert!(sent.iter().all(|(at, _)| *at == US(85)));
            sent.iter().map(|(_, notification)| notification.flow.source).collect::<Vec<_>>()
        };
        assert_eq!(sources(&[]), [7, 8]);
        assert_eq!(sources(&[("packets", Raw::Integer(1))]), [7, 8, 9]);
        assert_eq!(sources(&[("discrimination", text("mean"))]), [7]);
        assert!(sources(&[("reference", text("50KB"))]).is_empty());
        assert_eq!(sources(&[("reference", text("50KB")), ("only_above_reference", Raw::Flag(false))]), [7, 8]);
    }

    #[test]
    fn the_timer_runs_only_while_something_happens() {
        let mut given = given(&[("min_probability", Raw::Float(0.5)), ("integral", Raw::Float(0.01))]);
        assert_eq!(given.agent.next_timer(), Time::MAX);
        enter(&mut given, US(1000), &[(3, 5)], 40_000);
        assert_eq!(given.agent.next_timer(), US(1080));
        given.pass(US(1080));
        // It still waits; then it has gone.
        assert_eq!(given.agent.next_timer(), US(1160));
        given.switch.bytes.fill(0);
        given.pass(US(1160));
        assert_eq!(given.agent.next_timer(), Time::MAX);
        // What passed without it is caught up with: two whole periods of an empty queue.
        let mut awake = given.agent.clone();
        enter(&mut given, US(1340), &[(3, 5)], 0);
        let queue = &mut awake.queues[2];
        queue.p = controlled(&awake.parameters, queue.p, -1.0, queue.before, 1);
        queue.p = controlled(&awake.parameters, queue.p, -1.0, -1.0, 1);
        close(given.agent.queues[2].p, queue.p);
    }

    #[test]
    fn the_table_counts_like_a_map() {
        let (mut table, mut map) = (QueuedBytes::default(), std::collections::BTreeMap::new());
        for round in 0..3u32 {
            for step in 0..5_000u32 {
                let source = step.wrapping_mul(2_654_435_761) % (40 << (3 * round));
                table.count(&flow(source));
                *map.entry(source).or_insert(0u32) += 1;
            }
            assert_eq!(table.entries.len(), map.len());
            assert!(table.entries.iter().all(|entry| map[&entry.flow.source] == entry.packets));
            table.clear();
            map.clear();
        }
    }

    /// A queue that rises, stays and falls; two flows, one of which has three times the packets.
    #[test]
    fn golden() {
        let mut given = given(&[]);
        let mut rows = String::new();
        for period in 0..60u64 {
            let queue = match period {
                0..10 => period * 100_000,
                10..40 => 1_000_000 - (period - 10) * 30_000,
                _ => 100_000 - (period - 40) * 5_000,
            };
            enter(&mut given, US(80 * period), &[(0, 90), (1, 30)], queue);
            let sent = given.pass(US(80 * (period + 1) - 1));
            let sources: Vec<_> = sent.iter().map(|(_, notification)| notification.flow.source).collect();
            let p = given.agent.queues[2].p;
            rows += &format!("{period:>3} {queue:>7} {:>9} ppb {sources:?}\n", (p * 1e9).round());
        }
        insta::assert_snapshot!("pacc", rows);
    }
}
