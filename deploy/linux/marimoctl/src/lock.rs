//! One change at a time: `load`, `unload` and `set-table` of two operators wait for each other.

use crate::failure::{Outcome, While};
use std::{fs::File, os::fd::AsRawFd};

const PATH: &str = "/run/marimoctl.lock";

/// Held until it is dropped, or its process dies.
pub struct Lock(#[expect(dead_code, reason = "open is what it is")] File);

/// Waits for the lock.
pub fn hold() -> Outcome<Lock> {
    let file = File::options().create(true).append(true).open(PATH).during(format!("cannot open {PATH}"))?;
    // SAFETY: the descriptor is open as long as `file`.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        return Err(std::io::Error::last_os_error()).during(format!("cannot lock {PATH}"));
    }
    Ok(Lock(file))
}
