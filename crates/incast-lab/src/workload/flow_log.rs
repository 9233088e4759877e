//! Flow logs: sizes one a line, CSV of a collector, exports of NetFlow, samples of sFlow, as far as a workload can be made
//! of them.
//!
//! Columns are found by the names that collectors give them: nfdump's `-o csv` in both forms, SiLK's `rwcut`, and the
//! elements of IPFIX. sFlow is read as `sflowtool -l` prints it.

use super::trace_rows::{LIMIT, TraceError, start_of, too_many};
use crate::scenario::tree::{error::list, nearest::nearest};
use chrono::{DateTime, NaiveDateTime};
use incast_units::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::BufRead,
};

/// What a log says of flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowLog {
    /// The flows, in the order of the log.
    pub flows: Vec<LoggedFlow>,
    /// Names of hosts, by the numbers that flows have.
    pub hosts: Vec<String>,
    /// How it was read, and what it does not say.
    pub notes: Vec<String>,
}

/// A flow of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFlow {
    /// Its bytes, at least 1.
    pub bytes: u64,
    /// When it started, in nanoseconds since some time; `None` where the log has no times.
    pub start_ns: Option<i64>,
    /// Sender, a number of [`FlowLog::hosts`].
    pub source: Option<u32>,
    /// Receiver.
    pub destination: Option<u32>,
    /// Its line, from 1; 0 of samples, which are several.
    pub line: usize,
}

/// Names of columns: in small letters, with underscores for blanks and hyphens.
const SIZES: [&str; 14] = [
    "bytes",
    "size_bytes",
    "size",
    "flow_size",
    "flow_bytes",
    "ibyt",
    "in_bytes",
    "octets",
    "doctets",
    "octetdeltacount",
    "octettotalcount",
    "total_bytes",
    "num_bytes",
    "byte_count",
];
const SOURCES: [&str; 12] = [
    "src",
    "source",
    "sa",
    "srcaddr",
    "src_addr",
    "src_ip",
    "srcip",
    "ip_src",
    "sip",
    "source_ip",
    "ipv4_src_addr",
    "sourceipv4address",
];
const DESTINATIONS: [&str; 12] = [
    "dst",
    "destination",
    "da",
    "dstaddr",
    "dst_addr",
    "dst_ip",
    "dstip",
    "ip_dst",
    "dip",
    "destination_ip",
    "ipv4_dst_addr",
    "destinationipv4address",
];
const TIMES: [&str; 12] = [
    "ts",
    "first",
    "firstseen",
    "first_seen",
    "date_first_seen",
    "stime",
    "start_time",
    "starttime",
    "flow_start",
    "timestamp",
    "timestamp_start",
    "first_switched",
];
/// Those whose name has the unit, in nanoseconds.
const WITH_UNIT: [(&str, i64); 8] = [
    ("start_s", 1_000_000_000),
    ("start_ms", 1_000_000),
    ("start_us", 1_000),
    ("start_ns", 1),
    ("flowstartseconds", 1_000_000_000),
    ("flowstartmilliseconds", 1_000_000),
    ("flowstartmicroseconds", 1_000),
    ("flowstartnanoseconds", 1),
];

/// Sizes of at most this many bytes are exact in floating point.
const LARGEST: u64 = 1 << 53;
/// The largest rate of sampling.
const MOST_SAMPLED: u64 = 1 << 24;

/// How a note begins that lists them.
pub const UNUSED: &str = "columns that are not used: ";

/// A column of times unless another is.
const TIME: &str = "time";

/// How the cells of the column of starts are read.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// Times with their units, as in a trace, or dates and times.
    Text,
    /// A number of so many nanoseconds, or of picoseconds where it is 0.
    Unit(i64),
    /// A date and time, or a number since 1970 whose size tells its unit.
    Clock,
}

#[derive(Clone, Debug)]
struct Columns {
    sign: char,
    /// How many there are.
    count: usize,
    bytes: usize,
    start: Option<(usize, Start)>,
    source: Option<usize>,
    destination: Option<usize>,
    /// Names of the others.
    unused: Vec<String>,
}

