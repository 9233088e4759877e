//! What every BPF program needs beside itself: a place for pins, the kernel's series, and what libbpf says.

use crate::failure::{Outcome, While};
use libbpf_rs::PrintLevel;
use std::{ffi::CString, fs, sync::Mutex};

/// Where bpffs is mounted.
const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// What libbpf has said since [`silence`], to be shown if a load fails.
static SAID: Mutex<String> = Mutex::new(String::new());

fn note(_level: PrintLevel, message: String) {
    if let Ok(mut said) = SAID.lock() {
        said.push_str(&message);
    }
}

/// Keeps libbpf's warnings for [`said`].
pub fn silence() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
}

/// The last lines that libbpf has said.
pub fn said() -> String {
    let said = SAID.lock().map(|said| said.clone()).unwrap_or_default();
    let lines: Vec<_> = said.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// The first two numbers of a release.
pub fn series(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn bpffs() -> CString {
    CString::new(BPFFS).expect("no zero in it")
}

/// Whether pins can be made.
pub fn is_mounted() -> bool {
    let path = bpffs();
    // SAFETY: the path is a string of C, the structure is plain numbers that the call fills.
    let magic = unsafe {
        let mut told: libc::statfs = std::mem::zeroed();
        if libc::statfs(path.as_ptr(), &raw mut told) == 0 { told.f_type as i64 } else { 0 }
    };
    magic == BPF_FS_MAGIC
}

/// Sees to it that they can.
///
/// # Errors
/// Those of the kernel.
pub fn mount() -> Outcome {
    let path = bpffs();
    let kind = CString::new("bpf").expect("no zero in it");
    // SAFETY: three strings of C; bpffs takes no data.
    let refused = unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if refused != 0 {
        return Err(std::io::Error::last_os_error()).during(format!("cannot mount bpffs on {BPFFS}"));
    }
    Ok(())
}

/// Removes a folder of pins, if it is there.
///
/// # Errors
/// Those of the file system.
pub fn remove_pins(folder: &str) -> Outcome {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).during(format!("cannot remove {folder}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_two_numbers() {
        assert_eq!(series("7.3.4+deb13-cloud-amd64"), Some((7, 3)));
        assert_eq!(series("6.18-rc1"), Some((6, 18)));
        assert_eq!(series("linux"), None);
    }
}
