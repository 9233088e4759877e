//! What a sender writes into the tag of a data packet, for its receiver.

use super::share::Share;
use crate::message::{AckTag, DataTag};

/// The tag of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderTag {
    /// Of a flow whose receiver has not answered yet.
    Opening {
        /// Its share of the receiver is to be so many times that of others, 1 to 16.
        weight: u8,
        /// Flows of its request that go to this receiver, itself included: its incast degree. At most 1,023 can be
        /// encoded; 0 if it is not known.
        degree: u16,
    },
    /// What the sender can use of the receiver's link.
    Limit(Share),
}

const LIMIT: u16 = 1 << 14;
const DEGREE_BITS: u32 = 10;
const MOST_DEGREE: u16 = (1 << DEGREE_BITS) - 1;
const MOST_WEIGHT: u8 = 16;
/// Bits of a share that do not fit.
const DROPPED: u32 = 2;

impl SenderTag {
    /// As a packet carries it.
    pub fn tag(self) -> DataTag {
        DataTag::new(match self {
            Self::Opening { weight, degree } => {
                u16::from(weight.clamp(1, MOST_WEIGHT) - 1) << DEGREE_BITS | degree.min(MOST_DEGREE)
            }
            // Rounded up: the limit that arrives is larger by less than 1 in 500.
            Self::Limit(share) => LIMIT | (share.tag().get() - 1) >> DROPPED,
        })
    }

    /// What a packet carries.
    pub fn from_tag(tag: DataTag) -> Self {
        let bits = tag.get();
        if bits & LIMIT == 0 {
            let weight = (bits >> DEGREE_BITS & u16::from(MOST_WEIGHT - 1)) as u8 + 1;
            return Self::Opening { weight, degree: bits & MOST_DEGREE };
        }
        let share = AckTag::MIN.saturating_add((bits & (LIMIT - 1)) << DROPPED);
        Self::Limit(Share::from_tag(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_carried() {
        for weight in 1..=16 {
            for degree in [0, 1, 512, 1023] {
                let tag = SenderTag::Opening { weight, degree };
                assert_eq!(SenderTag::from_tag(tag.tag()), tag);
            }
        }
        let most = SenderTag::Opening { weight: 200, degree: 9_999 };
        assert_eq!(SenderTag::from_tag(most.tag()), SenderTag::Opening { weight: 16, degree: 1023 });
    }

    #[test]
    fn limits_are_a_little_too_large_at_most() {
        for bits in 1..=u16::MAX {
            let share = Share::from_bits(bits).expect("not zero");
            let SenderTag::Limit(told) = SenderTag::from_tag(SenderTag::Limit(share).tag()) else {
                panic!("{bits}");
            };
            let ratio = share.parts() / told.parts();
            assert!((1.0..1.002).contains(&ratio), "{bits}: {ratio}");
        }
        assert_eq!(
            SenderTag::from_tag(SenderTag::Limit(Share::of_senders(1)).tag()),
            SenderTag::Limit(Share::of_senders(1))
        );
    }
}
