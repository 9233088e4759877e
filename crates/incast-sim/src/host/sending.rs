//! The sender's half of a flow: reliability, law and timers of one flow.

use super::{
    paths::Paths,
    rtt::RoundTrip,
    tokens::Tokens,
    underlay::{Stages, Waiting},
};
use crate::recovery::{Acked, Send};
use crate::{
    config::FlowSpec,
    engine::random::mix,
    fabric::packet::{Kind, Packet},
    routing::Pinned,
    settings::{Class, Settings},
};
use incast_cc::{
    Feedback, Loss, Path,
    receiver::Share,
    sender::{Acknowledges, Law, SendOrder},
    spray::Fate,
    underlay::Reports,
};
use incast_units::{Rate, Time};

/// Whether a flow may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Now.
    Ready,
    /// Not before this time.
    At(Time),
    /// Not before something happens.
    Blocked,
}

/// The packet that may go next.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    packet: u32,
    /// It was sent before.
    again: bool,
    /// It needs a token.
    on_token: bool,
}

/// See the module.
#[derive(Debug)]
pub struct SendFlow {
    /// Window, credit and pace as the law last said.
    window: u64,
    credit: u64,
    /// Picoseconds per byte on the wire; zero without pacing.
    pace: f64,
    /// There are gaps between its packets: they are paced, or the window is below one of them.
    gaps: bool,
    /// Pacing allows the next packet from here on.
    next_send: Time,
    /// Where the receiver hands out tokens: what goes beyond the credit, or again, needs one each.
    tokens: Option<Box<Tokens>>,
    /// A receiver's scheduler has its say.
    pub driven: bool,
    /// Its law goes by acknowledgements, losses and what was sent; see [`incast_cc::sender::Habits`].
    pub listens: bool,
    /// Its law has a timer.
    pub has_timer: bool,
    /// Its law has something to say to the receiver's scheduler.
    pub speaks: bool,
    /// Its law says of each packet which priority it has.
    assigns: bool,
    /// Of the flows of its host that may send, the shortest goes first.
    pub by_rank: bool,
    /// Round trips begin where packets are handed to the underlay, not where they leave it.
    pub rtt_with_hold: bool,
    /// The stage of the underlay that learns of delays from its acknowledgements.
    pub heard_by: Option<u32>,
    /// Its receiver acknowledges it as a whole: until then whatever is heard of the receiver tells that it lives.
    pub patient: bool,
    /// No timer runs while it waits for its receiver.
    reminded: bool,
    /// Its place in the NIC's line, where the shortest goes first.
    pub rank: u64,
    /// In which line of the NIC it stands: the priority of its next packet.
    pub line: u8,
    /// Priority of what it sends now: that of its class, unless the receiver says otherwise.
    pub priority: u8,
    /// The last that the receiver said of its share.
    pub share: Option<Share>,
    /// Which packets have arrived.
    pub send: Send,
    /// Smoothed RTT.
    pub rtt: RoundTrip,
    /// It stands in the NIC's list of ready flows.
    pub queued: bool,
    /// Last packets that were sent when the window was what limited the flow: acknowledgements up to here may make
    /// the window grow (RFC 9438, section 4.2).
    limited_until: u32,
    /// When to act if no acknowledgement comes.
    pub deadline: Time,
    /// Pending retransmission event.
    pub timer_event: Time,
    /// Pending release event.
    pub release_event: Time,
    /// Pending event of the law's own timer.
    pub law_event: Time,
    /// The connection is not open yet: nothing may be sent.
    pub opening: bool,
    /// Expiries in a row.
    pub backoff: u8,
    /// A tail-loss probe is out.
    pub probed: bool,
    /// The law.
    pub law: Law,
    /// The ways of its packets, where it chooses them.
    pub paths: Option<Box<Paths>>,
    /// What waits of it in the underlay's stage, where there is one.
    pub waiting: Option<Box<Waiting>>,
    /// Class index.
    pub class: u8,
    /// Flow number at this host.
    pub sequence: u32,
    packets: u32,
    /// Bytes of the last packet on the link; zero before there was one.
    last_wire: u32,
    /// When it was sent.
    last_start: Time,
    last_payload: u16,
    /// Hash for the choice among equal-cost ports.
    pub entropy: u32,
    /// What it was asked to be.
    pub spec: FlowSpec,
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Position of the last rate sample.
    pub sampled: u64,
}

