//! Polo, whatever its options are: every flow arrives, and D keeps the queue short. What it does on the fabrics of its
//! slides, measured, is in `docs/polo.md`.

use crate::common::{self, class, conserved, delivered, flow, info, text, took};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Buffer, Ecn, HostConfig, LoadBalancing, Probes, Size, SwitchConfig},
    simulate,
    topology::{Dumbbell, LeafSpine, Link, SingleSwitch, Topology},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

/// With TCP framing a frame of 1,500 B, as the slides count buffers.
const PAYLOAD: u32 = 1430;
const FRAME: u64 = 1500;

fn link(delay: Time, loss: f64) -> Link {
    Link { rate: Rate::from_gbps(1), delay, loss }
}

/// Hosts around one switch, at a base RTT of 50 us for full packets.
fn star(senders: u32) -> Topology {
    let link = link(Time::from_ns(5_950), 0.0);
    SingleSwitch { hosts: senders + 1, link }.build().expect("a good topology")
}

/// The slides' switch: 86 KB for each port, marks above five packets.
fn setup(topology: Topology, given: &[(&str, Raw)]) -> Config {
    let class = class(&topology, PAYLOAD, "polo", given);
    let receiver = class.law.receiver(&base_path(&topology, PAYLOAD, info("polo").framing));
    let mut config = Config {
        switch: SwitchConfig {
            priorities: 2,
            buffer: Buffer::PerPort { bytes: 57 * FRAME },
            ecn: Ecn::Step { at: Size::Bytes(5 * FRAME) },
            ..SwitchConfig::plain()
        },
        host: HostConfig { rto_min: Time::from_ms(1), ..HostConfig::plain(PAYLOAD) },
        classes: vec![class],
        end: Time::from_ms(20_000),
        ..common::config(topology, "polo", &[])
    };
    config.drive(receiver);
    config
}

/// All at once to host 0.
fn incast(senders: u32, bytes: u64, given: &[(&str, Raw)]) -> Config {
    let mut config = setup(star(senders), given);
    config.flows = (1..=senders).map(|source| flow(source, 0, bytes)).collect();
    config
}

/// Payload of all flows until the last one is there, as a share of 1 Gbit/s.
fn goodput(outcome: &Outcome) -> f64 {
    delivered(outcome);
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.bytes).sum();
    let last = outcome.flows.iter().filter_map(|flow| flow.delivered).max().expect("there are flows");
    bytes as f64 * 8.0 / last.as_secs_f64() / 1e9
}

#[test]
fn the_base_rtt_is_that_of_the_slides() {
    let path = base_path(&star(1), PAYLOAD, info("polo").framing);
    assert!((path.base_rtt.as_secs_f64() - 50e-6).abs() < 0.5e-6, "{}", path.base_rtt);
}

/// Of each 1,520 B on the wire 1,430 are payload, so that 0.941 of the link is the most there can be.
#[test]
fn a_thousand_senders_fill_the_link_as_one_does() {
    for senders in [1, 10, 50, 200, 1000] {
        for profile in ["scaled", "paper"] {
            let share = goodput(&common::run(incast(senders, 100_000, &[("profile", text(profile))])));
            assert!((0.88..0.941).contains(&share), "{senders} senders, {profile}: {share}");
        }
    }
}

/// Polo^a, Polo^b, Polo^c, also where each flow has a D of its own, so that more is lost.
#[test]
fn without_one_mechanism_every_flow_completes() {
    for scope in ["receiver", "flow"] {
        for mechanism in ["wasted_packet_optimization", "recovery2", "recovery1"] {
            for senders in [10, 40, 200] {
                let given = [("d_scope", text(scope)), (mechanism, Raw::Flag(false))];
                delivered(&common::run(incast(senders, 100_000, &given)));
            }
        }
    }
}

/// The trap: with an adjoint packet of each flow always on its way at strict priority, fifty flows leave nothing for
/// data.
#[test]
fn adjoint_packets_of_all_flows_starve_data() {
    let share = |scope| {
        let mut config = incast(50, 100_000, &[("adjoint_scope", text(scope))]);
        config.end = Time::from_ms(200);
        let outcome = common::run(config);
        let bytes: u64 = outcome.flows.iter().map(|flow| flow.delivered_bytes).sum();
        bytes as f64 / 5e6
    };
    let (all, active, owner) = (share("all"), share("active"), share("owner"));
    assert!(all < 0.2, "{all}");
    assert_eq!((active, owner), (1.0, 1.0));
}

