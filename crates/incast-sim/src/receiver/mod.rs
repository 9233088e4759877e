//! The receiver: which packets of the flows to one host have arrived, and which responses are due. It sends nothing
//! itself: its host does.

pub mod acknowledge;
pub mod notification;
pub mod response_delay;

use crate::{
    engine::{prefetch::prefetch, table::FlowTable, vectors::push_first},
    packet::Packet,
    probe::ArrivedSample,
    recovery::{Blocks, Reassembly, Received},
    settings::Settings,
};
use incast_units::Time;
use notification::NotificationPoint;

/// The record of a flow at its receiver. It stays after the flow is complete.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedFlow {
    /// Sending host.
    pub source: u32,
    /// Flow number there.
    pub sequence: u32,
    /// When the last byte arrived; [`Time::MAX`] before.
    pub delivered: Time,
    /// Payload bytes that arrived, duplicates not counted.
    pub bytes: u64,
    /// Marked packets.
    pub marked: u32,
    /// Packets that came after one with a later position.
    pub reordered: u32,
    /// Deflections.
    pub deflections: u32,
    /// Class index.
    pub class: u8,
    /// Where the sender keeps the flow.
    pub sender_slot: u32,
    /// Hash for packets to the sender.
    pub reverse_hash: u32,
    /// Slot among the flows in progress, or `DONE`.
    slot: u32,
}

/// No slot: the flow is complete.
const DONE: u32 = u32::MAX;

/// A flow in progress.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    reassembly: Reassembly,
    /// Packets and marked packets not yet acknowledged.
    pub pending: (u32, u32),
    /// The last packet's mark.
    pub was_marked: bool,
    /// Marks that are to be notified.
    pub notification: NotificationPoint,
    /// A NACK for the missing packet is out.
    pub nacked: bool,
    /// Pending event of the delayed acknowledgement.
    pub ack_event: Time,
    /// The packet that the delayed acknowledgement is for, and when it arrived.
    pub last: Option<(Packet, Time)>,
}

impl Progress {
    /// All packets below have arrived.
    pub fn expected(&self) -> u32 {
        self.reassembly.expected()
    }
}

/// All flows to one host. What every packet needs comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Receiver {
    /// The flow of the last packet: packets of a flow often come in a row.
    recent: (u32, u32, u32),
    /// Its slot.
    recent_slot: u32,
    /// Records of all flows, in the order of their first packets.
    pub records: Vec<ReceivedFlow>,
    /// Flows in progress; slots are reused.
    progress: Vec<Progress>,
    table: FlowTable,
    free: Vec<u32>,
    /// Where flows are sampled, those in progress that may be.
    watched: Option<Watched>,
}

/// Flows that are sampled.
#[derive(Clone, Debug)]
struct Watched {
    /// Those with fewer packets are not.
    least_packets: u64,
    /// The only one that is.
    only: Option<(u32, u32)>,
    /// Their records.
    flows: Vec<u32>,
}

/// The result of an arrived data packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Index of the flow's record.
    pub flow: u32,
    /// What the packet was.
    pub received: Received,
    /// All packets below have arrived.
    pub expected: u32,
    /// The flow is complete with this packet.
    pub completes: bool,
    /// It left a gap, or filled one.
    pub out_of_order: bool,
    /// Packets and marked packets not yet acknowledged, this one included.
    pub report: (u32, u32),
    /// Its mark differs from that of the packet before.
    pub mark_changes: bool,
    /// Slot of the flow in progress.
    pub slot: u32,
}

impl Arrival {
    /// The flow was complete before.
    #[inline]
    pub fn is_late(&self) -> bool {
        self.slot == DONE
    }
}

impl Receiver {
    /// The receiver half of a host.
    pub fn new(settings: &Settings) -> Self {
        let watched = settings.rates.map(|(_, least)| Watched {
            least_packets: least.div_ceil(u64::from(settings.host.mtu)),
            only: settings.packets.as_ref().and_then(|packets| packets.flow),
            flows: Vec::new(),
        });
        Self { watched, ..Self::default() }
    }

    /// Takes a sample of each watched flow in progress.
    pub fn sample(&mut self, time: Time, samples: &mut Vec<ArrivedSample>) {
        let Some(watched) = &mut self.watched else { return };
        watched.flows.retain(|flow| self.records[*flow as usize].slot != DONE);
        samples.extend(watched.flows.iter().map(|flow| {
            let ReceivedFlow { source, sequence, bytes, .. } = self.records[*flow as usize];
            ArrivedSample { time, source, sequence, bytes }
        }));
    }

    #[inline]
    fn find(&mut self, packet: &Packet) -> u32 {
        let (source, sequence, index) = self.recent;
        if source == packet.data().source() && sequence == packet.sequence && (index as usize) < self.records.len() {
            return index;
        }
        self.look_up(packet)
    }

