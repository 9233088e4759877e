//! What hosts do on request as Linux does it: acknowledgements of several packets, flags in place of counts, ticks,
//! handshakes.

use crate::common::{self, config, delivered, flow, ideal, link_event, run, star, text, took, unlimited};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, Outcome,
    config::{Echo, Ecn, Size},
    outcome::{PacketRecord, Step},
    packet::Kind,
    probe::PacketFilter,
};
use incast_units::Time;

const MTU: u64 = common::MTU as u64;
/// Preamble and gap.
const GAP: u64 = 20;

/// Runs it and records everything.
fn recorded(mut config: Config) -> Outcome {
    config.probes.packets =
        Some(PacketFilter { flow: None, ports: Vec::new(), from: Time::ZERO, until: Time::MAX, most: usize::MAX });
    let outcome = run(config);
    delivered(&outcome);
    outcome
}

/// Packets of a kind that a node has sent.
fn sent(outcome: &Outcome, node: u32, kind: Kind) -> Vec<&PacketRecord> {
    let is_sent = |record: &&PacketRecord| matches!(record.step, Step::Sent { .. });
    let of_kind = |record: &&PacketRecord| record.node == node && record.packet.kind == kind;
    outcome.packets.iter().filter(is_sent).filter(of_kind).collect()
}

/// When the last bit of each data packet reached host 1.
fn arrivals(outcome: &Outcome) -> Vec<Time> {
    let at_switch = |record: &&PacketRecord| record.node == 2 && record.packet.kind == Kind::Data;
    let arrival = |record: &PacketRecord| match record.step {
        Step::Sent { arrival, .. } => arrival,
        _ => None,
    };
    outcome.packets.iter().filter(at_switch).filter_map(arrival).collect()
}

#[test]
fn every_second_packet_is_acknowledged_and_the_first_ones_each() {
    for (quick, acknowledgements) in [(0, 10), (7, 7 + 6 + 1), (20, 20), (u32::MAX, 20)] {
        let mut config = unlimited(star(2));
        config.host.ack_every = 2;
        config.host.ack_delay = Time::from_ms(40);
        config.host.quick_acks = quick;
        config.flows = vec![flow(0, 1, 20 * MTU)];
        let outcome = recorded(config);
        let acks = sent(&outcome, 1, Kind::Ack);
        assert_eq!(acks.len(), acknowledgements, "the first {quick} each");
        let reported: u32 = acks.iter().map(|ack| ack.packet.report.0).sum();
        assert_eq!(reported, 20);
        for ack in acks.iter().filter(|ack| ack.packet.position >= quick && ack.packet.position < 19) {
            assert_eq!(ack.packet.report.0, 2, "{ack:?}");
        }
    }
}

#[test]
fn a_delayed_acknowledgement_comes_when_its_timer_expires() {
    let delay = Time::from_us(500);
    for (tick, due) in [
        (Time::ZERO, &(|arrived: Time| arrived + delay) as &dyn Fn(Time) -> Time),
        (Time::from_us(300), &|arrived| Time::from_us(300 * ((arrived + delay).ps() / 300_000_000 + 1))),
    ] {
        // One packet at a time, so that the second one never comes.
        let mut config = config(star(2), "constant-window", &[("window", text("4096B"))]);
        config.host.ack_every = 2;
        config.host.ack_delay = delay;
        config.host.timer_tick = tick;
        config.host.rto_min = Time::from_ms(100);
        config.flows = vec![flow(0, 1, 4 * MTU)];
        let outcome = recorded(config);
        let (arrivals, acks) = (arrivals(&outcome), sent(&outcome, 1, Kind::Ack));
        assert_eq!((arrivals.len(), acks.len()), (4, 4));
        for (arrived, ack) in arrivals[..3].iter().zip(&acks) {
            assert_eq!(ack.time, due(*arrived), "tick {tick}, arrived at {arrived}");
        }
        assert_eq!(acks[3].time, arrivals[3], "the last packet is acknowledged at once");
    }
}

#[test]
fn flags_tell_of_each_mark() {
    let outcome = |echo| {
        let mut config = config(star(5), "dctcp", &[("initial_window", text("40KB"))]);
        config.switch.ecn = Ecn::Step { at: Size::Bytes(30_000) };
        config.host.ack_every = 4;
        config.host.ack_delay = Time::from_us(20);
        config.host.echo = echo;
        config.flows = (1..5).map(|source| flow(source, 0, 500 * MTU)).collect();
        recorded(config)
    };
    let is_mixed = |ack: &&&PacketRecord| (1..ack.packet.report.0).contains(&ack.packet.report.1);
    let counts = outcome(Echo::Counts);
    let mixed = sent(&counts, 0, Kind::Ack).iter().filter(is_mixed).count();
    assert!(mixed > 10, "{mixed} acknowledgements report packets with marks and without");
    let flags = outcome(Echo::Flag);
    let acks = sent(&flags, 0, Kind::Ack);
    assert_eq!(acks.iter().filter(is_mixed).count(), 0);
    for outcome in [&counts, &flags] {
        let marked: u32 = outcome.flows.iter().map(|flow| flow.marked_packets).sum();
        let reported: u32 = sent(outcome, 0, Kind::Ack).iter().map(|ack| ack.packet.report.1).sum();
        assert!(marked > 10 && marked == reported, "{marked} marks, {reported} reported");
    }
    // An acknowledgement for what came before the change, and one for the packet that brought it, which came no later.
    let several = acks.iter().filter(|ack| ack.packet.report.0 > 1 && ack.packet.report.1 == 0).count();
    assert!(several > 10, "{several}");
    for pair in acks.windows(2).filter(|pair| pair[0].packet.sequence == pair[1].packet.sequence) {
        let same_flow = pair[0].packet.destination == pair[1].packet.destination;
        assert!(!same_flow || pair[0].packet.packets <= pair[1].packet.packets, "{pair:?}");
    }
}

