//! The controller against the core that it wraps, against the golden vectors, and under any sequence of events.

use super::*;
use crate::settings::Settings;
use incast_cc::window::marimo::core::{
    Config, LoadTable, Shared, WINDOW_MAX,
    vectors::{self, Event, LineContent},
};
use num_rational::Ratio;
use proptest::prelude::*;
use s2n_quic_core::{
    event::builder::BbrState,
    recovery::bandwidth::{Bandwidth, RateSample},
};
use std::{collections::BTreeMap, time::Duration};

const FULL: u16 = 1_200;
const RTT: Duration = Duration::from_micros(200);

/// Records how slow start ended.
#[derive(Debug, Default)]
struct Published(Vec<u32>);

impl Publisher for Published {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, congestion_window: u32) {
        self.0.push(congestion_window);
    }
    fn on_delivery_rate_sampled(&mut self, _rate_sample: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _rate: Bandwidth, _burst: u32, _gain: Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}

/// The law draws nothing.
struct NoRandomness;

impl RandomGenerator for NoRandomness {
    fn public_random_fill(&mut self, _dest: &mut [u8]) {
        unreachable!("Marimo is deterministic");
    }
    fn private_random_fill(&mut self, _dest: &mut [u8]) {
        unreachable!("Marimo is deterministic");
    }
}

fn at(micros: u64) -> Timestamp {
    // SAFETY: a clock of these tests alone, never compared with another one.
    unsafe { Timestamp::from_duration(Duration::from_micros(micros)) }
}

/// A path on which this test plays both s2n-quic and the network.
struct Path {
    controller: Controller,
    link: Arc<Link>,
    rtt: RttEstimator,
    now: u64,
    published: Published,
    /// Packets in flight by position: what was remembered, and bytes.
    outstanding: BTreeMap<u64, (PacketInfo, u32)>,
    sent: u64,
    /// One more than the newest acknowledged position.
    acked_up_to: u64,
    /// Marks told and not yet part of an acknowledgement.
    marks: u32,
    /// Most bytes in flight since the packet before this position was acknowledged.
    peak: u64,
    peak_end: u64,
}

impl Path {
    fn new(settings: Settings) -> Self {
        let link = Arc::new(Link::default());
        Self {
            controller: Controller::new(settings.shared(), Arc::clone(&link), FULL),
            link,
            rtt: RttEstimator::new(RTT),
            now: 1_000,
            published: Published::default(),
            outstanding: BTreeMap::new(),
            sent: 0,
            acked_up_to: 0,
            marks: 0,
            peak: 0,
            peak_end: 0,
        }
    }
    fn send(&mut self, bytes: u32, app_limited: Option<bool>) {
        self.now += 1;
        let info =
            self.controller.on_packet_sent(at(self.now), bytes as usize, app_limited, &self.rtt, &mut self.published);
        if bytes > 0 {
            self.outstanding.insert(self.sent, (info, bytes));
            self.sent += 1;
            self.peak = self.peak.max(self.in_flight());
        }
    }
    fn marked(&mut self, count: u32) {
        self.marks = self.marks.saturating_add(count);
        self.controller.on_explicit_congestion(count.into(), at(self.now), &mut self.published);
    }
    /// Acknowledges those of these packets that are in flight; how many there were.
    fn ack(&mut self, positions: &[u64]) -> u32 {
        let found: BTreeMap<u64, (PacketInfo, u32)> =
            positions.iter().filter_map(|at| Some((*at, self.outstanding.remove(at)?))).collect();
        let Some((newest, (info, _))) = found.last_key_value() else { return 0 };
        self.now += 10;
        self.acked_up_to = self.acked_up_to.max(newest + 1);
        let bytes: u32 = found.values().map(|(_, bytes)| bytes).sum();
        if self.acked_up_to > self.peak_end {
            (self.peak, self.peak_end) = (self.in_flight() + u64::from(bytes), self.sent);
        }
        self.controller.on_ack(
            at(self.now - 10),
            bytes as usize,
            *info,
            &self.rtt,
            &mut NoRandomness,
            at(self.now),
            &mut self.published,
        );
        let count = found.len() as u32;
        self.marks -= self.marks.min(count);
        count
    }
    /// Loses a packet if it is in flight.
    fn lose(&mut self, position: u64, persistent: bool) -> bool {
        let Some((info, bytes)) = self.outstanding.remove(&position) else { return false };
        self.controller.on_packet_lost(
            bytes,
            info,
            persistent,
            true,
            &mut NoRandomness,
            at(self.now),
            &mut self.published,
        );
        true
    }
    fn oldest(&self, index: usize) -> Option<u64> {
        self.outstanding.keys().nth(index).copied()
    }
    fn in_flight(&self) -> u64 {
        self.outstanding.values().map(|(_, bytes)| u64::from(*bytes)).sum()
    }
    fn core(&self) -> Connection {
        match self.controller.law {
            Law::Marimo(core) => core,
            Law::Reno(_) => panic!("ECN did not fail"),
        }
    }
    /// A round trip: what is in flight is acknowledged, `share` percent of it marked, and then as much is sent as fits.
    fn round(&mut self, share: u64) {
        while !self.controller.is_congestion_limited() {
            self.send(FULL.into(), Some(false));
        }
        let positions: Vec<u64> = self.outstanding.keys().copied().collect();
        for pair in positions.chunks(2) {
            let marked = pair.iter().filter(|at| **at * share / 100 != (**at + 1) * share / 100).count();
            if marked > 0 {
                self.marked(marked as u32);
            }
            self.ack(pair);
        }
    }
}