/// What a flow's packets choose equal-cost ports by: a hash of the flow, or the ways that it is pinned to.
pub fn entropy(seed: u64, flow: &FlowSpec, sequence: u32) -> u32 {
    let ends = u64::from(flow.source) << 32 | u64::from(flow.destination);
    flow.pinned.map_or_else(|| mix(mix(seed ^ u64::from(sequence)) ^ ends) as u32, Pinned::entropy)
}

/// What a window lets through on the wire in a base RTT, in bit/s: no less than a packet, as a sender always has one under way. A window is
/// of payload, a pace of what is on the wire.
fn through(window: u64, path: &Path) -> f64 {
    if window == u64::MAX || path.base_rtt == Time::ZERO {
        return f64::INFINITY;
    }
    let mss = path.mss.max(1);
    let packets = window.max(mss.into()) as f64 / f64::from(mss);
    packets * f64::from(path.wire_mss) * 8.0 / path.base_rtt.as_secs_f64()
}

/// Purpose of the stream of which each flow gets one draw.
const FLOW_STREAM: u64 = 0x464c_4f57;

/// What a flow has of chance.
fn random(seed: u64, source: u32, sequence: u32) -> u32 {
    mix(seed ^ mix(FLOW_STREAM << 32 | u64::from(source)) ^ u64::from(sequence)) as u32
}

impl SendFlow {
    /// A flow that starts now, from a host of this rate; packets go through `stage`, where there is one.
    pub fn new(
        settings: &Settings,
        class: &Class,
        rate: Rate,
        spec: FlowSpec,
        sequence: u32,
        stage: Option<u32>,
    ) -> Self {
        let mtu = u64::from(settings.host.mtu);
        let packets = spec.bytes.div_ceil(mtu) as u32;
        let random = random(settings.seed, spec.source, sequence);
        let habits = class.law.habits();
        let driven = class.scheduler.is_some();
        let mut flow = Self {
            window: 0,
            credit: 0,
            pace: 0.0,
            gaps: false,
            next_send: Time::ZERO,
            tokens: class.uses_tokens.then(Box::default),
            driven,
            listens: habits.listens,
            has_timer: habits.has_timer,
            speaks: driven && habits.speaks,
            assigns: driven && class.law.assigns_priorities(),
            by_rank: class.transport.order == SendOrder::ShortestRemaining,
            rtt_with_hold: class.arrangement.is_some_and(|arrangement| arrangement.rtt_with_hold),
            heard_by: stage.filter(|_| {
                class.arrangement.is_some_and(|arrangement| arrangement.reports == Reports::Acknowledgements)
            }),
            patient: class.transport.acknowledges == Acknowledges::Flows,
            reminded: class.transport.reminded,
            rank: 0,
            line: class.priority,
            priority: class.priority,
            share: None,
            send: Send::new(
                class.recovery,
                packets,
                if class.transport.in_any_order { u32::MAX } else { settings.host.reordering },
            ),
            rtt: RoundTrip::default(),
            queued: false,
            limited_until: 0,
            deadline: Time::MAX,
            timer_event: Time::MAX,
            release_event: Time::MAX,
            law_event: Time::MAX,
            opening: false,
            backoff: 0,
            probed: false,
            law: class.start(rate, spec.start, random),
            paths: settings
                .ways
                .is_some()
                .then(|| Box::new(Paths::new(settings, spec.source, spec.destination, sequence, packets))),
            waiting: stage.map(|stage| Box::new(Waiting::new(stage))),
            class: spec.class as u8,
            sequence,
            packets,
            last_wire: 0,
            last_start: Time::ZERO,
            last_payload: (spec.bytes - u64::from(packets - 1) * mtu) as u16,
            entropy: entropy(settings.seed, &spec, sequence),
            spec,
            retransmitted_bytes: 0,
            timeouts: 0,
            sampled: 0,
        };
        if flow.driven {
            flow.law.on_open(spec.bytes);
            let (receiver, degree) = settings.peers.of(&spec, rate);
            flow.law.on_peer(receiver, degree);
        }
        flow.refresh(settings);
        flow
    }

