//! `config.txt`: `KEY value` pairs.
//!
//! The simulator reads word by word and ignores unknown words. Here a key and its values are on one line, and
//! what is ignored is said.

use super::units;
use crate::import::text::{ImportError, Line, Text, number, shown, whole};
use incast_lab::scenario::tree::nearest::nearest;
use incast_units::{Rate, Time};
use std::collections::BTreeMap;

/// Whose congestion control: `CC_MODE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 1: DCQCN.
    Dcqcn,
    /// 3: HPCC.
    Hpcc,
    /// 7: TIMELY.
    Timely,
    /// 8: DCTCP with a rate.
    Dctcp,
}

impl Mode {
    /// Whether senders react to marks.
    pub fn has_marks(self) -> bool {
        matches!(self, Self::Dcqcn | Self::Dctcp)
    }

    /// Whether a key that has no default matters.
    fn uses(self, key: &str) -> bool {
        match key {
            "RATE_AI" => self != Self::Dctcp,
            "RATE_HAI" => matches!(self, Self::Dcqcn | Self::Timely),
            _ => true,
        }
    }
}

/// Thresholds of RED on ports of a rate, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The ports' rate.
    pub rate: Rate,
    /// Kmin.
    pub min: u64,
    /// Kmax.
    pub max: u64,
    /// Pmax.
    pub p: f64,
}

/// A link that goes down: when after the first flows' conventional start at 2 s, and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDown {
    /// Time after 2 s.
    pub after: Time,
    /// Ends.
    pub ends: [u64; 2],
    /// Line of the key.
    pub line: usize,
}

/// The file, with the simulator's defaults where a key is missing.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each field is the key of its name")]
pub struct Config {
    pub cc_mode: Mode,
    pub enable_qcn: bool,
    pub use_dynamic_pfc_threshold: bool,
    pub packet_payload_size: u64,
    /// In nanoseconds.
    pub simulator_stop_time: u64,
    pub alpha_resume_interval: Time,
    pub rate_decrease_interval: Time,
    pub clamp_target_rate: bool,
    pub rp_timer: Time,
    pub ewma_gain: f64,
    pub fast_recovery_times: u64,
    pub rate_ai: Rate,
    pub rate_hai: Rate,
    pub min_rate: Rate,
    pub dctcp_rate_ai: Rate,
    pub error_rate_per_link: f64,
    pub l2_chunk_size: u64,
    pub l2_back_to_zero: bool,
    pub has_win: bool,
    pub global_t: bool,
    pub var_win: bool,
    pub fast_react: bool,
    pub u_target: f64,
    pub mi_thresh: u64,
    pub int_multi: u64,
    pub multi_rate: bool,
    pub sample_feedback: bool,
    pub rate_bound: bool,
    pub ack_high_prio: bool,
    pub link_down: Option<LinkDown>,
    /// From the three maps; none where no law reacts to marks.
    pub red: Vec<Red>,
    /// In bytes: the file has MiB.
    pub buffer_size: u64,
}

/// Keys for the paths of files and for what is recorded.
const NO_MODEL: &[&str] = &[
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "ENABLE_TRACE",
];

/// Keys of which the value is read, with the simulator's default; none where it must be given if the mode uses it.
const KEYS: &[(&str, Option<&str>)] = &[
    ("CC_MODE", None),
    ("ENABLE_QCN", Some("1")),
    ("USE_DYNAMIC_PFC_THRESHOLD", Some("1")),
    ("PACKET_PAYLOAD_SIZE", Some("1000")),
    ("SIMULATOR_STOP_TIME", Some("3.01")),
    ("ALPHA_RESUME_INTERVAL", Some("55")),
    ("RATE_DECREASE_INTERVAL", Some("4")),
    ("CLAMP_TARGET_RATE", Some("0")),
    ("RP_TIMER", Some("1500")),
    ("EWMA_GAIN", Some("0.0625")),
    ("FAST_RECOVERY_TIMES", Some("5")),
    ("RATE_AI", None),
    ("RATE_HAI", None),
    ("MIN_RATE", Some("100Mb/s")),
    ("DCTCP_RATE_AI", Some("1000Mb/s")),
    ("ERROR_RATE_PER_LINK", Some("0")),
    ("L2_CHUNK_SIZE", Some("0")),
    ("L2_ACK_INTERVAL", Some("1")),
    ("L2_BACK_TO_ZERO", Some("0")),
    ("HAS_WIN", Some("1")),
    ("GLOBAL_T", Some("1")),
    ("VAR_WIN", Some("0")),
    ("FAST_REACT", Some("1")),
    ("U_TARGET", Some("0.95")),
    ("MI_THRESH", Some("5")),
    ("INT_MULTI", Some("1")),
    ("MULTI_RATE", Some("1")),
    ("SAMPLE_FEEDBACK", Some("0")),
    ("PINT_LOG_BASE", Some("1.05")),
    ("PINT_PROB", Some("1")),
    ("NIC_TOTAL_PAUSE_TIME", Some("0")),
    ("PAUSE_TIME", Some("5")),
    ("RATE_BOUND", Some("1")),
    ("ACK_HIGH_PRIO", Some("0")),
    ("LINK_DOWN", Some("0 0 0")),
    ("BUFFER_SIZE", Some("16")),
];

