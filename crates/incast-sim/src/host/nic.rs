//! The NIC: one link; control packets first, then flows by priority, those of one priority in round robin.

use crate::{
    fabric::{
        link::{Receiver, Transmitter},
        packet::{Kind, Packet, Telemetry},
        queue::{Pool, Queue},
    },
    flow_control::{
        credits::{End, Rules, blocks},
        pause::ReceivedPauses,
        permission::{PauseRecord, Permission},
    },
    sender::QueuePlace,
    settings::Settings,
};
use incast_cc::agent::Codepoint;
use incast_units::Time;
use std::collections::{BTreeSet, VecDeque};

/// Strict priorities of data.
const PRIORITIES: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Nic {
    /// Sending end.
    pub link: Transmitter,
    /// Receiving end.
    pub input: Receiver,
    /// What may be sent.
    pub permission: Permission,
    /// For how long not everything could be.
    pub pauses: PauseRecord,
    /// Pauses received from the switch.
    pub received: Box<ReceivedPauses>,
    /// Credits of the link, where there are some.
    pub credits: Option<Box<End>>,
    /// A departure event is pending.
    pub departure: bool,
    /// The last packet was a control packet: where they take turns, data is next.
    pub answered: bool,
    control: Queue,
    /// How many control packets wait, by priority: very many may, and none of them be allowed to go.
    waiting: [u32; PRIORITIES],
    pool: Pool,
    /// Flows with a packet to send, by priority.
    ready: [VecDeque<u32>; PRIORITIES],
    /// Flows with a packet to send of which the one with the lowest rank goes first, with the priorities of those
    /// packets. As a group they have the highest of these priorities, behind the flows of that priority in round robin.
    shortest: BTreeSet<(u64, u32, u8)>,
    /// How many of them there are, by priority.
    shortest_by: [u32; PRIORITIES],
    /// Their priorities, one bit each.
    shortest_mask: u8,
    /// Priorities with a ready flow, one bit each.
    ready_mask: u8,
}

impl Nic {
    /// A NIC with its link.
    pub fn new(settings: &Settings, link: Transmitter, input: Receiver) -> Self {
        let end = |rules: &Rules| {
            Box::new(End::new(rules.limits(link.rate(), link.delay()), rules.lanes, link.is_lossy()))
        };
        Self {
            credits: settings.credits.as_ref().map(end),
            link,
            input,
            permission: Permission::default(),
            pauses: PauseRecord::default(),
            received: Box::default(),
            departure: false,
            answered: false,
            control: Queue::default(),
            waiting: [0; PRIORITIES],
            pool: Pool::default(),
            ready: Default::default(),
            shortest: BTreeSet::new(),
            shortest_by: [0; PRIORITIES],
            shortest_mask: 0,
            ready_mask: 0,
        }
    }

    /// Something waits, whether or not it may be sent.
    #[inline]
    pub fn has_packets(&self) -> bool {
        !self.control.is_empty() || self.ready_mask != 0
    }

