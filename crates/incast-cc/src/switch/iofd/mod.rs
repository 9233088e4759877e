//! IOFD, in-order flow deflection: packets at a congested port take another one, and no packet of a flow overtakes another.
//!
//! Source: J. Xue et al., "Fast Congestion Control in RDMA-based Datacenter Networks", SIGCOMM Posters 2018 (Blitz), section 2. It
//! says that a packet is deflected a few times at most and that the switch keeps a flow in order, not how; the rule is ours.
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
//! **The rule.** What a switch knows of a flow is by *visit*: flow, priority, the port that its packets came in by, and how often
//! they were deflected before. A visit sends its packets out of one port, the usual one (that of ECMP) if it has no entry. To
//! change that, it sends a *marker* out of the old port, behind the flow's packets in their own queue, and holds what comes after.
//! The marker takes the way of the flow's data: the entries of later switches are its entries, and where they hold data they
//! hold it. The switch of the destination's host answers it in place of forwarding it. With the answer, what was held goes out of the new
//! port, in its order. An entry is given back in the same way, so that no entry means: whatever came before went the usual way.
//! A marker that may be lost is sent again under the same name; an answer to another name than that of the change is none.
//!
//! **Why no packet overtakes another.** Let p and q be packets of one flow and priority, data or markers, and p the first to leave its host.
//! Claim: q does not reach the last switch (that of the destination's host) before p, unless p is lost. Links, the queues of one
//! priority and the places where packets are held are first in, first out; a switch passed with one number of deflections is
//! passed once, since usual ways and those that follow a deflection only come nearer to the destination. So both begin with the same visit,
//! and as long as both leave a visit by the same port, they come to the next one in their order. If they never part, the claim
//! holds. Otherwise let V be the first visit that sent p out of one port and q out of another. Between the two V had a marker m
//! answered that it sent out of p's port after p, and q left V after the answer came. The answer came after m had reached
//! the last switch. By induction over the time at which the later packet of a pair reaches the last switch, the claim
//! holds for p and m: so p was there before m, or was lost, and q left V later still. There all ways meet: no
//! entry, one port to the host, and one queue for the packets of a priority, whatever virtual channel they came on. A marker that is repeated is
//! one more packet behind p, so its answer says the same. ∎
//!
//! Nothing in this depends on how long anything takes, so neither pauses (PFC) nor losses void it. Two simpler rules do not
//! keep order and are there to show it, as [`Order::Local`]: "nothing of this flow waits here" says nothing of later
//! switches, and a pause there outlasts any time that one waits in addition.
//!
//! **Why holding does not lock up.** What is held waits for packets on the old way to go on, no more than if it stood in their
//! queue: it adds no wait that the routes do not have. A receiver that put flows in order at the end of two ways would: there one
//! way would wait for the other. Answers are frames of single links, as pause frames are, and wait for no queue. That routes have no
//! circle is up to virtual channels: see `routing/detours.rs` of the simulator.
//!
//! Choices (all in `docs/iofd.md`): thresholds, which flows move, that nothing is deflected at the last switch.

mod table;
#[cfg(test)]
mod tests;

use crate::agent::{
    AgentInfo, Effects, FlowAddress, Hold, Order as Wanted, PacketView, PortView, Site, SwitchAgent,
    SwitchView, Verdict,
};
use crate::{
    Path,
    parameters::{Condition, ParameterError, Raw},
};
use incast_units::{Bytes, Time};
use std::{collections::VecDeque, sync::Arc};
use table::{Table, Visit};

/// Bytes of a marker: the shortest frame.
const MARKER: u16 = 64;
/// Packets can count so many deflections.
const MOST: u64 = 15;
/// Bits of a place in the name of a change; the rest counts.
const PLACE_BITS: u32 = 16;

crate::choice! {
    /// How order is kept.
    pub enum Order {
        /// With markers, always.
        Marker = "marker",
        /// By what the switch itself sees, which is not enough: for comparison.
        Local = "local",
    }
}

