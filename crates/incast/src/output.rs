//! Data on stdout, messages on stderr. A reader that has seen enough (`| head`) is not an error.

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

/// Prints data. After the reader has closed the pipe, it is discarded.
pub fn data(text: &str) {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            message(&format!("error: stdout: {error}"));
            std::process::exit(1);
        }
    }
}

/// Columns of the terminal: those that `COLUMNS` says, or those it has; 100 for a file or a pipe.
pub fn width() -> usize {
    const LEAST: usize = 40;
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let seen = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(seen).unwrap_or(100).max(LEAST)
}

/// A word of the shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Prints a message. A failure is ignored.
pub fn message(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints what went wrong, one thing on each line.
pub fn error(error: &dyn Display) {
    error.to_string().lines().for_each(|line| message(&format!("error: {line}")));
}

/// Reads the path of an output: one on this machine.
pub fn local() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_string_lossy().split_once("://") {
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) && !scheme.is_empty() => Err(format!(
            "a URL; the Python package writes there: incast.run(\"SCENARIO.toml\", out=\"{}\")",
            path.display()
        )),
        _ => Ok(path),
    })
}

/// Refuses a file that cannot be written before any work is done for it.
///
/// # Errors
/// What is wrong with it.
pub fn check_file(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return Err("is a folder, expected the name of a file".into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    Ok(())
}
