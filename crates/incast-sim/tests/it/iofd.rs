//! In-order flow deflection at work: no packet of a flow overtakes another, whatever waits where; and virtual channels.
//!
//! Order is looked at twice: receivers count packets that come after later ones, and the packets that leave the last
//! switches are compared with the order in which their senders' NICs began to send them. The second holds where packets
//! are lost and sent again, too.

use crate::common::{self, config, delivered, flow, link, link_event, text, unlimited};
use incast_cc::{parameters::Raw, registry::AgentParameters};
use incast_sim::{
    Config, ConfigError, FlowSpec, Outcome, base_path,
    config::{Alpha, Buffer, Ecn, LoadBalancing, Pfc, Size, Threshold},
    outcome::{EventKind, FlowRecord, Step, Totals},
    packet::Kind,
    probe::PacketFilter,
    simulate,
    topology::{FatTree, LeafSpine, Ring, Topology, file::parse},
};
use incast_units::Time;
use std::collections::BTreeMap;

const MTU: u32 = 1000;
/// Bytes of a full frame: see `common::OVERHEAD`.
const FRAME: u64 = 1070;

fn iofd(topology: &Topology, given: &[(&str, Raw)]) -> AgentParameters {
    let path = base_path(topology, MTU, common::info("constant-window").framing);
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    AgentParameters::resolve("iofd", &path, &given).expect("an agent").expect("good parameters")
}

/// Parameters with which flows move all the time: thresholds far below a base RTT, many moves at a time.
fn restless() -> Vec<(&'static str, Raw)> {
    vec![
        ("deflect_above", text("500ns")),
        ("deflect_below", text("400ns")),
        ("max_reroutes", Raw::Integer(8)),
        ("idle", text("20us")),
        ("isolation_messages", Raw::Flag(true)),
    ]
}

fn pfc() -> Pfc {
    let size = Size::Bytes;
    let threshold = Threshold::Static { xoff: size(10 * FRAME), xon: Some(size(5 * FRAME)) };
    Pfc { deadlock_after: Some(Time::from_us(500)), ..Pfc::new(threshold) }
}

fn leaves() -> Topology {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 4, spines: 4, hosts_per_leaf: 4, host_link: link, fabric_link: link, fabric_links: 1 };
    fabric.build().expect("a good topology")
}

fn tree() -> Topology {
    FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology")
}

fn ring(hosts_per_switch: u32) -> Topology {
    let link = link(100, Time::from_us(1));
    let ring = Ring { switches: 5, hosts_per_switch, host_link: link, fabric_link: link };
    ring.build().expect("a good topology")
}

/// A generator of numbers for the workload alone (Knuth's MMIX).
struct Lots(u64);

impl Lots {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Random congestion: flows of random sizes between random hosts, with now and then several to one, until `packets` are
/// to be delivered. Senders do not slow down.
fn random(topology: Topology, law: &str, packets: u64, gap_ns: u64, seed: u64) -> Config {
    let hosts = u64::from(topology.hosts);
    let parameters: &[(&str, Raw)] = if law == "constant-window" { &[("window", text("1GB"))] } else { &[] };
    let mut config = config(topology.clone(), law, parameters);
    config.host.mtu = MTU;
    config.classes = vec![common::class(&topology, MTU, law, parameters)];
    config.seed = seed;
    let (mut lots, mut total, mut now) = (Lots(seed), 0, 0);
    while total < packets {
        let size = [20, 60, 200, 600][lots.below(4) as usize] + lots.below(20);
        let destination = lots.below(hosts) as u32;
        let sources = if lots.below(8) == 0 { 4 } else { 1 };
        for _ in 0..sources {
            let source = lots.below(hosts) as u32;
            if source != destination {
                let start = Time::from_ns(now);
                config.flows.push(FlowSpec { start, ..flow(source, destination, size * u64::from(MTU)) });
                total += size;
            }
        }
        now += sources * lots.below(2 * gap_ns * size);
    }
    config
}

/// The ports that lead to hosts.
fn last_ports(topology: &Topology) -> Vec<(u32, u16)> {
    let ports = topology.ports();
    let last = (0..topology.hosts).map(|host| {
        let end = ports.end(host, 0).expect("a cable");
        (end.peer, end.peer_port)
    });
    last.collect()
}

/// Packets of all flows at some ports, or everywhere if there are none.
fn packets_at(ports: Vec<(u32, u16)>) -> Option<PacketFilter> {
    Some(PacketFilter { flow: None, ports, from: Time::ZERO, until: Time::MAX, most: usize::MAX })
}

/// Watches what leaves for hosts.
fn watched(mut config: Config) -> Config {
    config.probes.packets = packets_at(last_ports(&config.topology));
    config
}

/// What was seen of data on its last link.
#[derive(Debug, Default)]
struct Seen {
    packets: u64,
    /// Packets that left after one of their flow that was sent later.
    overtaken: u64,
    /// Packets by number of deflections.
    deflections: [u64; 16],
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.overtaken += other.overtaken;
        self.deflections.iter_mut().zip(other.deflections).for_each(|(sum, more)| *sum += more);
    }
}

