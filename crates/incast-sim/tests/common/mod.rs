//! Configurations in few words, for the integration tests.
//!
//! [`config`] gives a run with unlimited buffers, no marking and one class; a test then sets the fields it is
//! about.

// Each test file uses a part of this.
#![allow(dead_code)]

pub mod lossless;
pub mod random;

use incast_cc::{
    Path,
    law::LawInfo,
    parameters::Raw,
    registry::{LAWS, LawParameters, UnderlayParameters},
};
use incast_sim::{
    Config, FlowSpec, Outcome, base_path,
    config::{ClassConfig, HostConfig, LinkEvent, Probes, SwitchConfig, Ties, Wire},
    fabric::format::Format,
    probe::FlowRecord,
    simulate,
    topology::{Chain, Clos3, Dumbbell, FatTree, LeafSpine, Link, Ring, SingleSwitch, Topology, file::parse},
};
use incast_units::{Rate, Time};

/// Payload bytes of a full packet.
pub const MTU: u32 = 4096;
/// What TCP framing, preamble and gap add to a payload on the wire: Ethernet 18, IPv4 20, TCP 32, gap 20.
pub const OVERHEAD: u64 = 18 + 20 + 32 + 20;

/// A link without loss.
pub fn link(gbps: u64, delay: Time) -> Link {
    Link { rate: Rate::from_gbps(gbps), delay, loss: 0.0 }
}

/// What the registry says about a law.
pub fn info(name: &str) -> &'static LawInfo {
    LAWS.iter().find(|law| law.name == name).expect("a known law")
}

/// A class of flows under a law with some of its parameters given.
pub fn class(topology: &Topology, mtu: u32, name: &str, parameters: &[(&str, Raw)]) -> ClassConfig {
    let info = info(name);
    let given: Vec<_> = parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let path = base_path(topology, mtu, info.framing);
    let law = |rate| {
        let law = LawParameters::resolve(name, &Path { rate, ..path }, &given);
        law.expect("a known law").expect("good parameters")
    };
    let others = topology.host_rates().into_iter().filter(|rate| *rate != path.rate);
    let transport = law(path.rate).transport();
    ClassConfig {
        name: name.to_owned(),
        law: law(path.rate),
        law_at: others.map(|rate| (rate, law(rate))).collect(),
        format: Format::of(info.framing),
        recovery: info.recovery,
        priority: transport.priority,
        ack_priority: transport.control_priority,
        notification_priority: 0,
        underlay: UnderlayParameters::None,
        scheduler: None,
        trimmable: transport.trimmable,
    }
}

/// A parameter that is a size, a rate or a time.
pub fn text(value: &str) -> Raw {
    Raw::Text(value.to_owned())
}

/// A run of flows under one law, with receivers that drive them if it is a receiver-driven one.
pub fn config(topology: Topology, law: &str, parameters: &[(&str, Raw)]) -> Config {
    let class = class(&topology, MTU, law, parameters);
    let path = base_path(&topology, MTU, info(law).framing);
    let receiver = class.law.receiver(&path);
    let priorities = (class.priority + 1).max(receiver.priorities());
    let mut config = Config {
        topology,
        switch: SwitchConfig { priorities, ..SwitchConfig::plain() },
        host: HostConfig::plain(MTU),
        classes: vec![class],
        flows: Vec::new(),
        applications: Vec::new(),
        link_events: Vec::new(),
        clocks: Vec::new(),
        probes: Probes::default(),
        seed: 1,
        end: Time::from_ms(1000),
        threads: 1,
        ties: Ties::Seeded,
        wire: Wire::default(),
    };
    if !receiver.is_none() {
        config.drive(receiver);
    }
    config
}

/// A run in which no window ever limits a flow.
pub fn unlimited(topology: Topology) -> Config {
    config(topology, "constant-window", &[("window", text("1GB"))])
}

/// A flow of class 0 from the start on.
pub fn flow(source: u32, destination: u32, bytes: u64) -> FlowSpec {
    let (start, request) = (Time::ZERO, FlowSpec::NO_REQUEST);
    FlowSpec { start, source, destination, bytes, class: 0, request, pinned: None }
}

/// A cable, by name, that goes down or up.
pub fn link_event(topology: &Topology, at: Time, name: &str, up: bool) -> LinkEvent {
    LinkEvent { at, cable: topology.find_cable(name).expect("a known cable"), up }
}

/// Runs it and checks what is true of every run.
pub fn run(config: Config) -> Outcome {
    let outcome = simulate(config).expect("a configuration that can be run");
    conserved(&outcome);
    outcome
}

