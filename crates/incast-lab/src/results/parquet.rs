//! The Parquet tables of a run: which columns they have.

use super::{host::available_memory, labels::Labels};
use crate::columns::{
    About, Rows, count_rows, each_group, flags, optional_f64s, optional_flags, optional_strings, optional_u64s,
    strings, u8s, u32s, u64s, write,
};
use crate::metrics::{class_run::slowdown, requests::Request};
use crate::text::bytes;
use incast_sim::{
    FlowSpec,
    outcome::{EventKind, EventRecord, FlowRecord, PauseCause, PortSample, RateSample},
    topology::Tier,
};
use incast_units::Time;
use std::{io, path::Path};

/// A flow's id in one number, as requests of their own are numbered too.
fn flow_id(source: u32, sequence: u32) -> u64 {
    u64::from(source) << 32 | u64::from(sequence)
}

fn class_name(classes: &[String], class: u16) -> String {
    classes.get(usize::from(class)).cloned().unwrap_or_else(|| class.to_string())
}

/// Writes `flows.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_flows(
    path: &Path,
    flows: &[FlowRecord],
    classes: &[String],
    labels: &Labels,
    about: &About,
) -> io::Result<()> {
    let since_start = |flow: &FlowRecord, end: Option<Time>| end.map(|end| end.saturating_sub(flow.start));
    write(
        path,
        flows,
        &[
            u32s("source", |f: &FlowRecord| f.source),
            u32s("sequence", |f: &FlowRecord| f.sequence),
            strings("class", |f: &FlowRecord| class_name(classes, f.class)),
            optional_u64s("request", |f: &FlowRecord| (f.request != FlowSpec::NO_REQUEST).then_some(f.request)),
            strings("src", |f: &FlowRecord| labels.node(f.source).to_owned()),
            strings("dst", |f: &FlowRecord| labels.node(f.destination).to_owned()),
            u64s("size_bytes", |f: &FlowRecord| f.bytes),
            u64s("start_ps", |f: &FlowRecord| f.start.ps()),
            optional_u64s("fct_delivered_ps", move |f: &FlowRecord| since_start(f, f.delivered).map(Time::ps)),
            optional_u64s("fct_acked_ps", move |f: &FlowRecord| since_start(f, f.acked).map(Time::ps)),
            optional_u64s("ideal_ps", |f: &FlowRecord| f.ideal.map(Time::ps)),
            optional_f64s("slowdown", slowdown),
            u64s("retransmitted_bytes", |f: &FlowRecord| f.retransmitted_bytes),
            u32s("timeouts", |f: &FlowRecord| f.timeouts),
            u32s("marked_packets", |f: &FlowRecord| f.marked_packets),
            u32s("reordered_packets", |f: &FlowRecord| f.reordered_packets),
            u32s("deflections", |f: &FlowRecord| f.deflections),
            u64s("held_ps", |f: &FlowRecord| f.held.ps()),
            flags("completed", |f: &FlowRecord| f.delivered.is_some()),
        ],
        about,
    )
}

/// Writes `requests.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_requests(path: &Path, requests: &[Request], classes: &[String], about: &About) -> io::Result<()> {
    write(
        path,
        requests,
        &[
            u64s("request", |r: &Request| r.request),
            strings("class", |r: &Request| class_name(classes, r.class)),
            u64s("start_ps", |r: &Request| r.start.ps()),
            optional_u64s("completion_ps", |r: &Request| r.completion.map(Time::ps)),
            optional_u64s("rct_ps", |r: &Request| r.completion.map(|end| end.saturating_sub(r.start).ps())),
            u64s("flows", |r: &Request| r.flows),
            u64s("bytes", |r: &Request| r.bytes),
        ],
        about,
    )
}

/// Writes `ports.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_ports(path: &Path, ports: &[PortSample], labels: &Labels, about: &About) -> io::Result<()> {
    write(
        path,
        ports,
        &[
            u64s("time_ps", |p: &PortSample| p.time.ps()),
            strings("port", |p: &PortSample| labels.port(p.node, p.port)),
            u8s("priority", |p: &PortSample| p.priority),
            u64s("queue_bytes", |p: &PortSample| p.queue_bytes),
            u64s("tx_bytes", |p: &PortSample| p.tx_bytes),
            u64s("paused_ps", |p: &PortSample| p.paused.ps()),
            u64s("marks", |p: &PortSample| p.marks),
            u64s("drops", |p: &PortSample| p.drops),
            u64s("trims", |p: &PortSample| p.trims),
        ],
        about,
    )
}

