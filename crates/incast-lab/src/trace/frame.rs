//! Simulated packets as frames, byte by byte: Ethernet, IPv4, and TCP or UDP with RoCEv2 in it.
//!
//! Sizes are those of `docs/formats.md`; what fields a simulated packet has none for hold is listed in `docs/results.md`.

use incast_cc::{agent::Codepoint, law::Framing};
use incast_sim::{outcome::PacketFacts, packet::Kind};

/// First of the 16,384 dynamic ports (RFC 6335), from which flows get theirs.
const DYNAMIC_PORTS: u16 = 49_152;
/// UDP port of RoCEv2 (InfiniBand volume 1, annex A17).
const ROCE_PORT: u16 = 4791;
/// UDP port of packets that no published protocol describes: credits, and notifications too short for RoCEv2's.
const CONTROL_PORT: u16 = 65_535;
/// Frame check sequence.
const FCS: usize = 4;
/// The smallest frame that has room for RoCEv2's congestion notification with its 16 reserved bytes.
const ROCE_CNP: usize = 14 + 20 + 8 + 12 + 16 + 4 + FCS;

/// In-band telemetry of HPCC, behind the headers of InfiniBand, so that other programs can read those. It is zero: a
/// recorded packet does not hold it.
const TELEMETRY: usize = 2 + 5 * 8;

/// What a frame is made of in addition to its packet.
#[derive(Clone, Copy, Debug)]
pub struct FrameContext {
    /// Protocol of the packet's class.
    pub framing: Framing,
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Payload bytes of the flow.
    pub flow_bytes: u64,
    /// Switches mark with UE as well as CE (TCD).
    pub ternary: bool,
}

/// Address of a host: 10.0.0.1 for host 0.
pub fn address(host: u32) -> [u8; 4] {
    let [_, b, c, d] = (host + 1).to_be_bytes();
    [10, b, c, d]
}

/// A frame with its check sequence, cut after `snap` bytes: by default after the headers of a data packet, as the
/// simulator has no payload. What is captured of payloads is zero.
pub fn frame(packet: &PacketFacts, context: &FrameContext, snap: Option<u32>) -> Vec<u8> {
    let is_data = packet.kind == Kind::Data;
    if is_infiniband(packet, context.framing) {
        return infiniband(packet, snap);
    }
    let mut frame = if packet.kind == Kind::Pause { pause(packet) } else { ethernet(packet) };
    let wire = packet.wire as usize;
    let keep = match (snap, is_data) {
        (Some(snap), _) => (snap as usize).min(wire),
        (None, true) => 0,
        (None, false) => wire,
    };
    let length = match (context.framing, packet.kind) {
        (Framing::Tcp, Kind::Data | Kind::Ack | Kind::Nack) => tcp(&mut frame, packet, context),
        (Framing::RoceV2 | Framing::RoceV2Int, Kind::Data | Kind::Ack | Kind::Nack) => {
            roce(&mut frame, packet, context, keep)
        }
        (Framing::RoceV2 | Framing::RoceV2Int, Kind::Cnp) if wire >= ROCE_CNP => {
            roce(&mut frame, packet, context, keep)
        }
        (_, Kind::Pause) => frame.len(),
        _ => control(&mut frame, packet, context),
    };
    if keep == 0 {
        frame.truncate(length);
        return frame;
    }
    frame.resize(wire.saturating_sub(FCS).max(frame.len()), 0);
    if keep == wire {
        let check = !crc32(!0, &frame);
        frame.extend(check.to_le_bytes());
    }
    frame.truncate(keep);
    frame
}

/// It is no Ethernet frame but a packet of InfiniBand.
pub fn is_infiniband(packet: &PacketFacts, framing: Framing) -> bool {
    framing == Framing::InfiniBand && packet.kind != Kind::Pause
}

