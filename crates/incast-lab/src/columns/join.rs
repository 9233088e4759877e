//! The rows of several files with equal columns as one table, each with some cells before its own.
//!
//! The columns of a Parquet file are copied as they are stored, and a CSV is made of some rows at a time, so that
//! memory does not depend on the number of rows.

use super::{About, CHUNK, open, properties, unusable, utf8};
use crate::atomic;
use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    column::{
        reader::{ColumnReader, get_typed_column_reader},
        writer::ColumnCloseResult,
    },
    data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::ColumnChunkMetaData,
        reader::{FileReader, SerializedFileReader},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::Type,
};
use std::{
    fmt::Display,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};
use thiserror::Error;

/// A cell that all rows of a file get.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
}

impl Cell {
    fn field(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match self {
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Whole(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Self::Real(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        field.with_logical_type(logical).build().map(Arc::new)
    }

    fn write(&self, rows: usize, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Text(text) => repeat::<ByteArrayType>(text.as_str().into(), rows, writer),
            Self::Whole(number) => repeat::<Int64Type>(number.cast_signed(), rows, writer),
            Self::Real(number) => repeat::<DoubleType>(*number, rows, writer),
        }
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
        }
    }
}

fn repeat<D: DataType>(
    value: D::T,
    mut rows: usize,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let values = vec![value; rows.min(CHUNK)];
    while rows > 0 {
        let now = rows.min(CHUNK);
        writer.typed::<D>().write_batch(&values[..now], None, None)?;
        rows -= now;
    }
    Ok(())
}

/// A file and the cells of its rows, one for each name.
#[derive(Clone, Debug)]
pub struct Part {
    /// The Parquet file.
    pub path: PathBuf,
    /// What its rows get.
    pub cells: Vec<Cell>,
}

/// Something is wrong with a file.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// The columns that all files have; `None` of no files. One file is open at a time, as there may be more than a process may
/// have open.
fn common_columns(parts: &[Part]) -> Result<Option<Vec<Arc<Type>>>, FileError> {
    let mut common: Option<Vec<Arc<Type>>> = None;
    for part in parts {
        let at_fault = |source| FileError { path: part.path.clone(), source };
        let reader = open(&part.path).map_err(at_fault)?;
        let own = reader.metadata().file_metadata().schema().get_fields();
        if common.as_ref().is_some_and(|common| common != own) {
            let why = format!("has other columns than {}", parts[0].path.display());
            return Err(at_fault(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        common.get_or_insert_with(|| own.to_vec());
    }
    Ok(common)
}

/// Writes the joint table as Parquet; the number of its rows. `names` are those of the added columns.
///
/// # Errors
/// A part that cannot be read or has other columns, and those of the file system.
pub fn parquet(out: &Path, names: &[String], parts: &[Part], about: &About) -> Result<u64, FileError> {
    let columns = common_columns(parts)?;
    let failed = |error: &dyn Display| FileError { path: out.to_owned(), source: io::Error::other(error.to_string()) };
    let added = parts.first().into_iter().flat_map(|part| &part.cells).zip(names);
    let mut fields = added.map(|(cell, name)| cell.field(name)).collect::<Result<Vec<_>, _>>();
    if let (Ok(fields), Some(columns)) = (&mut fields, columns) {
        fields.extend(columns);
    }
    let schema = fields.and_then(|fields| Type::group_type_builder("schema").with_fields(fields).build());
    let schema = Arc::new(schema.map_err(|error| failed(&error))?);
    let (mut rows, mut at_fault) = (0, None);
    let written = atomic::write(out, |file| {
        let mut writer = SerializedFileWriter::new(file, schema, properties(about)).map_err(io::Error::other)?;
        for part in parts {
            at_fault = Some(part.path.clone());
            rows += copy(part, &open(&part.path)?, &mut writer)?;
        }
        at_fault = None;
        writer.close().map(drop).map_err(io::Error::other)
    });
    written.map_err(|source| at_fault_of(at_fault, out, source))?;
    Ok(rows)
}

/// The file at fault: a part, but where it is the disk that is written to.
fn at_fault_of(part: Option<PathBuf>, out: &Path, source: io::Error) -> FileError {
    let part = part.filter(|_| !matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded));
    FileError { path: part.unwrap_or_else(|| out.to_owned()), source }
}

/// Appends the rows of a file.
fn copy<W: Write + Send>(
    part: &Part,
    reader: &SerializedFileReader<File>,
    writer: &mut SerializedFileWriter<W>,
) -> io::Result<u64> {
    let file = File::open(&part.path)?;
    let length = file.metadata()?.len();
    let mut sum = 0;
    for group in reader.metadata().row_groups() {
        let rows = usize::try_from(group.num_rows()).map_err(io::Error::other)?;
        let mut out = writer.next_row_group().map_err(io::Error::other)?;
        for cell in &part.cells {
            let Some(mut column) = out.next_column().map_err(io::Error::other)? else { break };
            cell.write(rows, &mut column).and_then(|()| column.close()).map_err(io::Error::other)?;
        }
        for column in group.columns() {
            check_place(column, length)?;
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size().unsigned_abs(),
                rows_written: rows as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            out.append_column(&file, close).map_err(io::Error::other)?;
        }
        out.close().map_err(io::Error::other)?;
        sum += rows as u64;
    }
    Ok(sum)
}

/// A column that claims to lie outside of its file is not copied.
fn check_place(column: &ColumnChunkMetaData, length: u64) -> io::Result<()> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let end = start.checked_add(column.compressed_size());
    let is_inside = start >= 0
        && column.data_page_offset() >= start
        && end.is_some_and(|end| end >= start && u64::try_from(end).is_ok_and(|end| end <= length));
    let name = column.column_path().string();
    if is_inside { Ok(()) } else { Err(unusable(&name, "it lies outside of the file".into())) }
}

/// Writes the joint table as CSV; the number of its rows. Cells without a value are empty.
///
/// # Errors
/// A part that cannot be read or has other columns, and those of the file system.
pub fn csv(out: &Path, names: &[String], parts: &[Part]) -> Result<u64, FileError> {
    let columns = common_columns(parts)?;
    let (mut rows, mut at_fault) = (0, None);
    let written = atomic::write(out, |file| {
        let mut writer = csv::Writer::from_writer(BufWriter::new(file));
        let columns = columns.iter().flatten().map(|column| column.name().to_owned());
        let header = names.iter().cloned().chain(columns);
        writer.write_record(header)?;
        for part in parts {
            at_fault = Some(part.path.clone());
            let reader = open(&part.path)?;
            let before: Vec<String> = part.cells.iter().map(Cell::to_string).collect();
            for index in 0..reader.num_row_groups() {
                rows += write_group(&before, &reader, index, &mut writer)?;
            }
        }
        at_fault = None;
        writer.flush()
    });
    written.map_err(|source| at_fault_of(at_fault, out, source))?;
    Ok(rows)
}

/// Cells of the next rows of a column as texts; none at its end.
type Texts<'a> = Box<dyn FnMut() -> io::Result<Vec<String>> + 'a>;

fn write_group<W: Write>(
    before: &[String],
    reader: &SerializedFileReader<File>,
    index: usize,
    writer: &mut csv::Writer<W>,
) -> io::Result<u64> {
    let group = reader.get_row_group(index).map_err(io::Error::other)?;
    let columns = (0..group.num_columns()).map(|column| {
        let metadata = group.metadata().column(column);
        let name = metadata.column_path().string();
        let descriptor = metadata.column_descr();
        if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
            return Err(unusable(&name, "found lists, expected one value in each row".into()));
        }
        let is_unsigned = matches!(
            descriptor.logical_type_ref(),
            Some(LogicalType::Integer(integer)) if !integer.is_signed
        );
        let optional = descriptor.max_def_level() > 0;
        let column = group.get_column_reader(column).map_err(io::Error::other)?;
        texts(name, descriptor.physical_type(), is_unsigned, optional, column)
    });
    let mut columns = columns.collect::<io::Result<Vec<Texts<'_>>>>()?;
    let mut sum = 0;
    loop {
        let cells = columns.iter_mut().map(|next| next()).collect::<io::Result<Vec<_>>>()?;
        let rows = cells.first().map_or(0, Vec::len);
        if cells.iter().any(|column| column.len() != rows) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "columns have different numbers of rows"));
        }
        if rows == 0 {
            return Ok(sum);
        }
        for row in 0..rows {
            let own = cells.iter().filter_map(|column| column.get(row));
            writer.write_record(before.iter().chain(own))?;
        }
        sum += rows as u64;
    }
}

