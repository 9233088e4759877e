//! Signals: what the sender of a receiver-driven flow says apart from its data.

use super::Host;
use crate::fabric::{
    node::NodeContext,
    packet::{Kind, Packet},
};
use incast_cc::scheduler::{ReceiverScheduler, Signal};

/// The code of a signal in its packet.
const fn code(signal: Signal) -> u32 {
    match signal {
        Signal::Request => 0,
        Signal::Adjoint => 1,
        Signal::Busy => 2,
    }
}

/// What a packet says.
pub fn read(packet: &Packet) -> Signal {
    match packet.control().pair().0 {
        0 => Signal::Request,
        1 => Signal::Adjoint,
        _ => Signal::Busy,
    }
}

impl Host<'_> {
    /// Sender: says what a flow's law wants said.
    #[inline(never)]
    pub(super) fn say(&mut self, slot: u32, context: &mut impl NodeContext) {
        let settings = self.settings;
        while let Some(sender) = self.senders.get_mut(slot)
            && sender.capabilities.speaks
            && let Some(signal) = sender.law.take_signal()
        {
            let flow = &sender.flow;
            let class = &settings.classes[usize::from(flow.class)];
            let mut packet = Packet::new(Kind::Signal, self.node, flow.spec.destination, flow.sequence, slot);
            packet.control_mut().set_pair(code(signal), flow.packets);
            let mut data = packet.data_mut();
            // The only packet of a flow knows its size.
            data.set_payload(flow.payload(0, settings.host.mtu));
            data.set_sent(context.now());
            packet.ecmp_hash = flow.ecmp_hash;
            packet.wire = class.format.control() as u16;
            packet.priority = class.ack_priority;
            packet.class = flow.class;
            self.scatter(&mut packet);
            self.push_control(packet, None, context);
        }
    }

    /// Receiver: a signal arrived, maybe the first that is heard of a flow.
    #[cold]
    pub(super) fn on_signal(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let known = self.receiver.records.len();
        let (flow, in_progress) = self.receiver.on_signal(packet);
        if self.receiver.records.len() > known {
            self.announce(packet, flow, context);
        }
        let now = context.now();
        if in_progress {
            let signal = read(packet);
            self.with_scheduler_of(packet.class, context, |scheduler, send| {
                scheduler.on_signal(now, flow, signal, send);
                scheduler.next_timer()
            });
        } else {
            self.respond(Kind::Ack, packet, None, packet.data().packets(), (1, 0), now, context);
        }
        self.pump(context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_carried() {
        for signal in [Signal::Request, Signal::Adjoint, Signal::Busy] {
            let mut packet = Packet::new(Kind::Signal, 0, 1, 2, 3);
            packet.control_mut().set_pair(code(signal), 0);
            assert_eq!(read(&packet), signal);
        }
    }
}