/// A packet of InfiniBand from its local route header on (InfiniBand volume 1, sections 7.7 and 9.2): sends on a
/// reliable connection, acknowledgements, NAKs for sequence errors, congestion notifications; what no specification
/// has, under an opcode for manufacturers. Local identifiers are the hosts' numbers and 1. Both check sequences are
/// zero.
fn infiniband(packet: &PacketFacts, snap: Option<u32>) -> Vec<u8> {
    const FECN: u8 = 0x80;
    const BECN: u8 = 0x40;
    const CNP: u8 = 0x80;
    const MANUFACTURER: u8 = 0xc0;
    let wire = packet.wire as usize;
    let mut frame = Vec::with_capacity(64);
    // Lane and version; service level and that a base transport header follows; length in words, up to the invariant
    // CRC.
    frame.extend([packet.priority << 4, packet.priority << 4 | 2]);
    frame.extend((packet.destination as u16).wrapping_add(1).to_be_bytes());
    frame.extend((wire.saturating_sub(2).div_ceil(4) as u16 & 0x7ff).to_be_bytes());
    frame.extend((packet.source as u16).wrapping_add(1).to_be_bytes());
    let last = packet.position + 1 == packet.packets;
    let (opcode, number) = match packet.kind {
        Kind::Data => (send_opcode(packet), packet.position),
        Kind::Nack => (0x11, packet.packets),
        Kind::Ack => (0x11, packet.packets.wrapping_sub(1)),
        Kind::Cnp => (CNP, 0),
        kind => (MANUFACTURER | kind as u8, packet.position),
    };
    let notice = match packet.kind {
        Kind::Cnp => BECN,
        Kind::Ack | Kind::Nack if packet.report.1 > 0 => BECN,
        _ if packet.codepoint == Codepoint::CongestionExperienced => FECN,
        _ => 0,
    };
    frame.extend([opcode, 0, 0xff, 0xff, notice]);
    frame.extend(&packet.sequence.to_be_bytes()[1..]);
    frame.push(if packet.kind == Kind::Data && last { 0x80 } else { 0 }); // the acknowledgement request
    frame.extend(&number.to_be_bytes()[1..]);
    if matches!(packet.kind, Kind::Ack | Kind::Nack) {
        // Without credits, or of a sequence error; messages received, of which a flow is one.
        frame.extend([if packet.kind == Kind::Nack { 0x60 } else { 0x1f }, 0, 0, 0]);
    }
    if packet.kind == Kind::Cnp {
        frame.extend(reserved(packet));
    }
    let keep = match snap {
        Some(snap) => (snap as usize).min(wire),
        None if packet.kind == Kind::Data => frame.len().min(wire),
        None => wire,
    };
    frame.resize(keep, 0);
    frame
}

/// First, middle, last, or only packet of a send on a reliable connection.
fn send_opcode(packet: &PacketFacts) -> u8 {
    match (packet.position == 0, packet.position + 1 == packet.packets) {
        (true, true) => 0x04,
        (true, false) => 0x00,
        (false, false) => 0x01,
        (false, true) => 0x02,
    }
}

/// Addresses are those of the hosts: switches forward and do not route, so they change nothing but marks.
fn ethernet(packet: &PacketFacts) -> Vec<u8> {
    let mut frame = Vec::with_capacity(128);
    for host in [packet.destination, packet.source] {
        frame.extend([0x02, 0]); // locally administered
        frame.extend(host.to_be_bytes());
    }
    frame.extend([0x08, 0x00]);
    frame
}

/// A whole frame of priority flow control (IEEE 802.3, annex 31D). A pause that lasts until another frame ends it has
/// the longest time, and so have those that expire: a frame counts in quanta of the link's rate, which it does not
/// know.
fn pause(packet: &PacketFacts) -> Vec<u8> {
    let (about, paused) = (packet.value as u8, (packet.value >> 8) as u8);
    let mut frame = vec![0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x00];
    frame.extend(packet.source.to_be_bytes());
    frame.extend([0x88, 0x08, 0x01, 0x01, 0x00, about]);
    for priority in 0..8 {
        frame.extend(if paused & 1 << priority == 0 { [0, 0] } else { [0xff, 0xff] });
    }
    frame
}

/// The field of RFC 3168. Where UE takes the place of ECT(0), packets without a mark are ECT(1).
fn ecn(packet: &PacketFacts, ternary: bool) -> u8 {
    match packet.codepoint {
        Codepoint::CongestionExperienced => 0b11,
        Codepoint::UndeterminedExperienced => 0b10,
        Codepoint::None if !packet.ecn_capable => 0b00,
        Codepoint::None if ternary => 0b01,
        Codepoint::None => 0b10,
    }
}

