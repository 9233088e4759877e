//! `incast run`.

use crate::{
    End,
    arguments::{self, Running},
    interrupt, output, plan, progress, shards,
};
use incast_interop::export;
use incast_lab::{
    results::{Row, file, table::Extent},
    run::{
        Finished, Observer, Options, Plan, RunError, execute,
        folder::{self, Existing},
    },
};
use std::{sync::atomic::Ordering, time::Duration};

/// Runs scenarios one after the other; their runs in parallel.
pub fn run(arguments: &arguments::Run) -> End {
    end(plan::plans(&arguments.selection).and_then(|plans| {
        if let Some(shard) = arguments.shard {
            return shards::run(plans, &arguments.selection, &arguments.running, shard);
        }
        let (finished, end) = run_all(&plans, &arguments.running, arguments.json)?;
        if arguments.json {
            let rows: Vec<&[Row]> = finished.iter().map(|finished| finished.rows.as_slice()).collect();
            let failed =
                |error: serde_json::Error| RunError::Files { path: "stdout".into(), source: error.into() };
            let json = file::to_json(&rows).map_err(failed)?;
            output::data(&json);
        }
        Ok(end)
    }))
}

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

/// Runs everything and prints a table for each scenario, or nothing if all is to be one JSON document.
///
/// # Errors
/// Bad input, or the results could not be written.
pub fn run_all(
    plans: &[(String, Plan)],
    running: &Running,
    json: bool,
) -> Result<(Vec<Finished>, End), RunError> {
    let options = options(running);
    // Of all scenarios before any runs.
    plans.iter().try_for_each(|(_, plan)| folder::check(&running.out, &plan.scenario.name))?;
    let stop =
        interrupt::flag("interrupted: what is finished is kept; the same command with --resume continues");
    let mut all = Vec::new();
    let mut failed = false;
    for (_, plan) in plans {
        let observer: Box<dyn Observer> = progress::observer(&plan.scenario.name, running.quiet);
        let finished = execute(plan, &options, observer.as_ref(), stop)?;
        drop(observer);
        failed |= !tell(&plan.scenario.name, &finished, json, running.quiet);
        let stopped = finished.stopped;
        if stop.load(Ordering::Relaxed) {
            output::message(&format!(
                "interrupted: {} of {} runs of {} are done; the same command with --resume continues",
                finished.done, finished.planned, plan.scenario.name
            ));
            failed |= stopped;
            all.push(finished);
            break;
        }
        all.push(finished);
    }
    Ok((all, if failed { End::Failed } else { End::Done }))
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
    finished.failures.is_empty()
}

/// Names runs of a scenario that failed.
pub fn tell_failures(name: &str, failures: &[(String, String)]) {
    for (run, message) in failures {
        output::message(&format!("error: {name}/{run}: {message}"));
    }
}
