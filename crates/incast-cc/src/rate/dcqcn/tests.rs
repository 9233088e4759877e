use super::*;

const GBPS: f64 = 1e9;
const US: fn(u64) -> Time = Time::from_us;

/// The paper's rate, and the base RTT at which its constants are taken to be scaled.
fn path() -> Path {
    Path::new(Rate::from_gbps(40), US(10), 1000, 1000)
}

fn given(given: &[(&str, &str)]) -> Vec<(String, Raw)> {
    given.iter().map(|(key, value)| ((*key).to_owned(), Raw::Text((*value).to_owned()))).collect()
}

fn flow(values: &[(&str, &str)]) -> Dcqcn {
    // Without the slack of a packet.
    let values = [&[("window_rule", "fits")], values].concat();
    let constants = Dcqcn::resolve(&path(), &given(&values)).expect("allowed");
    Dcqcn::start(&constants, &path(), Time::ZERO, 0)
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} in place of {expected}");
}

fn rates(law: &Dcqcn) -> (f64, f64) {
    (law.current / GBPS, law.target / GBPS)
}

#[test]
fn the_scaled_profile_is_the_papers_on_its_network() {
    for variant in ["paper", "mellanox"] {
        let path = match variant {
            "paper" => path(),
            _ => Path { base_rtt: US(13), ..path() },
        };
        let scaled = Dcqcn::resolve(&path, &given(&[("variant", variant)])).expect("allowed");
        let paper = given(&[("variant", variant), ("profile", "paper")]);
        let paper = Dcqcn::resolve(&path, &paper).expect("allowed");
        // What a variant does not use may differ.
        let values = |constants: &Constants| {
            let mut values = Parameters { profile: Profile::Paper, ..constants.parameters.clone() };
            match variant {
                "paper" => values.decrease_timer = Period::of(US(1)),
                _ => values.byte_counter = Bytes::new(1),
            }
            values
        };
        assert_eq!(values(&scaled), values(&paper));
    }
    let constants = Dcqcn::resolve(&path(), &[]).expect("defaults");
    assert_eq!(constants.byte_counter, 10_000_000);
    assert_eq!(Dcqcn::transport(&constants).notification_interval, Some(US(50)));
    let elsewhere = Path { rate: Rate::from_gbps(100), base_rtt: US(8), ..path() };
    let scaled = Dcqcn::resolve(&elsewhere, &[]).expect("defaults").parameters.clone();
    assert_eq!((scaled.alpha_timer.time(), scaled.cnp_interval), (US(44), US(40)));
    assert_eq!(scaled.additive_increase, Rate::from_bps(100_000_000));
    // Explicit keys win over both profiles, wherever they stand.
    let own = given(&[("alpha_timer", "7us"), ("profile", "paper")]);
    let own = Dcqcn::resolve(&elsewhere, &own).expect("allowed").parameters.clone();
    assert_eq!((own.alpha_timer.time(), own.increase_timer.time()), (US(7), US(55)));
}

#[test]
fn a_notification_cuts_by_half_of_alpha_which_then_rises() {
    let mut law = flow(&[]);
    law.on_cnp(US(200), &Cnp::CONGESTED);
    close(law.alpha, 1.0);
    assert_eq!(rates(&law), (20.0, 40.0), "the first one: alpha is 1 and stays it");
    law.on_cnp(US(250), &Cnp::CONGESTED);
    assert_eq!(rates(&law), (10.0, 20.0));
    law.alpha = 0.25;
    law.on_cnp(US(300), &Cnp::CONGESTED);
    assert_eq!(rates(&law), (8.75, 10.0));
    close(law.alpha, 0.25 * 255.0 / 256.0 + 1.0 / 256.0);
}

