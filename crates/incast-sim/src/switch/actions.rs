//! Calls of the agent, its verdicts and its actions.
//!
//! Markers are queued with data and admitted as long as any buffer is left, because they are for queues that are long.
//! Where flow control counts packets by ingress, markers that came in are counted and admitted like data. Answers to
//! markers are frames of single links, as pause frames are: they are not queued, not paused, and made anew by each
//! switch.

use super::{
    All, Switch, UNKNOWN,
    agent::{AgentContext, AgentHost, flow_of},
};
use crate::{
    engine::Event,
    fabric::{
        buffer::Charge,
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
        queue::Ingress,
    },
    probe::EventKind,
};
use incast_cc::agent::{
    Codepoint, Forward, Notification, Verdict,
    rerouting::{Action, Diversion},
};
use incast_units::Time;

impl Switch<'_> {
    // ---- Calls ------------------------------------------------------------------------------------------------

    /// The agent, and what it sees of the switch.
    fn agent_and_context(&mut self) -> (&mut AgentHost, AgentContext<'_>) {
        let Self { agent, egress, router, buffer, hold, channels, node, .. } = self;
        let (hold, channels) = (hold.as_deref(), channels.as_deref());
        (agent, AgentContext { egress, router, buffer, hold, channels, node: *node })
    }

    /// The agent's verdict on a packet that is about to be queued.
    #[inline]
    pub(super) fn agent_on_enqueue(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) -> Verdict {
        let (agent, switch) = self.agent_and_context();
        let verdict = agent.on_enqueue(port, packet, ingress, context.now(), &switch);
        self.plan_agent_timer(context);
        verdict
    }

    /// Reports a packet that will not leave to the agent.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn report_drop(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        if !self.agent.is_none() {
            let (agent, switch) = self.agent_and_context();
            agent.on_drop(port, packet, ingress, context.now(), &switch);
            self.plan_agent_timer(context);
        }
    }

    /// Reports queues that are paused or resume to the agent, one bit for each priority.
    pub(super) fn agent_on_edges(
        &mut self,
        port: usize,
        priorities: u8,
        is_pause: bool,
        context: &mut impl NodeContext,
    ) {
        for priority in (0..8).filter(|priority| priorities & 1 << priority != 0) {
            let (agent, switch) = self.agent_and_context();
            agent.on_edge(port, priority, is_pause, context.now(), &switch);
            self.plan_agent_timer(context);
        }
    }

    /// When the agent's timer is first due.
    pub fn first_timer(&mut self) -> Option<Time> {
        self.agent.first_timer()
    }

    /// Schedules the event of the agent's timer.
    #[inline]
    fn plan_agent_timer(&mut self, context: &mut impl NodeContext) {
        if let Some(at) = self.agent.plan_timer(context.now()) {
            context.schedule(at, Event { class: class::AGENT, entity: self.base, payload: 0 });
        }
    }

    #[cold]
    pub(super) fn on_agent_timer(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        if !self.agent.begin_timer(now) {
            return;
        }
        if self.egress.is_lazy() {
            self.catch_up(context);
        }
        let (agent, switch) = self.agent_and_context();
        let notifications = agent.on_timer(now, &switch);
        notifications.iter().for_each(|notification| self.notify(notification, context));
        self.agent.recycle(notifications);
        self.run_actions(context);
        self.plan_agent_timer(context);
    }

    // ---- Verdicts ---------------------------------------------------------------------------------------------

    /// Calls an agent that may choose the port, then forwards.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn redirect(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let mut packet = *packet;
        let verdict = self.agent_on_enqueue(port, &packet, ingress, context);
        self.apply_verdict(port, &mut packet, context.now(), &verdict, context);
        match verdict.forward {
            Forward::Rerouting(Diversion::Answer) => {
                self.counters.consumed_bytes += u64::from(packet.wire);
                self.pass_answer(packet.control().pair().0, packet.control().value(), context);
            }
            Forward::Rerouting(Diversion::Hold { place, port }) => {
                self.hold(place, usize::from(port), &packet, telemetry, ingress, context);
            }
            Forward::Routed | Forward::Port(_) => {
                let port = match verdict.forward {
                    Forward::Port(other) if usize::from(other) != port => {
                        let other = usize::from(other);
                        let exists = other < self.egress.ports().len();
                        assert!(exists, "an agent deflects to port {other}, which does not exist");
                        self.deflect(other, &mut packet, context.now());
                        other
                    }
                    _ => port,
                };
                self.choose_channel(port, &mut packet, ingress);
                if packet.kind == Kind::Marker {
                    self.enqueue_marker(port, &packet, ingress, context);
                } else {
                    self.enqueue_apart(port, &packet, telemetry, ingress, context);
                }
            }
        }
        self.run_actions(context);
    }

    /// A packet finds its port idle, and the agent of that port is called.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn pass_by_agent(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let mut packet = *packet;
        let verdict = self.agent_on_enqueue(port, &packet, ingress, context);
        debug_assert!(verdict.forward == Forward::Routed, "an agent that acts by port deflects");
        self.apply_verdict(port, &mut packet, now, &verdict, context);
        // The link may be busy with a notification that took the same port, as it may after routes have changed.
        if self.is_idle(port, now) && self.has_credits::<All>(port, &packet) {
            self.transmit::<All>(port, now, (&packet).into(), telemetry, ingress, context);
        } else {
            self.queue::<All>(port, (&packet).into(), telemetry, ingress, context);
        }
    }

    /// A packet on which the agent of its port has a verdict is queued.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn queue_with_verdict(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        verdict: &Verdict,
        context: &mut impl NodeContext,
    ) {
        debug_assert!(verdict.forward == Forward::Routed, "an agent that acts by port deflects");
        let mut packet = *packet;
        self.apply_verdict(port, &mut packet, context.now(), verdict, context);
        self.queue::<All>(port, (&packet).into(), telemetry, ingress, context);
    }

    /// The agent sees a packet that leaves at `now`; then it is sent.
    pub(super) fn send_by_agent(
        &mut self,
        port: usize,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let mut packet = *packet;
        let (agent, switch) = self.agent_and_context();
        let verdict = agent.on_dequeue(port, &packet, ingress, now, &switch);
        if self.agent.chooses_port() {
            self.plan_agent_timer(context);
        }
        if !verdict.is_nothing() {
            self.apply_verdict(port, &mut packet, now, &verdict, context);
        }
        if !self.egress.send::<All>(port, &packet, packet.ecmp_hash, telemetry, now, context) {
            self.record_lost::<All>(port, (&packet).into(), now);
        }
    }

    /// Marks a packet and notifies its source, according to the agent's verdict.
    fn apply_verdict(
        &mut self,
        port: usize,
        packet: &mut Packet,
        now: Time,
        verdict: &Verdict,
        context: &mut impl NodeContext,
    ) {
        match verdict.mark {
            Codepoint::None => {}
            _ if !packet.ecn_capable() => {}
            Codepoint::UndeterminedExperienced => packet.mark_undetermined(),
            Codepoint::CongestionExperienced => {
                let mark = self.count_mark(port, packet, now);
                packet.mark_as(mark);
            }
        }
        if let Some(cnp) = verdict.notify {
            self.notify(&Notification { flow: flow_of(packet), cnp }, context);
        }
    }

    /// A packet takes another port than the usual one.
    fn deflect(&mut self, port: usize, packet: &mut Packet, now: Time) {
        packet.deflect();
        if packet.kind == Kind::Data {
            self.counters.deflections += 1;
            self.recorder.packet(now, self.node, port as u16, EventKind::Deflection, packet);
        }
    }

    /// A packet leaves by this port: with virtual channels that decides on its queue.
    fn choose_channel(&self, port: usize, packet: &mut Packet, ingress: Ingress) {
        if let Some(channels) = &self.channels {
            packet.priority = channels.queue(ingress, port);
        }
    }

    /// Sends a congestion notification to the source of a flow.
    fn notify(&mut self, notification: &Notification, context: &mut impl NodeContext) {
        let Notification { flow, cnp } = notification;
        let class = &self.settings.classes[usize::from(flow.class)];
        let mut packet = Packet::new(Kind::Cnp, flow.destination, flow.source, flow.sequence, flow.slot);
        packet.set_cnp(cnp);
        packet.ecmp_hash = flow.ecmp_hash;
        packet.wire = class.format.notification as u16;
        packet.priority = class.notification_priority;
        packet.class = flow.class;
        self.counters.created_bytes += u64::from(packet.wire);
        self.forward::<All>(&packet, None, Ingress::local(packet.priority), UNKNOWN, context);
    }

    // ---- Actions ----------------------------------------------------------------------------------------------

    /// Runs the actions of the agent.
    #[inline]
    fn run_actions(&mut self, context: &mut impl NodeContext) {
        if self.hold.is_some() {
            while let Some(action) = self.agent.next_action() {
                match action {
                    Action::Mark { .. } => self.send_marker(&action, context),
                    Action::Release { place, to } => self.release_held(place, to, context),
                }
            }
            self.plan_agent_timer(context);
        }
    }

    /// Holds a packet, if there is room for it.
    fn hold(
        &mut self,
        place: u16,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let Some(hold) = &mut self.hold else { return };
        let wire = u64::from(packet.wire);
        // A marker needs no share of the buffer, only room.
        let held = if packet.kind == Kind::Marker { 0 } else { hold.bytes_in(place) };
        let is_admitted = if self.flow_control.counts(ingress) {
            self.admit_lossless(port, packet, ingress, context)
        } else {
            let is_admitted = self.buffer.admits_held(wire, held, self.egress.port(port).waiting_bytes);
            if is_admitted {
                self.buffer.take(Charge { bytes: wire, from_pool: wire });
            }
            is_admitted
        };
        if !is_admitted {
            return self.drop_packet(port, packet, ingress, context);
        }
        let Some(hold) = &mut self.hold else { return };
        hold.push(place, port as u16, packet, telemetry, ingress);
        self.egress.port_mut(port).waiting_bytes += wire;
    }

    /// Sends a marker behind what is queued at a port. Without room it is not made, and the agent makes another one
    /// later: the agent looked for room before the packet that caused the marker took some.
    fn send_marker(&mut self, action: &Action, context: &mut impl NodeContext) {
        let Action::Mark { port, bytes, ingress, priority, flow, deflections, place, name } = *action else {
            return;
        };
        let Some(hold) = &mut self.hold else { return };
        hold.wait_for(place, port);
        let mut packet = Packet::new(Kind::Marker, flow.source, flow.destination, flow.sequence, flow.slot);
        packet.control_mut().set_value(name);
        packet.control_mut().set_pair(self.node, 0);
        (packet.ecmp_hash, packet.class) = (flow.ecmp_hash, flow.class);
        packet.wire = bytes;
        packet.priority = priority;
        self.choose_channel(usize::from(port), &mut packet, Ingress { port: ingress, priority });
        (0..deflections).for_each(|_| packet.deflect());
        let (port, ingress) = (usize::from(port), Ingress::local(packet.priority));
        if !self.has_room_for_marker(port, &packet, context.now()) {
            return self.report_drop(port, &packet, ingress, context);
        }
        self.counters.created_bytes += u64::from(packet.wire);
        self.enqueue_marker(port, &packet, ingress, context);
    }

    /// A marker that is made here leaves at once, is queued, or is lost because its link is down: it is not dropped.
    fn has_room_for_marker(&self, port: usize, packet: &Packet, now: Time) -> bool {
        let (out, bit) = (self.egress.port(port), 1 << packet.priority);
        let leaves = self.is_idle(port, now) && out.permission.allowed(out.waiting | bit) == bit;
        leaves
            || !out.link.is_up()
            || self.buffer.admits_held(u64::from(packet.wire), 0, out.waiting_bytes)
            || self.has_room(port, packet, self.egress.load(port, packet.priority))
    }

    /// Queues a marker, made here or elsewhere, or sends it if nothing is queued.
    fn enqueue_marker(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        let wire = u64::from(packet.wire);
        let out = self.egress.port(port);
        let waits = out.waiting != 0 || !self.is_idle(port, context.now());
        if waits
            && !self.flow_control.counts(ingress)
            && out.link.is_up()
            && self.buffer.admits_held(wire, 0, out.waiting_bytes)
        {
            let load = self.egress.load(port, packet.priority);
            self.buffer.enter(wire, load.bytes());
            self.append::<All>(port, packet.into(), load, None, ingress, context);
        } else {
            self.enqueue_apart(port, packet, None, ingress, context);
        }
    }

    /// Sends the packets that are held in a place, in order, before later arrivals.
    fn release_held(&mut self, place: u16, to: Option<(u16, bool)>, context: &mut impl NodeContext) {
        let Some(hold) = &mut self.hold else { return };
        let mut group = hold.release(place);
        let (planned, mut last) = (group.port, None);
        while let Some(released) = self.hold.as_mut().and_then(|hold| hold.pop(&mut group)) {
            let (mut packet, ingress) = (released.packet, released.ingress);
            let (wire, is_counted) = (u64::from(packet.wire), self.flow_control.counts(ingress));
            self.egress.port_mut(planned).waiting_bytes -= wire;
            let port = match to {
                Some((port, true)) => {
                    self.deflect(usize::from(port), &mut packet, context.now());
                    Some(port)
                }
                Some((port, false)) => Some(port),
                None => self.router.route(&packet).map(|(port, _)| port),
            };
            let goes = port.map(usize::from).filter(|port| self.egress.port(*port).link.is_up());
            if !is_counted {
                self.buffer.give_back(Charge { bytes: wire, from_pool: wire });
            } else if goes.is_none() {
                self.release::<All>(ingress, wire, 0);
            }
            match (goes, port) {
                (Some(port), _) => {
                    self.choose_channel(port, &mut packet, ingress);
                    let load = self.egress.load(port, packet.priority);
                    if !is_counted {
                        self.buffer.enter(wire, load.bytes());
                    }
                    let telemetry = released.telemetry.as_ref();
                    self.append::<All>(port, (&packet).into(), load, telemetry, ingress, context);
                    last = Some(port);
                }
                (None, Some(port)) => self.lose(usize::from(port), &packet, ingress, context),
                (None, None) => self.lose_unrouted(&packet, context.now()),
            }
            if goes.is_none() {
                self.update_neighbour(ingress, context);
            }
        }
        // An idle port starts at once, so that the next arrival finds its link busy.
        if let Some(port) = last {
            let allowed = self.egress.port(port).allowed();
            if allowed != 0 && self.is_idle(port, context.now()) {
                self.depart::<All>(port, allowed, context.now(), context);
            }
            self.plan_departure(port, context);
        }
    }

    // ---- Answers to markers -----------------------------------------------------------------------------------

    /// An answer to a marker arrived: it is for this switch's agent, or forwarded.
    pub(super) fn on_answer(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        if packet.destination == self.node {
            self.agent.on_answer(context.now(), packet.control().value());
            self.run_actions(context);
        } else {
            self.pass_answer(packet.destination, packet.control().value(), context);
        }
    }

    /// An answer goes on to the next switch. Without a route it is lost, as the marker might have been.
    fn pass_answer(&mut self, to: u32, name: u64, context: &mut impl NodeContext) {
        let Self { hold: Some(hold), egress, .. } = self else { return };
        let Some(port) = hold.push_answer(to, name, |port| egress.port(port).link.is_up()) else { return };
        // A frame of flow control that waits for the link goes first.
        if self.is_idle(port, context.now()) && !self.egress.port(port).frame_waits {
            self.send_answer(port, context);
        } else {
            self.egress.port_mut(port).answers_wait = true;
        }
        self.plan_departure(port, context);
    }

    /// Puts the answer that has waited longest on the idle link of a port.
    pub(super) fn send_answer(&mut self, port: usize, context: &mut impl NodeContext) {
        let Some(hold) = &mut self.hold else { return };
        let (packet, has_more) = hold.pop_answer(port, self.node);
        self.egress.port_mut(port).answers_wait = has_more;
        if let Some(packet) = packet {
            self.send_control(port, &packet, context);
        }
    }

    /// Routes have changed.
    pub(super) fn on_new_routes(&mut self, context: &mut impl NodeContext) {
        let Some(hold) = &mut self.hold else { return };
        hold.next_epoch();
        let (agent, switch) = self.agent_and_context();
        agent.on_routes(&switch);
        self.run_actions(context);
    }
}
