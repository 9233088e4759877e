//! Both halves by hand.

use super::*;
use crate::scheduler::{Arrival, End, NewFlow, ReceiverScheduler};
use std::fmt::Write;

const MSS: u32 = 1000;
const GBPS: f64 = 1e9;

fn at(us: u64) -> Time {
    Time::from_us(us)
}

/// A packet takes 1 us, an RTT eight.
fn path() -> Path {
    Path::new(Rate::from_gbps(8), at(8), MSS, MSS)
}

fn text(text: &str) -> Raw {
    Raw::Text(text.to_owned())
}

fn resolve(given: &[(&str, Raw)]) -> Result<Arc<Constants>, ParameterError> {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Dasr::resolve(&path(), &given)
}

fn constants(given: &[(&str, Raw)]) -> Arc<Constants> {
    resolve(given).expect("allowed")
}

/// A receiver, and what it has said since it was last asked.
struct Script {
    receiver: Receiver,
    flows: u32,
    said: Vec<(u32, f64)>,
}

impl Script {
    fn new(given: &[(&str, Raw)]) -> Self {
        Self { receiver: Receiver::new(constants(given), &path()), flows: 0, said: Vec::new() }
    }

    fn with(&mut self, ask: impl FnOnce(&mut Receiver, &mut dyn FnMut(u32, Share))) {
        let said = &mut self.said;
        ask(&mut self.receiver, &mut |flow, share| said.push((flow, share.parts())));
    }

    /// The first packet of a flow, with a tag, and what its acknowledgement says.
    fn open(&mut self, now: Time, source: u32, tag: Option<SenderTag>) -> f64 {
        let flow = self.flows;
        self.flows += 1;
        let new = NewFlow { now, flow, source, bytes: 1_000_000, mss: MSS, unscheduled: u64::MAX };
        self.with(|receiver, send| receiver.on_flow(&new, send));
        if let Some(tag) = tag {
            self.receiver.on_tag(now, flow, tag.tag());
        }
        let parts = self.parts(flow);
        self.data(now, flow, tag);
        parts
    }

    /// One flow of each of these hosts, at the start.
    fn open_all(&mut self, sources: impl IntoIterator<Item = u32>) {
        for source in sources {
            self.open(at(0), source, None);
        }
    }

    /// What an acknowledgement says.
    fn parts(&mut self, flow: u32) -> f64 {
        Share::from_tag(self.receiver.ack_tag(flow).expect("in progress")).parts()
    }

    fn data(&mut self, now: Time, flow: u32, tag: Option<SenderTag>) {
        if let Some(tag) = tag {
            self.receiver.on_tag(now, flow, tag.tag());
        }
        let arrival =
            Arrival { now, flow, position: 0, bytes: MSS, expected: 0, remaining: 1, marked: false, duplicate: false };
        self.with(|receiver, send| receiver.on_data(&arrival, send));
    }

    fn end(&mut self, now: Time, flow: u32) {
        self.with(|receiver, send| receiver.on_end(now, flow, End::Complete, send));
    }

    /// Lets the timers go that are due.
    fn until(&mut self, now: Time) {
        for _ in 0..1000 {
            let next = self.receiver.next_timer();
            if next > now {
                return;
            }
            self.with(|receiver, send| receiver.on_timer(next, send));
        }
        panic!("the timer stands still");
    }

    fn said(&mut self) -> Vec<(u32, f64)> {
        std::mem::take(&mut self.said)
    }
}

fn limit(share: f64) -> Option<SenderTag> {
    Some(SenderTag::Limit(Share::one_in(1.0 / share)))
}

fn opening(weight: u8, degree: u16) -> Option<SenderTag> {
    Some(SenderTag::Opening { weight, degree })
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.003, "{found} in place of {expected}");
}

