//! Results are a function of the configuration: not of threads, processes, probes or how nodes share domains.

use crate::common::{self, config, every_topology, flow, link, link_event, text};
use incast_cc::{
    law::Recovery,
    parameters::Raw,
    registry::{AgentParameters, LAWS, Scheduler},
    testing::exerciser::Exerciser,
    testing::paced_tokens::PacedTokens,
};
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, ClassConfig, Ecn, Limit, LinkEvent, LoadBalancing, MarkAt, Probes, Size, Ties, Trim},
    engine::random::Stream,
    outcome::{EventKind, PacketRecord, Step},
    packet::Kind,
    probe::PacketFilter,
    topology::{FatTree, Topology, file::parse},
};
use incast_units::Time;
use std::{
    collections::BTreeSet,
    fmt::{Debug, Write as _},
    process::Command,
};

/// A busy run: an incast, random pairs, marks, drops, loss and retransmissions.
fn busy(topology: Topology, law: &str, seed: u64) -> Config {
    let parameters: &[(&str, Raw)] = match law {
        // Otherwise one window would be all that happens, under any law.
        "credit" => &[("unscheduled", text("20KB"))],
        "constant-rate" => &[("rate", text("30Gbps"))],
        "constant-window" => &[("window", text("30KB"))],
        _ => &[],
    };
    let hosts = u64::from(topology.hosts);
    let mut config = config(topology, law, parameters);
    let mut random = Stream::new(seed, 1, 2);
    for source in 1..hosts as u32 {
        config.flows.push(flow(source, 0, 40_000));
    }
    for _ in 0..12 {
        let source = random.below(hosts) as u32;
        let destination = (source + 1 + random.below(hosts - 1) as u32) % hosts as u32;
        let start = Time::from_ps(random.below(50_000_000));
        let bytes = 1 + random.below(120_000);
        config.flows.push(FlowSpec { start, ..flow(source, destination, bytes) });
    }
    // Where receivers acknowledge flows only, fewer packets can be lost.
    config.topology.cables[0].link.loss = if matches!(law, "homa" | "phost" | "polo") { 0.05 } else { 0.01 };
    config.switch.buffer = Buffer::Shared { total: 150_000, alpha: (1, 1), reserve: 0 };
    config.switch.ecn = Ecn::Red { min: Size::Bytes(5_000), max: Size::Bytes(50_000), p: 0.5 };
    config.host.rto_min = Time::from_us(100);
    config.end = Time::from_ms(20);
    config.seed = seed;
    config
}

/// Everything but the digest that two equal runs must agree on.
fn compare(one: &Outcome, other: &Outcome, what: &str) {
    same(&one.flows, &other.flows, what);
    assert_eq!(one.totals, other.totals, "{what}");
    assert_eq!(one.digest, other.digest, "{what}");
    assert_eq!((one.ended_at, one.complete), (other.ended_at, other.complete), "{what}");
    same(&one.ports, &other.ports, what);
    same(&one.rates, &other.rates, what);
    same(&one.events, &other.events, what);
}

/// Says where two lists differ, and not all that is in them.
fn same<T: PartialEq + Debug>(one: &[T], other: &[T], what: &str) {
    if let Some(index) = (0..one.len().max(other.len())).find(|index| one.get(*index) != other.get(*index)) {
        panic!("{what}: {index} of {}: {:?} or {:?}", one.len(), one.get(index), other.get(index));
    }
}

fn on_threads(make: impl Fn() -> Config, what: &str) -> Outcome {
    let one = common::run(make());
    for threads in [2, 4] {
        let other = common::run(Config { threads, ..make() });
        compare(&one, &other, &format!("{what} on {threads} threads"));
    }
    one
}

#[test]
fn threads_change_nothing_on_any_topology_under_any_law() {
    for topology in every_topology() {
        let mut digests = BTreeSet::new();
        for law in LAWS {
            let what = format!("{} on {}", law.name, topology.kind);
            let outcome = on_threads(|| busy(topology.clone(), law.name, 3), &what);
            assert!(outcome.totals.lost > 0 || outcome.totals.drops > 0, "{what}: the run is too tame to prove much");
            digests.insert(outcome.digest);
        }
        // Two laws may agree where nothing limits either; all of them cannot.
        assert!(digests.len() > LAWS.len() / 2, "laws differ, and so must the digests, on {}", topology.kind);
    }
}

