//! Traces: flows from a CSV or Parquet file.
//!
//! Columns by name, in any order: `start` (a time such as `"1.5us"`), or a plain number in `start_s`, `start_ms`,
//! `start_us`, `start_ns` or `start_ps`; `src` and `dst` (host names or numbers, or addresses that are mapped to them); `bytes` or `size_bytes`; optionally `class`, and `path` with `reverse_path`, the nodes of the flow's paths
//! there and back with blanks or semicolons between them, which switches follow with `load_balancing =
//! "source-routed"`. Further columns are ignored, so that a `flows.parquet` of one run can drive another.

pub use super::trace_rows::{LIMIT, Row, TraceError};
use super::{
    Expected, Generate, MOST_BYTES, flow_log, trace_parquet,
    trace_rows::{COLUMNS, STARTS, both, start_of, too_many},
};
use incast_cc::law::SizeClass;
use incast_sim::{FlowSpec, routing::Pinned};
use incast_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
};

/// All errors of a file; of many the first.
#[derive(Clone, Debug, Default)]
struct Errors {
    found: Vec<TraceError>,
    more: usize,
}

impl Errors {
    /// So many are named.
    const SHOWN: usize = 10;

    fn push(&mut self, error: TraceError) {
        if self.found.len() < Self::SHOWN {
            self.found.push(error);
        } else {
            self.more += 1;
        }
    }

    /// These and others, by their lines.
    fn and(mut self, others: &Self) -> Self {
        self.found.extend(others.found.iter().cloned());
        self.found.sort_by_key(|error| error.line);
        self.more += others.more + self.found.len().saturating_sub(Self::SHOWN);
        self.found.truncate(Self::SHOWN);
        self
    }

    /// `good`, or one error that has the others behind it, a line of text each; `unit` is what a file's rows are called.
    fn finish<T>(self, good: T, unit: &str) -> Result<T, TraceError> {
        let mut found = self.found.into_iter();
        let Some(mut all) = found.next() else { return Ok(good) };
        for error in found {
            // Writing to a string does not fail.
            let _ = write!(all.message, "\n  {unit} {}: {}", error.line, error.message);
        }
        if self.more > 0 {
            let _ = write!(all.message, "\n  and {} more", self.more);
        }
        Err(all)
    }
}

/// What a file holds: flows, and rows that are none.
#[derive(Clone, Debug)]
pub struct File {
    /// The flows.
    pub rows: Vec<Row>,
    /// How it was read, and what it has that is not used.
    pub notes: Vec<String>,
    errors: Errors,
    unit: &'static str,
}

impl From<Vec<Row>> for File {
    /// Rows of a CSV, all of which are flows.
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, notes: Vec::new(), errors: Errors::default(), unit: LINE }
    }
}

/// What the rows of a CSV are called.
const LINE: &str = "line";
/// What those of a Parquet file are called.
const ROW: &str = "row";

fn unit(path: &Path) -> &'static str {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")) { ROW } else { LINE }
}

/// A file by its name and what is wrong with it, where it is.
pub fn in_words(name: &str, error: &TraceError) -> String {
    let place = if error.line == 0 { String::new() } else { format!(" {} {}", unit(Path::new(name)), error.line) };
    format!("{name:?}{place}: {}", error.message)
}

/// A trace whose hosts and classes are known.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Class name of the workload.
    name: String,
    flows: Vec<FlowSpec>,
    /// How the file was read.
    notes: Vec<String>,
    /// What they come to; of millions of flows, worth doing once.
    expected: Expected,
}

impl Trace {
    /// The trace of the workload `name`.
    pub fn new(name: String, flows: Vec<FlowSpec>, notes: Vec<String>) -> Self {
        let bytes = flows.iter().map(|flow| flow.bytes as f64).sum();
        let sources: BTreeSet<u32> = flows.iter().map(|flow| flow.source).collect();
        let expected = Expected { flows: flows.len() as f64, bytes, sources: sources.len() as f64, open: 0.0 };
        Self { name, flows, notes, expected }
    }
}