    /// Nothing may be sent before the connection is open: no window.
    pub fn close(&mut self) {
        (self.opening, self.window, self.pace, self.next_send) = (true, 0, 0.0, Time::ZERO);
        // As with any window below a packet.
        self.gaps = true;
    }

    /// The connection is open: the law begins now, and knows an RTT.
    pub fn open(&mut self, now: Time, rtt: Time, rate: Rate, settings: &Settings) {
        let class = &settings.classes[usize::from(self.class)];
        (self.opening, self.backoff, self.deadline) = (false, 0, Time::MAX);
        self.rtt.sample(rtt);
        self.law = class.start(rate, now, random(settings.seed, self.spec.source, self.sequence));
        self.refresh(settings);
    }

    /// Packets of the flow.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Tells the law what an acknowledgement shows.
    #[inline(never)]
    pub fn hear(&mut self, feedback: &Feedback<'_>, acked: &Acked, settings: &Settings) {
        self.law.on_ack(feedback);
        self.report_loss(feedback.now, acked, settings.host.mtu);
        self.refresh(settings);
    }

    /// Asks the law what it now allows; to be called after each of its events.
    #[inline]
    pub fn refresh(&mut self, settings: &Settings) {
        self.ask(settings, false);
    }

    /// The same; `sent` says that a packet was just sent, so that the gap after it is to be planned in any case.
    #[inline]
    fn ask(&mut self, settings: &Settings, sent: bool) {
        let window = self.law.window();
        self.credit = self.law.credit();
        let pace = match self.law.pacing_rate() {
            None => 0.0,
            Some(rate) => 8e12 / rate.as_f64().max(1.0),
        };
        let mtu = u64::from(settings.host.mtu);
        // One that ends is looked at once more.
        let (gaps, ended) = (pace > 0.0 || window < mtu, self.window < mtu);
        (self.window, self.pace, self.gaps) = (window, pace, gaps);
        if gaps || ended {
            self.replan(settings, sent);
        }
    }

    /// The same after something that its law does not listen to, which allows what it did.
    #[inline]
    pub fn stay(&mut self, settings: &Settings, sent: bool) {
        if self.gaps {
            self.replan(settings, sent);
        }
    }

    /// Plans the gap after the last packet anew, if that is to be.
    #[inline(never)]
    fn replan(&mut self, settings: &Settings, sent: bool) {
        if sent || settings.classes[usize::from(self.class)].repaces {
            self.plan_next(settings);
        }
    }

    /// The gap after the last packet is as long as the newest decision makes it, as a rate limiter does not sit out a gap
    /// that it would no longer leave; or, where the law does not re-time it, as long as that packet's own pace made it.
    #[inline]
    fn plan_next(&mut self, settings: &Settings) {
        let mtu = settings.host.mtu;
        self.next_send = if self.last_wire == 0 {
            Time::ZERO
        } else if self.pace > 0.0 {
            let gap = Time::from_ps((f64::from(self.last_wire) * self.pace) as u64);
            self.last_start + settings.wire.rounding.of(gap)
        } else if self.window < u64::from(mtu) {
            // A window below one packet: one packet each RTT × MSS / window.
            let rtt = self.rtt.smoothed().max(settings.base_rtt);
            self.last_start + rtt.mul_f64(f64::from(mtu) / self.window.max(1) as f64)
        } else {
            Time::ZERO
        };
    }

    /// Payload bytes of a packet.
    #[inline]
    pub fn payload(&self, packet: u32, mtu: u32) -> u32 {
        if packet + 1 == self.packets { u32::from(self.last_payload) } else { mtu }
    }

    /// Payload bytes of the last packet.
    pub fn last_payload(&self) -> u32 {
        u32::from(self.last_payload)
    }

    /// Sets when to act if nothing is heard: the tail-loss probe first, then the retransmission timeout.
    #[inline]
    fn set_deadline(&mut self, now: Time, settings: &Settings) {
        let timeout = self.rtt.timeout(settings.host.rto_min, settings.base_rtt, self.backoff);
        let delay = if settings.host.ack_every > 1 { settings.host.ack_delay } else { Time::ZERO };
        let wait = match self.rtt.probe_timeout(delay) {
            Some(probe) if self.may_probe() => probe.min(timeout),
            _ => timeout,
        };
        self.deadline = now.saturating_add(wait);
    }