/// What senders tell their receivers, shares that are told apart from acknowledgements, and marks by the place where
/// they were set.
#[test]
fn threads_change_nothing_with_words_and_shares() {
    for topology in every_topology() {
        let make = || {
            let mut config = busy(topology.clone(), "dasr", 5);
            let on = Raw::Flag(true);
            let looks = [("look_ahead", on.clone()), ("water_filling", on), ("weight", Raw::Integer(3))];
            let mut class = common::class(&topology, common::MTU, "dasr", &looks);
            class.scheduler = Some(0);
            config.classes.push(class);
            for (index, flow) in config.flows.iter_mut().enumerate() {
                (flow.class, flow.request) = ((index % 2) as u16, 9);
                flow.bytes *= 5;
            }
            config.probes.rates = Some((Time::from_us(5), 1));
            config
        };
        let outcome = on_threads(make, &format!("words on {}", topology.kind));
        assert!(outcome.rates.iter().any(|sample| sample.estimate > Some(2.0)), "{}", topology.kind);
    }
}

#[test]
fn the_seed_changes_the_run() {
    let fabric = || FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let digest = |seed| common::run(Config { seed, ..busy(fabric(), "dctcp", 3) }).digest;
    assert_eq!(digest(3), digest(3));
    assert_ne!(digest(3), digest(4));
}

#[test]
fn threads_change_nothing_with_everything_switched_on() {
    let make = || everything("dctcp");
    let outcome = on_threads(make, "everything");
    assert!(!outcome.ports.is_empty() && !outcome.rates.is_empty() && !outcome.events.is_empty());
}

/// As RoCE NICs have it, on every topology, with loss, drops and links that go down and up.
#[test]
fn threads_change_nothing_with_go_back_n() {
    for topology in every_topology() {
        for law in LAWS {
            let make = || {
                let mut config = busy(topology.clone(), law.name, 7);
                config.classes[0].recovery = Recovery::GoBackN;
                let event = |us, up| LinkEvent { at: Time::from_us(us), cable: 1, up };
                config.link_events = vec![event(15, false), event(40, true)];
                config
            };
            let what = format!("go-back-n, {} on {}", law.name, topology.kind);
            let outcome = on_threads(make, &what);
            assert!(outcome.totals.lost > 0 || outcome.totals.drops > 0, "{what}");
            let again: u64 = outcome.flows.iter().map(|flow| flow.retransmitted_bytes).sum();
            assert!(again > 0, "{what}: nothing was sent again");
            // And probes do not change it either.
            let probed = common::run(Config { probes: probes(&topology), ..make() });
            assert_eq!(probed.digest, outcome.digest, "{what}");
        }
    }
    let make = |recovery| {
        let mut config = everything("dctcp");
        config.classes[0].recovery = recovery;
        config
    };
    let outcome = on_threads(|| make(Recovery::GoBackN), "everything and go-back-n");
    assert_ne!(outcome.digest, common::run(make(Recovery::SelectiveRepeat)).digest);
}

/// Receivers that pace, senders that give up, agents with a timer.
#[test]
fn threads_change_nothing_with_tokens_and_timers() {
    let make = || {
        let mut config = everything("credit");
        let mut tokens = PacedTokens::new(Time::from_ns(400), 20_000, Time::from_us(50));
        tokens.lifetime = Time::from_us(15);
        config.drive(Scheduler::PacedTokens(tokens));
        config.host.give_up_after = Some(4);
        config.switch.agent = AgentParameters::Exerciser(Exerciser {
            report_every: Time::from_us(3),
            deflect_every: 11,
            mark_every: 5,
            ..Exerciser::default()
        });
        config
    };
    let outcome = on_threads(make, "tokens and timers");
    assert!(outcome.totals.created_bytes > 0 && outcome.totals.deflections > 0);
}