/// Where each flow has a D of its own, at least 1, pausing keeps the buffer from overflowing.
#[test]
fn pausing_counts_where_each_flow_has_its_own_d() {
    let run = |pause| {
        let given = [("d_scope", text("flow")), ("pause", text(pause))];
        let outcome = common::run(incast(200, 100_000, &given));
        (goodput(&outcome), outcome.totals.drops)
    };
    let (paused, all) = (run("until-marked"), run("off"));
    assert!(paused.0 > 1.3 * all.0 && 3 * paused.1 < all.1, "{paused:?} {all:?}");
}

/// Packets in the receiver's queue, quantiles of samples from `from` on.
fn queue(outcome: &Outcome, from: Time, quantiles: [f64; 3]) -> [f64; 3] {
    let samples = outcome.ports.iter().filter(|sample| sample.priority == 1 && sample.time >= from);
    let mut queue: Vec<f64> = samples.map(|sample| sample.queue_bytes as f64 / FRAME as f64).collect();
    queue.sort_by(f64::total_cmp);
    quantiles.map(|quantile| queue[((queue.len() - 1) as f64 * quantile) as usize])
}

/// Long flows, the receiver's port sampled.
fn long(senders: u32, end: Time, given: &[(&str, Raw)]) -> Config {
    let mut config = incast(senders, 1 << 30, given);
    config.probes = Probes { ports: Some((Time::from_us(5), vec![(senders + 1, 0)])), ..Probes::default() };
    config.end = end;
    config
}

/// Slides, "Controlling the queue well": it stays about the threshold of five packets.
#[test]
fn the_queue_stays_about_the_threshold() {
    for senders in [2, 4, 10, 40, 200] {
        let end = Time::from_ms(200);
        let outcome = common::run(long(senders, end, &[]));
        let [median, most, max] = queue(&outcome, Time::from_ms(20), [0.5, 0.95, 1.0]);
        assert!((4.0..=7.0).contains(&median), "{senders} senders: {median}");
        assert!((8.0..=11.0).contains(&most) && max < 20.0, "{senders} senders: {most}, {max}");
        let bytes: u64 = outcome.flows.iter().map(|flow| flow.delivered_bytes).sum();
        let share = bytes as f64 * 8.0 / end.as_secs_f64() / 1e9;
        assert!((0.88..0.941).contains(&share), "{senders} senders: {share}");
    }
}

/// A sender's own link does not mark: D would rise for as long as one sender fills it, and the next one would find it
/// so.
#[test]
fn a_bound_on_d_spares_those_who_join() {
    let join = |most| {
        let mut config = long(5, Time::from_ms(100), &[("d_max", Raw::Float(most))]);
        config.flows.iter_mut().skip(1).for_each(|flow| flow.start = Time::from_ms(50));
        let outcome = common::run(config);
        (outcome.totals.drops, queue(&outcome, Time::from_ms(75), [0.0, 0.5, 1.0])[1])
    };
    let ((drops, queue), (drops_without, queue_without)) = (join(8.0), join(1e9));
    assert!(drops == 0 && queue < 8.0, "{drops} {queue}");
    assert!(drops_without > 100 && queue_without > 50.0, "{drops_without} {queue_without}");
}

/// What nothing stops takes 200 Mbit/s of the link between two switches; 0.8 of the rest's 0.941 is left.
#[test]
fn a_bottleneck_in_the_core_is_shared_with_what_does_not_yield() {
    let link = link(Time::from_ns(1_770), 0.0);
    let topology = Dumbbell { left: 5, right: 2, host_link: link, bottleneck: link }.build();
    let mut config = setup(topology.expect("a good topology"), &[]);
    let mut background = class(&config.topology, PAYLOAD, "constant-rate", &[("rate", text("200Mbps"))]);
    (background.priority, background.ack_priority) = (1, Some(0));
    config.classes.push(background);
    config.flows = (0..4).map(|source| flow(source, 5, 1 << 30)).collect();
    config.flows.push(FlowSpec { class: 1, ..flow(4, 6, 1 << 30) });
    config.end = Time::from_ms(200);
    let outcome = common::run(config);
    let bytes: u64 = outcome.flows.iter().take(4).map(|flow| flow.delivered_bytes).sum();
    let share = bytes as f64 * 8.0 / 0.2 / 1e9;
    assert!((0.69..0.76).contains(&share), "{share}");
    let background = outcome.flows[4].delivered_bytes as f64 * 8.0 / 0.2 / 1e9;
    assert!((0.18..0.2).contains(&background), "{background}");
}

