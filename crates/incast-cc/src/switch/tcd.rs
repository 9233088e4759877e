//! TCD, ternary congestion detection: the state of a queue is undetermined for a time after a pause of its port.
//!
//! Source: Y. Zhang et al., "Congestion Detection in Lossless Networks", SIGCOMM 2021, and the state machine of its
//! simulator (Yi-ran/DCQCN-TCD, `qbb-net-device.cc`, where it is called rootecn), which is followed exactly. Senders
//! hold their rates on packets with UE and without CE: see `rate/dcqcn.rs`.
//!
//! ```text
//!                 a packet leaves within `interval` of a resume: UE
//!        ┌──────────────────────────────────────────────┬─────────────────────────┐
//!        │                                              │ (from any state)        │
//!        ▼            later, the queue is shorter       │                         │
//!  undetermined ───────────────────────────────────▶ checking ── at most `drained` ──▶ non-congestion
//!        │            than it was at the resume         │  ▲ │                         ▲     │
//!        │                                              │  └─┘ each `interval`:        │     │ RED
//!        │ it is not                 grown by `growth`  │      not grown               ▼     ▼
//!        └────────────────────────▶ congestion ◀────────┘                          congestion
//! ```
//!
//! CE follows the RED thresholds of the port, at dequeue, in the states congestion and non-congestion only. The
//! packet of the transition into congestion is marked; none is while the queue is checked. A port that is never
//! paused marks as RED does.
//!
//! Readings and deviations (all in `docs/tcd.md`):
//! - All queues start as never resumed; in the simulator they start as resumed at time 0.
//! - The default of `interval` is a bound of ours: the paper's formula was not available.

use crate::{
    Path,
    feedback::CnpContent,
    parameters::{ParameterError, Period, Raw},
};
use crate::{
    agent::{AgentInfo, Codepoint, Effects, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict},
    marking::Marking,
};
use incast_units::{Bytes, Rate, Time};
use std::sync::Arc;

crate::parameters!(Parameters {
    interval: Period {
        doc: "max(T_on): a queue is undetermined for so long after each resume of its port, and is then \
            checked as often.",
        default: "9 tau + 128 wire MTU / rate; tau = base RTT / 4 + 16 wire MTU / rate",
        value: |path| Period::of(usual_interval(path)),
        source: "ours: longest time between a resume and the next pause; the authors' simulator has 40us, \
            and 97us with links of 5us, which is what the formula gives there"
    },
    growth_threshold: Bytes {
        doc: "A queue that is checked has grown if it is longer by this much.",
        default: "0.9 MSS",
        value: |path| Bytes::new(u64::from(path.mss) * 9 / 10),
        source: "the authors' simulator: 0.9 x 1000B"
    },
    drained_threshold: Bytes {
        doc: "A queue that is checked and at most so long has drained.",
        default: "2 wire MTU",
        value: |path| Bytes::new(2 * u64::from(path.wire_mss)),
        source: "the authors' simulator: 2 x 1030B"
    },
});

/// `tau + (tau + h / C) / excess`: the longest time that a port can send between a resume and the next pause, where
/// the link's loop takes `tau` (propagation and one packet in both directions), thresholds are `hysteresis` h
/// apart, and the input rate exceeds the output rate by `excess`.
///
/// While the resume travels back, the downstream queue drains for `tau`. Then it grows by `excess` of the rate to
/// the upper threshold. Then the pause travels back.
fn longest_on(rate: Rate, tau: Time, hysteresis: u64, excess: f64) -> Time {
    tau + (tau + rate.time_of(Bytes::new(hysteresis))).mul_f64(1.0 / excess)
}

/// Smallest overload that is distinguished from none. With it [`longest_on`] gives the authors' 97 us on their
/// network.
const EXCESS: f64 = 1.0 / 8.0;

/// The bound for paths of four links and thresholds two packets apart.
fn usual_interval(path: &Path) -> Time {
    let two = 2 * u64::from(path.wire_mss);
    let loop_time = path.base_rtt / 4 + path.rate.time_of(Bytes::new(two));
    longest_on(path.rate, loop_time, two, EXCESS)
}

/// State of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Not marked by RED.
    #[default]
    NonCongestion,
    /// Marked by RED, or grew after a resume.
    Congestion,
    /// Its port was resumed within `interval`.
    Undetermined,
    /// Its port has not been paused since; the queue may still be what a pause left.
    Checking {
        /// Time of the last check.
        since: Time,
        /// Queue length then, in bytes.
        length: u64,
    },
}

/// A queue.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    state: State,
    /// Last resume of its port, and the queued bytes then.
    resumed: Option<(Time, u64)>,
}

