//! The map f from the share of marked packets to the load of the bottleneck, as a file.
//!
//! ```text
//! # comments, such as the command that made it
//! marimo-f 1                 name and version of the format
//! 39322                      f(0/64): load in 65536ths
//! ...                        one line for each knot
//! 78643                      f(64/64)
//! checksum 0123abcd          FNV-1a of the knots as little-endian 32-bit numbers, hexadecimal
//! ```

use super::{Config, KNOTS, LOAD_MAX, ONE, ffi};
use crate::parameters::{Raw, Setting};
use std::{fmt::Write, sync::Arc};
use thiserror::Error;

/// What is wrong with a table, and in which line of its file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
    /// What was found and what is allowed.
    pub message: String,
}

/// f, and what a scenario calls it. Every value is sound in itself: it does not fall, stays within bounds, and lies on
/// both sides of the paper's thresholds.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadTable {
    name: Arc<str>,
    knots: Arc<[u32; KNOTS]>,
}

/// The paper's thresholds, 0.9 and 1.0: every table must cross them, independent of the scenario.
const THRESHOLDS: Config = Config { increase_below: 58_982, decrease_above: ONE, ..EMPTY };
const EMPTY: Config = Config {
    increase_below: 0,
    decrease_above: 0,
    target: 0,
    min_decrease: 0,
    max_decrease: 0,
    rho_after_decrease: 0,
    loss_rho: 0,
    loss_decrease: 0,
    initial_window: 0,
    min_window: 0,
    max_window: 0,
    increase: 0,
    max_increase: 0,
    min_epoch: 0,
    beta_shift: 0,
    decrease_from: 0,
    settle: 0,
    slow_start: 0,
};

/// Part of the binary, so that it works from any directory.
const CALIBRATED: &str = include_str!("../../../../core/marimo-f.table");

const FORMAT: &str = "marimo-f 1";

impl LoadTable {
    /// `0.6 + 0.6 e`: what the default was before anything had been measured.
    pub fn linear() -> Self {
        let knots = std::array::from_fn(|knot| 39_322 + 39_321 * knot as u32 / 64);
        Self { name: "linear".into(), knots: Arc::new(knots) }
    }

    /// What `incast calibrate marimo` found; the file names the command.
    pub fn calibrated() -> Self {
        Self::parse("calibrated", CALIBRATED).expect("the bundled table is sound, as a test shows")
    }

    /// A table of these knots.
    ///
    /// # Errors
    /// Knots that fall, are too large, or do not cross the thresholds; the line is that of the file it would be.
    pub fn new(name: &str, knots: [u32; KNOTS]) -> Result<Self, TableError> {
        check(&knots, |knot| knot + 2)?;
        Ok(Self { name: name.into(), knots: Arc::new(knots) })
    }

    /// Knots that only the core evaluates.
    #[cfg(test)]
    pub fn unchecked(knots: [u32; KNOTS]) -> Self {
        Self { name: "test".into(), knots: Arc::new(knots) }
    }

    /// Reads a file; `name` is what scenarios call it.
    ///
    /// # Errors
    /// Anything that is not the format above, a table cut short or with a wrong checksum, and those of [`Self::new`].
    pub fn parse(name: &str, text: &str) -> Result<Self, TableError> {
        let fail = |line: usize, message: String| Err(TableError { line, message });
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let after = text.lines().count().max(1);
        match lines.next() {
            Some((_, FORMAT)) => {}
            Some((line, found)) => {
                return fail(line, format!("found {:?}, allowed is {FORMAT:?}", short(found)));
            }
            None => return fail(after, format!("found nothing, allowed is {FORMAT:?} and {KNOTS} knots")),
        }
        let (mut knots, mut places) = ([0; KNOTS], [0; KNOTS]);
        for knot in 0..KNOTS {
            let Some((line, found)) = lines.next() else {
                return fail(after, format!("found {knot} knots and the end, allowed are {KNOTS}"));
            };
            knots[knot] = match found.parse() {
                Ok(load) if !found.starts_with('+') => load,
                _ if found.starts_with("checksum") => {
                    return fail(line, format!("found {knot} knots, allowed are {KNOTS}"));
                }
                _ => {
                    return fail(
                        line,
                        format!(
                            "found {:?}, allowed is a load in 65536ths, a whole number to {LOAD_MAX}",
                            short(found)
                        ),
                    );
                }
            };
            places[knot] = line;
        }
        check(&knots, |knot| places[knot])?;
        let Some((line, found)) = lines.next() else {
            return fail(after, "found the end, allowed is the checksum".into());
        };
        let expected = ffi::table_checksum(&knots);
        // As it is written: other spellings of the number are refused, too.
        if found != format!("checksum {expected:08x}") {
            return fail(line, format!("found {:?}, allowed is \"checksum {expected:08x}\"", short(found)));
        }
        if let Some((line, found)) = lines.next() {
            return fail(line, format!("found {:?} after the checksum, allowed is the end", short(found)));
        }
        Ok(Self { name: name.into(), knots: Arc::new(knots) })
    }

