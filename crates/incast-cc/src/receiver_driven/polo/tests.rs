//! Both halves by hand.

use super::*;
use incast_units::Rate;
use std::fmt::Write;

const MSS: u64 = 1000;

fn at(us: u64) -> Time {
    Time::from_us(us)
}

/// 1 Gbit/s and 48 us: a BDP of 6 packets.
fn path() -> Path {
    Path::new(Rate::from_gbps(1), at(48), MSS as u32, 1000)
}

fn resolve(given: &[(&str, Raw)]) -> Result<Parameters, ParameterError> {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    Polo::resolve(&path(), &given)
}

fn text(value: &str) -> Raw {
    Raw::Text(value.to_owned())
}

mod sender {
    use super::*;

    fn start(given: &[(&str, Raw)], bytes: u64) -> Polo {
        let mut law = Polo::start(&resolve(given).expect("allowed"), &path(), at(10), 0);
        law.on_open(&Opening { bytes, receiver: Rate::from_gbps(1), degree: 0 });
        law
    }

    fn says_adjoint(law: &mut Polo) -> bool {
        let said = law.take_signal();
        assert_eq!(law.take_signal(), None, "once");
        said == Some(Adjoint)
    }

    #[test]
    fn the_first_window_is_followed_by_an_adjoint_packet_and_each_answer_by_another() {
        let mut law = start(&[], 20_000);
        assert_eq!((law.unscheduled(), law.window()), (6_000, u64::MAX));
        for packet in 0..6 {
            assert!(!says_adjoint(&mut law), "{packet} of 6");
            law.on_sent(at(10 + 8 * packet), 1000);
        }
        assert!(says_adjoint(&mut law));
        for round in 2..10 {
            law.on_message(at(round * 100), Message::Acknowledge);
            assert!(says_adjoint(&mut law));
        }
        // Data that is driven is followed by none.
        law.on_sent(at(1000), 1000);
        assert!(!says_adjoint(&mut law));
    }

    #[test]
    fn a_flow_shorter_than_the_window_or_without_one_has_its_adjoint_packet_too() {
        let mut short = start(&[], 1_500);
        short.on_sent(at(10), 1000);
        assert!(!says_adjoint(&mut short));
        short.on_sent(at(18), 500);
        assert!(says_adjoint(&mut short));
        // Windows are of whole packets.
        let mut part = start(&[("unscheduled", text("1500B"))], 9_000);
        part.on_sent(at(10), 1000);
        assert!(!says_adjoint(&mut part));
        part.on_sent(at(18), 1000);
        assert!(says_adjoint(&mut part));
        let mut none = start(&[("unscheduled", text("0B"))], 9_000);
        assert_eq!(none.unscheduled(), 0);
        assert!(says_adjoint(&mut none));
    }

    /// Recovery 3.
    #[test]
    fn an_adjoint_packet_that_is_not_answered_is_repeated_at_doubled_times() {
        let mut law = start(&[("unscheduled", text("0B"))], 9_000);
        assert!(says_adjoint(&mut law));
        let mut times = Vec::new();
        for _ in 0..4 {
            let due = law.next_timer();
            law.on_timer(due);
            assert!(says_adjoint(&mut law));
            times.push((due - at(10)).ps() / 1_000_000_000);
        }
        assert_eq!(times, [1, 3, 7, 15], "ms");
        let now = law.next_timer();
        law.on_message(now, Message::Acknowledge);
        assert!(says_adjoint(&mut law));
        assert_eq!(law.next_timer(), now + Time::from_ms(1), "as at first");
        // The host receives nothing either, and says so at the same time.
        let due = law.next_timer();
        law.on_timeout(due, 0);
        law.on_timer(due);
        assert!(says_adjoint(&mut law));
        assert_eq!(law.next_timer(), due + Time::from_ms(1));
    }

