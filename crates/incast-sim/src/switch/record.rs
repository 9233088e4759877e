//! Sums and records of a switch: marks, drops, losses.

use super::{All, Features, Switch, Transit};
use crate::{
    fabric::{node::NodeContext, queue::Ingress},
    packet::Packet,
    probe::EventKind,
};
use incast_cc::agent::Codepoint;
use incast_units::Time;

/// Sums of one switch.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Packets that arrived.
    pub arrived: u64,
    /// The longest egress queue, the packet in service included.
    pub max_queue_bytes: u64,
    /// Marked packets.
    pub marks: u64,
    /// Those of them that were marked at ports that lead to hosts.
    pub marks_edge: u64,
    /// Bytes of control packets made here.
    pub created_bytes: u64,
    /// Bytes of frames that ended here.
    pub consumed_bytes: u64,
    /// Packets and bytes dropped for lack of buffer.
    pub dropped: (u64, u64),
    /// Packets whose payload was cut off, and the bytes cut off.
    pub trimmed: (u64, u64),
    /// Headers returned to their sender.
    pub bounces: u64,
    /// Packets of lossless priorities among those dropped.
    pub lossless_drops: u64,
    /// Packets and bytes without a route, or queued at a link that went down.
    pub lost: (u64, u64),
    /// Deflected packets.
    pub deflections: u64,
}

impl Counters {
    /// Updates the longest queue. A branch: the maximum changes rarely.
    #[inline(always)]
    pub(super) fn update_max_queue(&mut self, bytes: u64) {
        if bytes > self.max_queue_bytes {
            self.max_queue_bytes = bytes;
        }
    }
}

impl Switch<'_> {
    /// A packet is about to be marked: counts it unless it is already, and returns the codepoint.
    #[inline]
    pub(super) fn count_mark(&mut self, port: usize, packet: &Packet, now: Time) -> Codepoint {
        let mark = self.aqm.codepoint(port, &self.settings.classes[usize::from(packet.class)]);
        if !packet.marked() && packet.codepoint() != mark {
            self.egress.record(port, packet.priority).marks += 1;
            self.counters.marks += 1;
            self.counters.marks_edge += u64::from(self.aqm.is_edge(port));
            self.recorder.packet(now, self.node, port as u16, EventKind::Mark, packet);
        }
        mark
    }

    /// A packet has no room.
    #[inline]
    pub(super) fn drop_packet(
        &mut self,
        port: usize,
        packet: &Packet,
        ingress: Ingress,
        context: &mut impl NodeContext,
    ) {
        self.egress.record(port, packet.priority).drops += 1;
        self.counters.dropped.0 += 1;
        self.counters.dropped.1 += u64::from(packet.wire);
        self.recorder.packet(context.now(), self.node, port as u16, EventKind::Drop, packet);
        self.report_drop(port, packet, ingress, context);
    }

    /// A packet is lost on the wire.
    #[cold]
    #[inline(never)]
    pub(super) fn record_lost<F: Features>(&mut self, port: usize, transit: Transit<'_>, now: Time) {
        self.recorder.packet(now, self.node, port as u16, EventKind::Lost, &transit.to_packet::<F>());
    }

    /// The link of a packet's port is down.
    #[cold]
    pub(super) fn lose(&mut self, port: usize, packet: &Packet, ingress: Ingress, context: &mut impl NodeContext) {
        self.count_lost(port, packet, context.now());
        self.report_drop(port, packet, ingress, context);
    }

    /// No port leads to a packet's destination. The agent has not seen it.
    #[cold]
    pub(super) fn lose_unrouted(&mut self, packet: &Packet, now: Time) {
        self.count_lost(0, packet, now);
    }

    fn count_lost(&mut self, port: usize, packet: &Packet, now: Time) {
        self.counters.lost.0 += 1;
        self.counters.lost.1 += u64::from(packet.wire);
        self.record_lost::<All>(port, packet.into(), now);
    }
}
