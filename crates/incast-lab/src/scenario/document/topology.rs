//! `[topology]`.

use super::super::quantity::{Duration, Speed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fabric, by kind.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub enum Topology {
    /// All hosts on one switch.
    SingleSwitch(SingleSwitch),
    /// Two switches with hosts, joined by one link.
    Dumbbell(Dumbbell),
    /// Two tiers: every leaf is linked to every spine.
    LeafSpine(LeafSpine),
    /// Three tiers of equal switches with `k` ports: k³/4 hosts.
    FatTree(FatTree),
    /// Three tiers with free numbers.
    Clos3(Clos3),
    /// Switches in a row, each with hosts.
    Chain(Line),
    /// Switches in a circle, each with hosts.
    Ring(Line),
    /// Nodes and links from a file.
    File(File),
}

/// A full-duplex link.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Rate in each direction.
    pub rate: Speed,
    /// Propagation delay.
    pub delay: Duration,
    /// Probability that a packet is lost on the way, in [0, 1).
    #[serde(default, skip_serializing_if = "lossless")]
    pub loss: f64,
}

fn lossless(loss: &f64) -> bool {
    *loss == 0.0
}

/// Hosts `h0`…, switch `s0`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleSwitch {
    /// Number of hosts.
    pub hosts: u32,
    /// Each host's link.
    pub link: Link,
}

/// Hosts `h0`… on the left switch `s0`, then those on the right switch `s1`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on the left.
    pub left: u32,
    /// Hosts on the right.
    pub right: u32,
    /// Each host's link.
    pub host_link: Link,
    /// The link between the switches.
    pub bottleneck: Link,
}

/// Hosts `h0`… leaf by leaf, switches `leaf0`…, `spine0`….
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Switches with hosts.
    pub leaves: u32,
    /// Switches above them.
    pub spines: u32,
    /// Hosts of each leaf.
    pub hosts_per_leaf: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between leaves and spines.
    pub fabric_link: Link,
}

/// Hosts `h0`… edge by edge, switches `edge0`…, `agg0`…, `core0`….
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch, an even number.
    pub k: u32,
    /// Every link.
    pub link: Link,
}

/// Hosts `h0`… ToR by ToR, switches `tor0`…, `agg0`…, `core0`….
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clos3 {
    /// Number of pods.
    pub pods: u32,
    /// Top-of-rack switches of a pod.
    pub tors_per_pod: u32,
    /// Aggregation switches of a pod; each is linked to every ToR of the pod.
    pub aggs_per_pod: u32,
    /// Core switches.
    pub cores: u32,
    /// Hosts of a ToR.
    pub hosts_per_tor: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between ToRs and aggregation switches.
    pub tor_agg_link: Link,
    /// Links between aggregation and core switches.
    pub agg_core_link: Link,
}

/// Hosts `h0`… switch by switch, switches `s0`….
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Number of switches.
    pub switches: u32,
    /// Hosts of each.
    pub hosts_per_switch: u32,
    /// Each host's link.
    pub host_link: Link,
    /// Links between neighbouring switches.
    pub fabric_link: Link,
}

/// Lines `host NAME`, `switch NAME`, `link A B RATE DELAY [LOSS]`, `route SWITCH HOST NEXT[,NEXT…]`, `#` comments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path, relative to the scenario.
    pub path: String,
}
