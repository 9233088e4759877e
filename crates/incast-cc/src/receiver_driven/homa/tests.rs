//! The scheduler by hand, and the split of the priorities.

use super::*;
use crate::scheduler::{Arrival, End, NewFlow, ReceiverScheduler};
use incast_units::Rate;
use std::fmt::Write;

const MSS: u32 = 1000;

fn at(us: u64) -> Time {
    Time::from_us(us)
}

/// RTTbytes of four packets.
fn path() -> Path {
    Path::new(Rate::from_gbps(10), Time::from_ns(3_200), MSS, MSS)
}

fn resolve(given: &[(&str, Raw)]) -> Result<Arc<Constants>, ParameterError> {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Homa::resolve(&path(), &given)
}

fn constants(given: &[(&str, Raw)]) -> Arc<Constants> {
    resolve(given).expect("allowed")
}

fn text(text: &str) -> Raw {
    Raw::Text(text.to_owned())
}

/// A receiver, and what it has said.
struct Script {
    receiver: Receiver,
    /// Packets of each message, and which have come.
    messages: Vec<(u64, Vec<bool>)>,
    said: Vec<(u32, Instruction)>,
}

impl Script {
    fn new(given: &[(&str, Raw)]) -> Self {
        let receiver = Receiver::new(constants(given));
        Self { receiver, messages: Vec::new(), said: Vec::new() }
    }

    /// A message of so many packets.
    fn open(&mut self, now: Time, source: u32, packets: u64) -> u32 {
        let flow = self.messages.len() as u32;
        self.messages.push((packets, vec![false; packets as usize]));
        let new =
            NewFlow { now, flow, source, bytes: packets * u64::from(MSS), mss: MSS, unscheduled: 4 * u64::from(MSS) };
        let said = &mut self.said;
        self.receiver.on_flow(&new, &mut |flow, message| said.push((flow, message)));
        flow
    }

    fn data(&mut self, now: Time, flow: u32, packet: u64) -> Vec<(u32, Instruction)> {
        let (packets, arrived) = &mut self.messages[flow as usize];
        let duplicate = std::mem::replace(&mut arrived[packet as usize], true);
        let missing = arrived.iter().filter(|it| !**it).count() as u64;
        let expected = arrived.iter().position(|it| !it).map_or(*packets, |first| first as u64);
        let mss = u64::from(MSS);
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
        let said = &mut self.said;
        self.receiver.on_data(&arrival, &mut |flow, message| said.push((flow, message)));
        if missing == 0 && !duplicate {
            self.receiver.on_end(now, flow, End::Complete, &mut |flow, message| said.push((flow, message)));
        }
        std::mem::take(&mut self.said)
    }

    fn signal(&mut self, now: Time, flow: u32, signal: Signal) -> Vec<(u32, Instruction)> {
        let said = &mut self.said;
        self.receiver.on_signal(now, flow, signal, &mut |flow, message| said.push((flow, message)));
        std::mem::take(&mut self.said)
    }

    fn fire(&mut self) -> (Time, Vec<(u32, Instruction)>) {
        let now = self.receiver.next_timer();
        let said = &mut self.said;
        self.receiver.on_timer(now, &mut |flow, message| said.push((flow, message)));
        (now, std::mem::take(&mut self.said))
    }
}

fn grant(flow: u32, packets: u64, level: u8) -> (u32, Instruction) {
    (flow, Instruction::Credit { position: packets * u64::from(MSS), priority: Some(level) })
}

fn resend(flow: u32, first: u64, packets: u64, level: u8) -> (u32, Instruction) {
    let (position, bytes) = (first * u64::from(MSS), packets * u64::from(MSS));
    (flow, Instruction::Resend { position, bytes, priority: Some(level) })
}

