//! Credit-based flow control of a link, for each virtual lane (InfiniBand volume 1, section 7.9): an end sends a packet only if
//! the other one has said that it has room for it.
//!
//! Lanes are the priorities of ports. Memory is counted in blocks of 64 bytes, and each packet takes whole ones. Both ends count all
//! blocks since the link came up, so that what is said is absolute and a lost word does no harm:
//!
//! - the sender knows FCTBS, the blocks that it has sent, and FCCL, up to where it may send;
//! - the receiver knows ABR, the blocks that have arrived, and says FCCL = ABR + what is free.
//!
//! docs/fabric.md has the rules, docs/infiniband.md where they come from.

use super::pause::NO_QUEUE;
use crate::config::Credits;
use crate::fabric::packet::{Kind, Packet};
use incast_units::{Bytes, Rate, Time};

/// Bytes of a block.
pub const BLOCK: u64 = 64;

/// Lanes of a port.
const LANES: usize = 8;

/// Memory of a lane is less than this many blocks, so that differences of counts have a sign.
pub const MOST_BLOCKS: u64 = 1 << 30;

/// Bytes that a link of four lanes passes in 65,536 symbol times, a symbol being a byte on a lane.
const REFRESH: u64 = 65_536 * 4;

/// Blocks that a packet of so many bytes takes.
#[inline]
pub fn blocks(wire: u16) -> u32 {
    u32::from(wire).div_ceil(BLOCK as u32)
}

/// Credits with what they need to know of the fabric.
#[derive(Clone, Debug)]
pub struct Rules {
    /// As configured.
    pub credits: Credits,
    /// Lanes that packets of this run can have, one bit each. Memory is set aside for these alone.
    pub lanes: u8,
    /// Bytes of the largest frame of any kind.
    pub frame: u64,
    /// Bytes between two frames.
    pub gap: u64,
}

/// What one end of a link has for each lane, and when it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory, in blocks.
    pub buffer: u32,
    /// The other end is told of so many blocks together.
    pub update: u32,
    /// Blocks of the largest frame: where fewer are known to be free, the other end is told of each.
    pub largest: u32,
    /// On links that lose packets, who misses credits says so after this time.
    pub refresh: Time,
}

impl Limits {
    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.buffer) * BLOCK
    }
}

impl Rules {
    /// Full frames that a sender has out before it hears that the first of them has gone on, on a link that is never idle: while
    /// that one is sent, travels, its credit waits for a frame in service, is sent, and travels.
    pub fn packets_out(&self, rate: Rate, delay: Time) -> u64 {
        let way = delay.saturating_mul(2);
        let cable = (u128::from(rate.bps()) * u128::from(way.ps())).div_ceil(8_000_000_000_000);
        let full = self.frame + self.gap;
        let frames = 2 * full + u64::from(self.credits.frame) + self.gap;
        u64::try_from(cable).unwrap_or(u64::MAX / 2).saturating_add(frames).div_ceil(full.max(1))
    }

    /// Memory of a lane at which a link of this rate and delay is never idle for lack of credits, in blocks, and how many of
    /// them are told of together: as configured, or enough of one for what the other holds back.
    fn memory(&self, rate: Rate, delay: Time) -> (u64, u64) {
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

    /// The limits of both ends of a link. Whether they make sense is checked before.
    pub fn limits(&self, rate: Rate, delay: Time) -> Limits {
        let (buffer, update) = self.memory(rate, delay);
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

/// What a flow control packet says: IBA's has the lane, FCTBS and FCCL in 12 bits each, and a check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The lane.
    pub lane: u8,
    /// FCTBS: blocks sent by who says it.
    pub sent: u32,
    /// FCCL: up to where the other end may send.
    pub limit: u32,
    /// The other end is to say the same of itself.
    pub asks: bool,
}

impl Update {
    /// The packet that says it.
    pub fn packet(self, node: u32, bytes: u16) -> Packet {
        // It belongs to no flow and is not routed.
        let mut packet = Packet::new(Kind::FlowControl, node, 0, u32::MAX, u32::MAX);
        packet.control_mut().set_value(u64::from(self.sent) | u64::from(self.limit) << 32);
        packet.control_mut().set_pair(u32::from(self.lane), u32::from(self.asks));
        packet.wire = bytes;
        packet.priority = NO_QUEUE;
        packet
    }

    /// What a flow control packet says.
    pub fn read(packet: &Packet) -> Self {
        let (value, (lane, asks)) = (packet.control().value(), packet.control().pair());
        Self { lane: lane as u8 & 7, sent: value as u32, limit: (value >> 32) as u32, asks: asks != 0 }
    }
}

/// Both directions of one lane, as one end sees them. Counts wrap.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// FCTBS.
    sent: u32,
    /// FCCL that the other end said last.
    limit: u32,
    /// ABR.
    received: u32,
    /// Blocks of what arrived and is still here.
    held: u32,
    /// FCCL that was said last.
    told: u32,
    /// Blocks that the packet needs which waits for credits.
    needs: u32,
    /// Since when one has been waiting for them.
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
    /// Lanes of which something is to be said, one bit each.
    pending: u8,
    /// Lanes in which the other end is to be asked.
    asking: u8,
    /// An event is pending at which lanes that miss credits ask.
    pub reminder: bool,
}

impl End {
    /// Of a link that is up, its two ends having told each other what they have.
    pub fn new(limits: Limits, used: u8, is_lossy: bool) -> Self {
        let (limit, told) = (limits.buffer, limits.buffer);
        let lane = Lane { sent: 0, limit, received: 0, held: 0, told, needs: 0, blocked: Time::MAX };
        Self { lanes: [lane; LANES], limits, used, is_lossy, pending: 0, asking: 0, reminder: false }
    }

