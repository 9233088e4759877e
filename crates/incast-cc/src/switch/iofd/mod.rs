//! IOFD, in-order flow deflection: packets at a congested port take another port, and no packet of a flow overtakes
//! another.
//!
//! Source: J. Xue et al., "Fast Congestion Control in RDMA-based Datacenter Networks", SIGCOMM Posters 2018
//! (Blitz), section 2. It says that a packet is deflected a few times at most and that the switch keeps a flow in
//! order. It does not say how; the rule is ours.
//!
//! ```text
//!                     the port's queue is long, another one is short: a marker goes out of the old port
//!     no entry ─────────────────────────────────────────────────────────────────▶ changing: packets are held
//!  (the usual port) ◀───────────────────────── answered, back to the usual port ─────┤  ▲
//!                                                                    answered, to    │  │ long queue again, or
//!                                                                    another port    ▼  │ unused: a marker
//!                                                                                 deflected
//! ```
//!
//! **The rule.** A switch keeps state by *visit*: flow, priority, ingress port, and number of earlier deflections.
//! A visit sends its packets out of one port: the usual one (that of ECMP) if it has no entry. To change the port,
//! it sends a *marker* out of the old port, behind the flow's packets in their own queue, and holds later packets.
//! The marker follows the path of the flow's data: entries of later switches apply to it, and where they hold data
//! they hold it. The switch of the destination's host answers the marker instead of forwarding it. When the answer
//! arrives, the held packets leave by the new port, in order. An entry is removed in the same way, so that a visit
//! without an entry has sent all its packets by the usual port. A marker that may be lost is retransmitted with the
//! same id; an answer with another id is ignored.
//!
//! **Why no packet overtakes another.** Let p and q be packets of one flow and priority, data or markers, and p the
//! first to leave its host. Claim: q does not reach the last switch (that of the destination's host) before p, unless p
//! is lost. Links, the queues of one priority and the places where packets are held are first in, first out; a switch
//! is passed at most once with the same number of deflections, since usual paths and those after a deflection only
//! approach the destination. So both begin with the same visit, and as long as both leave a visit by the same port,
//! they come to the next one in their order. If they never part, the claim holds. Otherwise let V be the first visit
//! that sent p out of one port and q out of another. Between the two V had a marker m answered that it sent out of p's
//! port after p, and q left V after the answer came. The answer came after m had reached the last switch. By induction
//! over the time at which the later packet of a pair reaches the last switch, the claim holds for p and m: so p was
//! there before m, or was lost, and q left V later still. There all paths meet: no entry, one port to the host, and one
//! queue for the packets of a priority, whatever virtual channel they came on. A marker that is repeated is one more
//! packet behind p, so its answer implies the same. ∎
//!
//! The proof does not depend on durations, so it holds under pauses (PFC) and losses. Two simpler rules do not keep
//! order; [`Order::Local`] has them for comparison. That no packet of the flow is queued here implies nothing about
//! later switches, and a pause there can outlast any additional waiting time.
//!
//! **Why holding causes no deadlock.** Held packets wait for packets on the old path, as if they stood in the same
//! queue: no dependency is added that the routes do not have. A receiver that reorders flows at the end of two
//! paths would add one, between these paths. Answers are frames of single links, as pause frames are, and wait for
//! no queue. Virtual channels keep routes free of cycles: see `routing/detours.rs` of the simulator.
//!
//! **Collisions ahead.** A switch without a better port cannot deflect, as a spine with one port to each leaf, and the switch
//! before it does not see its queue. With `isolation_messages` it tells that one which flow stands there, by a Congestion
//! Isolation Message (IEEE 802.1Qcz), and that one takes the flow's port for congested.
//!
//! Choices (all in `docs/iofd.md`): thresholds, which flows move, that nothing is deflected at the last switch.

mod table;
#[cfg(test)]
mod tests;

use crate::agent::{
    AgentInfo, Effects, FlowAddress, Forward, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict,
    rerouting::{Action, Diversion, Rerouting, ReroutingView},
};
use crate::{
    Path,
    parameters::{Condition, ParameterError, Period, Raw},
};
use incast_units::{Bytes, Time};
use std::{collections::VecDeque, sync::Arc};
use table::{DetourTable, Visit};

