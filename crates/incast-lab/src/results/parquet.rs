//! The Parquet tables of a run. The only module that knows the format.

use super::{atomic, labels::Labels, requests::Request};
use ::parquet::{
    arrow::{ArrowWriter, ProjectionMask, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use arrow::{
    array::{Array, ArrayRef, BooleanArray, Float64Array, StringArray, UInt8Array, UInt32Array, UInt64Array},
    datatypes::{DataType, Field, Schema},
    record_batch::RecordBatch,
};
use incast_sim::{
    FlowSpec,
    outcome::{EventKind, EventRecord, FlowRecord, PauseCause, PortSample, RateSample},
    topology::Tier,
};
use incast_units::Time;
use std::{fs::File, io, path::Path, sync::Arc};

/// Rows that are converted at a time.
const CHUNK: usize = 1 << 16;

/// Makes an array of rows.
type Make<'a, T> = dyn Fn(&[T]) -> ArrayRef + 'a;

/// One column: its name, and how it is made of rows.
struct Column<'a, T> {
    name: &'static str,
    kind: DataType,
    nullable: bool,
    make: Box<Make<'a, T>>,
}

/// Constructors of columns by kind.
macro_rules! column_kinds {
    ($($function:ident, $optional:ident: $value:ty => $kind:ident, $array:ty;)*) => {$(
        #[allow(dead_code, reason = "not every kind has a column that is never empty")]
        fn $function<'a, T>(name: &'static str, of: impl Fn(&T) -> $value + 'a) -> Column<'a, T> {
            let make = move |rows: &[T]| Arc::new(<$array>::from_iter(rows.iter().map(|row| Some(of(row))))) as ArrayRef;
            Column { name, kind: DataType::$kind, nullable: false, make: Box::new(make) }
        }
        #[allow(dead_code, reason = "not every kind has a column that may be empty")]
        fn $optional<'a, T>(name: &'static str, of: impl Fn(&T) -> Option<$value> + 'a) -> Column<'a, T> {
            let make = move |rows: &[T]| Arc::new(rows.iter().map(&of).collect::<$array>()) as ArrayRef;
            Column { name, kind: DataType::$kind, nullable: true, make: Box::new(make) }
        }
    )*};
}
column_kinds! {
    small, maybe_small: u8 => UInt8, UInt8Array;
    number, maybe_number: u32 => UInt32, UInt32Array;
    large, maybe_large: u64 => UInt64, UInt64Array;
    real, maybe_real: f64 => Float64, Float64Array;
    flag, maybe_flag: bool => Boolean, BooleanArray;
    text, maybe_text: String => Utf8, StringArray;
}

fn write<T>(path: &Path, rows: &[T], columns: &[Column<'_, T>]) -> io::Result<()> {
    let fields: Vec<Field> = columns.iter().map(|c| Field::new(c.name, c.kind.clone(), c.nullable)).collect();
    let schema = Arc::new(Schema::new(fields));
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    atomic::write(path, |file| {
        let mut writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(io::Error::other)?;
        for chunk in rows.chunks(CHUNK) {
            let arrays = columns.iter().map(|column| (column.make)(chunk)).collect();
            let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(io::Error::other)?;
            writer.write(&batch).map_err(io::Error::other)?;
        }
        writer.close().map(drop).map_err(io::Error::other)
    })
}

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
pub fn write_flows(path: &Path, flows: &[FlowRecord], classes: &[String], labels: &Labels) -> io::Result<()> {
    let since_start = |flow: &FlowRecord, end: Option<Time>| end.map(|end| end.saturating_sub(flow.start));
    write(
        path,
        flows,
        &[
            number("source", |f: &FlowRecord| f.source),
            number("sequence", |f: &FlowRecord| f.sequence),
            text("class", |f: &FlowRecord| class_name(classes, f.class)),
            maybe_large("request", |f: &FlowRecord| (f.request != FlowSpec::NO_REQUEST).then_some(f.request)),
            text("src", |f: &FlowRecord| labels.node(f.source).to_owned()),
            text("dst", |f: &FlowRecord| labels.node(f.destination).to_owned()),
            large("size_bytes", |f: &FlowRecord| f.bytes),
            large("start_ps", |f: &FlowRecord| f.start.ps()),
            maybe_large("fct_delivered_ps", move |f: &FlowRecord| since_start(f, f.delivered).map(Time::ps)),
            maybe_large("fct_acked_ps", move |f: &FlowRecord| since_start(f, f.acked).map(Time::ps)),
            maybe_large("ideal_ps", |f: &FlowRecord| f.ideal.map(Time::ps)),
            maybe_real("slowdown", slowdown),
            large("retransmitted_bytes", |f: &FlowRecord| f.retransmitted_bytes),
            number("timeouts", |f: &FlowRecord| f.timeouts),
            number("marked_packets", |f: &FlowRecord| f.marked_packets),
            number("reordered_packets", |f: &FlowRecord| f.reordered_packets),
            number("deflections", |f: &FlowRecord| f.deflections),
            large("held_ps", |f: &FlowRecord| f.held.ps()),
            flag("completed", |f: &FlowRecord| f.delivered.is_some()),
        ],
    )
}

/// Time to delivery over the time that the same flow takes alone.
pub fn slowdown(flow: &FlowRecord) -> Option<f64> {
    let (delivered, ideal) = (flow.delivered?, flow.ideal?);
    (ideal > Time::ZERO).then(|| delivered.saturating_sub(flow.start).ps() as f64 / ideal.ps() as f64)
}

/// Writes `requests.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_requests(path: &Path, requests: &[Request], classes: &[String]) -> io::Result<()> {
    write(
        path,
        requests,
        &[
            large("request", |r: &Request| r.request),
            text("class", |r: &Request| class_name(classes, r.class)),
            large("start_ps", |r: &Request| r.start.ps()),
            maybe_large("completion_ps", |r: &Request| r.completion.map(Time::ps)),
            maybe_large("rct_ps", |r: &Request| r.completion.map(|end| end.saturating_sub(r.start).ps())),
            large("flows", |r: &Request| r.flows),
            large("bytes", |r: &Request| r.bytes),
        ],
    )
}

/// Writes `ports.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_ports(path: &Path, ports: &[PortSample], labels: &Labels) -> io::Result<()> {
    write(
        path,
        ports,
        &[
            large("time_ps", |p: &PortSample| p.time.ps()),
            text("port", |p: &PortSample| labels.port(p.node, p.port)),
            small("priority", |p: &PortSample| p.priority),
            large("queue_bytes", |p: &PortSample| p.queue_bytes),
            large("tx_bytes", |p: &PortSample| p.tx_bytes),
            large("paused_ps", |p: &PortSample| p.paused.ps()),
            large("marks", |p: &PortSample| p.marks),
            large("drops", |p: &PortSample| p.drops),
            large("trims", |p: &PortSample| p.trims),
        ],
    )
}

