//! Polo, whatever its options are: every flow arrives, and D keeps the queue short. What it does on the fabrics of its
//! slides, measured, is in `docs/polo.md`.

mod common;

use common::{class, conserved, delivered, flow, info, text, took};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Buffer, Ecn, HostConfig, LoadBalancing, Probes, Size, SwitchConfig},
    fabric::topology::{Dumbbell, LeafSpine, Link, SingleSwitch, Topology},
    simulate,
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

#[test]
fn a_thousand_senders_get_what_one_gets() {
    // Of each 1,520 B on the wire 1,430 are payload: at most 0.941 of the link.
    for (senders, least) in [(1, 0.85), (10, 0.85), (50, 0.85), (200, 0.85), (1000, 0.85)] {
        let share = goodput(&common::run(incast(senders, 100_000, &[])));
        assert!(share >= least, "{senders} senders: {share}");
    }
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
            choice("pause", &["until-marked", "off"]),
            choice("paused_window", &["lost", "awaited"]),
            choice("adjoint_scope", &["all", "active", "owner"]),
            choice("repair", &["all", "one"]),
        ),
        (
            switch("count_retransmissions"),
            switch("recovery1"),
            switch("recovery2"),
            switch("wasted_optimisation"),
            (0u32..20).prop_map(|packets| ("unscheduled", text(&format!("{}B", packets * 1000)))),
            prop::sample::select(&[0.0, 0.5, 1.0, 3.0]).prop_map(|d| ("d_floor", Raw::Float(d))),
        ),
    )
        .prop_map(|((a, b, c, d, e, f, g), (h, i, j, k, l, m))| {
            let scope = if a.1 == text("flow") && f.1 == text("owner") {
                ("adjoint_scope", text("active"))
            } else {
                f
            };
            // Without recovery 2 the literal reading gets one packet in each timeout, which takes too long.
            let second = if b.1 == text("per-data") { ("recovery2", Raw::Flag(true)) } else { j };
            vec![a, b, c, d, e, scope, g, h, i, second, k, l, m, ("rto", text("100us"))]
        })
}

/// Flows between random hosts, with loss on every link, control packets' too.
fn lossy(
    options: &[(&str, Raw)],
    loss: f64,
    buffer: u64,
    flows: &[(u32, u32, u64, u64)],
    seed: u64,
) -> Config {
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
