//! `profile` at the top of a scenario: defaults that are not ours.
//!
//! `[host]` has a `profile` of its own, which a scheme's `host` may have, too.
//!
//! Those of `host.frames` and of laws depend on the law: the resolution of schemes has them. Those of `[switch]` and
//! `[wire]` are written into the document where it has no value.

use super::{host::Host, thresholds::SwitchProfile};
use crate::scenario::tree::{
    node::{Node, Value},
    place::Origin,
};
use incast_units::Time;
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

/// What `[host]` has by `profile = "linux"`, as TOML. docs/hosts.md has where in Linux each is.
pub const LINUX: &[(&str, &str)] = &[
    ("rto_min", "\"200ms\""),
    ("ack_every", "2"),
    ("quick_acks", "16"),
    ("echo", "\"flag\""),
    ("timer_tick", "\"1ms\""),
    ("handshake", "true"),
    ("lost_retransmission", "\"same-recovery\""),
    ("pace_credit", "\"half-packet\""),
    ("prr", "true"),
];

/// The keys that a table of `[host]` has otherwise than Linux.
pub fn unlike_linux(host: &Host) -> Vec<&'static str> {
    let own = toml::Table::try_from(host).unwrap_or_default();
    let differs = |(key, linux): &&(&str, &str)| own.get(*key).is_some_and(|value| value.to_string() != *linux);
    LINUX.iter().filter(differs).map(|(key, _)| *key).collect()
}

/// Whether a profile of `[switch]` or `[host]` gives a key of it.
pub fn fills(part: &str, key: &str) -> bool {
    match part {
        "switch" => key == "ecn",
        _ => ["ack_delay", "max_ack_delay"].contains(&key) || LINUX.iter().any(|(given, _)| *given == key),
    }
}

/// How long Linux holds an acknowledgement (`TCP_DELACK_MIN`); by `tcp_delack_max` less than the least timeout.
const LINUX_ACK_DELAY: Time = Time::from_ms(40);

/// Where the scenario's profile is given, if it is that of HPCC's simulators.
pub fn lineage(root: &Node) -> Option<Origin> {
    let profile = root.entries().iter().find(|entry| entry.key == "profile")?;
    matches!(&profile.node.value, Value::Text(name) if name == HPCC_LINEAGE).then_some(profile.origin)
}

/// Fills in what a table of `[host]` has by its own `profile`, and then by the scenario's.
pub fn fill_host(host: &mut Node, lineage: Option<Origin>) {
    let text = |origin: Origin, text: &str| Node { origin, value: Value::Text(text.to_owned()) };
    let own = host.entries().iter().find(|entry| entry.key == "profile").map(|entry| entry.origin);
    if let Some(origin) = own.filter(|_| host.text("profile") == Some("linux")) {
        for (key, value) in LINUX {
            if let Ok(value) = Node::parse_value(value, origin) {
                host.insert_default(key, value);
            }
        }
        let time = |key: &str| host.text(key).and_then(|text| text.parse::<Time>().ok());
        if let (Some(rto_min), Some(tick)) = (time("rto_min"), time("timer_tick")) {
            // `tcp_schedule_loss_probe`.
            host.insert_default("max_ack_delay", text(origin, &rto_min.to_string()));
            let delay = LINUX_ACK_DELAY.min(rto_min.saturating_sub(tick).max(tick));
            host.insert_default("ack_delay", text(origin, &delay.to_string()));
        }
    }
    if let Some(origin) = lineage {
        host.insert_default("pace_credit", text(origin, "none"));
        host.insert_default("rto_min", text(origin, "100ms"));
    }
}

/// Fills in the thresholds of marks that a table of switches, and of those that differ, has by its own `profile`.
fn fill_thresholds(switch: &mut Node) {
    let own = switch.entries().iter().find(|entry| entry.key == "profile");
    let named = own.and_then(|entry| match &entry.node.value {
        Value::Text(name) => toml::Value::String(name.clone()).try_into::<SwitchProfile>().ok(),
        _ => None,
    });
    if let Some((origin, profile)) = own.map(|entry| entry.origin).zip(named) {
        Node::parse_value(&profile.written(), origin).into_iter().for_each(|ecn| switch.insert_default("ecn", ecn));
    }
    switch.items_mut("override").iter_mut().for_each(fill_thresholds);
}

/// Fills in the profile's values of `[switch]`, `[wire]` and `[host]`; errors in them point to the line of the profile.
pub fn fill(root: &mut Node) {
    let lineage = lineage(root);
    root.get_mut("host").into_iter().for_each(|host| fill_host(host, lineage));
    root.get_mut("switch").into_iter().for_each(fill_thresholds);
    for scheme in root.items_mut("scheme") {
        scheme.get_mut("switch").into_iter().for_each(fill_thresholds);
    }
    let Some(origin) = lineage else { return };
    let text = |text: &str| Node { origin, value: Value::Text(text.to_owned()) };
    root.insert_default("wire", Node { origin, value: Value::Table(Vec::new()) });
    if let Some(wire) = root.get_mut("wire") {
        wire.insert_default("gap", text("0B"));
        wire.insert_default("rounding", text("whole-ns"));
    }
    if root.get("host").is_none() {
        root.insert_default("host", Node { origin, value: Value::Table(Vec::new()) });
        root.get_mut("host").into_iter().for_each(|host| fill_host(host, lineage));
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
    fn linux_holds_acknowledgements_for_less_than_the_timeout() {
        let of =
            |keys: &str| filled(&format!("[host]\nprofile = \"linux\"\n{keys}")).get("host").cloned().expect("a table");
        let usual = of("");
        assert_eq!((usual.text("rto_min"), usual.text("ack_delay")), (Some("200ms"), Some("40ms")));
        assert_eq!(of("rto_min = \"5ms\"").text("ack_delay"), Some("4ms"));
        assert_eq!(of("rto_min = \"1ms\"").text("ack_delay"), Some("1ms"));
        assert_eq!(
            (usual.text("max_ack_delay"), of("rto_min = \"5ms\"").text("max_ack_delay")),
            (Some("200ms"), Some("5ms"))
        );
        assert_eq!(of("ack_delay = \"7us\"\necho = \"counts\"").text("ack_delay"), Some("7us"));
        assert_eq!(filled("[host]\nprofile = \"standard\"").get("host").map(|host| host.entries().len()), Some(1));
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
