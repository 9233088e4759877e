//! The engine used by safe code of another crate: whatever such code does is no undefined behaviour. Miri runs this
//! file, too (scripts/sanitize.sh, docs/unsafe.md). Only `Message` and `Attachment` are trusted, and to implement them is
//! unsafe.

#![cfg(not(loom))]
#![forbid(unsafe_code)]

use incast_engine::{
    Context, Domain, Event, Executor, Parcel,
    domain::Names,
    executor::{Finding, Inspector, Reached},
    halt::Halted,
    queue::{Key, TieBreak},
};
use incast_units::Time;
use std::{
    num::NonZeroU64,
    panic,
    sync::atomic::{AtomicU64, Ordering},
};

const LOOKAHEAD: Time = Time::from_ps(1_000);
/// Deferred until it is near.
const FAR: Time = Time::from_ps(1_000_000);
const DOMAINS: u32 = 3;

/// Types of which not every bit pattern is a value.
type Content = Option<bool>;
type Attachment = [NonZeroU64; 2];

/// What a domain does when its event is due.
type Act = fn(&mut Context<'_, Node>);

struct Node {
    act: Act,
    received: Vec<(Time, Content, Option<u64>)>,
}

impl Domain for Node {
    type Message = Parcel<Content>;
    type Attachment = Attachment;
    const ARRIVAL: u8 = 2;

    fn on_message(
        &mut self,
        _: u32,
        parcel: &Parcel<Content>,
        attachment: Option<&Attachment>,
        context: &mut Context<'_, Self>,
    ) {
        let number = attachment.map(|[one, other]| one.get() + other.get());
        self.received.push((context.now(), parcel.content, number));
    }

    fn on_event(&mut self, _: Event, context: &mut Context<'_, Self>) {
        (self.act)(context);
    }
}

fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("above zero")
}

/// Runs three domains, of which the first acts at `start`, and returns what each has received.
fn run(act: Act, start: Time, end: Time, threads: usize, attachments: bool) -> Vec<Vec<(Time, Content, Option<u64>)>> {
    let node = |domain| (Node { act, received: Vec::new() }, Names::Base(domain));
    let domains = (0..u64::from(DOMAINS)).map(node);
    let mut executor = Executor::new(domains, LOOKAHEAD, FAR, TieBreak::Fixed, attachments);
    executor.schedule(0, start, Event { class: 1, entity: 0, payload: 0 });
    executor.run(end, threads, &mut |_| true, None, &|| false).expect("nothing halts it");
    executor.into_domains().into_iter().map(|node| node.received).collect()
}

/// Near and far, to others and to itself, with an attachment and without.
fn sends(context: &mut Context<'_, Node>) {
    for to in 0..DOMAINS {
        for after in [LOOKAHEAD, LOOKAHEAD + LOOKAHEAD, FAR] {
            let time = context.now() + after;
            let attachment = [number(after.ps()), number(1)];
            context.send(to, 0, time, &Parcel::new(Some(true)), Some(&attachment));
            context.send(to, 0, time, &Parcel::new(None), None);
        }
    }
}

#[test]
fn parcels_arrive_with_their_attachments() {
    for threads in [1, 2] {
        let received = run(sends, Time::ZERO, FAR + FAR, threads, true);
        for (domain, mut received) in received.into_iter().enumerate() {
            // Equal in time and tie: ordered by place alone.
            received.sort_by_key(|(time, content, _)| (*time, content.is_none()));
            let expected: Vec<_> = [LOOKAHEAD, LOOKAHEAD + LOOKAHEAD, FAR]
                .into_iter()
                .flat_map(|time| [(time, Some(true), Some(time.ps() + 1)), (time, None, None)])
                .collect();
            assert_eq!(received, expected, "domain {domain}, {threads} threads");
        }
    }
}

/// A change that panics: the message is sent as far as it has been changed, without its attachment.
fn change_panics(context: &mut Context<'_, Node>) {
    let time = context.now() + LOOKAHEAD;
    let attachment = [number(5), number(6)];
    for turn in 0..20 {
        let sent = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let parcel = Parcel::new(Some(false));
            context.send_changed(1, 0, time, &parcel, Some(&attachment), |parcel| {
                parcel.content = None;
                assert!(turn % 2 == 0, "as the test wants it");
            });
        }));
        assert_eq!(sent.is_ok(), turn % 2 == 0);
    }
}

