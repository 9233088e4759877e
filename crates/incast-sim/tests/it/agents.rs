//! What an in-switch agent may do and is told of, with the agent that exists for testing it.

use crate::common::{
    self, MTU, config, delivered, every_topology, flow, ideal, link_event, star, took, two_spines, unlimited,
};
use incast_cc::{registry::AgentParameters, testing::exerciser::Exerciser};
use incast_sim::{Config, Outcome, config::Buffer, topology::Topology};
use incast_units::Time;

/// Bytes of a congestion notification in the format of TCP, which has none of its own: a segment without payload.
const CNP: u64 = 70;

fn with_agent(topology: Topology, law: &str, agent: Exerciser) -> Outcome {
    let mut config = config(topology, law, &[]);
    config.switch.agent = AgentParameters::Exerciser(agent);
    config.flows = vec![flow(0, 1, 100 * u64::from(MTU))];
    let outcome = common::run(config);
    delivered(&outcome);
    outcome
}

#[test]
fn an_agent_marks() {
    let agent = Exerciser { mark_every: 7, ..Exerciser::default() };
    let outcome = with_agent(star(2), "dctcp", agent.clone());
    assert_eq!(outcome.flows[0].marked_packets, 100 / 7);
    assert_eq!(outcome.totals.marks_edge, 100 / 7);
    // Not what is not ECN-capable.
    let outcome = with_agent(star(2), "constant-window", agent);
    assert_eq!((outcome.flows[0].marked_packets, outcome.totals.marks_edge), (0, 0));
}

#[test]
fn an_agent_notifies() {
    let outcome = with_agent(star(2), "constant-rate", Exerciser { notify_every: 9, ..Exerciser::default() });
    // Eleven notifications; a law without an answer to them goes on.
    assert_eq!(outcome.totals.created_bytes, 100 / 9 * CNP);
    assert_eq!(took(&outcome.flows[0]), ideal(&outcome.flows[0]));
    let plain = with_agent(star(2), "constant-rate", Exerciser::default());
    assert_eq!(outcome.totals.received_bytes - plain.totals.received_bytes, 100 / 9 * CNP);
    assert_eq!(outcome.totals.injected_bytes, plain.totals.injected_bytes);
}

#[test]
fn an_agent_deflects() {
    let outcome = with_agent(two_spines(), "constant-window", Exerciser { deflect_every: 10, ..Exerciser::default() });
    // Only the first leaf has somewhere else to send to; it does so with every tenth packet.
    assert_eq!((outcome.totals.deflections, outcome.flows[0].deflections), (10, 10));
    assert_eq!(outcome.totals.drops, 0);
    // Where there is one way only, there is nothing to deflect to.
    let outcome = with_agent(star(2), "constant-window", Exerciser { deflect_every: 10, ..Exerciser::default() });
    assert_eq!((outcome.totals.deflections, outcome.flows[0].deflections), (0, 0));
}

#[test]
fn an_agent_knows_where_a_packet_came_in() {
    for ingress in [0, 1] {
        let mut config = config(star(3), "dctcp", &[]);
        let agent = Exerciser { mark_every: 1, ingress: Some(ingress), ..Exerciser::default() };
        config.switch.agent = AgentParameters::Exerciser(agent);
        // They share the egress port, where most of the packets wait.
        config.flows = vec![flow(0, 2, 50 * u64::from(MTU)), flow(1, 2, 50 * u64::from(MTU))];
        let outcome = common::run(config);
        delivered(&outcome);
        let marked: Vec<u32> = outcome.flows.iter().map(|flow| flow.marked_packets).collect();
        assert_eq!(marked, if ingress == 0 { [50, 0] } else { [0, 50] });
    }
}

/// Two flows of 250 packets into one port, which is looked at every 10 us.
fn reported(agent: Exerciser, change: impl FnOnce(&mut Config)) -> Outcome {
    let mut config = unlimited(star(3));
    config.switch.agent = AgentParameters::Exerciser(agent);
    config.flows = vec![flow(0, 2, 250 * u64::from(MTU)), flow(1, 2, 250 * u64::from(MTU))];
    change(&mut config);
    common::run(config)
}

#[test]
fn an_agent_notifies_from_its_timer() {
    let agent = |from| Exerciser { report_every: Time::from_us(10), report_from: from, ..Exerciser::default() };
    let all = reported(agent(1), |_| {});
    delivered(&all);
    // 500 packets take 167 us at the port, and while it is busy something waits there.
    assert_eq!(all.totals.created_bytes, 16 * CNP);
    // From 500 KB on, which is half of the peak: the queue grows for half of the time, and shrinks for the other.
    let half = reported(agent(500_000), |_| {});
    assert!((7 * CNP..=9 * CNP).contains(&half.totals.created_bytes), "{}", half.totals.created_bytes);
    let none = reported(Exerciser::default(), |_| {});
    assert_eq!(none.totals.created_bytes, 0);
    // All of them came to the sources.
    assert_eq!(all.totals.received_bytes - none.totals.received_bytes, all.totals.created_bytes);
    for threads in [2, 4] {
        let again = reported(agent(1), |config| config.threads = threads);
        assert_eq!(again.digest, all.digest);
    }
}

/// The agent's own count of what waits, which it compares with the queues whenever it looks, stays right.
#[test]
fn an_agent_hears_of_what_is_dropped_and_lost() {
    let agent = || Exerciser { report_every: Time::from_ns(900), deflect_every: 7, ..Exerciser::default() };
    let full = reported(agent(), |config| config.switch.buffer = Buffer::PerPort { bytes: 100_000 });
    delivered(&full);
    assert!(full.totals.drops > 100 && full.totals.created_bytes > CNP * 100, "{:?}", full.totals);
    let cut = reported(agent(), |config| {
        let event = |us, up| link_event(&config.topology, Time::from_us(us), "h2-s0", up);
        config.link_events = vec![event(50, false), event(70, true)];
    });
    delivered(&cut);
    assert!(cut.totals.lost > 100, "{:?}", cut.totals);
    // And what it sends another way is counted there.
    let deflected = reported(agent(), |config| {
        config.topology = two_spines();
        config.flows = vec![flow(0, 1, 1_000_000), flow(0, 1, 1_000_000)];
    });
    delivered(&deflected);
    assert!(deflected.totals.deflections > 50);
}

#[test]
fn an_agent_that_does_nothing_changes_nothing() {
    for topology in every_topology() {
        let make = |agent| {
            let mut config = config(topology.clone(), "dctcp", &[]);
            config.switch.agent = agent;
            config.flows = (1..topology.hosts).map(|host| flow(host, 0, 50_000)).collect();
            common::run(config)
        };
        assert_eq!(make(AgentParameters::None).digest, make(AgentParameters::Exerciser(Exerciser::default())).digest);
    }
}