/// Writes `rates.parquet`.
///
/// # Errors
/// Those of the file system.
pub fn write_rates(path: &Path, rates: &[RateSample]) -> io::Result<()> {
    write(
        path,
        rates,
        &[
            large("time_ps", |r: &RateSample| r.time.ps()),
            large("flow", |r: &RateSample| flow_id(r.source, r.sequence)),
            large("assigned_bps", |r: &RateSample| r.assigned_bps),
            large("measured_bps", |r: &RateSample| r.measured_bps),
            maybe_large("window_bytes", |r: &RateSample| {
                (r.window_bytes != u64::MAX).then_some(r.window_bytes)
            }),
            maybe_real("estimate", |r: &RateSample| r.estimate.map(f64::from)),
        ],
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
    let flow = |event: &EventRecord| {
        (event.source != EventRecord::NO_FLOW).then_some(flow_id(event.source, event.sequence))
    };
    write(
        path,
        &rows,
        &[
            large("time_ps", |row: &EventRow<'_>| row.place().0.ps()),
            text("kind", |row: &EventRow<'_>| {
                row.event().map_or("pause-sent", |event| kind_name(event.kind)).to_owned()
            }),
            text("node", |row: &EventRow<'_>| labels.node(row.place().1).to_owned()),
            text("port", |row: &EventRow<'_>| labels.port(row.place().1, row.place().2)),
            text("tier", tier),
            small("priority", |row: &EventRow<'_>| row.place().3),
            maybe_large("flow", |row: &EventRow<'_>| row.event().and_then(flow)),
            maybe_text("cause", |row: &EventRow<'_>| {
                row.cause().map(|cause| labels.port(cause.node, cause.egress))
            }),
            maybe_flag("cause_paused", |row: &EventRow<'_>| row.cause().map(|cause| cause.egress_paused)),
            maybe_text("root", |row: &EventRow<'_>| {
                row.cause().map(|cause| labels.port(cause.root.0, cause.root.1))
            }),
        ],
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
    const COLUMNS: [&str; 7] =
        ["class", "request", "size_bytes", "start_ps", "fct_delivered_ps", "ideal_ps", "completed"];
    let mut flows = Vec::new();
    each_batch(path, &COLUMNS, |batch| {
        let class = column::<StringArray>(batch, "class")?;
        let request = column::<UInt64Array>(batch, "request")?;
        let bytes = column::<UInt64Array>(batch, "size_bytes")?;
        let start = column::<UInt64Array>(batch, "start_ps")?;
        let fct = column::<UInt64Array>(batch, "fct_delivered_ps")?;
        let ideal = column::<UInt64Array>(batch, "ideal_ps")?;
        for row in 0..batch.num_rows() {
            let name = class.value(row);
            let class = classes.iter().position(|known| known == name).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{}: unknown class {name}", path.display()),
                )
            })?;
            let start = Time::from_ps(start.value(row));
            flows.push(FlowRecord {
                class: class as u16,
                request: if request.is_valid(row) { request.value(row) } else { FlowSpec::NO_REQUEST },
                bytes: bytes.value(row),
                start,
                delivered: fct.is_valid(row).then(|| start.saturating_add(Time::from_ps(fct.value(row)))),
                ideal: ideal.is_valid(row).then(|| Time::from_ps(ideal.value(row))),
                ..FlowRecord::default()
            });
        }
        Ok(())
    })?;
    Ok(flows)
}

/// Hands every flow of `flows.parquet` to `each`: its id as `rates.parquet` has it, and the name of its class.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn each_class(path: &Path, mut each: impl FnMut(u64, &str)) -> io::Result<()> {
    each_batch(path, &["source", "sequence", "class"], |batch| {
        let source = column::<UInt32Array>(batch, "source")?;
        let sequence = column::<UInt32Array>(batch, "sequence")?;
        let class = column::<StringArray>(batch, "class")?;
        for row in 0..batch.num_rows() {
            each(flow_id(source.value(row), sequence.value(row)), class.value(row));
        }
        Ok(())
    })
}

/// Hands every row of `ports.parquet` to `each`: time in picoseconds, port, bytes in the queue, bytes sent so far.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn each_port(path: &Path, mut each: impl FnMut(u64, &str, u64, u64)) -> io::Result<()> {
    each_batch(path, &["time_ps", "port", "queue_bytes", "tx_bytes"], |batch| {
        let time = column::<UInt64Array>(batch, "time_ps")?;
        let port = column::<StringArray>(batch, "port")?;
        let queue = column::<UInt64Array>(batch, "queue_bytes")?;
        let sent = column::<UInt64Array>(batch, "tx_bytes")?;
        let rows = 0..batch.num_rows();
        rows.for_each(|row| each(time.value(row), port.value(row), queue.value(row), sent.value(row)));
        Ok(())
    })
}

