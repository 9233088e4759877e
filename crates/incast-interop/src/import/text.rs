//! Text files of peers, word by word, with the line of each.

use std::{
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// Larger files are refused: some ten million flows.
const LIMIT: u64 = 1 << 30;

/// What is wrong with a peer's file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What was found and what is allowed.
    pub message: String,
}

impl std::error::Error for ImportError {}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.line > 0 {
            write!(f, "{}:", self.line)?;
        }
        write!(f, " {}", self.message)
    }
}

/// A file, read whole.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its path, for messages.
    pub path: PathBuf,
    text: String,
}

/// A line that is not empty.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Its words.
    pub words: Vec<&'a str>,
}

impl Text {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is too large, or holds what is not text.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let fail = |message: String| ImportError { file: path.to_owned(), line: 0, message };
        if path.is_dir() {
            return Err(fail("is a folder, not a file".into()));
        }
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes))
            .map_err(|error| fail(format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > LIMIT {
            return Err(fail(format!("found more than {LIMIT} bytes")));
        }
        Self::new(path, bytes)
    }

    /// Of bytes at hand. Lines may end in CR LF; `path` is for messages.
    ///
    /// # Errors
    /// They are not UTF-8, or have control characters other than blanks and ends of lines.
    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<Self, ImportError> {
        let line_of = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        let fail = |line: usize, message: String| ImportError { file: path.to_owned(), line, message };
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = line_of(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            fail(line, "not a text file: found bytes that are not UTF-8".into())
        })?;
        if let Some((at, strange)) =
            text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        {
            let line = line_of(&text.as_bytes()[..at]);
            return Err(fail(line, format!("found the character {}, which no text has", strange.escape_unicode())));
        }
        Ok(Self { path: path.to_owned(), text })
    }

    /// The file's name, for a comment on one line.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.chars().filter(|c| !c.is_control()).collect()
    }

    /// All of it.
    pub fn whole(&self) -> &str {
        self.text.strip_prefix('\u{feff}').unwrap_or(&self.text)
    }

    /// The lines that are not empty.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        (1..).zip(text.lines()).filter_map(|(number, line)| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (!words.is_empty()).then_some(Line { number, words })
        })
    }

    /// A fault in a line of this file; 0 for the file as a whole.
    pub fn error(&self, line: usize, message: impl Into<String>) -> ImportError {
        ImportError { file: self.path.clone(), line, message: message.into() }
    }

    /// A remark on a line of this file.
    pub fn warning(&self, line: usize, message: impl Into<String>) -> String {
        self.error(line, message).to_string()
    }
}

/// A word in a message: quoted and not too long.
pub fn shown(word: &str) -> String {
    let mut start: String = word.chars().take(40).flat_map(char::escape_debug).collect();
    if word.chars().nth(40).is_some() {
        start.push('…');
    }
    format!("`{start}`")
}

/// Some of a list, and how many more there are.
pub fn listed(all: &[String]) -> String {
    const MOST: usize = 5;
    let shown = all.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > MOST { format!("{shown} and {} more", all.len() - MOST) } else { shown }
}

/// A whole number of at most `most`.
///
/// # Errors
/// What was found and what is allowed.
pub fn whole(what: &str, word: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    // `parse` would take a plus sign.
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    match word.parse::<u64>().ok().filter(|number| digits && range.contains(number)) {
        Some(number) => Ok(number),
        None => Err(format!(
            "{what}: found {}, allowed is a whole number from {} to {}",
            shown(word),
            range.start(),
            range.end()
        )),
    }
}

/// A finite number in a range.
///
/// # Errors
/// What was found and what is allowed.
pub fn number(what: &str, word: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    match word.parse::<f64>().ok().filter(|number| range.contains(number)) {
        Some(number) => Ok(number),
        None => {
            Err(format!("{what}: found {}, allowed is a number from {} to {}", shown(word), range.start(), range.end()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<Text, ImportError> {
        Text::new(Path::new("x.txt"), bytes.to_vec())
    }

    #[test]
    fn lines_keep_their_numbers_whatever_ends_them() {
        let text = text("\u{feff}a b\r\n\r\n\tc\n".as_bytes()).expect("text");
        let lines: Vec<_> = text.lines().map(|line| (line.number, line.words.join("+"))).collect();
        assert_eq!(lines, [(1, "a+b".to_owned()), (3, "c".to_owned())]);
        assert_eq!(text.error(3, "wrong").to_string(), "x.txt:3: wrong");
        assert_eq!(text.error(0, "wrong").to_string(), "x.txt: wrong");
    }

    #[test]
    fn what_is_no_text_has_a_line() {
        assert_eq!(text(b"a\nb\0\n").expect_err("NUL").line, 2);
        assert_eq!(text(b"a\n\n\xff").expect_err("not UTF-8").line, 3);
        assert!(Text::read(Path::new("no/such/file")).is_err());
        assert!(Text::read(Path::new("/")).expect_err("a folder").message.contains("folder"));
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(whole("x", "7", 0..=9), Ok(7));
        for wrong in ["-7", "+7", "7.0", "10", "", "99999999999999999999999", "NaN"] {
            assert!(whole("x", wrong, 0..=9).is_err(), "{wrong}");
        }
        for wrong in ["NaN", "inf", "-1", "2", "x"] {
            assert!(number("x", wrong, 0.0..=1.0).is_err(), "{wrong}");
        }
    }
}
