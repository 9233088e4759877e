//! From arguments to the runs that are wanted.

use crate::{arguments::Selection, output};
use incast_lab::{
    run::{Plan, RunError, only::Only},
    scenario::{Form, Scenario},
};
use std::path::PathBuf;

/// Loads every scenario before anything runs, so that a mistake in the last one costs nothing.
///
/// # Errors
/// The first mistake.
pub fn plans(selection: &Selection) -> Result<Vec<(PathBuf, Plan)>, RunError> {
    let only = Only::parse(&selection.only)?;
    let form = if selection.short { Form::Short } else { Form::Full };
    let mut plans: Vec<(PathBuf, Plan)> = Vec::new();
    for path in &selection.scenarios {
        let scenario = Scenario::load_form(path, &selection.sets, form)?;
        if let Some((other, _)) = plans.iter().find(|(_, plan)| plan.scenario.name == scenario.name) {
            return Err(RunError::Occupied {
                folder: path.clone(),
                message: format!(
                    "has the same name (\"{}\") as {}: their results would share a folder",
                    scenario.name,
                    other.display()
                ),
            });
        }
        for warning in &scenario.warnings {
            output::message(&format!("warning: {}: {warning}", path.display()));
        }
        plans.push((path.clone(), Plan::new(scenario, selection.seeds.map(Into::into), &only)?));
    }
    Ok(plans)
}
