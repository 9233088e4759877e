//! TCD in the setting of its simulator: two switches, a flow whose path crosses another's congested port only through
//! its pauses, and bursts that make them.
//!
//! Source: Y. Zhang et al., "Congestion Detection in Lossless Networks", SIGCOMM 2021, and the configuration of its
//! simulator (`bursttopo.txt`, `burstflow.txt`, `configburst.txt`): links of 40 Gbit/s and 5 us, bursts of 64 KB each
//! 30 us from 15 hosts, max(T_on) 97 us. The two long flows come over links of 18 Gbit/s here, so that the port which
//! they share is never congested by itself.

use crate::common::{self, config, flow, text};
use incast_cc::{agent::Codepoint, parameters::Raw, registry::AgentParameters, testing::exerciser::Exerciser};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{Ecn, Pfc, Size, Threshold},
    outcome::{EventKind, PacketRecord, Step},
    packet::Kind,
    probe::PacketFilter,
    topology::{Topology, file::parse},
};
use incast_units::Time;
use std::{collections::BTreeSet, fmt::Write as _};

const MTU: u32 = 1000;
const SENDERS: u32 = 15;
const LONG: u64 = 400_000_000;
const INTERVAL: Time = Time::from_us(97);
const BURSTS: Time = Time::from_us(2_000);

/// Hosts 0 and 1 send the victim F0 to 2 and the culprit F1 to 3; hosts from 4 on send bursts to 3.
fn two_switches() -> Topology {
    let mut text = String::from("switch s0\nswitch s1\n");
    for host in 0..4 + SENDERS {
        writeln!(text, "host h{host}").expect("strings take everything");
    }
    text += "link h0 s0 18Gbps 5us\nlink h1 s0 18Gbps 5us\nlink s0 s1 40Gbps 5us\n";
    for host in 2..4 + SENDERS {
        writeln!(text, "link h{host} s1 40Gbps 5us").expect("strings take everything");
    }
    parse(&text).expect("a good file")
}

fn bursts(with_tcd: bool, variant: &str) -> Config {
    let topology = two_switches();
    let parameters = [("profile", text("paper")), ("variant", text(variant))];
    let mut class = common::class(&topology, MTU, "dcqcn", &parameters);
    (class.priority, class.ack_priority, class.notification_priority) = (1, Some(0), 0);
    let path = base_path(&topology, MTU, class.law.info().framing);
    let victim_port = topology.find_port("s0->s1").expect("the victim's port");
    let congested_port = topology.find_port("s1->h3").expect("the congested port");
    let mut config = config(topology, "dcqcn", &[]);
    config.host.mtu = MTU;
    // What waits at the congested port takes 4 ms.
    config.host.rto_min = Time::from_ms(100);
    config.classes = vec![class];
    config.flows = vec![flow(0, 2, LONG), flow(1, 3, LONG)];
    for round in 0..20 {
        for sender in 0..SENDERS {
            let start = BURSTS + Time::from_us(30 * round);
            config.flows.push(FlowSpec { start, ..flow(4 + sender, 3, 64_000) });
        }
    }
    config.switch.priorities = 2;
    config.switch.ecn = Ecn::Red { min: Size::Bytes(5_000), max: Size::Bytes(200_000), p: 0.01 };
    // The simulator has 320 packets; before so much waits here the culprit has been cut, by the NIC's variant at once.
    let packets = if variant == "paper" { 80 } else { 20 };
    let (xoff, xon) = (Size::Bytes(packets * 1030), Some(Size::Bytes((packets - 2) * 1030)));
    config.switch.pfc = Some(Pfc { priorities: 0b10, ..Pfc::new(Threshold::Static { xoff, xon }) });
    if with_tcd {
        let given = [("interval".to_owned(), Raw::Text(INTERVAL.to_string()))];
        config.switch.agent =
            AgentParameters::resolve("tcd", &path, &given).expect("an agent").expect("good parameters");
    }
    config.probes.rates = Some((Time::from_us(5), LONG));
    config.probes.events = true;
    config.probes.packets = Some(PacketFilter {
        flow: None,
        ports: vec![victim_port, congested_port],
        from: Time::ZERO,
        until: Time::MAX,
        most: usize::MAX,
    });
    config.end = Time::from_ms(12);
    config
}

/// Data that a switch port sent.
fn sent<'a>(outcome: &'a Outcome, topology: &Topology, port: &str) -> Vec<&'a PacketRecord> {
    let (node, port) = topology.find_port(port).expect("a port");
    let records = outcome.packets.iter().filter(|record| (record.node, record.port) == (node, port));
    records.filter(|record| record.packet.kind == Kind::Data && matches!(record.step, Step::Sent { .. })).collect()
}

fn count(records: &[&PacketRecord], codepoint: Codepoint) -> usize {
    records.iter().filter(|record| record.packet.codepoint == codepoint).count()
}

/// Rates that the law of a long flow assigns, with the times.
fn rates(outcome: &Outcome, source: u32) -> Vec<(Time, u64)> {
    let samples = outcome.rates.iter().filter(|sample| sample.source == source);
    samples.map(|sample| (sample.time, sample.assigned_bps)).collect()
}

/// Of the hosts of the long flows.
const LINE: u64 = 18_000_000_000;

