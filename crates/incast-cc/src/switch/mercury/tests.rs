//! Mercury on one port, event by event.

use super::{
    windows::{pair, queue_pair, window},
    *,
};
use crate::agent::{FlowAddress, PortSetup};
use incast_units::Bytes;
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write,
};

const US: fn(u64) -> Time = Time::from_us;
/// 8 Gbit/s: 1,000 B are 1 us.
const RATE: Rate = Rate::from_gbps(8);
const PACKET: u32 = 1000;

/// T is 10 us, C baseRTT 12,000 B.
fn path() -> Path {
    Path::new(Rate::from_gbps(2), US(12), 1000, 1000)
}

/// A switch of two ports and two priorities with the agent on it, and who was notified when of which window.
struct Bench {
    agent: Mercury,
    queues: Queues,
    now: Time,
    notified: Vec<(Time, u32, u64)>,
    marked: u32,
}

#[derive(Default)]
struct Queues([[VecDeque<PacketView>; 2]; 2]);

impl SwitchView for Queues {
    fn ports(&self) -> u16 {
        2
    }
    fn priorities(&self) -> u8 {
        2
    }
    fn queue_bytes(&self, port: u16, priority: u8) -> u64 {
        self.0[usize::from(port)][usize::from(priority)].iter().map(|packet| u64::from(packet.bytes)).sum()
    }
    fn waiting(&self, port: u16, priority: u8) -> impl Iterator<Item = PacketView> {
        self.0[usize::from(port)][usize::from(priority)].iter().copied()
    }
    fn rate(&self, _port: u16) -> Rate {
        RATE
    }
    fn may_send(&self, _port: u16, _priority: u8) -> bool {
        true
    }
    fn alternatives(&self, _destination: u32) -> impl Iterator<Item = u16> {
        std::iter::empty()
    }
}

fn packet(source: u32, sequence: u32, bytes: u32) -> PacketView {
    PacketView {
        flow: FlowAddress { source, destination: 9, sequence, slot: 0, ecmp_hash: 0, class: 0 },
        ingress: Some(1),
        bytes,
        ecn_capable: true,
        codepoint: Codepoint::None,
        is_data: true,
        deflections: 0,
        marker: None,
    }
}

impl Bench {
    /// Thr is Kmin = 5,000 B, and no byte is tolerated, unless `given` says otherwise.
    fn new(given: &[(&str, &str)]) -> Self {
        let raw = |value: &str| value.parse().map_or_else(|_| Raw::Text(value.to_owned()), Raw::Integer);
        let mut all = vec![("tolerance".to_owned(), raw("0B"))];
        all.extend(given.iter().map(|(key, value)| ((*key).to_owned(), raw(value))));
        let constants = Mercury::resolve(&path(), &all).expect("allowed");
        let setup = PortSetup { rate: RATE, marking: Marking::Red { min: 5_000, max: 6_000, p: 1.0 } };
        let agent = Mercury::install(&constants, &Site { ports: &[setup; 2], priorities: 2 });
        Self { agent, queues: Queues::default(), now: Time::ZERO, notified: Vec::new(), marked: 0 }
    }

    fn view(&self, priority: u8) -> PortView {
        let queue_bytes = self.queues.queue_bytes(0, priority);
        PortView { now: self.now, port: 0, priority, queue_bytes, rate: RATE, stream: 0 }
    }

    /// The agent of port 0 is asked; true if the packet's source is notified.
    fn announce(&mut self, priority: u8, packet: PacketView) -> bool {
        let mut verdict = Verdict::default();
        self.agent.on_enqueue(&self.view(priority), &packet, &self.queues, &mut verdict);
        self.marked += u32::from(verdict.mark == Codepoint::CongestionExperienced);
        if let Some(cnp) = verdict.notify {
            assert!(cnp.congested && !cnp.undetermined);
            self.notified.push((self.now, packet.flow.sequence, cnp.window.expect("it grants one")));
        }
        verdict.notify.is_some()
    }

    fn push(&mut self, priority: u8, packet: PacketView) -> bool {
        let notified = self.announce(priority, packet);
        self.queues.0[0][usize::from(priority)].push_back(packet);
        notified
    }

    fn pop(&mut self, priority: u8) -> Option<PacketView> {
        let packet = self.queues.0[0][usize::from(priority)].pop_front()?;
        self.agent.on_dequeue(&self.view(priority), &packet, &self.queues, &mut Verdict::default());
        Some(packet)
    }

