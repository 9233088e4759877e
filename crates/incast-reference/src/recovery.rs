//! Loss recovery of a sender, with the fate of every packet in a map.

use super::{Answer, News, Ps, rack::RackTlp};
use incast_cc::law;
use incast_sim::config::HostConfig;
use std::collections::BTreeMap;

/// What is known of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// On its way for the first time.
    Sent,
    /// On its way again.
    SentAgain,
    /// An underlay holds it, for the first time or again: it is not sent yet.
    Held,
    HeldAgain,
    Arrived,
    Lost,
}

/// Each kind of recovery.
#[derive(Debug)]
pub enum Recovery {
    /// See [`RackTlp`].
    Rack(RackTlp),
    /// See [`Selective`].
    Selective(Selective),
    /// See [`GoBackN`].
    GoBackN(GoBackN),
}

/// Only what was lost is sent again.
#[derive(Debug)]
pub struct Selective {
    total: u32,
    reordering: u32,
    /// Of packets `acked..unsent`.
    fates: BTreeMap<u32, Fate>,
    /// What the receiver said last: all below have arrived.
    acked: u32,
    unsent: u32,
    /// Lost packets, next first.
    lost: Vec<u32>,
    /// Packets sent again and on their way, oldest first: packet, when, and arrivals of what was sent later, counted
    /// since it became the oldest.
    again: Vec<(u32, u64, u32)>,
}

impl Selective {
    fn flying(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.fates.iter().filter(|(_, fate)| !matches!(fate, Fate::Arrived | Fate::Lost)).map(|(packet, _)| *packet)
    }

    fn on_ack(&mut self, blocks: &[u32], expected: u32, stamp: u64) -> News {
        let mut news = News::default();
        self.acked = self.acked.max(expected.min(self.unsent));
        for (packet, fate) in &mut self.fates {
            if (*packet < self.acked || blocks.contains(packet)) && *fate != Fate::Arrived {
                *fate = Fate::Arrived;
                news.arrived.push(*packet);
            }
        }
        let highest = self.fates.iter().rev().find(|(_, fate)| **fate == Fate::Arrived).map(|(packet, _)| *packet);
        self.fates = self.fates.split_off(&self.acked);
        self.lost.retain(|packet| self.fates.get(packet) == Some(&Fate::Lost));
        // A first transmission is lost when a packet sent `reordering` later has arrived.
        for (packet, fate) in &mut self.fates {
            if *fate == Fate::Sent && highest.is_some_and(|highest| *packet + self.reordering <= highest) {
                *fate = Fate::Lost;
                news.lost.push(*packet);
            }
        }
        // A later one when `reordering` acknowledgements of what was sent after it have come.
        let is_again = |fate: &Fate| matches!(fate, Fate::SentAgain | Fate::HeldAgain);
        self.again.retain(|again| self.fates.get(&again.0).is_some_and(is_again));
        if let Some((packet, sent, later)) = self.again.first_mut()
            && stamp > *sent
        {
            *later += 1;
            if *later >= self.reordering {
                self.fates.insert(*packet, Fate::Lost);
                news.lost.push(*packet);
                self.again.remove(0);
            }
        }
        self.lost.extend(&news.lost);
        news
    }

    fn sent(&mut self, stamp: u64) {
        if self.lost.is_empty() {
            self.fates.insert(self.unsent, Fate::Sent);
            self.unsent += 1;
        } else {
            let packet = self.lost.remove(0);
            self.fates.insert(packet, Fate::SentAgain);
            self.again.push((packet, stamp, 0));
        }
    }

    fn hold(&mut self) {
        let again = self.lost.first().copied();
        self.sent(u64::MAX);
        let (packet, fate) = again.map_or((self.unsent - 1, Fate::Held), |packet| (packet, Fate::HeldAgain));
        self.fates.insert(packet, fate);
    }

    fn leave(&mut self, packet: u32, stamp: u64) -> bool {
        match self.fates.get_mut(&packet) {
            Some(fate) if *fate == Fate::Held => {
                *fate = Fate::Sent;
                true
            }
            Some(fate) if *fate == Fate::HeldAgain => {
                *fate = Fate::SentAgain;
                self.again.iter_mut().filter(|again| again.0 == packet).for_each(|again| again.1 = stamp);
                false
            }
            _ => false,
        }
    }

    fn held(&self) -> u32 {
        self.fates.values().filter(|fate| matches!(fate, Fate::Held | Fate::HeldAgain)).count() as u32
    }

    fn on_timeout(&mut self) {
        self.again.retain(|again| self.fates.get(&again.0) == Some(&Fate::HeldAgain));
        self.lost.clear();
        for (packet, fate) in &mut self.fates {
            if !matches!(fate, Fate::Arrived | Fate::Held | Fate::HeldAgain) {
                *fate = Fate::Lost;
                self.lost.push(*packet);
            }
        }
    }

    fn probe(&mut self) -> bool {
        let Some(packet) = self.flying().next_back() else { return false };
        self.fates.insert(packet, Fate::Lost);
        self.lost.insert(0, packet);
        self.again.retain(|again| again.0 != packet);
        true
    }
}

/// Everything from the first loss on is sent again.
#[derive(Debug)]
pub struct GoBackN {
    total: u32,
    acked: u32,
    next: u32,
    unsent: u32,
    /// Packets in an underlay, also copies of some before `next`.
    held: u32,
}

