//! Departure times: RFC 9002, section 7.7.
//!
//! s2n-quic's own pacer is private to it. Timers have a granularity of a millisecond there, so that pacing below a few
//! of them would wait longer than a window takes; bursts are limited by the acknowledgements then.

use s2n_quic::provider::congestion_controller::Timestamp;
use std::time::Duration;

/// Spreads a window over the round trip, in bursts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Bytes left of the burst under way.
    left: u64,
    departure: Option<Timestamp>,
}

impl Pacer {
    /// When the next packet may leave; `None` is at once.
    pub fn departure(&self) -> Option<Timestamp> {
        self.departure
    }

    /// No pacing: round trips are too short.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// A packet left. Returns the pause after the burst that it ended, if it did.
    pub fn on_sent(
        &mut self,
        now: Timestamp,
        bytes: u64,
        burst: u64,
        window: u64,
        rtt: Duration,
        slow_start: bool,
    ) -> Option<Duration> {
        if self.left == 0 {
            self.left = burst.max(1);
        }
        self.left = self.left.saturating_sub(bytes);
        if self.left > 0 {
            return None;
        }
        // N = 5/4, and 2 while the window doubles: what is saved here must not limit instead of the window.
        let (numerator, denominator) = if slow_start { (1, 2) } else { (4, 5) };
        let nanos = u128::from(burst) * rtt.as_nanos() * numerator / (denominator * u128::from(window.max(1)));
        let pause = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(rtt);
        let from = self.departure.map_or(now, |departure| departure.max(now));
        self.departure = from.checked_add(pause).or(Some(from));
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        // SAFETY: a clock of this test alone, never compared with another one.
        unsafe { Timestamp::from_duration(Duration::from_micros(micros)) }
    }

    #[test]
    fn a_window_leaves_within_four_fifths_of_the_round_trip() {
        let mut pacer = Pacer::default();
        let rtt = Duration::from_millis(10);
        let mut now = at(1);
        let start = now;
        for _ in 0..100 {
            if let Some(departure) = pacer.departure() {
                now = now.max(departure);
            }
            pacer.on_sent(now, 1_200, 12_000, 120_000, rtt, false);
        }
        // Ten bursts: nine pauses before the last one, one after it.
        assert_eq!(now - start, rtt * 4 / 5 * 9 / 10);
        assert_eq!(pacer.departure().map(|departure| departure - start), Some(rtt * 4 / 5));
        pacer.stop();
        assert_eq!(pacer.departure(), None);
    }
}