/// RFC 791. The code point of RFC 2474 is the priority, that of RFC 3168 the mark.
fn ipv4(frame: &mut Vec<u8>, packet: &PacketFacts, context: &FrameContext, protocol: u8, total: usize) {
    let ecn = ecn(packet, context.ternary);
    let start = frame.len();
    frame.extend([0x45, packet.priority << 5 | ecn]);
    frame.extend((total as u16).to_be_bytes());
    frame.extend((packet.position as u16).to_be_bytes());
    frame.extend([0x40, 0, 64, protocol, 0, 0]); // do not fragment; time to live
    frame.extend(address(packet.source));
    frame.extend(address(packet.destination));
    let checksum = !ones_complement(0, &frame[start..]);
    frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// Ports of a flow: those of the sender and of the receiver of its data. Flows of one pair of hosts differ.
fn ports(packet: &PacketFacts) -> (u16, u16) {
    let port = |number: u32| DYNAMIC_PORTS + (number % 16_384) as u16;
    let (sender, receiver) = (port(packet.sequence), port(packet.sequence / 16_384));
    if packet.kind == Kind::Data { (sender, receiver) } else { (receiver, sender) }
}

/// Sequence number of a packet's first byte: streams begin at 1, there is no handshake.
fn position(packet: u32, context: &FrameContext) -> u32 {
    (u64::from(packet) * u64::from(context.mtu)).min(context.flow_bytes) as u32 + 1
}

/// SACK blocks of an acknowledgement, in bytes of the stream: as many as the frame has room for.
fn blocks(packet: &PacketFacts, context: &FrameContext) -> Vec<(u32, u32)> {
    const WITHOUT: u32 = 18 + 20 + 20 + 12;
    let Some(blocks) = packet.blocks else { return Vec::new() };
    let room = packet.wire.saturating_sub(WITHOUT + 4) / 8;
    let both = [blocks.first(packet.position), blocks.second(packet.position)].into_iter();
    let of = |block: std::ops::Range<u32>| (position(block.start, context), position(block.end, context));
    both.filter(|block| !block.is_empty()).take(room as usize).map(of).collect()
}

/// TCP (RFC 9293) with timestamps in microseconds (RFC 7323) and, in acknowledgements, SACK blocks (RFC 2018). Returns where
/// the headers end.
fn tcp(frame: &mut Vec<u8>, packet: &PacketFacts, context: &FrameContext) -> usize {
    const ACK: u8 = 0x10;
    const PSH: u8 = 0x08;
    const ECE: u8 = 0x40;
    let is_data = packet.kind == Kind::Data;
    let blocks = blocks(packet, context);
    let option = if blocks.is_empty() { 0 } else { 4 + 8 * blocks.len() };
    let length = 20 + 12 + if is_data { packet.payload as usize } else { option };
    ipv4(frame, packet, context, 6, 20 + length);
    let start = frame.len();
    let (source, destination) = ports(packet);
    frame.extend(source.to_be_bytes());
    frame.extend(destination.to_be_bytes());
    let microseconds = |ps: u64| (ps / 1_000_000) as u32 + 1;
    let (sequence, acknowledged, flags, time, echo) = if is_data {
        let last = packet.position + 1 == packet.packets;
        let flags = ACK | if last { PSH } else { 0 };
        (position(packet.position, context), 1, flags, microseconds(packet.value), 0)
    } else {
        let flags = ACK | if packet.report.1 > 0 { ECE } else { 0 };
        let delay = u64::from(packet.delay_ns.max(0).unsigned_abs()) * 1000;
        let (time, echo) = (microseconds(packet.value + delay), microseconds(packet.value));
        (1, position(packet.packets, context), flags, time, echo)
    };
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledged.to_be_bytes());
    frame.extend([((32 + option) as u8 / 4) << 4, flags]);
    frame.extend([0xff, 0xff, 0, 0, 0, 0]); // window: no limit is simulated; checksum; urgent pointer
    frame.extend([1, 1, 8, 10]);
    frame.extend(time.to_be_bytes());
    frame.extend(echo.to_be_bytes());
    if !blocks.is_empty() {
        frame.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (start, end) in blocks {
            frame.extend(start.to_be_bytes());
            frame.extend(end.to_be_bytes());
        }
    }
    // Payload is zero, which adds nothing.
    let checksum = !transport_sum(packet, 6, length, &frame[start..]);
    frame[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
    frame.len()
}

/// RoCEv2 on a reliable connection: sends, acknowledgements, NAKs for sequence errors, congestion notifications.
fn roce(frame: &mut Vec<u8>, packet: &PacketFacts, context: &FrameContext, keep: usize) -> usize {
    let ip = frame.len();
    let telemetry = match context.framing {
        Framing::RoceV2Int if packet.kind != Kind::Cnp => TELEMETRY,
        _ => 0,
    };
    let inner = match packet.kind {
        Kind::Data => telemetry + packet.payload as usize,
        Kind::Cnp => 16,
        _ => 4 + telemetry,
    };
    let length = 8 + 12 + inner + 4;
    ipv4(frame, packet, context, 17, 20 + length);
    let udp = frame.len();
    let (source, _) = if packet.kind == Kind::Data { ports(packet) } else { (ports(packet).1, 0) };
    frame.extend(source.to_be_bytes());
    frame.extend(ROCE_PORT.to_be_bytes());
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0, 0]); // no checksum: the invariant CRC covers more
    let last = packet.position + 1 == packet.packets;
    let (opcode, number) = match packet.kind {
        Kind::Data => (send_opcode(packet), packet.position),
        Kind::Nack => (0x11, packet.packets),
        Kind::Cnp => (0x81, 0),
        _ => (0x11, packet.packets.wrapping_sub(1)),
    };
    let bth = frame.len();
    frame.extend([opcode, 0, 0xff, 0xff, 0]);
    frame.extend(&packet.sequence.to_be_bytes()[1..]);
    frame.push(if packet.kind == Kind::Data && last { 0x80 } else { 0 }); // the acknowledgement request
    frame.extend(&number.to_be_bytes()[1..]);
    debug_assert_eq!(frame.len(), bth + 12);
    match packet.kind {
        Kind::Data => {
            let start = frame.len();
            let headers = start + telemetry;
            frame.resize(headers, 0);
            if keep > headers {
                frame.resize(start + inner, 0);
                invariant_crc(frame, ip, udp);
            }
            return headers;
        }
        Kind::Cnp => frame.extend(reserved(packet)),
        kind => {
            // Acknowledgement without credits, or NAK of a sequence error; messages received, of which a flow is one.
            frame.extend([if kind == Kind::Nack { 0x60 } else { 0x1f }, 0, 0, 0]);
            frame.resize(frame.len() + telemetry, 0);
        }
    }
    invariant_crc(frame, ip, udp);
    frame.len()
}

