//! Each extension point of the simulator at work, with the implementation that exists for testing it.

use crate::common::{
    self, DIAMOND, MTU, OVERHEAD, config, delivered, every_topology, flow, ideal, link, link_event, text, took,
    two_spines, unlimited,
};
use incast_cc::{
    law::Recovery,
    receiver_driven::credit::WindowCredit,
    registry::{AgentParameters, LAWS, Scheduler, UnderlayParameters},
    testing::paced_tokens::PacedTokens,
    testing::{constant_hold::ConstantHold, exerciser::Exerciser},
    underlay::Scope,
};
use incast_sim::{
    Config, FlowSpec, Outcome,
    config::{Buffer, HostClock},
    outcome::EventKind,
    packet::Kind,
    probe::{PacketFilter, Step},
    topology::{Dumbbell, Topology, file::parse},
};
use incast_units::Time;

fn dumbbell() -> Topology {
    let link = link(100, Time::from_us(1));
    Dumbbell { left: 2, right: 2, host_link: link, bottleneck: link }.build().expect("a good topology")
}

/// A law goes by the rate of its own host.
#[test]
fn hosts_of_different_rates_have_laws_of_their_own() {
    let text = "host a\nhost b\nhost c\nswitch s\nlink a s 20Gbps 1us\nlink b s 40Gbps 1us\nlink c s 100Gbps 1us\n";
    let mut config = config(parse(text).expect("a good topology"), "dcqcn", &[]);
    config.flows = vec![flow(0, 2, 1_000_000), flow(1, 2, 1_000_000), flow(2, 0, 1_000_000)];
    config.probes.rates = Some((Time::from_us(10), 1));
    let outcome = common::run(config);
    let assigned =
        |source: u32| outcome.rates.iter().find(|sample| sample.source == source).map(|sample| sample.assigned_bps);
    assert_eq!([0, 1, 2].map(assigned), [20, 40, 100].map(|gbps| Some(gbps * 1_000_000_000)));
}

// ---- Telemetry --------------------------------------------------------------------------------------------

/// No law reads the records yet, so that they must not change anything at all.
#[test]
fn telemetry_changes_nothing_for_laws_that_ignore_it() {
    for topology in every_topology() {
        for law in LAWS {
            let make = |telemetry| {
                let mut config = config(topology.clone(), law.name, &[]);
                config.switch.telemetry = telemetry;
                config.switch.buffer = Buffer::PerPort { bytes: 60_000 };
                config.end = Time::from_ms(20);
                config.flows = (1..topology.hosts).map(|host| flow(host, 0, 60_000)).collect();
                common::run(config)
            };
            let (without, with) = (make(false), make(true));
            assert_eq!(without.flows, with.flows, "{} on {}", law.name, topology.kind);
            assert_eq!(without.digest, with.digest, "{} on {}", law.name, topology.kind);
        }
    }
}

// ---- Underlay ---------------------------------------------------------------------------------------------

#[test]
fn the_underlay_holds_each_packet_for_its_time_and_keeps_the_order() {
    let hold = Time::from_us(7);
    let run = |held: bool| {
        // At half the link's rate, so that packets never wait for the NIC as well.
        let mut config = config(dumbbell(), "constant-rate", &[("rate", text("50Gbps"))]);
        if held {
            config.classes[0].underlay = UnderlayParameters::ConstantHold(ConstantHold::of(hold));
        }
        config.flows = vec![flow(0, 2, 100 * u64::from(MTU))];
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows[0]
    };
    let (without, with) = (run(false), run(true));
    assert_eq!(took(&with), took(&without) + hold);
    // The first packet waits for its time, and each of the others stands behind the one before it.
    let gap = Time::from_ps((u64::from(MTU) + OVERHEAD) * 160);
    assert_eq!((without.held, with.held), (Time::ZERO, hold + gap * 99));
    assert_eq!((with.reordered_packets, with.retransmitted_bytes), (0, 0));
}

#[test]
fn the_underlay_holds_whole_windows_too() {
    let hold = Time::from_us(7);
    for bytes in [1, 10 * u64::from(MTU)] {
        let mut config = unlimited(dumbbell());
        config.classes[0].underlay = UnderlayParameters::ConstantHold(ConstantHold::of(hold));
        config.flows = vec![flow(0, 2, bytes)];
        let outcome = common::run(config);
        delivered(&outcome);
        assert_eq!(took(&outcome.flows[0]), ideal(&outcome.flows[0]) + hold);
    }
}

