//! Everything a simulation is made of.

use crate::{
    fabric::{
        packet::GAP,
        permission::Gate,
        routing::{Pinned, TooManySets},
        topology::Topology,
    },
    host::{app::Application, format::Format},
    probe::PacketFilter,
};
use incast_cc::{
    receiver::Scheduler,
    sender::{LawParameters, Recovery},
    switch::Agent,
    underlay::Underlay,
};
use incast_units::{Rate, Rounding, Time};
use thiserror::Error;

/// One simulation: a fabric, its hosts, the flows, and what to measure.
#[derive(Debug)]
pub struct Config {
    /// Nodes, cables and routes.
    pub topology: Topology,
    /// All switches.
    pub switch: SwitchConfig,
    /// All hosts.
    pub host: HostConfig,
    /// All links.
    pub wire: Wire,
    /// Flow classes, by the index that flows name.
    pub classes: Vec<ClassConfig>,
    /// Flows whose start is known beforehand, in any order.
    pub flows: Vec<FlowSpec>,
    /// What opens flows during the run, by host; may be shorter than the number of hosts.
    pub applications: Vec<Option<Box<dyn Application>>>,
    /// Links that go down and up.
    pub link_events: Vec<LinkEvent>,
    /// What to sample.
    pub probes: Probes,
    /// Seed of every random stream.
    pub seed: u64,
    /// The run ends here if flows are still unfinished.
    pub end: Time,
    /// Threads for this one simulation; the results do not depend on it.
    pub threads: usize,
    /// How packets that arrive at one switch at the same picosecond are ordered.
    pub ties: Ties,
}

/// How frames lie on all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bytes on a link that belong to no frame.
    pub gap: u32,
    /// What becomes of fractions of transmission times and of the gaps of paced flows.
    pub rounding: Rounding,
}

impl Default for Wire {
    fn default() -> Self {
        Self { gap: GAP, rounding: Rounding::Exact }
    }
}

/// Order of simultaneous events of different ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// By a hash of (seed, node, time, port): no port is favoured.
    #[default]
    Seeded,
    /// Lower ports first.
    PortOrder,
    /// Lower ports first, and packets that arrive as a transmission ends wait with those that are there before the link
    /// is taken: the order of simulators with one global list of events, in which an arrival was scheduled a link's delay
    /// earlier. Otherwise the link is taken before newcomers see it.
    ArrivalsFirst,
}

/// A threshold in bytes, or relative to the port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Fractions of the port's rate times the fabric's base RTT.
    Bdp(f64),
}

impl Size {
    /// In bytes, for a port.
    pub fn bytes(self, rate: Rate, base_rtt: Time) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Bdp(factor) => (rate.bytes_in(base_rtt).get() as f64 * factor).round() as u64,
        }
    }
}

/// Memory of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// One memory for all ports with dynamic thresholds (Choudhury and Hahne 1998): a queue may grow while its share
    /// of the pool is below `alpha` times what is free of the pool, plus its own `reserve`.
    Shared {
        /// Bytes of the memory.
        total: u64,
        /// Numerator and denominator of alpha.
        alpha: (u32, u32),
        /// Bytes set aside for each queue.
        reserve: u64,
    },
    /// Each port has its own memory.
    PerPort {
        /// Bytes of a port, all priorities together.
        bytes: u64,
    },
    /// No limit.
    Unlimited,
}

/// ECN marking of the egress queue, in bytes of the packet's own priority.
#[derive(Clone, Debug, PartialEq)]
pub enum Ecn {
    /// No marks.
    Off,
    /// Mark above a threshold.
    Step {
        /// The threshold.
        at: Size,
    },
    /// Random early detection.
    Red {
        /// No marks up to here.
        min: Size,
        /// All packets are marked above.
        max: Size,
        /// Probability at `max`.
        p: f64,
    },
    /// Random early detection with thresholds for each rate of ports; ports of any other rate do not mark.
    RedByRate(Vec<RedAtRate>),
}

/// Random early detection of the ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedAtRate {
    /// The ports' rate.
    pub rate: Rate,
    /// No marks up to here.
    pub min: Size,
    /// All packets are marked above.
    pub max: Size,
    /// Probability at `max`.
    pub p: f64,
}

/// When the queue is compared with the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkAt {
    /// When the packet arrives, with the queue that it finds (RFC 8257, section 3.1).
    #[default]
    Enqueue,
    /// When the packet leaves, with the queue that it leaves behind.
    Dequeue,
}

/// Choice among equal-cost ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadBalancing {
    /// By a seeded hash of the flow.
    #[default]
    Ecmp,
    /// Each packet draws a port.
    Spray,
    /// The sender chooses: see [`Pinned`]. Flows that are not pinned choose by a hash, once for all switches.
    Pinned,
}

