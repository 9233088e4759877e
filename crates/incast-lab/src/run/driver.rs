//! All runs of a scenario, in parallel, and the summary of them.

use super::{
    RunError,
    folder::{self, Existing, Folder, Found, Identity},
    memory,
    one::{Context, Ending, Export, flows_file, key, simulate_run},
    only::Only,
};
use crate::{
    atomic,
    metrics::requests::{self, Request},
    report::{self, ReportError},
    results::{
        RunRecord,
        checksums::{Files, hex},
        claims::{self, Judgement, Status},
        csv, file,
        host::{Host, available_memory, cores},
        parquet,
        record::Status as RunStatus,
        row::Row,
        settings::{self, OfScheme, Subject},
        summary::{RunFlows, pooled_rows},
        table::{self, Extent, Footer},
        verdict::{self, Terms},
    },
    scenario::{Form, Run, Scenario},
    text::grid_point,
};
use incast_sim::{Progress, outcome::FlowRecord};
use incast_units::Time;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

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

    /// What a run is known by on any machine: equal ids give equal results.
    pub fn id(&self, run: &Run) -> String {
        let Identity { version, scenario_hash } = &self.identity;
        let mut id = hex(&Sha256::digest(format!("{scenario_hash} {} {version}", run.folder)));
        id.truncate(16);
        id
    }

    /// What `incast check` and Python say of the runs and of all together, as JSON.
    pub fn expected(&self) -> Value {
        let (packet_hops, cpu_s) = self.expected_cost();
        let simulations = self.simulations();
        let folder = |index: &usize| self.runs[*index].folder.as_str();
        let same_as: HashMap<&str, &str> = simulations
            .iter()
            .flat_map(|same| same[1..].iter().map(move |other| (folder(other), folder(&same[0]))))
            .collect();
        let run = |run: &Run| {
            json!({
                "folder": run.folder,
                "id": self.id(run),
                "scheme": run.scheme,
                "seed": run.seed,
                "grid": run.grid.iter().map(|(key, value)| (key.clone(), json!(value))).collect::<Map<_, _>>(),
                "packet_hops": run.expected_packet_hops(),
                "cpu_s": run.expected_cpu_s(),
                "same_as": same_as.get(run.folder.as_str()),
                "memory_bytes": run.estimated_memory(),
                "nominal_load": run.nominal().map(|nominal| nominal.load),
                "is_too_short": run.is_too_short(),
            })
        };
        json!({
            "packet_hops": packet_hops,
            "cpu_s": cpu_s,
            "cores": cores(),
            "remarks": self.remarks(),
            "runs": self.runs.iter().map(run).collect::<Vec<Value>>(),
        })
    }

    /// Of each scheme what it changes; what it does not change at all grid points with the first of them.
    pub fn footnotes(&self) -> Vec<(String, Vec<String>)> {
        let mut schemes: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !schemes.contains(&run.scheme.as_str()) {
                schemes.push(&run.scheme);
            }
        }
        let of = |scheme: &str| {
            let own: Vec<&Run> = self.runs.iter().filter(|run| run.scheme == scheme).collect();
            let mut notes: Vec<String> = Vec::new();
            for note in own.iter().flat_map(|run| run.footnotes()) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            notes.into_iter().map(|note| placed(note, &own)).collect()
        };
        schemes.into_iter().map(|scheme| (scheme.to_owned(), of(scheme))).collect()
    }

    /// What there is to look at before its results are trusted, beside the scenario's own warnings: runs too short for a steady
    /// state, and laws on fabrics that they are not made for.
    pub fn remarks(&self) -> Vec<String> {
        let short: Vec<&Run> = self.runs.iter().filter(|run| run.is_too_short()).collect();
        let longest = short.iter().filter_map(|run| Some((run.nominal()?, run))).max_by_key(|(of, _)| of.settles);
        let settling = longest.map(|(of, run)| {
            format!("{} of {} runs, of the longest: {}", short.len(), self.runs.len(), of.settling(run.counted_until))
        });
        let mut all: Vec<String> = settling.into_iter().collect();
        for remark in self.runs.iter().flat_map(Run::without_lossless_fabric) {
            if !all.contains(&remark) {
                all.push(remark);
            }
        }
        all
    }

    /// The selected runs that are one simulation, as places in [`Self::runs`]: the first one is simulated.
    pub fn simulations(&self) -> Vec<Vec<usize>> {
        simulations(self.runs.iter())
    }

    /// Packet-hops and CPU seconds that the runs are expected to take.
    pub fn expected_cost(&self) -> (f64, f64) {
        let simulated = self.simulations().into_iter().map(|same| &self.runs[same[0]]);
        let costs = simulated.map(|run| (run.expected_packet_hops(), run.expected_cpu_s()));
        costs.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
    }

    /// The runs whose folders are named, of any seeds that it may have, and no others.
    #[must_use]
    pub fn part(&self, folders: &BTreeSet<String>) -> Self {
        let own = || self.all.iter().filter(|run| folders.contains(&run.folder)).cloned().collect::<Vec<_>>();
        let (scenario, identity) = (self.scenario.clone(), self.identity.clone());
        Self { scenario, identity, runs: own(), all: own(), further: Vec::new() }
    }

    /// Selects the runs whose folders are named, in place of those that were.
    pub fn select(&mut self, folders: &BTreeSet<String>) {
        self.runs = self.all.iter().filter(|run| folders.contains(&run.folder)).cloned().collect();
        self.further.clear();
    }

    /// Every run of the scenario, selected or not, with all seeds that may be added.
    pub fn all(&self) -> &[Run] {
        &self.all
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
}

