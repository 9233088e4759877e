//! From a document to everything a simulation needs, one file for each table of the scenario.

pub mod agent;
mod buffer;
mod claims;
pub mod clocks;
pub mod credits;
mod degenerate;
mod fabric;
pub mod files;
mod frames;
mod group;
mod host;
mod marks;
pub mod measure;
pub mod nominal;
mod parameters;
pub mod pfc;
pub mod requirements;
pub mod resolved;
pub mod scheduler;
pub mod scheme;
mod sizes;
mod switch;
pub mod switches;
pub mod traffic;
mod trim;
mod underlay;

use super::{
    document::Document,
    tree::{
        error::{Problem, Problems},
        node::Node,
        place::{Step, keys},
    },
};
use files::Files;
use incast_sim::{
    ConfigError,
    config::{LinkEvent, Probes},
    topology::Topology,
};
use incast_units::Time;
use resolved::Resolved;
use scheme::Context;
use std::sync::Arc;
use traffic::Traffic;

/// A scenario at one grid point: all schemes, checked.
#[derive(Debug)]
pub struct Point {
    /// The axes' values.
    pub grid: Vec<(String, toml::Value)>,
    /// The document with those values.
    pub document: Document,
    /// The fabric.
    pub topology: Arc<Topology>,
    /// The traffic.
    pub traffic: Traffic,
    /// The schemes in their order.
    pub schemes: Vec<Arc<Resolved>>,
    /// Links that go down and up.
    pub events: Vec<LinkEvent>,
    /// What is sampled.
    pub probes: Probes,
    /// Flows of some sizes that have rows of their own.
    pub sizes: Vec<measure::SizeRow>,
    /// Look at this before you trust the results.
    pub warnings: Vec<String>,
}

/// Checks and converts a document.
///
/// # Errors
/// What is wrong: everything that does not depend on something else that is wrong.
pub fn resolve(
    document: Document,
    root: &Node,
    host: Option<&Node>,
    grid: Vec<(String, toml::Value)>,
    files: &mut Files,
) -> Result<Point, Problems> {
    let mut problems = basics(&document);
    let of = |first: Problems, mut more: Vec<Problem>| {
        more.extend(first.more);
        Problems { first: first.first, more }
    };
    // Whatever else is wrong: a law's name depends on nothing.
    for (index, scheme) in document.scheme.iter().enumerate() {
        let unknown = scheme::find_law(&scheme.law).err();
        problems.extend(unknown.map(|problem| problem.under("law").at(&keys!["scheme", index])));
    }
    let topology = match files.topology(&document.topology) {
        Ok(topology) => topology,
        Err(problem) => return Err(of(problem.into(), problems)),
    };
    let traffic = match traffic::resolve(&document, &topology, files) {
        Ok(traffic) => traffic,
        Err(others) => return Err(of(others, problems)),
    };
    let context = Context { document: &document, root, host, topology: &topology, traffic: &traffic };
    let mut schemes = Vec::new();
    for index in 0..document.scheme.len() {
        match scheme::resolve(&context, index, files) {
            Ok(scheme) => schemes.push(Arc::new(scheme)),
            // What all schemes share is wrong in each of them.
            Err(problem) if problems.contains(&problem) => {}
            Err(problem) => problems.push(problem),
        }
    }
    let nominals = schemes.iter().filter_map(|scheme| scheme.nominal.as_ref());
    problems.extend(nominal::overload(&document, &traffic, nominals));
    problems.extend(claims::check(&document, &traffic));
    problems.extend(claims::check_columns(&document, &traffic));
    let (probes, (events, of_events)) =
        match (measure::probes(&document, &topology, &traffic), measure::events(&document, &topology, traffic.end)) {
            (Ok(probes), Ok(events)) => (probes, events),
            (Err(problem), events) => {
                problems.extend(events.err());
                return Err(of(problem.into(), problems));
            }
            (_, Err(problem)) => return Err(of(problem.into(), problems)),
        };
    if let Some(problems) = Problems::of(problems) {
        return Err(problems);
    }
    let mut warnings = traffic.warnings.clone();
    warnings.extend(scheme::warnings(&context, &schemes));
    warnings.extend(of_events);
    warnings.extend(claims::warnings(&document));
    warnings.extend(measure::warnings(&document, &traffic));
    if !topology.is_connected() {
        warnings.push("some hosts cannot reach one another: their flows will not complete".into());
    }
    let sizes = measure::size_rows(&document, &traffic);
    Ok(Point { grid, topology, traffic, schemes, events, probes, sizes, warnings, document })
}

/// What the simulator refuses, at the key that it names, or at `place`.
fn refusal(error: ConfigError, place: &[Step]) -> Problem {
    match error {
        ConfigError::Value { what, found, allowed } => {
            let path: Vec<Step> = what.split('.').map(Step::from).collect();
            Problem::value(found, allowed).at(&path)
        }
        other => Problem::new(other.to_string()).at(place),
    }
}

/// More seeds than any interval needs.
const MOST_SEEDS: usize = 10_000;

/// What can be said without the fabric.
fn basics(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    let name = &document.name;
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(legal) {
        let allowed = "1 to 100 letters, digits, `.`, `_`, `-`, `+`, not starting with a dot";
        problems.push(Problem::value(format!("{name:?}"), allowed).under("name"));
    }
    if document.duration == Time::ZERO {
        problems.push(Problem::value(document.duration, "a time above 0").under("duration"));
    }
    if document.warmup >= document.duration {
        let allowed = format!("a time before the duration, {}: otherwise no flow is counted", document.duration);
        problems.push(Problem::value(document.warmup, allowed).under("warmup"));
    }
    if document.seeds.is_empty() {
        problems.push(Problem::value("no seeds", "at least one").under("seeds"));
    }
    if document.seeds.len() > MOST_SEEDS {
        let found = format!("{} seeds", document.seeds.len());
        problems.push(Problem::value(found, format!("at most {MOST_SEEDS}")).under("seeds"));
        return problems;
    }
    for (index, seed) in document.seeds.iter().enumerate() {
        if document.seeds[..index].contains(seed) {
            problems.push(Problem::new(format!("the seed {seed} is given twice")).at(&keys!["seeds", index]));
        }
    }
    let seeds = document.seeds.len();
    if let Some(budget) = document.seed_budget.filter(|budget| !(seeds..=MOST_SEEDS).contains(&(*budget as usize))) {
        let allowed = format!("{seeds}, the number of seeds, to {MOST_SEEDS}");
        problems.push(Problem::value(budget, allowed).under("seed_budget"));
    }
    if document.scheme.is_empty() {
        problems.push(Problem::new("there is no [[scheme]]: at least one is needed"));
    }
    for (index, scheme) in document.scheme.iter().enumerate() {
        let name = scheme.name();
        if name.trim().is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
            let problem = Problem::value(format!("{name:?}"), "1 to 100 characters on one line");
            problems.push(problem.at(&keys!["scheme", index, "name"]));
        }
        if document.scheme[..index].iter().any(|other| other.name() == name) {
            let problem = Problem::new(format!("there are two schemes {name:?}: give each a `name` of its own"));
            problems.push(problem.at(&keys!["scheme", index, if scheme.name.is_some() { "name" } else { "law" }]));
        }
    }
    problems
}
