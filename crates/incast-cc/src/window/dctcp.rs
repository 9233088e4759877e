//! DCTCP: a window cut in proportion to the share of marked bytes.
//!
//! Sources: RFC 8257; M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010. Growth, loss and timeout are those
//! of standard TCP (RFC 5681), with appropriate byte counting (RFC 3465) and congestion window validation (RFC 7661).
//!
//! ```text
//!              mark: W(1 - alpha/2)                 loss: half of the window before the cut
//!   slow start ────────────────────▶ avoidance ◀──────────────▶ recovery (no growth until
//!       ▲                                │                      the episode is acknowledged)
//!       └─────── timeout: 1 MSS ─────────┴──────────────────────────┘
//! ```
//!
//! Completions and deviations:
//! - Marks arrive per packet, not through the delayed-ACK state machine of RFC 8257, section 3.2: that is the
//!   receiver's affair. A coalesced acknowledgement counts its marked share.
//! - RFC 3465's limit of 2 MSS per acknowledgement in slow start is left out, as hosts acknowledge few packets at once.
//!   That of one MSS after a timeout is not (`slow_start_limit`).
//! - Fast recovery keeps the window at ssthresh (as RFC 6675 does) in place of RFC 5681's inflation by duplicate ACKs.
//! - A loss in a window that a mark has already cut is one congestion event (RFC 3168, section 6.1.2), but must end
//!   like one of standard TCP (RFC 8257, section 3.5). So it lowers the window to half of what it was before the mark.
//! - A reduction never raises the window, which RFC 5681's lower bound of 2 MSS could do after a timeout.

use super::{
    prr::Reduction,
    slow_start::{SlowStartLimit, ten_segments},
};
use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw, Transport};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw, Setting},
};
use incast_units::{Bytes, Time};

crate::parameters!(Parameters {
    gain: f64 {
        doc: "g: weight of the newest window in the moving average of the marked share.",
        default: "1/16",
        value: |_| 1.0 / 16.0,
        allowed: "in (0, 1]",
        check: |g| *g > 0.0 && *g <= 1.0,
        source: "RFC 8257"
    },
    initial_window: Bytes {
        doc: "Window of a new flow. One BDP for all schemes alike; RFC 6928's ten segments are `10 * MSS`.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "ours: every scheme starts with one BDP"
    },
    initial_alpha: f64 {
        doc: "alpha of a new flow; 1 makes the first mark halve the window.",
        default: "1",
        value: |_| 1.0,
        allowed: "in [0, 1]",
        check: |a| *a >= 0.0 && *a <= 1.0,
        source: "RFC 8257"
    },
    whole_packets: bool {
        doc: "Windows and what marks take of them are whole packets, both rounded down: so a small window \
            loses nothing to few marks. Otherwise bytes.",
        default: "false",
        value: |_| false,
        source: "Linux tcp_dctcp has true; RFC 8257 counts bytes"
    },
    cwr: bool {
        doc: "What a mark takes of the window is taken over a round trip, by proportional rate reduction, in \
            which the window does not grow (the state CWR). Otherwise at once.",
        default: "false",
        value: |_| false,
        source: "Linux has true (tcp_enter_cwr); RFC 8257 reduces the window at once"
    },
    slow_start_limit: SlowStartLimit {
        doc: "How much an acknowledgement may add in slow start: one MSS after a retransmission timeout, until what \
            had been sent before it is acknowledged, and otherwise what it newly covers; or always the latter.",
        default: "\"after-timeout\"",
        value: |_| SlowStartLimit::AfterTimeout,
        source: "RFC 3465, section 2.3; Linux has \"none\""
    },
    min_window: Bytes {
        doc: "What marks and losses leave at least. Below one MSS the host paces single packets.",
        default: "2 MSS",
        value: |path| Bytes::new(2 * u64::from(path.mss)),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "RFC 5681, equation 4; Linux tcp_dctcp does the same for marks"
    },
});

