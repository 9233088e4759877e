//! Where the state of each flow of a receiver is: flows have handles, which may be any numbers, and places, which are
//! used again.

use std::ops::{Index, IndexMut};

/// States by place. A place keeps the state of a flow that has ended until another flow takes it.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    /// By handle.
    places: Vec<u32>,
    states: Vec<T>,
    /// Places whose flows have ended.
    free: Vec<u32>,
}

/// No place: the flow is not in progress.
const NONE: u32 = u32::MAX;

impl<T> Slots<T> {
    /// Without a flow.
    pub fn new() -> Self {
        Self { places: Vec::new(), states: Vec::new(), free: Vec::new() }
    }

    /// The place of a flow that is in progress.
    #[inline]
    pub fn place(&self, handle: u32) -> Option<usize> {
        let place = self.places.get(handle as usize).copied().filter(|place| *place != NONE);
        place.map(|place| place as usize)
    }

    /// Gives a flow a place.
    pub fn insert(&mut self, handle: u32, state: T) -> usize {
        let place = self.free.pop().map_or(self.states.len(), |place| place as usize);
        match self.states.get_mut(place) {
            Some(free) => *free = state,
            None => self.states.push(state),
        }
        let handle = handle as usize;
        if handle >= self.places.len() {
            self.places.resize(handle + 1, NONE);
        }
        self.places[handle] = place as u32;
        place
    }

    /// Frees the place of a flow that has ended.
    pub fn free(&mut self, handle: u32, place: usize) {
        self.places[handle as usize] = NONE;
        self.free.push(place as u32);
    }

    /// Places that were ever taken.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// The states at all of them, of flows that have ended too.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.states.iter()
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        &self.states[place]
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.states[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_handles_need_not_be_close() {
        let mut slots = Slots::new();
        assert_eq!((slots.insert(7, 'a'), slots.insert(1_000, 'b')), (0, 1));
        assert_eq!((slots.place(7), slots.place(8), slots.place(2_000)), (Some(0), None, None));
        slots.free(7, 0);
        assert_eq!((slots.place(7), slots.place(1_000)), (None, Some(1)));
        assert_eq!((slots.insert(3, 'c'), slots[0], slots.len()), (0, 'c', 2));
    }
}
