//! `[[event]]`.

use incast_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link goes down or comes up: one of `link_down` and `link_up`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When.
    pub at: Time,
    /// The link that goes down, as its two ends: `"leaf0-spine1"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_down: Option<String>,
    /// The link that comes up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_up: Option<String>,
}
