//! The configuration of flow control.

use crate::fabric::{
    chip::Chip,
    config::{Ranged, Size},
};
use incast_units::{Bytes, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Unexpected, Visitor},
};
use std::{borrow::Cow, fmt, str::FromStr};

/// Credit-based flow control, as InfiniBand has it (IBA volume 1, section 7.9). Each priority is a virtual lane: a
/// packet is sent only if the other end of the link has advertised room for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Credits {
    /// Buffer of each port and virtual lane, of switches and hosts, in whole blocks of 64 bytes. Default: a link is
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

/// Priority flow control (IEEE 802.1Qbb): a switch pauses a neighbour before it runs out of buffer for its packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Pfc {
    /// When a neighbour is paused.
    pub threshold: Threshold,
    /// Buffer for packets that still arrive then; for each port and lossless priority.
    pub headroom: Headroom,
    /// Lossless priorities, one bit each. Packets of the others are dropped if there is no room.
    pub priorities: u8,
    /// From the arrival of a pause frame to its effect.
    pub response_delay: Time,
    /// Bytes of a pause frame.
    pub frame: u16,
    /// A pause ends after this time unless refreshed; `None` until a frame ends it.
    pub expiry: Option<Expiry>,
    /// A cycle of ports that all wait for each other for this long ends the run; `None` for never.
    pub deadlock_after: Option<Time>,
    /// Refuse what cannot be proven to be lossless. Otherwise packets that find no headroom are dropped and counted.
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
    /// At a share of the free buffer, as in HPCC's simulator: pause when the headroom is in use, or when the bytes
    /// beyond the reserve reach alpha times the buffer that is neither reserved nor headroom nor in use.
    Dynamic {
        /// Alpha.
        alpha: Alpha,
        /// Bytes set aside for each port and priority.
        reserve: u64,
        /// Resume so many bytes below the threshold.
        resume_offset: u64,
    },
}

/// How much of the free buffer one ingress may take.
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
            "description": "Part of the free buffer.",
            "anyOf": [
                { "type": "number", "description": "The same for all ports." },
                { "const": "by-rate", "description": "HPCC's rule." },
            ],
        })
    }
}

/// Buffer of each port and lossless priority for packets that arrive after the decision to pause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Headroom {
    /// As computed: see [`crate::flow_control::pfc::Rules::needed`].
    #[default]
    Computed,
    /// So many bytes.
    Bytes(u64),
    /// A multiple of rate times propagation delay; HPCC's simulator has 3.
    RateTimesDelay(f64),
    /// What a chip's vendor ships or computes, by the cable's rate and delay.
    Chip(Chip),
}

incast_units::written_as_text!(
    Headroom,
    "Headroom",
    "\"computed\", a size such as \"60KB\", a multiple such as \"3 rate*delay\", or that of a chip such as \"tomahawk4\""
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
                None if text.parse::<Chip>().is_ok() => text.parse().map(Self::Chip),
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
            Self::Chip(chip) => chip.fmt(f),
        }
    }
}

/// Pauses that end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// A pause ends after this time.
    pub after: Time,
    /// It is repeated at these intervals.
    pub refresh: Time,
}
