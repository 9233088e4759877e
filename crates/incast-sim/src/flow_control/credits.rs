//! Credit-based flow control of a link, for each virtual lane (InfiniBand volume 1, section 7.9): an end sends a
//! packet only if the other one has advertised room for it.
//!
//! Lanes are the priorities of ports. Buffer is counted in blocks of 64 bytes, and each packet takes whole ones. Both
//! ends count all blocks since the link came up, so that advertisements are absolute and a lost one does no harm:
//!
//! - the sender knows FCTBS, the blocks that it has sent, and FCCL, up to where it may send;
//! - the receiver knows ABR, the blocks that have arrived, and advertises FCCL = ABR + free blocks.
//!
//! docs/fabric.md has the rules, docs/infiniband.md where they come from.

use super::pause::NO_QUEUE;
use crate::flow_control::config::Credits;
use crate::packet::{Kind, Packet};
use incast_units::{Bytes, Rate, Time};

/// Bytes of a block.
pub const BLOCK: u64 = 64;

/// Lanes of a port.
const LANES: usize = 8;

/// Buffer of a lane is less than this many blocks, so that differences of counts have a sign.
pub const MOST_BLOCKS: u64 = 1 << 30;

/// Bytes that a link of four lanes carries in 65,536 symbol times; a symbol is one byte on one lane.
const REFRESH: u64 = 65_536 * 4;

/// Blocks that a packet of `wire` bytes takes.
#[inline]
pub fn blocks(wire: u16) -> u32 {
    u32::from(wire).div_ceil(BLOCK as u32)
}

/// The configuration of credits, with the parameters of the fabric on which limits depend.
#[derive(Clone, Debug)]
pub struct Rules {
    /// As configured.
    pub credits: Credits,
    /// Lanes that packets of this run can have, one bit each. Only these have buffer.
    pub lanes: u8,
    /// Bytes of the largest frame of any kind.
    pub frame: u64,
    /// Bytes between two frames.
    pub gap: u64,
}

/// The buffer of one end of a link for each lane, and when it sends updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Buffer, in blocks.
    pub buffer: u32,
    /// An update is sent once this many blocks are to be advertised.
    pub update: u32,
    /// Blocks of the largest frame: while the other end knows of fewer free blocks, each one is advertised.
    pub largest: u32,
    /// On links that lose packets, an end that lacks credits requests them after this time.
    pub refresh: Time,
}

impl Limits {
    /// Buffer in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.buffer) * BLOCK
    }
}

impl Rules {
    /// Full frames that a sender on a busy link has sent before the credit of the first one returns: the time in
    /// which that one is sent and propagates, and its credit waits for a frame in service, is sent and propagates.
    pub fn packets_out(&self, rate: Rate, delay: Time) -> u64 {
        let round_trip = delay.saturating_mul(2);
        let cable = (u128::from(rate.bps()) * u128::from(round_trip.ps())).div_ceil(8_000_000_000_000);
        let full = self.frame + self.gap;
        let frames = 2 * full + u64::from(self.credits.frame) + self.gap;
        u64::try_from(cable).unwrap_or(u64::MAX / 2).saturating_add(frames).div_ceil(full.max(1))
    }

    /// Buffer of a lane, in blocks, with which a link of this rate and delay is never idle for lack of credits, and
    /// the number of blocks per update: as configured; if only one is configured, the other follows from it.
    fn default_buffer(&self, rate: Rate, delay: Time) -> (u64, u64) {
        let out = self.packets_out(rate, delay).saturating_mul(self.frame.div_ceil(BLOCK));
        match (self.credits.buffer.map(Bytes::get), self.credits.update.map(Bytes::get)) {
            (Some(buffer), Some(update)) => (buffer / BLOCK, update.div_ceil(BLOCK)),
            (Some(buffer), None) => (buffer / BLOCK, buffer / BLOCK / 4),
            (None, Some(update)) => (out.saturating_add(update.div_ceil(BLOCK)), update.div_ceil(BLOCK)),
            (None, None) => {
                let buffer = out.saturating_mul(4).div_ceil(3);
                (buffer, buffer / 4)
            }
        }
    }

