//! `incast run`.

use crate::{End, arguments, interrupt, output, plan, progress};
use incast_lab::run::{
    Observer, Options, RunError, execute,
    folder::{self, Existing},
};
use std::sync::atomic::Ordering;

/// Runs scenarios one after the other; their runs in parallel.
pub fn run(arguments: &arguments::Run) -> End {
    match run_all(arguments) {
        Ok(end) => end,
        Err(error) => {
            output::error(&error);
            if error.is_bad_input() { End::BadInput } else { End::Failed }
        }
    }
}

fn run_all(arguments: &arguments::Run) -> Result<End, RunError> {
    let plans = plan::plans(&arguments.selection)?;
    let options = Options {
        out: arguments.out.clone(),
        jobs: arguments.jobs.map(Into::into),
        threads: arguments.threads.into(),
        existing: match (arguments.resume, arguments.force) {
            (true, _) => Existing::Resume,
            (_, true) => Existing::Overwrite,
            _ => Existing::Refuse,
        },
    };
    // Of all scenarios before any runs.
    plans.iter().try_for_each(|(_, plan)| folder::check(&arguments.out, &plan.scenario.name))?;
    let stop = interrupt::flag();
    let mut rows = Vec::new();
    let mut failed = false;
    for (_, plan) in &plans {
        let observer: Box<dyn Observer> = progress::observer(&plan.scenario.name, arguments.quiet);
        let finished = execute(plan, &options, observer.as_ref(), stop)?;
        drop(observer);
        for (run, message) in &finished.failures {
            output::message(&format!("error: {}/{run}: {message}", plan.scenario.name));
        }
        failed |= !finished.failures.is_empty();
        if arguments.json {
            rows.push(finished.json);
        } else if !finished.rows.is_empty() {
            output::data(&format!("{}results: {}\n\n", finished.table, finished.folder.display()));
        }
        if stop.load(Ordering::Relaxed) {
            output::message(&format!(
                "interrupted: {} of {} runs of {} are done; the same command with --resume continues",
                finished.done,
                plan.runs.len(),
                plan.scenario.name
            ));
            failed |= finished.stopped;
            break;
        }
    }
    if arguments.json {
        output::data(&join(&rows));
    }
    Ok(if failed { End::Failed } else { End::Done })
}

/// The lists of several scenarios as one; of one scenario, exactly its `summary.json`.
fn join(lists: &[String]) -> String {
    if let [one] = lists {
        return one.clone();
    }
    let inner = lists.iter().map(|list| list.trim().trim_start_matches('[').trim_end_matches(']').trim());
    let inner: Vec<&str> = inner.filter(|list| !list.is_empty()).collect();
    format!("[\n{}\n]\n", inner.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_join_to_one() {
        assert_eq!(join(&["[\n{}\n]\n".into()]), "[\n{}\n]\n");
        assert_eq!(join(&["[\n{}\n]\n".into(), "[]\n".into(), "[\n{}\n]\n".into()]), "[\n{},\n{}\n]\n");
    }
}
