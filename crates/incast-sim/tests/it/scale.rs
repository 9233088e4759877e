//! A large idle fabric costs nothing: work follows packets, never what exists.

use crate::common::{self, flow, link};
use incast_sim::{Config, Outcome, topology::FatTree};
use incast_units::Time;

fn fabric(k: u32) -> Config {
    let topology = FatTree { k, link: link(100, Time::from_us(1)) }.build();
    common::unlimited(topology.expect("a good topology"))
}

/// One flow from the first host to the last: six links, whatever the size of the fabric.
fn one_flow(k: u32) -> Outcome {
    let mut config = fabric(k);
    let last = config.topology.hosts - 1;
    config.flows = vec![flow(0, last, 1_000_000)];
    let outcome = common::run(config);
    common::delivered(&outcome);
    outcome
}

#[test]
fn work_does_not_depend_on_the_size_of_the_fabric() {
    let (small, large) = (one_flow(4), one_flow(32));
    assert_eq!(fabric(32).topology.hosts, 8192);
    assert_eq!(small.flows[0].delivered, large.flows[0].delivered);
    assert_eq!(small.totals.packet_hops, large.totals.packet_hops);
    assert_eq!(small.totals.events, large.totals.events);
    assert_eq!(small.cost.windows, large.cost.windows);
    // 245 packets and their acknowledgements over six links each.
    assert_eq!(large.totals.packet_hops, 245 * 2 * 6);
    let per_hop = large.totals.events as f64 / large.totals.packet_hops as f64;
    assert!((1.0..=2.0).contains(&per_hop), "{per_hop} events per packet-hop");
}

#[test]
fn time_in_which_nothing_happens_is_skipped() {
    let mut config = fabric(4);
    // One packet every 10 ms: ten thousand windows in between.
    let start = |index: u64| Time::from_ms(10 * index);
    config.flows = (0..20).map(|index| incast_sim::FlowSpec { start: start(index), ..flow(0, 15, 1000) }).collect();
    let outcome = common::run(config);
    common::delivered(&outcome);
    // Each packet goes over six links, and so does its acknowledgement; then there is the flow's start and
    // its timer.
    assert!(outcome.cost.windows <= 20 * 16, "{} windows", outcome.cost.windows);
    assert!(outcome.cost.windows >= 20 * 12, "{} windows", outcome.cost.windows);
    assert!(outcome.totals.events <= 20 * 16, "{} events", outcome.totals.events);
}

#[test]
fn nothing_costs_nothing() {
    let outcome = common::run(fabric(32));
    assert!(outcome.complete);
    assert_eq!((outcome.cost.windows, outcome.totals.events, outcome.totals.packet_hops), (0, 0, 0));
    assert_eq!(outcome.ended_at, Time::ZERO);
}

/// A fabric that is large enough for two phases on several threads, of which each host sends to another one.
#[test]
fn two_phases_on_several_threads_change_nothing() {
    let run = |threads: usize| {
        let mut config = fabric(16);
        let hosts = config.topology.hosts;
        // Neighbours under one switch, in one pod and in others, at once and a little apart.
        config.flows = (0..hosts)
            .map(|host| {
                let to = (host * 37 + 11) % hosts;
                let to = if to == host { (to + 1) % hosts } else { to };
                incast_sim::FlowSpec { start: Time::from_ns(u64::from(host % 7) * 130), ..flow(host, to, 30_000) }
            })
            .collect();
        config.threads = threads;
        let outcome = common::run(config);
        common::delivered(&outcome);
        (outcome.digest, outcome.totals.packet_hops)
    };
    let one = run(1);
    for threads in [2, 3, 5] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}
