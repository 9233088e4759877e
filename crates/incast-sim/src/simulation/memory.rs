//! How much memory a simulation will take, before it takes it.

use super::base_path;
use crate::config::Config;
use incast_cc::sender::Framing;

/// Bytes that a node takes besides its ports: state of the engine, inboxes, heap blocks.
const PER_NODE: u64 = 6_000;
/// Bytes that a port takes, with its queues at eight priorities.
const PER_PORT: u64 = 700;
/// Bytes that a packet on its way takes: its envelope in a vector that may be half empty, and the slot it leaves.
const PER_PACKET: u64 = 3 * 64;
/// Bytes of a flow: what is known before it starts, its records, its result.
const PER_FLOW: u64 = 420;

/// An estimate of the peak memory of a simulation in bytes, on the high side.
pub fn estimate_memory(config: &Config) -> u64 {
    let topology = &config.topology;
    let path = base_path(topology, config.host.mtu, Framing::Tcp);
    let per_bdp = path.bdp().get() / u64::from(config.host.mtu.max(1)) + 2;
    // Data and acknowledgements of a window and a queue of the same size, from every host.
    let in_flight = u64::from(topology.hosts) * per_bdp * 4;
    u64::from(topology.nodes()) * PER_NODE
        + topology.cables.len() as u64 * 2 * PER_PORT
        + in_flight * PER_PACKET
        + config.flows.len() as u64 * PER_FLOW
}
