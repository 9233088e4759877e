//! The receiver's half: whose turn it is at each tick of the token clock, and which packet is wanted.

use super::{Constants, LONG, Rts, Scheduling, Timeouts};
use crate::{
    message::{DataTag, Instruction},
    receiver_driven::{arrived::Arrived, slots::Slots},
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::Time;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
    sync::Arc,
};

/// A flow in progress.
#[derive(Clone, Debug)]
struct Flow {
    flow: u32,
    packets: u64,
    mss: u64,
    arrived: Arrived,
    /// Free tokens of which the packets have not come.
    free: u64,
    /// The next packet to be given a token, if it is missing; later ones have not been given any.
    cursor: u64,
    /// Tokens since the last one that was used, the oldest first.
    unused: VecDeque<DataTag>,
    /// When it last got a token, or last sent a packet.
    last: Time,
    /// It is among those that may be given tokens: remaining packets by which it stands there.
    ready: Option<u64>,
    /// It stands in the line of those that take turns.
    queued: bool,
    /// It has an entry among the timers.
    timed: bool,
}

impl Flow {
    fn remaining(&self) -> u64 {
        self.packets - self.arrived.count().min(self.packets)
    }

    /// The packet that the next token is for.
    fn wanted(&self) -> Option<u64> {
        let next = self.arrived.next_missing(self.cursor);
        (next < self.packets).then_some(next)
    }

    /// Tokens have run so far ahead that its sender must be busy, or out of reach.
    fn is_left_alone(&self, constants: &Constants) -> bool {
        self.unused.len() as u64 > constants.parameters.window
    }

    /// Packets that were allowed and have not come: on free tokens, and on tokens since the last one that was used.
    fn under_way(&self) -> u64 {
        self.free + self.unused.len() as u64
    }

    /// When to go on with a flow that is left alone, or has been given all its tokens. `under_way` packets of all
    /// flows may come on the receiver's link before its own.
    fn wake(&self, constants: &Constants, under_way: u64) -> Time {
        let others = match constants.parameters.timeouts {
            Timeouts::Rtt => under_way.saturating_sub(self.under_way()),
            Timeouts::Literal => 0,
        };
        let (wait, packets) = if self.is_left_alone(constants) {
            (constants.window_timeout, others)
        } else {
            (constants.resend_timeout, others + self.free)
        };
        self.last.saturating_add(wait).saturating_add(constants.packet.saturating_mul(packets))
    }
}

/// The flows to one host.
#[derive(Clone, Debug)]
pub struct Receiver {
    constants: Arc<Constants>,
    flows: Slots<Flow>,
    /// Those that may be given tokens, the shortest first: remaining packets, flow.
    shortest: BTreeSet<(u64, u32)>,
    /// Where they take turns: those, the next one first, and some that wait again.
    turns: VecDeque<u32>,
    /// How many may be given tokens.
    ready: usize,
    /// No earlier than this it is to be gone on with a flow that waits; one entry for each.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    /// The next token may go.
    next_token: Time,
    /// Packets of all flows that were allowed and have not come.
    under_way: u64,
}

impl Receiver {
    /// Without flows.
    pub fn new(constants: Arc<Constants>) -> Self {
        Self {
            constants,
            flows: Slots::new(),
            shortest: BTreeSet::new(),
            turns: VecDeque::new(),
            ready: 0,
            timers: BinaryHeap::new(),
            next_token: Time::ZERO,
            under_way: 0,
        }
    }

    fn place(&self, flow: u32) -> Option<usize> {
        self.flows.place(flow)
    }

    /// Puts a flow where it belongs after something happened to it: among those that may be given tokens, or those that
    /// wait.
    fn settle(&mut self, place: usize) {
        let constants = &self.constants;
        let flow = &mut self.flows[place];
        let is_ready = flow.wanted().is_some() && !flow.is_left_alone(constants);
        let rank = match constants.parameters.scheduling {
            Scheduling::Srpt => flow.remaining(),
            Scheduling::RoundRobin => 0,
        };
        let now = is_ready.then_some(rank);
        let before = std::mem::replace(&mut flow.ready, now);
        let (handle, joins) = (flow.flow, is_ready && !flow.queued);
        if !is_ready && !std::mem::replace(&mut flow.timed, true) {
            self.timers.push(Reverse((flow.wake(constants, self.under_way), handle)));
        }
        if constants.parameters.scheduling == Scheduling::RoundRobin && joins {
            flow.queued = true;
            self.turns.push_back(handle);
        }
        self.line_up(handle, before, now);
    }

    fn line_up(&mut self, handle: u32, before: Option<u64>, now: Option<u64>) {
        if before == now {
            return;
        }
        self.ready = self.ready + usize::from(now.is_some()) - usize::from(before.is_some());
        if self.constants.parameters.scheduling == Scheduling::Srpt {
            before.map(|rank| self.shortest.remove(&(rank, handle)));
            now.map(|rank| self.shortest.insert((rank, handle)));
        }
    }

