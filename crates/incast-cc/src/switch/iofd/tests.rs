//! The rule by hand: one switch with three paths to a destination, and a host's port.

use super::*;
use crate::{
    agent::{Codepoint, PortSetup, Verdict, rerouting::Marker},
    marking::Marking,
};
use incast_units::Rate;
use std::fmt::Write as _;

const US: fn(u64) -> Time = Time::from_us;
/// 10 Gbit/s: 1,250 bytes a microsecond.
const RATE: Rate = Rate::from_gbps(10);
const PORTS: usize = 6;
/// Ports 0 and 1 lead to switches below, 2 to 4 to those above, 5 to a host.
const UPWARDS: [u16; 3] = [2, 3, 4];

#[derive(Clone, Debug, Default)]
struct Ports {
    bytes: [u64; PORTS],
    held: [u64; PORTS],
    stuck: Vec<u16>,
    full: bool,
    /// Ports that may not send priority 0, and packets that came with 1 by port 0 leave the others with 0.
    paused_channel: Vec<u16>,
    down: Vec<u16>,
    usual: Option<u16>,
    without_channel: Vec<u16>,
    longer: Vec<u16>,
}

impl SwitchView for Ports {
    fn ports(&self) -> u16 {
        PORTS as u16
    }
    fn priorities(&self) -> u8 {
        2
    }
    fn queue_bytes(&self, port: u16, priority: u8) -> u64 {
        if priority == 1 { self.bytes[usize::from(port)] } else { 0 }
    }
    fn waiting(&self, port: u16, priority: u8) -> impl Iterator<Item = PacketView> {
        (self.bytes[usize::from(port)] > 0 && priority == 1).then(|| packet(1)).into_iter()
    }
    fn rate(&self, _port: u16) -> Rate {
        RATE
    }
    fn may_send(&self, port: u16, priority: u8) -> bool {
        !(self.stuck.contains(&port) || priority == 0 && self.paused_channel.contains(&port))
    }
    fn alternatives(&self, _destination: u32) -> impl Iterator<Item = u16> {
        UPWARDS.into_iter()
    }
    fn rerouting(&self) -> impl ReroutingView {
        self
    }
}

impl ReroutingView for &Ports {
    fn non_minimal_ports(&self, _destination: u32) -> impl Iterator<Item = u16> {
        self.longer.iter().copied()
    }
    fn leads_to_host(&self, port: u16) -> bool {
        port == 5
    }
    fn channels(&self) -> u8 {
        1
    }
    fn has_channels(&self, _ingress: u16, port: u16, _priority: u8, _destination: u32) -> bool {
        !self.without_channel.contains(&port)
    }
    fn has_room(&self, _port: u16, _bytes: u32) -> bool {
        !self.full
    }
    fn leaving_priority(&self, _ingress: u16, port: u16, priority: u8) -> u8 {
        if self.paused_channel.contains(&port) { 0 } else { priority }
    }
    fn routed_port(&self, _flow: &FlowAddress) -> Option<u16> {
        self.usual
    }
    fn is_up(&self, port: u16) -> bool {
        !self.down.contains(&port)
    }
    fn held_bytes(&self, port: u16) -> u64 {
        self.held[usize::from(port)]
    }
}

fn packet(sequence: u32) -> PacketView {
    PacketView {
        flow: FlowAddress { source: 7, destination: 9, sequence, slot: 0, ecmp_hash: 0, class: 0 },
        ingress: Some(0),
        bytes: 1_000,
        ecn_capable: true,
        codepoint: Codepoint::None,
        is_data: true,
        deflections: 0,
        marker: None,
    }
}

fn marker(sequence: u32, name: u64, is_own: bool) -> PacketView {
    PacketView { is_data: false, marker: Some(Marker { name, is_own }), ..packet(sequence) }
}

/// The usual port of all flows is 2.
struct Bench {
    agent: Iofd,
    ports: Ports,
    now: Time,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Port(u16),
    Held(u16),
    Answered,
}