/// What the receivers of a flow of ten packets report, in nanoseconds, with these clocks of sender and receiver.
fn reported(scope: Scope, clocks: [HostClock; 2]) -> Vec<i32> {
    let mut config = unlimited(dumbbell());
    let mut stage = ConstantHold::of(Time::from_us(7));
    stage.arrangement.scope = scope;
    config.classes[0].underlay = UnderlayParameters::ConstantHold(stage);
    config.clocks = vec![clocks[0], HostClock::default(), clocks[1]];
    config.flows = vec![flow(0, 2, 10 * u64::from(MTU))];
    config.probes.packets = Some(PacketFilter {
        flow: Some((0, 0)),
        ports: Vec::new(),
        from: Time::ZERO,
        until: Time::MAX,
        most: usize::MAX,
    });
    let outcome = common::run(config);
    delivered(&outcome);
    let of_receiver = outcome.packets.iter().filter(|record| record.node == 2);
    let sent = of_receiver.filter(|record| matches!(record.step, Step::Sent { .. }));
    sent.filter(|record| record.packet.kind == Kind::Report).map(|record| record.packet.delay_ns).collect()
}

#[test]
fn each_packet_is_reported_with_its_time_on_the_way() {
    for scope in [Scope::Flow, Scope::Destination] {
        let delays = reported(scope, [HostClock::default(); 2]);
        assert_eq!(delays.len(), 10);
        // Three links of 1 us and 100 Gbit/s; what a packet was held, or waited for the NIC, is not counted.
        let alone = 3 * (1_000 + (u64::from(MTU) + OVERHEAD) * 8 / 100) as i32;
        assert!(delays.iter().all(|delay| (delay - alone).abs() <= 2), "{delays:?}, not {alone}");
    }
}

#[test]
fn reports_are_what_the_receivers_clock_shows() {
    let perfect = reported(Scope::Flow, [HostClock::default(); 2]);
    let ahead = |offset_ps| HostClock { offset_ps, ..HostClock::default() };
    // The sender's clock is its own business.
    assert_eq!(reported(Scope::Flow, [ahead(5_000_000), HostClock::default()]), perfect);
    let behind = reported(Scope::Flow, [HostClock::default(), ahead(-50_000_000)]);
    assert_eq!(behind, perfect.iter().map(|delay| delay - 50_000).collect::<Vec<_>>());
}

// ---- Receiver-driven scheduling ---------------------------------------------------------------------------

#[test]
fn credit_keeps_a_sender_going() {
    let ahead = 5 * u64::from(MTU);
    let run = |scheduler| {
        let mut config = config(dumbbell(), "credit", &[("unscheduled", text(&format!("{ahead}B")))]);
        config.drive(scheduler);
        config.flows = vec![flow(0, 2, 200 * u64::from(MTU))];
        config.end = Time::from_ms(10);
        common::run(config)
    };
    // Nobody gives credit: the blind window arrives, and then one packet for each timeout, which asks for more.
    let outcome = run(Scheduler::None);
    assert!(!outcome.complete);
    let alone = &outcome.flows[0];
    assert!(alone.timeouts > 0);
    assert_eq!(alone.delivered_bytes, ahead + u64::from(alone.timeouts) * u64::from(MTU));
    assert_eq!(alone.delivered, None);

    let outcome = run(Scheduler::Credit(WindowCredit { ahead, priority: None }));
    delivered(&outcome);
    assert_eq!(outcome.flows[0].retransmitted_bytes, 0);
    // Five packets in each round trip: a data packet there, its credit back.
    let data = (u64::from(MTU) + OVERHEAD) * 80 * 3;
    let control = (18 + 20 + 32 + 12 + 20) * 80 * 3;
    let round_trip = Time::from_ps(data + control) + Time::from_us(6);
    let expected = round_trip * 200 / 5;
    let ratio = took(&outcome.flows[0]).as_secs_f64() / expected.as_secs_f64();
    assert!((0.95..1.1).contains(&ratio), "{ratio} of {expected}");
}

