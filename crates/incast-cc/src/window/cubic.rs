//! CUBIC: a window that follows a cubic function of the time since the last loss.
//!
//! Sources: RFC 9438 (CUBIC); RFC 9406 (HyStart++, the first slow start); RFC 6298 (smoothed RTT); RFC 5681
//! (FlightSize, timeouts); RFC 7661 (an unused window does not grow).
//!
//! ```text
//!   first slow start ─ CSS ends ─▶ avoidance ◀── acknowledged ── recovery
//!    (SS ◀─▶ CSS)                    ▲   │ loss: beta W             ▲
//!        └── loss ───────────────────┼───┴──────────────────────────┘
//!   slow start ◀── timeout: 1 MSS ───┤
//!        └──────── ssthresh ─────────┘
//! ```
//!
//! This is the loss-driven baseline: data is not ECN-capable unless `ecn` is set, with which a mark reduces the window
//! once per window, as a loss does, but to 1 MSS at the least in place of 2 (RFC 9438, section 4.6). A flow starts with
//! one BDP like all schemes here; set `initial_window` to ten segments for RFC 6928. At datacenter RTTs the Reno-friendly
//! region governs, and HyStart++'s thresholds of milliseconds seldom trigger: both are properties of the RFCs' constants,
//! which are parameters.
//!
//! Completions and deviations:
//! - RFC 9438's choice between FlightSize and cwnd in the reduction: the lesser of both.
//! - HyStart++'s limit L on growth per acknowledgement is left out in the first slow start: it is 8 MSS where nothing is
//!   paced, and an acknowledgement covers less unless others were lost. After a timeout there is one
//!   (`slow_start_limit`).
//! - No response to spurious losses or timeouts (section 4.9 is optional).
//! - A reduction never raises the window, which the lower bound of 2 MSS could do after a timeout.
//! - Marks leave 1 MSS at the least, also those of a window of 1 MSS, for which RFC 3168, section 6.1.2, would have the
//!   sender wait for its retransmission timer.

use super::slow_start::{SlowStartLimit, ten_segments};
use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw, Transport};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw, Setting},
};
use incast_units::{Bytes, Time};

crate::parameters!(Parameters {
    initial_window: Bytes {
        doc: "Window of a new flow. One BDP for all schemes alike; RFC 6928's ten segments are `10 * MSS`.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "ours: every scheme starts with one BDP"
    },
    beta: f64 {
        doc: "beta: what a loss leaves of the window.",
        default: "0.7",
        value: |_| 0.7,
        allowed: "in (0, 1)",
        check: |b| *b > 0.0 && *b < 1.0,
        source: "RFC 9438, section 4.6"
    },
    steepness: f64 {
        doc: "C: steepness of the cubic function in MSS per cubic second.",
        default: "0.4",
        value: |_| 0.4,
        allowed: "in (0, 1e18]",
        check: |c| *c > 0.0 && *c <= 1e18,
        source: "RFC 9438, section 5.1"
    },
    ecn: bool {
        doc: "Data is ECN-capable, and a mark is answered as a loss is, but leaves 1 MSS at the least, not 2.",
        default: "false",
        value: |_| false,
        source: "RFC 9438, section 4.6; ours: off"
    },
    fast_convergence: bool {
        doc: "Give up bandwidth when a loss comes before the last maximum was reached.",
        default: "true",
        value: |_| true,
        source: "RFC 9438, section 4.7"
    },
    slow_start_limit: SlowStartLimit {
        doc: "How much an acknowledgement may add in slow start: one MSS after a retransmission timeout, until what \
            had been sent before it is acknowledged, and otherwise what it newly covers; or always the latter.",
        default: "\"after-timeout\"",
        value: |_| SlowStartLimit::AfterTimeout,
        source: "RFC 3465, section 2.3; Linux has \"none\""
    },
    hystart: bool {
        doc: "Leave the first slow start when the RTT rises (HyStart++).",
        default: "true",
        value: |_| true,
        source: "RFC 9438, section 4.10"
    },
    hystart_min_threshold: Time {
        doc: "Least rise of the RTT that HyStart++ takes for a queue.",
        default: "4ms",
        value: |_| Time::from_ms(4),
        source: "RFC 9406, section 4.3"
    },
    hystart_max_threshold: Time {
        doc: "Largest rise of the RTT that HyStart++ waits for.",
        default: "16ms",
        value: |_| Time::from_ms(16),
        source: "RFC 9406, section 4.3"
    },
});

