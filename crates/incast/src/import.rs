//! `incast import`: other simulators' input files as scenarios.

use crate::{End, arguments, output};
use incast_lab::import::{Imported, Names, Text, hpcc};
use std::path::Path;

/// Imports and writes.
pub fn import(arguments: &arguments::Import) -> End {
    let arguments::Imported::Hpcc(arguments) = &arguments.from;
    let names = Names::new(&arguments.out);
    let imported = match hpcc(arguments, &names) {
        Ok(imported) => imported,
        Err(error) => {
            output::error(&error);
            return End::BadInput;
        }
    };
    for warning in &imported.warnings {
        output::message(&format!("warning: {warning}"));
    }
    match imported.write(&names, arguments.force) {
        Ok(files) => {
            for file in files {
                output::data(&format!("wrote {}\n", file.display()));
            }
            End::Done
        }
        Err(error @ incast_lab::import::WriteError::Exists(_)) => {
            output::error(&error);
            End::BadInput
        }
        Err(error) => {
            output::error(&error);
            End::Failed
        }
    }
}

fn hpcc(
    arguments: &arguments::ImportHpcc,
    names: &Names,
) -> Result<Imported, incast_lab::import::ImportError> {
    let read = |path: &Path| Text::read(path);
    let (topology, flows) = (read(&arguments.topology)?, read(&arguments.flows)?);
    let config = read(&arguments.config)?;
    let paths = arguments.paths.as_deref().map(read).transpose()?;
    let inputs = hpcc::Inputs { topology: &topology, flows: &flows, config: &config, paths: paths.as_ref() };
    hpcc::import(&inputs, names)
}
