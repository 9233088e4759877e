//! Hosts: the NIC, flows, reliability, and the adapters between packets and laws.

pub mod app;
pub mod format;
mod nic;
mod order;
mod receiving;
pub mod reliability;
mod rtt;
mod sending;
mod table;
mod tokens;

pub use self::sending::entropy;
use self::{
    app::{Application, FlowInfo},
    nic::Nic,
    order::Order,
    receiving::{Arrival, Receiving},
    reliability::{Acked, Received, SelectiveRepeat},
    sending::{SendFlow, Turn},
};
use crate::{
    config::FlowSpec,
    engine::{Event, prefetch::prefetch, queue::Key},
    fabric::{
        link::{Receiver, Transmitter},
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
        switch::{LINK_UP, NEW_EPOCH},
    },
    probe::{EventKind, RateSample, Recorder},
    settings::Settings,
};
use incast_cc::{
    Feedback,
    receiver::{self, Control, End, NewFlow, ReceiverScheduler, Scheduler, Share},
    sender::Recovery,
};
use incast_units::Time;

/// What the sender knows of a finished or abandoned flow.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// What it was asked to be; `request` as it came out.
    pub spec: FlowSpec,
    /// Flow number at this host.
    pub sequence: u32,
    /// When the last byte was acknowledged.
    pub acked: Option<Time>,
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Time that its packets were held by the underlay.
    pub held: Time,
}

/// Flows that a host can have open at once; they are named in events.
const MOST_FLOWS: usize = Key::PAYLOADS as usize;

/// A host.
#[derive(Debug)]
pub struct Host<'a> {
    settings: &'a Settings,
    nic: Nic,
    /// Flows that send; slots are reused.
    flows: Vec<Option<SendFlow>>,
    free: Vec<u32>,
    receiving: Receiving,
    scheduler: Scheduler,
    scheduler_event: Time,
    /// Flows to start, latest first.
    upcoming: Vec<FlowSpec>,
    application: Option<Box<dyn Application>>,
    next_sequence: u32,
    node: u32,
    base: u32,
    /// Finished flows.
    sent: Vec<Sent>,
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets sent.
    pub injected: u64,
    /// Recorded events.
    pub recorder: Recorder,
    next_sample: Time,
    samples: Vec<RateSample>,
    /// Frame bytes of control packets lost with a link that went down.
    lost: (u64, u64),
    /// Frame bytes put on the link, or into queues before it.
    created_bytes: u64,
}

impl<'a> Host<'a> {
    /// A host with its link, the flows that start at it, and what runs on it.
    pub fn new(
        settings: &'a Settings,
        node: u32,
        base: u32,
        link: Transmitter,
        input: Receiver,
        mut flows: Vec<FlowSpec>,
        mut application: Option<Box<dyn Application>>,
    ) -> Self {
        if let Some(application) = &mut application {
            application.on_start(&mut |spec| flows.push(FlowSpec { source: node, ..spec }));
        }
        flows.sort_by_key(|spec| spec.start);
        flows.reverse();
        Self {
            settings,
            nic: Nic::new(link, input),
            flows: Vec::new(),
            free: Vec::new(),
            receiving: Receiving::default(),
            scheduler: settings.host.scheduler.clone(),
            scheduler_event: Time::MAX,
            upcoming: flows,
            application,
            next_sequence: 0,
            node,
            base,
            sent: Vec::new(),
            arrived: 0,
            injected: 0,
            recorder: Recorder { on: settings.record, records: Vec::new() },
            next_sample: settings.rates.map_or(Time::MAX, |_| Time::ZERO),
            samples: Vec::new(),
            lost: (0, 0),
            created_bytes: 0,
        }
    }

    /// When the first flow starts.
    pub fn first_start(&self) -> Option<Time> {
        self.upcoming.last().map(|spec| spec.start)
    }

    fn event(&self, class: u8, slot: u32) -> Event {
        Event { class, entity: self.base, payload: slot }
    }

    // ---- Arrivals -------------------------------------------------------------------------------------------

