//! One flow at its sender.

use super::{Answer, Content, Flow, News, Packet, Ps, frames, link::GAP, recovery::Recovery, routes::longer};
use incast_cc::{
    Feedback, Loss,
    registry::{Law, Underlay},
    underlay::{Head, Scope},
};
use incast_sim::{
    Config, FlowSpec, base_path,
    config::{ClassConfig, LostRetransmission, PaceCredit},
    engine::random::mix,
    sender::flow::ecmp_hash,
};
use incast_units::Time;
use std::collections::{BTreeMap, VecDeque};

/// Whether a flow may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Now,
    At(Ps),
    Blocked,
}

/// Until there is an RTT sample.
const FIRST_TIMEOUT: Ps = 1_000_000_000_000;

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Timeout,
    Probe,
    Reordering,
}

/// See the module.
pub struct Sender<'a> {
    config: &'a Config,
    class: &'a ClassConfig,
    /// What it is.
    pub spec: FlowSpec,
    /// Its number at its host.
    pub sequence: u32,
    /// Its place among the open flows of its host.
    pub slot: u32,
    packets: u32,
    /// The longest base RTT of all classes.
    base_rtt: Ps,
    /// The law.
    pub law: Law,
    /// Data below this position may be sent.
    pub credit: u64,
    /// What has arrived.
    pub recovery: Recovery,
    /// It stands in line at the NIC.
    pub in_line: bool,
    /// Generations of its timers: events of older ones are cancelled.
    pub retransmission: u64,
    pub release: u64,
    pub law_timer: u64,
    rtt: Option<(u64, u64)>,
    limited_until: u32,
    /// When the last packet was sent, its size, and for how long it had been ready before.
    last_sent: Option<(Ps, u32, Ps)>,
    /// When the last news came, less than half of the window was in the network or had just arrived.
    underused: bool,
    /// How often each packet was sent, and when last.
    transmissions: BTreeMap<u32, (u32, Ps)>,
    /// Since when window, data and credit have let a packet go, if they do.
    able: Option<Ps>,
    /// When pacing allows the next packet.
    due: Ps,
    /// The part of the smoothed RTT for which something was held on purpose.
    held: Ps,
    backoff: u32,
    probed: bool,
    /// What the timer is for, and when a timeout is due in any case.
    purpose: Purpose,
    timeout: Ps,
    /// The next packet may go whatever the window is.
    ignores_window: bool,
    timeouts: u32,
    retransmitted_bytes: u64,
    stage: Option<Stage>,
}

/// Packets that an underlay holds, of one flow.
struct Stage {
    decision: Underlay,
    /// Packets, and when they were handed over.
    queue: VecDeque<(Packet, Ps)>,
    /// When those that have left had been handed over.
    gone: BTreeMap<Ps, Ps>,
    rtt_with_hold: bool,
    backlog: usize,
}

impl Stage {
    fn release(&mut self, now: Ps, queued: Ps, wire: u32) -> Ps {
        self.decision.release(Time::from_ps(now), &head(queued, wire)).ps()
    }
}

fn head(queued: Ps, wire: u32) -> Head {
    Head { queued: Time::from_ps(queued), wire: wire + GAP }
}

/// What sending a packet means for the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing else is in the network: it starts.
    First,
    /// A new packet, after others, or the last one that was held: a probe is planned anew.
    New,
    /// A packet that was sent before.
    Again,
}

