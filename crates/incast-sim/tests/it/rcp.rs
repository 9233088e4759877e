//! RCP through a simulated switch, at a bandwidth-delay product of hundreds of packets, as its rule needs.
//!
//! Theory: N. Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005: R = gamma C / N, and a flow that
//! comes later has that rate at once.

use crate::common::{self, config, flow, link, text};
use incast_cc::{law::Framing, parameters::Raw, registry::AgentParameters};
use incast_sim::{Config, Outcome, base_path, topology::SingleSwitch};
use incast_units::Time;

const PAYLOAD: u32 = 1000;
const END: Time = Time::from_ms(8);

/// Long flows to one host through one switch, each one later than the one before; 100 Gbit/s, a base RTT of about 40 us.
fn to_one(senders: u32, apart: Time, gamma: f64) -> Config {
    let topology = SingleSwitch { hosts: senders + 1, link: link(100, Time::from_us(10)) };
    let topology = topology.build().expect("a good topology");
    let path = base_path(&topology, PAYLOAD, Framing::RoceV2Int);
    let mut config = config(topology, "rcp", &[]);
    config.host.mtu = PAYLOAD;
    config.classes = vec![common::class(&config.topology, PAYLOAD, "rcp", &[])];
    let given = [("gamma".to_owned(), Raw::Float(gamma)), ("rtt".to_owned(), text("42us"))];
    config.switch.agent = AgentParameters::resolve("rcp", &path, &given).expect("an agent").expect("good parameters");
    config.flows = (0..senders).map(|sender| flow(sender, senders, 1 << 40)).collect();
    for (number, flow) in (0..).zip(&mut config.flows) {
        flow.start = apart.saturating_mul(number);
    }
    config.end = END;
    config.probes.rates = Some((Time::from_us(10), 1));
    config
}

/// What each flow was assigned at last, in Gbit/s.
fn assigned(outcome: &Outcome, before: Time, flows: u32) -> Vec<f64> {
    let of = |source: u32| {
        let last = outcome.rates.iter().rfind(|sample| sample.source == source && sample.time <= before);
        last.map_or(0.0, |sample| sample.assigned_bps as f64 / 1e9)
    };
    (0..flows).map(of).collect()
}

#[test]
fn flows_share_what_gamma_leaves() {
    for (flows, gamma) in [(2, 1.0), (5, 1.0), (5, 0.95)] {
        let outcome = common::run(to_one(flows, Time::ZERO, gamma));
        let fair = 100.0 * gamma / f64::from(flows);
        let rates = assigned(&outcome, END, flows);
        assert!(rates.iter().all(|rate| (rate / fair - 1.0).abs() < 0.06), "{flows}, {gamma}: {rates:?}");
        let bytes: u64 = outcome.flows.iter().map(|flow| flow.delivered_bytes).sum();
        let share = bytes as f64 * 8.0 / 8e-3 / 100e9;
        // 1,000 of 1,124 bytes are payload.
        assert!((0.93 * gamma..=gamma).contains(&(share * 1.124)), "{flows}, {gamma}: {share}");
        assert_eq!(outcome.totals.drops, 0);
    }
}

#[test]
fn one_that_comes_later_has_its_rate_at_once() {
    let outcome = common::run(to_one(5, Time::from_ms(1), 0.95));
    for number in 1..5u32 {
        let start = Time::from_ms(number.into());
        let rates = assigned(&outcome, start + Time::from_us(3 * 42), number + 1);
        let (least, most) =
            rates.iter().fold((f64::MAX, 0.0f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        assert!(most / least < 1.3, "{number}: {rates:?}");
    }
    let rates = assigned(&outcome, END, 5);
    assert!(rates.iter().all(|rate| (rate / 19.0 - 1.0).abs() < 0.05), "{rates:?}");
}