    /// A queue of so many packets of flow 1, of which nobody is notified.
    fn fill(&mut self, packets: usize) {
        let has = self.queues.0[0][0].len();
        (has..packets).for_each(|_| {
            self.push(0, packet(1, 1, PACKET));
        });
        (packets..has).for_each(|_| {
            self.pop(0);
        });
        self.notified.clear();
    }

    fn pause(&mut self) {
        self.agent.on_pause(&self.view(0));
    }
    fn resume(&mut self) {
        self.agent.on_resume(&self.view(0));
    }
    fn is_undetermined(&self) -> bool {
        self.agent.ports[0].undetermined & 1 != 0
    }

    /// Undetermined since 20 us, with `packets` in the queue.
    fn undetermined(given: &[(&str, &str)], packets: usize) -> Self {
        let mut bench = Self::new(given);
        bench.fill(packets);
        bench.now = US(10);
        bench.pause();
        bench.now = US(20);
        bench.resume();
        assert!(bench.is_undetermined());
        bench
    }
}

// ---- Detection ---------------------------------------------------------------------------------------

/// Algorithm 1, lines 6 to 14: Q >= Thr, and rxByte <= C Tp.
#[test]
fn the_end_of_a_pause_determines_the_state() {
    // Packets before the pause of 10 us, those during it, and the state after it.
    for (before, during, undetermined) in [
        (0, 0, false),
        (0, 4, false),
        (4, 0, false),
        (0, 5, true),
        (5, 0, true),
        (3, 10, true),
        (9, 10, true),
        (0, 11, false),
        (9, 11, false),
    ] {
        let mut bench = Bench::new(&[]);
        bench.fill(before);
        bench.pause();
        assert!(bench.is_undetermined(), "as soon as it is paused");
        bench.fill(before + during);
        bench.now = US(10);
        bench.resume();
        assert_eq!(bench.is_undetermined(), undetermined, "{before} and {during} packets");
        // The next pause starts from nothing.
        bench.fill(5);
        bench.pause();
        bench.now = US(11);
        bench.resume();
        assert!(bench.is_undetermined(), "{before} and {during} packets");
    }
    // One packet too much is tolerated, two are not.
    for (during, undetermined) in [(11, true), (12, false)] {
        let mut bench = Bench::new(&[("tolerance", "1000B")]);
        bench.pause();
        bench.fill(during);
        bench.now = US(10);
        bench.resume();
        assert_eq!(bench.is_undetermined(), undetermined, "{during} packets");
    }
}

/// Algorithm 1, lines 15 to 20.
#[test]
fn the_expiry_of_the_timer_determines_the_state_when_a_packet_leaves() {
    // The queue that is left after the packet which leaves then.
    for (left, undetermined) in [(7, true), (5, true), (4, false), (8, false), (9, false)] {
        let mut bench = Bench::undetermined(&[], 8);
        bench.now = Time::from_ns(29_999);
        bench.fill(left + 1);
        assert!(bench.is_undetermined(), "T is 10 us");
        bench.now = US(30);
        bench.pop(0);
        assert_eq!(bench.is_undetermined(), undetermined, "{left} packets");
        if undetermined {
            // T has begun anew, with this queue.
            bench.now = Time::from_ns(39_999);
            bench.pop(0);
            assert!(bench.is_undetermined() || left == 5);
            bench.fill(left + 1);
            bench.now = US(40);
            bench.pop(0);
            assert!(!bench.is_undetermined(), "it did not fall below {left} packets");
        }
    }
}

#[test]
fn a_paused_port_keeps_its_state_unless_packets_that_enter_count() {
    for (reading, after) in [("dequeue", true), ("any-packet", false)] {
        let mut bench = Bench::new(&[("expiry_check", reading)]);
        bench.fill(8);
        bench.pause();
        bench.now = US(100);
        bench.push(0, packet(1, 1, PACKET));
        assert_eq!(bench.is_undetermined(), after, "{reading}");
    }
}

