//! Priority flow control at work: when frames are sent, when they take effect, what they protect and what they cost.

use crate::common::{
    self, MTU, OVERHEAD, delivered, flow, link, link_event,
    lossless::{busy_fabric, cables_fail, edges, everything, run},
    star, unlimited,
};
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{
        Alpha, Buffer, ClassConfig, ConfigError, Expiry, Headroom, LinkEvent, Pfc, Shortage, Size, SwitchConfig,
        Threshold,
    },
    outcome::{EventKind, EventRecord, PacketRecord, Step, Totals},
    packet::Kind,
    simulate,
    topology::{Dumbbell, Ring, SingleSwitch, Topology, file::parse},
};
use incast_units::{Rate, Time};

/// Frame bytes of a full packet.
const FRAME: u64 = MTU as u64 + OVERHEAD - 20;

fn fixed(xoff: u64, xon: u64) -> Pfc {
    Pfc::new(Threshold::Static { xoff: Size::Bytes(xoff), xon: Some(Size::Bytes(xon)) })
}

fn dynamic() -> Pfc {
    Pfc::new(Threshold::Dynamic { alpha: Alpha::Fixed(0.125), reserve: 4096, resume_offset: 3072 })
}

fn shared(total: u64) -> Buffer {
    Buffer::Shared { total, alpha: (1, 1), reserve: 0 }
}

/// Hosts a and b send to c through one switch; the link to c is a tenth as fast.
fn slow_receiver() -> Topology {
    let text = "host a\nhost b\nhost c\nswitch s\n\
                link a s 100Gbps 1us\nlink b s 100Gbps 2us\nlink c s 10Gbps 1us\n";
    parse(text).expect("a good file")
}

fn took(outcome: &Outcome, flow: usize) -> Time {
    outcome.flows[flow].delivered.expect("it was delivered") - outcome.flows[flow].start
}

// ---- When --------------------------------------------------------------------------------------------------

/// Two nodes, every step by hand: a sends to c without a window; at 100 Gbit/s a byte takes 80 ps, at 10 Gbit/s 800.
#[test]
fn a_pause_takes_effect_to_the_picosecond() {
    for response in [Time::ZERO, Time::from_ns(700)] {
        let mut config = unlimited(slow_receiver());
        config.switch.pfc = Some(Pfc { response_delay: response, ..fixed(3 * FRAME, FRAME) });
        config.flows = vec![flow(0, 2, 30 * u64::from(MTU))];
        config.probes.events = true;
        let outcome = run(config);
        delivered(&outcome);
        // The fabric's own frame: TCP framing, with preamble and gap.
        let (fast, slow) = (Time::from_ps((FRAME + 20) * 80), Time::from_ps((FRAME + 20) * 800));
        let frame = Time::from_ps((64 + 20) * 80);
        let delay = Time::from_us(1);
        // Packet 0 goes straight to the idle link to c; packets 1, 2, 3 wait, and with the third of them the ingress
        // holds xoff. Nothing goes the other way to a at that time, so the frame leaves at once.
        let decided = delay + fast * 4;
        let paused = decided + frame + delay + response;
        assert_eq!(edges(&outcome, 0, EventKind::Pause)[0], paused);
        // From then on a sends nothing: it has sent what it had begun by then. Of that, one packet leaves the switch
        // each 10 Gbit/s packet time; the one that takes the ingress to xon lets a go on.
        let sent = paused.ps().div_ceil(fast.ps());
        let first_departure = delay + fast;
        let resumed = first_departure + slow * (sent - 2);
        // An acknowledgement of c may be on its way to a: then the frame waits for it.
        let wait = edges(&outcome, 0, EventKind::Resume)[0] - (resumed + frame + delay + response);
        assert!(wait < Time::from_ps((82 + 20) * 80), "{wait}");
        // Other than that nothing paused: switch ports are not paused by hosts.
        assert_eq!(outcome.totals.pauses, edges(&outcome, 0, EventKind::Pause).len() as u64);
    }
}

