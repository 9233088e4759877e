//! The in-switch agent: what it is asked, what it is told, and what becomes of its verdicts.

use super::{Port, Switch, channels::Channels, hold::Holding};
use crate::{
    engine::Event,
    fabric::{
        buffer::Memory,
        node::{NodeContext, class},
        packet::{Kind, Packet},
        queue::{MADE_HERE, Origin, Pool, Queue},
    },
    probe::{EventKind, EventRecord},
    routing::{self, Rule},
};
use incast_cc::{
    agent::{Codepoint, FlowAddress, Marker, Notification, PacketView, PortView, SwitchView, Verdict},
    registry::Agent,
};
use incast_units::{Rate, Time};

impl Switch<'_> {
    /// Asks the agent about the packet at hand, which is to wait.
    #[inline]
    pub(super) fn consult_enqueue(
        &mut self,
        port: usize,
        packet: &Packet,
        context: &mut impl NodeContext,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let view = self.view(port, packet.priority, context.now());
        let description = describe(packet, self.origin.port, self.node);
        let (agent, beside) = self.beside();
        agent.on_enqueue(&view, &description, &beside, &mut verdict);
        self.plan_agent(context);
        verdict
    }

    /// The agent need not be asked about a packet that enters a queue of so many bytes; any packet that leaves, for 0.
    #[inline]
    pub(super) fn is_indifferent(&self, port: usize, queued: u64) -> bool {
        self.by_port && self.agent.indifferent_up_to(port as u16).is_some_and(|most| queued <= most)
    }

    /// What an agent that looks at all ports wants done with a packet that enters; returns the port it goes to.
    pub(super) fn redirect(
        &mut self,
        port: usize,
        packet: &mut Packet,
        verdict: &Verdict,
        context: &mut impl NodeContext,
    ) -> usize {
        self.obey(port, packet, context.now(), verdict, context);
        match verdict.deflect_to.map(usize::from) {
            Some(other) if other != port => {
                assert!(other < self.ports.len(), "an agent deflects to port {other}, which does not exist");
                self.deflect(other, packet, context.now());
                other
            }
            _ => port,
        }
    }

    /// A packet takes another port than the usual one.
    pub(super) fn deflect(&mut self, port: usize, packet: &mut Packet, now: Time) {
        packet.deflect();
        if packet.kind == Kind::Data {
            self.counters.deflections += 1;
            self.recorder.packet(now, self.node, port as u16, EventKind::Deflection, packet);
        }
    }

    /// Asks the agent about a packet that leaves at `now`.
    #[inline]
    pub(super) fn consult_dequeue(
        &mut self,
        port: usize,
        now: Time,
        ingress: u16,
        packet: &Packet,
        context: &mut impl NodeContext,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let view = self.view(port, packet.priority, now);
        let description = describe(packet, ingress, self.node);
        let (agent, beside) = self.beside();
        agent.on_dequeue(&view, &description, &beside, &mut verdict);
        debug_assert!(!self.by_port || verdict.notify.is_none(), "an agent that acts by port notifies");
        if !self.by_port {
            self.plan_agent(context);
        }
        verdict
    }

    /// Tells the agent of a packet that will not leave.
    #[inline(never)]
    pub(super) fn report_drop(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        if !self.plain {
            let view = self.view(port, packet.priority, context.now());
            self.agent.on_drop(&view, &describe(packet, self.origin.port, self.node));
            self.plan_agent(context);
        }
    }

    /// Does what the agent wants done with a packet.
    pub(super) fn obey(
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
            let flow = describe(packet, MADE_HERE, self.node).flow;
            self.notify(&Notification { flow, cnp }, context);
        }
    }

    /// Sends a congestion notification to the source of a flow.
    fn notify(&mut self, notification: &Notification, context: &mut impl NodeContext) {
        let Notification { flow, cnp } = notification;
        let class = &self.settings.classes[usize::from(flow.class)];
        let mut packet = Packet::new(Kind::Cnp, flow.destination, flow.source, flow.sequence, flow.slot);
        packet.set_cnp(cnp);
        packet.entropy = flow.entropy;
        packet.wire = class.format.notification as u16;
        packet.priority = class.notification_priority;
        packet.class = flow.class;
        self.counters.created_bytes += u64::from(packet.wire);
        self.forward(MADE_HERE, &packet, None, context);
    }

    /// When the agent first wants to be called.
    pub fn first_timer(&mut self) -> Option<Time> {
        self.agent_event = self.agent.next_timer();
        (self.agent_event != Time::MAX).then_some(self.agent_event)
    }

    /// Sees to it that the agent's timer is not missed.
    #[inline]
    pub(super) fn plan_agent(&mut self, context: &mut impl NodeContext) {
        let next = self.agent.next_timer();
        if next < self.agent_event {
            self.agent_event = next.max(context.now());
            let event = Event { class: class::AGENT, entity: self.base, payload: 0 };
            context.schedule(self.agent_event, event);
        }
    }

    #[cold]
    pub(super) fn on_agent_timer(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        if self.agent_event != now {
            return;
        }
        self.agent_event = Time::MAX;
        if self.lazy {
            self.catch_up(context);
        }
        if self.agent.next_timer() <= now {
            let mut notifications = std::mem::take(&mut self.notifications);
            let (agent, beside) = self.beside();
            agent.on_timer(now, &beside, &mut |notification| notifications.push(notification));
            notifications.drain(..).for_each(|notification| self.notify(&notification, context));
            self.notifications = notifications;
        }
        self.carry_out(context);
        self.plan_agent(context);
    }

    /// A queue as the agent sees it, with a random number of its own.
    #[inline]
    pub(super) fn view(&mut self, port: usize, priority: u8, now: Time) -> PortView {
        let stream = &mut self.lots[port];
        *stream = stream.wrapping_add(WEYL);
        PortView {
            now,
            port: port as u16,
            priority,
            queue_bytes: self.queues[self.index(port, priority)].bytes(),
            rate: self.ports[port].link.rate(),
            stream: self.lots[port],
        }
    }

    /// The rest of the switch beside its agent.
    pub(super) fn beside(&mut self) -> (&mut Agent, Beside<'_>) {
        let Self {
            agent, ports, queues, pool, rule, priorities, memory, holding, channels, node, salt, ..
        } = self;
        let (priorities, salt) = (*priorities as u8, *salt);
        let (holding, channels) = (holding.as_deref(), channels.as_deref());
        (
            agent,
            Beside { ports, queues, pool, rule, priorities, memory, holding, channels, node: *node, salt },
        )
    }
}