#[test]
fn the_state_during_a_pause_is_a_reading() {
    for (reading, notified) in [("undetermined", false), ("unchanged", true)] {
        let mut bench = Bench::new(&[("during_pause", reading)]);
        bench.fill(8);
        bench.now = US(50);
        bench.pause();
        assert_eq!(bench.push(0, packet(2, 2, PACKET)), notified, "{reading}");
        // The end of it is the same.
        bench.now = US(60);
        bench.resume();
        assert!(bench.is_undetermined());
        assert!(!bench.push(0, packet(3, 3, PACKET)));
    }
}

#[test]
fn what_other_priorities_receive_is_a_reading() {
    for (reading, undetermined) in [("priority", true), ("port", false)] {
        let mut bench = Bench::new(&[("received", reading)]);
        bench.fill(6);
        bench.pause();
        (0..11).for_each(|_| {
            bench.push(1, packet(2, 2, PACKET));
        });
        bench.now = US(10);
        bench.resume();
        assert_eq!(bench.is_undetermined(), undetermined, "{reading}");
    }
}

#[test]
fn what_a_decrease_is_and_when_the_timer_starts_are_readings() {
    for (reading, undetermined) in [("end", true), ("throughout", false)] {
        let mut bench = Bench::undetermined(&[("decrease", reading)], 8);
        bench.now = US(25);
        bench.fill(9);
        bench.fill(8);
        bench.now = US(30);
        bench.pop(0);
        assert_eq!(bench.is_undetermined(), undetermined, "{reading}");
    }
    for (reading, undetermined) in [("each-resume", true), ("first-resume", false)] {
        let mut bench = Bench::undetermined(&[("timer_start", reading)], 8);
        bench.now = US(25);
        bench.pause();
        bench.fill(10);
        bench.now = US(28);
        bench.resume();
        assert!(bench.is_undetermined());
        bench.now = US(30);
        bench.pop(0);
        assert_eq!(bench.is_undetermined(), undetermined, "{reading}");
    }
}

#[test]
fn priorities_have_states_of_their_own() {
    let mut bench = Bench::undetermined(&[], 8);
    for _ in 0..6 {
        assert!(!bench.push(1, packet(2, 2, PACKET)));
    }
    assert!(bench.push(1, packet(2, 2, PACKET)), "Determined, and 6,000 B are more than Thr");
    assert!(!bench.push(0, packet(3, 3, PACKET)));
}

// ---- Notification ------------------------------------------------------------------------------------

#[test]
fn a_congested_port_grants_each_flow_its_share() {
    let mut bench = Bench::new(&[]);
    bench.now = US(100);
    for sequence in [1, 1, 1, 2] {
        assert!(!bench.push(0, packet(sequence, sequence, PACKET)));
    }
    assert!(!bench.push(0, packet(2, 2, PACKET)), "4,000 B are not more than Thr");
    assert!(!bench.push(0, packet(2, 2, PACKET)), "nor are 5,000");
    assert!(bench.push(0, packet(1, 1, PACKET)));
    bench.now = US(105);
    assert!(bench.push(0, packet(2, 2, PACKET)));
    // 4 of 7 and 4 of 8 packets of 12,000 B.
    assert_eq!(bench.notified, [(US(100), 1, 6857), (US(105), 2, 6000)]);
    // Once per base RTT and flow, in which a flow that has left is remembered.
    bench.now = Time::from_ns(111_999);
    assert!(!bench.push(0, packet(1, 1, PACKET)));
    bench.now = US(112);
    assert!(bench.push(0, packet(1, 1, PACKET)) && !bench.push(0, packet(2, 2, PACKET)));
    while bench.pop(0).is_some() {}
    bench.now = US(113);
    (0..6).for_each(|_| {
        bench.push(0, packet(3, 3, PACKET));
    });
    assert!(!bench.push(0, packet(1, 1, PACKET)) && bench.push(0, packet(3, 3, PACKET)));
    // Acknowledgements take part, and are not notified of.
    let acknowledgement = PacketView { is_data: false, ..packet(7, 7, 100) };
    assert!(!bench.push(0, acknowledgement));
    assert_eq!(bench.agent.ports[0].detail.windows.sum, 8_100);
}

#[test]
fn each_packet_may_be_notified_of() {
    let mut bench = Bench::new(&[("cnp_interval", "0ns")]);
    bench.fill(8);
    assert!(bench.push(0, packet(1, 1, PACKET)) && bench.push(0, packet(1, 1, PACKET)));
}

