//! Packets: what travels on links.
//!
//! A packet is 52 bytes, so that it makes one cache line with its time and place of arrival. Fields that depend on the
//! kind share their place: they are private, and are read and written through a view of the kind, in which each has one
//! meaning.
//!
//! | field | data | acknowledgement | others |
//! |---|---|---|---|
//! | `origin` | source | hops of the data, delay at the receiver | source |
//! | `index` | position | position of the packet that caused it, or its distance and the first SACK block | position, code, lane, or switch |
//! | `count` | packets of the flow | cumulative acknowledgement | packets, or a flag |
//! | `delay` | links passed | one-way delay of the data | one-way delay |
//! | `value` | send time, with a tag in the upper 16 bits | the same, echoed, with its own tag, a delay, or the second SACK block | one number |
//! | `half` | payload bytes | packets reported on, and marked ones | payload bytes, or a code and a priority |

#![allow(unsafe_code)] // R16: the engine hands packets over.

mod ack;
mod control;
mod data;
mod kind;
mod telemetry;

pub use self::{
    ack::{AckMut, AckView},
    control::{ControlMut, ControlView},
    data::{DataMut, DataView},
    kind::Kind,
    telemetry::{TELEMETRY_HOPS, Telemetry},
};
use crate::engine;
use incast_cc::{agent::Codepoint, feedback::Cnp};
use incast_units::Time;

/// See the module.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    origin: u32,
    /// Host it goes to.
    pub destination: u32,
    /// The flow's number at the host that sends its data.
    pub sequence: u32,
    /// Where the data's sender keeps the flow.
    pub slot: u32,
    index: u32,
    count: u32,
    /// Hash of the flow for the choice among equal-cost ports.
    pub ecmp_hash: u32,
    delay: i32,
    attachment: u32,
    value: [u32; 2],
    /// Bytes of the frame, without preamble and gap.
    pub wire: u16,
    half: u16,
    /// Class of the flow.
    pub class: u8,
    /// What it is for.
    pub kind: Kind,
    /// Priority, 0 the highest.
    pub priority: u8,
    flags: u8,
}

const ECN_CAPABLE: u8 = 1;
const MARKED: u8 = 2;
const LAST: u8 = 4;
/// Of an acknowledgement, which is never the last packet of a flow.
const DUPLICATE: u8 = 4;
const UNDETERMINED: u8 = 8;
/// Of an acknowledgement, which no switch marks: it has SACK blocks.
const BLOCKS: u8 = 8;
const DEFLECTION: u8 = 16;

/// Bits of a time that travel where something else shares its place.
const TIME_BITS: u32 = 48;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// Bytes on a link that belong to no frame: preamble with start delimiter (8) and minimum inter-frame gap (12).
///
/// Source: IEEE 802.3, clauses 4.2.9 and 4.4.2. They are counted as part of the transmission.
pub const GAP: u32 = 20;

impl Packet {
    /// An empty packet; the caller fills it in.
    #[inline]
    pub fn new(kind: Kind, source: u32, destination: u32, sequence: u32, slot: u32) -> Self {
        Self {
            origin: source,
            destination,
            sequence,
            slot,
            index: 0,
            count: 0,
            ecmp_hash: 0,
            delay: 0,
            attachment: <Self as engine::Message>::NO_ATTACHMENT,
            value: [0; 2],
            wire: 0,
            half: 0,
            class: 0,
            kind,
            priority: 0,
            flags: 0,
        }
    }

    // ---- Views -----------------------------------------------------------------------------------------------

