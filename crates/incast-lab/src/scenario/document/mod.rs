//! The scenario file as types: the single source of parser, JSON schema and reference page.

pub mod claim;
pub mod event;
pub mod grid;
pub mod host;
pub mod measure;
pub mod named;
pub mod optional;
pub mod parameters;
pub mod profile;
pub mod scheme;
pub mod short;
pub mod switch;
pub mod table;
pub mod thresholds;
pub mod workload;

use incast_sim::{config::Wire, topology::TopologyConfig};
use incast_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scenario.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "incast scenario")]
pub struct Document {
    /// Name, also of the results folder: letters, digits, `.`, `_`, `-`, `+`.
    pub name: String,
    /// What it shows, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub describe: String,
    /// Paper, table or figure that it follows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Where the defaults of `[wire]`, `host.frames`, `switch.ties`, `switch.ecn_at`, `switch.pfc` and the laws come
    /// from.
    #[serde(default)]
    pub profile: profile::Profile,
    /// Flows arrive from 0 until this time.
    pub duration: Time,
    /// Flows that start earlier are simulated but not counted.
    #[serde(default)]
    pub warmup: Time,
    /// The run ends when every flow is done, and at most this long after `duration`.
    #[serde(default = "default_drain")]
    pub drain: Time,
    /// One run for each seed.
    #[serde(default = "default_seeds")]
    pub seeds: Vec<u64>,
    /// Where the seeds leave open whether a published number holds, their number is doubled at that grid point, until
    /// none is open or there are so many. Not with `--short` nor with `--seeds`. Default: no seeds are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_budget: Option<u32>,
    /// The fabric.
    pub topology: TopologyConfig,
    /// What lies between frames, and how times are rounded.
    #[serde(default)]
    pub wire: Wire,
    /// All switches. `buffer` must be given.
    #[serde(default)]
    pub switch: switch::Switch,
    /// All hosts.
    #[serde(default)]
    pub host: host::Host,
    /// Traffic, one table for each class of flows.
    #[serde(default)]
    pub workload: Vec<workload::Workload>,
    /// What is compared: one table for each congestion control.
    #[serde(default)]
    pub scheme: Vec<scheme::Scheme>,
    /// Paths of keys, each with a list of values; every combination is run.
    #[serde(default, skip_serializing_if = "grid::Axes::is_empty")]
    pub grid: grid::Axes,
    /// Paths of keys, each with a list of values; the lists of one table are of one length and advance together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zip: Vec<grid::Axes>,
    /// What `--short` changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<short::Short>,
    /// Links that go down and up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<event::Event>,
    /// What is sampled.
    #[serde(default)]
    pub measure: measure::Measure,
    /// What the printed comparison shows.
    #[serde(default, skip_serializing_if = "table::Table::is_empty")]
    pub table: table::Table,
    /// Published numbers.
    #[serde(default, skip_serializing_if = "claim::Paper::is_empty")]
    pub paper: claim::Paper,
}

fn default_drain() -> Time {
    Time::from_ms(500)
}
fn default_seeds() -> Vec<u64> {
    vec![1]
}
