//! What is wrong with a scenario, and where.

use super::{
    nearest::nearest,
    place::{Origin, Step},
    renamed::renamed,
};
use serde::de::{self, Expected, Unexpected};
use std::{
    fmt::{self, Write as _},
    ops::Deref,
    path::PathBuf,
};
use thiserror::Error;

/// Why a scenario was refused: one fault or several, a line of text each. Its parts are those of the first.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ScenarioError {
    first: Box<Fault>,
    more: Vec<Fault>,
}

impl ScenarioError {
    /// Of this fault and others, in the order of their lines and each once.
    pub fn of(first: Fault, others: Vec<Fault>) -> Self {
        let mut more = others;
        more.push(first.clone());
        more.sort_by(|a, b| place(a).cmp(&place(b)));
        more.dedup();
        let first = if more.is_empty() { first } else { more.remove(0) };
        Self { first: Box::new(first), more }
    }

    /// The first fault without its file: the key, what was found and what is allowed.
    pub fn in_short(&self) -> String {
        self.first.in_short()
    }

    /// All faults.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        [&*self.first].into_iter().chain(&self.more)
    }
}

/// What faults are sorted by: those of the file come first.
fn place(fault: &Fault) -> (bool, Option<usize>, Option<usize>, &str) {
    (fault.argument.is_some(), fault.line, fault.column, &fault.key)
}

impl From<Fault> for ScenarioError {
    fn from(fault: Fault) -> Self {
        Self { first: Box::new(fault), more: Vec::new() }
    }
}

impl Deref for ScenarioError {
    type Target = Fault;
    fn deref(&self) -> &Fault {
        &self.first
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.more.iter().try_for_each(|fault| write!(f, "\n{fault}"))
    }
}

/// One place, one message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Fault {
    /// The file that holds the fault.
    pub file: PathBuf,
    /// Line, from 1; `None` if the file could not be read or the fault is in an argument.
    pub line: Option<usize>,
    /// Column, from 1, in characters.
    pub column: Option<usize>,
    /// The `--set` argument that holds the fault.
    pub argument: Option<String>,
    /// The key, such as `switch.ecn.kind`; empty for the file as a whole.
    pub key: String,
    /// What was found, as a phrase: `found "stpe"`, `unknown key`.
    pub what: String,
    /// What is allowed.
    pub allowed: Option<String>,
    /// The valid name nearest to what was found.
    pub nearest: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.argument, self.line) {
            (Some(argument), _) => write!(f, "--set {argument}: ")?,
            (None, Some(line)) => write!(f, "{}:{line}: ", self.file.display())?,
            (None, None) => write!(f, "{}: ", self.file.display())?,
        }
        f.write_str(&self.in_short())
    }
}

impl Fault {
    fn in_short(&self) -> String {
        let mut text = if self.key.is_empty() { String::new() } else { format!("{}: ", self.key) };
        text += &self.what;
        // Writing to a string does not fail.
        if let Some(allowed) = &self.allowed {
            let _ = write!(text, ", allowed is {allowed}");
        }
        if let Some(nearest) = &self.nearest {
            let _ = write!(text, " (did you mean \"{nearest}\"?)");
        }
        text
    }
}

/// A fault whose place is known as a path of keys, not yet as a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From the root to the faulty value.
    pub path: Vec<Step>,
    /// See [`Fault::what`].
    pub what: String,
    /// See [`Fault::allowed`].
    pub allowed: Option<String>,
    /// See [`Fault::nearest`].
    pub nearest: Option<String>,
    /// The error is in this place whatever the path is.
    pub origin: Option<Origin>,
}

impl Problem {
    /// A fault in a whole sentence.
    pub fn new(what: impl Into<String>) -> Self {
        Self { path: Vec::new(), what: what.into(), allowed: None, nearest: None, origin: None }
    }
    /// A key that must be given.
    pub fn missing(key: &str) -> Self {
        Self::new(format!("the key `{key}` is missing"))
    }
    /// A value that is not allowed.
    pub fn value(found: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { allowed: Some(allowed.into()), ..Self::new(format!("found {found}")) }
    }
    /// A name that does not exist among `names`.
    pub fn unknown<'a>(what: impl Into<String>, found: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        let what = what.into();
        if let Some(new) = renamed(found, names.iter().copied()) {
            return Self::new(format!("{what}: it is called `{new}` now"));
        }
        Self {
            nearest: nearest(found, names.iter().copied()).map(str::to_owned),
            allowed: Some(list(&names, false)),
            ..Self::new(what)
        }
    }
    /// Of these keys one must be given and no more; each with whether it is.
    pub fn exactly_one(keys: &[(&str, bool)]) -> Self {
        let names: Vec<String> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let given: Vec<&str> = keys.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        let rule = format!("exactly one of {} must be given", list(&names, false).replace(" or ", " and "));
        match given.as_slice() {
            [first, .., last] => Self::new(format!("`{first}` is given too: {rule}")).under(*last),
            _ => Self::new(rule),
        }
    }
    /// The same fault, one level further up.
    #[must_use]
    pub fn under(mut self, step: impl Into<Step>) -> Self {
        self.path.insert(0, step.into());
        self
    }
    /// The same fault below a dotted path.
    #[must_use]
    pub fn at(mut self, path: &[Step]) -> Self {
        self.path.splice(0..0, path.iter().cloned());
        self
    }
    /// The same fault in a known place.
    #[must_use]
    pub fn from(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }
}