/// A busy run with sprayed packets, telemetry, coalesced acknowledgements, links that go down and up, and all probes.
fn everything(law: &str) -> Config {
    let topology = FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let mut config = busy(topology, law, 5);
    config.switch.load_balancing = LoadBalancing::Spray;
    config.switch.telemetry = true;
    config.host.ack_every = 4;
    config.host.ack_delay = Time::from_us(20);
    let event = |us, up| link_event(&config.topology, Time::from_us(us), "edge0-agg1", up);
    config.link_events = vec![event(20, false), event(60, true), event(61, false), event(90, true)];
    config.probes = probes(&config.topology);
    config
}

fn probes(topology: &Topology) -> Probes {
    let ports = topology.ports();
    let every = (topology.hosts..topology.nodes())
        .flat_map(|node| (0..ports.of(node).len() as u16).map(move |port| (node, port)));
    Probes {
        ports: Some((Time::from_ns(700), every.collect())),
        rates: Some((Time::from_ns(900), 1)),
        events: true,
        packets: None,
    }
}

#[test]
fn probes_change_nothing() {
    for topology in every_topology() {
        for law in ["dctcp", "constant-rate", "credit"] {
            let what = format!("{law} on {}", topology.kind);
            let make = || busy(topology.clone(), law, 9);
            let plain = common::run(make());
            let probed = common::run(Config { probes: probes(&topology), ..make() });
            assert_eq!(plain.digest, probed.digest, "{what}");
            assert_eq!((&plain.flows, plain.totals), (&probed.flows, probed.totals), "{what}");
            assert!(plain.ports.is_empty() && plain.rates.is_empty() && plain.events.is_empty());
            assert!(!probed.ports.is_empty() && !probed.rates.is_empty(), "{what}");
            // Not every law meets drops, marks or timeouts here.
            assert!(!probed.events.is_empty() || law != "dctcp", "{what}");
            // And each probe alone, at another pace: the digest holds no samples.
            let Probes { ports, .. } = probes(&topology);
            let slower = Probes { ports: ports.map(|ports| (Time::from_us(5), ports.1)), ..Probes::default() };
            assert_eq!(common::run(Config { probes: slower, ..make() }).digest, plain.digest, "{what}");
        }
    }
}

fn every_packet() -> PacketFilter {
    let (from, until) = (Time::ZERO, Time::MAX);
    PacketFilter { flow: None, ports: Vec::new(), from, until, most: usize::MAX }
}

