//! Swift through a simulated fabric: the delay is held at its target, with few flows and with very many.
//!
//! Theory: G. Kumar et al., SIGCOMM 2020. A window grows below the target and shrinks above it, so that the RTT hovers
//! about `base_target + hops h + clamp(alpha / sqrt(w) + beta, 0, range)` at the window w of the steady state.

use crate::common::{self, config, flow, link, star, text};
use incast_cc::{law::Framing, parameters::Raw};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::Buffer,
    topology::{Chain, Dumbbell, Topology},
};
use incast_units::Time;

const PAYLOAD: u32 = 1410;
const FRAME: f64 = 1480.0;
const WIRE: f64 = 1500.0;
const SETTLED: Time = Time::from_ms(5);

/// A bottleneck of 100 Gbps between links of 400 Gbps.
fn bottleneck(senders: u32) -> Topology {
    let host_link = link(400, Time::from_us(1));
    let bottleneck = link(100, Time::from_ns(2_900));
    Dumbbell { left: senders, right: senders, host_link, bottleneck }.build().expect("a good topology")
}

fn long_flows(senders: u32, parameters: &[(&str, Raw)]) -> Config {
    let topology = bottleneck(senders);
    let port = topology.find_port("s0->s1").expect("the bottleneck");
    let mut config = config(topology, "swift", &[]);
    config.host.mtu = PAYLOAD;
    let initial = ("initial_window", text("14100B"));
    let parameters: Vec<_> = parameters.iter().cloned().chain([initial]).collect();
    config.classes = vec![common::class(&config.topology, PAYLOAD, "swift", &parameters)];
    config.flows = (0..senders).map(|sender| flow(sender, senders + sender, 1 << 40)).collect();
    config.probes.ports = Some((Time::from_us(1), vec![port]));
    config.end = Time::from_ms(20);
    config
}

/// Mean queue in bytes and share of a link of `gbps` in use, after `settled`.
fn queue_and_use(outcome: &Outcome, settled: Time, gbps: f64, wire: f64) -> (f64, f64) {
    let samples: Vec<_> = outcome.ports.iter().filter(|sample| sample.time >= settled).collect();
    let mean = samples.iter().map(|sample| sample.queue_bytes as f64).sum::<f64>() / samples.len() as f64;
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let bits = (last.tx_bytes - first.tx_bytes) as f64 * wire * 8.0;
    (mean, bits / (last.time - first.time).as_secs_f64() / (gbps * 1e9))
}

fn jain(outcome: &Outcome) -> f64 {
    let shares = outcome.flows.iter().map(|flow| flow.delivered_bytes as f64);
    let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (outcome.flows.len() as f64 * squares)
}

#[test]
fn the_delay_stays_at_its_target() {
    for senders in [1, 2, 4, 8, 16] {
        let base = base_path(&bottleneck(senders), PAYLOAD, Framing::Tcp).base_rtt.as_us_f64();
        let outcome = common::run(long_flows(senders, &[]));
        // Base target, two switches, and the fixed point of flow scaling and window.
        let range = 4.0 * base;
        let alpha = range / (1.0 / 0.1f64.sqrt() - 0.1);
        let mut target = base;
        for _ in 0..100 {
            let window = target * 1e-6 * 100e9 / 8.0 / WIRE / f64::from(senders);
            target = base * (1.0 + 2.0 / 6.55) + (alpha / window.sqrt() - alpha / 10.0).clamp(0.0, range);
        }
        let expected = (target - base) * 1e-6 * 100e9 / 8.0 * FRAME / WIRE;
        let (queue, used) = queue_and_use(&outcome, SETTLED, 100.0, WIRE / FRAME);
        println!("N {senders}: queue {queue:.0} B ({expected:.0}), used {used:.4}, Jain {:.4}", jain(&outcome));
        assert!((queue / expected - 1.0).abs() < 0.2, "N {senders}: {queue} in place of {expected}");
        assert!(used > 0.98, "N {senders}: {used}");
        assert!(jain(&outcome) > 0.95, "N {senders}: {}", jain(&outcome));
        assert_eq!(outcome.totals.drops, 0);
    }
}

