//! HPCC through a simulated fabric: a link used to its target with almost no queue, shares that become equal, an incast
//! whose queue is gone after a few round trips.
//!
//! Theory: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, sections 3.2 and 3.3: overload is
//! answered in one round trip; N flows keep an empty queue while N W_AI is below (1 - eta) of the BDP.

use crate::common::{self, config, delivered, flow, link, text};
use incast_cc::{Path, law::Framing, parameters::Raw};
use incast_sim::{
    Config, Outcome, base_path,
    probe::PortSample,
    topology::{Chain, SingleSwitch},
};
use incast_units::Time;

const PAYLOAD: u32 = 1000;
/// A frame with telemetry, and what it takes on the wire.
const FRAME: f64 = 1104.0;
const WIRE: f64 = 1124.0;

/// Flows from as many hosts to one, through one switch; the receiver's port is watched.
fn to_one(senders: u32, bytes: u64, parameters: &[(&str, Raw)]) -> (Config, Path) {
    let topology = SingleSwitch { hosts: senders + 1, link: link(100, Time::from_us(2)) };
    let topology = topology.build().expect("a good topology");
    let port = topology.find_port(&format!("s0->h{senders}")).expect("the receiver's port");
    let path = base_path(&topology, PAYLOAD, Framing::RoceV2Int);
    let mut config = config(topology, "hpcc", &[]);
    config.host.mtu = PAYLOAD;
    config.classes = vec![common::class(&config.topology, PAYLOAD, "hpcc", parameters)];
    config.flows = (0..senders).map(|sender| flow(sender, senders, bytes)).collect();
    config.probes.ports = Some((Time::from_us(1), vec![port]));
    (config, path)
}

/// Samples from a time on.
fn since(outcome: &Outcome, from: Time) -> Vec<&PortSample> {
    outcome.ports.iter().filter(|sample| sample.time >= from).collect()
}

/// Share of the link that frames took, as telemetry counts it: without preamble and gap.
fn used(samples: &[&PortSample]) -> f64 {
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    (last.tx_bytes - first.tx_bytes) as f64 * 8.0 / (last.time - first.time).as_secs_f64() / 100e9
}

fn mean_queue(samples: &[&PortSample]) -> f64 {
    samples.iter().map(|sample| sample.queue_bytes as f64).sum::<f64>() / samples.len() as f64
}

