//! Random small fabrics behave alike in the simulator and in a second, naive one.
//!
//! See `incast-reference` for what the second one is. `PROPTEST_CASES` sets the number of fabrics.

use incast_cc::{
    law::Recovery,
    parameters::Raw,
    receiver_driven::credit::WindowCredit,
    registry::{AgentParameters, LawParameters, Scheduler, UnderlayParameters},
};
use incast_reference::Summary;
use incast_sim::{
    Config, FlowSpec,
    application::{Application, FlowInfo},
    base_path,
    config::{
        Buffer, ClassConfig, Ecn, Headroom, HostConfig, Limit, LinkEvent, LoadBalancing, LostRetransmission, MarkAt,
        NotEct, Override, PaceCredit, Pfc, Probes, RedAtRate, ReorderingWindow, Scheduling, Size, SwitchConfig,
        Threshold, Ties, Trim, Victim, Wire,
    },
    fabric::format::Format,
    outcome::Totals,
    simulate,
    topology::{Cable, Chain, Clos3, Dumbbell, FatTree, LeafSpine, Link, Ring, SingleSwitch, Topology, file::parse},
};
use incast_units::{Bytes, Rate, Time};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use std::{collections::BTreeMap, fmt::Write as _};

/// Fabrics in a normal run.
const CASES: u32 = 150;

/// A flow before the number of hosts is known.
#[derive(Clone, Copy, Debug)]
struct Wish {
    start: Time,
    source: u32,
    destination: u32,
    bytes: u64,
    class: u16,
}

/// An application that opens its next flow a while after the last one ended, and answers each that comes.
#[derive(Clone, Copy, Debug)]
struct Pausing {
    host: u32,
    /// Flows that it still opens, answers included.
    left: u32,
    pause: Time,
    /// What it opens next.
    next: Wish,
}

impl Pausing {
    fn open_next(&mut self, start: Time, destination: u32, open: &mut dyn FnMut(FlowSpec)) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        let Wish { bytes, class, .. } = self.next;
        let request = FlowSpec::NO_REQUEST;
        open(FlowSpec { start, source: self.host, destination, bytes, class, request, pinned: None });
    }
}

impl Application for Pausing {
    fn on_start(&mut self, open: &mut dyn FnMut(FlowSpec)) {
        self.open_next(self.next.start, self.next.destination, open);
    }

    fn on_received(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        // At once: the answer starts at the instant of the arrival.
        self.open_next(now, flow.source, open);
    }

    fn on_acked(&mut self, now: Time, _: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        self.open_next(now + self.pause, self.next.destination, open);
    }
}

/// A class of flows before the topology is known.
#[derive(Clone, Debug)]
struct Kind {
    law: &'static str,
    parameters: Vec<(String, Raw)>,
    recovery: Recovery,
    priority: u8,
    ack_priority: Option<u8>,
    trimmable: bool,
    /// Parameters of an On-Ramp below it.
    underlay: Option<Vec<(String, Raw)>>,
}

/// A topology that prints in a line.
#[derive(Clone)]
struct Fabric(Topology);

impl std::fmt::Debug for Fabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.0.kind)?;
        self.0.cables.iter().try_for_each(|Cable { a, b, link: Link { rate, delay, loss } }| {
            let name = |node: &u32| &self.0.names[*node as usize];
            write!(f, " {} {} {rate} {delay} {loss},", name(a), name(b))
        })
    }
}

/// A run, in parts that print and shrink.
#[derive(Clone, Debug)]
struct Case {
    topology: Fabric,
    switch: SwitchConfig,
    host: HostConfig,
    kinds: Vec<Kind>,
    flows: Vec<Wish>,
    /// At most one for each host.
    applications: Vec<Pausing>,
    /// Cable, when it goes down, and for how long.
    failures: Vec<(usize, Time, Time)>,
    seed: u64,
    ties: Ties,
    end: Time,
    /// Switches that differ, by number, each in as much of what was drawn for it as may be its own.
    others: Vec<(u32, SwitchConfig)>,
}