    #[test]
    fn without_recovery_3_nothing_is_repeated() {
        let mut law = start(&[("unscheduled", text("0B")), ("recovery3", Raw::Flag(false))], 9_000);
        assert!(says_adjoint(&mut law));
        assert_eq!(law.next_timer(), Time::MAX);
        law.on_timeout(at(5_000), 0);
        assert!(!says_adjoint(&mut law));
    }

    /// The receiver answers of its own accord just as the adjoint packet is repeated, and then that one: one goes on.
    #[test]
    fn answers_that_cross_with_a_repetition_count_as_one() {
        let mut law = start(&[("unscheduled", text("0B"))], 9_000);
        assert!(says_adjoint(&mut law));
        law.on_timer(at(1_010));
        assert!(says_adjoint(&mut law));
        law.on_message(at(1_015), Message::Acknowledge);
        law.on_message(at(1_040), Message::Acknowledge);
        assert!(!says_adjoint(&mut law));
        // A base RTT after the repetition.
        assert_eq!(law.next_timer(), at(1_058));
        law.on_timer(at(1_058));
        assert!(says_adjoint(&mut law));
        assert_eq!(law.next_timer(), at(2_058));
    }

    #[test]
    fn profiles_and_scopes_set_defaults() {
        let scaled = resolve(&[]).expect("defaults");
        assert_eq!((scaled.unscheduled, scaled.rto.time()), (Bytes::new(6_000), Time::from_ms(1)));
        assert_eq!(scaled.adjoint_scope, AdjointScope::Owner);
        let paper = resolve(&[("profile", text("paper"))]).expect("allowed");
        assert_eq!(paper.unscheduled, Bytes::new(12_000));
        let flows = resolve(&[("d_scope", text("flow"))]).expect("allowed");
        assert_eq!(flows.adjoint_scope, AdjointScope::Active);
        let refused = resolve(&[("d_scope", text("flow")), ("adjoint_scope", text("owner"))]);
        assert!(refused.expect_err("refused").to_string().contains("never end"));
    }
}

/// A receiver, and what it sends in words: `0+` drives flow 0, `0!3` is a loss packet for its packet 3, `0?`
/// acknowledges its adjoint packet.
struct World {
    receiver: Receiver,
    unscheduled: u64,
    now: Time,
    /// Bitmaps of what arrived, by flow, and packets.
    flows: Vec<(Vec<bool>, u64)>,
    said: String,
}

impl World {
    fn new(given: &[(&str, Raw)]) -> Self {
        let parameters = resolve(given).expect("allowed");
        let receiver = Receiver::new(&parameters, &path());
        let unscheduled = parameters.unscheduled.get();
        Self { receiver, unscheduled, now: at(0), flows: Vec::new(), said: String::new() }
    }

    fn tell(&mut self, what: impl FnOnce(&mut Receiver, &mut dyn FnMut(u32, Message))) -> String {
        let mut said = String::new();
        let mut send = |flow, message| {
            let space = if said.is_empty() { "" } else { " " };
            match message {
                Message::Drive => write!(said, "{space}{flow}+"),
                Message::Lost { position } => write!(said, "{space}{flow}!{}", position / MSS),
                Message::Acknowledge => write!(said, "{space}{flow}?"),
            }
            .expect("a String takes everything");
        };
        what(&mut self.receiver, &mut send);
        self.said.clone_from(&said);
        said
    }

    /// A flow of so many packets begins; its handle.
    fn open(&mut self, packets: u64) -> u32 {
        let flow = self.flows.len() as u32;
        self.flows.push((vec![false; packets as usize], packets));
        let (bytes, unscheduled) = (packets * MSS, self.unscheduled);
        let new = NewFlow { now: self.now, flow, source: flow, bytes, mss: MSS as u32, unscheduled };
        assert_eq!(self.tell(|receiver, send| receiver.on_flow(&new, send)), "");
        flow
    }