/// The cells of a line; a sign within quotes belongs to its cell.
fn cells(line: &str, sign: char) -> Vec<&str> {
    let mut is_quoted = false;
    let parts = line.split(|letter: char| {
        is_quoted ^= letter == '"';
        letter == sign && !is_quoted
    });
    parts.map(|cell| cell.trim().trim_matches('"')).collect()
}

fn bytes_of(cell: &str) -> Option<u64> {
    let cell = cell.trim();
    let real = || cell.parse::<f64>().ok().filter(|it| it.fract() == 0.0 && (0.0..=LARGEST as f64).contains(it));
    let whole = cell.parse::<u64>().ok().or_else(|| real().map(|it| it as u64));
    whole.or_else(|| cell.parse::<Bytes>().ok().map(Bytes::get)).filter(|bytes| *bytes <= LARGEST)
}

/// A number of units in nanoseconds, exactly: seconds since 1970 have more digits than floating point.
fn nanoseconds(cell: &str, unit_ns: i64) -> Option<i64> {
    let (whole, part) = cell.split_once('.').unwrap_or((cell, ""));
    let is_plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(part) {
        let real = cell.parse::<f64>().ok().filter(|number| *number >= 0.0)? * unit_ns as f64;
        return (real < i64::MAX as f64).then_some(real as i64);
    }
    let digits = part.get(..part.len().min(9))?;
    let scale = 10i64.pow(digits.len() as u32);
    let part = digits.parse::<i64>().unwrap_or(0).checked_mul(unit_ns)? / scale;
    whole.parse::<i64>().ok()?.checked_mul(unit_ns)?.checked_add(part)
}

/// Nanoseconds since 1970, and those of the unit that the number's size tells; 0 of a date.
fn clock(cell: &str) -> Option<(i64, i64)> {
    const FORMS: [&str; 4] =
        ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y/%m/%d %H:%M:%S%.f", "%Y/%m/%dT%H:%M:%S%.f"];
    if let Ok(number) = cell.parse::<f64>() {
        // From 1973 on, each unit has numbers of its own.
        let unit_ns = match number {
            1e8..1e11 => 1_000_000_000,
            1e11..1e14 => 1_000_000,
            1e14..1e17 => 1_000,
            1e17..9e18 => 1,
            _ => return None,
        };
        return Some((nanoseconds(cell, unit_ns)?, unit_ns));
    }
    let with_zone = DateTime::parse_from_rfc3339(cell).ok().and_then(|time| time.timestamp_nanos_opt());
    let without = || FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(cell, form).ok());
    Some((with_zone.or_else(|| without()?.and_utc().timestamp_nanos_opt())?, 0))
}

/// A start in nanoseconds. `unit` is that of the cells before, of a column that does not name it.
fn start_ns(kind: Start, cell: &str, unit: &mut Option<i64>) -> Result<i64, String> {
    let (time, own) = match kind {
        Start::Text => match start_of(("start", 0), cell) {
            Ok(time) => ((time.ps() / 1_000) as i64, 1),
            // A number alone may count anything.
            Err(error) => clock(cell)
                .filter(|(_, own)| *own == 0)
                .ok_or_else(|| format!("{error}, or a date and time such as 2026-11-29T12:00:00.125Z"))?,
        },
        Start::Unit(0) => return start_of(("start_ps", 1), cell).map(|time| (time.ps() / 1_000) as i64),
        Start::Unit(unit_ns) => {
            return nanoseconds(cell, unit_ns)
                .ok_or_else(|| format!("found the time {cell:?}, allowed is a number that is not negative"));
        }
        Start::Clock => clock(cell).ok_or_else(|| {
            format!(
                "found the time {cell:?}, allowed is such as 2026-11-29 12:00:00.125, or seconds or milliseconds since \
                 1970; other numbers need a column start_s, start_ms, start_us or start_ns"
            )
        })?,
    };
    match *unit.get_or_insert(own) == own {
        true => Ok(time),
        false => Err(format!("found the time {cell:?}, of another unit than those before it")),
    }
}

