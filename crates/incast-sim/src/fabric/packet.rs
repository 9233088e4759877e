//! Packets: what travels on links.

use crate::engine;
use incast_cc::{
    agent::Codepoint,
    feedback::{Cnp, HopTelemetry},
    scheduler::TokenName,
    share::Share,
    word::Word,
};
use incast_units::Time;
use std::{fmt, mem::MaybeUninit};

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Payload of a flow.
    Data,
    /// Data whose payload was cut off: its header, on its way to the receiver. A kind of its own, so that hosts need not
    /// ask each data packet for it. See `fabric/trim.rs`.
    Trimmed,
    /// Acknowledgement of data, selective and cumulative.
    Ack,
    /// Go-back-N receiver: a packet is missing. Carries the cumulative acknowledgement.
    Nack,
    /// Congestion notification from a switch.
    Cnp,
    /// Receiver-driven: credit, a token, a request to send again, or a share. See `host/order.rs`.
    Credit,
    /// Receiver-driven: what the sender of a flow says apart from its data. See `host/signals.rs`.
    Signal,
    /// RST: the sender has given the flow up.
    Rst,
    /// SYN: the sender opens a connection.
    Syn,
    /// SYN-ACK: the receiver's answer to that.
    SynAck,
    /// Priority flow control, from one end of a link to the other. See `flow_control/pause.rs`.
    Pause,
    /// A trimmed header on its way back to its sender.
    Bounced,
    /// Underlay: how long data took one way, for the underlay of its sender. See `host/underlay.rs`.
    Report,
    /// Credits, from one end of a link to the other. See `flow_control/credits.rs`.
    FlowControl,
    /// Goes behind data of a flow, on its way, from a switch that holds what comes after. See `switch/hold.rs`.
    Marker,
    /// Answer to a marker, from switch to switch.
    MarkerAck,
}

/// Kinds that travel with their flow, one bit each: packets of both directions mix, so that a branch would be a guess.
const OF_SENDER: u32 = 1 << Kind::Data as u32
    | 1 << Kind::Signal as u32
    | 1 << Kind::Rst as u32
    | 1 << Kind::Syn as u32
    | 1 << Kind::Trimmed as u32
    | 1 << Kind::Marker as u32;

impl Kind {
    /// It travels with its flow, from its sender to its receiver; others answer.
    #[inline]
    pub fn is_of_sender(self) -> bool {
        OF_SENDER >> self as u32 & 1 != 0
    }
}

/// A packet. The fields that depend on its kind share their place; the constructors and accessors name them.
///
/// 52 bytes, so that it makes one cache line with its time and place of arrival.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Host that sent this packet. Acknowledgement, whose flow is named without it: what the receiver says of the
    /// data's way, see [`Self::set_way`].
    pub source: u32,
    /// Host it goes to.
    pub destination: u32,
    /// The flow's number at the host that sends its data.
    pub sequence: u32,
    /// Where the data's sender keeps the flow.
    pub slot: u32,
    /// Data: index of this packet in its flow. Acknowledgement: index of the packet that caused it. Marker: the switch that
    /// sent it.
    pub position: u32,
    /// Data: number of packets of the flow. Acknowledgement: all packets below this index have arrived.
    pub packets: u32,
    /// Hash of the flow for the choice among equal-cost ports.
    pub entropy: u32,
    /// Data: links passed. Acknowledgement: one-way delay of the data in nanoseconds, as the two hosts' clocks show it.
    pub delay_ns: i32,
    attachment: u32,
    /// Data: when the NIC began to send it, perhaps with the name of a token or a word to the receiver. Acknowledgement: 48 bits of that time, echoed, and the flow's share of the
    /// receiver. CNP: window granted, with the flags of marks. Credit: position or lifetime. Marker and its answer: its name.
    stamp: [u32; 2],
    /// Bytes of the frame, without preamble and gap.
    pub wire: u16,
    /// Data: payload bytes. Acknowledgement: packets reported on (low byte) and how many were marked (high byte).
    pub payload: u16,
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
const LAST_SHORT: u8 = 4;
const UNDETERMINED: u8 = 8;
const DEFLECTION: u8 = 16;

const ECHO_BITS: u32 = 48;
const ECHO_MASK: u64 = (1 << ECHO_BITS) - 1;

/// Bytes on a link that belong to no frame: preamble with start delimiter (8) and minimum inter-frame gap (12).
///
/// Source: IEEE 802.3, clauses 4.2.9 and 4.4.2. They are counted as part of the transmission.
pub const GAP: u32 = 20;

