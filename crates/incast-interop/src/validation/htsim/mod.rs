//! Cases of csg-htsim: completion times at the sender, trims and drops.
//!
//! Spraying and the choice of what is trimmed are random there and here, so that flows are not compared one by one:
//! figures over all flows are, ours as means over the seeds. What the aims are is in [`cases`], the table in [`table`].

pub mod cases;
pub mod table;

use super::{Options, ValidationError, figures, parallel};
use crate::import::{ImportError, Names, Text, htsim, text::number};
use cases::Case;
use incast_lab::{
    atomic,
    scenario::{Run, Scenario},
};
use incast_sim::simulate;
use incast_units::Time;
use serde::Serialize;
use std::{fmt::Write as _, fs, io::Write as _};

/// Figures of the flows of a run, or their means over several; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// The shortest completion time: the sender has the acknowledgement of the last byte.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// Packets trimmed, where that is known.
    pub trims: Option<f64>,
    /// Packets dropped, where that is known.
    pub drops: Option<f64>,
}

impl Figures {
    /// Of completion times in any order, without trims and drops.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self {
            min: times.first().copied().unwrap_or(0.0),
            mean: figures::mean(&times),
            p50: figures::percentile(&times, 0.5),
            p99: figures::percentile(&times, 0.99),
            max: times.last().copied().unwrap_or(0.0),
            trims: None,
            drops: None,
        }
    }

    /// Each figure of all of them through `of`.
    fn fold(all: &[Self], of: impl Fn(&[f64]) -> f64) -> Self {
        let each = |figure: fn(&Self) -> f64| of(&all.iter().map(figure).collect::<Vec<_>>());
        let known = |figure: fn(&Self) -> Option<f64>| {
            all.iter().map(figure).collect::<Option<Vec<f64>>>().map(|values| of(&values))
        };
        Self {
            min: each(|one| one.min),
            mean: each(|one| one.mean),
            p50: each(|one| one.p50),
            p99: each(|one| one.p99),
            max: each(|one| one.max),
            trims: known(|one| one.trims),
            drops: known(|one| one.drops),
        }
    }
}

/// A case, run.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The case.
    pub case: &'static str,
    /// What is aimed at.
    pub aim: &'static str,
    /// Whether it is met; nothing where the case is for information.
    pub met: Option<bool>,
    /// Flows.
    pub flows: usize,
    /// Flows of ours that ended, of all seeds.
    pub completed: usize,
    /// Seeds.
    pub seeds: usize,
    /// Of the peer.
    pub theirs: Figures,
    /// Ours, means over the seeds.
    pub ours: Figures,
    /// The least and the largest of each over the seeds.
    pub range: (Figures, Figures),
}

const AIM: &str = "mean and p99 within 3%, trims within 15%";
const NO_AIM: &str = "for information";

/// Imports, runs and compares a case.
///
/// # Errors
/// See [`ValidationError`].
pub fn compare(case: &'static Case, options: &Options) -> Result<Compared, ValidationError> {
    let path = options.from.join(case.name).join("fct.csv");
    let theirs = read(&Text::read(&path)?)?;
    let scenario = import(case, options)?;
    let of_seeds = scenario.runs();
    let mut expected: Vec<(u32, u32)> = theirs.iter().map(|flow| (flow.source, flow.destination)).collect();
    let runs = parallel(of_seeds.len(), options.jobs, |index| simulate_run(&of_seeds[index]))?;
    let Some(first) = runs.first() else {
        return Err(figures::unusable(&path, "the scenario has no runs").into());
    };
    let mut found = first.pairs.clone();
    expected.sort_unstable();
    found.sort_unstable();
    if expected != found {
        return Err(figures::unusable(&path, "found other flows than the matrix has").into());
    }
    let mut csv = String::from("src,dst,fct_us\n");
    for ((source, destination), time) in first.pairs.iter().zip(&first.times) {
        let time = time.map(|time| time.to_string()).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(csv, "{source},{destination},{time}");
    }
    let out = options.out.join(case.name).join("fct.csv");
    atomic::write(&out, |file| file.write_all(csv.as_bytes()))
        .map_err(|source| ValidationError::Files { path: out, source })?;

    let all: Vec<Figures> = runs.iter().map(|run| run.figures).collect();
    let completed = runs.iter().map(|run| run.times.iter().flatten().count()).sum();
    let ours = Figures::fold(&all, figures::mean);
    let mut reference = Figures::of(theirs.iter().map(|flow| flow.time).collect());
    reference.trims = case.trims.map(|trims| trims as f64);
    reference.drops = case.drops.map(|drops| drops as f64);
    let complete = completed == theirs.len() * runs.len();
    Ok(Compared {
        case: case.name,
        aim: if case.judged { AIM } else { NO_AIM },
        met: case.judged.then(|| complete && meets(&ours, &reference)),
        flows: theirs.len(),
        completed,
        seeds: runs.len(),
        theirs: reference,
        ours,
        range: (
            Figures::fold(&all, |values| values.iter().copied().fold(f64::INFINITY, f64::min)),
            Figures::fold(&all, |values| values.iter().copied().fold(0.0, f64::max)),
        ),
    })
}