/// Writes `rates.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_rates(path: &Path, rates: &[RateSample], about: &About) -> io::Result<()> {
    write(
        path,
        rates,
        &[
            u64s("time_ps", |r: &RateSample| r.time.ps()),
            u64s("flow", |r: &RateSample| flow_id(r.source, r.sequence)),
            u64s("assigned_bps", |r: &RateSample| r.assigned_bps),
            u64s("measured_bps", |r: &RateSample| r.measured_bps),
            optional_u64s("window_bytes", |r: &RateSample| (r.window_bytes != u64::MAX).then_some(r.window_bytes)),
            optional_f64s("estimate", |r: &RateSample| r.estimate.map(f64::from)),
        ],
        about,
    )
}

/// A row of `events.parquet`.
enum EventRow<'a> {
    Event(&'a EventRecord),
    Cause(&'a PauseCause),
}

impl EventRow<'_> {
    /// Time, node, port, priority.
    fn place(&self) -> (Time, u32, u16, u8) {
        match self {
            Self::Event(event) => (event.time, event.node, event.port, event.priority),
            Self::Cause(cause) => (cause.time, cause.node, cause.ingress, cause.priority),
        }
    }
    fn event(&self) -> Option<&EventRecord> {
        if let Self::Event(event) = self { Some(event) } else { None }
    }
    fn cause(&self) -> Option<&PauseCause> {
        if let Self::Cause(cause) = self { Some(cause) } else { None }
    }
}

/// Writes `events.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_events(
    path: &Path,
    events: &[EventRecord],
    causes: &[PauseCause],
    labels: &Labels,
    about: &About,
) -> io::Result<()> {
    let mut rows: Vec<EventRow<'_>> =
        events.iter().map(EventRow::Event).chain(causes.iter().map(EventRow::Cause)).collect();
    // Stable: what happened at one place and time stays in its order.
    rows.sort_by_key(|row| {
        let (time, node, port, _) = row.place();
        (time, node, port)
    });
    let tier = |row: &EventRow<'_>| match labels.tier(row.place().1) {
        None => "host".to_owned(),
        Some(Tier::Edge) => "edge".to_owned(),
        Some(Tier::Fabric) => "fabric".to_owned(),
    };
    let flow =
        |event: &EventRecord| (event.source != EventRecord::NO_FLOW).then_some(flow_id(event.source, event.sequence));
    write(
        path,
        &rows,
        &[
            u64s("time_ps", |row: &EventRow<'_>| row.place().0.ps()),
            strings("kind", |row: &EventRow<'_>| {
                row.event().map_or("pause-sent", |event| kind_name(event.kind)).to_owned()
            }),
            strings("node", |row: &EventRow<'_>| labels.node(row.place().1).to_owned()),
            strings("port", |row: &EventRow<'_>| labels.port(row.place().1, row.place().2)),
            strings("tier", tier),
            u8s("priority", |row: &EventRow<'_>| row.place().3),
            optional_u64s("flow", |row: &EventRow<'_>| row.event().and_then(flow)),
            optional_strings("cause", |row: &EventRow<'_>| {
                row.cause().map(|cause| labels.port(cause.node, cause.egress))
            }),
            optional_flags("cause_paused", |row: &EventRow<'_>| row.cause().map(|cause| cause.egress_paused)),
            optional_strings("root", |row: &EventRow<'_>| {
                row.cause().map(|cause| labels.port(cause.root.0, cause.root.1))
            }),
        ],
        about,
    )
}

fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Drop => "drop",
        EventKind::Lost => "lost",
        EventKind::Mark => "mark",
        EventKind::Trim => "trim",
        EventKind::Pause => "pause",
        EventKind::Resume => "resume",
        EventKind::Timeout => "timeout",
        EventKind::Deflection => "deflection",
        EventKind::Bounce => "bounced",
    }
}

