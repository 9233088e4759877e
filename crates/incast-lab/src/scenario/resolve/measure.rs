//! `[measure]` and `[[event]]` to probes and link events.

use super::{
    super::document::{
        Document,
        measure::{SizeRange, Which},
    },
    degenerate,
    traffic::Traffic,
};
use crate::scenario::tree::{error::Problem, nearest::nearest, place::keys};
use incast_sim::{
    config::{LinkEvent, Probes},
    topology::Topology,
};
use incast_units::{Bytes, Time};

/// Without long flows, those of at least 1 MB count as long.
const LONG: u64 = 1_000_000;

/// More often than this nothing happens at a port that is worth a sample: 64 bytes take longer on 400 Gbps.
const SHORTEST_PERIOD: Time = Time::from_ns(1);

/// Flows that have a row of their own: those of a class, of some sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRow {
    /// What the row has as class.
    pub name: String,
    /// Index of the flows' class.
    pub class: u16,
    /// Their sizes.
    pub range: SizeRange,
}

/// A flow of a class with flows of these sizes can be in the range.
fn can_have(range: &SizeRange, sizes: Option<(u64, u64)>) -> bool {
    sizes.is_some_and(|(least, most)| {
        range.over.is_none_or(|over| over.get() < most) && range.upto.is_none_or(|upto| upto.get() >= least)
    })
}

/// The rows of all ranges. Flows of different classes are different populations: no row has those of two.
pub fn size_rows(document: &Document, traffic: &Traffic) -> Vec<SizeRow> {
    let sizes = if document.measure.sizes.is_empty() { Vec::new() } else { traffic.class_sizes() };
    let mut rows = Vec::new();
    for range in &document.measure.sizes {
        let is_it = |(name, sizes): (&String, &Option<(u64, u64)>)| match &range.class {
            Some(wanted) => wanted == name,
            None => can_have(range, *sizes),
        };
        let known = traffic.classes.iter().zip(&sizes);
        let classes: Vec<(u16, &String)> =
            known.enumerate().filter(|(_, one)| is_it(*one)).map(|(class, (name, _))| (class as u16, name)).collect();
        let row = |name: String, class| SizeRow { name, class, range: range.clone() };
        match classes[..] {
            // Sizes that no flow has: `check` says so.
            [] => rows.push(row(range.name.clone(), 0)),
            [(class, _)] => rows.push(row(range.name.clone(), class)),
            _ => rows.extend(classes.iter().map(|(class, of)| row(format!("{of} {}", range.name), *class))),
        }
    }
    rows
}

/// What is sampled.
pub fn probes(document: &Document, topology: &Topology, traffic: &Traffic) -> Result<Probes, Problem> {
    let period = |key: &str, every: Time| {
        if every < SHORTEST_PERIOD {
            let allowed = format!("a time of at least {SHORTEST_PERIOD}");
            return Err(Problem::value(every, allowed).at(&keys!["measure", key, "every"]));
        }
        Ok(every)
    };
    let ports = match &document.measure.ports {
        None => None,
        Some(ports) => Some((period("ports", ports.every)?, which_ports(&ports.which, topology)?)),
    };
    let rates = match &document.measure.rates {
        None => None,
        Some(rates) => {
            let smallest = match rates.flows {
                Which::All => 0,
                Which::Long => {
                    traffic.generators.iter().filter_map(|one| one.smallest_long_flow()).min().unwrap_or(LONG)
                }
            };
            Some((period("rates", rates.every)?, smallest))
        }
    };
    let schemes = || document.scheme.iter().map(|scheme| scheme.name());
    if let Some(name) = document.measure.baseline.as_deref().filter(|name| !schemes().any(|scheme| scheme == *name)) {
        let problem = Problem::unknown(format!("there is no scheme {name:?}"), name, schemes());
        return Err(problem.at(&keys!["measure", "baseline"]));
    }
    for (index, sizes) in document.measure.sizes.iter().enumerate() {
        let here = |problem: Problem| problem.at(&keys!["measure", "sizes", index]);
        let name = &sizes.name;
        if name.is_empty() || name == "all" || traffic.classes.contains(name) {
            let problem = Problem::value(format!("{name:?}"), "a name that is not that of a class or \"all\"");
            return Err(here(problem.under("name")));
        }
        if document.measure.sizes[..index].iter().any(|other| other.name == *name) {
            return Err(here(Problem::new(format!("the name {name:?} is given twice")).under("name")));
        }
        if let Some(class) = sizes.class.as_ref().filter(|class| !traffic.classes.contains(class)) {
            let classes = traffic.classes.iter().map(String::as_str);
            return Err(here(Problem::unknown(format!("there is no class {class:?}"), class, classes).under("class")));
        }
        if let (Some(over), Some(upto)) = (sizes.over, sizes.upto)
            && over >= upto
        {
            return Err(here(Problem::value(over, format!("less than upto, {upto}")).under("over")));
        }
    }
    // Of a range for several classes the names are made of theirs.
    let mut names: Vec<String> = traffic.classes.clone();
    for row in size_rows(document, traffic) {
        if names.contains(&row.name) {
            let what = format!("rows of {:?} would be named {:?}, as others are", row.range.name, row.name);
            return Err(Problem::new(what).at(&keys!["measure", "sizes"]));
        }
        names.push(row.name);
    }
    Ok(Probes { ports, rates, events: document.measure.traces, packets: None })
}

