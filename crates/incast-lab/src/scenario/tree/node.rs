//! A TOML document in which every value remembers where it was written.

use super::{
    error::{Fault, Problem, line_and_column},
    place::{Origin, Step},
};
use std::{fmt, path::Path};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it was written.
    pub origin: Origin,
    /// What was written.
    pub value: Value,
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key was written.
    pub origin: Origin,
    /// Its value.
    pub node: Node,
}

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Keys and values in their order.
    Table(Vec<Entry>),
    /// A list.
    Array(Vec<Node>),
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(_) => f.write_str("a table"),
            Self::Array(_) => f.write_str("a list"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

impl Node {
    /// Reads a document.
    ///
    /// # Errors
    /// Anything that is not TOML; dates; numbers that are not finite or do not fit.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            Problem::new(format!("not TOML: {}", error.message().replace('\n', ", "))).from(Origin::File(offset as u32))
        })?;
        let place = |offset: usize| Origin::File(u32::try_from(offset).unwrap_or(u32::MAX));
        let entries = convert_table(table.get_ref(), &place)?;
        Ok(Self { origin: Origin::File(0), value: Value::Table(entries) })
    }

    /// Reads one value of an argument: as TOML where it is TOML, else as a text.
    ///
    /// # Errors
    /// A date, or a number that is not finite.
    pub fn parse_argument(text: &str, argument: usize) -> Result<Self, Problem> {
        Self::parse_value(text, Origin::Argument(argument as u32))
    }

    /// Reads one value: as TOML where it is TOML, else as a text.
    ///
    /// # Errors
    /// A date, or a number that is not finite.
    pub fn parse_value(text: &str, origin: Origin) -> Result<Self, Problem> {
        match DeValue::parse(text) {
            Ok(value) => convert(&value, &|_| origin),
            Err(_) => Ok(Self { origin, value: Value::Text(text.to_owned()) }),
        }
    }

    /// The entries of a table, or none.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }
    /// The items of a list, or none.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::Array(items) => items,
            _ => &[],
        }
    }
    /// A value of a table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
    /// A value of a table, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Table(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }
    /// The items of a list in a table, to be changed; or none.
    pub fn items_mut(&mut self, key: &str) -> &mut [Node] {
        match self.get_mut(key).map(|node| &mut node.value) {
            Some(Value::Array(items)) => items,
            _ => &mut [],
        }
    }
    /// A text of a table.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
    /// Sets a value of a table, which must be one.
    pub fn insert(&mut self, key: &str, node: Node) {
        if let Value::Table(entries) = &mut self.value {
            match entries.iter_mut().find(|entry| entry.key == key) {
                Some(entry) => {
                    entry.origin = node.origin;
                    entry.node = node;
                }
                None => entries.push(Entry { key: key.to_owned(), origin: node.origin, node }),
            }
        }
    }
    /// Removes a value of a table.
    pub fn remove(&mut self, key: &str) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|entry| entry.key != key);
        }
    }
    /// Sets a value of a table, which must be one, where it has none.
    pub fn insert_default(&mut self, key: &str, node: Node) {
        if self.get(key).is_none() {
            self.insert(key, node);
        }
    }

    /// The value at `path`.
    pub fn at(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(self, |node, step| match step {
            Step::Key(key) => node.get(key),
            Step::Index(index) => node.items().get(*index),
        })
    }

    /// Where the value at `path` was written, or else the nearest thing around it.
    pub fn origin_of(&self, path: &[Step]) -> Origin {
        let mut node = self;
        let mut origin = self.origin;
        for step in path {
            match step {
                Step::Key(key) => match node.entries().iter().find(|entry| &entry.key == key) {
                    Some(entry) => (origin, node) = (entry.origin, &entry.node),
                    None => break,
                },
                Step::Index(index) => match node.items().get(*index) {
                    Some(item) => (origin, node) = (item.origin, item),
                    None => break,
                },
            }
        }
        origin
    }

    /// Gives a fault its line in `text`, read from `file`, looking its path up here.
    pub fn locate(&self, problem: Problem, file: &Path, text: &str, arguments: &[String]) -> Fault {
        let origin = problem.origin.unwrap_or_else(|| self.origin_of(&problem.path));
        let (line, column, argument) = match origin {
            Origin::File(offset) => {
                let (line, column) = line_and_column(text, offset as usize);
                (Some(line), Some(column), None)
            }
            Origin::Argument(index) => (None, None, arguments.get(index as usize).cloned()),
        };
        let key = self.describe(&problem.path);
        let Problem { what, allowed, nearest, .. } = problem;
        Fault { file: file.to_owned(), line, column, argument, key, what, allowed, nearest }
    }

    /// The path as people write it: tables of a list are found by their names.
    pub fn describe(&self, path: &[Step]) -> String {
        let mut text = String::new();
        let mut node = Some(self);
        for step in path {
            match step {
                Step::Key(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&quoted(key));
                    node = node.and_then(|node| node.get(key));
                }
                Step::Index(index) => {
                    node = node.and_then(|node| node.items().get(*index));
                    match node.and_then(name_of) {
                        Some(name) => text.push_str(&format!(".{}", quoted(name))),
                        None => text.push_str(&format!("[{index}]")),
                    }
                }
            }
        }
        text
    }
}

/// What a table of a list is called: a workload by its class, a scheme by its name.
pub fn name_of(table: &Node) -> Option<&str> {
    if table.get("metric").is_some() {
        return None;
    }
    ["name", "class", "law", "kind"].iter().find_map(|key| table.text(key))
}

/// A value on one line, as TOML writes it.
pub fn inline(node: &Node) -> String {
    match &node.value {
        Value::Table(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|entry| format!("{} = {}", quoted(&entry.key), inline(&entry.node))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        simple => simple.to_string(),
    }
}

/// A key as TOML writes it.
pub fn quoted(key: &str) -> String {
    if !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        key.to_owned()
    } else {
        format!("{key:?}")
    }
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> Origin) -> Result<Vec<Entry>, Problem> {
    table
        .iter()
        .map(|(key, value)| {
            Ok(Entry {
                key: key.get_ref().to_string(),
                origin: place(key.span().start),
                node: convert(value, place).map_err(|problem| problem.under(key.get_ref().as_ref()))?,
            })
        })
        .collect()
}

fn convert(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> Origin) -> Result<Node, Problem> {
    let origin = place(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| Problem::value(number.as_str(), "a whole number of at most 64 bits").from(origin))?,
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(finite) if finite.is_finite() => Value::Float(finite),
            _ => return Err(Problem::value(number.as_str(), "a finite number").from(origin)),
        },
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => return Err(Problem::new("dates mean nothing here").from(origin)),
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| convert(item, place).map_err(|p| p.under(i)))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, place)?),
    };
    Ok(Node { origin, value })
}

/// A document without anything.
pub fn empty() -> Node {
    Node { origin: Origin::File(0), value: Value::Table(Vec::new()) }
}