/// Keys of tables by link speed.
const MAPS: [&str; 3] = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"];

/// The values of each key and the line that has them.
struct Values<'a> {
    text: &'a Text,
    given: BTreeMap<&'a str, Line<'a>>,
}

impl<'a> Values<'a> {
    fn read(text: &'a Text, warnings: &mut Vec<String>) -> Self {
        let names = || KEYS.iter().map(|(name, _)| *name).chain(MAPS).chain(NO_MODEL.iter().copied());
        let mut given = BTreeMap::new();
        for mut line in text.lines() {
            let key = line.words.remove(0);
            if names().all(|name| name != key) {
                let near =
                    nearest(key, names()).map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
                let message =
                    format!("the key {} is unknown and ignored, as the peer does{near}", shown(key));
                warnings.push(text.warning(line.number, message));
            } else {
                let number = line.number;
                if let Some(Line { number: other, .. }) = given.insert(key, line) {
                    warnings.push(
                        text.warning(number, format!("{key} is in line {other} too: the last one counts")),
                    );
                }
            }
        }
        Self { text, given }
    }

    /// The line and words of a key.
    fn words(&self, key: &'static str) -> Result<(usize, Vec<&str>), ImportError> {
        if let Some(line) = self.given.get(key) {
            return Ok((line.number, line.words.clone()));
        }
        match KEYS.iter().find(|(name, _)| *name == key).and_then(|(_, default)| *default) {
            Some(default) => Ok((0, default.split(' ').collect())),
            None => Err(self.text.error(0, format!("the key {key} is missing"))),
        }
    }

    /// The one value of a key.
    fn one<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str, &str) -> Result<T, String>,
    ) -> Result<T, ImportError> {
        let (line, words) = self.words(key)?;
        let [word] = words[..] else {
            return Err(self.text.error(line, format!("{key}: found {} values, wanted is one", words.len())));
        };
        read(key, word).map_err(|message| self.text.error(line, message))
    }

    fn flag(&self, key: &'static str) -> Result<bool, ImportError> {
        self.one(key, |key, word| whole(key, word, 0..=1)).map(|value| value == 1)
    }

    fn whole(&self, key: &'static str, range: std::ops::RangeInclusive<u64>) -> Result<u64, ImportError> {
        self.one(key, |key, word| whole(key, word, range))
    }

    fn number(&self, key: &'static str, range: std::ops::RangeInclusive<f64>) -> Result<f64, ImportError> {
        self.one(key, |key, word| number(key, word, range))
    }

    fn rate(&self, key: &'static str) -> Result<Rate, ImportError> {
        self.one(key, units::rate)
    }

    /// The same of a key that only some modes use: zero where it is missing and the mode does not.
    fn rate_of(&self, mode: Mode, key: &'static str) -> Result<Rate, ImportError> {
        if mode.uses(key) || self.given.contains_key(key) { self.rate(key) } else { Ok(Rate::from_bps(0)) }
    }

    /// Microseconds, cut off to nanoseconds.
    fn micros(&self, key: &'static str) -> Result<Time, ImportError> {
        let us = self.number(key, 0.001..=1e9)?;
        Ok(Time::from_ns((us * 1000.0) as u64))
    }

    /// A map from rate to a value: `n rate value rate value …`; the line too.
    fn map(
        &self,
        key: &'static str,
        value: impl Fn(&str, &str) -> Result<f64, String>,
    ) -> Result<(usize, BTreeMap<Rate, f64>), ImportError> {
        let Some(line) = self.given.get(key) else {
            return Err(self.text.error(0, format!("the key {key} is missing")));
        };
        let at = |message: String| self.text.error(line.number, message);
        let [count, pairs @ ..] = line.words.as_slice() else {
            return Err(at(format!("{key}: found nothing, wanted is the number of link speeds")));
        };
        let count = whole(key, count, 1..=1000).map_err(at)?;
        if pairs.len() as u64 != 2 * count {
            let message =
                format!("{key}: found {} words after {count}, wanted are {}", pairs.len(), 2 * count);
            return Err(at(message));
        }
        let mut map = BTreeMap::new();
        for pair in pairs.chunks_exact(2) {
            let rate = Rate::from_bps(whole(key, pair[0], 1..=u64::MAX).map_err(at)?);
            if map.insert(rate, value(key, pair[1]).map_err(at)?).is_some() {
                return Err(at(format!("{key}: found {} twice", shown(pair[0]))));
            }
        }
        Ok((line.number, map))
    }
}

