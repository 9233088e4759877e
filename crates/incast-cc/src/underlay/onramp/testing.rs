//! Senders behind one bottleneck, small enough to follow by hand: what the rule and its releases make of them.

use super::{
    OnRamp, Parameters,
    decision::{Config, Decision, ONE},
};
use crate::{
    Path,
    parameters::Raw,
    underlay::{Head, UnderlayStage},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fmt::Write,
};

fn path() -> Path {
    Path::new(Rate::from_gbps(100), Time::from_us(8), 1000, 1050)
}

/// Serialisation of a packet.
const WIRE: u64 = 84_000;

fn text(name: &str) -> Raw {
    Raw::Text(name.into())
}

fn given(list: &[(&str, Raw)]) -> Vec<(String, Raw)> {
    list.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect()
}

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Packets that have not been acknowledged.
    Window(u64),
    /// Picoseconds between packets.
    Pace(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Handover,
    Release,
    Report { sent: u64, delay: u64 },
    Acknowledge,
}

#[derive(Debug)]
struct Sender {
    stage: Option<OnRamp>,
    /// When its packets were handed over.
    waiting: VecDeque<u64>,
    in_flight: u64,
    free: u64,
    /// When it looks at its packets again.
    armed: Option<u64>,
    delivered: u64,
}

/// Senders with NICs as fast as the bottleneck, a queue without bound, and half of the base RTT either way.
struct Fabric {
    senders: Vec<Sender>,
    source: Source,
    events: BinaryHeap<Reverse<(u64, u64, usize, Event)>>,
    sequence: u64,
    now: u64,
    /// When the bottleneck has sent all that it has.
    busy: u64,
    /// Every how many packets are reported.
    thinning: u64,
}

/// What a run shows after its first part.
#[derive(Debug)]
struct Seen {
    utilisation: f64,
    /// Quantiles of the queue in microseconds.
    queue: [f64; 3],
    fairness: f64,
}

impl Fabric {
    fn new(count: usize, source: Source, parameters: Option<&[(&str, Raw)]>) -> Self {
        let resolved = parameters.map(|list| OnRamp::resolve(&path(), &given(list)).expect("sound"));
        let stage = || resolved.as_ref().map(|shared| OnRamp::start(shared, &path(), Time::ZERO, Time::ZERO));
        let senders = (0..count).map(|_| Sender {
            stage: stage(),
            waiting: VecDeque::new(),
            in_flight: 0,
            free: 0,
            armed: None,
            delivered: 0,
        });
        let mut fabric = Self {
            senders: senders.collect(),
            source,
            events: BinaryHeap::new(),
            sequence: 0,
            now: 0,
            busy: 0,
            thinning: 1,
        };
        for sender in 0..count {
            // Starts within a microsecond, in an order that has nothing to do with the senders' numbers.
            fabric.at((sender as u64 * 7919 + 1) % 997 * 1000, sender, Event::Handover);
        }
        fabric
    }

