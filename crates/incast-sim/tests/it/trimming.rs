//! Packet trimming: who loses a payload, what becomes of headers, and that nothing else is lost.

use crate::common::{self, every_topology, flow, star, text};
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, ClassConfig, Ecn, Limit, LinkEvent, LoadBalancing, MarkAt, Size, Trim, Victim},
    outcome::EventKind,
    probe::PacketFilter,
    simulate,
};
use incast_units::{Bytes, Time};
use proptest::{prelude::*, test_runner::TestRunner};

/// Random fabrics that are tried.
const CASES: u32 = 96;

/// The defaults of NDP: 8 packets of data, and as many bytes of headers as two such queues.
fn ndp() -> Trim {
    Trim { queue: Limit::Packets(8), header_queue: Some(Limit::Bytes(2 * 8 * 4_166)), ..Trim::default() }
}

/// Flows with a fixed window over switches that trim; acknowledgements share the queue of headers.
fn trimming(topology: incast_sim::topology::Topology, window: &str, trim: Trim) -> Config {
    let mut config = common::config(topology, "constant-window", &[("window", text(window))]);
    config.switch.priorities = 3;
    config.switch.trim = Some(trim);
    let class = config.classes.remove(0);
    config.classes = vec![ClassConfig { priority: 1, ack_priority: Some(0), trimmable: true, ..class }];
    config.host.rto_min = Time::from_us(200);
    config
}

/// All others send to host 0 at once.
fn incast(config: &mut Config, bytes: u64) {
    config.flows = (1..config.topology.hosts).map(|source| flow(source, 0, bytes)).collect();
}

