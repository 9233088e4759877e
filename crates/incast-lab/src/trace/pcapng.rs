//! pcapng: one interface for each place, times in picoseconds, frames as they were on the wire.
//!
//! Source: draft-ietf-opsawg-pcapng.

use super::{
    Traced, View,
    frame::{FrameContext, address, frame, is_infiniband},
};
use incast_sim::{
    outcome::{EventKind, PacketRecord, Step},
    packet::Kind,
};
use incast_units::Time;
use std::{
    collections::BTreeSet,
    io::{self, Write},
};

/// A place where packets are seen. Ordered as interfaces are numbered: hosts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A host's NIC, both directions.
    Host(u32),
    /// An egress port.
    Port(u32, u16),
}

/// A packet seen at a place.
struct Seen<'a> {
    time: Time,
    place: Place,
    inbound: bool,
    record: &'a PacketRecord,
}

/// Writes what was recorded. `snap` bytes of each frame are kept, without it the headers.
///
/// # Errors
/// Those of `out`.
pub fn write(traced: &Traced, snap: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    let seen = seen(traced);
    // A place has an interface for each kind of link that its packets are of.
    let interface_of = |seen: &Seen<'_>| {
        let packet = &seen.record.packet;
        (seen.place, is_infiniband(packet, traced.framing[usize::from(packet.class)]))
    };
    let places: BTreeSet<(Place, bool)> = seen.iter().map(interface_of).collect();
    let places: Vec<(Place, bool)> = places.into_iter().collect();
    section(out)?;
    for (place, infiniband) in &places {
        interface(traced, *place, *infiniband, snap, out)?;
    }
    let hosts = seen.iter().flat_map(|seen| [seen.record.packet.source, seen.record.packet.destination]);
    names(traced, &hosts.collect(), out)?;
    for seen in &seen {
        let packet = &seen.record.packet;
        let context = FrameContext {
            framing: traced.framing[usize::from(packet.class)],
            mtu: traced.mtu,
            flow_bytes: traced.flow_bytes(packet.flow()),
            ternary: traced.ternary,
        };
        let interface = places.binary_search(&interface_of(seen)).unwrap_or_default() as u32;
        let lost = matches!(seen.record.step, Step::Sent { arrival: None, .. });
        let mut body = Vec::new();
        body.extend(interface.to_le_bytes());
        body.extend(((seen.time.ps() >> 32) as u32).to_le_bytes());
        body.extend((seen.time.ps() as u32).to_le_bytes());
        let frame = frame(packet, &context, snap);
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(packet.wire.to_le_bytes());
        body.extend(&frame);
        pad(&mut body);
        // epb_flags: direction, and the length of the frame check sequence.
        let check: u32 = if interface_of(seen).1 { 2 } else { 4 };
        let flags: u32 = if seen.inbound { 1 } else { 2 } | check << 5;
        option(&mut body, 2, &flags.to_le_bytes());
        if lost {
            option(&mut body, 1, b"lost on the wire");
        }
        option(&mut body, 0, &[]);
        block(out, 6, &body)?;
    }
    out.flush()
}

/// Where and when packets are seen: outgoing ones when their first bit leaves, incoming ones when their last arrives.
fn seen(traced: &Traced) -> Vec<Seen<'_>> {
    let is_host = |node: u32| node < traced.hosts;
    // A link that goes down loses the packets that are on it.
    let lost: BTreeSet<_> = traced
        .outcome
        .packets
        .iter()
        .filter(|record| record.step == Step::Event(EventKind::Lost) && is_host(record.node))
        .map(|record| (record.node, record.time, record.packet.transmission()))
        .collect();
    let mut all = Vec::new();
    for record in &traced.outcome.packets {
        let Step::Sent { arrival, .. } = record.step else { continue };
        if record.packet.kind == Kind::FlowControl {
            // Captures have no place for packets of the link alone.
            continue;
        }
        let outbound = match traced.view {
            View::Port(node, port) => Some(Place::Port(node, port)),
            View::Host(host) => (record.node == host).then_some(Place::Host(host)),
            View::Everywhere if is_host(record.node) => Some(Place::Host(record.node)),
            View::Everywhere => Some(Place::Port(record.node, record.port)),
        };
        if let Some(place) = outbound {
            all.push(Seen { time: record.time, place, inbound: false, record });
        }
        let peer = traced.labels.peer(record.node, record.port).filter(|peer| is_host(*peer));
        let wanted = |host: &u32| match traced.view {
            View::Port(..) => false,
            View::Host(own) => own == *host,
            View::Everywhere => true,
        };
        if let (Some(host), Some(time)) = (peer.filter(wanted), arrival)
            && time <= traced.outcome.ended_at
            && !lost.contains(&(host, time, record.packet.transmission()))
        {
            all.push(Seen { time, place: Place::Host(host), inbound: true, record });
        }
    }
    all.sort_by_key(|seen| (seen.time, seen.place));
    all
}