impl GoBackN {
    fn on_ack(&mut self, expected: u32) -> News {
        let arrived: Vec<u32> = (self.acked..expected.min(self.unsent)).collect();
        self.acked += arrived.len() as u32;
        self.next = self.next.max(self.acked);
        News { arrived, ..News::default() }
    }

    fn on_nack(&mut self, expected: u32) -> News {
        let mut news = self.on_ack(expected);
        // An old one tells nothing.
        if expected == self.acked {
            news.lost = (self.acked..self.next).collect();
            self.next = self.acked;
        }
        news
    }
}

impl Recovery {
    /// A flow of so many packets.
    pub fn new(kind: law::Recovery, total: u32, host: &HostConfig) -> Self {
        match kind {
            law::Recovery::RackTlp => Self::Rack(RackTlp::new(total, host)),
            law::Recovery::GoBackN => Self::GoBackN(GoBackN { total, acked: 0, next: 0, unsent: 0, held: 0 }),
            law::Recovery::SelectiveRepeat => Self::Selective(Selective {
                total,
                reordering: host.reordering.max(1),
                fates: BTreeMap::new(),
                acked: 0,
                unsent: 0,
                lost: Vec::new(),
                again: Vec::new(),
            }),
        }
    }

    /// The next packet, and whether it was sent before.
    pub fn next(&self) -> Option<(u32, bool)> {
        match self {
            Self::Rack(send) => send.next(),
            Self::Selective(send) => match send.lost.first() {
                Some(packet) => Some((*packet, true)),
                None => (send.unsent < send.total).then_some((send.unsent, false)),
            },
            Self::GoBackN(send) => (send.next < send.total).then_some((send.next, send.next < send.unsent)),
        }
    }

    /// It was sent.
    pub fn sent(&mut self, stamp: u64) {
        match self {
            Self::Rack(send) => send.sent(stamp),
            Self::Selective(send) => send.sent(stamp),
            Self::GoBackN(send) => {
                send.next += 1;
                send.unsent = send.unsent.max(send.next);
            }
        }
    }

    /// It goes to an underlay, which may hold it.
    pub fn hold(&mut self) {
        match self {
            Self::Rack(send) => send.hold(),
            Self::Selective(send) => send.hold(),
            Self::GoBackN(send) => {
                send.held += 1;
                self.sent(0);
            }
        }
    }

    /// A packet leaves the underlay. True if it is known never to have been sent before.
    pub fn leave(&mut self, packet: u32, now: Ps) -> bool {
        match self {
            Self::Rack(send) => send.leave(packet, now),
            Self::Selective(send) => send.leave(packet, now),
            Self::GoBackN(send) => {
                send.held -= 1;
                false
            }
        }
    }

    /// Packets in flight that are not held.
    pub fn outstanding(&self) -> u32 {
        self.in_flight()
            - match self {
                Self::Rack(send) => send.held(),
                Self::Selective(send) => send.held(),
                Self::GoBackN(send) => send.held.min(send.next - send.acked),
            }
    }

    /// An answer came.
    pub fn on_answer(&mut self, now: Ps, srtt: Ps, answer: &Answer) -> News {
        let Answer { negative, blocks, expected, stamp, .. } = answer;
        let (negative, expected, stamp) = (*negative, *expected, *stamp);
        match self {
            Self::Rack(send) => send.on_ack(now, srtt, answer),
            Self::Selective(send) => send.on_ack(blocks, expected, stamp),
            Self::GoBackN(send) if negative => send.on_nack(expected),
            Self::GoBackN(send) => send.on_ack(expected),
        }
    }

    /// Everything in flight is presumed lost.
    pub fn on_timeout(&mut self, now: Ps, srtt: Ps) {
        match self {
            Self::Rack(send) => send.on_timeout(now, srtt),
            Self::Selective(send) => send.on_timeout(),
            Self::GoBackN(send) => send.next = send.acked,
        }
    }

    /// This kind of recovery sends tail-loss probes.
    pub fn has_probe(&self) -> bool {
        matches!(self, Self::Selective(_))
    }

    /// RACK-TLP, if it is that.
    pub fn rack(&mut self) -> Option<&mut RackTlp> {
        if let Self::Rack(rack) = self { Some(rack) } else { None }
    }

    /// A probe is to be sent. False if nothing is in flight.
    pub fn probe(&mut self) -> bool {
        match self {
            Self::Rack(send) => send.probe(),
            Self::Selective(send) => send.probe(),
            Self::GoBackN(_) => false,
        }
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> u32 {
        match self {
            Self::Rack(send) => send.in_flight(),
            Self::Selective(send) => send.flying().count() as u32,
            Self::GoBackN(send) => send.next - send.acked,
        }
    }

    /// All below have arrived.
    pub fn acked(&self) -> u32 {
        match self {
            Self::Rack(send) => send.acked(),
            Self::Selective(send) => send.acked,
            Self::GoBackN(send) => send.acked,
        }
    }

    /// The first packet never sent.
    pub fn unsent(&self) -> u32 {
        match self {
            Self::Rack(send) => send.unsent(),
            Self::Selective(send) => send.unsent,
            Self::GoBackN(send) => send.unsent,
        }
    }

    /// All have arrived.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Rack(send) => send.is_done(),
            Self::Selective(send) => send.acked == send.total,
            Self::GoBackN(send) => send.acked == send.total,
        }
    }
}
