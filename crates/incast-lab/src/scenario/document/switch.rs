//! `[switch]`.

use super::{
    named::Agent,
    optional::{Optional, Part},
    thresholds::SwitchProfile,
};
use incast_sim::config::{
    Alpha, Chip, Credits, Ecn, Headroom, MarkAt, NotEct, Scheduling, Size, Ties, Trim, also, also_off,
};
use incast_units::{Bytes, Time};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// Buffer, marking and scheduling of all switches.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    /// The switches' chip: its buffer is that of `buffer` where that has no size, and its ports cannot be faster together
    /// than it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chip: Option<Chip>,
    /// Thresholds of marks as they are published or shipped: `ecn` then is the profile's. Refused at ports of rates that its source
    /// does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<SwitchProfile>,
    /// Buffer: `{ total = "4MB", alpha = 1.0 }` shared with dynamic thresholds, `{ per_port = "86KB" }`, or
    /// `{ per_port_packets = 57 }`. With `trim` it may be left out: then the limits of the queues are all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Marks: `{ kind = "step", at = "0.2bdp" }`, `{ kind = "red", min, max, p }`,
    /// `{ kind = "red-by-rate", rates = [{ rate, min, max, p }] }`, or `"off"`.
    pub ecn: Ecn,
    /// The queue is compared with the threshold when a packet enters it or leaves it. `"dequeue"` with
    /// `profile = "hpcc-lineage"`.
    pub ecn_at: MarkAt,
    /// What becomes of packets that are not ECN-capable (data of laws without ECN, and control packets) where others
    /// would be marked: they `"pass"`, or the switch `"drop"`s them, as RED of Linux and WRED of switches do, but for control
    /// packets of DCTCP and Marimo, in which Linux sets ECT. Traffic with and without ECN shares a queue only with `"drop"`.
    pub not_ect: NotEct,
    /// Lossless Ethernet: `"dynamic"`, `{ kind = "dynamic", … }`, `{ xoff = "320KB", xon = "318KB" }`, or `false`. With
    /// `profile = "hpcc-lineage"` and a shared buffer: the peer's dynamic one.
    pub pfc: Pfc,
    /// Credit-based flow control, as InfiniBand has it: `true`, a table such as `{ buffer = "64KB" }`, or `false`. Not
    /// together with `pfc` or `trim`. With it `buffer` may be left out: then what credits stand for is all there is.
    pub credits: Optional<Credits>,
    /// Packet trimming: `true` for NDP's defaults, a table such as `{ queue = 8, victim = "either" }`, or `false`. Not
    /// together with `pfc` or `agent`.
    pub trim: Optional<Trim>,
    /// In-switch algorithm: its name, `{ kind, … }` with its parameters, or `"none"`.
    pub agent: Agent,
    /// Queues of each port, 1 to 8: priorities of which 0 is the highest, or with `virtual_channels` so many for each
    /// priority.
    pub priorities: u8,
    /// Which queue of a port sends next: `"strict"`, `{ kind = "dwrr", weights = [4, 2, …] }` with a weight for each
    /// priority, or `{ kind = "strict-over-dwrr", strict = 1, weights = […] }` with a weight for each other one.
    /// Deficit round robin does not go together with `virtual_channels`, nor with a `trim.header_weight` other than
    /// `"strict"`.
    pub scheduler: Scheduling,
    /// Virtual channels of each priority, which `pfc` pauses apart: packets change to the next one where their path
    /// goes up after it has come down, so that routes with cycles, those of a ring, cannot lock up. Schemes have
    /// `priorities` / `virtual_channels` priorities.
    pub virtual_channels: u8,
    /// How a packet's port is chosen among equal-cost ones.
    pub load_balancing: LoadBalancing,
    /// Order of packets that reach a switch at the same picosecond, and whether transmissions that end then have ended:
    /// drawn, or lower ports first. `"arrivals-first"` with `profile = "hpcc-lineage"`.
    pub ties: Ties,
    /// Switches that differ, a table for each kind. Of tables that match the same switch, what later ones give counts. They
    /// change what `[switch]` and the scheme's `switch` come to; a scheme that has the list itself has it in place of
    /// `[switch]`'s.
    #[serde(rename = "override", skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
}

/// What some switches have of their own; every other key is as elsewhere, within `buffer` and `pfc`, too. What must be one
/// for the fabric is not among the keys: flow control itself, priorities, schedulers, trimming, agents, load balancing.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SwitchOverride")]
pub struct Override {
    /// Which switches: a pattern on their names such as `"spine*"`; `"edge"` for those with hosts, `"fabric"` for those
    /// without.
    pub at: String,
    /// See `switch.chip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<Chip>,
    /// See `switch.profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<SwitchProfile>,
    /// Keys of `switch.buffer`; with another kind of buffer none of its keys are as elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// See `switch.ecn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Ecn>,
    /// See `switch.ecn_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_at: Option<MarkAt>,
    /// See `switch.not_ect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ect: Option<NotEct>,
    /// Thresholds of the kind that `switch.pfc` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfc: Option<OwnPfc>,
}

