//! Mercury in a simulated fabric: the paper's victim and culprit, what it grants, its incast, and that it acts by port.
//!
//! X. He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters", J. Cloud Computing 2024.

use crate::common::{self, config, flow, info, text};
use incast_cc::{parameters::Raw, registry::AgentParameters};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Buffer, ClassConfig, Ecn, Pfc, Size, Threshold},
    outcome::{EventKind, EventRecord, Step},
    packet::Kind,
    probe::PacketFilter,
    topology::{Topology, file::parse},
};
use incast_units::Time;

const MTU: u32 = 1000;

/// Figure 2: the chain S1 - S2 - S3. The burst hosts are at S3.
fn chain() -> Topology {
    let mut text = String::from(
        "switch s1\nswitch s2\nswitch s3\nhost h1\nhost h2\nhost r1\nhost r2\n\
         link h1 s1 20Gbps 4us\nlink h2 s1 20Gbps 4us\nlink r1 s3 40Gbps 4us\nlink r2 s3 40Gbps 4us\n\
         link s1 s2 40Gbps 4us\nlink s2 s3 40Gbps 4us\n",
    );
    for burst in 1..=8 {
        text.push_str(&format!("host b{burst}\nlink b{burst} s3 40Gbps 4us\n"));
    }
    parse(&text).expect("a good file")
}

/// A class under the law, with what the agent sets unless `given` says otherwise; acknowledgements and notifications go
/// first.
fn class(topology: &Topology, law: &str, agent: &AgentParameters, given: &[(&str, Raw)]) -> ClassConfig {
    let known = info(law).parameters;
    let pairs = agent.info().map_or(&[][..], |info| info.sender);
    let has = |key: &str| known.iter().any(|parameter| parameter.name == key);
    let mut all: Vec<_> = pairs.iter().filter(|(key, _)| has(key)).map(|(key, value)| (*key, text(value))).collect();
    all.extend(given.iter().cloned());
    let class = common::class(topology, MTU, law, &all);
    ClassConfig { priority: 1, ack_priority: Some(0), ..class }
}

fn mercury(topology: &Topology, law: &str, given: &[(&str, &str)]) -> AgentParameters {
    let given: Vec<_> = given.iter().map(|(key, value)| (*key, text(value))).collect();
    with_reading(topology, law, &given)
}

fn with_reading(topology: &Topology, law: &str, given: &[(&str, Raw)]) -> AgentParameters {
    let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
    let path = base_path(topology, MTU, info(law).framing);
    AgentParameters::resolve("mercury", &path, &given).expect("it is registered").expect("good parameters")
}

/// A fabric under a law, with Mercury or without it.
fn fabric(topology: Topology, law: &str, agent: Option<&[(&str, &str)]>, given: &[(&str, Raw)], xoff: u64) -> Config {
    let agent = agent.map_or(AgentParameters::None, |given| mercury(&topology, law, given));
    let mut config = config(topology, law, &[]);
    config.classes = vec![class(&config.topology, law, &agent, given)];
    config.host.mtu = MTU;
    config.switch.agent = agent;
    config.switch.priorities = 2;
    config.switch.buffer = Buffer::Shared { total: 16_000_000, alpha: (1, 1), reserve: 0 };
    // The thresholds of DCQCN, SIGCOMM 2015, for 40 Gbit/s.
    config.switch.ecn = Ecn::Red { min: Size::Bytes(5_000), max: Size::Bytes(200_000), p: 0.01 };
    config.switch.telemetry = law == "hpcc";
    let (xoff, xon) = (Size::Bytes(xoff), Some(Size::Bytes(xoff - 2_000)));
    config.switch.pfc = Some(Pfc::new(Threshold::Static { xoff, xon }));
    config
}

/// Figure 3: F1 from H1 to R1 is flow 0, F2 from H2 to R2 is flow 1; from 3 ms to 3.5 ms eight hosts send 50 KB each to
/// R2, again and again.
fn victim_and_culprit(law: &str, agent: Option<&[(&str, &str)]>, given: &[(&str, Raw)], xoff: u64) -> Config {
    let mut config = fabric(chain(), law, agent, given, xoff);
    config.flows = vec![flow(0, 2, 1 << 40), flow(1, 3, 1 << 40)];
    bursts(&mut config, 100);
    config.probes.rates = Some((Time::from_ns(500), 1 << 30));
    config.end = Time::from_ms(5);
    config
}

