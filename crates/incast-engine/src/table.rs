//! From (sending host, flow number) to a receiver's own index.

use crate::random::mix;

/// A hash table with open addressing and linear probing; entries are never removed.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    entries: Vec<(u64, u32)>,
    used: usize,
}

const EMPTY: u32 = u32::MAX;

fn key(source: u32, sequence: u32) -> u64 {
    u64::from(source) << 32 | u64::from(sequence)
}

impl FlowTable {
    fn place(&self, key: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut place = mix(key) as usize & mask;
        while self.entries[place].1 != EMPTY && self.entries[place].0 != key {
            place = (place + 1) & mask;
        }
        place
    }

    /// The index of a flow, if it is known.
    #[inline]
    pub fn find(&self, source: u32, sequence: u32) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let index = self.entries[self.place(key(source, sequence))].1;
        (index != EMPTY).then_some(index)
    }

    /// Sets the index of a flow.
    pub fn set(&mut self, source: u32, sequence: u32, index: u32) {
        if (self.used + 1) * 4 > self.entries.len() * 3 {
            let larger = (self.entries.len() * 2).max(2);
            let old = std::mem::replace(&mut self.entries, vec![(0, EMPTY); larger]);
            for entry in old.into_iter().filter(|entry| entry.1 != EMPTY) {
                let place = self.place(entry.0);
                self.entries[place] = entry;
            }
        }
        let place = self.place(key(source, sequence));
        self.used += usize::from(self.entries[place].1 == EMPTY);
        self.entries[place] = (key(source, sequence), index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn is_a_map(operations in proptest::collection::vec((0u32..20, 0u32..20, 0u32..1000), 0..300)) {
            let mut table = FlowTable::default();
            let mut model = BTreeMap::new();
            for (source, sequence, index) in operations {
                prop_assert_eq!(table.find(source, sequence), model.get(&(source, sequence)).copied());
                table.set(source, sequence, index);
                model.insert((source, sequence), index);
            }
            for ((source, sequence), index) in model {
                prop_assert_eq!(table.find(source, sequence), Some(index));
            }
        }
    }
}