/// RFC 9406, section 4.3: MIN_RTT_DIVISOR, N_RTT_SAMPLE, CSS_GROWTH_DIVISOR, CSS_ROUNDS.
const HYSTART_DIVISOR: u64 = 8;
const HYSTART_SAMPLES: u8 = 8;
const CSS_GROWTH: f64 = 0.25;
const CSS_ROUNDS: u8 = 5;

/// The state of HyStart++ in the first slow start.
#[derive(Clone, Copy, Debug)]
struct HyStart {
    /// windowEnd: the round ends when the byte at this position is acknowledged (RFC 9406, section 4.2).
    round_end: u64,
    /// Least RTT of the last round and of this one; [`Time::MAX`] for none.
    last: Time,
    current: Time,
    /// Least RTT when conservative slow start (CSS) began; [`Time::MAX`] outside it.
    baseline: Time,
    /// RTT samples of this round, and rounds of CSS, saturating.
    samples: u8,
    rounds: u8,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began, moved on by the time in which the window was not used.
    start: Time,
    /// The last acknowledgement.
    last: Time,
    /// K in seconds.
    k: f64,
    /// W_est, the window that Reno would have.
    reno: f64,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    FirstSlowStart(HyStart),
    SlowStart,
    /// The epoch begins with the first growth, thus after recovery. Without a loss W_max is unknown.
    Entering {
        after_loss: bool,
    },
    Avoidance(Epoch),
}

/// Why the window was last reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Loss,
    Timeout,
}

/// State of a flow. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: f64,
    /// ssthresh.
    threshold: f64,
    /// W_max.
    max: f64,
    /// cwnd_prior.
    prior: f64,
    stage: Stage,
    smoothed_rtt: Time,
    /// The last reduction: what was sent before it lies below this position and cannot cause another.
    reduction_end: u64,
    /// When it was; a retransmission that was sent since then can.
    reduced: Time,
    /// Everything below is acknowledged.
    acked: u64,
    beta: f64,
    /// C in bytes per cubic second.
    steepness: f64,
    /// alpha_cubic.
    reno_gain: f64,
    mss: f64,
    hystart_min_threshold: Time,
    hystart_max_threshold: Time,
    cause: Cause,
    limit: SlowStartLimit,
    ecn: bool,
    fast_convergence: bool,
}

fn seconds(time: Time) -> f64 {
    time.ps() as f64 * 1e-12
}

/// `K = cbrt((W_max - cwnd_epoch) / C)` (RFC 9438, figure 2); 0 where the maximum is not above the window.
fn time_to_max(max: f64, window: f64, steepness: f64) -> f64 {
    libm::cbrt((max - window).max(0.0) / steepness)
}

/// `W_cubic(t) = C (t - K)^3 + W_max` (RFC 9438, figure 1).
#[inline]
fn w_cubic(t: f64, k: f64, max: f64, steepness: f64) -> f64 {
    let from_max = t - k;
    steepness * from_max * from_max * from_max + max
}

