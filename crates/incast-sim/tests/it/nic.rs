//! What a host's NIC sends next: the choice is made when all that can become ready at an instant is, whatever came first.

use crate::common;
use common::{MTU, OVERHEAD, flow, link, text};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, ClassConfig, PaceCredit},
    fabric::node::class,
    simulate,
    topology::{Link, SingleSwitch},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

const GBPS: u64 = 100;
/// Picoseconds of a full packet on the link.
const PACKET: u64 = (MTU as u64 + OVERHEAD) * 80;

/// Two classes at host 0, to hosts 1 and 2: the first is of `priority` 0 and under a law of its own, the second, of
/// priority 1, always has a packet ready.
fn two_classes(delay: Time, law: &str, parameters: &[(&str, &str)], first: FlowSpec) -> Config {
    let topology = SingleSwitch { hosts: 3, link: link(GBPS, delay) }.build().expect("a topology");
    let given: Vec<_> = parameters.iter().map(|(key, value)| (*key, text(value))).collect();
    let own = common::class(&topology, MTU, law, &given);
    let mut config = common::unlimited(topology);
    config.classes.insert(0, own);
    config.classes[1].priority = 1;
    config.switch.priorities = 2;
    config.flows = vec![first, FlowSpec { class: 1, ..flow(0, 2, 4_000_000) }];
    config
}

/// How long the first flow takes beyond `expected`.
fn late(config: Config, expected: Time) -> Time {
    let outcome = simulate(config).expect("a configuration that can be run");
    let flow = outcome.flows.iter().find(|flow| flow.destination == 1).expect("the first flow");
    flow.delivered.expect("delivered") - flow.start - expected
}

fn ideal_of_a_packet(delay: Time) -> Time {
    Time::from_ps(2 * PACKET) + delay * 2
}

/// Each kind of event that makes a packet of priority 0 ready, at the instant at which a packet of priority 1 has left.
#[test]
fn whatever_becomes_ready_as_the_nic_gets_free_is_among_its_choices() {
    let delay = Time::from_us(1);
    let alone = ideal_of_a_packet(delay);
    let full = u64::from(MTU);
    // The start of a flow.
    for packets in [1, 2, 7] {
        let start = Time::from_ps(packets * PACKET);
        let first = FlowSpec { start, ..flow(0, 1, full) };
        assert_eq!(late(two_classes(delay, "constant-window", &[], first), alone), Time::ZERO, "{packets} packets");
    }
    // The pace: one packet in the time of `every`.
    for every in [1, 2, 3] {
        let rate = format!("{}bps", GBPS * 1_000_000_000 / every);
        let config = two_classes(delay, "constant-rate", &[("rate", &rate)], flow(0, 1, 10 * full));
        let expected = Time::from_ps(9 * every * PACKET) + alone;
        // 100 Gbit/s over three is no whole number of picoseconds for a packet.
        let rounding = Time::from_ps(if every == 3 { 10 } else { 0 });
        assert!(late(config, expected) <= rounding, "one of {every} packets");
    }
    // An acknowledgement: the round trip is a whole number of packet times.
    for round in [9, 12] {
        let delay = Time::from_ps(((round - 2) * PACKET - 2 * ack_time()) / 4);
        let window = format!("{MTU}B");
        let config = two_classes(delay, "constant-window", &[("window", &window)], flow(0, 1, 5 * full));
        let expected = Time::from_ps(4 * round * PACKET) + ideal_of_a_packet(delay);
        assert_eq!(late(config, expected), Time::ZERO, "round trips of {round} packets");
    }
}

/// Picoseconds of an acknowledgement on the link.
fn ack_time() -> u64 {
    let topology = SingleSwitch { hosts: 3, link: link(GBPS, Time::from_us(1)) }.build().expect("a topology");
    let class = common::class(&topology, MTU, "constant-window", &[]);
    (u64::from(class.format.control()) + 20) * 80
}

/// Links first, so that nothing is sent into a dead one; a switch's link is taken before what arrives sees it; a host
/// chooses after all else.
#[test]
fn the_order_of_events_at_an_instant() {
    let order = [
        class::LINK,
        class::DEPARTURE,
        class::ARRIVAL,
        class::RETRANSMISSION,
        class::RELEASE,
        class::LAW,
        class::DELAYED_ACK,
        class::SCHEDULER,
        class::FLOW_START,
        class::AGENT,
        class::PAUSE,
        class::LATE_DEPARTURE,
        class::RESPONSE,
        class::NIC,
    ];
    assert!(order.is_sorted());
}

/// Bytes on the wire that each flow of host 0 has sent at 100 Gbit/s, as shares.
fn shares(outcome: &Outcome) -> Vec<f64> {
    let wire = |payload: u64| payload.div_ceil(u64::from(MTU)) * (u64::from(MTU) + OVERHEAD);
    let all = outcome.ended_at.as_secs_f64() * 1e9 * GBPS as f64 / 8.0;
    outcome.flows.iter().map(|flow| wire(flow.delivered_bytes) as f64 / all).collect()
}

