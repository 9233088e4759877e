//! Tokens: each lets one packet of a flow go, within its lifetime.

use incast_units::Time;
use std::collections::VecDeque;

/// The tokens of a flow, in the order in which they came.
#[derive(Debug, Default)]
pub struct Tokens {
    /// A token may be used before this time.
    expiries: VecDeque<Time>,
}

impl Tokens {
    /// A token came that may be kept for `lifetime`.
    pub fn add(&mut self, now: Time, lifetime: Time) {
        self.expiries.push_back(now.saturating_add(lifetime));
    }

    /// There is a token that has not expired. Drops those before it that have.
    pub fn any(&mut self, now: Time) -> bool {
        while self.expiries.front().is_some_and(|expiry| *expiry <= now) {
            self.expiries.pop_front();
        }
        !self.expiries.is_empty()
    }

    /// Uses the token that came first; [`Self::any`] has just said that there is one.
    pub fn take(&mut self) {
        self.expiries.pop_front();
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
        [(0, 5), (1, 9), (2, 3)].into_iter().for_each(|(now, life)| tokens.add(at(now), at(life)));
        tokens.add(at(3), Time::MAX);
        assert!(tokens.any(at(4)));
        // At 6 the first has expired, the second has not; with it used, the third has, and the last never will.
        assert!(tokens.any(at(6)));
        tokens.take();
        assert!(tokens.any(Time::from_ms(1_000_000)));
        tokens.take();
        assert!(!tokens.any(at(6)));
    }
}
