//! Reads a results folder.

use super::{
    claims::{self, Judgement},
    record::{RunRecord, Status},
    row::{ALL, Row, Seed},
    runs,
    settings::{self, Settings},
    verdict::{self, Terms, Verdicts},
};
use crate::{
    columns::join::FileError,
    scenario::{Claim, Column},
};
use incast_units::{Rate, Time};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Results that are missing or damaged: not what a run leaves behind.
#[derive(Debug, Error)]
#[error("{}: {message}", path.display())]
pub struct Unreadable {
    /// The file or folder at fault.
    pub path: PathBuf,
    /// What is wrong with it.
    pub message: String,
}

impl Unreadable {
    /// Of this file or folder.
    pub fn new(path: &Path, message: impl ToString) -> Self {
        Self { path: path.to_owned(), message: message.to_string() }
    }
}

/// What is said of results without checksums.
pub const UNVERIFIED: &str = "; unverified: written by a build without checksums";

/// A grid point.
pub type Point = Map<String, Value>;

/// One run of the summary.
#[derive(Debug)]
pub struct FinishedRun {
    /// Its folder.
    pub folder: PathBuf,
    /// Its `run.json`.
    pub record: RunRecord,
}

impl FinishedRun {
    /// Name of the folder.
    pub fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A text of the scenario as run; empty if it has none.
    pub fn text(&self, key: &str) -> &str {
        self.record.scenario.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The rate of every link in bit/s, for topologies that give all links one.
    pub fn link_bps(&self) -> Option<f64> {
        let rate: Rate = self.record.scenario.pointer("/topology/link/rate")?.as_str()?.parse().ok()?;
        Some(rate.as_f64())
    }

    /// A time of the scenario as run.
    pub fn time(&self, pointer: &str) -> Option<Time> {
        self.record.scenario.pointer(pointer)?.as_str()?.parse().ok()
    }
}

/// What a results folder holds.
#[derive(Debug)]
pub struct Results {
    /// They are of a build that wrote no checksums: whether they have changed since is not known.
    pub unverified: bool,
    /// Rows of the summary.
    pub rows: Vec<Row>,
    /// The runs they are of, in their order; at least one.
    pub runs: Vec<FinishedRun>,
    /// Runs that failed: their folders, and why.
    pub failed: Vec<(String, String)>,
    /// Grid points in their order; one, empty, without a grid.
    pub points: Vec<Point>,
    /// Schemes in their order.
    pub schemes: Vec<String>,
    /// Classes to show: `all` first, then each if there are several.
    pub classes: Vec<String>,
    /// Published numbers and what became of them.
    pub claims: Vec<Judgement>,
    /// Columns that the scenario lists.
    pub columns: Vec<Column>,
    /// Which scheme is best in what.
    pub verdicts: Vec<Verdicts>,
    /// What can be said about the values of settings.
    pub settings: Vec<Settings>,
}

impl Results {
    /// A run with the values that all runs share.
    pub fn first(&self) -> &FinishedRun {
        // `read` refuses a summary without runs.
        &self.runs[0]
    }

    /// The row that pools the seeds.
    pub fn pooled(&self, point: &Point, scheme: &str, class: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.is_pooled() && row.scheme == scheme && row.class == class && row.grid == *point)
    }

    /// The runs of a grid point and scheme, one per seed.
    pub fn runs_of<'a>(&'a self, point: &'a Point, scheme: &'a str) -> impl Iterator<Item = &'a FinishedRun> + 'a {
        self.runs.iter().filter(move |run| run.record.scheme == scheme && run.record.grid == *point)
    }
}

