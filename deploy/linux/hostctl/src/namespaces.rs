//! Network namespaces of this host, as far as they can be seen from here: those of processes, and those that are mounted.
//!
//! A network namespace begins with the host's default congestion control of the time when it is made, and holds what it names.

use crate::failure::{Failure, Outcome, While};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::ErrorKind,
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    thread,
};

/// A network namespace.
pub struct Namespace {
    /// Where it is mounted, or a process in it.
    pub name: String,
    path: PathBuf,
    inode: u64,
}

/// Namespaces other than this one.
#[derive(Default)]
pub struct Others {
    /// By the numbers of their inodes.
    pub seen: Vec<Namespace>,
    /// Processes and mounts whose namespace cannot be looked at.
    pub hidden: usize,
}

/// Whether this is the namespace of the process with number 1, so that what is done to the host may be done from here.
pub fn is_of_host() -> bool {
    let number = |path: &str| fs::metadata(path).map(|file| file.ino());
    matches!((number("/proc/thread-self/ns/net"), number("/proc/1/ns/net")), (Ok(own), Ok(first)) if own == first)
}

/// All but this one.
///
/// # Errors
/// There is no `/proc`.
pub fn others() -> Outcome<Others> {
    let doing = "cannot list network namespaces";
    let own = fs::metadata("/proc/thread-self/ns/net").during(doing)?.ino();
    let mut found = BTreeMap::new();
    let mut others = Others::default();
    // A mounted one has a name that an operator knows.
    let mounts = fs::read_to_string("/proc/self/mountinfo").during(doing)?;
    for path in mounts.lines().filter_map(mounted) {
        match fs::metadata(&path) {
            Ok(about) => add(&mut found, about.ino(), path.clone(), path.display().to_string()),
            // Something else has been mounted above it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => others.hidden += 1,
        }
    }
    for process in fs::read_dir("/proc").during(doing)?.flatten() {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let path = process.path().join("ns/net");
        match fs::metadata(&path) {
            Ok(about) if !found.contains_key(&about.ino()) => {
                let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
                add(&mut found, about.ino(), path, format!("process {number} ({})", command.trim()));
            }
            Ok(_) => {}
            // It has ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(_) => others.hidden += 1,
        }
    }
    found.remove(&own);
    others.seen = found.into_values().collect();
    Ok(others)
}

fn add(found: &mut BTreeMap<u64, Namespace>, inode: u64, path: PathBuf, name: String) {
    found.entry(inode).or_insert(Namespace { name, path, inode });
}

/// Where a network namespace is mounted, by a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
fn mounted(line: &str) -> Option<PathBuf> {
    let mut fields = line.split(' ').skip(3);
    let (root, at) = (fields.next()?, fields.next()?);
    // Octal for blanks in names.
    root.starts_with("net:[").then(|| Path::new(&at.replace("\\040", " ")).to_owned())
}

impl Namespace {
    /// What `work` returns there.
    ///
    /// # Errors
    /// It cannot be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Outcome<T> {
        let doing = format!("cannot enter the network namespace of {}", self.name);
        let file = File::open(&self.path).during(&doing)?;
        // Its process may have ended, and another have its number.
        if file.metadata().during(&doing)?.ino() != self.inode {
            return Err(Failure::failed(format!("{doing}: it has gone")));
        }
        // A thread that has entered it ends with it.
        let entered = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok::<T, rustix::io::Errno>(work())
            });
            thread.join()
        });
        match entered {
            Ok(entered) => entered.during(doing),
            Err(_) => Err(Failure::failed(format!("a thread in the network namespace of {} has ended", self.name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_network_namespaces_are_told_from_others() {
        let line = "57 32 0:4 net:[4026532008] /run/netns/blue\\040one rw shared:5 - nsfs nsfs rw";
        assert_eq!(mounted(line), Some(PathBuf::from("/run/netns/blue one")));
        assert_eq!(mounted("57 32 0:4 mnt:[4026532008] /run/x rw - nsfs nsfs rw"), None);
        assert_eq!(mounted("24 29 0:22 / /proc rw,nosuid - proc proc rw"), None);
        assert_eq!(mounted(""), None);
    }

    #[test]
    fn this_namespace_is_none_of_the_others() {
        let own = fs::metadata("/proc/self/ns/net").expect("Linux").ino();
        let others = others().expect("Linux");
        assert!(others.seen.iter().all(|other| other.inode != own));
    }
}