#[test]
fn windows_have_a_floor_and_a_ceiling() {
    for (floor, expected) in [("1000B", 1000), ("0B", 150), ("300B", 300)] {
        let mut bench = Bench::new(&[("min_window", floor)]);
        bench.fill(8);
        bench.push(0, packet(1, 1, 900 - 100));
        assert!(bench.push(0, packet(2, 2, 111)), "{floor}");
        let exact = 12_000 * 111 / (8_000 + 800 + 111);
        assert_eq!(exact, 149);
        let expected = if expected == 150 { exact } else { expected };
        assert_eq!(bench.notified.last().map(|last| last.2), Some(expected));
    }
    assert_eq!(window(u64::MAX, u64::MAX, 1), u64::from(u32::MAX));
    assert_eq!(window(12_000, 0, 0), 0);
}

#[test]
fn the_threshold_and_the_capacity_are_the_ports_or_given() {
    let port = |given: &[(&str, &str)], marking| {
        let given: Vec<_> =
            given.iter().map(|(key, value)| ((*key).to_owned(), Raw::Text((*value).to_owned()))).collect();
        let constants = Mercury::resolve(&path(), &given).expect("allowed");
        let setup = PortSetup { rate: RATE, marking };
        let agent = Mercury::install(&constants, &Site { ports: &[setup], priorities: 1 });
        (agent.ports[0].threshold, agent.ports[0].detail.windows.bdp)
    };
    let red = Marking::Red { min: 5_000, max: 200_000, p: 0.01 };
    assert_eq!(port(&[], red), (5_000, 12_000));
    assert_eq!(port(&[], Marking::Step { at: 7_000 }), (7_000, 12_000));
    assert_eq!(port(&[], Marking::Off), (12_000, 12_000), "rate x base RTT");
    assert_eq!(port(&[("threshold", "9KB"), ("base_rtt", "6us")], red), (9_000, 6_000));
    assert_eq!(port(&[("capacity", "host")], red), (5_000, 3_000));
}

#[test]
fn queue_pairs_share_and_are_notified_by_reading() {
    let windows = |given: &[(&str, &str)]| {
        let mut bench = Bench::new(given);
        bench.now = US(100);
        // Three queue pairs between the same hosts, two packets each.
        for sequence in [1, 2, 3, 1, 2, 3, 1, 2, 3] {
            bench.push(0, packet(1, sequence, PACKET));
        }
        bench.notified.iter().map(|(_, sequence, window)| (*sequence, *window)).collect::<Vec<_>>()
    };
    assert_eq!(windows(&[]), [(1, 12_000)]);
    assert_eq!(windows(&[("window_sharing", "split")]), [(1, 4_000)]);
    assert_eq!(windows(&[("notify", "each")]), [(1, 12_000), (2, 12_000), (3, 12_000)]);
    let both = [("notify", "each"), ("window_sharing", "split")];
    assert_eq!(windows(&both), [(1, 4_000), (2, 4_000), (3, 4_000)]);
}

/// M15: of what is queued two thirds are the first flow's, of what came since the pause began a quarter.
#[test]
fn what_the_flow_table_counts_is_a_reading() {
    for (counted, share) in [("queued", 12_000 * 9 / 12), ("pause", 12_000 / 4)] {
        let mut bench = Bench::new(&[("counted", counted), ("during_pause", "unchanged"), ("state_timer", "1us")]);
        bench.fill(8);
        bench.pause();
        bench.now = US(1);
        (0..3).for_each(|_| {
            bench.push(0, packet(2, 2, PACKET));
        });
        bench.resume();
        bench.now = US(100);
        bench.agent.ports[0].undetermined = 0;
        bench.push(0, packet(1, 1, PACKET));
        assert_eq!(bench.notified.last(), Some(&(US(100), 1, share)), "{counted}");
        // An empty port counts what is queued again.
        while bench.pop(0).is_some() {}
        bench.fill(6);
        bench.now = US(200);
        bench.push(0, packet(1, 1, PACKET));
        assert_eq!(bench.notified.last(), Some(&(US(200), 1, 12_000)), "{counted}");
    }
}

