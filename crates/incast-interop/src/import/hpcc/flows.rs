//! `flow.txt`: the number of flows, then a line for each; starts in seconds, in order.
//!
//! HPCC's lines are `src dst pg dport size start`. ConWeave's have no `dport`, and some descendants add the number of a
//! group at the end. The first flow's line decides for all which it is.

use super::{topology::Topology, units};
use crate::import::{
    Said,
    text::{ImportError, Line, Text, whole},
};
use incast_lab::workload::{MOST_BYTES, trace::LIMIT};
use std::collections::BTreeSet;

/// A flow of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its line in the file.
    pub line: usize,
    /// Sender.
    pub source: u64,
    /// Receiver.
    pub destination: u64,
    /// What analyses distinguish classes by.
    pub label: Label,
    /// Payload bytes.
    pub bytes: u64,
    /// Start in nanoseconds.
    pub start: u64,
}

/// What flows are distinguished by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// By nothing.
    None,
    /// The destination port.
    Port(u16),
    /// The number of a group.
    Group(u64),
}

/// What the words of a flow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    has_port: bool,
    has_group: bool,
}

impl Form {
    /// That of the first flow's line. Six words with a size in fifth place are HPCC's; a start there has a point.
    fn of(words: &[&str]) -> Result<Self, String> {
        let is_whole = |index: usize| words[index].bytes().all(|byte| byte.is_ascii_digit());
        match words.len() {
            5 => Ok(Self { has_port: false, has_group: false }),
            6 if is_whole(5) && words[4].contains('.') => Ok(Self { has_port: false, has_group: true }),
            6 => Ok(Self { has_port: true, has_group: false }),
            7 if is_whole(6) => Ok(Self { has_port: true, has_group: true }),
            7 => Err("found a seventh word that is no number of a group: flows that stop at a time are not there, \
                      wanted is `src dst pg dport size start [group]`"
                .to_owned()),
            found => {
                Err(format!("found {found} words, wanted is `src dst pg dport size start` or `src dst pg size start`"))
            }
        }
    }

    /// Its words.
    fn words(self) -> String {
        let (port, group) = (if self.has_port { " dport" } else { "" }, if self.has_group { " group" } else { "" });
        format!("src dst pg{port} size start{group}")
    }
}

/// More classes than a table of results shows.
const MOST_CLASSES: usize = 16;

/// Reads the file.
///
/// # Errors
/// The first line that is not what it should be.
pub fn parse(text: &Text, topology: &Topology, said: &mut Said) -> Result<Vec<Flow>, ImportError> {
    let Said { warnings, notes } = said;
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
    let mut form = None;
    let (mut last, mut unordered, mut long) = (first.number, None, None);
    for index in 0..count {
        let Some(line) = lines.next() else {
            return Err(
                text.error(last, format!("the file ends after {index} flows, line {} has {count}", first.number))
            );
        };
        last = line.number;
        let form = match form {
            Some(form) => form,
            None => *form.insert(Form::of(&line.words).map_err(at(line.number))?),
        };
        let (flow, group) = flow(&line, form, topology).map_err(at(line.number))?;
        groups.insert(group);
        if flows.last().is_some_and(|before| before.start > flow.start) {
            unordered.get_or_insert(line.number);
        }
        if flow.bytes > u64::from(u32::MAX) {
            long.get_or_insert(line.number);
        }
        flows.push(flow);
    }
    if let Some(form) = form {
        notes.push(text.warning(0, format!("flows are read as `{}`", form.words())));
    }
    if let Some(line) = lines.next() {
        warnings.push(text.warning(line.number, format!("ignored from here on: line 1 has {count} flows")));
    }
    if let Some(line) = unordered {
        warnings.push(text.warning(line, "starts before the flow above: the peer starts it late, incast in time"));
    }
    if let Some(line) = long {
        warnings.push(text.warning(line, "has 4 GiB or more: the peer counts sizes in 32 bits, incast in 64"));
    }
    if groups.len() > 1 {
        warnings
            .push(text.warning(0, format!("has flows of {} priority groups: here they share one queue", groups.len())));
    }
    Ok(flows)
}

/// Refuses flows that would take an NVSwitch that is left out.
///
/// # Errors
/// The first of them.
pub fn check(text: &Text, flows: &[Flow], topology: &Topology) -> Result<(), ImportError> {
    for Flow { line, source, destination, .. } in flows {
        let switch = topology.left_out(*source).filter(|one| Some(*one) == topology.left_out(*destination));
        if let Some(both) = switch {
            let message = format!(
                "{source} and {destination} are joined by the NVSwitch {both}: hosts with a NIC and NVLink are not there, \
                 allowed are flows between servers"
            );
            return Err(text.error(*line, message));
        }
    }
    Ok(())
}

/// A flow and its priority group.
fn flow(line: &Line<'_>, form: Form, topology: &Topology) -> Result<(Flow, u64), String> {
    let wanted = || format!("found {} words, wanted is `{}`", line.words.len(), form.words());
    let Form { has_port, has_group } = form;
    let ([source, destination, group], port, rest) = match &line.words[..] {
        [a, b, c, port, rest @ ..] if has_port => ([a, b, c], Some(port), rest),
        [a, b, c, rest @ ..] => ([a, b, c], None, rest),
        _ => return Err(wanted()),
    };
    let (bytes, start, last) = match rest {
        [bytes, start, last] if has_group => (bytes, start, Some(last)),
        [bytes, start] if !has_group => (bytes, start, None),
        _ => return Err(wanted()),
    };
    let port = port.map(|word| whole("dport", word, 0..=u64::from(u16::MAX))).transpose()?;
    let label = match last {
        Some(word) => Label::Group(whole("group", word, 0..=u64::MAX)?),
        None => port.map_or(Label::None, |port| Label::Port(port as u16)),
    };
    let mut size = whole("size", bytes, u64::from(has_port)..=MOST_BYTES)?;
    if !has_port {
        // As ConWeave's program does.
        size = size.max(1);
    }
    let host = |what: &str, word: &str| {
        let id = whole(what, word, 0..=u64::from(u32::MAX))?;
        if topology.is_host(id) { Ok(id) } else { Err(format!("{what}: {id} is no host of the topology")) }
    };
    let flow = Flow {
        line: line.number,
        source: host("src", source)?,
        destination: host("dst", destination)?,
        label,
        bytes: size,
        start: units::seconds("start", start)?,
    };
    if flow.source == flow.destination {
        return Err(format!("a flow from {} to itself", flow.source));
    }
    Ok((flow, whole("pg", group, 0..=7)?))
}

/// Names of classes: of destination ports, 100 and 200 are background and incast, as the peer's analysis has it. Many
/// different ports or groups are no classes: then all flows are in one.
pub fn classes(flows: &[Flow]) -> impl Fn(Label) -> String + use<> {
    let labels: BTreeSet<Label> = flows.iter().map(|flow| flow.label).collect();
    let one = labels.len() > MOST_CLASSES;
    move |label| match label {
        _ if one => "background".to_owned(),
        Label::None | Label::Port(100) => "background".to_owned(),
        Label::Port(200) => "incast".to_owned(),
        Label::Port(port) => format!("dport-{port}"),
        Label::Group(group) => format!("group-{group}"),
    }
}
