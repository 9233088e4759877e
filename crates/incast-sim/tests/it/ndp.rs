//! NDP: what SIGCOMM 2017 promises of it, and that whatever is lost, every flow arrives.

use crate::common::{self, MTU, config, delivered, flow, ideal, link, star, text, took};
use incast_sim::{
    Config,
    config::{Buffer, Limit, LoadBalancing, Trim},
    topology::{FatTree, Link, SingleSwitch, Topology},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

/// The paper's switches: eight packets of data, headers first, ten to one.
fn ndp(topology: Topology, first_window: u64) -> Config {
    let packets = first_window * u64::from(MTU);
    let mut config = config(topology, "ndp", &[("unscheduled", text(&format!("{packets}B")))]);
    config.switch.trim = Some(Trim {
        queue: Limit::Packets(8),
        header_queue: Some(Limit::Bytes(16 * u64::from(MTU))),
        ..Trim::default()
    });
    config
}

fn tree(k: u32) -> Topology {
    FatTree { k, link: link(100, Time::from_us(1)) }.build().expect("a good topology")
}

#[test]
fn alone_a_flow_takes_no_longer_than_it_must() {
    for (bytes, slack) in [(1, 0), (4_096, 0), (50_000, 0), (5_000_000, 1_500)] {
        let mut config = ndp(tree(4), 50);
        config.switch.load_balancing = LoadBalancing::Ecmp;
        config.flows = vec![flow(0, 15, bytes)];
        let outcome = common::run(config);
        delivered(&outcome);
        let record = &outcome.flows[0];
        let late = took(record).saturating_sub(ideal(record));
        assert!(late <= Time::from_ns(slack), "{bytes} B: {late} late");
        assert_eq!((record.retransmitted_bytes, record.timeouts), (0, 0), "{bytes} B");
    }
}

/// Section 6.1: an incast takes what the receiver's link takes, nothing is dropped, and no timeout is needed.
#[test]
fn an_incast_fills_the_receivers_link() {
    let mut config = ndp(tree(8), 50);
    config.switch.load_balancing = LoadBalancing::SprayPermutation;
    config.flows = (1..101).map(|source| flow(source, 0, 450_000)).collect();
    let frame = u64::from(MTU) + 66 + 20;
    let outcome = common::run(config);
    delivered(&outcome);
    let last = outcome.flows.iter().map(took).max().expect("flows");
    let packets = 100 * 450_000u64.div_ceil(u64::from(MTU));
    let optimum = Rate::from_gbps(100).time_of(incast_units::Bytes::new(packets * frame));
    assert!(last < optimum.mul_f64(1.05), "{last} instead of {optimum}");
    let totals = &outcome.totals;
    assert!(totals.trims > 2_000 && totals.drops == 0, "{totals:?}");
    assert_eq!(outcome.flows.iter().map(|record| record.timeouts).sum::<u32>(), 0);
    // PULLs go to all in turn: those near the receiver end before the others by what of their first window was not
    // trimmed.
    let first = outcome.flows.iter().map(took).min().expect("flows");
    assert!(first > last.mul_f64(0.7), "{first} to {last}");
}

/// Section 6.1: a permutation uses at least 95% of what the hosts' links carry.
#[test]
fn a_permutation_fills_all_links() {
    // One BDP and what waits in queues on the way.
    let mut config = ndp(tree(4), 64);
    config.switch.load_balancing = LoadBalancing::SprayPermutation;
    config.flows = (0..16).map(|source| flow(source, (source + 8) % 16, 20_000_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    for record in &outcome.flows {
        assert!(took(record) < ideal(record).mul_f64(1.0 / 0.95), "{} of {}", took(record), ideal(record));
        assert_eq!((record.retransmitted_bytes, record.timeouts), (0, 0), "sent again though nothing is lost");
    }
    assert_eq!(outcome.totals.trims, 0);
}

/// The headers of a thousand packets find no room: they go back, and are sent again without a timeout.
#[test]
fn what_comes_back_is_sent_again() {
    let mut config = ndp(star(101), 10);
    if let Some(trim) = &mut config.switch.trim {
        trim.header_queue = Some(Limit::Bytes(2_000));
    }
    config.flows = (1..101).map(|source| flow(source, 0, 100_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    assert!(outcome.totals.bounces > 200, "{:?}", outcome.totals);
    assert_eq!(outcome.flows.iter().map(|record| record.timeouts).sum::<u32>(), 0);
}

/// Without trimming, drops are found by later acknowledgements or by the timeout, and PULLs still come.
#[test]
fn completes_over_switches_that_drop() {
    let link = Link { rate: Rate::from_gbps(10), delay: Time::from_us(5), loss: 0.0 };
    let topology = SingleSwitch { hosts: 41, link }.build().expect("a good topology");
    let mut config = ndp(topology, 12);
    config.switch.trim = None;
    config.switch.buffer = Buffer::PerPort { bytes: 86_000 };
    config.flows = (1..41).map(|source| flow(source, 0, 100_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    assert!(outcome.totals.drops > 100, "{:?}", outcome.totals);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Data, headers, acknowledgements, NACKs and PULLs may all be lost.
    #[test]
    fn whatever_is_lost_every_flow_arrives(
        loss in 0.0f64..0.3, seed in any::<u64>(), headers in 200u64..20_000, queue in 1u32..10, back in any::<bool>(),
        first_window in 1u64..30, sizes in prop::collection::vec(1u64..400_000, 1..12),
    ) {
        let lossy = Link { loss, ..link(100, Time::from_us(1)) };
        let topology = SingleSwitch { hosts: sizes.len() as u32 + 1, link: lossy }.build().expect("a good topology");
        let mut config = ndp(topology, first_window);
        if let Some(trim) = &mut config.switch.trim {
            (trim.header_queue, trim.queue, trim.return_to_sender) = (Some(Limit::Bytes(headers)), Limit::Packets(queue), back);
        }
        (config.seed, config.end) = (seed, Time::from_ms(600_000));
        let to_zero = sizes.iter().enumerate();
        config.flows = to_zero.map(|(index, bytes)| flow(index as u32 + 1, 0, *bytes)).collect();
        let outcome = common::run(config);
        prop_assert!(outcome.complete, "{:?}", outcome.flows);
        delivered(&outcome);
    }
}
