//! A results folder.

use crate::{error, table::Table};
use incast_lab::{
    results::{
        self,
        compact::TOO_SHORT,
        export::{self, Joint},
        row::Row,
        settings, verdict,
    },
    scenario::SizeRange,
};
use incast_units::{Bytes, Time};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What a results folder holds but for its tables, as JSON. Reads the summary and what each run says of itself.
#[pyfunction]
pub fn read(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let refused = |why: &dyn std::fmt::Display| error::error(py, "ResultsError", why);
    let results = py.detach(|| results::read::read(&folder)).map_err(|found| refused(&found))?;
    let first = &results.first().record;
    let runs: Vec<Value> = results
        .runs
        .iter()
        .map(|run| {
            let record = &run.record;
            json!({
                "folder": run.folder, "scheme": record.scheme, "seed": record.seed, "grid": record.grid,
                "digest": record.digest, "complete": record.complete, "ended_at_ps": record.ended_at_ps,
                "cost": record.cost,
            })
        })
        .collect();
    let sizes = first.scenario.get("measure").and_then(|measure| measure.get("sizes"));
    let sizes: Vec<SizeRange> = sizes
        .map_or_else(|| Ok(Vec::new()), |sizes| serde_json::from_value(sizes.clone()))
        .map_err(|why| refused(&why))?;
    let sizes: Vec<Value> = sizes
        .iter()
        .map(|range| {
            let bytes = |bound: Option<Bytes>| bound.map(Bytes::get);
            json!({"name": range.name, "class": range.class, "over": bytes(range.over), "upto": bytes(range.upto)})
        })
        .collect();
    let mut verdict = settings::text(&results.settings, 100) + &verdict::text(&results.verdicts, 100);
    if results.rows.iter().any(Row::is_too_short) {
        verdict += &format!("{TOO_SHORT} some run was too short for a steady state (column too_short)\n");
    }
    let facts = json!({
        "name": first.scenario.get("name"), "describe": first.scenario.get("describe"),
        "scenario": first.scenario, "scenario_hash": first.scenario_hash, "version": first.version,
        "counted_from_ps": results.first().time("/warmup").map(Time::ps),
        "counted_until_ps": results.first().time("/duration").map(Time::ps),
        "runs": runs, "failed": results.failed,
        "sizes": sizes,
        "schemes": results.schemes, "classes": results.classes, "points": results.points,
        "rows": results.rows, "claims": results.claims,
        "verified": !results.unverified,
        "verdict": verdict.trim_end(),
        "settings": settings::to_json(&results.settings),
    });
    Ok(facts.to_string())
}

/// A table of all runs in folders: one of [`results::record::TABLES`], or "rows", the summary. Each folder comes with the point of a
/// sweep that it is, as JSON: values of the sweep's axes.
#[pyfunction]
pub fn table(py: Python<'_>, folders: Vec<(PathBuf, String)>, name: &str) -> PyResult<Table> {
    let read = || -> Result<Table, String> {
        let points = folders.iter().map(|(_, point)| serde_json::from_str(point));
        let points: Vec<Map<String, Value>> = points.collect::<Result<_, _>>().map_err(|why| why.to_string())?;
        if name == "rows" {
            let mut rows = Vec::new();
            for ((folder, _), point) in folders.iter().zip(&points) {
                for mut row in results::read::read(folder).map_err(|found| found.to_string())?.rows {
                    row.grid.extend(point.clone());
                    rows.push(row);
                }
            }
            return Table::of_rows(&rows).map_err(|found| found.to_string());
        }
        let cells = export::point_cells(&points.iter().collect::<Vec<_>>());
        let mut all: Option<Joint> = None;
        for (((folder, _), point), cells) in folders.iter().zip(&points).zip(cells) {
            let mut joint = export::joint(folder, name).map_err(|found| found.to_string())?;
            // The folder may have runs of more seeds than the summary, by an earlier command.
            let summary = results::read::read(folder).map_err(|found| found.to_string())?;
            joint.parts.retain(|part| summary.runs.iter().any(|run| part.path.starts_with(&run.folder)));
            joint.names.extend(point.keys().map(|axis| format!("grid.{axis}")));
            joint.parts.iter_mut().for_each(|part| part.cells.extend(cells.iter().cloned()));
            match &mut all {
                Some(all) => all.parts.append(&mut joint.parts),
                None => all = Some(joint),
            }
        }
        let all = all.filter(|all| !all.parts.is_empty()).ok_or_else(|| export::missing(name))?;
        Table::of_files(all).map_err(|found| found.to_string())
    };
    py.detach(read).map_err(|why| error::error(py, "ResultsError", &why))
}