/// Reads a table of hosts by their addresses: CSV with the columns `address` and `host`.
///
/// # Errors
/// A column is missing, or a line has no two cells.
pub fn read_addresses(text: &str) -> Result<BTreeMap<String, String>, TraceError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let csv_error = |error: csv::Error| {
        let line = error.position().map_or(0, |position| position.line() as usize);
        TraceError { line, message: error.to_string() }
    };
    let header = reader.headers().map_err(csv_error)?.clone();
    let column = |wanted: &str| header.iter().position(|name| name == wanted);
    let (Some(address), Some(host)) = (column("address"), column("host")) else {
        return Err(TraceError { line: 1, message: "expected the columns `address` and `host`".into() });
    };
    let mut all = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(csv_error)?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let cell = |column: usize| record.get(column).unwrap_or("").to_owned();
        if all.insert(cell(address), cell(host)).is_some() {
            return Err(TraceError { line, message: format!("the address {} is given twice", cell(address)) });
        }
    }
    Ok(all)
}

/// Reads a file, Parquet if its name ends so.
///
/// # Errors
/// The file cannot be read, or a row of a Parquet file is not a flow. Those of a CSV are kept for [`resolve`], which names all.
pub fn read(path: &Path) -> Result<File, TraceError> {
    if path.exists() && !path.is_file() {
        return Err(TraceError { line: 0, message: format!("{} is not a file", path.display()) });
    }
    if unit(path) == ROW {
        return Ok(File { unit: ROW, ..trace_parquet::read(path)?.into() });
    }
    let (rows, errors) = rows_of(open(path)?)?;
    Ok(File { errors, ..rows.into() })
}

fn open(path: &Path) -> Result<std::io::BufReader<std::fs::File>, TraceError> {
    let file = std::fs::File::open(path)
        .map_err(|error| TraceError { line: 0, message: format!("{} cannot be read: {error}", path.display()) })?;
    Ok(std::io::BufReader::new(file))
}

/// Reads a log of flows ([`flow_log`]), the first of which is at the start of the run, whatever the clock was.
///
/// # Errors
/// The file cannot be read or is no log, or does not say of each flow when it began, from where and to where.
pub fn read_log(path: &Path) -> Result<File, TraceError> {
    let fail = |line: usize, message: &str| TraceError { line, message: message.to_owned() };
    if path.is_dir() || unit(path) == ROW {
        return Err(fail(0, "origin = \"first\" is for logs that are text: allowed is a CSV"));
    }
    let log = flow_log::read(open(path)?)?;
    let first = log.flows.iter().filter_map(|flow| flow.start_ns).min();
    let host = |number: Option<u32>| number.and_then(|number| log.hosts.get(number as usize)).cloned();
    let row = |flow: &flow_log::LoggedFlow| {
        let (Some(start), Some(first)) = (flow.start_ns, first) else {
            return Err(fail(flow.line, "found no time, allowed are flows that have one"));
        };
        let (Some(source), Some(destination)) = (host(flow.source), host(flow.destination)) else {
            return Err(fail(flow.line, "found no sender or no receiver, allowed are flows that have both"));
        };
        let since = start.checked_sub(first).and_then(|ns| u64::try_from(ns).ok());
        let start = since.and_then(|ns| ns.checked_mul(1_000));
        let start = start.ok_or_else(|| fail(flow.line, "found a flow more than 213 days after the first"))?;
        let (line, bytes, start) = (flow.line, flow.bytes, Time::from_ps(start));
        Ok(Row { line, start, source, destination, bytes, class: None, paths: None })
    };
    let mut errors = Errors::default();
    let rows: Vec<Row> =
        log.flows.iter().filter_map(|flow| row(flow).map_err(|error| errors.push(error)).ok()).collect();
    Ok(File { notes: log.notes, errors, ..rows.into() })
}

/// Reads CSV; `#` starts a comment line.
///
/// # Errors
/// See [`read`]; all rows that are no flows in one error.
pub fn read_csv(input: impl std::io::Read) -> Result<Vec<Row>, TraceError> {
    let (rows, errors) = rows_of(input)?;
    errors.finish(rows, LINE)
}

