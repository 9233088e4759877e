//! Selective repeat: the sender's half.
//!
//! It has one of two ways to find losses:
//! - RACK-TLP (RFC 8985), by time: see [`super::rack`].
//! - Forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996), by distance: a packet is lost when one that was sent
//!   `reordering` packets later has arrived. A packet sent again is lost again when `reordering` packets sent after it
//!   have arrived; of several packets sent again only the oldest is examined.
//!
//! Packets are examined in the order in which they were sent, so that an acknowledgement costs the same however large
//! the window is.
//!
//! A packet that an underlay holds has not been sent: it counts for the window of the law, but no loss can be found of
//! it, and its time of sending is the one at which it leaves the underlay.

use super::{
    acked::Acked,
    blocks::Blocks,
    rack::{Rack, ReorderingWindow, Transmission},
};
use incast_units::Time;
use std::{collections::VecDeque, ops::Range};

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// The packet that caused it.
    pub position: u32,
    /// All packets below have arrived.
    pub cumulative: u32,
    /// What else has arrived beyond a gap.
    pub blocks: Option<Blocks>,
    /// When the packet that caused it was sent, in picoseconds.
    pub stamp: u64,
    /// That packet had arrived before.
    pub is_duplicate: bool,
    /// When the acknowledgement arrived, in picoseconds.
    pub now: u64,
    /// The smoothed RTT, in picoseconds.
    pub smoothed_rtt: u64,
}

/// The time of sending of a packet that is held.
const NOT_YET: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// Sent once.
    InFlight,
    /// Sent more than once, and on its way.
    Again,
    Arrived,
    Lost,
    /// Handed over to an underlay, which holds it.
    Held,
}

/// A packet that was sent, or handed over to an underlay.
#[derive(Clone, Copy, Debug)]
struct Entry {
    sent: Transmission,
    state: State,
}

/// A packet that was sent again.
#[derive(Clone, Copy, Debug)]
struct Again {
    packet: u32,
    stamp: u64,
    /// Arrivals of packets sent later.
    later: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct SelectiveRepeat {
    total: u32,
    reordering: u32,
    acked: u32,
    unsent: u32,
    /// Sent or held, and neither arrived nor lost.
    in_flight: u32,
    /// Of those, the ones that are held.
    held: u32,
    /// One past the highest packet known to have arrived.
    highest: u32,
    /// Every packet below was examined for its first loss.
    examined: u32,
    /// Packets `acked..unsent`, in a ring.
    entries: Vec<Entry>,
    /// Lost packets in the order of detection; entries that arrived meanwhile are skipped.
    lost: VecDeque<u32>,
    /// Packets sent again and not known to have arrived, in the order of sending.
    again: VecDeque<Again>,
    /// The SACK blocks of the last acknowledgement that had some: all of them is known to have arrived.
    known: [Range<u32>; 2],
    /// Losses are found by time.
    rack: Option<Rack>,
}

impl SelectiveRepeat {
    /// A flow of `packets` packets. With a `wait` losses are found by RACK-TLP, for which `reordering` is DupThresh.
    pub fn new(packets: u32, reordering: u32, wait: Option<ReorderingWindow>) -> Self {
        Self {
            total: packets,
            reordering: reordering.max(1),
            acked: 0,
            unsent: 0,
            in_flight: 0,
            held: 0,
            highest: 0,
            examined: 0,
            entries: Vec::new(),
            lost: VecDeque::new(),
            again: VecDeque::new(),
            known: [0..0, 0..0],
            rack: wait.map(Rack::new),
        }
    }

    #[inline]
    fn place(&self, packet: u32) -> usize {
        packet as usize & (self.entries.len() - 1)
    }

    #[inline]
    fn entry(&self, packet: u32) -> Entry {
        self.entries[self.place(packet)]
    }

    #[inline(always)]
    pub(super) fn next(&self) -> Option<(u32, bool)> {
        match self.lost.front() {
            Some(packet) => Some((*packet, true)),
            None if self.unsent < self.total => Some((self.unsent, false)),
            None => None,
        }
    }

