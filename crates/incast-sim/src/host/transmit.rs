//! Transmission: which flow's packet goes next, once its sender, the underlay and the NIC permit it.

use super::{Host, clock, nic::Nic};
use crate::{
    engine::Event,
    fabric::node::{NodeContext, class},
    packet::{Kind, Packet, Telemetry},
    probe::EventKind,
    routing::config::LoadBalancing,
    sender::{Sender, pacer::SendDecision, underlay::Stages},
    settings::Settings,
};
use incast_units::Time;

impl Host<'_> {
    /// Queues a flow at the NIC, or plans when it may go on.
    #[inline(never)]
    pub(super) fn offer(&mut self, slot: u32, context: &mut impl NodeContext) {
        self.offer_inline(slot, context);
    }

    /// The same, for callers that do so for every packet.
    #[inline(always)]
    pub(super) fn offer_inline(&mut self, slot: u32, context: &mut impl NodeContext) {
        let (sender, transmit) = self.transmit_context(slot);
        if let Some(sender) = sender {
            transmit.offer(sender, context);
        }
    }

    /// A flow, and its transmit context.
    #[inline(always)]
    fn transmit_context(&mut self, slot: u32) -> (Option<&mut Sender>, TxContext<'_>) {
        let sender = self.senders.get_mut(slot);
        let (settings, base) = (self.settings, self.base);
        (sender, TxContext { settings, stages: &mut self.stages, nic: &mut self.nic, base })
    }

    /// The next packet of a flow may have changed. If its priority has, the flow moves to another queue.
    #[inline(never)]
    pub(super) fn requeue(&mut self, slot: u32) {
        let (Some(sender), transmit) = self.transmit_context(slot) else { return };
        let mtu = transmit.settings.host.mtu;
        if sender.place.queued && sender.next_priority(mtu, transmit.stages) != sender.place.priority {
            transmit.nic.remove(slot, &sender.place);
            transmit.enqueue(sender);
        }
    }

    /// Offers the flow whose packet is the first of a stage.
    pub(super) fn offer_first_held(&mut self, stage: u32, context: &mut impl NodeContext) {
        if let Some(slot) = self.stages.at(stage).first().map(|packet| packet.slot) {
            self.offer(slot, context);
        }
    }

    /// Something may have become ready: the NIC sends it if its link is idle and nothing else can become ready at this
    /// instant, or plans to choose.
    #[inline]
    pub(super) fn pump(&mut self, context: &mut impl NodeContext) {
        // With a choice pending, that sends it.
        if self.nic.choice || !self.nic.has_work(context.now()) || !self.nic.link().is_up() {
            return;
        }
        if self.nic.link().idle(context.now()) && !context.more_now() {
            self.choose(context);
        } else {
            self.plan_choice(context);
        }
    }

    /// The link is free, or was, and all that could become ready at this instant is.
    pub(super) fn on_free(&mut self, context: &mut impl NodeContext) {
        self.nic.choice = false;
        if !self.nic.link().is_up() {
            return;
        }
        if self.nic.link().idle(context.now()) {
            self.choose(context);
        } else if self.nic.has_work(context.now()) {
            // A control packet was put on the link meanwhile.
            self.plan_choice(context);
        }
    }

    /// Sends what comes next, and plans the choice after it.
    #[inline]
    fn choose(&mut self, context: &mut impl NodeContext) {
        self.send_one(context);
        if self.nic.has_work(context.now()) {
            self.plan_choice(context);
        }
    }

    /// Plans an event for the end of the transmission, unless one is pending.
    #[inline]
    pub(super) fn plan_choice(&mut self, context: &mut impl NodeContext) {
        if std::mem::replace(&mut self.nic.choice, true) {
            return;
        }
        let time = self.nic.link().free_at().max(context.now());
        context.schedule(time, self.event(class::NIC, 0));
    }

    /// What comes next: a frame of flow control, a control packet, then data by priority; where control packets do not
    /// go first they take turns with data.
    #[inline]
    fn send_one(&mut self, context: &mut impl NodeContext) {
        if self.nic.flow_control().uses_credits()
            && let Some(update) = self.nic.take_frame(self.node, context.now())
        {
            return self.send_update(&update, context);
        }
        let data_first = !self.settings.host.control_first && self.nic.answered;
        if data_first && self.send_data(context) {
            self.nic.answered = false;
        } else if let Some(mut packet) = self.nic.pop_control() {
            if self.nic.flow_control().uses_credits() {
                self.spend_credits(packet.priority, packet.wire, context);
            }
            let telemetry = self.nic.telemetry(&packet);
            self.put_control_on_link(&mut packet, telemetry.as_ref(), context.now(), context);
        } else if !data_first {
            self.send_data(context);
        }
    }

    /// Sends a packet of the next flow that may; false if there is none.
    #[inline]
    fn send_data(&mut self, context: &mut impl NodeContext) -> bool {
        while let Some(slot) = self.nic.pop_flow() {
            let uses_credits = self.nic.flow_control().uses_credits();
            if uses_credits && self.lacks_credits(slot, context) {
                continue;
            }
            if let Some((lane, wire)) = self.send_from(slot, context) {
                if uses_credits {
                    self.spend_credits(lane, wire, context);
                }
                return true;
            }
            // The flow may have sent a control packet instead.
            if !self.nic.link().idle(context.now()) {
                break;
            }
        }
        false
    }

    /// Sends a packet of a flow that was taken from its queue, and returns priority and size; `None` if the flow may no
    /// longer send.
    #[inline]
    fn send_from(&mut self, slot: u32, context: &mut impl NodeContext) -> Option<(u8, u16)> {
        let now = context.now();
        let settings = self.settings;
        let sender = self.senders.get_mut(slot)?;
        sender.place.queued = false;
        if sender.held.is_some() {
            return self.send_with_stage(slot, context);
        }
        let mut sent = None;
        if let Ok(next) = sender.next_packet(now, settings.host.mtu) {
            let packet = sender.emit(next, now, settings);
            sent = Some(self.put_data_on_link(&packet, context));
        }
        let (sender, transmit) = self.transmit_context(slot);
        match sender {
            Some(sender) if !sender.capabilities.signals => transmit.offer(sender, context),
            _ => {
                self.send_signals(slot, context);
                self.offer(slot, context);
            }
        }
        sent
    }

    /// The same for a flow whose packets an underlay may hold.
    #[inline(never)]
    fn send_with_stage(&mut self, slot: u32, context: &mut impl NodeContext) -> Option<(u8, u16)> {
        let sender = self.senders.get_mut(slot)?;
        let stage = sender.held.as_ref().map(|held| held.stage);
        let packet = sender.take_with_stage(context.now(), self.settings, &mut self.stages);
        let sent = packet.map(|packet| self.put_data_on_link(&packet, context));
        self.send_signals(slot, context);
        self.offer(slot, context);
        if let Some(stage) = stage {
            self.offer_first_held(stage, context);
        }
        sent
    }

    /// Sends a packet of data, and returns its priority and size.
    #[inline(always)]
    fn put_data_on_link(&mut self, packet: &Packet, context: &mut impl NodeContext) -> (u8, u16) {
        debug_assert!(
            self.nic.permission().allowed(1 << packet.priority) != 0,
            "a packet of a paused priority is sent: {packet:?}"
        );
        self.created_bytes += u64::from(packet.wire);
        self.injected += 1;
        let now = context.now();
        if !self.nic.transmit(now, packet, None, context) {
            self.recorder.packet(now, self.node, 0, EventKind::Lost, packet);
        }
        (packet.priority, packet.wire)
    }

    /// Hands a control packet to the NIC. Where it is known when its transmission starts, it is put on the link at
    /// once, so that neither a queue nor an event is needed.
    #[inline]
    pub(super) fn push_control(
        &mut self,
        packet: &mut Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.created_bytes += u64::from(packet.wire);
        let settings = self.settings;
        match self.nic.start_of_control(context.now(), settings.undisturbed_until, settings.lookahead) {
            Some(start) => self.put_control_on_link(packet, telemetry, start, context),
            None => self.nic.push_control(packet, telemetry),
        }
    }

    /// Sends a control packet, whose transmission starts at `start`.
    #[inline(always)]
    fn put_control_on_link(
        &mut self,
        packet: &mut Packet,
        telemetry: Option<&Telemetry>,
        start: Time,
        context: &mut impl NodeContext,
    ) {
        self.nic.answered = true;
        self.injected += 1;
        if matches!(packet.kind, Kind::Ack | Kind::Nack) {
            let error = clock::error(self.clock.as_deref(), start);
            let delay = packet.ack().since_arrival(start, error);
            packet.ack_mut().set_in_host(delay);
        }
        if !self.nic.transmit(start, packet, telemetry, context) {
            self.recorder.packet(start, self.node, 0, EventKind::Lost, packet);
        }
    }

    /// Draws a random path for a control packet, where hosts choose paths.
    pub(super) fn scatter(&mut self, packet: &mut Packet) {
        if self.settings.load_balancing == LoadBalancing::SprayPermutation {
            packet.set_pinned_path(self.random.draw() as u16);
        }
    }
}