#[test]
fn each_acknowledgement_says_how_many_there_are() {
    let mut script = Script::new(&[("advertise", text("acks"))]);
    for senders in 1..=64 {
        assert_eq!(script.open(at(0), senders, None), f64::from(senders));
    }
    assert!((0..64).all(|flow| script.parts(flow) == 64.0));
    script.end(at(1), 5);
    assert_eq!((script.parts(6), script.receiver.ack_tag(5)), (63.0, None));
    assert_eq!(script.said(), []);
}

/// Shares of two changes that overtake each other: with epochs the newer one stays, without them the last one counts. After
/// half of all numbers the order says nothing.
#[test]
fn a_share_of_an_older_epoch_is_passed_over() {
    for (bits, kept) in [(0, 2.0), (2, 3.0), (4, 3.0)] {
        let given = [("epoch_bits", Raw::Integer(bits)), ("advertise", text("acks"))];
        let mut script = Script::new(&given);
        let mut told = |now: Time, source: u32| {
            script.open(now, source, None);
            Share::from_tag(script.receiver.ack_tag(0).expect("in progress"))
        };
        let shares = [told(at(0), 1), told(at(10), 2), told(at(20), 3)];
        let constants = constants(&given);
        let mut sender = Dasr::start(&constants, &path(), at(0), 0);
        let mut learn = |now: Time, share: Share| {
            sender.on_message(now, share);
            f64::from(sender.parts)
        };
        assert_eq!([learn(at(25), shares[0]), learn(at(26), shares[2])], [1.0, 3.0], "{bits} bits");
        assert_eq!(learn(at(27), shares[1]), kept, "{bits} bits");
        assert_eq!(learn(at(26 + 4 * 8), shares[1]), 2.0, "{bits} bits");
    }
}

/// Shares that change by what a sender can use are of an epoch of their own.
#[test]
fn a_limit_begins_an_epoch() {
    let mut script = Script::new(&[("epoch_bits", Raw::Integer(4)), ("water_filling", Raw::Flag(true))]);
    script.open_all([1, 2]);
    script.until(at(20));
    let number = |script: &mut Script| Share::from_tag(script.receiver.ack_tag(1).expect("in progress")).of_epoch(4).1;
    let before = number(&mut script);
    script.data(at(30), 0, limit(0.25));
    assert_eq!(number(&mut script), before + 1);
    script.data(at(40), 1, None);
    assert_eq!(number(&mut script), before + 1, "nothing has changed");
}

#[test]
fn changes_are_told_at_once_and_then_twice_an_rtt_to_those_who_do_not_know() {
    let mut script = Script::new(&[]);
    script.open(at(0), 1, None);
    script.open(at(10), 2, None);
    assert_eq!(script.said(), [(0, 2.0)]);
    // Too soon: later, and together.
    script.open(at(11), 3, None);
    script.open(at(12), 4, None);
    assert_eq!(script.said(), []);
    assert_eq!(script.receiver.next_timer(), at(14));
    // By then an acknowledgement has told one of them, and the newest knows.
    assert_eq!(script.parts(1), 4.0);
    script.until(at(14));
    assert_eq!(script.said(), [(0, 4.0), (2, 4.0)]);
    // Who leaves makes room at once.
    script.end(at(30), 0);
    assert_eq!(script.said(), [(1, 3.0), (2, 3.0), (3, 3.0)]);
    script.until(at(31));
    assert_eq!(script.said(), []);
}

#[test]
fn telling_takes_a_tenth_of_the_link_at_most() {
    let mut script = Script::new(&[("active", text("open"))]);
    script.open_all(0..1000);
    script.until(at(4));
    assert!(script.said().len() >= 999);
    // 84 ns each, ten times.
    script.end(at(5), 3);
    assert_eq!(script.said(), []);
    assert_eq!(script.receiver.next_timer(), at(4) + Time::from_ns(84 * 10 * 999));
    script.until(at(900));
    assert_eq!(script.said().len(), 999);
    // Frames are those of the format: with the headers of RoCEv2, preamble and gap these are 86 bytes.
    let path = Path { wire_mss: MSS + 82, ..path() };
    let mut receiver = Receiver::new(constants(&[("active", text("open"))]), &path);
    for flow in 0..65 {
        receiver.on_flow(
            &NewFlow { now: at(0), flow, source: flow, bytes: 1_000_000, mss: MSS, unscheduled: u64::MAX },
            &mut |_, _| (),
        );
    }
    let mut said = 0;
    receiver.on_end(at(1), 64, End::Complete, &mut |_, _| said += 1);
    receiver.on_end(at(2), 63, End::Complete, &mut |_, _| said += 1);
    assert_eq!((said, receiver.next_timer()), (64, at(1) + Time::from_ns(86 * 10 * 64)));
}

