//! A table as Arrow record batches: of files, which are read when somebody asks and batch by batch, or in memory.
//!
//! Arrow's PyCapsule interface: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use crate::error;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray,
    UInt64Array,
    cast::AsArray,
    ffi::FFI_ArrowSchema,
    ffi_stream::FFI_ArrowArrayStream,
    types::{Float64Type, UInt8Type, UInt32Type, UInt64Type},
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use incast_lab::{
    metrics::METRICS,
    results::{
        Row, Seed,
        export::{Cell, Joint, Part},
    },
};
use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
};
use pyo3::{
    exceptions::{PyIndexError, PyKeyError},
    prelude::*,
    types::{PyBytes, PyCapsule, PyList},
};
use std::{collections::HashMap, fs::File, sync::Arc};

/// Rows of a batch.
const BATCH: usize = 1 << 20;

#[derive(Clone)]
enum Source {
    /// The file of each run; for each column, which of the cells of its run it is, if it is not in the file.
    Files(Arc<Vec<Part>>, Vec<Option<usize>>),
    Memory(Arc<Vec<RecordBatch>>),
}

/// See `incast.Table`.
#[pyclass(frozen, module = "incast._incast")]
pub struct Table {
    schema: SchemaRef,
    source: Source,
}

fn invalid(part: &Part, why: impl std::fmt::Display) -> ArrowError {
    ArrowError::ExternalError(format!("{}: {why}", part.path.display()).into())
}

fn builder(part: &Part) -> Result<ParquetRecordBatchReaderBuilder<File>, ArrowError> {
    let file = File::open(&part.path).map_err(|why| invalid(part, why))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|why| invalid(part, why))?;
    Ok(builder.with_batch_size(BATCH))
}

fn type_of(cell: &Cell) -> DataType {
    match cell {
        Cell::Text(_) => DataType::Utf8,
        Cell::Whole(_) => DataType::UInt64,
        Cell::Real(_) => DataType::Float64,
    }
}

/// A column of one value.
fn repeat(cell: &Cell, rows: usize) -> ArrayRef {
    match cell {
        Cell::Text(text) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows))),
        Cell::Whole(number) => Arc::new(UInt64Array::from_value(*number, rows)),
        Cell::Real(number) => Arc::new(Float64Array::from_value(*number, rows)),
    }
}

/// Reads files, one after the other.
struct Files {
    schema: SchemaRef,
    parts: Arc<Vec<Part>>,
    cells: Vec<Option<usize>>,
    next: usize,
    open: Option<(ParquetRecordBatchReader, usize)>,
}

impl Files {
    fn open(&self, part: &Part) -> Result<ParquetRecordBatchReader, ArrowError> {
        let builder = builder(part)?;
        let wanted: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mask = ProjectionMask::columns(builder.parquet_schema(), wanted);
        builder.with_projection(mask).build().map_err(|why| invalid(part, why))
    }

    fn complete(&self, part: &Part, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let missing = |name: &str| invalid(part, format!("has no column {name}, which other runs have"));
        let column = |(field, cell): (&Arc<Field>, &Option<usize>)| match cell.and_then(|cell| part.cells.get(cell)) {
            Some(cell) => Ok(repeat(cell, batch.num_rows())),
            None => batch.column_by_name(field.name()).cloned().ok_or_else(|| missing(field.name())),
        };
        let columns = self.schema.fields().iter().zip(&self.cells).map(column).collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    fn step(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        loop {
            if let Some((reader, index)) = &mut self.open {
                let index = *index;
                match reader.next() {
                    Some(Ok(batch)) => return Some(self.complete(&self.parts[index], &batch)),
                    Some(Err(why)) => return Some(Err(invalid(&self.parts[index], why))),
                    None => self.open = None,
                }
            }
            let part = self.parts.get(self.next)?;
            match self.open(part) {
                Ok(reader) => self.open = Some((reader, self.next)),
                Err(why) => return Some(Err(why)),
            }
            self.next += 1;
        }
    }
}

impl Iterator for Files {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.step();
        // After an error nothing follows.
        if matches!(item, Some(Err(_))) {
            self.next = self.parts.len();
            self.open = None;
        }
        item
    }
}

