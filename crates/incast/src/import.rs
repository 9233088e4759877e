//! `incast import`: other simulators' input files as scenarios.

use crate::{End, arguments, output};
use incast_cc::registry::LAWS;
use incast_interop::import::{ImportError, Imported, Names, Text, WriteError, hpcc, htsim};
use incast_lab::scenario::tree::nearest::nearest;
use std::path::Path;

/// Imports and writes.
pub fn import(arguments: &arguments::Import) -> End {
    let to = match &arguments.from {
        arguments::Imported::Hpcc(arguments) => &arguments.to,
        arguments::Imported::Htsim(arguments) => &arguments.to,
    };
    let names = Names::new(&to.out);
    let imported = match &arguments.from {
        arguments::Imported::Hpcc(arguments) => hpcc(arguments, &names),
        arguments::Imported::Htsim(arguments) => {
            if let Err(message) = known(&arguments.law) {
                output::error(&message);
                return End::BadInput;
            }
            htsim(arguments, &names)
        }
    };
    let imported = match imported {
        Ok(imported) => imported,
        Err(error) => {
            output::error(&error);
            return End::BadInput;
        }
    };
    for note in &imported.notes {
        output::message(&format!("note: {note}"));
    }
    for warning in &imported.warnings {
        output::message(&format!("warning: {warning}"));
    }
    match imported.write(&names, to.force) {
        Ok(files) => {
            for file in files {
                output::data(&format!("wrote {}\n", file.display()));
            }
            End::Done
        }
        Err(error @ WriteError::Exists(_)) => {
            output::error(&error);
            End::BadInput
        }
        Err(error) => {
            output::error(&error);
            End::Failed
        }
    }
}

fn read(path: &Path) -> Result<Text, ImportError> {
    Text::read(path)
}

fn hpcc(arguments: &arguments::ImportHpcc, names: &Names) -> Result<Imported, ImportError> {
    let (topology, flows) = (read(&arguments.topology)?, read(&arguments.flows)?);
    let config = read(&arguments.config)?;
    let paths = arguments.paths.as_deref().map(read).transpose()?;
    let inputs = hpcc::Inputs { topology: &topology, flows: &flows, config: &config, paths: paths.as_ref() };
    hpcc::import(&inputs, names)
}

fn htsim(arguments: &arguments::ImportHtsim, names: &Names) -> Result<Imported, ImportError> {
    let matrix = read(&arguments.matrix)?;
    let topology = arguments.topology.as_deref().map(read).transpose()?;
    let inputs = htsim::Inputs { matrix: &matrix, topology: topology.as_ref(), law: &arguments.law };
    htsim::import(&inputs, names)
}

/// Whether there is such a law.
fn known(law: &str) -> Result<(), String> {
    let names = || LAWS.iter().map(|law| law.name);
    if names().any(|name| name == law) {
        return Ok(());
    }
    let mean = nearest(law, names()).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    Err(format!("--law {law}: no such law, allowed is {}{mean}", names().collect::<Vec<_>>().join(", ")))
}