#[test]
fn flows_that_collide_in_the_registers_are_one() {
    let mut bench = Bench::new(&[("table_entries", "1")]);
    bench.now = US(100);
    (1..=6).for_each(|flow| {
        bench.push(0, packet(flow, flow, PACKET));
    });
    assert!(bench.push(0, packet(7, 7, PACKET)) && !bench.push(0, packet(8, 8, PACKET)));
    assert_eq!(bench.notified, [(US(100), 7, 12_000)], "all of it is of one flow");
    bench.now = US(200);
    while bench.pop(0).is_some() {}
    let port = &bench.agent.ports[0];
    assert_eq!((port.is_counted, port.detail.windows.sum, port.detail.windows.pairs.total()), (false, 0, 0));
}

#[test]
fn a_timer_notifies_each_flow_that_waits_at_a_congested_port() {
    for (notified, expected) in
        [("last", vec![(3, 8_000), (4, 4_000)]), ("each", vec![(2, 8_000), (3, 8_000), (4, 4_000)])]
    {
        let mut bench = Bench::new(&[("cnp_trigger", "periodic"), ("period", "7us"), ("notify", notified)]);
        bench.now = US(10);
        for (source, sequence) in [(1, 2), (1, 3), (4, 4), (1, 2), (1, 3), (4, 4)] {
            bench.push(0, packet(source, sequence, PACKET));
            assert_eq!(bench.agent.next_timer(), Time::MAX);
        }
        assert!(!bench.push(0, packet(1, 3, PACKET)));
        assert_eq!(bench.agent.next_timer(), US(14));
        bench.pop(0);
        let mut sent = Vec::new();
        let mut look = |bench: &mut Bench| {
            sent.clear();
            bench.now = bench.agent.next_timer();
            bench.agent.on_timer(bench.now, &bench.queues, &mut |notification| {
                sent.push((notification.flow.sequence, notification.cnp.window.expect("it grants one")));
            });
            sent.sort_unstable();
            sent.clone()
        };
        assert_eq!(look(&mut bench), expected);
        assert_eq!(bench.agent.next_timer(), US(21));
        // A port that is Undetermined is not, but goes on being looked at as long as its queue is long.
        bench.pause();
        assert_eq!(look(&mut bench), []);
        assert_eq!(bench.agent.next_timer(), US(28));
        bench.pop(0);
        assert_eq!(look(&mut bench), []);
        assert_eq!(bench.agent.next_timer(), Time::MAX);
    }
}

#[test]
fn the_control_plane_delays_notifications_and_not_what_they_grant() {
    for (trigger, first) in [("enqueue", US(10)), ("periodic", US(14))] {
        let mut bench = Bench::new(&[("cnp_trigger", trigger), ("period", "7us"), ("cnp_delay", "15us")]);
        bench.now = US(10);
        for source in [1, 2, 1, 2, 1, 2, 1] {
            assert!(!bench.push(0, packet(source, source, PACKET)), "the verdict notifies nobody");
        }
        // Both pairs have been granted their windows by now.
        let mut sent = Vec::new();
        while bench.agent.next_timer() < Time::MAX {
            bench.now = bench.agent.next_timer();
            bench.agent.on_timer(bench.now, &bench.queues, &mut |notification| {
                sent.push((bench.now, notification.flow.sequence, notification.cnp.window.expect("granted")));
            });
            while bench.pop(0).is_some() {}
        }
        sent.sort_unstable();
        let at = first + US(15);
        let expected: &[_] = match trigger {
            // Only the last packet met more than Thr; it is of the flow 1, which has 4 of 7 packets.
            "enqueue" => &[(at, 1, 12_000 * 4 / 7)],
            _ => &[(at, 1, 12_000 * 4 / 7), (at, 2, 12_000 * 3 / 7)],
        };
        assert_eq!(sent, expected, "{trigger}");
    }
}

#[test]
fn marks_are_left_to_determined_ports_or_to_all_or_to_none() {
    for (marks, determined, undetermined) in [("off", 0, 0), ("determined", 1, 0), ("always", 1, 1)] {
        let mut bench = Bench::new(&[("marks", marks)]);
        bench.fill(7);
        bench.marked = 0;
        bench.push(0, packet(1, 1, PACKET));
        assert_eq!(bench.marked, determined, "{marks}");
        bench.push(0, PacketView { ecn_capable: false, ..packet(1, 1, PACKET) });
        bench.pause();
        bench.push(0, packet(1, 1, PACKET));
        assert_eq!(bench.marked, determined + undetermined, "{marks}");
    }
}

