//! Files that a scenario names, read once however many runs need them, and what is computed from them.

use crate::scenario::{
    document::workload::Origin,
    tree::{error::Problem, nearest::nearest, source::Source},
};
use crate::workload::{
    builtin,
    distribution::{Interpolation, Table},
    trace,
};
use incast_cc::{
    Path as NetworkPath,
    parameters::{ParameterInfo, Raw},
};
use incast_sim::{
    fabric::format::Format,
    topology::{Topology, TopologyConfig},
};
use incast_units::Time;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What is kept while a scenario is loaded.
#[derive(Debug, Default)]
pub struct Files {
    base: PathBuf,
    tables: BTreeMap<String, (Table, Interpolation)>,
    traces: BTreeMap<(String, Origin), Arc<trace::File>>,
    parameters: BTreeMap<String, Raw>,
    topologies: Vec<(String, Arc<Topology>)>,
    paths: Vec<(Arc<Topology>, u32, Format, u32, NetworkPath)>,
}

impl Files {
    /// Paths are relative to the folder of `scenario`.
    pub fn beside(scenario: &Path) -> Self {
        Self { base: scenario.parent().map(Path::to_owned).unwrap_or_default(), ..Self::default() }
    }

    /// A distribution by its bundled name or its path, and how its file is read.
    pub fn table(&mut self, name: &str) -> Result<(Table, Interpolation), Problem> {
        if let Some(known) = self.tables.get(name) {
            return Ok(known.clone());
        }
        let names = || builtin::BUILTIN.iter().map(|(name, _)| *name);
        let parsed = match builtin::text(name) {
            Some(text) => Table::parse(text),
            None => {
                let path = self.base.join(name);
                let looks_like_a_path = name.contains(['/', '\\']) || name.contains(".csv") || name.contains(".txt");
                if !looks_like_a_path && !path.is_file() {
                    return Err(Problem {
                        nearest: nearest(name, names()).map(str::to_owned),
                        allowed: Some(format!(
                            "the path of a table or one of {}",
                            names().collect::<Vec<_>>().join(", ")
                        )),
                        ..Problem::new(format!("found {name:?}"))
                    });
                }
                Table::parse(&Source::read(&path).map_err(|error| Problem::new(error.to_string()))?.text)
            }
        };
        let table = parsed.map_err(|error| {
            let place = if error.line == 0 { String::new() } else { format!(" line {}", error.line) };
            Problem::new(format!("{name:?}{place}: {}", error.message))
        })?;
        let interpolation = if table.step { Interpolation::Step } else { Interpolation::Linear };
        self.tables.insert(name.to_owned(), (table.clone(), interpolation));
        Ok((table, interpolation))
    }

    /// What the file of a trace holds.
    pub fn trace(&mut self, name: &str, origin: Origin) -> Result<Arc<trace::File>, Problem> {
        let key = (name.to_owned(), origin);
        if let Some(known) = self.traces.get(&key) {
            return Ok(Arc::clone(known));
        }
        let path = self.base.join(name);
        let read = match origin {
            Origin::Run => trace::read(&path),
            Origin::First => trace::read_log(&path),
        };
        let file = Arc::new(read.map_err(|error| Problem::new(trace::in_words(name, &error)))?);
        self.traces.insert(key, Arc::clone(&file));
        Ok(file)
    }

    /// Hosts by their addresses.
    pub fn addresses(&mut self, name: &str) -> Result<BTreeMap<String, String>, Problem> {
        let source = Source::read(&self.base.join(name)).map_err(|error| Problem::new(error.to_string()))?;
        trace::read_addresses(&source.text).map_err(|error| {
            let line = error.line;
            Problem::new(format!("{name:?} line {line}: {}", error.message))
        })
    }

    /// Reads the parameters that are files.
    pub fn read_parameters(&mut self, declared: &[ParameterInfo], given: &mut [(String, Raw)]) -> Result<(), Problem> {
        for (key, raw) in given {
            let bundled = declared.iter().find(|row| row.name == key).and_then(|row| row.bundled);
            if let (Some(bundled), Raw::Text(name)) = (bundled, &*raw)
                && !bundled.contains(&name.as_str())
            {
                *raw = self.parameter(name, bundled).map_err(|problem| problem.under(key.as_str()))?;
            }
        }
        Ok(())
    }

    /// A parameter that is a file, whose name is none of the `bundled` ones.
    fn parameter(&mut self, name: &str, bundled: &[&str]) -> Result<Raw, Problem> {
        if let Some(known) = self.parameters.get(name) {
            return Ok(known.clone());
        }
        let path = self.base.join(name);
        if !name.contains(['/', '\\', '.']) && !path.is_file() {
            return Err(Problem {
                nearest: nearest(name, bundled.iter().copied()).map(str::to_owned),
                allowed: Some(format!("the path of a file or one of {}", bundled.join(", "))),
                ..Problem::new(format!("found {name:?}"))
            });
        }
        let source = Source::read(&path).map_err(|error| Problem::new(error.to_string()))?;
        let raw = Raw::File { path: name.to_owned(), text: source.text.into() };
        self.parameters.insert(name.to_owned(), raw.clone());
        Ok(raw)
    }

    /// A fabric.
    pub fn topology(&mut self, config: &TopologyConfig) -> Result<Arc<Topology>, Problem> {
        let key = format!("{config:?}");
        if let Some((_, known)) = self.topologies.iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(known));
        }
        let topology = Arc::new(super::fabric::build(config, &self.base)?);
        self.topologies.push((key, Arc::clone(&topology)));
        Ok(topology)
    }

    /// The constants from which the defaults of laws are computed.
    pub fn path(
        &mut self,
        topology: &Arc<Topology>,
        mtu: u32,
        rto_min: Time,
        format: &Format,
        gap: u32,
    ) -> NetworkPath {
        let known = self.paths.iter().find(|(other, other_mtu, other_format, other_gap, _)| {
            Arc::ptr_eq(other, topology) && (*other_mtu, *other_format, *other_gap) == (mtu, *format, gap)
        });
        if let Some((.., path)) = known {
            return NetworkPath { rto_min, ..*path };
        }
        let path = incast_sim::base_path_of(topology, mtu, rto_min, format, gap);
        self.paths.push((Arc::clone(topology), mtu, *format, gap, path));
        path
    }
}