/// Bytes of a marker: the shortest frame.
const MARKER: u16 = 64;
/// Largest number of deflections that a packet can count.
const MOST: u64 = 15;
/// Bits of a slot in the id of a change; the other bits are a count.
const PLACE_BITS: u32 = 16;

crate::choice! {
    /// How packets are kept in order.
    pub enum Order {
        /// With markers, always.
        Marker = "marker",
        /// By the state of this switch alone, which does not keep order: for comparison.
        Local = "local",
    }
}

crate::parameters!(Parameters {
    deflect_above: Time {
        doc: "Packets are deflected from a port whose queue takes longer than this to leave.",
        default: "base RTT",
        value: |path| path.base_rtt,
        source: "ours: a change of port holds a flow back for about a base RTT"
    },
    deflect_below: Time {
        doc: "They are deflected to ports whose queue takes no longer than this; at most `deflect_above`.",
        default: "base RTT / 4",
        value: |path| path.base_rtt / 4,
        source: "ours: room for the flow's packets of a base RTT before it is `deflect_above`"
    },
    max_deflections: u64 {
        doc: "Deflections of one packet, at most.",
        default: "4",
        value: |_| 4,
        allowed: "0 to 15",
        check: |deflections| *deflections <= MOST,
        source: "\"only a few\" in the poster"
    },
    loop_free_alternates: bool {
        doc: "Also deflect to non-minimal paths, if they do not come back (RFC 5286, loop-free alternates).",
        default: "false",
        value: |_| false,
        source: "ours"
    },
    table_entries: u64 {
        doc: "Entries of the table of each switch. When it is full, no further flow is deflected.",
        default: "1024",
        value: |_| 1024,
        allowed: "1 to 65535",
        check: |entries| (1..=65_535).contains(entries),
        source: "ours"
    },
    max_reroutes: u64 {
        doc: "Flows that may be about to leave a port at a time, and as many to come to one.",
        default: "1",
        value: |_| 1,
        allowed: "1 or more",
        check: |moves| *moves > 0,
        source: "ours: all flows of a queue would leave together"
    },
    idle: Period {
        doc: "An entry that was not used for so long is given back, and one of a non-minimal path if its usual \
            port is `deflect_below`.",
        default: "10 base RTT",
        value: |path| Period::of(path.base_rtt * 10),
        source: "ours"
    },
    marker_timeout: Period {
        doc: "A marker without an answer is sent again after this, and each time after twice as long.",
        default: "4 base RTT",
        value: |path| Period::of(path.base_rtt * 4),
        source: "ours: an answer is due after a base RTT and two queues that are `deflect_above`"
    },
    isolation_messages: bool {
        doc: "A switch that finds no better port than one with a long queue tells the switch before it which flow \
            stands in it, and that one deflects it.",
        default: "false",
        value: |_| false,
        unset: "false",
        source: "ours, by Congestion Isolation Messages (IEEE 802.1Qcz); the poster does not have it"
    },
    order: Order {
        doc: "With markers, or by what the switch sees alone: then a flow changes ports when none of its \
            packets waits here.",
        default: "marker",
        value: |_| Order::Marker,
        source: "the poster leaves it open; \"local\" reorders"
    },
    flow_gap: Time {
        doc: "With `order = \"local\"`: and when none has come for so long.",
        default: "0",
        value: |_| Time::ZERO,
        source: "the longest difference between two paths would be usual"
    },
});

/// A change of a visit's port, while its marker is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    to: u16,
    name: u64,
    /// The marker is queued in this switch.
    waits: bool,
    /// When it is retransmitted, unless it is queued here.
    again: Time,
    /// Interval since the previous transmission.
    patience: Time,
}

/// State of a visit. A visit without an entry has sent all its packets by the usual port.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: FlowAddress,
    /// The port that routing gives it.
    usual: u16,
    /// The port that its packets leave by, or left by before the change.
    port: u16,
    change: Option<Change>,
    /// Time of the last data packet.
    seen: Time,
}

/// Changes under way at a port.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    from: u64,
    to: u64,
}

