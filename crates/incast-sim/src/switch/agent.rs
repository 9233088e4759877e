//! The host of an in-switch agent: its timer, its random numbers, and its view of the switch.

use super::{channels::VirtualChannels, config::SwitchConfig, egress::Egress, hold::Hold};
use crate::{
    engine::random::mix,
    fabric::{buffer::SharedBuffer, queue::Ingress},
    packet::{Kind, Packet},
    probe::EventRecord,
    routing::Router,
};
use incast_cc::{
    agent::{
        FlowAddress, Notification, PacketView, PortSetup, PortView, Site, SwitchView, Verdict,
        rerouting::{Action, Marker, ReroutingView},
    },
    registry::Agent,
};
use incast_units::{Rate, Time};

/// Purpose of the random streams of agents.
const AGENT_STREAM: u32 = 0x4c4f_5453;

/// What each event adds to its port's random stream: 2^64 over the golden ratio, as in SplitMix64.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the module.
#[derive(Debug)]
pub(super) struct AgentHost {
    agent: Agent,
    /// There is no agent. A copy: it is read for every packet, and the agent may be large.
    is_none: bool,
    /// The agent treats each port by itself: see [`incast_cc::agent::AgentInfo::by_port`].
    by_port: bool,
    /// The pending event of its timer.
    timer: Time,
    /// The state of the random stream of each port; empty without an agent.
    random: Vec<u64>,
    /// Reused between calls; empty outside of them.
    notifications: Vec<Notification>,
}

impl AgentHost {
    /// The agent of switch `node`.
    pub fn new(switch: &SwitchConfig, seed: u64, node: u32, ports: &[PortSetup]) -> Self {
        let parameters = &switch.agent;
        let agent = parameters.install(&Site { ports, priorities: switch.priorities });
        let stream = |port: usize| mix(mix(seed ^ u64::from(AGENT_STREAM)) ^ u64::from(node) << 16 ^ port as u64);
        let random = (0..ports.len()).filter(|_| !agent.is_none()).map(stream).collect();
        Self {
            is_none: agent.is_none(),
            by_port: parameters.info().is_some_and(|info| info.by_port),
            agent,
            timer: Time::MAX,
            random,
            notifications: Vec::new(),
        }
    }

    /// There is no agent.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.is_none
    }

    /// The agent reads all ports, and may choose another one for a packet.
    #[inline]
    pub fn chooses_port(&self) -> bool {
        !self.is_none && !self.by_port
    }

    /// The agent treats each port by itself.
    #[inline]
    pub fn is_by_port(&self) -> bool {
        self.by_port
    }

    /// The agent may be skipped when a packet enters a queue of so many bytes; with 0, also when one leaves.
    #[inline]
    pub fn skips(&self, port: usize, queued: u64) -> bool {
        self.by_port && self.agent.skips_up_to(port as u16).is_some_and(|most| queued <= most)
    }

    /// The state of a queue, with a random number of this event's own.
    #[inline]
    fn view(&mut self, port: usize, priority: u8, now: Time, egress: &Egress) -> PortView {
        let stream = &mut self.random[port];
        *stream = stream.wrapping_add(WEYL);
        PortView {
            now,
            port: port as u16,
            priority,
            queue_bytes: egress.queue_bytes(port, priority),
            rate: egress.port(port).link.rate(),
            stream: *stream,
        }
    }

    /// A packet is about to enter a queue.
    #[inline]
    pub fn on_enqueue(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        now: Time,
        switch: &AgentContext<'_>,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let view = self.view(port, packet.priority, now, switch.egress);
        self.agent.on_enqueue(&view, &describe(packet, ingress, switch.node), switch, &mut verdict);
        verdict
    }

    /// A packet leaves its queue.
    #[inline]
    pub fn on_dequeue(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        now: Time,
        switch: &AgentContext<'_>,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let view = self.view(port, packet.priority, now, switch.egress);
        self.agent.on_dequeue(&view, &describe(packet, ingress, switch.node), switch, &mut verdict);
        debug_assert!(!self.by_port || verdict.notify.is_none(), "an agent that acts by port notifies");
        verdict
    }

    /// A packet will not leave: it was dropped, or its link is down.
    pub fn on_drop(&mut self, port: usize, packet: &Packet, ingress: Ingress, now: Time, switch: &AgentContext<'_>) {
        let view = self.view(port, packet.priority, now, switch.egress);
        self.agent.on_drop(&view, &describe(packet, ingress, switch.node));
    }

    /// A queue was paused, or resumed.
    pub fn on_edge(&mut self, port: usize, priority: u8, is_pause: bool, now: Time, switch: &AgentContext<'_>) {
        let view = self.view(port, priority, now, switch.egress);
        if is_pause {
            self.agent.on_pause(&view);
        } else {
            self.agent.on_resume(&view);
        }
    }

    /// An event of the timer. Returns `None` if it is out of date, else the notifications to be sent; give them back
    /// with [`Self::recycle`].
    pub fn on_timer(&mut self, now: Time, switch: &AgentContext<'_>) -> Vec<Notification> {
        let mut notifications = std::mem::take(&mut self.notifications);
        if self.agent.next_timer() <= now {
            self.agent.on_timer(now, switch, &mut |notification| notifications.push(notification));
        }
        notifications
    }

    /// Keeps the allocation of notifications that have been sent.
    pub fn recycle(&mut self, mut notifications: Vec<Notification>) {
        notifications.clear();
        self.notifications = notifications;
    }

    /// An answer to a marker of this switch arrived.
    pub fn on_answer(&mut self, now: Time, name: u64) {
        self.agent.on_answer(now, name);
    }

    /// A congestion isolation message of the next switch at a port arrived.
    pub fn on_isolation(&mut self, now: Time, port: u16, source: u32, sequence: u32) {
        self.agent.on_isolation(now, port, source, sequence);
    }

    /// Routes have changed.
    pub fn on_routes(&mut self, switch: &AgentContext<'_>) {
        self.agent.on_routes(switch);
    }

    /// The next action of the agent.
    #[inline]
    pub fn next_action(&mut self) -> Option<Action> {
        self.agent.next_action()
    }

    /// The time of the agent's first timer.
    pub fn first_timer(&mut self) -> Option<Time> {
        self.timer = self.agent.next_timer();
        (self.timer != Time::MAX).then_some(self.timer)
    }

    /// The time for which an event of the timer has to be scheduled, unless one is pending for then or earlier.
    #[inline]
    pub fn plan_timer(&mut self, now: Time) -> Option<Time> {
        let next = self.agent.next_timer();
        let is_earlier = next < self.timer;
        if is_earlier {
            self.timer = next.max(now);
        }
        is_earlier.then_some(self.timer)
    }

    /// An event of the timer has come. False if it is out of date.
    pub fn begin_timer(&mut self, now: Time) -> bool {
        let is_current = self.timer == now;
        if is_current {
            self.timer = Time::MAX;
        }
        is_current
    }
}

