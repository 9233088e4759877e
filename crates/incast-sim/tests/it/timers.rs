//! Timers cost nothing while there is nothing to wait for, and repair nothing that is not lost.

use crate::common::{self, config, flow, star};
use incast_sim::{FlowSpec, config::Config, outcome::Outcome};
use incast_units::Time;

fn run(mut config: Config, flows: Vec<FlowSpec>) -> Outcome {
    config.switch.buffer = incast_sim::config::Buffer::Unlimited;
    config.flows = flows;
    config.end = Time::from_ms(1000);
    let outcome = common::run(config);
    assert!(outcome.complete);
    outcome
}

#[test]
fn flows_that_wait_for_their_turn_have_no_timer() {
    let hosts = 48;
    let pairs = (0..hosts).flat_map(|a| (0..hosts).filter(move |b| a != *b).map(move |b| (a, b)));
    let outcome = run(config(star(hosts), "dctcp", &[]), pairs.map(|(a, b)| flow(a, b, 60_000)).collect());
    assert_eq!(outcome.totals.drops, 0);
    let per_hop = outcome.totals.events as f64 / outcome.totals.packet_hops as f64;
    assert!(per_hop < 2.0, "{per_hop} events per packet-hop");
}

#[test]
fn a_slow_pace_has_no_timer_between_packets() {
    let slow = config(star(2), "constant-rate", &[("rate", incast_cc::parameters::Raw::Text("10Mbps".into()))]);
    let outcome = run(slow, vec![flow(0, 1, 1_000_000)]);
    assert_eq!(outcome.flows[0].retransmitted_bytes, 0);
    assert_eq!(outcome.flows[0].timeouts, 0);
    let per_hop = outcome.totals.events as f64 / outcome.totals.packet_hops as f64;
    assert!(per_hop < 2.0, "{per_hop} events per packet-hop");
}
