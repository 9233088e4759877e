//! Estimators of clock differences from probes between hosts: Huygens, and two-way exchanges as NTP has them.
//!
//! Source: Y. Geng, S. Liu, Z. Yin, A. Naik, B. Prabhakar, M. Rosenblum, A. Vahdat, "Exploiting a Natural Network
//! Effect for Scalable, Fine-grained Clock Synchronization", NSDI 2018; D. Mills et al., RFC 5905 (NTP).
//!
//! - [`coded`]: accepts pairs of probes whose distance is unchanged on arrival.
//! - [`mod@envelope`]: the line between the lower bounds of one direction and the upper bounds of the other, by a
//!   support vector machine.
//! - [`two_way`]: the same line by averaging exchanges, or by the fastest of them.
//! - [`graph`]: clocks that agree as well as they can with the estimates of all edges.
//! - [`mod@asymmetry`]: the edge whose estimate the others contradict.
//!
//! Estimators see readings of clocks alone. How much clock B is ahead of clock A while A reads `x` is a line,
//! [`Line`]: the clocks run at constant rates within a window.

pub mod asymmetry;
pub mod coded;
pub mod envelope;
pub mod graph;
pub mod two_way;

pub use asymmetry::{Asymmetry, asymmetry};
pub use coded::accepted;
pub use envelope::envelope;
pub use graph::{Edge, Graph, GraphError};

/// Time stamps of one packet by the clocks of both ends, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Reading of the sender's clock when the packet left.
    pub sent_ps: i64,
    /// Reading of the receiver's clock when it came.
    pub received_ps: i64,
}

/// A coded pair: two packets sent a known gap apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodedPair {
    /// The packet that left first.
    pub first: Probe,
    /// The packet that left second.
    pub second: Probe,
}

/// A bound on how much clock B is ahead of clock A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Reading of A, from the start of the window, in nanoseconds.
    pub at_ns: f64,
    /// Reading of B minus reading of A, in nanoseconds: too much by the delay if the packet went from A to B, too
    /// little by the delay if it came from B.
    pub ahead_ns: f64,
}

impl Point {
    /// The sample of a packet from A to B; `start_ps` is the reading of A at which the window starts.
    pub fn forward(probe: Probe, start_ps: i64) -> Self {
        Self::new(probe.sent_ps, probe.received_ps, start_ps)
    }

    /// The sample of a packet from B to A; `start_ps` is the reading of A at which the window starts.
    pub fn reverse(probe: Probe, start_ps: i64) -> Self {
        Self::new(probe.received_ps, probe.sent_ps, start_ps)
    }

    fn new(a_ps: i64, b_ps: i64, start_ps: i64) -> Self {
        // Differences of readings are far below 2⁵³ ps (2.5 h), so they are exact.
        let ns = |from: i64, to: i64| to.wrapping_sub(from) as f64 / 1_000.0;
        Self { at_ns: ns(start_ps, a_ps), ahead_ns: ns(a_ps, b_ps) }
    }
}

/// How much clock B is ahead of clock A: `offset_ns + rate × x` while A reads `x` nanoseconds from the start of the
/// window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// At the start of the window, in nanoseconds.
    pub offset_ns: f64,
    /// Nanoseconds per nanosecond; 1e-6 is one ppm.
    pub rate: f64,
}

impl Line {
    /// How much B is ahead while A reads `at_ns`, in nanoseconds.
    pub fn at(&self, at_ns: f64) -> f64 {
        self.offset_ns + self.rate * at_ns
    }
}