/// What goes blindly takes what it would take alone; a longer flow is never left without driving packets.
#[test]
fn alone_a_flow_takes_its_ideal_time() {
    for bytes in [1, 1430, 5 * 1430] {
        let outcome = common::run(incast(1, bytes, &[]));
        assert_eq!(outcome.flows[0].delivered.map(|at| at - outcome.flows[0].start), outcome.flows[0].ideal);
    }
    for bytes in [100_000, 10_000_000] {
        let outcome = common::run(incast(1, bytes, &[]));
        let (took, ideal) = (took(&outcome.flows[0]), common::ideal(&outcome.flows[0]));
        let slowdown = took.as_secs_f64() / ideal.as_secs_f64();
        assert!(slowdown < 1.07, "{bytes} B: {slowdown}");
    }
}

/// How much longer a flow of 60 packets takes in us if the sender's link is down for a moment, for each of 60 moments 1
/// us apart: packets take 12.16 us, so that one in each direction is lost at most, data, driving, adjoint or
/// acknowledge packet.
fn interrupted(given: &[(&str, Raw)]) -> Vec<f64> {
    let run = |moment: Option<u64>| {
        let mut config = incast(1, 60 * u64::from(PAYLOAD), given);
        let event = |us, up| common::link_event(&config.topology, Time::from_us(us), "h1-s0", up);
        if let Some(us) = moment {
            config.link_events = vec![event(us, false), event(us + 1, true)];
        }
        let outcome = common::run(config);
        delivered(&outcome);
        took(&outcome.flows[0]).as_secs_f64() * 1e6
    };
    let alone = run(None);
    let mut longer: Vec<f64> = (300..360).map(|moment| run(Some(moment)) - alone).collect();
    longer.sort_by(f64::total_cmp);
    longer
}

/// A gap costs no more than the packet itself and what waits; what leaves no gap waits for recovery 2, as does all
/// without recovery 1; and if the ping-pong is broken too, for the sender's timeout, which is 1 ms after its last
/// adjoint packet.
#[test]
fn losses_are_repaired_in_round_trips_unless_the_ping_pong_is_broken() {
    let (all, without) = (interrupted(&[]), interrupted(&[("recovery1", Raw::Flag(false))]));
    let count = |longer: &[f64], from: f64, to: f64| longer.iter().filter(|us| (from..to).contains(*us)).count();
    assert!(count(&all, 0.0, 30.0) >= 15 && count(&all, 150.0, 350.0) >= 10, "{all:?}");
    assert!(count(&without, 0.0, 30.0) < count(&all, 0.0, 30.0), "{without:?}");
    assert!(all[59] < 1_000.0 && without[59] < 1_500.0, "{all:?} {without:?}");
}

#[test]
fn threads_change_nothing_under_any_reading() {
    let flows: Vec<_> = (0..24u32).map(|i| (i % 9, i / 9 % 8, 30_000, u64::from(i) * 50)).collect();
    for reading in [
        vec![],
        vec![("d_scope", text("flow"))],
        vec![("driving", text("per-data")), ("recovery2_scope", text("one"))],
        vec![("epoch", text("each")), ("adjoint_scope", text("all"))],
    ] {
        let run = |threads| {
            let outcome = common::run(Config { threads, ..lossy(&reading, 0.02, 8_000, &flows, 7) });
            delivered(&outcome);
            (outcome.digest, outcome.totals)
        };
        let one = run(1);
        assert!(one.1.lost > 0 && one.1.drops > 0, "{:?}", one.1);
        assert_eq!(one, run(2), "{reading:?}");
        assert_eq!(one, run(4), "{reading:?}");
    }
}

/// Flows of four sizes among racks, with more to come than the core carries at times: the mean slowdown of those of 20
/// KB.
fn racks(given: &[(&str, Raw)]) -> f64 {
    let link = link(Time::from_us(2), 0.0);
    let topology =
        LeafSpine { leaves: 4, spines: 2, hosts_per_leaf: 6, host_link: link, fabric_link: link, fabric_links: 1 }
            .build();
    let mut config = setup(topology.expect("a good topology"), given);
    config.switch.load_balancing = LoadBalancing::Ecmp;
    config.flows = (0..600u32)
        .map(|i| {
            let source = i * 7 % 24;
            let bytes = [700, 3_000, 20_000, 300_000][i as usize % 4];
            let start = Time::from_us(u64::from(i) * 40);
            FlowSpec { start, ..flow(source, (source + 1 + i * 5 % 23) % 24, bytes) }
        })
        .collect();
    let outcome = common::run(config);
    delivered(&outcome);
    let middle = outcome.flows.iter().filter(|flow| flow.bytes == 20_000);
    middle.map(|flow| took(flow).as_secs_f64() / common::ideal(flow).as_secs_f64()).sum::<f64>() / 150.0
}