#[test]
fn alpha_decays_by_periods_without_a_notification() {
    let mut law = flow(&[]);
    law.on_cnp(US(0), &Cnp::CONGESTED);
    law.on_cnp(US(1), &Cnp::CONGESTED);
    law.alpha = 0.5;
    law.catch_up(US(55));
    close(law.alpha, 0.5);
    law.catch_up(US(56));
    close(law.alpha, 0.5 * 255.0 / 256.0);
    // At once or step by step, and also while the rate is that of the line.
    let mut law = flow(&[]);
    law.on_cnp(US(0), &Cnp::CONGESTED);
    law.current = law.constants.line;
    law.alpha = 1.0;
    law.on_cnp(Time::from_ms(55), &Cnp::CONGESTED);
    let before = libm::pow(255.0 / 256.0, 1000.0);
    close(law.current, 40.0 * GBPS * (1.0 - before / 2.0));
    close(law.alpha, raised(before, 1.0 / 256.0));
}

#[test]
fn fast_recovery_halves_the_gap_five_times() {
    let mut law = flow(&[]);
    law.on_cnp(US(0), &Cnp::CONGESTED);
    for step in 1..=5 {
        law.catch_up(US(55 * step));
        let gap = 20.0 / f64::from(1u32 << step);
        close(law.current / GBPS, 40.0 - gap);
    }
    close(law.current, 40.0 * GBPS - 20.0 * GBPS / 32.0);
    // The same, counted afterwards.
    let mut late = flow(&[]);
    late.on_cnp(US(0), &Cnp::CONGESTED);
    late.catch_up(US(5 * 55));
    assert_eq!(late.current, law.current);
}

#[test]
fn then_the_target_rises_and_earlier_to_the_letter() {
    for (reading, steps) in [("at-most", 5), ("below", 4)] {
        let mut law = flow(&[("fast_recovery_while", reading)]);
        law.on_cnp(US(0), &Cnp::CONGESTED);
        law.on_cnp(US(1), &Cnp::CONGESTED);
        assert_eq!(law.target, 20.0 * GBPS);
        law.catch_up(US(1 + 55 * steps));
        assert_eq!(law.target, 20.0 * GBPS, "{reading}");
        law.catch_up(US(1 + 55 * (steps + 1)));
        close(law.target, 20.04 * GBPS);
        law.catch_up(US(1 + 55 * (steps + 3)));
        close(law.target, 20.12 * GBPS);
    }
}

#[test]
fn the_byte_counter_takes_steps_too_and_both_together_hyper_ones() {
    let mut law = flow(&[("byte_counter", "10KB")]);
    law.on_cnp(US(0), &Cnp::CONGESTED);
    law.on_cnp(US(1), &Cnp::CONGESTED);
    law.on_sent(US(2), 9_999);
    assert_eq!(law.byte_stage, 0);
    law.on_sent(US(2), 1);
    assert_eq!(rates(&law), (15.0, 20.0));
    (0..4).for_each(|_| law.on_sent(US(2), 10_000));
    assert_eq!((law.byte_stage, law.target), (5, 20.0 * GBPS));
    law.on_sent(US(2), 10_000);
    close(law.target, 20.04 * GBPS);
    // Five expiries are additive, as the byte counter is past fast recovery; the sixth is the first hyper step.
    law.catch_up(US(1 + 5 * 55));
    close(law.target, 20.24 * GBPS);
    law.catch_up(US(1 + 6 * 55));
    close(law.target, 20.44 * GBPS);
    law.on_sent(US(1 + 6 * 55), 10_000);
    close(law.target, 20.64 * GBPS);
    law.catch_up(US(1 + 7 * 55));
    close(law.target, 20.64 * GBPS + 2.0 * 0.2 * GBPS);
    // A notification starts all over.
    law.on_cnp(US(400), &Cnp::CONGESTED);
    assert_eq!((law.timer_stage, law.byte_stage, law.counted), (0, 0, 0));
}