crate::parameters! {
    /// Parameters of IOFD.
    pub struct Parameters {
        /// Packets are deflected from a port whose queue takes longer than this to leave.
        deflect_above: Time = "base RTT", |path| path.base_rtt, "any time", |_| true, "ours: a change of port holds a flow back for about a base RTT";
        /// They are deflected to ports whose queue takes no longer than this; at most `deflect_above`.
        deflect_below: Time = "base RTT / 4", |path| path.base_rtt / 4, "any time", |_| true, "ours: room for the flow's packets of a base RTT before it is `deflect_above`";
        /// Deflections of one packet, at most.
        max_deflections: u64 = "4", |_| 4, "0 to 15", |deflections| *deflections <= MOST, "\"only a few\" in the poster";
        /// Also deflect to longer ways, if they do not come back (RFC 5286, loop-free alternates).
        loop_free_alternates: bool = "false", |_| false, "true or false", |_| true, "ours";
        /// Entries of the table of each switch. When it is full, no further flow is deflected.
        table_entries: u64 = "1024", |_| 1024, "1 to 65535", |entries| (1..=65_535).contains(entries), "ours";
        /// Flows that may be about to leave a port at a time, and as many to come to one.
        max_moves: u64 = "1", |_| 1, "1 or more", |moves| *moves > 0, "ours: all flows of a queue would leave together";
        /// An entry that was not used for so long is given back, and one of a longer way if its usual port is `deflect_below`.
        idle: Time = "10 base RTT", |path| path.base_rtt * 10, "above 0", |t| *t > Time::ZERO, "ours";
        /// A marker without an answer is sent again after this, and each time after twice as long.
        marker_timeout: Time = "4 base RTT", |path| path.base_rtt * 4, "above 0", |t| *t > Time::ZERO, "ours: an answer is due after a base RTT and two queues that are `deflect_above`";
        /// With markers, or by what the switch sees alone: then a flow changes ports when none of its packets waits here.
        order: Order = "marker", |_| Order::Marker, "\"marker\" or \"local\"", |_| true, "the poster leaves it open; \"local\" reorders";
        /// With `order = "local"`: and when none has come for so long.
        guard: Time = "0", |_| Time::ZERO, "any time", |_| true, "the longest difference between two ways would be usual";
    }
}

/// A change of a visit's port that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    to: u16,
    name: u64,
    /// The marker waits in this switch.
    waits: bool,
    /// When it is sent again, unless it waits here.
    again: Time,
    /// How long after the time before.
    patience: Time,
}

/// What is known of a visit. Without one, its packets take the usual port and have always done so.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: FlowAddress,
    /// The port that routing gives it.
    usual: u16,
    /// The port that its packets leave by, or left by before the change.
    port: u16,
    change: Option<Change>,
    /// When data came last.
    seen: Time,
}

/// Changes under way at a port.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    from: u64,
    to: u64,
}

/// State of a switch.
#[derive(Clone, Debug)]
pub struct Iofd {
    parameters: Arc<Parameters>,
    table: Table<Entry>,
    /// By port.
    moves: Vec<Moves>,
    orders: VecDeque<Wanted>,
    /// Changes so far.
    changes: u64,
    /// When the table is looked through.
    look: Time,
}

impl Iofd {
    /// How long what waits at a port for packets of a priority takes to leave, with all that goes before or with it.
    fn backlog(switch: &impl SwitchView, port: u16, priority: u8) -> Time {
        let channels = switch.channels();
        let last = priority - priority % channels + channels;
        let waiting: u64 = (0..last).map(|priority| switch.queue_bytes(port, priority)).sum();
        switch.rate(port).time_of(Bytes::new(waiting + switch.held_bytes(port)))
    }