/// Reads back what a summary needs of `flows.parquet`: class, request, size, start, delivery and ideal time.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn read_flows(path: &Path, classes: &[String]) -> io::Result<Vec<FlowRecord>> {
    let (count, each) = (count_rows(path)?, size_of::<FlowRecord>());
    let (needed, available) = (count.saturating_mul(each) as u64, available_memory().unwrap_or(u64::MAX));
    if needed > available {
        let why = format!("{count} flows take {} of memory, and {} are available", bytes(needed), bytes(available));
        return Err(invalid(why));
    }
    let mut flows = Vec::new();
    each_group(path, |rows| {
        let (names, requests, bytes) = (rows.strings("class")?, rows.u64s("request")?, rows.u64s("size_bytes")?);
        let (starts, fcts, ideals) = (rows.u64s("start_ps")?, rows.u64s("fct_delivered_ps")?, rows.u64s("ideal_ps")?);
        for (row, name) in names.into_iter().enumerate() {
            let name = name.unwrap_or_default();
            let class = classes.iter().position(|known| *known == name);
            let class = class.ok_or_else(|| invalid(format!("{}: unknown class {name}", path.display())))?;
            let start = Time::from_ps(required(&starts, row)?);
            flows.push(FlowRecord {
                class: class as u16,
                request: cell(&requests, row).unwrap_or(FlowSpec::NO_REQUEST),
                bytes: required(&bytes, row)?,
                start,
                delivered: cell(&fcts, row).map(|fct| start.saturating_add(Time::from_ps(fct))),
                ideal: cell(&ideals, row).map(Time::from_ps),
                ..FlowRecord::default()
            });
        }
        Ok::<(), io::Error>(())
    })?;
    Ok(flows)
}

/// Hands every flow of `flows.parquet` to `each`: its id as `rates.parquet` has it, and the name of its class.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn each_class(path: &Path, mut each: impl FnMut(u64, &str)) -> io::Result<()> {
    each_group(path, |rows| {
        let (sources, sequences, classes) = (rows.u64s("source")?, rows.u64s("sequence")?, rows.strings("class")?);
        for (row, class) in classes.iter().enumerate() {
            let (source, sequence) = (required(&sources, row)?, required(&sequences, row)?);
            each(source << 32 | sequence, class.as_deref().unwrap_or_default());
        }
        Ok(())
    })
}

/// Hands every row of `ports.parquet` to `each`: time in picoseconds, port, bytes in the queue, bytes sent so far.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn each_port(path: &Path, mut each: impl FnMut(u64, &str, u64, u64)) -> io::Result<()> {
    each_group(path, |rows| {
        let (times, ports) = (rows.u64s("time_ps")?, rows.strings("port")?);
        let (queues, sent) = (rows.u64s("queue_bytes")?, rows.u64s("tx_bytes")?);
        for (row, port) in ports.iter().enumerate() {
            let port = port.as_deref().unwrap_or_default();
            each(required(&times, row)?, port, required(&queues, row)?, required(&sent, row)?);
        }
        Ok(())
    })
}

/// Hands every row of `rates.parquet` to `each`: time in picoseconds, flow, rates assigned and measured in bit/s, the
/// law's estimate.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn each_rate(path: &Path, mut each: impl FnMut(u64, u64, u64, u64, Option<f64>)) -> io::Result<()> {
    each_group(path, |rows: &Rows<'_>| {
        let (times, flows, estimates) = (rows.u64s("time_ps")?, rows.u64s("flow")?, rows.f64s("estimate")?);
        let (assigned, measured) = (rows.u64s("assigned_bps")?, rows.u64s("measured_bps")?);
        for (row, estimate) in estimates.into_iter().enumerate() {
            let (assigned, measured) = (required(&assigned, row)?, required(&measured, row)?);
            each(required(&times, row)?, required(&flows, row)?, assigned, measured, estimate);
        }
        Ok(())
    })
}

fn cell(column: &[Option<u64>], row: usize) -> Option<u64> {
    column.get(row).copied().flatten()
}

fn required(column: &[Option<u64>], row: usize) -> io::Result<u64> {
    cell(column, row).ok_or_else(|| invalid(format!("row {row} has an empty cell")))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
