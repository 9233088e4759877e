//! `fct.txt`: completion times in the format of HPCC's ns-3 simulator, for the scripts of its users.
//!
//! One line for each flow of which all is acknowledged, in the order of the last acknowledgements:
//! `sip dip sport dport size start fct standalone`, addresses in hexadecimal, times in nanoseconds. Source ports start
//! at 10000 for each pair of hosts. The destination port identifies the class: see [`port_of`].

use crate::standalone::Standalone;
use incast_sim::{outcome::FlowRecord, topology::Topology};
use incast_units::Time;
use std::{collections::BTreeMap, fmt::Write};

/// First source port of a pair of hosts.
const FIRST_PORT: u64 = 10_000;

/// A writer of the file.
#[derive(Debug)]
pub struct FctTxt {
    standalone: Standalone,
    payload: u64,
    origin: Time,
    /// Addresses by host.
    addresses: Vec<u32>,
}

impl FctTxt {
    /// For runs on a fabric with `payload` bytes in a full packet. `origin` is added to all starts.
    pub fn new(topology: &Topology, payload: u32, origin: Time) -> Self {
        let hosts = topology.names.iter().take(topology.hosts as usize);
        Self {
            standalone: Standalone::new(topology, payload.into()),
            payload: payload.into(),
            origin,
            addresses: hosts.zip(0..).map(|(name, host)| address(name, host)).collect(),
        }
    }

    /// The whole file. Class names are by the index that flows have.
    pub fn write(&self, flows: &[FlowRecord], classes: &[String]) -> String {
        let mut ports: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut rows: Vec<(Time, u64, &FlowRecord)> = Vec::new();
        for flow in flows {
            let port = ports.entry((flow.source, flow.destination)).or_insert(FIRST_PORT);
            if let Some(acked) = flow.acked {
                rows.push((acked, *port, flow));
            }
            *port += 1;
        }
        // A stable sort: flows acknowledged at the same time stay in the order of their sources.
        rows.sort_by_key(|(acked, ..)| *acked);
        let mut paths = BTreeMap::new();
        let mut text = String::new();
        for (acked, port, flow) in rows {
            let paths = paths.entry(flow.source).or_insert_with(|| self.standalone.from(flow.source));
            let path = paths.get(flow.destination as usize).copied().flatten();
            let address = |host: u32| self.addresses.get(host as usize).copied().unwrap_or_default();
            let class = classes.get(usize::from(flow.class)).map_or("", String::as_str);
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{:08x} {:08x} {port} {} {} {} {} {}",
                address(flow.source),
                address(flow.destination),
                port_of(class),
                flow.bytes,
                flow.start.saturating_add(self.origin).ps() / 1000,
                acked.saturating_sub(flow.start).ps() / 1000,
                path.map_or(0, |path| path.standalone_ns(flow.bytes, self.payload)),
            );
        }
        text
    }
}

/// The destination port of a class: 200 of `incast`, N of `dport-N`, 100 of others.
pub fn port_of(class: &str) -> u16 {
    match class {
        "incast" => 200,
        _ => class.strip_prefix("dport-").and_then(|port| port.parse().ok()).unwrap_or(100),
    }
}

/// The number at the end of a node's name, or its index if there is none.
pub fn number(name: &str, node: u32) -> u32 {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[name.len() - digits..].parse().unwrap_or(node)
}

/// 11.x.y.1, where x and y are the high and the low byte of the host's number.
fn address(name: &str, host: u32) -> u32 {
    let id = number(name, host);
    0x0b00_0001u32.wrapping_add((id / 256) << 16).wrapping_add((id % 256) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::topology::{Link, SingleSwitch};
    use incast_units::Rate;

    #[test]
    fn addresses_are_those_of_the_peer() {
        assert_eq!(address("h179", 3), 0x0b00_b301);
        assert_eq!(address("h257", 3), 0x0b01_0101);
        assert_eq!(address("server", 3), 0x0b00_0301);
        assert_eq!(address("h99999999999", 3), 0x0b00_0301, "too large for a number");
    }

    #[test]
    fn lines_are_those_of_the_peer() {
        let link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.0 };
        let star = SingleSwitch { hosts: 4, link }.build().expect("a star");
        let flow = |source, sequence, start_us, fct_ns: Option<u64>| FlowRecord {
            source,
            sequence,
            destination: 1,
            bytes: 500_000,
            start: Time::from_us(start_us),
            acked: fct_ns.map(|ns| Time::from_us(start_us) + Time::from_ns(ns)),
            ..FlowRecord::default()
        };
        let flows =
            [flow(2, 0, 0, Some(100_285)), flow(2, 1, 1, None), flow(2, 2, 2, Some(1)), flow(3, 0, 0, Some(89_516))];
        let text = FctTxt::new(&star, 1000, Time::from_ms(2000)).write(&flows, &["incast".to_owned()]);
        let expected = "\
            0b000201 0b000101 10002 200 500000 2000002000 1 46080\n\
            0b000301 0b000101 10000 200 500000 2000000000 89516 46080\n\
            0b000201 0b000101 10000 200 500000 2000000000 100285 46080\n";
        assert_eq!(text, expected);
    }
}
