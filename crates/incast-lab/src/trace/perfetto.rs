//! A Perfetto trace: tracks of slices, counters and instants, which ui.perfetto.dev opens.
//!
//! Source of the field numbers: `protos/perfetto/trace` of Perfetto, which promises never to change them. Perfetto
//! counts nanoseconds; exact picoseconds stand beside each slice.

use super::{Traced, protobuf::Message};
use incast_cc::agent::Codepoint;
use incast_sim::{
    outcome::{EventKind, PacketFacts, PacketRecord, Step},
    packet::Kind,
};
use incast_units::Time;
use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Write},
};

/// The writer of all packets: a number that a trace of one program does not need, but has to have.
const SEQUENCE: u64 = 1;

/// Kinds of `TrackEvent`.
mod event {
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// Writes what was recorded.
///
/// # Errors
/// Those of `out`.
pub fn write(traced: &Traced, out: &mut dyn Write) -> io::Result<()> {
    let mut trace = Trace::default();
    if let Some(flow) = traced.flow {
        draw_flow(&mut trace, traced, flow);
    }
    let firsts = first_transmissions(&traced.outcome.packets);
    let mut ports: BTreeMap<(u32, u16), Vec<&PacketRecord>> = BTreeMap::new();
    for record in &traced.outcome.packets {
        ports.entry((record.node, record.port)).or_default().push(record);
    }
    // In the order in which packets came by: that of a flow's path.
    let mut ports: Vec<_> = ports.into_iter().collect();
    ports.sort_by_key(|(port, records)| (records.first().map(|record| record.time), *port));
    for ((node, port), records) in &ports {
        let name = traced.labels.port(*node, *port);
        let root = trace.track(0, &name);
        draw_queue(&mut trace, root, traced.flow.is_some(), records);
        draw_packets(&mut trace, root, traced, &firsts, records);
    }
    trace.write(out)
}

/// What happens to the flow as a whole: its life, its window, its rates.
fn draw_flow(trace: &mut Trace, traced: &Traced, flow: (u32, u32)) {
    let Some(record) = traced.record(flow) else { return };
    let labels = &traced.labels;
    let (from, to) = (labels.node(record.source), labels.node(record.destination));
    let root = trace.track(0, &format!("flow {}:{} {from} to {to}", flow.0, flow.1));
    let end = record.acked.or(record.delivered).unwrap_or(traced.outcome.ended_at);
    let mut about = vec![
        ("class", Note::Text(traced.classes[usize::from(record.class)].clone())),
        ("bytes", Note::Number(record.bytes)),
        ("start_ps", Note::Number(record.start.ps())),
        ("retransmitted_bytes", Note::Number(record.retransmitted_bytes)),
        ("timeouts", Note::Number(u64::from(record.timeouts))),
        ("marked_packets", Note::Number(u64::from(record.marked_packets))),
    ];
    for (name, time) in [
        ("fct_delivered_ps", record.delivered.map(|time| time - record.start)),
        ("fct_acked_ps", record.acked.map(|time| time - record.start)),
        ("ideal_ps", record.ideal),
    ] {
        about.extend(time.map(|time| (name, Note::Number(time.ps()))));
    }
    let life = trace.track(root, "life");
    trace.slice(life, record.start, end, &Label { name: "flow".into(), notes: about, flow: None });
    if let Some(delivered) = record.delivered {
        trace.instant(life, delivered, &Label { name: "delivered".into(), notes: Vec::new(), flow: None });
    }
    let rates = &traced.outcome.rates;
    if rates.iter().any(|sample| sample.window_bytes != u64::MAX) {
        let track = trace.counter_track(root, "window", Unit::Bytes);
        for sample in rates.iter().filter(|sample| sample.window_bytes != u64::MAX) {
            trace.count(track, sample.time, sample.window_bytes);
        }
    }
    let assigned = trace.counter_track(root, "assigned rate", Unit::Named("bit/s"));
    let measured = trace.counter_track(root, "acknowledged rate", Unit::Named("bit/s"));
    for sample in rates {
        trace.count(assigned, sample.time, sample.assigned_bps);
        trace.count(measured, sample.time, sample.measured_bps);
    }
}

/// The port's queue, the packet in service included. Of one flow only what its packets find is known.
fn draw_queue(trace: &mut Trace, root: u64, found_only: bool, records: &[&PacketRecord]) {
    enum Change {
        Set(u64),
        Leave(u64),
    }
    let mut changes: Vec<(Time, Change)> = Vec::new();
    let mut queued: BTreeMap<_, u32> = BTreeMap::new();
    for record in records {
        let wire = u64::from(record.packet.wire);
        match record.step {
            Step::Queued(found) if found_only => changes.push((record.time, Change::Set(found))),
            Step::Queued(found) => {
                changes.push((record.time, Change::Set(found + wire)));
                *queued.entry(record.packet.transmission()).or_default() += 1;
            }
            Step::Sent { end, .. } => {
                let waiting = queued.get_mut(&record.packet.transmission()).filter(|count| **count > 0);
                match waiting {
                    Some(count) => *count -= 1,
                    // It found the link idle and nothing else waiting.
                    None if !found_only => changes.push((record.time, Change::Set(wire))),
                    None => {}
                }
                if !found_only {
                    changes.push((end, Change::Leave(wire)));
                }
            }
            Step::Event(_) => {}
        }
    }
    if changes.is_empty() {
        return;
    }
    // What leaves at an instant has left before newcomers look.
    changes.sort_by_key(|(time, change)| (*time, matches!(change, Change::Set(_))));
    let name = if found_only { "queue found" } else { "queue" };
    let track = trace.counter_track(root, name, Unit::Bytes);
    let mut bytes = 0u64;
    for (time, change) in changes {
        bytes = match change {
            Change::Set(bytes) => bytes,
            Change::Leave(wire) => bytes.saturating_sub(wire),
        };
        trace.count(track, time, bytes);
    }
}

/// Packets that wait, packets that are sent, and what happens to them.
fn draw_packets(
    trace: &mut Trace,
    root: u64,
    traced: &Traced,
    firsts: &BTreeMap<(u32, u32, u32), u64>,
    records: &[&PacketRecord],
) {
    let mut waiting: BTreeMap<_, VecDeque<Time>> = BTreeMap::new();
    let mut lanes = Lanes::default();
    let (mut sending, mut events) = (None, None);
    for record in records {
        let packet = &record.packet;
        let label = Label {
            name: describe(packet, traced.flow.is_none(), firsts),
            notes: notes(packet),
            // Arrows join the places where one packet is sent.
            flow: Some(fingerprint(packet)),
        };
        match record.step {
            Step::Queued(_) => waiting.entry(packet.transmission()).or_default().push_back(record.time),
            Step::Sent { end, arrival } => {
                let since = waiting.get_mut(&packet.transmission()).and_then(VecDeque::pop_front);
                if let Some(since) = since {
                    let lane = lanes.take(trace, root, since, record.time);
                    trace.slice(lane, since, record.time, &Label { flow: None, ..label.clone() });
                }
                let track = *sending.get_or_insert_with(|| trace.track(root, "sending"));
                let mut label = label;
                label.notes.push(("start_ps", Note::Number(record.time.ps())));
                label.notes.push(("end_ps", Note::Number(end.ps())));
                match arrival {
                    Some(arrival) => label.notes.push(("arrival_ps", Note::Number(arrival.ps()))),
                    None => label.notes.push(("lost", Note::Text("on the wire".into()))),
                }
                trace.slice(track, record.time, end, &label);
            }
            Step::Event(kind) => {
                let track = *events.get_or_insert_with(|| trace.track(root, "events"));
                let name = match kind {
                    // It concerns the flow: no packet has been chosen yet.
                    EventKind::Timeout => "timeout".to_owned(),
                    EventKind::Pause => format!("pause of priority {}", packet.priority),
                    EventKind::Resume => format!("resume of priority {}", packet.priority),
                    _ => format!("{} {}", event_name(kind), label.name),
                };
                trace.instant(track, record.time, &Label { name, flow: None, ..label });
            }
        }
    }
}

/// When each data packet was sent first, of what was recorded.
fn first_transmissions(records: &[PacketRecord]) -> BTreeMap<(u32, u32, u32), u64> {
    let mut firsts = BTreeMap::new();
    for record in records.iter().filter(|record| is_sent_data(record)) {
        let packet = &record.packet;
        let first = firsts.entry((packet.source, packet.sequence, packet.position)).or_insert(packet.value);
        *first = packet.value.min(*first);
    }
    firsts
}

fn is_sent_data(record: &PacketRecord) -> bool {
    record.packet.kind == Kind::Data && !matches!(record.step, Step::Event(_))
}

/// A packet in few words.
fn describe(packet: &PacketFacts, with_flow: bool, firsts: &BTreeMap<(u32, u32, u32), u64>) -> String {
    let (source, sequence) = packet.flow();
    let with_flow =
        with_flow && !matches!(packet.kind, Kind::Pause | Kind::FlowControl | Kind::MarkerAck | Kind::Isolation);
    let prefix = if with_flow { format!("{source}:{sequence} ") } else { String::new() };
    let what = match packet.kind {
        Kind::Data => {
            let first = firsts.get(&(packet.source, packet.sequence, packet.position));
            let again = first.is_some_and(|first| packet.value > *first);
            format!("data {}{}", packet.position, if again { " again" } else { "" })
        }
        Kind::Ack => format!("ack of {}, all below {}", packet.position, packet.packets),
        Kind::Nack => format!("nack, missing {}", packet.packets),
        Kind::Cnp => "congestion notification".into(),
        Kind::Credit => format!("credit to {}", packet.value),
        Kind::Signal => "signal".into(),
        Kind::Rst => "flow given up".into(),
        Kind::Syn => "connection asked for".into(),
        Kind::SynAck => "connection accepted".into(),
        Kind::Pause => "pause frame".into(),
        Kind::FlowControl => {
            format!("credits of lane {}: sent {}, limit {}", packet.position, packet.value as u32, packet.value >> 32)
        }
        Kind::Trimmed => format!("header of data {}", packet.position),
        Kind::Bounced => format!("header of data {}, sent back", packet.position),
        Kind::Marker => "marker".into(),
        Kind::MarkerAck => "answer to a marker".into(),
        Kind::Isolation => "congestion isolation message".into(),
        Kind::Report => format!("one-way delay of data {}: {} ns", packet.position, packet.delay_ns),
    };
    prefix + &what
}

fn notes(packet: &PacketFacts) -> Vec<(&'static str, Note)> {
    let (source, sequence) = packet.flow();
    let ecn = match packet.codepoint {
        Codepoint::CongestionExperienced => "CE",
        Codepoint::UndeterminedExperienced => "UE",
        Codepoint::None if packet.ecn_capable => "ECN-capable",
        Codepoint::None => "not ECN-capable",
    };
    vec![
        ("flow", Note::Text(format!("{source}:{sequence}"))),
        ("wire_bytes", Note::Number(u64::from(packet.wire))),
        ("priority", Note::Number(u64::from(packet.priority))),
        ("ecn", Note::Text(ecn.into())),
    ]
}

/// A number that names one transmission of one packet on its whole path.
fn fingerprint(packet: &PacketFacts) -> u64 {
    let (kind, source, sequence, position, value) = packet.transmission();
    let words = [u64::from(kind), u64::from(source), u64::from(sequence), u64::from(position), value];
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    })
}

