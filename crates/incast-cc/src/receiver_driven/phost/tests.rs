//! The scheduler by hand.

use super::*;
use crate::message::DataTag;
use crate::scheduler::{Arrival, End, NewFlow, ReceiverScheduler};
use incast_units::Rate;
use std::fmt::Write;

const MSS: u32 = 1000;

fn at(us: u64) -> Time {
    Time::from_us(us)
}

/// A packet takes 1 us, and the path is the paper's: 8 us.
fn path() -> Path {
    Path::new(Rate::from_gbps(8), at(8), MSS, MSS)
}

fn text(text: &str) -> Raw {
    Raw::Text(text.to_owned())
}

fn resolve(path: &Path, given: &[(&str, Raw)]) -> Result<Arc<Constants>, ParameterError> {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Phost::resolve(path, &given)
}

fn constants(given: &[(&str, Raw)]) -> Arc<Constants> {
    resolve(&path(), given).expect("allowed")
}

/// A receiver, and what it has said.
struct Script {
    receiver: Receiver,
    free: u64,
    now: Time,
    /// Packets of each flow, and which have come.
    flows: Vec<(u64, Vec<bool>)>,
}

impl Script {
    fn new(given: &[(&str, Raw)]) -> Self {
        let constants = constants(given);
        let free = Phost::start(&constants, &path(), Time::ZERO, 0).unscheduled();
        Self { receiver: Receiver::new(constants), free, now: Time::ZERO, flows: Vec::new() }
    }

    /// A flow of so many packets.
    fn open(&mut self, now: Time, source: u32, packets: u64) -> u32 {
        self.now = now;
        let flow = self.flows.len() as u32;
        self.flows.push((packets, vec![false; packets as usize]));
        let new = NewFlow { now, flow, source, bytes: packets * u64::from(MSS), mss: MSS, unscheduled: self.free };
        let mut none = |flow, message| panic!("{message:?} for {flow}");
        self.receiver.on_flow(&new, &mut none);
        self.receiver.on_signal(now, flow, Rts, &mut none);
        flow
    }

    /// A packet comes, on the token for `token`.
    fn data(&mut self, now: Time, flow: u32, packet: u64, token: Option<u64>) {
        let (packets, arrived) = &mut self.flows[flow as usize];
        let duplicate = std::mem::replace(&mut arrived[packet as usize], true);
        let missing = arrived.iter().filter(|it| !**it).count() as u64;
        let expected = arrived.iter().position(|it| !it).map_or(*packets, |first| first as u64);
        let mss = u64::from(MSS);
        if let Some(token) = token {
            self.receiver.on_tag(now, flow, DataTag::of_token(token));
        }
        let arrival = Arrival {
            now,
            flow,
            position: packet * mss,
            bytes: MSS,
            expected: expected * mss,
            remaining: missing * mss,
            marked: false,
            duplicate,
        };
        let mut none = |flow, message| panic!("{message:?} for {flow}");
        self.receiver.on_data(&arrival, &mut none);
        if missing == 0 && !duplicate {
            self.receiver.on_end(now, flow, End::Complete, &mut none);
        }
    }

    /// The next token: when, of which flow, for which packet, and for how many ns. Timers without one are passed over.
    fn token(&mut self) -> Option<(Time, u32, u64, u64)> {
        loop {
            let now = self.receiver.next_timer().max(self.now);
            if now == Time::MAX {
                return None;
            }
            self.now = now;
            let mut said = Vec::new();
            self.receiver.on_timer(now, &mut |flow, message| said.push((flow, message)));
            match said[..] {
                [] => {}
                [(flow, Instruction::Token { wanted: Some(wanted), lifetime, priority: None })] => {
                    return Some((now, flow, wanted / u64::from(MSS), lifetime.ps() / 1000));
                }
                _ => panic!("{said:?}"),
            }
        }
    }

    fn tokens(&mut self, count: usize) -> Vec<(u64, u32, u64)> {
        let mut tokens = Vec::new();
        for _ in 0..count {
            let (time, flow, packet, _) = self.token().expect("a token");
            tokens.push((time.ps() / 1_000_000, flow, packet));
        }
        tokens
    }
}

