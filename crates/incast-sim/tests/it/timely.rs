//! TIMELY through a simulated fabric: as published it keeps whatever shares flows start with; patched it does not.
//!
//! Theory: Y. Zhu et al., "ECN or Delay", CoNEXT 2016, theorems 4 and 5. TIMELY has infinitely many fixed points: a
//! gradient of zero says nothing of shares. Patched TIMELY has one, at equal rates and `rtt = T_low (1 + N delta /
//! (beta C))`.

use crate::common::{self, config, flow, link, text};
use incast_cc::{law::Framing, parameters::Raw};
use incast_sim::{
    Outcome, base_path,
    topology::{Dumbbell, SingleSwitch},
};
use incast_units::Time;

const PAYLOAD: u32 = 1000;
/// A frame of RoCEv2, and what it takes on the wire.
const FRAME: f64 = 1062.0;
const WIRE: f64 = 1082.0;

/// Two flows with 90% and 10% of a link of 10 Gbps, and a base RTT of about 20 us: the paper's network.
fn unequal(variant: &str, end: Time) -> (Outcome, f64) {
    let topology = SingleSwitch { hosts: 3, link: link(10, Time::from_ns(4_500)) }.build().expect("a good topology");
    let base = base_path(&topology, PAYLOAD, Framing::RoceV2).base_rtt;
    let port = topology.find_port("s0->h2").expect("the receiver's port");
    let mut config = config(topology, "timely", &[]);
    config.host.mtu = PAYLOAD;
    let class = |initial: &str| {
        let parameters: [(&str, Raw); 3] =
            [("profile", text("paper")), ("variant", text(variant)), ("initial_rate", text(initial))];
        common::class(&config.topology, PAYLOAD, "timely", &parameters)
    };
    config.classes = vec![class("9Gbps"), class("1Gbps")];
    config.flows = vec![flow(0, 2, 1 << 40), flow(1, 2, 1 << 40)];
    config.flows[1].class = 1;
    config.probes.ports = Some((Time::from_us(10), vec![port]));
    config.probes.rates = Some((Time::from_us(100), 1));
    config.end = end;
    (common::run(config), base.as_secs_f64())
}

/// Jain's index of the rates measured in the last tenth of a run.
fn late_jain(outcome: &Outcome) -> f64 {
    let from = Time::from_ps(outcome.ended_at.ps() / 10 * 9);
    let mut rates = [0.0, 0.0];
    for sample in outcome.rates.iter().filter(|sample| sample.time >= from) {
        rates[sample.source as usize] += sample.measured_bps as f64;
    }
    let [a, b] = rates;
    println!("shares {:.3} and {:.3}", a / (a + b), b / (a + b));
    (a + b) * (a + b) / (2.0 * (a * a + b * b))
}

#[test]
fn published_timely_may_stay_unfair() {
    let (outcome, _) = unequal("original", Time::from_ms(200));
    let jain = late_jain(&outcome);
    println!("Jain {jain:.3}");
    assert!(jain < 0.8, "{jain}");
    assert_eq!(outcome.totals.drops, 0);
}

#[test]
fn patched_timely_has_one_fixed_point() {
    let (outcome, base) = unequal("patched", Time::from_ms(200));
    let jain = late_jain(&outcome);
    assert!(jain > 0.99, "{jain}");
    let late = outcome.ports.iter().filter(|sample| sample.time >= Time::from_ms(180));
    let queues: Vec<_> = late.map(|sample| sample.queue_bytes as f64).collect();
    let queue = queues.iter().sum::<f64>() / queues.len() as f64;
    // The port's rate includes preamble and gap, as the pace does: delta and C are of one kind.
    let rtt = 50e-6 * (1.0 + 2.0 * 10e6 / (0.008 * 10e9));
    let expected = (rtt - base) * 10e9 / 8.0 * FRAME / WIRE;
    println!("queue {queue:.0} B ({expected:.0}), Jain {jain:.4}");
    assert!((queue / expected - 1.0).abs() < 0.1, "{queue} in place of {expected}");
}

/// One flow whose NIC is four times as fast as the bottleneck finds its rate, with an RTT below T_high.
#[test]
fn one_flow_stays_between_the_thresholds() {
    let topology =
        Dumbbell { left: 1, right: 1, host_link: link(40, Time::from_us(3)), bottleneck: link(10, Time::from_us(3)) };
    let topology = topology.build().expect("a good topology");
    let base = base_path(&topology, PAYLOAD, Framing::RoceV2).base_rtt.as_secs_f64();
    let port = topology.find_port("s0->s1").expect("the bottleneck");
    let mut config = config(topology, "timely", &[]);
    config.host.mtu = PAYLOAD;
    config.classes = vec![common::class(&config.topology, PAYLOAD, "timely", &[])];
    config.flows = vec![flow(0, 1, 1 << 40)];
    config.probes.ports = Some((Time::from_us(10), vec![port]));
    config.end = Time::from_ms(100);
    let outcome = common::run(config);
    let late: Vec<_> = outcome.ports.iter().filter(|sample| sample.time >= Time::from_ms(50)).collect();
    let most = late.iter().map(|sample| sample.queue_bytes).max().expect("samples") as f64;
    let bytes = late[late.len() - 1].tx_bytes - late[0].tx_bytes;
    let seconds = (late[late.len() - 1].time - late[0].time).as_secs_f64();
    let used = bytes as f64 * WIRE / FRAME * 8.0 / seconds / 10e9;
    println!("used {used:.3}, longest queue {most:.0}");
    assert!(used > 0.9, "{used}");
    assert!(base + most * 8.0 / 10e9 < 25.0 * base, "the RTT stays below T_high");
}