pub(super) fn event_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Drop => "drop",
        EventKind::Lost => "lost",
        EventKind::Mark => "mark",
        EventKind::Trim => "trim",
        EventKind::Pause => "pause",
        EventKind::Resume => "resume",
        EventKind::Timeout => "timeout",
        EventKind::Deflection => "deflection",
        EventKind::Bounce => "sent back",
    }
}

/// Tracks beside each other for slices that overlap.
#[derive(Default)]
struct Lanes(Vec<(u64, Time)>);

impl Lanes {
    /// A lane that is free then. All have one name, and Perfetto shows them as one.
    fn take(&mut self, trace: &mut Trace, root: u64, from: Time, to: Time) -> u64 {
        if let Some(lane) = self.0.iter_mut().find(|(_, free)| *free <= from) {
            lane.1 = to;
            return lane.0;
        }
        let lane = trace.track(root, "waiting");
        self.0.push((lane, to));
        lane
    }
}

/// What a counter counts.
enum Unit {
    Bytes,
    Named(&'static str),
}

/// A note beside an event.
#[derive(Clone)]
enum Note {
    Text(String),
    Number(u64),
}

/// The content of an event.
#[derive(Clone)]
struct Label {
    name: String,
    notes: Vec<(&'static str, Note)>,
    /// Events with one number are joined by an arrow.
    flow: Option<u64>,
}

/// A trace under construction.
#[derive(Default)]
struct Trace {
    tracks: Vec<Message>,
    /// When each track is free again, in nanoseconds.
    free: Vec<u64>,
    /// Events by nanosecond and, within one, ends before all else: slices of a track must nest.
    events: Vec<(u64, u8, Message)>,
    /// Track and time of the last event, if it is a counter's.
    counted: Option<(u64, u64)>,
}

impl Trace {
    /// A new track under another one; 0 is the top.
    fn track(&mut self, parent: u64, name: &str) -> u64 {
        self.add(parent, name, None)
    }

