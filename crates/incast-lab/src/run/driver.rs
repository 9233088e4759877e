//! All runs of a scenario, in parallel, and the summary of them.

use super::{
    RunError,
    folder::{Existing, Folder, Identity},
    memory,
    one::{Context, Ending, Export, flows_file, key, run_one},
    only::Only,
};
use crate::{
    atomic,
    metrics::requests::{self, Request},
    report::{self, ReportError},
    results::{
        RunRecord,
        claims::{self, Judgement, Status},
        csv, file,
        host::{Host, available_memory, cores},
        parquet,
        row::Row,
        summary::{RunFlows, pooled_rows},
        table::{self, Extent, Footer},
    },
    scenario::{Form, Run, Scenario},
};
use incast_sim::{Progress, outcome::FlowRecord};
use incast_units::Time;
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use toml::Value;

/// The period at which an observer is called.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of all results.
    pub out: PathBuf,
    /// Runs at once; by default as many as there are cores for.
    pub jobs: Option<usize>,
    /// Threads of one simulation.
    pub threads: usize,
    /// A run that takes longer has failed.
    pub run_timeout: Option<Duration>,
    /// What to do with results that are there already.
    pub existing: Existing,
    /// Further files of each run.
    pub export: Export,
    /// How much of the comparison is printed.
    pub extent: Extent,
}

/// The selected runs of a scenario.
#[derive(Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// The runs, grid point by grid point, scheme by scheme, seed by seed.
    pub runs: Vec<Run>,
    identity: Identity,
    /// Every run of the scenario, selected or not, with all seeds that may be added.
    all: Vec<Run>,
    /// The selected ones of seeds that are added where claims are inconclusive: seed by seed.
    further: Vec<Run>,
}

impl Plan {
    /// Of a scenario: with the first `seeds` of its seeds, continued upwards if there are fewer, and of those runs
    /// only what `only` selects.
    ///
    /// # Errors
    /// `only` names nothing.
    pub fn new(mut scenario: Scenario, seeds: Option<usize>, only: &Only) -> Result<Self, RunError> {
        // Not the seeds of --seeds: results of more seeds are results of the same scenario.
        let identity = Identity { version: crate::VERSION.to_owned(), scenario_hash: fingerprint(&scenario) };
        let next = scenario.seeds.iter().max().map_or(1, |largest| largest.saturating_add(1));
        let continued = |count| scenario.seeds.iter().copied().chain(next..).take(count).collect::<Vec<_>>();
        let listed = seeds.map_or_else(|| scenario.seeds.clone(), continued);
        scenario.seeds = continued(if seeds.is_some() { listed.len() } else { scenario.seed_budget });
        let all = scenario.runs();
        let (runs, further) = scenario.runs().into_iter().partition(|run| listed.contains(&run.seed));
        let runs = only.select(runs)?;
        // With `--only seed=…` there are none.
        let mut further = only.select(further).unwrap_or_default();
        let place = |run: &Run| scenario.seeds.iter().position(|seed| *seed == run.seed);
        further.sort_by_key(place);
        scenario.seeds = listed;
        Ok(Self { scenario, runs, identity, all, further })
    }

    /// Hash of the scenario's effective values and of the files that it names.
    pub fn scenario_hash(&self) -> &str {
        &self.identity.scenario_hash
    }

    /// Runs of more seeds at the grid points where claims are inconclusive: as many seeds again as `planned` has.
    fn further(&self, claims: &[Judgement], planned: &[&Run]) -> Vec<&Run> {
        let open: Vec<_> = claims.iter().filter(|claim| claim.status == Status::Inconclusive).collect();
        // Growth is from another grid point.
        let anywhere = self.scenario.claims.iter().any(|claim| !claim.ratio_at.is_empty());
        let is_open = |run: &Run| {
            let grid = key(run, Vec::new(), &[]).grid;
            !open.is_empty() && (anywhere || open.iter().any(|claim| claim.grid == grid))
        };
        let mut seeds: Vec<u64> = planned.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut added: Vec<u64> = Vec::new();
        for run in &self.further {
            if !seeds.contains(&run.seed) && !added.contains(&run.seed) && added.len() < seeds.len() {
                added.push(run.seed);
            }
        }
        self.further.iter().filter(|run| added.contains(&run.seed) && is_open(run)).collect()
    }

    /// Names of the workloads of long flows.
    fn long_classes(&self) -> Vec<String> {
        let workloads =
            self.scenario.effective.get("workload").and_then(Value::as_array).into_iter().flatten();
        let text = |workload: &Value, key: &str| workload.get(key).and_then(Value::as_str).map(str::to_owned);
        workloads
            .filter(|workload| text(workload, "kind").as_deref() == Some("long"))
            .map(|workload| text(workload, "class").unwrap_or_else(|| "long".to_owned()))
            .collect()
    }
}

