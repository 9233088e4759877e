//! The runs of a results folder.

use super::RunRecord;
use crate::columns::join::FileError;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders and records of all runs that are not half-written, in the order of their names.
///
/// # Errors
/// The folder cannot be read, or a record.
pub fn read(folder: &Path) -> Result<Vec<(PathBuf, RunRecord)>, FileError> {
    let entries = fs::read_dir(folder).map_err(|source| FileError { path: folder.to_owned(), source })?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.extension().is_none_or(|ending| ending != "partial") && path.join("run.json").is_file());
    folders.sort();
    let read = |folder: PathBuf| {
        let path = folder.join("run.json");
        match RunRecord::read(&path) {
            Ok(record) => Ok((folder, record)),
            Err(source) => Err(FileError { path, source }),
        }
    };
    folders.into_iter().map(read).collect()
}