#[test]
fn flows_of_one_host_share_what_it_has() {
    let mut script = Script::new(&[]);
    script.open_all([7, 7, 7, 8]);
    assert_eq!([0, 1, 2, 3].map(|flow| script.parts(flow)), [6.0, 6.0, 6.0, 2.0]);
    script.end(at(1), 1);
    assert_eq!([0, 2, 3].map(|flow| script.parts(flow)), [4.0, 4.0, 2.0]);
    let mut script = Script::new(&[("count", text("flows"))]);
    script.open_all([7, 7, 7, 8]);
    assert_eq!([0, 1, 2, 3].map(|flow| script.parts(flow)), [4.0; 4]);
}

#[test]
fn shares_are_by_weight() {
    let mut script = Script::new(&[]);
    script.open(at(0), 1, None);
    script.open(at(0), 2, opening(3, 0));
    assert_eq!([0, 1].map(|flow| script.parts(flow)), [4.0, Share::one_in(4.0 / 3.0).parts()]);
    // A host has the largest weight of its flows, which share by theirs.
    script.open(at(0), 1, opening(4, 0));
    close(script.parts(0), 7.0 / 4.0 * 5.0);
    close(script.parts(2), 7.0 / 4.0 * 5.0 / 4.0);
    close(script.parts(1), 7.0 / 3.0);
    script.end(at(1), 2);
    assert_eq!(script.parts(0), 4.0);
}

#[test]
fn who_is_not_heard_of_does_not_count_and_does_again() {
    let mut script = Script::new(&[]);
    script.open(at(0), 1, None);
    script.open(at(0), 2, None);
    script.said();
    // 32 us are four RTTs, and each packet of the other one has its 1 us.
    script.data(at(20), 0, None);
    script.until(at(32));
    assert_eq!(script.parts(0), 2.0);
    script.until(at(33));
    assert_eq!((script.parts(0), script.said()), (1.0, vec![(0, 1.0)]));
    assert_eq!(script.parts(1), 2.0, "already with the acknowledgement of what it sends");
    script.data(at(40), 1, None);
    assert_eq!((script.parts(0), script.parts(1)), (2.0, 2.0));
    // With 100 senders a packet of each comes every 100 us, and those of the others took as long.
    let mut script = Script::new(&[]);
    script.open_all(0..100);
    script.until(at(199));
    assert_eq!(script.parts(0), 100.0);
    script.until(at(300));
    assert_eq!(script.open(at(301), 1000, None), 1.0);
    // While the link is busy with others, a packet may stand in their queue.
    let mut script = Script::new(&[]);
    script.open_all([1, 2]);
    (1..200).for_each(|us| script.data(at(us), 0, None));
    assert_eq!(script.parts(0), 2.0);
    script.until(at(233));
    assert_eq!(script.parts(0), 1.0);
    // Literally, only an end counts.
    let mut script = Script::new(&[("active", text("open"))]);
    script.open_all([1, 2]);
    script.until(Time::from_ms(9));
    assert_eq!(script.parts(0), 2.0);
}