/// Why the window was last reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Mark,
    Loss,
    Timeout,
}

/// State of a flow. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: f64,
    /// ssthresh: slow start below it.
    threshold: f64,
    alpha: f64,
    /// Bytes acknowledged in the current observation window, and how many of them were marked.
    observed: u64,
    marked: u64,
    /// The observation window ends when this is exceeded.
    observation_end: u64,
    /// Bytes acknowledged since the last growth in congestion avoidance.
    counted: f64,
    /// The last reduction: what was sent before it lies below this position and cannot cause another.
    reduction_end: u64,
    /// When it was; a retransmission that was sent since then can.
    reduced: Time,
    /// The window before that reduction.
    before: f64,
    cause: Cause,
    /// Everything below is acknowledged.
    acked: u64,
    gain: f64,
    min_window: f64,
    limit: SlowStartLimit,
    whole_packets: bool,
    /// Marks reduce the window over a round trip.
    cwr: bool,
    /// Such a reduction, until more than `reduction_end` is acknowledged.
    reduction: Option<Box<Reduction>>,
    mss: f64,
}

/// `alpha = (1 - g) alpha + g M` with `M = marked / observed` (RFC 8257, section 3.3, steps 5 and 6).
fn next_alpha(alpha: f64, gain: f64, marked: u64, observed: u64) -> f64 {
    // Written as a step so that alpha stays within [0, 1] and reaches its fixed point exactly.
    alpha + gain * (marked as f64 / observed as f64 - alpha)
}

/// `W (1 - alpha / 2)` (RFC 8257, sections 3.3 and 3.4).
fn after_mark(window: f64, alpha: f64) -> f64 {
    window * (1.0 - alpha / 2.0)
}

/// The same in whole packets, `W - floor(W alpha / 2)`.
fn after_mark_whole(window: f64, alpha: f64, mss: f64) -> f64 {
    let packets = (window / mss).floor();
    (packets - (packets * alpha / 2.0).floor()) * mss
}

/// `ssthresh = max(flight / 2, lower bound)` (RFC 5681, equation 4).
fn after_loss(flight: f64, min_window: f64) -> f64 {
    (flight / 2.0).max(min_window)
}

impl Dctcp {
    fn observe(&mut self, feedback: &Feedback<'_>) {
        self.observed += feedback.acked_bytes;
        if feedback.marked >= feedback.packets {
            self.marked += if feedback.marked > 0 { feedback.acked_bytes } else { 0 };
        } else if feedback.marked > 0 {
            self.marked += feedback.acked_bytes * u64::from(feedback.marked) / u64::from(feedback.packets);
        }
        if feedback.acked > self.observation_end {
            if self.observed > 0 {
                self.alpha = next_alpha(self.alpha, self.gain, self.marked, self.observed);
            }
            self.observation_end = feedback.next;
            (self.observed, self.marked) = (0, 0);
        }
    }

    /// `recovers`: see [`SlowStartLimit::growth`].
    fn grow(&mut self, bytes: u64, recovers: bool) {
        if self.window < self.threshold {
            self.window = (self.window + self.limit.growth(bytes, recovers, self.mss)).min(self.threshold);
            return;
        }
        // One MSS for each window acknowledged (RFC 3465, section 2.1): no division per acknowledgement.
        self.counted += bytes as f64;
        if self.counted >= self.window {
            self.counted = (self.counted - self.window).min(self.window);
            self.window += self.mss;
        }
    }

    /// Sets ssthresh, and the window if that is lower; `next` is the first position never sent
    /// at that time.
    fn reduce(&mut self, cause: Cause, threshold: f64, window: f64, (next, now): (u64, Time)) {
        self.threshold = threshold;
        self.window = self.window.min(window);
        self.counted = 0.0;
        self.cause = cause;
        (self.reduction_end, self.reduced) = (next, now);
    }

