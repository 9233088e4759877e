//! `incast table`: numbers of a summary, one line for each scheme, on the terminal or in pages.

use crate::{
    End,
    arguments::{self, TableStyle},
    bundled::{self, Head, Located},
    output,
};
use clap::Parser;
use incast_lab::{
    VERSION,
    results::{
        compact::{self, Layout, Table},
        read::{self, Summary},
    },
    run::{
        Plan, RunError,
        only::Only,
        state::{State, first_digests},
    },
    scenario::{Form, Scenario},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The marks of a page before and after a table; between `BEGIN` and `CLOSE` stand the scenario's name and the options.
const BEGIN: &str = "<!-- incast table ";
const CLOSE: &str = "-->";
/// In a mark of the end: the page says itself that the table is stale, and since when.
const STALE: &str = ", stale since ";
/// Of a bundled scenario a state follows, then `CLOSE`.
const END: &str = "<!-- end of table";

/// Options in a page.
#[derive(Debug, Parser)]
#[command(name = "incast table", no_binary_name = true)]
struct InPage {
    /// Name of the scenario.
    scenario: String,
    /// What it shows.
    #[command(flatten)]
    style: TableStyle,
}

/// Prints tables, or rewrites those in pages.
pub fn table(arguments: &arguments::Table) -> End {
    if !arguments.check.is_empty() {
        return check(&arguments.check);
    }
    // clap insists on one of both.
    let folder = arguments.folder.clone().unwrap_or_default();
    let summary = match read::summary(&folder) {
        Ok(summary) => summary,
        Err(error) => {
            output::error(&error);
            return End::BadInput;
        }
    };
    if !arguments.update.is_empty() {
        return update(&summary, arguments);
    }
    match tables(&summary, &arguments.style) {
        Ok(tables) => {
            output::data(&if arguments.markdown { page(&summary, &tables) } else { terminal(&summary, &tables) });
            End::Done
        }
        Err(message) => {
            output::error(&message);
            End::BadInput
        }
    }
}

fn tables(summary: &Summary, style: &TableStyle) -> Result<Vec<Table>, String> {
    let columns = if style.columns.is_empty() { &summary.columns } else { &style.columns };
    if columns.is_empty() {
        return Err(format!("{} has no [table] columns: --columns says which numbers", summary.name));
    }
    if let Some(column) = columns.iter().find(|column| !summary.rows.iter().any(|row| row.class == column.class)) {
        let mut classes: Vec<&str> = summary.rows.iter().map(|row| row.class.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        return Err(format!("there is no class {:?}, classes are {}", column.class, classes.join(", ")));
    }
    let layout = if style.by_number { Layout::ByNumber } else { Layout::ByPoint };
    Ok(compact::tables(&summary.rows, columns, layout))
}

fn terminal(summary: &Summary, tables: &[Table]) -> String {
    format!("{}\n{}", summary.provenance, compact::text(tables, output::width()))
}

fn page(summary: &Summary, tables: &[Table]) -> String {
    format!("{}\n{}.\n", compact::markdown(tables), summary.provenance)
}

/// A bundled scenario as it is now.
struct Bundled {
    /// As `incast run` knows it.
    name: String,
    full: Plan,
    state: State,
}

/// The bundled scenario that has this name in its head; `None` if there is none.
fn bundled(name: &str) -> Result<Option<Bundled>, RunError> {
    let mut scenarios = bundled::files().iter().filter(|(path, _)| path.ends_with(".toml"));
    let head = |content: &[u8]| Head::of(&String::from_utf8_lossy(content));
    let Some((path, _)) = scenarios.find(|(_, content)| head(content).name == name) else { return Ok(None) };
    let mut located = Located::default();
    let file = located.bundled(path)?;
    let plan = |form| Plan::new(Scenario::load_form(&file, &[], form)?, None, &Only::default());
    let full = plan(Form::Full)?;
    let state = State::of(&full, &plan(Form::Short)?)?;
    Ok(Some(Bundled { name: path.trim_end_matches(".toml").to_owned(), full, state }))
}

/// The mark after tables of these results. They have to be what this incast makes of the scenario as it is, as whoever
/// reads the page takes them for that. Results of another version are, if their first runs are the same.
fn end_mark(summary: &Summary) -> Result<String, String> {
    let found = bundled(&summary.name).map_err(|error| error.to_string())?;
    let Some(Bundled { name, full, state }) = found else { return Ok(format!("{END} {CLOSE}")) };
    let again = format!("run it again: incast run {name}");
    if !state.is_of(&summary.scenario_hash) {
        return Err(format!("the results are not of the bundled scenario as it is: {again}"));
    }
    if summary.version != VERSION {
        for first in first_digests(&full) {
            let (run, digest) = first.map_err(|error| error.to_string())?;
            if summary.digests.get(run) != Some(&digest) {
                return Err(format!("{run}: incast {VERSION} has another result than {}: {again}", summary.version));
            }
        }
    }
    Ok(format!("{END}: {state} {CLOSE}"))
}

/// All pages are made before any is written.
fn update(summary: &Summary, arguments: &arguments::Table) -> End {
    let end = match end_mark(summary) {
        Ok(end) => end,
        Err(message) => {
            output::error(&message);
            return End::BadInput;
        }
    };
    let mut pages = Vec::new();
    for path in &arguments.update {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
        match text.and_then(|text| rewritten(&text, summary, &end)) {
            Ok(text) => pages.push((path, text)),
            Err(message) => {
                output::error(&format!("{}: {message}", path.display()));
                return End::BadInput;
            }
        }
    }
    for (path, (text, count)) in pages {
        if let Err(error) = write(path, &text) {
            output::error(&format!("{}: {error}", path.display()));
            return End::Failed;
        }
        output::data(&format!("{}: {count} table{}\n", path.display(), if count == 1 { "" } else { "s" }));
    }
    End::Done
}

/// Says which tables of these pages are stale: those of a bundled scenario whose state is another one now. A page may say so
/// itself, in the mark after the table: that is a warning.
fn check(pages: &[PathBuf]) -> End {
    let mut known: BTreeMap<String, Option<Bundled>> = BTreeMap::new();
    let (mut stale, mut said, mut count) = (0, 0, 0);
    for path in pages {
        let result = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
        let marks = match result.and_then(|text| tables_of(&text)) {
            Ok(marks) => marks,
            Err(message) => {
                output::error(&format!("{}: {message}", path.display()));
                return End::BadInput;
            }
        };
        for (line, name, end) in marks {
            count += 1;
            if !known.contains_key(&name) {
                match bundled(&name) {
                    Ok(found) => known.insert(name.clone(), found),
                    Err(error) => {
                        output::error(&error);
                        return End::Failed;
                    }
                };
            }
            let page = path.display();
            let (expected, message) = match known.get(&name).and_then(Option::as_ref) {
                None => (format!("{END} {CLOSE}"), format!("there is no bundled scenario {name}")),
                Some(Bundled { name: path_name, state, .. }) => (
                    format!("{END}: {state} {CLOSE}"),
                    format!(
                        "the table of {name} is stale, as it is now of {state}: incast run {path_name}, then incast \
                         table results/{name} --update {page}"
                    ),
                ),
            };
            match end.split_once(STALE) {
                Some((before, _)) if format!("{before} {CLOSE}") == expected => {
                    stale += 1;
                    output::error(&format!("{page}: line {line}: the table of {name} is said to be stale, and is not"));
                }
                Some(_) => {
                    said += 1;
                    output::message(&format!("warning: {page}: line {line}: {message}"));
                }
                None if end != expected => {
                    stale += 1;
                    output::error(&format!("{page}: line {line}: {message}"));
                }
                None => {}
            }
        }
    }
    let tables = if count == 1 { "table" } else { "tables" };
    output::data(&format!("{count} {tables}, {stale} stale, {said} stale as the page says\n"));
    if stale == 0 { End::Done } else { End::Failed }
}

/// The tables of a page: line, scenario, and the mark at the end.
fn tables_of(text: &str) -> Result<Vec<(usize, String, String)>, String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        if let Some(after) = line.strip_prefix(BEGIN) {
            let name = after.split_whitespace().next().unwrap_or_default();
            found.push((number + 1, name.to_owned(), String::new()));
        } else if line.starts_with(END) {
            let open = found.last_mut().filter(|(_, _, end)| end.is_empty());
            open.ok_or_else(|| format!("line {}: a table ends that has not begun", number + 1))?.2 = line.to_owned();
        }
    }
    Ok(found)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    incast_lab::atomic::write(path, |file| std::io::Write::write_all(file, text.as_bytes()))
}

