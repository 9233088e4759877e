//! What an agent holds: places for packets beside the queues, markers, and the answers to them.
//!
//! A held packet takes memory as one that waits, is counted for flow control by how it came in, and counts as waiting
//! at the port that it will probably take. Markers stand in the queues of data and are admitted as long as any memory
//! is left: the queues that they are for are long. Under flow control those that came in are counted and admitted
//! like data. Answers are frames of single links, as pause frames are: they stand in no queue, no pause concerns
//! them, and each switch makes them anew.

use super::Switch;
use crate::{
    fabric::{
        node::NodeContext,
        packet::{Kind, Packet, Telemetry},
        queue::{MADE_HERE, Origin, Queue},
    },
    flow_control::pause::NO_QUEUE,
    probe::EventKind,
    routing::Around,
    settings::Settings,
};
use incast_cc::agent::{Codepoint, Hold, Order};
use std::collections::VecDeque;

/// Bytes of an answer: the shortest frame.
const ANSWER: u16 = 64;

/// Where packets are held.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    queue: Queue,
    /// The port as which they count.
    port: u16,
    /// The port of the marker that they wait for.
    after: u16,
}

/// What is held in one switch.
#[derive(Debug)]
pub(super) struct Holding {
    /// What the switch knows of the fabric.
    pub around: Around,
    /// The same of later routing epochs, last first.
    later: Vec<Around>,
    /// Deflection must leave channels for the rest of the way.
    pub needs_channels: bool,
    places: Vec<Place>,
    /// Frame bytes held, by port.
    pub bytes: Vec<u64>,
    /// Answers that wait for the link, by port: to which switch, to which marker.
    answers: Vec<VecDeque<(u32, u64)>>,
}

impl Holding {
    /// `around` of each routing epoch, at least one.
    pub fn new(mut around: Vec<Around>, settings: &Settings) -> Self {
        around.reverse();
        let first = around.pop().expect("the builder gives one for each routing epoch");
        let ports = first.directions().len();
        Self {
            around: first,
            later: around,
            needs_channels: settings.pfc.is_some() || settings.switch.virtual_channels > 1,
            places: Vec::new(),
            bytes: vec![0; ports],
            answers: vec![VecDeque::new(); ports],
        }
    }

    fn place(&mut self, place: u16) -> &mut Place {
        let place = usize::from(place);
        if self.places.len() <= place {
            self.places.resize(place + 1, Place::default());
        }
        &mut self.places[place]
    }
}