fn seen(outcome: &Outcome) -> Seen {
    let mut latest: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut seen = Seen::default();
    for record in &outcome.packets {
        if record.packet.kind == Kind::Data && matches!(record.step, Step::Sent { .. }) {
            let latest = latest.entry(record.packet.flow()).or_default();
            seen.packets += 1;
            seen.overtaken += u64::from(record.packet.value < *latest);
            seen.deflections[usize::from(record.packet.deflections)] += 1;
            *latest = record.packet.value.max(*latest);
        }
    }
    seen
}

fn reordered(outcome: &Outcome) -> u32 {
    outcome.flows.iter().map(|flow| flow.reordered_packets).sum()
}

// ---- Order -------------------------------------------------------------------------------------------------

/// A million packets in lossless fabrics: none overtakes another, none is deflected too often, nothing locks up.
#[test]
fn no_packet_overtakes_another_where_nothing_is_lost() {
    let mut all = Seen::default();
    for (seed, topology) in (0..).zip([leaves(), tree(), leaves(), tree(), ring(3)].iter().cycle().take(10)) {
        let mut given = restless();
        given.push(("max_deflections", Raw::Integer(2)));
        given.push(("loop_free_alternates", Raw::Flag(seed % 2 == 0)));
        let mut config = random(topology.clone(), "constant-window", 105_000, 40, seed);
        config.switch.agent = iofd(topology, &given);
        config.switch.pfc = Some(pfc());
        if seed >= 4 {
            // A buffer that all ports share, thresholds that follow what is free of it, and little of that.
            let threshold = Threshold::Dynamic { alpha: Alpha::Fixed(0.125), reserve: 4096, resume_offset: 3072 };
            config.switch.pfc = Some(Pfc { threshold, ..pfc() });
            config.switch.buffer = Buffer::Shared { total: 1_200_000, alpha: (1, 1), reserve: 0 };
        }
        (config.switch.priorities, config.switch.virtual_channels) = (2, 2);
        let outcome = common::run(watched(config));
        delivered(&outcome);
        assert_eq!((outcome.totals.drops, outcome.totals.lossless_drops, &outcome.deadlock), (0, 0, &None));
        assert_eq!((reordered(&outcome), outcome.totals.pfc_stranded), (0, 0), "seed {seed}");
        assert!(outcome.totals.pauses > 100, "{:?}", outcome.totals);
        let deflections: u32 = outcome.flows.iter().map(|flow| flow.deflections).sum();
        assert_eq!(u64::from(deflections), outcome.totals.deflections);
        println!("{} {seed}: {:?} {:?}", topology.kind, outcome.totals.deflections, outcome.ended_at);
        all += seen(&outcome);
    }
    println!("{all:?}");
    assert!(all.packets >= 1_000_000 && all.overtaken == 0, "{all:?}");
    assert!(all.deflections[1] > 100_000 && all.deflections[2] > 1_000, "{all:?}");
    assert_eq!(all.deflections[3..], [0; 13]);
}

/// A million packets where full queues drop some: these leave gaps, and what is sent again comes in the order it was
/// sent in.
#[test]
fn no_packet_overtakes_another_where_packets_are_dropped() {
    let (mut all, mut drops) = (Seen::default(), 0);
    for (seed, topology) in (0..).zip([leaves(), tree()].iter().cycle().take(10)) {
        let mut config = random(topology.clone(), "dctcp", 100_000, 20, seed);
        config.switch.agent = iofd(topology, &restless());
        config.switch.ecn = Ecn::Step { at: Size::Bytes(60_000) };
        config.switch.buffer = if seed % 4 < 2 {
            Buffer::Shared { total: 300_000, alpha: (1, 1), reserve: if seed == 1 { 500 } else { 0 } }
        } else {
            Buffer::PerPort { bytes: 60_000 }
        };
        let outcome = common::run(watched(config));
        delivered(&outcome);
        drops += outcome.totals.drops;
        all += seen(&outcome);
    }
    println!("{all:?} {drops}");
    assert!(all.packets >= 1_000_000 && all.overtaken == 0, "{all:?}");
    assert!(drops > 10_000 && all.deflections[1] > 100_000, "{drops} {all:?}");
}