#[test]
fn undetermined_holds_the_rate() {
    const UNDETERMINED: Cnp = Cnp { congested: false, undetermined: true, window: None };
    // At line rate there is nothing to hold, and the first CE finds alpha at 1.
    let mut law = flow(&[]);
    law.on_cnp(US(0), &UNDETERMINED);
    assert_eq!((rates(&law), law.next_timer()), ((40.0, 40.0), Time::MAX));
    law.on_cnp(US(200), &Cnp::CONGESTED);
    assert_eq!(rates(&law), (20.0, 40.0));
    // In the middle of recovery: the step that is due is taken, then no more for five timers, which raise nothing.
    let third = US(200 + 3 * 55);
    law.on_sent(third, 9_000_000);
    law.on_cnp(third, &UNDETERMINED);
    assert_eq!(rates(&law), (37.5, 37.5));
    assert_eq!((law.timer_stage, law.byte_stage, law.counted), (0, 0, 0));
    law.catch_up(third + US(5 * 55));
    assert_eq!(rates(&law), (37.5, 37.5));
    law.catch_up(third + US(6 * 55));
    close(law.current / GBPS, 37.52);
    // Under notifications each 50 us alpha neither rises nor decays.
    let alpha = law.alpha;
    let start = third + US(6 * 55);
    for step in 0..10 {
        law.on_cnp(start + US(50 * step), &UNDETERMINED);
    }
    assert_eq!((law.alpha, law.current), (alpha, law.target));
    // CE counts, with UE or without.
    let both = Cnp { congested: true, ..UNDETERMINED };
    let before = law.current;
    law.on_cnp(start + US(500), &both);
    close(law.current, cut(before, alpha));
}

#[test]
fn the_nic_holds_too_and_still_cuts_what_was_congested() {
    const UNDETERMINED: Cnp = Cnp { congested: false, undetermined: true, window: None };
    let mut law = flow(&[("variant", "mellanox"), ("profile", "paper")]);
    law.on_cnp(US(100), &Cnp::CONGESTED);
    law.on_cnp(US(102), &UNDETERMINED);
    law.on_timer(US(104));
    let cut = law.current;
    assert!(cut < 21.0 * GBPS, "{cut}");
    // The first step of recovery would come at 404 us: UE puts it off, and takes the target away after an increase.
    law.on_cnp(US(400), &UNDETERMINED);
    law.catch_up(US(699));
    assert_eq!((law.current, law.target), (cut, 40.0 * GBPS));
    law.catch_up(US(700));
    assert_eq!(law.current, (cut + 40.0 * GBPS) / 2.0);
    law.on_cnp(US(701), &UNDETERMINED);
    assert_eq!(law.target, law.current);
}

#[test]
fn rates_stay_within_their_bounds() {
    let mut law = flow(&[]);
    for step in 1..1000 {
        law.on_cnp(US(step), &Cnp::CONGESTED);
    }
    assert_eq!(law.current, 0.1 * GBPS);
    law.catch_up(Time::from_ms(1000));
    assert_eq!((law.current, law.next_timer()), (40.0 * GBPS, Time::MAX));
    assert_eq!(law.pacing_rate(), Some(Rate::from_gbps(40)));
    law.on_loss(&Loss { now: US(1), lost_bytes: 1, next: 1, ..Loss::default() });
    law.on_timeout(Time::from_ms(1001), 0);
    assert_eq!((law.current, law.window()), (40.0 * GBPS, u64::MAX));
    let limited = Dcqcn { current: 10.0 * GBPS, ..flow(&[("in_flight", "rate-bdp")]) };
    assert_eq!(limited.window(), 12_500);
}

#[test]
fn the_timer_is_fired_only_where_packets_are_further_apart() {
    let mut law = flow(&[]);
    law.on_cnp(US(0), &Cnp::CONGESTED);
    assert_eq!(law.next_timer(), Time::MAX);
    // 1,000 bytes in 55 us are 145 Mbit/s.
    law.current = 0.14 * GBPS;
    assert_eq!(law.next_timer(), US(55));
    law.on_timer(US(55));
    assert!(law.current > GBPS && law.next_timer() == Time::MAX);
}

