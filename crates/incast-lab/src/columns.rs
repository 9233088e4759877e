//! Parquet files as tables of columns. The only module that depends on the format.
//!
//! Columns are flat: integers, numbers, flags and strings, required or optional. The `parquet` crate is used without
//! Arrow, which would more than double the time to build this program.
//!
//! - [`join`]: one table of the rows of several files, without reading them into memory.

pub mod join;

use crate::atomic::{self, regular};
use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel},
    column::reader::get_typed_column_reader,
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{WriterProperties, WriterPropertiesPtr},
        reader::{FileReader, RowGroupReader, SerializedFileReader},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::Type,
};
use std::{fs::File, io, path::Path, sync::Arc};

/// Rows that are converted at a time.
const CHUNK: usize = 1 << 16;
/// Rows of a row group: readers hold some columns of one group in memory.
const GROUP: usize = 1 << 20;
/// Rows for each byte of a file. A column whose values are all the same has some 300; with one that tells rows apart
/// there are at most a few. A file that claims more would take the memory of what it claims.
const MOST_ROWS_PER_BYTE: u64 = 100;

/// Writes the values of rows to a column.
type Put<'a, T> = dyn Fn(&[T], &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> + 'a;

/// A column of a file to be written: its name and type, and how its values are made from rows.
pub struct Column<'a, T> {
    name: &'static str,
    physical: Physical,
    logical: Option<LogicalType>,
    optional: bool,
    put: Box<Put<'a, T>>,
}

impl<'a, T> Column<'a, T> {
    fn new<D: DataType>(
        name: &'static str,
        logical: Option<LogicalType>,
        optional: bool,
        value: impl Fn(&T) -> Option<D::T> + 'a,
    ) -> Self {
        let put = move |rows: &[T], writer: &mut SerializedColumnWriter<'_>| {
            // A definition level of 0 stands for an empty cell, which has no value.
            let (mut values, mut levels) = (Vec::with_capacity(rows.len()), Vec::new());
            for row in rows {
                let value = value(row);
                if optional {
                    levels.push(i16::from(value.is_some()));
                }
                values.extend(value);
            }
            let levels = optional.then_some(levels.as_slice());
            writer.typed::<D>().write_batch(&values, levels, None).map(drop)
        };
        Self { name, physical: D::get_physical_type(), logical, optional, put: Box::new(put) }
    }

    fn field(&self) -> Result<Arc<Type>, ParquetError> {
        let repetition = if self.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(self.name, self.physical).with_repetition(repetition);
        field.with_logical_type(self.logical.clone()).build().map(Arc::new)
    }
}

/// Constructors of columns: the value of each row is `$of`, converted to what the file holds.
macro_rules! kinds {
    ($($name:ident: $value:ty => $type:ty, $logical:expr, $optional:literal, |$of:ident| $cell:expr;)*) => {$(
        #[doc = concat!("A column of `", stringify!($value), "`.")]
        pub fn $name<'a, T>(name: &'static str, of: impl Fn(&T) -> $value + 'a) -> Column<'a, T> {
            Column::new::<$type>(name, $logical, $optional, move |row| {
                let $of = of(row);
                $cell
            })
        }
    )*};
}
kinds! {
    u8s: u8 => Int32Type, Some(LogicalType::integer(8, false)), false, |of| Some(of.into());
    u32s: u32 => Int32Type, Some(LogicalType::integer(32, false)), false, |of| Some(of.cast_signed());
    u64s: u64 => Int64Type, Some(LogicalType::integer(64, false)), false, |of| Some(of.cast_signed());
    flags: bool => BoolType, None, false, |of| Some(of);
    strings: String => ByteArrayType, Some(LogicalType::String), false, |of| Some(of.into_bytes().into());
    optional_u64s: Option<u64> => Int64Type, Some(LogicalType::integer(64, false)), true, |of| of.map(u64::cast_signed);
    optional_f64s: Option<f64> => DoubleType, None, true, |of| of;
    optional_flags: Option<bool> => BoolType, None, true, |of| of;
    optional_strings: Option<String> => ByteArrayType, Some(LogicalType::String), true, |of| of.map(|text| text.into_bytes().into());
}

