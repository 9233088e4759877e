//! A scenario file as a tree of values with their places, and errors that name them.
//!
//! - [`place`]: where a value was written, and the steps of a path to it.
//! - [`node`]: the tree. [`path`]: values by paths such as `workload.incast.fan_in`. [`de`]: structs from a tree;
//!   [`collect`]: all that is wrong with one.
//! - [`error`]: what is wrong, and where. [`nearest`]: the name that was probably meant.
//! - [`source`]: a file, read whole.

pub mod collect;
pub mod de;
pub mod error;
pub mod nearest;
pub mod node;
pub mod path;
pub mod place;
pub mod renamed;
pub mod source;
