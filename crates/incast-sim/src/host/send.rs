//! Sending: the start and end of flows, and packets that arrive for them.

use super::{Host, SentFlow, transmit::plan_timer_event};
use crate::{
    application::{FlowInfo, FlowSpec},
    engine::vectors::push_first,
    fabric::node::{NodeContext, class},
    packet::{Kind, Packet, Telemetry},
    probe::EventKind,
    sender::{Sender, TimerAction, flow::Flow},
};
use incast_units::Time;

impl Host<'_> {
    // ---- Flows -----------------------------------------------------------------------------------------------

    /// Adds a flow that starts now or later.
    pub(super) fn open(&mut self, spec: FlowSpec, context: &mut impl NodeContext) {
        let classes = self.settings.classes.len();
        assert!(
            spec.bytes > 0 && usize::from(spec.class) < classes && spec.destination != self.node,
            "an application opened an impossible flow: {spec:?}"
        );
        let spec = FlowSpec { source: self.node, start: spec.start.max(context.now()), ..spec };
        // Latest first; of flows that start together the one opened first comes first.
        let place = self.upcoming.partition_point(|other| other.start > spec.start);
        self.upcoming.insert(place, spec);
        if place + 1 == self.upcoming.len() {
            context.schedule(spec.start, self.event(class::FLOW_START, 0));
        }
    }

    pub(super) fn on_flow_start(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        while let Some(spec) = self.upcoming.pop_if(|spec| spec.start <= now) {
            self.start(FlowSpec { start: now, ..spec }, context);
        }
        if let Some(next) = self.first_start() {
            context.schedule(next, self.event(class::FLOW_START, 0));
        }
        self.pump(context);
    }

    fn start(&mut self, mut spec: FlowSpec, context: &mut impl NodeContext) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if spec.request == FlowSpec::OWN_REQUEST {
            spec.request = u64::from(self.node) << 32 | u64::from(sequence);
        }
        let class = &self.settings.classes[usize::from(spec.class)];
        let rate = self.nic.link().rate();
        let stage = self.stages.of(self.settings, rate, (self.node, &spec), context.now());
        let mut sender = Sender::new(self.settings, class, rate, spec, sequence, stage);
        sender.restart_timer(context.now(), self.settings);
        let opens = self.settings.host.handshake && !sender.receiver_driven;
        let slot = self.senders.insert(sender);
        if opens {
            return self.send_syn(slot, context);
        }
        if self.schedules {
            self.send_signals(slot, context);
        }
        self.offer(slot, context);
    }

    /// All of a flow is acknowledged.
    fn finish(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(sender) = self.remove(slot, true, context) else { return };
        let Some(mut application) = self.application.take() else { return };
        let Flow { spec, sequence, .. } = sender.flow;
        let info = FlowInfo {
            source: self.node,
            sequence,
            destination: spec.destination,
            class: spec.class,
            bytes: spec.bytes,
        };
        application.on_acked(context.now(), &info, &mut |spec| self.open(spec, context));
        self.application = Some(application);
    }

    /// Gives a flow up.
    #[cold]
    fn abandon(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(sender) = self.remove(slot, false, context) else { return };
        let Flow { spec, sequence, .. } = sender.flow;
        let mut packet = Packet::new(Kind::Rst, self.node, spec.destination, sequence, slot);
        (packet.ecmp_hash, packet.class) = (sender.flow.ecmp_hash, sender.flow.class);
        self.send_rst(packet, context);
    }

    /// Takes a flow out of its slot, of the NIC's queue and of the underlay, and records it.
    fn remove(&mut self, slot: u32, acked: bool, context: &mut impl NodeContext) -> Option<Sender> {
        let sender = self.senders.remove(slot)?;
        if sender.place.queued {
            self.nic.remove(slot, &sender.place);
        }
        push_first(&mut self.sent, summary(&sender, context.now(), acked.then(|| context.now())));
        if let Some(held) = &sender.held {
            self.stages.forget(&self.settings.classes[usize::from(sender.flow.class)], held.stage, slot);
            self.offer_first_held(held.stage, context);
        }
        Some(sender)
    }

    /// The receiver sent a grant for a flow that is gone: repeats the RST, which may have been lost.
    #[cold]
    fn repeat_rst(&mut self, credit: &Packet, context: &mut impl NodeContext) {
        let Some(receiver) = credit.source() else { return };
        let mut packet = Packet::new(Kind::Rst, self.node, receiver, credit.sequence, credit.slot);
        (packet.ecmp_hash, packet.class) = (credit.reverse_hash(), credit.class);
        self.send_rst(packet, context);
    }

    fn send_rst(&mut self, mut packet: Packet, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        self.push_control(&mut packet, None, context);
    }

    // ---- Handshake -------------------------------------------------------------------------------------------

    /// With [`HostConfig::handshake`](crate::config::HostConfig::handshake) a flow starts with a SYN and sends nothing
    /// else before the answer is back (RFC 9293, section 3.5). Both are as long as acknowledgements and use their
    /// queues.
    #[cold]
    fn send_syn(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(sender) = self.senders.get_mut(slot) else { return };
        sender.on_syn_sent(context.now());
        plan_timer_event(sender, self.base, context);
        let flow = &sender.flow;
        let class = &self.settings.classes[usize::from(flow.class)];
        let mut packet = Packet::new(Kind::Syn, self.node, flow.spec.destination, flow.sequence, slot);
        packet.ecmp_hash = flow.ecmp_hash;
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        packet.class = flow.class;
        packet.data_mut().set_sent(context.now());
        self.scatter(&mut packet);
        self.push_control(&mut packet, None, context);
    }

    /// The connection is open.
    #[cold]
    pub(super) fn on_syn_ack(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        let rate = self.nic.link().rate();
        let Some(sender) = self.senders.addressed(packet).filter(|sender| sender.opening) else { return };
        sender.on_syn_ack(now, now - packet.ack().echo(now), rate, self.settings);
        self.offer(packet.slot, context);
        self.pump(context);
    }

    // ---- Timers ----------------------------------------------------------------------------------------------

    /// A flow's retransmission timer may have expired.
    pub(super) fn on_timer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(sender) = self.senders.get_mut(slot) else { return };
        match sender.on_timer(now, self.settings) {
            TimerAction::None => return,
            TimerAction::Schedule(time) => {
                return context.schedule(time, self.event(class::RETRANSMISSION, slot));
            }
            TimerAction::Syn => {
                self.record_timeout(slot, Kind::Syn, now);
                self.send_syn(slot, context);
                return self.pump(context);
            }
            TimerAction::Resume => {}
            TimerAction::Expired { timeout, gives_up } => {
                if timeout {
                    self.record_timeout(slot, Kind::Data, now);
                }
                if gives_up {
                    self.abandon(slot, context);
                    return self.pump(context);
                }
                if self.schedules {
                    self.requeue(slot);
                    self.send_signals(slot, context);
                }
            }
        }
        self.offer(slot, context);
        self.pump(context);
    }

    fn record_timeout(&mut self, slot: u32, kind: Kind, now: Time) {
        let Some(Sender { flow, .. }) = self.senders.get(slot) else { return };
        let packet = Packet::new(kind, self.node, flow.spec.destination, flow.sequence, slot);
        self.recorder.packet(now, self.node, 0, EventKind::Timeout, &packet);
    }

    /// Pace or underlay may allow the next packet of a flow.
    pub(super) fn on_release(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(sender) = self.senders.get_mut(slot) else { return };
        if sender.release_event != context.now() {
            return;
        }
        sender.release_event = Time::MAX;
        self.offer(slot, context);
        self.pump(context);
    }

    /// A law's timer may have expired.
    pub(super) fn on_law_timer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(sender) = self.senders.get_mut(slot) else { return };
        if !sender.on_law_event(context.now(), self.settings) {
            return;
        }
        if self.schedules {
            self.requeue(slot);
            self.send_signals(slot, context);
        }
        self.offer(slot, context);
        self.pump(context);
    }

    // ---- Packets from receivers and switches -----------------------------------------------------------------

    /// An acknowledgement, positive or negative.
    #[inline(never)]
    pub(super) fn on_ack(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        // An acknowledgement for an earlier flow of the slot answers a duplicate.
        let Some(sender) = self.senders.addressed(packet) else { return };
        let clock = self.clock.as_deref();
        let error = |time| super::clock::error(clock, time);
        let is_done = sender.on_ack(context.now(), packet, telemetry, error, self.settings, &mut self.stages);
        let stage = sender.ack_stage;
        if self.schedules {
            self.count_ack(packet, context.now());
        }
        if is_done {
            self.finish(packet.slot, context);
        } else {
            self.offer_inline(packet.slot, context);
        }
        if let Some(stage) = stage {
            self.offer_first_held(stage, context);
        }
        self.pump(context);
    }

    /// A congestion notification.
    #[inline(never)]
    pub(super) fn on_cnp(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        if let Some(sender) = self.senders.addressed(packet) {
            sender.on_cnp(context.now(), &packet.cnp(), self.settings);
            self.offer(packet.slot, context);
            self.pump(context);
        }
    }

    /// A switch had no room even for the header of a packet, and sent it back.
    #[cold]
    pub(super) fn on_bounced(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let Some(sender) = self.senders.addressed(packet) else { return };
        sender.on_bounced(context.now(), packet.data().position(), self.settings);
        self.offer(packet.slot, context);
        self.pump(context);
    }

    /// A report for the underlay. Where flows share a stage, a report for one that is gone counts, too.
    #[inline(never)]
    pub(super) fn on_report(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        let sent = packet.ack().echo(now);
        let delay = i64::from(packet.ack().one_way_delay_ns()) * 1000 - self.clock_error(sent);
        let held = self.senders.addressed(packet).and_then(|sender| sender.held.as_ref());
        let of_flow = held.map(|held| held.stage);
        let shared = || self.stages.shared(&self.settings.classes[usize::from(packet.class)], packet.source()?);
        let Some(stage) = of_flow.or_else(shared) else { return };
        self.stages.at(stage).on_report(now, sent, delay);
        self.offer_first_held(stage, context);
        self.pump(context);
    }

    /// A message of the receiver half.
    #[inline(never)]
    pub(super) fn on_credit(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let (now, settings, slot) = (context.now(), self.settings, packet.slot);
        let Some(sender) = self.senders.addressed(packet) else {
            if settings.host.give_up_after.is_some() {
                self.repeat_rst(packet, context);
                self.pump(context);
            }
            return;
        };
        let is_resend = sender.on_message(now, &packet.control().body(), settings);
        let signals = sender.capabilities.signals;
        if sender.flow_acks {
            // Any message from the receiver restarts the timer, as acknowledgements come only at the end.
            sender.recovery.on_receiver_alive();
            sender.restart_timer(now, settings);
        }
        if sender.place.queued {
            self.requeue(slot);
        }
        self.offer_inline(slot, context);
        if is_resend
            && self.nic.is_behind(slot)
            && let Some(sender) = self.senders.get_mut(slot)
        {
            // Other flows go before the packets that the receiver requested.
            sender.law.on_deferred_resend(now);
        }
        if signals {
            self.send_signals(slot, context);
        }
        self.pump(context);
    }
}

/// The record of a flow at `now`, when everything was `acked` or the flow is given up.
pub(super) fn summary(sender: &Sender, now: Time, acked: Option<Time>) -> SentFlow {
    SentFlow {
        spec: sender.flow.spec,
        sequence: sender.flow.sequence,
        acked,
        retransmitted_bytes: sender.recovery.retransmitted_bytes,
        timeouts: sender.recovery.timeouts,
        held: sender.held.as_ref().map_or(Time::ZERO, |held| held.time(now)),
    }
}
