//! pHost: the invariants of CoNEXT 2015, and that whatever is lost, every flow arrives.

use crate::common::{self, MTU, config, delivered, flow, ideal, link, link_event, star, text, took};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, LoadBalancing, Probes},
    outcome::{PacketRecord, Step},
    packet::Kind,
    probe::PacketFilter,
    topology::{LeafSpine, Link, SingleSwitch, Topology},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

fn phost(topology: Topology, parameters: &[(&str, Raw)]) -> Config {
    config(topology, "phost", parameters)
}

fn at(us: u64, spec: FlowSpec) -> FlowSpec {
    FlowSpec { start: Time::from_us(us), ..spec }
}

/// t_p at 100 Gbit/s.
fn packet_time() -> Time {
    Time::from_ps((u64::from(MTU) + common::OVERHEAD) * 80)
}

/// The same with a record of each packet on each link.
fn recorded(mut config: Config) -> Outcome {
    let (from, until) = (Time::ZERO, Time::MAX);
    let filter = PacketFilter { flow: None, ports: Vec::new(), from, until, most: usize::MAX };
    config.probes = Probes { packets: Some(filter), ..Probes::default() };
    common::run(config)
}

/// Tokens that a host began to send, in order.
fn tokens(outcome: &Outcome, host: u32) -> Vec<&PacketRecord> {
    let all = outcome.packets.iter().filter(|record| record.packet.kind == Kind::Credit);
    all.filter(|record| record.node == host && matches!(record.step, Step::Sent { .. })).collect()
}

fn last(outcome: &Outcome) -> Time {
    outcome.flows.iter().filter_map(|record| record.delivered).max().expect("delivered")
}

/// What flows send on free tokens waits at the receiver's port, longer than the paper's timeouts. It is not lost.
#[test]
fn what_waits_in_the_receivers_queue_is_not_sent_again() {
    for scheduling in ["srpt", "round-robin"] {
        let run = |timeouts: &str| {
            let given = [("scheduling", text(scheduling)), ("timeouts", text(timeouts))];
            let mut config = phost(star(9), &given);
            config.switch.buffer = Buffer::PerPort { bytes: 100_000_000 };
            config.flows = (1..9).map(|source| flow(source, 0, 2_000_000)).collect();
            let outcome = common::run(config);
            delivered(&outcome);
            assert_eq!(outcome.totals.drops, 0);
            let again: u64 = outcome.flows.iter().map(|record| record.retransmitted_bytes).sum();
            println!("{scheduling}, {timeouts}: {again} B sent again, until {}", last(&outcome));
            again
        };
        let (rtt, literal) = (run("rtt"), run("literal"));
        assert_eq!(rtt, 0, "{scheduling}");
        assert!(scheduling != "srpt" || literal > 1_000_000, "{literal}");
    }
}

#[test]
fn alone_a_flow_saturates_its_link() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link, fabric_links: 1 };
    for scheduling in ["srpt", "round-robin"] {
        for bytes in [1, 700, u64::from(MTU), 100_000, 5_000_000] {
            let mut config = phost(fabric.build().expect("a good topology"), &[("scheduling", text(scheduling))]);
            config.flows = vec![flow(0, 3, bytes)];
            let outcome = common::run(config);
            delivered(&outcome);
            let record = &outcome.flows[0];
            // The RTS goes first: 102 bytes at the host, and at each switch what it is longer than the least packet.
            let late = took(record).saturating_sub(ideal(record));
            assert!(late <= Time::from_ns(11), "{bytes} B: {late} late");
            assert_eq!((record.retransmitted_bytes, record.timeouts), (0, 0), "{bytes} B");
        }
    }
}

/// Some senders that are busy, flows of many sizes, and a receiver that always has somebody to ask.
fn busy(parameters: &[(&str, Raw)]) -> Config {
    let mut config = phost(star(9), parameters);
    for source in 1..9 {
        let bytes = 150_000 * u64::from(source);
        config.flows.push(flow(source, 0, bytes));
        config.flows.push(at(20, flow(source, 1 + source % 8, 400_000)));
        config.flows.push(at(11 * u64::from(source), flow(source, 0, 9_000)));
    }
    config
}