/// What the receiver itself sends is acknowledged on the link that it shares out.
#[test]
fn acknowledgements_have_their_part() {
    for (given, parts) in [(vec![], 2.0 / (1.0 - 13.0 / 128.0)), (vec![("count_acks", Raw::Flag(false))], 2.0)] {
        let mut script = Script::new(&given);
        script.open_all([1, 2]);
        for us in 1..100 {
            // 100 of 1,000 B that the link carries in a microsecond.
            script.receiver.on_ack(at(us), 100);
            script.data(at(us), us as u32 % 2, None);
        }
        let found = script.parts(0);
        assert!((found / parts - 1.0).abs() < 1e-3, "{found} in place of {parts}");
    }
}

#[test]
fn what_some_cannot_use_others_get() {
    let mut script = Script::new(&[]);
    script.open_all(1..=4);
    script.data(at(1), 0, limit(0.1));
    script.until(at(8));
    // 0.9 for three; who is held back may have its fair share all the same.
    close(script.parts(0), 4.0);
    (1..4).for_each(|flow| close(script.parts(flow), 3.0 / 0.9));
    // 0.28 is less than 0.3, and may grow.
    script.data(at(9), 1, limit(0.28));
    script.until(at(16));
    close(script.parts(1), 0.62f64.recip() * 2.0);
    (2..4).for_each(|flow| close(script.parts(flow), 2.0 / 0.62));
    script.data(at(17), 2, limit(0.27));
    script.until(at(24));
    close(script.parts(2), 1.0 / (0.27 * 9.0 / 8.0));
    close(script.parts(3), 1.0 / 0.35);
    // All are held back: nobody could use what is left.
    script.data(at(25), 3, limit(0.2));
    script.until(at(32));
    assert!((0..4).all(|flow| script.parts(flow) <= 4.0), "{:?}", [0, 1, 2, 3].map(|flow| script.parts(flow)));
    close(script.parts(0), 4.0);
    // And none is.
    (0..4).for_each(|flow| script.data(at(33), flow, limit(1.0)));
    script.until(at(40));
    assert!((0..4).all(|flow| script.parts(flow) == 4.0));
}

#[test]
fn those_that_are_announced_count_for_a_while() {
    let mut script = Script::new(&[]);
    script.open(at(0), 1, None);
    assert_eq!(script.open(at(0), 2, opening(1, 5)), 6.0);
    assert_eq!(script.open(at(1), 3, opening(1, 5)), 6.0);
    assert_eq!(script.open(at(1), 4, None), 7.0);
    script.until(at(5));
    assert_eq!(script.said().last(), Some(&(2, 7.0)));
    // Three of five do not come: the two and the others are left.
    (0..4).for_each(|flow| script.data(at(30), flow, None));
    script.until(at(31));
    assert_eq!((script.parts(0), script.said()), (7.0, vec![]));
    script.until(at(32));
    assert_eq!(script.said(), [0, 1, 2, 3].map(|flow| (flow, 4.0)));
    // They come late, and all of them: nobody is waited for.
    (5..8).for_each(|source| {
        script.open(at(33), source, opening(1, 5));
    });
    assert_eq!(script.parts(0), 9.0, "two of a new group are still missing");
    script.open(at(34), 9, opening(1, 5));
    script.open(at(34), 10, opening(1, 5));
    assert_eq!(script.parts(0), 9.0);
    script.end(at(35), 8);
    assert_eq!(script.parts(0), 8.0, "nobody is missing any more");
}

/// A sender whose own link and whose receiver's have these rates in Gbit/s.
fn sender(given: &[(&str, Raw)], own: u64, receiver: u64, degree: u32) -> Dasr {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    let path = Path { rate: Rate::from_gbps(own), ..path() };
    let mut law = Dasr::start(&Dasr::resolve(&path, &given).expect("allowed"), &path, Time::ZERO, 0);
    law.on_open(&Opening { bytes: 1_000_000, receiver: Rate::from_gbps(receiver), degree });
    law
}

fn gbps(law: &Dasr) -> f64 {
    law.pacing_rate().expect("paced").as_f64() / GBPS
}