impl Case {
    fn config(&self, threads: usize) -> Config {
        let topology = self.topology.0.clone();
        let classes = self.kinds.iter().map(|kind| self.class(kind)).collect();
        let hosts = topology.hosts;
        let classes_of = self.kinds.len() as u16;
        let other = |source: u32, destination: u32| match (source % hosts, destination % hosts) {
            (source, destination) if source == destination => (source + 1) % hosts,
            (_, destination) => destination,
        };
        let application = |host: u32| -> Option<Box<dyn Application>> {
            let drawn = *self.applications.iter().find(|application| application.host % hosts == host)?;
            let (destination, class) = (other(host, drawn.next.destination), drawn.next.class % classes_of);
            Some(Box::new(Pausing { host, next: Wish { destination, class, ..drawn.next }, ..drawn }))
        };
        let flow = |wish: &Wish| FlowSpec {
            start: wish.start,
            source: wish.source % hosts,
            destination: other(wish.source, wish.destination),
            bytes: wish.bytes,
            class: wish.class % classes_of,
            request: FlowSpec::NO_REQUEST,
            pinned: None,
        };
        let mut link_events = Vec::new();
        let mut failing = Vec::new();
        for (cable, at, outage) in &self.failures {
            let cable = cable % topology.cables.len();
            // A cable fails once: it could not go down twice, or at the time when it comes up.
            if !failing.contains(&cable) {
                failing.push(cable);
                link_events.push(LinkEvent { at: *at, cable, up: false });
                link_events.push(LinkEvent { at: *at + *outage, cable, up: true });
            }
        }
        Config {
            switch: SwitchConfig { overrides: self.overrides(), ..self.switch.clone() },
            host: self.host.clone(),
            classes,
            flows: self.flows.iter().map(flow).collect(),
            applications: (0..hosts).map(application).collect(),
            link_events,
            clocks: Vec::new(),
            probes: Probes { events: true, ..Probes::default() },
            seed: self.seed,
            end: self.end,
            threads,
            ties: self.ties,
            wire: Wire::default(),
            topology,
        }
    }

    fn overrides(&self) -> BTreeMap<u32, Override> {
        let Topology { hosts, .. } = self.topology.0;
        let switches = self.topology.0.nodes() - hosts;
        let common = &self.switch;
        let own = |(number, drawn): &(u32, SwitchConfig)| {
            let has_pfc = common.pfc.is_some();
            let own = Override {
                buffer: match drawn.buffer {
                    Buffer::PerPort { .. } | Buffer::PerPortPackets { .. } if has_pfc => Buffer::Unlimited,
                    buffer => buffer,
                },
                ecn: drawn.ecn.clone(),
                mark_at: drawn.mark_at,
                not_ect: drawn.not_ect,
                pfc: drawn.pfc.as_ref().map(|pfc| (pfc.threshold, pfc.headroom)),
            };
            (hosts + number % switches, own)
        };
        self.others.iter().map(own).collect()
    }

    fn class(&self, kind: &Kind) -> ClassConfig {
        let framing = incast_cc::registry::LAWS.iter().find(|law| law.name == kind.law).expect("a law").framing;
        let path = base_path(&self.topology.0, self.host.mtu, framing);
        let law = LawParameters::resolve(kind.law, &path, &kind.parameters);
        let law = law.expect("a known law").expect("good parameters");
        let priorities = self.switch.priorities;
        ClassConfig {
            name: kind.law.to_owned(),
            law,
            law_at: Vec::new(),
            format: Format::of(framing),
            recovery: kind.recovery,
            priority: kind.priority % priorities,
            ack_priority: kind.ack_priority.map(|priority| priority % priorities),
            notification_priority: 0,
            underlay: match &kind.underlay {
                Some(given) => {
                    UnderlayParameters::resolve("onramp", &path, given).expect("an underlay").expect("good parameters")
                }
                None => UnderlayParameters::None,
            },
            scheduler: Some(0),
            trimmable: kind.trimmable,
        }
    }
}

/// Rates of links.
fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        4 => Just(100_000_000_000u64),
        2 => Just(400_000_000_000),
        2 => Just(56_000_000_000),
        1 => Just(10_000_000_000),
        1 => Just(3_000_000_000),
        1 => Just(7_777_777_777),
    ]
    .prop_map(Rate::from_bps)
}

