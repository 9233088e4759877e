//! Spraying by senders: all ways in a random order, and bad ones left out.

use crate::common::{self, flow, link, text};
use incast_cc::law::Recovery;
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, Ecn, Limit, LoadBalancing, ReorderingWindow, Size, Trim},
    topology::{FatTree, LeafSpine, Topology},
};
use incast_units::{Rate, Time};

fn tree() -> Topology {
    FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology")
}

fn leaves(spines: u32) -> Topology {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines, hosts_per_leaf: 4, host_link: link, fabric_link: link, fabric_links: 1 };
    fabric.build().expect("a good topology")
}

fn permuted(topology: Topology, window: &str) -> Config {
    let mut config = common::config(topology, "constant-window", &[("window", text(window))]);
    config.switch.load_balancing = LoadBalancing::SprayPermutation;
    // A window of packets in any order.
    config.host.reordering = 100;
    config
}

/// Every host sends to the one half of all hosts further on.
fn permutation(config: &mut Config, bytes: u64) {
    let hosts = config.topology.hosts;
    config.flows = (0..hosts).map(|host| flow(host, (host + hosts / 2) % hosts, bytes)).collect();
}

#[test]
fn one_flow_alone_fills_its_link_and_loads_all_ways_alike() {
    let mut config = permuted(leaves(4), "400KB");
    config.flows = vec![flow(0, 7, 4_096 * 400)];
    let ports = config.topology.ports();
    let leaf = config.topology.find_node("leaf0").expect("a leaf");
    let up: Vec<u16> = (0..ports.of(leaf).len() as u16)
        .filter(|port| ports.end(leaf, *port).is_some_and(|end| end.peer >= config.topology.hosts))
        .collect();
    assert_eq!(up.len(), 4);
    config.probes.ports = Some((Time::from_us(1), up.iter().map(|port| (leaf, *port)).collect()));
    let outcome = common::run(config);
    common::delivered(&outcome);
    // Of four ways no two packets of a round share one, so nothing ever waits for another on them.
    assert_eq!(common::took(&outcome.flows[0]), common::ideal(&outcome.flows[0]));
    let sent = |port: u16| {
        let of_port = outcome.ports.iter().filter(|sample| sample.port == port);
        of_port.map(|sample| sample.tx_bytes).max().unwrap_or(0)
    };
    let most = up.iter().map(|port| sent(*port)).max();
    let least = up.iter().map(|port| sent(*port)).min();
    assert!(least > Some(95 * 4_166) && most <= Some(100 * 4_166), "{least:?} to {most:?}");
}

#[test]
fn a_permutation_is_faster_than_with_hashes_or_random_ways() {
    let mean = |balancing| {
        let mut config = permuted(tree(), "400KB");
        config.switch.load_balancing = balancing;
        permutation(&mut config, 2_000_000);
        let outcome = common::run(config);
        common::delivered(&outcome);
        let took = outcome.flows.iter().map(|flow| common::took(flow).as_secs_f64());
        took.sum::<f64>() / outcome.flows.len() as f64
    };
    let [permuted, spray, ecmp] =
        [LoadBalancing::SprayPermutation, LoadBalancing::Spray, LoadBalancing::Ecmp].map(mean);
    assert!(permuted < spray && spray < ecmp, "{permuted} {spray} {ecmp}");
    assert!(permuted < 0.95 * ecmp);
}

/// One way of four loses three packets in ten.
fn failing(penalty: bool, seed: u64) -> Outcome {
    let mut config = permuted(leaves(4), "200KB");
    let cable = config.topology.find_cable("leaf0-spine2").expect("a cable");
    config.topology.cables[cable].link.loss = 0.3;
    config.host.path_penalty = penalty;
    config.host.reordering = 30;
    config.classes[0].recovery = Recovery::SelectiveRepeat;
    config.seed = seed;
    config.flows = (0..4).map(|host| flow(host, host + 4, 4_000_000)).collect();
    let outcome = common::run(config);
    common::delivered(&outcome);
    outcome
}

#[test]
fn a_failing_link_loses_less_with_the_penalty() {
    for seed in 1..4 {
        let (without, with) = (failing(false, seed), failing(true, seed));
        // Of what is lost a part are acknowledgements, which take any way.
        assert!(with.totals.lost < without.totals.lost);
        let again = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>();
        assert!(2 * again(&with) <= again(&without), "{} of {}", again(&with), again(&without));
    }
}

#[test]
fn ways_do_not_depend_on_threads_or_on_other_flows() {
    let make = |threads, more| {
        let mut config = permuted(tree(), "60KB");
        config.switch.buffer = Buffer::PerPort { bytes: 40_000 };
        config.threads = threads;
        permutation(&mut config, 100_000);
        config.flows.extend((1..16).map(|source| flow(source, 0, 300_000)));
        if more {
            // Later than all that is compared.
            let late = FlowSpec { start: Time::from_ms(5), ..flow(3, 9, 100_000) };
            config.flows.push(late);
        }
        common::run(config)
    };
    let one = make(1, false);
    assert!(one.totals.drops > 0);
    for threads in [2, 4] {
        assert_eq!(one.digest, make(threads, false).digest);
    }
    let more = make(1, true);
    let fct = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.delivered).collect::<Vec<_>>();
    let (one, mut more) = (fct(&one), fct(&more));
    more.retain(|delivered| delivered.is_some_and(|time| time < Time::from_ms(5)));
    assert_eq!(one, more);
}

