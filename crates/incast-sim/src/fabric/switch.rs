//! A store-and-forward switch: routing, buffer admission, egress queues, marking, agents.

use super::{
    buffer::Memory,
    link::{Receiver, Transmitter},
    node::{NodeContext, class},
    packet::{Kind, Packet, Telemetry},
    permission::{PauseRecord, Permission},
    queue::{MADE_HERE, Pool, Queue},
    routing::{self, Rule},
};
use crate::{
    config::{Ecn, LoadBalancing, MarkAt},
    engine::{
        Event,
        prefetch::prefetch,
        random::{Stream, mix},
    },
    host::format::SMALLEST_FRAME,
    probe::{EventKind, EventRecord, PortProbe, PortSample, Recorder},
    settings::Settings,
};
use incast_cc::{
    feedback::HopTelemetry,
    switch::{
        Agent, FlowAddress, Notification, PacketView, PortView, SwitchAgent, SwitchView, Verdict,
        red::Marking,
    },
};
use incast_units::{Rate, Time};

/// The egress side of a port: what every packet that leaves needs, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Port {
    link: Transmitter,
    /// Frame bytes waiting, all priorities.
    waiting_bytes: u64,
    /// Priorities with something waiting, one bit each.
    waiting: u8,
    permission: Permission,
    /// A departure event is pending, or the port is in the list of busy ones.
    departure: bool,
    /// Index into the switch's list of marking rules, of which there are no more than ports.
    marking: u16,
}

/// Counts of one queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueRecord {
    marks: u64,
    drops: u64,
}

/// Sums of one switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Bytes of control packets made here.
    pub created_bytes: u64,
    /// Packets and bytes without room.
    pub dropped: (u64, u64),
    /// Packets and bytes without a route, or queued at a link that went down.
    pub lost: (u64, u64),
    /// Marked packets.
    pub marks: u64,
    /// Deflected packets.
    pub deflections: u64,
    /// The longest egress queue, the packet in service included.
    pub max_queue_bytes: u64,
}

/// A switch.
#[derive(Debug)]
pub struct Switch<'a> {
    settings: &'a Settings,
    ports: Vec<Port>,
    /// Ingress, by port.
    inputs: Vec<Receiver>,
    /// By priority, then port.
    queues: Vec<Queue>,
    /// Frame bytes sent, indexed like the queues; only where probes want it.
    sent_by_priority: Vec<u64>,
    priorities: usize,
    /// The different marking rules of the ports: one for each rate.
    markings: Vec<Marking>,
    /// By priority, then port.
    records: Vec<QueueRecord>,
    /// By port.
    pauses: Vec<PauseRecord>,
    pool: Pool,
    memory: Memory,
    rule: Rule,
    /// Rules of later routing epochs, last first.
    later_rules: Vec<Rule>,
    salt: u32,
    agent: Agent,
    /// Pending event of the agent's timer.
    agent_event: Time,
    /// Events that the agent was asked about: its random numbers.
    consultations: u64,
    /// What the agent wants sent; empty but while it is asked.
    notifications: Vec<Notification>,
    spray: Stream,
    /// By port, where marking draws lots.
    red: Vec<Stream>,
    /// Departures are caught up with instead of being events; see [`Switch::drain`].
    lazy: bool,
    /// Ports with something waiting, where departures are lazy.
    busy: Vec<u16>,
    node: u32,
    /// First entity of this node in its domain.
    base: u32,
    /// Sums.
    pub counters: Counters,
    /// Recorded events.
    pub recorder: Recorder,
    probe: Option<Box<PortProbe>>,
}

/// Purposes of the random streams.
const SPRAY_STREAM: u32 = 0x5350_5259;
const RED_STREAM: u32 = 0x5245_4400;
const SALT_STREAM: u32 = 0x5341_4c54;

/// The salt with which a switch mixes flow hashes.
pub fn salt(seed: u64, node: u32) -> u32 {
    mix(seed ^ mix(u64::from(SALT_STREAM) << 32 | u64::from(node))) as u32
}

fn marking(ecn: &Ecn, rate: Rate, base_rtt: Time) -> Marking {
    match ecn {
        Ecn::Off => Marking::Off,
        Ecn::Step { at } => Marking::Step { at: at.bytes(rate, base_rtt) },
        Ecn::Red { min, max, p } => {
            Marking::Red { min: min.bytes(rate, base_rtt), max: max.bytes(rate, base_rtt), p: *p }
        }
    }
}