/// All switches of a fabric.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Memory.
    pub buffer: Buffer,
    /// Marking.
    pub ecn: Ecn,
    /// When marking looks.
    pub mark_at: MarkAt,
    /// Strict priorities, 1 to 8; 0 is the highest.
    pub priorities: u8,
    /// Choice among equal-cost ports.
    pub load_balancing: LoadBalancing,
    /// In-switch algorithm; each switch gets a copy.
    pub agent: Agent,
    /// Packets carry a record of each hop's queue and rate; always where a class's law needs them.
    pub telemetry: bool,
    /// Closes every port for a part of each period.
    pub gate: Option<Gate>,
}

impl SwitchConfig {
    /// Switches that do nothing but forward: memory without end, no marks, one priority, ECMP.
    pub fn plain() -> Self {
        Self {
            buffer: Buffer::Unlimited,
            ecn: Ecn::Off,
            mark_at: MarkAt::Enqueue,
            priorities: 1,
            load_balancing: LoadBalancing::Ecmp,
            agent: Agent::None,
            telemetry: false,
            gate: None,
        }
    }
}

/// All hosts of a fabric.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Smallest retransmission timeout.
    pub rto_min: Time,
    /// An acknowledgement for each n-th packet; 1 for every packet. Marks, gaps and the last packet are acknowledged at once.
    pub ack_every: u32,
    /// A coalesced acknowledgement waits no longer than this.
    pub ack_delay: Time,
    /// What a receiver's NIC takes from the arrival of data until its acknowledgement can leave.
    pub answer_delay: Time,
    /// The same for a congestion notification.
    pub notification_delay: Time,
    /// Acknowledgements and other control packets go before data; otherwise they take turns with it.
    pub answers_first: bool,
    /// A packet is lost when one sent this many packets later has arrived (DupThresh of RFC 6675, applied to the highest arrival).
    pub reordering: u32,
    /// Receiver-driven scheduler; each host gets a copy.
    pub scheduler: Scheduler,
    /// A sender gives a flow up when its retransmission timer has expired so often in a row; `None` for never.
    pub give_up_after: Option<u8>,
    /// Closes every NIC for a part of each period.
    pub gate: Option<Gate>,
}

impl HostConfig {
    /// Sender-driven hosts that acknowledge every packet, with a retransmission timeout of at least 1 ms. `mtu` is the
    /// payload of a full packet in bytes.
    pub fn plain(mtu: u32) -> Self {
        Self {
            mtu,
            rto_min: Time::from_ms(1),
            ack_every: 1,
            ack_delay: Time::ZERO,
            answer_delay: Time::ZERO,
            notification_delay: Time::ZERO,
            answers_first: true,
            reordering: 3,
            scheduler: Scheduler::None,
            give_up_after: None,
            gate: None,
        }
    }
}

/// What flows of a class have in common.
#[derive(Clone, Debug)]
pub struct ClassConfig {
    /// Name, for messages.
    pub name: String,
    /// The law.
    pub law: LawParameters,
    /// Sizes of its frames.
    pub format: Format,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Priority of data packets.
    pub priority: u8,
    /// Priority of acknowledgements; `None` for that of the data, as TCP has it.
    pub ack_priority: Option<u8>,
    /// Priority of the receivers' congestion notifications.
    pub notification_priority: u8,
    /// Stage between flow and NIC; each flow gets a copy.
    pub underlay: Underlay,
}

/// A flow that is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// When.
    pub start: Time,
    /// Sending host.
    pub source: u32,
    /// Receiving host.
    pub destination: u32,
    /// Payload bytes, at least 1.
    pub bytes: u64,
    /// Index into [`Config::classes`].
    pub class: u16,
    /// Group that the flow belongs to (an incast, an RPC), or [`FlowSpec::NO_REQUEST`].
    pub request: u64,
    /// Its way there and back, where load balancing is [`LoadBalancing::Pinned`].
    pub pinned: Option<Pinned>,
}

impl FlowSpec {
    /// The flow belongs to no group.
    pub const NO_REQUEST: u64 = u64::MAX;
    /// The flow opens a group of its own, called (source << 32) + sequence.
    pub const OWN_REQUEST: u64 = u64::MAX - 1;
}

/// A cable that goes down or up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEvent {
    /// When.
    pub at: Time,
    /// Index into the topology's cables.
    pub cable: usize,
    /// It comes up, or it goes down.
    pub up: bool,
}

/// What is sampled.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Egress ports by (node, port), sampled with this period.
    pub ports: Option<(Time, Vec<(u32, u16)>)>,
    /// Flows of at least so many bytes, sampled with this period.
    pub rates: Option<(Time, u64)>,
    /// Record each drop, mark, timeout and deflection.
    pub events: bool,
    /// Record each step of some packets. With a flow, [`Self::rates`] samples that flow alone.
    pub packets: Option<PacketFilter>,
}

/// Why a simulation cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A value is impossible.
    #[error("{what} is {found}, allowed is {allowed}")]
    Value {
        /// What is wrong.
        what: String,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// The routes around links that are down do not fit into tables.
    #[error("the routes from {at} on: {error}")]
    Routes {
        /// Start of the routing epoch.
        at: Time,
        /// Which switch, and what does not fit.
        error: TooManySets,
    },
}