impl RecordBatchReader for Files {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Table {
    /// Of the files of runs.
    pub fn of_files(joint: Joint) -> Result<Self, ArrowError> {
        let Some(first) = joint.parts.first() else { return Err(ArrowError::SchemaError("no runs".into())) };
        let own = joint.names.iter().zip(&first.cells);
        let own = own.map(|(name, cell)| Arc::new(Field::new(name, type_of(cell), false)));
        let read = builder(first)?;
        let fields: Vec<Arc<Field>> = own.chain(read.schema().fields().iter().cloned()).collect();
        let cells = (0..fields.len()).map(|place| (place < joint.names.len()).then_some(place)).collect();
        let about = joint.about.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let schema = Schema::new_with_metadata(fields, about.collect::<HashMap<_, _>>());
        Ok(Self { schema: Arc::new(schema), source: Source::Files(Arc::new(joint.parts), cells) })
    }

    /// Of the rows of a summary: every metric, and for pooled rows the ends of its confidence interval.
    pub fn of_rows(rows: &[Row]) -> Result<Self, ArrowError> {
        let text =
            |of: &dyn Fn(&Row) -> String| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(of))) };
        let seeds = rows.iter().map(|row| if let Seed::One(seed) = row.seed { Some(seed) } else { None });
        let mut columns: Vec<(String, ArrayRef)> = vec![
            ("scheme".into(), text(&|row| row.scheme.clone())),
            ("class".into(), text(&|row| row.class.clone())),
            ("seed".into(), Arc::new(seeds.collect::<UInt64Array>())),
            ("pooled".into(), Arc::new(rows.iter().map(|row| Some(row.is_pooled())).collect::<BooleanArray>())),
        ];
        for axis in rows.first().map(|row| row.grid.keys().cloned().collect::<Vec<_>>()).unwrap_or_default() {
            let values: Vec<_> = rows.iter().map(|row| row.grid.get(&axis)).collect();
            let numbers: Option<Vec<f64>> = values.iter().map(|value| value.and_then(|it| it.as_f64())).collect();
            let column: ArrayRef = match numbers {
                Some(numbers) => Arc::new(Float64Array::from(numbers)),
                None => {
                    let texts = values
                        .iter()
                        .map(|value| value.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned)));
                    Arc::new(texts.collect::<StringArray>())
                }
            };
            columns.push((format!("grid.{axis}"), column));
        }
        columns.push(("runs".into(), Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.runs)))));
        for metric in METRICS {
            let numbers = rows.iter().map(|row| row.number(metric.name)).collect::<Float64Array>();
            columns.push((metric.name.to_owned(), Arc::new(numbers)));
        }
        for metric in METRICS {
            let intervals: Vec<_> = rows.iter().map(|row| row.interval(metric.name)).collect();
            if intervals.iter().any(Option::is_some) {
                let low = intervals.iter().map(|it| it.map(|it| it.0)).collect::<Float64Array>();
                let high = intervals.iter().map(|it| it.map(|it| it.1)).collect::<Float64Array>();
                columns.push((format!("{}.low", metric.name), Arc::new(low)));
                columns.push((format!("{}.high", metric.name), Arc::new(high)));
            }
        }
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))?;
        Ok(Self { schema: batch.schema(), source: Source::Memory(Arc::new(vec![batch])) })
    }

    fn reader(&self) -> Box<dyn RecordBatchReader + Send> {
        match &self.source {
            Source::Files(parts, cells) => Box::new(Files {
                schema: Arc::clone(&self.schema),
                parts: Arc::clone(parts),
                cells: cells.clone(),
                next: 0,
                open: None,
            }),
            Source::Memory(batches) => {
                let batches = batches.as_ref().clone().into_iter().map(Ok);
                Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema)))
            }
        }
    }

    fn refused(py: Python<'_>, why: &ArrowError) -> PyErr {
        match why {
            ArrowError::ExternalError(why) => error::error(py, "ResultsError", why),
            why => error::error(py, "ResultsError", why),
        }
    }
}