impl<'a> Switch<'a> {
    /// A switch with its links. `rules` are those of the routing epochs in order, at least one; ports to sample are
    /// given with their period. `alone` says that it shares its domain with no other node.
    pub fn new(
        settings: &'a Settings,
        node: u32,
        base: u32,
        links: Vec<(Transmitter, Receiver)>,
        rules: Vec<Rule>,
        probe: Option<(Time, Vec<u16>)>,
        alone: bool,
    ) -> Self {
        let priorities = usize::from(settings.switch.priorities);
        let queues = links.len() * priorities;
        let mut markings: Vec<Marking> = Vec::new();
        let (mut ports, mut inputs) = (Vec::with_capacity(links.len()), Vec::with_capacity(links.len()));
        for (link, input) in links {
            let marking = marking(&settings.switch.ecn, link.rate(), settings.base_rtt);
            let known = markings.iter().position(|other| *other == marking).unwrap_or_else(|| {
                markings.push(marking);
                markings.len() - 1
            });
            inputs.push(input);
            ports.push(Port {
                link,
                waiting_bytes: 0,
                waiting: 0,
                permission: Permission::default(),
                departure: false,
                marking: known as u16,
            });
        }
        let red = if matches!(settings.switch.ecn, Ecn::Red { .. }) {
            let stream =
                |port: usize| Stream::new(settings.seed, RED_STREAM, u64::from(node) << 20 | port as u64);
            (0..ports.len()).map(stream).collect()
        } else {
            Vec::new()
        };
        let mut later_rules = rules;
        later_rules.reverse();
        let rule = later_rules.pop().unwrap_or_else(|| Rule::Table(routing::Table::default()));
        Self {
            settings,
            records: vec![QueueRecord::default(); queues],
            pauses: vec![PauseRecord::default(); ports.len()],
            ports,
            inputs,
            markings,
            queues: vec![Queue::default(); queues],
            sent_by_priority: if probe.is_some() { vec![0; queues] } else { Vec::new() },
            priorities,
            pool: Pool::default(),
            memory: Memory::new(settings.switch.buffer, queues as u64),
            rule,
            later_rules,
            salt: salt(settings.seed, node),
            agent: settings.switch.agent.clone(),
            agent_event: Time::MAX,
            consultations: 0,
            notifications: Vec::new(),
            spray: Stream::new(settings.seed, SPRAY_STREAM, u64::from(node)),
            red,
            lazy: alone && settings.switch.agent.is_none(),
            busy: Vec::new(),
            node,
            base,
            counters: Counters::default(),
            recorder: Recorder { on: settings.record, records: Vec::new() },
            probe: probe.map(|(every, ports)| Box::new(PortProbe::new(every, ports))),
        }
    }

    #[inline]
    fn index(&self, port: usize, priority: u8) -> usize {
        usize::from(priority) * self.ports.len() + port
    }

    /// Ingress: a packet arrived at `port`.
    #[inline]
    pub fn on_packet(
        &mut self,
        port: usize,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.counters.arrived += 1;
        if self.inputs[port].accept(context.now(), packet, &self.ports[port].link) {
            self.forward(port as u16, packet, telemetry, context);
        } else {
            self.recorder.packet(context.now(), self.node, port as u16, EventKind::Lost, packet);
        }
    }

    /// Routing: which of the equal-cost ports.
    #[inline(always)]
    fn forward(
        &mut self,
        ingress: u16,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let entropy = match self.settings.switch.load_balancing {
            LoadBalancing::Ecmp => routing::entropy(packet.entropy, self.salt),
            LoadBalancing::Spray => self.spray.next_u32(),
        };
        match self.rule.pick(packet.destination, entropy) {
            Some(port) if self.agent.is_none() => {
                self.enqueue(usize::from(port), ingress, packet, telemetry, context);
            }
            Some(port) => self.enqueue_consulted(usize::from(port), ingress, *packet, telemetry, context),
            None => self.lose_unrouted(packet, context.now()),
        }
    }

    /// Egress where there is an agent, which may mark the packet or choose another port.
    #[inline(never)]
    fn enqueue_consulted(
        &mut self,
        port: usize,
        ingress: u16,
        mut packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let port = self.consult_enqueue(port, ingress, &mut packet, context);
        self.enqueue(port, ingress, &packet, telemetry, context);
    }