fn link() -> impl Strategy<Value = Link> {
    let delay = prop_oneof![
        4 => Just(1_000_000u64),
        1 => Just(5_000),
        1 => Just(300_000),
        1 => Just(50_000_000),
        1 => Just(1),
        1 => 1u64..5_000_000,
    ];
    let loss = prop_oneof![6 => Just(0.0), 1 => Just(0.001), 1 => Just(0.02), 1 => Just(0.3)];
    (rate(), delay, loss).prop_map(|(rate, delay, loss)| Link { rate, delay: Time::from_ps(delay), loss })
}

/// A random connected graph of switches, some joined twice, with a host or two at most of them.
fn file() -> impl Strategy<Value = Topology> {
    let switch = (0..8usize, link(), proptest::collection::vec(link(), 0..3));
    let extra = proptest::collection::vec((0..8usize, 0..8usize, link()), 0..5);
    (proptest::collection::vec(switch, 1..6), extra, link()).prop_map(|(switches, extra, link)| {
        let mut text = String::from("host first\nhost second\n");
        let mut join = |a: String, b: String, link: Link| {
            let _ = writeln!(text, "link {a} {b} {} {} {}", link.rate, link.delay, link.loss);
        };
        join("first".into(), "s0".into(), link);
        join("second".into(), format!("s{}", switches.len() - 1), link);
        for (index, (parent, link, hosts)) in switches.iter().enumerate() {
            if index > 0 {
                join(format!("s{index}"), format!("s{}", parent % index), *link);
            }
            hosts
                .iter()
                .enumerate()
                .for_each(|(host, link)| join(format!("h{index}.{host}"), format!("s{index}"), *link));
        }
        for (a, b, link) in extra {
            let (a, b) = (a % switches.len(), b % switches.len());
            if a != b {
                join(format!("s{a}"), format!("s{b}"), link);
            }
        }
        for (index, (_, _, hosts)) in switches.iter().enumerate() {
            let _ = writeln!(text, "switch s{index}");
            (0..hosts.len()).for_each(|host| {
                let _ = writeln!(text, "host h{index}.{host}");
            });
        }
        parse(&text).expect("a good file")
    })
}

fn fabric() -> impl Strategy<Value = Fabric> {
    let count = || 1u32..4;
    let parallel = || prop_oneof![3 => Just(1u32), 1 => 2u32..4];
    prop_oneof![
        2 => (2u32..9, link()).prop_map(|(hosts, link)| SingleSwitch { hosts, link }.build()),
        2 => (1u32..5, 1u32..5, link(), link())
            .prop_map(|(left, right, host_link, bottleneck)| Dumbbell { left, right, host_link, bottleneck }.build()),
        2 => (count(), count(), 2u32..4, link(), link(), parallel()).prop_map(
            |(leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links)| {
                LeafSpine { leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links }.build()
            }
        ),
        1 => link().prop_map(|link| FatTree { k: 4, link }.build()),
        1 => (count(), count(), count(), 1u32..5, 2u32..4, (link(), link(), link()), parallel(), parallel()).prop_map(
            |(pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, links, tor_agg_links, agg_core_links)| {
                let (host_link, tor_agg_link, agg_core_link) = links;
                Clos3 {
                    pods,
                    tors_per_pod,
                    aggs_per_pod,
                    cores,
                    hosts_per_tor,
                    host_link,
                    tor_agg_link,
                    agg_core_link,
                    tor_agg_links,
                    agg_core_links,
                }
                .build()
            }
        ),
        1 => (2u32..5, count(), link(), link()).prop_map(|(switches, hosts_per_switch, host_link, fabric_link)| {
            Chain { switches, hosts_per_switch, host_link, fabric_link }.build()
        }),
        1 => (3u32..7, count(), link(), link()).prop_map(|(switches, hosts_per_switch, host_link, fabric_link)| {
            Ring { switches, hosts_per_switch, host_link, fabric_link }.build()
        }),
        2 => file().prop_map(Ok),
    ]
    .prop_map(|topology| Fabric(topology.expect("a good topology")))
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![(0u64..10_000).prop_map(Size::Bytes), (0.0..0.05f64).prop_map(Size::Bdp)]
}

