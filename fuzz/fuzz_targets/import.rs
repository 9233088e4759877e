//! Input files of other simulators. The input is the simulator's name and its files, with lines of `----` between them.
//! What is imported can be read.
#![no_main]

use incast_interop::import::{ImportError, Imported, Names, Text, hpcc, htsim};
use incast_lab::{scenario::tree::node::Node, workload::trace};
use incast_sim::topology::file;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fn import(input: &str) -> Result<Imported, ImportError> {
    let mut parts = input.split("\n----\n");
    let simulator = parts.next().unwrap_or_default();
    let mut files = Vec::new();
    for part in parts.take(4) {
        files.push(Text::new(Path::new("file.txt"), part.as_bytes().to_vec())?);
    }
    let names = Names::new(Path::new("case.toml"));
    match (simulator, &files[..]) {
        ("hpcc", [topology, flows, config, paths @ ..]) => {
            hpcc::import(&hpcc::Inputs { topology, flows, config, paths: paths.first() }, &names)
        }
        ("htsim", [matrix, topology @ ..]) => {
            htsim::import(&htsim::Inputs { matrix, topology: topology.first(), law: "ndp" }, &names)
        }
        _ => Err(ImportError { file: "file.txt".into(), line: 0, message: "no simulator".into() }),
    }
}

fuzz_target!(|input: &str| {
    match import(input) {
        Err(error) => assert!(error.line <= input.matches('\n').count() + 1 && !error.message.is_empty()),
        Ok(imported) => {
            Node::parse(&imported.scenario).expect("a TOML document");
            trace::read_csv(imported.flows.as_bytes()).expect("a trace");
            if let Some(topology) = &imported.topology {
                file::parse(topology).expect("a topology");
            }
        }
    }
});
