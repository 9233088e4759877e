//! RACK-TLP of a sender, with every packet in a map, by the steps of RFC 8985.

use super::{Answer, News, Ps};
use incast_sim::config::{HostConfig, ReorderingWindow};
use std::collections::BTreeMap;

/// A packet that was sent and that no cumulative acknowledgement covers.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// When it was last sent.
    sent: Ps,
    /// It was sent more than once.
    retransmitted: bool,
    arrived: bool,
    lost: bool,
    /// An underlay holds it: it is not sent yet.
    held: bool,
}

/// See the module. Names are those of section 5.3.
#[derive(Debug)]
pub struct RackTlp {
    total: u32,
    dup_thresh: u32,
    /// The reordering window has its upper bound, the smoothed RTT, from the start.
    at_bound: bool,
    una: u32,
    nxt: u32,
    segments: BTreeMap<u32, Segment>,
    /// Lost packets, next first.
    queue: Vec<u32>,
    xmit_ts: Ps,
    end_seq: u32,
    rtt: Ps,
    min_rtt: Option<Ps>,
    fack: u32,
    reordering_seen: bool,
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    dsack_round: Option<u32>,
    /// In recovery until this is acknowledged.
    recovery: Option<u32>,
    /// TLP.end_seq and TLP.is_retrans.
    probe: Option<(u32, bool)>,
    sample_since_probe: bool,
    /// When the reordering timer expires.
    pub reordering_timer: Option<Ps>,
}

impl RackTlp {
    pub fn new(total: u32, host: &HostConfig) -> Self {
        Self {
            total,
            dup_thresh: host.reordering.max(1),
            at_bound: host.reordering_window == ReorderingWindow::Srtt,
            una: 0,
            nxt: 0,
            segments: BTreeMap::new(),
            queue: Vec::new(),
            xmit_ts: 0,
            end_seq: 0,
            rtt: 0,
            min_rtt: None,
            fack: 0,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_round: None,
            recovery: None,
            probe: None,
            sample_since_probe: true,
            reordering_timer: None,
        }
    }

    pub fn next(&self) -> Option<(u32, bool)> {
        match self.queue.first() {
            Some(packet) => Some((*packet, true)),
            None => (self.nxt < self.total).then_some((self.nxt, false)),
        }
    }

    /// The next packet goes to an underlay.
    pub fn hold(&mut self) {
        let packet = self.next().map(|(packet, _)| packet);
        self.sent(0);
        packet.and_then(|packet| self.segments.get_mut(&packet)).expect("it is made").held = true;
    }

    /// A packet leaves the underlay: it is sent now. True if it was never sent before.
    pub fn leave(&mut self, packet: u32, now: Ps) -> bool {
        let segment = self.segments.get_mut(&packet).filter(|segment| segment.held && !segment.arrived);
        let Some(segment) = segment else { return false };
        (segment.sent, segment.held) = (now, false);
        !segment.retransmitted
    }

    pub fn held(&self) -> u32 {
        self.segments.values().filter(|segment| segment.held && !segment.arrived).count() as u32
    }

    pub fn sent(&mut self, now: Ps) {
        let again = !self.queue.is_empty();
        let packet = if again { self.queue.remove(0) } else { self.nxt };
        self.nxt += u32::from(!again);
        self.segments
            .insert(packet, Segment { sent: now, retransmitted: again, arrived: false, lost: false, held: false });
    }

    fn sacked(&self) -> u32 {
        self.segments.values().filter(|segment| segment.arrived).count() as u32
    }

    fn flying(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.segments.iter().filter(|(_, segment)| !segment.arrived && !segment.lost).map(|(packet, _)| *packet)
    }

    pub fn in_flight(&self) -> u32 {
        self.flying().count() as u32
    }

    pub fn acked(&self) -> u32 {
        self.una
    }

    pub fn unsent(&self) -> u32 {
        self.nxt
    }

    pub fn is_done(&self) -> bool {
        self.una == self.total
    }