/// Sizes that no flow has.
pub fn warnings(document: &Document, traffic: &Traffic) -> Vec<String> {
    let rows = size_rows(document, traffic);
    let sizes = if rows.is_empty() { Vec::new() } else { traffic.class_sizes() };
    let empty = rows.iter().filter_map(|row| {
        let (least, most) = sizes.get(usize::from(row.class)).copied().flatten()?;
        (!can_have(&row.range, Some((least, most)))).then(|| {
            let (class, least, most) = (&traffic.classes[usize::from(row.class)], Bytes::new(least), Bytes::new(most));
            format!(
                "measure.sizes {:?}: no flow of {class} can have such a size; there are {least} to {most}",
                row.name
            )
        })
    });
    empty.collect()
}

fn which_ports(which: &[String], topology: &Topology) -> Result<Vec<(u32, u16)>, Problem> {
    let at = |index: usize, problem: Problem| problem.at(&keys!["measure", "ports", "which", index]);
    let list = topology.ports();
    let end = |node: u32| list.of(node).iter().enumerate();
    let mut found = Vec::new();
    for (index, pattern) in which.iter().enumerate() {
        let allowed = "ports such as \"s0->h0\", with * for any characters";
        let Some((from, to)) = pattern.split_once("->") else {
            return Err(at(index, Problem::value(format!("{pattern:?}"), allowed)));
        };
        let before = found.len();
        for (node, name) in topology.names.iter().enumerate().filter(|(_, name)| matches(from.trim(), name)) {
            let node = node as u32;
            debug_assert_eq!(topology.names[node as usize], *name);
            found.extend(
                end(node)
                    .filter(|(_, end)| matches(to.trim(), &topology.names[end.peer as usize]))
                    .map(|(port, _)| (node, port as u16)),
            );
        }
        if found.len() == before {
            let names = || topology.names.iter().map(String::as_str);
            let unknown = [from.trim(), to.trim()]
                .into_iter()
                .find(|name| !name.contains('*') && !names().any(|other| other == *name));
            let problem = Problem::value(format!("{pattern:?}, which matches no port"), allowed);
            let nearest = unknown.and_then(|name| nearest(name, names())).map(str::to_owned);
            return Err(at(index, Problem { nearest, ..problem }));
        }
    }
    if found.is_empty() {
        return Err(Problem::value("no ports", "at least one").at(&keys!["measure", "ports", "which"]));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// `*` matches any characters, all else itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Links that go down and up, and what is odd about them.
pub fn events(document: &Document, topology: &Topology, end: Time) -> Result<(Vec<LinkEvent>, Vec<String>), Problem> {
    let (mut events, mut warnings) = (Vec::new(), Vec::new());
    for (index, event) in document.event.iter().enumerate() {
        let (key, name, up) = match (&event.link_down, &event.link_up) {
            (Some(name), None) => ("link_down", name, false),
            (None, Some(name)) => ("link_up", name, true),
            (down, up) => {
                return Err(Problem::exactly_one(&[("link_down", down.is_some()), ("link_up", up.is_some())])
                    .at(&keys!["event", index]));
            }
        };
        let cable = topology.find_cable(name).ok_or_else(|| {
            let names: Vec<String> =
                (0..topology.cables.len().min(20_000)).filter_map(|cable| topology.cable_name(cable)).collect();
            let first = names.iter().rev().take(3).cloned().collect::<Vec<_>>().join(", ");
            Problem {
                nearest: nearest(name, names.iter().map(String::as_str)).map(str::to_owned),
                ..Problem::value(format!("{name:?}"), format!("the two ends of a link, such as {first}"))
            }
            .at(&keys!["event", index, key])
        })?;
        if event.at >= end {
            warnings.push(format!("event[{index}]: {} is not before the run's end, {end}", event.at));
        }
        events.push(LinkEvent { at: event.at, cable, up });
    }
    warnings.extend(degenerate::events(document, topology, &events));
    Ok((events, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match() {
        for (pattern, text) in [("s0", "s0"), ("*", ""), ("leaf*", "leaf12"), ("*a*b", "xaxxb"), ("a*a", "aba")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("s0", "s01"), ("leaf*", "spine1"), ("*a*b", "ba"), ("a*a", "a"), ("", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