#[test]
fn tokens_are_never_issued_faster_than_the_link_takes_packets() {
    for scheduling in ["srpt", "round-robin"] {
        let outcome = recorded(busy(&[("scheduling", text(scheduling))]));
        delivered(&outcome);
        for host in 0..9 {
            let times: Vec<Time> = tokens(&outcome, host).iter().map(|record| record.time).collect();
            assert!(times.len() > 50, "{}", times.len());
            // A packet of data may be in a token's way at the NIC: one may be late, and none early.
            for (index, time) in times.iter().enumerate() {
                for (later, other) in times.iter().enumerate().skip(index + 1) {
                    let least = packet_time().saturating_mul((later - index - 1) as u64);
                    assert!(*other - *time >= least, "{host}: {} tokens in {}", later - index, *other - *time);
                }
            }
        }
    }
}

#[test]
fn the_tokens_of_a_sender_that_does_not_use_them_go_to_others() {
    // The sender of the shorter flow, which goes first, is cut off from 50 us on, for longer than the other one takes.
    let mut config = phost(star(3), &[]);
    let event = |us, up| link_event(&config.topology, Time::from_us(us), "h1-s0", up);
    config.link_events = vec![event(50, false), event(900, true)];
    config.flows = vec![flow(1, 0, 2_000_000), flow(2, 0, 5_000_000)];
    let outcome = recorded(config);
    delivered(&outcome);
    let other = &outcome.flows[1];
    let wasted = took(other) - ideal(other);
    // The 50 us before, and of the rest a window's worth of tokens and one more in each 25 t_p or 3 RTTs.
    assert!(wasted < Time::from_us(50) + ideal(other).mul_f64(0.5), "{wasted}");
    let idle = |from: u64, until: u64| {
        let to_idle = tokens(&outcome, 0).into_iter().filter(|record| record.packet.destination == 1);
        to_idle.filter(|record| (Time::from_us(from)..Time::from_us(until)).contains(&record.time)).count()
    };
    // 300 us are 900 t_p.
    assert!((10..450).contains(&idle(60, 360)), "{}", idle(60, 360));
}

#[test]
fn the_shortest_flow_gets_the_tokens_or_all_get_the_same() {
    let took_of = |scheduling: &str| {
        // Few free tokens: with a BDP of each flow a queue of three stays at the receiver's port, and every flow's
        // tokens run ahead of its data by more than the window, one after the other.
        let parameters = [("scheduling", text(scheduling)), ("free_tokens", text("4096B"))];
        let mut config = phost(star(5), &parameters);
        config.flows = (1..5).map(|source| flow(source, 0, 1_000_000 * u64::from(source))).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows.iter().map(|record| took(record).as_us_f64()).collect::<Vec<f64>>()
    };
    // One megabyte takes 82 us.
    let srpt = took_of("srpt");
    for (index, expected) in [82.0, 246.0, 492.0, 820.0].into_iter().enumerate() {
        assert!((srpt[index] / expected - 1.0).abs() < 0.15, "{srpt:?}");
    }
    let turns = took_of("round-robin");
    for (index, expected) in [328.0, 574.0, 738.0, 820.0].into_iter().enumerate() {
        assert!((turns[index] / expected - 1.0).abs() < 0.15, "{turns:?}");
    }
}

