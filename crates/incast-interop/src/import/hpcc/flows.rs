//! `flow.txt`: the number of flows, then `src dst pg dport size start` for each; starts in seconds, in order.

use super::{topology::Topology, units};
use crate::import::text::{ImportError, Line, Text, whole};
use incast_lab::workload::{MOST_BYTES, trace::LIMIT};
use std::collections::BTreeSet;

/// A flow of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Sender.
    pub source: u64,
    /// Receiver.
    pub destination: u64,
    /// Destination port, by which analyses distinguish classes.
    pub port: u16,
    /// Payload bytes.
    pub bytes: u64,
    /// Start in nanoseconds.
    pub start: u64,
}

/// More classes than a table of results shows.
const MOST_CLASSES: usize = 16;

/// Reads the file.
///
/// # Errors
/// The first line that is not what it should be.
pub fn parse(text: &Text, topology: &Topology, warnings: &mut Vec<String>) -> Result<Vec<Flow>, ImportError> {
    let mut lines = text.lines();
    let Some(first) = lines.next() else {
        return Err(text.error(0, "the file is empty, wanted is the number of flows"));
    };
    let at = |line: usize| move |message: String| text.error(line, message);
    let [count] = first.words[..] else {
        let found = first.words.len();
        return Err(text.error(first.number, format!("found {found} words, wanted is the number of flows")));
    };
    let count = whole("the number of flows", count, 1..=LIMIT as u64).map_err(at(first.number))?;
    // Not `with_capacity(count)`: the file may announce more than it has.
    let mut flows: Vec<Flow> = Vec::new();
    let mut groups = BTreeSet::new();
    let (mut last, mut unordered, mut long) = (first.number, None, None);
    for index in 0..count {
        let Some(line) = lines.next() else {
            return Err(text.error(
                last,
                format!("the file ends after {index} flows, line {} has {count}", first.number),
            ));
        };
        last = line.number;
        let (flow, group) = flow(&line, topology).map_err(at(line.number))?;
        groups.insert(group);
        if flows.last().is_some_and(|before| before.start > flow.start) {
            unordered.get_or_insert(line.number);
        }
        if flow.bytes > u64::from(u32::MAX) {
            long.get_or_insert(line.number);
        }
        flows.push(flow);
    }
    if let Some(line) = lines.next() {
        warnings.push(text.warning(line.number, format!("ignored from here on: line 1 has {count} flows")));
    }
    if let Some(line) = unordered {
        warnings.push(
            text.warning(line, "starts before the flow above: the peer starts it late, incast in time"),
        );
    }
    if let Some(line) = long {
        warnings
            .push(text.warning(line, "has 4 GiB or more: the peer counts sizes in 32 bits, incast in 64"));
    }
    if groups.len() > 1 {
        warnings.push(
            text.warning(
                0,
                format!("has flows of {} priority groups: here they share one queue", groups.len()),
            ),
        );
    }
    Ok(flows)
}

/// A flow and its priority group.
fn flow(line: &Line<'_>, topology: &Topology) -> Result<(Flow, u64), String> {
    let [source, destination, group, port, bytes, start] = line.words[..] else {
        return Err(format!("found {} words, wanted is `src dst pg dport size start`", line.words.len()));
    };
    let host = |what: &str, word: &str| {
        let id = whole(what, word, 0..=u64::from(u32::MAX))?;
        if topology.is_host(id) { Ok(id) } else { Err(format!("{what}: {id} is no host of the topology")) }
    };
    let flow = Flow {
        source: host("src", source)?,
        destination: host("dst", destination)?,
        port: whole("dport", port, 0..=u64::from(u16::MAX))? as u16,
        bytes: whole("size", bytes, 1..=MOST_BYTES)?,
        start: units::seconds("start", start)?,
    };
    if flow.source == flow.destination {
        return Err(format!("a flow from {} to itself", flow.source));
    }
    Ok((flow, whole("pg", group, 0..=7)?))
}

/// Names of classes by destination port: 100 and 200 are background and incast, as the peer's analysis has it. Many
/// different ports are no classes: then all flows are in one.
pub fn classes(flows: &[Flow]) -> impl Fn(u16) -> String + use<> {
    let ports: BTreeSet<u16> = flows.iter().map(|flow| flow.port).collect();
    let one = ports.len() > MOST_CLASSES;
    move |port| match port {
        _ if one => "background".to_owned(),
        100 => "background".to_owned(),
        200 => "incast".to_owned(),
        port => format!("dport-{port}"),
    }
}
