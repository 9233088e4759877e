//! What an acknowledgement adds to the window in slow start, for the laws that follow RFC 5681.
//!
//! Sources: RFC 5681, section 3.1, equation 2; RFC 3465, sections 2.2 and 2.3 (the limit L).
//!
//! An acknowledgement that ends a gap may cover what arrived long before, if the acknowledgements of that were lost: it
//! does not show that as much has left the path just now. This is common after a retransmission timeout. So RFC 3465
//! limits growth to one MSS per acknowledgement in the slow start after one.

use crate::{Path, parameters::Raw};
use incast_units::Bytes;

/// The first window of RFC 6928: ten segments.
pub fn ten_segments(path: &Path) -> Raw {
    Raw::Text(Bytes::new(10 * u64::from(path.mss)).to_string())
}

crate::choice! {
    /// How much an acknowledgement may add in slow start.
    pub enum SlowStartLimit {
        /// After a retransmission timeout one MSS, until what had been sent before it is acknowledged; otherwise what is
        /// newly acknowledged.
        AfterTimeout = "after-timeout",
        /// What is newly acknowledged, as in Linux (`tcp_slow_start`).
        None = "none",
    }
}

impl SlowStartLimit {
    /// Bytes by which the window grows when `acked` bytes are newly acknowledged. `recovers`: a timeout expired, and
    /// something sent before it had not been acknowledged when this acknowledgement came.
    #[inline]
    pub fn growth(self, acked: u64, recovers: bool, mss: f64) -> f64 {
        let acked = acked as f64;
        if recovers && self == Self::AfterTimeout { acked.min(mss) } else { acked }
    }
}

#[cfg(test)]
mod tests {
    use super::SlowStartLimit::{AfterTimeout, None};

    #[test]
    fn only_the_slow_start_after_a_timeout_is_limited() {
        assert_eq!(AfterTimeout.growth(202_000, true, 1000.0), 1000.0);
        assert_eq!(AfterTimeout.growth(400, true, 1000.0), 400.0);
        assert_eq!(AfterTimeout.growth(4_000, false, 1000.0), 4_000.0);
        assert_eq!([true, false].map(|recovers| None.growth(202_000, recovers, 1000.0)), [202_000.0; 2]);
    }
}