/// Flows of 100 packets each to the last host of a dumbbell, five packets of which come blindly. Tokens for the rest
/// come at a third of the rate of the link.
fn with_tokens(sources: &[u32], change: impl FnOnce(&mut Config, &mut PacedTokens)) -> Outcome {
    let blind = 5 * u64::from(MTU);
    let mut config = config(dumbbell(), "credit", &[("unscheduled", text(&format!("{blind}B")))]);
    config.flows = sources.iter().map(|source| flow(*source, 3, 100 * u64::from(MTU))).collect();
    config.host.rto_min = Time::from_ms(10);
    config.end = Time::from_ms(100);
    let mut tokens = PacedTokens::new(Time::from_us(1), blind, Time::from_us(100));
    change(&mut config, &mut tokens);
    config.drive(Scheduler::PacedTokens(tokens));
    common::run(config)
}

#[test]
fn tokens_set_the_pace() {
    let one = with_tokens(&[0], |_, _| {});
    delivered(&one);
    // The last of 95 tokens is given 94 us after the first, which the first packet brings; a token takes a good 3 us to
    // the sender, and the packet more than that back.
    let took_one = took(&one.flows[0]);
    assert!((Time::from_us(100)..Time::from_us(108)).contains(&took_one), "{took_one}");
    // Flows take turns, and so end almost together.
    let three = with_tokens(&[0, 1, 2], |_, _| {});
    delivered(&three);
    for flow in &three.flows {
        let took = took(flow);
        assert!((Time::from_us(283)..Time::from_us(295)).contains(&took), "{took}");
        assert_eq!((flow.retransmitted_bytes, flow.timeouts), (0, 0));
    }
    // Named packets are the same ones here.
    let named = with_tokens(&[0, 1, 2], |_, tokens| tokens.names_packets = true);
    assert_eq!(named.digest, three.digest);
}

#[test]
fn what_goes_by_a_token_or_on_credit_goes_at_its_priority() {
    let by_priority = |outcome: &Outcome| -> [u64; 2] {
        let bytes = |priority: u8| {
            let samples = outcome.ports.iter().filter(|sample| sample.priority == priority);
            samples.map(|sample| sample.tx_bytes).max().unwrap_or(0)
        };
        [bytes(0), bytes(1)]
    };
    let prepare = |config: &mut Config| {
        config.switch.priorities = 2;
        let port = config.topology.find_port("s1->h3").expect("a port");
        config.probes.ports = Some((Time::from_us(1), vec![port]));
    };
    let frame = u64::from(MTU) + OVERHEAD - 20;
    let tokens = with_tokens(&[0], |config, tokens| {
        prepare(config);
        tokens.priority = Some(1);
    });
    delivered(&tokens);
    assert_eq!(by_priority(&tokens), [5 * frame, 95 * frame]);
    let credit = with_tokens(&[0], |config, _| prepare(config));
    assert_eq!(by_priority(&credit), [100 * frame, 0]);

    let mut config = config(dumbbell(), "credit", &[("unscheduled", text("20480B"))]);
    prepare(&mut config);
    config.flows = vec![flow(0, 3, 100 * u64::from(MTU))];
    config.drive(Scheduler::Credit(WindowCredit { ahead: 20_480, priority: Some(1) }));
    let credit = common::run(config);
    delivered(&credit);
    // All blind packets leave before credit can come.
    assert_eq!(by_priority(&credit), [5 * frame, 95 * frame]);

    let mut refused = common::unlimited(dumbbell());
    refused.drive(Scheduler::Credit(WindowCredit { ahead: 1, priority: Some(1) }));
    let error = incast_sim::simulate(refused).expect_err("there is no such priority");
    assert_eq!(
        error.to_string(),
        "the lowest priority that receivers assign is 1, allowed is below the 1 priorities of the switches"
    );
}

/// A flow that stands in the NIC's line of a low priority, behind one that never pauses, goes ahead of it at once when
/// its receiver gives it a higher priority.
#[test]
fn a_new_priority_counts_for_what_waits_at_the_nic() {
    let run = |granted| {
        let outcome = with_tokens(&[0], |config, tokens| {
            config.switch.priorities = 3;
            config.classes[0].priority = 2;
            config.classes.push(common::class(&config.topology, MTU, "constant-window", &[("window", text("1GB"))]));
            config.classes[1].priority = 1;
            let start = Time::from_ns(100);
            config.flows.push(FlowSpec { start, class: 1, ..flow(0, 1, 5_000_000) });
            tokens.priority = granted;
        });
        delivered(&outcome);
        took(&outcome.flows[0])
    };
    assert!(run(Some(0)) < Time::from_us(110));
    // Otherwise its second packet waits for the end of the other flow.
    assert!(run(None) > Time::from_us(400));
}