    /// Egress: straight to an idle link, or into a queue.
    #[inline(always)]
    fn enqueue(
        &mut self,
        port: usize,
        ingress: u16,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        if self.lazy && self.ports[port].waiting != 0 {
            self.drain(port, now + Time::from_ps(1), context);
        }
        let index = self.index(port, packet.priority);
        let out = &mut self.ports[port];
        let bit = 1u8 << packet.priority;
        if out.link.idle(now) && out.permission.allowed(out.waiting | bit) == bit && out.link.is_up() {
            self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(u64::from(packet.wire));
            self.transmit(port, ingress, now, packet, telemetry, context);
            return;
        }
        if !out.link.is_up() {
            self.lose(port, ingress, packet, context);
            return;
        }
        let (wire, queued) = (u64::from(packet.wire), self.queues[index].bytes);
        let port_bytes = out.waiting_bytes;
        if !self.memory.admits(wire, queued, port_bytes) && !self.admits_after_all(port, index, wire, context)
        {
            self.records[index].drops += 1;
            self.counters.dropped.0 += 1;
            self.counters.dropped.1 += wire;
            self.recorder.packet(now, self.node, port as u16, EventKind::Drop, packet);
            self.report_drop(port, ingress, packet, context);
            return;
        }
        let mut mark = false;
        if self.settings.switch.mark_at == MarkAt::Enqueue && packet.ecn_capable() {
            let out = &self.ports[port];
            let occupancy = queued + out.link.in_service(now, packet.priority);
            mark = self.markings[usize::from(out.marking)].mark(occupancy, || self.red[port].uniform());
            if mark {
                self.count_mark(port, packet, now);
            }
        }
        let out = &mut self.ports[port];
        self.memory.enter(wire, queued);
        self.pool.push(&mut self.queues[index], packet, ingress, mark, telemetry);
        if self.lazy && !out.departure {
            out.departure = true;
            self.busy.push(port as u16);
        }
        out.waiting |= bit;
        out.waiting_bytes += wire;
        let length = out.waiting_bytes + out.link.in_service_any(now);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(length);
        if !self.lazy {
            self.plan_departure(port, context);
        }
    }

    /// Whether a packet has room once all departures that are due have happened.
    #[cold]
    fn admits_after_all(
        &mut self,
        port: usize,
        queue: usize,
        wire: u64,
        context: &mut impl NodeContext,
    ) -> bool {
        if !self.lazy {
            return false;
        }
        let limit = context.now() + Time::from_ps(1);
        (0..self.busy.len()).for_each(|index| self.drain(usize::from(self.busy[index]), limit, context));
        self.memory.admits(wire, self.queues[queue].bytes, self.ports[port].waiting_bytes)
    }

    /// Lets everything leave a port that leaves before `limit`.
    ///
    /// An event for each departure would double the events of a loaded fabric. Where a switch has its domain to
    /// itself and nobody watches departures, only three things can see whether one has happened: the next packet for
    /// the same port, a packet that finds no room in the shared memory, and the end of the window, after which what
    /// left must be on its way. Each of these catches up first, so the results are those of one event for each.
    #[inline]
    fn drain(&mut self, port: usize, limit: Time, context: &mut impl NodeContext) {
        loop {
            let out = &self.ports[port];
            let at = out.link.free_at();
            if at >= limit || out.permission.allowed(out.waiting) == 0 {
                return;
            }
            self.depart(port, at, context);
        }
    }

    /// Lets all ports catch up. Returns when the next packet leaves.
    pub fn finish_window(&mut self, limit: Time, context: &mut impl NodeContext) -> Time {
        let mut next = Time::MAX;
        let mut busy = std::mem::take(&mut self.busy);
        busy.retain(|port| {
            let port = usize::from(*port);
            self.drain(port, limit, context);
            let out = &self.ports[port];
            if out.permission.allowed(out.waiting) != 0 {
                next = next.min(out.link.free_at());
            }
            let busy = out.waiting != 0;
            self.ports[port].departure = busy;
            busy
        });
        self.busy = busy;
        next
    }

    /// Sees to it that a port with something to send is looked at when its link is free.
    #[inline]
    fn plan_departure(&mut self, port: usize, context: &mut impl NodeContext) {
        let out = &mut self.ports[port];
        if !out.departure && out.permission.allowed(out.waiting) != 0 {
            out.departure = true;
            let at = out.link.free_at().max(context.now());
            context
                .schedule(at, Event { class: class::DEPARTURE, entity: self.base + port as u32, payload: 0 });
        }
    }

