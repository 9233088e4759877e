//! Exact decimal parsing shared by the three units.

use thiserror::Error;

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Not a decimal number followed by a unit.
    #[error("`{found}` is not {what}: write a number and one of the units {units}, such as {example}")]
    Malformed {
        /// The text as written.
        found: String,
        /// What was expected, with its article ("a time").
        what: &'static str,
        /// Allowed units.
        units: &'static str,
        /// A valid example.
        example: &'static str,
    },
    /// The value does not fit, or is finer than the unit's resolution.
    #[error("`{found}` is out of range for {what}: {why}")]
    Range {
        /// The text as written.
        found: String,
        /// What was expected, with its article.
        what: &'static str,
        /// The limit that was broken.
        why: &'static str,
    },
}

/// What a unit looks like, for parsing and for error messages.
pub(crate) struct Grammar {
    pub what: &'static str,
    pub units: &'static str,
    pub example: &'static str,
    /// `(suffix, multiplier)`; suffixes are compared exactly.
    pub suffixes: &'static [(&'static str, u64)],
    pub resolution: &'static str,
}

impl Grammar {
    /// Parses `text` as an unsigned decimal with a suffix; the product must be a whole number that fits a u64.
    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let malformed = || UnitError::Malformed {
            found: text.to_owned(),
            what: self.what,
            units: self.units,
            example: self.example,
        };
        let range = |why| UnitError::Range { found: text.to_owned(), what: self.what, why };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
        let (number, suffix) = trimmed.split_at(split);
        let suffix = suffix.trim_start();
        let multiplier =
            self.suffixes.iter().find(|(name, _)| *name == suffix).map(|(_, m)| *m).ok_or_else(malformed)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(malformed());
        }
        let digits = |s: &str| -> Result<u128, UnitError> {
            s.bytes().filter(|b| *b != b'_').try_fold(0u128, |acc, b| {
                acc.checked_mul(10).and_then(|a| a.checked_add(u128::from(b - b'0'))).ok_or_else(|| range("too large"))
            })
        };
        let fraction = fraction.replace('_', "");
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 18 {
            return Err(range(self.resolution));
        }
        let scale = 10u128.pow(fraction.len() as u32);
        let scaled = digits(whole)?
            .checked_mul(scale)
            .and_then(|w| w.checked_add(digits(fraction).ok()?))
            .and_then(|v| v.checked_mul(u128::from(multiplier)))
            .ok_or_else(|| range("too large"))?;
        if scaled % scale != 0 {
            return Err(range(self.resolution));
        }
        u64::try_from(scaled / scale).map_err(|_| range("too large"))
    }
}

/// Writes `value` with the largest unit that keeps at most three decimals and loses nothing, else the smallest.
pub(crate) fn write_exact(
    f: &mut std::fmt::Formatter<'_>,
    value: u64,
    units: &[(&'static str, u64)],
) -> std::fmt::Result {
    for &(name, size) in units {
        if value >= size && (value as u128 * 1000).is_multiple_of(u128::from(size)) {
            let (whole, rest) = (value / size, (value % size) as u128 * 1000 / u128::from(size));
            let decimals = format!("{rest:03}");
            let decimals = decimals.trim_end_matches('0');
            return if decimals.is_empty() {
                write!(f, "{whole}{name}")
            } else {
                write!(f, "{whole}.{decimals}{name}")
            };
        }
    }
    let smallest = units.last().map_or("", |u| u.0);
    write!(f, "{value}{smallest}")
}
