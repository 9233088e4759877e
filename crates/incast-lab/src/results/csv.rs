//! `summary.csv`: the rows of `summary.json` without bins, one column per number.

use super::row::{AT_LEAST, Row, Seed};
use crate::{metrics::METRICS, text::json};
use std::collections::BTreeSet;

/// The whole file.
///
/// # Errors
/// Those of the writer, which writes to memory.
pub fn summary(rows: &[Row]) -> Result<String, csv::Error> {
    let grid: BTreeSet<&String> = rows.iter().flat_map(|row| row.grid.keys()).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = ["scheme", "class", "seed", "runs"].map(str::to_owned).to_vec();
    header.extend(grid.iter().map(|path| format!("grid.{path}")));
    header.extend(rows.first().map(numbers).unwrap_or_default().into_iter().map(|(name, _)| name));
    writer.write_record(&header)?;
    for row in rows {
        let seed = match &row.seed {
            Seed::One(seed) => seed.to_string(),
            Seed::Pooled(all) => all.clone(),
        };
        let mut record = vec![row.scheme.clone(), row.class.clone(), seed, row.runs.to_string()];
        record.extend(grid.iter().map(|path| row.grid.get(*path).map(json).unwrap_or_default()));
        record.extend(numbers(row).into_iter().map(|(_, value)| value.map(|v| v.to_string()).unwrap_or_default()));
        writer.write_record(&record)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Numbers, lower bounds and confidence limits; every row has the same names.
fn numbers(row: &Row) -> Vec<(String, Option<f64>)> {
    let mut all: Vec<_> = METRICS.iter().map(|metric| (metric.name.to_owned(), row.number(metric.name))).collect();
    for metric in METRICS.iter().filter(|metric| metric.has_bound()) {
        all.push((format!("{}{AT_LEAST}", metric.name), row.bound(metric.name)));
    }
    for metric in METRICS.iter().filter(|metric| metric.has_interval()) {
        let interval = row.interval(metric.name);
        all.push((format!("{}.ci95_low", metric.name), interval.map(|interval| interval.0)));
        all.push((format!("{}.ci95_high", metric.name), interval.map(|interval| interval.1)));
    }
    all
}
