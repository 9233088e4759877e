//! How much of its share a sender can use.
//!
//! A flow that is held back by something else than its pace (other flows of its host, pauses, DCQCN) sends less than
//! its share. What it sends is measured over an RTT at least.

use incast_units::Time;

/// Packets without which nothing is measured.
const PACKETS: u32 = 8;
/// What is above this part of a share is all of it: acknowledgements of other flows take their turns at the NIC.
const NEARLY: f64 = 15.0 / 16.0;

/// Of one flow. Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// What the flow can use, as last measured: infinite if that is all of its share; 0 if it was never less.
    limit: f64,
    /// The share under which the measurement began, and when.
    share: f64,
    since: Time,
    /// Bits sent since then, and those of the last packet, which is not over.
    bits: f64,
    last: f64,
    packets: u32,
}

impl Demand {
    /// Of a flow that has sent nothing.
    pub fn new() -> Self {
        Self { limit: 0.0, share: 0.0, since: Time::ZERO, bits: 0.0, last: 0.0, packets: 0 }
    }

    /// What the flow can use, if that was ever less than its share; infinite if it now uses all of it.
    pub fn limit(&self) -> Option<f64> {
        (self.limit > 0.0).then_some(self.limit)
    }

    /// A packet of so many bytes on the wire was sent, under this share.
    pub fn on_sent(&mut self, now: Time, wire: u32, share: f64, rtt: Time) {
        self.bits += self.last;
        self.last = f64::from(wire) * 8.0;
        self.packets += 1;
        let is_other = (share / self.share - 1.0).abs() > 1.0 - NEARLY;
        let elapsed = now.saturating_sub(self.since);
        if !is_other && (elapsed < rtt || self.packets <= PACKETS) {
            return;
        }
        if !is_other {
            let rate = self.bits / elapsed.as_secs_f64();
            let is_held_back = rate < NEARLY * share;
            if is_held_back {
                self.limit = rate;
            } else if self.limit > 0.0 {
                self.limit = f64::INFINITY;
            }
        }
        (self.share, self.since, self.bits, self.packets) = (share, now, 0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: f64 = 1e9;

    /// Sends packets of 1,250 bytes, so many ns apart, under a share.
    fn send(demand: &mut Demand, from: u64, count: u64, gap: u64, share: f64) -> u64 {
        for packet in 0..count {
            demand.on_sent(Time::from_ns(from + packet * gap), 1_250, share, Time::from_us(10));
        }
        from + count * gap
    }

    #[test]
    fn a_flow_that_uses_its_share_has_no_limit() {
        let mut demand = Demand::new();
        // 10 Gbit/s is a packet each 1,000 ns; 4% late is near enough.
        let now = send(&mut demand, 0, 100, 1_040, 10.0 * GBPS);
        assert_eq!(demand.limit(), None);
        // A new share begins anew: the long gaps before it do not count.
        send(&mut demand, now, 100, 100, 100.0 * GBPS);
        assert_eq!(demand.limit(), None);
    }

    #[test]
    fn what_is_held_back_is_measured_over_an_rtt_and_eight_packets() {
        let mut demand = Demand::new();
        let now = send(&mut demand, 0, 9, 2_000, 10.0 * GBPS);
        assert_eq!(demand.limit(), None);
        let now = send(&mut demand, now, 4, 2_000, 10.0 * GBPS);
        let limit = demand.limit().expect("measured") / GBPS;
        assert!((limit - 5.0).abs() < 1e-9, "{limit}");
        // Once it uses all of it again, that is advertised, too.
        send(&mut demand, now, 30, 1_000, 10.0 * GBPS);
        assert_eq!(demand.limit(), Some(f64::INFINITY));
    }

    #[test]
    fn slow_flows_are_measured_over_more_than_an_rtt() {
        let mut demand = Demand::new();
        send(&mut demand, 0, 9, 100_000, 0.2 * GBPS);
        assert_eq!(demand.limit(), None);
        send(&mut demand, 900_000, 1, 100_000, 0.2 * GBPS);
        let limit = demand.limit().expect("measured") / GBPS;
        assert!((limit - 0.1).abs() < 1e-9, "{limit}");
    }
}