/// Is told of the progress of runs, from several threads.
pub trait Observer: Sync {
    /// Runs are about to start: those to do, and how many were found finished.
    fn on_start(&self, _to_do: &[&Run], _found: usize) {}
    /// What lies in the folder of a run is not what it wrote, so it is to be done again; and why.
    fn on_damage(&self, _folder: &Path, _why: &str) {}
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
    /// The runs that the summary names.
    pub runs: Files,
    /// The comparison for the terminal.
    pub table: String,
    /// Which schemes are best, and at which grid points.
    pub choices: Vec<Choice>,
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

/// A note of runs of one scheme, with the first grid point that it is about if it is not about all of them.
fn placed(note: String, runs: &[&Run]) -> String {
    let mut points: Vec<Map<String, Value>> = Vec::new();
    for run in runs.iter().filter(|run| run.footnotes().contains(&note)) {
        let point = run.grid.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        if !points.contains(&point) {
            points.push(point);
        }
    }
    let all = runs.chunk_by(|one, other| one.grid == other.grid).count();
    match &points[..] {
        [first, others @ ..] if points.len() < all => {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            format!("{note} (at {}{more})", grid_point(first))
        }
        _ => note,
    }
}

/// A scheme at the grid point where it is best.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The scheme.
    pub scheme: String,
    /// The grid point.
    pub grid: Map<String, Value>,
    /// The number that it is best in.
    pub subject: String,
    /// Its point was chosen among settings, and not the first.
    pub is_set: bool,
}

/// What is best in each number, in the order of the numbers, and then the other schemes at their best in the first one, under the
/// first conditions; without settings what is best at the first grid point.
fn choices(rows: &[Row], terms: &Terms) -> Vec<Choice> {
    let settings = settings::settings(rows, terms);
    let Some(first) = settings.first() else {
        let verdicts = verdict::verdicts(rows, terms);
        let of = verdicts.first().into_iter().flat_map(|point| {
            point.verdicts.iter().map(|it| Choice {
                scheme: it.best.clone(),
                grid: point.grid.clone(),
                subject: it.subject(),
                is_set: false,
            })
        });
        return of.filter(|choice| !choice.scheme.is_empty()).collect();
    };
    let choice = |subject: &Subject, of: &OfScheme| Choice {
        scheme: of.scheme.clone(),
        grid: first.conditions.iter().chain(&of.point).map(|(key, value)| (key.clone(), value.clone())).collect(),
        subject: verdict::subject_heading(&subject.class, subject.metric),
        is_set: true,
    };
    let winners = first.subjects.iter().filter_map(|subject| {
        let best = &subject.best.as_ref()?.best;
        subject.schemes.iter().find(|of| of.scheme == *best).map(|of| choice(subject, of))
    });
    let others = first.subjects.iter().take(1).flat_map(|subject| subject.schemes.iter().map(|of| choice(subject, of)));
    winners.chain(others).collect()
}