    /// The limits of both ends of a link. They have been checked before.
    pub fn limits(&self, rate: Rate, delay: Time) -> Limits {
        let (buffer, update) = self.default_buffer(rate, delay);
        let small = |blocks: u64| blocks.min(MOST_BLOCKS) as u32;
        Limits {
            buffer: small(buffer),
            update: small(update).max(1),
            largest: small(self.frame.div_ceil(BLOCK)),
            refresh: self.credits.refresh.unwrap_or_else(|| rate.time_of(Bytes::new(REFRESH))),
        }
    }

    /// Number of lanes in use.
    pub fn count(&self) -> u64 {
        u64::from(self.lanes.count_ones())
    }
}

/// The content of a flow control packet: IBA's has the lane, FCTBS and FCCL in 12 bits each, and a check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The lane.
    pub lane: u8,
    /// FCTBS: blocks sent by the sender of this update.
    pub sent: u32,
    /// FCCL: the count up to which the other end may send.
    pub limit: u32,
    /// The other end must answer with its own update.
    pub requests: bool,
}

impl Update {
    /// The packet that carries the update.
    pub fn packet(self, node: u32, bytes: u16) -> Packet {
        // It belongs to no flow and is not routed.
        let mut packet = Packet::new(Kind::FlowControl, node, 0, u32::MAX, u32::MAX);
        packet.control_mut().set_value(u64::from(self.sent) | u64::from(self.limit) << 32);
        packet.control_mut().set_pair(u32::from(self.lane), u32::from(self.requests));
        packet.wire = bytes;
        packet.priority = NO_QUEUE;
        packet
    }

    /// Reads a flow control packet.
    pub fn read(packet: &Packet) -> Self {
        let (value, (lane, requests)) = (packet.control().value(), packet.control().pair());
        Self { lane: lane as u8 & 7, sent: value as u32, limit: (value >> 32) as u32, requests: requests != 0 }
    }
}

/// Both directions of one lane, as one end sees them. Counts wrap.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// FCTBS.
    sent: u32,
    /// FCCL of the last update from the other end.
    limit: u32,
    /// ABR.
    received: u32,
    /// Blocks of packets that arrived and are still stored.
    held: u32,
    /// FCCL of the last update sent.
    advertised: u32,
    /// Blocks of the packet that waits for credits.
    needs: u32,
    /// Since when a packet has waited for credits.
    blocked: Time,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct End {
    lanes: [Lane; LANES],
    limits: Limits,
    /// Lanes in use, one bit each.
    used: u8,
    /// Packets can be lost on the link.
    is_lossy: bool,
    /// Lanes with an update to send, one bit each.
    pending: u8,
    /// Lanes whose update requests an answer.
    requesting: u8,
    /// The event at which lanes that lack credits request them is pending.
    pub reminder: bool,
}

