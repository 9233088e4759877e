//! Queued bytes of a port by flow, for agents that divide a port's rate among flows.
//!
//! A switch has registers, indexed by port and a hash of the flow (X. He et al., J. Cloud Computing 2024: Mercury); the
//! exact table is open addressing with linear probing. Clearing it takes constant time.

use crate::agent::FlowAddress;
use incast_units::Time;

/// The destination of a notification for an entry: the flow of its last data packet, and that packet's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationTarget {
    /// The flow.
    pub flow: FlowAddress,
    /// The priority.
    pub priority: u8,
}

/// One flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// Key.
    pub key: u64,
    /// Queued bytes.
    pub data: u64,
    /// The earliest time of the next notification.
    pub quiet_until: Time,
    /// Generation of the table in which the entry was made; in any other the entry is empty.
    generation: u32,
    /// Number of its queue pairs with queued bytes, where these are counted.
    pub members: u32,
}

impl Entry {
    /// The entry holds nothing that must be kept.
    fn is_idle(&self, now: Time) -> bool {
        self.data == 0 && self.quiet_until <= now
    }
}

/// Entries by key.
#[derive(Clone, Debug)]
pub struct PacketCounts {
    entries: Vec<Entry>,
    /// One for each entry, if they are kept.
    targets: Vec<Option<NotificationTarget>>,
    keeps_targets: bool,
    /// Number of registers, if the table models these: keys are not compared, and flows with one hash are one flow.
    registers: Option<usize>,
    generation: u32,
    /// Entries of this generation.
    used: usize,
    /// Buffer for rebuilding, kept to avoid allocation.
    spare: (Vec<Entry>, Vec<Option<NotificationTarget>>),
}

/// 2^64 over the golden ratio (Knuth, TAOCP 3, section 6.4: multiplicative hashing).
fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Entries of a small table.
const LEAST: usize = 16;

impl PacketCounts {
    /// An exact table; memory is allocated with the first entry. `keeps_targets`: it keeps the destination of
    /// notifications.
    pub fn exact(keeps_targets: bool) -> Self {
        Self {
            entries: Vec::new(),
            targets: Vec::new(),
            keeps_targets,
            registers: None,
            generation: 1,
            used: 0,
            spare: (Vec::new(), Vec::new()),
        }
    }

    /// A table of registers, in which flows with one hash are one. Memory is allocated with the first entry, too.
    pub fn merging(registers: usize, keeps_targets: bool) -> Self {
        Self { registers: Some(registers.max(1)), ..Self::exact(keeps_targets) }
    }

    /// The first slot to probe for a key.
    #[inline]
    fn home(&self, key: u64) -> usize {
        // The high half of the hash times the number of entries, over 2^32: with a power of two, the highest bits.
        ((hash(key) >> 32).wrapping_mul(self.entries.len() as u64) >> 32) as usize
    }

