//! What every packet meets: packets, links, queues, buffers, trimming.

pub mod buffer;
pub mod chip;
pub(crate) mod config;
pub mod format;
pub mod link;
pub mod node;
pub mod queue;
pub mod trim;