    #[inline(always)]
    pub(super) fn sent(&mut self, stamp: u64) {
        if let Some(packet) = self.lost.pop_front() {
            self.sent_again(packet, stamp);
        } else if self.unsent < self.total {
            if (self.unsent - self.acked) as usize >= self.entries.len() {
                self.grow();
            }
            let place = self.place(self.unsent);
            self.entries[place] = Entry { sent: Transmission { stamp, again: false }, state: State::InFlight };
            self.unsent += 1;
        } else {
            return;
        }
        self.in_flight += 1;
    }

    /// The packet of [`Self::next`] was handed over to an underlay, which holds it.
    pub(super) fn hold(&mut self) {
        let Some((packet, _)) = self.next() else { return };
        self.sent(NOT_YET);
        let place = self.place(packet);
        self.entries[place].state = State::Held;
        self.held += 1;
    }

    /// A packet has left the underlay at `stamp`: it is sent now. True if it was never sent before; a copy of a packet
    /// that has arrived meanwhile changes nothing.
    pub(super) fn leave(&mut self, packet: u32, stamp: u64) -> bool {
        if packet < self.acked || self.entry(packet).state != State::Held {
            return false;
        }
        let place = self.place(packet);
        let Entry { sent, state } = &mut self.entries[place];
        sent.stamp = stamp;
        *state = if sent.again { State::Again } else { State::InFlight };
        self.held -= 1;
        let is_new = !sent.again;
        // What was handed over last is at the back, and leaves last: it is mostly near there.
        if !is_new && let Some(again) = self.again.iter_mut().rfind(|again| again.packet == packet) {
            again.stamp = stamp;
        }
        is_new
    }

    #[inline(never)]
    fn sent_again(&mut self, packet: u32, stamp: u64) {
        let place = self.place(packet);
        self.entries[place] = Entry { sent: Transmission { stamp, again: true }, state: State::Again };
        self.again.push_back(Again { packet, stamp, later: 0 });
        self.forget_arrived();
    }

    #[cold]
    fn grow(&mut self) {
        let larger = (self.entries.len() * 2).max(16);
        let none = Entry { sent: Transmission::default(), state: State::Arrived };
        let mut entries = vec![none; larger];
        for packet in self.acked..self.unsent {
            entries[packet as usize & (larger - 1)] = self.entries[self.place(packet)];
        }
        self.entries = entries;
    }

    /// Records that a packet has arrived; true if that is new.
    #[inline]
    fn arrive(&mut self, packet: u32, ack: &Ack) -> bool {
        let place = self.place(packet);
        let Entry { sent, state } = self.entries[place];
        match state {
            State::Arrived => return false,
            State::InFlight | State::Again => self.in_flight -= 1,
            // It stays in the list of lost packets until it is skipped there.
            State::Lost => {}
            State::Held => {
                // An earlier transmission has arrived.
                self.in_flight -= 1;
                self.held -= 1;
                self.entries[place].state = State::Arrived;
                return true;
            }
        }
        self.entries[place].state = State::Arrived;
        if let Some(rack) = &mut self.rack {
            rack.on_delivered(packet, sent, self.highest, ack.now, ack.stamp);
        }
        true
    }

    #[inline(always)]
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Acked {
        if self.rack.is_some() {
            return self.on_ack_by_time(ack);
        }
        let mut result = Acked::default();
        self.take(ack, &mut result);
        let is_behind = self.examined < self.highest.saturating_sub(self.reordering);
        if is_behind || !self.lost.is_empty() || !self.again.is_empty() {
            self.detect(ack.stamp, &mut result);
        }
        result
    }

