//! Scenarios, workloads, runs and results.
//!
//! - [`scenario`]: reads, checks and expands scenario files into runs.
//! - [`workload`]: turns a description of traffic into flows.
//! - [`run`]: simulates the runs of a scenario and keeps what they leave behind.
//! - [`metrics`]: what is measured of a run, one table.
//! - [`results`]: files, statistics and tables of results.
//! - [`plain`]: tables that fit the width of a terminal.
//! - [`text`]: numbers and values as text for people.
//! - [`trace`]: one flow or port, packet by packet, for other tools to show.
//! - [`tune`]: which values of a few keys are best.
//! - [`report`]: results as one HTML page.
//! - [`calibrate`]: learns the map that Marimo reads.
//! - [`clocks`]: how well the clocks of hosts can be synchronised.

pub mod atomic;
pub mod calibrate;
pub mod clocks;
mod columns;
pub mod metrics;
pub mod plain;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod text;
pub mod trace;
pub mod tune;
pub mod workload;

/// The release, and a hash of the sources that decide results: results of equal versions can be mixed.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("INCAST_SOURCES"));
