//! The results of a simulation.

pub use crate::probe::{
    EventKind, EventRecord, FlowRecord, PacketFacts, PacketRecord, PauseCause, PortSample, RateSample, Step,
};
use incast_units::Time;

/// Results of one run. Everything but [`Outcome::cost`] is a function of the configuration alone.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One record per flow that was opened, ordered by (source, sequence).
    pub flows: Vec<FlowRecord>,
    /// Samples of ports, ordered by (time, node, port, priority).
    pub ports: Vec<PortSample>,
    /// Samples of flows, ordered by (time, source, sequence).
    pub rates: Vec<RateSample>,
    /// Recorded events, ordered by (time, node, port, kind, flow).
    pub events: Vec<EventRecord>,
    /// Why switches paused their neighbours, where events are recorded; ordered by (time, node, ingress, priority).
    pub causes: Vec<PauseCause>,
    /// Recorded steps of packets, ordered by (time, node, port).
    pub packets: Vec<PacketRecord>,
    /// Steps beyond the limit of records of their port.
    pub packets_left_out: u64,
    /// Sums.
    pub totals: Totals,
    /// SHA-256 of the flows and totals, in hexadecimal. Samples and recorded events are left out, so that a probe does
    /// not change it, and so is `totals.events`, which counts the engine's work.
    pub digest: String,
    /// The largest part of its rate that any link carried in one direction, over the whole run: frames without preamble
    /// and gap.
    pub busiest_link: f64,
    /// The longest round trip of the fabric without queueing, for a full packet and its acknowledgement; of the class
    /// with the longest one where classes differ.
    pub base_rtt: Time,
    /// Simulated time at the end.
    pub ended_at: Time,
    /// Every flow was delivered and acknowledged before the configured end.
    pub complete: bool,
    /// The deadlock of flow control that ended the run: a part of the fabric had stopped for good.
    pub deadlock: Option<Deadlock>,
    /// What it cost.
    pub cost: Cost,
}

/// An egress queue of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingQueue {
    /// Node.
    pub node: u32,
    /// Its port.
    pub port: u16,
    /// Priority.
    pub priority: u8,
}

/// Paused queues that can never send again: each waits until the next one has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found.
    pub at: Time,
    /// Nothing on the cycle has moved since then.
    pub since: Time,
    /// The cycle; the last one waits for the first.
    pub cycle: Vec<WaitingQueue>,
}

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Link traversals, data and control packets alike.
    pub packet_hops: u64,
    /// Events handled: arrivals, transmissions that ended, timers.
    pub events: u64,
    /// Packets that hosts put on their links.
    pub injected_packets: u64,
    /// Bytes of those, without preamble and gap.
    pub injected_bytes: u64,
    /// Bytes that arrived at hosts.
    pub received_bytes: u64,
    /// Bytes that switches made (control packets).
    pub created_bytes: u64,
    /// Bytes of pause frames that ended at switches.
    pub consumed_bytes: u64,
    /// Bytes in queues and on links at the end.
    pub left_bytes: u64,
    /// Bytes dropped for lack of buffer, or by active queue management.
    pub dropped_bytes: u64,
    /// Packets dropped for lack of buffer, or by active queue management.
    pub drops: u64,
    /// Packets of lossless priorities dropped because their ingress had no headroom left: some of `drops`.
    pub lossless_drops: u64,
    /// Bytes cut off by trimming.
    pub trimmed_bytes: u64,
    /// Packets trimmed.
    pub trims: u64,
    /// Headers of those that switches sent back to their senders.
    pub bounces: u64,
    /// Packets lost on wires, on links that went down, or without a route; control packets that waited in a host whose
    /// link went down count here too.
    pub lost: u64,
    /// Bytes of those that were on a link or in a switch.
    pub lost_bytes: u64,
    /// Packets marked at ports that lead to hosts.
    pub marks_edge: u64,
    /// Packets marked at the other ports of switches.
    pub marks_fabric: u64,
    /// Pause edges.
    pub pauses: u64,
    /// Cycles of paused queues that wait for each other, as found by the inspections for deadlocks; see docs/fabric.md.
    pub pfc_cycles: u64,
    /// Pauses that lasted although the neighbour that sent them had no reason to pause, as found by the same
    /// inspections.
    pub pfc_stranded: u64,
    /// Time ports spent paused, added up.
    pub paused: Time,
    /// Packets that a switch deflected.
    pub deflections: u64,
    /// The longest egress queue of any switch port, all priorities, the packet in service included.
    pub max_queue_bytes: u64,
}

/// What a run cost; differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// CPU seconds of the process (user and system) in the event loop, set-up excluded.
    pub cpu_s: f64,
    /// Elapsed seconds of the same.
    pub wall_s: f64,
    /// Windows executed.
    pub windows: u64,
}
