//! Credit-based flow control at work: when a packet may go, what that costs, what it protects, and what becomes of
//! credits when links lose packets, fail and come back.
//!
//! `PROPTEST_CASES` sets the number of random fabrics.

use crate::common::{
    self, MTU, OVERHEAD, class, config, conserved, delivered, flow, link, link_event,
    lossless::{self, cables_fail, edges, everything, run},
    random::{self, Kind},
    star, text, took, unlimited,
};
use incast_sim::{
    Config, ConfigError, FlowSpec,
    config::{
        Buffer, ClassConfig, Credits, Ecn, HostConfig, LoadBalancing, MarkAt, Pfc, Size, SwitchConfig, Threshold, Wire,
    },
    outcome::EventKind,
    probe::PacketFilter,
    simulate,
    topology::{Chain, Dumbbell, Ring, Topology, file::parse},
};
use incast_units::{Bytes, Rate, Rounding, Time};
use proptest::{prelude::*, test_runner::TestRunner};

/// Frame bytes of a full packet, and what it takes of a buffer.
const FRAME: u64 = MTU as u64 + OVERHEAD - 20;
const ROOM: u64 = FRAME.div_ceil(64) * 64;

/// Fabrics in a normal run.
const CASES: u32 = 600;

/// Memories of so many full packets, each of which is told of when it has gone on.
fn packets(count: u64) -> Credits {
    Credits { buffer: Some(Bytes::new(count * ROOM)), update: Some(Bytes::ZERO), ..Credits::default() }
}

// ---- When --------------------------------------------------------------------------------------------------

/// A buffer of one packet: the next one goes when the word of the first has come back, to the picosecond.
#[test]
fn a_packet_waits_for_its_credits_to_the_picosecond() {
    let mut config = unlimited(star(2));
    config.switch.credits = Some(packets(1));
    config.flows = vec![flow(0, 1, 3 * u64::from(MTU))];
    config.probes.events = true;
    let outcome = run(config);
    delivered(&outcome);
    let (full, word, delay) = (Time::from_ps((FRAME + 20) * 80), Time::from_ps((6 + 20) * 80), Time::from_us(1));
    // It goes straight through the switch, and the word leaves at once: nothing is sent to h0 yet.
    let first = full + delay + word + delay;
    assert_eq!(edges(&outcome, 0, EventKind::Pause)[0], full);
    assert_eq!(edges(&outcome, 0, EventKind::Resume)[0], first);
    // With the second word an acknowledgement may be on the way. The third packet is the last, and nothing waits any
    // more.
    let second = edges(&outcome, 0, EventKind::Resume)[1] - first;
    let ack = Time::from_ps((82 + 20) * 80);
    assert!((first..=first + ack + ack).contains(&second), "{second}");
    assert_eq!(edges(&outcome, 0, EventKind::Resume).len(), 2);
    assert_eq!(outcome.totals.lost, 0);
}

/// One flow over a long link has min(C, buffer / loop), the loop being that of a packet and its credit.
#[test]
fn a_small_buffer_limits_a_long_link() {
    let rate_of = |count: Option<u64>, delay: Time| {
        let text = format!("host a\nhost b\nswitch s\nlink a s 100Gbps {delay}\nlink b s 100Gbps 1us\n");
        let mut config = unlimited(parse(&text).expect("a good file"));
        config.switch.credits = Some(count.map_or_else(Credits::default, packets));
        config.host.rto_min = Time::from_ms(100);
        let bytes = 3_000 * u64::from(MTU);
        config.flows = vec![flow(0, 1, bytes)];
        let outcome = run(config);
        delivered(&outcome);
        let alone = outcome.flows[0].ideal.expect("a route").as_secs_f64();
        (
            3_000.0 * (FRAME + 20) as f64 * 8.0 / took(&outcome.flows[0]).as_secs_f64(),
            alone / took(&outcome.flows[0]).as_secs_f64(),
        )
    };
    for (count, us) in [(1, 10), (8, 10), (20, 10), (20, 25)] {
        let delay = Time::from_us(us);
        let there_and_back = Time::from_ps((FRAME + 20 + 6 + 20) * 80) + delay * 2;
        let expected = count as f64 * (FRAME + 20) as f64 * 8.0 / there_and_back.as_secs_f64();
        let (found, _) = rate_of(Some(count), delay);
        println!("{count} packets over {delay}: {:.3} Gbit/s, {:.3} expected", found / 1e9, expected / 1e9);
        assert!((found / expected - 1.0).abs() < 0.005, "{count} {delay}: {found} {expected}");
    }
    // From where the formula says, it is the link that limits.
    for us in [1, 10, 50] {
        let (found, share) = rate_of(None, Time::from_us(us));
        println!("computed buffer over {us}us: {:.3} Gbit/s, {share:.5} of ideal", found / 1e9);
        assert!(share > 0.998, "{us}: {share}");
    }
}