    /// An acknowledgement in CWR, which ends when something sent after its start is acknowledged (Linux).
    #[cold]
    fn go_on_reducing(&mut self, feedback: &Feedback<'_>) {
        if feedback.acked > self.reduction_end {
            self.reduction = None;
        } else if let Some(reduction) = &mut self.reduction {
            reduction.on_ack(feedback.acked_bytes, feedback.in_flight);
        }
    }

    /// FlightSize as RFC 5681 defines it (sent, not cumulatively acknowledged), but no more than `window`: after a
    /// reduction, what is in flight was sent under a larger window.
    fn flight(&self, next: u64, window: f64) -> f64 {
        (next.saturating_sub(self.acked) as f64).min(window)
    }
}

impl SenderLaw for Dctcp {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "dctcp",
        title: "DCTCP",
        source: "RFC 8257; Alizadeh et al., SIGCOMM 2010",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    /// Linux sets ECT in all packets of a law that needs ECN (`tcp_ca_needs_ecn`), SYN and acknowledgements included.
    fn transport(_parameters: &Parameters) -> Transport {
        Transport { control_ecn_capable: true, ..Transport::of(&Self::INFO) }
    }
    /// `net/ipv4/tcp_dctcp.c`.
    fn linux(path: &Path) -> Vec<(&'static str, Raw)> {
        vec![
            ("initial_window", ten_segments(path)),
            ("whole_packets", Raw::Flag(true)),
            ("cwr", Raw::Flag(true)),
            ("slow_start_limit", SlowStartLimit::None.write()),
        ]
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn start(parameters: &Parameters, path: &Path, _now: Time, _random: u32) -> Self {
        let window = parameters.initial_window.get() as f64;
        Self {
            window,
            threshold: f64::INFINITY,
            alpha: parameters.initial_alpha,
            observed: 0,
            marked: 0,
            observation_end: 0,
            counted: 0.0,
            reduction_end: 0,
            reduced: Time::ZERO,
            before: window,
            cause: Cause::Mark,
            acked: 0,
            gain: parameters.gain,
            min_window: parameters.min_window.get() as f64,
            limit: parameters.slow_start_limit,
            whole_packets: parameters.whole_packets,
            cwr: parameters.cwr,
            reduction: None,
            mss: path.mss.into(),
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        let recovers = self.cause == Cause::Timeout && self.acked < self.reduction_end;
        self.acked = self.acked.max(feedback.acked);
        self.observe(feedback);
        if self.reduction.is_some() {
            self.go_on_reducing(feedback);
        }
        if feedback.marked > 0 {
            // Once per window. An acknowledgement with a mark does not grow the window either (RFC 3168, section
            // 6.1.2).
            if feedback.acked > self.reduction_end {
                self.before = self.window;
                let left = if self.whole_packets {
                    after_mark_whole(self.window, self.alpha, self.mss)
                } else {
                    after_mark(self.window, self.alpha)
                };
                let window = left.max(self.min_window).min(self.window);
                self.reduce(Cause::Mark, window, window, (feedback.next, feedback.now));
                if self.cwr {
                    let flight = feedback.in_flight + feedback.acked_bytes;
                    let mut reduction = Reduction::new(window as u64, flight, feedback.in_flight, self.mss as u64);
                    // What begins it lets packets go, too (`tcp_cwnd_reduction`, by the acknowledgement that enters CWR).
                    reduction.on_ack(feedback.acked_bytes, feedback.in_flight);
                    self.reduction = Some(Box::new(reduction));
                }
            }
        } else if self.reduction.is_none()
            && (self.cause != Cause::Loss || self.acked >= self.reduction_end)
            && feedback.window_limited(self.window)
        {
            self.grow(feedback.acked_bytes, recovers);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        // The retransmissions of a timeout are no news of it (RFC 6675, section 5.1).
        let reduced = if self.cause == Cause::Timeout { Time::MAX } else { self.reduced };
        let sent_before_reduction = !loss.is_new(self.reduction_end, reduced);
        if sent_before_reduction && self.cause != Cause::Mark {
            return;
        }
        if !sent_before_reduction {
            self.before = self.window;
        }
        let window = after_loss(self.flight(loss.next, self.before), self.min_window);
        self.reduce(Cause::Loss, window, window, (loss.next, loss.now));
        // Recovery takes its place.
        self.reduction = None;
    }

    fn on_timeout(&mut self, now: Time, next: u64) {
        // Of timeouts in a row only the first sets ssthresh (RFC 5681, section 3.1).
        let repeated = self.cause == Cause::Timeout && self.acked < self.reduction_end;
        let threshold =
            if repeated { self.threshold } else { after_loss(self.flight(next, self.window), self.min_window) };
        self.reduce(Cause::Timeout, threshold, self.mss, (next, now));
        self.reduction = None;
    }

    fn on_sent(&mut self, _now: Time, bytes: u32) {
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(bytes.into());
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.reduction.as_ref().map_or(self.window as u64, |reduction| reduction.window())
    }

    fn estimate(&self) -> Option<f32> {
        Some(self.alpha as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_units::Rate;

    const MSS: u64 = 1000;

    fn flow(given: &[(&str, Raw)]) -> Dctcp {
        let path = Path::new(Rate::from_gbps(10), Time::from_us(80), 1000, 1000);
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Dctcp::start(&Parameters::resolve(&path, &given).expect("allowed"), &path, Time::ZERO, 0)
    }

    /// One packet acknowledged in a flow that is limited by its window.
    fn ack(law: &mut Dctcp, acked: u64, next: u64, marked: bool) {
        let feedback = Feedback {
            acked_bytes: MSS,
            packets: 1,
            marked: marked.into(),
            acked,
            next,
            in_flight: law.window().saturating_sub(MSS),
            ..Feedback::default()
        };
        law.on_ack(&feedback);
    }

    fn lose(law: &mut Dctcp, position: u64, next: u64) {
        law.on_loss(&Loss { lost_bytes: MSS, position, last: position, next, ..Loss::default() });
    }

    #[test]
    fn alpha_is_a_moving_average_of_the_marked_share() {
        assert_eq!(next_alpha(1.0, 0.0625, 0, 10), 0.9375);
        assert_eq!(next_alpha(0.0, 0.0625, 5, 10), 0.031_25);
        assert_eq!(next_alpha(0.3, 1.0, 10, 10), 1.0);
        let decayed = (0..100).fold(1.0, |alpha, _| next_alpha(alpha, 0.0625, 1, 4));
        assert!((decayed - 0.25 - 0.75 * libm::pow(0.9375, 100.0)).abs() < 1e-12);
    }

    #[test]
    fn whole_packets_leave_small_windows_alone() {
        // Linux: cwnd - ((cwnd * alpha) >> 11), alpha in 1024ths.
        for (packets, alpha, left) in
            [(10, 1.0, 5), (10, 0.5, 8), (4, 0.5, 3), (4, 0.49, 4), (3, 0.6, 3), (15, 0.41, 12)]
        {
            assert_eq!(after_mark_whole(packets as f64 * 1000.0, alpha, 1000.0), left as f64 * 1000.0);
            assert_eq!(left, packets - ((packets * (alpha * 1024.0) as u64) >> 11));
        }
        assert_eq!(after_mark_whole(4_999.0, 0.4, 1000.0), 4_000.0);
        let given = [("initial_window", Raw::Text("4KB".into())), ("initial_alpha", Raw::Float(0.45))];
        let (mut bytes, mut packets) =
            (flow(&given), flow(&[&given[..], &[("whole_packets", Raw::Flag(true))]].concat()));
        for law in [&mut bytes, &mut packets] {
            law.observation_end = 100_000;
            ack(law, MSS, 5 * MSS, true);
        }
        assert_eq!((bytes.window(), packets.window()), (3_100, 4_000));
    }

    #[test]
    fn alpha_is_updated_once_per_window() {
        let mut law = flow(&[]);
        ack(&mut law, 1000, 100_000, false); // Ends the empty first window.
        assert_eq!(law.alpha, 0.9375);
        for packet in 2..=100 {
            ack(&mut law, packet * MSS, 150_000, packet % 2 == 0);
            assert_eq!(law.alpha, 0.9375);
        }
        ack(&mut law, 101 * MSS, 200_000, false);
        assert_eq!(law.alpha, 0.9375 + (0.5 - 0.9375) / 16.0);
    }

    #[test]
    fn coalesced_acknowledgements_count_their_marked_share() {
        let mut law = flow(&[]);
        law.observation_end = 100_000;
        law.on_ack(&Feedback { acked_bytes: 4000, packets: 4, marked: 1, acked: 4000, ..Feedback::default() });
        law.on_ack(&Feedback { acked_bytes: 4000, packets: 4, marked: 4, acked: 8000, ..Feedback::default() });
        law.on_ack(&Feedback { acked_bytes: 4000, packets: 4, marked: 0, acked: 12_000, ..Feedback::default() });
        assert_eq!((law.observed, law.marked), (12_000, 5000));
    }

    #[test]
    fn the_window_is_cut_once_per_window_of_data() {
        let mut law = flow(&[("initial_alpha", Raw::Float(0.5)), ("gain", Raw::Float(1e-9))]);
        assert_eq!(law.window(), 100_000);
        ack(&mut law, 1000, 101_000, true);
        assert!((74_999..=75_000).contains(&law.window()), "a mark ends slow start: {}", law.window());
        assert_eq!(law.threshold, law.window);
        let cut = law.window();
        for packet in 2..=101 {
            ack(&mut law, packet * MSS, 150_000, true);
        }
        assert_eq!(law.window(), cut);
        ack(&mut law, 102 * MSS, 150_000, true);
        assert!((56_248..=56_250).contains(&law.window()));
    }

    #[test]
    fn growth_is_one_mss_per_window_after_the_first_mark_and_doubling_before() {
        let mut law = flow(&[]);
        for packet in 1..=100 {
            ack(&mut law, packet * MSS, 200_000, false);
        }
        assert_eq!(law.window(), 200_000);
        ack(&mut law, 101_000, 300_000, true);
        let cut = law.window();
        for packet in 1..=cut.div_ceil(MSS) {
            ack(&mut law, 101_000 + packet * MSS, 400_000, false);
        }
        assert_eq!(law.window(), cut + MSS);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut law = flow(&[]);
        let idle = Feedback { acked_bytes: MSS, packets: 1, acked: MSS, next: 2 * MSS, ..Feedback::default() };
        law.on_ack(&idle);
        law.on_ack(&Feedback { in_flight: 99_000, app_limited: true, ..idle });
        assert_eq!(law.window(), 100_000);
    }

    #[test]
    fn a_loss_episode_halves_once_and_stops_growth_until_it_ends() {
        let mut law = flow(&[]);
        ack(&mut law, 1000, 101_000, false);
        lose(&mut law, 1000, 101_000);
        assert_eq!(law.window(), 50_000);
        lose(&mut law, 7000, 102_000);
        ack(&mut law, 1000, 102_000, true);
        ack(&mut law, 1000, 102_000, false);
        assert_eq!(law.window(), 50_000, "neither another loss nor a mark of the same window reduces it");
        assert_eq!(law.counted, 0.0);
        ack(&mut law, 101_000, 151_000, false);
        assert_eq!(law.counted, 1000.0);
        lose(&mut law, 101_000, 151_000);
        assert_eq!(law.window(), 25_000);
    }

    #[test]
    fn a_loss_in_a_marked_window_reduces_as_far_as_the_loss_alone() {
        let mut law = flow(&[("initial_alpha", Raw::Float(0.0)), ("gain", Raw::Float(0.1))]);
        law.observation_end = 1 << 40;
        ack(&mut law, 1000, 101_000, true);
        assert_eq!(law.window(), 100_000, "alpha is 0");
        lose(&mut law, 2000, 101_000);
        assert_eq!(law.window(), 50_000);
        lose(&mut law, 3000, 101_000);
        assert_eq!(law.window(), 50_000);
    }

    #[test]
    fn a_timeout_leaves_one_mss_and_slow_start_to_half_the_flight() {
        let mut law = flow(&[]);
        ack(&mut law, 10_000, 110_000, false);
        law.on_timeout(Time::ZERO, 70_000);
        assert_eq!((law.window(), law.threshold), (MSS, 30_000.0));
        law.on_timeout(Time::ZERO, 70_000);
        assert_eq!((law.window(), law.threshold), (MSS, 30_000.0), "the second in a row keeps ssthresh");
        lose(&mut law, 20_000, 70_000);
        assert_eq!(law.window(), MSS, "what the timeout gave up is not lost again");
        for packet in 11..=60 {
            ack(&mut law, packet * MSS, 80_000, false);
        }
        assert_eq!(law.window(), 30_000);
    }

    /// What repairs a timeout's first loss may cover much that had arrived before.
    #[test]
    fn an_acknowledgement_after_a_timeout_adds_one_mss() {
        let after = |given: &[(&str, Raw)]| {
            let mut law = flow(given);
            law.on_timeout(Time::ZERO, 100_000);
            let covers = |acked_bytes, acked| Feedback { acked_bytes, acked, next: 200_000, ..Feedback::default() };
            [covers(40_000, 99_000), covers(1_000, 100_000), covers(3_000, 103_000)].map(|feedback| {
                law.on_ack(&feedback);
                law.window()
            })
        };
        assert_eq!(after(&[]), [2_000, 3_000, 6_000], "one MSS until all before the timeout is acknowledged");
        assert_eq!(after(&[("slow_start_limit", Raw::Text("none".into()))])[0], 41_000);
    }

    #[test]
    fn the_lower_bound_holds_and_reductions_never_raise_the_window() {
        let mut law = flow(&[]);
        for step in 1..=20 {
            ack(&mut law, step * 200_000, step * 200_000 + 1, true);
        }
        assert_eq!(law.window(), 2 * MSS);
        law.on_timeout(Time::ZERO, 5_000_000);
        ack(&mut law, 5_001_000, 5_002_000, true);
        assert_eq!(law.window(), MSS);
        let mut paced = flow(&[("min_window", Raw::Text("100B".into()))]);
        for step in 1..=40 {
            ack(&mut paced, step * 200_000, step * 200_000 + 1, true);
        }
        assert_eq!(paced.window(), 100);
    }

    /// With the smallest window one acknowledgement is of all that is in flight. Were only one packet sent after it, its
    /// receiver would hold what answers that one.
    #[test]
    fn the_acknowledgement_that_begins_a_gradual_reduction_lets_packets_go() {
        let mut law = flow(&[("cwr", Raw::Flag(true))]);
        for step in 1..=20 {
            ack(&mut law, step * 200_000, step * 200_000 + 1, true);
        }
        let all = |acked, marked| Feedback { acked_bytes: 2 * MSS, acked, marked, next: acked, ..Feedback::default() };
        for step in 1..=5 {
            law.on_ack(&all(8_000_000 + step * 2 * MSS, 2));
            assert_eq!(law.window(), 2 * MSS, "step {step}");
            law.on_sent(Time::ZERO, 2 * MSS as u32);
        }
    }

    #[test]
    fn state_is_small() {
        assert!(size_of::<Dctcp>() <= 128, "{}", size_of::<Dctcp>());
    }
}
