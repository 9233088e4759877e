//! `incast plan`, `incast run --shard` and `incast gather`: one sweep on several machines.
//!
//! Every shard works out the whole plan, which is equal everywhere as it depends on the scenario alone, and keeps a copy
//! beside its results. So shards need nothing of one another, and who gathers them sees whether they belong together.

mod engines;

use crate::{
    End,
    arguments::{self, Running, Selection},
    interrupt, output, plan, progress,
    running::{end, extent, options, tell, tell_failures},
};
use incast_lab::{
    atomic,
    results::record::read_file,
    run::{
        Plan, RunError, damaged, execute_part,
        folder::{self, Existing},
        gather as join, missing,
        shards::{Shard, divide_runs},
    },
    text::bytes,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    io::Write as _,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

/// Name of the plan's file.
const FILE: &str = "plan.json";

/// `plan.json`: which shard does which runs.
#[derive(Debug, Serialize, Deserialize)]
struct Sharded {
    /// Version of incast.
    version: String,
    /// Shards.
    shards: usize,
    /// The arguments, to load the scenarios again.
    selection: Selected,
    /// The scenarios.
    scenarios: Vec<OfScenario>,
}

/// Arguments that choose runs.
#[derive(Debug, Serialize, Deserialize)]
struct Selected {
    scenarios: Vec<PathBuf>,
    set: Vec<(String, String)>,
    only: Vec<String>,
    seeds: Option<NonZeroUsize>,
    short: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct OfScenario {
    name: String,
    scenario_hash: String,
    runs: Vec<OfRun>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OfRun {
    id: String,
    folder: String,
    shard: usize,
    /// Expected.
    cpu_s: f64,
    /// At most, about.
    memory_bytes: u64,
}

impl Sharded {
    /// The plan of the selected runs.
    ///
    /// # Errors
    /// More shards than runs; a scenario that cannot be read again.
    fn new(plans: &[(String, Plan)], selection: &Selection, shards: usize) -> Result<Self, RunError> {
        let runs: usize = plans.iter().map(|(_, plan)| plan.runs.len()).sum();
        if shards > runs {
            let message = format!("there are {runs} runs, and allowed is at most a shard for each");
            return Err(RunError::Plan { found: format!("{shards} shards"), message });
        }
        let is_read_once = |path: &&PathBuf| *path == Path::new("-") || path.exists() && !path.is_file();
        if let Some(path) = selection.scenarios.iter().find(is_read_once) {
            let message = "is read once, and each shard reads the scenario again: give a file".to_owned();
            return Err(RunError::Plan { found: path.display().to_string(), message });
        }
        let divided = divide_runs(&plans.iter().map(|(_, plan)| plan).collect::<Vec<_>>(), shards);
        let scenarios = plans.iter().zip(divided).map(|((_, plan), divided)| {
            let mut is_first = vec![false; plan.runs.len()];
            plan.simulations().iter().for_each(|same| is_first[same[0]] = true);
            let run = |(index, shard): (usize, usize)| {
                let run = &plan.runs[index];
                let cpu_s = if is_first[index] { run.expected_cpu_s() } else { 0.0 };
                let (id, folder, memory_bytes) = (plan.id(run), run.folder.clone(), run.estimated_memory());
                OfRun { id, folder, shard, cpu_s, memory_bytes }
            };
            OfScenario {
                name: plan.scenario.name.clone(),
                scenario_hash: plan.scenario_hash().to_owned(),
                runs: divided.into_iter().enumerate().map(run).collect(),
            }
        });
        // A bundled scenario's name stays one; a file is found from anywhere.
        let place = |path: &PathBuf| match path.is_file() {
            true => fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            false => path.clone(),
        };
        Ok(Self {
            version: incast_lab::VERSION.to_owned(),
            shards,
            scenarios: scenarios.collect(),
            selection: Selected {
                scenarios: selection.scenarios.iter().map(place).collect(),
                set: selection.sets.clone(),
                only: selection.only.clone(),
                seeds: selection.seeds,
                short: selection.short,
            },
        })
    }

    /// Reads a plan; there may be none.
    ///
    /// # Errors
    /// The file cannot be read, or is none.
    fn read(path: &Path) -> Result<Option<Self>, RunError> {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RunError::Files { path: path.to_owned(), source }),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| RunError::Plan {
            found: path.display().to_string(),
            message: format!("is not a plan of `incast plan`: {error}"),
        })
    }

    /// # Errors
    /// Those of the file system.
    fn write(&self, path: &Path) -> Result<(), RunError> {
        let failed = |source| RunError::Files { path: path.to_owned(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        atomic::write(path, |file| writeln!(file, "{text}")).map_err(failed)
    }

    /// What tells this plan, in a file, from another one, as a phrase; nothing if they are the same.
    fn differs(&self, other: &Self) -> Option<String> {
        if self.version != other.version {
            return Some(format!("is of incast {}, and the other of {}", self.version, other.version));
        }
        if self.shards != other.shards {
            return Some(format!("has {} shards, and the other {}; choose another --out", self.shards, other.shards));
        }
        let names = |plan: &Self| plan.scenarios.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        if names(self) != names(other) {
            let (ours, theirs) = (names(self).join(", "), names(other).join(", "));
            return Some(format!("is of {ours}, and the other of {theirs}"));
        }
        let pairs = || self.scenarios.iter().zip(&other.scenarios);
        if let Some((one, _)) = pairs().find(|(a, b)| a.scenario_hash != b.scenario_hash) {
            return Some(format!(
                "is of another scenario {}: a value, or a file that it names, differs; choose another --out",
                one.name
            ));
        }
        // Not which shard does them: any division is one.
        fn runs(of: &OfScenario) -> Vec<&str> {
            of.runs.iter().map(|run| run.folder.as_str()).collect()
        }
        pairs()
            .find(|(a, b)| runs(a) != runs(b))
            .map(|(one, _)| format!("has other runs of {}: --only or --seeds differ; choose another --out", one.name))
    }

    /// Refuses a plan in a file that is not this one.
    fn require_same(&self, path: &Path, found: &Self) -> Result<(), RunError> {
        match found.differs(self) {
            None => Ok(()),
            Some(message) => Err(RunError::Plan { found: path.display().to_string(), message }),
        }
    }

    fn runs(&self) -> impl Iterator<Item = &OfRun> {
        self.scenarios.iter().flat_map(|scenario| &scenario.runs)
    }

    /// CPU seconds of the most expensive shard, and of the most expensive run.
    fn largest(&self) -> (f64, f64) {
        let of = |shard| self.runs().filter(move |run| run.shard == shard).map(|run| run.cpu_s).sum::<f64>();
        let shard = (1..=self.shards).map(of).fold(0.0, f64::max);
        (shard, self.runs().map(|run| run.cpu_s).fold(0.0, f64::max))
    }

    fn describe(&self) -> String {
        let mut text = String::from("shard   runs   CPU s   memory of its largest run\n");
        for shard in 1..=self.shards {
            let own: Vec<&OfRun> = self.runs().filter(|run| run.shard == shard).collect();
            let cpu_s: f64 = own.iter().map(|run| run.cpu_s).sum();
            let memory = own.iter().map(|run| run.memory_bytes).max().unwrap_or(0);
            let _ = writeln!(text, "{shard:>5}  {:>5}  {cpu_s:>6.1}   {}", own.len(), bytes(memory));
        }
        text
    }
}

/// Whether a folder is one of a shard.
fn is_shard(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("shard-")) && folder.is_dir()
}

/// `incast plan`.
pub fn plan(arguments: &arguments::Plan) -> End {
    end(plan::plans(&arguments.selection).and_then(|plans| {
        let sharded = Sharded::new(&plans, &arguments.selection, arguments.shards.into())?;
        let script =
            (arguments.engine).map(|engine| engines::script(engine, &sharded, &plans, arguments)).transpose()?;
        fs::create_dir_all(&arguments.out).map_err(|source| RunError::Files { path: arguments.out.clone(), source })?;
        let path = arguments.out.join(FILE);
        match Sharded::read(&path)? {
            Some(found) => sharded.require_same(&path, &found)?,
            None => sharded.write(&path)?,
        }
        output::data(&sharded.describe());
        output::data(&format!("plan: {}\n", path.display()));
        if let Some(script) = script {
            let path = arguments.out.join(script.name);
            atomic::write(&path, |file| file.write_all(script.text.as_bytes()))
                .map_err(|source| RunError::Files { path: path.clone(), source })?;
            output::data(&format!("submit: {} {}\n", script.submit, path.display()));
            output::data(&format!("then: incast gather {}\n", arguments.out.display()));
        }
        Ok(End::Done)
    }))
}

/// The runs of one shard.
pub fn run(
    plans: Vec<(String, Plan)>,
    selection: &Selection,
    running: &Running,
    shard: Shard,
) -> Result<End, RunError> {
    let mut sharded = Sharded::new(&plans, selection, shard.of)?;
    let common = running.out.join(FILE);
    if let Some(found) = Sharded::read(&common)? {
        sharded.require_same(&common, &found)?;
        // As it was divided there.
        sharded = found;
    }
    let mut options = options(running);
    options.out = shard.folder(&running.out);
    if options.existing == Existing::Refuse {
        options.existing = Existing::Resume;
    }
    let own = options.out.join(FILE);
    if let Some(found) = Sharded::read(&own)?.filter(|_| options.existing == Existing::Resume) {
        sharded.require_same(&own, &found)?;
    }
    let mut parts = Vec::new();
    for ((_, plan), scenario) in plans.into_iter().zip(&sharded.scenarios) {
        let folders: BTreeSet<String> =
            (scenario.runs.iter()).filter(|run| run.shard == shard.number).map(|run| run.folder.clone()).collect();
        parts.extend((!folders.is_empty()).then(|| plan.part(&folders)));
    }
    parts.iter().try_for_each(|part| folder::check(&options.out, &part.scenario.name))?;
    fs::create_dir_all(&options.out).map_err(|source| RunError::Files { path: options.out.clone(), source })?;
    sharded.write(&own)?;
    let stop = interrupt::flag("interrupted: what is finished is kept; the same command continues");
    let (mut done, mut planned, mut failed) = (0, 0, false);
    for part in &parts {
        let name = &part.scenario.name;
        planned += part.runs.len();
        if stop.load(Ordering::Relaxed) {
            continue;
        }
        let observer = progress::observer(&format!("{name} {shard}"), running.quiet);
        let ended = match execute_part(part, &options, observer.as_ref(), stop) {
            // It may be another on another machine, or later: not the input is at fault.
            Err(error @ (RunError::Busy { .. } | RunError::Memory(_))) => {
                output::error(&error);
                return Ok(End::Failed);
            }
            ended => ended?,
        };
        drop(observer);
        tell_failures(name, &ended.failures);
        failed |= !ended.failures.is_empty();
        done += ended.records.len();
    }
    if stop.load(Ordering::Relaxed) {
        output::message(&format!("interrupted: {done} of {planned} runs of shard {shard} are done"));
    } else {
        output::data(&format!("shard {shard}: {done} of {planned} runs are done: {}\n", options.out.display()));
    }
    Ok(if failed || done < planned { End::Failed } else { End::Done })
}

/// `incast gather`.
pub fn gather(arguments: &arguments::Gather) -> End {
    end(gather_all(arguments))
}

fn gather_all(arguments: &arguments::Gather) -> Result<End, RunError> {
    let (path, sharded, shards) = find(&arguments.folders)?;
    let selection = Selection {
        scenarios: match arguments.scenarios.is_empty() {
            true => sharded.selection.scenarios.clone(),
            false => arguments.scenarios.clone(),
        },
        sets: sharded.selection.set.clone(),
        only: sharded.selection.only.clone(),
        seeds: sharded.selection.seeds,
        short: sharded.selection.short,
    };
    if let Some(gone) = selection.scenarios.iter().find(|file| file.is_absolute() && !file.is_file()) {
        let message = format!("its scenario {} is not there; --scenario says where it is now", gone.display());
        return Err(RunError::Plan { found: path.display().to_string(), message });
    }
    let plans = plan::plans(&selection)?;
    Sharded::new(&plans, &selection, sharded.shards)?.require_same(&path, &sharded)?;
    let first = arguments.folders[0].as_path();
    let beside = first.parent().filter(|_| is_shard(first)).unwrap_or(first);
    let out = arguments.out.as_deref().unwrap_or(beside);
    let mut ended = End::Done;
    for ((_, plan), scenario) in plans.iter().zip(&sharded.scenarios) {
        let name = &plan.scenario.name;
        let sources: Vec<PathBuf> =
            shards.iter().map(|shard| shard.join(name)).filter(|folder| folder.is_dir()).collect();
        let missing = missing(plan, out, &sources, false)?;
        if !missing.is_empty() {
            let everywhere: Vec<PathBuf> = sources.iter().cloned().chain([out.join(name)]).collect();
            for (folder, why) in damaged(plan, &everywhere, &missing) {
                output::error(&format!("{}: {why}", folder.display()));
            }
            tell_missing(scenario, &missing, sharded.shards);
            ended = End::Failed;
            continue;
        }
        let gathered = join(plan, out, &sources, extent(arguments.wide))?;
        if !tell(name, &gathered.finished, false, false) {
            ended = End::Failed;
        }
        if !gathered.missing.is_empty() {
            tell_missing(scenario, &gathered.missing, sharded.shards);
            ended = End::Failed;
        }
        if !gathered.wanted.is_empty() {
            output::message(&format!(
                "{name}: claims are inconclusive; incast run with --resume does {} runs more, of further seeds",
                gathered.wanted.len()
            ));
        }
    }
    Ok(ended)
}

/// Names missing runs by the shards that have them to do.
fn tell_missing(scenario: &OfScenario, missing: &[String], shards: usize) {
    let name = &scenario.name;
    let missing: BTreeSet<&str> = missing.iter().map(String::as_str).collect();
    let mut of_shards: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for run in scenario.runs.iter().filter(|run| missing.contains(run.folder.as_str())) {
        of_shards.entry(run.shard).or_default().push(&run.folder);
    }
    for (shard, runs) in of_shards {
        output::message(&format!("error: {name}: missing of shard {shard}/{shards}: {}", runs.join(", ")));
    }
    output::message(&format!("error: {name}: nothing was joined; incast run --shard does what is missing"));
}

/// The plan in some folders, and where it is; and the folders of shards.
///
/// # Errors
/// There is none, or there are different ones.
fn find(folders: &[PathBuf]) -> Result<(PathBuf, Sharded, Vec<PathBuf>), RunError> {
    let mut plan: Option<(PathBuf, Sharded)> = None;
    let mut shards = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
            .map_err(|source| RunError::Files { path: folder.clone(), source })?;
        let mut own: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        own.retain(|path| is_shard(path));
        own.sort();
        own.insert(0, folder.clone());
        for place in own {
            let path = place.join(FILE);
            let Some(found) = Sharded::read(&path)? else { continue };
            match &plan {
                Some((first, plan)) => {
                    if let Some(differs) = found.differs(plan) {
                        let message = format!("{differs}, {}", first.display());
                        return Err(RunError::Plan { found: path.display().to_string(), message });
                    }
                }
                None => plan = Some((path, found)),
            }
            shards.extend(is_shard(&place).then_some(place));
        }
    }
    plan.map(|(path, plan)| (path, plan, shards)).ok_or_else(|| RunError::Plan {
        found: folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", "),
        message: format!(
            "there is no {FILE}; expected folders that `incast plan` and `incast run --shard` had as --out"
        ),
    })
}
