//! The egress side of a switch: ports with their links, queues, the scheduler, and records of what passed.

use super::{
    aqm::RuleIndex,
    busy::BusyPorts,
    features::Features,
    scheduler::{Head, Scheduler},
};
use crate::{
    engine::prefetch::prefetch,
    fabric::{
        link::Transmitter,
        node::NodeContext,
        queue::{Ingress, Load, Pool, Queue, Removed},
    },
    flow_control::permission::{PauseRecord, Permission},
    packet::{Kind, Packet, Telemetry},
};
use incast_cc::{agent::Codepoint, feedback::HopTelemetry};
use incast_units::Time;

/// An egress port: what every departing packet needs, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Port {
    pub link: Transmitter,
    /// Frame bytes that wait, all priorities, and those held for this port.
    pub waiting_bytes: u64,
    /// Non-empty queues, one bit for each priority.
    pub waiting: u8,
    pub permission: Permission,
    /// A frame of flow control waits for the link; never while departures are lazy.
    pub frame_waits: bool,
    /// Messages of the agent to other switches wait for the link; never while departures are lazy.
    pub messages_wait: bool,
    /// A departure event is pending.
    departure: bool,
    /// The port's marking rule. It belongs to [`super::aqm::Aqm`] and is here for the cache line.
    pub marking: RuleIndex,
}

impl Port {
    /// Queues that may send now, one bit for each priority.
    #[inline]
    pub fn allowed(&self) -> u8 {
        self.permission.allowed(self.waiting)
    }
}

/// Counts of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueRecord {
    pub marks: u64,
    pub drops: u64,
    pub trims: u64,
}

/// A packet that was just taken from its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// The packet, readable until the next one is queued.
    pub place: Removed,
    pub priority: u8,
    /// Bytes that it leaves in its queue.
    pub left: u64,
}

/// See the module. What every packet needs comes first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Egress {
    ports: Vec<Port>,
    /// By priority, then port, up to the last priority that was in use.
    queues: Vec<Queue>,
    pool: Pool,
    /// Ports with something queued, while departures are lazy.
    busy: BusyPorts,
    priorities: usize,
    /// Departures are lazy at present: see [`super::Switch::drain`].
    lazy: bool,
    scheduler: Scheduler,
    /// By priority, then port, up to the last priority of which something was counted.
    records: Vec<QueueRecord>,
    /// Rates of the ports in Mbit/s, or those that the agent advertises, where data packets get an INT record as they
    /// leave; else empty.
    stamps: Vec<u32>,
    /// By port.
    pauses: Vec<PauseRecord>,
    /// Frame bytes sent, by priority, then port; only where ports are sampled.
    sent_by_priority: Vec<u64>,
    /// Departure events carry this number. It changes each time departures become events, so that those left from
    /// before are ignored.
    epoch: u32,
}

impl Egress {
    /// The ports with these links and marking rules.
    pub fn new(
        links: Vec<(Transmitter, RuleIndex)>,
        priorities: usize,
        scheduler: Scheduler,
        stamps: bool,
        is_sampled: bool,
        lazy: bool,
    ) -> Self {
        let ports = links.len();
        let port = |(link, marking)| Port {
            link,
            waiting_bytes: 0,
            waiting: 0,
            permission: Permission::default(),
            frame_waits: false,
            messages_wait: false,
            departure: false,
            marking,
        };
        let mbps =
            |(link, _): &(Transmitter, RuleIndex)| u32::try_from(link.rate().bps() / 1_000_000).unwrap_or(u32::MAX);
        Self {
            stamps: if stamps { links.iter().map(mbps).collect() } else { Vec::new() },
            ports: links.into_iter().map(port).collect(),
            queues: vec![Queue::default(); ports],
            pool: Pool::default(),
            scheduler,
            priorities,
            records: Vec::new(),
            pauses: vec![PauseRecord::default(); ports],
            sent_by_priority: if is_sampled { vec![0; ports * priorities] } else { Vec::new() },
            lazy,
            busy: BusyPorts::none_of(ports),
            epoch: 0,
        }
    }