impl<'a> Sender<'a> {
    /// A flow that starts now.
    pub fn new(config: &'a Config, base_rtt: Ps, spec: FlowSpec, sequence: u32, slot: u32) -> Self {
        let class = &config.classes[usize::from(spec.class)];
        let packets = spec.bytes.div_ceil(u64::from(config.host.mtu)) as u32;
        let path = base_path(&config.topology, config.host.mtu, class.law.info().framing);
        let stream = mix(0x464c_4f57 << 32 | u64::from(spec.source));
        let random = mix(config.seed ^ stream ^ u64::from(sequence)) as u32;
        let law = class.law.start(&path, spec.start, random);
        Self {
            config,
            class,
            spec,
            sequence,
            slot,
            packets,
            base_rtt,
            credit: law.unscheduled(),
            law,
            recovery: Recovery::new(class.recovery, packets, &config.host),
            in_line: false,
            retransmission: 0,
            release: 0,
            law_timer: 0,
            rtt: None,
            limited_until: 0,
            last_sent: None,
            transmissions: BTreeMap::new(),
            underused: false,
            able: None,
            due: 0,
            held: 0,
            backoff: 0,
            probed: false,
            purpose: Purpose::Timeout,
            timeout: 0,
            ignores_window: false,
            timeouts: 0,
            retransmitted_bytes: 0,
            stage: class.underlay.arrangement().and_then(|arrangement| {
                assert_eq!(arrangement.scope, Scope::Flow);
                let longer = longer(&config.topology, path.wire_mss, spec.source, spec.destination);
                Some(Stage {
                    decision: class.underlay.start(&path, Time::from_ps(longer), spec.start)?,
                    queue: VecDeque::new(),
                    gone: BTreeMap::new(),
                    rtt_with_hold: arrangement.rtt_with_hold,
                    backlog: arrangement.backlog as usize,
                })
            }),
        }
    }

    /// Whether a packet may go to the NIC. What the law allows and the underlay does not is handed over to it.
    pub fn decide(&mut self, now: Ps) -> Turn {
        let Some(mut stage) = self.stage.take() else { return self.turn(now) };
        let turn = self.decide_with(now, &mut stage);
        self.stage = Some(stage);
        turn
    }

    fn decide_with(&mut self, now: Ps, stage: &mut Stage) -> Turn {
        if stage.queue.is_empty() {
            match self.turn(now) {
                Turn::Now => {}
                wait => return wait,
            }
            let wire = self.recovery.next().map_or(0, |(next, _)| self.wire(next));
            if stage.release(now, now, wire) <= now {
                return Turn::Now;
            }
        }
        let mut paced = Ps::MAX;
        while stage.queue.len() < stage.backlog {
            match self.turn(now) {
                Turn::Now => {
                    let packet = self.emit(now, true).expect("it may go");
                    stage.queue.push_back((packet, now));
                }
                Turn::At(time) => {
                    paced = time;
                    break;
                }
                Turn::Blocked => break,
            }
        }
        let first = stage.queue.front().map(|(packet, queued)| (*queued, packet.wire));
        let release = first.map_or(Ps::MAX, |(queued, wire)| stage.release(now, queued, wire));
        match release.min(paced) {
            _ if release <= now => Turn::Now,
            Ps::MAX => Turn::Blocked,
            time => Turn::At(time),
        }
    }

    /// The next packet for the NIC, if one may go.
    pub fn take(&mut self, now: Ps) -> Option<(Packet, Sent)> {
        if self.decide(now) != Turn::Now {
            return None;
        }
        if self.stage.as_ref().is_none_or(|stage| stage.queue.is_empty()) {
            let was_idle = self.recovery.in_flight() == 0;
            let again = self.recovery.next().is_some_and(|(_, again)| again);
            let packet = self.emit(now, false)?;
            if let Some(stage) = &mut self.stage {
                stage.decision.on_release(Time::from_ps(now), &head(now, packet.wire));
            }
            return Some((
                packet,
                if was_idle {
                    Sent::First
                } else if again {
                    Sent::Again
                } else {
                    Sent::New
                },
            ));
        }
        let stage = self.stage.as_mut()?;
        let (mut packet, queued) = stage.queue.pop_front()?;
        stage.decision.on_release(Time::from_ps(now), &head(queued, packet.wire));
        // The times of so many packets are remembered.
        while stage.gone.len() >= self.recovery.in_flight() as usize + 64 {
            stage.gone.pop_first();
        }
        if queued < now {
            stage.gone.insert(now, queued);
        }
        let is_empty = stage.queue.is_empty();
        packet.stamp = now;
        let Content::Data { position, .. } = packet.content else { return None };
        self.transmissions.entry(position).and_modify(|(_, last)| *last = now);
        let was_idle = self.recovery.outstanding() == 0;
        let is_new = self.recovery.leave(position, now);
        if was_idle && self.recovery.outstanding() > 0 {
            return Some((packet, Sent::First));
        }
        let may_probe = is_empty && self.recovery.rack().is_some_and(|rack| rack.may_probe());
        let plans_probe = may_probe && self.purpose == Purpose::Timeout;
        if plans_probe {
            self.purpose = Purpose::Probe;
        }
        Some((packet, if is_new || plans_probe { Sent::New } else { Sent::Again }))
    }