fn events(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn what_the_data_queue_does_not_hold_is_trimmed_and_not_dropped() {
    // One packet each: of 40 that arrive together one is in service and 8 wait; the others arrive as headers.
    for (victim, whole) in [(Victim::Arriving, 9), (Victim::Tail, 9), (Victim::Either, 9)] {
        let mut config = trimming(star(41), "1GB", Trim { victim, ..ndp() });
        incast(&mut config, 4096);
        config.probes.events = true;
        config.end = Time::from_us(20);
        let outcome = common::run(config);
        let totals = &outcome.totals;
        assert_eq!((totals.drops, totals.trims, totals.lost), (0, 40 - whole, 0), "{victim:?}");
        // 4,096 B of payload and 70 of headers become 70.
        assert_eq!(totals.trimmed_bytes, (40 - whole) * 4096);
        assert_eq!(events(&outcome, EventKind::Trim) as u64, totals.trims);
        assert_eq!(outcome.flows.iter().filter(|flow| flow.delivered.is_some()).count() as u64, whole);
    }
}

#[test]
fn each_victim_is_the_one_that_the_rule_names() {
    // Packets of hosts 1 to 20 arrive in this order, one after the other, while the link is busy: with links of one
    // rate the queue grows as one host more begins to send every 100 ns.
    let survivors = |victim| {
        let mut config = trimming(star(21), "1GB", Trim { victim, ..ndp() });
        incast(&mut config, 4096);
        for (index, flow) in config.flows.iter_mut().enumerate() {
            flow.start = Time::from_ns(10 * index as u64);
        }
        config.end = Time::from_us(20);
        let outcome = common::run(config);
        let whole = outcome.flows.iter().filter(|flow| flow.delivered.is_some());
        whole.map(|flow| flow.source).collect::<Vec<_>>()
    };
    // Host 1 is in service, 2 to 9 wait.
    assert_eq!(survivors(Victim::Arriving), (1..=9).collect::<Vec<_>>());
    // The ninth place in the queue is taken by each that comes.
    assert_eq!(survivors(Victim::Tail), [1, 2, 3, 4, 5, 6, 7, 8, 20]);
    let either = survivors(Victim::Either);
    assert_eq!(either[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(either.len(), 9);
}

#[test]
fn headers_arrive_before_the_data_that_waited() {
    // Strict: all headers that there are go before the next data packet; weighted: no more than the weight.
    let order = |header_weight| {
        let mut config = trimming(star(41), "1GB", Trim { header_weight, ..ndp() });
        incast(&mut config, 4096);
        config.end = Time::from_us(20);
        config.probes.packets =
            Some(PacketFilter { flow: None, ports: vec![(41, 0)], from: Time::ZERO, until: Time::MAX, most: 1_000 });
        let outcome = common::run(config);
        let sent = outcome
            .packets
            .iter()
            .filter(|record| matches!(record.step, incast_sim::outcome::Step::Sent { .. }) && record.node == 41);
        sent.map(|record| record.packet.wire == 70).collect::<Vec<bool>>()
    };
    let run = |order: &[bool]| order.iter().skip(1).take_while(|header| **header).count();
    assert_eq!(run(&order(None)), 31);
    assert_eq!(run(&order(Some(10))), 10);
    assert_eq!(order(Some(10))[11..14], [false, true, true], "one data packet in between");
}

#[test]
fn headers_without_room_go_back_once_or_are_dropped() {
    let run = |return_to_sender| {
        let trim = Trim { header_queue: Some(Limit::Packets(4)), return_to_sender, ..ndp() };
        let mut config = trimming(star(41), "1GB", trim);
        incast(&mut config, 4096);
        config.probes.events = true;
        config.end = Time::from_ms(50);
        common::run(config)
    };
    let (dropping, returning) = (run(false), run(true));
    assert!(dropping.totals.drops > 20 && dropping.totals.bounces == 0, "{:?}", dropping.totals);
    assert!(returning.totals.bounces > 20, "{:?}", returning.totals);
    assert_eq!(events(&returning, EventKind::Bounce) as u64, returning.totals.bounces);
    common::delivered(&dropping);
    common::delivered(&returning);
    // What comes back is sent again before any timer knows of it.
    let retried = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.timeouts).sum::<u32>();
    assert!(retried(&returning) < retried(&dropping), "{} {}", retried(&returning), retried(&dropping));
}

#[test]
fn what_is_left_of_a_packet_has_a_size_and_short_packets_stay_whole() {
    let run = |bytes, size: Option<u64>| {
        let mut config = trimming(star(41), "1GB", Trim { size: size.map(Bytes::new), ..ndp() });
        incast(&mut config, bytes);
        let outcome = common::run(config);
        common::delivered(&outcome);
        outcome.totals
    };
    // Full packets of 4,166 B, of which 70 B of headers or so many bytes are left.
    for (size, left) in [(None, 70), (Some(64), 70), (Some(128), 128), (Some(1024), 1024)] {
        let totals = run(4_096, size);
        assert_eq!(totals.trimmed_bytes, totals.trims * (4_166 - left), "{size:?}");
        assert!(totals.trims > 20, "{size:?}");
    }
    // Packets of 570 B: shorter than what would be left of them, they go on whole, ahead of the queue that was full.
    let (short, kept) = (run(500, None), run(500, Some(1024)));
    assert!(short.trims > 20, "{short:?}");
    assert_eq!((kept.trims, kept.trimmed_bytes, kept.drops), (0, 0, 0));
}

#[test]
fn only_what_may_be_trimmed_is() {
    let mut config = trimming(star(21), "1GB", ndp());
    config.classes.push(ClassConfig { trimmable: false, ..config.classes[0].clone() });
    incast(&mut config, 400_000);
    config.flows.iter_mut().for_each(|flow| flow.class = (flow.source % 2) as u16);
    config.end = Time::from_ms(100);
    let outcome = common::run(config);
    assert!(outcome.totals.drops > 0 && outcome.totals.trims > 0);
    common::delivered(&outcome);
    // Nothing is trimmed where nothing may be.
    let mut config = trimming(star(21), "1GB", ndp());
    config.classes[0].trimmable = false;
    incast(&mut config, 40_000);
    let outcome = common::run(config);
    assert!(outcome.totals.drops > 0);
    assert_eq!((outcome.totals.trims, outcome.totals.bounces), (0, 0));
}

#[test]
fn a_buffer_of_packets_holds_so_many() {
    let mut config = common::unlimited(star(41));
    config.switch.buffer = Buffer::PerPortPackets { packets: 12 };
    incast(&mut config, 4096);
    config.end = Time::from_us(20);
    let outcome = common::run(config);
    assert_eq!((outcome.totals.drops, outcome.totals.max_queue_bytes), (27, 13 * 4_166));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = trimming(star(3), "1GB", ndp());
        incast(&mut config, 1000);
        change(&mut config);
        simulate(config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&|_| {}), "");
    let one_priority = |config: &mut Config| {
        config.switch.priorities = 1;
        config.classes[0].priority = 0;
    };
    assert!(refused(&one_priority).contains("at least 2"));
    let trim = |config: &mut Config, trim| config.switch.trim = Some(trim);
    assert!(refused(&|config| trim(config, Trim { queue: Limit::Packets(0), ..ndp() })).contains("trim.queue"));
    assert!(
        refused(&|config| trim(config, Trim { header_queue: Some(Limit::Bytes(0)), ..ndp() })).contains("header_queue")
    );
    assert!(refused(&|config| trim(config, Trim { header_weight: Some(0), ..ndp() })).contains("header_weight"));
    for size in [0, 63, 65_536] {
        assert!(refused(&|config| trim(config, Trim { size: Some(Bytes::new(size)), ..ndp() })).contains("trim.size"));
    }
    let no_places = |config: &mut Config| config.switch.buffer = Buffer::PerPortPackets { packets: 0 };
    assert!(refused(&no_places).contains("at least 1"));
    let too_many = |config: &mut Config| config.switch.buffer = Buffer::PerPortPackets { packets: 1 << 24 };
    assert!(refused(&too_many).contains("below 2^24"));
    assert!(refused(&|config| trim(config, Trim { queue: Limit::Packets(u32::MAX), ..ndp() })).contains("below 2^24"));
    let pfc = |config: &mut Config| {
        let threshold = incast_sim::config::Threshold::Static { xoff: Size::Bytes(20_000), xon: None };
        config.switch.pfc = Some(incast_sim::config::Pfc::new(threshold));
    };
    assert!(refused(&pfc).contains("switch.pfc"));
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![(1u32..20).prop_map(Limit::Packets), (500u64..80_000).prop_map(Limit::Bytes)]
}

fn trim() -> impl Strategy<Value = Trim> {
    let victim = prop_oneof![Just(Victim::Arriving), Just(Victim::Tail), Just(Victim::Either)];
    let size = proptest::option::of((64u64..4_500).prop_map(Bytes::new));
    (limit(), limit(), victim, proptest::option::of(1u32..12), any::<bool>(), size).prop_map(
        |(queue, headers, victim, header_weight, return_to_sender, size)| Trim {
            queue,
            header_queue: Some(headers),
            victim,
            header_weight,
            return_to_sender,
            size,
        },
    )
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        Just(Buffer::Unlimited),
        (5_000u64..100_000).prop_map(|bytes| Buffer::PerPort { bytes }),
        (1u32..30).prop_map(|packets| Buffer::PerPortPackets { packets }),
        (10_000u64..300_000, 1u32..5).prop_map(|(total, alpha)| Buffer::Shared {
            total,
            alpha: (alpha, 2),
            reserve: 0
        }),
    ]
}

