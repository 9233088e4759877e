//! Go-back-N: the sender's half, as RoCE NICs have it.
//!
//! The receiver takes packets in order only and answers the first one out of order with a NACK (InfiniBand volume 1,
//! section 9.7.5.2.8); the sender then starts again from the missing packet.

use super::acked::Acked;

/// See the module.
#[derive(Clone, Debug)]
pub struct GoBackN {
    total: u32,
    acked: u32,
    /// Next packet to send.
    next: u32,
    /// The first packet that was never sent.
    unsent: u32,
    /// Packets that an underlay holds: those before `next`, and copies of earlier ones after it has gone back.
    held: u32,
}

impl GoBackN {
    /// A flow of `packets` packets.
    pub fn new(packets: u32) -> Self {
        Self { total: packets, acked: 0, next: 0, unsent: 0, held: 0 }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<(u32, bool)> {
        (self.next < self.total).then_some((self.next, self.next < self.unsent))
    }

    #[inline]
    pub(super) fn sent(&mut self) {
        self.next += 1;
        self.unsent = self.unsent.max(self.next);
    }

    pub(super) fn hold(&mut self) {
        self.sent();
        self.held += 1;
    }

    pub(super) fn leave(&mut self) {
        self.held -= 1;
    }

    #[inline]
    pub(super) fn on_ack(&mut self, cumulative: u32) -> Acked {
        let cumulative = cumulative.min(self.unsent);
        let packets = cumulative.saturating_sub(self.acked);
        self.acked = self.acked.max(cumulative);
        self.next = self.next.max(self.acked);
        Acked { packets, last: packets > 0 && self.acked == self.total, ..Acked::default() }
    }

    pub(super) fn on_nack(&mut self, expected: u32) -> Acked {
        let mut result = self.on_ack(expected);
        if expected == self.acked && self.next > self.acked {
            result.lost = self.next - self.acked;
            (result.first_lost, result.last_lost) = (self.acked, self.next - 1);
            self.next = self.acked;
        }
        result
    }

    pub(super) fn on_timeout(&mut self) {
        self.next = self.acked;
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.next - self.acked
    }
    /// Packets in the underlay, copies of what has arrived or been given up meanwhile included, but no more than are in
    /// flight: so long as that many are held, all of the flight is taken to be there.
    pub(super) fn held(&self) -> u32 {
        self.held.min(self.in_flight())
    }
    #[inline]
    pub(super) fn acked(&self) -> u32 {
        self.acked
    }
    #[inline]
    pub(super) fn unsent(&self) -> u32 {
        self.unsent
    }
    pub(super) fn waiting(&self) -> u32 {
        self.total - self.next
    }
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.acked == self.total
    }
}