/// A flow that stands in a long queue of the next switch.
#[derive(Clone, Copy, Debug)]
struct Isolated {
    source: u32,
    sequence: u32,
    /// The port that leads there.
    port: u16,
    until: Time,
}

impl Isolated {
    fn is(&self, source: u32, sequence: u32, port: u16) -> bool {
        (self.source, self.sequence, self.port) == (source, sequence, port)
    }
}

/// Flows that are remembered as such at most.
const ISOLATED: usize = 64;

/// State of a switch.
#[derive(Clone, Debug)]
pub struct Iofd {
    parameters: Arc<Parameters>,
    table: DetourTable<Entry>,
    /// By port.
    moves: Vec<Moves>,
    /// Flows with a long queue ahead, and by port when the switch before may be sent the next message of this one.
    isolated: VecDeque<Isolated>,
    next_message: Vec<Time>,
    actions: VecDeque<Action>,
    /// Changes so far.
    changes: u64,
    /// Time of the next scan of the table.
    look: Time,
}

impl Iofd {
    /// Time until what is queued at a port at this and higher priorities has left.
    fn backlog(switch: &impl SwitchView, port: u16, priority: u8) -> Time {
        let channels = switch.rerouting().channels();
        let last = priority - priority % channels + channels;
        let waiting: u64 = (0..last).map(|priority| switch.queue_bytes(port, priority)).sum();
        switch.rate(port).time_of(Bytes::new(waiting + switch.rerouting().held_bytes(port)))
    }

    /// The port's queue is long for packets of this priority.
    fn is_long(&self, switch: &impl SwitchView, port: u16, priority: u8) -> bool {
        Self::backlog(switch, port, priority) > self.parameters.deflect_above
    }

    /// The flow stands in a long queue of the next switch at a port.
    fn is_isolated(&self, flow: &FlowAddress, port: u16, now: Time) -> bool {
        self.isolated.iter().any(|known| known.is(flow.source, flow.sequence, port) && known.until > now)
    }

    /// Tells the switch before this one that a flow stands in the queue of a port, and there is no better one. One flow in
    /// `deflect_above`, as all of a queue would leave together.
    fn isolate(&mut self, view: &PortView, packet: &PacketView, port: u16, ingress: u16) {
        let next = &mut self.next_message[usize::from(port)];
        if view.now >= *next {
            *next = view.now.saturating_add(self.parameters.deflect_above);
            let FlowAddress { source, sequence, .. } = packet.flow;
            self.actions.push_back(Action::Isolate { ingress, source, sequence });
        }
    }

    /// The better port for packets that leave by `current`, which is congested: one of the ports with the shortest queue,
    /// drawn at random.
    fn better(&self, view: &PortView, packet: &PacketView, current: u16, switch: &impl SwitchView) -> Option<u16> {
        let (usual, priority, ingress) = (view.port, view.priority, packet.ingress?);
        let may_deflect = u64::from(packet.deflections) < self.parameters.max_deflections;
        let destination = packet.flow.destination;
        let suits = |port: &u16| {
            *port != current
                && *port != ingress
                && (*port == usual || may_deflect)
                && !self.is_isolated(&packet.flow, *port, view.now)
                && self.moves[usize::from(*port)].to < self.parameters.max_reroutes
                && switch.may_send(*port, switch.rerouting().leaving_priority(ingress, *port, priority))
                && switch.rerouting().has_channels(ingress, *port, priority, destination)
        };
        let routes = switch.rerouting();
        let longer = routes.non_minimal_ports(destination).filter(|_| self.parameters.loop_free_alternates);
        let mut best: Option<(Time, u32, u16)> = None;
        for port in switch.alternatives(destination).chain(longer).filter(suits) {
            let backlog = Self::backlog(switch, port, priority);
            // One of equals is drawn: the n-th replaces the present one with probability 1/n.
            match &mut best {
                Some((least, equals, chosen)) if backlog == *least => {
                    *equals += 1;
                    if view.random().is_multiple_of(*equals) {
                        *chosen = port;
                    }
                }
                Some((least, ..)) if backlog > *least => {}
                _ => best = Some((backlog, 1, port)),
            }
        }
        best.filter(|(backlog, ..)| *backlog <= self.parameters.deflect_below).map(|(.., port)| port)
    }

