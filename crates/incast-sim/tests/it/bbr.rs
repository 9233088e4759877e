//! BBR through a simulated fabric: the link is full without a queue if a flow is alone, with one of about a BDP if
//! there are several, and at the price of losses if the buffer is small.
//!
//! Theory: N. Cardwell et al., ACM Queue 2016, figures 1 and 3 to 6. Alone, a flow keeps one BDP in flight and drains
//! what its probes queue. Several flows overestimate their bandwidths, which are maxima over a time in which each has
//! had its turn at probing, so that their windows of two BDPs decide, and one BDP of them is queued (M. Hock, R. Bless,
//! M. Zitterbart, "Experimental Evaluation of BBR Congestion Control", ICNP 2017, section III).

use crate::common::{self, config, flow, link, text};
use incast_cc::{law::Framing, parameters::Raw};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Buffer, Ecn, Size},
    topology::{Dumbbell, Topology},
};
use incast_units::Time;

/// Payload of a packet, and with that a frame of 1,480 bytes which takes 1,500 on the wire.
const PAYLOAD: u32 = 1410;
const FRAME: f64 = 1480.0;
const WIRE: f64 = 1500.0;
const BOTTLENECK: f64 = 100e9;

/// A bottleneck of 100 Gbps between links of 400 Gbps, and 10 us there and back.
fn bottleneck(senders: u32) -> Topology {
    let host_link = link(400, Time::from_us(1));
    let bottleneck = link(100, Time::from_ns(2_900));
    Dumbbell { left: senders, right: senders, host_link, bottleneck }.build().expect("a good topology")
}

/// The bottleneck's BDP as a queue shows it, in frames.
fn bdp() -> f64 {
    let rtt = base_path(&bottleneck(1), PAYLOAD, Framing::Tcp).base_rtt;
    rtt.as_secs_f64() * BOTTLENECK / 8.0 * FRAME / WIRE
}

/// Flows that never end, one after the other, each between two hosts of its own.
fn long_flows(law: &str, senders: u32, parameters: &[(&str, Raw)], end: Time) -> Config {
    let topology = bottleneck(senders);
    let port = topology.find_port("s0->s1").expect("the bottleneck");
    let mut config = config(topology, law, &[]);
    config.host.mtu = PAYLOAD;
    config.classes = vec![common::class(&config.topology, PAYLOAD, law, parameters)];
    let start = |sender: u32| Time::from_us(137 * u64::from(sender));
    config.flows = (0..senders)
        .map(|sender| FlowSpec { start: start(sender), ..flow(sender, senders + sender, 1 << 40) })
        .collect();
    config.probes.ports = Some((Time::from_us(1), vec![port]));
    config.end = end;
    config
}

/// ProbeRTT a thousand times as often and as short as in the literal constants, which are a unit test's.
fn fast() -> Vec<(&'static str, Raw)> {
    vec![("rtprop_window", text("10ms")), ("probe_rtt_duration", text("200us"))]
}

/// The same for version 3.
fn fast3() -> Vec<(&'static str, Raw)> {
    let times = [("probe_rtt_interval", "5ms"), ("min_rtt_window", "10ms"), ("probe_rtt_duration", "200us")];
    times.map(|(key, time)| (key, text(time))).to_vec()
}

/// The queue in bytes, one sample per microsecond.
fn queue(outcome: &Outcome, from: Time, to: Time) -> Vec<f64> {
    let samples = outcome.ports.iter().filter(|sample| sample.time >= from && sample.time < to);
    samples.map(|sample| sample.queue_bytes as f64).collect()
}

/// Share of the bottleneck in use.
fn used(outcome: &Outcome, from: Time, to: Time) -> f64 {
    let samples: Vec<_> = outcome.ports.iter().filter(|sample| sample.time >= from && sample.time < to).collect();
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let bits = (last.tx_bytes - first.tx_bytes) as f64 * WIRE / FRAME * 8.0;
    bits / (last.time - first.time).as_secs_f64() / BOTTLENECK
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn least(values: &[f64]) -> f64 {
    values.iter().fold(f64::INFINITY, |least, value| least.min(*value))
}

fn most(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| most.max(*value))
}

fn jain(outcome: &Outcome) -> f64 {
    let shares = outcome.flows.iter().map(|flow| flow.delivered_bytes as f64);
    let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (outcome.flows.len() as f64 * squares)
}

#[test]
fn a_lone_flow_fills_the_link_and_drains_the_queue_in_each_cycle() {
    // The literal constants: no ProbeRTT within 20 ms.
    let (from, end) = (Time::from_ms(5), Time::from_ms(20));
    let outcome = common::run(long_flows("bbr", 1, &[], end));
    let used = used(&outcome, from, end);
    let queue = queue(&outcome, from, end);
    // A cycle is eight RTprops of 10 us, with a queue at the beginning of it.
    let cycles: Vec<&[f64]> = queue.chunks_exact(100).collect();
    let highest = cycles.iter().map(|cycle| most(cycle)).fold(f64::INFINITY, f64::min);
    let lowest = cycles.iter().map(|cycle| least(cycle)).fold(0.0, f64::max);
    println!("used {used:.4}, queue {:.0} B, peaks from {highest:.0}, drained to {lowest:.0}", mean(&queue));
    assert!(used >= 0.98, "{used}");
    assert_eq!(outcome.totals.drops, 0);
    // Probing queues a quarter of a BDP; what is left between probes are the three quanta of the window.
    assert!((highest / bdp() - 0.25).abs() < 0.07, "{highest} of {}", bdp());
    assert!(lowest <= 4.0 * FRAME, "{lowest}");
}