/// What else differs between runs.
#[derive(Clone, Debug)]
struct Rest {
    topology: usize,
    seed: u64,
    balancing: usize,
    dequeue: bool,
    failure: bool,
    window: u64,
    flows: Vec<(u32, u32, u64, u64)>,
}

fn rest() -> impl Strategy<Value = Rest> {
    let flows = proptest::collection::vec((0u32..64, 0u32..64, 1u64..200_000, 0u64..20_000), 2..25);
    (0usize..8, any::<u64>(), 0usize..3, any::<bool>(), any::<bool>(), 1u64..60, flows).prop_map(
        |(topology, seed, balancing, dequeue, failure, window, flows)| Rest {
            topology,
            seed,
            balancing,
            dequeue,
            failure,
            window,
            flows,
        },
    )
}

fn random_run(trim: &Trim, buffer: Buffer, rest: &Rest) -> Config {
    let topology = every_topology().swap_remove(rest.topology);
    let hosts = topology.hosts;
    let mut config = trimming(topology, &format!("{}B", rest.window * 4096), trim.clone());
    let class = config.classes[0].clone();
    config.classes = vec![
        class.clone(),
        ClassConfig { priority: 2, ack_priority: Some(1), ..class.clone() },
        ClassConfig { trimmable: false, ack_priority: None, ..class },
    ];
    config.switch.buffer = buffer;
    config.switch.ecn = Ecn::Red { min: Size::Bytes(5_000), max: Size::Bytes(50_000), p: 0.5 };
    config.switch.mark_at = if rest.dequeue { MarkAt::Dequeue } else { MarkAt::Enqueue };
    config.switch.load_balancing =
        [LoadBalancing::Ecmp, LoadBalancing::Spray, LoadBalancing::SprayPermutation][rest.balancing];
    config.seed = rest.seed;
    for (index, (source, destination, bytes, start)) in rest.flows.iter().enumerate() {
        // Half of them are an incast.
        let destination = if index % 2 == 0 { 0 } else { destination % hosts };
        let source = if source % hosts == destination { (destination + 1) % hosts } else { source % hosts };
        let (start, class) = (Time::from_ns(*start), (index % 3) as u16);
        config.flows.push(FlowSpec { start, class, ..flow(source, destination, *bytes) });
    }
    if rest.failure {
        let cable = config.topology.cables.len() - 1;
        let events = [(7, false), (60, true)];
        let events = events.map(|(us, up)| LinkEvent { at: Time::from_us(us), cable, up });
        config.link_events.extend(events);
    }
    config.end = Time::from_ms(5);
    config
}

