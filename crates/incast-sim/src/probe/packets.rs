//! Packets of one flow or port, step by step: what `incast trace` draws.

use super::EventKind;
use crate::{
    packet::{Kind, Packet},
    recovery::Blocks,
};
use incast_cc::agent::Codepoint;
use incast_units::Time;

/// Which steps of which packets are recorded. The conditions must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketFilter {
    /// Only packets of this flow, by source and sequence, answers included; `None` for every flow.
    pub flow: Option<(u32, u32)>,
    /// Only at these egress ports, by (node, port); none for every port.
    pub ports: Vec<(u32, u16)>,
    /// From here on.
    pub from: Time,
    /// Before this time.
    pub until: Time,
    /// Each port keeps at most so many records, the first ones.
    pub most: usize,
}

impl PacketFilter {
    /// Whether anything at a port may be recorded.
    pub fn has_port(&self, node: u32, port: u16) -> bool {
        self.ports.is_empty() || self.ports.contains(&(node, port))
    }

    /// Whether anything at a node may be recorded.
    pub fn has_node(&self, node: u32) -> bool {
        self.ports.is_empty() || self.ports.iter().any(|port| port.0 == node)
    }
}

/// A step on a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has to wait in the port's queue, which was so long in bytes, all priorities and the packet in service
    /// included.
    Queued(u64),
    /// The port begins to send it.
    Sent {
        /// The last bit leaves.
        end: Time,
        /// The last bit arrives at the other end; `None` if it is lost on the wire.
        arrival: Option<Time>,
    },
    /// Something happened to it there.
    Event(EventKind),
}

/// A packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When.
    pub time: Time,
    /// Where.
    pub node: u32,
    /// At which egress port.
    pub port: u16,
    /// What happened.
    pub step: Step,
    /// To which packet.
    pub packet: PacketFacts,
}

/// The recorded fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFacts {
    /// What it is for.
    pub kind: Kind,
    /// Class of its flow.
    pub class: u8,
    /// Priority, 0 the highest.
    pub priority: u8,
    /// It may be marked.
    pub ecn_capable: bool,
    /// Its codepoint; none for congestion notifications, which report the codepoints of other packets.
    pub codepoint: Codepoint,
    /// Host that sent this packet.
    pub source: u32,
    /// Host it goes to.
    pub destination: u32,
    /// The flow's number at the host that sends its data.
    pub sequence: u32,
    /// Data: index of this packet in its flow. Acknowledgement: index of the packet that caused it.
    pub position: u32,
    /// Data: number of packets of the flow. Acknowledgement: all packets below this index have arrived.
    pub packets: u32,
    /// Acknowledgement: its SACK blocks. Beside a tag, which takes its place, the second one means nothing.
    pub blocks: Option<Blocks>,
    /// Frame bytes, frame check sequence included, preamble and gap not.
    pub wire: u32,
    /// Data: payload bytes.
    pub payload: u32,
    /// How often it was deflected.
    pub deflections: u8,
    /// Acknowledgement: packets reported on, and how many of them were marked.
    pub report: (u32, u32),
    /// Acknowledgement: one-way delay of the data in nanoseconds, as the two hosts' clocks show it.
    pub delay_ns: i32,
    /// Data: picosecond at which the NIC began to send it. Acknowledgement: that time, echoed. Others: their value.
    pub value: u64,
}

impl PacketFacts {
    fn of(packet: &Packet, now: Time) -> Self {
        let is_data = matches!(packet.kind, Kind::Data | Kind::Trimmed);
        let is_ack = packet.kind == Kind::Ack;
        let (data, ack) = (packet.data(), packet.ack());
        Self {
            kind: packet.kind,
            class: packet.class,
            priority: packet.priority,
            ecn_capable: packet.ecn_capable(),
            codepoint: if packet.kind == Kind::Cnp { Codepoint::None } else { packet.codepoint() },
            // An acknowledgement does not name it: its flow does, see `Self::complete`.
            source: packet.source().unwrap_or(u32::MAX),
            destination: packet.destination,
            sequence: packet.sequence,
            position: if is_ack { ack.position() } else { data.position() },
            blocks: if is_ack { ack.blocks(false) } else { None },
            packets: data.packets(),
            wire: u32::from(packet.wire),
            payload: if is_data { data.payload() } else { 0 },
            deflections: packet.deflections(),
            report: if is_data { (0, 0) } else { ack.report() },
            delay_ns: if is_data { 0 } else { ack.one_way_delay_ns() },
            value: match packet.kind {
                Kind::Data | Kind::Trimmed => data.sent_before(now).ps(),
                Kind::Ack => ack.echo(now).ps(),
                _ => packet.control().value(),
            },
        }
    }

    /// Fills in the source of an acknowledgement, which it does not carry: the receiver of its flow.
    pub(crate) fn complete(&mut self, receiver: u32) {
        if self.source == u32::MAX {
            self.source = receiver;
        }
    }

    /// Its flow, by source and sequence: answers travel against it.
    pub fn flow(&self) -> (u32, u32) {
        (if self.kind.is_of_sender() { self.source } else { self.destination }, self.sequence)
    }

    /// Tells transmissions of a flow apart: one data packet sent twice is two. Equal notifications are not told apart.
    pub fn transmission(&self) -> (u8, u32, u32, u32, u64) {
        let (source, sequence) = self.flow();
        (self.kind as u8, source, sequence, self.position, self.value)
    }
}

/// The records of one port, or of one node's events.
#[derive(Debug)]
pub struct PacketTrace {
    filter: PacketFilter,
    node: u32,
    records: Vec<PacketRecord>,
    /// Records that did not fit.
    left_out: u64,
}

impl PacketTrace {
    /// For a node, or a port of it.
    pub fn new(filter: &PacketFilter, node: u32) -> Box<Self> {
        Box::new(Self { filter: filter.clone(), node, records: Vec::new(), left_out: 0 })
    }

    /// Records a step, if the filter selects it.
    pub fn record(&mut self, time: Time, port: u16, step: Step, packet: &Packet) {
        let filter = &self.filter;
        if time < filter.from || time >= filter.until || !filter.has_port(self.node, port) {
            return;
        }
        let packet = PacketFacts::of(packet, time);
        if filter.flow.is_some_and(|flow| flow != packet.flow()) {
            return;
        }
        if self.records.len() < filter.most {
            self.records.push(PacketRecord { time, node: self.node, port, step, packet });
        } else {
            self.left_out += 1;
        }
    }

    /// What was recorded, and how much did not fit.
    pub fn take(&mut self) -> (Vec<PacketRecord>, u64) {
        (std::mem::take(&mut self.records), std::mem::take(&mut self.left_out))
    }
}
