//! The sender of a flow: loss recovery, pacer and law, and what the receiver has granted.
//!
//! A sender decides when its next packet may go and makes it; see `transmit`. It sends nothing itself: its host does.

pub mod flow;
pub mod grants;
pub mod pacer;
pub mod paths;
pub mod slots;
pub mod tokens;
mod transmit;
pub mod underlay;

use self::{
    flow::Flow,
    grants::Grants,
    pacer::Pacer,
    paths::Paths,
    underlay::{Held, Stages},
};
use crate::{
    application::FlowSpec,
    packet::{Kind, Packet, Telemetry},
    probe::RateSample,
    recovery::{Ack, Acked, LossRecovery, Purpose, Scoreboard, TimerEvent},
    settings::{Class, Settings, host::LostRetransmission},
};
use incast_cc::{
    Cnp, Feedback, Loss,
    law::{Acknowledges, LawCapabilities, Opening, SendOrder},
    message::{Body, Instruction},
    registry::Law,
    spray::Fate,
    underlay::Reports,
    window::prr::Reduction,
};
use incast_units::{Rate, Time};

/// A flow's place in the queues of the NIC.
#[derive(Clone, Copy, Debug)]
pub struct QueuePlace {
    /// It is in a queue.
    pub queued: bool,
    /// Of the flows of its host that may send, the one with the lowest rank goes first.
    pub by_rank: bool,
    /// The queue: priority of its next packet.
    pub priority: u8,
    /// Packets that it has still to send.
    pub rank: u64,
}

/// See the module. What every acknowledgement and every packet need comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Sender {
    /// What is fixed from its start.
    pub flow: Flow,
    /// Where its host keeps it.
    pub slot: u32,
    /// Which methods of the law do something.
    pub capabilities: LawCapabilities,
    /// A scheduler of the receiver controls it.
    pub receiver_driven: bool,
    /// Its receiver acknowledges the flow as a whole, and finds losses itself.
    pub flow_acks: bool,
    /// Its receiver sends reminders, so that no timer is needed while it waits for credit.
    reminded: bool,
    /// The connection is not open yet.
    pub opening: bool,
    /// At the last acknowledgement less than half of the window was used: since then something else has limited the flow.
    underused: bool,
    /// Round trips begin where packets enter the underlay, not where they leave it.
    rtt_with_hold: bool,
    /// Its place at the NIC.
    pub place: QueuePlace,
    /// What the receiver has allowed.
    pub grants: Grants,
    /// Pending event of the pacer or the underlay.
    pub release_event: Time,
    /// Window and pace as the law last set them.
    pacer: Pacer,
    /// Its packets in the underlay's stage, where there is one.
    pub held: Option<Box<Held>>,
    /// Paths of its packets, where it chooses them.
    pub paths: Option<Box<Paths>>,
    /// A reduction of the window that takes place, and the packets that end it when all below have arrived.
    reduction: Option<Box<(Reduction, u32)>>,
    /// The stage of the underlay that takes delays from the flow's acknowledgements.
    pub ack_stage: Option<u32>,
    /// Loss recovery and its timers.
    pub recovery: LossRecovery,
    /// Pending event of the law's own timer.
    pub law_event: Time,
    /// The law. Few are as large as the largest.
    pub law: Law,
}

/// What a host does when a retransmission timer has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerAction {
    /// Nothing: the event is stale.
    None,
    /// Another event at this time.
    Schedule(Time),
    /// Send the SYN again.
    Syn,
    /// Go on, as nothing has happened in the network.
    Resume,
    /// Go on after a probe, or a timeout.
    Expired {
        /// It is a timeout, which is recorded.
        timeout: bool,
        /// The last one: the flow is given up.
        gives_up: bool,
    },
}

