//! A file of paths: the path of every flow's data and acknowledgements, so that equal-cost choices are the peer's.
//!
//! The peer does not write one; such a file is made from its packet trace. It is a CSV with the columns `src`, `dst`,
//! `data_path` and `ack_path` in any order, others are ignored; one row per flow in the order of `flow.txt`. A path is
//! the ids of its nodes from end to end with hyphens: `13-320-10`.

use super::{flows::Flow, topology::Topology};
use crate::import::text::{ImportError, Text, shown, whole};
use incast_sim::{routing::pin, topology};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a flow: names of nodes with blanks between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPaths {
    /// Of data.
    pub data: String,
    /// Of acknowledgements.
    pub acks: String,
}

/// Most nodes of a path.
const LONGEST: usize = 64;

/// Reads the file. `built` is the topology as ours, whose equal-cost paths flows can take.
///
/// # Errors
/// The first row that does not fit its flow or the topology, or is not a shortest path.
pub fn parse(
    text: &Text,
    flows: &[Flow],
    topology: &Topology,
    built: &topology::Topology,
) -> Result<Vec<FlowPaths>, ImportError> {
    let ports = built.ports();
    let nodes: BTreeMap<u64, u32> = topology.nodes().zip(0..).collect();
    let mut lines = text.lines();
    let header = lines.next().ok_or_else(|| text.error(0, "the file is empty"))?;
    let names: Vec<String> = header.words.join(" ").split(',').map(|name| name.trim().to_owned()).collect();
    let column = |wanted: &str| {
        names.iter().position(|name| name == wanted).ok_or_else(|| {
            text.error(header.number, format!("no column `{wanted}`, wanted are src, dst, data_path, ack_path"))
        })
    };
    let columns = [column("src")?, column("dst")?, column("data_path")?, column("ack_path")?];
    let joined: BTreeSet<[u64; 2]> =
        topology.links.iter().flat_map(|link| [link.ends, [link.ends[1], link.ends[0]]]).collect();
    let mut paths = Vec::new();
    for line in lines {
        let fail = |message: String| text.error(line.number, message);
        let Some(flow) = flows.get(paths.len()) else {
            return Err(fail(format!("there are {} flows, this row is one more", flows.len())));
        };
        let row = line.words.join(" ");
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        let cell = |index: usize| {
            cells
                .get(columns[index])
                .copied()
                .ok_or_else(|| fail(format!("found {} cells, wanted are {}", cells.len(), names.len())))
        };
        for (name, index, id) in [("src", 0, flow.source), ("dst", 1, flow.destination)] {
            let found = cell(index)?;
            if found.parse() != Ok(id) {
                let message = format!("{name}: found {}, flow {} has {id}", shown(found), paths.len() + 1);
                return Err(fail(message));
            }
        }
        let path = |index: usize, from: u64, to: u64| {
            let path = cell(index)?;
            let ids = path.split('-').take(LONGEST + 1).map(|word| whole("a node", word, 0..=u64::from(u32::MAX)));
            let ids = ids.collect::<Result<Vec<u64>, String>>().map_err(fail)?;
            let wrong = |why: String| fail(format!("the path {} {why}", shown(path)));
            if ids.len() > LONGEST {
                return Err(wrong(format!("has more than {LONGEST} nodes")));
            }
            if ids.first() != Some(&from) || ids.last() != Some(&to) {
                return Err(wrong(format!("does not lead from {from} to {to}")));
            }
            for pair in ids.windows(2) {
                if !joined.contains(pair) {
                    return Err(wrong(format!("goes from {} to {}, which no link joins", pair[0], pair[1])));
                }
            }
            let route: Vec<u32> = ids.iter().filter_map(|id| nodes.get(id).copied()).collect();
            pin(built, &ports, &route)
                .map_err(|error| fail(format!("the path {} cannot be taken: {error}", shown(path))))?;
            Ok(ids.iter().map(|id| topology.name(*id)).collect::<Vec<_>>().join(" "))
        };
        paths.push(FlowPaths {
            data: path(2, flow.source, flow.destination)?,
            acks: path(3, flow.destination, flow.source)?,
        });
    }
    if paths.len() < flows.len() {
        return Err(text.error(0, format!("has the paths of {} flows, there are {}", paths.len(), flows.len())));
    }
    Ok(paths)
}
