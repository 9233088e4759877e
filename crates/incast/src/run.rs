//! `incast run`.

use crate::{
    End, apply,
    arguments::{self, Running},
    interrupt, output, plan, progress,
    running::{end, options, tell},
    shards,
};
use incast_lab::{
    results::{Row, checksums::Files, file},
    run::{Finished, Observer, Plan, RunError, execute, folder},
};
use std::sync::atomic::Ordering;

/// Runs scenarios one after the other; their runs in parallel.
pub fn run(arguments: &arguments::Run) -> End {
    end(plan::plans(&arguments.selection).and_then(|plans| {
        if let Some(shard) = arguments.shard {
            return shards::run(plans, &arguments.selection, &arguments.running, shard);
        }
        let (finished, end) = run_all(&plans, &arguments.running, arguments.json)?;
        if arguments.json {
            let rows: Vec<&[Row]> = finished.iter().map(|finished| finished.rows.as_slice()).collect();
            let failed = |error: serde_json::Error| RunError::Files { path: "stdout".into(), source: error.into() };
            // Of several scenarios runs may have one name.
            let runs = if let [one] = &finished[..] { one.runs.clone() } else { Files::new() };
            let json = file::to_json(&rows, &runs).map_err(failed)?;
            output::data(&json);
        }
        Ok(end)
    }))
}

/// Runs everything and prints a table for each scenario, or nothing if all is to be one JSON document.
///
/// # Errors
/// Bad input, or the results could not be written.
pub fn run_all(plans: &[(String, Plan)], running: &Running, json: bool) -> Result<(Vec<Finished>, End), RunError> {
    let options = options(running);
    // Of all scenarios before any runs.
    plans.iter().try_for_each(|(_, plan)| folder::check(&running.out, &plan.scenario.name))?;
    let stop = interrupt::flag("interrupted: what is finished is kept; the same command with --resume continues");
    let mut all = Vec::new();
    let mut failed = false;
    for (given, plan) in plans {
        let observer: Box<dyn Observer> = progress::observer(&plan.scenario.name, running.quiet);
        let finished = execute(plan, &options, observer.as_ref(), stop)?;
        drop(observer);
        failed |= !tell(&plan.scenario.name, &finished, json, running.quiet);
        if !json && !running.quiet && finished.done > 0 {
            output::data(&apply::hint(given, plan, &finished.choices));
        }
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