    /// Starts the timer afresh, or stops it: there is nothing to wait for while nothing is in flight, unless it is credit.
    #[inline]
    pub fn restart_timer(&mut self, now: Time, settings: &Settings) {
        if self.send.in_flight() > 0 || self.awaits_credit(now, settings) {
            self.set_deadline(now, settings);
        } else {
            self.deadline = Time::MAX;
        }
    }

    #[inline(never)]
    fn awaits_credit(&mut self, now: Time, settings: &Settings) -> bool {
        !self.reminded && self.waits_for_credit(now, settings.host.mtu)
    }

    /// A tail-loss probe comes before the retransmission timeout: once, where recovery has one and the underlay holds
    /// no packets, which are counted as sent. With tokens it is the receiver's business to ask for what is missing.
    #[inline]
    pub fn may_probe(&mut self) -> bool {
        let is_free = self.tokens.is_none() && !self.has_held();
        !self.probed && self.backoff == 0 && is_free && self.send.prober().is_some()
    }

    /// Position in bytes of the start of a packet; one past the last gives the flow's size.
    #[inline]
    pub fn position(&self, packet: u32, mtu: u32) -> u64 {
        if packet >= self.packets { self.spec.bytes } else { u64::from(packet) * u64::from(mtu) }
    }

    /// Payload bytes in flight, the last packet counted as a full one.
    #[inline]
    pub fn in_flight(&self, mtu: u32) -> u64 {
        u64::from(self.send.in_flight()) * u64::from(mtu)
    }

    /// The window is not what limits the flow.
    #[inline]
    pub fn app_limited(&self, acked_before: u32) -> bool {
        acked_before > self.limited_until
    }

    /// Nothing but credit, or a token, keeps the next packet from going.
    pub fn waits_for_credit(&mut self, now: Time, mtu: u32) -> bool {
        let next = self.send.next();
        next.is_some_and(|(packet, again)| !self.is_free(packet, again, mtu) && !self.has_token(now))
    }

    /// A packet goes without a token.
    #[inline]
    fn is_free(&self, packet: u32, again: bool, mtu: u32) -> bool {
        if again { self.tokens.is_none() } else { self.position(packet, mtu) < self.credit }
    }

    #[inline]
    fn has_token(&mut self, now: Time) -> bool {
        self.tokens.as_mut().is_some_and(|tokens| tokens.any(now))
    }

    /// The receiver lets one packet go, perhaps a certain one.
    pub fn on_token(&mut self, now: Time, wanted: Option<u32>, lifetime: Time, settings: &Settings) {
        if let Some(packet) = wanted {
            self.on_resend(now, packet, 1, settings);
        }
        if let Some(tokens) = &mut self.tokens {
            tokens.add(now, lifetime, wanted);
        }
    }

    /// The receiver has let so many packets go.
    pub fn on_pull(&mut self, number: u64) {
        if let Some(tokens) = &mut self.tokens {
            tokens.pull(number);
        }
    }

    /// A header came back. How many PULLs are still to be expected: the receiver sends one for each packet that reaches it,
    /// whole or trimmed. After a timeout it is not known what has, and those count that are on their way.
    pub fn on_returned(&mut self, mtu: u32) -> u64 {
        let Some(tokens) = &mut self.tokens else { return 0 };
        tokens.returned += 1;
        if self.timeouts > 0 {
            return u64::from(self.send.in_flight());
        }
        let again = self.retransmitted_bytes.div_ceil(u64::from(mtu));
        (u64::from(self.send.unsent()) + again).saturating_sub(tokens.returned + tokens.pulled())
    }

    /// The receiver wants packets again.
    pub fn on_resend(&mut self, now: Time, first: u32, count: u32, settings: &Settings) {
        let found = self.send.on_resend(first, count);
        self.report_loss(now, &found, settings.host.mtu);
        self.refresh(settings);
    }

    /// Tells the law of packets that were found lost.
    #[inline]
    pub fn report_loss(&mut self, now: Time, found: &Acked, mtu: u32) {
        if found.lost > 0 {
            self.law.on_loss(&Loss {
                now,
                lost_bytes: u64::from(found.lost) * u64::from(mtu),
                position: self.position(found.first_lost, mtu),
                next: self.position(self.send.unsent(), mtu),
                in_flight: self.in_flight(mtu),
            });
        }
    }

