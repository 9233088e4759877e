//! Smoothed round-trip time and the timeouts that follow from it.

use incast_units::Time;

/// RFC 6298, section 2, with the sample of each acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    smoothed: u64,
    variation: u64,
    /// The part of `smoothed` for which packets and acknowledgements were held on purpose.
    held: u64,
}

/// Timeouts are not doubled more often than this.
const MOST_BACKOFF: u8 = 10;

impl RoundTrip {
    /// Takes a sample, of which a part was a hold.
    #[inline]
    pub fn sample(&mut self, sample: Time, held: Time) {
        let (sample, held) = (sample.ps(), held.ps());
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.variation = sample / 2;
            self.held = held;
        } else {
            if self.held | held != 0 {
                self.held = self.held - self.held / 8 + held / 8;
            }
            self.variation = self.variation - self.variation / 4 + self.smoothed.abs_diff(sample) / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
        }
    }

    /// The smoothed RTT; zero before the first sample.
    #[inline]
    pub fn smoothed(&self) -> Time {
        Time::from_ps(self.smoothed)
    }

    /// The smoothed RTT without what was held on purpose.
    #[inline]
    pub fn without_hold(&self) -> Time {
        Time::from_ps(self.smoothed.saturating_sub(self.held))
    }

    /// Retransmission timeout after `backoff` expiries: at least `least`. Before the first sample it is three base
    /// RTTs or `least`, where RFC 6298 has one second.
    #[inline]
    pub fn timeout(&self, least: Time, base: Time, backoff: u8) -> Time {
        let timeout = if self.smoothed == 0 {
            base.saturating_mul(3)
        } else {
            Time::from_ps(self.smoothed.saturating_add(self.variation.saturating_mul(4)))
        };
        let timeout = timeout.max(least);
        if backoff == 0 { timeout } else { timeout.saturating_mul(1 << backoff.min(MOST_BACKOFF)) }
    }

    /// The same for a timer that acknowledgements of other packets do not restart, which would add a round trip to it:
    /// SRTT + max(`least`, 4 RTTVAR), as Linux has it.
    pub fn packet_timeout(&self, least: Time, base: Time, backoff: u8) -> Time {
        let least = if self.smoothed == 0 { least } else { self.smoothed() + least };
        self.timeout(least, base, backoff)
    }

    /// Probe timeout for tail losses, twice the smoothed RTT (RFC 8985, section 7.2); `None` before the first sample.
    #[inline]
    pub fn probe_timeout(&self, ack_delay: Time) -> Option<Time> {
        (self.smoothed != 0).then(|| Time::from_ps(self.smoothed * 2) + ack_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_rfc_6298() {
        let (least, base) = (Time::from_us(100), Time::from_us(10));
        let mut rtt = RoundTrip::default();
        assert_eq!(rtt.timeout(least, base, 0), least);
        assert_eq!(rtt.probe_timeout(Time::ZERO), None);
        rtt.sample(Time::from_us(80), Time::ZERO);
        assert_eq!(rtt.timeout(least, base, 0), Time::from_us(240));
        rtt.sample(Time::from_us(80), Time::ZERO);
        assert_eq!(rtt.timeout(least, base, 1), Time::from_us(400));
        (0..100).for_each(|_| rtt.sample(Time::from_us(20), Time::from_us(15)));
        assert_eq!(rtt.timeout(least, base, 0), least);
        assert!(rtt.smoothed() < Time::from_us(21));
    }
}