    fn at(&mut self, time: u64, sender: usize, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, sender, event)));
    }

    fn hand_over(&mut self, index: usize) {
        let sender = &mut self.senders[index];
        match self.source {
            Source::Window(window) => {
                while sender.in_flight < window {
                    sender.in_flight += 1;
                    sender.waiting.push_back(self.now);
                }
            }
            Source::Pace(gap) => {
                sender.waiting.push_back(self.now);
                self.at(self.now + gap, index, Event::Handover);
            }
        }
        self.send(index);
    }

    fn send(&mut self, index: usize) {
        let half = path().base_rtt.ps() / 2;
        let (now, sender) = (self.now, &mut self.senders[index]);
        let Some(queued) = sender.waiting.front().copied() else { return };
        let head = Head { queued: Time::from_ps(queued), wire: 1050 };
        let release = sender.stage.as_mut().map_or(now, |stage| stage.release(Time::from_ps(now), &head).ps());
        let time = release.max(sender.free);
        if time > now {
            self.arm(time, index);
            return;
        }
        if let Some(stage) = &mut sender.stage {
            stage.on_release(Time::from_ps(now), &head);
        }
        sender.waiting.pop_front();
        sender.free = now + WIRE;
        sender.delivered += 1;
        let reported = sender.delivered.is_multiple_of(self.thinning);
        let again = (!sender.waiting.is_empty()).then_some(sender.free);
        self.busy = self.busy.max(now + WIRE) + WIRE;
        let arrives = self.busy + half - 2 * WIRE;
        if reported {
            self.at(arrives + half, index, Event::Report { sent: now, delay: arrives - now });
        }
        self.at(arrives + half, index, Event::Acknowledge);
        if let Some(time) = again {
            self.arm(time, index);
        }
    }

    fn arm(&mut self, time: u64, index: usize) {
        if self.senders[index].armed != Some(time) {
            self.senders[index].armed = Some(time);
            self.at(time, index, Event::Release);
        }
    }

    fn queue(&self) -> u64 {
        self.busy.saturating_sub(self.now + WIRE)
    }

    fn run_until(&mut self, end: u64) {
        while let Some(Reverse((time, ..))) = self.events.peek() {
            if *time > end {
                break;
            }
            let Reverse((time, _, index, event)) = self.events.pop().expect("peeked");
            self.now = time;
            match event {
                Event::Handover => self.hand_over(index),
                Event::Release if self.senders[index].armed == Some(time) => {
                    self.senders[index].armed = None;
                    self.send(index);
                }
                Event::Release => {}
                Event::Report { sent, delay } => {
                    if let Some(stage) = &mut self.senders[index].stage {
                        stage.on_report(Time::from_ps(time), Time::from_ps(sent), delay as i64);
                    }
                    self.send(index);
                }
                Event::Acknowledge => {
                    self.senders[index].in_flight = self.senders[index].in_flight.saturating_sub(1);
                    if matches!(self.source, Source::Window(_)) {
                        self.hand_over(index);
                    }
                }
            }
        }
        self.now = end;
    }

    /// Runs for 2 ms, then looks at 3 ms.
    fn see(mut self) -> Seen {
        let (start, end) = (2_000_000_000, 5_000_000_000);
        self.run_until(start);
        let before: Vec<u64> = self.senders.iter().map(|sender| sender.delivered).collect();
        let mut idle = 0;
        let mut queues = Vec::new();
        for time in (start..end).step_by(500_000) {
            self.run_until(time);
            idle += u64::from(self.busy <= self.now);
            queues.push(self.queue() as f64 / 1e6);
        }
        queues.sort_by(f64::total_cmp);
        let shares = self.senders.iter().zip(before).map(|(sender, before)| (sender.delivered - before) as f64);
        let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
        let at = |share: usize| queues[queues.len() * share / 100];
        Seen {
            utilisation: 1.0 - idle as f64 / queues.len() as f64,
            queue: [at(5), at(50), at(95)],
            fairness: sum * sum / (squares * self.senders.len() as f64),
        }
    }
}

