//! The machine that a run ran on.

use serde::{Deserialize, Serialize};
use std::fs;

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
            os: format!("{} {} {}", std::env::consts::OS, std::env::consts::ARCH, kernel.trim())
                .trim()
                .to_owned(),
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

/// Memory that can be used without swapping, in bytes.
pub fn available_memory() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}

/// A line such as `VmHWM:  1234 kB`, in bytes.
fn kilobytes(file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}