/// The reserved bytes of a congestion notification. The first 32 bits are the window that a switch grants (X. He et al.,
/// J. Cloud Computing 2024), zero of a notification that grants none.
fn reserved(packet: &PacketFacts) -> [u8; 16] {
    let mut bytes = [0; 16];
    if packet.value != u64::MAX {
        let window = u32::try_from(packet.value).unwrap_or(u32::MAX);
        bytes[..4].copy_from_slice(&window.to_be_bytes());
    }
    bytes
}

/// The CRC over what no router changes: the rest counts as ones (InfiniBand volume 1, annex A17).
fn invariant_crc(frame: &mut Vec<u8>, ip: usize, udp: usize) {
    let mut covered = vec![0xff; 8];
    covered.extend(&frame[ip..]);
    let at = |place: usize| place - ip + 8;
    for place in [ip + 1, ip + 8, ip + 10, ip + 11, udp + 6, udp + 7, udp + 12] {
        covered[at(place)] = 0xff;
    }
    let crc = !crc32(!0, &covered);
    frame.extend(crc.to_le_bytes());
}

/// A notification (1), credit (2), flow given up (3), trimmed header (4), one sent back (5), signal (6), report of an
/// underlay (7), marker (8) or answer to one (9), question for a connection (10) or answer to it (11), congestion
/// isolation message (12) in a form of our own: kind, priority, two zero bytes, flow number, value, padding.
fn control(frame: &mut Vec<u8>, packet: &PacketFacts, context: &FrameContext) -> usize {
    let room = (packet.wire as usize).saturating_sub(14 + 20 + 8 + FCS).max(16);
    let length = 8 + room;
    ipv4(frame, packet, context, 17, 20 + length);
    let start = frame.len();
    let kind: u8 = match packet.kind {
        Kind::Credit => 2,
        Kind::Rst => 3,
        Kind::Trimmed => 4,
        Kind::Bounced => 5,
        Kind::Signal => 6,
        Kind::Report => 7,
        Kind::Marker => 8,
        Kind::MarkerAck => 9,
        Kind::Isolation => 12,
        Kind::Syn => 10,
        Kind::SynAck => 11,
        _ => 1,
    };
    frame.extend(ports(packet).1.to_be_bytes());
    frame.extend(CONTROL_PORT.to_be_bytes());
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0, 0, kind, packet.priority, 0, 0]);
    frame.extend(packet.sequence.to_be_bytes());
    frame.extend(packet.value.to_be_bytes());
    frame.resize(start + length, 0);
    let checksum = match !transport_sum(packet, 17, length, &frame[start..]) {
        0 => 0xffff,
        checksum => checksum,
    };
    frame[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    frame.len()
}

