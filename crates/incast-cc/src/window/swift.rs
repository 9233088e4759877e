//! Swift: two windows, each held where its part of the delay meets a target.
//!
//! Source: G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM
//! 2020, algorithm 1 and figures 4 and 5. Values that the paper does not print are those of htsim (Broadcom's
//! `sim/swift.cpp`), whose authors call them guesses.
//!
//! ```text
//!                delay < target: + ai per RTT
//!             ┌──────────────────────────────┐
//!   fabric or │   delay >= target, once per RTT: x max(1 - beta (delay - target) / delay, 1 - max_mdf)
//!   endpoint ◀┤   loss, once per RTT:            x (1 - max_mdf)
//!   window    │   timeout, once per RTT:         x (1 - max_mdf); the fifth in a row: minimum
//!             └──────────────────────────────┘
//!   window = min(fabric, endpoint); below one packet the host paces single packets, one each RTT / window
//! ```
//!
//! Readings and deviations (all in `docs/swift.md`):
//! - Algorithm 1 moves `t_last_decrease` whenever the window did not grow (`<=`), which blocks a decrease for as long
//!   as acknowledgements keep coming above the target within an RTT. [`DecreaseGate`] has that and the strict reading.
//! - The window in the target's square root is a real number of packets. htsim has the integer part, which below one
//!   packet is 0 and leaves no gradation exactly where flows are many; [`ScalingWindow`] has both.
//! - A window that is not what limits the flow does not grow (RFC 7661), as under every window law here.

use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw},
};
use incast_units::{Bytes, Time};
use std::sync::Arc;

crate::choice! {
    /// What counts as the last decrease, after which one RTT must pass.
    pub enum DecreaseGate {
        /// The window became smaller (htsim).
        Decreased = "decreased",
        /// The window did not become larger: `cwnd <= cwnd_prev`, algorithm 1 to the letter.
        NotIncreased = "not-increased",
    }
}

crate::choice! {
    /// The window in the target's square root.
    pub enum ScalingWindow {
        /// In packets, a real number.
        Real = "real",
        /// In whole packets, rounded down (htsim).
        Integer = "integer",
    }
}

crate::parameters!(Parameters {
    additive_increase: f64 {
        doc: "ai: packets added to the window in each round trip below the target.",
        default: "1",
        value: |_| 1.0,
        allowed: "above 0",
        check: |a| *a > 0.0,
        source: "htsim, which calls it a guess"
    },
    decrease: f64 {
        doc: "beta: how strongly the window answers to the excess of delay over target.",
        default: "0.8",
        value: |_| 0.8,
        allowed: "above 0",
        check: |b| *b > 0.0,
        source: "htsim, which calls it a guess"
    },
    max_decrease: f64 {
        doc: "max_mdf: largest share of the window that one decrease takes.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in (0, 1)",
        check: |m| *m > 0.0 && *m < 1.0,
        source: "htsim, which calls it a guess"
    },
    base_target: Time {
        doc: "Target of the fabric's delay before scaling.",
        default: "base RTT",
        value: |path| path.base_rtt,
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "ours: the least that can be reached; the paper has about 25us for its network, htsim 20us"
    },
    hop_target: Time {
        doc: "h: target for each switch on the way (topology scaling).",
        default: "base RTT / 6.55",
        value: |path| path.base_rtt.mul_f64(1.0 / 6.55),
        source: "htsim, as a share of the base target; it calls it a guess"
    },
    scaling_range: Time {
        doc: "fs_range: most that flow scaling adds to the target.",
        default: "4 base RTT",
        value: |path| path.base_rtt.saturating_mul(4),
        source: "Swift, figure 5: four times the base target"
    },
    scaling_min: f64 {
        doc: "fs_min: window in packets below which the target no longer rises.",
        default: "0.1",
        value: |_| 0.1,
        allowed: "above 0, below scaling_max",
        check: |w| *w > 0.0,
        source: "Swift, figure 5"
    },
    scaling_max: f64 {
        doc: "fs_max: window in packets above which flow scaling adds nothing.",
        default: "100",
        value: |_| 100.0,
        allowed: "above scaling_min",
        check: |w| *w > 0.0,
        source: "Swift, figure 5"
    },
    scaling_window: ScalingWindow {
        doc: "Window in the target's square root.",
        default: "\"real\"",
        value: |_| ScalingWindow::Real,
        source: "Swift, section 3.5; \"integer\" is htsim's"
    },
    endpoint_target: Time {
        doc: "Target of the delay in the two hosts.",
        default: "base RTT",
        value: |path| path.base_rtt,
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "ours: the paper prints none"
    },
    decrease_gate: DecreaseGate {
        doc: "A window is decreased at most once per RTT; this says since when.",
        default: "\"decreased\"",
        value: |_| DecreaseGate::Decreased,
        source: "htsim; \"not-increased\" is algorithm 1 to the letter"
    },
    retransmit_reset: u64 {
        doc: "Timeouts in a row after which the window is set to its minimum.",
        default: "5",
        value: |_| 5,
        allowed: "at least 1",
        check: |n| *n >= 1,
        source: "htsim (RETX_RESET_THRESHOLD)"
    },
    initial_window: Bytes {
        doc: "Window of a new flow. One BDP for all schemes alike; htsim starts with 12 to 15 packets.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "ours: every scheme starts with one BDP"
    },
    min_window: Bytes {
        doc: "Least window. Below one MSS the host paces single packets.",
        default: "MSS / 400, at least 1B",
        value: |path| Bytes::new((u64::from(path.mss) / 400).max(1)),
        allowed: "at least 1B, at most max_window",
        check: |w| w.get() > 0,
        source: "htsim: 10 bytes, of packets of about 4,000"
    },
    max_window: Bytes {
        doc: "Largest window.",
        default: "max(1000 MSS, 4 BDP)",
        value: |path| Bytes::new((1000 * u64::from(path.mss)).max(4 * path.bdp().get())),
        allowed: "at least min_window",
        check: |w| w.get() > 0,
        source: "htsim: 1000 packets; ours: 4 BDP where that is more"
    },
});

