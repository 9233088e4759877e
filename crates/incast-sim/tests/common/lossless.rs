//! What tests of flow control share: a fabric that is busy enough for it, cables that fail under it, and what is seen.

use super::{config, flow, link, link_event, text};
use incast_sim::{Config, FlowSpec, Outcome, outcome::EventKind, probe::PacketFilter, topology::LeafSpine};
use incast_units::Time;

/// A run that never lost anything for lack of buffer.
pub fn run(config: Config) -> Outcome {
    let outcome = super::run(config);
    assert_eq!((outcome.totals.drops, outcome.totals.lossless_drops), (0, 0), "{:?}", outcome.totals);
    outcome
}

/// Every packet at every port.
pub fn everything() -> PacketFilter {
    PacketFilter { flow: None, ports: Vec::new(), from: Time::ZERO, until: Time::MAX, most: usize::MAX }
}

/// When events of one kind happened at a node.
pub fn edges(outcome: &Outcome, node: u32, kind: EventKind) -> Vec<Time> {
    let edges = outcome.events.iter().filter(|event| event.node == node && event.kind == kind);
    edges.map(|event| event.time).collect()
}

/// Sixteen hosts in four racks, every other flow to one of two hosts.
pub fn busy_fabric() -> Config {
    let (host_link, fabric_link) = (link(100, Time::from_us(1)), link(100, Time::from_ns(600)));
    let topology =
        LeafSpine { leaves: 4, spines: 2, hosts_per_leaf: 4, host_link, fabric_link, fabric_links: 1 }.build();
    let mut config = config(topology.expect("a good topology"), "dctcp", &[("initial_window", text("400KB"))]);
    config.flows = (0..16u32)
        .flat_map(|host| (0..6u32).map(move |turn| (host, turn)))
        .map(|(host, turn)| FlowSpec {
            start: Time::from_us(u64::from(turn) * 30),
            ..flow(host, if turn % 2 == 0 { (host / 8) * 8 } else { (host * 5 + turn) % 16 }, 300_000)
        })
        .filter(|flow| flow.source != flow.destination)
        .collect();
    config
}

/// In [`busy_fabric`] a cable between switches and one of a host go down and come up three times.
pub fn cables_fail(config: &mut Config) {
    let topology = config.topology.clone();
    for (start, end) in [(20, 45), (60, 61), (100, 400)] {
        let at = Time::from_us;
        config.link_events.push(link_event(&topology, at(start), "leaf0-spine1", false));
        config.link_events.push(link_event(&topology, at(end), "leaf0-spine1", true));
        config.link_events.push(link_event(&topology, at(start + 1), "h0-leaf0", false));
        config.link_events.push(link_event(&topology, at(end + 1), "h0-leaf0", true));
    }
}
