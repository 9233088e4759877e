//! Grants: what the receiver of a flow has allowed.

use super::tokens::Tokens;
use incast_cc::share::Share;
use incast_units::Time;

/// See the module. Flows that are not receiver-driven have unlimited credit.
#[derive(Debug)]
pub struct Grants {
    /// Data below this byte may be sent.
    pub credit: u64,
    /// Where the receiver hands out tokens: data beyond the credit, or sent again, needs one for each packet.
    pub tokens: Option<Box<Tokens>>,
    /// The flow's share of the receiver, as last advertised.
    pub share: Option<Share>,
    /// Priority of what the flow sends: that of its class, unless the receiver assigns another one.
    pub priority: u8,
}

impl Grants {
    /// Nothing is granted yet.
    pub fn new(uses_tokens: bool, priority: u8) -> Self {
        Self { credit: 0, tokens: uses_tokens.then(Box::default), share: None, priority }
    }

    /// There is a token.
    #[inline]
    pub fn has_token(&mut self, now: Time) -> bool {
        self.tokens.as_mut().is_some_and(|tokens| tokens.any(now))
    }

    /// A token that may be kept for `lifetime`, perhaps for a certain packet.
    pub fn add_token(&mut self, now: Time, lifetime: Time, wanted: Option<u32>) {
        if let Some(tokens) = &mut self.tokens {
            tokens.add(now, lifetime, wanted);
        }
    }
}