/// The paper's threshold, with what is given besides.
fn onramp(list: &[(&'static str, Raw)]) -> Vec<(&'static str, Raw)> {
    let mut all = vec![("profile", text("paper"))];
    all.extend_from_slice(list);
    all
}

/// Two BDPs in packets.
const WINDOW: Source = Source::Window(200);

fn see(count: usize, source: Source, list: &[(&'static str, Raw)]) -> Seen {
    Fabric::new(count, source, Some(&onramp(list))).see()
}

/// A constant rate each, together so many times the bottleneck's.
fn overload(count: u64, times_ten: u64) -> Source {
    Source::Pace(WIRE * count * 10 / times_ten)
}

#[test]
fn the_default_fills_the_bottleneck_at_the_threshold() {
    for (count, source) in [
        (12, WINDOW),
        (40, WINDOW),
        (2, Source::Window(600)),
        (12, overload(12, 11)),
        (12, overload(12, 15)),
        (40, overload(40, 15)),
    ] {
        let seen = see(count, source, &[]);
        assert!(seen.utilisation >= 0.99, "{count} {source:?}: {seen:?}");
        // 26 us are for the queue of eight flows, a fifth of which is added each time that there are twice as many.
        let queue = 26.0 + 26.0 / 5.0 * libm::log2(count as f64 / 8.0);
        assert!((seen.queue[0] - queue).abs() < 2.0 && (seen.queue[2] - queue).abs() < 2.0, "{queue}: {seen:?}");
        assert!(seen.fairness > 0.99, "{count} {source:?}: {seen:?}");
    }
}

#[test]
fn windows_that_burst_after_a_pause_starve_or_make_the_rule_inert() {
    let burst = |variant, beta| {
        see(12, WINDOW, &[("release", text("burst")), ("variant", text(variant)), ("beta", Raw::Float(beta))])
    };
    assert!(burst("strawman", 0.0).utilisation < 0.7);
    assert!(burst("committed", 0.5).utilisation < 0.8);
    // The queue stays above thrice what the threshold leaves for one.
    assert!(burst("committed", 1.0).queue[0] > 78.0);
}

#[test]
fn the_strawman_undershoots() {
    for source in [WINDOW, overload(12, 15)] {
        let seen = see(12, source, &[("variant", text("strawman"))]);
        assert!(seen.utilisation < 0.97 && seen.queue[0] < 1.0, "{seen:?}");
    }
}

#[test]
fn one_report_for_four_packets_does() {
    let mut fabric = Fabric::new(12, WINDOW, Some(&onramp(&[])));
    fabric.thinning = 4;
    let seen = fabric.see();
    assert!(seen.utilisation >= 0.99 && seen.queue[2] < 37.0, "{seen:?}");
}

#[test]
fn below_the_threshold_nothing_is_held() {
    // 10 x 24 packets and the way make a delay of at most 24 us.
    let run = |parameters: Option<&[(&str, Raw)]>| {
        let mut fabric = Fabric::new(10, Source::Window(24), parameters);
        let mut deliveries = Vec::new();
        for time in (0..2_000_000_000).step_by(100_000) {
            fabric.run_until(time);
            deliveries.push((fabric.busy, fabric.senders.iter().map(|s| s.delivered).collect::<Vec<_>>()));
        }
        deliveries
    };
    assert_eq!(run(Some(&onramp(&[]))), run(None));
}

/// T = 30 us, holds of at most 500 us.
fn config(variant: u8, release: u8) -> Config {
    Config {
        threshold: 30_000,
        max_hold: 500_000,
        quantum: 30_000,
        small_quantum: 3_000,
        beta: ONE / 2,
        spread: 5_000,
        reference: 1_000,
        gain: ONE / 4,
        step: 0,
        variant,
        release,
        reserved: [0; 2],
    }
}

fn decision(variant: u8, release: u8) -> Decision {
    Decision::new(config(variant, release)).expect("sound")
}

#[test]
fn pauses_by_hand() {
    // Packets leave at 0 and 10 us; both take 50 us, which is reported at 54 and 64 us.
    let ends = |variant| {
        let mut flow = decision(variant, 0);
        flow.on_release(0, 0);
        flow.on_release(10_000, 10_000);
        flow.on_report(54_000, 0, 50_000);
        let first = flow.release(54_000, 54_000);
        flow.on_report(64_000, 10_000, 50_000);
        (first, flow.release(64_000, 64_000))
    };
    // t + O - T.
    assert_eq!(ends(0), (74_000, 84_000));
    // 10 us of the pause have passed, half of which the delay is taken to have fallen by: 64 + 20 - 5.
    assert_eq!(ends(1), (74_000, 79_000));
    // All 20 us count, and what is left of the excess is added: 74 + 20 - 10.
    assert_eq!(ends(2), (74_000, 84_000));
}

#[test]
fn delays_up_to_the_threshold_do_not_pause() {
    for delay in [i64::MIN, -5, 0, 29_999, 30_000] {
        let mut flow = decision(1, 1);
        flow.on_release(0, 0);
        flow.on_report(40_000, 0, delay);
        assert_eq!(flow.release(40_000, 40_000), 40_000);
    }
}

#[test]
fn a_delay_without_bound_pauses_for_the_longest_hold() {
    for variant in 0..3 {
        let mut flow = decision(variant, 1);
        flow.on_release(0, 0);
        flow.on_report(40_000, 0, i64::MAX);
        assert_eq!(flow.release(40_000, 40_000), 540_000);
    }
}

#[test]
fn reports_that_stop_release_everything() {
    for release in 0..4 {
        let mut flow = decision(2, release);
        for _ in 0..5 {
            flow.on_release(0, 0);
        }
        flow.on_report(40_000, 0, 900_000);
        assert!(flow.release(539_999, 500_000) > 539_999 || release == 2);
        assert!(flow.release(1_040_000, 500_000) <= 1_040_000);
        flow.on_release(1_040_000, 500_000);
        assert!(flow.release(1_040_000, 500_000) <= 1_040_000, "the next one, too");
    }
}

#[test]
fn paced_packets_keep_the_distance_of_their_predecessors() {
    let mut flow = decision(1, 1);
    // Packets 1 us apart; the first report ends a round that shows no rate, the one of the next packet one that does.
    for packet in 0..61 {
        flow.on_release(packet * 1000, packet * 1000);
        if packet >= 50 {
            flow.on_report(packet * 1000, (packet - 50) * 1000, 25_000);
        }
    }
    for packet in 61..102 {
        flow.on_report(packet * 1000, (packet - 50) * 1000, 25_000);
        flow.on_release(packet * 1000, packet * 1000);
    }
    flow.on_report(102_000, 52_000, 40_000);
    assert_eq!(flow.release(102_000, 102_000), 112_000, "the pause");
    flow.on_release(112_000, 102_000);
    let gap = u64::from(flow.state().gap);
    assert!((880..=920).contains(&gap), "{gap}");
    assert_eq!(flow.release(112_000, 103_000), 112_000 + gap);
}

#[test]
fn the_threshold_falls_by_the_spread_as_the_rate_doubles() {
    // One packet in each `gap`, with 50 us for the round trip: the gap and the threshold after that.
    let after = |gap: u64, delay| {
        let mut flow = decision(1, 1);
        let on_way = 50_000 / gap;
        for packet in 0..4 * on_way {
            flow.on_release(packet * gap, packet * gap);
            if packet >= on_way {
                flow.on_report(packet * gap, (packet - on_way) * gap, delay);
            }
        }
        (flow.state().gap, flow.state().bound)
    };
    for (gap, bound) in [(250, 20_000), (500, 25_000), (1000, 30_000), (2000, 35_000)] {
        let near = |found: u32, wanted: u64| u64::from(found).abs_diff(wanted) <= wanted / 25;
        // At its threshold it offers what it gets; 10 us below, a fifth more, as a round trip is 50 us.
        let (found, own) = after(gap, bound as i64);
        assert!(near(found, gap) && near(own, bound), "{gap}: {found} {own}");
        let (found, _) = after(gap, bound as i64 - 10_000);
        assert!(near(found, gap * 5 / 6), "{gap}: {found}");
    }
}

#[test]
fn a_quantum_of_a_pause_lets_a_packet_go() {
    let mut flow = decision(0, 2);
    flow.on_release(0, 0);
    flow.on_report(100_000, 0, 100_000);
    // 70 us of pause: two large quanta, then small ones.
    let mut now = 100_000;
    let mut times = Vec::new();
    for _ in 0..6 {
        now = flow.release(now, 100_000).max(now);
        flow.on_release(now, 100_000);
        times.push(now);
    }
    assert_eq!(times, [130_000, 160_000, 163_000, 166_000, 169_000, 170_000]);
}

#[test]
fn a_clocked_packet_leaves_for_a_report() {
    let mut flow = decision(2, 3);
    for _ in 0..4 {
        flow.on_release(0, 0);
    }
    // The pause takes the packet that was reported out of the limit; another one of the same length follows it.
    flow.on_report(40_000, 0, 31_000);
    assert_eq!(flow.release(40_000, 40_000), 540_000, "three are on their way, and three may be");
    flow.on_report(42_000, 0, 30_000);
    assert!(flow.release(42_000, 40_000) <= 42_000);
    flow.on_release(42_000, 40_000);
    assert_eq!(flow.release(42_000, 40_000), 542_000);
}

#[test]
fn parameters_follow_the_path_and_the_profile() {
    let values = |list: &[(&str, Raw)]| {
        let values = OnRamp::values(&OnRamp::resolve(&path(), &given(list)).expect("sound"));
        move |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, raw)| raw.to_string())
    };
    let scaled = values(&[]);
    assert_eq!(scaled("threshold"), Some("\"20us\"".into()));
    assert_eq!(scaled("quantum"), Some("\"20us\"".into()));
    assert_eq!(scaled("max_hold"), Some("\"500us\"".into()));
    let paper = values(&[("profile", text("paper"))]);
    assert_eq!((paper("threshold"), paper("small_quantum")), (Some("\"30us\"".into()), Some("\"3.75us\"".into())));
    let own = values(&[("profile", text("paper")), ("threshold", text("150us"))]);
    assert_eq!((own("threshold"), own("quantum")), (Some("\"150us\"".into()), Some("\"150us\"".into())));
    for list in [
        [("threshold", text("2s")), ("beta", Raw::Float(0.5))],
        [("max_hold", text("0s")), ("beta", Raw::Float(0.5))],
        [("quantum", text("1us")), ("small_quantum", text("2us"))],
        [("spread", text("2s")), ("beta", Raw::Float(0.5))],
        [("reference", text("0s")), ("beta", Raw::Float(0.5))],
        [("variant", text("final")), ("beta", Raw::Float(0.5))],
    ] {
        assert!(OnRamp::resolve(&path(), &given(&list)).is_err(), "{list:?}");
    }
    // Zero is a threshold, and defaults that follow from it are sound.
    assert!(OnRamp::resolve(&path(), &given(&[("threshold", text("0s"))])).is_ok());
    let slow = Path { rate: Rate::from_gbps(1), ..path() };
    let resolved = Parameters::resolve(&slow, &[]).expect("sound");
    assert_eq!(resolved.threshold, Time::from_ps(4_000_000 + 16 * 8_400_000), "16 packets at 1 Gbit/s");
}

/// One thing that happens to a stage.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Wait(u64),
    Handover(u8),
    Report { back: u64, delay: i64 },
}

fn operation(delays: impl Strategy<Value = i64>) -> impl Strategy<Value = Operation> {
    prop_oneof![
        prop_oneof![0..2_000_u64, 0..2_000_000_u64].prop_map(Operation::Wait),
        (1..20_u8).prop_map(Operation::Handover),
        (0..300_000_u64, delays).prop_map(|(back, delay)| Operation::Report { back, delay }),
    ]
}

fn any_delay() -> impl Strategy<Value = i64> {
    prop_oneof![0..100_000_i64, 20_000..40_000_i64, any::<i64>()]
}

fn any_config() -> impl Strategy<Value = Config> {
    let spans = (0..200_000_u32, 1..1_000_000_u32, 1..50_000_u32);
    let fair = (0..100_000_u32, 1..1_000_000_u32);
    (spans, fair, 0..=ONE, 1..=ONE, 0..=ONE, 0..3_u8, 0..4_u8).prop_map(
        |((threshold, max_hold, small_quantum), (spread, reference), beta, gain, step, variant, release)| Config {
            threshold,
            max_hold,
            quantum: small_quantum * 10,
            small_quantum,
            beta,
            spread,
            reference,
            gain,
            step,
            variant,
            release,
            reserved: [0; 2],
        },
    )
}

/// Plays operations from `start` on; packets leave as soon as they may. The longest time that one was the first, and
/// whether one left later than it came.
fn play(config: Config, start: u64, operations: &[Operation]) -> (u64, bool) {
    let mut flow = Decision::new(config).expect("sound");
    let (mut now, mut waiting) = (start, VecDeque::new());
    let (mut last, mut longest, mut held) = (start, 0, false);
    let mut advance = |flow: &mut Decision, waiting: &mut VecDeque<u64>, until: u64, now: &mut u64| {
        while let Some(queued) = waiting.front().copied() {
            let time = flow.release(*now, queued).max(*now);
            if time > until {
                break;
            }
            *now = time;
            flow.on_release(time, queued);
            waiting.pop_front();
            longest = longest.max(time - queued.max(last));
            held |= time > queued;
            last = time;
        }
        *now = until;
    };
    for operation in operations {
        match *operation {
            Operation::Wait(span) => {
                let until = now.saturating_add(span);
                advance(&mut flow, &mut waiting, until, &mut now);
            }
            Operation::Handover(count) => waiting.extend(std::iter::repeat_n(now, count.into())),
            Operation::Report { back, delay } => flow.on_report(now, now.saturating_sub(back), delay),
        }
        let until = now;
        advance(&mut flow, &mut waiting, until, &mut now);
    }
    // Reports have stopped: in twice the time of the longest hold everything goes.
    let until = now.saturating_add(2 * u64::from(config.max_hold));
    advance(&mut flow, &mut waiting, until, &mut now);
    assert!(waiting.is_empty(), "{} packets are still held", waiting.len());
    (longest, held)
}

/// Time runs out of 32 bits, out of 2^63, and to its end.
fn any_start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just((1 << 32) - 1_000_000),
        Just((1 << 63) - 1_000_000),
        Just(u64::MAX - 10_000_000),
        any::<u64>(),
    ]
}

