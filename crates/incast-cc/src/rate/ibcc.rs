//! InfiniBand congestion control (CC), the source's half: a table of injection rate delays, and an index that
//! notifications raise and a timer lowers.
//!
//! Source: InfiniBand Architecture Specification volume 1, annex A10, as the hfi1 driver of Linux (`process_becn`,
//! `set_link_ipg`) and the manuals of OpenSM and Mellanox's CC manager have it; the text of the annex was not
//! available. Values: E. G. Gran et al., "First Experiences with Congestion Control in InfiniBand Hardware", IPDPS
//! 2010. The switches' half is `switch/ibcc.rs`.
//!
//! ```text
//!                  BECN: CCTI + CCTI_Increase, at most CCTI_Limit; the timer starts if it stood still
//!               ┌────────────────────────────────────────────────────────────────────────────────┐
//!               ▼                                                                                │
//!   CCTI = CCTI_Min, line rate if that is 0 ──▶ CCTI > CCTI_Min: C / (1 + delay of CCT[CCTI]) ────┘
//!               ▲                                      │  each CCTI_Timer: CCTI - 1
//!               └──────────────────────────────────────┘
//! ```
//!
//! Readings and deviations (all in `docs/infiniband.md`):
//! - The index is one of a flow (a queue pair). That of a service level, which all flows of a host would share, is left
//!   out.
//! - A delay is in times of the packet before it. hfi1 takes the time of the largest packet for all.
//! - A delay that has begun does not change: the table is looked up as a packet is sent.
//! - The timer is caught up with when something happens to the flow, and never fired.
//! - The fabric's manager fills the table: [`Fill`] has two methods.
//! - The trigger threshold, at which a source only logs, is left out. Losses and timeouts do not change the rate.

use crate::{
    Cnp, Feedback, Loss, Path, Periodic,
    feedback::CnpContent,
    parameters::{ParameterError, Raw, chosen},
};
use crate::{
    law::{Framing, LawCapabilities, LawInfo, Recovery, SenderLaw, Transport},
    parameters::Condition,
};
use incast_units::{Bytes, Rate, Time};
use std::sync::Arc;

crate::choice! {
    /// Where the timer comes from, which is all that depends on the network.
    pub enum Profile {
        /// IPDPS 2010: 153.6 us.
        Paper = "paper",
        /// As many times of a full packet as that is at 16 Gbit/s, four lanes at double data rate, with 2 KB.
        Scaled = "scaled",
    }
}

crate::choice! {
    /// What the table holds.
    pub enum Fill {
        /// Entry i delays by i packet times: C / (1 + i).
        Linear = "linear",
        /// Each entry lowers the rate by the same factor; the first and the last are those of "linear".
        Geometric = "geometric",
    }
}

crate::choice! {
    /// How a receiver's answer to FECN comes back.
    pub enum Becn {
        /// In the acknowledgement of the packet, as on reliable connections.
        Ack = "ack",
        /// By a packet of its own, the congestion notification (CNP).
        Cnp = "cnp",
    }
}

