//! Everything a simulation is made of.

pub use crate::fabric::trim::config::{Limit, Trim, Victim};
use crate::{
    application::{Application, FlowSpec},
    fabric::{format::Format, packet::GAP},
    probe::PacketFilter,
    switch::scheduler::config::Scheduling,
    topology::{TooManySets, Topology},
};
use incast_cc::{
    law::Recovery,
    registry::{AgentParameters, LawParameters, Scheduler, UnderlayParameters},
};
use incast_units::{Bytes, Rate, Rounding, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt, str::FromStr};
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
    /// Clocks of hosts, by host; those beyond are perfect.
    pub clocks: Vec<HostClock>,
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

impl Config {
    /// One scheduler for all classes there are, and for hosts of every rate.
    pub fn drive(&mut self, scheduler: Scheduler) {
        self.host.schedulers = vec![scheduler];
        self.classes.iter_mut().for_each(|class| class.scheduler = Some(0));
    }
}

/// How frames lie on all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wire {
    /// Bytes on a link that belong to no frame, 0 to 1,000. Default: 20, Ethernet's preamble and gap; 0 with
    /// `profile = "hpcc-lineage"`.
    #[serde(with = "Ranged::<0, 1000>")]
    #[schemars(with = "Bytes", extend("default" = "20B"))]
    pub gap: u32,
    /// What becomes of fractions of transmission times and of the gaps of paced flows. Default: `"exact"`; `"whole-ns"`
    /// with `profile = "hpcc-lineage"`.
    pub rounding: Rounding,
}

impl Default for Wire {
    fn default() -> Self {
        Self { gap: GAP, rounding: Rounding::Exact }
    }
}

/// A number of bytes in a scenario, a size such as `"64B"` from `LEAST` to `MOST`; for `serde(with)`.
struct Ranged<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Ranged<LEAST, MOST> {
    fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
        let size = Bytes::deserialize(deserializer)?;
        let fits = Some(size.get()).filter(|bytes| (LEAST..=MOST).contains(bytes));
        fits.and_then(|bytes| T::try_from(bytes).ok()).ok_or_else(|| {
            let allowed = format!("{LEAST}B to {MOST}B");
            D::Error::invalid_value(Unexpected::Other(&size.to_string()), &allowed.as_str())
        })
    }

    fn serialize<S: Serializer, T: Copy + Into<u64>>(bytes: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Bytes::new((*bytes).into()))
    }
}

/// Order of what happens at the same picosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// By a hash of seed, node, time and port: no port is favoured.
    #[default]
    Seeded,
    /// Lower ports first.
    PortOrder,
    /// Lower ports first, and packets that arrive as a transmission ends wait with those that are there before the link
    /// takes its next packet: the order of simulators with one global list of events, in which an arrival was scheduled
    /// a link's delay earlier. Otherwise the link takes its next packet before newcomers are seen.
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

incast_units::written_as_text!(
    Size,
    "Depth",
    "a size such as \"30KB\", or a part of the port's bandwidth-delay product such as \"0.2bdp\"",
    r"^\s*[0-9_]*\.?[0-9_]*\s*(B|KB|kB|MB|GB|KiB|MiB|GiB|bdp|BDP)\s*$"
);

