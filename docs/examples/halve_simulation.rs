//! Four flows of Halve through one port that marks: they fill it, and share it fairly.

mod common;

use common::{config, delivered, flow, link, run};
use incast_sim::{config::{Ecn, Size}, topology::SingleSwitch};
use incast_units::Time;

#[test]
fn four_flows_share_a_marking_port() {
    let topology = SingleSwitch { hosts: 5, link: link(10, Time::from_us(2)) }.build().expect("a switch");
    let mut config = config(topology, "halve", &[]);
    config.switch.ecn = Ecn::Step { at: Size::Bytes(60_000) };
    config.flows = (1..=4).map(|source| flow(source, 0, 10_000_000)).collect();
    let outcome = run(config);
    delivered(&outcome);
    assert!(outcome.totals.marks_edge > 0);
    // The port carries 40 MB of payload in about 32.8 ms at 10 Gbit/s; every flow has a fair share of it.
    let done = |flow: &incast_sim::outcome::FlowRecord| flow.delivered.expect("delivered").as_us_f64();
    let (first, last) =
        outcome.flows.iter().map(done).fold((f64::MAX, 0.0f64), |(a, b), t| (a.min(t), b.max(t)));
    assert!(last < 33_600.0, "the port was idle: {last} us");
    assert!(first > 0.8 * last, "unfair: {first} and {last} us");
    // The first windows are a burst of four BDPs; after it, marks keep the queue far shorter than that.
    assert!(outcome.totals.max_queue_bytes < 200_000, "{}", outcome.totals.max_queue_bytes);
}
