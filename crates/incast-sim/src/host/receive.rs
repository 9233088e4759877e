//! Receiving: packets that arrive for flows to this host, and the responses.

use super::Host;
use crate::{
    application::FlowInfo,
    fabric::node::{NodeContext, class},
    packet::{Kind, Packet, Telemetry},
    receiver::{
        Arrival,
        acknowledge::{AckDecision, DelayedAck},
    },
    recovery::{Blocks, Received},
};
use incast_cc::{
    Cnp,
    agent::Codepoint,
    law::{Acknowledges, Recovery},
    scheduler::End,
};
use incast_units::Time;

/// The content of an acknowledgement, positive or negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    /// ACK or NACK.
    pub kind: Kind,
    /// All packets below have arrived.
    pub expected: u32,
    /// Packets that it reports on, and marked ones.
    pub report: (u32, u32),
    /// The packet had arrived before.
    pub is_duplicate: bool,
    /// When the packet arrived.
    pub arrived: Time,
    /// SACK blocks, beyond a gap.
    pub blocks: Option<Blocks>,
}

impl Response {
    /// The acknowledgement of a packet that has arrived now.
    #[inline(always)]
    fn to(arrival: &Arrival, now: Time) -> Self {
        Self {
            kind: Kind::Ack,
            expected: arrival.expected,
            report: arrival.report,
            is_duplicate: arrival.received == Received::Duplicate,
            arrived: now,
            blocks: None,
        }
    }
}

