//! Marimo: a window moved once per round trip by a load that is estimated from the share of marks.
//!
//! Source: "Marimo: Load-Aware Congestion Control for Lossy Datacenter Networks", section 3. What the paper leaves
//! open, which is most of it, is a parameter here and explained in `docs/marimo.md`.
//!
//! ```text
//!   each epoch (one round trip): rho = (1 - beta) rho + beta f(marked share)
//!
//!   slow start ──── marks: x (1 - e/2) ────▶  rho < 0.9: + 1 MSS per RTT   ◀──────┐
//!       ▲                                     otherwise: hold                     │
//!       │                                     rho > 1.0: x (1 - (rho - 0.95)/rho) │
//!       └── timeout: 1 MSS ──────────────────  loss: x 1/2 ── until repaired ──────┘
//! ```
//!
//! The algorithm itself is the C of `deploy/core/marimo.h`, the same that kernels and NICs get. This file converts
//! units: bytes to packets, positions to 32 bits, parameters to integers.
//!
//! `rule = "settling"` is not the paper's: it keeps the estimator and changes what is made of it (see [`Rule`]).

pub mod core;

use self::core::{
    Ack, Config, Connection, FROM_EPOCH, FROM_MEMORY, INCREASE_MAX, LoadTable, NEVER, ONE, START_EPOCH, START_MARK,
    START_STEADY, Shared, WINDOW_MAX,
};
use super::slow_start::ten_segments;
use crate::law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw, Transport};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw, chosen},
};
use incast_units::{Bytes, Time};
use std::sync::Arc;

crate::choice! {
    /// What is made of the estimated load.
    pub enum Rule {
        /// The paper's three branches.
        Paper = "paper",
        /// Ours: the first mark ends slow start at once, decreases judge the epoch that just ended and then wait for
        /// their effect, growth accelerates up to a share of the BDP.
        Settling = "settling",
    }
}

crate::choice! {
    /// What a decrease is computed from.
    pub enum DecreaseFrom {
        /// The moving average.
        Memory = "memory",
        /// The load of the epoch that just ended.
        Epoch = "epoch",
    }
}

crate::choice! {
    /// How a flow starts.
    pub enum Start {
        /// In congestion avoidance.
        Steady = "off",
        /// Doubling its window; marks act when the epoch ends, by half of their share.
        Epoch = "epoch",
        /// Doubling its window; the first mark takes `max_decrease` at once.
        Mark = "first-mark",
    }
}

/// Packets in a BDP.
fn bdp_packets(path: &Path) -> f64 {
    path.bdp().get() as f64 / f64::from(path.mss.max(1))
}

