//! View of acknowledgements.

use super::{BLOCKS, DUPLICATE, Packet, TIME_BITS, TIME_MASK};
use crate::recovery::Blocks;
use incast_cc::message::AckTag;
use incast_units::Time;

/// An acknowledgement, positive or negative; a SYN-ACK has only the echo, a report for the underlay position, echo and
/// one-way delay.
#[derive(Clone, Copy, Debug)]
pub struct AckView<'p>(pub(super) &'p Packet);

/// The same, to write.
#[derive(Debug)]
pub struct AckMut<'p>(pub(super) &'p mut Packet);

/// A delay in few bits: in nanoseconds, or from half of what they hold on in units of 2^`shift` ns.
struct Delay {
    bits: u32,
    shift: u32,
}

/// From the arrival of the data until the acknowledgement left, below the hops: exact up to 8.3 ms, to 128 ns up to 1
/// s.
const SINCE_ARRIVAL: Delay = Delay { bits: 24, shift: 7 };
/// The part of it in which an acknowledgement that was held was not, and 1, in the place of a tag: exact up to 32 us, to
/// 1 us up to 33 ms.
const UNHELD: Delay = Delay { bits: 16, shift: 10 };

impl Delay {
    const fn half(&self) -> u32 {
        1 << (self.bits - 1)
    }
    const fn mask(&self) -> u32 {
        2 * self.half() - 1
    }
    fn write(&self, delay: Time) -> u32 {
        let ns = delay.ps() / 1000;
        if ns < self.half().into() {
            ns as u32
        } else {
            self.half() | (ns >> self.shift).min(u64::from(self.half()) - 1) as u32
        }
    }
    /// What is longer than can be written counts as endless, so that no part of it is taken for anything else.
    fn read(&self, written: u32) -> Time {
        match written & self.mask() {
            ns if ns < self.half() => Time::from_ns(ns.into()),
            all if all == self.mask() => Time::MAX,
            units => Time::from_ns(u64::from(units - self.half()) << self.shift),
        }
    }
}

impl AckView<'_> {
    /// Index of the packet that caused it.
    #[inline]
    pub fn position(self) -> u32 {
        if self.has_blocks() { self.0.count + (self.0.index >> 16) } else { self.0.index }
    }
    #[inline]
    fn has_blocks(self) -> bool {
        self.0.flags & BLOCKS != 0
    }
    /// SACK blocks, if it has some; without the second where it is `tagged`.
    #[inline]
    pub fn blocks(self, tagged: bool) -> Option<Blocks> {
        self.has_blocks().then(|| {
            let second = if tagged { 0 } else { self.0.upper_bits() };
            let [before, after, gap, length] =
                [self.0.index >> 8, self.0.index, u32::from(second) >> 8, u32::from(second)];
            Blocks { before: before as u8, after: after as u8, gap: gap as u8, length: length as u8 }
        })
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
    /// How long the receiver's host took from the arrival of the data until this packet left; [`Time::MAX`] if that
    /// does not fit.
    #[inline]
    pub fn in_host(self) -> Time {
        SINCE_ARRIVAL.read(self.0.origin)
    }
    /// The part of [`Self::in_host`] for which the receiver held it on purpose, to acknowledge several packets at once;
    /// where acknowledgements carry no tags.
    #[inline]
    pub fn hold(self) -> Time {
        match self.0.upper_bits() {
            0 => Time::ZERO,
            // What is beyond a gap is acknowledged at once.
            _ if self.has_blocks() => Time::ZERO,
            unheld => self.in_host().saturating_sub(UNHELD.read(u32::from(unheld) - 1)),
        }
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
    /// SACK blocks around the packet that caused it, if there is room for its distance from the cumulative acknowledgement;
    /// to be called when position, cumulative acknowledgement and echo are set. A tag takes the place of the second block.
    /// Returns the bytes of the option.
    pub fn set_blocks(&mut self, mut blocks: Blocks) -> u32 {
        let Ok(distance) = u16::try_from(self.0.index.saturating_sub(self.0.count)) else { return 0 };
        if self.0.upper_bits() != 0 {
            blocks = Blocks { gap: 0, length: 0, ..blocks };
        } else if blocks.length > 0 {
            self.0.set_upper_bits(u16::from(blocks.gap) << 8 | u16::from(blocks.length));
        }
        self.0.index = u32::from(distance) << 16 | u32::from(blocks.before) << 8 | u32::from(blocks.after);
        self.0.flags |= BLOCKS;
        blocks.option_bytes()
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
    /// The data passed so many links, and this packet was held for some time. The hold is not kept beside a tag: no law
    /// of a receiver-driven protocol reads delays.
    #[inline]
    pub fn set_path(&mut self, links: i32, hold: Time) {
        self.0.origin = (links.clamp(1, 256) as u32 - 1) << SINCE_ARRIVAL.bits | SINCE_ARRIVAL.write(hold);
    }
    /// It leaves the host so long after the arrival of the data, its hold included.
    #[inline]
    pub fn set_in_host(&mut self, since_arrival: Time) {
        let hold = SINCE_ARRIVAL.read(self.0.origin);
        if hold > Time::ZERO && self.0.upper_bits() == 0 {
            let unheld = UNHELD.write(since_arrival.saturating_sub(hold)).min(UNHELD.mask() - 1);
            self.0.set_upper_bits(unheld as u16 + 1);
        }
        self.0.origin = self.0.origin & !SINCE_ARRIVAL.mask() | SINCE_ARRIVAL.write(since_arrival);
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
