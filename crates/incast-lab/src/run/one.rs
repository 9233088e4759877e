//! One run: from its configuration to its files.

use super::{
    RunError,
    folder::{Folder, Identity},
};
use crate::{
    atomic,
    metrics::backlog::Load,
    results::{
        checksums::{self, Files},
        host::{Host, peak_rss_bytes},
        labels::Labels,
        parquet,
        record::{HostClock, RunCost, RunRecord, Status},
        summary::{Key, measure},
    },
    scenario::{Form, Run},
};
use incast_sim::{
    Config, Outcome, Progress, SimulationError,
    outcome::{Cost, Deadlock},
    simulate_observed,
};
use serde_json::Value;
use std::{
    any::Any,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// What all runs of a scenario have in common.
#[derive(Debug)]
pub struct Context<'a> {
    /// Where results go.
    pub folder: &'a Folder,
    /// What identifies them.
    pub identity: &'a Identity,
    /// Classes of long flows.
    pub long: &'a [String],
    /// The machine.
    pub host: &'a Host,
    /// Threads of one simulation.
    pub threads: usize,
    /// A run that takes longer has failed.
    pub run_timeout: Option<Duration>,
    /// Further files of each run.
    pub export: Export,
}

/// Names and contents of the files that a run's folder has besides the tables and `run.json`.
pub type Export = fn(&Run, &Outcome) -> Vec<(&'static str, String)>;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Its results are in its folder.
    Done(Box<RunRecord>),
    /// With an error; what the simulation found until then is in its folder.
    Failed(String),
}

/// Simulates a run, unless `stop` becomes true before it ends: then there is nothing. What the simulation does wrong, panics
/// included, is what became of it.
pub fn simulate_run(
    run: &Run,
    context: &Context<'_>,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&Progress),
) -> Option<Simulation> {
    let started = Instant::now();
    let is_late = || context.run_timeout.is_some_and(|limit| started.elapsed() >= limit);
    let halt = || stop.load(Ordering::Relaxed) || is_late();
    let simulated = catch_unwind(AssertUnwindSafe(|| simulate(run, context.threads, observe, &halt)));
    let ended = match simulated {
        Ok(Ok(simulated)) => Ok(Box::new(simulated)),
        Ok(Err(Unfinished::Halted)) if stop.load(Ordering::Relaxed) => return None,
        Ok(Err(Unfinished::Halted)) => {
            let limit = context.run_timeout.unwrap_or_default().as_secs_f64();
            Err(format!("it took longer than the {limit} s of --run-timeout"))
        }
        Ok(Err(Unfinished::Failed(message))) => Err(message),
        Err(payload) => Err(format!("the simulator panicked: {}", panic_message(payload.as_ref()))),
    };
    Some(Simulation { ended, of: None })
}

/// What became of a simulation.
pub struct Simulation {
    ended: Result<Box<Simulated>, String>,
    /// The first run whose results it is, once these are written.
    of: Option<String>,
}

impl Simulation {
    /// Writes the folder of a run whose simulation it is. The first that is written has its cost; the others name the first.
    ///
    /// # Errors
    /// The results could not be written.
    pub fn write(&mut self, run: &Run, context: &Context<'_>) -> Result<Ending, RunError> {
        let ending = match &self.ended {
            Ok(simulated) => {
                let record = write_run(run, context, simulated, self.of.as_deref())?;
                match &simulated.failure {
                    Some(message) => Ending::Failed(message.clone()),
                    None => Ending::Done(Box::new(record)),
                }
            }
            Err(message) => {
                let mut record = record(run, context);
                record.error = Some(message.clone());
                record.same_as.clone_from(&self.of);
                let partial = context.folder.begin(&run.folder)?;
                record.write(&partial.join("run.json")).map_err(RunError::files(&partial))?;
                context.folder.commit(&run.folder, &partial, Some(record))?;
                Ending::Failed(message.clone())
            }
        };
        if self.of.is_none() {
            self.of = Some(run.folder.clone());
            if let Ok(simulated) = &mut self.ended {
                simulated.outcome.cost = Cost::default();
            }
        }
        Ok(ending)
    }
}

/// What is kept of a configuration that the simulation consumed, and its outcome.
struct Simulated {
    outcome: Outcome,
    labels: Labels,
    classes: Vec<String>,
    measured: Measured,
    /// Why its results are no answer, although they show what happened.
    failure: Option<String>,
}

/// Why there is no outcome.
enum Unfinished {
    /// It was to end.
    Halted,
    /// An error.
    Failed(String),
}

/// Which tables there are.
struct Measured {
    ports: bool,
    rates: bool,
    events: bool,
}