impl Bench {
    /// A base RTT of 8 us: queues are long above 10,000 bytes, and short up to 2,500.
    fn new(given: &[(&str, Raw)]) -> Self {
        let path = Path::new(RATE, US(8), 1000, 1082);
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        let parameters = Iofd::resolve(&path, &given).expect("allowed");
        let ports = [PortSetup { rate: RATE, marking: Marking::Off }; PORTS];
        let agent = Iofd::install(&parameters, &Site { ports: &ports, priorities: 2 });
        Self { agent, ports: Ports::default(), now: Time::ZERO }
    }

    fn view(&self, port: u16) -> PortView {
        let queue_bytes = self.ports.bytes[usize::from(port)];
        PortView { now: self.now, port, priority: 1, queue_bytes, rate: RATE, stream: self.now.ps() }
    }

    fn enter_by(&mut self, port: u16, packet: PacketView) -> Fate {
        let (view, mut verdict) = (self.view(port), Verdict::default());
        self.agent.on_enqueue(&view, &packet, &self.ports, &mut verdict);
        match verdict.forward {
            Forward::Rerouting(Diversion::Answer) => Fate::Answered,
            Forward::Rerouting(Diversion::Hold { port, .. }) => Fate::Held(port),
            Forward::Port(port) => Fate::Port(port),
            Forward::Routed => Fate::Port(port),
        }
    }

    fn enter(&mut self, packet: PacketView) -> Fate {
        self.enter_by(2, packet)
    }

    fn leave(&mut self, port: u16, packet: PacketView) {
        let view = self.view(port);
        self.agent.on_dequeue(&view, &packet, &self.ports, &mut Verdict::default());
    }

