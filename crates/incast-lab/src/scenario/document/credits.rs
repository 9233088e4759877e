//! `switch.credits`.

use super::super::quantity::{Duration, Size};
use incast_units::{Bytes, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};
use std::{borrow::Cow, fmt};

/// Credit-based flow control of all links.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FlowControl {
    /// None.
    #[default]
    Off,
    /// A packet is sent only if the other end of the link has said that it has room for it.
    On(Credits),
}

/// Credit-based flow control, as InfiniBand has it. Each priority is a virtual lane.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credits {
    /// Memory of each port and virtual lane, of switches and hosts, in whole blocks of 64 bytes. Default: a link is never idle for
    /// lack of credits; `incast check` says how much that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
    /// So much that has become free is told of together; less where the sender knows of too little for a full packet.
    /// Default: a quarter of `buffer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Size>,
    /// Size of a flow control packet.
    #[serde(default = "frame")]
    pub frame: Size,
    /// On links that lose packets: who misses credits asks for them after this time. Default: 65,536 symbol times of a link
    /// of four lanes, 21us at 100Gbps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Duration>,
    /// Ports that all wait for each other in a circle for so long end the run as a deadlock.
    #[serde(default = "deadlock_after")]
    pub deadlock_after: Duration,
}

impl Default for Credits {
    fn default() -> Self {
        Self { buffer: None, update: None, frame: frame(), refresh: None, deadlock_after: deadlock_after() }
    }
}

fn frame() -> Size {
    Size(Bytes::new(6))
}
fn deadlock_after() -> Duration {
    Duration(Time::from_ms(10))
}

impl<'de> Deserialize<'de> for FlowControl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = FlowControl;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("false, \"off\", true for the defaults, or a table such as { buffer = \"64KB\" }")
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<FlowControl, E> {
                Ok(if flag { FlowControl::On(Credits::default()) } else { FlowControl::Off })
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<FlowControl, E> {
                match text {
                    "off" => Ok(FlowControl::Off),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FlowControl, A::Error> {
                Credits::deserialize(MapAccessDeserializer::new(map)).map(FlowControl::On)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Serialize for FlowControl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On(credits) => credits.serialize(serializer),
        }
    }
}

impl JsonSchema for FlowControl {
    fn schema_name() -> Cow<'static, str> {
        "FlowControl".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut table = generator.subschema_for::<Credits>();
        table.insert("description".to_owned(), "These rules.".into());
        json_schema!({
            "description": "Credit-based flow control of all links, as InfiniBand has it.",
            "anyOf": [
                { "const": false, "description": "None." },
                { "const": "off", "description": "The same." },
                { "const": true, "description": "The defaults." },
                table,
            ],
        })
    }
}
