//! View of data packets.

use super::{LAST, Packet, TIME_BITS};
use incast_cc::{scheduler::TokenName, word::Word};
use incast_units::Time;

/// Data, trimmed data, and messages of a sender without data.
#[derive(Clone, Copy, Debug)]
pub struct DataView<'p>(pub(super) &'p Packet);

/// The same, to write.
#[derive(Debug)]
pub struct DataMut<'p>(pub(super) &'p mut Packet);

impl DataView<'_> {
    /// Host that sent it.
    #[inline]
    pub fn source(self) -> u32 {
        self.0.origin
    }
    /// Index of this packet in its flow.
    #[inline]
    pub fn position(self) -> u32 {
        self.0.index
    }
    /// Number of packets of the flow.
    #[inline]
    pub fn packets(self) -> u32 {
        self.0.count
    }
    /// Payload bytes.
    #[inline]
    pub fn payload(self) -> u32 {
        u32::from(self.0.half)
    }
    /// Links that it has passed.
    #[inline]
    pub fn links(self) -> i32 {
        self.0.delay
    }
    /// When the NIC began to send it; only of flows that are not receiver-driven.
    #[inline]
    pub fn sent(self) -> Time {
        Time::from_ps(self.0.value())
    }
    /// The same of any flow: 48 bits of the time travel if there is the name of a token.
    #[inline]
    pub fn sent_before(self, now: Time) -> Time {
        if self.token().is_some() { self.0.recent_time(now) } else { self.sent() }
    }
    /// Receiver-driven: the token that it was sent on, if that was one for a certain packet.
    #[inline]
    pub fn token(self) -> Option<TokenName> {
        TokenName::from_bits(self.0.upper_bits())
    }
    /// Receiver-driven, without tokens: a message of the sender, in the place of a token's name.
    #[inline]
    pub fn word(self) -> Option<Word> {
        Word::from_bits(self.0.upper_bits())
    }
    /// It has the name of a token, or a message.
    #[inline]
    pub fn has_message(self) -> bool {
        // Both begin with a bit that is set.
        self.0.value() >> (u64::BITS - 1) != 0
    }
}

impl DataMut<'_> {
    /// Its place among the packets of its flow. The last one is flagged, as it may be short.
    #[inline]
    pub fn set_position(&mut self, position: u32, packets: u32) {
        (self.0.index, self.0.count) = (position, packets);
        if position + 1 == packets {
            self.0.flags |= LAST;
        }
    }
    /// Sets the payload bytes.
    #[inline]
    pub fn set_payload(&mut self, bytes: u32) {
        self.0.half = bytes as u16;
    }
    /// Sets when it was sent. That drops the name of a token.
    #[inline]
    pub fn set_sent(&mut self, time: Time) {
        self.0.set_value(time.ps());
    }
    /// It was held: sets anew when it was sent, and keeps the name of a token.
    pub fn set_sent_again(&mut self, time: Time) {
        let token = DataView(self.0).token();
        self.set_sent(time);
        if let Some(name) = token {
            self.set_token(name);
        }
    }
    /// Sets the name of a token, once there is a time.
    pub fn set_token(&mut self, name: TokenName) {
        self.0.set_upper_bits(name.bits());
    }
    /// Sets a message, once there is a time.
    pub fn set_word(&mut self, word: Word) {
        self.0.set_upper_bits(word.bits());
    }
}

const _: () = assert!(TIME_BITS + u16::BITS == u64::BITS);
