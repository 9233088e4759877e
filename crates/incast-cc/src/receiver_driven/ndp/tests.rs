use super::receiver::Last;
use super::*;
use crate::message::Message as _;
use crate::scheduler::{Arrival, End, NewFlow, ReceiverScheduler};
use incast_units::Rate;
use proptest::prelude::*;
use std::{collections::VecDeque, convert::Infallible};

fn at(us: u64) -> Time {
    Time::from_us(us)
}

/// A full packet takes a microsecond.
fn path() -> Path {
    Path::new(Rate::from_gbps(8), at(20), 936, 1000)
}

fn receiver(given: &[(String, Raw)]) -> Receiver {
    Receiver::new(&Ndp::resolve(&path(), given).expect("allowed"), &path())
}

fn arrive(receiver: &mut Receiver, now: Time, flow: u32, packet: u64, whole: bool) -> Vec<(u32, Message)> {
    let mut sent = Vec::new();
    let arrival = Arrival {
        now,
        flow,
        position: packet * 936,
        bytes: if whole { 936 } else { 0 },
        expected: 0,
        remaining: 1,
        marked: false,
        duplicate: false,
    };
    receiver.on_data(&arrival, &mut |flow, message| sent.push((flow, message)));
    sent
}

fn open(receiver: &mut Receiver, flow: u32) {
    receiver.on_flow(
        &NewFlow { now: at(0), flow, source: flow, bytes: 9_360, mss: 936, unscheduled: 9_360 },
        &mut |_, _| {},
    );
}

fn fire(receiver: &mut Receiver) -> (Time, Vec<(u32, Message)>) {
    let (now, mut sent) = (receiver.next_timer(), Vec::new());
    receiver.on_timer(now, &mut |flow, message| sent.push((flow, message)));
    (now, sent)
}

fn pull(flow: u32, number: u64) -> (u32, Message) {
    (flow, Message::Pull { number })
}