/// What a file says of itself: keys and values of its metadata.
pub type About = [(&'static str, String)];

fn properties(about: &About) -> WriterPropertiesPtr {
    let about = about.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression);
    Arc::new(properties.set_key_value_metadata(Some(about.collect())).build())
}

/// Writes a file with one row for each of `rows`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write<T>(path: &Path, rows: &[T], columns: &[Column<'_, T>], about: &About) -> io::Result<()> {
    let fields = columns.iter().map(Column::field).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(io::Error::other)?;
    atomic::write(path, |file| {
        let fill = || -> Result<(), ParquetError> {
            let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties(about))?;
            for group in rows.chunks(GROUP) {
                let mut out = writer.next_row_group()?;
                for column in columns {
                    // There is a writer for each field of the schema.
                    let Some(mut writer) = out.next_column()? else { break };
                    group.chunks(CHUNK).try_for_each(|rows| (column.put)(rows, &mut writer))?;
                    writer.close()?;
                }
                out.close()?;
            }
            writer.close().map(drop)
        };
        fill().map_err(io::Error::other)
    })
}

/// Rows of a file that were written together, or a part of them.
pub struct Rows<'a> {
    group: &'a dyn RowGroupReader,
    /// Rows of the group before the first, and how many there are.
    skipped: usize,
    count: usize,
}