impl FromStr for Size {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let trimmed = text.trim();
        match trimmed.strip_suffix("bdp").or_else(|| trimmed.strip_suffix("BDP")) {
            Some(number) => match number.trim().parse::<f64>() {
                Ok(factor) if (0.0..=1e6).contains(&factor) => Ok(Self::Bdp(factor)),
                _ => Err(()),
            },
            None => trimmed.parse::<Bytes>().map(|bytes| Self::Bytes(bytes.get())).map_err(|_| ()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => Bytes::new(bytes).fmt(f),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
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
    /// Each port has its own memory, of so many packets whatever their size.
    PerPortPackets {
        /// Packets that may wait at a port, all priorities together.
        packets: u32,
    },
    /// No limit.
    Unlimited,
}

/// ECN marking of the egress queue, in bytes of the packet's own priority.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind", transform = also_off)]
pub enum Ecn {
    /// No marks. Also written `"off"` or `false`.
    #[default]
    Off,
    /// Every packet above a threshold is marked.
    Step {
        /// Threshold.
        at: Size,
    },
    /// Random early detection: the probability of a mark rises linearly from 0 at `min` to `p` at `max`, and is 1
    /// above.
    Red {
        /// Lower threshold.
        min: Size,
        /// Upper threshold.
        max: Size,
        /// Probability at `max`, in (0, 1].
        p: f64,
    },
    /// Random early detection with thresholds for each rate of ports.
    RedByRate {
        /// Thresholds, one table for each rate that a port of a switch has.
        rates: Vec<RedAtRate>,
    },
}

/// `"off"` and `false` stand for the table `{ kind = "off" }`.
pub fn also_off(schema: &mut Schema) {
    also(schema, "off");
    also(schema, false);
}

/// Adds a value to the alternatives of a schema.
pub fn also(schema: &mut Schema, value: impl Into<serde_json::Value>) {
    let alternatives = schema.get_mut("oneOf").and_then(serde_json::Value::as_array_mut);
    if let Some(alternatives) = alternatives {
        let value: serde_json::Value = value.into();
        alternatives.push(serde_json::json!({ "const": value, "description": "The same." }));
    }
}

/// Random early detection at the ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedAtRate {
    /// The ports' rate.
    pub rate: Rate,
    /// Lower threshold.
    pub min: Size,
    /// Upper threshold.
    pub max: Size,
    /// Probability at `max`, in (0, 1].
    pub p: f64,
}

/// When the queue is compared with the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcnAt")]
pub enum MarkAt {
    /// As a packet enters, with the queue that it finds (RFC 8257, section 3.1).
    #[default]
    Enqueue,
    /// As a packet leaves, with the queue that it leaves behind.
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
    /// The sender chooses: see [`Pinned`](crate::routing::Pinned). Flows that are not pinned choose by a hash, once for
    /// all switches.
    SourceRouted,
    /// The sender chooses for each packet: per-packet spraying over a permutation of all paths, drawn anew each round.
    /// Control packets take any path.
    SprayPermutation,
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
    /// Queues of each port, 1 to 8: strict priorities, of which 0 is the highest, or with virtual channels so many for
    /// each of them.
    pub priorities: u8,
    /// Which queue of a port sends next; other than strict not together with virtual channels or a weight of headers.
    pub scheduler: Scheduling,
    /// Virtual channels of each priority: queues that flow control pauses apart. Classes have
    /// [`Self::class_priorities`].
    pub virtual_channels: u8,
    /// Choice among equal-cost ports.
    pub load_balancing: LoadBalancing,
    /// In-switch algorithm.
    pub agent: AgentParameters,
    /// Packets carry a record of each hop's queue and rate; always where a class's law needs them.
    pub telemetry: bool,
    /// Priority flow control.
    pub pfc: Option<Pfc>,
    /// Packet trimming; not together with flow control or an in-switch algorithm.
    pub trim: Option<Trim>,
    /// Credit-based flow control; not together with priority flow control.
    pub credits: Option<Credits>,
}

/// Credit-based flow control, as InfiniBand has it (IBA volume 1, section 7.9). Each priority is a virtual lane: a
/// packet is sent only if the other end of the link has advertised room for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Credits {
    /// Memory of each port and virtual lane, of switches and hosts, in whole blocks of 64 bytes. Default: a link is
    /// never idle for lack of credits; `incast check` says how much that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// So much that has become free is advertised together; less where the sender knows of too little for a full
    /// packet. Default: a quarter of `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Bytes>,
    /// Size of a flow control packet.
    #[serde(with = "Ranged::<1, 9216>")]
    #[schemars(with = "Bytes")]
    pub frame: u16,
    /// On links that lose packets: a sender without credits requests them after this time. Default: 65,536 symbol times
    /// of a link of four lanes, 21us at 100Gbps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Time>,
    /// Ports that all wait for each other in a cycle for so long end the run as a deadlock.
    #[schemars(with = "Time")]
    pub deadlock_after: Option<Time>,
}

