//! The algorithms: pure state machines without I/O.
//!
//! Events go in, decisions come out; `now`, round-trip times and randomness are arguments. The same object
//! drives a simulated NIC, a real connection and a unit test that replays a trace.
//!
//! The contracts know no algorithm:
//!
//! - [`law`]: congestion control of one flow at its sender.
//! - [`scheduler`]: the receiver half of a receiver-driven protocol.
//! - [`message`]: messages between its two halves.
//! - [`agent`]: an algorithm inside a switch.
//! - [`underlay`]: a stage that holds packets between a flow and its NIC.
//!
//! The algorithms:
//!
//! - [`window`] and [`rate`]: laws that set a congestion window, and laws that set a sending rate.
//! - [`receiver_driven`]: protocols with a sender half and a receiver half.
//! - [`switch`]: in-switch algorithms.
//! - [`clock`]: clock offset and skew between hosts, from probes.
//! - [`spray`]: the path of each packet, where the sender chooses it.
//!
//! [`registry`] makes the dispatch tables from the one list of algorithms, which is in `algorithms.rs`.

#[macro_use]
mod algorithms;

pub mod agent;
pub mod clock;
pub mod feedback;
pub mod granted_window;
pub mod law;
pub mod marking;
pub mod message;
pub mod parameters;
pub mod path;
pub mod periodic;
pub mod rate;
pub mod receiver_driven;
pub mod registry;
pub mod scheduler;
pub mod spray;
pub mod switch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod underlay;
pub mod window;

pub use feedback::{Cnp, Feedback, HopTelemetry, Loss};
pub use path::Path;
pub use periodic::Periodic;