impl End {
    /// The end of a link that is up, after both ends have exchanged updates.
    pub fn new(limits: Limits, used: u8, is_lossy: bool) -> Self {
        let (limit, advertised) = (limits.buffer, limits.buffer);
        let lane = Lane { sent: 0, limit, received: 0, held: 0, advertised, needs: 0, blocked: Time::MAX };
        Self { lanes: [lane; LANES], limits, used, is_lossy, pending: 0, requesting: 0, reminder: false }
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether the other end has room for a packet of `blocks` blocks.
    #[inline]
    pub fn may_send(&self, lane: u8, blocks: u32) -> bool {
        let lane = &self.lanes[usize::from(lane)];
        lane.limit.wrapping_sub(lane.sent) >= blocks
    }

    /// A packet is sent.
    #[inline]
    pub fn spend(&mut self, lane: u8, blocks: u32) {
        debug_assert!(self.may_send(lane, blocks), "credits of lane {lane} are overrun: {:?}", self.lanes);
        let lane = &mut self.lanes[usize::from(lane)];
        lane.sent = lane.sent.wrapping_add(blocks);
    }

    /// A packet arrived.
    #[inline]
    pub fn receive(&mut self, lane: u8, blocks: u32) {
        let lane = &mut self.lanes[usize::from(lane)];
        lane.received = lane.received.wrapping_add(blocks);
    }

    /// Stores a packet; false if there is no room, which is an error of the other end.
    #[inline]
    pub fn hold(&mut self, lane: u8, blocks: u32) -> bool {
        let buffer = self.limits.buffer;
        let lane = &mut self.lanes[usize::from(lane)];
        let fits = lane.held + blocks <= buffer;
        debug_assert!(fits, "{} of {buffer} blocks are held, and {blocks} more have come", lane.held);
        if fits {
            lane.held += blocks;
        }
        fits
    }

    /// A stored packet has left.
    #[inline]
    pub fn free(&mut self, lane: u8, blocks: u32) {
        self.lanes[usize::from(lane)].held -= blocks;
    }

    /// Stored blocks.
    pub fn held(&self, lane: u8) -> u32 {
        self.lanes[usize::from(lane)].held
    }

    /// Blocks sent.
    pub fn sent(&self, lane: u8) -> u32 {
        self.lanes[usize::from(lane)].sent
    }

    /// Whether there is room for the packet that waits at the `other` end of the link. That end may not know yet.
    pub fn has_room(&self, lane: u8, other: &Self) -> bool {
        let Lane { sent, needs, .. } = other.lanes[usize::from(lane)];
        self.credit_limit(lane).wrapping_sub(sent) >= needs
    }

    /// FCCL: blocks that have arrived plus free blocks.
    #[inline]
    fn credit_limit(&self, lane: u8) -> u32 {
        let lane = &self.lanes[usize::from(lane)];
        lane.received.wrapping_add(self.limits.buffer - lane.held)
    }

    /// Whether an update is due: enough blocks are to be advertised, or any if the other end knows of too few for a
    /// largest packet.
    #[inline]
    pub fn is_due(&self, lane: u8) -> bool {
        let Lane { advertised, received, .. } = self.lanes[usize::from(lane)];
        let news = self.credit_limit(lane).wrapping_sub(advertised);
        news >= self.limits.update || news > 0 && advertised.wrapping_sub(received) < self.limits.largest
    }

    /// Plans an update of a lane.
    #[inline]
    pub fn plan(&mut self, lane: u8) {
        self.pending |= 1 << lane;
    }

    /// Whether an update is to be sent.
    #[inline]
    pub fn has_update(&self) -> bool {
        self.pending != 0
    }

    /// The next update; it counts as sent.
    pub fn take_update(&mut self) -> Option<Update> {
        if self.pending == 0 {
            return None;
        }
        let lane = self.pending.trailing_zeros() as u8;
        let (limit, bit) = (self.credit_limit(lane), 1u8 << lane);
        let requests = self.requesting & bit != 0;
        self.pending &= !bit;
        self.requesting &= !bit;
        let state = &mut self.lanes[usize::from(lane)];
        state.advertised = limit;
        Some(Update { lane, sent: state.sent, limit, requests })
    }

    /// An update has arrived. Blocks that the other end has sent and that have not arrived are lost and take no
    /// room, since links keep order.
    pub fn on_update(&mut self, update: Update) {
        let lane = &mut self.lanes[usize::from(update.lane)];
        lane.limit = update.limit;
        lane.received = update.sent;
        if update.requests || self.is_due(update.lane) {
            self.plan(update.lane);
        }
    }

    /// A packet waits for credits of this lane.
    pub fn block(&mut self, lane: u8, now: Time, needs: u32) {
        let lane = &mut self.lanes[usize::from(lane)];
        lane.blocked = lane.blocked.min(now);
        lane.needs = needs;
    }

    /// Ends the wait of a lane if it has enough credits now. Returns whether it did.
    pub fn unblock(&mut self, lane: u8) -> bool {
        let Lane { blocked, needs, .. } = self.lanes[usize::from(lane)];
        let free = blocked < Time::MAX && self.may_send(lane, needs);
        if free {
            self.lanes[usize::from(lane)].blocked = Time::MAX;
        }
        free
    }

    /// Lanes in which a packet waits for credits, and since when.
    pub fn blocked(&self) -> impl Iterator<Item = (u8, Time)> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter(|(_, lane)| lane.blocked < Time::MAX).map(|(index, lane)| (index as u8, lane.blocked))
    }

    /// On a link that loses packets: whether credits are outstanding, which may return only on request.
    pub fn lacks_credits(&self) -> bool {
        self.is_lossy && self.missing() != 0
    }

    fn missing(&self) -> u8 {
        let buffer = self.limits.buffer;
        let lanes = self.lanes.iter().enumerate();
        let missing = lanes.filter(|(_, lane)| lane.limit.wrapping_sub(lane.sent) != buffer);
        missing.fold(0, |mask, (index, _)| mask | 1 << index) & self.used
    }