/// The flows, and the rows that are none.
fn rows_of(input: impl std::io::Read) -> Result<(Vec<Row>, Errors), TraceError> {
    // A last line that ends, so that a row's line is the one before what is read next, whatever was skipped before it.
    let input = input.chain(&b"\n"[..]);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(input);
    let fail = |line: usize, message: String| TraceError { line, message };
    let csv_error = |error: csv::Error| {
        let line = error.position().map_or(0, |position| position.line() as usize);
        fail(line, error.to_string())
    };
    let header = reader.headers().map_err(csv_error)?.clone();
    let column = |names: &[&str]| header.iter().position(|name| names.contains(&name));
    let need = |names: &[&str]| {
        column(names).ok_or_else(|| fail(1, format!("no column `{}`, allowed are {COLUMNS}", names.join("` or `"))))
    };
    let start = need(&STARTS.map(|(name, _)| name))?;
    let (source, destination) = (need(&["src"])?, need(&["dst"])?);
    let (bytes, class) = (need(&["bytes", "size_bytes"])?, column(&["class"]));
    let (path, reverse_path) = (column(&["path"]), column(&["reverse_path"]));
    let starts = STARTS.into_iter().find(|(name, _)| header.get(start) == Some(name)).unwrap_or(STARTS[0]);
    let (mut rows, mut errors) = (Vec::new(), Errors::default());
    let mut record = csv::StringRecord::new();
    loop {
        let read = reader.read_record(&mut record);
        let line = (reader.position().line() as usize).saturating_sub(1);
        match read {
            // Reading goes on behind anything else.
            Err(error) if error.is_io_error() => return Err(csv_error(error)),
            Err(error) => {
                errors.push(fail(line, error.to_string()));
                continue;
            }
            Ok(false) => break,
            Ok(true) => {}
        }
        let field = |index: usize| record.get(index).unwrap_or("");
        let row = || {
            let size = field(bytes);
            Ok(Row {
                line,
                start: start_of(starts, field(start))?,
                source: field(source).to_owned(),
                destination: field(destination).to_owned(),
                bytes: size
                    .parse::<u64>()
                    .ok()
                    .or_else(|| size.parse::<incast_units::Bytes>().ok().map(incast_units::Bytes::get))
                    .ok_or_else(|| format!("found bytes {size:?}, allowed is a whole number from 1 on"))?,
                class: class.map(field).filter(|class| !class.is_empty()).map(str::to_owned),
                paths: both(path.map_or("", field), reverse_path.map_or("", field))?,
            })
        };
        match row() {
            Ok(row) => rows.push(row),
            Err(message) => errors.push(fail(line, message)),
        }
        if rows.len() > LIMIT {
            return Err(too_many(&format!("more than {LIMIT}")));
        }
    }
    Ok((rows, errors))
}

/// Replaces names by numbers. `host_of` finds a host by name, `class_of` a class, `path_of` a path by its ends and
/// nodes.
///
/// # Errors
/// An unknown host, a flow from a host to itself, one of no bytes, or a path that does not exist; together with the rows that
/// are no flows, in the order of their lines.
pub fn resolve(
    file: &File,
    hosts: u32,
    host_of: &BTreeMap<&str, u32>,
    class_of: &dyn Fn(Option<&str>) -> u16,
    path_of: &dyn Fn(u32, u32, &str) -> Result<u16, String>,
) -> Result<Vec<FlowSpec>, TraceError> {
    let host =
        |name: &str| host_of.get(name).copied().or_else(|| name.parse::<u32>().ok().filter(|number| *number < hosts));
    let mut errors = Errors::default();
    let flows = file
        .rows
        .iter()
        .map(|row| {
            let fail = |message: String| TraceError { line: row.line, message };
            let find = |name: &str| {
                host(name).ok_or_else(|| {
                    fail(format!(
                        "found host {name:?}, allowed is h0 to h{}, a number, or an address that `hosts` or \
                         `hosts_file` maps to one",
                        hosts.saturating_sub(1)
                    ))
                })
            };
            let (source, destination) = (find(&row.source)?, find(&row.destination)?);
            if source == destination {
                return Err(fail(format!("found a flow from {} to itself", row.source)));
            }
            if !(1..=MOST_BYTES).contains(&row.bytes) {
                return Err(fail(format!("found {} bytes, allowed is 1 to {MOST_BYTES}", row.bytes)));
            }
            let pinned = match &row.paths {
                None => None,
                Some([there, back]) => Some(Pinned {
                    there: path_of(source, destination, there).map_err(|error| fail(format!("path: {error}")))?,
                    back: path_of(destination, source, back).map_err(|error| fail(format!("reverse_path: {error}")))?,
                }),
            };
            Ok(FlowSpec {
                start: row.start,
                source,
                destination,
                bytes: row.bytes,
                class: class_of(row.class.as_deref()),
                request: FlowSpec::NO_REQUEST,
                pinned,
            })
        })
        .filter_map(|flow| flow.map_err(|error| errors.push(error)).ok())
        .collect();
    errors.and(&file.errors).finish(flows, file.unit)
}

