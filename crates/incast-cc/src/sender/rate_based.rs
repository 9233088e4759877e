//! What the laws that set a rate have in common: profiles of constants, and a window in addition to the rate.

use crate::Path;

crate::choice! {
    /// Where the constants of a law come from whose paper prints absolute ones.
    pub enum Profile {
        /// Formulas of rate and base RTT that give the paper's constants on the paper's network.
        Scaled = "scaled",
        /// The paper's constants, on every network.
        Paper = "paper",
    }
}

crate::choice! {
    /// A limit of what is in flight, beside the rate ("+w" in HPCC's evaluation).
    pub enum InFlight {
        /// None, as in the papers.
        Unlimited = "unlimited",
        /// One BDP.
        Bdp = "bdp",
        /// One BDP times the rate's share of the NIC's.
        RateBdp = "rate-bdp",
    }
}

/// Bytes that may be in flight at `rate` bit/s.
pub fn window(limit: InFlight, bdp: f64, rate: f64, line: f64) -> u64 {
    match limit {
        InFlight::Unlimited => u64::MAX,
        InFlight::Bdp => bdp as u64,
        InFlight::RateBdp => (bdp * (rate / line)) as u64,
    }
    .max(1)
}

/// The BDP that [`window`] is given: at least one packet.
pub fn bdp(path: &Path) -> f64 {
    path.bdp().get().max(path.mss.into()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Raw, Setting};

    #[test]
    fn windows_follow_their_definitions() {
        assert_eq!(window(InFlight::Unlimited, 1e5, 1e9, 1e10), u64::MAX);
        assert_eq!(window(InFlight::Bdp, 1e5, 1e9, 1e10), 100_000);
        assert_eq!(window(InFlight::RateBdp, 1e5, 1e9, 1e10), 10_000);
        assert_eq!(window(InFlight::RateBdp, 1e5, 1.0, 1e10), 1, "never closed");
    }

    #[test]
    fn choices_have_names_and_nothing_else() {
        assert_eq!(Profile::read(&Raw::Text("paper".into())), Ok(Profile::Paper));
        assert_eq!(Profile::Scaled.write(), Raw::Text("scaled".into()));
        let refused = Profile::read(&Raw::Text("papers".into())).expect_err("no such profile");
        assert_eq!(refused, "found \"papers\", expected one of \"scaled\" \"paper\"");
        assert!(Profile::read(&Raw::Flag(true)).is_err());
    }
}
