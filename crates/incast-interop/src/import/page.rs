//! Scenario files of imports: every value with what it comes from.

use std::fmt::{Display, Write};

/// A TOML file, line by line.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// A line as it is.
    pub fn line(&mut self, text: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{text}");
    }

    /// The header of a table, behind an empty line.
    pub fn table(&mut self, header: &str) {
        let _ = writeln!(self.0, "\n{header}");
    }

    /// `key = value  # from`.
    pub fn key(&mut self, key: &str, value: impl Display, from: &str) {
        let _ = match from {
            "" => writeln!(self.0, "{key} = {value}"),
            from => writeln!(self.0, "{key} = {value}  # {from}"),
        };
    }

    /// The same with a value in quotes. Times, sizes, rates and names have no characters that need more.
    pub fn text(&mut self, key: &str, value: impl Display, from: &str) {
        self.key(key, format_args!("\"{value}\""), from);
    }

    /// A file, whose name may have any characters.
    pub fn path(&mut self, name: &str, from: &str) {
        self.key("path", toml::Value::from(name), from);
    }

    /// The whole file.
    pub fn finish(self) -> String {
        self.0
    }
}
