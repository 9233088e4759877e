//! What a sender tells its receiver with a packet of data.

use crate::share::Share;

/// 16 bits that travel with a packet of data, of which the first is set: other protocols have the name of a token there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Of a flow that its receiver may not know.
    Opening {
        /// Its share of the receiver is to be so many times that of others, 1 to 16.
        weight: u8,
        /// Flows of its request that go to this receiver, itself included: its incast degree. At most 1,023 can be told; 0 if it is
        /// not known.
        degree: u16,
    },
    /// What the sender can use of the receiver's link.
    Limit(Share),
}

const GIVEN: u16 = 1 << 15;
const LIMIT: u16 = 1 << 14;
const DEGREE_BITS: u32 = 10;
const MOST_DEGREE: u16 = (1 << DEGREE_BITS) - 1;
const MOST_WEIGHT: u8 = 16;
/// Bits of a share that do not fit.
const DROPPED: u32 = 2;

impl Word {
    /// As a packet carries it; never zero.
    pub fn bits(self) -> u16 {
        GIVEN
            | match self {
                Self::Opening { weight, degree } => {
                    u16::from(weight.clamp(1, MOST_WEIGHT) - 1) << DEGREE_BITS | degree.min(MOST_DEGREE)
                }
                // Rounded up: what is told is a little more than what was meant, by less than 1 in 500.
                Self::Limit(share) => LIMIT | (Share::bits(Some(share)) - 1) >> DROPPED,
            }
    }

    /// What a packet carries, if it is a word.
    pub fn from_bits(bits: u16) -> Option<Self> {
        if bits & GIVEN == 0 {
            return None;
        }
        if bits & LIMIT == 0 {
            let weight = (bits >> DEGREE_BITS & u16::from(MOST_WEIGHT - 1)) as u8 + 1;
            return Some(Self::Opening { weight, degree: bits & MOST_DEGREE });
        }
        Share::from_bits(((bits & (LIMIT - 1)) << DROPPED) + 1).map(Self::Limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_carried() {
        for weight in 1..=16 {
            for degree in [0, 1, 512, 1023] {
                let word = Word::Opening { weight, degree };
                assert_eq!(Word::from_bits(word.bits()), Some(word));
            }
        }
        let most = Word::Opening { weight: 200, degree: 9_999 };
        assert_eq!(Word::from_bits(most.bits()), Some(Word::Opening { weight: 16, degree: 1023 }));
        assert_eq!(Word::from_bits(0x7fff), None);
    }

    #[test]
    fn limits_are_a_little_too_large_at_most() {
        for bits in 1..=u16::MAX {
            let share = Share::from_bits(bits).expect("not zero");
            let Some(Word::Limit(told)) = Word::from_bits(Word::Limit(share).bits()) else {
                panic!("{bits}");
            };
            let ratio = share.parts() / told.parts();
            assert!((1.0..1.002).contains(&ratio), "{bits}: {ratio}");
        }
        assert_eq!(
            Word::from_bits(Word::Limit(Share::of_senders(1)).bits()),
            Some(Word::Limit(Share::of_senders(1)))
        );
    }
}