/// Recorded switches have an event for each departure, and recorded links do their sums the long way.
#[test]
fn recording_packets_changes_nothing() {
    for topology in every_topology() {
        for law in ["dctcp", "constant-rate", "credit"] {
            let what = format!("{law} on {}", topology.kind);
            let plain = common::run(busy(topology.clone(), law, 9));
            let record = |filter: PacketFilter| {
                let make = || {
                    let probes = Probes { packets: Some(filter.clone()), ..Probes::default() };
                    Config { probes, ..busy(topology.clone(), law, 9) }
                };
                let outcome = common::run(make());
                assert_eq!(common::run(Config { threads: 2, ..make() }).packets, outcome.packets, "{what}");
                assert_eq!(outcome.digest, plain.digest, "{what}");
                outcome
            };
            let all = record(every_packet());
            let count =
                |is: &dyn Fn(&PacketRecord) -> bool| all.packets.iter().filter(|record| is(record)).count() as u64;
            let event = |kind| count(&|record: &PacketRecord| record.step == Step::Event(kind));
            assert_eq!((event(EventKind::Drop), event(EventKind::Lost)), (all.totals.drops, all.totals.lost));
            assert_eq!(event(EventKind::Mark), all.totals.marks_edge + all.totals.marks_fabric, "{what}");
            let injected = count(&|record| matches!(record.step, Step::Sent { .. }) && record.node < topology.hosts);
            assert_eq!(injected, all.totals.injected_packets, "{what}");
            // The longest queue is what was found by the packet that had to wait at its end.
            let found = all.packets.iter().filter_map(|record| match record.step {
                Step::Queued(found) => Some(found + u64::from(record.packet.wire)),
                _ => None,
            });
            assert_eq!(found.max(), Some(all.totals.max_queue_bytes), "{what}");

            // Answers go back to where their flow came from, and from where it goes to.
            for record in &all.packets {
                let packet = &record.packet;
                let flow = all.flows.iter().find(|flow| (flow.source, flow.sequence) == packet.flow());
                let ends = flow.map(|flow| (flow.source, flow.destination)).expect("every packet has a flow");
                let way = (packet.source, packet.destination);
                assert!(way == if packet.kind == Kind::Data { ends } else { (ends.1, ends.0) }, "{record:?}");
            }

            // A filter takes exactly what fits it.
            let flow = (1, 0);
            let port = (topology.hosts, 0);
            let wanted = |filter: &PacketFilter, record: &PacketRecord| {
                filter.flow.is_none_or(|flow| flow == record.packet.flow())
                    && filter.has_port(record.node, record.port)
                    && (filter.from..filter.until).contains(&record.time)
            };
            for filter in [
                PacketFilter { flow: Some(flow), ..every_packet() },
                PacketFilter { ports: vec![port], from: Time::from_us(3), ..every_packet() },
                PacketFilter { until: Time::from_us(30), flow: Some(flow), ports: vec![(1, 0)], ..every_packet() },
            ] {
                let expected: Vec<_> = all.packets.iter().filter(|record| wanted(&filter, record)).copied().collect();
                assert!(!expected.is_empty() || filter.from > Time::ZERO, "{what}: {filter:?}");
                let some = record(filter);
                assert_eq!(some.packets, expected, "{what}");
            }
            let cut = record(PacketFilter { most: 5, ..every_packet() });
            assert_eq!(cut.packets_left_out + cut.packets.len() as u64, all.packets.len() as u64, "{what}");
        }
    }
}

/// Switches that only forward, and those that also trim, take arrivals by a way of their own, and may know the ports of
/// those to come; recorded switches take the way of all switches.
#[test]
fn links_may_change_at_the_very_instant_of_an_arrival() {
    let fabric = || FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let trimming = |mut config: Config| {
        config.switch.trim =
            Some(Trim { queue: Limit::Packets(4), header_queue: Some(Limit::Bytes(2_000)), ..Trim::default() });
        config.switch.priorities = config.switch.priorities.max(3);
        config.switch.load_balancing = LoadBalancing::SprayPermutation;
        config
    };
    for (what, law, trims) in [("forwarding", "dctcp", false), ("trimming", "ndp", true)] {
        let mut link_events: Vec<LinkEvent> = Vec::new();
        let make = |link_events: &[LinkEvent], packets: Option<PacketFilter>, threads| {
            let config = busy(fabric(), law, 11);
            let config = if trims { trimming(config) } else { config };
            let probes = Probes { packets, ..Probes::default() };
            Config { link_events: link_events.to_vec(), probes, threads, ..config }
        };
        for turn in 0.. {
            let recorded = common::run(make(&link_events, Some(every_packet()), 1));
            for threads in [1, 3] {
                let outcome = common::run(make(&link_events, None, threads));
                assert_eq!(outcome.digest, recorded.digest, "{what}, {turn} changes, {threads} threads");
            }
            assert!(trims == (recorded.totals.trims > 0), "{what}: {:?}", recorded.totals);
            // What the first hosts send arrives at their switch, one of whose other cables goes down or comes up just
            // then.
            let after = link_events.last().map_or(Time::ZERO, |event| event.at) + Time::from_us(2);
            let arrivals = recorded.packets.iter().filter_map(|record| match record.step {
                Step::Sent { arrival, .. } if record.node < 2 => arrival,
                _ => None,
            });
            let Some(next) = arrivals.filter(|arrival| *arrival > after).min().filter(|_| turn < 12) else {
                break;
            };
            link_events.push(link_event(&fabric(), next, "edge0-agg1", turn % 2 == 1));
        }
        assert!(link_events.len() >= 6, "{what}: {link_events:?}");
    }
}