    /// Section 6.2, and 7.4.2. `srtt` includes the sample of this acknowledgement.
    pub fn on_ack(&mut self, now: Ps, srtt: Ps, said: &Answer) -> News {
        let &Answer { position, expected, stamp: echo, duplicate: dsack, .. } = said;
        let mut news = News::default();
        // Step 1.
        self.min_rtt = Some(self.min_rtt.map_or(now - echo, |least| least.min(now - echo)));
        self.sample_since_probe = true;
        let una = self.una.max(expected.min(self.nxt));
        // Steps 2 and 3, in the order of sequence numbers.
        for (&packet, segment) in &mut self.segments {
            if segment.arrived || packet >= una && !said.blocks.contains(&packet) {
                continue;
            }
            segment.arrived = true;
            news.arrived.push(packet);
            let is_below = packet + 1 < self.fack;
            self.fack = self.fack.max(packet + 1);
            if segment.held {
                // An earlier transmission of it.
                continue;
            }
            let rtt = now - segment.sent;
            if segment.retransmitted && (echo < segment.sent || Some(rtt) < self.min_rtt) {
                continue;
            }
            self.reordering_seen |= is_below && !segment.retransmitted;
            self.rtt = rtt;
            if (segment.sent, packet) > (self.xmit_ts, self.end_seq) {
                (self.xmit_ts, self.end_seq) = (segment.sent, packet);
            }
        }
        self.una = una;
        self.segments = self.segments.split_off(&una);
        self.queue.retain(|packet| self.segments.get(packet).is_some_and(|segment| !segment.arrived));
        // Step 4, its state.
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        let exits = self.recovery.is_some_and(|until| una >= until);
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(self.nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = 16;
        } else if exits {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
        if exits {
            self.recovery = None;
        }
        if !news.arrived.is_empty() {
            (news.lost, news.starts) = self.detect(now, srtt);
        }
        if let Some((end, is_retrans)) = self.probe.filter(|(end, _)| una >= *end) {
            if !is_retrans || dsack && position + 1 == end {
                self.probe = None;
            } else if una > end {
                self.probe = None;
                news.repaired = Some(end - 1);
            }
        }
        news
    }

    fn reo_wnd(&self, srtt: Ps) -> Ps {
        let Some(min_rtt) = self.min_rtt else { return 0 };
        if self.at_bound {
            return srtt;
        }
        if !self.reordering_seen && (self.recovery.is_some() || self.sacked() >= self.dup_thresh) {
            return 0;
        }
        (min_rtt / 4 * self.reo_wnd_mult).min(srtt)
    }

    /// Step 5: what is lost, first transmissions first, and whether recovery begins.
    pub fn detect(&mut self, now: Ps, srtt: Ps) -> (Vec<u32>, bool) {
        let window = self.reo_wnd(srtt);
        self.reordering_timer = None;
        let mut order: Vec<u32> = self.flying().filter(|packet| !self.segments[packet].held).collect();
        order.sort_by_key(|packet| {
            let segment = &self.segments[packet];
            (segment.retransmitted, segment.sent, *packet)
        });
        let mut lost = Vec::new();
        for packet in order {
            let Some(segment) = self.segments.get_mut(&packet) else { continue };
            if (segment.sent, packet) >= (self.xmit_ts, self.end_seq) {
                continue;
            }
            let due = segment.sent + self.rtt + window;
            if due <= now {
                segment.lost = true;
                lost.push(packet);
            } else {
                self.reordering_timer = self.reordering_timer.max(Some(due));
            }
        }
        self.queue.extend(&lost);
        let starts = !lost.is_empty() && self.recovery.is_none();
        if starts {
            self.recovery = Some(self.nxt);
        }
        (lost, starts)
    }

    /// Section 6.3.
    pub fn on_timeout(&mut self, now: Ps, srtt: Ps) {
        let window = self.reo_wnd(srtt);
        self.queue.clear();
        let missing = |segment: &Segment| !segment.arrived && !segment.held;
        let first = self.segments.iter().find(|(_, segment)| missing(segment)).map(|(packet, _)| *packet);
        for (packet, segment) in self.segments.iter_mut().filter(|(_, segment)| missing(segment)) {
            let is_late = Some(*packet) == first || segment.sent + self.rtt + window <= now;
            segment.lost |= !segment.arrived && is_late;
            if segment.lost && !segment.arrived {
                self.queue.push(*packet);
            }
        }
        self.recovery = Some(self.nxt);
        self.probe = None;
        self.reordering_timer = None;
    }

    /// Sections 7.2 and 7.3.
    pub fn may_probe(&self) -> bool {
        self.recovery.is_none() && self.sacked() == 0 && self.probe.is_none() && self.sample_since_probe
    }

    pub fn probe(&mut self) -> bool {
        let Some(last) = self.flying().next_back() else { return false };
        let sends_new = self.nxt < self.total;
        self.probe = Some((self.nxt + u32::from(sends_new), !sends_new));
        self.sample_since_probe = false;
        if !sends_new {
            // It leaves the flight until it is sent.
            self.segments.entry(last).and_modify(|segment| segment.lost = true);
            self.queue.insert(0, last);
        }
        true
    }
}
