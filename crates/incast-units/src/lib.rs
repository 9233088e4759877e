//! Units of the simulator: [`Time`] in picoseconds, [`Bytes`], and [`Rate`] in bits per second.
//!
//! All three are integers. They parse what people write (`"100Gbps"`, `"1us"`, `"320KB"`) exactly, without
//! a detour over floating point, and print the same way.

// Not used: that it is read makes cargo compile this crate, and all above it, again in another tree (.cargo/config.toml).
const _: Option<&str> = option_env!("INCAST_TREE");

mod bytes;
mod parse;
mod rate;
#[cfg(feature = "serde")]
mod serde;
mod time;

pub use bytes::Bytes;
pub use parse::UnitError;
pub use rate::{Rate, Rounding, Serializer};
pub use time::Time;