/// Once a packet was marked, a flow that comes is paused until an active one ends, however long that is. A number of
/// active flows from which on others are paused does as much against an incast.
#[test]
fn pausing_after_the_first_mark_makes_short_flows_wait_for_long_ones() {
    let (paused, crowded) = (racks(&[]), racks(&[("pause", text("active-limit"))]));
    assert!(paused > 50.0 && crowded < 15.0, "{paused} {crowded}");
    let share = goodput(&common::run(incast(1000, 100_000, &[("pause", text("active-limit"))])));
    assert!(share > 0.88, "{share}");
    let off = goodput(&common::run(incast(1000, 100_000, &[("pause", text("off"))])));
    assert!(off < 0.8, "{off}");
}

fn choice(name: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = (&'static str, Raw)> {
    prop::sample::select(values).prop_map(move |value| (name, text(value)))
}

fn switch(name: &'static str) -> impl Strategy<Value = (&'static str, Raw)> {
    any::<bool>().prop_map(move |on| (name, Raw::Flag(on)))
}

/// Any options but recovery 3, without which nobody says again what was lost.
fn options() -> impl Strategy<Value = Vec<(&'static str, Raw)>> {
    (
        (
            choice("d_scope", &["receiver", "flow"]),
            choice("driving", &["window", "per-data"]),
            choice("epoch", &["owner", "each"]),
            choice("pause", &["until-marked", "active-limit", "off"]),
            choice("paused_window", &["lost", "awaited"]),
            choice("adjoint_scope", &["all", "active", "owner"]),
            choice("recovery2_scope", &["all", "one"]),
        ),
        (
            switch("count_retransmissions"),
            switch("recovery1"),
            switch("recovery2"),
            switch("wasted_packet_optimization"),
            (0u32..20).prop_map(|packets| ("unscheduled", text(&format!("{}B", packets * 1000)))),
            prop::sample::select(&[0.0, 0.5, 1.0, 3.0]).prop_map(|d| ("d_min", Raw::Float(d))),
        ),
    )
        .prop_map(|((a, b, c, d, e, f, g), (h, i, j, k, l, m))| {
            let scope = if a.1 == text("flow") && f.1 == text("owner") { ("adjoint_scope", text("active")) } else { f };
            // Without recovery 2 the literal reading gets one packet in each timeout, which takes too long.
            let second = if b.1 == text("per-data") { ("recovery2", Raw::Flag(true)) } else { j };
            vec![
                a,
                b,
                c,
                d,
                e,
                scope,
                g,
                h,
                i,
                second,
                k,
                l,
                m,
                ("rto", text("100us")),
                ("max_active", Raw::Integer(2)),
            ]
        })
}

/// Flows between random hosts, with loss on every link, control packets' too.
fn lossy(options: &[(&str, Raw)], loss: f64, buffer: u64, flows: &[(u32, u32, u64, u64)], seed: u64) -> Config {
    let link = link(Time::from_us(5), loss);
    let topology = Dumbbell { left: 6, right: 3, host_link: link, bottleneck: link }.build();
    let mut config = setup(topology.expect("a good topology"), options);
    config.switch.buffer = Buffer::PerPort { bytes: buffer };
    config.host.rto_min = Time::from_us(100);
    config.seed = seed;
    config.end = Time::from_ms(600_000);
    config.flows = flows
        .iter()
        .map(|(source, hop, bytes, start)| FlowSpec {
            start: Time::from_us(*start),
            ..flow(*source, (source + 1 + hop) % 9, *bytes)
        })
        .collect();
    config
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_every_flow_arrives(
        options in options(),
        loss in prop_oneof![Just(0.0), 0.0..0.05, 0.05..0.3],
        buffer in 3_000u64..90_000,
        flows in prop::collection::vec((0u32..9, 0u32..8, 1u64..60_000, 0u64..3_000), 1..20),
        seed in any::<u64>(),
    ) {
        let outcome = simulate(lossy(&options, loss, buffer, &flows, seed)).expect("it can be run");
        conserved(&outcome);
        let missing: Vec<_> = outcome.flows.iter().filter(|flow| flow.acked.is_none()).collect();
        prop_assert!(missing.is_empty(), "{missing:?}");
        delivered(&outcome);
    }
}