/// What all flows of a fabric share: parameters with what follows from them. Windows in packets, times in picoseconds.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    mss: f64,
    hop_target: f64,
    base_target: f64,
    endpoint_target: f64,
    scaling: Scaling,
    min_window: f64,
    max_window: f64,
    base_rtt: Time,
}

/// Flow scaling: `clamp(alpha / sqrt(w) + beta, 0, range)`.
#[derive(Clone, Copy, Debug)]
struct Scaling {
    alpha: f64,
    beta: f64,
    range: f64,
}

impl Scaling {
    /// `alpha = range / (1 / sqrt(fs_min) - 1 / sqrt(fs_max))`, `beta = -alpha / sqrt(fs_max)`: what makes it `range`
    /// at fs_min and nothing at fs_max (Swift, section 3.5).
    fn new(range: f64, min: f64, max: f64) -> Self {
        let alpha = range / (1.0 / min.sqrt() - 1.0 / max.sqrt());
        Self { alpha, beta: -alpha / max.sqrt(), range }
    }

    /// What is added to the target at a window of `packets`.
    fn at(&self, packets: f64) -> f64 {
        (self.alpha / packets.sqrt() + self.beta).max(0.0).min(self.range)
    }
}

/// One of the two windows.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// In packets.
    packets: f64,
    last_decrease: Time,
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Swift {
    fabric: Window,
    endpoint: Window,
    /// RTT of the last acknowledgement, without what was held on purpose.
    rtt: Time,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
    constants: Arc<Constants>,
}

/// `cwnd + ai / cwnd acked` from one packet on, `cwnd + ai acked` below (algorithm 1).
fn increased(window: f64, additive: f64, acked: f64) -> f64 {
    window + if window >= 1.0 { additive / window * acked } else { additive * acked }
}

/// `cwnd max(1 - beta (delay - target) / delay, 1 - max_mdf)` (algorithm 1).
fn decreased(window: f64, beta: f64, max_decrease: f64, delay: f64, target: f64) -> f64 {
    window * (1.0 - beta * (delay - target) / delay).max(1.0 - max_decrease)
}

impl Window {
    fn new(packets: f64, now: Time) -> Self {
        Self { packets, last_decrease: now }
    }

    /// A decrease is allowed once per RTT.
    fn may_decrease(&self, now: Time, rtt: Time) -> bool {
        now.saturating_sub(self.last_decrease) >= rtt
    }

    /// Takes the value that an event gives it, within the bounds.
    fn set(&mut self, packets: f64, now: Time, constants: &Constants) {
        let before = self.packets;
        self.packets = packets.clamp(constants.min_window, constants.max_window);
        let closes = match constants.parameters.decrease_gate {
            DecreaseGate::Decreased => self.packets < before,
            DecreaseGate::NotIncreased => self.packets <= before,
        };
        if closes {
            self.last_decrease = now;
        }
    }

