//! What was recorded, in a few lines: the flow's fate, and what each place did to packets.

use super::{Traced, View, perfetto::event_name};
use crate::{
    plain::{Line, Plain, paragraph},
    text::{bytes, number},
};
use incast_sim::{
    outcome::{EventKind, FlowRecord, PacketFacts, PacketRecord, Step},
    packet::Kind,
};
use incast_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write,
};

/// What a place did.
#[derive(Default)]
struct Place<'a> {
    first: Option<Time>,
    data: u64,
    control: u64,
    bytes: u64,
    waited: Vec<Time>,
    longest_queue: u64,
    waiting: BTreeMap<(u8, u32, u32, u32, u64), VecDeque<&'a PacketRecord>>,
    events: BTreeMap<EventKind, u64>,
}

/// The text, in lines of at most so many columns.
pub fn render(traced: &Traced, width: usize) -> String {
    let mut text = String::new();
    if let Some(record) = traced.flow.and_then(|flow| traced.record(flow)) {
        paragraph(&mut text, 0, &describe_flow(traced, record), width);
    }
    match traced.view {
        View::Everywhere => {}
        View::Port(node, port) => {
            let _ = writeln!(text, "at {}", traced.labels.port(node, port));
        }
        View::Host(host) => {
            let _ = writeln!(text, "at {}, both directions", traced.labels.node(host));
        }
    }
    if traced.flow.is_none() {
        // Frames of flow control belong to no flow.
        let packets = traced.outcome.packets.iter().map(|record| &record.packet);
        let belongs = |packet: &&PacketFacts| {
            !matches!(packet.kind, Kind::Pause | Kind::FlowControl | Kind::MarkerAck | Kind::Isolation)
        };
        let flows: BTreeSet<_> = packets.filter(belongs).map(PacketFacts::flow).collect();
        let _ = writeln!(text, "packets of {} flows", flows.len());
    }
    text.push_str(&table(traced).draw(width));
    if traced.outcome.packets_left_out > 0 {
        let _ = writeln!(
            text,
            "{} records did not fit: choose a shorter time with --from and --until",
            traced.outcome.packets_left_out
        );
    }
    text
}

fn describe_flow(traced: &Traced, record: &FlowRecord) -> String {
    let labels = &traced.labels;
    let us = |time: Time| format!("{} us", number(time.as_us_f64()));
    let mut text = format!(
        "flow {}:{}, {} to {}, class {}, {}, starts at {}",
        record.source,
        record.sequence,
        labels.node(record.source),
        labels.node(record.destination),
        traced.classes[usize::from(record.class)],
        bytes(record.bytes),
        us(record.start)
    );
    match record.delivered {
        Some(delivered) => {
            let _ = write!(text, "\ndelivered after {}", us(delivered - record.start));
            if let Some(ideal) = record.ideal.filter(|ideal| *ideal > Time::ZERO) {
                let slowdown = (delivered - record.start).as_secs_f64() / ideal.as_secs_f64();
                let _ = write!(text, " (ideal {}, slowdown {})", us(ideal), number(slowdown));
            }
        }
        None => {
            let _ = write!(
                text,
                "\nnot delivered before {}: {} of it arrived",
                us(traced.outcome.ended_at),
                bytes(record.delivered_bytes)
            );
        }
    }
    let _ = write!(
        text,
        "; {} retransmitted, {} timeouts, {} packets marked, {} out of order",
        bytes(record.retransmitted_bytes),
        record.timeouts,
        record.marked_packets,
        record.reordered_packets
    );
    text
}

fn table(traced: &Traced) -> Plain {
    let mut places: BTreeMap<(u32, u16), Place<'_>> = BTreeMap::new();
    for record in &traced.outcome.packets {
        let place = places.entry((record.node, record.port)).or_default();
        place.first.get_or_insert(record.time);
        let packet = &record.packet;
        match record.step {
            Step::Queued(found) => {
                place.longest_queue = place.longest_queue.max(found + u64::from(packet.wire));
                place.waiting.entry(packet.transmission()).or_default().push_back(record);
            }
            Step::Sent { .. } => {
                if packet.kind == Kind::Data {
                    place.data += 1;
                } else {
                    place.control += 1;
                }
                place.bytes += u64::from(packet.wire);
                let since = place.waiting.get_mut(&packet.transmission()).and_then(VecDeque::pop_front);
                place.waited.push(since.map_or(Time::ZERO, |since| record.time - since.time));
            }
            Step::Event(kind) => *place.events.entry(kind).or_default() += 1,
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(port, place)| (place.first, *port));
    let line = |((node, port), place): ((u32, u16), Place<'_>)| {
        let waits = place.waited.len().max(1) as f64;
        let mean = place.waited.iter().map(|wait| wait.as_us_f64()).sum::<f64>() / waits;
        let longest = place.waited.iter().max().map_or(0.0, |wait| wait.as_us_f64());
        let event = |(kind, count): (&EventKind, &u64)| format!("{count} {}", event_name(*kind));
        Line::Cells(vec![
            traced.labels.port(node, port),
            place.data.to_string(),
            place.control.to_string(),
            bytes(place.bytes),
            number(mean),
            number(longest),
            bytes(place.longest_queue),
            place.events.iter().map(event).collect::<Vec<_>>().join(", "),
        ])
    };
    let header =
        ["port", "data", "control", "bytes", "mean wait us", "longest wait us", "longest queue found", "events"];
    Plain { header: header.map(str::to_owned).to_vec(), lines: places.into_iter().map(line).collect() }
}
