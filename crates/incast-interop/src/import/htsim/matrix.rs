//! The connection matrix (`.cm`): `Nodes N`, `Connections M`, then `src->dst` for each connection with `id`, `start` in
//! picoseconds and `size` in bytes. `#` starts a comment line.
//!
//! What starts a connection when another one ends (triggers), failures and receivers' priorities are refused by name.

use crate::import::text::{ImportError, Line, Text, number, shown, whole};
use incast_lab::{
    scenario::tree::nearest::nearest,
    workload::{MOST_BYTES, trace::LIMIT},
};
use std::collections::BTreeMap;

/// Payload of every packet of the peer: it sends full packets only.
pub const PAYLOAD: u64 = 4096;
/// More hosts than our topologies can have.
pub const MOST_NODES: u64 = incast_sim::topology::MAX_NODES as u64;
/// Most starts of connections without an end: each is a workload.
const MOST_STARTS: usize = 16;
/// Our clock ends after 213 days.
const LATEST_PS: f64 = 1e19;
/// Words of a connection, each but `addon` and `msg` with a value.
const KEYS: [&str; 9] =
    ["id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "addon", "msg"];
/// What incast has for connections that start when others end.
const TRIGGERS: &str = "connections that start when others end are not supported; instead write a connection for each \
                        with its `start`, or a scenario with `kind = \"rpc\"`, whose requests follow each other";
/// First words of lines that are no connections.
const HEADS: [&str; 6] = ["Nodes", "Connections", "Triggers", "Failures", "trigger", "failure"];

/// The file, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of hosts.
    pub nodes: u64,
    /// The line that has it.
    pub nodes_line: usize,
    /// In the order of the file.
    pub connections: Vec<Connection>,
}

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its number, where the file gives one.
    pub id: Option<u64>,
    /// Sender.
    pub source: u64,
    /// Receiver.
    pub destination: u64,
    /// Start in picoseconds.
    pub start: u64,
    /// Payload bytes as the file has them; none of a connection without an end.
    pub bytes: Option<u64>,
    /// Its line in the file.
    pub line: usize,
}

/// Bytes of a connection, rounded up to full packets.
pub fn in_full_packets(bytes: u64) -> u64 {
    bytes.div_ceil(PAYLOAD) * PAYLOAD
}

/// A number of the header and the line that has it.
type Count = Option<(u64, usize)>;

impl Matrix {
    /// Reads the file.
    ///
    /// # Errors
    /// The first line that is not what it should be, or that asks for what incast does not have.
    pub fn parse(text: &Text) -> Result<Self, ImportError> {
        let (mut nodes, mut announced): (Count, Count) = (None, None);
        let mut connections: Vec<Connection> = Vec::new();
        let mut ids = BTreeMap::new();
        let mut priorities: Option<(u64, usize)> = None;
        let mut last = 1;
        for line in text.lines().filter(|line| !line.words[0].starts_with('#')) {
            last = line.number;
            let at = |message: String| text.error(line.number, message);
            let first = line.words[0];
            if !first.contains("->") {
                let (place, value) = match first {
                    "Nodes" => (&mut nodes, header(&line, 2..=MOST_NODES)),
                    "Connections" => (&mut announced, header(&line, 1..=LIMIT as u64)),
                    _ => {
                        not_done(&line).map_err(at)?;
                        continue;
                    }
                };
                if !connections.is_empty() {
                    return Err(at(format!("{first} comes after the first connection, allowed is before it")));
                }
                if let Some((_, other)) = place.replace((value.map_err(at)?, line.number)) {
                    return Err(at(format!("{first} is in line {other} already")));
                }
                continue;
            }
            let Some((nodes, _)) = nodes else {
                return Err(at("a connection before `Nodes`, which has to come first".into()));
            };
            let (connection, priority) = connection(&line, nodes).map_err(at)?;
            if let Some(other) = connection.id.and_then(|id| ids.insert(id, line.number)) {
                return Err(at(format!("id: the connection of line {other} has the same")));
            }
            let (most_common, other) = *priorities.get_or_insert((priority, line.number));
            if most_common != priority {
                return Err(at(format!(
                    "prio: found {priority} here and {most_common} in line {other}; receivers that prefer some of their \
                     senders are not supported, allowed is one priority for all"
                )));
            }
            connections.push(connection);
        }
        let Some((nodes, nodes_line)) = nodes else {
            return Err(text.error(last, "found no line `Nodes N`"));
        };
        let Some((announced, line)) = announced else {
            return Err(text.error(last, "found no line `Connections M`"));
        };
        if announced != connections.len() as u64 {
            let found = connections.len();
            return Err(text.error(line, format!("Connections: found {announced}, but the file has {found} of them")));
        }
        Ok(Self { nodes, nodes_line, connections })
    }