#[test]
fn samples_tell_the_truth() {
    let topology = FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let outcome = common::run(Config { probes: probes(&topology), ..busy(topology, "dctcp", 9) });
    assert!(outcome.ports.is_sorted_by_key(|sample| (sample.time, sample.node, sample.port, sample.priority)));
    assert!(outcome.rates.is_sorted_by_key(|sample| (sample.time, sample.source, sample.sequence)));
    assert!(outcome.events.is_sorted());
    let highest = outcome.ports.iter().map(|sample| sample.queue_bytes).max();
    assert!(highest > Some(0) && highest <= Some(outcome.totals.max_queue_bytes));
    let count = |kind| outcome.events.iter().filter(|event| event.kind == kind).count() as u64;
    assert_eq!(count(EventKind::Drop), outcome.totals.drops);
    assert_eq!(count(EventKind::Mark), outcome.totals.marks_edge + outcome.totals.marks_fabric);
    assert_eq!(count(EventKind::Timeout), outcome.flows.iter().map(|flow| u64::from(flow.timeouts)).sum::<u64>());
}

/// A plain switch may put off departures that nobody sees; one with an agent has an event for each. An agent
/// that does nothing must therefore change nothing, whatever else goes on.
#[test]
fn departures_that_are_put_off_change_nothing() {
    type Change = fn(&mut Config);
    let changes: [(&str, Change); 7] = [
        ("plain", |_| {}),
        ("mark at dequeue", |config| config.switch.mark_at = MarkAt::Dequeue),
        ("reserves", |config| {
            config.switch.buffer = Buffer::Shared { total: 120_000, alpha: (1, 4), reserve: 5_000 };
        }),
        ("tiny ports", |config| config.switch.buffer = Buffer::PerPort { bytes: 12_000 }),
        ("priorities", |config| {
            config.switch.priorities = 3;
            let class = |priority| ClassConfig { priority, ack_priority: Some(0), ..config.classes[0].clone() };
            config.classes = vec![class(2), class(1), class(0)];
            config.flows.iter_mut().zip([0, 1, 2].into_iter().cycle()).for_each(|(flow, class)| flow.class = class);
        }),
        ("failures", |config| {
            for cable in 0..config.topology.cables.len() {
                let pace = 9_000 + 3_001 * cable as u64;
                let event = |flap: u64| LinkEvent { at: Time::from_ns(flap * pace), cable, up: flap.is_multiple_of(2) };
                config.link_events.extend((1..=10).map(event));
            }
        }),
        ("spray and telemetry", |config| {
            config.switch.load_balancing = LoadBalancing::Spray;
            config.switch.telemetry = true;
        }),
    ];
    for topology in every_topology() {
        for law in ["dctcp", "cubic", "constant-rate"] {
            for (name, change) in changes {
                let make = |agent| {
                    let mut config = busy(topology.clone(), law, 4);
                    config.probes = probes(&topology);
                    change(&mut config);
                    config.switch.agent = agent;
                    common::run(config)
                };
                let (lazy, mut eager) =
                    (make(AgentParameters::None), make(AgentParameters::Exerciser(Exerciser::default())));
                eager.totals.events = lazy.totals.events;
                compare(&lazy, &eager, &format!("{name}, {law} on {}", topology.kind));
            }
        }
    }
}

/// Delays from 5 ns, which merges nodes into one domain, to 50 us, which is many windows.
fn mixed_delays() -> Topology {
    let mut text = String::new();
    for (rack, delay) in [("a", "5ns"), ("b", "100ns"), ("c", "1us"), ("d", "333ns")] {
        let _ = writeln!(text, "switch {rack}\nlink {rack} x 200Gbps 50us\nlink {rack} y 200Gbps 7us");
        for host in 0..4 {
            let _ = writeln!(text, "host {rack}{host}\nlink {rack}{host} {rack} 100Gbps {delay}");
        }
    }
    text.push_str("switch x\nswitch y\nlink x y 100Gbps 20ns\n");
    parse(&text).expect("a good topology")
}

