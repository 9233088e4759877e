//! Messages between the two halves of a receiver-driven protocol, and how packets carry them.
//!
//! | from | in | type |
//! |---|---|---|
//! | receiver | a control packet of its own | [`Message`] |
//! | receiver | acknowledgements | [`AckTag`] |
//! | sender | a control packet of its own | [`Signal`] |
//! | sender | data packets | [`DataTag`] |
//!
//! Each protocol has its own types for these. Hosts carry them without reading them. What a message makes the sender's
//! transport do is an [`Instruction`]. A protocol that needs nothing else sends instructions as its messages.

use incast_units::Time;
use std::{convert::Infallible, num::NonZeroU16};

/// The body of a control packet, as a message fills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Which message of the protocol it is.
    pub code: u8,
    /// A small number.
    pub option: u8,
    /// Two large ones.
    pub values: [u64; 2],
}

/// What the receiver half of a protocol sends to the sender half of a flow.
pub trait Message: Copy {
    /// As a control packet carries it.
    fn encode(self) -> Body;
    /// What a control packet carries; `None` if it is no message of this protocol.
    fn decode(body: &Body) -> Option<Self>;
}

/// What the sender half of a flow sends to the receiver half in a packet without payload. The receiver of a flow that
/// is complete answers it with the acknowledgement of the whole flow.
pub trait Signal: Copy {
    /// As a packet carries it.
    fn code(self) -> u8;
    /// What a packet carries; `None` if it is no signal of this protocol.
    fn from_code(code: u8) -> Option<Self>;
}

/// For protocols without signals.
impl Signal for Infallible {
    fn code(self) -> u8 {
        match self {}
    }
    fn from_code(_code: u8) -> Option<Self> {
        None
    }
}

/// What the transport of a sender does on a message of the receiver. Bytes count payload from the start of the flow.
///
/// A `priority` is that of all data that the sender sends for the flow from then on; `None` changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Data below `position` may be sent. Credit is never taken back.
    Credit {
        /// The first byte that is not allowed.
        position: u64,
        /// See above.
        priority: Option<u8>,
    },
    /// One packet may be sent: `wanted`, if given, else the next one. Lost packets go before new ones.
    Token {
        /// First byte of the requested packet. If it was never sent, the next packet takes its place.
        wanted: Option<u64>,
        /// How long the sender may keep the token after it arrives; [`Time::MAX`] for ever.
        lifetime: Time,
        /// See above.
        priority: Option<u8>,
    },
    /// The number of tokens since the start of the flow. A later number makes up for a message that was lost.
    Tokens {
        /// How many packets may have been sent on tokens.
        in_all: u64,
    },
    /// Of these bytes, those that are in flight are lost. They are sent again before new data. With tokens they need
    /// one.
    Resend {
        /// First byte.
        position: u64,
        /// How many.
        bytes: u64,
        /// See above.
        priority: Option<u8>,
    },
}

const CREDIT: u8 = 0;
const TOKEN: u8 = 1;
const TOKENS: u8 = 2;
const RESEND: u8 = 3;

/// No packet is named.
const NONE: u64 = u64::MAX;

impl Message for Instruction {
    #[inline]
    fn encode(self) -> Body {
        let option = |priority: Option<u8>| priority.map_or(0, |priority| priority + 1);
        match self {
            Self::Credit { position, priority } => {
                Body { code: CREDIT, option: option(priority), values: [position, 0] }
            }
            Self::Token { wanted, lifetime, priority } => {
                Body { code: TOKEN, option: option(priority), values: [wanted.unwrap_or(NONE), lifetime.ps()] }
            }
            Self::Tokens { in_all } => Body { code: TOKENS, option: 0, values: [in_all, 0] },
            Self::Resend { position, bytes, priority } => {
                Body { code: RESEND, option: option(priority), values: [position, bytes] }
            }
        }
    }

    #[inline]
    fn decode(body: &Body) -> Option<Self> {
        let priority = body.option.checked_sub(1);
        let [first, second] = body.values;
        Some(match body.code {
            CREDIT => Self::Credit { position: first, priority },
            TOKEN => {
                let wanted = (first != NONE).then_some(first);
                Self::Token { wanted, lifetime: Time::from_ps(second), priority }
            }
            TOKENS => Self::Tokens { in_all: first },
            RESEND => Self::Resend { position: first, bytes: second, priority },
            _ => return None,
        })
    }
}

/// 15 bits that a data packet carries from the sender half to the receiver half: the protocol's own, or the token that
/// the packet was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataTag(u16);

impl DataTag {
    const GIVEN: u16 = 1 << 15;

    /// With the lower 15 bits of `bits`.
    pub const fn new(bits: u16) -> Self {
        Self(bits | Self::GIVEN)
    }

    /// Of a packet that is sent on a token for `packet`, which may be another one.
    pub fn of_token(packet: u64) -> Self {
        Self::new(packet as u16)
    }

    /// The 15 bits.
    pub const fn get(self) -> u16 {
        self.0 & !Self::GIVEN
    }

    /// As a packet carries it; never zero.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// What a packet carries, if it is a tag.
    pub fn from_bits(bits: u16) -> Option<Self> {
        (bits & Self::GIVEN != 0).then_some(Self(bits))
    }
}

/// 16 bits that an acknowledgement carries from the receiver half to the sender half.
pub type AckTag = NonZeroU16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_carried_whole() {
        let mut sent = vec![Instruction::Tokens { in_all: 1 << 40 }];
        for priority in [None, Some(0), Some(7)] {
            sent.extend([
                Instruction::Credit { position: 0, priority },
                Instruction::Credit { position: u64::MAX, priority },
                Instruction::Token { wanted: None, lifetime: Time::MAX, priority },
                Instruction::Token { wanted: Some(9), lifetime: Time::from_us(3), priority },
                Instruction::Resend { position: 5, bytes: 1 << 40, priority },
            ]);
        }
        for instruction in sent {
            assert_eq!(Instruction::decode(&instruction.encode()), Some(instruction));
        }
        assert_eq!(Instruction::decode(&Body { code: 99, ..Body::default() }), None);
    }

    #[test]
    fn tags_are_never_zero() {
        assert_eq!((DataTag::new(0).get(), DataTag::from_bits(DataTag::new(0).bits())), (0, Some(DataTag::new(0))));
        assert_eq!(DataTag::from_bits(0x7fff), None);
        assert_eq!(DataTag::of_token(1 << 15 | 3), DataTag::of_token(3));
    }
}