#[test]
fn tokens_follow_the_free_ones_at_the_pace_of_the_link() {
    let mut script = Script::new(&[]);
    let flow = script.open(at(10), 1, 12);
    // While eight free tokens are in use, others may be kept for longer.
    assert_eq!(script.token(), Some((at(10), flow, 8, 9_500)));
    script.data(at(10), flow, 0, None);
    assert_eq!(script.token(), Some((at(11), flow, 9, 8_500)));
    (1..8).for_each(|packet| script.data(at(11), flow, packet, None));
    assert_eq!(script.token(), Some((at(12), flow, 10, 1_500)));
    assert_eq!(script.tokens(1), [(13, flow, 11)]);
    // All have been given; what has not come 9 us later is given tokens again.
    script.data(at(18), flow, 8, Some(8));
    script.data(at(19), flow, 10, Some(10));
    assert_eq!(script.tokens(2), [(28, flow, 9), (29, flow, 11)]);
    // And again.
    script.data(at(30), flow, 11, Some(11));
    assert_eq!(script.tokens(1), [(39, flow, 9)]);
    script.data(at(40), flow, 9, Some(9));
    assert_eq!(script.token(), None);
}

#[test]
fn free_tokens_are_for_all_or_for_the_short() {
    let mut script = Script::new(&[("free_tokens_for", text("short")), ("timeouts", text("literal"))]);
    let (short, long) = (script.open(at(0), 1, 8), script.open(at(0), 2, 9));
    // The long one starts at its first packet; the short one needs nothing unless its packets do not come.
    assert_eq!(script.tokens(1), [(0, long, 0)]);
    (1..9).for_each(|packet| assert_eq!(script.tokens(1), [(packet, long, packet)]));
    // 8 us for its free tokens and 9 us more.
    assert_eq!(script.tokens(1), [(17, short, 0)]);
    let law = |given: &[(&str, Raw)], bytes| {
        let mut law = Phost::start(&constants(given), &path(), Time::ZERO, 0);
        law.on_open(&Opening { bytes, receiver: Rate::from_gbps(8), degree: 0 });
        law
    };
    let short_only = [("free_tokens_for", text("short"))];
    for (given, bytes, credit, priority) in [
        (&[][..], 7_001, 8_000, SHORT),
        (&[], 80_000, 8_000, LONG),
        (&short_only, 8_000, 8_000, SHORT),
        (&short_only, 8_001, 0, LONG),
    ] {
        let mut law = law(given, bytes);
        assert_eq!((law.unscheduled(), law.priority(0, false)), (credit, Some(priority)), "{bytes}");
        assert_eq!(law.take_signal(), Some(Rts), "RTS");
        assert_eq!(law.take_signal(), None);
        law.on_timeout(at(9), 0);
        assert_eq!(law.take_signal(), Some(Rts), "and again");
    }
}

#[test]
fn a_sender_that_uses_none_is_left_alone_for_25_packet_times() {
    let mut script = Script::new(&[("timeouts", text("literal"))]);
    let (idle, other) = (script.open(at(0), 1, 60), script.open(at(0), 2, 90));
    // The shorter one is first, until its tokens are more than eight ahead.
    let expected: Vec<_> = (0..9).map(|index| (index, idle, 8 + index)).collect();
    assert_eq!(script.tokens(9), expected);
    // Then the other one has them all, as its tokens come back eight later.
    for index in 0..24 {
        assert_eq!(script.tokens(1), [(9 + index, other, 8 + index)]);
        if index >= 7 {
            script.data(at(9 + index), other, 1 + index, Some(8 + index - 7));
        }
    }
    // 25 us after its last token the idle one is tried again, from its first missing packet on.
    assert_eq!(script.tokens(1), [(33, idle, 0)]);
    // A single one that is used is enough: it goes on.
    script.data(at(34), idle, 0, Some(0));
    let expected: Vec<_> = (0..9).map(|index| (34 + index, idle, 1 + index)).collect();
    assert_eq!(script.tokens(9), expected);
    assert_eq!(script.tokens(1)[0].1, other);
}

#[test]
fn packets_of_other_flows_may_come_first() {
    // Eight free packets of one flow are on the link before the other's only packet, or behind it.
    for (timeouts, again) in [("rtt", 18), ("literal", 10)] {
        let mut script = Script::new(&[("timeouts", text(timeouts))]);
        let (short, _) = (script.open(at(0), 1, 1), script.open(at(0), 2, 8));
        assert_eq!(script.tokens(1), [(again, short, 0)], "{timeouts}");
    }
}

#[test]
fn tokens_that_were_passed_over_do_not_count() {
    let mut script = Script::new(&[]);
    let flow = script.open(at(0), 1, 100);
    // Every other token expires at its sender, which sends in order: the window counts from the last one used.
    for index in 0..60 {
        assert_eq!(script.tokens(1), [(index, flow, 8 + index)]);
        if index % 2 == 1 {
            script.data(at(index), flow, 8 + index / 2, Some(8 + index));
        }
    }
}

