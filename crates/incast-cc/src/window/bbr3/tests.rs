//! Each rule of BBRv3 by hand, and the life of a flow with the literal constants.

use super::{probing::inflight_at_loss, *};
use crate::{
    registry::Law,
    registry::testing::{Run, Scenario},
};

const MSS: u64 = 1000;
const RTT: Time = Time::from_us(100);

fn path() -> Path {
    Path::new(Rate::from_gbps(8), RTT, 1000, 1250)
}

fn flow(given: &[(&str, Raw)]) -> Bbr3 {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Bbr3::start(&Bbr3::resolve(&path(), &given).expect("allowed"), &path(), Time::ZERO, 7)
}

/// A flow in `state` with 100 packets in flight and a bandwidth of 1 GB/s: a BDP of 100 packets.
fn settled(state: State, given: &[(&str, Raw)]) -> Bbr3 {
    let mut law = flow(given);
    (0..100).for_each(|_| law.delivery.on_sent(Time::ZERO, MSS as u32));
    law.max_bandwidth.update(0, 1e9, 2);
    (law.min_rtt, law.bandwidth, law.pace) = (RTT, 1e9, 1e9);
    (law.full_pipe.reached, law.state, law.window) = (true, state, 200 * MSS);
    law.probe.wait = Time::from_ms(2_000);
    law
}

/// A sample of a packet that was sent with so many bytes in flight, when so many had been delivered and lost.
fn sample(rate: f64, in_flight: u64, delivered: u64, lost: u64) -> RateSample {
    let mut delivery = DeliveryRate::new(Time::ZERO);
    delivery.on_sent(Time::ZERO, 1);
    let feedback = Feedback { now: RTT, rtt: RTT, acked_bytes: MSS, ..Feedback::default() };
    let mut packet = delivery.on_ack(&feedback, 0, RTT).expect("a sample").packet;
    (packet.in_flight, packet.delivered, packet.lost) = (in_flight, delivered, lost);
    RateSample { packet, rate: Some(rate), delivered: MSS }
}

fn loss(position: u64, packets: u64) -> Loss {
    Loss {
        now: RTT,
        lost_bytes: packets * MSS,
        position,
        last: position,
        next: 100 * MSS,
        in_flight: 90 * MSS,
        resent: None,
    }
}

/// An acknowledgement of `bytes` for what was sent at the start, of which a part was marked.
fn acknowledge(law: &mut Bbr3, us: u64, bytes: u64, marked: u32) {
    let now = Time::from_us(us);
    let in_flight = law.delivery.in_flight().saturating_sub(bytes);
    let packets = (bytes / MSS) as u32;
    law.on_ack(&Feedback { now, rtt: RTT, acked_bytes: bytes, packets, marked, in_flight, ..Feedback::default() });
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
}

#[test]
fn gains_are_those_of_the_state() {
    let law = |state| settled(state, &[]);
    let gains = |state| (law(state).pacing_gain(), law(state).cwnd_gain());
    assert_eq!(gains(State::Startup), (4.0 * std::f64::consts::LN_2, 2.0));
    assert_eq!(gains(State::Drain(0)), (0.5, 2.0));
    assert_eq!(gains(State::Down), (0.9, 2.0));
    assert_eq!([State::Cruise, State::Refill].map(gains), [(1.0, 2.0); 2]);
    assert_eq!(gains(State::Up), (1.25, 2.25));
    assert_eq!(gains(State::ProbeRtt { done: None, round_done: false }), (1.0, 0.5));
    let mut up = law(State::Up);
    let gain = up.pacing_gain();
    up.set_pace(gain);
    close(up.pace, 0.99 * 1.25e9);
    assert_eq!((up.inflight(1.0), law(State::Cruise).inflight(1.0)), (102 * MSS, 100 * MSS));
}