    /// A departure event.
    fn on_departure(&mut self, port: usize, context: &mut impl NodeContext) {
        let now = context.now();
        self.ports[port].departure = false;
        let out = &self.ports[port];
        if out.link.idle(now) && out.permission.allowed(out.waiting) != 0 {
            self.depart(port, now, context);
        }
        self.plan_departure(port, context);
    }

    /// Dequeue: the link is free at `now`, the highest waiting priority that may send goes.
    #[inline]
    fn depart(&mut self, port: usize, now: Time, context: &mut impl NodeContext) {
        let out = &mut self.ports[port];
        let allowed = out.permission.allowed(out.waiting);
        let priority = allowed.trailing_zeros() as u8;
        let index = usize::from(priority) * self.ports.len() + port;
        let out = &mut self.ports[port];
        let queue = &mut self.queues[index];
        let Some((mut packet, ingress)) = self.pool.pop(queue) else { return };
        let left = queue.bytes;
        self.memory.leave(u64::from(packet.wire), left);
        out.waiting_bytes -= u64::from(packet.wire);
        if queue.is_empty() {
            out.waiting &= !(1 << priority);
        }
        if self.settings.switch.mark_at == MarkAt::Dequeue
            && packet.ecn_capable()
            && self.markings[usize::from(out.marking)].mark(left, || self.red[port].uniform())
        {
            self.count_mark(port, &packet, now);
            packet.mark();
        }
        let telemetry = self.pool.telemetry(&packet);
        self.transmit(port, ingress, now, &packet, telemetry.as_ref(), context);
    }

    /// The packet leaves: agents first, then the link.
    #[inline(always)]
    fn transmit(
        &mut self,
        port: usize,
        ingress: u16,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if self.agent.is_none() {
            self.put_on_link(port, now, packet, telemetry, context);
        } else {
            let mut packet = *packet;
            self.consult_dequeue(port, ingress, &mut packet, context);
            self.put_on_link(port, now, &packet, telemetry, context);
        }
    }

