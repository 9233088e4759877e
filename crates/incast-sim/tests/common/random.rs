//! Random small fabrics and traffic, for the property tests of lossless ones.

use incast_sim::{
    FlowSpec,
    topology::{Chain, Dumbbell, LeafSpine, Link, Ring, SingleSwitch, Topology},
};
use incast_units::{Rate, Time};
use proptest::prelude::*;

/// A class by its law and priorities.
pub type Kind = (&'static str, u8, Option<u8>);

fn link() -> impl Strategy<Value = Link> {
    let rate = prop_oneof![
        4 => Just(100_000_000_000u64),
        2 => Just(400_000_000_000),
        2 => Just(25_000_000_000),
        1 => Just(56_000_000_000),
        1 => Just(7_777_777_777),
    ];
    let delay = prop_oneof![
        4 => Just(1_000_000u64),
        1 => Just(20_000_000),
        1 => Just(1),
        2 => 1u64..3_000_000,
    ];
    (rate, delay).prop_map(|(rate, delay)| Link { rate: Rate::from_bps(rate), delay: Time::from_ps(delay), loss: 0.0 })
}

/// A topology; of 9 + `rings` so many are rings.
pub fn topology(rings: u32) -> impl Strategy<Value = Topology> {
    let count = || 1u32..4;
    let parallel = || prop_oneof![3 => Just(1u32), 1 => 2u32..4];
    prop_oneof![
        3 => (3u32..12, link()).prop_map(|(hosts, link)| SingleSwitch { hosts, link }.build()),
        2 => (1u32..6, 1u32..4, link(), link())
            .prop_map(|(left, right, host_link, bottleneck)| Dumbbell { left, right, host_link, bottleneck }.build()),
        3 => (2u32..4, count(), 2u32..5, link(), link(), parallel()).prop_map(
            |(leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links)| {
                LeafSpine { leaves, spines, hosts_per_leaf, host_link, fabric_link, fabric_links }.build()
            }
        ),
        1 => (2u32..5, count(), link(), link()).prop_map(|(switches, hosts_per_switch, host_link, fabric_link)| {
            Chain { switches, hosts_per_switch, host_link, fabric_link }.build()
        }),
        rings => (3u32..7, count(), link(), link()).prop_map(|(switches, hosts_per_switch, host_link, fabric_link)| {
            Ring { switches, hosts_per_switch, host_link, fabric_link }.build()
        }),
    ]
    .prop_map(|topology| topology.expect("a good topology"))
}

/// A flow of one of three classes, most of them to host 0; [`placed`] finds it hosts.
pub fn flow() -> impl Strategy<Value = FlowSpec> {
    let start = prop_oneof![3 => Just(0u64), 2 => 0u64..200_000];
    let bytes = prop_oneof![1 => 1u64..5_000, 3 => 1u64..400_000];
    let destination = prop_oneof![3 => Just(0u32), 1 => 0u32..30];
    (start, 0u32..30, destination, bytes, 0u16..3).prop_map(|(start, source, destination, bytes, class)| FlowSpec {
        start: Time::from_ns(start),
        class,
        ..super::flow(source, destination, bytes)
    })
}

/// A flow between two of the hosts there are, in one of the classes there are.
pub fn placed(flow: &FlowSpec, hosts: u32, classes: usize) -> FlowSpec {
    let (source, destination) = (flow.source % hosts, flow.destination % hosts);
    let destination = if source == destination { (source + 1) % hosts } else { destination };
    FlowSpec { source, destination, class: flow.class % classes as u16, ..*flow }
}