    /// Where packets that leave by `current` had better go, if that is congested: to one of the ports with the shortest queue, drawn.
    fn better(
        &self,
        view: &PortView,
        packet: &PacketView,
        current: u16,
        switch: &impl SwitchView,
    ) -> Option<u16> {
        let (usual, priority, ingress) = (view.port, view.priority, packet.ingress?);
        if Self::backlog(switch, current, priority) <= self.parameters.deflect_above {
            return None;
        }
        let may_deflect = u64::from(packet.deflections) < self.parameters.max_deflections;
        let destination = packet.flow.destination;
        let suits = |port: &u16| {
            *port != current
                && *port != ingress
                && (*port == usual || may_deflect)
                && self.moves[usize::from(*port)].to < self.parameters.max_moves
                && switch.may_send(*port, switch.leaving_priority(ingress, *port, priority))
                && switch.has_channels(ingress, *port, priority, destination)
        };
        let longer = switch.longer_ways(destination).filter(|_| self.parameters.loop_free_alternates);
        let mut best: Option<(Time, u32, u16)> = None;
        for port in switch.alternatives(destination).chain(longer).filter(suits) {
            let backlog = Self::backlog(switch, port, priority);
            // Of equals one is drawn: the next of n takes the place with probability 1/n.
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

    /// A flow may leave a port: not too many do, and its marker has room there.
    fn may_leave(&self, port: u16, switch: &impl SwitchView) -> bool {
        self.moves[usize::from(port)].from < self.parameters.max_moves
            && switch.has_room(port, u32::from(MARKER))
    }

    /// Routing still gives the visit its usual port, and it may leave by all ports of its entry.
    fn is_valid(&self, visit: &Visit, entry: &Entry, switch: &impl SwitchView) -> bool {
        let destination = entry.flow.destination;
        let leads_there = |port: u16| {
            switch.alternatives(destination).any(|other| other == port)
                || (self.parameters.loop_free_alternates
                    && switch.longer_ways(destination).any(|other| other == port))
        };
        let may_leave = |port: u16| {
            switch.is_up(port)
                && (port == entry.usual
                    || leads_there(port)
                        && switch.has_channels(visit.ingress, port, visit.priority, destination))
        };
        switch.usual_port(&entry.flow) == Some(entry.usual)
            && may_leave(entry.usual)
            && may_leave(entry.port)
            && entry.change.is_none_or(|change| may_leave(change.to))
    }

    /// Begins to change the port of the visit in a place.
    fn change(&mut self, place: u16, to: u16, now: Time) {
        self.changes += 1;
        let name = self.changes << PLACE_BITS | u64::from(place);
        let patience = self.parameters.marker_timeout;
        if let Some((_, entry)) = self.table.get_mut(place) {
            self.moves[usize::from(entry.port)].from += 1;
            self.moves[usize::from(to)].to += 1;
            entry.change = Some(Change { to, name, waits: true, again: Time::MAX, patience });
        }
        self.mark(place);
        self.look = self.look.min(now + self.period());
    }

    /// Sends the marker of the change in a place.
    fn mark(&mut self, place: u16) {
        let Some((visit, entry)) = self.table.get_mut(place) else { return };
        let Some(change) = &mut entry.change else { return };
        change.waits = true;
        self.orders.push_back(Wanted::Mark {
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

    /// How often the table is looked through.
    fn period(&self) -> Time {
        self.parameters.marker_timeout.min(self.parameters.idle)
    }

    /// The way of a packet whose visit's port is chosen anew: what the visit does from now on.
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
        let to = self.better(view, packet, current, switch)?;
        if !self.may_leave(current, switch) {
            return None;
        }
        if self.parameters.order == Order::Local && !self.is_gone(view, packet, known.as_ref(), switch) {
            return None;
        }
        let entry =
            Entry { flow: packet.flow, usual: view.port, port: current, change: None, seen: view.now };
        let place = place.or_else(|| self.table.insert(visit, entry))?;
        if known.is_none() && self.parameters.order == Order::Local && self.parameters.guard > Time::ZERO {
            // From here on it is known when its packets come.
            self.look = self.look.min(view.now + self.period());
            return None;
        }
        Some((place, to))
    }

    /// `order = "local"`: no packet of a flow seems to be before this one.
    fn is_gone(
        &self,
        view: &PortView,
        packet: &PacketView,
        entry: Option<&Entry>,
        switch: &impl SwitchView,
    ) -> bool {
        let port = entry.map_or(view.port, |entry| entry.port);
        let waits = (0..switch.priorities()).any(|priority| {
            switch.waiting(port, priority).any(|other| other.is_data && other.flow == packet.flow)
        });
        !waits && entry.is_none_or(|entry| view.now - entry.seen >= self.parameters.guard)
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
        &[Condition::new("guard", "order", &["local"]), Condition::new("max_moves", "order", &["marker"])];
    const HOLDS: bool = true;

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
            table: Table::new(parameters.table_entries as u16),
            parameters: Arc::clone(parameters),
            moves: vec![Moves::default(); site.ports.len()],
            orders: VecDeque::new(),
            changes: 0,
            look: Time::MAX,
        }
    }

    fn on_enqueue(
        &mut self,
        port: &PortView,
        packet: &PacketView,
        switch: &impl SwitchView,
        verdict: &mut Verdict,
    ) {
        let Some(ingress) = packet.ingress else { return };
        if !packet.is_data && packet.marker.is_none() {
            return;
        }
        if switch.leads_to_host(port.port) {
            // Here all ways of a flow meet.
            verdict.answer = packet.marker.is_some();
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
        match entry.change {
            Some(change) => verdict.hold = Some(Hold { place, port: change.to }),
            None => verdict.deflect_to = Some(entry.port),
        }
    }

    fn on_dequeue(
        &mut self,
        port: &PortView,
        packet: &PacketView,
        _switch: &impl SwitchView,
        _verdict: &mut Verdict,
    ) {
        if packet.marker.is_some() {
            self.on_drop(port, packet);
        }
    }

    /// A marker has left, or did not get far: from now on it may be lost.
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

    fn on_timer(
        &mut self,
        now: Time,
        switch: &impl SwitchView,
        _send: &mut dyn FnMut(crate::agent::Notification),
    ) {
        for place in 0..self.table.places() {
            let Some((visit, entry)) = self.table.get_mut(place).map(|(visit, entry)| (*visit, *entry))
            else {
                continue;
            };
            let has_room = || switch.has_room(entry.port, u32::from(MARKER));
            if let Some(change) = entry.change {
                if !change.waits && change.again <= now && has_room() {
                    self.mark(place);
                }
                continue;
            }
            let is_idle = now - entry.seen >= self.parameters.idle;
            let leaving = switch.leaving_priority(visit.ingress, entry.usual, visit.priority);
            let may_return = || {
                let port = usize::from(entry.port);
                self.parameters.loop_free_alternates
                    && switch.longer_ways(entry.flow.destination).any(|longer| longer == entry.port)
                    && self.moves[port].from < self.parameters.max_moves
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
        self.orders.push_back(Wanted::Release { place, to: Some((change.to, is_deflection)) });
    }

    /// Flows that still have the ways that they had go on as if nothing had happened; the others begin anew.
    fn on_routes(&mut self, switch: &impl SwitchView) {
        for place in 0..self.table.places() {
            let Some((visit, entry)) = self.table.get_mut(place).map(|(visit, entry)| (*visit, *entry))
            else {
                continue;
            };
            if self.is_valid(&visit, &entry, switch) {
                continue;
            }
            if let Some(change) = entry.change {
                self.moves[usize::from(entry.port)].from -= 1;
                self.moves[usize::from(change.to)].to -= 1;
                self.orders
                    .retain(|order| !matches!(order, Wanted::Mark { name, .. } if *name == change.name));
                self.orders.push_back(Wanted::Release { place, to: None });
            }
            self.table.remove(place);
        }
        if self.table.is_empty() {
            self.look = Time::MAX;
        }
    }

    #[inline]
    fn take_order(&mut self) -> Option<Wanted> {
        self.orders.pop_front()
    }
}