    /// Whether a flow may leave a port: few others are leaving it, and its marker has room there.
    fn may_leave(&self, port: u16, switch: &impl SwitchView) -> bool {
        self.moves[usize::from(port)].from < self.parameters.max_reroutes
            && switch.rerouting().has_room(port, u32::from(MARKER))
    }

    /// Routing still gives the visit its usual port, and it may leave by all ports of its entry.
    fn is_valid(&self, visit: &Visit, entry: &Entry, switch: &impl SwitchView) -> bool {
        let destination = entry.flow.destination;
        let leads_there = |port: u16| {
            switch.alternatives(destination).any(|other| other == port)
                || (self.parameters.loop_free_alternates
                    && switch.rerouting().non_minimal_ports(destination).any(|other| other == port))
        };
        let may_leave = |port: u16| {
            switch.rerouting().is_up(port)
                && (port == entry.usual
                    || leads_there(port)
                        && switch.rerouting().has_channels(visit.ingress, port, visit.priority, destination))
        };
        switch.rerouting().routed_port(&entry.flow) == Some(entry.usual)
            && may_leave(entry.usual)
            && may_leave(entry.port)
            && entry.change.is_none_or(|change| may_leave(change.to))
    }

    /// Begins to change the port of the visit in a slot.
    fn change(&mut self, place: u16, to: u16, now: Time) {
        self.changes += 1;
        let name = self.changes << PLACE_BITS | u64::from(place);
        let patience = self.parameters.marker_timeout.time();
        if let Some((_, entry)) = self.table.get_mut(place) {
            self.moves[usize::from(entry.port)].from += 1;
            self.moves[usize::from(to)].to += 1;
            entry.change = Some(Change { to, name, waits: true, again: Time::MAX, patience });
        }
        self.mark(place);
        self.look = self.look.min(now + self.period());
    }

    /// Sends the marker of the change in a slot.
    fn mark(&mut self, place: u16) {
        let Some((visit, entry)) = self.table.get_mut(place) else { return };
        let Some(change) = &mut entry.change else { return };
        change.waits = true;
        self.actions.push_back(Action::Mark {
            port: entry.port,
            bytes: MARKER,
            ingress: visit.ingress,
            priority: visit.priority,
            flow: entry.flow,
            deflections: visit.deflections + u8::from(entry.port != entry.usual),
            place,
            name: change.name,
        });
    }

    /// Interval between scans of the table.
    fn period(&self) -> Time {
        self.parameters.marker_timeout.time().min(self.parameters.idle.time())
    }

    /// Chooses the port of a visit anew, for this packet and the following ones.
    fn decide(
        &mut self,
        view: &PortView,
        packet: &PacketView,
        visit: Visit,
        place: Option<u16>,
        switch: &impl SwitchView,
    ) -> Option<(u16, u16)> {
        let known = place.and_then(|place| self.table.get(place).copied());
        let current = known.map_or(view.port, |entry| entry.port);
        let is_long = self.is_long(switch, current, view.priority);
        if !is_long && !self.is_isolated(&packet.flow, current, view.now) {
            return None;
        }
        let Some(to) = self.better(view, packet, current, switch) else {
            let ingress = packet.ingress.filter(|ingress| !switch.rerouting().leads_to_host(*ingress))?;
            // Behind a pause it may be the receiver that is congested, to which all paths lead.
            if self.parameters.isolation_messages && is_long && switch.may_send(current, view.priority) {
                self.isolate(view, packet, current, ingress);
            }
            return None;
        };
        if !self.may_leave(current, switch) {
            return None;
        }
        if self.parameters.order == Order::Local && !self.is_gone(view, packet, known.as_ref(), switch) {
            return None;
        }
        let entry = Entry { flow: packet.flow, usual: view.port, port: current, change: None, seen: view.now };
        let place = place.or_else(|| self.table.insert(visit, entry))?;
        if known.is_none() && self.parameters.order == Order::Local && self.parameters.flow_gap > Time::ZERO {
            // From here on the arrival times of its packets are recorded.
            self.look = self.look.min(view.now + self.period());
            return None;
        }
        Some((place, to))
    }