    /// Something waits that may be sent.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.next_control_allowed() || self.permission.allowed(self.ready_mask) != 0
    }

    #[inline]
    fn next_control_allowed(&self) -> bool {
        if self.permission.is_clear() {
            return !self.control.is_empty();
        }
        self.permission.allowed(self.waiting_priorities(|_| true)) != 0
    }

    /// When the transmission of a control packet that is ready at `now` starts, where that is known. With
    /// `undisturbed_until` in the future only the packet on the link comes before it, unless another control packet
    /// waits.
    ///
    /// Packets that start later than `ahead` are not sent beforehand: the engine would only defer them.
    #[inline]
    pub fn start_of_control(&self, now: Time, undisturbed_until: Time, ahead: Time) -> Option<Time> {
        let start = self.link.free_at().max(now);
        let is_known = self.control.is_empty() && start < undisturbed_until && self.link.is_simple();
        debug_assert!(
            !is_known || self.permission.is_clear() && self.link.is_up(),
            "something holds up the NIC"
        );
        (is_known && start <= now + ahead).then_some(start)
    }

    /// Queues a control packet.
    #[inline]
    pub fn push_control(&mut self, packet: &Packet, telemetry: Option<&Telemetry>) {
        self.waiting[usize::from(packet.priority)] += 1;
        self.pool.push(&mut self.control, packet, Codepoint::None, telemetry);
    }

    /// The next control packet that may go.
    #[inline]
    pub fn pop_control(&mut self) -> Option<Packet> {
        let packet = if self.permission.is_clear() {
            self.pool.pop(&mut self.control)
        } else {
            let permission = self.permission;
            self.pool.pop_first(&mut self.control, |packet| permission.allowed(1 << packet.priority) != 0)
        }?;
        self.waiting[usize::from(packet.priority)] -= 1;
        Some(packet)
    }

    /// Priorities of the control packets that wait, of those that are `wanted`, one bit each.
    fn waiting_priorities(&self, wanted: impl Fn(u8) -> bool) -> u8 {
        let waiting = (0u8..).zip(&self.waiting).filter(|(priority, count)| **count > 0 && wanted(*priority));
        waiting.fold(0, |mask, (priority, _)| mask | 1 << priority)
    }

    /// The first control packet whose lane has credits; those of a lane keep their order.
    pub fn next_credited(&self) -> Option<&Packet> {
        let end = self.credits.as_deref()?;
        let mut untried = self.waiting_priorities(|lane| end.may_send(lane, 1));
        let mut waiting = self.pool.packets(&self.control).map(|(packet, _)| packet);
        while untried != 0 {
            let packet = waiting.next()?;
            if untried & 1 << packet.priority != 0 && end.may_send(packet.priority, blocks(packet.wire)) {
                return Some(packet);
            }
            untried &= !(1 << packet.priority);
        }
        None
    }

    /// Takes the first control packet of a lane.
    pub fn pop_control_of(&mut self, lane: u8) -> Option<Packet> {
        let packet = self.pool.pop_first(&mut self.control, |packet| packet.priority == lane)?;
        self.waiting[usize::from(lane)] -= 1;
        Some(packet)
    }

    /// A flow of those that may send waits.
    pub fn has_ready_flow(&self) -> bool {
        self.permission.allowed(self.ready_mask) != 0
    }

    /// A flow that was taken from its queue cannot send: puts it back to the front.
    pub fn put_back(&mut self, slot: u32, place: &QueuePlace) {
        if place.by_rank {
            self.push_shortest(slot, place.rank, place.priority);
        } else {
            self.ready[usize::from(place.priority)].push_front(slot);
            self.ready_mask |= 1 << place.priority;
        }
    }

    /// A packet arrived, whose buffer is free at once: the other end of the link gets its credits back.
    pub fn count_received(&mut self, packet: &Packet) {
        if let Some(end) = self.credits.as_mut().filter(|_| packet.kind != Kind::FlowControl) {
            end.receive(packet.priority, blocks(packet.wire));
            if end.is_due(packet.priority) {
                end.plan(packet.priority);
            }
        }
    }

    /// The telemetry that a control packet which was just taken echoes.
    #[inline]
    pub fn telemetry(&self, packet: &Packet) -> Option<Telemetry> {
        self.pool.telemetry(packet)
    }

    /// A flow has a packet to send.
    #[inline]
    pub fn push_flow(&mut self, slot: u32, priority: u8) {
        self.ready[usize::from(priority)].push_back(slot);
        self.ready_mask |= 1 << priority;
    }

    /// A flow leaves its queue before it has sent.
    #[cold]
    pub fn remove(&mut self, slot: u32, place: &QueuePlace) {
        if place.by_rank {
            self.remove_shortest(slot, place.rank, place.priority);
        } else {
            self.ready[usize::from(place.priority)].retain(|other| *other != slot);
            self.update_mask(place.priority);
        }
    }

    /// A flow has a packet to send, in the queue in which the one with the lowest rank goes first.
    pub fn push_shortest(&mut self, slot: u32, rank: u64, priority: u8) {
        self.shortest.insert((rank, slot, priority));
        self.shortest_by[usize::from(priority)] += 1;
        self.shortest_mask |= 1 << priority;
        self.ready_mask |= 1 << priority;
    }

    fn remove_shortest(&mut self, slot: u32, rank: u64, priority: u8) {
        if self.shortest.remove(&(rank, slot, priority)) {
            self.shortest_by[usize::from(priority)] -= 1;
            if self.shortest_by[usize::from(priority)] == 0 {
                self.shortest_mask &= !(1 << priority);
            }
            self.update_mask(priority);
        }
    }

    /// Takes the first flow by rank whose packet may go.
    #[cold]
    #[inline(never)] // rare: kept out of the path of packets
    fn pop_shortest(&mut self) -> Option<u32> {
        let mut flows = self.shortest.iter();
        let (rank, slot, priority) =
            *flows.find(|(.., priority)| self.permission.allowed(1 << priority) != 0)?;
        self.remove_shortest(slot, rank, priority);
        Some(slot)
    }

    /// Another flow goes before this one.
    pub fn is_behind(&self, slot: u32) -> bool {
        self.shortest.first().is_some_and(|first| first.1 != slot)
    }

    /// The last flow of a line may have left.
    fn update_mask(&mut self, priority: u8) {
        if self.ready[usize::from(priority)].is_empty() {
            self.ready_mask = self.ready_mask & !(1 << priority) | self.shortest_mask;
        }
    }

    /// The next flow in round robin.
    #[inline]
    pub fn pop_flow(&mut self) -> Option<u32> {
        let allowed = self.permission.allowed(self.ready_mask);
        if allowed == 0 {
            return None;
        }
        let priority = allowed.trailing_zeros() as usize;
        let slot = self.ready[priority].pop_front();
        if self.ready[priority].is_empty() {
            return self.pop_last(slot, priority);
        }
        slot
    }

    /// The last flow of those that take turns was taken, or there was none.
    #[inline]
    fn pop_last(&mut self, slot: Option<u32>, priority: usize) -> Option<u32> {
        if slot.is_none() {
            return self.pop_shortest();
        }
        self.update_mask(priority as u8);
        slot
    }

    /// Removes all control packets.
    pub fn drain_control(&mut self) -> impl Iterator<Item = Packet> {
        self.waiting.fill(0);
        std::iter::from_fn(|| self.pool.pop(&mut self.control))
    }

    /// Frame bytes of control packets that wait.
    pub fn waiting_bytes(&self) -> u64 {
        self.control.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::Event,
        fabric::{
            config::Wire,
            node::{NodeContext, Peer},
        },
        routing::config::LoadBalancing,
        settings::{Peers, host::HostConfig},
        topology::Link,
    };
    use incast_units::Rate;

    const DELAY: Time = Time::from_ns(50);
    const SIMPLE: Link = Link { rate: Rate::from_gbps(100), delay: DELAY, loss: 0.0 };
    const INSTANT: Time = Time::from_ps(1);

    /// Takes what is sent, and keeps nothing.
    struct World(Time);

    impl NodeContext for World {
        fn now(&self) -> Time {
            self.0
        }
        fn send(&mut self, _peer: Peer, _arrival: Time, _packet: &Packet, _telemetry: Option<&Telemetry>) {}
        fn schedule(&mut self, _time: Time, _event: Event) {}
    }

    fn nic(link: &Link, wire: Wire) -> Nic {
        let settings = Settings {
            seed: 1,
            priorities: 1,
            load_balancing: LoadBalancing::Ecmp,
            pfc: None,
            credits: None,
            host: HostConfig::plain(1000),
            clocks: Vec::new(),
            peers: Peers::default(),
            path_count: None,
            wire,
            classes: Vec::new(),
            arrivals_first: false,
            base_rtt: Time::from_us(10),
            lookahead: DELAY,
            undisturbed_until: Time::MAX,
            record: false,
            rates: None,
            packets: None,
        };
        let link = Transmitter::new(link, wire, Peer { domain: 1, entity: 0 }, 1, 0);
        Nic::new(&settings, link, Receiver::default())
    }

    fn packet(kind: Kind, wire: u16) -> Packet {
        let mut packet = Packet::new(kind, 0, 1, 0, 0);
        packet.wire = wire;
        packet
    }

    #[test]
    fn a_control_packet_starts_at_once_on_an_idle_link() {
        let (nic, now) = (nic(&SIMPLE, Wire::default()), Time::from_us(1));
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), Some(now));
        // What starts when something may disturb it is not known.
        assert_eq!(nic.start_of_control(now, now + INSTANT, DELAY), Some(now));
        assert_eq!(nic.start_of_control(now, now, DELAY), None);
        assert_eq!(nic.start_of_control(now, Time::ZERO, DELAY), None);
    }

    #[test]
    fn a_control_packet_waits_for_what_is_on_the_link_but_not_for_long() {
        let mut nic = nic(&SIMPLE, Wire::default());
        let sent_at = Time::from_us(1);
        nic.link.send(sent_at, &packet(Kind::Data, 9000), None, &mut World(sent_at));
        let free = sent_at + Time::from_ps((9000 + 20) * 80);
        assert_eq!(nic.link.free_at(), free);
        assert_eq!(nic.start_of_control(free - INSTANT, Time::MAX, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free, Time::MAX, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free + INSTANT, Time::MAX, DELAY), Some(free + INSTANT));
        // So much ahead, and no longer.
        assert_eq!(nic.start_of_control(free - DELAY, Time::MAX, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free - DELAY - INSTANT, Time::MAX, DELAY), None);
        assert_eq!(nic.start_of_control(sent_at, Time::MAX, DELAY), None);
        // It is the start that has to be undisturbed.
        assert_eq!(nic.start_of_control(free - DELAY, free + INSTANT, DELAY), Some(free));
        assert_eq!(nic.start_of_control(free - DELAY, free, DELAY), None);
    }

    #[test]
    fn a_control_packet_behind_another_one_starts_nobody_knows_when() {
        let (mut nic, now) = (nic(&SIMPLE, Wire::default()), Time::from_us(1));
        nic.push_control(&packet(Kind::Ack, 64), None);
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), None);
        assert!(nic.pop_control().is_some());
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), Some(now));
        // Data give way to it.
        nic.push_flow(0, 0);
        assert_eq!(nic.start_of_control(now, Time::MAX, DELAY), Some(now));
    }

    #[test]
    fn a_paused_nic_sends_its_other_priorities() {
        let mut nic = nic(&SIMPLE, Wire::default());
        let at = |priority| {
            let mut packet = packet(Kind::Ack, 64);
            packet.priority = priority;
            packet
        };
        nic.push_control(&at(1), None);
        nic.push_control(&at(0), None);
        nic.push_flow(7, 1);
        nic.push_flow(8, 0);
        nic.permission.pause(Time::ZERO, 0b10, &mut nic.pauses);
        assert_eq!(nic.pop_control().map(|packet| packet.priority), Some(0));
        assert!(nic.pop_control().is_none());
        assert_eq!((nic.pop_flow(), nic.pop_flow(), nic.has_work()), (Some(8), None, false));
        nic.permission.resume(Time::ZERO, 0b10, &mut nic.pauses);
        assert!(nic.has_work());
        assert_eq!((nic.pop_control().map(|packet| packet.priority), nic.pop_flow()), (Some(1), Some(7)));
    }

    #[test]
    fn on_a_link_that_is_not_simple_no_start_is_known() {
        let lossy = Link { loss: 0.5, ..SIMPLE };
        let uneven = Link { rate: Rate::from_gbps(3), ..SIMPLE };
        let no_gap = Wire { gap: 0, ..Wire::default() };
        let cases = [(lossy, Wire::default()), (uneven, Wire::default()), (SIMPLE, no_gap)];
        for (link, wire) in cases {
            let nic = nic(&link, wire);
            assert!(!nic.link.is_simple());
            assert_eq!(nic.start_of_control(Time::from_us(1), Time::MAX, DELAY), None);
        }
    }
}