/// NDP over switches that trim, with the settings of the reference case of its authors' simulator.
fn ndp(balancing: LoadBalancing) -> Outcome {
    let topology = FatTree { k: 8, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let mut config = common::config(topology, "ndp", &[("unscheduled", text("204800B"))]);
    config.switch.priorities = 2;
    config.switch.load_balancing = balancing;
    config.switch.trim =
        Some(Trim { queue: Limit::Packets(15), header_queue: Some(Limit::Bytes(2 * 15 * 4_166)), ..Trim::default() });
    config.host.reordering = 100;
    permutation(&mut config, 489 * 4_096);
    let outcome = common::run(config);
    common::delivered(&outcome);
    outcome
}

#[test]
fn nothing_is_trimmed_of_a_permutation_with_permuted_ways() {
    let (permuted, spray) = (ndp(LoadBalancing::SprayPermutation), ndp(LoadBalancing::Spray));
    let mean = |outcome: &Outcome| {
        let took = outcome.flows.iter().map(|flow| common::took(flow).as_secs_f64());
        took.sum::<f64>() / outcome.flows.len() as f64 * 1e6
    };
    println!("{} {} {} {}", mean(&permuted), mean(&spray), permuted.totals.trims, spray.totals.trims);
    assert_eq!((permuted.totals.trims, permuted.totals.drops), (0, 0));
    assert!(spray.totals.trims > 100);
    assert!(mean(&permuted) < 0.95 * mean(&spray));
}

#[test]
fn links_that_go_down_leave_ways_that_lead_on() {
    let mut config = permuted(leaves(4), "200KB");
    config.flows = (0..4).map(|host| flow(host, host + 4, 2_000_000)).collect();
    for (at, name) in [(20, "leaf0-spine0"), (40, "leaf0-spine3"), (60, "leaf1-spine1")] {
        config.link_events.push(common::link_event(&config.topology, Time::from_us(at), name, false));
    }
    let outcome = common::run(config);
    common::delivered(&outcome);
    assert!(outcome.totals.lost > 0);
}

/// With one slow path of four, what counts is the time on the best one, whichever the flow's hash would choose.
#[test]
fn the_ideal_time_is_that_of_the_best_path() {
    for balancing in [LoadBalancing::Spray, LoadBalancing::SprayPermutation] {
        let mut config = permuted(leaves(4), "200KB");
        config.switch.load_balancing = balancing;
        let whole = {
            let mut config = permuted(leaves(4), "200KB");
            config.flows = vec![flow(0, 4, 1_000_000)];
            common::run(config).flows[0].ideal
        };
        let cable = config.topology.find_cable("leaf0-spine2").expect("a cable");
        config.topology.cables[cable].link.rate = Rate::from_gbps(10);
        config.flows = (0..4).flat_map(|host| [flow(host, host + 4, 1_000_000); 4]).collect();
        let outcome = common::run(config);
        common::delivered(&outcome);
        for flow in &outcome.flows {
            assert_eq!(flow.ideal, whole, "{balancing:?}");
            assert!(Some(common::took(flow)) >= flow.ideal);
        }
    }
}

/// Several hosts at a time send to one over several ways, and no packet is lost.
fn sent_again(wait: ReorderingWindow) -> u64 {
    let mut config = common::config(leaves(4), "dctcp", &[]);
    config.switch.load_balancing = LoadBalancing::Spray;
    config.switch.buffer = Buffer::Unlimited;
    config.switch.ecn = Ecn::Step { at: Size::Bytes(50_000) };
    (config.host.reordering, config.host.reordering_window) = (30, wait);
    // Each round six hosts send to one, which is another one in the next.
    let later = |(round, from): (u32, u32)| FlowSpec {
        start: Time::from_us(30) * u64::from(round),
        ..flow((round + from) % 8, round % 8, 40_000 * u64::from(from))
    };
    config.flows = (0..30).flat_map(|round| (1..7).map(move |from| (round, from))).map(later).collect();
    let outcome = common::run(config);
    common::delivered(&outcome);
    assert_eq!((outcome.totals.drops, outcome.totals.lost), (0, 0));
    outcome.flows.iter().map(|flow| flow.retransmitted_bytes).sum()
}

/// RFC 8985's window grows with each packet that was sent again for nothing, which each new flow has to learn.
#[test]
fn what_is_late_by_less_than_a_round_trip_is_not_sent_again() {
    let (adaptive, bound) = (sent_again(ReorderingWindow::Adaptive), sent_again(ReorderingWindow::Srtt));
    assert!(adaptive > 100_000, "{adaptive}");
    assert!(bound < adaptive / 50, "{bound} of {adaptive}");
}