    /// Records what has arrived by an acknowledgement.
    #[inline(always)]
    fn take(&mut self, ack: &Ack, result: &mut Acked) {
        let cumulative = ack.cumulative.min(self.unsent);
        let last = self.total - 1;
        while self.acked < cumulative {
            let is_new = self.arrive(self.acked, ack);
            result.packets += u32::from(is_new);
            result.last |= is_new && self.acked == last;
            if let Some(rack) = &mut self.rack {
                rack.sacked -= u32::from(!is_new);
            }
            self.acked += 1;
        }
        let position = ack.position;
        let mut end = if position < self.unsent { position + 1 } else { 0 };
        if let Some(blocks) = ack.blocks {
            // In the order of positions.
            for (place, block) in [blocks.second(position), blocks.first(position)].into_iter().enumerate() {
                let block = block.start.min(self.unsent)..block.end.min(self.unsent);
                end = end.max(block.end);
                self.take_block(place, block, ack, result);
            }
        } else if position < self.unsent {
            self.take_beyond(position, ack, result);
        }
        self.highest = self.highest.max(self.acked).max(end);
        self.examined = self.examined.max(self.acked);
    }

    /// Records that the packets of a SACK block have arrived. Of the same block, which has mostly grown, the last
    /// acknowledgement has told.
    #[inline(never)]
    fn take_block(&mut self, place: usize, block: Range<u32>, ack: &Ack, result: &mut Acked) {
        let known = std::mem::replace(&mut self.known[place], block.clone());
        let (below, above) = (block.start..block.end.min(known.start), block.start.max(known.end)..block.end);
        below.chain(above).for_each(|packet| self.take_beyond(packet, ack, result));
    }

    /// Records that a packet has arrived, unless that is acknowledged anyway.
    #[inline(always)]
    fn take_beyond(&mut self, packet: u32, ack: &Ack, result: &mut Acked) {
        if packet < self.acked {
            return;
        }
        let is_new = self.arrive(packet, ack);
        result.packets += u32::from(is_new);
        result.last |= is_new && packet == self.total - 1;
        if let Some(rack) = &mut self.rack {
            rack.sacked += u32::from(is_new);
        }
    }

    /// Looks for losses by distance, after an arrival of a packet sent at `stamp`.
    #[inline(never)]
    fn detect(&mut self, stamp: u64, result: &mut Acked) {
        while self.examined < self.highest.saturating_sub(self.reordering) {
            if self.entry(self.examined).state == State::InFlight {
                self.lose(self.examined, result);
            }
            self.examined += 1;
        }
        self.forget_arrived();
        if let Some(oldest) = self.again.front_mut()
            && stamp > oldest.stamp
        {
            oldest.later += 1;
            if oldest.later >= self.reordering {
                let packet = oldest.packet;
                self.again.pop_front();
                self.lose(packet, result);
                self.forget_arrived();
            }
        }
    }

    /// A packet in flight is lost.
    fn lose(&mut self, packet: u32, result: &mut Acked) {
        let place = self.place(packet);
        let Entry { sent, state } = &mut self.entries[place];
        *state = State::Lost;
        if sent.again {
            result.resent = result.resent.max(Some(Time::from_ps(sent.stamp)));
        }
        self.in_flight -= 1;
        self.lost.push_back(packet);
        if result.lost == 0 {
            result.first_lost = packet;
        }
        result.last_lost = result.last_lost.max(packet);
        result.lost += 1;
    }

    // ---- By time ---------------------------------------------------------------------------------------------

    /// An acknowledgement, with RACK-TLP.
    #[inline(always)]
    fn on_ack_by_time(&mut self, ack: &Ack) -> Acked {
        let mut result = Acked::default();
        if let Some(rack) = &mut self.rack {
            rack.on_ack(ack.now, ack.stamp);
        }
        self.take(ack, &mut result);
        let Some(rack) = &mut self.rack else { return result };
        rack.adapt(self.acked, self.unsent, ack.is_duplicate);
        // While all arrives in order, everything in flight was sent later than what has arrived.
        let is_behind = self.examined < self.unsent
            && rack.is_older(self.examined, self.entries[self.examined as usize & (self.entries.len() - 1)].sent);
        if result.packets > 0 && (is_behind || !self.lost.is_empty() || !self.again.is_empty()) {
            self.detect_by_time(ack.now, ack.smoothed_rtt, &mut result);
        } else if result.packets > 0 {
            rack.stop_waiting();
        }
        self.end_probe(ack, &mut result);
        result
    }