crate::parameters!(Parameters {
    rule: Rule {
        doc: "The paper's sender rule, or ours, which changes the defaults of decrease_from, settle, \
            slow_start and max_increase.",
        default: "\"paper\"",
        value: |_| Rule::Paper,
        source: "Marimo, section 3.2"
    },
    table: LoadTable {
        doc: "f: the map from the share of marked packets to a load.",
        default: "\"calibrated\"",
        value: |_| LoadTable::calibrated(),
        allowed: "a table that crosses 0.9 and 1.0",
        source: "ours: the paper learns f and does not print it"
    },
    beta: f64 {
        doc: "beta: weight of the newest epoch in the estimated load.",
        default: "1/2",
        value: |_| 0.5,
        allowed: "1, 1/2, 1/4 .. 1/256",
        check: |b| (0..=8).any(|shift| *b * f64::from(1 << shift) == 1.0),
        source: "ours: the paper prints none; 1/2 notices a step in 4 epochs"
    },
    increase_below: f64 {
        doc: "Load under which windows grow.",
        default: "0.9",
        value: |_| 0.9,
        allowed: "above 0, at most decrease_above",
        check: |load| *load > 0.0 && *load <= 8.0,
        source: "Marimo, section 3.2"
    },
    decrease_above: f64 {
        doc: "Load over which windows shrink.",
        default: "1",
        value: |_| 1.0,
        allowed: "in [increase_below, 8]",
        check: |load| *load > 0.0 && *load <= 8.0,
        source: "Marimo, section 3.2"
    },
    target: f64 {
        doc: "rho*: load that a decrease aims at: the window is multiplied by rho* / rho.",
        default: "0.95",
        value: |_| 0.95,
        allowed: "in [1/16, 8]",
        check: |load| (0.0625..=8.0).contains(load),
        source: "ours: the middle of the band in which the paper holds"
    },
    max_decrease: f64 {
        doc: "Largest share of the window that a decrease takes.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in [0, 1)",
        check: |d| (0.0..0.9999).contains(d),
        source: "ours: as a loss"
    },
    forget: bool {
        doc: "After a decrease the estimated load is set to at most 1, so that it does not decrease again \
            for the same marks.",
        default: "true",
        value: |_| true,
        source: "ours"
    },
    decrease_from: DecreaseFrom {
        doc: "What a decrease is computed from.",
        default: "\"memory\"; \"epoch\" with rule = \"settling\"",
        value: |_| DecreaseFrom::Memory,
        source: "Marimo, section 3.2; ours"
    },
    settle: u64 {
        doc: "Epochs after a decrease that are not acted on: their packets were sent before it.",
        default: "0; 1 with rule = \"settling\"",
        value: |_| 0,
        allowed: "0 to 255",
        check: |epochs| *epochs <= 255,
        source: "Marimo has none; ours"
    },
    increase: f64 {
        doc: "Packets added per round trip.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 255]",
        check: |packets| *packets > 0.0 && *packets <= 255.0,
        source: "Marimo, section 3.2"
    },
    max_increase: f64 {
        doc: "The increase doubles in each further epoch of growth, up to this many packets.",
        default: "increase; BDP / 16 packets with rule = \"settling\"",
        value: |_| 1.0,
        allowed: "in [increase, 255]",
        check: |packets| *packets > 0.0 && *packets <= 255.0,
        source: "Marimo: constant; ours"
    },
    slow_start: Start {
        doc: "A flow starts by doubling its window until marks end that: half of their share at the end of \
            the epoch, or max_decrease at once.",
        default: "\"epoch\"; \"first-mark\" with rule = \"settling\"",
        value: |_| Start::Epoch,
        source: "ours: as every window law here; the paper has none"
    },
    loss_load: f64 {
        doc: "Estimated load after a loss, at least.",
        default: "1.2",
        value: |_| 1.2,
        allowed: "in [0, 8]",
        check: |load| (0.0..=8.0).contains(load),
        source: "ours: about what full marking means"
    },
    loss_decrease: f64 {
        doc: "Share of the window that a loss takes.",
        default: "0.5",
        value: |_| 0.5,
        allowed: "in [0, 1)",
        check: |d| (0.0..0.9999).contains(d),
        source: "ours: RFC 5681"
    },
    initial_window: Bytes {
        doc: "Window of a new flow.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |w| w.get() > 0,
        source: "ours: every scheme starts with one BDP"
    },
    fractional: bool {
        doc: "Windows may fall to 1/64 MSS, which the host then paces; otherwise to 1 MSS.",
        default: "false",
        value: |_| false,
        source: "ours: the paper has no window below one packet"
    },
    min_epoch: u64 {
        doc: "Packets that an epoch has at least.",
        default: "2",
        value: |_| 2,
        allowed: "1 to 32767",
        check: |packets| (1..=32_767).contains(packets),
        source: "ours"
    },
    idle_after: Time {
        doc: "After this long without an event the epoch under way is forgotten.",
        default: "max(1ms, 4 base RTT)",
        value: |path| path.base_rtt.saturating_mul(4).max(Time::from_ms(1)),
        allowed: "above 0",
        check: |t| *t > Time::ZERO,
        source: "ours: about one retransmission timeout"
    },
});

