//! Proportional rate reduction: a window that was cut takes effect over a round trip, in place of at once.
//!
//! Source: RFC 6937, with its slow-start reduction bound. While more is in flight than the new window allows, packets
//! are sent at the rate of arrivals times the ratio of the new window to the old one; once less is in flight, it grows
//! up to the new window by what arrives.
//!
//! ```text
//!   pipe > ssthresh:   sndcnt = ceil(delivered × ssthresh / flight) − out
//!   otherwise:         sndcnt = min(ssthresh − pipe, max(delivered − out, newly delivered) + MSS)
//! ```

/// A reduction that takes place. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The window at its end.
    threshold: u64,
    /// `RecoverFS`: in flight when it began.
    flight: u64,
    /// `prr_delivered`.
    delivered: u64,
    /// `prr_out`.
    out: u64,
    mss: u64,
    window: u64,
}

impl Reduction {
    /// A reduction to `threshold` that begins with `flight` bytes outstanding, of which `pipe` are in flight still. One
    /// packet may go at once (RFC 6937, section 3: the fast retransmission).
    pub fn new(threshold: u64, flight: u64, pipe: u64, mss: u64) -> Self {
        let flight = flight.max(mss).max(1);
        Self { threshold, flight, delivered: 0, out: 0, mss, window: pipe.saturating_add(mss) }
    }

    /// So many bytes are newly known to have arrived, and `pipe` are in flight.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64) {
        self.delivered = self.delivered.saturating_add(delivered);
        let sends = if pipe > self.threshold {
            let share = u128::from(self.delivered) * u128::from(self.threshold);
            (share.div_ceil(self.flight.into()) as u64).saturating_sub(self.out)
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(delivered).saturating_add(self.mss);
            (self.threshold - pipe).min(bound)
        };
        let first = if self.out == 0 { self.mss } else { 0 };
        self.window = pipe.saturating_add(sends.max(first));
    }

    /// So many bytes are sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out = self.out.saturating_add(bytes);
    }

    /// The window now.
    pub fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Runs a recovery of 20 packets in flight, of which the first `lost` are lost. Returns how many packets each of
    /// the acknowledgements lets go, in order.
    fn run(lost: u64, threshold: u64) -> Vec<u64> {
        let mut pipe = 20 - lost;
        let mut reduction = Reduction::new(threshold * MSS, 20 * MSS, pipe * MSS, MSS);
        (lost..20)
            .map(|_| {
                pipe -= 1;
                reduction.on_ack(MSS, pipe * MSS);
                let mut sent = 0;
                while (pipe + 1) * MSS <= reduction.window() {
                    reduction.on_sent(MSS);
                    (pipe, sent) = (pipe + 1, sent + 1);
                }
                sent
            })
            .collect()
    }

    #[test]
    fn a_halved_window_sends_every_other_acknowledgement() {
        // RFC 6937, section 4: one loss of 20, a window of 10.
        let sent = run(1, 10);
        assert_eq!(sent.iter().sum::<u64>(), 10, "{sent:?}");
        // The first packet goes at once, so that the next one has to wait for what it took.
        assert_eq!(sent[..8], [1, 0, 0, 1, 0, 1, 0, 1]);
        // A window of 70%.
        assert_eq!(run(1, 14).iter().sum::<u64>(), 14);
    }

    #[test]
    fn after_heavy_loss_the_flight_grows_to_the_threshold() {
        // 15 of 20 are lost: 5 acknowledgements let two packets go each, one more than arrives.
        let sent = run(15, 10);
        assert_eq!(sent, [2, 2, 2, 2, 2]);
        // No more than the threshold is in flight.
        assert_eq!(run(11, 10).iter().sum::<u64>(), 10);
    }
}
