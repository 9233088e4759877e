//! Signals: packets of the sender half of a receiver-driven flow apart from data.

use super::{Host, receive::Response};
use crate::{
    fabric::node::NodeContext,
    packet::{Kind, Packet},
};
impl Host<'_> {
    /// Sender: sends the signals of a flow's law.
    #[inline(never)]
    pub(super) fn send_signals(&mut self, slot: u32, context: &mut impl NodeContext) {
        let settings = self.settings;
        while let Some(sender) = self.senders.get_mut(slot)
            && sender.capabilities.signals
            && let Some(signal) = sender.law.take_signal()
        {
            let flow = &sender.flow;
            let class = &settings.classes[usize::from(flow.class)];
            let mut packet = Packet::new(Kind::Signal, self.node, flow.spec.destination, flow.sequence, slot);
            packet.control_mut().set_pair(signal.into(), flow.packets);
            let mut data = packet.data_mut();
            // The only packet of a flow carries its size.
            data.set_payload(flow.payload(0, settings.host.mtu));
            data.set_sent(context.now());
            packet.ecmp_hash = flow.ecmp_hash;
            packet.wire = class.format.control() as u16;
            packet.priority = class.ack_priority;
            packet.class = flow.class;
            self.scatter(&mut packet);
            self.push_control(&mut packet, None, context);
        }
    }

    /// Receiver: a signal arrived, maybe the first packet of a flow.
    #[cold]
    pub(super) fn on_signal(&mut self, packet: &Packet, context: &mut impl NodeContext) {
        let known = self.receiver.records.len();
        let (flow, in_progress) = self.receiver.on_signal(packet);
        if self.receiver.records.len() > known {
            self.announce(packet, flow, context);
        }
        let now = context.now();
        if in_progress {
            let code = packet.control().pair().0 as u8;
            self.with_scheduler_of(packet.class, context, |scheduler, send| {
                scheduler.on_signal(now, flow, code, send);
                scheduler.next_timer()
            });
        } else {
            let (expected, report) = (packet.data().packets(), (1, 0));
            let answer =
                Response { kind: Kind::Ack, expected, report, is_duplicate: false, arrived: now, blocks: None };
            self.respond(&answer, packet, None, context);
        }
        self.pump(context);
    }
}