    fn arrive(&mut self, flow: u32, packet: u64, marked: bool) -> String {
        let (arrived, packets) = &mut self.flows[flow as usize];
        let duplicate = std::mem::replace(&mut arrived[packet as usize], true);
        let remaining = arrived.iter().filter(|arrived| !**arrived).count() as u64;
        let expected = arrived.iter().take_while(|arrived| **arrived).count() as u64;
        let arrival = Arrival {
            now: self.now,
            flow,
            position: packet * MSS,
            bytes: MSS as u32,
            expected: expected * MSS,
            remaining: remaining * MSS,
            marked,
            duplicate,
        };
        let completes = remaining == 0 && !duplicate && *packets > 0;
        let now = self.now;
        self.tell(|receiver, send| {
            receiver.on_data(&arrival, send);
            if completes {
                receiver.on_end(now, flow, End::Complete, send);
            }
        })
    }

    fn data(&mut self, flow: u32, packet: u64) -> String {
        self.arrive(flow, packet, false)
    }

    fn marked(&mut self, flow: u32, packet: u64) -> String {
        self.arrive(flow, packet, true)
    }

    fn adjoint(&mut self, flow: u32) -> String {
        let now = self.now;
        self.tell(|receiver, send| receiver.on_signal(now, flow, Adjoint, send))
    }
}

/// Slides, "Adjusting the number of driving packets".
#[test]
fn d_counts_up_then_adds_one_for_a_clean_epoch_and_halves_what_is_marked() {
    let mut world = World::new(&[]);
    world.open(1000);
    for packet in 0..6 {
        assert_eq!(world.data(0, packet), "0+", "each unmarked packet drives one in the first epoch");
    }
    assert_eq!(world.receiver.d(), (6.0, 6));
    assert_eq!(world.adjoint(0), "0?", "the first epoch has counted already");
    // A clean epoch.
    (6..12).for_each(|packet| assert_eq!(world.data(0, packet), "0+"));
    assert_eq!(world.adjoint(0), "0? 0+");
    assert_eq!(world.receiver.d(), (7.0, 7));
    // Three marks: 5.5, so that two packets arrive before another one is driven.
    (12..15).for_each(|packet| drop(world.marked(0, packet)));
    (15..18).for_each(|packet| drop(world.data(0, packet)));
    assert_eq!(world.adjoint(0), "0?");
    assert_eq!(world.receiver.d(), (5.5, 7));
    assert_eq!([18, 19, 20].map(|packet| world.data(0, packet)), ["", "", "0+"]);
    assert_eq!(world.adjoint(0), "0? 0+");
    assert_eq!(world.receiver.d(), (6.5, 6));
    // Not below one.
    (21..27).for_each(|packet| drop(world.marked(0, packet)));
    world.adjoint(0);
    (27..33).for_each(|packet| drop(world.marked(0, packet)));
    world.adjoint(0);
    assert_eq!(world.receiver.d().0, 1.0);
}

#[test]
fn d_has_bounds_that_may_be_others() {
    let mut world = World::new(&[("d_min", Raw::Float(2.5)), ("d_max", Raw::Float(1.0))]);
    world.open(1000);
    (0..20).for_each(|packet| drop(world.data(0, packet)));
    assert_eq!(world.receiver.d().0, 6.0, "one BDP");
    world.adjoint(0);
    (20..32).for_each(|packet| drop(world.marked(0, packet)));
    world.adjoint(0);
    assert_eq!(world.receiver.d().0, 2.5);
}

#[test]
fn an_epoch_without_data_leaves_d_alone() {
    let mut world = World::new(&[]);
    world.open(100);
    (0..3).for_each(|packet| drop(world.data(0, packet)));
    (0..2).for_each(|_| drop(world.adjoint(0)));
    assert_eq!(world.receiver.d().0, 3.0, "the first has counted, in the second nothing came");
    world.data(0, 3);
    world.adjoint(0);
    assert_eq!(world.receiver.d().0, 4.0);
}

