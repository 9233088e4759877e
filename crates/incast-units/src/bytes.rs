//! Amounts of data.

use crate::parse::{Grammar, UnitError, write_exact};
use std::{
    fmt,
    ops::{Add, Sub},
    str::FromStr,
};

/// A number of bytes. KB, MB, GB are powers of ten and KiB, MiB, GiB powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

const GRAMMAR: Grammar = Grammar {
    what: "a number of bytes",
    units: "B, KB, MB, GB, KiB, MiB, GiB",
    example: "\"320KB\"",
    suffixes: &[
        ("B", 1),
        ("KB", 1_000),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    resolution: "it is not a whole number of bytes",
};

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// From a count.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        GRAMMAR.parse(text).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("320KB".parse(), Ok(Bytes::new(320_000)));
        assert_eq!("4KiB".parse(), Ok(Bytes::new(4096)));
        assert_eq!("1.5MB".parse(), Ok(Bytes::new(1_500_000)));
        for wrong in ["320", "KB", "-3B", "0.5B", "1TB", "18446744073709551616B"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn prints_what_it_reads(count in any::<u64>()) {
            prop_assert_eq!(Bytes::new(count).to_string().parse::<Bytes>(), Ok(Bytes::new(count)));
        }
    }
}
