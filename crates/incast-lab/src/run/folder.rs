//! The folder of a scenario's results: `OUT/NAME/`.
//!
//! A run is written to `<run>.partial` and renamed when it is whole, so a folder without that ending is finished.

use super::RunError;
use crate::{
    atomic,
    results::{
        FileError, RunRecord,
        checksums::{self, Files, RECORD},
        record::Status,
        tuning,
    },
    scenario::Run,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Ending of the folders of runs that are not finished.
const PARTIAL: &str = ".partial";
/// Files that belong to the scenario as a whole.
const SUMMARIES: [&str; 8] = [
    "summary.json",
    "summary.csv",
    "report.html",
    tuning::FILE,
    "summary.json.tmp",
    "summary.csv.tmp",
    "report.html.tmp",
    "tune.json.tmp",
];

/// What identifies results that may be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Version of incast.
    pub version: String,
    /// Hash of the scenario.
    pub scenario_hash: String,
}

/// What to do with results that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse.
    Refuse,
    /// Keep what is finished, if it is of the same scenario and version.
    Resume,
    /// Remove.
    Overwrite,
}

/// Refuses a folder that cannot be made because something else is in its place. Whether it can be made is known only by
/// making it, see [`Folder::open`].
///
/// # Errors
/// The folder, or one that leads to it, is a file.
pub fn check(out: &Path, name: &str) -> Result<(), RunError> {
    let path = out.join(name);
    match path.ancestors().find(|folder| folder.exists()) {
        Some(folder) if !folder.is_dir() => Err(unusable(&path, format!("{} is not a folder", folder.display()))),
        _ => Ok(()),
    }
}

/// Sees to it that something can be written in a folder that nobody else writes in.
fn probe(path: &Path) -> io::Result<()> {
    let probe = path.join(format!("probe{PARTIAL}"));
    fs::create_dir_all(&probe).and_then(|()| fs::remove_dir(&probe))
}

/// Results cannot be written to the requested folder: an error of the input.
fn unusable(path: &Path, reason: String) -> RunError {
    let message = format!("cannot hold results ({reason}); choose another --out");
    RunError::Occupied { folder: path.to_owned(), message }
}

/// Refuses a folder that has runs of another scenario or version.
///
/// # Errors
/// It does, or it cannot be read.
pub fn check_identity(path: &Path, identity: &Identity) -> Result<(), RunError> {
    let (runs, ..) = contents(path)?;
    runs.iter().try_for_each(|run| same(path, run, identity))
}

/// Refuses a run in a folder if it is of another scenario or version. Records that cannot be read are ignored.
fn same(folder: &Path, run: &Path, identity: &Identity) -> Result<(), RunError> {
    let Ok(record) = RunRecord::read(&run.join("run.json")) else { return Ok(()) };
    let found = if record.version != identity.version {
        format!("results of incast {}, this is {}", record.version, identity.version)
    } else if record.scenario_hash != identity.scenario_hash {
        "results of another scenario of this name".to_owned()
    } else {
        return Ok(());
    };
    let message = format!("holds {found}; use --force to overwrite, or another --out");
    Err(RunError::Occupied { folder: folder.to_owned(), message })
}

