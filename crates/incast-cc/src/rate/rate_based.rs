//! What the laws that set a rate have in common: profiles of constants, a window in addition to the rate, and the
//! parameters of both.

use crate::Path;
use incast_units::Bytes;

crate::choice! {
    /// Where the constants of a law come from whose paper prints absolute ones.
    pub enum Profile {
        /// Formulas of rate and base RTT that give the paper's constants on the paper's network.
        Scaled = "scaled",
        /// The paper's constants, on every network.
        Paper = "paper",
        /// What the released simulator of HPCC does, to the letter, with the constants of its scripts.
        HpccLineage = "hpcc-lineage",
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

crate::choice! {
    /// Which packets a window lets go.
    pub enum WindowRule {
        /// Any while less than the window is in flight, so that the last one may exceed it.
        Below = "below",
        /// Those that fit into it whole: a window of few packets is then smaller than it says.
        Fits = "fits",
    }
}

/// Declares the parameters of a law that sets a rate: its own, then those of its `limit` if its window is a limit beside
/// the rate (with the default of `in_flight` as text, as value and with its source), then those of granted windows.
macro_rules! rate_parameters {
    ($name:ident { $($own:tt)* } limit($default:literal, $value:expr, $source:literal)) => {
        rate_parameters!($name {
            $($own)*
            in_flight: InFlight {
                doc: "A limit of what is in flight, beside the rate.",
                default: $default,
                value: |_| $value,
                source: $source
            },
            window: Bytes {
                doc: "The window that `in_flight` means, at line rate.",
                default: "BDP; hpcc-lineage: rate x base RTT, headers counted",
                value: |path| path.bdp(),
                allowed: "at least 1B",
                check: |w| w.get() > 0,
                source: "HPCC, SIGCOMM 2019"
            },
            update_gap: bool {
                doc: "A new rate changes the gap to the next packet that is under way, too.",
                default: "true; hpcc-lineage: false",
                value: |_| true,
                source: "ours: a rate limiter does not sit out an old gap; HPCC's simulator does"
            },
        });
    };
    ($name:ident { $($own:tt)* }) => {
        crate::parameters!($name {
            $($own)*
            window_rule: WindowRule {
                doc: "Which packets the window lets go: any while less than it is in flight, or those that fit into it \
                    whole, so that a window of few packets is smaller than it says.",
                default: "\"below\"",
                value: |_| WindowRule::Below,
                source: "HPCC's simulator"
            },
            grant_until: GrantUntil {
                doc: "What ends a window that a switch granted: the first increase of the law's own rate or window, a \
                    time without notifications, or that a packet which left after the last one is acknowledged without \
                    another.",
                default: "\"first-increase\"",
                value: |_| GrantUntil::FirstIncrease,
                source: "Mercury, J. Cloud Computing 2024: \"first-increase\" is its algorithm 2, the others readings of \
                    its text"
            },
            grant_timeout: Period {
                doc: "That time.",
                default: "5 base RTT",
                value: |path| Period::of(path.base_rtt.saturating_mul(5)),
                source: "ours: DCQCN's cnp_interval, after which a congested receiver would have spoken again"
            },
        });
    };
}

/// The window of a law that sets a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    in_flight: InFlight,
    /// Bytes at line rate.
    window: f64,
    /// Bytes by which a packet may exceed it.
    slack: u64,
    /// Rate of the NIC in bit/s.
    line: f64,
}

impl Limit {
    /// A window of so many bytes at line rate; it is never smaller than one packet then.
    pub fn new(in_flight: InFlight, window: Bytes, rule: WindowRule, path: &Path) -> Self {
        Self {
            in_flight,
            window: window.get().max(path.mss.into()) as f64,
            slack: slack(rule, path),
            line: path.rate.as_f64(),
        }
    }

    /// Bytes that may be in flight at `rate` bit/s, what the last packet may exceed the window by included.
    #[inline]
    pub fn at(&self, rate: f64) -> u64 {
        self.window(rate).saturating_add(self.slack)
    }

    /// The window in bytes at `rate` bit/s; [`u64::MAX`] without.
    #[inline]
    pub fn window(&self, rate: f64) -> u64 {
        let bytes = match self.in_flight {
            InFlight::Unlimited => return u64::MAX,
            InFlight::Bdp => self.window,
            InFlight::RateBdp => self.window * rate / self.line,
        };
        (bytes as u64).max(1)
    }
}

/// The window at line rate in HPCC's simulator: bytes with headers, though it counts those in flight without.
pub fn lineage_window(path: &Path) -> Bytes {
    path.rate.bytes_in(path.base_rtt).max(Bytes::new(1))
}

/// What is to be added to a window of bytes, of which hosts take whole packets: with n packets in flight, n MSS < W is
/// (n + 1) MSS <= W + MSS - 1.
pub fn slack(rule: WindowRule, path: &Path) -> u64 {
    match rule {
        WindowRule::Fits => 0,
        WindowRule::Below => u64::from(path.mss).saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Raw, Setting};
    use incast_units::{Rate, Time};

    #[test]
    fn windows_follow_their_definitions() {
        let path = Path::new(Rate::from_gbps(10), Time::from_us(80), 1000, 1000);
        let limit = |in_flight, rule| Limit::new(in_flight, Bytes::new(100_000), rule, &path);
        assert_eq!(limit(InFlight::Unlimited, WindowRule::Below).at(1e9), u64::MAX);
        assert_eq!(limit(InFlight::Bdp, WindowRule::Fits).at(1e9), 100_000);
        assert_eq!(limit(InFlight::RateBdp, WindowRule::Fits).at(1e9), 10_000);
        assert_eq!(limit(InFlight::RateBdp, WindowRule::Fits).at(1.0), 1, "never closed");
        // Ten packets of 1,000 B: the tenth starts while 9,000 B are in flight, the eleventh would at 10,000.
        assert_eq!(limit(InFlight::RateBdp, WindowRule::Below).at(1e9) / 1000, 10);
        assert_eq!(limit(InFlight::RateBdp, WindowRule::Below).at(1.0001e9) / 1000, 11);
        assert_eq!(limit(InFlight::RateBdp, WindowRule::Below).window(1e9), 10_000, "itself");
        assert_eq!(limit(InFlight::Unlimited, WindowRule::Below).window(1e9), u64::MAX);
    }

    #[test]
    fn choices_have_names_and_nothing_else() {
        assert_eq!(Profile::read(&Raw::Text("paper".into())), Ok(Profile::Paper));
        assert_eq!(Profile::Scaled.write(), Raw::Text("scaled".into()));
        let refused = Profile::read(&Raw::Text("papers".into())).expect_err("no such profile");
        assert_eq!(refused, "found \"papers\", expected one of \"scaled\" \"paper\" \"hpcc-lineage\"");
        assert!(Profile::read(&Raw::Flag(true)).is_err());
    }
}