/// No byte is lost from the books; neither threads nor departures that are put off change anything.
#[test]
fn books_balance_and_nobody_sees_what_is_put_off() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
    let (trimmed, bounced) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    let result = runner.run(&(trim(), buffer(), rest()), |(trim, buffer, rest)| {
        let lazy = common::run(random_run(&trim, buffer, &rest));
        let threads = common::run(Config { threads: 2, ..random_run(&trim, buffer, &rest) });
        prop_assert_eq!(&lazy.digest, &threads.digest);
        let mut watched = random_run(&trim, buffer, &rest);
        // Where packets are recorded, each departure is an event.
        watched.probes.packets =
            Some(PacketFilter { flow: None, ports: Vec::new(), from: Time::ZERO, until: Time::MAX, most: 0 });
        let eager = common::run(watched);
        prop_assert_eq!(&lazy.digest, &eager.digest);
        prop_assert_eq!(lazy.totals.bounces, eager.totals.bounces);
        prop_assert!(trim.return_to_sender || lazy.totals.bounces == 0);
        trimmed.set(trimmed.get() + u32::from(lazy.totals.trims > 0));
        bounced.set(bounced.get() + u32::from(lazy.totals.bounces > 0));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (trimmed, bounced) = (trimmed.get(), bounced.get());
    println!("{trimmed} of {cases} fabrics trimmed, {bounced} sent headers back");
    // One fabric in ten or so returns headers: a share of them would fail by chance once in a hundred times.
    assert!(trimmed >= cases / 2 && bounced > 0, "{trimmed} and {bounced} of {cases}");
}
