//! A file, read whole.

use super::error::{Fault, ScenarioError};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// A scenario file as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path, as given.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// More than any scenario or distribution needs; a wrong path to a huge file ends here.
const LIMIT: u64 = 16 << 20;

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is missing, unreadable, larger than 16 MiB, or not UTF-8.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        // What is no regular file (a pipe, a device) has no length: it is read up to the limit.
        let large = fs::metadata(path).ok().filter(|it| it.is_file() && it.len() > LIMIT);
        Self::whole(path, large.map(|it| it.len()), || fs::File::open(path))
    }

    /// Reads standard input, whose path is `-`.
    ///
    /// # Errors
    /// It is unreadable, larger than 16 MiB, or not UTF-8.
    pub fn standard_input() -> Result<Self, ScenarioError> {
        Self::whole(Path::new("-"), None, || Ok(io::stdin()))
    }

    fn whole<R: Read>(
        path: &Path,
        too_long: Option<u64>,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<Self, ScenarioError> {
        let fail = |line: Option<usize>, what: String| {
            ScenarioError::from(Fault {
                file: path.to_owned(),
                line,
                column: None,
                argument: None,
                key: String::new(),
                what,
                allowed: None,
                nearest: None,
            })
        };
        if let Some(length) = too_long {
            return Err(fail(None, format!("found {length} bytes, allowed are {LIMIT}")));
        }
        let mut bytes = Vec::new();
        open()
            .and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes))
            .map_err(|error| fail(None, format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > LIMIT {
            return Err(fail(None, format!("found more than {LIMIT} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
            fail(Some(line), "not a text file: found bytes that are not UTF-8".into())
        })?;
        Ok(Self { path: path.to_owned(), text })
    }
}
