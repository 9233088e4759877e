//! Flows: one record each.

use incast_units::Time;

/// One flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowRecord {
    /// Sending host.
    pub source: u32,
    /// Number of the flow at its source.
    pub sequence: u32,
    /// Receiving host.
    pub destination: u32,
    /// Class index.
    pub class: u16,
    /// Group, or [`crate::FlowSpec::NO_REQUEST`].
    pub request: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// When it started.
    pub start: Time,
    /// When the last byte reached the receiver.
    pub delivered: Option<Time>,
    /// When the sender received the last acknowledgement.
    pub acked: Option<Time>,
    /// Duration of the same flow alone on the same path; `None` if there is no route.
    pub ideal: Option<Time>,
    /// Payload bytes that were delivered so far (all of them once `delivered` is set).
    pub delivered_bytes: u64,
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Data packets that arrived marked.
    pub marked_packets: u32,
    /// Data packets that arrived after one with a later position.
    pub reordered_packets: u32,
    /// Deflections of its data packets.
    pub deflections: u32,
    /// Time its packets were held by the underlay.
    pub held: Time,
}
