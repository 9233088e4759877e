//! The journal: what routes were before `enable` changed them, on the disk before the first of them is changed.
//!
//! It is of one boot and one network namespace: routes do not outlive them.

use crate::{
    failure::{Failure, Outcome, While},
    netlink::{Key, Route},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const FOLDER: &str = "/var/lib/marimo";

/// Routes as they were.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journal {
    boot: String,
    entries: Vec<Entry>,
    #[serde(skip)]
    path: PathBuf,
}

/// A route as it was, and the congestion control that it was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The route's message, in hexadecimal.
    before: String,
    /// The congestion control that was set.
    pub name: String,
}

impl Entry {
    /// The route as it was.
    pub fn before(&self) -> Option<Route> {
        let octet = |place| u8::from_str_radix(self.before.get(place..place + 2)?, 16).ok();
        let octets: Option<Vec<u8>> = (0..self.before.len()).step_by(2).map(octet).collect();
        Route::new(&octets?)
    }
}

impl Journal {
    /// Of this boot and this network namespace.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open() -> Outcome<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").during("cannot tell this boot")?;
        let namespace = fs::metadata("/proc/self/ns/net").during("cannot tell this network namespace")?.ino();
        let path = Path::new(FOLDER).join(format!("routes-{namespace}.json"));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
        };
        let kept: Self = match text.is_empty() {
            true => Self::default(),
            false => serde_json::from_slice(&text).during(format!("{} is damaged", path.display()))?,
        };
        let entries = if kept.boot == boot { kept.entries } else { Vec::new() };
        Ok(Self { boot, entries, path })
    }

    /// What is in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a route.
    pub fn entry(&self, key: &Key) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.before().is_some_and(|route| route.key() == *key))
    }

    /// Adds a route that is about to get this congestion control. Of one that is in it already the first state is kept.
    pub fn add(&mut self, route: &Route, name: &str) {
        let key = route.key();
        let known =
            self.entries.iter_mut().find(|entry| entry.before().is_some_and(|before| before.key() == key));
        match known {
            Some(entry) => name.clone_into(&mut entry.name),
            None => self.entries.push(Entry {
                before: route.bytes().iter().map(|octet| format!("{octet:02x}")).collect(),
                name: name.to_owned(),
            }),
        }
    }

    /// Writes it with these entries, whole, and to the disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&mut self, entries: Vec<Entry>) -> Outcome {
        self.entries = entries;
        self.save()
    }

    /// Writes it, whole, and to the disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self) -> Outcome {
        let write = || {
            fs::create_dir_all(FOLDER)?;
            if self.entries.is_empty() {
                return match fs::remove_file(&self.path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                    _ => File::open(FOLDER)?.sync_all(),
                };
            }
            let temporary = self.path.with_extension("json.tmp");
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)?;
            File::open(FOLDER)?.sync_all()
        };
        write().during(format!("cannot write {}", self.path.display()))
    }
}
