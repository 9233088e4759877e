//! Keeps a constant amount of credit ahead of what has arrived: the simplest receiver-driven protocol, for tests.

use super::{Arrival, Control, ReceiverScheduler};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct WindowCredit {
    /// Bytes that each flow may be ahead.
    pub ahead: u64,
    /// Priority of what is sent on credit; `None` leaves it to the flow's class.
    pub priority: Option<u8>,
}

impl ReceiverScheduler for WindowCredit {
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) {
        if arrival.remaining > 0 {
            let position = arrival.position + u64::from(arrival.bytes) + self.ahead;
            send(Control::Credit { flow: arrival.flow, position, priority: self.priority });
        }
    }
    fn priorities(&self) -> u8 {
        self.priority.map_or(0, |priority| priority + 1)
    }
}
