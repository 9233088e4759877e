//! A row of a trace, and how its cells are read, whichever kind of file it stands in.

use incast_units::Time;

/// A row as the file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Line of a CSV or row of a Parquet file, from 1.
    pub line: usize,
    /// When the flow starts.
    pub start: Time,
    /// Sender: a host's name or number.
    pub source: String,
    /// Receiver.
    pub destination: String,
    /// Payload.
    pub bytes: u64,
    /// Class, if the file has that column and it is not empty.
    pub class: Option<String>,
    /// The nodes of its data's path and of its acknowledgements', if the file has those columns and they are not empty.
    pub paths: Option<[String; 2]>,
}

/// What is wrong with a trace, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line of a CSV or row of a Parquet file, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What was found and what is allowed.
    pub message: String,
}

/// Largest number of rows. A simulation of as many flows needs some 7 GB.
pub const LIMIT: usize = 10_000_000;

/// Why a file of more is refused.
pub fn too_many(found: &str) -> TraceError {
    TraceError { line: 0, message: format!("found {found} flows, allowed are at most {LIMIT}: cut the trace") }
}

/// Columns of starts: `start` has times with their units, the others plain numbers of so many picoseconds.
pub const STARTS: [(&str, u64); 6] = [
    ("start", 0),
    ("start_ps", 1),
    ("start_ns", 1_000),
    ("start_us", 1_000_000),
    ("start_ms", 1_000_000_000),
    ("start_s", 1_000_000_000_000),
];

/// What is said where a column is missing.
pub const COLUMNS: &str = "start (or start_s, start_ms, start_us, start_ns, start_ps), src, dst, bytes (or size_bytes), class; with `origin = \"first\"` those of a flow log";

/// A start from the cell of a column of [`STARTS`]. Numbers with a fraction are rounded to picoseconds.
pub fn start_of((column, unit): (&str, u64), cell: &str) -> Result<Time, String> {
    if unit == 0 {
        return cell.parse().map_err(|error| format!("start: {error}"));
    }
    let whole = cell.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let real = || {
        let number = cell.parse::<f64>().ok().filter(|_| unit > 1)? * unit as f64;
        (number >= 0.0 && number < u64::MAX as f64).then(|| number.round() as u64)
    };
    whole.or_else(real).map(Time::from_ps).ok_or_else(|| {
        let unit = column.trim_start_matches("start_");
        let kind = if unit == "ps" { "a whole number" } else { "a number, not negative," };
        format!("found {column} {cell:?}, allowed is {kind} of {unit}, at most 213 days; of clock times `origin = \"first\"` counts from the first")
    })
}

/// Both paths of a flow, or none.
pub fn both(path: &str, reverse_path: &str) -> Result<Option<[String; 2]>, String> {
    match (path.is_empty(), reverse_path.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some([path.to_owned(), reverse_path.to_owned()])),
        _ => Err("found one of path and reverse_path, allowed is both or none".to_owned()),
    }
}
