//! PACC (reconstructed): the queue is where the controller wants it, for two DCQCN flows and for many.

use crate::common::{self, config, flow, link, text};
use incast_cc::{parameters::Raw, registry::AgentParameters};
use incast_sim::{
    Config, Outcome, base_path, outcome::Step, packet::Kind, probe::PacketFilter, topology::SingleSwitch,
};
use incast_units::{Bytes, Rate, Time};

const MTU: u32 = 1000;
/// Bytes of the queue that is aimed at: at 40 Gbit/s, 8 us.
const REFERENCE: f64 = 40_000.0;
const FRAME: f64 = 1062.0;
const WIRE: f64 = 1082.0;
const RATE: f64 = 40e9;

/// Flows to one receiver at 40 Gbit/s, under the constants of DCQCN's paper.
fn flows(senders: u32, bytes: u64, end: Time, given: &[(&str, Raw)]) -> Config {
    let topology = SingleSwitch { hosts: senders + 1, link: link(40, Time::from_us(1)) };
    let topology = topology.build().expect("a good topology");
    let port = topology.find_port(&format!("s0->h{senders}")).expect("the receiver's port");
    let mut config = config(topology, "dcqcn", &[]);
    config.host.mtu = MTU;
    config.host.rto_min = Time::from_ms(100);
    let mut class = common::class(&config.topology, MTU, "dcqcn", &[("profile", text("paper"))]);
    (class.priority, class.ack_priority, class.notification_priority) = (1, Some(0), 0);
    config.switch.priorities = 2;
    let path = base_path(&config.topology, MTU, class.law.info().framing);
    let usual = [("period", text("80us")), ("reference", text("40KB"))];
    let given: Vec<_> = usual.iter().chain(given).map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    config.switch.agent = AgentParameters::resolve("pacc", &path, &given).expect("an agent").expect("good parameters");
    config.classes = vec![class];
    config.flows = (0..senders).map(|sender| flow(sender, senders, bytes)).collect();
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

/// From here on the queue is looked at.
const LATE: Time = Time::from_ms(200);

#[test]
fn the_queue_is_regulated() {
    for senders in [2u32, 4, 8, 16, 32, 64] {
        let outcome = common::run(flows(senders, 1 << 40, Time::from_ms(500), &[]));
        let samples = outcome.ports.iter().filter(|sample| sample.priority == 1 && sample.time >= LATE);
        let late: Vec<_> = samples.collect();
        let mean = |of: &dyn Fn(f64) -> f64| {
            late.iter().map(|sample| of(sample.queue_bytes as f64)).sum::<f64>() / late.len() as f64
        };
        let queue = mean(&|queue| queue);
        let deviation = mean(&|other| (other - queue) * (other - queue)).sqrt();
        let bytes = late[late.len() - 1].tx_bytes - late[0].tx_bytes;
        let seconds = (late[late.len() - 1].time - late[0].time).as_secs_f64();
        let used = bytes as f64 * WIRE / FRAME * 8.0 / seconds / RATE;
        println!(
            "N {senders}: queue {:.1} KB, deviation {:.1} KB, used {used:.4}, Jain {:.4}",
            queue / 1e3,
            deviation / 1e3,
            jain(&outcome)
        );
        assert!((queue / REFERENCE - 1.0).abs() < 0.2, "N {senders}: {queue}");
        assert!(used > 0.98, "N {senders}: {used}");
        assert!(jain(&outcome) > 0.98, "N {senders}: {}", jain(&outcome));
        let totals = &outcome.totals;
        assert_eq!((totals.drops, totals.marks_edge + totals.marks_fabric), (0, 0));
    }
}

/// When congestion notifications leave the switch, and the rates that the first flow has.
fn notified(bytes: u64) -> (Vec<Time>, Outcome) {
    let mut config = flows(15, bytes, Time::from_ms(1), &[]);
    // Each flow wants all of the link.
    config.probes.packets =
        Some(PacketFilter { flow: None, ports: Vec::new(), from: Time::ZERO, until: Time::MAX, most: usize::MAX });
    let outcome = common::run(config);
    let sent = outcome.packets.iter().filter(|record| matches!(record.step, Step::Sent { .. }));
    let times = sent.filter(|record| record.packet.kind == Kind::Cnp).map(|record| record.time).collect();
    (times, outcome)
}

#[test]
fn flows_that_end_within_a_period_are_never_told() {
    // 15 flows of 20 KB take 65 us together, after a propagation delay of 1 us.
    let (times, outcome) = notified(20_000);
    assert!(outcome.complete && times.is_empty(), "{times:?}");
    // Longer ones are, at the ends of periods that began with the first packet.
    let (times, outcome) = notified(400_000);
    let first = Time::from_us(1) + Rate::from_gbps(40).time_of(Bytes::new(1082));
    assert_eq!(times.iter().min(), Some(&(first + Time::from_us(80))));
    assert!(times.len() > 15 && outcome.flows.iter().all(|flow| flow.marked_packets == 0));
}

#[test]
fn threads_and_probes_change_nothing() {
    let run = |threads: usize, probes: bool| {
        let mut config = flows(16, 1 << 40, Time::from_ms(3), &[]);
        config.threads = threads;
        if !probes {
            config.probes = incast_sim::config::Probes::default();
        }
        common::run(config)
    };
    let one = run(1, true);
    assert!(one.totals.created_bytes > 0, "the switch sends notifications");
    for (threads, probes) in [(1, false), (2, true), (2, false), (4, false)] {
        assert_eq!(run(threads, probes).digest, one.digest, "{threads} threads, probes {probes}");
    }
}
