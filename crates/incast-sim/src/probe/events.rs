//! Single events: drops, marks, pauses, timeouts, deflections.

use super::{PacketFilter, PacketTrace, PauseCause, Step};
use crate::packet::{Kind, Packet};
use incast_cc::agent::Codepoint;
use incast_units::Time;

/// What happened to a packet or flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// No room in the buffer.
    Drop,
    /// The link went down with the packet on it, it was lost on the wire, or it has no route.
    Lost,
    /// Marked.
    Mark,
    /// Payload cut off.
    Trim,
    /// A port was paused.
    Pause,
    /// It was allowed to send again.
    Resume,
    /// A retransmission timer expired.
    Timeout,
    /// Deflected to another port.
    Deflection,
    /// Trimmed, and sent back to its sender.
    Bounce,
}

/// A recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventRecord {
    /// When.
    pub time: Time,
    /// Where.
    pub node: u32,
    /// At which egress port.
    pub port: u16,
    /// What.
    pub kind: EventKind,
    /// Priority.
    pub priority: u8,
    /// Sending host of the flow; [`EventRecord::NO_FLOW`] where no flow is concerned.
    pub source: u32,
    /// Number of the flow at its source.
    pub sequence: u32,
}

impl EventRecord {
    /// The event concerns a port, not a flow.
    pub const NO_FLOW: u32 = u32::MAX;
}

/// Recorded events of one node; records nothing unless enabled.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Whether to record anything.
    on: bool,
    /// Whether to record every event.
    events: bool,
    /// What was recorded, in the node's order of events.
    pub records: Vec<EventRecord>,
    /// Why neighbours were paused, in the order of time.
    pub causes: Vec<PauseCause>,
    /// Steps of single packets.
    pub trace: Option<Box<PacketTrace>>,
}

impl Recorder {
    /// Of a node: records every event, or those of some packets, or both, or nothing.
    pub fn new(events: bool, packets: Option<&PacketFilter>, node: u32) -> Self {
        let trace = packets.filter(|filter| filter.has_node(node)).map(|filter| PacketTrace::new(filter, node));
        Self { on: events || trace.is_some(), events, trace, ..Self::default() }
    }

    /// Whether every event is recorded.
    pub fn records_events(&self) -> bool {
        self.events
    }

    /// Records that something happened to a packet at a port.
    #[inline]
    pub fn packet(&mut self, time: Time, node: u32, port: u16, kind: EventKind, packet: &Packet) {
        if self.on {
            self.record(time, node, port, kind, packet);
        }
    }

    #[cold]
    fn record(&mut self, time: Time, node: u32, port: u16, kind: EventKind, packet: &Packet) {
        if self.events {
            // Answers travel against their flow.
            let source = if packet.kind.is_of_sender() { packet.data().source() } else { packet.destination };
            let (source, sequence) = match packet.kind {
                Kind::Pause | Kind::FlowControl | Kind::MarkerAck | Kind::Isolation => (EventRecord::NO_FLOW, 0),
                _ => (source, packet.sequence),
            };
            let priority = packet.priority;
            self.records.push(EventRecord { time, node, port, kind, priority, source, sequence });
        }
        if let Some(trace) = &mut self.trace {
            trace.record(time, port, Step::Event(kind), packet);
        }
    }

    /// Records that a packet has to wait in a queue of `found` bytes; `marked`: it has just been marked.
    #[inline]
    pub fn queued(&mut self, time: Time, port: u16, found: u64, packet: &Packet, mark: Codepoint) {
        if let Some(trace) = &mut self.trace {
            let mut packet = *packet;
            packet.mark_as(mark);
            trace.record(time, port, Step::Queued(found), &packet);
        }
    }

    /// Records that a port was forbidden or allowed to send some priorities, one bit each.
    pub fn edges(&mut self, time: Time, node: u32, port: u16, priorities: u8, kind: EventKind) {
        if self.on {
            for priority in (0..8).filter(|priority| priorities & 1 << priority != 0) {
                let (source, sequence) = (EventRecord::NO_FLOW, 0);
                self.records.push(EventRecord { time, node, port, kind, priority, source, sequence });
            }
        }
    }
}
