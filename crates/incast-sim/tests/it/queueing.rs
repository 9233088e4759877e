//! A bottleneck port under Poisson arrivals of equal packets is an M/D/1 queue.

use crate::common::{self, OVERHEAD, flow};
use incast_sim::{
    FlowSpec,
    engine::random::Stream,
    topology::{Topology, file::parse},
};
use incast_units::{Rate, Time};
use std::fmt::Write as _;

const SENDERS: u32 = 32;
/// Payload and transmission time of every packet at the bottleneck.
const BYTES: u64 = 1160;
const SERVICE: Time = Time::from_ns(1000);

/// Many senders with links forty times as fast as the one to the sink: what queues, queues there.
fn funnel() -> Topology {
    let mut text = String::from("switch s\nhost sink\nlink sink s 10Gbps 1us\n");
    for sender in 0..SENDERS {
        let _ = writeln!(text, "host h{sender}\nlink h{sender} s 400Gbps 1us");
    }
    parse(&text).expect("a good topology")
}

/// Mean wait at the bottleneck in units of the service time, and what each packet should have waited.
fn mean_wait(load: f64, packets: u64, seed: u64) -> f64 {
    assert_eq!(Rate::from_gbps(10).time_of(incast_units::Bytes::new(BYTES + OVERHEAD)), SERVICE);
    let mut config = common::unlimited(funnel());
    let mut random = Stream::new(seed, 0x504f_4953, 0);
    let mut clock = 0.0;
    for _ in 0..packets {
        clock -= libm::log(1.0 - random.uniform()) * SERVICE.ps() as f64 / load;
        let source = 1 + random.below(u64::from(SENDERS)) as u32;
        config.flows.push(FlowSpec { start: Time::from_ps(clock as u64), ..flow(source, 0, BYTES) });
    }
    config.end = Time::from_ms(60_000);
    let outcome = common::run(config);
    common::delivered(&outcome);
    assert_eq!(outcome.flows.iter().map(|flow| flow.timeouts).sum::<u32>(), 0);
    assert_eq!(outcome.flows.len() as u64, packets);

    // Lindley's recursion over the same arrivals, at the senders' links and then at the bottleneck.
    let fast = SERVICE / 40;
    let mut arrivals: Vec<(Time, u32, u32)> = Vec::new();
    let mut free = [Time::ZERO; SENDERS as usize + 1];
    for flow in &outcome.flows {
        let free = &mut free[flow.source as usize];
        *free = flow.start.max(*free) + fast;
        arrivals.push((*free + Time::from_us(1), flow.source, flow.sequence));
    }
    let mut by_arrival: Vec<usize> = (0..arrivals.len()).collect();
    by_arrival.sort_by_key(|index| arrivals[*index]);
    let (mut free, mut waited) = (Time::ZERO, 0u128);
    for index in by_arrival {
        let arrival = arrivals[index].0;
        waited += u128::from(free.saturating_sub(arrival).ps());
        free = arrival.max(free) + SERVICE;
    }
    let measured: u128 = outcome
        .flows
        .iter()
        .zip(&arrivals)
        .map(|(flow, arrival)| {
            let delivered = flow.delivered.unwrap_or(Time::MAX);
            u128::from((delivered - arrival.0 - SERVICE - Time::from_us(1)).ps())
        })
        .sum();
    // Which of two simultaneous arrivals goes first is open, their sum is not.
    assert_eq!(measured, waited, "the port is not a first-come first-served queue");
    measured as f64 / (packets as f64 * SERVICE.ps() as f64)
}

fn check(load: f64, packets: u64) {
    // Pollaczek and Khinchine: W = rho S / (2 (1 - rho)).
    let theory = load / (2.0 * (1.0 - load));
    let wait = mean_wait(load, packets, 7);
    println!("load {load}: mean wait {wait:.4} services, M/D/1 {theory:.4}");
    assert!((wait / theory - 1.0).abs() < 0.02, "load {load}: {wait} in place of {theory}");
}

#[test]
fn half_loaded() {
    check(0.5, 300_000);
}

#[test]
fn heavily_loaded() {
    check(0.8, 800_000);
}
