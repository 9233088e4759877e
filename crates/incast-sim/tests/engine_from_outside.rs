//! The engine used by safe code of another crate: whatever such code does is no undefined behaviour. Miri runs this
//! file, too (scripts/sanitize.sh, docs/unsafe.md). Only `Message` and `Attachment` are trusted, and to implement them is
//! unsafe.

#![forbid(unsafe_code)]

use incast_sim::engine::{
    Context, Domain, Event, Executor, Parcel,
    domain::Names,
    queue::{Key, TieBreak},
};
use incast_units::Time;
use std::{num::NonZeroU64, panic};

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
fn run(
    act: Act,
    start: Time,
    end: Time,
    threads: usize,
    attachments: bool,
) -> Vec<Vec<(Time, Content, Option<u64>)>> {
    let node = |domain| (Node { act, received: Vec::new() }, Names::Base(domain));
    let domains = (0..u64::from(DOMAINS)).map(node).collect();
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
