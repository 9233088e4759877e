//! The changes at the sender by an acknowledgement, or by a request of the receiver.

use incast_units::Time;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Packets that are newly known to have arrived.
    pub packets: u32,
    /// Whether the flow's last packet, which may be short, is among them.
    pub last: bool,
    /// Packets newly presumed lost.
    pub lost: u32,
    /// The first of those.
    pub first_lost: u32,
    /// The last of those in the order of positions.
    pub last_lost: u32,
    /// When the latest of the retransmissions among them was sent, if there are some.
    pub resent: Option<Time>,
    /// Recovery begins with them: the first one is sent again whatever the window is (RFC 6675, section 5, step 4.3).
    pub starts_recovery: bool,
}