    #[inline(never)]
    fn look_up(&mut self, packet: &Packet) -> u32 {
        let index = self.table.find(packet.data().source(), packet.sequence).unwrap_or_else(|| {
            let slot = self.free.pop().unwrap_or_else(|| {
                push_first(&mut self.progress, Progress::default());
                self.progress.len() as u32 - 1
            });
            self.progress[slot as usize] = Progress { ack_event: Time::MAX, ..Progress::default() };
            let index = self.records.len() as u32;
            let record = ReceivedFlow {
                source: packet.data().source(),
                sequence: packet.sequence,
                delivered: Time::MAX,
                bytes: 0,
                marked: 0,
                reordered: 0,
                deflections: 0,
                class: packet.class,
                sender_slot: packet.slot,
                reverse_hash: packet.reverse_hash(),
                slot,
            };
            push_first(&mut self.records, record);
            self.table.set(packet.data().source(), packet.sequence, index);
            if let Some(watched) = &mut self.watched {
                let flow = (packet.data().source(), packet.sequence);
                let is_large = u64::from(packet.data().packets()) >= watched.least_packets;
                if is_large && watched.only.is_none_or(|only| only == flow) {
                    watched.flows.push(index);
                }
            }
            index
        });
        self.recent = (packet.data().source(), packet.sequence, index);
        index
    }

    /// A data packet will arrive soon, probably of the same flow as the last one: prefetches that.
    #[inline]
    pub fn prefetch(&self, near: bool) {
        if !near {
            prefetch(self.records.as_ptr().wrapping_add(self.recent.2 as usize), 2);
            prefetch(self.progress.as_ptr().wrapping_add(self.recent_slot as usize), 3);
        }
    }

    /// A data packet arrived.
    #[inline(never)]
    pub fn on_data(&mut self, now: Time, packet: &Packet, in_order_only: bool) -> Arrival {
        let flow = self.find(packet);
        let record = &mut self.records[flow as usize];
        record.marked += u32::from(packet.marked());
        record.deflections += u32::from(packet.deflections());
        if record.slot == DONE {
            return Arrival {
                flow,
                received: Received::Duplicate,
                expected: packet.data().packets(),
                completes: false,
                out_of_order: true,
                report: (1, u32::from(packet.marked())),
                mark_changes: false,
                slot: DONE,
            };
        }
        self.recent_slot = record.slot;
        let progress = &mut self.progress[record.slot as usize];
        record.reordered += u32::from(packet.data().position() + 1 < progress.reassembly.highest());
        let received = progress.reassembly.on_packet(packet.data().position(), in_order_only);
        let expected = progress.reassembly.expected();
        if received == Received::New {
            record.bytes += u64::from(packet.data().payload());
            progress.nacked = false;
        }
        progress.pending.0 += 1;
        progress.pending.1 += u32::from(packet.marked());
        let report = progress.pending;
        let mark_changes = packet.marked() != progress.was_marked;
        progress.was_marked = packet.marked();
        let slot = record.slot;
        let completes = expected == packet.data().packets();
        let out_of_order = expected != packet.data().position() + 1 || progress.reassembly.highest() != expected;
        if completes {
            record.delivered = now;
            progress.reassembly.finish();
            self.free.push(record.slot);
            record.slot = DONE;
        }
        Arrival { flow, received, expected, completes, out_of_order, report, mark_changes, slot }
    }

    /// The header of a trimmed data packet arrived. It counts as a duplicate if the packet has arrived before.
    pub fn on_header(&mut self, packet: &Packet) -> Arrival {
        let flow = self.find(packet);
        let record = &mut self.records[flow as usize];
        record.marked += u32::from(packet.marked());
        record.deflections += u32::from(packet.deflections());
        let slot = record.slot;
        let progress = if slot == DONE { None } else { self.progress.get(slot as usize) };
        let has = progress.is_none_or(|progress| progress.reassembly.has(packet.data().position()));
        Arrival {
            flow,
            received: if has { Received::Duplicate } else { Received::Trimmed },
            expected: progress.map_or(packet.data().packets(), Progress::expected),
            completes: false,
            out_of_order: true,
            report: (u32::from(has), u32::from(has && packet.marked())),
            mark_changes: false,
            slot,
        }
    }

    /// The flow of a data packet, if it is known.
    pub fn index_of(&self, packet: &Packet) -> Option<u32> {
        self.table.find(packet.data().source(), packet.sequence)
    }

    /// A signal of a flow's sender arrived: the flow's index, and whether it is in progress.
    pub fn on_signal(&mut self, packet: &Packet) -> (u32, bool) {
        let flow = self.find(packet);
        (flow, self.records[flow as usize].slot != DONE)
    }

    /// The sender has given a flow up: its index, if it was in progress. An unknown flow is recorded as ended, as
    /// earlier packets of its sender may still arrive.
    pub fn on_rst(&mut self, packet: &Packet) -> Option<u32> {
        let is_known = self.index_of(packet).is_some();
        let flow = self.find(packet);
        let record = &mut self.records[flow as usize];
        if record.slot == DONE {
            return None;
        }
        let progress = &mut self.progress[record.slot as usize];
        *progress = Progress { ack_event: Time::MAX, ..Progress::default() };
        self.free.push(record.slot);
        record.slot = DONE;
        is_known.then_some(flow)
    }

    /// A flow has ended without being complete.
    #[inline(never)]
    pub fn is_abandoned(&self, flow: u32) -> bool {
        let record = &self.records[flow as usize];
        record.slot == DONE && record.delivered == Time::MAX
    }

    /// The SACK blocks around a packet of a flow in progress that has arrived beyond a gap.
    pub fn blocks(&self, slot: u32, packet: u32) -> Option<Blocks> {
        self.progress.get(slot as usize).map(|progress| progress.reassembly.blocks(packet))
    }

    /// The flow in progress in a slot; that of a complete flow has none.
    #[inline]
    pub fn progress(&mut self, slot: u32) -> Option<&mut Progress> {
        self.progress.get_mut(slot as usize)
    }
}
