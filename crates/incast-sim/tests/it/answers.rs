//! Receivers' answers: the time that NICs take for them, and their turn among data.

use crate::common::{self, delivered, flow, star, unlimited};
use incast_sim::FlowSpec;
use incast_units::Time;

/// When data was delivered and when its sender knew, of a packet to a host that takes `answer` for acknowledgements.
fn answered(answer: Time) -> (Time, Time) {
    let mut config = unlimited(star(2));
    config.host.response_delay = answer;
    config.flows = vec![flow(0, 1, 10_000)];
    let outcome = common::run(config);
    delivered(&outcome);
    let record = &outcome.flows[0];
    (record.delivered.expect("delivered"), record.acked.expect("acknowledged"))
}

#[test]
fn a_nic_takes_its_time_for_answers() {
    let (at_once, late) = (answered(Time::ZERO), answered(Time::from_us(3)));
    assert_eq!(late, (at_once.0, at_once.1 + Time::from_us(3)));
}

#[test]
fn answers_go_first_or_in_turn() {
    // Ten short flows arrive together at a host that is sending: their acknowledgements leave together, or each after
    // another packet of its data, 335 ns.
    let finish = |control_first| {
        let mut config = unlimited(star(12));
        config.host.control_first = control_first;
        let short = |source| FlowSpec { start: Time::from_us(10), ..flow(source, 0, 100) };
        config.flows = (2..12).map(short).chain([flow(0, 1, 4_000_000)]).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows.iter().skip(1).filter_map(|flow| flow.acked).max().expect("acknowledged")
    };
    let (first, in_turn) = (finish(true), finish(false));
    let longer = in_turn.saturating_sub(first);
    assert!((Time::from_ns(7 * 335)..Time::from_ns(10 * 335)).contains(&longer), "{first:?} {in_turn:?}");
}