#[pymethods]
impl Table {
    /// The columns' names.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The columns' types, as Arrow calls them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let rows = |part: &Part| {
            let rows = builder(part)?.metadata().file_metadata().num_rows();
            Ok(usize::try_from(rows).unwrap_or(0))
        };
        match &self.source {
            Source::Files(parts, _) => py
                .detach(|| parts.iter().map(rows).sum::<Result<usize, ArrowError>>())
                .map_err(|why| Self::refused(py, &why)),
            Source::Memory(batches) => Ok(batches.iter().map(RecordBatch::num_rows).sum()),
        }
    }

    /// Of these columns alone, in this order; the others are not read.
    fn select(&self, columns: Vec<String>) -> PyResult<Self> {
        let place = |name: &String| {
            self.schema
                .index_of(name)
                .map_err(|_| PyKeyError::new_err(format!("no column {name}; there are {}", self.columns().join(", "))))
        };
        let places = columns.iter().map(place).collect::<PyResult<Vec<usize>>>()?;
        let wrong = |why: ArrowError| PyIndexError::new_err(why.to_string());
        let schema = Arc::new(self.schema.project(&places).map_err(wrong)?);
        let source = match &self.source {
            Source::Memory(batches) => {
                let selected = batches.iter().map(|batch| batch.project(&places));
                Source::Memory(Arc::new(selected.collect::<Result<Vec<_>, _>>().map_err(wrong)?))
            }
            Source::Files(parts, cells) => {
                Source::Files(Arc::clone(parts), places.iter().map(|place| cells[*place]).collect())
            }
        };
        Ok(Self { schema, source })
    }

    /// The table in memory, read once.
    fn load(&self, py: Python<'_>) -> PyResult<Self> {
        if let Source::Memory(_) = &self.source {
            return Ok(Self { schema: Arc::clone(&self.schema), source: self.source.clone() });
        }
        let batches = py.detach(|| self.reader().collect::<Result<Vec<_>, _>>());
        let batches = batches.map_err(|why| Self::refused(py, &why))?;
        Ok(Self { schema: Arc::clone(&self.schema), source: Source::Memory(Arc::new(batches)) })
    }

    /// Arrow's C stream, in a capsule. Buffers are handed over, not copied.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The consumer casts: the interface leaves that open to the producer.
        drop(requested_schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(self.reader()), c"arrow_array_stream")
    }

    /// Arrow's C schema, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|why| Self::refused(py, &why))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// A column for NumPy: kind, values and validity. Values are bytes of the kind's little-endian numbers; of texts, of
    /// 32-bit places in the list of distinct ones, which then comes fourth. Validity is a byte a row, or `None` if all
    /// are valid.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn numpy<'py>(
        &self,
        py: Python<'py>,
        column: &str,
    ) -> PyResult<(&'static str, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, Bound<'py, PyList>)> {
        let table = self.select(vec![column.to_owned()])?.load(py)?;
        let Source::Memory(batches) = &table.source else {
            return Err(PyKeyError::new_err(column.to_owned()));
        };
        let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(0)).collect();
        let (mut bytes, mut distinct) = (Vec::new(), Vec::<&str>::new());
        let mut places = HashMap::<&str, i32>::new();
        let mut kind = "f8";
        for array in &arrays {
            match array.data_type() {
                DataType::UInt8 => {
                    kind = "u1";
                    bytes.extend_from_slice(array.as_primitive::<UInt8Type>().values());
                }
                DataType::UInt32 => {
                    kind = "u4";
                    array.as_primitive::<UInt32Type>().values().iter().for_each(|it| bytes.extend(it.to_le_bytes()));
                }
                DataType::UInt64 => {
                    kind = "u8";
                    array.as_primitive::<UInt64Type>().values().iter().for_each(|it| bytes.extend(it.to_le_bytes()));
                }
                DataType::Float64 => {
                    array.as_primitive::<Float64Type>().values().iter().for_each(|it| bytes.extend(it.to_le_bytes()));
                }
                DataType::Boolean => {
                    kind = "?";
                    let array = array.as_boolean();
                    bytes.extend((0..array.len()).map(|row| u8::from(array.value(row))));
                }
                _ => {
                    kind = "str";
                    for text in array.as_string::<i32>() {
                        let place = text.map_or(-1, |text| {
                            *places.entry(text).or_insert_with(|| {
                                distinct.push(text);
                                distinct.len() as i32 - 1
                            })
                        });
                        bytes.extend(place.to_le_bytes());
                    }
                }
            }
        }
        let has_nulls = kind != "str" && arrays.iter().any(|array| array.null_count() > 0);
        let valid = has_nulls.then(|| {
            let valid =
                |array: &&ArrayRef| (0..array.len()).map(|row| u8::from(array.is_valid(row))).collect::<Vec<_>>();
            PyBytes::new(py, &arrays.iter().flat_map(valid).collect::<Vec<u8>>())
        });
        Ok((kind, PyBytes::new(py, &bytes), valid, PyList::new(py, distinct)?))
    }
}
