//! Selective repeat: the sender's half.
//!
//! Loss detection is that of forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996): a packet is lost when one
//! that was sent `reordering` packets later has arrived. A packet sent again is lost again when `reordering` packets
//! sent after it have arrived, which needs the time it was sent (the idea of RACK, RFC 8985). Each packet is examined
//! once, so that an acknowledgement costs the same however large the window is.

use super::acked::Acked;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// Sent once.
    InFlight,
    /// Sent more than once, and on its way.
    Again,
    Arrived,
    Lost,
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
    in_flight: u32,
    /// One past the highest packet known to have arrived.
    highest: u32,
    /// Every packet below was examined for its first loss.
    examined: u32,
    /// States of packets `acked..unsent`, in a ring.
    states: Vec<State>,
    /// Lost packets in the order of detection; entries that arrived meanwhile are skipped.
    lost: VecDeque<u32>,
    /// Packets sent again and not known to have arrived, in the order of sending.
    again: VecDeque<Again>,
}

impl SelectiveRepeat {
    /// A flow of `packets` packets.
    pub fn new(packets: u32, reordering: u32) -> Self {
        Self {
            total: packets,
            reordering: reordering.max(1),
            acked: 0,
            unsent: 0,
            in_flight: 0,
            highest: 0,
            examined: 0,
            states: Vec::new(),
            lost: VecDeque::new(),
            again: VecDeque::new(),
        }
    }

    #[inline]
    fn place(&self, packet: u32) -> usize {
        packet as usize & (self.states.len() - 1)
    }

    #[inline(always)] // on the path of every packet
    pub(super) fn next(&self) -> Option<(u32, bool)> {
        match self.lost.front() {
            Some(packet) => Some((*packet, true)),
            None if self.unsent < self.total => Some((self.unsent, false)),
            None => None,
        }
    }

    #[inline(always)] // on the path of every packet
    pub(super) fn sent(&mut self, stamp: u64) {
        if let Some(packet) = self.lost.pop_front() {
            self.sent_again(packet, stamp);
        } else if self.unsent < self.total {
            if (self.unsent - self.acked) as usize >= self.states.len() {
                self.grow();
            }
            let place = self.place(self.unsent);
            self.states[place] = State::InFlight;
            self.unsent += 1;
        } else {
            return;
        }
        self.in_flight += 1;
    }

    #[inline(never)] // rare: kept out of the path of packets
    fn sent_again(&mut self, packet: u32, stamp: u64) {
        let place = self.place(packet);
        self.states[place] = State::Again;
        self.again.push_back(Again { packet, stamp, later: 0 });
        self.forget_arrived();
    }

    #[cold]
    fn grow(&mut self) {
        let larger = (self.states.len() * 2).max(16);
        let mut states = vec![State::InFlight; larger];
        for packet in self.acked..self.unsent {
            states[packet as usize & (larger - 1)] = self.states[self.place(packet)];
        }
        self.states = states;
    }

    /// Records that a packet has arrived; true if that is new.
    #[inline]
    fn arrive(&mut self, packet: u32) -> bool {
        let place = self.place(packet);
        match self.states[place] {
            State::Arrived => return false,
            State::InFlight | State::Again => self.in_flight -= 1,
            // It stays in the list of lost packets until it is skipped there.
            State::Lost => {}
        }
        self.states[place] = State::Arrived;
        true
    }

    #[inline(always)] // on the path of every packet
    pub(super) fn on_ack(&mut self, position: u32, cumulative: u32, stamp: u64) -> Acked {
        let mut result = Acked::default();
        let cumulative = cumulative.min(self.unsent);
        let last = self.total - 1;
        while self.acked < cumulative {
            let is_new = self.arrive(self.acked);
            result.packets += u32::from(is_new);
            result.last |= is_new && self.acked == last;
            self.acked += 1;
        }
        if position >= self.acked && position < self.unsent {
            let is_new = self.arrive(position);
            result.packets += u32::from(is_new);
            result.last |= is_new && position == last;
        }
        self.highest =
            self.highest.max(self.acked).max(if position < self.unsent { position + 1 } else { 0 });
        self.examined = self.examined.max(self.acked);
        let is_behind = self.examined < self.highest.saturating_sub(self.reordering);
        if is_behind || !self.lost.is_empty() || !self.again.is_empty() {
            self.detect(stamp, &mut result);
        }
        result
    }