/// With these parameters.
fn settings(parameters: &[(&str, incast_cc::parameters::Raw)]) -> Settings {
    let given: Vec<_> = parameters.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Settings::new(&given).expect("allowed")
}

#[test]
fn marks_shrink_the_window_and_their_absence_lets_it_grow() {
    let mut path = Path::new(Settings::default());
    let start = path.controller.congestion_window();
    path.round(0);
    path.round(0);
    let grown = path.controller.congestion_window();
    assert!(grown >= 3 * start, "slow start: {start} {grown}");
    assert!(path.published.0.is_empty());
    for _ in 0..4 {
        path.round(100);
    }
    assert_eq!(path.published.0.len(), 1, "slow start ends once");
    let marked = path.controller.congestion_window();
    assert!(marked < grown * 3 / 4, "{grown} {marked}");
    for _ in 0..16 {
        path.round(0);
    }
    let recovered = path.controller.congestion_window();
    let packets = (recovered - marked) / u32::from(FULL);
    assert!((8..=16).contains(&packets), "a packet per round trip: {packets}");
    let epochs = path.link.statistics().epochs;
    assert_eq!(epochs.len() as u32, path.core().epochs());
    assert!(epochs.iter().any(|epoch| epoch.share == ONE), "{epochs:?}");
}

#[test]
fn without_ecn_losses_alone_decide_and_with_it_the_window_goes_on() {
    let mut path = Path::new(Settings::default());
    path.round(0);
    path.round(100);
    path.link.set_ecn(EcnState::Failed);
    path.round(0);
    assert!(path.controller.is_fallback());
    let before = path.controller.window();
    // Whatever is still said of marks: it is not believed.
    path.round(100);
    assert!(path.controller.window() >= before);
    while !path.controller.is_congestion_limited() {
        path.send(FULL.into(), Some(false));
    }
    let (lost, window) = (path.oldest(0).expect("in flight"), path.controller.window());
    path.lose(lost, false);
    assert_eq!(path.controller.window(), (window / 2).max(2 * ONE));
    assert!(path.controller.requires_fast_retransmission());
    path.send(FULL.into(), Some(false));
    assert!(!path.controller.requires_fast_retransmission());
    // Tested again, which does not change anything yet.
    path.link.set_ecn(EcnState::Testing);
    path.round(0);
    assert!(path.controller.is_fallback());
    path.link.set_ecn(EcnState::Capable);
    let window = path.controller.window();
    path.send(FULL.into(), Some(false));
    assert!(!path.controller.is_fallback());
    assert_eq!(path.controller.window(), window);
    let statistics = path.link.statistics();
    assert_eq!((statistics.ecn_failures, statistics.fallbacks, statistics.returns), (1, 1, 1));
}

