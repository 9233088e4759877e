//! Strict priorities of which each has several virtual channels, served in round robin.

use super::{Discipline, Heads};

/// See the module.
#[derive(Debug)]
pub struct ChannelRotation {
    /// Channels of each priority.
    count: u8,
    /// By port: the queue that was served last.
    last: Vec<u8>,
}

impl ChannelRotation {
    pub fn new(count: u8, ports: usize) -> Self {
        Self { count, last: vec![0; ports] }
    }
}

impl Discipline for ChannelRotation {
    fn next(&mut self, allowed: u8, heads: Heads<'_>) -> u8 {
        let highest = allowed.trailing_zeros() as u8;
        let (first, last) = (highest - highest % self.count, &mut self.last[heads.port]);
        let group = allowed & ((1u16 << (first + self.count)) - 1) as u8;
        let after = group & !((2u16 << *last) - 1) as u8;
        *last = if after == 0 { highest } else { after.trailing_zeros() as u8 };
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::queue::Pool;

    #[test]
    fn channels_alternate_and_priorities_are_strict() {
        let mut scheduler = ChannelRotation::new(2, 4);
        let pool = Pool::default();
        let mut next =
            |allowed| scheduler.next(allowed, Heads { queues: &[], pool: &pool, port: 1, ports: 4 });
        let turns: Vec<u8> = (0..4).map(|_| next(0b1111_1100)).collect();
        assert_eq!(turns, [2, 3, 2, 3]);
        assert_eq!((next(0b1000), next(0b1000)), (3, 3));
        assert_eq!((next(0b1110), next(0b1111)), (1, 0));
        assert_eq!((next(0b1100_0000), next(0b1100_0000)), (6, 7));
    }
}
