//! What is known of a network path before the first packet.

use incast_units::{Bytes, Rate, Time};

/// Smallest retransmission timeout where nothing else is said: that which operators of fabrics set in Linux (`rto_min` of
/// a route), whose own is 200 ms.
pub const DEFAULT_RTO_MIN: Time = Time::from_ms(1);

/// The constants from which every default of every law is computed.
///
/// One `Path` serves a whole fabric: a real host cannot measure the path of each flow in advance. `base_rtt` is
/// therefore the largest one of the fabric, for a full packet and its acknowledgement without queueing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Rate of the host's NIC.
    pub rate: Rate,
    /// Round-trip time of a full data packet and its acknowledgement through an empty network.
    pub base_rtt: Time,
    /// One-way time of a full data packet through an empty network on the shortest path of the fabric.
    pub least_delay: Time,
    /// Payload bytes of a full packet (the maximum segment size).
    pub mss: u32,
    /// Bytes of a full packet on the link, with headers, preamble and inter-frame gap.
    pub wire_mss: u32,
    /// Smallest retransmission timeout of the hosts.
    pub rto_min: Time,
}

impl Path {
    /// With [`DEFAULT_RTO_MIN`], and paths that are all alike. Rate of the NIC, base RTT, and bytes of a full packet:
    /// payload, and on the link.
    pub const fn new(rate: Rate, base_rtt: Time, mss: u32, wire_mss: u32) -> Self {
        let least_delay = Time::from_ps(base_rtt.ps() / 2);
        Self { rate, base_rtt, least_delay, mss, wire_mss, rto_min: DEFAULT_RTO_MIN }
    }

    /// Bandwidth-delay product in payload bytes: what fills the path, headers taken off.
    pub fn bdp(&self) -> Bytes {
        let wire = self.rate.bytes_in(self.base_rtt).get();
        Bytes::new((u128::from(wire) * u128::from(self.mss) / u128::from(self.wire_mss.max(1))) as u64)
    }

    /// The same in whole packets, so that they fill the path.
    pub fn bdp_packets(&self) -> Bytes {
        let mss = u64::from(self.mss.max(1));
        Bytes::new(self.bdp().get().div_ceil(mss).max(1) * mss)
    }

    /// A timeout before anything is known of queues: no shorter than three round trips, as a host's first
    /// retransmission timeout.
    pub fn timeout(&self) -> Time {
        self.rto_min.max(self.base_rtt.saturating_mul(3))
    }
}