    #[inline(always)]
    fn index(&self, port: usize, priority: u8) -> usize {
        usize::from(priority) * self.ports.len() + port
    }

    // ---- State ------------------------------------------------------------------------------------------------

    /// Number of priorities.
    pub fn priorities(&self) -> usize {
        self.priorities
    }

    /// All ports.
    #[inline]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// All ports.
    pub fn ports_mut(&mut self) -> &mut [Port] {
        &mut self.ports
    }

    /// One port.
    #[inline(always)]
    pub fn port(&self, port: usize) -> &Port {
        &self.ports[port]
    }

    /// One port.
    #[inline(always)]
    pub fn port_mut(&mut self, port: usize) -> &mut Port {
        &mut self.ports[port]
    }

    /// A queue, if its priority was in use.
    #[inline(always)]
    fn queue(&self, port: usize, priority: u8) -> Option<&Queue> {
        self.queues.get(self.index(port, priority))
    }

    /// Packets and bytes in a queue.
    #[inline(always)]
    pub fn load(&self, port: usize, priority: u8) -> Load {
        self.queue(port, priority).map_or(Load::default(), Queue::load)
    }

    /// Bytes in a queue.
    #[inline(always)]
    pub fn queue_bytes(&self, port: usize, priority: u8) -> u64 {
        self.load(port, priority).bytes()
    }

    /// Packets in a queue.
    #[inline]
    pub fn queue_packets(&self, port: usize, priority: u8) -> u32 {
        self.load(port, priority).packets()
    }

    /// Packets that wait at a port.
    pub fn packets_at(&self, port: usize) -> u32 {
        (0..self.priorities).map(|priority| self.queue_packets(port, priority as u8)).sum()
    }

    /// The packets of a queue in order, each with its ingress.
    pub fn packets(&self, port: usize, priority: u8) -> impl Iterator<Item = (&Packet, Ingress)> {
        self.queue(port, priority).into_iter().flat_map(|queue| self.pool.packets(queue))
    }

    /// The first packet of a queue.
    pub fn front(&self, port: usize, priority: u8) -> Option<&Packet> {
        self.pool.front(self.queue(port, priority)?)
    }

    /// The last packet of a queue.
    pub fn tail(&self, port: usize, priority: u8) -> Option<&Packet> {
        self.pool.tail(self.queue(port, priority)?)
    }

    /// Counts of a queue.
    pub fn record(&mut self, port: usize, priority: u8) -> &mut QueueRecord {
        let index = self.index(port, priority);
        if index >= self.records.len() {
            up_to(priority, self.ports.len(), &mut self.records);
        }
        &mut self.records[index]
    }

    /// Counts of a queue, and the bytes that it has sent.
    pub fn sample(&self, port: usize, priority: u8) -> (QueueRecord, u64) {
        let index = self.index(port, priority);
        (self.records.get(index).copied().unwrap_or_default(), self.sent_by_priority[index])
    }

    /// How long ports were paused.
    pub fn pauses(&self) -> &[PauseRecord] {
        &self.pauses
    }

    // ---- Queues -----------------------------------------------------------------------------------------------

    /// Appends a packet to its queue. Returns the bytes of all queues of the port with the packet in service.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "each is a fact of the packet, and the only call is inlined")]
    pub fn push<F: Features>(
        &mut self,
        port: usize,
        packet: &Packet,
        hash: u32,
        mark: Codepoint,
        telemetry: Option<&Telemetry>,
        ingress: Ingress,
        now: Time,
    ) -> u64 {
        debug_assert!(usize::from(packet.priority) < self.priorities, "a queue of a priority that exists");
        let index = self.index(port, packet.priority);
        let Self { ports, queues, pool, .. } = self;
        if index >= queues.len() {
            up_to(packet.priority, ports.len(), queues);
        }
        let (out, queue) = (&mut ports[port], &mut queues[index]);
        pool.push(queue, packet, mark, telemetry);
        if F::SPRAYING && !F::AGENT {
            pool.set_ecmp_hash(queue, hash);
        }
        if F::FLOW_CONTROL || F::AGENT {
            pool.set_ingress(queue, ingress);
        }
        out.waiting |= 1 << packet.priority;
        out.waiting_bytes += u64::from(packet.wire);
        let bytes = out.waiting_bytes + out.link.in_service_any(now);
        if !F::EVENTS || self.lazy {
            self.busy.insert(port);
        }
        bytes
    }