    /// The entry of a key.
    #[inline]
    pub fn find(&self, key: u64) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut index = self.home(key);
        loop {
            let entry = &self.entries[index];
            if entry.generation != self.generation {
                return None;
            }
            if entry.key == key || self.registers.is_some() {
                return Some(index);
            }
            index = self.after(index);
        }
    }

    #[inline]
    fn after(&self, index: usize) -> usize {
        if index + 1 == self.entries.len() { 0 } else { index + 1 }
    }

    /// The entry of a key, made if absent.
    #[inline]
    pub fn find_or_make(&mut self, key: u64, now: Time) -> usize {
        loop {
            // A quarter of the slots is always free, so that each search ends.
            if !self.entries.is_empty() {
                let mut index = self.home(key);
                let mut idle = None;
                while self.entries[index].generation == self.generation {
                    let entry = &self.entries[index];
                    if entry.key == key || self.registers.is_some() {
                        return index;
                    }
                    if idle.is_none() && entry.is_idle(now) {
                        idle = Some(index);
                    }
                    index = self.after(index);
                }
                if idle.is_some() || self.registers.is_some() || self.used < self.entries.len() / 4 * 3 {
                    self.used += usize::from(idle.is_none());
                    let index = idle.unwrap_or(index);
                    let generation = self.generation;
                    self.entries[index] = Entry { key, generation, ..Entry::default() };
                    if self.keeps_targets {
                        self.targets[index] = None;
                    }
                    return index;
                }
            }
            self.rebuild(now);
        }
    }

    /// Rebuilds the table without idle entries, with twice the size if more than a quarter of the slots are in use.
    #[cold]
    fn rebuild(&mut self, now: Time) {
        let live = |entry: &&Entry| entry.generation == self.generation && !entry.is_idle(now);
        let count = self.entries.iter().filter(live).count();
        let doubles = count * 4 > self.entries.len();
        let length = (self.entries.len() << usize::from(doubles)).max(LEAST);
        let length = self.registers.unwrap_or(length);
        std::mem::swap(&mut self.entries, &mut self.spare.0);
        std::mem::swap(&mut self.targets, &mut self.spare.1);
        self.entries.clear();
        self.entries.resize(length, Entry::default());
        self.targets.clear();
        self.targets.resize(if self.keeps_targets { length } else { 0 }, None);
        let old = std::mem::take(&mut self.spare);
        let generation = std::mem::replace(&mut self.generation, 1);
        self.used = 0;
        for (index, entry) in old.0.iter().enumerate() {
            if entry.generation == generation && !entry.is_idle(now) {
                let made = self.find_or_make(entry.key, now);
                self.entries[made] = Entry { generation: 1, ..*entry };
                if self.keeps_targets {
                    self.targets[made] = old.1[index];
                }
            }
        }
        self.spare = old;
    }

    /// Sets the bytes of all entries to zero, and keeps the times of their next notifications.
    pub fn restart(&mut self) {
        for entry in &mut self.entries {
            (entry.data, entry.members) = (0, 0);
        }
    }

    /// Clears the table.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.entries.fill(Entry::default());
            self.generation = 1;
        }
    }

    /// The entry at a slot.
    pub fn entry(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    /// The entry at a slot, mutable.
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut Entry {
        &mut self.entries[index]
    }

    /// Stores the destination of notifications, if these are kept.
    #[inline]
    pub fn set_target(&mut self, index: usize, target: NotificationTarget) {
        if self.keeps_targets {
            self.targets[index] = Some(target);
        }
    }

    /// The destination of notifications for an entry.
    pub fn target(&self, index: usize) -> Option<NotificationTarget> {
        self.targets.get(index).copied().flatten()
    }

    /// Entries with queued bytes, in table order.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| entry.generation == self.generation && entry.data > 0).map(|(index, _)| index)
    }

    /// Bytes of all entries.
    pub fn total(&self) -> u64 {
        self.waiting().map(|index| self.entries[index].data).sum()
    }

    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Operation {
        Add(u64),
        Take(u64),
        Quiet(u64, u64),
        Wait(u64),
        Clear,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => (0u64..60).prop_map(Operation::Add),
            4 => (0u64..60).prop_map(Operation::Take),
            1 => (0u64..60, 1u64..50).prop_map(|(key, time)| Operation::Quiet(key, time)),
            2 => (0u64..30).prop_map(Operation::Wait),
            1 => Just(Operation::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map(operations in prop::collection::vec(operation(), 1..600)) {
            let mut table = PacketCounts::exact(false);
            let mut model: BTreeMap<u64, (u64, Time)> = BTreeMap::new();
            let mut now = Time::from_ps(1);
            for operation in operations {
                match operation {
                    Operation::Add(key) => {
                        let index = table.find_or_make(key, now);
                        table.at(index).data += key + 1;
                        model.entry(key).or_default().0 += key + 1;
                    }
                    Operation::Take(key) => {
                        if let (Some(index), Some(entry)) = (table.find(key), model.get_mut(&key)) {
                            table.at(index).data = 0;
                            entry.0 = 0;
                        }
                    }
                    Operation::Quiet(key, time) => {
                        let index = table.find_or_make(key, now);
                        table.at(index).quiet_until = now + Time::from_ps(time);
                        model.entry(key).or_default().1 = now + Time::from_ps(time);
                    }
                    Operation::Wait(time) => now += Time::from_ps(time),
                    Operation::Clear => {
                        table.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(table.total(), model.values().map(|(data, _)| data).sum::<u64>());
                for (key, (data, quiet)) in &model {
                    match table.find(*key) {
                        Some(index) => {
                            prop_assert_eq!(table.at(index).data, *data);
                            prop_assert!(table.at(index).quiet_until == *quiet || *quiet <= now);
                        }
                        None => prop_assert!(*data == 0 && *quiet <= now, "{} was lost", key),
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_idle_makes_room_without_more_memory() {
        let mut table = PacketCounts::exact(false);
        for key in 0..10_000u64 {
            let index = table.find_or_make(key, Time::from_ps(key));
            table.at(index).data = 1;
            if let Some(index) = key.checked_sub(4).and_then(|key| table.find(key)) {
                table.at(index).data = 0;
            }
        }
        assert_eq!((table.capacity(), table.total()), (LEAST, 4));
    }

    #[test]
    fn generations_may_run_out() {
        let mut table = PacketCounts::exact(false);
        let index = table.find_or_make(7, Time::ZERO);
        table.at(index).data = 5;
        table.generation = u32::MAX;
        assert_eq!(table.find(7), None);
        let index = table.find_or_make(7, Time::ZERO);
        table.at(index).data = 5;
        table.clear();
        assert_eq!((table.generation, table.find(7), table.total()), (1, None, 0));
    }

    #[test]
    fn one_hash_is_one_flow_where_registers_are_few() {
        let mut table = PacketCounts::merging(2, false);
        for key in 0..50u64 {
            let index = table.find_or_make(key, Time::ZERO);
            table.at(index).data += 10;
        }
        assert_eq!((table.total(), table.capacity(), table.waiting().count()), (500, 2, 2));
    }
}
