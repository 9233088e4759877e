//! Where a value was written, and how a path leads to it.

/// Where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// At a byte offset of the scenario file.
    File(u32),
    /// In a `--set` argument, by index.
    Argument(u32),
}

/// One step from a table or list to a value in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into a list.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}
impl From<String> for Step {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}
impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The steps of a path, from keys and indices.
macro_rules! keys {
    ($($step:expr),* $(,)?) => { [$($crate::scenario::tree::place::Step::from($step)),*] };
}
pub(crate) use keys;