    /// An acknowledgement of `acked` packets came with this much delay; `grows` if the flow uses its window.
    fn on_delay(&mut self, event: &Event, delay: f64, target: f64, constants: &Constants) {
        let parameters = &constants.parameters;
        let packets = if delay < target {
            match event.grows {
                true => increased(self.packets, parameters.additive_increase, event.acked),
                false => return,
            }
        } else if self.may_decrease(event.now, event.rtt) {
            decreased(self.packets, parameters.decrease, parameters.max_decrease, delay, target)
        } else {
            self.packets
        };
        self.set(packets, event.now, constants);
    }

    fn on_loss(&mut self, now: Time, rtt: Time, constants: &Constants) {
        let keep = if self.may_decrease(now, rtt) { 1.0 - constants.parameters.max_decrease } else { 1.0 };
        self.set(self.packets * keep, now, constants);
    }
}

/// What both windows need of an acknowledgement.
struct Event {
    now: Time,
    rtt: Time,
    acked: f64,
    grows: bool,
}

impl Constants {
    /// `base + hops h + flow scaling` in picoseconds.
    fn target(&self, hops: u8, window: f64) -> f64 {
        let window = match self.parameters.scaling_window {
            ScalingWindow::Real => window,
            ScalingWindow::Integer => window.floor(),
        };
        self.base_target + f64::from(hops) * self.hop_target + self.scaling.at(window)
    }
}

