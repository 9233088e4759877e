//! `[[workload]]`.

use crate::workload::{distribution::Interpolation, spacing::Spacing};
use incast_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{collections::BTreeMap, fmt};

/// Traffic of one class, by kind.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub enum Workload {
    /// Flows arrive at each source at random, independently of one another.
    Poisson(Poisson),
    /// Many hosts send to one at the same time, again and again.
    Incast(Incast),
    /// Each host sends one flow to another host, and each receives one.
    Permutation(Permutation),
    /// Each host sends one flow to each other host.
    AllToAll(AllToAll),
    /// Flows that last as long as the run.
    Long(Long),
    /// Flows from a file.
    Trace(Trace),
    /// Clients send requests and wait for the responses.
    Rpc(Rpc),
}

impl Workload {
    /// Name of the class, or of the kind where none is given.
    pub fn class(&self) -> &str {
        let (class, kind) = match self {
            Self::Poisson(workload) => (&workload.class, "poisson"),
            Self::Incast(workload) => (&workload.class, "incast"),
            Self::Permutation(workload) => (&workload.class, "permutation"),
            Self::AllToAll(workload) => (&workload.class, "all-to-all"),
            Self::Long(workload) => (&workload.class, "long"),
            Self::Trace(workload) => (&workload.class, "trace"),
            Self::Rpc(workload) => (&workload.class, "rpc"),
        };
        class.as_deref().unwrap_or(kind)
    }
}

/// Independent Poisson arrivals at each source; destinations are uniform among the other hosts.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Name of the class. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Flow sizes.
    pub sizes: Sizes,
    /// Payload bytes of the flows over the capacity that `load_of` names, above 0 and at most 1.
    pub load: f64,
    /// What `load` is a part of.
    #[serde(default)]
    pub load_of: LoadOf,
    /// Sources: host names and ranges such as `"h0..h15"`. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Hosts>,
    /// Destinations. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Hosts>,
    /// Allow more than links can carry.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overload: bool,
}

/// What a load is a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// Each source's own link.
    #[default]
    Host,
    /// What the fabric carries between the first and the second half of the hosts; only traffic between them counts.
    Bisection,
    /// The link that this class loads most, with traffic spread evenly over equal-cost paths.
    Bottleneck,
}

/// `fan_in` hosts send `size` each to one receiver. Each group is one request.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// Name of the class. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Number of senders, drawn anew for each group.
    pub fan_in: u32,
    /// Bytes of each flow.
    pub size: Bytes,
    /// Time between groups; the first one is at `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// When the first group starts.
    #[serde(default)]
    pub start: Time,
    /// Flows start before this time. Default: the duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Instead of `every`: payload over the links of all receivers together; 0 for no groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Each flow starts up to this much after its group.
    #[serde(default)]
    pub jitter: Time,
    /// The application sends the messages of a group one after the other: each sender, in a random order, starts when
    /// the one before it has had the time of its message on the receiver's link (`"link"`, payload alone), or at a rate
    /// such as `"50Gbps"`; `"none"`, the default: all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stagger: Option<Spacing>,
    /// `"rotate"` (each host in turn), `"random"`, or a host.
    #[serde(default = "rotate")]
    pub receiver: String,
    /// Senders. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Hosts>,
    /// Allow more than the receivers' links can carry.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overload: bool,
}

/// One flow from each host of a group to another one, each receiving one.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// Name of the class. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Bytes of each flow.
    pub size: Bytes,
    /// When all of them start.
    #[serde(default)]
    pub start: Time,
    /// Hosts that take part. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Hosts>,
}

/// One flow from each host of a group to each other one.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// Name of the class. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Bytes of each flow.
    pub size: Bytes,
    /// When all of them start.
    #[serde(default)]
    pub start: Time,
    /// Hosts that take part. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Hosts>,
}

/// Long flows: either `flows` pairs drawn at random, or `pairs`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Long {
    /// Name of the class. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Number of flows between random hosts; no host sends or receives a second one before all have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Sender and receiver of each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Vec<(String, String)>>,
    /// Bytes of each flow. Default: more than its link can send until the run's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// When the first one starts.
    #[serde(default)]
    pub start: Time,
    /// Time between the starts of one flow and the next.
    #[serde(default)]
    pub stagger: Time,
}

/// Flows from a CSV or Parquet file with the columns `start`, `src`, `dst`, `bytes` and optionally `class`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Name of the class of flows that name none. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Path, relative to the scenario; `.parquet` is read as Parquet, all else as CSV.
    pub path: String,
    /// From when times are counted.
    #[serde(default, skip_serializing_if = "Origin::is_run")]
    pub origin: Origin,
    /// Hosts by the addresses that the file has in their place: `{ "10.0.0.1" = "h0" }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, String>,
    /// The same as a file: CSV with the columns `address` and `host`. Its path is relative to the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_file: Option<String>,
}

/// The time from which a trace counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The start of the run.
    #[default]
    Run,
    /// That of its first flow. The file may be a flow log as `incast workload fit` reads it: clock times, a collector's names.
    First,
}

impl Origin {
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

/// A closed loop: each client keeps `outstanding` requests open; each is answered by the server it went to.
///
/// Responses are of the class `class`, requests of the class `class-request`. Each pair is one request.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rpc {
    /// Name of the class. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Clients. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Hosts>,
    /// Servers, drawn uniformly for each request. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Hosts>,
    /// Requests that a client keeps open.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Sizes of requests.
    pub request: Sizes,
    /// Sizes of responses.
    pub response: Sizes,
    /// Mean of the exponentially distributed pause between a response and the next request; also before the first.
    #[serde(default)]
    pub think: Time,
}

/// Hosts by name, or ranges of them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub enum Hosts {
    /// One name or range: `"h3"`, `"h0..h15"`.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Hosts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a host, a range such as \"h0..h15\", or a list of them")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Hosts, E> {
                Ok(Hosts::One(text.to_owned()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Hosts, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = items.next_element()? {
                    names.push(name);
                }
                Ok(Hosts::Several(names))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

/// A distribution of flow sizes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub enum Sizes {
    /// A bundled distribution, or the path of a table relative to the scenario.
    Named(String),
    /// A distribution spelled out.
    Spelled(Spelled),
}

/// Exactly one of `fixed`, `lognormal` and `file`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spelled {
    /// Every flow has this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Bytes>,
    /// The logarithm of the size is normally distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lognormal: Option<Lognormal>,
    /// A bundled distribution, or the path of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// With `file`: sizes between the points, or only those of the points. Default: linear, unless the file has step
    /// sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<Interpolation>,
    /// Larger flows are cut to this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
}

/// A log-normal distribution: `sigma` and one of `mean` and `median`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lognormal {
    /// Mean size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Bytes>,
    /// Median size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Bytes>,
    /// Standard deviation of the natural logarithm of the size.
    pub sigma: f64,
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Sizes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "the name of a distribution, the path of its table, or a table such as { fixed = \"20KB\" }",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Sizes, E> {
                Ok(Sizes::Named(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                Spelled::deserialize(MapAccessDeserializer::new(map)).map(Sizes::Spelled)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
fn rotate() -> String {
    "rotate".into()
}
fn one() -> u32 {
    1
}