#[test]
fn one_grant_for_each_packet_keeps_rtt_bytes_on_their_way() {
    let mut script = Script::new(&[]);
    let flow = script.open(at(0), 1, 7);
    for (packet, granted) in [(0, 5), (1, 6), (2, 7)] {
        assert_eq!(script.data(at(1), flow, packet), [grant(flow, granted, 7)]);
    }
    // It is granted in full; a duplicate grants nothing either.
    for packet in [3, 3, 4, 5, 6, 6] {
        assert_eq!(script.data(at(2), flow, packet), []);
    }
    // What fits into RTTbytes is never granted.
    let short = script.open(at(3), 1, 4);
    assert_eq!(script.data(at(3), short, 0), []);
}

#[test]
fn what_is_missing_is_not_granted_anew() {
    let mut script = Script::new(&[]);
    let flow = script.open(at(0), 1, 20);
    // Packets 0 and 2 never come: grants stay RTTbytes ahead of the bytes that have, not of their positions.
    assert_eq!(script.data(at(1), flow, 1), [grant(flow, 5, 7)]);
    assert_eq!(script.data(at(1), flow, 3), [grant(flow, 6, 7)]);
    assert_eq!(script.data(at(1), flow, 4), [grant(flow, 7, 7)]);
    assert_eq!(script.data(at(1), flow, 5), [grant(flow, 8, 7)]);
    assert_eq!(script.data(at(1), flow, 6), [grant(flow, 9, 7)]);
    assert_eq!(script.receiver.granted_and_received(flow), Some((9_000, 5_000)));
}

#[test]
fn the_shortest_ones_are_granted_one_of_each_sender() {
    let mut script = Script::new(&[("overcommitment", Raw::Integer(2))]);
    let (long, middle, short) = (script.open(at(0), 1, 100), script.open(at(0), 2, 50), script.open(at(0), 2, 20));
    assert_eq!(script.data(at(1), long, 0), [grant(long, 5, 7)]);
    // The shorter one of sender 2 is its only active one, and above the long one.
    assert_eq!(script.data(at(1), middle, 0), []);
    assert_eq!(script.data(at(1), short, 0), [grant(short, 5, 6)]);
    // A shorter one still, of a third sender: the long one is not granted any more, until the place is free again.
    let shortest = script.open(at(2), 3, 6);
    assert_eq!(script.data(at(2), shortest, 0), [grant(shortest, 5, 6)]);
    assert_eq!(script.data(at(2), long, 1), []);
    assert_eq!(script.data(at(2), long, 2), []);
    assert_eq!(script.data(at(2), shortest, 1), [grant(shortest, 6, 6), grant(long, 7, 7)]);
}

#[test]
fn what_is_left_is_counted_by_arrivals_or_by_grants() {
    for (srpt, overtakes) in [("arrived", true), ("granted", false)] {
        let mut script = Script::new(&[("overcommitment", Raw::Integer(1)), ("srpt", text(srpt))]);
        let (granted, arriving) = (script.open(at(0), 1, 20), script.open(at(0), 2, 22));
        assert_eq!(script.data(at(1), granted, 0), [grant(granted, 5, 7)]);
        for packet in 0..3 {
            assert_eq!(script.data(at(2), arriving, packet), []);
        }
        // 18 of its packets have not arrived, and have not been granted; of the other one 19 and 15.
        let said = script.data(at(3), arriving, 3);
        assert_eq!(said, if overtakes { vec![grant(arriving, 8, 7)] } else { vec![] }, "{srpt}");
    }
}

#[test]
fn a_message_that_is_abandoned_leaves_its_place_to_others() {
    for srpt in ["arrived", "granted"] {
        let mut script = Script::new(&[("overcommitment", Raw::Integer(1)), ("srpt", text(srpt))]);
        let (short, long) = (script.open(at(0), 1, 10), script.open(at(0), 2, 50));
        assert_eq!(script.data(at(1), short, 0), [grant(short, 5, 7)]);
        assert_eq!(script.data(at(1), long, 0), []);
        let said = &mut script.said;
        script.receiver.on_end(at(2), short, End::Abandoned, &mut |flow, message| said.push((flow, message)));
        assert_eq!(script.said, [grant(long, 5, 7)], "{srpt}");
    }
}

