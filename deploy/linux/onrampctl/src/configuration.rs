//! The configuration as an operator writes it: `name = value`, from a file or from the command line.
//!
//! Names and meanings are those of the simulator's parameters (`incast list schemes`). What differs: a threshold is of the queue
//! alone, as delays are counted from the least one.

use crate::layout::Config;
use hostctl::failure::{Failure, Outcome};
use incast_units::Time;

/// `ONRAMP_ONE`.
const ONE: f64 = 65_536.0;
/// `ONRAMP_SPAN_MAX`.
const SPAN_MAX: u64 = 0x3fff_ffff;
/// `ONRAMP_RATE_BITS`: parts per million as Q30.
const Q30: f64 = 1_073.741_824;
/// Half of the least retransmission timeout of Linux, 200 ms: a hold alone must not cause one.
pub const HOLD_MAX: u32 = 100_000_000;
const VARIANTS: [&str; 3] = ["strawman", "paper", "committed"];
const RELEASES: [&str; 2] = ["burst", "paced"];

/// The defaults of the simulator, but for times that it takes from the fabric.
pub fn defaults() -> Config {
    Config {
        rule_threshold: 0,
        max_hold: 5_000_000,
        quantum: 1,
        small_quantum: 1,
        beta: 49_152,
        spread: 0,
        // Of full frames at an eighth of 10 Gbit/s; `load` knows the device's rate.
        reference: 9_842,
        gain: 16_384,
        step: 32_768,
        variant: 1,
        release: 1,
        reserved: [0; 2],
        threshold: 0,
        floor: 50_000,
        drift: 107_374,
        drain: 0,
    }
}

/// One `name = value` and where it was written.
#[derive(Clone, Debug)]
pub struct Setting {
    place: String,
    name: String,
    value: String,
}

/// The settings of a file: one per line, `#` begins a comment.
pub fn parse(path: &str, text: &str) -> Outcome<Vec<Setting>> {
    let lines =
        text.lines().enumerate().map(|(number, line)| (number, line.split('#').next().unwrap_or_default().trim()));
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| one(&format!("{path} line {}", number + 1), line))
        .collect()
}

/// One `name = value`.
pub fn one(place: &str, text: &str) -> Outcome<Setting> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Failure::input(format!("{place}: found {text:?}, allowed is NAME = VALUE")));
    };
    let value = value.trim().trim_matches('"').to_owned();
    Ok(Setting { place: place.into(), name: name.trim().into(), value })
}

impl Setting {
    fn wrong(&self, allowed: &str) -> Failure {
        Failure::input(format!("{}: {}: found {:?}, allowed is {allowed}", self.place, self.name, self.value))
    }

    fn time(&self, most: u64, allowed: &str) -> Outcome<u32> {
        let time = self.value.parse::<Time>().ok().map(|time| time.ps() / 1_000);
        let time = time.filter(|ns| (1..=most.min(SPAN_MAX)).contains(ns));
        time.and_then(|ns| u32::try_from(ns).ok()).ok_or_else(|| self.wrong(allowed))
    }

    fn word(&self, words: &[&str]) -> Outcome<u8> {
        let found = words.iter().position(|word| *word == self.value);
        found.and_then(|place| u8::try_from(place).ok()).ok_or_else(|| self.wrong(&words.join(", ")))
    }

    fn number(&self, most: f64) -> Outcome<f64> {
        let number = self.value.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
        number.ok_or_else(|| self.wrong(&format!("0 to {most}")))
    }

