//! `config.txt`: `KEY value` pairs.
//!
//! The simulator reads word by word and ignores words that are no keys, so that there may be comments. Here a key and its
//! values are on one line, and what is ignored is said.

use super::{
    keys::{self, Key, Role},
    units,
};
use crate::import::{
    Said,
    text::{ImportError, Line, Text, listed, number, shown, whole},
};
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
    /// 12 in astra-sim and SimAI: line rate and a window that never changes.
    Uncontrolled,
}

impl Mode {
    /// Whether senders react to marks.
    pub fn has_marks(self) -> bool {
        matches!(self, Self::Dcqcn | Self::Dctcp)
    }

    /// Whether a key that has no default matters.
    fn uses(self, key: &str) -> bool {
        match key {
            "RATE_AI" => !matches!(self, Self::Dctcp | Self::Uncontrolled),
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
    pub enable_pfc: bool,
    pub enable_irn: bool,
    /// In nanoseconds.
    pub simulator_stop_time: u64,
    /// FLOWGEN_START_TIME in nanoseconds: from when links go down.
    pub flows_from: u64,
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

/// Keys of tables by link speed.
const MAPS: [&str; 3] = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"];

/// How long ConWeave's program runs after the last flow may start, in nanoseconds.
const CONWEAVE_DRAIN_NS: u64 = 10_000_000_000;

/// The values of each key and the line that has them.
struct Values<'a> {
    text: &'a Text,
    given: BTreeMap<&'a str, Line<'a>>,
}

impl<'a> Values<'a> {
    fn read(text: &'a Text, said: &mut Said) -> Result<Self, ImportError> {
        let mut given: BTreeMap<&str, Line<'_>> = BTreeMap::new();
        let (mut comments, mut record, mut unused) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut unknown: Vec<(usize, String)> = Vec::new();
        for line in text.lines() {
            let mut at = 0;
            let mut skipped = false;
            while let Some(word) = line.words.get(at).copied() {
                at += 1;
                let Some(key) = Key::find(word) else {
                    if at == 1 && word.starts_with("ns3::") {
                        let message = format!(
                            "{}: keys that are names of attributes, as SimAI's later versions have them, are not \
                             read, allowed are HPCC's such as CC_MODE",
                            shown(word)
                        );
                        return Err(text.error(line.number, message));
                    }
                    if at == 1 && like_a_key(word) {
                        let near = nearest(word, keys::names())
                            .map(|name| format!(" (did you mean {name}?)"))
                            .unwrap_or_default();
                        unknown.push((line.number, format!("{}{near}", shown(word))));
                        // Its value.
                        at += usize::from(line.words.get(at).is_some_and(|word| Key::find(word).is_none()));
                    } else {
                        skipped = true;
                    }
                    continue;
                };
                let end = at + key.values(&line.words[at..]);
                let values = Line { number: line.number, words: line.words[at..end].to_vec() };
                at = end;
                if key.role == Role::Map && line.words.get(at).is_some_and(|word| word.parse::<f64>().is_ok()) {
                    let message =
                        format!("{}: the numbers behind the last pair are skipped, as the peer does", key.name);
                    said.warnings.push(text.warning(line.number, message));
                }
                match key.role {
                    Role::Record => record.push(key.name),
                    Role::Unused(why) => {
                        unused.insert(key.name, why);
                    }
                    Role::Read(_) | Role::Map => {}
                }
                if let Some(Line { number: other, .. }) = given.insert(key.name, values) {
                    let message = format!("{} is in line {other} too: the last one counts", key.name);
                    said.warnings.push(text.warning(line.number, message));
                }
            }
            if skipped {
                comments.push(line.number.to_string());
            }
        }
        // The peer passes over them; whether they change the model of a program that reads them nobody can say.
        if let Some((line, _)) = unknown.first() {
            let names: Vec<_> = unknown.iter().map(|(_, name)| name.clone()).collect();
            let message = format!(
                "the keys {} are unknown, allowed are those of docs/formats.md: take them out if they do not change the \
                 model",
                listed(&names)
            );
            return Err(text.error(*line, message));
        }
        if !comments.is_empty() {
            let lines = listed(&comments);
            said.notes
                .push(text.warning(0, format!("words that are no keys are skipped, as the peer does: line {lines}")));
        }
        if !record.is_empty() {
            let names = record.join(", ");
            said.notes.push(text.warning(0, format!("ignored, as files and what is recorded: {names}")));
        }
        if !unused.is_empty() {
            let names: Vec<_> = unused.iter().map(|(name, why)| format!("{name} ({why})")).collect();
            said.notes.push(text.warning(0, format!("read and not used: {}", names.join(", "))));
        }
        Ok(Self { text, given })
    }

    /// The line and words of a key.
    fn words(&self, key: &'static str) -> Result<(usize, Vec<&str>), ImportError> {
        if let Some(line) = self.given.get(key) {
            return Ok((line.number, line.words.clone()));
        }
        match Key::find(key).map(|key| key.role) {
            Some(Role::Read(Some(default))) => Ok((0, default.split(' ').collect())),
            _ => Err(self.missing(&[key])),
        }
    }

    /// All keys that are missing, in one error.
    fn missing(&self, keys: &[&str]) -> ImportError {
        match keys {
            [key] => self.text.error(0, format!("the key {key} is missing")),
            keys => self.text.error(0, format!("the keys {} are missing", keys.join(", "))),
        }
    }

    /// Refuses a file without keys that a mode uses.
    fn complete(&self, mode: Mode, has_maps: bool) -> Result<(), ImportError> {
        let wanted = |key: &Key| match key.role {
            Role::Read(None) => mode.uses(key.name),
            Role::Map => has_maps,
            _ => false,
        };
        let missing: Vec<_> = keys::KEYS
            .iter()
            .filter(|key| wanted(key) && !self.given.contains_key(key.name))
            .map(|key| key.name)
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(self.missing(&missing)) }
    }

    /// The one value of a key.
    fn one<T>(&self, key: &'static str, read: impl FnOnce(&str, &str) -> Result<T, String>) -> Result<T, ImportError> {
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
        said: &mut Said,
    ) -> Result<(usize, BTreeMap<Rate, f64>), ImportError> {
        let Some(line) = self.given.get(key) else {
            return Err(self.missing(&[key]));
        };
        let at = |message: String| self.text.error(line.number, message);
        let [count, pairs @ ..] = line.words.as_slice() else {
            return Err(at(format!("{key}: found nothing, wanted is the number of link speeds")));
        };
        let count = whole(key, count, 1..=1000).map_err(at)?;
        if pairs.len() as u64 != 2 * count {
            let message = format!("{key}: found {} words after {count}, wanted are {}", pairs.len(), 2 * count);
            return Err(at(message));
        }
        let mut map = BTreeMap::new();
        for pair in pairs.chunks_exact(2) {
            let rate = Rate::from_bps(whole(key, pair[0], 1..=u64::MAX).map_err(at)?);
            if map.insert(rate, value(key, pair[1]).map_err(at)?).is_some() {
                let message = format!("{key}: found {} twice: the last one counts", shown(pair[0]));
                said.warnings.push(self.text.warning(line.number, message));
            }
        }
        Ok((line.number, map))
    }
}

impl Config {
    /// Reads the file. `speeds` are those of the links, each with its line in the topology.
    ///
    /// # Errors
    /// All keys that are missing, all that ask for what incast does not have, the first value that is not what it should
    /// be, or a speed that a map lacks.
    pub fn parse(text: &Text, speeds: &BTreeMap<Rate, usize>, said: &mut Said) -> Result<Self, ImportError> {
        let values = Values::read(text, said)?;
        let (cc_mode, lb_mode) = (values.one("CC_MODE", mode), values.one("LB_MODE", ecmp));
        if let (Err(first), Err(second)) = (&cc_mode, &lb_mode) {
            return Err(text.error(first.line, format!("{}; {}", first.message, second.message)));
        }
        let cc_mode = cc_mode?;
        lb_mode?;
        let enable_qcn = values.flag("ENABLE_QCN")?;
        let has_maps = enable_qcn && cc_mode.has_marks();
        values.complete(cc_mode, has_maps)?;
        let red = if has_maps { red(&values, speeds, said)? } else { Vec::new() };
        let config = Self {
            cc_mode,
            enable_qcn,
            use_dynamic_pfc_threshold: values.flag("USE_DYNAMIC_PFC_THRESHOLD")?,
            packet_payload_size: values.whole("PACKET_PAYLOAD_SIZE", 64..=9216)?,
            enable_pfc: values.flag("ENABLE_PFC")?,
            enable_irn: values.flag("ENABLE_IRN")?,
            simulator_stop_time: stop(&values, said)?,
            flows_from: values.one("FLOWGEN_START_TIME", units::seconds)?,
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
        config.warn(&values, &mut said.warnings)?;
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
            warn("L2_ACK_INTERVAL", "has no effect: the peer acknowledges every packet whatever it is, and so do we");
        }
        if self.l2_back_to_zero {
            warn(
                "L2_BACK_TO_ZERO",
                "1 goes back to the last whole chunk after a loss; here senders go back to the packet that was lost",
            );
        }
        if !self.global_t {
            warn("GLOBAL_T", "0 gives each pair of hosts a T and a window of its own; here all have the longest ones");
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
            warn("ENABLE_TRACE", "1 writes the peer's packet trace, which is not supported; see `incast trace`");
        }
        if !self.enable_pfc {
            warn("ENABLE_PFC", "0 drops packets; the limits of queues are those of our shared buffer");
        }
        if self.enable_irn {
            warn(
                "ENABLE_IRN",
                "1 is selective repeat with at most a BDP in flight; the peer's timeout of 100 us for flows of few \
                 packets is not there",
            );
        }
        if values.given.keys().any(|key| Key::find(key).is_some_and(Key::is_conweaves)) {
            warnings.push(values.text.warning(
                0,
                "ConWeave's switches send acknowledgements before data whatever the file says; here they share a queue",
            ));
        }
        Ok(())
    }
}

/// Whether a word that begins a line is meant as a key.
fn like_a_key(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// The law of a `CC_MODE`.
fn mode(key: &str, word: &str) -> Result<Mode, String> {
    const ALLOWED: &str = "allowed is 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP) or 12 (no control)";
    let name = match word {
        "1" => return Ok(Mode::Dcqcn),
        "3" => return Ok(Mode::Hpcc),
        "7" => return Ok(Mode::Timely),
        "8" => return Ok(Mode::Dctcp),
        "12" => return Ok(Mode::Uncontrolled),
        "10" => "HPCC-PINT",
        "11" => "Swift in astra-sim and SimAI, other laws in other descendants",
        _ => return Err(format!("{key}: found {}, {ALLOWED}", shown(word))),
    };
    Err(format!("{key}: {word}, {name}, is not supported, {ALLOWED}"))
}

/// Refuses load balancing that is not ECMP.
fn ecmp(key: &str, word: &str) -> Result<(), String> {
    let name = match word {
        "0" => return Ok(()),
        "2" => "DRILL",
        "3" => "CONGA",
        "6" => "LetFlow",
        "9" => "ConWeave",
        _ => return Err(format!("{key}: found {}, allowed is 0 (ECMP)", shown(word))),
    };
    Err(format!("{key}: {word}, {name}, is not supported, allowed is 0 (ECMP)"))
}

/// When the simulation ends, in nanoseconds; ConWeave's program knows when flows stop to start instead.
fn stop(values: &Values<'_>, said: &mut Said) -> Result<u64, ImportError> {
    let given = |key| values.given.contains_key(key);
    if !given("SIMULATOR_STOP_TIME") && given("FLOWGEN_STOP_TIME") {
        return Ok(values.one("FLOWGEN_STOP_TIME", units::seconds)? + CONWEAVE_DRAIN_NS);
    }
    let stop = values.one("SIMULATOR_STOP_TIME", |key, word| match word.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > units::LONGEST_S => Ok(None),
        _ => units::seconds(key, word).map(Some),
    })?;
    if let Some(stop) = stop {
        return Ok(stop);
    }
    let line = values.given.get("SIMULATOR_STOP_TIME").map_or(0, |line| line.number);
    let message = format!(
        "SIMULATOR_STOP_TIME is later than our clock goes: the run ends when all flows have ended, or at {} s",
        units::LONGEST_S
    );
    said.warnings.push(values.text.warning(line, message));
    Ok(units::LONGEST_S as u64 * 1_000_000_000)
}

/// The three maps, which must agree and have every speed.
fn red(values: &Values<'_>, speeds: &BTreeMap<Rate, usize>, said: &mut Said) -> Result<Vec<Red>, ImportError> {
    let kilobytes = |key: &str, word: &str| whole(key, word, 0..=u64::from(u32::MAX)).map(|value| value as f64);
    let (line, min) = values.map(MAPS[0], kilobytes, said)?;
    let (_, max) = values.map(MAPS[1], kilobytes, said)?;
    let (_, p) = values.map(MAPS[2], |key, word| number(key, word, 0.0..=1.0), said)?;
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
