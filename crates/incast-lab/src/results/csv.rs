//! `summary.csv`: the rows of `summary.json` without bins, one column per number.

use super::summary::{Row, Seed};
use serde_json::Value;
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
        record.extend(grid.iter().map(|path| row.grid.get(*path).map(plain).unwrap_or_default()));
        record.extend(
            numbers(row).into_iter().map(|(_, value)| value.map(|v| v.to_string()).unwrap_or_default()),
        );
        writer.write_record(&record)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Numbers, lower bounds and confidence limits; every row has the same names.
fn numbers(row: &Row) -> Vec<(String, Option<f64>)> {
    let mut all = row.numbers();
    for (group, distribution) in
        [("fct_us", &row.fct_us), ("slowdown", &row.slowdown), ("rct_us", &row.rct_us)]
    {
        all.extend(distribution.bounds().map(|(name, bound)| (format!("{group}.{name}_at_least"), bound)));
    }
    for (name, _) in row.numbers().into_iter().skip(2) {
        let interval = row.interval(&name);
        all.push((format!("{name}.ci95_low"), interval.map(|interval| interval.0)));
        all.push((format!("{name}.ci95_high"), interval.map(|interval| interval.1)));
    }
    all
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