/// The bursts of figure 3, so many microseconds apart.
fn bursts(config: &mut Config, every: u64) {
    config.flows.truncate(2);
    for burst in 0..500 / every {
        let start = Time::from_us(3_000 + every * burst);
        config.flows.extend((4..12).map(|host| FlowSpec { start, ..flow(host, 3, 50_000) }));
    }
}

/// A lossless run.
fn run(config: Config) -> Outcome {
    let outcome = common::run(config);
    assert_eq!((outcome.totals.drops, outcome.totals.lossless_drops), (0, 0), "{:?}", outcome.totals);
    outcome
}

/// The least that a flow was assigned from 3 ms on, as a share of the 20 Gbit/s of its NIC.
fn least(outcome: &Outcome, source: u32) -> f64 {
    let own = outcome.rates.iter().filter(|sample| sample.source == source && sample.time >= Time::from_ms(3));
    own.map(|sample| sample.assigned_bps as f64 / 20e9).fold(f64::INFINITY, f64::min)
}

/// The paper's xoff, and one at which pauses spread.
const XOFF: u64 = 320_000;
const LOW: u64 = 40_000;

/// What the paper's figure 9 is about. With its xoff nothing pauses in time (`docs/mercury.md`): the state is put to
/// the test at a lower one.
#[test]
fn the_victim_keeps_its_rate_and_the_culprit_does_not() {
    for law in ["dcqcn", "timely"] {
        let mercury = run(victim_and_culprit(law, Some(&[]), &[], LOW));
        assert!(mercury.totals.pauses > 10, "{law}: {} pauses", mercury.totals.pauses);
        assert!(least(&mercury, 0) >= 0.95, "{law}: the victim had {}", least(&mercury, 0));
        assert!(least(&mercury, 1) < 0.5, "{law}: the culprit had {}", least(&mercury, 1));
        let plain = run(victim_and_culprit(law, None, &[], LOW));
        assert!(plain.totals.pauses > mercury.totals.pauses, "{law}");
        assert!(least(&plain, 0) < 0.6, "{law}: without Mercury the victim had {}", least(&plain, 0));
        // The cap that comes with Mercury is not enough.
        let capped = run(victim_and_culprit(law, None, &[("in_flight", text("bdp"))], LOW));
        assert!(least(&capped, 0) < 0.6, "{law}: with the cap alone the victim had {}", least(&capped, 0));
    }
    // It is the state that does it: to the letter of algorithm 1, a paused port notifies the victim.
    let letter = run(victim_and_culprit("dcqcn", Some(&[("during_pause", "unchanged")]), &[], LOW));
    assert!(least(&letter, 0) < 0.6, "{}", least(&letter, 0));
}

/// With the paper's xoff, bursts each 100 us come too slowly: flow control has nothing to do, and nobody is a victim.
#[test]
fn the_papers_bursts_pause_nothing() {
    for law in ["dcqcn", "timely", "hpcc", "dctcp-rate"] {
        for agent in [None, Some(&[][..])] {
            let outcome = run(victim_and_culprit(law, agent, &[], XOFF));
            assert_eq!(outcome.totals.pauses, 0, "{law}");
            assert!(least(&outcome, 0) >= 0.95, "{law}: {}", least(&outcome, 0));
        }
    }
}

/// Back to back they do, where nothing limits what is in flight: the pause of S2 goes on to S1. That they do not with
/// Mercury is the effect of the cap of C x baseRTT that comes with it, with which F2 alone does not fill the ingress:
/// the cap without the agent does the same. What detection does is in
/// [`the_victim_keeps_its_rate_and_the_culprit_does_not`], at an Xoff that the cap does not reach.
#[test]
fn bursts_back_to_back_spread_pauses_unless_a_window_is_the_cap() {
    let cap = [("in_flight", text("bdp"))];
    for law in ["dcqcn", "timely"] {
        let with = |agent, given: &[(&str, Raw)]| {
            let mut config = victim_and_culprit(law, agent, given, XOFF);
            bursts(&mut config, 10);
            config.probes.events = true;
            let outcome = run(config);
            let paused = |node| {
                let is_pause = |event: &&EventRecord| event.kind == EventKind::Pause && event.node == node;
                outcome.events.iter().filter(is_pause).count()
            };
            (least(&outcome, 0), least(&outcome, 1), paused(12), paused(13))
        };
        let (victim, culprit, first, second) = with(None, &[]);
        assert!(first > 2 && second > 2, "{law}: S1 was paused {first} times, S2 {second} times");
        assert!(victim < 0.25 && culprit < 0.25, "{law}: {victim} and {culprit}");
        for agent in [None, Some(&[][..])] {
            let (victim, culprit, first, second) = with(agent, &cap);
            assert_eq!((first, second), (0, 0), "{law}, {agent:?}");
            assert!(victim >= 0.95 && culprit < 0.25, "{law}, {agent:?}: {victim} and {culprit}");
        }
    }
}