/// Hands the rows of a file to `each`, a group of them at a time; of a group of other programs, which may be the whole
/// file, a part of 2^20 rows at a time.
///
/// # Errors
/// Those of the file system, a file that is not Parquet or claims more rows than it can have, and those of `each`.
pub fn each_group<E: From<io::Error>>(path: &Path, each: impl FnMut(&Rows<'_>) -> Result<(), E>) -> Result<(), E> {
    each_part(path, GROUP, each)
}

/// The same, where a part has `most` rows.
fn each_part<E: From<io::Error>>(
    path: &Path,
    most: usize,
    mut each: impl FnMut(&Rows<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let reader = open(path)?;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(io::Error::other)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        for skipped in (0..rows.max(1)).step_by(most) {
            each(&Rows { group: &*group, skipped, count: most.min(rows - skipped) })?;
        }
    }
    Ok(())
}

/// The number of rows that a file states.
///
/// # Errors
/// As [`each_group`].
pub fn count_rows(path: &Path) -> io::Result<usize> {
    Ok(usize::try_from(rows_of(&open(path)?)).unwrap_or(usize::MAX))
}

fn rows_of(reader: &SerializedFileReader<File>) -> u64 {
    let groups = reader.metadata().row_groups();
    let rows = groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
    rows.fold(0, u64::saturating_add)
}

/// What a file says of itself.
#[cfg(test)]
pub fn about(path: &Path) -> io::Result<Vec<(String, String)>> {
    let reader = open(path)?;
    let pairs = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    Ok(pairs.into_iter().map(|pair| (pair.key, pair.value.unwrap_or_default())).collect())
}

/// Opens a file that does not claim more rows than it can have.
fn open(path: &Path) -> io::Result<SerializedFileReader<File>> {
    let file = regular(path)?;
    let bytes = file.metadata()?.len();
    let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
    let rows = rows_of(&reader);
    if rows > bytes.saturating_mul(MOST_ROWS_PER_BYTE) {
        let why = format!("found {rows} rows in {bytes} bytes, expected at most {MOST_ROWS_PER_BYTE} in each");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(reader)
}

impl Rows<'_> {
    /// There is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// How many there are, as the file states it.
    pub fn count(&self) -> usize {
        self.count
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.group.metadata().columns().iter().position(|column| column.column_path().string() == name)
    }

    /// The cells of a column of whole numbers, none of them negative. A column of strings is read as numbers.
    ///
    /// # Errors
    /// No such column, another type, a value that is not such a number.
    pub fn u64s(&self, name: &str) -> io::Result<Vec<Option<u64>>> {
        let wrong = |found: &dyn std::fmt::Display| {
            unusable(name, format!("found {found}, expected a whole number, not negative"))
        };
        match self.physical(name)? {
            (index, Physical::INT32) if self.is_unsigned(index) => {
                self.read::<Int32Type, _>(index, |value| Ok(u64::from(value.cast_unsigned())))
            }
            (index, Physical::INT32) => {
                self.read::<Int32Type, _>(index, |value| u64::try_from(value).map_err(|_| wrong(&value)))
            }
            (index, Physical::INT64) if self.is_unsigned(index) => {
                self.read::<Int64Type, _>(index, |value| Ok(value.cast_unsigned()))
            }
            (index, Physical::INT64) => {
                self.read::<Int64Type, _>(index, |value| u64::try_from(value).map_err(|_| wrong(&value)))
            }
            (index, Physical::BYTE_ARRAY) => self.read::<ByteArrayType, _>(index, |value| {
                let text = utf8(name, &value)?;
                text.parse().map_err(|_| wrong(&format!("\"{text}\"")))
            }),
            (_, other) => Err(wrong(&other)),
        }
    }

    /// The cells of a column of strings. Whole numbers are read as their decimal digits.
    ///
    /// # Errors
    /// No such column, another type, text that is not UTF-8.
    pub fn strings(&self, name: &str) -> io::Result<Vec<Option<String>>> {
        match self.physical(name)? {
            (index, Physical::BYTE_ARRAY) => {
                self.read::<ByteArrayType, _>(index, |value| utf8(name, &value).map(str::to_owned))
            }
            (_, Physical::INT32 | Physical::INT64) => {
                let numbers = self.u64s(name)?;
                Ok(numbers.into_iter().map(|number| number.map(|number| number.to_string())).collect())
            }
            (_, other) => Err(unusable(name, format!("found {other}, expected strings"))),
        }
    }

    /// The cells of a column of numbers.
    ///
    /// # Errors
    /// No such column, another type.
    pub fn f64s(&self, name: &str) -> io::Result<Vec<Option<f64>>> {
        match self.physical(name)? {
            (index, Physical::DOUBLE) => self.read::<DoubleType, _>(index, Ok),
            (_, other) => Err(unusable(name, format!("found {other}, expected numbers"))),
        }
    }

    fn physical(&self, name: &str) -> io::Result<(usize, Physical)> {
        let index = self.find(name).ok_or_else(|| unusable(name, "there is none".into()))?;
        let column = self.group.metadata().column(index).column_descr();
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(unusable(name, "found lists, expected one value in each row".into()));
        }
        Ok((index, column.physical_type()))
    }

    fn is_unsigned(&self, index: usize) -> bool {
        let column = self.group.metadata().column(index).column_descr();
        column
            .logical_type_ref()
            .is_some_and(|logical| matches!(logical, LogicalType::Integer(integer) if !integer.is_signed))
    }

    fn read<D: DataType, V>(&self, index: usize, value: impl Fn(D::T) -> io::Result<V>) -> io::Result<Vec<Option<V>>> {
        let column = self.group.get_column_reader(index).map_err(io::Error::other)?;
        let mut reader = get_typed_column_reader::<D>(column);
        let optional = self.group.metadata().column(index).column_descr().max_def_level() > 0;
        if self.skipped > 0 {
            let skipped = reader.skip_records(self.skipped).map_err(io::Error::other)?;
            if skipped < self.skipped {
                let name = self.group.metadata().column(index).column_descr().name().to_owned();
                return Err(unusable(&name, format!("it ends after {skipped} rows, others go on")));
            }
        }
        let (mut cells, mut values, mut levels) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            values.clear();
            levels.clear();
            let most = CHUNK.min(self.count() - cells.len());
            if most == 0 {
                return Ok(cells);
            }
            let (rows, ..) = reader
                .read_records(most, optional.then_some(&mut levels), None, &mut values)
                .map_err(io::Error::other)?;
            if rows == 0 {
                return Ok(cells);
            }
            let mut values = values.drain(..).map(&value);
            if optional {
                for level in &levels {
                    cells.push(if *level > 0 { values.next().transpose()? } else { None });
                }
            } else {
                for value in values {
                    cells.push(Some(value?));
                }
            }
        }
    }
}