#[test]
fn delays_of_five_nanoseconds_and_fifty_microseconds_mix() {
    for law in LAWS {
        let make = || Config { end: Time::from_ms(100), ..busy(mixed_delays(), law.name, 11) };
        let outcome = on_threads(make, law.name);
        assert!(outcome.flows.iter().any(|flow| flow.delivered.is_some()));
    }
    // And exactly as long as arithmetic says.
    for (source, destination) in [(0, 1), (0, 5), (4, 15), (12, 3)] {
        let mut config = common::unlimited(mixed_delays());
        config.flows = vec![flow(source, destination, 500_000)];
        let outcome = common::run(config);
        let record = &outcome.flows[0];
        assert_eq!(record.delivered.map(|time| time - record.start), record.ideal, "{source} to {destination}");
    }
}

#[test]
fn whoever_calls_changes_nothing() {
    // The observer only looks; the configuration moved to a thread is the same.
    let fabric = || FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let plain = common::run(busy(fabric(), "cubic", 1));
    let mut seen = Vec::new();
    let observed = incast_sim::simulate_observed(
        busy(fabric(), "cubic", 1),
        &mut |progress| {
            seen.push(progress.now);
            true
        },
        &|| false,
    );
    assert_eq!(observed.expect("a good configuration").digest, plain.digest);
    assert!(seen.is_sorted() && !seen.is_empty());
    let moved = std::thread::spawn(move || common::run(busy(fabric(), "cubic", 1)).digest);
    assert_eq!(moved.join().expect("no panic"), plain.digest);
}

#[test]
fn an_order_by_ports_is_deterministic_too() {
    let fabric = || FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let make = |ties| Config { ties, ..busy(fabric(), "dctcp", 2) };
    let ordered = on_threads(|| make(Ties::PortOrder), "port order");
    let late = on_threads(|| make(Ties::ArrivalsFirst), "arrivals first");
    assert_ne!(late.digest, ordered.digest, "and of packets that arrive as a transmission ends");
    assert_ne!(ordered.digest, common::run(make(Ties::Seeded)).digest, "an incast is full of ties");
}

#[test]
fn a_run_ends_exactly_at_its_end() {
    let fabric = || FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let until = |end, threads| {
        let mut config = common::unlimited(fabric());
        config.flows = vec![flow(0, 15, 1_000_000), flow(3, 15, 1_000_000), flow(7, 15, 1_000_000)];
        (config.end, config.threads) = (end, threads);
        common::run(config)
    };
    let whole = until(Time::from_ms(1), 1);
    common::delivered(&whole);
    // What happens at the end itself does not happen any more; a picosecond later it would have.
    for cut in 0..3 {
        let at = whole.flows[cut].delivered.expect("it was delivered");
        let (before, after) = (until(at, 1), until(at + Time::from_ps(1), 1));
        assert_eq!((before.flows[cut].delivered, after.flows[cut].delivered), (None, Some(at)));
        assert_eq!((before.complete, before.ended_at), (false, at));
        for (cut, whole) in before.flows.iter().zip(&whole.flows) {
            assert_eq!(cut.delivered, whole.delivered.filter(|time| *time < at));
        }
        assert_eq!(until(at, 4).digest, before.digest);
    }
}

/// Set in the child processes of the test below.
const CHILD: &str = "INCAST_TEST_DIGEST";

#[test]
fn processes_agree() {
    let digests: Vec<String> =
        every_topology().into_iter().map(|topology| common::run(busy(topology, "dctcp", 6)).digest).collect();
    let line = format!("digests: {}", digests.join(" "));
    if std::env::var_os(CHILD).is_some() {
        println!("{line}");
        return;
    }
    let this = std::env::current_exe().expect("the test knows where it is");
    for _ in 0..2 {
        let mut child = Command::new(&this);
        child.args(["--exact", "determinism::processes_agree", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
        let output = child.output().expect("the test can start itself");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&line), "{text}\ndoes not say\n{line}");
    }
}