/// The parts of a host that are needed to queue a flow.
struct TxContext<'h> {
    settings: &'h Settings,
    stages: &'h mut Stages,
    nic: &'h mut Nic,
    base: u32,
}

impl TxContext<'_> {
    /// Queues a flow at the NIC, or plans when it may go on.
    #[inline(always)]
    fn offer(self, sender: &mut Sender, context: &mut impl NodeContext) {
        let (base, slot) = (self.base, sender.slot);
        if sender.capabilities.timer {
            plan_law_event(sender, base, context);
        }
        if !sender.place.queued {
            match sender.decide(context.now(), self.settings, self.stages) {
                SendDecision::Ready => self.enqueue(sender),
                SendDecision::At(time) if time < sender.release_event => {
                    sender.release_event = time;
                    schedule(class::RELEASE, time, slot, base, context);
                }
                SendDecision::At(_) | SendDecision::Blocked => {}
            }
        }
        // The decision may have handed packets to the underlay, which starts the timer.
        plan_timer_event(sender, base, context);
    }

    /// Queues a flow at the NIC, by the priority of its next packet, as priorities may be paused.
    #[inline(always)]
    fn enqueue(self, sender: &mut Sender) {
        sender.place.queued = true;
        sender.place.priority = sender.next_priority(self.settings.host.mtu, self.stages);
        if sender.place.by_rank {
            sender.place.rank = u64::from(sender.recovery.scoreboard.waiting());
        }
        self.nic.offer(sender.slot, &sender.place);
    }
}

/// Schedules the event that the retransmission timer needs.
#[inline]
pub(super) fn plan_timer_event(sender: &mut Sender, base: u32, context: &mut impl NodeContext) {
    if let Some(time) = sender.recovery.needs_event(context.now()) {
        schedule(class::RETRANSMISSION, time, sender.slot, base, context);
    }
}

/// Schedules the event that the law's timer needs.
#[inline(never)]
fn plan_law_event(sender: &mut Sender, base: u32, context: &mut impl NodeContext) {
    if let Some(time) = sender.needs_law_event(context.now()) {
        schedule(class::LAW, time, sender.slot, base, context);
    }
}

/// Schedules an event of a flow. Out of line: most packets need none.
#[inline(never)]
fn schedule(class: u8, time: Time, slot: u32, base: u32, context: &mut impl NodeContext) {
    context.schedule(time, Event { class, entity: base, payload: slot });
}
