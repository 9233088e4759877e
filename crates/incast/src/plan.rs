//! From arguments to the runs that are wanted.

use crate::{arguments::Selection, output};
use incast_lab::{
    run::{Plan, RunError, only::Only},
    scenario::{Form, Scenario},
};
use std::{num::NonZeroUsize, path::PathBuf};

/// Loads every scenario before anything runs, so that a mistake in the last one costs nothing.
///
/// # Errors
/// The first mistake.
pub fn plans(selection: &Selection) -> Result<Vec<(String, Plan)>, RunError> {
    let files: Vec<(String, PathBuf)> =
        selection.scenarios.iter().map(|path| (path.display().to_string(), path.clone())).collect();
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