#[test]
fn a_token_that_is_not_used_in_time_is_gone() {
    // Data that goes by tokens leaves for about 10 us of each 20 us, and yields to the other flows in between; tokens
    // come all the time.
    let run = |lifetime| {
        let outcome = with_tokens(&[0], |config, tokens| {
            config.switch.priorities = 2;
            tokens.priority = Some(1);
            tokens.lifetime = lifetime;
            tokens.silence = Time::from_us(30);
            let window = [("window", text("1GB"))];
            config.classes.push(common::class(&config.topology, MTU, "constant-window", &window));
            let other = |turn: u64| FlowSpec {
                start: Time::from_us(10 + 20 * turn),
                class: 1,
                ..flow(0, 1, 30 * u64::from(MTU))
            };
            config.flows.extend((0..20).map(other));
        });
        delivered(&outcome);
        assert_eq!(outcome.flows[0].timeouts, 0);
        took(&outcome.flows[0])
    };
    let (kept, short) = (run(Time::MAX), run(Time::from_us(1)));
    assert!(kept < Time::from_us(120), "{kept}: what waits goes when the link is free");
    assert!(short > kept * 3 / 2, "{short} instead of {kept}");
}

#[test]
fn a_receiver_asks_for_what_is_missing() {
    for recovery in [Recovery::SelectiveRepeat, Recovery::GoBackN] {
        for names_packets in [false, true] {
            for seed in 1..=8 {
                let outcome = with_tokens(&[0, 1, 2], |config, tokens| {
                    config.topology.cables[4].link.loss = 0.05;
                    config.classes[0].recovery = recovery;
                    config.seed = seed;
                    tokens.names_packets = names_packets;
                });
                delivered(&outcome);
                assert!(outcome.totals.lost > 0);
                // The sender's own timer is only for a flow whose last acknowledgement is lost.
                let last = outcome.flows.iter().map(took).max();
                assert!(last < Some(Time::from_ms(5)), "{last:?}: {recovery:?}, {names_packets}, {seed}");
            }
        }
    }
}

#[test]
fn a_receiver_hears_of_a_flow_that_is_given_up() {
    let run = |end, give_up_after| {
        with_tokens(&[0, 2], |config, _| {
            let event = |us, up| link_event(&config.topology, Time::from_us(us), "s0-s1", up);
            config.link_events = vec![event(30, false), event(2000, true)];
            config.host.rto_min = Time::from_us(100);
            config.host.give_up_after = give_up_after;
            config.end = end;
        })
    };
    let outcome = run(Time::from_ms(20), Some(3));
    let (cut_off, other) = (&outcome.flows[0], &outcome.flows[1]);
    assert!(!outcome.complete && cut_off.acked.is_none() && cut_off.delivered.is_none());
    assert_eq!(cut_off.timeouts, 3);
    assert!(other.acked.is_some() && other.timeouts == 0);
    // Both sides have forgotten the flow, although the first word of it was lost on the link: nothing is sent any more.
    let longer = run(Time::from_ms(60), Some(3));
    assert_eq!(outcome.totals.injected_packets, longer.totals.injected_packets);
    // Without that it goes on after the outage.
    delivered(&run(Time::from_ms(60), None));
}

#[test]
fn tokens_do_not_depend_on_threads() {
    let run = |threads| {
        with_tokens(&[0, 1, 2], |config, tokens| {
            config.threads = threads;
            config.topology.cables[4].link.loss = 0.02;
            tokens.interval = Time::from_ns(335);
            tokens.lifetime = Time::from_us(9);
        })
    };
    let one = run(1);
    delivered(&one);
    for threads in [2, 4] {
        assert_eq!(run(threads).digest, one.digest);
    }
}

// ---- Links that go down and up ----------------------------------------------------------------------------

