//! Tokens: each permits one packet of a flow, within its lifetime.

use incast_cc::message::DataTag;
use incast_units::Time;
use std::collections::VecDeque;

/// The tokens of a flow.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Tokens that expire: when they came, for how long they may be kept, and which packets they are for.
    expiring: VecDeque<(Time, Time, Option<DataTag>)>,
    /// With [`incast_cc::law::Transport::token_restarts`]: when the flow last sent.
    restarts: Option<Time>,
    /// Tokens that never expire.
    lasting: u64,
    /// How many of those were given by number.
    pulled: u64,
    /// Packets whose headers came back.
    pub returned: u64,
}

impl Tokens {
    /// None yet; `restarts` as in [`incast_cc::law::Transport::token_restarts`].
    pub fn new(restarts: bool) -> Self {
        Self { restarts: restarts.then_some(Time::ZERO), ..Self::default() }
    }

    /// A token came that may be kept for `lifetime`.
    pub fn add(&mut self, now: Time, lifetime: Time, wanted: Option<u32>) {
        if lifetime == Time::MAX {
            self.lasting += 1;
        } else {
            self.expiring.push_back((now, lifetime, wanted.map(|packet| DataTag::of_token(packet.into()))));
        }
    }

    /// A packet of the flow is sent, on a token or without.
    #[inline]
    pub fn on_sent(&mut self, now: Time) {
        if let Some(last) = &mut self.restarts {
            *last = now;
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

    #[inline(never)]
    fn any_fresh(&mut self, now: Time) -> bool {
        let sent = self.restarts.unwrap_or(Time::ZERO);
        let is_over = |(came, life, _): &(Time, Time, _)| sent.max(*came).saturating_add(*life) <= now;
        while self.expiring.front().is_some_and(is_over) {
            self.expiring.pop_front();
        }
        self.lasting > 0 || !self.expiring.is_empty()
    }

    /// Uses a token, one that expires first, and returns its tag. [`Self::any`] must have returned true.
    #[inline]
    pub fn take(&mut self) -> Option<DataTag> {
        let Some((.., name)) = self.expiring.pop_front() else {
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
    fn or_they_last_while_their_flow_sends() {
        let at = Time::from_us;
        let mut tokens = Tokens::new(true);
        (0..9).for_each(|number| tokens.add(at(0), at(2), Some(number)));
        for now in 1..5 {
            assert!(tokens.any(at(now)));
            tokens.take();
            tokens.on_sent(at(now));
        }
        assert!(tokens.any(at(5)) && !tokens.any(at(6)), "all of them expire together");
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
