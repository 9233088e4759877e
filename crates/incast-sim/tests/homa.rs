//! Homa: the invariants of SIGCOMM 2018, and that whatever is lost, every message arrives.

mod common;

use common::{MTU, config, delivered, flow, ideal, link, star, text, took};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, LoadBalancing, Probes},
    fabric::{
        packet::Kind,
        topology::{LeafSpine, Link, SingleSwitch, Topology},
    },
    outcome::{PacketRecord, Step},
    probe::PacketFilter,
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

fn homa(topology: Topology, parameters: &[(&str, Raw)]) -> Config {
    config(topology, "homa", parameters)
}

fn at(us: u64, spec: FlowSpec) -> FlowSpec {
    FlowSpec { start: Time::from_us(us), ..spec }
}

/// The same with a record of each packet on each link.
fn recorded(mut config: Config) -> Outcome {
    let (from, until) = (Time::ZERO, Time::MAX);
    let filter = PacketFilter { flow: None, ports: Vec::new(), from, until, most: usize::MAX };
    config.probes = Probes { packets: Some(filter), ..Probes::default() };
    common::run(config)
}

/// Packets that a node began to send, in order.
fn sent(outcome: &Outcome, node: u32) -> Vec<&PacketRecord> {
    let all = outcome.packets.iter();
    all.filter(|record| record.node == node && matches!(record.step, Step::Sent { .. })).collect()
}

#[test]
fn alone_a_message_takes_no_longer_than_it_must() {
    let link = link(100, Time::from_us(1));
    let fabric = LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link };
    for (bytes, slack) in [(1, 0), (700, 0), (u64::from(MTU), 0), (100_000, 0), (5_000_000, 100)] {
        let mut config = homa(fabric.build().expect("a good topology"), &[]);
        config.flows = vec![flow(0, 3, bytes)];
        let outcome = common::run(config);
        delivered(&outcome);
        let record = &outcome.flows[0];
        let late = took(record).saturating_sub(ideal(record));
        assert!(late <= Time::from_ns(slack), "{bytes} B: {late} late");
        assert_eq!((record.retransmitted_bytes, record.timeouts), (0, 0), "{bytes} B");
    }
}
