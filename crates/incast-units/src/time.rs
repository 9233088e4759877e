//! Simulated time in integer picoseconds.

use crate::parse::{Grammar, UnitError, write_exact};
use std::{
    fmt,
    ops::{Add, AddAssign, Div, Mul, Sub},
    str::FromStr,
};

/// A point in simulated time, or a span of it, in picoseconds. A u64 reaches 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

const GRAMMAR: Grammar = Grammar {
    what: "a time",
    units: "ps, ns, us, ms, s",
    example: "\"1us\"",
    suffixes: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("µs", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
    resolution: "the resolution is one picosecond",
};

impl Time {
    /// The start of a simulation, or an empty span.
    pub const ZERO: Self = Self(0);
    /// Later than anything: used for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// From picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
    /// From nanoseconds. Panics on overflow, which needs 213 days.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }
    /// From microseconds. Panics on overflow.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// From milliseconds. Panics on overflow.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }
    /// From seconds in floating point, rounded to the nearest picosecond; saturates, and NaN gives zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e12).round() as u64)
    }
    /// In picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// In seconds, for laws and reports only; the engine never computes with it.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// In microseconds, for laws and reports.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self + other`, or [`Time::MAX`] on overflow.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// `self × factor`, or [`Time::MAX`] on overflow.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
    /// `self + other`, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }
    /// `self × factor`, rounded to the nearest picosecond; saturates.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Time {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Time {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl Mul<u64> for Time {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}
impl Div<u64> for Time {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl FromStr for Time {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        GRAMMAR.parse(text).map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            return f.write_str("never");
        }
        write_exact(
            f,
            self.0,
            &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("1us".parse(), Ok(Time::from_us(1)));
        assert_eq!("0.5 us".parse(), Ok(Time::from_ns(500)));
        assert_eq!("12.345678us".parse(), Ok(Time::from_ps(12_345_678)));
        assert_eq!("1_000ns".parse(), Ok(Time::from_us(1)));
        for wrong in ["", "us", "-1us", "1", "1 parsec", "1.2.3us", ".us", "0.5ps", "99999999999s", "NaN", "1e3us"] {
            assert!(wrong.parse::<Time>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn prints_what_it_reads(ps in any::<u64>()) {
            prop_assume!(ps != u64::MAX);
            let time = Time::from_ps(ps);
            prop_assert_eq!(time.to_string().parse::<Time>(), Ok(time));
        }

        #[test]
        fn never_panics_on_text(text in ".{0,24}") {
            let _ = text.parse::<Time>();
        }
    }
}