/// Hears of the progress of runs, from several threads.
pub trait Observer: Sync {
    /// Runs are about to start: those to do, and how many were found finished.
    fn on_start(&self, _to_do: &[&Run], _found: usize) {}
    /// A run goes on. `run` is its index in the list given to [`Self::on_start`].
    fn on_progress(&self, _run: usize, _progress: &Progress) {}
    /// A run was simulated; its files are written until [`Self::on_end`].
    fn on_simulated(&self, _run: usize) {}
    /// A run ended; with a message if it failed.
    fn on_end(&self, _run: usize, _failure: Option<&str>) {}
}

/// What became of a scenario.
#[derive(Debug)]
pub struct Finished {
    /// Where the results are.
    pub folder: PathBuf,
    /// Rows of the summary.
    pub rows: Vec<Row>,
    /// The comparison for the terminal.
    pub table: String,
    /// Published numbers and what became of them.
    pub claims: Vec<Judgement>,
    /// Where the report is, or why there is none; `None` without rows.
    pub report: Option<Result<PathBuf, ReportError>>,
    /// Runs that failed, with the reason.
    pub failures: Vec<(String, String)>,
    /// It was interrupted before every run was done.
    pub stopped: bool,
    /// Runs that are done, those found finished included.
    pub done: usize,
    /// Runs that were to be done, those of added seeds included.
    pub planned: usize,
}

