//! Files and reference cases of other network simulators.
//!
//! - [`import`]: their input files as scenarios: HPCC's ns-3 simulator and csg-htsim.
//! - [`export`]: results in their formats. [`standalone`]: the time of a flow alone, by the formula of HPCC's
//!   simulator.
//! - [`validation`]: their reference cases, simulated here and compared with their results.

pub mod export;
pub mod import;
pub mod standalone;
pub mod validation;
