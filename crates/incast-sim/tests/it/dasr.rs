//! DASR of Blitz: who is assigned what and when, how long incasts take, and that whatever is lost, every flow arrives.

use crate::common::{self, MTU, class, config, delivered, flow, ideal, link, star, text, took};
use incast_cc::parameters::Raw;
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, Ecn, LoadBalancing, Pfc, Size, Threshold},
    probe::RateSample,
    topology::{LeafSpine, Link, SingleSwitch, Topology},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn dasr(topology: Topology, parameters: &[(&str, Raw)]) -> Config {
    config(topology, "dasr", parameters)
}

fn at(time: Time, spec: FlowSpec) -> FlowSpec {
    FlowSpec { start: time, ..spec }
}

fn sampled(mut config: Config, every: Time) -> Outcome {
    config.probes.rates = Some((every, 1));
    common::run(config)
}

/// Rates assigned at a time, in Gbit/s, by sender.
fn assigned(outcome: &Outcome, time: Time) -> Vec<(u32, f64)> {
    // They are in order of time.
    let first = outcome.rates.partition_point(|sample| sample.time < time);
    let then = outcome.rates[first..].iter().take_while(|sample| sample.time == time);
    then.map(|sample| (sample.source, sample.assigned_bps as f64 / 1e9)).collect()
}