    /// `order = "local"`: no packet of the flow appears to be ahead of this one.
    fn is_gone(&self, view: &PortView, packet: &PacketView, entry: Option<&Entry>, switch: &impl SwitchView) -> bool {
        let port = entry.map_or(view.port, |entry| entry.port);
        let waits = (0..switch.priorities())
            .any(|priority| switch.waiting(port, priority).any(|other| other.is_data && other.flow == packet.flow));
        !waits && entry.is_none_or(|entry| view.now - entry.seen >= self.parameters.flow_gap)
    }

    /// `order = "local"`: the visit's packets leave by another port from now on.
    fn switch_over(&mut self, place: u16, to: u16, now: Time) {
        self.look = self.look.min(now + self.period());
        if let Some((_, entry)) = self.table.get_mut(place) {
            entry.port = to;
            if to == entry.usual {
                self.table.remove(place);
            }
        }
    }
}

impl SwitchAgent for Iofd {
    type Parameters = Arc<Parameters>;
    const INFO: AgentInfo = AgentInfo {
        name: "iofd",
        title: "IOFD",
        source: "Xue et al., SIGCOMM Posters 2018 (Blitz); the rule that keeps order is ours",
        parameters: Parameters::TABLE,
        marks: false,
        sender: &[],
        by_port: false,
    };
    const CONDITIONS: &'static [Condition] =
        &[Condition::new("flow_gap", "order", &["local"]), Condition::new("max_reroutes", "order", &["marker"])];
    const REROUTES: bool = true;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Arc<Parameters>, ParameterError> {
        let parameters = Parameters::resolve(path, given)?;
        if parameters.deflect_below > parameters.deflect_above {
            let (below, above) = (parameters.deflect_below, parameters.deflect_above);
            let message = format!("found {below}, allowed is at most `deflect_above`, {above}");
            return Err(ParameterError::Value { name: "deflect_below", message });
        }
        Ok(Arc::new(parameters))
    }
    fn values(parameters: &Arc<Parameters>) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn effects(_parameters: &Arc<Parameters>) -> Effects {
        Effects::default()
    }
    fn install(parameters: &Arc<Parameters>, site: &Site<'_>) -> Self {
        Self {
            table: DetourTable::new(parameters.table_entries as u16),
            parameters: Arc::clone(parameters),
            moves: vec![Moves::default(); site.ports.len()],
            isolated: VecDeque::new(),
            next_message: vec![Time::ZERO; site.ports.len()],
            actions: VecDeque::new(),
            changes: 0,
            look: Time::MAX,
        }
    }

    fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
        let Some(ingress) = packet.ingress else { return };
        if !packet.is_data && packet.marker.is_none() {
            return;
        }
        if switch.rerouting().leads_to_host(port.port) {
            // All paths of a flow meet here.
            if packet.marker.is_some() {
                verdict.forward = Forward::Rerouting(Diversion::Answer);
            }
            return;
        }
        let visit = Visit {
            source: packet.flow.source,
            sequence: packet.flow.sequence,
            ingress,
            deflections: packet.deflections,
            priority: port.priority,
        };
        let place = self.table.find(&visit);
        let known = place.and_then(|place| self.table.get(place).copied());
        let change = known.and_then(|entry| entry.change);
        if packet.is_data
            && change.is_none()
            && let Some((place, to)) = self.decide(port, packet, visit, place, switch)
        {
            match self.parameters.order {
                Order::Marker => self.change(place, to, port.now),
                Order::Local => self.switch_over(place, to, port.now),
            }
        }
        let Some(place) = self.table.find(&visit) else { return };
        let Some((_, entry)) = self.table.get_mut(place) else { return };
        if packet.is_data {
            entry.seen = port.now;
        }
        verdict.forward = match entry.change {
            Some(change) => Forward::Rerouting(Diversion::Hold { place, port: change.to }),
            None => Forward::Port(entry.port),
        };
    }

    fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, _switch: &impl SwitchView, _verdict: &mut Verdict) {
        if packet.marker.is_some() {
            self.on_drop(port, packet);
        }
    }

    /// A marker has left or was dropped: from now on it may be lost.
    fn on_drop(&mut self, port: &PortView, packet: &PacketView) {
        let Some(marker) = packet.marker.filter(|marker| marker.is_own) else { return };
        let place = (marker.name & ((1 << PLACE_BITS) - 1)) as u16;
        let Some((_, entry)) = self.table.get_mut(place) else { return };
        if let Some(change) = entry.change.as_mut().filter(|change| change.name == marker.name) {
            change.waits = false;
            change.again = port.now.saturating_add(change.patience);
            change.patience = change.patience.saturating_mul(2);
        }
    }

    fn on_pause(&mut self, _port: &PortView) {}
    fn on_resume(&mut self, _port: &PortView) {}

    fn on_timer(&mut self, now: Time, switch: &impl SwitchView, _send: &mut dyn FnMut(crate::agent::Notification)) {
        for place in 0..self.table.places() {
            let Some((visit, entry)) = self.table.get_mut(place).map(|(visit, entry)| (*visit, *entry)) else {
                continue;
            };
            let has_room = || switch.rerouting().has_room(entry.port, u32::from(MARKER));
            if let Some(change) = entry.change {
                if !change.waits && change.again <= now && has_room() {
                    self.mark(place);
                }
                continue;
            }
            let is_idle = now - entry.seen >= self.parameters.idle.time();
            let leaving = switch.rerouting().leaving_priority(visit.ingress, entry.usual, visit.priority);
            let may_return = || {
                let port = usize::from(entry.port);
                self.parameters.loop_free_alternates
                    && switch.rerouting().non_minimal_ports(entry.flow.destination).any(|longer| longer == entry.port)
                    && self.moves[port].from < self.parameters.max_reroutes
                    && switch.may_send(entry.usual, leaving)
                    && Self::backlog(switch, entry.usual, visit.priority) <= self.parameters.deflect_below
            };
            if self.parameters.order == Order::Local {
                if is_idle {
                    self.switch_over(place, entry.usual, now);
                }
            } else if (is_idle || may_return()) && has_room() {
                self.change(place, entry.usual, now);
            }
        }
        self.look = if self.table.is_empty() { Time::MAX } else { now + self.period() };
    }

    fn next_timer(&self) -> Time {
        self.look
    }

    #[inline]
    fn rerouting(&mut self) -> Option<&mut impl Rerouting> {
        Some(self)
    }
}

impl Rerouting for Iofd {
    fn on_answer(&mut self, now: Time, name: u64) {
        let place = (name & ((1 << PLACE_BITS) - 1)) as u16;
        let Some((_, entry)) = self.table.get_mut(place) else { return };
        let Some(change) = entry.change.take_if(|change| change.name == name) else { return };
        self.moves[usize::from(entry.port)].from -= 1;
        self.moves[usize::from(change.to)].to -= 1;
        let is_deflection = change.to != entry.usual;
        (entry.port, entry.seen) = (change.to, now);
        if !is_deflection {
            self.table.remove(place);
        }
        self.actions.push_back(Action::Release { place, to: Some((change.to, is_deflection)) });
    }

    fn on_isolation(&mut self, now: Time, port: u16, source: u32, sequence: u32) {
        self.isolated.retain(|known| known.until > now && !known.is(source, sequence, port));
        if self.isolated.len() < ISOLATED {
            let until = now.saturating_add(self.parameters.marker_timeout.time());
            self.isolated.push_back(Isolated { source, sequence, port, until });
        }
    }

    /// Flows whose paths are unchanged continue; the entries of others are removed.
    fn on_routes(&mut self, switch: &impl SwitchView) {
        for place in 0..self.table.places() {
            let Some((visit, entry)) = self.table.get_mut(place).map(|(visit, entry)| (*visit, *entry)) else {
                continue;
            };
            if self.is_valid(&visit, &entry, switch) {
                continue;
            }
            if let Some(change) = entry.change {
                self.moves[usize::from(entry.port)].from -= 1;
                self.moves[usize::from(change.to)].to -= 1;
                self.actions.retain(|action| !matches!(action, Action::Mark { name, .. } if *name == change.name));
                self.actions.push_back(Action::Release { place, to: None });
            }
            self.table.remove(place);
        }
        if self.table.is_empty() {
            self.look = Time::MAX;
        }
    }

    #[inline]
    fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}
