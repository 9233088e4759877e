//! `incast trace`.

use crate::{End, arguments, interrupt, output, plan::Choice, progress};
use incast_lab::{
    run::RunError,
    trace::{self, Request, TraceError, digest, pcapng, perfetto},
};
use incast_sim::Progress;
use std::{
    path::Path,
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
    files.into_iter().flatten().try_for_each(|file| {
        output::check_file(file).map_err(|message| TraceError::Target {
            option: "output file",
            found: file.display().to_string(),
            message,
        })
    })?;
    if let Some(until) = arguments.until
        && until <= arguments.from
    {
        return Err(TraceError::Target {
            option: "--until",
            found: until.to_string(),
            message: format!("allowed is a time after --from, {}", arguments.from),
        });
    }
    let choice = Choice {
        scenario: &arguments.scenario,
        sets: &arguments.sets,
        only: &arguments.only,
        short: false,
        scheme: None,
        seed: arguments.seed,
        options: "--only and --seed",
    };
    let (scenario, run) = choice.choose("tracing")?;
    let request = Request {
        flow: arguments.flow.clone(),
        port: arguments.port.clone(),
        from: arguments.from,
        until: arguments.until,
    };
    let stop = interrupt::flag("interrupted: nothing was written");
    let observer = progress::observer(&scenario.name, arguments.quiet);
    observer.on_start(&[&run], 0);
    let mut reported = Instant::now();
    let mut observe = |progress: &Progress| {
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            observer.on_progress(0, progress);
        }
    };
    let traced = trace::trace(&run, &request, stop, &mut observe);
    observer.on_simulated(0);
    observer.on_end(0, traced.as_ref().err().map(ToString::to_string).as_deref());
    drop(observer);
    let traced = traced?;
    // What was traced is written to its end, whatever signals come.
    interrupt::writing(true);
    if let Some(path) = &arguments.perfetto {
        trace::write(path, |out| perfetto::write(&traced, out)).map_err(files_error(path))?;
    }
    if let Some(path) = &arguments.pcapng {
        trace::write(path, |out| pcapng::write(&traced, arguments.snaplen, out)).map_err(files_error(path))?;
    }
    output::data(&digest::render(&traced, output::width()));
    if traced.outcome.packets.is_empty() {
        output::message("warning: nothing was recorded: no packet came by at that place and time");
    }
    for path in [&arguments.perfetto, &arguments.pcapng].into_iter().flatten() {
        output::message(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn files_error(path: &Path) -> impl FnOnce(std::io::Error) -> TraceError {
    let path = path.to_owned();
    move |source| TraceError::Run(RunError::Files { path, source })
}