#[test]
fn the_pipe_is_full_after_three_rounds_without_growth() {
    let mut law = flow(&[]);
    let mut round = |rate: f64| {
        law.round_start = true;
        law.check_full_pipe(Some(&sample(rate, 0, 0, 0)));
        (law.full_pipe.now, law.full_pipe.rounds)
    };
    assert_eq!([100.0, 125.0, 126.0, 156.0].map(&mut round), [(false, 0), (false, 0), (false, 1), (false, 2)]);
    assert_eq!([157.0, 157.0, 157.0, 157.0].map(&mut round)[3], (true, 3), "a quarter more in between");
}

/// Six losses apart from each other, and more than 2% of what was in flight: both are needed.
#[test]
fn startup_ends_with_losses() {
    let ends = |ranges: u64, apart: u64, in_flight: u64| {
        let mut law = flow(&[]);
        (0..200).for_each(|_| law.delivery.on_sent(Time::ZERO, MSS as u32));
        law.max_bandwidth.update(0, 1e9, 2);
        law.min_rtt = RTT;
        (0..ranges).for_each(|range| law.on_loss(&loss(range * apart * MSS, 1)));
        law.signals.round_start = true;
        law.signals.inflight_latest = 150 * MSS;
        law.check_startup(Some(&sample(1e9, in_flight, 0, 0)));
        (law.state == State::Drain(0), law.inflight_longterm)
    };
    assert_eq!(ends(6, 2, 200 * MSS), (true, 150e3));
    assert_eq!(ends(5, 2, 200 * MSS), (false, f64::INFINITY));
    assert_eq!(ends(6, 1, 200 * MSS), (false, f64::INFINITY), "one loss of six packets");
    assert_eq!(ends(6, 2, 400 * MSS), (false, f64::INFINITY), "1.5%");
}

#[test]
fn drain_ends_with_the_queue_or_after_three_rounds() {
    let mut law = settled(State::Drain(5), &[]);
    law.delivery.on_sent(RTT, MSS as u32);
    (law.round, law.probe.cycle) = (8, 0);
    law.check_drain(RTT);
    assert_eq!(law.state, State::Drain(5), "101 packets");
    law.round = 9;
    law.check_drain(RTT);
    assert_eq!(law.state, State::Down);
    let mut law = settled(State::Drain(5), &[]);
    law.check_drain(RTT);
    assert_eq!(law.state, State::Down);
}

#[test]
fn a_probe_comes_after_two_to_three_seconds_or_as_many_rounds_as_packets() {
    let (mut least, mut most) = (Time::MAX, Time::ZERO);
    let mut law = settled(State::Down, &[]);
    for _ in 0..2000 {
        law.start_down(Time::ZERO);
        assert!(law.probe.rounds <= 1);
        (least, most) = (least.min(law.probe.wait), most.max(law.probe.wait));
    }
    assert!(least >= Time::from_ms(2_000) && least < Time::from_ms(2_010), "{least}");
    assert!(most <= Time::from_ms(3_000) && most > Time::from_ms(2_990), "{most}");
    law.probe.rounds = 62;
    assert!(!law.is_time_to_probe(law.probe.wait));
    assert!(law.is_time_to_probe(law.probe.wait + Time::from_ps(1)));
    law.probe.rounds = 63;
    assert!(law.is_time_to_probe(RTT));
    law.probe.rounds = 20;
    law.window = 20 * MSS;
    assert!(law.is_time_to_probe(RTT), "Reno would have 20 packets");
}

#[test]
fn the_phases_follow_each_other() {
    let mut law = settled(State::Down, &[]);
    law.delivery.on_sent(RTT, MSS as u32);
    let still = sample(1e9, 100 * MSS, 0, 0);
    law.update_probe(RTT, MSS, Some(&still));
    assert_eq!(law.state, State::Down, "more than a BDP");
    law.delivery.on_loss(&loss(0, 0));
    law.update_probe(RTT, MSS, Some(&still));
    assert_eq!(law.state, State::Cruise);
    (law.bandwidth_shortterm, law.inflight_shortterm) = (1.0, 1.0);
    law.probe.rounds = 63;
    law.update_probe(RTT, MSS, Some(&still));
    assert_eq!((law.state, law.bandwidth_shortterm), (State::Refill, f64::INFINITY));
    law.round_start = false;
    law.update_probe(RTT, MSS, Some(&still));
    assert_eq!((law.state, law.probe.samples), (State::Refill, false));
    law.round_start = true;
    law.update_probe(RTT, MSS, Some(&still));
    assert_eq!((law.state, law.probe.samples), (State::Up, true));
    for expected in [State::Up, State::Up, State::Down] {
        law.check_full_pipe(Some(&still));
        law.update_probe(RTT, MSS, Some(&still));
        assert_eq!(law.state, expected, "three rounds without growth");
    }
    // The maximum is that of this cycle and the one before.
    assert_eq!(law.probe.ack_phase, AckPhase::ProbeStopping);
    law.update_probe(RTT, MSS, Some(&still));
    assert_eq!((law.probe.cycle, law.probe.samples), (1, false));
}

