//! On-Ramp under every law: nothing changes below the threshold, order is kept, and what is held leaves.

use crate::common::{self, DIAMOND, config, delivered, flow, link, star, text};
use incast_cc::{
    Path,
    law::Recovery,
    parameters::Raw,
    registry::{LAWS, UnderlayParameters},
};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Buffer, Ecn, HostClock, LinkEvent, Pfc, Size, Threshold},
    topology::{LeafSpine, Topology, file::parse},
};
use incast_units::Time;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// On-Ramp with some parameters given, for all classes.
fn hold(config: &mut Config, given: &[(&str, Raw)]) {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    for class in &mut config.classes {
        let path = base_path(&config.topology, config.host.mtu, class.law.info().framing);
        let path = Path { rto_min: config.host.rto_min, ..path };
        let resolved = UnderlayParameters::resolve("onramp", &path, &given);
        class.underlay = resolved.expect("an underlay").expect("good parameters");
    }
}

/// Eight hosts send to one, a long flow and some short ones each, under a law.
fn incast(topology: Topology, law: &str) -> Config {
    let parameters: &[(&str, Raw)] = match law {
        "credit" => &[("unscheduled", text("20KB"))],
        "constant-rate" => &[("rate", text("30Gbps"))],
        "constant-window" => &[("window", text("200KB"))],
        _ => &[],
    };
    let mut config = config(topology, law, parameters);
    for source in 1..config.topology.hosts {
        for (number, bytes) in [400_000, 3_000, 60_000].into_iter().enumerate() {
            let start = Time::from_us(7 * u64::from(source) * number as u64);
            config.flows.push(FlowSpec { start, ..flow(source, 0, bytes) });
        }
    }
    config.switch.ecn = Ecn::Red { min: Size::Bytes(50_000), max: Size::Bytes(200_000), p: 0.5 };
    config.end = Time::from_ms(100);
    config
}

fn held(outcome: &Outcome) -> Time {
    outcome.flows.iter().fold(Time::ZERO, |sum, flow| sum + flow.held)
}

#[test]
fn below_the_threshold_nothing_changes() {
    for law in LAWS {
        let run = |holds: bool| {
            let mut config = incast(star(9), law.name);
            // Packets are lost, and recovery is what it was, probes included.
            config.topology.cables[0].link.loss = 0.01;
            if holds {
                hold(&mut config, &[("threshold", text("1s")), ("reports", text("acks"))]);
            }
            common::run(config)
        };
        let (without, with) = (run(false), run(true));
        let differ = without.flows.iter().zip(&with.flows).find(|(one, other)| one != other);
        assert_eq!(differ, None, "{}", law.name);
        assert_eq!(without.digest, with.digest, "{}", law.name);
    }
}

#[test]
fn it_holds_under_every_law_and_every_flow_ends_in_order() {
    for law in LAWS {
        for (scope, reports) in [("flow", "own"), ("destination", "own"), ("flow", "acks")] {
            for rtt in ["network", "stack"] {
                let mut config = incast(star(9), law.name);
                let given = [
                    ("threshold", text("9us")),
                    ("scope", text(scope)),
                    ("reports", text(reports)),
                    ("rtt", text(rtt)),
                ];
                hold(&mut config, &given);
                let outcome = common::run(config);
                let what = format!("{}, {scope}, {reports}, {rtt}", law.name);
                delivered(&outcome);
                // Receivers that hand out tokens keep queues short themselves; their packets have several priorities,
                // and are asked for again if they are only held.
                let is_driven = matches!(law.name, "homa" | "ndp" | "phost" | "polo");
                let in_order = outcome.flows.iter().all(|flow| flow.reordered_packets == 0);
                assert!(is_driven || in_order, "{what}");
                assert!(is_driven || held(&outcome) > Time::ZERO, "{what}");
            }
        }
    }
}

#[test]
fn every_flow_ends_although_packets_are_lost_while_others_are_held() {
    for law in ["cubic", "dctcp", "swift", "timely", "dcqcn", "homa", "ndp", "polo"] {
        for recovery in [Recovery::RackTlp, Recovery::SelectiveRepeat, Recovery::GoBackN] {
            for loss in [0.001, 0.01, 0.05] {
                let mut config = incast(star(9), law);
                config.topology.cables.iter_mut().for_each(|cable| cable.link.loss = loss);
                if config.classes[0].scheduler.is_none() {
                    config.classes[0].recovery = recovery;
                }
                hold(&mut config, &[("threshold", text("5us"))]);
                config.end = Time::from_ms(5000);
                delivered(&common::run(config));
            }
        }
    }
}

