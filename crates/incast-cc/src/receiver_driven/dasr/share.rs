//! How much of a receiver's link a flow may use.

use crate::message::AckTag;

/// A share of a receiver's link, as 16 bits of a packet carry it.
///
/// The receivers of Blitz advertise the number of senders (J. Xue et al., poster at SIGCOMM 2018), or a weighted
/// share of the link (patent US 11,190,454). Both are one over some number, which is kept as a floating-point number
/// with 5 bits of exponent and 11 of mantissa: counts are exact up to 4,096, the rest is to 1 in 4,096.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(AckTag);

const MANTISSA: u32 = 11;
/// Bits of the f64 from which counting starts, the number just below 1.
const BELOW_ONE: u64 = (1023 << MANTISSA) - 1;

impl Share {
    /// An equal share for each of so many senders; all of the link if there is none.
    #[inline]
    pub fn of_senders(senders: u32) -> Self {
        Self::one_in(f64::from(senders))
    }

    /// One in `parts` of the link, rounded to the nearest that can be encoded; `parts` counts as at least 1 and below
    /// 2³².
    #[inline]
    pub fn one_in(parts: f64) -> Self {
        let parts = if parts >= 1.0 { parts.min(f64::from(u32::MAX)) } else { 1.0 };
        // The bits of an f64 are sign, 11 bits of exponent with a bias of 1023, and 52 of mantissa.
        let rounded = (parts.to_bits() + (1 << (51 - MANTISSA))) >> (52 - MANTISSA);
        let bits = rounded.saturating_sub(BELOW_ONE).clamp(1, u64::from(u16::MAX)) as u16;
        Self(AckTag::new(bits).unwrap_or(AckTag::MIN))
    }

    /// How many such shares make the link.
    #[inline]
    pub fn parts(self) -> f64 {
        f64::from_bits((u64::from(self.0.get()) + BELOW_ONE) << (52 - MANTISSA))
    }

    /// The same with the number of the epoch that it is of in the first `bits`, which the mantissa then lacks: counts are
    /// exact up to 4,096 / 2^bits.
    #[inline]
    pub fn in_epoch(self, epoch: u8, bits: u32) -> Self {
        let most = (1u32 << (16 - bits)) - 1;
        let above = u32::from(self.0.get()) - 1;
        let to_nearest = 1 << bits >> 1;
        let kept = (((above + to_nearest) >> bits) + 1).min(most);
        let epoch = u32::from(epoch) & ((1 << bits) - 1);
        Self::from_bits((epoch << (16 - bits) | kept) as u16).unwrap_or(self)
    }

    /// The share, and the number of its epoch in the first `bits`.
    #[inline]
    pub fn of_epoch(self, bits: u32) -> (Self, u8) {
        let all = u32::from(self.0.get());
        let kept = all & ((1u32 << (16 - bits)) - 1);
        let share = Self::from_bits(((kept.saturating_sub(1) << bits) + 1) as u16);
        (share.unwrap_or(self), (all >> (16 - bits)) as u8)
    }

    /// How many senders there are, if their shares are equal.
    #[inline]
    pub fn senders(self) -> u32 {
        self.parts().round() as u32
    }

    /// As an acknowledgement carries it.
    #[inline]
    pub fn tag(self) -> AckTag {
        self.0
    }

    /// What an acknowledgement carries.
    #[inline]
    pub fn from_tag(tag: AckTag) -> Self {
        Self(tag)
    }

    /// The share of these bits; zero is none.
    #[inline]
    pub fn from_bits(bits: u16) -> Option<Self> {
        AckTag::new(bits).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_are_exact_up_to_4096() {
        for senders in 1..=4096 {
            assert_eq!(Share::of_senders(senders).parts(), f64::from(senders));
            assert_eq!(Share::of_senders(senders).senders(), senders);
        }
        assert_eq!(Share::of_senders(0), Share::of_senders(1));
        assert_eq!(Share::one_in(f64::NAN), Share::of_senders(1));
        assert_eq!(Some(Share::one_in(f64::INFINITY)), Share::from_bits(u16::MAX));
        assert_eq!(Share::from_bits(0), None);
    }

    proptest! {
        #[test]
        fn shares_are_kept_to_one_in_4096(parts in 1.0..4e9f64) {
            let kept = Share::one_in(parts).parts();
            prop_assert!((kept / parts - 1.0).abs() <= 1.0 / 4096.0, "{}", kept);
        }

        #[test]
        fn an_epoch_takes_bits_of_the_count(parts in 1.0..4e9f64, epoch: u8, bits in 0..=4u32) {
            let (share, number) = Share::one_in(parts).in_epoch(epoch, bits).of_epoch(bits);
            prop_assert_eq!(u32::from(number), u32::from(epoch) % (1 << bits));
            // The largest shares of all have no code, as none may be zero.
            let error = 1.0 / f64::from(4096u32 >> bits) + 1.0 / 2048.0;
            prop_assert!((share.parts() / parts - 1.0).abs() <= error || parts > 3.9e9, "{}", share.parts());
            let exact = f64::from(4096u32 >> bits).min(parts.round());
            prop_assert_eq!(Share::one_in(exact).in_epoch(epoch, bits).of_epoch(bits).0, Share::one_in(exact));
        }

        #[test]
        fn bits_are_kept(bits in 1..=u16::MAX) {
            let share = Share::from_bits(bits);
            prop_assert_eq!(share.map(|share| share.tag().get()), Some(bits));
            prop_assert_eq!(share.map(|share| Share::one_in(share.parts())), share);
        }
    }
}