/// Fixed thresholds, often with less headroom than is needed: then packets are dropped.
fn pfc() -> impl Strategy<Value = Option<Pfc>> {
    let xoff = (100u64..50_000, 0u64..1_000);
    let headroom = prop_oneof![1 => Just(Headroom::Computed), 1 => (0u64..30_000).prop_map(Headroom::Bytes)];
    let response = prop_oneof![2 => Just(Time::ZERO), 1 => (1u64..3_000_000).prop_map(Time::from_ps)];
    let some = (xoff, headroom, response, 0u8..255, 64u16..500).prop_map(
        |((xoff, part), headroom, response_delay, lossy, frame)| Pfc {
            headroom,
            response_delay,
            frame,
            priorities: !lossy,
            strict: false,
            deadlock_after: None,
            ..Pfc::new(Threshold::Static { xoff: Size::Bytes(xoff), xon: Some(Size::Bytes(xoff * part / 1_000)) })
        },
    );
    prop_oneof![2 => Just(None), 1 => some.prop_map(Some)]
}

/// Without return to sender: what comes back is for the host to judge by its tokens, which this simulator has not.
fn trim() -> impl Strategy<Value = Option<Trim>> {
    let limit = || prop_oneof![(1u32..20).prop_map(Limit::Packets), (500u64..60_000).prop_map(Limit::Bytes)];
    let victim = prop_oneof![Just(Victim::Arriving), Just(Victim::Tail), Just(Victim::Either)];
    let size = proptest::option::of((64u64..4_500).prop_map(Bytes::new));
    let some = (limit(), limit(), victim, proptest::option::of(1u32..12), size).prop_map(
        |(queue, headers, victim, header_weight, size)| Trim {
            queue,
            header_queue: Some(headers),
            victim,
            header_weight,
            return_to_sender: false,
            size,
        },
    );
    proptest::option::of(some)
}

/// Scheduling before the number of priorities is known.
#[derive(Clone, Debug)]
struct Schedule {
    /// Part of the priorities that are strict; `None` for all of them.
    strict: Option<u8>,
    weights: Vec<u16>,
    quantum: Option<u64>,
}

impl Schedule {
    fn of(&self, priorities: u8) -> Scheduling {
        let Some(strict) = self.strict else { return Scheduling::Strict };
        let strict = strict % priorities;
        let weights = self.weights[..usize::from(priorities - strict)].to_vec();
        Scheduling::StrictOverDwrr { strict, weights, quantum: self.quantum.map(Bytes::new) }
    }
}

fn scheduler() -> impl Strategy<Value = Schedule> {
    let strict = prop_oneof![3 => Just(None), 1 => Just(Some(0)), 1 => (1u8..8).prop_map(Some)];
    let weights = proptest::collection::vec(1u16..6, 8);
    let quantum = proptest::option::of(64u64..10_000);
    (strict, weights, quantum).prop_map(|(strict, weights, quantum)| Schedule { strict, weights, quantum })
}

fn switch() -> impl Strategy<Value = SwitchConfig> {
    let alpha = (1u32..9, 1u32..9);
    let buffer = prop_oneof![
        1 => Just(Buffer::Unlimited),
        2 => (2_000u64..100_000).prop_map(|bytes| Buffer::PerPort { bytes }),
        1 => (1u32..40).prop_map(|packets| Buffer::PerPortPackets { packets }),
        3 => (5_000u64..200_000, alpha, 0u64..2_000)
            .prop_map(|(total, alpha, reserve)| Buffer::Shared { total, alpha, reserve }),
    ];
    let ecn = prop_oneof![
        1 => Just(Ecn::Off),
        2 => size().prop_map(|at| Ecn::Step { at }),
        2 => (0u64..10_000, 0u64..30_000, 0.0..1.0f64).prop_map(|(min, span, p)| Ecn::Red {
            min: Size::Bytes(min),
            max: Size::Bytes(min + span),
            p
        }),
        1 => proptest::collection::vec((rate(), 0u64..10_000, 0u64..30_000, 0.0..1.0f64), 0..4).prop_map(|rates| {
            let at = |(rate, min, span, p)| RedAtRate {
                rate,
                min: Size::Bytes(min),
                max: Size::Bytes(min + span),
                p,
            };
            Ecn::RedByRate { rates: rates.into_iter().map(at).collect() }
        }),
    ];
    let mark_at = prop_oneof![Just(MarkAt::Enqueue), Just(MarkAt::Dequeue)];
    let balancing = prop_oneof![2 => Just(LoadBalancing::Ecmp), 1 => Just(LoadBalancing::Spray)];
    let not_ect = prop_oneof![2 => Just(NotEct::Pass), 1 => Just(NotEct::Drop)];
    (buffer, ecn, (mark_at, not_ect), 1u8..9, balancing, pfc(), trim(), scheduler()).prop_map(
        |(buffer, ecn, (mark_at, not_ect), priorities, load_balancing, pfc, trim, scheduler)| SwitchConfig {
            // What every ingress may hold is more than these memories of ports.
            buffer: match (buffer, &pfc) {
                (Buffer::PerPort { .. } | Buffer::PerPortPackets { .. }, Some(_)) => Buffer::Unlimited,
                (buffer, _) => buffer,
            },
            ecn,
            mark_at,
            not_ect: if mark_at == MarkAt::Enqueue { not_ect } else { NotEct::Pass },
            priorities,
            scheduler: scheduler.of(priorities),
            virtual_channels: 1,
            load_balancing,
            agent: AgentParameters::None,
            telemetry: false,
            // What is paused is not trimmed, and headers have a priority of their own.
            overrides: BTreeMap::new(),
            trim: trim
                .filter(|_| pfc.is_none() && priorities > 1)
                .map(|trim| Trim { header_weight: trim.header_weight.filter(|_| scheduler.strict.is_none()), ..trim }),
            pfc,
            credits: None,
        },
    )
}

