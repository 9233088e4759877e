//! `profile` and `[wire]`: how frames lie on links.

use incast_units::{Bytes, Rounding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose habits defaults follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The standards: Ethernet's preamble and gap, the protocols' headers, exact times.
    #[default]
    Faithful,
    /// The ns-3 simulators that descend from HPCC's: whole nanoseconds, frames without preamble and gap, 48 bytes of headers
    /// and acknowledgements of 60, in-band telemetry on top; their order of ties, marks as packets leave, their flow control,
    /// and each law's profile of that name.
    HpccLineage,
}

/// How frames lie on all links.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Bytes on a link that belong to no frame, 0 to 1,000. Default: 20, Ethernet's preamble and gap; 0 with `profile = "hpcc-lineage"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Bytes>,
    /// What becomes of fractions of transmission times. Default: `"exact"`; `"whole-ns"` with `profile = "hpcc-lineage"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,
}