/// The rule that looks at its own switch alone does not keep order, with pauses or without: the checks above could
/// fail. A flow that moves only after 2 us in which none of its packets came may be lucky, as the ways of an idle
/// fabric do not differ at all and queues are short; pauses outlast that.
#[test]
fn what_a_switch_sees_is_not_enough() {
    let overtaken = |guard: &str, lossless: bool| {
        let topology = tree();
        let mut given = restless();
        given.extend([("order", text("local")), ("flow_gap", text(guard))]);
        let mut config = random(topology.clone(), "dctcp", 60_000, 20, 3);
        config.host.rto_min = Time::from_ms(100);
        config.switch.agent = iofd(&topology, &given);
        config.switch.pfc = lossless.then(pfc);
        let outcome = common::run(watched(config));
        delivered(&outcome);
        let seen = seen(&outcome);
        // Where nothing is lost or sent again, receivers see it too.
        assert_eq!(seen.overtaken > 0, reordered(&outcome) > 0);
        seen.overtaken
    };
    let found = [("0ns", false), ("0ns", true), ("2us", true)].map(|(guard, lossless)| overtaken(guard, lossless));
    assert!(found.iter().all(|overtaken| *overtaken > 0), "{found:?}");
}

/// Cables that lose one packet in a hundred lose markers and answers, too: these are said again.
#[test]
fn lost_markers_and_answers_are_said_again() {
    let mut all_lost = (0, 0);
    for seed in 0..4 {
        let mut topology = leaves();
        let hosts = topology.hosts as usize;
        topology.cables[hosts..].iter_mut().for_each(|cable| cable.link.loss = 0.01);
        let mut config = random(topology.clone(), "dctcp", 30_000, 40, seed);
        config.switch.agent = iofd(&topology, &restless());
        config.probes.packets = packets_at(Vec::new());
        let mut outcome = common::run(config);
        delivered(&outcome);
        let lost = |kind| {
            let of_kind = outcome.packets.iter().filter(|record| record.packet.kind == kind);
            of_kind.filter(|record| matches!(record.step, Step::Sent { arrival: None, .. })).count()
        };
        all_lost = (all_lost.0 + lost(Kind::Marker), all_lost.1 + lost(Kind::MarkerAck));
        let last = last_ports(&topology);
        outcome.packets.retain(|record| last.contains(&(record.node, record.port)));
        let seen = seen(&outcome);
        assert!(seen.overtaken == 0 && seen.deflections[1] > 1_000, "{seen:?}");
    }
    assert!(all_lost.0 > 0 && all_lost.1 > 0, "{all_lost:?}");
}

/// Cables go down and come up while flows are held: everything is delivered, every byte is accounted for, and results
/// do not depend on threads. New routes may let packets overtake others, as they do without deflection.
#[test]
fn routes_change_under_way() {
    let with = |threads, lossless: bool| {
        let topology = leaves();
        let mut config = random(topology.clone(), "dctcp", 30_000, 40, 5);
        config.switch.agent = iofd(&topology, &restless());
        config.switch.pfc = lossless.then(pfc);
        config.link_events = (0..12)
            .map(|number| {
                let cable = ["leaf0-spine1", "leaf2-spine3", "leaf0-spine0"][number as usize % 3];
                link_event(&topology, Time::from_us(30 + 20 * number), cable, number % 6 > 2)
            })
            .collect();
        config.threads = threads;
        common::run(config)
    };
    for lossless in [false, true] {
        let outcome = with(1, lossless);
        delivered(&outcome);
        assert!(outcome.totals.lost > 0 && outcome.totals.deflections > 1_000, "{:?}", outcome.totals);
        for threads in [2, 4] {
            assert_eq!(with(threads, lossless).digest, outcome.digest);
        }
    }
}

