//! Bit rates, and the time that bytes take on a link of that rate.

use crate::{
    Bytes, Time,
    parse::{Grammar, UnitError, write_exact},
};
use std::{fmt, str::FromStr};

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const GRAMMAR: Grammar = Grammar {
    what: "a rate",
    units: "bps, Kbps, Mbps, Gbps, Tbps (or 100G, 100Gbit/s, 100Gb/s)",
    example: "\"100Gbps\"",
    suffixes: &[
        ("bps", 1),
        ("bit/s", 1),
        ("b/s", 1),
        ("Kbps", 1_000),
        ("Kbit/s", 1_000),
        ("Kb/s", 1_000),
        ("K", 1_000),
        ("kbps", 1_000),
        ("kbit/s", 1_000),
        ("kb/s", 1_000),
        ("k", 1_000),
        ("Mbps", 1_000_000),
        ("Mbit/s", 1_000_000),
        ("Mb/s", 1_000_000),
        ("M", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("G", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("Tb/s", 1_000_000_000_000),
        ("T", 1_000_000_000_000),
    ],
    resolution: "it is not a whole number of bits per second",
};

/// Picoseconds in a second times bits in a byte.
const PS_BITS: u64 = 8_000_000_000_000;

impl Rate {
    /// From bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// From Gbit/s.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }
    /// From bits per second in floating point, rounded; saturates, and NaN gives zero.
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(bps.round() as u64)
    }
    /// In bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// In bits per second, for laws.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// Time that `bytes` take at this rate, rounded up to a picosecond. Saturates; a zero rate takes for ever.
    pub fn time_of(self, bytes: Bytes) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let exact = (u128::from(bytes.get()) * u128::from(PS_BITS)).div_ceil(u128::from(self.0));
        Time::from_ps(u64::try_from(exact).unwrap_or(u64::MAX))
    }
    /// Whole bytes that pass in `span`, rounded down; saturates.
    pub fn bytes_in(self, span: Time) -> Bytes {
        let exact = u128::from(self.0) * u128::from(span.ps()) / u128::from(PS_BITS);
        Bytes::new(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        GRAMMAR.parse(text).map(Self)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(
            f,
            self.0,
            &[("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("Kbps", 1_000), ("bps", 1)],
        )
    }
}

/// What becomes of the fractions of transmission times and of the gaps of paced flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(::serde::Deserialize, ::serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum Rounding {
    /// Nothing is lost.
    #[default]
    Exact,
    /// Each time is cut to whole nanoseconds, as simulators do whose clock counts nanoseconds: links are a little too
    /// fast (by 1% for 1,048 bytes at 100 Gbps, by 5% at 400 Gbps).
    #[cfg_attr(feature = "serde", serde(rename = "whole-ns"))]
    WholeNanoseconds,
}

impl Rounding {
    /// A time under this rounding.
    #[inline]
    pub fn of(self, time: Time) -> Time {
        match self {
            Self::Exact => time,
            Self::WholeNanoseconds => Time::from_ps(time.ps() / 1000 * 1000),
        }
    }
}

/// The transmitter's clock: turns packet sizes into end times without drift.
///
/// A packet of `b` bytes takes exactly `8e12 b / rate` picoseconds, which need not be whole (56 Gbps). Within
/// a busy period the exact end is kept as whole picoseconds plus a remainder, and only what leaves is rounded,
/// up: the n-th packet of a busy period ends at `ceil(start + n × exact)`. An idle link starts afresh.
/// With [`Rounding::WholeNanoseconds`] each packet is rounded down for itself.
#[derive(Clone, Copy, Debug)]
pub struct Serializer {
    /// Picoseconds per byte where that is whole and nothing is rounded, else 0.
    ps_per_byte: u32,
    rounding: Rounding,
    /// Numerator of what the last rounding added, in units of 1 ps / rate.
    owed: u64,
    rate: u64,
}

impl Serializer {
    /// For a link of `rate`. A zero rate is refused by whoever parses it; here it counts as 1 bit/s.
    pub fn new(rate: Rate, rounding: Rounding) -> Self {
        let rate = rate.bps().max(1);
        let whole = rounding == Rounding::Exact && PS_BITS.is_multiple_of(rate);
        let ps_per_byte = if whole { u32::try_from(PS_BITS / rate).unwrap_or(0) } else { 0 };
        Self { ps_per_byte, rounding, owed: 0, rate }
    }

    /// Picoseconds per byte where that is a whole number and nothing is rounded, else zero.
    pub fn ps_per_byte(&self) -> u32 {
        self.ps_per_byte
    }

    /// What becomes of fractions.
    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// When `bytes` that start at `start` have left. `continues` says that the link was busy until `start`.
    #[inline]
    pub fn end(&mut self, start: Time, bytes: u32, continues: bool) -> Time {
        if self.ps_per_byte != 0 {
            return start + Time::from_ps(u64::from(bytes) * u64::from(self.ps_per_byte));
        }
        self.end_fraction(start, bytes, continues)
    }

    #[cold]
    fn end_fraction(&mut self, start: Time, bytes: u32, continues: bool) -> Time {
        if self.rounding == Rounding::WholeNanoseconds {
            let ns = u128::from(bytes) * u128::from(PS_BITS / 1000) / u128::from(self.rate);
            return start + Time::from_ns(ns as u64);
        }
        let owed = if continues { self.owed } else { 0 };
        let bits = u128::from(bytes) * u128::from(PS_BITS);
        let Some(exact) = bits.checked_sub(owed.into()) else {
            // A few bytes beyond 8 Tbps: they end within the picosecond that was counted before.
            self.owed = owed - bits as u64;
            return start;
        };
        let whole = exact.div_ceil(u128::from(self.rate));
        self.owed = (whole * u128::from(self.rate) - exact) as u64;
        start + Time::from_ps(whole as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn several_packets_fit_into_a_picosecond() {
        let mut link = Serializer::new(Rate::from_gbps(100_000), Rounding::Exact);
        // 8 bytes take 0.64 ps, so that n of them end at the next whole picosecond after 0.64 n.
        let mut now = Time::ZERO;
        let ends: Vec<u64> = (0..6)
            .map(|packet| {
                now = link.end(now, 8, packet > 0);
                now.ps()
            })
            .collect();
        assert_eq!(ends, [1, 2, 2, 3, 4, 4]);
    }

    #[test]
    fn reads_what_people_write() {
        assert_eq!("100Gbps".parse(), Ok(Rate::from_gbps(100)));
        assert_eq!("2.5Gbps".parse(), Ok(Rate::from_bps(2_500_000_000)));
        for same in ["100G", "100Gbit/s", "100 Gb/s", "100000M", "0.1T"] {
            assert_eq!(same.parse(), Ok(Rate::from_gbps(100)), "{same}");
        }
        for wrong in ["100", "G", "100Gbit", "100g", "-1Gbps", "0.5bps", "fast"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn serialisation_does_not_drift() {
        // 56 Gbps: 4,160 B take 594,285 5/7 ps. Seven of them take a whole number of picoseconds.
        let mut serializer = Serializer::new(Rate::from_gbps(56), Rounding::Exact);
        let mut now = Time::ZERO;
        for i in 0..7_000u64 {
            now = serializer.end(now, 4160, i > 0);
        }
        assert_eq!(now.ps(), 1000 * 7 * 4160 * 8_000 / 56);
    }

    #[test]
    fn whole_nanoseconds_are_cut() {
        // 1,048 B: 83.84 ns at 100 Gbps, 20.96 ns at 400 Gbps; and no fraction is owed to the next packet.
        for (gbps, ns) in [(100, 83), (400, 20)] {
            let mut serializer = Serializer::new(Rate::from_gbps(gbps), Rounding::WholeNanoseconds);
            let first = serializer.end(Time::ZERO, 1048, false);
            assert_eq!((first, serializer.end(first, 1048, true)), (Time::from_ns(ns), Time::from_ns(2 * ns)));
            assert_eq!(serializer.ps_per_byte(), 0);
        }
        assert_eq!(Rounding::WholeNanoseconds.of(Time::from_ps(5_999)), Time::from_ns(5));
        assert_eq!(Rounding::Exact.of(Time::from_ps(5_999)), Time::from_ps(5_999));
    }

    proptest! {
        #[test]
        fn every_end_is_the_exact_one_rounded_up(rate in 1u64..2_000_000_000_000, sizes in proptest::collection::vec(1u32..10_000, 1..50)) {
            let mut serializer = Serializer::new(Rate::from_bps(rate), Rounding::Exact);
            let (mut now, mut sum) = (Time::ZERO, 0u128);
            for (i, size) in sizes.into_iter().enumerate() {
                now = serializer.end(now, size, i > 0);
                sum += u128::from(size);
                prop_assert_eq!(u128::from(now.ps()), (sum * u128::from(PS_BITS)).div_ceil(u128::from(rate)));
            }
        }

        #[test]
        fn prints_what_it_reads(bps in any::<u64>()) {
            prop_assert_eq!(Rate::from_bps(bps).to_string().parse::<Rate>(), Ok(Rate::from_bps(bps)));
        }
    }
}
