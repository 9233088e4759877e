//! Input files of other simulators as scenarios of ours.
//!
//! - [`hpcc`]: the ns-3 simulator of HPCC and what descends from it.
//! - [`htsim`]: the connection matrices of csg-htsim.
//! - [`sonic`]: the configuration of a switch.
//! - [`page`]: the scenarios they are made into.
//! - [`text`]: files whose every fault has a line.
//!
//! An import gives the scenario, its flows (kind `trace`), and its topology where that is a file, too.

pub mod hpcc;
pub mod htsim;
pub mod page;
pub mod sonic;
#[cfg(test)]
mod testing;
pub mod text;

pub use text::{ImportError, Text};

use incast_lab::atomic;
use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// What an import gives.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The scenario, which names the other two files as [`Names`] has them.
    pub scenario: String,
    /// The topology in our format, if the scenario names one.
    pub topology: Option<String>,
    /// The flows as a trace in CSV.
    pub flows: String,
    /// Look at these before you trust the results.
    pub warnings: Vec<String>,
    /// How the files were read, and what in them is not used.
    pub notes: Vec<String>,
}

/// What an import says on its way.
#[derive(Debug, Default)]
pub struct Said {
    /// What may make results differ.
    pub warnings: Vec<String>,
    /// How the files were read.
    pub notes: Vec<String>,
}

/// Names of the files of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Where the scenario goes.
    pub scenario: PathBuf,
    /// Name of the scenario: the file's without its ending, and only with letters that a name may have.
    pub name: String,
}

impl Names {
    /// For a scenario at `path`.
    pub fn new(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let legal = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '-' };
        let mut name: String = stem.chars().map(legal).take(100).collect();
        if name.is_empty() || name.starts_with('.') {
            name.insert_str(0, "imported");
            name.truncate(100);
        }
        Self { scenario: path.to_owned(), name }
    }

    /// Name of the topology file, which is beside the scenario.
    pub fn topology(&self) -> String {
        self.beside("topology.txt")
    }

    /// Name of the file of flows, which is beside the scenario.
    pub fn flows(&self) -> String {
        self.beside("flows.csv")
    }

    fn beside(&self, ending: &str) -> String {
        format!("{}.{ending}", self.scenario.file_stem().unwrap_or_default().to_string_lossy())
    }
}

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A file is there already.
    #[error("{} exists already; use --force to overwrite it", .0.display())]
    Exists(PathBuf),
    /// The file system refuses.
    #[error("{}: {source}", path.display())]
    Files {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Imported {
    /// Writes the files, the scenario last: where it is, the others are. On a failure, what this call has made
    /// is removed again; of files that were there, each holds its old content or its new one.
    ///
    /// # Errors
    /// One of them exists and `force` is not set, or the file system refuses.
    pub fn write(&self, names: &Names, force: bool) -> Result<Vec<PathBuf>, WriteError> {
        let beside = |name: String| names.scenario.with_file_name(name);
        let topology = self.topology.as_ref().map(|content| (beside(names.topology()), content));
        let others = [(beside(names.flows()), &self.flows), (names.scenario.clone(), &self.scenario)];
        let files: Vec<_> = topology.into_iter().chain(others).collect();
        let mut made: Vec<&PathBuf> = Vec::new();
        if let Some((path, _)) = files.iter().find(|(path, _)| !force && path.exists()) {
            return Err(WriteError::Exists(path.clone()));
        }
        for (path, content) in &files {
            let existed = path.exists();
            if let Err(source) = atomic::write(path, |file| file.write_all(content.as_bytes())) {
                for path in made {
                    // The first error is the one to report.
                    let _ = fs::remove_file(path);
                }
                return Err(WriteError::Files { path: path.clone(), source });
            }
            if !existed {
                made.push(path);
            }
        }
        Ok(files.into_iter().map(|(path, _)| path).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_scenarios_may_have() {
        let name = |path: &str| Names::new(Path::new(path)).name;
        assert_eq!(name("out/incast 16.toml"), "incast-16");
        assert_eq!(Names::new(Path::new("out/incast 16.toml")).topology(), "incast 16.topology.txt");
        assert_eq!(name("out/.toml"), "imported.toml");
        assert_eq!(name("ä/b.c.toml"), "b.c");
        let long = Names::new(Path::new(&format!("{}.toml", "x".repeat(200))));
        assert_eq!(long.name.len(), 100);
        assert_eq!(Names::new(Path::new("a/b.toml")).flows(), "b.flows.csv");
    }

    #[test]
    fn all_files_are_written_or_none() {
        let folder = std::env::temp_dir().join(format!("incast-import-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let names = Names::new(&folder.join("s.toml"));
        let imported = |text: &str| Imported {
            scenario: text.into(),
            topology: Some(text.into()),
            flows: text.into(),
            warnings: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(imported("1").write(&names, false).expect("written").len(), 3);
        assert!(matches!(imported("2").write(&names, false), Err(WriteError::Exists(_))));
        assert_eq!(fs::read_to_string(folder.join("s.flows.csv")).expect("a file"), "1");
        imported("3").write(&names, true).expect("overwritten");
        assert_eq!(fs::read_to_string(folder.join("s.toml")).expect("a file"), "3");
        // The scenario cannot be written where a folder is.
        let names = Names::new(&folder.join("t.toml"));
        fs::create_dir(folder.join("t.toml")).expect("a folder in the way");
        assert!(matches!(imported("4").write(&names, true), Err(WriteError::Files { .. })));
        assert!(!folder.join("t.flows.csv").exists() && !folder.join("t.topology.txt").exists());
        // Without a topology there are two.
        let names = Names::new(&folder.join("u.toml"));
        assert_eq!(Imported { topology: None, ..imported("5") }.write(&names, false).expect("written").len(), 2);
        assert!(folder.join("u.flows.csv").exists() && !folder.join("u.topology.txt").exists());
        fs::remove_dir_all(&folder).expect("removed");
    }
}
