//! From arguments to the selected runs.

use crate::{arguments::Selection, bundled::Located, output};
use incast_lab::{
    run::{Plan, RunError, only::Only},
    scenario::{Form, Run, Scenario},
};
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// Loads every scenario before anything runs, so that a mistake in the last one costs nothing.
///
/// # Errors
/// The first mistake.
pub fn plans(selection: &Selection) -> Result<Vec<(String, Plan)>, RunError> {
    // Scenarios read the files beside them while they are loaded; then everything is in memory.
    let mut located = Located::default();
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for path in &selection.scenarios {
        files.push((path.display().to_string(), located.file(path)?));
    }
    let only = Only::parse(&selection.only)?;
    load(&files, &selection.sets, selection.short, selection.seeds, &only)
}

/// The same of files that messages call by a name of their own.
///
/// # Errors
/// The first mistake.
pub fn load(
    files: &[(String, PathBuf)],
    sets: &[(String, String)],
    short: bool,
    seeds: Option<NonZeroUsize>,
    only: &Only,
) -> Result<Vec<(String, Plan)>, RunError> {
    let form = if short { Form::Short } else { Form::Full };
    let mut plans: Vec<(String, Plan)> = Vec::new();
    for (label, path) in files {
        let scenario = Scenario::load_form(path, sets, form)?;
        if let Some((other, _)) = plans.iter().find(|(_, plan)| plan.scenario.name == scenario.name) {
            return Err(RunError::Occupied {
                folder: path.clone(),
                message: format!(
                    "has the same name (\"{}\") as {other}: their results would share a folder",
                    scenario.name
                ),
            });
        }
        for warning in &scenario.warnings {
            output::message(&format!("warning: {label}: {warning}"));
        }
        plans.push((label.clone(), Plan::new(scenario, seeds.map(Into::into), only)?));
    }
    Ok(plans)
}

/// What names one run of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The file.
    pub scenario: &'a Path,
    /// Changed values.
    pub sets: &'a [(String, String)],
    /// Conditions.
    pub only: &'a [String],
    /// The short form.
    pub short: bool,
    /// The scheme.
    pub scheme: Option<&'a str>,
    /// The seed, the scenario's or any other.
    pub seed: Option<u64>,
    /// The command's options that choose among several runs.
    pub options: &'a str,
}

impl Choice<'_> {
    /// The scenario and the one selected run: the first of those that fit, and a line that names it if there were
    /// several. `doing` is what is done with it.
    ///
    /// # Errors
    /// There is no such scenario, or no such run.
    pub fn choose(self, doing: &str) -> Result<(Scenario, Run), RunError> {
        let mut only = Only::parse(self.only)?;
        if let Some(scheme) = self.scheme {
            only = only.with("scheme", scheme);
        }
        let form = if self.short { Form::Short } else { Form::Full };
        let mut located = Located::default();
        let mut scenario = Scenario::load_form(&located.file(self.scenario)?, self.sets, form)?;
        for warning in &scenario.warnings {
            output::message(&format!("warning: {}: {warning}", self.scenario.display()));
        }
        let own_seeds = scenario.seeds.clone();
        if let Some(seed) = self.seed {
            scenario.seeds = vec![seed];
        }
        let mut plan = Plan::new(scenario, None, &only).map_err(|error| self.as_typed(error))?;
        plan.scenario.seeds = own_seeds;
        let count = plan.runs.len();
        let Some(run) = plan.runs.into_iter().next() else {
            return Err(RunError::Only { found: self.only.join(","), message: "no run fits all of it".into() });
        };
        if count > 1 {
            // A seed that is given is that of all.
            let seed = if self.seed.is_none() { format!(", seed {}", run.seed) } else { String::new() };
            let grid = run.grid.iter().map(|(path, value)| format!(", {path} = {value}"));
            output::message(&format!(
                "{count} runs fit; {doing} the first: scheme {}{seed}{} (choose with {})",
                run.scheme,
                grid.collect::<String>(),
                self.options
            ));
        }
        Ok((plan.scenario, run))
    }

    /// An unknown scheme by the option that names it.
    fn as_typed(&self, error: RunError) -> RunError {
        match (error, self.scheme) {
            (RunError::Only { found, message }, Some(scheme)) if found == format!("scheme={scheme}") => {
                RunError::Plan { found: format!("--scheme {scheme}"), message }
            }
            (error, _) => error,
        }
    }
}
