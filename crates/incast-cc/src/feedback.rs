//! Feedback from the network to a sender.

use crate::message::AckTag;
use incast_units::Time;

/// One acknowledgement, as laws read it. Parts that a fabric does not provide are absent.
///
/// Positions count payload bytes from the start of the flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback<'a> {
    /// When the acknowledgement arrived at the sender.
    pub now: Time,
    /// Payload bytes that this acknowledgement newly covers, in order or not.
    pub acked_bytes: u64,
    /// Packets that this acknowledgement reports on (more than one if the receiver coalesces).
    pub packets: u32,
    /// How many of them carried a congestion mark (CE).
    pub marked: u32,
    /// Everything below this position is acknowledged.
    pub acked: u64,
    /// First position that was never sent.
    pub next: u64,
    /// Bytes in flight after this acknowledgement.
    pub in_flight: u64,
    /// Round-trip time of the packet that caused this acknowledgement, host processing included.
    pub rtt: Time,
    /// Part of `rtt` for which something was held on purpose, which is no congestion: the acknowledgement at its
    /// receiver, to cover several packets (RFC 1122, section 4.2.3.2), or the packet in the sender's underlay.
    pub held: Time,
    /// The window was not what limited the flow: it had nothing more to send, or since the last acknowledgement an
    /// application, another flow of its host, a pause or a hold kept it from using half of its window.
    pub app_limited: bool,
    /// When the acknowledgement arrived, the flow had nothing to send, neither new nor again: nothing but the
    /// application limits it. Unlike [`Self::app_limited`], waiting for a pace does not count.
    pub nothing_to_send: bool,
    /// Part of `rtt` spent in the two end hosts without being held: from the arrival of the data at the receiver's NIC
    /// until the acknowledgement left it, and from the arrival of that until now.
    pub endpoint_delay: Option<Time>,
    /// Switches that the data passed.
    pub hops: Option<u8>,
    /// One-way delay of the data packet as the two hosts' clocks show it, in picoseconds; negative if they disagree.
    pub one_way_delay: Option<i64>,
    /// In-band telemetry, one record per hop in path order; empty if the fabric has none.
    pub telemetry: &'a [HopTelemetry],
    /// The tag of a receiver-driven protocol's receiver half.
    pub tag: Option<AckTag>,
}

impl Feedback<'_> {
    /// Round-trip time without what was held on purpose: what a law may take for congestion.
    #[inline]
    pub fn network_rtt(&self) -> Time {
        self.rtt.saturating_sub(self.held)
    }

    /// Whether the window was what limited the flow, so that it may grow: the application had more to send, and at
    /// least half of the window was in use (RFC 7661, section 4.3; RFC 9438, section 5.8).
    #[inline]
    pub fn window_limited(&self, window: f64) -> bool {
        !self.app_limited && 2.0 * (self.in_flight + self.acked_bytes) as f64 >= window
    }
}

/// The INT record that one switch port writes into a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTelemetry {
    /// When the packet left the queue.
    pub time: Time,
    /// Bytes that the port had sent until then, this packet excluded.
    pub sent_bytes: u64,
    /// Bytes left in the port's queues after this packet was taken.
    pub queue_bytes: u32,
    /// The port's rate in Mbit/s, or that which its agent advertises.
    pub rate_mbps: u32,
}

/// Packets that were found lost by acknowledgements of later ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss {
    /// When the loss was found.
    pub now: Time,
    /// Payload bytes found lost.
    pub lost_bytes: u64,
    /// Position of the first packet found lost.
    pub position: u64,
    /// Position of the last one, in the order of positions.
    pub last: u64,
    /// First position that was never sent: the loss episode ends when this is acknowledged.
    pub next: u64,
    /// Bytes in flight, the lost ones excluded.
    pub in_flight: u64,
    /// When the latest of the retransmissions among them was sent, if there are some.
    pub resent: Option<Time>,
}

impl Loss {
    /// It is a new indication of congestion: of a packet that was sent, or sent again, since a reduction at `reduced`, before
    /// which all had been sent below the position `end`.
    ///
    /// Source: RFC 5681, section 4.3, where a retransmission that is lost lowers cwnd and ssthresh twice; RFC 9002, section 7.3.2.
    pub fn is_new(&self, end: u64, reduced: Time) -> bool {
        self.last >= end || self.resent.is_some_and(|sent| sent >= reduced)
    }
}

/// The content of a congestion notification packet (CNP).
///
/// Sources: Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015 (from the receiver); X.
/// He et al., "Accurate and fast congestion feedback in MEC-enabled RDMA datacenters", J. Cloud Computing 2024 (from a
/// switch, with a window in the 32 reserved bits); Y. Zhang et al., "Congestion Detection in Lossless Networks",
/// SIGCOMM 2021 (UE).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cnp {
    /// Congestion was experienced (CE).
    pub congested: bool,
    /// The packet passed a queue in the undetermined state (UE).
    pub undetermined: bool,
    /// The window that is granted, in bytes.
    pub window: Option<u64>,
}

impl Cnp {
    /// Congestion was experienced.
    pub const CONGESTED: Self = Self { congested: true, undetermined: false, window: None };

    /// Congestion was experienced; this number of bytes may be in flight.
    pub fn granting(window: u64) -> Self {
        Self { window: Some(window), ..Self::CONGESTED }
    }
}

/// What a switch puts into its congestion notifications, or a law reads from them. Each level includes the ones
/// before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CnpContent {
    /// Nothing.
    #[default]
    Nothing,
    /// The window that is granted.
    Windows,
    /// That there is congestion, window or not.
    Congestion,
}
