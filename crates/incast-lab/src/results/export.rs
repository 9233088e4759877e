//! A table of all runs of a results folder in one file, with columns for scheme, seed and grid point.

use super::{RunRecord, record::Status, runs};
use crate::{
    columns::join::{self, Cell, FileError, Part},
    text::json,
};
use serde_json::Value;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Names of the tables of a run that can be joined.
pub const TABLES: [&str; 5] = ["flows", "requests", "ports", "rates", "events"];

/// Format of a joint table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// CSV.
    Csv,
}

impl Format {
    /// The format that a name stands for by its ending.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Joins a table of the finished runs in `folder`; the number of runs and of rows. Failed runs are left out, as in the
/// summary.
///
/// # Errors
/// Missing or damaged results, runs of different scenarios, and those of the file system.
pub fn export(folder: &Path, table: &str, out: &Path, format: Format) -> Result<(usize, u64), FileError> {
    let wrong = |path: &Path, why: String| FileError {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, why),
    };
    let mut found = runs::read(folder)?;
    found.retain(|(_, record)| record.status == Status::Done);
    let Some((first_folder, first)) = found.first().cloned() else {
        let why = "holds no finished runs; expected the folder that `incast run` names as \"results\"";
        return Err(wrong(folder, why.into()));
    };
    let differs = |record: &RunRecord| {
        (&record.version, &record.scenario_hash) != (&first.version, &first.scenario_hash)
    };
    if let Some((other, _)) = found.iter().find(|(_, record)| differs(record)) {
        let why = format!("is of another scenario or version of incast than {}", first_folder.display());
        return Err(wrong(other, why));
    }
    let axes: Vec<&String> = first.grid.keys().collect();
    let kinds: Vec<Kind> = axes
        .iter()
        .map(|axis| found.iter().filter_map(|(_, record)| record.grid.get(*axis)).map(Kind::of).max())
        .map(Option::unwrap_or_default)
        .collect();
    let file = |folder: &PathBuf| folder.join(format!("{table}.parquet"));
    let parts: Vec<Part> = found
        .iter()
        .filter(|(folder, _)| file(folder).is_file())
        .map(|(folder, record)| {
            let own = [Cell::Text(record.scheme.clone()), Cell::Whole(record.seed)];
            let point = axes.iter().zip(&kinds);
            let point = point.map(|(axis, kind)| kind.cell(record.grid.get(*axis).unwrap_or(&Value::Null)));
            Part { path: file(folder), cells: own.into_iter().chain(point).collect() }
        })
        .collect();
    if parts.is_empty() {
        return Err(wrong(
            folder,
            format!("no run has {table}.parquet; [measure] asks for samples and events"),
        ));
    }
    let names = ["scheme", "seed"].map(str::to_owned).into_iter();
    let names: Vec<String> = names.chain(axes.iter().map(|axis| format!("grid.{axis}"))).collect();
    let rows = match format {
        Format::Parquet => {
            let about = [
                ("incast.version", first.version.clone()),
                (
                    "incast.scenario",
                    first.scenario.get("name").and_then(Value::as_str).unwrap_or("").to_owned(),
                ),
                ("incast.scenario_hash", first.scenario_hash.clone()),
            ];
            join::parquet(out, &names, &parts, &about)
        }
        Format::Csv => join::csv(out, &names, &parts),
    }?;
    Ok((parts.len(), rows))
}

/// What the cells of an axis are: whole numbers if all values are, otherwise numbers, otherwise texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Whole,
    Real,
    #[default]
    Text,
}

impl Kind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Number(number) if number.is_u64() => Self::Whole,
            Value::Number(_) => Self::Real,
            _ => Self::Text,
        }
    }

    fn cell(self, value: &Value) -> Cell {
        match (self, value.as_u64(), value.as_f64()) {
            (Self::Whole, Some(number), _) => Cell::Whole(number),
            (Self::Real, _, Some(number)) => Cell::Real(number),
            _ => Cell::Text(json(value)),
        }
    }
}