impl Sender {
    /// A flow that starts now, from a host of this rate; packets go through `stage`, where there is one.
    pub fn new(
        settings: &Settings,
        class: &Class,
        rate: Rate,
        spec: FlowSpec,
        sequence: u32,
        stage: Option<u32>,
    ) -> Self {
        let flow = Flow::new(settings, spec, sequence);
        let mut law = class.start(rate, spec.start, flow.random(settings.seed));
        let receiver_driven = class.scheduler.is_some();
        let mut capabilities = class.law.capabilities();
        if receiver_driven {
            let (receiver, degree) = settings.peers.of(&spec, rate);
            law.on_open(&Opening { bytes: spec.bytes, receiver, degree });
        } else {
            (capabilities.signals, capabilities.priorities) = (false, false);
        }
        let reordering = if class.transport.in_any_order { u32::MAX } else { settings.host.reordering };
        let by_acks = |arrangement: incast_cc::underlay::Arrangement| arrangement.reports == Reports::Acknowledgements;
        let mut sender = Self {
            slot: 0,
            recovery: LossRecovery::new(
                Scoreboard::new(class.recovery, flow.packets, reordering, settings.host.reordering_window),
                class.transport.in_any_order && class.transport.acknowledges == Acknowledges::Packets,
            ),
            pacer: Pacer::new(rate),
            grants: Grants::new(law.unscheduled(), class),
            reduction: None,
            law,
            capabilities,
            law_event: Time::MAX,
            release_event: Time::MAX,
            receiver_driven,
            flow_acks: class.transport.acknowledges == Acknowledges::Flows,
            reminded: class.transport.reminded,
            opening: false,
            underused: false,
            rtt_with_hold: class.arrangement.is_some_and(|arrangement| arrangement.rtt_with_hold),
            ack_stage: stage.filter(|_| class.arrangement.is_some_and(by_acks)),
            held: stage.map(|stage| Box::new(Held::new(stage))),
            paths: settings.path_count.is_some().then(|| Box::new(Paths::new(settings, &flow))),
            place: QueuePlace {
                queued: false,
                by_rank: class.transport.order == SendOrder::ShortestRemaining,
                priority: class.priority,
                rank: 0,
            },
            flow,
        };
        sender.refresh(spec.start, settings);
        sender
    }

    // ---- Handshake -------------------------------------------------------------------------------------------

    /// A SYN is sent: nothing else may be sent before its answer.
    pub fn on_syn_sent(&mut self, now: Time) {
        self.opening = true;
        self.pacer.close();
        self.recovery.start_syn_timer(now);
    }

    /// The connection is open: the law starts now, with an RTT sample.
    pub fn on_syn_ack(&mut self, now: Time, rtt: Time, rate: Rate, settings: &Settings) {
        let class = &settings.classes[usize::from(self.flow.class)];
        self.opening = false;
        self.recovery.on_progress();
        self.recovery.stop_timer();
        self.recovery.rtt.sample(rtt, Time::ZERO);
        self.law = class.start(rate, now, self.flow.random(settings.seed));
        self.refresh(now, settings);
    }

    // ---- The law ---------------------------------------------------------------------------------------------

    /// Applies the window and the rate of the law; to be called after each of its events.
    #[inline]
    pub fn refresh(&mut self, now: Time, settings: &Settings) {
        if self.apply(settings.host.mtu) && settings.classes[usize::from(self.flow.class)].updates_gap {
            self.replan(now, settings);
        }
    }

    /// Hands window and rate to the pacer. True if the gap after the last packet may have changed.
    #[inline]
    fn apply(&mut self, mtu: u32) -> bool {
        let window = match &self.reduction {
            Some(reduction) => reduction.0.window(),
            None => self.law.window(),
        };
        self.pacer.set(window, self.law.pacing_rate(), mtu)
    }

    /// Plans the gap after the last packet anew, with the newest window and rate: a rate limiter does not wait out a
    /// gap that it would no longer leave. Laws that do not re-time gaps only start a new one after each packet.
    #[inline(never)]
    fn replan(&mut self, now: Time, settings: &Settings) {
        let rtt = self.gap_rtt(settings);
        self.pacer.replan(now, settings.host.mtu, rtt, settings.wire.rounding, settings.host.pace_credit);
    }

    /// A packet was sent: plans the gap after it.
    #[inline(never)]
    fn plan_gap(&mut self, settings: &Settings) {
        let rtt = self.gap_rtt(settings);
        self.pacer.plan(settings.host.mtu, rtt, settings.wire.rounding, settings.host.pace_credit);
    }

    /// The round trip of a window below a packet. A hold is no congestion: it does not make a small window smaller.
    fn gap_rtt(&self, settings: &Settings) -> Time {
        self.recovery.rtt.without_hold().max(settings.base_rtt)
    }

    /// The time of an event that the law's own timer needs, if none is pending before it.
    #[inline]
    pub fn needs_law_event(&mut self, now: Time) -> Option<Time> {
        let timer = self.law.next_timer();
        (timer < self.law_event).then(|| {
            // A timer that has passed comes at once.
            self.law_event = timer.max(now);
            self.law_event
        })
    }