/// Hands every row of `rates.parquet` to `each`: time in picoseconds, flow, rates assigned and measured in bit/s, the
/// law's estimate.
///
/// # Errors
/// Those of the file system, and a file that is not one of ours.
pub fn each_rate(path: &Path, mut each: impl FnMut(u64, u64, u64, u64, Option<f64>)) -> io::Result<()> {
    each_batch(path, &["time_ps", "flow", "assigned_bps", "measured_bps", "estimate"], |batch| {
        let time = column::<UInt64Array>(batch, "time_ps")?;
        let flow = column::<UInt64Array>(batch, "flow")?;
        let assigned = column::<UInt64Array>(batch, "assigned_bps")?;
        let measured = column::<UInt64Array>(batch, "measured_bps")?;
        let estimate = column::<Float64Array>(batch, "estimate")?;
        for row in 0..batch.num_rows() {
            let estimate = estimate.is_valid(row).then(|| estimate.value(row));
            each(time.value(row), flow.value(row), assigned.value(row), measured.value(row), estimate);
        }
        Ok(())
    })
}

/// Reads some columns of a file, a batch of rows at a time.
fn each_batch(
    path: &Path,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> io::Result<()>,
) -> io::Result<()> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(io::Error::other)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(CHUNK).build().map_err(io::Error::other)?;
    for batch in reader {
        each(&batch.map_err(io::Error::other)?)?;
    }
    Ok(())
}

fn column<'a, A: 'static>(batch: &'a RecordBatch, name: &str) -> io::Result<&'a A> {
    batch
        .column_by_name(name)
        .and_then(|column| column.as_any().downcast_ref())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no usable column `{name}`")))
}
