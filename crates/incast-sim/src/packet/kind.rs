//! Kinds of packets.

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Payload of a flow.
    Data,
    /// Data whose payload a switch cut off: the header, on its way to the receiver. See `fabric/trim/mod.rs`.
    Trimmed,
    /// Acknowledgement of data, selective and cumulative.
    Ack,
    /// Go-back-N receiver: a packet is missing. Carries the cumulative acknowledgement.
    Nack,
    /// Congestion notification from a switch.
    Cnp,
    /// Receiver-driven: a grant or request of the receiver. See `host/scheduling.rs`.
    Credit,
    /// Receiver-driven: a message of the sender without data. See `host/signals.rs`.
    Signal,
    /// RST: the sender has given the flow up.
    Rst,
    /// SYN: the sender opens a connection.
    Syn,
    /// SYN-ACK: the receiver's answer to that.
    SynAck,
    /// Priority flow control, from one end of a link to the other. See `flow_control/pause.rs`.
    Pause,
    /// A trimmed header on its way back to its sender.
    Bounced,
    /// Underlay: one-way delay of data, for the underlay of its sender. See `sender/underlay.rs`.
    Report,
    /// Credits, from one end of a link to the other. See `flow_control/credits.rs`.
    FlowControl,
    /// Follows data of a flow, from a switch that holds later packets of it. See `switch/hold.rs`.
    Marker,
    /// Answer to a marker, from switch to switch.
    MarkerAck,
    /// Congestion Isolation Message (IEEE 802.1Qcz): which flow stands in a long queue, to the switch before it.
    Isolation,
}

/// Kinds that travel with their flow, one bit each: a table instead of a branch that would be mispredicted.
const OF_SENDER: u32 = 1 << Kind::Data as u32
    | 1 << Kind::Signal as u32
    | 1 << Kind::Rst as u32
    | 1 << Kind::Syn as u32
    | 1 << Kind::Trimmed as u32
    | 1 << Kind::Marker as u32;

impl Kind {
    /// It travels from the sender of its flow to the receiver; other kinds travel back, or belong to no flow.
    #[inline]
    pub fn is_of_sender(self) -> bool {
        OF_SENDER >> self as u32 & 1 != 0
    }
}