    /// Connections without an end by their start.
    ///
    /// # Errors
    /// They have more starts than there may be workloads of them.
    pub fn endless(&self, text: &Text) -> Result<BTreeMap<u64, Vec<&Connection>>, ImportError> {
        let mut by_start: BTreeMap<u64, Vec<&Connection>> = BTreeMap::new();
        for connection in self.connections.iter().filter(|connection| connection.bytes.is_none()) {
            by_start.entry(connection.start).or_default().push(connection);
            if by_start.len() > MOST_STARTS {
                let message = format!(
                    "start: connections without an end (no size, or size 0) have more than {MOST_STARTS} different starts, \
                     allowed are {MOST_STARTS}; instead write a size of more bytes than the run has time for"
                );
                return Err(text.error(connection.line, message));
            }
        }
        Ok(by_start)
    }

    /// When the last connection starts, in picoseconds.
    pub fn last_start(&self) -> u64 {
        self.connections.iter().map(|connection| connection.start).max().unwrap_or(0)
    }
}

/// A line of the header: its number.
fn header(line: &Line<'_>, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    match line.words[..] {
        [what, number] => whole(what, number, range),
        _ => Err(format!("found {} words, wanted is `{} N`", line.words.len(), line.words[0])),
    }
}

/// A line that is neither a connection nor counts them.
///
/// # Errors
/// All but headers that announce nothing.
fn not_done(line: &Line<'_>) -> Result<(), String> {
    let first = line.words[0];
    let what = match first {
        "Triggers" | "trigger" => TRIGGERS,
        "Failures" | "failure" => {
            "failed links are not supported; instead write an `[[event]]` with `link_down` into the scenario"
        }
        _ => {
            let mean = nearest(first, HEADS).map(|name| format!(", did you mean {name}?"));
            return Err(format!(
                "found {}, allowed is `Nodes N`, `Connections M` or `src->dst …`{}",
                shown(first),
                mean.unwrap_or_default()
            ));
        }
    };
    match line.words[..] {
        ["Triggers" | "Failures", "0"] => Ok(()),
        _ => Err(format!("{first}: {what}")),
    }
}

/// A connection and its priority at the receiver.
fn connection(line: &Line<'_>, nodes: u64) -> Result<(Connection, u64), String> {
    let (source, destination) = line.words[0].split_once("->").unwrap_or_default();
    let host = |what: &str, word: &str| whole(what, word, 0..=nodes - 1);
    let (source, destination) = (host("src", source)?, host("dst", destination)?);
    if source == destination {
        return Err(format!("a connection from {source} to itself"));
    }
    let (mut id, mut start, mut bytes, mut priority) = (None, None, None, None);
    let mut words = line.words[1..].iter().copied();
    while let Some(key) = words.next() {
        match key {
            "trigger" | "send_done_trigger" | "recv_done_trigger" | "addon" => {
                return Err(format!("{key}: {TRIGGERS}"));
            }
            "msg" => {
                return Err(format!(
                    "{key}: messages that share a connection, of uet-htsim's -conn_reuse, are not supported; instead write \
                     a connection with an `id` of its own for each"
                ));
            }
            _ if !KEYS.contains(&key) => {
                let mean = nearest(key, KEYS).map(|name| format!(", did you mean {name}?"));
                return Err(format!(
                    "found {}, allowed is id, start, size or prio{}",
                    shown(key),
                    mean.unwrap_or_default()
                ));
            }
            _ => {}
        }
        let word = words.next().ok_or_else(|| format!("{key}: its value is missing"))?;
        let known = match key {
            "id" => id.replace(whole(key, word, 1..=u64::from(u32::MAX))?),
            "start" => start.replace(picoseconds(key, word)?),
            "size" => bytes.replace(whole(key, word, 0..=MOST_BYTES / PAYLOAD * PAYLOAD)?),
            _ => priority.replace(whole(key, word, 0..=u64::from(u32::MAX))?),
        };
        if known.is_some() {
            return Err(format!("{key} is there twice"));
        }
    }
    let connection = Connection {
        id,
        source,
        destination,
        start: start.ok_or("start is missing: the picosecond at which the connection starts")?,
        bytes: bytes.filter(|bytes| *bytes > 0),
        line: line.number,
    };
    Ok((connection, priority.unwrap_or(USUAL_PRIORITY)))
}

/// The peer's priority of connections that have none of their own.
const USUAL_PRIORITY: u64 = 2_000_000;

