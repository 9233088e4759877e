//! Deterministic packet-level simulation of datacenter fabrics.
//!
//! - [`engine`]: the window executor, timers and random streams. It knows nothing about networks.
//! - [`topology`], [`routing`]: nodes and cables; the next hop of a packet.
//! - [`fabric`], [`flow_control`], [`switch`]: packets, links, queues and buffers; PFC and credits; switches.
//! - [`host`], [`sender`], [`receiver`], [`recovery`]: NICs, and the two ends of a flow, which run the laws of
//!   `incast-cc`.
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
    Demand, Fabric, MemoryEstimate, Progress, SimulationError, base_path, base_path_of, check_channels,
    check_credits, check_credits_alone, check_host, check_mtu, check_not_ect, check_pfc, check_priorities,
    check_scheduler, check_trim,
    config::{self, Config, ConfigError},
    credit_rules, estimate_memory,
    outcome::{self, Outcome},
    pfc_rules, simulate, simulate_observed,
};
