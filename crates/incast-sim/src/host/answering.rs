//! Receiver: answers on their way through the NIC, which may take its time.

use super::Host;
use crate::{
    engine::Event,
    fabric::{
        node::{NodeContext, class},
        packet::{Kind, Packet, Telemetry},
    },
};
use incast_units::Time;
use std::collections::VecDeque;

/// Answers that the NIC is still working on, by how long that takes: acknowledgements and notifications.
#[derive(Debug, Default)]
pub struct Answers {
    acknowledgements: VecDeque<Pending>,
    notifications: VecDeque<Pending>,
}

/// When it is ready, what it is, and the telemetry that it echoes.
type Pending = (Time, Packet, Option<Telemetry>);

impl Answers {
    /// The line of a kind of packet.
    fn line(&mut self, kind: u32) -> &mut VecDeque<Pending> {
        if kind == NOTIFICATIONS { &mut self.notifications } else { &mut self.acknowledgements }
    }
}

/// Payloads of events.
const ACKNOWLEDGEMENTS: u32 = 0;
const NOTIFICATIONS: u32 = 1;

impl Host<'_> {
    /// Sends an answer to data that has just arrived, or was answered for, as soon as the NIC has it ready.
    #[inline(always)]
    pub(super) fn push_answer(
        &mut self,
        packet: Packet,
        telemetry: Option<&Telemetry>,
        context: &mut impl NodeContext,
    ) {
        let host = &self.settings.host;
        let delay = if packet.kind == Kind::Cnp { host.notification_delay } else { host.answer_delay };
        if delay == Time::ZERO {
            self.push_control(packet, telemetry, context);
        } else {
            self.hold_answer(packet, telemetry, delay, context);
        }
    }

    #[cold]
    fn hold_answer(
        &mut self,
        packet: Packet,
        telemetry: Option<&Telemetry>,
        delay: Time,
        context: &mut impl NodeContext,
    ) {
        let kind = if packet.kind == Kind::Cnp { NOTIFICATIONS } else { ACKNOWLEDGEMENTS };
        let ready = context.now().saturating_add(delay);
        let line = self.answers.get_or_insert_default().line(kind);
        line.push_back((ready, packet, telemetry.copied()));
        if line.len() == 1 {
            context.schedule(ready, Event { class: class::ANSWER, entity: self.base, payload: kind });
        }
    }

    #[cold]
    pub(super) fn on_answers(&mut self, kind: u32, context: &mut impl NodeContext) {
        let now = context.now();
        let mut ready = Vec::new();
        if let Some(answers) = &mut self.answers {
            let line = answers.line(kind);
            while let Some(pending) = line.pop_front_if(|pending| pending.0 <= now) {
                ready.push(pending);
            }
            if let Some((next, ..)) = line.front() {
                context.schedule(*next, Event { class: class::ANSWER, entity: self.base, payload: kind });
            }
        }
        for (_, packet, telemetry) in ready {
            self.push_control(packet, telemetry.as_ref(), context);
        }
        self.pump(context);
    }
}