impl Packet {
    /// An empty data packet; the caller fills it in.
    #[inline]
    pub fn new(kind: Kind, source: u32, destination: u32, sequence: u32, slot: u32) -> Self {
        Self {
            source,
            destination,
            sequence,
            slot,
            position: 0,
            packets: 0,
            entropy: 0,
            delay_ns: 0,
            attachment: <Self as engine::Message>::NO_ATTACHMENT,
            stamp: [0; 2],
            wire: 0,
            payload: 0,
            class: 0,
            kind,
            priority: 0,
            flags: 0,
        }
    }

    /// See the field.
    #[inline]
    pub fn stamp(&self) -> Time {
        Time::from_ps(self.value())
    }
    /// See the field.
    #[inline]
    pub fn set_stamp(&mut self, time: Time) {
        self.set_value(time.ps());
    }
    /// Data that was held: sets the stamp anew, and keeps the name of a token.
    pub fn restamp(&mut self, time: Time) {
        match self.token() {
            Some(name) => {
                self.set_stamp(time);
                self.set_token(name);
            }
            None => self.set_stamp(time),
        }
    }
    /// Data of a receiver-driven flow: the stamp, of which 48 bits travel if there is the name of a token.
    #[inline]
    pub fn sent_at(&self, now: Time) -> Time {
        if self.token().is_some() { self.echo(now) } else { self.stamp() }
    }
    /// Data of a receiver-driven flow: the token that it went on, if that was one for a certain packet.
    #[inline]
    pub fn token(&self) -> Option<TokenName> {
        TokenName::from_bits((self.value() >> ECHO_BITS) as u16)
    }
    /// Data of a receiver-driven flow: there is the name of a token, or a word.
    #[inline]
    pub fn says_more(&self) -> bool {
        // Both begin with a bit that is set.
        self.value() >> (u64::BITS - 1) != 0
    }
    /// Sets it, once there is a stamp.
    pub fn set_token(&mut self, name: TokenName) {
        self.set_value(self.value() & ECHO_MASK | u64::from(name.bits()) << ECHO_BITS);
    }
    /// Data of a receiver-driven flow without tokens: what its sender tells, in the place of a token's name.
    #[inline]
    pub fn word(&self) -> Option<Word> {
        Word::from_bits((self.value() >> ECHO_BITS) as u16)
    }
    /// Sets it, once there is a stamp.
    pub fn set_word(&mut self, word: Word) {
        self.set_value(self.value() & ECHO_MASK | u64::from(word.bits()) << ECHO_BITS);
    }
    /// Acknowledgement: the echoed stamp. Of it 48 bits travel: it is less than 281 s before `now`.
    #[inline]
    pub fn echo(&self, now: Time) -> Time {
        Time::from_ps(now.ps() - (now.ps().wrapping_sub(self.value()) & ECHO_MASK))
    }
    /// Acknowledgement: echoes a stamp, and says what the flow's share is.
    #[inline]
    pub fn set_echo(&mut self, stamp: Time, share: Option<Share>) {
        self.set_value(stamp.ps() & ECHO_MASK | u64::from(Share::bits(share)) << ECHO_BITS);
    }
    /// Acknowledgement: the flow's share of the receiver, if it says something.
    #[inline]
    pub fn share(&self) -> Option<Share> {
        Share::from_bits((self.value() >> ECHO_BITS) as u16)
    }
    /// The stamp's place as a number: window of a CNP, position of a credit.
    #[inline]
    pub fn value(&self) -> u64 {
        u64::from(self.stamp[0]) | u64::from(self.stamp[1]) << 32
    }
    /// Sets it.
    #[inline]
    pub fn set_value(&mut self, value: u64) {
        self.stamp = [value as u32, (value >> 32) as u32];
    }
    /// Hash for the choice among equal-cost ports of an answer to this packet: answers choose on their own.
    #[inline]
    pub fn reverse_entropy(&self) -> u32 {
        reverse_entropy(self.entropy)
    }
    /// The way that its sender chose, as far as it is still ahead; see [`crate::routing::Pinned`].
    #[inline]
    pub fn pinned_way(&self) -> u16 {
        (self.entropy ^ self.disguise()) as u16
    }
    /// Sets it.
    pub fn set_pinned_way(&mut self, way: u16) {
        self.entropy = self.entropy_of_way(way);
    }
    /// The entropy that it would have with this way.
    #[inline]
    pub fn entropy_of_way(&self, way: u16) -> u32 {
        (self.entropy & 0xffff_0000) | ((u32::from(way) ^ self.disguise()) & 0xffff)
    }
    /// The same with another entropy.
    #[inline]
    pub fn with_entropy(&self, entropy: u32) -> Self {
        Self { entropy, ..*self }
    }
    /// What [`reverse_entropy`] added.
    #[inline]
    fn disguise(&self) -> u32 {
        ANSWERS & u32::from(self.kind.is_of_sender()).wrapping_sub(1)
    }
    /// Its payload was cut off by a switch: of the data only the header travels on.
    #[inline]
    pub fn is_trimmed(&self) -> bool {
        self.kind == Kind::Trimmed
    }
    /// What remains when its payload is cut off: a frame of `wire` bytes in the queue for headers. It keeps its marks, and
    /// gets no more.
    pub fn trimmed(&self, wire: u16) -> Self {
        let mut header = Self { kind: Kind::Trimmed, payload: 0, priority: 0, wire, ..*self };
        header.set_ecn_capable(false);
        header
    }
    /// A trimmed header, sent back to where it came from.
    pub fn bounced(&self) -> Self {
        Self {
            kind: Kind::Bounced,
            source: self.destination,
            destination: self.source,
            entropy: self.reverse_entropy(),
            attachment: <Self as engine::Message>::NO_ATTACHMENT,
            ..*self
        }
    }
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
    /// Congestion was experienced.
    #[inline]
    pub fn marked(&self) -> bool {
        self.flags & MARKED != 0
    }
    /// Marks it.
    #[inline]
    pub fn mark(&mut self) {
        self.flags |= MARKED;
    }
    /// UE: a queue was passed of which its switch did not know whether it was congested (TCD). Of classes that tell marks apart by
    /// their place: congestion was experienced at the port that leads to the receiver (`tells_edge_marks` in `settings.rs`).
    #[inline]
    pub fn undetermined(&self) -> bool {
        self.flags & UNDETERMINED != 0
    }
    /// What switches have marked it with: CE, if one did.
    #[inline]
    pub fn codepoint(&self) -> Codepoint {
        if self.marked() {
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
    /// Declares that an undetermined queue was passed.
    #[inline]
    pub fn mark_undetermined(&mut self) {
        self.flags |= UNDETERMINED;
    }
    /// CNP: what it says.
    #[inline]
    pub fn cnp(&self) -> Cnp {
        let window = Some(self.value()).filter(|window| *window != u64::MAX);
        Cnp { congested: self.marked(), undetermined: self.undetermined(), window }
    }
    /// CNP: sets it.
    #[inline]
    pub fn set_cnp(&mut self, cnp: &Cnp) {
        self.set_value(cnp.window.unwrap_or(u64::MAX));
        self.flags |=
            if cnp.congested { MARKED } else { 0 } | if cnp.undetermined { UNDETERMINED } else { 0 };
    }
    /// The flow's last packet, which may be short.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.flags & LAST_SHORT != 0
    }
    /// Declares it the last one.
    #[inline]
    pub fn set_last(&mut self) {
        self.flags |= LAST_SHORT;
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
    /// Acknowledgement: packets reported on, and how many of them were marked.
    #[inline]
    pub fn report(&self) -> (u32, u32) {
        (u32::from(self.payload & 0xff), u32::from(self.payload >> 8))
    }
    /// Acknowledgement: switches that the data passed.
    #[inline]
    pub fn hops(&self) -> u8 {
        (self.source >> 24) as u8
    }
    /// Acknowledgement: how long the receiver's host took from the arrival of the data until this packet left.
    #[inline]
    pub fn endpoint_delay(&self) -> Time {
        Time::from_ns(u64::from(self.source & MOST_ENDPOINT_NS))
    }
    /// Acknowledgement of data that passed so many links and arrived some time before this packet leaves. The delay is
    /// kept in whole nanoseconds, and 16.7 ms at most.
    #[inline]
    pub fn set_way(&mut self, links: i32, endpoint_delay: Time) {
        let ns = (endpoint_delay.ps() / 1000).min(u64::from(MOST_ENDPOINT_NS)) as u32;
        self.source = (links.clamp(1, 256) as u32 - 1) << 24 | ns;
    }
    /// Acknowledgement: time since the data arrived, to the nanosecond, by a clock that is so many picoseconds ahead `now` and
    /// had its own error then.
    #[inline]
    pub fn since_arrival(&self, now: Time, error: i64) -> Time {
        let shown = (now - self.echo(now)).ps() as i64 + error;
        Time::from_ps(shown.saturating_sub(i64::from(self.delay_ns) * 1000).max(0) as u64)
    }
    /// Acknowledgement: sets the delay alone.
    #[inline]
    pub fn set_endpoint_delay(&mut self, delay: Time) {
        self.set_way(i32::from(self.hops()) + 1, delay);
    }
    /// Host that sent this packet, where it says so.
    pub fn origin(&self) -> Option<u32> {
        (!matches!(self.kind, Kind::Ack | Kind::Nack)).then_some(self.source)
    }
    /// Sets both, at most 255.
    #[inline]
    pub fn set_report(&mut self, packets: u32, marked: u32) {
        self.payload = packets.min(255) as u16 | (marked.min(255) as u16) << 8;
    }
}

/// The longest delay at a receiver's host that an acknowledgement can report, in nanoseconds.
const MOST_ENDPOINT_NS: u32 = (1 << 24) - 1;

impl engine::Message for Packet {
    #[inline]
    fn sent(&mut self, original: &Self) {
        // As a TTL does, without a branch to guess. What was just written is not read back.
        self.delay_ns = original.delay_ns + i32::from(original.kind <= Kind::Trimmed);
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

/// The hash of a flow's answers, from that of the flow.
#[inline]
pub fn reverse_entropy(entropy: u32) -> u32 {
    entropy.rotate_left(16) ^ ANSWERS
}

/// Answers choose differently even where both halves of a hash are the same.
const ANSWERS: u32 = 0x9E37_79B9;

/// Hops that a packet can record: a few more than the header of HPCC has places (five; SIGCOMM 2019, figure 7).
pub const TELEMETRY_HOPS: usize = 8;

/// What a packet's way looked like: one record per switch, in order. Later hops than it can hold are left out.
///
/// Only the records that there are get copied where it counts: most ways are shorter than the longest.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Telemetry {
    count: u8,
    hops: [MaybeUninit<HopTelemetry>; TELEMETRY_HOPS],
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { count: 0, hops: [MaybeUninit::uninit(); TELEMETRY_HOPS] }
    }
}

impl Telemetry {
    /// Adds a hop.
    #[inline]
    pub fn push(&mut self, hop: HopTelemetry) {
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            place.write(hop);
            self.count += 1;
        }
    }
    /// The hops so far.
    #[inline]
    pub fn hops(&self) -> &[HopTelemetry] {
        let hops = &self.hops[..usize::from(self.count)];
        // SAFETY: the first `count` places have been written, and a written place is laid out as what it holds.
        unsafe { &*(std::ptr::from_ref(hops) as *const [HopTelemetry]) }
    }
    /// A copy, of no more than there is.
    #[inline]
    pub fn duplicate(&self) -> Self {
        let mut copy = Self::default();
        copy.assign(self);
        copy
    }
    /// Becomes a copy of another.
    #[inline]
    pub fn assign(&mut self, other: &Self) {
        self.count = other.count;
        for (place, hop) in self.hops.iter_mut().zip(other.hops()) {
            place.write(*hop);
        }
    }
}

impl engine::Attachment for Telemetry {
    #[inline]
    fn copy_to(&self, place: &mut MaybeUninit<Self>) {
        let place = place.as_mut_ptr();
        // SAFETY: the place is valid for writes; its hops need no value beyond `count`.
        unsafe {
            (&raw mut (*place).count).write(self.count);
            let hops = (&raw mut (*place).hops).cast::<HopTelemetry>();
            std::ptr::copy_nonoverlapping(self.hops().as_ptr(), hops, self.hops().len());
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hops()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        packet.set_report(3, 2);
        assert_eq!(packet.report(), (3, 2));
        packet.set_way(6, Time::from_ns(1_234));
        assert_eq!((packet.hops(), packet.endpoint_delay()), (5, Time::from_ns(1_234)));
        packet.set_endpoint_delay(Time::from_ms(20));
        assert_eq!((packet.hops(), packet.endpoint_delay()), (5, Time::from_ns((1 << 24) - 1)));
        packet.set_value(u64::MAX - 5);
        assert_eq!(packet.value(), u64::MAX - 5);
    }

    #[test]
    fn an_echo_comes_with_a_share() {
        let mut packet = Packet::new(Kind::Ack, 0, 1, 2, 3);
        let long = Time::from_ms(1_000_000);
        for (stamp, age) in [(Time::ZERO, 0), (Time::from_us(7), 1), (long, 1 << 40), (long, (1 << 48) - 1)] {
            for share in [None, Some(Share::of_senders(1)), Some(Share::of_senders(300))] {
                packet.set_echo(stamp, share);
                assert_eq!((packet.echo(stamp + Time::from_ps(age)), packet.share()), (stamp, share));
            }
        }
    }
}
