//! What every topology must satisfy.

use super::{Link, Node, Rule, Topology, TopologyError, salted_hash, tables};
use incast_units::{Rate, Time};
use std::collections::{BTreeSet, VecDeque};

/// 100 Gbps, 1 us, no loss.
pub(crate) fn link() -> Link {
    Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.0 }
}

/// The key that an error names.
pub(crate) fn key_of(result: Result<Topology, TopologyError>) -> &'static str {
    match result {
        Err(TopologyError::Value { key, .. }) => key,
        other => panic!("expected a value error, found {other:?}"),
    }
}

/// Hops from every node to a host, by a search over all nodes that does not look at the rules.
fn hops_to(topology: &Topology, host: Node) -> Vec<Option<u32>> {
    let ports = topology.ports();
    let mut hops = vec![None; topology.nodes() as usize];
    hops[host as usize] = Some(0);
    let mut queue = VecDeque::from([host]);
    while let Some(node) = queue.pop_front() {
        if node < topology.hosts && node != host {
            continue;
        }
        let next = hops[node as usize].map(|hops| hops + 1);
        for end in ports.of(node) {
            if hops[end.peer as usize].is_none() {
                hops[end.peer as usize] = next;
                queue.push_back(end.peer);
            }
        }
    }
    hops
}

/// Checks the numbering of nodes and ports, and that every rule leads from everywhere to every host by all shortest
/// paths and by no others.
pub(crate) fn verify(topology: &Topology) {
    let ports = topology.ports();
    let unique: BTreeSet<_> = topology.names.iter().collect();
    assert_eq!(unique.len(), topology.names.len(), "names are unique");
    assert_eq!(topology.rules.len() as u32, topology.switches());
    assert!(topology.is_connected());
    assert_eq!(topology.unreachable_pairs(), 0);
    assert_eq!(ports.total(), 2 * topology.cables.len());
    for host in 0..topology.hosts {
        assert_eq!(topology.names[host as usize], format!("h{host}"));
        assert_eq!(ports.of(host).len(), 1);
        assert_eq!(ports.of(host)[0].cable, host);
        assert_eq!(topology.edge_of(host), Some(ports.of(host)[0].peer));
        assert!(host == 0 || topology.edge_of(host) >= topology.edge_of(host - 1), "contiguous per edge switch");
    }
    let tiers = topology.tiers();
    for node in 0..topology.nodes() {
        if node >= topology.hosts && node < topology.hosts + 50 {
            assert_eq!(tiers[(node - topology.hosts) as usize], topology.tier(node));
        }
        for (port, end) in ports.of(node).iter().enumerate() {
            let back = ports.end(end.peer, end.peer_port).unwrap();
            assert_eq!((back.peer, usize::from(back.peer_port), back.cable), (node, port, end.cable));
            assert_eq!(ports.at(node, end.cable as usize), Some(port as u16));
        }
    }

    let tables = tables(topology, &|_| false).unwrap();
    for host in 0..topology.hosts {
        let hops = hops_to(topology, host);
        for switch in topology.hosts..topology.nodes() {
            let index = (switch - topology.hosts) as usize;
            let nearer = |port: &usize| {
                hops[switch as usize].is_some()
                    && hops[ports.of(switch)[*port].peer as usize].map(|h| h + 1) == hops[switch as usize]
            };
            let expected: Vec<u16> = (0..ports.of(switch).len())
                .filter(nearer)
                .filter(|port| {
                    let peer = ports.of(switch)[*port].peer;
                    peer >= topology.hosts || peer == host
                })
                .map(|port| port as u16)
                .collect();
            let rule = &topology.rules[index];
            assert_eq!(
                rule.alternatives(host).collect::<Vec<_>>(),
                expected,
                "{} to h{host}",
                topology.names[switch as usize]
            );
            assert_eq!(tables[index].of(host), expected);
            let table = Rule::Table(tables[index].clone());
            for salt in 0..4 {
                let bits = salted_hash(host, salt);
                assert_eq!(rule.pick(host, bits), table.pick(host, bits));
            }
        }
        for source in (0..topology.hosts).filter(|source| *source != host) {
            for flow in 0..3 {
                let mut at = ports.of(source)[0].peer;
                let mut taken = 1;
                while at != host {
                    let rule = &topology.rules[(at - topology.hosts) as usize];
                    let port = rule.pick(host, salted_hash(source ^ flow, at)).unwrap();
                    at = ports.end(at, port).unwrap().peer;
                    taken += 1;
                    assert!(taken <= topology.nodes(), "a loop");
                }
                assert_eq!(Some(taken), hops[source as usize]);
            }
        }
    }
    for rule in &topology.rules {
        let all = rule.alternatives(topology.hosts).count();
        assert!(all <= ports.total(), "no panic for a host that does not exist");
    }
}

#[test]
fn pairs_without_a_path_are_counted() {
    let text =
        "host a\nhost b\nhost c\nswitch s\nswitch t\nlink a s 1Gbps 1us\nlink b s 1Gbps 1us\nlink c t 1Gbps 1us\n";
    let topology = super::file::parse(text).unwrap();
    assert_eq!(topology.unreachable_pairs(), 4);
    assert_eq!(topology.unreachable_example(), Some((0, 2)));
    assert!(!topology.is_connected());
}