#[test]
fn a_change_that_panics_leaves_a_message_without_attachment() {
    let mut received = run(change_panics, Time::ZERO, FAR, 1, true).swap_remove(1);
    // Equal in time and tie: ordered by place alone.
    received.sort_by_key(|(_, _, attachment)| *attachment);
    let expected = |attachment| [(LOOKAHEAD, None, attachment); 10];
    assert_eq!(received, [expected(None), expected(Some(11))].concat());
}

/// A domain that does not exist: the first one behind the last, which the next row of mailboxes would have.
fn to_nobody(context: &mut Context<'_, Node>) {
    context.send(DOMAINS, 0, context.now() + LOOKAHEAD, &Parcel::new(None), None);
}

#[test]
#[should_panic(expected = "found domain 3, there are 3")]
fn a_domain_that_does_not_exist_gets_nothing() {
    run(to_nobody, Time::ZERO, FAR, 1, true);
}

#[test]
#[should_panic(expected = "an attachment in a simulation without")]
fn attachments_need_room() {
    run(sends, Time::ZERO, FAR, 1, false);
}

/// Too near, and in the last window of time, after which there is none.
fn too_near(context: &mut Context<'_, Node>) {
    context.send(1, 0, Time::MAX, &Parcel::new(None), None);
}

#[test]
#[should_panic(expected = "within this window")]
fn nothing_is_sent_into_the_running_window() {
    let last = Time::from_ps(u64::MAX - 1);
    run(too_near, last, Time::MAX, 2, true);
}

/// An event of the class that the engine keeps for deferred messages: of one that does not exist, and of one that has
/// been delivered since.
fn of_the_engines_class(context: &mut Context<'_, Node>) {
    let event = |payload| Event { class: Key::CLASSES - 1, entity: 0, payload };
    context.send(1, 0, context.now() + FAR, &Parcel::new(None), None);
    let later = context.now() + FAR;
    context.schedule(later, event(0));
}

#[test]
#[should_panic(expected = "deferred until it was late")]
fn a_deferred_message_is_not_posted_late() {
    run(of_the_engines_class, Time::ZERO, FAR + FAR, 1, true);
}

/// A clock that strikes four times a lookahead and tells its neighbour each time.
struct Clock {
    to: u32,
    strokes: Vec<Time>,
    received: Vec<Time>,
}

impl Domain for Clock {
    type Message = Parcel<Content>;
    type Attachment = Attachment;
    const ARRIVAL: u8 = 2;

    fn on_message(&mut self, _: u32, _: &Parcel<Content>, _: Option<&Attachment>, context: &mut Context<'_, Self>) {
        self.received.push(context.now());
    }

    fn on_event(&mut self, event: Event, context: &mut Context<'_, Self>) {
        self.strokes.push(context.now());
        context.schedule(context.now() + Time::from_ps(LOOKAHEAD.ps() / 4), event);
        // Near, and so far that it waits at the sender.
        for after in [LOOKAHEAD, FAR] {
            context.send(self.to, 0, context.now() + after, &Parcel::new(None), None);
        }
    }
}

/// What a clock has received, and struck.
type Times = (Vec<Time>, Vec<Time>);

/// What four clocks in a cycle, of two colours, that begin at `start`, have received and struck; the time at which the run
/// was stopped, if it was to stop when it could.
fn clocks(phases: u8, threads: usize, start: Time, stop: bool) -> (Vec<Times>, Option<Time>) {
    let mut executor = cycle(phases, start);
    let done = executor.run(FAR + FAR, threads, &mut |_| !stop, None, &|| false).expect("nothing halts it");
    let pending = executor.pending().len();
    let clocks = times(executor);
    // Whatever was sent was received or is on its way.
    let sum = |count: fn(&Times) -> usize| clocks.iter().map(count).sum::<usize>();
    assert_eq!(2 * sum(|times| times.1.len()), sum(|times| times.0.len()) + pending);
    (clocks, done.stopped_at)
}

fn times(executor: Executor<Clock>) -> Vec<Times> {
    executor.into_domains().into_iter().map(|clock| (clock.received, clock.strokes)).collect()
}

/// Four clocks in a cycle, of two colours, before they begin at `start`.
fn cycle(phases: u8, start: Time) -> Executor<Clock> {
    let clock = |to| (Clock { to, strokes: Vec::new(), received: Vec::new() }, Names::Base(u64::from(to)));
    // The first two are of one colour.
    let mut executor = Executor::new([2, 3, 1, 0].map(clock), LOOKAHEAD, FAR, TieBreak::Fixed, false);
    if phases == 2 {
        executor.in_two_phases(2);
    }
    for domain in 0..4 {
        let event = Event { class: 1, entity: 0, payload: 0 };
        executor.schedule(domain, start + Time::from_ps(7 * domain as u64), event);
    }
    executor
}

