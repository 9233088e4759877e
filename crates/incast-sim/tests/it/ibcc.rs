//! InfiniBand's congestion control on a fabric with credits: what it marks, what it does for victims, and that nothing
//! is lost.

use crate::common::{self, class, config, delivered, flow, link, star, text};
use incast_cc::{law::Framing, parameters::Raw, registry::AgentParameters};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Credits, LinkEvent, Probes},
    outcome::{PacketRecord, Step},
    packet::Kind,
    probe::PacketFilter,
    topology::{Dumbbell, Topology, file::parse},
};
use incast_units::{Rate, Time};

/// InfiniBand's largest payload.
const MTU: u32 = 4096;

/// The switches' half with some parameters given.
fn agent(topology: &Topology, given: &[(&str, Raw)]) -> AgentParameters {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    let path = base_path(topology, MTU, Framing::InfiniBand);
    AgentParameters::resolve("ibcc", &path, &given).expect("an agent").expect("good parameters")
}

/// A run with credits, gaps of two symbols, and no timeouts; with congestion control or without.
fn infiniband(topology: Topology, law: &[(&str, Raw)], switch: Option<&[(&str, Raw)]>) -> Config {
    let marks = switch.map(|given| agent(&topology, given));
    let mut config = config(topology, "ibcc", law);
    config.switch.agent = marks.unwrap_or_default();
    config.switch.credits = Some(Credits::default());
    config.wire.gap = 2;
    config.host.rto_min = Time::from_ms(1_000);
    config.end = Time::from_ms(5_000);
    config
}

fn run(config: Config) -> Outcome {
    let outcome = common::run(config);
    let totals = &outcome.totals;
    assert_eq!((totals.drops, totals.lossless_drops, totals.lost), (0, 0, 0), "{totals:?}");
    outcome
}

fn marks(outcome: &Outcome) -> u64 {
    outcome.totals.marks_edge + outcome.totals.marks_fabric
}

#[test]
fn an_incast_of_eight_loses_nothing_and_completes() {
    for becn in ["ack", "cnp"] {
        let with = |threads: usize| {
            let mut config = infiniband(star(9), &[("becn", text(becn))], Some(&[]));
            config.flows = (1..9).map(|host| flow(host, 0, 256_000)).collect();
            config.threads = threads;
            config.probes.rates = Some((Time::from_us(5), 1));
            run(config)
        };
        let outcome = with(1);
        delivered(&outcome);
        assert!(marks(&outcome) > 8, "{becn}: {}", marks(&outcome));
        let least = outcome.rates.iter().map(|sample| sample.assigned_bps).min().expect("samples");
        assert!(least < 20_000_000_000, "{becn}: {least}");
        println!(
            "{becn}: {} marks, down to {:.2} Gbit/s, all at {}",
            marks(&outcome),
            least as f64 / 1e9,
            outcome.ended_at
        );
        for threads in [2, 4] {
            let other = with(threads);
            assert_eq!((other.digest, other.rates), (outcome.digest.clone(), outcome.rates.clone()));
        }
    }
}

/// Without FECN nothing changes: sources stay at line rate, and credits alone share the port.
#[test]
fn without_marks_sources_stay_at_line_rate() {
    let mut config = infiniband(star(9), &[], None);
    config.flows = (1..9).map(|host| flow(host, 0, 256_000)).collect();
    config.probes.rates = Some((Time::from_us(5), 1));
    let outcome = run(config);
    delivered(&outcome);
    assert_eq!(marks(&outcome), 0);
    assert!(outcome.rates.iter().all(|sample| sample.assigned_bps == Rate::from_gbps(100).bps()));
}

/// Two switches: the culprits on the left send to a host for which there is more than its link carries, and the victim,
/// which goes to another host, shares the link between the switches with them. That link could carry all.
fn spreading() -> (Topology, Vec<FlowSpec>) {
    let link = link(100, Time::from_us(1));
    let topology =
        Dumbbell { left: 3, right: 6, host_link: link, bottleneck: common::link(400, Time::from_us(1)) }.build();
    let long = 500_000_000;
    // 0 and 1 on the left and 5 to 8 on the right send to 3; the victim goes from 2 to 4.
    let mut flows: Vec<FlowSpec> = [0, 1, 5, 6, 7, 8].map(|host| flow(host, 3, long)).into();
    flows.push(flow(2, 4, long));
    (topology.expect("a good topology"), flows)
}

/// Goodput in Gbit/s of the victim, of all culprits together, and of the culprit that got least, after `from`.
fn goodput(law: &[(&str, Raw)], switch: Option<&[(&str, Raw)]>) -> (f64, f64, f64, Outcome) {
    let (topology, flows) = spreading();
    let mut config = infiniband(topology, law, switch);
    config.flows = flows;
    config.end = Time::from_ms(20);
    let outcome = run(config);
    let gbps = |source: u32| {
        let record = outcome.flows.iter().find(|flow| flow.source == source).expect("it was born");
        record.delivered_bytes as f64 * 8.0 / 20e-3 / 1e9
    };
    let culprits = [0, 1, 5, 6, 7, 8].map(gbps);
    (gbps(2), culprits.iter().sum(), culprits.iter().copied().fold(f64::MAX, f64::min), outcome)
}

