//! A flow that is alone takes exactly as long as arithmetic says, on every kind of fabric.

use crate::common::{self, DIAMOND, MTU, OVERHEAD, flow, link};
use incast_sim::{
    Config,
    topology::{
        Chain, Clos3, Dumbbell, FatTree, LeafSpine, Link, Ring, SingleSwitch, Topology, TopologyError, file::parse,
    },
};
use incast_units::Time;

/// 1 byte, around one packet, and many packets with a full and with a short last one.
const SIZES: [u64; 8] =
    [1, MTU as u64 - 1, MTU as u64, MTU as u64 + 1, 3 * MTU as u64, 100 * MTU as u64 + 1, 1_000_000, 1_234_567];

fn of(gbps: u64, ns: u64) -> Link {
    link(gbps, Time::from_ns(ns))
}

/// Pairs of hosts with the links between them, in order.
type Paths = Vec<(u32, u32, Vec<Link>)>;

/// Exact completion in units of 1/(7·8) ps, in which a byte takes a whole number at every rate used here.
///
/// Packet p leaves link h one transmission after it has arrived there and packet p - 1 has left.
fn exact(links: &[Link], bytes: u64) -> u128 {
    let unit = |link: &Link| {
        let scaled = 8_000_000_000_000u128 * UNIT;
        assert_eq!(scaled % u128::from(link.rate.bps()), 0);
        scaled / u128::from(link.rate.bps())
    };
    let mut left_at = vec![0u128; links.len()];
    let (mut rest, mut last) = (bytes, 0);
    while rest > 0 {
        let payload = rest.min(u64::from(MTU));
        rest -= payload;
        let wire = u128::from(payload + OVERHEAD);
        last = 0;
        for (link, left_at) in links.iter().zip(&mut left_at) {
            *left_at = last.max(*left_at) + wire * unit(link);
            last = *left_at + u128::from(link.delay.ps()) * UNIT;
        }
    }
    last
}
const UNIT: u128 = 56;

/// Where the last link is one of the slowest: the first packet's path, then one packet after the other on that
/// link.
fn closed(links: &[Link], bytes: u64) -> Option<u64> {
    let costs: Vec<u64> = links.iter().map(|link| 8_000_000_000_000 / link.rate.bps()).collect();
    let slowest = costs.iter().copied().max()?;
    if costs.last() != Some(&slowest) || links.iter().any(|link| 8_000_000_000_000 % link.rate.bps() != 0) {
        return None;
    }
    let delay: u64 = links.iter().map(|link| link.delay.ps()).sum();
    let sum: u64 = costs.iter().sum();
    let (full, rest) = (bytes / u64::from(MTU), bytes % u64::from(MTU));
    let of_full = u64::from(MTU) + OVERHEAD;
    let last = if rest > 0 { rest + OVERHEAD } else { 0 };
    Some(delay + if full == 0 { last * sum } else { of_full * (sum + (full - 1) * slowest) + last * slowest })
}

fn check(topology: Result<Topology, TopologyError>, paths: Paths) {
    let topology = topology.expect("a good topology");
    for (source, destination, links) in paths {
        for bytes in SIZES {
            for law in ["constant-window", "constant-rate"] {
                let mut config: Config = match law {
                    "constant-window" => common::unlimited(topology.clone()),
                    _ => common::config(topology.clone(), law, &[]),
                };
                // Not at time zero, and not at a multiple of anything.
                let start = Time::from_ps(1_234_567);
                config.flows = vec![incast_sim::FlowSpec { start, ..flow(source, destination, bytes) }];
                let what = format!("{law}, {}, {source} to {destination}, {bytes} B", topology.kind);
                let outcome = common::run(config);
                common::delivered(&outcome);
                let record = &outcome.flows[0];
                let took = record.delivered.map(|delivered| delivered - record.start);
                assert_eq!(took, record.ideal, "{what}");
                let took = took.map_or(0, Time::ps);
                let expected = exact(&links, bytes);
                if links.iter().all(|link| link.rate.bps() != 56_000_000_000) {
                    assert_eq!(u128::from(took) * UNIT, expected, "{what}");
                } else {
                    // Each hop rounds once.
                    let off = (u128::from(took) * UNIT).abs_diff(expected);
                    assert!(off <= links.len() as u128 * UNIT, "{what}: {off}/56 ps");
                }
                if let Some(closed) = closed(&links, bytes) {
                    assert_eq!(took, closed, "{what}");
                }
            }
        }
    }
}