fn simulate(
    run: &Run,
    threads: usize,
    observe: &mut dyn FnMut(&Progress),
    halt: &(dyn Fn() -> bool + Sync),
) -> Result<Simulated, Unfinished> {
    let config: Config = run.config(threads).map_err(|error| Unfinished::Failed(error.to_string()))?;
    let labels = Labels::new(&config.topology);
    let classes = config.classes.iter().map(|class| class.name.clone()).collect();
    let probes = &config.probes;
    let measured = Measured { ports: probes.ports.is_some(), rates: probes.rates.is_some(), events: probes.events };
    let strict = config.switch.pfc.as_ref().is_some_and(|pfc| pfc.strict);
    let cause = if config.switch.credits.is_some() { "credits" } else { "PFC" };
    let mut observe = |progress: &Progress| {
        observe(progress);
        true
    };
    let outcome = simulate_observed(config, &mut observe, halt).map_err(|error| match error {
        SimulationError::Halted => Unfinished::Halted,
        error => Unfinished::Failed(error.to_string()),
    })?;
    let dropped = Some(outcome.totals.lossless_drops).filter(|drops| strict && *drops > 0).map(describe_drops);
    let failure = outcome.deadlock.as_ref().map(|deadlock| describe_deadlock(deadlock, &labels, cause)).or(dropped);
    Ok(Simulated { outcome, labels, classes, measured, failure })
}

/// That strict flow control could not keep its promise.
fn describe_drops(drops: u64) -> String {
    format!(
        "{drops} packets of lossless priorities were dropped, which strict PFC promises not to happen: pause frames \
         were lost, a cable that came back found its switch full, or times in whole nanoseconds make links faster than \
         their rates; with switch.pfc.strict = false drops are only \
         counted"
    )
}

/// Where flow control has come to a halt, in the names of the scenario.
fn describe_deadlock(deadlock: &Deadlock, labels: &Labels, cause: &str) -> String {
    let waits: Vec<String> = deadlock
        .cycle
        .iter()
        .map(|queue| format!("{} (priority {})", labels.port(queue.node, queue.port), queue.priority))
        .collect();
    format!(
        "deadlock of {cause}: nothing has moved since {} at {}, each paused until the next has sent, the last until the \
         first; found at {}",
        deadlock.since,
        waits.join(", "),
        deadlock.at
    )
}

fn write_run(
    run: &Run,
    context: &Context<'_>,
    simulated: &Simulated,
    same_as: Option<&str>,
) -> Result<RunRecord, RunError> {
    let outcome = &simulated.outcome;
    let key = key(run, simulated.classes.clone(), context.long);
    let (requests, rows) = measure(&key, run.seed, outcome);
    let partial = context.folder.begin(&run.folder)?;
    let file = |name: &str| partial.join(name);
    let written = (|| {
        let labels = &simulated.labels;
        let about = &about(run, context);
        parquet::write_flows(&file("flows.parquet"), &outcome.flows, &simulated.classes, labels, about)?;
        if !requests.is_empty() {
            parquet::write_requests(&file("requests.parquet"), &requests, &simulated.classes, about)?;
        }
        if simulated.measured.ports {
            parquet::write_ports(&file("ports.parquet"), &outcome.ports, labels, about)?;
        }
        if simulated.measured.rates {
            parquet::write_rates(&file("rates.parquet"), &outcome.rates, about)?;
        }
        if simulated.measured.events {
            parquet::write_events(&file("events.parquet"), &outcome.events, &outcome.causes, labels, about)?;
        }
        for (name, text) in (context.export)(run, outcome) {
            atomic::write(&file(name), |file| file.write_all(text.as_bytes()))?;
        }
        let record = RunRecord {
            status: if simulated.failure.is_some() { Status::Failed } else { Status::Done },
            error: simulated.failure.clone(),
            complete: outcome.complete,
            classes: simulated.classes.clone(),
            digest: outcome.digest.clone(),
            ended_at_ps: outcome.ended_at.ps(),
            base_rtt_ps: outcome.base_rtt.ps(),
            cost: RunCost::new(&outcome.totals, &outcome.cost, peak_rss_bytes()),
            same_as: same_as.map(str::to_owned),
            rows,
            files: Some(checksums::of_folder(&partial)?),
            ..record(run, context)
        };
        record.write(&file("run.json"))?;
        Ok(record)
    })();
    match written {
        Ok(record) => {
            context.folder.commit(&run.folder, &partial, Some(record.clone()))?;
            Ok(record)
        }
        Err(error) => {
            context.folder.abandon(&partial);
            Err(RunError::files(&partial)(error))
        }
    }
}

/// What each table of the run says of itself.
fn about(run: &Run, context: &Context<'_>) -> [(&'static str, String); 6] {
    [
        ("incast.version", context.identity.version.clone()),
        ("incast.scenario", run.scenario.clone()),
        ("incast.scenario_hash", context.identity.scenario_hash.clone()),
        ("incast.scheme", run.scheme.clone()),
        ("incast.seed", run.seed.to_string()),
        ("incast.grid", Value::Object(run.point()).to_string()),
    ]
}