/// A link of the receiver that is down for the time of three packets, in the midst of what is sent blindly, or later.
#[test]
fn what_is_lost_is_repaired_within_25_packet_times() {
    for waits in ["rtt", "literal"] {
        for us in [5u64, 30] {
            let link = link(100, Time::from_ns(300));
            let topology = SingleSwitch { hosts: 2, link }.build().expect("a good topology");
            let mut config = phost(topology, &[("timeouts", text(waits))]);
            let event = |ns: u64, up| link_event(&config.topology, Time::from_ns(us * 1000 + ns), "h0-s0", up);
            config.link_events = vec![event(0, false), event(1_000, true)];
            config.flows = vec![flow(0, 1, 600_000)];
            let outcome = common::run(config);
            delivered(&outcome);
            let record = &outcome.flows[0];
            let late = took(record).saturating_sub(ideal(record));
            assert!(outcome.totals.lost > 0, "{us}");
            let t = packet_time();
            assert!(late > t && late < t.saturating_mul(30), "{waits} {us}: {late}, t_p is {t}");
            assert_eq!(record.timeouts, 0);
        }
    }
}

#[test]
fn a_flow_of_which_all_is_lost_is_announced_again() {
    let mut config = phost(star(2), &[]);
    let event = |us, up| link_event(&config.topology, Time::from_us(us), "h1-s0", up);
    config.link_events = vec![event(0, false), event(50, true)];
    config.host.rto_min = Time::from_us(400);
    config.flows = vec![flow(0, 1, 30_000)];
    let outcome = common::run(config);
    delivered(&outcome);
    assert_eq!(outcome.flows[0].timeouts, 1);
    assert!(took(&outcome.flows[0]) < Time::from_us(430), "{}", took(&outcome.flows[0]));
}

/// Long paths: with waits of so many t_p, what is on its way is taken as lost.
#[test]
fn waits_grow_with_the_path() {
    let again = |waits: &str| {
        let topology = SingleSwitch { hosts: 3, link: link(100, Time::from_us(25)) }.build();
        let mut config = phost(topology.expect("a good topology"), &[("timeouts", text(waits))]);
        config.flows = vec![flow(1, 0, 3_000_000), flow(2, 0, 3_000_000)];
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows.iter().map(|record| record.retransmitted_bytes).sum::<u64>()
    };
    assert_eq!(again("rtt"), 0);
    assert!(again("literal") > 100_000, "{}", again("literal"));
}

#[test]
fn three_priorities_and_free_tokens_for_all_or_for_the_short() {
    for (free_tokens_for, blind) in [("all", true), ("short", false)] {
        let parameters = [("free_tokens_for", text(free_tokens_for)), ("free_tokens", text("32KB"))];
        let mut config = phost(star(3), &parameters);
        config.flows = vec![flow(1, 0, 30_000), flow(2, 0, 300_000)];
        let outcome = recorded(config);
        delivered(&outcome);
        for record in &outcome.packets {
            let expected = match (record.packet.kind, record.packet.source) {
                (Kind::Data, 1) => 1,
                (Kind::Data, _) => 2,
                _ => 0,
            };
            assert_eq!(record.packet.priority, expected, "{record:?}");
        }
        let first = outcome.packets.iter().find(|record| record.node == 2 && record.packet.kind == Kind::Data);
        let first = first.expect("it sends").time;
        assert_eq!(first < Time::from_us(1), blind, "{first}");
    }
}

fn lossy(loss: f64, seed: u64, sizes: &[u64], buffer: u64, srpt: bool) -> Outcome {
    let lossy = Link { loss, ..link(100, Time::from_us(1)) };
    let topology = SingleSwitch { hosts: 5, link: lossy }.build().expect("a good topology");
    let (scheduling, free) = if srpt { ("srpt", "all") } else { ("round-robin", "short") };
    let parameters = [("scheduling", text(scheduling)), ("free_tokens_for", text(free))];
    let mut config = phost(topology, &parameters);
    config.switch.buffer = Buffer::PerPort { bytes: buffer };
    config.host.rto_min = Time::from_us(100);
    config.end = Time::from_ms(10_000);
    config.seed = seed;
    for (index, bytes) in sizes.iter().enumerate() {
        config.flows.push(at(index as u64 % 5, flow(1 + index as u32 % 4, 0, *bytes)));
    }
    common::run(config)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Data, RTSs, tokens and acknowledgements may all be lost.
    #[test]
    fn whatever_is_lost_every_flow_arrives(
        loss in 0.0f64..0.3, seed in any::<u64>(), srpt in any::<bool>(), buffer in 10_000u64..200_000,
        sizes in prop::collection::vec(1u64..400_000, 1..12),
    ) {
        let outcome = lossy(loss, seed, &sizes, buffer, srpt);
        prop_assert!(outcome.complete, "{:?}", outcome.flows);
        delivered(&outcome);
    }
}

