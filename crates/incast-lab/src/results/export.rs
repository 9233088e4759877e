//! A table of all runs of a results folder in one file, with columns for scheme, seed and grid point.

use super::{RunRecord, record::Status, runs};
pub use crate::columns::join::{Cell, Part};

use crate::{
    columns::join::{self, FileError},
    text::json,
};
use serde_json::{Map, Value};
use std::{io, path::Path};

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

/// A table of all finished runs: the file of each run, and what its rows get beside the file's own columns.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Names of the further columns, which come first.
    pub names: Vec<String>,
    /// The runs that have the table.
    pub parts: Vec<Part>,
    /// Version, name and hash of the scenario, for the file's metadata.
    pub about: Vec<(&'static str, String)>,
    /// The runs are of a build that wrote no checksums.
    pub unverified: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Runs that have the table.
    pub runs: usize,
    /// Rows of the joint table.
    pub rows: u64,
    /// The runs are of a build that wrote no checksums.
    pub unverified: bool,
}

/// Joins a table of the finished runs in `folder`.
///
/// # Errors
/// Those of [`joint`], and of the file system.
pub fn export(folder: &Path, table: &str, out: &Path, format: Format) -> Result<Exported, FileError> {
    let Joint { names, parts, about, unverified } = joint(folder, table)?;
    if parts.is_empty() {
        return Err(invalid(folder, missing(table)));
    }
    let rows = match format {
        Format::Parquet => join::parquet(out, &names, &parts, &about),
        Format::Csv => join::csv(out, &names, &parts),
    }?;
    Ok(Exported { runs: parts.len(), rows, unverified })
}

fn invalid(path: &Path, why: String) -> FileError {
    FileError { path: path.to_owned(), source: io::Error::new(io::ErrorKind::InvalidData, why) }
}

/// Why no run has a table.
pub fn missing(table: &str) -> String {
    let why = match table {
        "requests" => "no flows of a workload belong together",
        _ => "[measure] asks for samples and events",
    };
    format!("no run has {table}.parquet; {why}")
}

/// A table of the finished runs in `folder`. Failed runs are left out, as in the summary.
///
/// # Errors
/// Missing or damaged results, runs of different scenarios.
pub fn joint(folder: &Path, table: &str) -> Result<Joint, FileError> {
    let found = runs::read(folder)?;
    let unverified = found.is_unverified();
    let mut found = found.runs;
    found.retain(|(_, record)| record.status == Status::Done);
    let Some((first_folder, first)) = found.first().cloned() else {
        let why = "holds no finished runs; expected the folder that `incast run` names as \"results\"";
        return Err(invalid(folder, why.into()));
    };
    let differs =
        |record: &RunRecord| (&record.version, &record.scenario_hash) != (&first.version, &first.scenario_hash);
    if let Some((other, _)) = found.iter().find(|(_, record)| differs(record)) {
        let why = format!("is of another scenario or version of incast than {}", first_folder.display());
        return Err(invalid(other, why));
    }
    let axes: Vec<&String> = first.grid.keys().collect();
    let points: Vec<&Map<String, Value>> = found.iter().map(|(_, record)| &record.grid).collect();
    let cells = point_cells(&points);
    let file = format!("{table}.parquet");
    let mut parts = Vec::new();
    for ((folder, record), point) in found.iter().zip(cells) {
        if record.has(folder, &file)? {
            let own = [Cell::Text(record.scheme.clone()), Cell::Whole(record.seed)];
            parts.push(Part { path: folder.join(&file), cells: own.into_iter().chain(point).collect() });
        }
    }
    let names = ["scheme", "seed"].map(str::to_owned).into_iter();
    let names: Vec<String> = names.chain(axes.iter().map(|axis| format!("grid.{axis}"))).collect();
    let name = first.scenario.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    let about = vec![
        ("incast.version", first.version),
        ("incast.scenario", name),
        ("incast.scenario_hash", first.scenario_hash),
    ];
    Ok(Joint { names, parts, about, unverified })
}

/// The values of grid points as cells, one for each axis of the first point. An axis has cells of one kind.
pub fn point_cells(points: &[&Map<String, Value>]) -> Vec<Vec<Cell>> {
    let axes: Vec<&String> = points.first().map(|point| point.keys().collect()).unwrap_or_default();
    let kind =
        |axis: &&String| points.iter().filter_map(|point| point.get(*axis)).map(Kind::of).max().unwrap_or_default();
    let kinds: Vec<Kind> = axes.iter().map(kind).collect();
    let cells = |point: &&Map<String, Value>| {
        let axes = axes.iter().zip(&kinds);
        axes.map(|(axis, kind)| kind.cell(point.get(*axis).unwrap_or(&Value::Null))).collect()
    };
    points.iter().map(cells).collect()
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
