//! Marimo as a congestion controller for [s2n-quic](https://docs.rs/s2n-quic).
//!
//! The algorithm is the C of `deploy/core/marimo.h` through `incast-cc`, the same that the simulator and the kernel
//! run. What is here converts units and says what QUIC does around it; its chapter is in `docs/deploy.md`.
//!
//! - [`settings`]: parameters, by the names that scenarios use.
//! - [`controller`]: the controller itself, and [`Endpoint`], which makes one for each path.
//! - [`ledger`]: packets and bytes of acknowledgements, which s2n-quic reports in bytes.
//! - [`reno`]: the rule without ECN.
//! - [`pacer`]: departure times.
//! - [`monitor`]: the state of ECN, which controllers are not told of otherwise, and counters for applications.
//!
//! ```no_run
//! use incast_quic::{Endpoint, Monitor, Settings};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = s2n_quic::Server::builder()
//!     .with_congestion_controller(Endpoint::new(Settings::default()))?
//!     .with_event(Monitor)?
//!     .with_io("0.0.0.0:4433")?;
//! # Ok(()) }
//! ```

pub mod controller;
pub mod ledger;
pub mod monitor;
pub mod pacer;
pub mod reno;
pub mod settings;

pub use controller::{Controller, Endpoint};
pub use monitor::{EcnState, Monitor, Statistics, Watch, Watched};
pub use settings::Settings;