/// What all flows of a fabric share.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    shared: Shared,
    mss: u64,
}

impl Constants {
    /// What the parameters are to the core. Hosts other than the simulated ones convert units of their own.
    pub fn core(&self) -> (Config, &LoadTable) {
        (*self.shared.config(), &self.parameters.table)
    }
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Marimo {
    core: Connection,
    constants: Arc<Constants>,
    /// The last time that anything was sent or acknowledged.
    active: Time,
    /// First position never sent, as of the last event.
    next: u32,
}

/// A load, a share or packets as the core counts them.
fn q16(number: f64) -> u32 {
    (number * f64::from(ONE)).round() as u32
}

/// A size in Q16 packets, within what the core can hold.
fn packets(bytes: u64, mss: u64, least: u32) -> u32 {
    let packets = u128::from(bytes) * u128::from(ONE) / u128::from(mss);
    packets.clamp(u128::from(least), u128::from(WINDOW_MAX) * u128::from(ONE)) as u32
}

/// The core's configuration.
fn config(parameters: &Parameters, mss: u64) -> Config {
    let min_window = if parameters.fractional { ONE / 64 } else { ONE };
    Config {
        increase_below: q16(parameters.increase_below),
        decrease_above: q16(parameters.decrease_above),
        target: q16(parameters.target),
        min_decrease: 0,
        max_decrease: q16(parameters.max_decrease),
        rho_after_decrease: if parameters.forget { ONE } else { NEVER },
        loss_rho: q16(parameters.loss_load),
        loss_decrease: q16(parameters.loss_decrease),
        initial_window: packets(parameters.initial_window.get(), mss, min_window),
        min_window,
        max_window: WINDOW_MAX * ONE,
        increase: q16(parameters.increase).max(1),
        max_increase: q16(parameters.max_increase).max(1),
        min_epoch: parameters.min_epoch as u32,
        // beta is a power of two, of which the exponent is exact.
        beta_shift: ((1.0 / parameters.beta) as u32).trailing_zeros() as u8,
        decrease_from: match parameters.decrease_from {
            DecreaseFrom::Memory => FROM_MEMORY,
            DecreaseFrom::Epoch => FROM_EPOCH,
        },
        settle: parameters.settle as u8,
        slow_start: match parameters.slow_start {
            Start::Steady => START_STEADY,
            Start::Epoch => START_EPOCH,
            Start::Mark => START_MARK,
        },
    }
}

impl SenderLaw for Marimo {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "marimo",
        title: "Marimo",
        source: "Marimo: Load-Aware Congestion Control for Lossy Datacenter Networks",
        framing: Framing::Tcp,
        recovery: Recovery::RackTlp,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::ACKNOWLEDGEMENTS;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let increase = chosen("increase", 1.0, given)?;
        let mut defaults = Parameters { max_increase: increase, ..Parameters::on(path) };
        if chosen("rule", Rule::Paper, given)? == Rule::Settling {
            let most = (bdp_packets(path) / 16.0).min(f64::from(INCREASE_MAX)).max(increase);
            defaults = Parameters {
                decrease_from: DecreaseFrom::Epoch,
                settle: 1,
                slow_start: Start::Mark,
                max_increase: most,
                ..defaults
            };
        }
        let parameters = defaults.with(given)?;
        let problem = |name, message| Err(ParameterError::Value { name, message });
        if parameters.increase_below > parameters.decrease_above {
            let (low, high) = (parameters.increase_below, parameters.decrease_above);
            return problem("increase_below", format!("found {low}, allowed is at most decrease_above, {high}"));
        }
        if parameters.max_increase < parameters.increase {
            let (most, least) = (parameters.max_increase, parameters.increase);
            return problem("max_increase", format!("found {most}, allowed is at least increase, {least}"));
        }
        let mss = u64::from(path.mss.max(1));
        let Some(shared) = Shared::new(config(&parameters, mss), &parameters.table) else {
            let message = format!(
                "f goes from {:.3} to {:.3}, allowed is from below increase_below, {}, to above decrease_above, {}",
                parameters.table.load(0.0),
                parameters.table.load(1.0),
                parameters.increase_below,
                parameters.decrease_above
            );
            return problem("table", message);
        };
        Ok(Arc::new(Constants { parameters, shared, mss }))
    }
    /// As DCTCP: `deploy/linux/tcp_marimo` needs ECN.
    fn transport(_constants: &Arc<Constants>) -> Transport {
        Transport { control_ecn_capable: true, ..Transport::of(&Self::INFO) }
    }
    /// `deploy/linux/tcp_marimo`.
    fn linux(path: &Path) -> Vec<(&'static str, Raw)> {
        vec![("initial_window", ten_segments(path))]
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, _random: u32) -> Self {
        Self { core: Connection::new(&constants.shared), constants: Arc::clone(constants), active: now, next: 0 }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        self.active = feedback.now;
        self.next = feedback.next as u32;
        let limited = feedback.window_limited(self.window() as f64);
        let ack = Ack {
            packets: feedback.packets,
            marked: feedback.marked,
            acked: if feedback.acked_bytes > 0 { feedback.packets } else { 0 },
            position: feedback.acked as u32,
            next: self.next,
            limited: limited.into(),
        };
        self.core.on_ack(&self.constants.shared, &ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.active = loss.now;
        // Of several the newest decides whether a reduction has taken them into account.
        self.core.on_loss(&self.constants.shared, loss.last as u32, loss.next as u32);
    }

    fn on_timeout(&mut self, now: Time, next: u64) {
        self.active = now;
        self.core.on_timeout(&self.constants.shared, next as u32);
    }

    #[inline]
    fn on_sent(&mut self, now: Time, _bytes: u32) {
        if now.saturating_sub(self.active) > self.constants.parameters.idle_after {
            self.core.on_idle(self.next);
        }
        self.active = now;
    }

    #[inline]
    fn window(&self) -> u64 {
        ((u64::from(self.core.window()) * self.constants.mss) >> 16).max(1)
    }

    fn estimate(&self) -> Option<f32> {
        Some(self.core.rho() as f32 / ONE as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_units::Rate;

    const MSS: u64 = 1000;

    fn path() -> Path {
        Path::new(Rate::from_gbps(10), Time::from_us(80), 1000, 1000)
    }

    fn resolve(given: &[(&str, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Marimo::resolve(&path(), &given)
    }

    /// A flow in congestion avoidance, with the linear table.
    fn flow(given: &[(&str, Raw)]) -> Marimo {
        let mut all = vec![("slow_start", Raw::Text("off".into())), ("table", Raw::Text("linear".into()))];
        all.extend_from_slice(given);
        Marimo::start(&resolve(&all).expect("allowed"), &path(), Time::ZERO, 0)
    }

    /// Epochs of a flow that is limited by its window; `mark` says which packets of an epoch are marked. Returns the
    /// position reached.
    fn epochs(law: &mut Marimo, mut at: u64, count: u32, mark: impl Fn(u64) -> bool) -> u64 {
        let until = law.core.epochs() + count;
        let mut number = 0;
        while law.core.epochs() < until {
            let before = law.core.epochs();
            at += MSS;
            let in_flight = (law.window() / MSS).max(1) * MSS;
            law.on_ack(&Feedback {
                now: law.active,
                acked_bytes: MSS,
                packets: 1,
                marked: mark(number).into(),
                acked: at,
                next: at + in_flight,
                in_flight,
                ..Feedback::default()
            });
            number = if law.core.epochs() == before { number + 1 } else { 0 };
        }
        at
    }

    /// The estimated load.
    fn rho(law: &Marimo) -> f64 {
        f64::from(law.core.rho()) / f64::from(ONE)
    }

    #[test]
    fn the_estimate_converges_geometrically() {
        for (beta, shift) in [(0.5, 1), (0.25, 2), (0.0625, 4)] {
            let mut law = flow(&[("beta", Raw::Float(beta)), ("increase", Raw::Float(0.001))]);
            let mut at = epochs(&mut law, 0, 1, |_| false);
            assert_eq!(law.core.rho(), 39_322, "f(0) is where it starts and stays");
            for step in 1..=20 {
                at = epochs(&mut law, at, 1, |number| number % 4 == 0);
                let share = f64::from(law.core.share()) / f64::from(ONE);
                assert!((share - 0.25).abs() < 0.02, "{share}");
                let distance = (0.6 + 0.6 * 0.25) - rho(&law);
                let expected = 0.15 * libm::pow(1.0 - beta, f64::from(step));
                assert!(
                    (distance - expected).abs() < 0.006 + f64::from(1 << shift) / f64::from(ONE),
                    "{distance} {expected}"
                );
            }
        }
    }

    #[test]
    fn below_0_9_the_window_grows_by_one_mss_per_epoch() {
        let mut law = flow(&[]);
        let before = law.window();
        epochs(&mut law, 0, 41, |_| false);
        let grown = law.window() - before;
        assert!((40 * MSS..=42 * MSS).contains(&grown), "{grown}");
    }

    #[test]
    fn between_the_thresholds_the_window_holds() {
        let mut law = flow(&[]);
        let at = epochs(&mut law, 0, 6, |number| number % 5 < 3);
        assert!((0.93..0.98).contains(&rho(&law)), "{}", rho(&law));
        let before = law.window();
        epochs(&mut law, at, 10, |number| number % 5 < 3);
        assert_eq!(law.window(), before);
    }

    #[test]
    fn one_decrease_per_epoch_however_many_marks() {
        let mut law = flow(&[("forget", Raw::Flag(false)), ("beta", Raw::Integer(1))]);
        let at = epochs(&mut law, 0, 1, |_| false);
        let before = law.window();
        // f(1) = 1.2 at once: the window becomes 0.95 / 1.2 of what it was.
        let at = epochs(&mut law, at, 1, |_| true);
        let cut = law.window();
        let expected = (before + MSS) as f64 * 0.95 / 1.2;
        assert!((cut as f64 - expected).abs() < 20.0, "{cut} {expected}");
        let mut last = cut;
        for step in 1..=3 {
            let mut changes = 0;
            let epochs_before = law.core.epochs();
            let mut position = at + (step - 1) * 200 * MSS;
            while law.core.epochs() == epochs_before {
                position += MSS;
                let in_flight = law.window();
                law.on_ack(&Feedback {
                    acked_bytes: MSS,
                    packets: 1,
                    marked: 1,
                    acked: position,
                    next: position + in_flight,
                    in_flight,
                    ..Feedback::default()
                });
                changes += u32::from(law.window() != last);
                last = law.window();
            }
            assert_eq!(changes, 1);
        }
    }

    #[test]
    fn forgetting_prevents_a_second_decrease_for_the_same_marks() {
        let windows = |forget: bool| {
            let mut law = flow(&[("forget", Raw::Flag(forget))]);
            let at = epochs(&mut law, 0, 1, |_| false);
            let at = epochs(&mut law, at, 4, |_| true);
            let marked = law.window();
            epochs(&mut law, at, 1, |number| number % 5 < 3);
            (marked, law.window())
        };
        let (forgot, then) = windows(true);
        assert_eq!(forgot, then, "three fifths marked is a load of 0.96");
        let (kept, then) = windows(false);
        assert!(kept < forgot && then < kept, "the memory is still above 1");
    }

    #[test]
    fn our_rule_waits_for_the_effect_of_a_decrease_and_grows_faster() {
        let rule = ("rule", Raw::Text("settling".into()));
        let mut law = flow(&[rule.clone(), ("beta", Raw::Integer(1))]);
        let at = epochs(&mut law, 0, 1, |_| false);
        let at = epochs(&mut law, at, 1, |_| true);
        let cut = law.window();
        let at = epochs(&mut law, at, 1, |_| true);
        assert_eq!(law.window(), cut, "the epoch after a decrease");
        let at = epochs(&mut law, at, 1, |_| true);
        assert!(law.window() < cut);
        let before = law.window();
        epochs(&mut law, at, 8, |_| false);
        assert!(law.window() > before + 20 * MSS, "{before} {}", law.window());
    }

    #[test]
    fn a_loss_halves_once_and_a_timeout_leaves_one_packet() {
        let mut law = flow(&[]);
        assert_eq!(law.window(), 100 * MSS);
        let at = epochs(&mut law, 0, 1, |_| false);
        let before = law.window();
        let lose = |law: &mut Marimo, position: u64, next: u64| {
            law.on_loss(&Loss { lost_bytes: MSS, position, last: position, next, ..Loss::default() });
        };
        lose(&mut law, at, at + 100 * MSS);
        assert_eq!(law.window(), before / 2);
        assert_eq!(law.core.rho(), q16(1.2));
        lose(&mut law, at + 3000, at + 101 * MSS);
        assert_eq!(law.window(), before / 2, "same episode");
        law.on_timeout(Time::ZERO, at + 102 * MSS);
        assert_eq!(law.window(), MSS);
        let mut small = flow(&[("fractional", Raw::Flag(true))]);
        epochs(&mut small, 0, 90, |_| true);
        assert_eq!(small.window(), MSS / 64);
    }

    #[test]
    fn a_pause_forgets_the_epoch_under_way_but_not_the_load() {
        let mut law = flow(&[]);
        let at = epochs(&mut law, 0, 5, |_| true);
        let ack = |acked: u64, marked: u32, now: Time| Feedback {
            now,
            acked_bytes: MSS,
            packets: 1,
            marked,
            acked,
            next: acked + 50 * MSS,
            in_flight: 90_000,
            ..Feedback::default()
        };
        law.on_ack(&ack(at + MSS, 1, Time::ZERO));
        let rho = law.core.rho();
        law.on_sent(Time::from_ms(2), 1000);
        let before = law.core.epochs();
        for packet in 2..=60 {
            law.on_ack(&ack(at + packet * MSS, 0, Time::from_ms(2)));
            if law.core.epochs() > before {
                break;
            }
            assert_eq!(law.core.rho(), rho);
        }
        assert_eq!(law.core.share(), 0, "the mark from before the pause does not count");
    }

    #[test]
    fn contradictory_parameters_are_refused() {
        let error = |given: &[(&str, Raw)]| resolve(given).expect_err("refused").to_string();
        assert!(error(&[("increase_below", Raw::Float(1.5))]).contains("at most decrease_above"));
        assert!(error(&[("max_increase", Raw::Float(0.5))]).contains("at least increase"));
        let linear = ("table", Raw::Text("linear".into()));
        assert!(error(&[linear, ("decrease_above", Raw::Float(1.3))]).contains("f goes from 0.600 to 1.200"));
        assert!(error(&[("beta", Raw::Float(0.3))]).contains("1/2"));
        assert!(error(&[("rule", Raw::Text("papre".into()))]).contains("\"paper\" \"settling\""));
        let file = Raw::File { path: "f.table".into(), text: "marimo-f 1\n1\n".into() };
        assert!(error(&[("table", file)]).contains("\"f.table\" line 2: found 1 knots"));
        let ours = resolve(&[("rule", Raw::Text("settling".into()))]).expect("allowed");
        assert_eq!(ours.parameters.max_increase, 6.25);
        assert_eq!((ours.parameters.settle, ours.parameters.decrease_from), (1, DecreaseFrom::Epoch));
    }

    #[test]
    fn state_is_small() {
        assert!(size_of::<Marimo>() <= 80, "{}", size_of::<Marimo>());
    }
}
