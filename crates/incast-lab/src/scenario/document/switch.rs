//! `[switch]`.

use super::{
    super::quantity::{Depth, Duration, Size, Speed},
    credits::FlowControl,
    named::Agent,
    trim::Trimming,
};
use incast_units::{Bytes, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt, str::FromStr};

/// Memory, marking and scheduling of all switches.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Memory: `{ total = "4MB", alpha = 1.0 }` shared with dynamic thresholds, `{ per_port = "86KB" }`, or
    /// `{ per_port_packets = 57 }`. With `trim` it may be left out: then the limits of the queues are all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Marks: `{ kind = "step", at = "0.2bdp" }`, `{ kind = "red", min, max, p }`,
    /// `{ kind = "red-by-rate", rates = [{ rate, min, max, p }] }`, or `"off"`.
    #[serde(default)]
    pub ecn: Ecn,
    /// The queue is compared with the threshold when a packet enters it or leaves it. `"dequeue"` with
    /// `profile = "hpcc-lineage"`.
    #[serde(default)]
    pub ecn_at: EcnAt,
    /// Lossless Ethernet: `"dynamic"`, `{ kind = "dynamic", … }`, `{ xoff = "320KB", xon = "318KB" }`, or `false`. With
    /// `profile = "hpcc-lineage"` and a shared memory: the peer's dynamic one.
    #[serde(default)]
    pub pfc: Pfc,
    /// Credit-based flow control, as InfiniBand has it: `true`, a table such as `{ buffer = "64KB" }`, or `false`. Not together
    /// with `pfc` or `trim`. With it `buffer` may be left out: then what credits stand for is all there is.
    #[serde(default)]
    pub credits: FlowControl,
    /// Packet trimming: `true` for NDP's defaults, a table such as `{ queue = 8, victim = "either" }`, or `false`. Not
    /// together with `pfc` or `agent`.
    #[serde(default)]
    pub trim: Trimming,
    /// In-switch algorithm: its name, `{ kind, … }` with its parameters, or `"none"`.
    #[serde(default)]
    pub agent: Agent,
    /// Queues of each port, 1 to 8: strict priorities of which 0 is the highest, or with `virtual_channels` so many for each
    /// priority.
    #[serde(default = "eight")]
    pub priorities: u8,
    /// Virtual channels of each priority, which `pfc` pauses apart: packets change to the next one where their way goes up after it has
    /// come down, so that routes with circles, those of a ring, cannot lock up. Schemes have `priorities` / `virtual_channels`
    /// priorities.
    #[serde(default = "one")]
    pub virtual_channels: u8,
    /// How a packet's port is chosen among equal-cost ones.
    #[serde(default)]
    pub load_balancing: LoadBalancing,
    /// Order of packets that reach a switch at the same picosecond, and whether transmissions that end then have ended:
    /// drawn, or lower ports first. `"arrivals-first"` with `profile = "hpcc-lineage"`.
    #[serde(default)]
    pub ties: Ties,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            buffer: None,
            ecn: Ecn::Off,
            ecn_at: EcnAt::Enqueue,
            pfc: Pfc::Off,
            credits: FlowControl::Off,
            trim: Trimming::Off,
            agent: Agent::default(),
            priorities: eight(),
            virtual_channels: one(),
            load_balancing: LoadBalancing::Ecmp,
            ties: Ties::Seeded,
        }
    }
}

fn eight() -> u8 {
    8
}

fn one() -> u8 {
    1
}

/// Memory of a switch. One of `total`, `per_port` and `per_port_packets`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// One memory for all ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Size>,
    /// With `total`: a queue may grow while it is below `alpha` times the free memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1.0))]
    pub alpha: Option<f64>,
    /// With `total`: memory set aside for each queue of each port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0B"))]
    pub reserve: Option<Size>,
    /// Each port has its own memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_port: Option<Size>,
    /// Each port has its own memory, of so many packets whatever their size; the packet in service does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_port_packets: Option<u32>,
}

impl Buffer {
    /// The shared memory's alpha.
    pub fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(1.0)
    }
    /// The shared memory's reserve.
    pub fn reserve(&self) -> Bytes {
        self.reserve.map_or(Bytes::ZERO, |size| size.0)
    }
}

