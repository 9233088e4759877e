//! Underlay: at the sender, packets that are held between their flow and the NIC; at the receiver, reports of how long data
//! took one way. Flows know nothing of it, and what it decides is up to [`incast_cc::underlay`].

use super::{Host, clock::Clock, table::FlowTable};
use crate::{
    fabric::{
        node::NodeContext,
        packet::{Kind, Packet},
    },
    settings::Class,
};
use incast_cc::underlay::{Head, Scope, Underlay};
use incast_units::{Rate, Time};
use std::collections::VecDeque;

/// All stages of a host.
#[derive(Debug, Default)]
pub struct Stages {
    list: Vec<Stage>,
    free: Vec<u32>,
    /// Those that flows share, by destination and class.
    shared: FlowTable,
}

impl Stages {
    /// The stage of a flow that starts now at a host of this rate; `None` where nothing is held.
    pub fn of(&mut self, class: &Class, index: u8, rate: Rate, destination: u32, now: Time) -> Option<u32> {
        let shares = class.arrangement?.scope == Scope::Destination;
        if let (true, Some(known)) = (shares, self.shared.find(destination, index.into())) {
            return Some(known);
        }
        let path = incast_cc::Path { rate, ..class.path };
        let stage = Stage::new(class.underlay.start(&path, now)?);
        let place = match self.free.pop() {
            Some(place) => {
                self.list[place as usize] = stage;
                place
            }
            None => {
                self.list.push(stage);
                self.list.len() as u32 - 1
            }
        };
        if shares {
            self.shared.set(destination, index.into(), place);
        }
        Some(place)
    }

    /// A stage.
    pub fn at(&mut self, place: u32) -> &mut Stage {
        &mut self.list[place as usize]
    }

    /// The flow in a slot is gone, and so is what is held of it; what it shared with others stays.
    pub fn forget(&mut self, class: &Class, place: u32, slot: u32) {
        self.at(place).queue.retain(|(packet, _)| packet.slot != slot);
        if class.arrangement.is_some_and(|arrangement| arrangement.scope == Scope::Flow) {
            self.free.push(place);
        }
    }
}

/// Packets for which one decision is made, of one flow or of several, in the order in which they were handed over.
#[derive(Debug)]
pub struct Stage {
    decision: Underlay,
    /// Packets and when they were handed over.
    queue: VecDeque<(Packet, Time)>,
    /// Of packets that were held and may still be heard of: when they went, and when they had been handed over. Both rise.
    gone: VecDeque<(Time, Time)>,
}

/// Packets that were held, beyond those in flight, of which it is known when they had been handed over.
const REMEMBERED: usize = 64;

impl Stage {
    fn new(decision: Underlay) -> Self {
        Self { decision, queue: VecDeque::new(), gone: VecDeque::new() }
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The packet at some position of the flow in a slot is held.
    pub fn holds(&self, slot: u32, position: u32) -> bool {
        self.queue.iter().any(|(packet, _)| packet.slot == slot && packet.position == position)
    }

    /// Takes a packet.
    pub fn push(&mut self, now: Time, packet: Packet) {
        self.queue.push_back((packet, now));
    }

    /// The first packet.
    pub fn first(&self) -> Option<&Packet> {
        self.queue.front().map(|(packet, _)| packet)
    }

    /// The first packet of the flow in a slot.
    pub fn first_of(&self, slot: u32) -> Option<&Packet> {
        self.queue.iter().map(|(packet, _)| packet).find(|packet| packet.slot == slot)
    }

    fn head(&self, gap: u32) -> Option<Head> {
        let (packet, queued) = self.queue.front()?;
        Some(Head { queued: *queued, wire: u32::from(packet.wire) + gap })
    }

    /// When the first packet may go; [`Time::MAX`] without one. `gap` bytes on the link belong to no frame.
    pub fn release(&mut self, now: Time, gap: u32) -> Time {
        self.head(gap).map_or(Time::MAX, |head| self.decision.release(now, &head))
    }

    /// Nothing is held, and a packet with so many bytes on the link need not be, either.
    pub fn passes(&mut self, now: Time, wire: u32) -> bool {
        self.decision.release(now, &Head { queued: now, wire }) <= now
    }

    /// A packet with so many bytes on the link passes.
    pub fn pass(&mut self, now: Time, wire: u32) {
        self.decision.on_release(now, &Head { queued: now, wire });
    }

    /// The first packet goes; `in_flight` others of its flow are held or on their way.
    pub fn pop(&mut self, now: Time, in_flight: u32, gap: u32) -> Option<Packet> {
        let head = self.head(gap)?;
        let (mut packet, _) = self.queue.pop_front()?;
        packet.restamp(now);
        self.decision.on_release(now, &head);
        while self.gone.len() >= in_flight as usize + REMEMBERED {
            self.gone.pop_front();
        }
        if head.queued < now {
            self.gone.push_back((now, head.queued));
        }
        Some(packet)
    }

    /// When a packet that went at `sent` had been handed over.
    pub fn handed_over(&self, sent: Time) -> Time {
        let place = self.gone.partition_point(|(went, _)| *went < sent);
        self.gone.get(place).filter(|(went, _)| *went == sent).map_or(sent, |(_, queued)| *queued)
    }

    /// How long a packet took that went at `sent`.
    pub fn on_report(&mut self, now: Time, sent: Time, one_way_delay: i64) {
        self.decision.on_report(now, sent, one_way_delay);
    }
}

/// A flow's part of a stage.
#[derive(Debug)]
pub struct Waiting {
    /// The stage, in those of the host.
    pub stage: u32,
    /// Packets of the flow that are held.
    pub packets: u32,
    /// Since when some are that may not go.
    since: Option<Time>,
    /// For how long that was so before.
    before: Time,
}

impl Waiting {
    /// Nothing of the flow is held yet.
    pub fn new(stage: u32) -> Self {
        Self { stage, packets: 0, since: None, before: Time::ZERO }
    }