    /// View of data, of trimmed data, and of messages of a sender without data.
    #[inline(always)]
    pub fn data(&self) -> DataView<'_> {
        DataView(self)
    }
    /// The same, to write.
    #[inline(always)]
    pub fn data_mut(&mut self) -> DataMut<'_> {
        DataMut(self)
    }
    /// View of an acknowledgement, positive or negative, of a SYN-ACK, and of a report for the underlay.
    #[inline(always)]
    pub fn ack(&self) -> AckView<'_> {
        AckView(self)
    }
    /// The same, to write.
    #[inline(always)]
    pub fn ack_mut(&mut self) -> AckMut<'_> {
        AckMut(self)
    }
    /// View of all other kinds.
    #[inline(always)]
    pub fn control(&self) -> ControlView<'_> {
        ControlView(self)
    }
    /// The same, to write.
    #[inline(always)]
    pub fn control_mut(&mut self) -> ControlMut<'_> {
        ControlMut(self)
    }

    /// Host that sent this packet; `None` for an acknowledgement, which carries something else in its place.
    #[inline]
    pub fn source(&self) -> Option<u32> {
        (!matches!(self.kind, Kind::Ack | Kind::Nack)).then_some(self.origin)
    }

    #[inline]
    fn value(&self) -> u64 {
        u64::from(self.value[0]) | u64::from(self.value[1]) << 32
    }
    #[inline]
    fn set_value(&mut self, value: u64) {
        self.value = [value as u32, (value >> 32) as u32];
    }
    /// A time of which 48 bits travel: it is less than 281 s before `now`.
    #[inline]
    fn recent_time(&self, now: Time) -> Time {
        Time::from_ps(now.ps() - (now.ps().wrapping_sub(self.value()) & TIME_MASK))
    }
    /// What shares its place with a time.
    #[inline]
    fn upper_bits(&self) -> u16 {
        (self.value() >> TIME_BITS) as u16
    }
    #[inline]
    fn set_upper_bits(&mut self, bits: u16) {
        self.set_value(self.value() & TIME_MASK | u64::from(bits) << TIME_BITS);
    }

    // ---- Routing ---------------------------------------------------------------------------------------------

    /// Hash for the choice among equal-cost ports of a response to this packet: responses choose on their own.
    #[inline]
    pub fn reverse_hash(&self) -> u32 {
        reverse_hash(self.ecmp_hash)
    }
    /// The path that its sender chose, as far as it is still ahead; see [`crate::routing::Pinned`].
    #[inline]
    pub fn pinned_path(&self) -> u16 {
        (self.ecmp_hash ^ self.disguise()) as u16
    }
    /// Sets it.
    pub fn set_pinned_path(&mut self, path: u16) {
        self.ecmp_hash = self.hash_of_path(path);
    }
    /// The hash that it would have with this path.
    #[inline]
    pub fn hash_of_path(&self, path: u16) -> u32 {
        (self.ecmp_hash & 0xffff_0000) | ((u32::from(path) ^ self.disguise()) & 0xffff)
    }
    /// The same with another hash.
    #[inline]
    pub fn with_hash(&self, ecmp_hash: u32) -> Self {
        Self { ecmp_hash, ..*self }
    }
    /// What [`reverse_hash`] added.
    #[inline]
    fn disguise(&self) -> u32 {
        RESPONSES & u32::from(self.kind.is_of_sender()).wrapping_sub(1)
    }

    // ---- Trimming --------------------------------------------------------------------------------------------

    /// A switch cut off its payload.
    #[inline]
    pub fn is_trimmed(&self) -> bool {
        self.kind == Kind::Trimmed
    }
    /// What remains when its payload is cut off: a frame of `wire` bytes in the queue for headers. It keeps its marks,
    /// and gets no more.
    pub fn trimmed(&self, wire: u16) -> Self {
        let mut header = Self { kind: Kind::Trimmed, half: 0, priority: 0, wire, ..*self };
        header.set_ecn_capable(false);
        header
    }
    /// A trimmed header, sent back to where it came from.
    pub fn bounced(&self) -> Self {
        Self {
            kind: Kind::Bounced,
            origin: self.destination,
            destination: self.origin,
            ecmp_hash: self.reverse_hash(),
            attachment: <Self as engine::Message>::NO_ATTACHMENT,
            ..*self
        }
    }

    // ---- Marks -----------------------------------------------------------------------------------------------

    /// It may be marked.
    #[inline]
    pub fn ecn_capable(&self) -> bool {
        self.flags & ECN_CAPABLE != 0
    }
    /// Declares it ECN-capable.
    #[inline]
    pub fn set_ecn_capable(&mut self, capable: bool) {
        self.flags = self.flags & !ECN_CAPABLE | if capable { ECN_CAPABLE } else { 0 };
    }
    /// CE: congestion was experienced.
    #[inline]
    pub fn marked(&self) -> bool {
        self.flags & MARKED != 0
    }
    /// Marks it with CE.
    #[inline]
    pub fn mark(&mut self) {
        self.flags |= MARKED;
    }
    /// UE (TCD): a queue on the path was undetermined. Of classes with `marks_at_edge`: the port that leads to the
    /// receiver was congested.
    #[inline]
    pub fn undetermined(&self) -> bool {
        self.flags & UNDETERMINED != 0
    }
    /// The mark of switches: CE, if one set it.
    #[inline]
    pub fn codepoint(&self) -> Codepoint {
        if matches!(self.kind, Kind::Ack | Kind::Nack) {
            Codepoint::None
        } else if self.marked() {
            Codepoint::CongestionExperienced
        } else if self.undetermined() {
            Codepoint::UndeterminedExperienced
        } else {
            Codepoint::None
        }
    }
    /// Marks it with a codepoint.
    #[inline]
    pub fn mark_as(&mut self, codepoint: Codepoint) {
        match codepoint {
            Codepoint::None => {}
            Codepoint::UndeterminedExperienced => self.mark_undetermined(),
            Codepoint::CongestionExperienced => self.mark(),
        }
    }
    /// Marks it with UE.
    #[inline]
    pub fn mark_undetermined(&mut self) {
        self.flags |= UNDETERMINED;
    }
    /// Content of a congestion notification.
    #[inline]
    pub fn cnp(&self) -> Cnp {
        let window = Some(self.value()).filter(|window| *window != u64::MAX);
        Cnp { congested: self.marked(), undetermined: self.undetermined(), window }
    }
    /// Sets it.
    #[inline]
    pub fn set_cnp(&mut self, cnp: &Cnp) {
        self.set_value(cnp.window.unwrap_or(u64::MAX));
        self.flags |= if cnp.congested { MARKED } else { 0 } | if cnp.undetermined { UNDETERMINED } else { 0 };
    }
    /// The last packet of its flow, which may be short.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.flags & LAST != 0
    }
    /// How often it was deflected, 15 at the most.
    #[inline]
    pub fn deflections(&self) -> u8 {
        self.flags / DEFLECTION
    }
    /// Counts a deflection.
    #[inline]
    pub fn deflect(&mut self) {
        if self.deflections() < 15 {
            self.flags += DEFLECTION;
        }
    }
}