#[test]
fn marks_of_repeated_packets_may_not_count() {
    for (counts, d) in [(true, 4.5), (false, 5.0)] {
        let mut world = World::new(&[("count_retransmissions", Raw::Flag(counts))]);
        world.open(100);
        for packet in [0, 1, 2, 4] {
            world.data(0, packet);
        }
        world.adjoint(0);
        world.data(0, 5);
        world.adjoint(0);
        assert_eq!(world.receiver.d().0, 5.0);
        world.marked(0, 3);
        world.now = at(100);
        world.adjoint(0);
        let (clean, marked) = (world.receiver.d().0 - 1.0, world.receiver.d().0);
        assert_eq!(if counts { marked } else { clean }, d);
    }
}

/// Recovery 1.
#[test]
fn a_gap_is_answered_with_loss_packets() {
    let mut world = World::new(&[]);
    world.open(100);
    // Both at once, though D has room for one alone.
    assert_eq!([world.data(0, 0), world.data(0, 3)], ["0+", "0!1 0!2"]);
    assert_eq!(world.receiver.d(), (2.0, 3));
    let mut world = World::new(&[("loss_packets", text("in-turn"))]);
    world.open(100);
    assert_eq!(world.data(0, 0), "0+");
    assert_eq!(world.data(0, 3), "0!1");
    assert_eq!(world.data(0, 4), "0!2");
    assert_eq!(world.data(0, 5), "0+");
    // The sixth packet was the first that was driven; its loss makes room for another.
    assert_eq!(world.receiver.d(), (4.0, 4));
    assert_eq!(world.data(0, 7), "0!6 0+ 0+");
    // It comes after all, and again.
    assert_eq!(world.data(0, 6), "0+ 0+");
    assert_eq!(world.data(0, 6), "0+");
    let mut without = World::new(&[("recovery1", Raw::Flag(false))]);
    without.open(100);
    assert_eq!([0, 3, 4, 5].map(|packet| without.data(0, packet)), ["0+", "0+", "0+", "0+"]);
}

/// Recovery 2.
#[test]
fn two_epochs_without_data_mean_loss() {
    let mut world = World::new(&[]);
    world.open(8);
    (0..4).for_each(|packet| drop(world.data(0, packet)));
    // 4 and 5 were lost, and so were those driven since, or their driving packets.
    assert_eq!(world.adjoint(0), "0?");
    assert_eq!(world.receiver.d(), (4.0, 2), "there are two more");
    assert_eq!(world.adjoint(0), "0?");
    // Two epochs are over, and what was driven may still be under way for all that.
    world.now = at(191);
    assert_eq!(world.adjoint(0), "0?");
    world.now = at(192);
    assert_eq!(world.adjoint(0), "0? 0!4 0!5 0!6 0!7");
    let mut without = World::new(&[("recovery2", Raw::Flag(false))]);
    without.open(8);
    (0..4).for_each(|packet| drop(without.data(0, packet)));
    for epoch in 0..20 {
        without.now = at(48 * epoch);
        assert_eq!(without.adjoint(0), "0?");
    }
}

#[test]
fn recovery_2_may_choose_one_flow() {
    let mut world = World::new(&[
        ("recovery2_scope", text("one")),
        ("unscheduled", text("2KB")),
        ("recovery2_timeout", text("0ns")),
    ]);
    (0..3).for_each(|_| _ = world.open(2));
    world.data(0, 0);
    world.adjoint(0);
    world.adjoint(0);
    assert_eq!(world.adjoint(0), "0? 0!1");
    assert_eq!([world.adjoint(0), world.adjoint(0)], ["0?", "0? 1!0"]);
}