impl Host<'_> {
    /// A data packet.
    #[inline(never)]
    pub(super) fn on_data(&mut self, packet: &Packet, telemetry: Option<&Telemetry>, context: &mut impl NodeContext) {
        let now = context.now();
        let class = &self.settings.classes[usize::from(packet.class)];
        if class.reports {
            self.report(packet, context);
        }
        let known = self.receiver.records.len();
        let arrival = self.receiver.on_data(now, packet, class.recovery == Recovery::GoBackN);
        if self.schedules && self.receiver.records.len() > known {
            self.announce(packet, arrival.flow, context);
        }
        if let (true, Some(interval)) = (packet.codepoint() != Codepoint::None, class.notification_interval) {
            self.notify(packet, &arrival, interval, context);
        }
        if arrival.received == Received::Refused {
            if let Some(report) = self.receiver.refuse(&arrival) {
                let nack = Response { kind: Kind::Nack, report, ..Response::to(&arrival, now) };
                self.respond(&nack, packet, telemetry, context);
            }
        } else if !self.schedules || self.needs_ack(packet, &arrival) {
            self.acknowledge(packet, &arrival, telemetry, context);
        }
        if self.schedules {
            self.consult_scheduler(packet, &arrival, context);
        }
        if arrival.completes {
            self.report_end(arrival.flow, End::Complete, context);
            self.on_complete(packet, &arrival, context);
        }
        self.pump(context);
    }

    /// A packet is to be acknowledged. Where only flows are acknowledged, that is the last one that was missing, and
    /// those that come after it.
    #[inline]
    fn needs_ack(&self, packet: &Packet, arrival: &Arrival) -> bool {
        let class = &self.settings.classes[usize::from(packet.class)];
        class.transport.acknowledges == Acknowledges::Packets || arrival.completes || arrival.is_late()
    }

    /// The header of a data packet that a switch has trimmed. A packet that is missing is not acknowledged; the
    /// scheduler decides what to do about it. One that has arrived before is acknowledged again, since its sender sent
    /// it again.
    #[inline(never)]
    pub(super) fn on_header(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        let known = self.receiver.records.len();
        let arrival = self.receiver.on_header(packet);
        if self.schedules && self.receiver.records.len() > known {
            self.announce(packet, arrival.flow, context);
        }
        if let (true, Some(interval)) = (packet.codepoint() != Codepoint::None, class.notification_interval) {
            self.notify(packet, &arrival, interval, context);
        }
        let is_duplicate = arrival.received == Received::Duplicate;
        if is_duplicate && (!self.schedules || self.needs_ack(packet, &arrival)) {
            self.respond(&Response::to(&arrival, context.now()), packet, None, context);
        }
        if self.schedules {
            self.consult_scheduler(packet, &arrival, context);
        }
        self.pump(context);
    }

    /// Acknowledges a packet now or later.
    #[inline(never)]
    fn acknowledge(
        &mut self,
        packet: &Packet,
        arrival: &Arrival,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let report = match self.receiver.acknowledge(now, packet, arrival, &self.settings.host) {
            AckDecision::Now => arrival.report,
            AckDecision::Split => match self.receiver.split_ack(packet, arrival) {
                Some(split) => {
                    self.send_delayed_ack(&split.earlier, context);
                    split.own
                }
                None => arrival.report,
            },
            AckDecision::Later(event) => {
                if let Some(time) = event {
                    context.schedule(time, self.event(class::DELAYED_ACK, arrival.slot));
                }
                return;
            }
        };
        let blocks = if arrival.out_of_order { self.blocks(packet, arrival) } else { None };
        self.respond(&Response { report, blocks, ..Response::to(arrival, now) }, packet, telemetry, context);
    }

    /// The SACK blocks of the acknowledgement of a packet beyond a gap.
    #[inline(never)]
    fn blocks(&mut self, packet: &Packet, arrival: &Arrival) -> Option<Blocks> {
        let is_beyond = arrival.received == Received::New && packet.data().position() > arrival.expected;
        let has_blocks = is_beyond && self.settings.classes[usize::from(packet.class)].format.blocks;
        if has_blocks { self.receiver.blocks(arrival.slot, packet.data().position()) } else { None }
    }

    #[cold]
    fn send_delayed_ack(&mut self, ack: &DelayedAck, context: &mut impl NodeContext) {
        let DelayedAck { expected, report, arrived, .. } = *ack;
        let response = Response { kind: Kind::Ack, expected, report, is_duplicate: false, arrived, blocks: None };
        self.respond(&response, &ack.data, None, context);
    }

    /// A delayed acknowledgement is due.
    #[inline(never)]
    pub(super) fn on_delayed_ack(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(ack) = self.receiver.on_delayed_ack(context.now(), slot) else { return };
        self.send_delayed_ack(&ack, context);
        self.pump(context);
    }

    /// Sends the response to a data packet. It echoes the telemetry.
    #[inline(always)]
    pub(super) fn respond(
        &mut self,
        answer: &Response,
        data: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let &Response { kind, expected, report, is_duplicate, arrived, blocks } = answer;
        let class = &self.settings.classes[usize::from(data.class)];
        let mut response = Packet::new(kind, self.node, data.data().source(), data.sequence, data.slot);
        response.ecmp_hash = data.reverse_hash();
        let view = data.data();
        let sent = if self.schedules { view.sent_before(arrived) } else { view.sent() };
        let tag = if class.tags_acks { self.ack_tag(data) } else { None };
        let delay = self.one_way_delay(sent, arrived);
        let mut ack = response.ack_mut();
        ack.set_position(view.position());
        ack.set_cumulative(expected);
        ack.set_echo(sent, tag);
        ack.set_one_way_delay_ns(delay);
        ack.set_path(view.links(), context.now() - arrived);
        ack.set_report(report.0, report.1);
        ack.set_duplicate(is_duplicate);
        let option = blocks.map_or(0, |blocks| ack.set_blocks(blocks));
        response.wire = (class.format.control() + option) as u16;
        response.priority = class.ack_priority;
        response.class = data.class;
        self.push_response(&mut response, telemetry, context);
    }

    /// Sends a congestion notification for a marked packet, if one is due.
    fn notify(&mut self, data: &Packet, arrival: &Arrival, interval: Time, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(data.class)];
        let cnp: Option<Cnp> = self.receiver.notify(context.now(), data, arrival, interval, class);
        let Some(cnp) = cnp else { return };
        let mut packet = Packet::new(Kind::Cnp, self.node, data.data().source(), data.sequence, data.slot);
        packet.ecmp_hash = data.reverse_hash();
        packet.set_cnp(&cnp);
        packet.wire = class.format.notification as u16;
        packet.priority = class.notification_priority;
        packet.class = data.class;
        self.push_response(&mut packet, None, context);
    }

    /// Reports the one-way delay of a data packet to the sender's underlay.
    #[inline(never)]
    fn report(&mut self, data: &Packet, context: &mut impl NodeContext) {
        let now = context.now();
        let class = &self.settings.classes[usize::from(data.class)];
        let sent = data.data().sent_before(now);
        let delay = self.one_way_delay(sent, now);
        let mut report = Packet::new(Kind::Report, self.node, data.data().source(), data.sequence, data.slot);
        report.ecmp_hash = data.reverse_hash();
        let mut ack = report.ack_mut();
        ack.set_position(data.data().position());
        ack.set_echo(sent, None);
        ack.set_one_way_delay_ns(delay);
        report.wire = class.format.control() as u16;
        report.priority = class.ack_priority;
        report.class = data.class;
        self.push_response(&mut report, None, context);
    }

    /// From when data was sent, by the simulation's time, until this host's clock showed that it arrived, in
    /// nanoseconds. The sender corrects it by its own clock's error.
    #[inline]
    fn one_way_delay(&self, sent: Time, arrived: Time) -> i32 {
        let true_delay = arrived.saturating_sub(sent).ps();
        if self.clock.is_none() {
            return (true_delay / 1000).min(i32::MAX as u64) as i32;
        }
        let ns = (true_delay as i64 + self.clock_error(arrived)).div_euclid(1000);
        ns.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    /// Sends a response now, or after the delay of the NIC.
    #[inline(always)]
    pub(super) fn push_response(
        &mut self,
        packet: &mut Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let host = &self.settings.host;
        let delay = if packet.kind == Kind::Cnp { host.notification_delay } else { host.response_delay };
        if delay == Time::ZERO {
            self.push_control(packet, telemetry, context);
        } else {
            self.delay_response(packet, telemetry, delay, context);
        }
    }

    #[cold]
    fn delay_response(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        delay: Time,
        context: &mut impl NodeContext,
    ) {
        let ready = context.now().saturating_add(delay);
        let delayed = self.delayed_responses.get_or_insert_default();
        if let Some(queue) = delayed.push(ready, packet, telemetry) {
            context.schedule(ready, self.event(class::RESPONSE, queue));
        }
    }

    /// Delayed responses are ready.
    #[cold]
    pub(super) fn on_delayed_responses(&mut self, queue: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(mut delayed) = self.delayed_responses.take() else { return };
        let mut ready = Vec::new();
        while let Some(response) = delayed.pop(now, queue) {
            ready.push(response);
        }
        if let Some(next) = delayed.next_ready(queue) {
            context.schedule(next, self.event(class::RESPONSE, queue));
        }
        self.delayed_responses = Some(delayed);
        for (mut packet, telemetry) in ready {
            self.push_control(&mut packet, telemetry.as_ref(), context);
        }
        self.pump(context);
    }

    /// A SYN: answered each time, as there is no state for a flow that has sent no data yet.
    #[cold]
    pub(super) fn on_syn(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        let mut response = Packet::new(Kind::SynAck, self.node, packet.data().source(), packet.sequence, packet.slot);
        response.ecmp_hash = packet.reverse_hash();
        response.ack_mut().set_echo(packet.data().sent(), None);
        response.wire = class.format.control() as u16;
        response.priority = class.ack_priority;
        response.class = packet.class;
        self.push_response(&mut response, None, context);
        self.pump(context);
    }

    /// The sender has given a flow up.
    #[inline(never)]
    pub(super) fn on_rst(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        if let Some(flow) = self.receiver.on_rst(packet) {
            self.report_end(flow, End::Abandoned, context);
            self.pump(context);
        }
    }

    /// The last byte of a flow has arrived.
    #[cold]
    fn on_complete(&mut self, packet: &Packet, arrival: &Arrival, context: &mut impl NodeContext) {
        let Some(mut application) = self.application.take() else { return };
        let record = self.receiver.records[arrival.flow as usize];
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
}