    /// Looks for losses by time, at `now` (RFC 8985, section 6.2, step 5).
    #[inline(never)]
    fn detect_by_time(&mut self, now: u64, smoothed_rtt: u64, result: &mut Acked) {
        let Some(mut rack) = self.rack.take() else { return };
        let window = rack.window(smoothed_rtt, self.reordering);
        rack.stop_waiting();
        let mut waits = false;
        for packet in self.examined..self.unsent {
            let Entry { sent, state } = self.entry(packet);
            if state == State::Held && !sent.again {
                // Nor has anything after it been sent.
                break;
            }
            if state == State::InFlight {
                if !rack.is_older(packet, sent) {
                    break;
                }
                let lost_at = rack.lost_at(sent, window);
                if lost_at > now {
                    rack.wait_until(lost_at);
                    waits = true;
                    continue;
                }
                self.lose(packet, result);
            }
            if !waits {
                self.examined = packet + 1;
            }
        }
        self.forget_arrived();
        let mut place = 0;
        while let Some(again) = self.again.get(place) {
            let packet = again.packet;
            if !self.is_in_flight(packet) {
                self.again.remove(place);
                continue;
            }
            let sent = self.entry(packet).sent;
            if !rack.is_older(packet, sent) {
                break;
            }
            let lost_at = rack.lost_at(sent, window);
            if lost_at > now {
                rack.wait_until(lost_at);
                place += 1;
            } else {
                self.again.remove(place);
                self.lose(packet, result);
            }
        }
        self.forget_arrived();
        if result.lost > 0 {
            result.starts_recovery = rack.enter_recovery(self.unsent);
        }
        self.rack = Some(rack);
    }

    /// When the packet on its way that was sent the longest ago was sent, where losses are not found by time.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        self.forget_arrived();
        let is_over = |state| matches!(state, State::Arrived | State::Lost | State::Again);
        while self.examined < self.unsent && is_over(self.entry(self.examined).state) {
            self.examined += 1;
        }
        let next = (self.examined < self.unsent).then(|| self.entry(self.examined));
        let once = next.filter(|entry| entry.state == State::InFlight).map(|entry| entry.sent.stamp);
        let again = self.again.front().map(|again| again.stamp).filter(|stamp| *stamp != NOT_YET);
        once.into_iter().chain(again).min()
    }

    /// When a packet that is in flight was last sent.
    pub(super) fn sent_at(&self, packet: u32) -> Option<u64> {
        if !(self.acked..self.unsent).contains(&packet) {
            return None;
        }
        match self.entry(packet).state {
            State::InFlight | State::Again => Some(self.entry(packet).sent.stamp),
            State::Arrived | State::Held | State::Lost => None,
        }
    }

    /// Takes what was sent at `until` or before, and has not arrived, as lost.
    pub(super) fn on_overdue(&mut self, until: u64) -> Acked {
        let mut result = Acked::default();
        while self.oldest().is_some_and(|oldest| oldest <= until) {
            let again = self.again.front().filter(|again| again.stamp <= until).map(|again| again.packet);
            let packet = again.unwrap_or(self.examined);
            self.lose(packet, &mut result);
        }
        result
    }

    /// When a packet that may only be late is taken as lost.
    #[inline]
    pub(super) fn late_until(&self) -> Option<Time> {
        self.rack.as_ref()?.due()
    }

    /// That time has come: takes packets that are still missing as lost.
    pub(super) fn on_late(&mut self, now: u64, smoothed_rtt: u64) -> Acked {
        let mut result = Acked::default();
        self.detect_by_time(now, smoothed_rtt, &mut result);
        result
    }

    /// Ends the episode of a probe. What it has repaired is reported as a loss, but not sent again.
    #[inline]
    fn end_probe(&mut self, ack: &Ack, result: &mut Acked) {
        let Some(rack) = &mut self.rack else { return };
        let duplicate = ack.is_duplicate.then_some(ack.position);
        if let Some(repaired) = rack.ends_episode(self.acked, duplicate) {
            if result.lost == 0 {
                result.first_lost = repaired;
            }
            result.last_lost = result.last_lost.max(repaired);
            result.lost += 1;
        }
    }