/// A frame that finds the link busy goes right after the packet in service, ahead of what waits there.
#[test]
fn a_pause_frame_waits_for_the_packet_in_service_and_for_nothing_else() {
    let mut config = unlimited(slow_receiver());
    config.switch.pfc = Some(fixed(3 * FRAME, FRAME));
    // b keeps the link to a busy with a long queue... of which c's slow link is no part.
    config.flows =
        vec![flow(0, 2, 200 * u64::from(MTU)), flow(1, 0, 400 * u64::from(MTU)), flow(2, 0, 40 * u64::from(MTU))];
    config.probes.packets = Some(everything());
    let outcome = run(config);
    delivered(&outcome);
    // Port 0 of the switch is that of a.
    let sent: Vec<&PacketRecord> = outcome
        .packets
        .iter()
        .filter(|record| record.node == 3 && record.port == 0 && matches!(record.step, Step::Sent { .. }))
        .collect();
    let end = |record: &PacketRecord| match record.step {
        Step::Sent { end, .. } => end,
        _ => Time::MAX,
    };
    let mut waited = 0;
    for pair in sent.windows(2).filter(|pair| pair[1].packet.kind == Kind::Pause) {
        assert!(pair[1].time >= end(pair[0]));
        waited += u32::from(pair[1].time == end(pair[0]));
    }
    assert!(waited >= 10, "{waited}");
    // Had frames stood in line behind the queue of 400 packets, a would have sent much more than headroom.
    assert_eq!(outcome.totals.lossless_drops, 0);
}

#[test]
fn a_pause_expires_unless_it_is_refreshed() {
    // One refresh would come after the pause has ended: it would be refused, so losses are allowed here.
    let run_with = |after: u64, refresh: u64| {
        let mut config = unlimited(slow_receiver());
        let expiry = Some(Expiry { after: Time::from_us(after), refresh: Time::from_us(refresh) });
        config.switch.pfc = Some(Pfc { expiry, ..fixed(30 * FRAME, FRAME) });
        config.flows = vec![flow(0, 2, 200 * u64::from(MTU))];
        config.probes.events = true;
        common::run(config)
    };
    // To drain 30 packets takes 100 us: a pause of 20 us that is refreshed each 10 us holds all the time.
    let refreshed = run_with(20, 10);
    delivered(&refreshed);
    let held = run_with(100_000, 50_000);
    assert_eq!(edges(&refreshed, 0, EventKind::Pause), edges(&held, 0, EventKind::Pause));
    assert_eq!(refreshed.flows, held.flows, "a refresh changes nothing but the frames on the way");
    assert!(refreshed.totals.received_bytes > held.totals.received_bytes);
}

/// Without a refresh in time the port goes on when the pause ends, to the picosecond.
#[test]
fn a_pause_that_is_not_refreshed_ends() {
    let mut config = unlimited(slow_receiver());
    let expiry = Some(Expiry { after: Time::from_us(20), refresh: Time::from_ps(Time::from_us(20).ps() - 1) });
    // Unlimited buffer: what comes in after the end of the pause is not lost.
    config.switch.pfc =
        Some(Pfc { expiry, strict: false, headroom: Headroom::Bytes(10_000_000), ..fixed(30 * FRAME, FRAME) });
    // b sends to a as much as fits: the refresh waits for the packet in service.
    config.flows = vec![flow(0, 2, 200 * u64::from(MTU)), flow(1, 0, 2_000 * u64::from(MTU))];
    config.probes.events = true;
    let outcome = run(config);
    delivered(&outcome);
    let (pauses, resumes) = (edges(&outcome, 0, EventKind::Pause), edges(&outcome, 0, EventKind::Resume));
    assert_eq!(resumes[0] - pauses[0], Time::from_us(20));
    // The refresh was due 1 ps before the end, and comes at most one packet later.
    assert!(pauses[1] > resumes[0] && pauses[1] < resumes[0] + Time::from_us(1), "{pauses:?} {resumes:?}");
}