#[test]
fn spraying_changes_no_promise() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 3, spines: 4, hosts_per_leaf: 4, host_link: link, fabric_link: link, fabric_links: 1 };
    let mut config = phost(fabric.build().expect("a good topology"), &[]);
    config.switch.load_balancing = LoadBalancing::Spray;
    config.flows = (1..12).map(|source| flow(source, 0, 500_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    assert!(outcome.flows.iter().any(|record| record.reordered_packets > 0));
}

/// 500 senders, 100 KB each, 1 Gbit/s: free tokens overflow the buffer by far.
#[test]
fn a_large_incast_completes() {
    for scheduling in ["srpt", "round-robin"] {
        let link = Link { rate: Rate::from_gbps(1), delay: Time::from_us(10), loss: 0.0 };
        let topology = SingleSwitch { hosts: 501, link }.build().expect("a good topology");
        let mut config = phost(topology, &[("scheduling", text(scheduling))]);
        config.switch.buffer = Buffer::PerPort { bytes: 300_000 };
        config.host.rto_min = Time::from_ms(5);
        config.end = Time::from_ms(60_000);
        config.flows = (1..501).map(|source| flow(source, 0, 100_000)).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        assert!(outcome.totals.drops > 0);
        let goodput = 500.0 * 100_000.0 * 8.0 / last(&outcome).as_secs_f64() / 1e9;
        println!("{scheduling}: goodput {goodput:.3}, {} drops", outcome.totals.drops);
        assert!(goodput > 0.8, "{goodput}");
    }
}

/// An RTS goes before everything else, and is of no use once the receiver has said anything.
#[test]
fn who_was_heard_of_is_not_announced_again() {
    let link = Link { rate: Rate::from_gbps(1), delay: Time::from_us(10), loss: 0.0 };
    let topology = SingleSwitch { hosts: 41, link }.build().expect("a good topology");
    let mut config = phost(topology, &[("scheduling", text("round-robin"))]);
    config.switch.buffer = Buffer::PerPort { bytes: 300_000 };
    // A flow has a token each 1.4 ms.
    config.host.rto_min = Time::from_us(500);
    config.flows = (1..41).map(|source| flow(source, 0, 200_000)).collect();
    let outcome = recorded(config);
    delivered(&outcome);
    let is_rts = |record: &&PacketRecord| record.packet.kind == Kind::Signal && record.node < 41;
    let sent = outcome.packets.iter().filter(is_rts);
    let sent = sent.filter(|record| matches!(record.step, Step::Sent { .. })).count();
    // One, those before the first token, and those while the last packets wait in the queue. Each token gap would have
    // one more.
    assert!((40..240).contains(&sent), "{sent} for 40 flows");
}

/// The host's rate decides how much it sends blindly, and the receivers' how fast it takes data: neither knows the
/// other's.
#[test]
fn hosts_of_several_rates_understand_each_other() {
    let mut config = phost(common::two_rates(), &[]);
    config.flows = common::between_rates();
    let outcome = common::run(config);
    delivered(&outcome);
    for record in &outcome.flows {
        let slowdown = took(record).as_secs_f64() / ideal(record).as_secs_f64();
        let (from, to, bytes) = (record.source, record.destination, record.bytes);
        println!("{from} to {to}, {bytes} B: {slowdown:.2}, {} again", record.retransmitted_bytes);
        assert!(slowdown < 6.0 && record.timeouts == 0, "{record:?}: {slowdown}");
    }
}