    /// Drops list heads that have arrived meanwhile.
    fn forget_arrived(&mut self) {
        while self.lost.front().is_some_and(|packet| self.has_arrived(*packet)) {
            self.lost.pop_front();
        }
        while self.again.front().is_some_and(|again| !self.is_in_flight(again.packet)) {
            self.again.pop_front();
        }
    }

    fn has_arrived(&self, packet: u32) -> bool {
        packet < self.acked || self.entry(packet).state == State::Arrived
    }

    /// It is sent or held, and neither arrived nor lost.
    fn is_in_flight(&self, packet: u32) -> bool {
        packet >= self.acked && matches!(self.entry(packet).state, State::InFlight | State::Again | State::Held)
    }

    fn is_held(&self, packet: u32) -> bool {
        self.entry(packet).state == State::Held
    }

    /// The retransmission timer has expired: everything in flight that was sent is lost. By time, only the first packet
    /// and those that have been missing for an RTT and the reordering window (RFC 8985, section 6.3).
    pub(super) fn on_timeout(&mut self, now: u64, smoothed_rtt: u64) {
        let is_missing = |packet: &u32| !self.has_arrived(*packet) && !self.is_held(*packet);
        let first = (self.acked..self.unsent).find(is_missing);
        let keeps = |packet: u32| match &self.rack {
            _ if self.is_held(packet) => true,
            Some(rack) if first != Some(packet) => {
                let window = rack.window(smoothed_rtt, self.reordering);
                self.is_in_flight(packet) && rack.lost_at(self.entry(packet).sent, window) > now
            }
            _ => false,
        };
        let kept: Vec<u32> = (self.acked..self.unsent).filter(|packet| keeps(*packet)).collect();
        self.lost.clear();
        self.again.retain(|again| kept.binary_search(&again.packet).is_ok());
        for packet in self.acked..self.unsent {
            let place = self.place(packet);
            if self.entries[place].state != State::Arrived && kept.binary_search(&packet).is_err() {
                self.entries[place].state = State::Lost;
                self.lost.push_back(packet);
            }
        }
        self.in_flight = kept.len() as u32;
        self.examined = kept.first().copied().unwrap_or(self.unsent);
        if let Some(rack) = &mut self.rack {
            rack.on_timeout(self.unsent);
        }
    }

    /// A probe may be planned.
    #[inline]
    pub(super) fn may_probe(&self) -> bool {
        self.rack.as_ref().is_none_or(|rack| rack.may_probe())
    }

    /// Losses are found by time.
    #[inline]
    pub(super) fn is_by_time(&self) -> bool {
        self.rack.is_some()
    }

    /// See [`super::Scoreboard::on_resend`].
    pub(super) fn on_resend(&mut self, first: u32, count: u32) -> Acked {
        let mut result = Acked::default();
        let wanted = first.max(self.acked)..first.saturating_add(count).min(self.unsent);
        self.lost.retain(|packet| !wanted.contains(packet));
        let held: Vec<u32> = wanted.clone().filter(|packet| self.is_held(*packet)).collect();
        self.again.retain(|again| !wanted.contains(&again.packet) || held.contains(&again.packet));
        // Each goes to the front, so the first one last.
        for packet in wanted.rev() {
            let place = self.place(packet);
            let Entry { sent, state } = &mut self.entries[place];
            match state {
                // What is held goes anyway.
                State::Arrived | State::Held => continue,
                State::InFlight | State::Again => {
                    *state = State::Lost;
                    if sent.again {
                        result.resent = result.resent.max(Some(Time::from_ps(sent.stamp)));
                    }
                    self.in_flight -= 1;
                    result.lost += 1;
                    result.first_lost = packet;
                    result.last_lost = result.last_lost.max(packet);
                }
                State::Lost => {}
            }
            self.lost.push_front(packet);
        }
        self.forget_arrived();
        result
    }