    /// Puts a packet in the place of the last one of its queue, which is returned with its INT records. As
    /// [`Self::push`].
    pub fn replace_tail(
        &mut self,
        port: usize,
        packet: &Packet,
        mark: Codepoint,
        telemetry: Option<&Telemetry>,
        now: Time,
    ) -> Option<(Packet, Option<Telemetry>, u64)> {
        let index = self.index(port, packet.priority);
        let old = *self.pool.tail(self.queues.get(index)?)?;
        let old_telemetry = self.pool.telemetry(&old);
        self.pool.replace_tail(&mut self.queues[index], packet, mark, telemetry);
        let port = &mut self.ports[port];
        port.waiting_bytes = port.waiting_bytes - u64::from(old.wire) + u64::from(packet.wire);
        Some((old, old_telemetry, port.waiting_bytes + port.link.in_service_any(now)))
    }

    /// Takes the next packet of a port: the head of the queue that the scheduler picks among those of `allowed`.
    #[inline(always)]
    pub fn pop<F: Features>(&mut self, port: usize, allowed: u8) -> Option<Departure> {
        let priority = if F::SCHEDULER {
            let Self { ports, queues, pool, .. } = self;
            let head = |priority| {
                let queue = &queues[usize::from(priority) * ports.len() + port];
                let bytes = pool.front(queue).map_or(0, |packet| u64::from(packet.wire));
                Head { bytes, is_alone: bytes == queue.bytes() }
            };
            self.scheduler.next(port, allowed, head)
        } else {
            allowed.trailing_zeros() as u8
        };
        self.take(port, priority)
    }

    /// Takes the first packet of a queue.
    #[inline(always)]
    fn take(&mut self, port: usize, priority: u8) -> Option<Departure> {
        let index = self.index(port, priority);
        let Self { ports, queues, pool, .. } = self;
        let (out, queue) = (&mut ports[port], &mut queues[index]);
        let place = pool.remove(queue)?;
        out.waiting_bytes -= u64::from(place.wire);
        if queue.is_empty() {
            out.waiting &= !(1 << priority);
        }
        Some(Departure { place, priority, left: queue.bytes() })
    }

    /// Takes a packet of a port whose link is down, whether it may send or not.
    pub fn flush(&mut self, port: usize) -> Option<Departure> {
        let waiting = self.ports[port].waiting;
        if waiting == 0 {
            self.scheduler.clear(port);
            return None;
        }
        self.take(port, waiting.trailing_zeros() as u8)
    }

    /// A packet that was just taken.
    #[inline(always)]
    pub fn taken(&self, departure: &Departure) -> &Packet {
        self.pool.removed(departure.place)
    }

    /// The ingress of a packet that was just taken.
    #[inline]
    pub fn ingress(&self, departure: &Departure) -> Ingress {
        self.pool.ingress(departure.place)
    }

    /// The INT records of a packet that was just taken.
    #[inline]
    pub fn telemetry(&self, departure: &Departure) -> Option<Telemetry> {
        self.pool.telemetry(self.pool.removed(departure.place))
    }

    /// Data packets that leave by a port carry this rate from now on, where they have telemetry.
    pub fn advertise(&mut self, port: usize, mbps: u32) {
        if let Some(stamp) = self.stamps.get_mut(port) {
            *stamp = mbps;
        }
    }

    /// Marks a packet that was just taken.
    pub fn mark_taken(&mut self, departure: &Departure, mark: Codepoint) {
        self.pool.mark_removed(departure.place, mark);
    }

    // ---- Links ------------------------------------------------------------------------------------------------

