//! `[measure]`.

use incast_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What is sampled besides the flows, which always are.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Queues of egress ports (`ports.parquet`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// Rates of flows (`rates.parquet`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Rows of their own for flows of some sizes, beside those of the classes: `[{ name = "short", upto = "100KB" }]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeRange>,
    /// The scheme that every verdict names, whatever its place. Default: the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Schemes that differ from the best by less than this part are as good in a verdict. Default: `"2%"`.
    #[serde(default, skip_serializing_if = "Indifference::is_default")]
    pub indifferent: Indifference,
    /// Record each drop, mark, timeout and deflection (`events.parquet`).
    #[serde(default)]
    pub traces: bool,
    /// Write the completion times in the format of HPCC's ns-3 simulator, too (`fct.txt`), and with `traces` the pauses
    /// (`pfc.txt`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fct_txt: Option<FctTxt>,
}

/// Below which part a difference does not count, in hundredths: written as `"2%"`, which is the default.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
#[schemars(with = "String")]
pub struct Indifference(f64);

impl Default for Indifference {
    fn default() -> Self {
        Self(2.0)
    }
}

impl Indifference {
    /// As a part of one.
    pub fn part(self) -> f64 {
        self.0 / 100.0
    }
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Serialize for Indifference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", self.0))
    }
}

impl<'de> Deserialize<'de> for Indifference {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for Indifference {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..100.0).contains(percent));
        percent.map(Self).ok_or_else(|| format!("found {text:?}, expected \"0%\" to below \"100%\""))
    }
}

/// Completion times as HPCC's ns-3 simulator writes them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FctTxt {
    /// Added to all starts: the time of its clock that is zero here.
    #[serde(default)]
    pub origin: Time,
}

/// Flows of a class of some sizes: more than `over`, and at most `upto`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeRange {
    /// What their rows have as class.
    pub name: String,
    /// Class of the flows. Default: the only one that has flows of such sizes; of several each has a row of its own, as
    /// `web small` and `incast small`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Smaller flows, and those of this size, do not belong to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Bytes>,
    /// Larger flows do not belong to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upto: Option<Bytes>,
}

impl SizeRange {
    /// A flow of so many bytes belongs to them.
    pub fn contains(&self, bytes: u64) -> bool {
        self.over.is_none_or(|over| bytes > over.get()) && self.upto.is_none_or(|upto| bytes <= upto.get())
    }
}

/// Samples of ports.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// Period.
    pub every: Time,
    /// Ports, each as its node and the node it leads to: `"s0->h0"`; `*` stands for any characters: `"leaf*->spine*"`.
    pub which: Vec<String>,
}

/// Samples of flows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Period.
    pub every: Time,
    /// Which flows.
    #[serde(default)]
    pub flows: Which,
}

/// Which flows are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// Those as large as the smallest flow of a workload of kind `long`; without one, those of at least 1 MB.
    #[default]
    Long,
    /// All.
    All,
}
