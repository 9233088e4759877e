//! A host: its NIC, the flows it sends and the flows it receives.

use super::{
    Content, Flow, Packet, Ps,
    agenda::{Agenda, What},
    frames::{base_rtt, control_bytes},
    link::Link,
    pause::Pauses,
    sender::{Sender, Sent, Turn},
};
use incast_cc::{
    Cnp,
    law::{Framing, Recovery},
    message::{Instruction, Message},
    registry::Scheduler,
    scheduler::Arrival,
};
use incast_sim::{
    Config, FlowSpec,
    application::{Application, FlowInfo},
    config::ClassConfig,
    outcome::{EventKind, EventRecord, Totals},
    packet::reverse_hash,
};
use incast_units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A flow that arrives here.
#[derive(Debug, Default)]
struct Inbox {
    /// Number in the order of first packets.
    index: u32,
    /// All packets below have arrived.
    expected: u32,
    /// One past the highest that has arrived.
    highest: u32,
    /// What has arrived beyond `expected`.
    arrived: BTreeSet<u32>,
    delivered: Option<Ps>,
    bytes: u64,
    marked: u32,
    reordered: u32,
    /// Packets, and marked ones, that no acknowledgement has reported.
    unreported: (u32, u32),
    was_marked: bool,
    nacked: bool,
    next_notification: Ps,
    ack_due: Option<Ps>,
    latest: Option<(Packet, Ps)>,
}

impl Inbox {
    fn has(&self, packet: u32) -> bool {
        packet < self.expected || self.arrived.contains(&packet)
    }

    /// RFC 2018, section 4: the contiguous block of a packet that arrived beyond a gap, then the block before it. A block
    /// has at most 255 packets on each side of the packet, the second one 255 in all, less than 255 from the first.
    fn blocks(&self, packet: u32) -> Vec<(u32, u32)> {
        let run = |from: &mut dyn Iterator<Item = u32>, arrived: bool| {
            from.take(255).take_while(|other| self.arrived.contains(other) == arrived).count() as u32
        };
        let start = packet - run(&mut (self.expected..packet).rev(), true);
        let end = packet + 1 + run(&mut (packet + 1..self.highest), true);
        let gap = run(&mut (self.expected..start).rev(), false);
        let second_end = start - gap;
        let second = if gap < 255 { run(&mut (self.expected..second_end).rev(), true) } else { 0 };
        let mut blocks = vec![(start, end)];
        if second > 0 {
            blocks.push((second_end - second, second_end));
        }
        blocks
    }

    fn take(&mut self, packet: u32) {
        self.arrived.insert(packet);
        self.highest = self.highest.max(packet + 1);
        while self.arrived.remove(&self.expected) {
            self.expected += 1;
        }
    }
}

/// What is said of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    New,
    Duplicate,
    Negative,
}

/// See the module.
pub struct Host<'a> {
    config: &'a Config,
    node: u32,
    base_rtt: Ps,
    link: Link,
    pauses: Pauses,
    control: VecDeque<Packet>,
    /// Flows in line, by priority.
    line: Vec<VecDeque<u32>>,
    flows: BTreeMap<u32, Sender<'a>>,
    free_slots: Vec<u32>,
    slots: u32,
    next_sequence: u32,
    /// Flows that are to start.
    pub upcoming: VecDeque<FlowSpec>,
    application: Option<Box<dyn Application>>,
    finished: Vec<Flow>,
    inboxes: BTreeMap<(u32, u32), Inbox>,
    scheduler: Option<Scheduler>,
    arrived: u64,
    injected: u64,
    /// Control packets that waited when the link went down.
    lost_control: u64,
    /// Timeouts and losses.
    pub events: Vec<EventRecord>,
}

