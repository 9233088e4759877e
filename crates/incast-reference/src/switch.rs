//! A switch: every queue is a list of packets.

use super::{
    Content, Packet, Ps,
    agenda::{Agenda, What},
    dwrr::Dwrr,
    frames,
    link::Link,
    pause::Pauses,
    routes::Routes,
};
use incast_sim::{
    Config, Fabric,
    config::{Buffer, Ecn, Limit, LoadBalancing, MarkAt, NotEct, Size, SwitchConfig, Victim},
    engine::random::Stream,
    flow_control::pfc::{Bounds, Limits},
    outcome::{EventKind, EventRecord, Totals},
    pfc_rules,
    routing::router::salt,
    topology::salted_hash,
};
use incast_units::{Rate, Time};
use std::{borrow::Cow, collections::VecDeque};

struct Port {
    link: Link,
    /// What the neighbour asks for.
    pauses: Pauses,
    /// The priorities that the neighbour ought to pause, and those that a frame has requested it to pause.
    requested: u8,
    advertised: u8,
    /// A pause frame waits for the link.
    frame_waits: bool,
    /// By priority.
    queues: Vec<VecDeque<Packet>>,
}

fn bytes(queue: &VecDeque<Packet>) -> u64 {
    queue.iter().map(|packet| u64::from(packet.wire)).sum()
}

impl Port {
    /// The highest priority with something that may be sent.
    fn next(&self) -> Option<usize> {
        let mut queues = self.queues.iter().enumerate();
        queues.position(|(priority, queue)| !queue.is_empty() && !self.pauses.forbids(priority as u8))
    }

    fn waiting(&self) -> u64 {
        self.queues.iter().map(bytes).sum()
    }
}

/// See the module.
pub struct Switch<'a> {
    config: &'a Config,
    /// Its own part of it.
    own: Cow<'a, SwitchConfig>,
    node: u32,
    ports: Vec<Port>,
    base_rtt: Ps,
    spray: Stream,
    /// By port.
    red: Vec<Stream>,
    /// Decides who is trimmed.
    victims: Stream,
    /// By port: packets of priority 0 since the last one of data, while data waited.
    headers: Vec<u32>,
    /// By port.
    dwrr: Vec<Dwrr>,
    trims: (u64, u64),
    /// By port.
    leads_to_host: Vec<bool>,
    /// By port, where there is flow control.
    limits: Vec<Option<Limits>>,
    lossless: u8,
    /// Bytes of pause frames made here, and of those that ended here.
    created: u64,
    consumed: u64,
    lossless_drops: u64,
    arrived: u64,
    drops: (u64, u64),
    lost: (u64, u64),
    /// At ports that lead to hosts, and at others.
    marks: (u64, u64),
    max_queue: u64,
    /// What happened to packets.
    pub events: Vec<EventRecord>,
}

impl<'a> Switch<'a> {
    /// A switch with its links.
    pub fn new(config: &'a Config, node: u32, links: Vec<Link>) -> Self {
        let red = |port| Stream::new(config.seed, 0x5245_4400, u64::from(node) << 20 | port as u64);
        let own = config.switch.at(node);
        let queues = || vec![VecDeque::new(); usize::from(own.priorities)];
        let rules = pfc_rules(Fabric::from(config)).zip(own.pfc.as_ref()).map(|(rules, own)| rules.of(own));
        let cables = config.topology.cables.iter().filter(|cable| cable.a == node || cable.b == node);
        Self {
            config,
            node,
            red: (0..links.len()).map(red).collect(),
            victims: Stream::new(config.seed, 0x5452_494d, u64::from(node)),
            headers: vec![0; links.len()],
            dwrr: links.iter().map(|_| Dwrr::default()).collect(),
            trims: (0, 0),
            limits: links
                .iter()
                .map(|link| {
                    let rules = rules.as_ref()?;
                    Some(rules.limits(Rate::from_bps(link.rate), Time::from_ps(link.delay)))
                })
                .collect(),
            ports: links
                .into_iter()
                .enumerate()
                .map(|(port, link)| Port {
                    link,
                    pauses: Pauses::new(
                        node,
                        port as u32,
                        rules.as_ref().map_or(0, |rules| rules.pfc.response_delay.ps()),
                    ),
                    requested: 0,
                    advertised: 0,
                    frame_waits: false,
                    queues: queues(),
                })
                .collect(),
            lossless: rules.as_ref().map_or(0, |rules| rules.lossless),
            created: 0,
            consumed: 0,
            lossless_drops: 0,
            base_rtt: frames::base_rtt(config),
            spray: Stream::new(config.seed, 0x5350_5259, u64::from(node)),
            leads_to_host: cables.map(|cable| cable.a.min(cable.b) < config.topology.hosts).collect(),
            arrived: 0,
            drops: (0, 0),
            lost: (0, 0),
            marks: (0, 0),
            max_queue: 0,
            events: Vec::new(),
            own,
        }
    }