impl Config {
    /// Reads the file. `speeds` are those of the links, each with its line in the topology.
    ///
    /// # Errors
    /// The first value that is not what it should be, or a speed that a map lacks.
    pub fn parse(
        text: &Text,
        speeds: &BTreeMap<Rate, usize>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ImportError> {
        let values = Values::read(text, warnings);
        let cc_mode = values.one("CC_MODE", |key, word| match word {
            "1" => Ok(Mode::Dcqcn),
            "3" => Ok(Mode::Hpcc),
            "7" => Ok(Mode::Timely),
            "8" => Ok(Mode::Dctcp),
            "10" => Err(format!("{key}: 10, HPCC-PINT, is not supported, allowed is 1, 3, 7 or 8")),
            _ => Err(format!(
                "{key}: found {}, allowed is 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP)",
                shown(word)
            )),
        })?;
        let enable_qcn = values.flag("ENABLE_QCN")?;
        let red = if enable_qcn && cc_mode.has_marks() { red(&values, speeds)? } else { Vec::new() };
        let config = Self {
            cc_mode,
            enable_qcn,
            use_dynamic_pfc_threshold: values.flag("USE_DYNAMIC_PFC_THRESHOLD")?,
            packet_payload_size: values.whole("PACKET_PAYLOAD_SIZE", 64..=9216)?,
            simulator_stop_time: values.one("SIMULATOR_STOP_TIME", units::seconds)?,
            alpha_resume_interval: values.micros("ALPHA_RESUME_INTERVAL")?,
            rate_decrease_interval: values.micros("RATE_DECREASE_INTERVAL")?,
            clamp_target_rate: values.flag("CLAMP_TARGET_RATE")?,
            rp_timer: values.micros("RP_TIMER")?,
            ewma_gain: values.number("EWMA_GAIN", 1e-9..=1.0)?,
            fast_recovery_times: values.whole("FAST_RECOVERY_TIMES", 1..=1000)?,
            rate_ai: values.rate_of(cc_mode, "RATE_AI")?,
            rate_hai: values.rate_of(cc_mode, "RATE_HAI")?,
            min_rate: values.rate("MIN_RATE")?,
            dctcp_rate_ai: values.rate("DCTCP_RATE_AI")?,
            error_rate_per_link: values.number("ERROR_RATE_PER_LINK", 0.0..=0.999_999_999)?,
            l2_chunk_size: values.whole("L2_CHUNK_SIZE", 0..=u64::from(u32::MAX))?,
            l2_back_to_zero: values.flag("L2_BACK_TO_ZERO")?,
            has_win: values.flag("HAS_WIN")?,
            global_t: values.flag("GLOBAL_T")?,
            var_win: values.flag("VAR_WIN")?,
            fast_react: values.flag("FAST_REACT")?,
            u_target: values.number("U_TARGET", 0.01..=1.0)?,
            mi_thresh: values.whole("MI_THRESH", 0..=1_000_000)?,
            int_multi: values.whole("INT_MULTI", 1..=1_000)?,
            multi_rate: values.flag("MULTI_RATE")?,
            sample_feedback: values.flag("SAMPLE_FEEDBACK")?,
            rate_bound: values.flag("RATE_BOUND")?,
            ack_high_prio: values.flag("ACK_HIGH_PRIO")?,
            link_down: link_down(&values)?,
            red,
            buffer_size: values.whole("BUFFER_SIZE", 1..=1 << 20)? << 20,
        };
        config.warn(&values, warnings)?;
        Ok(config)
    }

    /// What is known and not modelled, where it matters.
    fn warn(&self, values: &Values<'_>, warnings: &mut Vec<String>) -> Result<(), ImportError> {
        let mut warn = |key: &'static str, message: &str| {
            let line = values.given.get(key).map_or(0, |line| line.number);
            warnings.push(values.text.warning(line, format!("{key}: {message}")));
        };
        let hpcc = self.cc_mode == Mode::Hpcc;
        if values.whole("L2_ACK_INTERVAL", 0..=u64::from(u32::MAX))? > 1 {
            warn(
                "L2_ACK_INTERVAL",
                "has no effect: the peer acknowledges every packet whatever it is, and so do we",
            );
        }
        if self.l2_back_to_zero {
            warn(
                "L2_BACK_TO_ZERO",
                "1 goes back to the last whole chunk after a loss; here senders go back to the packet that was lost",
            );
        }
        if !self.global_t {
            warn(
                "GLOBAL_T",
                "0 gives each pair of hosts a T and a window of its own; here all have the longest ones",
            );
        }
        if !self.rate_bound {
            warn("RATE_BOUND", "0 lets hosts send windows in bursts; here they always keep to the rate");
        }
        if !self.use_dynamic_pfc_threshold {
            warn("USE_DYNAMIC_PFC_THRESHOLD", "0 is not supported: thresholds follow the free memory");
        }
        if self.ack_high_prio {
            warn(
                "ACK_HIGH_PRIO",
                "1 lets hosts send acknowledgements while their data is paused; switches queue both together, as here",
            );
        }
        if hpcc && self.multi_rate {
            warn("MULTI_RATE", "1 keeps a rate for each hop; here there is one for the path");
        }
        if hpcc && self.sample_feedback {
            warn("SAMPLE_FEEDBACK", "1 skips reactions; here every acknowledgement counts");
        }
        if values.given.get("ENABLE_TRACE").is_some_and(|line| line.words == ["1"]) {
            warn(
                "ENABLE_TRACE",
                "1 writes the peer's packet trace, which is not supported; see `incast trace`",
            );
        }
        if values.given.contains_key("NIC_TOTAL_PAUSE_TIME") {
            warn("NIC_TOTAL_PAUSE_TIME", "is read and not used by the peer, nor here");
        }
        Ok(())
    }
}

