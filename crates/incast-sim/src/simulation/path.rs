//! The path of a fabric, as laws see it.

use super::lossless::Fabric;
use crate::{
    fabric::{format::Format, packet::GAP},
    topology::{Topology, ideal},
};
use incast_cc::{Path, law::Framing};
use incast_units::{Rate, Time};

/// The path as laws see it: the rate of the fastest NIC, and the longest round trip.
///
/// `mtu` is the payload of a full packet in bytes. The hosts' smallest retransmission timeout is that of
/// [`crate::config::HostConfig::plain`].
pub fn base_path(topology: &Topology, mtu: u32, framing: Framing) -> Path {
    base_path_of(topology, mtu, &Format::of(framing), GAP)
}

/// As [`base_path`], for frames of other sizes with `gap` bytes between them.
pub fn base_path_of(topology: &Topology, mtu: u32, format: &Format, gap: u32) -> Path {
    let wire_mss = format.data(mtu) + gap;
    let rate = topology.host_rates().first().copied().unwrap_or(Rate::from_gbps(1));
    let base_rtt = ideal::max_base_rtt(topology, wire_mss, format.control() + gap);
    Path { rate, base_rtt, mss: mtu, wire_mss, rto_min: Time::from_ms(1) }
}

/// That of each class, computed once for all classes of one format.
pub(super) fn base_paths(fabric: Fabric<'_>) -> Vec<Path> {
    let Fabric { topology, host, classes, wire, .. } = fabric;
    let mut paths: Vec<Path> = Vec::new();
    for class in classes {
        let known = classes.iter().zip(&paths).find(|(other, _)| other.format == class.format);
        paths.push(match known {
            Some((_, path)) => *path,
            None => base_path_of(topology, host.mtu, &class.format, wire.gap),
        });
    }
    paths
}