#[test]
fn several_flows_keep_up_to_two_bdps_in_flight() {
    for senders in [2, 4, 8] {
        let mut config = long_flows("bbr", senders, &fast(), Time::from_ms(60));
        // What Startup and latecomers do to an unlimited buffer is another matter.
        config.switch.buffer = Buffer::PerPort { bytes: 500_000 };
        let outcome = common::run(config);
        // After two common ProbeRTTs, in which everybody has seen an empty queue.
        let (from, to) = (Time::from_ms(30), Time::from_ms(60));
        let queue = queue(&outcome, from, to);
        let (mean, most) = (mean(&queue) / bdp(), most(&queue) / bdp());
        let used = used(&outcome, from, to);
        println!("N {senders}: used {used:.4}, queue {mean:.2} BDP, {most:.2} at most, Jain {:.3}", jain(&outcome));
        assert!(used >= 0.95, "N {senders}: {used}");
        assert!((0.6..1.5).contains(&mean), "N {senders}: {mean} BDP");
        // It is there all the time, but in ProbeRTT.
        let standing = queue.iter().filter(|bytes| **bytes > 0.3 * bdp()).count();
        assert!(standing as f64 > 0.8 * queue.len() as f64, "N {senders}: {standing} of {}", queue.len());
    }
}

/// A fifth of a BDP of buffer: version 1 is blind to losses, version 3 keeps them near its threshold.
#[test]
fn a_shallow_buffer_loses_much_under_version_1() {
    let lost = |law: &str, parameters: &[(&str, Raw)]| {
        let mut config = long_flows(law, 4, parameters, Time::from_ms(20));
        config.switch.buffer = Buffer::PerPort { bytes: 25_000 };
        let outcome = common::run(config);
        let (drops, last) = (outcome.totals.drops as f64, outcome.ports.last().expect("samples"));
        let share = drops / (last.tx_bytes as f64 / FRAME + drops);
        let used = used(&outcome, Time::from_ms(5), Time::from_ms(20));
        println!("{law}: {:.2}% lost, used {used:.4}, Jain {:.3}", 100.0 * share, jain(&outcome));
        assert!(used > 0.95, "{law}: {used}");
        share
    };
    let (bbr, cubic, bbr3) = (lost("bbr", &fast()), lost("cubic", &[]), lost("bbr3", &fast3()));
    assert!(bbr > 0.05, "{bbr}");
    assert!(bbr > 4.0 * cubic, "{bbr} and {cubic}");
    assert!(bbr3 < 0.03, "{bbr3}");
}

#[test]
fn a_lone_flow_of_version_3_fills_the_link() {
    // The literal constants: no ProbeRTT within 20 ms.
    let (from, end) = (Time::from_ms(5), Time::from_ms(20));
    let outcome = common::run(long_flows("bbr3", 1, &[], end));
    let (used, queue) = (used(&outcome, from, end), queue(&outcome, from, end));
    let empty = queue.iter().filter(|bytes| **bytes <= 2.0 * FRAME).count() as f64 / queue.len() as f64;
    println!("used {used:.4}, queue {:.0} B, {:.0} at most, {empty:.2} of the time none", mean(&queue), most(&queue));
    assert!(used >= 0.98, "{used}");
    assert!(empty > 0.5, "{empty}");
    assert_eq!(outcome.totals.drops, 0);
}

/// Marks at a low threshold do what losses do: the queue hovers about it, between probes.
#[test]
fn version_3_listens_to_marks_if_wanted() {
    let queues = |ecn: bool| {
        let parameters: Vec<_> = fast3().into_iter().chain([("ecn", Raw::Flag(ecn))]).collect();
        let mut config = long_flows("bbr3", 4, &parameters, Time::from_ms(30));
        config.switch.buffer = Buffer::PerPort { bytes: 500_000 };
        config.switch.ecn = Ecn::Step { at: Size::Bytes(40 * FRAME as u64) };
        let outcome = common::run(config);
        let (from, to) = (Time::from_ms(10), Time::from_ms(30));
        let (used, queue) = (used(&outcome, from, to), queue(&outcome, from, to));
        let marks = outcome.totals.marks_fabric;
        println!("ecn {ecn}: used {used:.4}, queue {:.2} BDP, {marks} marks", mean(&queue) / bdp());
        assert_eq!(marks > 0, ecn, "only ECN-capable packets are marked");
        assert!(used > 0.95, "{used}");
        mean(&queue) / bdp()
    };
    let (with, without) = (queues(true), queues(false));
    assert!(with < 0.5 && without > 1.5 * with, "{with} and {without}");
}

/// One flow, and one that joins it: the queue is gone in ProbeRTT, and in it alone.
#[test]
fn probe_rtt_is_seen_in_the_queue_and_by_all_at_once() {
    let end = Time::from_ms(75);
    let mut config = long_flows("bbr", 2, &fast(), end);
    config.switch.buffer = Buffer::PerPort { bytes: 500_000 };
    let outcome = common::run(config);
    let queue = queue(&outcome, Time::from_ms(25), end);
    // Stretches without a queue of at least half of ProbeRTT's 200 us.
    let mut empty = Vec::new();
    let mut since = None;
    for (at, bytes) in queue.iter().enumerate() {
        match (*bytes < FRAME * 9.0, since) {
            (true, None) => since = Some(at),
            (false, Some(start)) => {
                if at - start >= 100 {
                    empty.push((start, at - start));
                }
                since = None;
            }
            _ => {}
        }
    }
    println!("empty (from, for) in us: {empty:?}");
    assert!((4..=5).contains(&empty.len()), "{empty:?}");
    for pair in empty.windows(2) {
        let pause = pair[1].0 - pair[0].0;
        assert!((10_000..=11_500).contains(&pause), "{pause} us");
    }
    assert!(empty.iter().all(|(_, length)| (180..=450).contains(length)), "{empty:?}");
}
