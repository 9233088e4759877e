//! The receivers' half of Polo: D, epochs, active and inactive flows, and the three recoveries.
//!
//! What costs time for each packet is the flow of that packet, and one or two flows that get driving packets; flows
//! that are silent cost nothing. Only recovery 2 looks at all active flows, after two epochs without data.

use super::{
    Adjoint, AdjointScope, Arrival, Driven, Driving, End, EpochOf, LossPackets, MOST_BACKOFF, Message, NewFlow,
    Parameters, Pause, PausedWindow, ReceiverScheduler, Recovery2Scope, Scope,
};
use crate::{Path, receiver_driven::slots::Slots};
use incast_units::Time;
use std::collections::{BTreeMap, VecDeque};

/// What is known of a packet of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is unscheduled.
    Unscheduled,
    /// A driving packet was sent for it.
    Driven,
    /// A loss packet was sent for it.
    Again,
    /// It is lost, and a loss packet is to be sent.
    Missing,
    Arrived,
}

/// A number D, and the epoch that is under way.
#[derive(Clone, Debug)]
struct Budget {
    /// Packets.
    d: f64,
    /// Requested packets that have not arrived.
    awaited: u32,
    /// Driving packets left in this epoch, where D counts those.
    left: u32,
    /// The epoch is the first one.
    first: bool,
    /// Marked packets of the epoch.
    marks: u32,
    /// Data of any flow that had arrived when the epoch began.
    arrivals: u64,
    /// Epochs in a row without data, of the owner where each flow's adjoint packets end some.
    idle: u8,
    /// Data of any flow that had arrived when that was counted last.
    counted: u64,
    /// When data of any flow last arrived or was requested.
    last_arrival: Time,
}

impl Budget {
    /// As a flow, or the first of a receiver's, begins.
    const fn new(arrivals: u64) -> Self {
        Self {
            d: 0.0,
            awaited: 0,
            left: 0,
            first: true,
            marks: 0,
            arrivals,
            idle: 0,
            counted: arrivals,
            last_arrival: Time::ZERO,
        }
    }

    /// So many packets may be awaited.
    fn whole(&self) -> u32 {
        self.d as u32
    }

    /// D at the end of an epoch: D - M/2 if M packets were marked, else D + 1 if any came; the first epoch has counted
    /// up already, and its marks count if `first_marks`. Slides, "Adjusting the number of driving packets".
    fn adjusted(&self, came: bool, first_marks: bool, floor: f64, most: f64) -> f64 {
        let cut = f64::from(self.marks) / 2.0;
        let d = match (self.first, self.marks) {
            (true, _) => self.d - if first_marks { cut } else { 0.0 },
            (false, 0) => self.d + if came { 1.0 } else { 0.0 },
            (false, _) => self.d - cut,
        };
        d.min(most).max(floor)
    }
}

/// A flow that is not complete.
#[derive(Clone, Debug)]
struct Flow {
    handle: u32,
    /// Its place among the flows by age: of active ones the oldest is the owner of the epochs.
    number: u64,
    mss: u64,
    packets: u32,
    /// All packets below have arrived.
    base: u32,
    /// What follows, up to the first that may not go yet.
    states: VecDeque<State>,
    /// One past the highest packet that has arrived.
    seen: u32,
    /// Bytes that have not arrived.
    remaining: u64,
    /// Packets that are lost, in the order in which they are requested; some may have arrived since.
    missing: VecDeque<u32>,
    /// Requested packets that have not arrived, and driving packets for which it had none.
    awaited: u32,
    wasted: u32,
    active: bool,
    /// It stands in line for driving packets.
    in_turn: bool,
    /// An inactive flow has been activated in its place before its end.
    succeeded: bool,
    /// When data last arrived or was requested.
    last_arrival: Time,
    /// When data or an adjoint packet last arrived.
    last_sign: Time,
    /// Its own D, where flows have one.
    budget: Budget,
}

impl Flow {
    /// The first packet that may not go yet.
    fn next(&self) -> u32 {
        self.base + self.states.len() as u32
    }

    fn state(&mut self, packet: u32) -> Option<&mut State> {
        self.states.get_mut(packet.checked_sub(self.base)? as usize)
    }

    /// The first packet that is lost, if it has not come after all.
    fn next_missing(&mut self) -> Option<u32> {
        while let Some(packet) = self.missing.front().copied() {
            if self.state(packet) == Some(&mut State::Missing) {
                return Some(packet);
            }
            self.missing.pop_front();
        }
        None
    }

