//! A switch: every queue is a list of packets.

use super::{
    Packet, Ps,
    agenda::{Agenda, What},
    host,
    link::Link,
    routes::Routes,
};
use incast_sim::{
    Config,
    config::{Buffer, Ecn, LoadBalancing, MarkAt, Size},
    engine::random::Stream,
    fabric::{routing::entropy, switch::salt},
    outcome::{EventKind, EventRecord, Totals},
};
use incast_units::Time;
use std::collections::VecDeque;

struct Port {
    link: Link,
    /// By priority.
    queues: Vec<VecDeque<Packet>>,
}

fn bytes(queue: &VecDeque<Packet>) -> u64 {
    queue.iter().map(|packet| u64::from(packet.wire)).sum()
}

impl Port {
    fn waiting(&self) -> u64 {
        self.queues.iter().map(bytes).sum()
    }
}

/// See the module.
pub struct Switch<'a> {
    config: &'a Config,
    node: u32,
    ports: Vec<Port>,
    base_rtt: Ps,
    spray: Stream,
    /// By port.
    red: Vec<Stream>,
    has_hosts: bool,
    arrived: u64,
    drops: (u64, u64),
    lost: (u64, u64),
    marks: u64,
    max_queue: u64,
    /// What happened to packets.
    pub events: Vec<EventRecord>,
}

impl<'a> Switch<'a> {
    /// A switch with its links.
    pub fn new(config: &'a Config, node: u32, links: Vec<Link>) -> Self {
        let red = |port| Stream::new(config.seed, 0x5245_4400, u64::from(node) << 20 | port as u64);
        let queues = || vec![VecDeque::new(); usize::from(config.switch.priorities)];
        let hosts = &config.topology.cables[..config.topology.hosts as usize];
        Self {
            config,
            node,
            red: (0..links.len()).map(red).collect(),
            ports: links.into_iter().map(|link| Port { link, queues: queues() }).collect(),
            base_rtt: host::base_rtt(config),
            spray: Stream::new(config.seed, 0x5350_5259, u64::from(node)),
            has_hosts: hosts.iter().any(|cable| cable.b == node),
            arrived: 0,
            drops: (0, 0),
            lost: (0, 0),
            marks: 0,
            max_queue: 0,
            events: Vec::new(),
        }
    }

    /// Something happens at a port.
    pub fn handle(&mut self, now: Ps, port: u32, what: What, routes: &Routes, agenda: &mut Agenda) {
        match what {
            What::Link { up } => self.on_link(now, port as usize, up),
            What::Completion => self.on_completion(now, port as usize, agenda),
            What::Arrival(packet) => self.on_arrival(now, port as usize, packet, routes, agenda),
            other => panic!("{other:?} at a switch"),
        }
    }

    fn on_link(&mut self, now: Ps, port: usize, up: bool) {
        self.ports[port].link.switch(now, up);
        if !up {
            let waiting: Vec<Packet> =
                self.ports[port].queues.iter_mut().flat_map(|queue| queue.drain(..)).collect();
            waiting.iter().for_each(|packet| self.lose(now, port, packet));
        }
    }

    fn lose(&mut self, now: Ps, port: usize, packet: &Packet) {
        self.lost.0 += 1;
        self.lost.1 += u64::from(packet.wire);
        self.record(now, port, EventKind::Lost, packet);
    }

    fn record(&mut self, now: Ps, port: usize, kind: EventKind, packet: &Packet) {
        self.events.push(EventRecord {
            time: Time::from_ps(now),
            node: self.node,
            port: port as u16,
            kind,
            priority: packet.priority,
            source: packet.flow_source(),
            sequence: packet.sequence,
        });
    }

    fn on_arrival(&mut self, now: Ps, input: usize, packet: Packet, routes: &Routes, agenda: &mut Agenda) {
        self.arrived += 1;
        if !self.ports[input].link.receive(&packet) {
            self.record(now, input, EventKind::Lost, &packet);
            return;
        }
        let choice = match self.config.switch.load_balancing {
            LoadBalancing::Ecmp => entropy(packet.entropy, salt(self.config.seed, self.node)),
            LoadBalancing::Spray => self.spray.next_u32(),
            LoadBalancing::Pinned => unreachable!("the cases have no pinned flows"),
        };
        match routes.pick(self.node, packet.to, choice) {
            Some(port) => self.enqueue(now, port as usize, packet, agenda),
            None => self.lose(now, 0, &packet),
        }
    }

