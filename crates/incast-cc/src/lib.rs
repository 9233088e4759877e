//! The algorithms: pure state machines without I/O.
//!
//! Events go in, decisions come out; `now`, round-trip times and randomness are arguments. The same object
//! drives a simulated NIC, a real connection and a unit test that replays a trace.
//!
//! - [`sender`]: laws that set a window or a rate at the sender.
//! - [`receiver`]: schedulers that hand out credit at the receiver.
//! - [`switch`]: what a switch does to the packets of a port (marking, control packets, deflection).
//! - [`clock`]: how far clocks are apart, from probes between hosts.
//! - [`marimo`]: a law that exists as C, shared with real hosts.
//! - [`spray`]: which of all equal-cost ways each packet takes, where the sender chooses.
//! - [`underlay`]: what holds packets between a flow and its NIC.

pub mod clock;
pub mod feedback;
pub mod marimo;
pub mod parameters;
pub mod path;
pub mod periodic;
pub mod receiver;
pub mod sender;
pub mod spray;
pub mod switch;
pub mod underlay;

pub use feedback::{Cnp, Feedback, HopTelemetry, Loss};
pub use path::Path;
pub use periodic::Periodic;
