//! View of control packets: a few numbers, whose meaning the mechanism defines that sends them.

use super::Packet;

/// Grants of receivers, pause frames, credit updates and markers.
#[derive(Clone, Copy, Debug)]
pub struct ControlView<'p>(pub(super) &'p Packet);

/// The same, to write.
#[derive(Debug)]
pub struct ControlMut<'p>(pub(super) &'p mut Packet);

impl ControlView<'_> {
    /// A number of 64 bits.
    #[inline]
    pub fn value(self) -> u64 {
        self.0.value()
    }
    /// Two numbers of 32 bits.
    #[inline]
    pub fn pair(self) -> (u32, u32) {
        (self.0.index, self.0.count)
    }
    /// Two numbers of 8 bits.
    #[inline]
    pub fn codes(self) -> (u8, u8) {
        (self.0.half as u8, (self.0.half >> 8) as u8)
    }
}

impl ControlMut<'_> {
    /// See [`ControlView::value`].
    #[inline]
    pub fn set_value(&mut self, value: u64) {
        self.0.set_value(value);
    }
    /// See [`ControlView::pair`].
    #[inline]
    pub fn set_pair(&mut self, first: u32, second: u32) {
        (self.0.index, self.0.count) = (first, second);
    }
    /// See [`ControlView::codes`].
    #[inline]
    pub fn set_codes(&mut self, first: u8, second: u8) {
        self.0.half = u16::from(first) | u16::from(second) << 8;
    }
}
