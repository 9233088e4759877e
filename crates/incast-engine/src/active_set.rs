//! Which domains have something to do in a window.

/// Sets are as long as a multiple of this, 128 bytes, so that those of two threads do not share a cache line; see
/// [`super::sync::CachePadded`].
const WORDS: usize = 16;

/// A set of domains, with a summary so that an empty one is skipped 4,096 domains at a time.
#[derive(Clone, Debug)]
pub(super) struct ActiveSet {
    words: Vec<u64>,
    summary: Vec<u64>,
    any: bool,
}

impl ActiveSet {
    pub fn new(domains: usize) -> Self {
        let words = domains.div_ceil(64).next_multiple_of(WORDS);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64).next_multiple_of(WORDS)], any: false }
    }

    #[inline]
    pub fn insert(&mut self, domain: u32) {
        let word = domain as usize / 64;
        self.words[word] |= 1 << (domain % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.any = true;
    }

    pub fn is_empty(&self) -> bool {
        !self.any
    }

    pub fn clear(&mut self) {
        if !self.any {
            return;
        }
        for (index, summary) in self.summary.iter_mut().enumerate() {
            while *summary != 0 {
                self.words[index * 64 + summary.trailing_zeros() as usize] = 0;
                *summary &= *summary - 1;
            }
        }
        self.any = false;
    }
}

/// Collects the members of any of `sets` that lie in `from..to`, ascending.
pub(super) fn collect(sets: &[&ActiveSet], from: u32, to: u32, into: &mut Vec<u32>) {
    into.clear();
    if from >= to {
        return;
    }
    let (first, last) = (from as usize / 64, (to as usize - 1) / 64);
    for block in first / 64..=last / 64 {
        let mut summary = sets.iter().filter(|set| set.any).fold(0, |acc, set| acc | set.summary[block]);
        while summary != 0 {
            let index = block * 64 + summary.trailing_zeros() as usize;
            summary &= summary - 1;
            if index < first || index > last {
                continue;
            }
            let mut word = sets.iter().fold(0, |acc, set| acc | set.words[index]);
            if index == first {
                word &= u64::MAX << (from % 64);
            }
            if index == last {
                word &= u64::MAX >> (63 - (to - 1) % 64);
            }
            while word != 0 {
                into.push((index * 64) as u32 + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn is_the_union_within_the_range(
            first in proptest::collection::btree_set(0u32..10_000, 0..40),
            second in proptest::collection::btree_set(0u32..10_000, 0..40),
            bounds in (0u32..10_000, 0u32..10_001),
        ) {
            let make = |members: &BTreeSet<u32>| {
                let mut set = ActiveSet::new(10_000);
                members.iter().for_each(|domain| set.insert(*domain));
                set
            };
            let (mut a, b) = (make(&first), make(&second));
            let mut found = Vec::new();
            collect(&[&a, &b], bounds.0, bounds.1, &mut found);
            let expected: Vec<u32> =
                first.union(&second).copied().filter(|d| *d >= bounds.0 && *d < bounds.1).collect();
            prop_assert_eq!(&found, &expected);
            a.clear();
            collect(&[&a], 0, 10_000, &mut found);
            prop_assert!(found.is_empty() && a.is_empty());
        }
    }
}
