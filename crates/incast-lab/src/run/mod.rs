//! Runs the grid points of a scenario and writes their results.
//!
//! - [`only`]: which of the runs are selected.
//! - [`folder`]: the folder of a scenario: what is finished, what is half-written, who else writes there.
//! - [`list`]: the flows of a run, without running it.
//! - [`memory`]: refuses what does not fit before it starts.
//! - [`one`]: one run, from its configuration to its files.
//! - [`driver`]: all of them, in parallel.
//! - [`shards`]: parts of them, each for a machine.

#[cfg(test)]
mod damage;
pub mod driver;
pub mod folder;
pub mod list;
pub mod memory;
pub mod one;
pub mod only;
pub mod shards;
pub mod state;
#[cfg(test)]
mod testing;

pub use driver::{
    Choice, Finished, Gathered, Observer, Options, Part, Plan, adopt, damaged, execute, execute_part, gather, missing,
};

use crate::scenario::ScenarioError;
use std::{io, path::PathBuf};
use thiserror::Error;

/// Why runs did not start, or their results could not be written.
#[derive(Debug, Error)]
pub enum RunError {
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Scenario(Box<ScenarioError>),
    /// `--only` names nothing.
    #[error("--only {found}: {message}")]
    Only {
        /// The argument.
        found: String,
        /// What is allowed.
        message: String,
    },
    /// Shards that cannot be, or that do not belong together.
    #[error("{found}: {message}")]
    Plan {
        /// What was found, or where.
        found: String,
        /// What is wrong with it, and what is allowed.
        message: String,
    },
    /// The flows of a run cannot be listed.
    #[error("{run}: {message}")]
    Flows {
        /// The run.
        run: String,
        /// Why, and what is allowed.
        message: String,
    },
    /// The folder holds results that would be overwritten.
    #[error("{}: {message}", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What it holds and what to do.
        message: String,
    },
    /// Another process, or another thread, writes results there.
    #[error("{}: another incast is writing here; wait for it, or choose another --out", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The machine is too small.
    #[error("{0}")]
    Memory(String),
    /// The results could not be read or written.
    #[error("{}: {source}", path.display())]
    Files {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl From<ScenarioError> for RunError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(Box::new(error))
    }
}

impl RunError {
    /// The input is at fault, not the machine: exit code 2 instead of 1.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Files { .. })
    }

    /// Nothing more can be written.
    pub(crate) fn is_full_disk(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Files { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    pub(crate) fn files(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { path, source }
    }
}