    fn enqueue(&mut self, now: Ps, number: usize, mut packet: Packet, agenda: &mut Agenda) {
        let port = &self.ports[number];
        if !port.link.up {
            self.lose(now, number, &packet);
            return;
        }
        if !port.link.busy(now) {
            assert_eq!(port.waiting(), 0, "an idle link with something waiting");
            self.max_queue = self.max_queue.max(u64::from(packet.wire));
            self.send(now, number, packet, agenda);
            return;
        }
        let priority = usize::from(packet.priority);
        if !self.admits(number, priority, u64::from(packet.wire)) {
            self.drops.0 += 1;
            self.drops.1 += u64::from(packet.wire);
            self.record(now, number, EventKind::Drop, &packet);
            return;
        }
        let port = &self.ports[number];
        let found = bytes(&port.queues[priority]) + port.link.in_service(now, Some(packet.priority));
        if self.config.switch.mark_at == MarkAt::Enqueue {
            self.mark(now, number, found, &mut packet);
        }
        let port = &mut self.ports[number];
        port.queues[priority].push_back(packet);
        self.max_queue = self.max_queue.max(port.waiting() + port.link.in_service(now, None));
    }

    fn on_completion(&mut self, now: Ps, number: usize, agenda: &mut Agenda) {
        let port = &mut self.ports[number];
        port.link.complete();
        assert!(!port.link.busy(now));
        let Some(priority) = port.queues.iter().position(|queue| !queue.is_empty()) else { return };
        let Some(mut packet) = port.queues[priority].pop_front() else { return };
        let left = bytes(&port.queues[priority]);
        if self.config.switch.mark_at == MarkAt::Dequeue {
            self.mark(now, number, left, &mut packet);
        }
        self.send(now, number, packet, agenda);
    }

    fn send(&mut self, now: Ps, port: usize, packet: Packet, agenda: &mut Agenda) {
        if let Some(lost) = self.ports[port].link.send(now, packet, agenda) {
            self.record(now, port, EventKind::Lost, &lost);
        }
    }

    /// Whether there is memory for so many bytes in a queue.
    fn admits(&self, port: usize, priority: usize, more: u64) -> bool {
        match self.config.switch.buffer {
            Buffer::Unlimited => true,
            Buffer::PerPort { bytes } => self.ports[port].waiting() + more <= bytes,
            Buffer::Shared { total, alpha: (numerator, denominator), reserve } => {
                let queues: Vec<u64> =
                    self.ports.iter().flat_map(|port| port.queues.iter().map(bytes)).collect();
                let pool = total.saturating_sub(reserve * queues.len() as u64);
                let used: u64 = queues.iter().map(|queue| queue.saturating_sub(reserve)).sum();
                let free = pool - used;
                let queue = bytes(&self.ports[port].queues[priority]);
                let (before, after) = (queue.saturating_sub(reserve), (queue + more).saturating_sub(reserve));
                let below =
                    u128::from(before) * u128::from(denominator) < u128::from(free) * u128::from(numerator);
                after == 0 || below && after - before <= free
            }
        }
    }

    fn mark(&mut self, now: Ps, port: usize, queue: u64, packet: &mut Packet) {
        if !packet.ecn_capable {
            return;
        }
        let rate = self.ports[port].link.rate;
        let size = |size: Size| match size {
            Size::Bytes(bytes) => bytes,
            Size::Bdp(factor) => {
                let bdp = u128::from(rate) * u128::from(self.base_rtt) / 8_000_000_000_000;
                (bdp as f64 * factor).round() as u64
            }
        };
        let mut red = |min: Size, max: Size, p: f64| {
            let (min, max) = (size(min), size(max));
            let ramp = |queue| p * (queue - min) as f64 / (max - min) as f64;
            // A number is drawn only where chance decides.
            queue > min && (queue > max || self.red[port].uniform() < ramp(queue))
        };
        let marks = match &self.config.switch.ecn {
            Ecn::Off => false,
            Ecn::Step { at } => queue > size(*at),
            Ecn::Red { min, max, p } => red(*min, *max, *p),
            Ecn::RedByRate(rates) => {
                rates.iter().find(|at| at.rate.bps() == rate).is_some_and(|at| red(at.min, at.max, at.p))
            }
        };
        if marks && !packet.marked {
            packet.marked = true;
            self.marks += 1;
            self.record(now, port, EventKind::Mark, packet);
        }
    }

    /// Adds its part to the sums of the run.
    pub fn add_to(&self, totals: &mut Totals) {
        totals.packet_hops += self.arrived;
        totals.drops += self.drops.0;
        totals.dropped_bytes += self.drops.1;
        totals.lost += self.lost.0;
        totals.lost_bytes += self.lost.1;
        totals.max_queue_bytes = totals.max_queue_bytes.max(self.max_queue);
        *(if self.has_hosts { &mut totals.marks_edge } else { &mut totals.marks_fabric }) += self.marks;
        for port in &self.ports {
            totals.left_bytes += port.waiting();
            totals.lost += port.link.lost.0;
            totals.lost_bytes += port.link.lost.1;
        }
    }
}