#[test]
fn the_nic_cuts_at_ticks_and_keeps_the_target_of_cuts_in_a_row() {
    let mut law = flow(&[("variant", "mellanox"), ("profile", "paper")]);
    law.on_cnp(US(100), &Cnp::CONGESTED);
    assert_eq!((rates(&law), law.next_timer()), ((40.0, 40.0), US(104)));
    law.on_timer(US(104));
    // Alpha decayed at four ticks, as nothing came after the first notification.
    let alpha = libm::pow(255.0 / 256.0, 4.0);
    close(law.alpha, alpha);
    close(law.current, 40.0 * GBPS * (1.0 - alpha / 2.0));
    let first = law.current;
    law.on_cnp(Time::from_ns(105_500), &Cnp::CONGESTED);
    assert_eq!(law.next_timer(), US(108));
    law.on_timer(US(108));
    let alpha = raised(alpha * 255.0 / 256.0, 1.0 / 256.0) * libm::pow(255.0 / 256.0, 2.0);
    close(law.alpha, alpha);
    close(law.current, first * (1.0 - alpha / 2.0));
    assert_eq!(law.target, 40.0 * GBPS, "no increase came between the cuts");
    // One step of fast recovery, one additive, then constant hyper ones, by the timer alone.
    law.target = 20.0 * GBPS;
    law.on_sent(US(110), 100_000_000);
    law.catch_up(US(108 + 300));
    assert_eq!(law.target, 20.0 * GBPS);
    law.catch_up(US(108 + 600));
    close(law.target, 20.008 * GBPS);
    law.catch_up(US(108 + 1200));
    close(law.target, 20.168 * GBPS);
    law.on_cnp(US(1400), &Cnp::CONGESTED);
    assert_eq!(law.next_timer(), US(1404), "ticks go on between cuts");
    law.on_timer(US(1404));
    assert!(law.target < 20.1 * GBPS, "a cut after increases lowers the target");
}

/// The profile of HPCC's simulator at 100 Gbit/s: the values of its scripts, and what its first microseconds come to.
#[test]
fn the_lineage_takes_marked_acknowledgements_for_notifications() {
    let path = Path { rate: Rate::from_gbps(100), base_rtt: Time::from_ns(12_240), ..path() };
    let lineage = Dcqcn::resolve(&path, &given(&[("profile", "hpcc-lineage")])).expect("allowed");
    let values = &lineage.parameters;
    assert_eq!((values.variant, values.fast_recovery), (Variant::Mellanox, 1));
    assert_eq!(
        [values.alpha_timer, values.decrease_timer, values.increase_timer].map(Period::time),
        [US(1), US(4), US(300)]
    );
    let mbps = |mbps: u64| Rate::from_bps(mbps * 1_000_000);
    assert_eq!((values.additive_increase, values.hyper_increase), (mbps(20), mbps(200)));
    assert_eq!((values.min_rate, values.window), (mbps(1000), Bytes::new(153_000)));
    assert_eq!(
        (Dcqcn::transport(&lineage).notification_interval, Dcqcn::transport(&lineage).updates_gap),
        (None, false)
    );

    let mut law = Dcqcn::start(&lineage, &path, Time::ZERO, 0);
    let ack = |law: &mut Dcqcn, now: Time, marked| {
        law.on_ack(&Feedback { now, marked, packets: 1, ..Feedback::default() });
    };
    ack(&mut law, US(100), 0);
    assert_eq!(law.next_timer(), Time::MAX);
    ack(&mut law, US(110), 1);
    // The cut comes a nanosecond after alpha's fourth tick, and finds that one done.
    let tick = Time::from_ns(114_001);
    assert_eq!((law.next_timer(), rates(&law)), (tick, (100.0, 100.0)));
    law.on_timer(tick);
    close(law.current, 100.0 * GBPS * (1.0 - libm::pow(255.0 / 256.0, 4.0) / 2.0));
    // 50.7767 Gbit/s is what the simulator itself has after one mark (incast16_dcqcn, `rates.csv`).
    assert!((law.current / GBPS - 50.7767).abs() < 5e-5);
    // With more marks in the second and third microsecond it has more.
    let mut law = Dcqcn::start(&lineage, &path, Time::ZERO, 0);
    for ns in [0, 1_200, 1_400, 2_500] {
        ack(&mut law, Time::from_ns(110_000 + ns), 1);
    }
    law.on_timer(tick);
    let alpha = raised(raised(255.0 / 256.0, 1.0 / 256.0), 1.0 / 256.0) * 255.0 / 256.0;
    close(law.alpha, alpha);
    assert_eq!(law.target, 100.0 * GBPS);
    // The first notification may cut at once, too.
    let halved = given(&[("variant", "mellanox"), ("profile", "paper")]);
    let halved = [halved, vec![("rate_on_first_cnp".to_owned(), Raw::Float(0.5))]].concat();
    let halved = Dcqcn::resolve(&path, &halved).expect("allowed");
    let mut law = Dcqcn::start(&halved, &path, Time::ZERO, 0);
    law.on_cnp(US(1), &Cnp::CONGESTED);
    assert_eq!(rates(&law), (50.0, 50.0));
}

