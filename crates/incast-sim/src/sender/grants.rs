//! Grants: what the receiver of a flow has allowed.

use super::tokens::Tokens;
use crate::settings::Class;
use incast_units::Time;

/// See the module. Flows that are not receiver-driven have unlimited credit.
#[derive(Debug)]
pub struct Grants {
    /// Data below this byte may be sent.
    pub credit: u64,
    /// Where the receiver hands out tokens: data beyond the credit, or sent again, needs one for each packet.
    pub tokens: Option<Box<Tokens>>,
    /// Priority of what the flow sends: that of its class, unless the receiver assigns another one.
    pub priority: u8,
}

impl Grants {
    /// The grants of a flow whose receiver has not answered yet.
    pub fn new(unscheduled: u64, class: &Class) -> Self {
        let tokens = class.uses_tokens.then(|| Box::new(Tokens::new(class.transport.token_restarts)));
        Self { credit: unscheduled, tokens, priority: class.priority }
    }

    /// Data below `position` may be sent. Credit can be overtaken by later credit, and is never taken back.
    #[inline]
    pub fn add_credit(&mut self, position: u64) {
        self.credit = self.credit.max(position);
    }

    /// Sets the priority of data from now on, if the receiver assigned one.
    #[inline]
    pub fn assign(&mut self, priority: Option<u8>) {
        if let Some(priority) = priority {
            self.priority = priority;
        }
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

/// No packet is named.
const NONE: u32 = u32::MAX;

/// The packet of `mtu` payload bytes that has this byte.
#[inline]
pub fn packet_at(position: u64, mtu: u32) -> u32 {
    (position / u64::from(mtu)).min(u64::from(NONE - 1)) as u32
}

/// The packets that have these bytes: the first one, and how many.
#[inline]
pub fn packets_at(position: u64, bytes: u64, mtu: u32) -> (u32, u32) {
    let first = packet_at(position, mtu);
    let end = position.saturating_add(bytes).div_ceil(u64::from(mtu)).min(u64::from(NONE)) as u32;
    (first, end.saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_packets_that_hold_them() {
        let packets = |position, bytes| packets_at(position, bytes, 1000);
        assert_eq!(packets(0, 1000), (0, 1));
        assert_eq!(packets(2_500, 1), (2, 1));
        assert_eq!(packets(2_500, 600), (2, 2));
        assert_eq!(packets(2_000, 0), (2, 0));
        assert_eq!(packets(0, u64::MAX), (0, u32::MAX));
    }
}