fn jain(rates: &[(u32, f64)]) -> f64 {
    let sum: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let squares: f64 = rates.iter().map(|(_, rate)| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

/// When each sender's first share was assigned: then its first acknowledgement was there.
fn first_feedback(outcome: &Outcome) -> BTreeMap<u32, Time> {
    let mut informed = BTreeMap::new();
    let told = |sample: &&RateSample| sample.estimate.is_some();
    for sample in outcome.rates.iter().filter(told) {
        informed.entry(sample.source).or_insert(sample.time);
    }
    informed
}

fn base_rtt(config: &Config) -> Time {
    incast_sim::base_path(&config.topology, MTU, common::info("dasr").framing).base_rtt
}

const STEP: Time = Time::from_ns(100);

/// Rounded up to a sample.
fn sample_after(time: Time) -> Time {
    Time::from_ps(time.ps().div_ceil(STEP.ps()) * STEP.ps())
}

/// Time of a full packet, and of a share that is told, on a link of 100 Gbit/s.
fn frames(config: &Config) -> (Time, Time) {
    let path = incast_sim::base_path(&config.topology, MTU, common::info("dasr").framing);
    let time = |bytes: u32| path.rate.time_of(incast_units::Bytes::new(bytes.into()));
    (time(path.wire_mss), time(path.wire_mss - path.mss + 4))
}

/// From a change among n senders to the last share that is told of it, if others were told of the one before just then
/// (docs/blitz.md, receiver). To travel comes on top.
fn telling(config: &Config, senders: u32) -> Time {
    let all = frames(config).1 * u64::from(senders);
    (base_rtt(config) / 2).max(all * 10) + all
}

fn is_fair(rate: f64, senders: u32) -> bool {
    (rate * f64::from(senders) / 100.0 - 1.0).abs() < 0.01
}

/// What a sender is assigned at a time, in Gbit/s.
fn assigned_to(outcome: &Outcome, source: u32, time: Time) -> f64 {
    let rates = assigned(outcome, time);
    rates.iter().find(|(other, _)| *other == source).expect("it sends").1
}

/// One RTT after the last of them has its first acknowledgement, n senders that join at once are assigned C/n to 1%;
/// and so are those that are left, one RTT after any of them leaves.
#[test]
fn shares_are_assigned_within_an_rtt_of_joining_and_of_leaving() {
    for (senders, alone) in [(2u32, 2), (4, 4), (8, 8), (16, 16), (64, 62)] {
        let mut config = dasr(star(senders + 1), &[]);
        let rtt = base_rtt(&config);
        // Each leaves at another time, RTTs apart; the queue of the first RTT may bring the last packets of two
        // together.
        let bytes = |sender: u32| 400_000 + 60_000 * u64::from(sender + u32::from(sender == senders));
        config.flows = (1..=senders).map(|source| flow(source, 0, bytes(source))).collect();
        let ((packet, _), telling) = (frames(&config), telling(&config, senders));
        let outcome = sampled(config, STEP);
        delivered(&outcome);
        let informed = first_feedback(&outcome);
        assert_eq!(informed.len(), senders as usize);
        let joined = informed.values().copied().max().expect("senders");
        let mut checked = 0;
        let mut check = |since: Time, left: u32| {
            let time = sample_after(since + rtt);
            let rates = assigned(&outcome, time);
            // Who has sent all of it keeps its rate until it knows that it is done.
            let rates: Vec<_> = rates
                .into_iter()
                .filter(|(source, _)| {
                    let record = outcome.flows.iter().find(|record| record.source == *source).expect("it sends");
                    record.delivered.expect("delivered") > time
                })
                .collect();
            if rates.len() != left as usize {
                println!("{senders} senders: at {time} {} in place of {left}", rates.len());
                return;
            }
            for (source, rate) in &rates {
                assert!(is_fair(*rate, left), "{senders} senders, {left} left at {time}: {source} has {rate}");
            }
            assert!(jain(&rates) >= 0.999);
            checked += 1;
        };
        check(joined, senders);
        let mut ends: Vec<Time> = outcome.flows.iter().map(|record| record.delivered.expect("it is")).collect();
        ends.sort_unstable();
        for (index, end) in ends.iter().enumerate().take(ends.len() - 1) {
            check(*end, senders - 1 - index as u32);
        }
        println!("{senders} senders: joined at {joined}, RTT {rtt}, {checked} checks");
        assert_eq!(checked, alone, "{senders} senders");

        // From its own first acknowledgement: that tells of those that have come, and the first packets of the others
        // take their time.
        let mut order: Vec<(Time, u32)> = informed.iter().map(|(source, time)| (*time, *source)).collect();
        order.sort_unstable();
        for (before, (first, source)) in order.iter().enumerate() {
            let count = before as u32 + 1;
            let at_once = assigned_to(&outcome, *source, *first);
            assert!(is_fair(at_once, count), "{senders} senders: number {count} starts with {at_once}");
            let others = packet * u64::from(senders - count);
            let later = assigned_to(&outcome, *source, sample_after(*first + others + telling));
            assert!(is_fair(later, senders), "{senders} senders: number {count} has {later}");
            // So an RTT is not enough for the first ones, if there are many.
            if others > rtt {
                let then = assigned_to(&outcome, *source, sample_after(*first + rtt));
                assert!(then > 101.0 / f64::from(senders), "{senders} senders: number {count} has {then}");
            }
        }
    }
}

/// Each sender has C/n with its own first acknowledgement, where receivers are told how many there will be.
#[test]
fn with_the_look_ahead_the_first_acknowledgement_is_enough() {
    for senders in [2u32, 8, 64] {
        // 64 first packets take longer than four RTTs to arrive.
        let parameters = [("look_ahead", Raw::Flag(true)), ("look_ahead_for", text("100us"))];
        let mut config = dasr(star(senders + 1), &parameters);
        let spec = |source| FlowSpec { request: 7, ..flow(source, 0, 800_000) };
        config.flows = (1..=senders).map(spec).collect();
        let outcome = sampled(config, STEP);
        delivered(&outcome);
        let informed = first_feedback(&outcome);
        assert_eq!(informed.len(), senders as usize);
        for (source, first) in informed {
            let rate = assigned_to(&outcome, source, first);
            assert!(is_fair(rate, senders), "{senders} senders: {source} has {rate}");
        }
    }
}

/// While others send: one RTT after its first acknowledgement all have C/n, it and they.
#[test]
fn one_that_joins_later_has_its_share_within_an_rtt_and_so_have_the_others() {
    for senders in [2u32, 4, 8, 16, 64] {
        let mut config = dasr(star(senders + 1), &[]);
        let (rtt, start) = (base_rtt(&config), Time::from_us(100));
        config.flows = (1..senders).map(|source| flow(source, 0, 2_000_000)).collect();
        config.flows.push(at(start, flow(senders, 0, 2_000_000)));
        let outcome = sampled(config, STEP);
        delivered(&outcome);
        let informed = first_feedback(&outcome)[&senders];
        for (time, senders) in [(start - STEP, senders - 1), (sample_after(informed + rtt), senders)] {
            let rates = assigned(&outcome, time);
            assert_eq!(rates.len(), senders as usize, "at {time}");
            let first_end = outcome.flows.iter().filter_map(|record| record.delivered).min();
            assert!(first_end.expect("delivered") > time);
            assert!(rates.iter().all(|(_, rate)| is_fair(*rate, senders)), "{senders} at {time}: {rates:?}");
        }
    }
}

/// Two of 66 leave within an RTT: those that are left are told of the second one when telling of the first has taken no
/// more than its part of the link.
#[test]
fn of_a_second_change_soon_after_the_first_all_hear_within_the_bound_of_telling() {
    const LEFT: u32 = 64;
    let all = LEFT + 2;
    // Each sends its share from the start, so that all do the same all the time.
    let parameters = [
        ("look_ahead", Raw::Flag(true)),
        ("look_ahead_for", text("100us")),
        ("initial", Raw::Float(1.0 / f64::from(all))),
    ];
    let mut config = dasr(star(all + 1), &parameters);
    let (rtt, bound) = (base_rtt(&config), base_rtt(&config) / 2 + telling(&config, LEFT + 1));
    let bytes = |source: u32| if source > LEFT { 160_000 } else { 400_000 };
    let spec = |source| FlowSpec { request: 7, ..flow(source, 0, bytes(source)) };
    config.flows = (1..=all).map(spec).collect();
    let outcome = sampled(config, STEP);
    delivered(&outcome);
    let mut ends: Vec<Time> = outcome.flows.iter().filter_map(|record| record.delivered).collect();
    ends.sort_unstable();
    let (first, second, third) = (ends[0], ends[1], ends[2]);
    assert!(second - first < rtt && third > second + bound, "{first}, {second}, {third}");
    // C/65 is not C/64 to 1%.
    let knows = |time: Time| {
        let rates = assigned(&outcome, time);
        let left = rates.iter().filter(|(source, _)| *source <= LEFT);
        left.filter(|(_, rate)| is_fair(*rate, LEFT)).count() == LEFT as usize
    };
    let mut time = sample_after(second);
    while !knows(time) {
        time += STEP;
        assert!(time <= sample_after(second + bound), "not within {bound} of {second}");
    }
    println!("{} after the first and {} after the second, within {bound}; RTT {rtt}", time - first, time - second);
    // More than an RTT.
    assert!(time - second > rtt);
}

/// Literally, by acknowledgements alone: then it takes as long as the next one, which for n senders comes n packets
/// later.
#[test]
fn by_acknowledgements_alone_the_next_one_tells() {
    let mut config = dasr(star(17), &[("advertise", text("acks"))]);
    let rtt = base_rtt(&config);
    config.flows = (1..17).map(|source| flow(source, 0, 2_000_000)).collect();
    let outcome = sampled(config, STEP);
    delivered(&outcome);
    let joined = first_feedback(&outcome).into_values().max().expect("senders");
    let packet = Rate::from_gbps(100).time_of(incast_units::Bytes::new(4_200));
    let rates = assigned(&outcome, sample_after(joined + rtt.max(packet * 16)));
    assert_eq!(rates.len(), 16);
    assert!(rates.iter().all(|(_, rate)| (rate / 6.25 - 1.0).abs() < 0.01), "{rates:?}");
}

/// The poster's case: 16 senders of 256 KB beside one that always sends, at 56 Gbit/s.
fn poster(parameters: &[(&str, Raw)], seed: u64) -> Outcome {
    let link = Link { rate: Rate::from_gbps(56), delay: Time::from_us(1), loss: 0.0 };
    let topology = SingleSwitch { hosts: 20, link }.build().expect("a good topology");
    let mut config = dasr(topology, parameters);
    config.switch.ecn = Ecn::Red { min: Size::Bytes(7_000), max: Size::Bytes(280_000), p: 0.01 };
    config.seed = seed;
    config.flows = vec![flow(17, 0, 40_000_000)];
    let mut random = incast_sim::engine::random::Stream::new(seed, 7, 7);
    for round in 0..4u64 {
        for source in 1..17 {
            // Of up to 1 us: that all are at once, but none is always the first.
            let start = Time::from_us(100 + 1_000 * round) + Time::from_ps(random.below(1_000_000));
            config.flows.push(at(start, flow(source, 0, 256_000)));
        }
    }
    common::run(config)
}

#[test]
fn an_incast_takes_as_long_as_shared_processing() {
    let outcome = poster(&[], 1);
    delivered(&outcome);
    let mut times: Vec<f64> =
        outcome.flows.iter().filter(|record| record.source != 17).map(|it| took(it).as_us_f64()).collect();
    times.sort_by(f64::total_cmp);
    let (median, tail) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    // 17 of 256 KB in turn, headers apart.
    let ideal = 17.0 * 256_000.0 * 8.0 / 56e3;
    println!("median {median:.1} us, p99 {tail:.1} us, ideal {ideal:.1} us");
    assert!((median / ideal - 1.0).abs() < 0.1, "{median} and {ideal}");
    assert!(tail / median <= 1.1, "{tail} and {median}");
    // No mark of the port to the receiver has made anybody cut.
    assert!(outcome.totals.marks_edge > 0 && outcome.totals.marks_fabric == 0, "{:?}", outcome.totals);
}

/// Two flows of one host have what another host has with one.
#[test]
fn flows_of_one_host_share_what_it_has() {
    for (counts, expected) in [("hosts", [25.0, 25.0, 50.0]), ("flows", [33.3, 33.3, 33.3])] {
        let mut config = dasr(star(3), &[("count", text(counts))]);
        config.flows = vec![flow(1, 0, 3_000_000), flow(1, 0, 3_000_000), flow(2, 0, 3_000_000)];
        let outcome = sampled(config, Time::from_us(50));
        delivered(&outcome);
        let rates = assigned(&outcome, Time::from_us(100));
        for ((_, rate), expected) in rates.iter().zip(expected) {
            assert!((rate / expected - 1.0).abs() < 0.01, "{counts}: {rates:?}");
        }
    }
}

/// h1 sends to h0 and to three others, so that it has a quarter of its link for each; h2 can have the rest of h0's.
fn crowded(water_filling: bool) -> Outcome {
    let mut config = dasr(star(6), &[("water_filling", Raw::Flag(water_filling))]);
    config.flows = vec![flow(1, 0, 4_000_000), flow(2, 0, 8_000_000)];
    config.flows.extend((3..6).map(|other| flow(1, other, 4_000_000)));
    sampled(config, Time::from_us(20))
}

#[test]
fn what_a_sender_with_several_receivers_leaves_others_take() {
    for (water_filling, expected) in [(true, 75.0), (false, 50.0)] {
        let outcome = crowded(water_filling);
        delivered(&outcome);
        let samples = outcome
            .rates
            .iter()
            .filter(|sample| sample.source == 2 && (Time::from_us(100)..Time::from_us(1_000)).contains(&sample.time));
        let rates: Vec<f64> = samples.map(|sample| sample.assigned_bps as f64 / 1e9).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        println!("{water_filling}: h2 has {mean:.1} Gbit/s");
        assert!((mean / expected - 1.0).abs() < 0.05, "{water_filling}: {mean}, {rates:?}");
        // The uplink of h1 is full and shared evenly.
        let others: Vec<f64> =
            outcome.flows.iter().filter(|it| it.source == 1).map(|it| took(it).as_us_f64()).collect();
        let alone = 4.0 * 4_000_000.0 * 8.0 / 100e3;
        assert!(others.iter().all(|it| (it / alone - 1.0).abs() < 0.08), "{others:?} and {alone}");
    }
}

/// Of a class with twice the weight, beside one of the same law: they share their receivers.
#[test]
fn shares_are_by_weight() {
    let mut config = dasr(star(4), &[]);
    let path = incast_sim::base_path(&config.topology, MTU, common::info("dasr").framing);
    let mut heavy = class(&config.topology, MTU, "dasr", &[("weight", Raw::Integer(2))]);
    heavy.scheduler = Some(0);
    assert_eq!(heavy.law.receiver_values(), config.classes[0].law.receiver_values());
    config.classes.push(heavy);
    config.flows = (1..4).map(|source| flow(source, 0, 3_000_000)).collect();
    config.flows[2].class = 1;
    let outcome = sampled(config, Time::from_us(50));
    delivered(&outcome);
    let rates = assigned(&outcome, Time::from_us(100));
    for ((_, rate), expected) in rates.iter().zip([25.0, 25.0, 50.0]) {
        assert!((rate / expected - 1.0).abs() < 0.01, "{rates:?} after {}", path.base_rtt);
    }
}

/// With the look-ahead the first acknowledgement says how many there will be.
#[test]
fn the_first_acknowledgement_tells_of_those_to_come() {
    let least = |look_ahead: bool| {
        let mut config = dasr(star(17), &[("look_ahead", Raw::Flag(look_ahead))]);
        // One each 500 ns: an RTT has gone by before the last one starts.
        let start = |source: u32| Time::from_ns(500) * u64::from(source);
        let spec = |source| FlowSpec { request: 7, start: start(source), ..flow(source, 0, 500_000) };
        config.flows = (1..17).map(spec).collect();
        let outcome = sampled(config, STEP);
        delivered(&outcome);
        let informed = first_feedback(&outcome)[&1];
        let first = assigned(&outcome, informed);
        first.iter().find(|(source, _)| *source == 1).expect("it sends").1
    };
    let (with, without) = (least(true), least(false));
    println!("first share {with} Gbit/s, without {without}");
    assert!((with / 6.25 - 1.0).abs() < 0.01, "{with}");
    assert!(without > 12.0, "{without}");
}

/// Two racks of eight with half the bandwidth between them: the fabric is what is congested.
fn oversubscribed(parameters: &[(&str, Raw)]) -> Config {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines: 4, hosts_per_leaf: 8, host_link: link, fabric_link: link, fabric_links: 1 };
    let mut config = dasr(fabric.build().expect("a good topology"), parameters);
    config.switch.ecn = Ecn::Red { min: Size::Bytes(12_500), max: Size::Bytes(500_000), p: 0.01 };
    config.flows = (0..8).map(|host| flow(host, host + 8, 4_000_000)).collect();
    config
}

#[test]
fn dcqcn_heeds_the_marks_that_it_is_to_heed() {
    // In the fabric.
    let cuts = |outcome: &Outcome| outcome.rates.iter().filter(|it| it.assigned_bps < 99_000_000_000).count();
    for (fallback, falls_back) in [("fabric", true), ("all", true), ("off", false)] {
        let outcome = sampled(oversubscribed(&[("fallback", text(fallback))]), Time::from_us(10));
        delivered(&outcome);
        let totals = &outcome.totals;
        println!("{fallback}: {} marks in the fabric, {} at the edge", totals.marks_fabric, totals.marks_edge);
        assert!(totals.marks_fabric > 0 && totals.marks_edge == 0, "{fallback}: {totals:?}");
        assert_eq!(cuts(&outcome) > 0, falls_back, "{fallback}");
    }
    // At the receiver: the ports mark as much, and only "all" heeds it.
    let mut marks = Vec::new();
    for (fallback, falls_back) in [("fabric", false), ("all", true), ("off", false)] {
        let mut config = dasr(star(9), &[("fallback", text(fallback))]);
        config.switch.ecn = Ecn::Red { min: Size::Bytes(12_500), max: Size::Bytes(500_000), p: 0.01 };
        config.flows = (1..9).map(|source| flow(source, 0, 2_000_000)).collect();
        let outcome = sampled(config, Time::from_us(10));
        delivered(&outcome);
        let totals = &outcome.totals;
        println!("{fallback}: {} marks in the fabric, {} at the edge", totals.marks_fabric, totals.marks_edge);
        assert!(totals.marks_edge > 0 && totals.marks_fabric == 0, "{fallback}: {totals:?}");
        let later = outcome.rates.iter().filter(|it| it.time > Time::from_us(60));
        let below = later.filter(|it| it.assigned_bps < 12_300_000_000).count();
        assert_eq!(below > 0, falls_back, "{fallback}");
        marks.push(totals.marks_edge);
    }
    assert_eq!(marks[0], marks[2], "what is marked does not depend on who heeds it");
}

/// A packet that was marked in the fabric stays so at a congested port to its receiver.
#[test]
fn what_the_fabric_has_marked_stays_marked() {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 8, host_link: link, fabric_link: link, fabric_links: 1 };
    let mut config = dasr(fabric.build().expect("a good topology"), &[]);
    config.switch.ecn = Ecn::Step { at: Size::Bytes(50_000) };
    // Four share a link between switches, and four are beside the receiver.
    config.flows = (0..4).chain(12..16).map(|source| flow(source, 8, 400_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    let marked = |from: std::ops::Range<u32>| -> u64 {
        let records = outcome.flows.iter().filter(|record| from.contains(&record.source));
        records.map(|record| u64::from(record.marked_packets)).sum()
    };
    let totals = &outcome.totals;
    let (far, near) = (marked(0..8), marked(8..16));
    println!("{far} of {} marked in the fabric, {near} beside {} at the edge", totals.marks_fabric, totals.marks_edge);
    assert!(totals.marks_fabric > 0 && totals.marks_edge > 0, "{totals:?}");
    assert_eq!((far, near), (totals.marks_fabric, 0));
}

/// Other laws see CE at a port to a receiver as ever.
#[test]
fn other_classes_are_marked_as_ever() {
    let marked = |law: &str| {
        let mut config = dasr(star(9), &[]);
        config.classes.push(class(&config.topology, MTU, law, &[]));
        config.switch.ecn = Ecn::Step { at: Size::Bytes(50_000) };
        config.flows = (1..9).map(|source| flow(source, 0, 400_000)).collect();
        config.flows.iter_mut().skip(4).for_each(|flow| flow.class = 1);
        let outcome = common::run(config);
        delivered(&outcome);
        let of = |range: std::ops::Range<usize>| -> u32 {
            outcome.flows[range].iter().map(|record| record.marked_packets).sum()
        };
        (of(0..4), of(4..8))
    };
    for law in ["dctcp", "dcqcn"] {
        let (own, other) = marked(law);
        assert!(own == 0 && other > 0, "{law}: {own} CE of DASR, {other} of {law}");
    }
}

fn lossy(loss: f64, seed: u64, sizes: &[u64], buffer: Option<u64>, parameters: &[(&str, Raw)]) -> Outcome {
    let lossy = Link { loss, ..link(100, Time::from_us(1)) };
    let topology = SingleSwitch { hosts: 5, link: lossy }.build().expect("a good topology");
    let mut config = dasr(topology, parameters);
    config.switch.buffer = buffer.map_or(Buffer::Unlimited, |bytes| Buffer::PerPort { bytes });
    config.host.rto_min = Time::from_us(100);
    config.end = Time::from_ms(20_000);
    config.seed = seed;
    for (index, bytes) in sizes.iter().enumerate() {
        let spec = FlowSpec { request: 3, ..flow(1 + index as u32 % 4, 0, *bytes) };
        config.flows.push(at(Time::from_us(index as u64 % 5), spec));
    }
    common::run(config)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Data, acknowledgements and shares may all be lost.
    #[test]
    fn whatever_is_lost_every_flow_arrives(
        loss in 0.0f64..0.3, seed in any::<u64>(), buffer in prop::option::of(10_000u64..200_000),
        looks in any::<bool>(), recent in any::<bool>(), sizes in prop::collection::vec(1u64..150_000, 1..12),
    ) {
        let active = text(if recent { "recent" } else { "open" });
        let parameters = [("look_ahead", Raw::Flag(looks)), ("water_filling", Raw::Flag(looks)), ("active", active)];
        let outcome = lossy(loss, seed, &sizes, buffer, &parameters);
        prop_assert!(outcome.complete, "{:?}", outcome.flows);
        delivered(&outcome);
    }
}

#[test]
fn under_flow_control_nothing_is_lost_and_shares_are_the_same() {
    let run = |pfc: bool| {
        let mut config = dasr(star(33), &[]);
        let xoff = Size::Bytes(30_000);
        config.switch.pfc = pfc.then(|| Pfc {
            deadlock_after: None,
            ..Pfc::new(Threshold::Static { xoff, xon: Some(Size::Bytes(20_000)) })
        });
        config.flows = (1..33).map(|source| flow(source, 0, 300_000)).collect();
        let outcome = common::run(config);
        delivered(&outcome);
        assert_eq!((outcome.totals.drops, outcome.totals.pauses > 0), (0, pfc), "{:?}", outcome.totals);
        let last = outcome.flows.iter().map(took).max().expect("flows").as_us_f64();
        println!("PFC {pfc}: {last:.1} us, longest queue {} B", outcome.totals.max_queue_bytes);
        last
    };
    let (with, without) = (run(true), run(false));
    assert!((with / without - 1.0).abs() < 0.03, "{with} and {without}");
}

/// Shares are those of the receiver's link, and no more than the sender's own.
#[test]
fn hosts_of_several_rates_understand_each_other() {
    let mut config = dasr(common::two_rates(), &[]);
    config.flows = common::between_rates();
    let outcome = common::run(config);
    delivered(&outcome);
    for record in &outcome.flows {
        let slowdown = took(record).as_secs_f64() / ideal(record).as_secs_f64();
        assert!(slowdown < 1.02 && record.timeouts == 0, "{record:?}: {slowdown}");
    }
    // Two fast ones and a slow one to a fast one; two fast ones to a slow one.
    for (destination, sources, expected) in [(0, &[1u32, 2, 4][..], &[45.0, 45.0, 10.0][..]), (4, &[0, 1], &[5.0, 5.0])]
    {
        let mut config = dasr(common::two_rates(), &[("water_filling", Raw::Flag(true))]);
        config.flows = sources.iter().map(|source| flow(*source, destination, 4_000_000)).collect();
        let outcome = sampled(config, Time::from_us(50));
        delivered(&outcome);
        let rates = assigned(&outcome, Time::from_us(200));
        for ((source, rate), expected) in rates.iter().zip(expected) {
            // The slow sender uses less than its share, which the others have.
            let rate = if *source == 4 { rate.min(10.0) } else { *rate };
            assert!((rate / expected - 1.0).abs() < 0.03, "to {destination}: {rates:?}");
        }
    }
}

/// Beside a class that knows nothing of receivers: both arrive.
#[test]
fn a_class_of_another_law_goes_beside_it() {
    for law in ["dctcp", "dcqcn", "swift"] {
        let mut config = dasr(star(9), &[]);
        config.classes.push(class(&config.topology, MTU, law, &[]));
        config.switch.buffer = Buffer::PerPort { bytes: 400_000 };
        config.switch.ecn = Ecn::Red { min: Size::Bytes(12_500), max: Size::Bytes(100_000), p: 0.1 };
        config.host.rto_min = Time::from_us(300);
        config.flows = (1..9).map(|source| flow(source, 0, 500_000)).collect();
        config.flows.iter_mut().skip(5).for_each(|flow| flow.class = 1);
        let outcome = common::run(config);
        delivered(&outcome);
    }
}

#[test]
fn spraying_and_a_large_incast_lose_no_flow() {
    let link100 = link(100, Time::from_us(1));
    let fabric = LeafSpine {
        leaves: 3,
        spines: 4,
        hosts_per_leaf: 4,
        host_link: link100,
        fabric_link: link100,
        fabric_links: 1,
    };
    let mut config = dasr(fabric.build().expect("a good topology"), &[]);
    config.switch.load_balancing = LoadBalancing::Spray;
    config.flows = (1..12).map(|source| flow(source, 0, 500_000)).collect();
    delivered(&common::run(config));

    let link = Link { rate: Rate::from_gbps(10), delay: Time::from_us(2), loss: 0.0 };
    let topology = SingleSwitch { hosts: 301, link }.build().expect("a good topology");
    let mut config = dasr(topology, &[]);
    // The first RTT of all is 3 ms of the receiver's link.
    config.host.rto_min = Time::from_ms(10);
    config.flows = (1..301).map(|source| flow(source, 0, 60_000)).collect();
    let outcome = common::run(config);
    delivered(&outcome);
    let last = outcome.flows.iter().filter_map(|record| record.delivered).max().expect("delivered");
    let goodput = 300.0 * 60_000.0 * 8.0 / last.as_secs_f64() / 1e9;
    println!("goodput {goodput:.2} of 10 Gbit/s");
    assert!(goodput > 9.0, "{goodput}");
}

/// Shares of a receiver's link, and the acknowledgements of what it sends itself, are no more than the link, once what a
/// change has set off is over: with flows of several sizes, joins, leaves, a standing queue, and hosts that both send and
/// receive.
fn shares_fit(senders: u32, sizes: &[u64], reverse: bool, apart: Time, seed: u64) -> Result<u32, TestCaseError> {
    let mut config = dasr(star(senders + 1), &[]);
    config.seed = seed;
    config.switch.pfc =
        Some(Pfc::new(Threshold::Static { xoff: Size::Bytes(400_000), xon: Some(Size::Bytes(380_000)) }));
    let size = |number: u32| sizes[number as usize % sizes.len()];
    let start = |number: u32| apart * u64::from(number);
    config.flows = (1..=senders).map(|host| at(start(host), flow(host, 0, size(host)))).collect();
    if reverse {
        config.flows.extend((1..=senders).map(|host| at(start(host), flow(0, host, size(host + 1)))));
    }
    let base = base_rtt(&config);
    config.end = Time::from_ms(4);
    let every = Time::from_us(5);
    let outcome = sampled(config, every);
    let to_zero = |source: &u32| *source != 0;
    let flows: Vec<_> = outcome.flows.iter().filter(|flow| to_zero(&flow.source)).collect();
    let gone = |flow: &incast_sim::outcome::FlowRecord| flow.delivered.unwrap_or(Time::MAX);
    // What each one sends before it knows its share stands in the queue, in which later ones' first packets wait,
    // and acknowledgements.
    let informed = first_feedback(&outcome);
    let waits = flows.iter().filter_map(|flow| Some(informed.get(&flow.source)?.saturating_sub(flow.start)));
    let transient = base * 40 + waits.max().unwrap_or(Time::ZERO) * 6;
    let mut checked = 0;
    for step in 1..800u64 {
        let now = every * step;
        let changes = outcome.flows.iter().any(|flow| {
            let told = informed.get(&flow.source).copied().unwrap_or(flow.start);
            let is_recent = |time: &Time| *time <= now && now < time.saturating_add(transient);
            [flow.start, told, gone(flow)].iter().any(is_recent)
        });
        let open = flows.iter().filter(|flow| flow.start < now && now < gone(flow)).count();
        if changes || open == 0 {
            continue;
        }
        let there = |source: u32| flows.iter().any(|flow| flow.source == source && now < gone(flow));
        // The first packets of one that does not know its share yet stand in the queue.
        let has_share = |source: u32| informed.get(&source).is_some_and(|time| *time <= now);
        let rates = assigned(&outcome, now);
        let senders_of = |(source, _): &&(u32, f64)| to_zero(source) && there(*source) && has_share(*source);
        let sum: f64 = rates.iter().filter(senders_of).map(|it| it.1).sum();
        // What host 0 sends is acknowledged by a frame of 102 B for each packet.
        let sent = outcome.rates.iter().filter(|sample| sample.time == now && sample.source == 0);
        let sends: f64 = sent.map(|sample| sample.measured_bps as f64 / 1e9).sum();
        let acks = sends * 102.0 / f64::from(MTU);
        checked += 1;
        prop_assert!(sum + acks <= 101.0, "{senders} senders, at {now}: {sum} and {acks} Gbit/s");
    }
    Ok(checked)
}

#[test]
fn shares_fit_behind_a_standing_queue() {
    for senders in [32, 64, 128] {
        let checked = shares_fit(senders, &[10_000_000], false, Time::ZERO, 1).expect("they fit");
        assert!(checked > 100, "{senders} senders: {checked} samples");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn shares_and_acknowledgements_fit(
        senders in 2u32..24,
        sizes in prop::collection::vec(20_000u64..8_000_000, 1..6),
        reverse: bool,
        apart in prop_oneof![Just(0u64), 1u64..200],
        seed: u64,
    ) {
        shares_fit(senders, &sizes, reverse, Time::from_us(apart), seed)?;
    }
}