    /// Sends a packet on the idle link of its port. False if the packet will be lost on the wire.
    #[inline(always)]
    pub fn send<F: Features>(
        &mut self,
        port: usize,
        packet: &Packet,
        hash: u32,
        telemetry: Option<&Telemetry>,
        now: Time,
        context: &mut impl NodeContext,
    ) -> bool {
        if F::TELEMETRY {
            if !self.sent_by_priority.is_empty() {
                let index = self.index(port, packet.priority);
                self.sent_by_priority[index] += u64::from(packet.wire);
            }
            let out = &mut self.ports[port];
            if let Some(mbps) = self.stamps.get(port)
                && packet.kind == Kind::Data
            {
                let mut telemetry = telemetry.map_or_else(Telemetry::default, Telemetry::duplicate);
                telemetry.push(out.hop(now, *mbps));
                return out.link.send(now, packet, Some(&telemetry), context);
            }
            return out.link.send(now, packet, telemetry, context);
        }
        let out = &mut self.ports[port];
        if F::SPRAYING {
            out.link.send_with_hash(now, packet, hash, context)
        } else {
            out.link.send(now, packet, None, context)
        }
    }

    /// Sends a packet that was just taken, from its place in the pool.
    #[inline(always)]
    pub fn send_taken<F: Features>(
        &mut self,
        port: usize,
        departure: &Departure,
        now: Time,
        context: &mut impl NodeContext,
    ) -> bool {
        let packet = self.pool.removed(departure.place);
        if F::TELEMETRY {
            let (packet, telemetry) = (*packet, self.pool.telemetry(packet));
            return self.send::<F>(port, &packet, packet.ecmp_hash, telemetry.as_ref(), now, context);
        }
        self.ports[port].link.send(now, packet, None, context)
    }

    /// Forbids a port to send the priorities of `mask`; returns those that were allowed before.
    pub fn pause(&mut self, port: usize, mask: u8, now: Time) -> u8 {
        let mask = mask & u8::MAX >> (8 - self.priorities);
        self.ports[port].permission.pause(now, mask, &mut self.pauses[port])
    }

    /// Allows a port to send the priorities of `mask` again; returns those that were forbidden before.
    pub fn resume(&mut self, port: usize, mask: u8, now: Time) -> u8 {
        self.ports[port].permission.resume(now, mask, &mut self.pauses[port])
    }

    // ---- Departures -------------------------------------------------------------------------------------------

    /// Departures are lazy at present.
    #[inline]
    pub fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// The first port with something queued, from `port` on, while departures are lazy.
    #[inline]
    pub fn busy_from(&self, port: usize) -> Option<usize> {
        self.busy.first_from(port)
    }

    /// Removes a port from those with something queued.
    #[inline]
    pub fn forget(&mut self, port: usize) {
        self.busy.remove(port);
    }

    /// The time for which a departure event has to be scheduled, with its payload; `None` if there is nothing to send,
    /// or one is pending.
    #[inline]
    pub fn plan_departure(&mut self, port: usize, now: Time) -> Option<(Time, u32)> {
        let out = &mut self.ports[port];
        let is_needed = !out.departure && (out.frame_waits || out.messages_wait || out.allowed() != 0);
        out.departure |= is_needed;
        is_needed.then(|| (out.link.free_at().max(now), self.epoch))
    }

    /// A departure event has come. False if it is left from earlier.
    pub fn begin_departure(&mut self, port: usize, epoch: u32) -> bool {
        let is_current = !self.lazy && epoch == self.epoch;
        if is_current {
            self.ports[port].departure = false;
        }
        is_current
    }

    /// From now on each departure is an event; epochs are numbered modulo `payloads`. All ports have caught up, and
    /// those of [`Self::take_busy`] need an event.
    pub fn use_events(&mut self, payloads: u32) {
        self.lazy = false;
        self.epoch = (self.epoch + 1) % payloads;
    }

    /// Removes a port from those with something queued.
    pub fn take_busy(&mut self) -> Option<usize> {
        let port = self.busy.first_from(0)?;
        self.forget(port);
        Some(port)
    }