impl Columns {
    fn of(header: &str) -> Result<Self, String> {
        let sign = [',', ';', '|', '\t'].into_iter().max_by_key(|sign| header.matches(*sign).count()).unwrap_or(',');
        let plain = |name: &&str| name.to_ascii_lowercase().replace([' ', '-'], "_");
        let written = cells(header, sign);
        let names: Vec<String> = written.iter().map(plain).collect();
        let find = |known: &dyn Fn(&str) -> bool| -> Result<Option<usize>, String> {
            let mut found = (0..names.len()).filter(|index| known(&names[*index]));
            let first = found.next();
            match (first, found.next()) {
                (Some(first), Some(second)) if names[first] == names[second] => {
                    Err(format!("the column `{}` is there twice", names[first]))
                }
                (Some(first), Some(second)) => {
                    Err(format!("`{}` and `{}` mean the same: leave one out", names[first], names[second]))
                }
                _ => Ok(first),
            }
        };
        let shown: String = header.chars().take(60).collect();
        let bytes = find(&|name| SIZES.contains(&name))?.ok_or_else(|| {
            let near = names.iter().find_map(|name| nearest(name, SIZES));
            format!(
                "found {shown:?}, allowed are sizes one a line, a header with a column of bytes ({}), or lines of \
                 `sflowtool -l`{}",
                list(&SIZES, false),
                near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
            )
        })?;
        let with_unit = |name: &str| WITH_UNIT.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit);
        let is_time =
            |name: &str| name == "start" || name == "start_ps" || with_unit(name).is_some() || TIMES.contains(&name);
        let time = || names.iter().position(|name| name == TIME);
        let start = find(&is_time)?.or_else(time).map(|column| match names[column].as_str() {
            "start" => (column, Start::Text),
            "start_ps" => (column, Start::Unit(0)),
            name => (column, with_unit(name).map_or(Start::Clock, Start::Unit)),
        });
        if names.iter().any(|name| ["cdf", "percent", "probability"].contains(&name.as_str())) {
            return Err(format!(
                "found {shown:?}, a table of sizes and probabilities: a workload's `sizes` takes it as it is"
            ));
        }
        // Of two columns of hosts, as in our own lists of flows, the usual name has the host's.
        let host = |known: &[&str]| known.iter().find_map(|known| names.iter().position(|name| name == known));
        let (source, destination) = (host(&SOURCES), host(&DESTINATIONS));
        let used = [Some(bytes), start.map(|(column, _)| column), source, destination];
        let is_unused = |(index, name): &(usize, &&str)| !used.contains(&Some(*index)) && !name.is_empty();
        let unused = written.iter().enumerate().filter(is_unused).map(|(_, name)| (*name).to_owned()).collect();
        Ok(Self { sign, count: names.len(), bytes, start, source, destination, unused })
    }
}

impl Columns {
    /// What was not found and which names would do, and what was not used.
    fn notes(&self) -> Vec<String> {
        let times =
            || ["start", "start_ps"].into_iter().chain(WITH_UNIT.map(|(name, _)| name)).chain(TIMES).chain([TIME]);
        let missing = [
            (self.start.is_none(), "times", times().collect::<Vec<_>>()),
            (self.source.is_none(), "senders", SOURCES.to_vec()),
            (self.destination.is_none(), "receivers", DESTINATIONS.to_vec()),
        ];
        let missing = missing.into_iter().filter(|(is_missing, ..)| *is_missing);
        let mut notes: Vec<String> = missing
            .map(|(_, what, names)| format!("no column of {what}: its name may be {}", list(&names, false)))
            .collect();
        if !self.unused.is_empty() {
            notes.push(format!("{UNUSED}{}", self.unused.join(", ")));
        }
        notes
    }
}

/// Hosts get numbers in the order in which they are met.
#[derive(Default)]
struct Hosts(HashMap<String, u32>, Vec<String>);

impl Hosts {
    fn number(&mut self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        if let Some(number) = self.0.get(name) {
            return Some(*number);
        }
        let number = self.1.len() as u32;
        self.0.insert(name.to_owned(), number);
        self.1.push(name.to_owned());
        Some(number)
    }
}

