//! csg-htsim (Broadcom/csg-htsim): connection matrices and the topology files of its fat-trees.
//!
//! These files have the flows and the links. Everything else is an option of a program there, and
//! here that program's value in the cases that `docs/validation.md` compares.

pub mod matrix;
pub mod scenario;
pub mod topology;

use super::{ImportError, Imported, Names, Text};
use matrix::{Matrix, PAYLOAD, in_full_packets};
use std::fmt::Write;
use topology::Fabric;

/// The files and what is to be run on them.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The connection matrix.
    pub matrix: &'a Text,
    /// The topology file; without one, the smallest fat-tree of three tiers.
    pub topology: Option<&'a Text>,
    /// The law of the scheme.
    pub law: &'a str,
}

/// Makes a scenario and a trace of the files.
///
/// # Errors
/// The first fault in any of them.
pub fn import(inputs: &Inputs<'_>, names: &Names) -> Result<Imported, ImportError> {
    let mut warnings = Vec::new();
    let matrix = Matrix::parse(inputs.matrix)?;
    let fabric = match inputs.topology {
        Some(text) => Fabric::parse(text, &matrix)?,
        None => Fabric::usual(&matrix, inputs.matrix, &mut warnings)?,
    };
    let endless = matrix.endless(inputs.matrix)?;
    warn(&matrix, inputs.matrix, &mut warnings);
    let scenario = scenario::write(&matrix, &endless, &fabric, inputs, names);
    let flows = write_flows(&matrix, inputs);
    Ok(Imported { scenario, topology: None, flows, warnings, notes: Vec::new() })
}

/// Says how connections without an end are read.
fn warn(matrix: &Matrix, text: &Text, warnings: &mut Vec<String>) {
    let mut endless = matrix.connections.iter().filter(|connection| connection.bytes.is_none());
    if let Some(first) = endless.next() {
        let message = format!(
            "no size, or size 0: {} connections last until the run ends, 1 ms after the last start (-end 1000 of the \
             peer's programs); change `duration` for another end",
            endless.count() + 1
        );
        warnings.push(text.warning(first.line, message));
    }
}

/// The connections that end as a trace. `id` is for readers.
fn write_flows(matrix: &Matrix, inputs: &Inputs<'_>) -> String {
    let mut text = format!(
        "# Imported from {}. Sizes are rounded up to full packets of {} bytes.\nstart_ps,src,dst,bytes,id\n",
        inputs.matrix.name(),
        PAYLOAD
    );
    for connection in &matrix.connections {
        let Some(bytes) = connection.bytes.map(in_full_packets) else { continue };
        let id = connection.id.map(|id| id.to_string()).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{},h{},h{},{bytes},{id}", connection.start, connection.source, connection.destination);
    }
    text
}

#[cfg(test)]
mod tests;