// ---- Whom --------------------------------------------------------------------------------------------------

#[test]
fn priorities_pause_on_their_own() {
    let mut config = unlimited(slow_receiver());
    config.switch.priorities = 2;
    // To b goes priority 0, to c priority 1: only the latter is ever congested.
    let lower = ClassConfig { priority: 1, ..config.classes[0].clone() };
    config.classes.push(lower);
    config.switch.pfc = Some(fixed(10 * FRAME, 5 * FRAME));
    let other = flow(0, 1, 300 * u64::from(MTU));
    config.flows = vec![FlowSpec { class: 1, ..flow(0, 2, 300 * u64::from(MTU)) }, other];
    config.probes.events = true;
    let outcome = run(config);
    delivered(&outcome);
    let paused: Vec<&EventRecord> = outcome.events.iter().filter(|event| event.kind == EventKind::Pause).collect();
    assert!(paused.len() > 10 && paused.iter().all(|event| event.priority == 1 && event.node == 0));
    // Strict priority: the flow to b has the NIC to itself.
    assert_eq!(Some(took(&outcome, 1)), outcome.flows[1].ideal);
}

#[test]
fn a_priority_that_is_not_lossless_is_dropped_as_ever() {
    let mut config = unlimited(slow_receiver());
    config.switch.priorities = 2;
    let lower = ClassConfig { priority: 1, ..config.classes[0].clone() };
    config.classes.push(lower);
    config.switch.buffer = shared(400_000);
    config.switch.pfc = Some(Pfc { priorities: 0b01, ..fixed(10 * FRAME, 5 * FRAME) });
    config.flows = vec![flow(0, 2, 300 * u64::from(MTU)), FlowSpec { class: 1, ..flow(1, 2, 300 * u64::from(MTU)) }];
    config.probes.events = true;
    let outcome = common::run(config);
    delivered(&outcome);
    assert!(outcome.totals.drops > 0 && outcome.totals.lossless_drops == 0);
    let of = |kind| outcome.events.iter().filter(move |event: &&EventRecord| event.kind == kind);
    assert!(of(EventKind::Drop).all(|event| event.priority == 1));
    assert!(of(EventKind::Pause).all(|event| event.priority == 0) && of(EventKind::Pause).count() > 0);
}