    fn has_held(&self) -> bool {
        self.stage.as_ref().is_some_and(|stage| !stage.queue.is_empty())
    }

    /// All that is in flight is held: the timer stands still.
    pub fn only_holds(&self) -> bool {
        self.recovery.in_flight() > 0 && self.recovery.outstanding() == 0
    }

    fn wire(&self, packet: u32) -> u32 {
        frames::data_bytes(self.class, self.payload(packet) as u32)
    }

    fn mtu(&self) -> u64 {
        u64::from(self.config.host.mtu)
    }

    fn payload(&self, packet: u32) -> u64 {
        (self.spec.bytes - u64::from(packet) * self.mtu()).min(self.mtu())
    }

    fn position(&self, packet: u32) -> u64 {
        (u64::from(packet) * self.mtu()).min(self.spec.bytes)
    }

    /// In full packets.
    fn in_flight(&self) -> u64 {
        u64::from(self.recovery.in_flight()) * self.mtu()
    }

    /// Whether the law lets the next packet go.
    fn turn(&mut self, now: Ps) -> Turn {
        let turn = self.turn_by_window(now);
        self.able = if turn == Turn::Blocked { None } else { self.able.or(Some(now)) };
        turn
    }

    fn turn_by_window(&mut self, now: Ps) -> Turn {
        let Some((packet, again)) = self.recovery.next() else { return Turn::Blocked };
        if !again && self.position(packet) >= self.credit {
            return Turn::Blocked;
        }
        // One packet may always be in flight, unless the window is zero.
        let window = self.law.window();
        let in_flight = if self.ignores_window { 0 } else { self.in_flight() };
        let fits = u128::from(in_flight) + u128::from(self.mtu()) <= u128::from(window);
        if !fits && (in_flight > 0 || window == 0) {
            self.limited_until = self.recovery.unsent();
            return Turn::Blocked;
        }
        if self.due > now { Turn::At(self.due) } else { Turn::Now }
    }

    /// Something has happened to the flow: its law may want another gap. What would have been due before is due now.
    pub fn plan_gap(&mut self, now: Ps) {
        if self.class.law.transport().updates_gap {
            self.due = match self.next_send() {
                0 => 0,
                due => due.max(self.due.min(now)),
            };
        }
    }

    /// When pacing allows the next packet, by the law's newest decision: a gap after the last packet was sent, less what
    /// the host gives back of its wait.
    fn next_send(&self) -> Ps {
        let Some((start, _, waited)) = self.last_sent else { return 0 };
        let gap = self.gap();
        let back = match self.config.host.pace_credit {
            PaceCredit::None => 0,
            PaceCredit::HalfPacket => waited.min(gap / 2),
            PaceCredit::Burst { packets: most } => waited.min(gap.saturating_mul(most.into())),
        };
        // No flow is faster than its NIC.
        let least = if self.config.host.pace_credit == PaceCredit::None { 0 } else { self.on_link() };
        if gap == 0 { 0 } else { (start + gap.max(least)).saturating_sub(back) }
    }

    /// How long the last packet was on the host's link.
    fn on_link(&self) -> Ps {
        let (Some((_, wire, _)), host) = (self.last_sent, self.spec.source) else { return 0 };
        let cable = self.config.topology.cables.iter().find(|cable| cable.a == host || cable.b == host);
        let rate = cable.map_or(f64::INFINITY, |cable| cable.link.rate.as_f64());
        (f64::from(wire + GAP) * (8e12 / rate)) as u64
    }