/// What tables need of a results folder.
#[derive(Debug)]
pub struct Summary {
    /// Name of the scenario.
    pub name: String,
    /// Rows of the summary.
    pub rows: Vec<Row>,
    /// Columns that the scenario lists.
    pub columns: Vec<Column>,
    /// Numbers that its verdict judges: of a scenario that lists no columns, those of a table.
    pub judged: Vec<Column>,
    /// Published numbers that the scenario lists.
    pub claims: Vec<Claim>,
    /// What the numbers are of: form, seeds, time, version.
    pub provenance: String,
    /// Version of incast.
    pub version: String,
    /// Hash of the scenario.
    pub scenario_hash: String,
    /// Digests of the runs by the names of their folders.
    pub digests: BTreeMap<String, String>,
}

/// Reads the summary alone.
///
/// # Errors
/// What is missing or damaged.
pub fn summary(folder: &Path) -> Result<Summary, Unreadable> {
    let Parts { rows, done: runs, unverified, .. } = read_parts(folder)?;
    let Some(first) = runs.first() else {
        return Err(Unreadable::new(folder, "holds no runs"));
    };
    let (columns, claims) = (read_columns(first)?, read_claims(first)?);
    let seeds = distinct(rows.iter().filter_map(|row| match row.seed {
        Seed::One(seed) => Some(seed),
        Seed::Pooled(_) => None,
    }));
    let provenance = format!(
        "{}{}, {} of arrivals, {} seed{}, incast {}{}{}",
        first.text("name"),
        if first.record.short { " (short form)" } else { "" },
        first.text("duration"),
        seeds.len(),
        if seeds.len() == 1 { "" } else { "s; ± or [ ]: 95% confidence interval over them" },
        first.record.version,
        if unverified { UNVERIFIED } else { "" },
        if rows.iter().any(|row| row.is_pooled() && row.is_too_short()) {
            "; ! marks a run too short for a steady state"
        } else {
            ""
        }
    );
    let terms = Terms { columns: columns.clone(), classes: first.record.classes.clone(), ..Terms::default() };
    let judged = verdict::subjects(&rows, &terms).into_iter();
    let judged = judged.map(|(class, metric)| Column { class, metric: metric.name.to_owned() }).collect();
    let (version, scenario_hash) = (first.record.version.clone(), first.record.scenario_hash.clone());
    let name = first.text("name").to_owned();
    let digests = runs.iter().map(|run| (run.name(), run.record.digest.clone())).collect();
    Ok(Summary { name, rows, columns, judged, claims, provenance, version, scenario_hash, digests })
}

/// Reads a folder and checks that its parts belong together.
///
/// # Errors
/// What is missing or damaged.
pub fn read(folder: &Path) -> Result<Results, Unreadable> {
    let Parts { rows, done: mut found, failed, unverified } = read_parts(folder)?;
    let identity =
        |scheme: &str, seed: u64, grid: &Point| (scheme.to_owned(), seed, Value::from(grid.clone()).to_string());
    let by_identity = found.drain(..).map(|run| {
        let RunRecord { scheme, seed, grid, .. } = &run.record;
        (identity(scheme, *seed, grid), run)
    });
    let mut by_identity: BTreeMap<_, FinishedRun> = by_identity.collect();
    let of_row = |row: &Row| match row.seed {
        Seed::One(seed) if row.class == ALL => by_identity.remove(&identity(&row.scheme, seed, &row.grid)),
        _ => None,
    };
    let runs: Vec<FinishedRun> = rows.iter().filter_map(of_row).collect();
    let Some(first) = runs.first() else {
        return Err(Unreadable::new(&folder.join("summary.json"), "holds no runs"));
    };
    let claims = read_claims(first)?;
    let claims = claims::judge(&claims, &rows);
    let columns = read_columns(first)?;
    let terms = Terms {
        columns: columns.clone(),
        classes: first.record.classes.clone(),
        baseline: of_measure(first, "baseline")?,
        indifferent: of_measure(first, "indifferent")?.unwrap_or_default(),
    };
    let verdicts = verdict::verdicts(&rows, &terms);
    let settings = settings::settings(&rows, &terms);
    let classes: Vec<String> = match &first.record.classes[..] {
        [] | [_] => vec![ALL.to_owned()],
        several => [ALL.to_owned()].into_iter().chain(several.iter().cloned()).collect(),
    };
    let points = distinct(rows.iter().map(|row| &row.grid));
    let schemes = distinct(rows.iter().map(|row| &row.scheme));
    Ok(Results { unverified, rows, runs, failed, points, schemes, classes, claims, columns, verdicts, settings })
}