/// Recovery 3: the sender repeats its adjoint packet after a timeout.
#[test]
fn what_is_awaited_of_a_silent_flow_is_lost() {
    for (driven, at_once) in [("turn", ""), ("data", "1!0")] {
        let mut world = World::new(&[("unscheduled", text("2KB")), ("driven", text(driven))]);
        world.open(100);
        world.open(2);
        (0..2).for_each(|packet| drop(world.data(0, packet)));
        world.adjoint(0);
        // Nothing of flow 1 arrives; flow 0 goes on.
        for packet in 2..20 {
            world.now = at(100 * packet);
            let said = world.data(0, packet);
            assert!(!said.contains('1'), "{said}");
            if packet == 5 {
                assert_eq!(world.adjoint(1), "", "too early");
            }
        }
        assert_eq!(world.adjoint(1), at_once, "all that D allows is awaited");
        if driven == "turn" {
            assert_eq!([world.data(0, 20), world.data(0, 21)], ["0+", "1!0"], "in turn");
            assert_eq!([world.data(1, 0), world.data(0, 22)], ["0+", "1!1"]);
        } else {
            // One more than D is awaited.
            assert_eq!([world.data(0, 20), world.data(0, 21), world.data(1, 0)], ["", "0+", "1!1"]);
        }
    }
}

/// A sender that is dead holds neither the epochs nor what D has.
#[test]
fn an_owner_of_which_nothing_comes_is_paused() {
    let mut world = World::new(&[("unscheduled", text("2KB")), ("rto", text("1ms"))]);
    (0..2).for_each(|_| _ = world.open(100));
    assert_eq!([world.data(0, 0), world.data(1, 0)], ["0+", "1+"]);
    world.now = at(1_900);
    assert!(!world.adjoint(1).contains('?'), "only the owner's is acknowledged");
    world.now = at(2_000);
    let said = world.adjoint(1);
    assert!(said.contains("1?") && !said.contains('0'), "{said}: it is the owner now, and D is its own");
    assert_eq!(world.data(0, 1), "", "the other is paused");
    world.now = at(4_100);
    let said = world.adjoint(0);
    assert!(said.contains("0?") && !said.contains('1'), "{said}: the second one is silent now");
}

/// The same where each flow has its own D, and only if another one waits for its place.
#[test]
fn a_dead_flow_with_a_d_of_its_own_gives_up_its_place() {
    let given = [("d_scope", text("flow")), ("pause", text("active-limit")), ("max_active", Raw::Integer(2))];
    let mut world = World::new(&[&given[..], &[("unscheduled", text("2KB")), ("rto", text("1ms"))]].concat());
    (0..2).for_each(|_| _ = world.open(100));
    (0..2).for_each(|flow| _ = world.data(flow, 0));
    world.now = at(1_024_000);
    assert!(!world.adjoint(1).contains('0') && world.receiver.d_of(0).is_some_and(|(_, awaited)| awaited > 0));
    _ = world.open(100);
    assert_eq!(world.data(2, 0), "", "it waits");
    let said = world.adjoint(2);
    assert!(said.contains("2?") && !said.contains('0'), "{said}: it is active now");
    assert_eq!(world.receiver.d_of(0).map(|(_, awaited)| awaited), Some(0), "nothing is awaited of the dead one");
    assert_eq!(world.data(0, 1), "", "which is paused");
}

/// A10: of two flows the dead one has half of D, and all the rest goes to the other.
#[test]
fn a_flow_holds_no_more_than_its_part() {
    for (driven, held) in [("share", 4..=4), ("turn", 7..=8)] {
        let mut world = World::new(&[("driven", text(driven))]);
        (0..2).for_each(|_| _ = world.open(1_000));
        let mut said = String::new();
        (0..4).for_each(|packet| said += &(world.data(0, packet) + " " + &world.data(1, packet) + " "));
        said += &world.adjoint(0);
        assert_eq!(world.receiver.d().0, 8.0);
        (4..60).for_each(|packet| said += &(world.data(1, packet) + " "));
        let requested = said.matches("0+").count();
        assert!(held.contains(&requested), "{driven}: {requested} of the dead one: {said}");
    }
}