    /// From now on departures are lazy.
    pub fn use_lazy_departures(&mut self) {
        self.lazy = true;
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.departure = false;
            if port.waiting != 0 {
                self.busy.insert(index);
            }
        }
    }

    // ---- Prefetching ------------------------------------------------------------------------------------------

    /// Prefetches what an arriving packet for a port touches.
    #[inline]
    pub fn prefetch_port(&self, port: usize) {
        prefetch(self.ports.as_ptr().wrapping_add(port), 1);
    }

    /// Prefetches the queue of an arriving packet.
    #[inline]
    pub fn prefetch_queue(&self, port: usize, priority: u8) {
        prefetch(self.queues.as_ptr().wrapping_add(self.index(port, priority)), 1);
    }

    /// Prefetches in two steps: first (`near` false) the ports with queued packets, then (`near` true, once these are
    /// cached) the packets.
    #[inline]
    pub fn prefetch_waiting(&self, near: bool) {
        if !near {
            self.pool.prefetch_free();
        }
        for port in self.busy.iter() {
            let out = &self.ports[port];
            if near {
                self.pool.prefetch_head(&self.queues[self.index(port, out.waiting.trailing_zeros() as u8 & 7)]);
            } else {
                prefetch(std::ptr::from_ref(out), 1);
                prefetch(self.queues.as_ptr().wrapping_add(port), 1);
            }
        }
        if near {
            self.pool.prefetch_entries();
        }
    }
}

/// Makes room for a priority at each port.
#[cold]
fn up_to<T: Clone + Default>(priority: u8, ports: usize, list: &mut Vec<T>) {
    let room = (usize::from(priority) + 1) * ports;
    if room > list.len() {
        list.reserve_exact(room - list.len());
        list.resize(room, T::default());
    }
}

