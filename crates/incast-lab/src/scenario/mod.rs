//! Scenario files: reading, checking, and expanding them into runs.
//!
//! The file is parsed into a [`tree`] that remembers the place of every value. `--set` arguments and grid points
//! change the tree; the config structs of [`document`] are read from it; `resolve` checks them against one another
//! and builds the simulator's configuration. A fault anywhere is a path of keys, and the tree gives it its line.

pub mod document;
mod effective;
mod folder;
mod overrides;
pub mod reference;
mod resolve;
mod run;
pub mod tree;
mod written;

pub use document::{
    claim::{Bases, Claim},
    measure::{Indifference, SizeRange},
    table::Column,
    thresholds::{Marks, Published, SwitchProfile},
};
pub use folder::safe;
pub use reference::{reference_markdown, schema, schema_for_editors};
pub use resolve::{measure::SizeRow, nominal::LONGEST, scheme::toml_value};
pub use run::Run;
pub use tree::{
    error::{Fault, ScenarioError},
    source::Source,
};

use document::{Document, profile};
use folder::Folders;
use incast_units::Time;
use resolve::{Point, files::Files};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tree::{
    collect,
    error::{Problem, Problems},
    node::{self, Node},
};

/// The part of a scenario that is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The file as it is.
    #[default]
    Full,
    /// With the changes of its `[short]`.
    Short,
}

/// A scenario, read and checked for every scheme at every grid point.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub describe: String,
    /// What it follows.
    pub source: String,
    /// Flows arrive until here.
    pub duration: Time,
    /// Flows that start earlier are not counted.
    pub warmup: Time,
    /// The run ends at most this long after `duration`.
    pub drain: Time,
    /// One run for each.
    pub seeds: Vec<u64>,
    /// At most so many seeds, where some are added.
    pub seed_budget: usize,
    /// The form that it has: short only where the file defines one.
    pub form: Form,
    /// Published numbers.
    pub claims: Vec<Claim>,
    /// Columns of the printed comparison; the usual ones if there are none.
    pub columns: Vec<Column>,
    /// The scheme that every verdict names; the first one if there is none.
    pub baseline: Option<String>,
    /// What differs by less than this part is as good in a verdict.
    pub indifferent: Indifference,
    /// Look at these before you trust the results.
    pub warnings: Vec<String>,
    /// The file as read.
    pub file: Source,
    /// Values that were changed in it.
    pub sets: Vec<(String, String)>,
    /// What is written in the file, with the values that were changed.
    pub written: toml::Table,
    /// Every value, defaults spelled out, at the first grid point. Of a scenario with a grid this is no scenario of its own: what laws
    /// compute from the fabric is that of the first point.
    pub effective: toml::Table,
    points: Vec<Arc<Point>>,
}

impl Scenario {
    /// Reads a file and applies `--set` arguments, each a path and a value.
    ///
    /// # Errors
    /// What is wrong with it, each fault with its place.
    pub fn load(path: &Path, sets: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::load_form(path, sets, Form::Full)
    }

    /// Reads a file in one of its forms.
    ///
    /// # Errors
    /// What is wrong with it, each fault with its place.
    pub fn load_form(path: &Path, sets: &[(String, String)], form: Form) -> Result<Self, ScenarioError> {
        let source = if path == Path::new("-") { Source::standard_input() } else { Source::read(path) };
        Self::parse_form(source?, sets, form)
    }

    /// The same for a text at hand; paths in it are relative to the folder of `source.path`.
    ///
    /// # Errors
    /// What is wrong with it, each fault with its place.
    pub fn parse(source: Source, sets: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::parse_form(source, sets, Form::Full)
    }

    /// The same in one of its forms. `--set` wins over `[short]`.
    ///
    /// # Errors
    /// What is wrong with it, each fault with its place.
    pub fn parse_form(source: Source, sets: &[(String, String)], form: Form) -> Result<Self, ScenarioError> {
        Self::parse_points(source, sets, form, None)
    }