/// The switch as its agent sees it: see [`SwitchView`].
pub(super) struct AgentContext<'s> {
    pub egress: &'s Egress,
    pub router: &'s Router,
    pub buffer: &'s SharedBuffer,
    pub hold: Option<&'s Hold>,
    pub channels: Option<&'s VirtualChannels>,
    pub node: u32,
}

impl SwitchView for AgentContext<'_> {
    fn ports(&self) -> u16 {
        self.egress.ports().len() as u16
    }
    fn priorities(&self) -> u8 {
        self.egress.priorities() as u8
    }
    fn queue_bytes(&self, port: u16, priority: u8) -> u64 {
        self.egress.queue_bytes(usize::from(port), priority)
    }
    fn waiting(&self, port: u16, priority: u8) -> impl Iterator<Item = PacketView> {
        let packets = self.egress.packets(usize::from(port), priority);
        packets.map(|(packet, ingress)| describe(packet, ingress, self.node))
    }
    fn rate(&self, port: u16) -> Rate {
        self.egress.port(usize::from(port)).link.rate()
    }
    fn may_send(&self, port: u16, priority: u8) -> bool {
        let port = self.egress.port(usize::from(port));
        port.link.is_up() && port.permission.allowed(1 << priority) != 0
    }
    fn alternatives(&self, destination: u32) -> impl Iterator<Item = u16> {
        self.router.alternatives(destination)
    }
    fn rerouting(&self) -> impl ReroutingView {
        self
    }
}

/// A packet as an agent of switch `node` sees it.
fn describe(packet: &Packet, ingress: Ingress, node: u32) -> PacketView {
    PacketView {
        flow: flow_of(packet),
        ingress: (!ingress.is_local()).then_some(ingress.port),
        bytes: u32::from(packet.wire),
        ecn_capable: packet.ecn_capable(),
        codepoint: packet.codepoint(),
        is_data: packet.kind == Kind::Data,
        deflections: packet.deflections(),
        marker: (packet.kind == Kind::Marker)
            .then(|| Marker { name: packet.control().value(), is_own: packet.control().pair().0 == node }),
    }
}

/// Where notifications for the flow of a packet go.
pub(super) fn flow_of(packet: &Packet) -> FlowAddress {
    FlowAddress {
        source: packet.source().unwrap_or(EventRecord::NO_FLOW),
        destination: packet.destination,
        sequence: packet.sequence,
        slot: packet.slot,
        ecmp_hash: packet.ecmp_hash,
        class: packet.class,
    }
}