#[test]
fn levels_are_filled_from_below_or_from_above() {
    for (fill, levels) in [("low", [7, 6, 5, 4, 4]), ("high", [4, 4, 4, 4, 4])] {
        let given = [("sched_prio_fill", text(fill)), ("overcommitment", Raw::Integer(9))];
        let mut script = Script::new(&given);
        for (index, level) in levels.into_iter().enumerate() {
            // Each is shorter than those before, and the shortest has the highest level of those in use.
            let flow = script.open(at(0), index as u32, 100 - 10 * index as u64);
            let said = script.data(at(1), flow, 0);
            assert_eq!(said, [grant(flow, 5, level)], "{fill} {index}");
        }
        // The longest has the lowest level now; with five messages on four levels so has the next one.
        let last = script.data(at(2), 0, 1);
        assert_eq!(last, [grant(0, 6, 7)], "{fill}");
        assert_eq!(script.data(at(2), 1, 1), [grant(1, 6, 7)], "{fill}");
    }
}

#[test]
fn a_silent_sender_gets_a_resend_and_busy_restarts_the_timer() {
    let interval = ("resend_interval", text("300us"));
    let mut script = Script::new(&[interval.clone(), ("resends", text("first-range"))]);
    let flow = script.open(at(0), 1, 20);
    script.data(at(10), flow, 1);
    script.data(at(20), flow, 3);
    // The first look is where nothing had come yet, and does nothing.
    assert_eq!(script.fire(), (at(1_000), vec![]));
    // Six packets are granted. The grant may have been lost too.
    assert_eq!(script.fire(), (at(1_020), vec![grant(flow, 6, 7), resend(flow, 0, 1, 7)]));
    assert_eq!(script.signal(at(1_100), flow, Signal::Busy), []);
    assert_eq!(script.fire(), (at(1_320), vec![]));
    assert_eq!(script.fire(), (at(2_100), vec![grant(flow, 6, 7), resend(flow, 0, 1, 7)]));
    assert_eq!(script.fire().0, at(2_400));

    let mut script = Script::new(&[interval]);
    let flow = script.open(at(0), 1, 20);
    script.data(at(0), flow, 1);
    script.data(at(0), flow, 3);
    let all = vec![grant(flow, 6, 7), resend(flow, 0, 1, 7), resend(flow, 2, 1, 7), resend(flow, 4, 2, 7)];
    assert_eq!(script.fire(), (at(1_000), all));
}

/// Source: section 3.5 of the paper: a RESEND is for packets that are lost. Those behind a better priority are not.
#[test]
fn what_better_priorities_keep_back_is_not_asked_for() {
    let mut script = Script::new(&[("overcommitment", Raw::Integer(2))]);
    let (long, short) = (script.open(at(0), 1, 9_000), script.open(at(0), 2, 5_000));
    script.data(at(1), long, 0);
    script.data(at(2), short, 0);
    // The long one's packets are at priority 7, the short one's at 6: 2 ms of the link, of which a packet takes 0.8 us.
    for packet in 1..2_500 {
        script.data(Time::from_ns(2_000 + 800 * packet), short, packet);
        while script.receiver.next_timer() <= Time::from_ns(2_000 + 800 * packet) {
            assert_eq!(script.fire().1, []);
        }
    }
    // Then the short one's sender falls silent. After the timeout, and four packets' time, both may be lost.
    let resent = |script: &mut Script| loop {
        let (time, said) = script.fire();
        if let Some((flow, _)) = said.first() {
            return (time, *flow);
        }
    };
    let last = Time::from_ns(2_000 + 800 * 2_499);
    let (time, first) = resent(&mut script);
    assert_eq!(first, short);
    assert!(time >= last + at(1_000) && time < last + at(1_010), "{time:?}");
    let (time, second) = resent(&mut script);
    assert_eq!(second, long);
    assert!(time < last + at(1_010), "{time:?}");
}

