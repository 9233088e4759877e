//! Frames of other sizes, other gaps, times in whole nanoseconds, and ways that senders choose.

use crate::common::{self, delivered, flow, link, star, unlimited};
use incast_sim::{
    Config, FlowSpec,
    config::{LoadBalancing, Wire},
    fabric::format::Format,
    routing::{Pinned, pin},
    topology::{Clos3, FatTree, Topology},
};
use incast_units::{Rounding, Time};

/// The habits of HPCC's ns-3 simulator.
fn lineage(topology: Topology) -> Config {
    let mut config = unlimited(topology);
    config.host.mtu = 1000;
    config.wire = Wire { gap: 0, rounding: Rounding::WholeNanoseconds };
    config.classes[0].format = Format { header: 48, control: 60, notification: 60, smallest: 1, blocks: false };
    config
}

#[test]
fn single_flows_take_what_they_take_in_hpccs_simulator() {
    let far = Clos3 {
        pods: 2,
        tors_per_pod: 1,
        aggs_per_pod: 1,
        cores: 1,
        hosts_per_tor: 1,
        host_link: link(100, Time::from_us(1)),
        tor_agg_link: link(400, Time::from_us(1)),
        agg_core_link: link(400, Time::from_us(1)),
        tor_agg_links: 1,
        agg_core_links: 1,
    };
    // 83 ns for 1,048 B at 100 Gbps and 20 ns at 400 Gbps; 4 ns and 1 ns for an acknowledgement.
    let near = 4_000 + 2 * (83 + 4);
    let across = 12_000 + 2 * (83 + 4) + 4 * (20 + 1);
    for (topology, one_packet) in [(star(2), near), (far.build().expect("a good topology"), across)] {
        for packets in [1, 10, 1000] {
            let mut config = lineage(topology.clone());
            config.flows = vec![flow(0, 1, packets * 1000)];
            let outcome = common::run(config);
            delivered(&outcome);
            let record = &outcome.flows[0];
            assert_eq!(record.acked, Some(Time::from_ns(one_packet + (packets - 1) * 83)), "{packets} packets");
            assert_eq!(record.delivered, record.ideal, "{packets} packets");
        }
    }
}

#[test]
fn gaps_of_paced_flows_are_cut_too() {
    // 1,048 B at 30 Gbps: 279.47 ns.
    let mut config = lineage(star(2));
    let rate = [("rate", common::text("30Gbps"))];
    config.classes = vec![incast_sim::config::ClassConfig {
        format: config.classes[0].format,
        ..common::class(&config.topology, 1000, "constant-rate", &rate)
    }];
    config.flows = vec![flow(0, 1, 11_000)];
    let outcome = common::run(config);
    assert_eq!(outcome.flows[0].delivered, Some(Time::from_ns(10 * 279 + 2_000 + 2 * 83)));
}

#[test]
fn flows_go_where_they_are_pinned() {
    let topology = FatTree { k: 4, link: link(100, Time::from_us(1)) }.build().expect("a good topology");
    let ports = topology.ports();
    let node = |name: &str| topology.find_node(name).expect("a known node");
    let way = |names: &[&str]| {
        let nodes: Vec<u32> = names.iter().map(|name| node(name)).collect();
        pin(&topology, &ports, &nodes).expect("a shortest way")
    };
    let edges: Vec<String> = [0, 15].map(|host| topology.node_name(topology.edge_of(host).expect("an edge"))).into();
    let [first, last] = edges.as_slice() else { panic!("two edges") };
    let names =
        |prefix: &str| topology.names.iter().filter(|name| name.starts_with(prefix)).cloned().collect::<Vec<_>>();
    let (aggs, cores) = (names("agg"), names("core"));
    // Every way from host 0 to host 15 that exists.
    let mut ways = Vec::new();
    for up in &aggs {
        for core in &cores {
            for down in &aggs {
                let path = ["h0", first, up, core, down, last, "h15"];
                let nodes: Vec<u32> = path.iter().map(|name| node(name)).collect();
                if pin(&topology, &ports, &nodes).is_ok() {
                    ways.push((way(&path), way(&path.iter().rev().copied().collect::<Vec<_>>())));
                }
            }
        }
    }
    assert_eq!(ways.len(), 4);
    let finish = |of_first: usize, of_second: usize| {
        let mut config = unlimited(topology.clone());
        config.switch.load_balancing = LoadBalancing::SourceRouted;
        let pinned = |index: usize| Some(Pinned { there: ways[index].0, back: ways[index].1 });
        config.flows = vec![
            FlowSpec { pinned: pinned(of_first), ..flow(0, 15, 1_000_000) },
            FlowSpec { pinned: pinned(of_second), ..flow(1, 14, 1_000_000) },
        ];
        let outcome = common::run(config);
        delivered(&outcome);
        outcome.flows.iter().filter_map(|flow| flow.delivered).max()
    };
    let (apart, together) = (finish(0, 3), finish(2, 2));
    assert!(together > apart.map(|time| time.mul_f64(1.8)), "{apart:?} {together:?}");
}
