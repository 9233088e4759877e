//! Packet trimming, as configured.

use incast_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Expected, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt};

/// Packet trimming: a data packet that finds its queue full loses its payload; its header goes on, ahead of data.
///
/// Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
/// SIGCOMM 2017 (NDP), sections 3.1 and 3.2; the defaults are those of the paper. Which packets may be trimmed is up to
/// their class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trim {
    /// What may wait in a data queue, that of each priority but 0: packets, or a size. The packet in service does not
    /// count.
    pub queue: Limit,
    /// What may wait in the queue of priority 0, for trimmed headers and control packets: packets, or a size. Default:
    /// as many bytes as two data queues of full packets hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_queue: Option<Limit>,
    /// Which packet loses its payload when a data queue is full.
    pub victim: Victim,
    /// While data waits, so many packets of priority 0 go before each data packet; `"strict"` for all of them.
    #[serde(with = "header_weight")]
    #[schemars(schema_with = "header_weight::schema")]
    pub header_weight: Option<u32>,
    /// A trimmed header that finds its queue full goes back to its sender, once. Otherwise it is dropped.
    pub return_to_sender: bool,
    /// What is left of a trimmed packet, as a frame: `"128B"` is SAI's default. A packet that is not longer keeps its
    /// payload and goes on in the queue of priority 0 (Cumulus Linux 5.19, "Packet Trimming"). Default: the headers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
}

impl Default for Trim {
    fn default() -> Self {
        Self {
            queue: Limit::Packets(8),
            header_queue: None,
            victim: Victim::Either,
            header_weight: Some(10),
            return_to_sender: true,
            size: None,
        }
    }
}

impl Trim {
    /// The limit of the header queue, where full packets have so many bytes.
    pub fn header_limit(&self, full_frame: u64) -> Limit {
        self.header_queue.unwrap_or(Limit::Bytes(match self.queue {
            Limit::Packets(packets) => 2 * u64::from(packets) * full_frame,
            Limit::Bytes(bytes) => bytes.saturating_mul(2),
        }))
    }
}

/// How much may wait in a queue, the packet in service not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// So many frame bytes.
    Bytes(u64),
}

/// Which packet loses its payload when a data queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The packet that arrives.
    Arriving,
    /// The last packet that waits; the one that arrives takes its place.
    Tail,
    /// Either, with probability 1/2.
    #[default]
    Either,
}

fn whole<E: Error>(number: i64, expected: &dyn Expected) -> Result<u32, E> {
    u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), expected))
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrSize;
        impl Visitor<'_> for NumberOrSize {
            type Value = Limit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of packets, or a size such as \"64KB\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Limit, E> {
                whole(number, &self).map(Limit::Packets)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                let size: Result<Bytes, _> = text.parse();
                size.map(|size| Limit::Bytes(size.get())).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(NumberOrSize)
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Packets(packets) => serializer.serialize_u32(packets),
            Self::Bytes(bytes) => serializer.collect_str(&Bytes::new(bytes)),
        }
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
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

/// `header_weight` in a scenario: a number, or `"strict"` for `None`.
mod header_weight {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        struct NumberOrStrict;
        impl Visitor<'_> for NumberOrStrict {
            type Value = Option<u32>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of packets, or \"strict\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Option<u32>, E> {
                whole(number, &self).map(Some)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Option<u32>, E> {
                if text == "strict" { Ok(None) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
            }
        }
        deserializer.deserialize_any(NumberOrStrict)
    }

    pub fn serialize<S: Serializer>(weight: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        match weight {
            Some(packets) => serializer.serialize_u32(*packets),
            None => serializer.serialize_str("strict"),
        }
    }

    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "description": "So many for each of data." },
                { "const": "strict", "description": "All." },
            ],
        })
    }
}
