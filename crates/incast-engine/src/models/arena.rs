//! An arena with the interface of the engine's own: each line is a cell that loom watches, and access to a line of a
//! segment that has not been grown (rule R8) is a panic.

use super::primitives::UnsafeCell;
use std::mem::MaybeUninit;

/// Lines of a segment: two chunks, so that threads run out of chunks and exchange them.
pub const SEGMENT: u32 = 4;
/// Segments at most.
const SEGMENTS: usize = 8;

pub struct Arena<T> {
    lines: Vec<UnsafeCell<MaybeUninit<T>>>,
    grown: Vec<UnsafeCell<bool>>,
}

impl<T: Copy> Arena<T> {
    pub fn new(most: usize) -> Self {
        let segments = most.min(SEGMENTS);
        Self {
            lines: (0..segments * SEGMENT as usize).map(|_| UnsafeCell::new(MaybeUninit::zeroed())).collect(),
            grown: (0..segments).map(|_| UnsafeCell::new(false)).collect(),
        }
    }

    pub fn grow(&self, segment: usize, what: &str) {
        assert!(segment < self.grown.len(), "more than {} segments of {what}", self.grown.len());
        // SAFETY: R8: loom reports a thread that reads this without synchronisation.
        self.grown[segment].with_mut(|grown| unsafe { *grown = true });
    }

    fn check(&self, line: u32) {
        // SAFETY: R8, as above.
        let grown = self.grown[(line / SEGMENT) as usize].with(|grown| unsafe { *grown });
        assert!(grown, "line {line} is not in a grown segment");
    }

    pub fn with<R>(&self, line: u32, access: impl FnOnce(*const T) -> R) -> R {
        self.check(line);
        self.lines[line as usize].with(|value| access(value.cast()))
    }

    pub fn from(&self, first: u32) -> Lines<'_, T> {
        Lines { arena: self, first }
    }

    pub fn with_mut<R>(&self, line: u32, access: impl FnOnce(*mut T) -> R) -> R {
        self.check(line);
        self.lines[line as usize].with_mut(|value| access(value.cast()))
    }

    pub fn address(&self, line: u32) -> *const T {
        self.lines.as_ptr().wrapping_add(line as usize).cast()
    }
}

#[derive(Clone, Copy)]
pub struct Lines<'a, T> {
    arena: &'a Arena<T>,
    first: u32,
}

impl<T: Copy> Lines<'_, T> {
    pub fn with<R>(self, offset: usize, access: impl FnOnce(*const T) -> R) -> R {
        self.arena.with(self.first + offset as u32, access)
    }
}