fn utf8<'v>(name: &str, value: &'v ByteArray) -> io::Result<&'v str> {
    std::str::from_utf8(value.data()).map_err(|_| unusable(name, "found text that is not UTF-8".into()))
}

fn unusable(name: &str, why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no usable column `{name}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_has_few_rows() {
        let path = std::env::temp_dir().join(format!("incast-rows-{}.parquet", std::process::id()));
        for (step, is_read) in [(1, true), (0, false)] {
            let rows: Vec<u64> = (0..1_000_000).map(|row| row * step).collect();
            write(&path, &rows, &[u64s("number", |row: &u64| *row)], &[]).expect("written");
            let read = each_group(&path, |group| group.u64s("number").map(|cells| assert_eq!(cells[0], Some(0))));
            assert_eq!(read.is_ok(), is_read, "{read:?}");
        }
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn what_is_written_is_read() {
        let rows: Vec<u64> = (0..CHUNK as u64 + 3).collect();
        let even = |row: &u64| row.is_multiple_of(2);
        let path = std::env::temp_dir().join(format!("incast-columns-{}.parquet", std::process::id()));
        let columns = [
            u64s("large", |row: &u64| u64::MAX - row),
            u32s("number", |_: &u64| u32::MAX),
            optional_u64s("even_only", move |row: &u64| even(row).then_some(*row)),
            u8s("small", |row: &u64| *row as u8),
            optional_f64s("real", move |row: &u64| even(row).then_some(*row as f64 / 2.0)),
            flags("even", move |row: &u64| even(row)),
            optional_strings("text", move |row: &u64| (!even(row)).then(|| format!("row {row}"))),
        ];
        write(&path, &rows, &columns, &[("origin", "a test".to_owned())]).expect("written");
        assert!(about(&path).expect("read").contains(&("origin".into(), "a test".into())));
        let mut seen = 0;
        each_group(&path, |group| {
            seen += group.count();
            assert!(group.has("even") && !group.has("odd"));
            assert_eq!(group.u64s("large")?, rows.iter().map(|row| Some(u64::MAX - row)).collect::<Vec<_>>());
            assert_eq!(group.u64s("small")?[257], Some(1));
            assert_eq!(group.u64s("number")?[0], Some(u64::from(u32::MAX)));
            assert_eq!(group.u64s("even_only")?[..3], [Some(0), None, Some(2)]);
            assert_eq!(group.f64s("real")?[1..3], [None, Some(1.0)]);
            assert_eq!(group.strings("text")?[..2], [None, Some("row 1".into())]);
            assert_eq!(group.strings("small")?[7], Some("7".into()));
            assert!(group.u64s("text").is_err() && group.u64s("real").is_err() && group.f64s("odd").is_err());
            Ok::<(), io::Error>(())
        })
        .expect("read");
        assert_eq!(seen, rows.len());
        assert_eq!(count_rows(&path).ok(), Some(rows.len()));
        let (mut evens, mut texts) = (Vec::new(), Vec::new());
        each_part(&path, 1000, |part| {
            evens.extend(part.u64s("even_only")?);
            texts.extend(part.strings("text")?);
            assert!(part.count() == 1000 || evens.len() == rows.len());
            Ok::<(), io::Error>(())
        })
        .expect("read");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(evens, rows.iter().map(|row| even(row).then_some(*row)).collect::<Vec<_>>());
        let odd = |row: &u64| (!even(row)).then(|| format!("row {row}"));
        assert_eq!(texts, rows.iter().map(odd).collect::<Vec<_>>());
    }
}
