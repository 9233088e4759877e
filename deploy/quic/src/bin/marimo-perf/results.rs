//! The files: `flows.parquet` as the simulator writes it, and `quic.json` beside it.

use crate::{
    Failure,
    traffic::{Flow, Traffic},
};
use incast_lab::{
    atomic,
    results::{host::Host, parquet},
};
use incast_quic::{EcnState, Statistics};
use incast_sim::outcome::FlowRecord;
use incast_units::Time;
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

/// The version that the crate is pinned to.
const S2N_QUIC: &str = "1.91.0";

/// How a flow ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Delivered, and its checksum is right.
    Done,
    /// Given up at the end.
    Unfinished,
    /// With an error.
    Failed(String),
}

/// What became of a flow.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The flow.
    pub flow: Flow,
    /// How it ended.
    pub status: Status,
    /// When its last byte had arrived, since the start of the scenario.
    pub delivered: Option<Time>,
    /// The server and this machine read one clock, so that this is exact.
    pub same_clock: bool,
    /// When the sender knew.
    pub acked: Option<Time>,
    /// Duration of the handshake, which is no part of the flow unless there was no time for it before.
    pub handshake: Option<Duration>,
    /// Of its connection.
    pub statistics: Statistics,
}

impl Sent {
    /// Nothing has happened yet.
    pub fn new(flow: Flow) -> Self {
        Self {
            flow,
            status: Status::Unfinished,
            delivered: None,
            same_clock: true,
            acked: None,
            handshake: None,
            statistics: Statistics::default(),
        }
    }
    /// With an error, before anything was known of it.
    pub fn failed(flow: Flow, message: String) -> Self {
        Self { status: Status::Failed(message), ..Self::new(flow) }
    }

    fn record(&self) -> FlowRecord {
        let spec = self.flow.spec;
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        FlowRecord {
            source: spec.source,
            sequence: self.flow.sequence,
            destination: spec.destination,
            class: spec.class,
            request: spec.request,
            bytes: spec.bytes,
            start: spec.start,
            delivered: self.delivered,
            acked: self.acked,
            retransmitted_bytes: self.statistics.lost_bytes,
            timeouts: self.statistics.probe_timeouts,
            marked_packets: small(self.statistics.ce_packets),
            ..FlowRecord::default()
        }
    }

    fn json(&self) -> Value {
        let (status, error) = match &self.status {
            Status::Done => ("done", None),
            Status::Unfinished => ("unfinished", None),
            Status::Failed(message) => ("failed", Some(message)),
        };
        json!({
            "source": self.flow.spec.source,
            "sequence": self.flow.sequence,
            "status": status,
            "error": error,
            "fct_us": self.delivered.map(|at| at.saturating_sub(self.flow.spec.start).ps() / 1_000_000),
            "handshake_us": self.handshake.map(|handshake| handshake.as_micros() as u64),
            "delivery": if self.same_clock { "measured" } else { "estimated" },
            "connection": &self.statistics,
        })
    }
}

/// Where results go.
#[derive(Debug)]
pub struct Folder(PathBuf);

const FILES: [&str; 2] = ["flows.parquet", "quic.json"];

impl Folder {
    /// Checks it before anything is sent.
    pub fn new(path: &Path, force: bool) -> Result<Self, Failure> {
        let refused = |message: String| Failure::Input(format!("--out {}: {message}", path.display()));
        fs::create_dir_all(path).map_err(|error| refused(error.to_string()))?;
        if !force && FILES.iter().any(|file| path.join(file).exists()) {
            return Err(refused("holds results already; use --force to overwrite, or another --out".into()));
        }
        Ok(Self(path.to_owned()))
    }

    /// Writes the files. Returns a line for the terminal.
    pub fn write(&self, traffic: &Traffic, transport: &Value, sent: &[Sent]) -> Result<String, Failure> {
        let path = |file: &str| self.0.join(file);
        let failed = |error: &std::io::Error| Failure::other(self.0.display())(error);
        let records: Vec<FlowRecord> = sent.iter().map(Sent::record).collect();
        parquet::write_flows(&path(FILES[0]), &records, &traffic.classes, &traffic.labels, &[])
            .map_err(|error| failed(&error))?;
        let count = |wanted: fn(&Status) -> bool| sent.iter().filter(|sent| wanted(&sent.status)).count();
        let sum = |of: fn(&Statistics) -> u64| sent.iter().map(|sent| of(&sent.statistics)).sum::<u64>();
        let done = count(|status| *status == Status::Done);
        let unfinished = count(|status| *status == Status::Unfinished);
        let failures = count(|status| matches!(status, Status::Failed(_)));
        let in_state = |state: EcnState| sent.iter().filter(|sent| sent.statistics.ecn == state).count();
        let totals = json!({
            "done": done,
            "unfinished": unfinished,
            "failed": failures,
            "sent_packets": sum(|s| s.sent_packets),
            "ce_packets": sum(|s| s.ce_packets),
            "lost_packets": sum(|s| s.lost_packets),
            "probe_timeouts": sum(|s| s.probe_timeouts.into()),
            "ecn_capable": in_state(EcnState::Capable),
            "ecn_failed": in_state(EcnState::Failed),
            "ecn_unknown": in_state(EcnState::Unknown),
            "ecn_failures": sum(|s| s.ecn_failures.into()),
            "fallbacks": sum(|s| s.fallbacks.into()),
        });
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "s2n_quic": S2N_QUIC,
            "host": Host::here(),
            "scenario": &traffic.scenario,
            "seed": traffic.seed,
            "transport": transport,
            "totals": &totals,
            "flows": sent.iter().map(Sent::json).collect::<Vec<_>>(),
            "effective": &traffic.effective,
        });
        atomic::write(&path(FILES[1]), |file| {
            serde_json::to_writer_pretty(&mut *file, &document)?;
            file.write_all(b"\n")
        })
        .map_err(|error| failed(&error))?;
        Ok(format!(
            "{}: {done} flows done, {unfinished} unfinished, {failures} failed; {} packets, {} marked, {} lost; ECN \
             off on {} connections; results: {}",
            traffic.scenario,
            totals["sent_packets"],
            totals["ce_packets"],
            totals["lost_packets"],
            in_state(EcnState::Failed) + in_state(EcnState::Unknown),
            self.0.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_written_is_the_one_built_with() {
        const LOCK: &str = include_str!("../../../../../Cargo.lock");
        let locked = format!("name = \"s2n-quic\"\nversion = \"{S2N_QUIC}\"\n");
        assert_eq!(LOCK.matches("name = \"s2n-quic\"\n").count(), 1);
        assert!(LOCK.contains(&locked), "S2N_QUIC {S2N_QUIC} is not that of Cargo.lock");
    }
}
