//! How many packets an acknowledgement reports.
//!
//! s2n-quic tells a controller the bytes that an ACK frame newly acknowledges and the newest packet among them, not
//! how many packets they were. Shares of marks are shares of packets, so the packets are counted here: each one sent
//! carries the totals up to and including itself, and the difference between two newest packets is exact as long as
//! every packet between them was acknowledged or is known to be lost. Holes are recognised by their bytes. A lost probe
//! of the MTU is one packet of more bytes than others, and s2n-quic tells of it after the acknowledgement that passes it.

/// What is remembered of a packet: totals up to and including it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInfo {
    /// Packets of all kinds.
    pub packets: u64,
    /// Packets that count as in flight: all but those of acknowledgements alone.
    pub data: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// Packets that an acknowledgement reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Of all kinds: what the marks that it reports are a share of.
    pub packets: u32,
    /// Of those, packets that were in flight.
    pub data: u32,
    /// Every packet in flight before this position is acknowledged, lost, or late.
    pub position: u64,
}

/// Totals of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    sent: PacketInfo,
    newest: PacketInfo,
    /// Lost packets beyond the newest acknowledged one, and their bytes.
    lost_ahead: (u64, u64),
    /// The last probe of the MTU: its place among the packets in flight, and its bytes.
    probe: Option<(u64, u64)>,
}

impl Ledger {
    /// A packet goes out; with 0 bytes if it is not in flight. One larger than a full packet is a probe of the MTU.
    pub fn on_sent(&mut self, bytes: u64, full: u64) -> PacketInfo {
        self.sent.packets += 1;
        if bytes > 0 {
            self.sent.data += 1;
            self.sent.bytes += bytes;
        }
        if bytes > full {
            self.probe = Some((self.sent.data, bytes));
        }
        self.sent
    }

    /// Position of the next packet in flight.
    pub fn next(&self) -> u64 {
        self.sent.data
    }

    /// A packet in flight was found lost. Returns its position.
    pub fn on_lost(&mut self, packet: PacketInfo, bytes: u64) -> u64 {
        if packet.data > self.newest.data {
            self.lost_ahead.0 += 1;
            self.lost_ahead.1 += bytes;
        }
        packet.data.saturating_sub(1)
    }

    /// `bytes` were acknowledged, the newest of them those of `newest`; a full packet has `full` bytes.
    pub fn on_acked(&mut self, bytes: u64, newest: PacketInfo, full: u64) -> Acknowledged {
        let full = full.max(1);
        let least = bytes.div_ceil(full).max(1);
        if newest.packets <= self.newest.packets {
            // Packets that had been overtaken.
            return Acknowledged { packets: word(least), data: word(least), position: self.newest.data };
        }
        let (lost, lost_bytes) = std::mem::take(&mut self.lost_ahead);
        let passed = (newest.data - self.newest.data).saturating_sub(lost);
        let passed_bytes = (newest.bytes - self.newest.bytes).saturating_sub(lost_bytes);
        let passed_probe = self.probe.take_if(|(place, _)| *place <= newest.data);
        let others = (newest.packets - self.newest.packets).saturating_sub(newest.data - self.newest.data);
        let data = if bytes >= passed_bytes {
            // More than was passed fills holes that were left earlier.
            passed + (bytes - passed_bytes).div_ceil(full)
        } else {
            let hole = passed_bytes - bytes;
            passed.saturating_sub(match passed_probe {
                Some((_, probe)) if hole >= probe => 1 + (hole - probe).div_ceil(full),
                _ => hole.div_ceil(full),
            })
        };
        let data = data.max(1);
        self.newest = newest;
        Acknowledged { packets: word(data + others), data: word(data), position: newest.data }
    }
}

/// In the core's word.
fn word(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u64 = 1_200;

    fn sent(ledger: &mut Ledger, sizes: &[u64]) -> Vec<PacketInfo> {
        sizes.iter().map(|bytes| ledger.on_sent(*bytes, FULL)).collect()
    }

    #[test]
    fn packets_of_any_size_are_counted_exactly_where_nothing_is_missing() {
        let mut ledger = Ledger::default();
        let infos = sent(&mut ledger, &[FULL, 40, 0, 700, FULL, 0]);
        let acked = ledger.on_acked(FULL + 40 + 700, infos[3], FULL);
        assert_eq!((acked.packets, acked.data, acked.position), (4, 3, 3));
        let acked = ledger.on_acked(FULL, infos[4], FULL);
        assert_eq!((acked.packets, acked.data, acked.position), (1, 1, 4));
        assert_eq!(ledger.next(), 4);
    }

    #[test]
    fn holes_are_recognised_by_their_bytes_and_counted_when_they_are_filled() {
        let mut ledger = Ledger::default();
        let infos = sent(&mut ledger, &[FULL; 6]);
        // 0 and 1 are late.
        assert_eq!(ledger.on_acked(2 * FULL, infos[3], FULL).data, 2);
        // 0 arrives with 4.
        assert_eq!(ledger.on_acked(2 * FULL, infos[4], FULL).data, 2);
        // 1 arrives alone: older than the newest.
        let late = ledger.on_acked(FULL, infos[1], FULL);
        assert_eq!((late.data, late.position), (1, 5));
    }

    #[test]
    fn packets_known_to_be_lost_leave_no_hole() {
        let mut ledger = Ledger::default();
        let infos = sent(&mut ledger, &[100, 90, FULL, 80, FULL]);
        assert_eq!(ledger.on_acked(100, infos[0], FULL).data, 1);
        assert_eq!(ledger.on_lost(infos[1], 90), 1);
        assert_eq!(ledger.on_acked(2 * FULL + 80, infos[4], FULL).data, 3);
        // Older than the newest: it was a hole until now.
        let mut ledger = Ledger::default();
        let infos = sent(&mut ledger, &[FULL; 3]);
        assert_eq!(ledger.on_acked(FULL, infos[1], FULL).data, 1);
        assert_eq!(ledger.on_lost(infos[0], FULL), 0);
        assert_eq!(ledger.on_acked(FULL, infos[2], FULL).data, 1);
    }

    #[test]
    fn a_probe_of_the_mtu_is_one_packet_acknowledged_or_lost() {
        let sizes: Vec<u64> = std::iter::once(9_000).chain([FULL; 10]).collect();
        let mut ledger = Ledger::default();
        let infos = sent(&mut ledger, &sizes);
        // Lost, which is said later.
        assert_eq!(ledger.on_acked(10 * FULL, infos[10], FULL).data, 10);
        let infos = sent(&mut ledger, &sizes);
        assert_eq!(ledger.on_acked(9_000 + 10 * FULL, infos[10], FULL).data, 11);
        // Lost with another one.
        let infos = sent(&mut ledger, &sizes);
        assert_eq!(ledger.on_acked(9 * FULL, infos[10], FULL).data, 9);
        // It is still on its way.
        let infos = sent(&mut ledger, &[FULL, FULL, 9_000, FULL]);
        assert_eq!(ledger.on_acked(FULL, infos[1], FULL).data, 1);
        assert_eq!(ledger.on_acked(FULL, infos[3], FULL).data, 1);
    }
}