impl Default for Credits {
    /// Packets of 6 bytes, as IBA has them, a deadlock after 10 ms, the rest as computed.
    fn default() -> Self {
        Self { buffer: None, update: None, frame: 6, refresh: None, deadlock_after: Some(Time::from_ms(10)) }
    }
}

/// Priority flow control (IEEE 802.1Qbb): a switch asks a neighbour to pause before it has no more room for its
/// packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Pfc {
    /// When a neighbour is paused.
    pub threshold: Threshold,
    /// Memory for what still arrives then; for each port and lossless priority.
    pub headroom: Headroom,
    /// Lossless priorities, one bit each. The others are dropped as ever.
    pub priorities: u8,
    /// From the arrival of a pause frame to its effect.
    pub response_delay: Time,
    /// Bytes of a pause frame.
    pub frame: u16,
    /// A pause ends after this time unless refreshed; `None` until a frame ends it.
    pub expiry: Option<Expiry>,
    /// A cycle of ports that all wait for each other for this long ends the run; `None` for never.
    pub deadlock_after: Option<Time>,
    /// Refuse what cannot be proven to lose nothing. Without, packets that find no headroom are dropped and counted.
    pub strict: bool,
}

impl Pfc {
    /// All priorities lossless, headroom as computed, no response delay, 64-byte frames that hold until the next one,
    /// a deadlock after 10 ms.
    pub fn new(threshold: Threshold) -> Self {
        Self {
            threshold,
            headroom: Headroom::Computed,
            priorities: u8::MAX,
            response_delay: Time::ZERO,
            frame: 64,
            expiry: None,
            deadlock_after: Some(Time::from_ms(10)),
            strict: true,
        }
    }
}

/// When a switch pauses the neighbour at a port, by priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// At fixed numbers of bytes.
    Static {
        /// Pause at or above.
        xoff: Size,
        /// Resume at or below; `None` for two of the largest frames below `xoff`.
        xon: Option<Size>,
    },
    /// At a share of the free memory, as in HPCC's simulator: pause when the headroom is in use, or what is held beyond
    /// the reserve reaches alpha times the memory that is neither reserved nor headroom nor in use.
    Dynamic {
        /// Alpha.
        alpha: Alpha,
        /// Bytes set aside for each port and priority.
        reserve: u64,
        /// Resume so many bytes below the threshold.
        resume_offset: u64,
    },
}

/// How much of the free memory one ingress may take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Alpha {
    /// As in HPCC's simulator: 1/8 at the hosts' rate and below, twice as much for each doubling of the rate, at most
    /// 1.
    #[default]
    ByRate,
    /// The same for all ports, in units of 2^-20.
    Fixed(f64),
}

impl<'de> Deserialize<'de> for Alpha {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrRule;
        impl Visitor<'_> for NumberOrRule {
            type Value = Alpha;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or \"by-rate\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Alpha, E> {
                match text {
                    "by-rate" => Ok(Alpha::ByRate),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Alpha, E> {
                Ok(Alpha::Fixed(number))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Alpha, E> {
                Ok(Alpha::Fixed(number as f64))
            }
        }
        deserializer.deserialize_any(NumberOrRule)
    }
}

impl Serialize for Alpha {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::ByRate => serializer.serialize_str("by-rate"),
            Self::Fixed(alpha) => serializer.serialize_f64(*alpha),
        }
    }
}

impl JsonSchema for Alpha {
    fn schema_name() -> Cow<'static, str> {
        "Alpha".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Part of the free memory.",
            "anyOf": [
                { "type": "number", "description": "The same for all ports." },
                { "const": "by-rate", "description": "HPCC's rule." },
            ],
        })
    }
}