    /// A packet arrived.
    #[inline]
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.arrived += 1;
        if !self.nic.input.accept(context.now(), packet, &self.nic.link) {
            self.recorder.packet(context.now(), self.node, 0, EventKind::Lost, packet);
            return;
        }
        match packet.kind {
            Kind::Data => self.on_data(packet, telemetry, context),
            Kind::Ack | Kind::Nack => self.on_ack(packet, telemetry, context),
            Kind::Cnp => self.on_notification(packet, context),
            Kind::Credit => self.on_credit(packet, context),
            Kind::Abandon => self.on_abandon(packet, context),
        }
    }

    /// Receiver: data.
    #[inline]
    fn on_data(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        let now = context.now();
        let class = &self.settings.classes[usize::from(packet.class)];
        let in_order_only = class.recovery == Recovery::GoBackN;
        let known = self.receiving.records.len();
        let arrival = self.receiving.on_data(now, packet, in_order_only);
        if !self.scheduler.is_none() && self.receiving.records.len() > known {
            self.announce(packet, &arrival, context);
        }
        if let (true, Some(interval)) = (packet.marked(), class.notification_interval) {
            self.notify(packet, &arrival, interval, now);
        }
        if arrival.received == Received::Refused {
            self.refuse(packet, &arrival, context);
        } else {
            self.acknowledge(packet, &arrival, telemetry, context);
        }
        if !self.scheduler.is_none() {
            self.consult_scheduler(packet, &arrival, context);
        }
        if arrival.completes {
            self.tell_end(arrival.flow, End::Complete, context);
            self.on_complete(packet, &arrival, context);
        }
        self.pump(context);
    }

    /// Answers a packet now, or remembers that one is owed.
    #[inline]
    fn acknowledge(
        &mut self,
        packet: &Packet,
        arrival: &Arrival,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let host = &self.settings.host;
        let at_once = host.ack_every <= 1
            || arrival.report.0 >= host.ack_every
            || arrival.out_of_order
            || arrival.completes
            || arrival.mark_changes
            || packet.is_last();
        if at_once {
            if let Some(progress) = self.receiving.progress(arrival.slot) {
                progress.pending = (0, 0);
            }
            let now = context.now();
            self.answer(Kind::Ack, packet, telemetry, arrival.expected, arrival.report, now);
            return;
        }
        let due = context.now() + host.ack_delay;
        let event = self.event(class::DELAYED_ACK, arrival.slot);
        if let Some(progress) = self.receiving.progress(arrival.slot) {
            progress.last = Some((*packet, context.now()));
            if progress.ack_event == Time::MAX {
                progress.ack_event = due;
                context.schedule(due, event);
            }
        }
    }

    /// Go-back-N: asks for the missing packet, once for each gap.
    fn refuse(&mut self, packet: &Packet, arrival: &Arrival, context: &mut impl NodeContext) {
        let Some(progress) = self.receiving.progress(arrival.slot) else { return };
        let report = std::mem::take(&mut progress.pending);
        if !std::mem::replace(&mut progress.nacked, true) {
            self.answer(Kind::Nack, packet, None, arrival.expected, report, context.now());
        }
    }

    /// Queues an answer to a data packet that arrived at `arrived`; it echoes the telemetry.
    #[inline]
    fn answer(
        &mut self,
        kind: Kind,
        data: &Packet,
        telemetry: Option<&Telemetry>,
        expected: u32,
        report: (u32, u32),
        arrived: Time,
    ) {
        let class = &self.settings.classes[usize::from(data.class)];
        let mut answer = Packet::new(kind, self.node, data.source, data.sequence, data.slot);
        answer.position = data.position;
        answer.packets = expected;
        answer.entropy = data.reverse_entropy();
        let share = if self.scheduler.is_none() { None } else { self.share_of(data) };
        answer.set_echo(data.stamp(), share);
        answer.delay_ns = (arrived.saturating_sub(data.stamp()).ps() / 1000).min(i32::MAX as u64) as i32;
        answer.set_way(data.delay_ns, Time::ZERO);
        answer.wire = class.format.control() as u16;
        answer.priority = class.ack_priority;
        answer.class = data.class;
        answer.set_report(report.0, report.1);
        self.push_control(answer, telemetry);
    }

    /// Notification point: answers a mark with a congestion notification packet, unless one was sent for the flow less
    /// than `interval` ago (Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015).
    fn notify(&mut self, data: &Packet, arrival: &Arrival, interval: Time, now: Time) {
        let Some(progress) = self.receiving.progress(arrival.slot) else { return };
        if now < progress.next_notification {
            return;
        }
        progress.next_notification = now.saturating_add(interval);
        let mut packet = Packet::new(Kind::Cnp, self.node, data.source, data.sequence, data.slot);
        packet.entropy = data.reverse_entropy();
        packet.set_value(u64::MAX);
        packet.wire = self.settings.classes[usize::from(data.class)].format.notification as u16;
        packet.class = data.class;
        self.push_control(packet, None);
    }

    #[inline]
    fn push_control(&mut self, packet: Packet, telemetry: Option<&Telemetry>) {
        self.created_bytes += u64::from(packet.wire);
        self.nic.push_control(&packet, telemetry);
    }

    fn on_delayed_ack(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(progress) = self.receiving.progress(slot) else { return };
        if progress.ack_event != now {
            return;
        }
        progress.ack_event = Time::MAX;
        let report = std::mem::take(&mut progress.pending);
        let expected = progress.expected();
        if let (true, Some((packet, arrived))) = (report.0 > 0, progress.last.take()) {
            self.answer(Kind::Ack, &packet, None, expected, report, arrived);
        }
        self.pump(context);
    }

    /// The last byte of a flow is here.
    #[cold]
    fn on_complete(&mut self, packet: &Packet, arrival: &Arrival, context: &mut impl NodeContext) {
        let Some(mut application) = self.application.take() else { return };
        let record = self.receiving.records[arrival.flow as usize];
        let flow = FlowInfo {
            source: record.source,
            sequence: record.sequence,
            destination: self.node,
            class: u16::from(packet.class),
            bytes: record.bytes,
        };
        application.on_received(context.now(), &flow, &mut |spec| self.open(spec, context));
        self.application = Some(application);
    }

    /// Sender: an acknowledgement, positive or negative.
    #[inline]
    fn on_ack(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        let now = context.now();
        let settings = self.settings;
        let mtu = settings.host.mtu;
        let slot = packet.slot;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.sequence != packet.sequence {
            // The slot has a new tenant: this answers a duplicate of a finished flow.
            return;
        }
        let (before, sent) = (flow.send.acked(), packet.echo(now));
        if let Some(share) = packet.share() {
            flow.share = Some(share);
        }
        let acked = match packet.kind {
            Kind::Nack => flow.send.on_nack(packet.packets),
            _ => flow.send.on_ack(packet.position, packet.packets, sent.ps()),
        };
        let rtt = now - sent;
        flow.rtt.sample(rtt);
        let (packets, marked) = packet.report();
        let feedback = Feedback {
            now,
            acked_bytes: payload_of(&acked, flow, mtu),
            packets,
            marked,
            acked: flow.position(flow.send.acked(), mtu),
            next: flow.position(flow.send.unsent(), mtu),
            in_flight: flow.in_flight(mtu),
            rtt,
            app_limited: flow.app_limited(before),
            endpoint_delay: Some(packet.endpoint_delay()),
            hops: Some(packet.hops()),
            one_way_delay: Some(i64::from(packet.delay_ns) * 1000),
            telemetry: telemetry.map_or(&[], Telemetry::hops),
            sender_count: flow.share.map(|share| u16::try_from(share.senders()).unwrap_or(u16::MAX)),
        };
        flow.law.on_ack(&feedback);
        flow.report_loss(now, &acked, mtu);
        flow.refresh(settings);
        if flow.stage.is_some() {
            flow.report_delay(now, sent, i64::from(packet.delay_ns) * 1000);
        }
        if flow.send.is_done() {
            self.finish(slot, context);
        } else {
            if acked.packets > 0 {
                flow.backoff = 0;
                flow.probed = false;
                flow.restart_timer(now, settings);
            }
            self.offer(slot, context);
        }
        self.pump(context);
    }

    fn on_notification(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let granted = Some(packet.value()).filter(|window| *window != u64::MAX);
        if let Some(Some(flow)) = self.flows.get_mut(packet.slot as usize)
            && flow.sequence == packet.sequence
        {
            flow.law.on_cnp(context.now(), granted);
            flow.refresh(self.settings);
            self.offer(packet.slot, context);
            self.pump(context);
        }
    }

    /// Sender: an order of the receiver's scheduler.
    fn on_credit(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let (now, settings, slot) = (context.now(), self.settings, packet.slot);
        let Some((order, priority)) = Order::read(packet) else { return };
        let tenant = self.flows.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(flow) = tenant.filter(|flow| flow.sequence == packet.sequence) else {
            if self.settings.host.give_up_after.is_some() {
                self.repeat_farewell(packet, context);
            }
            return;
        };
        if let Some(priority) = priority.filter(|priority| *priority != flow.priority) {
            // It stands in another line from now on.
            if std::mem::take(&mut flow.queued) {
                self.nic.remove_flow(slot, flow.priority);
            }
            flow.priority = priority;
        }
        match order {
            Order::Credit(position) => {
                flow.law.on_credit(now, position);
                flow.refresh(settings);
            }
            Order::Token(wanted, lifetime) => flow.on_token(now, wanted, lifetime, settings),
            Order::Resend(first, count) => flow.on_resend(now, first, count, settings),
            Order::Share(share) => flow.share = Some(share),
        }
        self.offer(slot, context);
        self.pump(context);
    }

    // ---- Receiver-driven scheduling -------------------------------------------------------------------------

    fn consult_scheduler(&mut self, packet: &Packet, arrival: &Arrival, context: &mut impl NodeContext) {
        let record = self.receiving.records[arrival.flow as usize];
        let mtu = u64::from(self.settings.host.mtu);
        // The packet carries the flow's length in packets; only its last one says how short that is.
        let size = u64::from(packet.packets) * mtu;
        let seen = receiver::Arrival {
            now: context.now(),
            flow: arrival.flow,
            position: u64::from(packet.position) * mtu,
            bytes: u32::from(packet.payload),
            expected: (u64::from(arrival.expected) * mtu).min(size),
            remaining: if arrival.expected == packet.packets { 0 } else { size.saturating_sub(record.bytes) },
            marked: packet.marked(),
            duplicate: arrival.received == Received::Duplicate,
        };
        self.with_scheduler(context, |scheduler, send| scheduler.on_data(&seen, send));
    }

    /// Tells the scheduler of a flow whose first packet this is, before the packet is acknowledged.
    #[cold]
    fn announce(&mut self, packet: &Packet, arrival: &Arrival, context: &mut impl NodeContext) {
        let mss = self.settings.host.mtu;
        let bytes = match packet.packets {
            // The only packet of a flow knows its size.
            1 => u64::from(packet.payload),
            packets => u64::from(packets) * u64::from(mss),
        };
        let new = NewFlow { now: context.now(), flow: arrival.flow, source: packet.source, bytes, mss };
        self.with_scheduler(context, |scheduler, send| scheduler.on_flow(&new, send));
    }

    /// Tells the scheduler that a flow has ended.
    fn tell_end(&mut self, flow: u32, end: End, context: &mut impl NodeContext) {
        if !self.scheduler.is_none() {
            let now = context.now();
            self.with_scheduler(context, |scheduler, send| scheduler.on_end(now, flow, end, send));
        }
    }

    /// What the acknowledgement of a packet says of the flow's share.
    fn share_of(&mut self, data: &Packet) -> Option<Share> {
        let flow = self.receiving.find(data);
        self.scheduler.share(flow)
    }

    /// The sender has given a flow up.
    fn on_abandon(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        if let Some(flow) = self.receiving.on_abandon(packet) {
            self.tell_end(flow, End::Abandoned, context);
            self.pump(context);
        }
    }

    /// Asks the scheduler, sends what it wants sent, and sees to it that its timer is not missed.
    fn with_scheduler(
        &mut self,
        context: &mut impl NodeContext,
        ask: impl FnOnce(&mut Scheduler, &mut dyn FnMut(Control)),
    ) {
        let mut scheduler = std::mem::take(&mut self.scheduler);
        ask(&mut scheduler, &mut |control| self.send_control(&control));
        self.scheduler = scheduler;
        self.plan_scheduler(context);
    }

    /// Sends what the scheduler wants sent to the sender of one of its flows.
    fn send_control(&mut self, control: &Control) {
        let Some(about) = self.receiving.records.get(control.flow() as usize) else { return };
        let class = &self.settings.classes[usize::from(about.class)];
        let mut packet =
            Packet::new(Kind::Credit, self.node, about.source, about.sequence, about.sender_slot);
        packet.entropy = about.reverse_entropy;
        let (order, priority) = Order::of(control, self.settings.host.mtu);
        order.write(priority, &mut packet);
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        packet.class = about.class;
        self.push_control(packet, None);
    }

    fn plan_scheduler(&mut self, context: &mut impl NodeContext) {
        let next = self.scheduler.next_timer();
        if next < self.scheduler_event {
            self.scheduler_event = next.max(context.now());
            context.schedule(self.scheduler_event, self.event(class::SCHEDULER, 0));
        }
    }

    // ---- Flows of this host ---------------------------------------------------------------------------------

    /// Adds a flow that starts now or later.
    fn open(&mut self, spec: FlowSpec, context: &mut impl NodeContext) {
        let classes = self.settings.classes.len();
        assert!(
            spec.bytes > 0 && usize::from(spec.class) < classes && spec.destination != self.node,
            "an application opened an impossible flow: {spec:?}"
        );
        let spec = FlowSpec { source: self.node, start: spec.start.max(context.now()), ..spec };
        // Latest first; of flows that start together the one opened first comes first.
        let place = self.upcoming.partition_point(|other| other.start > spec.start);
        self.upcoming.insert(place, spec);
        if place + 1 == self.upcoming.len() {
            context.schedule(spec.start, self.event(class::FLOW_START, 0));
        }
    }

    fn on_flow_start(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        while let Some(spec) = self.upcoming.pop_if(|spec| spec.start <= now) {
            self.start(FlowSpec { start: now, ..spec }, context);
        }
        if let Some(next) = self.first_start() {
            context.schedule(next, self.event(class::FLOW_START, 0));
        }
        self.pump(context);
    }

    fn start(&mut self, mut spec: FlowSpec, context: &mut impl NodeContext) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if spec.request == FlowSpec::OWN_REQUEST {
            spec.request = u64::from(self.node) << 32 | u64::from(sequence);
        }
        let class = &self.settings.classes[usize::from(spec.class)];
        let mut flow = SendFlow::new(self.settings, class, spec, sequence);
        flow.restart_timer(context.now(), self.settings);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                assert!(self.flows.len() < MOST_FLOWS, "more than {MOST_FLOWS} flows open at one host");
                self.flows.push(None);
                self.flows.len() as u32 - 1
            }
        };
        self.flows[slot as usize] = Some(flow);
        self.offer(slot, context);
    }

    /// The sender knows that everything has arrived.
    fn finish(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(flow) = self.remove(slot) else { return };
        let info = FlowInfo {
            source: self.node,
            sequence: flow.sequence,
            destination: flow.spec.destination,
            class: flow.spec.class,
            bytes: flow.spec.bytes,
        };
        self.sent.push(summary(&flow, Some(context.now())));
        if let Some(mut application) = self.application.take() {
            application.on_acked(context.now(), &info, &mut |spec| self.open(spec, context));
            self.application = Some(application);
        }
    }

    /// Takes a flow out of its slot and of the NIC's line.
    fn remove(&mut self, slot: u32) -> Option<SendFlow> {
        let flow = self.flows[slot as usize].take()?;
        self.free.push(slot);
        if flow.queued {
            self.nic.remove_flow(slot, flow.priority);
        }
        Some(flow)
    }

    /// Gives a flow up, and tells its receiver.
    #[cold]
    fn abandon(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(flow) = self.remove(slot) else { return };
        self.sent.push(summary(&flow, None));
        let mut packet = Packet::new(Kind::Abandon, self.node, flow.spec.destination, flow.sequence, slot);
        (packet.entropy, packet.class) = (flow.entropy, flow.class);
        self.push_farewell(packet);
        self.pump(context);
    }

    /// The receiver asks for a flow that is gone: that it was given up is said again, as the first time may have been lost.
    #[cold]
    fn repeat_farewell(&mut self, credit: &Packet, context: &mut impl NodeContext) {
        let mut packet = Packet::new(Kind::Abandon, self.node, credit.source, credit.sequence, credit.slot);
        (packet.entropy, packet.class) = (credit.reverse_entropy(), credit.class);
        self.push_farewell(packet);
        self.pump(context);
    }

    fn push_farewell(&mut self, mut packet: Packet) {
        let class = &self.settings.classes[usize::from(packet.class)];
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        self.push_control(packet, None);
    }

    /// Lets a flow stand in the NIC's line, or wait for its time.
    #[inline]
    fn offer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        let timer = flow.law.next_timer();
        if timer < flow.law_event {
            flow.law_event = timer;
            let event = Event { class: class::LAW, entity: self.base, payload: slot };
            context.schedule(timer.max(context.now()), event);
        }
        if flow.queued {
            plan_timer(flow, slot, self.base, context);
            return;
        }
        // Asking may hand packets to the underlay, which starts the timer.
        let turn = flow.turn(context.now(), self.node, slot, settings);
        plan_timer(flow, slot, self.base, context);
        match turn {
            Turn::Ready => {
                flow.queued = true;
                self.nic.push_flow(slot, flow.priority);
            }
            Turn::At(time) if time < flow.release_event => {
                flow.release_event = time;
                context.schedule(time, Event { class: class::RELEASE, entity: self.base, payload: slot });
            }
            Turn::At(_) | Turn::Blocked => {}
        }
    }

    /// NIC: sends the next packet if the link is free, and sees to it that it is looked at again.
    #[inline]
    fn pump(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        if self.nic.departure || !self.nic.link.is_up() {
            return;
        }
        if self.nic.link.idle(now) {
            if let Some(mut packet) = self.nic.pop_control() {
                self.injected += 1;
                if matches!(packet.kind, Kind::Ack | Kind::Nack) {
                    packet.set_endpoint_delay(now.saturating_sub(packet.data_arrival(now)));
                }
                let telemetry = self.nic.telemetry(&packet);
                if !self.nic.link.send(now, &packet, telemetry.as_ref(), context) {
                    self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
                }
            } else {
                while let Some(slot) = self.nic.pop_flow() {
                    if self.send_from(slot, context) {
                        break;
                    }
                }
            }
        }
        if self.nic.has_work() {
            self.nic.departure = true;
            context.schedule(self.nic.link.free_at().max(now), self.event(class::DEPARTURE, 0));
        }
    }

    /// Sends a packet of a flow whose turn it is; false if it may no longer send.
    #[inline]
    fn send_from(&mut self, slot: u32, context: &mut impl NodeContext) -> bool {
        let now = context.now();
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return false };
        flow.queued = false;
        let mut sent = false;
        if flow.turn(now, self.node, slot, settings) == Turn::Ready
            && let Some(packet) = flow.take(now, self.node, slot, settings)
        {
            self.created_bytes += u64::from(packet.wire);
            self.injected += 1;
            if !self.nic.link.send(now, &packet, None, context) {
                self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
            }
            sent = true;
        }
        self.offer(slot, context);
        sent
    }

    // ---- Events ---------------------------------------------------------------------------------------------

    /// An event of this host has come.
    pub fn on_event(&mut self, event: Event, context: &mut impl NodeContext) {
        match event.class {
            class::DEPARTURE => {
                self.nic.departure = false;
                self.pump(context);
            }
            class::RETRANSMISSION => self.on_timer(event.payload, context),
            class::RELEASE => self.on_release(event.payload, context),
            class::LAW => self.on_law_timer(event.payload, context),
            class::DELAYED_ACK => self.on_delayed_ack(event.payload, context),
            class::SCHEDULER => self.on_scheduler_timer(context),
            class::FLOW_START => self.on_flow_start(context),
            class::LINK => self.on_link(event.payload, context),
            class::GATE => self.on_gate(context),
            _ => {}
        }
    }

    fn on_release(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.release_event != context.now() {
            return;
        }
        flow.release_event = Time::MAX;
        self.offer(slot, context);
        self.pump(context);
    }

    fn on_law_timer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.law_event != now {
            return;
        }
        flow.law_event = Time::MAX;
        if flow.law.next_timer() <= now {
            flow.law.on_timer(now);
            flow.refresh(self.settings);
        }
        self.offer(slot, context);
        self.pump(context);
    }

    fn on_scheduler_timer(&mut self, context: &mut impl NodeContext) {
        let now = context.now();
        if self.scheduler_event != now {
            return;
        }
        self.scheduler_event = Time::MAX;
        self.with_scheduler(context, |scheduler, send| {
            if scheduler.next_timer() <= now {
                scheduler.on_timer(now, send);
            }
        });
        self.pump(context);
    }

    /// A flow's deadline may have come.
    fn on_timer(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let settings = self.settings;
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        if flow.timer_event != now {
            return;
        }
        flow.timer_event = Time::MAX;
        if flow.deadline > now {
            plan_timer(flow, slot, self.base, context);
            return;
        }
        let is_probe = flow.may_probe() && flow.rtt.probe_timeout(Time::ZERO).is_some();
        if is_probe && flow.send.prober().is_some_and(SelectiveRepeat::probe) {
            flow.probed = true;
        } else if flow.send.in_flight() > 0 || flow.send.next().is_none() {
            flow.timeouts += 1;
            flow.backoff = flow.backoff.saturating_add(1);
            flow.probed = false;
            flow.on_timeout(now, settings);
            let packet = Packet::new(Kind::Data, self.node, flow.spec.destination, flow.sequence, slot);
            self.recorder.packet(now, self.node, 0, EventKind::Timeout, &packet);
        } else if is_probe {
            // Nothing is in flight that could be probed for: the timeout proper decides.
            flow.probed = flow.waits_for_credit(now, settings.host.mtu);
        } else if flow.waits_for_credit(now, settings.host.mtu) {
            flow.timeouts += 1;
            flow.backoff = flow.backoff.saturating_add(1);
            flow.go_on_without_credit(now, settings);
            let packet = Packet::new(Kind::Data, self.node, flow.spec.destination, flow.sequence, slot);
            self.recorder.packet(now, self.node, 0, EventKind::Timeout, &packet);
        }
        if settings.host.give_up_after.is_some_and(|limit| flow.backoff >= limit) {
            self.abandon(slot, context);
            return;
        }
        flow.restart_timer(now, settings);
        self.offer(slot, context);
        self.pump(context);
    }

    /// Forbids the NIC to send the priorities of `mask`.
    fn pause(&mut self, mask: u8, now: Time) {
        let mask = mask & u8::MAX >> (8 - self.settings.switch.priorities);
        let paused = self.nic.permission.pause(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, paused, EventKind::Pause);
    }

    /// Allows it again.
    fn resume(&mut self, mask: u8, context: &mut impl NodeContext) {
        let now = context.now();
        let resumed = self.nic.permission.resume(now, mask, &mut self.nic.pauses);
        self.recorder.edges(now, self.node, 0, resumed, EventKind::Resume);
        self.pump(context);
    }

    /// The NIC's gate opens or closes.
    fn on_gate(&mut self, context: &mut impl NodeContext) {
        let Some(gate) = self.settings.host.gate else { return };
        let (open, next) = gate.at(context.now());
        if open {
            self.resume(gate.priorities, context);
        } else {
            self.pause(gate.priorities, context.now());
        }
        context.schedule(next, self.event(class::GATE, 0));
    }

    fn on_link(&mut self, payload: u32, context: &mut impl NodeContext) {
        if payload == NEW_EPOCH {
            return;
        }
        let (now, up) = (context.now(), payload == LINK_UP);
        self.nic.link.switch(up);
        self.nic.input.switch(now, up);
        if up {
            self.pump(context);
            return;
        }
        for packet in self.nic.drain_control() {
            self.lost.0 += 1;
            self.lost.1 += u64::from(packet.wire);
            self.recorder.packet(now, self.node, 0, EventKind::Lost, &packet);
        }
    }

    /// This host will be needed soon: asks for its flows and, when those are `near`, for what they point to.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        self.receiving.prefetch(near);
    }

    /// A packet will arrive soon: asks for its flow.
    #[inline]
    pub fn prefetch_packet(&self, packet: &Packet) {
        if packet.kind != Kind::Data
            && let Some(flow) = self.flows.get(packet.slot as usize)
        {
            prefetch(std::ptr::from_ref(flow), 8);
        }
    }

    // ---- Measurement ----------------------------------------------------------------------------------------

    /// When the next sample is due.
    #[inline]
    pub fn next_sample(&self) -> Time {
        self.next_sample
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self) {
        let Some((every, least)) = self.settings.rates else { return };
        let (time, mtu) = (self.next_sample, self.settings.host.mtu);
        for flow in self.flows.iter_mut().flatten().filter(|flow| flow.spec.bytes >= least) {
            let acked = flow.position(flow.send.acked(), mtu);
            let (window_bytes, assigned_bps) = flow.assigned(self.settings.base_rtt);
            let measured = (acked - flow.sampled) as f64 * 8.0 / every.as_secs_f64();
            flow.sampled = acked;
            self.samples.push(RateSample {
                time,
                source: self.node,
                sequence: flow.sequence,
                assigned_bps,
                measured_bps: measured as u64,
                window_bytes,
            });
        }
        self.next_sample = time + every;
    }

    /// What was sampled until `end`, the time included.
    pub fn take_samples(&mut self, end: Time) -> Vec<RateSample> {
        while self.next_sample <= end {
            self.sample();
        }
        std::mem::take(&mut self.samples)
    }

    /// Records of all flows that this host started, finished or not.
    pub fn sent(&self) -> Vec<Sent> {
        let unfinished = self.flows.iter().flatten().map(|flow| summary(flow, None));
        self.sent.iter().copied().chain(unfinished).collect()
    }

    /// Flows whose time did not come before the end.
    pub fn unstarted(&self) -> usize {
        self.upcoming.len()
    }

    /// Records of all flows that arrived here.
    pub fn received(&self) -> &[receiving::Arrived] {
        &self.receiving.records
    }

    /// Pause edges and paused time of its NIC, until `now`.
    pub fn pauses(&self, now: Time) -> (u64, Time) {
        (self.nic.pauses.edges(), self.nic.pauses.paused(now))
    }

    /// Its node.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Both ends of its link.
    pub fn link(&self) -> (&Transmitter, &Receiver) {
        (&self.nic.link, &self.nic.input)
    }

    /// Control packets and their bytes lost with a link.
    pub fn lost(&self) -> (u64, u64) {
        self.lost
    }

    /// Frame bytes that wait in it.
    pub fn waiting_bytes(&self) -> u64 {
        self.nic.waiting_bytes()
    }

    /// Every byte that was made was sent, or waits, or was lost.
    pub fn conserves(&self) -> bool {
        // Packets in an underlay's stage are not made before they reach the NIC.
        self.created_bytes == self.nic.link.sent_bytes() + self.nic.waiting_bytes() + self.lost.1
    }
}

fn summary(flow: &SendFlow, acked: Option<Time>) -> Sent {
    Sent {
        spec: flow.spec,
        sequence: flow.sequence,
        acked,
        retransmitted_bytes: flow.retransmitted_bytes,
        timeouts: flow.timeouts,
        held: flow.held,
    }
}

/// Payload bytes of newly acknowledged packets.
#[inline]
fn payload_of(acked: &Acked, flow: &SendFlow, mtu: u32) -> u64 {
    let full = u64::from(acked.packets) * u64::from(mtu);
    if acked.last { full - u64::from(mtu - flow.last_payload()) } else { full }
}

/// Sees to it that a flow's deadline is looked at.
#[inline]
fn plan_timer(flow: &mut SendFlow, slot: u32, base: u32, context: &mut impl NodeContext) {
    if flow.deadline < flow.timer_event {
        flow.timer_event = flow.deadline;
        context.schedule(flow.deadline, Event { class: class::RETRANSMISSION, entity: base, payload: slot });
    }
}
