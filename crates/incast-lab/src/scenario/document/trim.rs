//! `switch.trim`.

use super::super::quantity::Size;
use incast_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};
use std::{borrow::Cow, fmt};

/// Packet trimming: data that finds its queue full loses its payload, and the header goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Trimming {
    /// None: what finds no room is dropped.
    #[default]
    Off,
    /// Packets of laws that allow it are trimmed.
    On(Trim),
}

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

/// Who loses its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The packet that arrives.
    Arriving,
    /// The last packet that waits; what arrives takes its place.
    Tail,
    /// Either, with probability 1/2.
    #[default]
    Either,
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

impl<'de> Deserialize<'de> for Trimming {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Trimming;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("false, \"off\", true for the defaults, or a table such as { queue = 8 }")
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Trimming, E> {
                Ok(if flag { Trimming::On(Trim::default()) } else { Trimming::Off })
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Trimming, E> {
                match text {
                    "off" => Ok(Trimming::Off),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Trimming, A::Error> {
                Trim::deserialize(MapAccessDeserializer::new(map)).map(Trimming::On)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Serialize for Trimming {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On(trim) => trim.serialize(serializer),
        }
    }
}

impl JsonSchema for Trimming {
    fn schema_name() -> Cow<'static, str> {
        "Trimming".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut table = generator.subschema_for::<Trim>();
        table.insert("description".to_owned(), "These rules.".into());
        json_schema!({
            "description": "Packet trimming: data that finds its queue full loses its payload, and the header goes on.",
            "anyOf": [
                { "const": false, "description": "None: what finds no room is dropped." },
                { "const": "off", "description": "The same." },
                { "const": true, "description": "The defaults." },
                table,
            ],
        })
    }
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
                let size: Result<Size, _> = text.parse();
                size.map(|size| Room::Bytes(size.0))
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
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
        let mut size = generator.subschema_for::<Size>();
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
