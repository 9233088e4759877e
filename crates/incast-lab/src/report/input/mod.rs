//! What the report shows, read from a results folder.
//!
//! - [`load`]: reads and checks the folder.
//! - [`curves`]: distributions and time series, thinned to what a screen can show.
//! - [`figures`]: the curves of every grid point and scheme.

pub mod curves;
pub mod figures;
pub mod load;

use std::{
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The folder does not hold what a run leaves behind.
    #[error("{}: {message}", path.display())]
    Unreadable {
        /// The file or folder at fault.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The page could not be written.
    #[error("{}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ReportError {
    fn unreadable(path: &Path, message: impl ToString) -> Self {
        Self::Unreadable { path: path.to_owned(), message: message.to_string() }
    }

    /// The results are at fault, not the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Unreadable { .. })
    }
}