/// Memory of each port and lossless priority for what still arrives after a pause was decided on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Headroom {
    /// What is needed: see [`crate::flow_control::pfc::Rules::needed`].
    #[default]
    Computed,
    /// So many bytes.
    Bytes(u64),
    /// A multiple of rate times propagation delay; HPCC's simulator has 3.
    RateTimesDelay(f64),
}

incast_units::written_as_text!(
    Headroom,
    "Headroom",
    "\"computed\", a size such as \"60KB\", or a multiple such as \"3 rate*delay\""
);

const RATE_TIMES_DELAY: &str = "rate*delay";

impl FromStr for Headroom {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "computed" => Ok(Self::Computed),
            text => match text.strip_suffix(RATE_TIMES_DELAY).map(|factor| factor.trim().parse::<f64>()) {
                Some(Ok(factor)) if (0.0..=1e6).contains(&factor) => Ok(Self::RateTimesDelay(factor)),
                Some(_) => Err(()),
                None => text.parse::<Bytes>().map(|bytes| Self::Bytes(bytes.get())).map_err(|_| ()),
            },
        }
    }
}

impl fmt::Display for Headroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Computed => f.write_str("computed"),
            Self::Bytes(bytes) => Bytes::new(bytes).fmt(f),
            Self::RateTimesDelay(factor) => write!(f, "{factor} {RATE_TIMES_DELAY}"),
        }
    }
}

/// Pauses that end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// A pause ends after this time.
    pub after: Time,
    /// It is said again in these intervals.
    pub refresh: Time,
}

impl SwitchConfig {
    /// Switches that do nothing but forward: memory without end, no marks, one priority, ECMP.
    pub fn plain() -> Self {
        Self {
            buffer: Buffer::Unlimited,
            ecn: Ecn::Off,
            mark_at: MarkAt::Enqueue,
            priorities: 1,
            scheduler: Scheduling::Strict,
            virtual_channels: 1,
            load_balancing: LoadBalancing::Ecmp,
            agent: AgentParameters::None,
            telemetry: false,
            pfc: None,
            trim: None,
            credits: None,
        }
    }

    /// Priorities that classes can have.
    pub fn class_priorities(&self) -> u8 {
        self.priorities / self.virtual_channels.max(1)
    }
}

/// All hosts of a fabric.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Smallest retransmission timeout.
    pub rto_min: Time,
    /// An acknowledgement for each n-th packet; 1 for every packet. Marks, gaps and the last packet are acknowledged at
    /// once.
    pub ack_every: u32,
    /// A coalesced acknowledgement waits no longer than this.
    pub ack_delay: Time,
    /// So many packets at the start of each flow are acknowledged at once whatever `ack_every` is.
    pub quick_acks: u32,
    /// How a coalesced acknowledgement tells of marks.
    pub echo: Echo,
    /// Timers expire only at multiples of this, the first one after their time; zero for exactly then.
    pub timer_tick: Time,
    /// A round trip opens each flow of a sender-driven class before its data.
    pub handshake: bool,
    /// Time in a receiver's NIC from the arrival of data until its acknowledgement can leave.
    pub response_delay: Time,
    /// The same for a congestion notification.
    pub notification_delay: Time,
    /// Acknowledgements and other control packets go before data; otherwise they take turns with it.
    pub control_first: bool,
    /// A packet is lost when one sent this many packets later has arrived (DupThresh of RFC 6675, applied to the
    /// highest arrival).
    pub reordering: u32,
    /// Receiver-driven schedulers; each host gets a copy of each. Classes name theirs.
    pub schedulers: Vec<Scheduler>,
    /// A sender gives a flow up when its retransmission timer has expired so often in a row; `None` for never.
    pub give_up_after: Option<u8>,
    /// With [`LoadBalancing::SprayPermutation`]: ways with outlying numbers of trimmed or lost packets are left out for
    /// a while.
    pub path_penalty: bool,
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
            quick_acks: 0,
            echo: Echo::Counts,
            timer_tick: Time::ZERO,
            handshake: false,
            response_delay: Time::ZERO,
            notification_delay: Time::ZERO,
            control_first: true,
            reordering: 3,
            schedulers: Vec::new(),
            give_up_after: None,
            path_penalty: true,
        }
    }
}