/// The cable between one leaf and a spine goes down and comes up, again and again: flows between other leaves stay in
/// order.
#[test]
fn flows_with_the_same_routes_stay_in_order_when_others_change() {
    let topology = leaves();
    let mut config = random(topology.clone(), "constant-window", 60_000, 40, 6);
    let touched = |host: u32| topology.edge_of(host) == topology.edge_of(8);
    config.flows.retain(|flow| !touched(flow.source) && !touched(flow.destination));
    config.switch.agent = iofd(&topology, &restless());
    config.switch.pfc = Some(pfc());
    let event = |number: u64| link_event(&topology, Time::from_us(10 + 20 * number), "leaf2-spine3", number % 2 == 1);
    config.link_events = (0..100).map(event).collect();
    let outcome = common::run(watched(config));
    delivered(&outcome);
    assert!(outcome.ended_at > Time::from_us(1_000), "{}", outcome.ended_at);
    let seen = seen(&outcome);
    println!("{seen:?}, lost {}, {}", outcome.totals.lost, reordered(&outcome));
    assert!(seen.deflections[1] > 5_000, "{seen:?}");
    assert_eq!((outcome.totals.lost, seen.overtaken, reordered(&outcome)), (0, 0, 0));
}

/// Queues that have no room for data have some for markers, those of other switches among them.
#[test]
fn markers_find_room_where_data_does_not() {
    let topology = tree();
    let mut config = random(topology.clone(), "dctcp", 50_000, 20, 0);
    config.switch.agent = iofd(&topology, &restless());
    config.switch.buffer = Buffer::Shared { total: 300_000, alpha: (1, 8), reserve: 0 };
    config.probes.packets = packets_at(Vec::new());
    let outcome = common::run(config);
    delivered(&outcome);
    let count = |kind: Kind, step: fn(&Step) -> bool| {
        outcome.packets.iter().filter(|record| record.packet.kind == kind && step(&record.step)).count()
    };
    let dropped = |kind| count(kind, |step| *step == Step::Event(EventKind::Drop));
    let waited = count(Kind::Marker, |step| matches!(step, Step::Queued(_)));
    let found = (dropped(Kind::Data), dropped(Kind::Marker), waited);
    println!("{found:?}");
    assert!(found.0 > 1_000 && found.1 == 0 && found.2 > 500, "{found:?}");
}

#[test]
fn digests_do_not_depend_on_threads_nor_on_being_watched() {
    for topology in [tree(), ring(2)] {
        let with = |threads, watch: bool| {
            let mut config = random(topology.clone(), "constant-window", 10_000, 40, 9);
            config.switch.agent = iofd(&topology, &restless());
            config.switch.pfc = Some(pfc());
            (config.switch.priorities, config.switch.virtual_channels) = (4, 2);
            config.classes[0].ack_priority = Some(0);
            config.classes[0].priority = 1;
            config.threads = threads;
            common::run(if watch { watched(config) } else { config })
        };
        let outcome = with(1, false);
        delivered(&outcome);
        for (threads, watch) in [(2, false), (3, true), (4, false)] {
            assert_eq!(with(threads, watch).digest, outcome.digest);
        }
    }
}

#[test]
fn a_full_table_deflects_fewer_and_keeps_order() {
    let with = |entries| {
        let topology = leaves();
        let mut given = restless();
        given.push(("table_entries", Raw::Integer(entries)));
        let mut config = random(topology.clone(), "constant-window", 30_000, 40, 2);
        config.switch.agent = iofd(&topology, &given);
        let outcome = common::run(watched(config));
        delivered(&outcome);
        assert_eq!((seen(&outcome).overtaken, reordered(&outcome)), (0, 0));
        outcome.totals.deflections
    };
    let (few, many) = (with(1), with(1024));
    assert!(0 < few && few < many * 4 / 5, "{few} {many}");
}

#[test]
fn who_never_deflects_changes_nothing() {
    for topology in common::every_topology() {
        let with = |agent| {
            let mut config = random(topology.clone(), "dctcp", 3_000, 40, 4);
            config.switch.agent = agent;
            config.switch.ecn = Ecn::Step { at: Size::Bytes(30_000) };
            // But the ideal time, which is that of all ways that a flow may be led.
            let outcome = common::run(config);
            let flows = outcome.flows.into_iter().map(|flow| FlowRecord { ideal: None, ..flow });
            (flows.collect::<Vec<_>>(), Totals { events: 0, ..outcome.totals })
        };
        let idle = with(iofd(&topology, &[("deflect_above", text("1s"))]));
        let never = with(iofd(
            &topology,
            &[("deflect_above", text("0ns")), ("deflect_below", text("0ns")), ("max_deflections", Raw::Integer(0))],
        ));
        assert_eq!(with(AgentParameters::None), idle);
        assert_eq!(never, idle);
    }
}