#[test]
fn lanes_have_memories_of_their_own() {
    let text = "host a\nhost b\nhost c\nswitch s\n\
                link a s 100Gbps 1us\nlink b s 100Gbps 2us\nlink c s 10Gbps 1us\n";
    let mut config = unlimited(parse(text).expect("a good file"));
    config.switch.priorities = 2;
    let lower = ClassConfig { priority: 1, ..config.classes[0].clone() };
    config.classes.push(lower);
    config.switch.credits = Some(Credits::default());
    // To b goes lane 0, to c lane 1: only the latter is ever congested.
    config.flows = vec![FlowSpec { class: 1, ..flow(0, 2, 300 * u64::from(MTU)) }, flow(0, 1, 300 * u64::from(MTU))];
    config.probes.events = true;
    let outcome = run(config);
    delivered(&outcome);
    let blocked = outcome.events.iter().filter(|event| event.kind == EventKind::Pause && event.node == 0);
    let lanes: Vec<u8> = blocked.map(|event| event.priority).collect();
    assert!(lanes.len() > 10 && lanes.iter().all(|lane| *lane == 1));
    // Strict priority: but for a few flow control packets the flow to b has the NIC to itself.
    let share = outcome.flows[1].ideal.expect("a route").as_secs_f64() / took(&outcome.flows[1]).as_secs_f64();
    assert!(share > 0.998, "{share}");
}

/// Hosts v and a share a link with flows to a congested port. v's flow goes elsewhere, and waits all the same.
#[test]
fn congestion_spreads_to_a_victim() {
    let fabric = |credits: Option<Credits>| {
        let link = link(100, Time::from_us(1));
        let topology = Dumbbell { left: 2, right: 4, host_link: link, bottleneck: link }.build();
        let mut config = unlimited(topology.expect("a good topology"));
        config.switch.credits = credits;
        let burst = 400 * u64::from(MTU);
        config.flows = vec![
            flow(0, 2, burst),
            flow(3, 2, burst),
            flow(4, 2, burst),
            FlowSpec { start: Time::from_us(40), ..flow(1, 5, 20 * u64::from(MTU)) },
        ];
        common::run(config)
    };
    let (without, with) = (fabric(None), fabric(Some(Credits::default())));
    // Without flow control the shared link is shared by halves from the first packet on.
    assert!(took(&with.flows[1]) * 2 > took(&without.flows[1]) * 3);
    assert_eq!((with.totals.drops, with.complete), (0, true));
    // What waited at the congested port now waits where it came from.
    assert!(with.totals.max_queue_bytes < without.totals.max_queue_bytes / 2);
}

// ---- Always the same ---------------------------------------------------------------------------------------

fn busy_fabric() -> Config {
    let mut config = lossless::busy_fabric();
    config.switch.credits = Some(Credits::default());
    config
}

#[test]
fn results_do_not_depend_on_threads_or_on_who_watches() {
    for credits in [Credits::default(), packets(2), Credits { update: Some(Bytes::new(40_000)), ..Credits::default() }]
    {
        let with = |threads: usize, change: &dyn Fn(&mut Config)| {
            let mut config = busy_fabric();
            config.switch.credits = Some(credits.clone());
            config.threads = threads;
            change(&mut config);
            run(config)
        };
        let alone = with(1, &|_| {});
        delivered(&alone);
        assert!(alone.totals.pauses > 100, "{:?}", alone.totals);
        for threads in [2, 3, 5] {
            assert_eq!(with(threads, &|_| {}).digest, alone.digest, "{threads} threads");
        }
        let watched = with(1, &|config| config.probes.packets = Some(everything()));
        assert_eq!(watched.digest, alone.digest);
        let sampled = with(2, &|config| {
            let ports = (16..22).flat_map(|node| (0..4).map(move |port| (node, port))).collect();
            config.probes.ports = Some((Time::from_ns(777), ports));
            config.probes.events = true;
        });
        assert_eq!(sampled.digest, alone.digest);
    }
}