/// As the snapshots print it.
fn shown(sent: &[(u32, Message)]) -> String {
    let shown = sent.iter().map(|(flow, message)| match message {
        Message::Pull { number } => format!("Pull {{ flow: {flow}, number: {number} }}"),
        Message::Nack { position } => {
            format!("Resend {{ flow: {flow}, position: {position}, bytes: 1, priority: None }}")
        }
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}

#[test]
fn messages_are_carried_and_become_instructions() {
    let mut law = Ndp { unscheduled: 0 };
    for (message, instruction) in [
        (Message::Pull { number: 1 << 40 }, Instruction::Tokens { in_all: 1 << 40 }),
        (Message::Nack { position: 936 }, Instruction::Resend { position: 936, bytes: 1, priority: None }),
    ] {
        assert_eq!(Message::decode(&message.encode()), Some(message));
        assert_eq!(law.on_message(Time::ZERO, message), Some(instruction));
    }
}

#[test]
fn pulls_are_paced_and_senders_take_turns() {
    let mut receiver = receiver(&[]);
    (0..3).for_each(|flow| open(&mut receiver, flow));
    // The pacer is idle: the first goes at once, and the rest at the pace of the link.
    assert_eq!(arrive(&mut receiver, at(10), 0, 0, true), [pull(0, 1)]);
    for (flow, packet) in [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0)] {
        assert_eq!(arrive(&mut receiver, at(10), flow, packet, true), []);
    }
    let order: Vec<_> = (0..5).map(|_| fire(&mut receiver)).collect();
    let expected = [(0, 2), (1, 1), (2, 1), (0, 3), (0, 4)];
    for (step, (flow, number)) in expected.into_iter().enumerate() {
        assert_eq!(order[step], (at(11 + step as u64), vec![pull(flow, number)]));
    }
    // The pace holds when more comes right afterwards.
    assert_eq!(arrive(&mut receiver, Time::from_ns(15_500), 1, 1, true), []);
    assert_eq!(fire(&mut receiver), (at(16), vec![pull(1, 2)]));
}

#[test]
fn the_pace_is_a_fraction_of_the_links() {
    let mut receiver = receiver(&[("pull_rate".into(), Raw::Float(0.5))]);
    open(&mut receiver, 0);
    (0..3).for_each(|packet| drop(arrive(&mut receiver, at(10), 0, packet, true)));
    assert_eq!([fire(&mut receiver).0, fire(&mut receiver).0], [at(12), at(14)]);
}

#[test]
fn a_header_is_answered_at_once_and_owed_a_pull() {
    let mut receiver = receiver(&[]);
    open(&mut receiver, 0);
    let nack = |packet: u64| (0, Message::Nack { position: packet * 936 });
    assert_eq!(arrive(&mut receiver, at(10), 0, 4, false), [nack(4), pull(0, 1)]);
    assert_eq!(arrive(&mut receiver, at(10), 0, 5, false), [nack(5)]);
    assert_eq!(fire(&mut receiver), (at(11), vec![pull(0, 2)]));
}

#[test]
fn a_flow_that_is_complete_is_owed_nothing() {
    let mut receiver = receiver(&[]);
    (0..2).for_each(|flow| open(&mut receiver, flow));
    (0..5).for_each(|packet| drop(arrive(&mut receiver, at(10), 0, packet, true)));
    arrive(&mut receiver, at(10), 1, 0, true);
    receiver.on_end(at(10), 0, End::Complete, &mut |_, _| {});
    assert_eq!(arrive(&mut receiver, at(10), 0, 4, true), []);
    assert_eq!(fire(&mut receiver), (at(11), vec![pull(1, 1)]));
    // What is left is a repetition. The first PULL was the last one for a moment, but its flow has ended.
    assert_eq!(fire(&mut receiver), (at(1011), vec![pull(1, 1)]));
}

#[test]
fn the_last_pull_is_repeated_until_something_comes() {
    let mut receiver = receiver(&[]);
    open(&mut receiver, 0);
    arrive(&mut receiver, at(10), 0, 0, true);
    assert_eq!(fire(&mut receiver), (at(1010), vec![pull(0, 1)]));
    assert_eq!(fire(&mut receiver), (at(2010), vec![pull(0, 1)]));
    assert_eq!(arrive(&mut receiver, at(2500), 0, 1, true), [pull(0, 2)]);
    // The old one has been followed by another: no timer is set for it any more.
    assert_eq!(fire(&mut receiver), (at(3500), vec![pull(0, 2)]));
    receiver.on_end(at(3600), 0, End::Abandoned, &mut |_, _| {});
    assert_eq!(fire(&mut receiver), (at(4500), vec![]));
    assert_eq!(receiver.next_timer(), Time::MAX);
}

#[test]
fn pulls_that_are_due_again_keep_the_pace() {
    let mut receiver = receiver(&[]);
    for flow in 0..3 {
        open(&mut receiver, flow);
        arrive(&mut receiver, at(10), flow, 0, true);
    }
    assert_eq!([fire(&mut receiver).0, fire(&mut receiver).0], [at(11), at(12)]);
    // The others fall due while it waits for the link; what is new goes instead of what is sent again.
    let steps: Vec<_> = (0..2).map(|_| fire(&mut receiver)).collect();
    assert_eq!(steps, [(at(1010), vec![pull(0, 1)]), (at(1011), vec![pull(1, 1)])]);
    assert_eq!(arrive(&mut receiver, at(1011), 0, 1, true), []);
    assert_eq!(arrive(&mut receiver, at(1011), 2, 1, true), []);
    assert_eq!(fire(&mut receiver), (at(1012), vec![pull(0, 2)]));
    assert_eq!(fire(&mut receiver), (at(1013), vec![pull(2, 2)]));
    // All at once, after a silence: one at a time.
    let mut sent = Vec::new();
    receiver.on_timer(at(9000), &mut |flow, message| sent.push((flow, message)));
    assert_eq!((sent, receiver.next_timer()), (vec![pull(1, 1)], at(9001)));
    assert_eq!(fire(&mut receiver), (at(9001), vec![pull(0, 2)]));
    assert_eq!(fire(&mut receiver), (at(9002), vec![pull(2, 2)]));
}

#[test]
fn the_header_of_what_is_here_already_is_not_answered_with_a_nack() {
    let mut receiver = receiver(&[]);
    open(&mut receiver, 0);
    let arrival = Arrival {
        now: at(10),
        flow: 0,
        position: 936,
        bytes: 0,
        expected: 1872,
        remaining: 936,
        marked: false,
        duplicate: true,
    };
    let mut sent = Vec::new();
    receiver.on_data(&arrival, &mut |flow, message| sent.push((flow, message)));
    assert_eq!(sent, [pull(0, 1)]);
}

#[test]
fn one_packet_at_least_is_unscheduled() {
    let credit = |size: &str| {
        let given = [("unscheduled".to_owned(), Raw::Text(size.into()))];
        let parameters = Ndp::resolve(&path(), &given).expect("allowed");
        Ndp::start(&parameters, &path(), Time::ZERO, 0).unscheduled()
    };
    assert_eq!(["0B", "1B", "936B", "5KB"].map(credit), [936, 936, 936, 5_000]);
}

/// Three senders whose first windows collide, PULLs that are lost, and what comes of them.
#[test]
fn golden_trajectory() {
    use std::fmt::Write;
    let mut receiver = receiver(&[("pull_timeout".into(), Raw::Text("40us".into()))]);
    let mut text = String::new();
    // When, of which flow, which packet, whether whole.
    let mut script: VecDeque<(u64, u32, u64, bool)> = VecDeque::new();
    for packet in 0..4 {
        (0..3).for_each(|flow| script.push_back((10 + packet, flow, packet, (packet + u64::from(flow)) % 3 != 2)));
    }
    script.extend([(30, 0, 2, true), (31, 1, 1, true), (32, 0, 4, true), (120, 1, 4, true), (121, 1, 5, false)]);
    (0..3).for_each(|flow| open(&mut receiver, flow));
    for _ in 0..60 {
        let timer = receiver.next_timer();
        let next = script.front().map_or(Time::MAX, |step| at(step.0));
        let (now, cause, sent) = match script.pop_front_if(|_| next <= timer) {
            Some((us, flow, packet, whole)) => {
                let what = if whole { "data" } else { "header" };
                (at(us), format!("{what} {packet} of {flow}"), arrive(&mut receiver, at(us), flow, packet, whole))
            }
            None if timer < at(200) => {
                let (now, sent) = fire(&mut receiver);
                (now, "timer".to_owned(), sent)
            }
            None => break,
        };
        let _ = writeln!(text, "{:>6} ns {cause}: {}", now.ps() / 1000, shown(&sent));
    }
    insta::assert_snapshot!("ndp_receiver", text);
}

#[test]
fn the_first_window_is_one_bdp_or_the_papers_twelve_packets() {
    let unscheduled = |given: &[(String, Raw)]| Ndp::resolve(&path(), given).map(|it| it.unscheduled);
    assert_eq!(unscheduled(&[]), Ok(path().bdp()));
    let paper = ("profile".to_owned(), Raw::Text("paper".into()));
    assert_eq!(unscheduled(std::slice::from_ref(&paper)), Ok(Bytes::new(12 * 936)));
    let own = ("unscheduled".to_owned(), Raw::Text("5KB".into()));
    assert_eq!(unscheduled(&[own, paper]), Ok(Bytes::new(5_000)));
}

/// The rules alone, with the state of a [`Receiver`]: every flow is queued before its PULL is sent, and every last PULL
/// is kept until it is due, also when its flow has ended.
struct Naive(Receiver);

impl Naive {
    fn line_up(&mut self, handle: u32) {
        if !std::mem::replace(&mut self.0.flow(handle).queued, true) {
            self.0.turns.push_back(handle);
        }
    }

    fn pull(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        while let Some(handle) = self.0.turns.pop_front() {
            let flow = self.0.flow(handle);
            flow.queued = false;
            let (again, is_owed) = (std::mem::take(&mut flow.again), flow.owed > 0);
            if !is_owed && (!again || flow.ended) {
                continue;
            }
            flow.owed -= u32::from(is_owed);
            flow.sent += u64::from(is_owed);
            let (number, is_last) = (flow.sent, flow.owed == 0);
            send(handle, Message::Pull { number });
            if is_last {
                self.0.last.push_back(Last { due: now + self.0.pull_timeout, flow: handle, number });
            } else {
                self.line_up(handle);
            }
            self.0.next_pull = now + self.0.interval;
            return;
        }
    }
}

impl ReceiverScheduler for Naive {
    type Message = Message;
    type Signal = Infallible;

    fn on_flow(&mut self, new: &NewFlow, send: &mut dyn FnMut(u32, Message)) {
        self.0.on_flow(new, send);
    }

    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Message)) {
        let (now, handle) = (arrival.now, arrival.flow);
        if arrival.bytes == 0 && !arrival.duplicate {
            send(handle, Message::Nack { position: arrival.position });
        }
        let flow = self.0.flow(handle);
        flow.last_arrival = now;
        if flow.ended {
            return;
        }
        flow.owed += 1;
        self.line_up(handle);
        if self.0.next_pull <= now {
            self.pull(now, send);
        }
    }

    fn on_end(&mut self, now: Time, flow: u32, end: End, send: &mut dyn FnMut(u32, Message)) {
        self.0.on_end(now, flow, end, send);
    }

    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Message)) {
        while let Some(last) = self.0.last.pop_front_if(|last| last.due <= now) {
            let after = self.0.pull_timeout;
            let flow = self.0.flow(last.flow);
            if flow.ended || flow.sent != last.number || flow.owed > 0 {
                continue;
            }
            if flow.last_arrival + after <= now {
                flow.again = true;
                self.line_up(last.flow);
            } else {
                self.0.last.push_back(Last { due: now + after, ..last });
            }
        }
        if self.0.next_pull <= now {
            self.pull(now, send);
        }
    }

    fn next_timer(&self) -> Time {
        self.0.next_timer()
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Data { whole: bool, duplicate: bool },
    End,
    NewFlow,
}

