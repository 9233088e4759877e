//! View of acknowledgements.

use super::{DUPLICATE, Packet, TIME_BITS, TIME_MASK};
use incast_cc::message::AckTag;
use incast_units::Time;

/// An acknowledgement, positive or negative; a SYN-ACK has only the echo, a report for the underlay position, echo and
/// one-way delay.
#[derive(Clone, Copy, Debug)]
pub struct AckView<'p>(pub(super) &'p Packet);

/// The same, to write.
#[derive(Debug)]
pub struct AckMut<'p>(pub(super) &'p mut Packet);

/// The longest delay at a receiver's host that an acknowledgement can report, in nanoseconds.
const MOST_ENDPOINT_NS: u32 = (1 << 24) - 1;

impl AckView<'_> {
    /// Index of the packet that caused it.
    #[inline]
    pub fn position(self) -> u32 {
        self.0.index
    }
    /// All packets below this index have arrived.
    #[inline]
    pub fn cumulative(self) -> u32 {
        self.0.count
    }
    /// One-way delay of the data in nanoseconds, as the two hosts' clocks show it.
    #[inline]
    pub fn one_way_delay_ns(self) -> i32 {
        self.0.delay
    }
    /// When the data was sent. 48 bits of it travel: it is less than 281 s before `now`.
    #[inline]
    pub fn echo(self, now: Time) -> Time {
        self.0.recent_time(now)
    }
    /// Receiver-driven: the tag of the receiver half.
    #[inline]
    pub fn tag(self) -> Option<AckTag> {
        AckTag::new(self.0.upper_bits())
    }
    /// The packet that caused it had arrived before (D-SACK, RFC 2883).
    #[inline]
    pub fn is_duplicate(self) -> bool {
        self.0.flags & DUPLICATE != 0
    }
    /// Packets reported on, and how many of them were marked.
    #[inline]
    pub fn report(self) -> (u32, u32) {
        (u32::from(self.0.half & 0xff), u32::from(self.0.half >> 8))
    }
    /// Switches that the data passed.
    #[inline]
    pub fn hops(self) -> u8 {
        (self.0.origin >> 24) as u8
    }
    /// How long the receiver's host took from the arrival of the data until this packet left.
    #[inline]
    pub fn endpoint_delay(self) -> Time {
        Time::from_ns(u64::from(self.0.origin & MOST_ENDPOINT_NS))
    }
    /// Time since the data arrived, to the nanosecond, by a clock that is so many picoseconds ahead `now` and had its
    /// own error then.
    #[inline]
    pub fn since_arrival(self, now: Time, error: i64) -> Time {
        let shown = (now - self.echo(now)).ps() as i64 + error;
        Time::from_ps(shown.saturating_sub(i64::from(self.0.delay) * 1000).max(0) as u64)
    }
}

impl AckMut<'_> {
    /// The packet that caused it.
    #[inline]
    pub fn set_position(&mut self, position: u32) {
        self.0.index = position;
    }
    /// All packets below this index have arrived.
    #[inline]
    pub fn set_cumulative(&mut self, packets: u32) {
        self.0.count = packets;
    }
    /// See [`AckView::one_way_delay_ns`].
    #[inline]
    pub fn set_one_way_delay_ns(&mut self, delay: i32) {
        self.0.delay = delay;
    }
    /// Echoes when the data was sent, with a tag.
    #[inline]
    pub fn set_echo(&mut self, sent: Time, tag: Option<AckTag>) {
        self.0.set_value(sent.ps() & TIME_MASK | u64::from(tag.map_or(0, AckTag::get)) << TIME_BITS);
    }
    /// The data passed so many links, and arrived some time before this packet leaves. The delay is kept in whole
    /// nanoseconds, and 16.7 ms at most.
    #[inline]
    pub fn set_path(&mut self, links: i32, endpoint_delay: Time) {
        let ns = (endpoint_delay.ps() / 1000).min(u64::from(MOST_ENDPOINT_NS)) as u32;
        self.0.origin = (links.clamp(1, 256) as u32 - 1) << 24 | ns;
    }
    /// Sets the delay alone.
    #[inline]
    pub fn set_endpoint_delay(&mut self, delay: Time) {
        self.set_path(i32::from(AckView(self.0).hops()) + 1, delay);
    }
    /// The packet that caused it had arrived before.
    #[inline]
    pub fn set_duplicate(&mut self, is_duplicate: bool) {
        self.0.flags |= if is_duplicate { DUPLICATE } else { 0 };
    }
    /// Packets reported on, and how many of them were marked: at most 255.
    #[inline]
    pub fn set_report(&mut self, packets: u32, marked: u32) {
        self.0.half = packets.min(255) as u16 | (marked.min(255) as u16) << 8;
    }
}
