//! SACK blocks of an acknowledgement (RFC 2018, section 4), in packets.
//!
//! The first block is the contiguous run of what has arrived around the packet that caused the acknowledgement. The second
//! is the run before that one: the newest of the others, unless a retransmission has come between. So what a lost
//! acknowledgement would have said is said again by those after it. Not modelled: a third block, and blocks behind a
//! packet that advances the cumulative acknowledgement.

use std::ops::Range;

/// See the module. A block reaches no further than [`Self::MOST`] packets either way from the packet that caused it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Packets of the first block before the one that caused the acknowledgement.
    pub before: u8,
    /// Packets of the first block behind it.
    pub after: u8,
    /// Missing packets between the second block and the first.
    pub gap: u8,
    /// Packets of the second block; 0 if there is none.
    pub length: u8,
}

impl Blocks {
    /// Most packets of each part.
    pub const MOST: u32 = 255;

    /// Packets of the first block, around the packet at `position`.
    pub fn first(self, position: u32) -> Range<u32> {
        position.saturating_sub(self.before.into())..position.saturating_add(self.after.into()).saturating_add(1)
    }

    /// Packets of the second block; empty if there is none.
    pub fn second(self, position: u32) -> Range<u32> {
        let end = self.first(position).start.saturating_sub(self.gap.into());
        end.saturating_sub(self.length.into())..end
    }

    /// Bytes of the option: two of padding, kind and length, and eight for each block.
    pub fn option_bytes(self) -> u32 {
        if self.length == 0 { 4 + 8 } else { 4 + 2 * 8 }
    }
}