impl Port {
    /// The INT record of a packet that leaves at `now`.
    #[inline]
    fn hop(&self, now: Time, rate_mbps: u32) -> HopTelemetry {
        HopTelemetry {
            time: now,
            sent_bytes: self.link.sent_bytes(),
            queue_bytes: u32::try_from(self.waiting_bytes).unwrap_or(u32::MAX),
            rate_mbps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fabric::{config::Wire, node::Peer},
        switch::{aqm::Aqm, config::SwitchConfig, features::All},
        topology,
    };
    use incast_cc::marking::Marking;
    use incast_units::Rate;

    const PORTS: usize = 3;
    const PRIORITIES: usize = 8;
    const NOW: Time = Time::from_us(1);

    fn egress() -> Egress {
        let marking = Aqm::new(&SwitchConfig::plain(), vec![false; PORTS], 1, 0).add(Marking::Off);
        let link = topology::Link { rate: Rate::from_gbps(100), delay: NOW, loss: 0.0 };
        let links = (0..PORTS as u64).map(|port| {
            let peer = Peer { domain: 0, entity: 0 };
            (Transmitter::new(&link, Wire::default(), peer, 1, port), marking)
        });
        Egress::new(links.collect(), PRIORITIES, Scheduler::Strict, false, true, true)
    }

    fn packet(priority: u8, wire: u16) -> Packet {
        let mut packet = Packet::new(Kind::Data, 0, 1, 0, 0);
        (packet.priority, packet.wire) = (priority, wire);
        packet
    }

    fn push(egress: &mut Egress, port: usize, packet: &Packet) -> u64 {
        egress.push::<All>(port, packet, 0, Codepoint::None, None, Ingress::LOCAL, NOW)
    }

    /// Port and priority of each queue.
    fn queues() -> impl Iterator<Item = (usize, u8)> {
        (0..PORTS).flat_map(|port| (0..PRIORITIES as u8).map(move |priority| (port, priority)))
    }

    /// Bytes, packets, first and last packet in bytes, and bytes of all.
    type Seen = (u64, u32, Option<u16>, Option<u16>, Vec<u16>);

    fn seen(egress: &Egress, port: usize, priority: u8) -> Seen {
        let wire = |packet: Option<&Packet>| packet.map(|packet| packet.wire);
        (
            egress.queue_bytes(port, priority),
            egress.queue_packets(port, priority),
            wire(egress.front(port, priority)),
            wire(egress.tail(port, priority)),
            egress.packets(port, priority).map(|(packet, _)| packet.wire).collect(),
        )
    }

    #[test]
    fn a_queue_that_was_never_in_use_is_empty() {
        let mut egress = egress();
        for (port, priority) in queues() {
            assert_eq!(seen(&egress, port, priority), Seen::default(), "port {port}, priority {priority}");
            let (record, sent) = egress.sample(port, priority);
            assert_eq!((record.marks, record.drops, record.trims, sent), (0, 0, 0, 0));
            let replaced = egress.replace_tail(port, &packet(priority, 100), Codepoint::None, None, NOW);
            assert!(replaced.is_none());
        }
        for port in 0..PORTS {
            assert_eq!((egress.packets_at(port), egress.port(port).waiting_bytes), (0, 0));
            assert!(egress.flush(port).is_none());
            assert_eq!(egress.pause(port, u8::MAX, NOW), u8::MAX);
            assert!(egress.plan_departure(port, NOW).is_none());
            assert_eq!(egress.resume(port, u8::MAX, NOW), u8::MAX);
            assert!(egress.plan_departure(port, NOW).is_none());
        }
        egress.prefetch_waiting(false);
        egress.prefetch_waiting(true);
        assert_eq!(egress.busy_from(0), None);
        // Nobody has asked for any queue but those of the first priority, or for a record.
        assert_eq!((egress.queues.len(), egress.records.len()), (PORTS, 0));
    }

    #[test]
    fn the_first_packet_of_a_priority_makes_its_queues() {
        for first in 0..PRIORITIES as u8 {
            let (mut egress, port) = (egress(), usize::from(first) % PORTS);
            assert_eq!(push(&mut egress, port, &packet(first, 300)), 300);
            assert_eq!(egress.queues.len(), (usize::from(first) + 1) * PORTS);
            // A higher priority needs no more, and a packet of it does not come into the way of the other.
            push(&mut egress, port, &packet(0, 70));
            assert_eq!(egress.queues.len(), (usize::from(first) + 1) * PORTS);
            let expected = |at: (usize, u8)| match at {
                (_, 0) if first == 0 && at.0 == port => (370, 2, Some(300), Some(70), vec![300, 70]),
                (_, 0) if at.0 == port => (70, 1, Some(70), Some(70), vec![70]),
                _ if at == (port, first) => (300, 1, Some(300), Some(300), vec![300]),
                _ => Seen::default(),
            };
            for (port, priority) in queues() {
                assert_eq!(seen(&egress, port, priority), expected((port, priority)), "after {first}");
            }
            assert_eq!((egress.port(port).waiting, egress.busy_from(0)), (1 << first | 1, Some(port)));
            let mut leave = || egress.flush(port).map(|departure| (departure.priority, departure.place.wire));
            let departures = [leave(), leave(), leave()];
            let in_order = if first == 0 { [(0, 300), (0, 70)] } else { [(0, 70), (first, 300)] };
            assert_eq!(departures, [Some(in_order[0]), Some(in_order[1]), None]);
            assert_eq!((egress.packets_at(port), egress.port(port).waiting_bytes), (0, 0));
        }
    }

    #[test]
    fn what_is_counted_is_counted_for_one_queue() {
        let (mut egress, counts) = (egress(), [((2, 0), 1), ((1, 7), 2), ((0, 3), 3)]);
        for counted in 1..=counts.len() {
            let ((port, priority), count) = counts[counted - 1];
            egress.record(port, priority).drops += count;
            for (port, priority) in queues() {
                let known = counts[..counted].iter().find(|(queue, _)| *queue == (port, priority));
                let drops = egress.sample(port, priority).0.drops;
                assert_eq!(drops, known.map_or(0, |(_, count)| *count), "port {port}, priority {priority}");
            }
        }
    }
}