    /// Looks for losses after an arrival of a packet sent at `stamp`.
    #[inline(never)] // large: callers need not save registers for it
    fn detect(&mut self, stamp: u64, result: &mut Acked) {
        let note = |packet: u32, result: &mut Acked| {
            if result.lost == 0 {
                result.first_lost = packet;
            }
            result.lost += 1;
        };
        while self.examined < self.highest.saturating_sub(self.reordering) {
            let place = self.place(self.examined);
            if self.states[place] == State::InFlight {
                self.states[place] = State::Lost;
                self.in_flight -= 1;
                self.lost.push_back(self.examined);
                note(self.examined, result);
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
                let place = self.place(packet);
                self.states[place] = State::Lost;
                self.in_flight -= 1;
                self.lost.push_back(packet);
                note(packet, result);
                self.forget_arrived();
            }
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
        packet < self.acked || self.states[self.place(packet)] == State::Arrived
    }

    fn is_in_flight(&self, packet: u32) -> bool {
        packet >= self.acked && matches!(self.states[self.place(packet)], State::InFlight | State::Again)
    }

    pub(super) fn on_timeout(&mut self) {
        self.lost.clear();
        self.again.clear();
        for packet in self.acked..self.unsent {
            let place = self.place(packet);
            if self.states[place] != State::Arrived {
                self.states[place] = State::Lost;
                self.lost.push_back(packet);
            }
        }
        self.in_flight = 0;
        self.examined = self.unsent;
    }

    /// See [`super::Scoreboard::on_resend`].
    pub(super) fn on_resend(&mut self, first: u32, count: u32) -> Acked {
        let mut result = Acked::default();
        let wanted = first.max(self.acked)..first.saturating_add(count).min(self.unsent);
        self.lost.retain(|packet| !wanted.contains(packet));
        self.again.retain(|again| !wanted.contains(&again.packet));
        // Each goes to the front, so the first one last.
        for packet in wanted.rev() {
            let place = self.place(packet);
            match self.states[place] {
                State::Arrived => continue,
                State::InFlight | State::Again => {
                    self.states[place] = State::Lost;
                    self.in_flight -= 1;
                    result.lost += 1;
                    result.first_lost = packet;
                }
                State::Lost => {}
            }
            self.lost.push_front(packet);
        }
        self.forget_arrived();
        result
    }

    /// Sends the last packet in flight again, to provoke an acknowledgement (RFC 8985, section 7). False if there is
    /// none.
    pub(super) fn probe(&mut self) -> bool {
        if self.in_flight == 0 {
            return false;
        }
        // The highest packet in flight; packets above it have arrived or are lost.
        let Some(packet) = (self.acked..self.unsent).rev().find(|packet| self.is_in_flight(*packet)) else {
            return false;
        };
        // The law does not see this loss: the window has room for exactly this one.
        let place = self.place(packet);
        self.states[place] = State::Lost;
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

    #[test]
    fn the_last_packet_is_new_once() {
        let mut send = SelectiveRepeat::new(4, 3);
        (0..4).for_each(|stamp| send.sent(stamp));
        assert_eq!(send.on_ack(3, 0, 3), Acked { packets: 1, last: true, lost: 1, first_lost: 0 });
        // A copy of it brings an acknowledgement that covers more.
        assert_eq!(send.on_ack(3, 2, 3), Acked { packets: 2, ..Acked::default() });
        assert_eq!(send.on_ack(2, 4, 2), Acked { packets: 1, ..Acked::default() });
        assert!(send.is_done());
    }

    #[test]
    fn what_the_receiver_asks_for_goes_first() {
        let mut send = SelectiveRepeat::new(20, 3);
        (0..12).for_each(|stamp| send.sent(stamp));
        // 2 has arrived, 0 is acknowledged; 1 and 3 to 8 are lost by the arrival of 11.
        assert_eq!(send.on_ack(2, 1, 2).lost, 0);
        assert_eq!(send.on_ack(11, 1, 11).lost, 7);
        let order = |send: &SelectiveRepeat| send.lost.iter().copied().collect::<Vec<_>>();
        assert_eq!((order(&send), send.in_flight()), (vec![1, 3, 4, 5, 6, 7, 8], 2));
        // Of 7 to 13 some are lost, 9 and 10 in flight, one has arrived, and two were never sent.
        assert_eq!(send.on_resend(7, 7), Acked { lost: 2, first_lost: 9, ..Acked::default() });
        assert_eq!((order(&send), send.in_flight()), (vec![7, 8, 9, 10, 1, 3, 4, 5, 6], 0));
        // What is acknowledged is not sent again.
        assert_eq!(send.on_resend(0, 1), Acked::default());
        assert_eq!(send.on_resend(19, u32::MAX), Acked::default());
        assert_eq!(send.next(), Some((7, true)));
        (12..21).for_each(|stamp| send.sent(stamp));
        assert_eq!((send.next(), send.in_flight()), (Some((12, false)), 9));
    }

    #[test]
    fn a_probe_is_lost_by_what_was_sent_after_it() {
        let mut send = SelectiveRepeat::new(10, 3);
        (0..4).for_each(|stamp| send.sent(stamp));
        send.on_ack(2, 0, 2);
        send.on_ack(3, 0, 3);
        // Packet 0 is lost, 1 is the highest in flight; the probe goes first.
        assert!(send.probe());
        assert_eq!(send.next(), Some((1, true)));
        (4..8).for_each(|stamp| send.sent(stamp));
        // Three packets after the first copy of packet 1, but only one after the probe.
        assert_eq!(send.on_ack(4, 0, 6), Acked { packets: 1, ..Acked::default() });
        assert_eq!(send.on_ack(5, 0, 7), Acked { packets: 1, ..Acked::default() });
        assert_eq!(send.on_ack(5, 0, 8).lost, 1);
    }
}