/// The three maps, which must agree and have every speed.
fn red(values: &Values<'_>, speeds: &BTreeMap<Rate, usize>) -> Result<Vec<Red>, ImportError> {
    let kilobytes =
        |key: &str, word: &str| whole(key, word, 0..=u64::from(u32::MAX)).map(|value| value as f64);
    let (line, min) = values.map(MAPS[0], kilobytes)?;
    let (_, max) = values.map(MAPS[1], kilobytes)?;
    let (_, p) = values.map(MAPS[2], |key, word| number(key, word, 0.0..=1.0))?;
    let mut red = Vec::new();
    for (rate, link) in speeds {
        let find = |key: &str, map: &BTreeMap<Rate, f64>| {
            map.get(rate).copied().ok_or_else(|| {
                let line = values.given.get(key).map_or(0, |line| line.number);
                let message = format!("{key}: nothing for {rate}, which line {link} of the topology has");
                values.text.error(line, message)
            })
        };
        let (min, max, p) = (find(MAPS[0], &min)?, find(MAPS[1], &max)?, find(MAPS[2], &p)?);
        if min > max {
            let message = format!("{}: found {min} KB for {rate}, {} has {max} KB", MAPS[0], MAPS[1]);
            return Err(values.text.error(line, message));
        }
        // Kilobytes of a thousand bytes.
        red.push(Red { rate: *rate, min: min as u64 * 1000, max: max as u64 * 1000, p });
    }
    Ok(red)
}

fn link_down(values: &Values<'_>) -> Result<Option<LinkDown>, ImportError> {
    let (line, words) = values.words("LINK_DOWN")?;
    let at = |message: String| values.text.error(line, message);
    let [after, a, b] = words[..] else {
        return Err(at(format!("LINK_DOWN: found {} values, wanted is `microseconds a b`", words.len())));
    };
    let after = whole("LINK_DOWN", after, 0..=1_000_000_000_000).map_err(at)?;
    let ends = [a, b].map(|word| whole("LINK_DOWN", word, 0..=u64::from(u32::MAX)).map_err(at));
    let ends = [ends[0].clone()?, ends[1].clone()?];
    // Zero stands for never.
    Ok((after > 0).then_some(LinkDown { after: Time::from_us(after), ends, line }))
}
