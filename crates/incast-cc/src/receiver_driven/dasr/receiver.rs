//! The receiver's half: who sends, and what each one's share is.

use super::{Active, Advertise, Allocation, Constants, Counts, Parameters, sender_tag::SenderTag, share::Share};
use crate::{
    Path,
    message::{AckTag, DataTag},
    receiver_driven::slots::Slots,
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::{Bytes, Rate, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    convert::Infallible,
    sync::Arc,
};

/// Bytes of a share that is sent apart from acknowledgements, beside the headers of data: AETH, as in an
/// acknowledgement of RoCEv2 (IBA volume 1, annex A17).
const AETH: u32 = 4;
/// Bytes of the smallest frame with preamble and gap (IEEE 802.3).
const SMALLEST: u32 = 84;
/// Messages with shares take at most one part in so many of the receiver's link.
const ADVERTISED: u64 = 10;
/// A flow counts for the time of so many of its packets at least.
const LEAST_PACKETS: f64 = 2.0;
/// Steps of the part of the link that is left to acknowledgements, and the largest part.
const ACK_STEP: f64 = 1.0 / 128.0;
const MOST_FOR_ACKS: f64 = 0.5;
const ACK_LOOKS: usize = 4;
/// A flow that is held back may take so much more than it did.
const GROWTH: f64 = 9.0 / 8.0;
/// The least rate of the iterative allocation, in parts of the link, which is also its first: EyeQ's module has 10 of
/// 10,000 Mbit/s (jvimal/eyeq, rx.c and vq.c).
const LEAST_ITERATED: f64 = 1e-3;

/// A flow in progress.
#[derive(Clone, Copy, Debug)]
struct Flow {
    handle: u32,
    party: u64,
    weight: u64,
    /// Part of the link that it can use.
    limit: f64,
    /// It counts.
    active: bool,
    /// When its last packet arrived, and for how long the link had been busy by then.
    last_arrival: Time,
    busy: Time,
    /// It has an entry among those who may fall silent.
    watched: bool,
    /// It was counted in a group.
    grouped: bool,
    advertised: Option<Share>,
}

/// Whoever has one share: a host, or a flow. Those without active flows are not kept.
#[derive(Clone, Copy, Debug, Default)]
struct Party {
    /// Active flows, and their weights together.
    flows: u32,
    weights: u64,
    /// The largest weight of them.
    weight: u64,
}

/// Flows of one incast, of which not all have come.
#[derive(Clone, Copy, Debug)]
struct Group {
    degree: u16,
    weight: u64,
    missing: u64,
    until: Time,
}

/// The next rate of the iterative allocation: `R <- R (1 + α (C - y)/C)`, with `used` = y/C, y being the rate at which
/// packets arrived since the last change. A receiver cannot see more than its link carries (EyeQ's module, rx.c, without
/// its term for marks).
pub(super) fn iterated(rate: f64, used: f64, gain: f64) -> f64 {
    (rate * (1.0 + gain * (1.0 - used))).clamp(LEAST_ITERATED, 1.0)
}

/// The flows to one host.
#[derive(Clone, Debug)]
pub struct Receiver {
    constants: Arc<Constants>,
    /// Time of a full packet, and of a message with a share, on the host's link; its rate, and what a packet has beside
    /// its payload.
    packet: Time,
    frame: Time,
    rate: Rate,
    overhead: u64,
    /// For how long the link has been busy with what arrived: all of it, and acknowledgements.
    busy: Time,
    acks: Time,
    /// Part of the link that is left to acknowledgements, and what they took from look to look, the last one first.
    for_acks: f64,
    ack_parts: [f64; ACK_LOOKS],
    looked: (Time, Time),
    flows: Slots<Flow>,
    /// By the tags of their flows.
    parties: BTreeMap<u64, Party>,
    /// Weights of all parties, and of those that are still to come.
    weights: u64,
    expected: u64,
    groups: Vec<Group>,
    /// Active flows that cannot use all they might get.
    limited: usize,
    /// Part of the link for each unit of weight, where nothing holds a flow back.
    level: f64,
    /// The rate of the iterative allocation, in parts of what is shared of the link; when it changed last, and for how
    /// long the link had been busy by then.
    iterated: f64,
    iteration: (Time, Time),
    /// The number of the epoch, and when the next one may begin.
    epoch: (u8, Time),
    /// Shares have changed since it began.
    epoch_is_due: bool,
    /// Shares may have changed since they were advertised.
    changed: bool,
    /// When they may be advertised again.
    next_advertisement: Time,
    /// No earlier than this a flow may have fallen silent; one entry for each.
    idle_deadlines: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Receiver {
    /// Without flows, on a link of the path's rate.
    pub fn new(constants: Arc<Constants>, path: &Path) -> Self {
        let frame = (path.wire_mss.saturating_sub(path.mss) + AETH).max(SMALLEST);
        Self {
            packet: path.rate.time_of(Bytes::new(path.wire_mss.into())),
            rate: path.rate,
            overhead: u64::from(path.wire_mss.saturating_sub(path.mss)),
            busy: Time::ZERO,
            acks: Time::ZERO,
            for_acks: 0.0,
            ack_parts: [0.0; ACK_LOOKS],
            looked: (Time::ZERO, Time::ZERO),
            frame: path.rate.time_of(Bytes::new(frame.into())),
            constants,
            flows: Slots::new(),
            parties: BTreeMap::new(),
            weights: 0,
            expected: 0,
            groups: Vec::new(),
            limited: 0,
            level: 1.0,
            iterated: LEAST_ITERATED,
            iteration: (Time::ZERO, Time::ZERO),
            epoch: (0, Time::ZERO),
            epoch_is_due: false,
            changed: false,
            next_advertisement: Time::ZERO,
            idle_deadlines: BinaryHeap::new(),
        }
    }

    fn parameters(&self) -> &Parameters {
        &self.constants.parameters
    }

    fn place(&self, handle: u32) -> Option<usize> {
        self.flows.place(handle)
    }

    /// Counts a flow, or counts it no longer.
    fn set_active(&mut self, place: usize, active: bool) {
        let flow = self.flows[place];
        if flow.active == active {
            return;
        }
        self.flows[place].active = active;
        let before = self.parties.get(&flow.party).copied().unwrap_or_default();
        let mut party = before;
        if active {
            party.flows += 1;
            party.weights += flow.weight;
            party.weight = party.weight.max(flow.weight);
        } else {
            party.flows -= 1;
            party.weights -= flow.weight;
            if party.flows == 0 {
                party.weight = 0;
            } else if party.weight == flow.weight && flow.weight > 1 {
                let own = self.flows.iter().filter(|other| other.active && other.party == flow.party);
                party.weight = own.map(|other| other.weight).max().unwrap_or(0);
            }
        }
        self.weights = self.weights + party.weight - before.weight;
        if party.flows == 0 {
            self.parties.remove(&flow.party);
        } else {
            self.parties.insert(flow.party, party);
        }
        if flow.limit < 1.0 {
            self.limited = if active { self.limited + 1 } else { self.limited - 1 };
        }
        if active
            && self.parameters().active == Active::Recent
            && !std::mem::replace(&mut self.flows[place].watched, true)
        {
            let deadline = self.idle_deadline(place);
            self.idle_deadlines.push(Reverse((deadline, flow.handle)));
        }
        self.settle();
    }

    /// A flow's part of the weights: its own part of its party's.
    fn weight(&self, flow: &Flow) -> f64 {
        let party = self.parties.get(&flow.party).copied().unwrap_or_default();
        (party.weight * flow.weight) as f64 / party.weights.max(1) as f64
    }

    /// Finds the level anew.
    fn settle(&mut self) {
        let level = self.find_level();
        self.epoch_is_due |= level != self.level;
        (self.changed, self.level) = (true, level);
    }

    /// Max-min: flows that cannot use their share leave the rest of it to the others (docs/blitz.md, 4).
    fn find_level(&self) -> f64 {
        let weights = (self.weights + self.expected).max(1) as f64;
        let link = 1.0 - self.for_acks;
        if self.parameters().allocation == Allocation::Iterative {
            return self.iterated;
        }
        if self.limited == 0 {
            return link / weights;
        }
        let held_back = self.flows.iter().filter(|flow| flow.active && flow.limit < 1.0);
        let mut held_back: Vec<(f64, u32, f64, f64)> = held_back
            .map(|flow| {
                let weight = self.weight(flow);
                (flow.limit / weight, flow.handle, flow.limit, weight)
            })
            .collect();
        held_back.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (mut rest, mut others) = (link, weights);
        for (level, _, limit, weight) in held_back {
            if level >= rest / others {
                break;
            }
            rest -= limit;
            others -= weight;
            if others < 1e-6 {
                // All of them are limited elsewhere: no flow can use the rest.
                return link / weights;
            }
        }
        rest / others
    }

    /// A flow's part of the link. One that is held back gets its fair part, or a little more than it uses.
    fn part(&self, flow: &Flow) -> f64 {
        let weight = self.weight(flow);
        let most = self.level * weight;
        if flow.limit < most {
            let fair = (1.0 - self.for_acks) * weight / (self.weights + self.expected).max(1) as f64;
            return fair.max(most.min(GROWTH * flow.limit));
        }
        most
    }

    /// Begins the next epoch, if shares have changed and this one has lasted long enough.
    fn begin_epoch(&mut self, now: Time) {
        let (number, until) = self.epoch;
        if self.epoch_is_due && now >= until {
            self.epoch_is_due = false;
            self.epoch = (number.wrapping_add(1), now.saturating_add(self.parameters().advertise_interval.time()));
        }
    }

    /// A share with the number of the epoch.
    fn numbered(&self, share: Share) -> Share {
        share.in_epoch(self.epoch.0, self.parameters().epoch_bits as u32)
    }

    fn share_at(&self, place: usize) -> Share {
        Share::one_in(1.0 / self.part(&self.flows[place]).max(1e-9))
    }

    /// When a flow that sends nothing more no longer counts.
    fn idle_deadline(&self, place: usize) -> Time {
        let flow = &self.flows[place];
        let part = self.part(flow).min(flow.limit).max(1e-9);
        let least = self.packet.mul_f64(LEAST_PACKETS / part);
        // While others' packets arrive, its own may stand behind them.
        let others = self.busy - flow.busy;
        flow.last_arrival.saturating_add(self.parameters().idle_after.time().max(least)).saturating_add(others)
    }

    /// Looks at what part of the link acknowledgements take, once in a while. What is left to them is the largest part of
    /// the last looks, as they come in bursts, rounded up to a step, so that shares seldom change.
    fn look_at_acks(&mut self, now: Time) {
        let (looked, acks) = self.looked;
        let span = now.saturating_sub(looked);
        if !self.parameters().count_acks || span < self.parameters().idle_after.time() {
            return;
        }
        self.ack_parts.rotate_right(1);
        self.ack_parts[0] = (self.acks - acks).as_secs_f64() / span.as_secs_f64();
        self.looked = (now, self.acks);
        let most = self.ack_parts.iter().fold(0.0, |most: f64, part| most.max(*part));
        let part = ((most / ACK_STEP).ceil() * ACK_STEP).min(MOST_FOR_ACKS);
        if part != self.for_acks {
            self.for_acks = part;
            self.settle();
        }
    }

    /// Changes the iterative rate, if a period is over.
    fn iterate(&mut self, now: Time) {
        let (last, busy) = self.iteration;
        let span = now.saturating_sub(last);
        let Parameters { allocation, iteration_period, iteration_gain, utilization, .. } = *self.parameters();
        if allocation != Allocation::Iterative || span < iteration_period.time() {
            return;
        }
        let used = (self.busy - busy).as_secs_f64() / span.as_secs_f64() / utilization;
        self.iterated = iterated(self.iterated, used, iteration_gain);
        self.iteration = (now, self.busy);
        self.settle();
    }

    /// Advertises their shares to senders, if these have changed and the interval is over. New limits of senders take
    /// effect then, too.
    fn advertise(&mut self, now: Time, send: &mut dyn FnMut(u32, Share)) {
        let advertises = self.changed && now >= self.next_advertisement;
        if advertises {
            self.settle();
        }
        self.begin_epoch(now);
        if !advertises {
            return;
        }
        self.changed = false;
        let mut advertised = 0;
        for place in 0..self.flows.len() {
            let flow = self.flows[place];
            if !flow.active || self.parameters().advertise == Advertise::Acks {
                continue;
            }
            let share = self.share_at(place);
            if flow.advertised != Some(share) {
                self.flows[place].advertised = Some(share);
                send(flow.handle, self.numbered(share));
                advertised += 1;
            }
        }
        if advertised > 0 || self.limited > 0 {
            let busy = self.frame.saturating_mul(ADVERTISED * advertised);
            self.next_advertisement = now.saturating_add(self.parameters().advertise_interval.time().max(busy));
        }
    }

    /// Those that a group is still waited for.
    fn count_expected(&mut self) {
        let expected = self.groups.iter().map(|group| group.missing * group.weight).sum();
        if expected != self.expected {
            self.expected = expected;
            self.settle();
        }
    }

    /// A flow of so many to come has come.
    fn join_group(&mut self, now: Time, weight: u64, degree: u16) {
        let same = |group: &Group| group.degree == degree && group.weight == weight && group.until > now;
        match self.groups.iter().position(same) {
            Some(index) => {
                self.groups[index].missing -= 1;
                if self.groups[index].missing == 0 {
                    self.groups.swap_remove(index);
                }
            }
            None => {
                let until = now.saturating_add(self.parameters().look_ahead_for);
                let missing = u64::from(degree) - 1;
                self.groups.push(Group { degree, weight, missing, until });
            }
        }
        self.count_expected();
    }
}

impl ReceiverScheduler for Receiver {
    type Message = Share;
    type Signal = Infallible;

    fn on_flow(&mut self, new: &NewFlow, _send: &mut dyn FnMut(u32, Share)) {
        let party = match self.parameters().count {
            Counts::Hosts => u64::from(new.source),
            Counts::Flows => u64::from(new.flow),
        };
        let flow = Flow {
            handle: new.flow,
            party,
            weight: 1,
            limit: 1.0,
            active: false,
            last_arrival: new.now,
            busy: self.busy,
            watched: false,
            grouped: false,
            advertised: None,
        };
        let place = self.flows.insert(new.flow, flow);
        self.set_active(place, true);
        self.begin_epoch(new.now);
    }

    fn on_tag(&mut self, now: Time, flow: u32, tag: DataTag) {
        let Some(place) = self.place(flow) else { return };
        match SenderTag::from_tag(tag) {
            SenderTag::Opening { weight, degree } => {
                let weight = u64::from(weight);
                if weight != self.flows[place].weight {
                    let active = self.flows[place].active;
                    self.set_active(place, false);
                    self.flows[place].weight = weight;
                    self.set_active(place, active);
                }
                if degree > 1 && !std::mem::replace(&mut self.flows[place].grouped, true) {
                    self.join_group(now, weight, degree);
                }
            }
            SenderTag::Limit(share) => {
                // What is all of the link is no limit.
                let limit = 1.0 / share.parts();
                let before = std::mem::replace(&mut self.flows[place].limit, limit);
                if limit != before {
                    if self.flows[place].active {
                        self.limited = self.limited + usize::from(limit < 1.0) - usize::from(before < 1.0);
                    }
                    (self.changed, self.epoch_is_due) = (true, true);
                }
            }
        }
    }

    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Share)) {
        let Some(place) = self.place(arrival.flow) else { return };
        self.busy += self.rate.time_of(Bytes::new(u64::from(arrival.bytes) + self.overhead));
        let flow = &mut self.flows[place];
        (flow.last_arrival, flow.busy) = (arrival.now, self.busy);
        self.set_active(place, true);
        self.look_at_acks(arrival.now);
        self.iterate(arrival.now);
        self.advertise(arrival.now, send);
    }

    fn on_ack(&mut self, _now: Time, wire: u64) {
        let time = self.rate.time_of(Bytes::new(wire));
        self.busy += time;
        self.acks += time;
    }

    fn on_end(&mut self, now: Time, flow: u32, _end: End, send: &mut dyn FnMut(u32, Share)) {
        let Some(place) = self.place(flow) else { return };
        self.set_active(place, false);
        self.flows.free(flow, place);
        // Entries of flows that are gone go with the next one that is not.
        while self.idle_deadlines.peek().is_some_and(|Reverse((_, flow))| self.place(*flow).is_none()) {
            self.idle_deadlines.pop();
        }
        self.advertise(now, send);
    }

    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Share)) {
        while let Some(Reverse((time, handle))) = self.idle_deadlines.peek().copied()
            && time <= now
        {
            self.idle_deadlines.pop();
            let Some(place) = self.place(handle) else { continue };
            self.flows[place].watched = false;
            if !self.flows[place].active {
                continue;
            }
            let deadline = self.idle_deadline(place);
            if deadline <= now {
                self.set_active(place, false);
            } else {
                self.flows[place].watched = true;
                self.idle_deadlines.push(Reverse((deadline, handle)));
            }
        }
        if self.groups.iter().any(|group| group.until <= now) {
            self.groups.retain(|group| group.until > now);
            self.count_expected();
        }
        self.advertise(now, send);
    }

    fn next_timer(&self) -> Time {
        let deadline = self.idle_deadlines.peek().map_or(Time::MAX, |Reverse((time, _))| *time);
        let group = self.groups.iter().map(|group| group.until).min().unwrap_or(Time::MAX);
        let advertises = self.changed && self.parameters().advertise == Advertise::Changes && !self.parties.is_empty();
        let advertisement = if advertises { self.next_advertisement } else { Time::MAX };
        deadline.min(group).min(advertisement)
    }

    fn ack_tag(&mut self, flow: u32) -> Option<AckTag> {
        let place = self.place(flow)?;
        // One that counts no longer is about to.
        self.set_active(place, true);
        let share = self.share_at(place);
        self.flows[place].advertised = Some(share);
        Some(self.numbered(share).tag())
    }
    fn tags_acks(&self) -> bool {
        true
    }
}