/// Each value once, in the order in which they come.
fn distinct<T: Clone + Serialize>(all: impl Iterator<Item = impl Borrow<T>>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    // Grid points have no order of their own. Texts and numbers are always JSON.
    let text = |one: &T| serde_json::to_string(one).unwrap_or_default();
    all.filter(|one| seen.insert(text(one.borrow()))).map(|one| one.borrow().clone()).collect()
}

/// Why a folder has no summary.
fn no_summary(folder: &Path) -> Unreadable {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below = entries.filter(|path| path.join("summary.json").is_file());
    let mut below: Vec<String> = below.map(|path| path.display().to_string()).collect();
    below.sort();
    let hint = if below.is_empty() {
        "expected the folder that `incast run` names as \"results\"; of an interrupted run, `--resume` writes the summary"
            .to_owned()
    } else {
        format!("there is {}", below.join(", "))
    };
    Unreadable::new(folder, format!("no summary.json; {hint}"))
}

/// The parts of a folder that belong together.
struct Parts {
    rows: Vec<Row>,
    /// Runs that are done.
    done: Vec<FinishedRun>,
    /// Runs that failed: their folders, and why.
    failed: Vec<(String, String)>,
    unverified: bool,
}

fn read_parts(folder: &Path) -> Result<Parts, Unreadable> {
    let found = runs::read(folder).map_err(|FileError { path, source }| match source.kind() {
        _ if path == folder && !folder.is_dir() => Unreadable::new(folder, format!("cannot be read: {source}")),
        _ => Unreadable::new(&path, source),
    })?;
    let unverified = found.is_unverified();
    let rows = found.rows.ok_or_else(|| no_summary(folder))?;
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for (folder, record) in found.runs {
        let run = FinishedRun { folder, record };
        match run.record.status {
            Status::Done => done.push(run),
            Status::Failed => failed.push((run.name(), run.record.error.clone().unwrap_or_default())),
        }
    }
    let identity = |run: &FinishedRun| (run.record.version.clone(), run.record.scenario_hash.clone());
    if let Some(first) = done.first()
        && let Some(other) = done.iter().find(|run| identity(run) != identity(first))
    {
        let message = format!("is of another scenario or version of incast than {}", first.name());
        return Err(Unreadable::new(&other.folder, message));
    }
    Ok(Parts { rows, done, failed, unverified })
}

/// Columns that the scenario lists.
fn read_columns(run: &FinishedRun) -> Result<Vec<Column>, Unreadable> {
    let Some(columns) = run.record.scenario.pointer("/table/columns") else { return Ok(Vec::new()) };
    serde_json::from_value(columns.clone())
        .map_err(|error| Unreadable::new(&run.folder.join("run.json"), format!("scenario.table.columns: {error}")))
}

/// A key of `[measure]`, if the scenario gives it.
fn of_measure<T: serde::de::DeserializeOwned>(run: &FinishedRun, key: &str) -> Result<Option<T>, Unreadable> {
    let value = run.record.scenario.pointer("/measure").and_then(|measure| measure.get(key));
    let value = value.map(|value| serde_json::from_value(value.clone())).transpose();
    value.map_err(|error| Unreadable::new(&run.folder.join("run.json"), format!("scenario.measure.{key}: {error}")))
}

fn read_claims(run: &FinishedRun) -> Result<Vec<Claim>, Unreadable> {
    let Some(claims) = run.record.scenario.pointer("/paper/claim") else { return Ok(Vec::new()) };
    serde_json::from_value(claims.clone())
        .map_err(|error| Unreadable::new(&run.folder.join("run.json"), format!("scenario.paper.claim: {error}")))
}