#[test]
fn each_message_says_what_of_it_is_unscheduled() {
    let mut script = Script::new(&[("overcommitment", Raw::Integer(1))]);
    let (short, long) = (script.open(at(0), 1, 20), script.open(at(0), 2, 50));
    // One packet of the short one is unscheduled: it is granted from there, and the long one after it.
    script.receiver.on_tag(at(0), short, DataTag::new(1));
    assert_eq!(script.receiver.granted_and_received(short), Some((1_000, 0)));
    assert_eq!(script.data(at(1), short, 0), [grant(short, 5, 7)]);
    script.receiver.on_tag(at(1), long, DataTag::new(4));
    assert_eq!(script.data(at(1), long, 0), []);
    // The same again, in each packet: nothing changes, and a grant is not taken back.
    script.receiver.on_tag(at(2), short, DataTag::new(1));
    assert_eq!(script.receiver.granted_and_received(short), Some((5_000, 1_000)));
    // All of a message: it needs no grants.
    let whole = script.open(at(3), 3, 8);
    script.receiver.on_tag(at(3), whole, DataTag::new(9));
    assert_eq!(script.receiver.granted_and_received(whole), Some((8_000, 0)));
    assert_eq!(script.data(at(3), whole, 0), []);
}

#[test]
fn messages_of_a_large_request_are_part_of_an_incast() {
    let of = |given: &[(&str, Raw)], degree| {
        let mut law = Homa::start(&constants(given), &path(), Time::ZERO, 0);
        law.on_open(&Opening { bytes: 9_000, receiver: Rate::from_gbps(8), degree });
        (law.unscheduled(), law.tag().map(DataTag::get))
    };
    // Four active messages: four may send RTTbytes, four packets, at a time.
    assert_eq!([0, 1, 4].map(|degree| of(&[], degree)), [(4_000, Some(4)); 3]);
    assert_eq!(of(&[], 5), (1_000, Some(1)));
    assert_eq!(of(&[("incast_unscheduled", text("1500B"))], 5), (2_000, Some(2)));
    assert_eq!(of(&[("incast_threshold", Raw::Integer(5))], 5), (4_000, Some(4)));
    assert_eq!(of(&[("incast_control", text("off"))], 5), (4_000, Some(4)));
    assert_eq!(of(&[("incast_control", text("marked"))], 0), (1_000, Some(1)));
    assert_eq!(constants(&[("overcommitment", Raw::Integer(9))]).parameters.incast_threshold, 9);
}

#[test]
fn classes_share_a_receiver_unless_it_would_differ() {
    let of_receiver = |given: &[(&str, Raw)]| Homa::receiver_values(&constants(given));
    for sender in [
        ("incast_control", text("marked")),
        ("incast_unscheduled", text("2KB")),
        ("unscheduled_by", text("remaining")),
        ("resend_priority", text("original")),
    ] {
        assert_eq!(of_receiver(std::slice::from_ref(&sender)), of_receiver(&[]), "{sender:?}");
    }
    for receiver in [("overcommitment", Raw::Integer(2)), ("resends", text("first-range"))] {
        assert_ne!(of_receiver(std::slice::from_ref(&receiver)), of_receiver(&[]), "{receiver:?}");
    }
}

#[test]
fn who_waits_for_a_grant_is_not_asked() {
    let mut script = Script::new(&[("overcommitment", Raw::Integer(1))]);
    let (long, short) = (script.open(at(0), 1, 100), script.open(at(0), 2, 50));
    script.data(at(0), short, 0);
    (0..4).for_each(|packet| assert_eq!(script.data(at(0), long, packet), []));
    let (_, said) = script.fire();
    assert!(said.iter().all(|(flow, _)| *flow == short), "{said:?}");
}