/// Does the selected runs that are not finished yet, and writes the summary of all that are.
///
/// Runs that are simulated when `stop` becomes true are given up; what is finished stays.
///
/// # Errors
/// Nothing was started because of bad input or too little memory, or the summary could not be written.
pub fn execute(
    plan: &Plan,
    options: &Options,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Finished, RunError> {
    let threads = options.threads.max(1);
    let jobs = options.jobs.unwrap_or_else(|| cores() / threads).clamp(1, plan.runs.len().max(1));
    // Too large is too large for a folder that exists too: check before anything is written.
    let jobs = memory::admit(&plan.runs, jobs, options.jobs.is_some(), threads, available_memory())?;
    let folder = Folder::open(&options.out, &plan.scenario.name, options.existing, &plan.identity)?;
    let host = Host::here();
    let long = plan.long_classes();
    let context = Context {
        folder: &folder,
        identity: &plan.identity,
        long: &long,
        host: &host,
        threads,
        run_timeout: options.run_timeout,
        export: options.export,
    };
    let mut planned: Vec<&Run> = plan.runs.iter().collect();
    let mut failures = Vec::new();
    let rows = loop {
        let to_do: Vec<&Run> =
            planned.iter().copied().filter(|run| folder.finished(&run.folder).is_none()).collect();
        observer.on_start(&to_do, planned.len() - to_do.len());
        failures.extend(run_all(&to_do, jobs, &context, observer, stop));
        let rows = summarise(plan, &folder, &long)?;
        let further = plan.further(&claims::judge(&plan.scenario.claims, &rows), &planned);
        if further.is_empty() || !failures.is_empty() || stop.load(Ordering::Relaxed) {
            break rows;
        }
        planned.extend(further);
    };
    let done = planned.iter().filter(|run| folder.finished(&run.folder).is_some()).count();
    let footer = footer(plan, &rows);
    let table = table::render(&title(plan), &rows, &footer, options.extent);
    let mut report = None;
    if !rows.is_empty() {
        let (json_path, csv_path) = (folder.path().join("summary.json"), folder.path().join("summary.csv"));
        let json = file::to_json(&[&rows]).map_err(|error| RunError::files(&json_path)(error.into()))?;
        let csv =
            csv::summary(&rows).map_err(|error| RunError::files(&csv_path)(std::io::Error::other(error)))?;
        atomic::write(&json_path, |file| file.write_all(json.as_bytes()))
            .map_err(RunError::files(&json_path))?;
        atomic::write(&csv_path, |file| file.write_all(csv.as_bytes()))
            .map_err(RunError::files(&csv_path))?;
        report = Some(report::write(folder.path()));
    }
    let planned = planned.len();
    let stopped = stop.load(Ordering::Relaxed) && done + failures.len() < planned;
    let claims = footer.claims;
    let folder = folder.path().to_owned();
    Ok(Finished { folder, rows, table, claims, report, failures, stopped, done, planned })
}

/// Runs everything on `jobs` threads; returns the failures in the order of the runs.
fn run_all(
    to_do: &[&Run],
    jobs: usize,
    context: &Context<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Vec<(String, String)> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = to_do.get(index) else { return };
            let mut reported = Instant::now();
            let mut observe = |progress: &Progress| {
                if reported.elapsed() >= REPORT_EVERY {
                    reported = Instant::now();
                    observer.on_progress(index, progress);
                }
            };
            let ending = run_one(run, context, stop, &mut observe, &mut || observer.on_simulated(index));
            let failure = match ending {
                Ok(Ending::Done(_)) => None,
                Ok(Ending::Stopped) => return,
                Ok(Ending::Failed(message)) => Some(message),
                Err(error) => Some(error.to_string()),
            };
            observer.on_end(index, failure.as_deref());
            if let Some(message) = failure {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.push((index, run.folder.clone(), message));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(to_do.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    failures.into_iter().map(|(_, run, message)| (run, message)).collect()
}

/// Rows of every finished run of the scenario, and of each group of seeds.
fn summarise(plan: &Plan, folder: &Folder, long: &[String]) -> Result<Vec<Row>, RunError> {
    let mut rows = Vec::new();
    let same_group = |a: &Run, b: &Run| a.scheme == b.scheme && a.grid == b.grid;
    for group in plan.all.chunk_by(same_group) {
        let finished: Vec<(&Run, RunRecord)> =
            group.iter().filter_map(|run| Some((run, folder.finished(&run.folder)?))).collect();
        let Some((first, record)) = finished.first() else { continue };
        let key = key(first, record.classes.clone(), long);
        let flows = finished
            .iter()
            .map(|(run, record)| read_run(folder, run, record))
            .collect::<Result<Vec<_>, _>>()?;
        let flows: Vec<RunFlows<'_>> = flows
            .iter()
            .map(|(flows, requests, ended_at)| RunFlows { flows, requests, ended_at: *ended_at })
            .collect();
        let single: Vec<Vec<Row>> = finished.iter().map(|(_, record)| record.rows.clone()).collect();
        let pooled = pooled_rows(&key, &single, &flows);
        rows.extend(single.into_iter().flatten());
        rows.extend(pooled);
    }
    Ok(rows)
}

fn read_run(
    folder: &Folder,
    run: &Run,
    record: &RunRecord,
) -> Result<(Vec<FlowRecord>, Vec<Request>, Time), RunError> {
    let path = flows_file(folder.path(), &run.folder);
    let flows = parquet::read_flows(&path, &record.classes).map_err(RunError::files(&path))?;
    let requests = requests::group(&flows);
    Ok((flows, requests, Time::from_ps(record.ended_at_ps)))
}

fn title(plan: &Plan) -> String {
    let scenario = &plan.scenario;
    let form = if scenario.form == Form::Short { " (short form)" } else { "" };
    if scenario.describe.is_empty() {
        format!("{}{form}", scenario.name)
    } else {
        format!("{}{form}: {}", scenario.name, scenario.describe)
    }
}

fn footer(plan: &Plan, rows: &[Row]) -> Footer {
    let mut footer = Footer {
        claims: claims::judge(&plan.scenario.claims, rows),
        not_run: claims::not_run(&plan.scenario.claims, rows),
        has_pfc: plan.runs.iter().any(Run::has_pfc),
        columns: plan.scenario.columns.clone(),
        classes: plan.runs.first().map(|run| run.classes.clone()).unwrap_or_default(),
        ..Footer::default()
    };
    for run in &plan.runs {
        if !footer.schemes.iter().any(|(scheme, _)| *scheme == run.scheme) {
            footer.schemes.push((run.scheme.clone(), run.footnotes()));
        }
        for line in run.describe_workloads() {
            if !footer.workloads.contains(&line) {
                footer.workloads.push(line);
            }
        }
    }
    footer
}

/// Tells scenarios apart: by their effective values and the content of the files that these name.
fn fingerprint(scenario: &Scenario) -> String {
    let mut hash = Sha256::new();
    hash.update(scenario.effective_toml());
    let folder = scenario.file.path.parent().unwrap_or(Path::new(""));
    for value in scenario.effective.values() {
        hash_files(value, folder, &mut hash);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds the content of every file beside the scenario that a text in `value` names.
fn hash_files(value: &Value, folder: &Path, hash: &mut Sha256) {
    match value {
        Value::String(name) => {
            // A text that names no readable file is just a text.
            let path = folder.join(name);
            if let Some(bytes) = path.is_file().then(|| fs::read(path).ok()).flatten() {
                hash.update(name);
                hash.update(Sha256::digest(bytes));
            }
        }
        Value::Array(values) => values.iter().for_each(|value| hash_files(value, folder, hash)),
        Value::Table(table) => table.values().for_each(|value| hash_files(value, folder, hash)),
        _ => {}
    }
}