/// Mercury, J. Cloud Computing 2024, algorithm 2.
#[test]
fn a_granted_window_lasts_until_the_next_step_of_recovery() {
    let mut law = flow(&[("in_flight", "bdp")]);
    assert_eq!(law.window(), 50_000);
    law.on_cnp(US(100), &Cnp::granting(9_000));
    law.on_cnp(US(101), &Cnp::granting(20_000));
    assert_eq!((law.window(), rates(&law)), (9_000, (10.0, 20.0)));
    // The timer is fired, however fast packets follow each other.
    assert_eq!(law.next_timer(), US(156));
    law.on_timer(US(156));
    assert_eq!((law.window(), law.next_timer(), rates(&law)), (50_000, Time::MAX, (15.0, 20.0)));
    // So does the byte counter.
    let mut law = flow(&[("byte_counter", "10KB")]);
    law.on_cnp(US(100), &Cnp::granting(9_000));
    law.on_sent(US(101), 10_000);
    assert_eq!(law.window(), u64::MAX);
    // With the other reading increases do not matter.
    let mut law = flow(&[("grant_until", "timeout")]);
    law.on_cnp(US(100), &Cnp::granting(9_000));
    law.on_cnp(US(110), &Cnp::CONGESTED);
    law.catch_up(Time::from_ns(159_999));
    assert_eq!((law.window(), law.next_timer()), (9_000, US(160)));
    law.on_timer(US(160));
    assert_eq!((law.window(), law.next_timer()), (u64::MAX, Time::MAX));
}

#[test]
fn a_guard_keeps_cuts_apart_but_not_what_else_notifications_do() {
    let guarded = &[("decrease_guard", "cnp-interval"), ("in_flight", "bdp")];
    let mut law = flow(guarded);
    law.on_cnp(US(100), &Cnp::granting(20_000));
    law.alpha = 0.5;
    law.on_cnp(US(112), &Cnp::granting(9_000));
    law.on_cnp(US(149), &Cnp::CONGESTED);
    assert_eq!((rates(&law), law.window()), ((20.0, 40.0), 9_000));
    close(law.alpha, raised(raised(0.5, 1.0 / 256.0), 1.0 / 256.0));
    // Recovery goes on from the cut, with its first step ending the grant though notifications went on.
    assert_eq!(law.next_timer(), US(155));
    law.on_cnp(US(150), &Cnp::CONGESTED);
    assert!(law.current < 16.0 * GBPS && law.target == 20.0 * GBPS);
    // At line rate nothing recovers, but a grant ends all the same, one timer later.
    (law.current, law.target) = (40.0 * GBPS, 40.0 * GBPS);
    law.grant = Grant::NONE;
    law.guarded_until = Time::MAX;
    law.on_cnp(US(1000), &Cnp::granting(7_000));
    assert_eq!((law.current, law.window(), law.next_timer()), (40.0 * GBPS, 7_000, US(1055)));
    law.on_timer(US(1055));
    assert_eq!((law.current, law.window()), (40.0 * GBPS, 50_000));

    // The NIC's: ticks pass without a cut.
    let mut law = flow(&[("variant", "mellanox"), ("profile", "paper"), ("decrease_guard", "50us")]);
    law.on_cnp(US(100), &Cnp::CONGESTED);
    law.on_timer(US(104));
    let cut = law.current;
    law.on_cnp(US(110), &Cnp::granting(5_000));
    assert!(!law.cut_pending && law.alpha_pending);
    law.catch_up(US(150));
    assert_eq!((law.current, law.window()), (cut, 5_000));
    law.on_cnp(US(154), &Cnp::CONGESTED);
    law.on_timer(US(156));
    assert!(law.current < cut);

    let values = Dcqcn::values(&Dcqcn::resolve(&path(), &given(guarded)).expect("allowed"));
    assert!(values.contains(&("decrease_guard", Raw::Text("cnp-interval".into()))));
    let refused = Dcqcn::resolve(&path(), &given(&[("decrease_guard", "cnp")])).expect_err("refused").to_string();
    assert!(refused.contains("or \"cnp-interval\""), "{refused}");
}