proptest! {
    #[test]
    fn holds_are_bounded_and_end(
        config in any_config(),
        start in any_start(),
        operations in prop::collection::vec(operation(any_delay()), 1..200),
    ) {
        let (longest, _) = play(config, start, &operations);
        prop_assert!(longest <= config.max_hold.into(), "{longest} of {}", config.max_hold);
    }

    #[test]
    fn below_the_threshold_no_packet_waits(
        config in any_config(),
        start in any_start(),
        operations in prop::collection::vec(operation(i64::MIN..200_000), 1..200),
    ) {
        let below: Vec<_> = operations
            .iter()
            .map(|operation| match *operation {
                Operation::Report { back, delay } => {
                    Operation::Report { back, delay: delay.min(config.threshold.into()) }
                }
                other => other,
            })
            .collect();
        let (_, held) = play(config, start, &below);
        prop_assert!(!held);
    }
}

/// Queue and what waits at two of twelve senders, in microseconds and packets.
fn trajectory(source: Source, list: &[(&'static str, Raw)]) -> String {
    let mut fabric = Fabric::new(12, source, Some(&onramp(list)));
    let mut table = String::from("   us  queue  held0 held11  out0   gap0\n");
    for time in (20..=800).step_by(20) {
        fabric.run_until(time * 1_000_000);
        let state = |sender: usize| fabric.senders[sender].stage.as_ref().map(|stage| *stage.decision.state());
        let held = |sender: usize| fabric.senders[sender].waiting.len();
        let (queue, first) = (fabric.queue() / 1_000_000, state(0).unwrap_or_default());
        let line = (held(0), held(11), first.outstanding, first.gap);
        writeln!(table, "{time:>5} {queue:>6} {:>6} {:>6} {:>5} {:>6}", line.0, line.1, line.2, line.3)
            .expect("a string");
    }
    table
}

#[test]
fn golden() {
    for variant in ["strawman", "paper", "committed"] {
        insta::assert_snapshot!(variant, trajectory(WINDOW, &[("variant", text(variant))]));
    }
    for release in ["burst", "quantised", "clocked"] {
        insta::assert_snapshot!(release, trajectory(WINDOW, &[("release", text(release))]));
    }
    insta::assert_snapshot!("rates", trajectory(overload(12, 15), &[]));
}