/// What became of runs that are a part of a scenario's.
#[derive(Debug)]
pub struct Part {
    /// Where the results are.
    pub folder: PathBuf,
    /// Runs that failed, with the reason.
    pub failures: Vec<(String, String)>,
    /// Records of the runs that are done, those found finished included.
    pub records: Vec<Arc<RunRecord>>,
}

/// Runs that were done elsewhere, joined.
#[derive(Debug)]
pub struct Gathered {
    /// What [`execute`] would say of them.
    pub finished: Finished,
    /// Selected runs that nobody has.
    pub missing: Vec<String>,
    /// Runs of more seeds that inconclusive claims ask for: those that [`execute`] would do next.
    pub wanted: Vec<String>,
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
    let (folder, jobs) = begin(plan, options)?;
    let long = plan.scenario.long_classes();
    let host = Host::here();
    let context = context(plan, options, &folder, &long, &host);
    let mut planned: Vec<&Run> = plan.runs.iter().collect();
    let mut failures = Vec::new();
    let rows = loop {
        let to_do: Vec<&Run> = planned.iter().copied().filter(|run| is_to_do(&folder, run, observer)).collect();
        observer.on_start(&to_do, planned.len() - to_do.len());
        failures.extend(run_all(&to_do, jobs, &context, observer, stop));
        let rows = summarise(plan, &folder, &long)?;
        let further = plan.further(&claims::judge(&plan.scenario.claims, &rows), &planned);
        if further.is_empty() || !failures.is_empty() || stop.load(Ordering::Relaxed) {
            break rows;
        }
        planned.extend(further);
    };
    let stopped = stop.load(Ordering::Relaxed);
    conclude(plan, &folder, rows, &planned, failures, stopped, options.extent)
}

/// Writes summary and report.
fn conclude(
    plan: &Plan,
    folder: &Folder,
    rows: Vec<Row>,
    planned: &[&Run],
    failures: Vec<(String, String)>,
    stopped: bool,
    extent: Extent,
) -> Result<Finished, RunError> {
    let done = planned.iter().filter(|run| folder.finished(run).is_some()).count();
    let footer = footer(plan, &rows);
    let table = table::render(&title(plan), &rows, &footer, extent);
    let (mut report, mut runs) = (None, Files::new());
    if !rows.is_empty() {
        let (json_path, csv_path) = (folder.path().join("summary.json"), folder.path().join("summary.csv"));
        runs = folder.records()?;
        let json = file::to_json(&[&rows], &runs).map_err(|error| RunError::files(&json_path)(error.into()))?;
        let csv = csv::summary(&rows).map_err(|error| RunError::files(&csv_path)(std::io::Error::other(error)))?;
        atomic::write(&json_path, |file| file.write_all(json.as_bytes())).map_err(RunError::files(&json_path))?;
        atomic::write(&csv_path, |file| file.write_all(csv.as_bytes())).map_err(RunError::files(&csv_path))?;
        report = Some(report::write(folder.path()));
    }
    let planned = planned.len();
    let stopped = stopped && done + failures.len() < planned;
    let folder = folder.path().to_owned();
    let choices = choices(&rows, &footer.terms);
    let claims = footer.claims;
    Ok(Finished { folder, rows, runs, table, choices, claims, report, failures, stopped, done, planned })
}