impl<'a> Host<'a> {
    /// A host with its link. Its flows start in the order of their times, then in that of the configuration.
    pub fn new(
        config: &'a Config,
        node: u32,
        mut links: Vec<Link>,
        mut application: Option<Box<dyn Application>>,
        agenda: &mut Agenda,
    ) -> Self {
        let mut upcoming: Vec<FlowSpec> = config.flows.iter().filter(|flow| flow.source == node).copied().collect();
        if let Some(application) = &mut application {
            application.on_start(&mut |spec| upcoming.push(FlowSpec { source: node, ..spec }));
        }
        upcoming.sort_by_key(|flow| flow.start);
        upcoming.iter().for_each(|flow| agenda.add(flow.start.ps(), node, 0, What::FlowStart));
        Self {
            config,
            node,
            base_rtt: base_rtt(config),
            link: links.remove(0),
            pauses: Pauses::new(node, 0, config.switch.pfc.as_ref().map_or(0, |pfc| pfc.response_delay.ps())),
            control: VecDeque::new(),
            line: vec![VecDeque::new(); 8],
            flows: BTreeMap::new(),
            free_slots: Vec::new(),
            slots: 0,
            next_sequence: 0,
            upcoming: upcoming.into(),
            application,
            finished: Vec::new(),
            inboxes: BTreeMap::new(),
            scheduler: config.host.schedulers.first().cloned(),
            arrived: 0,
            injected: 0,
            lost_control: 0,
            events: Vec::new(),
        }
    }

    /// Something happens. What is sent is chosen at the end of each instant.
    pub fn handle(&mut self, now: Ps, what: What, agenda: &mut Agenda) {
        if !matches!(what, What::Choice) {
            agenda.add(now, self.node, 0, What::Choice);
        }
        match what {
            What::Choice => self.choose(now, agenda),
            What::Link { up } => {
                self.link.switch(now, up);
                self.pauses.fail(now, &mut self.events);
                if !up {
                    for packet in std::mem::take(&mut self.control) {
                        self.lost_control += 1;
                        self.record(now, EventKind::Lost, &packet);
                    }
                }
            }
            What::Completion => self.link.complete(),
            What::Arrival(packet) => {
                self.arrived += 1;
                if self.link.receive(&packet) {
                    self.on_packet(now, &packet, agenda);
                } else {
                    self.record(now, EventKind::Lost, &packet);
                }
            }
            What::Retransmission { sequence, generation, .. } => self.on_deadline(now, sequence, generation, agenda),
            What::Release { sequence, generation, .. } => {
                if self.flows.get(&sequence).is_some_and(|flow| flow.release == generation) {
                    self.offer(now, sequence, agenda);
                }
            }
            What::Law { sequence, generation, .. } => {
                if let Some(flow) = self.flows.get_mut(&sequence).filter(|flow| flow.law_timer == generation) {
                    flow.law.on_timer(Time::from_ps(now));
                    flow.plan_gap(now);
                    self.offer(now, sequence, agenda);
                }
            }
            What::DelayedAck { flow } => self.on_delayed_ack(now, flow),
            What::FlowStart => self.on_flow_start(now, agenda),
            What::Pause { about, paused, failures } => {
                self.pauses.apply(now, about, paused, Some(failures), &mut self.events);
            }
        }
    }