#[test]
fn losses_pass_the_threshold_at_some_packet() {
    // 200 packets with 2%: the fifth lost one, before which 199 were in flight of which 4 were lost.
    close(inflight_at_loss(200e3, 5e3, 1e3, 0.02), 199e3);
    // With less lost before it than was allowed, some of what comes after would have been, too.
    close(inflight_at_loss(200e3, 3e3, 1e3, 0.02), 199e3 + (3.98e3 - 2e3) / 0.98);
    assert_eq!(inflight_at_loss(1e3, 1e3, 1e3, 0.02), 0.0);
}

#[test]
fn a_probe_ends_with_more_than_two_percent_lost() {
    let probe = |app_limited| {
        let mut law = settled(State::Up, &[]);
        law.probe.samples = true;
        let mut packet = sample(1e9, 200 * MSS, 0, 0).packet;
        packet.app_limited = app_limited;
        law.last_packet = Some(packet);
        law
    };
    let mut law = probe(false);
    law.on_loss(&loss(0, 4));
    assert_eq!((law.state, law.inflight_longterm), (State::Up, f64::INFINITY), "2% is not more than 2%");
    law.on_loss(&loss(9000, 1));
    assert_eq!((law.state, law.inflight_longterm, law.probe.samples), (State::Down, 199e3, false));
    law.on_loss(&loss(20_000, 50));
    assert_eq!(law.inflight_longterm, 199e3, "once per probe");
    // What the application limited says nothing of the bound.
    let mut law = probe(true);
    law.on_loss(&loss(0, 5));
    assert_eq!((law.state, law.inflight_longterm), (State::Down, f64::INFINITY));
    // No less than beta of the target.
    let mut law = probe(false);
    law.last_packet = Some(sample(1e9, 10 * MSS, 0, 0).packet);
    law.window = 90 * MSS;
    law.recovery_end = Some(1 << 40);
    law.judge_loss(&loss(0, 1), 0);
    close(law.inflight_longterm, 0.7 * 90e3);
}

#[test]
fn the_bound_rises_by_twice_as_much_each_round() {
    let mut law = settled(State::Refill, &[]);
    (law.inflight_longterm, law.window) = (100e3, 100 * MSS);
    let full = sample(1e9, 100 * MSS, 0, 0);
    law.round_start = true;
    law.update_probe(RTT, MSS, Some(&full));
    assert_eq!(law.state, State::Up);
    let mut growth = Vec::new();
    for _ in 0..4 {
        let before = law.inflight_longterm;
        // A window of acknowledgements; the last one ends the round.
        for packet in 1..=100 {
            law.round_start = packet == 100;
            law.window = law.inflight_longterm as u64;
            law.limited_until = u64::MAX;
            law.full_pipe.now = false;
            law.update_probe(RTT, MSS, Some(&full));
        }
        growth.push((law.inflight_longterm - before).round());
    }
    for (found, expected) in growth.iter().zip([1000.0, 2000.0, 4000.0, 8000.0]) {
        assert!((found / expected - 1.0).abs() < 0.1, "{growth:?}");
    }
    // Not if the window is not what limits it.
    let before = law.inflight_longterm;
    law.limited_until = 0;
    law.delivery.on_ack(&Feedback { acked_bytes: MSS, ..Feedback::default() }, 0, RTT);
    law.update_probe(RTT, MSS, Some(&full));
    assert_eq!(law.inflight_longterm, before);
}