    fn gap(&self) -> Ps {
        let Some((_, wire, _)) = self.last_sent else { return 0 };
        if let Some(rate) = self.law.pacing_rate() {
            let pace = 8e12 / rate.as_f64().max(1.0);
            (f64::from(wire + GAP) * pace) as u64
        } else if self.law.window() < self.mtu() {
            let rtt = self.rtt.map_or(0, |rtt| rtt.0.saturating_sub(self.held)).max(self.base_rtt);
            let packets = self.mtu() as f64 / self.law.window().max(1) as f64;
            (rtt as f64 * packets).round() as u64
        } else {
            0
        }
    }

    /// Makes the next packet.
    fn emit(&mut self, now: Ps, holds: bool) -> Option<Packet> {
        let (position, again) = self.recovery.next()?;
        let due = self.able.unwrap_or(now).max(self.due);
        let paced = self.law.pacing_rate().is_some() || self.law.window() < self.mtu();
        let waited = if paced { now.saturating_sub(due) } else { 0 };
        // It could have sent for a round trip, and has not.
        let since = due.max(self.last_sent.map_or(0, |(start, ..)| start));
        let is_idle = !holds && self.recovery.in_flight() == 0;
        if is_idle && self.srtt() > 0 && now.saturating_sub(since) > self.srtt() {
            self.underused = true;
        }
        let payload = self.payload(position) as u32;
        let wire = frames::data_bytes(self.class, payload);
        if again {
            self.retransmitted_bytes += u64::from(payload);
        }
        if holds {
            self.recovery.hold();
        } else {
            self.recovery.sent(now);
        }
        let count = self.transmissions.get(&position).map_or(0, |(count, _)| *count);
        self.transmissions.insert(position, (count + 1, now));
        self.ignores_window = false;
        self.law.on_sent(Time::from_ps(now), payload);
        self.last_sent = Some((now, wire, waited));
        self.due = self.next_send();
        Some(Packet {
            from: self.spec.source,
            to: self.spec.destination,
            sequence: self.sequence,
            class: self.spec.class,
            priority: self.class.priority,
            wire,
            ecmp_hash: ecmp_hash(self.config.seed, &self.spec, self.sequence),
            stamp: now,
            started: now,
            links: 0,
            ecn_capable: self.class.law.transport().ecn_capable,
            marked: false,
            ingress: 0,
            content: Content::Data { position, packets: self.packets, payload, last: position + 1 == self.packets },
        })
    }

