//! `[short]`.

use super::grid::Axes;
use incast_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The short form of a scenario whose full form takes long, run with `--short`. What is given here replaces the value
/// of the same name of the file; everything else stays.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Short {
    /// Flows arrive from 0 until this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Flows that start earlier are simulated but not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Time>,
    /// The run ends at most this long after `duration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Time>,
    /// One run for each seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Vec<u64>>,
    /// Replaces `[grid]`. Claims about grid points that the short form does not have are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Axes>,
}