/// One's complement sum over pseudo-header and segment.
fn transport_sum(packet: &PacketFacts, protocol: u8, length: usize, segment: &[u8]) -> u16 {
    let mut pseudo = Vec::with_capacity(12);
    pseudo.extend(address(packet.source));
    pseudo.extend(address(packet.destination));
    pseudo.extend([0, protocol]);
    pseudo.extend((length as u16).to_be_bytes());
    ones_complement(ones_complement(0, &pseudo), segment)
}

/// The Internet checksum's sum (RFC 1071), not yet complemented.
fn ones_complement(start: u16, bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let mut sum = bytes.chunks(2).fold(u32::from(start), |sum, pair| sum + word(pair));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// CRC-32 of IEEE 802.3, clause 3.2.9, reflected; complement start and end.
fn crc32(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use incast_sim::recovery::Blocks;

    /// A data packet.
    pub fn data() -> PacketFacts {
        PacketFacts {
            blocks: None,
            kind: Kind::Data,
            class: 0,
            priority: 0,
            ecn_capable: true,
            codepoint: Codepoint::None,
            source: 1,
            destination: 2,
            sequence: 7,
            position: 3,
            packets: 10,
            wire: 1518,
            payload: 1448,
            deflections: 0,
            report: (0, 0),
            delay_ns: 0,
            value: 5_000_000,
        }
    }

    const CONTEXT: FrameContext = FrameContext { framing: Framing::Tcp, mtu: 1448, flow_bytes: 14_000, ternary: false };

    #[test]
    fn infiniband_begins_with_its_local_route_header() {
        let context = FrameContext { framing: Framing::InfiniBand, ..CONTEXT };
        let packet = PacketFacts { wire: 1474, priority: 3, codepoint: Codepoint::CongestionExperienced, ..data() };
        let headers = frame(&packet, &context, None);
        // Lane 3; service level 3 and BTH; to host 2 from host 1; 1,472 bytes are 368 words.
        assert_eq!(headers[..8], [0x30, 0x32, 0, 3, 1, 0x70, 0, 2]);
        // Middle of a send with FECN, flow 7, packet 3.
        assert_eq!(headers[8..], [1, 0, 0xff, 0xff, 0x80, 0, 0, 7, 0, 0, 0, 3]);
        assert_eq!(frame(&packet, &context, Some(65_535)).len(), 1474);
        let ack = PacketFacts { kind: Kind::Ack, wire: 30, report: (1, 1), packets: 4, ..data() };
        let ack = frame(&ack, &context, None);
        assert_eq!((ack.len(), ack[8], ack[12], ack[19], ack[20]), (30, 0x11, 0x40, 3, 0x1f));
        let cnp = PacketFacts { kind: Kind::Cnp, wire: 42, value: 52_336, ..data() };
        let granting = frame(&cnp, &context, None);
        assert_eq!((granting.len(), granting[8], granting[12]), (42, 0x80, 0x40));
        assert_eq!(granting[20..36], [[0, 0, 0xcc, 0x70], [0; 4], [0; 4], [0; 4]].concat());
        let others = frame(&PacketFacts { value: u64::MAX, ..cnp }, &context, None);
        assert_eq!((&others[..20], &others[20..36]), (&granting[..20], &[0; 16][..]));
    }

    #[test]
    fn sums_have_their_known_values() {
        // RFC 1071, section 3.
        assert_eq!(ones_complement(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        // The check value of CRC-32.
        assert_eq!(!crc32(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_pause_frame_names_its_priorities() {
        let value = 0b1001 | 0b1000 << 8;
        let packet = PacketFacts { kind: Kind::Pause, priority: 8, wire: 64, source: 9, value, ..data() };
        let frame = frame(&packet, &CONTEXT, None);
        assert_eq!(frame.len(), 64);
        assert_eq!(frame[..18], [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 1, 1, 0, 0b1001]);
        // Priority 3 pauses, priority 0 goes on.
        assert_eq!(frame[18..34], [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_frame_is_as_long_as_the_book_says_and_cut_where_asked() {
        let cut = frame(&data(), &CONTEXT, None);
        assert_eq!(cut.len(), 66);
        assert_eq!(frame(&data(), &CONTEXT, Some(65_535)).len(), 1518);
        assert_eq!(frame(&data(), &CONTEXT, Some(100)).len(), 100);
        assert_eq!(frame(&data(), &CONTEXT, Some(65_535))[..66], cut);
        let roce = FrameContext { framing: Framing::RoceV2, ..CONTEXT };
        let packet = PacketFacts { wire: 1448 + 62, ..data() };
        assert_eq!(frame(&packet, &roce, None).len(), 54);
        assert_eq!(frame(&packet, &roce, Some(65_535)).len(), 1510);
        let telemetry = FrameContext { framing: Framing::RoceV2Int, ..CONTEXT };
        let packet = PacketFacts { wire: 1448 + 104, ..data() };
        assert_eq!(frame(&packet, &telemetry, None).len(), 96);
        assert_eq!(frame(&packet, &telemetry, Some(65_535)).len(), 1552);
    }

    #[test]
    fn the_invariant_crc_is_what_others_compute() {
        let roce = FrameContext { framing: Framing::RoceV2, ..CONTEXT };
        let ack = PacketFacts {
            kind: Kind::Ack,
            wire: 66,
            payload: 0,
            position: 0,
            packets: 1,
            source: 2,
            destination: 1,
            ecn_capable: false,
            ..data()
        };
        // The same frame made by Scapy 2's `BTH` and `AETH`.
        assert_eq!(frame(&ack, &roce, None)[58..62], [0x1c, 0x2d, 0x35, 0x28]);
    }

    #[test]
    fn code_points_are_those_of_the_switches_in_use() {
        let ternary = FrameContext { ternary: true, ..CONTEXT };
        let of = |codepoint, ecn_capable, context: &FrameContext| {
            frame(&PacketFacts { codepoint, ecn_capable, ..data() }, context, None)[15]
        };
        for (codepoint, two, three) in [
            (Codepoint::None, 0b10, 0b01),
            (Codepoint::UndeterminedExperienced, 0b10, 0b10),
            (Codepoint::CongestionExperienced, 0b11, 0b11),
        ] {
            assert_eq!((of(codepoint, true, &CONTEXT), of(codepoint, true, &ternary)), (two, three));
        }
        assert_eq!(of(Codepoint::None, false, &ternary), 0b00);
    }

    #[test]
    fn headers_hold_what_the_packet_says() {
        let codepoint = Codepoint::CongestionExperienced;
        let bytes = frame(&PacketFacts { codepoint, priority: 3, ..data() }, &CONTEXT, None);
        assert_eq!(bytes[15], 3 << 5 | 3);
        assert_eq!(&bytes[26..34], &[10, 0, 0, 2, 10, 0, 0, 3]);
        assert_eq!(u32::from_be_bytes([bytes[38], bytes[39], bytes[40], bytes[41]]), 3 * 1448 + 1);
        // The sum over a header with its checksum is all ones.
        assert_eq!(ones_complement(0, &bytes[14..34]), 0xffff);
        // An acknowledgement of packet 5 while 3 is missing has a block of it; one in order has none.
        let ack = PacketFacts {
            kind: Kind::Ack,
            wire: 82,
            blocks: Some(Blocks::default()),
            payload: 0,
            position: 5,
            packets: 3,
            ..data()
        };
        let bytes = frame(&PacketFacts { report: (1, 1), ..ack }, &CONTEXT, None);
        assert_eq!((bytes.len(), bytes[47] & 0x40), (82, 0x40));
        assert_eq!(bytes[66..70], [1, 1, 5, 10]);
        // Two blocks: 4 and 5, and 1 before the missing 2 and 3.
        let both = Blocks { before: 1, after: 0, gap: 2, length: 1 };
        let bytes = frame(&PacketFacts { wire: 90, packets: 1, blocks: Some(both), ..ack }, &CONTEXT, None);
        let edges = bytes[70..86].chunks_exact(4).map(|edge| u32::from_be_bytes([edge[0], edge[1], edge[2], edge[3]]));
        assert_eq!(bytes[66..70], [1, 1, 5, 18]);
        assert_eq!(edges.map(|edge| edge / 1448).collect::<Vec<_>>(), [4, 6, 1, 2]);
        let in_order = frame(&PacketFacts { wire: 70, packets: 6, blocks: None, ..ack }, &CONTEXT, None);
        assert_eq!((in_order.len(), in_order[46] >> 4), (70, 8), "no option beside the time stamps");
        // Beyond the last, short packet there is nothing.
        let bytes = frame(&PacketFacts { packets: 10, position: 9, ..ack }, &CONTEXT, None);
        assert_eq!(u32::from_be_bytes([bytes[42], bytes[43], bytes[44], bytes[45]]), 14_001);
    }
}
