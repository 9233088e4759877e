//! The extension behind the Python package `incast` (`python/incast`), which is where users look: this side checks, runs and
//! reads, and hands over JSON and Arrow.
//!
//! - [`scenario`]: a scenario, checked. [`run`]: its runs, beside the interpreter.
//! - [`results`]: a results folder. [`table`]: its tables, through Arrow's C stream interface.
//! - [`error`]: faults as exceptions of the package.

mod error;
mod results;
mod run;
mod scenario;
mod table;

use mimalloc::MiMalloc;
use pyo3::prelude::*;
use std::ffi::OsString;

/// As the program has it. It serves this library alone: Python and other libraries keep their own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The command line: does what it asks for, and returns the exit code.
#[pyfunction]
fn main(py: Python<'_>) -> PyResult<u8> {
    let arguments: Vec<OsString> = py.import("sys")?.getattr("argv")?.extract()?;
    let arguments = ["incast".into()].into_iter().chain(arguments.into_iter().skip(1));
    Ok(py.detach(|| incast_cli::main(arguments)))
}

/// Names of the bundled scenarios.
#[pyfunction]
fn bundled() -> Vec<&'static str> {
    incast_cli::bundled::files().iter().filter_map(|(path, _)| path.strip_suffix(".toml")).collect()
}

#[pymodule]
fn _incast(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", incast_lab::VERSION)?;
    module.add("build", incast_cli::version::text())?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<run::Stop>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(bundled, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::tune, module)?)?;
    module.add_function(wrap_pyfunction!(run::missing, module)?)?;
    module.add_function(wrap_pyfunction!(run::gather, module)?)?;
    module.add_function(wrap_pyfunction!(run::adopt, module)?)?;
    module.add_function(wrap_pyfunction!(results::read, module)?)?;
    module.add_function(wrap_pyfunction!(results::table, module)?)
}
