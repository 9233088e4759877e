//! Response delay: acknowledgements and notifications that the NIC sends after a configured time.

use crate::packet::{Kind, Packet, Telemetry};
use incast_units::Time;
use std::collections::VecDeque;

/// Responses that wait. Each queue has one delay, so that its responses get ready in order.
#[derive(Debug, Default)]
pub struct ResponseDelay {
    acknowledgements: VecDeque<Response>,
    notifications: VecDeque<Response>,
}

/// When it is ready, the packet, and the telemetry that it echoes.
type Response = (Time, Packet, Option<Telemetry>);

/// Payloads of events: which queue has a packet ready.
const ACKNOWLEDGEMENTS: u32 = 0;
const NOTIFICATIONS: u32 = 1;

impl ResponseDelay {
    fn queue(&mut self, number: u32) -> &mut VecDeque<Response> {
        if number == NOTIFICATIONS { &mut self.notifications } else { &mut self.acknowledgements }
    }

    /// Delays a packet until `ready`. Returns the number of its queue if that needs an event then.
    pub fn push(&mut self, ready: Time, packet: &Packet, telemetry: Option<&Telemetry>) -> Option<u32> {
        let number = if packet.kind == Kind::Cnp { NOTIFICATIONS } else { ACKNOWLEDGEMENTS };
        let queue = self.queue(number);
        queue.push_back((ready, *packet, telemetry.copied()));
        (queue.len() == 1).then_some(number)
    }

    /// The next packet of a queue, if it is ready.
    pub fn pop(&mut self, now: Time, queue: u32) -> Option<(Packet, Option<Telemetry>)> {
        let (_, packet, telemetry) = self.queue(queue).pop_front_if(|response| response.0 <= now)?;
        Some((packet, telemetry))
    }

    /// When the next packet of a queue is ready.
    pub fn next_ready(&mut self, queue: u32) -> Option<Time> {
        self.queue(queue).front().map(|response| response.0)
    }
}
