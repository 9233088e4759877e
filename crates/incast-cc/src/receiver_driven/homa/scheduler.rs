//! The receiver's half: which messages get grants, at which priority, and which bytes are requested again.

use super::{Constants, Fill, Resends, Signal, Srpt};
use crate::{
    message::{DataTag, Instruction},
    receiver_driven::{arrived::Arrived, slots::Slots},
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::Time;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    sync::Arc,
};

/// A message in progress.
#[derive(Clone, Debug)]
struct Message {
    flow: u32,
    source: u32,
    bytes: u64,
    mss: u64,
    arrived: Arrived,
    /// What its sender sends without a grant: as the first packet of data has it, before that what is assumed.
    unscheduled: u64,
    /// Unscheduled or granted: it is expected.
    granted: u64,
    /// Priority of its last grant.
    level: u8,
    /// A RESEND was sent for it.
    requested: bool,
    /// If nothing arrives until then, and until what of other messages goes before it has had its time, a RESEND is
    /// sent.
    deadline: Time,
    /// Packets of better priorities that had arrived when the deadline was set: [`Receiver::arrived_above`].
    above: u64,
    /// Nothing arrived until then: what was to come may be lost, and others do not wait for it.
    overdue: bool,
    /// It has an entry among the timers.
    timed: bool,
}

impl Message {
    fn received(&self) -> u64 {
        (self.arrived.count() * self.mss).min(self.bytes)
    }

    fn remaining(&self) -> u64 {
        self.bytes - self.received()
    }

    fn wants_grants(&self) -> bool {
        self.granted < self.bytes
    }

    /// Where it stands among those that need grants: the bytes that are left of it, as `srpt` counts them.
    fn rank(&self, srpt: Srpt) -> Option<u64> {
        let left = match srpt {
            Srpt::Arrived => self.remaining(),
            Srpt::Granted => self.bytes - self.granted,
        };
        self.wants_grants().then_some(left)
    }

    /// Bytes that are to come.
    fn expected(&self) -> u64 {
        self.granted.saturating_sub(self.received())
    }

    fn is_waited_for(&self) -> bool {
        self.expected() > 0
    }

    /// Bytes that others wait for.
    fn before_others(&self) -> u64 {
        if self.overdue { 0 } else { self.expected() }
    }
}

/// The messages to one host.
#[derive(Clone, Debug)]
pub struct Receiver {
    constants: Arc<Constants>,
    messages: Slots<Message>,
    /// Messages that are not granted in full: sender, bytes left, flow.
    ungranted: BTreeSet<(u32, u64, u32)>,
    /// The shortest of each sender: bytes left, flow.
    shortest: BTreeSet<(u64, u32)>,
    /// No earlier than this a message's deadline can have come; one entry for each message that is waited for.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    /// Scratch: the messages that are active.
    active: Vec<u32>,
    /// Scratch: messages whose deadlines have passed.
    late: Vec<u32>,
    /// Bytes that are to come, of all messages that are not overdue.
    expected: u64,
    /// Packets that have arrived at each priority. Unscheduled ones count as of priority 0.
    arrivals: Vec<u64>,
}

impl Receiver {
    /// Without messages.
    pub fn new(constants: Arc<Constants>) -> Self {
        let arrivals = vec![0; usize::from(constants.lowest()) + 1];
        Self {
            constants,
            messages: Slots::new(),
            ungranted: BTreeSet::new(),
            shortest: BTreeSet::new(),
            timers: BinaryHeap::new(),
            active: Vec::new(),
            late: Vec::new(),
            expected: 0,
            arrivals,
        }
    }

    fn place(&self, flow: u32) -> Option<usize> {
        self.messages.place(flow)
    }

    /// The sender's shortest message among those that need grants.
    fn shortest_of(&self, source: u32) -> Option<(u64, u32)> {
        let mut own = self.ungranted.range((source, 0, 0)..=(source, u64::MAX, u32::MAX));
        own.next().map(|(_, remaining, flow)| (*remaining, *flow))
    }

    /// A message joins those that need grants, leaves them, or has fewer bytes left than before.
    fn rank(&mut self, source: u32, flow: u32, before: Option<u64>, now: Option<u64>) {
        let old = self.shortest_of(source);
        if let Some(remaining) = before {
            self.ungranted.remove(&(source, remaining, flow));
        }
        if let Some(remaining) = now {
            self.ungranted.insert((source, remaining, flow));
        }
        let new = self.shortest_of(source);
        if old != new {
            old.map(|old| self.shortest.remove(&old));
            new.map(|new| self.shortest.insert(new));
        }
    }

    /// Priority of the active message of this rank, the shortest being 0, among `count`. With more messages than
    /// priorities the longest ones share the lowest.
    fn level(&self, rank: usize, count: usize) -> u8 {
        let levels = self.constants.scheduled_levels() as usize;
        let used = match self.constants.parameters.sched_prio_fill {
            Fill::Low => count.min(levels),
            Fill::High => levels,
        };
        self.constants.lowest() - (used - 1 - rank.min(used - 1)) as u8
    }

