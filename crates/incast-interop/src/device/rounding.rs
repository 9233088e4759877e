//! Numbers as SONiC takes them.

use std::ops::RangeInclusive;

/// The largest weight of a scheduler.
const MOST_WEIGHT: u32 = 100;

/// The exponents of two that `dynamic_th` takes (sonic-buffer-profile.yang).
pub const EXPONENTS: RangeInclusive<i32> = -8..=7;

/// The nearest power of two as an exponent, and whether it is another number.
pub fn exponent(alpha: f64) -> (i32, bool) {
    let apart = |exponent: &i32| (alpha / power(*exponent)).max(power(*exponent) / alpha);
    let nearest = EXPONENTS.min_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap_or(0);
    (nearest, power(nearest) != alpha)
}

/// Two to the power of a small number, exactly.
pub fn power(exponent: i32) -> f64 {
    let whole = f64::from(1u32 << exponent.unsigned_abs().min(31));
    if exponent < 0 { 1.0 / whole } else { whole }
}

/// A probability in whole per cent, at least one, and whether it is another number.
pub fn percent(p: f64) -> (u32, bool) {
    let nearest = ((p * 100.0).round() as u32).clamp(1, 100);
    (nearest, (f64::from(nearest) / 100.0 - p).abs() > 1e-12)
}

/// Weights of a scheduler, which go to 100 (sonic-scheduler.yang): the same, or in proportion to the largest.
pub fn weights(weights: &[u16]) -> Vec<u16> {
    let most = weights.iter().copied().max().unwrap_or(1).max(1);
    let scaled = |weight: u16| {
        let scaled = (u32::from(weight) * MOST_WEIGHT + u32::from(most) / 2) / u32::from(most);
        u16::try_from(scaled.max(1)).unwrap_or(1)
    };
    let fits = u32::from(most) <= MOST_WEIGHT;
    weights.iter().map(|weight| if fits { *weight } else { scaled(*weight) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphas_and_probabilities_are_rounded_as_devices_do() {
        assert_eq!(
            [1.0, 0.125, 0.4, 3.0, 128.0].map(exponent),
            [(0, false), (-3, false), (-1, true), (2, true), (7, false)]
        );
        assert_eq!([0.2, 1.0, 0.001, 0.125].map(percent), [(20, false), (100, false), (1, true), (13, true)]);
    }

    #[test]
    fn weights_fit_in_proportion() {
        assert_eq!(weights(&[4, 2, 1]), [4, 2, 1]);
        assert_eq!(weights(&[300, 7, 1]), [100, 2, 1]);
        assert_eq!(weights(&[101, 100, 50]), [100, 99, 50]);
    }
}
