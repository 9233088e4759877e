//! `run.json`: what a run was, what it cost and how it ended.

use super::{
    checksums::{self, Files},
    host::Host,
    row::Row,
};
use crate::{
    atomic::{self, regular},
    columns::join::FileError,
    metrics::ns_per_packet_hop,
};
use incast_sim::outcome::{Cost, Totals};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{io, io::Read, path::Path};

/// Names of the tables that a run may have.
pub const TABLES: [&str; 5] = ["flows", "requests", "ports", "rates", "events"];

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// To its end; see [`RunRecord::complete`] for whether every flow did too.
    Done,
    /// With an error. There are tables if the simulation as such went on to the error, as in a deadlock; what they hold
    /// is in no summary.
    Failed,
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCost {
    /// Link traversals.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// CPU seconds, user and system, without set-up.
    pub cpu_s: f64,
    /// Elapsed seconds of the same.
    pub wall_s: f64,
    /// CPU nanoseconds per link traversal.
    pub ns_per_packet_hop: Option<f64>,
    /// Largest resident memory of the process up to the end of this run; runs beside it are included.
    pub peak_rss_bytes: u64,
}

impl RunCost {
    /// From the counters of a run.
    pub fn new(totals: &Totals, cost: &Cost, peak_rss_bytes: u64) -> Self {
        Self {
            packet_hops: totals.packet_hops,
            events: totals.events,
            cpu_s: cost.cpu_s,
            wall_s: cost.wall_s,
            ns_per_packet_hop: ns_per_packet_hop(cost.cpu_s, totals.packet_hops),
            peak_rss_bytes,
        }
    }
}

/// How the clock of a host deviates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostClock {
    /// Offset at the start, in picoseconds; positive if the clock is ahead.
    pub offset_ps: i64,
    /// Drift, in parts per million; positive if the clock is fast.
    pub drift_ppm: f64,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of incast.
    pub version: String,
    /// Hash of the scenario's effective values; results of equal hash and version are interchangeable.
    pub scenario_hash: String,
    /// Name of its folder; of builds without checksums, empty.
    #[serde(default)]
    pub folder: String,
    /// How it ended.
    pub status: Status,
    /// What went wrong, if anything.
    pub error: Option<String>,
    /// Every flow was delivered and acknowledged before the end.
    pub complete: bool,
    /// Name of the scheme.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// The grid point.
    pub grid: Map<String, Value>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Hash of the results.
    pub digest: String,
    /// Simulated time at the end, in picoseconds.
    pub ended_at_ps: u64,
    /// The largest base RTT of the fabric, in picoseconds; 0 of a run without an outcome.
    #[serde(default)]
    pub base_rtt_ps: u64,
    /// What it cost.
    pub cost: RunCost,
    /// Folder of the run whose simulation it shares, as nothing that its packets depend on differs: it cost nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// The machine.
    pub host: Host,
    /// It belongs to the short form of the scenario.
    #[serde(default)]
    pub short: bool,
    /// What the scheme changes against the scenario, one line each.
    #[serde(default)]
    pub changes: Vec<String>,
    /// What the workloads come to, one line each.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// The clocks of its hosts, in their order, as drawn or given; empty if they are perfect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<HostClock>,
    /// The run's rows of the summary.
    pub rows: Vec<Row>,
    /// The scenario as run, with effective values.
    pub scenario: Value,
    /// Checksums of the other files of its folder; `None` of builds that did not write them: its results are unverified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
}

impl RunRecord {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = checksums::seal(serde_json::to_string_pretty(self)?);
        atomic::write(path, |file| io::Write::write_all(file, text.as_bytes()))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Those of the file system, a file of another form, and one that has changed since it was written.
    pub fn read(path: &Path) -> io::Result<Self> {
        checksums::parse(&read_file(path)?, |record: &Self| record.files.is_some())
            .map_err(|error| io::Error::new(error.kind(), format!("not a record of a run: {error}")))
    }

    /// Names of the files of its folder.
    pub fn names(&self) -> Vec<String> {
        let tables = || TABLES.iter().map(|table| format!("{table}.parquet"));
        let others: Vec<String> =
            self.files.as_ref().map_or_else(|| tables().collect(), |files| files.keys().cloned().collect());
        others.into_iter().chain([checksums::RECORD.to_owned()]).collect()
    }

    /// Refuses the run's `folder` if one of its files is missing or has changed.
    ///
    /// # Errors
    /// The file, and what is wrong with it.
    pub fn check(&self, folder: &Path) -> Result<(), FileError> {
        checksums::check_folder(folder, self.files.as_ref(), &TABLES)
            .map_err(|(name, source)| FileError { path: folder.join(name), source })
    }

    /// Whether the run has this file in its `folder`.
    ///
    /// # Errors
    /// It had, and the file is missing or has changed.
    pub fn has(&self, folder: &Path, name: &str) -> Result<bool, FileError> {
        checksums::check_file(folder, name, self.files.as_ref())
            .map_err(|source| FileError { path: folder.join(name), source })
    }
}

/// The largest file of results that is read as a whole: a summary of a million rows is smaller.
const MOST_BYTES: u64 = 2 << 30;

/// Reads a regular file of results. What is none, such as a device or a pipe, might never end.
///
/// # Errors
/// Those of the file system, another kind of file, and one that is too large.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more tells whether there are more.
    regular(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let why = format!("found more than {MOST_BYTES} bytes, which are allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}