#[test]
fn mistakes_are_refused() {
    let refused = |key: &str, value: &str| {
        let given = [(key.to_owned(), Raw::Text(value.to_owned()))];
        Mercury::resolve(&path(), &given).expect_err("refused").to_string()
    };
    assert!(refused("threshold", "kmax").contains("or \"kmin\""));
    assert!(refused("state_timer", "0us").contains("at least 10ns"));
    assert!(refused("cnp_trigger", "timer").contains("\"enqueue\" \"periodic\""));
    assert!(refused("thr", "5KB").contains("unknown parameter"));
    let defaults = Mercury::resolve(&path(), &[]).expect("defaults").parameters.clone();
    assert_eq!((defaults.state_timer.time(), defaults.cnp_interval), (US(10), US(12)));
    assert_eq!(defaults.tolerance, Bytes::new(2_000));
}

// ---- Invariants --------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push { priority: u8, source: u32, sequence: u32, bytes: u32, is_data: bool },
    Refused { priority: u8, source: u32, bytes: u32 },
    Pop { priority: u8 },
    LinkDown,
    Pause,
    Resume,
    Wait(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let push = (0u8..2, 0u32..6, 0u32..3, 60u32..1500, prop::bool::weighted(0.8));
    prop_oneof![
        12 => push.prop_map(|(priority, source, member, bytes, is_data)| {
            Operation::Push { priority, source, sequence: source * 3 + member, bytes, is_data }
        }),
        2 => (0u8..2, 0u32..6, 60u32..1500)
            .prop_map(|(priority, source, bytes)| Operation::Refused { priority, source, bytes }),
        8 => (0u8..2).prop_map(|priority| Operation::Pop { priority }),
        1 => prop::bool::weighted(0.1).prop_map(|down| if down { Operation::LinkDown } else { Operation::Pause }),
        1 => Just(Operation::Resume),
        3 => (0u64..20_000).prop_map(Operation::Wait),
    ]
}

fn drive(bench: &mut Bench, operation: Operation) {
    match operation {
        Operation::Push { priority, source, sequence, bytes, is_data } => {
            bench.push(priority, PacketView { is_data, ..packet(source, sequence, bytes) });
        }
        Operation::Refused { priority, source, bytes } => {
            let packet = packet(source, source * 3, bytes);
            bench.announce(priority, packet);
            bench.agent.on_drop(&bench.view(priority), &packet);
        }
        Operation::Pop { priority } => {
            bench.pop(priority);
        }
        Operation::LinkDown => {
            for priority in 0..2u8 {
                while let Some(packet) = bench.queues.0[0][usize::from(priority)].pop_front() {
                    bench.agent.on_drop(&bench.view(priority), &packet);
                }
            }
        }
        Operation::Pause => bench.pause(),
        Operation::Resume => bench.resume(),
        Operation::Wait(ns) => bench.now += Time::from_ns(ns),
    }
}

/// Every option that changes what is kept.
const KEPT: [&[(&str, &str)]; 6] = [
    &[],
    &[("window_sharing", "split")],
    &[("notify", "each"), ("cnp_interval", "1us")],
    &[("table_entries", "2")],
    &[("cnp_trigger", "periodic")],
    &[("cnp_trigger", "periodic"), ("window_sharing", "split"), ("expiry_check", "any-packet")],
];

