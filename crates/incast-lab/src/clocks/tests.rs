use super::*;

/// Few probes, so that tests are quick.
fn small() -> SyncSettings {
    SyncSettings { hosts: 12, peers: 4, windows: 2, interval: Time::from_ms(2), ..SyncSettings::default() }
}

fn pooled(all: &Synchronisation, method: Method) -> &Row {
    all.rows.iter().find(|row| row.method == method && row.window.is_none()).expect("a row")
}

/// The aim of the project's plan: 32 hosts, 1 us of (normal) noise on each timestamp, busy paths, drifts within 10 ppm.
#[test]
fn every_clock_of_32_hosts_is_within_100_ns_with_1_us_of_noise() {
    for seed in 1..=2 {
        let settings = SyncSettings { seed, windows: 1, ..SyncSettings::default() };
        assert_eq!((settings.hosts, settings.noise), (32, Time::from_us(1)));
        let left = residuals(&settings, Method::Huygens).expect("synchronised");
        assert_eq!(left.len(), 32);
        assert_eq!(left[0], Residual::default());
        let worst = left.iter().map(|clock| clock.offset_ps.abs()).max().expect("hosts");
        assert!(worst < 100_000, "seed {seed}: {worst} ps");
        // Some noise must have come through.
        assert!(worst > 1_000, "seed {seed}: {worst} ps");
    }
}

#[test]
fn without_noise_and_queues_every_method_is_exact() {
    let settings = SyncSettings { noise: Time::ZERO, busy: 0.0, drift_ppm: 30.0, ..small() };
    let all = synchronise(&settings).expect("synchronised");
    assert_eq!(all.accepted, 1.0);
    assert_eq!(all.asymmetric, []);
    for row in &all.rows {
        // What is left is that the two directions' probes leave at different times, and picoseconds.
        assert!(row.max_ns < 0.5 && row.next_max_ns < 0.5, "{row:?}");
    }
}

#[test]
fn coded_pairs_and_loops_beat_averages() {
    let settings = SyncSettings { noise: Time::from_ns(50), ..small() };
    let all = synchronise(&settings).expect("synchronised");
    let mean = |method| pooled(&all, method).mean_ns;
    assert!(mean(Method::Huygens) < mean(Method::HuygensTree), "{all:?}");
    assert!(mean(Method::HuygensTree) < mean(Method::TwoWayMinimum), "{all:?}");
    assert!(mean(Method::TwoWayMinimum) < mean(Method::TwoWayAverage), "{all:?}");
    // Queues of 10 us on about a third of the probes, unlike there and back, leave averages hundreds of nanoseconds
    // off.
    assert!(mean(Method::TwoWayAverage) > 300.0, "{all:?}");
    assert!(all.accepted > 0.3 && all.accepted < 0.7, "{}", all.accepted);
}

#[test]
fn one_asymmetric_link_is_named_and_none_without() {
    for seed in 1..=5 {
        let symmetric = SyncSettings { seed, noise: Time::from_ns(200), ..small() };
        assert_eq!(synchronise(&symmetric).expect("synchronised").asymmetric, [], "seed {seed}");
        for (from, to) in [(3, 7), (9, 1)] {
            let link = AsymmetricLink { from, to, extra: Time::from_us(2) };
            let settings = SyncSettings { asymmetric: Some(link), ..symmetric.clone() };
            let all = synchronise(&settings).expect("synchronised");
            assert_eq!(all.asymmetric.len(), 1, "seed {seed}: {:?}", all.asymmetric);
            let named = &all.asymmetric[0];
            assert_eq!((named.from, named.to, named.windows.as_slice()), (from, to, &[1, 2][..]));
            assert!((named.extra_ns - 2_000.0).abs() < 300.0, "seed {seed}: {named:?}");
            let (plain, repaired) = (pooled(&all, Method::Huygens), pooled(&all, Method::HuygensRepaired));
            assert!(repaired.mean_ns < plain.mean_ns, "{plain:?} {repaired:?}");
        }
    }
}