    /// Telemetry, then the link.
    #[inline(always)]
    fn put_on_link(
        &mut self,
        port: usize,
        now: Time,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        if !self.sent_by_priority.is_empty() {
            let index = self.index(port, packet.priority);
            self.sent_by_priority[index] += u64::from(packet.wire);
        }
        let out = &mut self.ports[port];
        if self.settings.switch.telemetry && packet.kind == Kind::Data {
            let mut telemetry = telemetry.copied().unwrap_or_default();
            telemetry.push(HopTelemetry {
                time: now,
                sent_bytes: out.link.sent_bytes(),
                queue_bytes: u32::try_from(out.waiting_bytes).unwrap_or(u32::MAX),
                rate_mbps: u32::try_from(out.link.rate().bps() / 1_000_000).unwrap_or(u32::MAX),
            });
            if !out.link.send(now, packet, Some(&telemetry), context) {
                self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
            }
        } else if !out.link.send(now, packet, telemetry, context) {
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, packet);
        }
    }

    /// A packet is about to be marked: counts it, unless it is already.
    #[inline]
    fn count_mark(&mut self, port: usize, packet: &Packet, now: Time) {
        if !packet.marked() {
            let index = self.index(port, packet.priority);
            self.records[index].marks += 1;
            self.counters.marks += 1;
            self.recorder.packet(now, self.node, port as u16, EventKind::Mark, packet);
        }
    }

    /// A packet has nowhere to go. The agent has not heard of it.
    #[cold]
    fn lose_unrouted(&mut self, packet: &Packet, now: Time) {
        self.counters.lost.0 += 1;
        self.counters.lost.1 += u64::from(packet.wire);
        self.recorder.packet(now, self.node, 0, EventKind::Lost, packet);
    }

    /// The link of a packet's port is down.
    #[cold]
    fn lose(&mut self, port: usize, ingress: u16, packet: &Packet, context: &mut impl NodeContext) {
        self.counters.lost.0 += 1;
        self.counters.lost.1 += u64::from(packet.wire);
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Lost, packet);
        self.report_drop(port, ingress, packet, context);
    }

    // ---- Agents ---------------------------------------------------------------------------------------------

    /// A queue as the agent sees it, with a random number that is drawn for it.
    fn view(&mut self, port: usize, priority: u8, now: Time) -> PortView {
        self.consultations += 1;
        let random = mix(self.consultations << 32 | u64::from(self.salt)) as u32;
        PortView {
            now,
            port: port as u16,
            priority,
            queue_bytes: self.queues[self.index(port, priority)].bytes,
            rate: self.ports[port].link.rate(),
            random,
        }
    }

    /// The rest of the switch beside its agent.
    fn beside(&mut self) -> (&mut Agent, Beside<'_>) {
        let Self { agent, ports, queues, rule, priorities, .. } = self;
        (agent, Beside { ports, queues, rule, priorities: *priorities as u8 })
    }

    /// Asks the agent about a packet that enters; returns the port it goes to.
    fn consult_enqueue(
        &mut self,
        port: usize,
        ingress: u16,
        packet: &mut Packet,
        context: &mut impl NodeContext,
    ) -> usize {
        let mut verdict = Verdict::default();
        let view = self.view(port, packet.priority, context.now());
        let (agent, beside) = self.beside();
        agent.on_enqueue(&view, &describe(packet, ingress), &beside, &mut verdict);
        self.obey(port, packet, verdict, context);
        match verdict.deflect_to.map(usize::from) {
            Some(other) if other != port => {
                assert!(other < self.ports.len(), "an agent deflects to port {other}, which does not exist");
                packet.deflect();
                self.counters.deflections += 1;
                self.recorder.packet(context.now(), self.node, other as u16, EventKind::Deflection, packet);
                other
            }
            _ => port,
        }
    }

    /// Asks the agent about a packet that leaves.
    fn consult_dequeue(
        &mut self,
        port: usize,
        ingress: u16,
        packet: &mut Packet,
        context: &mut impl NodeContext,
    ) {
        let mut verdict = Verdict::default();
        let view = self.view(port, packet.priority, context.now());
        let (agent, beside) = self.beside();
        agent.on_dequeue(&view, &describe(packet, ingress), &beside, &mut verdict);
        self.obey(port, packet, verdict, context);
    }

    /// Tells the agent of a packet that will not leave.
    fn report_drop(&mut self, port: usize, ingress: u16, packet: &Packet, context: &mut impl NodeContext) {
        if !self.agent.is_none() {
            let view = self.view(port, packet.priority, context.now());
            self.agent.on_drop(&view, &describe(packet, ingress));
            self.plan_agent(context);
        }
    }

    fn obey(&mut self, port: usize, packet: &mut Packet, verdict: Verdict, context: &mut impl NodeContext) {
        if verdict.mark && packet.ecn_capable() {
            self.count_mark(port, packet, context.now());
            packet.mark();
        }
        if let Some(window) = verdict.notify {
            let flow = describe(packet, MADE_HERE).flow;
            self.notify(&Notification { flow, window }, context);
        }
        self.plan_agent(context);
    }

    /// Sends a congestion notification to the source of a flow.
    fn notify(&mut self, notification: &Notification, context: &mut impl NodeContext) {
        let flow = &notification.flow;
        let mut packet = Packet::new(Kind::Cnp, flow.destination, flow.source, flow.sequence, flow.slot);
        packet.set_value(notification.window.unwrap_or(u64::MAX));
        packet.entropy = flow.entropy;
        packet.wire = SMALLEST_FRAME as u16;
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
    fn plan_agent(&mut self, context: &mut impl NodeContext) {
        let next = self.agent.next_timer();
        if next < self.agent_event {
            self.agent_event = next.max(context.now());
            let event = Event { class: class::AGENT, entity: self.base, payload: 0 };
            context.schedule(self.agent_event, event);
        }
    }

    fn on_agent_timer(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        if self.agent_event != now {
            return;
        }
        self.agent_event = Time::MAX;
        if self.agent.next_timer() <= now {
            let mut notifications = std::mem::take(&mut self.notifications);
            let (agent, beside) = self.beside();
            agent.on_timer(now, &beside, &mut |notification| notifications.push(notification));
            notifications.drain(..).for_each(|notification| self.notify(&notification, context));
            self.notifications = notifications;
        }
        self.plan_agent(context);
    }

    /// An event of this switch has come.
    pub fn on_event(&mut self, event: Event, context: &mut impl NodeContext) {
        let port = (event.entity - self.base) as usize;
        match event.class {
            class::DEPARTURE => self.on_departure(port, context),
            class::GATE => self.on_gate(port, context),
            class::AGENT => self.on_agent_timer(context),
            class::LINK => self.on_link(port, event.payload, context),
            _ => {}
        }
    }

    /// Forbids a port to send the priorities of `mask`.
    fn pause(&mut self, port: usize, mask: u8, context: &mut impl NodeContext) {
        let mask = mask & u8::MAX >> (8 - self.priorities);
        let paused = self.ports[port].permission.pause(context.now(), mask, &mut self.pauses[port]);
        self.report_edges(port, paused, EventKind::Pause, context);
    }

    /// Allows it again.
    fn resume(&mut self, port: usize, mask: u8, context: &mut impl NodeContext) {
        let now = context.now();
        let resumed = self.ports[port].permission.resume(now, mask, &mut self.pauses[port]);
        self.report_edges(port, resumed, EventKind::Resume, context);
        let out = &self.ports[port];
        if out.link.idle(now) && out.permission.allowed(out.waiting) != 0 {
            self.depart(port, now, context);
        }
        if !self.lazy {
            self.plan_departure(port, context);
        }
    }

    fn report_edges(&mut self, port: usize, priorities: u8, kind: EventKind, context: &mut impl NodeContext) {
        let now = context.now();
        if !self.agent.is_none() {
            for priority in (0..self.priorities as u8).filter(|priority| priorities & 1 << priority != 0) {
                let view = self.view(port, priority, now);
                match kind {
                    EventKind::Pause => self.agent.on_pause(&view),
                    _ => self.agent.on_resume(&view),
                }
                self.plan_agent(context);
            }
        }
        self.recorder.edges(now, self.node, port as u16, priorities, kind);
    }

    /// The gate of a port opens or closes.
    fn on_gate(&mut self, port: usize, context: &mut impl NodeContext) {
        let Some(gate) = self.settings.switch.gate else { return };
        let now = context.now();
        let (open, next) = gate.at(now);
        if open {
            self.resume(port, gate.priorities, context);
        } else {
            self.drain(port, now + Time::from_ps(1), context);
            self.pause(port, gate.priorities, context);
        }
        context.schedule(next, Event { class: class::GATE, entity: self.base + port as u32, payload: 0 });
    }

    /// A cable went down or came up somewhere: `payload` is `NEW_EPOCH` for a new table, else the port's new state.
    fn on_link(&mut self, port: usize, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            if let Some(rule) = self.later_rules.pop() {
                self.rule = rule;
            }
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.drain(port, now, context);
        self.ports[port].link.switch(up);
        self.inputs[port].switch(now, up);
        if up {
            return;
        }
        // What waits for a dead link is lost; what is on it is lost at its far end.
        for priority in 0..self.priorities {
            let index = self.index(port, priority as u8);
            while let Some((packet, ingress)) = self.pool.pop(&mut self.queues[index]) {
                self.memory.leave(u64::from(packet.wire), self.queues[index].bytes);
                self.lose(port, ingress, &packet, context);
            }
        }
        self.ports[port].waiting = 0;
        self.ports[port].waiting_bytes = 0;
    }

    /// This switch will be needed soon: asks for its busy ports, and when those are `near`, for what waits there.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        if !near {
            self.pool.prefetch_free();
        }
        for port in self.busy.iter().map(|port| usize::from(*port)) {
            let out = &self.ports[port];
            if near {
                self.pool
                    .prefetch_head(&self.queues[self.index(port, out.waiting.trailing_zeros() as u8 & 7)]);
            } else {
                prefetch(std::ptr::from_ref(out), 1);
                prefetch(self.queues.as_ptr().wrapping_add(port), 1);
            }
        }
        if near {
            self.pool.prefetch_places();
        }
    }

    /// A packet will arrive at `port` soon: asks for that and for its egress port.
    #[inline]
    pub fn prefetch_packet(&self, port: usize, packet: &Packet) {
        prefetch(self.inputs.as_ptr().wrapping_add(port), 1);
        if let Some(port) = self.expected_port(packet) {
            prefetch(self.ports.as_ptr().wrapping_add(usize::from(port)), 1);
            prefetch(self.queues.as_ptr().wrapping_add(self.index(usize::from(port), packet.priority)), 1);
        }
    }

    /// The neighbour to which a packet will be sent.
    #[inline]
    pub fn next_domain(&self, packet: &Packet) -> Option<u32> {
        self.expected_port(packet).map(|port| self.ports[usize::from(port)].link.peer().domain)
    }

    /// Where a packet goes if nobody sprays or deflects it.
    #[inline]
    fn expected_port(&self, packet: &Packet) -> Option<u16> {
        match self.settings.switch.load_balancing {
            LoadBalancing::Ecmp => {
                self.rule.pick(packet.destination, routing::entropy(packet.entropy, self.salt))
            }
            LoadBalancing::Spray => None,
        }
    }

    /// When the next sample is due.
    #[inline]
    pub fn next_sample(&self) -> Time {
        self.probe.as_ref().map_or(Time::MAX, |probe| probe.next)
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self, context: &mut impl NodeContext) {
        let Some(probe) = self.probe.take() else { return };
        if self.lazy {
            probe.ports.iter().for_each(|port| self.drain(usize::from(*port), probe.next, context));
        }
        self.probe = Some(probe);
        self.take_sample();
    }

    fn take_sample(&mut self) {
        let Some(probe) = &mut self.probe else { return };
        let now = probe.next;
        for port in &probe.ports {
            let (out, pauses) = (&self.ports[usize::from(*port)], &self.pauses[usize::from(*port)]);
            for priority in 0..self.priorities {
                let index = priority * self.ports.len() + usize::from(*port);
                let queue_bytes = self.queues[index].bytes + out.link.in_service(now, priority as u8);
                if priority == 0 || queue_bytes > 0 || self.sent_by_priority[index] > 0 {
                    probe.samples.push(PortSample {
                        time: now,
                        node: self.node,
                        port: *port,
                        priority: priority as u8,
                        queue_bytes,
                        tx_bytes: self.sent_by_priority[index],
                        paused: pauses.paused(now),
                        marks: self.records[index].marks,
                        drops: self.records[index].drops,
                        trims: 0,
                    });
                }
            }
        }
        probe.next = now + probe.every;
    }

    /// What was sampled until `end`, the time included. Nothing happens any more: samples that are still due show the
    /// present state.
    pub fn take_samples(&mut self, end: Time) -> Vec<PortSample> {
        while self.next_sample() <= end {
            self.take_sample();
        }
        self.probe.as_mut().map(|probe| std::mem::take(&mut probe.samples)).unwrap_or_default()
    }

    /// Its node.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Frame bytes that wait in it.
    pub fn waiting_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.waiting_bytes).sum()
    }

    /// Transmitter and receiver of each port.
    pub fn links(&self) -> impl Iterator<Item = (&Transmitter, &Receiver)> {
        self.ports.iter().map(|port| &port.link).zip(&self.inputs)
    }

    /// Pause edges and paused time of all ports, until `now`.
    pub fn pauses(&self, now: Time) -> (u64, Time) {
        self.pauses.iter().fold((0, Time::ZERO), |(edges, paused), record| {
            (edges + record.edges(), paused + record.paused(now))
        })
    }

    /// Every byte that came in has gone out, or waits, or was dropped.
    pub fn conserves(&self) -> bool {
        let received: u64 = self.inputs.iter().map(Receiver::bytes).sum();
        let sent: u64 = self.ports.iter().map(|port| port.link.sent_bytes()).sum();
        let counters = &self.counters;
        self.memory.used() == self.waiting_bytes()
            && received + counters.created_bytes
                == sent + self.waiting_bytes() + counters.dropped.1 + counters.lost.1
    }
}

/// Payloads of link events.
pub const LINK_DOWN: u32 = 0;
/// See [`LINK_DOWN`].
pub const LINK_UP: u32 = 1;
/// A new routing table, of the whole fabric.
pub const NEW_EPOCH: u32 = 2;

/// See [`SwitchView`].
struct Beside<'s> {
    ports: &'s [Port],
    queues: &'s [Queue],
    rule: &'s Rule,
    priorities: u8,
}

impl SwitchView for Beside<'_> {
    fn ports(&self) -> u16 {
        self.ports.len() as u16
    }
    fn priorities(&self) -> u8 {
        self.priorities
    }
    fn queue_bytes(&self, port: u16, priority: u8) -> u64 {
        self.queues[usize::from(priority) * self.ports.len() + usize::from(port)].bytes
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
}

fn describe(packet: &Packet, ingress: u16) -> PacketView {
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
        is_data: packet.kind == Kind::Data,
        deflections: packet.deflections(),
    }
}