#[test]
fn mistakes_are_refused() {
    let refused = |values: &[(&str, &str)]| Dcqcn::resolve(&path(), &given(values)).expect_err("refused").to_string();
    assert!(refused(&[("variant", "nic")]).contains("\"paper\" \"mellanox\""));
    assert!(refused(&[("increase_timer", "0us")]).contains("at least 10ns"));
    assert!(refused(&[("kmin", "5KB")]).contains("unknown parameter"));
}

#[test]
fn state_is_small() {
    assert!(size_of::<Dcqcn>() <= 128, "{}", size_of::<Dcqcn>());
}

/// NVIDIA's "DCQCN CC Parameters" and five dumps of NICs; the patch "RDMA/ionic 4/4" of May 2026.
#[test]
fn what_vendors_ship_does_not_scale() {
    let at = |gbps, name| {
        let path = Path { rate: Rate::from_gbps(gbps), ..path() };
        Dcqcn::resolve(&path, &given(&[("profile", name)])).expect("allowed").parameters.clone()
    };
    for (name, byte_counter, cnp, steps) in
        [("nvidia", 2_097_088, US(4), (5, 50)), ("amd-2026", 431_068, Time::ZERO, (160, 300))]
    {
        let values = at(40, name);
        assert_eq!(values, Parameters { window: values.window, ..at(400, name) });
        let rates =
            [values.additive_increase, values.hyper_increase, values.min_rate].map(|rate| rate.bps() / 1_000_000);
        assert_eq!(rates, [steps.0, steps.1, 1]);
        assert_eq!(
            (values.variant, values.byte_counter.get(), values.cnp_interval),
            (Variant::Mellanox, byte_counter, cnp)
        );
        assert_eq!((values.fast_recovery, values.alpha_timer.time()), (1, US(1)));
    }
    // AMD's alpha begins at 1/16 and decays by half each microsecond.
    let mut law = flow(&[("profile", "amd-2026")]);
    law.on_cnp(US(100), &Cnp::CONGESTED);
    law.on_timer(US(101));
    close(law.current, 40.0 * GBPS * (1.0 - 1.0 / 64.0));
}

#[test]
fn a_nic_with_a_byte_counter_has_both_stages() {
    let mut law = flow(&[("profile", "nvidia")]);
    law.on_cnp(US(100), &Cnp::CONGESTED);
    law.on_timer(US(104));
    let cut = law.current;
    close(law.target, 40.0 * GBPS);
    law.target = 30.0 * GBPS;
    // One step of each counter is fast recovery; the second of the bytes adds R_AI, that of the timer R_HAI.
    law.on_sent(US(105), 2_097_088);
    close(law.current, (cut + 30.0 * GBPS) / 2.0);
    law.catch_up(US(404));
    close(law.target, 30.0 * GBPS);
    law.on_sent(US(405), 2_097_088);
    close(law.target, 30.005 * GBPS);
    law.catch_up(US(704));
    close(law.target, 30.055 * GBPS);
    law.on_sent(US(705), 2_097_088);
    close(law.target, 30.105 * GBPS);
}
