//! Parquet traces. Columns may be of any integer or string type.

use super::trace_rows::{COLUMNS, LIMIT, Row, STARTS, TraceError, both, start_of, too_many};
use crate::columns::{Rows, count_rows, each_group};
use std::{io, path::Path};

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<Row>, TraceError> {
    let mut rows = Vec::new();
    let mut fill = || {
        let count = count_rows(path)?;
        if count > LIMIT {
            return Err(Failure::Trace(too_many(&count.to_string())));
        }
        each_group(path, |group| rows_of(group, &mut rows))
    };
    fill().map_err(|failure| match failure {
        Failure::Trace(error) => error,
        Failure::File(error) => fail(0, format!("{} cannot be read: {error}", path.display())),
    })?;
    Ok(rows)
}

/// Why a trace is refused: its file, or what stands in it.
enum Failure {
    File(io::Error),
    Trace(TraceError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

fn fail(line: usize, message: String) -> TraceError {
    TraceError { line, message }
}

fn rows_of(group: &Rows<'_>, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let find = |names: &[&'static str]| -> Result<&'static str, TraceError> {
        names.iter().copied().find(|name| group.has(name)).ok_or_else(|| {
            let names = names.join("` or `");
            fail(0, format!("no column `{names}`, allowed are {COLUMNS}"))
        })
    };
    let optional = |name: &str| -> Result<Vec<Option<String>>, Failure> {
        Ok(if group.has(name) { strings(group, name)? } else { Vec::new() })
    };
    let (sources, destinations) = (strings(group, find(&["src"])?)?, strings(group, find(&["dst"])?)?);
    let sizes = numbers(group, find(&["bytes", "size_bytes"])?)?;
    let (classes, paths, reverse_paths) = (optional("class")?, optional("path")?, optional("reverse_path")?);
    let name = find(&STARTS.map(|(name, _)| name))?;
    let column = STARTS.into_iter().find(|(other, _)| *other == name).unwrap_or(STARTS[0]);
    // Numbers with a fraction become the digits that stand for them, which are read like those of a CSV.
    let starts = match group.f64s(name) {
        Ok(reals) => reals.into_iter().map(|real| real.map(|real| real.to_string())).collect(),
        Err(_) => strings(group, name)?,
    };
    for index in 0..sources.len() {
        let line = rows.len() + 1;
        let at = |column: &[Option<String>]| column.get(index).cloned().flatten();
        let empty = || {
            let allowed = "start, src, dst and bytes in every row";
            fail(line, format!("found an empty cell, allowed are {allowed}"))
        };
        let start = start_of(column, &at(&starts).ok_or_else(empty)?).map_err(|message| fail(line, message))?;
        let (path, reverse_path) = (at(&paths).unwrap_or_default(), at(&reverse_paths).unwrap_or_default());
        rows.push(Row {
            line,
            start,
            source: at(&sources).ok_or_else(empty)?,
            destination: at(&destinations).ok_or_else(empty)?,
            bytes: sizes.get(index).copied().flatten().ok_or_else(empty)?,
            class: at(&classes),
            paths: both(&path, &reverse_path).map_err(|message| fail(line, message))?,
        });
    }
    Ok(())
}

fn strings(group: &Rows<'_>, name: &str) -> Result<Vec<Option<String>>, TraceError> {
    group.strings(name).map_err(|error| fail(0, error.to_string()))
}

fn numbers(group: &Rows<'_>, name: &str) -> Result<Vec<Option<u64>>, TraceError> {
    group.u64s(name).map_err(|error| fail(0, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{strings, u32s, u64s, write};
    use incast_units::Time;

    #[test]
    fn the_results_of_a_run_are_a_trace() {
        let path = std::env::temp_dir().join(format!("incast-trace-{}.parquet", std::process::id()));
        let columns = [
            u32s("source", |_: &()| 3),
            strings("class", |_: &()| "web".into()),
            u32s("src", |_: &()| 3),
            u32s("dst", |_: &()| 4),
            u64s("size_bytes", |_: &()| 1000),
            u64s("start_ps", |_: &()| 77),
        ];
        write(&path, &[()], &columns, &[]).expect("written");
        let rows = read(&path);
        std::fs::write(&path, b"PAR1 and then not").expect("written");
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(
            rows,
            Ok(vec![Row {
                line: 1,
                start: Time::from_ps(77),
                source: "3".into(),
                destination: "4".into(),
                bytes: 1000,
                class: Some("web".into()),
                paths: None,
            }])
        );
    }
}