#[test]
fn a_test_of_ecn_that_nothing_decides_is_a_failed_one() {
    let mut path = Path::new(Settings::default());
    for _ in 0..10 {
        path.send(FULL.into(), Some(false));
    }
    path.link.set_ecn(EcnState::Unknown);
    // Nine are lost. What is acknowledged was sent before the change, and says nothing yet.
    for position in 0..9 {
        path.lose(position, false);
    }
    path.ack(&[9]);
    assert!(!path.controller.is_fallback());
    // Not in flight, so that the next one is the first without ECT whose acknowledgement arrives.
    path.send(0, Some(false));
    path.send(FULL.into(), Some(false));
    path.send(FULL.into(), Some(false));
    assert!(!path.controller.is_fallback());
    let window = path.controller.window();
    path.ack(&[10]);
    assert!(path.controller.is_fallback());
    assert!(path.controller.window() >= window);
    path.ack(&[11]);
    assert_eq!((path.link.statistics().fallbacks, path.link.statistics().returns), (1, 0), "counted once");
    // A packet of the test was only late.
    path.link.set_ecn(EcnState::Capable);
    path.send(FULL.into(), Some(false));
    assert!(!path.controller.is_fallback());
    // Validated in time, nothing changes.
    let mut path = Path::new(Settings::default());
    path.link.set_ecn(EcnState::Unknown);
    path.send(FULL.into(), Some(false));
    path.link.set_ecn(EcnState::Capable);
    path.ack(&[0]);
    assert_eq!(path.link.statistics().fallbacks, 0);
}

#[test]
fn a_measured_round_trip_takes_back_what_an_assumed_one_has_paced() {
    let mut path = Path::new(Settings::default());
    let sampled = |path: &mut Path, micros: u64| {
        path.rtt.update_rtt(
            Duration::ZERO,
            Duration::from_micros(micros),
            at(path.now),
            true,
            PacketNumberSpace::ApplicationData,
        );
        path.controller.on_rtt_update(at(path.now), at(path.now), &path.rtt, &mut path.published);
    };
    for (micros, stays) in [(200, false), (5_000, true)] {
        path.rtt = RttEstimator::new(Duration::from_millis(10));
        for _ in 0..10 {
            path.send(FULL.into(), Some(false));
        }
        assert!(path.controller.earliest_departure_time().is_some_and(|departure| departure > at(path.now)));
        sampled(&mut path, micros);
        assert_eq!(path.controller.earliest_departure_time().is_some(), stays, "{micros} us");
    }
}

#[test]
fn a_pause_limits_the_next_burst_and_keeps_the_window() {
    let mut path = Path::new(Settings::default());
    for _ in 0..4 {
        path.round(0);
    }
    let window = path.controller.window();
    assert!(window > 100 * ONE);
    path.now += 10_000_000;
    path.send(FULL.into(), Some(false));
    assert_eq!(path.controller.congestion_window(), 10 * u32::from(FULL));
    assert_eq!(path.controller.window(), window);
    for _ in 0..5 {
        path.round(0);
    }
    assert!(path.controller.congestion_window() > 100 * u32::from(FULL));
}

