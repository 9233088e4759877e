//! Calls of the agent, and its verdicts.

use super::{
    All, Switch, UNKNOWN,
    agent::{AgentContext, AgentHost, flow_of},
};
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class},
        queue::Ingress,
    },
    packet::{Kind, Packet, Telemetry},
};
use incast_cc::agent::{Codepoint, Forward, Notification, Verdict, rerouting::Diversion};
use incast_units::Time;

impl Switch<'_> {
    // ---- Calls ------------------------------------------------------------------------------------------------

    /// The agent, and what it sees of the switch.
    pub(super) fn agent_and_context(&mut self) -> (&mut AgentHost, AgentContext<'_>) {
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
    #[inline(never)]
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
    pub(super) fn plan_agent_timer(&mut self, context: &mut impl NodeContext) {
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
    #[inline(never)]
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
    #[inline(never)]
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
    #[inline(never)]
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
            if let Some(mbps) = verdict.advertise {
                self.egress.advertise(port, mbps);
            }
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
}
