//! Flows of a host that take turns, in a line for each priority.
//!
//! The lines are linked lists of slots. Where at most one flow is in a line, as in most hosts, they need no memory beyond
//! the two ends of the line.

use std::iter;

/// Strict priorities.
const PRIORITIES: usize = 8;

/// See the module.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Turns {
    /// Lines that are not empty, one bit for each priority.
    mask: u8,
    /// By priority; meaningless for empty lines.
    lines: [Line; PRIORITIES],
    /// The slot behind one in its line, unless it is the last. Where no flow was ever behind another, it is empty.
    next: Vec<u32>,
}

/// A line that is not empty: its first and its last slot.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    first: u32,
    last: u32,
}

impl Turns {
    /// Lines that are not empty, one bit for each priority.
    #[inline]
    pub fn mask(&self) -> u8 {
        self.mask
    }

    /// A flow joins a line at its end. It must be in none.
    #[inline]
    pub fn push_back(&mut self, slot: u32, priority: u8) {
        let line = self.lines[usize::from(priority)];
        let first = if self.mask & 1 << priority == 0 {
            slot
        } else {
            self.set_next(line.last, slot);
            line.first
        };
        self.mask |= 1 << priority;
        self.lines[usize::from(priority)] = Line { first, last: slot };
    }

    /// A flow goes back to the front of a line.
    #[cold]
    pub fn push_front(&mut self, slot: u32, priority: u8) {
        let line = self.lines[usize::from(priority)];
        let last = if self.mask & 1 << priority == 0 {
            slot
        } else {
            self.set_next(slot, line.first);
            line.last
        };
        self.mask |= 1 << priority;
        self.lines[usize::from(priority)] = Line { first: slot, last };
    }

    /// Takes the first flow of a line.
    #[inline]
    pub fn pop_front(&mut self, priority: u8) -> Option<u32> {
        if self.mask & 1 << priority == 0 {
            return None;
        }
        let line = &mut self.lines[usize::from(priority)];
        let slot = line.first;
        if slot == line.last {
            self.mask &= !(1 << priority);
        } else {
            line.first = self.next[slot as usize];
        }
        Some(slot)
    }

    /// A flow leaves its line; the others keep their order.
    #[cold]
    pub fn remove(&mut self, slot: u32, priority: u8) {
        let others: Vec<u32> = self.slots(priority).filter(|other| *other != slot).collect();
        self.mask &= !(1 << priority);
        others.into_iter().for_each(|other| self.push_back(other, priority));
    }

    /// The flows of a line in order.
    fn slots(&self, priority: u8) -> impl Iterator<Item = u32> {
        let line = self.lines[usize::from(priority)];
        let first = (self.mask & 1 << priority != 0).then_some(line.first);
        iter::successors(first, move |slot| (*slot != line.last).then(|| self.next[*slot as usize]))
    }

    #[inline]
    fn set_next(&mut self, slot: u32, next: u32) {
        if self.next.len() <= slot as usize {
            self.next.resize(slot as usize + 1, 0);
        }
        self.next[slot as usize] = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn lines_are_independent_queues(steps in proptest::collection::vec((0u8..5, 0u32..12, 0u8..8), 0..200)) {
            let mut turns = Turns::default();
            let mut model: [VecDeque<u32>; PRIORITIES] = Default::default();
            for (what, slot, priority) in steps {
                let is_free = model.iter().all(|line| !line.contains(&slot));
                let line = &mut model[usize::from(priority)];
                match what {
                    0 | 1 if is_free => {
                        turns.push_back(slot, priority);
                        line.push_back(slot);
                    }
                    2 if is_free => {
                        turns.push_front(slot, priority);
                        line.push_front(slot);
                    }
                    3 => {
                        turns.remove(slot, priority);
                        line.retain(|other| *other != slot);
                    }
                    _ => prop_assert_eq!(turns.pop_front(priority), line.pop_front()),
                }
                for (priority, line) in (0u8..).zip(&model) {
                    prop_assert_eq!(&turns.slots(priority).collect::<VecDeque<_>>(), line);
                    prop_assert_eq!(turns.mask() & 1 << priority != 0, !line.is_empty());
                }
            }
        }
    }
}
