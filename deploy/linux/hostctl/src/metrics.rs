//! Metrics in the text format of Prometheus, for the text-file collector of node_exporter.

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, open, openat, renameat, unlinkat};
use std::{fmt::Write as _, fs::File, io::Write as _, path::Path};

/// Writes a file whole or not at all. The collector must never see half a file. Whoever may write to the folder must not lead root elsewhere: it is no link itself,
/// and files are made and renamed in it by name, without following one.
///
/// # Errors
/// Those of the file system.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidFilename)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = open(folder, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    // Of a process of this number that was killed: removed, if it is there, never followed.
    let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    let mut file = File::from(openat(&folder, &temporary, flags, mode)?);
    // Whatever the mask is: another user collects it.
    fchmod(&file, mode)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| Ok(renameat(&folder, &temporary, &folder, name)?));
    if written.is_err() {
        let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    }
    written
}

/// Adds one metric: its name behind a prefix, type, meaning and values by labels.
pub fn metric(text: &mut String, prefix: &str, name: &str, kind: &str, help: &str, values: &[(String, u64)]) {
    if values.is_empty() {
        return;
    }
    let _ = writeln!(text, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}");
    for (labels, value) in values {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(text, "{prefix}_{name}{labels} {value}");
    }
}