    /// Grants each active message what keeps RTTbytes on their way. Those that are granted in full make room for
    /// others.
    fn grant(&mut self, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        loop {
            let most = usize::try_from(self.constants.parameters.overcommitment).unwrap_or(usize::MAX);
            let mut active = std::mem::take(&mut self.active);
            active.clear();
            active.extend(self.shortest.iter().take(most).map(|(_, flow)| *flow));
            let mut again = false;
            for (rank, flow) in active.iter().enumerate() {
                let level = self.level(rank, active.len());
                again |= self.grant_one(now, *flow, level, send);
            }
            self.active = active;
            if !again {
                return;
            }
        }
    }

    /// Grants an active message; true if it is granted in full by that.
    fn grant_one(&mut self, now: Time, flow: u32, level: u8, send: &mut dyn FnMut(u32, Instruction)) -> bool {
        let Some(place) = self.place(flow) else { return false };
        let ahead = self.constants.ahead;
        let message = &self.messages[place];
        let position = message.received().saturating_add(ahead).min(message.bytes);
        if position <= message.granted {
            return false;
        }
        self.change(place, |message| {
            (message.granted, message.level) = (position, level);
        });
        self.wait(place, now, self.constants.parameters.resend_timeout.time());
        send(flow, Instruction::Credit { position, priority: Some(level) });
        self.watch(place, now);
        !self.messages[place].wants_grants()
    }

    /// Packets of better priorities than that of a message's last grant that have arrived. They go before its own. What
    /// was granted before at a worse priority, and was overtaken since, is not waited for: asking for it again at the
    /// better one ends the message earlier.
    fn arrived_above(&self, place: usize) -> u64 {
        let message = &self.messages[place];
        // Unscheduled packets go before all others.
        let level = if message.granted > message.unscheduled { message.level } else { 0 };
        self.arrivals[..usize::from(level)].iter().sum()
    }

    /// A message is waited for afresh.
    fn wait(&mut self, place: usize, now: Time, timeout: Time) {
        let above = self.arrived_above(place);
        self.change(place, |message| {
            message.deadline = now.saturating_add(timeout);
            message.above = above;
            message.overdue = false;
        });
    }

    /// A message's deadline, the time of what went before it since then added.
    fn deadline(&self, place: usize) -> Time {
        let message = &self.messages[place];
        let above = self.arrived_above(place).saturating_sub(message.above);
        message.deadline.saturating_add(self.constants.packet.saturating_mul(above))
    }

    /// Sees to it that a message that is waited for has a timer.
    fn watch(&mut self, place: usize, now: Time) {
        let deadline = self.deadline(place);
        let message = &mut self.messages[place];
        if message.is_waited_for() && !std::mem::replace(&mut message.timed, true) {
            let (flow, mut time) = (message.flow, deadline);
            if message.overdue {
                // What it waits for may turn out to be lost as well.
                let timeout = self.constants.parameters.resend_timeout.time();
                time = self.due(place).min(now.saturating_add(timeout));
            }
            self.timers.push(Reverse((time, flow)));
        }
    }

    /// When a message is asked for again, should nothing arrive. Packets of others may stand before its own.
    fn due(&self, place: usize) -> Time {
        let message = &self.messages[place];
        let others = self.expected.saturating_sub(message.before_others()) / message.mss;
        self.deadline(place).saturating_add(self.constants.packet.saturating_mul(others))
    }

    /// Changes a message, what is to come with it, and its place among those that need grants.
    fn change(&mut self, place: usize, change: impl FnOnce(&mut Message)) {
        let srpt = self.constants.parameters.srpt;
        let message = &mut self.messages[place];
        let before = message.rank(srpt);
        self.expected = self.expected.saturating_sub(message.before_others());
        change(message);
        self.expected += message.before_others();
        let (source, flow, now) = (message.source, message.flow, message.rank(srpt));
        if before != now {
            self.rank(source, flow, before, now);
        }
    }

    /// RESEND: what is to come and has not. The grant that allowed it may have been lost as well.
    fn request_again(&mut self, place: usize, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        self.messages[place].requested = true;
        self.wait(place, now, self.constants.parameters.resend_interval.time());
        let (parameters, message) = (&self.constants.parameters, &self.messages[place]);
        let (flow, priority) = (message.flow, Some(message.level));
        if message.granted > message.unscheduled {
            send(flow, Instruction::Credit { position: message.granted, priority });
        }
        let end = message.granted.div_ceil(message.mss);
        let mut from = 0;
        while let Some((first, after)) = message.arrived.next_gap(from, end) {
            let (position, bytes) = (first * message.mss, (after - first) * message.mss);
            send(flow, Instruction::Resend { position, bytes, priority });
            if parameters.resends == Resends::FirstRange {
                return;
            }
            from = after;
        }
    }

