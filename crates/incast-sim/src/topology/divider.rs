//! Exact division by a number that is known beforehand.

/// Divides u32 by a fixed divisor with one multiplication.
///
/// With `m = floor((2^64 - 1) / d)`, the upper half of `m (n + 1)` is `floor(n / d)` for every n and every d ≥ 1:
/// `m (n + 1) / 2^64` lies below `(n + 1) / d` by more than 0 and by less than `2^-32 < 1 / d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    divisor: u32,
    factor: u64,
}

impl Divider {
    /// For a divisor. Zero counts as 1.
    pub const fn new(divisor: u32) -> Self {
        let divisor = if divisor == 0 { 1 } else { divisor };
        Self { divisor, factor: u64::MAX / divisor as u64 }
    }
    /// The divisor.
    pub const fn divisor(self) -> u32 {
        self.divisor
    }
    /// `number / divisor`, rounded down.
    #[inline]
    pub const fn divide(self, number: u32) -> u32 {
        ((self.factor as u128 * (number as u128 + 1)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn is_exact_at_the_edges() {
        for divisor in [1, 2, 3, 5, 7, 641, 65_535, 65_536, 65_537, u32::MAX - 1, u32::MAX] {
            let by = Divider::new(divisor);
            for multiple in [0, 1, 2, u32::MAX / divisor] {
                for offset in [-1i64, 0, 1] {
                    let Ok(number) = u32::try_from(i64::from(divisor) * i64::from(multiple) + offset) else {
                        continue;
                    };
                    assert_eq!(by.divide(number), number / divisor, "{number} / {divisor}");
                }
            }
            assert_eq!(by.divide(u32::MAX), u32::MAX / divisor);
        }
    }

    proptest! {
        #[test]
        fn is_exact(number in any::<u32>(), divisor in 1u32..) {
            prop_assert_eq!(Divider::new(divisor).divide(number), number / divisor);
        }

        #[test]
        fn is_exact_for_small_divisors(number in any::<u32>(), divisor in 1u32..5000) {
            prop_assert_eq!(Divider::new(divisor).divide(number), number / divisor);
        }
    }
}