/// What each event adds to its port's random stream: 2^64 over the golden ratio, as in SplitMix64.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// See [`SwitchView`].
pub(super) struct Beside<'s> {
    ports: &'s [Port],
    queues: &'s [Queue],
    pool: &'s Pool,
    rule: &'s Rule,
    priorities: u8,
    memory: &'s Memory,
    holding: Option<&'s Holding>,
    channels: Option<&'s Channels>,
    node: u32,
    salt: u32,
}

impl SwitchView for Beside<'_> {
    fn ports(&self) -> u16 {
        self.ports.len() as u16
    }
    fn priorities(&self) -> u8 {
        self.priorities
    }
    fn queue_bytes(&self, port: u16, priority: u8) -> u64 {
        self.queues[usize::from(priority) * self.ports.len() + usize::from(port)].bytes()
    }
    fn waiting(&self, port: u16, priority: u8) -> impl Iterator<Item = PacketView> {
        let queue = &self.queues[usize::from(priority) * self.ports.len() + usize::from(port)];
        self.pool.packets(queue).map(|(packet, origin)| describe(packet, origin.port, self.node))
    }
    fn rate(&self, port: u16) -> Rate {
        self.ports[usize::from(port)].link.rate()
    }
    fn may_send(&self, port: u16, priority: u8) -> bool {
        let port = &self.ports[usize::from(port)];
        port.link.is_up() && port.permission.allowed(1 << priority) != 0
    }
    fn alternatives(&self, destination: u32) -> impl Iterator<Item = u16> {
        self.rule.alternatives(destination)
    }
    fn longer_ways(&self, destination: u32) -> impl Iterator<Item = u16> {
        let longer = self.holding.map(|holding| holding.around.longer_ways(destination));
        let usual = move |port: &u16| self.rule.alternatives(destination).any(|usual| usual == *port);
        longer.into_iter().flatten().filter(move |port| !usual(port))
    }
    fn leads_to_host(&self, port: u16) -> bool {
        self.holding.is_some_and(|holding| holding.around.leads_to_host(port))
    }
    fn channels(&self) -> u8 {
        self.channels.map_or(1, Channels::count)
    }
    fn has_channels(&self, ingress: u16, port: u16, priority: u8, destination: u32) -> bool {
        let Some(holding) = self.holding.filter(|holding| holding.needs_channels) else { return true };
        let channel = self.channels.map_or(0, |channels| priority % channels.count());
        holding
            .around
            .needs(ingress, port, destination)
            .is_some_and(|needs| channel + needs < self.channels())
    }
    fn has_room(&self, port: u16, bytes: u32) -> bool {
        let out = &self.ports[usize::from(port)];
        out.link.is_up() && self.memory.admits_beside(u64::from(bytes), 0, out.waiting_bytes)
    }
    fn leaving_priority(&self, ingress: u16, port: u16, priority: u8) -> u8 {
        let origin = Origin { port: ingress, priority };
        self.channels.map_or(priority, |channels| channels.of(origin, usize::from(port)))
    }
    fn usual_port(&self, flow: &FlowAddress) -> Option<u16> {
        self.rule.pick(flow.destination, routing::entropy(flow.entropy, self.salt))
    }
    fn is_up(&self, port: u16) -> bool {
        self.ports[usize::from(port)].link.is_up()
    }
    fn held_bytes(&self, port: u16) -> u64 {
        self.holding.map_or(0, |holding| holding.bytes[usize::from(port)])
    }
}

fn describe(packet: &Packet, ingress: u16, node: u32) -> PacketView {
    PacketView {
        flow: FlowAddress {
            source: packet.origin().unwrap_or(EventRecord::NO_FLOW),
            destination: packet.destination,
            sequence: packet.sequence,
            slot: packet.slot,
            entropy: packet.entropy,
            class: packet.class,
        },
        ingress: (ingress != MADE_HERE).then_some(ingress),
        bytes: u32::from(packet.wire),
        ecn_capable: packet.ecn_capable(),
        codepoint: packet.codepoint(),
        is_data: packet.kind == Kind::Data,
        deflections: packet.deflections(),
        marker: (packet.kind == Kind::Marker)
            .then(|| Marker { name: packet.value(), is_own: packet.position == node }),
    }
}
