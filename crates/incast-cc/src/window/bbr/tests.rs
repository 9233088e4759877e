//! Each rule of BBR by hand, and the life of a flow with the literal constants.

use super::*;
use crate::{
    registry::Law,
    registry::testing::{Run, Scenario},
};

const MSS: u64 = 1000;
const RTT: Time = Time::from_us(100);

fn path() -> Path {
    Path::new(Rate::from_gbps(8), RTT, 1000, 1250)
}

fn flow(given: &[(&str, Raw)]) -> Bbr {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Bbr::start(&Bbr::resolve(&path(), &given).expect("allowed"), &path(), Time::ZERO, 7)
}

/// A sample of this rate, for which other numbers do not matter.
fn sample(rate: f64, delivered: u64, app_limited: bool) -> RateSample {
    let mut delivery = DeliveryRate::new(Time::ZERO);
    delivery.on_sent(Time::ZERO, 1);
    let feedback = Feedback { now: RTT, rtt: RTT, acked_bytes: MSS, ..Feedback::default() };
    let mut packet = delivery.on_ack(&feedback, 0, RTT).expect("a sample").packet;
    (packet.delivered, packet.app_limited) = (delivered, app_limited);
    RateSample { packet, rate: Some(rate), delivered: MSS }
}

/// A flow of 100 packets in flight in ProbeBW, with a bandwidth of 1 GB/s: a BDP of 100 packets.
fn settled() -> Bbr {
    let mut law = flow(&[]);
    (0..100).for_each(|_| law.on_sent(Time::ZERO, MSS as u32));
    law.bandwidth.update(0, 1e9, 10);
    (law.rtprop, law.filled_pipe, law.pace) = (RTT, true, 1e9);
    law.state = State::ProbeBw { phase: 3, since: Time::ZERO };
    law.window = 203 * MSS;
    law
}

fn ack(law: &mut Bbr, now: Time, acked: u64, in_flight: u64) {
    let feedback = Feedback { now, rtt: RTT, acked_bytes: MSS, packets: 1, acked, in_flight, ..Feedback::default() };
    law.on_ack(&feedback);
}

fn lose(law: &mut Bbr, now: Time, packets: u64, in_flight: u64) {
    law.on_loss(&Loss { now, lost_bytes: packets * MSS, next: 100 * MSS, in_flight, ..Loss::default() });
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
}

