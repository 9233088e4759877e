//! The path of a fabric, as laws see it.

use super::config::{ClassConfig, Config};
use crate::{
    fabric::{config::Wire, format::Format},
    packet::GAP,
    settings::host::HostConfig,
    switch::config::SwitchConfig,
    topology::{Topology, ideal},
};
use incast_cc::{Path, law::Framing, path::DEFAULT_RTO_MIN};
use incast_units::{Rate, Time};

/// The parts of a configuration on which paths and flow control depend.
#[derive(Clone, Copy, Debug)]
pub struct Fabric<'a> {
    /// Nodes and cables.
    pub topology: &'a Topology,
    /// All switches.
    pub switch: &'a SwitchConfig,
    /// All hosts.
    pub host: &'a HostConfig,
    /// Flow classes.
    pub classes: &'a [ClassConfig],
    /// All links.
    pub wire: Wire,
}

impl<'a> From<&'a Config> for Fabric<'a> {
    fn from(config: &'a Config) -> Self {
        let Config { topology, switch, host, classes, wire, .. } = config;
        Self { topology, switch, host, classes, wire: *wire }
    }
}

/// The path as laws see it: the rate of the fastest NIC, the longest round trip, and the shortest way.
///
/// `mtu` is the payload of a full packet in bytes. The hosts' smallest retransmission timeout is
/// [`DEFAULT_RTO_MIN`](incast_cc::path::DEFAULT_RTO_MIN).
pub fn base_path(topology: &Topology, mtu: u32, framing: Framing) -> Path {
    base_path_of(topology, mtu, DEFAULT_RTO_MIN, &Format::of(framing), GAP)
}

/// As [`base_path`], for hosts with another smallest timeout and frames of other sizes with `gap` bytes between them.
pub fn base_path_of(topology: &Topology, mtu: u32, rto_min: Time, format: &Format, gap: u32) -> Path {
    let wire_mss = format.data(mtu) + gap;
    let rate = topology.host_rates().first().copied().unwrap_or(Rate::from_gbps(1));
    let base_rtt = ideal::max_base_rtt(topology, wire_mss, format.control() + gap);
    let least_delay = ideal::min_one_way(topology, wire_mss);
    Path { rate, base_rtt, least_delay, mss: mtu, wire_mss, rto_min }
}

/// The largest base RTT of all classes, to which sizes in BDP are relative.
pub fn base_rtt(fabric: Fabric<'_>) -> Time {
    base_paths(fabric).into_iter().map(|path| path.base_rtt).max().unwrap_or(Time::ZERO)
}

/// That of each class, computed once for all classes of one format.
pub(super) fn base_paths(fabric: Fabric<'_>) -> Vec<Path> {
    let Fabric { topology, host, classes, wire, .. } = fabric;
    let mut paths: Vec<Path> = Vec::new();
    for class in classes {
        let known = classes.iter().zip(&paths).find(|(other, _)| other.format == class.format);
        paths.push(match known {
            Some((_, path)) => *path,
            None => base_path_of(topology, host.mtu, host.rto_min, &class.format, wire.gap),
        });
    }
    paths
}
