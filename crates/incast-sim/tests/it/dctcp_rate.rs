//! DCTCP with a rate through a simulated fabric: the queue at the marking threshold, equal shares, and rates that do
//! not re-time a packet.

use crate::common::{self, config, delivered, flow, link, text};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config,
    config::{Ecn, Size},
    topology::SingleSwitch,
};
use incast_units::Time;

const PAYLOAD: u32 = 1000;

fn to_one(senders: u32, bytes: u64, parameters: &[(&str, Raw)]) -> Config {
    let topology = SingleSwitch { hosts: senders + 1, link: link(100, Time::from_us(2)) };
    let topology = topology.build().expect("a good topology");
    let mut config = config(topology, "dctcp-rate", &[]);
    config.host.mtu = PAYLOAD;
    config.classes = vec![common::class(&config.topology, PAYLOAD, "dctcp-rate", parameters)];
    config.flows = (0..senders).map(|sender| flow(sender, senders, bytes)).collect();
    config
}

/// Two thirds of a BDP. (HPCC's scripts have three at this base RTT, which the windows of few flows never reach.)
#[test]
fn the_queue_stays_around_the_threshold_and_shares_are_equal() {
    const K: u64 = 60_000;
    for senders in [2, 8] {
        let mut config = to_one(senders, 1 << 40, &[]);
        let port = config.topology.find_port(&format!("s0->h{senders}")).expect("the receiver's port");
        config.switch.ecn = Ecn::Step { at: Size::Bytes(K) };
        config.probes.ports = Some((Time::from_us(1), vec![port]));
        config.end = Time::from_ms(40);
        let outcome = common::run(config);
        let late: Vec<_> = outcome.ports.iter().filter(|sample| sample.time >= Time::from_ms(20)).collect();
        let most = late.iter().map(|sample| sample.queue_bytes).max().expect("samples");
        let seconds = (late[late.len() - 1].time - late[0].time).as_secs_f64();
        let used = (late[late.len() - 1].tx_bytes - late[0].tx_bytes) as f64 * 8.0 / seconds / 100e9;
        let shares = outcome.flows.iter().map(|flow| flow.delivered_bytes as f64);
        let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let jain = sum * sum / (f64::from(senders) * squares);
        println!("N {senders}: longest queue {most}, used {used:.4}, Jain {jain:.4}");
        assert!((K..2 * K).contains(&most), "{most}");
        // Frames are 1,062 B of 1,082 on the wire: 0.9815 is a link that is never idle.
        assert!(used > 0.97, "{used}");
        assert!(jain > 0.98, "{jain}");
        assert_eq!(outcome.totals.drops, 0);
    }
}

/// The first acknowledgement raises the rate a hundredfold, long before the gap to the second packet is over.
#[test]
fn a_new_rate_ends_the_gap_under_way_where_the_law_re_times() {
    let parameters = [("initial_rate", text("100Mbps")), ("additive_increase", text("10Gbps"))];
    let done = |update_gap: bool| {
        let parameters = [&parameters[..], &[("update_gap", Raw::Flag(update_gap))]].concat();
        let outcome = common::run(to_one(1, 2 * u64::from(PAYLOAD), &parameters));
        delivered(&outcome);
        outcome.flows[0].delivered.expect("delivered").as_us_f64()
    };
    let (with, without) = (done(true), done(false));
    // A packet takes 4.2 us along its path, an acknowledgement 4 us; 1,082 B at 100 Mbit/s are 86.6 us.
    assert!((12.0..13.0).contains(&with), "{with}");
    assert!((without - 86.56 - 4.17).abs() < 0.1, "{without}");
}