#[test]
fn every_variant_and_release_keeps_the_order() {
    for variant in ["strawman", "paper", "committed"] {
        for release in ["burst", "paced", "quantised", "clocked"] {
            for (law, scope, backlog) in
                [("constant-window", "flow", 1000), ("constant-window", "destination", 2), ("constant-rate", "flow", 2)]
            {
                let mut config = incast(star(9), law);
                let given = [
                    ("threshold", text("9us")),
                    ("variant", text(variant)),
                    ("release", text(release)),
                    ("scope", text(scope)),
                    ("backlog", Raw::Integer(backlog)),
                ];
                hold(&mut config, &given);
                let outcome = common::run(config);
                let what = format!("{variant} {release} {law} {scope}");
                delivered(&outcome);
                assert!(outcome.flows.iter().all(|flow| flow.reordered_packets == 0), "{what}");
                assert!(held(&outcome) > Time::ZERO, "{what}");
                // Eight times 463 KB at 100 Gbps take 0.3 ms: nobody sleeps through it.
                assert!(outcome.ended_at < Time::from_ms(2), "{what}: {}", outcome.ended_at);
            }
        }
    }
}

#[test]
fn lost_reports_and_lost_data_keep_nobody() {
    for law in ["dctcp", "cubic", "dcqcn", "ndp", "constant-window"] {
        for recovery in [Recovery::SelectiveRepeat, Recovery::GoBackN] {
            for scope in ["flow", "destination"] {
                let mut config = incast(star(9), law);
                config.topology.cables.iter_mut().for_each(|cable| cable.link.loss = 0.1);
                config.switch.buffer = Buffer::Shared { total: 150_000, alpha: (1, 1), reserve: 0 };
                config.host.rto_min = Time::from_us(200);
                config.classes[0].recovery = recovery;
                hold(&mut config, &[("threshold", text("9us")), ("scope", text(scope))]);
                delivered(&common::run(config));
            }
        }
    }
}

#[test]
fn what_is_held_is_not_lost_under_flow_control() {
    for law in ["dctcp", "dcqcn", "constant-window", "homa"] {
        for scope in ["flow", "destination"] {
            let mut config = incast(star(9), law);
            config.switch.buffer = Buffer::Shared { total: 8_000_000, alpha: (1, 1), reserve: 0 };
            let threshold = Threshold::Static { xoff: Size::Bytes(30_000), xon: None };
            config.switch.pfc = Some(Pfc::new(threshold));
            hold(&mut config, &[("threshold", text("9us")), ("scope", text(scope))]);
            let outcome = common::run(config);
            delivered(&outcome);
            assert_eq!(outcome.totals.drops, 0, "{law}, {scope}");
            assert!(law == "homa" || outcome.totals.pauses > 0, "{law}, {scope}");
            assert!(law == "homa" || held(&outcome) > Time::ZERO, "{law}, {scope}");
        }
    }
}

#[test]
fn a_link_that_goes_down_under_held_packets_keeps_nobody() {
    // Reports stop with it, for ten times the longest hold, and what is on its way is lost.
    for law in ["dctcp", "cubic", "dcqcn", "constant-window", "ndp", "phost"] {
        for scope in ["flow", "destination"] {
            let mut config = incast(star(9), law);
            config.host.rto_min = Time::from_us(200);
            hold(&mut config, &[("threshold", text("9us")), ("scope", text(scope)), ("max_hold", text("50us"))]);
            for (at, up) in [(60, false), (560, true)] {
                config.link_events.push(LinkEvent { at: Time::from_us(at), cable: 0, up });
            }
            let outcome = common::run(config);
            delivered(&outcome);
            assert!(outcome.flows.iter().any(|flow| flow.timeouts > 0), "{law}, {scope}");
            assert!(outcome.ended_at > Time::from_us(560), "{law}, {scope}");
        }
    }
}

