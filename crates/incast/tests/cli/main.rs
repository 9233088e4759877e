//! The command line as a user meets it: the real binary on real files.

mod bad_input;
mod calibrate;
mod clock_sync;
mod committed;
mod common;
mod config;
#[cfg(target_os = "linux")]
mod diff;
mod failing_writes;
mod flows;
mod import;
#[cfg(unix)]
mod interruption;
mod licences;
mod lossless;
mod memory;
mod mutations;
mod output;
mod report;
mod simulations;
mod table;
mod trace;
mod tune;