/// Every byte that entered the network left it in a known way.
pub fn conserved(outcome: &Outcome) {
    let totals = &outcome.totals;
    assert_eq!(
        totals.injected_bytes + totals.created_bytes,
        totals.received_bytes
            + totals.consumed_bytes
            + totals.dropped_bytes
            + totals.lost_bytes
            + totals.trimmed_bytes
            + totals.left_bytes,
        "{totals:?}"
    );
}

/// Every flow was delivered and acknowledged, exactly.
pub fn delivered(outcome: &Outcome) {
    assert!(outcome.complete);
    for flow in &outcome.flows {
        assert!(flow.delivered.is_some() && flow.delivered <= flow.acked, "{flow:?}");
        assert_eq!(flow.delivered_bytes, flow.bytes, "{flow:?}");
    }
}

/// A small fabric of every kind, at 100 Gbps and 1 us.
pub fn every_topology() -> Vec<Topology> {
    let link = link(100, Time::from_us(1));
    let fast = Link { rate: Rate::from_gbps(400), ..link };
    let slow = Link { rate: Rate::from_gbps(40), ..link };
    let built = [
        SingleSwitch { hosts: 6, link }.build(),
        Dumbbell { left: 3, right: 3, host_link: link, bottleneck: slow }.build(),
        LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link, fabric_links: 1 }
            .build(),
        FatTree { k: 4, link }.build(),
        Clos3 {
            pods: 2,
            tors_per_pod: 2,
            aggs_per_pod: 2,
            cores: 2,
            hosts_per_tor: 2,
            host_link: link,
            tor_agg_link: fast,
            agg_core_link: fast,
            tor_agg_links: 1,
            agg_core_links: 1,
        }
        .build(),
        Chain { switches: 4, hosts_per_switch: 2, host_link: link, fabric_link: link }.build(),
        Ring { switches: 5, hosts_per_switch: 2, host_link: link, fabric_link: link }.build(),
        parse(DIAMOND),
    ];
    built.into_iter().map(|topology| topology.expect("a good topology")).collect()
}

/// Two racks with two ways between them, one of 56 Gbps: not a whole number of picoseconds per byte.
pub const DIAMOND: &str = "
    host a0
    host a1
    host b0
    host b1
    switch left
    switch up
    switch down
    switch right
    link a0 left 100Gbps 1us
    link a1 left 100Gbps 1us
    link b0 right 100Gbps 1us
    link b1 right 100Gbps 1us
    link left up 56Gbps 2us
    link up right 56Gbps 2us
    link left down 100Gbps 1us
    link down right 100Gbps 1us
";

/// Hosts around one switch, with links of 100 Gbit/s and 1 us.
pub fn star(hosts: u32) -> Topology {
    SingleSwitch { hosts, link: link(100, Time::from_us(1)) }.build().expect("a good topology")
}

/// Hosts around one switch: h0 to h3 with links of 100 Gbit/s, h4 to h7 with 10 Gbit/s.
pub fn two_rates() -> Topology {
    let mut text = String::from("switch s\n");
    for host in 0..8 {
        let rate = if host < 4 { 100 } else { 10 };
        text += &format!("host h{host}\nlink h{host} s {rate}Gbps 1us\n");
    }
    parse(&text).expect("a good topology")
}

/// Flows among the hosts of [`two_rates`], one at a time: each rate to each, of sizes below, between and above what
/// both send blindly, and one packet.
pub fn between_rates() -> Vec<FlowSpec> {
    let mut flows = Vec::new();
    for bytes in [1_000, 9_000, 20_000, 40_000, 90_000, 700_000] {
        for (source, destination) in [(0, 1), (0, 4), (4, 0), (4, 5)] {
            let start = Time::from_us(2_000 * flows.len() as u64);
            flows.push(FlowSpec { start, ..flow(source, destination, bytes) });
        }
    }
    flows
}

/// Two hosts, each at a leaf of its own, with two ways between them.
pub fn two_spines() -> Topology {
    let link = link(100, Time::from_us(1));
    let fabric =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 1, host_link: link, fabric_link: link, fabric_links: 1 };
    fabric.build().expect("a good topology")
}

/// How long a flow took.
pub fn took(flow: &FlowRecord) -> Time {
    flow.delivered.expect("it was delivered") - flow.start
}

/// How long it would have taken alone.
pub fn ideal(flow: &FlowRecord) -> Time {
    flow.ideal.expect("it has a route")
}