impl HostConfig {
    /// When a timer that is set to this time expires.
    #[inline]
    pub fn expiry(&self, time: Time) -> Time {
        let tick = self.timer_tick.ps();
        if tick == 0 || time == Time::MAX {
            time
        } else {
            Time::from_ps((time.ps() / tick + 1).saturating_mul(tick))
        }
    }
}

/// How an acknowledgement of several packets tells of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// It counts packets and marks since the last one.
    #[default]
    Counts,
    /// It has one flag for all of them, so that packets before a change of marks get an acknowledgement of their own
    /// (RFC 8257, section 3.2).
    Flag,
}

/// How a host's clock deviates from the simulation's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostClock {
    /// What it shows too much at the start, in picoseconds.
    pub offset_ps: i64,
    /// What it gains, in parts per million.
    pub drift_ppm: f64,
    /// Largest error of a reading besides: each has its own, uniform between both extremes.
    pub noise: Time,
}

/// What flows of a class have in common.
#[derive(Clone, Debug)]
pub struct ClassConfig {
    /// Name, for messages.
    pub name: String,
    /// The law, of hosts at the fastest rate of hosts.
    pub law: LawParameters,
    /// The law of hosts at other rates; those that are not here have `law`.
    pub law_at: Vec<(Rate, LawParameters)>,
    /// Sizes of its frames.
    pub format: Format,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Priority of data packets.
    pub priority: u8,
    /// Priority of acknowledgements; `None` for that of the data, as TCP has it.
    pub ack_priority: Option<u8>,
    /// Priority of congestion notifications, from receivers or switches.
    pub notification_priority: u8,
    /// Stage between flow and NIC.
    pub underlay: UnderlayParameters,
    /// Index of its scheduler in [`HostConfig::schedulers`], which classes may share.
    pub scheduler: Option<u8>,
    /// Switches that trim may cut off the payload of its data.
    pub trimmable: bool,
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
    /// Flow control cannot promise to lose nothing.
    #[error("PFC is not lossless at switch {switch}: {shortage}")]
    Lossy {
        /// Name of the switch.
        switch: String,
        /// What it lacks.
        shortage: Shortage,
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

/// What a switch lacks to be lossless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Shortage {
    /// A port's headroom is too small.
    #[error(
        "the headroom of a port of {rate} with a cable of {delay} is {found} B for each priority, \
         and {needed} B can still arrive after it has decided to pause"
    )]
    Headroom {
        /// Rate of the port.
        rate: Rate,
        /// Propagation delay of its cable.
        delay: Time,
        /// Its headroom in bytes.
        found: u64,
        /// What is needed.
        needed: u64,
    },
    /// The shared memory cannot hold it.
    #[error(
        "its memory is {found} B, and what its ports need of their own comes to {needed} B, {headroom} B of that headroom"
    )]
    Memory {
        /// Bytes of the memory.
        found: u64,
        /// Reserves or static thresholds, and headroom, of all ports and lossless priorities.
        needed: u64,
        /// The headroom of them.
        headroom: u64,
    },
    /// The memory of a port cannot hold it.
    #[error("the memory of a port is {found} B, and its lossless priorities need {needed} B")]
    Port {
        /// Bytes of the memory.
        found: u64,
        /// Threshold and headroom of all lossless priorities.
        needed: u64,
    },
    /// It would resume before it pauses.
    #[error("xon is {xon} B, allowed is below xoff, {xoff} B")]
    Order {
        /// Upper threshold.
        xoff: u64,
        /// Lower threshold.
        xon: u64,
    },
}