/// The culprit is told to slow down under each law; DCTCP's rate follows marks alone, which the agent may leave to it.
#[test]
fn the_culprit_is_granted_little_under_each_law() {
    for law in ["dcqcn", "timely", "hpcc", "dctcp-rate"] {
        let outcome = run(victim_and_culprit(law, Some(&[("marks", "determined")]), &[], LOW));
        let window = |source| {
            let own = outcome.rates.iter().filter(|sample| sample.source == source && sample.time >= Time::from_ms(3));
            own.map(|sample| sample.window_bytes).min().expect("it was sampled")
        };
        assert!(window(1) < 5_000 && window(0) > 60_000, "{law}: {} and {}", window(1), window(0));
        // What counts as assigned is no more than what the window lets through, whatever the law's pace. The last packet
        // may exceed it.
        let path = base_path(&chain(), MTU, info(law).framing);
        for sample in &outcome.rates {
            let bytes = sample.window_bytes.saturating_add(u64::from(MTU) - 1);
            let packets = bytes as f64 / f64::from(MTU);
            let through = packets * f64::from(path.wire_mss) * 8.0 / path.base_rtt.as_secs_f64();
            assert!(sample.assigned_bps as f64 <= through, "{law}: {sample:?}");
        }
        assert!(least(&outcome, 1) < 0.1, "{law}: {}", least(&outcome, 1));
    }
}

/// Figure 4: nine hosts at S1, of which the first has a long flow to R1; at 600 us the others send 120 KB each.
fn incast(law: &str, agent: Option<&[(&str, &str)]>) -> Config {
    let mut text = String::from(
        "switch s1\nswitch s2\nswitch s3\nlink s1 s2 40Gbps 4us\nlink s2 s3 40Gbps 4us\nhost r1\nlink r1 s3 40Gbps 4us\n",
    );
    for host in 1..=9 {
        text.push_str(&format!("host h{host}\nlink h{host} s1 40Gbps 4us\n"));
    }
    let mut config = fabric(parse(&text).expect("a good file"), law, agent, &[], 320_000);
    let start = Time::from_us(600);
    config.flows = (2..10).map(|host| FlowSpec { start, ..flow(host, 0, 120_000) }).collect();
    config.flows.push(flow(1, 0, 1 << 40));
    config.end = Time::from_ms(2);
    config
}

#[test]
fn the_incast_has_a_shorter_queue() {
    for law in ["dcqcn", "timely", "hpcc", "dctcp-rate"] {
        let done = |outcome: &Outcome| {
            let short = outcome.flows.iter().filter(|flow| flow.bytes == 120_000);
            assert_eq!(short.filter(|flow| flow.delivered.is_some()).count(), 8, "{law}");
        };
        let (mercury, plain) = (run(incast(law, Some(&[]))), run(incast(law, None)));
        done(&mercury);
        done(&plain);
        let (shorter, longer) = (mercury.totals.max_queue_bytes, plain.totals.max_queue_bytes);
        assert!(longer > 1_000_000, "{law}: {longer}, more than 1,000 KB in the paper");
        assert!(shorter < longer * 6 / 10, "{law}: {shorter} of {longer}");
        assert!(mercury.totals.pauses <= plain.totals.pauses, "{law}");
    }
}

/// A packet of the flow that its host sends, one that it gets, or a grant, in the order in which the host has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Acked(u64),
    Granted(u64),
    Sent(u64),
}

/// What the host of the culprit sends and gets.
fn seen(outcome: &Outcome) -> Vec<(Time, At)> {
    let mut seen = Vec::new();
    for record in &outcome.packets {
        let Step::Sent { arrival, .. } = record.step else { continue };
        let packet = &record.packet;
        let arrival = arrival.expect("nothing is lost");
        match packet.kind {
            Kind::Data if record.node == 1 => {
                seen.push((record.time, At::Sent(u64::from(packet.position + 1) * u64::from(MTU))));
            }
            Kind::Ack if record.node == 12 => {
                seen.push((arrival, At::Acked(u64::from(packet.packets) * u64::from(MTU))));
            }
            Kind::Cnp if record.node == 12 => seen.push((arrival, At::Granted(packet.value))),
            _ => {}
        }
    }
    seen.sort_unstable();
    seen
}