/// What waits at port 0, by pair: bytes and queue pairs.
fn waiting(bench: &Bench) -> BTreeMap<u64, (u64, BTreeSet<u64>)> {
    let mut flows: BTreeMap<u64, (u64, BTreeSet<u64>)> = BTreeMap::new();
    for waiting in bench.queues.0[0].iter().flatten() {
        let flow = flows.entry(pair(waiting)).or_default();
        flow.0 += u64::from(waiting.bytes);
        if waiting.is_data {
            flow.1.insert(queue_pair(&waiting.flow));
        }
    }
    flows
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The flow table is the queue, flow by flow, at all times; and what is granted at one instant is C baseRTT.
    #[test]
    fn the_flow_table_is_the_queue(
        operations in prop::collection::vec(operation(), 1..300), threshold in prop_oneof![Just(0u32), 0u32..6_000],
    ) {
        for given in KEPT {
            let exact = given.iter().all(|(key, _)| *key != "table_entries");
            let threshold = format!("{threshold}B");
            let given: Vec<_> = given.iter().copied().chain([("threshold", threshold.as_str())]).collect();
            let mut bench = Bench::new(&given);
            for operation in &operations {
                drive(&mut bench, *operation);
                let flows = waiting(&bench);
                let sum = flows.values().map(|(bytes, _)| *bytes).sum::<u64>();
                // Before the threshold is passed there is no table: then it is the one that would be made.
                let mut port = bench.agent.ports[0].clone();
                if !port.is_counted {
                    port.count(0, bench.now, &bench.queues);
                }
                let windows = &mut port.detail.windows;
                prop_assert_eq!((windows.sum, windows.pairs.total()), (sum, sum));
                if !exact || sum == 0 {
                    continue;
                }
                let mut granted = 0;
                for (key, (bytes, members)) in &flows {
                    let entry = windows.pairs.entry(windows.pairs.find(*key).expect("it waits"));
                    prop_assert_eq!(entry.data, *bytes);
                    if windows.queue_pairs.is_some() {
                        prop_assert_eq!(entry.members as usize, members.len());
                    }
                    granted += window(windows.bdp, entry.data, windows.sum);
                }
                // Each window was rounded down by less than a byte.
                prop_assert!(granted <= 12_000 && granted + flows.len() as u64 > 12_000);
            }
        }
    }
}

/// The table is made when the queue passes the threshold, and goes when little is left and no entry has to keep quiet.
#[test]
fn the_flow_table_is_kept_while_it_is_needed() {
    let mut bench = Bench::new(&[]);
    let counted = |bench: &Bench| bench.agent.ports[0].is_counted;
    (0..6).for_each(|_| {
        bench.push(0, packet(1, 1, PACKET));
        assert!(!counted(&bench));
    });
    bench.push(1, packet(2, 2, PACKET));
    assert!(bench.push(0, packet(3, 3, PACKET)) && counted(&bench), "the other priority's packets, too");
    assert_eq!(bench.agent.ports[0].detail.windows.sum, 8_000);
    (0..6).for_each(|_| {
        bench.pop(0);
    });
    bench.now = Time::from_ns(11_999);
    bench.pop(1);
    assert!(counted(&bench), "flow 3 was notified at 0 us, and 12 us are not over");
    bench.now = US(12);
    bench.pop(0);
    assert!(!counted(&bench));
    // More than a quarter of the threshold keeps it.
    bench.fill(7);
    assert!(counted(&bench));
    bench.now = US(100);
    (2..7).for_each(|_| {
        bench.pop(0);
    });
    assert!(counted(&bench));
    bench.pop(0);
    assert!(!counted(&bench));
}

/// Two hosts of 6 and 2 Gbit/s, a third that joins, pauses in between: states and windows in integers.
#[test]
fn golden() {
    let mut bench = Bench::new(&[("cnp_interval", "4us")]);
    let mut text = String::from("    time  queue  state         notified\n");
    for step in 0..84u64 {
        bench.now = Time::from_ns(step * 1_000);
        match step {
            12 | 30 | 44 => bench.pause(),
            20 | 36 | 50 => bench.resume(),
            _ => {}
        }
        (0..if !(24..62).contains(&step) { 2 } else { u64::from(step % 2 == 0) }).for_each(|_| {
            bench.push(0, packet(1, 1, 750));
        });
        bench.push(0, packet(2, 2, 250));
        if (38..44).contains(&step) || step >= 76 {
            bench.push(0, packet(3, 3, 1500));
        }
        let mut budget = if bench.agent.ports[0].paused == 0 { 1000 } else { 0 };
        while let Some(first) = bench.queues.0[0][0].front().filter(|first| first.bytes <= budget) {
            budget -= first.bytes;
            bench.pop(0);
        }
        let queue = bench.queues.queue_bytes(0, 0);
        let state = if bench.is_undetermined() { "undetermined" } else { "determined" };
        let windows: Vec<_> = bench.notified.drain(..).map(|(_, flow, window)| format!("{flow}: {window}")).collect();
        writeln!(text, "{:>6}us {queue:>6}  {state:<12}  {}", step, windows.join(", "))
            .expect("a String takes everything");
    }
    insta::assert_snapshot!("mercury", text);
}

#[test]
fn state_is_small() {
    assert!(size_of::<Port>() <= 48, "{}", size_of::<Port>());
}