    /// The retransmission timer expired: everything in flight is presumed lost. A token for the first of it goes without
    /// saying.
    pub fn on_timeout(&mut self, now: Time, settings: &Settings) {
        let next = self.position(self.send.unsent(), settings.host.mtu);
        self.send.on_timeout();
        self.law.on_timeout(now, next);
        if let Some(tokens) = &mut self.tokens {
            tokens.add(now, Time::MAX, None);
        }
        self.refresh(settings);
    }

    /// The credit may have been lost: one packet goes on the flow's own account, and asks for more.
    pub fn go_on_without_credit(&mut self, now: Time, settings: &Settings) {
        if let Some(tokens) = &mut self.tokens {
            tokens.add(now, Time::MAX, None);
        } else {
            let position = self.position(self.send.unsent() + 1, settings.host.mtu);
            self.law.on_credit(now, position);
            self.refresh(settings);
        }
    }

    /// The window assigned, and the rate in bit/s: the pace, and no more than the window lets through in a base RTT, a packet at least; or,
    /// without pacing, the window over the smoothed RTT.
    pub fn assigned(&self, settings: &Settings) -> (u64, u64) {
        let rate = if self.pace > 0.0 {
            (8e12 / self.pace).min(through(self.window, &settings.classes[usize::from(self.class)].path))
        } else {
            let rtt = self.rtt.smoothed().max(settings.base_rtt).as_secs_f64();
            self.window as f64 * 8.0 / rtt
        };
        (self.window, rate as u64)
    }

    /// Which packet is next, if the law lets it go at `now`; otherwise what it waits for, which is not [`Turn::Ready`].
    #[inline(always)]
    pub fn permission(&mut self, now: Time, mtu: u32) -> Result<Next, Turn> {
        let Some((packet, again)) = self.send.next() else { return Err(Turn::Blocked) };
        let on_token = !self.is_free(packet, again, mtu);
        if on_token && !self.has_token(now) {
            return Err(Turn::Blocked);
        }
        let in_flight = self.send.in_flight();
        if (u64::from(in_flight) + 1) * u64::from(mtu) > self.window && (in_flight > 0 || self.window == 0) {
            self.limited_until = self.send.unsent();
            return Err(Turn::Blocked);
        }
        if self.next_send > now {
            return Err(Turn::At(self.next_send));
        }
        Ok(Next { packet, again, on_token })
    }

    /// Whether a packet of this flow may go to the NIC at `now`.
    #[inline(always)]
    pub fn turn(
        &mut self,
        now: Time,
        host: u32,
        slot: u32,
        settings: &Settings,
        stages: &mut Stages,
    ) -> Turn {
        if self.waiting.is_none() {
            return self.permission(now, settings.host.mtu).map_or_else(|turn| turn, |_| Turn::Ready);
        }
        self.turn_of_held(now, host, slot, settings, stages)
    }

    /// While nothing is held, a packet is made when the NIC takes it, as without a stage. Otherwise what the law allows goes
    /// into the stage, which lets the first packet go that it has of any flow.
    #[inline(never)]
    fn turn_of_held(
        &mut self,
        now: Time,
        host: u32,
        slot: u32,
        settings: &Settings,
        stages: &mut Stages,
    ) -> Turn {
        let Some(place) = self.waiting.as_ref().map(|waiting| waiting.stage) else { return Turn::Blocked };
        let stage = stages.at(place);
        if stage.is_empty() {
            if let Err(turn) = self.permission(now, settings.host.mtu) {
                return turn;
            }
            if stage.passes(now, self.next_wire(settings)) {
                return Turn::Ready;
            }
        }
        let arrangement = settings.classes[usize::from(self.class)].arrangement;
        let backlog = arrangement.map_or(0, |arrangement| arrangement.backlog);
        let mut paced = Time::MAX;
        while self.waiting.as_ref().is_some_and(|waiting| waiting.packets < backlog) {
            match self.permission(now, settings.host.mtu) {
                Ok(next) => {
                    let packet = self.emit_apart(next, now, host, slot, settings);
                    stage.push(now, packet);
                    self.waiting.iter_mut().for_each(|waiting| waiting.packets += 1);
                }
                Err(Turn::At(time)) => {
                    paced = time;
                    break;
                }
                Err(Turn::Blocked | Turn::Ready) => break,
            }
        }
        let is_first = stage.first().is_some_and(|packet| packet.slot == slot);
        let release = if is_first { stage.release(now, settings.wire.gap) } else { Time::MAX };
        if let Some(waiting) = &mut self.waiting {
            waiting.note(now, release > now && waiting.packets > 0);
        }
        match release.min(paced) {
            _ if release <= now => Turn::Ready,
            Time::MAX => Turn::Blocked,
            time => Turn::At(time),
        }
    }