fn acked(law: &mut Dasr, now: Time, senders: u32) {
    law.on_ack(&Feedback { now, tag: Some(Share::of_senders(senders).tag()), ..Feedback::default() });
}

#[test]
fn a_sender_takes_its_share_at_once() {
    let mut law = sender(&[], 40, 40, 0);
    assert_eq!((gbps(&law), law.window(), law.tag(), law.estimate()), (40.0, u64::MAX, None, None));
    acked(&mut law, at(8), 16);
    assert_eq!((gbps(&law), law.estimate()), (2.5, Some(16.0)));
    law.on_message(at(9), Share::of_senders(4));
    assert_eq!(gbps(&law), 10.0);
    // Links that differ.
    for (own, receiver, first, fourth, literal) in [(40, 10, 10.0, 2.5, 10.0), (10, 40, 10.0, 10.0, 2.5)] {
        let mut law = sender(&[], own, receiver, 0);
        assert_eq!(gbps(&law), first);
        acked(&mut law, at(8), 4);
        assert_eq!(gbps(&law), fourth);
        let mut law = sender(&[("share_of", text("sender"))], own, receiver, 0);
        assert_eq!(gbps(&law), own as f64);
        acked(&mut law, at(8), 4);
        assert_eq!(gbps(&law), literal);
    }
    let mut law = sender(&[("initial", Raw::Float(0.5)), ("utilization", Raw::Float(0.9))], 40, 40, 0);
    assert_eq!(gbps(&law), 20.0);
    acked(&mut law, at(8), 3);
    assert_eq!(gbps(&law), 12.0);
}

#[test]
fn it_says_who_it_is_until_it_is_heard_and_then_what_it_can_use() {
    let mut law = sender(&[("weight", Raw::Integer(3)), ("water_filling", Raw::Flag(true))], 8, 8, 12);
    assert_eq!(law.tag(), opening(3, 12));
    acked(&mut law, at(8), 2);
    assert_eq!(law.tag(), None);
    // A packet each 4 us in place of 2.
    (0..12).for_each(|packet| law.on_sent(at(8 + 4 * packet), MSS));
    let Some(SenderTag::Limit(share)) = law.tag() else { panic!("{:?}", law.tag()) };
    close(share.parts(), 4.0);
    (0..20).for_each(|packet| law.on_sent(at(60 + 2 * packet), MSS));
    assert_eq!(law.tag(), limit(1.0));
    let mut law = sender(&[], 8, 8, 0);
    acked(&mut law, at(8), 2);
    (0..12).for_each(|packet| law.on_sent(at(8 + 4 * packet), MSS));
    assert_eq!(law.tag(), None);
}

#[test]
fn dcqcn_cuts_what_is_sent_and_the_smaller_rate_counts() {
    for (cut_rate, after) in [("sent", 1.25), ("own", 2.5)] {
        let mut law = sender(&[("cut_rate", text(cut_rate))], 40, 40, 0);
        acked(&mut law, at(8), 16);
        assert!(law.fallback.is_none());
        law.on_cnp(at(100), &Cnp::CONGESTED);
        assert_eq!(gbps(&law), after, "{cut_rate}");
        // With fewer senders the share is no longer what limits.
        acked(&mut law, at(101), 1);
        assert_eq!(gbps(&law), if cut_rate == "sent" { 1.25 } else { 20.0 }, "{cut_rate}");
        let recovers = law.fallback.as_ref().expect("notified").pacing_rate();
        assert_eq!(law.pacing_rate(), recovers);
        law.on_timer(Time::from_ms(500));
        assert_eq!(gbps(&law), 40.0);
    }
    // What DCQCN does it does by its own parameters, and by its own rules.
    let echo = [("notification", text("ecn-echo")), ("cut_rate", text("own"))];
    let mut law = sender(&echo, 40, 40, 0);
    law.on_ack(&Feedback { now: at(9), marked: 1, packets: 1, ..Feedback::default() });
    assert_eq!(gbps(&law), 20.0);
    let interval = |given: &[(&str, Raw)]| Dasr::transport(&constants(given)).notification_interval;
    assert_eq!(interval(&[]), Some(at(40)));
    assert_eq!(interval(&[("cnp_interval", text("7us"))]), Some(at(7)));
    assert_eq!(interval(&[("fallback", text("off"))]), None);
    assert_eq!(interval(&echo), None);
    let mut law = sender(&[("fallback", text("off")), echo[0].clone()], 40, 40, 0);
    law.on_ack(&Feedback { now: at(9), marked: 1, packets: 1, ..Feedback::default() });
    assert_eq!(gbps(&law), 40.0);
}