/// One that was quiet while it was paused is no dead owner.
#[test]
fn a_flow_that_is_activated_has_time_to_answer() {
    let mut world =
        World::new(&[("unscheduled", text("2KB")), ("pause", text("active-limit")), ("max_active", Raw::Integer(1))]);
    (0..3).for_each(|_| _ = world.open(100));
    world.data(0, 0);
    world.now = at(5_000);
    let said = world.tell(|receiver, send| receiver.on_end(at(5_000), 0, End::Complete, send));
    assert!(said.contains("1?"), "{said}");
    assert_eq!(world.adjoint(2), "", "flow 1 is the owner");
    assert!(world.data(1, 0).contains("1"), "and still active");
}

/// A12.
#[test]
fn marks_of_the_first_epoch_count_by_reading() {
    for (counts, d) in [(false, 6.0), (true, 3.0)] {
        let mut world = World::new(&[("first_epoch_marks", Raw::Flag(counts))]);
        world.open(100);
        (0..6).for_each(|packet| drop(world.data(0, packet)));
        (6..12).for_each(|packet| drop(world.marked(0, packet)));
        world.adjoint(0);
        assert_eq!(world.receiver.d().0, d);
    }
}

/// Slides, "Optimization for highly concurrent flows".
#[test]
fn flows_that_come_after_a_mark_wait_until_another_ends() {
    let mut world = World::new(&[("unscheduled", text("2KB")), ("paused_window", text("lost"))]);
    (0..2).for_each(|_| _ = world.open(3));
    assert_eq!(world.data(0, 0), "0+");
    assert_eq!(world.marked(1, 0), "");
    world.open(4);
    world.open(4);
    assert_eq!(world.data(2, 0), "1+", "an inactive flow's data count, and it is not driven");
    assert_eq!([world.adjoint(2), world.adjoint(3)], ["", ""]);
    // No active flow has anything left to be driven: the oldest of those that wait takes their place. What it sent is
    // lost.
    assert_eq!(world.data(1, 1), "2!1");
    assert_eq!(world.data(1, 2), "2+ 2+", "flow 1 ends, and flow 3 takes its place");
    assert_eq!(world.data(0, 1), "3!0");
    assert_eq!(world.data(0, 2), "3!1 3+ 2?", "flow 2 is the oldest now");
    // Or only as long as many are active.
    let mut crowded = World::new(&[("pause", text("active-limit")), ("max_active", Raw::Integer(2))]);
    (0..3).for_each(|_| _ = crowded.open(9));
    crowded.marked(0, 0);
    assert_eq!([crowded.adjoint(0), crowded.data(0, 1)], ["0? 0+", ""]);
    let ended = crowded.tell(|receiver, send| receiver.on_end(at(0), 0, End::Complete, send));
    assert_eq!(ended, "1? 1+", "and flow 2 is active");
    assert_eq!(crowded.open(9), 3);
    let mut off = World::new(&[("unscheduled", text("2KB")), ("pause", text("off"))]);
    off.open(3);
    off.marked(0, 0);
    off.open(3);
    assert_eq!([off.adjoint(0), off.data(0, 1), off.data(0, 2)], ["0? 0+", "", "1+ 1?"]);
}

#[test]
fn a_receiver_without_flows_begins_afresh() {
    let mut world = World::new(&[("unscheduled", text("2KB"))]);
    world.open(2);
    world.marked(0, 0);
    world.adjoint(0);
    world.data(0, 1);
    world.open(5);
    assert_eq!(world.receiver.d(), (0.0, 0));
    assert_eq!(world.data(1, 0), "1+", "it is active, and in its first epoch");
}

#[test]
fn whose_adjoint_packets_are_answered_is_an_option() {
    for (scope, answers) in [("all", ["0?", "1?", "2?"]), ("active", ["0?", "1?", ""]), ("owner", ["0?", "", ""])] {
        let mut world = World::new(&[("adjoint_scope", text(scope))]);
        world.open(9);
        world.open(9);
        world.marked(0, 0);
        world.open(9);
        let said = [0, 1, 2].map(|flow| world.adjoint(flow).chars().take(2).collect::<String>());
        assert_eq!(said, answers, "{scope}");
    }
}

