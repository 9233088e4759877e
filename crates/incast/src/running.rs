//! What commands share that run scenarios: their options, what is printed of a scenario, and how they end.

use crate::{End, arguments::Running, output};
use incast_interop::export;
use incast_lab::{
    results::table::Extent,
    run::{Finished, Options, RunError, folder::Existing},
};
use std::time::Duration;

/// Says what went wrong.
pub fn end(result: Result<End, RunError>) -> End {
    match result {
        Ok(end) => end,
        Err(error) => {
            output::error(&error);
            if error.is_bad_input() { End::BadInput } else { End::Failed }
        }
    }
}

/// From arguments.
pub fn options(running: &Running) -> Options {
    Options {
        out: running.out.clone(),
        jobs: running.jobs.map(Into::into),
        threads: running.threads.into(),
        run_timeout: running.run_timeout.map(|limit| Duration::from_secs_f64(limit.as_secs_f64())),
        existing: match (running.resume, running.force) {
            (true, _) => Existing::Resume,
            (_, true) => Existing::Overwrite,
            _ => Existing::Refuse,
        },
        export: export::files,
        extent: extent(running.wide),
    }
}

/// How much of the comparison is printed.
pub fn extent(wide: bool) -> Extent {
    if wide { Extent::Wide } else { Extent::Fitting(output::width()) }
}

/// Prints what became of a scenario; whether all of it went well.
pub fn tell(name: &str, finished: &Finished, json: bool, quiet: bool) -> bool {
    tell_failures(name, &finished.failures);
    if !json && !finished.rows.is_empty() {
        output::data(&format!("{}results: {}\n", finished.table, finished.folder.display()));
    }
    match &finished.report {
        Some(Ok(path)) if !json => output::data(&format!("report: {}\n\n", path.display())),
        Some(Ok(path)) if !quiet => output::message(&format!("report: {}", path.display())),
        Some(Err(error)) => {
            output::error(error);
            return false;
        }
        _ => {}
    }
    // What is neither done nor said to have failed was found damaged when it was read back.
    let lost = finished.planned - finished.done.min(finished.planned);
    let is_lost = lost > 0 && finished.failures.is_empty() && !finished.stopped;
    if is_lost {
        output::message(&format!("error: {name}: {lost} runs cannot be read back; --resume does them again"));
    }
    finished.failures.is_empty() && !is_lost
}

/// Names runs of a scenario that failed.
pub fn tell_failures(name: &str, failures: &[(String, String)]) {
    for (run, message) in failures {
        output::message(&format!("error: {name}/{run}: {message}"));
    }
}
