//! Homa: the invariants of SIGCOMM 2018, and that whatever is lost, every message arrives.

use crate::common::{self, MTU, class, config, delivered, flow, ideal, link, star, text, took};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, LoadBalancing, Probes},
    outcome::{PacketRecord, Step},
    packet::Kind,
    probe::PacketFilter,
    topology::{LeafSpine, Link, SingleSwitch, Topology},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

fn homa(topology: Topology, parameters: &[(&str, Raw)]) -> Config {
    config(topology, "homa", parameters)
}

fn at(us: u64, spec: FlowSpec) -> FlowSpec {
    FlowSpec { start: Time::from_us(us), ..spec }
}

/// The same with a record of each packet on each link.
fn recorded(mut config: Config) -> Outcome {
    let (from, until) = (Time::ZERO, Time::MAX);
    let filter = PacketFilter { flow: None, ports: Vec::new(), from, until, most: usize::MAX };
    config.probes = Probes { packets: Some(filter), ..Probes::default() };
    common::run(config)
}

/// Packets that a node began to send, in order.
fn sent(outcome: &Outcome, node: u32) -> Vec<&PacketRecord> {
    let all = outcome.packets.iter();
    all.filter(|record| record.node == node && matches!(record.step, Step::Sent { .. })).collect()
}

#[test]
fn alone_a_message_takes_no_longer_than_it_must() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link, fabric_links: 1 };
    for (bytes, slack) in [(1, 0), (700, 0), (u64::from(MTU), 0), (100_000, 0), (5_000_000, 100)] {
        let mut config = homa(fabric.build().expect("a good topology"), &[]);
        config.flows = vec![flow(0, 3, bytes)];
        let outcome = common::run(config);
        delivered(&outcome);
        let record = &outcome.flows[0];
        let late = took(record).saturating_sub(ideal(record));
        assert!(late <= Time::from_ns(slack), "{bytes} B: {late} late");
        assert_eq!((record.retransmitted_bytes, record.timeouts), (0, 0), "{bytes} B");
    }
}

/// The host's own number of bytes that go without a grant: one BDP in whole packets.
fn rtt_bytes(config: &Config) -> u64 {
    let values = config.classes[0].law.values();
    let value = values.iter().find(|(key, _)| *key == "unscheduled").map(|(_, value)| value.clone());
    let Some(Raw::Text(bytes)) = value else { panic!("{value:?}") };
    let bytes = bytes.parse::<incast_units::Bytes>().expect("a size").get();
    bytes.div_ceil(u64::from(MTU)) * u64::from(MTU)
}

