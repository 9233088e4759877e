//! Underlay: at the sender, packets that are held between their flow and the NIC; at the receiver, reports of how long data
//! took one way. Flows know nothing of it, and what it decides is up to [`incast_cc::underlay`].

use super::{Host, table::FlowTable};
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

/// What decides about the stages of a host.
#[derive(Debug, Default)]
pub struct Decisions {
    list: Vec<Underlay>,
    free: Vec<u32>,
    /// Those that flows share, by destination and class.
    shared: FlowTable,
}

impl Decisions {
    /// What decides about a flow that starts now at a host of this rate; `None` where nothing is held.
    pub fn of(&mut self, class: &Class, index: u8, rate: Rate, destination: u32, now: Time) -> Option<u32> {
        let shares = class.arrangement?.scope == Scope::Destination;
        if let (true, Some(known)) = (shares, self.shared.find(destination, index.into())) {
            return Some(known);
        }
        let path = incast_cc::Path { rate, ..class.path };
        let decision = class.underlay.start(&path, now)?;
        let place = match self.free.pop() {
            Some(place) => {
                self.list[place as usize] = decision;
                place
            }
            None => {
                self.list.push(decision);
                self.list.len() as u32 - 1
            }
        };
        if shares {
            self.shared.set(destination, index.into(), place);
        }
        Some(place)
    }

    /// How long a packet took that went at `sent`.
    pub fn on_report(&mut self, decision: u32, now: Time, sent: Time, one_way_delay: i64) {
        self.list[decision as usize].on_report(now, sent, one_way_delay);
    }

    /// The flow is gone; what it shared with others stays.
    pub fn forget(&mut self, class: &Class, decision: u32) {
        if class.arrangement.is_some_and(|arrangement| arrangement.scope == Scope::Flow) {
            self.free.push(decision);
        }
    }
}

/// The packets of one flow that are held.
#[derive(Debug)]
pub struct Stage {
    /// Its place in the decisions of the host.
    pub decision: u32,
    /// Packets and when they were handed over, in order.
    queue: VecDeque<(Packet, Time)>,
    /// Of packets that may still be heard of: when they went, and when they had been handed over. Both rise.
    gone: VecDeque<(Time, Time)>,
    /// Since when the first packet may not go.
    held_since: Option<Time>,
    /// For how long that was so before.
    held: Time,
    gap: u32,
}

/// Packets beyond those in flight of which it is known when they had been handed over.
const REMEMBERED: usize = 64;

impl Stage {
    /// An empty one; `gap` bytes on the link belong to no frame.
    pub fn new(decision: u32, gap: u32) -> Self {
        Self {
            decision,
            queue: VecDeque::new(),
            gone: VecDeque::new(),
            held_since: None,
            held: Time::ZERO,
            gap,
        }
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Time in which it had a packet that was not let go, until `now`.
    pub fn held(&self, now: Time) -> Time {
        self.held + self.held_since.map_or(Time::ZERO, |since| now.saturating_sub(since))
    }

    /// Takes a packet.
    pub fn push(&mut self, now: Time, packet: Packet) {
        self.queue.push_back((packet, now));
    }

    /// The first packet.
    pub fn front(&self) -> Option<&Packet> {
        self.queue.front().map(|(packet, _)| packet)
    }

    fn head(&self) -> Option<Head> {
        let (packet, queued) = self.queue.front()?;
        Some(Head { queued: *queued, wire: u32::from(packet.wire) + self.gap })
    }

    /// When the first packet may go; [`Time::MAX`] without one.
    pub fn release(&mut self, now: Time, decisions: &mut Decisions) -> Time {
        let time = match self.head() {
            Some(head) => decisions.list[self.decision as usize].release(now, &head),
            None => Time::MAX,
        };
        if time > now && !self.queue.is_empty() {
            self.held_since.get_or_insert(now);
        } else if let Some(since) = self.held_since.take() {
            self.held += now - since;
        }
        time
    }

    /// Nothing is held, and a packet with a frame of so many bytes need not be, either.
    pub fn passes(&mut self, now: Time, wire: u32, decisions: &mut Decisions) -> bool {
        let head = Head { queued: now, wire: wire + self.gap };
        decisions.list[self.decision as usize].release(now, &head) <= now
    }

    /// A packet passes.
    pub fn pass(&mut self, now: Time, packet: Packet, in_flight: u32, decisions: &mut Decisions) -> Packet {
        let head = Head { queued: now, wire: u32::from(packet.wire) + self.gap };
        self.note(now, &head, in_flight, decisions);
        packet
    }

    /// A packet goes.
    fn note(&mut self, now: Time, head: &Head, in_flight: u32, decisions: &mut Decisions) {
        decisions.list[self.decision as usize].on_release(now, head);
        while self.gone.len() >= in_flight as usize + REMEMBERED {
            self.gone.pop_front();
        }
        self.gone.push_back((now, head.queued));
    }

    /// The first packet goes; `in_flight` others of its flow are held or on their way.
    pub fn pop(&mut self, now: Time, in_flight: u32, decisions: &mut Decisions) -> Option<Packet> {
        let head = self.head()?;
        let (mut packet, _) = self.queue.pop_front()?;
        packet.restamp(now);
        self.note(now, &head, in_flight, decisions);
        Some(packet)
    }

    /// When a packet that went at `sent` had been handed over.
    pub fn handed_over(&self, sent: Time) -> Time {
        let place = self.gone.partition_point(|(went, _)| *went < sent);
        self.gone.get(place).filter(|(went, _)| *went == sent).map_or(sent, |(_, queued)| *queued)
    }
}

impl Host<'_> {
    /// How far this host's clock is ahead at `time`, in picoseconds.
    #[inline]
    pub(super) fn clock_error(&self, time: Time) -> i64 {
        self.clock.as_ref().map_or(0, |clock| clock.error(time))
    }

    /// Receiver: from when data was sent, by the simulation's time, until this host's clock showed that it arrived, in
    /// nanoseconds. Its sender knows how wrong its own clock was.
    #[inline]
    pub(super) fn delay_of(&self, sent: Time, arrived: Time) -> i32 {
        let true_delay = arrived.saturating_sub(sent).ps() as i64;
        let ns = (true_delay + self.clock_error(arrived)).div_euclid(1000);
        ns.clamp(i32::MIN.into(), i32::MAX.into()) as i32
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

    /// Sender: a report arrived. Where flows share a decision, that of one which is gone counts, too.
    #[inline(never)]
    pub(super) fn on_report(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        let sent = packet.echo(now);
        let delay = i64::from(packet.delay_ns) * 1000 - self.clock_error(sent);
        let tenant = self.flows.get(packet.slot as usize).and_then(Option::as_ref);
        let flow = tenant.filter(|flow| flow.sequence == packet.sequence);
        let of_flow = flow.and_then(|flow| flow.stage.as_ref()).map(|stage| stage.decision);
        let shared = || self.decisions.shared.find(packet.source, packet.class.into());
        let Some(decision) = of_flow.or_else(shared) else { return };
        self.decisions.on_report(decision, now, sent, delay);
        if of_flow.is_some() {
            self.offer(packet.slot, context);
            self.pump(context);
        }
    }
}
