//! A peer's reference cases run again: ours against theirs.
//!
//! Each case is a folder with the peer's input files and its `fct.txt`. It is imported as a user would import it, run,
//! and compared flow by flow. What the aims are is in [`cases`], how figures are made in [`figures`], the table in
//! [`table`]. All of that is of HPCC's ns-3 simulator; the cases of csg-htsim are in [`htsim`].

pub mod cases;
pub mod figures;
pub mod htsim;
pub mod table;

use crate::{
    export,
    import::{ImportError, Names, Text, WriteError, hpcc},
};
use cases::{Aim, Case};
use figures::{Bin, Figures, Flow, Key};
use incast_lab::{
    atomic,
    scenario::{Run, Scenario, ScenarioError},
};
use incast_sim::{ConfigError, engine::random::mix, simulate};
use incast_units::Time;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
use thiserror::Error;

/// Why a case could not be run.
#[derive(Debug, Error)]
pub enum ValidationError {
    /// There is no case of this name.
    #[error("there is no case {0:?}, allowed is one of {names}", names = names().join(", "))]
    Unknown(String),
    /// An input file of a case, or its results, cannot be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// What was imported is no scenario.
    #[error(transparent)]
    Scenario(Box<ScenarioError>),
    /// The simulation was refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The imported files cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder of results cannot be written.
    #[error("{}: {source}", path.display())]
    Files {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl From<ScenarioError> for ValidationError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(Box::new(error))
    }
}

/// A case, run.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The case.
    pub case: &'static str,
    /// What is aimed at.
    pub aim: &'static str,
    /// Whether it is met.
    pub met: bool,
    /// Flows.
    pub flows: usize,
    /// Of the peer.
    pub theirs: Figures,
    /// Of our first seed.
    pub ours: Figures,
    /// The least and the largest of each figure over the seeds, with several.
    pub range: Option<(Figures, Figures)>,
    /// The largest distance of a flow's completion time, as a share of the peer's, in our first seed.
    pub worst_flow: f64,
    /// The same in nanoseconds.
    pub worst_flow_ns: u64,
    /// By size.
    pub bins: Vec<(Bin, Bin)>,
    /// Packets dropped in our first seed.
    pub drops: u64,
    /// Of a case that misses its aim: what small changes do to it.
    pub moved: Option<Moved>,
}

/// The same case with every start moved by up to [`MOST_MOVED`], each time differently and with another seed: how far
/// figures are from one another that differ in nothing but the order of what happens within some nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Runs.
    pub runs: usize,
    /// The least and the largest of each figure.
    pub range: (Figures, Figures),
    /// The same of each bin.
    pub bins: Vec<(Bin, Bin)>,
    /// Flows whose completion time at the peer's is between the shortest and the longest of ours.
    pub flows_inside: usize,
}

/// Names of all cases of both peers.
pub fn names() -> Vec<&'static str> {
    let htsim = htsim::cases::CASES.iter().map(|case| case.name);
    cases::CASES.iter().map(|case| case.name).chain(htsim).collect()
}

/// How far starts are moved at most.
pub const MOST_MOVED: Time = Time::from_ns(10);

/// Where the cases are, and where what comes out goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the cases.
    pub from: PathBuf,
    /// Folder of the imported scenarios.
    pub out: PathBuf,
    /// Seeds of random cases.
    pub seeds: usize,
    /// Runs at once; what comes out does not depend on it.
    pub jobs: usize,
}

/// Imports, runs and compares a case.
///
/// # Errors
/// See [`ValidationError`].
pub fn compare(case: &'static Case, options: &Options) -> Result<Compared, ValidationError> {
    let folder = options.from.join(case.name);
    let theirs_path = folder.join("fct.txt");
    let theirs = figures::read(&Text::read(&theirs_path)?)?;
    let scenario = import(case, &folder, options)?;
    let of_seeds = scenario.runs();
    let runs = parallel(of_seeds.len(), options.jobs, |index| simulate_run(&of_seeds[index], case, None))?;
    let Some(first) = runs.first() else {
        return Err(figures::unusable(&theirs_path, "the scenario has no runs").into());
    };
    let path = options.out.join(case.name).join("fct.txt");
    atomic::write(&path, |file| file.write_all(first.text.as_bytes()))
        .map_err(|source| ValidationError::Files { path, source })?;
    let mut reference = Figures::of(&theirs.values().copied().collect::<Vec<_>>());
    reference.largest_queue = case.largest_queue;
    reference.pauses = case.pauses;
    let (worst_flow, worst_flow_ns) = figures::worst(&theirs, &first.flows);
    let list = |flows: &BTreeMap<_, Flow>| flows.values().copied().collect::<Vec<_>>();
    let bins: Vec<(Bin, Bin)> =
        figures::bins(&list(&theirs)).into_iter().zip(figures::bins(&list(&first.flows))).collect();
    let all: Vec<Figures> = runs.iter().map(|run| run.figures.clone()).collect();
    let range = Figures::range(&all);
    let complete = runs.iter().all(|run| run.flows.len() == theirs.len());
    let met = complete
        && match case.aim {
            Aim::Exact => worst_flow_ns == 0,
            Aim::EachFlow => worst_flow <= cases::EACH_FLOW,
            Aim::InRange => reference.is_within(&range),
            Aim::Bins => bins.iter().all(|(theirs, ours)| ours.is_near(theirs, cases::BINS)),
        };
    let moved = match of_seeds.first() {
        Some(run) if !met && case.aim != Aim::InRange => Some(move_starts(run, case, &theirs, options)?),
        _ => None,
    };
    Ok(Compared {
        case: case.name,
        aim: case.aim.describe(),
        met,
        flows: theirs.len(),
        theirs: reference,
        ours: first.figures.clone(),
        range: (all.len() > 1).then_some(range),
        worst_flow,
        worst_flow_ns,
        bins,
        drops: first.drops,
        moved,
    })
}