/// The buffer of switches that have just enough is never overrun: a shared one, and one by port.
#[test]
fn credits_fit_into_the_buffer_of_switches() {
    // Six ports at a leaf, one lane.
    let rules = |config: &Config| incast_sim::credit_rules(incast_sim::Fabric::from(config)).expect("credits");
    let config = busy_fabric();
    let own = |delay: u64| rules(&config).limits(Rate::from_gbps(100), Time::from_ns(delay)).bytes();
    let (host, fabric) = (own(1_000), own(600));
    let with = |buffer: Buffer| {
        let mut config = busy_fabric();
        config.switch.buffer = buffer;
        simulate(config)
    };
    let shared = |total: u64| Buffer::Shared { total, alpha: (1, 1), reserve: 0 };
    for buffer in [shared(4 * host + 2 * fabric), Buffer::PerPort { bytes: host }, Buffer::Unlimited] {
        let outcome = with(buffer).expect("it fits");
        conserved(&outcome);
        delivered(&outcome);
        assert_eq!(outcome.totals.drops, 0);
    }
    for buffer in [shared(4 * host + 2 * fabric - 1), Buffer::PerPort { bytes: host - 1 }] {
        let refused = with(buffer).expect_err("it does not fit").to_string();
        assert!(refused.contains("switch.credits.buffer") && refused.contains("at leaf0"), "{refused}");
    }
}

// ---- Links that lose packets, fail and come back -----------------------------------------------------------

/// On a link that loses packets, words among them, credits are lost with them; those who miss credits ask.
#[test]
fn lost_packets_take_no_credits_for_good() {
    for credits in [packets(2), Credits::default()] {
        let with = |threads: usize| {
            let mut topology = star(4);
            topology.cables.iter_mut().for_each(|cable| cable.link.loss = 0.05);
            let mut config = unlimited(topology);
            config.threads = threads;
            config.switch.credits = Some(credits.clone());
            config.host.rto_min = Time::from_us(200);
            config.flows =
                (0..4).flat_map(|host| [1, 2].map(|step| flow(host, (host + step) % 4, 1_000_000))).collect();
            run(config)
        };
        let outcome = with(1);
        delivered(&outcome);
        assert!(outcome.totals.lost > 100 && outcome.deadlock.is_none());
        assert_eq!(outcome.totals.pfc_stranded, 0);
        assert_eq!(with(3).digest, outcome.digest);
    }
}

/// An update on its way is not lost, however little patience is asked for.
#[test]
fn credits_on_their_way_are_not_missed() {
    for credits in [packets(2), Credits::default()] {
        let mut config = unlimited(star(4));
        config.switch.credits = Some(Credits { deadlock_after: Some(Time::from_ns(1)), ..credits });
        config.flows = (1..4).map(|host| flow(host, 0, 1_000_000)).collect();
        let outcome = run(config);
        delivered(&outcome);
        assert!(outcome.totals.pauses > 0);
        assert_eq!((outcome.totals.pfc_stranded, outcome.deadlock), (0, None));
    }
}

#[test]
fn a_cable_that_fails_forgets_its_credits() {
    for credits in [packets(3), Credits::default()] {
        let with = |change: &dyn Fn(&mut Config)| {
            let mut config = busy_fabric();
            config.switch.credits = Some(credits.clone());
            cables_fail(&mut config);
            change(&mut config);
            run(config)
        };
        let outcome = with(&|_| {});
        delivered(&outcome);
        assert!(outcome.totals.lost > 0 && outcome.totals.pauses > 20);
        assert_eq!(with(&|config| config.probes.packets = Some(everything())).digest, outcome.digest);
        assert_eq!(with(&|config| config.threads = 3).digest, outcome.digest);
    }
}