    /// The next packet for the NIC of a flow whose packets may be held; [`Self::turn`] has just said that it may go.
    #[inline(never)]
    pub fn take_of_held(
        &mut self,
        now: Time,
        host: u32,
        slot: u32,
        settings: &Settings,
        stages: &mut Stages,
    ) -> Option<Packet> {
        let stage = stages.at(self.waiting.as_ref()?.stage);
        if stage.is_empty() {
            let next = self.permission(now, settings.host.mtu).ok()?;
            let packet = self.emit_apart(next, now, host, slot, settings);
            stage.pass(now, u32::from(packet.wire) + settings.wire.gap);
            return Some(packet);
        }
        let packet = stage.pop(now, self.send.in_flight(), settings.wire.gap)?;
        let waiting = self.waiting.as_mut()?;
        waiting.packets -= 1;
        if waiting.packets == 0 {
            // From here on the network may lose it.
            self.restart_timer(now, settings);
        }
        Some(packet)
    }

    /// Bytes of the next packet on the link.
    fn next_wire(&self, settings: &Settings) -> u32 {
        let (packet, _) = self.send.next().unwrap_or((0, true));
        let class = &settings.classes[usize::from(self.class)];
        class.format.data(self.payload(packet, settings.host.mtu)) + settings.wire.gap
    }

    /// When a packet that reached the NIC at `sent` was handed over: to the NIC, or to the stage before it.
    #[inline]
    pub fn handed_over(&self, sent: Time, stages: &mut Stages) -> Time {
        self.waiting.as_ref().map_or(sent, |waiting| stages.at(waiting.stage).handed_over(sent))
    }