impl Switch<'_> {
    /// Holds the packet at hand, if there is room for it.
    pub(super) fn hold(
        &mut self,
        hold: Hold,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let Some(holding) = &mut self.holding else { return };
        let (wire, port) = (u64::from(packet.wire), usize::from(hold.port));
        // A marker needs no share of the memory, only room.
        let held = if packet.kind == Kind::Marker { 0 } else { holding.place(hold.place).queue.bytes() };
        let room = if self.counts(self.origin) {
            let queue = self.index(port, packet.priority);
            self.admit_counted(port, queue, packet, context)
        } else {
            let room = self.memory.admits_beside(wire, held, self.ports[port].waiting_bytes);
            if room {
                self.memory.hold(wire, wire);
            }
            room
        };
        if !room {
            return self.drop_packet(port, packet, context);
        }
        let Some(holding) = &mut self.holding else { return };
        holding.bytes[port] += wire;
        self.ports[port].waiting_bytes += wire;
        let place = holding.place(hold.place);
        place.port = hold.port;
        self.pool.push(&mut place.queue, packet, Codepoint::None, telemetry);
        self.pool.set_origin(&place.queue, self.origin);
    }

    /// Does what the agent has ordered.
    #[inline]
    pub(super) fn carry_out(&mut self, context: &mut impl NodeContext) {
        if self.holding.is_some() {
            while let Some(order) = self.agent.take_order() {
                match order {
                    Order::Mark { .. } => self.send_marker(&order, context),
                    Order::Release { place, to } => self.let_go(place, to, context),
                }
            }
            self.plan_agent(context);
        }
    }

    /// Sends a marker behind what waits at a port.
    fn send_marker(&mut self, order: &Order, context: &mut impl NodeContext) {
        let Order::Mark { port, bytes, ingress, priority, flow, deflections, place, name } = *order else {
            return;
        };
        let Some(holding) = &mut self.holding else { return };
        holding.place(place).after = port;
        let mut packet = Packet::new(Kind::Marker, flow.source, flow.destination, flow.sequence, flow.slot);
        packet.set_value(name);
        (packet.position, packet.entropy, packet.class) = (self.node, flow.entropy, flow.class);
        packet.wire = bytes;
        packet.priority = self.channel(Origin { port: ingress, priority }, usize::from(port));
        (0..deflections).for_each(|_| packet.deflect());
        self.counters.created_bytes += u64::from(packet.wire);
        self.origin = Origin { port: MADE_HERE, priority: packet.priority };
        self.enqueue_marker(usize::from(port), &packet, context);
    }

    /// Egress of a marker, made here or elsewhere: behind what waits, where any memory is left. Where packets are
    /// counted by how they came in, one that came in is counted like data.
    pub(super) fn enqueue_marker(&mut self, port: usize, packet: &Packet, context: &mut impl NodeContext) {
        let wire = u64::from(packet.wire);
        let (out, queue) = (&self.ports[port], self.index(port, packet.priority));
        let waits = out.waiting != 0 || !out.link.idle(context.now());
        if waits
            && !self.counts(self.origin)
            && out.link.is_up()
            && self.memory.admits_beside(wire, 0, out.waiting_bytes)
        {
            self.memory.enter(wire, self.queues[queue].bytes());
            self.append(port, packet, None, context);
        } else {
            self.enqueue(port, packet, None, context);
        }
    }

    /// What is held in a place goes on, ahead of all that comes after.
    fn let_go(&mut self, place: u16, to: Option<(u16, bool)>, context: &mut impl NodeContext) {
        let Some(holding) = &mut self.holding else { return };
        let Place { mut queue, port: planned, .. } = std::mem::take(holding.place(place));
        let mut last = None;
        while let Some(mut packet) = self.pool.pop(&mut queue) {
            let (origin, telemetry) = (self.pool.origin(), self.pool.telemetry(&packet));
            let (wire, counts) = (u64::from(packet.wire), self.counts(origin));
            if let Some(holding) = &mut self.holding {
                holding.bytes[usize::from(planned)] -= wire;
            }
            self.ports[usize::from(planned)].waiting_bytes -= wire;
            let port = match to {
                Some((port, true)) => {
                    self.deflect(usize::from(port), &mut packet, context.now());
                    Some(port)
                }
                Some((port, false)) => Some(port),
                None => self.way_of(&packet).map(|(port, _)| port),
            };
            self.origin = origin;
            let goes = port.map(usize::from).filter(|port| self.ports[*port].link.is_up());
            if !counts {
                self.memory.release(wire, wire);
            } else if goes.is_none() {
                self.release(origin, &packet, 0);
            }
            match (goes, port) {
                (Some(port), _) => {
                    self.choose_channel(port, &mut packet);
                    if !counts {
                        let queue = self.index(port, packet.priority);
                        self.memory.enter(wire, self.queues[queue].bytes());
                    }
                    self.append(port, &packet, telemetry.as_ref(), context);
                    last = Some(port);
                }
                (None, Some(port)) => self.lose(usize::from(port), &packet, context),
                (None, None) => self.lose_unrouted(&packet, context.now()),
            }
            if goes.is_none() {
                self.reconsider(origin, context);
            }
        }
        // An idle port begins at once: whoever comes next must find it taken.
        if let Some(port) = last {
            let out = &self.ports[port];
            if out.link.idle(context.now()) && out.permission.allowed(out.waiting) != 0 {
                self.depart(port, context.now(), context);
            }
            self.plan_departure(port, context);
        }
    }

    /// A marker has come to its end: the switch that sent it is told so.
    #[cold]
    pub(super) fn answer(&mut self, marker: &Packet, context: &mut impl NodeContext) {
        self.counters.consumed_bytes += u64::from(marker.wire);
        self.pass_answer(marker.position, marker.value(), context);
    }

    /// An answer arrived.
    pub(super) fn on_answer(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        self.counters.consumed_bytes += u64::from(packet.wire);
        if packet.destination == self.node {
            self.agent.on_answer(context.now(), packet.value());
            self.carry_out(context);
        } else {
            self.pass_answer(packet.destination, packet.value(), context);
        }
    }

    /// An answer goes on to the next switch. Where there is no way it is lost, as the marker might have been.
    fn pass_answer(&mut self, to: u32, name: u64, context: &mut impl NodeContext) {
        let Some(holding) = &mut self.holding else { return };
        let Some(port) = holding.around.towards(to).map(usize::from) else { return };
        let out = &mut self.ports[port];
        if !out.link.is_up() {
            return;
        }
        holding.answers[port].push_back((to, name));
        // A notice that waits for the link goes first.
        if out.link.idle(context.now()) && !out.notice {
            self.send_waiting_answer(port, context);
        } else {
            out.answers = true;
        }
        self.plan_departure(port, context);
    }

    /// Puts the answer that has waited longest on the idle link of a port.
    pub(super) fn send_waiting_answer(&mut self, port: usize, context: &mut impl NodeContext) {
        let Some(holding) = &mut self.holding else { return };
        let next = holding.answers[port].pop_front();
        self.ports[port].answers = !holding.answers[port].is_empty();
        let Some((to, name)) = next else { return };
        let mut packet = Packet::new(Kind::MarkerAck, self.node, to, u32::MAX, u32::MAX);
        packet.set_value(name);
        (packet.wire, packet.priority) = (ANSWER, NO_QUEUE);
        self.counters.created_bytes += u64::from(packet.wire);
        let now = context.now();
        if !self.ports[port].link.send(now, &packet, None, context) {
            self.recorder.packet(now, self.node, port as u16, EventKind::Lost, &packet);
        }
    }

    /// The link of a port is down: what would have been said over it is not.
    pub(super) fn forget_answers(&mut self, port: usize) {
        self.ports[port].answers = false;
        if let Some(holding) = &mut self.holding {
            holding.answers[port].clear();
        }
    }

    /// Routes have changed.
    pub(super) fn change_routes(&mut self, context: &mut impl NodeContext) {
        let Some(holding) = &mut self.holding else { return };
        if let Some(around) = holding.later.pop() {
            holding.around = around;
        }
        let (agent, beside) = self.beside();
        agent.on_routes(&beside);
        self.carry_out(context);
    }

    /// How packets that are held came in, and the port of what they wait for.
    pub(super) fn held(&self, mut tell: impl FnMut(Origin, u16)) {
        for place in self.holding.iter().flat_map(|holding| &holding.places) {
            self.pool.origins(&place.queue).for_each(|(origin, _)| tell(origin, place.after));
        }
    }
}