/// Hosts v and a share a link with flows to a congested port. v's flow goes elsewhere, and waits all the same.
#[test]
fn a_victim_waits_behind_the_congested_flow_and_recovers() {
    let fabric = |pfc: Option<Pfc>| {
        let link = link(100, Time::from_us(1));
        let topology = Dumbbell { left: 2, right: 4, host_link: link, bottleneck: link }.build();
        let mut config = unlimited(topology.expect("a good topology"));
        config.switch.pfc = pfc;
        // 0 and 1 are on the left. 3, 4 and 0 send to 2 on the right; 1 is the victim, on its way to 5.
        let burst = 400 * u64::from(MTU);
        config.flows = vec![
            flow(0, 2, burst),
            flow(3, 2, burst),
            flow(4, 2, burst),
            FlowSpec { start: Time::from_us(40), ..flow(1, 5, 20 * u64::from(MTU)) },
            FlowSpec { start: Time::from_ms(1), ..flow(1, 5, 20 * u64::from(MTU)) },
        ];
        config.probes.events = true;
        run(config)
    };
    let (without, with) = (fabric(None), fabric(Some(fixed(20 * FRAME, 10 * FRAME))));
    // Flows come by source: those of the victim are the second and third. Without flow control the shared link, of
    // which flow 0 takes all, is shared by halves from the first packet on.
    assert!(took(&without, 1) < without.flows[1].ideal.expect("a route") * 3, "{:?}", without.flows[1]);
    assert!(took(&with, 1) > took(&without, 1) * 2, "{} {}", took(&with, 1), took(&without, 1));
    // When the burst is over, all is as before.
    assert_eq!(Some(took(&with, 2)), with.flows[2].ideal);
    // The congested switch (the right one, node 7) paused the left one (node 6), and that one the hosts.
    for node in [0, 1, 3, 4, 6] {
        assert!(!edges(&with, node, EventKind::Pause).is_empty(), "{node}");
    }
    assert!(edges(&with, 7, EventKind::Pause).is_empty());
    // Each pause goes back to the one congested port, that of host 2 at the right switch: directly where that switch
    // paused somebody, by way of the shared link where the left one did.
    let root = with.causes.iter().find(|cause| cause.node == 7).expect("it paused somebody").root;
    assert!(
        with.causes.iter().all(|cause| cause.root == root && (cause.node == 6) == cause.egress_paused),
        "{:?}",
        with.causes
    );
    let shared = with.causes.iter().find(|cause| cause.node == 6).expect("so did the left one").egress;
    assert!(with.causes.iter().filter(|cause| cause.node == 6).all(|cause| cause.egress == shared));
    assert_eq!(with.causes.len(), with.events.iter().filter(|event| event.kind == EventKind::Pause).count());
    // The queue that was at the right is now where the packets came from.
    assert!(with.totals.max_queue_bytes < without.totals.max_queue_bytes / 2);
}

// ---- Always the same ---------------------------------------------------------------------------------------