/// Folders of finished runs, of unfinished ones, and summaries. Whatever else lies there is not ours.
#[allow(clippy::type_complexity, reason = "three lists of the same kind, named where they are bound")]
fn contents(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>), RunError> {
    let (mut runs, mut partial, mut summaries) = (Vec::new(), Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(RunError::files(folder))? {
        let path = entry.map_err(RunError::files(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name.ends_with(PARTIAL) {
            partial.push(path);
        } else if fs::symlink_metadata(path.join("run.json")).is_ok() {
            runs.push(path);
        } else if SUMMARIES.contains(&name.as_str()) {
            summaries.push(path);
        }
    }
    Ok((runs, partial, summaries))
}

/// An open results folder. The lock is released when it is dropped or the process ends.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
    /// What was found, by the names of the runs' folders.
    verified: Mutex<BTreeMap<String, Found>>,
}

/// What a folder has of a run.
#[derive(Clone, Debug)]
pub enum Found {
    /// It is done.
    Done(Arc<RunRecord>),
    /// It ended with an error.
    Failed(Arc<RunRecord>),
    /// Nothing.
    Nothing,
    /// Something that is not what the run wrote: what it is.
    Damaged(String),
}

/// What a folder of results has of a run, each of its files verified.
pub fn find(folder: &Path, run: &Run) -> Found {
    let own = folder.join(&run.folder);
    let path = own.join("run.json");
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(&own).is_err() => {
            return Found::Nothing;
        }
        Err(error) => return Found::Damaged(format!("run.json: {error}")),
        Ok(_) => {}
    }
    let record = match RunRecord::read(&path) {
        Ok(record) => record,
        Err(error) => return Found::Damaged(format!("run.json: {error}")),
    };
    if (&record.scheme, record.seed, &record.grid) != (&run.scheme, run.seed, &run.point()) {
        return Found::Damaged(format!("it holds the run of {} with seed {}", record.scheme, record.seed));
    }
    match record.check(&own) {
        Err(FileError { path, source }) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Found::Damaged(format!("{name}: {source}"))
        }
        Ok(()) => Found::new(record),
    }
}

impl Found {
    /// A run whose files are what it wrote. Its scenario and its clocks are left out, as the folder keeps what it found of every run.
    fn new(record: RunRecord) -> Self {
        let record = RunRecord { scenario: Value::Null, clocks: Vec::new(), ..record };
        match record.status {
            Status::Done => Self::Done(Arc::new(record)),
            Status::Failed => Self::Failed(Arc::new(record)),
        }
    }
}

impl Folder {
    /// Opens `out/name` for writing, making it if needed.
    ///
    /// # Errors
    /// It holds results that must not be touched, another process writes there, or the file system refuses.
    pub fn open(out: &Path, name: &str, existing: Existing, identity: &Identity) -> Result<Self, RunError> {
        let path = out.join(name);
        let cannot = |error: io::Error| unusable(&path, error.to_string());
        fs::create_dir_all(&path).map_err(cannot)?;
        let lock = File::open(&path).map_err(RunError::files(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RunError::Busy { folder: path }),
            Err(TryLockError::Error(error)) => return Err(RunError::files(&path)(error)),
        }
        probe(&path).map_err(cannot)?;
        let folder = Self { path, _lock: lock, verified: Mutex::default() };
        folder.prepare(existing, identity)?;
        Ok(folder)
    }

    fn prepare(&self, existing: Existing, identity: &Identity) -> Result<(), RunError> {
        let (runs, partial, summaries) = contents(&self.path)?;
        let occupied = |message: String| Err(RunError::Occupied { folder: self.path.clone(), message });
        match existing {
            Existing::Refuse if !(runs.is_empty() && partial.is_empty() && summaries.is_empty()) => {
                return occupied(
                    "holds results already; use --resume to keep what is finished, --force to overwrite, or another --out"
                        .into(),
                );
            }
            Existing::Refuse => {}
            Existing::Resume => {
                runs.iter().try_for_each(|run| same(&self.path, run, identity))?;
            }
            Existing::Overwrite => {
                for run in &runs {
                    fs::remove_dir_all(run).map_err(RunError::files(run))?;
                }
                for file in &summaries {
                    fs::remove_file(file).map_err(RunError::files(file))?;
                }
            }
        }
        for run in &partial {
            fs::remove_dir_all(run).map_err(RunError::files(run))?;
        }
        Ok(())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the folder has of a run. Its files are read once, to verify them.
    pub fn find(&self, run: &Run) -> Found {
        self.verified().entry(run.folder.clone()).or_insert_with(|| find(&self.path, run)).clone()
    }

    /// The SHA-256 of the `run.json` of each run that is there, by its folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn records(&self) -> Result<Files, RunError> {
        let (runs, ..) = contents(&self.path)?;
        let sum = |run: PathBuf| {
            let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let path = run.join(RECORD);
            Ok((name, checksums::of_file(&path).map_err(RunError::files(&path))?))
        };
        runs.into_iter().map(sum).collect()
    }

