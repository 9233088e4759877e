//! Receiver: data arrived. It is acknowledged at once or later, refused, or answered with a notification.

use super::{Host, receiving::Arrival};
use crate::{application::FlowInfo, recovery::Received};
use crate::{
    config::Echo,
    fabric::{
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
    },
};
use incast_cc::{
    Cnp,
    receiver::End,
    sender::{Acknowledges, Recovery},
    switch::Codepoint,
};
use incast_units::Time;

impl Host<'_> {
    /// Receiver: data.
    #[inline(never)]
    pub(super) fn on_data(
        &mut self,
        packet: &Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let class = &self.settings.classes[usize::from(packet.class)];
        let in_order_only = class.recovery == Recovery::GoBackN;
        if class.reports {
            self.report(packet, context);
        }
        let known = self.receiving.records.len();
        let arrival = self.receiving.on_data(now, packet, in_order_only);
        if self.schedules && self.receiving.records.len() > known {
            self.announce(packet, arrival.flow, context);
        }
        if let (true, Some(interval)) = (packet.codepoint() != Codepoint::None, class.notification_interval) {
            self.notify(packet, &arrival, interval, context);
        }
        if arrival.received == Received::Refused {
            self.refuse(packet, &arrival, telemetry, context);
        } else if !self.schedules || self.owes_answer(packet, &arrival) {
            self.acknowledge(packet, &arrival, telemetry, context);
        }
        if self.schedules {
            self.consult_scheduler(packet, &arrival, context);
        }
        if arrival.completes {
            self.tell_end(arrival.flow, End::Complete, context);
            self.on_complete(packet, &arrival, context);
        }
        self.pump(context);
    }

    /// A packet is to be acknowledged; where flows are, the last one that was missing, and those that come after it.
    #[inline]
    fn owes_answer(&self, packet: &Packet, arrival: &Arrival) -> bool {
        let class = &self.settings.classes[usize::from(packet.class)];
        class.transport.acknowledges == Acknowledges::Packets || arrival.completes || arrival.is_late()
    }

    /// Receiver: the header of a data packet that a switch has trimmed. The packet is missing: it is not acknowledged, and what
    /// to do about it is up to the scheduler. One that is here already is acknowledged again, since its sender seems not to
    /// know.
    #[inline(never)]
    pub(super) fn on_header(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        let known = self.receiving.records.len();
        let arrival = self.receiving.on_header(packet);
        if self.schedules && self.receiving.records.len() > known {
            self.announce(packet, arrival.flow, context);
        }
        if let (true, Some(interval)) = (packet.codepoint() != Codepoint::None, class.notification_interval) {
            self.notify(packet, &arrival, interval, context);
        }
        let is_here = arrival.received == Received::Duplicate;
        if is_here && (!self.schedules || self.owes_answer(packet, &arrival)) {
            self.answer(Kind::Ack, packet, None, arrival.expected, arrival.report, context.now(), context);
        }
        if self.schedules {
            self.consult_scheduler(packet, &arrival, context);
        }
        self.pump(context);
    }

    /// Answers a packet now, or remembers that one is owed.
    #[inline(never)]
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
            || packet.is_last()
            || packet.position < host.quick_acks;
        if at_once {
            if arrival.mark_changes && arrival.report.0 > 1 && host.echo == Echo::Flag {
                return self.acknowledge_apart(packet, arrival, telemetry, context);
            }
            if let Some(progress) = self.receiving.progress(arrival.slot) {
                progress.pending = (0, 0);
            }
            let now = context.now();
            self.answer(Kind::Ack, packet, telemetry, arrival.expected, arrival.report, now, context);
            return;
        }
        let due = host.expiry(context.now() + host.ack_delay);
        let event = self.event(class::DELAYED_ACK, arrival.slot);
        if let Some(progress) = self.receiving.progress(arrival.slot) {
            progress.last = Some((*packet, context.now()));
            if progress.ack_event == Time::MAX {
                progress.ack_event = due;
                context.schedule(due, event);
            }
        }
    }

    /// The marks have changed: those before this packet are acknowledged first, with the flag that they had, and then this one. So a
    /// sender that sees flags alone knows of each mark (RFC 8257, section 3.2).
    #[cold]
    fn acknowledge_apart(
        &mut self,
        packet: &Packet,
        arrival: &Arrival,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let now = context.now();
        let own = (1, u32::from(packet.marked()));
        let earlier = (arrival.report.0 - own.0, arrival.report.1 - own.1);
        let last = self.receiving.progress(arrival.slot).and_then(|progress| {
            progress.pending = (0, 0);
            progress.last.take()
        });
        match last {
            Some((last, arrived)) => {
                // Packets wait for their acknowledgement only where they came in order.
                let expected = arrival.expected.min(last.position + 1);
                self.answer(Kind::Ack, &last, None, expected, earlier, arrived, context);
                self.answer(Kind::Ack, packet, telemetry, arrival.expected, own, now, context);
            }
            None => {
                self.answer(Kind::Ack, packet, telemetry, arrival.expected, arrival.report, now, context);
            }
        }
    }

    /// Go-back-N: asks for the missing packet, once for each gap.
    #[cold]
    fn refuse(
        &mut self,
        packet: &Packet,
        arrival: &Arrival,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let Some(progress) = self.receiving.progress(arrival.slot) else { return };
        let report = std::mem::take(&mut progress.pending);
        if !std::mem::replace(&mut progress.nacked, true) {
            self.answer(Kind::Nack, packet, telemetry, arrival.expected, report, context.now(), context);
        }
    }

    /// Queues an answer to a data packet that arrived at `arrived`; it echoes the telemetry.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn answer(
        &mut self,
        kind: Kind,
        data: &Packet,
        telemetry: Option<&Telemetry>,
        expected: u32,
        report: (u32, u32),
        arrived: Time,
        context: &mut impl NodeContext,
    ) {
        let class = &self.settings.classes[usize::from(data.class)];
        let mut answer = Packet::new(kind, self.node, data.source, data.sequence, data.slot);
        answer.position = data.position;
        answer.packets = expected;
        answer.entropy = data.reverse_entropy();
        let sent = if self.schedules { data.sent_at(arrived) } else { data.stamp() };
        let share = if class.tells_shares { self.share_of(data) } else { None };
        answer.set_echo(sent, share);
        answer.delay_ns = self.delay_of(sent, arrived);
        answer.set_way(data.delay_ns, Time::ZERO);
        answer.wire = class.format.control() as u16;
        answer.priority = class.ack_priority;
        answer.class = data.class;
        answer.set_report(report.0, report.1);
        self.push_answer(answer, telemetry, context);
    }

    /// Notification point: answers a mark with a congestion notification packet, unless one was sent for the flow less
    /// than `interval` ago (Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015). It says
    /// CE if any packet did since the last one, and UE likewise (the simulator of Y. Zhang et al., "Congestion Detection
    /// in Lossless Networks", SIGCOMM 2021).
    fn notify(&mut self, data: &Packet, arrival: &Arrival, interval: Time, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(progress) = self.receiving.progress(arrival.slot) else { return };
        match data.codepoint() {
            Codepoint::CongestionExperienced => progress.congested = true,
            // That of a port that leads to a host: the scheduler takes care of those.
            _ if self.settings.classes[usize::from(data.class)].tells_edge_marks => return,
            _ => progress.undetermined = true,
        }
        if now < progress.next_notification {
            return;
        }
        progress.next_notification = now.saturating_add(interval);
        let congested = std::mem::take(&mut progress.congested);
        let undetermined = std::mem::take(&mut progress.undetermined);
        let mut packet = Packet::new(Kind::Cnp, self.node, data.source, data.sequence, data.slot);
        packet.entropy = data.reverse_entropy();
        packet.set_cnp(&Cnp { congested, undetermined, window: None });
        let class = &self.settings.classes[usize::from(data.class)];
        packet.wire = class.format.notification as u16;
        packet.priority = class.notification_priority;
        packet.class = data.class;
        self.push_answer(packet, None, context);
    }

    /// Hands a control packet to the NIC. Where it is known when its transmission starts, it is on its way at once, so that
    /// neither a queue nor an event is needed.
    #[inline]
    pub(super) fn push_control(
        &mut self,
        packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        self.created_bytes += u64::from(packet.wire);
        let settings = self.settings;
        match self.nic.start_of_control(context.now(), settings.undisturbed_until, settings.lookahead) {
            Some(start) => self.put_control_on_link(packet, telemetry, start, context),
            None => self.nic.push_control(&packet, telemetry),
        }
    }

    #[inline(never)]
    pub(super) fn on_delayed_ack(&mut self, slot: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let Some(progress) = self.receiving.progress(slot) else { return };
        if progress.ack_event != now {
            return;
        }
        progress.ack_event = Time::MAX;
        let report = std::mem::take(&mut progress.pending);
        let expected = progress.expected();
        if let (true, Some((packet, arrived))) = (report.0 > 0, progress.last.take()) {
            self.answer(Kind::Ack, &packet, None, expected, report, arrived, context);
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
}