    /// Requests updates for lanes that lack credits.
    pub fn request(&mut self) {
        self.requesting |= self.missing();
        self.pending |= self.requesting;
    }

    /// The link went down or came up. Both ends count from zero; packets stored from before take room. Nothing may
    /// be sent until an update from the other end has arrived.
    pub fn reset(&mut self, up: bool) {
        for lane in &mut self.lanes {
            *lane = Lane { sent: 0, limit: 0, received: 0, advertised: 0, needs: 0, blocked: Time::MAX, ..*lane };
        }
        self.pending = if up { self.used } else { 0 };
        self.requesting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn rules(credits: Credits) -> Rules {
        Rules { credits, lanes: 0b11, frame: 1_024, gap: 2 }
    }

    #[test]
    fn packets_take_whole_blocks() {
        assert_eq!([1, 64, 65, 4_122, u16::MAX].map(blocks), [1, 1, 2, 65, 1024]);
    }

    #[test]
    fn the_default_buffer_keeps_a_link_busy() {
        let rate = Rate::from_gbps(100);
        // Propagation of one microsecond in both directions is 25,000 bytes; two frames with gaps and a flow
        // control packet are 2,060: 27 packets.
        let usual = rules(Credits::default());
        assert_eq!(usual.packets_out(rate, Time::from_us(1)), 27_060u64.div_ceil(1_026));
        let limits = usual.limits(rate, Time::from_us(1));
        assert_eq!((limits.buffer, limits.update, limits.largest), (27 * 16 * 4 / 3, 27 * 16 / 3, 16));
        assert_eq!(limits.refresh, Time::from_ps(262_144 * 80));
        // Updates are sent for a quarter of a configured buffer; a configured update size is added to the buffer.
        let given = |buffer: Option<u64>, update: Option<u64>| {
            let [buffer, update] = [buffer, update].map(|size| size.map(Bytes::new));
            let limits = rules(Credits { buffer, update, ..Credits::default() }).limits(rate, Time::from_us(1));
            (limits.buffer, limits.update)
        };
        assert_eq!(given(Some(64_000), None), (1_000, 250));
        assert_eq!(given(Some(64_063), Some(100)), (1_000, 2));
        assert_eq!(given(None, Some(0)), (27 * 16, 1));
        assert_eq!(given(None, Some(640)), (27 * 16 + 10, 10));
    }

    #[test]
    fn an_update_survives_its_packet() {
        for (lane, sent, limit, requests) in [(0, 0, 1, false), (7, u32::MAX, 5, true)] {
            let update = Update { lane, sent, limit, requests };
            let packet = update.packet(3, 6);
            assert_eq!((Update::read(&packet), packet.wire, packet.priority), (update, 6, NO_QUEUE));
        }
    }

    /// Two ends, whose limits are given in blocks.
    fn ends(buffer: u32, update: u32, largest: u32) -> (End, End) {
        let limits = Limits { buffer, update, largest, refresh: Time::from_us(1) };
        (End::new(limits, 0b1111, true), End::new(limits, 0b1111, true))
    }

    #[test]
    fn updates_are_coalesced_unless_credits_are_short() {
        let (mut sender, mut receiver) = ends(10, 4, 2);
        let pass = |sender: &mut End, receiver: &mut End, blocks| {
            sender.spend(0, blocks);
            receiver.receive(0, blocks);
        };
        // All leave at once: the fourth block makes an update due.
        for (count, due) in [(1, false), (2, false), (3, false), (4, true)] {
            pass(&mut sender, &mut receiver, 1);
            assert_eq!(receiver.is_due(0), due, "{count}");
        }
        receiver.plan(0);
        let update = receiver.take_update().expect("it is due");
        assert_eq!((update.limit, update.requests, receiver.has_update()), (14, false, false));
        sender.on_update(update);
        assert!(sender.may_send(0, 10) && !sender.may_send(0, 11));
        // Stored, until the sender knows of one block: then each block that leaves makes an update due.
        for blocks in [3, 3, 3] {
            pass(&mut sender, &mut receiver, blocks);
            assert!(receiver.hold(0, blocks));
        }
        assert!(sender.may_send(0, 1) && !sender.may_send(0, 2) && !receiver.is_due(0));
        receiver.free(0, 3);
        assert!(receiver.is_due(0), "three blocks, and the sender cannot send a packet of two");
    }

    #[test]
    fn lost_packets_cost_credits_until_they_are_requested() {
        let (mut sender, mut receiver) = ends(10, 1, 5);
        for lane in [0, 3] {
            sender.spend(lane, 5);
            sender.spend(lane, 5);
            receiver.receive(lane, 5);
        }
        // The second packet of each lane was lost, and so is the receiver's update.
        assert!(receiver.is_due(0) && sender.lacks_credits());
        receiver.plan(0);
        receiver.take_update();
        assert!(!receiver.is_due(0));
        sender.request();
        for _ in 0..2 {
            let question = sender.take_update().expect("it requests");
            assert!(question.requests && question.sent == 10);
            receiver.on_update(question);
            let answer = receiver.take_update().expect("it answers");
            assert!(!answer.requests);
            sender.on_update(answer);
        }
        assert!(!sender.lacks_credits() && !sender.has_update() && !receiver.has_update());
        assert!(sender.may_send(0, 10) && sender.may_send(3, 10));
    }

    #[test]
    fn a_link_that_comes_up_advertises_what_is_free() {
        let (mut sender, mut receiver) = ends(10, 3, 5);
        sender.spend(1, 6);
        receiver.receive(1, 6);
        assert!(receiver.hold(1, 6));
        sender.block(1, Time::from_us(3), 5);
        for up in [false, true] {
            sender.reset(up);
            receiver.reset(up);
        }
        assert_eq!((sender.blocked().count(), sender.may_send(1, 1)), (0, false));
        while let Some(update) = receiver.take_update() {
            sender.on_update(update);
        }
        assert!(!sender.may_send(5, 1), "a lane that is not in use");
        assert!(sender.may_send(1, 4) && !sender.may_send(1, 5));
        receiver.free(1, 6);
        assert!(receiver.is_due(1));
    }

    proptest! {
        /// For any order of sending, storing, loss and updates: the receiver always has room, and once all packets
        /// have left and ends that lack credits have requested them, all credits are back. Counts begin near their
        /// wrap.
        #[test]
        fn buffer_is_never_overrun_and_credits_come_back(
            steps in prop::collection::vec((0u8..5, 1u32..6, any::<bool>()), 1..300),
            buffer in 6u32..40, update in 1u32..40, start in prop_oneof![Just(0u32), Just(u32::MAX - 20)],
        ) {
            let (mut sender, mut receiver) = ends(buffer, update, 5);
            for end in [&mut sender, &mut receiver] {
                let lane = &mut end.lanes[2];
                (lane.sent, lane.received) = (start, start);
                (lane.limit, lane.advertised) = (start.wrapping_add(buffer), start.wrapping_add(buffer));
            }
            let (mut data, mut words) = (VecDeque::new(), VecDeque::new());
            let mut here: VecDeque<u32> = VecDeque::new();
            let speak = |receiver: &mut End, words: &mut VecDeque<Update>| {
                if receiver.is_due(2) {
                    receiver.plan(2);
                }
                words.extend(receiver.take_update());
            };
            for (what, blocks, flag) in steps {
                match what {
                    0 | 1 if sender.may_send(2, blocks) => {
                        sender.spend(2, blocks);
                        data.push_back(blocks);
                    }
                    2 => if let Some(blocks) = data.pop_front() && flag {
                        receiver.receive(2, blocks);
                        prop_assert!(receiver.hold(2, blocks));
                        here.push_back(blocks);
                    },
                    3 => if let Some(blocks) = here.pop_front() {
                        receiver.free(2, blocks);
                    },
                    4 => if let Some(word) = words.pop_front() && flag {
                        sender.on_update(word);
                    },
                    _ => {}
                }
                speak(&mut receiver, &mut words);
                prop_assert!(receiver.held(2) <= buffer);
            }
            // All packets in flight are lost; stored ones leave.
            here.drain(..).for_each(|blocks| receiver.free(2, blocks));
            sender.request();
            while let Some(question) = sender.take_update() {
                receiver.on_update(question);
                while let Some(answer) = receiver.take_update() {
                    sender.on_update(answer);
                }
            }
            prop_assert!(sender.may_send(2, buffer) && !sender.lacks_credits());
        }
    }
}