    /// Time in which packets of the flow were not let go, until `now`.
    pub fn held(&self, now: Time) -> Time {
        self.before + self.since.map_or(Time::ZERO, |since| now.saturating_sub(since))
    }

    /// Whether packets of the flow may not go, from `now` on.
    pub fn note(&mut self, now: Time, is_held: bool) {
        if is_held {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.before += now - since;
        }
    }
}

/// How far a host's clock is ahead at `time`, in picoseconds.
#[inline]
pub fn clock_error(clock: Option<&Clock>, time: Time) -> i64 {
    clock.map_or(0, |clock| clock.error(time))
}

impl Host<'_> {
    /// Receiver: from when data was sent, by the simulation's time, until this host's clock showed that it arrived, in
    /// nanoseconds. Its sender knows how wrong its own clock was.
    #[inline]
    pub(super) fn delay_of(&self, sent: Time, arrived: Time) -> i32 {
        let true_delay = arrived.saturating_sub(sent).ps();
        match self.clock.as_deref() {
            None => (true_delay / 1000).min(i32::MAX as u64) as i32,
            clock => {
                let ns = (true_delay as i64 + clock_error(clock, arrived)).div_euclid(1000);
                ns.clamp(i32::MIN.into(), i32::MAX.into()) as i32
            }
        }
    }

    /// Receiver: tells the sender's underlay how long a data packet took.
    #[inline(never)]
    pub(super) fn report(&mut self, data: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        let class = &self.settings.classes[usize::from(data.class)];
        let sent = data.sent_at(now);
        let mut report = Packet::new(Kind::Report, self.node, data.source, data.sequence, data.slot);
        report.position = data.position;
        report.entropy = data.reverse_entropy();
        report.set_echo(sent, None);
        report.delay_ns = self.delay_of(sent, now);
        report.wire = class.format.control() as u16;
        report.priority = class.ack_priority;
        report.class = data.class;
        self.push_answer(report, None, context);
    }

    /// Sender: a report arrived. Where flows share a stage, that of one which is gone counts, too.
    #[inline(never)]
    pub(super) fn on_report(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        let sent = packet.echo(now);
        let delay = i64::from(packet.delay_ns) * 1000 - clock_error(self.clock.as_deref(), sent);
        let tenant = self.flows.get(packet.slot as usize).and_then(Option::as_ref);
        let flow = tenant.filter(|flow| flow.sequence == packet.sequence);
        let of_flow = flow.and_then(|flow| flow.waiting.as_ref()).map(|waiting| waiting.stage);
        let shared = || self.stages.shared.find(packet.source, packet.class.into());
        let Some(stage) = of_flow.or_else(shared) else { return };
        self.stages.at(stage).on_report(now, sent, delay);
        self.offer_first(stage, context);
        self.pump(context);
    }

    /// Sender: what may have kept the first packet of a stage is gone.
    pub(super) fn offer_first(&mut self, stage: u32, context: &mut impl NodeContext) {
        if let Some(slot) = self.stages.at(stage).first().map(|packet| packet.slot) {
            self.offer(slot, context);
        }
    }
}
