//! Data on stdout, messages on stderr. A reader that has seen enough (`| head`) is not an error.

use clap::builder::{PathBufValueParser, TypedValueParser};
use incast_lab::plain::wrap;
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

/// Text is not broken into shorter lines.
const LEAST: usize = 40;

/// Columns of the terminal: those that `COLUMNS` says, or those it has; 100 for a file or a pipe.
pub fn width() -> usize {
    known_width().unwrap_or(100)
}

/// The same; `None` for a file or a pipe where `COLUMNS` says nothing: there a long line is found as a whole.
pub fn known_width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let seen = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(seen).map(|width| width.max(LEAST))
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

/// Prints a message. On a terminal a long sentence is broken; code, and what may be copied from it, is not. A failure is ignored.
pub fn message(text: &str) {
    let is_sentence = ["error: ", "warning: ", "note: "].iter().any(|kind| text.starts_with(kind))
        && !["`", "^", "incast "].iter().any(|code| text.contains(code));
    let seen = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0).max(LEAST));
    let text = seen.filter(|_| is_sentence).map_or_else(|| text.to_owned(), |width| hanging(text, "  ", width));
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Lines of at most so many columns, each further one of what was one begun with `indent`.
fn hanging(text: &str, indent: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.chars().count() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let own = &line[..line.len() - line.trim_start().len()];
        let parts = wrap(line.trim_start(), width.saturating_sub(own.len() + indent.len()));
        let begin = |place: usize| if place == 0 { own.to_owned() } else { format!("{own}{indent}") };
        lines.extend(parts.iter().enumerate().map(|(place, part)| format!("{}{part}", begin(place))));
    }
    lines.join("\n")
}

/// Lines of comments (`#   …`) that fit so many columns.
pub fn comments(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| {
        let Some(comment) = line.strip_prefix('#').filter(|_| line.chars().count() > width) else {
            return line.to_owned();
        };
        hanging(comment, "  ", width - 1).lines().map(|part| format!("#{part}")).collect::<Vec<_>>().join("\n")
    });
    lines.map(|line| line + "\n").collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_comments_are_broken() {
        let text = "#   a: one two three four five six\n\n# x\n";
        assert_eq!(comments(text, 22), "#   a: one two three\n#     four five six\n\n# x\n");
        assert_eq!(comments(text, usize::MAX), text);
    }
}