    /// Something happens at a port.
    pub fn handle(&mut self, now: Ps, port: u32, what: What, routes: &Routes, agenda: &mut Agenda) {
        match what {
            What::Link { up } => self.on_link(now, port as usize, up, agenda),
            What::Pause { about, paused, failures } => {
                let pauses = &mut self.ports[port as usize].pauses;
                pauses.apply(now, about, paused, Some(failures), &mut self.events);
                self.go_on(now, port as usize, agenda);
            }
            What::Completion => self.on_completion(now, port as usize, agenda),
            What::Arrival(packet) => self.on_arrival(now, port as usize, packet, routes, agenda),
            other => panic!("{other:?} at a switch"),
        }
    }

    fn on_link(&mut self, now: Ps, port: usize, up: bool, agenda: &mut Agenda) {
        self.ports[port].link.switch(now, up);
        if !up {
            self.dwrr[port] = Dwrr::default();
            for priority in 0..self.ports[port].queues.len() {
                while let Some(packet) = self.ports[port].queues[priority].pop_front() {
                    self.lose(now, port, &packet);
                    self.reconsider(now, &packet, agenda);
                }
            }
        }
        if self.own.pfc.is_some() {
            let it = &mut self.ports[port];
            it.pauses.fail(now, &mut self.events);
            (it.advertised, it.frame_waits) = (0, false);
            if up {
                self.tell(now, port, agenda);
            }
        }
    }

    // ---- Flow control --------------------------------------------------------------------------------------

    /// Bytes of an ingress that wait here.
    fn held(&self, ingress: usize, priority: u8) -> u64 {
        let queues = self.ports.iter().map(|port| &port.queues[usize::from(priority)]);
        let packets = queues.flatten().filter(|packet| packet.ingress == ingress);
        packets.map(|packet| u64::from(packet.wire)).sum()
    }

    /// The limits for a packet if it is counted by ingress: headroom, xoff, xon.
    fn limits_of(&self, packet: &Packet) -> Option<(u64, u64, u64)> {
        match self.limits[packet.ingress].filter(|_| self.lossless & 1 << packet.priority != 0)? {
            Limits { headroom, threshold: Bounds::Static { xoff, xon } } => Some((headroom, xoff, xon)),
            other => panic!("{other:?}"),
        }
    }

    /// A packet came to wait: its ingress may be full.
    fn consider(&mut self, now: Ps, packet: &Packet, agenda: &mut Agenda) {
        let Some((_, xoff, _)) = self.limits_of(packet) else { return };
        if self.held(packet.ingress, packet.priority) >= xoff {
            self.ports[packet.ingress].requested |= 1 << packet.priority;
            self.tell(now, packet.ingress, agenda);
        }
    }

    /// A packet waits no longer: its ingress may go on.
    fn reconsider(&mut self, now: Ps, packet: &Packet, agenda: &mut Agenda) {
        let Some((_, _, xon)) = self.limits_of(packet) else { return };
        let bit = 1 << packet.priority;
        if self.ports[packet.ingress].requested & bit != 0 && self.held(packet.ingress, packet.priority) <= xon {
            self.ports[packet.ingress].requested &= !bit;
            self.tell(now, packet.ingress, agenda);
        }
    }