/// The part of `run.json` that is known before the run ends.
fn record(run: &Run, context: &Context<'_>) -> RunRecord {
    // Those that cannot be synchronised are the run's error.
    let clocks = run.clocks().unwrap_or_default();
    RunRecord {
        version: context.identity.version.clone(),
        scenario_hash: context.identity.scenario_hash.clone(),
        folder: run.folder.clone(),
        status: Status::Failed,
        error: None,
        complete: false,
        scheme: run.scheme.clone(),
        seed: run.seed,
        grid: run.point(),
        classes: run.classes.clone(),
        digest: String::new(),
        ended_at_ps: 0,
        base_rtt_ps: 0,
        cost: RunCost::default(),
        same_as: None,
        host: context.host.clone(),
        short: run.form == Form::Short,
        changes: run.footnotes(),
        workloads: run.describe_workloads(),
        clocks: clocks
            .iter()
            .map(|clock| HostClock { offset_ps: clock.offset_ps, drift_ppm: clock.drift_ppm })
            .collect(),
        rows: Vec::new(),
        scenario: serde_json::to_value(run.effective()).unwrap_or_default(),
        files: Some(Files::new()),
    }
}

/// What identifies a run's rows.
pub fn key(run: &Run, classes: Vec<String>, long: &[String]) -> Key {
    Key {
        scheme: run.scheme.clone(),
        grid: run.point(),
        long: classes.iter().map(|class| long.contains(class)).collect(),
        classes,
        sizes: run.sizes().to_vec(),
        counted: run.counted_from..run.counted_until,
        sampled_every: run.rates_sampled_every(),
        load: run.nominal().map(|nominal| Load {
            nominal: nominal.load,
            duration_needed: nominal.settles.filter(|settles| *settles > run.counted_until),
        }),
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// The file of flows in a run's folder.
pub fn flows_file(folder: &Path, run: &str) -> std::path::PathBuf {
    folder.join(run).join("flows.parquet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::folder::Existing;
    use std::fs;

    fn run_one(
        run: &Run,
        context: &Context<'_>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(&Progress),
    ) -> Option<Ending> {
        simulate_run(run, context, stop, observe).map(|mut it| it.write(run, context).expect("written"))
    }

    #[test]
    fn a_run_that_panics_fails_alone() {
        let out = std::env::temp_dir().join(format!("incast-one-{}", std::process::id()));
        let identity = Identity { version: "0".into(), scenario_hash: "0".into() };
        let folder = Folder::open(&out, "testing", Existing::Refuse, &identity).expect("a fresh folder");
        let context = Context {
            folder: &folder,
            identity: &identity,
            long: &[],
            host: &Host::default(),
            threads: 1,
            run_timeout: None,
            export: |_, _| Vec::new(),
        };
        let runs = super::super::testing::runs();
        let go = AtomicBool::new(false);

        let late = Context { run_timeout: Some(Duration::ZERO), ..context };
        let failed = run_one(&runs[0], &late, &go, &mut |_| ()).expect("written");
        assert_eq!(failed, Ending::Failed("it took longer than the 0 s of --run-timeout".into()));
        assert!(folder.finished(&runs[0]).is_none());

        let panicked = run_one(&runs[0], &context, &go, &mut |_| panic!("on purpose")).expect("written");
        assert_eq!(panicked, Ending::Failed("the simulator panicked: on purpose".into()));
        assert!(folder.finished(&runs[0]).is_none());
        let record = RunRecord::read(&folder.path().join(&runs[0].folder).join("run.json")).expect("a record");
        assert_eq!((record.status, record.error.is_some()), (Status::Failed, true));

        assert!(simulate_run(&runs[1], &context, &AtomicBool::new(true), &mut |_| ()).is_none());
        assert!(!folder.path().join(&runs[1].folder).exists());

        // The failed one is run again.
        let Some(Ending::Done(done)) = run_one(&runs[0], &context, &go, &mut |_| ()) else { panic!("not done") };
        let finished = folder.finished(&runs[0]).expect("it is done");
        assert_eq!((&finished.rows, &finished.files), (&done.rows, &done.files));
        assert!(done.rows.iter().any(|row| row.class == "all" && row.flows() > 0));
        let flows = parquet::read_flows(&flows_file(folder.path(), &runs[0].folder), &done.classes).expect("flows");
        let about = crate::columns::about(&flows_file(folder.path(), &runs[0].folder)).expect("flows");
        for (key, value) in [
            ("incast.scheme", runs[0].scheme.as_str()),
            ("incast.seed", "1"),
            ("incast.grid", "{\"workload.background.load\":0.2}"),
        ] {
            assert!(about.contains(&(key.into(), value.into())), "{key}: {about:?}");
        }
        assert_eq!(flows.len() as u64, done.rows.last().map_or(0, |row| row.flows()));
        fs::remove_dir_all(&out).expect("removed");
    }
}