/// Where no grant ends, what is in flight never grows beyond the smallest one; where the first increase ends it, not
/// before that.
#[test]
fn what_is_in_flight_does_not_grow_above_a_granted_window() {
    for law in ["dcqcn", "timely", "hpcc", "dctcp-rate"] {
        for until in ["timeout", "first-increase"] {
            // Of the laws' own windows without the slack of a packet: what is granted has none either.
            let given = [("grant_until", text(until)), ("grant_timeout", text("1s")), ("window_rule", text("fits"))];
            let mut config = victim_and_culprit(law, Some(&[]), &given, XOFF);
            config.probes.packets = Some(PacketFilter {
                flow: Some((1, 0)),
                ports: Vec::new(),
                from: Time::ZERO,
                until: Time::MAX,
                most: usize::MAX,
            });
            let full = config.classes[0].format.data(MTU) + config.wire.gap;
            let outcome = run(config);
            assert_eq!(outcome.flows[1].retransmitted_bytes, 0, "{law}");
            // When the window was last seen to be larger than what was granted.
            let samples: Vec<_> = outcome.rates.iter().filter(|sample| sample.source == 1).collect();
            let (mut sent, mut acked, mut cap, mut grants, mut checked) = (0, 0, u64::MAX, 0, 0);
            let mut ends = Time::MAX;
            for (time, at) in seen(&outcome) {
                match at {
                    At::Acked(position) => acked = acked.max(position),
                    At::Granted(window) => {
                        if time >= ends {
                            cap = u64::MAX;
                        }
                        // Granted on the link, in flight as payload.
                        cap = cap.min(window * u64::from(MTU) / u64::from(full));
                        grants += 1;
                        // The sample before the one that shows it: the grant held until then.
                        let end = samples
                            .iter()
                            .position(|sample| sample.time > time && sample.window_bytes > cap.max(MTU.into()));
                        ends = end.map_or(Time::MAX, |index| samples[index - 1].time);
                        assert!(until == "first-increase" || ends == Time::MAX, "{law}: it ended at {ends}");
                    }
                    At::Sent(position) => {
                        sent = sent.max(position);
                        if time < ends && cap != u64::MAX {
                            checked += 1;
                            assert!(
                                sent - acked <= cap.max(MTU.into()),
                                "{law}, {until}: {} of {cap} at {time}",
                                sent - acked
                            );
                        }
                    }
                }
            }
            assert!(grants >= 2 && checked > 0, "{law}, {until}: {grants} grants, {checked} packets");
        }
    }
}

/// An agent that acts by port leaves departures lazy: that, probes and threads change nothing.
#[test]
fn results_do_not_depend_on_threads_nor_on_who_watches() {
    let readings: [&[(&str, &str)]; 4] = [
        &[],
        &[("cnp_trigger", "periodic"), ("window_sharing", "split")],
        &[("notify", "each"), ("marks", "always"), ("expiry_check", "any-packet"), ("cnp_interval", "1us")],
        &[("table_entries", "2"), ("decrease", "throughout"), ("timer_start", "first-resume"), ("received", "port")],
    ];
    let cases = ["dcqcn", "timely", "hpcc", "dctcp-rate"].map(|law| (law, readings[0]));
    for (law, reading) in cases.into_iter().chain(readings[1..].iter().map(|reading| ("dcqcn", *reading))) {
        let reading: Vec<_> = reading
            .iter()
            .map(|(key, value)| (*key, if *key == "table_entries" { Raw::Integer(2) } else { text(value) }))
            .collect();
        let with = |threads: usize, watched: bool| {
            let mut config = victim_and_culprit(law, Some(&[]), &[], LOW);
            config.switch.agent = with_reading(&config.topology, law, &reading);
            config.threads = threads;
            if watched {
                config.probes.events = true;
                config.probes.packets =
                    Some(PacketFilter { flow: None, ports: Vec::new(), from: Time::ZERO, until: Time::MAX, most: 0 });
            } else {
                config.probes.rates = None;
            }
            config.end = Time::from_ms(4);
            run(config)
        };
        let first = with(1, false);
        assert!(first.totals.pauses > 0 && first.totals.created_bytes > first.totals.pauses * 64, "{law}");
        for (threads, watched) in [(2, false), (4, false), (1, true), (4, true)] {
            let again = with(threads, watched);
            assert_eq!(again.digest, first.digest, "{law} {reading:?}: {threads} threads, watched: {watched}");
            assert!(!watched || again.totals.events > first.totals.events, "{law}");
        }
    }
}