/// Rates of the flows as assigned at the last sample before `time`, in bit/s.
fn rates(outcome: &Outcome, time: Time, flows: u32) -> Vec<f64> {
    (0..flows)
        .map(|source| {
            let of_flow = |sample: &&incast_sim::probe::RateSample| sample.source == source && sample.time <= time;
            outcome.rates.iter().rfind(of_flow).map_or(0.0, |sample| sample.assigned_bps as f64)
        })
        .collect()
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

#[test]
fn the_link_is_used_to_the_target_with_almost_no_queue() {
    for senders in [1, 2, 8] {
        let (mut config, path) = to_one(senders, 1 << 40, &[]);
        config.end = Time::from_ms(6);
        let outcome = common::run(config);
        let late = since(&outcome, Time::from_ms(2));
        let (used, queue) = (used(&late), mean_queue(&late));
        println!("{senders}: used {used:.4}, queue {queue:.0} B, BDP {}", path.bdp().get());
        assert!((0.93..0.975).contains(&used), "{senders}: {used}");
        assert!(queue < 0.05 * path.bdp().get() as f64, "{senders}: {queue}");
        assert_eq!(outcome.totals.drops, 0);
    }
}

/// An incast of 16: the first windows are a burst of 15 BDPs, which no law can prevent; two round trips later the queue
/// shrinks, and it is never longer again.
#[test]
fn an_incast_is_drained_within_round_trips() {
    let senders = 16;
    let (mut config, path) = to_one(senders, 2_000_000, &[]);
    config.end = Time::from_ms(10);
    let outcome = common::run(config);
    delivered(&outcome);
    let bdp = path.bdp().get() as f64 * FRAME / f64::from(PAYLOAD);
    let most = outcome.totals.max_queue_bytes as f64;
    println!("longest queue {:.2} BDP", most / bdp);
    assert!(most < 16.0 * bdp, "{}", most / bdp);
    // 15 BDPs take 15 round trips to leave, and the reaction takes one more.
    let drained = Time::from_ps(path.base_rtt.ps() * 24);
    let end = outcome.flows.iter().map(|flow| flow.delivered.expect("delivered")).min().expect("flows");
    let late: Vec<_> = since(&outcome, drained).into_iter().filter(|sample| sample.time < end).collect();
    let queue = late.iter().map(|sample| sample.queue_bytes).max().expect("samples") as f64;
    println!("later {:.3} BDP, used {:.4}", queue / bdp, used(&late));
    assert!(queue < 0.5 * bdp, "{}", queue / bdp);
    // 32 MB of payload at the target take 2.7 ms.
    let ideal = 32e6 * WIRE / f64::from(PAYLOAD) * 8.0 / 100e9 / 0.95;
    let last = outcome.flows.iter().map(|flow| flow.delivered.expect("delivered")).max().expect("flows");
    println!("last {} ms, at the target {:.3} ms", last.as_us_f64() / 1e3, ideal * 1e3);
    assert!(last.as_secs_f64() < 1.1 * ideal, "{last}");
}

/// Three flows share the link when a fourth starts, at the NIC's rate. One reaction later all are cut by one factor,
/// which keeps ratios of about 1 : 1 : 1 : 3 (a Jain index of 0.75); only the additive increase takes them away.
#[test]
fn shares_become_equal_through_the_additive_increase_alone() {
    let run = |increase: &str| {
        let (mut config, path) = to_one(4, 1 << 40, &[("additive_increase", text(increase))]);
        config.flows[3].start = Time::from_us(300);
        config.probes.rates = Some((Time::from_us(10), 1));
        config.end = Time::from_ms(6);
        let outcome = common::run(config);
        let at = |us| jain(&rates(&outcome, Time::from_us(us), 4));
        println!("{increase}: Jain at 0.35 ms {:.3}, 2 ms {:.3}, 6 ms {:.3}", at(350), at(2000), at(6000));
        let sum: f64 = rates(&outcome, Time::from_ms(6), 4).iter().sum();
        assert!((0.9..1.03).contains(&(sum / 100e9)), "{increase}: {sum}");
        assert!(mean_queue(&since(&outcome, Time::from_ms(4))) < 0.05 * path.bdp().get() as f64);
        [at(350), at(6000)]
    };
    let [first, last] = run("1Mbps");
    assert!(first < 0.9 && last < 0.9, "{first} and {last}");
    let [first, last] = run("200Mbps");
    assert!(first < 0.9 && last > 0.99, "{first} and {last}");
}

/// Too many windows of W_AI: N W_AI above (1 - eta) BDP keeps a queue (SIGCOMM 2019, section 3.3).
#[test]
fn the_queue_grows_where_the_additive_increases_exceed_the_headroom() {
    let queue = |increase: &str| {
        let (mut config, path) = to_one(16, 1 << 40, &[("additive_increase", text(increase))]);
        config.end = Time::from_ms(4);
        let outcome = common::run(config);
        mean_queue(&since(&outcome, Time::from_ms(2))) / path.bdp().get() as f64
    };
    // Of 100 Gbit/s: 0.8% and 16%, where the headroom is 5%.
    let (within, beyond) = (queue("50Mbps"), queue("1Gbps"));
    println!("queue {within:.3} and {beyond:.3} BDP");
    assert!(within < 0.06, "{within}");
    assert!(beyond > 0.1, "{beyond}");
}

/// Every form and profile finishes, over five hops with a slow one in the middle, and uses that to the target.
#[test]
fn the_slowest_of_many_hops_is_found() {
    for (profile, form) in [("scaled", "window"), ("scaled", "rate"), ("paper", "window"), ("hpcc-lineage", "rate")] {
        let topology = Chain {
            switches: 5,
            hosts_per_switch: 1,
            host_link: link(100, Time::from_us(1)),
            fabric_link: link(100, Time::from_us(1)),
        };
        let mut topology = topology.build().expect("a good topology");
        let cable = topology.find_cable("s2-s3").expect("the middle");
        topology.cables[cable].link.rate = incast_units::Rate::from_gbps(25);
        let port = topology.find_port("s2->s3").expect("the middle");
        let mut config = config(topology, "hpcc", &[]);
        config.host.mtu = PAYLOAD;
        let parameters = [("profile", text(profile)), ("form", text(form))];
        config.classes = vec![common::class(&config.topology, PAYLOAD, "hpcc", &parameters)];
        config.flows = vec![flow(0, 4, 10_000_000)];
        config.probes.ports = Some((Time::from_us(1), vec![port]));
        config.end = Time::from_ms(20);
        let outcome = common::run(config);
        delivered(&outcome);
        let end = outcome.flows[0].delivered.expect("delivered");
        let late: Vec<_> = since(&outcome, Time::from_us(500)).into_iter().filter(|sample| sample.time < end).collect();
        let used = used(&late) * 4.0;
        println!("{profile} {form}: used {used:.4}, queue {:.0}", mean_queue(&late));
        assert!((0.9..0.98).contains(&used), "{profile} {form}: {used}");
        assert!(mean_queue(&late) < 8_000.0, "{profile} {form}");
    }
}

/// Sizes with telemetry are those of the law's format, in the ideal too: a flow alone that ends with its first window
/// takes exactly that long.
#[test]
fn a_short_flow_alone_takes_the_ideal_time() {
    for bytes in [1, 1_000, 20_500, 60_000] {
        let (config, _) = to_one(1, bytes, &[]);
        let outcome = common::run(config);
        delivered(&outcome);
        assert_eq!(outcome.flows[0].delivered, outcome.flows[0].ideal, "{bytes} B");
    }
    // 1,104 B and 20 more, twice at 100 Gbit/s, and 2 us twice.
    let (config, _) = to_one(1, 1_000, &[]);
    assert_eq!(common::run(config).flows[0].delivered, Some(Time::from_ps(2 * (1_124 * 80 + 2_000_000))));
}