#[test]
fn residuals_are_what_the_last_window_of_the_report_has() {
    let settings = small();
    let all = synchronise(&settings).expect("synchronised");
    for method in [Method::Huygens, Method::HuygensTree, Method::TwoWayAverage, Method::TwoWayMinimum] {
        let left = residuals(&settings, method).expect("synchronised");
        assert_eq!(left, residuals(&settings, method).expect("synchronised"));
        let worst = left.iter().map(|clock| clock.offset_ps.abs()).max().expect("hosts") as f64 / 1e3;
        let row = all.rows.iter().find(|row| row.method == method && row.window == Some(2)).expect("a row");
        assert!((worst - row.max_ns).abs() < 0.001, "{worst} {row:?}");
        // Drift carries each error into what it is a window later.
        let later = |clock: &Residual| (clock.offset_ps as f64 / 1e3 + clock.drift_ppm * 2e3).abs();
        let worst = left.iter().map(later).fold(0.0, f64::max);
        assert!((worst - row.next_max_ns).abs() < 0.1, "{worst} {row:?}");
    }
    let other = SyncSettings { seed: 2, ..settings.clone() };
    assert_ne!(residuals(&other, Method::Huygens), residuals(&settings, Method::Huygens));
}

#[test]
fn shapes_of_noise_have_their_scale() {
    let mean = |noise_shape| {
        let settings = SyncSettings { noise_shape, busy: 0.0, ..small() };
        pooled(&synchronise(&settings).expect("synchronised"), Method::TwoWayAverage).mean_ns
    };
    let (normal, uniform) = (mean(NoiseShape::Normal), mean(NoiseShape::Uniform));
    let exponential = mean(NoiseShape::Exponential);
    // Standard deviations of 1, 0.58 and 1 us, and none has a mean that differs there and back.
    assert!(uniform < normal && uniform > 0.2 * normal, "{uniform} {normal}");
    assert!(exponential < 2.0 * normal && exponential > 0.5 * normal, "{exponential} {normal}");
}

#[test]
fn settings_out_of_range_are_named() {
    let base = SyncSettings::default();
    let link = |from, to| Some(AsymmetricLink { from, to, extra: Time::from_us(1) });
    for (key, settings) in [
        ("hosts", SyncSettings { hosts: 1, ..base.clone() }),
        ("hosts", SyncSettings { hosts: 5_000, ..base.clone() }),
        ("peers", SyncSettings { peers: 0, ..base.clone() }),
        ("peers", SyncSettings { peers: 32, ..base.clone() }),
        ("drift-ppm", SyncSettings { drift_ppm: f64::NAN, ..base.clone() }),
        ("drift-ppm", SyncSettings { drift_ppm: -1.0, ..base.clone() }),
        ("busy", SyncSettings { busy: 1.5, ..base.clone() }),
        ("soft", SyncSettings { soft: f64::NAN, ..base.clone() }),
        ("noise", SyncSettings { noise: Time::MAX, ..base.clone() }),
        ("guard", SyncSettings { guard: Some(Time::ZERO), ..base.clone() }),
        ("gap", SyncSettings { gap: Time::ZERO, ..base.clone() }),
        ("interval", SyncSettings { interval: Time::from_us(10), ..base.clone() }),
        ("interval", SyncSettings { interval: Time::from_ms(1_000), ..base.clone() }),
        ("window", SyncSettings { window: Time::MAX, ..base.clone() }),
        ("windows", SyncSettings { windows: 0, ..base.clone() }),
        ("threshold", SyncSettings { threshold: f64::NAN, ..base.clone() }),
        ("asymmetric", SyncSettings { asymmetric: link(3, 3), ..base.clone() }),
        ("asymmetric", SyncSettings { asymmetric: link(3, 32), ..base.clone() }),
    ] {
        match residuals(&settings, Method::Huygens) {
            Err(SyncError::Setting { key: found, .. }) => assert_eq!(found, key),
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn a_guard_that_accepts_nothing_says_so() {
    let settings = SyncSettings { guard: Some(Time::from_ps(1)), ..small() };
    assert!(matches!(residuals(&settings, Method::Huygens), Err(SyncError::Unobserved { window: 2, .. })));
    // Two-way exchanges have no guard.
    assert!(residuals(&settings, Method::TwoWayAverage).is_ok());
}

#[test]
fn two_hosts_are_a_graph() {
    let settings = SyncSettings { hosts: 2, peers: 1, ..small() };
    assert_eq!(residuals(&settings, Method::Huygens).expect("synchronised").len(), 2);
}