/// A link that comes back carries nothing but the words of both ends until those have come.
#[test]
fn a_cable_that_comes_back_waits_for_the_first_word() {
    let mut config = unlimited(star(2));
    config.switch.credits = Some(Credits::default());
    let topology = config.topology.clone();
    let at = Time::from_us(50);
    config.link_events =
        vec![link_event(&topology, Time::from_us(20), "h0-s0", false), link_event(&topology, at, "h0-s0", true)];
    config.flows = vec![FlowSpec { start: Time::from_us(30), ..flow(0, 1, u64::from(MTU)) }];
    let outcome = run(config);
    delivered(&outcome);
    let word = Time::from_ps((6 + 20) * 80) + Time::from_us(1);
    let alone = outcome.flows[0].ideal.expect("a route");
    assert_eq!(outcome.flows[0].delivered, Some(at + word + alone));
}

// ---- Deadlocks ---------------------------------------------------------------------------------------------

/// Five switches in a ring with three hosts each; all send to the switch after the next, which is two links clockwise.
fn ring() -> Config {
    let link = link(100, Time::from_us(1));
    let ring = Ring { switches: 5, hosts_per_switch: 3, host_link: link, fabric_link: link };
    let mut config = unlimited(ring.build().expect("a good topology"));
    config.switch.credits = Some(Credits { deadlock_after: Some(Time::from_us(500)), ..Credits::default() });
    config.flows = (0..15).map(|host| flow(host, (host + 6) % 15, 4_000_000)).collect();
    config.end = Time::from_ms(100);
    config
}

#[test]
fn a_ring_with_one_lane_comes_to_a_halt_and_is_diagnosed() {
    let outcome = run(ring());
    assert!(!outcome.complete);
    let deadlock = outcome.deadlock.clone().expect("a deadlock");
    let nodes: Vec<u32> = deadlock.cycle.iter().map(|queue| queue.node).collect();
    assert_eq!(nodes, [15, 16, 17, 18, 19]);
    assert!(deadlock.since + Time::from_us(500) <= deadlock.at, "{deadlock:?}");
    assert!(deadlock.at <= deadlock.since + Time::from_us(551), "{deadlock:?}");
    for threads in [2, 3] {
        let again = run(Config { threads, ..ring() });
        assert_eq!((&again.digest, &again.deadlock), (&outcome.digest, &outcome.deadlock));
    }
    // On a chain, which has no cycle, the same demand goes through.
    let link = link(100, Time::from_us(1));
    let chain = Chain { switches: 5, hosts_per_switch: 3, host_link: link, fabric_link: link };
    let mut config = Config { topology: chain.build().expect("a good topology"), ..ring() };
    config.host.rto_min = Time::from_ms(50);
    config.flows.iter_mut().for_each(|flow| flow.bytes = 400_000);
    delivered(&run(config));
}

// ---- What is refused ---------------------------------------------------------------------------------------

#[test]
fn what_could_never_be_sent_is_refused() {
    let refusal = |change: &dyn Fn(&mut SwitchConfig)| -> String {
        let mut config = unlimited(star(4));
        config.switch = SwitchConfig { credits: Some(Credits::default()), ..SwitchConfig::plain() };
        change(&mut config.switch);
        let error = simulate(config).expect_err("it makes no sense");
        assert!(matches!(error, ConfigError::Value { .. }));
        error.to_string()
    };
    let credits = |change: fn(&mut Credits)| refusal(&|switch| switch.credits.iter_mut().for_each(change));
    // 4,166 bytes are 66 blocks.
    let small = credits(|credits| credits.buffer = Some(Bytes::new(66 * 64 - 1)));
    assert_eq!(
        small,
        "switch.credits.buffer is 4223 B, allowed is 4224 B, one packet of 4166 B in blocks of 64, to 68719476736 B"
    );
    for (message, what) in [
        (credits(|credits| credits.buffer = Some(Bytes::new(1 << 40))), "switch.credits.buffer"),
        (credits(|credits| credits.frame = 0), "switch.credits.frame"),
        (credits(|credits| credits.refresh = Some(Time::ZERO)), "switch.credits.refresh"),
        (credits(|credits| credits.refresh = Some(Time::from_ps(1))), "allowed is at least 10ns"),
        (credits(|credits| credits.deadlock_after = Some(Time::ZERO)), "switch.credits.deadlock_after"),
        (
            credits(|credits| {
                credits.buffer = Some(Bytes::new(10_000));
                credits.update = Some(Bytes::new(10_001));
            }),
            "switch.credits.update is 10001 B, allowed is at most 10000 B",
        ),
        (refusal(&|switch| switch.buffer = Buffer::PerPortPackets { packets: 100 }), "a buffer in bytes"),
        (
            refusal(&|switch| {
                let threshold = Threshold::Static { xoff: Size::Bytes(10_000), xon: None };
                switch.pfc = Some(Pfc::new(threshold));
            }),
            "with priority flow control",
        ),
    ] {
        assert!(message.contains(what), "{message}");
    }
}