#[test]
fn epochs_may_be_those_of_each_flow() {
    for (epoch, d) in [("owner", 3.0), ("each", 5.0)] {
        let mut world = World::new(&[("epoch", text(epoch)), ("adjoint_scope", text("active"))]);
        (0..3).for_each(|_| _ = world.open(100));
        (0..2).for_each(|packet| drop(world.data(0, packet)));
        world.adjoint(0);
        for flow in 0..3 {
            world.data(flow, 2);
            world.adjoint(flow);
        }
        assert_eq!(world.receiver.d().0, d, "{epoch}");
    }
}

/// Polo^a.
#[test]
fn without_the_optimisation_driving_packets_go_to_flows_that_have_nothing_to_send() {
    for (optimises, said) in [(true, ["0+", "0+", "", ""]), (false, ["0+", "0+", "0+", "0+"])] {
        let mut world =
            World::new(&[("unscheduled", text("4KB")), ("wasted_packet_optimization", Raw::Flag(optimises))]);
        world.open(6);
        assert_eq!([0, 1, 2, 3].map(|packet| world.data(0, packet)), said);
        let awaited = if optimises { 2 } else { 4 };
        assert_eq!(world.receiver.d(), (4.0, awaited));
    }
    // With it they go to those that have.
    let mut world = World::new(&[("unscheduled", text("4KB"))]);
    world.open(5);
    world.open(9);
    assert_eq!([0, 1, 2].map(|packet| world.data(0, packet)), ["0+", "1+", "1+"]);
}

/// A2, to the letter.
#[test]
fn driving_packets_may_answer_data_one_by_one() {
    let mut world = World::new(&[("driving", text("per-data")), ("unscheduled", text("2KB"))]);
    world.open(100);
    assert_eq!([world.data(0, 0), world.data(0, 1), world.adjoint(0)], ["0+", "0+", "0?"]);
    assert_eq!([world.data(0, 2), world.data(0, 3), world.data(0, 4)], ["0+", "0+", ""], "D is 2");
    assert_eq!(world.adjoint(0), "0? 0+", "3 from now on, one more than arrives");
    // Marks: 3 - 4/2 leaves one for each epoch, whatever arrives.
    assert_eq!([5, 6, 7, 8].map(|packet| world.marked(0, packet)), ["0+", "0+", "", ""]);
    assert_eq!(world.adjoint(0), "0?");
    assert_eq!([9, 10].map(|packet| world.data(0, packet)), ["0+", ""]);
    // What has died out is started again by recovery 2.
    world.adjoint(0);
    world.adjoint(0);
    world.now = at(200);
    assert_eq!(world.adjoint(0), "0? 0!11");
}

/// A7: what an inactive flow sent may be on its way when it becomes active; after four base RTTs it is lost.
#[test]
fn the_window_of_an_inactive_flow_is_lost_when_it_is_overdue() {
    for (wait, said) in [(0, "2+"), (4_000, "2!1")] {
        let mut world = World::new(&[("unscheduled", text("2KB"))]);
        (0..2).for_each(|_| _ = world.open(3));
        world.data(0, 0);
        world.marked(1, 0);
        world.open(4);
        world.data(2, 0);
        world.now += Time::from_us(wait);
        assert_eq!(world.data(1, 1), said);
    }
}

/// A1.
#[test]
fn each_flow_may_have_its_own_d() {
    let mut world = World::new(&[("d_scope", text("flow")), ("unscheduled", text("2KB"))]);
    world.open(100);
    world.open(100);
    (0..2).for_each(|packet| assert_eq!(world.data(0, packet), "0+"));
    assert_eq!(world.marked(1, 0), "");
    assert_eq!([world.adjoint(0), world.adjoint(1)], ["0?", "1? 1+"]);
    assert_eq!([world.receiver.d_of(0), world.receiver.d_of(1)], [Some((2.0, 2)), Some((1.0, 1))]);
    world.data(0, 2);
    assert_eq!([world.adjoint(0), world.adjoint(1)], ["0? 0+", "1? 1+"]);
}