/// Marking.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind", transform = also_off)]
pub enum Ecn {
    /// No marks. Also written `"off"` or `false`.
    #[default]
    Off,
    /// Every packet above a threshold is marked.
    Step(Step),
    /// Random early detection.
    Red(Red),
    /// Random early detection with thresholds for each rate of ports.
    RedByRate(RedByRate),
}

/// `"off"` and `false` stand for the table `{ kind = "off" }`.
fn also_off(schema: &mut Schema) {
    super::also(schema, "off");
    super::also(schema, false);
}

/// Step marking.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Threshold.
    pub at: Depth,
}

/// Marking with a probability that rises linearly from 0 at `min` to `p` at `max`, and is 1 above.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Lower threshold.
    pub min: Depth,
    /// Upper threshold.
    pub max: Depth,
    /// Probability at `max`, in (0, 1].
    pub p: f64,
}

/// The same with thresholds of their own for the ports of each rate.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedByRate {
    /// Thresholds, one table for each rate that a port of a switch has.
    pub rates: Vec<RedAtRate>,
}

/// Thresholds of the ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedAtRate {
    /// The ports' rate.
    pub rate: Speed,
    /// Lower threshold.
    pub min: Depth,
    /// Upper threshold.
    pub max: Depth,
    /// Probability at `max`, in (0, 1].
    pub p: f64,
}

/// When marking looks at the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnAt {
    /// As a packet enters, with what it finds.
    #[default]
    Enqueue,
    /// As a packet leaves, with what it leaves behind.
    Dequeue,
}

/// Choice among equal-cost ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalancing {
    /// By a hash of the flow.
    #[default]
    Ecmp,
    /// By a hash of the flow, and by the in-switch algorithm `iofd`, which deflects flows from congested ports and keeps them in
    /// order: as `agent = "iofd"`.
    Iofd,
    /// For each packet anew.
    Spray,
    /// By the flow's own choice, which a trace gives; flows without one choose by a hash.
    Pinned,
    /// By the sender: its packets take all ways in a random order that is drawn anew each round. Control packets take any.
    Permuted,
}

/// Order of what happens at the same picosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// By a hash of seed, node, time and port.
    #[default]
    Seeded,
    /// Lower ports first.
    PortOrder,
    /// Lower ports first, and all before a link whose transmission ends at that time takes its next packet.
    ArrivalsFirst,
}

/// Priority flow control (IEEE 802.1Qbb), which pauses a neighbour before there is no room for its packets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind", transform = also_short)]
pub enum Pfc {
    /// None: what finds no room is dropped. Also written `"off"` or `false`.
    #[default]
    Off,
    /// A neighbour is paused at a fixed number of bytes. `kind` may be left out.
    Static(StaticPfc),
    /// A neighbour is paused at a part of the free memory, as in HPCC's simulator. Also written `"dynamic"`.
    Dynamic(DynamicPfc),
}

/// `"off"`, `false` and `"dynamic"` stand for tables, and a table without `kind` has fixed thresholds.
fn also_short(schema: &mut Schema) {
    also_off(schema);
    super::also(schema, "dynamic");
    let alternatives = schema.get_mut("oneOf").and_then(serde_json::Value::as_array_mut);
    for alternative in alternatives.into_iter().flatten() {
        if alternative.pointer("/properties/kind/const").and_then(serde_json::Value::as_str) == Some("static")
            && let Some(table) = alternative.as_object_mut()
        {
            table.remove("required");
        }
    }
}

macro_rules! pfc {
    ($(#[$doc:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Memory of each port and lossless priority for what still arrives when a pause was decided on:
            /// `"computed"`, a size, or a multiple of the cable's rate and delay such as `"3 rate*delay"`.
            #[serde(default)]
            pub headroom: Headroom,
            /// Lossless priorities. Default: all.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub lossless: Option<Vec<u8>>,
            /// From the arrival of a pause frame to its effect.
            #[serde(default = "super::no_time")]
            pub response_delay: Duration,
            /// Size of a pause frame.
            #[serde(default = "pause_frame")]
            pub frame: Size,
            /// A pause ends after this time unless refreshed. Default: never, until a frame ends it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub pause_time: Option<Duration>,
            /// A pause is refreshed in these intervals. Default: half of `pause_time`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub refresh: Option<Duration>,
            /// Ports that all wait for each other in a circle for so long end the run as a deadlock.
            #[serde(default = "deadlock_after")]
            pub deadlock_after: Duration,
            /// Refuse what could lose packets. With `false`, packets that find no headroom are dropped and counted.
            #[serde(default = "yes")]
            pub strict: bool,
        }

        impl $name {
            /// What both kinds have.
            pub fn common(&self) -> PfcCommon<'_> {
                PfcCommon {
                    headroom: self.headroom,
                    lossless: self.lossless.as_deref(),
                    response_delay: self.response_delay,
                    frame: self.frame,
                    pause_time: self.pause_time,
                    refresh: self.refresh,
                    deadlock_after: self.deadlock_after,
                    strict: self.strict,
                }
            }
        }
    };
}