#[test]
fn traffic_moves_to_the_other_way_when_a_link_fails() {
    let mut moved = 0;
    for name in ["leaf0-spine0", "leaf0-spine1"] {
        let topology = two_spines();
        let fails = Time::from_us(20);
        let ports = ["leaf0->spine0", "leaf0->spine1"].map(|port| topology.find_port(port).expect("a port"));
        let mut config = unlimited(topology);
        config.host.rto_min = Time::from_us(100);
        config.link_events = vec![link_event(&config.topology, fails, name, false)];
        config.flows = vec![flow(0, 1, 1_000_000)];
        config.probes.ports = Some((Time::from_us(1), ports.to_vec()));
        let outcome = common::run(config);
        delivered(&outcome);
        let failed = usize::from(name == "leaf0-spine1");
        let sent = |port: (u32, u16), from: Time| {
            let samples = outcome.ports.iter().filter(|sample| (sample.node, sample.port) == port);
            let bytes: Vec<u64> = samples.filter(|sample| sample.time >= from).map(|sample| sample.tx_bytes).collect();
            bytes[bytes.len() - 1] - bytes[0]
        };
        // Sample times coincide with the failure: one packet may have been in service.
        assert_eq!(sent(ports[failed], fails + Time::from_us(1)), 0, "{name} carries traffic while it is down");
        if sent(ports[failed], Time::ZERO) > 0 {
            moved += 1;
            let flow = &outcome.flows[0];
            assert!(sent(ports[1 - failed], fails) > 500_000);
            // What was on the wire, a microsecond's worth and the packet in service, and nothing else.
            // Acknowledgements may have been on the cable, too.
            let again = flow.retransmitted_bytes / u64::from(MTU);
            assert!((3..=5).contains(&again), "{again} packets sent again");
            assert!(outcome.totals.lost >= again && outcome.totals.lost <= 2 * again + 2, "{}", outcome.totals.lost);
            assert!(outcome.totals.lost_bytes >= again * u64::from(MTU));
        }
    }
    assert_eq!(moved, 1, "the flow takes exactly one of the two ways");
}

#[test]
fn what_waits_for_a_dead_link_is_lost() {
    let slow = link(10, Time::from_us(1));
    let topology = Dumbbell { left: 1, right: 1, host_link: link(100, Time::from_us(1)), bottleneck: slow }.build();
    let mut config = unlimited(topology.expect("a good topology"));
    // All 100 packets are at the bottleneck after 35 us, and nine tenths of them wait there.
    config.flows = vec![flow(0, 1, 100 * u64::from(MTU))];
    config.link_events = vec![link_event(&config.topology, Time::from_us(45), "s0-s1", false)];
    config.end = Time::from_us(500);
    config.probes.events = true;
    let outcome = common::run(config);
    assert!(!outcome.complete);
    assert_eq!(outcome.ended_at, Time::from_us(500));
    let sent = outcome.flows[0].delivered_bytes / u64::from(MTU);
    // 3.35 us each, the first at 1.33 us: 13 have left at 45 us, of which the last is cut short and one may
    // be on the wire.
    assert!((11..=13).contains(&sent), "{sent}");
    // Everything that did not arrive, probes for a lost tail included, and an acknowledgement or two on the
    // cable.
    let again = outcome.flows[0].retransmitted_bytes / u64::from(MTU);
    let data = 100 + again - sent;
    assert!((data..=data + 2).contains(&outcome.totals.lost), "{:?}", outcome.totals);
    assert_eq!(outcome.totals.left_bytes, 0);
    assert!(outcome.events.iter().any(|event| event.kind == EventKind::Lost && event.time == Time::from_us(45)));
}

/// A flow across, whose cable goes down and perhaps up again, and one that stays on the left.
fn interrupted(down: Time, up: Option<Time>, name: &str, recovery: Recovery) -> Outcome {
    let mut config = unlimited(dumbbell());
    config.classes[0].recovery = recovery;
    config.host.rto_min = Time::from_us(200);
    config.link_events = vec![link_event(&config.topology, down, name, false)];
    config.link_events.extend(up.map(|up| link_event(&config.topology, up, name, true)));
    config.flows = vec![flow(0, 2, 1_000_000), flow(1, 0, 1_000_000)];
    config.end = Time::from_ms(50);
    common::run(config)
}