// ---- Random fabrics ----------------------------------------------------------------------------------------

fn kind() -> impl Strategy<Value = Kind> {
    let law = prop_oneof![
        3 => Just("constant-window"), 1 => Just("dctcp"), 1 => Just("constant-rate"), 1 => Just("ibcc"), 1 => Just("homa")
    ];
    (law, 0u8..8, proptest::option::of(0u8..8))
}

/// What is decided beside the parts of the fabric.
#[derive(Clone, Debug)]
struct Rest {
    priorities: u8,
    mtu: u32,
    /// Bytes of buffer beyond one packet; `None` for the formula.
    spare: Option<u64>,
    /// In thousandths of the buffer.
    update: Option<u64>,
    frame: u16,
    /// Probability of loss in thousandths.
    loss: u16,
    /// A cable goes down and comes up.
    fails: Option<(u16, u16, u16)>,
    spray: bool,
    seed: u64,
}

fn rest() -> impl Strategy<Value = Rest> {
    let spare = prop_oneof![1 => Just(Some(0u64)), 3 => (0u64..60_000).prop_map(Some), 2 => Just(None)];
    let update = prop_oneof![1 => Just(Some(0)), 1 => (0u64..=1_000).prop_map(Some), 1 => Just(None)];
    let mtu = prop_oneof![Just(1000u32), Just(4096), Just(9000)];
    let loss = prop_oneof![4 => Just(0u16), 1 => 1u16..50];
    let fails = proptest::option::weighted(0.25, (any::<u16>(), 1u16..100, 1u16..100));
    let switches = (1u8..9, mtu, spare, update, 6u16..100);
    (switches, loss, fails, proptest::bool::weighted(0.2), any::<u64>()).prop_map(
        |((priorities, mtu, spare, update, frame), loss, fails, spray, seed)| Rest {
            priorities,
            mtu,
            spare,
            update,
            frame,
            loss,
            fails,
            spray,
            seed,
        },
    )
}

fn any_config(topology: &Topology, kinds: &[Kind], flows: &[FlowSpec], rest: &Rest) -> Config {
    let hosts = topology.hosts;
    let mut topology = topology.clone();
    topology.cables.iter_mut().for_each(|cable| cable.link.loss = f64::from(rest.loss) / 1_000.0);
    let class = |(law, priority, ack): &Kind| {
        let parameters = if *law == "constant-window" { vec![("window", text("1GB"))] } else { Vec::new() };
        ClassConfig {
            priority: priority % rest.priorities,
            ack_priority: ack.map(|priority| priority % rest.priorities),
            ..class(&topology, rest.mtu, law, &parameters)
        }
    };
    let mut kinds = kinds.to_vec();
    // Homa needs all lanes, and receivers of its own.
    let homa = kinds[0].0 == "homa" && rest.priorities == 8;
    kinds.iter_mut().filter(|kind| kind.0 == "homa").for_each(|kind| kind.0 = "dctcp");
    let place = |flow: &FlowSpec| random::placed(flow, hosts, kinds.len());
    let mut config = if homa {
        let mut config = config(topology.clone(), "homa", &[]);
        config.flows = flows.iter().map(|flow| FlowSpec { class: 0, ..place(flow) }).collect();
        config.switch.priorities = 8;
        config
    } else {
        let mut config = unlimited(topology.clone());
        (config.host, config.classes) = (HostConfig::plain(rest.mtu), kinds.iter().map(class).collect());
        config.flows = flows.iter().map(place).collect();
        config.switch.priorities = rest.priorities;
        config
    };
    let buffer = rest.spare.map(|spare| (u64::from(config.host.mtu) + 110).div_ceil(64) * 64 + spare);
    let usual = buffer.unwrap_or(100_000);
    config.switch.credits = Some(Credits {
        buffer: buffer.map(Bytes::new),
        update: rest.update.map(|part| Bytes::new(usual * part / 1_000)),
        frame: rest.frame,
        refresh: None,
        deadlock_after: Some(Time::from_us(300)),
    });
    config.switch.ecn = Ecn::Red { min: Size::Bytes(20_000), max: Size::Bytes(80_000), p: 0.2 };
    config.switch.mark_at = MarkAt::Dequeue;
    config.switch.load_balancing = if rest.spray { LoadBalancing::Spray } else { LoadBalancing::Ecmp };
    if let Some((cable, down, length)) = rest.fails {
        let cable = usize::from(cable) % config.topology.cables.len();
        for (us, up) in [(down, false), (down + length, true)] {
            let at = Time::from_us(us.into());
            config.link_events.push(incast_sim::config::LinkEvent { at, cable, up });
        }
    }
    // Nothing is sent again because it waited for long; where packets are lost it is soon.
    let is_sound = rest.loss == 0 && rest.fails.is_none();
    config.host.rto_min = if is_sound { Time::from_ms(2_000) } else { Time::from_us(500) };
    config.seed = rest.seed;
    config.end = if is_sound { Time::from_ms(20_000) } else { Time::from_ms(5) };
    config
}

