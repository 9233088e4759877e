//! Results in the formats of other simulators.
//!
//! - [`fct_txt`]: completion times; [`pfc_txt`]: pause frames. Both are formats of HPCC's ns-3 simulator.

pub mod fct_txt;
pub mod pfc_txt;

use fct_txt::FctTxt;
use incast_lab::scenario::Run;
use incast_sim::Outcome;

/// The files that a run's folder has for other simulators' users: their names and contents. See `measure.fct_txt`.
pub fn files(run: &Run, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let Some(origin) = run.fct_txt_origin() else { return Vec::new() };
    let fct = FctTxt::new(run.topology(), run.mtu(), origin).write(&outcome.flows, &run.classes);
    let mut files = vec![("fct.txt", fct)];
    if run.records_events() {
        files.push(("pfc.txt", pfc_txt::write(&outcome.events, run.topology(), origin)));
    }
    files
}
