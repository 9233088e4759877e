//! One change at a time: commands of two operators wait for each other, but not for ever.

use crate::{
    Tool,
    failure::{Failure, Outcome, While},
};
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

/// A file in the folder, which is made if need be, and is root's own: who may not enter cannot hold the lock.
fn file<T: Tool>(name: &str) -> Outcome<File> {
    let run = T::RUN;
    let doing = format!("cannot open {run}/{name}");
    match mkdir(run, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(Failure::failed(format!("cannot make {run}: {error}"))),
    }
    let folder = open(run, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).during(&doing)?;
    let of = stat(run).during(&doing)?;
    if of.st_uid != 0 || of.st_mode & 0o077 != 0 {
        return Err(Failure::failed(format!("{run} is not root's alone (chown root, chmod 700)")));
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).during(&doing)?))
}

/// The lock of this name, unless another process has it.
///
/// # Errors
/// It cannot be made, or others than root may.
pub fn try_hold<T: Tool>(name: &str) -> Outcome<Option<Lock>> {
    let file = file::<T>(name)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(file))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(Failure::failed(format!("cannot lock {}/{name}: {error}", T::RUN))),
    }
}

/// Whether somebody has the lock of this name. It is not made for that.
pub fn is_held<T: Tool>(name: &str) -> bool {
    let file = File::open(Path::new(T::RUN).join(name));
    file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
}

/// Waits for the lock.
///
/// # Errors
/// It cannot be made, others than root may, or somebody has had it for long.
pub fn hold<T: Tool>() -> Outcome<Lock> {
    let doing = format!("cannot open {}/{NAME}", T::RUN);
    let mut file = file::<T>(NAME)?;
    let started = Instant::now();
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != Errno::WOULDBLOCK && error != Errno::INTR {
            return Err(Failure::failed(format!("cannot lock {}/{NAME}: {error}", T::RUN)));
        }
        if started.elapsed() > PATIENCE {
            let mut holder = String::new();
            // Who has just got it has not said so yet.
            let _ = file.read_to_string(&mut holder);
            let holder = if holder.is_empty() { format!("another {}", T::PROGRAM) } else { holder.trim().to_owned() };
            let (subject, seconds) = (T::SUBJECT, PATIENCE.as_secs());
            return Err(Failure::failed(format!("{holder} has been changing {subject} for {seconds} s")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let said = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| {
        let command: Vec<String> = std::env::args().skip(1).collect();
        writeln!(file, "process {} ({} {})", std::process::id(), T::PROGRAM, command.join(" "))
    });
    said.during(&doing)?;
    Ok(Lock(file))
}