/// Problems of one document; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// One of them.
    pub first: Box<Problem>,
    /// The others.
    pub more: Vec<Problem>,
}

impl Problems {
    /// Of a list, if there are any.
    pub fn of(problems: Vec<Problem>) -> Option<Self> {
        let mut problems = problems.into_iter();
        let first = problems.next()?;
        Some(Self { first: Box::new(first), more: problems.collect() })
    }
}

impl From<Problem> for Problems {
    fn from(first: Problem) -> Self {
        Self { first: Box::new(first), more: Vec::new() }
    }
}

/// Line and column of a byte offset, both from 1.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// "a, b or c"; a single name is in backquotes if not in quotes.
pub fn list(names: &[&str], quoted: bool) -> String {
    let names: Vec<String> =
        names.iter().map(|name| if quoted { format!("\"{name}\"") } else { (*name).to_owned() }).collect();
    match names.as_slice() {
        [] => "nothing".into(),
        // A single bare name would read as a word of the sentence.
        [one] if !quoted => format!("`{one}`"),
        [one] => one.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

/// Names that the contract promises and this version does not have yet.
const LATER: &[&str] = &["flowlet", "collective"];

/// Keys that are looked for where they are not, and why.
const NOT_THERE: &[(&[&str], &str)] = &[
    (&["mtu", "link_mtu"], "an MTU of a link is not there, `host.mtu` is that of all"),
    (&["nics", "nics_per_host", "planes", "rails"], "several NICs of a host are not there, a host has one link"),
    (&["host_pause", "pause", "pause_storm", "storm"], "a host that pauses for ever is not there"),
];

/// Keys that are meant by another word, where they are: what is written, and the key.
const OTHER_NAMES: &[(&str, &str)] = &[("file", "path")];

/// The keys of `switch.override`, and those of `switch` that are not among them.
const OF_SOME_SWITCHES: &[&str] = &["at", "chip", "profile", "buffer", "ecn", "ecn_at", "not_ect", "pfc"];
const OF_ALL_SWITCHES: &[&str] =
    &["credits", "trim", "agent", "priorities", "scheduler", "virtual_channels", "load_balancing", "ties"];

impl de::StdError for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::value(found_text(found), expected_text(expected))
    }
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::value(found_text(found), expected_text(expected))
    }
    fn unknown_variant(found: &str, names: &'static [&'static str]) -> Self {
        if let Some(new) = renamed(found, names.iter().copied()) {
            return Self::new(format!("found {found:?}: it is called {new:?} now"));
        }
        let later = if LATER.contains(&found) { ", which comes with a later version" } else { "" };
        Self {
            nearest: nearest(found, names.iter().copied()).map(str::to_owned),
            allowed: Some(list(names, true)),
            ..Self::new(format!("found {found:?}{later}"))
        }
    }
    fn unknown_field(found: &str, names: &'static [&'static str]) -> Self {
        let absent = NOT_THERE.iter().find(|(keys, _)| keys.contains(&found));
        let what = absent.map_or("unknown key".to_owned(), |(_, why)| format!("unknown key: {why}"));
        if names == OF_SOME_SWITCHES && OF_ALL_SWITCHES.contains(&found) {
            let what = format!("unknown key: `switch.{found}` is the same at all switches");
            return Self { allowed: Some(list(names, false)), ..Self::new(what) };
        }
        let problem = Self::unknown(what, found, names.iter().copied());
        let other = OTHER_NAMES.iter().find(|(other, name)| *other == found && names.contains(name));
        Self { nearest: problem.nearest.or(other.map(|(_, name)| (*name).to_owned())), ..problem }
    }
    fn missing_field(name: &'static str) -> Self {
        Self::missing(name)
    }
    fn duplicate_field(name: &'static str) -> Self {
        Self::new(format!("the key `{name}` is given twice"))
    }
}

fn found_text(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Map => "a table".into(),
        Unexpected::Seq => "a list".into(),
        other => other.to_string(),
    }
}

fn expected_text(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "u8" => "a whole number from 0 to 255".into(),
        "u16" => "a whole number from 0 to 65535".into(),
        "u32" => "a whole number from 0 to 4294967295".into(),
        "u64" | "usize" => "a whole number, not negative".into(),
        "i64" => "a whole number".into(),
        "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a text in quotes".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        _ if text.starts_with("struct ") || text.starts_with("enum ") => "a table".into(),
        _ => text,
    }
}