    fn class(&self, packet: &Packet) -> &'a ClassConfig {
        &self.config.classes[usize::from(packet.class)]
    }

    fn on_packet(&mut self, now: Ps, packet: &Packet, agenda: &mut Agenda) {
        match packet.content {
            Content::Data { position, packets, payload, last } => {
                let name = (packet.from, packet.sequence);
                let inbox = self.inboxes.get(&name);
                let duplicate = inbox.is_some_and(|inbox| inbox.has(position));
                let had_all = inbox.is_some_and(|inbox| inbox.delivered.is_some());
                self.on_data(now, packet, position, packets, last, agenda);
                self.consult_scheduler(now, packet, position, packets, payload, duplicate);
                let Some(inbox) = self.inboxes.get(&name).filter(|inbox| !had_all && inbox.delivered.is_some()) else {
                    return;
                };
                let (destination, class, bytes) = (self.node, packet.class, inbox.bytes);
                let info = FlowInfo { source: packet.from, sequence: packet.sequence, destination, class, bytes };
                self.tell(now, agenda, |application, open| application.on_received(Time::from_ps(now), &info, open));
            }
            Content::Ack { .. } => {
                let Some(flow) = self.flows.get_mut(&packet.sequence) else { return };
                let news = flow.on_answer(now, packet);
                if flow.recovery.is_done() {
                    let FlowSpec { source, destination, class, bytes, .. } = flow.spec;
                    self.finished.push(flow.record(Some(now)));
                    self.free_slots.push(flow.slot);
                    self.flows.remove(&packet.sequence);
                    let info = FlowInfo { source, sequence: packet.sequence, destination, class, bytes };
                    self.tell(now, agenda, |application, open| application.on_acked(Time::from_ps(now), &info, open));
                    return;
                }
                if news {
                    self.restart_timer(now, packet.sequence, agenda);
                }
                self.offer(now, packet.sequence, agenda);
            }
            Content::Notification => {
                let Some(flow) = self.flows.get_mut(&packet.sequence) else { return };
                flow.law.on_cnp(Time::from_ps(now), &Cnp::CONGESTED);
                flow.plan_gap(now);
                self.offer(now, packet.sequence, agenda);
            }
            Content::Pause { about, paused } => {
                if self.pauses.receive(now, about, paused, agenda) {
                    self.pauses.apply(now, about, paused, None, &mut self.events);
                }
            }
            Content::Credit { position } => {
                let Some(flow) = self.flows.get_mut(&packet.sequence) else { return };
                flow.credit = flow.credit.max(position);
                self.offer(now, packet.sequence, agenda);
            }
        }
    }

    // ---- Receiver ------------------------------------------------------------------------------------------

    fn on_data(&mut self, now: Ps, packet: &Packet, position: u32, packets: u32, last: bool, agenda: &mut Agenda) {
        let (node, host) = (self.node, &self.config.host);
        let count = self.inboxes.len() as u32;
        let inbox = self
            .inboxes
            .entry((packet.from, packet.sequence))
            .or_insert_with(|| Inbox { index: count, ..Inbox::default() });
        inbox.marked += u32::from(packet.marked);
        if inbox.delivered.is_some() {
            let report = (1, u32::from(packet.marked));
            self.answer(now, packet, position, packets, report, Reply::Duplicate);
            return;
        }
        let interval = self.config.classes[usize::from(packet.class)].law.transport().notification_interval;
        if let Some(interval) = interval.filter(|_| packet.marked && now >= inbox.next_notification) {
            inbox.next_notification = now + interval.ps();
            self.push_control(packet, Content::Notification);
        }
        let Some(inbox) = self.inboxes.get_mut(&(packet.from, packet.sequence)) else { return };
        if matches!(packet.content, Content::Data { payload: 0, .. }) {
            // Trimmed: it is acknowledged only if it is here already.
            if inbox.has(position) {
                let expected = inbox.expected;
                let report = (1, u32::from(packet.marked));
                self.answer(now, packet, position, expected, report, Reply::Duplicate);
            }
            return;
        }
        let in_order_only = self.config.classes[usize::from(packet.class)].recovery == Recovery::GoBackN;
        inbox.reordered += u32::from(position + 1 < inbox.highest);
        inbox.unreported.0 += 1;
        inbox.unreported.1 += u32::from(packet.marked);
        let mark_changes = std::mem::replace(&mut inbox.was_marked, packet.marked) != packet.marked;
        if in_order_only && position > inbox.expected {
            let (report, expected) = (std::mem::take(&mut inbox.unreported), inbox.expected);
            if !std::mem::replace(&mut inbox.nacked, true) {
                self.answer(now, packet, position, expected, report, Reply::Negative);
            }
            return;
        }
        let duplicate = inbox.has(position);
        if !duplicate {
            inbox.take(position);
            let Content::Data { payload, .. } = packet.content else { return };
            inbox.bytes += u64::from(payload);
            inbox.nacked = false;
        }
        let expected = inbox.expected;
        if expected == packets {
            inbox.delivered = Some(now);
        }
        let gap = expected != position + 1 || inbox.highest != expected;
        let full = inbox.unreported.0 >= host.ack_every;
        if full || gap || mark_changes || last || duplicate || expected == packets {
            let report = std::mem::take(&mut inbox.unreported);
            let reply = if duplicate { Reply::Duplicate } else { Reply::New };
            self.answer(now, packet, position, expected, report, reply);
            return;
        }
        inbox.latest = Some((packet.clone(), now));
        if inbox.ack_due.is_none() {
            let due = now + host.ack_delay.ps();
            inbox.ack_due = Some(due);
            agenda.add(due, node, 0, What::DelayedAck { flow: inbox.index });
        }
    }

    fn on_delayed_ack(&mut self, now: Ps, index: u32) {
        let Some(inbox) = self.inboxes.values_mut().find(|inbox| inbox.index == index) else { return };
        if inbox.delivered.is_some() {
            return;
        }
        assert_eq!(inbox.ack_due.take(), Some(now));
        let (report, expected) = (std::mem::take(&mut inbox.unreported), inbox.expected);
        if let (true, Some((packet, arrived))) = (report.0 > 0, inbox.latest.take())
            && let Content::Data { position, .. } = packet.content
        {
            self.answer(arrived, &packet, position, expected, report, Reply::New);
            if let Some(Packet { content: Content::Ack { held_ns, .. }, .. }) = self.control.back_mut() {
                *held_ns = (now - arrived) / 1000;
            }
        }
    }

    fn answer(&mut self, arrived: Ps, data: &Packet, position: u32, expected: u32, report: (u32, u32), reply: Reply) {
        let packets = report.0.min(255);
        let marked = report.1.min(255);
        let delay_ns = (arrived - data.stamp) / 1000;
        let (hops, endpoint_ns, held_ns) = (data.links as u8 - 1, 0, 0);
        let (negative, duplicate) = (reply == Reply::Negative, reply == Reply::Duplicate);
        let inbox = self.inboxes.get(&(data.from, data.sequence));
        let is_tcp = self.class(data).law.info().framing == Framing::Tcp;
        let is_beyond = is_tcp && reply == Reply::New && position > expected;
        let blocks = inbox.filter(|_| is_beyond).map_or(Vec::new(), |inbox| inbox.blocks(position));
        let ack = Content::Ack {
            position,
            expected,
            blocks,
            packets,
            marked,
            delay_ns,
            negative,
            duplicate,
            hops,
            endpoint_ns,
            held_ns,
        };
        self.push_control(data, ack);
    }

    fn push_control(&mut self, about: &Packet, content: Content) {
        let class = self.class(about);
        let (priority, wire) = match content {
            // RoCEv2 with 16 reserved bytes.
            Content::Notification => (0, 18 + 20 + 8 + 16 + 16),
            Content::Ack { ref blocks, .. } if !blocks.is_empty() => {
                let option = 4 + 8 * blocks.len() as u32;
                (class.ack_priority.unwrap_or(class.priority), control_bytes(class) + option)
            }
            _ => (class.ack_priority.unwrap_or(class.priority), control_bytes(class)),
        };
        self.control.push_back(Packet {
            from: self.node,
            to: about.from,
            sequence: about.sequence,
            class: about.class,
            priority,
            wire,
            links: 0,
            ecmp_hash: reverse_hash(about.ecmp_hash),
            stamp: about.stamp,
            ingress: 0,
            started: 0,
            ecn_capable: false,
            marked: false,
            content,
        });
    }

    fn consult_scheduler(
        &mut self,
        now: Ps,
        packet: &Packet,
        position: u32,
        packets: u32,
        payload: u32,
        duplicate: bool,
    ) {
        let Some(inbox) = self.inboxes.get(&(packet.from, packet.sequence)) else { return };
        let Some(scheduler) = &mut self.scheduler else { return };
        let mtu = u64::from(self.config.host.mtu);
        // While a flow is incomplete its size is known in packets only.
        let missing = (u64::from(packets) * mtu).saturating_sub(inbox.bytes);
        let arrival = Arrival {
            now: Time::from_ps(now),
            flow: inbox.index,
            position: u64::from(position) * mtu,
            bytes: payload,
            expected: 0, // The only scheduler it runs does not look.
            remaining: if inbox.delivered.is_some() { 0 } else { missing },
            marked: packet.marked,
            duplicate,
        };
        let mut credits = Vec::new();
        scheduler.on_data(&arrival, &mut |_, body| credits.push(body));
        for body in credits {
            let Some(Instruction::Credit { position, priority: None }) = Instruction::decode(&body) else {
                panic!("the reference simulator has no {body:?}");
            };
            self.push_control(packet, Content::Credit { position });
        }
    }

    // ---- Sender --------------------------------------------------------------------------------------------

    /// A flow has ended: the application may open others.
    fn tell(
        &mut self,
        now: Ps,
        agenda: &mut Agenda,
        event: impl FnOnce(&mut dyn Application, &mut dyn FnMut(FlowSpec)),
    ) {
        let Some(application) = &mut self.application else { return };
        event(application.as_mut(), &mut |spec| {
            let start = spec.start.max(Time::from_ps(now));
            let place = self.upcoming.partition_point(|other| other.start <= start);
            self.upcoming.insert(place, FlowSpec { source: self.node, start, ..spec });
            agenda.add(start.ps(), self.node, 0, What::FlowStart);
        });
    }

    fn on_flow_start(&mut self, now: Ps, agenda: &mut Agenda) {
        while let Some(spec) = self.upcoming.pop_front_if(|spec| spec.start.ps() <= now) {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            // The place that was given back last is taken first.
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            self.flows.insert(sequence, Sender::new(self.config, self.base_rtt, spec, sequence, slot));
            self.restart_timer(now, sequence, agenda);
            self.offer(now, sequence, agenda);
        }
    }

    /// The timer runs while something is in flight, or credit is all that lacks.
    fn restart_timer(&mut self, now: Ps, sequence: u32, agenda: &mut Agenda) {
        let Some(flow) = self.flows.get_mut(&sequence) else { return };
        if flow.recovery.outstanding() > 0 || flow.lacks_credit() {
            self.set_deadline(now, sequence, agenda);
        } else {
            flow.retransmission += 1;
        }
    }

    fn set_deadline(&mut self, now: Ps, sequence: u32, agenda: &mut Agenda) {
        let Some(flow) = self.flows.get_mut(&sequence) else { return };
        let deadline = flow.deadline(now);
        self.set_deadline_at(deadline, sequence, agenda);
    }

    fn set_deadline_at(&mut self, deadline: Ps, sequence: u32, agenda: &mut Agenda) {
        let Some(flow) = self.flows.get_mut(&sequence) else { return };
        flow.retransmission += 1;
        let what = What::Retransmission { slot: flow.slot, sequence, generation: flow.retransmission };
        agenda.add(deadline, self.node, 0, what);
    }

    /// A new packet was sent while others were in flight: the probe is planned anew.
    fn plan_probe(&mut self, now: Ps, sequence: u32, agenda: &mut Agenda) {
        let Some(flow) = self.flows.get_mut(&sequence) else { return };
        if let Some(deadline) = flow.replan(now) {
            self.set_deadline_at(deadline, sequence, agenda);
        }
    }

    fn on_deadline(&mut self, now: Ps, sequence: u32, generation: u64, agenda: &mut Agenda) {
        let Some(flow) = self.flows.get_mut(&sequence).filter(|flow| flow.retransmission == generation) else {
            return;
        };
        if flow.only_holds() {
            flow.retransmission += 1;
            self.offer(now, sequence, agenda);
            return;
        }
        if let Some(deadline) = flow.put_off_probe() {
            self.set_deadline_at(deadline, sequence, agenda);
            self.offer(now, sequence, agenda);
            return;
        }
        if flow.on_deadline(now) {
            self.events.push(EventRecord {
                time: Time::from_ps(now),
                node: self.node,
                port: 0,
                kind: EventKind::Timeout,
                priority: 0,
                source: self.node,
                sequence,
            });
        }
        self.restart_timer(now, sequence, agenda);
        self.offer(now, sequence, agenda);
    }

    /// Puts a flow in line, or sets its timers.
    fn offer(&mut self, now: Ps, sequence: u32, agenda: &mut Agenda) {
        let Some(flow) = self.flows.get_mut(&sequence) else { return };
        let slot = flow.slot;
        flow.law_timer += 1;
        let due = flow.law.next_timer().ps().max(now);
        agenda.add(due, self.node, 0, What::Law { slot, sequence, generation: flow.law_timer });
        if flow.in_line {
            return;
        }
        flow.release += 1;
        match flow.decide(now) {
            Turn::Now => {
                flow.in_line = true;
                let priority = self.config.classes[usize::from(flow.spec.class)].priority;
                self.line[usize::from(priority)].push_back(sequence);
            }
            Turn::At(time) => {
                agenda.add(time, self.node, 0, What::Release { slot, sequence, generation: flow.release });
            }
            Turn::Blocked => {}
        }
    }

    /// Sends what is next if the link is free: control packets first, then flows in turn.
    fn choose(&mut self, now: Ps, agenda: &mut Agenda) {
        if self.link.busy(now) || !self.link.up {
            return;
        }
        let allowed = self.control.iter().position(|packet| !self.pauses.forbids(packet.priority));
        if let Some(mut packet) = allowed.and_then(|place| self.control.remove(place)) {
            if let Content::Ack { delay_ns, endpoint_ns, held_ns, .. } = &mut packet.content {
                // A field of 24 bits, and one of 16 beside it.
                let in_host = short((now - packet.stamp) / 1000 - *delay_ns, 24, 7);
                if *held_ns > 0 {
                    *endpoint_ns = short(in_host.saturating_sub(short(*held_ns, 24, 7)), 16, 10);
                    *held_ns = in_host - *endpoint_ns;
                } else {
                    *endpoint_ns = in_host;
                }
            }
            self.send(now, packet, agenda);
            return;
        }
        let paused = self.pauses.mask;
        let next = |line: &mut Vec<VecDeque<u32>>| {
            let allowed = line.iter_mut().enumerate().filter(|(priority, _)| paused & 1 << priority == 0);
            allowed.map(|(_, flows)| flows).find_map(VecDeque::pop_front)
        };
        while let Some(sequence) = next(&mut self.line) {
            // A flow that finished while it stood in line is gone.
            let Some(flow) = self.flows.get_mut(&sequence) else { continue };
            flow.in_line = false;
            let taken = flow.take(now);
            match taken {
                Some((_, Sent::First)) => self.set_deadline(now, sequence, agenda),
                Some((_, Sent::New)) => self.plan_probe(now, sequence, agenda),
                _ => {}
            }
            self.offer(now, sequence, agenda);
            if let Some((packet, _)) = taken {
                self.send(now, packet, agenda);
                return;
            }
        }
    }

    fn send(&mut self, now: Ps, packet: Packet, agenda: &mut Agenda) {
        self.injected += 1;
        if let Some(lost) = self.link.send(now, packet, agenda) {
            self.record(now, EventKind::Lost, &lost);
        }
    }

    fn record(&mut self, now: Ps, kind: EventKind, packet: &Packet) {
        self.events.push(EventRecord {
            time: Time::from_ps(now),
            node: self.node,
            port: 0,
            kind,
            priority: packet.priority,
            source: packet.flow_source(),
            sequence: packet.sequence,
        });
    }

    // ---- Results -------------------------------------------------------------------------------------------

    /// Records of all flows that it started.
    pub fn sent(&self) -> Vec<Flow> {
        let open = self.flows.values().map(|flow| flow.record(None));
        let done = self.finished.iter().map(|flow| Flow { ..*flow });
        open.chain(done).collect()
    }

    /// Fills in what it knows of a flow to it.
    pub fn add_arrivals(&self, flow: &mut Flow) {
        if let Some(inbox) = self.inboxes.get(&flow.name) {
            flow.delivered = inbox.delivered;
            flow.delivered_bytes = inbox.bytes;
            flow.marked = inbox.marked;
            flow.reordered = inbox.reordered;
        }
    }

    /// Adds its part to the sums of the run.
    pub fn add_to(&self, totals: &mut Totals) {
        totals.packet_hops += self.arrived;
        totals.pauses += self.pauses.edges;
        totals.injected_packets += self.injected;
        totals.injected_bytes += self.link.sent_bytes;
        totals.received_bytes += self.link.received_bytes;
        totals.lost += self.link.lost.0 + self.lost_control;
        totals.lost_bytes += self.link.lost.1;
    }
}

/// A time in so many bits: to the nanosecond below half of what they hold, to 2^`shift` ns from there on.
fn short(ns: u64, bits: u32, shift: u32) -> u64 {
    if ns < 1 << (bits - 1) { ns } else { ns >> shift << shift }
}
