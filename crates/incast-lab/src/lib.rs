//! Scenarios, workloads, runs and results.
//!
//! - [`scenario`]: reads, checks and expands scenario files into runs.
//! - [`workload`]: turns a description of traffic into flows.
//! - [`run`]: simulates the runs of a scenario and keeps what they leave behind.
//! - [`results`]: files, statistics and tables of results.
//! - [`mod@bench`]: cost of the engine on the canonical cases.
//! - [`calibrate`]: learns the map that Marimo reads.

pub mod bench;
pub mod calibrate;
pub mod results;
pub mod run;
pub mod scenario;
pub mod workload;
