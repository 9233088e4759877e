//! The journal: what routes were before `enable` changed them, on the disk before the first of them is changed.
//!
//! It is of one boot and one network namespace: routes do not outlive them.

use crate::{
    Tool,
    failure::{Failure, Outcome, While},
    netlink::{Route, Setting, Table},
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{fs::MetadataExt as _, net::UnixDatagram},
    },
    path::{Path, PathBuf},
};

/// Routes as they were.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Journal {
    boot: String,
    entries: Vec<Entry>,
    #[serde(skip)]
    path: PathBuf,
}

/// What the watcher does when a route has come back without what it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// Puts it back.
    #[default]
    Restore,
    /// Says so, and counts it.
    Report,
}

/// A route as it was, and the name of each setting that it was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The route's message, in hexadecimal.
    before: String,
    /// What was set, or was about to be.
    names: Vec<String>,
    /// The route in words, for whoever reads the file without this program.
    #[serde(default)]
    pub route: String,
    /// See [`Watch`].
    #[serde(default)]
    pub watch: Watch,
    /// It is to be given back: a rollback has begun, or the kernel has refused.
    #[serde(default)]
    pub due: bool,
    /// `enable` has not ended: nobody is to give it what it was about to get.
    #[serde(default)]
    pub pending: bool,
}

impl Entry {
    /// Whether a route has what it was given here. The kernel does not tell a name that is not registered any more.
    pub fn is_ours<S: Setting>(&self, now: &Route, registered: &[String]) -> bool {
        match now.setting::<S>().name() {
            Some(name) => self.names.contains(&name),
            None => self.names.iter().any(|name| !registered.contains(name)),
        }
    }

    /// Whether a route has what it was given last.
    fn has_last<S: Setting>(&self, now: &Route, registered: &[String]) -> bool {
        match now.setting::<S>().name() {
            Some(name) => self.name() == name,
            None => !registered.iter().any(|name| name == self.name()),
        }
    }

    /// The same, to be given back what it had as soon as the kernel takes it.
    pub fn into_due(mut self) -> Self {
        self.due = true;
        self
    }

    /// What tells it from others: routes of earlier versions' entries have no words.
    pub fn id(&self) -> &str {
        &self.before
    }

    /// What it was given last.
    pub fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// The route as it was.
    pub fn before(&self) -> Option<Route> {
        let octet = |place| u8::from_str_radix(self.before.get(place..place + 2)?, 16).ok();
        let octets: Option<Vec<u8>> = (0..self.before.len()).step_by(2).map(octet).collect();
        Route::new(&octets?)
    }
}

/// What has become of a route that was enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has what it was given, or the kernel knows that name no more.
    Kept,
    /// There is none.
    Gone,
    /// It has what it had before: somebody has made it anew.
    Drifted,
    /// Somebody has given it another setting.
    Other,
}

/// What has become of the route that an entry is about.
pub fn state<S: Setting>(entry: &Entry, before: &Route, all: &Table, registered: &[String]) -> State {
    let Some(now) = all.find(&before.key()) else { return State::Gone };
    let setting: S = now.setting();
    if entry.has_last::<S>(now, registered) {
        State::Kept
    } else if setting == before.setting() || setting.name().is_none() {
        State::Drifted
    } else {
        State::Other
    }
}

impl Journal {
    /// Of this boot and this network namespace.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open<T: Tool>() -> Outcome<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").during("cannot tell this boot")?;
        let path = Path::new(T::STATE).join(format!("routes-{}.json", namespace()?));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { boot, path, ..Self::default() });
            }
            Err(error) => return Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
        };
        let kept: Self = serde_json::from_slice(&text).map_err(|error| {
            Failure::failed(format!("{} is damaged ({error}); move it away to go on without it", path.display()))
        })?;
        let entries = if kept.boot == boot { kept.entries } else { Vec::new() };
        Ok(Self { boot, entries, path })
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// What is in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds a route that is about to get the setting of this name. Of one that has what it was given here the first state is
    /// kept; what others set since is a first state, too.
    pub fn add<S: Setting>(
        &mut self,
        route: &Route,
        in_words: String,
        name: &str,
        watch: Watch,
        registered: &[String],
    ) {
        let (key, name) = (route.key(), name.to_owned());
        let is_same = |entry: &Entry| entry.before().is_some_and(|before| before.key() == key);
        if let Some(entry) =
            self.entries.iter_mut().find(|entry| is_same(entry) && entry.is_ours::<S>(route, registered))
        {
            entry.names.retain(|known| *known != name);
            entry.names.push(name);
            (entry.watch, entry.due, entry.pending) = (watch, false, true);
            return;
        }
        self.entries.retain(|entry| !is_same(entry));
        let before = route.bytes().iter().map(|octet| format!("{octet:02x}")).collect();
        self.entries.push(Entry { before, names: vec![name], route: in_words, watch, due: false, pending: true });
    }

    /// What was to be enabled is.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn settle(&mut self) -> Outcome {
        self.entries.iter_mut().for_each(|entry| entry.pending = false);
        self.save()
    }

    /// Whether another network namespace of this boot has a route that is to be given back.
    pub fn others_are_due(&self) -> bool {
        let files = fs::read_dir(self.folder()).into_iter().flatten().flatten().map(|file| file.path());
        let mut others = files.filter(|path| *path != self.path && path.extension().is_some_and(|name| name == "json"));
        others.any(|path| {
            let journal = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok());
            journal.is_some_and(|other| other.boot == self.boot && other.entries.iter().any(|entry| entry.due))
        })
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
            if self.entries.is_empty() {
                return match fs::remove_file(&self.path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    Err(error) => Err(error),
                    Ok(()) => File::open(self.folder())?.sync_all(),
                };
            }
            fs::create_dir_all(self.folder())?;
            let temporary = self.path.with_extension("json.tmp");
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)?;
            File::open(self.folder())?.sync_all()
        };
        write().during(format!("cannot write {}", self.path.display()))
    }
}

/// What tells this network namespace from others of this boot: its cookie, or before Linux 5.14 a number that may come again.
///
/// # Errors
/// The kernel does not tell.
pub fn namespace() -> Outcome<String> {
    let socket = UnixDatagram::unbound().during("cannot tell this network namespace")?;
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the socket is open, and the kernel writes at most `length` octets to `cookie`.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if refused == 0 {
        return Ok(cookie.to_string());
    }
    let number = fs::metadata("/proc/thread-self/ns/net").during("cannot tell this network namespace")?.ino();
    Ok(format!("inode-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What 4f068c97 wrote for `enable --name reno 10.17.0.0/16` of a route through 10.1.0.2, a metric of 9.
    const RECORDED: &str = r#"{"boot":"a\n","entries":[{"before":"0210000000fe030100000000080001000a11000008000f00fe000000080006000900000008000500020000000800040002000000","names":["reno"]}]}"#;

    #[test]
    fn what_an_earlier_version_has_written_is_read() {
        let journal: Journal = serde_json::from_str(RECORDED).expect("a journal");
        let [entry] = journal.entries() else { panic!("{journal:?}") };
        assert_eq!((entry.name(), entry.watch, entry.due), ("reno", Watch::Restore, false));
        assert_eq!(entry.before().expect("a route").describe(), "10.17.0.0/16 metric 9");
        // And it reads what this one writes, as it has no other words for what it knows.
        let written = serde_json::to_value(&journal).expect("numbers and words");
        assert_eq!(written["entries"][0]["names"][0], "reno");
    }
}
