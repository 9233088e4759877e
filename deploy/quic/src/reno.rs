//! The rule where marks say nothing: NewReno as QUIC has it.
//!
//! Source: RFC 9002, section 7.3. Windows are in Q16 packets, positions those of `marimo.h`, so that a connection can
//! change between the two without converting anything.
//!
//! ```text
//!   slow start: + acked ──loss──▶ x 1/2, recovery ──a packet sent since is acked──▶ + 1 packet per round trip
//!       ▲                                                                               │
//!       └────────────── persistent congestion: least window ◀───────────────────────────┘
//! ```

use incast_cc::window::marimo::core::{ONE, WINDOW_MAX};

/// kMinimumWindow, in packets: RFC 9002, section 7.2.
pub const MIN_WINDOW: u32 = 2;

const LEAST: u32 = MIN_WINDOW * ONE;
const MOST: u32 = WINDOW_MAX * ONE;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reno {
    window: u32,
    threshold: u32,
    /// Packets acknowledged towards the next increase.
    credit: u32,
    /// Losses below are answered already.
    recovery_end: Option<u32>,
    persistent: bool,
}

/// Whether position `a` lies before `b`.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Reno {
    /// Takes over at a window.
    pub fn new(window: u32, slow_start: bool) -> Self {
        let window = window.clamp(LEAST, MOST);
        let threshold = if slow_start { u32::MAX } else { window };
        Self { window, threshold, credit: 0, recovery_end: None, persistent: false }
    }

    /// Q16 packets.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// It grows by what is acknowledged.
    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Packets have `after` bytes instead of `before`: the window keeps its bytes if they grow, else its packets.
    pub fn on_mtu(&mut self, before: u16, after: u16) {
        if after > before {
            let scaled = |packets: u32| (u64::from(packets) * u64::from(before) / u64::from(after)) as u32;
            self.window = scaled(self.window).max(LEAST);
            if self.threshold != u32::MAX {
                self.threshold = scaled(self.threshold);
            }
        }
    }

    /// Packets were acknowledged, up to `position`.
    pub fn on_ack(&mut self, acked: u32, position: u32, limited: bool) {
        if self.recovery_end.is_some_and(|end| !before(end, position)) {
            return;
        }
        self.recovery_end = None;
        self.persistent = false;
        if !limited {
            return;
        }
        let acked = acked.min(WINDOW_MAX);
        if self.in_slow_start() {
            let grown = self.window.saturating_add(acked.saturating_mul(ONE));
            self.window = grown.min(self.threshold.max(self.window)).min(MOST);
            return;
        }
        // Growth by counting, not by dividing.
        self.credit += acked;
        while self.credit >= self.window / ONE {
            self.credit -= self.window / ONE;
            self.window = self.window.saturating_add(ONE).min(MOST);
        }
    }

    /// The packet at `position` was lost; `next` is the next one. Whether that reduced the window.
    pub fn on_loss(&mut self, position: u32, next: u32) -> bool {
        if self.recovery_end.is_some_and(|end| before(position, end)) {
            return false;
        }
        self.window = (self.window / 2).max(LEAST);
        self.threshold = self.window;
        self.credit = 0;
        self.recovery_end = Some(next);
        true
    }

    /// Persistent congestion.
    pub fn on_timeout(&mut self, next: u32) {
        if !self.persistent {
            self.threshold = (self.window / 2).max(LEAST);
        }
        self.persistent = true;
        self.window = LEAST;
        self.credit = 0;
        self.recovery_end = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_then_one_packet_per_round_trip() {
        let mut reno = Reno::new(10 * ONE, true);
        reno.on_ack(10, 10, true);
        assert_eq!(reno.window(), 20 * ONE);
        assert!(reno.on_loss(12, 30));
        assert_eq!(reno.window(), 10 * ONE);
        assert!(!reno.on_loss(29, 33), "sent before the reduction");
        reno.on_ack(17, 30, true);
        assert_eq!(reno.window(), 10 * ONE, "in recovery");
        reno.on_ack(1, 31, true);
        for packet in 32..=50 {
            reno.on_ack(1, packet, true);
        }
        assert_eq!(reno.window(), 11 * ONE, "20 packets, of which the first 10 make the window 11");
        reno.on_ack(5, 60, false);
        assert_eq!(reno.window(), 11 * ONE, "not what limits");
    }

    #[test]
    fn persistent_congestion_leaves_the_least_window_and_one_threshold() {
        let mut reno = Reno::new(40 * ONE, false);
        reno.on_timeout(100);
        reno.on_timeout(101);
        assert_eq!((reno.window(), reno.threshold), (LEAST, 20 * ONE));
        reno.on_ack(3, 102, true);
        assert_eq!(reno.window(), 5 * ONE);
        reno.on_ack(60_000, 60_102, true);
        assert_eq!(reno.window(), 20 * ONE);
    }
}