    /// An answer came; true if it brought news, so that the retransmission timer starts anew.
    pub fn on_answer(&mut self, now: Ps, answer: &Packet) -> bool {
        let Content::Ack {
            position,
            expected,
            ref blocks,
            packets,
            marked,
            delay_ns,
            negative,
            duplicate,
            hops,
            endpoint_ns,
            held_ns,
        } = answer.content
        else {
            return false;
        };
        let acked_before = self.recovery.acked();
        let nothing_to_send = self.recovery.next().is_none();
        let handed_over = self.stage.as_ref().filter(|stage| stage.rtt_with_hold);
        let handed_over = handed_over.and_then(|stage| stage.gone.get(&answer.stamp).copied());
        let rtt = now - handed_over.unwrap_or(answer.stamp);
        let begins = handed_over.unwrap_or(answer.stamp);
        let held = (answer.stamp - begins + held_ns * 1000).min(rtt);
        self.held = if self.rtt.is_none() { held } else { self.held - self.held / 8 + held / 8 };
        self.rtt = Some(match self.rtt {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => {
                (smoothed - smoothed / 8 + rtt / 8, variation - variation / 4 + smoothed.abs_diff(rtt) / 4)
            }
        });
        let mut named: Vec<u32> = blocks.iter().flat_map(|(start, end)| *start..*end).collect();
        if named.is_empty() {
            named.push(position);
        }
        let said = Answer { negative, blocks: named, position, stamp: answer.stamp, expected, duplicate };
        let News { arrived, lost, repaired, starts } = self.recovery.on_answer(now, self.srtt(), &said);
        let (next, in_flight) = (self.position(self.recovery.unsent()), self.in_flight());
        self.law.on_ack(&Feedback {
            now: Time::from_ps(now),
            acked_bytes: arrived.iter().map(|packet| self.payload(*packet)).sum(),
            packets,
            marked,
            acked: self.position(self.recovery.acked()),
            next,
            in_flight,
            rtt: Time::from_ps(rtt),
            held: Time::from_ps(held),
            app_limited: self.underused || acked_before > self.limited_until,
            nothing_to_send,
            endpoint_delay: Some(Time::from_ns(endpoint_ns).min(Time::from_ps(rtt - held))),
            hops: Some(hops),
            one_way_delay: Some(delay_ns as i64 * 1000),
            ..Feedback::default()
        });
        self.ignores_window |= starts;
        self.report_loss(now, &lost, repaired);
        if let Some(stage) = &mut self.stage {
            let (now, sent) = (Time::from_ps(now), Time::from_ps(answer.stamp));
            stage.decision.on_report(now, sent, delay_ns as i64 * 1000);
        }
        self.plan_gap(now);
        if !arrived.is_empty() {
            let used = u64::from(self.recovery.outstanding()) + arrived.len() as u64;
            self.underused = u128::from(2 * used * self.mtu()) < u128::from(self.law.window());
            (self.backoff, self.probed) = (0, false);
        }
        !arrived.is_empty()
    }

    fn srtt(&self) -> Ps {
        self.rtt.map_or(0, |(smoothed, _)| smoothed)
    }

    /// When the latest of the retransmissions among these packets was sent, where each packet is sent again by itself and a lost
    /// retransmission counts (RFC 5681, section 4.3).
    fn resent(&self, lost: &[u32]) -> Option<Time> {
        let counts = self.config.host.lost_retransmission == LostRetransmission::NewLoss;
        let goes_back = matches!(self.recovery, Recovery::GoBackN(_));
        let times = lost.iter().filter_map(|packet| self.transmissions.get(packet));
        let again = times.filter(|(count, _)| *count > 1 && counts && !goes_back).map(|(_, last)| *last);
        again.max().map(Time::from_ps)
    }

    fn report_loss(&mut self, now: Ps, lost: &[u32], repaired: Option<u32>) {
        let all: Vec<u32> = lost.iter().copied().chain(repaired).collect();
        let Some(first) = all.first() else { return };
        let loss = Loss {
            now: Time::from_ps(now),
            lost_bytes: all.len() as u64 * self.mtu(),
            position: self.position(*first),
            last: self.position(all.iter().copied().max().unwrap_or(*first)),
            next: self.position(self.recovery.unsent()),
            in_flight: self.in_flight(),
            resent: self.resent(lost),
        };
        self.law.on_loss(&loss);
    }

    /// When to act if nothing arrives from `now` on.
    pub fn deadline(&mut self, now: Ps) -> Ps {
        let host = &self.config.host;
        let timeout = match self.rtt {
            None => 3 * self.base_rtt,
            Some((smoothed, variation)) => smoothed + 4 * variation,
        };
        let timeout = timeout.max(host.rto_min.ps()) << self.backoff.min(10);
        let coalesced = if host.ack_every > 1 { host.ack_delay.ps() } else { 0 };
        let ack_delay = host.max_ack_delay.map_or(coalesced, |most| most.ps());
        self.timeout = now + timeout;
        if self.recovery.rack().is_some() {
            return self.rack_deadline(now, ack_delay);
        }
        let probe = match self.rtt {
            Some((smoothed, _))
                if self.recovery.has_probe() && !self.has_held() && !self.probed && self.backoff == 0 =>
            {
                Some(now + timeout.min(2 * smoothed + ack_delay))
            }
            _ => None,
        };
        self.purpose = if probe.is_some() { Purpose::Probe } else { Purpose::Timeout };
        probe.unwrap_or(now + timeout)
    }