fn host() -> impl Strategy<Value = HostConfig> {
    let mtu = prop_oneof![Just(256u32), Just(1000), Just(1448), Just(4096), Just(8960)];
    let time = |range: std::ops::Range<u64>| range.prop_map(Time::from_ns);
    let ack_every = prop_oneof![3 => Just(1u32), 1 => 1u32..5, 1 => Just(255)];
    let pace_credit = prop_oneof![
        2 => Just(PaceCredit::default()),
        1 => Just(PaceCredit::None),
        1 => Just(PaceCredit::HalfPacket),
        1 => (0u16..5).prop_map(|packets| PaceCredit::Burst { packets })
    ];
    let lost = proptest::sample::select(vec![LostRetransmission::NewLoss, LostRetransmission::SameRecovery]);
    let wait = prop_oneof![3 => Just(ReorderingWindow::Adaptive), 1 => Just(ReorderingWindow::Srtt)];
    let most = prop_oneof![2 => Just(None), 1 => (0u64..40_000).prop_map(|ns| Some(Time::from_ps(ns * 1000)))];
    let senders = (pace_credit, lost, wait, most);
    (mtu, time(5_000..1_000_000), ack_every, time(1..20_000), 1u32..12, 0u64..100_000, senders).prop_map(
        |(
            mtu,
            rto_min,
            ack_every,
            ack_delay,
            reordering,
            ahead,
            (pace_credit, lost_retransmission, reordering_window, max_ack_delay),
        )| HostConfig {
            rto_min,
            pace_credit,
            lost_retransmission,
            reordering_window,
            ack_every,
            ack_delay,
            max_ack_delay,
            reordering,
            schedulers: vec![Scheduler::Credit(WindowCredit { ahead, priority: None })],
            ..HostConfig::plain(mtu)
        },
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    let law = prop_oneof![
        12 => (1u64..100_000).prop_map(|window| ("dctcp", vec![("initial_window", format!("{window}B"))])),
        3 => Just(("dctcp", vec![("min_window", "100B".to_owned())])),
        3 => Just(("cubic", vec![])),
        2 => Just(("bbr", vec![])),
        1 => (1u64..100).prop_map(|us| {
            ("bbr", vec![("rtprop_window", format!("{us}us")), ("probe_rtt_duration", format!("{us}us"))])
        }),
        1 => Just(("bbr3", vec![])),
        1 => Just(("bbr3", vec![("probe_rtt_interval", "50us".to_owned()), ("probe_wait", "20us".to_owned())])),
        1 => Just(("swift", vec![])),
        1 => (1u64..10_000).prop_map(|window| ("swift", vec![("initial_window", format!("{window}B"))])),
        1 => Just(("timely", vec![])),
        1 => Just(("timely", vec![("variant", "patched".to_owned())])),
        2 => (0u64..50).prop_map(|us| ("dcqcn", vec![("cnp_interval", format!("{us}us"))])),
        1 => Just(("dcqcn", vec![("byte_counter", "20KB".to_owned())])),
        1 => Just(("dcqcn", vec![("variant", "mellanox".to_owned())])),
        2 => (1u64..100_000).prop_map(|window| {
            let lineage = ("profile", "hpcc-lineage".to_owned());
            ("dcqcn", vec![lineage, ("in_flight", "rate-bdp".to_owned()), ("window", format!("{window}B"))])
        }),
        1 => Just(("timely", vec![("profile", "hpcc-lineage".to_owned())])),
        1 => Just(("dctcp-rate", vec![])),
        2 => Just(("dctcp-rate", vec![("profile", "hpcc-lineage".to_owned())])),
        2 => (1u64..100_000).prop_map(|window| ("constant-window", vec![("window", format!("{window}B"))])),
        1 => (1u64..200).prop_map(|rate| ("constant-rate", vec![("rate", format!("{}Mbps", rate * 777))])),
        1 => Just(("constant-rate", vec![])),
        2 => (0u64..50_000).prop_map(|bytes| ("credit", vec![("unscheduled", format!("{bytes}B"))])),
    ];
    let recovery = prop_oneof![
        2 => Just(Recovery::RackTlp),
        1 => Just(Recovery::SelectiveRepeat),
        1 => Just(Recovery::GoBackN)
    ];
    let given = |parameters: Vec<(&str, String)>| {
        parameters.into_iter().map(|(key, value)| (key.to_owned(), Raw::Text(value))).collect()
    };
    (law, recovery, 0u8..8, proptest::option::of(0u8..8), any::<bool>(), underlay()).prop_map(
        move |((law, parameters), recovery, priority, ack_priority, trimmable, underlay)| Kind {
            law,
            parameters: given(parameters),
            recovery,
            priority,
            ack_priority,
            trimmable,
            underlay,
        },
    )
}

/// An On-Ramp with a stage for each flow, which learns delays from acknowledgements.
fn underlay() -> impl Strategy<Value = Option<Vec<(String, Raw)>>> {
    let release = proptest::sample::select(vec!["burst", "paced", "quantised", "clocked"]);
    let variant = proptest::sample::select(vec!["strawman", "paper", "committed"]);
    let rtt = proptest::sample::select(vec!["stack", "network"]);
    let text = |text: &str| Raw::Text(text.to_owned());
    let some = (1u64..40, release, variant, rtt, proptest::option::of(1i64..20), 1u64..200).prop_map(
        move |(threshold, release, variant, rtt, backlog, max_hold)| {
            let mut given = vec![
                ("threshold", text(&format!("{threshold}us"))),
                ("release", text(release)),
                ("variant", text(variant)),
                ("rtt", text(rtt)),
                ("max_hold", text(&format!("{max_hold}us"))),
                ("reports", text("acks")),
            ];
            given.extend(backlog.map(|backlog| ("backlog", Raw::Integer(backlog))));
            given.into_iter().map(|(key, raw)| (key.to_owned(), raw)).collect()
        },
    );
    prop_oneof![2 => Just(None), 1 => some.prop_map(Some)]
}

fn wish() -> impl Strategy<Value = Wish> {
    let start = prop_oneof![
        4 => Just(Time::ZERO),
        1 => Just(Time::from_us(10)),
        2 => (0u64..400_000).prop_map(Time::from_ns),
        1 => (0u64..100_000_000).prop_map(Time::from_ps),
        1 => (0u64..3_000).prop_map(Time::from_us),
    ];
    let bytes = prop_oneof![2 => 1u64..3_000, 3 => 1u64..60_000, 1 => 1u64..300_000];
    // Few sources and destinations, so that they meet.
    let source = prop_oneof![2 => 0u32..30, 1 => Just(1u32)];
    let destination = prop_oneof![2 => Just(0u32), 1 => 0u32..30];
    (start, source, destination, bytes, 0u16..3).prop_map(|(start, source, destination, bytes, class)| Wish {
        start,
        source,
        destination,
        bytes,
        class,
    })
}

/// Pauses from none to several round trips.
fn application() -> impl Strategy<Value = Pausing> {
    let pause = prop_oneof![1 => Just(0u64), 2 => 1u64..100_000, 1 => 1u64..1_000_000];
    (0u32..30, 1u32..8, pause.prop_map(Time::from_ns), wish()).prop_map(|(host, left, pause, next)| Pausing {
        host,
        left,
        pause,
        next,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let kinds = proptest::collection::vec(kind(), 1..4);
    let flows = proptest::collection::vec(wish(), 2..31);
    let failure = (0usize..100, (0u64..300).prop_map(Time::from_us), (1u64..200_000).prop_map(Time::from_ns));
    let failures = prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(failure, 1..4)];
    let ties = prop_oneof![3 => Just(Ties::Seeded), 1 => Just(Ties::PortOrder), 1 => Just(Ties::ArrivalsFirst)];
    let end = prop_oneof![(100u64..2_000).prop_map(Time::from_us), Just(Time::from_ms(20))];
    let others = prop_oneof![1 => Just(Vec::new()), 1 => proptest::collection::vec((0u32..100, switch()), 1..4)];
    let applications = prop_oneof![2 => Just(Vec::new()), 1 => proptest::collection::vec(application(), 1..4)];
    let traffic = (kinds, flows, applications);
    (fabric(), switch(), host(), traffic, failures, any::<u64>(), ties, end, others).prop_map(
        |(topology, switch, host, (kinds, flows, applications), failures, seed, ties, end, others)| Case {
            topology,
            switch,
            host,
            kinds,
            flows,
            applications,
            failures,
            seed,
            ties,
            end,
            others,
        },
    )
}

fn cases() -> u32 {
    if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { CASES }
}

#[test]
fn the_fabrics_show_what_can_go_wrong() {
    let mut runner = TestRunner::deterministic();
    let mut sum = Totals::default();
    let (mut timeouts, mut again, mut reordered, mut incomplete) = (0, 0, 0, 0);
    for _ in 0..250 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        let outcome = simulate(case.config(1)).expect("a configuration that can be run");
        sum.drops += outcome.totals.drops;
        sum.trims += outcome.totals.trims;
        sum.lost += outcome.totals.lost;
        sum.marks_edge += outcome.totals.marks_edge;
        sum.marks_fabric += outcome.totals.marks_fabric;
        incomplete += u32::from(!outcome.complete);
        for flow in &outcome.flows {
            timeouts += flow.timeouts;
            again += flow.retransmitted_bytes;
            reordered += flow.reordered_packets;
        }
    }
    println!("{sum:?} {timeouts} timeouts, {again} B again, {reordered} reordered, {incomplete} incomplete");
    assert!(sum.trims > 500 && sum.drops > 100 && sum.lost > 100 && sum.marks_edge > 100 && sum.marks_fabric > 50);
    assert!(timeouts > 100 && again > 100_000 && reordered > 100 && (1..250).contains(&incomplete));
}

/// A resume arrives at the instant at which the transmission of a pause frame ends. With `arrivals-first` the link is
/// busy then, and a frame of flow control that waits goes before data.
#[test]
fn a_link_is_busy_until_the_end_of_its_transmission_has_come() {
    let mut text = String::from("host first\nhost second\nhost third\nswitch s0\nswitch s1\n");
    let near = ("s1", "s0", "5ns");
    for (a, b, delay) in
        [("first", "s0", "1us"), ("second", "s1", "1us"), ("third", "s1", "1us"), near, ("s0", "s1", "1us")]
    {
        let _ = writeln!(text, "link {a} {b} 100Gbps {delay} 0");
    }
    let wish = |source, bytes| Wish { start: Time::ZERO, source, destination: 0, bytes, class: 0 };
    let threshold = Threshold::Static { xoff: Size::Bytes(100), xon: Some(Size::Bytes(0)) };
    let scheduler = Scheduler::Credit(WindowCredit { ahead: 0, priority: None });
    let case = Case {
        topology: Fabric(parse(&text).expect("a good file")),
        switch: SwitchConfig {
            priorities: 4,
            pfc: Some(Pfc { headroom: Headroom::Bytes(962), frame: 122, strict: false, ..Pfc::new(threshold) }),
            ..SwitchConfig::plain()
        },
        host: HostConfig { rto_min: Time::from_us(5), schedulers: vec![scheduler], ..HostConfig::plain(256) },
        kinds: vec![Kind {
            law: "dctcp",
            parameters: vec![("initial_window".to_owned(), Raw::Text("1B".to_owned()))],
            recovery: Recovery::SelectiveRepeat,
            priority: 0,
            ack_priority: None,
            trimmable: false,
            underlay: None,
        }],
        flows: vec![wish(0, 1), wish(2, 1), wish(2, 14_314), wish(2, 6_817)],
        applications: Vec::new(),
        failures: Vec::new(),
        seed: 9_776_799_262_522_156_140,
        ties: Ties::ArrivalsFirst,
        end: Time::from_us(100),
        others: Vec::new(),
    };
    let outcome = simulate(case.config(1)).expect("a configuration that can be run");
    assert_eq!(Summary::of(&outcome).difference(&incast_reference::simulate(case.config(1))), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_simulator(case in case()) {
        prop_assert!(incast_reference::covers(&case.config(1)));
        let outcome = simulate(case.config(1)).expect("a configuration that can be run");
        let fast = Summary::of(&outcome);
        prop_assert_eq!(fast.difference(&incast_reference::simulate(case.config(1))), None);
        for flow in &outcome.flows {
            // A packet behind others may end a picosecond earlier on each link, where its time is no whole number of them.
            let took = flow.delivered.map(|delivered| delivered - flow.start + Time::from_ps(8));
            prop_assert!(took >= flow.ideal || took.is_none(), "faster than alone: {:?}", flow);
        }
        let parallel = simulate(case.config(2)).expect("a configuration that can be run");
        prop_assert_eq!(&fast, &Summary::of(&parallel));
        prop_assert_eq!(outcome.digest, parallel.digest);
    }

    #[test]
    fn agrees_on_the_base_round_trip(Fabric(topology) in fabric(), mtu in 64u32..9000) {
        use incast_cc::law::Framing;
        for framing in [Framing::Tcp, Framing::RoceV2, Framing::RoceV2Int, Framing::InfiniBand] {
            let format = Format::of(framing);
            let path = base_path(&topology, mtu, framing);
            let (data, control) = (format.data(mtu) + 20, format.control() + 20);
            prop_assert_eq!(path.base_rtt.ps(), incast_reference::base_rtt(&topology, data, control));
        }
    }
}

/// A pause frame arrives at an aggregation switch at the instant at which a transmission ends. With `arrivals-first` a
/// packet that arrives then waits, whatever came before it at that instant.
#[test]
fn a_pause_frame_completes_no_transmission() {
    let link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.001 };
    let wish = |start, bytes| Wish { start: Time::from_ps(start), source: 2, destination: 0, bytes, class: 0 };
    let threshold = Threshold::Static { xoff: Size::Bytes(3613), xon: Some(Size::Bytes(0)) };
    let scheduler = Scheduler::Credit(WindowCredit { ahead: 0, priority: None });
    let case = Case {
        topology: Fabric(FatTree { k: 4, link }.build().expect("a topology")),
        switch: SwitchConfig {
            priorities: 1,
            pfc: Some(Pfc { priorities: 183, strict: false, deadlock_after: None, ..Pfc::new(threshold) }),
            ..SwitchConfig::plain()
        },
        host: HostConfig {
            rto_min: Time::from_us(5),
            ack_delay: Time::from_ps(1000),
            reordering: 1,
            schedulers: vec![scheduler],
            ..HostConfig::plain(4096)
        },
        kinds: vec![Kind {
            law: "dctcp",
            parameters: vec![("initial_window".to_owned(), Raw::Text("28672B".to_owned()))],
            recovery: Recovery::SelectiveRepeat,
            priority: 0,
            ack_priority: None,
            trimmable: false,
            underlay: None,
        }],
        flows: vec![wish(0, 69_632), wish(12_056_000, 1)],
        applications: Vec::new(),
        failures: Vec::new(),
        seed: 818_928_379,
        ties: Ties::ArrivalsFirst,
        end: Time::from_us(100),
        others: Vec::new(),
    };
    let fast = Summary::of(&simulate(case.config(1)).expect("a run"));
    assert_eq!(fast.difference(&incast_reference::simulate(case.config(1))), None);
}
