//! What this process sees of the host. In namespaces of another kind than the host's a command would take for absent what it
//! cannot see.

use crate::failure::{Failure, Outcome};
use std::{fs, os::unix::fs::MetadataExt as _};

/// The number of a namespace; `None` if it may not be looked at.
fn inode(path: &str) -> Option<u64> {
    fs::metadata(path).map(|file| file.ino()).ok()
}

/// Fails early and clearly where the kernel would only say "not permitted".
///
/// # Errors
/// This is not the host's root.
pub fn root() -> Outcome {
    // SAFETY: only asks.
    if unsafe { libc::geteuid() } != 0 {
        return Err(Failure::failed("root is needed"));
    }
    // user_namespaces(7): the first namespace's map is that of all numbers.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    if map.is_empty() || is_whole {
        return Ok(());
    }
    Err(Failure::failed(
        "root is needed, and not that of a user namespace, as this is: BPF programs and routes of the host are not seen \
         from here",
    ))
}

/// Whether something is mounted where pins belong, or what is mounted here would be the host's: `lost` says what else would be lost.
///
/// # Errors
/// It would end with this mount namespace.
pub fn may_mount(lost: &str) -> Outcome {
    match (inode("/proc/self/ns/mnt"), inode("/proc/1/ns/mnt")) {
        (Some(own), Some(first)) if own != first => Err(Failure::failed(format!(
            "no bpffs is mounted on /sys/fs/bpf in this mount namespace, and one that is mounted here would end with it, \
             and {lost} with that; {ELSEWHERE}"
        ))),
        _ => Ok(()),
    }
}

/// Which commands make a mount namespace of their own, as messages say it.
pub const ELSEWHERE: &str = "`ip netns exec` makes such a one, `nsenter --net=/run/netns/NAME` does not";

/// Nanoseconds by which CLOCK_MONOTONIC of this time namespace is ahead of the kernel's, in which records are
/// (time_namespaces(7)).
pub fn clock_ahead() -> i128 {
    // The offsets are those of children, which may be in another one.
    if inode("/proc/self/ns/time") != inode("/proc/self/ns/time_for_children") {
        return 0;
    }
    offset(&fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default())
}

fn offset(text: &str) -> i128 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("monotonic"));
    let mut numbers = line.into_iter().flat_map(str::split_whitespace).map(|number| number.parse::<i128>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(seconds)), Some(Ok(nanoseconds))) => seconds * 1_000_000_000 + nanoseconds,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_that_of_its_monotonic_clock() {
        assert_eq!(offset("monotonic      100000         7\nboottime       100000         0\n"), 100_000_000_000_007);
        assert_eq!(offset("monotonic        -600         0\n"), -600_000_000_000);
        assert_eq!(offset(""), 0);
    }
}
