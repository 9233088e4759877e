//! An estimate of the memory that a simulation needs.

use super::config::Probes;
use crate::{
    engine::executor::{MOST_THREADS, slots},
    packet::{GAP, Telemetry},
    probe::{ArrivedSample, EventRecord, PortSample, RateSample},
    topology::Topology,
};
use incast_cc::Path;
use incast_units::{Bytes, Time};

// The constants are fitted to what the process of a run took at its peak, with large pages, in the scenarios of
// `crates/incast/tests/cli/memory.rs`, which sees to it that an estimate is between the measured memory and twice that.

/// Bytes of the program itself, and of the first table of results that it writes.
const PROCESS: f64 = 31e6;
/// Bytes of the writing of further tables, and of a large one: a buffer for each column.
const FURTHER_TABLES: f64 = 8e6;
const LARGE_TABLE: f64 = 24e6;
/// Rows of a large table.
const LARGE: f64 = 15_000.0;
/// Bytes of a node besides its ports: state of the engine, mailboxes, heap blocks.
const PER_NODE: f64 = 4_200.0;
/// Bytes of a port with one priority in use, and of each further one.
const PER_PORT: f64 = 220.0;
/// See [`PER_PORT`].
const PER_PRIORITY: f64 = 40.0;
/// Bytes of a packet in flight: its envelope in a vector that may be half empty, and the slot that it leaves.
const PER_PACKET: f64 = 3.0 * 64.0;
/// Bytes of a packet in a queue, in vectors that keep the room of the longest.
const PER_QUEUED: f64 = 7.5 * 64.0;
/// Bytes more where packets carry telemetry, in a vector that may be half empty.
const PER_TELEMETRY: f64 = 2.0 * size_of::<Telemetry>() as f64;
/// Bytes of a flow: what is known before it starts, its records, its result, its place in tables.
const PER_FLOW: f64 = 700.0;
/// Bytes of the two halves of a flow that is not done.
const PER_ALIVE: f64 = 720.0;
/// Bytes of each of its packets that was sent and is not acknowledged, at its sender and its receiver.
const PER_SENT: f64 = 110.0;
/// A flow starts with about so many packets.
const FIRST_WINDOW: f64 = 14.0;
/// Windows of a flow that are in the network at the most.
const WINDOWS: f64 = 1.8;
/// Samples and events lie in vectors that may be half empty, once more in the results, and in what is written.
const COPIES: f64 = 5.0;
/// Events that are recorded, marks above all, for each packet of data.
const EVENTS: f64 = 0.5;
/// Largest number of queued packets: bandwidth-delay products of each host.
const MOST_QUEUED: f64 = 8.0;
/// Bytes of a domain's list in each thread and slot of windows, and its bits in two sets of active domains.
const PER_LIST: f64 = 8.25;
/// Links shorter than this are no limit to windows.
const LEAST_LOOKAHEAD: Time = Time::from_ns(20);

/// What the memory of a simulation depends on.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Nodes and cables.
    pub topology: &'a Topology,
    /// The path as laws see it: each host has a few of its bandwidth-delay products in flight.
    pub path: Path,
    /// Expected number of flows.
    pub flows: f64,
    /// Flows that are under way at a time, at the most.
    pub alive: f64,
    /// Mean number of data packets of a flow.
    pub packets: f64,
    /// Mean part of the hosts' rates that is used while flows arrive, at most 1.
    pub used: f64,
    /// Tables of results that a run writes.
    pub tables: usize,
    /// Packets carry telemetry.
    pub telemetry: bool,
    /// Strict priorities of the switches that are in use.
    pub priorities: u8,
    /// Threads of the simulation.
    pub threads: usize,
    /// What is sampled.
    pub probes: &'a Probes,
    /// Sum of the times for which flows are under way, in picoseconds.
    pub flow_time: f64,
    /// When all flows are done, in picoseconds.
    pub until: f64,
}

/// An estimate in bytes, on the high side, by what it grows with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryEstimate {
    /// The fabric and what is in flight in it: grows with hosts, switches and cables.
    pub fabric: f64,
    /// Grows with the number of flows.
    pub flows: f64,
    /// Grows with what is sampled, how often, and for how long.
    pub samples: f64,
}

impl MemoryEstimate {
    /// All together.
    pub fn total(&self) -> u64 {
        (self.fabric + self.flows + self.samples).min(1e18) as u64
    }
}

