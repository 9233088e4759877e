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
//!
//! Here and in the crates below, `#[inline(always)]` is on the path of every packet, and `#[inline(never)]` is kept out of it:
//! rare, or so large that its callers would save registers for it. Other reasons stand beside the attribute.

// Two files have a rule for it: what is copied into messages without a look at its type.
#![deny(unsafe_code)]

pub mod application;
pub mod fabric;
pub mod flow_control;
pub mod host;
pub mod packet;
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
pub use incast_engine as engine;
pub use simulation::{
    Demand, Fabric, MemoryEstimate, Progress, SimulationError, base_path, base_path_of, base_rtt, checks,
    config::{self, Config, ConfigError},
    credit_rules, estimate_memory,
    outcome::{self, Outcome},
    pfc_rules, simulate, simulate_observed, used_priorities,
};