    /// What it goes by.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// There is room for a packet of so many blocks.
    #[inline]
    pub fn may_send(&self, lane: u8, blocks: u32) -> bool {
        let lane = &self.lanes[usize::from(lane)];
        lane.limit.wrapping_sub(lane.sent) >= blocks
    }

    /// It is sent.
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

    /// It stays for now; false if there is no room for it, which the other end ought to have known.
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

    /// It has gone on.
    #[inline]
    pub fn free(&mut self, lane: u8, blocks: u32) {
        self.lanes[usize::from(lane)].held -= blocks;
    }

    /// Blocks that are here.
    pub fn held(&self, lane: u8) -> u32 {
        self.lanes[usize::from(lane)].held
    }

    /// FCCL: blocks that have arrived, and those that are free.
    #[inline]
    fn credit_limit(&self, lane: u8) -> u32 {
        let lane = &self.lanes[usize::from(lane)];
        lane.received.wrapping_add(self.limits.buffer - lane.held)
    }

    /// Whether the other end is to be told now: of enough blocks, or of any where it knows of too few for a largest packet.
    #[inline]
    pub fn is_due(&self, lane: u8) -> bool {
        let Lane { told, received, .. } = self.lanes[usize::from(lane)];
        let news = self.credit_limit(lane).wrapping_sub(told);
        news >= self.limits.update || news > 0 && told.wrapping_sub(received) < self.limits.largest
    }

    /// A lane has something to say.
    #[inline]
    pub fn plan(&mut self, lane: u8) {
        self.pending |= 1 << lane;
    }

    /// Something is to be said.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.pending != 0
    }

    /// The next that is to be said; it counts as said.
    pub fn take_update(&mut self) -> Option<Update> {
        if self.pending == 0 {
            return None;
        }
        let lane = self.pending.trailing_zeros() as u8;
        let (limit, bit) = (self.credit_limit(lane), 1u8 << lane);
        let asks = self.asking & bit != 0;
        self.pending &= !bit;
        self.asking &= !bit;
        let state = &mut self.lanes[usize::from(lane)];
        state.told = limit;
        Some(Update { lane, sent: state.sent, limit, asks })
    }

    /// The other end has said something. What it has sent and did not arrive was lost, and takes no room; links keep order.
    pub fn hear(&mut self, update: Update) {
        let lane = &mut self.lanes[usize::from(update.lane)];
        lane.limit = update.limit;
        lane.received = update.sent;
        if update.asks || self.is_due(update.lane) {
            self.plan(update.lane);
        }
    }

    /// A packet waits for this lane's credits.
    pub fn block(&mut self, lane: u8, now: Time, needs: u32) {
        let lane = &mut self.lanes[usize::from(lane)];
        lane.blocked = lane.blocked.min(now);
        lane.needs = needs;
    }

    /// No packet waits for them any more, if none is missing now.
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

    /// On a link that loses packets: some credits are not back yet, and may never be unless somebody asks.
    pub fn misses_credits(&self) -> bool {
        self.is_lossy && self.missing() != 0
    }

    fn missing(&self) -> u8 {
        let buffer = self.limits.buffer;
        let lanes = self.lanes.iter().enumerate();
        let missing = lanes.filter(|(_, lane)| lane.limit.wrapping_sub(lane.sent) != buffer);
        missing.fold(0, |mask, (index, _)| mask | 1 << index) & self.used
    }

    /// Lanes that miss credits ask.
    pub fn ask(&mut self) {
        self.asking |= self.missing();
        self.pending |= self.asking;
    }