/// Half microseconds since the step before, whether timers of this very time come first, a flow, what happens.
type Step = (u64, bool, u32, Event);

fn step() -> impl Strategy<Value = Step> {
    let event = prop_oneof![
        16 => (prop::bool::weighted(0.7), prop::bool::weighted(0.2))
            .prop_map(|(whole, duplicate)| Event::Data { whole, duplicate }),
        1 => Just(Event::End),
        1 => Just(Event::NewFlow),
    ];
    (prop_oneof![4 => 0u64..4, 1 => 0u64..200], any::<bool>(), any::<u32>(), event)
}

/// What a receiver sends and when, and how often its timer fires.
fn play(
    receiver: &mut impl ReceiverScheduler<Message = Message>,
    flows: u32,
    steps: &[Step],
) -> (Vec<(Time, u32, Message)>, u32) {
    let (mut sent, mut timers) = (Vec::new(), 0);
    let (mut now, mut flows) = (Time::ZERO, flows);
    let new = |now: Time, flow: u32| NewFlow { now, flow, source: flow, bytes: 93_600, mss: 936, unscheduled: 9_360 };
    (0..flows).for_each(|flow| receiver.on_flow(&new(now, flow), &mut |_, _| {}));
    // After the last step there is silence.
    let silence = (1_000, true, 0, Event::NewFlow);
    for (number, (wait, timers_first, flow, event)) in steps.iter().chain([&silence]).enumerate() {
        now += Time::from_ns(500 * wait);
        let until = if *timers_first { now + Time::from_ps(1) } else { now };
        while receiver.next_timer() < until {
            let due = receiver.next_timer();
            timers += 1;
            receiver.on_timer(due, &mut |flow, message| sent.push((due, flow, message)));
        }
        let flow = flow % flows;
        match *event {
            Event::Data { whole, duplicate } => {
                let arrival = Arrival {
                    now,
                    flow,
                    position: number as u64 * 936,
                    bytes: if whole { 936 } else { 0 },
                    expected: 0,
                    remaining: 1,
                    marked: false,
                    duplicate,
                };
                receiver.on_data(&arrival, &mut |flow, message| sent.push((now, flow, message)));
            }
            Event::End => receiver.on_end(now, flow, End::Complete, &mut |_, _| {}),
            Event::NewFlow => {
                receiver.on_flow(&new(now, flows), &mut |_, _| {});
                flows += 1;
            }
        }
    }
    (sent, timers)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

    /// Dropping entries early and answering at once change no message.
    #[test]
    fn sends_what_a_naive_receiver_sends(
        flows in 1u32..6, pull_timeout in 1u64..40, half_pace in any::<bool>(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let given = [
            ("pull_timeout".to_owned(), Raw::Text(format!("{pull_timeout}us"))),
            ("pull_rate".to_owned(), Raw::Float(if half_pace { 0.5 } else { 1.0 })),
        ];
        let (sent, timers) = play(&mut receiver(&given), flows, &steps);
        let (expected, most_timers) = play(&mut Naive(receiver(&given)), flows, &steps);
        prop_assert_eq!(sent, expected);
        prop_assert!(timers <= most_timers);
    }
}