fn texts<'a>(
    name: String,
    physical: Physical,
    is_unsigned: bool,
    optional: bool,
    column: ColumnReader,
) -> io::Result<Texts<'a>> {
    Ok(match physical {
        Physical::BOOLEAN => texts_of::<BoolType>(column, optional, |value| Ok(value.to_string())),
        Physical::INT32 if is_unsigned => {
            texts_of::<Int32Type>(column, optional, |value| Ok(value.cast_unsigned().to_string()))
        }
        Physical::INT32 => texts_of::<Int32Type>(column, optional, |value| Ok(value.to_string())),
        Physical::INT64 if is_unsigned => {
            texts_of::<Int64Type>(column, optional, |value| Ok(value.cast_unsigned().to_string()))
        }
        Physical::INT64 => texts_of::<Int64Type>(column, optional, |value| Ok(value.to_string())),
        Physical::DOUBLE => texts_of::<DoubleType>(column, optional, |value| Ok(value.to_string())),
        Physical::BYTE_ARRAY => {
            texts_of::<ByteArrayType>(column, optional, move |value| utf8(&name, value).map(str::to_owned))
        }
        other => return Err(unusable(&name, format!("found {other}, expected numbers or strings"))),
    })
}

fn texts_of<'a, D: DataType>(
    column: ColumnReader,
    optional: bool,
    text: impl Fn(&D::T) -> io::Result<String> + 'a,
) -> Texts<'a>
where
    D::T: 'a,
{
    let mut reader = get_typed_column_reader::<D>(column);
    Box::new(move || {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let (rows, ..) =
            reader.read_records(CHUNK, optional.then_some(&mut levels), None, &mut values).map_err(io::Error::other)?;
        if !optional {
            levels = vec![1; rows];
        }
        let mut values = values.iter();
        let mut value = |level: &i16| if *level > 0 { values.next() } else { None };
        levels.iter().map(|level| value(level).map_or_else(|| Ok(String::new()), &text)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Rows, each_group, optional_f64s, strings, u64s, write};
    use super::*;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("incast-join-{}-{name}", std::process::id()))
    }

    fn part(name: &str, rows: std::ops::Range<u64>) -> Part {
        let rows: Vec<u64> = rows.collect();
        let columns = [
            u64s("number", |row: &u64| *row),
            optional_f64s("half", |row: &u64| (!row.is_multiple_of(2)).then_some(*row as f64 / 2.0)),
            strings("name", |row: &u64| format!("row, {row}")),
        ];
        let path = file(name);
        write(&path, &rows, &columns, &[]).expect("written");
        Part { path, cells: vec![Cell::Text(name.into()), Cell::Whole(7), Cell::Real(0.5)] }
    }

    #[test]
    fn files_become_one_table() {
        let names = ["scheme", "seed", "load"].map(str::to_owned);
        let parts = [part("a", 0..3), part("b", 3..CHUNK as u64 + 10), part("none", 0..0)];
        let (out, text) = (file("joint.parquet"), file("joint.csv"));
        let rows = CHUNK as u64 + 10;
        assert_eq!(parquet(&out, &names, &parts, &[]).expect("joined"), rows);
        let (mut numbers, mut schemes) = (Vec::new(), Vec::new());
        each_group(&out, |group: &Rows<'_>| {
            numbers.extend(group.u64s("number")?);
            schemes.extend(group.strings("scheme")?);
            assert!(group.u64s("seed")?.iter().all(|seed| *seed == Some(7)));
            assert!(group.f64s("load")?.iter().all(|load| *load == Some(0.5)));
            assert_eq!(group.f64s("half")?.len(), group.count());
            Ok::<(), io::Error>(())
        })
        .expect("read");
        assert_eq!(numbers, (0..rows).map(Some).collect::<Vec<_>>());
        assert_eq!((schemes[2].as_deref(), schemes[3].as_deref()), (Some("a"), Some("b")));

        assert_eq!(csv(&text, &names, &parts).expect("joined"), rows);
        let text_of = std::fs::read_to_string(&text).expect("written");
        let lines: Vec<&str> = text_of.lines().collect();
        assert_eq!(lines.len() as u64, rows + 1);
        let expected = [
            "scheme,seed,load,number,half,name",
            "a,7,0.5,0,,\"row, 0\"",
            "a,7,0.5,1,0.5,\"row, 1\"",
            "a,7,0.5,2,,\"row, 2\"",
            "b,7,0.5,3,1.5,\"row, 3\"",
        ];
        assert_eq!(lines[..5], expected);

        let other = Part { path: file("other"), cells: parts[0].cells.clone() };
        write(&other.path, &[1_u64], &[u64s("another", |row: &u64| *row)], &[]).expect("written");
        let refused = parquet(&out, &names, &[parts[0].clone(), other.clone()], &[]).expect_err("refused");
        assert!(refused.path == other.path && refused.source.to_string().contains("other columns"));
        for path in [&out, &text, &other.path].into_iter().chain(parts.iter().map(|part| &part.path)) {
            std::fs::remove_file(path).expect("removed");
        }
    }
}
