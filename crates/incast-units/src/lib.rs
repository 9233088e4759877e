//! Units of the simulator: [`Time`] in picoseconds, [`Bytes`], and [`Rate`] in bits per second.
//!
//! All three are integers. They parse what people write (`"100Gbps"`, `"1us"`, `"320KB"`) exactly, without
//! a detour over floating point, and print the same way.

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
