//! `profile` at the top of a scenario: defaults that are not ours.
//!
//! Those of `host.frames` and of laws depend on the law: the resolution of schemes has them. Those of `[switch]` and
//! `[wire]` are written into the document where it has no value.

use crate::scenario::tree::{
    node::{Node, Value},
    place::Origin,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the defaults come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The standards: Ethernet's preamble and gap, the protocols' headers, exact times.
    #[default]
    Standard,
    /// The ns-3 simulators that descend from HPCC's: whole nanoseconds, frames without preamble and gap, 48 bytes of
    /// headers and acknowledgements of 60, in-band telemetry on top; their order of ties, marks as packets leave, gaps of
    /// paced packets from when they were sent, no retransmission timer that a pause could set off (100 ms, as they have
    /// none), their flow control, and each law's profile of that name.
    HpccLineage,
}

/// The name of the ns-3 simulators that descend from HPCC's: of the whole and of each law's own `profile`.
pub const HPCC_LINEAGE: &str = "hpcc-lineage";

/// The peer's priority flow control: its thresholds and its 43-byte frames. It takes buffer that is too small.
pub const HPCC_PFC: &str = "{ kind = \"dynamic\", alpha = \"by-rate\", reserve = \"4KiB\", resume_offset = \"3KiB\", \
                            headroom = \"3 rate*delay\", frame = \"43B\", strict = false }";

/// Fills in the profile's values of `[switch]`, `[wire]` and `[host]`; errors in them point to the line of the profile.
pub fn fill(root: &mut Node) {
    let Some(profile) = root.entries().iter().find(|entry| entry.key == "profile") else { return };
    if !matches!(&profile.node.value, Value::Text(name) if name == HPCC_LINEAGE) {
        return;
    }
    let origin = profile.origin;
    let text = |text: &str| Node { origin, value: Value::Text(text.to_owned()) };
    root.insert_default("wire", Node { origin, value: Value::Table(Vec::new()) });
    if let Some(wire) = root.get_mut("wire") {
        wire.insert_default("gap", text("0B"));
        wire.insert_default("rounding", text("whole-ns"));
    }
    root.insert_default("host", Node { origin, value: Value::Table(Vec::new()) });
    if let Some(host) = root.get_mut("host") {
        host.insert_default("pace_credit", text("none"));
        host.insert_default("rto_min", text("100ms"));
    }
    root.insert_default("switch", Node { origin, value: Value::Table(Vec::new()) });
    let Some(switch) = root.get_mut("switch") else { return };
    // Buffer of single ports is not shared, which flow control needs.
    let is_shared = switch
        .get("buffer")
        .is_none_or(|buffer| ["per_port", "per_port_packets"].into_iter().all(|key| buffer.get(key).is_none()));
    switch.insert_default("ties", text("arrivals-first"));
    switch.insert_default("ecn_at", text("dequeue"));
    if is_shared && let Some(pfc) = flow_control(origin) {
        switch.insert_default("pfc", pfc);
    }
}

fn flow_control(origin: Origin) -> Option<Node> {
    Node::parse_value(HPCC_PFC, origin).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Node {
        let mut root = Node::parse(text).expect("TOML");
        fill(&mut root);
        root
    }

    #[test]
    fn only_what_is_missing_is_filled_in() {
        let root = filled("profile = \"hpcc-lineage\"\n[switch]\nties = \"seeded\"\nbuffer = { total = \"1MB\" }");
        let switch = root.get("switch").expect("a table");
        assert_eq!((switch.text("ties"), switch.text("ecn_at")), (Some("seeded"), Some("dequeue")));
        assert_eq!(switch.get("pfc").and_then(|pfc| pfc.text("frame")), Some("43B"));
        assert_eq!(filled("profile = \"hpcc-lineage\"").get("switch").map(|switch| switch.entries().len()), Some(3));
        let per_port = filled("profile = \"hpcc-lineage\"\n[switch]\nbuffer = { per_port = \"1MB\" }");
        assert!(per_port.get("switch").is_some_and(|switch| switch.get("pfc").is_none()));
        for other in ["profile = \"standard\"", "", "profile = 1"] {
            assert_eq!(filled(other).get("switch"), None, "{other}");
        }
    }
}