pfc! {
    /// Fixed thresholds, the same for every port and lossless priority.
    StaticPfc {
        /// Pause at or above so many bytes.
        pub xoff: Depth,
        /// Resume at or below so many bytes. Default: two of the largest frames below `xoff`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub xon: Option<Depth>,
    }
}

pfc! {
    /// Thresholds that follow the free memory.
    DynamicPfc {
        /// Part of the free shared memory that one ingress may hold: a number, or `"by-rate"` for HPCC's rule, 1/8 at
        /// the hosts' rate and twice as much for each doubling of the rate, at most 1.
        #[serde(default)]
        pub alpha: Alpha,
        /// Memory set aside for each port and lossless priority, below the shared one.
        #[serde(default = "reserve")]
        pub reserve: Size,
        /// Resume so much below the threshold.
        #[serde(default = "resume_offset")]
        pub resume_offset: Size,
    }
}

/// The keys that both kinds have.
#[derive(Clone, Copy, Debug)]
pub struct PfcCommon<'a> {
    /// See [`StaticPfc::headroom`].
    pub headroom: Headroom,
    /// See [`StaticPfc::lossless`].
    pub lossless: Option<&'a [u8]>,
    /// See [`StaticPfc::response_delay`].
    pub response_delay: Duration,
    /// See [`StaticPfc::frame`].
    pub frame: Size,
    /// See [`StaticPfc::pause_time`].
    pub pause_time: Option<Duration>,
    /// See [`StaticPfc::refresh`].
    pub refresh: Option<Duration>,
    /// See [`StaticPfc::deadlock_after`].
    pub deadlock_after: Duration,
    /// See [`StaticPfc::strict`].
    pub strict: bool,
}

fn pause_frame() -> Size {
    Size(Bytes::new(64))
}
fn deadlock_after() -> Duration {
    Duration(Time::from_ms(10))
}
fn reserve() -> Size {
    Size(Bytes::new(4096))
}
fn resume_offset() -> Size {
    Size(Bytes::new(3072))
}
fn yes() -> bool {
    true
}

/// Memory for what still arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Headroom {
    /// What is needed.
    #[default]
    Computed,
    /// So much.
    Bytes(Bytes),
    /// A multiple of the cable's rate times its propagation delay.
    RateTimesDelay(f64),
}

const RATE_TIMES_DELAY: &str = "rate*delay";

impl FromStr for Headroom {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.trim() {
            "computed" => Ok(Self::Computed),
            text => match text.strip_suffix(RATE_TIMES_DELAY).map(|factor| factor.trim().parse::<f64>()) {
                Some(Ok(factor)) if (0.0..=1e6).contains(&factor) => Ok(Self::RateTimesDelay(factor)),
                Some(_) => Err(()),
                None => text.parse().map(Self::Bytes).map_err(|_| ()),
            },
        }
    }
}

impl fmt::Display for Headroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computed => f.write_str("computed"),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::RateTimesDelay(factor) => write!(f, "{factor} {RATE_TIMES_DELAY}"),
        }
    }
}

const HEADROOM: &str = "\"computed\", a size such as \"60KB\", or a multiple such as \"3 rate*delay\"";

impl<'de> Deserialize<'de> for Headroom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Headroom;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(HEADROOM)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Headroom, E> {
                text.parse().map_err(|()| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Headroom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Headroom {
    fn schema_name() -> Cow<'static, str> {
        "Headroom".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": HEADROOM })
    }
}

/// Part of the free memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Alpha {
    /// HPCC's rule.
    #[default]
    ByRate,
    /// The same for all ports.
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
            fn visit_str<E: Error>(self, text: &str) -> Result<Alpha, E> {
                match text {
                    "by-rate" => Ok(Alpha::ByRate),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Alpha, E> {
                Ok(Alpha::Fixed(number))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Alpha, E> {
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