#[test]
fn persistent_congestion_leaves_two_packets() {
    let mut path = Path::new(Settings::default());
    path.round(0);
    while !path.controller.is_congestion_limited() {
        path.send(FULL.into(), Some(false));
    }
    for position in path.outstanding.keys().copied().collect::<Vec<_>>() {
        path.lose(position, true);
    }
    assert_eq!(path.controller.congestion_window(), 2 * u32::from(FULL));
    assert_eq!(path.controller.bytes_in_flight(), 0);
}

#[test]
fn a_larger_packet_leaves_the_bytes_of_the_window() {
    for ecn in [EcnState::Capable, EcnState::Failed] {
        let mut path = Path::new(Settings::default());
        path.link.set_ecn(ecn);
        path.send(FULL.into(), Some(false));
        let bytes = path.controller.congestion_window();
        path.controller.on_mtu_update(2 * FULL, &mut path.published);
        let after = path.controller.congestion_window();
        assert!(after <= bytes && after + 2 >= bytes, "{ecn:?}: {bytes} B, then {after} B");
        path.controller.on_mtu_update(FULL, &mut path.published);
        assert_eq!(path.controller.congestion_window(), after / 2, "smaller ones leave the packets");
    }
    let mut path = Path::new(Settings::default());
    path.controller.on_mtu_update(8_952, &mut path.published);
    assert_eq!(path.controller.congestion_window(), 2 * 8_952, "no window is below two packets");
    assert_eq!(path.controller.send_quantum(), Some(8_952), "one packet at a time");
}

/// The core, told by this test what the controller ought to tell it.
struct Mirror {
    core: Connection,
    settings: Settings,
}

impl Mirror {
    fn assert(&self, path: &Path) -> Result<(), TestCaseError> {
        prop_assert_eq!(path.core(), self.core);
        let least = self.core.window().max(2 * ONE);
        let bytes = (u64::from(least) * u64::from(FULL)) >> 16;
        prop_assert_eq!(u64::from(path.controller.congestion_window()), bytes);
        prop_assert_eq!(u64::from(path.controller.bytes_in_flight()), path.in_flight());
        Ok(())
    }
}

/// What happens to packets that all have one size.
#[derive(Clone, Debug)]
enum Step {
    Send {
        packets: u8,
        app_limited: bool,
    },
    /// Of the oldest 64 in flight those whose bits are set.
    Ack(u64),
    Mark(u8),
    Lose {
        index: u8,
        persistent: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..40u8, proptest::bool::weighted(0.2)).prop_map(|(packets, app_limited)| Step::Send { packets, app_limited }),
        4 => prop_oneof![Just(u64::MAX), Just(0xff), any::<u64>()].prop_map(Step::Ack),
        2 => (0..40u8).prop_map(Step::Mark),
        1 => (0..64u8, proptest::bool::weighted(0.2)).prop_map(|(index, persistent)| Step::Lose { index, persistent }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Events of QUIC give the windows that the core has when it is fed directly.
    #[test]
    fn the_core_is_told_what_happened(steps in proptest::collection::vec(step(), 1..300), rule in any::<bool>()) {
        let rule = if rule { "settling" } else { "paper" };
        let settings = settings(&[("rule", incast_cc::parameters::Raw::Text(rule.into()))]);
        let mut mirror = Mirror { core: Connection::new(&settings.shared), settings: settings.clone() };
        let mut path = Path::new(settings);
        let mut limited_by_application = false;
        for step in steps {
            match step {
                Step::Send { packets, app_limited } => {
                    for _ in 0..packets {
                        path.send(FULL.into(), Some(app_limited));
                    }
                    limited_by_application = app_limited;
                }
                Step::Mark(count) => path.marked(count.into()),
                Step::Ack(bits) => {
                    let oldest: Vec<u64> = path.outstanding.keys().take(64).copied().collect();
                    let chosen: Vec<u64> =
                        oldest.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, at)| *at).collect();
                    let (marks, peak) = (path.marks, path.peak);
                    let window = u64::from(path.controller.congestion_window());
                    let count = path.ack(&chosen);
                    if count > 0 {
                        let ack = Ack {
                            packets: count,
                            marked: marks.min(count),
                            acked: count,
                            position: path.acked_up_to as u32,
                            next: path.sent as u32,
                            limited: (!limited_by_application && 2 * peak >= window).into(),
                        };
                        mirror.core.on_ack(&mirror.settings.shared, &ack);
                    }
                }
                Step::Lose { index, persistent } => {
                    if let Some(position) = path.oldest(index.into()) {
                        path.lose(position, persistent);
                        let next = path.sent as u32;
                        if persistent {
                            mirror.core.on_timeout(&mirror.settings.shared, next);
                        } else {
                            mirror.core.on_loss(&mirror.settings.shared, position as u32, next);
                        }
                    }
                }
            }
            mirror.assert(&path)?;
        }
    }
}

