//! What is read from a switch: samples, traces, conservation of bytes, what waits for what; and prefetching.

use super::{All, Switch, features::Kind};
use crate::{
    engine::prefetch::prefetch,
    fabric::{
        link::{Receiver, Transmitter},
        node::NodeContext,
        queue::Ingress,
    },
    flow_control::credits::{End, blocks},
    packet::Packet,
    probe::{PacketTrace, PortSample},
};
use incast_units::Time;
use std::collections::BTreeSet;

impl Switch<'_> {
    // ---- Samples ----------------------------------------------------------------------------------------------

    /// When the next sample is due.
    #[inline]
    pub fn next_sample(&self) -> Time {
        self.probe.as_ref().map_or(Time::MAX, |probe| probe.next)
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self, context: &mut impl NodeContext) {
        let Some(probe) = self.probe.take() else { return };
        if self.egress.is_lazy() {
            for port in &probe.ports {
                self.drain::<All>(usize::from(*port), probe.next, context);
            }
        }
        self.probe = Some(probe);
        self.take_sample();
    }

    fn take_sample(&mut self) {
        let Some(probe) = &mut self.probe else { return };
        let now = probe.next;
        for port in &probe.ports {
            let index = usize::from(*port);
            let (out, pauses) = (self.egress.port(index), &self.egress.pauses()[index]);
            for priority in 0..self.egress.priorities() as u8 {
                let queue_bytes = self.egress.queue_bytes(index, priority) + out.link.in_service(now, priority);
                let (record, tx_bytes) = self.egress.sample(index, priority);
                if priority == 0 || queue_bytes > 0 || tx_bytes > 0 {
                    probe.samples.push(PortSample {
                        time: now,
                        node: self.node,
                        port: *port,
                        priority,
                        queue_bytes,
                        tx_bytes,
                        paused: pauses.paused(now),
                        marks: record.marks,
                        drops: record.drops,
                        trims: record.trims,
                    });
                }
            }
        }
        probe.next = now + probe.every;
    }

    /// The samples until `end`, inclusive. Nothing happens any more: samples that are still due show the present state.
    pub fn take_samples(&mut self, end: Time) -> Vec<PortSample> {
        while self.next_sample() <= end {
            self.take_sample();
        }
        let mut samples = self.probe.as_mut().map(|probe| std::mem::take(&mut probe.samples)).unwrap_or_default();
        // To the end of its last window, which is another one with other windows, it has taken some more.
        samples.retain(|sample| sample.time <= end);
        samples
    }

    // ---- Results ----------------------------------------------------------------------------------------------

    /// What was recorded of packets.
    pub fn traces(&mut self) -> Vec<&mut PacketTrace> {
        let links = self.egress.ports_mut().iter_mut().filter_map(|port| port.link.trace());
        links.chain(self.recorder.trace.as_deref_mut()).collect()
    }

    /// Its node.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Frame bytes that wait in it.
    pub fn waiting_bytes(&self) -> u64 {
        self.egress.ports().iter().map(|port| port.waiting_bytes).sum()
    }

    /// Transmitter and receiver of each port.
    pub fn links(&self) -> impl Iterator<Item = (&Transmitter, &Receiver)> {
        self.egress.ports().iter().map(|port| &port.link).zip(&self.inputs)
    }

    /// Pause edges and paused time of all ports, until `now`.
    pub fn pauses(&self, now: Time) -> (u64, Time) {
        self.egress
            .pauses()
            .iter()
            .fold((0, Time::ZERO), |(edges, paused), record| (edges + record.edges(), paused + record.paused(now)))
    }

    /// Every byte that came in or was made here has gone out, waits, was consumed, dropped, trimmed, or lost.
    pub fn conserves(&self) -> bool {
        let received: u64 = self.inputs.iter().map(Receiver::bytes).sum();
        let sent: u64 = self.egress.ports().iter().map(|port| port.link.sent_bytes()).sum();
        let counters = &self.counters;
        self.buffer.level().used == self.waiting_bytes()
            && self.credits_add_up()
            && received + counters.created_bytes
                == sent
                    + self.waiting_bytes()
                    + counters.consumed_bytes
                    + counters.dropped.1
                    + counters.trimmed.1
                    + counters.lost.1
    }

    /// The blocks that credits count for each lane are those of its queued packets.
    fn credits_add_up(&self) -> bool {
        if !self.flow_control.uses_credits() {
            return true;
        }
        let ports = self.egress.ports().len();
        let mut waiting = vec![[0u32; 8]; ports];
        for port in 0..ports {
            for priority in 0..self.egress.priorities() as u8 {
                let packets = self.egress.packets(port, priority).filter(|(_, ingress)| !ingress.is_local());
                packets.for_each(|(packet, ingress)| {
                    waiting[usize::from(ingress.port)][usize::from(priority)] += blocks(packet.wire);
                });
            }
        }
        let mut lanes = (0..ports as u16).flat_map(|port| (0..8u8).map(move |lane| (port, lane)));
        lanes.all(|(port, priority)| {
            let held = self.credits(port).map(|end| end.held(priority));
            held == Some(waiting[usize::from(port)][usize::from(priority)])
        })
    }

    // ---- Deadlocks --------------------------------------------------------------------------------------------

    /// Priorities of ports that flow control keeps from sending: port, priority, and since when.
    pub fn paused(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        self.flow_control.paused()
    }

    /// Queues that hold something and may not send: port, priority, and since when.
    pub fn paused_queues(&self) -> impl Iterator<Item = (u16, u8, Time)> {
        self.paused().filter(|(port, priority, _)| self.egress.port(usize::from(*port)).waiting & 1 << priority != 0)
    }

    /// Whether the neighbour at a port is kept from sending without reason: see
    /// [`crate::flow_control::FlowControl::without_reason`].
    pub fn without_reason(&self, port: u16, priority: u8, other: Option<&End>) -> Option<u32> {
        self.flow_control.without_reason(Ingress { port, priority }, other)
    }

    /// The end of the link at a port, where there are credits.
    pub fn credits(&self, port: u16) -> Option<&End> {
        self.flow_control.credits(port)
    }

    /// Ingress port and priority of packets, with port and priority of the egress queue that they wait in. Held packets
    /// wait for their marker.
    pub fn holdings(&self) -> BTreeSet<(u16, u8, u16, u8)> {
        let mut holdings = BTreeSet::new();
        for port in 0..self.egress.ports().len() {
            for priority in 0..self.egress.priorities() as u8 {
                let packets = self.egress.packets(port, priority);
                holdings.extend(packets.map(|(_, ingress)| (ingress.port, ingress.priority, port as u16, priority)));
            }
        }
        let held = self.hold.iter().flat_map(|hold| hold.held());
        holdings.extend(held.map(|(ingress, after)| {
            let channels = self.channels.as_ref();
            let queue = channels.map_or(ingress.priority, |channels| channels.queue(ingress, usize::from(after)));
            (ingress.port, ingress.priority, after, queue)
        }));
        holdings
    }

    // ---- Prefetching ------------------------------------------------------------------------------------------

    /// Prefetches in two steps, before the switch runs: first (`near` false) its busy ports, then (`near` true) the
    /// packets queued there.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        self.egress.prefetch_waiting(near);
    }

    /// It prefetches for packets that arrive soon by itself, when it runs.
    #[inline]
    pub fn looks_ahead(&self) -> bool {
        self.kind == Kind::Forwarding
    }

    /// A packet arrives at `port` soon: prefetches that port and the packet's egress port.
    #[inline]
    pub fn prefetch_packet(&self, port: usize, packet: &Packet) {
        prefetch(self.inputs.as_ptr().wrapping_add(port), 1);
        if let Some(port) = self.router.expected(packet) {
            self.egress.prefetch_port(usize::from(port));
            self.egress.prefetch_queue(usize::from(port), packet.priority);
        }
    }

    /// The neighbour to which a packet will probably be sent.
    #[inline]
    pub fn next_domain(&self, packet: &Packet) -> Option<u32> {
        let port = self.router.expected(packet)?;
        Some(self.egress.port(usize::from(port)).link.peer().domain)
    }
}
