//! Halve: a window that grows by one MSS per round trip and is halved by a mark or a loss, once per window.
//!
//! Source: D. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer
//! Networks", Computer Networks and ISDN Systems 17(1), 1989 (additive increase, multiplicative decrease); RFC 3168,
//! section 6.1.2 (a mark counts like a loss, at most once per window).

use crate::{
    Feedback, Loss, Path,
    law::{Framing, LawInfo, Recovery, SenderLaw},
    parameters::{ParameterError, Raw},
};
use incast_units::{Bytes, Time};

crate::parameters!(Parameters {
    beta: f64 {
        doc: "What a mark or a loss leaves of the window.",
        default: "1/2",
        value: |_| 0.5,
        allowed: "in (0, 1)",
        check: |b| *b > 0.0 && *b < 1.0,
        source: "RFC 5681, equation 4"
    },
    initial_window: Bytes {
        doc: "Window of a new flow.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "ours: every scheme starts with one BDP"
    },
});

/// State of a flow. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Halve {
    window: f64,
    /// What was sent before the last reduction lies below this position and cannot cause another.
    reduction_end: u64,
    beta: f64,
    mss: f64,
}

impl Halve {
    /// `W = max(beta W, MSS)`; `next` is the first position never sent.
    fn reduce(&mut self, next: u64) {
        self.window = (self.window * self.beta).max(self.mss);
        self.reduction_end = next;
    }
}

impl SenderLaw for Halve {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "halve",
        title: "Halve",
        source: "Chiu and Jain, Computer Networks and ISDN Systems 1989; RFC 3168",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn start(parameters: &Parameters, path: &Path, _now: Time, _random: u32) -> Self {
        let window = parameters.initial_window.get() as f64;
        Self { window, reduction_end: 0, beta: parameters.beta, mss: path.mss.into() }
    }

    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        if feedback.marked > 0 {
            if feedback.acked > self.reduction_end {
                self.reduce(feedback.next);
            }
        } else if feedback.window_limited(self.window) {
            // `W += MSS × acked / W`: one MSS per window of acknowledgements.
            self.window += self.mss * feedback.acked_bytes as f64 / self.window;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.position >= self.reduction_end {
            self.reduce(loss.next);
        }
    }

    fn on_timeout(&mut self, _now: Time, next: u64) {
        self.window = self.mss;
        self.reduction_end = next;
    }

    fn window(&self) -> u64 {
        self.window as u64
    }
}