/// `alpha_cubic = 3 (1 - beta) / (1 + beta)` (RFC 9438, section 4.3): with it, AIMD with beta is as fast as Reno.
fn reno_gain(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// `W_max = cwnd`, or `cwnd (1 + beta) / 2` with fast convergence below the last maximum (RFC 9438, section 4.7).
fn next_max(window: f64, max: f64, beta: f64, fast_convergence: bool) -> f64 {
    if fast_convergence && window < max { window * (1.0 + beta) / 2.0 } else { window }
}

/// `RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH))` (RFC 9406, section 4.2).
fn rtt_threshold(last: Time, min: Time, max: Time) -> Time {
    (last / HYSTART_DIVISOR).min(max).max(min)
}

/// `SRTT = 7/8 SRTT + 1/8 R` (RFC 6298, section 2), the RTT of RFC 9438, section 4.1.2; the first sample sets it.
fn next_smoothed_rtt(smoothed: Time, rtt: Time) -> Time {
    if smoothed == Time::ZERO { rtt } else { smoothed - smoothed / 8 + rtt / 8 }
}

impl HyStart {
    /// Takes the RTT of an acknowledgement; true if slow start is over (RFC 9406, section 4.2).
    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>, min_threshold: Time, max_threshold: Time) -> bool {
        // A round ends when the first packet that was sent in the next one is acknowledged.
        if feedback.acked > self.round_end {
            self.round_end = feedback.next;
            (self.last, self.current, self.samples) = (self.current, Time::MAX, 0);
            if self.in_css() {
                self.rounds += 1;
            }
        }
        self.current = self.current.min(feedback.rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= HYSTART_SAMPLES {
            if self.in_css() {
                if self.current < self.baseline {
                    // The rise was no queue: back to slow start.
                    (self.baseline, self.rounds) = (Time::MAX, 0);
                }
            } else if self.last != Time::MAX
                && self.current >= self.last.saturating_add(rtt_threshold(self.last, min_threshold, max_threshold))
            {
                self.baseline = self.current;
            }
        }
        self.rounds >= CSS_ROUNDS
    }

    fn in_css(&self) -> bool {
        self.baseline != Time::MAX
    }
}

impl Cubic {
    /// What a loss leaves at the least of the window, and any reduction of ssthresh.
    fn min_window(&self) -> f64 {
        2.0 * self.mss
    }

    /// FlightSize as RFC 5681 defines it (sent, not cumulatively acknowledged), but no more than the window: after a
    /// reduction, what is in flight was sent under a larger window.
    fn flight(&self, next: u64) -> f64 {
        (next.saturating_sub(self.acked) as f64).min(self.window)
    }

    /// A loss, or a mark; `next` is the first position never sent, and `least` what is left of the window at least
    /// (RFC 9438, figure 5).
    fn reduce(&mut self, now: Time, next: u64, least: f64) {
        self.max = next_max(self.window, self.max, self.beta, self.fast_convergence);
        self.prior = self.window;
        let left = self.flight(next) * self.beta;
        self.threshold = left.max(self.min_window());
        self.window = self.window.min(left.max(least));
        self.stage = if self.window < self.threshold { Stage::SlowStart } else { Stage::Entering { after_loss: true } };
        self.cause = Cause::Loss;
        (self.reduction_end, self.reduced) = (next, now);
    }

    fn first_slow_start(&mut self, mut hystart: HyStart, feedback: &Feedback<'_>) {
        let over = hystart.on_ack(feedback, self.hystart_min_threshold, self.hystart_max_threshold);
        if feedback.window_limited(self.window) {
            let bytes = feedback.acked_bytes as f64;
            self.window += if hystart.in_css() { bytes * CSS_GROWTH } else { bytes };
        }
        self.stage = Stage::FirstSlowStart(hystart);
        if over {
            self.threshold = self.window;
            self.prior = self.window;
            self.stage = Stage::Entering { after_loss: false };
        }
    }

    /// `recovers`: see [`SlowStartLimit::growth`].
    fn slow_start(&mut self, feedback: &Feedback<'_>, recovers: bool) {
        if feedback.window_limited(self.window) {
            let growth = self.limit.growth(feedback.acked_bytes, recovers, self.mss);
            self.window = (self.window + growth).min(self.threshold.max(self.window));
        }
        if self.window >= self.threshold {
            // A reduction to less than ssthresh leaves W_max, a timeout does not.
            self.stage = Stage::Entering { after_loss: self.cause == Cause::Loss };
        }
    }

    fn enter_avoidance(&mut self, now: Time, after_loss: bool) {
        // Without a loss, and above the old maximum, the epoch starts at its own inflection point, so that K = 0.
        if !after_loss || self.max < self.window {
            self.max = self.window;
        }
        let k = time_to_max(self.max, self.window, self.steepness);
        self.stage = Stage::Avoidance(Epoch { start: now, last: now, k, reno: self.window });
    }

    fn avoid(&mut self, feedback: &Feedback<'_>) {
        let Stage::Avoidance(epoch) = &mut self.stage else { return };
        if feedback.window_limited(self.window) {
            // A coalesced acknowledgement of more than a window must not step past the target.
            let share = (feedback.acked_bytes as f64 / self.window).min(1.0);
            let gain = if epoch.reno >= self.prior { 1.0 } else { self.reno_gain };
            epoch.reno += gain * self.mss * share;
            let t = seconds(feedback.now.saturating_sub(epoch.start));
            if w_cubic(t, epoch.k, self.max, self.steepness) < epoch.reno {
                self.window = self.window.max(epoch.reno);
            } else {
                let target = w_cubic(t + seconds(self.smoothed_rtt), epoch.k, self.max, self.steepness);
                self.window += (target.clamp(self.window, 1.5 * self.window) - self.window) * share;
            }
        } else {
            // Time in which the window was not used does not count (RFC 9438, section 4.2).
            epoch.start = epoch.start.saturating_add(feedback.now.saturating_sub(epoch.last));
        }
        epoch.last = feedback.now;
    }
}

impl SenderLaw for Cubic {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "cubic",
        title: "CUBIC",
        source: "RFC 9438; RFC 9406",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    /// `net/ipv4/tcp_cubic.c`.
    fn linux(path: &Path) -> Vec<(&'static str, Raw)> {
        vec![("initial_window", ten_segments(path)), ("slow_start_limit", SlowStartLimit::None.write())]
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn transport(parameters: &Parameters) -> Transport {
        Transport { ecn_capable: parameters.ecn, ..Transport::of(&Self::INFO) }
    }
    fn start(parameters: &Parameters, path: &Path, _now: Time, _random: u32) -> Self {
        let initial_window = parameters.initial_window.get();
        let mss = f64::from(path.mss);
        let stage = if parameters.hystart {
            Stage::FirstSlowStart(HyStart {
                round_end: initial_window,
                last: Time::MAX,
                current: Time::MAX,
                baseline: Time::MAX,
                samples: 0,
                rounds: 0,
            })
        } else {
            Stage::SlowStart
        };
        Self {
            window: initial_window as f64,
            threshold: f64::INFINITY,
            max: 0.0,
            prior: 0.0,
            stage,
            smoothed_rtt: Time::ZERO,
            reduction_end: 0,
            reduced: Time::ZERO,
            acked: 0,
            beta: parameters.beta,
            steepness: parameters.steepness * mss,
            reno_gain: reno_gain(parameters.beta),
            mss,
            hystart_min_threshold: parameters.hystart_min_threshold,
            hystart_max_threshold: parameters.hystart_max_threshold,
            cause: Cause::Loss,
            limit: parameters.slow_start_limit,
            ecn: parameters.ecn,
            fast_convergence: parameters.fast_convergence,
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        let recovers = self.cause == Cause::Timeout && self.acked < self.reduction_end;
        self.acked = self.acked.max(feedback.acked);
        self.smoothed_rtt = next_smoothed_rtt(self.smoothed_rtt, feedback.rtt);
        if self.cause == Cause::Loss && self.acked < self.reduction_end {
            return;
        }
        // Once per window: the mark of a packet that was sent after the last reduction, of which the last one before
        // it ends at `reduction_end`. No mark grows the window (RFC 3168, section 6.1.2).
        if self.ecn && feedback.marked > 0 {
            if self.acked > self.reduction_end {
                self.reduce(feedback.now, feedback.next, self.mss);
            }
            return;
        }
        match self.stage {
            Stage::Avoidance(_) => self.avoid(feedback),
            Stage::Entering { after_loss } => {
                self.enter_avoidance(feedback.now, after_loss);
                self.avoid(feedback);
            }
            Stage::SlowStart => self.slow_start(feedback, recovers),
            Stage::FirstSlowStart(hystart) => self.first_slow_start(hystart, feedback),
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        // The retransmissions of a timeout are no news of it (RFC 6675, section 5.1).
        let reduced = if self.cause == Cause::Timeout { Time::MAX } else { self.reduced };
        if loss.is_new(self.reduction_end, reduced) {
            self.reduce(loss.now, loss.next, self.min_window());
        }
    }

    fn on_timeout(&mut self, now: Time, next: u64) {
        // Of timeouts in a row only the first sets ssthresh (RFC 5681, section 3.1).
        if self.cause != Cause::Timeout || self.acked >= self.reduction_end {
            self.prior = self.window;
            self.threshold = (self.flight(next) * self.beta).max(self.min_window());
        }
        self.window = self.window.min(self.mss);
        self.stage = Stage::SlowStart;
        self.cause = Cause::Timeout;
        (self.reduction_end, self.reduced) = (next, now);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_units::Rate;

    const MSS: u64 = 1000;

    fn flow(given: &[(&str, Raw)]) -> Cubic {
        let path = Path::new(Rate::from_gbps(10), Time::from_us(80), 1000, 1000);
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Cubic::start(&Parameters::resolve(&path, &given).expect("allowed"), &path, Time::ZERO, 0)
    }

    /// One packet acknowledged at `now` in a flow that is limited by its window.
    fn ack(law: &mut Cubic, now: Time, rtt: Time, acked: u64, next: u64) {
        let in_flight = law.window().saturating_sub(MSS);
        let bytes = MSS;
        law.on_ack(&Feedback {
            now,
            rtt,
            acked_bytes: bytes,
            packets: 1,
            acked,
            next,
            in_flight,
            ..Feedback::default()
        });
    }

    fn lose(law: &mut Cubic, position: u64, next: u64) {
        law.on_loss(&Loss { lost_bytes: MSS, position, last: position, next, ..Loss::default() });
    }

    #[test]
    fn the_cubic_function_returns_to_the_maximum_after_k() {
        let k = time_to_max(100.0, 70.0, 0.4);
        assert!((k - 4.217).abs() < 5e-4, "{k}");
        assert!((w_cubic(0.0, k, 100.0, 0.4) - 70.0).abs() < 1e-9);
        assert_eq!(w_cubic(k, k, 100.0, 0.4), 100.0);
        assert!((w_cubic(k + 1.0, k, 100.0, 0.4) - 100.4).abs() < 1e-9);
        assert_eq!(time_to_max(70.0, 100.0, 0.4), 0.0);
    }

    #[test]
    fn a_mark_is_answered_like_a_loss_once_per_window() {
        let marked = |law: &mut Cubic, acked: u64, next: u64| {
            let in_flight = law.window().saturating_sub(MSS);
            let (packets, marked) = (1, 1);
            law.on_ack(&Feedback { acked_bytes: MSS, packets, marked, acked, next, in_flight, ..Feedback::default() });
        };
        let window = [("initial_window", Raw::Text("100KB".into())), ("ecn", Raw::Flag(true))];
        let mut law = flow(&window);
        let mut lossy = law.clone();
        marked(&mut law, MSS, 101 * MSS);
        lossy.acked = MSS;
        lose(&mut lossy, MSS, 101 * MSS);
        assert_eq!((law.window(), lossy.window()), (70 * MSS, 70 * MSS));
        // Sent before the reduction: it cannot know of it. The last such packet ends at 101 MSS.
        marked(&mut law, 100 * MSS, 150 * MSS);
        assert_eq!(law.window(), 70 * MSS);
        marked(&mut law, 101 * MSS, 171 * MSS);
        assert_eq!(law.window(), 70 * MSS);
        marked(&mut law, 102 * MSS, 172 * MSS);
        assert_eq!(law.window(), 49 * MSS);
        let mut without_ecn = flow(&window[..1]);
        marked(&mut without_ecn, MSS, 101 * MSS);
        assert!(without_ecn.window() >= 100 * MSS);
        let is_capable = |given: &[(&str, Raw)]| {
            let path = Path::new(Rate::from_gbps(10), Time::from_us(80), 1000, 1000);
            let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
            Cubic::transport(&Parameters::resolve(&path, &given).expect("allowed")).ecn_capable
        };
        assert!(is_capable(&window) && !is_capable(&window[..1]));
    }

    #[test]
    fn constants_are_those_of_the_rfc() {
        assert!((reno_gain(0.7) - 9.0 / 17.0).abs() < 1e-15);
        assert_eq!(next_max(100.0, 90.0, 0.7, true), 100.0);
        assert_eq!(next_max(80.0, 90.0, 0.5, true), 60.0);
        assert_eq!(next_max(80.0, 90.0, 0.5, false), 80.0);
        let (min, max) = (Time::from_ms(4), Time::from_ms(16));
        for (last, threshold) in [(1, 4), (80, 10), (1000, 16)] {
            assert_eq!(rtt_threshold(Time::from_ms(last), min, max), Time::from_ms(threshold));
        }
        assert_eq!(next_smoothed_rtt(Time::ZERO, Time::from_us(8)), Time::from_us(8));
        assert_eq!(next_smoothed_rtt(Time::from_us(8), Time::from_us(16)), Time::from_us(9));
    }

    #[test]
    fn a_loss_episode_reduces_once_and_growth_waits_for_its_end() {
        let mut law = flow(&[]);
        ack(&mut law, Time::ZERO, Time::from_us(80), 0, 101_000);
        lose(&mut law, 0, 101_000);
        assert_eq!(law.window(), 70_700);
        assert_eq!((law.max, law.prior), (101_000.0, 101_000.0));
        lose(&mut law, 50_000, 110_000);
        ack(&mut law, Time::from_us(80), Time::from_us(80), 50_000, 110_000);
        assert_eq!(law.window(), 70_700);
        ack(&mut law, Time::from_us(160), Time::from_us(80), 101_000, 171_000);
        assert!(matches!(law.stage, Stage::Avoidance(epoch) if epoch.start == Time::from_us(160)));
        lose(&mut law, 110_000, 171_000);
        assert_eq!(law.threshold, 70_000.0 * 0.7, "FlightSize is less than the window");
        assert!((law.max / law.prior - 0.85).abs() < 1e-12, "fast convergence");
    }

    /// Drives congestion avoidance in rounds of `rtt` and returns the window at each.
    fn rounds(law: &mut Cubic, rtt: Time, count: u64) -> Vec<f64> {
        let (mut now, mut position) = (Time::from_ms(1), law.reduction_end);
        (0..count)
            .map(|_| {
                let packets = law.window() / MSS;
                for packet in 0..packets {
                    position += MSS;
                    let at = now + Time::from_ps(rtt.ps() * packet / packets);
                    ack(law, at, rtt, position, position + law.window());
                }
                now += rtt;
                law.window
            })
            .collect()
    }

    #[test]
    fn long_paths_follow_the_cubic_function() {
        let mut law = flow(&[("initial_window", Raw::Text("1MB".into()))]);
        lose(&mut law, 0, 1_000_000);
        let series = rounds(&mut law, Time::from_ms(100), 90);
        let k = time_to_max(1_000_000.0, 700_000.0, 400.0);
        for (round, window) in series.iter().enumerate() {
            let exact = w_cubic((round + 1) as f64 * 0.1, k, 1_000_000.0, 400.0);
            assert!((window - exact).abs() < 0.012 * exact, "round {round}: {window} against {exact}");
        }
        assert!(series[89] < 1_000_000.0 && series[89] > 999_000.0);
    }

    #[test]
    fn short_paths_grow_like_reno() {
        let mut law = flow(&[]);
        lose(&mut law, 0, 100_000);
        let series = rounds(&mut law, Time::from_us(80), 80);
        let slope = (series[40] - series[0]) / 40.0;
        assert!((slope - 1000.0 * 9.0 / 17.0).abs() < 10.0, "{slope}");
        let steeper = (series[79] - series[69]) / 10.0;
        assert!((steeper - 1000.0).abs() < 20.0, "beyond cwnd_prior: {steeper}");
    }

    #[test]
    fn unused_time_does_not_count() {
        let mut law = flow(&[]);
        lose(&mut law, 0, 100_000);
        ack(&mut law, Time::from_ms(1), Time::from_us(80), 100_000, 170_000);
        let idle = Feedback { now: Time::from_ms(900), acked_bytes: MSS, app_limited: true, ..Feedback::default() };
        let before = law.window();
        law.on_ack(&idle);
        assert_eq!(law.window(), before);
        assert!(matches!(law.stage, Stage::Avoidance(epoch) if epoch.start == Time::from_ms(900)));
    }

    #[test]
    fn a_timeout_leaves_one_mss_and_a_fresh_inflection_point() {
        let mut law = flow(&[]);
        law.on_timeout(Time::ZERO, 100_000);
        law.on_timeout(Time::ZERO, 100_000);
        assert_eq!((law.window(), law.threshold, law.prior), (MSS, 70_000.0, 100_000.0));
        lose(&mut law, 5000, 100_000);
        assert_eq!(law.window(), MSS);
        for packet in 1..=69 {
            ack(&mut law, Time::from_us(packet), Time::from_us(80), packet * MSS, 200_000);
        }
        assert_eq!(law.window(), 70_000);
        ack(&mut law, Time::from_us(100), Time::from_us(80), 70_000, 200_000);
        assert_eq!(law.max, 70_000.0);
        assert!(matches!(law.stage, Stage::Avoidance(epoch) if epoch.k == 0.0));
    }

    /// What repairs a timeout's first loss may cover much that had arrived before.
    #[test]
    fn an_acknowledgement_after_a_timeout_adds_one_mss() {
        let after = |given: &[(&str, Raw)]| {
            let mut law = flow(given);
            law.on_timeout(Time::ZERO, 100_000);
            let covers = |acked_bytes, acked| Feedback { acked_bytes, acked, next: 200_000, ..Feedback::default() };
            [covers(60_000, 99_000), covers(1_000, 100_000), covers(3_000, 103_000)].map(|feedback| {
                law.on_ack(&feedback);
                law.window()
            })
        };
        assert_eq!(after(&[]), [2_000, 3_000, 6_000], "one MSS until all before the timeout is acknowledged");
        assert_eq!(after(&[("slow_start_limit", Raw::Text("none".into()))])[0], 61_000);
    }

    #[test]
    fn a_lost_retransmission_counts_in_fast_recovery_and_not_after_a_timeout() {
        let lost = |law: &mut Cubic, at: u64, sent: u64| {
            let (now, resent) = (Time::from_us(at), Some(Time::from_us(sent)));
            law.on_loss(&Loss { now, lost_bytes: MSS, next: 100_000, resent, ..Loss::default() });
            (law.window(), law.threshold as u64)
        };
        let given = [("initial_window", Raw::Text("100KB".into()))];
        let mut law = flow(&given);
        law.on_loss(&Loss { now: Time::from_us(10), lost_bytes: MSS, next: 100_000, ..Loss::default() });
        assert_eq!(law.window(), 70_000);
        assert_eq!(lost(&mut law, 30, 9).0, 70_000, "sent before the reduction");
        assert_eq!(lost(&mut law, 30, 10).0, 49_000, "sent after it");
        assert_eq!(lost(&mut law, 31, 29).0, 49_000, "sent before that");
        // Two at once, one of which was sent before the end of the reduction and one after it.
        let straddling = |now, last| Loss { now, lost_bytes: 2 * MSS, last, next: 200_000, ..Loss::default() };
        law.on_loss(&straddling(Time::from_us(40), 99_000));
        assert_eq!(law.window(), 49_000);
        law.on_loss(&straddling(Time::from_us(41), 100_000));
        assert_eq!(law.window(), 34_300);
        let mut law = flow(&given);
        law.on_timeout(Time::from_us(10), 100_000);
        assert_eq!(lost(&mut law, 30, 20), (1_000, 70_000), "slow start goes on");
    }

    #[test]
    fn marks_leave_one_mss_and_losses_two() {
        let given = [("ecn", Raw::Flag(true)), ("initial_window", Raw::Text("2500B".into()))];
        let mut lossy = flow(&given);
        lose(&mut lossy, 0, 2_500);
        assert_eq!((lossy.window(), lossy.threshold), (2 * MSS, 2_000.0));
        let mut law = flow(&given);
        let mut position = 0;
        let mut mark = |law: &mut Cubic, marked| {
            position += 10 * MSS;
            let (acked, next) = (position, position + law.window());
            law.on_ack(&Feedback { acked_bytes: MSS, packets: 1, marked, acked, next, ..Feedback::default() });
            law.window()
        };
        assert_eq!([1, 1, 1, 1].map(|marked| mark(&mut law, marked)), [1_750, 1_225, MSS, MSS]);
        // ssthresh is 2 MSS: slow start goes there.
        assert_eq!((law.threshold, mark(&mut law, 0)), (2_000.0, 2 * MSS));
        assert!(matches!(law.stage, Stage::Entering { after_loss: true }));
    }

    /// One round of the first slow start: `packets` acknowledgements, the first of which begins it.
    fn slow_start_round(law: &mut Cubic, packets: u64, rtt: Time) {
        let Stage::FirstSlowStart(HyStart { round_end, .. }) = law.stage else { return };
        for packet in 1..=packets {
            ack(law, Time::ZERO, rtt, round_end + packet * MSS, round_end + 100_000);
        }
    }

    #[test]
    fn a_round_of_slow_start_ends_when_a_packet_of_the_next_is_acknowledged() {
        let mut law = flow(&[]);
        let end = |law: &Cubic| match law.stage {
            Stage::FirstSlowStart(hystart) => hystart.round_end,
            _ => unreachable!("nothing ends slow start here"),
        };
        assert_eq!(end(&law), 100_000);
        ack(&mut law, Time::ZERO, Time::from_ms(1), 100_000, 200_000);
        assert_eq!(end(&law), 100_000, "the last packet of the round");
        ack(&mut law, Time::ZERO, Time::from_ms(1), 101_000, 201_000);
        assert_eq!(end(&law), 201_000, "the first one of the next");
    }

    #[test]
    fn hystart_leaves_slow_start_when_the_rtt_rises() {
        let mut law = flow(&[]);
        slow_start_round(&mut law, 10, Time::from_ms(50));
        slow_start_round(&mut law, 10, Time::from_ms(56));
        assert_eq!(law.window(), 120_000, "6 ms are less than 50/8 ms");
        slow_start_round(&mut law, 10, Time::from_ms(63));
        // The eighth sample is the first to be believed, and itself grows the window by a quarter.
        assert_eq!(law.window(), 127_750);
        for _ in 0..4 {
            slow_start_round(&mut law, 10, Time::from_ms(63));
        }
        assert!(matches!(law.stage, Stage::FirstSlowStart(_)));
        slow_start_round(&mut law, 1, Time::from_ms(63));
        assert_eq!((law.window(), law.threshold, law.prior), (138_000, 138_000.0, 138_000.0));
        ack(&mut law, Time::from_ms(1), Time::from_ms(63), 1_000_000, 1_100_000);
        assert_eq!(law.max, 138_000.0);
    }

    #[test]
    fn hystart_resumes_slow_start_when_the_rtt_falls() {
        let mut law = flow(&[]);
        slow_start_round(&mut law, 10, Time::from_ms(50));
        slow_start_round(&mut law, 10, Time::from_ms(57));
        slow_start_round(&mut law, 10, Time::from_ms(51));
        let before = law.window();
        slow_start_round(&mut law, 10, Time::from_ms(51));
        assert_eq!(law.window(), before + 10_000);
    }

    #[test]
    fn hystart_can_be_switched_off() {
        let mut law = flow(&[("hystart", Raw::Flag(false))]);
        for packet in 1..=100 {
            ack(&mut law, Time::ZERO, Time::from_ms(packet), packet * MSS, 300_000);
        }
        assert_eq!(law.window(), 200_000);
    }

    #[test]
    fn state_is_small() {
        assert!(size_of::<Cubic>() <= 168, "{}", size_of::<Cubic>());
    }
}
