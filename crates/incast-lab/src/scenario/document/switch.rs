//! `[switch]`.

use super::super::quantity::{Depth, Size, Speed};
use incast_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt};

/// Memory, marking and scheduling of all switches.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Memory: `{ total = "4MB", alpha = 1.0 }` shared with dynamic thresholds, or `{ per_port = "86KB" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Marks: `{ kind = "step", at = "0.2bdp" }`, `{ kind = "red", min, max, p }`,
    /// `{ kind = "red-by-rate", rates = [{ rate, min, max, p }] }`, or `"off"`.
    #[serde(default)]
    pub ecn: Ecn,
    /// The queue is compared with the threshold when a packet enters it or leaves it.
    #[serde(default)]
    pub ecn_at: EcnAt,
    /// Lossless Ethernet; only `false` in this version.
    #[serde(default)]
    pub pfc: Pfc,
    /// Strict priorities of each port, 1 to 8; 0 is the highest.
    #[serde(default = "eight")]
    pub priorities: u8,
    /// How a packet's port is chosen among equal-cost ones.
    #[serde(default)]
    pub load_balancing: LoadBalancing,
    /// Order of packets that reach a switch at the same picosecond, and whether transmissions that end then have ended:
    /// drawn, or lower ports first.
    #[serde(default)]
    pub ties: Ties,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            buffer: None,
            ecn: Ecn::Off,
            ecn_at: EcnAt::Enqueue,
            pfc: Pfc,
            priorities: eight(),
            load_balancing: LoadBalancing::Ecmp,
            ties: Ties::Seeded,
        }
    }
}

fn eight() -> u8 {
    8
}

/// Memory of a switch. Either `total` or `per_port`.
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
    /// For each packet anew.
    Spray,
    /// By the flow's own choice, which a trace gives; flows without one choose by a hash.
    Pinned,
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

/// Priority flow control: off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pfc;

const PFC_LATER: &str = "lossless fabrics come with a later version, allowed is false";

impl<'de> Deserialize<'de> for Pfc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyFalse;
        impl<'de> Visitor<'de> for OnlyFalse {
            type Value = Pfc;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("false")
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Pfc, E> {
                if flag { Err(E::custom(format!("found true: {PFC_LATER}"))) } else { Ok(Pfc) }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Pfc, E> {
                match text {
                    "off" => Ok(Pfc),
                    "dynamic" | "static" => Err(E::custom(format!("found \"{text}\": {PFC_LATER}"))),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pfc, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Err(A::Error::custom(format!("found a table: {PFC_LATER}")))
            }
        }
        deserializer.deserialize_any(OnlyFalse)
    }
}

impl Serialize for Pfc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl JsonSchema for Pfc {
    fn schema_name() -> Cow<'static, str> {
        "Pfc".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": false })
    }
}
