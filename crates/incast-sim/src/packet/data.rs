//! View of data packets.

use super::{LAST, Packet, TIME_BITS};
use incast_cc::message::DataTag;
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
    /// The same of any flow: 48 bits of the time travel if there is a tag.
    #[inline]
    pub fn sent_before(self, now: Time) -> Time {
        if self.tag().is_some() { self.0.recent_time(now) } else { self.sent() }
    }
    /// Receiver-driven: the tag for the receiver half.
    #[inline]
    pub fn tag(self) -> Option<DataTag> {
        DataTag::from_bits(self.0.upper_bits())
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
    /// Sets when it was sent. That drops the tag.
    #[inline]
    pub fn set_sent(&mut self, time: Time) {
        self.0.set_value(time.ps());
    }
    /// It was held: sets anew when it was sent, and keeps the tag.
    pub fn set_sent_again(&mut self, time: Time) {
        let tag = DataView(self.0).tag();
        self.set_sent(time);
        if let Some(tag) = tag {
            self.set_tag(tag);
        }
    }
    /// Sets the tag, once the time is set.
    #[inline]
    pub fn set_tag(&mut self, tag: DataTag) {
        self.0.set_upper_bits(tag.bits());
    }
}

const _: () = assert!(TIME_BITS + u16::BITS == u64::BITS);
