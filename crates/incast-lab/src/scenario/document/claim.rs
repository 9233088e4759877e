//! `[[paper.claim]]`.

use crate::metrics;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, SeqAccess, Visitor},
};
use std::fmt;

/// What was published.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Numbers to be shown beside the measured ones.
    #[serde(default)]
    pub claim: Vec<Claim>,
}

impl Paper {
    /// Nothing is claimed.
    pub fn is_empty(&self) -> bool {
        self.claim.is_empty()
    }
}

/// The scheme that a ratio is to, or those of which it may be one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub enum Bases {
    /// Name of the scheme.
    One(String),
    /// Names of several.
    Several(Vec<String>),
}

impl Bases {
    /// The names, at least one in what has been checked.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

impl<'de> Deserialize<'de> for Bases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Bases;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a scheme, or a list of names")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Bases, E> {
                Ok(Bases::One(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bases, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = items.next_element()? {
                    names.push(name);
                }
                Ok(Bases::Several(names))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

/// A published number: exactly one of `value`, `at_most`, `at_least`, `range` and `points`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A [metric](metrics.md), such as `fct_us.p99`.
    #[schemars(schema_with = "metric_name")]
    pub metric: String,
    /// Class of the flows, or `all`.
    #[serde(default = "all")]
    pub class: String,
    /// Name of the scheme.
    pub scheme: String,
    /// The numbers are ratios to those of this scheme: its metric divided by that of `scheme`. A list stands for
    /// numbers that were published against one of several schemes without saying which: the claim is about the largest
    /// ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to: Option<Bases>,
    /// The numbers are ratios to what this scheme measures at another grid point, given as in `grid`: how much the
    /// metric grows from there.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub ratio_at: toml::Table,
    /// The numbers are ratios to this other metric of the same scheme and class: `metric` divided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_metric: Option<String>,
    /// The number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// An upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// A lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// A range that was published: its ends, the lower one first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// The number was published as "up to": it is compared with the largest measured one of all grid points that `grid`
    /// leaves open, and of all schemes of a list in `ratio_to`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub up_to: bool,
    /// The paper prints no number: the bound or the range is ours.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ours: bool,
    /// A curve: value of the grid's axis, and number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<Vec<(f64, f64)>>,
    /// Grid point that the number belongs to: paths as in `[grid]` with one value each. Default: all points.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub grid: toml::Table,
    /// Where it is printed, or how it was read off a figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn all() -> String {
    "all".into()
}
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The schema of the name of a metric: those that claims can be about.
pub(super) fn metric_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": metrics::claimable().collect::<Vec<_>>() })
}