// ---- Use ---------------------------------------------------------------------------------------------------

/// Two flows whose hashes collide on one of two spines have half of its rate each; one of them takes the other spine,
/// and both have all of a link.
#[test]
fn a_collision_of_hashes_is_undone() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link, fabric_links: 1 };
    let topology = fabric.build().expect("a good topology");
    let with = |seed, agent| {
        let mut config = config(topology.clone(), "dctcp", &[]);
        config.seed = seed;
        config.host.mtu = MTU;
        config.classes = vec![common::class(&topology, MTU, "dctcp", &[])];
        config.switch.ecn = Ecn::Step { at: Size::Bytes(200_000) };
        config.switch.agent = agent;
        config.flows = vec![flow(0, 2, 20_000_000), flow(1, 3, 20_000_000)];
        let outcome = common::run(config);
        delivered(&outcome);
        outcome
    };
    let slowdown = |outcome: &Outcome| {
        let of =
            |flow: &incast_sim::probe::FlowRecord| common::took(flow).as_us_f64() / common::ideal(flow).as_us_f64();
        outcome.flows.iter().map(of).fold(0.0, f64::max)
    };
    let collides = |seed: &u64| slowdown(&with(*seed, AgentParameters::None)) > 1.5;
    let seed = (0..20).find(collides).expect("every other seed");
    let (before, after) = (with(seed, AgentParameters::None), with(seed, iofd(&topology, &[])));
    let (slow, fast) = (slowdown(&before), slowdown(&after));
    println!("seed {seed}: {slow:.2} and {fast:.2}; {} deflections", after.totals.deflections);
    assert!(slow > 1.9 && fast < 1.05, "{slow} {fast}");
    assert_eq!((reordered(&after), after.totals.drops), (0, 0));
    // One of them was deflected, all the time but for the beginning.
    let mut deflections = [after.flows[0].deflections, after.flows[1].deflections];
    deflections.sort_unstable();
    assert!(deflections[0] == 0 && deflections[1] > 19_000, "{deflections:?}");
    assert!(
        after.totals.marks_fabric + after.totals.marks_edge < before.totals.marks_edge + before.totals.marks_fabric
    );
}

/// Two flows from different leaves meet at the only port of a spine to the third leaf. No leaf has a queue, so that nothing
/// is deflected; with a message of the spine one of them takes the other spine.
#[test]
fn a_collision_behind_the_spine_is_undone_by_isolation_messages() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link, fabric_links: 1 };
    let topology = fabric.build().expect("a good topology");
    let by = |seed, given: &[(&str, Raw)]| {
        let mut config = config(topology.clone(), "dctcp", &[]);
        config.seed = seed;
        config.host.mtu = MTU;
        config.classes = vec![common::class(&topology, MTU, "dctcp", &[])];
        config.switch.ecn = Ecn::Step { at: Size::Bytes(200_000) };
        config.switch.agent = iofd(&topology, given);
        config.flows = vec![flow(0, 4, 20_000_000), flow(2, 5, 20_000_000)];
        let outcome = common::run(config);
        delivered(&outcome);
        assert_eq!((reordered(&outcome), outcome.totals.drops), (0, 0));
        let slowdown = |flow: &FlowRecord| common::took(flow).as_us_f64() / common::ideal(flow).as_us_f64();
        (outcome.flows.iter().map(slowdown).fold(0.0, f64::max), outcome.totals.deflections)
    };
    let seed = (0..20).find(|seed| by(*seed, &[]).0 > 1.5).expect("every other seed");
    let (without, with) = (by(seed, &[]), by(seed, &[("isolation_messages", Raw::Flag(true))]));
    println!("seed {seed}: {without:?} and {with:?}");
    assert!(without.0 > 1.9 && without.1 == 0, "{without:?}");
    assert!(with.0 < 1.1 && with.1 > 10_000, "{with:?}");
}

// ---- Virtual channels --------------------------------------------------------------------------------------