#[test]
fn only_congestion_cuts_and_nothing_does_where_fallback_is_off() {
    let unsure = Cnp { congested: false, undetermined: true, window: None };
    let window = Cnp { congested: false, undetermined: false, window: Some(3_000) };
    for (cnp, rate, cap) in [
        (Cnp::CONGESTED, 1.25, u64::MAX),
        (Cnp::granting(3_000), 1.25, 3_000),
        (Cnp { undetermined: true, ..Cnp::CONGESTED }, 1.25, u64::MAX),
        (unsure, 2.5, u64::MAX),
        (window, 2.5, 3_000),
        (Cnp { undetermined: true, ..window }, 2.5, 3_000),
    ] {
        for (cut_rate, alone) in [("sent", 1.25), ("own", 20.0)] {
            let mut law = sender(&[("cut_rate", text(cut_rate))], 40, 40, 0);
            acked(&mut law, at(8), 16);
            law.on_cnp(at(100), &cnp);
            let expected = if cnp.congested && cut_rate == "own" { 2.5 } else { rate };
            assert_eq!((gbps(&law), law.window()), (expected, cap), "{cut_rate}: {cnp:?}");
            // Of DCQCN's own rate nothing is lost either, with all of the link for the flow.
            acked(&mut law, at(101), 1);
            assert_eq!(gbps(&law), if cnp.congested { alone } else { 40.0 }, "{cut_rate}: {cnp:?}");
        }
        let mut law = sender(&[("fallback", text("off"))], 40, 40, 0);
        acked(&mut law, at(8), 16);
        law.on_cnp(at(100), &cnp);
        assert_eq!((gbps(&law), law.window()), (2.5, u64::MAX), "{cnp:?}");
        assert!(law.fallback.is_none());
    }
}

#[test]
fn parameters_are_its_own_and_dcqcns() {
    let names: Vec<&str> = Dasr::INFO.parameters.iter().map(|row| row.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "one name means one thing");
    let values: Vec<&str> = Dasr::values(&constants(&[])).iter().map(|(key, _)| *key).collect();
    assert_eq!(values, names);
    for condition in Dasr::CONDITIONS {
        assert!(names.contains(&condition.parameter) && names.contains(&condition.other), "{condition:?}");
    }
    // Classes that differ in what receivers do not see share theirs.
    let of_receiver = |given: &[(&str, Raw)]| Dasr::receiver_values(&constants(given));
    for given in [("weight", Raw::Integer(9)), ("fallback", text("off")), ("gain", Raw::Float(0.5))] {
        assert_eq!(of_receiver(&[given]), of_receiver(&[]));
    }
    assert_ne!(of_receiver(&[("count", text("flows"))]), of_receiver(&[]));
    assert_eq!(of_receiver(&[]).len(), 10);
    let utilization = ("utilization", Raw::Float(0.9));
    assert_eq!(of_receiver(std::slice::from_ref(&utilization)), of_receiver(&[]));
    let iterative = ("allocation", text("iterative"));
    assert_ne!(of_receiver(&[iterative.clone(), utilization]), of_receiver(&[iterative]));
    let refused = |given| resolve(&[given]).expect_err("refused").to_string();
    assert!(refused(("weight", Raw::Integer(17))).contains("1 to 16"));
    assert!(refused(("kmin", text("5KB"))).contains("unknown parameter"));
    let Err(ParameterError::Unknown { allowed, .. }) = resolve(&[("kmin", text("5KB"))]) else { panic!() };
    assert_eq!(allowed, names);
}