/// Does the selected runs that have not ended yet, and no more: [`gather`] writes the summary.
///
/// # Errors
/// Nothing was started because of bad input or too little memory.
pub fn execute_part(
    plan: &Plan,
    options: &Options,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Part, RunError> {
    let (folder, jobs) = begin(plan, options)?;
    let long = plan.scenario.long_classes();
    let host = Host::here();
    // Equal runs end equally: what failed here would fail again.
    let (mut to_do, mut failures) = (Vec::new(), Vec::new());
    for run in &plan.runs {
        match folder.find(run) {
            Found::Done(_) => {}
            Found::Failed(record) => failures.extend(record.error.clone().map(|error| (run.folder.clone(), error))),
            Found::Nothing | Found::Damaged(_) => to_do.push(run),
        }
        tell_damage(&folder, run, observer);
    }
    observer.on_start(&to_do, plan.runs.len() - to_do.len());
    failures.extend(run_all(&to_do, jobs, &context(plan, options, &folder, &long, &host), observer, stop));
    let records = plan.runs.iter().filter_map(|run| folder.finished(run)).collect();
    Ok(Part { folder: folder.path().to_owned(), failures, records })
}

/// Opens the folder, if the runs fit into memory; returns also the number of runs at once.
fn begin(plan: &Plan, options: &Options) -> Result<(Folder, usize), RunError> {
    let threads = options.threads.max(1);
    let jobs = options.jobs.unwrap_or_else(|| cores() / threads).clamp(1, plan.runs.len().max(1));
    // Too large is too large for a folder that exists too: check before anything is written.
    let jobs = memory::admit(&plan.runs, jobs, options.jobs.is_some(), threads, available_memory())?;
    let folder = Folder::open(&options.out, &plan.scenario.name, options.existing, &plan.identity)?;
    Ok((folder, jobs))
}

fn context<'a>(
    plan: &'a Plan,
    options: &Options,
    folder: &'a Folder,
    long: &'a [String],
    host: &'a Host,
) -> Context<'a> {
    Context {
        folder,
        identity: &plan.identity,
        long,
        host,
        threads: options.threads.max(1),
        run_timeout: options.run_timeout,
        export: options.export,
    }
}

/// The selected runs that are neither in the scenario's results in `out` nor in `sources`, folders of its results elsewhere;
/// those that failed there, too, if they are to be tried `again`.
///
/// # Errors
/// A folder holds results of another scenario or version, or cannot be read.
pub fn missing(plan: &Plan, out: &Path, sources: &[PathBuf], again: bool) -> Result<Vec<String>, RunError> {
    let folder = out.join(&plan.scenario.name);
    let all = sources.iter().chain(folder.is_dir().then_some(&folder));
    all.clone().try_for_each(|source| folder::check_identity(source, &plan.identity))?;
    let all: Vec<PathBuf> = all.cloned().collect();
    let is_there =
        |run: &Run| elsewhere(run, &all).is_some_and(|(_, record)| !again || record.status == RunStatus::Done);
    let runs = plan.runs.iter().filter(|run| !is_there(run));
    Ok(runs.map(|run| run.folder.clone()).collect())
}

/// Where a run is, and its record: the first that is done, or else the first that failed. One of which a file was not copied
/// whole is not there.
fn elsewhere(run: &Run, sources: &[PathBuf]) -> Option<(PathBuf, Arc<RunRecord>)> {
    let found = sources.iter().filter_map(|source| match folder::find(source, run) {
        Found::Done(record) | Found::Failed(record) => Some((source.join(&run.folder), record)),
        Found::Nothing | Found::Damaged(_) => None,
    });
    found.min_by_key(|(_, record)| record.status == RunStatus::Failed)
}

/// Of runs that are `missing` in `sources`, the folders that are there and are not what the runs wrote; and why.
pub fn damaged(plan: &Plan, sources: &[PathBuf], missing: &[String]) -> Vec<(PathBuf, String)> {
    let missing: BTreeSet<&String> = missing.iter().collect();
    let runs = plan.all.iter().filter(|run| missing.contains(&run.folder));
    let places = runs.flat_map(|run| sources.iter().map(move |source| (source, run)));
    places
        .filter_map(|(source, run)| match folder::find(source, run) {
            Found::Damaged(why) => Some((source.join(&run.folder), why)),
            _ => None,
        })
        .collect()
}

