//! Handshake: with [`HostConfig::handshake`](crate::config::HostConfig::handshake) a sender asks for a connection and sends nothing else
//! before the answer is back (RFC 9293, section 3.5). Both packets are as long as acknowledgements and take their turns and queues.

use super::{Host, timeout::plan_timer};
use crate::{
    fabric::{
        node::NodeContext,
        packet::{Kind, Packet},
    },
    probe::EventKind,
};
use incast_units::Time;

/// Retransmission timeout before there is an RTT: RFC 6298, section 2.
const FIRST_TIMEOUT: Time = Time::from_ms(1000);
/// It is not doubled more often than this.
const MOST_BACKOFF: u8 = 6;

impl Host<'_> {
    /// Sender: a flow starts with the question whether it may.
    #[cold]
    pub(super) fn ask_to_open(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        flow.close();
        flow.deadline =
            context.now().saturating_add(FIRST_TIMEOUT.saturating_mul(1 << flow.backoff.min(MOST_BACKOFF)));
        plan_timer(flow, slot, self.base, context);
        let class = &self.settings.classes[usize::from(flow.class)];
        let mut packet = Packet::new(Kind::Open, self.node, flow.spec.destination, flow.sequence, slot);
        packet.entropy = flow.entropy;
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        packet.class = flow.class;
        packet.set_stamp(context.now());
        self.scatter(&mut packet);
        self.push_control(packet, None, context);
        self.pump(context);
    }

    /// Sender: no answer came.
    #[cold]
    pub(super) fn open_again(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(Some(flow)) = self.flows.get_mut(slot as usize) else { return };
        flow.timeouts += 1;
        flow.backoff = flow.backoff.saturating_add(1);
        let packet = Packet::new(Kind::Open, self.node, flow.spec.destination, flow.sequence, slot);
        self.recorder.packet(context.now(), self.node, 0, EventKind::Timeout, &packet);
        self.ask_to_open(slot, context);
    }

    /// Receiver: answers each question, as it keeps nothing of a flow that has no data yet.
    #[cold]
    pub(super) fn on_open(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        let mut answer = Packet::new(Kind::Accept, self.node, packet.source, packet.sequence, packet.slot);
        answer.entropy = packet.reverse_entropy();
        answer.set_echo(packet.stamp(), None);
        answer.wire = class.format.control() as u16;
        answer.priority = class.ack_priority;
        answer.class = packet.class;
        self.push_answer(answer, None, context);
        self.pump(context);
    }

    /// Sender: the connection is open.
    #[cold]
    pub(super) fn on_accept(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let (now, settings, slot) = (context.now(), self.settings, packet.slot);
        let rate = self.nic.link.rate();
        let tenant = self.flows.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(flow) = tenant.filter(|flow| flow.sequence == packet.sequence && flow.opening) else {
            return;
        };
        flow.open(now, now - packet.echo(now), rate, settings);
        self.offer(slot, context);
        self.pump(context);
    }
}
