//! Four flows of Shortest to one host: they end in the order of their sizes, and the link is busy until then.

mod common;

use common::{config, delivered, flow, link, run};
use incast_sim::topology::SingleSwitch;
use incast_units::Time;

#[test]
fn shorter_flows_end_first() {
    let topology = SingleSwitch { hosts: 5, link: link(10, Time::from_us(2)) }.build().expect("a switch");
    let mut config = config(topology, "shortest", &[]);
    config.flows = (1..=4).map(|source| flow(source, 0, u64::from(5 - source) * 1_000_000)).collect();
    let outcome = run(config);
    delivered(&outcome);
    let done: Vec<f64> =
        outcome.flows.iter().map(|flow| flow.delivered.expect("delivered").as_us_f64()).collect();
    assert!(done.is_sorted_by(|longer, shorter| longer > shorter), "{done:?}");
    // The port carries 10 MB of payload in about 8.2 ms at 10 Gbit/s; the shortest flow waits for nobody.
    assert!(done[0] < 8_500.0, "the port was idle: {done:?}");
    assert!(done[3] < 950.0, "the shortest flow waited: {done:?}");
    // Four unscheduled windows at most wait, and one of credit.
    assert!(outcome.totals.max_queue_bytes < 100_000, "{}", outcome.totals.max_queue_bytes);
}
