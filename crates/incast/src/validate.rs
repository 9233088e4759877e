//! `incast validate`: peers' reference cases, ours against theirs.

use crate::{End, arguments, output};
use incast_interop::validation::{self, Compared, Options, ValidationError, cases, compare, htsim, table};
use incast_lab::results::host::cores;
use serde::Serialize;
use std::path::PathBuf;

/// Where the cases of HPCC's ns-3 simulator are.
const NS3: &str = "validation/ns3";
/// Where those of csg-htsim are.
const HTSIM: &str = "validation/htsim";

/// A case of one of the peers.
#[derive(Clone, Copy)]
enum Case {
    Ns3(&'static cases::Case),
    Htsim(&'static htsim::cases::Case),
}

impl Case {
    fn find(name: &str) -> Option<Self> {
        let htsim = || htsim::cases::find(name).map(Self::Htsim);
        cases::find(name).map(Self::Ns3).or_else(htsim)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ns3(case) => case.name,
            Self::Htsim(case) => case.name,
        }
    }
}

/// A case, run.
#[derive(Serialize)]
#[serde(untagged)]
enum Either {
    Ns3(Box<Compared>),
    Htsim(Box<htsim::Compared>),
}

/// Runs the cases and prints the tables; an aim that is not met is no failure, it is in the table.
pub fn validate(arguments: &arguments::Validate) -> End {
    let mut wanted: Vec<Case> = Vec::new();
    for name in &arguments.cases {
        match Case::find(name) {
            Some(case) => wanted.push(case),
            None => {
                output::error(&ValidationError::Unknown(name.clone()));
                return End::BadInput;
            }
        }
    }
    if wanted.is_empty() {
        wanted.extend(validation::names().into_iter().filter_map(Case::find));
        // A folder that is given has the cases of one peer, or some of them.
        if let Some(from) = &arguments.from {
            wanted.retain(|case| from.join(case.name()).is_dir());
            if wanted.is_empty() {
                output::error(&format!("--from {}: there are no cases", from.display()));
                return End::BadInput;
            }
        }
    }
    let options = |folder: &str| Options {
        from: arguments.from.clone().unwrap_or_else(|| PathBuf::from(folder)),
        out: arguments.out.clone(),
        seeds: arguments.seeds.into(),
        jobs: arguments.jobs.map_or_else(cores, Into::into),
    };
    let mut all: Vec<Either> = Vec::new();
    for case in wanted {
        let compared = match case {
            Case::Ns3(case) => compare(case, &options(NS3)).map(|one| Either::Ns3(Box::new(one))),
            Case::Htsim(case) => htsim::compare(case, &options(HTSIM)).map(|one| Either::Htsim(Box::new(one))),
        };
        match compared {
            Ok(compared) => {
                let (aim, met) = match &compared {
                    Either::Ns3(one) => (one.aim, Some(one.met)),
                    Either::Htsim(one) => (one.aim, one.met),
                };
                let verdict = match met {
                    Some(true) => " is met",
                    Some(false) => " is NOT met",
                    None => "",
                };
                output::message(&format!("{}: {aim}{verdict}", case.name()));
                all.push(compared);
            }
            Err(error) => {
                output::error(&format!("{}: {error}", case.name()));
                return match error {
                    ValidationError::Files { .. } | ValidationError::Write(_) => End::Failed,
                    _ => End::BadInput,
                };
            }
        }
    }
    if arguments.json {
        // Numbers and texts are always JSON.
        output::data(&format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default()));
    } else {
        print(all);
    }
    End::Done
}

/// The tables, each peer's under what it shows.
fn print(all: Vec<Either>) {
    let (mut of_ns3, mut of_htsim) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Either::Ns3(one) => of_ns3.push(*one),
            Either::Htsim(one) => of_htsim.push(*one),
        }
    }
    if !of_ns3.is_empty() {
        output::data(&format!(
            "Slowdowns at the sender, ours / theirs; a range is over our seeds.\n\n{}{}{}",
            table::render(&of_ns3),
            table::render_bins(&of_ns3),
            table::render_moved(&of_ns3)
        ));
    }
    if !of_htsim.is_empty() {
        let gap = if of_ns3.is_empty() { "" } else { "\n" };
        output::data(&format!(
            "{gap}Completion times at the sender, ours (mean over our seeds, in brackets their range) / theirs.\n\n{}",
            htsim::table::render(&of_htsim)
        ));
    }
    let aims = of_ns3.iter().map(|one| one.met).chain(of_htsim.iter().filter_map(|one| one.met));
    let (met, missed): (Vec<bool>, Vec<bool>) = aims.partition(|met| *met);
    output::data(&format!("\n{} of {} aims met\n", met.len(), met.len() + missed.len()));
}