    fn counter_track(&mut self, parent: u64, name: &str, unit: Unit) -> u64 {
        const SIZE_BYTES: u64 = 3;
        let counter = match unit {
            Unit::Bytes => Message::default().number(3, SIZE_BYTES),
            Unit::Named(name) => Message::default().text(6, name),
        };
        self.add(parent, name, Some(&counter))
    }

    fn add(&mut self, parent: u64, name: &str, counter: Option<&Message>) -> u64 {
        const EXPLICIT: u64 = 3;
        let uuid = self.tracks.len() as u64 + 1;
        let mut track = Message::default().number(1, uuid).text(2, name);
        if parent != 0 {
            track = track.number(5, parent);
        }
        if let Some(counter) = counter {
            track = track.message(8, counter);
        }
        // Children in the order in which they are made.
        self.tracks.push(track.number(11, EXPLICIT).number(12, uuid));
        self.free.push(0);
        uuid
    }

    fn slice(&mut self, track: u64, from: Time, to: Time, label: &Label) {
        let free = &mut self.free[track as usize - 1];
        // Less than a nanosecond would be nothing, and the order of two nothings is lost.
        let from = nanoseconds(from).max(*free);
        let to = nanoseconds(to).max(from + 1);
        *free = to;
        self.counted = None;
        self.events.push((from, 1, labelled(event::BEGIN, track, label)));
        self.events.push((to, 0, Message::default().number(9, event::END).number(11, track)));
    }