/// What `one` gives for each of 0 to `count`, in their order, with `jobs` of them at once.
fn parallel<T: Send>(
    count: usize,
    jobs: usize,
    one: impl Fn(usize) -> Result<T, ValidationError> + Sync,
) -> Result<Vec<T>, ValidationError> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return done;
            }
            done.push((index, one(index)));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.min(count)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            // A panic of a simulation is one here too.
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Runs a case several times with its starts moved.
fn move_starts(
    run: &Run,
    case: &Case,
    theirs: &BTreeMap<Key, Flow>,
    options: &Options,
) -> Result<Moved, ValidationError> {
    let all = parallel(options.seeds, options.jobs, |seed| simulate_run(run, case, Some(seed as u64)))?;
    let mut fct: BTreeMap<&Key, (u64, u64)> = theirs.keys().map(|key| (key, (u64::MAX, 0))).collect();
    for (key, range) in &mut fct {
        for run in &all {
            let ours = run.flows.get(*key).map_or(u64::MAX, |flow| flow.fct);
            *range = (range.0.min(ours), range.1.max(ours));
        }
    }
    let bins: Vec<Vec<Bin>> =
        all.iter().map(|run| figures::bins(&run.flows.values().copied().collect::<Vec<_>>())).collect();
    let figures: Vec<Figures> = all.iter().map(|run| run.figures.clone()).collect();
    let inside =
        |(key, flow): &(&Key, &Flow)| fct.get(key).is_some_and(|(least, most)| (*least..=*most).contains(&flow.fct));
    Ok(Moved {
        runs: all.len(),
        range: Figures::range(&figures),
        bins: figures::ranges(&bins),
        flows_inside: theirs.iter().filter(inside).count(),
    })
}

/// The case as a scenario, which is written beside what comes out.
fn import(case: &Case, folder: &Path, options: &Options) -> Result<Scenario, ValidationError> {
    // What several cases have in common is in the folder above.
    let find = |name: &str, shared: &str| {
        let own = folder.join(name);
        Text::read(&if own.exists() { own } else { options.from.join(shared) })
    };
    let (topology, flows) = (find("topology.txt", case.topology)?, find("flow.txt", "fat320.flow.txt")?);
    let config = Text::read(&folder.join("config.txt"))?;
    let paths = case.paths.map(|name| Text::read(&options.from.join(name))).transpose()?;
    let out = options.out.join(case.name);
    fs::create_dir_all(&out).map_err(|source| ValidationError::Files { path: out.clone(), source })?;
    let names = Names::new(&out.join(format!("{}.toml", case.name)));
    let inputs = hpcc::Inputs { topology: &topology, flows: &flows, config: &config, paths: paths.as_ref() };
    hpcc::import(&inputs, &names)?.write(&names, true)?;
    let mut sets = Vec::new();
    if case.aim == Aim::InRange {
        let seeds: Vec<String> = (1..=options.seeds).map(|seed| seed.to_string()).collect();
        sets.push(("seeds".to_owned(), format!("[{}]", seeds.join(", "))));
    }
    if let Some(port) = case.bottleneck {
        sets.push(("measure.ports".to_owned(), format!("{{ every = \"1us\", which = [\"{port}\"] }}")));
    }
    Ok(Scenario::load(&names.scenario, &sets)?)
}

/// What a run gives.
struct Simulated {
    /// Our `fct.txt`.
    text: String,
    /// Its flows.
    flows: BTreeMap<Key, Flow>,
    /// Their figures, with queue and pauses.
    figures: Figures,
    /// Packets dropped.
    drops: u64,
}

/// Runs a case; `moved` is the seed by which starts are moved.
fn simulate_run(run: &Run, case: &Case, moved: Option<u64>) -> Result<Simulated, ValidationError> {
    let mut config = run.config(1)?;
    if let Some(seed) = moved {
        // For marks that switches draw.
        config.seed = seed;
        for (index, flow) in (0..).zip(&mut config.flows) {
            let random = mix(mix(seed) ^ index) % (MOST_MOVED.ps() / 1000 + 1);
            flow.start = flow.start.saturating_add(Time::from_ns(random));
        }
    }
    // A full frame: what is being sent counts into our samples and not into the peer's.
    let frame = u64::from(config.host.mtu) + config.classes.first().map_or(0, |class| u64::from(class.format.header));
    let outcome = simulate(config)?;
    let text = export::files(run, &outcome).into_iter().next().map(|(_, text)| text).unwrap_or_default();
    let flows = figures::read(&Text::new(Path::new("fct.txt"), text.clone().into_bytes())?)?;
    let mut figures = Figures::of(&flows.values().copied().collect::<Vec<_>>());
    figures.pauses = Some(outcome.totals.pauses);
    if case.bottleneck.is_some() {
        let longest = outcome.ports.iter().map(|sample| sample.queue_bytes).max().unwrap_or(0);
        figures.largest_queue = Some(longest.saturating_sub(frame));
    }
    Ok(Simulated { text, flows, figures, drops: outcome.totals.drops })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        for jobs in [0, 1, 2, 7, 100] {
            let all = parallel(50, jobs, |index| Ok(index * index)).expect("no errors");
            assert_eq!(all, (0..50).map(|index| index * index).collect::<Vec<_>>());
            let first = parallel(50, jobs, |index| match index {
                0..20 => Ok(()),
                _ => Err(ValidationError::Unknown(index.to_string())),
            });
            assert!(matches!(first, Err(ValidationError::Unknown(index)) if index == "20"));
        }
        assert!(parallel(0, 3, |_| Ok(())).expect("nothing to do").is_empty());
    }
}