impl Queue {
    /// A packet leaves, `length` bytes remain; `red` is RED's random decision. Returns the codepoint of the packet.
    #[inline]
    fn leave(&mut self, parameters: &Parameters, now: Time, length: u64, red: impl FnOnce() -> bool) -> Codepoint {
        let ce = |red: bool| if red { Codepoint::CongestionExperienced } else { Codepoint::None };
        let (resumed, at_resume) = self.resumed.unwrap_or_default();
        if self.resumed.is_some() && now - resumed <= parameters.interval.time() {
            self.state = State::Undetermined;
            return Codepoint::UndeterminedExperienced;
        }
        let (state, mark) = match self.state {
            State::Undetermined if length < at_resume => (State::Checking { since: now, length }, Codepoint::None),
            State::Undetermined => (State::Congestion, ce(red())),
            State::Checking { since, length: before } => {
                let due = now - since >= parameters.interval.time();
                if due && length >= before.saturating_add(parameters.growth_threshold.get()) {
                    (State::Congestion, ce(red()))
                } else if length <= parameters.drained_threshold.get() {
                    (State::NonCongestion, Codepoint::None)
                } else if due {
                    (State::Checking { since: now, length }, Codepoint::None)
                } else {
                    (self.state, Codepoint::None)
                }
            }
            State::NonCongestion | State::Congestion => match ce(red()) {
                Codepoint::None => (State::NonCongestion, Codepoint::None),
                mark => (State::Congestion, mark),
            },
        };
        self.state = state;
        mark
    }
}

/// State of a switch.
#[derive(Clone, Debug)]
pub struct Tcd {
    parameters: Arc<Parameters>,
    /// By port.
    markings: Vec<Marking>,
    /// By port, then priority.
    queues: Vec<Queue>,
    priorities: usize,
}

impl Tcd {
    fn queue(&mut self, port: &PortView) -> &mut Queue {
        &mut self.queues[usize::from(port.port) * self.priorities + usize::from(port.priority)]
    }
}

impl SwitchAgent for Tcd {
    type Parameters = Arc<Parameters>;
    const INFO: AgentInfo = AgentInfo {
        name: "tcd",
        title: "TCD",
        source: "Zhang et al., SIGCOMM 2021, and its simulator",
        parameters: Parameters::TABLE,
        marks: true,
        sender: &[],
        by_port: true,
    };

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Parameters>, ParameterError> {
        Parameters::resolve(path, given).map(Arc::new)
    }
    fn values(parameters: &Arc<Parameters>) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn effects(_parameters: &Arc<Parameters>) -> Effects {
        Effects {
            reads_thresholds: true,
            reads_pauses: true,
            marks: true,
            undetermined: true,
            notifies: CnpContent::Nothing,
            ..Effects::default()
        }
    }
    fn install(parameters: &Arc<Parameters>, site: &Site<'_>) -> Self {
        let priorities = usize::from(site.priorities);
        Self {
            parameters: Arc::clone(parameters),
            markings: site.ports.iter().map(|port| port.marking).collect(),
            queues: vec![Queue::default(); site.ports.len() * priorities],
            priorities,
        }
    }

    #[inline]
    fn on_enqueue(
        &mut self,
        _port: &PortView,
        _packet: &PacketView,
        _switch: &impl SwitchView,
        _verdict: &mut Verdict,
    ) {
    }

    #[inline]
    fn on_dequeue(&mut self, port: &PortView, _packet: &PacketView, _switch: &impl SwitchView, verdict: &mut Verdict) {
        let marking = self.markings[usize::from(port.port)];
        let queue = &mut self.queues[usize::from(port.port) * self.priorities + usize::from(port.priority)];
        let red = || marking.mark(port.queue_bytes, || port.uniform());
        verdict.mark = queue.leave(&self.parameters, port.now, port.queue_bytes, red);
    }

    fn on_pause(&mut self, _port: &PortView) {}