// SAFETY: R16: the index is a field of its own; queues set it by `set_attachment`, too, and the engine sets it last.
unsafe impl engine::Message for Packet {
    #[inline]
    fn sent(&mut self, original: &Self) {
        // Counts links, as a TTL does, without a branch. What was just written is not read back.
        self.delay = original.delay + i32::from(original.kind <= Kind::Trimmed);
    }
    #[inline]
    fn attachment(&self) -> u32 {
        self.attachment
    }
    #[inline]
    fn set_attachment(&mut self, index: u32) {
        self.attachment = index;
    }
}

/// The hash of a flow's responses, from that of the flow.
#[inline]
pub fn reverse_hash(ecmp_hash: u32) -> u32 {
    ecmp_hash.rotate_left(16) ^ RESPONSES
}

/// Responses choose differently even where both halves of a hash are the same.
const RESPONSES: u32 = 0x9E37_79B9;

#[cfg(test)]
mod tests {
    use super::*;
    use incast_cc::message::{AckTag, Body};

    #[test]
    fn a_packet_is_one_cache_line_on_the_way() {
        assert_eq!(size_of::<Packet>(), 52);
    }

    #[test]
    fn flags_are_independent() {
        let mut packet = Packet::new(Kind::Data, 0, 1, 2, 3);
        packet.set_ecn_capable(true);
        (0..20).for_each(|_| packet.deflect());
        packet.mark();
        assert!(packet.ecn_capable() && packet.marked() && !packet.is_last() && !packet.undetermined());
        packet.mark_undetermined();
        assert_eq!(packet.codepoint(), Codepoint::CongestionExperienced);
        assert_eq!(packet.deflections(), 15);
    }

    #[test]
    fn an_acknowledgement_keeps_its_fields() {
        let mut packet = Packet::new(Kind::Ack, 0, 1, 2, 3);
        let mut ack = packet.ack_mut();
        ack.set_report(3, 2);
        ack.set_path(6, Time::from_ns(1_234));
        assert_eq!(packet.ack().report(), (3, 2));
        assert_eq!((packet.ack().hops(), packet.ack().in_host()), (5, Time::from_ns(1_234)));
        assert_eq!(packet.source(), None);
    }

    #[test]
    fn a_hold_of_any_length_is_apart_from_the_rest() {
        for (hold, rest) in [(0, 7), (1, 0), (2_000_000, 777), (40_000_000, 31_000), (900_000_000, 31_000)] {
            let (hold, rest) = (Time::from_ns(hold), Time::from_ns(rest));
            let mut packet = Packet::new(Kind::Ack, 0, 1, 2, 3);
            packet.ack_mut().set_echo(Time::from_ms(5), None);
            packet.ack_mut().set_path(256, hold);
            packet.ack_mut().set_in_host(hold + rest);
            let (ack, rounding) = (packet.ack(), Time::from_ns(128));
            assert_eq!((ack.hops(), ack.echo(Time::from_ms(6))), (255, Time::from_ms(5)));
            assert!((hold + rest).saturating_sub(ack.in_host()) < rounding, "{hold} {rest}");
            assert!((ack.in_host() - ack.hold()).ps().abs_diff(rest.ps()) <= rounding.ps(), "{hold} {rest}");
        }
        // What cannot be told is no delay of the fabric.
        let mut packet = Packet::new(Kind::Ack, 0, 1, 2, 3);
        packet.ack_mut().set_in_host(Time::from_ms(3_000));
        assert_eq!(packet.ack().in_host(), Time::MAX);
    }

    #[test]
    fn a_control_packet_carries_the_whole_body_of_a_message() {
        let mut packet = Packet::new(Kind::Credit, 0, 1, 2, 3);
        let body = Body { code: 200, option: 9, values: [u64::MAX - 7, 1 << 63 | 5] };
        packet.control_mut().set_body(&body);
        assert_eq!(packet.control().body(), body);
    }

    #[test]
    fn an_echo_comes_with_a_tag() {
        let mut packet = Packet::new(Kind::Ack, 0, 1, 2, 3);
        let long = Time::from_ms(1_000_000);
        for (sent, age) in [(Time::ZERO, 0), (Time::from_us(7), 1), (long, 1 << 40), (long, (1 << 48) - 1)] {
            for tag in [None, Some(AckTag::MIN), Some(AckTag::MAX)] {
                packet.ack_mut().set_echo(sent, tag);
                let ack = packet.ack();
                assert_eq!((ack.echo(sent + Time::from_ps(age)), ack.tag()), (sent, tag));
            }
        }
    }
}
