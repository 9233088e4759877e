//! Which packets of a flow have arrived: for schedulers that request the missing ones by number.

/// A set of packet numbers, and the first one that is not in it.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    /// One bit each.
    words: Vec<u64>,
    count: u64,
    first_missing: u64,
}

impl Arrived {
    /// A packet arrived; false if it had before.
    pub fn insert(&mut self, packet: u64) -> bool {
        let (word, bit) = ((packet / 64) as usize, 1 << (packet % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & bit != 0 {
            return false;
        }
        self.words[word] |= bit;
        self.count += 1;
        if packet == self.first_missing {
            self.first_missing = self.next_missing(packet);
        }
        true
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first packet from `from` on that has not arrived.
    pub fn next_missing(&self, from: u64) -> u64 {
        let from = from.max(self.first_missing);
        self.find(from, |word| !word).unwrap_or_else(|| from.max(self.words.len() as u64 * 64))
    }

    /// The first packet from `from` on that has arrived.
    fn next_arrived(&self, from: u64) -> Option<u64> {
        self.find(from, |word| word)
    }

    /// The first number from `from` on whose bit is set in the words as `of` makes them.
    fn find(&self, from: u64, of: impl Fn(u64) -> u64) -> Option<u64> {
        let first = (from / 64) as usize;
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.words.iter().enumerate().skip(first) {
            let set = of(*word) & mask;
            if set != 0 {
                return Some(index as u64 * 64 + u64::from(set.trailing_zeros()));
            }
            mask = u64::MAX;
        }
        None
    }

    /// The first range of missing packets at or after `from` and below `end`: its first packet and the one after its
    /// last.
    pub fn next_gap(&self, from: u64, end: u64) -> Option<(u64, u64)> {
        let first = self.next_missing(from);
        (first < end).then(|| (first, self.next_arrived(first).map_or(end, |arrived| arrived.min(end))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_set(packets in prop::collection::vec(0u64..300, 0..400), from in 0u64..320, end in 0u64..320) {
            let (mut arrived, mut model) = (Arrived::default(), BTreeSet::new());
            for packet in packets {
                prop_assert_eq!(arrived.insert(packet), model.insert(packet));
            }
            prop_assert_eq!(arrived.count(), model.len() as u64);
            let missing = |from: u64| (from..).find(|packet| !model.contains(packet)).unwrap_or(u64::MAX);
            prop_assert_eq!(arrived.first_missing, missing(0));
            prop_assert_eq!(arrived.next_missing(from), missing(from));
            let first = missing(from);
            let gap = (first < end).then(|| (first, (first..end).find(|it| model.contains(it)).unwrap_or(end)));
            prop_assert_eq!(arrived.next_gap(from, end), gap);
        }
    }
}