/// Unit of the timer, in nanoseconds.
const UNIT_NS: u64 = 1024;
/// Most entries: 255 blocks of 64.
const MOST_ENTRIES: u64 = 255 * 64;

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the timer comes from.",
        default: "\"paper\"",
        value: |_| Profile::Paper,
        source: "Gran, IPDPS 2010; \"scaled\" is ours"
    },
    ccti_increase: u64 {
        doc: "CCTI_Increase: what a BECN adds to the index.",
        default: "1",
        value: |_| 1,
        allowed: "1 to 255",
        check: |n| (1..=255).contains(n),
        source: "Gran, IPDPS 2010; Mellanox CC manager"
    },
    ccti_limit: u64 {
        doc: "CCTI_Limit: the largest index.",
        default: "127",
        value: |_| 127,
        allowed: "1 to 16319",
        check: |n| (1..MOST_ENTRIES).contains(n),
        source: "Gran, IPDPS 2010"
    },
    ccti_min: u64 {
        doc: "CCTI_Min: the least index, from which flows start.",
        default: "0",
        value: |_| 0,
        allowed: "0 to 255, at most ccti_limit",
        check: |n| *n <= 255,
        source: "Gran, IPDPS 2010; Mellanox CC manager"
    },
    ccti_timer: u64 {
        doc: "CCTI_Timer: the index falls by 1 in this time, in units of 1.024us.",
        default: "150; scaled: 150 x time of a full packet / 1.024us",
        value: |_| 150,
        allowed: "1 to 65535",
        check: |n| (1..=65_535).contains(n),
        source: "Gran, IPDPS 2010"
    },
    fill: Fill {
        doc: "What the table holds.",
        default: "\"linear\"",
        value: |_| Fill::Linear,
        source: "ours: the annex leaves it open"
    },
    becn: Becn {
        doc: "How BECN comes back.",
        default: "\"ack\"",
        value: |_| Becn::Ack,
        source: "annex A10: reliable connections have ACKs, others CNPs"
    },
    cnp_interval: Time {
        doc: "With CNPs: the receiver sends at most one for a flow in this time; 0 answers every FECN.",
        default: "0ns",
        value: |_| Time::ZERO,
        source: "annex A10: each FECN is answered"
    },
});

/// Parameters with what follows from them for a line rate.
#[derive(Debug)]
pub struct Constants {
    parameters: Parameters,
    timer: Time,
    min: u16,
    limit: u16,
    /// By index, in bit/s.
    rates: Vec<u64>,
}

/// An entry of the table: two bits of shift above a multiplier of 14.
const MULTIPLIER_BITS: u32 = 14;
const MOST_MULTIPLIER: u16 = (1 << MULTIPLIER_BITS) - 1;

/// The entry nearest to a delay in packet times, with as many binary places as fit.
fn entry(delay: f64) -> u16 {
    let scaled = |shift: u16| libm::round(delay * f64::from(1u32 << shift));
    let shift = (0..4).rev().find(|shift| scaled(*shift) <= f64::from(MOST_MULTIPLIER)).unwrap_or(0);
    shift << MULTIPLIER_BITS | scaled(shift).min(f64::from(MOST_MULTIPLIER)) as u16
}

/// `(packet time >> shift) x multiplier`, in packet times.
fn delay(entry: u16) -> f64 {
    f64::from(entry & MOST_MULTIPLIER) / f64::from(1u32 << (entry >> MULTIPLIER_BITS))
}

/// The table up to its limit: `i`, or `(1 + limit)^(i / limit) - 1`.
fn table(fill: Fill, limit: u16) -> impl Iterator<Item = u16> {
    (0..=limit).map(move |index| match fill {
        Fill::Linear => index,
        Fill::Geometric => {
            let exponent = f64::from(index) / f64::from(limit);
            entry(libm::pow(1.0 + f64::from(limit), exponent) - 1.0)
        }
    })
}

/// `C / (1 + delay)`, in bit/s.
fn throttled(line: Rate, entry: u16) -> u64 {
    ((line.as_f64() / (1.0 + delay(entry))) as u64).max(1)
}

/// The timer of the profile scaled, in its units: 150 packet times.
fn scaled_timer(path: &Path) -> u64 {
    let packets = path.rate.time_of(Bytes::new(u64::from(path.wire_mss))).saturating_mul(150);
    (packets.ps().div_ceil(UNIT_NS * 1000)).clamp(1, 65_535)
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Ibcc {
    /// Runs while the index is above its least.
    timer: Periodic,
    ccti: u16,
    constants: Arc<Constants>,
}

impl Ibcc {
    /// Brings the index to `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let min = self.constants.min;
        if self.ccti > min {
            let expired = self.timer.expired(now).min(u64::from(u16::MAX)) as u16;
            self.ccti = self.ccti.saturating_sub(expired).max(min);
        }
    }

    /// A BECN has come.
    fn notified(&mut self, now: Time) {
        self.catch_up(now);
        if self.ccti <= self.constants.min {
            self.timer.restart(now);
        }
        let raised = u64::from(self.ccti) + self.constants.parameters.ccti_increase;
        self.ccti = raised.min(u64::from(self.constants.limit)) as u16;
    }
}