    fn remove(&mut self, flow: u32) {
        let Some(place) = self.place(flow) else { return };
        // Nothing of it is to come, and it needs no grant.
        self.change(place, |message| message.granted = message.bytes);
        self.messages.free(flow, place);
        let message = &mut self.messages[place];
        self.expected = self.expected.saturating_sub(message.before_others());
        message.arrived = Arrived::default();
        // Timers of messages that are gone go with the next one that is not.
        while self.timers.peek().is_some_and(|Reverse((_, flow))| self.place(*flow).is_none()) {
            self.timers.pop();
        }
    }

    #[cfg(test)]
    pub(super) fn granted_and_received(&self, flow: u32) -> Option<(u64, u64)> {
        self.place(flow).map(|place| (self.messages[place].granted, self.messages[place].received()))
    }
}

impl ReceiverScheduler for Receiver {
    type Message = Instruction;
    type Signal = Signal;

    fn on_flow(&mut self, new: &NewFlow, _send: &mut dyn FnMut(u32, Instruction)) {
        let unscheduled = new.bytes.min(new.unscheduled);
        let message = Message {
            flow: new.flow,
            source: new.source,
            bytes: new.bytes,
            mss: u64::from(new.mss.max(1)),
            arrived: Arrived::default(),
            unscheduled,
            granted: unscheduled,
            level: self.constants.lowest(),
            requested: false,
            deadline: Time::ZERO,
            above: 0,
            overdue: false,
            timed: false,
        };
        let rank = message.rank(self.constants.parameters.srpt);
        self.expected += message.before_others();
        let place = self.messages.insert(new.flow, message);
        self.rank(new.source, new.flow, None, rank);
        self.wait(place, new.now, self.constants.parameters.resend_timeout.time());
        self.watch(place, new.now);
    }

    fn on_signal(&mut self, now: Time, flow: u32, signal: Signal, send: &mut dyn FnMut(u32, Instruction)) {
        let Some(place) = self.place(flow) else { return };
        let message = &self.messages[place];
        match signal {
            Signal::Busy => self.wait(place, now, self.constants.parameters.resend_timeout.time()),
            // All unscheduled data is lost, as nothing of it came in a timeout of the sender, unless others' stands before
            // it.
            Signal::Request if message.received() == 0 && !message.requested => {
                let timeout = self.constants.parameters.resend_timeout.time();
                if self.due(place).saturating_sub(timeout) <= now {
                    self.request_again(place, now, send);
                }
            }
            Signal::Request => {}
        }
    }

    /// The number of the message's unscheduled packets.
    fn on_tag(&mut self, time: Time, flow: u32, packets: DataTag) {
        let Some(place) = self.place(flow) else { return };
        let message = &mut self.messages[place];
        let unscheduled = (u64::from(packets.get()) * message.mss).min(message.bytes);
        if unscheduled == message.unscheduled {
            return;
        }
        // What was granted stays so. What was assumed and is not sent unscheduled is to be granted.
        let is_granted = message.granted > message.unscheduled;
        self.change(place, |message| {
            message.unscheduled = unscheduled;
            message.granted = if is_granted { message.granted.max(unscheduled) } else { unscheduled };
        });
        self.watch(place, time);
    }

    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Instruction)) {
        let Some(place) = self.place(arrival.flow) else { return };
        let message = &self.messages[place];
        let level = if arrival.position < message.unscheduled { 0 } else { message.level };
        self.arrivals[usize::from(level)] += 1;
        if arrival.bytes > 0 {
            self.change(place, |message| {
                message.arrived.insert(arrival.position / message.mss);
            });
        }
        self.wait(place, arrival.now, self.constants.parameters.resend_timeout.time());
        self.grant(arrival.now, send);
    }

    fn on_end(&mut self, now: Time, flow: u32, _end: End, send: &mut dyn FnMut(u32, Instruction)) {
        self.remove(flow);
        self.grant(now, send);
    }

    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        let mut late = std::mem::take(&mut self.late);
        while let Some(Reverse((time, flow))) = self.timers.peek().copied()
            && time <= now
        {
            self.timers.pop();
            let Some(place) = self.place(flow) else { continue };
            self.messages[place].timed = false;
            if self.deadline(place) > now {
                self.watch(place, now);
            } else if self.messages[place].is_waited_for() {
                self.change(place, |message| message.overdue = true);
                late.push(flow);
            }
        }
        // Only now is it known which of those that are late wait for others.
        for flow in late.drain(..) {
            let Some(place) = self.place(flow) else { continue };
            if self.due(place) <= now {
                self.request_again(place, now, send);
            }
            self.watch(place, now);
        }
        self.late = late;
    }

    fn next_timer(&self) -> Time {
        self.timers.peek().map_or(Time::MAX, |Reverse((time, _))| *time)
    }

    fn priorities(&self) -> u8 {
        self.constants.lowest() + 1
    }
}