    /// Sends a packet to provoke an acknowledgement (RFC 8985, section 7.3): the last one in flight again, or by time a
    /// new one if there is one. False if nothing is in flight. There is no probe while packets are held.
    pub(super) fn probe(&mut self) -> bool {
        if self.in_flight == 0 {
            return false;
        }
        let sends_new = self.unsent < self.total;
        if let Some(rack) = &mut self.rack {
            rack.on_probe(self.unsent + u32::from(sends_new), !sends_new);
            if sends_new {
                return true;
            }
        }
        // The highest packet in flight; packets above it have arrived or are lost.
        let Some(packet) = (self.acked..self.unsent).rev().find(|packet| self.is_in_flight(*packet)) else {
            return false;
        };
        // The law does not see this loss.
        let place = self.place(packet);
        self.entries[place].state = State::Lost;
        self.in_flight -= 1;
        self.lost.push_front(packet);
        self.again.retain(|again| again.packet != packet);
        true
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }
    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.held
    }
    #[inline]
    pub(super) fn acked(&self) -> u32 {
        self.acked
    }
    #[inline]
    pub(super) fn unsent(&self) -> u32 {
        self.unsent
    }
    /// Lost packets that have arrived after all still count until they are skipped.
    pub(super) fn waiting(&self) -> u32 {
        self.total - self.unsent + self.lost.len() as u32
    }
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.acked == self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(position: u32, cumulative: u32, stamp: u64) -> Ack {
        Ack { position, cumulative, stamp, ..Ack::default() }
    }

    #[test]
    fn the_last_packet_is_new_once() {
        let mut send = SelectiveRepeat::new(4, 3, None);
        (0..4).for_each(|stamp| send.sent(stamp));
        assert_eq!(send.on_ack(&ack(3, 0, 3)), Acked { packets: 1, last: true, lost: 1, ..Acked::default() });
        // A copy of it brings an acknowledgement that covers more.
        assert_eq!(send.on_ack(&ack(3, 2, 3)), Acked { packets: 2, ..Acked::default() });
        assert_eq!(send.on_ack(&ack(2, 4, 2)), Acked { packets: 1, ..Acked::default() });
        assert!(send.is_done());
    }

    #[test]
    fn what_the_receiver_asks_for_goes_first() {
        let mut send = SelectiveRepeat::new(20, 3, None);
        (0..12).for_each(|stamp| send.sent(stamp));
        // 2 has arrived, 0 is acknowledged; 1 and 3 to 8 are lost by the arrival of 11.
        assert_eq!(send.on_ack(&ack(2, 1, 2)).lost, 0);
        assert_eq!(send.on_ack(&ack(11, 1, 11)).lost, 7);
        let order = |send: &SelectiveRepeat| send.lost.iter().copied().collect::<Vec<_>>();
        assert_eq!((order(&send), send.in_flight()), (vec![1, 3, 4, 5, 6, 7, 8], 2));
        // Of 7 to 13 some are lost, 9 and 10 in flight, one has arrived, and two were never sent.
        assert_eq!(send.on_resend(7, 7), Acked { lost: 2, first_lost: 9, last_lost: 10, ..Acked::default() });
        assert_eq!((order(&send), send.in_flight()), (vec![7, 8, 9, 10, 1, 3, 4, 5, 6], 0));
        // What is acknowledged is not sent again.
        assert_eq!(send.on_resend(0, 1), Acked::default());
        assert_eq!(send.on_resend(19, u32::MAX), Acked::default());
        assert_eq!(send.next(), Some((7, true)));
        (12..21).for_each(|stamp| send.sent(stamp));
        assert_eq!((send.next(), send.in_flight()), (Some((12, false)), 9));
    }

    /// Ten packets are sent, one each nanosecond; 0 and 5 are lost, and 0 is sent again, or held.
    fn two_losses(holds: bool) -> SelectiveRepeat {
        let mut send = SelectiveRepeat::new(20, 3, Some(ReorderingWindow::Adaptive));
        (0..10).for_each(|packet| send.sent(1000 * packet));
        let ack = |position, now| Ack { now, smoothed_rtt: 10_000, ..ack(position, 0, 1000 * u64::from(position)) };
        [1, 2]
            .into_iter()
            .for_each(|packet| assert_eq!(send.on_ack(&ack(packet, 10_000 + 1000 * u64::from(packet))).lost, 0));
        let found = send.on_ack(&ack(3, 13_000));
        assert_eq!((found.lost, found.first_lost, send.next()), (1, 0, Some((0, true))));
        if holds {
            send.hold()
        } else {
            send.sent(13_000)
        }
        assert_eq!((send.in_flight(), send.held()), (7, u32::from(holds)));
        send.on_ack(&ack(4, 14_000));
        send
    }

    #[test]
    fn a_loss_is_found_at_the_same_time_while_the_oldest_packet_is_held() {
        let found = [false, true].map(|holds| {
            let mut send = two_losses(holds);
            let mut found = Vec::new();
            for packet in 6..10 {
                let (now, stamp) = (10_000 + 1000 * u64::from(packet), 1000 * u64::from(packet));
                let acked = send.on_ack(&Ack { now, smoothed_rtt: 10_000, ..ack(packet, 0, stamp) });
                found.push((acked.lost, acked.first_lost, send.late_until()));
            }
            (found, send.next())
        });
        assert_eq!(found[0], found[1]);
        assert_eq!(found[1].0.iter().map(|one| one.0).sum::<u32>(), 1);
        assert_eq!(found[1].1, Some((5, true)));
    }

    #[test]
    fn what_is_held_is_never_late_and_is_sent_when_it_leaves() {
        let mut send = two_losses(true);
        // However long it is held, it is not a candidate; 5 is, by the arrival of 6.
        let found = send.on_ack(&Ack { now: 16_000, smoothed_rtt: 10_000, ..ack(6, 0, 6000) });
        assert_eq!((found.first_lost, send.late_until()), (5, None));
        assert_eq!(send.on_late(1_000_000, 10_000), Acked::default());
        assert!(!send.leave(0, 900_000));
        assert_eq!(send.held(), 0);
        // A later packet arrives: 7 to 9 were sent long ago, 0 at 900 ns, which is an RTT ago.
        send.sent(901_000);
        let found = send.on_ack(&Ack { now: 911_000, smoothed_rtt: 10_000, ..ack(5, 0, 901_000) });
        assert_eq!((found.lost, send.lost.iter().copied().collect::<Vec<_>>()), (4, vec![7, 8, 9, 0]));
    }

    #[test]
    fn a_timeout_takes_what_was_sent_and_keeps_what_is_held() {
        for wait in [Some(ReorderingWindow::Adaptive), None] {
            let mut send = SelectiveRepeat::new(20, 3, wait);
            (0..4).for_each(|packet| send.sent(1000 * packet));
            (0..3).for_each(|_| send.hold());
            assert_eq!((send.in_flight(), send.held()), (7, 3));
            send.on_timeout(1_000_000, 10_000);
            assert_eq!((send.in_flight(), send.held(), send.next()), (3, 3, Some((0, true))));
            // What was never sent leaves as new.
            assert!(send.leave(4, 1_000_000));
            // An answer to an earlier transmission of a packet that is held: its copy leaves later, for nothing.
            send.hold();
            send.on_ack(&Ack { now: 1_000_001, ..ack(0, 1, 0) });
            assert_eq!((send.in_flight(), send.held()), (3, 2));
            assert!(!send.leave(0, 1_000_002));
            assert_eq!(send.held(), 2);
        }
    }

    #[test]
    fn a_probe_is_lost_by_what_was_sent_after_it() {
        let mut send = SelectiveRepeat::new(10, 3, None);
        (0..4).for_each(|stamp| send.sent(stamp));
        send.on_ack(&ack(2, 0, 2));
        send.on_ack(&ack(3, 0, 3));
        // Packet 0 is lost, 1 is the highest in flight; the probe goes first.
        assert!(send.probe());
        assert_eq!(send.next(), Some((1, true)));
        (4..8).for_each(|stamp| send.sent(stamp));
        // Three packets after the first copy of packet 1, but only one after the probe.
        assert_eq!(send.on_ack(&ack(4, 0, 6)), Acked { packets: 1, ..Acked::default() });
        assert_eq!(send.on_ack(&ack(5, 0, 7)), Acked { packets: 1, ..Acked::default() });
        assert_eq!(send.on_ack(&ack(5, 0, 8)).lost, 1);
    }
}