#[test]
fn long_messages_that_wait_for_better_ones_have_no_timeouts() {
    let mut config = homa(star(4), &[]);
    config.host.rto_min = Time::from_ms(1);
    config.flows = (1..4).map(|source| flow(source, 0, 50_000_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    for record in &outcome.flows {
        assert_eq!((record.retransmitted_bytes, record.timeouts), (0, 0));
    }
}

#[test]
fn the_shortest_message_gets_the_downlink_and_the_other_resumes() {
    let mut config = homa(star(4), &[]);
    config.flows = vec![flow(1, 0, 20_000_000), at(200, flow(2, 0, 2_000_000)), at(220, flow(3, 0, 60_000))];
    let outcome = common::run(config);
    delivered(&outcome);
    let [long, middle, short] = &outcome.flows[..] else { panic!("three") };
    let slowdown = |record| took(record).as_secs_f64() / ideal(record).as_secs_f64();
    // What had been granted before still comes, at a lower priority.
    assert!(slowdown(short) < 1.15, "{}", slowdown(short));
    assert!(slowdown(middle) < 1.1, "{}", slowdown(middle));
    // The long one has the rest, and nothing is lost of the link.
    let all = ideal(long) + ideal(middle) + ideal(short);
    assert!(took(long) < all && took(long) > ideal(long) + ideal(middle).mul_f64(0.9), "{}", took(long));
    assert_eq!(outcome.totals.drops, 0);
}

#[test]
fn a_sender_sends_its_shortest_message_first() {
    let mut config = homa(star(4), &[]);
    config.flows = vec![flow(0, 1, 20_000_000), at(200, flow(0, 2, 1_000_000)), at(210, flow(0, 3, 4_000))];
    let outcome = common::run(config);
    delivered(&outcome);
    // One packet may be on its way to the wire, 335 ns.
    let late = |index: usize| took(&outcome.flows[index]).saturating_sub(ideal(&outcome.flows[index]));
    assert!(late(2) <= Time::from_ns(340), "{}", late(2));
    assert!(late(1) <= Time::from_us(2), "{}", late(1));
    assert!(late(0) >= ideal(&outcome.flows[1]).mul_f64(0.9), "{}", late(0));
}

/// A busy receiver: messages of many sizes from all others, some of them at once.
fn busy(parameters: &[(&str, Raw)]) -> Config {
    let mut config = homa(star(9), parameters);
    let sizes = [40_000, 700_000, 1_500, 2_000_000, 90_000, 350_000, 10_000_000, 900_000];
    for (index, bytes) in sizes.into_iter().enumerate() {
        let source = index as u32 + 1;
        config.flows.push(at(0, flow(source, 0, bytes)));
        config.flows.push(at(100 + 7 * u64::from(source), flow(source, 0, 3_000_000 / u64::from(source))));
        // The receiver sends as well.
        config.flows.push(at(30, flow(0, source, bytes)));
    }
    config
}

#[test]
fn grants_never_run_more_than_rtt_bytes_ahead() {
    for overcommitment in [1, 2, 7] {
        let config = busy(&[("overcommitment", Raw::Integer(overcommitment))]);
        let ahead = rtt_bytes(&config);
        let outcome = recorded(config);
        delivered(&outcome);
        let mut grants = 0;
        for grant in sent(&outcome, 0).iter().filter(|record| record.packet.kind == Kind::Credit) {
            let packet = &grant.packet;
            let arrived = outcome.packets.iter().filter(|record| {
                let same = (record.packet.source, record.packet.sequence);
                record.packet.kind == Kind::Data
                    && record.node == 9
                    && record.packet.destination == 0
                    && same == (packet.destination, packet.sequence)
                    && matches!(record.step, Step::Sent { arrival: Some(arrival), .. } if arrival <= grant.time)
            });
            let received: u64 = arrived.map(|record| u64::from(record.packet.payload)).sum();
            assert!(packet.value <= received + ahead, "{packet:?}: {received} B have arrived");
            grants += 1;
        }
        assert!(grants > 1000, "{grants}");
    }
}

/// In no port does data go while a control packet waits: data of a lower priority, or any where control has its own.
#[test]
fn control_packets_are_never_behind_data() {
    for control in ["shared", "separate"] {
        let config = busy(&[("control", text(control))]);
        let outcome = recorded(config);
        delivered(&outcome);
        let (mut waiting, mut waited) = (std::collections::BTreeMap::<_, Vec<Time>>::new(), 0);
        for record in &outcome.packets {
            let line = waiting.entry((record.node, record.port)).or_default();
            match (record.packet.kind, record.step) {
                (Kind::Data, Step::Sent { .. }) if line.iter().any(|since| *since < record.time) => {
                    assert!(control == "shared" && record.packet.priority == 0, "{record:?}");
                }
                (Kind::Data, _) => {}
                (_, Step::Queued(_)) => {
                    line.push(record.time);
                    waited += 1;
                }
                (_, Step::Sent { .. }) if !line.is_empty() => drop(line.remove(0)),
                _ => {}
            }
        }
        assert!(waited > 100, "{waited}");
        // Each grant leaves the NIC within a packet's time of the data that it answers, other answers apart.
        let data = outcome.packets.iter().filter(|record| record.packet.kind == Kind::Data);
        let arrivals: std::collections::BTreeSet<Time> = data
            .filter(|record| record.node == 9 && record.packet.destination == 0)
            .filter_map(|record| match record.step {
                Step::Sent { arrival, .. } => arrival,
                _ => None,
            })
            .collect();
        for grant in sent(&outcome, 0).iter().filter(|record| record.packet.kind == Kind::Credit) {
            let answered = arrivals.range(..=grant.time).next_back().expect("it answers something");
            assert!(grant.time - *answered < Time::from_ns(340), "{grant:?}");
        }
    }
}

#[test]
fn unscheduled_data_is_above_scheduled_and_one_message_has_the_lowest_level() {
    let config = busy(&[]);
    let ahead = rtt_bytes(&config);
    let outcome = recorded(config);
    let data = outcome.packets.iter().filter(|record| record.packet.kind == Kind::Data);
    let (blind, granted): (Vec<u8>, Vec<u8>) = data
        .map(|record| (u64::from(record.packet.position) * u64::from(MTU) < ahead, record.packet.priority))
        .fold((Vec::new(), Vec::new()), |(mut blind, mut granted), (is_blind, priority)| {
            if is_blind {
                blind.push(priority)
            } else {
                granted.push(priority)
            }
            (blind, granted)
        });
    // Without traffic to go by: four and four.
    assert_eq!((blind.iter().min(), blind.iter().max()), (Some(&0), Some(&3)));
    assert_eq!((granted.iter().min(), granted.iter().max()), (Some(&4), Some(&7)));
    let mut alone = homa(star(2), &[]);
    alone.flows = vec![flow(0, 1, 3_000_000)];
    let outcome = recorded(alone);
    for record in outcome.packets.iter().filter(|record| record.packet.kind == Kind::Data) {
        let is_blind = u64::from(record.packet.position) * u64::from(MTU) < ahead;
        assert_eq!(record.packet.priority, if is_blind { 3 } else { 7 });
    }
}

#[test]
fn overcommitment_bounds_how_many_messages_are_granted() {
    for overcommitment in [1, 3] {
        let mut config = homa(star(33), &[("overcommitment", Raw::Integer(overcommitment))]);
        // The shortest one first, so that none takes another one's place.
        let bytes = |source: u32| (1_000 + 100 * u64::from(source)) * u64::from(MTU);
        config.flows = (1..9).map(|source| at(source.into(), flow(source, 0, bytes(source)))).collect();
        let outcome = recorded(config);
        delivered(&outcome);
        let (mut active, mut most) = (std::collections::BTreeSet::new(), 0);
        for grant in sent(&outcome, 0).iter().filter(|record| record.packet.kind == Kind::Credit) {
            match grant.packet.value {
                all if all == bytes(grant.packet.destination) => active.remove(&grant.packet.destination),
                _ => active.insert(grant.packet.destination),
            };
            most = most.max(active.len());
        }
        assert_eq!(most, overcommitment as usize);
    }
}

/// At most what came blindly and what is granted waits at the receiver's port, and the link is busy all the time.
#[test]
fn the_queue_at_the_edge_is_bounded_and_never_empty() {
    for overcommitment in [1, 4] {
        let mut config = homa(star(33), &[("overcommitment", Raw::Integer(overcommitment))]);
        let ahead = rtt_bytes(&config);
        config.flows = (1..33).map(|source| flow(source, 0, 2_000_000)).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        let wire = |bytes: u64| bytes / u64::from(MTU) * (u64::from(MTU) + 70);
        let bound = wire(32 * ahead + overcommitment as u64 * ahead);
        assert!(outcome.totals.max_queue_bytes <= bound, "{} of {bound}", outcome.totals.max_queue_bytes);
        let last = outcome.flows.iter().filter_map(|record| record.delivered).max().expect("delivered");
        let wire_time = (32 * 2_000_000 / u64::from(MTU)) * (u64::from(MTU) + common::OVERHEAD) * 80;
        assert!(last < Time::from_ps(wire_time).mul_f64(1.005), "{last}");
    }
}

/// A sender that several receivers grant can serve one of them; the others' links idle, unless they grant others too.
#[test]
fn overcommitment_saves_bandwidth() {
    let took = |overcommitment: i64| {
        let mut config = homa(star(16), &[("overcommitment", Raw::Integer(overcommitment))]);
        for round in 1..8 {
            config.flows.extend((0..16).map(|source| {
                flow(source, (source + round) % 16, 100_000 + u64::from(source * 71 + round * 13) % 97 * 30_000)
            }));
        }
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows.iter().filter_map(|record| record.delivered).max().expect("delivered").as_secs_f64()
    };
    let (one, seven) = (took(1), took(7));
    assert!(one > 1.1 * seven, "{one} {seven}");
}

#[test]
fn a_busy_sender_says_so_and_is_not_asked_again_and_again() {
    // A shorter message keeps the sender of a long one busy for more than two timeouts. The receiver asks, receives BUSY,
    // and has patience for another timeout, though it would ask again after 10 us.
    let parameters = [
        ("resend_timeout", text("100us")),
        ("resend_interval", text("10us")),
        // Enough that the shorter one never has to wait for a grant.
        ("unscheduled", text("200KB")),
    ];
    let mut config = homa(star(3), &parameters);
    config.flows = vec![flow(1, 0, 9_000_000), at(300, flow(1, 2, 3_000_000))];
    let outcome = recorded(config);
    delivered(&outcome);
    let busy = sent(&outcome, 1).iter().filter(|record| record.packet.kind == Kind::Signal).count();
    assert_eq!(busy, 2);
    // Nothing was lost, and of what was asked for nothing had been sent.
    assert_eq!(outcome.flows.iter().map(|record| record.retransmitted_bytes).sum::<u64>(), 0);
}

#[test]
fn what_is_sent_again_has_the_priority_of_the_resend_or_of_its_place() {
    for (value, expected) in [("resend", 7), ("highest", 0), ("original", 3)] {
        let mut config = homa(star(2), &[("resend_priority", text(value)), ("resend_timeout", text("20us"))]);
        let event = |ns, up| common::link_event(&config.topology, Time::from_ns(ns), "h1-s0", up);
        // A few of the packets that are sent blindly.
        config.link_events = vec![event(2_500, false), event(3_500, true)];
        config.flows = vec![flow(0, 1, 30_000)];
        let outcome = recorded(config);
        delivered(&outcome);
        let mut seen = std::collections::BTreeSet::new();
        let data = sent(&outcome, 0).into_iter().filter(|record| record.packet.kind == Kind::Data);
        let again: Vec<u8> =
            data.filter(|record| !seen.insert(record.packet.position)).map(|record| record.packet.priority).collect();
        assert!(!again.is_empty() && again.iter().all(|priority| *priority == expected), "{again:?}");
    }
}

#[test]
fn a_message_of_which_all_is_lost_is_announced() {
    let mut config = homa(star(2), &[]);
    let event = |us, up| common::link_event(&config.topology, Time::from_us(us), "h1-s0", up);
    config.link_events = vec![event(0, false), event(50, true)];
    config.host.rto_min = Time::from_us(400);
    config.flows = vec![flow(0, 1, 30_000)];
    let outcome = common::run(config);
    delivered(&outcome);
    // One timeout of the sender, and one round trip more.
    let record = &outcome.flows[0];
    assert_eq!(record.timeouts, 1);
    assert!(took(record) < Time::from_us(420), "{}", took(record));
}

/// Sparse, so that each case is small.
fn lossy(loss: f64, seed: u64, sizes: &[u64], buffer: u64, own: bool) -> Outcome {
    let lossy = Link { loss, ..link(100, Time::from_us(1)) };
    let topology = SingleSwitch { hosts: 5, link: lossy }.build().expect("a good topology");
    let control = if own { "separate" } else { "shared" };
    let resends = if own { "all-ranges" } else { "first-range" };
    let parameters = [("resend_timeout", text("50us")), ("control", text(control)), ("resends", text(resends))];
    let mut config = homa(topology, &parameters);
    config.switch.buffer = Buffer::PerPort { bytes: buffer };
    config.host.rto_min = Time::from_us(100);
    config.end = Time::from_ms(10_000);
    config.seed = seed;
    for (index, bytes) in sizes.iter().enumerate() {
        config.flows.push(at(index as u64 % 5, flow(1 + index as u32 % 4, 0, *bytes)));
    }
    common::run(config)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Data, grants, RESENDs, BUSYs, announcements and acknowledgements may all be lost.
    #[test]
    fn whatever_is_lost_every_message_arrives(
        loss in 0.0f64..0.3, seed in any::<u64>(), own in any::<bool>(), buffer in 10_000u64..200_000,
        sizes in prop::collection::vec(1u64..400_000, 1..12),
    ) {
        let outcome = lossy(loss, seed, &sizes, buffer, own);
        prop_assert!(outcome.complete, "{:?}", outcome.flows);
        delivered(&outcome);
    }
}

#[test]
fn spraying_changes_no_promise() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 3, spines: 4, hosts_per_leaf: 4, host_link: link, fabric_link: link, fabric_links: 1 };
    let mut config = homa(fabric.build().expect("a good topology"), &[]);
    config.switch.load_balancing = LoadBalancing::Spray;
    config.flows = (1..12).map(|source| flow(source, 0, 500_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    assert!(outcome.flows.iter().any(|record| record.reordered_packets > 0));
    assert_eq!(outcome.flows.iter().map(|record| record.retransmitted_bytes).sum::<u64>(), 0);
}

/// 500 senders, 100 KB each, 1 Gbit/s: what is sent blindly is lost by the hundred. With a packet each, as messages of an
/// incast have it, far less is lost. What is asked for again is asked for as the link can take it, also where a buffer of
/// 57 packets loses nearly all, so that it is not lost again and again.
#[test]
fn a_large_incast_completes() {
    let run = |incast_control: &str, bytes: u64, rto_min: Time| {
        let link = Link { rate: Rate::from_gbps(1), delay: Time::from_us(10), loss: 0.0 };
        let topology = SingleSwitch { hosts: 501, link }.build().expect("a good topology");
        let mut config = homa(topology, &[("incast_control", text(incast_control))]);
        config.switch.buffer = Buffer::PerPort { bytes };
        config.host.rto_min = rto_min;
        config.end = Time::from_ms(60_000);
        config.flows = (1..501).map(|source| flow(source, 0, 100_000)).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        let last = outcome.flows.iter().filter_map(|record| record.delivered).max().expect("delivered");
        let goodput = 500.0 * 100_000.0 * 8.0 / last.as_secs_f64() / 1e9;
        println!("{incast_control}, {bytes} bytes: goodput {goodput:.3}, {} drops", outcome.totals.drops);
        (goodput, outcome.totals.drops)
    };
    let (off, marked) = (run("off", 300_000, Time::from_ms(5)), run("marked", 300_000, Time::from_ms(5)));
    assert!(off.0 > 0.8 && marked.0 > 0.8 && 2 * marked.1 < off.1, "{off:?} {marked:?}");
    let small = run("off", 86_000, Time::from_ms(1));
    assert!(small.0 > 0.85 && small.1 < 20_000, "{small:?}");
}

/// A class of an incast, of which a packet of each message is unscheduled, beside another class to the same host: they
/// share a receiver, for which the shorter message is the only active one. Two receivers grant a message each.
#[test]
fn marked_and_other_messages_have_one_receiver() {
    let run = |receivers: u8| {
        let mut config = homa(star(3), &[("overcommitment", Raw::Integer(1)), ("incast_control", text("off"))]);
        let given = [("overcommitment", Raw::Integer(1)), ("incast_control", text("marked"))];
        let mut marked = class(&config.topology, MTU, "homa", &given);
        assert_eq!(marked.law.receiver_values(), config.classes[0].law.receiver_values());
        marked.scheduler = Some(receivers - 1);
        if receivers == 2 {
            let path = incast_sim::base_path(&config.topology, MTU, common::info("homa").framing);
            config.host.schedulers.push(marked.law.receiver(&path));
        }
        config.classes.push(marked);
        config.flows = vec![flow(1, 0, 2_000_000), flow(2, 0, 2_500_000)];
        config.flows[1].class = 1;
        let outcome = common::run(config);
        delivered(&outcome);
        let shorter = &outcome.flows[0];
        let slowdown = took(shorter).as_us_f64() / ideal(shorter).as_us_f64();
        println!("receivers: {receivers}, slowdown of the shorter message: {slowdown:.2}");
        slowdown
    };
    let (one, two) = (run(1), run(2));
    assert!(one < 1.1 && two > 1.7, "{one} {two}");
}

/// The host's rate decides how much it sends blindly, and the receivers' how fast it takes data: neither knows the
/// other's.
#[test]
fn hosts_of_several_rates_understand_each_other() {
    let mut config = homa(common::two_rates(), &[]);
    config.flows = common::between_rates();
    let outcome = common::run(config);
    delivered(&outcome);
    for record in &outcome.flows {
        let slowdown = took(record).as_secs_f64() / ideal(record).as_secs_f64();
        let (from, to, bytes) = (record.source, record.destination, record.bytes);
        println!("{from} to {to}, {bytes} B: {slowdown:.2}, {} again", record.retransmitted_bytes);
        assert!(slowdown < 1.5 && record.timeouts == 0, "{record:?}: {slowdown}");
    }
}