#[test]
fn a_partitioned_fabric_ends_at_the_end() {
    for name in ["s0-s1", "h2-s1"] {
        let outcome = interrupted(Time::from_us(30), None, name, Recovery::SelectiveRepeat);
        assert!(!outcome.complete, "{name}");
        assert_eq!(outcome.ended_at, Time::from_ms(50));
        let cut_off = &outcome.flows[0];
        assert_eq!((cut_off.delivered, cut_off.acked), (None, None));
        assert!(cut_off.delivered_bytes > 0 && cut_off.delivered_bytes < cut_off.bytes);
        assert!(cut_off.timeouts > 3 && outcome.totals.lost > 0);
        // The other flow does not use that link; it shares its way with acknowledgements for a while.
        let other = &outcome.flows[1];
        assert!(other.acked.is_some() && other.retransmitted_bytes == 0, "{name}");
        assert!(took(other) < ideal(other) + Time::from_us(2), "{name}");
    }
}

#[test]
fn a_flow_survives_an_outage_anywhere() {
    for name in ["s0-s1", "h2-s1", "h0-s0"] {
        for recovery in [Recovery::SelectiveRepeat, Recovery::GoBackN] {
            let outcome = interrupted(Time::from_us(30), Some(Time::from_us(900)), name, recovery);
            delivered(&outcome);
            let ended = outcome.flows[0].delivered;
            assert!(ended > Some(Time::from_us(900)) && ended < Some(Time::from_ms(3)), "{name}: {ended:?}");
            assert!(outcome.totals.lost > 0);
        }
    }
}

#[test]
fn flapping_links_never_hang() {
    let topologies: [Topology; 2] = [two_spines(), parse(DIAMOND).expect("a good topology")];
    for topology in topologies {
        for law in LAWS {
            for recovery in [Recovery::SelectiveRepeat, Recovery::GoBackN] {
                let mut config = config(topology.clone(), law.name, &[]);
                config.classes[0].recovery = recovery;
                config.host.rto_min = Time::from_us(50);
                let last = topology.hosts - 1;
                config.flows = vec![flow(0, last, 300_000), flow(last, 0, 300_000)];
                // Every cable, hosts' ones too, each at a pace of its own, some faster than packets travel,
                // until 300 us.
                for cable in 0..topology.cables.len() {
                    let pace = 700 + 900 * cable as u64;
                    let times = (1..).map(|flap| Time::from_ns(flap * pace)).take_while(|at| *at < Time::from_us(300));
                    let flaps = times.enumerate().map(|(flap, at)| (at, flap % 2 == 1));
                    config.link_events.extend(flaps.map(|(at, up)| incast_sim::config::LinkEvent { at, cable, up }));
                    let at = Time::from_us(300);
                    config.link_events.push(incast_sim::config::LinkEvent { at, cable, up: true });
                }
                let outcome = common::run(config);
                assert!(outcome.complete, "{} with {recovery:?} on {}", law.name, topology.kind);
                delivered(&outcome);
                assert!(outcome.totals.lost > 0);
            }
        }
    }
}

// ---- Conservation -----------------------------------------------------------------------------------------

/// `common::run` checks conservation of every run; here each term of it is there.
#[test]
fn every_way_to_end_is_accounted_for() {
    let mut config = config(dumbbell(), "dctcp", &[]);
    config.topology.cables[4].link.loss = 0.05;
    config.switch.buffer = Buffer::PerPort { bytes: 20_000 };
    config.switch.agent = AgentParameters::Exerciser(Exerciser { notify_every: 10, ..Exerciser::default() });
    config.flows = vec![flow(0, 2, 1 << 30), flow(1, 2, 1 << 30), flow(3, 0, 1 << 30)];
    config.link_events =
        [(50, false), (60, true)].map(|(us, up)| link_event(&config.topology, Time::from_us(us), "h3-s1", up)).to_vec();
    config.end = Time::from_us(500);
    let outcome = common::run(config);
    let totals = &outcome.totals;
    assert!(!outcome.complete && outcome.ended_at == Time::from_us(500));
    let terms = [
        totals.injected_bytes,
        totals.created_bytes,
        totals.received_bytes,
        totals.dropped_bytes,
        totals.lost_bytes,
        totals.left_bytes,
    ];
    assert!(terms.iter().all(|term| *term > 0), "{totals:?}");
    assert!(totals.drops > 0 && totals.lost > 0 && totals.injected_packets > 0);
    // Nothing is counted twice.
    assert!(outcome.flows.iter().map(|flow| flow.delivered_bytes).sum::<u64>() < totals.received_bytes);
}
