//! `incast trace`.

use crate::{End, arguments, interrupt, output, progress};
use incast_lab::{
    run::{Plan, RunError, only::Only},
    scenario::{Run, Scenario},
    trace::{self, Request, TraceError, digest, pcapng, perfetto},
};
use incast_sim::Progress;
use std::{
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Simulates one run of a scenario and writes what was recorded.
pub fn trace(arguments: &arguments::Trace) -> End {
    match trace_one(arguments) {
        Ok(()) => End::Done,
        Err(error) => {
            output::error(&error);
            if error.is_bad_input() { End::BadInput } else { End::Failed }
        }
    }
}

fn trace_one(arguments: &arguments::Trace) -> Result<(), TraceError> {
    let files = [&arguments.perfetto, &arguments.pcapng];
    files.into_iter().flatten().try_for_each(|file| check_file(file))?;
    if let Some(until) = arguments.until
        && until <= arguments.from
    {
        return Err(TraceError::Target {
            option: "--until",
            found: until.to_string(),
            message: format!("allowed is a time after --from, {}", arguments.from),
        });
    }
    let (name, run) = choose(arguments)?;
    let request = Request {
        flow: arguments.flow.clone(),
        port: arguments.port.clone(),
        from: arguments.from,
        until: arguments.until,
    };
    let stop = interrupt::flag();
    let observer = progress::observer(&name, arguments.quiet);
    observer.on_start(&[&run], 0);
    let mut reported = Instant::now();
    let mut observe = |progress: &Progress| {
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            observer.on_progress(0, progress);
        }
        !stop.load(Ordering::Relaxed)
    };
    let traced = trace::trace(&run, &request, &mut observe);
    observer.on_end(0, traced.as_ref().err().map(ToString::to_string).as_deref());
    drop(observer);
    let traced = traced?;
    if let Some(path) = &arguments.perfetto {
        trace::write(path, |out| perfetto::write(&traced, out)).map_err(files_error(path))?;
    }
    if let Some(path) = &arguments.pcapng {
        trace::write(path, |out| pcapng::write(&traced, arguments.snaplen, out))
            .map_err(files_error(path))?;
    }
    output::data(&digest::render(&traced));
    if traced.outcome.packets.is_empty() {
        output::message("warning: nothing was recorded: no packet came by at that place and time");
    }
    for path in [&arguments.perfetto, &arguments.pcapng].into_iter().flatten() {
        output::message(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// The one run that is wanted: the first of those that fit, and a line that says which if there were several.
fn choose(arguments: &arguments::Trace) -> Result<(String, Run), TraceError> {
    let only = Only::parse(&arguments.only)?;
    let mut scenario = Scenario::load(&arguments.scenario, &arguments.sets).map_err(RunError::from)?;
    for warning in &scenario.warnings {
        output::message(&format!("warning: {}: {warning}", arguments.scenario.display()));
    }
    if let Some(seed) = arguments.seed {
        scenario.seeds = vec![seed];
    }
    let name = scenario.name.clone();
    let plan = Plan::new(scenario, None, &only)?;
    let count = plan.runs.len();
    let Some(run) = plan.runs.into_iter().next() else {
        return Err(TraceError::Target {
            option: "--only",
            found: arguments.only.join(","),
            message: "no run fits all of it".into(),
        });
    };
    if count > 1 {
        let grid = run.grid.iter().map(|(path, value)| format!(", {path} = {value}"));
        output::message(&format!(
            "{count} runs fit; tracing the first: scheme {}, seed {}{} (choose with --only and --seed)",
            run.scheme,
            run.seed,
            grid.collect::<String>()
        ));
    }
    Ok((name, run))
}

/// Refuses a file that cannot be written before anything is simulated.
fn check_file(path: &Path) -> Result<(), TraceError> {
    let refuse = |message: String| {
        Err(TraceError::Target { option: "output file", found: path.display().to_string(), message })
    };
    if path.is_dir() {
        return refuse("is a folder, expected the name of a file".into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return refuse(format!("there is no folder {}", folder.display()));
    }
    Ok(())
}

fn files_error(path: &Path) -> impl FnOnce(std::io::Error) -> TraceError {
    let path = path.to_owned();
    move |source| TraceError::Run(RunError::Files { path, source })
}
