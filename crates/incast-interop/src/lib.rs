//! Files and reference cases of other network simulators.
//!
//! - [`import`]: their input files as scenarios: the ns-3 simulator of HPCC, csg-htsim.
//! - [`validation`]: their reference cases, simulated here and compared with their results.

pub mod import;
pub mod validation;
