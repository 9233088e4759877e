//! A scenario, checked as the command checks it.

use crate::error;
use incast_cli::bundled::Located;
use incast_lab::{
    atomic,
    run::{Plan, RunError, only::Only},
    scenario::{self, Form, Run, Source},
};
use pyo3::prelude::*;
use serde_json::json;
use std::{io::Write as _, path::PathBuf};

/// See `incast.Scenario`.
#[pyclass(frozen, module = "incast._incast")]
pub struct Scenario {
    pub inner: scenario::Scenario,
}

fn form(short: bool) -> Form {
    if short { Form::Short } else { Form::Full }
}

/// Values as TOML, for `--set`: they come as JSON.
fn sets(py: Python<'_>, changes: Vec<(String, String)>) -> PyResult<Vec<(String, String)>> {
    let toml = |(key, text): (String, String)| match serde_json::from_str::<toml::Value>(&text) {
        Ok(value) => Ok((key, value.to_string())),
        Err(why) => Err(error::error(py, "Error", &format!("{key}: {why}"))),
    };
    changes.into_iter().map(toml).collect()
}

#[pymethods]
impl Scenario {
    /// Of a file, or of a bundled scenario's name.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, changes: Vec<(String, String)>, short: bool) -> PyResult<Self> {
        let sets = sets(py, changes)?;
        let loaded = py.detach(|| {
            let mut located = Located::default();
            let file = located.file(&path)?;
            Ok(scenario::Scenario::load_form(&file, &sets, form(short))?)
        });
        loaded.map(|inner| Self { inner }).map_err(|found: RunError| error::run(py, &found))
    }

    /// Of the text of a file that was read before.
    #[staticmethod]
    fn again(
        py: Python<'_>,
        path: PathBuf,
        text: String,
        changes: Vec<(String, String)>,
        short: bool,
    ) -> PyResult<Self> {
        let sets = sets(py, changes)?;
        let parsed = py.detach(|| scenario::Scenario::parse_form(Source { path, text }, &sets, form(short)));
        parsed.map(|inner| Self { inner }).map_err(|found| error::scenario(py, &found))
    }

    /// The text of its file.
    fn text(&self) -> &str {
        &self.inner.file.text
    }

    /// Of a document as JSON; files that it names are relative to `folder`.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        document: &str,
        folder: PathBuf,
        changes: Vec<(String, String)>,
        short: bool,
    ) -> PyResult<Self> {
        let sets = sets(py, changes)?;
        let text = serde_json::from_str::<toml::Table>(document)
            .map_err(|why| why.to_string())
            .and_then(|table| toml::to_string(&table).map_err(|why| why.to_string()))
            .map_err(|why| error::error(py, "Error", &why))?;
        let source = Source { path: folder.join("(dict)"), text };
        let parsed = py.detach(|| scenario::Scenario::parse_form(source, &sets, form(short)));
        parsed.map(|inner| Self { inner }).map_err(|found| error::scenario(py, &found))
    }

    /// The same under another name.
    fn renamed(&self, name: &str) -> Self {
        Self { inner: self.inner.clone().renamed(name) }
    }

    /// The grid points that can be simulated of the same with more values set: what a search runs.
    fn possible(&self, py: Python<'_>, sets: Vec<(String, String)>, name: &str, seeds: Vec<u64>) -> PyResult<Self> {
        let made = py.detach(|| self.inner.possible(&sets)).map_err(|found| error::scenario(py, &found))?;
        let mut inner = made.0.renamed(name);
        (inner.seed_budget, inner.seeds) = (seeds.len(), seeds);
        Ok(Self { inner })
    }

    /// What it is, as JSON.
    fn facts(&self, py: Python<'_>) -> PyResult<String> {
        let plan = self.plan(py, None, &[])?;
        let it = &self.inner;
        let facts = json!({
            "name": it.name, "describe": it.describe, "source": it.source, "hash": plan.scenario_hash(),
            "schemes": it.schemes(), "axes": it.axes(), "seeds": it.seeds,
            "warnings": it.warnings, "effective": it.effective,
        });
        Ok(facts.to_string())
    }

    /// Runs and cost, as JSON.
    fn check(&self, py: Python<'_>, seeds: Option<usize>, only: Vec<String>) -> PyResult<String> {
        Ok(self.plan(py, seeds, &only)?.expected().to_string())
    }

    /// Of some runs, which may be of seeds that are added where claims are inconclusive: folder, expected seconds of CPU, and
    /// bytes of memory at most.
    fn costs(
        &self,
        py: Python<'_>,
        runs: Vec<String>,
        seeds: Option<usize>,
        threads: usize,
    ) -> PyResult<Vec<(String, f64, u64)>> {
        let plan = self.plan(py, seeds, &[])?.part(&runs.into_iter().collect());
        let cost = |run: &Run| (run.folder.clone(), run.expected_cpu_s(), run.memory(threads).total());
        Ok(plan.runs.iter().map(cost).collect())
    }

    /// Files that its values name, as they name them, and where they are.
    fn files(&self) -> Vec<(String, PathBuf)> {
        self.inner.files()
    }

    /// Writes a file of the scenario, with the values that were changed.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let text = self.inner.written_toml();
        let written = atomic::write(&path, |file| file.write_all(text.as_bytes()));
        written.map_err(|source| error::run(py, &RunError::Files { path, source }))
    }

    /// The effective values as a TOML document.
    fn effective_toml(&self) -> String {
        self.inner.effective_toml()
    }
}

impl Scenario {
    /// The selected runs.
    pub fn plan(&self, py: Python<'_>, seeds: Option<usize>, only: &[String]) -> PyResult<Plan> {
        let plan = || Plan::new(self.inner.clone(), seeds, &Only::parse(only)?);
        py.detach(plan).map_err(|found| error::run(py, &found))
    }
}