#[test]
fn headroom_is_left_to_others() {
    let mut law = settled(State::Cruise, &[]);
    assert_eq!(law.inflight_with_headroom(), f64::INFINITY);
    let mut with = |bound: f64| {
        law.inflight_longterm = bound;
        law.inflight_with_headroom()
    };
    assert_eq!([100e3, 6.2e3, 4.5e3].map(&mut with), [85e3, 5.2e3, 4e3]);
    law.inflight_longterm = 100e3;
    law.bound_window();
    assert_eq!(law.window, 85_000);
    (law.state, law.window) = (State::Up, 200_000);
    law.bound_window();
    assert_eq!(law.window, 100_000);
    law.inflight_shortterm = 50e3;
    law.bound_window();
    assert_eq!(law.window, 50_000);
    assert!(law.is_time_to_cruise() == (law.delivery.in_flight() <= 85_000));
}

#[test]
fn a_round_with_losses_lowers_the_shortterm_bounds() {
    let after = |state, latest: (f64, u64), losses| {
        let mut law = settled(state, &[]);
        law.signals.losses = losses;
        (law.signals.bandwidth_latest, law.signals.inflight_latest) = latest;
        law.signals.round_start = true;
        law.adapt_shortterm();
        (law.bandwidth_shortterm, law.inflight_shortterm)
    };
    let none = (f64::INFINITY, f64::INFINITY);
    assert_eq!(after(State::Cruise, (0.0, 0), true), (0.7e9, 140e3));
    assert_eq!(after(State::Down, (0.9e9, 150 * MSS), true), (0.9e9, 150e3), "what was delivered stays");
    assert_eq!(after(State::Cruise, (0.0, 0), false), none);
    for state in [State::Startup, State::Refill, State::Up] {
        assert_eq!(after(state, (0.0, 0), true), none, "{state:?} looks for more");
    }
}

#[test]
fn packets_are_conserved_in_the_first_round_of_recovery_if_wanted() {
    let mut law = settled(State::Cruise, &[]);
    law.last_acked = 2 * MSS;
    law.on_loss(&loss(0, 1));
    assert_eq!((law.window, law.prior_window), (92 * MSS, 200 * MSS));
    law.set_window(3 * MSS);
    assert_eq!(law.window, 93 * MSS);
    let mut law = settled(State::Cruise, &[("packet_conservation", Raw::Flag(false))]);
    law.on_loss(&loss(0, 1));
    assert_eq!(law.window, 200 * MSS);
    law.on_timeout(RTT, 100 * MSS);
    assert_eq!((law.window, law.delivery.in_flight()), (MSS, 0));
}

#[test]
fn marks_count_only_if_they_are_wanted() {
    let ecn = [("ecn", Raw::Flag(true))];
    assert!(!Bbr3::transport(&flow(&[]).constants).ecn_capable);
    assert!(Bbr3::transport(&flow(&ecn).constants).ecn_capable);
    let marked_round = |given: &[(&str, Raw)], marked| {
        let mut law = settled(State::Cruise, given);
        law.signals.round_before = (0, 0);
        acknowledge(&mut law, 100, 10 * MSS, marked);
        law
    };
    let law = marked_round(&[], 10);
    assert_eq!((law.signals.alpha, law.signals.marks, law.inflight_shortterm), (1.0, false, f64::INFINITY));
    // Half of them: alpha = 15/16 + 1/16 1/2; the bound falls by a third of it.
    let law = marked_round(&ecn, 5);
    close(law.signals.alpha, 15.0 / 16.0 + 0.5 / 16.0);
    close(law.inflight_shortterm, 200e3 * (1.0 - law.signals.alpha / 3.0));
    assert_eq!(law.bandwidth_shortterm, f64::INFINITY, "marks leave the bandwidth alone");
}

