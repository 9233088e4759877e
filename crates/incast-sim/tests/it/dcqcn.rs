//! DCQCN through a simulated fabric: its fixed point, its recovery, equal shares.
//!
//! Theory: Y. Zhu et al., "ECN or Delay", CoNEXT 2016, equation 14. N flows have the marking probability
//! `p* = cbrt(R_AI N^2 / (tau' C^2) (1/B + N / (T C))^2)`, in packets and packets per second, and with it the queue
//! `q* = Kmin + p* / Pmax (Kmax - Kmin)`.

use crate::common::{self, config, flow, link, text};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, Outcome,
    config::{Ecn, Size},
    topology::SingleSwitch,
};
use incast_units::Time;

const PAYLOAD: u32 = 1000;
const FRAME: f64 = 1062.0;
const WIRE: f64 = 1082.0;
const RATE: f64 = 40e9;

/// Long flows to one receiver at 40 Gbps with the constants and the RED of the paper.
fn long_flows(senders: u32, end: Time, parameters: &[(&str, Raw)]) -> Config {
    let topology = SingleSwitch { hosts: senders + 1, link: link(40, Time::from_us(1)) };
    let topology = topology.build().expect("a good topology");
    let port = topology.find_port(&format!("s0->h{senders}")).expect("the receiver's port");
    let mut config = config(topology, "dcqcn", &[]);
    config.host.mtu = PAYLOAD;
    let parameters: Vec<_> = [("profile", text("paper"))].into_iter().chain(parameters.iter().cloned()).collect();
    config.classes = vec![common::class(&config.topology, PAYLOAD, "dcqcn", &parameters)];
    config.flows = (0..senders).map(|sender| flow(sender, senders, 1 << 40)).collect();
    config.switch.ecn = Ecn::Red { min: Size::Bytes(5_000), max: Size::Bytes(200_000), p: 0.01 };
    config.probes.ports = Some((Time::from_us(5), vec![port]));
    config.end = end;
    config
}

/// Jain's index of what was delivered.
fn jain(outcome: &Outcome) -> f64 {
    let shares = outcome.flows.iter().map(|flow| flow.delivered_bytes as f64);
    let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (outcome.flows.len() as f64 * squares)
}

#[test]
fn the_queue_is_that_of_the_fixed_point() {
    // With eight flows the queue oscillates down to nothing, which the fixed point does not know of.
    for (senders, tolerance) in [(2, 0.15), (4, 0.15), (8, 0.5)] {
        let outcome = common::run(long_flows(senders, Time::from_ms(400), &[]));
        let late: Vec<_> = outcome.ports.iter().filter(|sample| sample.time >= Time::from_ms(150)).collect();
        let queue = late.iter().map(|sample| sample.queue_bytes as f64).sum::<f64>() / late.len() as f64;
        let bytes = late[late.len() - 1].tx_bytes - late[0].tx_bytes;
        let seconds = (late[late.len() - 1].time - late[0].time).as_secs_f64();
        let used = bytes as f64 * WIRE / FRAME * 8.0 / seconds / RATE;

        let n = f64::from(senders);
        let capacity = RATE / 8.0 / WIRE;
        let step = 40e6 / 8.0 / WIRE;
        let timer = 55e-6;
        let bytes = 10e6 / f64::from(PAYLOAD);
        let rounds = 1.0 / bytes + n / (timer * capacity);
        let p = libm::cbrt(step * n * n / (timer * capacity * capacity) * rounds * rounds);
        let expected = 5_000.0 + p / 0.01 * 195_000.0;
        println!("N {senders}: queue {queue:.0} ({expected:.0}), used {used:.4}, Jain {:.4}", jain(&outcome));
        assert!((queue / expected - 1.0).abs() < tolerance, "N {senders}: {queue} in place of {expected}");
        assert!(used > 0.95, "N {senders}: {used}");
        assert!(jain(&outcome) > 0.95, "N {senders}: {}", jain(&outcome));
        assert_eq!(outcome.totals.drops, 0);
    }
}

/// After the last notification the gap to the target is halved five times, 55 us apart; then the target rises.
#[test]
fn recovery_halves_the_gap_five_times() {
    let mut config = long_flows(2, Time::from_ms(3), &[]);
    // The second flow ends early and leaves the first alone.
    config.flows[1].bytes = 500_000;
    config.switch.ecn = Ecn::Red { min: Size::Bytes(20_000), max: Size::Bytes(100_000), p: 1.0 };
    config.probes.rates = Some((Time::from_ns(500), 1 << 30));
    let outcome = common::run(config);
    let rates: Vec<_> = outcome.rates.iter().map(|sample| (sample.time, sample.assigned_bps as f64)).collect();
    let last_cut = (1..rates.len()).rev().find(|index| rates[*index].1 < rates[*index - 1].1).expect("a cut");
    let mut steps = vec![rates[last_cut]];
    for sample in &rates[last_cut..] {
        if sample.1 > steps[steps.len() - 1].1 * (1.0 + 1e-9) {
            steps.push(*sample);
        }
    }
    let gains: Vec<f64> = steps.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    println!("{steps:?}");
    for pair in gains[..5].windows(2) {
        assert!((pair[0] / pair[1] - 2.0).abs() < 1e-3, "{gains:?}");
    }
    let target = steps[0].1 + 2.0 * gains[0];
    assert!(((target - steps[5].1) / (target - steps[0].1) - 1.0 / 32.0).abs() < 1e-3);
    assert!(gains[5] > gains[4] / 2.0 + 19e6, "then half of 40 Mbit/s comes on top: {gains:?}");
    for pair in steps[1..5].windows(2) {
        let apart = (pair[1].0 - pair[0].0).as_us_f64();
        assert!((apart - 55.0).abs() < 2.0, "{apart} us");
    }
}

/// The receiver sends at most one notification for a flow in `cnp_interval`, and where everything is marked, one as
/// soon as it may.
#[test]
fn notifications_are_as_far_apart_as_they_should_be() {
    for interval in [50.0, 500.0] {
        let mut config = long_flows(1, Time::from_ms(4), &[("cnp_interval", text(&format!("{interval}us")))]);
        config.switch.ecn = Ecn::Step { at: Size::Bytes(0) };
        config.topology.cables[1].link.rate = incast_units::Rate::from_gbps(1);
        config.probes.rates = Some((Time::from_us(1), 1));
        let outcome = common::run(config);
        let cuts: Vec<f64> = outcome
            .rates
            .windows(2)
            .filter(|pair| pair[1].assigned_bps < pair[0].assigned_bps)
            .map(|pair| pair[1].time.as_us_f64())
            .collect();
        let gaps: Vec<f64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        println!("{interval} us: {gaps:?}");
        // A packet arrives every 8.7 us, and the samples are 1 us apart.
        assert!(gaps.len() >= 5);
        assert!(gaps.iter().all(|gap| *gap > interval - 2.0));
        assert!(gaps.iter().all(|gap| *gap < interval + 12.0));
    }
}

#[test]
fn flows_of_the_nics_variant_share_too() {
    let mut config = long_flows(4, Time::from_ms(200), &[("variant", text("mellanox"))]);
    // The thresholds that HPCC's simulator has for it, at 40 Gbps.
    config.switch.ecn = Ecn::Red { min: Size::Bytes(160_000), max: Size::Bytes(640_000), p: 0.2 };
    let outcome = common::run(config);
    println!("Jain {:.4}, longest queue {}", jain(&outcome), outcome.totals.max_queue_bytes);
    assert!(jain(&outcome) > 0.9, "{}", jain(&outcome));
    assert_eq!(outcome.totals.drops, 0);
}
