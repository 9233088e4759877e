//! `[table]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the printed comparison shows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// One line for each scheme with these numbers, in place of one for each class with the usual ones: for scenarios
    /// of many schemes. `incast table` takes them as its default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
}

impl Table {
    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// A number of the flows of a class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Class of the flows, a name of `measure.sizes`, or `all`.
    #[serde(default = "all")]
    pub class: String,
    /// A [metric](metrics.md), such as `slowdown.p99`.
    #[schemars(schema_with = "super::claim::metric_name")]
    pub metric: String,
}

fn all() -> String {
    "all".into()
}