#[test]
fn gains_are_those_of_the_state() {
    close(HIGH_GAIN, 2.885_390_081_777_927);
    let mut law = flow(&[]);
    let mut gains = |state| {
        law.state = state;
        (law.pacing_gain(), law.cwnd_gain())
    };
    assert_eq!(gains(State::Startup), (HIGH_GAIN, HIGH_GAIN));
    assert_eq!(gains(State::Drain), (1.0 / HIGH_GAIN, HIGH_GAIN));
    let cycle: Vec<_> = (0..8).map(|phase| gains(State::ProbeBw { phase, since: Time::ZERO })).collect();
    let pace: Vec<_> = cycle.iter().map(|gains| gains.0).collect();
    assert_eq!(pace, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert!(cycle.iter().all(|gains| gains.1 == 2.0));
    assert_eq!(gains(State::ProbeRtt { done: None, round_done: false }), (1.0, 1.0));
}

#[test]
fn a_flow_starts_with_one_bdp_and_its_pace() {
    let law = flow(&[]);
    // 8 Gbit/s for 100 us are 100,000 bytes on the wire, four fifths of them payload.
    assert_eq!(law.window(), 80_000);
    close(law.pacing_rate().expect("a pace").as_f64(), HIGH_GAIN * 8e9);
    let draft = flow(&[("initial_rtt", Raw::Text("1ms".into()))]);
    close(draft.pacing_rate().expect("a pace").as_f64(), (HIGH_GAIN * 8e8).round());
    // Nothing is known of the path: the target is the initial window.
    assert_eq!(law.inflight(2.0), 80_000);
}

#[test]
fn quanta_follow_the_pace() {
    let quantum = |mbps: f64| send_quantum(mbps * 1e6 / 8.0, 1448, 64_000);
    assert_eq!([1.1, 1.3, 23.9].map(quantum), [1448, 2896, 2896]);
    assert_eq!([80.0, 1000.0].map(quantum), [10_000, 64_000]);
    assert_eq!(send_quantum(1e9, 1448, 1448), 1448);
    let law = settled();
    assert_eq!((law.inflight(1.0), law.inflight(2.0)), (103 * MSS, 203 * MSS));
}

#[test]
fn the_pipe_is_full_after_three_rounds_without_growth() {
    let mut law = flow(&[]);
    let mut round = |rate: f64, app_limited: bool| {
        let sample = sample(rate, law.next_round, app_limited);
        law.update_round(Some(&sample));
        law.update_bandwidth(Some(&sample));
        law.check_full_pipe(Some(&sample));
        (law.filled_pipe, law.full_rounds)
    };
    assert_eq!(round(100.0, false), (false, 0));
    assert_eq!(round(125.0, false), (false, 0));
    assert_eq!(round(150.0, false), (false, 1), "less than a quarter more");
    assert_eq!(round(157.0, false), (false, 0), "but a quarter more than 125");
    assert_eq!(round(160.0, false), (false, 1));
    assert_eq!(round(160.0, true), (false, 1), "the application was what limited it");
    assert_eq!(round(160.0, false), (false, 2));
    assert_eq!(round(160.0, false), (true, 3));
}

#[test]
fn within_a_round_nothing_is_concluded() {
    let mut law = flow(&[]);
    law.next_round = 50 * MSS;
    let early = sample(1.0, 49 * MSS, false);
    law.update_round(Some(&early));
    law.check_full_pipe(Some(&early));
    assert_eq!((law.round, law.round_start, law.full_bandwidth), (0, false, 0.0));
    law.update_round(Some(&sample(1.0, 50 * MSS, false)));
    assert_eq!((law.round, law.round_start), (1, true));
}

#[test]
fn application_limited_samples_never_lower_the_bandwidth() {
    let mut law = flow(&[]);
    let mut bandwidth = |round: u64, rate: f64, app_limited: bool| {
        law.round = round;
        law.update_bandwidth(Some(&sample(rate, 0, app_limited)));
        law.bandwidth()
    };
    assert_eq!(bandwidth(0, 100.0, false), 100.0);
    assert_eq!(bandwidth(1, 120.0, true), 120.0, "more is more");
    (2..100).for_each(|round| assert_eq!(bandwidth(round, 10.0, true), 120.0));
    assert_eq!(bandwidth(100, 10.0, false), 10.0, "the old one is out of its window");
    assert_eq!(bandwidth(105, 8.0, false), 10.0);
    assert_eq!(bandwidth(110, 7.0, false), 8.0);
}

#[test]
fn the_least_rtt_is_kept_for_its_window() {
    let mut law = flow(&[]);
    let mut rtprop = |ms: u64, us: u64| {
        law.probe_rtt(&Feedback { now: Time::from_ms(ms), rtt: Time::from_us(us), ..Feedback::default() });
        (law.rtprop, matches!(law.state, State::ProbeRtt { .. }))
    };
    assert_eq!(rtprop(1, 100), (Time::from_us(100), false));
    assert_eq!(rtprop(5000, 200), (Time::from_us(100), false));
    assert_eq!(rtprop(9000, 100), (Time::from_us(100), false), "seen again");
    assert_eq!(rtprop(19_000, 300), (Time::from_us(100), false));
    assert_eq!(rtprop(19_001, 300), (Time::from_us(300), true));
}

#[test]
fn the_phase_that_probes_lasts_until_the_pipe_is_overfull_or_leaks() {
    let start = || {
        let mut law = settled();
        law.state = State::ProbeBw { phase: 0, since: Time::ZERO };
        law
    };
    let phase = |law: &Bbr| match law.state {
        State::ProbeBw { phase, .. } => phase,
        _ => panic!("{:?}", law.state),
    };
    let (short, long) = (Time::from_us(100), Time::from_us(101));
    let overfull = 128 * MSS;
    let mut law = start();
    law.check_cycle_phase(short, overfull);
    assert_eq!(phase(&law), 0, "not before an RTprop has passed");
    law.check_cycle_phase(long, overfull - 1);
    assert_eq!(phase(&law), 0, "nor before 1.25 BDP and the quanta are out");
    law.check_cycle_phase(long, overfull);
    assert_eq!(phase(&law), 1);
    let mut law = start();
    law.losses = true;
    law.check_cycle_phase(short, 0);
    assert_eq!(phase(&law), 0);
    law.check_cycle_phase(long, 0);
    assert_eq!(phase(&law), 1);
}

#[test]
fn the_phase_that_drains_ends_early_and_the_others_do_not() {
    let mut law = settled();
    let after = |law: &mut Bbr, phase, us, in_flight| {
        law.state = State::ProbeBw { phase, since: Time::ZERO };
        law.check_cycle_phase(Time::from_us(us), in_flight);
        law.state
    };
    let at = |phase, us| State::ProbeBw { phase, since: Time::from_us(us) };
    assert_eq!(after(&mut law, 1, 10, 104 * MSS), at(1, 0));
    assert_eq!(after(&mut law, 1, 10, 103 * MSS), at(2, 10));
    assert_eq!(after(&mut law, 1, 101, 104 * MSS), at(2, 101));
    assert_eq!(after(&mut law, 4, 100, 0), at(4, 0));
    assert_eq!(after(&mut law, 4, 101, 0), at(5, 101));
    assert_eq!(after(&mut law, 7, 101, 0), at(0, 101));
}

#[test]
fn probing_begins_with_any_phase_but_the_draining_one() {
    let mut counts = [0u32; 8];
    for random in 0..7_000u32 {
        let mut law = settled();
        law.random = random.wrapping_mul(0x9e37_79b9);
        law.enter_probe_bw(Time::ZERO);
        if let State::ProbeBw { phase, .. } = law.state {
            counts[phase as usize] += 1;
        }
    }
    assert_eq!(counts[1], 0);
    assert!(counts.iter().enumerate().all(|(phase, n)| phase == 1 || (850..1150).contains(n)), "{counts:?}");
}

#[test]
fn packets_are_conserved_in_the_first_round_of_recovery() {
    let mut law = settled();
    ack(&mut law, Time::from_us(100), MSS, 99 * MSS);
    assert_eq!(law.window(), 203 * MSS);
    lose(&mut law, Time::from_us(100), 4, 95 * MSS);
    assert_eq!(law.window(), 96 * MSS, "what is in flight, and what was delivered");
    lose(&mut law, Time::from_us(100), 10, 85 * MSS);
    assert_eq!(law.window(), 86 * MSS, "and what is lost leaves");
    law.window = 10 * MSS;
    law.round_start = false;
    law.set_window(3 * MSS);
    assert_eq!(law.window(), 88 * MSS);
    // The first round is over: the window grows to its target again.
    let next = sample(1e9, law.next_round, false);
    law.update_round(Some(&next));
    law.set_window(MSS);
    assert_eq!(law.window(), 89 * MSS);
    lose(&mut law, Time::from_us(300), 5, 50 * MSS);
    assert_eq!(law.window(), 84 * MSS, "a loss later on takes what was lost");
    // All that was sent before the loss is acknowledged.
    ack(&mut law, Time::from_us(400), 100 * MSS, 50 * MSS);
    assert_eq!((law.window(), law.recovery_end), (203 * MSS, None));
}

#[test]
fn a_timeout_leaves_one_packet_until_something_is_heard() {
    let mut law = settled();
    law.on_timeout(Time::from_ms(1), 100 * MSS);
    assert_eq!((law.window(), law.delivery.in_flight()), (MSS, 0));
    law.on_timeout(Time::from_ms(2), 100 * MSS);
    law.on_sent(Time::from_ms(2), MSS as u32);
    ack(&mut law, Time::from_us(2100), MSS, 0);
    assert_eq!(law.window(), 4 * MSS);
    law.on_sent(Time::from_us(2100), MSS as u32);
    ack(&mut law, Time::from_us(2200), 100 * MSS, 0);
    assert_eq!(law.window(), 203 * MSS, "as before the first timeout");
}

#[test]
fn startup_paces_no_slower_than_before() {
    let mut law = flow(&[]);
    let pace = law.pace;
    law.bandwidth.update(0, pace / 10.0, 10);
    law.set_pace(HIGH_GAIN);
    assert_eq!(law.pace, pace);
    law.bandwidth.update(0, pace, 10);
    law.set_pace(HIGH_GAIN);
    close(law.pace, HIGH_GAIN * pace);
    law.filled_pipe = true;
    law.set_pace(1.0);
    close(law.pace, pace);
    let mut margin = flow(&[("pacing_margin", Raw::Float(0.01))]);
    margin.filled_pipe = true;
    margin.bandwidth.update(0, 1e9, 10);
    margin.set_pace(1.25);
    close(margin.pace, 0.99 * 1.25e9);
}

#[test]
fn after_idle_time_a_flow_paces_at_its_bandwidth() {
    let mut law = settled();
    law.pace = 7.0;
    law.on_sent(Time::from_us(10), MSS as u32);
    assert_eq!(law.pace, 7.0, "it is not idle");
    let feedback = Feedback {
        now: Time::from_us(100),
        rtt: RTT,
        acked_bytes: 101 * MSS,
        nothing_to_send: true,
        ..Feedback::default()
    };
    law.on_ack(&feedback);
    law.delivery.mark_app_limited();
    law.on_sent(Time::from_ms(20_000), MSS as u32);
    close(law.pace, law.bandwidth());
    assert!(law.idle_restart);
    // RTprop expires in idle time; that is no reason for ProbeRTT.
    ack(&mut law, Time::from_ms(20_001), MSS, 0);
    assert!(matches!(law.state, State::ProbeBw { .. }) && !law.idle_restart);
}

#[test]
fn aggregated_acknowledgements_widen_the_window_if_wanted() {
    let window = |given: &[(&str, Raw)]| {
        let mut law = flow(given);
        (0..100).for_each(|_| law.on_sent(Time::ZERO, MSS as u32));
        law.bandwidth.update(0, 1e9, 10);
        (law.rtprop, law.filled_pipe, law.pace) = (RTT, true, 1e9);
        law.state = State::ProbeBw { phase: 3, since: Time::ZERO };
        law.window = 1000 * MSS;
        let burst = Feedback { now: RTT, rtt: RTT, acked_bytes: 30 * MSS, ..Feedback::default() };
        law.on_ack(&burst);
        law.window()
    };
    assert_eq!(window(&[]), 203 * MSS);
    assert_eq!(window(&[("ack_aggregation", Raw::Flag(true))]), 233 * MSS);
}

/// State of a run each 50 us: when it changed, to what, and with which window and how much in flight.
fn changes(mut run: Run, until: Time) -> Vec<(Time, State, Bbr)> {
    let mut changes: Vec<(Time, State, Bbr)> = Vec::new();
    loop {
        let (law, now) = run.law();
        let Law::Bbr(law) = law else { panic!("another law") };
        // The parts of a state that move while it lasts are no change.
        let state = match law.state {
            State::ProbeRtt { .. } => State::ProbeRtt { done: None, round_done: false },
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
fn probe_rtt_comes_every_ten_seconds_for_200_ms_and_a_round() {
    let scenario = Scenario::wide_area();
    let changes = changes(scenario.start("bbr", &[]), Time::from_ms(35_000));
    assert_eq!(changes[0].1, State::Startup);
    assert_eq!(changes[1].1, State::Drain);
    let drained = &changes[2].2;
    assert!(drained.delivery.in_flight() <= drained.inflight(1.0));
    let cruising = changes.iter().filter(|(_, state, _)| matches!(state, State::ProbeBw { .. }));
    assert!(cruising.count() > 100);
    let rtprop = changes.last().expect("there").2.rtprop;
    assert!(rtprop.ps().abs_diff(Time::from_ms(100).ps()) < 1_000_000_000, "{rtprop}");
    let mut stays = Vec::new();
    for pair in changes.windows(2) {
        let [(start, state, law), (end, next, after)] = pair else { panic!("two") };
        match state {
            State::ProbeRtt { .. } => {
                assert_eq!(law.window(), 4 * 1448);
                // A round to drain what is in flight, 200 ms, and what is left of a round then.
                let length = *end - *start;
                assert!((Time::from_ms(290)..Time::from_ms(520)).contains(&length), "{length}");
                assert!(after.window() > 100 * 1448, "the window comes back: {}", after.window());
                assert!(matches!(next, State::ProbeBw { phase, .. } if *phase != DRAINING));
                stays.push((*start, *end));
            }
            State::ProbeBw { phase, .. } if *phase > DRAINING && !matches!(next, State::ProbeRtt { .. }) => {
                let length = *end - *start;
                assert!(length.ps().abs_diff(rtprop.ps()) < 1_000_000_000, "phase {phase}: {length}");
                assert!(matches!(next, State::ProbeBw { phase: p, .. } if *p == (phase + 1) % 8));
            }
            _ => {}
        }
    }
    assert_eq!(stays.len(), 3, "{stays:?}");
    for pair in stays.windows(2) {
        // Until the first phase that queues something, a cycle later at most, the least RTT is seen again.
        let pause = pair[1].0 - pair[0].1;
        assert!((Time::from_ms(10_000)..Time::from_ms(10_900)).contains(&pause), "{pause}");
    }
}

/// A round is longer than the 200 ms: then it decides.
#[test]
fn probe_rtt_lasts_a_round_at_least() {
    let given = [
        ("probe_rtt_duration".to_owned(), Raw::Text("1us".into())),
        ("rtprop_window".to_owned(), Raw::Text("2s".into())),
    ];
    let changes = changes(Scenario::wide_area().start("bbr", &given), Time::from_ms(15_000));
    // The first one also drains what Startup queued.
    let is_settled = |(_, state, _): &(_, State, _)| matches!(state, State::ProbeBw { .. });
    let stays =
        changes.windows(3).filter(|three| is_settled(&three[0]) && matches!(three[1].1, State::ProbeRtt { .. }));
    let lengths: Vec<_> = stays.map(|three| three[2].0 - three[1].0).collect();
    assert!(lengths.len() >= 2);
    for length in lengths {
        // One to drain, one with four packets.
        assert!((Time::from_ms(190)..Time::from_ms(420)).contains(&length), "{length}");
    }
}

#[test]
fn contradictions_are_refused() {
    let refused = |key: &str, raw| Bbr::resolve(&path(), &[(key.to_owned(), raw)]).expect_err("refused").to_string();
    assert!(refused("high_gain", Raw::Float(1.0)).contains("in (1, 100]"));
    assert!(refused("drain_gain", Raw::Float(1.0)).contains("in (0, 1)"));
    assert!(refused("rtprop_window", Raw::Text("0s".into())).contains("above 0"));
    assert!(refused("btlbw_window", Raw::Integer(0)).contains("[1, 1000]"));
}