    /// The flow whose turn it is.
    fn next(&mut self) -> Option<usize> {
        match self.constants.parameters.scheduling {
            Scheduling::Srpt => self.place(self.shortest.first()?.1),
            Scheduling::RoundRobin => loop {
                let handle = self.turns.pop_front()?;
                let Some(place) = self.place(handle) else { continue };
                if self.flows[place].ready.is_some() {
                    self.turns.push_back(handle);
                    return Some(place);
                }
                self.flows[place].queued = false;
            },
        }
    }

    fn give_token(&mut self, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        let Some(place) = self.next() else { return };
        let flow = &mut self.flows[place];
        let Some(wanted) = flow.wanted() else { return };
        let busy = self.constants.packet.saturating_mul(flow.free);
        flow.cursor = wanted + 1;
        flow.unused.push_back(DataTag::of_token(wanted));
        self.under_way += 1;
        flow.last = now;
        let token = Instruction::Token {
            wanted: Some(wanted * flow.mss),
            lifetime: self.constants.lifetime.saturating_add(busy),
            priority: None,
        };
        send(flow.flow, token);
        self.next_token = now.saturating_add(self.constants.packet);
        self.settle(place);
    }

    /// A flow has waited for long enough: its tokens are gone, and it is given new ones from the first missing packet
    /// on.
    fn start_over(&mut self, place: usize, now: Time) {
        let flow = &mut self.flows[place];
        self.under_way -= flow.under_way();
        flow.unused.clear();
        flow.cursor = 0;
        flow.free = 0;
        flow.last = now;
    }

    fn remove(&mut self, handle: u32) {
        let Some(place) = self.place(handle) else { return };
        let before = self.flows[place].ready.take();
        self.line_up(handle, before, None);
        self.under_way -= self.flows[place].under_way();
        self.flows[place].arrived = Arrived::default();
        self.flows[place].unused = VecDeque::new();
        self.flows.free(handle, place);
        // Timers of flows that are gone go with the next one that is not.
        while self.timers.peek().is_some_and(|Reverse((_, flow))| self.place(*flow).is_none()) {
            self.timers.pop();
        }
    }
}

impl ReceiverScheduler for Receiver {
    type Message = Instruction;
    type Signal = Rts;

    fn on_flow(&mut self, new: &NewFlow, _send: &mut dyn FnMut(u32, Instruction)) {
        let mss = u64::from(new.mss.max(1));
        let free = self.constants.free_packets(new.bytes, mss, new.unscheduled.div_ceil(mss));
        let flow = Flow {
            flow: new.flow,
            packets: new.bytes.div_ceil(mss),
            mss,
            arrived: Arrived::default(),
            free,
            cursor: free,
            unused: VecDeque::new(),
            last: new.now,
            ready: None,
            queued: false,
            timed: false,
        };
        self.under_way += free;
        let place = self.flows.insert(new.flow, flow);
        self.settle(place);
    }

    fn on_tag(&mut self, _now: Time, flow: u32, token: DataTag) {
        let Some(place) = self.place(flow) else { return };
        let unused = &mut self.flows[place].unused;
        // Of several tokens for one packet the first is taken, as the tag names the packet only.
        if let Some(index) = unused.iter().position(|other| *other == token) {
            unused.drain(..=index);
            self.under_way -= index as u64 + 1;
        }
    }

    fn on_data(&mut self, arrival: &Arrival, _send: &mut dyn FnMut(u32, Instruction)) {
        let Some(place) = self.place(arrival.flow) else { return };
        let flow = &mut self.flows[place];
        if arrival.bytes > 0 && flow.arrived.insert(arrival.position / flow.mss) {
            self.under_way -= flow.free.min(1);
            flow.free = flow.free.saturating_sub(1);
        }
        flow.last = flow.last.max(arrival.now);
        self.settle(place);
    }

    fn on_end(&mut self, _now: Time, flow: u32, _end: End, _send: &mut dyn FnMut(u32, Instruction)) {
        self.remove(flow);
    }

    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        while let Some(Reverse((time, handle))) = self.timers.peek().copied()
            && time <= now
        {
            self.timers.pop();
            let Some(place) = self.place(handle) else { continue };
            self.flows[place].timed = false;
            if self.flows[place].ready.is_none() && self.flows[place].wake(&self.constants, self.under_way) <= now {
                self.start_over(place, now);
            }
            self.settle(place);
        }
        if self.next_token <= now {
            self.give_token(now, send);
        }
    }

    fn next_timer(&self) -> Time {
        let wake = self.timers.peek().map_or(Time::MAX, |Reverse((time, _))| *time);
        if self.ready > 0 { wake.min(self.next_token) } else { wake }
    }

    fn uses_tokens(&self) -> bool {
        true
    }

    fn priorities(&self) -> u8 {
        LONG + 1
    }
}
