//! Underlay: packets that are held at the sender, between their flow and the NIC. [`incast_cc::underlay`] decides for
//! how long.

use crate::{
    application::FlowSpec,
    engine::table::FlowTable,
    packet::Packet,
    settings::{Class, Settings},
};
use incast_cc::{
    registry::Underlay,
    underlay::{Head, Scope},
};
use incast_units::{Rate, Time};
use std::collections::VecDeque;

/// All stages of a host.
#[derive(Debug, Default)]
pub struct Stages {
    list: Vec<Stage>,
    free: Vec<u32>,
    /// Those that flows share, by destination and the first class of those that share them.
    shared: FlowTable,
}

impl Stages {
    /// The stage of a flow that starts now at a host, with a link of this rate; `None` where nothing is held.
    pub fn of(&mut self, settings: &Settings, rate: Rate, (node, flow): (u32, &FlowSpec), now: Time) -> Option<u32> {
        let (class, destination) = (&settings.classes[usize::from(flow.class)], flow.destination);
        let index = class.shares_stages_of;
        let shares = class.arrangement?.scope == Scope::Destination;
        if let (true, Some(known)) = (shares, self.shared.find(destination, index.into())) {
            return Some(known);
        }
        let path = incast_cc::Path { rate, ..class.path };
        let known = settings.peers.base_delays.as_ref();
        let longer = known.map_or(Time::ZERO, |delays| delays.longer(&path, node, destination));
        let stage = Stage::new(class.underlay.start(&path, longer, now)?);
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

    /// The stage that the flows of a class to a destination share.
    pub fn shared(&self, class: &Class, destination: u32) -> Option<u32> {
        self.shared.find(destination, class.shares_stages_of.into())
    }

    /// The flow in a slot is gone: drops its packets, and its stage if that was not shared.
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
    /// Packets that were held and may still be acknowledged: when they left the stage, and when they had been handed
    /// over. Both rise.
    gone: VecDeque<(Time, Time)>,
}

/// Packets that were held, beyond those in flight, whose times are remembered.
const REMEMBERED: usize = 64;

impl Stage {
    fn new(decision: Underlay) -> Self {
        Self { decision, queue: VecDeque::new(), gone: VecDeque::new() }
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
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

    /// The first packet leaves the stage; `in_flight` others of its flow are held or in flight.
    pub fn pop(&mut self, now: Time, in_flight: u32, gap: u32) -> Option<Packet> {
        let head = self.head(gap)?;
        let (mut packet, _) = self.queue.pop_front()?;
        packet.data_mut().set_sent_again(now);
        self.decision.on_release(now, &head);
        while self.gone.len() >= in_flight as usize + REMEMBERED {
            self.gone.pop_front();
        }
        if head.queued < now {
            self.gone.push_back((now, head.queued));
        }
        Some(packet)
    }

    /// When a packet that left the stage at `sent` had been handed over.
    pub fn handed_over(&self, sent: Time) -> Time {
        let place = self.gone.partition_point(|(went, _)| *went < sent);
        self.gone.get(place).filter(|(went, _)| *went == sent).map_or(sent, |(_, queued)| *queued)
    }

    /// The one-way delay of a packet that left the stage at `sent`.
    pub fn on_report(&mut self, now: Time, sent: Time, one_way_delay: i64) {
        self.decision.on_report(now, sent, one_way_delay);
    }
}

/// A flow's packets in a stage.
#[derive(Debug)]
pub struct Held {
    /// The stage, in those of the host.
    pub stage: u32,
    /// Packets of the flow that are held.
    pub packets: u32,
    /// Since when packets are held that may not go.
    since: Option<Time>,
    /// For how long packets were held before that.
    before: Time,
}

impl Held {
    /// A flow of which nothing is held yet.
    pub fn new(stage: u32) -> Self {
        Self { stage, packets: 0, since: None, before: Time::ZERO }
    }

    /// For how long packets of the flow were held, until `now`.
    pub fn time(&self, now: Time) -> Time {
        self.before + self.since.map_or(Time::ZERO, |since| now.saturating_sub(since))
    }

    /// Notes that packets of the flow are held from `now` on, or are not.
    pub fn note(&mut self, now: Time, is_held: bool) {
        if is_held {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.before += now - since;
        }
    }
}
