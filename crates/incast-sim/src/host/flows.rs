//! Sender: flows start, finish, or are given up.

use super::{Host, Sent, sending::SendFlow, turns::leave_line};
use crate::application::FlowInfo;
use crate::{
    config::FlowSpec,
    engine::queue::Key,
    fabric::{
        node::{NodeContext, class},
        packet::{Kind, Packet},
    },
};
use incast_units::Time;

/// Flows that a host can have open at once; they are named in events.
const MOST_FLOWS: usize = Key::PAYLOADS as usize;

impl Host<'_> {
    /// Adds a flow that starts now or later.
    pub(super) fn open(&mut self, spec: FlowSpec, context: &mut impl NodeContext) {
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

    pub(super) fn on_flow_start(&mut self, context: &mut impl NodeContext) {
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
        let rate = self.nic.link.rate();
        let stage = self.stages.of(class, spec.class as u8, rate, spec.destination, context.now());
        let mut flow = SendFlow::new(self.settings, class, rate, spec, sequence, stage);
        flow.restart_timer(context.now(), self.settings);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                assert!(self.flows.len() < MOST_FLOWS, "more than {MOST_FLOWS} flows open at one host");
                self.flows.push(None);
                self.flows.len() as u32 - 1
            }
        };
        let opens = self.settings.host.handshake && !flow.driven;
        self.flows[slot as usize] = Some(flow);
        if opens {
            return self.ask_to_open(slot, context);
        }
        if self.schedules {
            self.say(slot, context);
        }
        self.offer(slot, context);
    }

    /// The sender knows that everything has arrived.
    pub(super) fn finish(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(flow) = self.remove(slot) else { return };
        let info = FlowInfo {
            source: self.node,
            sequence: flow.sequence,
            destination: flow.spec.destination,
            class: flow.spec.class,
            bytes: flow.spec.bytes,
        };
        self.sent.push(summary(&flow, context.now(), Some(context.now())));
        if let Some(waiting) = &flow.waiting {
            self.offer_first(waiting.stage, context);
        }
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
            leave_line(&flow, slot, &mut self.nic);
        }
        if let Some(waiting) = &flow.waiting {
            self.stages.forget(&self.settings.classes[usize::from(flow.class)], waiting.stage, slot);
        }
        Some(flow)
    }

    /// Gives a flow up, and tells its receiver.
    #[cold]
    pub(super) fn abandon(&mut self, slot: u32, context: &mut impl NodeContext) {
        let Some(flow) = self.remove(slot) else { return };
        self.sent.push(summary(&flow, context.now(), None));
        if let Some(waiting) = &flow.waiting {
            self.offer_first(waiting.stage, context);
        }
        let mut packet = Packet::new(Kind::Abandon, self.node, flow.spec.destination, flow.sequence, slot);
        (packet.entropy, packet.class) = (flow.entropy, flow.class);
        self.push_farewell(packet, context);
        self.pump(context);
    }

    /// The receiver asks for a flow that is gone: that it was given up is said again, as the first time may have been lost.
    #[cold]
    pub(super) fn repeat_farewell(&mut self, credit: &Packet, context: &mut impl NodeContext) {
        let mut packet = Packet::new(Kind::Abandon, self.node, credit.source, credit.sequence, credit.slot);
        (packet.entropy, packet.class) = (credit.reverse_entropy(), credit.class);
        self.push_farewell(packet, context);
        self.pump(context);
    }

    fn push_farewell(&mut self, mut packet: Packet, context: &mut impl NodeContext) {
        let class = &self.settings.classes[usize::from(packet.class)];
        packet.wire = class.format.control() as u16;
        packet.priority = class.ack_priority;
        self.push_control(packet, None, context);
    }
}

/// What is known of a flow at `now`, when everything was acknowledged or the flow is given up.
pub(super) fn summary(flow: &SendFlow, now: Time, acked: Option<Time>) -> Sent {
    Sent {
        spec: flow.spec,
        sequence: flow.sequence,
        acked,
        retransmitted_bytes: flow.retransmitted_bytes,
        timeouts: flow.timeouts,
        held: flow.waiting.as_ref().map_or(Time::ZERO, |waiting| waiting.held(now)),
    }
}