#[test]
fn classes_with_one_stage_share_its_decisions() {
    let run = |split: bool, scope: &str, other: &str| {
        let mut config = incast(star(9), "cubic");
        config.switch.priorities = 2;
        let mut second = config.classes[0].clone();
        "second".clone_into(&mut second.name);
        config.classes.push(second);
        hold(&mut config, &[("threshold", text("9us")), ("scope", text(scope))]);
        match other {
            "priority" => config.classes[1].priority = 1,
            "threshold" => {
                let class = config.classes[1].underlay.clone();
                hold(&mut config, &[("threshold", text("10us")), ("scope", text(scope))]);
                config.classes[0].underlay = class;
            }
            _ => {}
        }
        for flow in config.flows.iter_mut().filter(|flow| split && flow.bytes < 100_000) {
            flow.class = 1;
        }
        let outcome = common::run(config);
        delivered(&outcome);
        assert!(held(&outcome) > Time::ZERO, "{scope}");
        outcome.flows.iter().map(|flow| flow.delivered).collect::<Vec<_>>()
    };
    for scope in ["flow", "destination"] {
        assert_eq!(run(true, scope, ""), run(false, scope, ""), "{scope}");
    }
    for other in ["priority", "threshold"] {
        assert_ne!(run(true, "destination", other), run(false, "destination", other), "{other}");
    }
}

#[test]
fn a_timeout_comes_although_packets_are_held() {
    // Go-back-N without a window, slowly enough for every packet to be held: when what is sent again is lost again,
    // nobody asks for it once more, and only the timeout helps. At 2% that happens often in so long a flow.
    let mut config = config(star(3), "constant-rate", &[("rate", text("60Gbps"))]);
    config.classes[0].recovery = Recovery::GoBackN;
    config.topology.cables[0].link.loss = 0.02;
    config.host.rto_min = Time::from_us(200);
    config.flows = vec![flow(1, 0, 20_000_000), flow(2, 0, 20_000_000)];
    hold(&mut config, &[("threshold", text("6us"))]);
    let outcome = common::run(config);
    delivered(&outcome);
    assert!(held(&outcome) > Time::ZERO);
    assert!(outcome.flows.iter().all(|flow| flow.timeouts > 0));
    // 40 MB at 100 Gbps take 3.3 ms; what goes back for 1,600 losses of a round trip's packets each takes longer.
    assert!(outcome.ended_at < Time::from_ms(200), "{}", outcome.ended_at);
}

#[test]
fn clocks_that_disagree_move_the_threshold() {
    let ahead = |us: i64| HostClock { offset_ps: us * 1_000_000, ..HostClock::default() };
    // Half of the links' rate: the way takes 2 us and two transmissions, and nothing queues.
    let run = |sender: i64, receiver: i64| {
        let mut config = config(star(2), "constant-rate", &[("rate", text("50Gbps"))]);
        hold(&mut config, &[("threshold", text("4us"))]);
        config.clocks = vec![ahead(sender), ahead(receiver)];
        config.flows = vec![flow(0, 1, 1_000_000)];
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows[0].held
    };
    assert_eq!(run(0, 0), Time::ZERO);
    assert_eq!(run(3, 3), Time::ZERO);
    assert_eq!(run(5, 0), Time::ZERO);
    assert!(run(0, 3) > Time::ZERO);
    assert!(run(-3, 0) > Time::ZERO);
}

#[test]
fn nobody_is_held_for_longer_than_the_bound() {
    // A clock that is a second ahead: each report asks for as long a pause as there can be.
    let longest = Time::from_us(50);
    let mut config = config(star(2), "constant-window", &[("window", text("40KB"))]);
    hold(&mut config, &[("threshold", text("4us")), ("max_hold", text("50us"))]);
    config.clocks = vec![HostClock::default(), HostClock { offset_ps: 1_000_000_000_000, ..HostClock::default() }];
    let packets = 50;
    config.flows = vec![flow(0, 1, packets * u64::from(common::MTU))];
    let outcome = common::run(config);
    delivered(&outcome);
    let flow = &outcome.flows[0];
    assert!(flow.held > longest * 2, "{}", flow.held);
    assert!(flow.held <= longest * packets, "{}", flow.held);
}

#[test]
fn flows_to_one_destination_share_a_pause_if_they_are_to() {
    let held_by_the_second = |scope| {
        let mut config = config(star(9), "constant-window", &[("window", text("200KB"))]);
        config.flows = (1..9).map(|source| flow(source, 0, 1_000_000)).collect();
        // One packet of a new flow, in the midst of the others' pauses.
        for source in 1..9 {
            config.flows.push(FlowSpec { start: Time::from_us(60), ..flow(source, 0, 1_000) });
        }
        hold(&mut config, &[("threshold", text("9us")), ("scope", text(scope))]);
        let outcome = common::run(config);
        delivered(&outcome);
        let short = outcome.flows.iter().filter(|flow| flow.bytes == 1_000);
        short.filter(|flow| flow.held > Time::ZERO).count()
    };
    assert_eq!(held_by_the_second("flow"), 0);
    assert!(held_by_the_second("destination") > 0);
}