    fn verified(&self) -> MutexGuard<'_, BTreeMap<String, Found>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run if it is finished, and its files are what it wrote.
    pub fn finished(&self, run: &Run) -> Option<Arc<RunRecord>> {
        if let Found::Done(record) = self.find(run) { Some(record) } else { None }
    }

    /// An empty folder to write a run to.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn begin(&self, run: &str) -> Result<PathBuf, RunError> {
        let partial = self.path.join(format!("{run}{PARTIAL}"));
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(RunError::files(&partial))?;
        }
        fs::create_dir_all(&partial).map_err(RunError::files(&partial))?;
        Ok(partial)
    }

    /// Makes a written run visible, in place of an earlier one. Its files are verified later, unless the `record` was just
    /// written with them.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn commit(&self, run: &str, partial: &Path, record: Option<RunRecord>) -> Result<PathBuf, RunError> {
        let whole = self.path.join(run);
        // Whatever else is there is not ours: the rename fails.
        if fs::symlink_metadata(&whole).is_ok_and(|earlier| earlier.is_dir()) {
            fs::remove_dir_all(&whole).map_err(RunError::files(&whole))?;
        }
        self.verified().remove(run);
        atomic::rename_folder(partial, &whole).map_err(RunError::files(&whole))?;
        if let Some(record) = record {
            self.verified().insert(run.to_owned(), Found::new(record));
        }
        Ok(whole)
    }

    /// Takes a run's files from a folder where it was done.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn adopt(&self, run: &str, from: &Path, record: &RunRecord) -> Result<(), RunError> {
        let partial = self.begin(run)?;
        let copied = record.names().into_iter().try_for_each(|name| {
            let (from, to) = (from.join(&name), partial.join(&name));
            // Files of runs are never changed: where it can be, one file is in both folders. A link to a link is none.
            match fs::symlink_metadata(&from) {
                Ok(file) if file.is_file() => fs::hard_link(&from, &to).or_else(|_| atomic::copy(&from, &to)),
                // Without checksums it is not known which tables there were.
                Err(error) if error.kind() == io::ErrorKind::NotFound && record.files.is_none() => Ok(()),
                _ => atomic::copy(&from, &to),
            }
        });
        match copied {
            Ok(()) => self.commit(run, &partial, None).map(drop),
            Err(error) => {
                self.abandon(&partial);
                Err(RunError::files(from)(error))
            }
        }
    }

    /// Removes what was written of a run that did not end.
    pub fn abandon(&self, partial: &Path) {
        // What cannot be removed now is removed by the next run: its name marks it as not finished.
        let _ = fs::remove_dir_all(partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Of those that open a new folder at one time one has it, and the others are told that it is in use: nobody is told
    /// that it cannot hold results.
    #[test]
    fn of_several_at_one_time_one_opens_a_new_folder() {
        let out = std::env::temp_dir().join(format!("incast-folder-{}", std::process::id()));
        let identity = Identity { version: "1".into(), scenario_hash: "2".into() };
        for round in 0..100 {
            let (name, together) = (round.to_string(), Barrier::new(8));
            std::thread::scope(|scope| {
                let open = || {
                    together.wait();
                    Folder::open(&out, &name, Existing::Resume, &identity)
                };
                let opened: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                for folder in opened {
                    let folder = folder.join().expect("no panic");
                    assert!(matches!(folder, Ok(_) | Err(RunError::Busy { .. })), "{folder:?}");
                }
            });
        }
        fs::remove_dir_all(out).expect("removed");
    }
}
