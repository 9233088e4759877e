//! InfiniBand congestion control (CC), the switches' half: packets that leave a congested port get FECN.
//!
//! Source: InfiniBand Architecture Specification volume 1, annex A10, as the manuals of OpenSM and Mellanox's CC
//! manager and the headers of OpenSM have it; the text of the annex was not available. Values: E. G. Gran et al.,
//! "First Experiences with Congestion Control in InfiniBand Hardware", IPDPS 2010. The sources' half is `rate/ibcc.rs`.
//!
//! ```text
//!   a packet leaves a port and virtual lane (VL):
//!     queue > threshold ── no ──▶ no mark
//!          │ yes
//!     the VL may go on sending (root) ── no (victim): Victim_Mask ── 0 ──▶ no mark
//!          │ yes                                 │ 1
//!          ▼                                     ▼
//!     eligible: capable of ECN, at least Packet_Size ──▶ FECN, but for Marking_Rate packets between two marks
//! ```
//!
//! Readings and deviations (all in `docs/infiniband.md`):
//! - Threshold is a weight, from 1 (a full port) to 15 (nearly empty), uniformly decreasing. The specification
//!   leaves "full" to the vendor. Here it is [`Parameters::reference`], in proportion to the port's rate.
//! - Root or victim is decided as the packet leaves, by whether the next one that waits has credits; [`HasCredits`] has
//!   another reading.
//! - Marking_Rate is a mean: a random draw for each eligible packet, or a count ([`Marks`]).
//! - One setting holds for all ports, so Victim_Mask is one bit. Credit starvation (CS_Threshold, CS_ReturnDelay,
//!   Credit_Mask) is left out.

use crate::agent::{AgentInfo, Codepoint, Effects, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict};
use crate::{
    Path,
    feedback::CnpContent,
    parameters::{Condition, ParameterError, Raw},
};
use incast_units::Bytes;
use std::sync::Arc;

crate::choice! {
    /// Which of the eligible packets are marked.
    pub enum Marks {
        /// Each with probability 1 / (1 + Marking_Rate).
        Random = "random",
        /// One after each Marking_Rate that are not.
        Periodic = "periodic",
    }
}

crate::choice! {
    /// When a congested port counts as having credits, and so as the root of congestion.
    pub enum HasCredits {
        /// The next packet has them, as one leaves.
        Now = "now",
        /// None has had to wait for them since the queue was last at the threshold.
        Throughout = "throughout",
    }
}

/// Unit of Packet_Size, in bytes.
const BLOCK: u64 = 64;

crate::parameters!(Parameters {
    threshold: u64 {
        doc: "Threshold: weight from 1, a full port, to 15, hardly anything in it; 0 marks nothing.",
        default: "15",
        value: |_| 15,
        allowed: "0 to 15",
        check: |w| *w <= 15,
        source: "Gran, IPDPS 2010; Mellanox CC manager"
    },
    reference: Bytes {
        doc: "What a full port is, at the hosts' rate; of a port of another rate in proportion. The \
            threshold is (16 - weight) / 16 of it.",
        default: "rate x base RTT",
        value: |path| path.rate.bytes_in(path.base_rtt).max(Bytes::new(1)),
        allowed: "at least 1B",
        check: |b| b.get() > 0,
        source: "ours: the annex leaves it to the switch"
    },
    marking_rate: u64 {
        doc: "Marking_Rate: mean number of eligible packets between two that are marked.",
        default: "0",
        value: |_| 0,
        allowed: "0 to 65535",
        check: |n| *n <= 65_535,
        source: "Gran, IPDPS 2010; Mellanox CC manager has 10"
    },
    marks: Marks {
        doc: "Which of the eligible packets are marked.",
        default: "\"random\"",
        value: |_| Marks::Random,
        source: "annex A10: a mean; \"periodic\" is another reading"
    },
    packet_size: u64 {
        doc: "Packet_Size: smaller packets are not marked, in units of 64B.",
        default: "8",
        value: |_| 8,
        allowed: "0 to 255",
        check: |n| *n <= 255,
        source: "Gran, IPDPS 2010; Mellanox CC manager"
    },
    has_credits: HasCredits {
        doc: "When a port counts as having credits.",
        default: "\"now\"",
        value: |_| HasCredits::Now,
        source: "annex A10: \"now\"; \"throughout\" is ours, as credits come in batches"
    },
    victim_mask: bool {
        doc: "Victim_Mask: ports without credits are in the congestion state, too.",
        default: "false",
        value: |_| false,
        source: "annex A10: set for ports to hosts, if at all"
    },
});

/// `(16 - weight) / 16` of what a full port is; weight 0 has none.
fn threshold(reference: u64, weight: u64) -> Option<u64> {
    (1..=15).contains(&weight).then(|| (u128::from(reference) * u128::from(16 - weight) / 16) as u64)
}

/// Parameters and the hosts' rate.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    /// In bit/s.
    host_rate: u64,
}

