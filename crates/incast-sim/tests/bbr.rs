//! BBR through a simulated fabric.

mod common;

use common::{config, flow, link, text};
use incast_cc::{parameters::Raw, sender::Framing};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::Buffer,
    fabric::topology::{Dumbbell, Topology},
};
use incast_units::Time;

const PAYLOAD: u32 = 1410;
const FRAME: f64 = 1480.0;
const WIRE: f64 = 1500.0;

/// A bottleneck of 100 Gbps between links of 400 Gbps, and 10 us there and back.
fn bottleneck(senders: u32) -> Topology {
    let host_link = link(400, Time::from_us(1));
    let bottleneck = link(100, Time::from_ns(2_900));
    Dumbbell { left: senders, right: senders, host_link, bottleneck }.build().expect("a good topology")
}

fn long_flows(law: &str, senders: u32, parameters: &[(&str, Raw)], end: Time) -> Config {
    let topology = bottleneck(senders);
    let port = topology.find_port("s0->s1").expect("the bottleneck");
    let mut config = config(topology, law, &[]);
    config.host.mtu = PAYLOAD;
    config.classes = vec![common::class(&config.topology, PAYLOAD, law, parameters)];
    // Not all at once: each looks for its share in what the others have.
    config.flows = (0..senders)
        .map(|sender| FlowSpec {
            start: Time::from_us(u64::from(sender) * 137),
            ..flow(sender, senders + sender, 1 << 40)
        })
        .collect();
    config.probes.ports = Some((Time::from_us(1), vec![port]));
    config.end = end;
    config
}

fn used(outcome: &Outcome, from: Time, to: Time) -> f64 {
    let settled: Vec<_> = outcome.ports.iter().filter(|s| s.time >= from && s.time < to).collect();
    let (first, last) = (settled[0], settled[settled.len() - 1]);
    let bits = (last.tx_bytes - first.tx_bytes) as f64 * WIRE / FRAME * 8.0;
    bits / (last.time - first.time).as_secs_f64() / 100e9
}

fn queue(outcome: &Outcome, from: Time, to: Time) -> Vec<f64> {
    outcome.ports.iter().filter(|s| s.time >= from && s.time < to).map(|s| s.queue_bytes as f64).collect()
}

#[test]
fn explore() {
    let law = std::env::var("LAW").unwrap_or("bbr".into());
    let base = base_path(&bottleneck(1), PAYLOAD, Framing::Tcp).base_rtt;
    println!("base {base}");
    for senders in [1, 2, 4, 8] {
        for buffer in [None, Some(25_000), Some(125_000)] {
            let mut config = long_flows(
                &law,
                senders,
                &[("rtprop_window", text("5ms")), ("probe_rtt_duration", text("200us"))],
                Time::from_ms(20),
            );
            if let Some(bytes) = buffer {
                config.switch.buffer = Buffer::PerPort { bytes };
            }
            let outcome = common::run(config);
            for (from, to) in [(0, 1), (2, 4), (5, 10), (11, 15), (16, 20)] {
                let (from, to) = (Time::from_ms(from), Time::from_ms(to));
                let q = queue(&outcome, from, to);
                let mean = q.iter().sum::<f64>() / q.len() as f64;
                let most = q.iter().fold(0.0f64, |a, b| a.max(*b));
                let least = q.iter().fold(1e18f64, |a, b| a.min(*b));
                println!(
                    "N {senders} buffer {buffer:?} {from}-{to}: used {:.4} queue mean {mean:.0} min {least:.0} max {most:.0}",
                    used(&outcome, from, to)
                );
            }
            println!(
                "   drops {} of {}",
                outcome.totals.drops,
                outcome.ports.last().unwrap().tx_bytes as f64 / FRAME
            );
        }
    }
}
