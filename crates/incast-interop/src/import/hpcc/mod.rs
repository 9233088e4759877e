//! The ns-3 simulator of HPCC (alibaba-edu/High-Precision-Congestion-Control) and what descends from it:
//! `topology.txt`, `flow.txt` and `config.txt`.
//!
//! What the simulator does is the profile `hpcc-lineage`; the content of the files is written out key by key, each with
//! the key that it comes from.

pub mod config;
pub mod flows;
mod keys;
pub mod paths;
mod scenario;
pub mod topology;
pub mod units;

use super::{ImportError, Imported, Names, Said, Text};
use crate::standalone::Standalone;
use config::Config;
use flows::Flow;
use incast_units::{Bytes, Rate, Time};
use paths::FlowPaths;
use std::{collections::BTreeMap, fmt::Write};
use topology::Topology;

/// The files.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// `topology.txt`.
    pub topology: &'a Text,
    /// `flow.txt`.
    pub flows: &'a Text,
    /// `config.txt`.
    pub config: &'a Text,
    /// The path of each flow; see [`paths`].
    pub paths: Option<&'a Text>,
}

/// The content of all files together.
#[derive(Debug)]
struct Simulation {
    topology: Topology,
    flows: Vec<Flow>,
    config: Config,
    paths: Option<Vec<FlowPaths>>,
    /// The peer's time that is our zero, in nanoseconds.
    origin: u64,
    /// T: the longest round trip without queueing, as the peer computes it.
    base_rtt: Time,
    /// The largest product of a path's rate and its round trip.
    window: Bytes,
}

/// Makes a scenario, a topology and a trace of the files.
///
/// # Errors
/// The first fault in any of them.
pub fn import(inputs: &Inputs<'_>, names: &Names) -> Result<Imported, ImportError> {
    let mut said = Said::default();
    let topology = Topology::parse(inputs.topology, &mut said)?;
    let mut speeds: BTreeMap<Rate, usize> = BTreeMap::new();
    for link in &topology.links {
        speeds.entry(link.rate).or_insert(link.line);
    }
    let config = Config::parse(inputs.config, &speeds, &mut said)?;
    let (ours, built) = topology.convert(inputs.topology, config.error_rate_per_link)?;
    let flows = flows::parse(inputs.flows, &topology, &mut said)?;
    flows::check(inputs.flows, &flows, &topology)?;
    let paths = inputs.paths.map(|text| paths::parse(text, &flows, &topology, &built)).transpose()?;
    let first = flows.iter().map(|flow| flow.start).min().unwrap_or(0);
    if config.simulator_stop_time <= first {
        let message = format!("SIMULATOR_STOP_TIME is before the first flow starts, at {} ns", first);
        return Err(inputs.config.error(0, message));
    }
    let (base_rtt, window) = Standalone::new(&built, config.packet_payload_size).largest();
    let simulation =
        Simulation { origin: first.min(config.flows_from), base_rtt, window, topology, flows, config, paths };
    Ok(Imported {
        scenario: scenario::write(&simulation, inputs, names, &mut said.warnings)?,
        topology: Some(ours),
        flows: write_flows(&simulation, inputs),
        warnings: said.warnings,
        notes: said.notes,
    })
}

/// The flows as a trace.
fn write_flows(simulation: &Simulation, inputs: &Inputs<'_>) -> String {
    let Simulation { topology, flows, paths, origin, .. } = simulation;
    let class = flows::classes(flows);
    let mut text = format!(
        "# Imported from {}. Times are from {origin} ns of the peer's clock on.\nstart_ps,src,dst,bytes,class{}\n",
        inputs.flows.name(),
        if paths.is_some() { ",path,reverse_path" } else { "" }
    );
    for (index, flow) in flows.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{},{},{},{},{}",
            (flow.start - origin) * 1000,
            topology.name(flow.source),
            topology.name(flow.destination),
            flow.bytes,
            class(flow.label)
        );
        if let Some(paths) = paths.as_ref().and_then(|paths| paths.get(index)) {
            let _ = write!(text, ",{},{}", paths.data, paths.acks);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
