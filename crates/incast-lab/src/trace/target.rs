//! Names of flows and ports, as people type them.

use super::{TraceError, View};
use crate::scenario::tree::nearest::nearest;
use incast_sim::topology::Topology;

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowName {
    /// Its row in `flows.parquet`, from 0.
    Row(u64),
    /// Its columns `source` and `sequence`.
    Flow {
        /// Sending host.
        source: u32,
        /// Number of the flow there.
        sequence: u32,
    },
}

/// Reads `12`, `3:0` or `h3:0`.
///
/// # Errors
/// It is none of these, or there is no such host.
pub fn flow(name: &str, topology: &Topology) -> Result<FlowName, TraceError> {
    let refuse = |message: String| Err(TraceError::Target { option: "--flow", found: name.to_owned(), message });
    let expected = "expected a row of flows.parquet, such as 12, or SOURCE:SEQUENCE, such as 3:0 or h3:0";
    let Some((source, sequence)) = name.split_once(':') else {
        return name.trim().parse().map(FlowName::Row).or_else(|_| refuse(expected.into()));
    };
    let Ok(sequence) = sequence.trim().parse() else { return refuse(expected.into()) };
    let source = source.trim();
    let number = source.parse().ok().or_else(|| topology.find_node(source));
    match number {
        Some(source) if source < topology.hosts => Ok(FlowName::Flow { source, sequence }),
        Some(_) => refuse(format!("{source} is not a host; {}", hosts(topology))),
        None => refuse(format!("there is no host {source}; {}", hosts(topology))),
    }
}

/// Reads `s0->h0`, or `h0` for both directions of that host's link.
///
/// # Errors
/// There is no such port or host.
pub fn port(name: &str, topology: &Topology) -> Result<View, TraceError> {
    let refuse = |message: String| Err(TraceError::Target { option: "--port", found: name.to_owned(), message });
    let expected = "expected a port, such as s0->h0, or a host, such as h0, for both directions of its link";
    let meant = |name: &str| {
        let near = nearest(name, topology.names.iter().map(String::as_str));
        near.map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"))
    };
    if let Some((node, port)) = topology.find_port(name) {
        return Ok(View::Port(node, port));
    }
    match name.split_once("->") {
        None => match topology.find_node(name) {
            Some(host) if host < topology.hosts => Ok(View::Host(host)),
            Some(node) => {
                let ports = topology.ports();
                let some = (0..ports.of(node).len() as u16).filter_map(|port| ports.name(topology, node, port));
                refuse(format!("a switch has several ports: {}", list(some, ports.of(node).len())))
            }
            None => refuse(format!("{expected}{}", meant(name))),
        },
        Some((from, to)) => {
            let (to, _) = to.split_once('#').unwrap_or((to, ""));
            match [from, to].into_iter().find(|end| topology.find_node(end).is_none()) {
                Some(end) => refuse(format!("there is no node {end}{}", meant(end))),
                None => {
                    let node = topology.find_node(from).unwrap_or(0);
                    let ports = topology.ports();
                    let some = (0..ports.of(node).len() as u16).filter_map(|port| ports.name(topology, node, port));
                    refuse(format!("no such port; {from} has {}", list(some, ports.of(node).len())))
                }
            }
        }
    }
}

fn hosts(topology: &Topology) -> String {
    let names = &topology.names;
    match topology.hosts {
        0 | 1 => names.first().cloned().unwrap_or_default(),
        hosts => format!("hosts are 0 to {} ({} to {})", hosts - 1, names[0], names[hosts as usize - 1]),
    }
}

/// The first few.
fn list(names: impl Iterator<Item = String>, count: usize) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.take(SHOWN).collect();
    let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::topology::{LeafSpine, Link};
    use incast_units::{Rate, Time};

    fn topology() -> Topology {
        let link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.0 };
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link: link, fabric_link: link, fabric_links: 1 }
            .build()
            .expect("a good topology")
    }

    #[test]
    fn names_are_read() {
        let topology = topology();
        assert_eq!(flow("12", &topology).expect("a row"), FlowName::Row(12));
        let three = FlowName::Flow { source: 3, sequence: 1 };
        assert_eq!(flow("3:1", &topology).expect("a flow"), three);
        assert_eq!(flow("h3:1", &topology).expect("a flow"), three);
        assert_eq!(port("h3", &topology).expect("a host"), View::Host(3));
        assert_eq!(port("leaf0->h1", &topology).expect("a port"), View::Port(4, 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_allowed() {
        let topology = topology();
        let of_flow = |name| flow(name, &topology).expect_err("refused").to_string();
        let of_port = |name| port(name, &topology).expect_err("refused").to_string();
        for wrong in ["", "x", "-1", "1:", ":1", "1:x", "1:-1", "1.5"] {
            assert!(flow(wrong, &topology).is_err(), "{wrong}");
        }
        assert!(of_flow("4:0").contains("hosts are 0 to 3 (h0 to h3)"));
        assert!(of_flow("leaf0:0").contains("leaf0 is not a host"));
        assert!(of_port("leaf0").contains("leaf0->h0"));
        assert!(of_port("laef0->h0").contains("did you mean \"leaf0\""));
        assert!(of_port("leaf0->h3").contains("leaf0 has leaf0->h0, leaf0->h1"));
        assert!(of_port("leaf0->h0#1").contains("no such port"));
        assert!(of_port("").contains("expected a port"));
    }
}
