//! Tokens: each permits one packet of a flow, within its lifetime.

use incast_cc::message::DataTag;
use incast_units::Time;
use std::collections::VecDeque;

/// The tokens of a flow.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Tokens that may be used before a time, and which packets they are for.
    expiring: VecDeque<(Time, Option<DataTag>)>,
    /// Tokens that never expire.
    lasting: u64,
    /// How many of those were given by number.
    pulled: u64,
    /// Packets whose headers came back.
    pub returned: u64,
}

impl Tokens {
    /// A token came that may be kept for `lifetime`.
    pub fn add(&mut self, now: Time, lifetime: Time, wanted: Option<u32>) {
        match now.saturating_add(lifetime) {
            Time::MAX => self.lasting += 1,
            expiry => {
                self.expiring.push_back((expiry, wanted.map(|packet| DataTag::of_token(packet.into()))))
            }
        }
    }

    /// The receiver has given `number` tokens in all.
    #[inline]
    pub fn pull(&mut self, number: u64) {
        self.lasting += number.saturating_sub(self.pulled);
        self.pulled = self.pulled.max(number);
    }

    /// How many tokens were given by number.
    pub fn pulled(&self) -> u64 {
        self.pulled
    }

    /// There is a token that has not expired. Drops those before it that have.
    #[inline]
    pub fn any(&mut self, now: Time) -> bool {
        if self.expiring.is_empty() { self.lasting > 0 } else { self.any_fresh(now) }
    }

    #[inline(never)] // rare: kept out of the path of packets
    fn any_fresh(&mut self, now: Time) -> bool {
        while self.expiring.front().is_some_and(|(expiry, _)| *expiry <= now) {
            self.expiring.pop_front();
        }
        self.lasting > 0 || !self.expiring.is_empty()
    }

    /// Uses a token, one that expires first, and returns its tag. [`Self::any`] must have returned true.
    #[inline]
    pub fn take(&mut self) -> Option<DataTag> {
        let Some((_, name)) = self.expiring.pop_front() else {
            self.lasting = self.lasting.saturating_sub(1);
            return None;
        };
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_expire() {
        let at = Time::from_us;
        let mut tokens = Tokens::default();
        assert!(!tokens.any(at(0)));
        [(0, 5), (1, 9), (2, 3)].into_iter().for_each(|(now, life)| tokens.add(at(now), at(life), None));
        tokens.add(at(3), Time::MAX, None);
        assert!(tokens.any(at(4)));
        // At 6 the first has expired, the second has not; with it used, the third has, and the last never will.
        assert!(tokens.any(at(6)));
        tokens.take();
        assert!(tokens.any(Time::from_ms(1_000_000)));
        tokens.take();
        assert!(!tokens.any(at(6)));
    }

    #[test]
    fn a_later_number_makes_up_for_a_lost_one() {
        let mut tokens = Tokens::default();
        [1, 4, 2, 4].into_iter().for_each(|number| tokens.pull(number));
        for left in (0..4).rev() {
            assert!(tokens.any(Time::ZERO));
            tokens.take();
            assert_eq!(tokens.any(Time::ZERO), left > 0);
        }
    }
}
