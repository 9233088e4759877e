//! In-order deflection: packets that an agent holds or sends by another port, the markers behind them, and messages
//! between agents.
//!
//! Markers are queued with data and admitted as long as any buffer is left, because they are for queues that are long.
//! Where flow control counts packets by ingress, markers that came in are counted and admitted like data. Messages
//! are frames of single links, as pause frames are: they are not queued, not paused, and made anew by each switch.

use super::{All, Switch, agent::AgentContext, channels::VirtualChannels};
use crate::{
    fabric::{buffer::Charge, node::NodeContext, queue::Ingress},
    packet::{Kind, Packet, Telemetry},
    probe::EventKind,
};
use incast_cc::agent::{
    FlowAddress,
    rerouting::{Action, ReroutingView},
};
use incast_units::Time;

impl Switch<'_> {
    /// A packet takes another port than the usual one.
    pub(super) fn deflect(&mut self, port: usize, packet: &mut Packet, now: Time) {
        packet.deflect();
        if packet.kind == Kind::Data {
            self.counters.deflections += 1;
            self.recorder.packet(now, self.node, port as u16, EventKind::Deflection, packet);
        }
    }

    /// A packet leaves by this port: with virtual channels that decides on its queue.
    pub(super) fn choose_channel(&self, port: usize, packet: &mut Packet, ingress: Ingress) {
        if let Some(channels) = &self.channels {
            packet.priority = channels.queue(ingress, port);
        }
    }

    /// Runs the actions of the agent.
    #[inline]
    pub(super) fn run_actions(&mut self, context: &mut impl NodeContext) {
        if self.hold.is_some() {
            while let Some(action) = self.agent.next_action() {
                match action {
                    Action::Mark { .. } => self.send_marker(&action, context),
                    Action::Release { place, to } => self.release_held(place, to, context),
                    Action::Isolate { ingress, source, sequence } => self.isolate(ingress, source, sequence, context),
                }
            }
            self.plan_agent_timer(context);
        }
    }

    /// Holds a packet, if there is room for it.
    pub(super) fn hold(
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
    pub(super) fn send_marker(&mut self, action: &Action, context: &mut impl NodeContext) {
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
    pub(super) fn has_room_for_marker(&self, port: usize, packet: &Packet, now: Time) -> bool {
        let (out, bit) = (self.egress.port(port), 1 << packet.priority);
        let leaves = self.is_idle(port, now) && out.permission.allowed(out.waiting | bit) == bit;
        leaves
            || !out.link.is_up()
            || self.buffer.admits_held(u64::from(packet.wire), 0, out.waiting_bytes)
            || self.has_room(port, packet, self.egress.load(port, packet.priority))
    }

    /// Queues a marker, made here or elsewhere, or sends it if nothing is queued.
    pub(super) fn enqueue_marker(
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
    pub(super) fn release_held(&mut self, place: u16, to: Option<(u16, bool)>, context: &mut impl NodeContext) {
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

    // ---- Messages of agents -----------------------------------------------------------------------------------

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
    pub(super) fn pass_answer(&mut self, to: u32, name: u64, context: &mut impl NodeContext) {
        let towards = self.hold.as_ref().and_then(|hold| hold.view().towards(to));
        let Some(port) = towards.map(usize::from) else { return };
        let mut packet = Packet::new(Kind::MarkerAck, self.node, to, u32::MAX, u32::MAX);
        packet.control_mut().set_value(name);
        self.send_message_when_idle(port, packet, context);
    }

    /// Sends the switch before this one a congestion isolation message.
    fn isolate(&mut self, ingress: u16, source: u32, sequence: u32, context: &mut impl NodeContext) {
        let mut packet = Packet::new(Kind::Isolation, self.node, u32::MAX, sequence, u32::MAX);
        packet.control_mut().set_pair(source, 0);
        self.send_message_when_idle(usize::from(ingress), packet, context);
    }

    /// A congestion isolation message arrived.
    pub(super) fn on_isolation(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        self.agent.on_isolation(context.now(), port as u16, packet.control().pair().0, packet.sequence);
        self.run_actions(context);
    }

    /// Sends a message now, or when the link of its port is idle; none on a link that is down.
    fn send_message_when_idle(&mut self, port: usize, packet: Packet, context: &mut impl NodeContext) {
        let Some(hold) = self.hold.as_mut().filter(|_| self.egress.port(port).link.is_up()) else { return };
        hold.push_message(port, packet);
        // A frame of flow control that waits for the link goes first.
        if self.is_idle(port, context.now()) && !self.egress.port(port).frame_waits {
            self.send_message(port, context);
        } else {
            self.egress.port_mut(port).messages_wait = true;
        }
        self.plan_departure(port, context);
    }

    /// Puts the message that has waited longest on the idle link of a port.
    pub(super) fn send_message(&mut self, port: usize, context: &mut impl NodeContext) {
        let Some(hold) = &mut self.hold else { return };
        let (packet, has_more) = hold.pop_message(port);
        self.egress.port_mut(port).messages_wait = has_more;
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

impl ReroutingView for &AgentContext<'_> {
    fn non_minimal_ports(&self, destination: u32) -> impl Iterator<Item = u16> {
        let longer = self.hold.map(|hold| hold.view().loop_free_alternates(destination));
        let usual = move |port: &u16| self.router.alternatives(destination).any(|usual| usual == *port);
        longer.into_iter().flatten().filter(move |port| !usual(port))
    }
    fn leads_to_host(&self, port: u16) -> bool {
        self.hold.is_some_and(|hold| hold.view().leads_to_host(port))
    }
    fn channels(&self) -> u8 {
        self.channels.map_or(1, VirtualChannels::count)
    }
    fn has_channels(&self, ingress: u16, port: u16, priority: u8, destination: u32) -> bool {
        let Some(hold) = self.hold.filter(|hold| hold.needs_channels()) else { return true };
        let channel = self.channels.map_or(0, |channels| priority % channels.count());
        let needs = hold.view().needs(ingress, port, destination);
        needs.is_some_and(|needs| channel + needs < self.channels())
    }
    fn has_room(&self, port: u16, bytes: u32) -> bool {
        let out = self.egress.port(usize::from(port));
        out.link.is_up() && self.buffer.admits_held(u64::from(bytes), 0, out.waiting_bytes)
    }
    fn leaving_priority(&self, ingress: u16, port: u16, priority: u8) -> u8 {
        let ingress = Ingress { port: ingress, priority };
        self.channels.map_or(priority, |channels| channels.queue(ingress, usize::from(port)))
    }
    fn routed_port(&self, flow: &FlowAddress) -> Option<u16> {
        self.router.of_flow(flow.destination, flow.ecmp_hash)
    }
    fn is_up(&self, port: u16) -> bool {
        self.egress.port(usize::from(port)).link.is_up()
    }
    fn held_bytes(&self, port: u16) -> u64 {
        self.hold.map_or(0, |hold| hold.bytes(usize::from(port)))
    }
}