#[test]
fn half_of_the_packets_marked_is_too_much() {
    let ecn = [("ecn", Raw::Flag(true))];
    let probe = |marked| {
        let mut law = settled(State::Up, &ecn);
        law.probe.samples = true;
        acknowledge(&mut law, 100, 10 * MSS, marked);
        law.state
    };
    assert_eq!((probe(4), probe(5)), (State::Up, State::Down));
    let mut law = flow(&ecn);
    (0..100).for_each(|us| law.delivery.on_sent(Time::from_us(us), MSS as u32));
    law.signals.marked_rounds = 1;
    law.check_startup(None);
    assert_eq!(law.state, State::Startup);
    law.signals.marked_rounds = 2;
    law.check_startup(None);
    assert_eq!(law.state, State::Drain(0));
}

/// State of a run each 50 us: when it changed, to what.
fn changes(mut run: Run, until: Time) -> Vec<(Time, State, Bbr3)> {
    let mut changes: Vec<(Time, State, Bbr3)> = Vec::new();
    loop {
        let (law, now) = run.law();
        let Law::Bbr3(law) = law else { panic!("another law") };
        let state = match law.state {
            State::ProbeRtt { .. } => State::ProbeRtt { done: None, round_done: false },
            State::Drain(_) => State::Drain(0),
            state => state,
        };
        if changes.last().is_none_or(|(_, last, _)| *last != state) {
            changes.push((now, state, law.clone()));
        }
        if now >= until {
            return changes;
        }
        run.until(now + Time::from_us(50));
    }
}

/// The whole life of a flow on a path of 100 Mbit/s and 100 ms, with the literal constants.
#[test]
fn the_states_of_a_long_flow() {
    let changes = changes(Scenario::wide_area().start("bbr3", &[]), Time::from_ms(30_000));
    let states: Vec<_> = changes.iter().map(|(_, state, _)| *state).collect();
    assert_eq!(states[..2], [State::Startup, State::Drain(0)]);
    let (mut waits, mut probes) = (Vec::new(), Vec::new());
    for (at, pair) in changes.windows(2).enumerate() {
        let length = pair[1].0 - pair[0].0;
        let next = pair[1].1;
        match pair[0].1 {
            State::ProbeRtt { .. } => {
                let window = pair[0].2.window() as f64;
                let bdp = pair[0].2.bandwidth * 0.1;
                assert!((window / bdp - 0.5).abs() < 0.02, "{window} of {bdp}");
                assert!((Time::from_ms(190)..Time::from_ms(620)).contains(&length), "{length}");
                assert_eq!(next, State::Cruise);
                waits.push(pair[0].0);
            }
            State::Refill => assert!(next == State::Up, "{at}"),
            State::Up => {
                assert!(matches!(next, State::Down | State::ProbeRtt { .. }));
                probes.push(pair[0].0);
            }
            State::Down => assert!(matches!(next, State::Cruise | State::Refill | State::ProbeRtt { .. })),
            State::Cruise => assert!(matches!(next, State::Refill | State::ProbeRtt { .. })),
            State::Startup | State::Drain(_) => {}
        }
    }
    assert!((4..=6).contains(&waits.len()), "{waits:?}");
    for pair in waits.windows(2) {
        let pause = pair[1] - pair[0];
        assert!((Time::from_ms(5_000)..Time::from_ms(6_500)).contains(&pause), "{pause}");
    }
    assert!((6..=14).contains(&probes.len()), "{probes:?}");
    for pair in probes.windows(2) {
        assert!(pair[1] - pair[0] >= Time::from_ms(2_000), "{probes:?}");
    }
}

#[test]
fn contradictions_are_refused() {
    let refused = |key: &str, raw| Bbr3::resolve(&path(), &[(key.to_owned(), raw)]).expect_err("refused").to_string();
    assert!(refused("beta", Raw::Float(1.0)).contains("in (0, 1)"));
    assert!(refused("loss_threshold", Raw::Float(0.0)).contains("in (0, 1)"));
    assert!(refused("probe_rtt_interval", Raw::Text("0s".into())).contains("above 0"));
    assert!(refused("ecn", Raw::Integer(1)).contains("true or false"));
}