/// The peer reads a decimal number and takes its whole part.
fn picoseconds(what: &str, word: &str) -> Result<u64, String> {
    match word.parse::<u64>() {
        Ok(ps) if word.bytes().all(|byte| byte.is_ascii_digit()) && ps as f64 <= LATEST_PS => Ok(ps),
        _ => number(what, word, 0.0..=LATEST_PS).map(|ps| ps as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parse(content: &str) -> Result<Matrix, ImportError> {
        Matrix::parse(&Text::new(Path::new("m.cm"), content.as_bytes().to_vec())?)
    }

    #[test]
    fn connections_are_read_in_order() {
        let matrix = parse(
            "# two\nNodes 16\nConnections 2\nTriggers 0\n\n13->0 id 7 start 0 size 2000000\r\n0->13 size 5 start 1.5e6\n",
        );
        let matrix = matrix.expect("a matrix");
        assert_eq!((matrix.nodes, matrix.nodes_line, matrix.last_start()), (16, 2, 1_500_000));
        assert_eq!(
            matrix.connections,
            [
                Connection { id: Some(7), source: 13, destination: 0, start: 0, bytes: Some(2_000_000), line: 6 },
                Connection { id: None, source: 0, destination: 13, start: 1_500_000, bytes: Some(5), line: 7 },
            ]
        );
        // One priority for all is none.
        assert!(parse("Nodes 4\nConnections 2\n0->1 start 0 size 5 prio 3\n1->0 start 0 size 5 prio 3\n").is_ok());
        // Above 2^53 a double would not do.
        let late = parse("Nodes 4\nConnections 1\n0->1 start 9007199254740993 size 5\n").expect("a matrix");
        assert_eq!(late.last_start(), 9_007_199_254_740_993);
    }

    #[test]
    fn faults_have_a_line() {
        let header = "Nodes 4\nConnections 1\n";
        for (rest, line, expected) in [
            ("0->1 id 1 start 0 size 5 msg 1\n", 3, "msg: messages that share a connection"),
            ("0->1 start 0 size -1\n", 3, "size: found `-1`, allowed is a whole number from 0"),
            ("0->1 size 5\n", 3, "start is missing"),
            ("0->4 start 0 size 5\n", 3, "dst: found `4`, allowed is a whole number from 0 to 3"),
            ("x->1 start 0 size 5\n", 3, "src: found `x`"),
            ("1->1 start 0 size 5\n", 3, "from 1 to itself"),
            ("0->1 start -1 size 5\n", 3, "start: found `-1`"),
            ("0->1 start nan size 5\n", 3, "start: found `nan`"),
            ("0->1 start 0 size 5 size 5\n", 3, "size is there twice"),
            ("0->1 start 0 size\n", 3, "size: its value is missing"),
            ("0->1 start 0 seize 5\n", 3, "did you mean size?"),
            ("0->1 id 0 start 0 size 5\n", 3, "id: found `0`"),
            ("0->1 id 1 trigger 2 size 5\n", 3, "trigger: connections that start when others end"),
            ("0->1 start 0 size 5 send_done_trigger 2\n", 3, "send_done_trigger: "),
            ("0->1 start 0 size 5 recv_done_trigger 2\n", 3, "recv_done_trigger: "),
            ("0->1 start 0 size 5 addon\n", 3, "addon: "),
            ("0->1 start 0 size 5\ntrigger id 1 oneshot\n", 4, "trigger: "),
            ("Triggers 1\n", 3, "Triggers: "),
            ("Failures 1\n", 3, "Failures: failed links"),
            ("failure switch_type TOR switch_id 0 link_id 0\n", 3, "failure: failed links"),
            ("0->1 start 0 size 5\n1->0 start 0 size 5\n", 2, "found 1, but the file has 2"),
            ("0->1 start 0 size 5\nNodes 4\n", 4, "Nodes comes after"),
            ("Nodes 4\n", 3, "Nodes is in line 1 already"),
            ("Node 4\n", 3, "did you mean Nodes?"),
            ("Nodes\n", 3, "found 1 words"),
        ] {
            let error = parse(&format!("{header}{rest}")).expect_err(rest);
            assert!(error.message.contains(expected), "{rest}: {error}");
            assert_eq!(error.line, line, "{rest}: {error}");
        }
        for (content, line, expected) in [
            ("", 1, "no line `Nodes N`"),
            ("Connections 1\n", 1, "no line `Nodes N`"),
            ("Connections 1\n0->1 start 0 size 5\n", 2, "a connection before `Nodes`"),
            ("Nodes 4\n0->1 start 0 size 5\n", 2, "no line `Connections M`"),
            ("Nodes 1\n", 1, "Nodes: found `1`"),
            ("Nodes 9\nConnections 2\n0->1 id 3 start 0 size 5\n1->0 id 3 start 0 size 5\n", 4, "id: the"),
            ("Nodes 9\nConnections 2\n0->1 start 0 size 5\n1->0 start 0 size 5 prio 1\n", 4, "prio: found 1"),
        ] {
            let error = parse(content).expect_err(content);
            assert!(error.message.contains(expected), "{content}: {error}");
            assert_eq!(error.line, line, "{content}: {error}");
        }
    }
}
