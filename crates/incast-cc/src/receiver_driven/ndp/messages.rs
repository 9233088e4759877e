//! The messages of the receiver half.

use crate::message::{self, Body};

/// A control packet from the receiver to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// One more packet may be sent.
    Pull {
        /// How many PULLs the flow has received with this one.
        number: u64,
    },
    /// The packet at this position was trimmed.
    Nack {
        /// Its first byte.
        position: u64,
    },
}

const PULL: u8 = 0;
const NACK: u8 = 1;

impl message::Message for Message {
    #[inline]
    fn encode(self) -> Body {
        let (code, value) = match self {
            Self::Pull { number } => (PULL, number),
            Self::Nack { position } => (NACK, position),
        };
        Body { code, option: 0, values: [value, 0] }
    }
    #[inline]
    fn decode(body: &Body) -> Option<Self> {
        match body.code {
            PULL => Some(Self::Pull { number: body.values[0] }),
            NACK => Some(Self::Nack { position: body.values[0] }),
            _ => None,
        }
    }
}
