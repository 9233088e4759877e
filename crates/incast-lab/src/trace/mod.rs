//! `incast trace`: the life of one flow, or of one port, packet by packet.
//!
//! - [`target`]: what a user names.
//! - [`mod@frame`], [`pcapng`]: packets as frames, for Wireshark and its like.
//! - [`perfetto`], [`protobuf`]: slices, counters and instants, for ui.perfetto.dev.
//! - [`digest`]: the same in a few lines.

pub mod digest;
pub mod frame;
pub mod pcapng;
pub mod perfetto;
pub mod protobuf;
pub mod target;

use crate::{
    atomic,
    results::{host::available_memory, labels::Labels},
    run::{RunError, memory},
    scenario::Run,
};
use incast_cc::{law::Framing, registry::AgentParameters};
use incast_sim::{
    Config, Outcome, Progress, SimulationError,
    outcome::FlowRecord,
    probe::PacketFilter,
    simulate_observed,
    topology::{Ports, Topology},
};
use incast_units::{Rate, Time};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};
use target::FlowName;
use thiserror::Error;

/// Records that each port keeps. A million packets of a full-size flow are gigabytes of files.
const MOST_RECORDS: usize = 2_000_000;
/// Samples of a flow's window in each base round-trip time.
const SAMPLES_PER_RTT: u64 = 10;
/// Samples are not closer than this.
const SHORTEST_PERIOD: Time = Time::from_ns(100);

/// Why there is no trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The run has no such flow or port.
    #[error("{option} {found}: {message}")]
    Target {
        /// The option.
        option: &'static str,
        /// What was given.
        found: String,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// It cannot be simulated.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The simulation failed.
    #[error("{0}")]
    Failed(String),
    /// It was interrupted.
    #[error("interrupted")]
    Stopped,
}

impl TraceError {
    /// The input is at fault: exit code 2 instead of 1.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Target { .. } => true,
            Self::Run(error) => error.is_bad_input(),
            Self::Failed(_) | Self::Stopped => false,
        }
    }
}

/// What to trace; a flow, a port, or a flow at a port.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A flow's row in `flows.parquet`, or `SOURCE:SEQUENCE`.
    pub flow: Option<String>,
    /// An egress port, `s0->h0`, or a host for both directions of its link.
    pub port: Option<String>,
    /// From here on.
    pub from: Time,
    /// Before this time.
    pub until: Option<Time>,
}

/// Where packets were watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// At each port of their path.
    Everywhere,
    /// At an egress port.
    Port(u32, u16),
    /// At both directions of a host's link.
    Host(u32),
}

/// A recorded simulation.
#[derive(Debug)]
pub struct Traced {
    /// What it left behind, [`Outcome::packets`] included.
    pub outcome: Outcome,
    /// Names of nodes and ports.
    pub labels: Labels,
    /// Number of hosts.
    pub hosts: u32,
    /// Names of the classes, by the index that flows name.
    pub classes: Vec<String>,
    /// Protocol of each class.
    pub framing: Vec<Framing>,
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Switches mark with UE as well as CE (TCD).
    pub ternary: bool,
    /// Where packets were watched.
    pub view: View,
    /// The one flow that was watched.
    pub flow: Option<(u32, u32)>,
    topology: Topology,
    ports: Ports,
}

impl Traced {
    /// The record of a flow.
    pub fn record(&self, flow: (u32, u32)) -> Option<&FlowRecord> {
        let flows = &self.outcome.flows;
        let found = flows.binary_search_by_key(&flow, |record| (record.source, record.sequence));
        found.ok().map(|index| &flows[index])
    }

    /// Payload bytes of a flow.
    pub fn flow_bytes(&self, flow: (u32, u32)) -> u64 {
        self.record(flow).map_or(u64::MAX, |record| record.bytes)
    }

    /// Rate of a port.
    pub fn rate(&self, node: u32, port: u16) -> Option<Rate> {
        let end = self.ports.end(node, port)?;
        self.topology.cables.get(end.cable as usize).map(|cable| cable.link.rate)
    }
}