fn paced(percent: &[u64], priorities: &[u8], credit: PaceCredit) -> Config {
    let hosts = percent.len() as u32 + 1;
    let topology = SingleSwitch { hosts, link: link(GBPS, Time::from_us(1)) }.build().expect("a topology");
    let class = |(percent, priority): (&u64, &u8)| {
        let rate = format!("{}Mbps", percent * GBPS * 10);
        let mut class = common::class(&topology, MTU, "constant-rate", &[("rate", text(&rate))]);
        class.priority = *priority;
        class
    };
    let classes = percent.iter().zip(priorities).map(class).collect();
    let mut config = common::unlimited(topology.clone());
    config.classes = classes;
    config.switch.priorities = 8;
    config.host.pace_credit = credit;
    config.flows = (1..hosts).map(|to| FlowSpec { class: to as u16 - 1, ..flow(0, to, 1 << 40) }).collect();
    config.end = Time::from_ms(20);
    config
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Paces that together are below the NIC's rate are kept, whatever their priorities.
    #[test]
    fn paces_that_fit_are_kept(weights in proptest::collection::vec((1u64..40, 0u8..8), 2..12)) {
        let sum: u64 = weights.iter().map(|(weight, _)| weight).sum();
        let percent: Vec<u64> = weights.iter().map(|(weight, _)| (weight * 95 / sum).max(1)).collect();
        prop_assume!(percent.iter().sum::<u64>() <= 97);
        let priorities: Vec<u8> = weights.iter().map(|(_, priority)| *priority).collect();
        let outcome = simulate(paced(&percent, &priorities, PaceCredit::default())).expect("a run");
        for (share, percent) in shares(&outcome).iter().zip(&percent) {
            let wanted = *percent as f64 / 100.0;
            prop_assert!((share - wanted).abs() < 0.02 * wanted + 0.001, "{share} for {wanted}, of {weights:?}");
        }
    }
}

/// 55 beside 40 of 100.
#[test]
fn each_rule_of_credit_gives_back_what_it_says() {
    let shares = |credit| {
        let outcome = simulate(paced(&[55, 40], &[0, 0], credit)).expect("a run");
        shares(&outcome).iter().map(|share| (share * 1000.0).round() / 10.0).collect::<Vec<_>>()
    };
    assert_eq!(shares(PaceCredit::None), [40.0, 40.0], "every wait puts off all later packets");
    assert_eq!(shares(PaceCredit::Burst { packets: 1 }), [55.0, 40.0]);
    assert_eq!(shares(PaceCredit::default()), [55.0, 40.0]);
    assert_eq!(shares(PaceCredit::HalfPacket), [55.0, 40.0], "no wait is longer than half of a gap");
}

/// A flow's own packets keep it waiting where its pace is above the link's rate; and a window, an application. Neither is
/// given back.
#[test]
fn only_a_wait_for_others_is_given_back() {
    let mut topology = SingleSwitch { hosts: 2, link: link(GBPS, Time::from_us(1)) }.build().expect("a topology");
    // The receiver's link is slower: bursts would show in its queue.
    topology.cables[1].link.rate = Rate::from_gbps(10);
    let run = |credit| {
        let mut config = common::config(topology.clone(), "bbr", &[]);
        config.flows = vec![flow(0, 1, 40_000_000)];
        config.host.pace_credit = credit;
        simulate(config).expect("a run").flows[0].delivered
    };
    assert_eq!(run(PaceCredit::default()), run(PaceCredit::None));
}

/// RFC 9438, sections 4.2 and 5.8: CUBIC's curve stands still while a flow of a higher priority has the NIC for four seconds.
/// Otherwise the window would be at the value of four seconds later with the first acknowledgement.
#[test]
fn a_curve_stands_still_while_a_flow_is_starved() {
    let mut topology =
        SingleSwitch { hosts: 3, link: Link { rate: Rate::from_bps(100_000_000), ..link(GBPS, Time::from_us(500)) } }
            .build()
            .expect("a topology");
    topology.cables[2].link.rate = Rate::from_bps(50_000_000);
    let (start, starved) = (Time::from_ms(3_000), Time::from_ms(4_000));
    let class = |law, priority, parameters: &[(&str, Raw)]| ClassConfig {
        priority,
        ..common::class(&topology, MTU, law, parameters)
    };
    let classes = vec![class("constant-rate", 0, &[("rate", text("100Mbps"))]), class("cubic", 1, &[])];
    let mut config = common::unlimited(topology);
    config.classes = classes;
    config.switch.priorities = 2;
    config.switch.buffer = Buffer::PerPort { bytes: 100_000 };
    config.flows = vec![
        FlowSpec { class: 1, ..flow(0, 2, 1 << 40) },
        FlowSpec { start, ..flow(0, 1, starved.as_secs_f64() as u64 * 12_500_000) },
    ];
    config.probes.rates = Some((Time::from_ms(10), 0));
    config.end = start + starved + Time::from_ms(1_000);
    let outcome = simulate(config).expect("a run");
    let window = |at: Time| {
        let mut samples = outcome.rates.iter().filter(|sample| sample.sequence == 0 && sample.time >= at);
        samples.next().expect("a sample").window_bytes as f64
    };
    let (before, after) = (window(start), window(start + starved.mul_f64(1.04) + Time::from_ms(40)));
    assert!(before > 10_000.0 && after < 1.25 * before, "{before} B, then {after} B");
}