    /// RFC 8985: a late packet, a probe, or the timeout.
    fn rack_deadline(&mut self, now: Ps, ack_delay: Ps) -> Ps {
        let (timeout, srtt, alone) = (self.timeout, self.srtt(), self.recovery.in_flight() == 1);
        let has_held = self.has_held();
        let Some(rack) = self.recovery.rack() else { return timeout };
        let late = rack.reordering_timer.filter(|late| *late < timeout);
        let pto = if srtt == 0 { FIRST_TIMEOUT } else { 2 * srtt + if alone { ack_delay } else { 0 } };
        let (purpose, deadline) = match late {
            // It may have passed while all that was in flight was held.
            Some(late) => (Purpose::Reordering, late.max(now)),
            None if !has_held && rack.may_probe() => (Purpose::Probe, timeout.min(now + pto)),
            None => (Purpose::Timeout, timeout),
        };
        self.purpose = purpose;
        deadline
    }

    /// A new packet was sent: when to act now, if that has changed.
    pub fn replan(&mut self, now: Ps) -> Option<Ps> {
        let by_time = self.recovery.rack().is_some() && self.purpose == Purpose::Probe;
        let wait = if self.srtt() == 0 { FIRST_TIMEOUT } else { 2 * self.srtt() };
        by_time.then(|| self.timeout.min(now + wait))
    }

    /// The flow has only credit to wait for.
    pub fn lacks_credit(&self) -> bool {
        matches!(self.recovery.next(), Some((packet, false)) if self.position(packet) >= self.credit)
    }

    /// A probe is due, but what is held will serve as one: when to act instead.
    pub fn put_off_probe(&mut self) -> Option<Ps> {
        (self.purpose == Purpose::Probe && self.has_held()).then(|| {
            self.purpose = Purpose::Timeout;
            self.timeout
        })
    }

    /// Nothing arrived; true if what is in flight is given up.
    pub fn on_deadline(&mut self, now: Ps) -> bool {
        let srtt = self.srtt();
        if let (Purpose::Reordering, Some(rack)) = (self.purpose, self.recovery.rack()) {
            let (lost, starts) = rack.detect(now, srtt);
            self.ignores_window |= starts;
            self.report_loss(now, &lost, None);
            self.plan_gap(now);
            return false;
        }
        let has_held = self.has_held();
        let may_probe = match self.recovery.rack() {
            _ if has_held => false,
            Some(_) => self.purpose == Purpose::Probe,
            None => self.rtt.is_some() && self.recovery.has_probe() && !self.probed && self.backoff == 0,
        };
        if self.recovery.outstanding() == 0 {
            let lacks_credit = self.lacks_credit();
            if may_probe {
                // There is nothing to probe for; the timeout comes next.
                self.probed = lacks_credit;
            } else if lacks_credit {
                // The credit may be lost: one packet goes without.
                self.timeouts += 1;
                self.backoff += 1;
                self.credit = self.credit.max(self.position(self.recovery.unsent() + 1));
                return true;
            }
            return false;
        }
        if may_probe && self.recovery.probe() {
            (self.probed, self.ignores_window) = (true, true);
            return false;
        }
        self.timeouts += 1;
        self.backoff += 1;
        self.probed = false;
        let next = self.position(self.recovery.unsent());
        self.recovery.on_timeout(now, srtt);
        self.ignores_window = self.recovery.rack().is_some();
        self.law.on_timeout(Time::from_ps(now), next);
        self.plan_gap(now);
        true
    }

    /// Its record.
    pub fn record(&self, acked: Option<Ps>) -> Flow {
        Flow {
            name: (self.spec.source, self.sequence),
            destination: self.spec.destination,
            start: self.spec.start.ps(),
            acked,
            retransmitted_bytes: self.retransmitted_bytes,
            timeouts: self.timeouts,
            ..Flow::default()
        }
    }
}