/// Thresholds of priority flow control at some switches.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PfcOverride")]
pub struct OwnPfc {
    /// Fixed thresholds: pause at or above so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xoff: Option<Size>,
    /// Fixed thresholds: resume at or below so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon: Option<Size>,
    /// Dynamic thresholds: part of the free shared buffer that one ingress may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Alpha>,
    /// Dynamic thresholds: buffer set aside for each port and lossless priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Bytes>,
    /// Dynamic thresholds: resume so much below the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_offset: Option<Bytes>,
    /// Buffer for what still arrives when a pause was decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            chip: None,
            profile: None,
            buffer: None,
            ecn: Ecn::Off,
            ecn_at: MarkAt::Enqueue,
            not_ect: NotEct::Pass,
            pfc: Pfc::Off,
            credits: Optional(None),
            trim: Optional(None),
            agent: Agent::default(),
            priorities: 8,
            scheduler: Scheduling::Strict,
            virtual_channels: 1,
            load_balancing: LoadBalancing::Ecmp,
            ties: Ties::Seeded,
            overrides: Vec::new(),
        }
    }
}

impl Part for Credits {
    const SCHEMA: &'static str = "FlowControl";
    const DESCRIBE: &'static str = "Credit-based flow control of all links, as InfiniBand has it.";
    const NONE: &'static str = "None.";
    const EXAMPLE: &'static str = "{ buffer = \"64KB\" }";
}

impl Part for Trim {
    const SCHEMA: &'static str = "Trimming";
    const DESCRIBE: &'static str =
        "Packet trimming: data that finds its queue full loses its payload, and the header goes on.";
    const NONE: &'static str = "None: what finds no room is dropped.";
    const EXAMPLE: &'static str = "{ queue = 8 }";
}

/// Buffer of a switch. One of `total`, `per_port` and `per_port_packets`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Buffer {
    /// One buffer for all ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Bytes>,
    /// With `total`: a queue may grow while it is below `alpha` times the free buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1.0))]
    pub alpha: Option<f64>,
    /// With `total`: buffer set aside for each queue of each port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0B"))]
    pub reserve: Option<Bytes>,
    /// Each port has its own buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_port: Option<Bytes>,
    /// Each port has its own buffer, of so many packets whatever their size; the packet in service does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_port_packets: Option<u32>,
}

impl Buffer {
    /// The shared buffer's alpha.
    pub fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(1.0)
    }
    /// The shared buffer's reserve.
    pub fn reserve(&self) -> Bytes {
        self.reserve.unwrap_or(Bytes::ZERO)
    }
}

/// Choice among equal-cost ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalancing {
    /// By a hash of the flow.
    #[default]
    Ecmp,
    /// By a hash of the flow, and by the in-switch algorithm `iofd`, which deflects flows from congested ports and
    /// keeps them in order: as `agent = "iofd"`.
    Iofd,
    /// For each packet anew.
    Spray,
    /// By the flow's own choice of path, which a trace gives; flows without one choose by a hash.
    SourceRouted,
    /// By the sender: per-packet spraying over a permutation of all paths, drawn anew each round. Control packets take
    /// any path.
    SprayPermutation,
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
    /// A neighbour is paused at a part of the free buffer, as in HPCC's simulator. Also written `"dynamic"`.
    Dynamic(DynamicPfc),
}

/// `"off"`, `false` and `"dynamic"` stand for tables, and a table without `kind` has fixed thresholds.
fn also_short(schema: &mut Schema) {
    also_off(schema);
    also(schema, "dynamic");
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
            /// Buffer of each port and lossless priority for what still arrives when a pause was decided on:
            /// `"computed"`, a size, a multiple of the cable's rate and delay such as `"3 rate*delay"`, or the name of a
            /// chip for what its vendor ships or computes.
            #[serde(default)]
            pub headroom: Headroom,
            /// Lossless priorities. Default: all.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub lossless: Option<Vec<u8>>,
            /// From the arrival of a pause frame to its effect.
            #[serde(default)]
            pub response_delay: Time,
            /// Size of a pause frame.
            #[serde(default = "pause_frame")]
            pub frame: Bytes,
            /// A pause ends after this time unless refreshed. Default: never, until a frame ends it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub pause_time: Option<Time>,
            /// A pause is refreshed in these intervals. Default: half of `pause_time`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub refresh: Option<Time>,
            /// Ports that all wait for each other in a cycle for this long end the run as a deadlock.
            #[serde(default = "deadlock_after")]
            pub deadlock_after: Time,
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
        pub xoff: Size,
        /// Resume at or below so many bytes. Default: two of the largest frames below `xoff`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub xon: Option<Size>,
    }
}

pfc! {
    /// Thresholds that follow the free buffer.
    DynamicPfc {
        /// Part of the free shared buffer that one ingress may hold: a number, or `"by-rate"` for HPCC's rule, 1/8 at
        /// the hosts' rate and twice as much for each doubling of the rate, at most 1.
        #[serde(default)]
        pub alpha: Alpha,
        /// Buffer set aside for each port and lossless priority, below the shared one.
        #[serde(default = "reserve")]
        pub reserve: Bytes,
        /// Resume so much below the threshold.
        #[serde(default = "resume_offset")]
        pub resume_offset: Bytes,
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
    pub response_delay: Time,
    /// See [`StaticPfc::frame`].
    pub frame: Bytes,
    /// See [`StaticPfc::pause_time`].
    pub pause_time: Option<Time>,
    /// See [`StaticPfc::refresh`].
    pub refresh: Option<Time>,
    /// See [`StaticPfc::deadlock_after`].
    pub deadlock_after: Time,
    /// See [`StaticPfc::strict`].
    pub strict: bool,
}

fn pause_frame() -> Bytes {
    Bytes::new(64)
}
fn deadlock_after() -> Time {
    Time::from_ms(10)
}
fn reserve() -> Bytes {
    Bytes::new(4096)
}
fn resume_offset() -> Bytes {
    Bytes::new(3072)
}
fn yes() -> bool {
    true
}