    /// Sends a pause frame, or lets it wait for the link.
    fn tell(&mut self, now: Ps, number: usize, agenda: &mut Agenda) {
        let port = &mut self.ports[number];
        port.frame_waits = false;
        if port.requested == port.advertised || !port.link.up {
            return;
        }
        if port.link.busy(now) {
            port.frame_waits = true;
            return;
        }
        let about = port.requested ^ port.advertised;
        port.advertised = port.requested;
        let wire = self.own.pfc.as_ref().map_or(0, |pfc| u32::from(pfc.frame));
        self.created += u64::from(wire);
        let packet = Packet {
            from: self.node,
            to: 0,
            sequence: 0,
            class: 0,
            priority: 8,
            wire,
            ecmp_hash: 0,
            stamp: 0,
            started: now,
            links: 0,
            ecn_capable: false,
            marked: false,
            ingress: 0,
            content: Content::Pause { about, paused: port.requested & about },
        };
        self.send(now, number, packet, agenda);
    }

    /// The port may send again, if its link is idle. A transmission that ends now is completed by its own event.
    fn go_on(&mut self, now: Ps, number: usize, agenda: &mut Agenda) {
        if self.ports[number].link.up && !self.ports[number].link.busy(now) {
            self.on_completion(now, number, agenda);
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
        if let Content::Pause { about, paused } = packet.content {
            self.consumed += u64::from(packet.wire);
            if self.ports[input].pauses.receive(now, about, paused, agenda) {
                self.ports[input].pauses.apply(now, about, paused, None, &mut self.events);
                self.go_on(now, input, agenda);
            }
            return;
        }
        let packet = Packet { ingress: input, ..packet };
        let choice = match self.own.load_balancing {
            LoadBalancing::Ecmp => salted_hash(packet.ecmp_hash, salt(self.config.seed, self.node)),
            LoadBalancing::Spray => self.spray.next_u32(),
            LoadBalancing::SourceRouted | LoadBalancing::SprayPermutation => {
                unreachable!("the cases have none of these")
            }
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
        if !port.link.busy(now) && !port.pauses.forbids(packet.priority) {
            assert_eq!(port.next(), None, "an idle link with something waiting");
            self.max_queue = self.max_queue.max(u64::from(packet.wire));
            self.send(now, number, packet, agenda);
            return;
        }
        let priority = usize::from(packet.priority);
        let limits = self.limits_of(&packet);
        let admitted = match limits {
            None => self.has_room(number, &packet),
            Some((headroom, xoff, _)) => self.has_headroom(&packet, headroom + xoff),
        };
        let transport = self.config.classes[usize::from(packet.class)].law.transport();
        let is_control = !matches!(packet.content, Content::Data { .. });
        let is_capable = packet.ecn_capable || is_control && transport.control_ecn_capable;
        let may_drop = self.own.not_ect == NotEct::Drop && !is_capable && limits.is_none();
        let port = &self.ports[number];
        let found = bytes(&port.queues[priority]) + port.link.in_service(now, Some(packet.priority));
        let early = may_drop && self.is_beyond(number, found);
        if !early && !admitted && self.may_be_trimmed(&packet) {
            self.trim_one(now, number, packet, agenda);
            return;
        }
        if early || !admitted {
            self.lossless_drops += u64::from(limits.is_some());
            self.drops.0 += 1;
            self.drops.1 += u64::from(packet.wire);
            self.record(now, number, EventKind::Drop, &packet);
            return;
        }
        if self.own.mark_at == MarkAt::Enqueue {
            self.mark(now, number, found, &mut packet);
        }
        let port = &mut self.ports[number];
        port.queues[priority].push_back(packet.clone());
        self.consider(now, &packet, agenda);
        let port = &self.ports[number];
        self.max_queue = self.max_queue.max(port.waiting() + port.link.in_service(now, None));
    }

    // ---- Trimming ------------------------------------------------------------------------------------------

    /// Whether queue and buffer have room for a packet more.
    fn has_room(&self, number: usize, packet: &Packet) -> bool {
        let priority = usize::from(packet.priority);
        let queue = &self.ports[number].queues[priority];
        let within = self.own.trim.as_ref().is_none_or(|trim| {
            let frames = self.config.classes.iter().map(|class| u64::from(class.format.data(self.config.host.mtu)));
            match if priority == 0 { trim.header_limit(frames.max().unwrap_or(0)) } else { trim.queue } {
                Limit::Packets(most) => queue.len() < most as usize,
                Limit::Bytes(most) => bytes(queue) + u64::from(packet.wire) <= most,
            }
        });
        within && self.admits(number, priority, u64::from(packet.wire))
    }

    fn may_be_trimmed(&self, packet: &Packet) -> bool {
        let has_payload = matches!(packet.content, Content::Data { payload, .. } if payload > 0);
        let class = &self.config.classes[usize::from(packet.class)];
        self.own.trim.is_some() && packet.priority > 0 && has_payload && class.trimmable
    }

    /// There is no room for a packet: it, or the last one of its queue, loses its payload.
    fn trim_one(&mut self, now: Ps, number: usize, packet: Packet, agenda: &mut Agenda) {
        let priority = usize::from(packet.priority);
        let mut victim = packet.clone();
        if let Some(tail) = self.ports[number].queues[priority].pop_back() {
            let possible = self.may_be_trimmed(&tail) && self.has_room(number, &packet);
            let rule = self.own.trim.as_ref().map(|trim| trim.victim);
            let takes_tail = possible
                && match rule {
                    Some(Victim::Either) => self.victims.next_u32() % 2 == 1,
                    rule => rule == Some(Victim::Tail),
                };
            if takes_tail {
                victim = tail;
                let mut packet = packet;
                let port = &self.ports[number];
                let found = bytes(&port.queues[priority]) + port.link.in_service(now, Some(packet.priority));
                if self.own.mark_at == MarkAt::Enqueue {
                    self.mark(now, number, found, &mut packet);
                }
                self.ports[number].queues[priority].push_back(packet);
                let port = &self.ports[number];
                self.max_queue = self.max_queue.max(port.waiting() + port.link.in_service(now, None));
            } else {
                self.ports[number].queues[priority].push_back(tail);
            }
        }
        let headers = self.config.classes[usize::from(victim.class)].format.data(0);
        let size = self.own.trim.as_ref().and_then(|trim| trim.size);
        let wire = size.map_or(headers, |size| headers.max(size.get() as u32));
        if size.is_some() && victim.wire <= wire {
            return self.enqueue(now, number, Packet { priority: 0, ..victim }, agenda);
        }
        self.trims.0 += 1;
        self.trims.1 += u64::from(victim.wire - wire);
        self.record(now, number, EventKind::Trim, &victim);
        if let Content::Data { payload, .. } = &mut victim.content {
            *payload = 0;
        }
        self.enqueue(now, number, Packet { wire, priority: 0, ecn_capable: false, ..victim }, agenda);
    }

    /// Which priority of a port sends next: by the scheduler, or headers and data in turns where switches trim.
    fn turn(&mut self, number: usize) -> Option<usize> {
        let port = &self.ports[number];
        let ready: Vec<usize> = (0..port.queues.len())
            .filter(|priority| !port.queues[*priority].is_empty() && !port.pauses.forbids(*priority as u8))
            .collect();
        let weight = self.own.trim.as_ref().and_then(|trim| trim.header_weight);
        let (Some(weight), &[0, data, ..]) = (weight, &ready[..]) else {
            return self.dwrr[number].choose(self.config, &port.queues, &ready);
        };
        self.headers[number] += 1;
        if self.headers[number] <= weight {
            return Some(0);
        }
        self.headers[number] = 0;
        Some(data)
    }

    /// Whether an ingress may hold a packet more, and the buffer too.
    fn has_headroom(&self, packet: &Packet, most: u64) -> bool {
        let used: u64 = self.ports.iter().map(Port::waiting).sum();
        let total = match self.own.buffer {
            Buffer::Shared { total, .. } => total,
            _ => u64::MAX,
        };
        let wire = u64::from(packet.wire);
        used + wire <= total && self.held(packet.ingress, packet.priority) + wire <= most
    }

    fn on_completion(&mut self, now: Ps, number: usize, agenda: &mut Agenda) {
        if self.ports[number].link.in_service(now, None) > 0 {
            // A pause frame took the link at this very time.
            return;
        }
        self.ports[number].link.complete();
        if self.ports[number].frame_waits {
            self.tell(now, number, agenda);
            return;
        }
        let Some(priority) = self.turn(number) else { return };
        let port = &mut self.ports[number];
        let Some(mut packet) = port.queues[priority].pop_front() else { return };
        let left = bytes(&port.queues[priority]);
        if self.own.mark_at == MarkAt::Dequeue {
            self.mark(now, number, left, &mut packet);
        }
        self.send(now, number, packet.clone(), agenda);
        self.reconsider(now, &packet, agenda);
    }

    fn send(&mut self, now: Ps, port: usize, packet: Packet, agenda: &mut Agenda) {
        if let Some(lost) = self.ports[port].link.send(now, packet, agenda) {
            self.record(now, port, EventKind::Lost, &lost);
        }
    }

    /// Whether there is buffer for so many bytes in a queue.
    fn admits(&self, port: usize, priority: usize, more: u64) -> bool {
        match self.own.buffer {
            Buffer::Unlimited => true,
            Buffer::PerPortPackets { packets } => {
                let waiting = self.ports[port].queues.iter().map(VecDeque::len).sum::<usize>();
                waiting < packets as usize
            }
            Buffer::PerPort { bytes } => self.ports[port].waiting() + more <= bytes,
            Buffer::Shared { total, alpha: (numerator, denominator), reserve } => {
                // Lossless packets have their own buffer.
                let shared = |priority: usize| self.lossless & 1 << priority == 0;
                let of_port = |port: &Port| -> Vec<u64> {
                    let queues = port.queues.iter().enumerate();
                    queues.filter(|(priority, _)| shared(*priority)).map(|(_, queue)| bytes(queue)).collect()
                };
                let queues: Vec<u64> = self.ports.iter().flat_map(of_port).collect();
                let own: u64 = self.limits.iter().flatten().map(Limits::own).sum();
                let pool = total.saturating_sub(reserve * queues.len() as u64);
                let pool = pool.saturating_sub(own * u64::from(self.lossless.count_ones()));
                let used: u64 = queues.iter().map(|queue| queue.saturating_sub(reserve)).sum();
                let free = pool - used;
                let queue = bytes(&self.ports[port].queues[priority]);
                let (before, after) = (queue.saturating_sub(reserve), (queue + more).saturating_sub(reserve));
                let below = u128::from(before) * u128::from(denominator) < u128::from(free) * u128::from(numerator);
                after == 0 || below && after - before <= free
            }
        }
    }

    fn mark(&mut self, now: Ps, port: usize, queue: u64, packet: &mut Packet) {
        if packet.ecn_capable && self.is_beyond(port, queue) && !packet.marked {
            packet.marked = true;
            let marks = if self.leads_to_host[port] { &mut self.marks.0 } else { &mut self.marks.1 };
            *marks += 1;
            self.record(now, port, EventKind::Mark, packet);
        }
    }

    /// Whether a queue is so long that packets are marked.
    fn is_beyond(&mut self, port: usize, queue: u64) -> bool {
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
        match &self.own.ecn {
            Ecn::Off => false,
            Ecn::Step { at } => queue > size(*at),
            Ecn::Red { min, max, p } => red(*min, *max, *p),
            Ecn::RedByRate { rates } => {
                rates.iter().find(|at| at.rate.bps() == rate).is_some_and(|at| red(at.min, at.max, at.p))
            }
        }
    }

    /// Adds its part to the sums of the run.
    pub fn add_to(&self, totals: &mut Totals) {
        totals.packet_hops += self.arrived;
        totals.created_bytes += self.created;
        totals.consumed_bytes += self.consumed;
        totals.lossless_drops += self.lossless_drops;
        totals.drops += self.drops.0;
        totals.dropped_bytes += self.drops.1;
        totals.trims += self.trims.0;
        totals.trimmed_bytes += self.trims.1;
        totals.lost += self.lost.0;
        totals.lost_bytes += self.lost.1;
        totals.max_queue_bytes = totals.max_queue_bytes.max(self.max_queue);
        totals.marks_edge += self.marks.0;
        totals.marks_fabric += self.marks.1;
        for port in &self.ports {
            totals.left_bytes += port.waiting();
            totals.pauses += port.pauses.edges;
            totals.lost += port.link.lost.0;
            totals.lost_bytes += port.link.lost.1;
        }
    }
}
