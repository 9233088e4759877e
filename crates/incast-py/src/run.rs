//! Runs beside the interpreter: another thread simulates, this one hears signals and tells how far it is.

use crate::{error, scenario::Scenario};
use incast_cli::progress::Tracker;
use incast_interop::export;
use incast_lab::{
    results::table::Extent,
    run::{Finished, Options, RunError, execute, folder::Existing},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use serde_json::json;
use std::{
    path::PathBuf,
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

/// Ends runs from another thread of Python: signals are heard by the main one alone.
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

/// See `incast.run`. Calls `progress(part, line)`, and returns where the results are, and failures, as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keywords of the Python function, which names them")]
#[pyo3(signature = (scenario, *, out, seeds, only, jobs, threads, existing, run_timeout, progress, stop))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    out: PathBuf,
    seeds: Option<usize>,
    only: Vec<String>,
    jobs: Option<usize>,
    threads: usize,
    existing: &str,
    run_timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    stop: &Stop,
) -> PyResult<String> {
    let plan = scenario.plan(py, seeds, &only)?;
    let options = Options {
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
    };
    let (stop, tracker) = (Arc::clone(&stop.flag), Arc::new(Tracker::default()));
    let (sender, receiver) = mpsc::channel();
    let (its_stop, its_tracker) = (Arc::clone(&stop), Arc::clone(&tracker));
    // Not scoped: what does not notice `stop` in time is left behind.
    thread::spawn(move || {
        // If nobody waits any more, there is nobody to tell.
        let _ = sender.send(execute(&plan, &options, &*its_tracker, &its_stop));
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
        let heard = py.check_signals().and_then(|()| match &progress {
            Some(progress) if told.elapsed() >= Duration::from_millis(100) => {
                told = Instant::now();
                progress.call1(py, tracker.line()).map(drop)
            }
            _ => Ok(()),
        });
        if let Err(interrupt) = heard {
            stop.store(true, Ordering::Relaxed);
            let _ = py.detach(|| wait(PATIENCE));
            return Err(interrupt);
        }
    };
    finished.map(|finished| to_json(&finished)).map_err(|found: RunError| error::run(py, &found))
}

fn to_json(finished: &Finished) -> String {
    json!({"folder": finished.folder, "failures": finished.failures, "done": finished.done}).to_string()
}