    /// The file, with these comments at its head.
    pub fn text(&self, comments: &[String]) -> String {
        let mut text: String = comments.iter().map(|comment| format!("# {comment}\n")).collect();
        text.push_str(FORMAT);
        text.push('\n');
        for knot in self.knots.iter() {
            writeln!(text, "{knot}").expect("a String takes everything");
        }
        writeln!(text, "checksum {:08x}", ffi::table_checksum(&self.knots)).expect("a String takes everything");
        text
    }

    /// f at 0/64, 1/64 .. 64/64, Q16.
    pub fn knots(&self) -> &[u32; KNOTS] {
        &self.knots
    }

    /// f at a share of marked packets in [0, 1], as the core computes it.
    pub fn load(&self, share: f64) -> f64 {
        f64::from(ffi::load(&self.knots, (share.clamp(0.0, 1.0) * f64::from(ONE)) as u32)) / f64::from(ONE)
    }
}

fn check(knots: &[u32; KNOTS], line: impl Fn(usize) -> usize) -> Result<(), TableError> {
    let Some(knot) = ffi::table_fault(knots, &THRESHOLDS) else { return Ok(()) };
    let found = knots[knot];
    let allowed = match knot {
        _ if found > LOAD_MAX => format!("at most {LOAD_MAX}"),
        _ if knot > 0 && found < knots[knot - 1] => {
            format!("at least {}, as before: f must not fall", knots[knot - 1])
        }
        0 => "less than 58982 (0.9), or windows never grow".into(),
        _ => format!("more than {ONE} (1.0), or windows never shrink"),
    };
    Err(TableError { line: line(knot), message: format!("found f({knot}/64) = {found}, allowed is {allowed}") })
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

impl Setting for LoadTable {
    const KIND: &'static str = "the name of a table or the path of its file";
    const BUNDLED: Option<&'static [&'static str]> = Some(&["calibrated", "linear"]);
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(name) if name == "calibrated" => Ok(Self::calibrated()),
            Raw::Text(name) if name == "linear" => Ok(Self::linear()),
            Raw::File { path, text } => Self::parse(path, text).map_err(|error| format!("\"{path}\" {error}")),
            _ => Err(format!("found {raw}, expected {}", Self::KIND)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Text(self.name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(change: impl Fn(&mut Vec<String>)) -> String {
        let text = LoadTable::linear().text(&["made by hand".into()]);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        LoadTable::parse("t", &lines.join("\n")).expect_err("refused").to_string()
    }

    #[test]
    fn a_table_survives_its_file() {
        let table = LoadTable::linear();
        let read = LoadTable::parse("linear", &table.text(&["made by hand".into()])).expect("sound");
        assert_eq!(read, table);
        assert!((table.load(0.5) - 0.9).abs() < 1e-4 && (table.load(1.0) - 1.2).abs() < 1e-4);
    }

    #[test]
    fn the_bundled_table_is_sound_and_names_its_command() {
        let table = LoadTable::parse("calibrated", CALIBRATED).expect("sound");
        assert_eq!(table, LoadTable::calibrated());
        assert!(CALIBRATED.lines().any(|line| line.starts_with("# made by: incast calibrate marimo")));
    }

    #[test]
    fn faults_are_found_with_their_line() {
        assert_eq!(broken(|lines| lines.truncate(40)), "line 40: found 38 knots and the end, allowed are 65");
        assert_eq!(broken(|lines| lines.truncate(67)), "line 67: found the end, allowed is the checksum");
        assert_eq!(broken(|lines| drop(lines.remove(5))), "line 67: found 64 knots, allowed are 65");
        assert_eq!(
            broken(|lines| lines[6] = "1".into()),
            "line 7: found f(4/64) = 1, allowed is at least 41165, as before: f must not fall"
        );
        assert_eq!(
            broken(|lines| lines[66] = "600000".into()),
            "line 67: found f(64/64) = 600000, allowed is at most 524288"
        );
        assert!(broken(|lines| lines[9] = "-3".into()).starts_with("line 10: found \"-3\", allowed is a load"));
        assert!(broken(|lines| lines[67] = "checksum 1".into()).contains("line 68: found \"checksum 1\""));
        // Other spellings of the right number.
        for (digits, other) in [(" ", " 0"), (" ", " +"), (" ", " 0x"), (" ", "  ")] {
            let refused = broken(|lines| lines[67] = lines[67].replacen(digits, other, 1));
            assert!(refused.contains("line 68: found \"checksum "), "{refused}");
        }
        assert!(broken(|lines| lines[9] = format!("+{}", lines[9])).contains("allowed is a load"));
        assert!(broken(|lines| lines[1] = "marimo-f 2".into()).starts_with("line 2: found \"marimo-f 2\""));
        assert!(broken(|lines| lines.push("7".into())).contains("after the checksum"));
        assert!(broken(Vec::clear).contains("found nothing"));
        let flat = |value| LoadTable::new("t", [value; KNOTS]).expect_err("refused").to_string();
        assert!(flat(ONE).contains("windows never grow") && flat(100).contains("windows never shrink"));
    }
}