#[test]
fn results_do_not_depend_on_threads_or_on_who_watches() {
    for pfc in [dynamic(), fixed(60_000, 40_000), Pfc { response_delay: Time::from_ns(300), ..dynamic() }] {
        let with = |threads: usize, change: &dyn Fn(&mut Config)| {
            let mut config = busy_fabric();
            config.switch.buffer = shared(2_000_000);
            config.switch.pfc = Some(pfc.clone());
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
        // A switch with a trace has an event for each departure all the time.
        let watched = with(1, &|config| config.probes.packets = Some(everything()));
        assert_eq!(watched.digest, alone.digest);
        assert!(watched.totals.events > alone.totals.events);
        let sampled = with(2, &|config| {
            let ports = (16..22).flat_map(|node| (0..4).map(move |port| (node, port))).collect();
            config.probes.ports = Some((Time::from_ns(777), ports));
            config.probes.events = true;
        });
        assert_eq!(sampled.digest, alone.digest);
    }
}

#[test]
fn a_cable_that_fails_forgets_its_pauses() {
    for pfc in [dynamic(), Pfc { response_delay: Time::from_us(3), ..fixed(60_000, 40_000) }] {
        let with = |change: &dyn Fn(&mut Config)| {
            let mut config = busy_fabric();
            config.switch.buffer = shared(2_000_000);
            config.switch.pfc = Some(pfc.clone());
            cables_fail(&mut config);
            change(&mut config);
            run(config)
        };
        let outcome = with(&|_| {});
        delivered(&outcome);
        assert!(outcome.totals.lost > 0 && outcome.totals.pauses > 20);
        assert_eq!(with(&|config| config.probes.packets = Some(everything())).digest, outcome.digest);
        assert_eq!(with(&|config| config.threads = 3).digest, outcome.digest);
        // Where a cable that is up comes up, pauses stay.
        let in_vain = |config: &mut Config| {
            let others: Vec<usize> = (0..config.topology.cables.len())
                .filter(|cable| config.link_events.iter().all(|event| event.cable != *cable))
                .collect();
            let times = (0..100).map(Time::from_us);
            config
                .link_events
                .extend(times.flat_map(|at| others.iter().map(move |cable| LinkEvent { at, cable: *cable, up: true })));
        };
        assert_eq!(with(&in_vain).digest, outcome.digest);
    }
}

// ---- What is refused ---------------------------------------------------------------------------------------

fn refusal(change: impl Fn(&mut SwitchConfig)) -> ConfigError {
    let mut config = unlimited(star(4));
    config.switch = SwitchConfig { buffer: shared(1_000_000), pfc: Some(dynamic()), ..SwitchConfig::plain() };
    change(&mut config.switch);
    simulate(config).expect_err("it cannot be lossless")
}

/// What each port of the star needs: 2 us of cable at 100 Gbit/s, two frames with gaps, the pause frame with its, and
/// the frame that goes above the threshold.
const NEEDED: u64 = 25_000 + 2 * (FRAME + 20) + 84 + FRAME;

#[test]
fn what_could_lose_packets_is_refused_with_what_is_needed() {
    let pfc = |change: fn(&mut Pfc)| refusal(move |switch| switch.pfc.iter_mut().for_each(change));
    let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
    let lossy = |shortage| ConfigError::Lossy { switch: "s0".into(), shortage };
    let short = Shortage::Headroom { rate, delay, found: NEEDED - 1, needed: NEEDED };
    assert_eq!(pfc(|pfc| pfc.headroom = Headroom::Bytes(NEEDED - 1)), lossy(short));
    assert!(lossy(short).to_string().contains(&format!("{NEEDED} B")), "{}", lossy(short));
    let short = Shortage::Headroom { rate, delay, found: 12_500, needed: NEEDED };
    assert_eq!(pfc(|pfc| pfc.headroom = Headroom::RateTimesDelay(1.0)), lossy(short));
    let order = Shortage::Order { xoff: 5000, xon: 5000 };
    assert_eq!(pfc(|pfc| pfc.threshold = fixed(5000, 5000).threshold), lossy(order));
    // Four ports, one priority in use: headroom and reserve of each, and one frame to share.
    let needed = 4 * (NEEDED + 4096) + FRAME;
    let buffer = Shortage::Buffer { found: needed - 1, needed, headroom: 4 * NEEDED };
    assert_eq!(refusal(|switch| switch.buffer = shared(needed - 1)), lossy(buffer));
    let port = Shortage::Port { found: 100_000, needed: 80_000 + NEEDED };
    let small = |switch: &mut SwitchConfig| {
        (switch.buffer, switch.pfc) = (Buffer::PerPort { bytes: 100_000 }, Some(fixed(80_000, 70_000)));
    };
    assert_eq!(refusal(small), lossy(port));
    for (change, what) in [
        (pfc(|pfc| pfc.priorities = 0), "switch.pfc.lossless"),
        (pfc(|pfc| pfc.frame = 0), "frame"),
        (pfc(|pfc| pfc.deadlock_after = Some(Time::ZERO)), "deadlock_after"),
        (refusal(|switch| switch.buffer = Buffer::Unlimited), "dynamic"),
        (pfc(|pfc| pfc.expiry = Some(Expiry { after: Time::from_us(5), refresh: Time::from_us(5) })), "refresh"),
        (pfc(|pfc| pfc.expiry = Some(Expiry { after: Time::from_us(5), refresh: Time::from_ns(4_900) })), "refresh"),
    ] {
        assert!(change.to_string().contains(what), "{change}");
    }
}

/// Whoever wants to see what happens may: what finds no headroom is dropped and counted.
#[test]
fn without_enough_headroom_packets_are_lost_and_counted() {
    let with = |headroom, strict| {
        let mut config = unlimited(slow_receiver());
        config.switch.pfc = Some(Pfc { headroom: Headroom::Bytes(headroom), strict, ..fixed(10 * FRAME, 5 * FRAME) });
        config.flows = vec![flow(0, 2, 300 * u64::from(MTU)), flow(1, 2, 300 * u64::from(MTU))];
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.totals
    };
    let short = with(10_000, false);
    assert!(short.lossless_drops > 0 && short.lossless_drops == short.drops, "{short:?}");
    assert_eq!(with(65_000, true).drops, 0);
}

/// Where the buffer is full, a packet whose ingress holds nothing is dropped, and that ingress is not paused: nothing
/// would leave that could let it go on.
#[test]
fn who_holds_nothing_is_not_paused() {
    let mut config = unlimited(star(24));
    config.switch.buffer = shared(100_000);
    config.switch.pfc = Some(Pfc {
        headroom: Headroom::RateTimesDelay(3.0),
        strict: false,
        deadlock_after: Some(Time::from_ms(5)),
        ..dynamic()
    });
    let start = |host| Time::from_us(u64::from(host) / 8 * 3);
    config.flows = (1..24).map(|host| FlowSpec { start: start(host), ..flow(host, 0, 30_000) }).collect();
    config.host.rto_min = Time::from_us(300);
    let outcome = common::run(config);
    assert!(outcome.totals.lossless_drops > 0 && outcome.totals.pauses > 0, "{:?}", outcome.totals);
    delivered(&outcome);
    assert_eq!(outcome.totals.pfc_stranded, 0);
}

/// Headroom is for the largest frame of any kind, not only for data.
#[test]
fn control_packets_can_be_the_largest_frames() {
    let link = link(100, Time::from_ns(1));
    let topology = SingleSwitch { hosts: 33, link }.build().expect("a good topology");
    let mut config = unlimited(topology);
    config.host.mtu = 64;
    config.classes[0].format.control = 1000;
    config.switch.buffer = shared(4_000_000);
    config.switch.pfc = Some(fixed(1000, 0));
    config.flows = (1..33).map(|host| flow(0, host, 20_000)).collect();
    let outcome = run(config);
    delivered(&outcome);
    assert!(outcome.totals.pauses > 0);
}

// ---- Deadlocks ---------------------------------------------------------------------------------------------

/// Five switches in a ring with three hosts each; all send to the switch after the next, which is two links clockwise.
fn ring() -> Config {
    let link = link(100, Time::from_us(1));
    let ring = Ring { switches: 5, hosts_per_switch: 3, host_link: link, fabric_link: link };
    let mut config = unlimited(ring.build().expect("a good topology"));
    config.switch.pfc = Some(Pfc { deadlock_after: Some(Time::from_us(500)), ..fixed(20 * FRAME, 10 * FRAME) });
    config.flows = (0..15).map(|host| flow(host, (host + 6) % 15, 4_000_000)).collect();
    config.end = Time::from_ms(100);
    config
}

#[test]
fn a_ring_that_has_come_to_a_halt_is_diagnosed() {
    let outcome = run(ring());
    assert!(!outcome.complete);
    let deadlock = outcome.deadlock.clone().expect("a deadlock");
    // One queue of each switch, and each waits for the switch after it.
    let nodes: Vec<u32> = deadlock.cycle.iter().map(|queue| queue.node).collect();
    assert_eq!(nodes, [15, 16, 17, 18, 19]);
    assert!(deadlock.since + Time::from_us(500) <= deadlock.at, "{deadlock:?}");
    assert!(deadlock.at <= deadlock.since + Time::from_us(551), "{deadlock:?}");
    assert_eq!((outcome.ended_at, outcome.totals.pfc_cycles), (deadlock.at, 1));
    // Nothing had moved before either: no flow got anything through after that.
    for threads in [2, 3, 4] {
        let again = run(Config { threads, ..ring() });
        assert_eq!((&again.digest, &again.deadlock), (&outcome.digest, &outcome.deadlock), "{threads} threads");
    }
    let mut watched = ring();
    watched.probes.packets = Some(everything());
    let watched = run(watched);
    assert_eq!((watched.digest, watched.deadlock), (outcome.digest, outcome.deadlock));
}

/// The same when hosts do not try again for long: nothing at all happens any more, and the run must not end as if done.
#[test]
fn a_halt_without_any_event_is_diagnosed_too() {
    let mut config = ring();
    config.host.rto_min = Time::from_ms(1000);
    let outcome = run(config);
    let deadlock = outcome.deadlock.expect("a deadlock");
    assert!(deadlock.at <= deadlock.since + Time::from_us(551) && !outcome.complete, "{deadlock:?}");
}

#[test]
fn a_cycle_that_resolves_is_only_counted() {
    let with = |threads| {
        let mut config = Config { threads, ..ring() };
        config.switch.pfc = config.switch.pfc.map(|pfc| Pfc { deadlock_after: Some(Time::from_ms(5)), ..pfc });
        config.flows.iter_mut().for_each(|flow| flow.bytes = 400_000);
        // What waits for a cable that fails is lost, and without it there is no ring.
        let event = |at, up| link_event(&config.topology, Time::from_ms(at), "s1-s2", up);
        config.link_events = vec![event(2, false), event(60, true)];
        run(config)
    };
    let outcome = with(1);
    delivered(&outcome);
    assert_eq!((&outcome.deadlock, outcome.totals.pfc_cycles), (&None, 1));
    assert!(outcome.totals.lost > 0 && outcome.ended_at > Time::from_ms(2));
    assert_eq!(with(3).totals.pfc_cycles, 1);
}

/// A long wait that is no cycle is no deadlock.
#[test]
fn a_long_pause_is_no_deadlock() {
    let mut config = unlimited(slow_receiver());
    config.switch.pfc = Some(Pfc { deadlock_after: Some(Time::from_us(20)), ..fixed(100 * FRAME, FRAME) });
    config.flows = vec![flow(0, 2, 1_000 * u64::from(MTU)), flow(1, 2, 1_000 * u64::from(MTU))];
    let outcome = run(config);
    delivered(&outcome);
    assert_eq!((outcome.deadlock, outcome.totals.pfc_cycles), (None, 0));
    assert!(outcome.totals.paused > Time::from_us(1000));
}

/// A resume on its way, or waiting for its effect, is not lost, however little patience is asked for.
#[test]
fn a_resume_on_its_way_is_not_missed() {
    let mut config = unlimited(slow_receiver());
    config.switch.pfc = Some(Pfc {
        deadlock_after: Some(Time::from_ns(1)),
        response_delay: Time::from_us(10),
        ..fixed(100 * FRAME, FRAME)
    });
    config.flows = vec![flow(0, 2, 1_000 * u64::from(MTU)), flow(1, 2, 1_000 * u64::from(MTU))];
    let outcome = run(config);
    delivered(&outcome);
    assert!(outcome.totals.paused > Time::from_us(1000));
    assert_eq!((outcome.totals.pfc_stranded, outcome.deadlock), (0, None));
}

/// A resume that a bad cable loses is for ever, without a cycle: what is paused then waits for nothing.
#[test]
fn a_lost_resume_is_counted() {
    let with = |threads, expiry| {
        let mut topology = slow_receiver();
        topology.cables[0].link.loss = 0.2;
        let mut config = Config { threads, ..unlimited(topology) };
        let pfc = fixed(3 * FRAME, FRAME);
        config.switch.pfc = Some(Pfc { deadlock_after: Some(Time::from_ms(1)), expiry, ..pfc });
        config.flows = vec![flow(0, 2, 400 * u64::from(MTU))];
        config.end = Time::from_ms(100);
        config.seed = 2;
        common::run(config)
    };
    let outcome = with(1, None);
    assert_eq!((outcome.complete, outcome.totals.pfc_stranded, &outcome.deadlock), (false, 1, &None));
    assert_eq!(with(3, None).totals, Totals { events: with(3, None).totals.events, ..outcome.totals });
    let expiry = Some(Expiry { after: Time::from_us(100), refresh: Time::from_us(50) });
    assert_eq!(with(1, expiry).totals.pfc_stranded, 0);
}
