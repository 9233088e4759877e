//! View of control packets: a few numbers, whose meaning the mechanism defines that sends them.

use super::Packet;
use incast_cc::message::Body;

/// Messages of receiver halves, pause frames, credit updates and markers.
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
    /// A message of a receiver half.
    #[inline]
    pub fn body(self) -> Body {
        let Packet { index, count, half, .. } = *self.0;
        Body {
            code: half as u8,
            option: (half >> 8) as u8,
            values: [self.0.value(), u64::from(index) | u64::from(count) << 32],
        }
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
    /// See [`ControlView::body`].
    #[inline]
    pub fn set_body(&mut self, body: &Body) {
        let [first, second] = body.values;
        self.0.set_value(first);
        (self.0.index, self.0.count) = (second as u32, (second >> 32) as u32);
        self.0.half = u16::from(body.code) | u16::from(body.option) << 8;
    }
}