    /// The link went down or came up. Both ends count from zero; what is still here from before takes room. Nothing may be sent
    /// until the other end has said what it has.
    pub fn reset(&mut self, up: bool) {
        for lane in &mut self.lanes {
            *lane = Lane { sent: 0, limit: 0, received: 0, told: 0, needs: 0, blocked: Time::MAX, ..*lane };
        }
        self.pending = if up { self.used } else { 0 };
        self.asking = 0;
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
    fn the_default_memory_keeps_a_link_busy() {
        let rate = Rate::from_gbps(100);
        // A microsecond each way is 25,000 bytes; two frames with gaps and a flow control packet are 2,060: 27 packets.
        let usual = rules(Credits::default());
        assert_eq!(usual.packets_out(rate, Time::from_us(1)), 27_060u64.div_ceil(1_026));
        let limits = usual.limits(rate, Time::from_us(1));
        assert_eq!((limits.buffer, limits.update, limits.largest), (27 * 16 * 4 / 3, 27 * 16 / 3, 16));
        assert_eq!(limits.refresh, Time::from_ps(262_144 * 80));
        // What is held back of a memory that is given is a quarter; what is given to be held back is added.
        let given = |buffer: Option<u64>, update: Option<u64>| {
            let [buffer, update] = [buffer, update].map(|size| size.map(Bytes::new));
            let limits =
                rules(Credits { buffer, update, ..Credits::default() }).limits(rate, Time::from_us(1));
            (limits.buffer, limits.update)
        };
        assert_eq!(given(Some(64_000), None), (1_000, 250));
        assert_eq!(given(Some(64_063), Some(100)), (1_000, 2));
        assert_eq!(given(None, Some(0)), (27 * 16, 1));
        assert_eq!(given(None, Some(640)), (27 * 16 + 10, 10));
    }

    #[test]
    fn a_packet_says_what_was_meant() {
        for (lane, sent, limit, asks) in [(0, 0, 1, false), (7, u32::MAX, 5, true)] {
            let update = Update { lane, sent, limit, asks };
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
    fn credits_are_told_of_together_unless_they_are_short() {
        let (mut sender, mut receiver) = ends(10, 4, 2);
        let pass = |sender: &mut End, receiver: &mut End, blocks| {
            sender.spend(0, blocks);
            receiver.receive(0, blocks);
        };
        // Gone on at once: the fourth block is worth a word.
        for (count, due) in [(1, false), (2, false), (3, false), (4, true)] {
            pass(&mut sender, &mut receiver, 1);
            assert_eq!(receiver.is_due(0), due, "{count}");
        }
        receiver.plan(0);
        let update = receiver.take_update().expect("it is due");
        assert_eq!((update.limit, update.asks, receiver.has_news()), (14, false, false));
        sender.hear(update);
        assert!(sender.may_send(0, 10) && !sender.may_send(0, 11));
        // Held, until the sender knows of one block: then each block that goes on is worth a word.
        for blocks in [3, 3, 3] {
            pass(&mut sender, &mut receiver, blocks);
            assert!(receiver.hold(0, blocks));
        }
        assert!(sender.may_send(0, 1) && !sender.may_send(0, 2) && !receiver.is_due(0));
        receiver.free(0, 3);
        assert!(receiver.is_due(0), "three blocks, and the sender cannot send a packet of two");
    }

    #[test]
    fn lost_packets_cost_credits_until_somebody_asks() {
        let (mut sender, mut receiver) = ends(10, 1, 5);
        for lane in [0, 3] {
            sender.spend(lane, 5);
            sender.spend(lane, 5);
            receiver.receive(lane, 5);
        }
        // The second of each lane was lost, and so is what the receiver says.
        assert!(receiver.is_due(0) && sender.misses_credits());
        receiver.plan(0);
        receiver.take_update();
        assert!(!receiver.is_due(0));
        sender.ask();
        for _ in 0..2 {
            let question = sender.take_update().expect("it asks");
            assert!(question.asks && question.sent == 10);
            receiver.hear(question);
            let answer = receiver.take_update().expect("it answers");
            assert!(!answer.asks);
            sender.hear(answer);
        }
        assert!(!sender.misses_credits() && !sender.has_news() && !receiver.has_news());
        assert!(sender.may_send(0, 10) && sender.may_send(3, 10));
    }

    #[test]
    fn a_link_that_comes_back_says_what_is_free() {
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
            sender.hear(update);
        }
        assert!(!sender.may_send(5, 1), "a lane that is not in use");
        assert!(sender.may_send(1, 4) && !sender.may_send(1, 5));
        receiver.free(1, 6);
        assert!(receiver.is_due(1));
    }

    proptest! {
        /// Whatever is sent, held, lost and said in whatever order: the receiver always has room, and once all has gone on and
        /// who misses credits has asked, all credits are back. Counts begin near where they wrap.
        #[test]
        fn memory_is_never_overrun_and_credits_come_back(
            steps in prop::collection::vec((0u8..5, 1u32..6, any::<bool>()), 1..300),
            buffer in 6u32..40, update in 1u32..40, start in prop_oneof![Just(0u32), Just(u32::MAX - 20)],
        ) {
            let (mut sender, mut receiver) = ends(buffer, update, 5);
            for end in [&mut sender, &mut receiver] {
                let lane = &mut end.lanes[2];
                (lane.sent, lane.received) = (start, start);
                (lane.limit, lane.told) = (start.wrapping_add(buffer), start.wrapping_add(buffer));
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
                        sender.hear(word);
                    },
                    _ => {}
                }
                speak(&mut receiver, &mut words);
                prop_assert!(receiver.held(2) <= buffer);
            }
            // All that is on its way is lost; what is here goes on.
            here.drain(..).for_each(|blocks| receiver.free(2, blocks));
            sender.ask();
            while let Some(question) = sender.take_update() {
                receiver.hear(question);
                while let Some(answer) = receiver.take_update() {
                    sender.hear(answer);
                }
            }
            prop_assert!(sender.may_send(2, buffer) && !sender.misses_credits());
        }
    }
}