/// What two control packets take there and back through the switch.
fn round_trip(config: &Config) -> Time {
    let frame = u64::from(config.classes[0].format.control()) + GAP;
    (Time::from_us(1) + Time::from_ps(frame * 80)).saturating_mul(4)
}

#[test]
fn a_handshake_takes_a_round_trip_of_control_packets() {
    for law in ["dctcp", "cubic", "bbr", "dcqcn", "marimo", "swift"] {
        let mut config = config(star(2), law, &[]);
        let parameters: Vec<(&str, Raw)> = Vec::new();
        config.classes = vec![common::class(&config.topology, common::MTU, law, &parameters)];
        config.flows = vec![flow(0, 1, MTU)];
        let alone = took(&run_one(&mut config, false).flows[0]);
        let trip = round_trip(&config);
        let outcome = run_one(&mut config, true);
        assert_eq!(took(&outcome.flows[0]), alone + trip, "{law}");
        assert_eq!(alone, ideal(&outcome.flows[0]), "{law}");
        assert_eq!(sent(&outcome, 0, Kind::Syn).len(), 1);
        assert_eq!(sent(&outcome, 1, Kind::SynAck).len(), 1);
    }
}

/// Runs a copy with a handshake or without.
fn run_one(config: &mut Config, handshake: bool) -> Outcome {
    let mut copy = common::config(star(2), "dctcp", &[]);
    copy.classes = config.classes.clone();
    copy.flows = config.flows.clone();
    copy.host = config.host.clone();
    copy.link_events = config.link_events.clone();
    copy.end = Time::from_ms(10_000);
    copy.host.handshake = handshake;
    recorded(copy)
}

#[test]
fn a_lost_question_is_asked_again_after_a_second() {
    for (tick, asked) in [(Time::ZERO, Time::from_ms(1000)), (Time::from_ms(4), Time::from_ms(1004))] {
        let mut config = config(star(2), "dctcp", &[]);
        config.flows = vec![flow(0, 1, MTU)];
        config.host.timer_tick = tick;
        let names = [(Time::ZERO, false), (Time::from_ms(500), true)];
        config.link_events = names.map(|(at, up)| link_event(&config.topology, at, "h1-s0", up)).to_vec();
        let trip = round_trip(&config);
        let outcome = run_one(&mut config, true);
        let questions: Vec<Time> = sent(&outcome, 0, Kind::Syn).iter().map(|record| record.time).collect();
        assert_eq!(questions, [Time::ZERO, asked]);
        assert_eq!(outcome.flows[0].timeouts, 1);
        assert_eq!(took(&outcome.flows[0]), asked + trip + ideal(&outcome.flows[0]));
    }
}

#[test]
fn retransmission_timers_expire_at_ticks() {
    let millisecond = Time::from_ms(1);
    for (tick, sent_again) in [
        (Time::ZERO, millisecond),
        (Time::from_us(300), Time::from_us(1200)),
        // Linux has timers expire a tick late rather than early.
        (Time::from_us(500), Time::from_us(1500)),
        (millisecond, Time::from_ms(2)),
    ] {
        let mut config = config(star(2), "dctcp", &[]);
        config.flows = vec![flow(0, 1, MTU)];
        config.host.rto_min = millisecond;
        config.host.timer_tick = tick;
        let events = [(Time::ZERO, false), (Time::from_us(900), true)];
        config.link_events = events.map(|(at, up)| link_event(&config.topology, at, "h1-s0", up)).to_vec();
        let outcome = run_one(&mut config, false);
        let times: Vec<Time> = sent(&outcome, 0, Kind::Data).iter().map(|record| record.time).collect();
        assert_eq!(times, [Time::ZERO, sent_again], "tick {tick}");
    }
}

#[test]
fn the_profile_changes_nothing_of_the_determinism() {
    let outcome = |threads| {
        let mut config = config(star(6), "dctcp", &[("initial_window", text("40KB"))]);
        config.switch.ecn = Ecn::Step { at: Size::Bytes(30_000) };
        config.switch.buffer = incast_sim::config::Buffer::PerPort { bytes: 90_000 };
        config.host.ack_every = 2;
        config.host.ack_delay = Time::from_us(50);
        config.host.quick_acks = 4;
        config.host.echo = Echo::Flag;
        config.host.timer_tick = Time::from_us(10);
        config.host.handshake = true;
        config.flows = (1..6).map(|source| flow(source, 0, 200 * MTU)).collect();
        config.threads = threads;
        recorded(config)
    };
    let (one, three) = (outcome(1), outcome(3));
    assert_eq!(one.flows, three.flows);
    assert_eq!(one.packets, three.packets);
    assert!(one.flows.iter().any(|flow| flow.retransmitted_bytes > 0), "the small buffer overflows");
}