    /// Packets wait in the underlay's stage.
    #[inline]
    pub fn has_held(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.packets > 0)
    }

    /// The packet that has been missing for longest has not left this host.
    pub fn holds_oldest(&self, slot: u32, stages: &mut Stages) -> bool {
        let oldest = self.send.acked();
        let waiting = self.waiting.as_ref().filter(|waiting| waiting.packets > 0);
        waiting.is_some_and(|waiting| stages.at(waiting.stage).holds(slot, oldest))
    }

    /// A packet was acknowledged: its way is good.
    #[inline]
    pub fn report_arrival(&mut self, ack: &Packet) {
        if let Some(paths) = &mut self.paths {
            paths.on_fate(ack.position, Fate::Arrived);
        }
    }

    /// Packets did not arrive whole.
    #[inline(never)]
    pub fn report_trouble(&mut self, first: u32, count: u32, fate: Fate) {
        if let Some(paths) = &mut self.paths {
            let end = first.saturating_add(count).min(self.send.unsent());
            (first..end).for_each(|position| paths.on_fate(position, fate));
        }
    }

    /// Frame bytes of the next packet that it has for the NIC.
    pub fn next_frame(&self, slot: u32, settings: &Settings, stages: &mut Stages) -> u32 {
        let waiting = self.waiting.as_ref().filter(|waiting| waiting.packets > 0);
        match waiting.and_then(|waiting| stages.at(waiting.stage).first_of(slot)) {
            Some(packet) => u32::from(packet.wire),
            None => self.next_wire(settings) - settings.wire.gap,
        }
    }

    /// The priority of the next packet that it has for the NIC.
    #[inline]
    pub fn next_priority(&self, slot: u32, mtu: u32, stages: &mut Stages) -> u8 {
        if self.assigns || self.waiting.is_some() {
            self.own_priority(slot, mtu, stages)
        } else {
            self.priority
        }
    }

    /// The same where packets have their own.
    #[inline(never)]
    fn own_priority(&self, slot: u32, mtu: u32, stages: &mut Stages) -> u8 {
        let waiting = self.waiting.as_ref().filter(|waiting| waiting.packets > 0);
        if let Some(packet) = waiting.and_then(|waiting| stages.at(waiting.stage).first_of(slot)) {
            return packet.priority;
        }
        let next = self.send.next().filter(|_| self.assigns);
        let own = next.and_then(|(packet, again)| match again {
            false => self.law.priority(self.position(packet, mtu)),
            true => self.law.resend_priority(self.position(packet, mtu)),
        });
        own.unwrap_or(self.priority)
    }

    /// Makes the next packet, with the priority that it has by its place in the flow, a way of its
    /// own, and a token if it needs one.
    #[inline(always)]
    pub fn emit(&mut self, next: Next, now: Time, host: u32, slot: u32, settings: &Settings) -> Packet {
        let class = &settings.classes[usize::from(self.class)];
        let mtu = settings.host.mtu;
        let Next { packet: position, again, on_token } = next;
        let payload = self.payload(position, mtu);
        let mut packet = Packet::new(Kind::Data, host, self.spec.destination, self.sequence, slot);
        packet.position = position;
        packet.packets = self.packets;
        packet.entropy = match &mut self.paths {
            Some(paths) => paths.entropy(position, again),
            None => self.entropy,
        };
        packet.wire = class.format.data(payload) as u16;
        packet.payload = payload as u16;
        packet.class = self.class;
        packet.priority = self.priority;
        packet.set_ecn_capable(class.ecn_capable);
        if position + 1 == self.packets {
            packet.set_last();
        }
        packet.set_stamp(now);
        if self.assigns || self.speaks {
            self.address(&mut packet, again, mtu);
        }
        if on_token {
            self.use_token(&mut packet);
        }
        if again {
            self.retransmitted_bytes += u64::from(payload);
        }
        let first = self.send.in_flight() == 0;
        self.send.sent(now.ps());
        if first {
            // RFC 6298, section 5.1.
            self.set_deadline(now, settings);
        }
        (self.last_start, self.last_wire) = (now, u32::from(packet.wire) + settings.wire.gap);
        if self.listens {
            self.law.on_sent(now, payload);
            self.ask(settings, true);
        } else {
            self.stay(settings, true);
        }
        packet
    }

    /// The same where a packet takes another way through the host than most.
    #[inline(never)]
    fn emit_apart(&mut self, next: Next, now: Time, host: u32, slot: u32, settings: &Settings) -> Packet {
        self.emit(next, now, host, slot, settings)
    }

    /// What the law wants a packet to have: its priority, and a word to the receiver.
    #[inline(never)]
    fn address(&self, packet: &mut Packet, again: bool, mtu: u32) {
        if self.assigns {
            let place = self.position(packet.position, mtu);
            let priority = if again { self.law.resend_priority(place) } else { self.law.priority(place) };
            packet.priority = priority.unwrap_or(packet.priority);
        }
        if self.speaks
            && let Some(word) = self.law.word()
        {
            packet.set_word(word);
        }
    }

    /// A packet goes on a token.
    #[inline(always)]
    fn use_token(&mut self, packet: &mut Packet) {
        if let Some(name) = self.tokens.as_mut().and_then(|tokens| tokens.take()) {
            packet.set_token(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lets_through_what_it_holds_in_a_base_rtt() {
        let path = Path {
            rate: Rate::from_gbps(10),
            base_rtt: Time::from_us(8),
            mss: 1000,
            wire_mss: 1250,
            rto_min: Time::from_ms(1),
        };
        let gbps = |window| (through(window, &path) / 1e6).round() / 1e3;
        // 8,000 bytes of payload are 10,000 on the wire, and these take 8 us at 10 Gbit/s.
        assert_eq!([8_000, 4_000, 80_000].map(gbps), [10.0, 5.0, 100.0]);
        assert_eq!([1_000, 1, 0].map(gbps), [1.25; 3], "a packet at a time");
        assert_eq!(gbps(u64::MAX), f64::INFINITY);
        assert_eq!(through(8_000, &Path { base_rtt: Time::ZERO, ..path }), f64::INFINITY);
    }
}
