//! Runs beside the interpreter: another thread simulates, this one receives signals and says how far it is.

use crate::{error, scenario::Scenario};
use incast_cli::progress::Tracker;
use incast_interop::export;
use incast_lab::{
    results::{compact::parse_column, table::Extent},
    run::{self as lab, Gathered, Options, Plan, RunError, execute, execute_part, folder::Existing, only::Only},
    tune::{Elsewhere, Means, Over, Question, Tuning, Within},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Between two looks at signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So long what is computed may take to notice that it is to stop. Then it is left to end by itself.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ends runs from another thread of Python: the main one alone receives signals.
#[pyclass(frozen, module = "incast._incast")]
#[derive(Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Whether it was asked for.
    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// What is being simulated ends; what is finished is kept.
    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// See `incast.run`. Calls `progress(part, line)`, and returns where the results are, and failures, as JSON. Of `runs`,
/// names of folders, there is no summary.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keywords of the Python function, which names them")]
#[pyo3(signature = (scenario, *, out, seeds, only, runs, jobs, threads, existing, run_timeout, progress, stop))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    out: PathBuf,
    seeds: Option<usize>,
    only: Vec<String>,
    runs: Option<Vec<String>>,
    jobs: Option<usize>,
    threads: usize,
    existing: &str,
    run_timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<String> {
    let mut plan = scenario.plan(py, seeds, &only)?;
    let is_part = runs.is_some();
    if let Some(runs) = runs {
        plan = plan.part(&runs.into_iter().collect());
    }
    let options = options(out, (jobs, threads), existing, run_timeout);
    beside(py, progress.as_ref(), stop, move |tracker, stop| {
        if is_part {
            let part = execute_part(&plan, &options, tracker, stop)?;
            Ok(to_json(&part.folder, &part.failures, part.records.len()))
        } else {
            let finished = execute(&plan, &options, tracker, stop)?;
            Ok(to_json(&finished.folder, &finished.failures, finished.done))
        }
    })
}

/// Options as the functions of Python have them.
fn options(out: PathBuf, (jobs, threads): (Option<usize>, usize), existing: &str, run_timeout: Option<f64>) -> Options {
    Options {
        out,
        jobs,
        threads,
        run_timeout: run_timeout.map(Duration::from_secs_f64),
        existing: match existing {
            "resume" => Existing::Resume,
            "overwrite" => Existing::Overwrite,
            _ => Existing::Refuse,
        },
        export: export::files,
        extent: Extent::Fitting(100),
    }
}

/// Does something in another thread, while this one receives signals and says how far it is.
fn beside<F>(py: Python<'_>, progress: Option<&Py<PyAny>>, stop: &Stop, work: F) -> PyResult<String>
where
    F: FnOnce(&Tracker, &AtomicBool) -> Result<String, RunError> + Send + 'static,
{
    let (stop, tracker) = (Arc::clone(&stop.flag), Arc::new(Tracker::default()));
    let (sender, receiver) = mpsc::channel();
    let (its_stop, its_tracker) = (Arc::clone(&stop), Arc::clone(&tracker));
    // Not scoped: what does not notice `stop` in time is left behind.
    thread::spawn(move || {
        // If nobody waits any more, there is nobody to tell.
        let _ = sender.send(work(&its_tracker, &its_stop));
    });
    let receiver = std::sync::Mutex::new(receiver);
    let wait = |time| match receiver.lock() {
        Ok(receiver) => receiver.recv_timeout(time),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let mut told = Instant::now();
    let finished = loop {
        match py.detach(|| wait(LOOK_EVERY)) {
            Ok(finished) => break finished,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the simulator panicked: its message is on stderr"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        // From another thread, which waits for this one.
        if stop.load(Ordering::Relaxed) {
            match py.detach(|| wait(PATIENCE)) {
                Ok(finished) => break finished,
                Err(_) => return Err(error::error(py, "RunError", &"stopped")),
            }
        }
        let checked = py.check_signals().and_then(|()| match progress {
            Some(progress) if told.elapsed() >= Duration::from_millis(100) => {
                told = Instant::now();
                progress.call1(py, tracker.line()).map(drop)
            }
            _ => Ok(()),
        });
        if let Err(interrupt) = checked {
            stop.store(true, Ordering::Relaxed);
            let _ = py.detach(|| wait(PATIENCE));
            return Err(interrupt);
        }
    };
    finished.map_err(|found: RunError| error::run(py, &found))
}

fn to_json(folder: &Path, failures: &[(String, String)], done: usize) -> String {
    json!({"folder": folder, "failures": failures, "done": done}).to_string()
}

/// The selected runs that are not done in any folder of the scenario's results, that in `out` or any of `sources`.
#[pyfunction]
#[pyo3(signature = (scenario, *, out, sources, seeds, only))]
pub fn missing(
    py: Python<'_>,
    scenario: &Scenario,
    out: PathBuf,
    sources: Vec<PathBuf>,
    seeds: Option<usize>,
    only: Vec<String>,
) -> PyResult<Vec<String>> {
    let plan = scenario.plan(py, seeds, &only)?;
    py.detach(|| lab::missing(&plan, &out, &sources, true)).map_err(|found| error::run(py, &found))
}

/// Joins runs of `sources` in the results of `out`; as JSON what `run` returns, with missing runs and those of seeds to add.
#[pyfunction]
#[pyo3(signature = (scenario, *, out, sources, seeds, only))]
pub fn gather(
    py: Python<'_>,
    scenario: &Scenario,
    out: PathBuf,
    sources: Vec<PathBuf>,
    seeds: Option<usize>,
    only: Vec<String>,
) -> PyResult<String> {
    let plan = scenario.plan(py, seeds, &only)?;
    let gathered = py.detach(|| lab::gather(&plan, &out, &sources, Extent::Fitting(100)));
    let Gathered { finished, missing, wanted } = gathered.map_err(|found| error::run(py, &found))?;
    let (folder, failures, done) = (&finished.folder, &finished.failures, finished.done);
    let gathered = json!({
        "folder": folder, "failures": failures, "done": done, "missing": missing, "wanted": wanted,
    });
    Ok(gathered.to_string())
}

/// Takes runs that were done in `sources` into the results of `out`; there is no summary of them.
#[pyfunction]
#[pyo3(signature = (scenario, *, out, sources, runs))]
pub fn adopt(
    py: Python<'_>,
    scenario: &Scenario,
    out: PathBuf,
    sources: Vec<PathBuf>,
    runs: Vec<String>,
) -> PyResult<()> {
    let plan = scenario.plan(py, None, &[])?.part(&runs.into_iter().collect());
    py.detach(|| lab::adopt(&plan, &out, &sources)).map_err(|found| error::run(py, &found))
}

/// A function of Python that does runs of a search elsewhere. It gets the values that are set beyond those of the scenario that
/// is tuned, the name and the seeds of what is run, and its runs.
struct Callback {
    call: Py<PyAny>,
    /// Values that are set in that scenario.
    set: usize,
}

impl Elsewhere for Callback {
    fn run(&self, plan: &Plan, missing: Vec<String>) -> Result<(), RunError> {
        let scenario = &plan.scenario;
        let sets = scenario.sets[self.set..].to_vec();
        let called =
            Python::attach(|py| self.call.call1(py, (sets, &scenario.name, &scenario.seeds, missing)).map(drop));
        called.map_err(|error| RunError::Plan { found: scenario.name.clone(), message: error.to_string() })
    }
}

/// See `incast.tune`. `elsewhere` does runs on other machines, see `Callback`. Returns what `tune.json` holds, with the folder.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keywords of the Python function, which names them")]
#[pyo3(signature = (scenario, *, objective, over, within, schemes, budget, vary, only, out, jobs, threads, existing, run_timeout, progress, stop, elsewhere))]
pub fn tune(
    py: Python<'_>,
    scenario: &Scenario,
    objective: &str,
    over: Vec<(String, String)>,
    within: Vec<String>,
    schemes: Vec<String>,
    budget: u32,
    vary: f64,
    only: Vec<String>,
    out: PathBuf,
    jobs: Option<usize>,
    threads: usize,
    existing: &str,
    run_timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    stop: &Stop,
    elsewhere: Option<Py<PyAny>>,
) -> PyResult<String> {
    let refuse = |argument: &str, what: String| error::error(py, "Error", &format!("{argument}: {what}"));
    let over =
        over.iter().map(|(key, values)| over_of(key, values).map_err(|what| refuse("over", format!("{key}: {what}"))));
    let within = within.iter().map(|text| text.parse::<Within>().map_err(|what| refuse("within", what)));
    let question = Question {
        scenario: scenario.inner.clone(),
        only: Only::parse(&only).map_err(|found| error::run(py, &found))?,
        objective: parse_column(objective).map_err(|what| refuse("objective", what))?,
        within: within.collect::<PyResult<_>>()?,
        over: over.collect::<PyResult<_>>()?,
        schemes,
        budget,
        vary,
    };
    let options = options(out, (jobs, threads), existing, run_timeout);
    let tuning = py.detach(|| Tuning::new(question)).map_err(|found| error::run(py, &found))?;
    let elsewhere = elsewhere.map(|call| Callback { call, set: scenario.inner.sets.len() });
    beside(py, progress.as_ref(), stop, move |observer, stop| {
        let elsewhere = elsewhere.as_ref().map(|callback| callback as &dyn Elsewhere);
        let advice = tuning.run(Means { options: &options, observer, stop, elsewhere }, &|_| {})?;
        let scenarios = advice.write_scenarios()?;
        Ok(json!({"folder": advice.folder, "scenarios": scenarios, "found": advice.file()}).to_string())
    })
}

/// A key with its values as JSON: a text as the command has it, or a list.
fn over_of(key: &str, values: &str) -> Result<Over, String> {
    match serde_json::from_str::<toml::Value>(values) {
        Ok(toml::Value::String(text)) => format!("{key}={text}").parse(),
        Ok(toml::Value::Array(values)) => Over::listed(key, values),
        Ok(other) => Err(format!("found {other}, allowed is a range or a list")),
        Err(error) => Err(error.to_string()),
    }
}