/// Peak memory of a simulation.
pub fn estimate_memory(demand: &Demand<'_>) -> MemoryEstimate {
    let Demand { topology, path, .. } = demand;
    let nodes = f64::from(topology.nodes());
    let window = path.bdp().get() as f64 / f64::from(path.mss.max(1)) + 2.0;
    let hosts = f64::from(topology.hosts);
    // Data and acknowledgements of a window from every host that sends, and a queue of the same size where all do.
    let in_flight = hosts * window * demand.used * (2.0 + 2.0 * demand.used);
    // What is in the network and not in flight waits in queues. Laws with telemetry keep these short.
    let queued = (demand.alive * demand.packets.min(WINDOWS * window) - in_flight).max(0.0);
    let queued = queued.min(hosts * window * MOST_QUEUED);
    let queued = if demand.telemetry { 0.0 } else { queued };
    let threads = demand.threads.clamp(1, MOST_THREADS) as f64;
    let fabric = PROCESS
        + nodes * PER_NODE
        + topology.cables.len() as f64
            * 2.0
            * (PER_PORT + f64::from(demand.priorities.saturating_sub(1)) * PER_PRIORITY)
        + queued * PER_QUEUED
        + in_flight * (PER_PACKET + if demand.telemetry { PER_TELEMETRY } else { 0.0 })
        + nodes * threads * windows(topology, path.wire_mss) * PER_LIST;
    let samples = |every: Time, time: f64| time / every.ps().max(1) as f64;
    let ports = demand.probes.ports.as_ref().map_or(0.0, |(every, ports)| {
        samples(*every, demand.until) * ports.len() as f64 * f64::from(demand.priorities)
    });
    let rates = demand.probes.rates.as_ref().map_or(0.0, |(every, _)| samples(*every, demand.flow_time));
    let table = |rows: f64| (rows / LARGE).min(1.0) * LARGE_TABLE;
    let flows = demand.flows * PER_FLOW
        + demand.alive * (PER_ALIVE + PER_SENT * demand.packets.min(FIRST_WINDOW))
        + table(demand.flows)
        + if demand.tables > 1 { FURTHER_TABLES } else { 0.0 };
    let events = if demand.probes.events { demand.flows * demand.packets * EVENTS } else { 0.0 };
    let samples = COPIES
        * (ports * size_of::<PortSample>() as f64
            + rates * size_of::<RateSample>() as f64
            + events * size_of::<EventRecord>() as f64)
        // What arrives is joined with it once.
        + rates * size_of::<ArrivedSample>() as f64
        + table(ports.max(rates).max(events));
    MemoryEstimate { fabric, flows, samples }
}

/// Windows for which messages can be posted, at the most.
fn windows(topology: &Topology, wire_mss: u32) -> f64 {
    let links = || topology.cables.iter().map(|cable| &cable.link);
    let largest = Bytes::new(u64::from(wire_mss + GAP));
    let shortest = links().map(|link| link.delay).filter(|delay| *delay >= LEAST_LOOKAHEAD).min();
    let longest = links().map(|link| link.rate.time_of(largest).saturating_add(link.delay)).max();
    slots(shortest.unwrap_or(Time::MAX), longest.unwrap_or(Time::ZERO)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Link, SingleSwitch};
    use incast_units::Rate;

    #[test]
    fn each_part_grows_with_its_cause() {
        let fabric = |hosts, delay| {
            let link = Link { rate: Rate::from_gbps(100), delay, loss: 0.0 };
            SingleSwitch { hosts, link }.build().expect("a good topology")
        };
        let (small, large) = (fabric(100, Time::from_us(1)), fabric(200, Time::from_us(1)));
        let path = Path::new(Rate::from_gbps(100), Time::from_us(8), 4096, 4186);
        let none = Probes::default();
        let demand = Demand {
            topology: &small,
            path,
            flows: 1e6,
            alive: 1e3,
            packets: 4.0,
            used: 0.5,
            tables: 1,
            telemetry: false,
            priorities: 2,
            threads: 1,
            probes: &none,
            flow_time: 1e3 * 1e10,
            until: 1e10,
        };
        let one = estimate_memory(&demand);
        assert_eq!((one.flows, one.samples), (7e8 + 1e3 * (720.0 + 440.0) + 24e6, 0.0));
        let two = estimate_memory(&Demand { topology: &large, flows: 2e6, ..demand });
        assert!(two.fabric > one.fabric * 1.01 && two.flows == one.flows + 7e8);
        assert!(estimate_memory(&Demand { telemetry: true, ..demand }).fabric > one.fabric);
        let alive = estimate_memory(&Demand { alive: 1e6, ..demand });
        assert!(alive.flows > one.flows * 2.0 && alive.fabric > one.fabric);
        let few = Demand { flows: 10.0, ..demand };
        assert!(estimate_memory(&Demand { tables: 2, ..few }).flows > estimate_memory(&few).flows + 7e6);
        let threads = |threads| estimate_memory(&Demand { threads, ..demand }).fabric;
        assert!(threads(2) > threads(1) && threads(64) == threads(32));
        // 100 ports, 2 priorities, 10,000 samples.
        let ports = (0..100).map(|port| (100, port)).collect();
        let probes = Probes { ports: Some((Time::from_us(1), ports)), ..Probes::default() };
        let sampled = estimate_memory(&Demand { probes: &probes, ..demand });
        assert_eq!(sampled.samples, COPIES * 2e6 * size_of::<PortSample>() as f64 + 24e6);
        // A short link beside long ones makes many windows.
        let mut mixed = small.clone();
        mixed.cables[0].link.delay = Time::from_us(50);
        let many = estimate_memory(&Demand { topology: &mixed, threads: 4, ..demand });
        assert!(many.fabric > threads(4));
    }
}