/// Whether figures are as near as is aimed at. Where the peer trims nothing, nor may we.
fn meets(ours: &Figures, theirs: &Figures) -> bool {
    let near = |ours: f64, theirs: f64, share: f64| (ours - theirs).abs() <= share * theirs;
    let trims = match (ours.trims, theirs.trims) {
        (Some(ours), Some(theirs)) => near(ours, theirs, cases::TRIMS),
        (None, Some(_)) => false,
        (_, None) => true,
    };
    near(ours.mean, theirs.mean, cases::TIMES) && near(ours.p99, theirs.p99, cases::TIMES) && trims
}

/// A flow of the peer's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flow {
    source: u32,
    destination: u32,
    /// Microseconds.
    time: f64,
}

/// Reads `flow,src,dst,size_bytes,start_us,finish_us,fct_us`.
fn read(text: &Text) -> Result<Vec<Flow>, ImportError> {
    let mut flows = Vec::new();
    for line in text.lines().skip(1) {
        let row = line.words.join(" ");
        let words: Vec<&str> = row.split(',').collect();
        let at = |message: String| text.error(line.number, message);
        let [_, source, destination, _, _, _, time] = words[..] else {
            return Err(at(format!("found {} columns, wanted are 7 with fct_us as the last", words.len())));
        };
        let host = |what: &str, word: &str| crate::import::text::whole(what, word, 0..=htsim::matrix::MOST_NODES);
        flows.push(Flow {
            source: host("src", source).map_err(at)? as u32,
            destination: host("dst", destination).map_err(at)? as u32,
            time: number("fct_us", time, 0.0..=1e12).map_err(at)?,
        });
    }
    if flows.is_empty() {
        return Err(text.error(0, "found no flows"));
    }
    Ok(flows)
}