fn section(out: &mut dyn Write) -> io::Result<()> {
    let mut body = Vec::new();
    body.extend(0x1A2B_3C4D_u32.to_le_bytes());
    body.extend(1u16.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    body.extend(u64::MAX.to_le_bytes());
    option(&mut body, 4, concat!("incast ", env!("CARGO_PKG_VERSION")).as_bytes());
    option(&mut body, 0, &[]);
    block(out, 0x0A0D_0D0A, &body)
}

fn interface(
    traced: &Traced,
    place: Place,
    infiniband: bool,
    snap: Option<u32>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (name, node, port) = match place {
        Place::Host(host) => (traced.labels.node(host).to_owned(), host, 0),
        Place::Port(node, port) => (traced.labels.port(node, port), node, port),
    };
    let mut body = Vec::new();
    let link_type: u16 = if infiniband { 247 } else { 1 }; // InfiniBand from the local route header on, or Ethernet
    body.extend(link_type.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    body.extend(snap.unwrap_or(0).to_le_bytes());
    option(&mut body, 2, name.as_bytes());
    if let Some(rate) = traced.rate(node, port) {
        option(&mut body, 8, &rate.bps().to_le_bytes());
    }
    option(&mut body, 9, &[12]); // times in 10^-12 s
    option(&mut body, 13, &[if infiniband { 2 } else { 4 }]); // bytes of the frame check sequence
    option(&mut body, 0, &[]);
    block(out, 1, &body)
}

/// Names of addresses.
fn names(traced: &Traced, hosts: &BTreeSet<u32>, out: &mut dyn Write) -> io::Result<()> {
    let mut body = Vec::new();
    for host in hosts {
        let mut record = address(*host).to_vec();
        record.extend(traced.labels.node(*host).as_bytes());
        record.push(0);
        option(&mut body, 1, &record);
    }
    option(&mut body, 0, &[]);
    block(out, 4, &body)
}

fn block(out: &mut dyn Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length)?;
    out.write_all(body)?;
    out.write_all(&length)
}

/// An option; a record of a name block has the same form.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::labels::Labels, trace::frame};
    use incast_cc::{agent::Codepoint, law::Framing};
    use incast_sim::{
        Outcome,
        outcome::{FlowRecord, PacketFacts},
        packet::Kind,
        recovery::Blocks,
        topology::{Link, SingleSwitch},
    };
    use incast_units::Rate;
    use std::process::Command;

    /// One flow of three packets from h1 to h2 under a framing: data, and every kind of answer.
    fn traced(framing: Framing) -> Traced {
        let link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.0 };
        let topology = SingleSwitch { hosts: 3, link }.build().expect("a good topology");
        let (header, control) = match framing {
            Framing::Tcp => (70, 70),
            Framing::RoceV2 => (62, 66),
            Framing::RoceV2Int => (104, 108),
            Framing::InfiniBand => (26, 30),
        };
        let data = |position: u32, payload: u32, codepoint| PacketFacts {
            position,
            packets: 3,
            payload,
            wire: payload + header,
            codepoint,
            ..frame::tests::data()
        };
        let answer = |kind, position, packets, wire| PacketFacts {
            kind,
            position,
            packets,
            wire,
            payload: 0,
            ecn_capable: false,
            source: 2,
            destination: 1,
            delay_ns: 2_000,
            report: (1, 1),
            ..frame::tests::data()
        };
        let beyond_a_gap = match framing {
            Framing::Tcp => PacketFacts { blocks: Some(Blocks::default()), ..answer(Kind::Ack, 2, 1, control + 12) },
            _ => answer(Kind::Ack, 2, 1, control),
        };
        let packets = [
            data(0, 1448, Codepoint::None),
            data(1, 1448, Codepoint::CongestionExperienced),
            data(2, 101, Codepoint::None),
            answer(Kind::Ack, 0, 1, control),
            beyond_a_gap,
            answer(Kind::Nack, 2, 1, control),
            answer(Kind::Cnp, 0, 0, 64),
            answer(Kind::Cnp, 0, 0, 78),
            answer(Kind::Credit, 0, 0, control),
        ];
        let record = |(index, packet): (usize, PacketFacts)| {
            let time = Time::from_ps(1_000_000_000_001 + index as u64);
            let step = Step::Sent { end: time, arrival: Some(time) };
            PacketRecord { time, node: packet.source, port: 0, step, packet }
        };
        let flow = FlowRecord { source: 1, sequence: 7, bytes: 2_997, ..FlowRecord::default() };
        let outcome = Outcome {
            packets: packets.into_iter().enumerate().map(record).collect(),
            flows: vec![flow],
            ended_at: Time::from_us(2_000_000),
            ..Outcome::default()
        };
        Traced {
            outcome,
            labels: Labels::new(&topology),
            hosts: 3,
            classes: vec!["all".into()],
            framing: vec![framing],
            mtu: 1448,
            ternary: false,
            view: View::Everywhere,
            flow: Some((1, 7)),
            ports: topology.ports(),
            topology,
        }
    }

    /// Blocks by type, each with its body.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (kind, length) = (number(bytes), number(&bytes[4..]) as usize);
            assert!(length.is_multiple_of(4) && length >= 12);
            assert_eq!(number(&bytes[length - 4..]) as usize, length, "the length stands at both ends");
            all.push((kind, bytes[8..length - 4].to_vec()));
            bytes = &bytes[length..];
        }
        all
    }

    #[test]
    fn blocks_are_whole() {
        let mut file = Vec::new();
        write(&traced(Framing::Tcp), None, &mut file).expect("memory takes everything");
        let blocks = blocks(&file);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds[..4], [0x0A0D_0D0A, 1, 1, 4]);
        assert!(kinds[4..].iter().all(|kind| *kind == 6) && kinds.len() == 4 + 9);
        // 1.000000000001 s on the first interface, 66 of 1,518 bytes.
        let first = &blocks[4].1;
        let word = |place: usize| u32::from_le_bytes(first[place..place + 4].try_into().expect("a word"));
        assert_eq!((word(0), u64::from(word(4)) << 32 | u64::from(word(8))), (0, 1_000_000_000_001));
        assert_eq!((word(12), word(16)), (66, 1518));
    }

    /// tshark's view of a capture: fields of the packets that a filter selects.
    fn tshark(file: &std::path::Path, filter: &str, fields: &[&str]) -> Vec<String> {
        let mut command = Command::new("tshark");
        command.arg("-n").arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]);
        for check in ["ip.check_checksum", "tcp.check_checksum", "udp.check_checksum", "eth.check_fcs"] {
            command.args(["-o", &format!("{check}:TRUE")]);
        }
        command.args(fields.iter().flat_map(|field| ["-e", field]));
        let output = command.output().expect("tshark starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// The formats that no test of the command line meets: RoCEv2, credits, notifications.
    #[test]
    fn tshark_reads_every_kind_of_packet() {
        if Command::new("tshark").arg("--version").output().is_err() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI needs tshark");
            eprintln!("skipped: no tshark to read captures with");
            return;
        }
        for framing in [Framing::Tcp, Framing::RoceV2, Framing::RoceV2Int] {
            for snap in [None, Some(65_535)] {
                let name = format!("incast-pcapng-{}-{framing:?}-{snap:?}.pcapng", std::process::id());
                let path = std::env::temp_dir().join(name);
                let mut file = Vec::new();
                write(&traced(framing), snap, &mut file).expect("memory takes everything");
                std::fs::write(&path, &file).expect("a temporary file");
                let read = |filter: &str, fields: &[&str]| tshark(&path, filter, fields);
                let what = format!("{framing:?} {snap:?}");
                assert_eq!(read("frame", &["frame.number"]).len(), 9, "{what}");
                let wrong = [
                    "_ws.malformed",
                    "_ws.expert.severity == error",
                    "ip.checksum.status == bad",
                    "udp.checksum.status == bad",
                    "tcp.checksum.status == bad",
                    "eth.fcs.status == bad",
                ];
                // tshark takes longer to start than to read.
                assert_eq!(read(&wrong.join(" || "), &["frame.number", "_ws.expert.message"]), [""; 0], "{what}");
                assert_eq!(read("ip.dsfield.ecn == 3", &["frame.number"]), ["2"], "{what}");
                // Whole frames have a check sequence that can be checked: answers always.
                let checked = read("eth.fcs.status == good", &["frame.number"]).len();
                assert_eq!(checked, if snap.is_none() { 6 } else { 9 }, "{what}");
                if framing != Framing::Tcp {
                    let fields = ["infiniband.bth.opcode", "infiniband.bth.psn"];
                    let seen = read("infiniband", &fields);
                    // First, middle and last send; two acknowledgements below 1; NAK of 1; the longer notification.
                    assert_eq!(seen, ["0\t0", "1\t1", "2\t2", "17\t0", "17\t0", "17\t1", "129\t0"], "{what}");
                    assert_eq!(read("infiniband.aeth.syndrome.opcode == 3", &["frame.number"]), ["6"], "{what}");
                } else {
                    let sack = read("tcp.options.sack_le", &["tcp.options.sack_le", "tcp.options.sack_re", "tcp.ack"]);
                    assert_eq!(sack, ["2897\t2998\t1449"].map(String::from).to_vec(), "{what}");
                }
                std::fs::remove_file(&path).expect("removed");
            }
        }
    }
}