impl Generate for Trace {
    fn flows(&self, _seed: u64, flows: &mut Vec<FlowSpec>) {
        flows.extend_from_slice(&self.flows);
    }

    fn expected(&self) -> Expected {
        self.expected
    }

    fn describe(&self) -> String {
        let expected = self.expected();
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        format!("{}: {} flows of a trace, {:.0} B together{notes}", self.name, expected.flows, expected.bytes)
    }

    fn sizes(&self) -> Vec<(u16, SizeClass)> {
        let size = |flow: &FlowSpec| (flow.class, SizeClass { bytes: flow.bytes, flows: 1.0 });
        self.flows.iter().map(size).collect()
    }

    fn sizes_until(&self, until: Time) -> Vec<(u16, SizeClass)> {
        let size = |flow: &FlowSpec| (flow.class, SizeClass { bytes: flow.bytes, flows: 1.0 });
        self.flows.iter().filter(|flow| flow.start < until).map(size).collect()
    }

    fn starts(&self) -> (u64, u64) {
        let starts = || self.flows.iter().map(|flow| flow.start.ps());
        (starts().min().unwrap_or(0), starts().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_way(_: u32, _: u32, nodes: &str) -> Result<u16, String> {
        Err(format!("{nodes} is no way"))
    }

    #[test]
    fn ways_are_for_both_directions() {
        let header = "start,src,dst,bytes,reverse_path,path\n";
        let rows = read_csv(format!("{header}0s,h0,h1,5,h1 s h0,h0 s h1\n0s,h0,h1,5,,\n").as_bytes()).expect("valid");
        assert_eq!(rows[0].paths, Some(["h0 s h1".into(), "h1 s h0".into()]));
        assert_eq!(rows[1].paths, None);
        assert_eq!(read_csv(format!("{header}0s,h0,h1,5,,h0 s h1\n").as_bytes()).expect_err("one way").line, 2);
        let names = BTreeMap::from([("h0", 0), ("h1", 1)]);
        let way = |from: u32, _: u32, nodes: &str| Ok(from as u16 * 10 + nodes.len() as u16);
        let flows = resolve(&rows.clone().into(), 2, &names, &|_| 0, &way).expect("valid");
        assert_eq!(flows[0].pinned, Some(Pinned { there: 7, back: 17 }));
        let error = resolve(&rows.into(), 2, &names, &|_| 0, &no_way).expect_err("refused");
        assert_eq!((error.line, error.message.as_str()), (2, "path: h0 s h1 is no way"));
    }

    #[test]
    fn reads_rows_in_any_column_order() {
        let rows =
            read_csv("# mine\nclass,bytes,dst,src,start\na,20KB,h1,0,1.5us\n,7,h0,h1,0s\n".as_bytes()).expect("valid");
        assert_eq!(
            rows[0],
            Row {
                line: 3,
                start: Time::from_ns(1500),
                source: "0".into(),
                destination: "h1".into(),
                bytes: 20_000,
                class: Some("a".into()),
                paths: None,
            }
        );
        let names = BTreeMap::from([("h0", 0), ("h1", 1)]);
        let flows = resolve(&rows.into(), 2, &names, &|class| u16::from(class.is_some()), &no_way).expect("valid");
        assert_eq!((flows[0].source, flows[0].destination, flows[0].class, flows[1].class), (0, 1, 1, 0));
    }

    #[test]
    fn plain_numbers_are_of_the_unit_that_the_column_names() {
        for (column, cell, ps) in [
            ("start_s", "0.30000000000000004", 300_000_000_000),
            ("start_s", "1e-6", 1_000_000),
            ("start_ms", "2", 2_000_000_000),
            ("start_us", "1.5", 1_500_000),
            ("start_ns", "83.84", 83_840),
            ("start_ps", "18446744073709551615", u64::MAX),
            ("start", "1.5us", 1_500_000),
        ] {
            let rows = read_csv(format!("{column},src,dst,bytes\n{cell},h0,h1,5\n").as_bytes()).expect(column);
            assert_eq!(rows[0].start.ps(), ps, "{column} {cell}");
        }
        for (column, cell) in [
            ("start_s", "-1"),
            ("start_s", "nan"),
            ("start_s", "1700000000"),
            ("start_s", "1s"),
            ("start_ps", "1.5"),
            ("start", "1.5"),
        ] {
            let refused = read_csv(format!("{column},src,dst,bytes\n{cell},h0,h1,5\n").as_bytes());
            assert!(refused.is_err(), "{column} {cell}");
        }
    }

    #[test]
    fn addresses_stand_for_hosts() {
        let all = read_addresses("host,address\n# a comment\nh3, 10.0.0.1\n0,fe80::1\n").expect("a table");
        assert_eq!(all.get("10.0.0.1").map(String::as_str), Some("h3"));
        assert_eq!(all.get("fe80::1").map(String::as_str), Some("0"));
        assert_eq!(read_addresses("address\n10.0.0.1\n").expect_err("no hosts").line, 1);
        assert_eq!(read_addresses("address,host\na,h0\na,h1\n").expect_err("twice").line, 3);
    }

    #[test]
    fn sizes_of_later_flows_are_not_known() {
        let text = "start,src,dst,bytes\n1us,h0,h1,5\n2us,h0,h1,6\n3us,h1,h0,7\n";
        let names = BTreeMap::from([("h0", 0), ("h1", 1)]);
        let rows = read_csv(text.as_bytes()).expect("valid");
        let flows = resolve(&rows.into(), 2, &names, &|_| 0, &no_way).expect("valid");
        let trace = Trace::new("trace".to_owned(), flows, Vec::new());
        let known = |until| trace.sizes_until(until).iter().map(|(_, size)| size.bytes).collect::<Vec<u64>>();
        assert_eq!(known(Time::from_us(3)), [5, 6]);
        assert_eq!(known(Time::from_us(4)), [5, 6, 7]);
        assert!(known(Time::ZERO).is_empty());
    }

    #[test]
    fn all_bad_rows_are_named_at_once() {
        let text =
            "start,src,dst,bytes\n1us,h0,h1,5\nlater,h0,h1,5\n# a comment\n1us,h0,h1,5\n1us,h0,h1\n1us,h0,h1,-5\n";
        let error = read_csv(text.as_bytes()).expect_err("three bad rows");
        assert_eq!(error.line, 3);
        for expected in ["start: ", "\n  line 6: ", "\n  line 7: found bytes \"-5\""] {
            assert!(error.message.contains(expected), "{}", error.message);
        }
        let many = format!("start,src,dst,bytes\n{}", "1us,h0,h1,x\n".repeat(50));
        let error = read_csv(many.as_bytes()).expect_err("fifty bad rows");
        assert_eq!((error.line, error.message.matches("found bytes").count()), (2, 10));
        assert!(error.message.contains("\n  line 11: ") && error.message.ends_with("\n  and 40 more"));
        assert!(error.message.lines().count() == 11 && error.message.lines().all(|line| line.len() < 80));
        let rows = read_csv("start,src,dst,bytes\n1us,h0,h9,5\n1us,h0,h1,5\n1us,h1,h1,5\n".as_bytes()).expect("rows");
        let names = BTreeMap::from([("h0", 0), ("h1", 1)]);
        let error = resolve(&rows.into(), 2, &names, &|_| 0, &no_way).expect_err("two bad flows");
        assert_eq!(error.line, 2);
        assert!(error.message.contains("\n  line 4: found a flow from h1 to itself"), "{}", error.message);
    }

    #[test]
    fn rows_without_a_known_host_are_named_with_those_that_are_no_flows() {
        let text = "start_us,src,dst,bytes\n0,10.0.0.9,h1,5\n1,h0,h1,5\nx,h0,h1,5\n# a comment\n2,h0,h1,5\n3,h1,h1,5\n";
        let (rows, errors) = rows_of(text.as_bytes()).expect("readable");
        let names = BTreeMap::from([("h0", 0), ("h1", 1)]);
        let of = |rows: Vec<Row>| resolve(&File { errors: errors.clone(), ..rows.into() }, 2, &names, &|_| 0, &no_way);
        let error = of(rows).expect_err("three bad rows");
        let said = in_words("flows.csv", &error);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("\"flows.csv\" line 2: found host \"10.0.0.9\""), "{said}");
        assert!(lines[1].starts_with("  line 4: found start_us \"x\""), "{said}");
        assert_eq!(lines[2..], ["  line 7: found a flow from h1 to itself"], "{said}");
        let bad = |line| TraceError { line, message: "bad".into() };
        let mut all = [Errors::default(), Errors::default()];
        (1..=24).for_each(|line| all[line % 2].push(bad(line)));
        let [even, odd] = all;
        let error = even.and(&odd).finish((), LINE).expect_err("24 bad rows");
        assert_eq!((error.line, error.message.lines().count()), (1, 11));
        assert!(error.message.contains("\n  line 10: ") && error.message.ends_with("and 14 more"), "{}", error.message);
    }

    #[test]
    fn logs_begin_with_their_first_flow() {
        let path = std::env::temp_dir().join(format!("incast-log-{}.csv", std::process::id()));
        let of = |text: &str| {
            std::fs::write(&path, text).expect("written");
            read_log(&path)
        };
        let log = "Start Time,Src IP,Dst IP,Bytes,proto\n1714564800.5,10.0.0.1,10.0.0.2,1500,6\n1714564800.250000125,10.0.0.2,10.0.0.1,64,6\n";
        let file = of(log).expect("a log");
        let found: Vec<_> = file.rows.iter().map(|row| (row.line, row.start.ps(), row.source.as_str())).collect();
        assert_eq!(found, [(2, 249_999_875_000, "10.0.0.1"), (3, 0, "10.0.0.2")]);
        assert!(file.notes.iter().any(|note| note.contains("not used: proto")), "{:?}", file.notes);
        let names = BTreeMap::from([("10.0.0.1", 0)]);
        let error = resolve(&file, 2, &names, &|_| 0, &no_way).expect_err("an address without a host");
        assert_eq!((error.line, error.message.contains("\n  line 3: ")), (2, true), "{}", error.message);
        for (text, why) in [
            ("src,dst,bytes\na,b,5\n", "no time"),
            ("start,src,bytes\n1us,a,5\n", "no receiver"),
            ("1500\n", "no time"),
            ("start,src,dst,bytes\nlater,a,b,5\n", "start: "),
            ("start_s,src,dst,bytes\n0,a,b,5\n40000000,a,b,5\n", "213 days"),
        ] {
            let error = of(text).and_then(|file| resolve(&file, 2, &BTreeMap::new(), &|_| 0, &no_way)).expect_err(text);
            assert!(error.message.contains(why), "{text}: {}", error.message);
        }
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn bad_rows_are_refused_with_their_line() {
        for (text, line) in [
            ("start,src,dst\n", 1),
            ("start,src,dst,bytes\n1us,h0,h1,-5\n", 2),
            ("start,src,dst,bytes\n1us,h0,h1,5\nlater,h0,h1,5\n", 3),
            ("start,src,dst,bytes\n1us,h0\n", 2),
            ("start_ps,src,dst,bytes\n-1,h0,h1,5\n", 2),
        ] {
            assert_eq!(read_csv(text.as_bytes()).expect_err(text).line, line, "{text}");
        }
        assert!(read_csv(&b"start,src,dst,bytes\n\xff\xfe,h0,h1,5\n"[..]).is_err());
        assert!(read(Path::new("no-such-file.csv")).is_err());
        assert!(read(Path::new("no-such-file.parquet")).is_err());
        let names = BTreeMap::from([("h0", 0), ("h1", 1)]);
        let row = |source: &str, destination: &str, bytes| Row {
            line: 2,
            start: Time::ZERO,
            source: source.into(),
            destination: destination.into(),
            bytes,
            class: None,
            paths: None,
        };
        for bad in [row("h0", "h9", 1), row("h0", "h0", 1), row("h0", "h1", 0), row("2", "h1", 1)] {
            assert!(resolve(&vec![bad].into(), 2, &names, &|_| 0, &no_way).is_err());
        }
    }
}