/// State of a switch.
#[derive(Clone, Debug)]
pub struct Ibcc {
    constants: Arc<Constants>,
    /// Thresholds in bytes, by port; a port without one marks nothing.
    thresholds: Vec<Option<u64>>,
    /// By port, then priority: eligible packets since the last mark.
    unmarked: Vec<u32>,
    /// By port, then priority: the lane has lacked credits while its queue was above the threshold.
    stopped: Vec<bool>,
    priorities: usize,
}

impl Ibcc {
    fn index(&self, port: &PortView) -> usize {
        usize::from(port.port) * self.priorities + usize::from(port.priority)
    }

    /// Whether the present eligible packet is marked.
    #[inline]
    fn is_chosen(&mut self, port: &PortView) -> bool {
        let Parameters { marking_rate, marks, .. } = self.constants.parameters;
        match marks {
            _ if marking_rate == 0 => true,
            Marks::Random => port.uniform() * (marking_rate + 1) as f64 <= 1.0,
            Marks::Periodic => {
                let index = self.index(port);
                let unmarked = &mut self.unmarked[index];
                let chosen = u64::from(*unmarked) == marking_rate;
                *unmarked = if chosen { 0 } else { *unmarked + 1 };
                chosen
            }
        }
    }
}

impl SwitchAgent for Ibcc {
    type Parameters = Arc<Constants>;
    const INFO: AgentInfo = AgentInfo {
        name: "ibcc",
        title: "IB CC",
        source: "InfiniBand vol. 1, annex A10; Gran et al., IPDPS 2010",
        parameters: Parameters::TABLE,
        marks: true,
        sender: &[],
        by_port: true,
    };
    const CONDITIONS: &'static [Condition] = &[Condition::new("has_credits", "victim_mask", &["false"])];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let parameters = Parameters::resolve(path, given)?;
        Ok(Arc::new(Constants { parameters, host_rate: path.rate.bps().max(1) }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn effects(constants: &Arc<Constants>) -> Effects {
        let Parameters { threshold, victim_mask, .. } = constants.parameters;
        Effects {
            reads_thresholds: false,
            reads_pauses: !victim_mask,
            marks: threshold > 0,
            undetermined: false,
            notifies: CnpContent::Nothing,
            ..Effects::default()
        }
    }
    fn install(constants: &Arc<Constants>, site: &Site<'_>) -> Self {
        let priorities = usize::from(site.priorities);
        let Constants { parameters, host_rate } = &**constants;
        let of_port = |rate: u64| {
            let reference = u128::from(parameters.reference.get()) * u128::from(rate) / u128::from(*host_rate);
            threshold(u64::try_from(reference).unwrap_or(u64::MAX), parameters.threshold)
        };
        Self {
            thresholds: site.ports.iter().map(|port| of_port(port.rate.bps())).collect(),
            unmarked: vec![0; site.ports.len() * priorities],
            stopped: vec![false; site.ports.len() * priorities],
            constants: Arc::clone(constants),
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
    fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
        let Parameters { packet_size, victim_mask, has_credits, .. } = self.constants.parameters;
        let is_over = self.thresholds[usize::from(port.port)].is_some_and(|threshold| port.queue_bytes > threshold);
        let index = self.index(port);
        self.stopped[index] &= is_over;
        if !is_over {
            return;
        }
        let is_root = match has_credits {
            HasCredits::Now => switch.may_send(port.port, port.priority),
            HasCredits::Throughout => !self.stopped[index],
        };
        let is_eligible = packet.ecn_capable && u64::from(packet.bytes) >= packet_size * BLOCK;
        if (is_root || victim_mask) && is_eligible && self.is_chosen(port) {
            verdict.mark = Codepoint::CongestionExperienced;
        }
    }

    fn on_pause(&mut self, port: &PortView) {
        let index = self.index(port);
        self.stopped[index] = true;
    }
    fn on_resume(&mut self, _port: &PortView) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        marking::Marking,
        switch::testing::{Given, Setting},
    };
    use incast_units::{Rate, Time};

    const CE: Codepoint = Codepoint::CongestionExperienced;
    const NONE: Codepoint = Codepoint::None;
    const SETTING: Setting = Setting { ports: 2, priorities: 2, marking: Marking::Off };

    /// 40 Gbit/s, as the ports of the setting have, times 8 us: 40,000 bytes.
    fn path() -> Path {
        Path::new(Rate::from_gbps(40), Time::from_us(8), 1000, 1062)
    }

    fn parameters(given: &[(&str, Raw)]) -> Arc<Constants> {
        let given: Vec<_> = given.iter().map(|(key, raw)| ((*key).to_owned(), raw.clone())).collect();
        Ibcc::resolve(&path(), &given).expect("allowed")
    }

    fn ibcc(given: &[(&str, Raw)]) -> Given<Ibcc> {
        Given::new(&SETTING, &parameters(given))
    }

    #[test]
    fn weights_are_thresholds_that_decrease_uniformly() {
        assert_eq!(threshold(16_000, 0), None);
        for weight in 1..=15 {
            assert_eq!(threshold(16_000, weight), Some((16 - weight) * 1_000));
        }
        for (weight, least) in [(15, 2_500), (8, 20_000), (1, 37_500)] {
            let mut given = ibcc(&[("threshold", Raw::Integer(weight))]);
            assert_eq!(given.leave(Time::ZERO, 1, 0, least), NONE, "{weight}");
            assert_eq!(given.leave(Time::ZERO, 1, 0, least + 1), CE, "{weight}");
        }
        let mut never = ibcc(&[("threshold", Raw::Integer(0))]);
        assert_eq!(never.leave(Time::ZERO, 0, 0, 1 << 40), NONE);
        assert!(!Ibcc::effects(&parameters(&[("threshold", Raw::Integer(0))])).marks);
        // A port of another rate has another memory.
        let slow = Path { rate: Rate::from_gbps(10), ..path() };
        let mut fast_port = Given::<Ibcc>::new(&SETTING, &Ibcc::resolve(&slow, &[]).expect("defaults"));
        assert_eq!(fast_port.leave(Time::ZERO, 0, 0, 2_500), NONE);
        assert_eq!(fast_port.leave(Time::ZERO, 0, 0, 2_501), CE);
    }

    #[test]
    fn victims_are_marked_only_by_their_mask() {
        for (mask, victim) in [(false, NONE), (true, CE)] {
            let mut given = ibcc(&[("victim_mask", Raw::Flag(mask))]);
            assert_eq!(given.leave(Time::ZERO, 0, 1, 30_000), CE, "root");
            given.switch.blocked = true;
            assert_eq!(given.leave(Time::ZERO, 0, 1, 30_000), victim, "{mask}");
            given.switch.blocked = false;
            assert_eq!(given.leave(Time::ZERO, 0, 1, 30_000), CE, "root again");
        }
    }

    #[test]
    fn who_missed_credits_is_a_victim_until_its_queue_is_short_again() {
        let mut given = ibcc(&[("has_credits", Raw::Text("throughout".into()))]);
        assert_eq!(given.leave(Time::ZERO, 0, 1, 30_000), CE);
        given.pause(Time::ZERO, 0, 1, 30_000);
        given.resume(Time::ZERO, 0, 1, 30_000);
        assert_eq!(given.leave(Time::ZERO, 0, 1, 2_501), NONE);
        // Other lanes and ports are on their own.
        assert_eq!((given.leave(Time::ZERO, 0, 0, 30_000), given.leave(Time::ZERO, 1, 1, 30_000)), (CE, CE));
        assert_eq!(given.leave(Time::ZERO, 0, 1, 2_500), NONE);
        assert_eq!(given.leave(Time::ZERO, 0, 1, 2_501), CE);
    }

    #[test]
    fn small_packets_are_not_eligible() {
        // Packets of the setting have 1,062 bytes: 16 blocks and a bit.
        for (size, mark) in [(0, CE), (8, CE), (16, CE), (17, NONE)] {
            let mut given = ibcc(&[("packet_size", Raw::Integer(size))]);
            assert_eq!(given.leave(Time::ZERO, 0, 0, 30_000), mark, "{size}");
        }
    }

    #[test]
    fn marking_rate_is_what_lies_between_two_marks() {
        let marks = |given: &[(&str, Raw)]| -> Vec<u64> {
            let mut given = ibcc(given);
            // The time is the state of the random stream here.
            let time = |step: u64| Time::from_ps(step.wrapping_mul(0x9e37_79b9_7f4a));
            (0..40_000u64).filter(|step| given.leave(time(*step), 0, 0, 30_000) == CE).collect()
        };
        assert_eq!(marks(&[]).len(), 40_000);
        let periodic = [("marking_rate", Raw::Integer(3)), ("marks", Raw::Text("periodic".into()))];
        assert_eq!(marks(&periodic)[..3], [3, 7, 11]);
        // A quarter, with a standard deviation of 87.
        let random = marks(&[("marking_rate", Raw::Integer(3))]).len();
        assert!((9_700..10_300).contains(&random), "{random}");
    }

    #[test]
    fn lanes_count_on_their_own() {
        let periodic = [("marking_rate", Raw::Integer(1)), ("marks", Raw::Text("periodic".into()))];
        let mut given = ibcc(&periodic);
        for (port, priority) in [(0, 0), (0, 1), (1, 0)] {
            assert_eq!(given.leave(Time::ZERO, port, priority, 30_000), NONE);
            assert_eq!(given.leave(Time::ZERO, port, priority, 30_000), CE);
        }
    }

    #[test]
    fn mistakes_are_refused() {
        let refused =
            |key: &str, raw| Ibcc::resolve(&path(), &[(key.to_owned(), raw)]).expect_err("refused").to_string();
        assert!(refused("threshold", Raw::Integer(16)).contains("0 to 15"));
        assert!(refused("packet_size", Raw::Integer(256)).contains("0 to 255"));
        assert!(refused("reference", Raw::Text("0B".into())).contains("at least 1B"));
    }
}