/// Reads a log.
///
/// # Errors
/// It is none of what can be read, lines of it are not, or it has more than [`LIMIT`] flows.
pub fn read(input: impl BufRead) -> Result<FlowLog, TraceError> {
    let mut lines = input.lines().enumerate().filter_map(|(index, line)| match line {
        Ok(line) => {
            // A tab may stand for an empty cell.
            let line = line.trim_start_matches('\u{feff}').trim_matches([' ', '\r']).to_owned();
            (!line.trim().is_empty() && !line.starts_with('#')).then_some(Ok((index + 1, line)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            let message = "found bytes that are no text in UTF-8 (UTF-16, or binary?)".into();
            Some(Err(TraceError { line: index + 1, message }))
        }
        Err(error) => Some(Err(TraceError { line: index + 1, message: error.to_string() })),
    });
    let Some(first) = lines.next().transpose()? else {
        return Err(TraceError { line: 0, message: "found no lines".into() });
    };
    let log = match &first.1 {
        line if line.starts_with("FLOW,") || line.starts_with("CNTR,") => {
            samples(std::iter::once(Ok(first)).chain(lines))?
        }
        line if bytes_of(line).is_some() => sizes(std::iter::once(Ok(first)).chain(lines))?,
        line => {
            let columns = Columns::of(line).map_err(|message| TraceError { line: first.0, message })?;
            rows(columns, lines)?
        }
    };
    if log.flows.is_empty() {
        let message = "found no flows of 1 byte or more, only a header or empty ones";
        return Err(TraceError { line: 0, message: message.into() });
    }
    Ok(log)
}

type Line = Result<(usize, String), TraceError>;

/// Lines that are no flows: the first, and how many more.
#[derive(Default)]
struct Wrong {
    first: Option<TraceError>,
    more: usize,
}

impl Wrong {
    fn push(&mut self, line: usize, message: String) {
        match self.first {
            None => self.first = Some(TraceError { line, message }),
            Some(_) => self.more += 1,
        }
    }

    fn finish<T>(self, good: T) -> Result<T, TraceError> {
        let Some(mut error) = self.first else { return Ok(good) };
        if self.more > 0 {
            error.message += &format!("; and {} more", self.more);
        }
        Err(error)
    }
}

/// What flows of no bytes were left out.
fn without_empty(empty: usize, notes: &mut Vec<String>) {
    if empty > 0 {
        notes.push(format!("{empty} flows of 0 B were left out"));
    }
}

fn sizes(lines: impl Iterator<Item = Line>) -> Result<FlowLog, TraceError> {
    let (mut log, mut wrong, mut empty) = (FlowLog::default(), Wrong::default(), 0);
    for line in lines {
        let (number, line) = line?;
        match bytes_of(&line) {
            Some(0) => empty += 1,
            Some(bytes) => {
                let flow = LoggedFlow { bytes, start_ns: None, source: None, destination: None, line: number };
                log.flows.push(flow);
            }
            None => wrong.push(number, format!("found {line:?}, allowed are bytes such as 1500 or 64KB")),
        }
        if log.flows.len() > LIMIT {
            return Err(too_many(&format!("more than {LIMIT}")));
        }
    }
    log.notes.push("sizes alone: no times and no hosts".into());
    without_empty(empty, &mut log.notes);
    wrong.finish(log)
}

fn rows(columns: Columns, lines: impl Iterator<Item = Line>) -> Result<FlowLog, TraceError> {
    let (mut log, mut wrong, mut hosts, mut empty) = (FlowLog::default(), Wrong::default(), Hosts::default(), 0);
    let mut unit = None;
    for line in lines {
        let (number, line) = line?;
        // nfdump's last lines.
        if line == "Summary" || line.starts_with("Summary:") {
            break;
        }
        let cells = cells(&line, columns.sign);
        // Some end each line with a sign.
        if cells.len() != columns.count && !(cells.len() == columns.count + 1 && cells.last() == Some(&"")) {
            wrong.push(number, format!("found {} cells, the header has {}", cells.len(), columns.count));
            continue;
        }
        let cell = |column: usize| cells.get(column).copied().unwrap_or("");
        let Some(bytes) = bytes_of(cell(columns.bytes)) else {
            let found = cell(columns.bytes);
            wrong.push(number, format!("found bytes {found:?}, allowed is a whole number up to 2^53, or 64KB"));
            continue;
        };
        let start = columns.start.map(|(column, kind)| start_ns(kind, cell(column), &mut unit)).transpose();
        let start_ns = match start {
            Ok(start_ns) => start_ns,
            Err(message) => {
                wrong.push(number, message);
                continue;
            }
        };
        if bytes == 0 {
            empty += 1;
            continue;
        }
        let mut host = |column: Option<usize>| column.and_then(|column| hosts.number(cell(column)));
        let (source, destination) = (host(columns.source), host(columns.destination));
        log.flows.push(LoggedFlow { bytes, start_ns, source, destination, line: number });
        if log.flows.len() > LIMIT {
            return Err(too_many(&format!("more than {LIMIT}")));
        }
    }
    log.notes.extend(columns.notes());
    if matches!(columns.start, Some((_, Start::Clock))) {
        log.notes.push(
            "collectors count the headers of IP and TCP or UDP, some 40 B a packet; sizes of a workload are payload"
                .into(),
        );
    }
    without_empty(empty, &mut log.notes);
    log.hosts = hosts.1;
    wrong.finish(log)
}

/// Flows by their packets that were sampled: each stands for as many as the rate of sampling says. A packet that several
/// agents see counts at the one that saw most of its flow.
fn samples(lines: impl Iterator<Item = Line>) -> Result<FlowLog, TraceError> {
    const FIELDS: usize = 20;
    let (mut wrong, mut hosts) = (Wrong::default(), Hosts::default());
    let mut found: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut ends: BTreeMap<String, (Option<u32>, Option<u32>)> = BTreeMap::new();
    let (mut agents, mut packets, mut most) = (BTreeSet::new(), 0u64, 0u64);
    for line in lines {
        let (number, line) = line?;
        let cells = cells(&line, ',');
        if cells[0] != "FLOW" {
            continue;
        }
        let field = |index: usize| cells.get(index).and_then(|cell| cell.parse::<u64>().ok());
        let rate = field(19).filter(|rate| (1..=MOST_SAMPLED).contains(rate));
        let (Some(size), Some(rate), FIELDS..) = (field(17), rate, cells.len()) else {
            wrong.push(number, format!("found {} fields, expected {FIELDS} with the packet's size and the rate of sampling, 1 to 2^24, at 18 and 20, as sflowtool -l prints them", cells.len()));
            continue;
        };
        let flow = [9, 10, 11, 14, 15].map(|index| cells[index]).join(",");
        ends.entry(flow.clone()).or_insert_with(|| (hosts.number(cells[9]), hosts.number(cells[10])));
        *found.entry(flow).or_default().entry(cells[1].to_owned()).or_default() += size.saturating_mul(rate);
        agents.insert(cells[1].to_owned());
        (packets, most) = (packets + 1, most.max(rate));
        if found.len() > LIMIT {
            return Err(too_many(&format!("more than {LIMIT}")));
        }
    }
    let flow = |(flow, seen): (&String, &BTreeMap<String, u64>)| {
        let (source, destination) = ends.get(flow).copied().unwrap_or_default();
        let bytes = seen.values().copied().max().unwrap_or(0).clamp(1, LARGEST);
        LoggedFlow { bytes, start_ns: None, source, destination, line: 0 }
    };
    let flows = found.iter().map(flow).collect();
    let notes = vec![
        format!(
            "{packets} sampled packets of {} agents, up to one in {most}: most flows of fewer than {most} packets are not seen, so that sizes are those of long \
             flows; a log of flows (NetFlow, IPFIX) without sampling is better",
            agents.len()
        ),
        "no times: sflowtool -l prints none".into(),
    ];
    wrong.finish(FlowLog { flows, hosts: hosts.1, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> FlowLog {
        read(text.as_bytes()).expect("a log")
    }

    fn refused(text: &str) -> TraceError {
        read(text.as_bytes()).expect_err("refused")
    }

    #[test]
    fn sizes_one_a_line() {
        let found = log("# mine\n1500\n64KB\n0\n1e6\n");
        assert_eq!(found.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(), [1_500, 64_000, 1_000_000]);
        assert!(found.notes.iter().any(|note| note.contains("1 flows of 0 B")));
        let error = refused("1500\nmany\nmore\n");
        assert_eq!(error.line, 2);
        assert!(error.message.contains("and 1 more"), "{}", error.message);
    }

    #[test]
    fn logs_of_collectors() {
        let old = "ts,te,td,sa,da,sp,dp,pr,flg,ipkt,ibyt\n2024-05-01 12:00:00.250,2024-05-01 12:00:01.000,0.750,10.0.0.1,10.0.0.2,1,2,TCP,.A,3,1500\n2024-05-01 12:00:01.500,x,0,10.0.0.2,10.0.0.3,1,2,TCP,.A,3,64\nSummary\nflows,bytes\n2,1564\n";
        let new = "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,bps,bpp,flows\n2024-05-01 12:00:00.250,1,TCP,10.0.0.1,1,10.0.0.2,2,3,1500,1,1,1\n2024-05-01 12:00:01.500,1,TCP,10.0.0.2,1,10.0.0.3,2,3,64,1,1,1\n";
        let silk = "            sIP|            dIP|sPort|   bytes|                  sTime|\n10.0.0.1|10.0.0.2|1|1500|2024/05/01T12:00:00.250|\n10.0.0.2|10.0.0.3|1|64|2024/05/01T12:00:01.500|\n";
        let epoch = "first,src,dst,bytes\n1714564800250,10.0.0.1,10.0.0.2,1500\n1714564801500,10.0.0.2,10.0.0.3,64\n";
        let seconds =
            "timestamp;src ip;dst ip;bytes\n1714564800.250;10.0.0.1;10.0.0.2;1500\n1714564801.5;10.0.0.2;10.0.0.3;64\n";
        for text in [old, new, silk, epoch, seconds] {
            let found = log(text);
            assert_eq!(found.hosts, ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "{text}");
            let all: Vec<_> = found.flows.iter().map(|flow| (flow.bytes, flow.source, flow.destination)).collect();
            assert_eq!(all, [(1_500, Some(0), Some(1)), (64, Some(1), Some(2))], "{text}");
            let starts: Vec<i64> = found.flows.iter().filter_map(|flow| flow.start_ns).collect();
            assert_eq!(starts[1] - starts[0], 1_250_000_000, "{text}");
            let known = ["collectors count", "columns that are not used"];
            let is_known = |note: &String| known.iter().any(|known| note.contains(known));
            assert!(found.notes.iter().all(is_known), "{:?}", found.notes);
        }
        let own = log("start_us,src,dst,size_bytes\n1.5,h0,h1,9\n");
        assert_eq!(own.flows[0].start_ns, Some(1_500));
    }

    #[test]
    fn clock_times_under_any_name_of_a_start() {
        for name in ["start", "time", "start_time", "Timestamp"] {
            let text = format!("{name},bytes\n2026-11-29T10:00:00.000072Z,1\n2026-11-29T10:00:01.000072Z,1\n");
            let starts: Vec<_> = log(&text).flows.iter().filter_map(|flow| flow.start_ns).collect();
            assert_eq!(starts[1] - starts[0], 1_000_000_000, "{name}");
        }
        assert_eq!(log("start,bytes\n1.5us,9\n").flows[0].start_ns, Some(1_500));
        let both = log("time,start_us,bytes\nx,7,1\n");
        assert_eq!(both.flows[0].start_ns, Some(7_000), "the plainer name is the start");
        assert!(both.notes.contains(&"columns that are not used: time".to_owned()), "{:?}", both.notes);
        assert!(refused("start,bytes\n1us,1\n2026-11-29T10:00:00Z,1\n").message.contains("another unit"));
        assert!(refused("start,bytes\n1764240000,1\n").message.contains("or a date and time such as"));
    }

    #[test]
    fn what_is_not_used_is_said_and_what_would_be() {
        let notes = log("when,bytes,From Host,dst\nx,1,a,b\n").notes;
        assert!(notes.contains(&"columns that are not used: when, From Host".to_owned()), "{notes:?}");
        let of =
            |what: &str| notes.iter().any(|note| note.starts_with(&format!("no column of {what}: its name may be ")));
        assert!(of("times") && of("senders") && !of("receivers"), "{notes:?}");
        let error = refused("start_s,src,dst,bytess\n0,a,b,1\n").message;
        assert!(error.contains("did you mean \"bytes\"") && SIZES.iter().all(|name| error.contains(name)), "{error}");
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(nanoseconds("1764240000.000000715", 1_000_000_000), Some(1_764_240_000_000_000_715));
        assert_eq!(nanoseconds("1764240000000.25", 1_000_000), Some(1_764_240_000_000_250_000));
        assert_eq!(nanoseconds("1.5e3", 1_000), Some(1_500_000));
        assert_eq!(["", "-1", "x", "99999999999999999999"].map(|cell| nanoseconds(cell, 1_000)), [None; 4]);
        assert_eq!(clock("2024-05-01T12:00:00.25+02:00"), clock("2024-05-01 10:00:00.250"));
        assert_eq!(log("flowStartMilliseconds,bytes\n100000,9\n").flows[0].start_ns, Some(100_000_000_000));
        assert_eq!(clock("12.5"), None);
    }

    #[test]
    fn the_page_lists_every_name() {
        let page = include_str!("../../../../docs/workloads.md");
        let names = SIZES.into_iter().chain(SOURCES).chain(DESTINATIONS).chain(TIMES).chain([TIME]);
        for name in names.chain(WITH_UNIT.map(|(name, _)| name)) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn samples_of_packets() {
        let line = |agent: &str, port: u32, size: u32| {
            format!("FLOW,{agent},1,2,a,b,0x0800,0,0,10.0.0.1,10.0.0.2,6,0x00,64,{port},80,0x10,{size},{size},512\n")
        };
        let text = [
            "CNTR,s1,1,6,100\n".to_owned(),
            line("s1", 1, 1_500),
            line("s1", 1, 1_500),
            line("s2", 1, 1_500),
            line("s1", 2, 64),
        ]
        .concat();
        let found = log(&text);
        assert_eq!(found.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(), [2 * 1_500 * 512, 64 * 512]);
        assert!(found.notes[0].contains("4 sampled packets of 2 agents, up to one in 512"), "{:?}", found.notes);
        assert!(refused("FLOW,s1,1\n").message.contains("found 3 fields"));
    }

    #[test]
    fn what_is_no_log_is_refused() {
        assert!(refused("").message.contains("no lines"));
        assert!(refused("a,b\n1,2\n").message.contains("a column of bytes"));
        assert!(refused("size,cdf\n1,1\n").message.contains("takes it as it is"));
        assert!(refused("packets\n1\n").message.contains("a column of bytes"));
        assert!(refused("bytes,octets\n1,2\n").message.contains("`bytes` and `octets` mean the same"));
        assert!(refused("start_s,ts,bytes\n1,2,3\n").message.contains("mean the same"));
        assert!(refused("start_s,start_ms,bytes\n1,2,3\n").message.contains("mean the same"));
        assert!(refused("bytes,bytes\n1,2\n").message.contains("is there twice"));
        assert!(refused("ts,src,dst,bytes\n1714564800,a,b,\"1,500\"\n").message.contains("found bytes \"1,500\""));
        assert_eq!(log("dst\tbytes\tsrc\n\t5\t\n").flows[0].bytes, 5, "empty cells at both ends");
        assert_eq!(log("1500\t\r\n").flows[0].bytes, 1_500);
        assert_eq!(log("src,name,bytes,x\na,\"x,77\",5,6\n").flows[0].bytes, 5);
        assert!(refused("src,bytes\na,5,6\n").message.contains("found 3 cells, the header has 2"));
        assert!(refused("ts,bytes\n1714564800,1\n1714564800250,1\n").message.contains("of another unit"));
        assert!(refused("start_ns,bytes\n-100,1\n").message.contains("not negative"));
        assert!(refused("bytes\n9007199254740993\n").message.contains("up to 2^53"));
        assert!(read(&[0xff, 0xfe, 0x31][..]).expect_err("refused").message.contains("UTF-8"));
        let error = refused("bytes,ts\n5,2024-05-01 12:00:00\n5,12.5\nx,2024-05-01 12:00:00\n");
        assert_eq!(error.line, 3);
        assert!(error.message.contains("start_s") && error.message.contains("and 1 more"), "{}", error.message);
        assert!(refused("bytes\n0\n").message.contains("no flows of 1 byte"));
    }
}