/// Nothing is dropped, no credit is overrun (which is asserted at each packet), and on sound links everything arrives
/// unless a deadlock is found.
#[test]
fn no_packet_is_dropped_and_all_arrive_or_a_cycle_is_found() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
    let kinds = proptest::collection::vec(kind(), 1..4);
    let flows = proptest::collection::vec(random::flow(), 2..25);
    let (blocked, stuck) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    let result = runner.run(&(random::topology(2), kinds, flows, rest()), |(topology, kinds, flows, rest)| {
        let config = |threads| Config { threads, ..any_config(&topology, &kinds, &flows, &rest) };
        let outcome = simulate(config(1)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        conserved(&outcome);
        prop_assert_eq!((outcome.totals.drops, outcome.totals.lossless_drops), (0, 0));
        if rest.loss == 0 && rest.fails.is_none() {
            prop_assert_eq!(outcome.totals.lost, 0);
            prop_assert!(outcome.complete || outcome.deadlock.is_some());
            let is_ring = topology.kind == "ring";
            prop_assert!(outcome.deadlock.is_none() || is_ring || rest.spray, "{:?}", outcome.deadlock);
        }
        blocked.set(blocked.get() + u32::from(outcome.totals.pauses > 0));
        stuck.set(stuck.get() + u32::from(outcome.deadlock.is_some()));
        if rest.seed % 4 != 0 {
            return Ok(());
        }
        let mut watched = config(2);
        watched.probes.packets = Some(PacketFilter { most: 0, ..everything() });
        let watched = simulate(watched).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&watched.digest, &outcome.digest);
        prop_assert_eq!(&watched.deadlock, &outcome.deadlock);
        Ok(())
    });
    let (blocked, stuck) = (blocked.get(), stuck.get());
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{blocked} of {cases} fabrics had a packet wait for credits, {stuck} came to a halt");
    assert!(blocked >= cases / 2, "{blocked} of {cases}");
}

/// In whole nanoseconds a frame of 6 bytes takes no time at 100 Gbps. It must not overtake the packet before it: credits
/// count on the order of what a link carries.
#[test]
fn frames_that_take_no_time_keep_their_order() {
    for threads in [1, 2] {
        let mut config = unlimited(
            Chain {
                switches: 3,
                hosts_per_switch: 2,
                host_link: link(100, Time::from_ps(1)),
                fabric_link: link(100, Time::from_us(1)),
            }
            .build()
            .expect("a chain"),
        );
        config.switch = SwitchConfig { credits: Some(Credits::default()), ..SwitchConfig::plain() };
        config.wire = Wire { gap: 0, rounding: Rounding::WholeNanoseconds };
        config.threads = threads;
        config.flows = (0..6).map(|host| flow(host, (host + 2) % 6, 1_000_000)).collect();
        let outcome = simulate(config).expect("it runs");
        assert_eq!(outcome.totals.dropped_bytes, 0);
        assert!(outcome.flows.iter().all(|flow| flow.delivered_bytes == flow.bytes));
    }
}
