//! `incast import`: other simulators' input files as scenarios.

use crate::{End, arguments, output};
use incast_cc::registry::LAWS;
use incast_interop::import::{ImportError, Imported, Names, Text, WriteError, hpcc, htsim, sonic};
use incast_lab::scenario::tree::nearest::nearest;
use std::path::Path;

/// Imports and writes.
pub fn import(arguments: &arguments::Import) -> End {
    match &arguments.from {
        arguments::Imported::Hpcc(arguments) => write(&arguments.to, |names| hpcc(arguments, names)),
        arguments::Imported::Htsim(arguments) => match known(&arguments.law) {
            Ok(()) => write(&arguments.to, |names| htsim(arguments, names)),
            Err(message) => {
                output::error(&message);
                End::BadInput
            }
        },
        arguments::Imported::Sonic(arguments) => sonic(&arguments.config),
    }
}

/// Prints the table of switches that a device's configuration comes to.
fn sonic(config: &Path) -> End {
    match Text::read(config).and_then(|text| sonic::import(&text)) {
        Ok(sonic::Imported { switch, notes }) => {
            notes.iter().for_each(|note| output::message(&format!("note: {note}")));
            let table = toml::Table::from_iter([("switch".to_owned(), toml::Value::Table(switch))]);
            // Texts, numbers and tables of them are always TOML.
            output::data(&toml::to_string(&table).unwrap_or_default());
            End::Done
        }
        Err(error) => {
            output::error(&error);
            End::BadInput
        }
    }
}

/// Writes what an import gives.
fn write(to: &arguments::ImportTo, import: impl FnOnce(&Names) -> Result<Imported, ImportError>) -> End {
    let names = Names::new(&to.out);
    let imported = import(&names);
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
