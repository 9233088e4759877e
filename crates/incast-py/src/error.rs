//! Faults as exceptions of the package: `incast.ScenarioError` with a list of problems, `incast.Error` otherwise.

use incast_lab::{
    run::RunError,
    scenario::{Fault, ScenarioError},
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use std::fmt::Display;

const MODULE: &str = "incast._errors";

/// An exception of the package, by the name of its class.
fn raise(py: Python<'_>, class: &str, argument: impl FnOnce() -> PyResult<Py<PyAny>>) -> PyErr {
    let made = || py.import(MODULE)?.getattr(class)?.call1((argument()?,));
    made().map_or_else(|error| error, PyErr::from_value)
}

/// `incast.Error`, or a class below it.
pub fn error(py: Python<'_>, class: &str, message: &dyn Display) -> PyErr {
    raise(py, class, || Ok(message.to_string().into_pyobject(py)?.into_any().unbind()))
}

/// `incast.ScenarioError`.
pub fn scenario(py: Python<'_>, found: &ScenarioError) -> PyErr {
    raise(py, "ScenarioError", || {
        let problems = found.faults().map(|fault| problem(py, fault)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, problems)?.into_any().unbind())
    })
}

fn problem<'py>(py: Python<'py>, fault: &Fault) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let in_file = fault.argument.is_none();
    dict.set_item("key", &fault.key)?;
    dict.set_item("found", &fault.what)?;
    dict.set_item("allowed", &fault.allowed)?;
    dict.set_item("nearest", &fault.nearest)?;
    dict.set_item("file", in_file.then(|| fault.file.display().to_string()))?;
    dict.set_item("line", fault.line.filter(|_| in_file))?;
    Ok(dict)
}

/// What stopped runs before they started, or the writing of their results.
pub fn run(py: Python<'_>, found: &RunError) -> PyErr {
    match found {
        RunError::Scenario(of_scenario) => scenario(py, of_scenario),
        RunError::Busy { .. } => error(py, "BusyError", found),
        other => error(py, "RunError", other),
    }
}