#[test]
fn state_is_small() {
    assert!(size_of::<Dasr>() <= 104, "{}", size_of::<Dasr>());
}

/// Eight senders join, one each microsecond, one of them held back; they leave one after the other.
#[test]
fn golden() {
    let mut script = Script::new(&[]);
    let mut trace = String::new();
    let mut rates = [8.0; 8];
    for us in 0..200u64 {
        let now = at(us);
        script.until(now);
        if us < 8 {
            let parts = script.open(now, us as u32, None);
            rates[us as usize] = 8.0 / parts;
        } else if us < 100 {
            let flow = (us % 8) as u32;
            script.data(now, flow, if flow == 3 && us > 40 { limit(0.05) } else { None });
        } else if us % 10 == 0 && us < 180 {
            script.end(now, (us as u32 - 100) / 10);
        } else {
            (0..8).filter(|flow| u64::from(*flow) * 10 + 100 > us).for_each(|flow| script.data(now, flow, None));
        }
        for (flow, parts) in script.said() {
            rates[flow as usize] = 8.0 / parts;
        }
        if us % 4 == 3 {
            let rates: Vec<String> = rates.iter().map(|rate| format!("{:>4}", (rate * 1e3) as u64)).collect();
            writeln!(trace, "{us:>3} us: {}", rates.join(" ")).expect("a String");
        }
    }
    insta::assert_snapshot!("dasr", trace);
}

/// The rule of EyeQ's module in its units, and the periods that it takes to a thousandth of C/n from its first rate.
#[test]
fn the_iterative_rate_takes_tens_of_periods() {
    let next = |mbps: f64, used: f64| 9_000.0 * receiver::iterated(mbps / 9_000.0, used / 9_000.0, 0.5);
    for (rate, used, expected) in
        [(1_000.0, 9_000.0, 1_000.0), (1_000.0, 0.0, 1_500.0), (1_000.0, 9_800.0, 955.6), (1_000.0, 27_000.0, 9.0)]
    {
        assert!((next(rate, used) - expected).abs() < 0.1, "{rate} {used}: {}", next(rate, used));
    }
    for (senders, periods) in [(1, 31), (2, 29), (4, 27), (8, 26), (16, 24)] {
        let fair = 9_000.0 / f64::from(senders);
        let rates = std::iter::successors(Some(10.0), |rate| Some(next(*rate, f64::from(senders) * rate)));
        let found = rates.take_while(|rate| (rate / fair - 1.0).abs() > 1e-4).count();
        assert_eq!(found, periods, "{senders}");
    }
}

/// All senders have one rate, which acknowledgements carry; it falls where more arrives than is shared.
#[test]
fn the_iterative_allocation_has_one_rate_for_all() {
    let given = [
        ("allocation", text("iterative")),
        ("utilization", Raw::Float(0.9)),
        ("iteration_period", text("10us")),
        ("advertise", text("acks")),
    ];
    let mut script = Script::new(&given);
    script.open_all([1, 2]);
    let parts = |script: &mut Script| [0, 1].map(|flow| script.parts(flow));
    assert_eq!(parts(&mut script), [1_000.0; 2]);
    // A packet of 1 us each period: a ninth of 0.9 of the link is used, and the rate rises by 4/9 each time.
    for period in 1..=40 {
        script.data(at(10 * period), 0, None);
    }
    assert_eq!(parts(&mut script), [1.0; 2]);
    // All of the link is used, a ninth more than is shared.
    for packet in 0..100 {
        script.data(at(401 + packet), 1, None);
    }
    let [one, other] = parts(&mut script);
    close(one, libm::pow(1.0 - 0.5 / 9.0, -10.0));
    assert_eq!((one, script.said()), (other, vec![]));
}
