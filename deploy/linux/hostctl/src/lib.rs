//! What tools share that load BPF programs into a host and change its routes: `marimoctl` and its like.
//!
//! A [`Tool`] says what it sets at a route. [`enable`] does that for all routes that are asked for or for none, and keeps in a
//! [`journal`] what was there; [`rollback`] puts that back, and [`watch`] keeps it as it is.

// Not used: that it is read makes cargo compile this crate again in another tree (.cargo/config.toml).
const _: Option<&str> = option_env!("INCAST_TREE");

pub mod bpf;
pub mod enable;
pub mod failure;
pub mod journal;
pub mod lock;
pub mod metrics;
pub mod namespaces;
pub mod netlink;
pub mod output;
pub mod plain;
pub mod rollback;
pub mod routes;
mod tool;
pub mod view;
pub mod watch;

pub use tool::Tool;