    /// An event of the law's timer has come. False if it is stale.
    pub fn on_law_event(&mut self, now: Time, settings: &Settings) -> bool {
        if self.law_event != now {
            return false;
        }
        self.law_event = Time::MAX;
        if self.law.next_timer() <= now {
            self.law.on_timer(now);
            self.refresh(now, settings);
        }
        true
    }

    /// A congestion notification.
    pub fn on_cnp(&mut self, now: Time, cnp: &Cnp, settings: &Settings) {
        self.law.on_cnp(now, cnp);
        self.refresh(now, settings);
    }

    // ---- Acknowledgements and losses -------------------------------------------------------------------------

    /// An acknowledgement, positive or negative. `clock_error` is how far the host's clock is ahead at a time, in
    /// picoseconds. True if all of the flow has arrived.
    #[inline(always)]
    pub fn on_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        clock_error: impl Fn(Time) -> i64,
        settings: &Settings,
        stages: &mut Stages,
    ) -> bool {
        let (mtu, ack) = (settings.host.mtu, packet.ack());
        let (before, sent) = (self.recovery.scoreboard.acked(), ack.echo(now));
        let nothing_to_send = self.recovery.scoreboard.next().is_none();
        let begins = if self.rtt_with_hold { self.handed_over(sent, stages) } else { sent };
        let rtt = now - begins;
        let tagged = self.receiver_driven && settings.classes[usize::from(self.flow.class)].tags_acks;
        let (tag, hold) = if tagged { (ack.tag(), Time::ZERO) } else { (None, ack.hold()) };
        let held = (sent - begins).saturating_add(hold).min(rtt);
        self.recovery.rtt.sample(rtt, held);
        let arrived = Ack {
            position: ack.position(),
            cumulative: ack.cumulative(),
            blocks: ack.blocks(tagged),
            stamp: sent.ps(),
            is_duplicate: ack.is_duplicate(),
            now: now.ps(),
            smoothed_rtt: self.recovery.rtt.smoothed().ps(),
        };
        let acked = match packet.kind {
            Kind::Nack => self.recovery.scoreboard.on_nack(&arrived),
            _ => self.recovery.scoreboard.on_ack(&arrived),
        };
        self.recovery.ignores_window |= acked.starts_recovery;
        let one_way_delay = || i64::from(ack.one_way_delay_ns()) * 1000 - clock_error(sent);
        if self.capabilities.acknowledgements {
            let (packets, marked) = ack.report();
            let scoreboard = &self.recovery.scoreboard;
            let feedback = Feedback {
                now,
                acked_bytes: self.acked_payload(&acked, mtu),
                packets,
                marked,
                acked: self.flow.position(scoreboard.acked(), mtu),
                next: self.flow.position(scoreboard.unsent(), mtu),
                in_flight: self.in_flight(mtu),
                rtt,
                app_limited: self.underused || self.pacer.is_app_limited(before),
                nothing_to_send,
                held,
                endpoint_delay: Some((ack.in_host() - hold).min(rtt - held)),
                hops: Some(ack.hops()),
                one_way_delay: Some(one_way_delay()),
                telemetry: telemetry.map_or(&[], Telemetry::hops),
                tag,
            };
            self.on_feedback(&feedback, &acked, settings);
            if acked.packets > 0 {
                // What an underlay holds is not used.
                let used = self.recovery.scoreboard.outstanding() + acked.packets;
                self.underused = 2 * u64::from(used) * u64::from(mtu) < self.pacer.window();
            }
        } else {
            // Window and rate are unchanged, but not the round trip.
            if self.pacer.has_gaps() && settings.classes[usize::from(self.flow.class)].updates_gap {
                self.replan(now, settings);
            }
        }
        if let Some(paths) = &mut self.paths {
            paths.on_fate(ack.position(), Fate::Arrived);
        }
        if let Some(stage) = self.ack_stage {
            stages.at(stage).on_report(now, sent, one_way_delay());
        }
        let is_done = self.recovery.scoreboard.is_done();
        if acked.packets > 0 && !is_done {
            self.recovery.on_progress();
            self.restart_timer(now, settings);
        }
        is_done
    }

    /// Passes an acknowledgement on to the law. Out of line: a law's code is large.
    #[inline(never)]
    fn on_feedback(&mut self, feedback: &Feedback<'_>, acked: &Acked, settings: &Settings) {
        self.law.on_ack(feedback);
        if let Some(reduction) = &mut self.reduction {
            reduction.0.on_ack(feedback.acked_bytes, feedback.in_flight);
            if self.recovery.scoreboard.acked() >= reduction.1 {
                self.reduction = None;
            }
        }
        self.report_loss(feedback.now, acked, settings);
        self.refresh(feedback.now, settings);
    }

    /// Payload bytes of newly acknowledged packets.
    #[inline]
    fn acked_payload(&self, acked: &Acked, mtu: u32) -> u64 {
        let full = u64::from(acked.packets) * u64::from(mtu);
        if acked.last { full - u64::from(mtu - self.flow.last_payload()) } else { full }
    }

    /// Payload bytes in flight, the last packet counted as a full one.
    #[inline]
    fn in_flight(&self, mtu: u32) -> u64 {
        u64::from(self.recovery.scoreboard.in_flight()) * u64::from(mtu)
    }

    /// Reports packets that were found lost to the law.
    #[inline]
    fn report_loss(&mut self, now: Time, found: &Acked, settings: &Settings) {
        if found.lost > 0 {
            let mtu = settings.host.mtu;
            self.law.on_loss(&Loss {
                now,
                lost_bytes: u64::from(found.lost) * u64::from(mtu),
                position: self.flow.position(found.first_lost, mtu),
                last: self.flow.position(found.last_lost, mtu),
                next: self.flow.position(self.recovery.scoreboard.unsent(), mtu),
                in_flight: self.in_flight(mtu),
                resent: found.resent.filter(|_| settings.host.lost_retransmission == LostRetransmission::NewLoss),
            });
            // Where whole flows are acknowledged, nothing would let a reduction go on.
            let is_gradual = settings.host.prr && !self.flow_acks && self.law.pacing_rate().is_none();
            if is_gradual && self.reduction.is_none() {
                self.reduce_gradually(mtu);
            }
        }
    }

    /// Recovery begins: the window that the law has set takes effect over a round trip.
    #[cold]
    fn reduce_gradually(&mut self, mtu: u32) {
        let scoreboard = &self.recovery.scoreboard;
        let flight = u64::from(scoreboard.unsent() - scoreboard.acked()) * u64::from(mtu);
        let reduction = Reduction::new(self.law.window(), flight, self.in_flight(mtu), mtu.into());
        self.reduction = Some(Box::new((reduction, scoreboard.unsent())));
    }

    /// The receiver requests packets again.
    pub fn on_resend(&mut self, now: Time, first: u32, count: u32, settings: &Settings) {
        let found = self.recovery.scoreboard.on_resend(first, count);
        self.report_loss(now, &found, settings);
        self.refresh(now, settings);
    }

    /// Reports the fate of packets that did not arrive whole to the choice of paths.
    #[inline(never)]
    pub fn report_fate(&mut self, first: u32, count: u32, fate: Fate) {
        if let Some(paths) = &mut self.paths {
            let end = first.saturating_add(count).min(self.recovery.scoreboard.unsent());
            (first..end).for_each(|position| paths.on_fate(position, fate));
        }
    }

    // ---- The retransmission timer ----------------------------------------------------------------------------

    /// Starts the timer afresh, or stops it: it runs while packets are in the network, or while the flow waits for
    /// credit.
    #[inline]
    pub fn restart_timer(&mut self, now: Time, settings: &Settings) {
        if self.recovery.scoreboard.outstanding() > 0 || self.awaits_credit(now, settings) {
            self.start_timer(now, settings);
        } else {
            self.recovery.stop_timer();
        }
    }

    #[inline]
    pub(super) fn start_timer(&mut self, now: Time, settings: &Settings) {
        let may_probe = self.may_probe();
        self.recovery.start_timer(now, may_probe, &settings.timer_limits());
    }

    #[inline(never)]
    fn awaits_credit(&mut self, now: Time, settings: &Settings) -> bool {
        !self.reminded && self.waits_for_credit(now, settings.host.mtu)
    }

    /// A tail-loss probe is possible: not with tokens, as the receiver requests what is missing, nor while the underlay
    /// holds packets: the next one that leaves serves as well (Linux: `skb_still_in_host_queue`).
    #[inline]
    pub(super) fn may_probe(&self) -> bool {
        self.grants.tokens.is_none() && !self.has_held()
    }

    /// A timer event has come.
    pub fn on_timer(&mut self, now: Time, settings: &Settings) -> TimerAction {
        match self.recovery.on_timer_event(now, |deadline| settings.host.expiry(deadline)) {
            TimerEvent::Stale => return TimerAction::None,
            TimerEvent::Early(due) => return TimerAction::Schedule(due),
            TimerEvent::Expired => {}
        }
        if self.opening {
            self.recovery.count_timeout();
            return TimerAction::Syn;
        }
        if self.recovery.scoreboard.held() > 0 && self.recovery.scoreboard.outstanding() == 0 {
            // What has not left this host is not lost.
            self.recovery.stop_timer();
            return TimerAction::Resume;
        }
        if self.recovery.purpose() == Purpose::Probe && self.has_held() {
            self.recovery.put_off_probe();
            return TimerAction::Resume;
        }
        let timeout = self.on_expiry(now, settings);
        let gives_up = timeout && self.recovery.gives_up(settings.host.give_up_after);
        if !gives_up {
            self.restart_timer(now, settings);
        }
        TimerAction::Expired { timeout, gives_up }
    }

    /// The timer has expired: sends a tail-loss probe, or takes the packets in flight as lost, or goes on without
    /// credit. True for a timeout.
    fn on_expiry(&mut self, now: Time, settings: &Settings) -> bool {
        let mtu = settings.host.mtu;
        if self.recovery.purpose() == Purpose::Reordering {
            let found = self.recovery.on_late(now);
            self.report_loss(now, &found, settings);
            self.refresh(now, settings);
            return false;
        }
        let is_probe = self.recovery.is_probe_due(self.may_probe());
        if is_probe && self.recovery.probe() {
            return false;
        }
        let next = self.flow.position(self.recovery.scoreboard.unsent(), mtu);
        if self.flow_acks {
            // The receiver finds losses; the law may remind it. A flow that only waits for its turn has no timeout.
            self.law.on_timeout(now, next);
            let reminds = self.law.has_signal();
            if reminds {
                self.recovery.count_timeout();
            } else {
                self.recovery.back_off();
            }
            self.refresh(now, settings);
            reminds
        } else if self.recovery.scoreboard.outstanding() > 0 || self.recovery.scoreboard.next().is_none() {
            let unasked = self.recovery.on_timeout(now, &settings.timer_limits());
            self.reduction = None;
            self.law.on_timeout(now, next);
            // Nobody asks for them, as no header has come.
            (0..unasked).for_each(|_| self.grants.add_token(now, Time::MAX, None));
            self.refresh(now, settings);
            true
        } else if is_probe {
            let waits = self.waits_for_credit(now, mtu);
            self.recovery.skip_probe(waits);
            false
        } else if self.waits_for_credit(now, mtu) {
            self.recovery.count_timeout();
            self.continue_without_credit(now, settings);
            true
        } else {
            false
        }
    }

    // ---- Grants of the receiver ------------------------------------------------------------------------------

    /// The next packet waits only for credit or a token.
    pub fn waits_for_credit(&mut self, now: Time, mtu: u32) -> bool {
        let next = self.recovery.scoreboard.next();
        next.is_some_and(|(packet, again)| !self.is_free(packet, again, mtu) && !self.grants.has_token(now))
    }

    /// A packet needs no token.
    #[inline]
    fn is_free(&self, packet: u32, again: bool, mtu: u32) -> bool {
        if again { self.grants.tokens.is_none() } else { self.flow.position(packet, mtu) < self.grants.credit }
    }

    /// A message of the receiver half. True if it requests packets again.
    #[inline]
    pub fn on_message(&mut self, now: Time, body: &Body, settings: &Settings) -> bool {
        let mtu = settings.host.mtu;
        let assigned = match self.law.on_message(now, body) {
            Some(Instruction::Tokens { in_all }) => {
                if let Some(tokens) = &mut self.grants.tokens {
                    tokens.pull(in_all);
                }
                return false;
            }
            Some(Instruction::Credit { position, priority }) => {
                self.grants.add_credit(position);
                priority
            }
            Some(Instruction::Token { wanted, lifetime, priority }) => {
                let wanted = wanted.map(|position| grants::packet_at(position, mtu));
                self.on_token(now, wanted, lifetime, settings);
                priority
            }
            Some(Instruction::Resend { position, bytes, priority }) => {
                let (first, count) = grants::packets_at(position, bytes, mtu);
                self.report_fate(first, count, Fate::Trimmed);
                self.on_resend(now, first, count, settings);
                self.grants.assign(priority);
                return true;
            }
            None => {
                self.refresh(now, settings);
                None
            }
        };
        self.grants.assign(assigned);
        false
    }

    /// A token of the receiver, perhaps for a certain packet.
    pub fn on_token(&mut self, now: Time, wanted: Option<u32>, lifetime: Time, settings: &Settings) {
        if let Some(packet) = wanted
            && !self.is_recent(now, packet, settings)
        {
            self.on_resend(now, packet, 1, settings);
        }
        self.grants.add_token(now, lifetime, wanted);
    }

    /// A packet in flight was sent so recently that its receiver could not know of a loss. Then a token for it permits
    /// the next packet, as one for a packet that was never sent does.
    fn is_recent(&self, now: Time, packet: u32, settings: &Settings) -> bool {
        let least = settings.classes[usize::from(self.flow.class)].transport.not_lost_before;
        least > Time::ZERO
            && self.recovery.scoreboard.sent_at(packet).is_some_and(|sent| now.saturating_sub(sent) < least)
    }

    /// The header of a packet came back, as a switch had no room for it: the packet is lost.
    pub fn on_bounced(&mut self, now: Time, position: u32, settings: &Settings) {
        self.report_fate(position, 1, Fate::Bounced);
        self.on_resend(now, position, 1, settings);
        let expected = self.expected_pulls(settings.host.mtu);
        let is_bad_path = self.paths.as_ref().is_some_and(|paths| paths.is_bad_path());
        if resends_at_once(expected, is_bad_path) && self.waits_for_credit(now, settings.host.mtu) {
            self.on_token(now, None, Time::MAX, settings);
        }
    }

    /// A header came back. How many PULLs are still expected: the receiver sends one for each packet that reaches it,
    /// whole or trimmed. After a timeout it is not known what has reached it; then packets in flight count.
    fn expected_pulls(&mut self, mtu: u32) -> u64 {
        let Some(tokens) = &mut self.grants.tokens else { return 0 };
        tokens.returned += 1;
        if self.recovery.timeouts > 0 {
            return u64::from(self.recovery.scoreboard.in_flight());
        }
        let again = self.recovery.retransmitted_bytes.div_ceil(u64::from(mtu));
        let sent = u64::from(self.recovery.scoreboard.unsent()) + again;
        sent.saturating_sub(tokens.returned + tokens.pulled())
    }

    /// The credit may have been lost: one packet is sent without, which requests more.
    fn continue_without_credit(&mut self, now: Time, settings: &Settings) {
        if let Some(tokens) = &mut self.grants.tokens {
            tokens.add(now, Time::MAX, None);
        } else {
            let position = self.flow.position(self.recovery.scoreboard.unsent() + 1, settings.host.mtu);
            self.grants.add_credit(position);
        }
    }

    // ---- Samples ---------------------------------------------------------------------------------------------

    /// A sample of what its law assigns. What arrives, its receiver knows.
    pub fn sample(&self, time: Time, settings: &Settings) -> RateSample {
        let rtt = self.recovery.rtt.smoothed().max(settings.base_rtt);
        let path = &settings.classes[usize::from(self.flow.class)].path;
        let (window, assigned_bps) = self.pacer.assigned(rtt, path);
        // In a reduction the window is not the law's; before a connection is open it is 0.
        let window_bytes = if self.reduction.is_some() { window } else { window.min(self.law.assigned_window()) };
        RateSample {
            time,
            source: self.flow.spec.source,
            sequence: self.flow.sequence,
            assigned_bps,
            measured_bps: 0,
            window_bytes,
            estimate: self.law.estimate(),
        }
    }
}

/// Whether a packet whose header came back is sent again at once, rather than with the next PULL: if no PULL is
/// expected, as otherwise the incast that filled the queue would come back as an echo; or if its path is bad, so that
/// it takes another one.
///
/// Source: M. Handley et al., SIGCOMM 2017 (NDP), section 3.2.4. Its authors' simulator also requires that at most one
/// packet of the first window has not been answered; here such packets count as PULLs expected.
const fn resends_at_once(pulls_expected: u64, path_is_bad: bool) -> bool {
    pulls_expected == 0 || path_is_bad
}