#[test]
fn the_shortest_first_or_in_turn() {
    let flows = |scheduling: &str| {
        let mut script = Script::new(&[("scheduling", text(scheduling)), ("free_tokens", text("0B"))]);
        [4, 2, 3].into_iter().enumerate().for_each(|(source, packets)| {
            script.open(at(0), source as u32, packets);
        });
        script.tokens(9).into_iter().map(|(_, flow, _)| flow).collect::<Vec<u32>>()
    };
    assert_eq!(flows("srpt"), [1, 1, 2, 2, 2, 0, 0, 0, 0]);
    assert_eq!(flows("round-robin"), [0, 1, 2, 0, 1, 2, 0, 2, 0]);
}

#[test]
fn a_flow_that_ends_gets_nothing_more() {
    for scheduling in ["srpt", "round-robin"] {
        let mut script = Script::new(&[("scheduling", text(scheduling))]);
        let (one, other) = (script.open(at(0), 1, 20), script.open(at(0), 2, 30));
        assert_eq!(script.tokens(1), [(0, one, 8)]);
        script.receiver.on_end(at(1), one, End::Abandoned, &mut |flow, message| panic!("{message:?} for {flow}"));
        assert_eq!(script.tokens(2), [(1, other, 8), (2, other, 9)]);
        script.data(at(2), one, 8, Some(8));
        script.receiver.on_end(at(3), other, End::Abandoned, &mut |flow, message| panic!("{message:?} for {flow}"));
        assert_eq!(script.token(), None);
    }
}

#[test]
fn waits_and_windows_follow_the_path_unless_they_are_literal() {
    let long = Path { base_rtt: at(80), ..path() };
    let waits = |path: &Path, given: &[(&str, Raw)]| {
        let constants = resolve(path, given).expect("allowed");
        (constants.resend_timeout, constants.window_timeout, constants.parameters.window, constants.free)
    };
    assert_eq!(waits(&path(), &[]), (at(9), at(25), 8, 8));
    assert_eq!(waits(&long, &[]), (at(90), at(250), 80, 80));
    assert_eq!(waits(&long, &[("timeouts", text("literal"))]), (at(9), at(25), 80, 80));
    let paper = [("profile", text("paper"))];
    assert_eq!(waits(&long, &paper), (at(90), at(250), 12, 12));
    let paper = resolve(&long, &paper).expect("allowed").parameters.clone();
    assert_eq!((paper.scheduling, paper.short), (Scheduling::RoundRobin, Bytes::new(12_000)));
    let refused = resolve(&path(), &[("token_expiry", Raw::Float(0.0))]).expect_err("refused");
    assert!(refused.to_string().contains("above 0"));
}

/// Three flows of two senders; data comes 8 us after its token, two of three tokens of the second sender expire, and a
/// packet is lost.
#[test]
fn golden() {
    let mut script = Script::new(&[]);
    let mut trace = String::new();
    // When, flow, packet, token.
    let mut coming: Vec<(u64, u32, u64, Option<u64>)> = Vec::new();
    let mut sent = [8, 6, 8];
    for (source, packets) in [(1, 24), (1, 6), (2, 17)] {
        let flow = script.open(at(0), source, packets);
        coming.extend((0..packets.min(8)).map(|packet| (3 * packet + u64::from(flow), flow, packet, None)));
    }
    let (mut lost, mut given) = (false, 0);
    for now in 0..400 {
        coming.sort_unstable();
        while coming.first().is_some_and(|next| next.0 <= now) {
            let (_, flow, packet, token) = coming.remove(0);
            if (flow, packet, lost) == (1, 3, false) {
                lost = true;
                writeln!(trace, "{now} us: packet {packet} of {flow} is lost").expect("a String");
            } else {
                writeln!(trace, "{now} us: packet {packet} of {flow}").expect("a String");
                script.data(at(now), flow, packet, token);
            }
        }
        while script.receiver.next_timer() <= at(now) {
            let mut said = Vec::new();
            let time = script.receiver.next_timer().max(at(now));
            script.receiver.on_timer(time, &mut |flow, message| said.push((flow, message)));
            for (flow, token) in said {
                let Instruction::Token { wanted: Some(wanted), lifetime, .. } = token else { continue };
                let shown = format!("wanted: Some({wanted}), lifetime: {lifetime:?}, priority: None");
                writeln!(trace, "    Token {{ flow: {flow}, {shown} }}").expect("a String");
                let (wanted, index) = (wanted / u64::from(MSS), flow as usize);
                given += 1;
                if flow == 2 && given % 3 != 0 {
                    continue;
                }
                // As a sender does: again what was sent, else the next one.
                let packet = wanted.min(sent[index]);
                sent[index] = sent[index].max(packet + 1);
                coming.push((now + 8, flow, packet, Some(wanted)));
            }
        }
    }
    assert!(script.flows.iter().all(|(_, arrived)| arrived.iter().all(|it| *it)), "{trace}");
    insta::assert_snapshot!("phost", trace);
}