/// Everybody sends to the switch after the next, two links clockwise.
fn around(hosts: u32, longer: Option<bool>, channels: u8) -> Config {
    let topology = ring(hosts);
    let mut config = unlimited(topology.clone());
    config.host.mtu = MTU;
    config.classes = vec![common::class(&topology, MTU, "constant-window", &[("window", text("1GB"))])];
    config.switch.pfc = Some(pfc());
    (config.switch.priorities, config.switch.virtual_channels) = (8, channels);
    let mut given = restless();
    given.push(("loop_free_alternates", Raw::Flag(longer == Some(true))));
    if longer.is_some() {
        config.switch.agent = iofd(&topology, &given);
    }
    let hosts = topology.hosts;
    config.flows = (0..hosts).map(|host| flow(host, (host + hosts * 2 / 5) % hosts, 2_000_000)).collect();
    // Nobody takes a long wait for a loss.
    config.host.rto_min = Time::from_ms(100);
    config.end = Time::from_ms(200);
    config
}

#[test]
fn a_ring_with_flow_control_needs_channels_by_its_dateline() {
    let stuck = common::run(around(3, None, 1));
    assert!(stuck.deadlock.is_some() && !stuck.complete);
    // More queues that everybody uses alike, as one for each deflection would be, do not help; a dateline does.
    for channels in [2, 3, 4] {
        let outcome = common::run(around(3, None, channels));
        delivered(&outcome);
        assert_eq!((&outcome.deadlock, outcome.totals.pfc_cycles, outcome.totals.drops), (&None, 0, 0));
        assert!(outcome.totals.pauses > 1_000);
    }
}

#[test]
fn a_ring_with_deflection_does_not_lock_up() {
    for hosts in [2, 3, 5] {
        for (longer, channels) in [(false, 2), (true, 2), (true, 3), (true, 4)] {
            let outcome = common::run(watched(around(hosts, Some(longer), channels)));
            delivered(&outcome);
            assert_eq!((&outcome.deadlock, outcome.totals.pfc_cycles, outcome.totals.drops), (&None, 0, 0));
            let seen = seen(&outcome);
            println!("{hosts} {longer} {channels}: {:?} in {}", seen.deflections, outcome.ended_at);
            assert_eq!((seen.overtaken, reordered(&outcome)), (0, 0));
            // Of a ring of five no two paths are equally long.
            assert_eq!(outcome.totals.deflections > 0, longer);
        }
    }
}

#[test]
fn what_cannot_be_kept_in_order_or_could_lock_up_is_refused() {
    let refusal = |config: Config| match simulate(config) {
        Err(ConfigError::Value { what, found, allowed }) => (what, found, allowed),
        other => panic!("{:?}", other.map(|outcome| outcome.totals)),
    };
    let (what, found, allowed) = refusal(around(3, Some(false), 1));
    assert_eq!((what.as_str(), found.as_str()), ("switch.virtual_channels", "1"));
    assert!(allowed.starts_with("2 or more"), "{allowed}");
    // Without flow control nothing locks up.
    let mut lossy = around(3, Some(false), 1);
    lossy.switch.pfc = None;
    delivered(&common::run(lossy));
    assert_eq!(refusal(around(3, None, 9)).2, "1 to 8: switch.priorities are the queues of a port");
    assert_eq!(refusal(around(3, None, 0)).0, "switch.virtual_channels");
    let mut low = around(3, None, 4);
    low.classes[0].priority = 2;
    assert!(refusal(low).2.contains("below the 2 priorities"));
    for balancing in [LoadBalancing::Spray, LoadBalancing::SprayPermutation, LoadBalancing::SourceRouted] {
        let mut config = around(3, Some(false), 2);
        config.switch.load_balancing = balancing;
        assert_eq!(refusal(config).0, "switch.load_balancing");
    }
    let mut packets = around(3, Some(false), 2);
    (packets.switch.pfc, packets.switch.buffer) = (None, Buffer::PerPortPackets { packets: 50 });
    assert_eq!(refusal(packets).0, "switch.buffer");
    // Three channels: over the hills and back again.
    let text = "host x\nhost y\nhost z\nswitch a\nswitch b\nswitch c\nswitch e\nswitch d\nlink x a 1Gbps 1us\n\
        link y d 1Gbps 1us\nlink z c 1Gbps 1us\nlink a b 1Gbps 1us\nlink b c 1Gbps 1us\nlink c e 1Gbps 1us\nlink e d 1Gbps 1us\n";
    let topology = parse(text).expect("a good file");
    let mut config = unlimited(topology.clone());
    config.switch.pfc = Some(pfc());
    config.switch.agent = iofd(&topology, &[]);
    config.flows = vec![flow(0, 1, 100_000)];
    assert!(refusal(config).2.starts_with("2 or more"));
}
