//! Rates and times as ns-3 writes them: `100Gbps`, `50Mb/s`, `0.001ms`.

use crate::import::text::shown;
use incast_units::{Rate, Time};

/// A rate; `b/s` and `bps` are the same, and a plain number is in bit/s.
///
/// # Errors
/// What was found and what is allowed.
pub fn rate(what: &str, word: &str) -> Result<Rate, String> {
    let wrong = || format!("{what}: found {}, allowed is a rate such as `100Gbps` or `50Mb/s`", shown(word));
    if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let bps = word.parse::<f64>().map_err(|_| wrong())?;
        return if (1.0..=1e18).contains(&bps) { Ok(Rate::from_bps(bps as u64)) } else { Err(wrong()) };
    }
    let ours = match word.strip_suffix("b/s") {
        Some(number) => format!("{number}bps"),
        None => word.to_owned(),
    };
    let rate = ours.parse::<Rate>().map_err(|_| wrong())?;
    if rate.bps() == 0 { Err(wrong()) } else { Ok(rate) }
}

/// A time; what is finer than a nanosecond is cut off, as ns-3's clock does.
///
/// # Errors
/// What was found and what is allowed.
pub fn time(what: &str, word: &str) -> Result<Time, String> {
    let time = word
        .parse::<Time>()
        .map_err(|_| format!("{what}: found {}, allowed is a time such as `1000ns` or `0.001ms`", shown(word)))?;
    Ok(Time::from_ps(time.ps() / 1000 * 1000))
}

/// Seconds as ns-3 makes nanoseconds of them: the double's exact value, cut off. `2.001` is 2,000,999,999 ns.
///
/// # Errors
/// What was found and what is allowed.
pub fn seconds(what: &str, word: &str) -> Result<u64, String> {
    let wrong = || format!("{what}: found {}, allowed is a number of seconds from 0 to {LONGEST_S}", shown(word));
    let seconds = word.parse::<f64>().map_err(|_| wrong())?;
    if !(0.0..=LONGEST_S).contains(&seconds) {
        return Err(wrong());
    }
    let bits = seconds.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
    if exponent == 0 {
        return Ok(0);
    }
    // seconds = mantissa * 2^(exponent - 1075), and LONGEST_S is below 2^52: the shift is to the right.
    let mantissa = u128::from(fraction | 1 << 52);
    let shift = (1075 - exponent) as u32;
    Ok((mantissa * 1_000_000_000).checked_shr(shift).unwrap_or(0) as u64)
}

/// Our clock ends after 213 days.
pub const LONGEST_S: f64 = 1e7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_cut_off() {
        for (word, ns) in [
            ("2", 2_000_000_000),
            ("2.001", 2_000_999_999),
            ("2.000000000", 2_000_000_000),
            ("2.000000962", 2_000_000_962),
            ("0.5", 500_000_000),
            ("0", 0),
            ("-0.0", 0),
            ("1e-310", 0),
            ("1e-9", 1),
            ("1e7", 10_000_000_000_000_000),
        ] {
            assert_eq!(seconds("start", word), Ok(ns), "{word}");
        }
        for wrong in ["-1", "NaN", "inf", "1e8", "x", ""] {
            assert!(seconds("start", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_and_times() {
        assert_eq!(rate("r", "50Mb/s"), Ok(Rate::from_bps(50_000_000)));
        assert_eq!(rate("r", "100Gbps"), Ok(Rate::from_gbps(100)));
        assert_eq!(time("t", "0.001ms"), Ok(Time::from_us(1)));
        assert_eq!(time("t", "1.5ns"), Ok(Time::from_ns(1)));
        // ns-3 takes a number without a unit in bit/s.
        assert_eq!(rate("r", "100000000000.0"), Ok(Rate::from_gbps(100)));
        assert_eq!(rate("r", "1000000000"), Ok(Rate::from_gbps(1)));
        for wrong in ["0bps", "-1Gbps", "b/s", "0", "0.5", ".", "1.2.3", "99999999999999999999", "1e9", ""] {
            assert!(rate("r", wrong).is_err(), "{wrong}");
        }
        assert!(time("t", "-1ns").is_err() && time("t", "5").is_err());
    }
}