/// Acceptance test of the paper's section 5.3 in spirit: far more flows than packets fit into the pipe.
#[test]
fn a_thousand_flows_share_a_link_with_windows_below_one_packet() {
    let senders = 1000;
    let mut config = config(star(senders + 1), "swift", &[("initial_window", text("4096B"))]);
    let base = base_path(&config.topology, config.host.mtu, Framing::Tcp).base_rtt;
    let port = config.topology.find_port(&format!("s0->h{senders}")).expect("the receiver's port");
    let start = |sender: u32| Time::from_ns(u64::from(sender) * 1_013);
    let flows = (0..senders).map(|sender| FlowSpec { start: start(sender), ..flow(sender, senders, 1 << 40) });
    config.flows = flows.collect();
    config.switch.buffer = Buffer::PerPort { bytes: 8_000_000 };
    config.probes.ports = Some((Time::from_us(1), vec![port]));
    config.probes.rates = Some((Time::from_ms(1), 1));
    config.end = Time::from_ms(30);
    let outcome = common::run(config);
    let settled = Time::from_ms(10);
    let (queue, used) = queue_and_use(&outcome, settled, 100.0, 4186.0 / 4166.0);
    let mut queues: Vec<_> =
        outcome.ports.iter().filter(|sample| sample.time >= settled).map(|sample| sample.queue_bytes).collect();
    queues.sort_unstable();
    let mut windows: Vec<_> =
        outcome.rates.iter().filter(|sample| sample.time >= settled).map(|sample| sample.window_bytes).collect();
    windows.sort_unstable();
    let (median, p99) = (windows[windows.len() / 2], queues[queues.len() * 99 / 100]);
    // The largest target there is, and the mean RTT.
    let base = base.as_us_f64();
    let largest = base * (1.0 + 4.0 + 1.0 / 6.55);
    let rtt = base + queue / 12_500.0;
    println!(
        "RTT {rtt:.1} us ({largest:.1}), p99 of the queue {p99} B, used {used:.4}, window {median} B, Jain {:.4}",
        jain(&outcome)
    );
    assert_eq!(outcome.totals.drops, 0);
    assert!(median < 4096, "{median}");
    assert!(used > 0.95, "{used}");
    // Below one packet algorithm 1 adds a whole packet to the window for each acknowledgement below the target, so that
    // most of them must come above it: the delay stays near the largest target, but not below.
    assert!(rtt < 1.4 * largest, "{rtt} us beyond {largest} us");
}

/// A flow through more switches has the higher target: with equal windows at stake it would lose without.
#[test]
fn hops_are_counted_on_the_way() {
    // Two flows share the port to the receiver, one to four switches away: that is where they queue.
    let link = link(100, Time::from_us(1));
    let chain = Chain { switches: 4, hosts_per_switch: 3, host_link: link, fabric_link: link };
    let topology = chain.build().expect("a good topology");
    let base = base_path(&topology, common::MTU, Framing::Tcp).base_rtt;
    for (destination, hops) in [(2, 1.0), (5, 2.0), (8, 3.0), (11, 4.0)] {
        let mut config = config(topology.clone(), "swift", &[("scaling_range", text("0us"))]);
        config.flows = vec![flow(0, destination, 1 << 40), flow(1, destination, 1 << 40)];
        config.probes.rates = Some((Time::from_us(10), 1));
        config.end = Time::from_ms(20);
        let outcome = common::run(config);
        let settled = outcome.rates.iter().filter(|sample| sample.time >= SETTLED);
        let windows: Vec<_> = settled.map(|sample| sample.window_bytes as f64).collect();
        let window = 2.0 * windows.iter().sum::<f64>() / windows.len() as f64;
        // What is in flight is the rate times the target, whatever the way's own base RTT.
        let target = base.as_secs_f64() * (1.0 + hops / 6.55);
        let expected = target * 100e9 / 8.0 * 4096.0 / 4186.0;
        println!("{hops} hops: windows {window:.0} ({expected:.0})");
        assert!((window / expected - 1.0).abs() < 0.1, "{hops} hops: {window} in place of {expected}");
    }
}

/// The time that the receiver's NIC takes for an acknowledgement is the endpoint's delay, which has a target of its own.
/// The time for which it is held on purpose is no congestion, whatever its length.
#[test]
fn slow_acknowledgements_are_the_endpoints_and_held_ones_nobodys() {
    let goodput = |target: &str, slow: Time, held: Time| {
        let mut config = config(star(2), "swift", &[("endpoint_target", text(target))]);
        config.flows = vec![flow(0, 1, 1 << 40)];
        config.host.response_delay = slow;
        config.host.ack_every = if held > Time::ZERO { 4 } else { 1 };
        config.host.ack_delay = held;
        config.end = Time::from_ms(5);
        common::run(config).flows[0].delivered_bytes as f64 * 8.0 / 5e-3
    };
    let slow = Time::from_us(30);
    let (patient, strict) = (goodput("100us", slow, Time::ZERO), goodput("3us", slow, Time::ZERO));
    println!("{:.2} and {:.2} Gbit/s", patient / 1e9, strict / 1e9);
    assert!(patient > 10.0 * strict);
    let free = goodput("3us", Time::ZERO, Time::ZERO);
    for held in [slow, Time::from_us(200), Time::from_us(1_500)] {
        let goodput = goodput("3us", Time::ZERO, held);
        println!("held for {held}: {:.2} of {:.2} Gbit/s", goodput / 1e9, free / 1e9);
        assert!(goodput > 0.9 * free, "{held}");
    }
}
