//! Routing: the port of a switch that a packet takes, of those that lead to its destination.

pub(crate) mod config;
pub mod detours;
mod path_count;
mod pinned;
pub mod router;

pub use detours::{Detours, Direction, RouteView, SwitchOrder};
pub use path_count::PathCount;
pub use pinned::{PinError, Pinned, pin};
pub use router::Router;