    fn on_resume(&mut self, port: &PortView) {
        self.queue(port).resumed = Some((port.now, port.queue_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{Given, Setting};

    const US: fn(u64) -> Time = Time::from_us;

    /// The authors' network and constants: 40 Gbit/s, packets of 1,000 and frames of 1,030 bytes.
    fn authors() -> Parameters {
        Parameters {
            interval: Period::of(US(97)),
            growth_threshold: Bytes::new(900),
            drained_threshold: Bytes::new(2060),
        }
    }

    /// A packet leaves at some microsecond a queue in this state, resumed at 1,000 us with 50,000 bytes if at all.
    fn leave(state: State, resumed: bool, us: u64, length: u64, red: bool) -> (State, Codepoint) {
        let mut queue = Queue { state, resumed: resumed.then_some((US(1000), 50_000)) };
        let mark = queue.leave(&authors(), US(us), length, || red);
        (queue.state, mark)
    }

    #[test]
    fn the_truth_table() {
        use Codepoint::{CongestionExperienced as Ce, None as Nothing, UndeterminedExperienced as Ue};
        use State::{Congestion, NonCongestion, Undetermined};
        let checking = |us, length| State::Checking { since: US(us), length };
        let all = [NonCongestion, Congestion, Undetermined, checking(900, 40_000)];
        // Within the interval, its end included, nothing else counts.
        for state in all {
            for us in [1000, 1050, 1097] {
                for length in [0, 2_000, 49_999, 50_000, 1 << 40] {
                    for red in [false, true] {
                        assert_eq!(leave(state, true, us, length, red), (Undetermined, Ue));
                    }
                }
            }
        }
        // Later: state, bytes left behind, RED's lot; the next state, the mark. Checks began at 1,098 us with 40,000
        // bytes.
        let early = [
            (Undetermined, 50_000, false, Congestion, Nothing),
            (Undetermined, 50_000, true, Congestion, Ce),
            (Undetermined, 49_999, true, checking(1100, 49_999), Nothing),
            (Undetermined, 0, false, checking(1100, 0), Nothing),
            (checking(1098, 40_000), 1 << 40, true, checking(1098, 40_000), Nothing),
            (checking(1098, 40_000), 2_061, true, checking(1098, 40_000), Nothing),
            (checking(1098, 40_000), 2_060, true, NonCongestion, Nothing),
            (NonCongestion, 60_000, false, NonCongestion, Nothing),
            (NonCongestion, 60_000, true, Congestion, Ce),
            (Congestion, 60_000, false, NonCongestion, Nothing),
            (Congestion, 60_000, true, Congestion, Ce),
        ];
        for (state, length, red, next, mark) in early {
            assert_eq!(leave(state, true, 1100, length, red), (next, mark), "{state:?} {length} {red}");
        }
        // A check is due an interval after the last one.
        assert_eq!(leave(checking(1098, 40_000), true, 1194, 40_900, true), (checking(1098, 40_000), Nothing));
        let due = [
            (40_899, true, checking(1195, 40_899), Nothing),
            (2_061, true, checking(1195, 2_061), Nothing),
            (2_060, true, NonCongestion, Nothing),
            (40_900, false, Congestion, Nothing),
            (40_900, true, Congestion, Ce),
        ];
        for (length, red, next, mark) in due {
            assert_eq!(leave(checking(1098, 40_000), true, 1195, length, red), (next, mark), "{length} {red}");
        }
        // What grew a little from almost nothing is congestion and not drained.
        assert_eq!(leave(checking(1098, 1_000), true, 1195, 1_900, true), (Congestion, Ce));
        // Never resumed: RED, and nothing else.
        for us in [0, 50, 1050] {
            assert_eq!(leave(NonCongestion, false, us, 1, false), (NonCongestion, Nothing));
            assert_eq!(leave(Congestion, false, us, 1, true), (Congestion, Ce));
        }
    }

    #[test]
    fn the_interval_is_the_authors_on_their_network() {
        // Links of 5 us; the loop has a frame of 1,050 bytes with preamble and gap each way.
        let rate = Rate::from_gbps(40);
        let tau = US(10) + rate.time_of(Bytes::new(2 * 1050));
        let interval = longest_on(rate, tau, 2 * 1030, EXCESS).as_us_f64();
        assert!((96.5..97.5).contains(&interval), "{interval}");
        let path = Path::new(rate, US(10), 1000, 1082);
        let defaults = Tcd::resolve(&path, &[]).expect("defaults");
        let tau = 2.5 + 2.0 * 1082.0 * 8.0 / 40e3;
        assert!((defaults.interval.time().as_us_f64() - (tau + 8.0 * (tau + 0.4328))).abs() < 1e-3);
        assert_eq!((defaults.growth_threshold, defaults.drained_threshold), (Bytes::new(900), Bytes::new(2164)));
        let text = |text: &str| Raw::Text(text.to_owned());
        let zero = Tcd::resolve(&path, &[("interval".to_owned(), text("0us"))]).expect_err("refused");
        assert!(zero.to_string().contains("at least 10ns"));
    }

    fn setting() -> Setting {
        Setting { ports: 2, priorities: 2, marking: Marking::Step { at: 10_000 } }
    }

    #[test]
    fn queues_are_on_their_own_and_a_port_that_is_never_paused_only_steps() {
        let mut given = Given::<Tcd>::new(&setting(), &Arc::new(authors()));
        given.resume(US(10), 1, 0, 30_000);
        for (port, priority) in [(0, 0), (0, 1), (1, 1)] {
            assert_eq!(given.leave(US(11), port, priority, 10_000), Codepoint::None);
            assert_eq!(given.leave(US(11), port, priority, 10_001), Codepoint::CongestionExperienced);
        }
        assert_eq!(given.leave(US(11), 1, 0, 0), Codepoint::UndeterminedExperienced);
    }

    /// A queue fills behind pauses, drains, grows again, and is congested.
    #[test]
    fn golden() {
        let mut given = Given::<Tcd>::new(&setting(), &Arc::new(authors()));
        let mut rows = String::new();
        let lengths = |us: u64| match us {
            0..300 => us * 100,
            300..700 => 30_000 - (us - 300) * 70,
            700..800 => 2_000 + (us - 700) * 5,
            800..1000 => 40_000,
            _ => 40_000 + (us - 1000) * 20,
        };
        for us in (0..1500).step_by(20) {
            if [100, 180, 260, 820].contains(&us) {
                given.pause(US(us - 10), 0, 0, lengths(us));
                given.resume(US(us), 0, 0, lengths(us));
            }
            let mark = given.leave(US(us), 0, 0, lengths(us));
            let state = given.agent.queues[0].state;
            rows += &format!("{us:>5} {:>6} {mark:?} {state:?}\n", lengths(us));
        }
        insta::assert_snapshot!("tcd", rows);
    }
}