/// The page with the tables of these results made anew, and how many these are.
fn rewritten(text: &str, summary: &Summary, end_mark: &str) -> Result<(String, usize), String> {
    let (mut page, mut rest, mut count) = (String::new(), text, 0);
    while let Some(begin) = rest.find(BEGIN) {
        let before = &text[..text.len() - rest.len() + begin];
        if before.lines().filter(|line| line.starts_with("```")).count() % 2 == 1 {
            // Code that shows what a mark looks like.
            page.push_str(&rest[..begin + BEGIN.len()]);
            rest = &rest[begin + BEGIN.len()..];
            continue;
        }
        let line = before.lines().count() + 1;
        let at = |message: String| format!("line {line}: {message}");
        let after = &rest[begin + BEGIN.len()..];
        let close = after.find(CLOSE).ok_or_else(|| at(format!("the comment has no {CLOSE}")))?;
        let body = &after[close + CLOSE.len()..];
        let end = body.find(END).ok_or_else(|| at(format!("the table has no {END} {CLOSE}")))?;
        let after_end = body[end..].find(CLOSE).ok_or_else(|| at(format!("the end of the table has no {CLOSE}")))?;
        let after_end = end + after_end + CLOSE.len();
        if body[..end].contains(BEGIN) {
            return Err(at(format!("another table begins before {END}")));
        }
        page.push_str(&rest[..begin + BEGIN.len() + close + CLOSE.len()]);
        let options = InPage::try_parse_from(after[..close].split_whitespace())
            .map_err(|error| at(error.to_string().trim_end().to_owned()))?;
        if options.scenario == summary.name {
            let tables = tables(summary, &options.style).map_err(at)?;
            page.push_str(&format!("\n\n{}\n{end_mark}", self::page(summary, &tables)));
            count += 1;
        } else {
            page.push_str(&body[..after_end]);
        }
        rest = &body[after_end..];
    }
    page.push_str(rest);
    if count == 0 {
        return Err(format!("has no table of {0}: none begins with {BEGIN}{0} {CLOSE}", summary.name));
    }
    Ok((page, count))
}