#[test]
fn two_phases_are_as_one() {
    let expected = clocks(1, 1, Time::ZERO, false).0;
    assert!(expected.iter().all(|(received, strokes)| received.len() > 8_000 && strokes.len() > 7_999));
    for threads in [1, 2] {
        assert_eq!(clocks(2, threads, Time::ZERO, false).0, expected, "{threads} threads");
    }
}

#[test]
fn a_run_in_two_phases_that_is_stopped_stands_at_one_time() {
    let whole = clocks(1, 1, Time::ZERO, false).0;
    // One lookahead later, it is stopped after a window of the other colour.
    for start in [Time::ZERO, LOOKAHEAD] {
        let end = clocks(1, 1, start, true).1.expect("it was stopped");
        assert!(end < FAR + FAR);
        for (phases, threads) in [(1, 1), (2, 1), (2, 2)] {
            let (stopped, at) = clocks(phases, threads, start, true);
            assert_eq!(at, Some(end), "{phases} phases, {threads} threads, from {start}");
            for (part, whole) in stopped.into_iter().zip(&whole) {
                let expected = (before(&whole.0, start, end), before(&whole.1, start, end));
                assert_eq!(part, expected, "{phases} phases, {threads} threads, from {start}");
            }
        }
    }
}

/// Times `later` than these, as far as they are before `end`.
fn before(times: &[Time], later: Time, end: Time) -> Vec<Time> {
    times.iter().map(|time| *time + later).filter(|time| *time < end).collect()
}

/// Between two windows: domains of one colour have run to the end of the last window, those of the other to its middle.
#[test]
fn a_run_in_two_phases_that_is_halted_ends_at_once() {
    // Further than to where these are halted.
    let whole = clocks(1, 1, Time::ZERO, true).0;
    for (threads, windows) in [1, 2].into_iter().flat_map(|threads| [1, 2, 7, 200].map(|last| (threads, last))) {
        let mut executor = cycle(2, Time::ZERO);
        let asked = AtomicU64::new(0);
        // The leader asks before each window.
        let halt = || asked.fetch_add(1, Ordering::Relaxed) == windows;
        let mut reached = Vec::new();
        let mut observe = |so_far: Reached| {
            reached.push(so_far.time);
            true
        };
        let done = executor.run(FAR + FAR, threads, &mut observe, None, &halt);
        assert_eq!(done.map(|_| ()), Err(Halted::Asked), "{threads} threads, {windows} windows");
        let end = Time::from_ps(windows * LOOKAHEAD.ps());
        assert_eq!(reached.last(), Some(&end));
        for (domain, (part, whole)) in times(executor).into_iter().zip(&whole).enumerate() {
            // The last window has the number `windows` - 1; the first two clocks run in the even ones.
            let has_run = (windows - 1) % 2 == domain as u64 / 2;
            let until = if has_run { end } else { end - LOOKAHEAD };
            let expected = (before(&whole.0, Time::ZERO, until), before(&whole.1, Time::ZERO, until));
            assert_eq!(part, expected, "clock {domain}, {threads} threads, {windows} windows");
        }
    }
}

/// An inspector sees all domains in the state of its time, at most a window later.
#[test]
fn an_inspector_sees_all_at_one_time() {
    let clock = |to| (Clock { to, strokes: Vec::new(), received: Vec::new() }, Names::Base(u64::from(to)));
    let mut executor = Executor::new([1, 0].map(clock), LOOKAHEAD, FAR, TieBreak::Fixed, false);
    executor.in_two_phases(1);
    for domain in 0..2 {
        executor.schedule(domain, Time::ZERO, Event { class: 1, entity: 0, payload: 0 });
    }
    let mut inspections = 0;
    let mut inspect = |time: Time, clocks: &[&Clock]| {
        inspections += 1;
        for clock in clocks {
            let last = *clock.strokes.last().expect("they strike from the start");
            assert!(time <= last + LOOKAHEAD && last < time + LOOKAHEAD, "{last} is seen at {time}");
        }
        Finding::Busy(time)
    };
    let inspector = Inspector { every: LOOKAHEAD + LOOKAHEAD, inspect: &mut inspect };
    executor.run(FAR, 1, &mut |_| true, Some(inspector), &|| false).expect("nothing halts it");
    assert!(inspections > 400);
}
