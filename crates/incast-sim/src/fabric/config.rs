//! The configuration of links and buffers.

use crate::packet::GAP;
use incast_units::{Bytes, Rate, Rounding, Time};
use schemars::{JsonSchema, Schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Unexpected},
};
use std::{fmt, str::FromStr};

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
pub(crate) struct Ranged<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Ranged<LEAST, MOST> {
    pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
        let size = Bytes::deserialize(deserializer)?;
        let fits = Some(size.get()).filter(|bytes| (LEAST..=MOST).contains(bytes));
        fits.and_then(|bytes| T::try_from(bytes).ok()).ok_or_else(|| {
            let allowed = format!("{LEAST}B to {MOST}B");
            D::Error::invalid_value(Unexpected::Other(&size.to_string()), &allowed.as_str())
        })
    }

    pub fn serialize<S: Serializer, T: Copy + Into<u64>>(bytes: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Bytes::new((*bytes).into()))
    }
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

/// Buffer of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// One buffer for all ports with dynamic thresholds (Choudhury and Hahne 1998): a queue may grow while its share
    /// of the pool is below `alpha` times what is free of the pool, plus its own `reserve`.
    Shared {
        /// Bytes of the buffer.
        total: u64,
        /// Numerator and denominator of alpha.
        alpha: (u32, u32),
        /// Bytes set aside for each queue.
        reserve: u64,
    },
    /// Each port has its own buffer.
    PerPort {
        /// Bytes of a port, all priorities together.
        bytes: u64,
    },
    /// Each port has its own buffer, of so many packets whatever their size.
    PerPortPackets {
        /// Packets that may wait at a port, all priorities together.
        packets: u32,
    },
    /// No limit.
    Unlimited,
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