    fn apply(&self, config: &mut Config) -> Outcome {
        const SECOND: &str = "a time up to 1s, such as 50us";
        match self.name.as_str() {
            "threshold" if self.value == "path" => config.threshold = 0,
            "threshold" => config.threshold = self.time(SPAN_MAX, "\"path\", or a time up to 1s, such as 50us")?,
            "floor" => config.floor = self.time(SPAN_MAX, SECOND)?,
            "max_hold" => {
                config.max_hold =
                    self.time(HOLD_MAX.into(), "a time up to 100ms, half of Linux's least retransmission timeout")?;
            }
            "reference" => config.reference = self.time(SPAN_MAX, SECOND)?,
            "variant" => config.variant = self.word(&VARIANTS)?,
            "release" => config.release = self.word(&RELEASES)?,
            "beta" => config.beta = (self.number(1.0)? * ONE).round() as u32,
            "drift_ppm" => config.drift = (self.number(900.0)? * Q30).round() as u32,
            name => {
                return Err(Failure::input(format!(
                    "{}: found {name:?}, allowed is threshold, floor, max_hold, reference, variant, release, beta or drift_ppm",
                    self.place
                )));
            }
        }
        Ok(())
    }
}

/// Settings upon a configuration, later ones upon earlier ones.
pub fn resolve(start: Config, settings: &[Setting]) -> Outcome<Config> {
    let mut config = start;
    settings.iter().try_for_each(|setting| setting.apply(&mut config))?;
    Ok(config)
}

/// Names and values, as they are written.
pub fn describe(config: &Config) -> Vec<(&'static str, String)> {
    let us = |ns: u32| format!("{}us", f64::from(ns) / 1e3);
    let word = |words: &[&str], place: u8| words.get(usize::from(place)).copied().unwrap_or("?").to_owned();
    vec![
        ("threshold", if config.threshold == 0 { "path".into() } else { us(config.threshold) }),
        ("floor", us(config.floor)),
        ("max_hold", us(config.max_hold)),
        ("variant", word(&VARIANTS, config.variant)),
        ("beta", format!("{}", f64::from(config.beta) / ONE)),
        ("release", word(&RELEASES, config.release)),
        ("reference", us(config.reference)),
        ("drift_ppm", format!("{:.0}", f64::from(config.drift) / Q30)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_described_is_read_back() {
        let text = "threshold = 80us # of the queue\n\nmax_hold = \"2ms\"\nbeta=0.5\nrelease = burst\nvariant = committed\ndrift_ppm = 20";
        let config = resolve(defaults(), &parse("x", text).expect("lines")).expect("values");
        assert_eq!((config.threshold, config.max_hold, config.beta, config.release), (80_000, 2_000_000, 32_768, 0));
        let lines: Vec<_> = describe(&config).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let again = lines.iter().map(|line| one("--set", line)).collect::<Outcome<Vec<_>>>().expect("lines");
        assert_eq!(resolve(defaults(), &again).expect("values"), config);
        assert_eq!(describe(&defaults())[0].1, "path");
    }

    /// A test of that command has the same file.
    #[test]
    fn what_incast_config_writes_is_read() {
        let text = include_str!("../../../../crates/incast/tests/cli/golden/onramp.conf");
        let config = resolve(defaults(), &parse("onramp.conf", text).expect("lines")).expect("values");
        let set = text.lines().filter(|line| line.contains('=') && !line.starts_with('#')).count();
        assert_eq!(set, 6, "threshold, max_hold, reference, variant, beta, release");
        assert!(config.threshold > 0 && config != defaults());
    }

    #[test]
    fn wrong_values_name_their_place_and_what_is_allowed() {
        for (text, wanted) in [
            ("max_hold = 200ms", "x line 1: max_hold: found \"200ms\", allowed is a time up to 100ms"),
            ("beta = 1.5", "x line 1: beta: found \"1.5\", allowed is 0 to 1"),
            ("release = clocked", "x line 1: release: found \"clocked\", allowed is burst, paced"),
            ("treshold = 1us", "x line 1: found \"treshold\", allowed is threshold,"),
            ("beta", "x line 1: found \"beta\", allowed is NAME = VALUE"),
        ] {
            let outcome = parse("x", text).and_then(|settings| resolve(defaults(), &settings));
            let Err(Failure::BadInput(message)) = outcome else { panic!("{text}: {outcome:?}") };
            assert!(message.starts_with(wanted), "{message}");
        }
    }
}
