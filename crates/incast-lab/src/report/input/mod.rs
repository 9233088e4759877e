//! What the report shows, read from a results folder.
//!
//! - [`curves`]: distributions and time series, thinned to what a screen can show.
//! - [`figures`]: the curves of every grid point and scheme.

pub mod curves;
pub mod figures;

use crate::results::read::Unreadable;
use std::{
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The folder does not hold what a run leaves behind.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
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
        Self::Unreadable(Unreadable::new(path, message))
    }

    /// The results are at fault, not the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::Unreadable(_))
    }
}
