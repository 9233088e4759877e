//! The fabric: packets, links, queues, switches, and how they are joined.

pub mod buffer;
pub mod credit;
pub mod ideal;
pub mod link;
pub mod node;
pub mod packet;
pub mod pause;
pub mod permission;
pub mod pfc;
pub mod queue;
pub mod routing;
pub mod switch;
pub mod topology;
pub mod trimming;
