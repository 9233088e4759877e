//! `report.html`: everything that a results folder says, in one file that needs no network.
//!
//! - `load`: reads and checks the folder; nothing is written before all of it was read.
//! - `curves`: distributions and time series, thinned to what a screen can show.
//! - `figures`: the curves of every grid point and scheme.
//! - `chart`: one file per kind of chart, scales and axes shared; SVG in which colours are classes, so that one file is
//!   right on light and dark screens.
//! - `page`: the sections, in the order of the page. `maud` escapes whatever is put into markup.

mod chart;
mod curves;
mod figures;
mod load;
mod page;
mod sections;

pub use load::{Summary, summary};

use crate::atomic;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Name of the file in the folder of a scenario's results.
pub const FILE: &str = "report.html";

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
        /// What the system says.
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

/// Reads the results in `folder` and writes the report beside them; where it is.
///
/// # Errors
/// Results are missing or damaged, and nothing was written; or the page could not be written.
pub fn write(folder: &Path) -> Result<PathBuf, ReportError> {
    let results = load::read(folder)?;
    let figures = figures::read(&results)?;
    let page = page::render(&results, &figures).into_string();
    let path = folder.join(FILE);
    atomic::write(&path, |file| file.write_all(page.as_bytes()))
        .map_err(|source| ReportError::Unwritable { path: path.clone(), source })?;
    Ok(path)
}

#[cfg(test)]
mod tests;
