//! `switch.scheduler`.

use incast_sim::config::also;
use incast_units::Bytes;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// Which queue of a port sends next.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind", transform = also_strict)]
pub enum Scheduler {
    /// The highest priority. Also written `"strict"`.
    #[default]
    Strict,
    /// Deficit weighted round robin of all queues.
    Dwrr(Dwrr),
    /// The highest priorities are strict, before deficit weighted round robin of the others.
    StrictOverDwrr(StrictOverDwrr),
}

/// `"strict"` stands for the table `{ kind = "strict" }`.
fn also_strict(schema: &mut Schema) {
    also(schema, "strict");
}

/// Deficit weighted round robin (M. Shreedhar and G. Varghese, IEEE/ACM Transactions on Networking 1996).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dwrr {
    /// The weight of each priority, the highest first.
    pub weights: Vec<u16>,
    /// Bytes that a visit of a queue adds for each unit of its weight. Default: one full frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Bytes>,
}

/// Strict priorities over deficit weighted round robin.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrictOverDwrr {
    /// So many of the highest priorities are strict.
    #[serde(default = "super::switch::one")]
    pub strict: u8,
    /// The weight of each other priority, the highest first.
    pub weights: Vec<u16>,
    /// Bytes that a visit of a queue adds for each unit of its weight. Default: one full frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Bytes>,
}
