//! `incast table`: numbers of a summary, one line for each scheme, on the terminal or in [pages].

use crate::{
    End,
    arguments::{self, TableStyle},
    output, pages,
};
use incast_lab::{
    results::{
        claims::judge,
        compact::{self, Layout, Table},
        read::{self, Summary},
        row::Row,
    },
    run::only::Only,
};

/// Prints tables, or rewrites those in pages.
pub fn table(arguments: &arguments::Table) -> End {
    if !arguments.check.is_empty() {
        return pages::check(&arguments.check);
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
        return pages::update(&summary, &arguments.update, &|style| Ok(page(&summary, &tables(&summary, style)?)));
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
    if style.claims {
        return claims(summary, style);
    }
    // Those that are asked for, or of the scenario, or else what its verdict is about.
    let all = [&style.columns, &summary.columns, &summary.judged];
    let Some(columns) = all.into_iter().find(|columns| !columns.is_empty()) else {
        let message = "has no [table] columns, and its verdict judges no number: --columns says which numbers";
        return Err(format!("{} {message}", summary.name));
    };
    let pooled: Vec<Row> = summary.rows.iter().filter(|row| row.is_pooled()).cloned().collect();
    let rows = Only::parse(&style.only).and_then(|only| only.select(pooled)).map_err(|error| error.to_string())?;
    if rows.is_empty() {
        return Err(format!("{} has no row of {}", summary.name, style.only.join(" ")));
    }
    if let Some(column) = columns.iter().find(|column| !rows.iter().any(|row| row.class == column.class)) {
        let mut classes: Vec<&str> = rows.iter().map(|row| row.class.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        return Err(format!("there is no class {:?}, classes are {}", column.class, classes.join(", ")));
    }
    let layout = if style.by_number { Layout::ByNumber } else { Layout::ByPoint };
    Ok(compact::tables(&rows, columns, layout))
}

/// What was published beside what was measured; of claims about some of the grid points and schemes, if `only` names some.
fn claims(summary: &Summary, style: &TableStyle) -> Result<Vec<Table>, String> {
    let only = Only::parse(&style.only).map_err(|error| error.to_string())?;
    let rows = only.select(summary.rows.clone()).map_err(|error| error.to_string())?;
    match judge(&summary.claims, &rows)[..] {
        [] => Err(format!("{} has no claims about these results", summary.name)),
        ref judged => Ok(compact::claims(judged)),
    }
}

fn terminal(summary: &Summary, tables: &[Table]) -> String {
    format!("{}\n{}", summary.provenance, compact::text(tables, output::width()))
}

fn page(summary: &Summary, tables: &[Table]) -> String {
    format!("{}\n{}.\n", compact::markdown(tables), summary.provenance)
}
