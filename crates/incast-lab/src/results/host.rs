//! The machine that a run ran on.

use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

/// What of the machine may explain a run's cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Cores that this process may use.
    pub cores: usize,
    /// Operating system and kernel.
    pub os: String,
    /// Model of the CPU.
    pub cpu: String,
}

impl Host {
    /// Of this machine; what cannot be found out is empty.
    pub fn here() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            cores: cores(),
            os: format!("{} {} {}", std::env::consts::OS, std::env::consts::ARCH, kernel.trim()).trim().to_owned(),
            cpu: model.map_or_else(String::new, |(_, model)| model.trim().to_owned()),
        }
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Largest resident memory of this process so far, in bytes; 0 where it cannot be found out.
pub fn peak_rss_bytes() -> u64 {
    kilobytes("/proc/self/status", "VmHWM:").unwrap_or(0)
}

/// Memory that can be used without swapping, in bytes: of the machine, of the control groups that this process is in, and of
/// its own limits.
pub fn available_memory() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_machine = kilobytes("/proc/meminfo", "MemAvailable:");
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let used = |key: &str| kilobytes("/proc/self/status", key).unwrap_or(0);
    let of_groups = left_in_groups(Path::new("/sys/fs/cgroup"), &groups);
    [of_machine, of_groups, left_of_limits(&limits, used("VmSize:"), used("VmData:"))].into_iter().flatten().min()
}

/// What RLIMIT_AS and RLIMIT_DATA leave of the address space and the data of this process. `limits` is `/proc/self/limits`.
fn left_of_limits(limits: &str, space: u64, data: u64) -> Option<u64> {
    let soft = |name: &str| {
        let limit = limits.lines().find_map(|line| line.strip_prefix(name))?;
        limit.split_whitespace().next()?.parse::<u64>().ok()
    };
    let left = [(soft("Max address space"), space), (soft("Max data size"), data)];
    left.into_iter().filter_map(|(limit, used)| Some(limit?.saturating_sub(used))).min()
}

/// What the limits of control groups leave, the least of all that contain this process; `None` without a limit.
/// `groups` is `/proc/self/cgroup`. Both versions of control groups are read.
fn left_in_groups(root: &Path, groups: &str) -> Option<u64> {
    let left = |folder: &Path, limit: &str, used: &str| {
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        // Files may stay in memory as long as nobody needs it.
        let cached = fs::read_to_string(folder.join("memory.stat")).ok().and_then(|text| {
            text.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok())
        });
        let used = number(used)?.saturating_sub(cached.unwrap_or(0));
        Some(number(limit)?.saturating_sub(used))
    };
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, limit, used) = match controllers {
            "" => (root.to_owned(), "memory.max", "memory.current"),
            all if all.split(',').any(|one| one == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => return None,
        };
        let folders = Path::new(path.trim_start_matches('/')).ancestors();
        folders.filter_map(|folder| left(&root.join(folder), limit, used)).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// A line such as `VmHWM:  1234 kB`, in bytes.
fn kilobytes(file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_process_count() {
        let limits = "Max cpu time              unlimited            unlimited            seconds\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         1000                 unlimited            bytes\n";
        assert_eq!(left_of_limits(limits, 300, 200), Some(700));
        assert_eq!(left_of_limits(limits, 3_000, 200), Some(0));
        assert_eq!(left_of_limits(&limits.replace("1000 ", "unlimited "), 300, 200), None);
        assert_eq!(
            left_of_limits(&limits.replace("data size             unlimited", "data size             250 "), 300, 200),
            Some(50)
        );
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let root = std::env::temp_dir().join(format!("incast-groups-{}", std::process::id()));
        let write = |folder: &str, files: &[(&str, &str)]| {
            fs::create_dir_all(root.join(folder)).expect("a folder");
            for (name, text) in files {
                fs::write(root.join(folder).join(name), text).expect("written");
            }
        };
        write("user/job", &[("memory.max", "max\n"), ("memory.current", "300\n")]);
        write(
            "user",
            &[("memory.max", "1000\n"), ("memory.current", "400\n"), ("memory.stat", "anon 1\ninactive_file 150\n")],
        );
        assert_eq!(left_in_groups(&root, "0::/user/job\n"), Some(750));
        write("memory/old", &[("memory.limit_in_bytes", "500\n"), ("memory.usage_in_bytes", "200\n")]);
        assert_eq!(left_in_groups(&root, "3:cpu:/old\n2:memory,hugetlb:/old\n0::/user/job\n"), Some(300));
        assert_eq!(left_in_groups(&root, "0::/elsewhere\n"), None);
        fs::remove_dir_all(root).expect("removed");
    }
}
