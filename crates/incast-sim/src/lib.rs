//! Deterministic packet-level simulation of datacenter fabrics.
//!
//! - [`engine`]: the window executor, timers and random streams. It knows nothing about networks.
//! - [`fabric`]: packets, links, queues, switches, topologies.
//! - [`host`]: NICs, flows, reliability, and the adapters between packets and the laws of `incast-cc`.
//! - [`probe`]: what is measured.
//!
//! [`simulate`] runs a [`Config`] to an [`Outcome`].

pub mod application;
pub mod engine;
pub mod fabric;
pub mod flow_control;
pub mod host;
pub mod probe;
pub mod receiver;
pub mod recovery;
pub mod routing;
pub mod sender;
mod settings;
mod simulation;
pub mod switch;
pub mod topology;

pub use application::FlowSpec;
pub use simulation::{
    Demand, Fabric, MemoryEstimate, Progress, base_path, base_path_of, check_channels, check_credits,
    check_pfc, check_scheduler, check_trim,
    config::{self, Config, ConfigError},
    credit_rules, estimate_memory,
    outcome::{self, Outcome},
    pfc_rules, simulate, simulate_observed,
};