/// Simulates a run and records what is configured. It ends early once `stop` is true.
///
/// A row of `flows.parquet` is known for certain only when the run is over. The first simulation records the flow that
/// will have that row if no application opens others; if it turns out to be another one, there is a second.
///
/// # Errors
/// There is no such flow or port, the run does not fit into memory, or it fails.
pub fn trace(
    run: &Run,
    request: &Request,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Traced, TraceError> {
    memory::admit(std::slice::from_ref(run), 1, true, 1, available_memory())?;
    let config = run.config(1).map_err(RunError::from)?;
    let view = match &request.port {
        None => View::Everywhere,
        Some(name) => target::port(name, &config.topology)?,
    };
    let name = request.flow.as_deref().map(|name| target::flow(name, &config.topology)).transpose()?;
    let mut flow = name.map(|name| name.guess(&config.flows));
    let mut traced = record(run, config, request, view, flow, stop, observe)?;
    if let Some(name) = name {
        let wanted = name.find(&traced)?;
        if flow != Some(wanted) {
            flow = Some(wanted);
            let config = run.config(1).map_err(RunError::from)?;
            traced = record(run, config, request, view, flow, stop, observe)?;
        }
    }
    Ok(traced)
}

fn record(
    run: &Run,
    mut config: Config,
    request: &Request,
    view: View,
    flow: Option<(u32, u32)>,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Traced, TraceError> {
    let ports = config.topology.ports();
    let watched = match view {
        View::Everywhere => Vec::new(),
        View::Port(node, port) => vec![(node, port)],
        View::Host(host) => {
            let end = ports.end(host, 0);
            [(host, 0)].into_iter().chain(end.map(|end| (end.peer, end.peer_port))).collect()
        }
    };
    let every = (run.path().base_rtt / SAMPLES_PER_RTT).max(SHORTEST_PERIOD);
    config.probes = incast_sim::config::Probes {
        ports: None,
        rates: flow.map(|_| (every, 0)),
        events: false,
        packets: Some(PacketFilter {
            flow,
            ports: watched,
            from: request.from,
            until: request.until.unwrap_or(Time::MAX),
            most: MOST_RECORDS,
        }),
    };
    let mut traced = Traced {
        outcome: Outcome::default(),
        labels: Labels::new(&config.topology),
        hosts: config.topology.hosts,
        classes: config.classes.iter().map(|class| class.name.clone()).collect(),
        framing: config.classes.iter().map(|class| class.law.info().framing).collect(),
        mtu: config.host.mtu,
        ternary: matches!(config.switch.agent, AgentParameters::Tcd(_))
            || config.classes.iter().any(|class| class.law.transport().marks_at_edge),
        view,
        flow,
        topology: config.topology.clone(),
        ports,
    };
    let mut observe = |progress: &Progress| {
        observe(progress);
        true
    };
    let halt = || stop.load(Ordering::Relaxed);
    let simulated = catch_unwind(AssertUnwindSafe(|| simulate_observed(config, &mut observe, &halt)));
    traced.outcome = match simulated {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(SimulationError::Halted)) => return Err(TraceError::Stopped),
        Ok(Err(error)) => return Err(TraceError::Failed(error.to_string())),
        // The message has been printed where it happened.
        Err(_) => return Err(TraceError::Failed("the simulator panicked".into())),
    };
    let (from, until) = (request.from, request.until.unwrap_or(Time::MAX));
    traced.outcome.rates.retain(|sample| sample.time >= from && sample.time < until);
    Ok(traced)
}

/// Writes a file whole or not at all; a pipe or device is written as it is.
///
/// # Errors
/// Those of the file system and of `fill`.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let through = |file: &mut File| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    };
    if path.exists() && !path.is_file() {
        return through(&mut File::options().write(true).open(path)?);
    }
    atomic::write(path, through)
}

impl FlowName {
    /// The flow that this probably is.
    fn guess(self, flows: &[incast_sim::FlowSpec]) -> (u32, u32) {
        let row = match self {
            Self::Flow { source, sequence } => return (source, sequence),
            Self::Row(row) => row,
        };
        let mut sources: Vec<u32> = flows.iter().map(|flow| flow.source).collect();
        sources.sort_unstable();
        let source = usize::try_from(row).ok().and_then(|row| sources.get(row)).copied().unwrap_or(0);
        let first = sources.partition_point(|other| *other < source) as u64;
        (source, row.saturating_sub(first).try_into().unwrap_or(u32::MAX))
    }

    /// The flow that this is.
    fn find(self, traced: &Traced) -> Result<(u32, u32), TraceError> {
        let flows = &traced.outcome.flows;
        let refuse = |found: String, message: String| Err(TraceError::Target { option: "--flow", found, message });
        match self {
            Self::Row(row) => match usize::try_from(row).ok().and_then(|row| flows.get(row)) {
                Some(record) => Ok((record.source, record.sequence)),
                None if flows.is_empty() => refuse(row.to_string(), "the run has no flows".into()),
                None => refuse(
                    row.to_string(),
                    format!("the run has {} flows, allowed is 0 to {}", flows.len(), flows.len() - 1),
                ),
            },
            Self::Flow { source, sequence } => {
                if traced.record((source, sequence)).is_some() {
                    return Ok((source, sequence));
                }
                let found = format!("{source}:{sequence}");
                let name = traced.labels.node(source);
                match flows.iter().filter(|flow| flow.source == source).count() {
                    0 => refuse(found, format!("{name} opens no flow in this run")),
                    count => refuse(
                        found,
                        format!("{name} opens {count} flows, allowed is {source}:0 to {source}:{}", count - 1),
                    ),
                }
            }
        }
    }
}