#[test]
fn an_announced_message_of_which_nothing_came_is_asked_for_at_once_and_once() {
    let mut script = Script::new(&[]);
    let flow = script.open(at(0), 1, 3);
    assert_eq!(script.signal(at(0), flow, Signal::Request), [resend(flow, 0, 3, 7)]);
    assert_eq!(script.signal(at(5), flow, Signal::Request), []);
    let gone = script.open(at(5), 1, 3);
    let said = &mut script.said;
    script.receiver.on_end(at(6), gone, End::Abandoned, &mut |flow, message| said.push((flow, message)));
    assert_eq!(script.signal(at(7), gone, Signal::Request), []);
}

#[test]
fn unscheduled_data_goes_by_size_or_by_what_is_left() {
    let start = |given: &[(&str, Raw)], bytes| {
        let mut law = Homa::start(&constants(given), &path(), Time::ZERO, 0);
        law.on_open(&Opening { bytes, receiver: Rate::from_gbps(8), degree: 0 });
        law
    };
    let cutoffs = ("cutoffs", text("500B,1KB,3KB"));
    let of_size = |bytes| start(std::slice::from_ref(&cutoffs), bytes).priority(0, false);
    assert_eq!([1, 500, 501, 3_000, 3_001, 1 << 40].map(of_size), [0, 0, 1, 2, 3, 3].map(Some));
    let law = start(std::slice::from_ref(&cutoffs), 9_000);
    assert_eq!([0, 3_000, 4_000, 8_000].map(|position| law.priority(position, false)), [Some(3), Some(3), None, None]);
    assert_eq!(law.unscheduled(), 4_000);
    let law = start(&[cutoffs, ("unscheduled_by", text("remaining"))], 12_000);
    let levels = [0, 3_000, 4_000, 7_000, 8_000, 9_000, 11_000].map(|position| law.priority(position, false));
    assert_eq!(levels, [Some(3), Some(3), None, None, Some(3), Some(2), Some(1)]);
    let own = [("control", text("separate")), ("cutoffs", text("500B"))];
    assert_eq!(start(&own, 10).priority(0, false), Some(1));
    // Sent again.
    let again = |value| start(&[("resend_priority", text(value))], 9_000).priority(0, true);
    assert_eq!(["original", "highest", "resend"].map(again), [Some(3), Some(0), None]);
    let marked = start(&[("incast_control", text("marked"))], 9_000);
    assert_eq!((marked.unscheduled(), marked.priority(1_000, false)), (1_000, None));
}

#[test]
fn priorities_are_split_by_bytes() {
    let of = |bytes, flows| SizeClass { bytes, flows };
    // All is unscheduled: seven levels with as many bytes each, whatever the sizes.
    let equal: Vec<SizeClass> = (1..=7).map(|size| of(size * 100, 1.0 / size as f64)).collect();
    let (count, cutoffs) = levels::split(8, None, 10_000, &equal);
    assert_eq!((count, cutoffs.write()), (7, text("100B,200B,300B,400B,500B,600B")));
    // A quarter is.
    let quarter = [of(100, 10.0), of(1_000, 3.0), of(13_000, 1.0)];
    let (count, cutoffs) = levels::split(8, None, 1_000, &quarter);
    // 10 × 100 + 3 × 1000 + 1 × 1000 of 17,000.
    assert_eq!((count, cutoffs.write()), (2, text("1KB")));
    // Next to nothing is: one level is left to it.
    assert_eq!(levels::split(8, None, 1_000, &[of(1 << 40, 1.0)]), (1, Cutoffs::default()));
    // As many as are wanted.
    assert_eq!(levels::split(8, Some(3), 10_000, &quarter).0, 3);
    // Through the law, unless cutoffs are given.
    let by_traffic = |given: &[(&str, Raw)]| {
        let owned: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Homa::by_traffic(&constants(given), &owned, &|| quarter.to_vec())
    };
    // RTTbytes are four packets: 10 × 100 + 3 × 1000 + 4000 of 17,000 by 8 are 3.8.
    assert_eq!(by_traffic(&[])[0], ("unscheduled_priorities", Raw::Integer(4)));
    assert_eq!(by_traffic(&[("unscheduled_priorities", Raw::Integer(2))])[1], ("cutoffs", text("1KB")));
    assert!(by_traffic(&[("cutoffs", text("2KB"))]).is_empty());
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    let refused = |given: &[(&str, Raw)]| resolve(given).expect_err("refused").to_string();
    let two = ("unscheduled_priorities", Raw::Integer(2));
    let message = refused(&[two.clone(), ("cutoffs", text("1KB,2KB"))]);
    assert_eq!(message, "`cutoffs`: found \"1KB,2KB\", allowed are 1 sizes");
    assert!(refused(&[("cutoffs", text("2KB,1KB"))]).contains("do not fall"));
    assert!(refused(&[("cutoffs", Raw::Integer(3))]).contains("expected sizes"));
    assert!(refused(&[two, ("priorities", Raw::Integer(2))]).contains("allowed is 1 to 1 of 2"));
    assert!(refused(&[("priorities", Raw::Integer(9))]).contains("1 to 8"));
    assert!(refused(&[("priorities", Raw::Integer(1)), ("control", text("separate"))]).contains("\"shared\""));
    assert!(refused(&[("overcommitment", Raw::Integer(0))]).contains("at least 1"));
    // One priority serves for all; Polo's evaluation has two active messages and 12 packets.
    let one = constants(&[("priorities", Raw::Integer(1))]);
    assert_eq!((one.lowest(), one.scheduled_levels(), one.unscheduled_level(9)), (0, 1, 0));
    let paper = constants(&[("profile", text("paper"))]);
    assert_eq!((paper.ahead, paper.parameters.overcommitment), (12_000, 2));
    assert_eq!(constants(&[]).parameters.resend_timeout.time(), Time::from_ms(1));
}