#[test]
fn only_the_class_that_has_it_is_held() {
    let mut config = incast(star(9), "dctcp");
    let free = config.classes[0].clone();
    hold(&mut config, &[("threshold", text("9us"))]);
    config.classes.push(free);
    for (index, flow) in config.flows.iter_mut().enumerate() {
        flow.class = (index % 2) as u16;
    }
    let outcome = common::run(config);
    delivered(&outcome);
    let held_of =
        |class: u16| outcome.flows.iter().filter(|flow| flow.class == class).any(|flow| flow.held > Time::ZERO);
    assert!(held_of(0) && !held_of(1));
}

#[test]
fn results_do_not_depend_on_threads() {
    let link = link(100, Time::from_us(1));
    let leaf_spine =
        LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 4, host_link: link, fabric_link: link, fabric_links: 1 };
    for law in LAWS {
        for topology in [leaf_spine.build().expect("a good topology"), parse(DIAMOND).expect("a good file")] {
            let scopes: &[_] = if law.name == "dctcp" { &["flow", "destination"] } else { &["flow"] };
            for scope in scopes {
                let run = |threads| {
                    let mut config = incast(topology.clone(), law.name);
                    config.topology.cables[0].link.loss = 0.01;
                    hold(&mut config, &[("threshold", text("9us")), ("scope", text(scope))]);
                    let noise = Time::from_ns(300);
                    let clock = |host| HostClock { offset_ps: 40_000 * host, drift_ppm: host as f64, noise };
                    config.clocks = (0..i64::from(config.topology.hosts)).map(clock).collect();
                    config.threads = threads;
                    common::run(config)
                };
                let serial = run(1);
                let parallel = run(3);
                assert_eq!(serial.flows, parallel.flows, "{}", law.name);
                assert_eq!(serial.digest, parallel.digest, "{}", law.name);
            }
        }
    }
}

/// Senders of long flows into one port: how many, which of them are behind a spine at most 20 us away, when they start
/// and how far their clocks are off, both in microseconds.
fn senders() -> impl Strategy<Value = (u64, Vec<(bool, u64, i64)>)> {
    (0u64..=10, proptest::collection::vec((any::<bool>(), 0u64..=1000, -3i64..=3), 4..=16))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]
    #[test]
    fn long_flows_share_a_port_whatever_their_paths_and_clocks(
        (delay, senders) in senders(),
        law in proptest::sample::select(vec!["cubic", "dctcp", "constant-window"]),
    ) {
        let delay = Time::from_us(delay);
        let (host_link, fabric_link) = (link(100, Time::from_us(1)), link(400, delay));
        let topology = LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 17, host_link, fabric_link, fabric_links: 1 };
        let given: &[(&str, Raw)] = if law == "constant-window" { &[("window", text("600KB"))] } else { &[] };
        let mut config = config(topology.build().unwrap(), law, given);
        config.clocks = vec![HostClock::default(); 34];
        for (index, (is_far, start, ahead)) in senders.iter().enumerate() {
            let source = index as u32 + if *is_far { 17 } else { 1 };
            config.flows.push(FlowSpec { start: Time::from_us(*start), ..flow(source, 0, 1_000_000_000) });
            config.clocks[source as usize].offset_ps = ahead * 1_000_000;
        }
        let port = (config.topology.hosts, 0);
        config.probes.ports = Some((Time::from_us(10), vec![port]));
        config.probes.rates = Some((Time::from_us(500), 0));
        config.end = Time::from_ms(16);
        hold(&mut config, &[("threshold", text("30us"))]);
        let outcome = common::run(config);
        let late = Time::from_ms(8);
        let mut shares = BTreeMap::<u32, f64>::new();
        for sample in outcome.rates.iter().filter(|sample| sample.time > late) {
            *shares.entry(sample.source).or_default() += sample.measured_bps as f64 / 16.0 * 1e-9;
        }
        let (sum, squares) = shares.values().fold((0.0, 0.0), |(sum, squares), it| (sum + it, squares + it * it));
        let fairness = sum * sum / (squares * senders.len() as f64);
        prop_assert!(fairness > 0.85, "{law} {fairness} {shares:?}");
        prop_assert!(sum > 95.0, "{law} {sum} of 98 Gbit/s {shares:?}");
        // 27 us of the threshold are for the queue: 340 KB.
        let longest = outcome.ports.iter().filter(|sample| sample.time > late).map(|it| it.queue_bytes).max();
        prop_assert!(longest < Some(340_000 * 3 / 2), "{law} {longest:?}");
    }
}