    /// Names of the workloads of long flows.
    pub fn long_classes(&self) -> Vec<String> {
        let workloads = self.effective.get("workload").and_then(toml::Value::as_array).into_iter().flatten();
        let text =
            |workload: &toml::Value, key: &str| workload.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        workloads
            .filter(|workload| text(workload, "kind").as_deref() == Some("long"))
            .map(|workload| text(workload, "class").unwrap_or_else(|| "long".to_owned()))
            .collect()
    }

    /// A table of its values for a file in any folder: files that it names have their whole paths.
    #[must_use]
    pub fn for_another_folder(&self, mut table: toml::Table) -> toml::Table {
        fn absolute(value: &mut toml::Value, files: &BTreeMap<String, PathBuf>) {
            match value {
                toml::Value::String(text) => {
                    let path = files.get(text).and_then(|path| std::path::absolute(path).ok());
                    path.into_iter().for_each(|path| *text = path.to_string_lossy().into_owned());
                }
                toml::Value::Array(values) => values.iter_mut().for_each(|value| absolute(value, files)),
                toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| absolute(value, files)),
                _ => {}
            }
        }
        let files: BTreeMap<String, PathBuf> = self.files().into_iter().collect();
        table.iter_mut().for_each(|(_, value)| absolute(value, &files));
        table
    }

    /// The same with more values changed, without the grid points that cannot be simulated; and why each of these cannot.
    ///
    /// # Errors
    /// What is wrong with it at every grid point.
    pub fn possible(&self, sets: &[(String, String)]) -> Result<(Self, Vec<ScenarioError>), ScenarioError> {
        let mut refused = Vec::new();
        let all = [&self.sets, sets].concat();
        let scenario = Self::parse_points(self.file.clone(), &all, self.form, Some(&mut refused))?;
        Ok((scenario, refused))
    }

    /// With a place for them, grid points with a fault are left out, but not all.
    fn parse_points(
        source: Source,
        sets: &[(String, String)],
        form: Form,
        mut refused: Option<&mut Vec<ScenarioError>>,
    ) -> Result<Self, ScenarioError> {
        let arguments: Vec<String> = sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let fault = |root: &Node, problem: Problem| root.locate(problem, &source.path, &source.text, &arguments);
        let locate = |root: &Node, problem: Problem| ScenarioError::from(fault(root, problem));
        let all = |root: &Node, Problems { first, more }: Problems| {
            let more = more.into_iter().map(|problem| fault(root, problem)).collect();
            ScenarioError::of(fault(root, *first), more)
        };
        let mut root = Node::parse(&source.text).map_err(|problem| locate(&node::empty(), problem))?;
        overrides::apply_sets(&mut root, sets).map_err(|problem| locate(&root, problem))?;
        let mut document: Document = collect::read(&root).map_err(|problems| all(&root, problems))?;
        let mut warnings: Vec<String> = Vec::new();
        let mut has_form = Form::Full;
        if form == Form::Short {
            if overrides::apply_short(&mut root) {
                has_form = Form::Short;
                overrides::apply_sets(&mut root, sets).map_err(|problem| locate(&root, problem))?;
                document = collect::read(&root).map_err(|problems| all(&root, problems))?;
            } else {
                warnings.push("--short has no effect: the scenario has no [short]".into());
            }
        }
        let grid = overrides::grid_points(&root, &document).map_err(|problem| locate(&root, problem))?;

        let mut files = Files::beside(&source.path);
        let mut points = Vec::new();
        for point in &grid {
            let mut tree = overrides::at_point(&root, point).map_err(|problem| locate(&root, problem))?;
            let host = tree.get("host").cloned();
            profile::fill(&mut tree);
            let values = point.iter().map(|(path, node)| (path.clone(), overrides::toml_value(node))).collect();
            let resolved = collect::read(&tree)
                .and_then(|document| resolve::resolve(document, &tree, host.as_ref(), values, &mut files))
                .map_err(|problems| all(&tree, problems));
            let resolved = match (resolved, &mut refused) {
                (Err(error), Some(refused)) if refused.len() + 1 < grid.len() => {
                    refused.push(error);
                    continue;
                }
                (resolved, _) => resolved?,
            };
            for warning in &resolved.warnings {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
            points.push(Arc::new(resolved));
        }
        for (key, value) in sets {
            if grid.first().is_some_and(|point| point.iter().any(|(axis, _)| axis == key)) {
                warnings.push(format!("--set {key}={value} has no effect: the grid sets it for every run"));
            }
        }
        let mut written = overrides::toml_value(&root).as_table().cloned().unwrap_or_default();
        if has_form == Form::Short {
            written.remove("short");
        }
        let axes: Vec<&str> = grid.first().into_iter().flatten().map(|(axis, _)| axis.as_str()).collect();
        let effective = points.first().map(|point| effective::with_grid(point, &root, &axes)).unwrap_or_default();
        Ok(Self {
            name: document.name,
            describe: document.describe,
            source: document.source,
            duration: document.duration,
            warmup: document.warmup,
            drain: document.drain,
            seed_budget: match (has_form, document.seed_budget) {
                (Form::Full, Some(budget)) => budget as usize,
                _ => document.seeds.len(),
            },
            seeds: document.seeds,
            form: has_form,
            claims: document.paper.claim,
            columns: document.table.columns,
            baseline: document.measure.baseline,
            indifferent: document.measure.indifferent,
            warnings,
            file: source,
            sets: sets.to_vec(),
            written,
            effective,
            points,
        })
    }

    /// The same under another name, which is safe in file systems.
    #[must_use]
    pub fn renamed(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        for table in [&mut self.written, &mut self.effective] {
            table.insert("name".into(), name.into());
        }
        self
    }

    /// Every run: grid point by grid point, scheme by scheme, seed by seed.
    pub fn runs(&self) -> Vec<Run> {
        let mut folders = Folders::default();
        let mut runs = Vec::new();
        for point in &self.points {
            for resolved in &point.schemes {
                for seed in &self.seeds {
                    runs.push(Run {
                        scenario: self.name.clone(),
                        scheme: resolved.name.clone(),
                        seed: *seed,
                        grid: point.grid.clone(),
                        folder: folders.name(&point.grid, &resolved.name, *seed),
                        classes: point.traffic.classes.clone(),
                        counted_from: point.document.warmup,
                        counted_until: point.document.duration,
                        end: point.traffic.end,
                        form: self.form,
                        point: Arc::clone(point),
                        resolved: Arc::clone(resolved),
                    });
                }
            }
        }
        runs
    }

    /// Names of the schemes, in their order.
    pub fn schemes(&self) -> Vec<String> {
        self.points
            .first()
            .map_or_else(Vec::new, |point| point.schemes.iter().map(|scheme| scheme.name.clone()).collect())
    }

    /// The axes of the grid, in the order in which [`Run::grid`] has them.
    pub fn axes(&self) -> Vec<String> {
        self.points.first().map_or_else(Vec::new, |point| point.grid.iter().map(|(path, _)| path.clone()).collect())
    }

    /// Files that its values name, as they name them, and where they are; one that is named twice comes twice.
    pub fn files(&self) -> Vec<(String, PathBuf)> {
        fn find(value: &toml::Value, folder: &Path, files: &mut Vec<(String, PathBuf)>) {
            match value {
                // A text that names no file is just a text.
                toml::Value::String(name) => {
                    let path = folder.join(name);
                    if path.is_file() {
                        files.push((name.clone(), path));
                    }
                }
                toml::Value::Array(values) => values.iter().for_each(|value| find(value, folder, files)),
                toml::Value::Table(table) => table.values().for_each(|value| find(value, folder, files)),
                _ => {}
            }
        }
        let folder = self.file.path.parent().unwrap_or(Path::new(""));
        let mut files = Vec::new();
        self.effective.values().for_each(|value| find(value, folder, &mut files));
        files
    }

    /// [`Scenario::written`] as a TOML document for any folder: files that it names have their whole paths.
    pub fn written_toml(&self) -> String {
        written::document(&self.for_another_folder(self.written.clone()))
    }

    /// [`Scenario::effective`] as a TOML document.
    pub fn effective_toml(&self) -> String {
        // A table of texts and finite numbers is always TOML.
        toml::to_string(&self.effective).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
