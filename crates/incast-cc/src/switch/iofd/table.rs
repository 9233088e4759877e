//! The entries of a switch, by visit: exact and of fixed size, like the tables of switches.

/// A visit: the packets that a switch sends out of one port. See [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Sending host.
    pub source: u32,
    /// Number of the flow there.
    pub sequence: u32,
    /// Ingress port.
    pub ingress: u16,
    /// Number of earlier deflections.
    pub deflections: u8,
    /// Priority on arrival.
    pub priority: u8,
}

impl Visit {
    /// Two rounds of 2^64 over the golden ratio (Knuth, TAOCP 3, section 6.4); the high bits are used.
    fn hash(&self) -> u64 {
        let flow = u64::from(self.source) << 32 | u64::from(self.sequence);
        let rest = u64::from(self.ingress) << 16 | u64::from(self.deflections) << 8 | u64::from(self.priority);
        (flow.wrapping_mul(FACTOR) ^ flow >> 29 ^ rest).wrapping_mul(FACTOR)
    }
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const NONE: u16 = u16::MAX;

/// Entries in slots that do not change, found through an index with open addressing and linear probing.
#[derive(Clone, Debug)]
pub struct DetourTable<E> {
    /// Slots, or [`NONE`]; at least twice as many as entries. Allocated with the first entry.
    index: Vec<u16>,
    places: Vec<Option<(Visit, E)>>,
    free: Vec<u16>,
    most: u16,
    used: usize,
}

impl<E> DetourTable<E> {
    /// A table of at most this many entries, fewer than 65,536.
    pub fn new(most: u16) -> Self {
        Self { index: Vec::new(), places: Vec::new(), free: Vec::new(), most, used: 0 }
    }

    fn home(&self, visit: &Visit) -> usize {
        (visit.hash() >> (64 - self.index.len().trailing_zeros())) as usize
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.index.len() - 1)
    }

    fn visit(&self, place: u16) -> Option<&Visit> {
        self.places.get(usize::from(place))?.as_ref().map(|(visit, _)| visit)
    }

    /// The slot of an entry.
    #[inline]
    pub fn find(&self, visit: &Visit) -> Option<u16> {
        if self.used == 0 {
            return None;
        }
        self.slot(visit).ok().map(|slot| self.index[slot])
    }

    /// The position in the index of an entry, or where it would be inserted.
    fn slot(&self, visit: &Visit) -> Result<usize, usize> {
        let mut slot = self.home(visit);
        loop {
            match self.index[slot] {
                NONE => return Err(slot),
                place if self.visit(place) == Some(visit) => return Ok(slot),
                _ => slot = self.after(slot),
            }
        }
    }

    /// Inserts an entry, replacing an equal one; `None` if the table is full.
    pub fn insert(&mut self, visit: Visit, entry: E) -> Option<u16> {
        if self.index.is_empty() {
            self.index = vec![NONE; (2 * usize::from(self.most)).next_power_of_two()];
        }
        match self.slot(&visit) {
            Ok(slot) => {
                let place = self.index[slot];
                self.places[usize::from(place)] = Some((visit, entry));
                Some(place)
            }
            Err(slot) if self.used < usize::from(self.most) => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.places.push(None);
                    self.places.len() as u16 - 1
                });
                self.places[usize::from(place)] = Some((visit, entry));
                self.index[slot] = place;
                self.used += 1;
                Some(place)
            }
            Err(_) => None,
        }
    }

    /// Removes the entry in a slot, if there is one.
    pub fn remove(&mut self, place: u16) {
        let Some(mut hole) = self.visit(place).copied().and_then(|visit| self.slot(&visit).ok()) else {
            return;
        };
        self.places[usize::from(place)] = None;
        self.free.push(place);
        self.used -= 1;
        // An element behind the hole that is searched for from before it moves into it (Knuth, TAOCP 3, section
        // 6.4, algorithm R).
        let mut slot = hole;
        loop {
            self.index[hole] = NONE;
            loop {
                slot = self.after(slot);
                let Some(visit) = self.visit(self.index[slot]) else { return };
                let (home, mask) = (self.home(visit), self.index.len() - 1);
                if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                    break;
                }
            }
            self.index[hole] = self.index[slot];
            hole = slot;
        }
    }

    /// The entry in a slot.
    pub fn get(&self, place: u16) -> Option<&E> {
        self.places.get(usize::from(place))?.as_ref().map(|(_, entry)| entry)
    }

    /// The entry in a slot, mutable.
    pub fn get_mut(&mut self, place: u16) -> Option<(&Visit, &mut E)> {
        self.places.get_mut(usize::from(place))?.as_mut().map(|(visit, entry)| (&*visit, entry))
    }

    /// Upper bound of slots.
    pub fn places(&self) -> u16 {
        self.places.len() as u16
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn visit(number: u32) -> Visit {
        Visit {
            source: number % 5,
            sequence: number / 5,
            ingress: (number % 3) as u16,
            deflections: (number % 2) as u8,
            priority: 0,
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_that_can_be_full(
            most in 1u16..12,
            steps in proptest::collection::vec((0u32..25, any::<bool>()), 0..400),
        ) {
            let mut table = DetourTable::new(most);
            let mut model: BTreeMap<u32, (u16, usize)> = BTreeMap::new();
            for (step, (number, inserts)) in steps.into_iter().enumerate() {
                if inserts {
                    match table.insert(visit(number), step) {
                        Some(place) => {
                            let before = model.insert(number, (place, step));
                            prop_assert!(before.is_none_or(|(before, _)| before == place));
                        }
                        None => prop_assert!(model.len() == usize::from(most) && !model.contains_key(&number)),
                    }
                } else if let Some((place, _)) = model.remove(&number) {
                    table.remove(place);
                }
                prop_assert_eq!(table.is_empty(), model.is_empty());
                for number in 0..25 {
                    let found = table.find(&visit(number)).map(|place| (place, *table.get(place).expect("an entry")));
                    prop_assert_eq!(found, model.get(&number).copied());
                }
            }
        }
    }
}