/// Four messages of three senders, of which each packet takes 1 us on the link and a grant is answered 3 us later.
#[test]
fn golden() {
    let mut script = Script::new(&[("overcommitment", Raw::Integer(2)), ("resend_timeout", text("40us"))]);
    let mut trace = String::new();
    let mut coming: Vec<(u64, u32, u64)> = Vec::new();
    for (start, source, packets) in [(0, 1, 14), (2, 2, 9), (4, 2, 6), (9, 3, 3)] {
        let flow = script.open(at(start), source, packets);
        coming.extend((0..packets.min(4)).map(|packet| (start + packet, flow, packet)));
    }
    let mut granted = [4, 4, 4, 3];
    let mut lost = false;
    for now in 0..300 {
        let mut said = Vec::new();
        coming.sort_unstable();
        if coming.first().is_some_and(|next| next.0 <= now) {
            let (_, flow, packet) = coming.remove(0);
            if (flow, packet, lost) == (0, 5, false) {
                lost = true;
                writeln!(trace, "{now} us: packet {packet} of {flow} is lost").expect("a String");
            } else {
                write!(trace, "{now} us: packet {packet} of {flow}").expect("a String");
                said = script.data(at(now), flow, packet);
                writeln!(trace, "{}", if said.is_empty() { "" } else { ":" }).expect("a String");
            }
        }
        while script.receiver.next_timer() <= at(now) {
            said.extend(script.fire().1);
        }
        for (flow, message) in said {
            let shown = format!("{message:?}").replacen("{ ", &format!("{{ flow: {flow}, "), 1);
            writeln!(trace, "    {shown}").expect("a String");
            match message {
                Instruction::Credit { position, .. } => {
                    let (from, to) = (granted[flow as usize], position / u64::from(MSS));
                    coming.extend((from..to).map(|packet| (now + 3, flow, packet)));
                    granted[flow as usize] = to.max(from);
                }
                Instruction::Resend { position, bytes, .. } => {
                    let first = position / u64::from(MSS);
                    let packets = first..first + bytes / u64::from(MSS);
                    coming.extend(packets.map(|packet| (now + 3, flow, packet)));
                }
                _ => {}
            }
        }
    }
    assert!(script.messages.iter().all(|(_, arrived)| arrived.iter().all(|it| *it)), "{trace}");
    insta::assert_snapshot!("homa", trace);
}