#[test]
fn a_flow_that_is_given_up_makes_room() {
    let mut world = World::new(&[("unscheduled", text("2KB")), ("paused_window", text("lost"))]);
    world.open(100);
    (0..2).for_each(|packet| drop(world.data(0, packet)));
    world.marked(0, 2);
    world.open(9);
    let now = world.now;
    let said = world.tell(|receiver, send| receiver.on_end(now, 0, End::Abandoned, send));
    assert_eq!(said, "1? 1!0 1!1");
    // What still comes of it, and of flows that nobody knows, means nothing.
    assert_eq!([world.data(0, 3), world.adjoint(0)], ["", ""]);
}

/// What is refused by go-back-N, or has lost its payload, has not arrived.
#[test]
fn what_does_not_count_as_received_is_not() {
    let mut world = World::new(&[]);
    world.open(10);
    let header = Arrival {
        now: at(1),
        flow: 0,
        position: 0,
        bytes: 0,
        expected: 0,
        remaining: 10_000,
        marked: true,
        duplicate: false,
    };
    assert_eq!(world.tell(|receiver, send| receiver.on_data(&header, send)), "");
    let refused = Arrival { position: 3_000, bytes: 1000, ..header };
    assert_eq!(world.tell(|receiver, send| receiver.on_data(&refused, send)), "");
    assert_eq!(world.receiver.d(), (0.0, 0));
}

/// Three flows through a lossy bottleneck, every step on a line: time, what arrives, what is sent, D and what is
/// awaited.
#[test]
fn trajectory() {
    let mut world = World::new(&[("unscheduled", text("3KB"))]);
    let mut text = String::new();
    let note = |world: &World, event: String, text: &mut String| {
        let (d, awaited) = world.receiver.d();
        writeln!(text, "{:>6} {event:10} {:24} {d:>5} {awaited:>3}", world.now.to_string(), world.said)
            .expect("a String takes everything");
    };
    // What senders have on their way, in order; every eleventh packet is lost, and every one above five waiting is
    // marked.
    let mut line: std::collections::VecDeque<(u32, u64)> = std::collections::VecDeque::new();
    let (mut next, mut sent) = ([3u64; 3], 0);
    let (mut ended, sizes) = ([false; 3], [14u64, 9, 6]);
    for (flow, packets) in sizes.into_iter().enumerate() {
        world.open(packets);
        (0..3).for_each(|packet| line.push_back((flow as u32, packet)));
    }
    let mut adjoint = Some(0u32);
    for step in 0..120u64 {
        world.now = at(8 * step);
        let mut react =
            |world: &World, line: &mut std::collections::VecDeque<(u32, u64)>, adjoint: &mut Option<u32>| {
                for word in world.said.split(' ').filter(|word| !word.is_empty()) {
                    let flow: u32 = word[..1].parse().expect("a digit");
                    match &word[1..2] {
                        "?" => *adjoint = Some(flow),
                        "+" => {
                            line.push_back((flow, next[flow as usize]));
                            next[flow as usize] += 1;
                        }
                        _ => line.push_back((flow, word[2..].parse().expect("a number"))),
                    }
                }
            };
        if step % 6 == 5
            && let Some(flow) = adjoint.take()
        {
            world.adjoint(flow);
            react(&world, &mut line, &mut adjoint);
            note(&world, format!("adjoint {flow}"), &mut text);
        }
        if let Some((flow, packet)) = line.pop_front() {
            sent += 1;
            if sent % 11 == 0 {
                continue;
            }
            let marked = line.len() > 5;
            world.arrive(flow, packet, marked);
            react(&world, &mut line, &mut adjoint);
            let sign = if marked { "*" } else { "" };
            note(&world, format!("{flow}:{packet}{sign}"), &mut text);
            ended[flow as usize] = world.flows[flow as usize].0.iter().all(|arrived| *arrived);
        }
    }
    assert_eq!(ended, [true; 3], "{text}");
    insta::assert_snapshot!("polo", text);
}
