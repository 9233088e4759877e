//! `[topology]` to nodes and cables.

use crate::scenario::tree::{error::Problem, place::keys, source::Source};
use incast_sim::topology::{Topology, TopologyConfig, TopologyError};
use std::path::Path;

/// Builds the fabric; paths are relative to `base`.
pub fn build(config: &TopologyConfig, base: &Path) -> Result<Topology, Problem> {
    let in_file = |problem: Problem| problem.at(&keys!["topology", "path"]);
    let path = if let TopologyConfig::File(file) = config { Some(&file.path) } else { None };
    let text = match path {
        Some(path) => Source::read(&base.join(path)).map_err(|error| in_file(Problem::new(error.to_string())))?.text,
        None => String::new(),
    };
    let topology = config.build(&text).map_err(|error| match error {
        TopologyError::Value { key, found, allowed } => {
            let problem = Problem::value(found, allowed);
            key.rsplit('.').fold(problem, |problem, step| problem.under(step)).under("topology")
        }
        error => {
            let file = path.map(|path| format!("{path:?} ")).unwrap_or_default();
            in_file(Problem::new(format!("{file}{error}")))
        }
    })?;
    if topology.hosts < 2 {
        return Err(Problem::value(format!("{} hosts", topology.hosts), "at least 2 hosts").under("topology"));
    }
    Ok(topology)
}