    fn instant(&mut self, track: u64, at: Time, label: &Label) {
        self.counted = None;
        self.events.push((nanoseconds(at), 2, labelled(event::INSTANT, track, label)));
    }

    fn count(&mut self, track: u64, at: Time, value: u64) {
        let at = nanoseconds(at);
        let value = value.min(i64::MAX as u64);
        // Of the values of one nanosecond only the last can be seen.
        if self.counted == Some((track, at)) {
            self.events.pop();
        }
        let event = Message::default().number(9, event::COUNTER).number(11, track).number(30, value);
        self.events.push((at, 2, event));
        self.counted = Some((track, at));
    }

    fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut put = |packet: Message| out.write_all(Message::default().message(1, &packet).as_bytes());
        for (index, track) in self.tracks.iter().enumerate() {
            // The first packet carries the flag that nothing before it is needed.
            let packet = Message::default().number(10, SEQUENCE).number(13, u64::from(index == 0));
            put(packet.message(60, track))?;
        }
        self.events.sort_by_key(|(at, order, _)| (*at, *order));
        for (at, _, event) in &self.events {
            put(Message::default().number(8, *at).number(10, SEQUENCE).message(11, event))?;
        }
        out.flush()
    }
}

fn labelled(kind: u64, track: u64, label: &Label) -> Message {
    let mut event = Message::default().number(9, kind).number(11, track).text(23, &label.name);
    if let Some(flow) = label.flow {
        event = event.fixed(47, flow);
    }
    for (name, note) in &label.notes {
        let annotation = Message::default().text(10, name);
        let annotation = match note {
            Note::Text(text) => annotation.text(6, text),
            Note::Number(number) => annotation.number(3, *number),
        };
        event = event.message(4, &annotation);
    }
    event
}

fn nanoseconds(time: Time) -> u64 {
    time.ps() / 1000
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Request,
            protobuf::read::{Value, fields},
            trace,
        },
        *,
    };
    use crate::scenario::{Scenario, Source};
    use std::{path::PathBuf, sync::atomic::AtomicBool};

    /// An incast that overflows a small buffer.
    fn traced(request: &Request) -> Traced {
        let text = r#"
name = "testing"
duration = "300us"
drain = "100ms"
[topology]
kind = "single-switch"
hosts = 6
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = { per_port = "40KB" }
ecn = { kind = "step", at = "20KB" }
[[workload]]
class = "incast"
kind = "incast"
fan_in = 4
size = "60KB"
every = "250us"
receiver = "h0"
[[scheme]]
law = "dctcp"
"#;
        let source = Source { path: PathBuf::from("testing.toml"), text: text.to_owned() };
        let scenario = Scenario::parse(source, &[]).unwrap_or_else(|error| panic!("{error}"));
        trace(&scenario.runs()[0], request, &AtomicBool::new(false), &mut |_| ())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A trace as its reader sees it.
    #[derive(Default)]
    struct Seen {
        /// Name and parent of each track.
        tracks: BTreeMap<u64, (String, u64)>,
        /// Track, time and name of slices' beginnings and of instants.
        slices: Vec<(u64, u64, String)>,
        instants: Vec<(u64, u64, String)>,
        /// Track, time and value.
        counts: Vec<(u64, u64, u64)>,
        /// Slices by the number that joins them.
        arrows: BTreeMap<u64, usize>,
    }

    fn number(all: &[(u32, Value)], field: u32) -> Option<u64> {
        all.iter().find(|(name, _)| *name == field).and_then(|(_, value)| match value {
            Value::Number(number) => Some(*number),
            Value::Bytes(_) => None,
        })
    }

    fn bytes(all: &[(u32, Value)], field: u32) -> Option<&[u8]> {
        all.iter().find(|(name, _)| *name == field).and_then(|(_, value)| match value {
            Value::Number(_) => None,
            Value::Bytes(bytes) => Some(bytes.as_slice()),
        })
    }

    /// Reads a trace and insists on what Perfetto needs: tracks before events, time in order, slices that nest.
    fn read(traced: &Traced) -> Seen {
        let mut file = Vec::new();
        write(traced, &mut file).expect("memory takes everything");
        let mut seen = Seen::default();
        let mut open: BTreeMap<u64, u64> = BTreeMap::new();
        let mut last = 0;
        let text =
            |all: &[(u32, Value)], field| String::from_utf8(bytes(all, field).expect("a name").to_vec()).expect("text");
        for (index, (field, packet)) in fields(&file).into_iter().enumerate() {
            let Value::Bytes(packet) = packet else { panic!("a packet is a message") };
            assert_eq!(field, 1);
            let packet = fields(&packet);
            assert_eq!(number(&packet, 10), Some(SEQUENCE));
            assert_eq!(number(&packet, 13) == Some(1), index == 0);
            if let Some(track) = bytes(&packet, 60) {
                let track = fields(track);
                let uuid = number(&track, 1).expect("a track has a number");
                let parent = number(&track, 5).unwrap_or(0);
                assert!(parent == 0 || seen.tracks.contains_key(&parent));
                assert_eq!(seen.tracks.insert(uuid, (text(&track, 2), parent)), None);
                continue;
            }
            let time = number(&packet, 8).expect("an event has a time");
            assert!(time >= last, "time goes on");
            last = time;
            let event = fields(bytes(&packet, 11).expect("a track or an event"));
            let track = number(&event, 11).expect("an event has a track");
            assert!(seen.tracks.contains_key(&track), "tracks come first");
            match number(&event, 9).expect("an event has a kind") {
                event::BEGIN => {
                    assert_eq!(open.insert(track, time), None, "slices of a track do not overlap");
                    seen.slices.push((track, time, text(&event, 23)));
                    if let Some(flow) = number(&event, 47) {
                        *seen.arrows.entry(flow).or_default() += 1;
                    }
                }
                event::END => assert!(open.remove(&track).is_some_and(|begin| begin < time)),
                event::INSTANT => seen.instants.push((track, time, text(&event, 23))),
                event::COUNTER => {
                    seen.counts.push((track, time, number(&event, 30).expect("a counter has a value")));
                }
                kind => panic!("event of kind {kind}"),
            }
        }
        assert_eq!(open, BTreeMap::new(), "every slice ends");
        seen
    }

    impl Seen {
        fn count_under(&self, name: &str, events: &[(u64, u64, String)], is: impl Fn(&str) -> bool) -> usize {
            let named = |track: &u64| self.tracks[track].0 == name;
            events.iter().filter(|(track, _, text)| named(track) && is(text)).count()
        }
    }

    #[test]
    fn a_flow_is_drawn_as_it_was_recorded() {
        let traced = traced(&Request { flow: Some("1:0".into()), ..Request::default() });
        let records = &traced.outcome.packets;
        let seen = read(&traced);
        let count = |is: &dyn Fn(&PacketRecord) -> bool| records.iter().filter(|record| is(record)).count();
        let sent = count(&|record| matches!(record.step, Step::Sent { .. }));
        assert_eq!(seen.count_under("sending", &seen.slices, |_| true), sent);
        let again = seen.count_under("sending", &seen.slices, |text| text.ends_with(" again"));
        assert!(again > 0, "the scenario drops packets");
        for (kind, name) in [(EventKind::Drop, "drop "), (EventKind::Mark, "mark ")] {
            let expected = count(&|record| record.step == Step::Event(kind));
            assert!(expected > 0, "{name}");
            assert_eq!(seen.count_under("events", &seen.instants, |text| text.starts_with(name)), expected);
        }
        // Each packet's arrow goes through both of its links, unless it was dropped between them.
        let drops = count(&|record| record.step == Step::Event(EventKind::Drop));
        assert_eq!(seen.arrows.values().filter(|count| **count == 1).count(), drops);
        assert!(seen.arrows.values().all(|count| *count <= 2));
        let life: Vec<_> = seen.slices.iter().filter(|(_, _, name)| name == "flow").collect();
        assert_eq!(life.len(), 1);
        let windows = seen.counts.iter().filter(|(track, ..)| seen.tracks[track].0 == "window");
        assert!(windows.map(|(.., window)| window).collect::<std::collections::BTreeSet<_>>().len() > 3);
        assert!(traced.outcome.rates.iter().all(|sample| (sample.source, sample.sequence) == (1, 0)));
        let ports: Vec<&str> =
            seen.tracks.values().filter(|(_, parent)| *parent == 0).map(|(name, _)| name.as_str()).collect();
        assert_eq!(ports, ["flow 1:0 h1 to h0", "h1->s0", "s0->h0", "h0->s0", "s0->h1"]);
    }

    #[test]
    fn the_queue_of_a_port_is_exact() {
        let request = |from| Request { port: Some("s0->h0".into()), from, ..Request::default() };
        let whole = traced(&request(Time::ZERO));
        let seen = read(&whole);
        let values: Vec<u64> = seen.counts.iter().map(|(.., bytes)| *bytes).collect();
        assert_eq!(values.iter().max(), Some(&whole.outcome.totals.max_queue_bytes));
        assert_eq!(values.last(), Some(&0));
        // From the middle on it is the same as soon as something has waited.
        let later = read(&traced(&request(Time::from_us(30))));
        let tail = seen.counts.iter().rev().zip(later.counts.iter().rev()).take(100);
        assert!(tail.into_iter().all(|(a, b)| (a.1, a.2) == (b.1, b.2)));
        assert!(seen.slices.iter().any(|(_, _, name)| name.starts_with("1:0 data ")));
    }

    #[test]
    fn slices_shorter_than_a_nanosecond_stay_in_order() {
        let mut trace = Trace::default();
        let track = trace.track(0, "fast");
        let label = Label { name: "packet".into(), notes: Vec::new(), flow: None };
        for place in 0..5 {
            trace.slice(track, Time::from_ps(place * 300), Time::from_ps(place * 300 + 300), &label);
        }
        let times: Vec<(u64, u8)> = trace.events.iter().map(|(at, order, _)| (*at, *order)).collect();
        assert_eq!(
            times.iter().filter(|(_, order)| *order == 1).map(|(at, _)| *at).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
    }
}
