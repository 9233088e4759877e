//! `switch.trim`.

use super::optional::Part;
use incast_sim::config::Victim;
use incast_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt};

/// The rules of trimming; the defaults are those of NDP (SIGCOMM 2017).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trim {
    /// What may wait in a data queue, that of each priority but 0: packets, or a size. The packet in service does not count.
    #[serde(default = "eight_packets")]
    pub queue: Room,
    /// What may wait in the queue of priority 0, for trimmed headers and control packets: packets, or a size. Default: as many
    /// bytes as two data queues of full packets hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_queue: Option<Room>,
    /// Who loses its payload when a data queue is full.
    #[serde(default)]
    pub victim: Victim,
    /// While data waits, so many packets of priority 0 go before each data packet; `"strict"` for all of them.
    #[serde(default)]
    pub header_weight: Weight,
    /// A trimmed header that finds its queue full goes back to its sender, once. Otherwise it is dropped.
    #[serde(default = "yes")]
    pub return_to_sender: bool,
}

impl Part for Trim {
    const SCHEMA: &'static str = "Trimming";
    const DESCRIBE: &'static str =
        "Packet trimming: data that finds its queue full loses its payload, and the header goes on.";
    const NONE: &'static str = "None: what finds no room is dropped.";
    const EXAMPLE: &'static str = "{ queue = 8 }";
}

impl Default for Trim {
    fn default() -> Self {
        Self {
            queue: eight_packets(),
            header_queue: None,
            victim: Victim::Either,
            header_weight: Weight::default(),
            return_to_sender: true,
        }
    }
}

/// What a queue holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Room {
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(Bytes),
}

/// Turns of the header queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// So many for each of data.
    Packets(u32),
    /// All.
    Strict,
}

impl Default for Weight {
    fn default() -> Self {
        Self::Packets(10)
    }
}

fn eight_packets() -> Room {
    Room::Packets(8)
}
fn yes() -> bool {
    true
}

fn whole<E: Error>(number: i64, expected: &dyn serde::de::Expected) -> Result<u32, E> {
    u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), expected))
}

impl<'de> Deserialize<'de> for Room {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrSize;
        impl Visitor<'_> for NumberOrSize {
            type Value = Room;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of packets, or a size such as \"64KB\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Room, E> {
                whole(number, &self).map(Room::Packets)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Room, E> {
                let size: Result<Bytes, _> = text.parse();
                size.map(Room::Bytes).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(NumberOrSize)
    }
}

impl Serialize for Room {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Packets(packets) => serializer.serialize_u32(*packets),
            Self::Bytes(bytes) => serializer.collect_str(bytes),
        }
    }
}

impl JsonSchema for Room {
    fn schema_name() -> Cow<'static, str> {
        "Room".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut size = generator.subschema_for::<Bytes>();
        size.insert("description".to_owned(), "So many bytes.".into());
        json_schema!({
            "description": "What a queue holds.",
            "anyOf": [{ "type": "integer", "minimum": 1, "description": "So many packets." }, size],
        })
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrStrict;
        impl Visitor<'_> for NumberOrStrict {
            type Value = Weight;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of packets, or \"strict\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Weight, E> {
                whole(number, &self).map(Weight::Packets)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Weight, E> {
                match text {
                    "strict" => Ok(Weight::Strict),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(NumberOrStrict)
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Packets(packets) => serializer.serialize_u32(*packets),
            Self::Strict => serializer.serialize_str("strict"),
        }
    }
}

impl JsonSchema for Weight {
    fn schema_name() -> Cow<'static, str> {
        "Weight".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Turns of the header queue.",
            "anyOf": [
                { "type": "integer", "minimum": 1, "description": "So many for each of data." },
                { "const": "strict", "description": "All." },
            ],
        })
    }
}
