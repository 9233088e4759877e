//! Algorithm 2, window-based notification: the flow table of a port, and the share of its rate that each flow is
//! granted.

use super::readings::{Parameters, Sharing};
use crate::{
    agent::{FlowAddress, PacketView},
    switch::flow_table::{Entry, NotificationTarget, PacketCounts},
};
use incast_units::Time;

/// `Rate = C data_f / Sum; Win = Rate x baseRTT` (algorithm 2), C baseRTT being `bdp` bytes. Limited to 32 bits.
pub fn window(bdp: u64, data: u64, sum: u64) -> u64 {
    let bytes = u128::from(bdp) * u128::from(data) / u128::from(sum.max(1));
    bytes.min(u32::MAX.into()) as u64
}

/// The pair (source, destination) that a packet is counted for. Acknowledgements and control packets to one host
/// count as one flow.
#[inline]
pub fn pair(packet: &PacketView) -> u64 {
    let source = if packet.is_data { packet.flow.source } else { u32::MAX };
    u64::from(source) << 32 | u64::from(packet.flow.destination)
}

pub fn queue_pair(flow: &FlowAddress) -> u64 {
    u64::from(flow.source) << 32 | u64::from(flow.sequence)
}

/// The flow table of a port, while packets are queued there.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Bytes of the flow table.
    pub sum: u64,
    /// Sources and destinations.
    pub pairs: PacketCounts,
    /// Queue pairs, where they are distinguished.
    pub queue_pairs: Option<PacketCounts>,
    /// The longest notification interval of any entry.
    pub quiet_until: Time,
    /// C baseRTT of windows, in bytes.
    pub bdp: u64,
}

impl Windows {
    /// A packet is queued. Returns the entries of its pair, and of its queue pair where those are distinguished.
    pub fn add(&mut self, packet: &PacketView, priority: u8, now: Time) -> (usize, Option<usize>) {
        let bytes = u64::from(packet.bytes);
        self.sum += bytes;
        let index = self.pairs.find_or_make(pair(packet), now);
        self.pairs.at(index).data += bytes;
        if !packet.is_data {
            return (index, None);
        }
        let target = NotificationTarget { flow: packet.flow, priority };
        self.pairs.set_target(index, target);
        let Some(table) = &mut self.queue_pairs else { return (index, None) };
        let own = table.find_or_make(queue_pair(&packet.flow), now);
        table.set_target(own, target);
        let entry = table.at(own);
        self.pairs.at(index).members += u32::from(entry.data == 0);
        entry.data += bytes;
        (index, Some(own))
    }

    /// A packet has left the queue.
    pub fn remove(&mut self, packet: &PacketView) {
        let bytes = u64::from(packet.bytes);
        let index = self.pairs.find(pair(packet));
        debug_assert!(index.is_some() && bytes <= self.sum, "{packet:?} leaves and had not come");
        let Some(index) = index else { return };
        self.sum = self.sum.saturating_sub(bytes);
        let entry = self.pairs.at(index);
        debug_assert!(bytes <= entry.data, "{bytes} of {} bytes of a flow leave", entry.data);
        entry.data = entry.data.saturating_sub(bytes);
        if let (Some(table), true) = (&mut self.queue_pairs, packet.is_data)
            && let Some(own) = table.find(queue_pair(&packet.flow))
        {
            let own = table.at(own);
            own.data = own.data.saturating_sub(bytes);
            let is_gone = own.data == 0;
            let entry = self.pairs.at(index);
            entry.members = entry.members.saturating_sub(is_gone.into());
        }
    }

    /// Counts from nothing, and keeps the intervals of notifications.
    pub fn restart(&mut self) {
        self.sum = 0;
        self.pairs.restart();
        if let Some(table) = &mut self.queue_pairs {
            table.restart();
        }
    }

    /// Clears the flow table.
    pub fn clear(&mut self) {
        self.sum = 0;
        self.pairs.clear();
        if let Some(table) = &mut self.queue_pairs {
            table.clear();
        }
    }

    /// The window that a pair is granted.
    pub fn grant(&self, pair: &Entry, parameters: &Parameters) -> u64 {
        let whole = window(self.bdp, pair.data, self.sum);
        let own = match parameters.window_sharing {
            Sharing::Whole => whole,
            Sharing::Split => whole / u64::from(pair.members.max(1)),
        };
        own.max(parameters.min_window.get())
    }
}
