//! PACC (reconstructed): the queue is where the controller wants it, for two DCQCN flows and for many.

mod common;

use common::{config, flow, link, text};
use incast_cc::{parameters::Raw, switch::AgentParameters};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    fabric::{packet::Kind, topology::SingleSwitch},
    outcome::Step,
    probe::PacketFilter,
};
use incast_units::Time;

const MTU: u32 = 1000;
/// Bytes of the queue that is aimed at: at 40 Gbit/s, 8 us.
const REFERENCE: f64 = 40_000.0;

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
    let given: Vec<_> =
        usual.iter().chain(given).map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    config.switch.agent =
        AgentParameters::resolve("pacc", &path, &given).expect("an agent").expect("good parameters");
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

#[test]
fn the_queue_is_regulated() {
    for senders in [2u32, 4, 8, 16, 32, 64] {
        let end = 600;
        let outcome = common::run(flows(senders, 1 << 40, Time::from_ms(end), &[]));
        let mut line = String::new();
        for from in [100, 200, 300, 400, 500] {
            let late: Vec<_> = outcome
                .ports
                .iter()
                .filter(|s| {
                    s.priority == 1 && s.time >= Time::from_ms(from) && s.time < Time::from_ms(from + 100)
                })
                .collect();
            let n = late.len() as f64;
            let queue = late.iter().map(|s| s.queue_bytes as f64).sum::<f64>() / n;
            let dev = (late.iter().map(|s| (s.queue_bytes as f64 - queue).powi(2)).sum::<f64>() / n).sqrt();
            let bytes = late[late.len() - 1].tx_bytes - late[0].tx_bytes;
            let secs = (late[late.len() - 1].time - late[0].time).as_secs_f64();
            let used = bytes as f64 * 1082.0 / 1062.0 * 8.0 / secs / 40e9;
            line += &format!("  {:.1}±{:.1}KB {:.3}", queue / 1e3, dev / 1e3, used);
        }
        println!("N {senders}: {line} Jain {:.4}", jain(&outcome));
    }
}
