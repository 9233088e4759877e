//! What every receiver-driven law must do besides its protocol: pace by its own host's link, go along with flow
//! control, and forget flows that were given up.

use crate::common::{self, MTU, config, delivered, flow, link, link_event, took};
use incast_sim::{
    Config,
    config::{Buffer, Limit, Pfc, Size, Threshold, Trim},
    topology::{SingleSwitch, file::parse},
};
use incast_units::Time;

const LAWS: [&str; 5] = ["ndp", "phost", "homa", "polo", "dasr"];

/// Switches trim for those that need it.
fn with_trimming(config: &mut Config) {
    config.switch.trim = Some(Trim {
        queue: Limit::Packets(8),
        header_queue: Some(Limit::Bytes(16 * u64::from(MTU))),
        ..Trim::default()
    });
}

/// A receiver that pulled at the rate of the fastest host would get ten times what its link takes, again and again.
#[test]
fn a_slow_host_paces_by_its_own_link() {
    let bytes = 4_000_000;
    for law in ["ndp", "phost", "polo"] {
        let text = "host a\nhost b\nhost c\nswitch s\n\
                    link a s 100Gbps 1us\nlink b s 100Gbps 1us\nlink c s 10Gbps 1us\n";
        let mut config = config(parse(text).expect("a good file"), law, &[]);
        if law == "ndp" {
            with_trimming(&mut config);
        } else {
            config.switch.buffer = Buffer::PerPort { bytes: 500_000 };
        }
        config.flows = vec![flow(0, 2, bytes), flow(1, 2, bytes)];
        let outcome = common::run(config);
        delivered(&outcome);
        let again: u64 = outcome.flows.iter().map(|record| record.retransmitted_bytes).sum();
        let (trims, drops) = (outcome.totals.trims, outcome.totals.drops);
        assert!(again < 2 * bytes / 10, "{law}: {again} B of {} sent again, {trims} trims, {drops} drops", 2 * bytes);
        let last = outcome.flows.iter().map(took).max().expect("flows");
        assert!(last < Time::from_us(7_200), "{law}: {last}");
    }
}

/// The NIC asks for the permission of the priority that a packet has, be it the law that decides about it or the
/// receiver.
#[test]
fn under_flow_control_nothing_is_lost() {
    for law in LAWS {
        for one_priority in [false, true] {
            let topology = SingleSwitch { hosts: 41, link: link(100, Time::from_us(1)) }.build();
            let mut config = config(topology.expect("a good topology"), law, &[]);
            let xoff = Size::Bytes(30_000);
            config.switch.pfc = Some(Pfc {
                priorities: if one_priority { 1 << (config.switch.priorities - 1) } else { u8::MAX },
                deadlock_after: None,
                ..Pfc::new(Threshold::Static { xoff, xon: Some(Size::Bytes(20_000)) })
            });
            config.host.rto_min = Time::from_ms(10);
            config.flows = (1..41).map(|source| flow(source, 0, 10_000 * u64::from(source))).collect();
            config.flows.extend((1..41).map(|source| flow(source, 0, 100_000)));
            let outcome = common::run(config);
            delivered(&outcome);
            let totals = &outcome.totals;
            assert_eq!((totals.drops, totals.lossless_drops), (0, 0), "{law}: {totals:?}");
            let paused: u64 = totals.pauses;
            assert!(paused > 0, "{law}: {totals:?}");
        }
    }
}

/// A word that a flow is given up overtakes the flow's own packets, which wait for the receiver's link: nobody goes on
/// with it.
#[test]
fn what_was_given_up_is_not_opened_again() {
    for law in LAWS {
        let run = |end| {
            let topology = SingleSwitch { hosts: 3, link: link(100, Time::from_us(1)) }.build();
            let mut config = config(topology.expect("a good topology"), law, &[]);
            let event = |us, up| link_event(&config.topology, Time::from_us(us), "s0-h0", up);
            config.link_events = vec![event(1, false), event(600, true)];
            config.host.rto_min = Time::from_us(100);
            config.host.give_up_after = Some(2);
            config.flows = vec![flow(1, 0, 400_000), flow(2, 1, 400_000)];
            config.end = end;
            common::run(config)
        };
        let outcome = run(Time::from_ms(20));
        assert!(outcome.flows[0].acked.is_none() && outcome.flows[1].acked.is_some(), "{law}");
        let longer = run(Time::from_ms(60));
        assert_eq!(outcome.totals.injected_packets, longer.totals.injected_packets, "{law}");
    }
}