impl SenderLaw for Swift {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "swift",
        title: "Swift",
        source: "Kumar et al., SIGCOMM 2020; values from htsim where the paper prints none",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let parameters = Parameters::resolve(path, given)?;
        let Parameters { scaling_min, scaling_max, min_window, max_window, .. } = parameters;
        if scaling_min >= scaling_max {
            let message = format!("found {scaling_min}, allowed is below scaling_max, which is {scaling_max}");
            return Err(ParameterError::Value { name: "scaling_min", message });
        }
        if min_window > max_window {
            let message = format!("found {min_window}, allowed is at most max_window, which is {max_window}");
            return Err(ParameterError::Value { name: "min_window", message });
        }
        let ps = |time: Time| time.ps() as f64;
        let mss = f64::from(path.mss);
        Ok(Arc::new(Constants {
            mss,
            hop_target: ps(parameters.hop_target),
            base_target: ps(parameters.base_target),
            endpoint_target: ps(parameters.endpoint_target),
            scaling: Scaling::new(ps(parameters.scaling_range), scaling_min, scaling_max),
            min_window: min_window.get() as f64 / mss,
            max_window: max_window.get() as f64 / mss,
            base_rtt: path.base_rtt,
            parameters,
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, _random: u32) -> Self {
        let packets = constants.parameters.initial_window.get() as f64 / constants.mss;
        let packets = packets.clamp(constants.min_window, constants.max_window);
        Self {
            fabric: Window::new(packets, now),
            endpoint: Window::new(packets, now),
            rtt: constants.base_rtt,
            timeouts: 0,
            constants: Arc::clone(constants),
        }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        let constants = &*self.constants;
        self.timeouts = 0;
        self.rtt = feedback.network_rtt();
        let endpoint_delay = feedback.endpoint_delay.unwrap_or(Time::ZERO);
        let fabric_delay = self.rtt.saturating_sub(endpoint_delay);
        let window = self.fabric.packets.min(self.endpoint.packets) * constants.mss;
        let event = Event {
            now: feedback.now,
            rtt: self.rtt,
            acked: feedback.acked_bytes as f64 / constants.mss,
            grows: feedback.window_limited(window),
        };
        let target = constants.target(feedback.hops.unwrap_or(0), self.fabric.packets);
        self.fabric.on_delay(&event, fabric_delay.ps() as f64, target, constants);
        self.endpoint.on_delay(&event, endpoint_delay.ps() as f64, constants.endpoint_target, constants);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.timeouts = 0;
        self.fabric.on_loss(loss.now, self.rtt, &self.constants);
        self.endpoint.on_loss(loss.now, self.rtt, &self.constants);
    }

    fn on_timeout(&mut self, now: Time, _next: u64) {
        self.timeouts = self.timeouts.saturating_add(1);
        let constants = &*self.constants;
        let resets = u64::from(self.timeouts) >= constants.parameters.retransmit_reset;
        for window in [&mut self.fabric, &mut self.endpoint] {
            if resets {
                window.set(constants.min_window, now, constants);
            } else {
                window.on_loss(now, self.rtt, constants);
            }
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        ((self.fabric.packets.min(self.endpoint.packets) * self.constants.mss) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_units::Rate;

    const MSS: u64 = 1000;
    const RTT: Time = Time::from_us(20);

    fn constants(given: &[(&str, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let path = Path::new(Rate::from_gbps(40), RTT, 1000, 1000);
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Swift::resolve(&path, &given)
    }

    /// A flow of ten packets whose target is 30 us, without scaling.
    fn flow(given: &[(&str, Raw)]) -> Swift {
        let text = |value: &str| Raw::Text(value.to_owned());
        let mut all = vec![
            ("base_target", text("30us")),
            ("hop_target", text("0us")),
            ("scaling_range", text("0us")),
            ("initial_window", text("10000B")),
        ];
        all.extend(given.iter().cloned());
        let path = Path::new(Rate::from_gbps(40), RTT, 1000, 1000);
        Swift::start(&constants(&all).expect("allowed"), &path, Time::ZERO, 0)
    }

    /// One packet acknowledged after `rtt`, of a flow that is limited by its window.
    fn ack(law: &mut Swift, now: Time, rtt: Time) {
        law.on_ack(&Feedback {
            now,
            rtt,
            acked_bytes: MSS,
            packets: 1,
            in_flight: law.window().saturating_sub(MSS),
            ..Feedback::default()
        });
    }

    fn lose(law: &mut Swift, now: Time) {
        law.on_loss(&Loss { now, lost_bytes: MSS, next: 10 * MSS, ..Loss::default() });
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} in place of {expected}");
    }

    #[test]
    fn the_window_grows_by_one_packet_per_window_below_the_target() {
        let mut law = flow(&[]);
        ack(&mut law, RTT, RTT);
        close(law.fabric.packets, 10.1);
        close(law.endpoint.packets, 10.1);
        // Below one packet the whole increase comes with each packet.
        close(increased(0.25, 1.0, 1.0), 1.25);
        close(increased(2.0, 0.5, 3.0), 2.75);
    }

    #[test]
    fn the_window_falls_with_the_excess_and_at_most_by_half() {
        close(decreased(10.0, 0.8, 0.5, 40.0, 30.0), 8.0);
        close(decreased(10.0, 0.8, 0.5, 3000.0, 30.0), 5.0);
        close(decreased(10.0, 0.8, 0.5, 30.0, 30.0), 10.0);
    }

    #[test]
    fn decreases_are_one_rtt_apart() {
        let mut law = flow(&[]);
        let delay = Time::from_us(40);
        ack(&mut law, Time::from_us(100), delay);
        close(law.fabric.packets, 8.0);
        ack(&mut law, Time::from_us(139), delay);
        close(law.fabric.packets, 8.0);
        ack(&mut law, Time::from_us(140), delay);
        close(law.fabric.packets, 6.4);
        // To the letter, an acknowledgement that did not change the window starts the wait afresh.
        let mut law = flow(&[("decrease_gate", Raw::Text("not-increased".into()))]);
        ack(&mut law, Time::from_us(100), delay);
        ack(&mut law, Time::from_us(139), delay);
        ack(&mut law, Time::from_us(140), delay);
        close(law.fabric.packets, 8.0);
        ack(&mut law, Time::from_us(180), delay);
        close(law.fabric.packets, 6.4);
    }

    #[test]
    fn flow_scaling_runs_from_its_range_to_nothing() {
        let scaling = Scaling::new(80.0, 0.1, 100.0);
        close(scaling.at(0.1), 80.0);
        close(scaling.at(0.001), 80.0);
        close(scaling.at(100.0), 0.0);
        close(scaling.at(1e6), 0.0);
        close(scaling.at(1.0), 80.0 * (1.0 - 0.1) / (libm::sqrt(10.0) - 0.1));
        // Without a range there is no scaling at any window, zero included.
        close(Scaling::new(0.0, 0.1, 100.0).at(0.0), 0.0);
    }

    #[test]
    fn whole_packets_leave_no_gradation_below_one() {
        let real = constants(&[]).expect("defaults");
        let integer = constants(&[("scaling_window", Raw::Text("integer".into()))]).expect("allowed");
        assert!(real.target(0, 0.2) > real.target(0, 0.9));
        close(integer.target(0, 0.2), integer.target(0, 0.9));
        close(integer.target(0, 0.9), (RTT.ps() * 5) as f64);
        close(integer.target(0, 7.9), real.target(0, 7.0));
    }

    #[test]
    fn each_hop_raises_the_target() {
        let constants = constants(&[]).expect("defaults");
        close(constants.target(0, 1e9), 20e6);
        let hop = constants.target(5, 1e9) - constants.target(4, 1e9);
        assert!((hop - 20e6 / 6.55).abs() < 1.0, "{hop}");
        let mut law = flow(&[("hop_target", Raw::Text("5us".into()))]);
        let feedback = |now, hops| Feedback {
            now,
            rtt: Time::from_us(38),
            acked_bytes: MSS,
            in_flight: 9 * MSS,
            hops: Some(hops),
            ..Feedback::default()
        };
        law.on_ack(&feedback(Time::from_us(100), 2));
        assert!(law.fabric.packets > 10.0, "38 us are below 30 + 2 x 5");
        law.on_ack(&feedback(Time::from_us(200), 1));
        assert!(law.fabric.packets < 10.0, "and above 30 + 5");
    }

    #[test]
    fn each_window_follows_its_own_delay() {
        let mut law = flow(&[("endpoint_target", Raw::Text("10us".into()))]);
        let feedback = |now, endpoint| Feedback {
            now,
            rtt: Time::from_us(60),
            endpoint_delay: Some(endpoint),
            acked_bytes: MSS,
            in_flight: 9 * MSS,
            ..Feedback::default()
        };
        // 45 us in the hosts, 15 in the fabric: the hosts are the problem.
        law.on_ack(&feedback(Time::from_us(100), Time::from_us(45)));
        close(law.fabric.packets, 10.1);
        close(law.endpoint.packets, 5.0);
        assert_eq!(law.window(), 5000);
        // And the other way round.
        law.on_ack(&feedback(Time::from_us(200), Time::from_us(5)));
        assert!(law.fabric.packets < 6.5 && law.endpoint.packets > 5.0);
        // The two parts of no delay: all of it is the fabric's.
        let mut law = flow(&[]);
        law.on_ack(&Feedback { endpoint_delay: None, ..feedback(Time::from_us(100), Time::ZERO) });
        assert!(law.fabric.packets < 10.0 && law.endpoint.packets > 10.0);
    }

    #[test]
    fn losses_halve_once_per_rtt() {
        let mut law = flow(&[]);
        lose(&mut law, Time::from_us(100));
        assert_eq!(law.window(), 5000);
        lose(&mut law, Time::from_us(110));
        assert_eq!(law.window(), 5000);
        lose(&mut law, Time::from_us(120));
        assert_eq!(law.window(), 2500);
    }

    #[test]
    fn the_fifth_timeout_in_a_row_leaves_the_minimum() {
        let mut law = flow(&[("min_window", Raw::Text("10B".into()))]);
        for (number, window) in [(1, 5000), (2, 2500), (3, 1250), (4, 625), (5, 10)] {
            law.on_timeout(Time::from_ms(number), 10 * MSS);
            assert_eq!(law.window(), window, "timeout {number}");
        }
        // News in between starts the count afresh.
        let mut law = flow(&[("min_window", Raw::Text("10B".into()))]);
        (1..=4).for_each(|number| law.on_timeout(Time::from_ms(number), 10 * MSS));
        ack(&mut law, Time::from_ms(5), RTT);
        law.on_timeout(Time::from_ms(6), 10 * MSS);
        assert!(law.window() > 500);
    }

    #[test]
    fn windows_stay_within_their_bounds() {
        let mut law = flow(&[("max_window", Raw::Text("10100B".into()))]);
        (1..100).for_each(|number| ack(&mut law, RTT.saturating_mul(number), RTT));
        assert_eq!(law.window(), 10_100);
        (1..100).for_each(|number| ack(&mut law, Time::from_ms(10 * number), Time::from_ms(9)));
        assert_eq!(law.window(), 2, "1000 / 400");
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut law = flow(&[]);
        law.on_ack(&Feedback { now: RTT, rtt: RTT, acked_bytes: MSS, ..Feedback::default() });
        close(law.fabric.packets, 10.0);
    }

    #[test]
    fn contradictions_are_refused() {
        let refused = |key: &str, raw| constants(&[(key, raw)]).expect_err("refused").to_string();
        assert!(refused("scaling_min", Raw::Float(200.0)).contains("below scaling_max, which is 100"));
        assert!(refused("min_window", Raw::Text("1GB".into())).contains("at most max_window"));
        assert!(refused("max_decrease", Raw::Float(1.0)).contains("in (0, 1)"));
        assert!(refused("scaling_window", Raw::Text("whole".into())).contains("\"real\" \"integer\""));
    }
}
