//! Why a switch paused a neighbour, and where a chain of pauses began.

use crate::topology::Ports;
use incast_units::Time;
use std::collections::BTreeMap;

/// A switch has decided to pause a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseCause {
    /// When.
    pub time: Time,
    /// The switch.
    pub node: u32,
    /// The port over which the packets came in: that of the neighbour.
    pub ingress: u16,
    /// Priority.
    pub priority: u8,
    /// The egress port that held most of the bytes of that ingress.
    pub egress: u16,
    /// That port was paused itself at the time.
    pub egress_paused: bool,
    /// Node and egress port where the chain of pauses began: followed from port to port as long as they were paused.
    pub root: (u32, u16),
}

/// Follows each chain of pauses to its root. `causes` are in the order of their times.
pub fn find_roots(causes: &mut [PauseCause], ports: &Ports) {
    let mut latest: BTreeMap<(u32, u16, u8), (u32, u16)> = BTreeMap::new();
    for cause in causes {
        // The switch that has paused the egress port decided so before: the root of that pause is known.
        cause.root = (cause.node, cause.egress);
        if cause.egress_paused
            && let Some(end) = ports.end(cause.node, cause.egress)
            && let Some(root) = latest.get(&(end.peer, end.peer_port, cause.priority))
        {
            cause.root = *root;
        }
        latest.insert((cause.node, cause.ingress, cause.priority), cause.root);
    }
}
