//! The runs of a results folder.

use super::{
    RunRecord, checksums, file,
    record::{Status, read_file},
    row::{ALL, Row, Seed},
};
use crate::columns::join::FileError;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// What makes results whole.
const AGAIN: &str = "`incast run --resume` does what is missing, and the summary";

/// What a results folder holds.
#[derive(Debug)]
pub struct Runs {
    /// Folders and records of all runs that are not half-written, in the order of their names.
    pub runs: Vec<(PathBuf, RunRecord)>,
    /// Rows of `summary.json`; an interrupted command leaves none.
    pub rows: Option<Vec<Row>>,
}

impl Runs {
    /// Runs of a build that wrote no checksums are among them.
    pub fn is_unverified(&self) -> bool {
        self.runs.iter().any(|(_, record)| record.files.is_none())
    }
}

/// Reads the records and the summary, and checks that they belong together: no run is missing or there twice, and each has
/// the rows that the summary has of it.
///
/// # Errors
/// The folder cannot be read, or a file; a file has changed since it was written; they do not belong together.
pub fn read(folder: &Path) -> Result<Runs, FileError> {
    let runs = records(folder)?;
    let mut places = BTreeMap::new();
    for (place, (path, record)) in runs.iter().enumerate() {
        let before = places.insert(key(&record.scheme, record.seed, &record.grid), place);
        if let Some(other) = before {
            return Err(invalid(
                path,
                format!("is the same run as {}: one of them is a copy", runs[other].0.display()),
            ));
        }
    }
    let path = folder.join("summary.json");
    let summary = match read_file(&path) {
        Ok(bytes) => {
            let summary = file::parse(&bytes);
            Some(summary.map_err(|error| invalid(&path, format!("not a summary of incast: {error}")))?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(FileError { path, source }),
    };
    let version = summary.as_ref().and_then(|summary| summary.version.as_ref());
    if let Some((other, record)) =
        runs.iter().find(|(_, record)| version.is_some_and(|version| *version != record.version))
    {
        let why =
            format!("is of incast {}, and summary.json of {}", record.version, version.map_or("", String::as_str));
        return Err(invalid(other, why));
    }
    if let Some(summary) = &summary {
        let sealed = runs.iter().find(|(_, record)| record.files.is_some());
        if let Some((run, _)) = sealed.filter(|_| !summary.is_sealed) {
            return Err(invalid(&path, format!("has no checksum, and {} has", run.join("run.json").display())));
        }
        for (name, sum) in &summary.runs {
            let path = folder.join(name).join("run.json");
            let found = checksums::of_file(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    invalid(folder, format!("summary.json has the run {name}, whose folder is missing; {AGAIN}"))
                }
                _ => FileError { path: path.clone(), source: error },
            })?;
            if found != *sum {
                return Err(invalid(&path, format!("is not the one that summary.json was made of; {AGAIN}")));
            }
        }
    }
    for row in summary.iter().flat_map(|summary| &summary.rows) {
        let Seed::One(seed) = row.seed else { continue };
        let run = places.get(&key(&row.scheme, seed, &row.grid)).map(|place| &runs[*place]);
        let missing = || format!("summary.json has a run of {} with seed {seed}", row.scheme);
        match run {
            Some((_, record)) if record.status == Status::Done => {
                if record.files.is_some() && !record.rows.contains(row) {
                    let of = if row.class == ALL { String::new() } else { format!(" (class {})", row.class) };
                    return Err(invalid(
                        &path,
                        format!("is not of these runs: {}{of}, which has other numbers", missing()),
                    ));
                }
            }
            Some((path, _)) => return Err(invalid(path, format!("{}, which failed here", missing()))),
            None => {
                return Err(invalid(folder, format!("{}, whose folder is missing; {AGAIN}", missing())));
            }
        }
    }
    Ok(Runs { runs, rows: summary.map(|summary| summary.rows) })
}

fn key(scheme: &str, seed: u64, grid: &Map<String, Value>) -> (String, u64, String) {
    (scheme.to_owned(), seed, Value::Object(grid.clone()).to_string())
}

fn invalid(path: &Path, why: String) -> FileError {
    FileError { path: path.to_owned(), source: io::Error::new(io::ErrorKind::InvalidData, why) }
}

fn records(folder: &Path) -> Result<Vec<(PathBuf, RunRecord)>, FileError> {
    let unreadable = |source| FileError { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut folders =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    folders.retain(|path| path.is_dir() && path.extension().is_none_or(|ending| ending != "partial"));
    folders.sort();
    let mut runs = Vec::new();
    for folder in folders {
        let path = folder.join("run.json");
        match fs::symlink_metadata(&path) {
            // Whatever else lies there is not ours.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(FileError { path, source }),
            Ok(_) => match RunRecord::read(&path) {
                Ok(record) if record.files.is_some() && folder.file_name() != Some(record.folder.as_ref()) => {
                    return Err(invalid(&folder, format!("holds the run {}", record.folder)));
                }
                Ok(record) => runs.push((folder, record)),
                Err(source) => return Err(FileError { path, source }),
            },
        }
    }
    Ok(runs)
}
