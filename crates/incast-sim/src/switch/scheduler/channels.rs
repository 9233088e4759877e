//! Strict priorities of which each has several virtual channels, served in round robin.

use super::{Discipline, Head};

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
    fn next(&mut self, port: usize, allowed: u8, _head: impl Fn(u8) -> Head) -> u8 {
        let highest = allowed.trailing_zeros() as u8;
        let (first, last) = (highest - highest % self.count, &mut self.last[port]);
        let group = allowed & ((1u16 << (first + self.count)) - 1) as u8;
        let after = group & !((2u16 << *last) - 1) as u8;
        *last = if after == 0 { highest } else { after.trailing_zeros() as u8 };
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_alternate_and_priorities_are_strict() {
        let mut scheduler = ChannelRotation::new(2, 4);
        let mut next = |allowed| scheduler.next(1, allowed, |_| unreachable!("sizes do not matter"));
        let turns: Vec<u8> = (0..4).map(|_| next(0b1111_1100)).collect();
        assert_eq!(turns, [2, 3, 2, 3]);
        assert_eq!((next(0b1000), next(0b1000)), (3, 3));
        assert_eq!((next(0b1110), next(0b1111)), (1, 0));
        assert_eq!((next(0b1100_0000), next(0b1100_0000)), (6, 7));
    }
}
