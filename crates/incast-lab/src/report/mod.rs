//! `report.html`: the content of a results folder, in one file that needs no network.
//!
//! - `input`: what the page shows; nothing is written before all of it was read.
//! - `chart`: one file per kind of chart, scales and axes shared; SVG in which colours are classes, so that one file is
//!   right on light and dark screens.
//! - `page`: the sections, in the order of the page. `maud` escapes whatever is put into markup.

mod chart;
mod input;
mod page;
mod sections;

pub use input::ReportError;

use crate::{atomic, results};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Name of the file in the folder of a scenario's results.
pub const FILE: &str = "report.html";

/// Reads the results in `folder` and writes the report beside them; where it is.
///
/// # Errors
/// Results are missing or damaged, and nothing was written; or the page could not be written.
pub fn write(folder: &Path) -> Result<PathBuf, ReportError> {
    write_to(folder, &folder.join(FILE))
}

/// The same at another place.
///
/// # Errors
/// As of [`write()`].
pub fn write_to(folder: &Path, out: &Path) -> Result<PathBuf, ReportError> {
    let results = results::read::read(folder)?;
    let figures = input::figures::read(&results)?;
    let tuning = results::tuning::read(folder)?;
    save(&page::render(&results, &figures, tuning.as_ref()).into_string(), out)
}

fn save(page: &str, out: &Path) -> Result<PathBuf, ReportError> {
    atomic::write(out, |file| file.write_all(page.as_bytes()))
        .map_err(|source| ReportError::Unwritable { path: out.to_owned(), source })?;
    Ok(out.to_owned())
}

/// Reads the results of several folders and writes one report of all of them to `out`.
///
/// # Errors
/// As of [`write()`].
pub fn write_several(folders: &[PathBuf], out: &Path) -> Result<PathBuf, ReportError> {
    let mut parts = Vec::new();
    for folder in folders {
        let results = results::read::read(folder)?;
        let figures = input::figures::read(&results)?;
        parts.push(page::Part { folder, tuning: results::tuning::read(folder)?, figures, results });
    }
    save(&page::render_several(&parts).into_string(), out)
}

#[cfg(test)]
mod tests;