/// Anything that s2n-quic may call, in any order, with any numbers that it may have.
#[derive(Clone, Debug)]
enum Operation {
    Send { bytes: u16, app_limited: Option<bool> },
    Ack(u64),
    Mark(u64),
    Lose { index: u8, persistent: bool },
    Mtu(u16),
    Discard(u8),
    Pause(u64),
    Ecn(u8),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (prop_oneof![Just(0), Just(FULL), any::<u16>()], any::<Option<bool>>())
            .prop_map(|(bytes, app_limited)| Operation::Send { bytes, app_limited }),
        4 => prop_oneof![Just(u64::MAX), any::<u64>()].prop_map(Operation::Ack),
        1 => prop_oneof![0..10u64, any::<u64>()].prop_map(Operation::Mark),
        1 => (0..64u8, any::<bool>()).prop_map(|(index, persistent)| Operation::Lose { index, persistent }),
        1 => any::<u16>().prop_map(Operation::Mtu),
        1 => any::<u8>().prop_map(Operation::Discard),
        1 => prop_oneof![0..10_000u64, 0..100_000_000u64].prop_map(Operation::Pause),
        1 => (0..4u8).prop_map(Operation::Ecn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_window_stays_within_its_bounds_whatever_happens(
        operations in proptest::collection::vec(operation(), 1..400),
        rtt in prop_oneof![Just(RTT), (1..1_000_000u64).prop_map(Duration::from_micros)],
    ) {
        let mut path = Path::new(Settings::default());
        path.rtt = RttEstimator::new(rtt);
        let mut full = u32::from(FULL);
        for operation in operations {
            let before = (path.controller.window(), path.controller.is_fallback());
            let bytes = path.controller.congestion_window();
            let mut may_grow = false;
            match operation {
                Operation::Send { bytes, app_limited } => path.send(bytes.into(), app_limited),
                Operation::Ack(bits) => {
                    let oldest: Vec<u64> = path.outstanding.keys().take(64).copied().collect();
                    let bit = |index: usize| bits >> index & 1 == 1;
                    let chosen: Vec<u64> = (0..oldest.len()).filter(|at| bit(*at)).map(|at| oldest[at]).collect();
                    path.ack(&chosen);
                    may_grow = true;
                }
                Operation::Mark(count) => {
                    path.controller.on_explicit_congestion(count, at(path.now), &mut path.published);
                }
                Operation::Lose { index, persistent } => {
                    if let Some(position) = path.oldest(index.into()) {
                        path.lose(position, persistent);
                    }
                }
                Operation::Mtu(size) => {
                    path.controller.on_mtu_update(size, &mut path.published);
                    full = u32::from(size).max(1);
                }
                Operation::Discard(index) => {
                    if let Some(position) = path.oldest(index.into()) {
                        let bytes = path.outstanding.remove(&position).map_or(0, |(_, bytes)| bytes);
                        path.controller.on_packet_discarded(bytes as usize, &mut path.published);
                    }
                }
                Operation::Pause(micros) => path.now += micros,
                Operation::Ecn(state) => path.link.set_ecn(
                    [EcnState::Testing, EcnState::Unknown, EcnState::Failed, EcnState::Capable][usize::from(state)],
                ),
            }
            let window = path.controller.window();
            prop_assert!((2 * ONE..=WINDOW_MAX * ONE).contains(&window), "{window}");
            prop_assert!(path.controller.congestion_window() >= 2 * full);
            prop_assert_eq!(u64::from(path.controller.bytes_in_flight()), path.in_flight());
            // A change of the law keeps the window, so that only acknowledgements raise it; no MTU adds bytes to it.
            prop_assert!(may_grow || window <= before.0, "{:?} {window}", before);
            let least = 2 * full;
            prop_assert!(may_grow || path.controller.congestion_window() <= bytes.max(least));
        }
    }
}

/// The golden vectors of `deploy/core`, as far as QUIC can say what they say: acknowledgements of as many packets as
/// lie between their positions, with a next position that does not go back. A connection ends with the first line that
/// it cannot say. The core's decisions must be those of the oracle.
#[test]
fn the_golden_vectors_as_events_of_quic() {
    let (compared, marked) = replay_core(include_str!("../../../core/test/marimo.txt"));
    assert!(compared >= 100 && marked >= 20, "{compared} lines, {marked} with marks");
    if let Some(whole) = whole_vectors("marimo-whole.txt") {
        let (compared, marked) = replay_core(&whole);
        assert!(compared > 800 && marked > 250, "{compared} lines, {marked} with marks");
    }
}

/// All vectors, where `INCAST_VECTORS` names the folder in which `deploy/quic/test/run.sh` made them: what is committed
/// is a sample.
fn whole_vectors(name: &str) -> Option<String> {
    let folder = std::env::var_os("INCAST_VECTORS")?;
    let path = std::path::Path::new(&folder).join(name);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// How many lines QUIC could say, and how many of them with marks.
fn replay_core(text: &str) -> (u32, u32) {
    const UNIT: u32 = 1_000;
    let (mut config, mut table) = (Config::default(), None);
    let mut path: Option<Path> = None;
    // Where the vector's positions begin, and the newest one.
    let mut base: Option<u32> = None;
    let (mut compared, mut marked) = (0, 0);
    for line in vectors::lines(text) {
        let line = line.expect("sound vectors");
        match line.content {
            LineContent::Config(new) => config = new,
            LineContent::Table(knots) => {
                // Tables that no endpoint would take are left out.
                table = LoadTable::new("vectors", knots).ok();
                path = None;
            }
            LineContent::Event { event: Event::New, .. } => {
                base = None;
                path = table.as_ref().and_then(|table| Some(with_core(Shared::new(config, table)?)));
            }
            LineContent::Event { event, decided } => {
                let Some(playing) = &mut path else { continue };
                if !play(playing, event, &mut base, UNIT) {
                    path = None;
                    continue;
                }
                let core = playing.core();
                let expected = decided.expect("decisions");
                assert_eq!(
                    [core.window(), core.rho(), core.epochs()],
                    [expected.window, expected.rho, expected.epochs],
                    "{}",
                    line.text
                );
                compared += 1;
                marked += u32::from(matches!(event, Event::Ack(ack) if ack.marked > 0));
            }
        }
    }
    (compared, marked)
}

/// Plays a line of the vectors; whether QUIC can say it.
fn play(path: &mut Path, event: Event, base: &mut Option<u32>, unit: u32) -> bool {
    let (position, next, packets) = match event {
        Event::Ack(ack) => (ack.position, ack.next, ack.packets),
        Event::Loss { position, next } => (position, next, 0),
        Event::Timeout { next } | Event::Idle { next } => (next, next, 0),
        Event::New => return false,
    };
    // The packets of the first acknowledgement are the first ones.
    let base = *base.get_or_insert(position.wrapping_sub(packets.wrapping_mul(unit)));
    let place = |position: u32| {
        let distance = position.wrapping_sub(base);
        (distance.is_multiple_of(unit) && distance < 1 << 31).then_some(u64::from(distance / unit))
    };
    let (Some(position), Some(next)) = (place(position), place(next)) else { return false };
    if next < path.sent || next - path.sent > 10_000 {
        return false;
    }
    while path.sent < next {
        path.send(FULL.into(), Some(false));
    }
    match event {
        Event::Ack(ack) => {
            let chosen: Vec<u64> = (path.acked_up_to..position).collect();
            let sayable = packets == ack.acked
                && chosen.len() == packets as usize
                && ack.marked <= packets
                && chosen.iter().all(|at| path.outstanding.contains_key(at));
            if !sayable {
                return false;
            }
            // Whether the window limits is what the vector says; the test above is about how that is found out.
            path.controller.app_limited = ack.limited == 0;
            path.controller.peak = (u32::MAX, u64::MAX);
            if ack.marked > 0 {
                path.marked(ack.marked);
            }
            path.ack(&chosen) == packets
        }
        Event::Loss { .. } => path.lose(position, false),
        Event::Timeout { .. } => path.oldest(0).is_some_and(|oldest| path.lose(oldest, true)),
        Event::Idle { .. } => {
            path.controller.on_idle();
            path.controller.restart = None;
            true
        }
        Event::New => false,
    }
}

/// A controller with a configuration and a table of the vectors.
fn with_core(shared: Shared) -> Path {
    let mut path = Path::new(Settings::default());
    path.controller.law = Law::Marimo(Connection::new(&shared));
    path.controller.settings = Arc::new(Settings { shared, ..Settings::default() });
    path
}

/// Vectors of QUIC events, decided by the oracle: losses, timeouts, reordering, counts that run ahead.
#[test]
fn events_of_quic_are_decided_as_the_oracle_decides() {
    let compared = replay_quic(include_str!("../../test/vectors.txt"));
    assert!(compared["a"] > 100 && compared["l"] > 5 && compared["o"] > 5, "{compared:?}");
    if let Some(whole) = whole_vectors("vectors-whole.txt") {
        let compared = replay_quic(&whole);
        assert!(compared["a"] > 2_000 && compared["l"] > 30 && compared["o"] > 30, "{compared:?}");
    }
}

/// How many lines of each kind were compared.
fn replay_quic(text: &str) -> BTreeMap<&str, u32> {
    let numbers = |text: &str| vectors::numbers(text).expect("whole numbers");
    let (mut config, mut shared) = (Config::default(), None);
    let mut path = Path::new(Settings::default());
    let mut compared = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (given, wanted) = rest.split_once(" = ").unwrap_or((rest, ""));
        let given = numbers(given);
        match kind {
            "c" => config = Config::from_fields(&given).expect("a configuration"),
            "t" => {
                let table = LoadTable::new("vectors", given.try_into().expect("65 knots")).expect("sound");
                shared = Shared::new(config, &table);
            }
            "n" => path = with_core(shared.clone().expect("in range")),
            "s" => (0..given[0]).for_each(|_| path.send(FULL.into(), Some(false))),
            "m" => path.marked(given[0]),
            "a" => {
                let positions: Vec<u64> = given.iter().map(|position| u64::from(*position)).collect();
                assert_eq!(path.ack(&positions), given.len() as u32);
            }
            "l" | "o" => assert!(path.lose(given[0].into(), kind == "o")),
            _ => panic!("line {}: {kind}", number + 1),
        }
        if !wanted.is_empty() {
            let core = path.core();
            let found = [core.window(), core.rho(), core.epochs()];
            assert_eq!(found.as_slice(), numbers(wanted), "line {}: {line}", number + 1);
            *compared.entry(kind).or_default() += 1;
        }
    }
    compared
}