    /// It has something to send that was not requested.
    fn has_work(&mut self) -> bool {
        self.next() < self.packets || self.next_missing().is_some()
    }

    /// Packet `packet` arrived: what was known of it. `None` if it was complete up to there.
    fn arrive(&mut self, packet: u32) -> Option<State> {
        let place = packet.checked_sub(self.base)? as usize;
        if place >= self.states.len() {
            // A sender that has more driving packets than it could use sends more than was requested.
            self.states.resize(place + 1, State::Unscheduled);
        }
        let before = std::mem::replace(&mut self.states[place], State::Arrived);
        while self.states.front() == Some(&State::Arrived) {
            self.states.pop_front();
            self.base += 1;
        }
        Some(before)
    }

    /// Takes a packet that is awaited for lost; true if it had been requested.
    fn lose(&mut self, packet: u32) -> bool {
        let Some(state) = self.state(packet) else { return false };
        let requested = match state {
            State::Unscheduled => false,
            State::Driven | State::Again => true,
            State::Missing | State::Arrived => return false,
        };
        *state = State::Missing;
        self.missing.push_back(packet);
        self.awaited -= u32::from(requested);
        requested
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Receiver {
    rules: Parameters,
    /// Most that D can be, in packets.
    most: f64,
    flows: Slots<Flow>,
    /// Flows that began.
    begun: u64,
    /// Flows in progress by age, active and inactive ones.
    active: BTreeMap<u64, u32>,
    inactive: BTreeMap<u64, u32>,
    /// The flow whose adjoint packets are acknowledged, if only one's are.
    owner: Option<u64>,
    /// Active flows that have something to send, or all of them, by handle; the next one first. Some may have ended.
    turns: VecDeque<u32>,
    /// The active flow that recovery 2 chose last.
    repaired: u64,
    /// Of all flows.
    budget: Budget,
    /// A packet was marked since there was a flow again.
    marked: bool,
    /// Data packets that arrived.
    arrivals: u64,
}

type Send<'a> = &'a mut dyn FnMut(u32, Message);

impl Receiver {
    /// The receiver of a host.
    pub fn new(parameters: &Parameters, path: &Path) -> Self {
        let bdp = path.rate.bytes_in(path.base_rtt).get() as f64 / f64::from(path.wire_mss.max(1));
        Self {
            rules: parameters.clone(),
            most: (parameters.d_max * bdp).max(1.0),
            flows: Slots::new(),
            begun: 0,
            active: BTreeMap::new(),
            inactive: BTreeMap::new(),
            owner: None,
            turns: VecDeque::new(),
            repaired: 0,
            budget: Budget::new(0),
            marked: false,
            arrivals: 0,
        }
    }

    /// D of all flows, and how many packets are awaited.
    #[cfg(test)]
    pub(super) fn d(&self) -> (f64, u32) {
        (self.budget.d, self.budget.awaited)
    }

    /// The same of a flow that has its own.
    #[cfg(test)]
    pub(super) fn d_of(&self, handle: u32) -> Option<(f64, u32)> {
        self.place(handle).map(|place| (self.flows[place].budget.d, self.flows[place].budget.awaited))
    }

    fn place(&self, handle: u32) -> Option<usize> {
        self.flows.place(handle)
    }

    fn by_flow(&self) -> bool {
        self.rules.d_scope == Scope::Flow
    }

    fn counts_awaited(&self) -> bool {
        self.rules.driving == Driving::Window
    }

    /// The D that applies to a flow.
    fn budget(&mut self, place: usize) -> &mut Budget {
        if self.by_flow() { &mut self.flows[place].budget } else { &mut self.budget }
    }

    // ---- Active flows -----------------------------------------------------------------------------------------------

    /// A flow gets driving packets from now on.
    fn activate(&mut self, place: usize, now: Time) {
        let flow = &mut self.flows[place];
        (flow.active, flow.last_arrival, flow.last_sign) = (true, now, now);
        self.active.insert(flow.number, place as u32);
        self.stand_in_line(place);
    }

    /// An active flow that has something to send, or any if driving packets may be wasted, stands in line.
    fn stand_in_line(&mut self, place: usize) {
        let (all, by_flow) = (!self.rules.wasted_packet_optimization, self.by_flow());
        let flow = &mut self.flows[place];
        if flow.active && !by_flow && !flow.in_turn && (all || flow.has_work()) {
            flow.in_turn = true;
            self.turns.push_back(flow.handle);
        }
    }

    /// The next active flow that has something to send. One of which as much is awaited as its part of D lets others go
    /// before it, so that a sender that is slow, busy or dead holds no more than that.
    fn next_in_line(&mut self) -> Option<usize> {
        let all = !self.rules.wasted_packet_optimization;
        let shares = self.rules.driven == Driven::Share && self.counts_awaited();
        let mut passed = 0;
        while let Some(handle) = self.turns.pop_front() {
            let Some(place) = self.place(handle) else { continue };
            let others = self.turns.len();
            let part = (self.budget.whole() / (others as u32 + 1)).max(1);
            let flow = &mut self.flows[place];
            let serves = flow.active && (all || flow.has_work());
            if serves && shares && passed <= others && flow.awaited + flow.wasted >= part {
                passed += 1;
                self.turns.push_back(handle);
                continue;
            }
            flow.in_turn = false;
            if serves {
                return Some(place);
            }
        }
        None
    }

    /// The oldest inactive flow becomes active.
    fn promote(&mut self, now: Time, send: Send<'_>) -> Option<usize> {
        let (_, place) = self.inactive.pop_first()?;
        let place = place as usize;
        let overdue = self.flows[place].last_arrival.saturating_add(self.rules.recovery2_timeout) <= now;
        if match self.rules.paused_window {
            PausedWindow::Overdue => overdue,
            PausedWindow::Lost => true,
            PausedWindow::Awaited => false,
        } {
            self.presume_lost(place, now);
        }
        self.activate(place, now);
        let (floor, most) = (self.rules.d_min, self.most);
        let budget = &mut self.flows[place].budget;
        budget.d = budget.d.clamp(floor.min(most), most);
        (budget.first, budget.left) = (false, budget.whole());
        match self.rules.adjoint_scope {
            AdjointScope::All => {}
            // What it sent may have been lost: it sends another one.
            AdjointScope::Active => self.answer(place, send),
            AdjointScope::Owner => self.appoint(send),
        }
        Some(place)
    }

    /// Another flow may be the oldest active one now.
    fn appoint(&mut self, send: Send<'_>) {
        let Some((number, place)) = self.active.first_key_value() else {
            self.owner = None;
            return;
        };
        if self.owner != Some(*number) {
            let place = *place as usize;
            self.owner = Some(*number);
            self.answer(place, send);
        }
    }

    fn answer(&self, place: usize, send: Send<'_>) {
        send(self.flows[place].handle, Message::Acknowledge);
    }

    fn is_owner(&self, place: usize) -> bool {
        self.active.first_key_value().is_some_and(|(_, first)| *first as usize == place)
    }

    // ---- Driving ----------------------------------------------------------------------------------------------------

    /// Sends a loss packet if there is one to be sent, else a driving packet.
    fn drive(&mut self, place: usize, now: Time, send: Send<'_>) {
        let flow = &mut self.flows[place];
        flow.last_arrival = now;
        let wanted = flow.next_missing();
        if let Some(packet) = wanted {
            flow.missing.pop_front();
            if let Some(state) = flow.state(packet) {
                *state = State::Again;
            }
            flow.awaited += 1;
        } else if flow.next() < flow.packets {
            flow.states.push_back(State::Driven);
            flow.awaited += 1;
        } else {
            flow.wasted += 1;
        }
        let lost = |packet: u32| Message::Lost { position: u64::from(packet) * flow.mss };
        send(flow.handle, wanted.map_or(Message::Drive, lost));
        let budget = self.budget(place);
        budget.awaited += 1;
        budget.last_arrival = now;
        self.stand_in_line(place);
    }

    /// Drives as much as D leaves room for, `place` being the flow that something happened to.
    fn fill(&mut self, place: Option<usize>, now: Time, send: Send<'_>) {
        if !self.counts_awaited() {
            return;
        }
        if self.by_flow() {
            self.fill_flow(place, now, send);
            return;
        }
        while self.budget.awaited < self.budget.whole() {
            let next = self.next_in_line();
            let promoted = next.is_none() && self.rules.wasted_packet_optimization;
            let next = if promoted { self.promote(now, send) } else { next };
            match next {
                Some(place) if !promoted => self.drive(place, now, send),
                // It stands in line if it has something to send.
                Some(_) => {}
                None => return,
            }
        }
    }

    /// A driving packet for a packet that arrived goes to its own flow, if D has room and the flow has something to send.
    fn return_to_sender(&mut self, place: usize, now: Time, send: Send<'_>) {
        let has_room = self.budget.awaited < self.budget.whole();
        if self.rules.driven == Driven::Data && !self.by_flow() && has_room {
            let flow = &mut self.flows[place];
            if flow.active && flow.has_work() {
                self.drive(place, now, send);
            }
        }
    }

    /// The same for a flow with a D of its own. If it cannot use all of it, an inactive one takes its place.
    fn fill_flow(&mut self, place: Option<usize>, now: Time, send: Send<'_>) {
        let mut next = place;
        while let Some(place) = next.take().filter(|place| self.flows[*place].active) {
            let all = !self.rules.wasted_packet_optimization;
            while self.flows[place].budget.awaited < self.flows[place].budget.whole() {
                if !all && !self.flows[place].has_work() {
                    next = self.succeed(place, now, send);
                    break;
                }
                self.drive(place, now, send);
            }
        }
    }

    /// An inactive flow becomes active in place of one that has nothing left to send, once.
    fn succeed(&mut self, place: usize, now: Time, send: Send<'_>) -> Option<usize> {
        if self.flows[place].succeeded {
            return None;
        }
        let next = self.promote(now, send);
        self.flows[place].succeeded = next.is_some();
        next
    }

    /// Where D counts driving packets: `due` of them for data of a flow, as far as the epoch's are not used up.
    fn return_driving(&mut self, place: usize, due: u32, now: Time, send: Send<'_>) {
        for _ in 0..due {
            let budget = self.budget(place);
            if budget.left == 0 {
                return;
            }
            budget.left -= 1;
            self.drive_or_pass_on(place, now, send);
        }
    }

    /// A driving packet that a flow has no use for goes to another one, unless it is wasted.
    fn drive_or_pass_on(&mut self, place: usize, now: Time, send: Send<'_>) {
        let (optimises, by_flow) = (self.rules.wasted_packet_optimization, self.by_flow());
        let flow = &mut self.flows[place];
        let active = flow.active;
        let next = if active && (!optimises || flow.has_work()) {
            Some(place)
        } else if !optimises {
            None
        } else if by_flow {
            if active { self.succeed(place, now, send) } else { None }
        } else {
            match self.next_in_line() {
                Some(place) => Some(place),
                None => self.promote(now, send),
            }
        };
        if let Some(place) = next {
            self.drive(place, now, send);
        }
    }

    /// An inactive flow becomes active. Where driving packets are returned for data, it gets one to begin with.
    fn start_next(&mut self, now: Time, send: Send<'_>) {
        if let Some(place) = self.promote(now, send) {
            if self.counts_awaited() {
                self.fill(Some(place), now, send);
            } else {
                self.drive(place, now, send);
            }
        }
    }

    // ---- Epochs and recovery ----------------------------------------------------------------------------------------

    /// An adjoint packet of an active flow ends an epoch of the D that it goes by.
    fn end_epoch(&mut self, place: usize, now: Time, send: Send<'_>) {
        let (floor, most, arrivals) = (self.rules.d_min, self.most, self.arrivals);
        let first_marks = self.rules.first_epoch_marks;
        let counts_idle = self.by_flow() || self.is_owner(place);
        let (repairs, silence) = (self.rules.recovery2, self.rules.recovery2_timeout);
        let budget = self.budget(place);
        let came = arrivals > budget.arrivals;
        let before = budget.whole();
        budget.d = budget.adjusted(came, first_marks, floor, most);
        budget.left = budget.whole();
        let grew = !budget.first && budget.left > before;
        if counts_idle {
            budget.idle = if arrivals > budget.counted { 0 } else { budget.idle.saturating_add(1) };
            budget.counted = arrivals;
        }
        (budget.first, budget.marks, budget.arrivals) = (false, 0, arrivals);
        let repair = repairs && budget.idle >= 2 && budget.last_arrival.saturating_add(silence) <= now;
        if repair {
            budget.idle = 0;
            self.repair(place, now, send);
        } else if grew && !self.counts_awaited() {
            // One more than arrives.
            self.return_driving(place, 1, now, send);
        }
    }

    /// An owner of which nothing has come for two timeouts ends no epoch and holds what D has: it is paused behind the
    /// others, and what is awaited of it is lost. Its place is taken as at its end. With a D for each flow it holds a
    /// place alone, which matters if others wait for one.
    fn replace_silent_owner(&mut self, now: Time, send: Send<'_>) {
        let others =
            if self.by_flow() { !self.inactive.is_empty() } else { self.active.len() + self.inactive.len() > 1 };
        let Some(place) = self.active.first_key_value().map(|(_, place)| *place as usize) else { return };
        // Where each has its own D they fill the queue: one that is silent is dead only after a sender's longest wait.
        let waits = if self.by_flow() { 1 << MOST_BACKOFF } else { 2 };
        let silence = self.rules.rto.time().saturating_mul(waits);
        if !self.rules.recovery3 || !others || self.flows[place].last_sign.saturating_add(silence) > now {
            return;
        }
        self.begun += 1;
        let number = std::mem::replace(&mut self.flows[place].number, self.begun);
        self.flows[place].active = false;
        self.presume_lost(place, now);
        self.active.remove(&number);
        self.start_next(now, send);
        self.inactive.insert(self.begun, place as u32);
        if self.rules.adjoint_scope == AdjointScope::Owner {
            self.appoint(send);
        }
    }

    /// Recovery 2: two epochs have passed without any data.
    fn repair(&mut self, place: usize, now: Time, send: Send<'_>) {
        if self.by_flow() {
            self.presume_lost(place, now);
        } else if self.rules.recovery2_scope == Recovery2Scope::All {
            let active: Vec<u32> = self.active.values().copied().collect();
            active.iter().for_each(|place| self.presume_lost(*place as usize, now));
        } else {
            let next = self.active.range(self.repaired + 1..).next().or_else(|| self.active.first_key_value());
            if let Some((number, place)) = next.map(|(number, place)| (*number, *place as usize)) {
                self.repaired = number;
                self.presume_lost(place, now);
                // Whatever D leaves room for.
                self.drive(place, now, send);
            }
            return;
        }
        self.restart(place, now, send);
    }

    /// After a loss that no packet indicates: what D has room for is driven, and one packet of the flow if D has none, or
    /// if driving packets go where data come from, which this flow has to begin with again.
    fn restart(&mut self, place: usize, now: Time, send: Send<'_>) {
        self.fill(Some(place), now, send);
        let budget = self.budget(place);
        let stands_still = budget.whole() == 0 && budget.awaited == 0;
        let stands_still = stands_still || self.rules.driven == Driven::Data && self.flows[place].awaited == 0;
        if (stands_still || !self.counts_awaited()) && self.flows[place].has_work() {
            self.drive(place, now, send);
        }
    }

    /// What is awaited of a flow is lost.
    fn presume_lost(&mut self, place: usize, now: Time) {
        let flow = &mut self.flows[place];
        let released = flow.awaited + flow.wasted;
        for packet in flow.base..flow.next() {
            flow.lose(packet);
        }
        (flow.awaited, flow.wasted, flow.last_arrival) = (0, 0, now);
        let budget = self.budget(place);
        budget.awaited = budget.awaited.saturating_sub(released);
        self.stand_in_line(place);
    }

    /// Recovery 1: packets below this one that were sent once have not arrived. Returns how many.
    fn find_gap(&mut self, place: usize, packet: u32) -> u32 {
        let flow = &mut self.flows[place];
        let gap = flow.seen.max(flow.base)..packet;
        flow.seen = flow.seen.max(packet + 1);
        if !self.rules.recovery1 {
            return 0;
        }
        let (mut found, mut requested) = (0, 0);
        for packet in gap {
            if matches!(flow.state(packet), Some(State::Unscheduled | State::Driven)) {
                found += 1;
                requested += u32::from(flow.lose(packet));
            }
        }
        let budget = self.budget(place);
        budget.awaited = budget.awaited.saturating_sub(requested);
        found
    }
}

impl ReceiverScheduler for Receiver {
    type Message = Message;
    type Signal = Adjoint;

    fn on_flow(&mut self, new: &NewFlow, _send: Send<'_>) {
        if self.active.is_empty() && self.inactive.is_empty() {
            // "In the beginning": as if nothing had been before.
            (self.budget, self.marked, self.owner) = (Budget::new(self.arrivals), false, None);
            self.turns.clear();
        }
        let mss = u64::from(new.mss.max(1));
        let packets = new.bytes.div_ceil(mss) as u32;
        let unscheduled = new.unscheduled.div_ceil(mss).min(packets.into()) as usize;
        self.begun += 1;
        let flow = Flow {
            handle: new.flow,
            number: self.begun,
            mss,
            packets,
            base: 0,
            states: std::iter::repeat_n(State::Unscheduled, unscheduled).collect(),
            seen: 0,
            remaining: new.bytes,
            missing: VecDeque::new(),
            awaited: 0,
            wasted: 0,
            active: false,
            in_turn: false,
            succeeded: false,
            last_arrival: new.now,
            last_sign: new.now,
            budget: Budget::new(self.arrivals),
        };
        let place = self.flows.insert(new.flow, flow);
        let has_room = match self.rules.pause {
            Pause::UntilMarked => !self.marked,
            Pause::ActiveLimit => (self.active.len() as u64) < self.rules.max_active,
            Pause::Off => true,
        };
        if has_room || self.active.is_empty() {
            self.activate(place, new.now);
            if self.rules.adjoint_scope == AdjointScope::Owner && self.owner.is_none() {
                // Its first adjoint packet comes by itself.
                self.owner = Some(self.begun);
            }
        } else {
            self.inactive.insert(self.begun, place as u32);
        }
    }

    fn on_data(&mut self, arrival: &Arrival, send: Send<'_>) {
        let Some(place) = self.place(arrival.flow) else { return };
        let now = arrival.now;
        let flow = &mut self.flows[place];
        if arrival.bytes == 0 || (!arrival.duplicate && arrival.remaining == flow.remaining) {
            // Not received: a header without its payload.
            return;
        }
        (flow.last_arrival, flow.last_sign, flow.remaining) = (now, now, arrival.remaining);
        let packet = (arrival.position / flow.mss) as u32;
        let before = flow.arrive(packet);
        let requested = matches!(before, Some(State::Driven | State::Again));
        flow.awaited -= u32::from(requested);
        self.arrivals += 1;
        let counts = before != Some(State::Again) || self.rules.count_retransmissions;
        self.marked |= arrival.marked;
        let most = self.most;
        let budget = self.budget(place);
        budget.awaited = budget.awaited.saturating_sub(requested.into());
        budget.last_arrival = now;
        if arrival.marked {
            budget.marks += u32::from(counts);
        } else if budget.first {
            budget.d = (budget.d + 1.0).min(most);
            budget.left += 1;
        }
        let found = self.find_gap(place, packet);
        self.stand_in_line(place);
        if self.counts_awaited() {
            if self.rules.loss_packets == LossPackets::AtOnce && self.flows[place].active {
                (0..found).for_each(|_| self.drive(place, now, send));
            }
            self.return_to_sender(place, now, send);
            self.fill(Some(place), now, send);
        } else {
            self.return_driving(place, 1 + found, now, send);
        }
    }

    fn on_signal(&mut self, now: Time, flow: u32, _adjoint: Adjoint, send: Send<'_>) {
        let Some(place) = self.place(flow) else { return };
        self.flows[place].last_sign = now;
        let owner = self.owner;
        self.replace_silent_owner(now, send);
        // A new owner has its acknowledgement already.
        let appointed = self.owner != owner && self.owner == Some(self.flows[place].number);
        let is_owner = self.is_owner(place);
        let active = self.flows[place].active;
        let answers = match self.rules.adjoint_scope {
            AdjointScope::All => true,
            AdjointScope::Active => active,
            AdjointScope::Owner => is_owner && !appointed,
        };
        if answers {
            self.answer(place, send);
        }
        if !active {
            return;
        }
        if self.by_flow() || is_owner || self.rules.epoch == EpochOf::Each {
            self.end_epoch(place, now, send);
        }
        let silent = self.flows[place].last_arrival.saturating_add(self.rules.rto.time()) <= now;
        if silent && self.rules.recovery3 {
            self.presume_lost(place, now);
            self.restart(place, now, send);
        } else {
            self.fill(Some(place), now, send);
        }
    }

    fn on_end(&mut self, now: Time, flow: u32, _end: End, send: Send<'_>) {
        let Some(place) = self.place(flow) else { return };
        self.flows.free(flow, place);
        let flow = &mut self.flows[place];
        let released = flow.awaited + flow.wasted;
        let (number, was_active, succeeded) = (flow.number, flow.active, flow.succeeded);
        flow.states = VecDeque::new();
        flow.missing = VecDeque::new();
        flow.active = false;
        self.inactive.remove(&number);
        self.active.remove(&number);
        if !self.by_flow() {
            self.budget.awaited = self.budget.awaited.saturating_sub(released);
        }
        if !was_active {
            return;
        }
        if !succeeded || self.active.is_empty() {
            self.start_next(now, send);
        }
        if self.rules.adjoint_scope == AdjointScope::Owner {
            self.appoint(send);
        }
        self.fill(None, now, send);
    }

    fn uses_tokens(&self) -> bool {
        true
    }
}
