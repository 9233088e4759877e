//! The bundled scenarios, and the files that lie beside them. They are part of the binary, so that it works from any
//! directory.

use incast_lab::{
    run::RunError,
    scenario::tree::{
        error::{Fault, ScenarioError},
        nearest::nearest,
    },
};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
};

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// Path, below `scenarios/`, and content of every file.
pub fn files() -> &'static [(&'static str, &'static [u8])] {
    BUNDLED
}

/// The bundled file of this name: `marimo/table1`, `scenarios/marimo/table1.toml`, or a file beside a scenario,
/// `mercury/fig02.topology`. Gives its path below `scenarios/` and its content.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<(&'static str, &'static [u8]), Box<Fault>> {
    let short = name.strip_prefix("scenarios/").unwrap_or(name);
    let of = |path: &str| path == short || path.strip_suffix(".toml") == Some(short);
    BUNDLED.iter().copied().find(|(path, _)| of(path)).ok_or_else(|| {
        let names = BUNDLED.iter().filter_map(|(path, _)| path.strip_suffix(".toml"));
        Box::new(Fault {
            file: name.into(),
            line: None,
            column: None,
            argument: None,
            key: String::new(),
            what: "there is no such file, nor a bundled scenario of this name".into(),
            allowed: Some("what `incast list scenarios` shows".into()),
            nearest: nearest(short, names).map(str::to_owned),
        })
    })
}

/// Where the scenarios of a command line are. Bundled ones are files for as long as this value exists.
#[derive(Debug, Default)]
pub struct Located {
    unpacked: Option<Unpacked>,
}

impl Located {
    /// The file of this path, `-` for standard input, or else the bundled scenario of this name.
    ///
    /// # Errors
    /// There is neither, or the bundled ones cannot be written to the folder for temporary files.
    pub fn file(&mut self, path: &Path) -> Result<PathBuf, RunError> {
        // A pipe is a scenario, too: `<(…)`, or `-` for standard input.
        if path == Path::new("-") || path.exists() && !path.is_dir() {
            return Ok(path.to_owned());
        }
        let (below, _) = find(&path.to_string_lossy()).map_err(|fault| RunError::from(ScenarioError::from(*fault)))?;
        self.bundled(below)
    }

    /// The bundled file of this path below `scenarios/`.
    ///
    /// # Errors
    /// The bundled ones cannot be written to the folder for temporary files.
    pub fn bundled(&mut self, below: &str) -> Result<PathBuf, RunError> {
        if self.unpacked.is_none() {
            let failed = |source| RunError::Files { path: env::temp_dir(), source };
            self.unpacked = Some(Unpacked::new(BUNDLED).map_err(failed)?);
        }
        Ok(self.unpacked.as_ref().map_or_else(PathBuf::new, |unpacked| unpacked.folder().join(below)))
    }
}

/// The head of a scenario, before its first table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Name of the scenario.
    pub name: String,
    /// What it shows.
    pub describe: String,
    /// What it follows.
    pub source: String,
    /// It has a short form.
    pub short: bool,
}

impl Head {
    /// Of a scenario's text; what is not there is empty.
    pub fn of(text: &str) -> Self {
        let head = text.lines().take_while(|line| !line.trim_start().starts_with('['));
        let head: String = head.map(|line| format!("{line}\n")).collect();
        let table: toml::Table = head.parse().unwrap_or_default();
        let value = |key: &str| table.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        let short = text.lines().any(|line| line.trim_start().starts_with("[short]"));
        Self { name: value("name"), describe: value("describe"), source: value("source"), short }
    }
}

/// Bundled files as files, for as long as this value exists: scenarios name files in their folder by path.
#[derive(Debug)]
pub struct Unpacked {
    folder: PathBuf,
}

impl Unpacked {
    /// Writes all of them to a new temporary folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new(files: &[(&str, &[u8])]) -> io::Result<Self> {
        let folder = (0..1000)
            .map(|attempt| env::temp_dir().join(format!("incast-scenarios-{}-{attempt}", process::id())))
            .find_map(|folder| match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                done => Some(done.map(|()| folder)),
            });
        let unpacked = Self { folder: folder.ok_or(io::ErrorKind::AlreadyExists)?? };
        for (path, content) in files {
            let path = unpacked.folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&unpacked.folder))?;
            fs::write(path, content)?;
        }
        Ok(unpacked)
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for what may be removed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_scenario_is_bundled() {
        let (_, content) = files().iter().find(|(path, _)| *path == "first-light.toml").expect("bundled");
        let head = Head::of(std::str::from_utf8(content).expect("text"));
        assert_eq!((head.name.as_str(), head.short), ("first-light", true));
        assert!(!head.describe.is_empty() && !head.source.is_empty());
    }

    #[test]
    fn heads_end_at_the_first_table() {
        let head = Head::of("name = \"a\"\n[topology]\ndescribe = \"not this\"\n[short]\n");
        assert_eq!(head, Head { name: "a".into(), short: true, ..Head::default() });
        assert_eq!(Head::of("not TOML at all"), Head::default());
    }

    #[test]
    fn files_are_unpacked_and_removed() {
        let unpacked = Unpacked::new(&[("a/b/c.csv", b"1,2\n"), ("d.toml", b"")]).expect("a folder");
        let other = Unpacked::new(&[]).expect("another folder");
        assert_ne!(unpacked.folder(), other.folder());
        let folder = unpacked.folder().to_owned();
        assert_eq!(fs::read(folder.join("a/b/c.csv")).expect("unpacked"), b"1,2\n");
        drop(unpacked);
        assert!(!folder.exists());
    }
}
