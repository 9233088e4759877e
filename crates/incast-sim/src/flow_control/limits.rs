//! Thresholds and headroom of priority flow control, from the configuration and the fabric. docs/fabric.md has the
//! formulas.

use crate::flow_control::config::{Alpha, Headroom, Pfc, Threshold};
use incast_units::{Rate, Time};

/// Binary places of alpha, a fixed-point number.
pub(super) const ALPHA_BITS: u32 = 20;

/// The configuration of PFC, with what its limits depend on.
#[derive(Clone, Debug)]
pub struct Rules {
    /// As configured.
    pub pfc: Pfc,
    /// Lossless priorities that packets of this run can have, one bit each. Only these have buffer.
    pub lossless: u8,
    /// Bytes of the largest frame of any kind.
    pub frame: u64,
    /// Bytes between two frames.
    pub gap: u64,
    /// Rate of the first host's link, to which [`Alpha::ByRate`] is relative.
    pub host_rate: Rate,
    /// The fabric's base RTT, to which thresholds in BDP are relative.
    pub base_rtt: Time,
}

/// When a port pauses and resumes its neighbour; the same for each priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may come in above the threshold.
    pub headroom: u64,
    /// The threshold.
    pub threshold: Bounds,
}

/// See [`Threshold`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Fixed.
    Static {
        /// Pause at or above.
        xoff: u64,
        /// Resume at or below.
        xon: u64,
    },
    /// A share of the free buffer.
    Dynamic {
        /// Alpha times 2^20.
        alpha: u64,
        /// Bytes set aside for the ingress, below the shared ones.
        reserve: u64,
        /// Resume this many bytes below the threshold.
        resume_offset: u64,
    },
}

impl Limits {
    /// Buffer that belongs to one priority of the port alone.
    pub fn own(&self) -> u64 {
        match self.threshold {
            Bounds::Static { xoff, .. } => xoff.saturating_add(self.headroom),
            Bounds::Dynamic { reserve, .. } => reserve.saturating_add(self.headroom),
        }
    }
}

impl Rules {
    /// The rules of a switch whose configuration differs in thresholds and headroom.
    pub fn of(&self, own: &Pfc) -> Self {
        Self { pfc: own.clone(), ..self.clone() }
    }

    /// Bytes that can still come in once a packet has taken an ingress above its threshold, that packet included.
    ///
    /// The pause frame waits for the frame in service (one largest frame with its gap), takes its own time, travels,
    /// and takes effect after the response delay; the neighbour finishes what it is sending then (another largest
    /// frame); and what is on the cable at that time arrives too. To this comes the frame that went above.
    pub fn needed(&self, rate: Rate, delay: Time) -> u64 {
        let gap = self.gap;
        let reaction = delay.saturating_mul(2).saturating_add(self.pfc.response_delay);
        let arriving = (u128::from(rate.bps()) * u128::from(reaction.ps())).div_ceil(8_000_000_000_000);
        let frames = 2 * (self.frame + gap) + u64::from(self.pfc.frame) + gap + self.frame;
        u64::try_from(arriving).unwrap_or(u64::MAX).saturating_add(frames)
    }

    /// The limits of a port with a link of this rate and propagation delay.
    pub fn limits(&self, rate: Rate, delay: Time) -> Limits {
        let headroom = match self.pfc.headroom {
            Headroom::Computed => self.needed(rate, delay),
            Headroom::Bytes(bytes) => bytes,
            // What is shipped for no such port is refused before.
            Headroom::Chip(chip) => chip.headroom(rate, delay).unwrap_or(0),
            Headroom::RateTimesDelay(factor) => (rate.as_f64() * delay.as_secs_f64() * factor / 8.0).round() as u64,
        };
        let threshold = match self.pfc.threshold {
            Threshold::Static { xoff, xon } => {
                let xoff = xoff.bytes(rate, self.base_rtt);
                let default = xoff.saturating_sub(2 * self.frame);
                Bounds::Static { xoff, xon: xon.map_or(default, |xon| xon.bytes(rate, self.base_rtt)) }
            }
            Threshold::Dynamic { alpha, reserve, resume_offset } => {
                Bounds::Dynamic { alpha: self.alpha(alpha, rate), reserve, resume_offset }
            }
        };
        Limits { headroom, threshold }
    }

    /// Alpha times 2^20.
    fn alpha(&self, alpha: Alpha, rate: Rate) -> u64 {
        match alpha {
            Alpha::Fixed(alpha) => ((alpha * f64::from(1u32 << ALPHA_BITS)).round() as u64).max(1),
            Alpha::ByRate => {
                let (mut shift, mut rate) = (3, rate.bps());
                while rate > self.host_rate.bps() && shift > 0 {
                    shift -= 1;
                    rate /= 2;
                }
                1 << (ALPHA_BITS - shift)
            }
        }
    }

    /// Number of lossless priorities.
    pub fn count(&self) -> u64 {
        u64::from(self.lossless.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(threshold: Threshold, headroom: Headroom) -> Rules {
        Rules {
            pfc: Pfc { headroom, ..Pfc::new(threshold) },
            lossless: 0b11,
            frame: 1000,
            gap: 20,
            host_rate: Rate::from_gbps(100),
            base_rtt: Time::from_us(8),
        }
    }

    fn dynamic(alpha: Alpha) -> Threshold {
        Threshold::Dynamic { alpha, reserve: 4096, resume_offset: 3072 }
    }

    #[test]
    fn headroom_is_what_can_still_arrive() {
        let rules = rules(dynamic(Alpha::ByRate), Headroom::Computed);
        // 100 Gbit/s is 12.5 bytes per nanosecond: 2 us of cable are 25,000 bytes.
        let frames = 2 * 1020 + 84 + 1000;
        assert_eq!(rules.needed(Rate::from_gbps(100), Time::from_us(1)), 25_000 + frames);
        let slow = Rules { pfc: Pfc { response_delay: Time::from_us(2), ..rules.pfc.clone() }, ..rules };
        assert_eq!(slow.needed(Rate::from_gbps(100), Time::from_us(1)), 50_000 + frames);
    }

    #[test]
    fn the_lineage_gives_faster_ports_a_larger_part() {
        let rules = rules(dynamic(Alpha::ByRate), Headroom::RateTimesDelay(3.0));
        let of = |gbps| rules.limits(Rate::from_gbps(gbps), Time::from_us(1));
        let alpha = |limits: Limits| match limits.threshold {
            Bounds::Dynamic { alpha, .. } => alpha as f64 / f64::from(1 << ALPHA_BITS),
            Bounds::Static { .. } => 0.0,
        };
        assert_eq!([25, 100, 200, 400, 800, 1600].map(|gbps| alpha(of(gbps))), [0.125, 0.125, 0.25, 0.5, 1.0, 1.0]);
        assert_eq!((of(100).headroom, of(400).headroom), (37_500, 150_000));
    }
}