/// The case as a scenario, which is written beside what comes out.
fn import(case: &Case, options: &Options) -> Result<Scenario, ValidationError> {
    let matrix = Text::read(&options.from.join(case.matrix))?;
    let out = options.out.join(case.name);
    fs::create_dir_all(&out).map_err(|source| ValidationError::Files { path: out.clone(), source })?;
    let names = Names::new(&out.join(format!("{}.toml", case.name)));
    let inputs = htsim::Inputs { matrix: &matrix, topology: None, law: case.law };
    htsim::import(&inputs, &names)?.write(&names, true)?;
    let seeds: Vec<String> = (1..=options.seeds).map(|seed| seed.to_string()).collect();
    let mut sets = vec![("seeds".to_owned(), format!("[{}]", seeds.join(", ")))];
    sets.extend(case.sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    Ok(Scenario::load(&names.scenario, &sets)?)
}

/// What a run gives.
struct Simulated {
    /// Ends of the flows.
    pairs: Vec<(u32, u32)>,
    /// Their completion times in microseconds, of those that ended.
    times: Vec<Option<f64>>,
    figures: Figures,
}

fn simulate_run(run: &Run) -> Result<Simulated, ValidationError> {
    let outcome = simulate(run.config(1)?)?;
    let micros = |time: Time| time.ps() as f64 / 1e6;
    let times: Vec<Option<f64>> =
        outcome.flows.iter().map(|flow| flow.acked.map(|acked| micros(acked.saturating_sub(flow.start)))).collect();
    let mut figures = Figures::of(times.iter().flatten().copied().collect());
    figures.trims = Some(outcome.totals.trims as f64);
    figures.drops = Some(outcome.totals.drops as f64);
    let pairs = outcome.flows.iter().map(|flow| (flow.source, flow.destination)).collect();
    Ok(Simulated { pairs, times, figures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn figures_are_those_of_the_peer() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let figures = Figures::of(times);
        assert_eq!(
            (figures.min, figures.mean, figures.p50, figures.p99, figures.max),
            (1.0, 100.5, 101.0, 199.0, 200.0)
        );
    }

    #[test]
    fn aims_have_both_sides() {
        let figures = |mean, p99, trims| Figures { mean, p99, trims, ..Figures::default() };
        let theirs = figures(100.0, 200.0, Some(1000.0));
        for (ours, met) in [
            (figures(103.0, 194.0, Some(1150.0)), true),
            (figures(103.1, 200.0, Some(1000.0)), false),
            (figures(96.9, 200.0, Some(1000.0)), false),
            (figures(100.0, 206.1, Some(1000.0)), false),
            (figures(100.0, 200.0, Some(849.0)), false),
            (figures(100.0, 200.0, None), false),
        ] {
            assert_eq!(meets(&ours, &theirs), met, "{ours:?}");
        }
        let none = figures(100.0, 200.0, Some(0.0));
        assert!(meets(&none, &none) && !meets(&figures(100.0, 200.0, Some(1.0)), &none));
    }

    #[test]
    fn means_and_ranges_are_over_seeds() {
        let one = |mean, trims| Figures { mean, trims, ..Figures::default() };
        let all = [one(1.0, Some(10.0)), one(2.0, Some(30.0))];
        let folded = Figures::fold(&all, figures::mean);
        assert_eq!((folded.mean, folded.trims, folded.drops), (1.5, Some(20.0), None));
    }

    #[test]
    fn files_of_the_peer_are_read_or_refused_with_a_line() {
        let text = |content: &str| Text::new(Path::new("fct.csv"), content.as_bytes().to_vec()).expect("text");
        let header = "flow,src,dst,size_bytes,start_us,finish_us,fct_us\n";
        let good = format!("{header}ndp_1_2,1,2,5,0.0,7.5,7.5\n");
        assert_eq!(read(&text(&good)), Ok(vec![Flow { source: 1, destination: 2, time: 7.5 }]));
        for (row, line) in [("ndp_1_2,1,2,5,0.0,7.5", 2), ("x,1,-2,5,0.0,7.5,7.5", 2), ("x,1,2,5,0,0,nan", 2), ("", 0)]
        {
            assert_eq!(read(&text(&format!("{header}{row}\n"))).expect_err(row).line, line, "{row}");
        }
    }

    /// Every case has its files, with as many flows of the same ends.
    #[test]
    fn the_files_of_all_cases_fit_together() {
        let folder = PathBuf::from("../../validation/htsim");
        for case in cases::CASES {
            let flows = Text::read(&folder.join(case.name).join("fct.csv")).and_then(|text| read(&text));
            let matrix = Text::read(&folder.join(case.matrix)).and_then(|text| htsim::matrix::Matrix::parse(&text));
            let (flows, matrix) = (flows.expect("their times"), matrix.expect("their matrix"));
            let mut theirs: Vec<_> =
                flows.iter().map(|flow| (u64::from(flow.source), u64::from(flow.destination))).collect();
            let mut ours: Vec<_> =
                matrix.connections.iter().map(|connection| (connection.source, connection.destination)).collect();
            theirs.sort_unstable();
            ours.sort_unstable();
            assert_eq!(theirs, ours, "{}", case.name);
        }
    }
}