impl SenderLaw for Ibcc {
    type Parameters = Arc<Constants>;
    const INFO: LawInfo = LawInfo {
        name: "ibcc",
        title: "IB CC",
        source: "InfiniBand vol. 1, annex A10; Gran et al., IPDPS 2010",
        framing: Framing::InfiniBand,
        recovery: Recovery::GoBackN,
        ecn_capable: true,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities =
        LawCapabilities { cnp: CnpContent::Congestion, ..LawCapabilities::ACKNOWLEDGEMENTS };
    const CONDITIONS: &'static [Condition] = &[Condition::new("cnp_interval", "becn", &["cnp"])];

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Constants>, ParameterError> {
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Paper, given)? == Profile::Scaled {
            defaults.ccti_timer = scaled_timer(path);
        }
        let parameters = defaults.with(given)?;
        let Parameters { ccti_min, ccti_limit, ccti_timer, fill, .. } = parameters;
        if ccti_min > ccti_limit {
            let message = format!("found {ccti_min}, allowed is at most ccti_limit, {ccti_limit}");
            return Err(ParameterError::Value { name: "ccti_min", message });
        }
        let limit = ccti_limit as u16;
        Ok(Arc::new(Constants {
            timer: Time::from_ns(ccti_timer * UNIT_NS),
            min: ccti_min as u16,
            limit,
            rates: table(fill, limit).map(|entry| throttled(path.rate, entry)).collect(),
            parameters,
        }))
    }
    fn values(constants: &Arc<Constants>) -> Vec<(&'static str, Raw)> {
        constants.parameters.values()
    }
    fn transport(constants: &Arc<Constants>) -> Transport {
        let parameters = &constants.parameters;
        Transport {
            notification_interval: (parameters.becn == Becn::Cnp).then_some(parameters.cnp_interval),
            updates_gap: false,
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(constants: &Arc<Constants>, _path: &Path, now: Time, _random: u32) -> Self {
        Self { timer: Periodic::start(now, constants.timer), ccti: constants.min, constants: Arc::clone(constants) }
    }

    #[inline]
    fn on_ack(&mut self, feedback: &Feedback<'_>) {
        if feedback.marked > 0 && self.constants.parameters.becn == Becn::Ack {
            self.notified(feedback.now);
        } else {
            self.catch_up(feedback.now);
        }
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, now: Time, _next: u64) {
        self.catch_up(now);
    }
    fn on_cnp(&mut self, now: Time, cnp: &Cnp) {
        if cnp.congested {
            self.notified(now);
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, _bytes: u32) {
        self.catch_up(now);
    }

    #[inline]
    fn window(&self) -> u64 {
        u64::MAX
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.constants.rates[usize::from(self.ccti)]))
    }
    fn estimate(&self) -> Option<f32> {
        Some(f32::from(self.ccti))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CCTI_Timer of 150 units.
    const TICK: Time = Time::from_ns(153_600);
    const US: fn(u64) -> Time = Time::from_us;

    /// Four lanes at double data rate.
    fn path() -> Path {
        Path::new(Rate::from_gbps(16), US(8), 2048, 2048)
    }

    fn given(given: &[(&str, Raw)]) -> Vec<(String, Raw)> {
        given.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }

    fn flow(values: &[(&str, Raw)]) -> Ibcc {
        let constants = Ibcc::resolve(&path(), &given(values)).expect("allowed");
        Ibcc::start(&constants, &path(), Time::ZERO, 0)
    }

    fn text(value: &str) -> Raw {
        Raw::Text(value.to_owned())
    }

    fn gbps(law: &Ibcc) -> f64 {
        law.pacing_rate().expect("it paces").as_f64() / 1e9
    }

    #[test]
    fn a_linear_table_divides_the_rate() {
        let mut law = flow(&[]);
        assert_eq!(law.constants.rates.len(), 128);
        for index in 0..128u16 {
            let expected = 16.0 / (1.0 + f64::from(index));
            assert!((gbps(&law) - expected).abs() < 1e-8, "{index}: {} in place of {expected}", gbps(&law));
            assert_eq!(law.ccti, index);
            law.on_cnp(Time::ZERO, &Cnp::CONGESTED);
        }
        // CCTI_Limit holds.
        assert_eq!((law.ccti, law.constants.rates[127]), (127, 125_000_000));
    }

    #[test]
    fn entries_have_two_bits_of_shift_and_fourteen_of_multiplier() {
        for (entry, expected) in [(0, 0.0), (5, 5.0), (1 << 14 | 5, 2.5), (3 << 14 | 1, 0.125), (0x3fff, 16_383.0)] {
            assert_eq!(delay(entry), expected, "{entry:#x}");
        }
        assert_eq!(entry(2.5), 3 << 14 | 20);
        assert_eq!((entry(16_383.0), entry(1e9)), (0x3fff, 0x3fff));
        // Three binary places up to 2,047, then two, one and none.
        for (wanted, shift) in [(2_047.0, 3), (2_048.0, 2), (4_096.0, 1), (8_192.0, 0)] {
            assert_eq!((entry(wanted) >> 14, delay(entry(wanted))), (shift, wanted));
        }
    }

    #[test]
    fn a_geometric_table_falls_by_one_factor_to_the_same_end() {
        let entries: Vec<u16> = table(Fill::Geometric, 127).collect();
        assert_eq!((delay(entries[0]), delay(entries[127])), (0.0, 127.0));
        let factor = libm::pow(128.0, 1.0 / 127.0);
        for pair in entries.windows(2) {
            let found = (1.0 + delay(pair[1])) / (1.0 + delay(pair[0]));
            // To the eighth of a packet time that entries have.
            let error = 0.125 / (1.0 + delay(pair[0]));
            assert!((found - factor).abs() <= error * 1.1, "{found} in place of {factor}");
        }
        let law = flow(&[("fill", text("geometric"))]);
        assert_eq!(law.constants.rates[127], 125_000_000);
    }

    #[test]
    fn the_index_falls_by_one_each_tick_and_the_timer_stops_at_the_least() {
        let mut law = flow(&[]);
        (0..200).for_each(|_| law.on_cnp(US(10), &Cnp::CONGESTED));
        assert_eq!(law.ccti, 127);
        law.catch_up(US(10) + TICK - Time::from_ps(1));
        assert_eq!(law.ccti, 127);
        law.catch_up(US(10) + TICK);
        assert_eq!(law.ccti, 126);
        // From 127 to 0 in 127 x 153.6 us.
        let all = US(10) + TICK.saturating_mul(127);
        assert_eq!(all - US(10), Time::from_ns(19_507_200));
        law.on_sent(all - Time::from_ps(1), 1000);
        assert_eq!(law.ccti, 1);
        law.on_sent(all, 1000);
        assert_eq!((law.ccti, gbps(&law)), (0, 16.0));
        // Idle for a while, then a BECN: the timer starts with it.
        let later = all + US(1_000);
        law.on_cnp(later, &Cnp::CONGESTED);
        law.catch_up(later + TICK - Time::from_ps(1));
        assert_eq!(law.ccti, 1);
        law.catch_up(later + TICK);
        assert_eq!(law.ccti, 0);
        assert_eq!(law.next_timer(), Time::MAX, "it is never fired");
    }

    /// What is caught up late is what would have been fired.
    #[test]
    fn lazy_is_the_same_as_prompt() {
        let (mut lazy, mut prompt) = (flow(&[]), flow(&[]));
        for step in 0..4_000u64 {
            let now = US(step * 3);
            prompt.catch_up(now);
            if step % 37 == 5 || (1_000..1_040).contains(&step) {
                lazy.on_cnp(now, &Cnp::CONGESTED);
                prompt.on_cnp(now, &Cnp::CONGESTED);
                assert_eq!(lazy.ccti, prompt.ccti);
            }
        }
    }

    /// One BECN each tau: the index drifts by 1/tau - 1/T; where that is negative it goes back and forth by one.
    #[test]
    fn a_steady_stream_of_becn_has_a_drift_or_an_equilibrium() {
        let index_after = |tau_ns: u64, count: u64| {
            let mut law = flow(&[("ccti_limit", Raw::Integer(2_000))]);
            let mut most = 0;
            for step in 0..count {
                law.on_cnp(Time::from_ns(tau_ns * step), &Cnp::CONGESTED);
                most = most.max(law.ccti);
            }
            (law.ccti, most)
        };
        // 1,000 BECN 51.2 us apart: two of three are taken back.
        let (index, _) = index_after(51_200, 1_000);
        assert!((666..=668).contains(&index), "{index}");
        // 3 each 2 ticks: a third stays.
        let (index, _) = index_after(102_400, 1_000);
        assert!((333..=335).contains(&index), "{index}");
        // At the timer's own pace and below it nothing adds up.
        assert_eq!(index_after(153_600, 1_000), (1, 1));
        assert_eq!(index_after(200_000, 1_000), (1, 1));
    }

    #[test]
    fn becn_comes_in_acknowledgements_or_in_packets_of_its_own() {
        let marked = |now: Time| Feedback { now, packets: 1, marked: 1, ..Feedback::default() };
        let mut law = flow(&[]);
        assert_eq!(Ibcc::transport(&law.constants).notification_interval, None);
        law.on_ack(&Feedback { marked: 0, ..marked(US(1)) });
        assert_eq!(law.ccti, 0);
        law.on_ack(&marked(US(2)));
        // One acknowledgement has one bit, whatever it reports on.
        law.on_ack(&Feedback { packets: 4, marked: 3, ..marked(US(3)) });
        assert_eq!(law.ccti, 2);
        // Another switch's notification counts too, one without congestion does not.
        law.on_cnp(US(4), &Cnp::CONGESTED);
        law.on_cnp(US(4), &Cnp { congested: false, undetermined: true, window: None });
        assert_eq!(law.ccti, 3);
        let mut law = flow(&[("becn", text("cnp")), ("ccti_increase", Raw::Integer(4))]);
        assert_eq!(Ibcc::transport(&law.constants).notification_interval, Some(Time::ZERO));
        law.on_ack(&marked(US(2)));
        assert_eq!(law.ccti, 0);
        law.on_cnp(US(4), &Cnp::CONGESTED);
        assert_eq!(law.ccti, 4);
    }

    #[test]
    fn flows_start_at_the_least_index_and_never_fall_below() {
        let mut law = flow(&[("ccti_min", Raw::Integer(3)), ("ccti_limit", Raw::Integer(5))]);
        assert_eq!((law.ccti, gbps(&law)), (3, 4.0));
        (0..9).for_each(|_| law.on_cnp(US(1), &Cnp::CONGESTED));
        assert_eq!(law.ccti, 5);
        law.catch_up(Time::from_ms(100));
        assert_eq!(law.ccti, 3);
    }

    #[test]
    fn the_scaled_timer_is_the_papers_on_its_network() {
        let timer = |path: &Path| {
            let scaled = Ibcc::resolve(path, &given(&[("profile", text("scaled"))])).expect("allowed");
            scaled.parameters.ccti_timer
        };
        assert_eq!(timer(&path()), 150);
        assert_eq!(timer(&Path { rate: Rate::from_gbps(160), ..path() }), 15);
        assert_eq!(timer(&Path { rate: Rate::from_bps(1_000), ..path() }), 65_535);
    }

    #[test]
    fn mistakes_are_refused() {
        let refused =
            |key: &str, raw: Raw| Ibcc::resolve(&path(), &given(&[(key, raw)])).expect_err("refused").to_string();
        assert!(refused("ccti_limit", Raw::Integer(0)).contains("1 to 16319"));
        assert!(refused("ccti_timer", Raw::Integer(0)).contains("1 to 65535"));
        assert!(refused("becn", text("nak")).contains("\"ack\" \"cnp\""));
        assert!(refused("ccti_min", Raw::Integer(200)).contains("at most ccti_limit, 127"));
    }

    #[test]
    fn state_is_small() {
        assert!(size_of::<Ibcc>() <= 32, "{}", size_of::<Ibcc>());
    }
}