/// What congestion control is for: Gran et al., IPDPS 2010, find the same on hardware.
#[test]
fn a_victim_gets_more_where_culprits_are_throttled() {
    let (victim, culprits, _, without) = goodput(&[], None);
    println!("without: victim {victim:.1}, culprits {culprits:.1} Gbit/s");
    assert!(without.totals.pauses > 1_000);
    // Its packets go in turn with those of two culprits, which get a sixth of the congested port each, or a third
    // together.
    assert!(victim < 40.0, "{victim}");
    for (name, law, switch) in [
        ("linear", vec![], vec![]),
        ("geometric", vec![("fill", text("geometric"))], vec![]),
        ("cnp", vec![("becn", text("cnp"))], vec![]),
        ("throughout", vec![], vec![("has_credits", text("throughout"))]),
        ("scaled", vec![("profile", text("scaled"))], vec![]),
    ] {
        let (throttled, all, least, outcome) = goodput(&law, Some(&switch));
        println!(
            "{name}: victim {throttled:.1}, culprits {all:.1}, least {least:.1} Gbit/s, {} marks",
            marks(&outcome)
        );
        assert!(throttled > victim * 1.5, "{name}: {throttled} {victim}");
    }
}

/// Victim_Mask 0: packets that leave the left switch while it misses credits are not marked, though its queue is long;
/// with Victim_Mask 1 all are.
#[test]
fn packets_behind_missing_credits_are_marked_by_the_mask_alone() {
    let fecn = |mask: bool, credits: &str| {
        let (topology, flows) = spreading();
        let (node, port) = topology.find_port("s0->s1").expect("the shared link");
        // Sources do not react, so that the queue stays.
        let law = [("becn", text("cnp")), ("cnp_interval", text("1s"))];
        let given = [("victim_mask", Raw::Flag(mask)), ("has_credits", text(credits))];
        let mut config = infiniband(topology, &law, Some(&given));
        config.flows = flows;
        config.end = Time::from_us(1_500);
        let filter = PacketFilter {
            flow: None,
            ports: vec![(node, port)],
            from: Time::from_us(500),
            until: Time::MAX,
            most: usize::MAX,
        };
        config.probes = Probes { packets: Some(filter), ..Probes::default() };
        let outcome = run(config);
        let sent = |record: &&PacketRecord| {
            let is_data = record.packet.kind == Kind::Data;
            (record.node, record.port) == (node, port) && is_data && matches!(record.step, Step::Sent { .. })
        };
        let all = outcome.packets.iter().filter(sent).count();
        let marked = outcome
            .packets
            .iter()
            .filter(sent)
            .filter(|record| record.packet.codepoint != incast_cc::agent::Codepoint::None)
            .count();
        println!("mask {mask}, credits {credits}: {marked} of {all} marked");
        marked as f64 / all as f64
    };
    assert!(fecn(true, "now") > 0.99);
    // Credits come in batches of a quarter of the buffer: with the last of each the port is found to be a victim.
    let now = fecn(false, "now");
    assert!((0.5..0.9).contains(&now), "{now}");
    assert_eq!(fecn(false, "throughout"), 0.0);
}

/// Everything at once: loss, links that fail, lanes, random marks; one digest for every number of threads.
#[test]
fn threads_and_probes_change_nothing() {
    let make = |threads: usize, probes: bool| {
        let text_of = "host a\nhost b\nhost c\nhost d\nswitch s\nswitch t\n\
                    link a s 100Gbps 1us\nlink b s 25Gbps 1us\nlink c t 100Gbps 2us\nlink d t 100Gbps 1us\n\
                    link s t 100Gbps 500ns\n";
        let mut topology = parse(text_of).expect("a good file");
        topology.cables[1].link.loss = 0.01;
        let given = [("marking_rate", Raw::Integer(2)), ("threshold", Raw::Integer(14))];
        let mut config = infiniband(topology, &[], Some(&given));
        let mut lower = class(&config.topology, MTU, "ibcc", &[("becn", text("cnp"))]);
        lower.priority = 1;
        config.switch.priorities = 2;
        config.classes.push(lower);
        config.flows = (0..40u32)
            .map(|index| {
                let (from, to) = (index % 4, (index * 7 + 1) % 4);
                let to = if from == to { (to + 1) % 4 } else { to };
                let start = Time::from_us(u64::from(index) * 5);
                FlowSpec { start, class: (index % 2) as u16, ..flow(from, to, 200_000) }
            })
            .collect();
        let event = |us, up| LinkEvent { at: Time::from_us(us), cable: 4, up };
        config.link_events = vec![event(60, false), event(90, true)];
        config.host.rto_min = Time::from_us(300);
        config.threads = threads;
        if probes {
            config.probes.events = true;
            config.probes.rates = Some((Time::from_us(3), 1));
        }
        let outcome = common::run(config);
        assert_eq!(outcome.totals.drops, 0);
        outcome
    };
    let one = make(1, false);
    delivered(&one);
    assert!(marks(&one) > 10 && one.totals.lost > 10, "{:?}", one.totals);
    for (threads, probes) in [(1, true), (2, false), (3, true), (4, false)] {
        assert_eq!(make(threads, probes).digest, one.digest, "{threads} threads, probes {probes}");
    }
}