#[test]
fn the_victim_is_held_and_the_culprit_is_cut() {
    for variant in ["paper", "mellanox"] {
        let topology = two_switches();
        let outcome = common::run(bursts(true, variant));
        assert_eq!((outcome.totals.drops, outcome.totals.lossless_drops), (0, 0));

        let victim = sent(&outcome, &topology, "s0->s1");
        assert!(count(&victim, Codepoint::UndeterminedExperienced) > 100);
        assert_eq!(count(&victim, Codepoint::CongestionExperienced), 0);
        let congested = sent(&outcome, &topology, "s1->h3");
        let ce = count(&congested, Codepoint::CongestionExperienced);
        assert!(ce > 1_000, "{ce} of {}", congested.len());
        // CE takes the place of the UE that the culprit's packets come with.
        let culprits = |records: &[&PacketRecord], codepoint| -> BTreeSet<u32> {
            let marked =
                records.iter().filter(|record| record.packet.source == 1 && record.packet.codepoint == codepoint);
            marked.map(|record| record.packet.position).collect()
        };
        let before = culprits(&victim, Codepoint::UndeterminedExperienced);
        let after = culprits(&congested, Codepoint::CongestionExperienced);
        assert!(before.intersection(&after).count() > 10);

        // Undetermined from the first resume until an interval after the last.
        let edges = |kind| {
            let (node, port) = topology.find_port("s0->s1").expect("a port");
            let events = outcome.events.iter();
            let here = events.filter(move |event| (event.node, event.port, event.kind) == (node, port, kind));
            here.map(|event| event.time)
        };
        let (first, last) = (edges(EventKind::Resume).next(), edges(EventKind::Resume).next_back());
        let (first, last) = (first.expect("a resume"), last.expect("a resume"));
        let undetermined = || {
            let marked = victim.iter().filter(|record| record.packet.codepoint == Codepoint::UndeterminedExperienced);
            marked.map(|record| record.time)
        };
        assert!(undetermined().min() >= Some(first));
        let end = undetermined().max().expect("a mark");
        assert!(end > last && end <= last + INTERVAL, "{end}, the last resume at {last}");
        let later = victim.iter().filter(|record| record.time > last + INTERVAL).count();
        assert!(later > 1_000, "{later}");

        assert!(rates(&outcome, 0).iter().all(|(_, rate)| *rate == LINE), "the victim is cut");
        let culprit = rates(&outcome, 1).into_iter().map(|(_, rate)| rate).min().expect("samples");
        assert!(culprit < LINE / 2, "{culprit}");
        // The receivers' notifications say what they saw, and are not marked themselves.
        assert!(
            outcome
                .packets
                .iter()
                .all(|record| { record.packet.kind == Kind::Data || record.packet.codepoint == Codepoint::None })
        );
        println!(
            "{variant}: {} pauses, UE {} of {}, CE {ce} of {}, culprit down to {:.1} Gbit/s, last resume {last}",
            edges(EventKind::Pause).count(),
            undetermined().count(),
            victim.len(),
            congested.len(),
            culprit as f64 / 1e9
        );
    }
}

/// What TCD is for: with RED alone, at the same times, the victim is cut.
#[test]
fn red_takes_the_victim_for_a_culprit() {
    let outcome = common::run(bursts(false, "paper"));
    let ce = count(&sent(&outcome, &two_switches(), "s0->s1"), Codepoint::CongestionExperienced);
    let lowest = rates(&outcome, 0).into_iter().map(|(_, rate)| rate).min().expect("samples");
    println!("CE {ce} at the victim's port, the victim down to {:.1} Gbit/s", lowest as f64 / 1e9);
    assert!(ce > 0 && lowest < LINE * 3 / 4, "{ce} {lowest}");
}

/// Where nothing is ever paused, TCD is RED at departure.
#[test]
fn a_port_that_is_never_paused_marks_like_red() {
    let marks = |with_tcd: bool| {
        let mut config = bursts(with_tcd, "paper");
        config.switch.pfc = None;
        config.switch.mark_at = incast_sim::config::MarkAt::Dequeue;
        // A step needs no luck.
        config.switch.ecn = Ecn::Step { at: Size::Bytes(20_000) };
        let outcome = common::run(config);
        let undetermined = outcome
            .packets
            .iter()
            .filter(|record| record.packet.codepoint == Codepoint::UndeterminedExperienced)
            .count();
        assert_eq!(undetermined, 0);
        (outcome.totals.marks_edge + outcome.totals.marks_fabric, outcome.digest)
    };
    assert!(marks(true).0 > 1_000);
    assert_eq!(marks(true), marks(false));
}

/// A notification says what came since the last one, not what the packet that brings it about carries.
#[test]
fn receivers_merge_marks() {
    let lowest = |mark_every: u64| {
        let topology = common::star(2);
        let mut config = config(topology, "dcqcn", &[("profile", text("paper")), ("cnp_interval", text("20us"))]);
        config.switch.agent =
            AgentParameters::Exerciser(Exerciser { undetermined_every: 1, mark_every, ..Exerciser::default() });
        config.flows = vec![flow(0, 1, 1_000_000)];
        config.probes.rates = Some((Time::from_us(1), 1));
        let outcome = common::run(config);
        common::delivered(&outcome);
        outcome.rates.iter().map(|sample| sample.assigned_bps).min().expect("samples")
    };
    // 20 us are 60 packets of 4 KB at 100 Gbit/s: the first and each 61st or so bring a notification.
    assert_eq!(lowest(0), 100_000_000_000, "UE alone");
    assert_eq!(lowest(150), 50_000_000_000, "one packet of 245 with CE, and not the one");
}

#[test]
fn threads_and_probes_change_nothing() {
    let run = |threads: usize, probes: bool| {
        let mut config = bursts(true, "paper");
        config.threads = threads;
        config.end = Time::from_ms(4);
        if !probes {
            config.probes = incast_sim::config::Probes::default();
        }
        common::run(config)
    };
    let one = run(1, true);
    for (threads, probes) in [(1, false), (2, true), (2, false), (4, false)] {
        assert_eq!(run(threads, probes).digest, one.digest, "{threads} threads, probes {probes}");
    }
}