#[test]
fn single_switch() {
    let link = of(100, 1000);
    check(SingleSwitch { hosts: 3, link }.build(), vec![(0, 2, vec![link; 2]), (2, 1, vec![link; 2])]);
}

#[test]
fn dumbbell_with_a_slow_bottleneck() {
    let (host_link, bottleneck) = (of(100, 500), of(40, 20_000));
    let across = vec![host_link, bottleneck, host_link];
    let paths = vec![(0, 1, vec![host_link; 2]), (0, 2, across.clone()), (3, 1, across)];
    check(Dumbbell { left: 2, right: 2, host_link, bottleneck }.build(), paths);
}

#[test]
fn leaf_spine() {
    let (host_link, fabric_link) = (of(25, 600), of(100, 1300));
    let topology =
        LeafSpine { leaves: 3, spines: 4, hosts_per_leaf: 2, host_link, fabric_link, fabric_links: 1 }.build();
    let across = vec![host_link, fabric_link, fabric_link, host_link];
    check(topology, vec![(0, 1, vec![host_link; 2]), (0, 5, across.clone()), (4, 2, across)]);
}

#[test]
fn fat_tree() {
    let link = of(100, 1000);
    let paths = vec![(0, 1, vec![link; 2]), (0, 2, vec![link; 4]), (0, 15, vec![link; 6])];
    check(FatTree { k: 4, link }.build(), paths);
}

#[test]
fn clos3_with_a_fast_fabric() {
    let (host, tor, core) = (of(100, 1000), of(400, 1000), of(400, 4000));
    let topology = Clos3 {
        pods: 3,
        tors_per_pod: 2,
        aggs_per_pod: 2,
        cores: 4,
        hosts_per_tor: 2,
        host_link: host,
        tor_agg_link: tor,
        agg_core_link: core,
        tor_agg_links: 1,
        agg_core_links: 1,
    };
    let paths = vec![
        (0, 1, vec![host; 2]),
        (0, 3, vec![host, tor, tor, host]),
        (0, 11, vec![host, tor, core, core, tor, host]),
    ];
    check(topology.build(), paths);
}

#[test]
fn chain() {
    let (host_link, fabric_link) = (of(100, 5), of(200, 50_000));
    let topology = Chain { switches: 5, hosts_per_switch: 2, host_link, fabric_link }.build();
    let along = |hops: usize| {
        let mut links = vec![fabric_link; hops + 2];
        (links[0], links[hops + 1]) = (host_link, host_link);
        links
    };
    check(topology, vec![(0, 1, along(0)), (0, 3, along(1)), (9, 0, along(4))]);
}

#[test]
fn ring_goes_the_shorter_way() {
    let (host_link, fabric_link) = (of(100, 1000), of(100, 700));
    let topology = Ring { switches: 5, hosts_per_switch: 1, host_link, fabric_link }.build();
    let one = vec![host_link, fabric_link, host_link];
    let two = vec![host_link, fabric_link, fabric_link, host_link];
    check(topology, vec![(0, 1, one.clone()), (0, 4, one), (0, 2, two.clone()), (0, 3, two)]);
}

#[test]
fn file_with_56_gbps() {
    let (host, slow, slow_up) = (of(100, 1000), of(56, 2000), of(56, 2000));
    // Only the way over `up` is left.
    let text: String = DIAMOND.lines().filter(|line| !line.contains("down")).map(|line| format!("{line}\n")).collect();
    check(parse(&text), vec![(0, 1, vec![host; 2]), (0, 2, vec![host, slow, slow_up, host])]);
}

#[test]
fn all_links_of_56_gbps() {
    let link = of(56, 1000);
    check(FatTree { k: 4, link }.build(), vec![(0, 1, vec![link; 2]), (3, 12, vec![link; 6])]);
}
