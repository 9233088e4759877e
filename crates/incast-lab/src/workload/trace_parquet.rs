//! Parquet traces. Columns may be of any integer or string type.

use super::trace::{LIMIT, Row, TraceError, both};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    compute::cast,
    datatypes::{DataType, UInt64Type},
};
use incast_units::Time;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<Row>, TraceError> {
    let fail = |error: &dyn std::fmt::Display| TraceError {
        line: 0,
        message: format!("{} cannot be read: {error}", path.display()),
    };
    let file = std::fs::File::open(path).map_err(|error| fail(&error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|error| fail(&error))?;
    let mut rows = Vec::new();
    for batch in reader {
        rows_of(&batch.map_err(|error| fail(&error))?, &mut rows)?;
        if rows.len() > LIMIT {
            return Err(TraceError { line: rows.len(), message: format!("found more than {LIMIT} flows") });
        }
    }
    Ok(rows)
}

fn rows_of(batch: &RecordBatch, rows: &mut Vec<Row>) -> Result<(), TraceError> {
    let fail = |line: usize, message: String| TraceError { line, message };
    let column = |names: &[&str], kind: &DataType| -> Result<ArrayRef, TraceError> {
        let found = names.iter().find_map(|name| batch.column_by_name(name));
        let found = found.ok_or_else(|| {
            fail(
                0,
                format!(
                    "no column `{}`, allowed are start (or start_ps), src, dst, bytes (or size_bytes), class",
                    names.join("` or `")
                ),
            )
        })?;
        cast(found, kind).map_err(|error| fail(0, format!("column `{}`: {error}", names.join("` or `"))))
    };
    let sources = column(&["src"], &DataType::Utf8)?;
    let destinations = column(&["dst"], &DataType::Utf8)?;
    let sizes = column(&["bytes", "size_bytes"], &DataType::UInt64)?;
    let classes = if batch.column_by_name("class").is_some() {
        Some(column(&["class"], &DataType::Utf8)?)
    } else {
        None
    };
    let optional = |name: &str| match batch.column_by_name(name) {
        Some(_) => column(&[name], &DataType::Utf8).map(Some),
        None => Ok(None),
    };
    let (paths, reverse_paths) = (optional("path")?, optional("reverse_path")?);
    let in_ps = batch.column_by_name("start").is_none();
    let starts = column(&["start", "start_ps"], if in_ps { &DataType::UInt64 } else { &DataType::Utf8 })?;
    for index in 0..batch.num_rows() {
        let line = rows.len() + 1;
        if [&sources, &destinations, &sizes, &starts].into_iter().any(|column| column.is_null(index)) {
            return Err(fail(
                line,
                format!(
                    "row {line}: found an empty cell, allowed are start, src, dst and bytes in every row"
                ),
            ));
        }
        let text = |column: &ArrayRef| column.as_string::<i32>().value(index).to_owned();
        let given = |column: &Option<ArrayRef>| {
            column.as_ref().filter(|column| !column.is_null(index)).map(text).unwrap_or_default()
        };
        let start = if in_ps {
            Time::from_ps(starts.as_primitive::<UInt64Type>().value(index))
        } else {
            text(&starts).parse().map_err(|error| fail(line, format!("row {line}: start: {error}")))?
        };
        rows.push(Row {
            start,
            source: text(&sources),
            destination: text(&destinations),
            bytes: sizes.as_primitive::<UInt64Type>().value(index),
            class: classes.as_ref().filter(|column| !column.is_null(index)).map(text),
            ways: both(&given(&paths), &given(&reverse_paths))
                .map_err(|message| fail(line, format!("row {line}: {message}")))?,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{StringArray, UInt32Array, UInt64Array};
    use std::sync::Arc;

    #[test]
    fn the_results_of_a_run_are_a_trace() {
        let batch = RecordBatch::try_from_iter([
            ("source", Arc::new(UInt32Array::from(vec![3])) as ArrayRef),
            ("class", Arc::new(StringArray::from(vec!["web"]))),
            ("src", Arc::new(UInt32Array::from(vec![3]))),
            ("dst", Arc::new(UInt32Array::from(vec![4]))),
            ("size_bytes", Arc::new(UInt64Array::from(vec![1000]))),
            ("start_ps", Arc::new(UInt64Array::from(vec![77]))),
        ])
        .expect("a batch");
        let path = std::env::temp_dir().join(format!("incast-trace-{}.parquet", std::process::id()));
        let file = std::fs::File::create(&path).expect("a file");
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("written");
        writer.close().expect("closed");
        let rows = read(&path);
        std::fs::write(&path, b"PAR1 and then not").expect("written");
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(
            rows,
            Ok(vec![Row {
                start: Time::from_ps(77),
                source: "3".into(),
                destination: "4".into(),
                bytes: 1000,
                class: Some("web".into()),
                ways: None,
            }])
        );
    }
}
