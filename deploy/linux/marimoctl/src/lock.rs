//! One change at a time: commands of two operators wait for each other, but not for ever.

use crate::failure::{Failure, Outcome, While};
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, mkdir, open, openat, stat},
    io::Errno,
};
use std::{
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Root's own: who may not enter cannot hold the lock.
pub const FOLDER: &str = "/run/marimo";
const NAME: &str = "lock";
/// So long it waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// Held until it is dropped, or its process dies.
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody holds it: nobody is named.
        let _ = self.0.set_len(0);
    }
}

/// A file in the folder, which is made if need be.
fn file(name: &str) -> Outcome<File> {
    let doing = format!("cannot open {FOLDER}/{name}");
    match mkdir(FOLDER, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(Failure::failed(format!("cannot make {FOLDER}: {error}"))),
    }
    let folder = open(FOLDER, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).during(&doing)?;
    let of = stat(FOLDER).during(&doing)?;
    if of.st_uid != 0 || of.st_mode & 0o077 != 0 {
        return Err(Failure::failed(format!("{FOLDER} is not root's alone (chown root, chmod 700)")));
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).during(&doing)?))
}

/// The lock of this name, unless another process has it.
pub fn try_hold(name: &str) -> Outcome<Option<Lock>> {
    let file = file(name)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(file))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(Failure::failed(format!("cannot lock {FOLDER}/{name}: {error}"))),
    }
}

/// Whether somebody has the lock of this name. It is not made for that.
pub fn is_held(name: &str) -> bool {
    let file = File::open(Path::new(FOLDER).join(name));
    file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
}

/// Waits for the lock.
pub fn hold() -> Outcome<Lock> {
    let doing = format!("cannot open {FOLDER}/{NAME}");
    let mut file = file(NAME)?;
    let started = Instant::now();
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != Errno::WOULDBLOCK && error != Errno::INTR {
            return Err(Failure::failed(format!("cannot lock {FOLDER}/{NAME}: {error}")));
        }
        if started.elapsed() > PATIENCE {
            let mut holder = String::new();
            // Who has just got it has not said so yet.
            let _ = file.read_to_string(&mut holder);
            let holder = if holder.is_empty() { "another marimoctl" } else { holder.trim() };
            return Err(Failure::failed(format!("{holder} has been changing Marimo for {} s", PATIENCE.as_secs())));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let said = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| {
        let command: Vec<String> = std::env::args().skip(1).collect();
        writeln!(file, "process {} (marimoctl {})", std::process::id(), command.join(" "))
    });
    said.during(&doing)?;
    Ok(Lock(file))
}
