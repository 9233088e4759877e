//! Files and reference cases of other network simulators, and configuration of real devices.
//!
//! - [`import`]: their input files as scenarios: HPCC's ns-3 simulator and csg-htsim.
//! - [`device`]: what switches and hosts must be told so that they do what was simulated.
//! - [`export`]: results in their formats. [`standalone`]: the time of a flow alone, by the formula of HPCC's
//!   simulator.
//! - [`validation`]: their reference cases, simulated here and compared with their results.

pub mod device;
pub mod export;
pub mod import;
pub mod standalone;
pub mod validation;
