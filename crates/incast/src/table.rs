//! `incast table`: numbers of a summary, one line for each scheme, on the terminal or in pages.

use crate::{
    End,
    arguments::{self, TableStyle},
    output,
};
use clap::Parser;
use incast_lab::{
    report::{self, Summary},
    results::compact::{self, Layout, Table},
};
use std::{fs, path::Path};

/// The marks of a page before and after a table; between `BEGIN` and `CLOSE` stand the scenario's name and the options.
const BEGIN: &str = "<!-- incast table ";
const CLOSE: &str = "-->";
const END: &str = "<!-- end of table -->";

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
    let summary = match report::summary(&arguments.folder) {
        Ok(summary) => summary,
        Err(error) => {
            output::error(&error);
            return if error.is_bad_input() { End::BadInput } else { End::Failed };
        }
    };
    if !arguments.update.is_empty() {
        return update(&summary, arguments);
    }
    match tables(&summary, &arguments.style) {
        Ok(tables) => {
            output::data(&if arguments.markdown {
                page(&summary, &tables)
            } else {
                terminal(&summary, &tables)
            });
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
    if let Some(column) =
        columns.iter().find(|column| !summary.rows.iter().any(|row| row.class == column.class))
    {
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

/// All pages are made before any is written.
fn update(summary: &Summary, arguments: &arguments::Table) -> End {
    let mut pages = Vec::new();
    for path in &arguments.update {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
        match text.and_then(|text| rewritten(&text, summary)) {
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

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    incast_lab::atomic::write(path, |file| std::io::Write::write_all(file, text.as_bytes()))
}

/// The page with the tables of these results made anew, and how many these are.
fn rewritten(text: &str, summary: &Summary) -> Result<(String, usize), String> {
    let (mut page, mut rest, mut count) = (String::new(), text, 0);
    while let Some(begin) = rest.find(BEGIN) {
        let line = text.len() - rest.len() + begin;
        let line = text[..line].lines().count() + 1;
        let at = |message: String| format!("line {line}: {message}");
        let after = &rest[begin + BEGIN.len()..];
        let close = after.find(CLOSE).ok_or_else(|| at(format!("the comment has no {CLOSE}")))?;
        let body = &after[close + CLOSE.len()..];
        let end = body.find(END).ok_or_else(|| at(format!("the table has no {END}")))?;
        if body[..end].contains(BEGIN) {
            return Err(at(format!("another table begins before {END}")));
        }
        page.push_str(&rest[..begin + BEGIN.len() + close + CLOSE.len()]);
        let options = InPage::try_parse_from(after[..close].split_whitespace())
            .map_err(|error| at(error.to_string().trim_end().to_owned()))?;
        if options.scenario == summary.name {
            let tables = tables(summary, &options.style).map_err(at)?;
            page.push_str(&format!("\n\n{}\n", self::page(summary, &tables)));
            count += 1;
        } else {
            page.push_str(&body[..end]);
        }
        page.push_str(END);
        rest = &body[end + END.len()..];
    }
    page.push_str(rest);
    if count == 0 {
        return Err(format!("has no table of {0}: none begins with {BEGIN}{0} {CLOSE}", summary.name));
    }
    Ok((page, count))
}
