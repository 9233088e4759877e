//! Packet formats: how many bytes each protocol puts around its payload.

use incast_cc::law::Framing;

/// Smallest Ethernet frame (IEEE 802.3, clause 4.4.2).
pub const SMALLEST_FRAME: u32 = 64;

/// Sizes of a protocol's frames in bytes, frame check sequence included, preamble and gap not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Around the payload of a data packet.
    pub header: u32,
    /// An acknowledgement or other control packet.
    pub control: u32,
    /// A congestion notification from the receiver.
    pub notification: u32,
    /// The smallest frame; shorter ones are padded.
    pub smallest: u32,
    /// Acknowledgements of what is beyond a gap have SACK blocks (RFC 2018), and are as much longer.
    pub blocks: bool,
}

/// Ethernet header and frame check sequence.
const ETHERNET: u32 = 14 + 4;
/// IPv4 without options (RFC 791).
const IPV4: u32 = 20;
/// UDP (RFC 768).
const UDP: u32 = 8;
/// TCP (RFC 9293) with the timestamps option (RFC 7323, padded to 12).
const TCP: u32 = 20 + 12;
/// InfiniBand base transport header and invariant CRC, as RoCEv2 carries them (IBA volume 1, annex A17).
const BTH_ICRC: u32 = 12 + 4;
/// InfiniBand ACK extended transport header.
const AETH: u32 = 4;
/// InfiniBand local route header (IBA volume 1, section 7.7).
const LRH: u32 = 8;
/// InfiniBand variant CRC, which covers what switches change.
const VCRC: u32 = 2;
/// What a congestion notification packet carries in place of a payload: 16 reserved bytes (IBA annexes A10 and
/// A17.9.3).
const CNP: u32 = 16;
/// In-band telemetry of HPCC: the number of hops, and 64 bits for each of five (Li et al., SIGCOMM 2019, figure 7). The
/// place for all five is there from the start, and in the acknowledgement, which echoes it.
const INT: u32 = 2 + 5 * 8;

impl Format {
    /// The format of a framing.
    pub const fn of(framing: Framing) -> Self {
        match framing {
            Framing::Tcp => Self {
                header: ETHERNET + IPV4 + TCP,
                control: ETHERNET + IPV4 + TCP,
                notification: ETHERNET + IPV4 + TCP,
                smallest: SMALLEST_FRAME,
                blocks: true,
            },
            Framing::RoceV2 => Self {
                header: ETHERNET + IPV4 + UDP + BTH_ICRC,
                control: ETHERNET + IPV4 + UDP + BTH_ICRC + AETH,
                notification: ETHERNET + IPV4 + UDP + BTH_ICRC + CNP,
                smallest: SMALLEST_FRAME,
                blocks: false,
            },
            Framing::InfiniBand => Self {
                header: LRH + BTH_ICRC + VCRC,
                control: LRH + BTH_ICRC + AETH + VCRC,
                notification: LRH + BTH_ICRC + CNP + VCRC,
                smallest: 0,
                blocks: false,
            },
            Framing::RoceV2Int => {
                let plain = Self::of(Framing::RoceV2);
                Self { header: plain.header + INT, control: plain.control + INT, ..plain }
            }
        }
    }

    /// Frame bytes of a data packet.
    #[inline]
    pub fn data(&self, payload: u32) -> u32 {
        (payload + self.header).max(self.smallest)
    }

    /// Frame bytes of a control packet.
    #[inline]
    pub fn control(&self) -> u32 {
        self.control.max(self.smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_their_known_sizes() {
        let tcp = Format::of(Framing::Tcp);
        // 1,448 payload bytes with timestamps make the 1,518-byte frame.
        assert_eq!((tcp.data(1448), tcp.control(), tcp.data(1)), (1518, 70, 71));
        let roce = Format::of(Framing::RoceV2);
        assert_eq!((roce.data(1024), roce.control(), roce.notification), (1086, 66, 78));
        let native = Format::of(Framing::InfiniBand);
        assert_eq!((native.data(4096), native.data(1), native.control(), native.notification), (4122, 27, 30, 42));
        let telemetry = Format::of(Framing::RoceV2Int);
        assert_eq!((telemetry.data(1000), telemetry.control(), telemetry.notification), (1104, 108, 78));
    }
}