/// Nothing that can be used is there of a run.
fn is_to_do(folder: &Folder, run: &Run, observer: &dyn Observer) -> bool {
    tell_damage(folder, run, observer);
    folder.finished(run).is_none()
}

fn tell_damage(folder: &Folder, run: &Run, observer: &dyn Observer) {
    if let Found::Damaged(why) = folder.find(run) {
        observer.on_damage(&folder.path().join(&run.folder), &why);
    }
}

/// Joins runs that were done elsewhere in the folder of the scenario's results, and writes the summary: what [`execute`]
/// leaves. Those of added seeds are taken, too.
///
/// # Errors
/// A folder holds results of another scenario or version, somebody writes there, or files cannot be read or written.
pub fn gather(plan: &Plan, out: &Path, sources: &[PathBuf], extent: Extent) -> Result<Gathered, RunError> {
    sources.iter().try_for_each(|source| folder::check_identity(source, &plan.identity))?;
    let folder = Folder::open(out, &plan.scenario.name, Existing::Resume, &plan.identity)?;
    let (mut planned, mut failures, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    // A run that failed in one place may be done in another.
    let everywhere: Vec<PathBuf> = sources.iter().cloned().chain([folder.path().to_owned()]).collect();
    let selected = plan.runs.iter().map(|run| (run, true));
    for (run, is_selected) in selected.chain(plan.further.iter().map(|run| (run, false))) {
        if folder.finished(run).is_some() {
            planned.push(run);
        } else if let Some((from, record)) = elsewhere(run, &everywhere) {
            if !from.starts_with(folder.path()) {
                folder.adopt(&run.folder, &from, &record)?;
            }
            if matches!(folder.find(run), Found::Nothing | Found::Damaged(_)) {
                missing.push(run.folder.clone());
                planned.push(run);
                continue;
            }
            if record.status == RunStatus::Failed {
                failures.push((run.folder.clone(), record.error.clone().unwrap_or_default()));
            }
            planned.push(run);
        } else if is_selected {
            missing.push(run.folder.clone());
            planned.push(run);
        }
    }
    let rows = summarise(plan, &folder, &plan.scenario.long_classes())?;
    let further = plan.further(&claims::judge(&plan.scenario.claims, &rows), &planned);
    let wanted = match failures.is_empty() && missing.is_empty() {
        true => further.iter().map(|run| run.folder.clone()).collect(),
        false => Vec::new(),
    };
    let finished = conclude(plan, &folder, rows, &planned, failures, !missing.is_empty(), extent)?;
    Ok(Gathered { finished, missing, wanted })
}

/// Takes the selected runs that were done elsewhere, and no more, into the folder of the scenario's results; [`execute`] and
/// [`execute_part`] find them there.
///
/// # Errors
/// A folder holds results of another scenario or version, somebody writes there, or files cannot be read or written.
pub fn adopt(plan: &Plan, out: &Path, sources: &[PathBuf]) -> Result<(), RunError> {
    sources.iter().try_for_each(|source| folder::check_identity(source, &plan.identity))?;
    let folder = Folder::open(out, &plan.scenario.name, Existing::Resume, &plan.identity)?;
    for run in plan.runs.iter().filter(|run| folder.finished(run).is_none()) {
        if let Some((from, record)) = elsewhere(run, sources) {
            folder.adopt(&run.folder, &from, &record)?;
        }
    }
    Ok(())
}

/// Runs that are one simulation, as places in the list: equal in all that their packets depend on, the seed among it.
fn simulations<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<Vec<usize>> {
    let mut places: HashMap<(Arc<str>, u64), usize> = HashMap::new();
    let mut all: Vec<Vec<usize>> = Vec::new();
    // Those that differ in their seeds follow one another, and their text takes a while.
    let mut last: Option<(&Run, Arc<str>)> = None;
    for (index, run) in runs.enumerate() {
        let known = last.as_ref().filter(|(before, _)| run.differs_in_seed_only(before)).map(|(_, text)| text.clone());
        let text = known.unwrap_or_else(|| run.simulated().into());
        last = Some((run, text.clone()));
        let place = *places.entry((text, run.seed)).or_insert(all.len());
        if place == all.len() {
            all.push(Vec::new());
        }
        all[place].push(index);
    }
    all
}

/// Runs everything on `jobs` threads; returns the failures in the order of the runs.
fn run_all(
    to_do: &[&Run],
    jobs: usize,
    context: &Context<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Vec<(String, String)> {
    let simulations = simulations(to_do.iter().copied());
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    // No run can be written any more.
    let is_full = AtomicBool::new(false);
    let work = || {
        while !stop.load(Ordering::Relaxed) && !is_full.load(Ordering::Relaxed) {
            let Some(same) = simulations.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let first = same[0];
            let mut reported = Instant::now();
            let mut observe = |progress: &Progress| {
                if reported.elapsed() >= REPORT_EVERY {
                    reported = Instant::now();
                    observer.on_progress(first, progress);
                }
            };
            let Some(mut simulation) = simulate_run(to_do[first], context, stop, &mut observe) else { return };
            // A signal that comes now is too late to lose what was simulated.
            for &index in same {
                observer.on_simulated(index);
                let (failure, is_full_here) = match simulation.write(to_do[index], context) {
                    Ok(Ending::Done(_)) => (None, false),
                    Ok(Ending::Failed(message)) => (Some(message), false),
                    Err(error) => (Some(error.to_string()), error.is_full_disk()),
                };
                is_full.fetch_or(is_full_here, Ordering::Relaxed);
                observer.on_end(index, failure.as_deref());
                if let Some(message) = failure {
                    let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                    failures.push((index, to_do[index].folder.clone(), message, is_full_here));
                }
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
    if is_full.into_inner() {
        let begun: usize = simulations.iter().take(next.into_inner()).map(Vec::len).sum();
        let left = to_do.len() - begun;
        let first = failures.iter_mut().find(|(.., is_full_here)| *is_full_here).filter(|_| left > 0);
        first.into_iter().for_each(|(.., message, _)| message.push_str(&format!("; {left} runs were not begun")));
    }
    failures.into_iter().map(|(_, run, message, _)| (run, message)).collect()
}

/// Rows of every finished run of the scenario, and of each group of seeds.
fn summarise(plan: &Plan, folder: &Folder, long: &[String]) -> Result<Vec<Row>, RunError> {
    let mut rows = Vec::new();
    let same_group = |a: &Run, b: &Run| a.scheme == b.scheme && a.grid == b.grid;
    for group in plan.all.chunk_by(same_group) {
        let finished: Vec<(&Run, Arc<RunRecord>)> =
            group.iter().filter_map(|run| Some((run, folder.finished(run)?))).collect();
        let Some((first, record)) = finished.first() else { continue };
        let key = key(first, record.classes.clone(), long);
        let flows =
            finished.iter().map(|(run, record)| read_run(folder, run, record)).collect::<Result<Vec<_>, _>>()?;
        let flows: Vec<RunFlows<'_>> =
            flows.iter().map(|(flows, requests, ended_at)| RunFlows { flows, requests, ended_at: *ended_at }).collect();
        let single: Vec<Vec<Row>> = finished.iter().map(|(_, record)| record.rows.clone()).collect();
        let pooled = pooled_rows(&key, &single, &flows);
        rows.extend(single.into_iter().flatten());
        rows.extend(pooled);
    }
    Ok(rows)
}

fn read_run(folder: &Folder, run: &Run, record: &RunRecord) -> Result<(Vec<FlowRecord>, Vec<Request>, Time), RunError> {
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
        terms: Terms {
            columns: plan.scenario.columns.clone(),
            classes: plan.runs.first().map(|run| run.classes.clone()).unwrap_or_default(),
            baseline: plan.scenario.baseline.clone(),
            indifferent: plan.scenario.indifferent,
        },
        ..Footer::default()
    };
    footer.schemes = plan.footnotes();
    for run in &plan.runs {
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
    for (name, path) in scenario.files() {
        if let Ok(bytes) = fs::read(path) {
            hash.update(name);
            hash.update(Sha256::digest(bytes));
        }
    }
    hex(&hash.finalize())
}