    /// The one order there is: name and port of a marker.
    fn marked(&mut self) -> (u64, u16) {
        let order = self.agent.next_action();
        assert_eq!(self.agent.next_action(), None);
        match order {
            Some(Action::Mark { name, port, ingress: 0, priority: 1, .. }) => (name, port),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, name: u64) -> Option<(u16, bool)> {
        self.agent.on_answer(self.now, name);
        let order = self.agent.next_action();
        assert_eq!(self.agent.next_action(), None);
        order.map(|order| match order {
            Action::Release { to: Some(to), .. } => to,
            other => panic!("{other:?}"),
        })
    }

    fn pass(&mut self, until: Time) {
        while self.agent.next_timer() <= until {
            self.now = self.agent.next_timer();
            self.agent.on_timer(self.now, &self.ports, &mut |_| panic!("it notifies nobody"));
            assert!(self.agent.next_timer() > self.now, "a timer that stands still");
        }
        self.now = until;
    }

    fn flag(name: &str) -> (&str, Raw) {
        (name, Raw::Flag(true))
    }
}

#[test]
fn defaults_follow_from_the_base_rtt() {
    let path = Path::new(RATE, US(8), 1000, 1082);
    let parameters = Iofd::resolve(&path, &[]).expect("defaults");
    assert_eq!((parameters.deflect_above, parameters.deflect_below, parameters.max_deflections), (US(8), US(2), 4));
    assert_eq!(
        (parameters.idle.time(), parameters.marker_timeout.time(), parameters.table_entries),
        (US(80), US(32), 1024)
    );
    let text = |text: &str| Raw::Text(text.to_owned());
    let refused = |key: &str, raw| Iofd::resolve(&path, &[(key.to_owned(), raw)]).expect_err("refused").to_string();
    assert!(refused("deflect_below", text("9us")).contains("at most `deflect_above`, 8us"));
    assert!(refused("max_deflections", Raw::Integer(16)).contains("0 to 15"));
    assert!(refused("table_entries", Raw::Integer(0)).contains("1 to 65535"));
    assert!(refused("order", text("none")).contains("marker"));
}

#[test]
fn a_flow_leaves_a_long_queue_behind_its_marker() {
    let mut bench = Bench::new(&[]);
    bench.ports.bytes[2] = 10_000;
    assert_eq!(bench.enter(packet(1)), Fate::Port(2), "8 us is not above 8 us");
    bench.ports.bytes[2] = 10_001;
    bench.ports.bytes[3] = 100;
    // The packet that finds the queue too long is the first to be held; port 4 has the shorter queue.
    assert_eq!(bench.enter(packet(1)), Fate::Held(4));
    let (name, port) = bench.marked();
    assert_eq!(port, 2);
    assert_eq!(bench.enter(packet(1)), Fate::Held(4));
    // The marker of a switch before this one is held like data; one of another visit goes its own way.
    assert_eq!(bench.enter(marker(1, 99, false)), Fate::Held(4));
    assert_eq!(bench.enter(PacketView { deflections: 1, ..marker(1, 99, false) }), Fate::Port(2));
    assert_eq!(bench.enter(PacketView { ingress: Some(1), ..marker(1, 99, false) }), Fate::Port(2));
    // Answers to other names are none.
    assert_eq!((bench.answer(99), bench.answer(name ^ 1 << 20)), (None, None));
    assert_eq!(bench.answer(name), Some((4, true)));
    assert_eq!((bench.enter(packet(1)), bench.answer(name)), (Fate::Port(4), None));
    assert_eq!(bench.enter(marker(1, 99, false)), Fate::Port(4));
    // Back to the usual port when that is better; then nothing is known of the flow any more.
    (bench.ports.bytes[2], bench.ports.bytes[3], bench.ports.bytes[4]) = (0, 5_000, 20_000);
    assert_eq!(bench.enter(packet(1)), Fate::Held(2));
    let (again, port) = bench.marked();
    assert_eq!(port, 4);
    assert_eq!((bench.answer(name), bench.answer(again)), (None, Some((2, false))));
    assert!(bench.agent.table.is_empty());
    assert_eq!(bench.enter(packet(1)), Fate::Port(2));
}

/// A switch without a better port reports to the one before it, one flow in 8 us and not while the port is paused; that one
/// deflects the flow, not to where it came from.
#[test]
fn a_collision_ahead_is_reported_to_the_switch_before() {
    let mut next = Bench::new(&[Bench::flag("isolation_messages")]);
    (2..5).for_each(|port| next.ports.bytes[port] = 10_001);
    next.ports.stuck = vec![2];
    assert_eq!((next.enter(packet(1)), next.agent.next_action()), (Fate::Port(2), None));
    next.ports.stuck.clear();
    for (time, reported) in [(0, true), (7, false), (8, true)] {
        next.now = US(time);
        assert_eq!(next.enter(packet(1)), Fate::Port(2));
        let message = Action::Isolate { ingress: 0, source: 7, sequence: 1 };
        assert_eq!(next.agent.next_action(), reported.then_some(message), "{time}");
    }
    let mut without = Bench::new(&[]);
    without.ports.bytes = next.ports.bytes;
    assert_eq!((without.enter(packet(1)), without.agent.next_action()), (Fate::Port(2), None));

    let mut bench = Bench::new(&[]);
    let tell = |bench: &mut Bench, port, sequence| {
        bench.agent.rerouting().expect("it reroutes").on_isolation(bench.now, port, 7, sequence);
    };
    tell(&mut bench, 2, 1);
    bench.ports.bytes[3] = 100;
    assert_eq!((bench.enter(packet(2)), bench.enter(packet(1))), (Fate::Port(2), Fate::Held(4)));
    let (name, port) = bench.marked();
    assert_eq!((port, bench.answer(name)), (2, Some((4, true))));
    assert_eq!(bench.enter(packet(1)), Fate::Port(4), "which is as good as any");
    tell(&mut bench, 4, 1);
    assert_eq!(bench.enter(packet(1)), Fate::Held(3), "not back to 2");
    let (name, _) = bench.marked();
    bench.answer(name);
    tell(&mut bench, 3, 1);
    bench.now = US(32);
    assert_eq!(bench.enter(packet(1)), Fate::Port(3), "messages are forgotten after 32 us");
}

#[test]
fn who_moves_where() {
    let long = || {
        let mut bench = Bench::new(&[]);
        bench.ports.bytes = [0, 0, 20_000, 0, 0, 0];
        bench
    };
    // Not out of the host's port, nor what is no data, nor what is made here.
    let mut bench = long();
    bench.ports.bytes[5] = 20_000;
    assert_eq!(bench.enter_by(5, packet(1)), Fate::Port(5));
    assert_eq!(bench.enter(PacketView { is_data: false, ..packet(1) }), Fate::Port(2));
    assert_eq!(bench.enter(PacketView { ingress: None, ..packet(1) }), Fate::Port(2));
    assert_eq!(bench.enter_by(5, marker(1, 3, false)), Fate::Answered);
    // Not after too many deflections.
    assert_eq!(bench.enter(PacketView { deflections: 4, ..packet(1) }), Fate::Port(2));
    assert_eq!(bench.enter(PacketView { deflections: 15, ..packet(1) }), Fate::Port(2));
    // Not to where the queue is not short, what is held for it included, nor where it may not go.
    let refusals: [fn(&mut Ports); 7] = [
        |ports| (ports.bytes[3], ports.bytes[4]) = (2_501, 2_501),
        |ports| (ports.bytes[3], ports.bytes[4], ports.held[4]) = (2_501, 2_500, 1),
        |ports| ports.stuck = vec![3, 4],
        |ports| ports.paused_channel = vec![3, 4],
        |ports| ports.without_channel = vec![3, 4],
        |ports| ports.full = true,
        |ports| (ports.stuck, ports.without_channel) = (vec![3], vec![4]),
    ];
    for (index, refuse) in refusals.into_iter().enumerate() {
        let mut bench = long();
        refuse(&mut bench.ports);
        assert_eq!(bench.enter(packet(1)), Fate::Port(2), "{index}");
        assert_eq!(bench.agent.next_action(), None);
    }
    let mut bench = long();
    bench.ports.stuck = vec![3];
    assert_eq!(bench.enter(packet(1)), Fate::Held(4));
    // Not back to where it came from.
    let mut bench = long();
    bench.ports.bytes[4] = 20_000;
    assert_eq!(bench.enter(PacketView { ingress: Some(3), ..packet(1) }), Fate::Port(2));
    // Longer ways only if wanted.
    for (given, fate) in [(vec![], Fate::Port(2)), (vec![Bench::flag("loop_free_alternates")], Fate::Held(1))] {
        let mut bench = Bench::new(&given);
        bench.ports.bytes = [0, 0, 20_000, 20_000, 20_000, 0];
        bench.ports.longer = vec![1];
        assert_eq!(bench.enter(packet(1)), fate);
    }
    // Of equals one is drawn.
    let drawn = |us: u64| {
        let mut bench = long();
        bench.now = US(us);
        bench.enter(packet(1))
    };
    let to_3 = (0..200).filter(|us| drawn(*us) == Fate::Held(3)).count();
    assert!((70..130).contains(&to_3), "{to_3} of 200");
}

#[test]
fn one_flow_at_a_time_and_no_more_than_the_table_has() {
    let mut bench = Bench::new(&[]);
    bench.ports.bytes[2] = 20_000;
    let first = bench.enter(packet(1));
    let (name, _) = bench.marked();
    assert_eq!(bench.enter(packet(2)), Fate::Port(2), "one at a time");
    let Fate::Held(to) = first else { panic!("{first:?}") };
    assert_eq!(bench.answer(name), Some((to, true)));
    assert!(matches!(bench.enter(packet(2)), Fate::Held(_)));
    // No two go to one port at a time.
    let mut bench = Bench::new(&[("max_reroutes", Raw::Integer(2))]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    let fates: Vec<Fate> = (1..5).map(|flow| bench.enter(packet(flow))).collect();
    assert_eq!(fates, [Fate::Held(4), Fate::Held(4), Fate::Port(2), Fate::Port(2)]);
    // A full table deflects no more, and goes on with those that it has.
    let mut bench = Bench::new(&[("max_reroutes", Raw::Integer(9)), ("table_entries", Raw::Integer(1))]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    assert_eq!([1, 2, 1].map(|flow| bench.enter(packet(flow))), [Fate::Held(4), Fate::Port(2), Fate::Held(4)]);
}

#[test]
fn a_marker_without_an_answer_is_sent_again_once_it_has_left() {
    let mut bench = Bench::new(&[]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    assert_eq!(bench.enter(packet(1)), Fate::Held(4));
    let (name, _) = bench.marked();
    // As long as it waits here there is no other.
    bench.pass(US(500));
    assert_eq!(bench.agent.next_action(), None);
    bench.leave(2, marker(1, name, true));
    let mut again = Vec::new();
    for us in 500..2_000 {
        bench.pass(US(us));
        if let Some(Action::Mark { name: other, port: 2, .. }) = bench.agent.next_action() {
            assert_eq!(other, name);
            again.push(us);
            bench.leave(2, marker(1, name, true));
        }
    }
    // After 32 us, then 64, 128 and so on, when the table is looked through, which is every 32 us.
    assert_eq!(again, [544, 608, 736, 992, 1504]);
    // One that found no room counts as lost, and others' markers do not concern it.
    bench.agent.on_drop(&bench.view(2), &marker(1, name, false));
    assert_eq!(bench.answer(name), Some((4, true)));
}

#[test]
fn an_entry_without_use_is_given_back_behind_a_marker() {
    let mut bench = Bench::new(&[]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    bench.enter(packet(1));
    let (name, _) = bench.marked();
    bench.now = US(1);
    bench.answer(name);
    bench.pass(US(80));
    assert_eq!(bench.agent.next_action(), None);
    bench.pass(US(200));
    let (name, port) = bench.marked();
    assert_eq!(port, 4);
    // What comes meanwhile is held for the usual port.
    assert_eq!(bench.enter(packet(1)), Fate::Held(2));
    assert_eq!(bench.answer(name), Some((2, false)));
    bench.pass(US(300));
    assert_eq!((bench.agent.table.is_empty(), bench.agent.next_timer()), (true, Time::MAX));
}

#[test]
fn a_longer_way_is_given_up_when_the_usual_one_is_free() {
    let mut bench = Bench::new(&[Bench::flag("loop_free_alternates")]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 20_000, 0];
    bench.ports.longer = vec![1];
    assert_eq!(bench.enter(packet(1)), Fate::Held(1));
    let (name, _) = bench.marked();
    bench.answer(name);
    bench.pass(US(40));
    assert_eq!(bench.enter(packet(1)), Fate::Port(1));
    bench.ports.bytes[2] = 2_500;
    bench.pass(US(70));
    assert_eq!(bench.marked().1, 1);
}

/// One flow was deflected from port 2 to 4 and wants to go back; what becomes of it with new routes?
#[test]
fn new_routes_end_what_they_change() {
    let after = |given: &[(&str, Raw)], change: fn(&mut Ports)| {
        let mut bench = Bench::new(given);
        bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
        bench.enter(packet(1));
        let (name, _) = bench.marked();
        bench.answer(name);
        bench.ports.usual = Some(2);
        (bench.ports.bytes[2], bench.ports.bytes[4]) = (0, 20_000);
        assert_eq!(bench.enter(packet(1)), Fate::Held(2));
        change(&mut bench.ports);
        bench.agent.on_routes(&bench.ports);
        // Its marker is to be sent, or what is held is released.
        let order = bench.agent.next_action();
        assert_eq!(bench.agent.next_action(), None);
        let moves: u64 = bench.agent.moves.iter().map(|moves| moves.from + moves.to).sum();
        match order {
            Some(Action::Mark { name, port: 4, bytes: 64, .. }) => {
                assert_eq!((moves, bench.agent.next_timer() < Time::MAX), (2, true));
                assert_eq!(bench.answer(name), Some((2, false)));
                true
            }
            Some(Action::Release { place: 0, to: None }) => {
                assert_eq!((moves, bench.agent.next_timer()), (0, Time::MAX));
                assert!(bench.agent.table.is_empty());
                false
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(after(&[], |_| {}) && after(&[], |ports| ports.down = vec![3]));
    assert!(!after(&[], |ports| ports.usual = Some(3)) && !after(&[], |ports| ports.usual = None));
    assert!(!after(&[], |ports| ports.down = vec![2]) && !after(&[], |ports| ports.down = vec![4]));
    assert!(!after(&[], |ports| ports.without_channel = vec![4]));
    assert!(after(&[], |ports| ports.without_channel = vec![2]), "the usual way has channels");
}

#[test]
fn new_routes_end_everything() {
    let mut bench = Bench::new(&[("max_reroutes", Raw::Integer(2))]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    bench.enter(packet(1));
    bench.enter(packet(2));
    let Some(Action::Mark { name, .. }) = bench.agent.next_action() else { panic!("a marker") };
    bench.answer_of_first(name);
    bench.agent.on_routes(&bench.ports);
    let released = bench.agent.next_action();
    assert!(matches!(released, Some(Action::Release { place: 1, to: None })), "{released:?}");
    assert_eq!((bench.agent.next_action(), bench.agent.table.is_empty()), (None, true));
    assert_eq!(bench.agent.next_timer(), Time::MAX);
    bench.agent.on_answer(bench.now, name);
    assert_eq!(bench.agent.next_action(), None);
    assert!(bench.agent.moves.iter().all(|moves| (moves.from, moves.to) == (0, 0)));
}

impl Bench {
    /// An answer while a marker of another flow is to be sent: that comes first.
    fn answer_of_first(&mut self, name: u64) {
        self.agent.on_answer(self.now, name);
        assert!(matches!(self.agent.next_action(), Some(Action::Mark { .. })));
        assert!(matches!(self.agent.next_action(), Some(Action::Release { place: 0, to: Some((4, true)) })));
    }
}

/// The rule that does not keep order looks at its own switch alone.
#[test]
fn the_local_rule_asks_whether_the_flow_waits_here() {
    let local = ("order", Raw::Text("local".to_owned()));
    let mut bench = Bench::new(std::slice::from_ref(&local));
    // Flow 1 is what waits in the queues of these ports.
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    assert_eq!(bench.enter(packet(1)), Fate::Port(2));
    assert_eq!(bench.enter(packet(2)), Fate::Port(4));
    assert_eq!(bench.agent.next_action(), None);
    (bench.ports.bytes[2], bench.ports.bytes[4]) = (0, 20_000);
    bench.now = US(1);
    assert_eq!(bench.enter(packet(2)), Fate::Port(2));
    assert!(bench.agent.table.is_empty());
    // With a guard it stays for so long.
    let mut bench = Bench::new(&[local, ("flow_gap", Raw::Text("2us".to_owned()))]);
    bench.ports.bytes = [0, 0, 20_000, 20_000, 0, 0];
    let at = |bench: &mut Bench, us| {
        bench.now = US(us);
        bench.enter(packet(2))
    };
    assert_eq!([1, 2, 4].map(|us| at(&mut bench, us)), [Fate::Port(2), Fate::Port(2), Fate::Port(4)]);
    (bench.ports.bytes[2], bench.ports.bytes[4]) = (0, 20_000);
    assert_eq!([5, 6, 8].map(|us| at(&mut bench, us)), [Fate::Port(4), Fate::Port(4), Fate::Port(2)]);
}

/// Queues that come and go, three flows, answers that take 9 us: what becomes of each packet.
#[test]
fn golden() {
    let mut bench = Bench::new(&[]);
    let mut rows = String::new();
    let mut answers: VecDeque<(Time, u64)> = VecDeque::new();
    for us in 0..240u64 {
        bench.pass(US(us));
        while let Some((_, name)) = answers.pop_front_if(|(at, _)| *at <= US(us)) {
            bench.agent.on_answer(US(us), name);
        }
        let wave = |offset: u64| if ((us + offset) / 40).is_multiple_of(3) { 12_000 } else { 1_000 + us % 7 * 100 };
        bench.ports.bytes = [0, 0, wave(0), wave(80), wave(40), 0];
        let fates: Vec<Fate> =
            if us < 130 { (1..4).map(|flow| bench.enter(packet(flow))).collect() } else { Vec::new() };
        let mut orders = String::new();
        while let Some(order) = bench.agent.next_action() {
            match order {
                Action::Mark { port, flow, name, .. } => {
                    write!(orders, " mark {} at {port}", flow.sequence).expect("strings take everything");
                    bench.leave(port, marker(flow.sequence, name, true));
                    answers.push_back((US(us + 9), name));
                }
                Action::Release { to, .. } => write!(orders, " release {to:?}").expect("strings take everything"),
                Action::Isolate { .. } => orders.push_str(" isolate"),
            }
        }
        if !orders.is_empty() || us.is_multiple_of(20) {
            writeln!(rows, "{us:>4} {fates:?}{orders}").expect("strings take everything");
        }
    }
    insta::assert_snapshot!("iofd", rows);
}
