//! Whatever the network loses, every flow arrives exactly.

use crate::common::{self, MTU, config, delivered, flow, link, link_event, unlimited};
use incast_cc::{
    law::Recovery,
    receiver_driven::credit::WindowCredit,
    registry::{LAWS, Scheduler},
};
use incast_sim::{
    Config,
    config::{Buffer, Ecn, Size},
    outcome::EventKind,
    topology::{Dumbbell, SingleSwitch, Topology, file::parse},
};
use incast_units::Time;

const RECOVERIES: [Recovery; 3] = [Recovery::RackTlp, Recovery::SelectiveRepeat, Recovery::GoBackN];

fn with(topology: &Topology, law: &str, recovery: Recovery) -> Config {
    let mut config = config(topology.clone(), law, &[]);
    config.classes[0].recovery = recovery;
    config.host.rto_min = Time::from_us(100);
    config.end = Time::from_ms(20_000);
    if law == "credit" {
        // Repeating lost credit is up to a receiver-driven protocol; here each one covers the whole flow.
        config.drive(Scheduler::Credit(WindowCredit { ahead: 1 << 20, priority: None }));
    }
    config
}

#[test]
fn random_loss_delays_but_never_corrupts() {
    let link = link(100, Time::from_us(1));
    let topology = Dumbbell { left: 2, right: 2, host_link: link, bottleneck: link }.build();
    let mut topology = topology.expect("a good topology");
    let bottleneck = topology.find_cable("s0-s1").expect("the bottleneck");
    for loss in [0.0, 0.001, 0.01, 0.05, 0.2] {
        topology.cables[bottleneck].link.loss = loss;
        for law in LAWS {
            for recovery in RECOVERIES {
                for ack_every in [1, 4] {
                    let mut config = with(&topology, law.name, recovery);
                    config.host.ack_every = ack_every;
                    config.host.ack_delay = Time::from_us(20);
                    config.flows = [1, 300_001, 4 * u64::from(MTU)]
                        .iter()
                        .flat_map(|bytes| [flow(0, 2, *bytes), flow(3, 1, *bytes)])
                        .collect();
                    let outcome = common::run(config);
                    let what = format!("{} with {recovery:?}, an ACK for {ack_every}, loss {loss}", law.name);
                    assert!(outcome.complete, "{what}: {:?}", outcome.flows);
                    delivered(&outcome);
                    let again: u64 = outcome.flows.iter().map(|flow| flow.retransmitted_bytes).sum();
                    if loss == 0.0 {
                        assert_eq!((outcome.totals.lost, again), (0, 0), "{what}");
                    } else if loss >= 0.05 {
                        assert!(outcome.totals.lost > 0 && again > 0, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn loss_is_as_frequent_as_asked_for() {
    let lossy = |loss| incast_sim::topology::Link { loss, ..link(100, Time::from_us(1)) };
    for loss in [0.01, 0.2] {
        let topology = SingleSwitch { hosts: 2, link: lossy(loss) }.build().expect("a good topology");
        let mut config = unlimited(topology);
        config.flows = vec![flow(0, 1, 40_000_000)];
        let outcome = common::run(config);
        delivered(&outcome);
        let hops = (outcome.totals.packet_hops + outcome.totals.lost) as f64;
        let share = outcome.totals.lost as f64 / hops;
        // Four standard deviations.
        let bound = 4.0 * (loss * (1.0 - loss) / hops).sqrt();
        assert!((share - loss).abs() < bound, "{share} of packets were lost in place of {loss}");
    }
}

/// A sender close to its switch, so that few packets are on its link, and a receiver far away.
fn near_and_far() -> Topology {
    parse("host near\nhost far\nswitch s\nlink near s 100Gbps 5ns\nlink far s 100Gbps 10us\n").expect("a good topology")
}

/// The sender's link goes down for a moment while packet `lost` (from 0) is on it and nothing else is.
fn lose_one(lost: u64, packets: u64) -> Config {
    let mut config = unlimited(near_and_far());
    // A full packet takes (4096 + 90) * 80 ps.
    let starts = Time::from_ps((u64::from(MTU) + common::OVERHEAD) * 80 * lost);
    let event = |ns, up| link_event(&config.topology, starts + Time::from_ns(ns), "near-s", up);
    config.link_events = vec![event(100, false), event(150, true)];
    config.flows = vec![flow(0, 1, packets * u64::from(MTU))];
    config.host.rto_min = Time::from_ms(5);
    config
}

#[test]
fn a_probe_repairs_a_lost_tail_without_a_timeout() {
    let outcome = common::run(lose_one(9, 10));
    delivered(&outcome);
    let flow = &outcome.flows[0];
    assert_eq!(outcome.totals.lost, 1);
    assert_eq!((flow.timeouts, flow.retransmitted_bytes), (0, u64::from(MTU)));
    // Two smoothed RTTs after the last acknowledgement (RFC 8985), far before the timeout of 5 ms.
    let ended = flow.delivered;
    assert!(ended > Some(Time::from_us(60)) && ended < Some(Time::from_us(90)), "{ended:?}");
}

#[test]
fn three_later_packets_repair_a_loss_at_once() {
    let outcome = common::run(lose_one(3, 20));
    delivered(&outcome);
    let flow = &outcome.flows[0];
    assert_eq!(outcome.totals.lost, 1);
    assert_eq!((flow.timeouts, flow.retransmitted_bytes), (0, u64::from(MTU)));
    // Only the repaired packet came after one with a later position.
    assert_eq!(flow.reordered_packets, 1);
    assert!(flow.delivered < Some(Time::from_us(40)), "{:?}", flow.delivered);
}

#[test]
fn go_back_n_starts_again_at_the_gap() {
    let mut config = lose_one(3, 20);
    config.classes[0].recovery = Recovery::GoBackN;
    let outcome = common::run(config);
    delivered(&outcome);
    let flow = &outcome.flows[0];
    assert_eq!((flow.timeouts, flow.reordered_packets), (0, 0));
    // All sixteen later ones were on their way.
    assert_eq!(flow.retransmitted_bytes, 17 * u64::from(MTU));
}

#[test]
fn the_first_expiry_saves_a_lone_packet() {
    // Without an RTT sample the tail loss probe comes at the time of the timeout (RFC 8985, section 7.2).
    for (recovery, timeouts) in [(Recovery::RackTlp, 0), (Recovery::SelectiveRepeat, 1), (Recovery::GoBackN, 1)] {
        let mut config = lose_one(0, 1);
        config.classes[0].recovery = recovery;
        let outcome = common::run(config);
        delivered(&outcome);
        let flow = &outcome.flows[0];
        assert_eq!((flow.timeouts, outcome.totals.lost), (timeouts, 1));
        let ideal = flow.ideal.expect("it has a route");
        assert_eq!(flow.delivered, Some(Time::from_ms(5) + ideal));
    }
}

/// A law that has cut its window below what is in flight leaves no room for a probe, which goes all the same.
#[test]
fn the_window_does_not_stop_a_probe() {
    for recovery in [Recovery::RackTlp, Recovery::SelectiveRepeat] {
        // The last two packets of a window are lost, and marks have cut the window meanwhile.
        let topology = SingleSwitch { hosts: 9, link: link(100, Time::from_us(1)) }.build();
        let mut config = with(&topology.expect("a good topology"), "dctcp", recovery);
        config.switch.buffer = Buffer::PerPort { bytes: 100_000 };
        config.switch.ecn = Ecn::Step { at: Size::Bytes(10_000) };
        config.host.rto_min = Time::from_ms(10);
        config.flows = (1..9).map(|source| flow(source, 0, 200_000)).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        assert!(outcome.totals.drops > 20, "{recovery:?}: {} drops", outcome.totals.drops);
        let timeouts: u32 = outcome.flows.iter().map(|flow| flow.timeouts).sum();
        assert_eq!(timeouts, 0, "{recovery:?}");
    }
}

#[test]
fn timeouts_double() {
    let mut config = unlimited(near_and_far());
    config.classes[0].recovery = Recovery::SelectiveRepeat;
    config.host.rto_min = Time::from_ms(1);
    let event = |ms, up| link_event(&config.topology, Time::from_ms(ms), "far-s", up);
    config.link_events = vec![event(0, false), event(100, true)];
    config.flows = vec![flow(0, 1, 1)];
    config.probes.events = true;
    let outcome = common::run(config);
    delivered(&outcome);
    let timeouts = outcome.events.iter().filter(|event| event.kind == EventKind::Timeout);
    let times: Vec<Time> = timeouts.map(|event| event.time).collect();
    // At 1, 1 + 2, 1 + 2 + 4, … ms, and the first one after the repair gets through.
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 127].map(Time::from_ms));
    assert_eq!(outcome.flows[0].timeouts, 7);
    assert_eq!(outcome.totals.lost, 7);
}

#[test]
fn an_incast_into_a_tiny_buffer_completes() {
    let topology = SingleSwitch { hosts: 33, link: link(100, Time::from_us(1)) }.build();
    let topology = topology.expect("a good topology");
    for law in LAWS {
        for recovery in RECOVERIES {
            let mut config = with(&topology, law.name, recovery);
            config.switch.buffer = Buffer::PerPort { bytes: 20_000 };
            config.flows = (1..33).map(|source| flow(source, 0, 100_000)).collect();
            let outcome = common::run(config);
            let what = format!("{} with {recovery:?}", law.name);
            assert!(outcome.complete, "{what}");
            delivered(&outcome);
            assert!(outcome.totals.drops > 0, "{what}");
            assert!(outcome.totals.max_queue_bytes <= 20_000 + 4_200, "{what}");
        }
    }
}

/// Credit that is lost leaves the sender with nothing in flight and nothing allowed; nobody then speaks
/// first.
#[test]
fn lost_credit_does_not_stop_a_flow_for_good() {
    let lossy = incast_sim::topology::Link { loss: 0.05, ..link(100, Time::from_us(1)) };
    let topology = SingleSwitch { hosts: 2, link: lossy }.build().expect("a good topology");
    let mut config = with(&topology, "credit", Recovery::SelectiveRepeat);
    config.drive(Scheduler::Credit(WindowCredit { ahead: 2 * u64::from(MTU), priority: None }));
    config.flows = vec![flow(0, 1, 10_000_000)];
    delivered(&common::run(config));
}

/// Every packet that is lost leaves a record, where records are kept.
#[test]
fn losses_are_recorded() {
    let lossy = incast_sim::topology::Link { loss: 0.05, ..link(100, Time::from_us(1)) };
    let topology = SingleSwitch { hosts: 2, link: lossy }.build().expect("a good topology");
    let mut config = unlimited(topology);
    config.flows = vec![flow(0, 1, 1_000_000)];
    config.probes.events = true;
    let outcome = common::run(config);
    let recorded = outcome.events.iter().filter(|event| event.kind == EventKind::Lost).count() as u64;
    assert_eq!(recorded, outcome.totals.lost);
}
