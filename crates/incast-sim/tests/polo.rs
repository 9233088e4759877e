//! Polo on the fabrics of its slides.

mod common;

use common::{class, delivered, flow, text};
use incast_cc::{parameters::Raw, receiver::ReceiverScheduler};
use incast_sim::{
    Config, Outcome,
    config::{Buffer, Ecn, Size, SwitchConfig},
    fabric::topology::{Link, SingleSwitch},
};
use incast_units::{Rate, Time};

/// A full packet is a frame of 1,500 B with TCP framing.
const PAYLOAD: u32 = 1430;
const FRAME: u64 = 1500;

fn sweep(senders: u32, bytes: u64, given: &[(&str, Raw)]) -> Config {
    let link = Link { rate: Rate::from_gbps(1), delay: Time::from_ns(5_600), loss: 0.0 };
    let topology = SingleSwitch { hosts: senders + 1, link }.build().expect("a good topology");
    let class = class(&topology, PAYLOAD, "polo", given);
    let path = incast_sim::base_path(&topology, PAYLOAD, common::info("polo").framing);
    eprintln!("base rtt {}", path.base_rtt);
    let receiver = class.law.receiver(&path);
    let mut config = Config {
        switch: SwitchConfig {
            priorities: 2,
            buffer: Buffer::PerPort { bytes: 57 * FRAME },
            ecn: Ecn::Step { at: Size::Bytes(5 * FRAME) },
            ..SwitchConfig::plain()
        },
        host: incast_sim::config::HostConfig::plain(PAYLOAD),
        classes: vec![class],
        ..common::config(topology, "polo", &[])
    };
    config.host.rto_min = Time::from_ms(1);
    config.drive(receiver);
    config.flows = (1..=senders).map(|source| flow(source, 0, bytes)).collect();
    config.end = Time::from_ms(20_000);
    config
}

fn goodput(outcome: &Outcome) -> f64 {
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.bytes).sum();
    let last = outcome.flows.iter().filter_map(|flow| flow.delivered).max().unwrap_or(Time::MAX);
    bytes as f64 * 8.0 / last.as_secs_f64() / 1e9
}

fn report(name: &str, given: &[(&str, Raw)]) {
    for n in [1, 10, 50, 200, 1000] {
        let mut config = sweep(n, 100_000, given);
        if let Ok(end) = std::env::var("END") {
            config.end = Time::from_ms(end.parse().unwrap());
        }
        let start = std::time::Instant::now();
        let outcome = incast_sim::simulate(config).unwrap();
        let done = outcome.flows.iter().filter(|f| f.delivered.is_some()).count();
        let timeouts: u32 = outcome.flows.iter().map(|f| f.timeouts).sum();
        let again: u64 = outcome.flows.iter().map(|f| f.retransmitted_bytes).sum();
        println!(
            "{name} n={n} done={done} goodput={:.3} drops={} timeouts={timeouts} again={} marks={} hops={} cpu={:?}",
            goodput(&outcome),
            outcome.totals.drops,
            again / 1430,
            outcome.flows.iter().map(|f| f.marked_packets).sum::<u32>(),
            outcome.totals.packet_hops,
            start.elapsed()
        );
    }
}

#[test]
fn numbers() {
    report("default", &[]);
    report("paper", &[("profile", text("paper"))]);
    for (k, v) in [
        ("adjoint_scope", "active"),
        ("adjoint_scope", "all"),
        ("pause", "off"),
        ("d_scope", "flow"),
        ("driving", "per-data"),
        ("epoch", "each"),
    ] {
        report(&format!("{k}={v}"), &[(k, text(v))]);
    }
    for k in ["recovery1", "recovery2", "recovery3", "wasted_optimisation"] {
        report(k, &[(k, Raw::Flag(false))]);
    }
}
